//! What codeboost answers on the channel: approved commands, reading git, and for a tool that has
//! no other way also reading, listing and searching of files.
//!
//! Commands and git run in a container beside the agent's, with the same project, no socket and no
//! sign-in. Files are read here, each folder opened from the one above it and nothing through a
//! link, so that no name leads out of the project.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use serde_json::{Value, json};

use crate::agent::vendor::Rights;
use crate::sandbox::channel::{Answer, Answers, Tool};

/// Most bytes of one answer.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Most files that a search looks into.
const MAX_SEARCHED: usize = 20_000;
/// Largest file that a search looks into.
const MAX_SEARCHED_BYTES: u64 = 4 << 20;
/// What of git only reads.
const READING: [&str; 11] = [
    "blame",
    "cat-file",
    "diff",
    "grep",
    "log",
    "ls-files",
    "ls-tree",
    "rev-list",
    "rev-parse",
    "show",
    "status",
];

/// One approved command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// As the plan spells it.
    pub text: String,
    /// Its argument list.
    pub argv: Vec<String>,
}

/// What was asked for, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which tool.
    pub tool: String,
    /// What exactly, in one line.
    pub what: String,
    /// Whether it failed.
    pub is_error: bool,
}

/// Runs a program in a container beside the agent's and returns what it wrote and its exit code in
/// words; or why it could not.
pub type Run<'a> = dyn Fn(&[String], Change) -> Result<Answer, String> + Sync + 'a;

/// Whether a program may change the project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// As the phase says.
    AsThePhase,
    /// Never.
    Never,
}

/// Answers an agent within its rights.
pub struct Desk<'a> {
    /// What may be asked.
    pub rights: Rights,
    /// The approved commands, numbered from 1 in this order.
    pub commands: &'a [Command],
    /// The project's files on this machine.
    pub work: &'a Path,
    /// What runs programs.
    pub run: &'a Run<'a>,
    /// What was asked so far.
    pub asked: Mutex<Vec<Asked>>,
}

impl Answers for Desk<'_> {
    fn tools(&self) -> Vec<Tool> {
        let path = json!({"type": "string", "description": "A path from the root of the project"});
        let object = |properties: Value, required: &[&str]| {
            json!({
                "type": "object", "properties": properties, "required": required,
                "additionalProperties": false,
            })
        };
        let mut commands = String::from(
            "Runs one of the approved commands in the project and returns its exit code and output:",
        );
        for (n, command) in self.commands.iter().enumerate() {
            let text = crate::output::plain_line(&command.text);
            commands.push_str(&format!("\n{}: {text}", n + 1));
        }
        let all = [
            Tool {
                name: "run",
                description: commands,
                arguments: object(
                    json!({"number": {
                        "type": "integer", "description": "The number of the command",
                    }}),
                    &["number"],
                ),
            },
            Tool {
                name: "git",
                description: format!("Runs git to look at the history: {}", READING.join(", ")),
                arguments: object(
                    json!({"arguments": {
                        "type": "array", "items": {"type": "string"},
                        "description": "What follows the word git, such as [\"log\", \"-5\"]",
                    }}),
                    &["arguments"],
                ),
            },
            Tool {
                name: "read",
                description: "Returns the lines of a file, numbered".into(),
                arguments: object(
                    json!({
                        "path": path,
                        "from": {"type": "integer", "description": "First line, from 1"},
                    }),
                    &["path"],
                ),
            },
            Tool {
                name: "list",
                description: "Lists a folder; an empty path is the root".into(),
                arguments: object(json!({"path": path}), &["path"]),
            },
            Tool {
                name: "search",
                description: "Finds lines that match a regular expression in all files of a folder"
                    .into(),
                arguments: object(
                    json!({"pattern": {"type": "string"}, "path": path}),
                    &["pattern", "path"],
                ),
            },
        ];
        let offers = |tool: &Tool| {
            self.rights.channel.contains(&tool.name)
                && (tool.name != "run" || !self.commands.is_empty())
        };
        all.into_iter().filter(offers).collect()
    }

    fn call(&self, tool: &str, arguments: &Value) -> Answer {
        let done = match tool {
            "run" => self.command(arguments),
            "git" => self.git(arguments),
            "read" => self.read(arguments),
            "list" => self.list(arguments),
            "search" => self.search(arguments),
            _ => Err("there is no such tool".to_owned()),
        };
        let answer = done.unwrap_or_else(|text| Answer { text, is_error: true });
        let answer = Answer { text: bounded(answer.text), ..answer };
        if let Ok(mut asked) = self.asked.lock()
            && asked.len() < 10_000
        {
            let what = crate::output::plain_line(&arguments.to_string());
            let what = what.chars().take(300).collect();
            asked.push(Asked { tool: tool.to_owned(), what, is_error: answer.is_error });
        }
        answer
    }
}

