# SPDX-License-Identifier: ISC
"""What a process makes of a call that fails: allocations and system calls of
one process are made to fail one after the other (fault.c) while requests of
all kinds are made.  Each is answered or closed in time, no answer is wrong,
nothing dies of a signal and the service goes on.  Needs "make faulty"."""
import io
import mmap
import os
import random
import re
import struct
import tarfile
import time
import unittest

from abxtest import (ADMIN, BUILD, LONG, Case, Conn, Service, Wrong, events,
                     needs_root, timeout, told, until)

PROGRAMS = os.path.join(BUILD, "fault")
WHO = ("abx-listener", "abx-monitor", "abx-pathd", "worker", "abx-execd")
ALLOC, CALLS = 1, 2
ENOMEM, EMFILE, EIO, ENOSPC, EAGAIN = 12, 24, 5, 28, 11
# as they fail in life; 0 is a short count
ERRORS = {"read": 0, "write": 0, "pread": 0, "pwrite": ENOSPC, "splice": EAGAIN,
          "sendfile": EAGAIN, "accept4": EMFILE, "socketpair": EMFILE,
          "pipe2": EMFILE, "epoll_ctl": ENOMEM, "fork": EAGAIN, "open": EMFILE,
          "memfd_create": EMFILE, "openat": EMFILE, "syscall": EMFILE,
          "fcntl": EMFILE, "ftruncate": EIO, "fsync": EIO, "renameat": ENOSPC,
          "renameat2": ENOSPC, "linkat": ENOSPC, "mkdirat": ENOSPC,
          "posix_spawn": EAGAIN, "inotify_add_watch": ENOSPC,
          "inotify_init1": EMFILE}
TIME = 5  # of one request, in seconds
SECONDS = 600  # of a test
BIG = bytes(range(256)) * 1600


class Page:
    """The page that fault.c reads."""

    HEAD = struct.Struct("16sIIIiIIII16siI")
    TRACES, DEPTH = 16384, 24
    HASHES = (HEAD.size + 7) // 8 * 8 + 8 * DEPTH
    NAMES = HASHES + 8 * TRACES
    SIZE = NAMES + 16 * TRACES

    def __init__(self, path):
        with open(path, "wb") as f:
            f.truncate(self.SIZE)
        os.chmod(path, 0o666)
        with open(path, "r+b") as f:
            self.m = mmap.mmap(f.fileno(), self.SIZE)

    def arm(self, who, what, at=0, error=ENOMEM, trace=0):
        self.off()
        head = self.HEAD.pack(b"", what, at, 1, error, 0, 0, trace, 0, b"",
                              0, 0)
        self.m[16:self.HEAD.size] = head[16:]
        self.m[:16] = who.encode().ljust(16, b"\0")

    def off(self):
        self.m[:16] = bytes(16)

    def fired(self):
        return self.HEAD.unpack(self.m[:self.HEAD.size])[6] > 0

    def trace(self):
        """[(place, name)] of the calls since it was armed."""
        n = self.HEAD.unpack(self.m[:self.HEAD.size])[8]
        places = struct.unpack(f"{n}Q",
                               self.m[self.HASHES:self.HASHES + 8 * n])
        return [(places[i], self.m[self.NAMES + 16 * i:][:16]
                 .rstrip(b"\0").decode()) for i in range(n)]


class Faulty(Service):
    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.argv = [a.replace(f"{BUILD}/abxd", f"{PROGRAMS}/abxd")
                     for a in self.argv]
        self.rough = True  # processes begin anew


