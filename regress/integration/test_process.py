# SPDX-License-Identifier: ISC
"""Processes: started, listed, followed, fed, signalled and waited for; and
what ends them and what does not."""
import json
import os
import shutil
import signal
import subprocess
import time

from abxtest import (ADMIN, ALICE, BOB, BUILD, LONG, OWN, ROOT, SLOW, TOKENS,
                     Case, Conn, World, Wrong, events, family, fds, marked,
                     needs_root, proc_stat, rss, told, until)

ALL = ["process.start", "process.list", "process.get", "process.output",
       "process.stdin", "process.wait"]
ODD = ("x" * 22, "", "x", "../x", "A" * 500, "\u00e9" * 22)


def blocks(raw):
    """[(event, id, data)] of the events in some bytes, the last one only when
    it is whole."""
    found = []
    for block in raw.decode().split("\n\n")[:-1]:
        f = dict(line.split(": ", 1) for line in block.split("\n")
                 if ": " in line)
        if "data" in f:
            found.append((f["event"], f["id"], json.loads(f["data"])))
    return found


def text(got, name="stdout"):
    return b"".join(told(d) for e, d in got if e == name)


class Follow:
    """An open process.output."""

    def __init__(self, svc, pid, query="?follow=true", token=ADMIN,
                 rcvbuf=0, last=None):
        self.c = Conn(svc, timeout=20 * SLOW, rcvbuf=rcvbuf)
        self.c.send(svc.build("GET", f"/process/{pid}/output{query}",
                              token=token,
                              headers={"Last-Event-ID": last}))
        status, headers, _ = self.c.head()
        if status != 200 or not dict(headers)["content-type"].startswith(
                "text/event-stream"):
            raise Wrong(f"no stream: {status} {headers}")
        self.raw = b""

    def until(self, want):
        """Read until these bytes came."""
        while want not in self.raw:
            part = self.c.chunk()
            if not part:
                raise Wrong(f"the stream ended before {want!r}: {self.raw}")
            self.raw += part
        return self

    def all(self):
        while part := self.c.chunk():
            self.raw += part
        self.c.close()
        return events(self.raw)

    def close(self):
        self.c.close()


def config(w, limits):
    return {"allow_lint_errors": True, "rules": [
        {"allow": ALL + ["commands.run"],
         "limits": {"concurrency": 64, **limits},
         "commands": {"allow": ["sh -c ...", "cat", "true", "sleep {int}"],
                      "cwd": w.w,
                      "timeout": "60s", "max_output_bytes": 4_000_000}},
        {"allow": "process.signal", "principals": ["id:root"]},
        {"allow": "process.signal", "principals": ["id:alice"],
         "commands": {"allow": ["true"], "signals": ["USR1", "QUIT"]}}]}


