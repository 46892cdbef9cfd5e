# SPDX-License-Identifier: ISC
"""Sessions: their workspaces are made, kept, listed and removed, each its
owner's alone; and what files.* and commands see of them."""
import hashlib
import json
import os
import pwd
import signal
import stat
import subprocess
import threading
import time

from abxtest import (ADMIN, ALICE, BOB, OWN, READ, ROOT, RUN_USER, SLOW, WRITE,
                     Case, Conn, Service, World, alive, family, marked,
                     needs_root, until)
from test_layers import abxctl

EXEC = ["commands.run", "process.start"]
PROC = ["process.list", "process.get", "process.wait"]
SPACE = ["workspace.list", "workspace.delete"]
BAD = ("", ".", "..", "a/b", "../x", "a b", "\u00e9", "x" * 129, "a\n",
       "{session}")


def config(w, scope=None, workspace=None, **keys):
    cwd = {"roots": [w.w], "deny": ["*.pem", "shut/**"], **(scope or {})}
    return {"allow_lint_errors": True,
            "http": {"max_connections": 160},
            "sandbox": {"workspace_root": w / "work",
                        "workspace": workspace or {}},
            "rules": [
                {"allow": EXEC + PROC + SPACE + ["core.check"],
                 "commands": {"allow": ["sh -c ...", "cat {path}", "pwd"],
                              "cwd": cwd, "timeout": "10m"}},
                {"allow": "process.signal"},
                {"allow": READ + WRITE + ["files.search", "files.export"],
                 "paths": [w.w, w / "work/{session}"]},
                {"allow": "files.edit", "paths": w.w + "/{session}"}],
            **keys}


def hashed(owner, session):
    return hashlib.sha256(f"{owner}\0{session}".encode()).hexdigest()[:32]


def hidden(reply):
    """A body without what differs in every answer."""
    return {k: v for k, v in reply.json.items() if k != "request_id"}


class Sessions(Case):
    def place(self, owner, session):
        return self.world / "work/" + hashed(owner, session)

    def sh(self, script, session=None, token=ADMIN, **args):
        if session is not None:
            args["session"] = session
        return self.out(self.svc.run("sh", "-c", script, token=token, **args))

    def names(self, token=ADMIN):
        got = self.ok(self.svc.get("/workspace", token=token)).json
        return sorted(w["session"] for w in got["workspaces"])

    def delete(self, session, token=ADMIN):
        r = self.ok(self.svc.call("DELETE", "/workspace/" + session,
                                  token=token))
        self.eq(r.json, {})


