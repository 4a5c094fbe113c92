//! A small review for the tests of the stages.

use std::collections::{BTreeMap, BTreeSet};

use codeboost_schema::form::Form;
use codeboost_schema::ids::Digest;

use crate::approval::policy::Policy;
use crate::approval::samples::{self, Sample};
use crate::config::EvidenceSource;
use crate::gate::{CheckResult, Tip, argv_digest};
use crate::plan::text::PlanText;
use crate::plan::threads::Threads;
use crate::review::plan::{PlanState, Text};
use crate::review::{Inputs, Review, uuid};
use crate::store::{PlanApproval, PlanOrigin, PlanRow, TaskRow};
use crate::task::{PlanId, RepositoryId, TaskId, TaskState};

fn task() -> TaskRow {
    let id = "00000000-0000-4000-8000-000000000002";
    let plan = "00000000-0000-4000-8000-000000000003";
    TaskRow {
        id: TaskId::parse(id).expect("a uuid"),
        plan_id: PlanId::parse(plan).expect("a uuid"),
        issue: 412,
        title: "A sample".into(),
        base_ref: "refs/heads/main".into(),
        base_commit_id: samples::commit(1),
        head_ref: "refs/heads/topic".into(),
        head_commit_id: samples::commit(2),
        made_head: false,
        state: TaskState::InReview,
        reason: "linked".into(),
        version: 1,
        added_at: "2026-11-30T12:00:00Z".into(),
        changed_at: "2026-11-30T12:00:00Z".into(),
    }
}

/// A review of the sample in which nothing was decided, and all checks passed.
pub(crate) fn review(sample: &Sample) -> Review {
    let checks = sample.plan.items.iter().map(|item| CheckResult {
        item: item.id.clone(),
        argv: argv_digest(&["make".into(), "test".into()]),
        head: sample.link.head.clone(),
        source: EvidenceSource::Host,
        by: None,
        passed: true,
        output: "".into(),
    });
    let repository = RepositoryId::parse(samples::uuid(1).as_str()).expect("a uuid");
    Review::judge(Inputs {
        repository: uuid(&repository),
        task: task(),
        plan: sample.plan.clone(),
        link: sample.link.clone(),
        approvals: Vec::new(),
        choices: Vec::new(),
        acknowledgements: Vec::new(),
        notes: Vec::new(),
        rejections: Vec::new(),
        rounds: crate::store::Rounds::default(),
        checks: checks.collect(),
        cmd_evidence: BTreeSet::from([EvidenceSource::Host]),
        policy: Policy::default(),
        base: Tip::Same,
        head: Tip::Same,
    })
}

/// The form of a page that shows this review.
pub(crate) fn form(review: &Review) -> Form {
    let Inputs { task, plan, link, .. } = &review.inputs;
    Form {
        schema_version: 1,
        data_digest: Digest::of(b"data"),
        repository: review.inputs.repository.clone(),
        task: Some(uuid(&task.id)),
        plan: Some(uuid(&task.plan_id)),
        issue: Some(plan.issue),
        revision: Some(plan.revision),
        base: Some(link.base.clone()),
        head: Some(link.head.clone()),
        items: Some(review.form_items()),
        segments: Some(review.form_segments()),
        threads: None,
        rendered_at: "2026-11-30T12:00:00Z".into(),
        public_key: "key".into(),
    }
}

/// The plan of a review with nothing said about it, as r1 that is approved.
pub(crate) fn plan_state(review: &Review) -> PlanState {
    let plan = &review.inputs.plan;
    let text = PlanText::of(plan);
    let base = review.inputs.task.base_commit_id.clone();
    PlanState {
        repository: review.inputs.repository.clone(),
        task: review.inputs.task.clone(),
        rows: vec![PlanRow {
            plan: plan.clone(),
            digest: plan.digest(),
            origin: PlanOrigin::Import,
            made_at: "2026-11-30T12:00:00Z".into(),
            made_by: "me".into(),
            approval: Some(PlanApproval {
                base,
                allowed: Vec::new(),
                open_questions: 0,
                approved_at: "2026-11-30T12:00:00Z".into(),
                approved_by: "me".into(),
            }),
        }],
        answers: Vec::new(),
        requests: Vec::new(),
        suggestions: Vec::new(),
        allowed: BTreeSet::new(),
        threads: Threads::default(),
        texts: BTreeMap::from([(
            text.snapshot(),
            Text { revision: Some(plan.revision), text: text.text },
        )]),
        policy: review.inputs.policy.clone(),
        held: None,
        newest_record: None,
        generation: 0,
    }
}
