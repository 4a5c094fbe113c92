//! Whether a plan makes sense for a repository: every check of `semantics.md`, sections 3 to 7,
//! all problems in one run.
//!
//! A pure function of the plan and what is given with it. Places in a text are added later, by
//! [`locate`](crate::plan::problem::locate).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use codeboost_schema::ids::ItemId;
use codeboost_schema::plan::{CheckKind, DeclaredFile, FileKind, Item, Plan};

use super::parse::short;
use super::projected::{Entry, EntryKind, PathIdentity, PathKey, Projected};
use super::tokenize::tokenize;
use crate::plan::problem::{Code, Problem};

/// What a plan is held against.
#[derive(Debug, Clone, Copy)]
pub struct CheckContext<'a> {
    /// The issue that was selected; `None` when none was, and the plan's own counts.
    pub issue: Option<u64>,
    /// The leaves of the base commit's tree.
    pub base: &'a [Entry],
    /// Which paths name one entry.
    pub identity: PathIdentity,
    /// The argument lists that may run.
    pub allowed: &'a BTreeSet<Vec<String>>,
}

/// Every problem of a plan, failures and warnings, in the order of the plan.
#[must_use]
pub fn check(plan: &Plan, context: &CheckContext<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_issue(plan, context.issue, &mut problems);
    let order = check_order(plan, &mut problems);
    let mut walk = match Projected::new(context.base, context.identity) {
        Ok(state) => Some(Walk {
            plan,
            order: &order,
            state,
            makers: BTreeMap::new(),
            skipped: HashMap::new(),
            n_searches: 0,
        }),
        Err(error) => {
            problems.push(Problem::new(
                Code::Context,
                "",
                format!("the base can't be checked against: {error}"),
                "the entries of the base are one tree (4.3)",
                "check the plan where the base can be checked out whole",
            ));
            None
        }
    };
    let broken: BTreeSet<usize> = problems.iter().filter_map(item_of).collect();
    for (nth, item) in plan.items.iter().enumerate() {
        let mut found = Vec::new();
        check_commands(nth, item, context.allowed, &mut found);
        let paths = check_paths(nth, item, &mut found);
        if let Some(walk) = &mut walk {
            walk.item(nth, &paths, broken.contains(&nth), &mut found);
        }
        problems.append(&mut found);
    }
    if !plan.questions.is_empty() {
        let n = plan.questions.len();
        problems.push(Problem::new(
            Code::OpenQuestions,
            "/questions",
            match n {
                1 => "the plan asks a question".to_owned(),
                _ => format!("the plan asks {n} questions"),
            },
            "open questions are answered, or the plan is approved with them (7)",
            "answer them in the plan, or approve anyway",
        ));
    }
    problems
}

fn item_of(problem: &Problem) -> Option<usize> {
    problem.pointer.strip_prefix("/items/")?.split('/').next()?.parse().ok()
}

fn check_issue(plan: &Plan, selected: Option<u64>, problems: &mut Vec<Problem>) {
    let Some(selected) = selected.filter(|issue| *issue != plan.issue) else {
        return;
    };
    problems.push(Problem::new(
        Code::Issue,
        "/issue",
        format!("the plan is for issue {}, and issue {selected} is selected", plan.issue),
        "a plan is for the selected issue (5.1)",
        format!("select issue {}, or write the plan for issue {selected}", plan.issue),
    ));
}

/// For each item the items that it depends on, directly or not, by position.
type Order = Vec<BTreeSet<usize>>;

