//! Reading of JSON that others may have written: duplicate keys, trailing data, depth and size
//! are refused before anything looks at the values.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why a strict read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StrictError {
    /// The input has more than the allowed bytes.
    #[error("{bytes} bytes, more than the {max_bytes} allowed")]
    TooLarge {
        /// Length of the input in bytes.
        bytes: usize,
        /// The limit in bytes.
        max_bytes: usize,
    },
    /// The input is not UTF-8.
    #[error("not valid UTF-8 at byte {offset}")]
    NotUtf8 {
        /// Offset in bytes of the first invalid sequence.
        offset: usize,
    },
    /// The input is not JSON, repeats a key, or nests too deeply.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// Counts from 1.
        line: usize,
        /// Counts from 1.
        column: usize,
        /// What is wrong, as a lower-case fragment.
        what: String,
    },
}

/// Containers may nest this deep.
pub const MAX_DEPTH: usize = 50;

/// Parses `input` to a value.
///
/// # Errors
/// [`StrictError`] on more than `max_bytes` bytes, invalid UTF-8, anything that is not one JSON
/// value, a key that occurs twice in one object (after decoding of escapes), or containers nested
/// deeper than [`MAX_DEPTH`].
pub fn parse(input: &[u8], max_bytes: usize) -> Result<Value, StrictError> {
    if input.len() > max_bytes {
        return Err(StrictError::TooLarge { bytes: input.len(), max_bytes });
    }
    let text = std::str::from_utf8(input)
        .map_err(|error| StrictError::NotUtf8 { offset: error.valid_up_to() })?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Node { depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| StrictError::Syntax {
            line: error.line(),
            column: error.column(),
            what: describe(&error),
        })
}

fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // The position has fields of its own.
    text.rfind(" at line ").map_or(text.clone(), |at| text[..at].to_owned())
}

struct Node {
    depth: usize,
}

impl Node {
    fn deeper<E: serde::de::Error>(&self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(E::custom(format!("containers nest deeper than {MAX_DEPTH}")));
        }
        Ok(Self { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Node {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(self.deeper()?)? {
            list.push(value);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format!("key {key:?} occurs twice")));
            }
            let value = map.next_value_seed(self.deeper()?)?;
            object.insert(key, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_equal_after_decoding_are_refused() {
        let error = parse(br#"{"a": 1, "\u0061": 2}"#, 100).expect_err("a duplicate");
        assert!(
            matches!(error, StrictError::Syntax { line: 1, ref what, .. } if what.contains("\"a\" occurs twice")),
            "{error}"
        );
    }

    #[test]
    fn depth_is_bounded_exactly() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse(nested(50).as_bytes(), 1000).is_ok());
        assert!(parse(nested(51).as_bytes(), 1000).is_err());
    }

    #[test]
    fn size_encoding_and_trailing_data_are_refused() {
        assert!(matches!(parse(b"[]  ", 3), Err(StrictError::TooLarge { bytes: 4, max_bytes: 3 })));
        assert!(matches!(parse(b"\"\xff\"", 9), Err(StrictError::NotUtf8 { offset: 1 })));
        assert!(parse(b"[] []", 9).is_err());
        assert!(parse(b"[1,]", 9).is_err());
    }
}
