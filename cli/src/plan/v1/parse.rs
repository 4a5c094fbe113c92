//! From bytes to a positioned value: what both syntaxes share.
//!
//! Everything here happens before anything looks at the values. Source: `semantics.md`, section 1.

use std::collections::HashSet;

use super::{json, number, yaml};
use crate::plan::problem::{Code, Problem};
use crate::plan::source::{Document, Kind, Node, Source, Span};

/// Most bytes of an input.
pub const MAX_BYTES: usize = 1 << 20;
/// Containers may nest this deep.
pub const MAX_DEPTH: usize = 50;
/// As many faults are reported; more would not be read.
const MAX_FAULTS: usize = 200;

/// How an input is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// RFC 8259.
    Json,
    /// The subset of YAML 1.2.
    Yaml,
}

impl Syntax {
    /// The syntax of a file name's ending; else JSON if the first character that is no blank is
    /// a brace, and YAML if not.
    #[must_use]
    pub fn of(extension: Option<&str>, bytes: &[u8]) -> Self {
        match extension {
            Some("json") => Self::Json,
            Some("yaml" | "yml") => Self::Yaml,
            _ if bytes.trim_ascii_start().starts_with(b"{") => Self::Json,
            _ => Self::Yaml,
        }
    }
}

/// Something in the text that is refused.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) span: Span,
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) rule: &'static str,
    pub(super) mend: String,
}

/// The faults found so far.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>, Vec<Fault>);

/// The text can't be read further; the fault is recorded.
#[derive(Debug)]
pub(super) struct Stop;

impl Faults {
    pub(super) fn add(
        &mut self,
        span: Span,
        message: impl Into<String>,
        rule: &'static str,
        mend: impl Into<String>,
    ) {
        if self.0.len() < MAX_FAULTS {
            let (message, mend) = (message.into(), mend.into());
            self.0.push(Fault { span, code: Code::Parse, message, rule, mend });
        }
    }

    /// Records what is allowed and was probably not meant.
    pub(super) fn warn(
        &mut self,
        span: Span,
        code: Code,
        message: String,
        rule: &'static str,
        mend: &str,
    ) {
        if self.1.len() < MAX_FAULTS {
            self.1.push(Fault { span, code, message, rule, mend: mend.to_owned() });
        }
    }

    /// Records the fault and gives up.
    pub(super) fn stop<T>(
        &mut self,
        span: Span,
        message: impl Into<String>,
        rule: &'static str,
        mend: impl Into<String>,
    ) -> Result<T, Stop> {
        if self.0.len() >= MAX_FAULTS {
            self.0.pop();
        }
        self.add(span, message, rule, mend);
        Err(Stop)
    }

    /// Reads a number; a refused one is recorded and read as null.
    pub(super) fn number(&mut self, text: &str, span: &Span) -> Kind {
        match number::read(text) {
            Ok(number) => return Kind::Number(number),
            Err(number::Fault::Spelling) => self.add(
                span.clone(),
                format!("{} is not how JSON spells a number", short(text)),
                RULE_NUMBER,
                "write it in plain digits, or quote it if it is text",
            ),
            Err(number::Fault::Lossy) => self.add(
                span.clone(),
                format!("{} has more digits than a number keeps", short(text)),
                RULE_EXACT,
                "write fewer digits, or quote it if it is text",
            ),
            Err(number::Fault::Range) => {
                self.add(
                    span.clone(),
                    format!("{} is too large to be kept exactly", short(text)),
                    RULE_EXACT,
                    "use a number up to 9007199254740991, or quote it if it is text",
                );
                if let Some(last) = self.0.last_mut() {
                    last.code = Code::IntegerRange;
                }
            }
        }
        Kind::Null
    }

    /// Checks a key against those of its object.
    pub(super) fn key(&mut self, seen: &mut HashSet<String>, key: &str, span: &Span) {
        if !seen.insert(key.to_owned()) {
            self.add(
                span.clone(),
                format!("the key {} is here twice", short(key)),
                "the keys of an object differ after escapes are decoded (1.4)",
                "remove one of the two, or give it the name that was meant",
            );
        }
    }

    /// Refuses NUL in a decoded string.
    pub(super) fn no_nul(&mut self, text: &str, span: &Span) {
        if text.contains('\0') {
            self.add(span.clone(), "the text holds NUL", "no string holds NUL (1.4)", "remove it");
        }
    }

