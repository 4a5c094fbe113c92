//! Every problem of a plan that has the right shape, by the semantics of its own version.

use codeboost_schema::plan::{CheckKind, Plan};
use codeboost_schema::registry::{Registry, SemanticsKey, Version};

use super::forecast::forecast;
use super::problem::{Code, Problem};
use super::v1;
use super::v1::check::CheckContext;

/// The registered version that a plan follows.
///
/// # Errors
/// A problem of the code `version` when this build has no implementation of it.
pub fn version_of(plan: &Plan) -> Result<&'static Version, Box<Problem>> {
    Registry::get().version(plan.schema_version.into()).ok_or_else(|| {
        Box::new(Problem::new(
            Code::Version,
            "/schema_version",
            format!("this build knows no plan format of version {}", plan.schema_version),
            "a plan follows a registered version (2.1)",
            "install a codeboost that knows it",
        ))
    })
}

/// Every failure and warning of a plan, forecast included.
#[must_use]
pub fn judge(plan: &Plan, context: &CheckContext<'_>) -> Vec<Problem> {
    let version = match version_of(plan) {
        Ok(version) => version,
        Err(problem) => return vec![*problem],
    };
    let mut problems = match version.key {
        SemanticsKey::V1 => v1::check::check(plan, context),
    };
    problems.extend(forecast(plan, context.identity));
    problems
}

/// The commands of a plan as argument lists, each once, in its order; those that can't be split
/// are left out.
#[must_use]
pub fn commands(plan: &Plan) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let checks = plan.items.iter().flat_map(|item| &item.acceptance);
    for check in checks.filter(|check| check.kind == CheckKind::Cmd) {
        if let Ok(argv) = v1::tokenize::tokenize(&check.text)
            && !found.contains(&argv)
        {
            found.push(argv);
        }
    }
    found
}