def tar(**members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in members.items():
            m = tarfile.TarInfo(name)
            m.size = len(data)
            t.addfile(m, io.BytesIO(data))
    return out.getvalue()


def members(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as t:
        return {m.name: t.extractfile(m).read() for m in t if m.isfile()}


def steady(value):
    """A JSON answer without what differs each time, and without what says
    that not all could be looked at."""
    if isinstance(value, dict):
        return {k: steady(v) for k, v in value.items() if k not in (
            "request_id", "etag", "mtime", "duration_ms", "usage", "pid",
            "uptime_s", "memory_free", "id", "protect_partial")}
    return [steady(v) for v in value] if isinstance(value, list) else value


def apart(good, got):
    """Where two values begin to differ."""
    a, b = repr(good), repr(got)
    n = len(os.path.commonprefix([a, b]))
    at = max(n - 100, 0)
    return f"  expected: {a[at:n + 200]}\n  got:      {b[at:n + 200]}"


@needs_root
@unittest.skipUnless(LONG, "a search for faults, which takes minutes: "
                     "ABX_LONG=1")
class Faults(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        w = cls.world
        w.put("w/t/a", "hello\n")
        w.put("w/t/sub/x.txt", "hello below\n")
        w.put("w/t/big", BIG)
        w.put("w/im/old", "old")
        w.put("w/t2/x", "")
        for i in range(30):
            w.put(f"w/t/many/{i}", "x")
        w.own()
        cls.page = Page(PROGRAMS + "/fault.ctl")
        cls.addClassCleanup(os.unlink, PROGRAMS + "/fault.ctl")
        cls.svc = Faulty(w, {
            "allow_lint_errors": True, "restart_limit": 1000, "rules": [
                {"allow": ["files.**", "group:files", "core.*"],
                 "paths": {"roots": [w.w]}},
                {"allow": ["commands.run", "process.*"],
                 "limits": {"concurrency": 64}, "commands": {
                     "allow": ["sh -c ...", "cat"], "cwd": w.w,
                     "timeout": "20s"}}]})
        cls.svc.start()

    # requests: each returns what it should always be, or raises

    def bytes_of(self, target):
        r = self.svc.get(target, timeout=TIME)
        return r.status, r.body

    def json_of(self, *args):
        r = self.svc.call(*args, timeout=TIME)
        return r.status, steady(r.json)

    def health(self, svc=None):
        return self.json_of("GET", "/health")

    def capabilities(self):
        return self.json_of("GET", "/capabilities")

    def listing(self):
        return self.json_of("GET", "/files/list?path=t&recursive=true"
                            "&sort=name")

    def download(self):
        return self.bytes_of("/files/download-stream?path=t/big")

    def search(self):
        return self.json_of("POST", "/files/search", {
            "root": "t", "pattern": "below", "kind": "content"})

    def export(self):
        status, body = self.bytes_of("/files/export?path=t")
        return status, members(body) if status == 200 else body

    def upload(self):
        self.world.put("w/up/f", b"old")
        self.world.own("w/up")
        r = self.svc.upload("up/f", BIG, timeout=TIME)
        got = self.world.get("w/up/f")
        if got not in (b"old", BIG) or (r.status == 200 and got != BIG):
            raise Wrong(f"{len(got)} bytes are there after {r}")
        return r.status, steady(r.json)

    def import_(self):
        r = self.svc.call("PUT", "/files/import?path=im",
                          tar(one=b"1" * 3000, two=b"2"), timeout=TIME)
        for name, want in (("one", b"1" * 3000), ("two", b"2")):
            try:
                if self.world.get("w/im/" + name) != want:
                    raise Wrong(f"{name} is half there after {r}")
            except FileNotFoundError:
                if r.status == 200:
                    raise Wrong(f"{name} is not there after {r}")
        return r.status, steady(r.json)

    def changes(self, name, *call):
        """A call that makes w/NAME: refused by a worker, it did nothing."""
        try:
            os.unlink(self.world / f"w/{name}")
        except FileNotFoundError:
            pass
        status, body = None, b""
        try:
            status, body = self.json_of(*call)
        finally:
            if status not in (200, 201) and self.who == "worker" and \
                    os.path.exists(self.world / f"w/{name}"):
                raise Wrong(f"{name} is there after {status} {body}")
        return status, body

    def copy(self):
        return self.changes("t2/copy", "POST", "/files/copy", {
            "src": "t/big", "dst": "t2/copy"})

    def archive(self):
        return self.changes("t2/arc.tar", "POST", "/files/archive", {
            "sources": ["t/sub", "t/a"], "dest": "t2/arc.tar"})

    def run_(self):
        status, body = self.json_of("POST", "/commands/run", {
            "argv": ["sh", "-c", "cat; echo err >&2; exit 3"],
            "stdin": "given " * 2000})
        if status == 200 and body["lost"]:
            return 503, b""  # it says so
        return status, body

    def stream(self):
        r = self.svc.call("POST", "/commands/run", {
            "argv": ["cat"], "stdin": "given", "stream": True}, timeout=TIME)
        if r.status != 200:
            return r.status, r.body
        got = events(r.body)
        if not got or got[-1][0] != "exit":
            raise Wrong(f"a stream without its end: {r}")
        if got[-1][1]["lost"]:
            return 503, b""  # it says so
        return 200, b"".join(told(d) for e, d in got if e == "stdout")

    REQUESTS = ("health", "capabilities", "listing", "download", "search",
                "export", "upload", "import_", "copy", "archive", "run_",
                "stream")
    who = None  # the process whose calls fail

    # one failure

    def well(self):
        """The service answers, and can do all that it could."""
        try:
            return self.svc.get("/health", timeout=2).status == 200 and \
                self.svc.stat("t/a", timeout=2).status == 200 and \
                self.svc.run("cat", timeout_=2).status == 200
        except (OSError, EOFError, Wrong):
            return False

    def once(self, request, good, who, what, at, error, name):
        where = f"{request}: {who}, {name} {at}, errno {error}"
        logged = len(self.svc.logged())
        self.page.arm(who, what, at, error)
        self.who = who
        began = time.monotonic()
        try:
            got = getattr(self, request)()
        except TimeoutError:
            self.fail(f"{where}: no answer in {TIME} s")
        except (EOFError, ConnectionError):
            got = None, "closed"
        except Wrong as e:
            if "connection ended within" not in str(e):
                self.fail(f"{where}: {e}")
            got = None, "closed"
        finally:
            self.page.off()
        if not self.page.fired():
            return
        self.under(time.monotonic() - began, TIME, where)
        if got[0] == 200 and got != good:
            self.fail(f"{where}: a wrong answer\n" + apart(good, got))
        if self.svc.proc.poll() is not None:
            self.fail(f"{where}: the service is gone\n{self.svc.tail()}")
        if not until(5, self.well, 0.03):
            self.fail(f"{where}: it does not recover\n{self.svc.tail()}")
        died = re.findall(r"^.*(?:died of signal (?!9\b)\d+|filter).*",
                          self.svc.logged()[logged:], re.M)
        self.eq(died, [], where)

    def places(self, request, what):
        """[(who, nth, name)], one for each way that leads to a call."""
        found = []
        for who in WHO:
            self.page.arm(who, what, trace=1)
            getattr(self, request)()
            time.sleep(0.02)
            self.page.off()
            first = {}
            for i, (place, name) in enumerate(self.page.trace(), 1):
                first.setdefault(place, (who, i, name))
            found += first.values()
        return found

    def campaign(self, what):
        work, good = [], {}
        for request in self.REQUESTS:
            getattr(self, request)()
            good[request] = getattr(self, request)()
            self.among(good[request][0], (200, 201), request)
            for who, at, name in self.places(request, what):
                if what == ALLOC or name in ERRORS:
                    work.append((request, who, at, name))
        random.shuffle(work)
        end = time.monotonic() + SECONDS
        for request, who, at, name in work:
            if time.monotonic() > end:
                break
            self.once(request, good[request], who, what, at,
                      ENOMEM if what == ALLOC else ERRORS[name], name)

    def test_protected_names(self):
        """What cannot be looked at for want of descriptors or memory is not
        taken for missing: nothing runs then."""
        w = self.world
        kept = [".git/config", ".git/hooks/x", ".git/modules/m/config",
                "in/side/.git/config", "real/settings"]
        for name in kept + [".git/modules/m/HEAD"]:
            w.put("w/repo/" + name, "before")
        w.link("w/repo/.vscode", "real")
        w.own("w/repo")
        args = {"cwd": "repo", "argv": [
            "sh", "-c", "for f in $*; do (echo after > $f) 2>/dev/null; done; "
            "cat $*", "x", *kept]}
        names = {"openat", "syscall", "open"}  # that make a descriptor
        for what, error in ((CALLS, EMFILE), (ALLOC, ENOMEM)):
            self.page.arm("abx-execd", what, trace=1)
            good = self.ok(self.svc.rpc("commands.run", args)).json["stdout"]
            self.page.off()
            self.eq("after" in good, False, good)
            for at, (_, name) in enumerate(self.page.trace(), 1):
                if what == CALLS and name not in names:
                    continue
                for kept_name in kept:
                    w.put("w/repo/" + kept_name, "before")
                self.page.arm("abx-execd", what, at, error)
                try:
                    r = self.svc.rpc("commands.run", args, timeout=TIME)
                except (EOFError, ConnectionError, Wrong):
                    r = None
                self.page.off()
                until(5, self.well, 0.03)
                failed = self.page.HEAD.unpack(
                    self.page.m[:self.page.HEAD.size])[9].rstrip(b"\0")
                if what == CALLS and failed.decode() not in names:
                    continue  # it was another call this time
                if r and r.status == 200 and not r.json["lost"] and \
                        not r.json["sandbox"].get("protect_partial"):
                    self.eq("after" in r.json["stdout"], False,
                            f"{name} {at}: {r.json}")

    @timeout(900)
    def test_no_memory(self):
        self.campaign(ALLOC)

    @timeout(900)
    def test_calls_that_fail(self):
        self.campaign(CALLS)