    pub(super) fn too_deep<T>(&mut self, span: Span) -> Result<T, Stop> {
        self.stop(
            span,
            format!("this is nested deeper than {MAX_DEPTH} levels"),
            "objects and lists nest at most 50 deep (1.3)",
            "a plan needs five levels; check the indentation or the brackets above",
        )
    }
}

pub(super) const RULE_NUMBER: &str = "numbers are spelled as in JSON (1.5)";
const RULE_EXACT: &str = "numbers are kept exactly or refused (1.5)";

/// `text` in quotes, cut so that a message stays readable.
pub(crate) fn short(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{:?}…", &text[..at]),
        None => format!("{text:?}"),
    }
}

/// Reads bytes into a value with places.
///
/// # Errors
/// The text, as far as it is one, and everything that is refused in it, by place.
pub fn parse(bytes: &[u8], syntax: Syntax) -> Result<Document, (Source, Vec<Problem>)> {
    let whole = |message: String, rule: &str, mend: &str| {
        let problem = Problem::new(Code::Parse, "", message, rule, mend);
        (Source::new(String::new()), vec![problem])
    };
    if bytes.len() > MAX_BYTES {
        return Err(whole(
            "the input has more than 1,048,576 bytes".into(),
            "an input has at most 1,048,576 bytes (1.1)",
            "shorten the texts, or split the plan into two issues",
        ));
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            let source = Source::new(String::from_utf8_lossy(valid).into_owned());
            let mut problem = Problem::new(
                Code::Parse,
                "",
                format!("byte 0x{:02X} at offset {} is not UTF-8", rest[0], valid.len()),
                "an input is UTF-8 (1.1)",
                "save the file as UTF-8",
            );
            problem.place = Some(source.place(&(valid.len()..valid.len())));
            return Err((source, vec![problem]));
        }
    };
    let mut faults = Faults::default();
    let root = if text.starts_with('\u{feff}') {
        faults.stop(
            0..'\u{feff}'.len_utf8(),
            "the input begins with a byte order mark",
            "an input does not begin with a byte order mark (1.1)",
            "save the file as UTF-8 without a byte order mark",
        )
    } else {
        match syntax {
            Syntax::Json => json::read(text, &mut faults),
            Syntax::Yaml => yaml::read(text, &mut faults),
        }
    };
    let source = Source::new(text.to_owned());
    let Faults(refused, warned) = faults;
    match root {
        Ok(root) if refused.is_empty() => {
            let warnings = placed(warned, &source);
            Ok(Document { source, root, warnings })
        }
        _ => {
            let problems = placed(refused, &source);
            Err((source, problems))
        }
    }
}

fn placed(mut faults: Vec<Fault>, source: &Source) -> Vec<Problem> {
    faults.sort_by_key(|fault| (fault.span.start, fault.span.end));
    let problems = faults.into_iter().map(|fault| {
        let mut problem = Problem::new(fault.code, "", fault.message, fault.rule, fault.mend);
        problem.place = Some(source.place(&fault.span));
        problem
    });
    problems.collect()
}

