//! Review threads and decisions about plans: from the terminal, and from the page of a plan.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::plan_store::{at_r3, import, json, repo, run, show, suggest};
use crate::support::{Done, TestEnv};

/// What the page of a plan offers.
pub(crate) struct PlanPage {
    pub(crate) html: String,
    pub(crate) form: Value,
    pub(crate) offered: Value,
    pub(crate) index: Value,
}

pub(crate) fn page(env: &TestEnv) -> PlanPage {
    let rendered = json(env, &["plan", "render", "412"]);
    let html = std::fs::read_to_string(rendered["path"].as_str().unwrap()).unwrap();
    let element = |start: &str| -> Value {
        let text = html.split(start).nth(1).unwrap().split("</script>").next().unwrap();
        serde_json::from_str(text).unwrap()
    };
    let form = element("<script id=\"form\" type=\"application/json\">");
    let index = element("<script class=\"data\" id=\"index\" type=\"application/json\">");
    let payload = STANDARD.decode(form["payload_b64"].as_str().unwrap()).unwrap();
    let offered = serde_json::from_slice(&payload).unwrap();
    PlanPage { html, form, offered, index }
}

fn uuid(n: u64) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

/// Applies decisions that were made on that page, numbered from `first`: a line for each.
fn apply(env: &TestEnv, page: &PlanPage, first: u64, decisions: &[Value]) -> (Vec<String>, Done) {
    let decisions: Vec<Value> = (first..)
        .zip(decisions)
        .map(|(n, decision)| {
            let mut decision = decision.clone();
            decision["id"] = json!(uuid(n));
            decision
        })
        .collect();
    let file = json!({
        "schema_version": 1, "form": page.form, "saved_at": "2026-11-30T12:30:00Z",
        "reviewer": null, "shown": {}, "decisions": decisions,
    });
    env.write("decisions.json", file.to_string());
    let done = run(env, &["apply", "../decisions.json", "--format", "json"]);
    let answers: Value = serde_json::from_str(&done.stdout).unwrap_or_default();
    let mut lines = Vec::new();
    for word in ["applied", "already", "refused"] {
        for one in answers[word].as_array().into_iter().flatten() {
            let text = |key: &str| one[key].as_str().map(str::to_owned);
            let reason = match (text("reason"), text("cause")) {
                (Some(reason), Some(cause)) => format!(" {reason}/{cause}"),
                (Some(reason), None) => format!(" {reason}"),
                (None, _) => String::new(),
            };
            lines.push(format!("{word} {}{reason}", text("type").unwrap()));
        }
    }
    (lines, done)
}

fn comment(page: &PlanPage, thread: u64, lines: [u64; 2], body: &str) -> Value {
    json!({
        "type": "plan_comment", "snapshot": page.index["snapshot"], "lines": lines,
        "thread": uuid(thread), "body": body,
    })
}

fn threads(env: &TestEnv) -> Value {
    json(env, &["plan", "threads", "412", "--all"])
}

#[test]
fn threads_are_opened_answered_resolved_and_reopened_at_the_terminal() {
    let env = repo();
    import(&env);
    let quote = "TestRetryKeepsKey fails two attempts";
    let done = run(
        &env,
        &["plan", "comment", "412", "--quote", quote, "--text", "Why two?\nIt could be three."],
    );
    assert_eq!(done.code, 0, "{done}");
    let found = threads(&env);
    let thread = &found["threads"][0]["thread"];
    let id = thread["thread"].as_str().unwrap();
    assert!(done.stdout.ends_with(&format!("thread {id}\n")), "{done}");
    let text = run(&env, &["plan", "show", "412", "--as", "text"]).stdout;
    let line = thread["lines"][0].as_u64().unwrap();
    let shown = text.lines().nth(usize::try_from(line - 1).unwrap()).unwrap();
    assert!(shown.starts_with(&format!("{line:>4}  ")) && shown.contains(quote), "{shown}");

    let short = &id[..8];
    for args in [
        &["plan", "reply", "412", short, "--text", "Two are enough."][..],
        &["plan", "resolve", "412", short],
    ] {
        let done = run(&env, args);
        assert_eq!(done.code, 0, "{done}");
    }
    assert_eq!(threads(&env)["open"], json!(0));
    assert!(run(&env, &["plan", "threads", "412"]).stdout.ends_with("0 of 1 thread open\n"));
    let again = run(&env, &["plan", "resolve", "412", short]);
    assert_eq!((again.code, again.stdout.as_str()), (0, "the thread is resolved already\n"));
    assert_eq!(run(&env, &["plan", "reopen", "412", short]).code, 0);
    let said = run(&env, &["plan", "threads", "412"]);
    insta::assert_snapshot!(env.redact(&said.to_string()));

    for (args, code) in [
        (&["plan", "comment", "412", "--text", "x"][..], 2),
        (&["plan", "comment", "412", "--quote", "nowhere", "--text", "x"], 2),
        (&["plan", "comment", "412", "--quote", ">", "--text", "x"], 2),
        (&["plan", "comment", "412", "--lines", "1-9999", "--text", "x"], 3),
        (&["plan", "comment", "412", "--lines", "1", "--text", " "], 3),
        (&["plan", "reply", "412", "0000", "--text", "x"], 2),
        (&["plan", "reply", "412", "00000000", "--text", "x"], 1),
    ] {
        let done = run(&env, args);
        assert_eq!(done.code, code, "{args:?}: {done}");
    }
    assert_eq!(threads(&env)["threads"].as_array().unwrap().len(), 1);
}

