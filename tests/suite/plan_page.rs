//! The page of a plan in a real browser, and what `apply` makes of what it saves.

use std::path::{Path, PathBuf};

use codeboost_schema::decisions::{Action, Decisions};
use serde_json::{Value, json};
use thirtyfour::prelude::*;

use crate::plan_store::{at_r3, import, json, repo, run, show, suggest};
use crate::plan_threads::page;
use crate::support::TestEnv;
use crate::support::browser::Browser;

fn open(browser: &Browser, env: &TestEnv) -> PathBuf {
    let path = PathBuf::from(json(env, &["plan", "render", "412"])["path"].as_str().unwrap());
    browser.open(&path, "");
    browser.wait_for("document.querySelector('#planapp')?.dataset.checked");
    path
}

/// Selects the first place with that text in the document.
fn mark(browser: &Browser, text: &str) {
    let found = browser.js(
        "const walker = document.createTreeWalker(document.querySelector('#doc'), NodeFilter.SHOW_TEXT);\
         for (let node = walker.nextNode(); node; node = walker.nextNode()) {\
           const at = node.data.indexOf(arguments[0]);\
           if (at < 0) continue;\
           const range = document.createRange();\
           range.setStart(node, at); range.setEnd(node, at + arguments[0].length);\
           getSelection().removeAllRanges(); getSelection().addRange(range); return true; }\
         return false;",
        vec![json!(text)],
    );
    assert_eq!(found, json!(true), "{text}");
}

fn save(browser: &Browser) -> PathBuf {
    browser.click("#save");
    browser.click("#dialog-actions .main");
    browser.downloaded("codeboost-decisions-")
}

fn apply(env: &TestEnv, file: &Path) -> Value {
    let done = run(env, &["apply", file.to_str().unwrap(), "--format", "json"]);
    assert_eq!(done.code, 0, "{done}");
    serde_json::from_str(&done.stdout).unwrap()
}

fn types(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect()
}

