//! The subset of YAML 1.2 that spells what JSON can, with places.
//!
//! Works on the events of a YAML 1.2 parser, before anything is resolved: anchors, tags and the
//! spelling of plain scalars are still there to be refused. What the parser lets through and the
//! subset does not (other directives, duplicate keys, control characters, a second document) is
//! refused here. Source: `semantics.md`, 1.6.

use std::borrow::Cow;
use std::collections::HashSet;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};

use super::number;
use super::parse::{Faults, MAX_DEPTH, RULE_NUMBER, Stop, refused, short};
use crate::plan::problem::Code;
use crate::plan::source::{Kind, Member, Node, Span};

const RULE: &str = "the input is one YAML 1.2 document (1.2)";
const RULE_SUBSET: &str = "the YAML is of the allowed subset (1.6)";
const RULE_KEYS: &str = "the keys of an object are strings (1.4)";
const MEND_QUOTE: &str = "put it in quotes if it is text";

pub(super) fn read(text: &str, faults: &mut Faults) -> Result<Node, Stop> {
    let hidden = no_control(text, faults);
    // A line end is one character to YAML (5.4); of some CRLF the parser loses one.
    let (lines, offsets) = with_line_feeds(text);
    let mut builder = Builder { text, faults, frames: Vec::new(), root: None, quoted: Vec::new() };
    let mut n_documents = 0;
    for event in Parser::new_from_str(&lines) {
        let (event, span) = match event {
            Ok((event, span)) => (event, offsets.span(span)),
            Err(error) => return builder.broken(&error, offsets.byte(error.marker().index())),
        };
        match event {
            Event::DocumentStart(_) => {
                n_documents += 1;
                if n_documents > 1 {
                    return builder.faults.stop(
                        span,
                        "a second document begins here",
                        RULE,
                        "remove \"---\" and what follows, or put it into a file of its own",
                    );
                }
                directives(&text[..span.start], builder.faults);
            }
            Event::Alias(_) => builder.alias(span),
            Event::Scalar(value, style, anchor, tag) => {
                builder.properties(anchor, tag.is_some(), &span);
                builder.scalar(&value, style, span);
            }
            Event::SequenceStart(anchor, tag) => {
                builder.properties(anchor, tag.is_some(), &span);
                builder.open(span, Vec::new().into())?;
            }
            Event::MappingStart(anchor, tag) => {
                builder.properties(anchor, tag.is_some(), &span);
                builder.open(
                    span,
                    Open::Map { members: Vec::new(), seen: HashSet::new(), key: None },
                )?;
            }
            Event::SequenceEnd | Event::MappingEnd => builder.close(span),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }
    let Builder { root, quoted, faults, .. } = builder;
    hidden.report(&quoted, text, faults);
    match root {
        Some(root) => Ok(root),
        None => faults.stop(
            0..0,
            "there is no document",
            "an empty document is no plan (1.6)",
            "write a plan; `schema/plan-guide.md` shows how",
        ),
    }
}

/// Places of DEL and C1 controls, which are allowed inside quotes only.
struct Hidden(Vec<(usize, char)>);

/// Refuses control characters that may stand nowhere.
fn no_control(text: &str, faults: &mut Faults) -> Hidden {
    let mut hidden = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '\t' | '\n' | '\r' | '\u{85}' => {}
            '\0'..'\u{20}' => control(at, c, faults),
            '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => hidden.push((at, c)),
            _ => {}
        }
    }
    Hidden(hidden)
}

impl Hidden {
    /// Refuses those outside the spans of quoted scalars, which are in order.
    fn report(&self, quoted: &[Span], text: &str, faults: &mut Faults) {
        for &(at, c) in &self.0 {
            let before = quoted.partition_point(|span| span.start <= at);
            let inside = before > 0 && quoted[before - 1].contains(&at);
            if !inside && text.is_char_boundary(at) {
                control(at, c, faults);
            }
        }
    }
}

fn control(at: usize, c: char, faults: &mut Faults) {
    faults.add(
        at..at + c.len_utf8(),
        format!("the control character U+{:04X} stands here", u32::from(c)),
        RULE_SUBSET,
        "remove it, or write it as an escape inside double quotes",
    );
}

fn tab_after_colon(faults: &mut Faults, at: usize) {
    faults.add(
        at..at + 1,
        "a tab stands after the colon of a key",
        "no tab follows the colon of a key (1.6)",
        "put a space there",
    );
}

