//! What a base demands: its rulesets and its classic protection, united. Neither replaces the other,
//! and what can't be read is not the same as nothing.

use std::collections::BTreeSet;

use crate::github::checks::Need;

/// A rule of a ruleset that is active for a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// These checks have to pass.
    Checks {
        /// Which.
        needs: Vec<Need>,
        /// Whether the head has to be up to date with the base.
        strict: bool,
        /// Whether the rule holds for this account.
        holds: Holds,
    },
    /// Everything goes through a merge queue.
    Queue,
    /// Everything goes through a pull request.
    PullRequest {
        /// How many approving reviews.
        reviews: u64,
        /// The merge methods that it allows; `None`: those of the repository.
        methods: Option<Vec<String>>,
    },
    /// No merge commits.
    LinearHistory,
    /// Signed commits only.
    Signatures,
    /// Nobody may push.
    Update,
    /// Something that says nothing about what may be pushed, or that only GitHub can judge.
    Other(String),
}

/// Whether a rule holds for the account that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// It does.
    Yes,
    /// The account may go past it, so that it guards nothing.
    No,
    /// That can't be told.
    Unknown,
}

/// The classic protection of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Classic {
    /// There certainly is none.
    None,
    /// Read in whole.
    Whole(Protection),
    /// Only the required checks could be read; for the rest an administrator has to ask.
    Checks(Vec<Need>),
}

/// Classic protection, as an administrator sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Protection {
    /// The required checks.
    pub needs: Vec<Need>,
    /// Whether the head has to be up to date with the base.
    pub strict: bool,
    /// How many approving reviews; `None`: no pull request is required.
    pub reviews: Option<u64>,
    /// Whether it holds for administrators too.
    pub holds_for_admins: bool,
    /// No merge commits.
    pub linear_history: bool,
    /// Signed commits only.
    pub signatures: bool,
    /// Nobody may push.
    pub locked: bool,
    /// Only named people may push.
    pub restricted: bool,
}

/// What a base demands, all sources united.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    /// The required checks, each once.
    pub needs: BTreeSet<Need>,
    /// Whether the server refuses a head that is not up to date with the base, also from this
    /// account.
    pub strict: bool,
    /// Why `strict` is not so although a source says it; `None` when none does.
    pub why_not_strict: Option<String>,
    /// Whether everything goes through a merge queue.
    pub queue: bool,
    /// How many approving reviews the strictest source demands.
    pub reviews: u64,
    /// Why nothing may be pushed onto the base; empty: no rule forbids it.
    pub no_push: Vec<String>,
    /// The merge methods that all sources allow; `None`: no source restricts them.
    pub methods: Option<BTreeSet<String>>,
    /// Rules that only GitHub can judge.
    pub others: BTreeSet<String>,
}

