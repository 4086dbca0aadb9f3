#!/usr/bin/env python3
"""Makes the files beside this one: the data directory of a proxy of the first
edition, after three runs. memory.db has tables that cannot be dumped as SQL by
every SQLite, and is kept as it is. Usage: make.py <binary of the first edition>.

1. With the embedded memory: one turn is remembered, and recalled in a second
   conversation, which so has a block.
2. With a Graphiti that keeps one turn, refuses one, accepts one without showing
   it, and forgets a workspace; one answer is interrupted.
3. With a Graphiti that is down: two turns wait. The proxy is killed.

All texts are invented.
"""
import http.server, json, os, re, shutil, signal, sqlite3, subprocess, sys, tempfile, threading, time, urllib.request

down = False
episodes = {}


class Upstream(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = body["messages"][-1]["content"]
        if body.get("stream"):  # and breaks off
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b'data: {"choices":[{"index":0,"delta":{"content":"Half of an ans"}}]}\n\n')
            self.close_connection = True
            return
        answer = {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop",
                  "message": {"role": "assistant", "content": "Noted: " + said.splitlines()[-1]}}]}
        b = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(b)))
        self.end_headers()
        self.wfile.write(b)


class Graphiti(http.server.BaseHTTPRequestHandler):
    def log_message(self, *a):
        pass

    def reply(self, code, value):
        b = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(b)))
        self.end_headers()
        self.wfile.write(b)

    def do_GET(self):
        if down:
            return self.reply(503, {"detail": "down"})
        m = re.match(r"/episodes/([^?]+)", self.path)
        self.reply(200, episodes.get(m[1], []) if m else {"status": "healthy"})

    def do_DELETE(self):
        episodes.pop(self.path.split("/")[-1], None)
        self.reply(200, {"success": True})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        if down:
            return self.reply(503, {"detail": "down"})
        if self.path.startswith("/search"):
            return self.reply(200, {"facts": []})
        texts = " ".join(m["content"] for m in body["messages"])
        if "refuse" in texts:
            return self.reply(422, {"detail": "no"})
        for m in body["messages"]:
            if "unseen" not in texts:
                episodes.setdefault(body["group_id"], []).append({
                    "uuid": str(time.time_ns()), "name": m.get("name") or "", "group_id": body["group_id"], "source": "message",
                    "source_description": m.get("source_description", ""), "created_at": m["timestamp"], "valid_at": m["timestamp"],
                    "content": "%s(%s): %s" % (m.get("role") or "", m["role_type"], m["content"]), "entity_edges": []})
        self.reply(202, {"message": "queued", "success": True})


def serve(handler):
    s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    return "http://127.0.0.1:%d" % s.server_port


binary, here = os.path.abspath(sys.argv[1]), os.path.dirname(os.path.abspath(__file__))
data = tempfile.mkdtemp()
upstream, graphiti = serve(Upstream), serve(Graphiti)
common = ["--set", "data_dir=" + data, "--set", "listen=127.0.0.1:18787", "--set", "admin.listen=127.0.0.1:18788",
          "--set", "upstream.openai=" + upstream, "--set", "identity.owner=user:ada"]
remote = ["--set", "memory.backend=graphiti", "--set", "memory.endpoint=" + graphiti, "--set", "memory.consent=true"]


def proxy(*args):
    p = subprocess.Popen([binary, "serve", *common, *args])
    for _ in range(100):
        try:
            urllib.request.urlopen("http://127.0.0.1:18788/healthz")
            return p
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the proxy does not start")


def chat(session, *said, workspace=None, stream=False):
    """says one thing after the other in a session"""
    messages = []
    for text in said:
        messages.append({"role": "user", "content": text})
        head = {"Content-Type": "application/json", "Authorization": "Bearer sk-test", "X-Graphiti-Session": session}
        if workspace:
            head["X-Graphiti-Workspace"] = workspace
        req = urllib.request.Request("http://127.0.0.1:18787/v1/chat/completions", json.dumps(
            {"model": "m", "messages": messages, **({"stream": True} if stream else {})}).encode(), head)
        try:
            with urllib.request.urlopen(req) as r:
                print(session, r.headers["X-Graphiti-Memory"])
                answer = r.read()
                messages.append(json.loads(answer)["choices"][0]["message"])
        except Exception as e:
            print(session, "interrupted:", e)


def queue():
    return json.load(urllib.request.urlopen("http://127.0.0.1:18788/api/v1/queue"))


p = proxy()
chat("s1", "My sailing boat is called Zephyrine and lies in Flensburg harbour.")
time.sleep(1)
chat("s2", "What is my sailing boat Zephyrine called, and where does it lie?")
time.sleep(1)
p.send_signal(signal.SIGTERM)
p.wait()
shutil.copy(os.path.join(data, "memory.db"), here)

p = proxy(*remote)
chat("s3", "The kept turn is about lighthouses.")
chat("s4", "Please refuse this turn about fog horns.")
chat("s5", "The interrupted turn is about anchors.", stream=True)
chat("s6", "The forgotten turn is about compasses.", workspace="github_repo:example.org/ada/boats")
while (n := queue())["pending"] > 0 or n["dead"] == 0:
    time.sleep(0.2)
subprocess.run([binary, "memory", "forget", "--workspace", "github_repo:example.org/ada/boats", "--yes", *common, *remote], check=True)
chat("s7", "The unseen turn is about sextants.")
time.sleep(1)
down = True
chat("s8", "The first waiting turn is about ropes.", "The second waiting turn is about knots.")
time.sleep(2)
print(queue())
p.kill()
p.wait()

for name in ("spool", "state"):
    db = sqlite3.connect(os.path.join(data, name + ".db"))
    with open(os.path.join(here, name + ".sql"), "w") as f:
        f.write("-- Made by make.py.\nPRAGMA user_version = %d;\n" % db.execute("PRAGMA user_version").fetchone())
        for line in db.iterdump():
            f.write(line + "\n")
print(data, os.listdir(data))
