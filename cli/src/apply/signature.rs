//! Detached SSH signatures of decisions files, and the keys that may make them.
//!
//! A signature is what `ssh-keygen -Y sign -n codeboost-decisions` writes. The allowed signers are
//! a file in the form of `ssh-keygen`, read here so that no program is needed:
//!
//! ```text
//! principal[,principal…] [option[,option…]] key-type base64 [comment]
//! ```
//!
//! Options: `namespaces="…"` (patterns), `valid-after="…"`, `valid-before="…"`, as
//! `YYYYMMDD[HHMM[SS]]`, read as UTC with or without a `Z`. A principal is a plain name, because it
//! becomes the reviewer's: patterns are refused, as are certificate authorities.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use ssh_key::{PublicKey, SshSig};

/// The namespace of signatures over decisions files.
pub const NAMESPACE: &str = "codeboost-decisions";

/// Keys and the names of those who hold them.
#[derive(Debug, Clone, Default)]
pub struct AllowedSigners {
    signers: Vec<Signer>,
}

#[derive(Debug, Clone)]
struct Signer {
    principals: Vec<String>,
    namespaces: Option<Vec<String>>,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
    key: PublicKey,
}

/// Whose signature it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBy {
    /// The principal.
    pub name: String,
    /// The fingerprint of the key, as `SHA256:…`.
    pub key: String,
}

/// What is wrong with a file of allowed signers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct SignersError {
    /// Counts from 1.
    pub line: usize,
    /// What is wrong, as a lower-case fragment.
    pub what: String,
}

/// Why a signature is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It is not an SSH signature.
    #[error("not an SSH signature as ssh-keygen -Y sign writes it")]
    Malformed,
    /// It was made for something else.
    #[error("the signature is for the namespace {0:?}, not for {NAMESPACE:?}")]
    Namespace(String),
    /// No allowed signer holds the key.
    #[error("no allowed signer holds the key {0}")]
    UnknownKey(String),
    /// The key's time has not come, or is over.
    #[error("the key of {principal} is not valid at {at}")]
    NotValid {
        /// Who holds it.
        principal: String,
        /// RFC 3339.
        at: String,
    },
    /// The key may not be used for decisions.
    #[error("the key of {0} is not allowed for {NAMESPACE:?}")]
    NotForDecisions(String),
    /// The bytes are not what was signed, or the kind of key is not supported.
    #[error("the signature by {0} does not fit the file: it was altered after signing")]
    Altered(String),
}

impl AllowedSigners {
    /// Reads a file of allowed signers.
    ///
    /// # Errors
    /// [`SignersError`] with the first line that can't be read: a key that is left out by accident
    /// must not go unnoticed.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignersError> {
        let mut signers = Vec::new();
        for (n, line) in bytes.split(|b| *b == b'\n').enumerate() {
            let fail = |what: String| SignersError { line: n + 1, what };
            let line = std::str::from_utf8(line).map_err(|_| fail("not UTF-8".into()))?.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            signers.push(parse_line(line).map_err(fail)?);
        }
        Ok(Self { signers })
    }

    /// Whoever signed `message`, at the time `now`.
    ///
    /// Of several names for one key the first one in `preferred` counts, else the first one.
    ///
    /// # Errors
    /// [`SignatureError`] when no allowed signer made the signature over exactly these bytes.
    pub fn verify(
        &self,
        message: &[u8],
        signature: &[u8],
        preferred: impl Fn(&str) -> bool,
        now: Timestamp,
    ) -> Result<SignedBy, SignatureError> {
        let signature = SshSig::from_pem(signature).map_err(|_| SignatureError::Malformed)?;
        if signature.namespace() != NAMESPACE {
            return Err(SignatureError::Namespace(signature.namespace().to_owned()));
        }
        let key = signature.public_key().fingerprint(ssh_key::HashAlg::Sha256).to_string();
        let holders: Vec<_> = self
            .signers
            .iter()
            .filter(|signer| signer.key.key_data() == signature.public_key())
            .collect();
        let Some(first) = holders.first() else {
            return Err(SignatureError::UnknownKey(key));
        };
        let usable = |signer: &&&Signer| signer.is_valid_at(now) && signer.is_for_decisions();
        let Some(signer) = holders.iter().find(usable) else {
            let principal = first.name(&preferred);
            return Err(if first.is_valid_at(now) {
                SignatureError::NotForDecisions(principal)
            } else {
                SignatureError::NotValid { principal, at: now.to_string() }
            });
        };
        let name = signer.name(&preferred);
        match signer.key.verify(NAMESPACE, message, &signature) {
            Ok(()) => Ok(SignedBy { name, key }),
            Err(_) => Err(SignatureError::Altered(name)),
        }
    }
}

