//! JSON as RFC 8259 has it, with places.
//!
//! A reader of our own, because duplicate keys, spellings of numbers and places are gone once a
//! value is built. It goes on after a fault where the rest can still be read.

use std::collections::HashSet;

use super::parse::{Faults, MAX_DEPTH, Stop, short};
use crate::plan::source::{Kind, Member, Node, Span};

const RULE: &str = "the input is one JSON text (RFC 8259; 1.2)";
const RULE_STRING: &str = "strings are spelled as in RFC 8259 (1.2)";

pub(super) fn read(text: &str, faults: &mut Faults) -> Result<Node, Stop> {
    let mut reader = Reader { text, at: 0, faults };
    reader.blank()?;
    let root = reader.value(0)?;
    reader.blank()?;
    if reader.at < text.len() {
        let span = reader.here();
        return reader.faults.stop(
            span,
            "something follows the end of the JSON text",
            RULE,
            "remove what follows, or check the brackets above",
        );
    }
    Ok(root)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    faults: &'a mut Faults,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The span of the next character.
    fn here(&self) -> Span {
        self.at..self.at + self.rest().chars().next().map_or(0, char::len_utf8)
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn blank(&mut self) -> Result<(), Stop> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
        let rest = self.rest();
        if rest.starts_with("//") || rest.starts_with("/*") || rest.starts_with('#') {
            let span = self.here();
            return self.faults.stop(
                span,
                "JSON has no comments",
                RULE,
                "remove the comment, or write the plan in YAML",
            );
        }
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Node, Stop> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'\'') => {
                let span = self.here();
                return self.faults.stop(span, "JSON has no single quotes", RULE, "use \"");
            }
            Some(b) if b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.') => self.word(),
            Some(_) => {
                let found = short(&self.rest()[..self.here().len()]);
                let span = self.here();
                return self.faults.stop(
                    span,
                    format!("{found} stands where a value should"),
                    RULE,
                    "write a value: text in \"quotes\", a number, [], {}, true, false or null",
                );
            }
            None => return self.ended("a value"),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn ended<T>(&mut self, wanted: &str) -> Result<T, Stop> {
        let at = self.text.trim_end().len();
        self.faults.stop(
            at..at,
            format!("the input ends where {wanted} should follow"),
            RULE,
            "close every bracket and quote",
        )
    }

    /// A literal or a number: everything up to the next delimiter.
    fn word(&mut self) -> Kind {
        let start = self.at;
        let rest = self.rest();
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
        let end = rest.find(is_end).unwrap_or(rest.len());
        let word = rest[..end].to_owned();
        self.at += end;
        let span = start..self.at;
        match word.as_str() {
            "null" => return Kind::Null,
            "true" => return Kind::Bool(true),
            "false" => return Kind::Bool(false),
            _ => {}
        }
        if word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
            return self.faults.number(&word, &span);
        }
        self.faults.add(
            span,
            format!("{} is no JSON value", short(&word)),
            RULE,
            "put text in \"quotes\"; the only bare words are true, false and null",
        );
        Kind::Null
    }

    fn list(&mut self, depth: usize) -> Result<Kind, Stop> {
        if depth == MAX_DEPTH {
            let span = self.here();
            return self.faults.too_deep(span);
        }
        self.at += 1;
        let mut nodes = Vec::new();
        self.blank()?;
        if self.take(b']') {
            return Ok(Kind::List(nodes));
        }
        loop {
            nodes.push(self.value(depth + 1)?);
            self.blank()?;
            if self.take(b']') {
                return Ok(Kind::List(nodes));
            }
            self.comma("]")?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Stop> {
        if depth == MAX_DEPTH {
            let span = self.here();
            return self.faults.too_deep(span);
        }
        self.at += 1;
        let mut members = Vec::new();
        let mut seen = HashSet::new();
        self.blank()?;
        if self.take(b'}') {
            return Ok(Kind::Object(members));
        }
        loop {
            let start = self.at;
            if self.peek() != Some(b'"') {
                if self.peek().is_none() {
                    return self.ended("a key");
                }
                let span = self.here();
                return self.faults.stop(
                    span,
                    "a key has to be a string in double quotes",
                    "the keys of an object are strings (1.4)",
                    "put the key in \"quotes\"",
                );
            }
            let key = self.string()?;
            let key_span = start..self.at;
            self.faults.key(&mut seen, &key, &key_span);
            self.blank()?;
            if !self.take(b':') {
                if self.peek().is_none() {
                    return self.ended("\":\"");
                }
                let span = self.here();
                let message = format!("\":\" is missing after the key {}", short(&key));
                return self.faults.stop(span, message, RULE, "write \"key\": value");
            }
            self.blank()?;
            let node = self.value(depth + 1)?;
            members.push(Member { key, key_span, node });
            self.blank()?;
            if self.take(b'}') {
                return Ok(Kind::Object(members));
            }
            self.comma("}")?;
        }
    }

    /// A comma with something after it.
    fn comma(&mut self, close: &str) -> Result<(), Stop> {
        let comma = self.here();
        if !self.take(b',') {
            if self.peek().is_none() {
                return self.ended(&format!("\",\" or \"{close}\""));
            }
            return self.faults.stop(
                comma,
                format!("\",\" or \"{close}\" is missing here"),
                RULE,
                "separate entries by commas and close every bracket",
            );
        }
        self.blank()?;
        if self.rest().starts_with(close) {
            return self.faults.stop(
                comma,
                format!("a comma stands before \"{close}\""),
                RULE,
                "remove the comma after the last entry",
            );
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String, Stop> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ').unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    self.faults.no_nul(&out, &(start..self.at));
                    return Ok(out);
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(b'\n') => {
                    // Most likely the closing quote is missing; the rest would only confuse.
                    return self.faults.stop(
                        start..self.at,
                        "a string does not end on its line",
                        RULE_STRING,
                        "close the quote, or write a line feed as \\n",
                    );
                }
                Some(control) => {
                    let span = self.here();
                    self.faults.add(
                        span,
                        format!("the control character U+{control:04X} stands in a string"),
                        RULE_STRING,
                        "remove it, or write it as an escape such as \\t",
                    );
                    self.at += 1;
                }
                None => return self.ended("a closing quote"),
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), Stop> {
        let start = self.at;
        self.at += 1;
        let Some(byte) = self.peek() else {
            return self.ended("an escape");
        };
        self.at += self.here().len();
        let plain = match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let c = self.unicode(start);
                out.push(c);
                return Ok(());
            }
            _ => {
                let span = start..self.at;
                let message = format!("{} is no escape", short(&self.text[span.clone()]));
                self.faults.add(span, message, RULE_STRING, "write a backslash as \\\\");
                return Ok(());
            }
        };
        out.push(plain);
        Ok(())
    }

    /// What follows `\u`, with the second half of a pair.
    fn unicode(&mut self, start: usize) -> char {
        let first = self.hex4();
        let found = match first {
            Some(unit @ 0xD800..=0xDBFF) => {
                let back = self.at;
                let second = if self.rest().starts_with("\\u") {
                    self.at += 2;
                    self.hex4()
                } else {
                    None
                };
                if let Some(low @ 0xDC00..=0xDFFF) = second {
                    char::from_u32(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
                } else {
                    self.at = back;
                    None
                }
            }
            Some(unit) => char::from_u32(unit),
            None => {
                let span = start..self.at;
                self.faults.add(
                    span,
                    "four hexadecimal digits have to follow \\u",
                    RULE_STRING,
                    "write the character itself",
                );
                return char::REPLACEMENT_CHARACTER;
            }
        };
        found.unwrap_or_else(|| {
            self.faults.add(
                start..self.at,
                "this escape is half of a surrogate pair",
                "no escape names half of a surrogate pair (1.4)",
                "write the character itself",
            );
            char::REPLACEMENT_CHARACTER
        })
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.rest().as_bytes().get(..4)?;
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let value = digits.iter().fold(0, |value, digit| {
            (value << 4) + char::from(*digit).to_digit(16).unwrap_or_default()
        });
        self.at += 4;
        Some(value)
    }
}
