//! The forge that needs nothing but git: a remote, a bare repository on disk, or this repository.
//!
//! | duty | here |
//! |---|---|
//! | issue | a Markdown file or a number; its author is the person, so trusted |
//! | pull request | a record in state; draft is a flag of it |
//! | required checks | none: there are no rules, so the empty answer is certain |
//! | already fixed | the issue's file, other tasks, and the base's new commits |
//! | merge | one atomic push with a lease on each ref, or one ref transaction |
//!
//! Which repository is the forge: the one that the configuration names; else the remote of the
//! base, when that is a remote-tracking branch; else this one.

use std::time::Duration;

use codeboost_schema::ids::CommitId;

use crate::config::HeadAfter;
use crate::context::Context;
use crate::forge::issue_file::IssueFile;
use crate::forge::{
    AlreadyFixed, Finding, FixQuestion, Forge, ForgeError, Guard, Landing, RequiredChecks, Tips,
};
use crate::git::refs::{self, NewValue, RefChange, Remote, Reported};
use crate::git::repository::Repository;
use crate::git::run::{Git, GitError};
use crate::github::mention::{IssueHome, names_issue};
use crate::process::Limits;

/// How much a remote may say. A list of refs is far smaller.
const MAX_OUTPUT_BYTES: usize = 16 << 20;

/// The local forge, for one task's branches.
#[derive(Debug)]
pub struct Local<'a> {
    context: &'a Context,
    git: Git<'a>,
    /// `None`: this repository itself.
    remote: Option<Remote>,
    /// The base's name there.
    base: String,
    /// The head's name there.
    head: String,
    /// Where issues that texts name live; `None`: wherever the remote's address says.
    home: Option<IssueHome>,
    limits: Limits,
}

/// What decides which repository is the forge, and where its branches are.
#[derive(Debug, Clone, Copy)]
pub struct LocalOptions<'o> {
    /// The remote, URL or path that the configuration names.
    pub remote: Option<&'o str>,
    /// The task's base: `refs/heads/main` or `refs/remotes/origin/main`.
    pub base_ref: &'o str,
    /// The task's head.
    pub head_ref: &'o str,
    /// How long the other repository may take for one answer; a push includes its hooks.
    pub timeout: Duration,
}

impl<'a> Local<'a> {
    /// Opens the forge.
    ///
    /// # Errors
    /// [`ForgeError`] when the remote is unknown or the base is no branch of it.
    pub fn open(
        repository: &Repository<'a>,
        options: LocalOptions<'_>,
    ) -> Result<Self, ForgeError> {
        let git = repository.git().clone();
        let folder = repository.work_tree().unwrap_or(repository.common_dir());
        let tracked = |name: &str| -> Result<Option<String>, GitError> {
            let Some(rest) = name.strip_prefix("refs/remotes/") else { return Ok(None) };
            let names = git.output(["remote"])?;
            let names = String::from_utf8_lossy(&names).into_owned();
            // The name of a remote may hold slashes itself.
            let mut fitting: Vec<_> = names
                .lines()
                .filter(|remote| {
                    rest.strip_prefix(remote).is_some_and(|rest| rest.starts_with('/'))
                })
                .collect();
            fitting.sort_by_key(|remote| remote.len());
            Ok(fitting.last().map(|remote| (*remote).to_owned()))
        };
        let spec = match options.remote {
            Some(spec) => Some(spec.to_owned()),
            None => tracked(options.base_ref)?,
        };
        let branch = |name: &str| -> Result<String, ForgeError> {
            if name.starts_with("refs/heads/") {
                return Ok(name.to_owned());
            }
            let remote = tracked(name)?.filter(|remote| spec.as_ref() == Some(remote));
            let branch = remote
                .and_then(|remote| name.strip_prefix(&format!("refs/remotes/{remote}/")))
                .map(|branch| format!("refs/heads/{branch}"));
            branch.ok_or_else(|| ForgeError::NotABranch(name.to_owned()))
        };
        let base = branch(options.base_ref)?;
        // A head that is no branch can be landed all the same; there is only nothing to move.
        let head = branch(options.head_ref).unwrap_or_else(|_| options.head_ref.to_owned());
        let remote = spec.map(|spec| Remote::find(&git, &spec, folder)).transpose()?;
        let limits = Limits { deadline: options.timeout, max_output_bytes: MAX_OUTPUT_BYTES };
        Ok(Self { context: repository.context(), git, remote, base, head, home: None, limits })
    }

    /// The base's full name on the forge.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The head's full name on the forge.
    #[must_use]
    pub fn head(&self) -> &str {
        &self.head
    }

    /// The same, with issues that live elsewhere than the remote's address says.
    #[must_use]
    pub fn with_home(self, home: Option<IssueHome>) -> Self {
        Self { home, ..self }
    }

