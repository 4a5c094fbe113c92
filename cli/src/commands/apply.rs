//! `codeboost apply`: a decisions file into the record, and whatever it asks for.

use std::path::PathBuf;

use clap::Args;
use codeboost_schema::answers::{Answers, Refused};
use serde_json::json;

use crate::apply::{self, Applied, FileInput, read};
use crate::commands::merge::{self, MergeArgs, Merged};
use crate::commands::open;
use crate::context::Context;
use crate::error::Result;
use crate::exit_code::Outcome;
use crate::output::{Style, counted, plain, plain_line};
use crate::process::crash_point;

/// Arguments of `apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The file that a page saved
    file: PathBuf,
    /// Its detached SSH signature [default: FILE.sig, if there is one]
    #[arg(long, value_name = "FILE")]
    signature: Option<PathBuf>,
    /// Record what was decided, and carry out nothing of it
    #[arg(long)]
    record_only: bool,
}

pub(crate) fn run(context: &Context, args: &ApplyArgs) -> Result {
    let (repository, store) = open(context)?;
    let path = context.path(&args.file);
    let bytes = read::decisions(&path)?;
    let signature = match &args.signature {
        Some(signature) => Some(read::signature(&context.path(signature))?),
        None => {
            let mut beside = path.clone().into_os_string();
            beside.push(".sig");
            let beside = PathBuf::from(beside);
            match std::fs::symlink_metadata(&beside) {
                Ok(_) => Some(read::signature(&beside)?),
                Err(_) => None,
            }
        }
    };
    let name = args.file.display().to_string();
    let input = FileInput { name: &name, bytes: &bytes, signature: signature.as_deref() };
    let applied = apply::apply_file(&repository, &store, input)?;
    let recorded = outcome(&applied.answers);
    let wanted = applied.task.as_ref().filter(|_| applied.asks_to_merge && !args.record_only);
    let Some(task) = wanted else {
        tell(context, &applied);
        return Ok(recorded);
    };
    if !context.out.is_json() {
        tell_decisions(context, &applied);
    }
    crash_point(context, "apply: before carrying out");
    let merged = merge::carry_out(context, &repository, &store, task, &MergeArgs::of_one_pair());
    let landed = merged.as_ref().ok().and_then(|merged| merged.as_ref().ok());
    if context.out.is_json() {
        tell_json(context, &applied, landed);
    } else if let Some(landed) = landed {
        landed.tell(&context.out);
        landed.hints().iter().for_each(|hint| context.out.note(hint));
    }
    let merged = merged?.map_or_else(|held| held.tell(context), |landed| landed.outcome());
    Ok(recorded.max(merged))
}

/// How decisions ended.
pub(crate) fn outcome(answers: &Answers) -> Outcome {
    if answers.refused.is_empty() { Outcome::Done } else { Outcome::NotAllowed }
}

/// Reports what became of decisions, and what is next.
pub(crate) fn tell(context: &Context, applied: &Applied) {
    if context.out.is_json() {
        tell_json(context, applied, None);
    } else {
        tell_decisions(context, applied);
        context.out.note(format!("Next: {}", applied.answers.next));
    }
}

fn tell_json(context: &Context, applied: &Applied, merged: Option<&Merged>) {
    for notice in &applied.notices {
        context.out.warn(plain_line(notice));
    }
    let mut answers = json!(applied.answers);
    if let Some(merged) = merged {
        answers["merge"] = merged.report();
        answers["next"] = json!(merged.hints().join("\n"));
    }
    context.out.json(&answers);
}

fn tell_decisions(context: &Context, applied: &Applied) {
    let out = &context.out;
    for notice in &applied.notices {
        out.warn(plain_line(notice));
    }
    let answers = &applied.answers;
    for words in &applied.words {
        out.line(format!("{} {}", out.paint(Style::Success, "✓"), plain_line(words)));
    }
    for named in &answers.already {
        out.line(format!("– {} {} was recorded before", named.kind, named.id));
    }
    for refused in &answers.refused {
        let reason = match &refused.cause {
            Some(cause) => format!("{} ({cause})", refused.reason.as_str()),
            None => refused.reason.as_str().to_owned(),
        };
        out.line(format!(
            "{} {} refused, {reason}: {}",
            out.paint(Style::Error, "✕"),
            refused.kind,
            plain_line(&refused.what)
        ));
        for line in bytes_lines(refused) {
            out.line(format!("    {line}"));
        }
    }
    let mut counts = vec![counted(answers.applied.len() as u64, "decision") + " recorded"];
    if !answers.already.is_empty() {
        counts.push(format!("{} recorded before", answers.already.len()));
    }
    if !answers.refused.is_empty() {
        counts.push(format!("{} refused", answers.refused.len()));
    }
    out.line(counts.join(", "));
}

/// So many lines of each side are shown for a refusal.
const MAX_LINES: usize = 12;

fn bytes_lines(refused: &Refused) -> Vec<String> {
    let mut lines = Vec::new();
    for (label, bytes) in [("then", &refused.before), ("now", &refused.after)] {
        let Some(bytes) = bytes else { continue };
        let text = bytes.lossy().into_owned();
        let all: Vec<_> = text.lines().collect();
        for (n, line) in all.iter().take(MAX_LINES).enumerate() {
            let label = if n == 0 { label } else { "" };
            lines.push(format!("{label:<4} {}", plain(line)));
        }
        if all.len() > MAX_LINES {
            lines.push(format!("     and {} more lines", all.len() - MAX_LINES));
        }
    }
    lines
}