/// A value that stands for one that was refused; the fault is recorded.
pub(super) fn refused(span: Span) -> Node {
    Node { span, kind: Kind::Null }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::*;

    #[derive(Deserialize)]
    struct Fixtures {
        inputs: Vec<Input>,
    }

    #[derive(Deserialize)]
    struct Input {
        name: String,
        json: Option<String>,
        yaml: Option<String>,
        value: Option<Value>,
        refused: Option<Refused>,
    }

    #[derive(Deserialize)]
    struct Refused {
        code: String,
        line: Option<usize>,
        column: Option<usize>,
    }

    #[test]
    fn the_shared_fixtures_have_their_outcome_in_both_syntaxes() {
        let text = include_str!("../../../../schema/versions/1/fixtures/inputs.json");
        let Fixtures { inputs } = serde_json::from_str(text).unwrap();
        let mut faults = Vec::new();
        for input in &inputs {
            for (syntax, text) in [(Syntax::Json, &input.json), (Syntax::Yaml, &input.yaml)] {
                let Some(text) = text else { continue };
                let found = parse(text.as_bytes(), syntax);
                let name = format!("{syntax:?}: {}", input.name);
                match (&found, &input.refused) {
                    (Ok(document), None) => {
                        if Some(document.root.to_value()) != input.value {
                            faults.push(format!("{name}: {:?}", document.root.to_value()));
                        }
                    }
                    (Err((_, problems)), Some(refused)) => {
                        let place = problems[0].place.unwrap();
                        let fine = problems[0].code.to_string() == refused.code
                            && refused.line.is_none_or(|line| line == place.line)
                            && refused.column.is_none_or(|column| column == place.column);
                        if !fine {
                            faults.push(format!("{name}: {problems:?}"));
                        }
                    }
                    (Ok(document), Some(_)) => {
                        faults.push(format!("{name}: accepted as {:?}", document.root.to_value()));
                    }
                    (Err((_, problems)), None) => faults.push(format!("{name}: {problems:?}")),
                }
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    fn codes(bytes: &[u8], syntax: Syntax) -> Vec<(String, Option<(usize, usize)>)> {
        match parse(bytes, syntax) {
            Ok(_) => Vec::new(),
            Err((_, problems)) => problems
                .iter()
                .map(|p| (p.message.clone(), p.place.map(|place| (place.line, place.column))))
                .collect(),
        }
    }

    #[test]
    fn fifty_levels_are_accepted_and_fifty_one_refused() {
        let json = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n)).into_bytes();
        let block = |n: usize| {
            let lines = (0..n).map(|level| format!("{}k:\n", "  ".repeat(level)));
            // The last level holds a value, not another container.
            let mut text: String = lines.collect();
            text.pop();
            text.push_str(" v\n");
            text.into_bytes()
        };
        for syntax in [Syntax::Json, Syntax::Yaml] {
            assert!(parse(&json(50), syntax).is_ok());
            let refused = codes(&json(51), syntax);
            assert!(refused[0].0.contains("deeper than 50"), "{refused:?}");
            assert_eq!(refused[0].1, Some((1, 51)));
            assert!(codes(&json(100_000), syntax)[0].0.contains("deeper than 50"));
        }
        assert!(parse(&block(50), Syntax::Yaml).is_ok());
        assert!(codes(&block(51), Syntax::Yaml)[0].0.contains("deeper than 50"));
    }

    #[test]
    fn a_mebibyte_is_accepted_and_one_byte_more_refused() {
        for (syntax, open, close) in [(Syntax::Json, "[\"", "\"]"), (Syntax::Yaml, "- \"", "\"\n")]
        {
            let fill = MAX_BYTES - open.len() - close.len();
            let text = |fill: usize| format!("{open}{}{close}", "x".repeat(fill)).into_bytes();
            assert!(parse(&text(fill), syntax).is_ok());
            assert_eq!(
                codes(&text(fill + 1), syntax),
                [("the input has more than 1,048,576 bytes".to_owned(), None)]
            );
        }
    }

    #[test]
    fn invalid_utf8_is_refused_at_its_place() {
        for syntax in [Syntax::Json, Syntax::Yaml] {
            let found = codes(b"\"a\n\xC3\xA9b\xED\xA0\x80\"", syntax);
            assert_eq!(found, [("byte 0xED at offset 6 is not UTF-8".to_owned(), Some((2, 3)))]);
        }
    }

    #[test]
    fn every_fault_of_the_subset_is_told_in_one_run() {
        let yaml = b"a: &x ~\nb: !t 0x1\na: 1\nc:\nd: [.inf, 1_0]\n";
        let lines: Vec<_> =
            codes(yaml, Syntax::Yaml).iter().map(|found| found.1.unwrap().0).collect();
        assert_eq!(lines, [1, 1, 2, 2, 3, 4, 5, 5]);
        let json = b"{\"a\": 01, \"a\": \"\\ud800\", \"b\": Nope,\n\"c\": 1e-999}";
        let lines: Vec<_> =
            codes(json, Syntax::Json).iter().map(|found| found.1.unwrap().0).collect();
        assert_eq!(lines, [1, 1, 1, 1, 2]);
    }

    #[test]
    fn places_count_characters_also_after_other_scripts() {
        let found = codes("ü: é # ☃\n'ß☃': ~\n".as_bytes(), Syntax::Yaml);
        assert_eq!(found[0].1, Some((2, 7)));
    }

    #[test]
    fn syntax_goes_by_the_ending_and_then_by_the_first_character() {
        assert_eq!(Syntax::of(Some("json"), b"a: b"), Syntax::Json);
        assert_eq!(Syntax::of(Some("yml"), b"{}"), Syntax::Yaml);
        assert_eq!(Syntax::of(None, b" \n{}"), Syntax::Json);
        assert_eq!(Syntax::of(Some("txt"), b"a: b"), Syntax::Yaml);
    }
}
