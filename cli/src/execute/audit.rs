//! What an item may leave behind: safety first, then scope. Pure rules, no files and no git.
//!
//! The input is the tree that the item began with and the manifest of what was found afterwards.
//! A **violation** means that nothing is tested and nothing is committed; a person has to look. A
//! change that is safe but at a path the item does not declare is **out of scope**: it is
//! committed with its item and shown as such.
//!
//! | violation | why it is none of scope |
//! |---|---|
//! | a name that git takes for `.git` | it could become a repository's configuration on another system |
//! | a new link, or a file turned into one | whoever writes through it writes somewhere else |
//! | a link changed that the item does not declare | the same |
//! | a link's target: empty, absolute, out of the repository, its root, into `.git`, through a link or a submodule | the same |
//! | what a declared link points to changed | nobody can tell which spelling was written |
//! | a submodule changed, or filled | plans can't author one |
//! | devices, pipes, sockets, other file systems, files with a second name outside | not content |
//! | a path that no plan could name, new in the tree | it can't be declared, reviewed or typed |
//! | too many changes, too much text in paths | nobody can review it |
//!
//! Absent on purpose: whether the change is the one that the item describes. That is review.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::plan::Item;

use crate::execute::manifest::{Manifest, Oddity};
use crate::git::tree::{Leaf, Mode, Tree, TreeChange};
use crate::output;

/// Most paths that one item may change.
pub const MAX_CHANGES: usize = 10_000;
/// Most bytes in the changed paths together.
pub const MAX_PATH_BYTES: usize = 480 * 1024;
/// Longest path, and longest target of a link, in bytes.
pub const MAX_NAME_BYTES: usize = 1024;

/// What the audit looks at.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The item that was carried out.
    pub item: &'a Item,
    /// The tree that the item began with.
    pub before: &'a Tree,
    /// What was found afterwards.
    pub manifest: &'a Manifest,
    /// Targets of the links in `before` that the item declares.
    pub link_targets: &'a BTreeMap<RepoPath, RepoBytes>,
}

/// What the audit found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audit {
    /// Every path at which the manifest differs from the tree before, in byte order.
    pub changes: Vec<TreeChange>,
    /// What forbids to commit; empty when nothing does.
    pub violations: Vec<Violation>,
    /// Changed paths that the item does not declare, in byte order.
    pub out_of_scope: Vec<RepoPath>,
    /// Declared paths at which nothing changed.
    pub untouched: Vec<String>,
}

/// One reason not to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// Where; empty when it concerns the whole.
    pub path: RepoPath,
    /// What was found there, when that says more than the path.
    pub found: Option<RepoBytes>,
}

/// The rules whose violation forbids to commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// More changes than [`MAX_CHANGES`].
    TooManyChanges,
    /// More bytes of paths than [`MAX_PATH_BYTES`].
    TooMuchPathText,
    /// The walk was given up: too many entries, too deep.
    TooManyEntries,
    /// A changed file, or all together, is too large.
    TooLarge,
    /// A name that git takes for `.git` on some system.
    DotGit,
    /// A repository inside the repository.
    NestedRepository,
    /// A new path that no plan could name.
    PathForm,
    /// A submodule was changed or replaced.
    Submodule,
    /// There is content in the folder of a submodule.
    SubmoduleContent,
    /// A symbolic link where none was.
    NewLink,
    /// A regular file became a symbolic link.
    FileToLink,
    /// A link was changed, replaced or removed that the item does not declare.
    UndeclaredLink,
    /// The target of a link is not allowed.
    LinkTarget(TargetFault),
    /// What a declared link points to was changed.
    LinkTargetChanged,
    /// A declared link goes through another link, so that nobody can tell what it points to.
    LinkUnknown,
    /// A device, a pipe or a socket.
    SpecialFile,
    /// Another file system is mounted here.
    OtherFileSystem,
    /// A file that has another name outside of what was read.
    HardLink,
    /// An entry can't be read.
    Unreadable,
    /// An entry changes while it is read.
    Changing,
}

