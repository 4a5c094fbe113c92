//! What a base demands and how its checks stand: rulesets, classic protection, check runs, commit
//! statuses. Each 404 and 403 is read by its message.

use std::collections::BTreeMap;

use codeboost_schema::ids::CommitId;
use serde::Deserialize;
use serde_json::Value;

use crate::forge::gh::{Gh, GhError, RepositoryFacts, segment};
use crate::github::checks::{Need, Run, RunState};
use crate::github::rules::{Classic, Holds, Protection, Rule, Rules, unite};

/// So many pages are read at most.
const MAX_PAGES: usize = 20;

#[derive(Debug, Deserialize)]
struct RuleRecord {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    parameters: Value,
    ruleset_id: u64,
}

#[derive(Debug, Deserialize)]
struct ChecksParameters {
    required_status_checks: Vec<CheckRecord>,
    strict_required_status_checks_policy: bool,
}

#[derive(Debug, Deserialize)]
struct CheckRecord {
    context: String,
    // Absent: from any source.
    integration_id: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct PullParameters {
    required_approving_review_count: u64,
    allowed_merge_methods: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
struct Enabled {
    enabled: bool,
}

#[derive(Debug, Deserialize)]
struct ProtectionRecord {
    required_status_checks: Option<ClassicChecks>,
    enforce_admins: Option<Enabled>,
    required_pull_request_reviews: Option<Reviews>,
    required_linear_history: Option<Enabled>,
    required_signatures: Option<Enabled>,
    lock_branch: Option<Enabled>,
    restrictions: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Reviews {
    #[serde(default)]
    required_approving_review_count: u64,
}

#[derive(Debug, Deserialize)]
struct ClassicChecks {
    #[serde(default)]
    strict: bool,
    #[serde(default)]
    contexts: Vec<String>,
    #[serde(default)]
    checks: Vec<ClassicCheck>,
}

#[derive(Debug, Deserialize)]
struct ClassicCheck {
    context: String,
    // Null, or -1: from any source.
    app_id: Option<i64>,
}

impl ClassicChecks {
    fn needs(&self) -> Vec<Need> {
        let mut needs: Vec<_> = self
            .checks
            .iter()
            .map(|check| Need {
                context: check.context.clone(),
                app: check.app_id.and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0),
            })
            .collect();
        for context in &self.contexts {
            if !needs.iter().any(|need| need.context == *context) {
                needs.push(Need { context: context.clone(), app: None });
            }
        }
        needs
    }
}

impl Gh<'_> {
    /// What a branch demands, all sources united, read anew; and the repository. Without a branch,
    /// the default one.
    ///
    /// # Errors
    /// [`GhError`] when one of the sources can't be read whole.
    pub fn demands(&self, branch: Option<&str>) -> Result<(Rules, RepositoryFacts), GhError> {
        let repository = self.repository()?;
        let branch = branch.unwrap_or(&repository.default_branch);
        let rules = self.rules(branch)?;
        let classic = self.classic(branch)?;
        Ok((unite(&rules, &classic, repository.permissions.admin), repository))
    }

    /// The rules of all rulesets that are active for a branch, inherited ones too.
    ///
    /// # Errors
    /// [`GhError`]; part of them is not enough.
    pub fn rules(&self, branch: &str) -> Result<Vec<Rule>, GhError> {
        let path = format!("/rules/branches/{}", segment(branch));
        let records: Vec<RuleRecord> = self.pages(&path, MAX_PAGES)?;
        let mut holds = BTreeMap::new();
        let mut rules = Vec::new();
        for record in records {
            rules.push(match record.kind.as_str() {
                "required_status_checks" => {
                    let parameters: ChecksParameters = parameters(&record)?;
                    let strict = parameters.strict_required_status_checks_policy;
                    let holds = match holds.get(&record.ruleset_id) {
                        Some(holds) => *holds,
                        None if strict => {
                            let found = self.ruleset_holds(record.ruleset_id);
                            holds.insert(record.ruleset_id, found);
                            found
                        }
                        None => Holds::Unknown,
                    };
                    let needs = parameters.required_status_checks.into_iter();
                    let needs =
                        needs.map(|one| Need { context: one.context, app: one.integration_id });
                    Rule::Checks { needs: needs.collect(), strict, holds }
                }
                "merge_queue" => Rule::Queue,
                "pull_request" => {
                    let parameters: PullParameters = parameters(&record)?;
                    Rule::PullRequest {
                        reviews: parameters.required_approving_review_count,
                        methods: parameters.allowed_merge_methods,
                    }
                }
                "required_linear_history" => Rule::LinearHistory,
                "required_signatures" => Rule::Signatures,
                "update" => Rule::Update,
                kind => Rule::Other(kind.to_owned()),
            });
        }
        Ok(rules)
    }

    /// Whether a ruleset holds for the account that asks.
    fn ruleset_holds(&self, id: u64) -> Holds {
        #[derive(Deserialize)]
        struct Ruleset {
            current_user_can_bypass: String,
        }
        match self.read::<Ruleset>(&format!("/rulesets/{id}")) {
            Ok(ruleset) if ruleset.current_user_can_bypass == "never" => Holds::Yes,
            Ok(_) => Holds::No,
            Err(_) => Holds::Unknown,
        }
    }

    /// The classic protection of a branch.
    ///
    /// # Errors
    /// [`GhError`] when neither the protection nor what everybody may see of it can be read.
    pub fn classic(&self, branch: &str) -> Result<Classic, GhError> {
        let path = format!("/branches/{}", segment(branch));
        match self.read::<ProtectionRecord>(&format!("{path}/protection")) {
            Ok(record) => Ok(Classic::Whole(whole(&record))),
            Err(GhError::Refused { status: 404, words })
                if words.eq_ignore_ascii_case("Branch not protected") =>
            {
                Ok(Classic::None)
            }
            // Not for this account to read, or not told: what every reader may see is asked next.
            Err(GhError::Refused { status: 403 | 404, .. }) => self.classic_as_reader(&path),
            Err(error) => Err(error),
        }
    }

    fn classic_as_reader(&self, path: &str) -> Result<Classic, GhError> {
        #[derive(Deserialize)]
        struct Branch {
            protected: bool,
            protection: Option<Shown>,
        }
        #[derive(Deserialize)]
        struct Shown {
            enabled: bool,
            required_status_checks: Option<ClassicChecks>,
        }
        let branch: Branch = self.read(path)?;
        match branch.protection {
            _ if !branch.protected => Ok(Classic::None),
            // Protected by rulesets alone.
            Some(shown) if !shown.enabled => Ok(Classic::None),
            Some(Shown { required_status_checks: Some(checks), .. }) => {
                Ok(Classic::Checks(checks.needs()))
            }
            Some(_) => Ok(Classic::Checks(Vec::new())),
            None => Err(GhError::unknown("what protects the base is not for this account to read")),
        }
    }

    /// The newest check runs of a commit.
    ///
    /// # Errors
    /// [`GhError`]; fine-grained tokens may not read them.
    pub fn check_runs(&self, commit: &CommitId) -> Result<Vec<Run>, GhError> {
        #[derive(Deserialize)]
        struct Page {
            check_runs: Vec<RunRecord>,
        }
        #[derive(Deserialize)]
        struct RunRecord {
            name: String,
            head_sha: String,
            status: String,
            conclusion: Option<String>,
            app: Option<App>,
        }
        #[derive(Deserialize)]
        struct App {
            id: u64,
        }
        let path = format!("/commits/{commit}/check-runs?filter=latest");
        let records = self.paged(&path, MAX_PAGES, |page: Page| page.check_runs)?;
        if let Some(other) = records.iter().find(|run| run.head_sha != commit.as_str()) {
            return Err(GhError::unknown(format!("a check run of {}", other.head_sha)));
        }
        Ok(records
            .into_iter()
            .map(|run| Run {
                state: RunState::of_run(&run.status, run.conclusion.as_deref()),
                name: run.name,
                app: run.app.map(|app| app.id),
            })
            .collect())
    }

    /// The newest commit statuses of a commit, by context.
    ///
    /// # Errors
    /// [`GhError`].
    pub fn statuses(&self, commit: &CommitId) -> Result<Vec<(String, RunState)>, GhError> {
        #[derive(Deserialize)]
        struct Page {
            statuses: Vec<StatusRecord>,
        }
        #[derive(Deserialize)]
        struct StatusRecord {
            context: String,
            state: String,
        }
        let path = format!("/commits/{commit}/status");
        let records = self.paged(&path, MAX_PAGES, |page: Page| page.statuses)?;
        let states = records.into_iter();
        Ok(states.map(|one| (one.context, RunState::of_status(&one.state))).collect())
    }
}

fn parameters<'r, T: Deserialize<'r>>(record: &'r RuleRecord) -> Result<T, GhError> {
    T::deserialize(&record.parameters).map_err(|error| {
        GhError::unknown(format!("a rule {} of another form: {error}", record.kind))
    })
}

fn whole(record: &ProtectionRecord) -> Protection {
    let is_on = |part: &Option<Enabled>| part.as_ref().is_some_and(|part| part.enabled);
    let checks = record.required_status_checks.as_ref();
    Protection {
        needs: checks.map_or(Vec::new(), ClassicChecks::needs),
        strict: checks.is_some_and(|checks| checks.strict),
        reviews: record
            .required_pull_request_reviews
            .as_ref()
            .map(|reviews| reviews.required_approving_review_count),
        holds_for_admins: is_on(&record.enforce_admins),
        linear_history: is_on(&record.required_linear_history),
        signatures: is_on(&record.required_signatures),
        locked: is_on(&record.lock_branch),
        restricted: record.restrictions.as_ref().is_some_and(|part| !part.is_null()),
    }
}
