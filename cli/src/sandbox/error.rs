//! Why something can't run in a container.

use std::path::PathBuf;

use crate::stage::FileError;

/// Why something can't run in a container, or could not be ended or cleaned up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// No engine answers.
    #[error("no container engine answers: {}", tried.join("; "))]
    NoEngine {
        /// Where it was looked for, with what came back.
        tried: Vec<String>,
    },
    /// An address is no Unix socket of this machine.
    #[error("{0} is no Unix socket of this machine")]
    Address(String),
    /// The engine refused something.
    #[error("{engine} did not {what}")]
    Engine {
        /// Which engine.
        engine: &'static str,
        /// What it was asked to do.
        what: String,
        /// Its words.
        source: bollard::errors::Error,
    },
    /// The engine did not answer in time.
    #[error("{engine} did not {what} within {seconds} s")]
    Silent {
        /// Which engine.
        engine: &'static str,
        /// What it was asked to do.
        what: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The image is not there.
    #[error("the agent image {0} is not there")]
    NoImage(String),
    /// The image could not be made.
    #[error("the image could not be made: {0}")]
    ImageNotMade(String),
    /// What the engine made is not what it was asked for.
    #[error("the container is not what was asked for: {}", differences.join("; "))]
    Differs {
        /// One line each.
        differences: Vec<String>,
    },
    /// A control was found missing inside of the container.
    #[error("the self-test inside of the container failed: {}", faults.join("; "))]
    SelfTest {
        /// One line each.
        faults: Vec<String>,
    },
    /// This machine can't enforce a limit.
    #[error("{0}")]
    NotEnforced(String),
    /// A program that makes or mounts the storage failed.
    #[error("{what} failed: {words}")]
    Storage {
        /// Which step.
        what: &'static str,
        /// What it said.
        words: String,
    },
    /// Something of ours is still there.
    #[error("left behind and to be removed by hand: {}", what.join("; "))]
    Unreleased {
        /// What it is, and where.
        what: Vec<String>,
    },
    /// A path is too long for a socket.
    #[error("{} is too long for a socket", .0.display())]
    SocketPath(PathBuf),
    /// This process was told to end.
    #[error("told to end; what was running was ended first")]
    Interrupted,
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The asynchronous runtime did not start.
    #[error("can't start what speaks with the container engine")]
    Runtime(#[source] std::io::Error),
}
