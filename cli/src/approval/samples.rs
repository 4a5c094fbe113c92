//! Small links and plans for the tests of this room.

use std::collections::HashMap;

use codeboost_schema::bytes::RepoBytes;
use codeboost_schema::ids::{CommitId, Digest, ItemId, ObjectId, Uuid};
use codeboost_schema::link::{
    Body, Change, DiffSettings, FileEntry, FileStatus, Link, Op, PlanRef, Row, Scope, Segment,
    Side, SideKind, Tag, Text, segment_key,
};
use codeboost_schema::plan::{Check, CheckKind, DeclaredFile, FileKind, Item, Plan};

use crate::approval::fingerprint::Binding;

#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) plan: Plan,
    pub(crate) link: Link,
}

pub(crate) fn item(id: &str) -> ItemId {
    ItemId::parse(id).expect("an item id")
}

pub(crate) fn row(text: &str) -> Row {
    match text {
        "ambiguous" => Row::Ambiguous,
        "unplanned" => Row::Unplanned,
        id => Row::Item(item(id)),
    }
}

pub(crate) fn uuid(n: u32) -> Uuid {
    Uuid::parse(&format!("00000000-0000-4000-8000-{n:012}")).expect("a UUID")
}

pub(crate) fn commit(n: u32) -> CommitId {
    CommitId::parse(&format!("{n:040x}")).expect("a commit id")
}

pub(crate) fn object(n: u32) -> ObjectId {
    ObjectId::parse(&format!("{n:040x}")).expect("an object id")
}

pub(crate) fn binding(item: &ItemId) -> Binding {
    Binding { repository: uuid(1), task: uuid(2), plan: uuid(3), item: item.clone() }
}

/// A plan whose items are `(id, declared files, dependencies)`.
pub(crate) fn plan(items: &[(&str, &[&str], &[&str])]) -> Plan {
    Plan {
        schema_version: 1,
        issue: 412,
        revision: 1,
        summary: "A sample.".into(),
        items: items
            .iter()
            .map(|(id, files, depends_on)| Item {
                id: item(id),
                title: format!("Title of {id}"),
                intent: format!("Intent of {id}"),
                files: files
                    .iter()
                    .map(|path| DeclaredFile {
                        path: (*path).into(),
                        kind: FileKind::Edit,
                        renamed_from: None,
                        change: "Changes.".into(),
                    })
                    .collect(),
                acceptance: vec![Check { kind: CheckKind::Cmd, text: "make test".into() }],
                depends_on: depends_on.iter().map(|id| item(id)).collect(),
            })
            .collect(),
        questions: Vec::new(),
    }
}

/// A side of a file with the object id `n`.
pub(crate) fn side(mode: &str, n: u32) -> Side {
    Side {
        mode: mode.into(),
        kind: SideKind::Blob,
        oid: object(n),
        size: Some(1),
        lines: 1,
        binary: false,
        target: None,
    }
}

pub(crate) fn file(path: &str, old_path: Option<&str>) -> FileEntry {
    FileEntry {
        path: path.into(),
        old_path: old_path.map(RepoBytes::from),
        status: match old_path {
            None => FileStatus::Added,
            Some(old) if old == path => FileStatus::Modified,
            Some(_) => FileStatus::Renamed,
        },
        similarity: None,
        old: old_path.map(|_| side("100644", 1)),
        new: Some(side("100644", 2)),
    }
}

/// Lines of one operation: `(row, owners, file, sign, first line, context, text)`.
pub(crate) fn text(
    row_name: &str,
    owners: &[&str],
    file: u32,
    op: Op,
    start: u64,
    context: &str,
    lines: &str,
) -> Segment {
    Segment {
        id: 0,
        file,
        row: row(row_name),
        owners: owners.iter().map(|id| item(id)).collect(),
        foreign: row_name == "unplanned",
        scope: match row_name {
            "ambiguous" => Scope::Ambiguous,
            "unplanned" => Scope::Unplanned,
            _ => Scope::In,
        },
        scope_owner: Vec::new(),
        shared_file: Vec::new(),
        commits: vec![commit(7)],
        tags: Vec::new(),
        key: Digest::of(b"not yet"),
        coarse: false,
        body: Body::Text(Text {
            op,
            start,
            lines: lines.split_inclusive('\n').count() as u64,
            text: lines.into(),
            context: context.into(),
            hunk: 0,
            shares_hunk_with: Vec::new(),
        }),
    }
}

