#!/bin/bash
# The first program in every container: tests each control, then becomes the program that was asked
# for. Mounted read-only from the host.
#
#   enter.sh PROGRAM [ARGUMENT]…
#
# /run/codeboost/expect says what has to hold, one fact a line: NAME VALUE…
#
#   user UID             this user and group, and no other group
#   mount PATH ro|rw     a mount that is to be there; any other is refused
#   empty PATH           a folder that has to be empty
#   disk PATH BYTES INODES   the most that the file system of PATH may hold
#   pids N, memory BYTES, cpu PERCENT, limit NAME N
#   env NAME             a variable that may be there; any other is refused
#   relay PORT SOCKET    a port of this container's own loopback that leads to a socket
#   input PATH           the file that is the program's standard input
#   end                  the last line
#
# Whatever does not hold is named on standard error and ends this with exit code 78, before the
# program starts.
set -u
PATH=/usr/local/bin:/usr/bin:/bin
faults=0
fault() { printf 'codeboost self-test: %s\n' "$*" >&2; faults=1; }
expect=/run/codeboost/expect

declare -A status mount_options is_env
while IFS=$':\t ' read -r key value; do status[$key]=$value; done </proc/self/status
while read -r _ _ _ _ point options _; do mount_options[$point]=$options; done </proc/self/mountinfo
has_option() { [[ ",${mount_options[$1]-}," == *",$2,"* ]]; }

# Rights.
for set in CapInh CapPrm CapEff CapBnd CapAmb; do
  [[ ${status[$set]-} =~ ^0+$ ]] || fault "capabilities: $set is ${status[$set]-unknown}"
done
[[ ${status[NoNewPrivs]-} == 1 ]] || fault "no new privileges: ${status[NoNewPrivs]-unknown}"
[[ ${status[Seccomp]-} == 2 ]] || fault "seccomp: ${status[Seccomp]-unknown}"
unshare --user true 2>/dev/null && fault "user namespaces: one could be made"
unshare --user --map-root-user true 2>/dev/null && fault "user namespaces: root in one"

# Files of the system.
has_option / ro || fault "root: it is not read-only"
for path in /proc/sys /proc/sysrq-trigger /proc/irq /proc/bus; do
  [[ -e $path && -w $path && ! -d $path ]] && fault "$path: writable"
done
for path in /proc/kcore /proc/keys /proc/timer_list; do
  if [[ -s $path ]] && head -c1 "$path" 2>/dev/null | grep -q .; then fault "$path: readable"; fi
done
for path in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock; do
  [[ -e $path ]] && fault "engine: $path is here"
done
for path in /dev/*; do
  case ${path#/dev/} in
    console | core | fd | full | mqueue | null | ptmx | pts | random | shm | stderr | stdin | stdout | tty | urandom | zero) ;;
    *) fault "device: $path" ;;
  esac
done

# The network: loopback and nothing else.
while read -r name _; do
  case $name in Inter-* | face | lo:*) ;; *) fault "network: interface $name" ;; esac
done </proc/net/dev
n_routes=0
while read -r interface _; do [[ $interface == Iface ]] || n_routes=$((n_routes + 1)); done </proc/net/route
[[ $n_routes == 0 ]] || fault "network: $n_routes routes"

# Open files: nothing is handed down but the three streams.
for fd in /proc/self/fd/*; do
  case ${fd##*/} in
    0 | 1 | 2 | 255) ;;
    *) [[ -e $fd ]] && fault "open file: ${fd##*/} is $(readlink "$fd")" ;;
  esac
done

group_limit() { # names of files, first that is there
  local file value
  for file in "$@"; do
    if [[ -r $file ]]; then read -r value <"$file"; echo "$value"; return; fi
  done
  echo unknown
}

