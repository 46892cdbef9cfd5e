# SPDX-License-Identifier: ISC
"""The processes: confined as promised, restarted, ended together, started and
stopped in order."""
import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from abxtest import (ADMIN, ASAN, BASE, BUILD, OWN, READ, ROOT, SLOW, WRITE,
                     Case, Conn, Service, World, Wrong, alive, comm, family,
                     fds, hardened_only, marked, mounts, needs_root, proc_stat,
                     status, still_there, timeout, until)

KINDS = {"abx-listener": "_abxl", "abx-monitor": "_abxm", "abx-pathd": "abx",
         "abx-execd": "abx"}


def rules(w):
    return [{"allow": READ + WRITE, "paths": w.w},
            {"allow": "commands.run", "commands": {
                "allow": ["sh -c ...", "true"], "cwd": w.w,
                "timeout": "30s"}}]


class Base(Case):
    limit = 100

    @classmethod
    def conf(cls, w):
        return {"rules": rules(w), "allow_lint_errors": True,
                "restart_limit": cls.limit}

    def works(self):
        try:
            return self.svc.stat("a.txt", timeout=5).status == 200
        except (OSError, EOFError):
            return False

    def busy(self, mark, n=3):
        """Start n commands with grandchildren; wait for all of them."""
        nap = f"sleep 83.{OWN}"
        script = (f"({nap} & setsid {nap} & sh -c '{nap}; : {mark}') & "
                  f"nohup {nap} >/dev/null 2>&1 & wait; : {mark}")
        conns = []
        self.eq(until(10, lambda: self.svc.run("true").status == 200), True,
                "commands run")
        for i in range(n):
            c = Conn(self.svc, timeout=15)
            c.send(self.svc.build("POST", "/commands/run", {
                "argv": ["sh", "-c", script], "stream": i % 2 == 1}))
            conns.append(c)
        want = 4 * n

        def sleepers():
            mine = set(family(self.svc.proc.pid))
            return len([p for p in marked(f"sleep\x0083.{OWN}") if p in mine])
        self.eq(until(10 * SLOW, lambda: sleepers() >= want), True,
                f"{want} sleepers run, got {sleepers()}")
        return conns

    def nothing_left(self, procs, mark, seconds=10):
        self.eq(still_there(procs, seconds), {}, "left of the service")
        until(10, lambda: not marked(mark))
        self.eq({p: comm(p) for p in marked(mark)}, {}, "left of commands")


