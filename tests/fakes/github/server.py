#!/usr/bin/env python3
"""GitHub as far as codeboost asks it, for tests that run the real `gh`: a whole program beside a real
bare repository. Needs Python's standard library and git.

    python3 server.py --socket PATH --repo BARE.git --state STATE.json [--log LOG.jsonl] [--ready FILE]

Speaks plain HTTP over a unix socket, as `gh` does for every request once `http_unix_socket` is set in
its configuration. README.md tells the state, the controls and the faults.
"""
import argparse, http.server, json, os, re, signal, socket, socketserver, subprocess, sys, threading, time, urllib.parse
from gql import Conn, Engine, GqlError, show

HERE = os.path.dirname(os.path.abspath(__file__))
PERM = ["none", "read", "triage", "write", "maintain", "admin"]
DOC = "https://docs.github.com/rest"


class Refuse(Exception):
    """An error answer: HTTP status for REST, error type for GraphQL."""

    def __init__(self, status, message, type=None, errors=None, headers=None):
        super().__init__(message)
        self.status, self.message, self.errors, self.headers = (
            status,
            message,
            errors,
            headers or {},
        )
        self.type = type or {404: "NOT_FOUND", 403: "FORBIDDEN"}.get(status, "UNPROCESSABLE")


class Git:
    def __init__(self, d):
        self.dir = os.path.abspath(d)
        self.heads = None  # branch -> sha as of the current request
        self.env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("GIT_")},
            "GIT_AUTHOR_NAME": "GitHub",
            "GIT_AUTHOR_EMAIL": "noreply@github.com",
            "GIT_COMMITTER_NAME": "GitHub",
            "GIT_COMMITTER_EMAIL": "noreply@github.com",
        }

    def run(self, *a, check=True, input=None, env=None):
        if a[0] == "update-ref":
            self.heads = None
        p = subprocess.run(
            ["git", "-C", self.dir, *a],
            capture_output=True,
            input=input,
            env={**self.env, **(env or {})},
        )
        if check and p.returncode:
            raise RuntimeError(f"git {a}: {p.stderr.decode(errors='replace')}")
        return p.returncode, p.stdout.decode("utf-8", "replace")

    def rev(self, ref):
        rc, o = self.run("rev-parse", "--verify", "--quiet", ref + "^{commit}", check=False)
        return o.strip() if rc == 0 else None

    def branch(self, b):
        if self.heads is None:
            _, o = self.run("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
            self.heads = dict(l.split(" ") for l in o.splitlines())
        return self.heads.get("refs/heads/" + b)

    def ancestor(self, a, b):
        return self.run("merge-base", "--is-ancestor", a, b, check=False)[0] == 0

    def base(self, a, b):
        rc, o = self.run("merge-base", a, b, check=False)
        return o.strip() if rc == 0 else None

    def commits(self, frm, to):
        _, o = self.run(
            "log",
            "--reverse",
            "--topo-order",
            "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x1e",
            f"{frm}..{to}" if frm else to,
        )
        return [self._c(r) for r in o.split("\x1e") if r.strip()]

    def commit(self, sha):
        _, o = self.run(
            "show",
            "-s",
            "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cn%x00%ce%x00%cI%x00%B%x1e",
            sha,
        )
        return self._c(o.split("\x1e")[0])

    @staticmethod
    def _c(r):
        h, t, p, an, ae, ad, cn, ce, cd, body = r.strip("\n").split("\x00")
        z = lambda d: time.strftime(
            "%Y-%m-%dT%H:%M:%SZ",
            time.gmtime(int(__import__("datetime").datetime.fromisoformat(d).timestamp())),
        )
        return {
            "sha": h,
            "tree": t,
            "parents": p.split(),
            "an": an,
            "ae": ae,
            "ad": z(ad),
            "cn": cn,
            "ce": ce,
            "cd": z(cd),
            "message": body.rstrip("\n"),
        }

    def merge_tree(self, base, head, mb=None):
        a = ["merge-tree", "--write-tree"] + ([f"--merge-base={mb}"] if mb else []) + [base, head]
        rc, o = self.run(*a, check=False)
        return (rc == 0, o.split("\n")[0].strip())

    def commit_tree(self, tree, parents, msg, date=None):
        return self.run(
            "commit-tree",
            tree,
            *[x for p in parents for x in ("-p", p)],
            "-F",
            "-",
            input=msg.encode(),
        )[1].strip()

    def update(self, ref, new, old=None):
        self.run("update-ref", ref, new, *([old] if old else []))

    def files(self, a, b):
        _, o = self.run("diff", "--numstat", "-z", "--no-renames", a, b)
        out = []
        for l in o.split("\0"):
            if l:
                x, y, n = l.split("\t", 2)
                out.append(
                    {
                        "filename": n,
                        "additions": 0 if x == "-" else int(x),
                        "deletions": 0 if y == "-" else int(y),
                    }
                )
        return out


def low(s):
    return (s or "").lower()


class World:
    def __init__(self, repo, state_path, save=True):
        self.git, self.path, self.save_on = Git(repo), state_path, save
        self.s = json.load(open(state_path)) if state_path and os.path.exists(state_path) else {}
        self.lock = threading.RLock()
        self.mergeable_reads = {}
        s = self.s
        r = s.setdefault("repository", {})
        for k, v in {
            "owner": "acme",
            "name": "widget",
            "id": 1001,
            "private": False,
            "default_branch": "main",
            "owner_type": "Organization",
            "allow_merge_commit": True,
            "allow_squash_merge": True,
            "allow_rebase_merge": True,
            "allow_auto_merge": False,
            "drafts_supported": True,
            "delete_branch_on_merge": False,
        }.items():
            r.setdefault(k, v)
        s.setdefault("viewer", "bot")
        s.setdefault("tokens", {})
        s.setdefault("users", {})
        s.setdefault("collaborators", {s["viewer"]: "write"})
        for k in ("issues", "pulls", "check_runs", "statuses", "faults", "members"):
            s.setdefault(k, [])
        for k in ("rules", "protection", "queue", "labels"):
            s.setdefault(k, {})
        s.setdefault("next_id", 500000)
        for i in s["issues"] + s["pulls"]:
            i.setdefault("title", f"Item {i['number']}")
            i.setdefault("body", None)
            i.setdefault("state", "open")
            i.setdefault("user", s["viewer"])
            i.setdefault("comments", [])
            i.setdefault("timeline", [])
            i.setdefault("labels", [])
            i.setdefault("created_at", "2026-01-01T00:00:00Z")
            i.setdefault("updated_at", i["created_at"])
        for p in s["pulls"]:
            p.setdefault("draft", False)
            p.setdefault("base", r["default_branch"])

    # -- basics
    @property
    def full(self):
        return f'{self.s["repository"]["owner"]}/{self.s["repository"]["name"]}'

    def now(self):
        return self.s.get("now") or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    def new_id(self):
        self.s["next_id"] += 1
        return self.s["next_id"]

    def save(self):
        if self.path and self.save_on:
            tmp = self.path + ".tmp"
            json.dump(self.s, open(tmp, "w"), indent=1, ensure_ascii=False)
            os.replace(tmp, self.path)

    def perm(self, login):
        return {low(k): v for k, v in self.s["collaborators"].items()}.get(
            low(login), "none" if self.s["repository"]["private"] else "read"
        )

    def can(self, login, level):
        return PERM.index(self.perm(login)) >= PERM.index(level)

    def association(self, item, key="user"):
        if item.get("author_association"):
            return item["author_association"]
        u = low(item.get(key))
        if u == low(self.s["repository"]["owner"]):
            return "OWNER"
        if u in map(low, self.s["members"]):
            return "MEMBER"
        if u in map(low, self.s["collaborators"]):
            return "COLLABORATOR"
        return "CONTRIBUTOR" if u in map(low, self.s.get("contributors", [])) else "NONE"

    def issue(self, n):
        return next((i for i in self.s["issues"] if i["number"] == n), None)

    def pull(self, n):
        return next((p for p in self.s["pulls"] if p["number"] == n), None)

    def next_number(self):
        return max([0] + [i["number"] for i in self.s["issues"] + self.s["pulls"]]) + 1

    def sync(self):
        """What GitHub does by itself after a push: PR heads move, a PR whose head reached the base becomes merged."""
        self.git.heads = None
        for p in self.s["pulls"]:
            if p["state"] != "open":
                continue
            h = self.git.branch(p["head"]) if not p.get("head_repo") else None
            moved = h and h != p.get("head_sha")
            if h and h != p.get("head_sha"):
                if p.get("head_sha"):
                    p["timeline"].append(
                        {
                            "event": (
                                "head_ref_force_pushed"
                                if not self.git.ancestor(p["head_sha"], h)
                                else "committed"
                            ),
                            "at": self.now(),
                        }
                    )
                p["head_sha"] = h
                p["updated_at"] = self.now()
                q = self.entry(p)
                if q:
                    self.dequeue(p, self.s.get("queue_push_reason", "manual"), self.s["viewer"])
            b = self.git.branch(p["base"])
            if (
                moved or not p.get("base_sha") or p.get("live_base")
            ):  # as GitHub: base.sha is the base tip at the last head push
                p["base_sha"] = b
            if p.get("head_sha") and b and (p.get("seen_base") != b):
                p["seen_base"] = b
                if (
                    not p.get("empty_at_open")
                    and p["head_sha"] != b
                    and self.git.ancestor(p["head_sha"], b)
                    and self.git.commits(p.get("open_base") or p["head_sha"], p["head_sha"])
                ):
                    self._merged(p, b, self.s["viewer"])
            p.setdefault("open_base", b)
            if p.get("head_sha") and p.get("pull_ref") != p["head_sha"]:
                self.git.update(f"refs/pull/{p['number']}/head", p["head_sha"])
                p["pull_ref"] = p["head_sha"]

    def head(self, p):
        """The head GitHub reports; head_lag = N reads still answer head_lag_sha."""
        if p.get("head_lag", 0) > 0 and p.get("head_lag_sha"):
            p["head_lag"] -= 1
            return p["head_lag_sha"]
        return p.get("head_sha")

    # -- checks and mergeability
    def rules(self, b):
        return self.s["rules"].get(b, [])

    def prot(self, b):
        return self.s["protection"].get(b)

    def required(self, b):
        out = []
        for r in self.rules(b):
            if r.get("type") == "required_status_checks":
                out += [
                    (c["context"], c.get("integration_id"))
                    for c in r["parameters"]["required_status_checks"]
                ]
        rc = (self.prot(b) or {}).get("required_status_checks") or {}
        out += [
            (c["context"], c.get("app_id") if (c.get("app_id") or -1) > 0 else None)
            for c in rc.get("checks", [])
        ]
        return list(dict.fromkeys(out))

    def strict(self, b):
        return any(
            r.get("type") == "required_status_checks"
            and r["parameters"].get("strict_required_status_checks_policy")
            and r["parameters"]["required_status_checks"]
            for r in self.rules(b)
        ) or bool(((self.prot(b) or {}).get("required_status_checks") or {}).get("strict"))

    def sha_of(self, x):
        return self.git.branch(x[1:]) if x.startswith("@") else x

    def runs(self, sha, latest=True):
        rs = [r for r in self.s["check_runs"] if self.sha_of(r["head_sha"]) == sha]
        for r in rs:
            r.setdefault("id", self.new_id())
            r.setdefault("status", "completed")
            r.setdefault("conclusion", "success" if r["status"] == "completed" else None)
            r.setdefault("app", {"id": 15368, "slug": "github-actions", "name": "GitHub Actions"})
            r.setdefault("started_at", "2026-01-01T00:00:00Z")
            r.setdefault(
                "completed_at", "2026-01-01T00:01:00Z" if r["status"] == "completed" else None
            )
        if latest:
            d = {}
            for r in sorted(rs, key=lambda r: r["id"]):
                d[(r["name"], r["app"]["id"])] = r
            rs = list(d.values())
        return rs

    def stats(self, sha, latest=True):
        ss = [x for x in self.s["statuses"] if self.sha_of(x["sha"]) == sha]
        for x in ss:
            x.setdefault("id", self.new_id())
            x.setdefault("created_at", "2026-01-01T00:00:00Z")
        if latest:
            ss = list({x["context"]: x for x in sorted(ss, key=lambda x: x["id"])}.values())
        return ss

    def check_state(self, sha, ctx, app):
        got = []
        for r in self.runs(sha):
            if r["name"] == ctx and (app is None or r["app"]["id"] == app):
                got.append(
                    "pending"
                    if r["status"] != "completed"
                    else (
                        "success"
                        if r["conclusion"] in ("success", "neutral", "skipped")
                        else "failure"
                    )
                )
        for x in self.stats(sha):
            if x["context"] == ctx and (app is None or x.get("app_id") == app):
                got.append({"success": "success", "pending": "pending"}.get(x["state"], "failure"))
        return (
            "missing" if not got else next(s for s in ("failure", "pending", "success") if s in got)
        )

    def mergeable(self, p):
        """MERGEABLE / CONFLICTING / UNKNOWN. mergeable_unknown_reads = N first reads answer UNKNOWN."""
        if p.get("mergeable_override"):
            return p["mergeable_override"]
        if p["state"] != "open":
            return "UNKNOWN"
        if p.get("mergeable_unknown_reads", 0) > 0:
            p["mergeable_unknown_reads"] -= 1
            return "UNKNOWN"
        b, h = self.git.branch(p["base"]), p.get("head_sha")
        if not b or not h:
            return "UNKNOWN"
        k = (b, h)
        if k not in self.mergeable_reads:
            self.mergeable_reads[k] = self.git.merge_tree(b, h)[0]
        return "MERGEABLE" if self.mergeable_reads[k] else "CONFLICTING"

    def queue_on(self, b):
        return any(r.get("type") == "merge_queue" for r in self.rules(b))

    def blockers(self, p):
        """[(source, text)] why GitHub refuses a direct merge."""
        b, out = p["base"], []
        rule = {
            c
            for r in self.rules(b)
            if r.get("type") == "required_status_checks"
            for c in [
                (x["context"], x.get("integration_id"))
                for x in r["parameters"]["required_status_checks"]
            ]
        }
        for c in self.required(b):
            st = self.check_state(p["head_sha"], *c)
            if st != "success":
                out.append(
                    (
                        "rule" if c in rule else "classic",
                        f'Required status check "{c[0]}" is {({"missing": "expected", "pending": "in progress", "failure": "failing"})[st]}.',
                    )
                )
        need = max(
            [
                r["parameters"].get("required_approving_review_count", 0)
                for r in self.rules(b)
                if r.get("type") == "pull_request"
            ]
            + [
                ((self.prot(b) or {}).get("required_pull_request_reviews") or {}).get(
                    "required_approving_review_count", 0
                )
            ]
        )
        have = len({r["user"] for r in p.get("reviews", []) if r["state"] == "APPROVED"})
        if have < need:
            out.append(
                (
                    "rule",
                    f"At least {need} approving review{'s are' if need > 1 else ' is'} required by reviewers with write access.",
                )
            )
        if self.strict(b) and not self.git.ancestor(self.git.branch(b), p["head_sha"]):
            out.append(("classic", "Head branch is out of date with the base branch."))
        return out

    def merge_state(self, p):
        if p.get("merge_state_override"):
            return p["merge_state_override"]
        m = (
            "UNKNOWN"
            if p["state"] != "open"
            else self.mergeable({**p, "mergeable_unknown_reads": 0})
        )
        if m == "UNKNOWN":
            return "UNKNOWN"
        if m == "CONFLICTING":
            return "DIRTY"
        if p["draft"]:
            return "DRAFT"
        bl = self.blockers(p)
        if bl and all("out of date" in t for _, t in bl):
            return "BEHIND"
        if bl:
            return "BLOCKED"
        h = p["head_sha"]
        bad = [
            r
            for r in self.runs(h)
            if r["status"] != "completed"
            or r["conclusion"] not in ("success", "neutral", "skipped")
        ] + [x for x in self.stats(h) if x["state"] != "success"]
        return "UNSTABLE" if bad else "CLEAN"

    def _merged(self, p, sha, by):
        p.update(
            state="closed",
            merged=True,
            merged_at=self.now(),
            closed_at=self.now(),
            merged_by=by,
            merge_commit_sha=sha,
            updated_at=self.now(),
            auto_merge=None,
        )
        p["timeline"].append({"event": "merged", "at": self.now(), "actor": by, "commit_id": sha})
        for n in self.closing(p):
            i = self.issue(n)
            if i and i["state"] == "open" and p["base"] == self.s["repository"]["default_branch"]:
                i.update(
                    state="closed",
                    state_reason="completed",
                    closed_at=self.now(),
                    updated_at=self.now(),
                )
                i["timeline"].append(
                    {
                        "event": "closed",
                        "at": self.now(),
                        "actor": by,
                        "closer": {"pull": p["number"]},
                    }
                )

    def closing(self, p):
        if "closes" in p:
            return p["closes"]
        t = re.sub(r"```.*?```|`[^`]*`", "", p.get("body") or "", flags=re.S)
        return [
            int(n)
            for n in dict.fromkeys(
                re.findall(
                    r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:"
                    + re.escape(self.full)
                    + r")?#(\d+)\b",
                    t,
                )
            )
            if self.issue(int(n))
        ]

    def cross_refs(self, p):
        """A PR body that names an issue leaves a cross-referenced event on it (once)."""
        for n in {
            int(x)
            for x in re.findall(
                r"(?<![\w/])#(\d+)\b", re.sub(r"```.*?```", "", p.get("body") or "", flags=re.S)
            )
        }:
            i = self.issue(n)
            if i and not any(
                e["event"] == "cross-referenced" and e.get("pull") == p["number"]
                for e in i["timeline"]
            ):
                i["timeline"].append(
                    {
                        "event": "cross-referenced",
                        "at": self.now(),
                        "actor": p["user"],
                        "pull": p["number"],
                    }
                )

    def merge(self, p, method, expected, actor, title=None, body=None, queue=False):
        r = self.s["repository"]
        if not self.can(actor, "write"):
            raise Refuse(403, "Resource not accessible by personal access token")
        if p["state"] != "open":
            raise Refuse(405, "Pull Request is not mergeable")
        if p["draft"]:
            raise Refuse(405, "Pull Request is still a draft")
        if expected and expected != p["head_sha"]:
            raise Refuse(409, "Head branch was modified. Review and try the merge again.")
        if (
            not r[
                {
                    "merge": "allow_merge_commit",
                    "squash": "allow_squash_merge",
                    "rebase": "allow_rebase_merge",
                }[method]
            ]
            and not queue
        ):
            raise Refuse(
                405,
                {
                    "merge": "Merge commits are not allowed on this repository.",
                    "squash": "Squash merges are not allowed on this repository.",
                    "rebase": "Rebase merges are not allowed on this repository.",
                }[method],
            )
        if not queue:
            if self.queue_on(p["base"]):
                raise Refuse(
                    405,
                    "Repository rule violations found\n\nChanges must be made through the merge queue\n\n",
                )
            bl = self.blockers(p)
            if bl:
                raise Refuse(
                    405,
                    (
                        "Repository rule violations found\n\n"
                        + "\n".join(t for _, t in bl)
                        + "\n\n"
                        if bl[0][0] == "rule"
                        else bl[0][1]
                    ),
                )
        b, h = self.git.branch(p["base"]), p["head_sha"]
        ok, tree = self.git.merge_tree(b, h)
        if not ok or p.get("mergeable_override") == "CONFLICTING":
            raise Refuse(405, "Pull Request is not mergeable")
        if method == "merge":
            new = self.git.commit_tree(
                tree,
                [b, h],
                title
                or f"Merge pull request #{p['number']} from {r['owner']}/{p['head']}\n\n{body or p['title']}",
            )
        elif method == "squash":
            new = self.git.commit_tree(
                tree,
                [b],
                (title or f"{p['title']} (#{p['number']})") + (f"\n\n{body}" if body else ""),
            )
        else:
            new = b
            for c in self.git.commits(self.git.base(b, h), h):
                ok, tree = self.git.merge_tree(new, c["sha"], c["parents"][0])
                if not ok:
                    raise Refuse(405, "This branch can't be rebased")
                new = self.git.commit_tree(tree, [new], c["message"])
        self.git.update("refs/heads/" + p["base"], new, b)
        p["merged_base"] = b
        p["base_sha"] = b
        self._merged(p, new, actor)
        if r["delete_branch_on_merge"]:
            self.git.run("update-ref", "-d", "refs/heads/" + p["head"])
        return new

    # -- merge queue
    def entries(self, b):
        return self.s["queue"].setdefault(b, [])

    def entry(self, p):
        return next((e for e in self.entries(p["base"]) if e["number"] == p["number"]), None)

    def enqueue(self, p, expected, actor, jump=False):
        if not self.can(actor, "write"):
            raise Refuse(
                403,
                f"{actor} does not have the correct permissions to execute `EnqueuePullRequest`",
            )
        if not self.queue_on(p["base"]):
            raise Refuse(
                422,
                (
                    "Merge queue is not enabled for this branch"
                    if p["state"] == "open"
                    else "Pull request is closed"
                ),
            )
        if p["state"] != "open" or p["draft"]:
            raise Refuse(
                422,
                (
                    "Pull request is in an unmergeable state"
                    if p["draft"]
                    else "Pull request is closed"
                ),
            )
        if expected and expected != p["head_sha"]:
            raise Refuse(422, "Head branch was modified. Review and try the merge again.")
        if self.entry(p):
            raise Refuse(422, "Pull request is already in the queue")
        e = {
            "id": f"MQE_kw{self.new_id()}",
            "number": p["number"],
            "state": "QUEUED",
            "enqueued_at": self.now(),
            "enqueuer": actor,
            "jump": jump,
            "head_commit": None,
            "base_commit": None,
        }
        es = self.entries(p["base"])
        es.insert(0, e) if jump else es.append(e)
        p["timeline"].append(
            {
                "event": "added_to_merge_queue",
                "id": f"AMQE_{self.new_id()}",
                "at": self.now(),
                "actor": actor,
            }
        )
        return e

    def dequeue(self, p, reason, actor):
        e = self.entry(p)
        if not e:
            raise Refuse(422, "Pull request is not in the merge queue")
        self.entries(p["base"]).remove(e)
        p["timeline"].append(
            {
                "event": "removed_from_merge_queue",
                "id": f"RMQE_{self.new_id()}",
                "at": self.now(),
                "actor": actor,
                "reason": reason,
                "before": e["head_commit"] or p["head_sha"],
            }
        )
        return e

    def queue_step(self, n, action, **k):
        """Test control: build | mergeable | unmergeable | lock | merge | remove.

        As on GitHub: an entry's headCommit is the merge-group commit (not the PR head), null until built; a removal's
        beforeCommit is that commit too; a removal event is also written when the queue merges the PR (reason "merge").
        """
        p = self.pull(n)
        e = self.entry(p)
        if action == "remove":
            return self.dequeue(
                p, k.get("reason", "manual"), k.get("actor", "github-merge-queue[bot]")
            )
        if not e:
            raise Refuse(422, "not queued")
        if action in ("build", "mergeable", "merge", "lock") and not e["head_commit"]:
            b = self.git.branch(p["base"])
            ok, tree = self.git.merge_tree(b, p["head_sha"])
            if not ok:
                return self.dequeue(p, "merge_conflict", "github-merge-queue[bot]")
            e["base_commit"] = b
            e["head_commit"] = self.git.commit_tree(
                tree,
                [b, p["head_sha"]],
                f"Merge pull request #{n} from {self.s['repository']['owner']}/{p['head']}\n\n{p['title']}",
            )
            self.git.update(
                f"refs/heads/gh-readonly-queue/{p['base']}/pr-{n}-{b}", e["head_commit"]
            )
        e["state"] = {
            "build": "AWAITING_CHECKS",
            "mergeable": "MERGEABLE",
            "unmergeable": "UNMERGEABLE",
            "lock": "LOCKED",
        }.get(action, e["state"])
        if action == "merge":
            self.git.update("refs/heads/" + p["base"], e["head_commit"], e["base_commit"])
            self.git.run(
                "update-ref",
                "-d",
                f"refs/heads/gh-readonly-queue/{p['base']}/pr-{n}-{e['base_commit']}",
            )
            self.dequeue(p, "merge", "github-merge-queue[bot]")
            p["base_sha"] = e["base_commit"]
            self._merged(p, e["head_commit"], e["enqueuer"])
        return e

    # -- mutations shared by REST and GraphQL
    def create_pull(self, actor, head, base, title, body, draft, issue=None):
        owner, _, branch = head.rpartition(":")
        bad = lambda **e: Refuse(
            422, "Validation Failed", errors=[{"resource": "PullRequest", **e}]
        )
        if not title and not issue:
            raise bad(code="missing_field", field="title")
        if owner and low(owner) != low(self.s["repository"]["owner"]):
            raise bad(field="head", code="invalid")
        h, b = self.git.branch(branch), self.git.branch(base)
        if not b:
            raise bad(field="base", code="invalid")
        if not h:
            raise bad(field="head", code="invalid")
        if any(
            p["state"] == "open" and p["head"] == branch and p["base"] == base
            for p in self.s["pulls"]
        ):
            raise bad(
                code="custom",
                message=f"A pull request already exists for {self.s['repository']['owner']}:{branch}.",
            )
        if not self.git.commits(b, h):
            raise bad(code="custom", message=f"No commits between {base} and {branch}")
        if draft and not self.s["repository"]["drafts_supported"]:
            raise Refuse(422, "Draft pull requests are not supported in this repository.")
        if len(body or "") > 65536:
            raise bad(
                code="custom",
                field="body",
                message="body is too long (maximum is 65536 characters)",
            )
        p = {
            "number": self.next_number(),
            "title": title,
            "body": body,
            "state": "open",
            "user": actor,
            "head": branch,
            "base": base,
            "draft": bool(draft),
            "head_sha": h,
            "base_sha": b,
            "open_base": b,
            "comments": [],
            "timeline": [],
            "labels": [],
            "created_at": self.now(),
            "updated_at": self.now(),
        }
        self.s["pulls"].append(p)
        self.cross_refs(p)
        self.sync()
        return p

    def edit(self, item, **k):
        for f in ("title", "body", "base"):
            if k.get(f) is not None:
                if f == "base" and not self.git.branch(k[f]):
                    raise Refuse(
                        422,
                        "Validation Failed",
                        errors=[{"resource": "PullRequest", "field": "base", "code": "invalid"}],
                    )
                if f == "body" and len(k[f]) > 65536:
                    raise Refuse(
                        422,
                        "Validation Failed",
                        errors=[
                            {
                                "resource": "Issue",
                                "code": "custom",
                                "field": "body",
                                "message": "body is too long (maximum is 65536 characters)",
                            }
                        ],
                    )
                item[f] = k[f]
                if f == "base":
                    item["base_sha"] = self.git.branch(k[f])
        st = low(k.get("state"))
        if st in ("open", "closed") and st != item["state"]:
            if item.get("merged"):
                raise Refuse(
                    422,
                    "Validation Failed",
                    errors=[{"resource": "PullRequest", "code": "invalid", "field": "state"}],
                )
            item["state"] = st
            item["closed_at"] = self.now() if st == "closed" else None
            item["timeline"].append(
                {
                    "event": "closed" if st == "closed" else "reopened",
                    "at": self.now(),
                    "actor": self.s["viewer"],
                }
            )
        item["updated_at"] = self.now()
        if "head" in item:
            self.cross_refs(item)
        return item

    def comment(self, item, actor, body):
        if not body or not body.strip():
            raise Refuse(
                422,
                "Validation Failed",
                errors=[{"resource": "IssueComment", "code": "missing_field", "field": "body"}],
            )
        c = {
            "id": self.new_id(),
            "user": actor,
            "body": body,
            "created_at": self.now(),
            "updated_at": self.now(),
        }
        item["comments"].append(c)
        item["updated_at"] = self.now()
        return c

    def find_comment(self, cid):
        for i in self.s["issues"] + self.s["pulls"]:
            for c in i["comments"]:
                c.setdefault("id", self.new_id())
                if c["id"] == cid:
                    return i, c
        raise Refuse(404, "Not Found")


# ================================================================= REST views
class Rest:
    def __init__(self, w, api, html, me):
        self.w, self.api, self.html, self.me = w, api, html, me
        self.repo_url = f"{api}/repos/{w.full}"

    def user(self, login):
        u = self.w.s["users"].get(login, {})
        return {
            "login": login,
            "id": u.get("id", 1000 + sum(map(ord, login))),
            "node_id": f"U_kw{login}",
            "type": u.get("type", "Bot" if login.endswith("[bot]") else "User"),
            "site_admin": False,
            "url": f"{self.api}/users/{login}",
            "html_url": f"{self.html}/{login}",
            "avatar_url": f"{self.html}/{login}.png",
        }

    def repo(self):
        r, w = self.w.s["repository"], self.w
        lv = PERM.index(w.perm(self.me))
        return {
            "id": r["id"],
            "node_id": f"R_kw{r['id']}",
            "name": r["name"],
            "full_name": w.full,
            "private": r["private"],
            "owner": {**self.user(r["owner"]), "type": r["owner_type"]},
            "html_url": f"{self.html}/{w.full}",
            "url": self.repo_url,
            "fork": False,
            "archived": r.get("archived", False),
            "disabled": False,
            "default_branch": r["default_branch"],
            "visibility": "private" if r["private"] else "public",
            "has_issues": True,
            "permissions": {
                n: lv >= i
                for n, i in (("admin", 5), ("maintain", 4), ("push", 3), ("triage", 2), ("pull", 1))
            },
            "allow_merge_commit": r["allow_merge_commit"],
            "allow_squash_merge": r["allow_squash_merge"],
            "allow_rebase_merge": r["allow_rebase_merge"],
            "allow_auto_merge": r["allow_auto_merge"],
            "delete_branch_on_merge": r["delete_branch_on_merge"],
        }

    def labels(self, i):
        return [
            {
                "id": 1 + sum(map(ord, n)),
                "node_id": f"LA_kw{n}",
                "name": n,
                "color": "ededed",
                "default": False,
                "description": None,
                "url": f"{self.repo_url}/labels/{urllib.parse.quote(n)}",
            }
            for n in i["labels"]
        ]

    def issue(self, i):
        w, n, isp = self.w, i["number"], "head" in i
        rx = i.get("reactions", {})
        d = {
            "id": 900000 + n,
            "node_id": f"{'PR' if isp else 'I'}_kw{n}",
            "number": n,
            "title": i["title"],
            "body": i["body"],
            "state": i["state"],
            "state_reason": i.get("state_reason"),
            "user": self.user(i["user"]) if i["user"] else None,
            "author_association": w.association(i),
            "labels": self.labels(i),
            "comments": len(i["comments"]),
            "created_at": i["created_at"],
            "updated_at": i["updated_at"],
            "closed_at": i.get("closed_at"),
            "locked": i.get("locked", False),
            "active_lock_reason": None,
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "url": f"{self.repo_url}/issues/{n}",
            "html_url": f"{self.html}/{w.full}/{'pull' if isp else 'issues'}/{n}",
            "repository_url": self.repo_url,
            "comments_url": f"{self.repo_url}/issues/{n}/comments",
            "timeline_url": f"{self.repo_url}/issues/{n}/timeline",
            "reactions": {
                "url": f"{self.repo_url}/issues/{n}/reactions",
                "total_count": sum(rx.values()),
                **{
                    k: rx.get(k, 0)
                    for k in ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
                },
            },
        }
        if isp:
            d["draft"] = i["draft"]
            d["pull_request"] = {
                "url": f"{self.repo_url}/pulls/{n}",
                "html_url": d["html_url"],
                "diff_url": d["html_url"] + ".diff",
                "patch_url": d["html_url"] + ".patch",
                "merged_at": i.get("merged_at"),
            }
        return d

    def comment(self, i, c):
        c.setdefault("id", self.w.new_id())
        c.setdefault("created_at", "2026-01-01T00:00:00Z")
        return {
            "id": c["id"],
            "node_id": f"IC_kw{c['id']}",
            "body": c["body"],
            "user": self.user(c["user"]) if c["user"] else None,
            "author_association": self.w.association(c),
            "created_at": c["created_at"],
            "updated_at": c.get("updated_at", c["created_at"]),
            "url": f"{self.repo_url}/issues/comments/{c['id']}",
            "html_url": f"{self.html}/{self.w.full}/{'pull' if 'head' in i else 'issues'}/{i['number']}#issuecomment-{c['id']}",
            "issue_url": f"{self.repo_url}/issues/{i['number']}",
        }

    def pull(self, p, full=True):
        w, n = self.w, p["number"]
        u = f"{self.repo_url}/pulls/{n}"
        head, base = w.head(p), p.get("base_sha") or w.git.branch(p["base"])
        hrepo = (
            {"full_name": p["head_repo"]}
            if p.get("head_repo")
            else self.repo() if not p.get("head_repo_deleted") else None
        )
        ho = p["head_repo"].split("/")[0] if p.get("head_repo") else w.s["repository"]["owner"]
        d = {
            "id": 800000 + n,
            "node_id": f"PR_kw{n}",
            "number": n,
            "url": u,
            "html_url": f"{self.html}/{w.full}/pull/{n}",
            "issue_url": f"{self.repo_url}/issues/{n}",
            "state": p["state"],
            "locked": False,
            "title": p["title"],
            "body": p["body"],
            "draft": p["draft"],
            "user": self.user(p["user"]),
            "created_at": p["created_at"],
            "updated_at": p["updated_at"],
            "closed_at": p.get("closed_at"),
            "merged_at": p.get("merged_at"),
            "merge_commit_sha": p.get("merge_commit_sha"),
            "author_association": w.association(p),
            "labels": self.labels(p),
            "assignees": [],
            "requested_reviewers": [],
            "requested_teams": [],
            "milestone": None,
            "auto_merge": p.get("auto_merge"),
            "head": {
                "label": f"{ho}:{p['head']}",
                "ref": p["head"],
                "sha": head,
                "user": self.user(ho),
                "repo": hrepo,
            },
            "base": {
                "label": f"{w.s['repository']['owner']}:{p['base']}",
                "ref": p["base"],
                "sha": base,
                "user": self.user(w.s["repository"]["owner"]),
                "repo": self.repo(),
            },
        }
        if full:
            m = w.mergeable(p)
            st = "UNKNOWN" if m == "UNKNOWN" else w.merge_state(p)
            d.update(
                merged=bool(p.get("merged")),
                mergeable={"MERGEABLE": True, "CONFLICTING": False}.get(m),
                rebaseable={"MERGEABLE": True, "CONFLICTING": False}.get(m),
                mergeable_state=st.lower(),
                merged_by=self.user(p["merged_by"]) if p.get("merged_by") else None,
                comments=len(p["comments"]),
                review_comments=0,
                maintainer_can_modify=False,
                commits=(
                    len(w.git.commits(base, p["head_sha"])) if base and p.get("head_sha") else 0
                ),
                additions=0,
                deletions=0,
                changed_files=0,
            )
        return d

    def branch(self, b):
        w = self.w
        sha = w.git.branch(b)
        if not sha:
            raise Refuse(404, "Branch not found")
        pr = w.prot(b) or {}
        rc = pr.get("required_status_checks")
        enc = urllib.parse.quote(b, safe="")
        return {
            "name": b,
            "commit": self.commit(w.git.commit(sha)),
            "_links": {
                "self": f"{self.repo_url}/branches/{enc}",
                "html": f"{self.html}/{w.full}/tree/{b}",
            },
            "protected": bool(pr) or bool(w.rules(b)),
            "protection": {
                "enabled": bool(pr),
                "required_status_checks": {
                    "enforcement_level": (
                        "everyone"
                        if rc and pr.get("enforce_admins", {}).get("enabled")
                        else "non_admins" if rc else "off"
                    ),
                    "contexts": [c["context"] for c in (rc or {}).get("checks", [])],
                    "checks": (rc or {}).get("checks", []),
                },
            },
            "protection_url": f"{self.repo_url}/branches/{enc}/protection",
        }

    def protection(self, b):
        w = self.w
        if not w.git.branch(b):
            raise Refuse(404, "Branch not found")
        if w.s.get(
            "protection_refusal"
        ):  # e.g. [403, "Upgrade to GitHub Pro or make this repository public to enable this feature."]
            raise Refuse(*w.s["protection_refusal"])
        if not w.can(self.me, "admin"):
            raise Refuse(404, "Not Found")
        pr = w.prot(b)
        if not pr:
            raise Refuse(404, "Branch not protected")
        u = f"{self.repo_url}/branches/{urllib.parse.quote(b, safe='')}/protection"
        d = {"url": u, **pr}
        if pr.get("required_status_checks"):
            rc = pr["required_status_checks"]
            d["required_status_checks"] = {
                "url": u + "/required_status_checks",
                "strict": rc.get("strict", False),
                "contexts": [c["context"] for c in rc["checks"]],
                "contexts_url": u + "/required_status_checks/contexts",
                "checks": [
                    {"context": c["context"], "app_id": c.get("app_id")} for c in rc["checks"]
                ],
            }
        else:
            d.pop(
                "required_status_checks", None
            )  # GitHub leaves the key out when the branch has no required checks
        for k in (
            "enforce_admins",
            "required_linear_history",
            "allow_force_pushes",
            "allow_deletions",
            "block_creations",
            "required_conversation_resolution",
            "lock_branch",
            "allow_fork_syncing",
        ):
            d.setdefault(k, {"enabled": False})
        return d

    def commit(self, c):
        return {
            "sha": c["sha"],
            "node_id": f"C_kw{c['sha']}",
            "url": f"{self.repo_url}/commits/{c['sha']}",
            "html_url": f"{self.html}/{self.w.full}/commit/{c['sha']}",
            "commit": {
                "message": c["message"],
                "author": {"name": c["an"], "email": c["ae"], "date": c["ad"]},
                "committer": {"name": c["cn"], "email": c["ce"], "date": c["cd"]},
                "tree": {"sha": c["tree"], "url": f"{self.repo_url}/git/trees/{c['tree']}"},
                "comment_count": 0,
                "verification": {
                    "verified": False,
                    "reason": "unsigned",
                    "signature": None,
                    "payload": None,
                },
            },
            "author": None,
            "committer": None,
            "parents": [
                {"sha": x, "url": f"{self.repo_url}/commits/{x}", "html_url": ""}
                for x in c["parents"]
            ],
        }

    def check_run(self, r):
        return {
            "id": r["id"],
            "node_id": f"CR_kw{r['id']}",
            "name": r["name"],
            "head_sha": self.w.sha_of(r["head_sha"]),
            "external_id": "",
            "status": r["status"],
            "conclusion": r["conclusion"],
            "started_at": r["started_at"],
            "completed_at": r["completed_at"],
            "url": f"{self.repo_url}/check-runs/{r['id']}",
            "html_url": f"{self.html}/{self.w.full}/runs/{r['id']}",
            "details_url": r.get("details_url", f"{self.html}/{self.w.full}/runs/{r['id']}"),
            "check_suite": {"id": 70000 + r["app"]["id"]},
            "output": {
                "title": None,
                "summary": None,
                "text": None,
                "annotations_count": 0,
                "annotations_url": "",
            },
            "app": {
                "id": r["app"]["id"],
                "slug": r["app"].get("slug", "app"),
                "node_id": f"A_kw{r['app']['id']}",
                "name": r["app"].get("name", r["app"].get("slug", "app")),
                "owner": self.user("github"),
                "permissions": {},
                "events": [],
            },
            "pull_requests": [],
        }

    def status(self, x):
        return {
            "id": x["id"],
            "node_id": f"SC_kw{x['id']}",
            "url": f"{self.repo_url}/statuses/{self.w.sha_of(x['sha'])}",
            "state": x["state"],
            "context": x["context"],
            "description": x.get("description"),
            "target_url": x.get("target_url"),
            "avatar_url": None,
            "created_at": x["created_at"],
            "updated_at": x["created_at"],
            "creator": self.user(x.get("creator", "ci[bot]")),
        }

    def event(self, i, e, k):
        d = {
            "event": e["event"],
            "created_at": e.get("at"),
            "actor": self.user(e.get("actor") or self.w.s["viewer"]),
        }
        if e["event"] == "cross-referenced":
            src = self.xref(e)
            if src is None:
                return None
            d.update(updated_at=e.get("at"), source={"type": "issue", "issue": src})
            return d
        d.update(
            id=7000000 + i["number"] * 1000 + k,
            node_id=e.get("id") or f"EV_{i['number']}_{k}",
            url=f"{self.repo_url}/issues/events/{k}",
            commit_id=None,
            commit_url=None,
            performed_via_github_app=None,
        )
        if e["event"] == "closed":
            c = e.get("closer") or {}
            d["commit_id"] = c.get("commit")
            d["state_reason"] = None
        if e["event"] == "merged":
            d["commit_id"] = e.get("commit_id")
        return d

    def xref(self, e):
        if e.get("pull"):
            p = self.w.pull(e["pull"])
            return {**self.issue(p), "repository": self.repo()} if p else None
        if e.get("issue"):
            i = self.w.issue(e["issue"])
            return {**self.issue(i), "repository": self.repo()} if i else None
        x = e[
            "external"
        ]  # {"repo": "o/r", "number": n, "kind": "pull"|"issue", "state": "OPEN", "draft": false}
        d = {
            "number": x["number"],
            "title": x.get("title", ""),
            "state": "open" if x["state"] == "OPEN" else "closed",
            "repository_url": f"{self.api}/repos/{x['repo']}",
            "html_url": f"{self.html}/{x['repo']}/{'pull' if x['kind'] == 'pull' else 'issues'}/{x['number']}",
            "repository": {"full_name": x["repo"]},
        }
        if x["kind"] == "pull":
            d["pull_request"] = {
                "url": f"{self.api}/repos/{x['repo']}/pulls/{x['number']}",
                "merged_at": x.get("merged_at"),
            }
            d["draft"] = x.get("draft", False)
        return d


def intarg(q, k, d, hi=100):
    try:
        return max(1, min(hi, int(q.get(k, d))))
    except ValueError:
        return d


class Page:
    """A list answer to be paginated; wrap = key holding the list inside an object with total_count."""

    def __init__(self, items, wrap=None, extra=None, render=lambda x: x):
        self.items, self.wrap, self.extra, self.render = items, wrap, extra or {}, render


def rest(w, method, path, q, body, me, api, html, authed):
    """-> (status, value)"""
    R = Rest(w, api, html, me)
    s = w.s
    if path == "/rate_limit":
        return 200, {"resources": {"core": s["_rate"], "graphql": s["_rate"]}, "rate": s["_rate"]}
    if path in ("/", ""):
        return 200, {"current_user_url": api + "/user"}
    if path == "/meta":
        return 200, {"verifiable_password_authentication": False, "installed_version": "3.17.0"}
    if not authed and s["repository"]["private"]:
        raise Refuse(404, "Not Found")
    if path == "/user":
        if not authed:
            raise Refuse(401, "Requires authentication")
        return 200, {**R.user(me), "name": None, "email": None}
    m = re.match(r"^/repositories/(\d+)(/.*)?$", path)
    if m and int(m[1]) == s["repository"]["id"]:
        path = f"/repos/{w.full}" + (m[2] or "")
    m = re.match(r"^/repos/([^/]+)/([^/]+)(/.*)?$", path)
    if not m or f"{m[1]}/{m[2]}".lower() != w.full.lower():
        raise Refuse(404, "Not Found")
    if w.perm(me) == "none":
        raise Refuse(404, "Not Found")
    p = m[3] or ""

    def item(n):
        i = w.issue(int(n)) or w.pull(int(n))
        if not i:
            raise Refuse(404, "Not Found")
        return i

    def pull(n):
        x = w.pull(int(n))
        if not x:
            raise Refuse(404, "Not Found")
        return x

    def need(level, msg="Resource not accessible by personal access token", st=403):
        if not authed:
            raise Refuse(401, "Requires authentication")
        if not w.can(me, level):
            raise Refuse(st, msg)

    def route(meth, pat):
        return method == meth and re.fullmatch(pat, p)

    if route("GET", ""):
        return 200, R.repo()
    # issues
    if route("GET", "/issues"):
        st = q.get("state", "open")
        it = [i for i in s["issues"] + s["pulls"] if st == "all" or i["state"] == st]
        if q.get("labels"):
            it = [i for i in it if set(q["labels"].split(",")) <= set(i["labels"])]
        it.sort(key=lambda i: i["number"], reverse=q.get("direction", "desc") == "desc")
        return 200, Page(it, render=R.issue)
    if m := route("GET", r"/issues/(\d+)"):
        return 200, R.issue(item(m[1]))
    if m := route("PATCH", r"/issues/(\d+)"):
        need("triage")
        return 200, R.issue(
            w.edit(item(m[1]), **{k: body.get(k) for k in ("title", "body", "state")})
        )
    if m := route("GET", r"/issues/(\d+)/comments"):
        i = item(m[1])
        return 200, Page(i["comments"], render=lambda c: R.comment(i, c))
    if m := route("POST", r"/issues/(\d+)/comments"):
        need("read")
        i = item(m[1])
        if i.get("locked") and not w.can(me, "write"):
            raise Refuse(403, "Unable to create comment because issue is locked.")
        return 201, R.comment(i, w.comment(i, me, (body or {}).get("body")))
    if m := re.fullmatch(r"/issues/comments/(\d+)", p):
        i, c = w.find_comment(int(m[1]))
        if method == "GET":
            return 200, R.comment(i, c)
        if low(c["user"]) != low(me):
            need("write")
        if method == "PATCH":
            c.update(body=body["body"], updated_at=w.now())
            return 200, R.comment(i, c)
        if method == "DELETE":
            i["comments"].remove(c)
            return 204, None
    if m := route("GET", r"/issues/(\d+)/timeline"):
        i = item(m[1])
        ev = [R.event(i, e, k) for k, e in enumerate(i["timeline"])]
        return 200, Page([e for e in ev if e])
    # collaborators
    if route("GET", "/collaborators"):
        need("write", "Must have push access to view repository collaborators.")
        lv = lambda x: {
            n: PERM.index(x) >= i
            for n, i in (("admin", 5), ("maintain", 4), ("push", 3), ("triage", 2), ("pull", 1))
        }
        cs = [(u, x) for u, x in s["collaborators"].items() if x != "none"]
        if q.get("permission"):
            cs = [(u, x) for u, x in cs if lv(x)[q["permission"]]]
        return 200, Page([{**R.user(u), "permissions": lv(x), "role_name": x} for u, x in cs])
    if m := route("GET", r"/collaborators/([^/]+)/permission"):
        need("write", "Must have push access to view collaborator permission.")
        x = w.perm(m[1])
        return 200, {
            "permission": {"maintain": "write", "triage": "read"}.get(x, x),
            "role_name": x,
            "user": R.user(m[1]),
        }
    # branches, rules
    if m := route("GET", r"/rules/branches/(.+)"):
        b = urllib.parse.unquote(m[1])
        if s.get("rules_refusal"):
            raise Refuse(*s["rules_refusal"])
        return 200, Page(
            [
                {
                    **r,
                    "ruleset_source_type": r.get("ruleset_source_type", "Repository"),
                    "ruleset_source": r.get("ruleset_source", w.full),
                    "ruleset_id": r.get("ruleset_id", 42),
                }
                for r in w.rules(b)
            ]
        )
    if m := route("GET", r"/rulesets/(\d+)"):
        if s.get("rules_refusal"):
            raise Refuse(*s["rules_refusal"])
        bypass = s.get("bypass", {}).get(m[1], "never")
        return 200, {
            "id": int(m[1]),
            "name": f"Ruleset {m[1]}",
            "target": "branch",
            "source_type": "Repository",
            "source": w.full,
            "enforcement": "active",
            "current_user_can_bypass": bypass,
        }
    if m := route("GET", r"/branches/(.+)/protection(/required_status_checks)?"):
        d = R.protection(urllib.parse.unquote(m[1]))
        if m[2]:
            if "required_status_checks" not in d:
                raise Refuse(404, "Required status checks not enabled")
            d = d["required_status_checks"]
        return 200, d
    if m := route("GET", r"/branches/(.+)"):
        return 200, R.branch(urllib.parse.unquote(m[1]))
    if route("GET", "/branches"):
        _, o = w.git.run("for-each-ref", "--format=%(refname:strip=2)", "refs/heads")
        return 200, Page(
            [
                {
                    k: v
                    for k, v in R.branch(b).items()
                    if k in ("name", "commit", "protected", "protection_url")
                }
                for b in o.split()
            ]
        )
    if m := re.fullmatch(r"/git/refs?/heads/(.+)", p):
        b = urllib.parse.unquote(m[1])
        sha = w.git.branch(b)
        if method == "GET":
            if not sha:
                raise Refuse(404, "Not Found")
            return 200, {
                "ref": "refs/heads/" + b,
                "node_id": f"REF_{b}",
                "url": f"{R.repo_url}/git/refs/heads/{b}",
                "object": {"sha": sha, "type": "commit", "url": f"{R.repo_url}/git/commits/{sha}"},
            }
        if method == "DELETE":
            need("write")
            if not sha:
                raise Refuse(422, "Reference does not exist")
            w.git.run("update-ref", "-d", "refs/heads/" + b)
            return 204, None
    if m := route("GET", r"/compare/(.+?)\.\.\.(.+)"):
        a, b = (w.git.rev(urllib.parse.unquote(x)) for x in (m[1], m[2]))
        if not a or not b:
            raise Refuse(404, "Not Found")
        mb = w.git.base(a, b)
        if not mb:
            raise Refuse(404, f"No common ancestor between {m[1]} and {m[2]}.")
        ahead, behind = w.git.commits(a, b), w.git.commits(b, a)
        pp, pg = intarg(q, "per_page", 250, 250), intarg(q, "page", 1, 10**6)
        cs = ahead[(pg - 1) * pp : pg * pp] if ("page" in q or "per_page" in q) else ahead[-250:]
        return 200, {
            "url": "",
            "status": (
                "identical"
                if a == b
                else "diverged" if ahead and behind else "ahead" if ahead else "behind"
            ),
            "ahead_by": len(ahead),
            "behind_by": len(behind),
            "total_commits": len(ahead),
            "base_commit": R.commit(w.git.commit(a)),
            "merge_base_commit": R.commit(w.git.commit(mb)),
            "commits": [R.commit(c) for c in cs],
            "files": (
                [
                    {
                        **f,
                        "status": "modified",
                        "sha": "",
                        "changes": f["additions"] + f["deletions"],
                    }
                    for f in w.git.files(mb, b)
                ]
                if pg == 1
                else []
            ),
        }
    if m := route("GET", r"/commits/(.+)/(check-runs|status|statuses|check-suites|pulls)"):
        ref = urllib.parse.unquote(m[1])
        sha = w.git.rev(ref) or w.git.branch(ref.removeprefix("heads/"))
        if not sha:
            raise Refuse(422, f"No commit found for SHA: {ref}")
        if m[2] == "check-runs":
            if s.get(
                "checks_forbidden"
            ):  # what a fine-grained token meets: there is no Checks permission to grant
                raise Refuse(403, "Resource not accessible by personal access token")
            rs = w.runs(sha, q.get("filter", "latest") == "latest")
            rs = [
                r
                for r in rs
                if (not q.get("check_name") or r["name"] == q["check_name"])
                and (not q.get("app_id") or r["app"]["id"] == int(q["app_id"]))
                and (not q.get("status") or r["status"] == q["status"])
            ]
            return 200, Page(rs, "check_runs", render=R.check_run)
        if m[2] == "statuses":
            return 200, Page(sorted(w.stats(sha, False), key=lambda x: -x["id"]), render=R.status)
        if m[2] == "status":
            ss = w.stats(sha)
            st = (
                "failure"
                if any(x["state"] in ("error", "failure") for x in ss)
                else "success" if ss and all(x["state"] == "success" for x in ss) else "pending"
            )
            return 200, Page(
                ss,
                "statuses",
                {
                    "state": st,
                    "sha": sha,
                    "repository": R.repo(),
                    "commit_url": f"{R.repo_url}/commits/{sha}",
                    "url": f"{R.repo_url}/commits/{sha}/status",
                },
                R.status,
            )
        if m[2] == "pulls":
            return 200, Page(
                [
                    x
                    for x in s["pulls"]
                    if x.get("head_sha") == sha or x.get("merge_commit_sha") == sha
                ],
                render=lambda x: R.pull(x, False),
            )
    if route("GET", "/commits"):
        sha = w.git.rev(q.get("sha") or s["repository"]["default_branch"])
        if not sha:
            raise Refuse(404, "Not Found")
        return 200, Page(w.git.commits(None, sha)[::-1], render=R.commit)
    if m := route("GET", r"/commits/(.+)"):
        sha = w.git.rev(urllib.parse.unquote(m[1]))
        if not sha:
            raise Refuse(422, f"No commit found for SHA: {m[1]}")
        return 200, R.commit(w.git.commit(sha))
    # pulls
    if route("GET", "/pulls"):
        st = q.get("state", "open")
        it = [
            x
            for x in s["pulls"]
            if (st == "all" or x["state"] == st) and (not q.get("base") or x["base"] == q["base"])
        ]
        if q.get("head"):
            o, _, b = q["head"].rpartition(":")
            it = (
                [
                    x
                    for x in it
                    if x["head"] == b
                    and low(o) == low((x.get("head_repo") or w.full).split("/")[0])
                ]
                if o
                else it
            )
        it.sort(key=lambda x: x["number"], reverse=q.get("direction", "desc") == "desc")
        return 200, Page(it, render=lambda x: R.pull(x, False))
    if route("POST", "/pulls"):
        need("write")
        return 201, R.pull(
            w.create_pull(
                me,
                body.get("head", ""),
                body.get("base", ""),
                body.get("title"),
                body.get("body"),
                body.get("draft"),
            )
        )
    if m := route("GET", r"/pulls/(\d+)"):
        return 200, R.pull(pull(m[1]))
    if m := route("PATCH", r"/pulls/(\d+)"):
        need("write")
        return 200, R.pull(
            w.edit(pull(m[1]), **{k: body.get(k) for k in ("title", "body", "state", "base")})
        )
    if m := route("GET", r"/pulls/(\d+)/merge"):
        if not pull(m[1]).get("merged"):
            raise Refuse(404, "Not Found")
        return 204, None
    if m := route("PUT", r"/pulls/(\d+)/merge"):
        need("read")
        b = body or {}
        sha = w.merge(
            pull(m[1]),
            b.get("merge_method", "merge"),
            b.get("sha"),
            me,
            b.get("commit_title"),
            b.get("commit_message"),
        )
        return 200, {"sha": sha, "merged": True, "message": "Pull Request successfully merged"}
    if m := route("GET", r"/pulls/(\d+)/commits"):
        x = pull(m[1])
        return 200, Page(
            w.git.commits(x.get("base_sha") or w.git.branch(x["base"]), x["head_sha"]),
            render=R.commit,
        )
    if m := route("GET", r"/pulls/(\d+)/files"):
        x = pull(m[1])
        b = x.get("base_sha") or w.git.branch(x["base"])
        return 200, Page(
            [
                {**f, "status": "modified", "changes": f["additions"] + f["deletions"]}
                for f in w.git.files(w.git.base(b, x["head_sha"]), x["head_sha"])
            ]
        )
    if m := route("GET", r"/pulls/(\d+)/(reviews|comments)"):
        pull(m[1])
        return 200, Page([])
    if route("GET", "/labels"):
        return 200, Page(
            R.labels({"labels": sorted({l for i in s["issues"] for l in i["labels"]})})
        )
    if method not in ("GET", "POST", "PATCH", "PUT", "DELETE", "HEAD"):
        raise Refuse(405, "Method Not Allowed")
    s.setdefault("_unsupported", []).append(f"{method} {path}")
    raise Refuse(404, "Not Found", headers={"X-Fake-Unsupported": "1"})


# ================================================================= GraphQL root
def graphql_root(w, R, me, op_type):
    s, r, html = w.s, w.s["repository"], R.html

    def actor(login):
        if not login:
            return None
        bot = login.endswith("[bot]")
        return {
            "__typename": "Bot" if bot else "User",
            "login": login.removesuffix("[bot]") if bot else login,
            "id": f"U_kw{login}",
            "name": None,
            "url": f"{html}/{login}",
            "avatarUrl": "",
            "resourcePath": "/" + login,
            "databaseId": 1,
            "email": "",
        }

    def owner():
        return {
            "__typename": r["owner_type"],
            "login": r["owner"],
            "id": f"O_kw{r['owner']}",
            "name": None,
            "url": f"{html}/{r['owner']}",
        }

    def commit(sha, pr=None):
        if not sha:
            return None
        c = w.git.commit(sha)
        ga = {"name": c["an"], "email": c["ae"], "date": c["ad"], "user": None}
        return {
            "__typename": "Commit",
            "id": f"C_kw{sha}",
            "oid": sha,
            "abbreviatedOid": sha[:7],
            "message": c["message"],
            "messageHeadline": c["message"].split("\n")[0],
            "messageBody": c["message"].partition("\n")[2].strip(),
            "committedDate": c["cd"],
            "authoredDate": c["ad"],
            "url": f"{html}/{w.full}/commit/{sha}",
            "authors": lambda a: Conn([ga]),
            "author": ga,
            "committer": ga,
            "parents": lambda a: Conn([commit(x) for x in c["parents"]]),
            "repository": repo,
            "tree": {"oid": c["tree"], "id": c["tree"]},
            "statusCheckRollup": lambda a: rollup(sha, pr),
            "status": lambda a: None,
            "checkSuites": lambda a: Conn([]),
            "associatedPullRequests": lambda a: Conn(
                [pull(p) for p in s["pulls"] if p.get("head_sha") == sha]
            ),
        }

    def rollup(sha, pr):
        runs, st = w.runs(sha), w.stats(sha)
        if not runs and not st:
            return None
        req = lambda ctx, app: bool(pr) and any(
            c == ctx and (x is None or x == app) for c, x in w.required(pr["base"])
        )

        def cr(x):
            a = x["app"]
            wf = x.get("workflow")
            suite = {
                "id": f"CS_{a['id']}",
                "databaseId": 70000 + a["id"],
                "app": {
                    "id": f"A_{a['id']}",
                    "databaseId": a["id"],
                    "slug": a.get("slug", "app"),
                    "name": a.get("name", "app"),
                },
                "conclusion": (x["conclusion"] or "").upper() or None,
                "status": x["status"].upper(),
                "commit": lambda a_: commit(sha),
                "workflowRun": (
                    {
                        "id": "WFR_1",
                        "databaseId": 1,
                        "event": "pull_request",
                        "runNumber": 1,
                        "url": html,
                        "workflow": {"id": "WF_1", "name": wf, "databaseId": 1},
                    }
                    if wf
                    else None
                ),
            }
            return {
                "__typename": "CheckRun",
                "id": f"CR_kw{x['id']}",
                "databaseId": x["id"],
                "name": x["name"],
                "status": x["status"].upper(),
                "conclusion": (x["conclusion"] or "").upper() or None,
                "startedAt": x["started_at"],
                "completedAt": x["completed_at"],
                "detailsUrl": x.get("details_url", f"{html}/{w.full}/runs/{x['id']}"),
                "url": html,
                "permalink": html,
                "title": None,
                "summary": None,
                "text": None,
                "externalId": "",
                "checkSuite": suite,
                "isRequired": lambda a_: req(x["name"], a["id"]),
                "repository": repo,
            }

        def unreadable(a_):
            raise GqlError(
                "Resource not accessible by personal access token",
                type="FORBIDDEN",
                extensions={"saml_failure": False},
            )

        def sc(x):
            return {
                "__typename": "StatusContext",
                "id": f"SC_kw{x['id']}",
                "context": x["context"],
                "state": x["state"].upper(),
                "targetUrl": x.get("target_url"),
                "createdAt": x["created_at"],
                "description": x.get("description"),
                "creator": actor(x.get("creator", "ci[bot]")),
                "isRequired": lambda a_: req(x["context"], x.get("app_id")),
                "avatarUrl": None,
                "commit": lambda a_: commit(sha),
            }

        states = [
            w.check_state(sha, n, None)
            for n in [x["name"] for x in runs] + [x["context"] for x in st]
        ]
        state = (
            "FAILURE" if "failure" in states else "PENDING" if "pending" in states else "SUCCESS"
        )
        count = lambda xs, k: [
            {"state": v, "count": n}
            for v, n in {v: sum(1 for x in xs if k(x) == v) for v in {k(x) for x in xs}}.items()
        ]
        crs = lambda x: (
            (x["conclusion"] or "NEUTRAL").upper()
            if x["status"] == "completed"
            else x["status"].upper()
        )
        return {
            "id": f"SCR_{sha}",
            "state": state,
            "commit": lambda a: commit(sha),
            "contexts": lambda a: Conn(
                [unreadable if s.get("checks_forbidden") else cr(x) for x in runs]
                + [sc(x) for x in st],
                checkRunCount=len(runs),
                statusContextCount=len(st),
                checkRunCountsByState=count(runs, crs),
                statusContextCountsByState=count(st, lambda x: x["state"].upper()),
            ),
        }

    def rgroups(i):
        names = {
            "+1": "THUMBS_UP",
            "-1": "THUMBS_DOWN",
            "laugh": "LAUGH",
            "hooray": "HOORAY",
            "confused": "CONFUSED",
            "heart": "HEART",
            "rocket": "ROCKET",
            "eyes": "EYES",
        }
        rx = i.get("reactions", {})
        return [
            {
                "content": g,
                "users": lambda a, n=rx.get(k, 0): Conn([actor("x")] * n),
                "reactors": lambda a, n=rx.get(k, 0): Conn([actor("x")] * n),
                "viewerHasReacted": False,
                "createdAt": None,
            }
            for k, g in names.items()
        ]

    def comment(i, c):
        c.setdefault("id", w.new_id())
        c.setdefault("created_at", "2026-01-01T00:00:00Z")
        d = R.comment(i, c)
        return {
            "__typename": "IssueComment",
            "id": d["node_id"],
            "databaseId": c["id"],
            "fullDatabaseId": str(c["id"]),
            "body": c["body"],
            "bodyText": c["body"],
            "bodyHTML": c["body"],
            "author": actor(c["user"]),
            "authorAssociation": d["author_association"],
            "createdAt": d["created_at"],
            "updatedAt": d["updated_at"],
            "publishedAt": d["created_at"],
            "url": d["html_url"],
            "isMinimized": False,
            "minimizedReason": None,
            "includesCreatedEdit": d["created_at"] != d["updated_at"],
            "lastEditedAt": None,
            "reactionGroups": [],
            "viewerDidAuthor": low(c["user"]) == low(me),
            "viewerCanUpdate": True,
            "viewerCanDelete": True,
            "issue": None,
            "pullRequest": None,
        }

    def label(n):
        return {
            "id": f"LA_kw{n}",
            "name": n,
            "color": "ededed",
            "description": None,
            "url": "",
            "isDefault": False,
            "createdAt": "2026-01-01T00:00:00Z",
        }

    def common(i):
        return {
            "databaseId": i["number"] + 800000,
            "fullDatabaseId": str(i["number"]),
            "number": i["number"],
            "title": i["title"],
            "titleHTML": i["title"],
            "body": i["body"] or "",
            "bodyText": i["body"] or "",
            "author": actor(i["user"]),
            "authorAssociation": w.association(i),
            "createdAt": i["created_at"],
            "updatedAt": i["updated_at"],
            "closedAt": i.get("closed_at"),
            "closed": i["state"] != "open",
            "locked": False,
            "activeLockReason": None,
            "assignees": lambda a: Conn([]),
            "assignedActors": lambda a: Conn([]),
            "suggestedActors": lambda a: Conn([]),
            "labels": lambda a: Conn([label(x) for x in i["labels"]]),
            "milestone": None,
            "projectCards": projects_gone,
            "projectItems": lambda a: Conn([]),
            "projectsV2": lambda a: Conn([]),
            "comments": lambda a: Conn([comment(i, c) for c in i["comments"]]),
            "reactionGroups": lambda a: rgroups(i),
            "repository": repo,
            "viewerDidAuthor": low(i["user"]) == low(me),
            "viewerCanUpdate": w.can(me, "triage"),
            "includesCreatedEdit": False,
            "lastEditedAt": None,
            "participants": lambda a: Conn([actor(i["user"])]),
        }

    def projects_gone(a):
        if s.get("projects_classic_error", True):
            raise GqlError(
                "Projects (classic) is being deprecated in favor of the new Projects experience, see: https://github.blog/changelog/2024-05-23-sunset-notice-projects-classic/.",
                type=None,
            )
        return Conn([])

    def ext(x):
        rp = {
            "nameWithOwner": x["repo"],
            "name": x["repo"].split("/")[1],
            "owner": {"__typename": "User", "login": x["repo"].split("/")[0], "id": "x"},
            "id": "R_ext",
            "isPrivate": False,
            "url": f"{html}/{x['repo']}",
        }
        k = x["kind"] == "pull"
        return {
            "__typename": "PullRequest" if k else "Issue",
            "id": f"X_{x['repo']}_{x['number']}",
            "number": x["number"],
            "title": x.get("title", ""),
            "state": x["state"],
            "isDraft": x.get("draft", False),
            "merged": x["state"] == "MERGED",
            "mergedAt": x.get("merged_at"),
            "repository": rp,
            "url": f"{html}/{x['repo']}/pull/{x['number']}",
            "headRefName": "x",
            "baseRefName": x.get("base", "main"),
            "author": actor("ext"),
        }

    def subject(e):
        if e.get("pull"):
            return pull(w.pull(e["pull"]))
        if e.get("issue"):
            return issue(w.issue(e["issue"]))
        return ext(e["external"]) if e.get("external") else None

    EV = {
        "closed": "ClosedEvent",
        "reopened": "ReopenedEvent",
        "cross-referenced": "CrossReferencedEvent",
        "connected": "ConnectedEvent",
        "disconnected": "DisconnectedEvent",
        "added_to_merge_queue": "AddedToMergeQueueEvent",
        "removed_from_merge_queue": "RemovedFromMergeQueueEvent",
        "merged": "MergedEvent",
        "head_ref_force_pushed": "HeadRefForcePushedEvent",
    }

    def timeline(i, self_node):
        def node(k, e):
            t = EV.get(e["event"])
            if not t:
                return None
            d = {
                "__typename": t,
                "id": e.get("id") or f"EV_{i['number']}_{k}",
                "createdAt": e.get("at"),
                "actor": actor(e.get("actor")),
                "url": html,
                "resourcePath": "/",
            }
            if t == "ClosedEvent":
                c = e.get("closer")
                d.update(
                    stateReason="COMPLETED",
                    closable=lambda a: self_node(),
                    closer=lambda a: (
                        None
                        if not c
                        else (
                            pull(w.pull(c["pull"]))
                            if c.get("pull")
                            else (
                                commit(c["commit"])
                                if c.get("commit")
                                else (
                                    ext(c["external"])
                                    if c.get("external")
                                    else {
                                        "__typename": "ProjectV2",
                                        "number": c.get("project", 1),
                                        "id": "PVT_1",
                                        "title": "Board",
                                    }
                                )
                            )
                        )
                    ),
                )
            if t == "CrossReferencedEvent":
                wc = e.get(
                    "will_close",
                    bool(e.get("pull") and i["number"] in w.closing(w.pull(e["pull"]))),
                )
                d.update(
                    source=lambda a: subject(e),
                    target=lambda a: self_node(),
                    isCrossRepository=bool(e.get("external")),
                    referencedAt=e.get("at"),
                    willCloseTarget=wc,
                )
            if t in ("ConnectedEvent", "DisconnectedEvent"):
                d.update(
                    subject=lambda a: subject(e),
                    source=lambda a: self_node(),
                    isCrossRepository=bool(e.get("external")),
                )
            if "MergeQueue" in t:
                d.update(
                    enqueuer=lambda a: actor(e.get("actor")),
                    mergeQueue=lambda a: queue(i["base"]),
                    pullRequest=lambda a: pull(i),
                )
                if t.startswith("Removed"):
                    d.update(reason=e.get("reason"), beforeCommit=lambda a: commit(e.get("before")))
            if t == "MergedEvent":
                d.update(
                    commit=lambda a: commit(e.get("commit_id")),
                    mergeRefName=i.get("base"),
                    pullRequest=lambda a: pull(i),
                )
            return d

        def run(a):
            ns = [n for n in (node(k, e) for k, e in enumerate(i["timeline"])) if n]
            if a.get("itemTypes"):
                want = {re.sub(r"(?<!^)(?=[A-Z])", "_", n).upper() for n in ()} or set(
                    a["itemTypes"]
                )
                ns = [
                    n
                    for n in ns
                    if re.sub(r"(?<!^)(?=[A-Z])", "_", n["__typename"]).upper() in want
                ]
            return Conn(ns, filteredCount=len(ns), pageCount=1, updatedAt=w.now())

        return run

    def issue(i):
        if not i:
            return None
        d = R.issue(i)
        links = lambda: [p for p in s["pulls"] if i["number"] in w.closing(p)]
        return {
            "__typename": "Issue",
            **common(i),
            "id": d["node_id"],
            "state": i["state"].upper(),
            "stateReason": (i.get("state_reason") or "").upper() or None,
            "url": d["html_url"],
            "resourcePath": "",
            "isPinned": False,
            "timelineItems": timeline(i, lambda: issue(i)),
            "issueType": None,
            "closedByPullRequestsReferences": lambda a: Conn(
                [
                    pull(p)
                    for p in links()
                    if p["state"] == "open" or (p.get("merged") or a.get("includeClosedPrs"))
                ]
            ),
            "linkedBranches": lambda a: Conn([]),
            "parent": None,
            "subIssues": lambda a: Conn([]),
            "subIssuesSummary": {"total": 0, "completed": 0, "percentCompleted": 0},
            "blockedBy": lambda a: Conn([]),
            "blocking": lambda a: Conn([]),
        }

    def entry(e, b):
        es = w.entries(b)
        return {
            "id": e["id"],
            "state": e["state"],
            "position": es.index(e) + 1 if e in es else 0,
            "enqueuedAt": e["enqueued_at"],
            "enqueuer": actor(e["enqueuer"]),
            "headCommit": lambda a: commit(e["head_commit"]),
            "baseCommit": lambda a: commit(e["base_commit"]),
            "estimatedTimeToMerge": 120,
            "jump": e["jump"],
            "solo": False,
            "pullRequest": lambda a: pull(w.pull(e["number"])),
            "mergeQueue": lambda a: queue(b),
        }

    def queue(b):
        if not w.queue_on(b):
            return None
        return {
            "id": f"MQ_{b}",
            "url": f"{html}/{w.full}/queue/{b}",
            "resourcePath": f"/{w.full}/queue/{b}",
            "nextEntryEstimatedTimeToMerge": 120,
            "repository": repo,
            "entries": lambda a: Conn([entry(e, b) for e in w.entries(b)]),
            "configuration": {
                "checkResponseTimeout": 60,
                "maximumEntriesToBuild": 5,
                "maximumEntriesToMerge": 5,
                "mergeMethod": "MERGE",
                "mergingStrategy": "ALLGREEN",
                "minimumEntriesToMerge": 1,
                "minimumEntriesToMergeWaitTime": 5,
            },
        }

    def pull(p):
        if not p:
            return None
        d = R.pull(p, False)
        st = "MERGED" if p.get("merged") else p["state"].upper()
        base = lambda: p.get("base_sha") or w.git.branch(p["base"])
        files = lambda: (
            w.git.files(w.git.base(base(), p["head_sha"]), p["head_sha"])
            if p.get("head_sha") and w.git.base(base(), p["head_sha"])
            else []
        )
        head = d["head"]["sha"]
        return {
            "__typename": "PullRequest",
            **common(p),
            "id": d["node_id"],
            "state": st,
            "url": d["html_url"],
            "permalink": d["html_url"],
            "resourcePath": "",
            "isDraft": p["draft"],
            "headRefName": p["head"],
            "headRefOid": head,
            "baseRefName": p["base"],
            "baseRefOid": lambda a: base(),
            "isCrossRepository": bool(p.get("head_repo")),
            "maintainerCanModify": False,
            "merged": bool(p.get("merged")),
            "mergedAt": p.get("merged_at"),
            "mergedBy": actor(p.get("merged_by")),
            "mergeCommit": lambda a: commit(p.get("merge_commit_sha")),
            "potentialMergeCommit": lambda a: None,
            "mergeable": lambda a: w.mergeable(p),
            "mergeStateStatus": lambda a: w.merge_state(p),
            "canBeRebased": True,
            "reviewDecision": p.get("review_decision"),
            "reviews": lambda a: Conn([]),
            "latestReviews": lambda a: Conn([]),
            "latestOpinionatedReviews": lambda a: Conn([]),
            "reviewRequests": lambda a: Conn([]),
            "reviewThreads": lambda a: Conn([]),
            "additions": lambda a: sum(f["additions"] for f in files()),
            "deletions": lambda a: sum(f["deletions"] for f in files()),
            "changedFiles": lambda a: len(files()),
            "files": lambda a: Conn(
                [
                    {
                        "path": f["filename"],
                        "additions": f["additions"],
                        "deletions": f["deletions"],
                        "changeType": "MODIFIED",
                        "viewerViewedState": "UNVIEWED",
                    }
                    for f in files()
                ]
            ),
            "commits": lambda a: Conn(
                [
                    {
                        "id": f"PRC_{c['sha']}",
                        "commit": (lambda a2, c=c: commit(c["sha"], p)),
                        "url": html,
                    }
                    for c in w.git.commits(base(), p["head_sha"])
                ]
            ),
            "statusCheckRollup": lambda a: rollup(p["head_sha"], p),
            "headRepository": lambda a: (
                None
                if p.get("head_repo_deleted")
                else (
                    {
                        "id": "R_fork",
                        "name": p["head_repo"].split("/")[1],
                        "nameWithOwner": p["head_repo"],
                    }
                    if p.get("head_repo")
                    else repo(a)
                )
            ),
            "headRepositoryOwner": lambda a: (
                {
                    "__typename": "User",
                    "id": "U_f",
                    "login": p["head_repo"].split("/")[0],
                    "name": None,
                }
                if p.get("head_repo")
                else owner()
            ),
            "baseRepository": repo,
            "headRef": lambda a: ref(p["head"]),
            "baseRef": lambda a: ref(p["base"]),
            "autoMergeRequest": lambda a: (
                {
                    "authorEmail": None,
                    "commitBody": None,
                    "commitHeadline": None,
                    "mergeMethod": "MERGE",
                    "enabledAt": p["auto_merge"]["at"],
                    "enabledBy": actor(p["auto_merge"]["by"]),
                    "pullRequest": lambda b: pull(p),
                }
                if p.get("auto_merge")
                else None
            ),
            "isInMergeQueue": lambda a: bool(w.entry(p)),
            "isMergeQueueEnabled": lambda a: w.queue_on(p["base"]),
            "mergeQueue": lambda a: queue(p["base"]),
            "mergeQueueEntry": lambda a: entry(w.entry(p), p["base"]) if w.entry(p) else None,
            "closingIssuesReferences": lambda a: Conn([issue(w.issue(n)) for n in w.closing(p)]),
            "timelineItems": timeline(p, lambda: pull(p)),
            "viewerCanMergeAsAdmin": w.can(me, "admin") and bool(w.prot(p["base"])),
            "viewerCanEnableAutoMerge": True,
            "totalCommentsCount": len(p["comments"]),
            "viewerMergeBodyText": p["title"],
            "viewerMergeHeadlineText": f"Merge pull request #{p['number']} from {r['owner']}/{p['head']}",
        }

    def ref(b):
        sha = w.git.branch(b)
        if not sha:
            return None
        rc = (w.prot(b) or {}).get("required_status_checks")
        bpr = (
            {
                "id": "BPR_1",
                "pattern": b,
                "requiresStatusChecks": bool(rc),
                "requiresStrictStatusChecks": bool((rc or {}).get("strict")),
                "requiredStatusCheckContexts": [c["context"] for c in (rc or {}).get("checks", [])],
                "requiredStatusChecks": [
                    {
                        "context": c["context"],
                        "app": (
                            {
                                "id": f"A_{c['app_id']}",
                                "databaseId": c["app_id"],
                                "slug": "app",
                                "name": "app",
                            }
                            if c.get("app_id")
                            else None
                        ),
                    }
                    for c in (rc or {}).get("checks", [])
                ],
                "requiredApprovingReviewCount": (
                    (w.prot(b) or {}).get("required_pull_request_reviews") or {}
                ).get("required_approving_review_count"),
                "requiresApprovingReviews": False,
                "isAdminEnforced": False,
                "requiresLinearHistory": False,
                "databaseId": 1,
            }
            if w.prot(b)
            else None
        )
        return {
            "id": f"REF_{b}",
            "name": b,
            "prefix": "refs/heads/",
            "target": lambda a: commit(sha),
            "repository": repo,
            "branchProtectionRule": bpr,
            "associatedPullRequests": lambda a: Conn(
                [
                    pull(p)
                    for p in s["pulls"]
                    if p["head"] == b
                    and (
                        not a.get("states")
                        or ("MERGED" if p.get("merged") else p["state"].upper()) in a["states"]
                    )
                ]
            ),
            "refUpdateRule": (
                {
                    "pattern": b,
                    "requiredApprovingReviewCount": None,
                    "requiredStatusCheckContexts": [c for c, _ in w.required(b)],
                    "viewerCanPush": w.can(me, "write"),
                    "allowsDeletions": False,
                    "allowsForcePushes": False,
                    "blocksCreations": False,
                    "requiresCodeOwnerReviews": False,
                    "requiresConversationResolution": False,
                    "requiresLinearHistory": False,
                    "requiresSignatures": False,
                    "viewerAllowedToDismissReviews": False,
                }
                if w.required(b)
                else None
            ),
            "rules": lambda a: Conn([]),
            "compare": None,
        }

    def pulls(a):
        ps = [
            p
            for p in s["pulls"]
            if (
                not a.get("states")
                or ("MERGED" if p.get("merged") else p["state"].upper()) in a["states"]
            )
            and (not a.get("headRefName") or p["head"] == a["headRefName"])
            and (not a.get("baseRefName") or p["base"] == a["baseRefName"])
            and (not a.get("labels") or set(a["labels"]) & set(p["labels"]))
        ]
        o = a.get("orderBy")
        return Conn(
            [
                (lambda p: pull(p))(p)
                for p in sorted(
                    ps, key=lambda p: p["number"], reverse=not o or o.get("direction") == "DESC"
                )
            ]
        )

    def issues(a):
        f = a.get("filterBy") or {}
        st = a.get("states") or f.get("states")
        it = [
            i
            for i in s["issues"]
            if (not st or i["state"].upper() in st)
            and (
                not (a.get("labels") or f.get("labels"))
                or set(a.get("labels") or f.get("labels")) & set(i["labels"])
            )
        ]
        o = a.get("orderBy")
        return Conn(
            [
                issue(i)
                for i in sorted(
                    it, key=lambda i: i["number"], reverse=bool(o) and o.get("direction") == "DESC"
                )
            ]
        )

    def one(kind, getter, node):
        def f(a):
            x = getter(a["number"])
            if not x:
                raise GqlError(
                    f"Could not resolve to {kind} with the number of {a['number']}.",
                    type="NOT_FOUND",
                )
            return node(x)

        return f

    def repo(a=None):
        P = w.perm(me)
        return {
            "__typename": "Repository",
            "id": f"R_kw{r['id']}",
            "databaseId": r["id"],
            "name": r["name"],
            "nameWithOwner": w.full,
            "owner": owner(),
            "url": f"{html}/{w.full}",
            "sshUrl": "",
            "isPrivate": r["private"],
            "isArchived": r.get("archived", False),
            "isFork": False,
            "isInOrganization": r["owner_type"] == "Organization",
            "isEmpty": False,
            "isTemplate": False,
            "isDisabled": False,
            "isLocked": False,
            "parent": None,
            "templateRepository": None,
            "visibility": "PRIVATE" if r["private"] else "PUBLIC",
            "description": None,
            "homepageUrl": None,
            "pushedAt": w.now(),
            "createdAt": "2026-01-01T00:00:00Z",
            "updatedAt": w.now(),
            "hasIssuesEnabled": True,
            "hasWikiEnabled": False,
            "hasProjectsEnabled": False,
            "hasDiscussionsEnabled": False,
            "viewerPermission": P.upper() if P != "none" else None,
            "viewerCanAdminister": P == "admin",
            "mergeCommitAllowed": r["allow_merge_commit"],
            "squashMergeAllowed": r["allow_squash_merge"],
            "rebaseMergeAllowed": r["allow_rebase_merge"],
            "autoMergeAllowed": r["allow_auto_merge"],
            "deleteBranchOnMerge": r["delete_branch_on_merge"],
            "viewerDefaultMergeMethod": "MERGE",
            "viewerDefaultCommitEmail": "bot@example.com",
            "defaultBranchRef": lambda a: ref(r["default_branch"]),
            "ref": lambda a: ref(a["qualifiedName"].removeprefix("refs/heads/")),
            "refs": lambda a: Conn([]),
            "issues": issues,
            "pullRequests": pulls,
            "issue": one("an Issue", w.issue, issue),
            "pullRequest": one("a PullRequest", w.pull, pull),
            "issueOrPullRequest": one(
                "an issue or pull request",
                lambda n: w.issue(n) or w.pull(n),
                lambda x: pull(x) if "head" in x else issue(x),
            ),
            "labels": lambda a: Conn(
                [label(l) for l in sorted({l for i in s["issues"] for l in i["labels"]})]
            ),
            "milestones": lambda a: Conn([]),
            "assignableUsers": lambda a: Conn([actor(u) for u in s["collaborators"]]),
            "mentionableUsers": lambda a: Conn([]),
            "suggestedActors": lambda a: Conn([]),
            "collaborators": lambda a: collaborators(a),
            "mergeQueue": lambda a: queue(a.get("branch") or r["default_branch"]),
            "branchProtectionRules": lambda a: Conn([]),
            "projects": projects_gone,
            "projectsV2": lambda a: Conn([]),
            "object": lambda a: obj(a),
            "pullRequestTemplates": [],
            "issueTemplates": [],
            "contactLinks": [],
            "isBlankIssuesEnabled": True,
            "rulesets": lambda a: Conn([]),
            "codeOfConduct": None,
            "licenseInfo": None,
            "stargazerCount": 0,
            "forkCount": 0,
        }

    def collaborators(a):
        if not w.can(me, "write"):
            raise GqlError(
                "Must have push access to view repository collaborators.", type="FORBIDDEN"
            )
        d = Conn([actor(u) for u in s["collaborators"]])
        return d

    def obj(a):
        sha = a.get("oid") or w.git.rev((a.get("expression") or "").split(":")[0])
        return (
            commit(w.git.rev(sha))
            if sha and w.git.rev(sha) and ":" not in (a.get("expression") or "")
            else None
        )

    def find_repo(a):
        if f"{a['owner']}/{a['name']}".lower() != w.full.lower() or w.perm(me) == "none":
            raise GqlError(
                f"Could not resolve to a Repository with the name '{a['owner']}/{a['name']}'.",
                type="NOT_FOUND",
            )
        return repo()

    def byid(x, kinds=("PR", "I", "R")):
        m = re.fullmatch(r"(PR|I|R)_kw(\d+)", str(x))
        v = (
            m
            and m[1] in kinds
            and {"PR": w.pull, "I": w.issue}.get(
                m[1], lambda n: s["repository"] if n == r["id"] else None
            )(int(m[2]))
        )
        if not v:
            raise GqlError(
                f"Could not resolve to a node with the global id of '{x}'", type="NOT_FOUND"
            )
        return v

    def node(x):
        v = byid(x)
        return repo() if v is r else pull(v) if "head" in v else issue(v)

    def search(a):
        qs = a["query"]
        it = s["pulls"] if "is:pr" in qs or "type:pr" in qs else s["issues"]
        if "is:open" in qs or "state:open" in qs:
            it = [i for i in it if i["state"] == "open"]
        return Conn([pull(i) if "head" in i else issue(i) for i in it], issueCount=len(it))

    viewer = lambda a: {
        **actor(me),
        "__typename": "User",
        "organizations": lambda b: Conn([]),
        "repository": find_repo,
    }
    rate = lambda a: {
        "limit": s["_rate"]["limit"],
        "remaining": s["_rate"]["remaining"],
        "used": s["_rate"]["used"],
        "cost": 1,
        "nodeCount": 1,
        "resetAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(s["_rate"]["reset"])),
    }
    if op_type != "mutation":
        return {
            "viewer": viewer,
            "repository": find_repo,
            "node": lambda a: node(a["id"]),
            "nodes": lambda a: [node(x) for x in a["ids"]],
            "rateLimit": rate,
            "user": lambda a: {
                **actor(a["login"]),
                "__typename": "User",
                "projectsV2": lambda b: Conn([]),
            },
            "organization": lambda a: {
                **owner(),
                "projectsV2": lambda b: Conn([]),
                "teams": lambda b: Conn([]),
                "projects": projects_gone,
            },
            "search": lambda a: search(a),
            "__type": lambda a: w.engine.type_info(a["name"]),
            "repositoryOwner": lambda a: owner(),
        }

    def mut(f):
        def g(a):
            try:
                return {"clientMutationId": a["input"].get("clientMutationId"), **f(a["input"])}
            except Refuse as e:
                msg = e.message
                if e.errors:
                    msg = "; ".join(
                        x.get("message") or f"{x.get('field')} is invalid" for x in e.errors
                    )
                raise GqlError(msg, type=e.type)

        return g

    def writer(name):
        if not w.can(me, "write"):
            raise Refuse(403, f"{me} does not have the correct permissions to execute `{name}`")

    def m_create(i):
        writer("CreatePullRequest")
        byid(i["repositoryId"], ("R",))
        p = w.create_pull(
            me, i["headRefName"], i["baseRefName"], i["title"], i.get("body"), i.get("draft")
        )
        return {"pullRequest": pull(p)}

    def m_update(i):
        p = byid(i["pullRequestId"], ("PR",))
        if low(p["user"]) != low(me):
            writer("UpdatePullRequest")
        return {
            "pullRequest": pull(
                w.edit(
                    p,
                    title=i.get("title"),
                    body=i.get("body"),
                    base=i.get("baseRefName"),
                    state=i.get("state"),
                )
            ),
            "actor": actor(me),
        }

    def m_comment(i):
        x = byid(i["subjectId"])
        c = w.comment(x, me, i["body"])
        return {
            "commentEdge": {"cursor": "x", "node": comment(x, c)},
            "subject": node(i["subjectId"]),
            "timelineEdge": None,
        }

    def m_editcomment(i):
        x, c = w.find_comment(int(i["id"].removeprefix("IC_kw")))
        c.update(body=i["body"], updated_at=w.now())
        return {"issueComment": comment(x, c)}

    def m_merge(i):
        p = byid(i["pullRequestId"], ("PR",))
        w.merge(
            p,
            (i.get("mergeMethod") or "MERGE").lower(),
            i.get("expectedHeadOid"),
            me,
            i.get("commitHeadline"),
            i.get("commitBody"),
        )
        return {"pullRequest": pull(p), "actor": actor(me)}

    def m_auto(i):
        p = byid(i["pullRequestId"], ("PR",))
        if i.get("expectedHeadOid") and i["expectedHeadOid"] != p["head_sha"]:
            raise Refuse(422, "Head branch was modified. Review and try the merge again.")
        if not r["allow_auto_merge"]:  # also with a merge queue: cli/cli#13398
            raise Refuse(422, "Auto merge is not allowed for this repository")
        if w.queue_on(p["base"]):
            if not w.blockers(p):
                w.enqueue(p, i.get("expectedHeadOid"), me)
            else:
                p["auto_merge"] = {"at": w.now(), "by": me}
        else:
            if w.merge_state(p) == "CLEAN":
                raise Refuse(422, "Pull request Pull request is in clean status")
            p["auto_merge"] = {"at": w.now(), "by": me}
        return {"pullRequest": pull(p), "actor": actor(me)}

    def m_enqueue(i):
        p = byid(i["pullRequestId"], ("PR",))
        return {
            "mergeQueueEntry": entry(
                w.enqueue(p, i.get("expectedHeadOid"), me, bool(i.get("jump"))), p["base"]
            )
        }

    def m_dequeue(i):
        p = byid(i["id"], ("PR",))
        e = w.dequeue(p, "manual", me)
        return {"mergeQueueEntry": entry(e, p["base"])}

    def flag(name, draft):
        def f(i):
            p = byid(i["pullRequestId"], ("PR",))
            writer(name)
            if draft and not r["drafts_supported"]:
                raise Refuse(422, "Draft pull requests are not supported in this repository.")
            p["draft"] = draft
            p["updated_at"] = w.now()
            return {"pullRequest": pull(p)}

        return f

    def state(st):
        def f(i):
            p = byid(i.get("pullRequestId") or i.get("issueId"))
            w.edit(p, state=st)
            return {"pullRequest" if "head" in p else "issue": pull(p) if "head" in p else issue(p)}

        return f

    def labelable(i):
        return {"labelable": node(i["labelableId"])}

    return {
        "createPullRequest": mut(m_create),
        "updatePullRequest": mut(m_update),
        "addComment": mut(m_comment),
        "updateIssueComment": mut(m_editcomment),
        "mergePullRequest": mut(m_merge),
        "enablePullRequestAutoMerge": mut(m_auto),
        "disablePullRequestAutoMerge": mut(
            lambda i: (
                byid(i["pullRequestId"]).update(auto_merge=None),
                {"pullRequest": pull(byid(i["pullRequestId"])), "actor": actor(me)},
            )[1]
        ),
        "enqueuePullRequest": mut(m_enqueue),
        "dequeuePullRequest": mut(m_dequeue),
        "markPullRequestReadyForReview": mut(flag("MarkPullRequestReadyForReview", False)),
        "convertPullRequestToDraft": mut(flag("ConvertPullRequestToDraft", True)),
        "closePullRequest": mut(state("closed")),
        "reopenPullRequest": mut(state("open")),
        "closeIssue": mut(state("closed")),
        "reopenIssue": mut(state("open")),
        "addLabelsToLabelable": mut(labelable),
        "removeLabelsFromLabelable": mut(labelable),
        "requestReviews": mut(lambda i: {"pullRequest": pull(byid(i["pullRequestId"]))}),
    }


# ================================================================= HTTP
class Drop(Exception):
    pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "github.com"
    sys_version = ""
    timeout = 60

    def address_string(self):
        return "local"

    def log_message(self, *a):
        pass

    def send(self, status, value, headers=None, raw=None, cut=None):
        data = (
            raw
            if raw is not None
            else b"" if value is None else json.dumps(value, ensure_ascii=False).encode()
        )
        self.send_response(status)
        h = {
            "Content-Type": "application/json; charset=utf-8",
            "X-GitHub-Request-Id": f"FAKE:{self.n}",
            "X-GitHub-Media-Type": "github.v3; format=json",
            **(headers or {}),
        }
        if status != 204 and not (cut == "no-length"):
            h["Content-Length"] = str(len(data))
        for k, v in h.items():
            if v is not None:
                self.send_header(k, str(v))
        self.end_headers()
        if cut == "mid":
            self.wfile.write(data[: max(1, len(data) // 2)])
            self.wfile.flush()
            raise Drop()
        if self.command != "HEAD":
            self.wfile.write(data)

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (Drop, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def go(self):
        srv = self.server.fake
        n = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(n) if n else b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while True:
                k = int(self.rfile.readline().split(b";")[0], 16)
                body += self.rfile.read(k)
                self.rfile.readline()
                if not k:
                    break
        url = urllib.parse.urlsplit(self.path)
        path = url.path
        host = self.headers.get("Host", "")
        if path.startswith("/_fake/"):
            self.n = 0
            return self.control(path[6:], body)
        api, html = f"https://{host}", f"https://{host.removeprefix('api.')}"
        q = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        rec = {
            "method": self.command,
            "path": url.path,
            "query": url.query,
            "host": host,
            "ua": self.headers.get("User-Agent"),
            "accept": self.headers.get("Accept"),
            "api_version": self.headers.get("X-GitHub-Api-Version"),
            "auth": bool(self.headers.get("Authorization")),
        }
        js, opname = None, None
        if body:
            try:
                js = json.loads(body)
            except ValueError:
                js = {}
            if path == "/graphql":
                m = re.search(r"(?:^|[}\s])(query|mutation)\b\s*(\w*)", js.get("query") or "")
                opname = js.get("operationName") or (m[2] if m else "")
                rec.update(
                    op=m[1] if m else "query",
                    operation=opname,
                    text=js.get("query"),
                    variables=js.get("variables"),
                )
            else:
                rec["body"] = js
        with srv.w.lock:
            srv.count += 1
            self.n = rec["n"] = srv.count
            fault = srv.take_fault(self.command, path, opname, js)
        if fault:
            rec["fault"] = fault.get("name") or fault["action"]
        a = (fault or {}).get("action", {})
        status = None
        try:
            if a.get("delay_ms"):
                time.sleep(a["delay_ms"] / 1000)
            if a.get("control"):
                srv.apply(a["control"])
            if a.get("close") == "before":
                status = "closed-before"
                raise Drop()
            if "status" in a:
                status = a["status"]
                return self.send(
                    a["status"],
                    a.get("body"),
                    a.get("headers"),
                    raw=a["raw"].encode() if "raw" in a else None,
                )
            if "raw" in a and "close" not in a:
                status = 200
                return self.send(200, None, a.get("headers"), raw=a["raw"].encode())
            status, value, headers = self.answer(srv, path, q, js, api, html, rec)
            if "graphql_errors" in a and isinstance(value, dict):
                value = {**value, "errors": a["graphql_errors"]}
                if a.get("graphql_null"):
                    value["data"] = None
            if a.get("close") == "after":
                raise Drop()
            if a.get("patch") and isinstance(value, dict):
                value = deep(value, a["patch"])
            if a.get("truncate"):
                return self.send(
                    status, None, headers, raw=json.dumps(value).encode()[: a["truncate"]]
                )
            self.send(
                status,
                value,
                {**headers, **a.get("headers", {})},
                cut="mid" if a.get("close") == "mid" else None,
            )
        finally:
            rec["status"] = status
            srv.record(rec)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = go

    def answer(self, srv, path, q, js, api, html, rec):
        w = srv.w
        with w.lock:
            s = w.s
            tok = (self.headers.get("Authorization") or "").split(" ")[-1]
            authed, me = bool(tok), s["viewer"]
            headers = {}
            if s["tokens"]:
                if tok and tok not in s["tokens"]:
                    return (
                        401,
                        {"message": "Bad credentials", "documentation_url": DOC, "status": "401"},
                        {},
                    )
                me = s["tokens"].get(tok, me)
            rt = s.setdefault(
                "_rate",
                {"limit": 5000, "remaining": 5000, "used": 0, "reset": 0, "resource": "core"},
            )
            if rt["reset"] < time.time():
                rt.update(
                    remaining=rt["limit"],
                    used=0,
                    reset=int(time.time()) + s.get("rate_window", 3600),
                )
            if path != "/rate_limit":
                if rt["remaining"] <= 0:
                    hd = {**rate_headers(rt)}
                    msg = f"API rate limit exceeded for user ID {Rest(w, api, html, me).user(me)['id']}."
                    if path == "/graphql":
                        return 200, {"errors": [{"type": "RATE_LIMITED", "message": msg}]}, hd
                    return (
                        403,
                        {
                            "message": msg
                            + " If you reach out to GitHub Support for help, please include the request ID.",
                            "documentation_url": DOC + "/overview/rate-limits-for-the-rest-api",
                            "status": "403",
                        },
                        hd,
                    )
                rt["remaining"] -= 1
                rt["used"] += 1
            headers.update(rate_headers(rt))
            headers["X-OAuth-Scopes"] = ", ".join(s.get("scopes", ["read:org", "repo"]))
            try:
                w.sync()
                if path == "/graphql":
                    if not authed:
                        return (
                            401,
                            {
                                "message": "This endpoint requires you to be authenticated.",
                                "documentation_url": DOC,
                            },
                            headers,
                        )
                    if not isinstance(js, dict) or not js.get("query"):
                        return (
                            400,
                            {"message": "Problems parsing JSON", "documentation_url": DOC},
                            headers,
                        )
                    res, op = w.engine.run(
                        js["query"],
                        js.get("variables") or {},
                        js.get("operationName"),
                        lambda t: graphql_root(w, Rest(w, api, html, me), me, t),
                    )
                    if op:
                        rec["op"], rec["operation"], rec["selection"] = (
                            op["type"],
                            op["name"] or "",
                            show(op["sel"], op["frags"]),
                        )
                    if res.get("errors"):
                        rec["errors"] = [e["message"] for e in res["errors"]]
                    if not op or op["type"] == "mutation":
                        w.save()
                    return 200, res, headers
                st, v = rest(
                    w,
                    self.command,
                    path,
                    q,
                    js if isinstance(js, dict) else {},
                    me,
                    api,
                    html,
                    authed,
                )
                if isinstance(v, Page):
                    v, link = self.page(v, path, q, api)
                    if link:
                        headers["Link"] = link
                if self.command != "GET":
                    w.save()
                return st, v, headers
            except Refuse as e:
                d = {"message": e.message, "documentation_url": DOC, "status": str(e.status)}
                if e.errors:
                    d["errors"] = e.errors
                return e.status, d, {**headers, **e.headers}
            except Exception as e:
                sys.stderr.write(f"fake-github error: {e!r}\n")
                import traceback

                traceback.print_exc()
                return 500, {"message": f"fake-github: {e!r}"}, headers

    def page(self, v, path, q, api):
        pp, pg = intarg(q, "per_page", 30), intarg(q, "page", 1, 10**6)
        n = len(v.items)
        last = max(1, -(-n // pp))
        part = [v.render(x) for x in v.items[(pg - 1) * pp : pg * pp]]
        out = {**v.extra, "total_count": n, v.wrap: part} if v.wrap else part
        w = self.server.fake.w
        p2 = re.sub(r"^/repos/[^/]+/[^/]+", f"/repositories/{w.s['repository']['id']}", path)
        u = lambda k: f"<{api}{p2}?{urllib.parse.urlencode({**q, 'page': k})}>"
        links = []
        if pg > 1:
            links += [f'{u(pg - 1)}; rel="prev"']
        if pg < last:
            links += [f'{u(pg + 1)}; rel="next"', f'{u(last)}; rel="last"']
        if pg > 1:
            links += [f'{u(1)}; rel="first"']
        return out, ", ".join(links)

    def control(self, path, body):
        srv = self.server.fake
        js = json.loads(body) if body else {}
        try:
            if path == "/log":
                if self.command == "DELETE":
                    srv.log_items.clear()
                return self.send(200, srv.log_items)
            if path == "/state" and self.command == "GET":
                return self.send(200, srv.w.s)
            if path == "/apply":
                return self.send(200, {"result": srv.apply(js if isinstance(js, list) else [js])})
            self.send(
                404,
                {
                    "message": "no such control; GET/DELETE /_fake/log, GET /_fake/state, POST /_fake/apply"
                },
            )
        except Refuse as e:
            self.send(e.status, {"message": e.message})
        except Exception as e:
            self.send(500, {"message": repr(e)})


def rate_headers(r):
    return {
        "X-RateLimit-Limit": r["limit"],
        "X-RateLimit-Remaining": r["remaining"],
        "X-RateLimit-Used": r["used"],
        "X-RateLimit-Reset": r["reset"],
        "X-RateLimit-Resource": r.get("resource", "core"),
    }


def deep(a, b):
    """JSON merge patch (null deletes)."""
    if not isinstance(b, dict):
        return b
    out = dict(a) if isinstance(a, dict) else {}
    for k, v in b.items():
        if v is None:
            out.pop(k, None)
        elif v == "__null__":
            out[k] = None
        else:
            out[k] = deep(out.get(k), v)
    return out


class Fake:
    def __init__(self, w, log):
        self.w, self.log_path, self.log_items, self.count = w, log, [], 0
        self.llock = threading.Lock()

    def record(self, rec):
        with self.llock:
            self.log_items.append(rec)
            if self.log_path:
                with open(self.log_path, "a") as f:
                    f.write(json.dumps(rec) + "\n")

    def take_fault(self, method, path, op, js):
        for f in self.w.s["faults"]:
            m = f.get("match", {})
            if m.get("method") and m["method"] != method:
                continue
            if m.get("path") and not re.search(m["path"], path):
                continue
            if m.get("operation") and not re.search(m["operation"], op or ""):
                continue
            if m.get("text") and not re.search(
                m["text"], (js or {}).get("query", "") if isinstance(js, dict) else ""
            ):
                continue
            if f.get("after", 0) > 0:
                f["after"] -= 1
                continue
            if f.get("times", 1) == 0:
                continue
            f["times"] = f.get("times", 1) - 1 if f.get("times", 1) > 0 else -1
            return f
        return None

    def apply(self, cmds):
        """[{"do": ...}] test controls; also the "control" of a fault's action (moves the head between two calls)."""
        w, out = self.w, []
        with w.lock:
            for c in cmds if isinstance(cmds, list) else [cmds]:
                do = c["do"]
                r = None
                if do == "patch":  # JSON merge patch on the whole state
                    w.s.update(deep(w.s, c["state"]))
                elif do == "item":  # {"number":n,"set":{...}}
                    x = w.issue(c["number"]) or w.pull(c["number"])
                    x.update(c["set"])
                elif do == "append":  # {"key":"check_runs","value":{...}}
                    w.s.setdefault(c["key"], []).append(c["value"])
                elif do == "event":  # {"number":n,"event":{...}}
                    (w.issue(c["number"]) or w.pull(c["number"]))["timeline"].append(
                        {"at": w.now(), **c["event"]}
                    )
                elif do == "commit":  # {"branch":b,"path":p,"content":t,"message":m}
                    r = self.commit(c)
                elif do == "ref":  # {"branch":b,"sha":s|null}
                    (
                        w.git.update("refs/heads/" + c["branch"], c["sha"])
                        if c.get("sha")
                        else w.git.run("update-ref", "-d", "refs/heads/" + c["branch"])
                    )
                elif (
                    do == "queue"
                ):  # {"number":n,"action":"build|mergeable|unmergeable|lock|merge|remove","reason":...}
                    r = w.queue_step(
                        c["number"], c["action"], **{k: c[k] for k in ("reason", "actor") if k in c}
                    )
                elif do == "fault":  # {"fault":{...}}
                    w.s["faults"].append(c["fault"])
                elif do == "clear-faults":
                    w.s["faults"].clear()
                elif do == "rate":  # {"remaining":0,"reset_in":2}
                    w.s["_rate"] = {
                        "limit": c.get("limit", 5000),
                        "remaining": c["remaining"],
                        "used": 0,
                        "reset": int(time.time()) + c.get("reset_in", 3600),
                        "resource": "core",
                    }
                elif do == "merge":  # as another person would
                    r = w.merge(
                        w.pull(c["number"]),
                        c.get("method", "merge"),
                        None,
                        c.get("actor", w.s["viewer"]),
                    )
                else:
                    raise Refuse(400, f"unknown control {do}")
                out.append(r)
            w.sync()
            w.save()
        return out

    def commit(self, c):
        g = self.w.git
        old = g.branch(c["branch"])
        blob = g.run("hash-object", "-w", "--stdin", input=c.get("content", "").encode())[1].strip()
        idx = os.path.join(g.dir, f"fake-index-{os.getpid()}-{threading.get_ident()}")
        env = {"GIT_INDEX_FILE": idx}
        try:
            if old:
                g.run("read-tree", old, env=env)
            g.run(
                "update-index",
                "--add",
                "--cacheinfo",
                f"100644,{blob},{c.get('path', 'file.txt')}",
                env=env,
            )
            tree = g.run("write-tree", env=env)[1].strip()
        finally:
            if os.path.exists(idx):
                os.unlink(idx)
        new = g.commit_tree(tree, [old] if old else [], c.get("message", "A commit"))
        g.update("refs/heads/" + c["branch"], new)
        return new


class UnixServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    address_family, daemon_threads = socket.AF_UNIX, True
    request_queue_size = 64

    def server_bind(self):
        try:
            os.unlink(self.server_address)
        except FileNotFoundError:
            pass
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = "localhost", 0

    def get_request(self):
        c, _ = self.socket.accept()
        return c, ("local", 0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--socket", required=True)
    ap.add_argument("--repo", required=True)
    ap.add_argument("--state", required=True)
    ap.add_argument("--log")
    ap.add_argument("--no-save", action="store_true", help="keep the state file as it was")
    ap.add_argument("--ready", help="file to make once listening")
    a = ap.parse_args()
    w = World(a.repo, a.state, not a.no_save)
    w.engine = Engine(os.path.join(HERE, "schema.min.json.gz"))
    server = UnixServer(a.socket, Handler)
    server.fake = Fake(w, a.log)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    if a.ready:
        with open(a.ready, "w") as ready:
            ready.write(str(os.getpid()))
    stop = threading.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sig, lambda *_: stop.set())
    stop.wait()
    server.shutdown()


if __name__ == "__main__":
    main()
