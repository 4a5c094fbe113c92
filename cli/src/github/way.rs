//! How a reviewed pair lands on GitHub: the best way that keeps out what was not reviewed.
//!
//! | way | when | what keeps an unreviewed head or base out |
//! |---|---|---|
//! | queue | the base has a merge queue | the expected head; the queue checks what it builds |
//! | merge by GitHub | required checks that have to run on the newest base | the expected head; GitHub refuses an outdated one |
//! | push | no rule forbids it, the account may push, a merge commit | git compares both refs |
//! | none | otherwise | nothing would, so nothing is tried |

use crate::config::MergeMethod;
use crate::github::rules::Rules;

/// A way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Into the merge queue.
    Queue,
    /// GitHub makes and lands the commit.
    Merge,
    /// We make the commit and push it.
    Push,
}

/// What the choice depends on besides the rules.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Whether the account may push to the repository.
    pub may_push: bool,
    /// Whether the repository allows merge commits.
    pub merge_commits: bool,
    /// Whether the repository allows squashing.
    pub squashes: bool,
}

/// Why there is no way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoWay {
    /// Why, for people.
    pub why: String,
    /// What makes one.
    pub hint: String,
}

/// The way, and why it is this one.
///
/// # Errors
/// [`NoWay`] when nothing would keep out what was not reviewed, or the method is not allowed.
pub fn choose(
    rules: &Rules,
    account: Account,
    method: MergeMethod,
) -> Result<(Way, &'static str), NoWay> {
    let no = |why: String, hint: &str| Err(NoWay { why, hint: hint.to_owned() });
    if !account.may_push {
        return no(
            "this account may not write to the repository".into(),
            "sign in to gh with an account that may: gh auth login",
        );
    }
    if rules.queue {
        return Ok((Way::Queue, "the base has a merge queue"));
    }
    let word = method.word();
    let by_repository = match method {
        MergeMethod::Merge => account.merge_commits,
        MergeMethod::Squash => account.squashes,
    };
    let by_rules = rules.methods.as_ref().is_none_or(|all| all.contains(word));
    if rules.strict {
        if !by_repository || !by_rules {
            return no(
                format!("the repository does not allow the merge method {word}"),
                "allow it in the repository's settings, or choose the other: merge.method in the \
                 configuration",
            );
        }
        return Ok((Way::Merge, "required checks have to pass on the newest base"));
    }
    let guard = "let the base require that branches are up to date before merging, or give it a \
                 merge queue; or merge by hand on GitHub";
    let also = rules.why_not_strict.as_ref().map_or(String::new(), |why| format!("; {why}"));
    if method == MergeMethod::Squash {
        return no(
            format!("nothing on GitHub keeps out a base that moves while it squashes{also}"),
            guard,
        );
    }
    if !rules.no_push.is_empty() {
        let rules = rules.no_push.join(", ");
        return no(
            format!(
                "nothing on GitHub keeps out a base that moves while it merges, and pushing is not \
                 open: {rules}{also}"
            ),
            guard,
        );
    }
    Ok((Way::Push, "the base has no rule in its way, so git itself compares base and head"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ALL: Account = Account { may_push: true, merge_commits: true, squashes: true };

    #[test]
    fn the_best_way_is_chosen_in_the_order_of_the_table() {
        let way = |rules: &Rules, method| choose(rules, ALL, method).map(|(way, _)| way);
        let (merge, squash) = (MergeMethod::Merge, MergeMethod::Squash);
        let free = Rules::default();
        assert_eq!(way(&free, merge), Ok(Way::Push));
        assert!(way(&free, squash).is_err());

        let strict = Rules { strict: true, ..Rules::default() };
        assert_eq!(way(&strict, merge), Ok(Way::Merge));
        assert_eq!(way(&strict, squash), Ok(Way::Merge));
        let queue = Rules { queue: true, ..strict.clone() };
        assert_eq!(way(&queue, squash), Ok(Way::Queue));

        let closed = Rules { no_push: vec!["nobody may push".into()], ..Rules::default() };
        let error = way(&closed, merge).expect_err("no way");
        assert!(error.why.contains("nobody may push"), "{error:?}");
        let open = Rules { strict: true, ..closed };
        assert_eq!(way(&open, merge), Ok(Way::Merge));
    }

    #[test]
    fn what_is_not_allowed_is_no_way() {
        let strict = Rules { strict: true, ..Rules::default() };
        let reader = Account { may_push: false, ..ALL };
        assert!(choose(&strict, reader, MergeMethod::Merge).is_err());
        let no_merge = Account { merge_commits: false, ..ALL };
        assert!(choose(&strict, no_merge, MergeMethod::Merge).is_err());
        assert!(choose(&strict, no_merge, MergeMethod::Squash).is_ok());
        let only = Rules { methods: Some(BTreeSet::from(["squash".to_owned()])), ..strict };
        assert!(choose(&only, ALL, MergeMethod::Merge).is_err());
        assert!(choose(&only, ALL, MergeMethod::Squash).is_ok());
    }
}
