#!/usr/bin/env bash
# Makes the layer with the vendors' tools: a build context that puts them on top of the base.
#
#   tools.sh PINS CACHE
#
# As base.sh. The context holds a Dockerfile whose argument BASE names the image of the base.
# Nothing of the downloaded packages is run: they hold native programs, which are unpacked.
#
# Needs npm, tar and coreutils.
set -euo pipefail
pins=$(realpath "$1")
self=$(realpath "$0")
mkdir -p "$2"
cache=$(realpath "$2")
command -v npm >/dev/null || { echo "error: npm is not installed" >&2; exit 1; }

digest=$(awk '$1 == "npm"' "$pins" | cat - "$self" | sha256sum | cut -c1-16)
made=$cache/tools-$digest.tar
if [ -f "$made" ]; then
  echo "made $made"
  exit 0
fi
work=$(mktemp -d "$cache/making-XXXXXX")
trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=1700000000

check() { # file spec sha512
  local found
  found=$(sha512sum "$1" | cut -c1-128 | sed 's/../\\x&/g')
  found=$(printf "$found" | base64 -w0)
  [ "$found" = "$3" ] || { echo "error: $2 is not what was pinned, but sha512-$found" >&2; exit 1; }
}
while read -r _ name spec sha512; do
  file=$cache/$name-$(printf '%s' "$spec" | sha256sum | cut -c1-16).tgz
  if [ ! -f "$file" ]; then
    echo "downloading $spec"
    mkdir "$work/npm"
    (cd "$work/npm" && npm pack --silent --ignore-scripts "$spec" >/dev/null)
    check "$work"/npm/*.tgz "$spec" "$sha512"
    mv "$work"/npm/*.tgz "$file"
    rmdir "$work/npm"
  fi
  check "$file" "$spec" "$sha512"
  declare "$name=$file"
done < <(awk '$1 == "npm"' "$pins")

echo "unpacking the tools"
root=$work/root
mkdir -p "$root/opt/claude" "$root/opt/codex" "$root/usr/local/bin"
tar -xzf "$claude" -C "$root/opt/claude" --strip-components=1 package/claude package/LICENSE.md
tar -xzf "$codex" -C "$root/opt/codex" --strip-components=3 \
  --exclude='*/codex-resources/voice' package/vendor/x86_64-unknown-linux-musl
ln -s /opt/claude/claude "$root/usr/local/bin/claude"
ln -s /opt/codex/bin/codex "$root/usr/local/bin/codex"
chmod -R u=rwX,go=rX "$root"
pack=(tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner)
"${pack[@]}" -C "$root" -cf "$work/tools.tar" .
rm -rf "$root"
printf 'ARG BASE\nFROM $BASE\nADD tools.tar /\n' >"$work/Dockerfile"
"${pack[@]}" -C "$work" -cf "$work/context.tar" Dockerfile tools.tar
mv "$work/context.tar" "$made"
echo "made $made"
