//! Agents and the containers that they run in.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The containers in which agents run: where they come from, and how much of the machine they get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sandbox {
    /// The Unix socket of the engine; `None`: `DOCKER_HOST`, or where engines put theirs.
    pub engine: Option<PathBuf>,
    /// Most memory, in MiB.
    pub memory_mib: u64,
    /// Most processes and threads.
    pub processes: u32,
    /// Most time of processors, in percent of one.
    pub cpu_percent: u32,
    /// What the project's copy, the home folder and temporary files may take together, in MiB.
    pub disk_mib: u64,
    /// How many files, folders and links they may have together.
    pub inodes: u64,
    /// What all runs together may take of this machine's disk, in MiB.
    pub pool_mib: u64,
    /// What has to stay free on this machine's disk, in MiB.
    pub min_free_mib: u64,
    /// How long one invocation of an agent may take, in seconds.
    pub deadline: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SandboxPart {
    engine: Option<PathBuf>,
    memory_mib: Option<u64>,
    processes: Option<u32>,
    cpu_percent: Option<u32>,
    disk_mib: Option<u64>,
    inodes: Option<u64>,
    pool_mib: Option<u64>,
    min_free_mib: Option<u64>,
    deadline: Option<u64>,
}

impl SandboxPart {
    /// What holds when the other part fills what this one leaves open.
    pub(super) fn over(self, other: Self) -> Sandbox {
        Sandbox {
            engine: self.engine.or(other.engine),
            memory_mib: self.memory_mib.or(other.memory_mib).unwrap_or(2048),
            processes: self.processes.or(other.processes).unwrap_or(512),
            cpu_percent: self.cpu_percent.or(other.cpu_percent).unwrap_or(200),
            disk_mib: self.disk_mib.or(other.disk_mib).unwrap_or(2048),
            inodes: self.inodes.or(other.inodes).unwrap_or(262_144),
            pool_mib: self.pool_mib.or(other.pool_mib).unwrap_or(20_480),
            min_free_mib: self.min_free_mib.or(other.min_free_mib).unwrap_or(1024),
            deadline: self.deadline.or(other.deadline).unwrap_or(1800),
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.engine.as_ref().is_some_and(|path| !path.is_absolute()) {
            return Err("sandbox.engine: not an absolute path".into());
        }
        let processes = self.processes.map(u64::from);
        let cpu_percent = self.cpu_percent.map(u64::from);
        for (name, value, least, most) in [
            ("memory_mib", self.memory_mib, 256, 1 << 20),
            ("processes", processes, 32, 32_768),
            ("cpu_percent", cpu_percent, 10, 100_000),
            ("disk_mib", self.disk_mib, 16, 1 << 20),
            ("inodes", self.inodes, 1000, 1 << 30),
            ("pool_mib", self.pool_mib, 16, 1 << 30),
            ("min_free_mib", self.min_free_mib, 0, 1 << 30),
            ("deadline", self.deadline, 1, 86_400),
        ] {
            if value.is_some_and(|value| value < least || value > most) {
                return Err(format!("sandbox.{name}: from {least} to {most}"));
            }
        }
        Ok(())
    }
}

/// The agents of vendors.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Agents {
    /// `claude`.
    pub claude: Agent,
    /// `codex`.
    pub codex: Agent,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    /// Where the vendor's interface is, when it is not where the vendor has it: a gateway of one's
    /// own, `https`, or `http` on this machine.
    pub url: Option<String>,
    /// The model, by the vendor's name; `None`: what the tool takes.
    pub model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentsPart {
    claude: Agent,
    codex: Agent,
}

impl AgentsPart {
    /// As [`SandboxPart::over`].
    pub(super) fn over(self, other: Self) -> Agents {
        let over = |mine: Agent, other: Agent| Agent {
            url: mine.url.or(other.url),
            model: mine.model.or(other.model),
        };
        Agents { claude: over(self.claude, other.claude), codex: over(self.codex, other.codex) }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        for (name, agent) in [("claude", &self.claude), ("codex", &self.codex)] {
            if let Some(url) = &agent.url
                && !is_base_url(url)
            {
                return Err(format!(
                    "agents.{name}.url: not https://HOST[:PORT][/PATH], or http on this machine"
                ));
            }
            let is_name = |model: &String| {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-._/:@[]".contains(c);
                !model.is_empty() && !model.starts_with('-') && model.chars().all(plain)
            };
            if agent.model.as_ref().is_some_and(|model| !is_name(model)) {
                return Err(format!("agents.{name}.model: not a name of a model"));
            }
        }
        Ok(())
    }
}

fn is_base_url(url: &str) -> bool {
    let (rest, is_local) = match url.split_once("://") {
        Some(("https", rest)) => (rest, false),
        Some(("http", rest)) => (rest, true),
        _ => return false,
    };
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (host, port) = authority.split_once(':').unwrap_or((authority, "443"));
    let is_host = !host.is_empty()
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    let is_path = path.chars().all(|c| c.is_ascii_alphanumeric() || "-._~/".contains(c));
    is_host
        && port.parse::<u16>().is_ok_and(|port| port != 0)
        && is_path
        && (!is_local || matches!(host, "127.0.0.1" | "localhost"))
}
