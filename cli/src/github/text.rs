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

/// [`neutral`], with nothing that could be one of our markers or begin a comment of HTML.
#[must_use]
pub fn quiet(text: &str) -> String {
    neutral(text).replace("<!--", "<!\u{2011}\u{2011}")
}

/// [`neutral_line`] that reads the same as Markdown: nothing in it is markup, HTML or a link.
#[must_use]
pub fn markdown_line(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    for c in neutral_line(text, max_chars).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '!' | '~' | '|' | '#' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // An address is made a link wherever it stands.
            ':' => out.push_str("&#58;"),
            c => out.push(c),
        }
    }
    // `www.` is made a link too.
    out.replace("www.", "www&#46;")
}

/// `text` in a fence that nothing in it can end, quieted.
#[must_use]
pub fn fenced(info: &str, text: &str) -> String {
    let text = quiet(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{info}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::github::mention::names_issue;

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

    #[test]
    fn no_line_is_markup_and_no_fence_ends_early() {
        let line = markdown_line("<b>x</b> [a](http://b) `c` **d** www.e.f\n# g", 200);
        assert_eq!(
            line,
            "&lt;b&gt;x&lt;/b&gt; \\[a\\]\\(http&#58;//b\\) \\`c\\` \\*\\*d\\*\\* www&#46;e.f \\# g"
        );
        let fence = fenced("yaml", "a\n````\nFixes #7 <!-- codeboost:plan:end -->\n");
        assert_eq!(
            fence,
            "`````yaml\na\n````\nFixes ＃7 <!\u{2011}\u{2011} codeboost:plan:end -->\n`````"
        );
        assert_eq!(fenced("", ""), "```\n\n```");
    }
}