impl Desk<'_> {
    fn command(&self, arguments: &Value) -> Result<Answer, String> {
        let number = arguments.get("number").and_then(Value::as_u64);
        let index = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
        let command = index.and_then(|index| self.commands.get(index)).ok_or_else(|| {
            format!("there is no such command; there are {}", self.commands.len())
        })?;
        (self.run)(&command.argv, Change::AsThePhase)
    }

    fn git(&self, arguments: &Value) -> Result<Answer, String> {
        let list = arguments.get("arguments").and_then(Value::as_array).ok_or("no arguments")?;
        let list: Option<Vec<String>> =
            list.iter().map(|word| word.as_str().map(str::to_owned)).collect();
        let list = list.ok_or("arguments are strings")?;
        let first = list.first().map(String::as_str).unwrap_or_default();
        if !READING.contains(&first) {
            return Err(format!("only these are answered: {}", READING.join(", ")));
        }
        let argv: Vec<String> = ["git", "--no-pager", "--no-optional-locks"]
            .map(str::to_owned)
            .into_iter()
            .chain(list)
            .collect();
        (self.run)(&argv, Change::Never)
    }

    fn read(&self, arguments: &Value) -> Result<Answer, String> {
        let mut file = open_file(self.work, path_of(arguments)?)?;
        let from = arguments.get("from").and_then(Value::as_u64).unwrap_or(1).max(1);
        let from = usize::try_from(from).map_err(|_| "no such line")?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0)).map_err(|error| error.to_string())?;
        file.take(MAX_SEARCHED_BYTES * 4)
            .read_to_end(&mut bytes)
            .map_err(|error| error.to_string())?;
        if bytes.contains(&0) {
            return Err("it is no text".into());
        }
        let content = String::from_utf8_lossy(&bytes);
        let n_lines = content.lines().count();
        let mut text = String::new();
        for (n, line) in content.lines().enumerate().skip(from - 1) {
            if text.len() + line.len() > MAX_ANSWER_BYTES - 200 {
                text.push_str(&format!("[go on from line {} of {n_lines}]\n", n + 1));
                break;
            }
            text.push_str(&format!("{}\t{line}\n", n + 1));
        }
        Ok(Answer { text, is_error: false })
    }

    fn list(&self, arguments: &Value) -> Result<Answer, String> {
        let folder = open_folder(self.work, path_of(arguments)?)?;
        let mut names = BTreeSet::new();
        for entry in Dir::new(folder).map_err(|errno| errno.to_string())? {
            let entry = entry.map_err(|errno| errno.to_string())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if matches!(name.as_str(), "." | ".." | ".git") {
                continue;
            }
            let slash = if entry.file_type() == FileType::Directory { "/" } else { "" };
            names.insert(format!("{name}{slash}\n"));
        }
        Ok(Answer { text: names.into_iter().collect(), is_error: false })
    }

    fn search(&self, arguments: &Value) -> Result<Answer, String> {
        let pattern = arguments.get("pattern").and_then(Value::as_str).ok_or("no pattern")?;
        let pattern = regex::bytes::RegexBuilder::new(pattern)
            .size_limit(1 << 20)
            .build()
            .map_err(|error| error.to_string())?;
        let path = path_of(arguments)?;
        let folder = open_folder(self.work, path)?;
        let mut search = Search { pattern, text: String::new(), n_files: 0 };
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        search.folder(folder, &prefix, 0);
        if search.text.is_empty() {
            search.text.push_str("nothing matches\n");
        }
        Ok(Answer { text: search.text, is_error: false })
    }
}