/// Unites what the rulesets and the classic protection of a branch demand.
///
/// `is_admin`: whether the account is an administrator of the repository.
#[must_use]
pub fn unite(rules: &[Rule], classic: &Classic, is_admin: bool) -> Rules {
    let mut all = Rules::default();
    let mut no_push = BTreeSet::new();
    let restrict = |all: &mut Rules, wanted: BTreeSet<String>| {
        let so_far = all.methods.take();
        all.methods = Some(match so_far {
            Some(so_far) => so_far.intersection(&wanted).cloned().collect(),
            None => wanted,
        });
    };
    for rule in rules {
        match rule {
            Rule::Checks { needs, strict, holds } => {
                all.needs.extend(needs.iter().cloned());
                if !needs.is_empty() {
                    no_push.insert("required checks must have passed on what is pushed");
                }
                match (*strict && !needs.is_empty(), holds) {
                    (false, _) => {}
                    (true, Holds::Yes) => all.strict = true,
                    (true, Holds::No) => {
                        let why = "this account may go past the rule that the head is up to date";
                        all.why_not_strict = Some(why.into());
                    }
                    (true, Holds::Unknown) => {
                        let why = "whether this account may go past the rule that the head is up to \
                                   date can't be told";
                        all.why_not_strict = Some(why.into());
                    }
                }
            }
            Rule::Queue => all.queue = true,
            Rule::PullRequest { reviews, methods } => {
                all.reviews = all.reviews.max(*reviews);
                no_push.insert("changes must go through a pull request");
                if let Some(methods) = methods {
                    restrict(&mut all, methods.iter().cloned().collect());
                }
            }
            Rule::LinearHistory => {
                no_push.insert("merge commits are not allowed");
                restrict(&mut all, ["squash".into(), "rebase".into()].into());
            }
            Rule::Signatures => {
                no_push.insert("commits must be signed");
            }
            Rule::Update => {
                no_push.insert("nobody may push");
            }
            Rule::Other(kind) => {
                all.others.insert(kind.clone());
            }
        }
    }
    match classic {
        Classic::None => {}
        Classic::Checks(needs) => {
            all.needs.extend(needs.iter().cloned());
            no_push.insert("its classic protection can only be read in whole by an administrator");
            if !needs.is_empty() {
                let why = "whether classic protection wants the head up to date can only be read by \
                           an administrator";
                all.why_not_strict = Some(why.into());
            }
        }
        Classic::Whole(classic) => {
            all.needs.extend(classic.needs.iter().cloned());
            if classic.strict && !classic.needs.is_empty() {
                if is_admin && !classic.holds_for_admins {
                    let why = "classic protection does not hold for administrators, and this account \
                               is one";
                    all.why_not_strict = Some(why.into());
                } else {
                    all.strict = true;
                }
            }
            if let Some(reviews) = classic.reviews {
                all.reviews = all.reviews.max(reviews);
                no_push.insert("changes must go through a pull request");
            }
            if !classic.needs.is_empty() {
                no_push.insert("required checks must have passed on what is pushed");
            }
            if classic.linear_history {
                no_push.insert("merge commits are not allowed");
                restrict(&mut all, ["squash".into(), "rebase".into()].into());
            }
            for (is_so, why) in [
                (classic.signatures, "commits must be signed"),
                (classic.locked, "nobody may push"),
                (classic.restricted, "only named people may push"),
            ] {
                if is_so {
                    no_push.insert(why);
                }
            }
        }
    }
    if all.strict {
        all.why_not_strict = None;
    }
    all.no_push = no_push.into_iter().map(str::to_owned).collect();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(context: &str, app: Option<u64>) -> Need {
        Need { context: context.into(), app }
    }

    fn checks(names: &[&str], strict: bool, holds: Holds) -> Rule {
        Rule::Checks { needs: names.iter().map(|name| need(name, None)).collect(), strict, holds }
    }

    #[test]
    fn both_sources_count_and_none_replaces_the_other() {
        let classic = Classic::Whole(Protection {
            needs: vec![need("build", Some(15368)), need("build", None)],
            ..Protection::default()
        });
        let rules = unite(&[checks(&["lint", "build"], false, Holds::Yes)], &classic, false);
        let expected = [need("build", None), need("build", Some(15368)), need("lint", None)];
        assert_eq!(rules.needs.into_iter().collect::<Vec<_>>(), expected);
        assert!(!rules.strict);

        let rules = unite(&[checks(&[], true, Holds::Yes)], &classic, false);
        assert_eq!(rules.needs.len(), 2, "a ruleset without checks beside a classic one");
        assert!(!rules.strict, "strict without a check guards nothing");
        assert_eq!(unite(&[], &Classic::None, true), Rules::default());
    }

    #[test]
    fn strict_counts_only_where_it_holds_for_this_account() {
        let strict = |rules: &[Rule], classic: &Classic, is_admin| {
            let rules = unite(rules, classic, is_admin);
            (rules.strict, rules.why_not_strict.is_some())
        };
        let none = &Classic::None;
        assert_eq!(strict(&[checks(&["a"], true, Holds::Yes)], none, true), (true, false));
        assert_eq!(strict(&[checks(&["a"], true, Holds::No)], none, false), (false, true));
        assert_eq!(strict(&[checks(&["a"], true, Holds::Unknown)], none, false), (false, true));
        let two = [checks(&["a"], true, Holds::No), checks(&["b"], true, Holds::Yes)];
        assert_eq!(strict(&two, none, false), (true, false));
        let classic = |holds_for_admins| {
            let needs = vec![need("a", None)];
            let all = Protection { needs, strict: true, holds_for_admins, ..Protection::default() };
            Classic::Whole(all)
        };
        assert_eq!(strict(&[], &classic(false), false), (true, false));
        assert_eq!(strict(&[], &classic(false), true), (false, true));
        assert_eq!(strict(&[], &classic(true), true), (true, false));
        let part = Classic::Checks(vec![need("a", None)]);
        assert_eq!(strict(&[], &part, false), (false, true));
    }

    #[test]
    fn what_forbids_a_push_is_named_and_methods_shrink() {
        let pull = |reviews, methods: Option<&[&str]>| Rule::PullRequest {
            reviews,
            methods: methods.map(|all| all.iter().map(|one| (*one).to_owned()).collect()),
        };
        let rules = unite(
            &[
                pull(1, Some(&["merge", "squash"])),
                pull(2, Some(&["squash", "rebase"])),
                Rule::Other("code_scanning".into()),
            ],
            &Classic::None,
            false,
        );
        assert_eq!(rules.reviews, 2);
        assert_eq!(rules.methods, Some(BTreeSet::from(["squash".to_owned()])));
        assert_eq!(rules.no_push, ["changes must go through a pull request"]);
        let locked = Protection { locked: true, signatures: true, ..Protection::default() };
        let rules = unite(&[Rule::LinearHistory], &Classic::Whole(locked), false);
        assert_eq!(
            rules.no_push,
            ["commits must be signed", "merge commits are not allowed", "nobody may push"]
        );
    }
}
