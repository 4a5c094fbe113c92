//! What an archived bundle and its decisions prove, offline.
//!
//! A fault is anything that was altered, does not belong together, or can't be proven with the
//! keys at hand. What no signature proves stays unsaid: that somebody read the page.

use codeboost_render::read_page;
use codeboost_schema::decisions::{Action, Decisions};
use codeboost_schema::form::Form;
use codeboost_schema::ids::Digest;
use jiff::Timestamp;
use serde::Serialize;

use crate::apply::signature::AllowedSigners;
use crate::config::AcceptedKey;
use crate::output::plain_line;
use crate::review::form::{FormRefusal, verify as verify_form};

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Archive<'a> {
    /// The bytes of the page.
    pub page: &'a [u8],
    /// The bytes of the decisions file.
    pub decisions: Option<&'a [u8]>,
    /// The bytes of its detached signature.
    pub signature: Option<&'a [u8]>,
    /// The keys whose forms are believed.
    pub keys: &'a [AcceptedKey],
    /// The keys whose signatures of decisions are believed; `None`: nobody's.
    pub signers: Option<&'a AllowedSigners>,
    /// The time at which those keys must be valid.
    pub at: Timestamp,
}

/// What was found.
#[derive(Debug, Serialize)]
pub struct Report {
    schema_version: u32,
    /// Digest of the whole page, as `render` printed it.
    pub digest: Digest,
    /// What the form says; `None` when there is none that can be read.
    pub form: Option<Form>,
    /// The name of the key that signed the form.
    pub signed_by: Option<String>,
    /// Who signed the decisions.
    pub reviewer: Option<String>,
    /// Whom the decisions file says to be of; it proves nothing.
    pub reviewer_as_typed: Option<String>,
    /// When the decisions were saved, by the reader's clock.
    pub saved_at: Option<String>,
    /// What was decided, in the file's order, for people.
    pub decisions: Vec<String>,
    /// What is wrong; empty when nothing is.
    pub faults: Vec<String>,
}

/// Looks at an archived bundle.
#[must_use]
pub fn verify(archive: &Archive<'_>) -> Report {
    let mut report = Report {
        schema_version: 1,
        digest: Digest::of(archive.page),
        form: None,
        signed_by: None,
        reviewer: None,
        reviewer_as_typed: None,
        saved_at: None,
        decisions: Vec::new(),
        faults: Vec::new(),
    };
    let page_form = look_at_page(archive, &mut report);
    if let Some(bytes) = archive.decisions {
        look_at_decisions(archive, bytes, page_form.as_ref(), &mut report);
    }
    report
}

type PageForm = codeboost_schema::decisions::SignedForm;

fn look_at_page(archive: &Archive<'_>, report: &mut Report) -> Option<PageForm> {
    let Ok(html) = std::str::from_utf8(archive.page) else {
        report.faults.push("the page is not UTF-8".to_owned());
        return None;
    };
    let parts = match read_page(html) {
        Ok(parts) => parts,
        Err(error) => {
            report.faults.push(error.to_string());
            return None;
        }
    };
    let Some(signed) = parts.form else {
        report.faults.push("the page carries no form: nothing proves what it is".to_owned());
        return None;
    };
    report.form = Form::parse(&signed.payload).ok();
    match verify_form(&signed, archive.keys) {
        Ok(form) => {
            let key = archive.keys.iter().find(|key| key.public_key == form.public_key);
            report.signed_by = key.map(|key| key.name.clone());
            if form.data_digest != parts.data_digest {
                report.faults.push(format!(
                    "the page's data was altered: it is {}, and {} was signed",
                    parts.data_digest, form.data_digest
                ));
            }
        }
        Err(error) => report.faults.push(error_words(&error)),
    }
    Some(signed)
}

fn error_words(error: &FormRefusal) -> String {
    match error {
        FormRefusal::UnknownKey(key) => {
            format!("the form is of the key {key}, which is not known here; name it with --key")
        }
        FormRefusal::Form(_) | FormRefusal::Signature { .. } => error.to_string(),
    }
}

fn look_at_decisions(
    archive: &Archive<'_>,
    bytes: &[u8],
    page_form: Option<&PageForm>,
    report: &mut Report,
) {
    let decisions = match Decisions::parse(bytes) {
        Ok(decisions) => decisions,
        Err(error) => {
            report.faults.push(format!("the decisions can't be read: {error}"));
            return;
        }
    };
    if page_form.is_some_and(|form| *form != decisions.form) {
        report.faults.push("the decisions were made on another page".to_owned());
    }
    report.saved_at = Some(decisions.saved_at.clone());
    report.reviewer_as_typed = decisions.reviewer.as_deref().map(plain_line);
    let form = report.form.clone();
    report.decisions =
        decisions.decisions.iter().map(|one| words(&one.action, form.as_ref())).collect();
    match (archive.signature, archive.signers) {
        (None, _) => {}
        (Some(_), None) => report.faults.push(
            "the decisions are signed, and no allowed signers are named with --signers".to_owned(),
        ),
        (Some(signature), Some(signers)) => {
            match signers.verify(bytes, signature, |_| false, archive.at) {
                Ok(by) => report.reviewer = Some(by.name),
                Err(error) => report.faults.push(error.to_string()),
            }
        }
    }
}

/// A decision for people: `approve P1 (sha256:…)`.
fn words(action: &Action, form: Option<&Form>) -> String {
    let mut words = action.word().to_owned();
    if let Some(item) = action.item() {
        words.push_str(&format!(" {item}"));
    }
    match action {
        Action::Approve { item } | Action::ConfirmNoChange { item } => {
            let items = form.and_then(|form| form.items.as_ref());
            if let Some(known) = items.and_then(|items| items.get(item)) {
                words.push_str(&format!(" ({})", known.fingerprint));
            }
        }
        Action::Acknowledge { tag, .. } => words.push_str(&format!(" {}", plain_line(tag))),
        Action::RequestChange { text, .. } | Action::Ask { text, .. } => {
            words.push_str(&format!(": {}", plain_line(text)));
        }
        Action::Reject { summary } => words.push_str(&format!(": {}", plain_line(summary))),
        Action::WithdrawRequest { request } => words.push_str(&format!(" {request}")),
        _ => {}
    }
    if let Some((segment, key)) = action.segment() {
        words.push_str(&format!(" (change {segment}, {key})"));
    }
    words
}