class Process(Case):
    limits = {}

    @classmethod
    def conf(cls, w):
        return config(w, cls.limits)

    def go(self, script, token=ADMIN, **args):
        return self.ok(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", script], **args}, token=token)).json["id"]

    def wait(self, pid, timeout=10 * SLOW, **kw):
        return self.ok(self.svc.get(
            f"/process/{pid}/wait?timeout={timeout}", **kw)).json

    def output(self, pid, query="", **kw):
        return events(self.ok(self.svc.get(
            f"/process/{pid}/output{query}", **kw)).body)

    def state(self, pid):
        return self.ok(self.svc.get(f"/process/{pid}")).json["state"]

    def gone(self, mark):
        self.eq(until(10 * SLOW, lambda: not marked(mark)), True,
                f"nothing of {mark} is left")


class Life(Process):
    def test_members(self):
        r = self.ok(self.svc.call("POST", "/process", {
            "argv": ["sh", "-c", "exit 7"]})).json
        self.eq(set(r), {"id", "pid", "state", "argv0", "session", "started",
                         "result"})
        self.assertRegex(r["id"], r"^[A-Za-z0-9_-]{22}$")
        self.assertRegex(r["started"],
                         r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.eq((r["state"], r["argv0"], r["session"], r["result"]),
                ("running", "sh", None, None))
        self.eq(isinstance(r["pid"], int) and r["pid"] > 0, True)
        end = self.wait(r["id"])
        self.eq((end["exit_code"], end["signal"], end["lost"],
                 end["cancelled"]), (7, None, False, False))
        self.eq({"stdout", "stderr"} & set(end), set())
        got = self.ok(self.svc.get(f"/process/{r['id']}")).json
        self.eq((got["state"], got["result"]["exit_code"]), ("ended", 7))
        got = self.ok(self.svc.get("/process")).json["processes"]
        self.eq([p["state"] for p in got if p["id"] == r["id"]], ["ended"])

    def test_refusals(self):
        for args, status_, code in (
                ({"argv": ["id"]}, 403, "policy.command_not_allowed"),
                ({}, 400, "args.invalid"),
                ({"argv": ["true"], "session": "a/b"}, 400, "args.invalid"),
                ({"argv": ["true"], "stdin_open": "yes"}, 400, "args.type")):
            r = self.svc.rpc("process.start", args)
            self.eq((r.status, r.code), (status_, code), args)
        self.refused(self.svc.call("DELETE", "/process/x"), 404,
                     "op.not_enabled")
        self.refused(self.svc.get("/process/x/y"), 404, "op.not_enabled")
        self.refused(self.svc.get("/process/"), 404, "op.not_enabled")
        # an id in the path and another beside it
        pid = self.go("exit 0")
        self.refused(self.svc.get(f"/process/{pid}?id={pid}"), 400,
                     "args.invalid")

    def test_T070_no_stdin(self):
        pid = self.ok(self.svc.rpc("process.start", {
            "argv": ["cat"]})).json["id"]
        self.eq(self.wait(pid)["exit_code"], 0)
        self.refused(self.svc.rpc("process.stdin", {"id": pid, "data": "x"}),
                     409, "process.ended")
        pid = self.go("read x; echo got $x; sleep 30")
        self.refused(self.svc.rpc("process.stdin", {"id": pid, "data": "x"}),
                     409, "process.stdin_closed")
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "KILL"}))

    def test_given_stdin(self):
        big = "line of input\n" * 200_000
        pid = self.ok(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", "wc -c"], "stdin": big})).json["id"]
        self.wait(pid)
        self.eq(text(self.output(pid)).strip(), b"%d" % len(big))
        # one that never reads it holds nobody up
        pid = self.go("sleep 0.1", stdin=big)
        self.eq(self.wait(pid)["exit_code"], 0)
        # given and kept open
        pid = self.go("cat", stdin="a", stdin_open=True)
        self.ok(self.svc.rpc("process.stdin", {"id": pid, "data": "b"}))
        r = self.svc.call("POST", f"/process/{pid}/stdin",
                          {"data": "c", "eof": True})
        self.eq(self.ok(r).json, {})
        self.eq(self.wait(pid)["exit_code"], 0)
        self.eq(text(self.output(pid)), b"abc")

    def test_stdin_of_any_bytes(self):
        pid = self.go("cat", stdin_open=True)
        for data, enc, code in (("AP8K", "base64", None),
                                ("/", "base64", "args.invalid"),
                                ("AA==\n", "base64", "args.invalid"),
                                ("A", "hex", "args.invalid"),
                                ("z\u00e9", "utf-8", None),
                                ("", "base64", None)):
            r = self.svc.rpc("process.stdin", {"id": pid, "data": data,
                                               "encoding": enc})
            self.eq(r.code, code, (data, enc))
        self.ok(self.svc.rpc("process.stdin", {
            "id": pid, "data": "IQ==", "encoding": "base64", "eof": True}))
        self.wait(pid)
        self.eq(text(self.output(pid)), b"\0\xff\nz\xc3\xa9!")

    def test_stdin_in_order_and_closed(self):
        pid = self.go("cat", stdin_open=True)
        for i in range(20):
            self.ok(self.svc.rpc("process.stdin", {
                "id": pid, "data": f"{i}\n" + "x" * 50_000 + "\n"}))
        self.ok(self.svc.rpc("process.stdin", {"id": pid, "data": "",
                                               "eof": True}))
        r = self.svc.rpc("process.stdin", {"id": pid, "data": "late"})
        self.eq(r.status, 409)
        self.among(r.code, ("process.stdin_closed", "process.ended"))
        self.eq(self.wait(pid)["exit_code"], 0)
        # more than the ring holds went through: the last MiB is there
        got = self.output(pid)
        self.eq(text(got).decode().endswith("19\n" + "x" * 50_000 + "\n"),
                True)
        # the program closes it and runs on
        pid = self.go("exec 0<&-; sleep 30", stdin_open=True)
        self.eq(bool(until(10, lambda: self.svc.rpc("process.stdin", {
            "id": pid, "data": "x" * 70_000}).code ==
            "process.stdin_closed")), True)
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "KILL"}))

    def test_an_end_of_stdin_that_was_refused(self):
        """It may be said again: else the program would wait for ever."""
        pid = self.go("sleep 2; wc -c", stdin_open=True)
        held = []
        for _ in range(16):  # all that may wait
            held.append(Conn(self.svc, timeout=20 * SLOW))
            held[-1].send(self.svc.build("POST", f"/process/{pid}/stdin",
                                         {"data": "x" * 70_000}))
        end = {"id": pid, "data": "!", "eof": True}
        self.eq(until(10, lambda: self.svc.rpc("process.stdin", {
            "id": pid, "data": ""}).code == "limit.concurrency"), True)
        self.refused(self.svc.rpc("process.stdin", end), 429,
                     "limit.concurrency")
        for c in held:
            self.ok(c.reply("POST"))
            c.close()
        self.ok(self.svc.rpc("process.stdin", end))
        self.eq(self.wait(pid)["exit_code"], 0)
        self.eq(text(self.output(pid)).strip(), b"%d" % (16 * 70_000 + 1))

    def test_wait(self):
        pid = self.go("sleep 1; exit 3")
        began = time.monotonic()
        self.eq(self.ok(self.svc.rpc("process.wait", {
            "id": pid, "timeout": 60})).json["exit_code"], 3)
        self.under(time.monotonic() - began, 4 * SLOW)
        pid = self.ok(self.svc.rpc("process.start", {
            "argv": ["sleep", "30"]})).json["id"]
        began = time.monotonic()
        self.eq(self.wait(pid, 1), {"state": "running"})
        self.among(int(time.monotonic() - began), (1, 2, 3))
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "INT"}))
        self.wait(pid)

    def test_timeout(self):
        pid = self.go("sleep 9; : ends by time", timeout=1)
        end = self.wait(pid)
        self.eq((end["timed_out"], end["cancelled"]), (True, False))
        self.eq(text(self.output(pid)), b"")

    def test_T075_pid_reuse(self):
        """A signal for one that has ended goes nowhere."""
        pid = self.go("exit 0")
        self.eq(self.wait(pid)["exit_code"], 0)
        trace = None
        if ROOT and shutil.which("strace"):
            out = os.path.join(self.world.dir, "strace")
            trace = subprocess.Popen(
                ["strace", "-f", "-o", out, "-e",
                 "trace=kill,tgkill,tkill,pidfd_send_signal,sendmsg", "-p",
                 str(self.svc.kids()["abx-execd"])],
                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.eq("attached" in trace.stderr.readline(), True)
        for name in ("KILL", "TERM"):
            self.refused(self.svc.rpc("process.signal", {
                "id": pid, "signal": name}), 409, "process.ended")
        self.refused(self.svc.rpc("process.signal", {
            "id": pid[:-1] + ("0" if pid[-1] != "0" else "1"),
            "signal": "KILL"}), 404, "id.not_found")
        if trace is None:
            return
        self.eq(self.svc.run("true").json["exit_code"], 0)
        trace.send_signal(signal.SIGINT)
        trace.wait(10)
        trace.stderr.close()
        with open(out) as f:
            calls = f.read()
        self.eq("sendmsg(" in calls, True, "the run of true was not seen")
        self.eq([line for line in calls.splitlines() if "kill(" in line or
                 "pidfd_send_signal(" in line], [])

    def test_T076_signals(self):
        """The whole group, of the statement's list, by their names."""
        pid = self.go(f"sleep 91.{OWN} & sleep 91.{OWN} & wait; : group")
        self.eq(bool(until(10, lambda: len(marked(
            f"sleep\x0091.{OWN}")) >= 2)), True)
        for name in ("STOP", "CONT", "USR1", "term", "SIGTERM", "15", "", "0"):
            self.refused(self.svc.rpc("process.signal", {
                "id": pid, "signal": name}), 403,
                "policy.signal_not_allowed", what=name)
        r = self.svc.call("POST", f"/process/{pid}/signal",
                          {"signal": "TERM"})
        self.eq(self.ok(r).json, {})
        self.eq(self.wait(pid)["signal"], "TERM")
        self.gone(f"sleep\x0091.{OWN}")
        for name in ("KILL", "HUP", "INT"):
            # not by a shell: dash is deaf to INT for a moment at its start
            pid = self.ok(self.svc.rpc("process.start", {
                "argv": ["sleep", "92"]})).json["id"]
            self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                    "signal": name}))
            self.eq(self.wait(pid).get("signal"), name)
        # a list of its own
        pid = self.go("trap 'echo usr' USR1; echo up; while :; do sleep 0.1; "
                      "done", token=ALICE)
        f = Follow(self.svc, pid, token=ALICE).until(b"up")
        self.refused(self.svc.rpc("process.signal", {
            "id": pid, "signal": "TERM"}, token=ALICE), 403,
            "policy.signal_not_allowed")
        self.ok(self.svc.rpc("process.signal", {
            "id": pid, "signal": "USR1"}, token=ALICE))
        f.until(b"usr").close()
        self.ok(self.svc.rpc("process.signal", {
            "id": pid, "signal": "QUIT"}, token=ALICE))
        self.eq(self.wait(pid, token=ALICE)["signal"], "QUIT")
        # nobody has it who was not named
        self.refused(self.svc.rpc("process.signal", {
            "id": pid, "signal": "KILL"}, token=BOB), 404, "op.not_enabled")

    def test_foreign_is_unknown(self):
        pid = self.go("sleep 30", stdin_open=True)
        for op, more in (("get", {}), ("output", {}), ("wait", {}),
                         ("stdin", {"data": "x"}),
                         ("signal", {"signal": "USR1"})):
            want = None
            for name in (pid, *ODD):
                r = self.svc.rpc("process." + op, {"id": name, **more},
                                 token=ALICE)
                self.refused(r, 404, "id.not_found", what=f"{op} {name}")
                body = {k: v for k, v in r.json.items() if k != "request_id"}
                want = want or body
                self.eq(body, want, f"{op} {name}")
        self.refused(self.svc.get(f"/process/{pid}", token=ALICE), 404,
                     "id.not_found")
        self.refused(self.svc.get("/process/" + "A" * 100), 404,
                     "id.not_found")
        self.eq([p for p in self.ok(self.svc.rpc(
            "process.list", token=ALICE)).json["processes"]
            if p["id"] == pid], [])
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "KILL"}))

    def test_a_key_starts_one(self):
        head = {"Idempotency-Key": f"start-{time.monotonic()}"}
        args = {"argv": ["sh", "-c", "sleep 1"]}
        a = self.ok(self.svc.rpc("process.start", args, headers=head)).json
        b = self.ok(self.svc.rpc("process.start", args, headers=head)).json
        self.eq(a, b)

    def test_audit(self):
        pid = self.go("exit 5")
        self.wait(pid)
        # written when its answer was sent, so it is the last
        recs = self.svc.audits(lambda r: r["op"] == "process.wait" and
                               r["process"] == pid[:6])
        end = [r for r in recs if r.get("process") == pid[:6]]
        self.eq({r["op"] for r in end},
                {"process.start", "process.wait", "process.end"})
        end = [r for r in end if r["op"] == "process.end"][0]
        self.eq((end["principal"], end["exit_code"], end["outcome"],
                 end["program"]), ("root", 5, "ok", "/usr/bin/sh"))
        with open(self.svc.audit) as f:
            self.eq(pid in f.read(), False, "a whole id in the audit")

    def test_the_client_is_not_needed(self):
        """Neither who started it, nor any follower."""
        c = Conn(self.svc)
        c.send(self.svc.build("POST", "/process", {
            "argv": ["sh", "-c", "sleep 1.5; echo done"]}))
        pid = c.reply().json["id"]
        c.close()
        f = Follow(self.svc, pid)
        f.close()
        self.eq(self.wait(pid)["exit_code"], 0)
        self.eq(text(self.output(pid)), b"done\n")


