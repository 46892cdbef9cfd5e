# SPDX-License-Identifier: ISC
"""What an operator does to a running service: reload, status, panic; and what
holds across it: snapshots, idempotency keys, peers of unix sockets."""
import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest

from abxtest import (ADMIN, ALICE, ASAN, BOB, BUILD, OWN, READ, ROOT, SLOW,
                     TOKENS, Case, Conn, World, Wrong, comm, family, fds,
                     proc_stat, timeout, until)

LONG = bool(os.environ.get("ABX_LONG"))


def abxctl(svc, *argv):
    return subprocess.run([f"{BUILD}/abxctl", "-f", svc.file, *argv],
                          env={**svc.env, **TOKENS}, text=True,
                          capture_output=True, timeout=60)


class Reload(Case):
    @classmethod
    def fill(cls, w):
        w.put("w/a.txt", "hello")
        w.put("w/two/b.txt", "two")
        w.put("w/three/c.txt", "three")

    def config(self, w):
        return {"reload": "sighup", "allow_lint_errors": True, "rules": [
            {"allow": READ + ["files.upload", "core.capabilities"],
             "paths": w.w, "limits": {"concurrency": 64}},
            {"allow": "commands.run", "limits": {"concurrency": 64},
             "commands": {"allow": ["true", "sleep {int}"], "cwd": w.w}}]}

    def served(self):
        w = self.world
        return self.start(self.config(w), world=w)

    def test_T120_bad_ones_keep_the_old(self):
        svc = self.served()
        before = self.ok(svc.get("/capabilities")).json["revision"]
        for raw, code in (("{broken", "config.syntax"),
                          (json.dumps({**svc.config, "rulez": 1}),
                           "config.unknown_key"),
                          (json.dumps({**svc.config, "listen": [
                              {"address": "127.0.0.1", "port": 1}]}),
                           "config.needs_restart")):
            svc.write(None, raw)
            out = abxctl(svc, "reload")
            self.eq((out.returncode, code in out.stdout + out.stderr),
                    (2, True), f"{code}: {out.stdout}{out.stderr}")
            self.ok(svc.download("a.txt"))
        self.eq(self.ok(svc.get("/capabilities")).json["revision"], before)
        # the broken one did not get past abxctl; SIGHUP brings it there
        svc.write(None, "{broken")
        svc.proc.send_signal(signal.SIGHUP)

        def reloads():
            return [r["ok"] for r in svc.audits()
                    if r["op"] == "core.reload"]
        until(10, lambda: len(reloads()) >= 3)
        self.eq(reloads(), [False, False, False])

    def test_good_one_tells_its_revision(self):
        svc = self.served()
        svc.config["rules"].append({"allow": "core.check"})
        svc.write(svc.config)
        out = abxctl(svc, "reload")
        self.eq(out.returncode, 0, out.stderr)
        self.among(self.ok(svc.get("/capabilities")).json["revision"],
                   out.stdout.split())
        svc.config["rules"][0]["allow"] = ["core.capabilities"]
        svc.write(svc.config)
        self.eq(abxctl(svc, "reload").returncode, 0)
        self.refused(svc.download("a.txt"), 404, "op.not_enabled")

    def test_root_that_nobody_can_reach(self):
        """Said at the start, and at a reload that brings it."""
        w = self.world
        rule = {"allow": "files.stat", "paths": w / "conf"}
        text = (f'"paths": {w / "conf"} is the protected directory '
                f'{w / "conf"}, so')
        svc = self.start(self.config(w), world=w)
        self.eq("config.root_protected" in svc.logged(), False, svc.tail())
        svc.config["rules"].append(rule)
        svc.write(svc.config)
        out = abxctl(svc, "reload")
        self.eq(out.returncode, 0, out.stdout)
        self.eq(until(10, lambda: text in svc.logged()), True, svc.tail())
        svc.stop()
        os.truncate(svc.log, 0)
        svc.start()
        self.eq(text in svc.logged(), True, svc.tail())

    def rough_world(self):
        """One whose log the other tests do not see."""
        w = World()
        self.addCleanup(w.remove)
        self.fill(w)
        w.own()
        return w

    def test_workers_come_back_after_one(self):
        """Those that a reload left in place, and those that it replaced."""
        w = self.rough_world()
        svc = self.start(self.config(w), world=w)
        svc.rough = True
        for change in (lambda c: c["rules"].append({"allow": "core.check"}),
                       lambda c: (c["rules"][0].update(
                           paths=[w.w, w / "w/two"]),
                           c["rules"][1]["commands"].update(
                               cwd=w / "w/three")),
                       lambda c: c["rules"].reverse()):
            change(svc.config)
            svc.write(svc.config)
            out = abxctl(svc, "reload")
            self.eq(out.returncode, 0, out.stdout + out.stderr)
            for name in ("abx-pathd", "abx-execd"):
                os.kill(self.newest(svc, name), signal.SIGKILL)
                self.eq(until(10, lambda: svc.download("a.txt").status ==
                              200 and svc.run("true").status == 200),
                        True, f"after the death of {name}")

    def test_deaths_within_the_pause_of_one(self):
        """Each new pathd comes by a reload and dies before the first of them
        would have been started again."""
        w = self.rough_world()
        conf = {**self.config(w), "restart_limit": 1000}
        svc = self.start(conf, world=w)
        svc.rough = True

        def works():
            return svc.download("a.txt").status == 200
        for _ in range(5):  # the pause grows to a second
            os.kill(self.newest(svc, "abx-pathd"), signal.SIGKILL)
            self.eq(until(10, works), True)
        for roots in ([w.w, w / "w/two"], w.w, [w.w, w / "w/three"]):
            os.kill(self.newest(svc, "abx-pathd"), signal.SIGKILL)
            svc.config["rules"][0]["paths"] = roots
            svc.write(svc.config)
            out = abxctl(svc, "reload")
            self.eq(out.returncode, 0, out.stdout + out.stderr)
        os.kill(self.newest(svc, "abx-pathd"), signal.SIGKILL)
        time.sleep(2.5)
        self.eq(svc.proc.poll(), None, "abxd lives")
        self.eq(until(10, works), True)
        self.eq(len(svc.kids()), 4, svc.kids())

    def newest(self, svc, name):
        """Its pid, once the one of before the reload is gone."""
        def those():
            return [p for p in family(svc.proc.pid)
                    if (proc_stat(p) or (0,))[0] == svc.proc.pid
                    and comm(p) == name]
        self.eq(until(10, lambda: len(those()) == 1), True, those())
        return those()[0]

    def test_off_by_default(self):
        conf = self.config(self.world)
        del conf["reload"]
        svc = self.start(conf, world=self.world)
        out = abxctl(svc, "reload")
        self.eq((out.returncode, "config.reload_disabled" in out.stdout),
                (2, True), out.stdout)
        # and what is in force counts, not what is in the file by now
        svc.config["reload"] = "sighup"
        svc.write(svc.config)
        self.assertIn("in force", abxctl(svc, "reload").stdout)

    def test_vanished_principal(self):
        """Its commands are killed, its connections closed."""
        svc = self.served()
        os.truncate(svc.audit, 0)
        conn = Conn(svc)
        self.addCleanup(conn.close)
        nap = "4242" + OWN
        body = json.dumps({"argv": ["sleep", nap]}).encode()
        conn.send(b"POST /commands/run HTTP/1.1\r\nHost: localhost\r\n"
                  b"Authorization: Bearer " + ALICE.encode() +
                  b"\r\nContent-Type: application/json\r\nContent-Length: " +
                  str(len(body)).encode() + b"\r\n\r\n" + body)

        def running():
            return [p for p in family(svc.proc.pid)
                    if b"sleep\x00" + nap.encode() in cmdline(p)]
        self.eq(bool(until(10, running)), True, "the command runs")
        svc.config["auth"] = {"tokens": [
            t for t in svc.config["auth"]["tokens"]
            if TOKENS[t["token_env"]] != ALICE]}
        svc.write(svc.config)
        self.eq(abxctl(svc, "reload").returncode, 0)
        self.eq(until(10, lambda: not running()), True, "it is killed")
        conn.ended()
        self.eq(self.outcomes(svc, "alice"), ["cancelled"])
        self.refused(svc.download("a.txt", token=ALICE), 401, "auth.invalid")
        self.ok(svc.download("a.txt", token=ADMIN))

    def outcomes(self, svc, who):
        def his(r):
            return r["op"] == "commands.run" and r["principal"] == who
        return [r["outcome"] for r in svc.audits(his) if his(r)]

    def test_stop(self):
        """Neither sooner nor later than shutdown_grace: what is under way may
        end, and what does not was not left by its caller."""
        w = self.world
        for grace, secs, outcome in (("5s", "3", "ok"),
                                     ("500ms", "4", "cancelled")):
            svc = self.start({**self.config(w), "shutdown_grace": grace},
                             world=w)
            os.truncate(svc.audit, 0)
            conn = Conn(svc)
            self.addCleanup(conn.close)
            conn.send(svc.build("POST", "/commands/run",
                                {"argv": ["sleep", secs]}, token=ALICE))
            self.eq(bool(until(10, lambda: [
                p for p in family(svc.proc.pid)
                if cmdline(p).startswith(b"sleep\x00" + secs.encode())])),
                    True)
            svc.stop()
            self.eq(self.outcomes(svc, "alice"), [outcome], grace)

    def test_asked_for_while_one_goes_on(self):
        """What was written before the last SIGHUP is in force in the end."""
        svc, w = self.served(), self.world
        for i in range(10):
            for told in (i % 2 == 0, i % 2 == 1):
                conf = {**svc.config, **self.config(w)}
                # other roots, so that it takes a while
                conf["rules"][0]["paths"] = [w.w, w / "w/two"][:1 + told]
                conf["rules"][1]["commands"]["cwd"] = w / (
                    "w/two" if told else "w/three")
                if told:
                    conf["rules"].append({"allow": "core.check"})
                svc.write(conf)
                svc.proc.send_signal(signal.SIGHUP)
                time.sleep(0.03)
            self.eq(until(10 * SLOW, lambda: (svc.call(
                "POST", "/check", {}).status != 404) == told), True, i)

    def test_asked_of_abxctl_while_one_goes_on(self):
        """It tells how that went which began when it had asked."""
        svc, w = self.served(), self.world
        conf = {**svc.config, **self.config(w)}
        conf["rules"][0]["paths"] = [w.w, w / "w/two"]
        svc.write(conf)
        monitor = svc.kid("abx-monitor")
        os.kill(monitor, signal.SIGSTOP)
        try:
            svc.proc.send_signal(signal.SIGHUP)

            def read():
                return [p for p, (parent, *_) in (
                    (p, proc_stat(p) or [0]) for p in family(svc.proc.pid))
                        if parent == svc.proc.pid and comm(p) == "abx-pathd"]
            self.eq(until(10, lambda: len(read()) == 2), True)
            conf["rules"].append({"allow": "core.check"})
            svc.write(conf)
            argv = [f"{BUILD}/abxctl", "-f", svc.file, "reload"]
            ctl = subprocess.Popen(argv, env={**svc.env, **TOKENS}, text=True,
                                   stdout=subprocess.PIPE)
            time.sleep(0.5)
        finally:
            os.kill(monitor, signal.SIGCONT)
        said = ctl.communicate(timeout=20 * SLOW)[0]
        self.eq(ctl.returncode, 0, said)
        now = self.ok(svc.get("/capabilities")).json["revision"]
        self.eq(said, f"revision {now}\n")
        self.eq(svc.call("POST", "/check", {}).status == 404, False)

    # ---- whatever happens to it, in whatever order ----

    def shape(self, rng, svc):
        """A good configuration; what tells that it is in force."""
        w, conf = self.world, self.config(self.world)
        told = rng.random() < 0.5
        roots = rng.choice(([w.w], [w.w, w / "w/two"], [w / "w/three", w.w]))
        conf["rules"][0]["paths"] = roots
        conf["rules"][1]["commands"]["cwd"] = rng.choice(
            (w.w, w / "w/two", w / "w/three"))
        if told:
            conf["rules"].append({"allow": "core.check"})
        return {**svc.config, **conf}, told

    def steps(self, rng, svc, state):
        def hup():
            svc.proc.send_signal(signal.SIGHUP)

        def new():
            conf, state["told"] = self.shape(rng, svc)
            svc.write(conf)

        def reload():
            new()
            abxctl(svc, "reload")

        def hups():
            for _ in range(rng.randrange(1, 6)):
                new()
                hup()
                time.sleep(rng.choice((0, 0, 0.01, 0.05)))

        def kill(names=("abx-listener", "abx-pathd", "abx-execd")):
            for pid in family(svc.proc.pid):
                if comm(pid) in names and rng.random() < 0.6:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        def in_reload():
            new()
            hup()
            time.sleep(rng.choice((0, 0.005, 0.02, 0.05, 0.1)))
            kill()

        def broken():
            with open(svc.file) as f:
                kept = f.read()
            svc.write(None, "{broken")
            hup()
            time.sleep(rng.choice((0, 0.1)))
            svc.write(None, kept)

        def panic():
            self.eq(abxctl(svc, "panic").returncode, 0)
            self.eq(abxctl(svc, "resume").returncode, 0)
        return (reload, hups, kill, in_reload, broken, panic)

    @unittest.skipIf(ASAN and not LONG, "each start takes too long")
    @timeout(900 if LONG else 120)
    def test_whatever_happens(self):
        """Reloads and deaths in any order: in the end it serves, by the last
        configuration, with one process of each kind."""
        seed = int(os.environ.get("ABX_SEED", random.randrange(1 << 30)))
        rng = random.Random(seed)
        conf = self.config(self.world)
        svc = self.start({**conf, "restart_limit": 1000}, world=self.world)
        svc.rough = True
        state, done = {"told": False}, []
        steps = self.steps(rng, svc, state)
        end = time.monotonic() + (600 if LONG else 9)
        while time.monotonic() < end:
            for _ in range(rng.randrange(1, 4)):
                done.append(rng.choice(steps))
                done[-1]()
            what = f"seed {seed}: {[f.__name__ for f in done[-6:]]}"
            # one may be under way, or spoiled by a death
            self.eq(bool(until(20 * SLOW, lambda: abxctl(
                svc, "reload").returncode == 0)), True, "reload, " + what)
            self.eq(until(20 * SLOW, lambda: not self.lacks(svc, state)) or
                    self.lacks(svc, state), True, what)
        for name in ("abx-pathd", "abx-execd", "abx-listener"):
            self.newest(svc, name)

    def lacks(self, svc, state):
        """What is not as it should be, or None."""
        at = self.world.w
        try:
            for what, r, want in (
                    ("download", svc.download(at + "/a.txt"), (200,)),
                    ("run", svc.run("true"), (200,)),
                    ("upload", svc.upload(at + "/up", b"x" * 100_000),
                     (200, 201)),
                    ("policy", svc.call("POST", "/check", {}),
                     (400,) if state["told"] else (404,))):
                if r.status not in want:
                    return what, r.status, r.json.get("code")
        except (OSError, EOFError, Wrong) as e:
            return repr(e)
        return None

    def storm(self, svc, wrong, stop):
        n = 0
        while not stop.is_set():
            n += 1
            try:
                a = (svc.download("a.txt"), svc.upload(f"up{n % 3}", b"x"),
                     svc.run("true"))[n % 3] if n % 3 != 1 else \
                    svc.upload(f"up-{threading.get_ident()}", b"x" * 999)
                if a.status not in (200, 201):
                    wrong.append(repr(a))
            except (OSError, EOFError) as e:
                wrong.append(repr(e))

    def test_many_under_load(self):
        """A third of them broken; nothing fails, nothing is left behind."""
        svc, w = self.served(), self.world
        wrong, stop = [], threading.Event()
        threads = [threading.Thread(target=self.storm, args=(svc, wrong, stop))
                   for _ in range(4)]
        for t in threads:
            t.start()
        kinds = [
            lambda c: c["rules"].append({"allow": "core.check"}),
            lambda c: c.update(rulez=1),
            lambda c: c["rules"].append(
                {"allow": "files.list", "paths": w / "w/two"}),
            lambda c: c["rules"][1]["commands"].update(cwd=w / "w/three"),
            lambda c: c["rules"].append(
                {"allow": "files.list", "paths": w / "w/missing"}),
            lambda c: c["rules"].reverse()]
        first = None
        for n in range(200 if LONG else 36):
            c = json.loads(json.dumps(svc.config))
            kinds[n % 6](c)
            svc.write(c)
            out = abxctl(svc, "reload")
            self.eq(out.returncode, 2 if n % 6 in (1, 4) else 0,
                    out.stdout + out.stderr)
            if n == 5 and ROOT:  # others cannot look at them
                first = {k: len(fds(p)) for k, p in svc.kids().items()}
        stop.set()
        for t in threads:
            t.join()
        self.eq(wrong[:3], [], f"{len(wrong)} went wrong")
        self.eq(until(10, lambda: len(svc.kids()) == 4), True, svc.kids())
        for name, pid in svc.kids().items() if ROOT else ():
            self.under(len(fds(pid)), first[name] + 40, f"descriptors of {name}")


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read()
    except OSError:
        return b""