#[test]
fn a_plan_is_discussed_answered_and_approved_in_its_page() {
    let Some(browser) = Browser::start() else { return };
    let env = repo();
    import(&env);
    let lines = ["plan", "comment", "412", "--lines", "3", "--text", "Is this all?"];
    assert_eq!(run(&env, &lines).code, 0);
    open(&browser, &env);
    assert_eq!(browser.text("#progress"), "1 open question, 1 open thread");

    // A comment on what is selected.
    mark(&browser, "sets the header on each attempt");
    browser.keys("C");
    browser.wait_text("form.compose blockquote", "sets the header on each attempt");
    browser.type_into("#compose", "Also on the first?");
    browser.click("form.compose button[type=submit]");
    browser.wait_text("#progress", "2 open threads");
    // A reply to what is recorded, and the end of it.
    browser.click_text(".thread button", "Reply");
    browser.type_into("#compose", "Yes, all.");
    browser.chord(Key::Control, Key::Enter);
    browser.wait_text(".thread", "Yes, all.");
    browser.click_text(".thread button", "Resolve");
    browser.wait_text("#progress", "1 open question, 1 open thread");
    // An answer.
    browser.type_into("form.reply textarea", "Yes, it counts.");
    browser.click("form.reply button[type=submit]");
    browser.wait_text("form.reply", "Yes, it counts.");

    // The approval: nothing is ticked beforehand, and what is open has to be confirmed.
    browser.click("#approve");
    browser.wait_text("#dialog-content", "new commands");
    assert_eq!(
        browser.js("return document.querySelectorAll('#dialog input:checked').length", vec![]),
        json!(0)
    );
    browser.click("#dialog-actions .main");
    browser.wait_text("#toast", "Confirm what is still open");
    browser.click("#dialog-content label:last-child input");
    browser.click("#dialog-content label:nth-of-type(1) input");
    browser.click("#dialog-actions .main");
    browser.wait_text("#progress", "approval drafted");

    // Drafts outlive the page.
    browser.reload();
    browser.wait_for("document.querySelector('#planapp')?.dataset.checked");
    browser.wait_text("#progress", "approval drafted");
    let file = save(&browser);
    let saved = Decisions::parse(&std::fs::read(&file).unwrap()).unwrap();
    let quotes = saved.decisions.iter().filter_map(|one| match &one.action {
        Action::PlanComment { quote, .. } => quote.clone(),
        _ => None,
    });
    assert_eq!(quotes.collect::<Vec<_>>(), ["sets the header on each attempt"]);
    browser.assert_quiet();

    let answers = apply(&env, &file);
    assert_eq!(
        types(&answers["applied"]),
        ["plan_comment", "plan_reply", "plan_resolve", "answer_question", "plan_approve"]
    );
    let shown = show(&env);
    assert_eq!(shown["answers"][0]["answer"], "Yes, it counts.");
    assert_eq!(shown["approval"]["allowed"].as_array().unwrap().len(), 1);
    let threads = json(&env, &["plan", "threads", "412", "--all"]);
    assert_eq!((&threads["open"], threads["threads"].as_array().unwrap().len()), (&json!(1), 2));
    let again = run(&env, &["apply", file.to_str().unwrap(), "--format", "json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(types(&again["already"]).len(), 5);

    // The next page shows it as recorded.
    open(&browser, &env);
    assert_eq!(browser.text("#approve"), "Approved");
    browser.wait_text("#doc", "Yes, it counts.");
    assert_eq!(browser.count(".thread"), 2);
    assert_eq!(browser.count(".thread.is-done"), 1);
    browser.assert_quiet();
}

#[test]
fn a_suggestion_is_applied_from_its_card_and_the_rest_is_stale() {
    let Some(browser) = Browser::start() else { return };
    let env = repo();
    at_r3(&env);
    let ids = suggest(&env);
    open(&browser, &env);
    assert_eq!(browser.count(".card"), 2);
    browser.wait_text(".card .diff", "TestRetryKeepsKeyAfterTimeout");
    assert_eq!(browser.count(".card .diff .del"), 0, "the edits only add");
    browser.click(&format!("[data-suggestion='{}'] .plain", ids[0]));
    browser.wait_text("#toast", "Drafted: Apply a suggestion");
    browser.click("#approve");
    browser.wait_text("#toast", "another revision");
    // One file applies one: the other takes its place.
    browser.click(&format!("[data-suggestion='{}'] .plain", ids[1]));
    browser.wait_text(&format!("[data-suggestion='{}']", ids[1]), "drafted");
    let file = save(&browser);
    let answers = apply(&env, &file);
    assert_eq!(types(&answers["applied"]), ["apply_suggestion"]);
    let shown = show(&env);
    assert_eq!(shown["plan"]["revision"], json!(4));
    assert!(shown["plan"]["items"].as_array().unwrap().iter().any(|item| item["id"] == "P4"));
    open(&browser, &env);
    browser.wait_text(".card", "Plan changed — refresh suggestions");
    assert_eq!(browser.count(".card [aria-disabled=true]"), 2);
    browser.assert_quiet();
}

/// A plan whose texts try everything.
fn hostile(env: &TestEnv) {
    let bad = "<img src=x onerror=alert(1)> </script><script>document.title='x'</script> \u{202e}evil\u{2066} {{ 1 }} {% raw %}";
    let mut plan: Value =
        serde_json::from_str(include_str!("../../schema/examples/plan-412-r3.json")).unwrap();
    plan["summary"] = json!(bad);
    plan["questions"] = json!([bad]);
    plan["items"][0]["title"] = json!(bad.chars().take(110).collect::<String>());
    plan["items"][0]["intent"] = json!(bad);
    plan["items"][0]["files"][0]["change"] = json!(bad);
    plan["items"][0]["acceptance"][1]["text"] = json!(bad);
    plan["items"][0]["acceptance"][0]["text"] = json!("make '<img src=x onerror=alert(1)>'");
    env.write("plan.json", plan.to_string());
    let done = run(env, &["plan", "import", "412", "../plan.json"]);
    assert_eq!(done.code, 0, "{done}");
    for args in [
        &["plan", "comment", "412", "--lines", "3", "--text", bad, "--quote", bad][..],
        &["plan", "answer", "412", "1", bad],
    ] {
        let done = run(env, args);
        assert_eq!(done.code, 0, "{done}");
    }
}

#[test]
fn hostile_text_stays_text_on_the_page_of_a_plan() {
    let Some(browser) = Browser::start() else { return };
    let env = repo();
    hostile(&env);
    open(&browser, &env);
    let title = browser.js("return document.title", vec![]);
    browser.click("#approve");
    browser.wait_text("#dialog-content", "onerror");
    let live = browser.js(
        "return document.querySelectorAll('img, #planapp script, [onclick], [onerror], a[href], iframe').length",
        vec![],
    );
    assert_eq!(live, json!(0));
    let raw = browser.js(
        "return /[\\u202A-\\u202E\\u2066-\\u2069]/.test(document.querySelector('#planapp').innerText)",
        vec![],
    );
    assert_eq!(raw, json!(false), "no control that reorders text is drawn");
    assert_eq!(browser.js("return document.title", vec![]), title);
    assert!(!title.as_str().unwrap().is_empty() && title != json!("x"));
    browser.assert_quiet();
}

#[test]
fn the_page_of_a_plan_is_accessible_in_both_themes_and_reads_without_scripts() {
    let Some(browser) = Browser::start() else { return };
    let env = repo();
    at_r3(&env);
    suggest(&env);
    for text in ["First?", "Second?"] {
        let args = ["plan", "comment", "412", "--lines", "3-5", "--text", text];
        assert_eq!(run(&env, &args).code, 0);
    }
    for theme in ["dark", "light"] {
        browser.media(&[("prefers-color-scheme", theme)]);
        let path = open(&browser, &env);
        let check = |state: &str| {
            if let Some(found) = browser.axe() {
                assert_eq!(found, Vec::<String>::new(), "{state}, {theme}");
            }
        };
        check("the plan");
        browser.keys("J");
        browser.click_text(".thread button", "Reply");
        check("a composer");
        browser.keys(Key::Escape);
        browser.click("#approve");
        check("approving");
        browser.keys(Key::Escape);
        browser.click("#open-keys");
        check("keys");
        browser.keys(Key::Escape);
        browser.size(375, 800);
        let wide = browser.js("return document.documentElement.scrollWidth", vec![]);
        assert!(wide.as_u64().unwrap() <= 375, "no sideways scrolling: {wide}");
        if let Some(folder) = std::env::var_os("CODEBOOST_TEST_PICTURES") {
            let file = |name: &str| PathBuf::from(&folder).join(format!("plan-{name}-{theme}.png"));
            std::fs::write(file("narrow"), browser.picture()).unwrap();
            browser.size(1440, 2400);
            std::fs::write(file("wide"), browser.picture()).unwrap();
        }
        browser.size(1440, 900);
        assert!(path.is_file());
    }
    browser.assert_quiet();
    browser.without_scripts();
    let path = env.path("repo/.codeboost/tasks/412/plan.html");
    browser.open(&path, "");
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.contains("Keep the idempotency key when a request is retried"));
    assert!(page(&env).html.contains("need a script, and none runs here"));
}
