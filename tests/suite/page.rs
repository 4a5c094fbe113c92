//! The review page in a real browser.

use std::path::PathBuf;

use codeboost_render::model::{Review, SignedForm};
use codeboost_render::{Options, prepare, sample};
use codeboost_schema::decisions::{Action, Decisions, Shown};
use codeboost_schema::link::Row;
use serde_json::json;
use tempfile::TempDir;
use thirtyfour::prelude::*;

use crate::support::browser::Browser;
use crate::support::page::{assert_inert, read_all, ready, select};

/// A folder with pages.
pub(crate) struct Pages(TempDir);

impl Pages {
    pub(crate) fn new() -> Self {
        Self(tempfile::Builder::new().prefix("codeboost-pages-").tempdir().unwrap())
    }

    fn write(&self, name: &str, html: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, html).unwrap();
        path
    }

    pub(crate) fn page(&self, name: &str, review: &Review) -> PathBuf {
        self.write(name, &html(review, true))
    }
}

fn html(review: &Review, with_form: bool) -> String {
    let prepared = prepare(review, &Options::default(), &());
    let form = with_form.then(|| SignedForm {
        payload: sample::form(review, &prepared.data_digest),
        signature: vec![7; 64],
    });
    prepared.finish(form)
}

fn save(browser: &Browser) -> (PathBuf, Decisions) {
    browser.click("#save");
    browser.click("#dialog-actions .main");
    let path = browser.downloaded("codeboost-decisions-");
    let decisions = Decisions::parse(&std::fs::read(&path).unwrap()).unwrap();
    (path, decisions)
}

/// Whether leaving the page now would make the browser ask.
fn asks_before_leaving(browser: &Browser) -> bool {
    let asks = browser.js(
        "const event = new Event('beforeunload', {cancelable: true});\
         dispatchEvent(event); return event.defaultPrevented;",
        vec![],
    );
    asks == json!(true)
}

#[test]
fn the_page_opens_quietly_and_shows_every_row() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    browser.open(&pages.page("review.html", &sample::rich()), "");
    ready(&browser);
    assert_eq!(browser.text("#item-title"), "Retry failed uploads with backoff");
    assert!(browser.text("#progress").contains("1 of 5 approved"));
    assert_eq!(browser.text("#main-button"), "8 blockers");
    for row in ["P2", "P3", "P4", "P5", "ambiguous", "unplanned", "accepted"] {
        select(&browser, row);
        assert!(browser.count("#code .rows > .blk") > 0, "{row}");
    }
    for fragment in ["#P3", "#unplanned"] {
        browser.open(&pages.page("review.html", &sample::rich()), fragment);
        ready(&browser);
        assert_eq!(browser.count(&format!("[data-row='{}'][aria-current]", &fragment[1..])), 1);
    }
    browser.open(&pages.page("review.html", &sample::rich()), "#s45");
    ready(&browser);
    browser.wait_text("#item-title", "Unplanned");
    browser.assert_quiet();
}

#[test]
fn every_state_of_the_page_is_accessible_in_both_themes() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let page = pages.page("review.html", &sample::rich());
    for theme in ["dark", "light"] {
        browser.media(&[("prefers-color-scheme", theme)]);
        browser.open(&page, "");
        ready(&browser);
        let check = |state: &str| {
            if let Some(found) = browser.axe() {
                assert_eq!(found, Vec::<String>::new(), "{state}, {theme}");
            }
        };
        check("an item");
        for row in ["P2", "P3", "P5", "ambiguous", "unplanned", "accepted"] {
            select(&browser, row);
            check(row);
        }
        for button in ["#open-keys", "#open-issue", "#main-button", "#open-search"] {
            browser.click(button);
            check(button);
            browser.keys(Key::Escape);
        }
    }
    browser.assert_quiet();
}

