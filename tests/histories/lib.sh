# What the scripts in kinds/ are written with. Run as: bash lib.sh SCRIPT, in an empty folder.
#
# A script makes a repository in repo/. Its `#=` lines are what `codeboost link` has to say about
# base..head, one segment a line; its `#!` lines are what it has to refuse with.
set -euo pipefail

# The repository; arguments are those of `git init`.
start() {
  git init -q -b work "$@" repo
  cd repo
}

# Commits everything in the work tree, without a record of who made it.
commit_all() {
  git add -A
  git commit -q --allow-empty -m "${1:-a change}"
}

# Commits everything, as the base of the range.
base() {
  commit_all "the base"
  git tag -f base >/dev/null
}

# made ITEM [COMMIT]: records who made a commit; "nobody" for foreign ones.
made() {
  echo "$(git rev-parse "${2:-HEAD}") $1" >>../made
}

# by ITEM: commits everything for an item.
by() {
  commit_all "for $1"
  made "$1"
}

# merge ITEM COMMIT...: merges, with conflicts left in the files, and does not commit.
merge() {
  git merge -q --no-ff --no-commit "$@" >/dev/null || true
}

# declares ITEM PATH...: what an item declares; without any, each declares every path.
declares() {
  printf '%s\n' "$*" >>../declared
}

# lines FROM TO: numbered lines, so that none are equal.
lines() {
  seq -f 'line %g of the file' "$1" "$2"
}

# text NAME: six lines of code-like text of its own.
text() {
  printf 'fn %s() {\n    let value = read("%s");\n    check(value);\n    store(value);\n    done(%s);\n}\n' "$1" "$1" "$1"
}

source "$1"
