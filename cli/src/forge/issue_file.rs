//! An issue of the local forge: a Markdown file.
//!
//! Its title is the first heading. Its number is the `number` of the front matter, or the digits
//! that the file's name begins with, alone or after `issue-`: `412-retry.md`, `issue-412.md`.
//! `state: closed` in the front matter says that nothing is left to do.

use std::path::Path;

use serde::Deserialize;

use crate::stage::{self, FileError};

/// An issue's file may have this many bytes.
const MAX_BYTES: usize = 256 << 10;

/// What an issue's file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueFile {
    /// Its number, where the file gives one.
    pub number: Option<u64>,
    /// The first heading; without one the first line of text.
    pub title: String,
    /// The Markdown after the front matter, the heading included.
    pub body: String,
    /// Whether the file says that the issue is closed.
    pub is_closed: bool,
}

/// Why an issue's file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum IssueFileError {
    /// The file can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is too large, not UTF-8, or says nothing.
    #[error("{file} is {what}")]
    Form {
        /// The path.
        file: String,
        /// What it is.
        what: &'static str,
    },
    /// The front matter is wrong.
    #[error("front matter of {file}: {what}")]
    FrontMatter {
        /// The path.
        file: String,
        /// What is wrong, with its place.
        what: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FrontMatter {
    number: Option<u64>,
    state: Option<State>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Open,
    Closed,
}

impl IssueFile {
    /// Reads an issue from a file.
    ///
    /// # Errors
    /// [`IssueFileError`] naming the file.
    pub fn read(path: &Path) -> Result<Self, IssueFileError> {
        let bytes = stage::read_start(path, MAX_BYTES + 1)?;
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        Self::parse(&path.display().to_string(), name, &bytes)
    }

    /// Reads an issue from the bytes of a file. `file`: how messages name it; `stem`: its name
    /// without ending.
    ///
    /// # Errors
    /// [`IssueFileError`] naming the file.
    pub fn parse(file: &str, stem: &str, bytes: &[u8]) -> Result<Self, IssueFileError> {
        let form = |what| IssueFileError::Form { file: file.to_owned(), what };
        if bytes.len() > MAX_BYTES {
            return Err(form("larger than 256 KiB"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| form("not UTF-8"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let (front, body) = split(&text);
        let front = match front {
            None => FrontMatter::default(),
            Some(front) => serde_yaml_ng::from_str::<Option<FrontMatter>>(front)
                .map_err(|error| IssueFileError::FrontMatter {
                    file: file.to_owned(),
                    what: error.to_string(),
                })?
                .unwrap_or_default(),
        };
        if front.number == Some(0) {
            let what = "number: at least 1".to_owned();
            return Err(IssueFileError::FrontMatter { file: file.to_owned(), what });
        }
        let title = title(body).ok_or_else(|| form("without a title"))?;
        Ok(Self {
            number: front.number.or_else(|| number_of(stem)),
            title,
            body: body.to_owned(),
            is_closed: front.state == Some(State::Closed),
        })
    }
}

fn split(text: &str) -> (Option<&str>, &str) {
    let Some(rest) = text.strip_prefix("---\n") else { return (None, text) };
    if let Some(body) = rest.strip_prefix("---\n") {
        return (Some(""), body);
    }
    rest.split_once("\n---\n").map_or((None, text), |(front, body)| (Some(front), body))
}

fn title(body: &str) -> Option<String> {
    let mut in_fence = false;
    let mut first = None;
    for line in body.lines().map(str::trim) {
        if line.starts_with("```") || line.starts_with("~~~") {
            in_fence = !in_fence;
            continue;
        }
        if in_fence || line.is_empty() {
            continue;
        }
        let text = line.trim_start_matches('#');
        let n_marks = line.len() - text.len();
        let heading = text.trim().trim_end_matches('#').trim_end();
        if (1..=6).contains(&n_marks) && text.starts_with([' ', '\t']) && !heading.is_empty() {
            return Some(cut(heading));
        }
        first.get_or_insert_with(|| cut(line));
    }
    first
}

/// A title of at most 200 characters.
fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

fn number_of(stem: &str) -> Option<u64> {
    let stem = stem.strip_prefix("issue-").unwrap_or(stem);
    let n_digits = stem.bytes().take_while(u8::is_ascii_digit).count();
    let ends_well = stem[n_digits..].is_empty() || stem[n_digits..].starts_with(['-', '_', '.']);
    stem[..n_digits].parse().ok().filter(|number| *number > 0 && ends_well)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stem: &str, text: &str) -> (Option<u64>, String, bool) {
        let issue = IssueFile::parse("issue.md", stem, text.as_bytes()).expect("an issue");
        (issue.number, issue.title, issue.is_closed)
    }

    #[test]
    fn the_title_is_the_first_heading_outside_code() {
        assert_eq!(check("x", "text\n\n## Retry ##\n# Later\n").1, "Retry");
        assert_eq!(check("x", "```\n# not this\n```\n# This\n").1, "This");
        assert_eq!(check("x", "#hashtag first\n").1, "#hashtag first");
    }

    #[test]
    fn the_number_is_that_of_the_front_matter_then_of_the_name() {
        assert_eq!(check("7-x", "---\nnumber: 412\nlabels: [a]\n---\n# T\n").0, Some(412));
        assert_eq!(check("7-x", "# T\n").0, Some(7));
        assert_eq!(check("issue-9", "# T\n").0, Some(9));
        assert_eq!(check("2fast", "# T\n").0, None);
        assert_eq!(check("0", "# T\n").0, None);
    }

    #[test]
    fn front_matter_can_close_the_issue_and_is_no_part_of_the_text() {
        let text = "---\nstate: closed\n---\n# T\n";
        assert!(check("x", text).2);
        assert!(!check("x", "---\nstate: open\n---\n# T\n").2);
        let issue = IssueFile::parse("issue.md", "x", text.as_bytes()).expect("an issue");
        assert_eq!(issue.body, "# T\n");
        assert_eq!(check("x", "---\nno end\n").1, "---");
    }

    #[test]
    fn what_is_no_issue_is_refused() {
        for (text, expected) in [
            (&b""[..], "issue.md is without a title"),
            (b"\xff", "issue.md is not UTF-8"),
            (b"---\nnumber: x\n---\n# T\n", "front matter of issue.md: number"),
            (b"---\nnumber: 0\n---\n# T\n", "number: at least 1"),
            (b"---\nstate: done\n---\n# T\n", "unknown variant `done`"),
        ] {
            let error = IssueFile::parse("issue.md", "x", text).expect_err("no issue").to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = IssueFile::parse("issue.md", "x", &vec![b'a'; MAX_BYTES + 1]);
        assert!(error.is_err());
    }
}
