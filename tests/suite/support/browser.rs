//! A real browser for tests of pages: Chromium, driven through ChromeDriver.
//!
//! Every browser has its own empty profile and download folder. Nothing in it can reach the
//! network: all of its traffic goes to a listener of the test, which answers nothing and writes
//! down what was asked for; names resolve to nothing besides.
//!
//! Where Chromium or ChromeDriver is missing, [`Browser::start`] says so on standard error and
//! returns `None`; with `CI=true` it fails instead.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::prelude::*;
use tokio::runtime::Runtime;

/// How long anything is waited for. A page answers within milliseconds; a busy machine does not.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running browser with one window.
pub(crate) struct Browser {
    runtime: Runtime,
    driver: WebDriver,
    downloads: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
    _folder: TempDir,
    _process: Process,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    names.iter().find_map(|name| {
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
    })
}

/// Says loudly that a test did not run; fails where everything must run.
pub(crate) fn skip(what: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must run everything: {what}");
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {what}\n");
}

impl Browser {
    /// Starts a browser with a window of 1440 by 900, in the dark theme.
    pub(crate) fn start() -> Option<Self> {
        let (Some(chromium), Some(chromedriver)) =
            (find(&["chromium", "chromium-browser", "google-chrome"]), find(&["chromedriver"]))
        else {
            skip("page tests need chromium and chromedriver (Debian: chromium chromium-driver)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("codeboost-browser-").tempdir().unwrap();
        let downloads = folder.path().join("downloads");
        std::fs::create_dir(&downloads).unwrap();
        let (trap, asked) = listen();
        let port = free_port();
        let process = Process(
            Command::new(chromedriver)
                .arg(format!("--port={port}"))
                .env("HOME", folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
        let mut caps = DesiredCapabilities::chrome();
        for arg in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-extensions",
            "--disable-default-apps",
            "--disable-client-side-phishing-detection",
            "--disable-features=OptimizationHints,MediaRouter,Translate,InterestFeedContentSuggestions",
            "--force-color-profile=srgb",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--proxy-bypass-list=<-loopback>",
            "--window-size=1440,900",
            &format!("--proxy-server=127.0.0.1:{trap}"),
            &format!("--user-data-dir={}", folder.path().join("profile").display()),
        ] {
            caps.add_arg(arg).unwrap();
        }
        caps.set_binary(chromium.to_str().unwrap()).unwrap();
        caps.add_experimental_option(
            "prefs",
            json!({
                "download.default_directory": downloads,
                "download.prompt_for_download": false,
                "profile.default_content_setting_values.clipboard": 1,
            }),
        )
        .unwrap();
        caps.set("goog:loggingPrefs", json!({"browser": "ALL", "performance": "ALL"})).unwrap();

        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let begun = Instant::now();
        let driver = loop {
            match runtime.block_on(WebDriver::new(&url, caps.clone())) {
                Ok(driver) => break driver,
                Err(error) => {
                    assert!(begun.elapsed() < Duration::from_secs(60), "no browser: {error}");
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        };
        let browser =
            Self { runtime, driver, downloads, asked, _folder: folder, _process: process };
        browser.wait("a script timeout is set", || {
            browser
                .runtime
                .block_on(browser.driver.set_script_timeout(Duration::from_secs(60)))
                .is_ok()
                .then_some(())
        });
        browser.media(&[("prefers-color-scheme", "dark")]);
        browser.size(1440, 900);
        Some(browser)
    }

    /// Opens a file, with a fragment such as `#P2` or none, and waits until the page was checked.
    pub(crate) fn open(&self, file: &Path, fragment: &str) {
        // The same address with another fragment would not load the page again.
        self.runtime.block_on(self.driver.goto("about:blank")).unwrap();
        let url = format!("file://{}{fragment}", file.display());
        self.runtime.block_on(self.driver.goto(&url)).unwrap();
    }

    /// Loads the page again.
    pub(crate) fn reload(&self) {
        self.runtime.block_on(self.driver.refresh()).unwrap();
    }

    /// Runs a script's body; `arguments` are its arguments, what it returns is the result.
    pub(crate) fn js(&self, body: &str, arguments: Vec<Value>) -> Value {
        let result = self.runtime.block_on(self.driver.execute(body, arguments));
        result.unwrap_or_else(|error| panic!("{body}: {error}")).json().clone()
    }

    /// Runs a script that answers through a promise.
    pub(crate) fn js_async(&self, body: &str, arguments: Vec<Value>) -> Value {
        let wrapped = format!(
            "const done = arguments[arguments.length - 1], args = [...arguments].slice(0, -1);\
             (async (...arguments) => {{ {body} }})(...args).then(done, (e) => done('error: ' + e));"
        );
        let result = self.runtime.block_on(self.driver.execute_async(&wrapped, arguments));
        result.unwrap_or_else(|error| panic!("{body}: {error}")).json().clone()
    }

    /// Waits for `test` to hold, and returns what it found.
    pub(crate) fn wait<T>(&self, what: &str, mut test: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = test() {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until a script's expression is true.
    pub(crate) fn wait_for(&self, expression: &str) {
        self.wait(expression, || {
            (self.js(&format!("return Boolean({expression})"), vec![]) == json!(true)).then_some(())
        });
    }

    /// Waits until the element shows that text somewhere in it.
    pub(crate) fn wait_text(&self, css: &str, text: &str) {
        let begun = Instant::now();
        loop {
            let found = self.text(css);
            if found.contains(text) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{css} shows {found:?}, not {text:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The text that the first such element shows; empty when there is none.
    pub(crate) fn text(&self, css: &str) -> String {
        let text = self
            .js("return document.querySelector(arguments[0])?.innerText ?? ''", vec![json!(css)]);
        text.as_str().unwrap_or_default().to_owned()
    }

    /// The texts of all such elements.
    pub(crate) fn texts(&self, css: &str) -> Vec<String> {
        let texts = self.js(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)",
            vec![json!(css)],
        );
        serde_json::from_value(texts).unwrap()
    }

    /// How many such elements there are.
    pub(crate) fn count(&self, css: &str) -> usize {
        self.texts(css).len()
    }

    fn element(&self, css: &str) -> WebElement {
        self.wait(css, || {
            let element = self.runtime.block_on(self.driver.find(By::Css(css))).ok()?;
            self.runtime.block_on(element.is_displayed()).ok()?.then_some(element)
        })
    }

    /// Clicks the first such element with the mouse, once it can be clicked.
    pub(crate) fn click(&self, css: &str) {
        self.wait(&format!("a click on {css}"), || {
            let element = self.element(css);
            self.runtime.block_on(element.click()).ok()
        });
    }

    /// Clicks the first such element that shows exactly this text.
    pub(crate) fn click_text(&self, css: &str, text: &str) {
        self.wait(&format!("{css} that says {text}"), || {
            let found = self.runtime.block_on(self.driver.find_all(By::Css(css))).ok()?;
            for element in found {
                if self.runtime.block_on(element.text()).ok()?.trim() == text {
                    return self.runtime.block_on(element.click()).ok();
                }
            }
            None
        });
    }

    /// Drags the first such element sideways.
    pub(crate) fn drag(&self, css: &str, by: i64) {
        let element = self.element(css);
        let chain = self.driver.action_chain().drag_and_drop_element_by_offset(&element, by, 0);
        self.runtime.block_on(chain.perform()).unwrap();
    }

    /// Types into whatever has the focus; `Key` values can be part of it.
    pub(crate) fn keys(&self, keys: impl Into<TypingData>) {
        self.runtime.block_on(self.driver.action_chain().send_keys(keys).perform()).unwrap();
    }

    /// Presses one key with modifiers held, such as `Key::Shift`.
    pub(crate) fn chord(&self, held: Key, key: Key) {
        let chain =
            self.driver.action_chain().key_down(held.value()).send_keys(key).key_up(held.value());
        self.runtime.block_on(chain.perform()).unwrap();
    }

    /// Types into a field, after what is in it.
    pub(crate) fn type_into(&self, css: &str, text: &str) {
        let element = self.element(css);
        self.runtime.block_on(element.send_keys(text)).unwrap();
    }

    /// Chooses an option of a list by its value.
    pub(crate) fn choose(&self, css: &str, value: &str) {
        self.element(css);
        self.js(
            "const one = document.querySelector(arguments[0]); one.value = arguments[1];\
             one.dispatchEvent(new Event('change', {bubbles: true}));",
            vec![json!(css), json!(value)],
        );
    }

    /// Gives a file to a file field.
    pub(crate) fn upload(&self, css: &str, file: &Path) {
        self.js("document.querySelector(arguments[0]).hidden = false", vec![json!(css)]);
        let element = self.runtime.block_on(self.driver.find(By::Css(css))).unwrap();
        self.runtime.block_on(element.send_keys(file.to_str().unwrap())).unwrap();
        self.js("document.querySelector(arguments[0]).hidden = true", vec![json!(css)]);
    }

    /// Waits for a download that is finished, and returns its path.
    pub(crate) fn downloaded(&self, prefix: &str) -> PathBuf {
        self.wait(&format!("a download {prefix}…"), || {
            std::fs::read_dir(&self.downloads).unwrap().find_map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name()?.to_str()?.to_owned();
                (name.starts_with(prefix) && !name.ends_with(".crdownload")).then_some(path)
            })
        })
    }

    /// Everything that the page wrote to its console, errors of the browser included.
    pub(crate) fn console(&self) -> Vec<String> {
        let entries = self.runtime.block_on(self.driver.get_log("browser")).unwrap();
        entries.iter().map(|entry| entry.message.clone()).collect()
    }

    /// Addresses that the page asked for over the network since the last call, the file itself
    /// and data inside it apart; and whatever arrived at the listener.
    pub(crate) fn requests(&self) -> Vec<String> {
        let entries = self.runtime.block_on(self.driver.get_log("performance")).unwrap();
        let mut found: Vec<String> = entries
            .iter()
            .filter_map(|entry| {
                let message: Value = serde_json::from_str(&entry.message).ok()?;
                let message = &message["message"];
                let url = match message["method"].as_str()? {
                    "Network.requestWillBeSent" => &message["params"]["request"]["url"],
                    "Network.webSocketCreated" => &message["params"]["url"],
                    _ => return None,
                };
                let url = url.as_str()?;
                let is_inside = ["file:", "data:", "blob:", "about:", "chrome:"]
                    .iter()
                    .any(|scheme| url.starts_with(scheme));
                (!is_inside).then(|| url.to_owned())
            })
            .collect();
        found.append(&mut self.arrived());
        found
    }

    /// What arrived at the listener since the last call. A request that the page's policy stopped
    /// never does.
    pub(crate) fn arrived(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// Goes to an address.
    pub(crate) fn visit(&self, url: &str) {
        // What does not answer is an error to the driver.
        let _ = self.runtime.block_on(self.driver.goto(url));
    }

    /// Asserts that nothing was written to the console and nothing was asked for.
    pub(crate) fn assert_quiet(&self) {
        assert_eq!(self.console(), Vec::<String>::new(), "the console is empty");
        assert_eq!(self.requests(), Vec::<String>::new(), "no request leaves");
    }

    /// Sets the size of what a page sees as its window.
    pub(crate) fn size(&self, width: u32, height: u32) {
        self.cdp(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
    }

    /// Sets media features such as `prefers-color-scheme`.
    pub(crate) fn media(&self, features: &[(&str, &str)]) {
        let features: Vec<Value> =
            features.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.cdp("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Turns scripts off for pages that are opened from now on.
    pub(crate) fn without_scripts(&self) {
        self.cdp("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    }

    /// One command of the browser's own protocol.
    pub(crate) fn cdp(&self, method: &str, params: Value) -> Value {
        let response = self.runtime.block_on(self.driver.cdp().send_raw(method, params));
        response.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// A picture of the window, as PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        self.runtime.block_on(self.driver.screenshot_as_png()).unwrap()
    }

    /// Violations that axe finds in the page as it stands: rule and how often. `None` when axe is
    /// not installed.
    pub(crate) fn axe(&self) -> Option<Vec<String>> {
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../tests/js/node_modules/axe-core/axe.min.js");
        let Ok(axe) = std::fs::read_to_string(file) else {
            skip("axe is not installed: (cd tests/js && npm ci --ignore-scripts)");
            return None;
        };
        self.js(&axe, vec![]);
        let found = self.js_async(
            "const result = await axe.run(document, {resultTypes: ['violations']});\
             return result.violations.map((one) => one.id + ': ' + one.nodes.map((node) => \
             node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join(' | '));",
            vec![],
        );
        Some(serde_json::from_value(found.clone()).unwrap_or_else(|_| panic!("axe: {found}")))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The process ends in any case; this lets the browser leave before its folder goes.
        let _ = self.runtime.block_on(self.driver.clone().quit());
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Listens for whatever leaves the browser. Chromium's own errands, which no flag stops, are not
/// counted.
fn listen() -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            note(stream, &list);
        }
    });
    (port, asked)
}

fn note(stream: TcpStream, list: &Mutex<Vec<String>>) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    let host = line.split_whitespace().nth(1).unwrap_or_default();
    let host = host.trim_start_matches("http://").split(['/', ':']).next().unwrap_or_default();
    let own = ["google.com", "googleapis.com", "gvt1.com", "gstatic.com", "duckduckgo.com"];
    // A connection that was opened ahead and never used asks for nothing.
    if !line.is_empty() && !own.iter().any(|one| host == *one || host.ends_with(&format!(".{one}")))
    {
        list.lock().unwrap().push(line.trim().to_owned());
    }
}
