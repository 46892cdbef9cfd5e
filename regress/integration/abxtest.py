# SPDX-License-Identifier: ISC
"""What the integration tests share: a real service in a directory of its own,
a client that checks every answer it reads, and eyes for what a service has
left behind (processes, descriptors, mounts).

ABX_BUILD names the directory with the programs (default: build), ABX_LONG=1
asks for the long forms.  Nothing here knows how abx is built inside.
"""
import base64
import contextlib
import functools
import grp
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.parse

BUILD = os.path.abspath(os.environ.get("ABX_BUILD", "build"))
ROOT = os.geteuid() == 0
ASAN = os.path.basename(BUILD) == "asan"
WALK = os.path.basename(BUILD) == "walk"  # a kernel without openat2
LONG = os.environ.get("ABX_LONG") == "1"
# how much longer things may take, here and with the sanitizers
FACTOR = int(os.environ.get("ABX_SLOW", "1"))
SLOW = FACTOR * (5 if ASAN else 1)
# the state directory may not lie below a directory that others can write
BASE = "/var/lib" if ROOT else pwd.getpwuid(os.geteuid()).pw_dir
TAG = os.environ.get("ABX_TAG", "abx-test-")  # names what tests leave
RUN_USER = "abx"
# part of every mark by which a test finds its processes: others beside it may
# run the same test.  Digits, so that "sleep 47.OWN" is a number.
OWN = f"{os.getpid():07d}"

# stands in every file that nobody may read; no answer may hold it
MARKER = "abx-marker-5e1f9c"
ADMIN = "admin-token-2b7e151628aed2a6"
ALICE = "alice-token-abf7158809cf4f3c"
BOB = "bob-token-762e7160f38b4da5"
GUEST = "guest-token-6a784d9045190cfe"
TOKENS = {"ABX_T_ADMIN": ADMIN, "ABX_T_ALICE": ALICE, "ABX_T_BOB": BOB,
          "ABX_T_GUEST": GUEST}
AUTH = {"tokens": [
    {"id": "root", "roles": ["admin"], "token_env": "ABX_T_ADMIN"},
    {"id": "alice", "roles": ["staff"], "token_env": "ABX_T_ALICE"},
    {"id": "bob", "roles": ["staff"], "token_env": "ABX_T_BOB"},
    {"id": "guest", "roles": [], "token_env": "ABX_T_GUEST"}]}

READ = ["files.list", "files.stat", "files.download"]
WRITE = ["files.upload", "files.mkdir", "files.move", "files.delete"]

TYPES = {
    400: {"InvalidRequest"}, 401: {"AuthError"}, 403: {"PolicyDenied"},
    404: {"NotEnabled", "NotFound"}, 409: {"Conflict"},
    412: {"PreconditionFailed"}, 413: {"InvalidRequest", "LimitExceeded"},
    415: {"InvalidRequest"}, 416: {"RangeNotSatisfiable"},
    429: {"AuthError", "LimitExceeded"}, 431: {"InvalidRequest"},
    500: {"Internal"}, 503: {"Unavailable"}, 504: {"Unavailable"},
    505: {"InvalidRequest"}, 507: {"Unavailable"}}

# what a healthy service never logs
CRASH = re.compile(
    r".*(?:AddressSanitizer|LeakSanitizer|UndefinedBehavior|runtime error:|"
    r"killed by its system call filter|stack smashing|buffer overflow).*")
DEATH = re.compile(
    r".*(?:died of signal|exited with|breaks the protocol|not everything "
    r"stopped|broken peer).*")


class Wrong(AssertionError):
    """The service did something that no test expects."""


# ---- waiting, processes ----

def until(seconds, test, pause=0.02):
    """The first true value of test() within so many seconds, or its last.
    Time in which a busy machine does not let this process look either does
    not count, nor does what is looked at."""
    seconds *= FACTOR
    while True:
        began = time.monotonic()
        got = test()
        if got or seconds <= 0:
            return got
        time.sleep(pause)
        seconds -= min(time.monotonic() - began, 4 * pause + 0.1)