class Confinement(Base):
    def each(self):
        """(name, pid) of the children and of what they forked."""
        self.svc.stat("a.txt")
        kids = self.svc.kids()
        self.eq(set(kids), set(KINDS), "the children of abxd")
        for name, pid in kids.items():
            yield name, pid
            for p in family(pid):
                if comm(p) == name:  # a worker of it
                    yield name, p

    def test_status(self):
        for name, pid in self.each():
            st = status(pid)
            with self.subTest(name, pid=pid):
                self.eq((st["NoNewPrivs"], st["Seccomp"]), ("1", "2"))
                for cap in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                    self.eq(int(st[cap], 16), 0, cap)
                if ROOT:
                    self.eq(int(st["CapBnd"], 16), 0, "CapBnd")
                    user = pwd.getpwnam(KINDS[name])
                    self.eq(st["Uid"].split(), [str(user.pw_uid)] * 4)
                    self.eq(st["Gid"].split(), [str(user.pw_gid)] * 4)
                    self.eq(st["Groups"].split(), [])
                else:
                    self.eq(st["Uid"].split(), [str(os.geteuid())] * 4)

    def test_not_dumpable(self):
        """The files of such a process in /proc belong to root."""
        for name, pid in self.each():
            self.eq(os.stat(f"/proc/{pid}/environ").st_uid, 0,
                    f"{name} is dumpable")
            # who made a user namespace may look into what was executed there
            if not ROOT and name != "abx-execd":
                for what in ("environ", "mem", "maps"):
                    with self.assertRaises(PermissionError, msg=name):
                        open(f"/proc/{pid}/{what}", "rb").read(1)

    def test_T079_no_environment(self):
        if not ROOT:
            self.skipTest("only root can read it")
        for name, pid in self.each():
            with open(f"/proc/{pid}/environ", "rb") as f:
                self.eq([e for e in f.read().split(b"\0") if e and
                         not e.startswith(b"ASAN_OPTIONS=")], [], name)
        with open(f"/proc/{self.svc.proc.pid}/environ", "rb") as f:
            f.read()  # the start's own; clearenv does not reach it

    @needs_root
    def test_listener_root_is_empty(self):
        root = f"/proc/{self.svc.kid('abx-listener')}/root/"
        self.eq(os.listdir(root), [])
        with self.assertRaises(OSError):
            os.mkdir(root + "x")

    @needs_root
    def test_execd_sees_little(self):
        w, pid = self.world, self.svc.kid("abx-execd")
        root = f"/proc/{pid}/root"
        self.eq(os.path.isdir(root + w.w), True, "its cwd root")
        for path in (w / "conf", w / "log", w / "state", w.r, w.outside,
                     "/root", "/home", "/var/log", "/boot",
                     "/etc/shadow", "/etc/agent-sandbox"):
            if os.path.exists(path):
                self.eq(os.path.exists(root + path), False, path)
        self.eq([d for d in os.listdir(root + "/proc") if d.isdigit()][0],
                "1", "its own process namespace")
        procs = {open(f"{root}/proc/{d}/comm").read().strip()
                 for d in os.listdir(root + "/proc") if d.isdigit()}
        self.eq(procs & (set(KINDS) - {"abx-execd"} | {"abxd"}), set())

    @needs_root
    def test_namespaces(self):
        def ns(pid, kind):
            return os.readlink(f"/proc/{pid}/ns/{kind}")
        me, kids = os.getpid(), self.svc.kids()
        for kind in ("mnt", "pid", "ipc"):
            self.eq(ns(kids["abx-execd"], kind) != ns(me, kind), True, kind)
        self.eq(ns(kids["abx-listener"], "mnt") != ns(me, "mnt"), True)
        self.eq(ns(kids["abx-listener"], "mnt")
                != ns(kids["abx-execd"], "mnt"), True)

    @needs_root
    def test_execd_is_init(self):
        self.eq(status(self.svc.kid("abx-execd"))["NSpid"].split()[-1], "1")

    @needs_root
    def test_descriptors(self):
        """Each holds what it needs, and nothing that leads elsewhere."""
        w, kids = self.world, self.svc.kids()
        log = {self.svc.log, "/dev/null"}
        for name, pid in kids.items():
            what = {n: t for n, t in fds(pid).items() if n > 2}
            named = {t for t in what.values() if t.startswith("/")}
            anon = {re.sub(r"\d+", "N", t) for t in what.values()
                    if not t.startswith("/")}
            with self.subTest(name):
                self.eq(anon - {"socket:[N]", "pipe:[N]",
                                "anon_inode:[eventpoll]",
                                "anon_inode:[timerfd]",
                                "anon_inode:[signalfd]",
                                "anon_inode:[eventfd]",
                                "anon_inode:[pidfd]",
                                "anon_inode:inotify"} -
                        {a for a in anon if a.startswith("/memfd:")}, set())
                named = {t for t in named if not t.startswith("/memfd:")}
                allowed = {
                    "abx-listener": set(),
                    "abx-monitor": {self.svc.audit, w / "state/sessions"},
                    "abx-pathd": {w.w, w.r, w / "work",
                                  w / "state/pathd.journal",
                                  f"/proc/{pid}/mountinfo"},
                    "abx-execd": None}[name]
                if allowed is not None:
                    self.eq(named - allowed - log, set())
                else:
                    self.eq({t for t in named if t.startswith(
                        (w / "conf", w / "log", w / "state"))}
                        - {w / "state/execd.journal"}, set())

    def test_log_says_what_is_real(self):
        text = self.svc.logged()
        for name in KINDS:
            m = re.search(name + r"\[(\d+)\]: (uid .*)", text)
            self.eq(bool(m), True, f"a line about {name}")
            st = status(m[1]) if proc_stat(m[1]) else None
            if st:
                self.eq(f"uid {st['Uid'].split()[0]} " in m[2], True, m[2])
                self.eq("no_new_privs 1" in m[2] and "seccomp 2" in m[2],
                        True, m[2])
        self.eq(bool(re.search(
            rf"ready on 127\.0\.0\.1:{self.svc.port}, revision [0-9a-f]{{64}}",
            text)), True, "the line that says ready")

    def test_start_is_quick(self):
        if ASAN:
            self.skipTest("not with the sanitizers")
        began = time.monotonic()
        self.start({"rules": rules(self.world), "allow_lint_errors": True})
        self.under(time.monotonic() - began, 1, "seconds to ready")