known=" / "
relays=()
input=/dev/null
ended=
while read -r name a b c; do
  case $name in
    user)
      [[ ${status[Uid]} == "$a"$'\t'"$a"$'\t'"$a"$'\t'"$a" ]] || fault "user: ${status[Uid]}"
      [[ ${status[Gid]} == "$a"$'\t'"$a"$'\t'"$a"$'\t'"$a" ]] || fault "group: ${status[Gid]}"
      for group in ${status[Groups]-}; do [[ $group == "$a" ]] || fault "group: also $group"; done
      ;;
    mount)
      known+="$a "
      if [[ -z ${mount_options[$a]-} ]]; then fault "mount: $a is not there"
      elif ! has_option "$a" "$b"; then fault "mount: $a is not $b"
      elif [[ $b == rw ]] && ! { has_option "$a" nosuid && has_option "$a" nodev; }; then
        fault "mount: $a allows devices or set-user-id programs"
      elif [[ $b == ro ]] && [[ -d $a ]] && touch "$a/.codeboost-self-test" 2>/dev/null; then
        fault "mount: $a can be written"
      elif [[ $b == rw ]]; then
        if touch "$a/.codeboost-self-test" 2>/dev/null; then rm -f "$a/.codeboost-self-test"
        else fault "mount: $a can't be written"; fi
      fi
      ;;
    empty)
      shopt -s nullglob dotglob
      found=("$a"/*)
      shopt -u nullglob dotglob
      [[ ${#found[@]} == 0 ]] || fault "$a: it is not empty"
      ;;
    disk)
      read -r block blocks inodes < <(stat -f -c '%S %b %c' "$a")
      ((block * blocks <= b)) || fault "disk: $a holds $((block * blocks)) bytes, not at most $b"
      ((inodes > 0 && inodes <= c)) || fault "disk: $a holds $inodes inodes, not at most $c"
      ;;
    pids)
      found=$(group_limit /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max)
      [[ $found == "$a" ]] || fault "processes: the limit is $found, not $a"
      ;;
    memory)
      found=$(group_limit /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes)
      [[ $found == "$a" ]] || fault "memory: the limit is $found, not $a"
      found=$(group_limit /sys/fs/cgroup/memory.swap.max /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes)
      [[ $found == 0 || $found == "$a" || $found == unknown ]] || fault "memory: $found with swap, not $a"
      ;;
    cpu)
      if [[ -r /sys/fs/cgroup/cpu.max ]]; then read -r quota period </sys/fs/cgroup/cpu.max
      else
        quota=$(group_limit /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us)
        period=$(group_limit /sys/fs/cgroup/cpu/cpu.cfs_period_us /sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us)
      fi
      [[ $quota =~ ^[0-9]+$ && $period =~ ^[0-9]+$ ]] && ((quota * 100 == period * a)) ||
        fault "processor: $quota of $period, not $a %"
      ;;
    limit)
      case $a in nofile) found=$(ulimit -Hn) ;; nproc) found=$(ulimit -Hu) ;; core) found=$(ulimit -Hc) ;; *) found=unknown ;; esac
      [[ $found != unlimited && $found != unknown ]] && ((found <= b)) || fault "limit: $a is $found, not at most $b"
      ;;
    env) is_env[$a]=1 ;;
    relay) relays+=("$a $b") ;;
    input) input=$a ;;
    end) ended=1 ;;
    *) fault "the expectation $name is not known" ;;
  esac
done <"$expect" || fault "there is nothing to expect"
[[ -n $ended ]] || fault "the expectations have no end"

for point in "${!mount_options[@]}"; do
  case $point in
    / | /proc | /proc/* | /dev | /dev/pts | /dev/shm | /dev/mqueue | /dev/console | /sys | /sys/fs/cgroup | /sys/fs/cgroup/* | /sys/firmware | /sys/dev* | /sys/fs/selinux) ;;
    /etc/hosts | /etc/hostname | /etc/resolv.conf | /run/.containerenv) ;;
    *) [[ $known == *" $point "* ]] || fault "mount: $point is not expected" ;;
  esac
done
while IFS='=' read -r -d '' name _; do
  [[ -n ${is_env[$name]-} ]] || fault "variable: $name is not expected"
done </proc/$$/environ
((faults == 0)) || exit 78

if ((${#relays[@]})); then
  for relay in "${relays[@]}"; do
    read -r port socket <<<"$relay"
    socat "TCP-LISTEN:$port,bind=127.0.0.1,fork,reuseaddr" "UNIX-CONNECT:$socket" </dev/null >/dev/null 2>&1 &
    printf -v listening '0100007F:%04X 00000000:0000 0A' "$port"
    for _ in {1..200}; do
      grep -q "$listening" /proc/net/tcp && break
      sleep 0.01
    done
  done
fi
exec "$@" <"$input"
