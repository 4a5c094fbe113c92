//! Who carries out items: the prompt that every worker gets, and the agents that codeboost starts.
//!
//! | module | does |
//! |---|---|
//! | [`prompt`] | fills the files in `prompts/`, with everything that is not ours as escaped data |
//! | [`replay`] | the agent that applies recorded patches |

pub mod prompt;
pub mod replay;