def proc_stat(pid):
    """(parent, start time, state) of a process, None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            part = f.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(part[1]), int(part[19]), part[0].decode()


def family(pid):
    """{pid: start time} of everything that descends from a process."""
    below = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (s := proc_stat(name)):
            below.setdefault(s[0], []).append((int(name), s[1]))
    found, todo = {}, [pid]
    while todo:
        for child, when in below.get(todo.pop(), ()):
            found[child] = when
            todo.append(child)
    return found


def alive(procs):
    """Those of {pid: start time} that still run; a zombie does not."""
    left = {}
    for pid, when in procs.items():
        s = proc_stat(pid)
        if s and s[1] == when and s[2] not in "ZX":
            left[pid] = when
    return left


def still_there(procs, seconds):
    """Wait for processes to be gone; {pid: name} of those that are not."""
    until(seconds, lambda: not alive(procs))
    return {pid: comm(pid) for pid in alive(procs)}


def kill_all(pids):
    """KILL them; some may just have gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return "?"


def marked(mark):
    """Processes with that text in their command line; it must be of this
    worker's tests alone."""
    assert OWN in mark or TAG in mark, mark
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    if mark.encode() in f.read():
                        found.append(int(name))
            except OSError:
                pass
    return [p for p in found if (proc_stat(p) or "Z")[-1] not in "ZX"]


def status(pid):
    """/proc/PID/status as a dictionary."""
    with open(f"/proc/{pid}/status") as f:
        return {k: v.strip() for k, _, v in
                (line.partition(":") for line in f)}


def fds(pid):
    """{descriptor: what it leads to}; needs root."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            pass
    return found


def mounts(pid):
    with open(f"/proc/{pid}/mountinfo") as f:
        return f.read().count("\n")


def rss(pid):
    """Resident KiB of a process, 0 when it is gone."""
    try:
        return int(status(pid)["VmRSS"].split()[0])
    except (OSError, KeyError):
        return 0


def free_port():
    """A port below those that outgoing connections use."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


# ---- packages ----

def apt(*packages):
    """Install packages; what went wrong, or None."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    get = ["apt-get", "-o", "DPkg::Lock::Timeout=120", "-qq", "-y",
           "--no-install-recommends"]
    for argv in (get + ["install", *packages], get + ["update"],
                 get + ["install", *packages]):
        p = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, text=True)
        if p.returncode == 0 and "install" in argv:
            return None
    return p.stderr.strip()[-300:]


# ---- files ----

class World:
    """A directory with the usual things in it: w (served), r (served
    read-only), and beside them what nobody may touch."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix=TAG, dir=BASE)
        os.chmod(self.dir, 0o755)
        for name in ("conf", "log", "w", "r", "outside", "w-evil"):
            os.mkdir(self / name, 0o755)
        self.w, self.r = self / "w", self / "r"
        self.outside = self / "outside"
        self.put("w/a.txt", "hello\n")
        self.put("w/sub/b.txt", "below\n")
        self.put("w/vault/k.txt", MARKER)
        self.put("w/.env", MARKER)
        self.put("r/x.txt", "fixed\n")
        self.put("outside/secret.txt", MARKER)
        self.put("w-evil/loot.txt", MARKER)

    def __truediv__(self, name):
        return os.path.join(self.dir, name)

    def put(self, name, data=b"", mode=None):
        path = self / name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def get(self, name):
        with open(self / name, "rb") as f:
            return f.read()

    def link(self, name, target):
        path = self / name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
        return path

    def own(self, *names):
        """Give what is served to the user that serves it."""
        if not ROOT:
            return
        user = pwd.getpwnam(RUN_USER)
        for name in names or ("w", "r", "outside", "w-evil"):
            top = os.fsencode(self / name)
            for at, dirs, files in os.walk(top):
                for path in [at] + [os.path.join(at, f)
                                    for f in dirs + files]:
                    os.chown(path, user.pw_uid, user.pw_gid,
                             follow_symlinks=False)

    def remove(self):
        subprocess.run(["rm", "-rf", "--one-file-system", self.dir],
                       check=False)


# ---- HTTP ----

class Reply:
    """One answer.  Reading it has checked what every answer must have."""

    def __init__(self, status_, headers, body, raw):
        self.status, self.headers = status_, headers
        self.body, self.raw = body, raw
        self.continued = False  # 100 Continue came first
        self.secs = 0.0

    def all(self, name):
        return [v for k, v in self.headers if k == name.lower()]

    def header(self, name):
        got = self.all(name)
        return got[0] if len(got) == 1 else None

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        try:
            return self.json.get("code")
        except (ValueError, AttributeError):
            return None

    def __repr__(self):
        return f"<{self.status} {self.body[:400]!r}>"


