//! Proves a link: its segments put back together are exactly both sides of every file, and its
//! sums are the sums of its segments.
//!
//! `check_file` is asked for every file that `link` writes; [`verify_link`] asks it again, later,
//! of a `link.json` and the repository alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use codeboost_schema::link::{
    Body, FileEntry, FileStatus, Link, Op, Row, RowSummary, Segment, Side, SideKind, segment_key,
};

use crate::link::history::{BlobError, Blobs, FinalDiff, Version};
use crate::link::lines::{self, Lines};

/// Why a link is not what it says.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file does not come together from its segments.
    #[error("{path}: {what}")]
    File {
        /// The path, for people.
        path: String,
        /// What does not fit.
        what: String,
    },
    /// The list of rows, files or segments is not in order, or its sums are wrong.
    #[error("{0}")]
    Sums(String),
    /// A content can't be read.
    #[error(transparent)]
    Blob(#[from] BlobError),
}

/// Checks one file: `old` and `new` are the contents of its regular sides.
///
/// # Errors
/// [`VerifyError::File`] with the first thing that does not fit.
pub(crate) fn check_file(
    entry: &FileEntry,
    segments: &[&Segment],
    old: Option<&Lines>,
    new: Option<&Lines>,
) -> Result<(), VerifyError> {
    check(entry, segments, old, new)
        .map_err(|what| VerifyError::File { path: entry.path.lossy().into_owned(), what })
}

fn check(
    entry: &FileEntry,
    segments: &[&Segment],
    old: Option<&Lines>,
    new: Option<&Lines>,
) -> Result<(), String> {
    let mut n_file_segments = 0;
    let mut texts = Vec::new();
    for (n, segment) in segments.iter().enumerate() {
        match &segment.body {
            Body::File(_) if n > 0 => return Err("its file segment is not the first".into()),
            Body::File(_) => n_file_segments += 1,
            Body::Text(text) => texts.push(text),
        }
        if segment.commits.is_empty() {
            return Err(format!("segment {} has no commits", segment.id));
        }
    }
    check_side("old", entry.old.as_ref(), old)?;
    check_side("new", entry.new.as_ref(), new)?;
    let is_binary = |side: &Option<Side>| side.as_ref().is_some_and(|side| side.binary);
    let is_other =
        |side: &Option<Side>| side.as_ref().is_some_and(|side| side.kind != SideKind::Blob);
    if is_binary(&entry.old) || is_binary(&entry.new) {
        if !texts.is_empty() {
            return Err("a binary file has text segments".into());
        }
        if n_file_segments != 1 {
            return Err("a binary file lacks its file segment".into());
        }
        return Ok(());
    }
    if (is_other(&entry.old) || is_other(&entry.new) || entry.status == FileStatus::Renamed)
        && n_file_segments != 1
    {
        return Err("its file segment is missing".into());
    }
    let empty = Lines::of(Arc::default());
    let Lines { text: old, starts: old_starts } = old.unwrap_or(&empty);
    let Lines { text: new, starts: new_starts } = new.unwrap_or(&empty);
    // Both sides are walked at once: what is not removed must come next on the new side.
    let (mut i, mut j) = (0, 0);
    let mut rest = texts.into_iter().peekable();
    let mut last = (0, 0);
    loop {
        let next = rest.next();
        let (until_old, until_new) = match next {
            None => (old_starts.n_lines(), new_starts.n_lines()),
            Some(text) => {
                let start = (text.start as usize).checked_sub(1).ok_or("a line number is 0")?;
                match text.op {
                    Op::Remove => (start, j + start.checked_sub(i).ok_or("segments overlap")?),
                    Op::Add => (i + start.checked_sub(j).ok_or("segments overlap")?, start),
                }
            }
        };
        if until_old > old_starts.n_lines() || until_new > new_starts.n_lines() {
            return Err("a segment lies behind the end".into());
        }
        let same_old = old_starts.bytes(old, i..until_old.max(i));
        let same_new = new_starts.bytes(new, j..until_new.max(j));
        if same_old != same_new || until_old < i || until_new < j {
            return Err(format!(
                "unchanged lines from old line {} and new line {} on differ",
                i + 1,
                j + 1
            ));
        }
        (i, j) = (until_old, until_new);
        let Some(text) = next else { return Ok(()) };
        let place = (i, j);
        if place < last {
            return Err("segments are not in order".into());
        }
        last = place;
        let n = text.lines as usize;
        let (side, starts, at) = match text.op {
            Op::Remove => (old, old_starts, &mut i),
            Op::Add => (new, new_starts, &mut j),
        };
        if n == 0 || *at + n > starts.n_lines() {
            return Err("a segment is empty or lies behind the end".into());
        }
        if starts.bytes(side, *at..*at + n) != text.text.as_bytes() {
            return Err(format!("the lines from {} on are not what the segment says", text.start));
        }
        *at += n;
    }
}

fn check_side(name: &str, side: Option<&Side>, content: Option<&Lines>) -> Result<(), String> {
    let side = side.filter(|side| side.kind == SideKind::Blob);
    let (side, Lines { text, starts }) = match (side, content) {
        (Some(side), Some(content)) => (side, content),
        (Some(_), None) => return Err(format!("there is no {name} side")),
        (None, Some(_)) => return Err(format!("there is a {name} side")),
        (None, None) => return Ok(()),
    };
    let is_binary = lines::is_binary(text);
    let n_lines = if is_binary { 0 } else { starts.n_lines() as u64 };
    if side.size != Some(text.len() as u64) || side.binary != is_binary || side.lines != n_lines {
        return Err(format!("size, lines or kind of its {name} side are wrong"));
    }
    Ok(())
}