#[test]
fn a_thread_stays_on_its_own_text_and_is_listed_on_later_revisions() {
    let env = repo();
    import(&env);
    let first = page(&env);
    let (lines, done) = apply(&env, &first, 1, &[comment(&first, 90, [3, 3], "Both?")]);
    assert_eq!(lines, ["applied plan_comment"], "{done}");
    env.write(
        "plan.yaml",
        include_str!("../../schema/examples/plan-412-r3.yaml").replacen(
            "title: Count attempts",
            "title: Count every attempt",
            1,
        ),
    );
    import(&env);
    let second = page(&env);
    assert_ne!(first.index["snapshot"], second.index["snapshot"]);
    let thread = &second.index["threads"][0];
    assert_eq!(
        (&thread["revision"], &thread["snapshot"]),
        (&json!("r1"), &first.index["snapshot"])
    );
    let context = thread["context"].as_str().unwrap();
    assert!(context.contains("Send one idempotency key"), "{context}");

    // On the old page comments and answers in threads still count; the new text is another one.
    let other =
        json!({"type": "plan_resolve", "snapshot": second.index["snapshot"], "thread": uuid(90)});
    let mine =
        json!({"type": "plan_resolve", "snapshot": first.index["snapshot"], "thread": uuid(90)});
    let late = comment(&first, 91, [1, 1], "On the old text.");
    let (lines, done) = apply(&env, &first, 10, &[other, mine, late]);
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(
        lines,
        ["applied plan_resolve", "applied plan_comment", "refused plan_resolve unknown-thread"]
    );
}

#[test]
fn what_a_page_decides_about_a_plan_is_recorded_and_what_is_wrong_is_refused_alone() {
    let env = repo();
    import(&env);
    let page = page(&env);
    assert_eq!(page.offered["head"], Value::Null);
    assert_eq!(page.offered["threads"]["snapshot"], page.index["snapshot"]);
    let n_lines = run(&env, &["plan", "show", "412", "--as", "text"]).stdout.lines().count() as u64;
    let unknown = format!("sha256:{}", "0".repeat(64));
    let snapshot = &page.index["snapshot"];
    let mut elsewhere = comment(&page, 96, [1, 1], "x");
    elsewhere["snapshot"] = json!(unknown);
    let mut quoted = comment(&page, 97, [1, 1], "x");
    quoted["quote"] = json!("q".repeat(501));
    let decisions = [
        comment(&page, 90, [1, n_lines], "All of it."),
        json!({"type": "plan_reply", "snapshot": snapshot, "thread": uuid(90), "body": "Really."}),
        comment(&page, 90, [1, 1], "The same thread."),
        comment(&page, 91, [1, n_lines + 1], "Past the end."),
        comment(&page, 92, [1, 1], &"é".repeat(4000)),
        comment(&page, 93, [1, 1], &"é".repeat(4001)),
        comment(&page, 94, [1, 1], "  "),
        elsewhere,
        quoted,
        json!({"type": "plan_reply", "snapshot": snapshot, "thread": uuid(99), "body": "x"}),
        json!({"type": "plan_resolve", "snapshot": snapshot, "thread": uuid(92)}),
        json!({"type": "answer_question", "question": 1, "text": "Yes."}),
        json!({"type": "answer_question", "question": 2, "text": "Which?"}),
        json!({"type": "apply_suggestion", "suggestion": uuid(1)}),
        json!({"type": "approve", "item": "P1"}),
    ];
    let (lines, done) = apply(&env, &page, 1, &decisions);
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(
        lines,
        [
            "applied plan_comment",
            "applied plan_reply",
            "applied plan_comment",
            "applied plan_resolve",
            "applied answer_question",
            "refused plan_comment id-reused",
            "refused plan_comment invalid-anchor",
            "refused plan_comment too-long",
            "refused plan_comment nothing-to-send",
            "refused plan_comment unknown-snapshot",
            "refused plan_comment too-long",
            "refused plan_reply unknown-thread",
            "refused answer_question unknown-question",
            "refused apply_suggestion unknown-suggestion",
            "refused approve wrong-state",
        ]
    );
    let answers = show(&env)["answers"].clone();
    assert_eq!(answers[0]["answer"], "Yes.");
    // Once more: what was recorded is answered so, what was refused is judged anew.
    let (again, _) = apply(&env, &page, 1, &decisions);
    assert_eq!(again.iter().filter(|line| line.starts_with("already ")).count(), 5);
    assert_eq!(again.iter().filter(|line| line.starts_with("refused ")).count(), 10);
    assert_eq!(threads(&env)["threads"].as_array().unwrap().len(), 2);
}

