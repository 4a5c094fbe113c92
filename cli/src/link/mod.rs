//! Which item owns which changed line: history, ledger and plan in, `link.json` out.
//!
//! Plain data in, plain data out; contents come through [`history::Blobs`].
//!
//! | module | does |
//! |---|---|
//! | [`history`] | the types of what is read |

pub mod history;