/// Why a link must not point where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TargetFault {
    /// Empty, too long, or with characters that no path has.
    Form,
    /// It begins at the root of the file system.
    Absolute,
    /// It leaves the repository.
    Escapes,
    /// It is the root of the repository.
    Root,
    /// It enters `.git`.
    EntersGit,
    /// It goes through a link or a submodule, or can't be followed.
    Traverses,
}

impl Rule {
    /// The violation in words, as a fragment that follows the path.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::TooManyChanges => "more changed paths than one item may have (10,000)",
            Self::TooMuchPathText => "more text in changed paths than one item may have (480 KiB)",
            Self::TooManyEntries => "more files or folders than can be looked at",
            Self::TooLarge => "larger than what can be committed (512 MiB a file, 2 GiB together)",
            Self::DotGit => "a name that git takes for .git on some system",
            Self::NestedRepository => "a git repository inside the workspace",
            Self::PathForm => {
                "a new path that no plan can name (not UTF-8, too long, or with control or \
                 invisible characters, backslashes or a drive)"
            }
            Self::Submodule => "a submodule was changed or replaced",
            Self::SubmoduleContent => "the folder of a submodule is not empty",
            Self::NewLink => "a new symbolic link",
            Self::FileToLink => "a file became a symbolic link",
            Self::UndeclaredLink => "a symbolic link changed that the item does not declare",
            Self::LinkTarget(fault) => match fault {
                TargetFault::Form => "the target of the link is not a path",
                TargetFault::Absolute => "the target of the link is an absolute path",
                TargetFault::Escapes => "the target of the link leaves the repository",
                TargetFault::Root => "the target of the link is the root of the repository",
                TargetFault::EntersGit => "the target of the link enters .git",
                TargetFault::Traverses => "the target of the link goes through a link or submodule",
            },
            Self::LinkTargetChanged => "what a declared link points to changed",
            Self::LinkUnknown => "a declared link goes through another link",
            Self::SpecialFile => "a device, pipe or socket",
            Self::OtherFileSystem => "another file system is mounted here",
            Self::HardLink => "a file that has a second name (hard link) elsewhere",
            Self::Unreadable => "can't be read",
            Self::Changing => "changes while it is read",
        }
    }

    /// What would mend it, in the imperative.
    #[must_use]
    pub fn mend(self) -> &'static str {
        match self {
            Self::TooManyChanges | Self::TooMuchPathText => "split the item into smaller ones",
            Self::TooManyEntries | Self::TooLarge => {
                "remove what does not belong there, or let .gitignore leave it out"
            }
            Self::DotGit
            | Self::NestedRepository
            | Self::NewLink
            | Self::SpecialFile
            | Self::SubmoduleContent => "remove it",
            Self::PathForm => "give it another name",
            Self::Submodule => "put the empty folder back; a plan can't change submodules",
            Self::FileToLink => "make it a regular file again",
            Self::UndeclaredLink => "put it back, or declare it in the plan",
            Self::LinkTarget(_) => "point it to a path inside the repository",
            Self::LinkTargetChanged | Self::LinkUnknown => {
                "change the link and what it points to in two items that depend on each other"
            }
            Self::OtherFileSystem => "unmount it",
            Self::HardLink => "replace it by a copy",
            Self::Unreadable => "make it readable, or remove it",
            Self::Changing => "stop what writes there, then try again",
        }
    }
}

impl Violation {
    fn at(rule: Rule, path: &RepoPath) -> Self {
        Self { rule, path: path.clone(), found: None }
    }

    /// One line for people: the path quoted, the rule in words, what was found.
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = String::new();
        if !self.path.is_empty() {
            line.push_str(&quote(self.path.as_bytes()));
            line.push_str(": ");
        }
        line.push_str(self.rule.words());
        if let Some(found) = &self.found {
            line.push_str(": ");
            line.push_str(&quote(found.as_bytes()));
        }
        line
    }
}

/// Longest quote in a finding, in characters.
const MAX_QUOTE: usize = 300;

