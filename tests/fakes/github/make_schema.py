#!/usr/bin/env python3
"""Turn the schema.json of npm's @octokit/graphql-schema (MIT; GitHub's public GraphQL schema) into the compact form
server.py validates queries with.

    npm pack @octokit/graphql-schema && tar xzf octokit-graphql-schema-*.tgz
    python3 make_schema.py package/schema.json schema.min.json.gz
"""
import gzip, json, sys


PG = {
    "first": ["Int", None],
    "after": ["String", None],
    "last": ["Int", None],
    "before": ["String", None],
}
# What released gh versions (2.96, 2.103) select on github.com and the npm schema (15.26.1) does not have yet.
# Shapes beyond what gh selects are not known here.
EXTRA_TYPES = {
    "IssueTypeX": {
        "k": "OBJECT",
        "f": {
            "id": ["ID!", {}],
            "name": ["String!", {}],
            "description": ["String", {}],
            "color": ["String!", {}],
        },
    },
    "SubIssuesSummaryX": {
        "k": "OBJECT",
        "f": {"total": ["Int!", {}], "completed": ["Int!", {}], "percentCompleted": ["Int!", {}]},
    },
    "AssigneeConnection": {
        "k": "OBJECT",
        "f": {
            "nodes": ["[Assignee]", {}],
            "totalCount": ["Int!", {}],
            "pageInfo": ["PageInfo!", {}],
            "edges": ["[AssigneeEdge]", {}],
        },
    },
    "AssigneeEdge": {"k": "OBJECT", "f": {"node": ["Assignee", {}], "cursor": ["String!", {}]}},
    "ActorConnectionX": {
        "k": "OBJECT",
        "f": {"nodes": ["[Actor]", {}], "totalCount": ["Int!", {}], "pageInfo": ["PageInfo!", {}]},
    },
}
EXTRA = {
    "PullRequest": {
        "assignedActors": ["AssigneeConnection!", PG],
        "suggestedActors": ["ActorConnectionX!", {**PG, "query": ["String", None]}],
    },
    "Issue": {
        "assignedActors": ["AssigneeConnection!", PG],
        "suggestedActors": ["ActorConnectionX!", {**PG, "query": ["String", None]}],
        "issueType": ["IssueTypeX", {}],
        "parent": ["Issue", {}],
        "subIssues": ["IssueConnection!", PG],
        "blockedBy": ["IssueConnection!", PG],
        "blocking": ["IssueConnection!", PG],
        "subIssuesSummary": ["SubIssuesSummaryX!", {}],
    },
    "Repository": {
        "suggestedActors": [
            "ActorConnectionX!",
            {
                **PG,
                "query": ["String", None],
                "capabilities": ["[String!]", None],
                "loginNames": ["String", None],
            },
        ]
    },
}


def tn(t):
    if t["kind"] == "NON_NULL":
        return tn(t["ofType"]) + "!"
    if t["kind"] == "LIST":
        return "[" + tn(t["ofType"]) + "]"
    return t["name"]


def arg(a):
    return [tn(a["type"]), a.get("defaultValue")]


def main(src, dst):
    s = json.load(open(src, encoding="utf-8"))
    s = s.get("data", s)["__schema"]
    out = {}
    for t in s["types"]:
        d = {"k": t["kind"]}
        if t.get("fields"):
            d["f"] = {
                f["name"]: [tn(f["type"]), {a["name"]: arg(a) for a in f["args"]}]
                for f in t["fields"]
            }
        if t.get("inputFields"):
            d["i"] = {f["name"]: arg(f) for f in t["inputFields"]}
        if t.get("possibleTypes"):
            d["p"] = [p["name"] for p in t["possibleTypes"]]
        if t.get("enumValues"):
            d["e"] = [e["name"] for e in t["enumValues"]]
        out[t["name"]] = d
    for t, fs in EXTRA.items():
        for n, f in fs.items():
            out[t]["f"].setdefault(n, f)
    for t, d in EXTRA_TYPES.items():
        out.setdefault(t, d)
    raw = json.dumps({"types": out}, separators=(",", ":"), sort_keys=True).encode()
    with open(dst, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, compresslevel=9) as g:
        g.write(raw)
    print(f"{len(out)} types, {len(raw)} bytes")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