fn check_order(plan: &Plan, problems: &mut Vec<Problem>) -> Order {
    const RULE: &str = "depends_on names earlier items, each once (5.3)";
    let mut first: HashMap<&ItemId, usize> = HashMap::new();
    for (nth, item) in plan.items.iter().enumerate() {
        if let Some(before) = first.get(&item.id) {
            problems.push(Problem::new(
                Code::DuplicateId,
                format!("/items/{nth}/id"),
                format!("item {} has the id {} already", before + 1, item.id),
                "the ids of items differ (5.2)",
                format!("use {}", free_id(plan)),
            ));
        } else {
            first.insert(&item.id, nth);
        }
    }
    let mut order: Order = Vec::with_capacity(plan.items.len());
    for (nth, item) in plan.items.iter().enumerate() {
        let mut all = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for (n, id) in item.depends_on.iter().enumerate() {
            let pointer = format!("/items/{nth}/depends_on/{n}");
            let mut add = |message: String, mend: String| {
                problems.push(Problem::new(Code::Dependency, pointer.clone(), message, RULE, mend));
            };
            if !seen.insert(id) {
                add(format!("{id} is here twice"), "remove one".into());
                continue;
            }
            match first.get(id) {
                None => add(
                    format!("there is no item {id}"),
                    "name an item of this plan, or remove it".into(),
                ),
                Some(target) if *target == nth || *id == item.id => {
                    add(format!("{id} depends on itself"), "remove it".into());
                }
                Some(target) if *target > nth => {
                    let back = &plan.items[*target].depends_on;
                    let message = if back.contains(&item.id) {
                        format!("{} and {id} wait for each other", item.id)
                    } else {
                        format!("{id} comes after {}", item.id)
                    };
                    add(message, format!("move {id} before {}, or remove it", item.id));
                }
                Some(target) => {
                    all.insert(*target);
                    all.extend(&order[*target]);
                }
            }
        }
        order.push(all);
    }
    order
}

fn free_id(plan: &Plan) -> String {
    let used: BTreeSet<_> = plan.items.iter().map(|item| item.id.as_str()).collect();
    (1..=999)
        .map(|n| format!("P{n}"))
        .find(|id| !used.contains(id.as_str()))
        .unwrap_or_else(|| "another id".into())
}

fn check_commands(
    nth: usize,
    item: &Item,
    allowed: &BTreeSet<Vec<String>>,
    problems: &mut Vec<Problem>,
) {
    for (n, check) in item.acceptance.iter().enumerate() {
        if check.kind != CheckKind::Cmd {
            continue;
        }
        let pointer = format!("/items/{nth}/acceptance/{n}/text");
        match tokenize(&check.text) {
            Err(error) => problems.push(Problem::new(
                Code::CommandSyntax,
                pointer,
                format!("{} (character {})", error.kind, character(&check.text, error.span.start)),
                "a command is a program and its arguments, run without a shell (3.1)",
                error.kind.mend(),
            )),
            Ok(argv) if !allowed.contains(&argv) => problems.push(Problem::new(
                Code::CommandNotAllowed,
                pointer,
                format!("nobody allowed {} yet", short(&check.text)),
                "a command runs only when its exact arguments were allowed (3.3)",
                "allow it when you approve the plan",
            )),
            Ok(_) => {}
        }
    }
    if item.acceptance.iter().all(|check| check.kind != CheckKind::Cmd) {
        problems.push(Problem::new(
            Code::NoTestCommand,
            format!("/items/{nth}/acceptance"),
            format!("{} has no command that checks it", item.id),
            "an item has at least one cmd (7)",
            "add a cmd, or approve anyway",
        ));
    }
}

/// The how manieth character that byte belongs to, from 1.
fn character(text: &str, byte: usize) -> usize {
    text.get(..byte).map_or(0, |before| before.chars().count()) + 1
}

/// The paths of an item that are canonical, for the checks that need them.
struct Paths<'a> {
    /// One per declared file; `None` when one of its paths is refused.
    files: Vec<Option<Used<'a>>>,
}

/// What one declared file uses.
struct Used<'a> {
    file: &'a DeclaredFile,
    /// The old path of a rename.
    source: Option<&'a str>,
}

fn check_paths<'a>(nth: usize, item: &'a Item, problems: &mut Vec<Problem>) -> Paths<'a> {
    let mut files = Vec::with_capacity(item.files.len());
    for (n, file) in item.files.iter().enumerate() {
        let pointer = format!("/items/{nth}/files/{n}");
        let before = problems.len();
        let source = match (file.kind, &file.renamed_from) {
            (FileKind::Rename, None) => {
                problems.push(Problem::new(
                    Code::RenameSource,
                    format!("{pointer}/renamed_from"),
                    "a rename has to say from where",
                    "renamed_from has a value exactly when kind is rename (5.4)",
                    "write the old path there; path is the new one",
                ));
                None
            }
            (FileKind::Rename, Some(source)) => Some(source.as_str()),
            (FileKind::Edit | FileKind::Add | FileKind::Delete, Some(_)) => {
                problems.push(Problem::new(
                    Code::RenameSource,
                    format!("{pointer}/renamed_from"),
                    "only a rename has an old path",
                    "renamed_from has a value exactly when kind is rename (5.4)",
                    "write null there, or make kind rename",
                ));
                None
            }
            (FileKind::Edit | FileKind::Add | FileKind::Delete, None) => None,
        };
        for (field, path) in
            [("path", Some(&*file.path)), ("renamed_from", file.renamed_from.as_deref())]
        {
            let Some((message, mend)) = path.and_then(uncanonical) else { continue };
            problems.push(Problem::new(
                Code::Path,
                format!("{pointer}/{field}"),
                message,
                "paths are canonical, from the root of the repository (4.1)",
                mend,
            ));
        }
        files.push((problems.len() == before).then_some(Used { file, source }));
    }
    Paths { files }
}