class Use(Sessions):
    @classmethod
    def conf(cls, w):
        return config(w)

    def test_made_and_used_again(self):
        place = self.place("root", "one")
        self.eq(os.path.exists(place), False)
        self.eq(self.sh("pwd; echo $HOME; echo 1 > note", "one"),
                f"{place}\n{place}\n")
        st = os.stat(place)
        self.eq(stat.S_IMODE(st.st_mode), 0o700)
        if ROOT:
            self.eq(st.st_uid, pwd.getpwnam(RUN_USER).pw_uid)
        self.eq(self.sh("cat note", "one"), "1\n")
        self.eq(self.sh("cat note || echo none", "two"), "none\n")
        self.eq(self.sh("cat note || echo none; pwd"),
                f"none\n{self.world.w}\n")
        self.eq(self.sh("cat note || echo none", "one", ALICE), "none\n")
        self.eq(os.path.exists(self.place("alice", "one")), True)
        # nothing of the others can be seen from inside
        self.eq(self.sh(f"ls -a .. {self.place('alice', 'one')} || echo no",
                        "one"), "no\n")
        self.delete("one")
        self.eq(os.path.exists(place), False)
        self.eq(self.sh("cat note || echo none", "one"), "none\n")

    def test_bad_names(self):
        for bad in BAD:
            for op, args in (
                    ("commands.run", {"argv": ["pwd"]}),
                    ("process.start", {"argv": ["pwd"]}),
                    ("files.list", {"path": "."}), ("workspace.delete", {})):
                r = self.svc.rpc(op, {**args, "session": bad})
                self.refused(r, 400, "args.invalid", what=(op, bad))
                self.eq(r.json["details"]["param"], "session")
            r = self.ok(self.svc.rpc("core.check", {
                "op": "commands.run",
                "args": {"argv": ["pwd"], "session": bad}}))
            self.eq(r.json["code"], "args.invalid", bad)
        for odd in (7, True, None, ["a"], {"a": "b"}):
            self.refused(self.svc.rpc("commands.run", {
                "argv": ["pwd"], "session": odd}), 400, "args.type")
        for good in (".x", "...", "A.b_c-9", "x" * 128, "-"):
            self.eq(self.sh("pwd", good).strip(), self.place("root", good))
            self.delete(good)
        self.refused(self.svc.rpc("core.health", {"session": "a"}), 400,
                     "args.unknown")

    def test_cwd_and_paths(self):
        place = self.place("root", "cwd")
        self.sh("mkdir -p sub/deep; echo x > sub/f; ln -s / out; "
                "ln -s sub in", "cwd")
        self.eq(self.sh("pwd; echo $HOME; cat f; cat ../note || echo none",
                        "cwd", cwd="sub"),
                f"{place}/sub\n{place}\nx\nnone\n")
        self.eq(self.sh("pwd", "cwd", cwd=place + "/sub").strip(),
                place + "/sub")
        self.eq(self.sh("pwd", "cwd", cwd="in").strip(), place + "/sub")
        for cwd in (self.world.w, "/", "..", "out", "out/etc", place + "-x",
                    os.path.dirname(place), self.place("root", "other")):
            r = self.svc.run("pwd", session="cwd", cwd=cwd)
            self.refused(r, 403, "policy.path_not_allowed", what=cwd)
        self.refused(self.svc.run("pwd", session="cwd", cwd="no"), 404,
                     "fs.not_found")
        self.eq(self.out(self.svc.run("cat", "sub/f", session="cwd")), "x\n")
        self.eq(self.out(self.svc.run("cat", place + "/sub/f",
                                      session="cwd")), "x\n")
        self.eq(self.out(self.svc.run("cat", "f", session="cwd",
                                      cwd="sub")), "x\n")
        for path in (self.world.w + "/a.txt", "../a.txt", "out/etc/passwd",
                     "/etc/passwd"):
            self.refused(self.svc.run("cat", path, session="cwd"), 403,
                         "policy.command_not_allowed", what=path)
        # the roots of the scope are not there for a session, nor the
        # workspace without one
        self.refused(self.svc.run("cat", place + "/sub/f"), 403,
                     "policy.command_not_allowed")
        self.delete("cwd")

    def test_denies_hold(self):
        self.sh("mkdir shut; echo S > shut/f; echo S > key.pem; echo o > o",
                "deny")
        for path in ("key.pem", "./key.pem", "shut/f"):
            self.refused(self.svc.run("cat", path, session="deny"), 403,
                         "policy.command_not_allowed", what=path)
        self.eq(self.sh("cat key.pem; ls shut; cat o", "deny"), "o\n")
        self.refused(self.svc.run("pwd", session="deny", cwd="shut"), 403,
                     "policy.path_denied")
        self.delete("deny")

    def test_a_denied_call_makes_nothing(self):
        before = os.listdir(self.world / "work")
        for args in ({"argv": ["id"]}, {"argv": ["cat", "/etc/passwd"]},
                     {"argv": ["pwd"], "cwd": "/"},
                     {"argv": ["pwd"], "cwd": "sub"},
                     {"argv": ["pwd"], "env": {"PATH": "/x"}}, {}):
            self.among(self.svc.rpc("commands.run", {
                **args, "session": "fresh"}).status, (400, 403, 404), args)
        for path in ("x", "a.txt"):
            self.ok(self.svc.rpc("core.check", {
                "op": "commands.run",
                "args": {"argv": ["cat", path], "session": "fresh"}}))
        self.eq(os.listdir(self.world / "work"), before)
        self.eq("fresh" in self.names(), False)

    def test_check_and_explain_say_the_same(self):
        self.sh("mkdir sub; echo x > sub/f; echo x > k.pem", "same", ALICE)
        calls = [{"argv": argv, "session": session, **more}
                 for session in ("same", "new", "a/b")
                 for argv in (["pwd"], ["cat", "sub/f"], ["cat", "k.pem"],
                              ["cat", "nothing"], ["cat", "../x"], ["id"])
                 for more in ({}, {"cwd": "sub"}, {"cwd": "/etc"})]
        for args in calls:
            check = self.ok(self.svc.rpc("core.check", {
                "op": "commands.run", "args": args}, token=ALICE)).json
            words = [w for k, v in args.items()
                     for x in (v if isinstance(v, list) else [v])
                     for w in ("--arg", f"{k}={x}")]
            p = abxctl("-f", self.svc.file, "--json", "explain", "--op",
                       "commands.run", "--principal", "alice", *words)
            self.among(p.returncode, (0, 1), p.stderr)
            told = json.loads(p.stdout)
            r = self.svc.rpc("commands.run", args, token=ALICE)
            real = "ok" if r.status == 200 else r.code
            if ROOT or args["session"] != "same":
                self.eq(told["code"], real, args)
            self.eq(check["code"], real, args)
            if args["session"] == "new" and r.status == 200:
                self.delete("new", ALICE)
        self.delete("same", ALICE)

    def test_list_and_delete(self):
        self.eq(self.names(BOB), [])
        self.sh("head -c 100000 /dev/urandom > big", "l1", BOB)
        self.sh("true", "l2", BOB)
        got = self.ok(self.svc.rpc("workspace.list", token=BOB)).json
        got = {w["session"]: w for w in got["workspaces"]}
        self.eq(sorted(got), ["l1", "l2"])
        for w in got.values():
            self.eq(set(w), {"session", "bytes", "last_used"})
            self.assertRegex(w["last_used"],
                             r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.000Z$")
        self.eq(100000 <= got["l1"]["bytes"] < 300000, True, got)
        self.under(got["l2"]["bytes"], 65536)
        self.eq(set(self.names(ALICE)) & {"l1", "l2"}, set())
        # foreign, wrong and gone are the same
        unknown = self.svc.rpc("workspace.delete", {"session": "nobody-s"},
                               token=ALICE)
        self.refused(unknown, 404, "id.not_found")
        foreign = self.svc.rpc("workspace.delete", {"session": "l1"},
                               token=ALICE)
        self.eq(hidden(foreign), hidden(unknown))
        self.ok(self.svc.rpc("workspace.delete", {"session": "l1"},
                             token=BOB))
        gone = self.svc.call("DELETE", "/workspace/l1", token=BOB)
        self.eq(hidden(gone), hidden(unknown))
        self.eq(self.names(BOB), ["l2"])
        self.delete("l2", BOB)
        for method, path in (("POST", "/workspace"), ("DELETE", "/workspace"),
                             ("GET", "/workspace/l1"),
                             ("DELETE", "/workspace/a/b")):
            self.refused(self.svc.call(method, path), 404, "op.not_enabled")
        self.refused(self.svc.call("DELETE", "/workspace/l1?session=l2"),
                     400, "args.invalid")
        self.refused(self.svc.call("DELETE", "/workspace/" + "x" * 129),
                     400, "args.invalid")
        self.refused(self.svc.rpc("workspace.delete"), 400, "args.missing")

    def test_delete_kills(self):
        args = {"argv": ["sh", "-c", f"echo x > f; sleep 4711.{OWN}"],
                "session": "kill"}
        got = self.ok(self.svc.rpc("process.start", args)).json
        self.eq(got["session"], "kill")
        other = self.ok(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", f"sleep 4712.{OWN}"], "session": "kill"},
            token=ALICE)).json
        replies = []
        t = threading.Thread(target=lambda: replies.append(self.svc.rpc(
            "commands.run", {"argv": ["sh", "-c", f"sleep 4713.{OWN}"],
                             "session": "kill"})))
        t.start()
        self.eq(bool(until(10 * SLOW, lambda: marked(
            f"sleep 4713.{OWN}"))), True)
        self.delete("kill")
        self.eq(os.path.exists(self.place("root", "kill")), False)
        t.join(20 * SLOW)
        self.eq(self.ok(replies[0]).json["cancelled"], True)
        self.eq(marked(f"sleep 4711.{OWN}") + marked(f"sleep 4713.{OWN}"), [])
        end = self.ok(self.svc.get(f"/process/{got['id']}")).json
        self.eq((end["state"], end["result"]["cancelled"], end["session"]),
                ("ended", True, "kill"))
        # alice's of that name runs on
        self.eq(self.ok(self.svc.get(f"/process/{other['id']}",
                                     token=ALICE)).json["state"], "running")
        self.delete("kill", ALICE)
        self.eq(marked(f"sleep 4712.{OWN}"), [])

    def test_what_keeps_its_owner_out_can_be_deleted(self):
        self.sh("mkdir -p a/b; echo x > a/b/f; chmod 0 a/b; chmod 500 a; "
                "i=0; while [ $i -lt 300 ]; do "
                "mkdir dddddddddddddddddddd && cd dddddddddddddddddddd; "
                "i=$((i+1)); done; chmod 0 ~/a; chmod 0 ~; true", "odd")
        self.delete("odd")
        self.eq(os.path.exists(self.place("root", "odd")), False)
        self.eq(self.sh("ls -A", "odd"), "")
        self.delete("odd")

    def test_audit(self):
        r = self.svc.run("pwd", session="seen")
        rec = self.svc.audit_of(r)
        self.eq((rec["op"], rec.get("session")), ("commands.run", "seen"))
        rec = self.svc.audit_of(self.svc.run("pwd"))
        self.eq("session" in rec, False)
        rec = self.svc.audit_of(self.svc.run("pwd", session="no/name"))
        self.eq("session" in rec, False)
        pid = self.ok(self.svc.rpc("process.start", {
            "argv": ["pwd"], "session": "seen"})).json["id"]
        self.ok(self.svc.get(f"/process/{pid}/wait"))
        ends = [r for r in self.svc.audits(
            lambda r: r["op"] == "process.end" and r["process"] == pid[:6])
            if r.get("process") == pid[:6] and r["op"] == "process.end"]
        self.eq([r.get("session") for r in ends], ["seen"])
        self.delete("seen")

    def test_64_first_uses_at_once(self):
        n, got = 64, []

        def use(i):
            got.append(self.svc.run(
                "sh", "-c", f"echo {i} > f{i}; pwd", session="many"))
        threads = [threading.Thread(target=use, args=(i,)) for i in range(n)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        place = self.place("root", "many")
        self.eq({self.out(r).strip() for r in got}, {place})
        self.eq(len(got), n)
        self.eq(len(self.sh("ls", "many").split()), n)
        self.eq(self.names().count("many"), 1)
        self.delete("many")
    test_64_first_uses_at_once.abx_timeout = 180

    def test_delete_and_use_at_once(self):
        """Every call gets a true answer, and in the end it is gone."""
        stop = time.monotonic() + 3
        odd = []

        def use():
            while time.monotonic() < stop:
                r = self.svc.run("sh", "-c", "echo 1 > f.$$; cat f.$$",
                                 session="race")
                if r.status == 200 and (r.json["stdout"] == "1\n"
                                        or r.json["cancelled"]):
                    continue
                if (r.status, r.code) not in (
                        (503, "server.unavailable"),
                        (403, "policy.path_changed")):
                    odd.append(repr(r))

        def delete():
            while time.monotonic() < stop:
                r = self.svc.call("DELETE", "/workspace/race")
                if (r.status, r.code) not in ((200, None),
                                              (404, "id.not_found")):
                    odd.append(repr(r))
        threads = [threading.Thread(target=f)
                   for f in (use, use, use, delete, delete)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.eq(odd, [])
        self.svc.call("DELETE", "/workspace/race")
        self.eq("race" in self.names(), False)
        self.eq(os.path.exists(self.place("root", "race")), False)


class Files(Sessions):
    @classmethod
    def fill(cls, w):
        w.put("w/plain/e.txt", "one\n")

    @classmethod
    def conf(cls, w):
        return config(w)

    def test_the_same_files(self):
        place = self.place("alice", "f")
        up = place + "/up.txt"
        # absent, and none named
        for more in ("&session=f", ""):
            r = self.svc.upload(up, b"x", more, token=ALICE)
            self.refused(r, 403, "policy.path_not_allowed", what=more)
            r = self.svc.list(place, more, token=ALICE)
            self.refused(r, 403, "policy.path_not_allowed", what=more)
        self.eq(os.path.exists(place), False)
        self.sh("echo made > made", "f", ALICE)
        self.ok(self.svc.upload(up, b"up\n", "&session=f", token=ALICE), 201)
        self.eq(self.sh("cat up.txt", "f", ALICE), "up\n")
        r = self.svc.get(f"/files/download-stream?path={place}/made"
                         "&session=f", token=ALICE)
        self.eq(self.ok(r).body, b"made\n")
        got = self.ok(self.svc.list(place, "&session=f", token=ALICE)).json
        self.eq(sorted(e["name"] for e in got["entries"]),
                ["made", "up.txt"])
        # another session, another caller, no session
        for session, token in (("g", ALICE), ("f", BOB), ("f", ADMIN)):
            r = self.svc.list(place, "&session=" + session, token=token)
            self.refused(r, 403, "policy.path_not_allowed")
        self.sh("true", "f", BOB)
        r = self.svc.list(place, "&session=f", token=BOB)
        self.refused(r, 403, "policy.path_not_allowed")
        self.refused(self.svc.list(place, token=ALICE), 403,
                     "policy.path_not_allowed")
        # the workspace itself is no entry
        r = self.svc.call("DELETE", f"/files?path={place}&session=f"
                          "&recursive=true", token=ALICE)
        self.refused(r, 403, "policy.root_protected")
        for op in ("files.stat", "files.list", "files.search",
                   "files.download"):
            args = {"path": place + "/made", "session": "f"}
            if op == "files.search":
                args = {"root": place, "pattern": "mad", "session": "f"}
            if op == "files.list":
                args["path"] = place
            self.ok(self.svc.rpc(op, args, token=ALICE))
        self.delete("f", ALICE)
        r = self.svc.list(place, "&session=f", token=ALICE)
        self.refused(r, 403, "policy.path_not_allowed")
        self.delete("f", BOB)

    def test_elsewhere_it_is_the_name(self):
        edits = [{"find": "one", "replace": "two"}]
        path = self.world.w + "/plain/e.txt"
        for session, code in (("other", "policy.path_not_allowed"),
                              (".plain", "policy.path_not_allowed"),
                              (None, "policy.path_not_allowed")):
            args = {"path": path, "edits": edits}
            if session:
                args["session"] = session
            self.refused(self.svc.rpc("files.edit", args), 403, code,
                         what=session)
        self.ok(self.svc.rpc("files.edit", {
            "path": path, "edits": edits, "session": "plain"}))
        self.eq(self.world.get("w/plain/e.txt"), b"two\n")
        self.ok(self.svc.rpc("files.edit", {
            "path": "e.txt", "edits": [{"find": "two", "replace": "one"}],
            "session": "plain"}))


class Own(Sessions):
    """Every test has a world of its own."""

    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.remove)
        self.world.own()


class Limits(Own):
    def test_count(self):
        self.start(config(self.world, workspace={"max": 2}), self.world)
        for name in ("a", "b"):
            self.sh("true", name)
        r = self.svc.run("pwd", session="c")
        self.refused(r, 429, "limit.workspaces")
        self.eq(os.path.exists(self.place("root", "c")), False)
        self.sh("true", "a")
        self.sh("true", "c", ALICE)  # each has his own
        self.delete("a")
        self.sh("true", "c")
        self.eq(self.names(), ["b", "c"])

    def test_ttl(self):
        self.start(config(self.world, workspace={"ttl": "2s"}), self.world)
        self.sh("true", "idle")
        pid = self.ok(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", f"sleep 4721.{OWN}"], "session": "busy"}))
        self.eq(until(15 * SLOW, lambda: not os.path.exists(
            self.place("root", "idle"))), True)
        self.eq(until(10, lambda: self.names() == ["busy"]), True)
        self.eq(self.ok(self.svc.get(
            f"/process/{pid.json['id']}")).json["state"], "running")
        self.delete("busy")

    def test_max_bytes(self):
        self.start(config(self.world, workspace={"max_bytes": "2MiB"}),
                   self.world)
        self.sh("head -c 1000000 /dev/zero > f", "big")
        time.sleep(6)
        began = time.monotonic()
        r = self.svc.run(
            "sh", "-c", "head -c 5000000 /dev/urandom > g; sleep 40; echo no",
            session="big")
        self.eq((self.ok(r).json["cancelled"], r.json["stdout"]), (True, ""))
        self.under(time.monotonic() - began, 15 * SLOW)
        self.refused(self.svc.run("pwd", session="big"), 507,
                     "workspace.full")
        self.eq(self.names(), ["big"])
        self.sh("true", "small")
        # what takes the room can be removed, and then it goes on
        place = self.place("root", "big")
        self.ok(self.svc.call("DELETE",
                              f"/files?path={place}/g&session=big"))
        self.eq(until(12 * SLOW, lambda: self.svc.run(
            "pwd", session="big").status == 200), True)
        self.delete("big")

    def test_max_bytes_of_many(self):
        """Each is measured, however many are in use."""
        self.start(config(self.world, workspace={"max_bytes": "2MiB"}),
                   self.world)

        def go(session, script):
            return self.ok(self.svc.rpc("process.start", {
                "argv": ["sh", "-c", script], "session": session})).json["id"]
        pid = go("big", "head -c 5000000 /dev/urandom > g; sleep 60")
        for i in range(10):
            go(f"small{i}", "sleep 60")
        end = self.ok(self.svc.get(
            f"/process/{pid}/wait?timeout={15 * SLOW}")).json
        self.eq(end.get("cancelled"), True, end)
        self.eq(len([p for p in self.ok(self.svc.get("/process")).json[
            "processes"] if p["state"] == "running"]), 10)

    def test_hidden_bytes(self):
        """What cannot be looked through counts as too large."""
        self.start(config(self.world, workspace={"max_bytes": "2MiB"}),
                   self.world)
        r = self.svc.run("sh", "-c", "mkdir d; head -c 5000000 /dev/urandom "
                         "> d/g; chmod 0 d; sleep 40; echo no", session="h")
        self.eq((self.ok(r).json["cancelled"], r.json["stdout"]), (True, ""))
        self.refused(self.svc.run("pwd", session="h"), 507, "workspace.full")
        self.delete("h")
        self.sh("true", "h")

    def test_readonly_scope(self):
        self.start(config(self.world, {"readonly": True}), self.world)
        self.eq(self.sh("echo x > f || echo refused; ls", "ro"), "refused\n")


class Start(Own):
    def again(self, sig=signal.SIGTERM):
        """Stop the service and start it anew, as it was."""
        if sig == signal.SIGKILL:
            self.svc.rough = True
            procs = family(self.svc.proc.pid)
            os.kill(self.svc.proc.pid, sig)
            self.svc.proc.wait()
            until(10 * SLOW, lambda: not alive(procs))
        else:
            self.svc.stop(sig)
        self.svc.start()

    def file(self):
        return self.world / "state/sessions"

    def lines(self):
        with open(self.file()) as f:
            return [json.loads(x) for x in f if x.strip()]

    def used(self, token=ADMIN):
        got = self.ok(self.svc.get("/workspace", token=token)).json
        return {w["session"]: w["last_used"] for w in got["workspaces"]}

    @needs_root
    def test_kept_over_a_restart(self):
        self.start(config(self.world), self.world)
        self.sh("echo 1 > note", "a")
        self.sh("true", "b")
        self.sh("echo 2 > note", "a", ALICE)
        self.delete("b")
        used = self.used()
        self.eq(stat.S_IMODE(os.stat(self.file()).st_mode), 0o600)
        time.sleep(1.1)
        self.again()
        self.eq(self.used(), used)
        self.eq(self.names(ALICE), ["a"])
        self.eq(self.sh("cat note", "a"), "1\n")
        self.eq(self.sh("cat note", "a", ALICE), "2\n")
        # one line each, and no second file
        self.eq(sorted((x["principal"], x["session"]) for x in self.lines()
                       if not x.get("gone")),
                [("alice", "a"), ("root", "a")])
        self.eq([n for n in os.listdir(self.world / "state")
                 if "sess" in n], ["sessions"])
        self.again(signal.SIGKILL)
        self.eq((self.names(), self.names(ALICE)), (["a"], ["a"]))

    @needs_root
    def test_full_disk_at_start(self):
        """It starts without sessions, and what there was is there again when
        there is room."""
        w = self.world
        self.start(config(w), w)
        self.sh("echo 1 > note", "a")
        self.svc.stop()
        state, argv = w / "state", self.svc.argv
        script = (f"cp -a {state} {w.dir}/kept && mount -t tmpfs -o "
                  f"size=16k,mode=0700 none {state} && "
                  f"chown --reference={w.dir}/kept {state} && "
                  f"cp -a {w.dir}/kept/. {state}/ && "
                  f"{{ dd if=/dev/zero of={state}/full bs=512 2>/dev/null; "
                  f"cp -a {state}/sessions {w.dir}/saw; }}; "
                  'exec "$@"')
        probe = subprocess.run(["unshare", "-m", "true"],
                               capture_output=True)
        if probe.returncode:
            self.skipTest(probe.stderr.decode().strip())
        self.svc.argv = ["unshare", "-m", "--propagation", "private", "sh",
                         "-c", script, "sh", *argv]
        self.svc.start()
        self.eq("index of workspaces cannot be written" in self.svc.logged(),
                True, "a warning")
        self.refused(self.svc.run("pwd", session="a"), 503,
                     "server.unavailable")
        self.ok(self.svc.get("/health", token=None))
        self.svc.stop()
        self.svc.argv = argv
        self.svc.start()
        self.eq(self.sh("cat note", "a"), "1\n")

    @needs_root
    def test_what_does_not_belong_together(self):
        self.start(config(self.world), self.world)
        self.sh("true", "stays")
        self.sh("true", "lost")
        self.svc.stop()
        work = self.world / "work"
        os.rmdir(self.place("root", "lost"))
        me = os.stat(work)
        for name in ("0" * 32, hashed("root", "never")):
            os.mkdir(work + "/" + name)
            with open(f"{work}/{name}/f", "w") as f:
                f.write("x")
            os.mkdir(f"{work}/{name}/d", 0o500)
            for p in (name, name + "/f", name + "/d"):
                os.chown(f"{work}/{p}", me.st_uid, me.st_gid)
        os.mkdir(work + "/not-ours")
        os.symlink("/etc", work + "/" + "1" * 32)
        with open(self.file(), "a") as f:
            f.write('garbage\n{"name":"' + "2" * 32 + '","gone":true}\n'
                    '{"name":"' + "3" * 32 + '","principal":"root",'
                    '"session":"x","used":1}\n\n{"name":"')
        self.svc.start()
        self.eq(self.names(), ["stays"])
        self.eq(until(10 * SLOW, lambda: sorted(os.listdir(work)) == sorted(
            [hashed("root", "stays"), "not-ours", "1" * 32])), True,
            os.listdir(work))
        self.sh("true", "lost")
        self.eq(self.names(), ["lost", "stays"])
        self.eq("broken lines" in self.svc.logged(), True)

    @needs_root
    def test_ttl_counts_over_a_restart(self):
        self.start(config(self.world, workspace={"ttl": "1h"}), self.world)
        self.sh("true", "old")
        self.sh("true", "new")
        self.svc.stop()
        lines = self.lines()
        with open(self.file(), "w") as f:
            for x in lines:
                if x["session"] == "old":
                    x["used"] -= 3601
                f.write(json.dumps(x) + "\n")
        self.svc.start()
        self.eq(until(15 * SLOW, lambda: self.names() == ["new"]), True)

    def test_before_the_first_start(self):
        s = Service(self.world, config(self.world))
        for args, code in ((["argv=pwd"], "ok"), (["argv=cat", "argv=x/y"],
                                                  "ok"),
                           (["argv=cat", "argv=../x"],
                            "policy.command_not_allowed"),
                           (["argv=pwd", "cwd=sub"], "fs.not_found")):
            words = [w for a in args for w in ("--arg", a)]
            p = abxctl("-f", s.file, "--json", "explain", "--op",
                       "commands.run", "--principal", "alice", "--session",
                       "first", *words)
            told = json.loads(p.stdout)
            self.eq(told["code"], code, args)
            if code == "ok":
                self.eq((told["command"]["workspace"],
                         told["command"]["cwd"]),
                        (hashed("alice", "first"),
                         self.place("alice", "first")))
        self.eq(os.path.exists(self.world / "work"), False)

    def test_the_place_must_be_safe(self):
        w = self.world
        os.mkdir(w / "work")
        os.chmod(w / "work", 0o777)
        s = Service(w, config(w))
        s.spawn()
        self.addCleanup(s.kill)
        self.eq(s.proc.wait(20 * SLOW), 1)
        self.eq("config.root_invalid: the workspace root" in s.logged(),
                True, s.tail())

    @needs_root
    def test_revoked(self):
        c = config(self.world, reload="sighup")
        self.start(c, self.world)
        pid = self.ok(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", f"sleep 4731.{OWN}"], "session": "r"},
            token=BOB)).json["id"]
        self.ok(self.svc.get(f"/process/{pid}", token=BOB))
        new = {**self.svc.config, "auth": {"tokens": [
            t for t in self.svc.config["auth"]["tokens"]
            if t["id"] != "bob"]}}
        self.svc.write(new)
        os.kill(self.svc.proc.pid, signal.SIGHUP)
        self.eq(until(10 * SLOW, lambda: not marked(
            f"sleep 4731.{OWN}")), True)
        # what he left is kept
        self.eq(os.path.exists(self.place("bob", "r")), True)

    @needs_root
    def test_revoked_while_it_goes(self):
        """Who is asked to end what runs in a workspace that pathd removes
        answers when it is gone."""
        self.start(config(self.world, reload="sighup"), self.world)
        self.ok(self.svc.rpc("commands.run", {
            "argv": ["sh", "-c", "true"], "session": "g"}, token=BOB))
        pathd = self.svc.kid("abx-pathd")
        workers = [p for p in family(pathd) if p != pathd]
        execd = self.svc.kid("abx-execd")
        for pid in workers:
            os.kill(pid, signal.SIGSTOP)
        with Conn(self.svc) as c:
            c.send(self.svc.build("POST", "/rpc/workspace.delete",
                                  {"session": "g"}, token=BOB))
            time.sleep(0.5)
            os.kill(execd, signal.SIGSTOP)
            self.svc.write({**self.svc.config, "auth": {"tokens": [
                t for t in self.svc.config["auth"]["tokens"]
                if t["id"] != "bob"]}})
            os.kill(self.svc.proc.pid, signal.SIGHUP)
            self.eq(until(10 * SLOW, lambda: self.svc.get(
                "/capabilities", token=BOB).status == 401), True)
            for pid in workers:
                os.kill(pid, signal.SIGCONT)
            self.eq(until(10 * SLOW, lambda: not os.path.exists(
                self.place("bob", "g"))), True)
            time.sleep(0.2)
            os.kill(execd, signal.SIGCONT)
        self.sh("true", "after")
        self.eq(self.names(), ["after"])

    @needs_root
    def test_a_reload_cannot_move_them(self):
        self.start(config(self.world, reload="sighup"), self.world)
        self.sh("true", "here")
        new = json.loads(json.dumps(self.svc.config))
        new["sandbox"]["workspace_root"] = self.world / "elsewhere"
        self.svc.write(new)
        p = abxctl("-f", self.svc.file, "reload")
        self.eq("sandbox.workspace_root" in p.stdout + p.stderr, True,
                p.stdout + p.stderr)
        self.eq(self.names(), ["here"])

    def test_first_needed_by_a_reload(self):
        c = config(self.world, reload="sighup")
        rules = c["rules"]
        c["rules"] = [{"allow": "files.list", "paths": self.world.w}]
        self.start(c, self.world)
        self.eq(os.path.exists(self.world / "work"), False)
        self.svc.write({**self.svc.config, "rules": rules})
        os.kill(self.svc.proc.pid, signal.SIGHUP)
        self.eq(bool(until(10 * SLOW, lambda: self.svc.run(
            "pwd", session="s").status == 200)), True, self.svc.tail())