def strict(reply, head, never=()):
    """Every answer: ids, no-store, framing, the shape of errors."""
    rid = reply.all("x-request-id")
    if len(rid) != 1 or not re.fullmatch(r"r-[A-Za-z0-9_-]{22}", rid[0]):
        raise Wrong(f"X-Request-Id\n  expected: one id\n  got:      {rid}")
    if reply.all("cache-control") != ["no-store"]:
        raise Wrong("Cache-Control\n  expected: no-store\n"
                    f"  got:      {reply.all('cache-control')}")
    if len(reply.all("content-length")) > 1 or (
            reply.all("content-length") and reply.all("transfer-encoding")):
        raise Wrong(f"ambiguous framing of an answer: {reply.headers}")
    if reply.status in (429, 503) and not re.fullmatch(
            "[1-9][0-9]*", reply.header("retry-after") or ""):
        raise Wrong(f"no Retry-After: {reply} {reply.headers}")
    for secret in never:
        if secret.encode() in reply.raw:
            raise Wrong(f"an answer holds {secret!r}: {reply.raw[:600]!r}")
    if reply.status < 400 or head:
        return
    if reply.header("content-type") != "application/json":
        raise Wrong(f"an error that is not JSON: {reply}")
    e = reply.json
    if not {"error", "type", "code", "request_id"} <= set(e) <= {
            "error", "type", "code", "request_id", "op", "details", "reason"}:
        raise Wrong(f"members of an error: {reply}")
    if e["request_id"] != rid[0]:
        raise Wrong(f"request id\n  expected: {rid[0]}\n  got: {reply}")
    if e["type"] not in TYPES.get(reply.status, {e["type"]}):
        raise Wrong(f"class of a {reply.status}\n  expected: "
                    f"{TYPES[reply.status]}\n  got:      {e['type']}")
    if e["code"] == "op.not_enabled" and {"op", "details"} & set(e):
        raise Wrong(f"a 404 that tells something: {reply}")


class Conn:
    """A raw connection.  Sends bytes as they are, reads whole answers."""

    def __init__(self, svc, timeout=20, rcvbuf=0):
        self.svc, self.buf = svc, b""
        if svc.unix:
            self.s = socket.socket(socket.AF_UNIX)
        else:
            self.s = socket.socket()
        if rcvbuf:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.s.settimeout(timeout)
        self.s.connect(svc.unix or ("127.0.0.1", svc.port))
        if not svc.unix:
            self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.s.close()

    def close(self):
        self.s.close()

    def send(self, data):
        """False when the service has already closed."""
        try:
            self.s.sendall(data)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def more(self):
        try:
            part = self.s.recv(1 << 16)
        except ConnectionResetError:
            part = b""
        self.buf += part
        return part

    def take(self, n):
        got, self.buf = [self.buf], b""
        have = len(got[0])
        while have < n:
            try:
                part = self.s.recv(1 << 18)
            except ConnectionResetError:
                part = b""
            if not part:
                raise Wrong("the connection ended within a body; expected "
                            f"{n} bytes, got {have}")
            got.append(part)
            have += len(part)
        whole = b"".join(got)
        self.buf = whole[n:]
        return whole[:n]

    def line(self):
        while b"\r\n" not in self.buf:
            if not self.more():
                raise Wrong(f"the connection ended within a line: "
                            f"{self.buf[:200]!r}")
        out, _, self.buf = self.buf.partition(b"\r\n")
        return out

    def head(self):
        """(status, headers, raw) of the next head."""
        while b"\r\n\r\n" not in self.buf:
            if not self.more():
                raise EOFError(f"no answer, got {self.buf[:200]!r}")
        raw, _, self.buf = self.buf.partition(b"\r\n\r\n")
        lines = raw.split(b"\r\n")
        m = re.fullmatch(rb"HTTP/1\.1 (\d{3}) [ -~]*", lines[0])
        if not m:
            raise Wrong(f"status line {lines[0][:200]!r}")
        headers = []
        for line in lines[1:]:
            h = re.fullmatch(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([ -~]*)",
                             line)
            if not h:
                raise Wrong(f"header line {line[:200]!r}")
            headers.append((h[1].decode().lower(), h[2].decode()))
        return int(m[1]), headers, raw

    def chunk(self):
        """The next chunk of a body, b"" at its end."""
        size = self.line()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            raise Wrong(f"chunk size {size[:80]!r}")
        data = self.take(int(size, 16))
        if self.take(2) != b"\r\n":
            raise Wrong("no line end behind a chunk")
        return data

    def reply(self, method="GET"):
        began, continued = time.monotonic(), False
        code, headers, raw = self.head()
        while code == 100:
            continued = True
            code, headers, raw = self.head()
        r = Reply(code, headers, b"", raw)
        if method == "HEAD" or code in (204, 304):
            pass
        elif r.header("transfer-encoding") == "chunked":
            while data := self.chunk():
                r.body += data
        elif r.header("content-length") is not None:
            r.body = self.take(int(r.header("content-length")))
        else:
            while self.more():
                pass
            r.body, self.buf = self.buf, b""
        r.raw, r.continued = raw + r.body, continued
        r.secs = time.monotonic() - began
        strict(r, method == "HEAD", self.svc.never)
        return r

    def ended(self, seconds=5):
        """Whether the service closes, sending nothing more."""
        self.s.settimeout(seconds)
        try:
            return not self.buf and not self.more()
        except TimeoutError:
            return False

    def rest(self, seconds=5):
        """All that comes until the service closes or falls silent."""
        self.s.settimeout(seconds)
        try:
            while self.more():
                pass
        except TimeoutError:
            pass
        return self.buf


