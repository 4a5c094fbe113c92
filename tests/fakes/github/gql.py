"""A small GraphQL engine (standard library only): parse, validate against GitHub's public schema, execute.

Values a resolver may return for a composite type: a dict of field -> value or callable(args); `Conn(items)` for a
connection; a list of these; None. A dict's "__typename" names the concrete type of an interface or union.
"""

import base64, gzip, json, os, re

TOKEN = re.compile(
    r'''[\s,\ufeff]+|\#[^\n]*|(?P<block>"""(?:\\"""|[^"]|"(?!""))*""")|(?P<str>"(?:\\.|[^"\\\n])*")|'''
    r"""(?P<num>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[_A-Za-z]\w*)|(?P<p>\.\.\.|[!$&()\[\]{}:=@|])"""
)


class GqlError(Exception):
    def __init__(self, message, type=None, path=None, extensions=None):
        super().__init__(message)
        self.message, self.type, self.path, self.extensions = message, type, path, extensions

    def as_dict(self, path=None):
        d = {}
        if self.type:
            d["type"] = self.type
        p = self.path or path
        if p:
            d["path"] = p
        if self.extensions:
            d["extensions"] = self.extensions
        d["locations"] = [{"line": 1, "column": 1}]
        d["message"] = self.message
        return d


class Var(str):
    pass


class Enum(str):
    pass


class Conn:
    def __init__(self, items, **extra):
        self.items, self.extra = list(items), extra


# ---------------------------------------------------------------- parse
def tokens(src):
    pos, out = 0, []
    while pos < len(src):
        m = TOKEN.match(src, pos)
        if not m:
            raise GqlError(f"Parse error on {src[pos:pos+1]!r} at offset {pos}")
        pos = m.end()
        if m.lastgroup:
            out.append((m.lastgroup, m.group()))
    return out + [("eof", "")]


class Parser:
    def __init__(self, src):
        self.t, self.i = tokens(src), 0

    def peek(self, v=None):
        return (
            self.t[self.i]
            if v is None
            else self.t[self.i][1] == v and self.t[self.i][0] in ("p", "name")
        )

    def next(self, v=None, kind=None):
        k, x = self.t[self.i]
        if (v is not None and x != v) or (kind and k != kind):
            raise GqlError(f"Parse error on {x!r} (expected {v or kind})")
        self.i += 1
        return x

    def document(self):
        ops, frags = [], {}
        while self.peek()[0] != "eof":
            if self.peek("{"):
                ops.append({"type": "query", "name": None, "vars": [], "sel": self.selections()})
            elif self.peek("fragment"):
                self.next()
                name = self.next(kind="name")
                self.next("on")
                on = self.next(kind="name")
                self.directives()
                frags[name] = {"on": on, "sel": self.selections()}
            else:
                kind = self.next(kind="name")
                if kind not in ("query", "mutation", "subscription"):
                    raise GqlError(f"Parse error on {kind!r}")
                name = self.next(kind="name") if self.peek()[0] == "name" else None
                vs = []
                if self.peek("("):
                    self.next()
                    while not self.peek(")"):
                        self.next("$")
                        n = self.next(kind="name")
                        self.next(":")
                        ty = self.type()
                        dv = None
                        if self.peek("="):
                            self.next()
                            dv = (self.value(),)
                        vs.append((n, ty, dv))
                    self.next(")")
                self.directives()
                ops.append({"type": kind, "name": name, "vars": vs, "sel": self.selections()})
        return ops, frags

    def type(self):
        if self.peek("["):
            self.next()
            t = "[" + self.type() + "]"
            self.next("]")
        else:
            t = self.next(kind="name")
        if self.peek("!"):
            self.next()
            t += "!"
        return t

    def directives(self):
        out = []
        while self.peek("@"):
            self.next()
            out.append((self.next(kind="name"), self.args() if self.peek("(") else {}))
        return out

    def args(self):
        self.next("(")
        out = {}
        while not self.peek(")"):
            n = self.next(kind="name")
            self.next(":")
            out[n] = self.value()
        self.next(")")
        return out

    def value(self):
        k, x = self.peek()
        if x == "$" and k == "p":
            self.next()
            return Var(self.next(kind="name"))
        if x == "[" and k == "p":
            self.next()
            out = []
            while not self.peek("]"):
                out.append(self.value())
            self.next()
            return out
        if x == "{" and k == "p":
            self.next()
            out = {}
            while not self.peek("}"):
                n = self.next(kind="name")
                self.next(":")
                out[n] = self.value()
            self.next()
            return out
        self.next()
        if k == "block":
            return x[3:-3]
        if k == "str":
            return json.loads(x)
        if k == "num":
            return json.loads(x)
        if k == "name":
            return {"true": True, "false": False, "null": None}.get(x, Enum(x))
        raise GqlError(f"Parse error on {x!r}")

    def selections(self):
        self.next("{")
        out = []
        while not self.peek("}"):
            if self.peek("..."):
                self.next()
                if self.peek("on") or self.peek("{") or self.peek("@"):
                    on = None
                    if self.peek("on"):
                        self.next()
                        on = self.next(kind="name")
                    d = self.directives()
                    out.append({"k": "inline", "on": on, "dir": d, "sel": self.selections()})
                else:
                    n = self.next(kind="name")
                    out.append({"k": "spread", "name": n, "dir": self.directives()})
                continue
            n = self.next(kind="name")
            alias = n
            if self.peek(":"):
                self.next()
                n = self.next(kind="name")
            a = self.args() if self.peek("(") else {}
            d = self.directives()
            out.append(
                {
                    "k": "field",
                    "name": n,
                    "alias": alias,
                    "args": a,
                    "dir": d,
                    "sel": self.selections() if self.peek("{") else None,
                }
            )
        self.next("}")
        return out


