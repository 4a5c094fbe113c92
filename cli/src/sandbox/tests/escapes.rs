//! What hostile code tries from inside, each of which has to be refused.

use std::net::TcpListener;

use super::*;

/// Name and script of each attempt. One that succeeds (exit code 0) got out.
const ATTEMPTS: &[(&str, &str)] = &[
    ("read a host path", "cat /etc/shadow"),
    ("write to the system", "touch /usr/bin/x"),
    ("replace a tool", "cp /bin/true /usr/local/bin/claude"),
    ("write to the program that is started first", "echo x >>/run/codeboost/enter.sh"),
    ("reach the socket of an engine", "ls /var/run/docker.sock /run/podman/podman.sock"),
    ("resolve a name", "getent hosts example.com"),
    ("resolve a name of the host", "timeout 3 bash -c ': </dev/tcp/host.docker.internal/80'"),
    ("reach an address", "timeout 3 bash -c ': </dev/tcp/192.0.2.1/80'"),
    ("reach the gateway of an engine", "timeout 3 bash -c ': </dev/tcp/172.17.0.1/22'"),
    ("reach another loopback service", "timeout 3 bash -c ': </dev/tcp/127.0.0.1/PORT'"),
    ("send a datagram", "timeout 3 bash -c 'echo x >/dev/udp/192.0.2.1/53'"),
    ("open a raw socket", "bash -c ': </dev/tcp/0.0.0.0/0'"),
    ("write metadata", "echo x >.git/config"),
    ("write metadata through a link", "ln -s .git/config l; echo x >l"),
    ("write metadata through a hard link", "ln .git/config l2"),
    ("move metadata away", "mv .git .git2"),
    ("remove metadata", "rm -rf .git"),
    ("mount over metadata", "mount -t tmpfs x .git"),
    ("remount metadata", "mount -o remount,rw /work/.git"),
    ("bind metadata elsewhere", "mount --bind .git /tmp"),
    ("unmount metadata", "umount -l .git"),
    ("make a device", "mknod d c 1 1"),
    ("make a block device", "mknod b b 7 0"),
    ("change an owner", "chown 0 a.txt"),
    (
        "get root by a set-user-id copy",
        "cp /bin/bash s && chmod u+s s && ./s -p -c '[ $(id -u) = 0 ]'",
    ),
    ("run a set-user-id program", "find / -xdev -perm /6000 -type f 2>/dev/null | grep -q ."),
    ("make a user namespace", "unshare -U true"),
    ("be root in a namespace", "unshare -Ur true"),
    ("make a network namespace", "unshare -n true"),
    ("make a process namespace", "unshare -p -f true"),
    ("enter another namespace", "nsenter -t 1 -m true"),
    ("change the root", "chroot / true"),
    ("write to settings of the kernel", "echo 1 >/proc/sys/kernel/core_pattern"),
    ("trigger the kernel", "echo b >/proc/sysrq-trigger"),
    (
        "write to control groups",
        "echo 1 >/sys/fs/cgroup/pids/pids.max || echo max >/sys/fs/cgroup/pids.max",
    ),
    ("read memory of the kernel", "head -c1 /proc/kcore | grep -q ."),
    ("see the processes of the host", "[ $(ls -d /proc/[0-9]* | wc -l) -gt 30 ]"),
    ("raise its own limits", "ulimit -Hn 1000000"),
    ("change the clock", "date -s 2000-01-01"),
    ("set the host name", "hostname evil"),
];

#[test]
fn each_way_out_is_shut() {
    // A service of this machine, to see that nothing arrives.
    let listener = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port().to_string();
    on_every_engine(|world| {
        let mut script = String::from("export LC_ALL=C\n");
        for (name, attempt) in ATTEMPTS {
            let attempt = attempt.replace("PORT", &port);
            script.push_str(&format!(
                "if ( {attempt} ) >/dev/null 2>&1 </dev/null; then echo 'OUT: {name}'; \
                 else echo 'refused: {name}'; fi\n"
            ));
        }
        let ended = world.script(&script);
        let out = text(&ended.stdout);
        assert!(!out.contains("OUT:"), "{out}");
        assert_eq!(out.matches("refused: ").count(), ATTEMPTS.len(), "{out}");
    });
    listener.set_nonblocking(true).expect("a listener");
    assert!(listener.accept().is_err(), "something arrived at a service of this machine");
}