struct Search {
    pattern: regex::bytes::Regex,
    text: String,
    n_files: usize,
}

impl Search {
    fn is_full(&self) -> bool {
        self.text.len() > MAX_ANSWER_BYTES || self.n_files > MAX_SEARCHED
    }

    fn folder(&mut self, folder: OwnedFd, prefix: &str, depth: usize) {
        let Ok(entries) = Dir::read_from(&folder) else { return };
        let mut names: Vec<_> = entries
            .flatten()
            .filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b".." | b".git"))
            .map(|entry| entry.file_name().to_owned())
            .collect();
        names.sort();
        for name in names {
            if self.is_full() || depth > 100 {
                return;
            }
            let shown = format!("{prefix}{}", name.to_string_lossy());
            let Ok(stat) = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => {
                    let opened = rustix::fs::openat(&folder, &name, FOLDER, Mode::empty());
                    if let Ok(inner) = opened {
                        self.folder(inner, &format!("{shown}/"), depth + 1);
                    }
                }
                FileType::RegularFile => {
                    let opened = rustix::fs::openat(&folder, &name, FILE, Mode::empty());
                    if let Ok(file) = opened {
                        self.file(File::from(file), &shown);
                    }
                }
                _ => {}
            }
        }
    }

    fn file(&mut self, file: File, shown: &str) {
        self.n_files += 1;
        let mut bytes = Vec::new();
        if file.take(MAX_SEARCHED_BYTES).read_to_end(&mut bytes).is_err() || bytes.contains(&0) {
            return;
        }
        for (n, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if self.is_full() {
                return;
            }
            if self.pattern.is_match(line) {
                let line: String = String::from_utf8_lossy(line).chars().take(500).collect();
                self.text.push_str(&format!("{shown}:{}: {line}\n", n + 1));
            }
        }
    }
}

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Without waiting, so that a pipe holds nobody up.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

fn path_of(arguments: &Value) -> Result<&str, String> {
    let path = arguments.get("path").and_then(Value::as_str).ok_or("no path")?;
    let path = path.strip_prefix("/work").unwrap_or(path).trim_matches('/');
    Ok(if path == "." { "" } else { path })
}

/// Opens a folder of the project, step by step and through no link.
fn open_folder(root: &Path, path: &str) -> Result<OwnedFd, String> {
    let said = |errno: rustix::io::Errno| format!("{path:?} is no folder here: {errno}");
    let mut folder = rustix::fs::open(root, FOLDER, Mode::empty()).map_err(said)?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if matches!(name, "." | ".." | ".git") {
            return Err(format!("{path:?} is no path in the project"));
        }
        folder = rustix::fs::openat(&folder, name, FOLDER, Mode::empty()).map_err(said)?;
    }
    Ok(folder)
}

fn open_file(root: &Path, path: &str) -> Result<File, String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if matches!(name, "" | "." | ".." | ".git") {
        return Err(format!("{path:?} is no file"));
    }
    let folder = open_folder(root, folder)?;
    let said = |errno: rustix::io::Errno| format!("{path:?} can't be read: {errno}");
    let file = rustix::fs::openat(&folder, name, FILE, Mode::empty()).map_err(said)?;
    let stat = rustix::fs::fstat(&file).map_err(said)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(format!("{path:?} is no file"));
    }
    Ok(File::from(file))
}