/// What is wrong with a path, and the mend.
fn uncanonical(path: &str) -> Option<(String, &'static str)> {
    let shown = short(path);
    if path.is_empty() {
        return Some(("the path is empty".into(), "name a file"));
    }
    if path.contains('\\') {
        return Some((format!("{shown} has a backslash"), "use forward slashes"));
    }
    if path.contains(':') {
        return Some((
            format!("{shown} has a colon, which names a drive or a stream on some systems"),
            "write it from the root of the repository; a file with a colon can't be declared",
        ));
    }
    if let Some(c) = path.chars().find(|c| c.is_control()) {
        return Some((
            format!("{shown} has the control character U+{:04X}", u32::from(c)),
            "remove it; a file with such a name can't be declared",
        ));
    }
    if path.starts_with('/') {
        return Some((format!("{shown} is absolute"), "write it from the root of the repository"));
    }
    if path.ends_with('/') {
        return Some((
            format!("{shown} names a folder"),
            "declare each file inside; a folder can't be declared",
        ));
    }
    for part in path.split('/') {
        match part {
            "" => return Some((format!("{shown} has an empty part"), "remove the extra slash")),
            "." => return Some((format!("{shown} has the part \".\""), "remove it")),
            ".." => {
                return Some((
                    format!("{shown} has the part \"..\""),
                    "write it from the root of the repository",
                ));
            }
            _ if is_dot_git(part) => {
                return Some((
                    format!("{shown} points into git's own folder"),
                    "nothing there can be declared",
                ));
            }
            _ => {}
        }
    }
    None
}

/// Whether some file system takes this part for `.git`.
fn is_dot_git(part: &str) -> bool {
    // Characters that HFS+ ignores in names.
    let is_ignored = |c: &char| {
        matches!(
            c,
            '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
        )
    };
    let left: String = part.chars().filter(|c| !is_ignored(c)).collect();
    left.eq_ignore_ascii_case(".git")
}

/// An earlier item that made a path what it is.
#[derive(Clone, Copy)]
struct Maker {
    item: usize,
    what: &'static str,
}

/// Items checked one after the other against the state that the ones before leave.
struct Walk<'a> {
    plan: &'a Plan,
    order: &'a Order,
    state: Projected,
    /// Who last added, deleted or renamed a path.
    makers: BTreeMap<PathKey, Maker>,
    /// What items with failures would have done, so that messages can say so.
    skipped: HashMap<PathKey, Maker>,
    n_searches: usize,
}

/// A path that an item uses, and the field that says so.
struct Use<'a> {
    path: &'a str,
    key: PathKey,
    file: usize,
    field: &'static str,
}

impl<'a> Walk<'a> {
    fn item(
        &mut self,
        nth: usize,
        paths: &Paths<'a>,
        is_broken: bool,
        problems: &mut Vec<Problem>,
    ) {
        let uses = self.uses(paths);
        check_overlaps(nth, &uses, problems);
        for (n, used) in paths.files.iter().enumerate() {
            if let Some(used) = used {
                self.file(nth, n, used, &uses, problems);
            }
        }
        self.check_makers(nth, paths, &uses, problems);
        let fails = is_broken || problems.iter().any(Problem::is_failure);
        for used in paths.files.iter().flatten() {
            self.apply(nth, used, fails);
        }
    }

