//! The text of an input and its syntax tree, so that every problem can name its place.

use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::problem::Problem;

/// Bytes of the text, from and to.
pub type Span = Range<usize>;

/// A place for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Counts from 1.
    pub line: usize,
    /// In characters, counts from 1.
    pub column: usize,
    /// How many characters of that line are meant, at least 1.
    pub width: usize,
}

/// Whether the key of a member is meant or its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum At {
    /// The value.
    #[default]
    Value,
    /// The key.
    Key,
}

/// A text that knows its lines. A line ends after LF or at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Takes the text.
    #[must_use]
    pub fn new(text: String) -> Self {
        let mut line_starts = vec![0];
        line_starts
            .extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(n, _)| n + 1));
        Self { text, line_starts }
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line of that number, from 1, without its end; empty past the last.
    #[must_use]
    pub fn line(&self, number: usize) -> &str {
        let Some(start) = number.checked_sub(1).and_then(|n| self.line_starts.get(n)) else {
            return "";
        };
        let end = self.line_starts.get(number).copied().unwrap_or(self.text.len());
        let line = &self.text[*start..end];
        let line = line.strip_suffix('\n').unwrap_or(line);
        line.strip_suffix('\r').unwrap_or(line)
    }

    /// Where `span` begins, and how far it reaches on that line.
    ///
    /// A span past the end, or inside a character, is moved to the nearest place before.
    #[must_use]
    pub fn place(&self, span: &Span) -> Place {
        let start = self.text.floor_char_boundary(span.start);
        let end = self.text.floor_char_boundary(span.end).max(start);
        let line = self.line_starts.partition_point(|&at| at <= start);
        let line_start = self.line_starts[line - 1];
        let line_end = line_start + self.line(line).len();
        let width = if start < line_end { &self.text[start..end.min(line_end)] } else { "" };
        Place {
            line,
            column: self.text[line_start..start].chars().count() + 1,
            width: width.chars().count().max(1),
        }
    }
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// From its first to its last byte.
    pub span: Span,
    /// The value.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that is kept exactly.
    Number(Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object, in the order of the text; keys are unique.
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The key, decoded.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

impl Node {
    /// The value without places.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Number(number) => Value::Number(number.clone()),
            Kind::Text(text) => Value::String(text.clone()),
            Kind::List(nodes) => nodes.iter().map(Self::to_value).collect(),
            Kind::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|member| (member.key.clone(), member.node.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

/// A text and the value that it spells.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The text.
    pub source: Source,
    /// The value.
    pub root: Node,
    /// What is allowed and was probably not meant, by place.
    pub warnings: Vec<Problem>,
}

impl Document {
    /// The place of the value at `pointer`, or of the nearest value around it.
    ///
    /// Containers are shown by their first line. `None` for something that is no pointer.
    #[must_use]
    pub fn place(&self, pointer: &str, at: At) -> Option<Place> {
        let mut node = &self.root;
        let mut key_span: Option<&Span> = None;
        let mut is_whole = true;
        for part in pointer.split('/').skip(1) {
            let part = part.replace("~1", "/").replace("~0", "~");
            let next = match &node.kind {
                Kind::Object(members) => members
                    .iter()
                    .find(|member| member.key == part)
                    .map(|member| (&member.node, Some(&member.key_span))),
                Kind::List(nodes) => {
                    part.parse::<usize>().ok().and_then(|n| nodes.get(n)).map(|node| (node, None))
                }
                Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => None,
            };
            let Some(next) = next else {
                is_whole = false;
                break;
            };
            (node, key_span) = next;
        }
        let is_container = matches!(node.kind, Kind::List(_) | Kind::Object(_));
        let span = match (at, key_span) {
            (At::Key, Some(span)) if is_whole => span,
            // The key says more than the first character of what it holds.
            (_, Some(span)) if is_container => span,
            _ => &node.span,
        };
        Some(self.source.place(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let source = Source::new("a\nüb: c\r\n".into());
        let place = |span: Span| {
            let place = source.place(&span);
            (place.line, place.column, place.width)
        };
        assert_eq!(place(0..1), (1, 1, 1));
        assert_eq!(place(2..5), (2, 1, 2));
        assert_eq!(place(7..99), (2, 5, 1));
        assert_eq!(place(99..99), (3, 1, 1));
        assert_eq!(source.line(2), "üb: c");
        assert_eq!(source.line(3), "");
    }
}