class Control(Case):
    @classmethod
    def conf(cls, w):
        return {"allow_lint_errors": True, "rules": [
            {"allow": ["core.posture", "system.info"]},
            {"allow": ["commands.run", "process.start"],
             "commands": {"allow": ["true", "sleep {int}"], "cwd": w.w}}]}

    def test_status(self):
        out = abxctl(self.svc, "--json", "status")
        self.eq(out.returncode, 0, out.stderr)
        got = json.loads(out.stdout)
        self.eq([got["processes"][p]["ready"]
                 for p in ("listener", "pathd", "execd")], [True] * 3)
        self.eq(abxctl(self.svc, "status").returncode, 0)

    def test_top(self):
        done = []
        self.eq(json.loads(abxctl(self.svc, "top", "--json").stdout),
                {"rows": [], "more": 0})
        threads = [threading.Thread(target=lambda: done.append(
            self.svc.run("sleep", "4"))) for _ in range(2)]
        for t in threads:
            t.start()
        pid = self.ok(self.svc.rpc("process.start", {
            "argv": ["sleep", "5"]})).json["id"]

        def rows():
            out = abxctl(self.svc, "top", "--json")
            return json.loads(out.stdout)["rows"]
        self.eq(bool(until(10, lambda: len(rows()) == 3)), True, rows())
        got = rows()
        self.eq([(r["kind"], r["op"], r["principal"], r["argv0"])
                 for r in got],
                [("run", "commands.run", "root", "sleep")] * 2 +
                [("process", "process.start", "root", "sleep")])
        self.eq(got[2]["id"], pid[:6])
        for r in got:
            self.eq(len(r["id"]), 6)
            self.among(r["age_ms"], range(0, 4000))
        text = abxctl(self.svc, "top").stdout
        self.eq(text.splitlines()[0], "3 running")
        self.eq(text.count("sleep"), 3)
        for secret in pid, ADMIN:
            self.eq(secret in text + json.dumps(got), False)
        for t in threads:
            t.join()
        self.eq(until(10, lambda: rows() == []), True, rows())

    def test_panic(self):
        done = []
        t = threading.Thread(target=lambda: done.append(
            self.svc.run("sleep", "4343")))
        t.start()
        self.eq(bool(until(10, lambda: [
            p for p in family(self.svc.proc.pid) if b"4343" in cmdline(p)])),
            True)
        self.eq(abxctl(self.svc, "panic").returncode, 0)
        t.join(10)
        self.eq(self.ok(done[0]).json["cancelled"], True)
        self.eq(self.svc.audit_of(done[0])["outcome"], "cancelled")
        a = self.svc.run("true")
        self.refused(a, 503, "sandbox.unavailable")
        self.eq(a.json["details"], {"layer": "panic"})
        self.eq(abxctl(self.svc, "resume").returncode, 0)
        self.ok(self.svc.run("true"))
        with open(self.svc.log) as f:
            log = f.read()
        for word in "panic", "resume":
            self.among(f"{word} by uid {os.getuid()}: ", log)

    def test_posture(self):
        got = self.ok(self.svc.get("/posture")).json
        for name in ("abx-listener", "abx-monitor", "abx-pathd", "abx-execd"):
            self.eq((got["processes"][name]["seccomp"],
                     got["processes"][name]["no_new_privs"]), ("2", "1"), name)
        self.eq(set(self.ok(self.svc.get("/system/info")).json),
                {"system", "kernel", "architecture", "cpus", "memory_total",
                 "memory_free", "uptime_s"})

    def test_unreached(self):
        svc = self.start({"rules": []})
        svc.stop()
        self.eq(abxctl(svc, "status").returncode, 3)