#[test]
fn an_edited_script_that_is_run_at_once_gets_no_further() {
    on_every_engine(|world| {
        let ended = world.script(
            "printf '#!/bin/sh\\ncat /etc/shadow && echo GOT\\nunshare -U true && echo GOT\\n' >a.txt; \
             chmod +x a.txt; ./a.txt; true",
        );
        assert_eq!(text(&ended.stdout), "");
    });
}

#[test]
fn links_that_leave_the_project_are_never_followed_from_outside() {
    on_every_engine(|world| {
        let place = world.place();
        let inside = place.first().expect("an inside");
        let script = "ln -s /etc/passwd p; ln -s ../../../../../../etc/passwd q; ln -s . self; \
            rm link; ln -s /root link; mkfifo f";
        let profile = place.profile(&inside, &start(script)).expect("a profile");
        let ended = world.run(&profile, Duration::from_secs(60)).expect("it runs");
        assert_eq!(ended.code, Some(0), "{}", text(&ended.stderr));
        // The reader of workspaces opens nothing through a link; its own tests prove it. Here: what
        // comes back are links and nothing else.
        for name in ["p", "q", "self", "link"] {
            let meta = place.work().join(name).symlink_metadata().expect("there");
            assert!(meta.is_symlink(), "{name}");
        }
        place.release().expect("released");
    });
}

#[test]
fn processes_memory_bytes_and_files_come_to_an_end() {
    on_every_engine(|world| {
        let ended = world.script(
            "f() { f | f & }; (f) 2>/dev/null; sleep 1; \
             n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; echo processes $n",
        );
        let out = text(&ended.stdout);
        let n: u32 = out.trim().rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        assert!(n <= 64, "{out:?}");

        let ended = world.script("tail /dev/zero; echo code $?");
        let is_ended = ended.out_of_memory || text(&ended.stdout).contains("code 137");
        assert!(is_ended, "{ended:?}");

        let ended = world.script(
            "head -c 100000000 /dev/zero >big 2>/dev/null && echo OUT; stat -c %s big; rm -f big; \
             mkdir m; i=0; while : 2>/dev/null >m/$i; do i=$((i+1)); [ $i -gt 5000 ] && break; done; \
             echo files $i; head -c 100000000 /dev/zero >/tmp/big 2>/dev/null && echo OUT; \
             head -c 100000000 /dev/zero >/home/agent/big 2>/dev/null && echo OUT; \
             head -c 100000000 /dev/zero >/dev/shm/big 2>/dev/null && echo OUT; true",
        );
        let out = text(&ended.stdout);
        assert!(!out.contains("OUT"), "{out}");
        let files: u32 = out
            .lines()
            .find_map(|line| line.strip_prefix("files ")?.parse().ok())
            .expect("a number of files");
        assert!(files < 2000, "{out}");
        let bytes: u64 = out.lines().next().and_then(|line| line.parse().ok()).expect("a size");
        assert!(bytes < 32 << 20, "{out}");
    });
}

#[test]
fn what_is_written_takes_nothing_from_the_machine_that_was_not_taken_before() {
    on_every_engine(|world| {
        let place = world.place();
        let image = world.pool();
        let size = || {
            use std::os::unix::fs::MetadataExt as _;
            let images = walkdir::WalkDir::new(&image).max_depth(3).into_iter().flatten();
            let images = images.filter(|entry| entry.file_name() == "disk.img");
            images.map(|entry| entry.metadata().expect("there").blocks() * 512).sum::<u64>()
        };
        let before = size();
        assert!(before >= 32 << 20, "{before}");
        let inside = place.first().expect("an inside");
        let script = "head -c 100000000 /dev/zero >big; true";
        let profile = place.profile(&inside, &start(script)).expect("a profile");
        world.run(&profile, Duration::from_secs(60)).expect("it runs");
        assert_eq!(size(), before);
        place.release().expect("released");
    });
}

#[test]
fn a_container_gets_no_more_of_the_environment_than_its_own() {
    on_every_engine(|world| {
        let ended = world.script("cat /proc/1/environ | tr '\\0' '\\n' | cut -d= -f1 | sort");
        let names: Vec<String> = text(&ended.stdout).lines().map(str::to_owned).collect();
        let known = ["HOME", "HOSTNAME", "PATH", "TERM", "container", ""];
        assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
    });
}