impl Signer {
    fn name(&self, preferred: &impl Fn(&str) -> bool) -> String {
        let name = self.principals.iter().find(|name| preferred(name));
        name.or(self.principals.first()).cloned().unwrap_or_default()
    }

    fn is_valid_at(&self, now: Timestamp) -> bool {
        self.valid_after.is_none_or(|from| from <= now)
            && self.valid_before.is_none_or(|to| now < to)
    }

    fn is_for_decisions(&self) -> bool {
        let Some(patterns) = &self.namespaces else { return true };
        let matches = |pattern: &str| matches_pattern(pattern.as_bytes(), NAMESPACE.as_bytes());
        let denied = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(&matches);
        !denied && patterns.iter().any(|pattern| matches(pattern))
    }
}

fn parse_line(line: &str) -> Result<Signer, String> {
    let (principals, rest) =
        line.split_once([' ', '\t']).ok_or("a name, a key type and a key are needed")?;
    let principals: Vec<_> = principals.split(',').map(str::to_owned).collect();
    if principals.iter().any(|name| name.is_empty() || name.contains(['*', '?', '!', '"'])) {
        return Err("principals are plain names here, without patterns".into());
    }
    let rest = rest.trim_start();
    let (options, key) =
        if is_key_type(rest) { ("", rest) } else { split_options(rest).ok_or("no key")? };
    let mut signer = Signer {
        principals,
        namespaces: None,
        valid_after: None,
        valid_before: None,
        key: PublicKey::from_openssh(key).map_err(|error| format!("unreadable key: {error}"))?,
    };
    for option in options_of(options)? {
        match option {
            ("namespaces", Some(value)) => {
                signer.namespaces = Some(value.split(',').map(str::to_owned).collect());
            }
            ("valid-after", Some(value)) => signer.valid_after = Some(parse_time(value)?),
            ("valid-before", Some(value)) => signer.valid_before = Some(parse_time(value)?),
            ("cert-authority", _) => {
                return Err("certificate authorities are not supported".into());
            }
            (name, _) => return Err(format!("unknown option {name:?}")),
        }
    }
    Ok(signer)
}

fn is_key_type(text: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"].iter().any(|start| text.starts_with(start))
}

/// Splits options from the key after them, at the first blank outside quotes.
fn split_options(text: &str) -> Option<(&str, &str)> {
    let mut quoted = false;
    let end = text.char_indices().find(|(_, c)| {
        if *c == '"' {
            quoted = !quoted;
        }
        !quoted && c.is_ascii_whitespace()
    })?;
    Some((&text[..end.0], text[end.0..].trim_start()))
}

fn options_of(text: &str) -> Result<Vec<(&str, Option<&str>)>, String> {
    let mut options = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find([',', '=']).unwrap_or(rest.len());
        let name = &rest[..end];
        rest = &rest[end..];
        let value = if let Some(after) = rest.strip_prefix("=\"") {
            let close = after.find('"').ok_or("a quote is not closed")?;
            rest = &after[close + 1..];
            Some(&after[..close])
        } else if rest.starts_with('=') {
            return Err(format!("the value of {name} needs quotes"));
        } else {
            None
        };
        options.push((name, value));
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None if rest.is_empty() => {}
            None => return Err("options are separated by commas".into()),
        }
    }
    Ok(options)
}

fn parse_time(text: &str) -> Result<Timestamp, String> {
    let fail = || format!("{text:?} is no time such as 20261130 or 202611301200Z");
    let digits = text.strip_suffix('Z').unwrap_or(text);
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(fail());
    }
    let part = |from: usize, to: usize| -> i8 {
        digits.get(from..to).and_then(|part| part.parse().ok()).unwrap_or(0)
    };
    let year = digits[..4].parse().map_err(|_| fail())?;
    DateTime::new(year, part(4, 6), part(6, 8), part(8, 10), part(10, 12), part(12, 14), 0)
        .and_then(|time| TimeZone::UTC.to_timestamp(time))
        .map_err(|_| fail())
}

