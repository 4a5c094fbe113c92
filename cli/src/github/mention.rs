//! Whether a text names an issue.
//!
//! | names issue 12 | does not |
//! |---|---|
//! | `#12`, `(#12)`, `fixes #12.` | `#123`, `#12a`, `other/repo#12`, `&#12;` |
//! | `GH-12`, `gh-12` | `GH-123`, `LIGH-12` |
//! | `https://host/owner/repo/issues/12` | the same of another repository, `…/issues/123`, `…/pull/12` |

/// Where the issues of this repository live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssueHome {
    /// Owner and name, lower case: `owner/repo`.
    path: String,
    /// The host, lower case; `None` when any may be meant.
    host: Option<String>,
}

impl IssueHome {
    /// Reads the home from the URL of a remote: the last two parts of its path, and its host.
    ///
    /// `None` for an address that has no host, such as a path of this machine.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        let (host, path) = match url.split_once("://") {
            Some(("file", _)) => return None,
            Some((_, rest)) => rest.split_once('/')?,
            None => url.split_once(':').filter(|(host, _)| !host.contains('/'))?,
        };
        let host = host.rsplit('@').next()?.split(':').next()?;
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let mut parts = path.rsplit('/');
        let (name, owner) = (parts.next()?, parts.next()?);
        let is_whole = !host.is_empty() && !name.is_empty() && !owner.is_empty();
        is_whole.then(|| Self {
            path: format!("{owner}/{name}").to_lowercase(),
            host: Some(host.to_lowercase()),
        })
    }
}

/// Whether `text` names `issue` of the repository whose issues live at `home`.
///
/// Without a home an address of any repository's issue of that number counts: a doubt is shown
/// rather than dropped.
///
/// Source: reference facts, section 14.
#[must_use]
pub fn names_issue(text: &str, issue: u64, home: Option<&IssueHome>) -> bool {
    let text = text.to_lowercase();
    let number = issue.to_string();
    places(&text, &format!("#{number}")).any(|(before, after)| {
        if !ends_a_word(after) {
            return false;
        }
        // `owner/repo#12`: the word before says whose issue it is.
        let word: String = before
            .chars()
            .rev()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '&' | '#'))
            .collect();
        let word: String = word.chars().rev().collect();
        match word.as_str() {
            // Such as `x.#12` or `-#12`: punctuation only.
            word if !word.contains(|c: char| c.is_alphanumeric() || c == '&' || c == '#') => true,
            word => home.is_some_and(|home| word == home.path),
        }
    }) || places(&text, &format!("gh-{number}")).any(|(before, after)| {
        ends_a_word(after)
            && !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
    }) || places(&text, &format!("/issues/{number}")).any(|(before, after)| {
        if !ends_a_word(after) {
            return false;
        }
        let url: String = before.chars().rev().take_while(|c| !c.is_whitespace()).collect();
        let url: String = url.chars().rev().collect();
        let Some((_, place)) = url.split_once("://") else { return false };
        home.is_none_or(|home| match place.split_once('/') {
            Some((host, path)) => {
                path == home.path && home.host.as_deref().is_none_or(|wanted| host == wanted)
            }
            None => false,
        })
    })
}

/// Each place where `wanted` stands in `text`, as what stands before and after it.
fn places<'t>(text: &'t str, wanted: &str) -> impl Iterator<Item = (&'t str, &'t str)> {
    let len = wanted.len();
    let found: Vec<_> = text.match_indices(wanted).map(|(n, _)| n).collect();
    found.into_iter().map(move |n| (&text[..n], &text[n + len..]))
}

fn ends_a_word(after: &str) -> bool {
    !after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_counts_what_names_the_issue_and_nothing_else() {
        let home = IssueHome::of_url("git@github.com:Owner/Repo.git").expect("a home");
        for text in [
            "#12",
            "fix (#12)",
            "Fixes #12.",
            "see #12, #13",
            "GH-12",
            "gh-12: done",
            "x #12-b",
            "https://github.com/owner/repo/issues/12",
            "owner/repo#12",
            "#12\n",
            "[#12]",
            "\"#12\"",
            "http://github.com/Owner/Repo/issues/12#issuecomment-1",
        ] {
            assert!(names_issue(text, 12, Some(&home)), "{text}");
        }
        for text in [
            "#123",
            "#112",
            "other/repo#12",
            "repo#12",
            "&#12;",
            "##12",
            "#12a",
            "#12_",
            "x#12",
            "GH-123",
            "LIGH-12",
            "12",
            "issue 12",
            "https://github.com/other/repo/issues/12",
            "https://example.com/owner/repo/issues/12",
            "https://github.com/owner/repo/issues/123",
            "https://github.com/owner/repo/pull/12",
            "/issues/12",
            "",
        ] {
            assert!(!names_issue(text, 12, Some(&home)), "{text}");
        }
    }

    #[test]
    fn without_a_home_any_address_of_that_number_counts() {
        assert!(names_issue("see https://host.example/a/b/issues/12", 12, None));
        assert!(!names_issue("other/repo#12", 12, None));
        assert!(!names_issue("see /issues/12", 12, None));
    }

    #[test]
    fn the_home_is_read_from_every_form_of_address() {
        let home =
            |url| IssueHome::of_url(url).map(|home| (home.host.unwrap_or_default(), home.path));
        let wanted = Some(("host.example".to_owned(), "owner/repo".to_owned()));
        assert_eq!(home("https://user:token@host.example/owner/repo.git"), wanted);
        assert_eq!(home("ssh://git@host.example:22/owner/repo"), wanted);
        assert_eq!(home("git@host.example:Owner/repo.git"), wanted);
        assert_eq!(home("file:///srv/owner/repo.git"), None);
        assert_eq!(home("/srv/owner/repo.git"), None);
        assert_eq!(home("../repo.git"), None);
    }
}
