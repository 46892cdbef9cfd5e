# SPDX-License-Identifier: ISC
"""Random conversations: several clients at once, each with requests of all
kinds, right and wrong ones, cut anywhere, pipelined or not, read in gulps or
sips, ended in any way.  Whatever was sent whole has one right answer, in its
place and soon; nothing is left behind; and who asks for little meanwhile has
it at once.

ABX_SEED repeats a run, ABX_ROUNDS makes it longer.
"""
import base64
import contextlib
import hashlib
import io
import json
import os
import random
import socket
import struct
import tarfile
import threading
import time
import traceback

from abxtest import (ADMIN, ASAN, LONG, ROOT, SLOW, Case, Conn, Reply, Wrong,
                     alive, comm, events, family, fds, timeout, told, until)

SEED = int(os.environ.get("ABX_SEED") or random.randrange(1 << 32))
ROUNDS = int(os.environ.get("ABX_ROUNDS") or (
    600 if LONG else 12 if ASAN else 24))
CLIENTS = 6
SOON = 10 * SLOW  # seconds that any answer may take, on a busy machine
SIZES = (0, 1, 2, 6, 100, 4095, 4096, 4097, 16384, 65535, 65536, 65537, 131072,
         262143, 262144, 262145, 1 << 20, 3_000_001)
MANY = 700        # entries of a directory, more than one answer holds