/// `*` is any text, `?` any byte.
fn matches_pattern(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|n| matches_pattern(rest, &text[n..])),
        Some((b'?', rest)) => !text.is_empty() && matches_pattern(rest, &text[1..]),
        Some((b, rest)) => text.first() == Some(b) && matches_pattern(rest, &text[1..]),
    }
}

#[cfg(test)]
mod tests {
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use ssh_key::{HashAlg, LineEnding, PrivateKey};

    use super::*;

    fn key(seed: u8) -> PrivateKey {
        let pair = Ed25519Keypair::from_seed(&[seed; 32]);
        PrivateKey::new(KeypairData::Ed25519(pair), "").expect("a key")
    }

    fn public(seed: u8) -> String {
        key(seed).public_key().to_openssh().expect("text")
    }

    fn sign(seed: u8, namespace: &str, message: &[u8]) -> Vec<u8> {
        let signature = key(seed).sign(namespace, HashAlg::Sha512, message).expect("signed");
        signature.to_pem(LineEnding::LF).expect("text").into_bytes()
    }

    fn check(signers: &str, signature: &[u8], message: &[u8]) -> Result<String, SignatureError> {
        let now = "2026-11-30T12:00:00Z".parse().expect("a time");
        let signers = AllowedSigners::parse(signers.as_bytes()).expect("signers");
        let by = signers.verify(message, signature, |name| name == "preferred", now)?;
        assert!(by.key.starts_with("SHA256:"), "{by:?}");
        Ok(by.name)
    }

    #[test]
    fn a_signature_names_whoever_holds_the_key() {
        let signers = format!("# people\n\na@x {}\nb,preferred {} comment\n", public(1), public(2));
        assert_eq!(check(&signers, &sign(1, NAMESPACE, b"m"), b"m"), Ok("a@x".into()));
        assert_eq!(check(&signers, &sign(2, NAMESPACE, b"m"), b"m"), Ok("preferred".into()));
        assert!(matches!(
            check(&signers, &sign(3, NAMESPACE, b"m"), b"m"),
            Err(SignatureError::UnknownKey(_))
        ));
    }

    #[test]
    fn altered_files_other_namespaces_and_garbage_are_refused() {
        let signers = format!("a {}\n", public(1));
        let signature = sign(1, NAMESPACE, b"m");
        assert_eq!(check(&signers, &signature, b"n"), Err(SignatureError::Altered("a".into())));
        assert_eq!(
            check(&signers, &sign(1, "git", b"m"), b"m"),
            Err(SignatureError::Namespace("git".into()))
        );
        assert_eq!(check(&signers, b"garbage", b"m"), Err(SignatureError::Malformed));
    }

    #[test]
    fn options_limit_what_a_key_is_good_for() {
        let with = |options: &str| {
            check(&format!("a {options} {}\n", public(1)), &sign(1, NAMESPACE, b"m"), b"m")
        };
        let ok = Ok("a".to_owned());
        assert_eq!(with("namespaces=\"git,codeboost-*\""), ok);
        assert_eq!(with("namespaces=\"git\""), Err(SignatureError::NotForDecisions("a".into())));
        assert_eq!(
            with("namespaces=\"*,!codeboost-decisions\""),
            Err(SignatureError::NotForDecisions("a".into()))
        );
        assert_eq!(with("valid-after=\"20261130\",valid-before=\"202611301201Z\""), ok);
        assert!(matches!(with("valid-before=\"20261130\""), Err(SignatureError::NotValid { .. })));
        assert!(matches!(with("valid-after=\"20261201\""), Err(SignatureError::NotValid { .. })));
    }

    #[test]
    fn a_line_that_can_t_be_read_is_an_error_with_its_number() {
        let fail = |line: &str| {
            AllowedSigners::parse(format!("# first\n{line}\n").as_bytes()).expect_err("refused")
        };
        for (line, what) in [
            ("*@example.org ssh-ed25519 AAAA", "principals are plain names here"),
            ("a ssh-ed25519 AAAA", "unreadable key"),
            (&format!("a cert-authority {}", public(1)), "certificate authorities"),
            (&format!("a touch {}", public(1)), "unknown option \"touch\""),
            (&format!("a valid-after=\"soon\" {}", public(1)), "no time such as"),
            (&format!("a namespaces=git {}", public(1)), "needs quotes"),
            ("alone", "a name, a key type and a key are needed"),
        ] {
            let error = fail(line);
            assert_eq!(error.line, 2);
            assert!(error.what.contains(what), "{line}: {error}");
        }
    }
}
