//! What tests do with a review page that is open in a browser.

use serde_json::json;

use super::browser::Browser;

/// Waits until the page has held its data against its form.
pub(crate) fn ready(browser: &Browser) {
    browser.wait_for("document.querySelector('#app')?.dataset.checked");
}

/// Scrolls through everything that the row shows.
pub(crate) fn read_all(browser: &Browser) {
    browser.js_async(
        "const code = document.querySelector('#code');\
         const frame = () => new Promise((done) => requestAnimationFrame(done));\
         for (let y = 0; y <= code.scrollHeight; y += code.clientHeight / 2) {\
           code.scrollTop = y; await frame(); await frame(); }",
        vec![],
    );
}

pub(crate) fn select(browser: &Browser, row: &str) {
    browser.click(&format!("[data-row='{row}']"));
    browser.wait_for(&format!(
        "document.querySelector('[data-row=\"{row}\"]').getAttribute('aria-current') === 'true'"
    ));
}

/// Asserts that nothing untrusted is live in the page, and that nothing in it is drawn that can't
/// be seen.
pub(crate) fn assert_inert(browser: &Browser) {
    let live = browser.js(
        "return document.querySelectorAll('img[onerror], img[src=x], #app script, [onclick], a[href]').length",
        vec![],
    );
    assert_eq!(live, json!(0));
    let raw = browser.js(
        "const found = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);\
         const hidden = /[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]/u, all = document.querySelectorAll('#app *, dialog *');\
         const note = (at, text) => { if (hidden.test(text.replace(/[\\n\\t]/g, '')) && at.checkVisibility())\
           found.push(`${at.localName}#${at.id}.${at.className}: ${text}`); };\
         for (let node; (node = walk.nextNode());) note(node.parentElement, node.data);\
         for (const at of all) for (const name of ['title', 'aria-label', 'alt', 'placeholder'])\
           note(at, at.getAttribute(name) ?? '');\
         return found;",
        vec![],
    );
    assert_eq!(raw, json!([]), "nothing that can not be seen is drawn");
}
