//! `codeboost demo`: the whole road on a sample project, with the defaults that are built in.
//!
//! It types the commands that a person would type, and shows each. The project, its issue, its
//! plan and the recorded patches that stand for an agent's work are in `site-fixtures/demo/`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser as _};
use codeboost_schema::ids::{CommitId, ObjectId};
use serde_json::json;

use crate::context::Context;
use crate::embedded;
use crate::error::{Error, Result};
use crate::exit_code::Outcome;
use crate::git::run::{Git, parse_id, parse_object_id};
use crate::output::{Format, Style};
use crate::stage::{self, FileError};

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Build the sample in this folder, which must be empty or missing; by default a temporary one
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// The issue of the sample.
const ISSUE: &str = "412";

/// What is typed, in this order.
const BEFORE_THE_STRANGER: &[&[&str]] = &[
    &["init"],
    &["task", "add", "issue.md", "--base", "origin/main"],
    &["plan", "import", ISSUE, "plan.yaml"],
    &["plan", "approve", ISSUE, "--yes"],
    &["execute", ISSUE, "--agent", "replay", "--patches", "patches"],
    // P2 edited a file that it does not declare; here that is left to the review.
    &["item", "go-on", ISSUE],
    &["execute", ISSUE, "--agent", "replay", "--patches", "patches"],
];
const AFTER_THE_STRANGER: &[&[&str]] =
    &[&["check", "run", ISSUE, "--here"], &["run", ISSUE], &["review", ISSUE]];

pub(crate) fn run(context: &Context, args: &DemoArgs) -> Result {
    let folder = make_folder(context, args.folder.as_deref())?;
    let demo = Demo { context, folder: &folder };
    demo.write_project()?;
    for words in BEFORE_THE_STRANGER {
        demo.run_command(words)?;
    }
    demo.commit_as_stranger()?;
    for words in AFTER_THE_STRANGER {
        demo.run_command(words)?;
    }
    demo.tell_next();
    Ok(Outcome::Done)
}

fn make_folder(context: &Context, wanted: Option<&Path>) -> Result<PathBuf> {
    let Some(wanted) = wanted else {
        let parent = context.var("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let folder = tempfile::Builder::new()
            .prefix("codeboost-demo-")
            .tempdir_in(&parent)
            .map_err(|error| FileError::new("make a folder in", &parent, error))?;
        return Ok(folder.keep());
    };
    let folder = context.path(wanted);
    std::fs::create_dir_all(&folder).map_err(|error| FileError::new("make", &folder, error))?;
    let mut entries =
        std::fs::read_dir(&folder).map_err(|error| FileError::new("read", &folder, error))?;
    if entries.next().is_some() {
        return Err(Error::failed(format!("{} is not empty", folder.display()))
            .hint("name a folder that is empty or missing, or leave --folder out"));
    }
    folder.canonicalize().map_err(|error| FileError::new("resolve", &folder, error).into())
}

struct Demo<'a> {
    context: &'a Context,
    folder: &'a Path,
}

