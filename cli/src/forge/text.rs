//! Text of people and agents on its way into commit messages and pull requests, where some words
//! act: a forge closes issues, notifies people and links what it finds.

/// `text` as it is read, with nothing in it that acts: references to issues and pull requests,
/// addresses of these, mentions of people.
///
/// Look-alike characters take the place of those that make a reference, so that the text reads the
/// same. Control characters other than line feeds become spaces.
#[must_use]
pub fn neutral(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let starts_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let eq = |n: usize, word: &str| {
            rest.get(..n).is_some_and(|part| part.eq_ignore_ascii_case(word))
        };
        if c == '#' && starts_digit(after) {
            out.push('＃');
        } else if c == '@' && after.starts_with(|c: char| c.is_alphanumeric()) {
            out.push('＠');
        } else if eq(3, "gh-") && rest.get(3..).is_some_and(starts_digit) {
            // A hyphen that does not break: same look, no reference.
            out.push_str(&rest[..2]);
            out.push('\u{2011}');
            rest = &rest[3..];
            continue;
        } else if c == '/' && acts_as_address(after) {
            out.push('∕');
        } else if c.is_control() && c != '\n' {
            out.push(' ');
        } else {
            out.push(c);
        }
        rest = after;
    }
    out
}

/// Whether what follows a slash makes the slash part of an issue's or pull request's address.
fn acts_as_address(after: &str) -> bool {
    ["issues/", "pull/", "pulls/", "discussions/"].iter().any(|word| {
        after.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word))
            && after[word.len()..].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// [`neutral`] on one line of at most `max_chars` characters, without surrounding blanks; a cut is
/// shown by an ellipsis.
#[must_use]
pub fn neutral_line(text: &str, max_chars: usize) -> String {
    let line = neutral(text);
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= max_chars {
        return line;
    }
    let mut cut: String = line.chars().take(max_chars.saturating_sub(1)).collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::mention::names_issue;

    #[test]
    fn what_would_act_reads_the_same_and_does_not() {
        let text =
            "Fixes #7, closes GH-8 and gh-9; see https://h/o/r/issues/10 /pull/11, thanks @you";
        let out = neutral(text);
        assert_eq!(
            out,
            "Fixes ＃7, closes GH\u{2011}8 and gh\u{2011}9; see https://h/o/r∕issues/10 ∕pull/11, \
             thanks ＠you"
        );
        for issue in 7..12 {
            assert!(!names_issue(&out, issue, None), "{issue}");
        }
    }

    #[test]
    fn harmless_text_stays() {
        for text in ["a # b", "mail me @ home", "GH-x", "issues/1", "ünï\ncode #", "gh", "-", ""]
        {
            assert_eq!(neutral(text), text);
        }
    }

    #[test]
    fn one_line_hides_no_second_one_and_is_cut_at_a_character() {
        assert_eq!(neutral_line("a\r\nPlan-Item: P9\u{1b}[31m", 80), "a Plan-Item: P9 [31m");
        assert_eq!(neutral_line("äöüß", 3), "äö…");
        assert_eq!(neutral_line("a b c", 3), "a…");
    }
}
