//! The forge on GitHub: branches by git, as on the local forge; everything else through the door.
//!
//! | duty | here |
//! |---|---|
//! | required checks | rulesets and classic protection, united, and what is reported for the head |
//! | already fixed | the issue's history on GitHub, and the base's new commits |
//! | merge | by the queue, by GitHub, or by a pinned push; see `github::way` |

use std::collections::BTreeSet;
use std::time::Duration;

use codeboost_schema::ids::CommitId;
use serde_json::json;

use crate::config::HeadAfter;
use crate::context::Context;
use crate::forge::gh::links::Own;
use crate::forge::gh::pulls::{Pull, PullState};
use crate::forge::gh::{Gh, GhError};
use crate::forge::local::Local;
use crate::forge::{
    AlreadyFixed, CheckState, Finding, FixQuestion, Forge, ForgeError, Guard, Landed, Landing,
    Mark, RequiredCheck, RequiredChecks, Sent, Tips,
};
use crate::git::refs::Reported;
use crate::github::checks::{RunState, judge};
use crate::github::rules::Rules;
use crate::github::way::{Account, NoWay, Way, choose};

/// How often something that GitHub shows late is looked for.
const LOOKS: usize = 6;
/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(2);

/// GitHub, for one task's branches.
#[derive(Debug)]
pub struct GitHub<'a> {
    context: &'a Context,
    gh: Gh<'a>,
    git: Local<'a>,
    /// The pull request, once there is one.
    pull: Option<u64>,
    /// All that this task ever opened.
    own: Vec<u64>,
}

impl<'a> GitHub<'a> {
    /// The forge of a task whose pull requests have these numbers, the newest one last.
    #[must_use]
    pub fn new(context: &'a Context, gh: Gh<'a>, git: Local<'a>, own: Vec<u64>) -> Self {
        Self { context, gh, git, pull: own.last().copied(), own }
    }

    /// The door.
    #[must_use]
    pub fn gh(&self) -> &Gh<'a> {
        &self.gh
    }

    /// The base's branch, without `refs/heads/`.
    #[must_use]
    pub fn base(&self) -> &str {
        let name = self.git.base();
        name.strip_prefix("refs/heads/").unwrap_or(name)
    }

    /// The head's branch, without `refs/heads/`; `None` when it is no branch.
    #[must_use]
    pub fn head(&self) -> Option<&str> {
        self.git.head().strip_prefix("refs/heads/")
    }

    /// What the base demands, read anew.
    ///
    /// # Errors
    /// [`GhError`] when one of the sources can't be read whole.
    pub fn rules(&self) -> Result<(Rules, Account), GhError> {
        let (rules, repository) = self.gh.demands(Some(self.base()))?;
        let account = Account {
            may_push: repository.permissions.push,
            merge_commits: repository.allow_merge_commit,
            squashes: repository.allow_squash_merge,
        };
        Ok((rules, account))
    }

    /// Brings the head's branch there to `new`, from nothing or from `old`.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be tried.
    pub fn publish_head(
        &self,
        old: Option<&CommitId>,
        new: &CommitId,
    ) -> Result<Reported, ForgeError> {
        self.git.push_from(old, new)
    }

    /// The pull request, with the head that was reviewed; GitHub may show it a moment late.
    fn pull_at(&self, head: &CommitId) -> Result<Pull, ForgeError> {
        let Some(number) = self.pull else {
            return Err(ForgeError::NotAllowed {
                what: "there is no pull request yet".into(),
                hint: "open it: codeboost publish".into(),
            });
        };
        for look in 1.. {
            let pull = self.gh.pull(number)?;
            if pull.head == *head || look == LOOKS {
                return Ok(pull);
            }
            self.context.pause(PAUSE);
        }
        unreachable!("the loop ends with its last look")
    }

    fn checks_of(&self, head: &CommitId) -> Result<RequiredChecks, ForgeError> {
        let (rules, _) = self.rules()?;
        let mut all = RequiredChecks { checks: Vec::new(), reviews: rules.reviews };
        if rules.needs.is_empty() {
            return Ok(all);
        }
        let runs = self.gh.check_runs(head)?;
        let statuses = self.gh.statuses(head)?;
        for need in &rules.needs {
            let name = match need.app {
                Some(app) => format!("{} (of app {app})", need.context),
                None => need.context.clone(),
            };
            let state = match judge(need, &runs, &statuses) {
                RunState::Passed => CheckState::Passed,
                RunState::Pending => CheckState::Pending,
                RunState::Failed => CheckState::Failed,
                RunState::Unknown(why) => {
                    return Err(GhError::Unknown(format!("the check {name}: {why}")).into());
                }
            };
            all.checks.push(RequiredCheck { name, state });
        }
        Ok(all)
    }

    /// Sees that the pull request of a push that landed is shown as merged.
    fn finish_pull(&self, number: u64, commit: &CommitId) -> Result<Option<String>, ForgeError> {
        let mut pull = self.gh.pull(number)?;
        for _ in 1..LOOKS {
            if pull.state != PullState::Open {
                break;
            }
            self.context.pause(PAUSE);
            pull = self.gh.pull(number)?;
        }
        if matches!(pull.state, PullState::Merged(_)) {
            return Ok(None);
        }
        let line = format!("<!-- codeboost:landed={commit} -->");
        if !self.gh.comment_texts(number)?.iter().any(|text| text.starts_with(&line)) {
            let words = "It landed exactly as it was reviewed. GitHub does not show this pull \
                         request as merged, so it is closed.";
            self.gh.comment(number, &format!("{line}\n{words} Commit: {commit}"))?;
        }
        if pull.state == PullState::Open {
            self.gh.edit_pull(number, &json!({"state": "closed"}))?;
        }
        Ok(Some(format!("GitHub does not show pull request #{number} as merged: it was closed")))
    }
}