fn approval(argv: Value, threads: bool, questions: bool) -> Value {
    json!({
        "type": "plan_approve", "revision": 1, "argv": argv,
        "confirm_open_threads": threads, "confirm_open_questions": questions,
    })
}

#[test]
fn a_plan_is_approved_from_its_page_only_with_all_that_is_open_confirmed() {
    let env = repo();
    import(&env);
    let page = page(&env);
    let go = json!([["go", "vet", "./..."]]);
    let (lines, _) = apply(&env, &page, 1, &[comment(&page, 90, [1, 1], "Open.")]);
    assert_eq!(lines, ["applied plan_comment"]);
    for (n, decision, reason) in [
        (2, approval(go.clone(), false, true), "blocked"),
        (3, approval(go.clone(), true, false), "blocked"),
        (4, approval(json!([["go", "vet"]]), true, true), "wrong-state"),
        (5, approval(json!([["go", "vet", "./...", "-x"]]), true, true), "wrong-state"),
    ] {
        let (lines, done) = apply(&env, &page, n, &[decision]);
        assert_eq!(lines, [format!("refused plan_approve {reason}")], "{done}");
    }
    assert_eq!(show(&env)["approval"], Value::Null);
    assert_eq!(json(&env, &["plan", "allowed", "list"])["allowed"], json!([]));
    // What the same file settles needs no confirmation.
    let settle = [
        approval(go.clone(), false, false),
        json!({"type": "plan_resolve", "snapshot": page.index["snapshot"], "thread": uuid(90)}),
        json!({"type": "answer_question", "question": 1, "text": "Yes."}),
    ];
    let (lines, done) = apply(&env, &page, 10, &settle);
    let all = ["applied plan_resolve", "applied answer_question", "applied plan_approve"];
    assert_eq!(lines, all, "{done}");
    let shown = show(&env);
    assert_eq!(shown["approval"]["allowed"], go);
    assert_eq!(shown["approval"]["open_questions"], json!(0));
    assert_eq!(json(&env, &["plan", "allowed", "list"])["allowed"], go);
    let (lines, _) = apply(&env, &page, 20, &[approval(go, true, true)]);
    assert_eq!(lines, ["refused plan_approve wrong-state"]);
}

