//! RFC 8785 (JCS): one byte string per value, for whatever is signed, fingerprinted or keyed.

use serde::Serialize;

use crate::ids::Digest;

/// The canonical bytes of `value`.
///
/// # Panics
/// Never for the types of this package: they hold only strings, integers, lists and objects with
/// string keys, which always serialize.
#[must_use]
pub fn to_bytes<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value)
        .expect("strings, integers, lists and string-keyed objects always serialize")
}

/// The digest of the canonical bytes of `value`.
#[must_use]
pub fn digest<T: Serialize>(value: &T) -> Digest {
    Digest::of(&to_bytes(value))
}
