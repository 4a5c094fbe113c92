#!/usr/bin/env python3
"""Measures `codeboost link` against git on the same ranges, in the same rounds.

  tests/bench/link.py [--program FILE] [--corpora FOLDER] [--only WORD] [--rounds N] [--blame]

Every folder in FOLDER (or in $CODEBOOST_CORPORA) with a repo.bundle, and X.json, X.plan.json and
X.ledger.json for each range X, is a corpus. Synthetic ranges are made once, under target/bench-link:
20, 200, 2,000 and 10,000 commits over many files; `wide`, one commit that changes 300,000 lines of
3,000 files; `hot`, 1,000 commits to one file of 20,000 lines.

Printed are, per range, CPU seconds (user and system, with all children) of `link` and of
`git log -p --reverse -M`, medians of the rounds; the median of their ratios; peak memory; with
--blame, the CPU of `git blame` over every changed file, measured once. Then the exponent that fits
CPU to the bytes of the blobs that the range reads; the wall time with two threads over one; and the
CPU of a link that only goes on by 20 commits, over that of a whole one. Nothing is asserted: time is
for people, and counts are what tests hold on to.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = ROOT / "target" / "bench-link"
N_ITEMS = 30


def clean_env():
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env.update(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", LC_ALL="C")
    return env


def git(repo, *args, data=None):
    done = subprocess.run(
        ["git", "-C", str(repo), *args], input=data, stdout=subprocess.PIPE, env=clean_env(), check=True
    )
    return done.stdout.decode("utf-8", "replace")


# Synthetic ranges.


class Dice:
    """A fixed sequence, so that every run measures the same bytes."""

    def __init__(self, seed):
        self.state = seed * 0x9E3779B97F4A7C15 + 1

    def below(self, n):
        self.state = (self.state * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) % 2**64
        return (self.state >> 32) % n

    def line(self):
        words = ("open", "read", "write", "close", "check", "count", "total", "index", "value", "state")
        text = " ".join(words[self.below(10)] for _ in range(2 + self.below(6)))
        return "  " * self.below(5) + f"{text} {self.below(10**6)};\n"

    def lines(self, n):
        return [self.line() for _ in range(n)]


def many_commits(n):
    """Each commit edits two of up to 400 files in a few places, and now and then adds one."""
    dice = Dice(n)
    files = {f"src/m{k % 20}/file{k}.rs": dice.lines(40 + dice.below(500)) for k in range(min(400, 20 + n // 4))}
    yield dict(files)
    for _ in range(n):
        changed = {}
        for path in {sorted(files)[dice.below(len(files))] for _ in range(2)}:
            text = list(files[path])
            for _ in range(1 + dice.below(4)):
                at = dice.below(len(text) + 1)
                text[at : at + dice.below(6)] = dice.lines(dice.below(8))
            files[path] = changed[path] = text
        if dice.below(20) == 0:
            path = f"src/new/file{len(files)}.rs"
            files[path] = changed[path] = dice.lines(120)
        yield changed


def wide(_):
    """Every file loses and gets fifty lines, in five places."""
    dice = Dice(7)
    files = {f"d{k % 50}/f{k}.c": dice.lines(200) for k in range(3000)}
    yield files
    yield {
        path: [line for n, old in enumerate(text) for line in ([old] if n % 40 >= 10 else dice.lines(1))]
        for path, text in files.items()
    }


def hot(n):
    """One long file, changed in a few places by each commit."""
    dice = Dice(9)
    text = dice.lines(20_000)
    yield {"hot.rs": text}
    for _ in range(n):
        text = list(text)
        for _ in range(1 + dice.below(6)):
            at = dice.below(len(text) - 10)
            text[at : at + dice.below(6)] = dice.lines(dice.below(7))
        yield {"hot.rs": text}


SYNTHETIC = {
    "c20": (many_commits, 20),
    "c200": (many_commits, 200),
    "c2000": (many_commits, 2000),
    "c10000": (many_commits, 10_000),
    "wide": (wide, 1),
    "hot": (hot, 1000),
}


def make(name):
    folder = MADE / name
    if (folder / "range.json").exists():
        return folder
    print(f"making {name}", file=sys.stderr)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    repo = folder / "repo.git"
    subprocess.run(["git", "init", "-q", "--bare", str(repo)], check=True, env=clean_env())
    importer = subprocess.Popen(
        ["git", "-C", str(repo), "fast-import", "--quiet", "--date-format=raw"],
        stdin=subprocess.PIPE,
        env=clean_env(),
    )
    steps, n = SYNTHETIC[name]
    for mark, files in enumerate(steps(n), 1):
        who = f"committer B <b@example.invalid> {1_700_000_000 + mark} +0000"
        head = f"commit refs/heads/head\nmark :{mark}\n{who}\ndata 2\nx\n"
        importer.stdin.write((head + (f"from :{mark - 1}\n" if mark > 1 else "")).encode())
        for path, text in files.items():
            blob = "".join(text).encode()
            importer.stdin.write(f"M 100644 inline {path}\ndata {len(blob)}\n".encode() + blob + b"\n")
        importer.stdin.write(b"\n")
    importer.stdin.close()
    assert importer.wait() == 0
    git(repo, "repack", "-q", "-a", "-d", "-f", "--depth=50", "--window=10")
    commits = git(repo, "rev-list", "--reverse", "head").split()
    ledger = {
        commit: {"item": f"P{n // 3 % N_ITEMS + 1}", "origin": "runner"}
        for n, commit in enumerate(commits[1:])
        if n % 20 != 13
    }
    paths = sorted(git(repo, "ls-tree", "-r", "--name-only", "head").split())[: 40 * N_ITEMS]
    items = [
        {
            "id": f"P{n + 1}",
            "title": "An item",
            "intent": "To be measured.",
            "files": [
                {"path": path, "kind": "edit", "renamed_from": None, "change": "Some lines."}
                for path in paths[n::N_ITEMS][:40] or paths[:1]
            ],
            "acceptance": [{"type": "check", "text": "It is fast."}],
            "depends_on": [],
        }
        for n in range(N_ITEMS)
    ]
    plan = {"schema_version": 1, "issue": 1, "revision": 1, "summary": "A plan.", "items": items, "questions": []}
    write = lambda file, value: (folder / file).write_text(json.dumps(value))
    write("range.ledger.json", {"schema_version": 1, "commits": ledger})
    write("range.plan.json", plan)
    write("range.json", {"base": commits[0], "head": commits[-1]})
    return folder


# Ranges.


class Range:
    def __init__(self, name, folder, repo, size):
        self.name, self.repo, self.folder = name, repo, folder
        ends = json.loads((folder / f"{size}.json").read_text())
        self.base, self.head = ends["base"], ends["head"]
        self.plan, self.ledger = folder / f"{size}.plan.json", folder / f"{size}.ledger.json"

    def link(self, program, head=None, repo=None):
        files = ["--plan", str(self.plan), "--ledger", str(self.ledger)]
        ends = ["--base", self.base, "--head", head or self.head]
        return [program, "link", "--repo", str(repo or self.repo), *ends, *files, "-o", self.output]

    def log(self):
        return ["git", "-C", str(self.repo), "log", "-p", "--reverse", "-M", f"{self.base}..{self.head}"]

    def facts(self):
        commits = int(git(self.repo, "rev-list", "--count", f"{self.base}..{self.head}"))
        final = git(self.repo, "diff", "--numstat", "-M", "--histogram", self.base, self.head).splitlines()
        lines = sum(int(n) for row in final for n in row.split("\t")[:2] if n != "-")
        raw = git(self.repo, "log", "--format=", "--raw", "--no-abbrev", "-M", f"{self.base}..{self.head}")
        blobs = {
            oid
            for row in raw.splitlines()
            if row.startswith(":")
            for mode, oid in zip(row[1:].split()[:2], row.split()[2:4])
            if mode != "160000" and oid.strip("0")
        }
        sizes = git(self.repo, "cat-file", "--batch-check=%(objectsize)", data="\n".join(blobs).encode())
        return commits, len(final), lines, sum(map(int, sizes.split()))

    def changed(self):
        names = git(self.repo, "diff", "--name-only", "-z", "--no-renames", "--diff-filter=AM", self.base, self.head)
        return [name for name in names.split("\0") if name]


def corpora(folder, scratch):
    for corpus in sorted(path for path in folder.iterdir() if (path / "repo.bundle").exists()):
        repo = scratch / corpus.name
        subprocess.run(["git", "clone", "-q", "--bare", str(corpus / "repo.bundle"), str(repo)], check=True, env=clean_env())
        sizes = [path.name[:-5] for path in corpus.glob("*.json") if path.name.count(".") == 1]
        for size in sorted(sizes, key=lambda size: ["S", "M", "L", "W", "H"].index(size) if size in "SMLWH" else 9):
            yield Range(f"{corpus.name} {size}", corpus, repo, size)


# Measuring.


def once(command, env=None):
    """CPU seconds, wall seconds and peak megabytes of the largest process."""
    begun = time.monotonic()
    pid = os.fork()
    if pid == 0:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.execvpe(command[0], command, {**clean_env(), **(env or {})})
    _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"failed: {' '.join(command)}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begun, used.ru_maxrss / 1024


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--program", help="a release build [default: builds one]")
    words.add_argument("--corpora", default=os.environ.get("CODEBOOST_CORPORA"))
    words.add_argument("--only", default="", help="only ranges whose name has this word")
    words.add_argument("--rounds", type=int, default=5)
    words.add_argument("--blame", action="store_true")
    args = words.parse_args()
    program = args.program
    if not program:
        subprocess.run(["cargo", "build", "--release", "-q", "-p", "codeboost"], cwd=ROOT, check=True)
        program = ROOT / "target/release/codeboost"
    program = str(pathlib.Path(program).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        ranges = []
        if args.corpora:
            ranges += corpora(pathlib.Path(args.corpora), scratch)
        else:
            print("no corpora: name their folder with --corpora or $CODEBOOST_CORPORA", file=sys.stderr)
        ranges = [one for one in ranges if args.only in one.name]
        for name in SYNTHETIC:
            if args.only in name:
                folder = make(name)
                ranges.append(Range(name, folder, folder / "repo.git", "range"))
        print("range       commits  files    lines  blob MB   link s    log s  ratio  link MB  log MB  blame s")
        fit = []
        for one in ranges:
            one.output = str(scratch / "link.json")
            commits, files, lines, n_bytes = one.facts()
            rounds = []
            for _ in range(args.rounds + 1):
                rounds.append((once(one.link(program)), once(one.log())))
            rounds = rounds[1:]
            median = lambda pick: statistics.median(pick(link, log) for link, log in rounds)
            cpu, ratio = median(lambda link, log: link[0]), median(lambda link, log: link[0] / log[0])
            blame = ""
            if args.blame:
                paths = one.changed()
                command = ["git", "-C", str(one.repo), "blame", "-p", f"{one.base}..{one.head}", "--"]
                blame = f"{sum(once([*command, path])[0] for path in paths):8.2f}"
            print(
                f"{one.name:11} {commits:7} {files:6} {lines:8} {n_bytes / 1e6:8.1f} {cpu:8.3f} "
                f"{median(lambda link, log: log[0]):8.3f}  {ratio:5.2f} {max(l[2] for l, _ in rounds):8.0f} "
                f"{max(g[2] for _, g in rounds):7.0f} {blame}",
                flush=True,
            )
            fit.append((n_bytes, cpu))
            one.cpu = cpu
        report_fit(fit)
        longest = max(ranges, key=lambda one: one.cpu)
        report_threads(longest, program, args.rounds)
        for one in ranges:
            report_incremental(one, program, scratch, args.rounds)


def report_fit(points):
    points = [(math.log(n_bytes), math.log(cpu)) for n_bytes, cpu in points if n_bytes and cpu > 0]
    if len({x for x, _ in points}) < 2:
        return
    x_mean, y_mean = (statistics.mean(axis) for axis in zip(*points))
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / sum((x - x_mean) ** 2 for x, _ in points)
    print(f"exponent of CPU against blob bytes: {slope:.2f}")


def report_threads(one, program, rounds):
    ratios = []
    for _ in range(rounds):
        walls = [once(one.link(program), {"RAYON_NUM_THREADS": n})[1] for n in ("1", "2")]
        ratios.append(walls[1] / walls[0])
    print(f"wall with two threads over one, {one.name}: {statistics.median(ratios):.2f}")


def report_incremental(one, program, scratch, rounds):
    commits = git(one.repo, "rev-list", "--first-parent", "-n", "21", f"{one.base}..{one.head}").split()
    if len(commits) < 21:
        return
    ratios = []
    for n in range(rounds):
        repo = scratch / f"again-{n}"
        subprocess.run(["git", "clone", "-q", "--bare", str(one.repo), str(repo)], check=True, env=clean_env())
        git(repo, "update-ref", "refs/heads/measured", one.head)
        subprocess.run([program, "init"], cwd=repo, check=True, env=clean_env(), stdout=subprocess.DEVNULL)
        once(one.link(program, head=commits[20], repo=repo))
        more = once(one.link(program, repo=repo))[0]
        whole = once(one.link(program))[0]
        ratios.append(more / whole)
        shutil.rmtree(repo)
    print(f"20 commits more over a whole link, {one.name}: {statistics.median(ratios):.2f}")


main()