class Restart(Base):
    @timeout(120)
    def test_dead_children_come_back(self):
        self.svc.rough = True
        for name in ("abx-pathd", "abx-listener", "abx-execd"):
            for _ in range(2):
                self.eq(until(10, self.works), True, name)
                pid = self.svc.kid(name)
                os.kill(pid, signal.SIGKILL)
                self.eq(until(10, lambda: self.svc.kids().get(name, pid)
                              != pid), True, f"a new {name}")
                self.eq(until(10, self.works), True, name)
                self.eq(until(10, lambda: self.svc.run("true").status
                              == 200), True, f"commands after {name}")
                self.eq(self.svc.proc.poll(), None)
        for name in KINDS:
            st = status(self.svc.kid(name))
            self.eq((st["NoNewPrivs"], st["Seccomp"]), ("1", "2"),
                    f"{name} after a restart")

    def test_requests_in_flight_are_answered(self):
        """Where pathd or execd dies: 503, not silence."""
        self.svc.rough = True
        self.eq(until(10, self.works), True)
        with Conn(self.svc) as c:
            c.send(self.svc.build("POST", "/commands/run", {
                "argv": ["sh", "-c", f"sleep 89.{OWN}"]}))
            until(10, lambda: marked(f"sleep\x0089.{OWN}"))
            os.kill(self.svc.kid("abx-execd"), signal.SIGKILL)
            r = c.reply()
            if r.status == 200:  # or the result that says so
                self.eq(r.json["lost"], True, r)
            else:
                self.refused(r, 503, "server.unavailable")
        self.eq(until(10, lambda: not marked(f"sleep\x0089.{OWN}")), True)
        self.eq(until(10, self.works), True)
        with Conn(self.svc) as c:
            c.send(self.svc.build("PUT", "/files/upload-stream?path=u",
                                  b"x", headers={"Content-Length": "9"}))
            time.sleep(0.2)
            os.kill(self.svc.kid("abx-pathd"), signal.SIGKILL)
            self.refused(c.reply(), 503, "server.unavailable")
        self.eq(until(10, self.works), True)

    def test_streams_whose_execd_dies_end(self):
        self.svc.rough = True
        self.eq(until(10, self.works), True)
        with Conn(self.svc, timeout=20) as c:
            c.send(self.svc.build("POST", "/commands/run", {
                "argv": ["sh", "-c", f"echo x; sleep 89.{OWN}"],
                "stream": True}))
            c.head()
            c.chunk()
            os.kill(self.svc.kid("abx-execd"), signal.SIGKILL)
            got = c.rest(5)
            self.eq(b"exit_code\":0" in got, False, "an invented end")
        self.eq(until(10, self.works), True)

    def test_audit_of_lost_requests(self):
        """What the listener was at when it died is in the audit."""
        self.svc.rough = True
        self.eq(until(10, self.works), True)
        with Conn(self.svc) as c:
            c.send(self.svc.build("POST", "/commands/run", {
                "argv": ["sh", "-c", f"sleep 89.{OWN}"]}))
            until(10, lambda: marked(f"sleep\x0089.{OWN}"))
            os.kill(self.svc.kid("abx-listener"), signal.SIGKILL)
        self.eq(until(10, lambda: not marked(f"sleep\x0089.{OWN}")), True,
                "the command ends with its client")
        lost = [r for r in self.svc.audits(
            lambda r: r.get("outcome") == "lost") if r.get("outcome")
            == "lost"]
        self.eq([r["op"] for r in lost], ["commands.run"])
        self.eq(until(10, self.works), True)


