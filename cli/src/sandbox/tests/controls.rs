//! The self-test and the comparison: a good container passes both, and each control that is
//! missing is found by one of them.

use bollard::models::{ContainerCreateBody, DeviceMapping, HostConfig, Mount, MountType};

use super::*;
use crate::sandbox::profile::OWN;

#[test]
fn a_container_as_it_is_asked_for_passes_on_every_engine() {
    on_every_engine(|world| {
        let ended =
            world.script("id -u; cat a.txt; echo new >a.txt; git log --format=%s; env | sort");
        assert_eq!(ended.code, Some(0), "{}", text(&ended.stderr));
        let out = text(&ended.stdout);
        assert!(out.starts_with("1000\nold\nfirst\n"), "{out}");
        assert!(out.contains("HOME=/home/agent\n"), "{out}");
        eprintln!("started in {:?}, over in {:?}", ended.start_time, ended.whole_time);
    });
}

#[test]
fn what_is_written_comes_back_and_what_is_read_only_does_not_change() {
    on_every_engine(|world| {
        let place = world.place();
        let inside = place.first().expect("an inside");
        let script = "echo new >a.txt; for t in 'touch .git/x' 'rm -f .git/HEAD' 'mv .git g' \
            'rmdir .git' 'ln .git/HEAD h' 'git add -A' 'umount .git' \
            'mount -o remount,rw /work/.git' 'cp a.txt /run/codeboost/x'; \
            do $t 2>/dev/null && echo \"$t\"; done; true";
        let profile = place.profile(&inside, &start(script)).expect("a profile");
        let ended = world.run(&profile, Duration::from_secs(60)).expect("it runs");
        assert_eq!(text(&ended.stdout), "", "what was not refused");
        assert_eq!(std::fs::read_to_string(place.work().join("a.txt")).expect("a file"), "new\n");
        let read_only = Start { work: Access::ReadOnly, ..start("touch x; echo y >a.txt") };
        let inside = place.further().expect("an inside");
        let profile = place.profile(&inside, &read_only).expect("a profile");
        let ended = world.run(&profile, Duration::from_secs(60)).expect("it runs");
        assert_ne!(ended.code, Some(0));
        assert!(!exists(&place.work().join("x")));
        place.release().expect("released");
    });
}