def quoted(path):
    """A query value, of text or bytes."""
    return urllib.parse.quote(path, safe="/")


def events(body):
    """[(event, data)] of a text/event-stream."""
    found = []
    for block in body.decode().split("\n\n"):
        field = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:
                value = value.removeprefix(" ")
                field[name] = field[name] + "\n" + value \
                    if name in field else value
        if "data" in field:
            found.append((field.get("event", "message"),
                          json.loads(field["data"])))
    return found


def told(event):
    """The bytes of an stdout or stderr event."""
    if event["encoding"] == "base64":
        return base64.b64decode(event["data"])
    return event["data"].encode()


# ---- the service ----

class Service:
    """One abxd.  start() waits until it is ready, stop() says what is wrong
    with how it ended."""

    def __init__(self, world, config, env=None, argv=(), auth=True,
                 unix=None, before=(), never=None):
        self.world, self.unix = world, unix
        self.port = free_port()
        self.never = [MARKER, *TOKENS.values()] if never is None else never
        self.rough = False  # the test kills processes of it
        self.audit = world / "log/audit.jsonl"
        self.file = world / "conf/server.json"
        self.log = world / "log/abxd.log"
        listen = {"address": "127.0.0.1", "port": self.port}
        if unix:
            listen = {"unix": unix, "mode": "0600",
                      "group": grp.getgrgid(os.getegid()).gr_name}
        base = {"version": 1, "listen": [listen],
                "state_dir": world / "state",
                "sandbox": {"workspace_root": world / "work"},
                "audit": {"sink": "file:" + self.audit}}
        if auth:
            base["auth"] = AUTH
        base.update(config)
        self.config = base
        self.write(base)
        self.env = {k: v for k, v in os.environ.items()
                    if k in ("PATH", "HOME", "LANG", "USER", "TMPDIR")}
        self.env.update(TOKENS, ABX_TEST_SECRET=MARKER)
        if ASAN:
            self.env["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=1"
        self.env.update(env or {})
        self.argv = [*before, f"{BUILD}/abxd", "-d", "-f", self.file, *argv]
        self.proc, self.seen = None, {}

    def write(self, config, raw=None):
        with open(self.file, "w") as f:
            f.write(raw if raw is not None else json.dumps(config, indent=1))
        os.chmod(self.file, 0o644)

    def spawn(self, **kw):
        with open(self.log, "a") as log:
            self.proc = subprocess.Popen(
                self.argv, env=self.env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd="/", **kw)
        return self

    def start(self, **kw):
        self.spawn(**kw)
        try:
            self.ready()
        except BaseException:
            self.kill()
            raise
        return self

    def ready(self, seconds=20):
        def serves():
            if self.proc.poll() is not None:
                raise Wrong("abxd does not start, it ended with "
                            f"{self.proc.returncode}:\n{self.tail()}")
            try:
                with Conn(self, timeout=5) as c:
                    c.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    return c.reply().status in (200, 401, 404)
            except (OSError, EOFError):
                return False
        if not until(seconds, serves, 0.01):
            raise Wrong(f"abxd does not become ready:\n{self.tail()}")

    def revive(self):
        """A test before killed it; the next one shall not suffer."""
        if self.proc.poll() is not None:
            self.start()

    def family(self):
        """All processes it ever had that were seen, and those it has."""
        self.seen.update(family(self.proc.pid))
        return self.seen

    def kids(self):
        """{name: pid} of the direct children of abxd."""
        found = {}
        for pid in family(self.proc.pid):
            s = proc_stat(pid)
            if s and s[0] == self.proc.pid and s[2] not in "ZX":
                found[comm(pid)] = pid
        return found

    def kid(self, name):
        """The pid of that child, waiting for it to be there."""
        got = until(10, lambda: self.kids().get(name))
        if not got:
            raise Wrong(f"there is no {name}: {self.kids()}")
        return got

    def kill(self):
        procs = self.family()
        if self.proc.poll() is None:
            self.proc.kill()
        self.proc.wait()
        kill_all(still_there(procs, 3))

    def stop(self, sig=signal.SIGTERM):
        """End it.  Raises Wrong when it ends badly or said bad things."""
        wrong = []
        procs = self.family()
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
            try:
                if self.proc.wait(10 * SLOW) != 0:
                    wrong.append(f"abxd exits with {self.proc.returncode}")
            except subprocess.TimeoutExpired:
                wrong.append("abxd does not end on SIGTERM")
                self.kill()
        elif self.proc.returncode and not self.rough:
            wrong.append(f"abxd had ended with {self.proc.returncode}")
        left = still_there(procs, 2 * SLOW)
        kill_all(left)
        if left:
            wrong.append(f"processes are left behind: {left}")
        wrong += self.complaints()
        if wrong:
            raise Wrong("\n".join(wrong) + "\n" + self.tail())

    def complaints(self):
        """What the logs hold that they may not."""
        text = self.logged()
        found = CRASH.findall(text)
        if WALK and "walking with openat2" in text:
            found.append("it walks with openat2")
        if not self.rough:
            found += DEATH.findall(text)
        try:
            with open(self.audit, errors="replace") as f:
                text += f.read()
        except OSError:
            pass
        found += [f"a log holds {s!r}" for s in self.never if s in text]
        return found

    def logged(self):
        try:
            with open(self.log, errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def tail(self, lines=15):
        return "\n".join("    | " + line[:300] for line in
                         self.logged().splitlines()[-lines:])

    def audits(self, want=lambda r: True, seconds=10):
        """Audit records, once one of them is the wanted one."""
        def read():
            try:
                with open(self.audit) as f:
                    self.records = [json.loads(line) for line in f
                                    if line.endswith("\n")]
            except OSError:
                self.records = []
            return any(want(r) for r in self.records)
        until(seconds, read)
        return self.records

    def audit_of(self, reply):
        """The record of that answer, None when there is none."""
        rid = reply.header("x-request-id")
        for r in self.audits(lambda r: r.get("request_id") == rid):
            if r.get("request_id") == rid:
                return r
        return None

    # calls

    def build(self, method, target, body=None, token=ADMIN, headers=None,
              kind=None):
        """The bytes of a request."""
        h = {"Host": "localhost"}
        if token:
            h["Authorization"] = "Bearer " + token
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            h["Content-Type"] = kind or "application/json"
        elif body is not None:
            h["Content-Type"] = kind or "application/octet-stream"
        if body is not None:
            h["Content-Length"] = str(len(body))
        h.update(headers or {})
        head = f"{method} {target} HTTP/1.1\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in h.items() if v is not None)
        return head.encode("latin-1") + b"\r\n" + (body or b"")

    def call(self, method, target, body=None, timeout=30 * SLOW, **kw):
        began = time.monotonic()
        with Conn(self, timeout=timeout) as c:
            c.send(self.build(method, target, body, **kw))
            r = c.reply(method)
        r.secs = time.monotonic() - began
        return r

    def get(self, target, **kw):
        return self.call("GET", target, **kw)

    def rpc(self, op, args=None, **kw):
        return self.call("POST", "/rpc/" + op, args or {}, **kw)

    def list(self, path, more="", **kw):
        return self.get(f"/files/list?path={quoted(path)}{more}", **kw)

    def stat(self, path, **kw):
        return self.get("/files/stat?path=" + quoted(path), **kw)

    def download(self, path, **kw):
        return self.get("/files/download-stream?path=" + quoted(path), **kw)

    def upload(self, path, data, more="", **kw):
        return self.call("PUT", "/files/upload-stream?path=" + quoted(path)
                         + more, data, **kw)

    def run(self, *argv, **args):
        """commands.run of these words, or of one shell script."""
        kw = {k: args.pop(k) for k in ("token", "headers", "timeout_")
              if k in args}
        if "timeout_" in kw:
            kw["timeout"] = kw.pop("timeout_")
        if len(argv) == 1 and " " in argv[0]:
            argv = ("sh", "-c", argv[0])
        return self.rpc("commands.run", {"argv": list(argv), **args}, **kw)


# ---- cases ----

def timeout(seconds):
    """Decorates a test that may take longer than the usual minute."""
    def mark(f):
        f.abx_timeout = seconds
        return f
    return mark


def cc():
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@functools.cache
def userns():
    """Why user namespaces cannot be had, or None."""
    p = subprocess.run(["unshare", "-U", "true"], capture_output=True)
    return None if p.returncode == 0 else p.stderr.decode().strip()


needs_root = unittest.skipUnless(ROOT, "needs root")
hardened_only = unittest.skipIf(
    ASAN, "the sanitizers' runtime makes this meaningless")


class Case(unittest.TestCase):
    """A class that defines conf() gets one service for all its tests."""

    world = svc = None
    unix = None  # the name of a socket in its world, to listen there alone
    longMessage = True

    @classmethod
    def fill(cls, w):
        """Put more into the world before the service starts."""

    @classmethod
    def conf(cls, w):
        return None

    @classmethod
    def setUpClass(cls):
        cls.world = World()
        cls.addClassCleanup(cls.world.remove)
        cls.fill(cls.world)
        cls.world.own()
        if (config := cls.conf(cls.world)) is not None:
            cls.svc = Service(cls.world, config,
                              unix=cls.unix and cls.world / cls.unix)
            cls.svc.start()

    @classmethod
    def tearDownClass(cls):
        if cls.svc:
            cls.svc.stop()

    def setUp(self):
        if self.svc:
            self.svc.revive()

    def start(self, config, world=None, **kw):
        """A service for one test, in a world of its own unless given."""
        if world is None:
            world = World()
            self.addCleanup(world.remove)
            world.own()
        svc = Service(world, config, **kw)
        self.addCleanup(self.end, svc)
        self.svc = svc
        return svc.start()

    def end(self, svc):
        if svc.proc:
            svc.stop()

    # assertions that say what was expected and what came

    def eq(self, got, want, what=""):
        if got != want:
            self.fail(f"{what}\n  expected: {want!r}\n  got:      {got!r}")

    def among(self, got, wanted, what=""):
        if got not in wanted:
            self.fail(f"{what}\n  expected: one of {wanted!r}\n"
                      f"  got:      {got!r}")

    def under(self, got, limit, what=""):
        limit *= FACTOR
        if not got < limit:
            self.fail(f"{what}\n  expected: less than {limit}\n"
                      f"  got:      {got}")

    def ok(self, reply, status_=200):
        if reply.status != status_:
            self.fail(f"\n  expected: {status_}\n  got:      {reply!r}")
        return reply

    def refused(self, reply, status_, *codes, what=""):
        if reply.status != status_ or reply.code not in codes:
            self.fail(f"{what}\n  expected: {status_} {' or '.join(codes)}\n"
                      f"  got:      {reply!r}")
        return reply

    def out(self, reply):
        """stdout of a run that ended well."""
        r = self.ok(reply).json
        if r["exit_code"] != 0:
            self.fail(f"\n  expected: exit 0\n  got:      {r!r}")
        return r["stdout"]

    def health(self, svc=None):
        self.ok((svc or self.svc).get("/health", token=None))
