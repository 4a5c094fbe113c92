//! The integration tests: the real binary against real git repositories.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::disallowed_methods, reason = "tests set up the world that the program gets")]

mod support;

mod agents;
mod amend;
mod apply;
mod check;
mod consult;
mod decisions;
mod demo;
mod execute;
mod generate;
mod github;
mod help;
mod init;
mod issues;
mod item;
mod ledger;
mod link;
mod link_again;
mod link_blocks;
mod link_corpora;
mod link_diff;
mod link_kinds;
mod link_random;
mod link_world;
mod merge;
mod page;
mod page_controls;
mod page_corpora;
mod page_hostile;
mod plan;
mod plan_page;
mod plan_store;
mod plan_styles;
mod plan_threads;
mod publish;
mod rebase;
mod road_cases;
mod road_page;
mod run;
mod site;
mod state;
mod status;
mod task;
mod tidy;
mod unchanged;
mod waiting;