#[test]
fn hostile_text_stays_text_everywhere() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    browser.open(&pages.page("review.html", &sample::hostile()), "");
    ready(&browser);
    let title = browser.js("return document.title", vec![]);
    assert_inert(&browser);
    for row in ["P2", "P3", "P4", "ambiguous", "unplanned", "accepted"] {
        select(&browser, row);
        read_all(&browser);
        assert_inert(&browser);
    }
    for button in ["#open-issue", "#main-button"] {
        browser.click(button);
        assert_inert(&browser);
        browser.keys(Key::Escape);
    }
    assert_eq!(browser.js("return document.title", vec![]), title);
    browser.assert_quiet();
}

#[test]
fn an_item_can_be_approved_only_after_all_of_it_was_seen_and_acknowledged() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let review = sample::rich();
    browser.open(&pages.page("review.html", &review), "#P3");
    ready(&browser);
    browser.keys("a");
    browser.wait_text("#toast", "not seen yet");
    assert!(browser.text("#progress").ends_with("1 of 5 approved"));
    read_all(&browser);
    browser.wait_text("#unseen", "All seen");
    browser.keys("a");
    browser.wait_text("#toast", "to acknowledge");
    while browser.count("#code .chip.bad button") > 0 || browser.count("#code .file .plain") > 0 {
        if browser.count("#code .file .plain") > 0 {
            browser.click("#code .file .plain");
        } else {
            browser.click("#code .chip.bad button");
        }
        std::thread::sleep(std::time::Duration::from_millis(150));
        read_all(&browser);
    }
    browser.js("document.querySelector('#code').scrollTop = 0", vec![]);
    for _ in 0..8 {
        if browser.count("#code .chip.bad button") > 0 {
            browser.click("#code .chip.bad button");
        }
        browser.js("document.querySelector('#code').scrollTop += 500", vec![]);
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    browser.js("document.querySelector('#code').focus()", vec![]);
    browser.keys("a");
    browser.wait_text("#progress", "1 drafted");
    let (_, saved) = save(&browser);
    assert_eq!(saved.shown.get(&Row::Item(sample::item_id("P3"))), Some(&Shown::All));
    assert!(
        saved
            .decisions
            .iter()
            .any(|one| one.action == Action::Approve { item: sample::item_id("P3") })
    );
    // The keys that the page worked out are those of the link.
    let mut n_keys = 0;
    for decision in &saved.decisions {
        if let Some((segment, key)) = decision.action.segment() {
            assert_eq!(*key, review.link.segments[segment as usize].key, "segment {segment}");
            n_keys += 1;
        }
    }
    assert!(n_keys >= 3, "{n_keys}");
    browser.assert_quiet();
}

#[test]
fn unplanned_changes_are_assigned_and_accepted_and_the_item_approved_again() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let review = sample::rich();
    let page = pages.page("review.html", &review);
    browser.open(&page, "#unplanned");
    ready(&browser);
    browser.choose(".change select", "P4");
    browser.wait_text(".change .act", "Assigning to P4 makes P4’s approval stale");
    browser.click_text(".change button", "Assign to P4");
    browser.wait_text("#counts", "1 unplanned");
    browser.wait_text("[data-row='P4']", "stale");
    assert!(browser.text("#progress").contains("0 of 5 approved"));
    // P4 does not declare the file that was assigned to it; the other change hides something.
    for left in [1, 0] {
        browser.click_text(".change button", "Acknowledge");
        browser.wait("acknowledged", || (browser.count(".chip.bad") == left).then_some(()));
    }
    browser.click_text(".change button", "Accept as is");
    browser.wait_text("#counts", "0 unplanned");

    select(&browser, "P4");
    read_all(&browser);
    browser.keys("a");
    browser.wait_text("#progress", "1 drafted");

    // Drafts are there again after a reload, and can be taken back.
    browser
        .wait_for("Object.keys(localStorage).some((key) => localStorage[key].includes('approve'))");
    assert!(asks_before_leaving(&browser));
    let (path, saved) = save(&browser);
    assert!(!asks_before_leaving(&browser), "what a file holds can be left");
    browser.reload();
    ready(&browser);
    browser.wait_text("#save", "(5)");
    let types: Vec<&str> = saved.decisions.iter().map(|one| one.action.word()).collect();
    assert_eq!(types, ["assign", "acknowledge", "acknowledge", "accept", "approve"]);
    assert_eq!(saved.form.signature, vec![7; 64]);

    // Undoing the assignment takes back the approval that rests on it.
    browser.click("#save");
    browser.click(".drafts li:first-child button");
    browser.keys(Key::Escape);
    browser.wait_text("#save", "(2)");
    assert!(browser.text("#progress").contains("1 of 5 approved"));
    assert!(asks_before_leaving(&browser));

    // The file brings all of it back.
    browser.upload("#file", &path);
    browser.wait_text("#dialog", "5 decisions of the file are drafted here");
    browser.keys(Key::Escape);
    browser.wait_text("#save", "(5)");
    browser.assert_quiet();
}

