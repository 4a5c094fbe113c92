//! A GitHub for one test, and the `gh` programs that speak to it.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::TestEnv;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The folders of the two programs that everything has to work with: the distribution's old one and
/// the pinned newest one. A missing one fails the test.
pub(crate) fn both_gh() -> [PathBuf; 2] {
    let path = std::env::var_os("PATH").unwrap();
    let old = std::env::split_paths(&path).find(|folder| folder.join("gh").is_file());
    let old = old.expect("gh is missing: install it, as .ci/run does");
    let new = project().join("target/fakes/gh-2.103.3");
    assert!(new.join("gh").is_file(), "the newest gh is missing: run tests/fakes/newest-gh");
    [old, new]
}

/// A GitHub with one repository, `acme/widget`, which is the bare repository `hub.git` of a test.
pub(crate) struct Github {
    child: Child,
    socket: PathBuf,
}

impl Github {
    /// Starts it beside `hub.git` and tells programs of the test how to get there.
    pub(crate) fn start(env: &mut TestEnv, state: &Value) -> Self {
        let mut state = state.clone();
        let defaults = json!({
            "viewer": "bot",
            "tokens": {"dummy": "bot"},
            "collaborators": {"bot": "write", "boss": "admin"},
        });
        for (key, value) in defaults.as_object().unwrap() {
            if state.get(key).is_none() {
                state[key] = value.clone();
            }
        }
        env.write("hub.json", state.to_string());
        env.write("gh/config.yml", "");
        let socket = env.path("hub.sock");
        let config = format!("version: 1\nhttp_unix_socket: {}\n", socket.display());
        env.write("gh/config.yml", config);
        let folder = env.path("gh");
        env.set("GH_CONFIG_DIR", folder.to_str().unwrap());
        env.set("GH_TOKEN", "dummy");
        if !env.path("hub.git").exists() {
            env.git(".", ["init", "-q", "--bare", "hub.git"]);
        }
        let child = Self::spawn(env, &socket);
        Self { child, socket }
    }

    /// Starts it again beside `hub.git`, as `hub.json` says.
    pub(crate) fn resume(env: &TestEnv) -> Self {
        let socket = env.path("hub.sock");
        let child = Self::spawn(env, &socket);
        Self { child, socket }
    }

    fn spawn(env: &TestEnv, socket: &Path) -> Child {
        let program = project().join("tests/fakes/github/server.py");
        let ready = env.path("hub.ready");
        let _ = std::fs::remove_file(&ready);
        let mut child = Command::new("python3")
            .arg("-B")
            .arg(program)
            .arg("--socket")
            .arg(socket)
            .args(["--repo", "hub.git", "--state", "hub.json", "--ready", "hub.ready"])
            .current_dir(env.root())
            .stdin(Stdio::null())
            .spawn()
            .expect("python3 is missing");
        for _ in 0..1500 {
            if ready.exists() {
                return child;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
        panic!("the GitHub of the tests does not start");
    }

    /// Lets programs of the test use the `gh` of this folder.
    pub(crate) fn use_gh(env: &mut TestEnv, folder: &Path) {
        let path = std::env::var("PATH").unwrap();
        env.set("PATH", &format!("{}:{path}", folder.display()));
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(" 200 "), "{answer}");
        serde_json::from_str(body).unwrap()
    }

    /// Carries out a control; see the program's README.
    pub(crate) fn control(&self, control: Value) -> Value {
        self.ask("POST", "/_fake/apply", &json!([control]).to_string())["result"][0].clone()
    }

    /// Makes the next answer that fits another one.
    pub(crate) fn fault(&self, matching: Value, action: Value) {
        self.control(json!({"do": "fault", "fault": {"match": matching, "action": action}}));
    }

    /// As it stands.
    pub(crate) fn state(&self) -> Value {
        self.ask("GET", "/_fake/state", "")
    }

    /// What was asked since the log was emptied last: `GET /repos/…`, `mutation Name`.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.ask("GET", "/_fake/log", "").as_array().unwrap().clone()
    }

    /// Empties the log.
    pub(crate) fn forget_requests(&self) {
        self.ask("DELETE", "/_fake/log", "");
    }

    /// A pull request as it stands.
    pub(crate) fn pull(&self, number: u64) -> Value {
        let state = self.state();
        let all = state["pulls"].as_array().unwrap();
        all.iter().find(|pull| pull["number"] == number).unwrap().clone()
    }
}

impl Drop for Github {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
