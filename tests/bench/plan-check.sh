#!/usr/bin/env bash
# Prints how much CPU `plan check` takes for a plan of 30 items and 1,200 files on a tree of
# 100,000 files. The goal is under 0.3 s.
#
#   tests/bench/plan-check.sh [PROGRAM]    PROGRAM: a release build [default: builds one]
set -euo pipefail
cd "$(dirname "$0")/../.."

program=${1:-}
if [ -z "$program" ]; then
  cargo build --release --quiet -p codeboost
  program=target/release/codeboost
fi
program=$(realpath "$program")

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git init --quiet --bare "$folder/repo.git"

# 100,000 files in 1,000 folders, 100 of them links to a neighbour.
awk 'BEGIN {
  print "blob\nmark :1\ndata 5\ntext\n"
  print "blob\nmark :2\ndata 6\nf1.txt"
  print "commit refs/heads/main\ncommitter T <t@example.invalid> 0 +0000\ndata 1\nx"
  for (n = 0; n < 100000; n++) {
    link = (n % 1000 == 7)
    printf "M %s :%d d%d/sub%d/f%d.%s\n", (link ? "120000" : "100644"), (link ? 2 : 1), \
      n / 10000, (n / 100) % 100, n, (link ? "link" : "txt")
  }
}' | git -C "$folder/repo.git" fast-import --quiet

# 30 items of 40 files: 30 edits of their own, 5 adds, 5 renames; each depends on the one before.
awk 'BEGIN {
  print "schema_version: 1\nissue: 1\nrevision: 1\nsummary: A large plan.\nitems:"
  for (i = 1; i <= 30; i++) {
    printf "  - id: P%d\n    title: Item %d\n    intent: It touches many files.\n    files:\n", i, i
    for (k = 0; k < 40; k++) {
      n = i * 3000 + k * 7
      if (n % 1000 == 7) n++
      path = sprintf("d%d/sub%d/f%d.txt", n / 10000, (n / 100) % 100, n)
      if (k < 30) { kind = "edit"; from = "null" }
      else if (k < 35) { kind = "add"; from = "null"; path = "new/" path }
      else { kind = "rename"; from = path; path = "moved/" path }
      printf "      - path: %s\n        kind: %s\n        renamed_from: %s\n", path, kind, from
      print "        change: The function that parses src/main.txt takes one argument more."
    }
    print "    acceptance:\n      - type: cmd\n        text: make test"
    printf "    depends_on: [%s]\n", (i > 1 ? "P" (i - 1) : "")
  }
  print "questions: []"
}' > "$folder/plan.yaml"

check=("$program" plan check "$folder/plan.yaml" --repo "$folder/repo.git" --base main
  --allow-command "make test")
"${check[@]}"
for _ in 1 2 3 4 5; do
  # User and system time, of git too.
  { TIMEFORMAT='%U %S'; time "${check[@]}" > /dev/null; } 2>&1
done | awk '{ cpu = $1 + $2; if (NR == 1 || cpu < best) best = cpu }
  END { printf "plan check, 30 items, 1,200 files, tree of 100,000: %.3f s of CPU (goal 0.300)\n", best
        exit !(best < 0.3) }'
