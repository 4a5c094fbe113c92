//! The files that codeboost's stages exchange.
//!
//! Each contract has one module here, its JSON Schema beside it in this folder's parent, and an
//! example under `examples/`. This package knows nothing of the rest of codeboost: it reads no
//! files, runs nothing and decides nothing.
//!
//! | module | file |
//! |---|---|
//! | [`plan`] | `plan.yaml`, `plan.json` |
//! | [`plan_edit`] | a plan assistant's answer |
//! | [`ledger`] | `ledger.json` |
//! | [`link`] | `link.json` |
//! | [`form`] | the approval form inside a bundle |
//! | [`decisions`] | `decisions.json` |
//! | [`reply`] | what an agent answers to a question |
//! | [`report`] | what an agent says at the end of an item |
//! | [`verdict`] | what an agent says that judged a change |
//! | [`answers`] | what `apply --format json` answers |
//! | [`status`] | what `status --format json` answers |
//! | [`bytes`] | how repository bytes are written in JSON |
//! | [`ids`] | names of commits, items, digests |
//! | [`canonical`] | RFC 8785, for whatever is signed, fingerprinted or keyed |
//! | [`strict`] | reading of files that others may write |
//! | [`registry`] | the JSON Schemas, and checks against them |

pub mod answers;
pub mod bytes;
pub mod canonical;
pub mod decisions;
pub mod form;
pub mod ids;
pub mod ledger;
pub mod link;
pub mod plan;
pub mod plan_edit;
pub mod registry;
pub mod reply;
pub mod report;
pub mod status;
pub mod strict;
pub mod verdict;