fn check_keys(entry: &FileEntry, segments: &[&Segment]) -> Result<(), String> {
    let name = |segment: &Segment| match &segment.body {
        Body::Text(text) => Some((text.op, text.text.clone())),
        Body::File(_) => None,
    };
    let mut copies: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for segment in segments {
        copies.entry(name(segment)).or_default().1 += 1;
    }
    for segment in segments {
        let count = copies.entry(name(segment)).or_default();
        count.0 += 1;
        if segment_key(entry, &segment.body, count.0, count.1) != segment.key {
            return Err(format!("the key of segment {} is wrong", segment.id));
        }
    }
    Ok(())
}

/// The rows that follow from segments: items in the order of `items`, then the other two.
#[must_use]
pub fn sums(rows: &[Row], segments: &[Segment]) -> Vec<(Row, u64, u64, u64)> {
    let mut sums: BTreeMap<&Row, (u64, u64, u64)> = BTreeMap::new();
    for segment in segments {
        let sum = sums.entry(&segment.row).or_default();
        sum.0 += 1;
        if let Body::Text(text) = &segment.body {
            match text.op {
                Op::Add => sum.1 += text.lines,
                Op::Remove => sum.2 += text.lines,
            }
        }
    }
    rows.iter()
        .map(|row| {
            let (changes, added, removed) = sums.get(row).copied().unwrap_or_default();
            (row.clone(), changes, added, removed)
        })
        .collect()
}

/// Checks a whole link against the contents of the repository.
///
/// # Errors
/// [`VerifyError`] with the first thing that does not fit, or that can't be read.
pub fn verify_link(link: &Link, blobs: &dyn Blobs) -> Result<(), VerifyError> {
    let fail = |what: String| Err(VerifyError::Sums(what));
    let wanted: Vec<Row> = link.rows.iter().map(|row| row.row.clone()).collect();
    let found = |row: &RowSummary| (row.row.clone(), row.changes, row.added, row.removed);
    if sums(&wanted, &link.segments) != link.rows.iter().map(found).collect::<Vec<_>>() {
        return fail("the sums of a row are not those of its segments".into());
    }
    if wanted.iter().rev().take(2).ne([&Row::Unplanned, &Row::Ambiguous]) {
        return fail("the last rows are not ambiguous and unplanned".into());
    }
    if let Some(stray) = link.segments.iter().find(|segment| !wanted.contains(&segment.row)) {
        return fail(format!("segment {} is on a row that is not listed", stray.id));
    }
    if link.files.windows(2).any(|pair| pair[0].path >= pair[1].path) {
        return fail("the files are not in order".into());
    }
    if link.segments.iter().zip(0..).any(|(segment, id)| segment.id != id) {
        return fail("the ids of segments do not count from 0".into());
    }
    if link.segments.windows(2).any(|pair| pair[0].file > pair[1].file) {
        return fail("the segments are not in the order of files".into());
    }
    let mut reader = blobs.reader();
    let mut rest = link.segments.iter().peekable();
    for (entry, n) in link.files.iter().zip(0..) {
        let mut mine = Vec::new();
        while let Some(segment) = rest.next_if(|segment| segment.file == n) {
            mine.push(segment);
        }
        let mut content = |side: &Option<Side>| match side {
            Some(side) if side.kind == SideKind::Blob => {
                reader.blob(&side.oid).map(Lines::of).map(Some)
            }
            _ => Ok(None),
        };
        let (old, new) = (content(&entry.old)?, content(&entry.new)?);
        check_file(entry, &mine, old.as_ref(), new.as_ref())?;
        check_keys(entry, &mine)
            .map_err(|what| VerifyError::File { path: entry.path.lossy().into_owned(), what })?;
    }
    if rest.next().is_some() {
        return fail("a segment belongs to no file".into());
    }
    Ok(())
}

/// Checks that a link shows exactly git's diff: the same files, the same removed and added lines.
///
/// # Errors
/// [`VerifyError`] with the first difference.
pub fn verify_diff(link: &Link, diff: &FinalDiff) -> Result<(), VerifyError> {
    let mut rest = link.segments.iter().peekable();
    if link.files.len() != diff.files.len() {
        let what = format!("{} files, but git's diff has {}", link.files.len(), diff.files.len());
        return Err(VerifyError::Sums(what));
    }
    for ((entry, file), n) in link.files.iter().zip(&diff.files).zip(0..) {
        let fail = |what: &str| {
            let path = entry.path.lossy().into_owned();
            Err(VerifyError::File { path, what: what.to_owned() })
        };
        let oids = |side: &Option<Side>| side.as_ref().map(|side| side.oid.clone());
        let wanted = |side: &Option<Version>| side.as_ref().map(|side| side.oid.clone());
        if entry.path != file.change.path
            || entry.status != file.status
            || oids(&entry.old) != wanted(&file.change.old)
            || oids(&entry.new) != wanted(&file.change.new)
        {
            return fail("git's diff has another file here");
        }
        let mut shown = (Vec::new(), Vec::new());
        while let Some(segment) = rest.next_if(|segment| segment.file == n) {
            let Body::Text(text) = &segment.body else { continue };
            let lines = text.start as u32 - 1..(text.start + text.lines) as u32 - 1;
            match text.op {
                Op::Remove => shown.0.extend(lines),
                Op::Add => shown.1.extend(lines),
            }
        }
        if file.status == FileStatus::Type {
            continue;
        }
        let mut wanted = (Vec::new(), Vec::new());
        let Some(blocks) = &file.blocks else { return fail("git's diff of it is not known") };
        for block in blocks {
            wanted.0.extend(block.olds().map(|line| line as u32));
            wanted.1.extend(block.news().map(|line| line as u32));
        }
        if shown != wanted {
            return fail("git's diff has other lines");
        }
    }
    Ok(())
}