impl Forge for GitHub<'_> {
    fn place(&self) -> String {
        format!("GitHub, {}", self.gh.slug())
    }

    fn read(&self) -> Result<Tips, ForgeError> {
        self.git.read()
    }

    fn fetch(&self, keep_below: &str) -> Result<Tips, ForgeError> {
        self.git.fetch(keep_below)
    }

    fn is_elsewhere(&self) -> bool {
        self.git.is_elsewhere()
    }

    fn head_after(&self, wanted: HeadAfter) -> Result<(HeadAfter, Option<String>), ForgeError> {
        self.git.head_after(wanted)
    }

    fn guard(&self, landing: &Landing<'_>) -> Result<Guard, ForgeError> {
        let no =
            |what: String, hint: &str| Err(ForgeError::NotAllowed { what, hint: hint.to_owned() });
        let pull = self.pull_at(landing.head)?;
        let number = pull.number;
        if pull.state != PullState::Open {
            return no(
                format!("pull request #{number} is not open"),
                "open it again on GitHub, or publish the task again: codeboost publish",
            );
        }
        if pull.is_draft {
            return no(
                format!("pull request #{number} is a draft"),
                "publish it as ready: codeboost publish",
            );
        }
        if pull.base_branch != self.base() || pull.head_branch.as_deref() != self.head() {
            return no(
                format!("pull request #{number} is of other branches than the task"),
                "change its base back on GitHub, or add the task again",
            );
        }
        if pull.head != *landing.head {
            return Err(GhError::Unknown(format!(
                "it shows {:.12} as the head of pull request #{number}",
                pull.head
            ))
            .into());
        }
        let (mut rules, account) = self.rules()?;
        // A queue of classic protection is told by the pull request alone.
        rules.queue |= self.gh.queued(number)?.has_queue;
        match choose(&rules, account, landing.method) {
            Ok((Way::Queue, _)) => Ok(Guard::MergeQueue),
            Ok((Way::Merge, _)) => Ok(Guard::StrictChecks),
            Ok((Way::Push, _)) => self.git.guard(landing),
            Err(NoWay { why, hint }) => Err(ForgeError::NotAllowed { what: why, hint }),
        }
    }

    fn mark(&self, guard: Guard) -> Result<Mark, ForgeError> {
        let (Some(number), Guard::MergeQueue) = (self.pull, guard) else {
            return Ok(Mark { pull: self.pull, seen: None });
        };
        let queued = self.gh.queued(number)?;
        Ok(Mark { pull: Some(number), seen: queued.removals.last().map(|(id, _)| id.clone()) })
    }

    fn push_head(&self, old: &CommitId, new: &CommitId) -> Result<Reported, ForgeError> {
        self.git.push_head(old, new)
    }

    fn land(&self, landing: &Landing<'_>, guard: Guard) -> Result<Reported, ForgeError> {
        let done = match (guard, self.pull) {
            (Guard::StrictChecks, Some(number)) => {
                self.gh.merge_pull(number, landing.head, landing.method, landing.message)
            }
            (Guard::MergeQueue, Some(number)) => {
                let node_id = self.gh.queued(number).map(|queued| queued.node_id);
                node_id.and_then(|id| self.gh.enqueue(&id, landing.head))
            }
            _ => return self.git.land(landing, guard),
        };
        Ok(match done {
            Ok(()) => Reported::Accepted,
            Err(GhError::Refused { words, .. }) => Reported::Refused(words),
            Err(error) => Reported::Unclear(error.to_string()),
        })
    }

    fn landed(&self, sent: &Sent<'_>) -> Result<Option<Landed>, ForgeError> {
        let (true, Some(number)) = (sent.guard.is_by_forge(), sent.mark.pull) else {
            return Ok(None);
        };
        let mut queued = self.gh.queued(number)?;
        for _ in 1..LOOKS {
            // Another head is only believed when it is shown for a while: it may be shown late.
            if queued.head == *sent.head {
                break;
            }
            self.context.pause(PAUSE);
            queued = self.gh.queued(number)?;
        }
        Ok(Some(match queued.state {
            PullState::Merged(_) if queued.head != *sent.head => Landed::Gone(format!(
                "pull request #{number} was merged with {:.12}, which was not reviewed",
                queued.head
            )),
            PullState::Merged(Some(commit)) => Landed::Merged(commit),
            PullState::Merged(None) => {
                return Err(GhError::Unknown("it is merged and not told as what".into()).into());
            }
            PullState::Closed => Landed::Gone(format!("pull request #{number} is closed")),
            PullState::Open => match queued.entry {
                Some((_, state, position)) => Landed::Queued(format!(
                    "in the merge queue: {}, place {position}",
                    state.to_lowercase().replace('_', " ")
                )),
                None => {
                    let ids = queued.removals.iter().map(|(id, _)| Some(id));
                    let after = ids.clone().position(|id| id == sent.mark.seen.as_ref());
                    let new = &queued.removals[after.map_or(0, |n| n + 1)..];
                    match new.last() {
                        Some((_, reason)) if sent.guard == Guard::MergeQueue => {
                            Landed::Gone(format!("taken out of the merge queue: {reason}"))
                        }
                        _ => Landed::NotYet,
                    }
                }
            },
        }))
    }

    fn finish(
        &self,
        landing: (&CommitId, HeadAfter),
        guard: Guard,
        commit: &CommitId,
    ) -> Result<Option<String>, ForgeError> {
        let (head, head_after) = landing;
        if !guard.is_by_forge() {
            return self.pull.map_or(Ok(None), |number| self.finish_pull(number, commit));
        }
        if head_after != HeadAfter::Delete || self.git.read()?.head.as_ref() != Some(head) {
            return Ok(None);
        }
        let branch = self.head().unwrap_or_default();
        Ok(match self.git.delete_head(head)? {
            Reported::Accepted => Some(format!("{branch} was deleted there")),
            Reported::Refused(_) | Reported::Unclear(_) => Some(format!("{branch} stays there")),
        })
    }

    fn required_checks(&self, head: &CommitId) -> Result<RequiredChecks, ForgeError> {
        self.checks_of(head)
    }

    fn already_fixed(&self, question: &FixQuestion<'_>) -> AlreadyFixed {
        let mut found = BTreeSet::new();
        let own = Own { pulls: &self.own, base: self.base() };
        match self.gh.fixes(question.issue, own) {
            Ok(words) => found.extend(words),
            Err(error) => {
                return AlreadyFixed::Unknown(format!(
                    "the issue on GitHub can't be read: {error}"
                ));
            }
        }
        let linked = found.into_iter().map(|words| Finding::Linked { words });
        match self.git.already_fixed(question) {
            AlreadyFixed::Unknown(why) => AlreadyFixed::Unknown(why),
            AlreadyFixed::Found(more) => AlreadyFixed::Found(linked.chain(more).collect()),
            AlreadyFixed::No => {
                let all: Vec<_> = linked.collect();
                if all.is_empty() { AlreadyFixed::No } else { AlreadyFixed::Found(all) }
            }
        }
    }
}