class Deaths(Base):
    """Whoever is killed: nothing of the service or its commands is left."""

    def end_of(self, name):
        """Kill that process of a service with three commands; its exit."""
        mark = f"mark-{name}-{OWN}"
        conns = self.busy(mark)
        self.svc.rough = True
        procs = dict(self.svc.family())
        pid = self.svc.proc.pid if name == "abxd" else self.svc.kid(name)
        below = {p: s for p, s in procs.items()
                 if comm(p) in ("sleep", "sh", "bwrap", "abx-launch")}
        os.kill(pid, signal.SIGKILL)
        try:
            if name == "abx-execd":
                self.eq(bool(below), True)
                self.nothing_left(below, mark)
                self.eq(self.svc.proc.poll(), None)
                self.eq(until(10, self.works), True, "it goes on")
            else:
                code = self.svc.proc.wait(20 * SLOW)
                self.eq(code != 0, True, f"exit status {code}")
                self.nothing_left(procs, mark)
        finally:
            for c in conns:
                c.close()

    def test_T091_execd(self):
        self.end_of("abx-execd")

    def test_T091_monitor(self):
        self.end_of("abx-monitor")
        with self.assertRaises(OSError):
            Conn(self.svc)

    def test_T091_abxd(self):
        self.end_of("abxd")
        # the port is free and the service can start at once
        self.svc.start()
        self.eq(self.works(), True)
        self.eq(sorted(os.listdir(self.world.w)) == sorted(
            {".env", "a.txt", "sub", "vault"}), True, "left-over files")

    @timeout(120)
    def test_T091_early(self):
        """abxd is killed while commands are being started."""
        for ms in (1, 3, 5, 10, 15, 20, 30):
            self.svc.revive()
            self.svc.rough = True
            conns = []
            for _ in range(3):
                c = Conn(self.svc)
                c.send(self.svc.build("POST", "/commands/run", {
                    "argv": ["sh", "-c", f"sleep 97.{OWN} & sleep 97.{OWN}"]}))
                conns.append(c)
            time.sleep(ms / 1000)
            procs = dict(self.svc.family())
            self.svc.proc.kill()
            self.svc.proc.wait()
            self.eq(still_there(procs, 2), {}, f"after {ms} ms")
            self.eq(until(10, lambda: not marked(f"sleep\x0097.{OWN}")), True,
                    f"commands after {ms} ms")
            for c in conns:
                c.close()