    fn uses(&self, paths: &Paths<'a>) -> Vec<Use<'a>> {
        let mut uses = Vec::new();
        for (n, used) in paths.files.iter().enumerate() {
            let Some(Used { file, source }) = used else { continue };
            let of = |path: &'a str, field| Use {
                path,
                key: self.state.identity().key(path.as_bytes()),
                file: n,
                field,
            };
            uses.push(of(&file.path, "path"));
            uses.extend(source.map(|path| of(path, "renamed_from")));
        }
        uses
    }

    /// One declaration against the state.
    fn file(
        &mut self,
        nth: usize,
        n: usize,
        used: &Used<'a>,
        uses: &[Use<'a>],
        problems: &mut Vec<Problem>,
    ) {
        let before = problems.len();
        for used in uses.iter().filter(|used| used.file == n) {
            let pointer = format!("/items/{nth}/files/{n}/{}", used.field);
            if let Some(entry) = self.state.blocking_folder(&used.key) {
                problems.push(Problem::new(
                    Code::PathParent,
                    pointer,
                    format!(
                        "{} lies inside {}, which is {}",
                        short(used.path),
                        quoted(entry),
                        kind_name(entry)
                    ),
                    "every folder of a path is a folder (5.8)",
                    "name the file itself, or delete what stands in its way in an earlier item",
                ));
            } else if self.state.get(&used.key).is_some_and(|e| e.kind == EntryKind::Gitlink) {
                problems.push(Problem::new(
                    Code::Gitlink,
                    pointer,
                    format!("{} is a submodule", short(used.path)),
                    "a submodule can't be declared (5.9)",
                    "change it by hand, outside the plan; the review shows it",
                ));
            }
        }
        if problems.len() > before {
            return;
        }
        let pointer = |field: &str| format!("/items/{nth}/files/{n}/{field}");
        let path_key = self.state.identity().key(used.file.path.as_bytes());
        match used.file.kind {
            FileKind::Edit | FileKind::Delete => {
                self.needs(nth, &used.file.path, &path_key, pointer("path"), problems);
            }
            FileKind::Add => self.needs_free(&used.file.path, &path_key, pointer("path"), problems),
            FileKind::Rename => {
                let Some(source) = used.source else { return };
                let source_key = self.state.identity().key(source.as_bytes());
                self.needs(nth, source, &source_key, pointer("renamed_from"), problems);
                // One entry under two names is reported as such.
                if source_key != path_key {
                    self.needs_free(&used.file.path, &path_key, pointer("path"), problems);
                }
            }
        }
        if problems.len() == before {
            self.check_link(nth, n, used, uses, problems);
        }
    }

    fn needs(
        &mut self,
        nth: usize,
        path: &str,
        key: &PathKey,
        pointer: String,
        problems: &mut Vec<Problem>,
    ) {
        if self.state.get(key).is_some() {
            return;
        }
        let (message, mend) = if let Some(inside) = self.state.first_inside(key) {
            (
                format!("{} is a folder", short(path)),
                format!("declare each file inside, such as {}", quoted(inside)),
            )
        } else if let Some(maker) = self.makers.get(key) {
            (
                format!(
                    "{} is not there any more: {} {} it",
                    short(path),
                    self.id(maker.item),
                    maker.what
                ),
                "use the path that it has by then, or leave it out".into(),
            )
        } else if let Some(maker) = self.skipped.get(key) {
            (
                format!("{} does not exist", short(path)),
                format!(
                    "{} would make it, but has failures itself: mend those first",
                    self.id(maker.item)
                ),
            )
        } else {
            let later = self.plan.items[nth + 1..].iter().find(|item| {
                item.files.iter().any(|file| {
                    matches!(file.kind, FileKind::Add | FileKind::Rename)
                        && self.state.identity().key(file.path.as_bytes()) == *key
                })
            });
            let mend = match later {
                Some(item) => format!("{} makes it: move {} before this item", item.id, item.id),
                None => self.nearest(path),
            };
            (format!("{} does not exist", short(path)), mend)
        };
        problems.push(Problem::new(
            Code::MissingFile,
            pointer,
            message,
            "edit, delete and rename need an entry that is there when the item runs (5.7)",
            mend,
        ));
    }

    fn needs_free(&self, path: &str, key: &PathKey, pointer: String, problems: &mut Vec<Problem>) {
        let (message, mend) = if let Some(entry) = self.state.get(key) {
            let by = self
                .makers
                .get(key)
                .map(|maker| format!(": {} {} it", self.id(maker.item), maker.what));
            let alias = if entry.path.as_bytes() == path.as_bytes() {
                String::new()
            } else {
                format!(", as {}", quoted(entry))
            };
            (
                format!("{} exists already{alias}{}", short(path), by.unwrap_or_default()),
                "make kind edit, or choose another path",
            )
        } else if let Some(inside) = self.state.first_inside(key) {
            (
                format!("{} is a folder: it holds {}", short(path), quoted(inside)),
                "choose another path",
            )
        } else {
            return;
        };
        problems.push(Problem::new(
            Code::ExistingFile,
            pointer,
            message,
            "add and rename need a path where nothing is (5.7)",
            mend,
        ));
    }

    /// A path that was probably meant.
    fn nearest(&mut self, path: &str) -> String {
        const MAX_SEARCHES: usize = 20;
        let plain = "check the spelling, or make kind add".to_owned();
        self.n_searches += 1;
        if self.n_searches > MAX_SEARCHES {
            return plain;
        }
        let loose = PathIdentity { folds_case: true, folds_unicode: true };
        let folded = loose.key(path.as_bytes());
        let name = |path: &[u8]| path.rsplit(|b| *b == b'/').next().unwrap_or_default().to_vec();
        let wanted = name(path.as_bytes());
        let mut same_name = Vec::new();
        for entry in self.state.entries() {
            let bytes = entry.path.as_bytes();
            if bytes.len() == path.len() && loose.key(bytes) == folded {
                return format!("did you mean {}?", quoted(entry));
            }
            if same_name.len() < 4 && bytes.ends_with(&wanted) && name(bytes) == wanted {
                same_name.push(quoted(entry));
            }
        }
        match same_name.len() {
            0 => plain,
            1..=3 => format!("did you mean {}? Or make kind add", same_name.join(" or ")),
            _ => plain,
        }
    }

    fn id(&self, nth: usize) -> &ItemId {
        &self.plan.items[nth].id
    }

    /// A declared link: where it leads, and what else the item declares there.
    fn check_link(
        &self,
        nth: usize,
        n: usize,
        used: &Used<'a>,
        uses: &[Use<'a>],
        problems: &mut Vec<Problem>,
    ) {
        let at = used.source.unwrap_or(&used.file.path);
        let at_key = self.state.identity().key(at.as_bytes());
        let Some(Entry { kind: EntryKind::Symlink { target }, .. }) = self.state.get(&at_key)
        else {
            return;
        };
        let mut fail = |field: &str, message: String, rule: &str, mend: &str| {
            let pointer = format!("/items/{nth}/files/{n}/{field}");
            problems.push(Problem::new(Code::SymlinkTarget, pointer, message, rule, mend));
        };
        let shown = short(&String::from_utf8_lossy(target));
        let places =
            [used.source.map(|path| (path, "renamed_from")), Some((&*used.file.path, "path"))];
        for (place, field) in places.into_iter().flatten() {
            let found = match self.resolve(place, target, used) {
                Ok(found) => found,
                Err(why) if used.source.is_some() => {
                    fail(
                        field,
                        format!("from {}, the link to {shown} {why}", short(place)),
                        "a link is renamed only when its target is safe from both places (6.3, 6.4)",
                        "delete the link and leave the new one to a person, or repair it first",
                    );
                    continue;
                }
                Err(why) => {
                    if uses.iter().any(|other| other.file != n) {
                        fail(
                            field,
                            format!("{} is a link to {shown}, which {why}", short(place)),
                            "a link with an unsafe target is edited or deleted by an item of its own (6.3)",
                            "move it into an item that declares nothing else",
                        );
                    }
                    continue;
                }
            };
            let clash = uses.iter().find(|other| {
                if other.file == n {
                    return other.key == found;
                }
                other.key == found || other.key.is_inside(&found) || found.is_inside(&other.key)
            });
            if let Some(other) = clash {
                fail(
                    field,
                    format!(
                        "{} is a link to {shown}, and the item declares {} too",
                        short(place),
                        short(other.path)
                    ),
                    "an item does not declare a link together with what it leads to (6.4)",
                    "split them into two items, the second depending on the first",
                );
            }
        }
    }

    /// What a link's text leads to from a place, or why it is unsafe.
    fn resolve(
        &self,
        place: &str,
        target: &[u8],
        used: &Used<'_>,
    ) -> Result<PathKey, &'static str> {
        if target.is_empty() {
            return Err("is empty");
        }
        if target.starts_with(b"/") {
            return Err("is absolute");
        }
        let text = String::from_utf8_lossy(target);
        if text.chars().any(|c| c == '\\' || c == ':' || c.is_control()) {
            return Err("has a backslash, a colon or a control character");
        }
        let identity = self.state.identity();
        let mut parts: Vec<&[u8]> = place.as_bytes().split(|b| *b == b'/').collect();
        parts.pop();
        let steps: Vec<_> = target.split(|b| *b == b'/').collect();
        for (n, step) in steps.iter().enumerate() {
            match *step {
                b"" | b"." => continue,
                b".." => {
                    if parts.pop().is_none() {
                        return Err("leaves the repository");
                    }
                    continue;
                }
                _ => {}
            }
            if is_dot_git(&String::from_utf8_lossy(step)) {
                return Err("leads into git's own folder");
            }
            parts.push(step);
            let is_last = n + 1 == steps.len();
            let entry = self.state.get(&identity.key(&parts.join(&b'/')));
            if !is_last && entry.is_some() {
                return Err("passes through something that is no folder");
            }
        }
        let found =
            if parts.is_empty() { PathKey::root() } else { identity.key(&parts.join(&b'/')) };
        let becomes_itself =
            used.source.is_some() && found == identity.key(used.file.path.as_bytes());
        match self.state.get(&found).map(|entry| &entry.kind) {
            Some(EntryKind::Symlink { .. }) => Err("is a link itself"),
            Some(EntryKind::Gitlink) => Err("is a submodule"),
            Some(EntryKind::File) | None if becomes_itself => Err("would be the link itself"),
            Some(EntryKind::File) | None => Ok(found),
        }
    }

    /// Whether the item depends on all that made its paths what they are.
    fn check_makers(
        &self,
        nth: usize,
        paths: &Paths<'a>,
        uses: &[Use<'a>],
        problems: &mut Vec<Problem>,
    ) {
        let mut missing: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for used in uses {
            let file = paths.files[used.file].as_ref().map(|used| used.file);
            let needs_free = used.field == "path"
                && file.is_some_and(|file| matches!(file.kind, FileKind::Add | FileKind::Rename));
            let folders: Vec<_> = used.key.folders().collect();
            let over =
                folders.iter().chain([&used.key]).filter_map(|key| self.makers.get_key_value(key));
            let under = self
                .makers
                .range(used.key.clone()..)
                .skip_while(|(key, _)| **key == used.key)
                .take_while(|(key, _)| needs_free && key.is_inside(&used.key));
            for (_, maker) in over.chain(under) {
                if !self.order[nth].contains(&maker.item) {
                    let words = format!("{} ({} it)", short(used.path), maker.what);
                    let list = missing.entry(maker.item).or_default();
                    if !list.contains(&words) {
                        list.push(words);
                    }
                }
            }
        }
        for (maker, mut paths) in missing {
            let more = paths.len().saturating_sub(3);
            paths.truncate(3);
            let mut list = paths.join(", ");
            if more > 0 {
                let _ = write!(list, " and {more} more");
            }
            let (id, by) = (self.id(nth), self.id(maker));
            problems.push(Problem::new(
                Code::Dependency,
                format!("/items/{nth}/depends_on"),
                format!("{id} uses what {by} makes: {list}"),
                "an item depends on every item that added, deleted or renamed a path it uses (5.10)",
                format!("add {by} to depends_on of {id}"),
            ));
        }
    }

    fn apply(&mut self, nth: usize, used: &Used<'a>, fails: bool) {
        let identity = self.state.identity();
        let key = identity.key(used.file.path.as_bytes());
        let (what, source) = match used.file.kind {
            FileKind::Edit => return,
            FileKind::Add => ("added", None),
            FileKind::Delete => ("deleted", None),
            FileKind::Rename => ("renamed", used.source.map(|path| identity.key(path.as_bytes()))),
        };
        let maker = Maker { item: nth, what };
        if fails {
            if used.file.kind != FileKind::Delete {
                self.skipped.insert(key, maker);
            }
            return;
        }
        match used.file.kind {
            FileKind::Edit => {}
            FileKind::Add => self.state.put(&used.file.path, EntryKind::File),
            FileKind::Delete => drop(self.state.take(&key)),
            FileKind::Rename => {
                if let Some(entry) = source.as_ref().and_then(|source| self.state.take(source)) {
                    self.state.put(&used.file.path, entry.kind);
                }
            }
        }
        self.makers.extend(source.map(|source| (source, maker)));
        self.makers.insert(key, maker);
    }
}

fn check_overlaps(nth: usize, uses: &[Use<'_>], problems: &mut Vec<Problem>) {
    for (n, used) in uses.iter().enumerate() {
        let pointer = format!("/items/{nth}/files/{}/{}", used.file, used.field);
        if let Some(other) = uses[..n].iter().find(|other| other.key == used.key) {
            let message = if other.path == used.path {
                format!("{} is here twice", short(used.path))
            } else {
                format!(
                    "{} and {} are one entry on this file system",
                    short(used.path),
                    short(other.path)
                )
            };
            problems.push(Problem::new(
                Code::DuplicatePath,
                pointer,
                message,
                "an item uses each path once (5.5)",
                "keep one declaration that says all of it, or split the item",
            ));
        } else if let Some(other) = uses.iter().find(|other| used.key.is_inside(&other.key)) {
            problems.push(Problem::new(
                Code::PathParent,
                pointer,
                format!(
                    "{} lies inside {}, which the item uses too",
                    short(used.path),
                    short(other.path)
                ),
                "no path of an item lies inside another of it (5.5)",
                "split the item into two",
            ));
        }
    }
}

fn quoted(entry: &Entry) -> String {
    short(&entry.path.lossy())
}

fn kind_name(entry: &Entry) -> &'static str {
    match entry.kind {
        EntryKind::File => "a file",
        EntryKind::Symlink { .. } => "a link",
        EntryKind::Gitlink => "a submodule",
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Fixtures {
        plans: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        name: String,
        base: Base,
        folds: Vec<String>,
        issue: Option<u64>,
        allowed: BTreeSet<Vec<String>>,
        plan: serde_json::Value,
        problems: Vec<Expected>,
    }

    #[derive(Deserialize)]
    struct Base {
        files: Vec<String>,
        links: BTreeMap<String, String>,
        gitlinks: Vec<String>,
    }

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
    struct Expected {
        code: String,
        pointer: String,
    }

    impl Base {
        fn entries(&self) -> Vec<Entry> {
            let entry = |path: &String, kind| Entry { path: path.as_str().into(), kind };
            let files = self.files.iter().map(|path| entry(path, EntryKind::File));
            let links = self.links.iter().map(|(path, target)| {
                entry(path, EntryKind::Symlink { target: target.clone().into_bytes() })
            });
            let gitlinks = self.gitlinks.iter().map(|path| entry(path, EntryKind::Gitlink));
            files.chain(links).chain(gitlinks).collect()
        }
    }

    #[test]
    fn the_shared_fixtures_have_their_problems() {
        let text = include_str!("../../../../schema/versions/1/fixtures/plans.json");
        let Fixtures { plans } = serde_json::from_str(text).unwrap();
        let mut faults = Vec::new();
        for case in plans {
            let bytes = serde_json::to_vec(&case.plan).unwrap();
            let plan = crate::plan::read::read(&bytes, crate::plan::v1::parse::Syntax::Json);
            let plan = plan.unwrap_or_else(|e| panic!("{}: {:?}", case.name, e.problems)).plan;
            let folds = |what: &str| case.folds.iter().any(|fold| fold == what);
            let base = case.base.entries();
            let context = CheckContext {
                issue: case.issue,
                base: &base,
                identity: PathIdentity {
                    folds_case: folds("case"),
                    folds_unicode: folds("unicode"),
                },
                allowed: &case.allowed,
            };
            let problems = check(&plan, &context);
            let mut found: Vec<_> = problems
                .iter()
                .map(|p| Expected { code: p.code.to_string(), pointer: p.pointer.clone() })
                .collect();
            let mut expected = case.problems;
            found.sort();
            expected.sort();
            if found != expected {
                faults.push(format!("{}: {problems:#?}", case.name));
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
