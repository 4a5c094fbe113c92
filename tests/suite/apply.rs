//! Decisions files: what is recorded, what is refused and why, and what a kill leaves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::support::road::{Page, Road, on};

/// P1 edits `a.rs`, P2 depends on it and adds `b.rs`; P1 also strays into `b.txt`; somebody else
/// edited `a.rs` too.
pub(crate) fn road() -> Road {
    let mut road = Road::new(&[
        ("a.rs", "fn f() {\n    one();\n}\n\nfn g() {\n    two();\n}\n"),
        ("b.txt", "words\n"),
    ]);
    road.start(&[("P1", &["a.rs"], &[]), ("P2", &["+b.rs"], &["P1"])]);
    road.work("P1", &[("a.rs", Some("fn f() {\n    one(1);\n}\n\nfn g() {\n    two();\n}\n"))]);
    road.work("P1", &[("b.txt", Some("words\nstray\n"))]);
    road.work("P2", &[("b.rs", Some("fn b() {}\n"))]);
    road.commit(
        "sneaked",
        &[("a.rs", Some("fn f() {\n    one(1);\n}\n\nfn g() {\n    two();\n    sneaked();\n}\n"))],
    );
    road
}

/// All decisions that the road needs.
fn everything(road: &Road, page: &Page) -> Vec<Value> {
    [
        on(&page.segment("stray"), json!({"type": "acknowledge", "tag": "out-of-scope"})),
        on(&page.segment("sneaked"), json!({"type": "accept"})),
        json!({"type": "approve", "item": "P1"}),
        json!({"type": "approve", "item": "P2"}),
    ]
    .into_iter()
    .map(|one| road.decision(one))
    .collect()
}

#[test]
fn one_file_decides_everything_and_the_same_file_again_changes_nothing() {
    let road = road();
    let page = road.page();
    assert_eq!(
        road.blockers(),
        ["Review 2 unreviewed items", "Resolve 1 unplanned change", "Acknowledge 1 warning"]
    );
    let mut decisions = everything(&road, &page);
    decisions.push(road.decision(json!({"type": "merge"})));
    road.save(&page, &decisions);
    let done = road.run(&["apply", "../decisions.json", "--record-only"]);
    assert_snapshot!(road.env.redact(&done.to_string()));
    assert!(road.blockers().is_empty());

    let before = road.state();
    let (lines, done) = road.apply_with(&["--record-only"]);
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(
        lines,
        [
            "already acknowledge",
            "already accept",
            "already approve",
            "already approve",
            "already merge"
        ]
    );
    assert!(road.state() == before, "the second time changed something");
}

/// Applies a changed file, which must be refused as a whole and change nothing.
fn refuse(road: &Road, name: &str, file: &[u8]) {
    road.env.write("decisions.json", file);
    let before = road.state();
    let done = road.run(&["apply", "../decisions.json"]);
    assert_eq!(done.code, 1, "{name}: {done}");
    assert!(road.state() == before, "{name} changed something");
    assert_snapshot!(name, road.env.redact(&done.to_string()));
}

