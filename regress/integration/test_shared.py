# SPDX-License-Identifier: ISC
"""The commands of a session share a sandbox, and each has its own end."""
import contextlib
import os
import signal
import threading
import time

from abxtest import (LONG, OWN, ROOT, SLOW, Case, Conn, World, comm, family,
                     fds, marked, mounts, needs_root, status, timeout, until)

AT_ONCE = 64


def config(w):
    return {"allow_lint_errors": True,
            "http": {"max_connections": 160},
            "sandbox": {"workspace_root": w / "work"},
            "rules": [
                {"allow": ["commands.run", "process.start", "process.get",
                           "process.wait", "process.signal",
                           "workspace.delete"],
                 "limits": {"concurrency": 128, "processes": 64},
                 "commands": {"allow": ["sh -c ...", "cat", "true"],
                              "timeout": "60s",
                              "cwd": {"roots": [w.w], "deny": ["*.pem"]}}}]}


def named(svc, name):
    return [p for p in family(svc.proc.pid) if comm(p) == name]


class Shared(Case):
    @classmethod
    def conf(cls, w):
        return config(w)

    def run_(self, script, session="s", **args):
        return self.ok(self.svc.run("sh", "-c", script, session=session,
                                    **args)).json

    def says(self, script, session="s", **args):
        r = self.run_(script, session, **args)
        self.eq(r["exit_code"], 0, r)
        return r["stdout"]

    def go(self, script, session="s"):
        return self.ok(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", script], "session": session})).json["id"]

    def get(self, pid):
        return self.ok(self.svc.get(f"/process/{pid}")).json

    def wait(self, pid):
        return self.ok(self.svc.get(
            f"/process/{pid}/wait?timeout={20 * SLOW}")).json

    def drop(self, *sessions):
        for s in sessions or ("s",):
            self.ok(self.svc.call("DELETE", "/workspace/" + s))

    def gone(self, mark):
        self.eq(bool(until(10 * SLOW, lambda: not marked(mark))), True,
                f"{mark} is left")

    def in_background(self, script, session="s"):
        """A run in a thread: its result, None when there was none."""
        found = []
        t = threading.Thread(target=lambda: found.append(
            self.svc.run("sh", "-c", script, session=session)))
        t.start()

        def reply():
            t.join(30 * SLOW)
            return found[0].json if found[0].status == 200 else None
        return reply


class Sharing(Shared):
    def test_a_sandbox(self):
        self.eq(self.says("echo kept > /tmp/a; echo on"), "on\n")
        self.eq(self.says("cat /tmp/a"), "kept\n")
        self.eq(self.says("cat /tmp/a 2>&1 || echo no", "other")[-3:], "no\n")
        r = self.ok(self.svc.run("sh", "-c", "cat /tmp/a || echo no")).json
        self.eq(r["stdout"], "no\n")
        r = self.run_("readlink /proc/self/ns/pid")
        self.eq(self.says("readlink /proc/self/ns/pid"), r["stdout"])
        self.eq(sorted(r["sandbox"]["layers"])[-2:], ["namespaces",
                                                      "seccomp"])
        self.drop("s", "other")
        self.eq(self.says("cat /tmp/a || echo no"), "no\n")
        self.drop()

    def test_a_process_is_seen_and_stays(self):
        mark = f"seen-{OWN}"
        pid = self.go(f": {mark}; while :; do sleep 0.2; done")
        self.eq(int(self.says(
            f"grep -l '{mark[0]}[{mark[1]}]{mark[2:]}' /proc/[0-9]*/cmdline "
            f"| wc -l")) > 0, True)
        # a command's own left-overs end with it, whatever they did
        r = self.run_(f"(setsid sh -c 'trap \"\" TERM; sleep 81.{OWN}' "
                      ">/dev/null 2>&1 &); "
                      f"sh -c 'sleep 81.{OWN}' & echo hi")
        self.eq((r["stdout"], r["exit_code"]), ("hi\n", 0))
        self.gone(f"sleep\x0081.{OWN}")
        # a time-out, and a client that goes
        r = self.run_(f"trap '' TERM; setsid sleep 82.{OWN} & while :; do "
                      "sleep 0.1; done", timeout=1)
        self.eq((r["timed_out"], r["lost"]), (True, False))
        self.gone(f"sleep\x0082.{OWN}")
        c = Conn(self.svc)
        c.send(self.svc.build("POST", "/commands/run", {
            "argv": ["sh", "-c", f"setsid sleep 83.{OWN} & sleep 83.{OWN}"],
            "session": "s"}))
        self.eq(bool(until(10 * SLOW, lambda: marked(
            f"sleep\x0083.{OWN}"))), True)
        c.close()
        self.gone(f"sleep\x0083.{OWN}")
        self.eq(self.get(pid)["state"], "running", "the process")
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "KILL"}))
        end = self.wait(pid)
        self.eq((end["signal"], end["lost"]), ("KILL", False))
        self.eq(self.says("echo on"), "on\n")
        self.drop()

    def test_ends(self):
        for sig in ("HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE",
                    "TERM"):
            r = self.run_(f"kill -{sig} $$; sleep 1")
            self.eq((r["signal"], r["exit_code"], r["lost"]),
                    (sig, None, False))
        for code in (0, 1, 126, 127, 137, 255):
            r = self.run_(f"exit {code}")
            self.eq((r["signal"], r["exit_code"]), (None, code))
        r = self.run_("echo a; sleep 20", idle_timeout=1)
        self.eq((r["idle_timed_out"], r["stdout"]), (True, "a\n"))
        r = self.ok(self.svc.run("cat", session="s", stdin="given"))
        self.eq(r.json["stdout"], "given")
        self.drop()

    def test_denied_entries(self):
        """Those that came since the sandbox was built, too."""
        self.eq(self.says("mkdir d; echo SECRET > d/a; cat d/a"), "SECRET\n")
        self.eq(self.says("mv d/a d/a.pem; cat d/a.pem"), "SECRET\n",
                "made meanwhile: said in the manual")
        self.eq(self.says("cat d/a.pem; echo x > d/a.pem || echo no"),
                "no\n")
        self.eq(self.says("rm d/a.pem || echo no; ls d"), "no\na.pem\n")
        self.drop()

    def test_protected_names(self):
        r = self.run_("mkdir -p .git/hooks; echo x > .git/hooks/h")
        self.eq([p.rsplit("/", 1)[1] for p in r["sandbox"]["appeared"]],
                [".git"])
        r = self.run_("echo evil > .git/hooks/h || echo no; "
                      "mv .git g || echo no")
        self.eq((r["stdout"], r["sandbox"].get("appeared", [])),
                ("no\nno\n", []))
        self.drop()