/// Text that nobody vouches for, quoted: control, invisible and invalid characters are visible,
/// and no more than 300 characters are shown.
#[must_use]
pub fn quote(bytes: &[u8]) -> String {
    let mut shown = String::from("\"");
    let mut n_chars = 0;
    'chunks: for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().chars().map(|c| match c {
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            c => output::plain_line(c.encode_utf8(&mut [0; 4])),
        });
        let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        for part in valid.chain(invalid) {
            n_chars += part.chars().count();
            if n_chars > MAX_QUOTE {
                shown.push('…');
                break 'chunks;
            }
            shown.push_str(&part);
        }
    }
    shown.push('"');
    shown
}

/// Whether a name, or a part of it between backslashes, is one that git takes for `.git`: in any
/// case; with NTFS's trailing dots and spaces, short name or stream; with code points that HFS+
/// ignores.
#[must_use]
pub fn is_dot_git(name: &[u8]) -> bool {
    name.split(|byte| *byte == b'\\').any(|part| is_ntfs_dot_git(part) || is_hfs_dot_git(part))
}

fn is_ntfs_dot_git(name: &[u8]) -> bool {
    let name = name.split(|byte| *byte == b':').next().unwrap_or_default();
    let end = name.iter().rposition(|byte| !matches!(byte, b'.' | b' ')).map_or(0, |n| n + 1);
    let name = &name[..end];
    name.eq_ignore_ascii_case(b".git") || name.eq_ignore_ascii_case(b"git~1")
}

fn is_hfs_dot_git(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else { return false };
    let ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    text.chars().filter(|c| !ignored(*c)).map(|c| c.to_ascii_lowercase()).eq(".git".chars())
}

/// Whether a plan could name the path: the canonical form of the plan format.
fn is_canonical(path: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(path) else { return false };
    let is_drive = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':'
    };
    text.len() <= MAX_NAME_BYTES
        && !text.contains('\\')
        && output::plain_line(text) == text
        && !is_drive(text)
        && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Judges what an item left behind.
///
/// Returns every violation, ordered by path, not only the first; each rule at most once per path.
///
/// Source: plan format, "Checks after import" and "After each run, codeboost checks the result
/// too".
#[must_use]
pub fn audit(input: Input<'_>) -> Audit {
    let changes = changes(input.before, &input.manifest.leaves);
    let declared: BTreeSet<&[u8]> = declared_paths(input.item).map(str::as_bytes).collect();
    let mut violations: Vec<Violation> =
        input.manifest.oddities.iter().map(|(path, oddity)| odd(path, *oddity)).collect();

    if changes.len() > MAX_CHANGES {
        violations.push(Violation::at(Rule::TooManyChanges, &RepoBytes::default()));
    }
    if changes.iter().map(|change| change.path.as_bytes().len()).sum::<usize>() > MAX_PATH_BYTES {
        violations.push(Violation::at(Rule::TooMuchPathText, &RepoBytes::default()));
    }
    let after = After { manifest: input.manifest };
    for change in &changes {
        check_change(input, &after, &declared, change, &mut violations);
    }
    check_link_targets(input, &after, &declared, &changes, &mut violations);

    violations.sort_by(|a, b| (&a.path, a.rule).cmp(&(&b.path, b.rule)));
    violations.dedup_by(|a, b| a.path == b.path && a.rule == b.rule);
    let out_of_scope = changes
        .iter()
        .map(|change| &change.path)
        .filter(|path| !declared.contains(path.as_bytes()))
        .cloned()
        .collect();
    let changed: BTreeSet<&[u8]> = changes.iter().map(|change| change.path.as_bytes()).collect();
    let untouched = declared_paths(input.item)
        .filter(|path| !changed.contains(path.as_bytes()))
        .map(str::to_owned)
        .collect();
    Audit { changes, violations, out_of_scope, untouched }
}

/// Whether the declared links of an item can be judged at all: each must lead to its target
/// without going through another link.
///
/// To be asked before an item begins.
#[must_use]
pub fn check_declared_links(
    item: &Item,
    before: &Tree,
    link_targets: &BTreeMap<RepoPath, RepoBytes>,
) -> Vec<Violation> {
    let is_link = |path: &[u8]| leads_elsewhere(before, path);
    declared_links(item, before)
        .filter_map(|path| {
            let target = link_targets.get(&path)?;
            // An unsafe link may be declared: to remove it, or to point it to a better place.
            (resolve(path.as_bytes(), target.as_bytes(), is_link) == Err(TargetFault::Traverses))
                .then(|| Violation {
                    rule: Rule::LinkUnknown,
                    path: path.clone(),
                    found: Some(target.clone()),
                })
        })
        .collect()
}

