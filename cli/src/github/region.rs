//! The part of a pull request's description that is ours, between two markers. Whatever stands
//! around it is other people's and stays as it is.

/// Begins the part.
pub const START: &str = "<!-- codeboost:plan:start -->";
/// Ends the part.
pub const END: &str = "<!-- codeboost:plan:end -->";

/// A description with its part replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The whole description.
    pub text: String,
    /// What stood between the markers; `None` when there was no such part.
    pub before: Option<String>,
}

/// The line that an opening of a pull request is found by; the first one of its description.
#[must_use]
pub fn opening_line(opening: &str) -> String {
    format!("<!-- codeboost:opening={opening} -->")
}

/// The opening that a description names in its first line.
#[must_use]
pub fn opening(text: &str) -> Option<&str> {
    let line = text.lines().next()?.trim_end();
    line.strip_prefix("<!-- codeboost:opening=")?.strip_suffix(" -->")
}

/// What stands between the markers.
#[must_use]
pub fn find(text: &str) -> Option<&str> {
    let (start, end) = place(text)?;
    Some(text[start + START.len()..end].trim_matches(['\r', '\n']))
}

/// Puts `part` between the markers; without them, after all that is there.
///
/// `part` must not hold a marker: [`super::text::quiet`] sees to that.
#[must_use]
pub fn replace(text: &str, part: &str) -> Replaced {
    let block = format!("{START}\n{part}\n{END}");
    match place(text) {
        Some((start, end)) => Replaced {
            before: find(text).map(str::to_owned),
            text: format!("{}{block}{}", &text[..start], &text[end + END.len()..]),
        },
        None if text.trim().is_empty() => Replaced { text: block, before: None },
        None => {
            Replaced { text: format!("{}\n\n{block}", text.trim_end_matches('\n')), before: None }
        }
    }
}

/// Where the start marker and the end marker of our part begin.
///
/// People may have copied or cut markers: the part is the last pair with no other marker between.
fn place(text: &str) -> Option<(usize, usize)> {
    let starts = text.rmatch_indices(START);
    starts.into_iter().find_map(|(start, _)| {
        let after = start + START.len();
        let end = after + text[after..].find(END)?;
        (!text[after..end].contains(START)).then_some((start, end))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_part_is_replaced_and_what_is_around_it_stays() {
        let text = format!("mine\r\n{START}\nold\n{END}\nmine too\n");
        let done = replace(&text, "new");
        assert_eq!(done.text, format!("mine\r\n{START}\nnew\n{END}\nmine too\n"));
        assert_eq!(done.before.as_deref(), Some("old"));
        assert_eq!(find(&done.text), Some("new"));
    }

    #[test]
    fn without_a_whole_pair_it_is_added_and_found_from_then_on() {
        for text in
            ["", "words", START, END, &format!("{END} {START}"), &format!("{START} a {START} b")]
        {
            let first = replace(text, "one");
            assert_eq!(first.before, None, "{text}");
            assert!(first.text.contains(text), "{text}");
            let second = replace(&first.text, "two");
            assert_eq!(second.before.as_deref(), Some("one"), "{text}");
            assert_eq!(second.text, first.text.replace("\none\n", "\ntwo\n"), "{text}");
        }
    }

    #[test]
    fn an_opening_counts_in_the_first_line_only() {
        let line = opening_line("3f");
        assert_eq!(opening(&format!("{line}\r\nwords")), Some("3f"));
        assert_eq!(opening(&format!("words\n{line}")), None);
        assert_eq!(opening(&format!("x{line}")), None);
        assert_eq!(opening(""), None);
    }

    proptest! {
        #[test]
        fn nothing_outside_is_lost_or_changed(pieces in proptest::collection::vec(0usize..6, 0..12)) {
            let words = [START, END, "a", "\n", "<!-- b -->", "ü"];
            let text: String = pieces.iter().map(|at| words[*at]).collect();
            let first = replace(&text, "P");
            if let Some((start, end)) = place(&text) {
                let rest = format!("{}{}", &text[..start], &text[end + END.len()..]);
                prop_assert_eq!(first.text.replacen(&format!("{START}\nP\n{END}"), "", 1).len(), rest.len());
            } else {
                prop_assert!(first.text.starts_with(text.trim_end_matches('\n')));
            }
            prop_assert_eq!(find(&first.text), Some("P"));
            let second = replace(&first.text, "Q");
            prop_assert_eq!(second.before.as_deref(), Some("P"));
            prop_assert_eq!(replace(&second.text, "P").text, first.text);
        }
    }
}
