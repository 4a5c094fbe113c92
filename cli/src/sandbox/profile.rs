//! What a container may do, and whether the engine made it so.
//!
//! One [`Profile`] says all of it: it gives the request, the expectations that the self-test inside
//! holds against what it finds, and what the engine's own answer is compared with.
//!
//! | control | request | looked at from inside | compared |
//! |---|---|---|---|
//! | root of the file system | read-only | mount options, a write | yes |
//! | user | 1000:1000, no other group | `/proc/self/status` | yes |
//! | capabilities | all dropped | the five sets | yes |
//! | new privileges | none | `NoNewPrivs` | yes |
//! | system calls | our own list: no namespaces, mounts, tracing, keys, `io_uring` | mode, `unshare` | yes |
//! | network | none | interfaces, routes | yes |
//! | processes, memory, processor | limits | control groups | yes |
//! | open files, processes of the user, core files | limits, always given: Podman wants them | `ulimit` | yes |
//! | mounts | exactly ours, each read-only or not | all of `mountinfo`, a write | yes |
//! | bytes and files | the storage's own size | `statfs` | |
//! | environment | exactly ours | `/proc/1/environ` | yes |
//! | engine sockets, devices, ports, other namespaces | none | names | yes |
//!
//! The command-line tools' own sandboxes are off inside: they can't start there, and the container
//! is the sandbox.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HostConfig, HostConfigLogConfig, Mount,
    MountBindOptions, MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
};

use crate::sandbox::engine::Kind;

/// User and group in every container.
pub const USER: u32 = 1000;
/// Where the files of codeboost itself are mounted, read-only.
pub const OWN: &str = "/run/codeboost";
/// The project.
pub const WORK: &str = "/work";
/// The home folder, empty at the start.
pub const HOME: &str = "/home/agent";
/// The folder for what is temporary, empty at the start.
pub const TEMP: &str = "/tmp";
/// What the self-test ends with when a control is missing.
pub const SELF_TEST_FAILED: i64 = 78;

/// The program that is started first in every container.
pub const ENTER: &str = include_str!("../../../container/enter.sh");
/// The system calls that are allowed, in the form of the engines.
pub const SECCOMP: &str = include_str!("../../../container/seccomp.json");

/// The label that says which repository a container belongs to.
pub const LABEL_REPOSITORY: &str = "dev.codeboost.repository";
/// The label that says which task.
pub const LABEL_TASK: &str = "dev.codeboost.task";
/// The label that says which run.
pub const LABEL_RUN: &str = "dev.codeboost.run";

/// Whether what is mounted can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// No.
    ReadOnly,
    /// Yes.
    Writable,
}

impl Access {
    fn word(self) -> &'static str {
        match self {
            Self::ReadOnly => "ro",
            Self::Writable => "rw",
        }
    }
}

/// A folder or file of this machine that is seen in the container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Where it lies; must exist: Podman makes what is absent.
    pub source: PathBuf,
    /// Where it is seen.
    pub target: String,
    /// Whether it can be changed there.
    pub access: Access,
}

/// How much of the machine a container may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resources {
    /// Most processes and threads.
    pub max_processes: u32,
    /// Most memory, in bytes; there is no swap beside it.
    pub max_memory_bytes: u64,
    /// Most time of processors, in percent of one.
    pub max_cpu_percent: u32,
    /// Most open files of a process.
    pub max_open_files: u32,
}

/// How much the file systems that can be written hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskCap {
    /// Bytes.
    pub max_bytes: u64,
    /// Files, folders and links.
    pub max_inodes: u64,
}

/// A port of the container's own loopback that leads to a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// The port.
    pub port: u16,
    /// The socket, as the container sees it.
    pub socket: String,
}

/// Everything about one container.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The image, by its id.
    pub image_id: String,
    /// Its name.
    pub name: String,
    /// The program with its arguments.
    pub argv: Vec<String>,
    /// Its environment: all of it.
    pub env: BTreeMap<String, String>,
    /// What is mounted.
    pub binds: Vec<Bind>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What it may use.
    pub resources: Resources,
    /// What each writable mount may hold.
    pub disk: DiskCap,
    /// Ways to sockets.
    pub relays: Vec<Relay>,
    /// Where the program's standard input comes from, by its path inside.
    pub input: Option<String>,
    /// The file with the allowed system calls, for an engine that wants a path.
    pub seccomp_file: PathBuf,
}