#[test]
fn decisions_of_an_older_page_keep_what_is_unchanged_and_list_the_rest() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    browser.open(&pages.page("old.html", &sample::rich()), "#P5");
    ready(&browser);
    browser.wait_text("#approve", "Confirm no change needed");
    browser.keys("a");
    browser.wait_text("#progress", "1 drafted");
    browser.keys("n");
    browser.wait_text("#item-title", "Ambiguous");
    browser.click_text(".change button", "Accept as is");
    browser.wait_text("#counts", "1 ambiguous");
    let (path, _) = save(&browser);

    let mut changed = sample::rich();
    changed.items[4].fingerprint = codeboost_schema::ids::Digest::of(b"changed");
    browser.open(&pages.page("new.html", &changed), "");
    ready(&browser);
    browser.upload("#file", &path);
    browser.wait_text("#dialog", "1 decision of the file is drafted here");
    browser.wait_text("#dialog", "P5 has changed since");
    browser.keys(Key::Escape);
    browser.wait_text("#counts", "1 ambiguous");

    let junk = pages.write("junk.json", "{\"schema_version\": 2}");
    browser.upload("#file", &junk);
    browser.wait_text("#dialog", "not a decisions file of version 1");
    browser.assert_quiet();
}

#[test]
fn questions_requests_and_answers_are_drafted() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let review = sample::rich();
    browser.open(&pages.page("review.html", &review), "#P1");
    ready(&browser);
    browser.keys("j");
    browser.keys("r");
    browser.wait_for("document.activeElement.id === 'text'");
    browser.keys("Use the config, not a constant. </script>");
    browser.click("[data-part='add']");
    browser.wait_text(".notes", "Change request, drafted");
    browser.wait_text("#send", "Send 2 change requests");
    browser.click("#tab-ask");
    browser.type_into("#text", "Why so many attempts?");
    browser.chord(Key::Control, Key::Enter);
    browser.wait_text(".notes", "Question, drafted");
    // Keys typed into the field were no commands.
    assert_eq!(browser.text("#progress"), "1 of 5 approved");

    browser.click_text(".note button", "Withdraw");
    browser.wait_text("#send", "Send 1 change request");
    browser.click_text(".note button", "Accept problem…");
    browser.type_into(".note textarea", "Known, fixed in the next issue.");
    browser.click_text(".note button", "Accept problem");
    browser.wait_text(".notes", "Problem, accepted");

    browser.click_text(".banner button", "Add guidance");
    browser.type_into("#dialog textarea", "Look at the second upload.");
    browser.click("#dialog-actions .main");
    browser.wait_text(".banner", "Add guidance (drafted)");

    browser.click("#send");
    browser.type_into("#dialog textarea", "Make the number of attempts configurable.");
    browser.click("#dialog-actions .main");
    browser.wait_text("#send", "Sending drafted");

    let (_, saved) = save(&browser);
    let types: Vec<&str> = saved.decisions.iter().map(|one| one.action.word()).collect();
    assert_eq!(
        types,
        ["request_change", "ask", "withdraw_request", "problem", "resolve_state", "reject"]
    );
    match &saved.decisions[0].action {
        Action::RequestChange { segment: Some(segment), key: Some(key), text, .. } => {
            assert_eq!(*key, review.link.segments[*segment as usize].key);
            assert_eq!(text, "Use the config, not a constant. </script>");
        }
        other => panic!("{other:?}"),
    }
    browser.assert_quiet();
}