def pattern(n, salt=0):
    """n bytes that differ at each place."""
    unit = b"".join(struct.pack("<I", i * 2654435761 + salt & 0xffffffff)
                    for i in range(16384))
    return (unit * (n // len(unit) + 1))[:n]


class Ask:
    """One request: its bytes, and what its answer must be."""

    def __init__(self, data, check, method="GET", closes=False, runs=False):
        self.data, self.check, self.method = data, check, method
        self.closes = closes  # the connection ends with the answer
        self.runs = runs      # it ends with a client that half-closes


class Sips:
    """A socket that takes little at a time, for a while."""

    def __init__(self, sock, rng):
        self.sock, self.rng, self.left = sock, rng, rng.randrange(300)

    def recv(self, n):
        if self.left > 0:
            self.left -= 1
            n = min(n, self.rng.choice((1, 2, 7, 100, 3000)))
            if self.rng.random() < 0.05:
                time.sleep(self.rng.random() * 0.02)
        return self.sock.recv(n)

    def __getattr__(self, name):
        return getattr(self.sock, name)


class Talker:
    """One client: makes up requests, sends them, reads what comes."""

    def __init__(self, case, name):
        self.case, self.svc = case, case.svc
        self.name = name
        self.rng = random.Random(name)
        self.n = 0
        self.story = []   # for a failure
        self.wrong = None

    # ---- requests ----

    def build(self, method, target, body=None, kind=None, chunked=False,
              token=ADMIN, version="1.1", **headers):
        rng = self.rng
        h = [("Host", "localhost")]
        if token:
            h.append(("Authorization", "Bearer " + token))
        if body is not None:
            if kind:
                h.append(("Content-Type", kind))
            if chunked:
                h.append(("Transfer-Encoding", "chunked"))
            else:
                h.append(("Content-Length", str(len(body))))
        h += [(k.replace("_", "-"), v) for k, v in headers.items()]
        h += [("X-" + "a" * rng.randrange(1, 20), "b" * rng.randrange(200))
              for _ in range(rng.choice((0, 0, 0, 1, 10)))]
        rng.shuffle(h)
        head = f"{method} {target} HTTP/{version}\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in h) + "\r\n"
        return head.encode() + (self.chunks(body) if chunked
                                else body or b"")

    def chunks(self, body):
        rng, out, at = self.rng, [], 0
        most = rng.choice((1, 16, 500, 5000, 65536, 300_000))
        if len(body) // most > 3000:
            most = len(body)
        while at < len(body):
            part = body[at:at + rng.randrange(1, most + 1)]
            at += len(part)
            ext = rng.choice((b"", b"", b"", b";x", b";a=" + b"e" * 240))
            out.append(b"%x%b\r\n%b\r\n" % (len(part), ext, part))
        trailer = rng.choice((b"", b"", b"X-T: 1\r\n",
                              b"A: b\r\n" * rng.randrange(1, 40)))
        return b"".join(out) + b"0\r\n" + trailer + b"\r\n"

    def json(self, op, args, check, **kw):
        rng = self.rng
        body = json.dumps(args).encode()
        body += b" " * rng.choice((0, 0, 0, 3, 4096))
        runs = kw.pop("runs", False)
        return Ask(self.build("POST", "/rpc/" + op, body, "application/json",
                              rng.random() < 0.4, **kw), check, "POST",
                   runs=runs)

    def status(self, want, code=None):
        def check(r):
            if r.status != want or (code and r.code != code):
                raise Wrong(f"expected {want} {code}, got {r}")
        return check

    def some(self):
        """A request of any kind."""
        kinds = [k for k in dir(self) if k.startswith("a_")]
        kind = self.rng.choice(kinds)
        self.story.append(kind[2:])
        return getattr(self, kind)()

    def a_health(self):
        return Ask(self.build("GET", "/health", token=self.rng.choice(
            (None, ADMIN))), self.status(200))

    def a_stranger(self):
        return Ask(self.build("GET", "/capabilities", token=None),
                   self.status(401, "auth.required"))

    def a_capabilities(self):
        return Ask(self.build("GET", "/capabilities"), self.status(200))

    def a_wrong_turn(self):
        return Ask(self.build("GET", "/nowhere"),
                   self.status(404, "op.not_enabled"))

    def a_bad_target(self):
        return Ask(self.build("GET", "/files/../x"),
                   self.status(400, "request.bad_target"))

    def a_bad_head(self):
        bad = self.rng.choice((b"A : b\r\n", b"A\x00: b\r\n", b"A: b\n",
                               b"Host: again\r\n"))
        return Ask(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + bad
                   + b"\r\n", self.status(400, "request.bad_framing"),
                   closes=True)

    def a_bad_json(self):
        body = self.rng.choice((b"{", b"{}x", b'{"a":1,"a":2}', b"[]"))
        return Ask(self.build("POST", "/rpc/files.stat", body,
                              "application/json", self.rng.random() < 0.5),
                   self.status(400, "request.bad_json"), "POST")

    def a_bad_chunk(self):
        data = self.build("POST", "/rpc/files.stat", b"", "application/json",
                          True)
        at = data.index(b"\r\n\r\n") + 4
        return Ask(data[:at] + b"2\r\n{}x\r\n0\r\n\r\n",
                   self.status(400, "request.bad_framing"), "POST",
                   closes=True)

    def a_bad_type(self):
        body = pattern(self.rng.randrange(1, 9000))
        return Ask(self.build("POST", "/rpc/files.stat", body, "text/plain"),
                   self.status(415), "POST", closes=True)

    def a_body_for_nothing(self):
        return Ask(self.build("GET", "/health",
                              b"z" * self.rng.randrange(1, 9000)),
                   self.status(200), closes=True)

    def a_last_one(self):
        return Ask(self.build("GET", "/health", Connection="close"),
                   self.status(200), closes=True)

    def an_old_one(self):
        return Ask(self.build("GET", "/health", version="1.0"),
                   self.status(200), closes=True)

    def a_stat(self):
        size = self.rng.choice(SIZES)

        def check(r):
            if r.status != 200 or r.json["size"] != size:
                raise Wrong(f"size {size}: {r}")
        if self.rng.random() < 0.5:
            return Ask(self.build("GET", f"/files/stat?path=f{size}"), check)
        return self.json("files.stat", {"path": f"f{size}"}, check)

    def a_stat_of_nothing(self):
        return self.json("files.stat", {"path": "none"},
                         self.status(404, "fs.not_found"))

    def a_denied_one(self):
        return self.json("files.stat", {"path": "/etc/passwd"},
                         self.status(403))

    def a_download(self):
        size = self.rng.choice(SIZES)
        want = pattern(size)

        def check(r):
            if r.status != 200 or r.body != want:
                raise Wrong(f"f{size}: {r.status}, {len(r.body)} bytes")
        return Ask(self.build("GET", f"/files/download-stream?path=f{size}"),
                   check)

    def a_range(self):
        size = self.rng.choice(SIZES[1:])
        first = self.rng.randrange(size)
        last = self.rng.randrange(first, size + 10)
        want = pattern(size)[first:last + 1]

        def check(r):
            if r.status != 206 or r.body != want:
                raise Wrong(f"f{size} {first}-{last}: {r.status}, "
                            f"{len(r.body)} bytes")
        return Ask(self.build("GET", f"/files/download-stream?path=f{size}",
                              Range=f"bytes={first}-{last}"), check)

    def a_range_beyond(self):
        return Ask(self.build("GET", "/files/download-stream?path=f100",
                              Range="bytes=100-"), self.status(416))

    def a_head(self):
        size = self.rng.choice(SIZES)

        def check(r):
            if r.status != 200 or r.header("content-length") != str(size):
                raise Wrong(f"HEAD of f{size}: {r} {r.headers}")
        return Ask(self.build("HEAD", f"/files/download-stream?path=f{size}"),
                   check, "HEAD")

    def a_head_of_nothing(self):
        return Ask(self.build("HEAD", "/files/download-stream?path=none"),
                   self.status(404), "HEAD")

    def a_download_as_json(self):
        size = self.rng.choice(SIZES[:-2])

        def check(r):
            got = r.json["content"]
            got = base64.b64decode(got) if r.json["encoding"] == "base64" \
                else got.encode()
            if got != pattern(size):
                raise Wrong(f"f{size} as JSON: {len(got)} bytes")
        return Ask(self.build("GET", f"/files/download?path=f{size}"), check)

    def a_list(self):
        more = self.rng.choice(("", "&sort=name"))

        def check(r):
            names = [e["name"] for e in r.json["entries"]]
            if (sorted(names) if not more else names) != [
                    f"entry-{i:04}" for i in range(MANY)]:
                raise Wrong(f"{len(names)} entries")
        return Ask(self.build("GET", "/files/list?path=many" + more), check)

    def a_search(self):
        def check(r):
            if len(r.json["matches"]) != 100:
                raise Wrong(f"matches: {r}")
        return self.json("files.search", {
            "root": "many", "pattern": "entry-03*", "kind": "name"}, check)

    def an_export(self):
        def check(r):
            with tarfile.open(fileobj=io.BytesIO(r.body)) as t:
                n = sum(m.isfile() for m in t)
            if r.status != 200 or n != MANY:
                raise Wrong(f"{n} members")
        return Ask(self.build("GET", "/files/export?path=many&format=tar"),
                   check)

    def path(self):
        self.n += 1
        return "up-%s-%d" % (self.name.replace(":", "-"), self.n)

    def an_upload(self):
        rng, size = self.rng, self.rng.choice(SIZES)
        size = max(0, size + rng.choice((0, 0, 1, -1, rng.randrange(5000))))
        path, body = self.path(), pattern(size, self.n)
        extra = {}
        if rng.random() < 0.3:
            extra["Expect"] = "100-continue"

        def check(r):
            if r.status != 201 or r.json["bytes"] != size:
                raise Wrong(f"{path}, {size} bytes: {r}")
            got = self.case.world.get("w/" + path)
            if got != body:
                raise Wrong(f"{path}: {size} bytes sent, {len(got)} there")
            os.unlink(self.case.world / ("w/" + path))
        return Ask(self.build(
            "PUT", "/files/upload-stream?path=" + path, body,
            "application/octet-stream", rng.random() < 0.6, **extra),
            check, "PUT")

    def an_upload_as_json(self):
        rng, path = self.rng, self.path()
        body = pattern(rng.choice(SIZES[:-2]), self.n)

        def check(r):
            if r.status != 201 or self.case.world.get("w/" + path) != body:
                raise Wrong(f"{path}, {len(body)} bytes: {r}")
            os.unlink(self.case.world / ("w/" + path))
        return self.json("files.upload", {
            "path": path, "content": base64.b64encode(body).decode(),
            "encoding": "base64"}, check)

    def a_denied_upload(self):
        body = pattern(self.rng.choice(SIZES[1:]))
        extra = {"Expect": "100-continue"} if self.rng.random() < 0.5 else {}
        return Ask(self.build(
            "PUT", "/files/upload-stream?path=/etc/x", body,
            "application/octet-stream", self.rng.random() < 0.5, **extra),
            self.status(403), "PUT", closes=True)

    def an_upload_too_large(self):
        body = pattern(5_000_001)
        return Ask(self.build(
            "PUT", "/files/upload-stream?path=" + self.path(), body,
            "application/octet-stream", self.rng.random() < 0.5),
            self.status(413, "limit.max_bytes"), "PUT", closes=True)

    def a_broken_upload(self):
        data = self.build("PUT", "/files/upload-stream?path=" + self.path(),
                          b"", "application/octet-stream", True)
        at = data.index(b"\r\n\r\n") + 4
        return Ask(data[:at] + self.rng.choice((
            b"5\r\nhelloX", b"x\r\n", b"0\r\n\n")) + b"\r\n" * 2,
            self.status(400, "request.bad_framing"), "PUT", closes=True)

    def a_wrong_digest(self):
        want = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
        return Ask(self.build(
            "PUT", "/files/upload-stream?path=" + self.path(), b"this",
            "application/octet-stream", self.rng.random() < 0.5,
            Content_Digest=f"sha-256=:{want}:"),
            self.status(400, "fs.digest_mismatch"), "PUT")

    def a_repeat(self):
        """Who comes first makes it, all others hear the same."""
        n = self.rng.randrange(1000)
        # the name of a round, so that a key is used in one round only
        at = self.name.rpartition(":")[0].replace(":", "-") + f"-{n % 3}"

        def check(r):
            if r.status != 201 or r.json["path"] != "dirs/" + at:
                raise Wrong(f"repeat {at}: {r}")
        return self.json("files.mkdir", {"path": "dirs/" + at}, check,
                         Idempotency_Key="key-" + at)

    def a_run(self):
        rng = self.rng
        data = base64.b64encode(pattern(rng.choice(
            (0, 10, 5000, 65536, 200_000)), 7)).decode()

        def check(r):
            if r.status != 200 or r.json["stdout"] != data \
                    or r.json["exit_code"] != 0:
                raise Wrong(f"cat of {len(data)}: {r}")
        return self.json("commands.run", {"argv": ["cat"], "stdin": data},
                         check, runs=True)

    def a_streamed_run(self):
        data = base64.b64encode(pattern(self.rng.choice(
            (0, 10, 5000, 200_000)), 7)).decode()

        def check(r):
            got = events(r.body)
            out = b"".join(told(d) for e, d in got if e == "stdout")
            if r.status != 200 or out.decode() != data \
                    or got[-1][0] != "exit" or got[-1][1]["exit_code"] != 0:
                raise Wrong(f"streamed cat of {len(data)}: {r.status}, "
                            f"{len(out)} bytes, {got[-1:]}")
        return self.json("commands.run", {
            "argv": ["cat"], "stdin": data, "stream": True}, check, runs=True)

    def a_run_that_does_not_read(self):
        def check(r):
            if r.status != 200 or r.json["exit_code"] != 0:
                raise Wrong(f"true: {r}")
        return self.json("commands.run", {
            "argv": ["true"], "stdin": "x" * 300_000}, check, runs=True)

    def a_loud_run(self):
        def check(r):
            if r.status != 200 or len(r.json["stdout"]) != 300_000 \
                    or r.json["stderr"] != "e\n":
                raise Wrong(f"loud: {r}")
        return self.json("commands.run", {"argv": [
            "sh", "-c", "echo e >&2; head -c 300000 /dev/zero | tr '\\0' x"]},
            check, runs=True)

    # ---- talking ----

    def pieces(self, data):
        """Cut anywhere, into few or many, small or large ones."""
        rng, at = self.rng, 0
        most = rng.choice((1, 3, 50, 1000, 20_000, 1 << 20))
        budget = rng.choice((1, 30, 200))
        while at < len(data):
            n = rng.randrange(1, most + 1) if budget > 0 else len(data)
            budget -= 1
            yield data[at:at + n]
            at += n

    def send(self, c, data):
        for part in self.pieces(data):
            if not c.send(part):
                return False
            if self.rng.random() < 0.05:
                time.sleep(self.rng.random() ** 3 * 0.05)
        return True

    @contextlib.contextmanager
    def sending(self, c, data, shut=False):
        """Send while what is within reads: neither side waits for the
        other then."""
        def go():
            try:
                self.send(c, data)
                if shut:
                    c.s.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # what is read says more
        t = threading.Thread(target=go, daemon=True)
        t.start()
        yield
        t.join()

    def read(self, c, asks):
        """The answers to these, in order."""
        for i, a in enumerate(asks):
            began = time.monotonic()
            try:
                r = c.reply(a.method)
            except (EOFError, TimeoutError) as e:
                raise Wrong(f"answer {i} of {len(asks)} after "
                            f"{time.monotonic() - began:.1f} s: {e!r}")
            try:
                a.check(r)
            except Wrong as e:
                raise Wrong(f"answer {i} of {len(asks)}: {e}")
            except Exception as e:
                raise Wrong(f"answer {i} of {len(asks)}: {e!r} of {r}")
            if a.closes:
                if not c.ended(SOON):
                    raise Wrong(f"answer {i} does not end it: {c.buf[:200]}")
                return

    def abort(self, c, asks):
        """Leave in the middle of it, in any way."""
        rng = self.rng
        data = b"".join(a.data for a in asks)
        try:
            self.send(c, data[:rng.randrange(len(data) + 1)])
        except TimeoutError:
            pass
        how = rng.randrange(4)
        if how == 0:
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           struct.pack("ii", 1, 0))
        elif how == 1:
            try:
                c.s.recv(rng.choice((1, 5000)))
            except (TimeoutError, ConnectionResetError):
                pass
        elif how == 2:
            time.sleep(rng.random() * 0.1)

    def half(self, c, asks):
        """End the sending side within or behind the last of them."""
        whole = asks[:-1] if self.rng.random() < 0.5 else asks
        data = b"".join(a.data for a in whole)
        if whole is not asks:
            last = asks[-1].data
            data += last[:self.rng.randrange(len(last))]
        with self.sending(c, data, True):
            self.read(c, whole)
        if not any(a.closes for a in whole) and not c.ended(SOON):
            # what needs no more to be answered, by a refusal mostly
            r = c.reply()
            if (r.status < 400 and not asks[-1].closes) or not c.ended(SOON):
                raise Wrong(f"half a request is answered: {r}")

    def piped(self, c, asks):
        """Send and read at once."""
        with self.sending(c, b"".join(a.data for a in asks)):
            self.read(c, asks)

    def in_turn(self, c, asks):
        for a in asks:
            with self.sending(c, a.data):
                self.read(c, [a])
            if a.closes:
                return

    def stream(self, c, asks):
        """Ask for what never ends, behind other things, and leave it."""
        rng = self.rng
        what = rng.choice((
            self.build("GET", "/files/watch?path=" + rng.choice(
                ("many", ".&recursive=true"))),
            self.build("POST", "/commands/run", json.dumps({
                "argv": ["sh", "-c", "while :; do echo $$; done"],
                "stream": True}).encode(), "application/json"),
            self.build("POST", "/commands/run", json.dumps({
                "argv": ["sh", "-c", "sleep 50 & echo $$; sleep 50"],
                "stream": True}).encode(), "application/json"),
            self.build("POST", "/commands/run", json.dumps({
                "argv": ["sleep", "50"], "stdin": "x" * 200_000}).encode(),
                "application/json")))
        self.story.append(what[what.index(b"POST" if b"argv" in what else b"GET"):][-90:])
        asks = [a for a in asks if not a.closes]
        with self.sending(c, b"".join(a.data for a in asks)):
            self.read(c, asks)
        self.send(c, what + rng.choice((b"", b"GET /health HT",
                                        self.build("GET", "/health"))))
        if b"sleep\"" not in what and rng.random() < 0.7:
            self.status(200)(self.begun(c))
            for _ in range(rng.randrange(20 if b"while" in what else 2)):
                c.chunk()
        how = rng.randrange(3)
        if how == 0:
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           struct.pack("ii", 1, 0))
        elif how == 1:
            c.s.shutdown(socket.SHUT_WR)
            while c.more():
                c.buf = b""

    def begun(self, c):
        status, headers, raw = c.head()
        return Reply(status, headers, b"", raw)

    def talk(self):
        rng = self.rng
        how = rng.choice((self.abort, self.half, self.piped, self.piped,
                          self.in_turn, self.stream))
        self.story = [how.__name__]
        asks = [self.some() for _ in range(rng.randrange(1, 7))]
        if how == self.half:
            asks = [a for a in asks if not a.runs] or [self.a_health()]
        with Conn(self.svc, timeout=SOON,
                  rcvbuf=rng.choice((0, 0, 2048, 30_000))) as c:
            if rng.random() < 0.5:
                c.s = Sips(c.s, rng)
            if how == self.abort:
                c.s.settimeout(0.2)
            how(c, asks)

    def run(self):
        try:
            self.talk()
        except Exception as e:
            self.wrong = f"{self.name}: {self.story}: {e}\n" + (
                "" if isinstance(e, Wrong) else traceback.format_exc())


