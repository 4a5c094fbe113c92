#!/usr/bin/env python3
"""Fake Anthropic Messages API and OpenAI Responses API, scripted by the test.

    vendor.py --port 8088 [--host 127.0.0.1] [--tls CERT KEY] [--log FILE]
                   [--scenario FILE] [--token TOKEN] [--delay SECONDS]

Standard library only. It never goes out to any network. One process serves both vendors:

    POST /v1/messages            Anthropic, streaming (SSE) and not
    POST /v1/messages/count_tokens
    POST /v1/responses           OpenAI, streaming (SSE) and not
    GET  /v1/models              both shapes, by the anthropic-version header
    GET  /__log                  everything received so far, as JSON (for assertions)

A scenario is a JSON list of steps; each request of the agent's main conversation gets the step
whose number is the count of tool calls already in the conversation's history, so the fake is
stateless and a retried request gets the same answer. It is taken from the first of: the text after
"@@SCENARIO" in the conversation (up to "@@END"), the --scenario file, the built-in one. The file may
also hold an object of scenarios: the first whose key stands in the conversation is taken. Steps:

    {"tool": NAME, "input": {…}}     Anthropic tool_use / OpenAI function_call
    {"custom": NAME, "input": TEXT}  OpenAI custom_tool_call (free-form apply_patch)
    {"text": TEXT}                   final answer
    {"json": {…}}                    final structured answer: for Anthropic a StructuredOutput
                                     call when that tool is offered, else text; for OpenAI text
    {"status": 529, "body": {…}}     an HTTP error
    {"hang": SECONDS}                answer nothing for so long, then end the turn
    {"flood": BYTES}                 text of so many bytes
    {"cut": true}                    drop the connection in the middle of the stream
The last step repeats.
"""
import argparse, json, os, re, ssl, sys, threading, time, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ap = argparse.ArgumentParser()
ap.add_argument("--host", default="127.0.0.1")
ap.add_argument("--port", type=int, default=8088)
ap.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
ap.add_argument("--log")
ap.add_argument("--scenario")
ap.add_argument("--token", help="refuse requests that do not carry this token")
ap.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
A = ap.parse_args()

LOG, LOCK = [], threading.Lock()
DEFAULT = [{"text": "hello from the fake vendor"}]
FILE_SCENARIO = json.load(open(A.scenario)) if A.scenario else None


def texts(x):
    """Every string found under a message list, in order."""
    if isinstance(x, str):
        yield x
    elif isinstance(x, list):
        for v in x:
            yield from texts(v)
    elif isinstance(x, dict):
        for k, v in x.items():
            if k in ("text", "content", "input_text"):
                yield from texts(v)


def scenario(conversation):
    for t in texts(conversation):
        m = re.search(r"@@SCENARIO(.*?)@@END", t, re.S)
        if m:
            return json.loads(m.group(1))
    if isinstance(FILE_SCENARIO, dict):
        said = "\n".join(texts(conversation))
        return next((steps for key, steps in FILE_SCENARIO.items() if key in said), DEFAULT)
    return FILE_SCENARIO or DEFAULT


