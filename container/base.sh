#!/usr/bin/env bash
# Makes the root file system of the agent image: Debian, without the vendors' tools.
#
#   base.sh PINS CACHE
#
# PINS says what goes in. The result lies in the folder CACHE under a name with the digest of what
# it is made from; what is there already is not made again. Prints progress, one line a step, and at
# the end "made PATH".
#
# Needs mmdebstrap, and root or user namespaces for it.
set -euo pipefail
pins=$(realpath "$1")
self=$(realpath "$0")
mkdir -p "$2"
cache=$(realpath "$2")
command -v mmdebstrap >/dev/null || { echo "error: mmdebstrap is not installed" >&2; exit 1; }

suite=$(awk '$1 == "suite" { print $2 }' "$pins")
packages=$(awk '$1 == "debian" { print $2 }' "$pins" | paste -sd,)
digest=$(printf '%s\n' "$suite" "$packages" | cat - "$self" | sha256sum | cut -c1-16)
made=$cache/base-$digest.tar
if [ -f "$made" ]; then
  echo "made $made"
  exit 0
fi
work=$(mktemp -d "$cache/making-XXXXXX")
trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=1700000000

echo "installing Debian $suite with $packages (some minutes)"
# mmdebstrap tells the form of its output by the name: without .tar it is a folder.
mmdebstrap --quiet --variant=minbase --include="$packages" \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='echo "agent:x:1000:1000:agent:/home/agent:/bin/sh" >>"$1/etc/passwd"' \
  --customize-hook='echo "agent:x:1000:" >>"$1/etc/group"' \
  --customize-hook='mkdir -p "$1/work/.git" "$1/home/agent" "$1/run/codeboost"' \
  --customize-hook='printf "[safe]\n\tdirectory = /work\n" >"$1/etc/gitconfig"' \
  --customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/* "$1"/var/log/*' \
  --customize-hook='find "$1" -xdev -type f -perm /6000 -exec chmod a-s {} +' \
  "$suite" "$work/base.tar" >"$work/log" 2>&1 || { tail -20 "$work/log" >&2; exit 1; }
mv "$work/base.tar" "$made"
echo "made $made"