/// The text of a script element.
fn element<'a>(html: &'a str, id: &str) -> &'a str {
    let (_, rest) = html.split_once(&format!(" id=\"{id}\"")).unwrap();
    rest.split_once('>').unwrap().1.split_once("</script>").unwrap().0
}

#[test]
fn a_damaged_or_formless_page_offers_no_approval() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let whole = html(&sample::rich(), true);
    // Data of another review, whole in itself, at each place where data stands.
    let mut other = sample::rich();
    for file in &mut other.contents {
        file.left_out = Some("nothing".to_owned());
    }
    other.plan.items[0].title.push('!');
    let other = html(&other, true);
    for id in ["index", "row0-0", "row1-0"] {
        let damaged = whole.replacen(element(&whole, id), element(&other, id), 1);
        assert_ne!(whole, damaged, "{id}");
        browser.open(&pages.write("damaged.html", &damaged), "#P5");
        ready(&browser);
        browser.wait_text("#banners", "This page is damaged");
        browser.keys("a");
        browser.wait_text("#toast", "damaged");
        assert_eq!(browser.text("#progress"), "1 of 5 approved");
    }

    browser.open(&pages.write("formless.html", &html(&sample::rich(), false)), "#P5");
    ready(&browser);
    browser.wait_text("#banners", "carries no approval form");
    browser.keys("a");
    browser.wait_text("#toast", "no approval form");

    let mut review = sample::rich();
    review.read_only = Some("this repository has no signing key".to_owned());
    browser.open(&pages.page("readonly.html", &review), "#unplanned");
    ready(&browser);
    browser.wait_text("#banners", "no signing key");
    assert_eq!(
        browser.js("return document.querySelector('.change select').disabled", vec![]),
        json!(true)
    );

    // What can not be unpacked, and a script that is another one than the policy names.
    for id in ["index", "script"] {
        let good = element(&whole, id);
        for bad in [&good[4..], &good[..good.len() / 2], "", element(&other, "row0-0")] {
            let broken = whole.replacen(good, bad, 1);
            browser.open(&pages.write("broken.html", &broken), "");
            browser.wait_text("h1", "This page is damaged");
            assert_eq!(browser.count("button:not([disabled])"), 0);
        }
    }
    assert_eq!(browser.requests(), Vec::<String>::new());
}

#[test]
fn without_scripts_plan_rows_and_the_way_on_are_there() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    browser.without_scripts();
    browser.open(&pages.page("review.html", &sample::rich()), "");
    let text = browser.text("body");
    for part in [
        "Retry failed uploads with backoff",
        "Unplanned",
        "codeboost review 412",
        "Resolve 2 ambiguous changes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    browser.assert_quiet();
}

#[test]
fn copied_code_is_the_code_alone_with_its_own_characters() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    browser.open(&pages.page("review.html", &sample::rich()), "#unplanned");
    ready(&browser);
    let copied = browser.js(
        "const rows = [...document.querySelectorAll('#code .r')].slice(-3);\
         const range = document.createRange();\
         range.setStart(rows[0], 0); range.setEnd(rows[2], rows[2].childNodes.length);\
         getSelection().removeAllRanges(); getSelection().addRange(range);\
         const event = new ClipboardEvent('copy', {clipboardData: new DataTransfer(), bubbles: true, cancelable: true});\
         rows[0].dispatchEvent(event);\
         return event.clipboardData.getData('text/plain');",
        vec![],
    );
    assert_eq!(
        copied,
        json!(
            "    // checked above\u{202e} \u{2066}// allow only admins\u{2069} \u{2066}\n    role == \"admin\u{200b}\" || role == \"root\"   \n}"
        )
    );
}

