//! The way from a clone to a commit, without commands and state.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use codeboost_schema::bytes::{RepoBytes, RepoPath};
use codeboost_schema::ids::CommitId;
use codeboost_schema::plan::{Check, CheckKind, DeclaredFile, FileKind, Item};

use crate::execute::audit::{self, Audit, Rule, TargetFault};
use crate::execute::manifest::{self, Manifest, Options, Spool};
use crate::execute::{commit, workspace};
use crate::git::read::Objects;
use crate::store::testing::World;

fn item(declared: &[&str]) -> Item {
    let file = |path: &&str| {
        let (renamed_from, path) = match path.split_once("->") {
            Some((from, to)) => (Some(from.to_owned()), to),
            None => (None, *path),
        };
        DeclaredFile {
            path: path.to_owned(),
            kind: if renamed_from.is_some() { FileKind::Rename } else { FileKind::Edit },
            renamed_from,
            change: "something".into(),
        }
    };
    Item {
        id: "P1".parse_item(),
        title: "Fix #7 for @you\u{202e}".into(),
        intent: "because".into(),
        files: declared.iter().map(file).collect(),
        acceptance: vec![Check { kind: CheckKind::Cmd, text: "true".into() }],
        depends_on: Vec::new(),
    }
}

trait ParseItem {
    fn parse_item(&self) -> codeboost_schema::ids::ItemId;
}

impl ParseItem for str {
    fn parse_item(&self) -> codeboost_schema::ids::ItemId {
        codeboost_schema::ids::ItemId::parse(self).expect("an item id")
    }
}

/// A repository, a clone of its `main`, and an item.
struct Case {
    world: World,
    folder: PathBuf,
    head: CommitId,
    clone: workspace::Clone,
}

impl Case {
    /// `files`: written and committed first; those that end in `@` are links to what follows.
    fn new(files: &[(&str, &str)]) -> Self {
        let world = World::new();
        for (path, content) in files {
            put(world.root(), path, content);
        }
        world.git(["add", "-A", "-f"]);
        world.git(["commit", "-q", "--allow-empty", "-m", "files"]);
        let head = world.commit_id("main");
        let folder = world.root().with_file_name("clone");
        let repository = world.repository();
        let objects = Objects::open(repository.git()).expect("objects");
        let clone = workspace::make(&repository, &objects, &head, &folder).expect("a clone");
        drop((repository, objects));
        Self { world, folder, head, clone }
    }

    fn put(&self, path: &str, content: &str) {
        put(&self.folder, path, content);
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.folder.join(path)).expect("a file");
    }

    fn read(&self, item: &Item) -> (Manifest, Spool) {
        let repository = self.world.repository();
        let objects = Objects::open(repository.git()).expect("objects");
        let rules = |path: &RepoPath| {
            let folder = path.as_bytes().strip_suffix(b".gitignore")?;
            let folder = folder.strip_suffix(b"/").unwrap_or(folder);
            let leaf = &self.clone.tree[path];
            Some((RepoBytes::from(folder), objects.blob(&leaf.object_id).expect("a blob")))
        };
        let rules_before: BTreeMap<_, _> = self.clone.tree.keys().filter_map(rules).collect();
        let options = Options {
            before: &self.clone.tree,
            rules_before: &rules_before,
            own_rules: Vec::new(),
            declared: audit::declared_paths(item).map(RepoBytes::from).collect(),
            format: objects.format(),
            trusts_execute_bit: true,
        };
        let mut spool = Spool::new(&self.world.root().with_file_name("spool")).expect("a folder");
        let manifest = manifest::read(&self.folder, &options, &mut spool).expect("a manifest");
        (manifest, spool)
    }

    fn audit(&self, item: &Item) -> (Audit, Spool) {
        let (manifest, spool) = self.read(item);
        let repository = self.world.repository();
        let objects = Objects::open(repository.git()).expect("objects");
        let link_targets = audit::declared_links(item, &self.clone.tree)
            .map(|path| {
                let leaf = &self.clone.tree[&path];
                let target = objects.blob(&leaf.object_id).expect("a blob");
                (path, RepoBytes::from(target))
            })
            .collect();
        let input = audit::Input {
            item,
            before: &self.clone.tree,
            manifest: &manifest,
            link_targets: &link_targets,
        };
        (audit::audit(input), spool)
    }

    /// The violations, as `path: rule`.
    fn violations(&self, declared: &[&str]) -> Vec<(String, Rule)> {
        let (audit, _) = self.audit(&item(declared));
        audit
            .violations
            .into_iter()
            .map(|found| (found.path.lossy().into_owned(), found.rule))
            .collect()
    }

    fn commit(&self, declared: &[&str]) -> CommitId {
        let item = item(declared);
        let (audit, spool) = self.audit(&item);
        assert_eq!(audit.violations, Vec::new());
        let repository = self.world.repository();
        let objects = Objects::open(repository.git()).expect("objects");
        let (name, email) = commit::identity(repository.git()).expect("an identity");
        let new = commit::NewCommit {
            message: &commit::message(&item, 2),
            identity: (&name, &email),
            parent: &self.head,
            changes: &audit.changes,
            time: self.world.context.now(),
        };
        commit::make(&self.world.context, &objects, &spool, &new).expect("a commit")
    }
}

