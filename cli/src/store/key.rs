//! The key that signs forms: Ed25519, in a file that only its owner can read.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use signature::{Signer as _, Verifier as _};
use ssh_key::private::{Ed25519Keypair, KeypairData};
use ssh_key::public::Ed25519PublicKey;
use ssh_key::{Algorithm, LineEnding, PrivateKey, Signature};

use crate::stage::{self, FileError};
use crate::store::open::check_file;
use crate::store::{Store, StoreError};

/// A key that signs forms.
///
/// Its text is an OpenSSH private key without passphrase, with the key's name as its comment.
#[derive(Clone)]
pub struct FormKey {
    pair: Ed25519Keypair,
    name: String,
}

impl std::fmt::Debug for FormKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FormKey({})", self.public_text())
    }
}

impl FormKey {
    /// A new key. `name`: for people, such as `ci`.
    ///
    /// # Errors
    /// [`StoreError::Random`] when the system gives no random bytes.
    pub fn generate(name: &str) -> Result<Self, StoreError> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| StoreError::Random(error.to_string()))?;
        Ok(Self { pair: Ed25519Keypair::from_seed(&seed), name: name.to_owned() })
    }

    /// Reads the text of an OpenSSH private key; `None` when it is not Ed25519, or needs a
    /// passphrase.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let key = PrivateKey::from_openssh(text).ok()?;
        match key.key_data() {
            KeypairData::Ed25519(pair) => {
                Some(Self { pair: pair.clone(), name: key.comment().to_owned() })
            }
            _ => None,
        }
    }

    /// The key as text: an OpenSSH private key. A secret.
    ///
    /// # Panics
    /// Never: a pair without passphrase always serializes.
    #[must_use]
    pub fn secret_text(&self) -> String {
        PrivateKey::new(KeypairData::Ed25519(self.pair.clone()), &self.name)
            .and_then(|key| key.to_openssh(LineEnding::LF))
            .expect("a pair without passphrase always serializes")
            .to_string()
    }

    /// The key's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The public half as base64 of its 32 bytes: the `public_key` of a form.
    #[must_use]
    pub fn public_text(&self) -> String {
        STANDARD.encode(self.pair.public.0)
    }

    /// Signs `message`: base64 of the 64 bytes of an Ed25519 signature.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(message).as_bytes())
    }
}

/// Whether `signature` over `message` was made by the holder of `public_key`; both base64, as in
/// forms. Anything unreadable is `false`.
#[must_use]
pub fn verify_form_signature(public_key: &str, message: &[u8], signature: &str) -> bool {
    let verify = || {
        let key: [u8; 32] = STANDARD.decode(public_key).ok()?.try_into().ok()?;
        let signature: [u8; 64] = STANDARD.decode(signature).ok()?.try_into().ok()?;
        let signature = Signature::new(Algorithm::Ed25519, signature).ok()?;
        Ed25519PublicKey(key).verify(message, &signature).ok()
    };
    verify().is_some()
}

impl Store<'_> {
    /// Where the signing key lies.
    #[must_use]
    pub fn key_path(&self) -> PathBuf {
        self.folder().join("signing-key")
    }

    /// The signing key; `None` when there is none.
    ///
    /// # Errors
    /// [`StoreError::Open`] when others can read its file, [`StoreError::Key`] when it holds no
    /// usable key.
    pub fn key(&self) -> Result<Option<FormKey>, StoreError> {
        let path = self.key_path();
        if !check_file(&path)? {
            return Ok(None);
        }
        let bytes = stage::read(&path, stage::MAX_SETTINGS)?;
        let key = std::str::from_utf8(&bytes).ok().and_then(FormKey::parse);
        key.map(Some).ok_or(StoreError::Key(path))
    }

    /// Keeps `key` as the signing key, unless there is one already. Returns whether it did.
    ///
    /// # Errors
    /// [`StoreError::File`] when it can't be written.
    pub fn put_key(&self, key: &FormKey) -> Result<bool, StoreError> {
        let path = self.key_path();
        if check_file(&path)? {
            return Ok(false);
        }
        write_secret(&path, key.secret_text().as_bytes()).map_err(StoreError::from)
    }
}

/// Writes a secret to a new file that only its owner can read. Returns `false`, writing nothing,
/// when the file exists.
///
/// # Errors
/// [`FileError`] naming the path.
pub fn write_secret(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let fail = |source| FileError::new("write", path, source);
    let folder = path.parent().unwrap_or(Path::new("."));
    // Temporary files are their owner's alone from the first moment.
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    match file.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(fail(error.error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_proves_key_and_every_byte() {
        let key = FormKey::generate("one").expect("a key");
        let other = FormKey::generate("two").expect("a key");
        let signature = key.sign(b"payload");
        assert!(verify_form_signature(&key.public_text(), b"payload", &signature));
        assert!(!verify_form_signature(&key.public_text(), b"payloae", &signature));
        assert!(!verify_form_signature(&other.public_text(), b"payload", &signature));
        assert!(!verify_form_signature("", b"payload", &signature));
        assert!(!verify_form_signature(&key.public_text(), b"payload", "AAAA"));
    }

    #[test]
    fn a_key_survives_its_text() {
        let key = FormKey::generate("ci").expect("a key");
        let again = FormKey::parse(&key.secret_text()).expect("the same key");
        assert_eq!(again.public_text(), key.public_text());
        assert_eq!(again.name(), "ci");
        assert!(FormKey::parse("no key").is_none());
    }
}
