//! A repository, plan and issue that attack whoever reviews them; and the same page from any
//! machine.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use serde_json::{Value, json};

use crate::support::TestEnv;
use crate::support::browser::Browser;
use crate::support::page::{assert_inert, read_all, ready, select};
use crate::support::road::plan;

/// Markup, script, links, quotes, separators, controls that reorder, an escape, a blank of no width.
const ATTACK: &str = "</script><!--<script>document.title='owned'</script>\
    <img src=x onerror=\"document.title='owned'\"><a href=\"javascript:document.title='owned'\">x</a>\
    '\"`${1}]]>&lt;\u{2028}\u{2029}\u{202e}\u{2066}\u{1b}[31m\u{200b}__proto__";

/// Names of files: markup, quotes, a line break, controls, bytes that are no text.
const NAMES: &[&[u8]] = &[
    b"<img src=x onerror=document.title='owned'>",
    b"a\"b'c`d",
    b"two\nlines",
    "right\u{202e}tfel".as_bytes(),
    b"esc\x1b[31mape",
    b"not\xffutf8",
    b"__proto__",
    b"</script>",
];

fn write(env: &TestEnv, name: &[u8], bytes: &[u8]) {
    env.write(std::path::Path::new("repo").join(OsStr::from_bytes(name)), bytes);
}

/// A task whose every text attacks; the address that its pictures and links name is nobody's.
fn attack() -> TestEnv {
    let env = TestEnv::new();
    env.git(".", ["init", "-q", "repo"]);
    env.git("repo", ["config", "user.name", "A. Person"]);
    env.git("repo", ["config", "user.email", "person@example.invalid"]);
    for name in NAMES {
        write(&env, name, b"before\n");
    }
    env.git("repo", ["add", "-A"]);
    env.git("repo", ["commit", "-q", "-m", "base"]);
    env.git("repo", ["checkout", "-q", "-b", "topic"]);
    env.write(
        "repo/issue.md",
        format!(
            "---\nnumber: 412\n---\n\n# Title {title}\n\n\
             ![p](http://127.0.0.1:47811/image) [l](http://127.0.0.1:47811/link) \
             [j](javascript:document.title='owned') [d](data:text/html,<script>1</script>)\n\n\
             <img src=\"http://127.0.0.1:47811/raw\" onerror=\"document.title='owned'\">\n\n\
             <script src=\"http://127.0.0.1:47811/script\"></script>\n\n{ATTACK}\n",
            title = ATTACK.replace(['\u{2028}', '\u{2029}'], ""),
        ),
    );
    std::fs::copy(env.path("repo/issue.md"), env.path("issue.md")).unwrap();
    std::fs::remove_file(env.path("repo/issue.md")).unwrap();
    let ok = |args: &[&str]| {
        let done = env.run_in("repo", args);
        assert_eq!(done.code, 0, "{args:?}: {done}");
    };
    ok(&["init", "-q"]);
    ok(&["task", "add", "../issue.md", "--base", "main", "--head", "topic", "-q"]);
    let mut text = plan(&[("P1", &["__proto__", "a\"b'c`d"], &[]), ("P2", &["long"], &["P1"])]);
    for item in text["items"].as_array_mut().unwrap() {
        let short = "</script><img src=x onerror=\"document.title='owned'\">\u{202e}\u{200b}";
        (item["title"], item["intent"]) = (json!(short), json!(ATTACK));
        item["acceptance"][0]["text"] = json!(ATTACK);
        item["files"][0]["change"] = json!(ATTACK);
    }
    text["summary"] = json!(ATTACK);
    text["items"][1]["files"][0]["kind"] = json!("add");
    env.write("plan.json", text.to_string());
    ok(&["plan", "import", "412", "../plan.json", "-q"]);
    ok(&["plan", "approve", "412", "--yes", "-q"]);

    let commit = |message: &str| {
        env.git("repo", ["add", "-A"]);
        let author = "--author=&lt;b&gt;A \u{202e}rohtuA\u{1b}[31m <a@example.invalid>";
        env.git("repo", ["commit", "-q", author, "-m", message]);
        env.git("repo", ["rev-parse", "HEAD"])
    };
    let line = format!("{ATTACK}\n");
    for name in &NAMES[..4] {
        write(&env, name, line.as_bytes());
    }
    ok(&["ledger", "record", &commit(&format!("work {ATTACK}")), "--item", "P1", "-q"]);
    write(
        &env,
        b"long",
        format!("{}\n{}\n", "x".repeat(1 << 20), "\u{1f600}".repeat(300)).as_bytes(),
    );
    write(&env, NAMES[6], b"\xff\xfe not text\r\n\ttab  \n\0\n");
    ok(&["ledger", "record", &commit("more"), "--item", "P2", "-q"]);
    for name in &NAMES[4..] {
        write(&env, name, line.as_bytes());
    }
    commit(&format!("foreign {ATTACK}\n\nPlan-Item: P1"));
    ok(&["link", "412", "-q"]);
    ok(&["render", "412", "-q"]);
    env
}