#[test]
fn panes_fit_each_width() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let page = pages.page("review.html", &sample::rich());
    let shown = |css: &str| {
        browser.js("const box = document.querySelector(arguments[0]).getBoundingClientRect(); return box.width > 40 && box.height > 40", vec![json!(css)])
            == json!(true)
    };
    for (width, all) in [(1920, true), (1440, true), (1280, false)] {
        browser.size(width, 900);
        browser.open(&page, "");
        ready(&browser);
        assert!(shown("#plan") && shown("#code"), "{width}");
        assert_eq!(shown("#talk"), all, "{width}");
        let wide = browser.js("return document.documentElement.scrollWidth <= innerWidth", vec![]);
        assert_eq!(wide, json!(true), "nothing sticks out at {width}");
    }
    browser.click_text("#switcher button", "Conversation");
    assert!(shown("#talk") && !shown("#code"));
    browser.size(900, 700);
    browser.open(&page, "");
    ready(&browser);
    assert!(!shown("#plan") && shown("#code"));
    browser.wait_text("#switcher", "1280 pixels");
    browser.click_text("#switcher button", "Plan");
    assert!(shown("#plan") && !shown("#code"));
    browser.assert_quiet();
}

#[test]
fn a_long_review_keeps_few_elements_and_is_searched_whole() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    browser.open(&pages.page("review.html", &sample::wide(4_000)), "");
    ready(&browser);
    assert_eq!(browser.count("[data-row]"), 13);
    let elements =
        || browser.js("return document.querySelectorAll('*').length", vec![]).as_u64().unwrap();
    let at_first = elements();
    assert!(at_first < 2500, "{at_first}");
    read_all(&browser);
    assert!(elements() < 3000, "{}", elements());
    browser.wait_text("#unseen", "All seen");
    browser.keys("/");
    browser.wait_for("document.querySelector('#search').open");
    browser.keys("part010/src/module_3");
    browser.wait_text("#hits-said", "hit");
    browser.keys(Key::Enter);
    browser.wait_text("#item-title", "Part 10 of the work");
    browser.assert_quiet();
}

#[test]
fn a_change_that_is_larger_than_a_part_is_read_along_and_decided_as_one() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let lines = |n: u32| -> String { (0..n).map(|n| format!("line {n}\n")).collect() };
    let mut builder = sample::Builder::new();
    builder.item("P1", "Title", "Intent", &["a.txt"]);
    builder.file("a.txt", Some("1\n"), Some("one\n"), &["P1"]);
    builder.file("b.txt", None, Some(&lines(7_001)), &["stranger"]);
    builder.file("c.txt", Some("1\n"), Some("one\n"), &["stranger"]);
    let review = builder.finish();
    let key = review.link.segments[2].key.clone();
    browser.open(&pages.page("review.html", &review), "#unplanned");
    ready(&browser);
    browser.wait_text("#nth", "Change 1 of 3");
    browser.click_text(".change button", "Accept as is");
    browser.wait_text("#toast", "First look at all lines of this change");
    // What is far from the viewport is not there.
    assert!(browser.count("#code .r") < 200);

    // A hit in the middle is found where it is, and the lines before it were not seen by that.
    browser.keys("/");
    browser.type_into("#query", "line 6543");
    browser.wait_text("#hits-said", "1 hit");
    browser.keys(Key::Enter);
    browser.wait_for(
        "[...document.querySelectorAll('#code .r')].some((row) => row.textContent.includes('line 6543') && row.dataset.n.includes('6544'))",
    );
    browser.wait_text("#where-path", "b.txt");
    browser.wait_text("#unseen", "3 not seen");

    // Numbers go on across parts, and no line is twice there or missing.
    browser.js("window.found = new Set(); document.querySelector('#code').scrollTop = 0;", vec![]);
    while browser.js_async(
        "const code = document.querySelector('#code');\
         const frame = () => new Promise((done) => requestAnimationFrame(done));\
         for (let step = 0; step < 20; step++) {\
           for (let n = 0; n < 3; n++) await frame();\
           for (const row of code.querySelectorAll('.r.a'))\
             if (row.textContent.includes('line ')) window.found.add(`${row.dataset.n.trim().split(/ +/)[0]} ${/line \\d+/.exec(row.textContent)[0]}`);\
           if (code.scrollTop + code.clientHeight >= code.scrollHeight - 2) return false;\
           code.scrollTop += code.clientHeight - 60;\
         }\
         return true;",
        vec![],
    ) == json!(true)
    {}
    let numbers = browser.js(
        "return [window.found.size, [...window.found].filter((one) => { const [n, , line] = one.split(' '); return Number(n) !== Number(line) + 1; })];",
        vec![],
    );
    assert_eq!(numbers, json!([7001, []]));
    browser.wait_text("#unseen", "All seen");
    select(&browser, "P1");
    select(&browser, "unplanned");
    browser.click_text(".change button", "Accept as is");
    browser.wait_text("#counts", "2 unplanned");
    let (path, _) = save(&browser);
    let saved: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(saved["decisions"][0]["key"], json!(key), "{saved}");
    browser.assert_quiet();
}