    /// Brings the head there to `new`, from nothing or from `old`.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be tried.
    pub fn push_from(
        &self,
        old: Option<&CommitId>,
        new: &CommitId,
    ) -> Result<Reported, ForgeError> {
        match old {
            Some(old) => self.push_head(old, new),
            // To git an id of zeros says that the ref must not be there.
            None => match CommitId::parse(&"0".repeat(new.as_str().len())) {
                Ok(nothing) => self.push_head(&nothing, new),
                Err(_) => Err(ForgeError::NotABranch(self.head.clone())),
            },
        }
    }

    /// Deletes the head's branch there, if it still names `head`.
    ///
    /// # Errors
    /// [`ForgeError`] when it can't be tried.
    pub fn delete_head(&self, head: &CommitId) -> Result<Reported, ForgeError> {
        let Some(remote) = &self.remote else { return Ok(Reported::Accepted) };
        let name = self.head.clone();
        let change = RefChange { name, expected: head.clone(), new: NewValue::Deleted };
        Ok(remote.push(&self.git, &[change], self.limits)?)
    }

    fn head_is_branch(&self) -> bool {
        self.head.starts_with("refs/heads/")
    }

    fn tips(&self, base: Option<CommitId>, head: Option<CommitId>) -> Result<Tips, ForgeError> {
        match base {
            Some(base) => Ok(Tips { base, head }),
            None => {
                Err(ForgeError::NoBase { place: self.place(), branch: short(&self.base).into() })
            }
        }
    }

    fn read_here(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        // An existing ref that can't be read must not look like an absent one.
        let args = ["for-each-ref", "--format=%(refname) %(objectname)", "--count=1", name];
        let answer = self.git.output(args)?;
        let answer = String::from_utf8_lossy(&answer);
        let Some((found, id)) = answer.trim_end().split_once(' ') else { return Ok(None) };
        // Git takes a name for a folder of refs too.
        if found != name {
            return Ok(None);
        }
        CommitId::parse(id).map(Some).map_err(|_| GitError::Answer {
            command: "for-each-ref".into(),
            answer: answer.chars().take(200).collect(),
        })
    }

    fn changes(&self, landing: &Landing<'_>) -> Vec<RefChange> {
        let mut changes = vec![RefChange {
            name: self.base.clone(),
            expected: landing.base.clone(),
            new: NewValue::Commit(landing.commit.clone()),
        }];
        if landing.head_is_there && self.head_is_branch() {
            changes.push(RefChange {
                name: self.head.clone(),
                expected: landing.head.clone(),
                new: match landing.head_after {
                    HeadAfter::Delete => NewValue::Deleted,
                    HeadAfter::Move => NewValue::Commit(landing.commit.clone()),
                    HeadAfter::Keep => NewValue::Unchanged,
                },
            });
        }
        changes
    }

    /// Refuses a base that a work tree of that repository stands on.
    fn require_not_checked_out(&self, git: &Git<'_>, whose: &str) -> Result<(), ForgeError> {
        let branch = short(&self.base);
        let Some(folder) = refs::checked_out(git, &self.base)?.into_iter().next() else {
            return Ok(());
        };
        let folder = folder.display().to_string();
        Err(ForgeError::NotAllowed {
            what: format!("{branch} is checked out in {folder}{whose}"),
            hint: "in that work tree switch to another branch, or run git switch --detach; moving \
                 its branch would leave its files behind"
                .to_owned(),
        })
    }