class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    # ---- plumbing
    def record(self, body):
        hdr = {k.lower(): v for k, v in self.headers.items()}
        e = {"t": round(time.time(), 3), "method": self.command, "path": self.path, "headers": hdr, "body": body}
        with LOCK:
            LOG.append(e)
            if A.log:
                with open(A.log, "a") as f:
                    f.write(json.dumps(e) + "\n")

    def read_body(self):
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            raw = b""
            while True:
                n = int(self.rfile.readline().split(b";")[0], 16)
                raw += self.rfile.read(n)
                self.rfile.readline()
                if n == 0:
                    break
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        enc = self.headers.get("content-encoding")
        if enc == "gzip":
            import gzip
            raw = gzip.decompress(raw)
        try:
            return json.loads(raw) if raw else None
        except ValueError:
            return {"__raw": raw[:2000].decode("latin1"), "__encoding": enc}

    def send_json(self, obj, status=200):
        b = json.dumps(obj).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(b)))
        self.send_header("request-id", "req_" + uuid.uuid4().hex)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(b)

    def sse_start(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.send_header("request-id", "req_" + uuid.uuid4().hex)
        self.end_headers()
        self.close_connection = True

    def sse(self, event, data):
        self.wfile.write(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def do_HEAD(self):
        self.record(None)
        self.send_json({})

    def do_GET(self):
        if self.path == "/__log":
            with LOCK:
                return self.send_json(LOG)
        self.record(None)
        if self.path.split("?")[0] in ("/v1/models", "/models"):
            if "anthropic-version" in self.headers:
                return self.send_json({"data": [], "has_more": False, "first_id": None, "last_id": None})
            return self.send_json({"object": "list", "data": [], "models": []})
        self.send_json({"error": {"type": "not_found_error", "message": "no such thing here"}}, 404)

    def do_POST(self):
        body = self.read_body()
        self.record(body)
        path = self.path.split("?")[0]
        if A.token:
            got = self.headers.get("x-api-key") or (self.headers.get("authorization") or "").removeprefix("Bearer ")
            if got != A.token:
                return self.send_json({"type": "error", "error": {"type": "authentication_error", "message": "bad token"}}, 401)
        time.sleep(A.delay)
        if path.endswith("/v1/messages"):
            return self.anthropic(body)
        if path.endswith("/count_tokens"):
            return self.send_json({"input_tokens": 100})
        if path.endswith("/responses"):
            return self.openai(body)
        self.send_json({"error": {"type": "not_found_error", "message": path}}, 404)

    # ---- Anthropic
    def anthropic(self, b):
        tools = {t.get("name") for t in b.get("tools") or []}
        msgs = b.get("messages") or []
        n = sum(1 for m in msgs if m.get("role") == "assistant" and isinstance(m.get("content"), list)
                for c in m["content"] if c.get("type") == "tool_use")
        # A side request (title, summary …) offers no tools: a plain answer.
        steps = scenario(msgs) if tools else [{"text": "ok"}]
        s = steps[min(n, len(steps) - 1)]
        if "status" in s:
            return self.send_json(s.get("body") or {"type": "error", "error": {"type": "overloaded_error", "message": "fake"}}, s["status"])
        if "hang" in s:
            time.sleep(s["hang"])
            s = {"text": "late"}
        if "json" in s and "StructuredOutput" in tools:
            s = {"tool": "StructuredOutput", "input": s["json"]}
        elif "json" in s:
            s = {"text": json.dumps(s["json"])}
        if "flood" in s:
            s = {"text": "x" * s["flood"]}
        if "tool" in s:
            block = {"type": "tool_use", "id": "toolu_" + uuid.uuid4().hex[:24], "name": s["tool"], "input": s["input"]}
            stop = "tool_use"
        else:
            block = {"type": "text", "text": s.get("text", "cut")}
            stop = "end_turn"
        usage = {"input_tokens": 11, "output_tokens": 7, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
        msg = {"id": "msg_" + uuid.uuid4().hex[:24], "type": "message", "role": "assistant", "model": b.get("model"),
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        if not b.get("stream"):
            return self.send_json(dict(msg, content=[block], stop_reason=stop))
        self.sse_start()
        self.sse("message_start", {"type": "message_start", "message": msg})
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start, delta = dict(block, input={}), {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        self.sse("content_block_start", {"type": "content_block_start", "index": 0, "content_block": start})
        if s.get("cut"):
            return
        self.sse("content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta})
        self.sse("content_block_stop", {"type": "content_block_stop", "index": 0})
        self.sse("message_delta", {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
        self.sse("message_stop", {"type": "message_stop"})

    # ---- OpenAI
    def openai(self, b):
        inp = b.get("input") or []
        n = sum(1 for i in inp if isinstance(i, dict) and i.get("type") in
                ("function_call", "custom_tool_call", "local_shell_call"))
        steps = scenario(inp)
        s = steps[min(n, len(steps) - 1)]
        if "status" in s:
            return self.send_json(s.get("body") or {"error": {"type": "server_error", "message": "fake"}}, s["status"])
        if "hang" in s:
            time.sleep(s["hang"])
            s = {"text": "late"}
        if "json" in s:
            s = {"text": json.dumps(s["json"])}
        if "flood" in s:
            s = {"text": "x" * s["flood"]}
        cid = "call_" + uuid.uuid4().hex[:20]
        if "tool" in s:
            item = {"type": "function_call", "id": "fc_" + uuid.uuid4().hex[:20], "call_id": cid, "name": s["tool"],
                    "arguments": json.dumps(s["input"]), "status": "completed"}
            if s.get("namespace"):
                item["namespace"] = s["namespace"]
        elif "custom" in s:
            item = {"type": "custom_tool_call", "id": "ctc_" + uuid.uuid4().hex[:20], "call_id": cid, "name": s["custom"],
                    "input": s["input"], "status": "completed"}
        else:
            item = {"type": "message", "id": "msg_" + uuid.uuid4().hex[:20], "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": s.get("text", "cut"), "annotations": []}]}
        rid = "resp_" + uuid.uuid4().hex[:20]
        usage = {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 7,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 18}
        resp = {"id": rid, "object": "response", "created_at": int(time.time()), "status": "in_progress",
                "model": b.get("model"), "output": [], "usage": None}
        done = dict(resp, status="completed", output=[item], usage=usage)
        if not b.get("stream"):
            return self.send_json(done)
        self.sse_start()
        self.sse("response.created", {"type": "response.created", "response": resp})
        self.sse("response.output_item.added", {"type": "response.output_item.added", "output_index": 0, "item": dict(item, status="in_progress")})
        if s.get("cut"):
            return
        if item["type"] == "message":
            self.sse("response.output_text.delta", {"type": "response.output_text.delta", "item_id": item["id"],
                     "output_index": 0, "content_index": 0, "delta": item["content"][0]["text"]})
        self.sse("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item})
        self.sse("response.completed", {"type": "response.completed", "response": done})


class S(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        e = sys.exc_info()[1]
        if not isinstance(e, (ConnectionError, ssl.SSLError, TimeoutError)):
            super().handle_error(request, client_address)
        else:
            with LOCK:
                LOG.append({"t": time.time(), "error": repr(e)})


srv = S((A.host, A.port), H)
if A.tls:
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(*A.tls)
    srv.socket = ctx.wrap_socket(srv.socket, server_side=True, do_handshake_on_connect=False)
print(f"fake vendor on {A.host}:{srv.server_address[1]} tls={bool(A.tls)} pid={os.getpid()}", flush=True)
srv.serve_forever()
