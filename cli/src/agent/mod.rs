//! Who carries out items: the prompt that every worker gets, and the agents that codeboost starts.
//!
//! | module | does |
//! |---|---|
//! | [`asked`] | what codeboost answers to an agent on the channel |
//! | `claude`, `codex` | a vendor's tool: its command line, and what it says |
//! | [`invoke`] | one invocation of a vendor's tool, in a container |
//! | [`prompt`] | fills the files in `prompts/`, with everything that is not ours as escaped data |
//! | [`replay`] | the agent that applies recorded patches |
//! | [`vendor`] | who the vendors are, how one signs in, what their tools may do |

pub mod asked;
mod claude;
mod codex;
pub mod invoke;
pub mod prompt;
pub mod replay;
pub mod vendor;
