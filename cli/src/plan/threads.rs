//! Review threads of a plan: what they are now, replayed from records that are only ever added.
//!
//! A record is a recorded decision of one of four types. Whatever can't be replayed is left out
//! and named, and the rest stands: one damaged record never hides the others.

use codeboost_schema::decisions::{Action, MAX_QUOTE_CHARS, MAX_TEXT_CHARS};
use codeboost_schema::ids::{Digest, Uuid};
use serde::Serialize;

use crate::approval::policy::Reviewer;

/// The types of decisions that are records of threads.
pub const KINDS: [&str; 4] = ["plan_comment", "plan_reply", "plan_resolve", "plan_reopen"];

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The decision's id, as it is stored.
    pub id: String,
    /// The decision without its id, in JSON.
    pub decision: String,
    /// RFC 3339 UTC.
    pub at: String,
    /// Who, for people.
    pub by: String,
}

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// Its id.
    pub thread: Uuid,
    /// The text that it is about, for ever.
    pub snapshot: Digest,
    /// First and last line in that text; from 1, inclusive.
    pub lines: (u64, u64),
    /// What was selected there.
    pub quote: Option<String>,
    /// The comment that opened it.
    pub body: String,
    /// RFC 3339 UTC.
    pub at: String,
    /// Who opened it, for people.
    pub by: String,
    /// Oldest first.
    pub replies: Vec<Reply>,
    /// Whether a person said that it is done.
    pub resolved: bool,
}

/// A reply in a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// What was said.
    pub body: String,
    /// RFC 3339 UTC.
    pub at: String,
    /// Who, for people.
    pub by: String,
}

/// A record that is left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Its id, as it is stored.
    pub record: String,
    /// Why.
    pub why: String,
}

/// All threads of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Threads {
    /// In the order in which they were opened.
    pub threads: Vec<Thread>,
    /// What is left out, in the order of the records.
    pub skipped: Vec<Skipped>,
}

/// Who made a record, for people.
#[must_use]
pub fn by(reviewer: &Reviewer) -> String {
    match reviewer {
        Reviewer::Terminal(name) => name.clone(),
        Reviewer::Signed { name, .. } => format!("{name} (signed)"),
    }
}

/// Why a record can't follow on what is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No revision has this text.
    #[error("no revision of the plan has the text {0}")]
    Snapshot(Digest),
    /// There is no such thread on this text.
    #[error("there is no thread {0} on this text")]
    Thread(Uuid),
    /// A thread of that id is there already.
    #[error("a thread {0} is there already")]
    Taken(Uuid),
    /// The lines lie outside the text.
    #[error("lines {} to {} of a text with {n_lines}", lines.0, lines.1)]
    Lines {
        /// What was asked for.
        lines: (u64, u64),
        /// How many there are.
        n_lines: u64,
    },
    /// A text is too long.
    #[error("{found} characters, more than the {max} allowed")]
    TooLong {
        /// How many it has.
        found: usize,
        /// How many it may have.
        max: usize,
    },
    /// A text says nothing.
    #[error("there is no text")]
    Empty,
    /// The decision is no record of a thread.
    #[error("it is no record of a thread")]
    Kind,
}

impl Threads {
    /// Replays records, oldest first.
    ///
    /// `lines_of`: how many lines the text of that digest has; `None` when there is no such text.
    #[must_use]
    pub fn replay(records: &[Record], lines_of: impl Fn(&Digest) -> Option<u64>) -> Self {
        let mut threads = Self::default();
        for record in records {
            let done = serde_json::from_str::<Action>(&record.decision)
                .map_err(|error| error.to_string())
                .and_then(|action| {
                    let (at, by) = (&record.at, &record.by);
                    threads.follow(&action, at, by, &lines_of).map_err(|error| error.to_string())
                });
            if let Err(why) = done {
                threads.skipped.push(Skipped { record: record.id.clone(), why });
            }
        }
        threads
    }

    /// Takes one more record. `at`, `by`: when and by whom.
    ///
    /// # Errors
    /// [`Refused`] when it can't follow; then nothing changes.
    pub fn follow(
        &mut self,
        action: &Action,
        at: &str,
        by: &str,
        lines_of: impl Fn(&Digest) -> Option<u64>,
    ) -> Result<(), Refused> {
        match action {
            Action::PlanComment { snapshot, lines, quote, thread, body } => {
                let n_lines =
                    lines_of(snapshot).ok_or_else(|| Refused::Snapshot(snapshot.clone()))?;
                if lines.0 == 0 || lines.0 > lines.1 || lines.1 > n_lines {
                    return Err(Refused::Lines { lines: *lines, n_lines });
                }
                if let Some(quote) = quote {
                    check_text(quote, MAX_QUOTE_CHARS)?;
                }
                check_text(body, MAX_TEXT_CHARS)?;
                if self.thread(thread).is_some() {
                    return Err(Refused::Taken(thread.clone()));
                }
                self.threads.push(Thread {
                    thread: thread.clone(),
                    snapshot: snapshot.clone(),
                    lines: *lines,
                    quote: quote.clone(),
                    body: body.clone(),
                    at: at.to_owned(),
                    by: by.to_owned(),
                    replies: Vec::new(),
                    resolved: false,
                });
            }
            Action::PlanReply { snapshot, thread, body } => {
                check_text(body, MAX_TEXT_CHARS)?;
                let reply = Reply { body: body.clone(), at: at.to_owned(), by: by.to_owned() };
                self.on(snapshot, thread, lines_of)?.replies.push(reply);
            }
            Action::PlanResolve { snapshot, thread } => {
                self.on(snapshot, thread, lines_of)?.resolved = true;
            }
            Action::PlanReopen { snapshot, thread } => {
                self.on(snapshot, thread, lines_of)?.resolved = false;
            }
            _ => return Err(Refused::Kind),
        }
        Ok(())
    }