class Talk(Case):
    @classmethod
    def fill(cls, w):
        for n in SIZES:
            w.put(f"w/f{n}", pattern(n))
        for i in range(MANY):
            w.put(f"w/many/entry-{i:04}", b"x" * i)
        os.mkdir(w / "w/dirs")

    @classmethod
    def conf(cls, w):
        return {"allow_lint_errors": True, "rules": [
            {"allow": ["files.*", "core.capabilities"],
             "limits": {"max_bytes": 5_000_000, "concurrency": 64},
             "paths": {"roots": [w.w]}},
            {"allow": ["commands.run"], "limits": {"concurrency": 64},
             "commands": {"allow": ["cat", "true", "sh -c ...",
                                    "sleep {int}"], "cwd": w.w,
                          "timeout": "60s", "max_output_bytes": 4_000_000}}]}

    def counts(self):
        """Descriptors, without those of pathd for each of its workers."""
        if not ROOT:
            return None
        return {n: len(fds(p)) - (n == "abx-pathd") * len(alive(family(p)))
                for n, p in self.svc.kids().items()}

    def running(self):
        """What runs below execd."""
        return alive(family(self.svc.kid("abx-execd")))


class Conversations(Talk):
    rounds = ROUNDS

    def watch(self, stop, worst):
        """What a client that asks for little waits for it."""
        with Conn(self.svc, timeout=SOON) as c:
            while not stop.wait(0.05):
                began = time.monotonic()
                c.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.ok(c.reply())
                worst.append(time.monotonic() - began)

    def round(self, name):
        talkers = [Talker(self, f"{name}:{i}") for i in range(CLIENTS)]
        threads = [threading.Thread(target=t.run, daemon=True)
                   for t in talkers]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if wrong := [t.wrong for t in talkers if t.wrong]:
            self.fail(f"ABX_SEED={SEED}\n" + "\n".join(wrong))

    @timeout(3600 if LONG or ROUNDS > 100 else 90)
    def test_conversations(self):
        for i in range(3):  # pools of workers may grow once
            self.round(f"{SEED}:warm-{i}")
        until(5 * SLOW, lambda: not self.running())
        before, kids = self.counts(), self.svc.kids()
        stop, waits = threading.Event(), []
        t = threading.Thread(target=self.watch, args=(stop, waits))
        t.start()
        try:
            for i in range(self.rounds):
                self.round(f"{SEED}:{i}")
        finally:
            stop.set()
            t.join()
        self.health()
        self.eq(self.svc.kids(), kids, "nobody died")
        until(10 * SLOW, lambda: not self.running()
              and self.counts() == before)
        self.eq(self.running(), {}, f"ABX_SEED={SEED}: commands")
        self.eq(self.counts(), before, f"ABX_SEED={SEED}: descriptors")
        waits.sort()
        self.under(waits[len(waits) * 95 // 100], 0.5 * SLOW,
                   f"seconds for health of {len(waits)}")


class UnixConversations(Conversations):
    """The buffers between the two ends are others there, and smaller."""

    rounds = ROUNDS // 3
    unix = "sock"


class Gone(Talk):
    def test_nobody_is_left_to_run_for(self):
        """However much was sent with a command or behind it, it ends with the
        client."""
        health = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for before in (b"", health):
            for more in ({}, {"stdin": "x" * 5000}, {"stdin": "x" * 200_000},
                         {"stream": True}):
                for behind in (b"", health[:20], health * 300):
                    for end in ("close", "half", "at once"):
                        with self.subTest(f"{len(before)} {more.keys()} "
                                          f"{len(behind)} {end}"):
                            self.leave(before + self.svc.build(
                                "POST", "/commands/run",
                                {"argv": ["sleep", "50"], **more}) + behind,
                                end)

    def leave(self, data, end):
        with Conn(self.svc, timeout=SOON) as c:
            c.send(data)
            if end != "at once":
                self.eq(until(SOON, self.sleeping, 0.01), True, "it runs")
            if end != "close":
                c.s.shutdown(socket.SHUT_WR)
                while c.more():
                    c.buf = b""
        self.eq(until(SOON, lambda: not self.running(), 0.01), True, "gone")

    def sleeping(self):
        return "sleep" in [comm(p) for p in self.running()]
