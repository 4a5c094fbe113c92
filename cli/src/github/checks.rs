//! How required checks stand: what GitHub reports for one commit, held against what a base demands.
//!
//! | a check is | when |
//! |---|---|
//! | passed | everything of that name ended well: success, neutral or skipped |
//! | failed | something of that name ended otherwise |
//! | pending | something of that name has not ended, or nothing has begun |
//! | unknown | it can't be told, such as a word that this version does not know |
//!
//! A name that exists as check run and as commit status needs both. A check that is bound to an app
//! counts only from that app; commit statuses don't say which app made them.

use serde::{Deserialize, Serialize};

/// A check that a base demands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Need {
    /// Its name.
    pub context: String,
    /// The app that must report it; `None`: any.
    pub app: Option<u64>,
}

/// A check run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// The app that reported it; `None` when GitHub does not say.
    pub app: Option<u64>,
    /// How it stands.
    pub state: RunState,
}

/// How a check run or commit status stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunState {
    /// It ended well.
    Passed,
    /// It has not ended.
    Pending,
    /// It ended otherwise.
    Failed,
    /// In a word that this version does not know.
    Unknown(String),
}

impl RunState {
    /// From the words of a check run: `completed` and `success`.
    #[must_use]
    pub fn of_run(status: &str, conclusion: Option<&str>) -> Self {
        match (status, conclusion) {
            ("queued" | "in_progress" | "waiting" | "requested" | "pending", None) => Self::Pending,
            ("completed", Some("success" | "neutral" | "skipped")) => Self::Passed,
            (
                "completed",
                Some(
                    "failure" | "cancelled" | "timed_out" | "action_required" | "startup_failure"
                    | "stale",
                ),
            ) => Self::Failed,
            (status, conclusion) => {
                Self::Unknown(format!("{status}, {}", conclusion.unwrap_or("no conclusion")))
            }
        }
    }

    /// From the word of a commit status: `success`.
    #[must_use]
    pub fn of_status(state: &str) -> Self {
        match state {
            "success" => Self::Passed,
            "pending" => Self::Pending,
            "failure" | "error" => Self::Failed,
            state => Self::Unknown(state.to_owned()),
        }
    }
}

/// How one required check stands.
#[must_use]
pub fn judge(need: &Need, runs: &[Run], statuses: &[(String, RunState)]) -> RunState {
    let named: Vec<_> = runs.iter().filter(|run| run.name == need.context).collect();
    let fits = |run: &&&Run| need.app.is_none() || run.app == need.app;
    let mut states: Vec<_> = named.iter().filter(fits).map(|run| &run.state).collect();
    let of_app = states.len();
    states.extend(
        statuses.iter().filter(|(context, _)| *context == need.context).map(|(_, state)| state),
    );
    if need.app.is_some() && of_app == 0 {
        // Such as a status that may be of that app, or a run whose app is not told.
        let is_unclear = !states.is_empty() || named.iter().any(|run| run.app.is_none());
        let why = "which app reported it can't be told".to_owned();
        return if is_unclear { RunState::Unknown(why) } else { RunState::Pending };
    }
    let has = |wanted: &RunState| states.contains(&wanted);
    if has(&RunState::Failed) {
        return RunState::Failed;
    }
    if let Some(unknown) = states.iter().find(|state| matches!(state, RunState::Unknown(_))) {
        return (*unknown).clone();
    }
    if states.is_empty() || has(&RunState::Pending) { RunState::Pending } else { RunState::Passed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_has_one_meaning_and_a_new_one_is_unknown() {
        for (status, conclusion, state) in [
            ("completed", Some("success"), RunState::Passed),
            ("completed", Some("neutral"), RunState::Passed),
            ("completed", Some("skipped"), RunState::Passed),
            ("completed", Some("failure"), RunState::Failed),
            ("completed", Some("cancelled"), RunState::Failed),
            ("completed", Some("timed_out"), RunState::Failed),
            ("completed", Some("action_required"), RunState::Failed),
            ("completed", Some("stale"), RunState::Failed),
            ("queued", None, RunState::Pending),
            ("in_progress", None, RunState::Pending),
            ("waiting", None, RunState::Pending),
        ] {
            assert_eq!(RunState::of_run(status, conclusion), state, "{status} {conclusion:?}");
        }
        for (status, conclusion) in [
            ("completed", None),
            ("completed", Some("splendid")),
            ("in_progress", Some("success")),
            ("resting", None),
        ] {
            let state = RunState::of_run(status, conclusion);
            assert!(matches!(state, RunState::Unknown(_)), "{status} {conclusion:?}");
        }
        assert_eq!(RunState::of_status("error"), RunState::Failed);
        assert!(matches!(RunState::of_status("expected"), RunState::Unknown(_)));
    }

    #[test]
    fn a_name_counts_from_its_app_and_as_run_and_status() {
        let run = |app: u64, state| Run { name: "ci".into(), app: Some(app), state };
        let status = |state| vec![("ci".to_owned(), state), ("other".to_owned(), RunState::Failed)];
        let any = Need { context: "ci".into(), app: None };
        let bound = Need { context: "ci".into(), app: Some(1) };
        let (passed, failed, pending) = (RunState::Passed, RunState::Failed, RunState::Pending);

        assert_eq!(judge(&any, &[], &[]), pending);
        assert_eq!(judge(&any, &[run(1, passed.clone())], &[]), passed);
        assert_eq!(judge(&any, &[run(1, passed.clone()), run(2, failed.clone())], &[]), failed);
        assert_eq!(judge(&any, &[run(1, passed.clone())], &status(pending.clone())), pending);
        assert_eq!(judge(&any, &[], &status(passed.clone())), passed);

        assert_eq!(judge(&bound, &[run(2, passed.clone())], &[]), pending, "another app's");
        assert_eq!(judge(&bound, &[run(1, passed.clone()), run(2, failed.clone())], &[]), passed);
        assert!(matches!(judge(&bound, &[], &status(passed.clone())), RunState::Unknown(_)));
        assert_eq!(judge(&bound, &[run(1, passed.clone())], &status(failed.clone())), failed);
        let no_app = Run { name: "ci".into(), app: None, state: passed };
        assert!(matches!(judge(&bound, &[no_app], &[]), RunState::Unknown(_)));
    }
}