/// A file segment of an item.
pub(crate) fn change(row_name: &str, file: u32, change: Change) -> Segment {
    let owners: &[&str] = if row_name.starts_with('P') { &[row_name] } else { &[] };
    Segment { body: Body::File(change), ..text(row_name, owners, file, Op::Add, 1, "", "") }
}

pub(crate) fn link(files: Vec<FileEntry>, segments: Vec<Segment>) -> Link {
    let mut link = Link {
        schema_version: 1,
        base: commit(1),
        head: commit(2),
        plan: PlanRef { issue: 412, revision: 1, digest: Digest::of(b"plan") },
        diff: DiffSettings {
            algorithm: "histogram".into(),
            renames: 50,
            rename_limit: 1000,
            renames_skipped: false,
        },
        rows: Vec::new(),
        files,
        segments,
    };
    renumber(&mut link);
    link
}

/// Gives every segment its id and its key by the rule for copies.
pub(crate) fn renumber(link: &mut Link) {
    let content = |link: &Link, segment: &Segment| {
        segment_key(&link.files[segment.file as usize], &segment.body, 0, 0)
    };
    let contents: Vec<_> = link.segments.iter().map(|segment| content(link, segment)).collect();
    let mut copies: HashMap<_, u64> = HashMap::new();
    for key in &contents {
        *copies.entry(key.clone()).or_default() += 1;
    }
    let mut seen: HashMap<_, u64> = HashMap::new();
    for (n, content) in contents.into_iter().enumerate() {
        let copy = seen.entry(content.clone()).or_default();
        *copy += 1;
        let file = &link.files[link.segments[n].file as usize];
        link.segments[n].key = segment_key(file, &link.segments[n].body, *copy, copies[&content]);
        link.segments[n].id = u32::try_from(n).expect("few segments");
    }
}

pub(crate) fn segment_of<'a>(link: &'a Link, row: &Row) -> &'a Segment {
    link.segments.iter().find(|segment| segment.row == *row).expect("a segment on that row")
}

/// P1 edits `a.rs`, P2 depends on P1 and edits `b.rs`, P3 stands alone and edits `b.rs`; an
/// unplanned line in `a.rs`, an ambiguous pair of P1 and P3 in `b.rs`, a mode change of P2.
pub(crate) fn sample() -> Sample {
    let plan = plan(&[("P1", &["a.rs"], &[]), ("P2", &["b.rs"], &["P1"]), ("P3", &["b.rs"], &[])]);
    let mut mode = file("b.rs", Some("b.rs"));
    mode.new = Some(side("100755", 2));
    let mut out = text("P1", &["P1"], 1, Op::Add, 30, "fn g() {", "    stray();\n");
    out.scope = Scope::Out;
    out.tags.push(Tag::OutOfScope);
    let link = link(
        vec![file("a.rs", Some("a.rs")), mode],
        vec![
            text("P1", &["P1"], 0, Op::Remove, 3, "fn f() {", "    old();\n"),
            text("P1", &["P1"], 0, Op::Add, 3, "fn f() {", "    new();\n    more();\n"),
            text("unplanned", &[], 0, Op::Add, 9, "fn f() {", "    sneaked();\n"),
            change("P2", 1, Change { mode: true, ..Change::default() }),
            text("ambiguous", &["P1", "P3"], 1, Op::Add, 4, "fn g() {", "    both();\n"),
            text("P2", &["P2"], 1, Op::Add, 20, "fn h() {", "    two();\n"),
            out,
        ],
    );
    Sample { plan, link }
}

/// Two unplanned segments with equal content in one file.
pub(crate) fn two_equal_strays() -> Sample {
    let stray = |start| text("unplanned", &[], 0, Op::Add, start, "", "}\n");
    Sample {
        plan: plan(&[("P1", &["a.rs"], &[])]),
        link: link(vec![file("a.rs", Some("a.rs"))], vec![stray(1), stray(9)]),
    }
}
