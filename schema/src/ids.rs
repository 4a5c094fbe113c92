//! Names that leave the process: one type each, so that they can't be mixed up.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $check:expr, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the form and wraps the text.
            ///
            /// # Errors
            /// [`IdError`] when the text does not have the form of this name.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                let check: fn(&str) -> bool = $check;
                if check(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(IdError { what: $what, found: text.chars().take(80).collect() })
                }
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        // Shorter first: P2 stands before P10. Hex names of one kind have one length.
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                (self.0.len(), &self.0).cmp(&(other.0.len(), &other.0))
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// A text that does not have the form of the name it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {what}, found {found:?}")]
pub struct IdError {
    /// What was expected, in words.
    pub what: &'static str,
    /// The text that was found, cut to 80 characters.
    pub found: String,
}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && is_lower_hex(text)
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && is_lower_hex(hex))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(n, b)| match n {
            8 | 13 | 18 | 23 => b == b'-',
            _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
        })
}

fn is_item_id(text: &str) -> bool {
    text.strip_prefix('P').is_some_and(|n| {
        matches!(n.len(), 1..=3) && n.bytes().all(|b| b.is_ascii_digit()) && !n.starts_with('0')
    })
}

id!(
    /// A commit: full lower-case hex, SHA-1 (40) or SHA-256 (64).
    CommitId, is_object_id, "a full lower-case commit id"
);
id!(
    /// Any git object: full lower-case hex, SHA-1 (40) or SHA-256 (64).
    ObjectId, is_object_id, "a full lower-case object id"
);
id!(
    /// A plan item: `P1` to `P999`.
    ItemId, is_item_id, "an item id such as P1"
);
id!(
    /// A UUID in lower case with hyphens: a repository, a task, a plan, a decision.
    Uuid, is_uuid, "a lower-case UUID"
);
id!(
    /// A digest: `sha256:` and 64 hex digits.
    Digest, is_digest, "a digest such as sha256:<64 hex digits>"
);

/// The digest of what an approval covers; see `approval` in the command line package.
pub type Fingerprint = Digest;
/// The digest that names one segment by its content and copy number.
pub type SegmentKey = Digest;

impl Digest {
    /// SHA-256 of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self::from_raw(&sha2::Sha256::digest(bytes))
    }

    /// SHA-256 of all that a reader gives, without holding it.
    ///
    /// # Errors
    /// Whatever the reader answers.
    pub fn of_all(mut reader: impl std::io::Read) -> std::io::Result<Self> {
        use sha2::Digest as _;
        let mut hasher = sha2::Sha256::new();
        let mut piece = vec![0; 1 << 16];
        loop {
            match reader.read(&mut piece) {
                Ok(0) => return Ok(Self::from_raw(&hasher.finalize())),
                Ok(n) => hasher.update(&piece[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn from_raw(raw: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(71);
        text.push_str("sha256:");
        for byte in raw {
            text.push(char::from(DIGITS[usize::from(byte >> 4)]));
            text.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
        Self(text.into())
    }

    /// The 64 hex digits without the prefix.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.0[7..]
    }
}
