//! Which files the base declares generated.

use regex::bytes::RegexSet;

/// Patterns of paths: `*` within a folder, `**` across folders, `?` one byte; a pattern that ends
/// in `/` covers the folder.
pub(crate) struct Generated(RegexSet);

impl Generated {
    pub(crate) fn new(patterns: &[String]) -> Self {
        let patterns = patterns.iter().map(|pattern| to_regex(pattern));
        let set = regex::bytes::RegexSetBuilder::new(patterns).unicode(false).build();
        Self(set.unwrap_or_else(|_| RegexSet::empty()))
    }

    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        self.0.is_match(path)
    }
}

fn to_regex(pattern: &str) -> String {
    let mut regex = String::from("^");
    let mut rest = pattern.trim_start_matches('/');
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            regex.push_str("(?s:.*/)?");
            rest = after;
            continue;
        }
        if let Some(after) = rest.strip_prefix("**") {
            regex.push_str("(?s:.*)");
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            c if c.is_ascii() => regex.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            c => {
                for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                    regex.push_str(&format!("(?-u:\\x{byte:02x})"));
                }
            }
        }
    }
    if pattern.ends_with('/') {
        regex.push_str("(?s:.*)");
    }
    regex.push('$');
    regex
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_cover_folders_and_names() {
        let generated = |pattern: &str, path: &str| {
            Generated::new(&[pattern.to_owned()]).matches(path.as_bytes())
        };
        assert!(generated("Cargo.lock", "Cargo.lock"));
        assert!(!generated("Cargo.lock", "a/Cargo.lock"));
        assert!(generated("**/*.lock", "a/b/c.lock"));
        assert!(generated("**/*.lock", "c.lock"));
        assert!(generated("dist/", "dist/a/b.js"));
        assert!(generated("dist/**", "dist/a/b.js"));
        assert!(!generated("dist/*", "dist/a/b.js"));
        assert!(generated("ä.?", "ä.c"));
    }
}