const PAGE: &str = "repo/.codeboost/tasks/412/review.html";

#[test]
fn an_attack_in_every_text_of_a_repository_stays_text() {
    let Some(browser) = Browser::start() else { return };
    let env = attack();
    browser.open(&env.path(PAGE), "");
    ready(&browser);
    let title = browser.js("return document.title", vec![]);
    assert!(title.as_str().unwrap().contains("Title"), "{title}");
    let names = browser.js_async(
        "const bytes = Uint8Array.from(atob(document.querySelector('#index').textContent), (c) => c.charCodeAt(0));\
         const index = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')));\
         return (await index.json()).files.map((file) => file.path);",
        vec![],
    );
    assert_eq!(names.as_array().unwrap().len(), NAMES.len() + 1);
    for row in ["P1", "P2", "ambiguous", "unplanned", "accepted"] {
        select(&browser, row);
        read_all(&browser);
        assert_inert(&browser);
    }
    // A name that is markup is a name.
    select(&browser, "P1");
    assert!(
        browser
            .texts("#code .file .path")
            .iter()
            .any(|one| one == "<img src=x onerror=document.title='owned'>")
    );
    for button in ["#open-issue", "#main-button", "#open-keys"] {
        browser.click(button);
        assert_inert(&browser);
        browser.keys(thirtyfour::Key::Escape);
    }
    browser.js("document.body.dispatchEvent(new Event('beforeprint', {bubbles: true})); dispatchEvent(new Event('beforeprint'))", vec![]);
    assert_inert(&browser);
    browser.js("dispatchEvent(new Event('afterprint'))", vec![]);

    // A line of a megabyte is cut, and shown whole when that is asked for.
    select(&browser, "P2");
    browser.wait_text("#code .more", "show all 1,048,576 characters");
    browser.click("#code .more");
    let length = "Math.max(...[...document.querySelectorAll('#code .r.a > span')].map((one) => one.textContent.length))";
    browser.wait_for(&format!("{length} >= 1048576"));
    assert_eq!(browser.js("return document.title", vec![]), title);
    browser.assert_quiet();
}

#[test]
fn code_is_copied_as_it_is() {
    let Some(browser) = Browser::start() else { return };
    let env = attack();
    browser.open(&env.path(PAGE), "#P1");
    ready(&browser);
    let copied = browser.js(
        "const row = document.querySelector('#code .r.a');\
         const range = document.createRange();\
         range.selectNodeContents(row);\
         getSelection().removeAllRanges(); getSelection().addRange(range);\
         const event = new ClipboardEvent('copy', {clipboardData: new DataTransfer(), bubbles: true, cancelable: true});\
         row.dispatchEvent(event);\
         return event.clipboardData.getData('text/plain');",
        vec![],
    );
    assert_eq!(copied, json!(ATTACK));
}

