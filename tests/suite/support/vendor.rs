//! The stand-in of the vendors' interfaces, as a program of its own, and the engines to test with.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::browser::skip;

/// The sockets of the engines in `CODEBOOST_TEST_ENGINES`; none after saying so loudly.
pub(crate) fn engines() -> Vec<PathBuf> {
    match std::env::var_os("CODEBOOST_TEST_ENGINES") {
        Some(sockets) => std::env::split_paths(&sockets).collect(),
        None => {
            skip("agents in containers: CODEBOOST_TEST_ENGINES names no engine");
            Vec::new()
        }
    }
}

/// A stand-in that answers until it is dropped.
pub(crate) struct Vendor {
    process: Child,
    pub(crate) port: u16,
    log: PathBuf,
}

impl Vendor {
    /// Starts one that plays `scenarios`: an object of scenarios by words of the conversation, in
    /// the form of `tests/fakes/vendor.py`. It refuses requests without `token`.
    pub(crate) fn start(folder: &Path, scenarios: &Value, token: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fakes/vendor.py");
        let scenario = folder.join("scenario.json");
        let log = folder.join("vendor.log");
        std::fs::write(&scenario, scenarios.to_string()).unwrap();
        std::fs::write(&log, "").unwrap();
        let mut process = Command::new("python3")
            .arg(script)
            .args(["--port", "0", "--token", token])
            .arg("--scenario")
            .arg(&scenario)
            .arg("--log")
            .arg(&log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split(':').nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        Self { process, port, log }
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(&self.log).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Vendor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
