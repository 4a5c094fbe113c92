//! The whole road on the demo, with a person's part of it done in a real browser.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thirtyfour::prelude::Key;

use crate::support::TestEnv;
use crate::support::browser::Browser;
use crate::support::page::ready;

const PROJECT: &str = "sample/tidepool";
const BRANCH: &str = "codeboost/issue-412-stations-store-a-measurement-twice-when";

struct Demo(TestEnv);

impl Demo {
    fn new() -> Self {
        let env = TestEnv::new();
        let done = env.run(["demo", "--folder", "sample"]);
        assert_eq!(done.code, 0, "{done}");
        Self(env)
    }

    fn ok(&self, args: &[&str]) -> String {
        let done = self.0.run_in(PROJECT, args);
        assert_eq!(done.code, 0, "codeboost {args:?}: {done}");
        done.stdout
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[args, &["--format", "json"]].concat())).unwrap()
    }

    fn page(&self) -> PathBuf {
        self.0.path(PROJECT).join(".codeboost/tasks/412/review.html")
    }

    /// Approval and reasons of each item, as the command tells them.
    fn approvals(&self) -> Vec<(String, String, Vec<String>)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let review = self.json(&["review", "412"]);
        let items = review["items"].as_array().unwrap().iter();
        items
            .map(|item| {
                let reasons = item["reasons"].as_array().unwrap().iter();
                let reasons = reasons.map(|one| text(&one["reason"])).collect();
                (text(&item["item"]), text(&item["approval"]), reasons)
            })
            .collect()
    }

    /// Applies a file that a page saved; nothing in it is refused. Returns the types in order.
    fn apply(&self, file: &Path) -> Vec<String> {
        let report = self.json(&["apply", file.to_str().unwrap()]);
        assert_eq!(report["refused"], json!([]), "{report}");
        assert_eq!(report["already"], json!([]), "{report}");
        let saved: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let ids = |list: &Value| {
            let mut ids: Vec<String> = list
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["id"].as_str().unwrap().to_owned())
                .collect();
            ids.sort();
            ids
        };
        assert_eq!(ids(&report["applied"]), ids(&saved["decisions"]), "apply reports each");
        let applied = report["applied"].as_array().unwrap().iter();
        let mut types: Vec<_> =
            applied.map(|one| one["type"].as_str().unwrap().to_owned()).collect();
        types.sort();
        types
    }
}

fn open(browser: &Browser, demo: &Demo, fragment: &str) {
    browser.open(&demo.page(), fragment);
    ready(browser);
}

/// Goes to a row by `n` and `p`.
fn go_to(browser: &Browser, title: &str) {
    browser.js("document.querySelector('#code').focus()", vec![]);
    for key in ["p", "n"] {
        for _ in 0..8 {
            if browser.text("#item-title") == title {
                return;
            }
            browser.keys(key);
            std::thread::sleep(std::time::Duration::from_millis(60));
        }
    }
    browser.wait_text("#item-title", title);
}

/// Walks over all changes of the row with `j`, until each was in view.
fn read_by_keys(browser: &Browser) {
    browser.js("document.querySelector('#code').focus()", vec![]);
    browser.wait("every change was seen", || {
        if browser.text("#unseen").starts_with("All seen") {
            return Some(());
        }
        browser.keys("j");
        if browser.text("#toast").starts_with("Last change") {
            browser.keys(Key::PageDown);
        }
        None
    });
}

fn save(browser: &Browser, demo: &Demo, name: &str) -> PathBuf {
    browser.click("#save");
    browser.click("#dialog-actions .main");
    let file = browser.downloaded("codeboost-decisions-");
    let kept = demo.0.path(name);
    std::fs::rename(file, &kept).unwrap();
    kept
}

/// What the page lists as blockers.
fn blockers(browser: &Browser) -> Vec<String> {
    browser.click("#main-button");
    let words = browser.texts(".blockers button");
    browser.keys(Key::Escape);
    words
}