    /// Git on the other repository, when that is a folder here.
    fn git_there(&self) -> Result<Option<Git<'a>>, ForgeError> {
        let Some(path) = self.remote.as_ref().and_then(Remote::local_path) else {
            return Ok(None);
        };
        match Git::discover(self.context, &path) {
            Ok(git) => Ok(Some(git.with_person())),
            // Unreachable for now; the push itself says why, in git's words.
            Err(GitError::NoRepository(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Forge for Local<'_> {
    fn place(&self) -> String {
        match &self.remote {
            Some(remote) => format!("the remote {}", remote.shown()),
            None => "this repository".to_owned(),
        }
    }

    fn read(&self) -> Result<Tips, ForgeError> {
        let Some(remote) = &self.remote else {
            return self.tips(self.read_here(&self.base)?, self.read_here(&self.head)?);
        };
        let names = [self.base.as_str(), self.head.as_str()];
        let mut found = remote.read(&self.git, &names, self.limits)?;
        self.tips(found.remove(&self.base), found.remove(&self.head))
    }

    fn fetch(&self, keep_below: &str) -> Result<Tips, ForgeError> {
        let tips = self.read()?;
        let Some(remote) = &self.remote else { return Ok(tips) };
        let (base, head) = (format!("{keep_below}/base"), format!("{keep_below}/head"));
        let mut wanted = vec![(self.base.as_str(), base.as_str())];
        if tips.head.is_some() {
            wanted.push((self.head.as_str(), head.as_str()));
        }
        remote.fetch(&self.git, &wanted, self.limits)?;
        // What came along is what counts: it may be newer than what was read before.
        let base = self.read_here(&base)?;
        let head = if tips.head.is_some() { self.read_here(&head)? } else { None };
        self.tips(base, head)
    }

    fn is_elsewhere(&self) -> bool {
        self.remote.is_some()
    }

    fn head_after(&self, wanted: HeadAfter) -> Result<(HeadAfter, Option<String>), ForgeError> {
        if self.remote.is_some() || wanted == HeadAfter::Keep {
            return Ok((wanted, None));
        }
        let folders = refs::checked_out(&self.git, &self.head)?;
        Ok(match folders.first() {
            None => (wanted, None),
            Some(folder) => {
                let head = short(&self.head);
                let why = format!("{head} stays: it is checked out in {}", folder.display());
                (HeadAfter::Keep, Some(why))
            }
        })
    }

    fn guard(&self, landing: &Landing<'_>) -> Result<Guard, ForgeError> {
        let guards_head = landing.head_is_there && self.head_is_branch();
        if self.remote.is_some() {
            if let Some(there) = self.git_there()? {
                self.require_not_checked_out(&there, ", a work tree of the remote")?;
            }
            let moves_head = guards_head && landing.head_after != HeadAfter::Keep;
            return Ok(if moves_head { Guard::PinnedPush } else { Guard::PinnedBase });
        }
        let done = self.git.finish(["symbolic-ref", "--quiet", &self.base], None)?;
        if done.code == Some(0) {
            return Err(ForgeError::NotABranch(self.base.clone()));
        }
        self.require_not_checked_out(&self.git, "")?;
        Ok(if guards_head { Guard::RefTransaction } else { Guard::BaseTransaction })
    }

    fn push_head(&self, old: &CommitId, new: &CommitId) -> Result<Reported, ForgeError> {
        let Some(remote) = &self.remote else { return Ok(Reported::Accepted) };
        let change = RefChange {
            name: self.head.clone(),
            expected: old.clone(),
            new: NewValue::Commit(new.clone()),
        };
        Ok(remote.push(&self.git, &[change], self.limits)?)
    }

    fn land(&self, landing: &Landing<'_>, _guard: Guard) -> Result<Reported, ForgeError> {
        let changes = self.changes(landing);
        match &self.remote {
            Some(remote) => Ok(remote.push(&self.git, &changes, self.limits)?),
            None => Ok(refs::change_here(&self.git, &changes)?),
        }
    }

    fn required_checks(&self, _head: &CommitId) -> Result<RequiredChecks, ForgeError> {
        Ok(RequiredChecks::default())
    }

    fn already_fixed(&self, question: &FixQuestion<'_>) -> AlreadyFixed {
        let mut found = Vec::new();
        if let Some(file) = question.issue_file {
            match IssueFile::read(file) {
                Ok(issue) if issue.is_closed => {
                    found.push(Finding::Closed { file: file.to_owned() });
                }
                Ok(_) => {}
                Err(error) => return AlreadyFixed::Unknown(chain(&error)),
            }
        }
        found.extend(question.others.iter().map(|words| Finding::Linked { words: words.clone() }));
        match self.naming_commits(question) {
            Ok(commits) => found.extend(commits),
            Err(why) => {
                let why = format!("the new commits of the base can't be read: {why}");
                return AlreadyFixed::Unknown(why);
            }
        }
        if found.is_empty() { AlreadyFixed::No } else { AlreadyFixed::Found(found) }
    }
}

impl Local<'_> {
    /// The commits that came onto the base since the task began, name the issue and are not the
    /// task's own; newest first.
    fn naming_commits(&self, question: &FixQuestion<'_>) -> Result<Vec<Finding>, GitError> {
        let by_address = || IssueHome::of_url(self.remote.as_ref()?.url());
        let home = self.home.clone().or_else(by_address);
        let range = format!("{}..{}", question.since, question.base);
        let git = self.git.with_config("log.showSignature=false");
        let answer = git.output([
            "log",
            "-z",
            "--no-color",
            "--no-decorate",
            "--encoding=UTF-8",
            "--format=%H%n%B",
            "--end-of-options",
            &range,
        ])?;
        let mut found = Vec::new();
        for record in answer.split(|byte| *byte == 0).filter(|record| !record.is_empty()) {
            let record = String::from_utf8_lossy(record);
            let (id, message) = record.split_once('\n').unwrap_or((&record, ""));
            let commit = CommitId::parse(id).map_err(|_| GitError::Answer {
                command: "log".into(),
                answer: id.chars().take(200).collect(),
            })?;
            if !question.ours.contains(&commit)
                && names_issue(message, question.issue, home.as_ref())
            {
                let subject =
                    message.lines().next().unwrap_or_default().chars().take(120).collect();
                found.push(Finding::Commit { commit, subject });
            }
        }
        Ok(found)
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

/// A branch as people say it.
fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").unwrap_or(name)
}

#[cfg(test)]
mod tests;