#[test]
fn decisions_on_an_older_revision_are_refused_alone() {
    let env = repo();
    at_r3(&env);
    let ids = suggest(&env);
    let old = page(&env);
    let apply_first = json!({"type": "apply_suggestion", "suggestion": ids[0]});
    let apply_other = json!({"type": "apply_suggestion", "suggestion": ids[1]});
    let mut approve = approval(json!([]), true, true);
    approve["revision"] = json!(3);
    // Both say what the next revision is.
    let (lines, _) = apply(&env, &old, 1, &[apply_first.clone(), approve.clone()]);
    assert_eq!(
        lines,
        ["refused apply_suggestion contradiction", "refused plan_approve contradiction"]
    );
    let (lines, done) = apply(&env, &old, 5, &[apply_first.clone(), apply_other.clone()]);
    assert_eq!(done.code, 3);
    assert_eq!(lines, ["applied apply_suggestion", "refused apply_suggestion stale/revision"]);
    assert_eq!(show(&env)["plan"]["revision"], json!(4));
    let dismiss = json!({"type": "dismiss_suggestion", "suggestion": ids[1]});
    let answer = json!({"type": "answer_question", "question": 1, "text": "Yes."});
    let decisions = [apply_first, apply_other, dismiss, answer, comment(&old, 90, [1, 1], "x")];
    let (lines, _) = apply(&env, &old, 10, &decisions);
    assert_eq!(
        lines,
        [
            "applied plan_comment",
            "refused apply_suggestion wrong-state",
            "refused apply_suggestion stale/revision",
            "refused dismiss_suggestion stale/revision",
            "refused answer_question stale/revision",
        ]
    );
    let (lines, _) = apply(&env, &old, 20, &[approve]);
    assert_eq!(lines, ["refused plan_approve stale/revision"]);
    assert_eq!(show(&env)["plan"]["revision"], json!(4));
    assert_eq!(show(&env)["answers"], json!([]));
}

#[test]
fn a_dismissed_suggestion_leaves_the_plan_alone_and_one_is_decided_once() {
    let env = repo();
    at_r3(&env);
    let ids = suggest(&env);
    let page = page(&env);
    let dismiss = json!({"type": "dismiss_suggestion", "suggestion": ids[0]});
    let (lines, _) = apply(
        &env,
        &page,
        1,
        &[dismiss.clone(), dismiss, json!({"type": "apply_suggestion", "suggestion": ids[0]})],
    );
    assert_eq!(
        lines,
        [
            "applied dismiss_suggestion",
            "refused dismiss_suggestion wrong-state",
            "refused apply_suggestion wrong-state"
        ]
    );
    assert_eq!(show(&env)["plan"]["revision"], json!(3));
    let (lines, _) =
        apply(&env, &page, 9, &[json!({"type": "apply_suggestion", "suggestion": ids[1]})]);
    assert_eq!(lines, ["applied apply_suggestion"]);
}

#[test]
fn an_altered_form_and_one_of_another_task_change_nothing() {
    let env = repo();
    import(&env);
    let page = page(&env);
    let decision = [comment(&page, 90, [1, 1], "x")];
    let mut altered = PlanPage { form: page.form.clone(), ..page };
    let mut payload = altered.offered.clone();
    payload["revision"] = json!(2);
    altered.form["payload_b64"] = json!(STANDARD.encode(payload.to_string()));
    let (lines, done) = apply(&env, &altered, 1, &decision);
    assert_eq!((lines.len(), done.code), (0, 1), "{done}");
    // The form of another repository's page.
    let other = repo();
    import(&other);
    let foreign = self::page(&other);
    let (lines, done) = apply(&env, &foreign, 1, &decision);
    assert_eq!((lines.len(), done.code), (0, 1), "{done}");
    assert_eq!(threads(&env)["threads"], json!([]));
}

#[test]
fn an_approval_at_the_terminal_asks_about_open_threads() {
    let env = repo();
    import(&env);
    let args = ["plan", "comment", "412", "--lines", "3", "--text", "Both?"];
    assert_eq!(run(&env, &args).code, 0);
    let approve = ["plan", "approve", "412", "--allow-no-other", "--confirm-open-questions"];
    let done = run(&env, &approve);
    assert_eq!(done.code, 3, "{done}");
    insta::assert_snapshot!(env.redact(&done.to_string()));
    assert_eq!(show(&env)["approval"], Value::Null);
    let done = run(&env, &[&approve[..], &["--confirm-open-threads"]].concat());
    assert_eq!(done.code, 0, "{done}");
}

#[test]
fn the_page_of_a_plan_is_the_same_bytes_every_time_and_render_draws_it_before_there_is_a_review() {
    let env = repo();
    import(&env);
    let first = page(&env);
    assert_eq!(page(&env).html, first.html);
    let done = json(&env, &["render", "412"]);
    assert!(done["path"].as_str().unwrap().ends_with("tasks/412/plan.html"), "{done}");
    assert_eq!(done["wrote"], json!(false));
    assert_eq!(json(&env, &["verify", done["path"].as_str().unwrap()])["changed"], Value::Null);
}