class Lost(Shared):
    """A sandbox that is ended under its commands."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.svc.rough = True

    def setUp(self):
        until(20 * SLOW, lambda: self.svc.run("true").status == 200)

    def lost(self, how, strike):
        pid = self.go(f"trap '' TERM; sleep 84.{OWN}; sleep 84.{OWN}")
        reply = self.in_background(f"sleep 84.{OWN}")
        self.eq(bool(until(10 * SLOW, lambda: len(marked(
            f"sleep\x0084.{OWN}")) >= 2)), True)
        strike()
        end = reply()
        if how == "abx-execd":
            self.eq(end, None, "nobody is there to say how it ended")
            end = {"lost": True, "exit_code": None, "signal": None}
        for end in (end, self.wait(pid)):
            self.eq((end["lost"], end["exit_code"], end["signal"]),
                    (True, None, None), how)
        self.gone(f"sleep\x0084.{OWN}")
        self.eq(bool(until(10 * SLOW, lambda: self.svc.run(
            "true", session="s").status == 200)), True, how)
        self.drop()

    def killed(self, name):
        for p in named(self.svc, name):
            with contextlib.suppress(ProcessLookupError):  # by the one before
                os.kill(p, signal.SIGKILL)

    @needs_root
    def test_by_a_kill_from_outside(self):
        for name in ("abx-launch", "bwrap", "abx-super", "abx-execd"):
            with self.subTest(name):
                self.lost(name, lambda: self.killed(name))

    def test_from_inside(self):
        def strike():
            end = self.run_("kill -9 -1; sleep 5")
            self.eq(end["lost"] or end["signal"] == "KILL", True, end)
        self.lost("kill -1", strike)
        self.eq(self.says("kill -9 1; kill -STOP 1; echo on"), "on\n")
        self.drop()


class Many(Shared):
    def state(self):
        kids = self.svc.kids()
        s = {"processes": len([p for p in family(self.svc.proc.pid)
                               if comm(p) != "abx-pathd"]),
             "mounts of the host": mounts(os.getpid()),
             "mounts of execd": mounts(kids["abx-execd"]),
             "places": len(os.listdir(self.world / "work")) if ROOT else 0}
        if ROOT:
            s.update({f"descriptors of {n}": len(fds(p))
                      for n, p in kids.items() if n != "abx-pathd"})
        return s

    def memory(self):
        pid = self.svc.kid("abx-execd")
        return int(status(pid)["RssAnon"].split()[0]) if ROOT else 0

    def at_once(self, n, **args):
        wrong = []

        def one(i):
            r = self.svc.run("sh", "-c", f"sleep 0.2; echo {i}", **args)
            if r.status != 200 or r.json["stdout"] != f"{i}\n":
                wrong.append((i, r.status, r.body))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.eq(wrong, [])

    def in_a_row(self, n, **args):
        for i in range(n):
            r = self.ok(self.svc.run(
                "sh", "-c", f"echo {i}; echo e{i} >&2; exit {i % 9}",
                **args)).json
            self.eq((r["stdout"], r["stderr"], r["exit_code"]),
                    (f"{i}\n", f"e{i}\n", i % 9))

    @timeout(900 if LONG else 120)
    def test_T078_a_thousand(self):
        """In a row and at once, alone and in a session."""
        for args in ({}, {"session": "s"}):
            with self.subTest(args):
                self.in_a_row(20, **args)
                self.at_once(AT_ONCE, **args)
                time.sleep(0.5)
                before, kb = self.state(), self.memory()
                self.in_a_row(1000 if LONG else 60, **args)
                self.at_once(AT_ONCE, **args)
                until(10 * SLOW, lambda: self.state() == before)
                self.eq(self.state(), before, "what was left behind")
                if SLOW == 1:
                    self.under(self.memory(), kb + 1024)
        self.drop()
        zombies = [p for p in family(self.svc.proc.pid)
                   if open(f"/proc/{p}/stat").read().rpartition(")")[2]
                   .split()[0] == "Z"]
        self.eq(zombies, [])
        self.eq(named(self.svc, "abx-launch"), [])