fn put(root: &Path, path: &str, content: &str) {
    let (path, is_link) = path.strip_suffix('@').map_or((path, false), |path| (path, true));
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    let _ = std::fs::remove_file(&path);
    if is_link {
        std::os::unix::fs::symlink(content, &path).expect("a link");
    } else {
        crate::stage::write_scratch(&path, content.as_bytes()).expect("a file");
    }
}

fn at(path: &str, rule: Rule) -> (String, Rule) {
    (path.to_owned(), rule)
}

#[test]
fn a_clone_stands_alone() {
    let case =
        Case::new(&[("a", "1\r\n"), (".gitattributes", "* text=auto eol=crlf\n"), ("l@", "a")]);
    let git = case.folder.join(".git");
    assert!(!git.join("objects/info/alternates").exists());
    assert!(!git.join("hooks").exists());
    let config = std::fs::read_to_string(git.join("config")).expect("a config");
    assert!(!config.contains("remote") && !config.contains("worktree"), "{config}");
    for pack in std::fs::read_dir(git.join("objects/pack")).expect("packs") {
        use std::os::unix::fs::MetadataExt as _;
        assert_eq!(pack.expect("a pack").metadata().expect("its facts").nlink(), 1);
    }
    let inside = workspace::look_inside(&case.folder, &case.head);
    assert_eq!(inside, workspace::Inside { has_commits: false, has_more: false });
    // Nothing to see for git either, although the attributes ask for a conversion.
    let status = case.world.git(["-C", case.folder.to_str().expect("a path"), "status", "--short"]);
    assert_eq!(status, "");
    assert_eq!(case.violations(&[]), []);
}