class Output(Process):
    def test_what_is_there(self):
        pid = self.go("echo one; echo two >&2; sleep 30")
        until(10, lambda: len(self.output(pid)) == 2)
        got = self.output(pid)
        self.eq((text(got), text(got, "stderr"), [e for e, _ in got]),
                (b"one\n", b"two\n", ["stdout", "stderr"]),
                "and no exit while it runs")
        self.eq(text(self.output(pid, "?offset=2")), b"e\n")
        self.eq(self.output(pid, "?offset=400"), [])
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "KILL"}))
        self.wait(pid)
        for _ in range(2):
            got = self.output(pid)
            self.eq((text(got), got[-1][0], got[-1][1]["signal"]),
                    (b"one\n", "exit", "KILL"))
        r = self.ok(self.svc.rpc("process.output", {"id": pid,
                                                    "follow": True}))
        self.eq(events(r.body)[-1][0], "exit", "an ended one has an end")

    def test_follow(self):
        pid = self.go("echo early; read x; echo late; exit 4",
                      stdin_open=True)
        a = Follow(self.svc, pid).until(b"early")
        b = Follow(self.svc, pid).until(b"early")
        c = Follow(self.svc, pid, "?follow=true&offset=6")
        self.ok(self.svc.rpc("process.stdin", {"id": pid, "data": "\n"}))
        for f, want in ((a, b"early\nlate\n"), (b, b"early\nlate\n"),
                        (c, b"late\n")):
            got = f.all()
            self.eq((text(got), got[-1][0], got[-1][1]["exit_code"]),
                    (want, "exit", 4))

    def test_resume(self):
        """Every id of every event goes on exactly behind it."""
        pid = self.go("for i in 1 2 3; do printf '日本%s' $i; sleep 0.2; "
                      "printf 'e\\377%s' $i >&2; sleep 0.2; done")
        f = Follow(self.svc, pid)
        whole = f.all()
        out, err = text(whole), text(whole, "stderr")
        self.eq((out, err), ("日本1日本2日本3".encode(),
                             b"e\xff1e\xff2e\xff3"))
        seen = {"stdout": 0, "stderr": 0}
        for e, last, d in blocks(f.raw):
            if e == "exit":
                break
            self.eq(d["offset"], seen[e])
            seen[e] += len(told(d))
            rest = self.output(pid, headers={"Last-Event-ID": last})
            self.eq((text(rest), text(rest, "stderr")),
                    (out[seen["stdout"]:], err[seen["stderr"]:]), last)
        for bad in ("x", "1", "1-", "-1", "1-2-3", "99999999999999999999-0",
                    "1-x" + "1" * 100):
            self.refused(self.svc.get(
                f"/process/{pid}/output",
                headers={"Last-Event-ID": bad}), 400, "args.invalid",
                what=bad)
        self.refused(self.svc.get(f"/process/{pid}/output?offset=-1"), 400,
                     "args.type", "args.invalid")

    def test_T077_only_the_last_is_kept(self):
        n = 5_000_000
        pid = self.go(f"head -c {n} /dev/zero | tr '\\0' x; echo end >&2")
        self.wait(pid, 30)
        got = self.output(pid)
        self.eq([e for e, _ in got][0], "gap")
        gap = got[0][1]
        self.eq(gap, {"stream": "stdout", "offset": 0, "bytes": n - 2 ** 20})
        self.eq((len(text(got)), got[1][1]["offset"]),
                (2 ** 20, n - 2 ** 20))
        self.eq(text(got, "stderr"), b"end\n")
        self.eq((got[-1][0], got[-1][1]["truncated"],
                 got[-1][1]["dropped"]["stdout"]),
                ("exit", {"stdout": True, "stderr": False}, n - 2 ** 20))

    @needs_root
    def test_T077_memory_is_bounded(self):
        execd = self.svc.kid("abx-execd")
        pid = self.go("yes", timeout=30)
        time.sleep(1)
        before = rss(execd)
        time.sleep(20 if LONG else 3)
        self.under(rss(execd), before + 4096, "KiB")
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "KILL"}))
        self.eq(self.wait(pid)["signal"], "KILL")

    def test_a_slow_follower_delays_nobody(self):
        pid = self.go("read x; i=0; while [ $i -lt 300 ]; do head -c 20000 "
                      "/dev/zero | tr '\\0' x; echo; i=$((i+1)); done",
                      stdin_open=True)
        slow = Follow(self.svc, pid, rcvbuf=4096)
        quick = Follow(self.svc, pid)
        self.ok(self.svc.rpc("process.stdin", {"id": pid, "data": "\n"}))
        got = quick.all()
        self.eq((got[-1][0], got[-1][1]["exit_code"]), ("exit", 0))
        n = 300 * 20001

        def sums(got):
            return len(text(got)) + sum(
                d["bytes"] for e, d in got if e == "gap")
        self.eq(sums(got), n)
        got = slow.all()
        self.eq(got[-1][0], "exit")
        self.eq(sums(got), n, "what the slow one got and missed")
        at = 0
        for e, d in got[:-1]:
            self.eq(d["offset"], at)
            at += d["bytes"] if e == "gap" else len(told(d))

    @needs_root
    def test_followers_leave_nothing(self):
        execd = self.svc.kid("abx-execd")
        pid = self.go("echo up; sleep 30")
        Follow(self.svc, pid).until(b"up").close()
        before = until(10, lambda: len(fds(execd)))
        for _ in range(40):
            Follow(self.svc, pid).until(b"up").close()
        self.eq(until(10 * SLOW, lambda: len(fds(execd)) <= before), True,
                "descriptors")
        self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                "signal": "KILL"}))
        self.wait(pid)

    def test_a_streamed_run_has_no_holes(self):
        """Within max_output_bytes, however slow its reader is."""
        c = Conn(self.svc, rcvbuf=4096)
        c.send(self.svc.build("POST", "/commands/run", {
            "stream": True, "argv": [
                "sh", "-c", "i=0; while [ $i -lt 195 ]; do head -c 20000 "
                "/dev/zero | tr '\\0' x; i=$((i+1)); done; echo end >&2"]}))
        c.head()
        time.sleep(2 * SLOW)
        body = b""
        while part := c.chunk():
            body += part
        c.close()
        got = events(body)
        self.eq({e for e, _ in got}, {"stdout", "stderr", "exit"})
        self.eq((len(text(got)), text(got, "stderr")),
                (195 * 20000, b"end\n"))
        self.eq(got[-1][1]["truncated"], {"stdout": False, "stderr": False})


