//! Every control of the review page, by mouse and by keyboard alone.
//!
//! The table below names each control once. A control that a state shows and the table does not
//! name is a fault, and so is one that the Tab key does not reach.

use codeboost_render::sample;
use serde_json::{Value, json};
use thirtyfour::Key;

use crate::page::Pages;
use crate::support::browser::Browser;
use crate::support::page::ready;

/// What tells that a control did its work.
#[derive(Clone, Copy)]
enum Then {
    /// A dialog opened.
    Dialog,
    /// Decisions were drafted or taken back.
    Drafts,
    /// The page said something.
    Says,
    /// Another row is shown.
    Row(&'static str),
    /// Another change is the current one.
    Change,
    /// The code pane shows something else.
    Code,
    /// An expression became true.
    Is(&'static str),
}

/// Where it is, the selector, words in its text or name, the key that acts on it, what follows.
type Control = (&'static str, &'static str, &'static str, char, Then);

const ENTER: char = '\u{e007}';
const RIGHT: char = '\u{e014}';
const DOWN: char = '\u{e015}';
const PAGE: char = '\u{e00f}';

const PRESSED: &str = "aim.getAttribute('aria-pressed') === 'true'";
const OPEN: &str = "aim.parentElement.open";
/// A field for the reason opened and has the focus.
const FIELD: &str = "document.activeElement.matches('#talk textarea[aria-label=Why]')";
const WIDER: &str = "aim.getAttribute('aria-valuenow') !== was";

const CONTROLS: &[Control] = &[
    ("P1", "#open-search", "", ENTER, Then::Dialog),
    ("P1", "#print", "", ENTER, Then::Is("window.printed")),
    ("P1", "#theme", "", ' ', Then::Is("document.documentElement.dataset.theme === 'light'")),
    ("P1", "#open-keys", "", ENTER, Then::Dialog),
    ("P1", "#open-issue", "", ENTER, Then::Dialog),
    ("P1", "#send", "", ENTER, Then::Dialog),
    ("P1", "#load", "", ENTER, Then::Is("window.chose")),
    ("P1", "#save", "", ENTER, Then::Dialog),
    ("P1", "#main-button", "", ENTER, Then::Dialog),
    ("P1", "#banners button", "Review anyway", ENTER, Then::Dialog),
    ("P1", "#banners button", "Add guidance", ENTER, Then::Dialog),
    ("P1", "#banners button", "Cancel task", ENTER, Then::Dialog),
    ("P1", "#counts button", "unplanned", ENTER, Then::Row("unplanned")),
    ("P1", "#counts button", "ambiguous", ENTER, Then::Row("ambiguous")),
    ("P1", "#items [data-part=open]", "P2", ENTER, Then::Row("P2")),
    ("P1", "#items button", "src/client/backoff.rs", ENTER, Then::Change),
    ("P1", "#divide-plan", "", RIGHT, Then::Is(WIDER)),
    ("P1", "#divide-talk", "", RIGHT, Then::Is(WIDER)),
    ("P1", "#approve", "", ENTER, Then::Says),
    ("P1", "#unseen", "", ENTER, Then::Change),
    ("P1", "#previous", "", ENTER, Then::Says),
    ("P1", "#next", "", ENTER, Then::Change),
    ("P1", "#split", "", ' ', Then::Is(PRESSED)),
    ("P1", "#wrap", "", ' ', Then::Is(PRESSED)),
    ("P1", "#code", "", PAGE, Then::Is("aim.scrollTop > 0 || location.hash.startsWith('#s')")),
    (
        "P1",
        ".file .fold",
        "",
        ENTER,
        Then::Is("document.querySelector('.fold[aria-expanded=false]')"),
    ),
    ("P1", ".file button", "Whole file", ENTER, Then::Code),
    ("P1", ".hunk button", "Show 20 more", ENTER, Then::Code),
    (
        "P1",
        "[data-part=hide]",
        "",
        ENTER,
        Then::Is("document.querySelector('#panes').matches('.no-talk')"),
    ),
    ("P1", "#talk button", "Accept problem", ENTER, Then::Is(FIELD)),
    ("P1", "#talk button", "Withdraw", ENTER, Then::Drafts),
    ("P1", "#talk button", "line 1 of the change", ENTER, Then::Change),
    ("P1", "#talk button", "Judge", ENTER, Then::Is(FIELD)),
    ("P1", "#tab-ask", "", RIGHT, Then::Is("document.querySelector('#talk [aria-selected=true]')")),
    (
        "P1",
        "#talk button",
        "About change",
        ENTER,
        Then::Is("document.querySelector('#talk').textContent.includes('About the whole item')"),
    ),
    ("P1", "#text", "", 'x', Then::Is("document.activeElement === aim")),
    ("P1", "[data-part=add]", "", ENTER, Then::Says),
    ("P2", "#withdraw", "", ENTER, Then::Drafts),
    ("P2", "#show-full", "", ENTER, Then::Is(PRESSED)),
    ("P2", "#show-since", "", ENTER, Then::Is(PRESSED)),
    ("P2", ".head summary", "Output", ENTER, Then::Is(OPEN)),
    ("P2", ".head button.link", "P", ENTER, Then::Row("P1")),
    ("P2", ".end button", "full change", ENTER, Then::Code),
    ("P3", ".chip button", "Acknowledge", ENTER, Then::Drafts),
    ("P3", ".card summary", "Details", ENTER, Then::Is(OPEN)),
    ("P3", ".end button", "to acknowledge", ENTER, Then::Change),
    ("P5", "#approve", "Confirm", ENTER, Then::Drafts),
    ("ambiguous", ".hunk button", "P2", ENTER, Then::Row("P2")),
    ("ambiguous", ".elided button", "Show 20 more", ENTER, Then::Code),
    (
        "ambiguous",
        ".change select",
        "",
        DOWN,
        Then::Is("aim.value || document.activeElement === aim"),
    ),
    ("ambiguous", ".act button", "Accept as is", ENTER, Then::Drafts),
    ("unplanned", ".act button", "Accept as is", ENTER, Then::Drafts),
    ("accepted", ".act button", "Undo choice", ENTER, Then::Drafts),
];

/// Reached and scrolled, but nothing to act on.
const REGIONS: &[&str] = &["#talk .notes"];

const ALL: &str = "const seen = (node) => node.checkVisibility() && !node.closest('[hidden]');\
    const all = [...document.querySelectorAll('button, select, input, textarea, summary, a[href], [tabindex]')].filter(seen);\
    const is = (node, css, words) => node.matches(css) && `${node.textContent} ${node.getAttribute('aria-label') ?? ''}`.includes(words);";

/// What the page stands at, to see that it changed.
fn standing(browser: &Browser) -> Value {
    browser.js(
        "return { drafts: document.querySelector('#save').textContent,\
           row: document.querySelector('[aria-current=true]')?.closest('[data-row]')?.dataset.row,\
           hash: location.hash, code: document.querySelector('#code').textContent,\
           says: document.querySelector('#toast').textContent,\
           dialog: Boolean(document.querySelector('dialog[open]')) };",
        vec![],
    )
}

fn followed(browser: &Browser, control: &Control, before: &Value) {
    let (place, css, words, _, then) = control;
    let what = format!("{css} {words:?} of {place}");
    browser.wait(&what, || {
        let now = standing(browser);
        let is =
            match then {
                Then::Dialog => now["dialog"] == json!(true),
                Then::Drafts => now["drafts"] != before["drafts"],
                Then::Says => now["says"] != json!(""),
                Then::Row(row) => now["row"] == json!(row),
                Then::Change => now["hash"] != before["hash"],
                Then::Code => now["code"] != before["code"],
                Then::Is(expression) => browser.js(
                    &format!(
                        "const aim = window.aim, was = window.was; return Boolean({expression});"
                    ),
                    vec![],
                ) == json!(true),
            };
        is.then_some(())
    });
}

/// Opens the page at a control's place and finds the control.
fn begin(browser: &Browser, page: &std::path::Path, control: &Control) -> Value {
    let (place, css, words, ..) = control;
    browser.open(page, &format!("#{place}"));
    ready(browser);
    // What the control before left behind: drafts, panes, theme.
    let had = browser.js(
        "const had = localStorage.length; localStorage.clear(); Storage.prototype.setItem = () => {}; return had;",
        vec![],
    );
    if had != json!(0) {
        browser.open(page, &format!("#{place}"));
        ready(browser);
    }
    match *css {
        "#show-since" => browser.click("#show-full"),
        ".end button" => {
            let script =
                "const code = document.querySelector('#code'); code.scrollTop = code.scrollHeight;";
            browser.js(script, vec![]);
        }
        // Without drafts there is nothing to save.
        "#save" => browser.click_text("#talk button", "Withdraw"),
        _ => {}
    }
    // What was seen is told with the next frames, and draws some controls again.
    browser.js_async(
        "for (let n = 0; n < 3; n++) await new Promise((done) => requestAnimationFrame(done));",
        vec![],
    );
    browser.wait(css, || {
        let found = browser.js(
            &format!(
                "{ALL} window.print = () => {{ window.printed = true; }};\
                 document.querySelector('#file').addEventListener('click', (event) => {{ event.preventDefault(); window.chose = true; }});\
                 const aim = all.find((node) => is(node, arguments[0], arguments[1]));\
                 document.querySelector('[data-aim]')?.removeAttribute('data-aim');\
                 if (aim) {{ aim.dataset.aim = ''; window.was = aim.getAttribute('aria-valuenow'); }}\
                 window.aim = aim; return Boolean(aim);"
            ),
            vec![json!(css), json!(words)],
        );
        (found == json!(true)).then_some(())
    });
    standing(browser)
}

#[test]
fn each_control_works_by_mouse() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let page = pages.page("review.html", &sample::rich());
    for control in CONTROLS {
        let before = begin(&browser, &page, control);
        match control.1 {
            "#divide-plan" | "#divide-talk" => browser.drag("[data-aim]", 24),
            // A click in the code makes its change the current one.
            "#code" => browser.click("#code .r.d"),
            ".change select" => browser.choose("[data-aim]", "P1"),
            "#text" => browser.click("[data-aim]"),
            "#tab-ask" => browser.click("#tab-request"),
            _ => browser.click("[data-aim]"),
        }
        followed(&browser, control, &before);
    }
    assert_quiet(&browser);
}

/// Nothing was asked for, and nothing was said but that a page with drafts was left by a script:
/// the browser asks nobody before there was a click, and notes that.
fn assert_quiet(browser: &Browser) {
    assert_eq!(browser.requests(), Vec::<String>::new());
    let said = browser.console();
    let own: Vec<_> = said.iter().filter(|text| !text.contains("'beforeunload'")).collect();
    assert_eq!(own, Vec::<&String>::new());
}

#[test]
fn each_control_works_by_keyboard_alone() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let page = pages.page("review.html", &sample::rich());
    for control in CONTROLS {
        let before = begin(&browser, &page, control);
        browser.js("window.aim.focus();", vec![]);
        browser.keys(control.3);
        followed(&browser, control, &before);
    }
    assert_quiet(&browser);
}

#[test]
fn tab_reaches_every_control_and_the_table_names_it() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let page = pages.page("review.html", &sample::rich());
    let table: Vec<Value> = CONTROLS
        .iter()
        .map(|(_, css, words, ..)| {
            // What there is of each item, file and change is named once.
            let words =
                if css.starts_with("#items") || [".hunk button", ".end button"].contains(css) {
                    ""
                } else {
                    words
                };
            json!([css, words])
        })
        .chain(REGIONS.iter().map(|css| json!([css, ""])))
        .collect();
    for place in ["P1", "P2", "P3", "P4", "P5", "ambiguous", "unplanned", "accepted"] {
        browser.open(&page, &format!("#{place}"));
        ready(&browser);
        browser.js(
            "window.name_ = (node) => `${node.localName}#${node.id} ${node.textContent.replace(/\\d+/g, '').slice(0, 40)}`;\
             window.reached = new Set();\
             addEventListener('focusin', (event) => window.reached.add(window.name_(event.target)));",
            vec![],
        );
        // The list draws what is near, so the walk goes on until it is back where it began.
        for _ in 0..12 {
            browser.keys(Key::Tab.value().to_string().repeat(10));
        }
        let left = browser.js(
            &format!(
                "{ALL} const name = window.name_;\
                 return [all.filter((node) => !node.matches('#tab-request') && !window.reached.has(name(node))).map(name),\
                   all.filter((node) => !node.matches('#tab-request') && !arguments[0].some(([css, words]) => is(node, css, words))).map(name)];"
            ),
            vec![json!(table)],
        );
        assert_eq!(left, json!([[], []]), "not reached, and not named, in {place}");
    }
    browser.assert_quiet();
}