#[test]
fn no_request_leaves_whatever_is_tried() {
    let Some(browser) = Browser::start() else { return };
    let env = attack();
    // What arrives at the listener is noticed.
    browser.visit("http://127.0.0.1:47811/control");
    browser.wait("the control arrives", || {
        browser.arrived().iter().any(|one| one.contains("127.0.0.1:47811/control")).then_some(())
    });
    browser.open(&env.path(PAGE), "");
    ready(&browser);
    browser.arrived();
    let title = browser.js("return document.title", vec![]);
    let tried = browser.js_async(
        "const at = (name) => `http://127.0.0.1:47811/${name}`, tried = [], stopped = [];\
         addEventListener('securitypolicyviolation', (event) => stopped.push(event.effectiveDirective));\
         const ways = {\
           image: () => { const one = new Image(); one.src = at('image'); document.body.append(one); },\
           fetch: () => fetch(at('fetch'), {mode: 'no-cors'}).catch(() => {}),\
           beacon: () => navigator.sendBeacon(at('beacon'), 'x'),\
           socket: () => new WebSocket('ws://127.0.0.1:47811/socket'),\
           events: () => new EventSource(at('events')),\
           frame: () => { const one = document.createElement('iframe'); one.src = at('frame'); document.body.append(one); },\
           script: () => { const one = document.createElement('script'); one.src = at('script'); document.body.append(one); },\
           style: () => { const one = document.createElement('link'); one.rel = 'stylesheet'; one.href = at('style'); document.head.append(one); },\
           prefetch: () => { const one = document.createElement('link'); one.rel = 'prefetch'; one.href = at('prefetch'); document.head.append(one); },\
           css: () => { document.body.style.backgroundImage = `url(${at('css')})`; },\
           video: () => { const one = document.createElement('video'); one.src = at('video'); document.body.append(one); },\
           object: () => { const one = document.createElement('object'); one.data = at('object'); document.body.append(one); },\
           form: () => { const one = document.createElement('form'); one.action = at('form'); one.method = 'post'; document.body.append(one); one.submit(); },\
           base: () => { const one = document.createElement('base'); one.href = at('base/'); document.head.append(one); },\
           font: () => new FontFace('f', `url(${at('font')})`).load().catch(() => {}),\
           worker: () => new Worker(URL.createObjectURL(new Blob([`fetch('${at('worker')}')`]))),\
           inline: () => { const one = document.createElement('script'); one.textContent = 'document.title = \"owned\"'; document.body.append(one); },\
           html: () => { document.body.innerHTML += `<img src=${at('html')}>`; },\
           timer: () => setTimeout('document.title = \"owned\"', 0),\
         };\
         for (const name of Object.keys(ways)) { try { await ways[name](); tried.push(name); } catch { tried.push(`${name} threw`); } }\
         await new Promise((done) => setTimeout(done, 1500));\
         return [tried, stopped, document.title];",
        vec![],
    );
    let list = |n: usize| -> Vec<String> {
        serde_json::from_value(tried[n].clone()).unwrap_or_else(|_| panic!("{tried}"))
    };
    assert_eq!(browser.arrived(), Vec::<String>::new(), "{tried}");
    assert_eq!(list(0).len(), 19, "{tried}");
    assert_eq!(tried[2], title);
    for directive in [
        "img-src",
        "connect-src",
        "frame-src",
        "style-src-elem",
        "media-src",
        "form-action",
        "base-uri",
        "font-src",
        "require-trusted-types-for",
    ] {
        assert!(list(1).iter().any(|one| one == directive), "{directive}: {tried}");
    }
}

/// Another machine: home, language, configuration of git that would change every diff, folder.
fn elsewhere(env: &mut TestEnv) {
    env.write(
        "other/.gitconfig",
        "[diff]\nnoprefix = true\nexternal = false\nalgorithm = patience\nrenames = false\n\
         [core]\nquotePath = false\nautocrlf = true\nattributesFile = ~/attributes\n\
         [diff \"upper\"]\ntextconv = tr a-z A-Z <\n",
    );
    env.write("other/attributes", "* diff=upper\n");
    env.write("repo/.git/info/attributes", "* -diff\n");
    let home = env.path("other").display().to_string();
    for (name, value) in [
        ("HOME", home.as_str()),
        ("XDG_CONFIG_HOME", &home),
        ("LANG", "de_DE.UTF-8"),
        ("LC_ALL", "tr_TR.UTF-8"),
        ("TZ", "Pacific/Kiritimati"),
        ("COLUMNS", "40"),
        ("GIT_DIFF_OPTS", "-u9"),
        ("GIT_EXTERNAL_DIFF", "false"),
    ] {
        env.set(name, value);
    }
}

#[test]
fn the_same_records_give_the_same_page_anywhere() {
    let mut env = attack();
    let read = |env: &TestEnv, path: &str| std::fs::read(env.path(path)).unwrap();
    let link = "repo/.codeboost/tasks/412/link.json";
    let (page, linked) = (read(&env, PAGE), read(&env, link));
    elsewhere(&mut env);
    for path in [PAGE, link] {
        std::fs::remove_file(env.path(path)).unwrap();
    }
    env.write("repo/deep/er/keep", "");
    for args in [["link", "412", "-q"], ["render", "412", "-q"]] {
        let done = env.run_in("repo/deep/er", args);
        assert_eq!(done.code, 0, "{done}");
    }
    assert!(linked == read(&env, link), "link.json differs");
    assert!(page == read(&env, PAGE), "the page differs");
    let _: Value = serde_json::from_slice(&linked).unwrap();
}
