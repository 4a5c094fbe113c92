//! Which new files are left out, by the rules of `.gitignore`, without running git where they lie.

use std::path::Path;

use gix_ignore::Search;
use gix_ignore::glob::pattern::Case;
use gix_ignore::search::Ignore;

/// The rules in force at one place of a walk from the root downwards.
///
/// Files in deeper folders win over those above, later lines over earlier ones. Rules given to
/// [`Self::new`] are the weakest.
#[derive(Debug, Default, Clone)]
pub struct IgnoreRules {
    search: Search,
}

impl IgnoreRules {
    /// The person's own rules, weakest first: contents of files such as `info/exclude`.
    #[must_use]
    pub fn new<'a>(own: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut this = Self::default();
        for rules in own {
            this.push("", rules);
        }
        this
    }

    /// Adds the rules of the `.gitignore` in `folder` (relative, empty for the root).
    ///
    /// Returns the mark to give to [`Self::pop_to`] when the walk leaves the folder.
    pub fn push(&mut self, folder: impl AsRef<Path>, rules: &[u8]) -> usize {
        let mark = self.search.patterns.len();
        // Paths are matched from the root of an imagined work tree, `/`.
        let root = Path::new("/");
        let source = root.join(folder).join(".gitignore");
        if self.search.add_patterns_buffer(rules, source, Some(root), Ignore::default()).is_err() {
            // The path can't be told apart from the root: the rules then don't apply, so that
            // nothing is left out by mistake.
            self.search.patterns.truncate(mark);
        }
        mark
    }

    /// Takes away all rules that were added since the mark.
    pub fn pop_to(&mut self, mark: usize) {
        self.search.patterns.truncate(mark);
    }

    /// Whether an entry is left out, provided that none of its parents is.
    #[must_use]
    pub fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        self.search
            .pattern_matching_relative_path(path.into(), Some(is_folder), Case::Sensitive)
            .is_some_and(|found| !found.pattern.is_negative())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_as_git_reads_them() {
        let mut rules = IgnoreRules::new([&b"*.swp\n"[..]]);
        rules.push("", b"# build\n/target/\n*.log\n!keep.log\n\\#x\n");
        let check =
            |rules: &IgnoreRules, path: &str, folder| rules.is_ignored(path.as_bytes(), folder);
        assert!(check(&rules, "target", true));
        assert!(!check(&rules, "target", false));
        assert!(!check(&rules, "a/target", true));
        assert!(check(&rules, "a/b.log", false));
        assert!(!check(&rules, "a/keep.log", false));
        assert!(check(&rules, "#x", false));
        assert!(check(&rules, "a/.b.swp", false));

        let mark = rules.push("a", b"!b.log\n/only\nc/d\n");
        assert!(!check(&rules, "a/b.log", false));
        assert!(check(&rules, "b.log", false));
        assert!(check(&rules, "a/only", false));
        assert!(!check(&rules, "only", false));
        assert!(check(&rules, "a/c/d", false));
        assert!(!check(&rules, "a/x/c/d", false));
        rules.pop_to(mark);
        assert!(check(&rules, "a/b.log", false));
    }
}