/// Variables that an engine adds by itself.
const ENGINE_ENV: [&str; 4] = ["PATH", "HOSTNAME", "container", "TERM"];
/// What an engine's own variables may say.
fn is_engine_env(name: &str, value: &str) -> bool {
    match name {
        "PATH" => value
            .split(':')
            .all(|folder| folder.starts_with("/usr/") || matches!(folder, "/bin" | "/sbin")),
        "container" => matches!(value, "podman" | "docker" | "oci"),
        "TERM" => matches!(value, "xterm" | "dumb"),
        "HOSTNAME" => true,
        _ => false,
    }
}

impl Profile {
    /// What the self-test inside of the container has to find, in the form of `enter.sh`.
    #[must_use]
    pub fn expectations(&self) -> String {
        let mut text = String::new();
        let mut line = |words: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{words}");
        };
        line(format_args!("user {USER}"));
        for bind in &self.binds {
            line(format_args!("mount {} {}", bind.target, bind.access.word()));
            if bind.access == Access::Writable {
                let DiskCap { max_bytes, max_inodes } = self.disk;
                line(format_args!("disk {} {max_bytes} {max_inodes}", bind.target));
            }
        }
        for folder in [HOME, TEMP] {
            line(format_args!("empty {folder}"));
        }
        line(format_args!("pids {}", self.resources.max_processes));
        line(format_args!("memory {}", self.resources.max_memory_bytes));
        line(format_args!("cpu {}", self.resources.max_cpu_percent));
        for (name, limit) in self.limits() {
            line(format_args!("limit {name} {limit}"));
        }
        for name in self.env.keys().map(String::as_str).chain(ENGINE_ENV) {
            line(format_args!("env {name}"));
        }
        for relay in &self.relays {
            line(format_args!("relay {} {}", relay.port, relay.socket));
        }
        if let Some(input) = &self.input {
            line(format_args!("input {input}"));
        }
        line(format_args!("end"));
        text
    }

    /// Limits of each process, always all of them: Podman raises what it is not told.
    fn limits(&self) -> [(&'static str, u32); 3] {
        [
            ("nofile", self.resources.max_open_files),
            ("nproc", 4096.max(self.resources.max_processes)),
            ("core", 0),
        ]
    }

    fn entrypoint() -> Vec<String> {
        ["/usr/bin/tini", "-g", "--", "/bin/bash"]
            .into_iter()
            .map(str::to_owned)
            .chain([format!("{OWN}/enter.sh")])
            .collect()
    }

    fn security_options(&self, kind: Kind) -> Vec<String> {
        let seccomp = match kind {
            Kind::Docker => format!("seccomp={SECCOMP}"),
            Kind::Podman => format!("seccomp={}", self.seccomp_file.display()),
        };
        vec!["no-new-privileges".into(), seccomp]
    }

    /// The request that makes the container.
    #[must_use]
    pub fn request(&self, kind: Kind) -> ContainerCreateBody {
        let mounts = self.binds.iter().map(|bind| Mount {
            typ: Some(MountType::BIND),
            source: Some(bind.source.to_string_lossy().into_owned()),
            target: Some(bind.target.clone()),
            read_only: Some(bind.access == Access::ReadOnly),
            bind_options: Some(MountBindOptions {
                propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
                ..MountBindOptions::default()
            }),
            ..Mount::default()
        });
        let limits = self.limits().map(|(name, limit)| ResourcesUlimits {
            name: Some(name.into()),
            soft: Some(limit.into()),
            hard: Some(limit.into()),
        });
        let memory = i64::try_from(self.resources.max_memory_bytes).unwrap_or(i64::MAX);
        ContainerCreateBody {
            image: Some(self.image_id.clone()),
            entrypoint: Some(Self::entrypoint()),
            cmd: Some(self.argv.clone()),
            user: Some(format!("{USER}:{USER}")),
            working_dir: Some(WORK.into()),
            env: Some(self.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
            labels: Some(self.labels.clone().into_iter().collect()),
            attach_stdin: Some(false),
            open_stdin: Some(false),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            network_disabled: None,
            host_config: Some(HostConfig {
                readonly_rootfs: Some(true),
                cap_drop: Some(vec!["ALL".into()]),
                security_opt: Some(self.security_options(kind)),
                network_mode: Some("none".into()),
                ipc_mode: Some("private".into()),
                pids_limit: Some(self.resources.max_processes.into()),
                memory: Some(memory),
                memory_swap: Some(memory),
                nano_cpus: Some(i64::from(self.resources.max_cpu_percent) * 10_000_000),
                shm_size: Some(16 << 20),
                ulimits: Some(limits.into()),
                log_config: Some(HostConfigLogConfig { typ: Some("none".into()), config: None }),
                mounts: Some(mounts.collect()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        }
    }

    /// Where what the engine says of the container differs from what it was asked for, one line
    /// each. Empty: nowhere.
    #[must_use]
    pub fn differences(&self, kind: Kind, found: &ContainerInspectResponse) -> Vec<String> {
        let mut told = Differences::default();
        let none = HostConfig::default();
        let host = found.host_config.as_ref().unwrap_or(&none);
        let config = found.config.clone().unwrap_or_default();

        let image = found.image.clone().unwrap_or_default();
        let bare = |id: &str| id.trim_start_matches("sha256:").to_owned();
        told.must(bare(&image) == bare(&self.image_id), "image", &image);
        told.must(config.user == Some(format!("{USER}:{USER}")), "user", &config.user);
        told.must(config.cmd.as_ref() == Some(&self.argv), "command", &config.cmd);
        let entrypoint = config.entrypoint.unwrap_or_default();
        // Podman tells it as one line.
        told.must(entrypoint.join(" ") == Self::entrypoint().join(" "), "entrypoint", &entrypoint);
        told.must(config.working_dir.as_deref() == Some(WORK), "folder", &config.working_dir);
        told.must(!config.tty.unwrap_or(false), "terminal", &config.tty);
        told.must(!config.open_stdin.unwrap_or(false), "input", &config.open_stdin);
        for variable in config.env.iter().flatten() {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            let is_ours = self.env.get(name).is_some_and(|ours| ours == value);
            // Values may be secret; names are not.
            told.must(is_ours || is_engine_env(name, value), "variable", &name);
        }
        let labels = config.labels.unwrap_or_default();
        for (name, value) in &self.labels {
            told.must(labels.get(name) == Some(value), "label", name);
        }

        told.must(host.readonly_rootfs == Some(true), "root", &host.readonly_rootfs);
        told.must(!host.privileged.unwrap_or(false), "privileged", &host.privileged);
        told.must(is_empty(&host.cap_add), "added capabilities", &host.cap_add);
        told.must(drops_all(&host.cap_drop), "dropped capabilities", &host.cap_drop);
        self.security_differences(kind, host, &mut told);
        told.must(host.network_mode.as_deref() == Some("none"), "network", &host.network_mode);
        let networks = found.network_settings.clone().unwrap_or_default().networks;
        let names: Vec<String> = networks.unwrap_or_default().into_keys().collect();
        told.must(names.iter().all(|name| name == "none"), "networks", &names);
        for (what, mode) in [
            ("process namespace", &host.pid_mode),
            ("host name namespace", &host.uts_mode),
            ("user namespace", &host.userns_mode),
        ] {
            let is_own = mode.as_deref().is_none_or(|mode| matches!(mode, "" | "private"));
            told.must(is_own, what, mode);
        }
        told.must(
            host.ipc_mode.as_deref().is_none_or(|mode| mode == "private" || mode == "shareable"),
            "memory namespace",
            &host.ipc_mode,
        );
        let resources = &self.resources;
        told.must(
            host.pids_limit == Some(resources.max_processes.into()),
            "processes",
            &host.pids_limit,
        );
        let memory = i64::try_from(resources.max_memory_bytes).ok();
        told.must(host.memory == memory, "memory", &host.memory);
        told.must(host.memory_swap == memory, "memory with swap", &host.memory_swap);
        let cpus = Some(i64::from(resources.max_cpu_percent) * 10_000_000);
        let quota = host
            .cpu_quota
            .zip(host.cpu_period)
            .map(|(quota, period)| quota.saturating_mul(1_000_000_000) / period.max(1));
        told.must(host.nano_cpus == cpus || quota == cpus, "processor", &host.nano_cpus);
        for (name, limit) in self.limits() {
            let is_set = host.ulimits.iter().flatten().any(|found| {
                let known = found.name.clone().unwrap_or_default().to_lowercase();
                known.trim_start_matches("rlimit_") == name && found.hard == Some(limit.into())
            });
            told.must(is_set, "limit", &name);
        }
        told.must(is_empty(&host.devices), "devices", &host.devices);
        told.must(is_empty(&host.device_requests), "devices", &host.device_requests);
        told.must(is_empty(&host.device_cgroup_rules), "devices", &host.device_cgroup_rules);
        told.must(is_empty(&host.group_add), "groups", &host.group_add);
        told.must(is_empty(&host.volumes_from), "volumes of others", &host.volumes_from);
        told.must(is_empty(&host.links), "links", &host.links);
        told.must(
            host.port_bindings.as_ref().is_none_or(HashMap::is_empty),
            "ports",
            &host.port_bindings,
        );
        told.must(!host.publish_all_ports.unwrap_or(false), "ports", &host.publish_all_ports);
        told.must(
            host.tmpfs.as_ref().is_none_or(HashMap::is_empty),
            "file systems in memory",
            &host.tmpfs,
        );
        let restart = host.restart_policy.clone().and_then(|policy| policy.name);
        let restart = restart.map(|name| name.to_string()).unwrap_or_default();
        told.must(matches!(restart.as_str(), "" | "no"), "restart", &restart);

        let wanted: BTreeSet<_> = self
            .binds
            .iter()
            .map(|bind| {
                let source = bind.source.to_string_lossy().into_owned();
                (source, bind.target.clone(), bind.access == Access::Writable)
            })
            .collect();
        let there: BTreeSet<_> = found
            .mounts
            .iter()
            .flatten()
            .map(|mount| {
                let text = |value: &Option<String>| value.clone().unwrap_or_default();
                (text(&mount.source), text(&mount.destination), mount.rw.unwrap_or(true))
            })
            .collect();
        for mount in wanted.symmetric_difference(&there) {
            told.must(false, "mount", mount);
        }
        told.lines
    }

    fn security_differences(&self, kind: Kind, host: &HostConfig, told: &mut Differences) {
        let options: Vec<&String> = host.security_opt.iter().flatten().collect();
        let no_new = options.iter().any(|option| {
            matches!(option.as_str(), "no-new-privileges" | "no-new-privileges:true")
        });
        told.must(no_new, "new privileges", &options.len());
        let wanted = self.security_options(kind);
        let ours = |option: &str| wanted.iter().any(|wanted| wanted == option);
        let has_seccomp =
            options.iter().any(|option| option.starts_with("seccomp=") && ours(option));
        told.must(has_seccomp, "system calls", &"another list, or none");
        for option in options {
            let is_known = ours(option) || option.starts_with("no-new-privileges");
            told.must(is_known, "security option", option);
        }
    }
}

#[derive(Debug, Default)]
struct Differences {
    lines: Vec<String>,
}

impl Differences {
    fn must(&mut self, holds: bool, what: &str, found: &impl std::fmt::Debug) {
        if !holds {
            let mut line = format!("{what}: {found:?}");
            line.truncate(line.char_indices().nth(300).map_or(line.len(), |(at, _)| at));
            self.lines.push(line);
        }
    }
}

fn is_empty<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}

/// Whether every capability that an engine gives by default is dropped. Docker repeats the word,
/// Podman lists them.
fn drops_all(dropped: &Option<Vec<String>>) -> bool {
    const DEFAULTS: [&str; 11] = [
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    ];
    let dropped: BTreeSet<&str> =
        dropped.iter().flatten().map(|name| name.trim_start_matches("CAP_")).collect();
    dropped.contains("ALL") || DEFAULTS.iter().all(|name| dropped.contains(name))
}

/// Whether a path can be mounted: the engines split some of what they are told at these signs.
#[must_use]
pub fn can_be_mounted(path: &Path) -> bool {
    path.to_str().is_some_and(|text| !text.contains([':', ',', '\n', '\0', '"']))
}
