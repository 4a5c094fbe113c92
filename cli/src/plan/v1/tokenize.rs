//! A `cmd` to its arguments: never a shell. Source: `semantics.md`, section 3.

use std::fmt;
use std::ops::Range;

/// Why a command can't be split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizeError {
    /// What is refused.
    pub kind: TokenizeErrorKind,
    /// Where, in bytes of the command.
    pub span: Range<usize>,
}

/// What is refused in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenizeErrorKind {
    /// A backslash, inside or outside quotes.
    Backslash,
    /// A control character, tab and line feed included.
    Control(char),
    /// A quote that is not closed.
    Unclosed(char),
    /// A character outside quotes that means something to a shell.
    Meta(char),
    /// No argument at all.
    Empty,
    /// The first argument is empty.
    EmptyProgram,
}

impl fmt::Display for TokenizeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Backslash => f.write_str("a command has no escapes, so no backslash"),
            Self::Control(c) => {
                write!(f, "the control character U+{:04X} stands in a command", u32::from(*c))
            }
            Self::Unclosed(quote) => write!(f, "the quote {quote} is not closed"),
            Self::Meta(c) => {
                write!(f, "{c} stands outside quotes, and no shell is there to read it")
            }
            Self::Empty => f.write_str("the command is empty"),
            Self::EmptyProgram => f.write_str("the name of the program is empty"),
        }
    }
}

impl TokenizeErrorKind {
    /// What to do about it.
    #[must_use]
    pub fn mend(self) -> &'static str {
        match self {
            Self::Backslash => "put the argument in quotes; there are no escapes",
            Self::Control(_) => "remove it; arguments are separated by spaces",
            Self::Unclosed(_) => "close the quote",
            Self::Meta(_) => {
                "put it in quotes if it is part of an argument; pipes, redirections and patterns \
                 belong in a script of the project"
            }
            Self::Empty | Self::EmptyProgram => "name a program and its arguments",
        }
    }
}

/// Splits a command into its arguments; the first is the program.
///
/// # Errors
/// The first thing that is refused.
pub fn tokenize(command: &str) -> Result<Vec<String>, TokenizeError> {
    let fail = |kind, at: usize, len: usize| Err(TokenizeError { kind, span: at..at + len });
    let mut argv = Vec::new();
    let mut argument: Option<String> = None;
    let mut quote: Option<(char, usize)> = None;
    for (at, c) in command.char_indices() {
        match (quote, c) {
            (_, '\\') => return fail(TokenizeErrorKind::Backslash, at, 1),
            (_, c) if c.is_control() => {
                return fail(TokenizeErrorKind::Control(c), at, c.len_utf8());
            }
            (Some((open, _)), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some((c, at));
                argument.get_or_insert_default();
            }
            (None, ' ') => argv.extend(argument.take()),
            (
                None,
                ';' | '&' | '|' | '<' | '>' | '$' | '`' | '(' | ')' | '*' | '?' | '[' | ']' | '{'
                | '}' | '!' | '#' | '~',
            ) => return fail(TokenizeErrorKind::Meta(c), at, 1),
            (_, c) => argument.get_or_insert_default().push(c),
        }
    }
    if let Some((open, at)) = quote {
        return fail(TokenizeErrorKind::Unclosed(open), at, 1);
    }
    argv.extend(argument);
    match argv.first() {
        None => fail(TokenizeErrorKind::Empty, 0, command.len()),
        Some(program) if program.is_empty() => {
            fail(TokenizeErrorKind::EmptyProgram, 0, command.len())
        }
        Some(_) => Ok(argv),
    }
}

/// One command line that [`tokenize`] splits into `argv`, when there is one.
///
/// `None` for arguments that no command line can spell: with a backslash, a control character, or
/// both kinds of quotes touching in a way that needs more than quoting parts.
#[must_use]
pub fn spell(argv: &[String]) -> Option<String> {
    let spelled: Vec<_> = argv.iter().map(|argument| spell_one(argument)).collect();
    let command = spelled.join(" ");
    (tokenize(&command).as_deref() == Ok(argv)).then_some(command)
}

fn spell_one(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=:,@%+^".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    // Parts in single quotes; single quotes themselves in double quotes.
    let mut out = String::new();
    for (n, part) in argument.split('\'').enumerate() {
        if n > 0 {
            out.push_str("\"'\"");
        }
        if !part.is_empty() || argument.is_empty() {
            out.push('\'');
            out.push_str(part);
            out.push('\'');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Fixtures {
        accepted: Vec<Accepted>,
        refused: Vec<Refused>,
    }

    #[derive(Deserialize)]
    struct Accepted {
        command: String,
        argv: Vec<String>,
    }

    #[derive(Deserialize)]
    struct Refused {
        command: String,
        why: String,
    }

    fn fixtures() -> Fixtures {
        let text = include_str!("../../../../schema/versions/1/fixtures/commands.json");
        serde_json::from_str(text).unwrap()
    }

    fn word(kind: TokenizeErrorKind) -> &'static str {
        match kind {
            TokenizeErrorKind::Backslash => "backslash",
            TokenizeErrorKind::Control(_) => "control",
            TokenizeErrorKind::Unclosed(_) => "unclosed",
            TokenizeErrorKind::Meta(_) => "meta",
            TokenizeErrorKind::Empty => "empty",
            TokenizeErrorKind::EmptyProgram => "empty-program",
        }
    }

    #[test]
    fn the_shared_fixtures_have_their_outcome() {
        let Fixtures { accepted, refused } = fixtures();
        for Accepted { command, argv } in accepted {
            assert_eq!(tokenize(&command).as_ref(), Ok(&argv), "{command:?}");
        }
        for Refused { command, why } in refused {
            let error = tokenize(&command).expect_err(&command);
            assert_eq!(word(error.kind), why, "{command:?}");
            assert!(command.get(error.span).is_some(), "{command:?}");
        }
    }

    #[test]
    fn what_is_spelled_is_split_into_the_same_arguments() {
        for Accepted { argv, .. } in fixtures().accepted {
            let spelled = spell(&argv).expect("can be spelled");
            assert_eq!(tokenize(&spelled), Ok(argv));
        }
        let mixed =
            vec!["it's".to_owned(), "\"".into(), "a'b\"c".into(), String::new(), "''".into()];
        assert_eq!(tokenize(&spell(&mixed).expect("can be spelled")), Ok(mixed));
        assert_eq!(spell(&["a\\b".to_owned()]), None);
        assert_eq!(spell(&["a\nb".to_owned()]), None);
        assert_eq!(spell(&[]), None);
    }
}