#[test]
fn dialogs_keep_the_focus_and_close_by_mouse_and_by_keyboard() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let page = pages.page("review.html", &sample::rich());
    browser.open(&page, "#P1");
    ready(&browser);
    browser.click_text("#talk button", "Withdraw");
    for opener in ["#open-keys", "#open-issue", "#main-button", "#open-search", "#save", "#send"] {
        for close in ["escape", "mouse", "keyboard"] {
            browser.js(&format!("document.querySelector('{opener}').focus()"), vec![]);
            browser.keys(Key::Enter);
            browser.wait_for("document.querySelector('dialog[open]')");
            browser.js(
                "window.outside = []; document.addEventListener('focusin', (event) => {\
                   event.target.dataset.reached = ''; if (!event.target.closest('dialog')) window.outside.push(event.target.id); });",
                vec![],
            );
            browser.keys(Key::Tab.value().to_string().repeat(20));
            let left = browser.js(
                &format!(
                    "{ALL} const inside = document.querySelector('dialog[open]');\
                     return [all.filter((node) => inside.contains(node) && node.tabIndex >= 0 && !('reached' in node.dataset) && node !== document.activeElement)\
                       .map((node) => node.outerHTML.slice(0, 90)), window.outside.filter((id) => id)];"
                ),
                vec![],
            );
            assert_eq!(left, json!([[], []]), "not reached, and left to, in {opener}");
            match close {
                "mouse" if opener != "#open-search" => {
                    browser.click("dialog[open] [aria-label=Close]");
                }
                "keyboard" if opener != "#open-search" => {
                    browser.js(
                        "document.querySelector('dialog[open] [aria-label=Close]').focus()",
                        vec![],
                    );
                    browser.keys(Key::Enter);
                }
                _ => browser.keys(Key::Escape),
            }
            browser.wait_for("!document.querySelector('dialog[open]')");
        }
    }
    browser.assert_quiet();
}