impl Demo<'_> {
    /// The checkout of the sample project.
    fn project(&self) -> PathBuf {
        self.folder.join("tidepool")
    }

    /// The bare repository that stands for the server.
    fn server(&self) -> PathBuf {
        self.folder.join("station.git")
    }

    /// Commands run in the folder that holds the sample's files beside the project would have to
    /// name paths; a person works inside the project.
    fn inside(&self) -> Context {
        Context::new(self.project(), self.context.vars().clone(), self.context.out.clone())
    }

    fn git<'c>(&self, context: &'c Context) -> Git<'c> {
        let folder = self.project();
        Git::at(context, folder.join(".git")).in_folder(&folder)
    }

    fn write_project(&self) -> Result<()> {
        for (path, bytes) in embedded::DEMO {
            if let Some(path) = path.strip_prefix("project/") {
                stage::write(&self.project().join(path), bytes)?;
            }
        }
        let inside = self.inside();
        let git = self.git(&inside);
        let server = self.server();
        let server_git = Git::at(&inside, &server).in_folder(self.project());
        server_git.output(["init", "--quiet", "--bare", "--initial-branch=main", "--template="])?;
        git.output(["init", "--quiet", "--initial-branch=main", "--template="])?;
        for (name, value) in [
            ("user.name", "A. Reviewer"),
            ("user.email", "reviewer@example.invalid"),
            ("commit.gpgsign", "false"),
        ] {
            git.output(["config", name, value])?;
        }
        git.output([OsString::from("remote"), "add".into(), "origin".into(), server.into()])?;
        git.output(["add", "--all"])?;
        git.output([
            "commit",
            "--quiet",
            "--message",
            "Send measurements again when the line drops",
        ])?;
        git.output(["push", "--quiet", "origin", "main"])?;
        // Read by the commands below, and no part of the project.
        for (path, bytes) in embedded::DEMO {
            if !path.starts_with("project/") {
                stage::write(&self.folder.join(path), bytes)?;
            }
        }
        let text = format!(
            "The sample project is in {}; the server it lands on is {}.",
            self.project().display(),
            self.server().display()
        );
        self.context.out.note(text);
        Ok(())
    }

    /// Types one command inside the project, with paths of the sample beside it.
    fn run_command(&self, words: &[&str]) -> Result<()> {
        let words: Vec<String> = words
            .iter()
            .map(|word| {
                let is_file = embedded::DEMO
                    .iter()
                    .any(|(path, _)| path == word || path.starts_with(&format!("{word}/")));
                if is_file { format!("../{word}") } else { (*word).to_owned() }
            })
            .collect();
        let typed = format!("$ codeboost {}", words.join(" "));
        self.context.out.note(format!("\n{}", self.context.out.paint_err(Style::Accent, &typed)));
        let args = crate::args::Args::try_parse_from(
            std::iter::once("codeboost").chain(words.iter().map(String::as_str)),
        )
        .map_err(|error| Error::failed(format!("the demo can't type {typed:?}: {error}")))?;
        let mut inside = self.inside();
        // What the commands of the demo say is what it tells, not its result.
        inside.out.tell_results();
        match crate::commands::dispatch(&inside, &args.command)? {
            Outcome::Done | Outcome::Waits => Ok(()),
            Outcome::NotAllowed | Outcome::Failed => {
                Err(Error::failed(format!("the demo stopped at {typed:?}")))
            }
        }
    }

    /// A commit on the task's branch that no plan item made, with a trailer that says otherwise.
    fn commit_as_stranger(&self) -> Result<()> {
        let inside = self.inside();
        let (_, store) = crate::commands::open(&inside)?;
        let issue: u64 = ISSUE.parse().expect("the sample's issue is a number");
        let task = store.read(|tx| tx.select_task(Some(issue)))?;
        let git = self.git(&inside);
        let head: CommitId = git
            .resolve(&task.head_ref)?
            .ok_or_else(|| Error::failed(format!("{} is gone", task.head_ref)))?;
        let index = self.project().join(".git/codeboost-demo-index");
        let indexed = git.with_env("GIT_INDEX_FILE", index.display().to_string());
        indexed.output(["read-tree", head.as_str()])?;
        let patch = embedded::DEMO
            .iter()
            .find(|(path, _)| *path == "foreign.patch")
            .expect("the sample has the stranger's patch")
            .1;
        indexed.output_with(["apply", "--cached", "-"], Some(patch))?;
        let tree: ObjectId = parse_object_id(&indexed.output(["write-tree"])?, "write-tree")?;
        let _ = std::fs::remove_file(&index);
        let time = self.context.now().as_second();
        let mut signed = git.clone();
        for role in ["AUTHOR", "COMMITTER"] {
            let names = match role {
                "AUTHOR" => ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"],
                _ => ["GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"],
            };
            signed = signed
                .with_env(names[0], "A. Stranger")
                .with_env(names[1], "stranger@example.invalid")
                .with_env(names[2], format!("@{time} +0000"));
        }
        let message = "Try for a while longer\n\nPlan-Item: P1\n";
        let args = ["commit-tree", tree.as_str(), "-p", head.as_str(), "-m", message];
        let commit = parse_id(&signed.output(args)?, "commit-tree", CommitId::parse)?;
        git.output(["update-ref", &task.head_ref, commit.as_str(), head.as_str()])?;
        self.context.out.note(
            "\nA stranger pushes a commit to the branch. Its message says that P1 made it; \
             the ledger does not know it, so it will be shown as Unplanned.",
        );
        Ok(())
    }

    fn tell_next(&self) {
        let out = &self.context.out;
        let bundle = self.project().join(format!(".codeboost/tasks/{ISSUE}/review.html"));
        if out.format == Format::Json {
            out.json(&json!({
                "bundle": bundle,
                "project": self.project(),
                "server": self.server(),
                "issue": ISSUE.parse::<u64>().ok(),
            }));
            return;
        }
        out.note(format!(
            "\nNext:\n  1. Open the page below in a browser, decide, and save your decisions.\n  \
             2. cd {}\n  3. codeboost apply FILE    (the file that the page saved)\n  \
             4. codeboost merge {ISSUE}    (once nothing blocks it)\n\nThe page:",
            self.project().display()
        ));
        out.line(bundle.display().to_string());
    }
}