class Sessions(Case):
    @classmethod
    def conf(cls, w):
        return {"allow_lint_errors": True, "rules": [
            {"allow": ["commands.run", "workspace.delete"],
             "commands": {"allow": ["true", "sleep {int}"],
                          "cwd": w.w}}]}

    def test_sessions(self):
        def rows():
            out = abxctl(self.svc, "sessions", "--json")
            self.eq(out.returncode, 0, out.stderr)
            got = json.loads(out.stdout)
            self.eq(got["more"], 0)
            return sorted((s["principal"], s["session"], s["running"])
                          for s in got["sessions"])
        self.eq(rows(), [])
        self.ok(self.svc.run("true", session="one"))
        self.ok(self.svc.run("true", session="two", token=ALICE))
        t = threading.Thread(target=self.svc.run, args=("sleep", "2"),
                             kwargs={"session": "one"})
        t.start()
        want = [("alice", "two", 0), ("root", "one", 1)]
        self.eq(until(10, lambda: rows() == want), True, rows())
        t.join()
        self.eq(until(10, lambda: rows()[1][2] == 0), True, rows())
        text = abxctl(self.svc, "sessions").stdout
        self.assertRegex(text, r"(?m)^alice +two +kept +0  20\d\d-")
        self.ok(self.svc.call("DELETE", "/workspace/one"))
        self.eq(rows(), [("alice", "two", 0)])


