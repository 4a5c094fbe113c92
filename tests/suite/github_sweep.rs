//! Everything that can go wrong on the way to GitHub: one request and one fault at a time, and a kill
//! at every point.
//!
//! After each: nothing merged twice, nothing merged that was not reviewed, one pull request with one
//! comment on the revision, and the next run ends right. Requests that change something meet every
//! fault. Of those that read each meets one fault in turn, and points of a kill are thinned out;
//! with CODEBOOST_SWEEP=all all of them meet everything, which takes an hour.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::github::{checks_rule, here, merge, passed, publish, queue, tip, world};
use crate::support::github::Github;
use crate::support::road::Road;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Publish,
    ByGithub,
    ByPush,
    ByQueue,
}

/// What goes wrong.
#[derive(Debug, Clone)]
enum Fault {
    /// An answer of another form, at this request.
    Answer(&'static str, Value),
    /// Somebody moves a branch just before this request.
    Moves(&'static str),
    /// The process is killed at this point, counted from 1.
    Kill,
}

struct Case {
    fault: Fault,
    /// Which request, from 0; for a kill which point, from 1.
    at: usize,
    /// How often in a row: reads are tried again.
    times: usize,
}

fn faults() -> Vec<Fault> {
    let message = json!({"message": "No."});
    let status = |status: u16| json!({"status": status, "body": message});
    let later = json!({"status": 429, "headers": {"Retry-After": "5"}, "body": message});
    let set = json!({"head_lag": 2, "head_lag_sha": "0".repeat(40)});
    let stale = json!({"do": "item", "number": 413, "set": set});
    vec![
        Fault::Answer("cut before", json!({"close": "before"})),
        Fault::Answer("cut in the middle", json!({"close": "mid"})),
        Fault::Answer("cut after", json!({"close": "after"})),
        Fault::Answer("403", status(403)),
        Fault::Answer("404", status(404)),
        Fault::Answer("422", status(422)),
        Fault::Answer("500", status(500)),
        Fault::Answer("502 in HTML", json!({"status": 502, "raw": "<html>"})),
        Fault::Answer("429", later),
        Fault::Answer("429 without a time", status(429)),
        Fault::Answer("no JSON", json!({"raw": "{\"number\":"})),
        Fault::Answer("half of the JSON, after the change", json!({"truncate": 30})),
        Fault::Answer("stale head", json!({"control": [stale]})),
        Fault::Moves("topic"),
        Fault::Moves("main"),
    ]
}

/// A prepared world that can be put back.
struct Stage {
    road: Road,
    flow: Flow,
    base: String,
    head: String,
}

impl Stage {
    fn new(flow: Flow) -> Self {
        let state = match flow {
            Flow::Publish | Flow::ByPush => json!({}),
            Flow::ByGithub => {
                json!({"rules": {"main": [checks_rule(true)]}, "check_runs": [passed("ci")]})
            }
            Flow::ByQueue => queue(),
        };
        let (road, github) = world(state, None);
        if flow != Flow::Publish {
            publish(&road);
        }
        drop(github);
        let (base, head) = (here(&road, "main"), here(&road, "topic"));
        let this = Self { road, flow, base, head };
        this.copy("", "kept/");
        this
    }

    fn copy(&self, from: &str, to: &str) {
        std::fs::create_dir_all(self.road.env.path("kept")).unwrap();
        for name in ["repo", "hub.git", "hub.json"] {
            let (from, to) = (
                self.road.env.path(format!("{from}{name}")),
                self.road.env.path(format!("{to}{name}")),
            );
            let _ = std::fs::remove_dir_all(&to);
            let mut command = self.road.env.command("cp", ".");
            assert_eq!(self.road.env.finish(command.arg("-aT").args([from, to])).code, 0);
        }
    }

    fn again(&self) -> Github {
        self.copy("kept/", "");
        Github::resume(&self.road.env)
    }

    fn args(&self) -> &'static [&'static str] {
        match self.flow {
            Flow::Publish => &["publish", "412"],
            _ => &["merge", "412", "--no-wait"],
        }
    }

    /// How many requests and points one run has, and which requests change something.
    fn measure(&mut self) -> (Vec<bool>, usize) {
        let github = self.again();
        let points = self.road.env.path("points");
        let _ = std::fs::remove_file(&points);
        self.road.env.set("CODEBOOST_CRASH_LOG", points.to_str().unwrap());
        self.road.run(self.args());
        self.road.env.set("CODEBOOST_CRASH_LOG", "");
        let changes = github
            .requests()
            .iter()
            .map(|one| one["method"] != "GET" && one["op"] != "query")
            .collect();
        let n_points = std::fs::read_to_string(&points).unwrap().lines().count();
        (changes, n_points)
    }

    fn cases(&mut self) -> Vec<Case> {
        let all = std::env::var_os("CODEBOOST_SWEEP").is_some();
        let (requests, n_points) = self.measure();
        let faults = faults();
        let mut cases = Vec::new();
        for (at, changes) in requests.iter().enumerate() {
            for (n, fault) in faults.iter().enumerate() {
                if *changes || all || (at * 7 + self.flow as usize) % faults.len() == n {
                    let times = if *changes { 1 } else { 3 };
                    cases.push(Case { fault: fault.clone(), at, times });
                }
            }
        }
        for at in 1..=n_points {
            if all || (at + self.flow as usize).is_multiple_of(3) {
                cases.push(Case { fault: Fault::Kill, at, times: 1 });
            }
        }
        cases
    }

    fn carry_out(&mut self, case: &Case) {
        let mut github = self.again();
        let fault = match &case.fault {
            Fault::Answer(words, _) => (*words).to_owned(),
            Fault::Moves(branch) => format!("{branch} moves"),
            Fault::Kill => "killed".to_owned(),
        };
        let name = format!("{:?}: {fault} at {}", self.flow, case.at);
        match &case.fault {
            Fault::Answer(_, action) => self.fault(&github, case, action.clone()),
            Fault::Moves(branch) => {
                let push = json!({"do": "commit", "branch": branch, "path": "x", "content": "y",
                    "message": "foreign"});
                self.fault(
                    &github,
                    &Case { times: 1, fault: Fault::Kill, at: case.at },
                    json!({"control": [push]}),
                );
            }
            Fault::Kill => self.road.env.set("CODEBOOST_CRASH_AT", &case.at.to_string()),
        }
        self.road.run(self.args());
        self.road.env.set("CODEBOOST_CRASH_AT", "");
        github.control(json!({"do": "clear-faults"}));
        self.assert_safe(&github, &name);
        // The other side comes back as it was left.
        if case.at.is_multiple_of(5) {
            drop(github);
            github = Github::resume(&self.road.env);
        }
        let is_moved = matches!(case.fault, Fault::Moves(_));
        match self.flow {
            Flow::Publish => self.end_publish(&github, &name, is_moved),
            _ => self.end_merge(&github, &name, is_moved),
        }
        self.assert_safe(&github, &name);
    }

    fn fault(&self, github: &Github, case: &Case, action: Value) {
        github.control(json!({"do": "fault", "fault": {
            "match": {}, "after": case.at, "times": case.times, "action": action}}));
    }

    fn end_publish(&self, github: &Github, name: &str, is_moved: bool) {
        let done = self.road.run(self.args());
        let pulls = github.state()["pulls"].as_array().unwrap().clone();
        assert!(pulls.len() <= 1, "{name}: {pulls:#?}");
        if is_moved {
            assert!([0, 3].contains(&done.code), "{name}: {done}");
            return;
        }
        assert_eq!(done.code, 0, "{name}: {done}");
        let pull = &pulls[0];
        assert_eq!((&pull["draft"], &pull["state"]), (&json!(false), &json!("open")), "{name}");
        assert_eq!(pull["comments"].as_array().unwrap().len(), 1, "{name}: {pull:#}");
        assert_eq!(tip(&self.road, "topic"), self.head, "{name}");
    }

    fn end_merge(&self, github: &Github, name: &str, is_moved: bool) {
        let (mut word, mut report, done) = merge(&self.road, &["--no-wait"]);
        if word == "queued" {
            let entries = github.state()["queue"]["main"].as_array().unwrap().len();
            assert_eq!(entries, 1, "{name}");
            github.control(json!({"do": "queue", "number": 413, "action": "merge"}));
            (word, report, _) = merge(&self.road, &["--no-wait"]);
        }
        let is_merged = github.pull(413)["merged"] == true;
        if is_moved {
            assert_eq!(word == "merged", is_merged, "{name}: {report:#}");
            return;
        }
        assert_eq!(word, "merged", "{name}: {done}");
        assert!(is_merged && report["state"] == "merged", "{name}: {report:#}");
    }

    /// Nothing landed but the reviewed pair, and that at most once.
    fn assert_safe(&self, github: &Github, name: &str) {
        let range = format!("{}..main", self.base);
        let line =
            self.road.env.git("hub.git", ["log", "--first-parent", "--format=%P %s", &range]);
        let landed: Vec<_> = line.lines().filter(|line| !line.ends_with(" foreign")).collect();
        assert!(landed.len() <= 1, "{name}: {landed:?}");
        if let Some(line) = landed.first() {
            let mut ids = line.split(' ');
            let (base, head) = (ids.next().unwrap(), ids.next().unwrap());
            assert_eq!(head, self.head, "{name}");
            assert!(base == self.base || self.flow == Flow::ByQueue, "{name}: onto {base}");
        }
        assert!(github.state()["_unsupported"].is_null(), "{name}");
    }
}

#[expect(clippy::print_stderr, reason = "how much was tried is told")]
fn sweep(flow: Flow) {
    let stages: Vec<_> = (0..2).map(|_| Mutex::new(Stage::new(flow))).collect();
    let cases = stages[0].lock().unwrap().cases();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for stage in &stages {
            scope.spawn(|| {
                let mut stage = stage.lock().unwrap();
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    stage.carry_out(case);
                }
            });
        }
    });
    eprintln!("sweep of {flow:?}: {} cases", cases.len());
}

#[test]
fn publishing_survives_every_fault() {
    sweep(Flow::Publish);
}

#[test]
fn a_merge_by_github_survives_every_fault() {
    sweep(Flow::ByGithub);
}

#[test]
fn a_pinned_push_survives_every_fault() {
    sweep(Flow::ByPush);
}

#[test]
fn a_merge_by_the_queue_survives_every_fault() {
    sweep(Flow::ByQueue);
}