/// Refuses every directive but `%YAML 1.2` in what stands before the document.
fn directives(prefix: &str, faults: &mut Faults) {
    let mut at = 0;
    for line in prefix.split_inclusive('\n') {
        let span = at..at + line.trim_end().len();
        at += line.len();
        if !line.starts_with('%') {
            continue;
        }
        let words: Vec<_> =
            line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        if words != ["%YAML", "1.2"] {
            faults.add(
                span,
                format!("the directive {} is not allowed", short(line.trim_end())),
                "the only directive is %YAML 1.2 (1.6)",
                "remove the line",
            );
        }
    }
}

/// The text with LF for each CRLF and CR, and where its characters stand in `text`.
fn with_line_feeds(text: &str) -> (Cow<'_, str>, Offsets) {
    if !text.contains('\r') && text.is_ascii() {
        return (Cow::Borrowed(text), Offsets::Ascii(text.len()));
    }
    let mut lines = String::with_capacity(text.len());
    let mut bytes = Vec::with_capacity(text.len() + 1);
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\r' {
            chars.next_if(|(_, next)| *next == '\n');
        }
        lines.push(if c == '\r' { '\n' } else { c });
        bytes.push(at);
    }
    bytes.push(text.len());
    // Inputs have at most a mebibyte.
    let bytes = bytes.into_iter().filter_map(|at| u32::try_from(at).ok()).collect();
    (Cow::Owned(lines), Offsets::Bytes(bytes))
}

/// From the parser's positions, in characters, to bytes.
enum Offsets {
    /// Every character is one byte.
    Ascii(usize),
    /// The byte of each character, and the end.
    Bytes(Vec<u32>),
}

impl Offsets {
    fn byte(&self, index: usize) -> usize {
        match self {
            Self::Ascii(len) => index.min(*len),
            Self::Bytes(bytes) => bytes.get(index).or(bytes.last()).map_or(0, |at| *at as usize),
        }
    }

    fn span(&self, span: saphyr_parser::Span) -> Span {
        let start = self.byte(span.start.index());
        start..self.byte(span.end.index()).max(start)
    }
}

struct Builder<'a> {
    text: &'a str,
    faults: &'a mut Faults,
    frames: Vec<Frame>,
    root: Option<Node>,
    /// Where quoted scalars stand, in order.
    quoted: Vec<Span>,
}

/// A container that is not closed yet.
struct Frame {
    span: Span,
    open: Open,
}

enum Open {
    List(Vec<Node>),
    Map { members: Vec<Member>, seen: HashSet<String>, key: Option<(String, Span)> },
}

impl From<Vec<Node>> for Open {
    fn from(nodes: Vec<Node>) -> Self {
        Self::List(nodes)
    }
}

