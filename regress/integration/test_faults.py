# SPDX-License-Identifier: ISC
"""Files when things break: every process killed in the middle of every
operation that writes, a disk that is full, read-only or over its quota, and
no descriptors left."""
import collections
import io
import os
import pwd
import resource
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import unittest

from abxtest import (LONG, SLOW, Case, Conn, World, Wrong, comm, family,
                     hardened_only, needs_root, proc_stat, quoted, status,
                     still_there, timeout, until)

MINE = [".abx-mine", ".abx-" + "0" * 32]  # of a user who likes such names


def rules(*roots):
    return {"restart_limit": 100, "rules": [
        {"allow": ["files.**", "group:files"], "paths": {
            "roots": list(roots)}},
        {"allow": "commands.run", "commands": {"allow": ["true"],
                                               "cwd": roots[0]}}]}


def tar(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data in members:
            m = tarfile.TarInfo(name)
            m.size, m.mode = len(data), 0o644
            t.addfile(m, io.BytesIO(data))
    return out.getvalue()


def temporaries(top):
    return [n for _, ds, fs in os.walk(top) for n in ds + fs
            if n.startswith(".abx-") and n not in MINE]


def tree(top):
    """{name: content} of everything below."""
    found = {}
    for at, ds, fs in os.walk(top):
        for n in ds:
            found[os.path.relpath(os.path.join(at, n), top)] = None
        for n in fs:
            with open(os.path.join(at, n), "rb") as f:
                found[os.path.relpath(os.path.join(at, n), top)] = f.read()
    return found


class Kill(Case):
    """kill -9 in the middle."""

    VICTIMS = ("abxd", "abx-listener", "abx-monitor", "abx-pathd", "worker",
               "abx-execd")

    @classmethod
    def fill(cls, w):
        for i in range(1500):
            w.put(f"w/many/{i // 100}/{i}", b"x" * 3000)
        w.put("w/noise", os.urandom(60_000_000))

    @classmethod
    def conf(cls, w):
        return rules(w.w)

    def half(self, conn, target, data):
        """An upload of which half has arrived."""
        conn.send(self.svc.build("PUT", target, data[:len(data) // 2],
                                 headers={"Content-Length": str(len(data))}))

    def begin(self, op, conn):
        """Start the operation; return when it is under way."""
        if op == "upload":
            self.half(conn, "/files/upload-stream?path=at/old", b"n" * 400_000)
            time.sleep(0.15)
        elif op == "import":
            self.half(conn, "/files/import?path=at", tar(
                ("old", b"new"), ("more/x", b"y" * 600_000)))
            self.assertTrue(until(10, lambda: temporaries(self.at), 0.002))
        else:
            args = {"copy": {"src": "many", "dst": "at/new"},
                    "archive": {"sources": ["noise", "many"],
                                "dest": "at/new.tar.gz"}}[op]
            conn.send(self.svc.build("POST", "/rpc/files." + op, args))
            if op == "copy":
                self.assertTrue(until(10, lambda: temporaries(self.at),
                                      0.0005))
            else:
                time.sleep(0.2)

    def kill(self, victim):
        procs = dict(self.svc.family())
        if victim == "abxd":
            pids = [self.svc.proc.pid]
        elif victim == "worker":
            pids = [p for p in family(self.svc.kid("abx-pathd"))
                    if comm(p) == "abx-pathd"]
            self.assertTrue(pids)
        else:
            pids = [self.svc.kid(victim)]
        gone = {p: proc_stat(p)[1] for p in pids}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        if victim in ("abxd", "abx-monitor"):
            self.svc.proc.wait(20 * SLOW)
            self.eq(still_there(procs, 3 * SLOW), {}, "left over")
        else:
            self.eq(still_there(gone, 5), {})

    def once(self, op, victim):
        w = self.world
        shutil.rmtree(w / "w/at", ignore_errors=True)
        w.put("w/at/old", "the old content")
        for name in MINE:
            w.put("w/at/" + name, "mine")
        w.own("w/at")
        self.at = w / "w/at"
        before = tree(self.at)
        self.svc.revive()
        self.svc.rough = True
        self.assertTrue(until(10 * SLOW, lambda: self.svc.stat(
            "noise").status == 200))
        with Conn(self.svc) as c:
            self.begin(op, c)
            self.kill(victim)
            if victim in ("abx-pathd", "worker"):
                self.refused(c.reply(), 503, "server.unavailable")
            elif victim == "abx-execd" and op in ("copy", "archive"):
                self.ok(c.reply())  # that was none of its business
                before = None
        self.svc.revive()
        self.assertTrue(until(10 * SLOW, lambda: self.svc.stat(
            "noise").status == 200), "serves again")
        self.assertTrue(until(10 * SLOW, lambda: not temporaries(self.at)),
                        temporaries(self.at))
        if before is not None:
            self.assertTrue(until(10 * SLOW, lambda: tree(self.at) == before),
                            sorted(tree(self.at)))
        else:
            self.eq(w.get("w/at/old"), b"the old content")
        for name in MINE:
            self.eq(w.get("w/at/" + name), b"mine")

    def every(self, op):
        for victim in self.VICTIMS:
            with self.subTest(victim):
                self.once(op, victim)

    @timeout(180)
    def test_upload(self):
        self.every("upload")

    @timeout(180)
    def test_import(self):
        self.every("import")

    @timeout(180)
    def test_copy(self):
        self.every("copy")

    @timeout(180)
    def test_archive(self):
        self.every("archive")


@needs_root
class Disk(Case):
    """A small file system beside the usual one, in a mount namespace of its
    own, so that nothing stays mounted."""

    def serve(self, options, more=""):
        w = World()
        self.addCleanup(w.remove)
        os.mkdir(w / "small")
        w.put("w/big", os.urandom(6 << 20))
        for i in range(40):
            w.put(f"w/tree/{i}", os.urandom(200_000))
        w.put("w/doc", "a" * 100)
        w.own()
        script = (f"mount -t tmpfs -o {options} none {w.dir}/small && "
                  f"chown abx {w.dir}/small && {more or 'true'} && "
                  'exec "$@"')
        probe = subprocess.run(["unshare", "-m", "--propagation", "private",
                                "sh", "-c", script, "sh", "true"],
                               capture_output=True)
        if probe.returncode:
            self.skipTest(probe.stderr.decode().strip())
        self.w = w
        return self.start(rules(w.w, w / "small"), world=w, before=(
            "unshare", "-m", "--propagation", "private", "sh", "-c", script,
            "sh"))

    def small(self, name):
        return f"{self.w.dir}/small/{name}"

    def there(self, svc):
        """What is in the small one, as the service tells it."""
        got = svc.list(self.small("."), "&recursive=true").json["entries"]
        return {e["name"]: e["size"] for e in got}

    def fill_up(self, svc):
        """Every operation that writes more than there is room for."""
        big, small = self.w / "w/big", self.small
        old = os.urandom(300_000)
        self.ok(svc.upload(small("f"), old), 201)
        self.ok(svc.upload(small("t"), b"x" * 1000), 201)
        before = self.there(svc)
        data = tar(("f", b"new"), ("a", b"y" * 500_000),
                   ("b", os.urandom(3 << 20)))
        for what, call in (
                ("upload", lambda: svc.upload(small("f"), b"x" * (5 << 20))),
                ("new upload", lambda: svc.upload(small("g"),
                                                  b"x" * (5 << 20))),
                ("JSON upload", lambda: svc.rpc("files.upload", {
                    "path": small("f"), "content": "x" * (5 << 20)})),
                ("copy", lambda: svc.rpc("files.copy", {
                    "src": big, "dst": small("f"), "overwrite": True})),
                ("copy of a tree", lambda: svc.rpc("files.copy", {
                    "src": self.w / "w/tree", "dst": small("tree")})),
                ("import", lambda: svc.call(
                    "PUT", "/files/import?path=" + quoted(small("")), data)),
                ("archive", lambda: svc.rpc("files.archive", {
                    "sources": [big], "dest": small("new.tar")})),
                ("edit", lambda: svc.rpc("files.edit", {
                    "path": small("t"), "edits": [
                        {"find": "x", "replace": "z" * 9000,
                         "count": 1000}]}))):
            r = call()
            self.refused(r, 507, "fs.no_space", what=what)
            self.eq(self.there(svc), before, what)
        self.eq(svc.download(small("f")).body == old, True, "the old content")
        self.eq(svc.download(small("t")).body, b"x" * 1000)
        self.ok(svc.upload(small("g"), b"x" * 1000), 201)

    def test_ENOSPC(self):
        self.fill_up(self.serve("size=2m,mode=0755"))

    def test_EDQUOT(self):
        self.fill_up(self.serve("size=64m,mode=0755,usrquota,"
                                "usrquota_block_hardlimit=2m"))

    def test_no_inodes(self):
        svc = self.serve("size=8m,nr_inodes=8,mode=0755")
        small = self.small
        self.ok(svc.upload(small("f"), b"old"), 201)
        self.refused(svc.rpc("files.copy", {
            "src": self.w / "w/tree", "dst": small("tree")}), 507,
            "fs.no_space")
        self.refused(svc.call(
            "PUT", "/files/import?path=" + quoted(small("")),
            tar(*((f"d/{i}", b"x") for i in range(10)), ("f", b"new"))), 507,
            "fs.no_space")
        self.eq(self.there(svc), {"f": 3})
        self.eq(svc.download(small("f")).body, b"old")
        for i in range(6):
            svc.rpc("files.mkdir", {"path": small(f"d{i}")})
        self.refused(svc.rpc("files.mkdir", {"path": small("more")}), 507,
                     "fs.no_space")
        self.refused(svc.upload(small("more"), b""), 507, "fs.no_space")
        self.refused(svc.upload(small("a/b/c"), b""), 507, "fs.no_space")
        self.eq("a" in self.there(svc), False, "parents that it made")

    def test_EROFS(self):
        svc = self.serve(
            "size=2m,mode=0755",
            'd=$(findmnt -nrt tmpfs -o TARGET | tail -1) && '
            'echo old >$d/f && mkdir $d/d && echo x >$d/d/x && '
            'chown -R abx $d && mount -o remount,ro $d')
        small = self.small
        before = self.there(svc)
        self.eq(before, {"f": 4, "d": before.get("d"), "x": 2})
        for what, r in (
                ("upload", svc.upload(small("f"), b"new")),
                ("new upload", svc.upload(small("g"), b"new")),
                ("mkdir", svc.rpc("files.mkdir", {"path": small("k")})),
                ("delete", svc.rpc("files.delete", {"path": small("f")})),
                ("delete of a tree", svc.rpc("files.delete", {
                    "path": small("d"), "recursive": True})),
                ("move", svc.rpc("files.move", {"src": small("f"),
                                                "dst": small("g")})),
                ("copy", svc.rpc("files.copy", {"src": self.w / "w/doc",
                                                "dst": small("g")})),
                ("edit", svc.rpc("files.edit", {
                    "path": small("f"),
                    "edits": [{"find": "old", "replace": "new"}]})),
                ("archive", svc.rpc("files.archive", {
                    "sources": [small("f")], "dest": small("g.tar")})),
                ("import", svc.call("PUT", "/files/import?path=" +
                                    quoted(small("")), tar(("g", b"x"))))):
            self.refused(r, 403, "fs.permission", what=what)
        self.eq(self.there(svc), before)
        self.eq(svc.download(small("f")).body, b"old\n")

    def test_EXDEV(self):
        """A move never becomes a copy; a copy works."""
        svc = self.serve("size=2m,mode=0755")
        for src, dst in ((self.w / "w/doc", self.small("doc")),
                         (self.w / "w/tree", self.small("tree"))):
            self.refused(svc.rpc("files.move", {"src": src, "dst": dst}), 400,
                         "args.invalid")
        self.eq(self.there(svc), {})
        self.eq(len(os.listdir(self.w / "w/tree")), 40)
        self.ok(svc.rpc("files.copy", {"src": self.w / "w/doc",
                                       "dst": self.small("doc")}))
        self.eq(self.there(svc), {"doc": 100})


@needs_root
class Sick(Case):
    """A file system that gives EIO, or no answer at all."""

    def serve(self, at="sick", root="sick"):
        """With the sick one mounted there, and a root there."""
        w = World()
        self.addCleanup(w.remove)
        os.makedirs(w / at)
        os.makedirs(w / root, exist_ok=True)
        w.own()
        uid = str(pwd.getpwnam("abx").pw_uid)
        here = os.path.dirname(os.path.abspath(__file__))
        before = ("unshare", "-m", "--propagation", "private",
                  sys.executable, here + "/sickfs.py", w / at, uid)
        probe = subprocess.run([*before, "true"], capture_output=True)
        if probe.returncode:
            self.skipTest(probe.stderr.decode().strip()[-200:])
        self.w = w
        return self.start(rules(w.w, w / root), world=w, before=before)

    def names(self, svc):
        got = self.ok(svc.list(self.w / "sick")).json["entries"]
        return sorted(e["name"] for e in got)

    def test_EIO(self):
        svc = self.serve()
        sick = lambda name: f"{self.w.dir}/sick/{name}"
        before = self.names(svc)
        self.eq(svc.download(sick("good")).body, b"x" * 100)
        self.refused(svc.download(sick("bad")), 500, "fs.io")
        self.refused(svc.get("/files/download?path=" + sick("bad")), 500,
                     "fs.io")
        # the length was promised: what breaks off is seen to
        with self.assertRaises(Wrong):
            svc.download(sick("half"))
        edit = {"edits": [{"find": "x", "replace": "y", "count": 100}]}
        for what, r in (
                ("edit", svc.rpc("files.edit", {"path": sick("bad"),
                                                **edit})),
                ("copy", svc.rpc("files.copy", {"src": sick("bad"),
                                                "dst": "copy"})),
                ("copy of half", svc.rpc("files.copy", {
                    "src": sick("half"), "dst": "copy"})),
                ("archive", svc.rpc("files.archive", {
                    "sources": [sick("half")], "dest": "new.tar"}))):
            self.refused(r, 500, "fs.io", what=what)
        self.eq(temporaries(self.w.w), [])
        for name in ("copy", "new.tar"):
            self.eq(os.path.exists(self.w.w + "/" + name), False, name)
        self.eq(self.names(svc), before)
        self.health(svc)

    def test_EIO_of_writes(self):
        svc = self.serve()
        sick = lambda name: f"{self.w.dir}/sick/{name}"
        for at in ("full", "sync"):
            self.ok(svc.rpc("files.mkdir", {"path": sick(at + ".d")}), 201)
        before = self.names(svc)
        data = tar(("a", b"1"), ("b", b"2" * 100_000))
        for what, r in (
                ("upload", svc.upload(sick("full.d/f"), b"n" * 1000)),
                ("durable upload", svc.upload(sick("sync.d/f"), b"n" * 1000,
                                              "&durable=true")),
                ("copy", svc.rpc("files.copy", {"src": "a.txt",
                                                "dst": sick("full.d/f")})),
                ("archive", svc.rpc("files.archive", {
                    "sources": ["a.txt"], "dest": sick("full.d/f.tar")}))):
            self.refused(r, 500, "fs.io", what=what)
        for at in ("full.d", "sync.d"):
            got = self.ok(svc.list(sick(at))).json["entries"]
            self.eq(got, [], at)
        self.eq(self.names(svc), before)
        self.ok(svc.upload(sick("sync.d/f"), b"n" * 1000), 201)
        self.ok(svc.call("PUT", "/files/import?path=" + sick("sync.d"), data))
        self.eq(svc.download(sick("sync.d/b")).body, b"2" * 100_000)

    def test_hang(self):
        """Who waits for what does not answer holds up no other root."""
        self.hang(self.serve(), "sick")

    def test_hang_below_a_root(self):
        """Nor when the root itself is on a disk."""
        self.hang(self.serve("share/a b/nfs", "share"), "share/a b/nfs")

    def test_hang_of_what_was_mounted_later(self):
        svc = self.serve("sick", "share")
        os.mkdir(self.w / "share/nfs")
        subprocess.run(
            ["nsenter", "-m", "-t", str(svc.proc.pid), "mount", "--bind",
             self.w / "sick", self.w / "share/nfs"], check=True)
        self.eq(bool(until(10 * SLOW, lambda: f"{self.w.dir}/share: a file "
                           "system below it may be slow" in svc.logged())), True)
        self.hang(svc, "share/nfs")

    @unittest.skipUnless(LONG, "takes a minute")
    @timeout(150)
    def test_a_hang_ends(self):
        svc = self.serve()
        svc.rough = True
        path = self.w / "sick/stuck/hang"
        for r in (svc.stat(path, timeout=120), svc.list(path, timeout=120)):
            self.refused(r, 504, "fs.timeout")
            self.among(round(r.secs / 10) * 10, (60, 70))
            self.ok(svc.stat("a.txt"))

    def hang(self, svc, where):
        svc.rough = True  # those that hang are killed at the end
        stuck = f"{self.w.dir}/{where}/stuck"
        for what in ("list?path=" + stuck, f"stat?path={stuck}/hang",
                     f"download-stream?path={stuck}/hang",
                     f"list?path={stuck}/hang/x"):
            c = Conn(svc)
            self.addCleanup(c.close)
            c.send(svc.build("GET", "/files/" + what.replace(" ", "%20")))
        for op, args in (("files.mkdir", {"path": stuck + "/hang/y"}),
                         ("files.delete", {"path": stuck + "/hang"}),
                         ("files.copy", {"src": "a.txt",
                                         "dst": stuck + "/hang"})):
            c = Conn(svc)
            self.addCleanup(c.close)
            c.send(svc.build("POST", "/rpc/" + op, args))
        time.sleep(0.5)
        self.ok(svc.upload("u", b"x"), 201)
        for _ in range(10):
            for call in (lambda: svc.stat("a.txt"), lambda: svc.list("."),
                         lambda: svc.upload("u", b"x" * 100_000),
                         lambda: svc.rpc("files.copy", {
                             "src": "u", "dst": "u2", "overwrite": True})):
                self.under(self.ok(call()).secs, 2, "another root")
        self.health(svc)


def no_more_space(pid):
    """No more memory for that process than it has now.  Only its own user
    may say so."""
    with open(f"/proc/{pid}/statm") as f:
        size = int(f.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    uid, gid = (int(status(pid)[k].split()[0]) for k in ("Uid", "Gid"))
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
            resource.prlimit(pid, resource.RLIMIT_AS,
                             (size, resource.RLIM_INFINITY))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


class Names(Case):
    @classmethod
    def fill(cls, w):
        w.put("w/t/x", b"x")

    @classmethod
    def conf(cls, w):
        return rules(w.w)

    def test_ENAMETOOLONG(self):
        svc, long = self.svc, "n" * 256
        for r in (svc.upload(long, b"x"), svc.stat(long), svc.list(long),
                  svc.rpc("files.mkdir", {"path": "a/" + long,
                                          "parents": True}),
                  svc.rpc("files.copy", {"src": "t", "dst": long}),
                  svc.rpc("files.move", {"src": "t", "dst": long}),
                  svc.rpc("files.delete", {"path": long}),
                  svc.rpc("files.archive", {"sources": ["t"],
                                            "dest": long + ".tar"}),
                  svc.call("PUT", "/files/import?path=t",
                           tar((long, b"x")))):
            self.refused(r, 400, "fs.name_too_long")
        self.eq(os.path.exists(self.world / "w/a"), False)
        self.ok(svc.upload("n" * 255, b"x"), 201)
        self.ok(svc.rpc("files.delete", {"path": "n" * 255}))


class Descriptors(Case):
    def test_EMFILE(self):
        """No descriptors left in pathd's workers: a directory each level."""
        w = World()
        self.addCleanup(w.remove)
        w.put("w/t/" + "/".join("d" * 60) + "/x", b"x")
        w.own()
        svc = self.start(rules(w.w), world=w,
                         before=("prlimit", "--nofile=56:56"))
        for r in (svc.rpc("files.copy", {"src": "t", "dst": "c1"}),
                  svc.rpc("files.delete", {"path": "t", "recursive": True}),
                  svc.rpc("files.move", {"src": "t", "dst": "t2"})):
            self.refused(r, 503, "fs.too_many_open")
        self.eq(sorted(tree(w.w + "/t")), sorted(
            "/".join("d" * n) for n in range(1, 61)) + [
                "/".join("d" * 60) + "/x"])
        self.eq(temporaries(w.w), [])
        self.eq(os.path.exists(w.w + "/c1"), False)
        self.ok(svc.upload("f", b"x"), 201)


    @timeout(120)
    def test_EMFILE_of_commands(self):
        """More commands than there are descriptors for: some are refused,
        which is said, and nothing dies of what it cannot receive."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        conf = rules(w.w)
        conf["http"] = {"max_pre_auth": 100, "max_connections": 100}
        conf["rules"][1]["commands"]["allow"] = ["sleep {int}"]
        conf["rules"][1]["limits"] = {"concurrency": 100}
        svc = self.start(conf, world=w,
                         before=("prlimit", "--nofile=400:400"))
        kids, lost, got = svc.kids(), [], collections.Counter()

        def one():
            try:
                r = svc.run("sleep", "2", timeout_=40 * SLOW)
                got[r.status, r.code] += 1
            except (EOFError, ConnectionError):
                lost.append(1)  # there is no room for the connection either
        for _ in range(2):
            self.together([one] * 70)
        self.eq(svc.kids(), kids, "none of them is new")
        self.eq(set(got) - {(200, None), (503, "server.unavailable"),
                            (503, "request.busy")}, set())
        self.eq(min(got[200, None], got[503, "server.unavailable"]) > 0, True,
                got)
        self.ok(svc.run("sleep", "0"))

    def together(self, calls):
        threads = [threading.Thread(target=c) for c in calls]
        for t in threads:
            t.start()
        for t in threads:
            t.join()


class Memory(Case):
    @classmethod
    def conf(cls, w):
        return rules(w.w)

    @hardened_only
    def test_ENOMEM(self):
        """The monitor has none for the arguments of a call: the listener,
        and all that others have with it, stays."""
        with Conn(self.svc) as c:
            c.send(self.svc.build("GET", "/health"))
            self.ok(c.reply())
            self.eq(no_more_space(self.svc.kid("abx-monitor")), True)
            self.refused(self.svc.run("true", "x" * 100_000),
                         503, "server.unavailable")
            c.send(self.svc.build("GET", "/health"))
            self.ok(c.reply())

    @hardened_only
    def test_ENOMEM_of_commands(self):
        """execd has none: what runs goes on."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        conf = rules(w.w)
        conf["rules"][1]["commands"]["allow"] = ["true ..."]
        svc = self.start(conf, world=w)
        self.ok(svc.run("true"))
        execd = svc.kid("abx-execd")
        self.eq(no_more_space(execd), True)
        self.refused(svc.run("true", "x" * 100_000),
                     503, "server.unavailable", "sandbox.unavailable")
        self.eq(svc.kid("abx-execd"), execd)