    /// The thread of that id.
    #[must_use]
    pub fn thread(&self, id: &Uuid) -> Option<&Thread> {
        self.threads.iter().find(|thread| thread.thread == *id)
    }

    /// How many are not resolved, on any text.
    #[must_use]
    pub fn n_open(&self) -> u64 {
        self.threads.iter().filter(|thread| !thread.resolved).count() as u64
    }

    fn on(
        &mut self,
        snapshot: &Digest,
        id: &Uuid,
        lines_of: impl Fn(&Digest) -> Option<u64>,
    ) -> Result<&mut Thread, Refused> {
        if lines_of(snapshot).is_none() {
            return Err(Refused::Snapshot(snapshot.clone()));
        }
        let found = self.threads.iter_mut().find(|t| t.thread == *id && t.snapshot == *snapshot);
        found.ok_or_else(|| Refused::Thread(id.clone()))
    }
}

fn check_text(text: &str, max: usize) -> Result<(), Refused> {
    let found = text.chars().count();
    if found > max {
        Err(Refused::TooLong { found, max })
    } else if text.trim().is_empty() {
        Err(Refused::Empty)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uuid(n: u32) -> Uuid {
        Uuid::parse(&format!("00000000-0000-4000-8000-{n:012}")).expect("a UUID")
    }

    fn text() -> Digest {
        Digest::of(b"text")
    }

    fn comment(n: u32, lines: (u64, u64)) -> Action {
        Action::PlanComment {
            snapshot: text(),
            lines,
            quote: Some("Read the key".into()),
            thread: uuid(n),
            body: "Which key?".into(),
        }
    }

    fn resolve(n: u32) -> Action {
        Action::PlanResolve { snapshot: text(), thread: uuid(n) }
    }

    fn reopen(n: u32) -> Action {
        Action::PlanReopen { snapshot: text(), thread: uuid(n) }
    }

    fn reply(n: u32, body: &str) -> Action {
        Action::PlanReply { snapshot: text(), thread: uuid(n), body: body.into() }
    }

    fn replay(decisions: &[String]) -> Threads {
        let records: Vec<_> = decisions
            .iter()
            .enumerate()
            .map(|(n, decision)| Record {
                id: format!("record {n}"),
                decision: decision.clone(),
                at: format!("2026-11-30T12:00:{n:02}Z"),
                by: "me".into(),
            })
            .collect();
        Threads::replay(&records, |digest| (*digest == text()).then_some(9))
    }

    fn json(action: &Action) -> String {
        serde_json::to_string(action).expect("JSON")
    }

    #[test]
    fn only_resolving_resolves_and_the_last_word_counts() {
        let mut records = vec![json(&comment(1, (2, 3))), json(&reply(1, "The header."))];
        let threads = replay(&records);
        assert_eq!((threads.n_open(), threads.threads[0].replies.len()), (1, 1));
        for (action, is_resolved) in
            [(resolve(1), true), (resolve(1), true), (reply(1, "x"), true), (reopen(1), false)]
        {
            records.push(json(&action));
            let threads = replay(&records);
            assert_eq!(threads.threads[0].resolved, is_resolved, "{action:?}");
            assert_eq!(threads.skipped, []);
        }
        assert_eq!(replay(&records), replay(&records));
    }

    #[test]
    fn what_is_malformed_or_dangles_is_skipped_and_named_and_the_rest_stands() {
        let other = Action::PlanResolve { snapshot: Digest::of(b"other"), thread: uuid(1) };
        let threads = replay(&[
            json(&resolve(1)),
            json(&comment(1, (1, 9))),
            "{".into(),
            r#"{"type":"plan_comment"}"#.into(),
            r#"{"type":"plan_later","v":2}"#.into(),
            r#"{"type":"merge"}"#.into(),
            json(&comment(1, (1, 1))),
            json(&comment(2, (0, 1))),
            json(&comment(2, (3, 2))),
            json(&comment(2, (3, 10))),
            json(&reply(2, "nobody")),
            json(&reply(1, " ")),
            json(&reply(1, &"é".repeat(4001))),
            json(&other),
            json(&reply(1, &"é".repeat(4000))),
        ]);
        assert_eq!(threads.threads.len(), 1);
        assert_eq!((threads.threads[0].replies.len(), threads.threads[0].resolved), (1, false));
        let skipped: Vec<_> =
            threads.skipped.iter().map(|s| (&s.record[7..], s.why.as_str())).collect();
        insta::assert_debug_snapshot!(skipped);
    }
}