type Alter = (&'static str, fn(&mut ContainerCreateBody, &mut Profile));

fn host(body: &mut ContainerCreateBody) -> &mut HostConfig {
    body.host_config.as_mut().expect("a host configuration")
}

/// Each takes one control away. The word has to be in what is said of it.
const ALTERED: &[Alter] = &[
    ("root", |body, _| host(body).readonly_rootfs = Some(false)),
    ("user", |body, _| body.user = Some("0:0".into())),
    ("group", |body, _| host(body).group_add = Some(vec!["20".into()])),
    ("capabilities", |body, _| {
        host(body).cap_drop = None;
        host(body).cap_add = Some(vec!["SYS_ADMIN".into()]);
    }),
    ("no new privileges", |body, _| {
        host(body).security_opt.as_mut().expect("options").remove(0);
    }),
    // Whether a user namespace could then be made is for the machine to say as well.
    ("seccomp", |body, _| {
        host(body).security_opt.as_mut().expect("options")[1] = "seccomp=unconfined".into();
    }),
    ("processes", |body, _| host(body).pids_limit = Some(1000)),
    ("memory", |body, _| {
        host(body).memory = Some(512 << 20);
        host(body).memory_swap = Some(512 << 20);
    }),
    ("processor", |body, _| host(body).nano_cpus = Some(1_500_000_000)),
    ("limit: nofile", |body, _| {
        for limit in host(body).ulimits.as_mut().expect("limits") {
            if limit.name.as_deref() == Some("nofile") {
                (limit.soft, limit.hard) = (Some(8192), Some(8192));
            }
        }
    }),
    ("network", |body, _| host(body).network_mode = Some("host".into())),
    ("mount: /work/.git", |body, _| {
        for mount in host(body).mounts.as_mut().expect("mounts") {
            if mount.target.as_deref() == Some("/work/.git") {
                mount.read_only = Some(false);
            }
        }
    }),
    ("is not expected", |body, _| {
        let more = Mount {
            typ: Some(MountType::BIND),
            source: Some("/usr".into()),
            target: Some("/mnt".into()),
            read_only: Some(true),
            ..Mount::default()
        };
        host(body).mounts.as_mut().expect("mounts").push(more);
    }),
    ("device", |body, _| {
        let fuse = DeviceMapping {
            path_on_host: Some("/dev/loop-control".into()),
            path_in_container: Some("/dev/loop-control".into()),
            cgroup_permissions: Some("r".into()),
        };
        host(body).devices = Some(vec![fuse]);
    }),
    ("variable: SECRET", |body, _| {
        body.env.get_or_insert_default().push("SECRET=value".into());
    }),
    ("disk", |body, _| {
        for mount in host(body).mounts.as_mut().expect("mounts") {
            if mount.target.as_deref() == Some("/tmp") {
                mount.source = Some("/srv".into());
            }
        }
    }),
];

#[test]
fn each_control_that_is_missing_is_found_from_inside() {
    on_every_engine(|world| {
        for (word, alter) in ALTERED {
            let ended = world.run_altered(|body, profile, _| alter(body, profile));
            let Err(SandboxError::SelfTest { faults }) = ended else {
                panic!("without {word:?}: {ended:?}");
            };
            assert!(faults.iter().any(|fault| fault.contains(word)), "{word:?}: {faults:?}");
        }
    });
}

#[test]
fn each_control_that_is_missing_is_found_in_the_engines_own_view() {
    on_every_engine(|world| {
        let place = world.place();
        let inside = place.first().expect("an inside");
        let profile = place.profile(&inside, &start("true")).expect("a profile");
        let view = |body: ContainerCreateBody| {
            world.engine.runtime.block_on(async {
                let name = format!("codeboost-test-{}", uuid::Uuid::new_v4().simple());
                let id = world.engine.create(&name, body).await.expect("a container");
                let found = world.engine.inspect(&id).await.expect("a view");
                let time = Duration::from_secs(20);
                world.engine.removed(&id, time).await.expect("removed");
                profile.differences(world.engine.kind(), &found)
            })
        };
        assert_eq!(view(profile.request(world.engine.kind())), Vec::<String>::new());
        let more: &[Alter] = &[
            ("command", |body, _| body.cmd = Some(vec!["sh".into()])),
            ("entrypoint", |body, _| body.entrypoint = Some(vec!["sh".into()])),
            ("privileged", |body, _| host(body).privileged = Some(true)),
            ("namespace", |body, _| host(body).pid_mode = Some("host".into())),
            ("restart", |body, _| {
                host(body).restart_policy = Some(bollard::models::RestartPolicy {
                    name: Some(bollard::models::RestartPolicyNameEnum::ALWAYS),
                    maximum_retry_count: None,
                });
            }),
            ("memory", |body, _| {
                host(body).tmpfs = Some([("/mnt".to_owned(), "rw".to_owned())].into());
            }),
        ];
        for (word, alter) in ALTERED.iter().chain(more) {
            let mut body = profile.request(world.engine.kind());
            alter(&mut body, &mut profile.clone());
            let lines = view(body);
            assert!(!lines.is_empty(), "without {word:?} on {:?}", world.engine.kind());
        }
        place.release().expect("released");
    });
}

#[test]
fn a_container_that_differs_is_never_started() {
    on_every_engine(|world| {
        let place = world.place();
        let inside = place.first().expect("an inside");
        let mut profile = place.profile(&inside, &start("touch ran")).expect("a profile");
        // The engine mounts what it is told; another engine's answer is what this stands for.
        profile.binds.retain(|bind| bind.target != OWN);
        let mut asked = profile.request(world.engine.kind());
        asked.user = Some("0:0".into());
        let error = supervise::run_compared(&world.engine, &profile, asked).expect_err("refused");
        assert!(matches!(error, SandboxError::Differs { .. }), "{error}");
        assert!(!exists(&place.work().join("ran")));
        place.release().expect("released");
    });
}