#[test]
fn a_hit_is_taken_by_mouse_and_by_keyboard() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    let page = pages.page("review.html", &sample::rich());
    for by_mouse in [true, false] {
        browser.open(&page, "#P1");
        ready(&browser);
        browser.keys("/");
        browser.type_into("#query", "config");
        browser.wait_for("document.querySelectorAll('#hits .hit').length > 2");
        if by_mouse {
            browser.click("#hits .hit:nth-child(3)");
        } else {
            for key in [Key::Down, Key::Down, Key::Enter] {
                browser.keys(key);
            }
        }
        browser.wait_for("!document.querySelector('dialog[open]') && location.hash !== '#P1' || document.querySelector('[data-row=P2] [aria-current=true], [data-row=P2][aria-current=true]')");
    }
    browser.assert_quiet();
}

#[test]
fn panes_are_switched_by_keyboard_where_only_one_fits() {
    let Some(browser) = Browser::start() else { return };
    let pages = Pages::new();
    browser.size(1000, 800);
    browser.open(&pages.page("review.html", &sample::rich()), "#P1");
    ready(&browser);
    for pane in ["plan", "talk", "code"] {
        browser
            .js(&format!("document.querySelector('#switcher [data-pane={pane}]').focus()"), vec![]);
        browser.keys(" ");
        browser.wait_for(&format!("document.querySelector('#{pane}').checkVisibility()"));
    }
    browser.assert_quiet();
}