class Idempotency(Case):
    @classmethod
    def fill(cls, w):
        w.put("w/count.sh", "echo x >> log\nsleep 1\nwc -l < log\n")

    @classmethod
    def conf(cls, w):
        return {"allow_lint_errors": True, "rules": [
            {"allow": ["files.mkdir", "files.upload", "files.stat"],
             "paths": w.w},
            {"allow": "commands.run",
             "commands": {"allow": ["sh count.sh"], "cwd": w.w}}]}

    def test_T123_same_key(self):
        h = {"Idempotency-Key": "k1"}
        a = self.ok(self.svc.rpc("files.mkdir", {"path": "d"}, headers=h), 201)
        b = self.ok(self.svc.rpc("files.mkdir", {"path": "d"}, headers=h), 201)
        self.eq(a.body, b.body)
        c = self.svc.rpc("files.mkdir", {"path": "e"}, headers=h)
        self.refused(c, 409, "idempotency.mismatch")
        self.eq(c.header("x-should-retry"), "false")
        self.refused(self.svc.rpc("files.mkdir", {"path": "d"}), 409,
                     "fs.exists")

    def test_a_run_at_once_and_later(self):
        h, got = {"Idempotency-Key": "k2"}, []

        def ask():
            got.append(self.svc.rpc("commands.run", {
                "argv": ["sh", "count.sh"]}, headers=h))
        threads = [threading.Thread(target=ask) for _ in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        ask()
        self.eq([self.ok(a).json["stdout"] for a in got], ["1\n"] * 4)
        self.eq(self.world.get("w/log"), b"x\n")

    @unittest.skipIf(ASAN, "too slow with the sanitizers")
    def test_a_caller_with_many_pushes_out_his_own(self):
        mine = {"Idempotency-Key": "mine"}
        path = {"path": "kept"}
        a = self.ok(self.svc.rpc("files.mkdir", path, headers=mine), 201)
        with Conn(self.svc, timeout=60) as c:
            for first in range(0, 10_100, 100):
                c.send(b"".join(self.svc.build(
                    "POST", "/files/mkdir", path, token=BOB,
                    headers={"Idempotency-Key": f"b{k}"})
                    for k in range(first, first + 100)))
                for _ in range(100):
                    self.eq(c.reply().status, 409)
        b = self.ok(self.svc.rpc("files.mkdir", path, headers=mine), 201)
        self.eq(a.body, b.body)

    def test_what_is_read_is_read_again(self):
        h, stat = {"Idempotency-Key": "k4"}, []
        put = functools.partial(self.svc.call, "PUT",
                                "/files/upload-stream?path=grows")
        self.ok(put(b"1"), 201)
        for ask in (lambda: self.svc.get("/files/stat?path=grows", headers=h),
                    lambda: self.svc.rpc("files.stat", {"path": "grows"},
                                         headers=h)):
            self.ok(put(b"1" * (len(stat) + 2)))
            stat.append(self.ok(ask()).json["size"])
        self.eq(stat, [2, 3])
        # the key is free
        self.ok(self.svc.rpc("files.mkdir", {"path": "g"}, headers=h), 201)

    def test_refusals_are_not_kept(self):
        h = {"Idempotency-Key": "k3"}
        self.refused(self.svc.rpc("files.mkdir", {"path": "/etc/x"},
                                  headers=h), 403, "policy.path_not_allowed")
        self.ok(self.svc.rpc("files.mkdir", {"path": "f"}, headers=h), 201)


class Left(Case):
    def test_no_socket_is(self):
        """Neither by a stop, nor by a start that fails."""
        w = self.world
        w.own()
        conf = {"rules": [], "control": {"path": w / "conf/control"}}
        svc = self.start(conf, world=w, unix=w / "conf/sock")
        svc.stop()
        left = [n for n in os.listdir(w / "conf") if n != "server.json"]
        self.eq(left, [])
        svc.config["control"] = {"path": w / "none/there/control"}
        svc.write(svc.config)
        out = subprocess.run([f"{BUILD}/abxd", "-d", "-f", svc.file],
                             env={**svc.env, **TOKENS}, capture_output=True,
                             timeout=30)
        self.eq(out.returncode, 1, out.stderr)
        left = [n for n in os.listdir(w / "conf") if n != "server.json"]
        self.eq(left, [])


class Peers(Case):
    def test_uid_is_a_principal(self):
        w = self.world
        w.put("w/a.txt", "hello")
        w.own()
        path = w / "conf/sock"
        svc = self.start({
            "auth": {"peers": [{"uid": os.getuid(), "id": "bob",
                                "roles": []}]},
            "rules": [{"allow": "files.download", "paths": w.w,
                       "principals": ["id:bob"]}]}, world=w, unix=path)
        a = self.ok(svc.download("a.txt", token=None))
        self.eq(a.body, b"hello")
        self.refused(svc.download("a.txt", token="no-such-token-0123456"),
                     401, "auth.invalid")
        self.eq(svc.audit_of(a)["principal"], "bob")

    def test_another_uid_learns_nothing(self):
        """Not even from the decider whether a route is one."""
        svc = self.start({
            "auth": {"peers": [{"uid": 12345, "id": "bob"}]},
            "rules": [{"allow": "core.capabilities"}]},
            unix=self.world / "conf/sock")
        bodies = []
        for path in ("/capabilities", "/files/list", "/nope"):
            r = self.refused(svc.get(path, token=None), 401, "auth.required")
            bodies.append(sorted(r.json))
        self.eq(bodies, [["code", "error", "request_id", "type"]] * 3)


class Proxies(Case):
    @classmethod
    def conf(cls, w):
        return {"trusted_proxies": ["127.0.0.0/8"],
                "rules": [{"allow": "core.capabilities"}]}

    def ask(self, n, hop, token=None):
        return self.svc.get(
            "/capabilities", token=token or f"no-such-token-{n:010}",
            headers={"X-Forwarded-For": "198.51.100.7, " + hop})

    def test_failures_by_address(self):
        """Each token is another one; the address behind the proxy is one."""
        for n in range(10):
            self.refused(self.ask(n, "203.0.113.5"), 401, "auth.invalid")
        a = self.ask(10, "203.0.113.5")
        self.refused(a, 429, "auth.rate_limited")
        self.eq(bool(a.header("Retry-After")), True)
        self.refused(self.ask(11, "203.0.113.6"), 401, "auth.invalid")
        self.ok(self.ask(0, "203.0.113.5", token=ADMIN))

    def test_audit_names_the_caller(self):
        a = self.ok(self.ask(0, "203.0.113.9", token=ADMIN))
        self.eq(self.svc.audit_of(a)["remote_addr"], "203.0.113.9")

    def test_audit_names_the_refused(self):
        """As it names an admitted caller: the address and the request."""
        for hop, want in (("203.0.113.8", "203.0.113.8"),
                          ("not an address", "127.0.0.1")):
            for token in (None, "no-such-token-abcdefghij"):
                r = self.svc.get("/capabilities", token=token, headers={
                    "X-Forwarded-For": hop})
                self.eq(r.status, 401)
                a = self.svc.audit_of(r)
                self.eq((a["remote_addr"], a["code"]),
                        (want, r.json["code"]))

    def test_audit_counts_the_refused(self):
        """Of a flood some are named, and none is missing."""
        before = self.refused_records()
        for _ in range(40):
            self.eq(self.svc.get("/capabilities", token=None).status, 401)
        self.eq(until(10, lambda: self.refused_records() - before == 40), True)

    def refused_records(self):
        return sum(r.get("count", 1) for r in self.svc.audits(
            lambda r: True, 0) if r["status"] == 401)