class Bounds(Process):
    limits = {"concurrency": 3}

    def test_running_ones_take_slots(self):
        ids = [self.go("sleep 30") for _ in range(3)]
        self.refused(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", "sleep 30"]}), 429, "limit.concurrency")
        self.go("true", token=ALICE)
        for pid in ids:
            self.ok(self.svc.rpc("process.signal", {"id": pid,
                                                    "signal": "KILL"}))
        for pid in ids:
            self.wait(pid)
        self.wait(self.go("exit 0"))


class Many(Process):
    def test_ended_ones_make_room(self):
        ids = []
        for _ in range(70):
            ids.append(self.go("echo x"))
            self.wait(ids[-1])
        got = self.ok(self.svc.rpc("process.list")).json["processes"]
        self.eq(len(got), 64)
        self.eq([p["id"] for p in got], ids[:-65:-1], "the newest, first")
        self.refused(self.svc.get(f"/process/{ids[0]}"), 404, "id.not_found")
        self.eq(text(self.output(ids[-1])), b"x\n")

    @needs_root
    def test_T078_nothing_is_left(self):
        execd, n = self.svc.kid("abx-execd"), 200 if LONG else 64
        for _ in range(64):  # the table is full from here on
            self.wait(self.go("exit 0"))
        before = len(fds(execd))
        for _ in range(n):
            self.wait(self.go("echo x"))
        self.eq(until(10, lambda: len(fds(execd)) <= before), True,
                f"descriptors: {before} before, {len(fds(execd))} after")

        def zombies():
            return [p for p in family(self.svc.proc.pid)
                    if (proc_stat(p) or "   ")[2] == "Z"]
        self.eq(until(10, lambda: not zombies()), True, "zombies")


class Ends(Process):
    """What ends processes that nobody ended, and what does not."""

    @classmethod
    def conf(cls, w):
        return None

    def served(self):
        """A service of its own, with a log of its own."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        return self.start({**config(w, {}), "reload": "sighup"}, world=w)

    def abxctl(self, svc, verb):
        p = subprocess.run([f"{BUILD}/abxctl", "-f", svc.file, verb],
                           env={**svc.env, **TOKENS}, capture_output=True,
                           timeout=60)
        self.eq(p.returncode, 0, p.stderr)

    @needs_root
    def test_the_listener_is_not_needed(self):
        svc = self.served()
        svc.rough = True
        pid = self.go("echo up; sleep 3; echo down; exit 6")
        os.kill(svc.kid("abx-listener"), signal.SIGKILL)
        svc.ready()
        self.eq(self.state(pid), "running")
        self.eq(self.wait(pid)["exit_code"], 6)
        self.eq(text(self.output(pid)), b"up\ndown\n")

    @needs_root
    def test_lost_with_execd(self):
        svc = self.served()
        svc.rough = True
        pid = self.go(f"echo up; sleep 41.{OWN}")
        f = Follow(svc, pid).until(b"up")
        c = Conn(svc)
        c.send(svc.build("GET", f"/process/{pid}/wait?timeout=50"))
        time.sleep(0.3)
        os.kill(svc.kid("abx-execd"), signal.SIGKILL)
        got = f.all()
        self.eq((got[-1][0], got[-1][1]["lost"]), ("exit", True))
        end = c.reply().json
        self.eq((end["lost"], end["exit_code"], end["signal"]),
                (True, None, None))
        got = self.ok(svc.get(f"/process/{pid}")).json
        self.eq((got["state"], got["result"]["lost"]), ("ended", True))
        self.refused(svc.get(f"/process/{pid}/output"), 503,
                     "server.unavailable")
        self.gone(f"sleep\x0041.{OWN}")
        self.eq(until(10, lambda: svc.run("true").status == 200), True)
        rec = svc.audits(lambda r: r["op"] == "process.end")[-1]
        self.eq(any(r["op"] == "process.end" and r["outcome"] == "lost"
                    for r in svc.records), True, rec)

    def test_panic(self):
        svc = self.served()
        pid = self.go(f"echo up; trap '' TERM; sleep 42.{OWN}; sleep 42.{OWN}")
        Follow(svc, pid).until(b"up").close()
        self.abxctl(svc, "panic")
        end = self.wait(pid)
        self.eq(end["cancelled"], True)
        self.gone(f"sleep\x0042.{OWN}")
        self.eq(text(self.output(pid)), b"up\n", "its output is kept")
        self.refused(svc.rpc("process.start", {"argv": ["true"]}), 503,
                     "sandbox.unavailable")
        self.abxctl(svc, "resume")
        self.wait(self.go("exit 0"))

    def test_reload(self):
        """Its principal stays: it runs on.  The principal goes: it ends."""
        svc = self.served()
        mine = self.go(f"echo up; sleep 43.{OWN}")
        pid = self.go(f"echo up; sleep 44.{OWN}", token=ALICE)
        Follow(svc, pid, token=ALICE).until(b"up").close()
        svc.config["rules"].append({"allow": "core.check"})
        svc.write(svc.config)
        self.abxctl(svc, "reload")
        self.eq(self.state(mine), "running")
        svc.config["auth"] = {"tokens": [
            t for t in svc.config["auth"]["tokens"] if t["id"] != "alice"]}
        svc.write(svc.config)
        self.abxctl(svc, "reload")
        self.gone(f"sleep\x0044.{OWN}")
        self.eq(self.state(mine), "running")

    def test_stop_leaves_nothing(self):
        svc = self.served()
        for _ in range(3):
            self.go(f"trap '' TERM; sleep 45.{OWN}; sleep 45.{OWN}")
        svc.stop()
        self.gone(f"sleep\x0045.{OWN}")


del Process