#[test]
fn a_file_that_is_not_ours_is_refused_whole() {
    let road = road();
    let page = road.page();
    let decisions = everything(&road, &page);
    let good = road.file(&page, &decisions);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut file = good.clone();
        change(&mut file);
        file.to_string().into_bytes()
    };
    let altered = |at: usize| {
        let mut text = page.payload_b64.clone().into_bytes();
        text[at] = if text[at] == b'A' { b'B' } else { b'A' };
        String::from_utf8(text).unwrap()
    };
    refuse(&road, "malformed", b"{");
    for bytes in [&b""[..], b"\xff\xfe", b"null", b"[]", b"{}", b"\"\"", b"{\"schema_version\": 1}"]
    {
        road.env.write("decisions.json", bytes);
        let done = road.run(&["apply", "../decisions.json"]);
        assert_eq!(done.code, 1, "{bytes:?}: {done}");
        assert!(done.stderr.contains("is no decisions file that can be applied"), "{done}");
    }
    refuse(&road, "unknown_key", &with(&|file| file["more"] = json!(1)));
    refuse(&road, "unknown_type", &with(&|file| file["decisions"][0]["type"] = json!("burn")));
    refuse(&road, "unknown_version", &with(&|file| file["schema_version"] = json!(2)));
    refuse(
        &road,
        "repeated_key",
        good.to_string().replacen('{', "{\"saved_at\":\"\",", 1).as_bytes(),
    );
    refuse(&road, "too_large", &[good.to_string().as_bytes(), &vec![b' '; 4 << 20]].concat());
    // Each byte of the form counts: every 29th is altered, and the last.
    let before = road.state();
    let last = page.payload_b64.trim_end_matches('=').len() - 1;
    for at in (0..last).step_by(29).chain([last]) {
        let file = with(&|file| file["form"]["payload_b64"] = json!(altered(at)));
        road.env.write("decisions.json", &file);
        let done = road.run(&["apply", "../decisions.json"]);
        assert_eq!(done.code, 1, "{at}: {done}");
        assert!(done.stderr.contains("hint: nothing was changed"), "{at}: {done}");
        let whole = ["carries a form that is not accepted", "is no decisions file", "belongs to"];
        assert!(whole.iter().any(|words| done.stderr.contains(words)), "{at}: {done}");
    }
    assert!(road.state() == before, "an altered form changed something");
    let payload = String::from_utf8(STANDARD.decode(&page.payload_b64).unwrap()).unwrap();
    let one_byte = payload.replacen("\"revision\":1", "\"revision\":2", 1);
    assert_ne!(one_byte, payload);
    let one_byte = STANDARD.encode(one_byte);
    refuse(&road, "altered_form", &with(&|file| file["form"]["payload_b64"] = json!(one_byte)));
    let signature = page.signature.clone();
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    refuse(
        &road,
        "altered_signature",
        &with(&|file| file["form"]["signature"] = json!(format!("{flipped}{}", &signature[1..]))),
    );
    road.env.write("elsewhere.json", good.to_string());
    std::os::unix::fs::symlink("elsewhere.json", road.env.path("link.json")).unwrap();
    let done = road.run(&["apply", "../link.json"]);
    assert_snapshot!("linked", road.env.redact(&done.to_string()));
    let done = road.run(&["apply", "../none.json"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(road.state() == before, "a file that can't be read changed something");
}

#[test]
fn a_file_of_another_repository_or_signed_by_another_key_is_refused_whole() {
    let road = road();
    let other = self::road();
    let page = other.page();
    let file = other.file(&page, &everything(&other, &page));
    refuse(&road, "another_key", file.to_string().as_bytes());
    // The same key is known here, and the form still belongs elsewhere.
    let key = page.form["public_key"].as_str().unwrap();
    road.env.write(
        "repo/.git/codeboost/config.yaml",
        format!("keys:\n  - name: other\n    public_key: {key}\n"),
    );
    refuse(&road, "another_repository", file.to_string().as_bytes());
}

#[test]
fn a_decision_on_what_changed_is_refused_alone() {
    let road = road();
    let page = road.page();
    let decisions = everything(&road, &page);
    road.save(&page, &decisions);
    road.work("P2", &[("b.rs", Some("fn b() { changed(); }\n"))]);
    let done = road.run(&["apply", "../decisions.json"]);
    assert_snapshot!(road.env.redact(&done.to_string()));
    assert_eq!(road.states()["P1"], "approved");
    assert_eq!(road.states()["P2"], "unreviewed");
    // Once it is there again, the refused decision can be recorded: it never was.
    road.env.git("repo", ["reset", "-q", "--hard", "HEAD~1"]);
    let (lines, done) = road.apply();
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(
        lines,
        ["applied approve", "already acknowledge", "already accept", "already approve"]
    );
}

#[test]
fn approvals_of_what_was_not_shown_or_acknowledged_are_refused() {
    let road = road();
    let page = road.page();
    let mut file = road.file(&page, &everything(&road, &page));
    file["shown"]["P1"] = json!([]);
    file["shown"]["P2"] = json!([page.segment("fn b()")["segment"]]);
    road.env.write("decisions.json", file.to_string());
    let (lines, done) = road.apply();
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(
        lines,
        ["applied acknowledge", "applied accept", "applied approve", "refused approve not-shown"]
    );
    let road = self::road();
    let page = road.page();
    let approve = road.decision(json!({"type": "approve", "item": "P1"}));
    road.save(&page, &[approve]);
    let done = road.run(&["apply", "../decisions.json"]);
    assert_snapshot!(road.env.redact(&done.to_string()));
}

#[test]
fn contradicting_decisions_are_both_refused() {
    let road = road();
    let page = road.page();
    let stray = page.segment("sneaked");
    let decisions: Vec<_> = [
        json!({"type": "approve", "item": "P2"}),
        json!({"type": "withdraw", "item": "P2"}),
        on(&stray, json!({"type": "accept"})),
        on(&stray, json!({"type": "assign", "item": "P1"})),
        json!({"type": "merge"}),
        json!({"type": "request_change", "item": "P1", "text": "Less."}),
    ]
    .into_iter()
    .map(|one| road.decision(one))
    .collect();
    road.save(&page, &decisions);
    let before = road.state();
    let (lines, done) = road.apply();
    assert_eq!(done.code, 3, "{done}");
    assert!(lines.iter().all(|line| line.ends_with(" contradiction")), "{lines:?}");
    assert_eq!(lines.len(), 6);
    assert!(road.state() == before, "refused decisions changed something");
}

#[test]
fn a_decision_replayed_after_a_withdraw_stays_withdrawn() {
    let road = road();
    let page = road.page();
    let first = road.file(&page, &everything(&road, &page));
    road.env.write("decisions.json", first.to_string());
    assert_eq!(road.apply().1.code, 0);
    road.decide(|_| vec![json!({"type": "withdraw", "item": "P2"})]);
    assert_eq!(road.states()["P2"], "unreviewed");
    road.env.write("decisions.json", first.to_string());
    let (lines, _) = road.apply();
    assert!(lines.iter().all(|line| line.starts_with("already ")), "{lines:?}");
    assert_eq!(road.states()["P2"], "unreviewed");
    // The same id for something else is noticed.
    let mut forged = first.clone();
    forged["decisions"][3]["item"] = json!("P1");
    road.env.write("decisions.json", forged.to_string());
    let (lines, done) = road.apply();
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(lines.last().unwrap(), "refused approve id-reused");
}

#[test]
fn a_merge_with_a_blocker_is_refused_and_names_it() {
    let road = road();
    let page = road.page();
    let merge = road.decision(json!({"type": "merge"}));
    road.save(&page, &[merge]);
    let before = road.state();
    let done = road.run(&["apply", "../decisions.json"]);
    assert_snapshot!(road.env.redact(&done.to_string()));
    assert!(road.state() == before, "a refused merge changed something");
}

#[test]
fn an_assigned_change_and_its_new_item_can_be_approved_in_one_file() {
    let road = road();
    let page = road.page();
    let mut decisions = everything(&road, &page);
    decisions[1] =
        road.decision(on(&page.segment("sneaked"), json!({"type": "assign", "item": "P1"})));
    road.save(&page, &decisions);
    let (lines, done) = road.apply();
    assert_eq!(done.code, 0, "{done} {lines:?}");
    assert_eq!(road.states()["P1"], "approved");
    assert!(road.blockers().is_empty());
    // Taken back, the approval no longer fits.
    let page = road.page();
    let stray = page.segment("sneaked");
    road.decide(|_| vec![on(&stray, json!({"type": "unresolve"}))]);
    assert_eq!(road.states()["P1"], "stale");
    assert_eq!(road.reasons("P1"), ["Assigned changes differ in a.rs"]);
    assert_eq!(road.reasons("P2"), ["Depends on P1, which changed"]);
}

#[test]
fn a_change_request_blocks_until_it_is_withdrawn_in_a_second_file() {
    let road = road();
    let page = road.page();
    road.save(&page, &everything(&road, &page));
    assert_eq!(road.apply().1.code, 0);
    let page = road.page();
    let segment = page.segment("fn b()");
    let request = road.decision(on(
        &segment,
        json!({"type": "request_change", "item": "P2", "from": 1, "to": 1, "text": "Less."}),
    ));
    let question = road.decision(json!({"type": "ask", "item": "P1", "text": "Why?"}));
    road.save(&page, &[request.clone(), question]);
    assert_eq!(road.apply().0, ["applied request_change", "applied ask"]);
    assert_eq!(road.blockers(), ["Send 1 pending change request"]);
    let page = road.page();
    assert!(page.index.contains("Less."));
    road.decide(|_| vec![json!({"type": "withdraw_request", "request": request["id"]})]);
    assert!(road.blockers().is_empty());

    // A rejection sends what is pending, and blocks until the plan has a new revision.
    let mut road = road;
    road.decide(|_| {
        vec![
            json!({"type": "request_change", "item": "P2", "text": "Less."}),
            json!({"type": "reject", "summary": "Once more."}),
        ]
    });
    assert_eq!(road.blockers(), ["Make the next revision: change requests were sent"]);
    road.revise(|plan| plan["questions"] = json!(["Is this less?"]));
    assert!(road.blockers().is_empty());
}

#[test]
fn killed_anywhere_and_run_again_everything_is_recorded_once() {
    let mut road = road();
    let page = road.page();
    road.save(&page, &everything(&road, &page));
    road.keep();
    let before = road.state();
    road.killed_everywhere(&["apply", "../decisions.json"], |road, name| {
        let log = || road.ok(&["log", "412", "--format", "json"]).stdout;
        let n_decisions = || log().matches("\"kind\": \"decision\"").count();
        let recorded = n_decisions();
        assert!([0, 4].contains(&recorded), "{name}: all or nothing, not {recorded}");
        assert_eq!(road.state() == before, recorded == 0, "{name}");
        let (lines, done) = road.apply();
        assert_eq!(done.code, 0, "{name}: {done}");
        let word = if recorded == 4 { "already " } else { "applied " };
        assert!(lines.iter().all(|line| line.starts_with(word)), "{name}: {lines:?}");
        assert_eq!(n_decisions(), 4, "{name}");
        assert!(road.blockers().is_empty(), "{name}");
    });
}

#[test]
fn two_processes_with_one_file_record_it_once() {
    let road = road();
    let page = road.page();
    road.save(&page, &everything(&road, &page));
    let start = || {
        let mut command = road.env.codeboost("repo", ["apply", "../decisions.json", "-q"]);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let mut children: Vec<_> = (0..4).map(|_| start()).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let log = road.ok(&["log", "412", "--format", "json"]);
    assert_eq!(log.stdout.matches("\"kind\": \"decision\"").count(), 4);
    assert!(road.blockers().is_empty());
}

#[test]
fn named_reviewers_need_a_signature_by_their_own_key() {
    use ssh_key::private::{Ed25519Keypair, KeypairData};
    use ssh_key::{HashAlg, LineEnding, PrivateKey};

    let road = road();
    let page = road.page();
    let decisions = everything(&road, &page);
    let key = |seed: u8| {
        PrivateKey::new(KeypairData::Ed25519(Ed25519Keypair::from_seed(&[seed; 32])), "").unwrap()
    };
    let public = |seed: u8| key(seed).public_key().to_openssh().unwrap();
    road.env.write("signers", format!("ann {}\nbob {}\n", public(1), public(2)));
    road.env.write(
        "repo/.git/codeboost/config.yaml",
        format!(
            "reviewers:\n  required: 2\n  names: [ann, bob]\nallowed_signers:\n  file: {}\n",
            road.env.path("signers").display()
        ),
    );
    road.save(&page, &decisions);
    let done = road.run(&["apply", "../decisions.json"]);
    assert_eq!(done.code, 3, "{done}");
    assert_snapshot!(road.env.redact(&done.to_string()));

    let sign = |seed: u8, namespace: &str| {
        let bytes = std::fs::read(road.env.path("decisions.json")).unwrap();
        let signature = key(seed).sign(namespace, HashAlg::Sha512, &bytes).unwrap();
        road.env.write("decisions.json.sig", signature.to_pem(LineEnding::LF).unwrap());
    };
    for (seed, namespace) in [(3, "codeboost-decisions"), (1, "git")] {
        sign(seed, namespace);
        let before = road.state();
        let done = road.run(&["apply", "../decisions.json"]);
        assert_eq!(done.code, 1, "{done}");
        assert!(road.state() == before);
    }
    sign(1, "codeboost-decisions");
    let (lines, done) = road.apply();
    assert_eq!(done.code, 0, "{done}");
    assert_eq!(lines.len(), 4);
    assert_eq!(road.blockers(), ["Review 2 unreviewed items"]);

    // Ann's key under another name is Ann still.
    let page = road.page();
    let approve = |item: &str| road.decision(json!({"type": "approve", "item": item}));
    road.env.write("signers", format!("bob {}\n", public(1)));
    road.save(&page, &[approve("P1"), approve("P2")]);
    sign(1, "codeboost-decisions");
    assert_eq!(road.apply().1.code, 0);
    assert_eq!(road.blockers(), ["Review 2 unreviewed items"]);
    road.env.write("signers", format!("ann {}\nbob {}\n", public(1), public(2)));
    road.save(&page, &[approve("P1"), approve("P2")]);
    sign(1, "codeboost-decisions");
    assert_eq!(road.apply().1.code, 0);

    // Bob decides on his own: the same decisions with ids of his.
    let page = road.page();
    road.save(&page, &[approve("P1"), approve("P2")]);
    sign(2, "codeboost-decisions");
    assert_eq!(road.apply().1.code, 0);
    assert!(road.blockers().is_empty());

    // A signed file that was altered afterwards is refused whole.
    let text = std::fs::read_to_string(road.env.path("decisions.json")).unwrap();
    road.env.write("decisions.json", text.replace("\"P2\"", "\"P1\""));
    assert_eq!(road.run(&["apply", "../decisions.json"]).code, 1);
}

#[test]
fn the_allowed_signers_of_the_base_can_not_be_changed_by_the_branch() {
    let road = road();
    road.env.write(
        "repo/.git/codeboost/config.yaml",
        "reviewers:\n  signatures: true\nallowed_signers:\n  base: signers\n",
    );
    road.commit("add a signer of one's own", &[("signers", Some("eve ssh-ed25519 AAAA\n"))]);
    let page = road.page();
    road.save(&page, &[road.decision(json!({"type": "approve", "item": "P2"}))]);
    road.env.write("decisions.json.sig", "no signature");
    let done = road.run(&["apply", "../decisions.json"]);
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stderr.contains("there are no allowed signers in signers of"), "{done}");
}

#[test]
fn a_merge_that_was_asked_for_on_another_head_is_never_carried_out() {
    let mut road = Road::new(&[("a.txt", "one\n")]);
    let commit = road.commit("two", &[("a.txt", Some("one\ntwo\n"))]);
    road.start(&[("P1", &["a.txt"], &[])]);
    road.record(&commit, "P1");
    let page = road.page();
    let decisions = [json!({"type": "approve", "item": "P1"}), json!({"type": "merge"})];
    road.save(&page, &decisions.map(|one| road.decision(one)));
    road.ok(&["apply", "../decisions.json", "--record-only"]);
    let file = std::fs::read(road.env.path("decisions.json")).unwrap();

    // Somebody approves what came later, and asks for no merge.
    road.work("P1", &[("a.txt", Some("one\ntwo\nthree\n"))]);
    road.approve(&["P1"]);
    assert!(road.blockers().is_empty());
    road.env.write("decisions.json", file);
    let (lines, done) = road.apply();
    assert_eq!(done.code, 3, "{done}");
    assert_eq!(lines, ["already approve", "refused merge stale/head"]);
    let main = road.env.git("repo", ["rev-parse", "main"]);
    assert_eq!(main, road.env.git("repo", ["rev-parse", "topic~2"]));
}

#[test]
fn errors_name_what_was_given_without_letting_it_act_on_the_terminal() {
    let road = road();
    for args in [&["apply", "../no\x1b[31m\u{7}\u{9b}.json"][..], &["\x1b[31m\u{7}"]] {
        let done = road.run(args);
        assert_ne!(done.code, 0, "{done}");
        assert!(!done.stderr.contains(['\x1b', '\u{7}', '\u{9b}']), "{done}");
    }
    let missing = ["link", "--repo", "../missing", "--base", "main", "--head", "topic"];
    let done = road.run(&[&missing[..], &["--plan", "p.yaml", "--ledger", "l.json"]].concat());
    assert_eq!(done.code, 1, "{done}");
    assert!(done.stderr.contains("can't open the folder"), "{done}");
}

#[test]
fn pipes_and_devices_are_refused_and_not_waited_for() {
    let road = road();
    let pipe = road.env.path("pipe");
    assert!(road.env.command("mkfifo", ".").arg(&pipe).status().unwrap().success());
    for (path, what) in [("../pipe", "a pipe"), ("/dev/zero", "a device")] {
        for args in [
            &["apply", path][..],
            &["verify", path],
            &["plan", "check", path, "--base", "main"],
            &["task", "add", path, "--base", "main"],
            &["render", path, "--plan", path, "-o", "../page.html"],
        ] {
            let done = road.run(args);
            assert_ne!(done.code, 0, "{done}");
            assert!(done.stderr.contains(&format!("it is {what}")), "{args:?} {done}");
        }
    }
}
