//! `codeboost render --site` on the sample project, in a real browser.

use thirtyfour::prelude::*;

use crate::support::TestEnv;
use crate::support::browser::Browser;

const PAGES: [&str; 7] = ["issues", "plans", "queue", "review", "lessons", "learning", "settings"];

#[test]
fn the_site_of_the_sample_project_shows_what_is_there_and_leads_to_it() {
    let env = TestEnv::new();
    let done = env.run(["demo", "--folder", "demo"]);
    assert_eq!(done.code, 0, "{done}");
    let inside = |args: &[&str]| {
        let done = env.run_in("demo/tidepool", args);
        assert_eq!(done.code, 0, "{done}");
        done
    };
    inside(&["render", "--site"]);
    let again = inside(&["--format", "json", "render", "--site"]);
    let again: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!((&again["wrote"], &again["pages"]), (&0.into(), &7.into()));
    let Some(browser) = Browser::start() else { return };
    let folder = env.path("demo/tidepool/.codeboost/site");
    for theme in ["dark", "light"] {
        browser.media(&[("prefers-color-scheme", theme)]);
        for page in PAGES {
            browser.open(&folder.join(format!("{page}.html")), "");
            if let Some(found) = browser.axe() {
                assert_eq!(found, Vec::<String>::new(), "{page}, {theme}");
            }
            for (width, height) in [(1440, 900), (375, 800)] {
                browser.size(width, height);
                let over = browser.js(
                    "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
                    vec![],
                );
                assert_eq!(over, 0, "{page} scrolls sideways at {width}");
            }
            browser.size(1440, 900);
        }
    }
    browser.open(&folder.join("issues.html"), "");
    assert!(browser.text("main").contains("No issue was ranked"));
    // The menu by keyboard: the first link after the current page.
    browser.keys(Key::Tab);
    browser.keys(Key::Enter);
    browser.wait_text("h1", "Plans");
    browser.wait_text("main", "approved");
    browser.click_text(".menu a", "Queue");
    browser.wait_text("main", "Nothing is queued");
    browser.click_text(".menu a", "Lessons");
    browser.wait_text("main", "No lesson was recorded");
    browser.click_text(".menu a", "Learning");
    browser.wait_for("document.querySelector('svg.chart rect')");
    browser.click_text(".menu a", "Settings");
    browser.wait_text("main", "git");
    browser.wait_text("main", "page.whole_files");
    browser.click_text(".menu a", "Review");
    browser.wait_text("main", "4 blockers");
    browser.click_text("main a", "Open the review of #412");
    crate::support::page::ready(&browser);
    browser.wait_text("#open-issue", "#412");
    browser.assert_quiet();
}

#[test]
fn a_link_in_the_place_of_the_sites_folder_is_refused() {
    let env = TestEnv::new();
    let done = env.run(["demo", "--folder", "demo"]);
    assert_eq!(done.code, 0, "{done}");
    std::fs::create_dir(env.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(env.path("elsewhere"), env.path("demo/tidepool/.codeboost/site"))
        .unwrap();
    let done = env.run_in("demo/tidepool", ["render", "--site"]);
    assert_ne!(done.code, 0, "{done}");
    assert_eq!(std::fs::read_dir(env.path("elsewhere")).unwrap().count(), 0);
}