class Limit(Case):
    @timeout(90)
    def test_restart_limit(self):
        """More deaths than restart_limit end the service."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"rules": rules(w), "allow_lint_errors": True,
                          "restart_limit": 2}, world=w)
        svc.rough = True
        procs = dict(svc.family())
        for i in range(3):
            self.eq(svc.proc.poll(), None, f"after {i} deaths")
            pid = svc.kid("abx-pathd")
            until(10, lambda: status(pid)["Seccomp"] == "2")
            time.sleep(0.2)
            procs.update(svc.family())
            os.kill(pid, signal.SIGKILL)
            until(10, lambda: svc.kids().get("abx-pathd", pid) != pid
                  or svc.proc.poll() is not None)
        self.eq(until(10, lambda: svc.proc.poll() is not None), True,
                "it gives up")
        self.eq(svc.proc.returncode != 0, True, svc.proc.returncode)
        self.eq(still_there(procs, 2), {})


class Stop(Case):
    def setUp(self):
        self.w = World()
        self.addCleanup(self.w.remove)
        self.w.own()
        with open(self.w.w + "/big", "wb") as f:
            f.truncate(64 << 20)

    def serve(self, **more):
        return self.start({"rules": rules(self.w),
                           "allow_lint_errors": True, **more}, world=self.w)

    def slow_download(self, svc):
        c = Conn(svc, rcvbuf=8192)
        c.send(svc.build("GET", "/files/download-stream?path=big"))
        self.eq(c.head()[0], 200)
        return c

    def test_sigterm(self):
        svc = self.serve()
        procs = dict(svc.family())
        for sig in (signal.SIGTERM, signal.SIGINT):
            began = time.monotonic()
            svc.proc.send_signal(sig)
            self.eq(svc.proc.wait(20), 0)
            self.under(time.monotonic() - began, 2 * SLOW, "seconds")
            self.eq(still_there(procs, 1), {})
            svc.start()
            procs = dict(svc.family())

    def test_a_transfer_may_end(self):
        svc = self.serve(shutdown_grace="5s")
        c = self.slow_download(svc)
        svc.proc.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        self.eq(svc.proc.poll(), None, "it waits for the transfer")
        with self.assertRaises(OSError, msg="new connections"):
            Conn(svc).close()
        got = len(c.take(64 << 20))
        self.eq(got, 64 << 20)
        self.eq(svc.proc.wait(4 * SLOW), 0)

    def test_the_grace_ends(self):
        svc = self.serve(shutdown_grace="1s")
        c = self.slow_download(svc)
        procs = dict(svc.family())
        began = time.monotonic()
        svc.proc.send_signal(signal.SIGTERM)
        svc.proc.wait(20)
        took = time.monotonic() - began
        self.eq(0.8 < took < 3 * SLOW, True, f"{took:.1f} s, 1 s of grace")
        self.eq(still_there(procs, 1), {})
        c.close()

    def test_commands_end(self):
        svc = self.serve(shutdown_grace="1s")
        nap = f"sleep 101.{OWN}"
        with Conn(svc) as c:
            c.send(svc.build("POST", "/commands/run", {"argv": [
                "sh", "-c", f"trap '' TERM; {nap} & {nap}; {nap}"]}))
            self.eq(until(10, lambda: len(marked(
                f"sleep\x00101.{OWN}")) >= 2), True)
            procs = dict(svc.family())
            began = time.monotonic()
            svc.proc.send_signal(signal.SIGTERM)
            svc.proc.wait(20 * SLOW)
            self.under(time.monotonic() - began, 8 * SLOW,
                       "seconds until all is gone")
            self.eq(still_there(procs, 0.5), {})
            self.eq(marked(f"sleep\x00101.{OWN}"), [])

    def test_second_sigterm(self):
        svc = self.serve(shutdown_grace="5s")
        c = self.slow_download(svc)
        procs = dict(svc.family())
        svc.proc.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        self.eq(svc.proc.poll(), None)
        began = time.monotonic()
        svc.proc.send_signal(signal.SIGTERM)
        svc.proc.wait(5)
        self.under(time.monotonic() - began, 1 * SLOW, "seconds")
        self.eq(still_there(procs, 1), {})
        c.close()

    def test_T053_the_port_is_free_again(self):
        svc = self.serve()
        with Conn(svc) as c:
            c.send(svc.build("POST", "/commands/run", {"argv": [
                "sh", "-c", f"setsid sleep 103.{OWN} & echo x"]}))
            c.reply()
            svc.proc.send_signal(signal.SIGTERM)
            svc.proc.wait(9)
        svc.start()
        self.ok(svc.stat("a.txt"))


class Start(Case):
    """Starts that must not happen, and ways to start."""

    def setUp(self):
        self.w = World()
        self.addCleanup(self.w.remove)
        self.w.own()

    def make(self, argv=(), env=None, **config):
        base = {"rules": [{"allow": READ, "paths": self.w.w}]}
        svc = Service(self.w, {**base, **config}, argv=argv, env=env)
        self.svc = svc
        self.addCleanup(self.end, svc)
        return svc

    def refuses(self, *words, argv=(), env=None, **config):
        svc = self.make(argv, env, **config).spawn()
        svc.rough = True
        try:
            code = svc.proc.wait(10 * SLOW)
        except subprocess.TimeoutExpired:
            self.fail(f"{words}\n  expected: no start\n  got:      it runs\n"
                      + svc.tail())
        self.eq(code != 0, True, f"exit status of {words}")
        for word in words:
            self.eq(word in svc.logged(), True,
                    f"{word!r} in the log:\n{svc.tail()}")
        with self.assertRaises(OSError):
            Conn(svc)
        self.eq(still_there(dict(svc.seen), 1), {})
        os.unlink(svc.log)
        return svc

    def test_n(self):
        svc = self.make(argv=["-n"]).spawn()
        self.eq(svc.proc.wait(10), 0, svc.tail())
        self.eq(os.path.exists(self.w / "state"), False, "-n makes nothing")
        svc.rough = True
        svc = self.refuses("config.unknown_key", argv=["-n"], rulez=[])

    def test_usage(self):
        for argv in (["-x"], ["extra"], ["-p", "read-only"], ["-f"]):
            p = subprocess.run([f"{BUILD}/abxd", *argv], capture_output=True,
                               text=True, timeout=10)
            self.eq((p.returncode, "usage" in p.stderr), (2, True), argv)

    @needs_root
    def test_user_missing(self):
        for kind in ("listener", "monitor", "run"):
            self.refuses("config.user_missing", "no-such-user-abx",
                         users={kind: "no-such-user-abx"})
        self.refuses("config.user_missing", users={"run": "root"})

    def test_T124_state_dir_unsafe(self):
        w = self.w
        os.mkdir(w / "loose", 0o770)
        os.chmod(w / "loose", 0o770)
        os.mkdir(w / "real", 0o700)
        if ROOT:
            user = pwd.getpwnam("_abxm")
            os.chown(w / "real", user.pw_uid, user.pw_gid)
            os.chown(w / "loose", user.pw_uid, user.pw_gid)
        os.symlink(w / "real", w / "linked")
        os.mkdir(w / "shared")
        os.chmod(w / "shared", 0o777)
        w.put("plain", "x")
        for path in ("loose", "linked", "shared/state", "plain"):
            with self.subTest(path):
                self.refuses("config.state_dir_unsafe" if path != "plain"
                             else "plain", state_dir=w / path)
        self.refuses("config.state_dir_unsafe",
                     state_dir=f"/tmp/abx-state-{os.getpid()}")
        self.eq(os.path.lexists(f"/tmp/abx-state-{os.getpid()}"), False,
                "a refused state directory stays behind")

    def test_port_in_use(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            port = s.getsockname()[1]
            self.refuses("cannot listen", str(port), listen=[
                {"address": "127.0.0.1", "port": port}])

    def test_files_that_others_can_write(self):
        svc = self.make()
        os.chmod(svc.file, 0o666)
        svc.spawn()
        svc.rough = True
        self.eq(svc.proc.wait(10) != 0, True)
        self.eq("config.file_unsafe" in svc.logged(), True, svc.tail())

    def test_a_root_that_is_missing(self):
        self.refuses("config.root_invalid", rules=[
            {"allow": READ, "paths": self.w / "absent"}])

    def test_sd_notify(self):
        path = self.w / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            os.chmod(path, 0o777)
            s.settimeout(10)
            svc = self.make(env={"NOTIFY_SOCKET": path}).start()
            self.eq(b"READY=1" in s.recv(4096).split(b"\n"), True)
            svc.stop()
            got = b""
            s.settimeout(1)
            while b"STOPPING=1" not in got:
                got += s.recv(4096) + b"\n"

    def with_socket(self, s, port):
        """abxd started as by a service manager that holds this socket."""
        svc = self.make(listen=[{"address": "127.0.0.1", "port": port}])
        svc.port = s.getsockname()[1]
        svc.argv = [sys.executable, "-c",
                    "import os, sys; n = int(sys.argv[1]); "
                    "n == 3 or os.dup2(n, 3) and os.close(n); "
                    "os.environ.update(LISTEN_FDS='1', "
                    "LISTEN_PID=str(os.getpid())); "
                    "os.execv(sys.argv[2], sys.argv[2:])",
                    str(s.fileno()), *svc.argv]
        return svc

    def test_listen_fds(self):
        """A socket that the service manager holds, and holds over a stop."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(16)
            svc = self.with_socket(s, s.getsockname()[1])
            svc.start(pass_fds=(s.fileno(),))
            self.ok(svc.stat("a.txt"))
            # connections inherit it: their filter knows no setsockopt(2)
            self.eq(s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), 1)
            svc.stop()
            c = Conn(svc)  # waits in the backlog
            c.send(svc.build("GET", "/health"))
            svc.start(pass_fds=(s.fileno(),))
            self.ok(c.reply())
            c.close()

    def test_listen_fds_of_another_place(self):
        """The policy was checked against the configured addresses only."""
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(16)
            svc = self.with_socket(s, 9)
            svc.spawn(pass_fds=(s.fileno(),))
            svc.rough = True
            self.eq(svc.proc.wait(10) != 0, True, svc.tail())

    def test_in_the_background(self):
        svc = self.make()
        svc.argv.remove("-d")
        svc.spawn()
        self.eq(svc.proc.wait(20), 0, "the starter ends when it is ready")
        mine = [p for p in marked(svc.file) if comm(p) == "abxd"]
        self.eq(len(mine), 1, mine)
        try:
            self.ok(svc.stat("a.txt"))
            self.eq(os.readlink(f"/proc/{mine[0]}/fd/0") if ROOT
                    else "/dev/null", "/dev/null")
        finally:
            procs = family(mine[0])
            procs[mine[0]] = proc_stat(mine[0])[1]
            os.kill(mine[0], signal.SIGTERM)
        self.eq(still_there(procs, 8), {})
        svc.rough = True
        svc = self.make(rulez=[])
        svc.argv.remove("-d")
        svc.spawn()
        svc.rough = True
        self.eq(svc.proc.wait(20) != 0, True, "a start that failed")

    def test_presets_on_the_command_line(self):
        svc = self.make(argv=["-p", "download-only", "-r", self.w.w],
                        rules=[])
        svc.start()
        self.eq(self.ok(svc.download("a.txt")).body, b"hello\n")

    def test_listen_on_the_command_line(self):
        svc = self.make()
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        svc.argv += ["--listen", f"127.0.0.1:{port}"]
        svc.port = port
        svc.start()
        self.ok(svc.stat("a.txt"))

    def test_stale_unix_socket(self):
        path = self.w / "door"
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
        svc = Service(self.w, {"rules": [{"allow": READ,
                                          "paths": self.w.w}]}, unix=path)
        self.svc = svc
        self.addCleanup(self.end, svc)
        svc.start()
        self.ok(svc.stat("a.txt"))
        other = Service(self.w, svc.config, unix=path)
        other.log = self.w / "log/other.log"
        other.config["state_dir"] = self.w / "state2"
        other.write(other.config)
        other.spawn()
        self.eq(other.proc.wait(10) != 0, True, "a socket that is in use")
        self.ok(svc.stat("a.txt"))

    def test_sigusr1_reopens_the_audit(self):
        svc = self.make().start()
        svc.stat("a.txt")
        svc.audits(lambda r: r["op"] == "files.stat")
        os.rename(svc.audit, svc.audit + ".1")
        svc.proc.send_signal(signal.SIGUSR1)
        until(10, lambda: os.path.exists(svc.audit))
        r = svc.stat("sub")
        self.eq(svc.audit_of(r)["op"], "files.stat")
        self.assertIn(f"audit sink file:{svc.audit}: opened anew",
                      svc.logged())
        # what cannot be opened leaves the one that was
        os.rename(svc.audit, svc.audit + ".2")
        os.mkdir(svc.audit)
        self.addCleanup(os.rmdir, svc.audit)
        svc.proc.send_signal(signal.SIGUSR1)
        until(10, lambda: "the file that was open stays" in svc.logged())
        rid = svc.stat("sub").header("X-Request-Id")

        def kept():
            with open(svc.audit + ".2") as f:
                return rid in f.read()
        self.eq(until(10, kept), True)