/// Cuts an answer to its bound, and says so.
fn bounded(mut text: String) -> String {
    if text.len() > MAX_ANSWER_BYTES {
        let mut end = MAX_ANSWER_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let n_left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{n_left} bytes left out]\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::vendor::{Phase, Vendor};

    fn with_desk(phase: Phase, test: impl Fn(&Desk<'_>)) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        std::fs::create_dir_all(root.join("work/lib")).expect("a folder");
        stage(root, "work/lib/a.txt", "one\ntwo\nthree\n");
        stage(root, "secret", "two\n");
        std::os::unix::fs::symlink("../../secret", root.join("work/lib/out")).expect("a link");
        std::os::unix::fs::symlink("/", root.join("work/root")).expect("a link");
        let commands =
            [Command { text: "make test".into(), argv: vec!["make".into(), "test".into()] }];
        let run = |argv: &[String], change: Change| {
            Ok(Answer { text: format!("{argv:?} {change:?}"), is_error: false })
        };
        test(&Desk {
            rights: Rights::of(Vendor::Codex, phase),
            commands: &commands,
            work: &root.join("work"),
            run: &run,
            asked: Mutex::default(),
        });
    }

    fn stage(root: &Path, path: &str, text: &str) {
        crate::stage::write_scratch(&root.join(path), text.as_bytes()).expect("written");
    }

    #[test]
    fn only_approved_commands_run_and_git_only_reads() {
        with_desk(Phase::Execute, |desk| {
            let ask = |tool, arguments: Value| desk.call(tool, &arguments);
            assert_eq!(ask("run", json!({"number": 1})).text, r#"["make", "test"] AsThePhase"#);
            for number in [json!(0), json!(2), json!(-1), json!("1"), json!(1.5), json!(null)] {
                assert!(ask("run", json!({"number": number})).is_error, "{number}");
            }
            let answer = ask("git", json!({"arguments": ["log", "-1"]}));
            assert!(answer.text.ends_with("\"log\", \"-1\"] Never"), "{answer:?}");
            for words in [json!(["commit"]), json!(["-c", "x=y", "log"]), json!([]), json!("log")] {
                assert!(ask("git", json!({"arguments": words})).is_error, "{words}");
            }
            assert_eq!(desk.asked.lock().expect("a lock").len(), 12);
        });
    }

    #[test]
    fn what_a_phase_does_not_have_is_not_offered() {
        let names = |phase| {
            let names = std::cell::RefCell::new(Vec::new());
            with_desk(phase, |desk| {
                names.borrow_mut().extend(desk.tools().into_iter().map(|tool| tool.name));
            });
            names.into_inner()
        };
        assert_eq!(names(Phase::Questions), ["git", "read", "list", "search"]);
        assert_eq!(names(Phase::Execute), ["run", "git", "read", "list", "search"]);
    }

    #[test]
    fn files_are_read_and_no_name_leads_out() {
        with_desk(Phase::Questions, |desk| {
            let ask = |tool, arguments: Value| desk.call(tool, &arguments);
            let read = ask("read", json!({"path": "/work/lib/a.txt", "from": 2}));
            assert_eq!(read.text, "2\ttwo\n3\tthree\n");
            assert_eq!(ask("list", json!({"path": ""})).text, "lib/\nroot\n");
            let found = ask("search", json!({"pattern": "^t", "path": "."}));
            assert_eq!(found.text, "lib/a.txt:2: two\nlib/a.txt:3: three\n");
            for path in ["lib/out", "../secret", "root/etc/passwd", "/etc/passwd", "", ".git/x"] {
                assert!(ask("read", json!({"path": path})).is_error, "{path}");
                assert!(path.is_empty() || ask("list", json!({"path": path})).is_error, "{path}");
            }
            assert!(ask("search", json!({"pattern": "(", "path": ""})).is_error);
        });
    }
}
