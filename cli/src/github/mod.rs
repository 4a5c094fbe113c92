//! What is decided about what GitHub answers. Rules only: plain data in, plain data out; the
//! requests are made in `forge::gh`.

pub mod checks;
pub mod issues;
pub mod mention;
pub mod pull;
pub mod region;
pub mod rules;
pub mod text;
pub mod way;

/// Times in files, as RFC 3339.
pub(crate) mod time {
    use jiff::Timestamp;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Timestamp, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}
