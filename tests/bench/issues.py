#!/usr/bin/env python3
"""Measures how long ranking takes: a thousand open issues with comments, read once, ranked many times.

  tests/bench/issues.py [--program FILE] [--issues N] [--rounds N]

Starts the GitHub of the tests, reads its issues with the real gh, then measures the CPU (user and
system) of `codeboost issues --offline`, which ranks what was read and asks nobody, and of
`codeboost --version`, which is what starting the program costs. Fails when the order of two rounds
differs, or when the median without the start is over 50 ms.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_MS = 50


def cpu(command, folder, env):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent * 1000, done.stdout


def issues(n):
    labels = [[], ["bug"], ["P1"], ["P0", "security"], ["docs"], ["P3", "bug"]]
    return [
        {
            "number": k,
            "title": f"Issue {k}",
            "user": "boss" if k % 3 else "stranger",
            "labels": labels[k % len(labels)],
            "reactions": {"+1": k * 7 % 31, "heart": k % 3},
            "comments": [{"id": k * 100 + c, "user": "boss", "body": "words"} for c in range(k % 12)],
            "created_at": f"202{k % 6}-0{k % 9 + 1}-1{k % 10}T00:00:00Z",
        }
        for k in range(1, n + 1)
    ]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--program", default=str(ROOT / "target/release/codeboost"))
    ap.add_argument("--issues", type=int, default=1000)
    ap.add_argument("--rounds", type=int, default=9)
    args = ap.parse_args()
    program = str(pathlib.Path(args.program).resolve())
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "GH_"))}
        env.update(HOME=str(work), GH_CONFIG_DIR=str(work / "gh"), GH_TOKEN="dummy", GIT_CONFIG_NOSYSTEM="1")
        (work / "gh").mkdir()
        (work / "gh/config.yml").write_text(f"version: 1\nhttp_unix_socket: {work}/hub.sock\n")
        state = {"collaborators": {"bot": "write", "boss": "admin"}, "issues": issues(args.issues)}
        (work / "hub.json").write_text(json.dumps(state))
        run = lambda *words, cwd=work: subprocess.run(words, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL)
        run("git", "init", "-q", "--bare", "hub.git")
        run("git", "init", "-q", "repo")
        repo = work / "repo"
        run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a", cwd=repo)
        run("git", "remote", "add", "origin", "https://github.com/acme/widget.git", cwd=repo)
        run(program, "init", "-q", cwd=repo)
        (repo / ".git/codeboost/config.yaml").write_text("forge: github\n")
        server = subprocess.Popen(
            [sys.executable, "-B", ROOT / "tests/fakes/github/server.py", "--socket", "hub.sock",
             "--repo", "hub.git", "--state", "hub.json", "--ready", "ready"],
            cwd=work,
        )
        try:
            while not (work / "ready").exists():
                time.sleep(0.05)
            run(program, "issues", "-q", cwd=repo)
        finally:
            server.terminate()
            server.wait()
        ranking = [program, "issues", "--offline", "--format", "json"]
        rounds = [cpu(ranking, repo, env) for _ in range(args.rounds)]
        starts = [cpu([program, "--version"], repo, env)[0] for _ in range(args.rounds)]
        if len({out for _, out in rounds}) != 1:
            sys.exit("the order of two rounds differs")
        listed = len(json.loads(rounds[0][1])["issues"])
        whole = statistics.median(ms for ms, _ in rounds)
        start = statistics.median(starts)
        print(f"{listed} issues: {whole:.1f} ms CPU with the start, {whole - start:.1f} ms without")
        if listed != args.issues or whole - start > LIMIT_MS:
            sys.exit(f"over {LIMIT_MS} ms, or issues are missing")


if __name__ == "__main__":
    main()