#[test]
fn the_demo_is_reviewed_in_its_page_and_lands() {
    let Some(browser) = Browser::start() else { return };
    let demo = Demo::new();
    open(&browser, &demo, "");

    // Without drafts, page and command say the same.
    let review = demo.json(&["review", "412"]);
    let told: Vec<&str> = review["blockers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["words"].as_str().unwrap())
        .collect();
    assert_eq!(blockers(&browser), told);

    // An item that owns all of its changes needs the keyboard alone.
    go_to(&browser, "Make the command executable and call its log a report");
    browser.keys("a");
    browser.wait_text("#toast", "not seen yet");
    read_by_keys(&browser);
    browser.keys("a");
    browser.wait_text("#toast", "1 mark to acknowledge");
    browser.click_text(".chip button", "Acknowledge");
    browser.keys("a");
    browser.wait_text("#progress", "0 of 3 approved, 1 drafted");

    // Both sides of the line that two items wrote go to P1.
    go_to(&browser, "Ambiguous");
    for left in ["1 ambiguous", "0 ambiguous"] {
        browser.choose(".change select", "P1");
        browser.click_text(".change button", "Assign to P1");
        browser.wait_text("#counts", left);
    }
    // The stranger's note is taken as it is, what he did to the limit goes to P2.
    go_to(&browser, "Unplanned");
    read_by_keys(&browser);
    browser.click_text(".change button", "Accept as is");
    browser.wait_text("#counts", "2 unplanned");
    for left in ["1 unplanned", "0 unplanned"] {
        browser.choose(".change select", "P2");
        browser.wait_text(".change .act .warn:not([hidden])", "It becomes part of P2");
        browser.click_text(".change button", "Assign to P2");
        browser.wait_text("#counts", left);
    }
    go_to(&browser, "Send one idempotency key with every attempt");
    read_by_keys(&browser);
    browser.keys("a");
    browser.wait_text("#progress", "2 drafted");
    browser.keys("r");
    browser.wait_for("document.activeElement.id === 'text'");
    browser.keys("Read the key from the system's own generator.");
    browser.chord(Key::Control, Key::Enter);
    browser.wait_text(".notes", "Change request, drafted");
    browser.keys(Key::Escape);

    go_to(&browser, "Wait twice as long after each failed attempt");
    read_by_keys(&browser);
    browser.keys("a");
    browser.wait_text("#toast", "to acknowledge");
    browser.js("document.querySelector('#code').scrollTop = 0", vec![]);
    browser.wait("what is out of scope is acknowledged", || {
        if browser.text("#approve") == "Approve P2" && browser.count("#approve[aria-disabled]") == 0
        {
            return Some(());
        }
        if browser.count(".chip.bad button") > 0 {
            browser.click(".chip.bad button");
        } else {
            browser.keys("j");
        }
        None
    });
    browser.js("document.querySelector('#code').focus()", vec![]);
    browser.keys("a");
    browser.wait_text("#progress", "3 drafted");
    assert_eq!(blockers(&browser), ["Send 1 pending change request"]);

    let first = save(&browser, &demo, "first.json");
    let types = demo.apply(&first);
    let n = |word: &str| types.iter().filter(|one| *one == word).count();
    assert_eq!(
        [n("approve"), n("assign"), n("accept"), n("request_change")],
        [3, 4, 1, 1],
        "{types:?}"
    );
    assert!(n("acknowledge") >= 2, "{types:?}");
    assert_eq!(
        n("approve") + n("assign") + n("accept") + n("request_change") + n("acknowledge"),
        types.len()
    );
    let fresh = |id: &str| (id.to_owned(), "approved".to_owned(), Vec::new());
    assert_eq!(demo.approvals(), [fresh("P1"), fresh("P2"), fresh("P3")]);

    // The second file takes the request back.
    demo.ok(&["run", "412"]);
    open(&browser, &demo, "#P1");
    browser.wait_text("#progress", "3 of 3 approved");
    assert_eq!(browser.text("#main-button"), "1 blocker");
    browser.wait_text(".notes", "Change request, pending");
    browser.click_text(".note button", "Withdraw");
    browser.wait_text("#main-button", "Merge");
    let second = save(&browser, &demo, "second.json");
    assert_eq!(demo.apply(&second), ["withdraw_request"]);
    assert_eq!(demo.json(&["review", "412"])["blockers"], json!([]));
    // The same file again changes nothing.
    let again = demo.json(&["apply", second.to_str().unwrap()]);
    assert_eq!(again["applied"], json!([]));
    assert_eq!(again["already"].as_array().unwrap().len(), 1);

    // The code changes: P1 is stale for its code, P2 because it depends on it, P3 is not.
    let env = &demo.0;
    env.git(PROJECT, ["worktree", "add", "-q", "../work", BRANCH]);
    let path = "sample/work/lib/retry.sh";
    let text = std::fs::read_to_string(env.path(path)).unwrap();
    assert!(text.contains("-N16"));
    env.write(path, text.replace("-N16", "-N32"));
    env.git("sample/work", ["commit", "-q", "-am", "Make the key longer"]);
    let commit = env.git("sample/work", ["rev-parse", "HEAD"]);
    demo.ok(&["ledger", "record", &commit, "--item", "P1"]);
    demo.ok(&["check", "run", "412", "--here"]);
    demo.ok(&["run", "412"]);
    let stale =
        |id: &str, reason: &str| (id.to_owned(), "stale".to_owned(), vec![reason.to_owned()]);
    assert_eq!(demo.approvals(), [stale("P1", "code"), stale("P2", "dependency"), fresh("P3")]);

    // The new page opens on what is different, and says why.
    open(&browser, &demo, "");
    assert_eq!(browser.text("#item-title"), "Send one idempotency key with every attempt");
    browser.wait_text("#progress", "1 of 3 approved");
    browser.wait_text("#code .reasons", "Code changed");
    assert_eq!(browser.text("#show-since[aria-pressed='true']"), "Since approval");
    let lines = browser.texts("#code .since-a, #code .since-d");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("-N16") && lines[1].contains("-N32"), "{lines:?}");
    browser.click("#show-full");
    read_by_keys(&browser);
    browser.keys("a");
    browser.wait_text("#progress", "1 drafted");
    go_to(&browser, "Wait twice as long after each failed attempt");
    browser.wait_text("#code .reasons", "Depends on P1, which changed");
    read_by_keys(&browser);
    browser.keys("a");
    browser.wait_text("#progress", "2 drafted");
    browser.wait_text("#main-button", "Merge");
    browser.click("#main-button");
    browser.click_text("#dialog-actions button", "Draft the merge");
    browser.wait_text("#dialog", "Save decisions");
    browser.keys(Key::Escape);
    let third = save(&browser, &demo, "third.json");
    browser.assert_quiet();

    let (base, head) = (env.git(PROJECT, ["rev-parse", "main"]), commit);
    assert_eq!(demo.apply(&third), ["approve", "approve", "merge"]);
    demo.ok(&["merge", "412"]);
    let landed = env.git("sample/station.git", ["rev-list", "--parents", "-1", "main"]);
    let ids: Vec<&str> = landed.split(' ').collect();
    assert_eq!(ids[1..], [base.as_str(), head.as_str()], "a merge of what was validated");
    let tree = |of: &str| env.git("sample/station.git", ["rev-parse", &format!("{of}^{{tree}}")]);
    assert_eq!(tree("main"), tree(&head));
    assert_eq!(demo.json(&["status", "412"])["tasks"][0]["state"], "merged");
}
