//! Signing and checking of approval forms.
//!
//! What is signed are the bytes, never their meaning: [`SIGNED_PREFIX`] and the payload exactly as
//! it was made. What a valid signature proves is that a holder of the key issued this payload. It
//! does not prove that the page which was shown was this page.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use codeboost_schema::decisions::SignedForm;
use codeboost_schema::form::{Form, FormError, SIGNED_PREFIX};

use crate::config::{AcceptedKey, Config};
use crate::store::{FormKey, verify_form_signature};

/// Why a form is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum FormRefusal {
    /// The payload is no form.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The form names a key that is not accepted here.
    #[error("the form names the key {0}, which is not accepted here")]
    UnknownKey(String),
    /// The form was not signed by the key that it names, or it was altered.
    #[error("the form was altered, or not signed by {name} ({key})")]
    Signature {
        /// The key's name.
        name: String,
        /// The key.
        key: String,
    },
}

/// Signs a form.
///
/// # Panics
/// Never: a key's signatures are base64.
#[must_use]
pub fn sign(form: &Form, key: &FormKey) -> SignedForm {
    let payload = form.to_bytes();
    let signature =
        STANDARD.decode(key.sign(&signed_bytes(&payload))).expect("a key's signatures are base64");
    SignedForm { payload, signature }
}

/// Checks a signed form against the accepted keys.
///
/// # Errors
/// [`FormRefusal`] when the payload is no form, or none of the keys signed these bytes.
pub fn verify(signed: &SignedForm, accepted: &[AcceptedKey]) -> Result<Form, FormRefusal> {
    let form = Form::parse(&signed.payload)?;
    let key = accepted
        .iter()
        .find(|key| key.public_key == form.public_key)
        .ok_or_else(|| FormRefusal::UnknownKey(form.public_key.clone()))?;
    let signature = STANDARD.encode(&signed.signature);
    if verify_form_signature(&key.public_key, &signed_bytes(&signed.payload), &signature) {
        Ok(form)
    } else {
        Err(FormRefusal::Signature { name: key.name.clone(), key: key.public_key.clone() })
    }
}

/// The keys whose forms are accepted: the repository's own, if it has one, and those that the
/// configuration names.
#[must_use]
pub fn accepted_keys(own: Option<String>, config: &Config) -> Vec<AcceptedKey> {
    let own = own.map(|public_key| AcceptedKey { name: "this repository".into(), public_key });
    own.into_iter().chain(config.keys.iter().cloned()).collect()
}

fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    [SIGNED_PREFIX, payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(key: &FormKey) -> Form {
        let mut form =
            Form::parse(include_bytes!("../../../schema/examples/form.json")).expect("a form");
        form.public_key = key.public_text();
        form
    }

    fn accepted(keys: &[&FormKey]) -> Vec<AcceptedKey> {
        keys.iter()
            .map(|key| AcceptedKey { name: key.name().into(), public_key: key.public_text() })
            .collect()
    }

    #[test]
    fn every_altered_byte_of_payload_and_signature_is_refused() {
        let key = FormKey::generate("here").expect("a key");
        let signed = sign(&form(&key), &key);
        let keys = accepted(&[&key]);
        assert_eq!(verify(&signed, &keys).expect("accepted"), form(&key));
        for n in 0..signed.payload.len() {
            let mut altered = signed.clone();
            altered.payload[n] ^= 1;
            verify(&altered, &keys).expect_err("an altered payload");
        }
        for n in 0..signed.signature.len() {
            let mut altered = signed.clone();
            altered.signature[n] ^= 1;
            verify(&altered, &keys).expect_err("an altered signature");
        }
    }

    #[test]
    fn a_form_that_is_serialized_otherwise_keeps_its_bytes() {
        // The bytes count, not their meaning: the same value with another layout is not signed.
        let key = FormKey::generate("here").expect("a key");
        let mut signed = sign(&form(&key), &key);
        signed.payload.push(b'\n');
        let error = verify(&signed, &accepted(&[&key])).expect_err("other bytes");
        assert!(matches!(error, FormRefusal::Signature { .. }), "{error}");
    }

    #[test]
    fn only_accepted_keys_count_and_only_for_themselves() {
        let (mine, ci) =
            (FormKey::generate("here").expect("a key"), FormKey::generate("ci").expect("a key"));
        let other = FormKey::generate("other").expect("a key");
        let keys = accepted(&[&mine, &ci]);
        verify(&sign(&form(&ci), &ci), &keys).expect("a named key");
        let error = verify(&sign(&form(&other), &other), &keys).expect_err("a foreign key");
        assert!(matches!(error, FormRefusal::UnknownKey(_)), "{error}");
        // Signed by one accepted key in the name of another.
        let error = verify(&sign(&form(&mine), &ci), &keys).expect_err("another key");
        assert!(matches!(error, FormRefusal::Signature { .. }), "{error}");
        let error = verify(&sign(&form(&mine), &other), &keys).expect_err("another key");
        assert!(matches!(error, FormRefusal::Signature { .. }), "{error}");
    }
}