def base_type(t):
    return t.strip("[]!") if "[" not in t else re.sub(r"[\[\]!]", "", t)


def show(sel, frags=None):
    """The field selection as one line, for the request log; fragments are written out."""
    out = []
    for s in sel:
        if s["k"] == "field":
            a = ""
            if s["args"]:
                a = (
                    "("
                    + ",".join(
                        f"{k}:{('$' + v) if isinstance(v, Var) else json.dumps(v)}"
                        for k, v in s["args"].items()
                    )
                    + ")"
                )
            n = s["name"] if s["alias"] == s["name"] else f'{s["alias"]}:{s["name"]}'
            out.append(n + a + ("{" + show(s["sel"], frags) + "}" if s["sel"] is not None else ""))
        elif s["k"] == "inline":
            out.append(f'...on {s["on"]}{{' + show(s["sel"], frags) + "}")
        else:
            f = (frags or {}).get(s["name"])
            out.append(
                f'...{s["name"]} on {f["on"]}{{' + show(f["sel"], frags) + "}"
                if f
                else "..." + s["name"]
            )
    return " ".join(out)


# ---------------------------------------------------------------- schema, validate, execute
class Engine:
    def __init__(self, schema_path):
        with gzip.open(schema_path) as f:
            self.types = json.load(f)["types"]

    def implements(self, concrete, on):
        return concrete == on or concrete in self.types.get(on, {}).get("p", ())

    def field(self, tname, fname):
        if fname == "__typename":
            return ["String!", {}]
        if tname == "Query" and fname in ("__type", "__schema"):
            return [
                "__Type" if fname == "__type" else "__Schema!",
                {"name": ["String!", None]} if fname == "__type" else {},
            ]
        return self.types.get(tname, {}).get("f", {}).get(fname)

    def validate(self, op, frags):
        errs = []
        declared, used = {v[0]: v[1] for v in op["vars"]}, set()

        def err(msg, **ext):
            errs.append(
                GqlError(
                    msg,
                    extensions=ext or None,
                    path=[op["type"] + (" " + op["name"] if op["name"] else "")],
                )
            )

        def vals(v):
            if isinstance(v, Var):
                used.add(str(v))
                if str(v) not in declared:
                    err(
                        f"Variable ${v} is used by {op['name'] or 'anonymous ' + op['type']} but not declared",
                        code="variableNotDefined",
                        variableName=str(v),
                    )
            elif isinstance(v, list):
                [vals(x) for x in v]
            elif isinstance(v, dict):
                [vals(x) for x in v.values()]

        def walk(tname, sel, seen=()):
            for s in sel:
                for _, da in s["dir"]:
                    vals(da)
                if s["k"] == "inline":
                    on = s["on"] or tname
                    if on not in self.types:
                        err(
                            f"No such type {on}, so it can't be a fragment condition",
                            code="undefinedType",
                            typeName=on,
                        )
                    else:
                        walk(on, s["sel"], seen)
                    continue
                if s["k"] == "spread":
                    f = frags.get(s["name"])
                    if not f:
                        err(
                            f"Fragment {s['name']} was used, but not defined",
                            code="useAndDefineFragment",
                            fragmentName=s["name"],
                        )
                    elif s["name"] not in seen:
                        if f["on"] not in self.types:
                            err(
                                f"No such type {f['on']}, so it can't be a fragment condition",
                                code="undefinedType",
                                typeName=f["on"],
                            )
                        else:
                            walk(f["on"], f["sel"], seen + (s["name"],))
                    continue
                fd = self.field(tname, s["name"])
                if not fd:
                    err(
                        f"Field '{s['name']}' doesn't exist on type '{tname}'",
                        code="undefinedField",
                        typeName=tname,
                        fieldName=s["name"],
                    )
                    continue
                for a, v in s["args"].items():
                    vals(v)
                    if a not in fd[1]:
                        err(
                            f"Field '{s['name']}' doesn't accept argument '{a}'",
                            code="argumentNotAccepted",
                            name=s["name"],
                            typeName="Field",
                            argumentName=a,
                        )
                for a, (ty, dv) in fd[1].items():
                    if ty.endswith("!") and dv is None and a not in s["args"]:
                        err(
                            f"Field '{s['name']}' is missing required arguments: {a}",
                            code="missingRequiredArguments",
                            className="Field",
                            name=s["name"],
                            arguments=a,
                        )
                b = base_type(fd[0])
                leaf = self.types.get(b, {}).get("k") in ("SCALAR", "ENUM")
                if leaf and s["sel"] is not None:
                    err(
                        f"Selections can't be made on scalars (field '{s['name']}' returns {b} but has selections)",
                        code="selectionMismatch",
                        nodeName=s["name"],
                        typeName=b,
                    )
                elif not leaf and s["sel"] is None:
                    err(
                        f"Field must have selections (field '{s['name']}' returns {b} but has no selections. Did you mean '{s['name']} {{ ... }}'?)",
                        code="selectionMismatch",
                        nodeName=f"field '{s['name']}'",
                        typeName=b,
                    )
                elif not leaf:
                    walk(b, s["sel"], seen)

        walk("Mutation" if op["type"] == "mutation" else "Query", op["sel"])
        for n in declared:
            if n not in used:
                err(
                    f"Variable ${n} is declared by {op['name'] or 'anonymous ' + op['type']} but not used",
                    code="variableNotUsed",
                    variableName=n,
                )
        return errs

    def run(self, text, variables, operation_name, root):
        """-> (response dict, op). `root(op_type)` gives the dict of root field resolvers."""
        try:
            ops, frags = Parser(text).document()
            op = next(
                (o for o in ops if operation_name in (None, "") or o["name"] == operation_name),
                None,
            )
            if not op:
                raise GqlError(f"No operation named {operation_name!r}")
        except GqlError as e:
            return {"errors": [e.as_dict()]}, None
        op["frags"] = frags
        errs = self.validate(op, frags)
        vs = {}
        for n, ty, dv in op["vars"]:
            if n in variables:
                vs[n] = variables[n]
            elif dv is not None:
                vs[n] = dv[0]
            if ty.endswith("!") and vs.get(n) is None:
                errs.append(
                    GqlError(
                        f"Variable ${n} of type {ty} was provided invalid value",
                        extensions={
                            "value": None,
                            "problems": [
                                {"path": [], "explanation": "Expected value to not be null"}
                            ],
                        },
                    )
                )
            elif n in vs and not self.coerces(ty, vs[n]):
                errs.append(
                    GqlError(
                        f"Variable ${n} of type {ty} was provided invalid value",
                        extensions={
                            "value": vs[n],
                            "problems": [
                                {
                                    "path": [],
                                    "explanation": f"Could not coerce value {json.dumps(vs[n])} to {base_type(ty)}",
                                }
                            ],
                        },
                    )
                )
        if errs:
            return {"errors": [e.as_dict() for e in errs]}, op
        self_errors = []

        def resolve(v):
            if isinstance(v, Var):
                return vs.get(str(v))
            if isinstance(v, list):
                return [resolve(x) for x in v]
            if isinstance(v, dict):
                return {
                    k: resolve(x)
                    for k, x in v.items()
                    if not (isinstance(x, Var) and str(x) not in vs)
                }
            return v

        def skip(dirs):
            for d, a in dirs:
                a = {k: resolve(v) for k, v in a.items()}
                if (d == "skip" and a.get("if")) or (d == "include" and not a.get("if")):
                    return True
            return False

        def collect(tname, sel, acc):
            for s in sel:
                if skip(s["dir"]):
                    continue
                if s["k"] == "field":
                    acc.setdefault(s["alias"], []).append(s)
                elif s["k"] == "inline":
                    if s["on"] is None or self.implements(tname, s["on"]):
                        collect(tname, s["sel"], acc)
                else:
                    f = frags[s["name"]]
                    if self.implements(tname, f["on"]):
                        collect(tname, f["sel"], acc)
            return acc

        def complete(ty, v, fields, args, path):
            if callable(v):
                v = v(args)
            ty = ty.rstrip("!")
            if v is None:
                return None
            if ty.startswith("["):
                out = []
                for i, x in enumerate(v):
                    try:
                        out.append(complete(ty[1:-1], x, fields, args, path + [i]))
                    except GqlError as e:
                        self_errors.append(e.as_dict(path + [i]))
                        out.append(None)
                return out
            if self.types.get(ty, {}).get("k") in ("SCALAR", "ENUM"):
                return v
            if isinstance(v, Conn):
                v = connection(
                    v, args, collect(ty, [s for f in fields for s in f["sel"]], {}), path[-1]
                )
            return obj(v.get("__typename") or ty, v, [s for f in fields for s in f["sel"]], path)

        def obj(tname, data, sel, path):
            out = {}
            for alias, fields in collect(tname, sel, {}).items():
                s = fields[0]
                if s["name"] == "__typename":
                    out[alias] = tname
                    continue
                fd = self.field(tname, s["name"])
                p = path + [alias]
                args = {
                    a: (
                        json.loads(dv)
                        if dv and re.match(r'^(true|false|null|-?\d+|"[^"]*")$', dv)
                        else dv
                    )
                    for a, (_, dv) in fd[1].items()
                    if dv is not None
                }
                args.update(
                    {
                        k: resolve(v)
                        for k, v in s["args"].items()
                        if not (isinstance(v, Var) and str(v) not in vs)
                    }
                )
                try:
                    if s["name"] not in data:
                        raise GqlError(
                            f"fake-github does not model {tname}.{s['name']}",
                            type="FAKE_UNSUPPORTED",
                        )
                    out[alias] = complete(fd[0], data[s["name"]], fields, args, p)
                except GqlError as e:
                    self_errors.append(e.as_dict(p))
                    out[alias] = None
            return out

        def connection(c, args, sel, name):
            items, total = list(enumerate(c.items)), len(c.items)
            if (args.get("first") or 0) > 100 or (args.get("last") or 0) > 100:
                raise GqlError(
                    "Requesting more than 100 records on a connection exceeds the `first` limit of 100 records.",
                    type="EXCESSIVE_PAGINATION",
                )
            if (
                args.get("first") is None
                and args.get("last") is None
                and any(f[0]["name"] in ("nodes", "edges") for f in sel.values())
            ):
                raise GqlError(
                    f"You must provide a `first` or `last` value to properly paginate the `{name}` connection.",
                    type="MISSING_PAGINATION_BOUNDARIES",
                )
            if args.get("after"):
                items = [x for x in items if x[0] > uncursor(args["after"])]
            if args.get("before"):
                items = [x for x in items if x[0] < uncursor(args["before"])]
            if args.get("first") is not None:
                items = items[: args["first"]]
            elif args.get("last") is not None:
                items = items[-args["last"] :] if args["last"] else []
            d = {
                "totalCount": total,
                "nodes": [x for _, x in items],
                "edges": [{"cursor": cursor(i), "node": x} for i, x in items],
                "pageInfo": {
                    "hasNextPage": bool(items) and items[-1][0] < total - 1,
                    "hasPreviousPage": bool(items) and items[0][0] > 0,
                    "startCursor": cursor(items[0][0]) if items else None,
                    "endCursor": cursor(items[-1][0]) if items else None,
                },
            }
            d.update(c.extra)
            return d

        data = obj(
            "Mutation" if op["type"] == "mutation" else "Query", root(op["type"]), op["sel"], []
        )
        res = {"data": data}
        if self_errors:
            res["errors"] = self_errors
        return res, op

    def coerces(self, ty, v):
        if v is None:
            return True
        ty = ty.rstrip("!")
        if ty.startswith("["):
            return all(self.coerces(ty[1:-1], x) for x in (v if isinstance(v, list) else [v]))
        if ty == "Int":
            return isinstance(v, int) and not isinstance(v, bool)
        if ty == "String":
            return isinstance(v, str)
        if ty == "Boolean":
            return isinstance(v, bool)
        if ty == "ID":
            return isinstance(v, (str, int))
        t = self.types.get(ty)
        if not t:
            return False
        if t["k"] == "ENUM":
            return v in t["e"]
        if t["k"] == "INPUT_OBJECT":
            return (
                isinstance(v, dict)
                and all(k in t["i"] and self.coerces(t["i"][k][0], x) for k, x in v.items())
                and all(
                    k in v for k, (fty, dv) in t["i"].items() if fty.endswith("!") and dv is None
                )
            )
        return True

    def type_info(self, name):
        t = self.types.get(name)
        if not t:
            return None

        def ref(s):
            if s.endswith("!"):
                return {"kind": "NON_NULL", "name": None, "ofType": ref(s[:-1])}
            if s.startswith("["):
                return {"kind": "LIST", "name": None, "ofType": ref(s[1:-1])}
            return {"kind": self.types.get(s, {}).get("k", "OBJECT"), "name": s, "ofType": None}

        def argl(m):
            return [
                {"name": n, "description": None, "type": ref(ty), "defaultValue": dv}
                for n, (ty, dv) in m.items()
            ]

        return {
            "kind": t["k"],
            "name": name,
            "description": None,
            "fields": lambda a: (
                [
                    {
                        "name": n,
                        "description": None,
                        "args": lambda a2, m=ar: argl(m),
                        "type": ref(ty),
                        "isDeprecated": False,
                        "deprecationReason": None,
                    }
                    for n, (ty, ar) in t.get("f", {}).items()
                ]
                if "f" in t
                else None
            ),
            "inputFields": lambda a: argl(t["i"]) if "i" in t else None,
            "enumValues": lambda a: (
                [
                    {
                        "name": e,
                        "description": None,
                        "isDeprecated": False,
                        "deprecationReason": None,
                    }
                    for e in t["e"]
                ]
                if "e" in t
                else None
            ),
            "possibleTypes": lambda a: [ref(p) for p in t["p"]] if "p" in t else None,
            "interfaces": None,
            "ofType": None,
        }


def cursor(i):
    return base64.b64encode(f"cursor:v2:{i}".encode()).decode()


def uncursor(c):
    try:
        return int(base64.b64decode(c).decode().rsplit(":", 1)[1])
    except Exception:
        raise GqlError(
            f"`{c}` does not appear to be a valid cursor.", type="INVALID_CURSOR_ARGUMENTS"
        )