/// The declared paths of an item: each `path` and `renamed_from`, in plan order.
pub fn declared_paths(item: &Item) -> impl Iterator<Item = &str> {
    item.files.iter().flat_map(codeboost_schema::plan::DeclaredFile::paths)
}

/// The declared paths that are links in `tree`.
pub fn declared_links<'a>(item: &'a Item, tree: &'a Tree) -> impl Iterator<Item = RepoPath> + 'a {
    declared_paths(item)
        .map(RepoBytes::from)
        .filter(|path| tree.get(path).is_some_and(|leaf| leaf.mode == Mode::Symlink))
}

/// Where two trees differ, in byte order of path.
#[must_use]
pub fn changes(before: &Tree, after: &Tree) -> Vec<TreeChange> {
    let mut changes = Vec::new();
    for (path, leaf) in before {
        let now = after.get(path);
        if now != Some(leaf) {
            changes.push(TreeChange {
                path: path.clone(),
                before: Some(leaf.clone()),
                after: now.cloned(),
            });
        }
    }
    for (path, leaf) in after.iter().filter(|(path, _)| !before.contains_key(*path)) {
        changes.push(TreeChange { path: path.clone(), before: None, after: Some(leaf.clone()) });
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    changes
}

fn odd(path: &RepoPath, oddity: Oddity) -> Violation {
    let rule = match oddity {
        Oddity::DotGit => Rule::DotGit,
        Oddity::NestedRepository => Rule::NestedRepository,
        Oddity::SubmoduleContent => Rule::SubmoduleContent,
        Oddity::SpecialFile => Rule::SpecialFile,
        Oddity::OtherFileSystem => Rule::OtherFileSystem,
        Oddity::HardLink => Rule::HardLink,
        Oddity::Unreadable => Rule::Unreadable,
        Oddity::Changing => Rule::Changing,
        Oddity::TooLarge => Rule::TooLarge,
        Oddity::TooManyEntries => Rule::TooManyEntries,
    };
    Violation::at(rule, path)
}

/// The state that would be committed, with what else lies in the work tree.
struct After<'a> {
    manifest: &'a Manifest,
}

impl After<'_> {
    /// Whether a path is, or is beneath, something that leads elsewhere.
    fn leads_elsewhere(&self, path: &[u8]) -> bool {
        leads_elsewhere(&self.manifest.leaves, path)
            || self.manifest.ignored_links.contains(&RepoBytes::from(path))
    }
}

fn leads_elsewhere(tree: &Tree, path: &[u8]) -> bool {
    tree.get(&RepoBytes::from(path))
        .is_some_and(|leaf| matches!(leaf.mode, Mode::Symlink | Mode::Gitlink))
}

fn check_change(
    input: Input<'_>,
    after: &After<'_>,
    declared: &BTreeSet<&[u8]>,
    change: &TreeChange,
    violations: &mut Vec<Violation>,
) {
    let path = &change.path;
    let mode = |leaf: &Option<Leaf>| leaf.as_ref().map(|leaf| leaf.mode);
    let (old, new) = (mode(&change.before), mode(&change.after));
    let mut add = |rule| violations.push(Violation::at(rule, path));

    if new.is_some() && path.as_bytes().split(|byte| *byte == b'/').any(is_dot_git) {
        add(Rule::DotGit);
    }
    // An odd path that the repository had before is the repository's own; it can't be declared,
    // so a change there is out of scope.
    if old.is_none() && !is_canonical(path.as_bytes()) {
        add(Rule::PathForm);
    }
    if old == Some(Mode::Gitlink) || new == Some(Mode::Gitlink) {
        add(Rule::Submodule);
    }
    let is_declared = declared.contains(path.as_bytes());
    if old == Some(Mode::Symlink) && !is_declared {
        add(Rule::UndeclaredLink);
    }
    if new == Some(Mode::Symlink) {
        match old {
            Some(Mode::Symlink) => {}
            Some(Mode::File | Mode::Executable) => add(Rule::FileToLink),
            Some(Mode::Gitlink) | None => {
                if !is_renamed_link(input, path) {
                    add(Rule::NewLink);
                }
            }
        }
        let target = input.manifest.targets.get(path).cloned().unwrap_or_default();
        if let Err(fault) =
            resolve(path.as_bytes(), target.as_bytes(), |p| after.leads_elsewhere(p))
        {
            violations.push(Violation {
                rule: Rule::LinkTarget(fault),
                path: path.clone(),
                found: Some(target),
            });
        }
    }
}