#[test]
fn more_of_a_file_is_a_click_away_with_the_numbers_of_both_sides() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let mut builder = sample::Builder::new();
    builder.item("P1", "Say fifty", "Words, not numbers.", &["a.txt"]);
    let old: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    let new = old.replace("line 50\n", "fifty\nand more\n");
    builder.file("a.txt", Some(&old), Some(&new), &["P1"]);
    browser.open(&pages.page("review.html", &builder.finish()), "#P1");
    ready(&browser);
    let numbers = || {
        browser.js(
        "return [...document.querySelectorAll('#code .r')].map((one) => one.dataset.n.replace(/\\s+/g, ' ').trim())",
        vec![],
    )
    };
    let shown = |from: u64, to: u64| -> Vec<String> {
        (from..=to)
            .flat_map(|n| match n {
                1..50 => vec![format!("{n} {n}")],
                50 => vec!["50 -".to_owned(), "50 +".to_owned(), "51 +".to_owned()],
                _ => vec![format!("{n} {}", n + 1)],
            })
            .collect()
    };
    assert_eq!(numbers(), json!(shown(47, 53)));
    browser.click_text("#code .hunk button", "Show 20 more lines");
    browser.wait("lines above", || (numbers() == json!(shown(27, 53))).then_some(()));
    browser.click_text("#code .elided button", "Show 20 more lines");
    browser.wait("lines below", || (numbers() == json!(shown(27, 73))).then_some(()));
    browser.click_text("#code .file button", "Whole file");
    read_all(&browser);
    browser.js("document.querySelector('#code').scrollTop = 0", vec![]);
    browser.wait_for("document.querySelector('#code .r')?.dataset.n.trim().startsWith('1')");
    browser.click_text("#code .file button", "Only changes");
    browser.wait("only what was asked for", || (numbers() == json!(shown(27, 73))).then_some(()));
    browser.assert_quiet();
}

#[test]
fn paper_carries_the_keys_however_it_is_printed() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let review = sample::rich();
    browser.open(&pages.page("review.html", &review), "#P1");
    ready(&browser);
    browser.wait("keys on paper", || {
        browser.js("dispatchEvent(new Event('beforeprint'))", vec![]);
        let keys = browser.js(
            "return [...document.querySelectorAll('#paper td.key')].map((one) => one.textContent)",
            vec![],
        );
        browser.js("dispatchEvent(new Event('afterprint'))", vec![]);
        let keys: Vec<String> = serde_json::from_value(keys).unwrap();
        let known = |key: &String| review.link.segments.iter().any(|one| one.key.as_str() == key);
        (keys.len() == 5 && keys.iter().all(known)).then_some(())
    });
    browser.assert_quiet();
}