#[test]
fn the_commit_is_exactly_what_lies_there() {
    let case = Case::new(&[
        ("edit", "1\n"),
        ("mode", "#!/bin/sh\n"),
        ("gone", "x"),
        ("was-file", "x"),
        ("was-folder/inner", "x"),
        ("crlf", "1\r\n"),
        ("keep@", "edit"),
        (".gitattributes", "* text=auto filter=x ident\n"),
    ]);
    case.put("edit", "2\r\n$Id$\n");
    use std::os::unix::fs::PermissionsExt as _;
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(case.folder.join("mode"), executable).expect("a mode");
    case.remove("gone");
    case.remove("was-file");
    case.put("was-file/inner", "new");
    std::fs::remove_dir_all(case.folder.join("was-folder")).expect("a folder");
    case.put("was-folder", "new");
    case.put("*:(glob)[a] -x", "new");
    case.put("ünï", "new");
    case.put("binary", "\0\u{1}");
    let commit_id = case.commit(&["edit"]);
    let show = case.world.git(["log", "-1", "--format=%an <%ae>%n%B", commit_id.as_str()]);
    insta::assert_snapshot!(show, @r"
    codeboost <codeboost@localhost.invalid>
    P1: Fix ＃7 for ＠you

    Plan-Item: P1
    Plan-Revision: r2
    ");
    let raw = case.world.git([
        "-c",
        "core.quotePath=false",
        "diff-tree",
        "-r",
        "--abbrev=7",
        "main",
        commit_id.as_str(),
    ]);
    insta::assert_snapshot!(raw, @r"
    :000000 100644 0000000 3e5126c A	*:(glob)[a] -x
    :000000 100644 0000000 bdc955b A	binary
    :100644 100644 d00491f d005c94 M	edit
    :100644 000000 c1b0730 0000000 D	gone
    :100644 100755 1a24852 1a24852 M	mode
    :100644 000000 c1b0730 0000000 D	was-file
    :000000 100644 0000000 3e5126c A	was-file/inner
    :000000 100644 0000000 3e5126c A	was-folder
    :100644 000000 c1b0730 0000000 D	was-folder/inner
    :000000 100644 0000000 3e5126c A	ünï
    ");
    assert_eq!(case.world.git(["show", &format!("{commit_id}:edit")]), "2\r\n$Id$");
    assert_eq!(case.commit(&["edit"]), commit_id, "the same input gives the same commit");
}

#[test]
fn ignored_files_stay_out_unless_they_are_tracked_or_declared() {
    let case = Case::new(&[
        (".gitignore", "/out/\n*.log\n"),
        ("out/tracked", "1"),
        ("deep/.gitignore", "!keep.log\n"),
    ]);
    case.put("out/tracked", "2");
    case.put("out/new", "x");
    case.put("out/declared/file", "x");
    case.put("a.log", "x");
    case.put("deep/keep.log", "x");
    case.put("deep/b.log", "x");
    // The rules of the work tree count too, whatever made them.
    case.put("other/.gitignore", "*\n");
    case.put("other/x", "x");
    std::os::unix::fs::symlink("/etc", case.folder.join("link.log")).expect("a link");
    let item = item(&["out/declared/file"]);
    let (manifest, _) = case.read(&item);
    let names = |paths: &[RepoPath]| -> Vec<String> {
        paths.iter().map(|path| path.lossy().into_owned()).collect()
    };
    assert_eq!(
        names(&manifest.ignored),
        ["a.log", "deep/b.log", "link.log", "other/.gitignore", "other/x", "out/new"]
    );
    assert_eq!(manifest.n_ignored, 6);
    assert_eq!(manifest.ignored_links, BTreeSet::from([RepoBytes::from("link.log")]));
    let (audit, _) = case.audit(&item);
    assert_eq!(audit.violations, []);
    let changed: Vec<_> = audit.changes.iter().map(|change| change.path.clone()).collect();
    assert_eq!(names(&changed), ["deep/keep.log", "out/declared/file", "out/tracked"]);
    assert_eq!(names(&audit.out_of_scope), ["deep/keep.log", "out/tracked"]);
    assert_eq!(audit.untouched, Vec::<String>::new());
}

#[test]
fn links_may_change_only_where_the_item_declares_them() {
    let files =
        [("file", "x"), ("dir/inner", "x"), ("free@", "file"), ("bound@", "file"), ("far@", "dir")];
    let case = Case::new(&files);
    case.put("bound@", "dir");
    assert_eq!(case.violations(&[]), [at("bound", Rule::UndeclaredLink)]);
    assert_eq!(case.violations(&["bound"]), []);
    case.put("bound@", "file");
    case.remove("free");
    assert_eq!(case.violations(&[]), [at("free", Rule::UndeclaredLink)]);
    assert_eq!(case.violations(&["free"]), []);
    case.put("free", "a file now");
    assert_eq!(case.violations(&[]), [at("free", Rule::UndeclaredLink)]);
    assert_eq!(case.violations(&["free"]), []);
    case.put("free@", "file");
    assert_eq!(case.violations(&[]), []);
    // New ones, and files turned into one, whether declared or not.
    case.put("new@", "file");
    case.put("dir/inner@", "../file");
    let expected = [at("dir/inner", Rule::FileToLink), at("new", Rule::NewLink)];
    assert_eq!(case.violations(&[]), expected);
    assert_eq!(case.violations(&["new", "dir/inner"]), expected);
    // Nothing goes through a link unnoticed: the folder is what changes.
    let case = Case::new(&files);
    std::fs::remove_dir_all(case.folder.join("dir")).expect("a folder");
    std::os::unix::fs::symlink("/etc", case.folder.join("dir")).expect("a link");
    assert_eq!(
        case.violations(&["dir/inner"]),
        [at("dir", Rule::NewLink), at("dir", Rule::LinkTarget(TargetFault::Absolute))]
    );
}

#[test]
fn a_link_may_be_renamed_when_that_is_declared() {
    let case = Case::new(&[("file", "x"), ("old@", "file")]);
    case.remove("old");
    case.put("new@", "file");
    assert_eq!(case.violations(&["old->new"]), []);
    assert_eq!(
        case.violations(&["old", "new"]),
        [at("new", Rule::NewLink)],
        "a declared addition is no rename"
    );
    case.put("old@", "file");
    assert_eq!(case.violations(&["old->new"]), [at("new", Rule::NewLink)], "a copy is no rename");
}

#[test]
fn what_a_link_points_to_is_judged_without_following_it() {
    use TargetFault::{Absolute, EntersGit, Escapes, Form, Root, Traverses};
    let case = Case::new(&[("dir/link@", "file"), ("other@", "dir"), ("a/b/c", "x")]);
    for (target, fault) in [
        ("file", None),
        ("../a/b/c", None),
        ("../nothing/there", None),
        ("./../a//b/", None),
        ("/etc/passwd", Some(Absolute)),
        ("C:/x", Some(Absolute)),
        ("../../outside", Some(Escapes)),
        ("..", Some(Root)),
        ("../.", Some(Root)),
        ("../.git/config", Some(EntersGit)),
        ("../.GIT", Some(EntersGit)),
        ("../git~1/x", Some(EntersGit)),
        ("../.git./x", Some(EntersGit)),
        ("../.g\u{200c}it", Some(Form)),
        ("../other/x", Some(Traverses)),
        ("../other", Some(Traverses)),
        ("link/x", Some(Traverses)),
        ("a\\b", Some(Form)),
        ("a\nb", Some(Form)),
        ("a\u{202e}b", Some(Form)),
    ] {
        case.put("dir/link@", target);
        let expected: Vec<_> =
            fault.into_iter().map(|fault| at("dir/link", Rule::LinkTarget(fault))).collect();
        assert_eq!(case.violations(&["dir/link"]), expected, "{target:?}");
    }
}

#[test]
fn what_a_declared_link_points_to_must_not_change_with_it() {
    let files =
        [("l@", "dir"), ("dangling@", "nowhere"), ("dir/a", "x"), ("dirx", "x"), ("o", "x")];
    let case = Case::new(&files);
    case.put("dir/a", "2");
    case.put("dirx", "2");
    let expected = [at("dir/a", Rule::LinkTargetChanged)];
    assert_eq!(case.violations(&["l"]), expected);
    assert_eq!(case.violations(&["l", "dir/a"]), expected, "declared or not");
    assert_eq!(case.violations(&["dangling", "dir/a"]), []);
    let case = Case::new(&files);
    case.put("nowhere", "born");
    assert_eq!(case.violations(&["dangling"]), [at("nowhere", Rule::LinkTargetChanged)]);
    let case = Case::new(&files);
    case.put("l@", "o");
    case.put("o", "2");
    assert_eq!(case.violations(&["l"]), [at("o", Rule::LinkTargetChanged)], "the new target");
    case.put("o", "x");
    case.remove("dir/a");
    assert_eq!(case.violations(&["l"]), [at("dir/a", Rule::LinkTargetChanged)], "the old target");
}

#[test]
fn a_declared_link_through_a_link_is_refused_before_it_begins() {
    let case = Case::new(&[("a@", "b"), ("b@", "c"), ("c", "x"), ("up@", "../x")]);
    let check = |declared: &[&str]| {
        let targets = [("a", "b"), ("b", "c"), ("up", "../x")];
        let targets =
            targets.map(|(path, target)| (RepoBytes::from(path), RepoBytes::from(target))).into();
        audit::check_declared_links(&item(declared), &case.clone.tree, &targets)
            .into_iter()
            .map(|found| (found.path.lossy().into_owned(), found.rule))
            .collect::<Vec<_>>()
    };
    assert_eq!(check(&["a", "c"]), [at("a", Rule::LinkUnknown)]);
    assert_eq!(check(&["b", "up"]), []);
}

#[test]
fn names_that_git_takes_for_its_own_are_found() {
    for name in [
        ".git",
        ".GIT",
        ".Git",
        ".git ",
        ".git.",
        ".git. .",
        "git~1",
        "GIT~1",
        "git~1.",
        ".git:x",
        ".git::$INDEX_ALLOCATION",
        ".g\u{200c}it",
        ".git\u{feff}",
        "a\\.git",
        ".git\\x",
        "\u{200d}.git",
    ] {
        assert!(audit::is_dot_git(name.as_bytes()), "{name:?}");
    }
    for name in [".gitignore", "git", ".git2", "git~2", "a.git", "..git", " .git", ".g it"] {
        assert!(!audit::is_dot_git(name.as_bytes()), "{name:?}");
    }
}

#[test]
fn what_is_no_content_is_refused() {
    let case = Case::new(&[("a", "x"), ("sub/b", "x"), (".gitignore", "ignored\n")]);
    let run = |args: [&str; 2]| {
        let mut command = crate::process::command(&case.world.context, args[0], &case.folder);
        assert!(command.arg(args[1]).status().expect("it starts").success());
    };
    run(["mkfifo", "pipe"]);
    run(["mkfifo", "ignored"]);
    std::os::unix::net::UnixListener::bind(case.folder.join("socket")).expect("a socket");
    case.put("sub/.git/config", "[core]\n\tfsmonitor = touch /tmp/owned\n");
    case.put("tree/.GIT/x", "x");
    case.put("sub/git~1", "x");
    std::fs::hard_link(case.world.root().join("a"), case.folder.join("hard")).expect("a link");
    std::fs::hard_link(case.folder.join("a"), case.folder.join("both")).expect("a link");
    assert_eq!(
        case.violations(&["a"]),
        [
            at("hard", Rule::HardLink),
            at("pipe", Rule::SpecialFile),
            at("socket", Rule::SpecialFile),
            at("sub/.git", Rule::NestedRepository),
            at("sub/git~1", Rule::DotGit),
            at("tree/.GIT", Rule::DotGit),
        ]
    );
}

#[test]
fn paths_that_no_plan_can_name_are_refused_when_they_are_new() {
    use std::os::unix::ffi::OsStrExt as _;
    let case = Case::new(&[("old\nname", "x")]);
    case.put("old\nname", "2");
    assert_eq!(case.violations(&[]), [], "the repository had it before");
    case.put("new\nname", "x");
    case.put("back\\slash", "x");
    case.put("C:x", "x");
    case.put("hidden\u{200b}", "x");
    let raw = case.folder.join(std::ffi::OsStr::from_bytes(b"raw\xff"));
    crate::stage::write_scratch(&raw, b"x").expect("a file");
    let found = case.violations(&[]);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found.iter().all(|(_, rule)| *rule == Rule::PathForm), "{found:?}");
    let (audit, _) = case.audit(&item(&[]));
    let lines: Vec<_> = audit.violations.iter().map(audit::Violation::line).collect();
    assert!(lines.iter().any(|line| line.starts_with("\"raw\\xff\": ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("\"new␤name\": ")), "{lines:?}");
}

#[test]
fn submodules_stay_as_they_are() {
    let case = Case::new(&[("a", "x")]);
    let id = case.head.clone();
    case.world.git(["update-index", "--add", "--cacheinfo", &format!("160000,{id},sub")]);
    case.world.git(["commit", "-q", "-m", "a submodule"]);
    let head = case.world.commit_id("main");
    let repository = case.world.repository();
    let objects = Objects::open(repository.git()).expect("objects");
    let folder = case.world.root().with_file_name("with-submodule");
    let clone = workspace::make(&repository, &objects, &head, &folder).expect("a clone");
    drop((repository, objects));
    let case = Case { world: case.world, folder, head, clone };
    assert_eq!(case.violations(&[]), []);
    std::fs::remove_dir(case.folder.join("sub")).expect("an empty folder");
    assert_eq!(case.violations(&[]), [], "git keeps no empty folders");
    case.put("sub/x", "x");
    assert_eq!(case.violations(&[]), [at("sub", Rule::SubmoduleContent)]);
    std::fs::remove_dir_all(case.folder.join("sub")).expect("a folder");
    case.put("sub", "a file");
    assert_eq!(case.violations(&[]), [at("sub", Rule::Submodule)]);
}

#[test]
fn there_is_a_most_of_changes_and_of_text_in_paths() {
    let case = Case::new(&[("a", "x")]);
    for n in 0..10_000 {
        case.put(&format!("many/{n}"), "x");
    }
    assert_eq!(case.violations(&[]), []);
    case.put("one-more", "x");
    assert_eq!(case.violations(&[]), [at("", Rule::TooManyChanges)]);
    let case = Case::new(&[("a", "x")]);
    let long = "x".repeat(250);
    for n in 0..2_000 {
        case.put(&format!("{long}/{n}"), "x");
    }
    assert_eq!(case.violations(&[]), [at("", Rule::TooMuchPathText)]);
}