impl Builder<'_> {
    fn in_key(&self) -> bool {
        matches!(self.frames.last(), Some(Frame { open: Open::Map { key: None, .. }, .. }))
    }

    /// The value, or the key that it is.
    fn add(&mut self, node: Node) {
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.span.end = frame.span.end.max(node.span.end);
        match &mut frame.open {
            Open::List(nodes) => nodes.push(node),
            Open::Map { members, key, .. } => match key.take() {
                Some((key, key_span)) => members.push(Member { key, key_span, node }),
                // A key that was refused: what follows is read as its value.
                None => *key = Some((String::new(), node.span)),
            },
        }
    }

    fn properties(&mut self, anchor: usize, has_tag: bool, span: &Span) {
        if anchor > 0 {
            self.faults.add(
                span.clone(),
                "an anchor (&) stands here",
                "there are no anchors and aliases (1.6)",
                "remove it, or put the text in quotes if & belongs to it",
            );
        }
        if has_tag {
            self.faults.add(
                span.clone(),
                "a tag (!) stands here",
                "there are no tags (1.6)",
                "remove it, or put the text in quotes if ! belongs to it",
            );
        }
    }

    fn alias(&mut self, span: Span) {
        self.faults.add(
            span.clone(),
            "an alias (*) stands here",
            "there are no anchors and aliases (1.6)",
            "write the value itself, or put the text in quotes if * belongs to it",
        );
        self.add(refused(span));
    }

    fn scalar(&mut self, value: &str, style: ScalarStyle, span: Span) {
        if matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted) {
            self.quoted.push(span.clone());
        }
        self.faults.no_nul(value, &span);
        let plain = if style == ScalarStyle::Plain { Plain::of(value) } else { Plain::Text };
        if self.in_key() {
            self.key(value, &plain, span);
            return;
        }
        if style == ScalarStyle::Plain {
            self.warn_of_cut(value, &span);
        }
        let kind = match plain {
            Plain::Text => Kind::Text(value.to_owned()),
            Plain::Null => Kind::Null,
            Plain::Bool(value) => Kind::Bool(value),
            Plain::Number => self.faults.number(value, &span),
            Plain::Empty => {
                let mut span = self.key_span().unwrap_or_else(|| span.clone());
                // An empty entry is placed behind its dash.
                if span.is_empty() && self.text[..span.start].ends_with('-') {
                    span.start -= 1;
                }
                let rest = self.text[span.end..].lines().next().unwrap_or_default();
                let is_comment = rest.trim_start_matches([':', ' ', '\t']).starts_with('#');
                self.faults.add(
                    span,
                    "nothing stands where a value should",
                    "there are no empty values (1.6)",
                    if is_comment {
                        "a # begins a comment: leave it out before a number, or put the text in quotes"
                    } else {
                        "write null, [] or \"\", or the value that was meant"
                    },
                );
                Kind::Null
            }
            Plain::Refused { rule, mend } => {
                self.faults.add(
                    span.clone(),
                    format!("{} could be read as something other than text", short(value)),
                    rule,
                    mend,
                );
                Kind::Null
            }
        };
        self.add(Node { span, kind });
    }

    /// Warns of `title: Mend #412`, which is the text `Mend` and a comment.
    ///
    /// Of other comments only behind several words, where the rest may have been meant as text.
    fn warn_of_cut(&mut self, value: &str, span: &Span) {
        let after = &self.text[span.end..];
        let comment = after.trim_start_matches([' ', '\t']).strip_prefix('#');
        let may_be_text = |comment: &str| {
            comment.starts_with(|c: char| c.is_ascii_digit()) || value.contains(' ')
        };
        if comment.is_some_and(may_be_text) {
            self.faults.warn(
                span.clone(),
                Code::CutText,
                format!(
                    "the text ends with {}; what follows is a comment",
                    short(last_word(value))
                ),
                "a # after a space begins a comment (7)",
                "put the whole text in quotes if the rest belongs to it",
            );
        }
    }

    /// Where the key of the value that is read now stands.
    fn key_span(&self) -> Option<Span> {
        match &self.frames.last()?.open {
            Open::Map { key: Some((_, span)), .. } => Some(span.clone()),
            Open::Map { .. } | Open::List(_) => None,
        }
    }

    fn key(&mut self, text: &str, plain: &Plain, span: Span) {
        match plain {
            Plain::Text if text == "<<" && self.text[span.clone()].starts_with("<<") => {
                self.faults.add(
                    span.clone(),
                    "a merge key (<<) stands here",
                    "there are no merge keys (1.6)",
                    "write the fields themselves",
                );
            }
            Plain::Text => {}
            Plain::Empty => self.faults.add(
                span.clone(),
                "nothing stands where a key should",
                RULE_KEYS,
                "write the key before the colon",
            ),
            Plain::Null | Plain::Bool(_) | Plain::Number | Plain::Refused { .. } => {
                self.faults.add(
                    span.clone(),
                    format!("the key {} is not text", short(text)),
                    RULE_KEYS,
                    "put the key in quotes",
                );
            }
        }
        let Some(Frame { open: Open::Map { seen, key, .. }, span: around }) =
            self.frames.last_mut()
        else {
            return;
        };
        around.end = around.end.max(span.end);
        self.faults.key(seen, text, &span);
        let after = self.text[span.end..].trim_start_matches([' ', '\t']);
        if after.starts_with(":\t") {
            let at = self.text.len() - after.len() + 1;
            tab_after_colon(self.faults, at);
        }
        *key = Some((text.to_owned(), span));
    }

    fn open(&mut self, span: Span, open: Open) -> Result<(), Stop> {
        if self.frames.len() == MAX_DEPTH {
            return self.faults.too_deep(span);
        }
        if self.in_key() {
            self.faults.add(
                span.clone(),
                "a list or an object stands where a key should",
                RULE_KEYS,
                "use text as the key; text that begins with [ or { needs quotes",
            );
        }
        self.frames.push(Frame { span, open });
        Ok(())
    }

    fn close(&mut self, end: Span) {
        let Some(Frame { mut span, open }) = self.frames.pop() else {
            return;
        };
        // Flow collections end with a bracket; block ones where their last value does.
        if self.text[end.clone()].starts_with([']', '}']) {
            span.end = span.end.max(end.end);
        }
        let kind = match open {
            Open::List(nodes) => Kind::List(nodes),
            Open::Map { members, .. } => Kind::Object(members),
        };
        self.add(Node { span, kind });
    }

    /// The parser's refusal, with what most likely led to it.
    fn broken(&mut self, error: &ScanError, at: usize) -> Result<Node, Stop> {
        let info = error.info();
        let line_start = self.text[..self.text.floor_char_boundary(at)]
            .rfind('\n')
            .map_or(0, |line_end| line_end + 1);
        let line = self.text[line_start..].lines().next().unwrap_or_default();
        if info.contains("recursion limit") {
            return self.faults.too_deep(at..at);
        }
        if info.contains("unknown anchor") {
            return self.faults.stop(
                at..at,
                "an alias (*) stands here",
                "there are no anchors and aliases (1.6)",
                "write the value itself, or put the text in quotes if * belongs to it",
            );
        }
        if info.contains("':' must be followed by a valid YAML whitespace") {
            let blanks = self.text[..at].trim_end_matches([' ', '\t']);
            tab_after_colon(self.faults, blanks.len());
            return Err(Stop);
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let mend = if indent.contains('\t') || info.contains("tab") {
            "indent with spaces, never with tabs"
        } else if info.contains("mapping values are not allowed") {
            "put a text with \": \" inside in quotes"
        } else if info.contains("escape") {
            "write a backslash as \\\\ inside double quotes, or use single quotes"
        } else if info.contains("cannot start any token")
            || line.contains(['&', '*', '!', '%', '@', '`'])
        {
            "put a text that begins with one of & * ! % @ ` [ { in quotes"
        } else {
            "check the indentation and the quotes of this line and the one above"
        };
        self.faults.stop(at..at, format!("this is not YAML: {info}"), RULE, mend)
    }
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

/// What a plain scalar spells.
#[derive(Debug, PartialEq, Eq)]
enum Plain {
    Text,
    Null,
    Bool(bool),
    /// A JSON number.
    Number,
    Empty,
    /// Something that other readers of YAML take for a value that is no string.
    Refused {
        rule: &'static str,
        mend: &'static str,
    },
}

impl Plain {
    fn of(text: &str) -> Self {
        const RULE_LITERALS: &str = "the only literals are true, false and null (1.6)";
        match text {
            "" => Self::Empty,
            "null" => Self::Null,
            "true" => Self::Bool(true),
            "false" => Self::Bool(false),
            "~" | "Null" | "NULL" => {
                Self::Refused { rule: RULE_LITERALS, mend: "write null, or put text in quotes" }
            }
            "True" | "TRUE" | "False" | "FALSE" => Self::Refused {
                rule: RULE_LITERALS,
                mend: "write true or false, or put text in quotes",
            },
            _ if number::is_json(text) => Self::Number,
            _ if looks_numeric(text) => Self::Refused { rule: RULE_NUMBER, mend: MEND_QUOTE },
            _ => Self::Text,
        }
    }
}

/// Whether YAML 1.1 or the core schema of YAML 1.2 reads a number from this.
fn looks_numeric(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(rest, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let starts = rest.strip_prefix('.').unwrap_or(rest).starts_with(|c: char| c.is_ascii_digit());
    if !starts {
        return false;
    }
    let rest = rest.replace('_', "").to_ascii_lowercase();
    let all =
        |digits: &str, is: fn(&u8) -> bool| !digits.is_empty() && digits.bytes().all(|b| is(&b));
    if let Some(digits) = rest.strip_prefix("0x") {
        return all(digits, u8::is_ascii_hexdigit);
    }
    if let Some(digits) = rest.strip_prefix("0o") {
        return all(digits, |b| matches!(b, b'0'..=b'7'));
    }
    if let Some(digits) = rest.strip_prefix("0b") {
        return all(digits, |b| matches!(b, b'0' | b'1'));
    }
    let (mantissa, exponent) = rest.split_once('e').map_or((&*rest, None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let exponent = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    digits(whole) && digits(fraction) && exponent && !(whole.is_empty() && fraction.is_empty())
}

/// Whether some reader of YAML takes this unquoted text for something other than a string.
pub(crate) fn is_a_word_of_other_readers(text: &str) -> bool {
    let folded = text.to_ascii_lowercase();
    !matches!(Plain::of(text), Plain::Text)
        || matches!(
            folded.as_str(),
            "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null" | "inf" | "nan"
        )
}