/// Whether a new link at `path` is a declared rename of a link that was there before and is gone.
fn is_renamed_link(input: Input<'_>, path: &RepoPath) -> bool {
    input.item.files.iter().any(|file| {
        let Some(from) = &file.renamed_from else { return false };
        let from = RepoBytes::from(from.as_str());
        file.path.as_bytes() == path.as_bytes()
            && input.before.get(&from).is_some_and(|leaf| leaf.mode == Mode::Symlink)
            && !input.manifest.leaves.contains_key(&from)
    })
}

/// What declared links point to, before and after, must not change in the same item.
fn check_link_targets(
    input: Input<'_>,
    after: &After<'_>,
    declared: &BTreeSet<&[u8]>,
    changes: &[TreeChange],
    violations: &mut Vec<Violation>,
) {
    let mut protected: BTreeSet<Vec<u8>> = BTreeSet::new();
    for path in declared_links(input.item, input.before) {
        if let Some(target) = input.link_targets.get(&path) {
            let is_link = |p: &[u8]| leads_elsewhere(input.before, p);
            protected.extend(resolve(path.as_bytes(), target.as_bytes(), is_link).ok());
        }
    }
    for (path, target) in &input.manifest.targets {
        if declared.contains(path.as_bytes()) {
            let is_link = |p: &[u8]| after.leads_elsewhere(p);
            protected.extend(resolve(path.as_bytes(), target.as_bytes(), is_link).ok());
        }
    }
    for change in changes {
        let path = change.path.as_bytes();
        let is_protected = |target: &Vec<u8>| {
            path == *target || (path.starts_with(target) && path.get(target.len()) == Some(&b'/'))
        };
        if protected.iter().any(is_protected) {
            violations.push(Violation::at(Rule::LinkTargetChanged, &change.path));
        }
    }
}

/// Where a link at `path` with this target leads, from the root of the repository, without
/// following anything. `is_link` says whether a path is a link or a submodule.
fn resolve(
    path: &[u8],
    target: &[u8],
    is_link: impl Fn(&[u8]) -> bool,
) -> Result<Vec<u8>, TargetFault> {
    if target.is_empty() || target.len() > MAX_NAME_BYTES || target.contains(&0) {
        return Err(TargetFault::Form);
    }
    let is_plain = std::str::from_utf8(target).is_ok_and(|text| output::plain_line(text) == text);
    if !is_plain {
        return Err(TargetFault::Form);
    }
    let is_drive = target.len() >= 2 && target[0].is_ascii_alphabetic() && target[1] == b':';
    if target.starts_with(b"/") || target.starts_with(b"\\") || is_drive {
        return Err(TargetFault::Absolute);
    }
    let mut at: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    at.pop();
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                if at.pop().is_none() {
                    return Err(TargetFault::Escapes);
                }
            }
            part => {
                if is_dot_git(part) {
                    return Err(TargetFault::EntersGit);
                }
                // `..` between backslashes climbs on systems that take these for separators.
                if part.contains(&b'\\') {
                    return Err(TargetFault::Form);
                }
                at.push(part);
                let so_far = at.join(&b'/');
                // The link itself would be a circle.
                if so_far == path || is_link(&so_far) {
                    return Err(TargetFault::Traverses);
                }
            }
        }
    }
    if at.is_empty() { Err(TargetFault::Root) } else { Ok(at.join(&b'/')) }
}
