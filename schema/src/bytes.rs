//! Bytes from a repository, and how JSON carries them.
//!
//! A value that is valid UTF-8 stands under its plain key. Any other stands under the key with
//! `_b64` appended, as standard base64 of the raw bytes, and the plain key is absent. The choice
//! is made value by value. What is signed, fingerprinted or keyed always uses base64 under the
//! plain key ([`RepoBytes::canonical`]).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// Bytes as they stand in a repository: a path, a text, a link target, a quote.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoBytes(Arc<[u8]>);

/// A path inside a repository: bytes, forward slashes, no leading slash.
pub type RepoPath = RepoBytes;

impl RepoBytes {
    /// The raw bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text, when the bytes are valid UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The text with every invalid sequence replaced: for people, never for comparing.
    #[must_use]
    pub fn lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Base64 of the bytes: the form used in everything signed, fingerprinted or keyed.
    #[must_use]
    pub fn canonical(&self) -> String {
        STANDARD.encode(&self.0)
    }

    /// Appends what [`Self::canonical`] is.
    pub(crate) fn push_canonical(&self, text: &mut String) {
        STANDARD.encode_string(&self.0, text);
    }

    /// Whether there is no byte at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for RepoBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.lossy())
    }
}

impl From<Vec<u8>> for RepoBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<&[u8]> for RepoBytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for RepoBytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for RepoBytes {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

/// Writes `bytes` as one field: under `key` when it is UTF-8, else as base64 under `key_b64`.
///
/// # Errors
/// Whatever the serializer answers.
pub fn put<S: SerializeStruct>(
    out: &mut S,
    key: &'static str,
    key_b64: &'static str,
    bytes: &RepoBytes,
) -> Result<(), S::Error> {
    match bytes.as_str() {
        Some(text) => out.serialize_field(key, text),
        None => out.serialize_field(key_b64, &bytes.canonical()),
    }
}

/// As [`put`], with `null` under the plain key for an absent value.
///
/// # Errors
/// Whatever the serializer answers.
pub fn put_opt<S: SerializeStruct>(
    out: &mut S,
    key: &'static str,
    key_b64: &'static str,
    bytes: Option<&RepoBytes>,
) -> Result<(), S::Error> {
    match bytes {
        Some(bytes) => put(out, key, key_b64, bytes),
        None => out.serialize_field(key, &None::<()>),
    }
}

/// Writes base64 of the bytes, or null: for values whose digest is all that anybody reads.
///
/// # Errors
/// Whatever the serializer answers.
pub fn as_base64<'a, S: Serializer>(
    bytes: impl Into<Option<&'a RepoBytes>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let text = bytes.into().map(RepoBytes::canonical);
    text.serialize(serializer)
}

/// Joins the two forms of a read field. `Ok(None)` when both are absent or null.
///
/// # Errors
/// [`BytesError`] when both are given, or when the base64 is not valid.
pub fn take(plain: Option<String>, b64: Option<String>) -> Result<Option<RepoBytes>, BytesError> {
    match (plain, b64) {
        (Some(_), Some(_)) => Err(BytesError::Both),
        (Some(text), None) => Ok(Some(text.into())),
        (None, Some(text)) => {
            STANDARD.decode(text).map(|bytes| Some(bytes.into())).map_err(|_| BytesError::Base64)
        }
        (None, None) => Ok(None),
    }
}

/// Why a bytes field could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    /// The plain key and the `_b64` key are both there.
    #[error("a value stands under both its plain key and its _b64 key")]
    Both,
    /// The `_b64` value is not standard base64.
    #[error("a _b64 value is not standard base64")]
    Base64,
    /// A required value stands under neither key.
    #[error("a required value is missing")]
    Missing,
}

/// Serialized by value inside lists (`[op, context, bytes]`): canonical base64.
#[derive(Debug, Clone, Copy)]
pub struct Canonical<'a>(pub &'a RepoBytes);

impl Serialize for Canonical<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.canonical())
    }
}
