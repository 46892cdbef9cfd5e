# SPDX-License-Identifier: ISC
"""Who may do what: principals, rules, limits, what is said and what is logged,
and configurations that must not start.  Named by fault case where one is."""
import json
import os
import re
import subprocess
import threading
import time

from abxtest import (ADMIN, ALICE, ASAN, AUTH, BOB, BUILD, GUEST, MARKER,
                     READ, ROOT, SLOW, TOKENS, WRITE, Case, Conn, Service,
                     World, comm, family, until)


class Who(Case):
    """alice and bob have a directory each, guest nothing, root all."""

    @classmethod
    def fill(cls, w):
        for name in ("alice", "bob", "root", "guest"):
            w.put(f"w/home/{name}/own.txt", name)
        w.link("w/home/alice/to-bob", w / "w/home/bob/own.txt")
        w.put("w/pub/p.txt", "public")
        w.put("w/pub/secret/s.txt", MARKER)
        w.put("w/pub/closed/s.txt", MARKER)
        w.link("way", w.w)

    @classmethod
    def conf(cls, w):
        return {"rules": [
            {"allow": READ + WRITE, "principals": ["role:staff"],
             "paths": {"roots": [w.w + "/home/{principal.id}"]},
             "name": "homes"},
            {"allow": READ, "principals": ["*"],
             "paths": {"roots": [w.w + "/pub"]}},
            {"allow": "group:files", "principals": ["role:admin"],
             "paths": {"roots": [w.w]}},
            {"allow": ["core.check", "core.capabilities"]},
            {"deny": "files.*", "paths": ["secret"], "reason": "no secrets"},
            {"deny": "files.*", "paths": [w / "way/pub/closed/*"]},
            {"deny": "files.delete", "principals": ["id:bob"],
             "reason": "bob keeps it all"}]}

    def test_own_roots(self):
        svc, w = self.svc, self.world.w
        self.eq(self.ok(svc.download("own.txt", token=ALICE)).body, b"alice")
        self.eq(self.ok(svc.download("own.txt", token=BOB)).body, b"bob")
        for path in (w + "/home/bob/own.txt", "../bob/own.txt",
                     w + "/home/alice/to-bob",
                     w + "/home/alice/../bob/own.txt", w + "/home",
                     w + "/home/{principal.id}/own.txt"):
            self.refused(svc.download(path, token=ALICE), 403,
                         "policy.path_not_allowed", what=path)
        self.ok(svc.upload("new", b"x", token=ALICE), 201)
        self.eq("new" in os.listdir(w + "/home/bob"), False)
        self.ok(svc.download(w + "/home/bob/own.txt", token=ADMIN))

    def test_statements_in_order(self):
        svc, w = self.svc, self.world.w
        self.ok(svc.download(w + "/pub/p.txt", token=ALICE))
        self.ok(svc.download(w + "/pub/p.txt", token=GUEST))
        self.refused(svc.upload(w + "/pub/p.txt", b"x", token=ALICE), 403,
                     "policy.path_not_allowed")
        self.refused(svc.upload(w + "/pub/p.txt", b"x", token=GUEST), 404,
                     "op.not_enabled")

    def test_deny_beats_allow(self):
        svc, w = self.svc, self.world.w
        for token in (ADMIN, ALICE, GUEST):
            for path in (w + "/pub/secret/s.txt", w + "/pub/secret",
                         w + "/pub/./secret//none"):
                r = svc.download(path, token=token)
                self.refused(r, 403, "policy.path_denied", what=path)
        r = svc.rpc("files.delete", {"path": "own.txt"}, token=BOB)
        self.refused(r, 403, "policy.denied_by_rule")
        self.eq("bob keeps it all" in r.body.decode(), True,
                "the author's reason")
        self.ok(svc.rpc("files.delete", {"path": "new2"}, token=ALICE) if
                svc.upload("new2", b"x", token=ALICE) else None)

    def test_deny_spelled_through_a_link(self):
        for token in (ADMIN, GUEST):
            for name in ("w", "way"):
                self.refused(self.svc.download(
                    self.world / (name + "/pub/closed/s.txt"), token=token),
                    403, "policy.path_denied", what=name)

    def test_identical_404(self):
        """An op that does not exist, that nobody may use, that you may not
        use: the same bytes but for the id."""
        svc, seen = self.svc, {}
        for how, r in {
                "unknown": svc.rpc("no.such.op", token=GUEST),
                "not mine": svc.rpc("files.upload", {"path": "x"},
                                    token=GUEST),
                "nobody's": svc.rpc("commands.run", {"argv": ["true"]},
                                    token=GUEST),
                "later": svc.rpc("terminal.create", token=GUEST),
                "bad arguments": svc.rpc("files.mkdir", {"x": 1},
                                         token=GUEST),
                "route": svc.get("/no/such/route", token=GUEST),
                "method": svc.call("DELETE", "/health", token=GUEST),
                "route of an op": svc.call("POST", "/files/mkdir",
                                           {"path": "x"}, token=GUEST),
                "empty": svc.rpc("", token=GUEST),
                "long": svc.rpc("a" * 200, token=GUEST),
                "admin op": svc.rpc("core.reload", token=GUEST)}.items():
            self.refused(r, 404, "op.not_enabled", what=how)
            seen[r.body.replace(r.json["request_id"].encode(), b"")] = how
            self.eq([h for h, _ in r.headers],
                    [h for h, _ in svc.get("/x", token=GUEST).headers], how)
        self.eq(len(seen), 1, seen)
        self.refused(svc.rpc("no.such.op", token=None), 401, "auth.required")

    def test_core_check_agrees(self):
        """core.check says of a call what the call then gets."""
        svc, w = self.svc, self.world.w
        calls = [(op, {"path": p}) for p in (
            "own.txt", "none", "../bob/own.txt", "to-bob", "/etc/passwd",
            w + "/pub/p.txt", w + "/pub/secret/s.txt", "/proc/self/environ",
            w + "/home/bob/own.txt", "x" * 5000, "secret/x", ".")
            for op in ("files.stat", "files.download", "files.list")]
        calls += [("files.upload", {"path": p}) for p in (
            w + "/pub/p.txt", "secret", "/etc/x", "../bob/x", ".")]
        calls += [("files.move", {"src": a, "dst": b}) for a, b in (
            ("own.txt", "/etc/x"), ("own.txt", "secret/x"),
            ("../bob/own.txt", "x"))]
        calls += [("files.stat", {}), ("files.stat", {"path": 1}),
                  ("files.stat", {"path": "x", "y": 1}),
                  ("commands.run", {"argv": ["true"]}), ("no.such.op", {}),
                  ("core.health", {}), ("core.capabilities", {})]
        for token in (ALICE, GUEST, ADMIN, BOB):
            for op, args in calls:
                said = self.ok(svc.rpc("core.check", {
                    "op": op, "args": args}, token=token)).json
                if op == "files.upload":
                    r = svc.upload(args["path"], b"x", token=token)
                else:
                    r = svc.rpc(op, args, token=token)
                code = r.code if r.status >= 400 else None
                want = [(code is None, code)]
                if code and code.startswith("fs."):
                    # admitted; only then the file system had its say
                    want.append((True, None))
                self.among((said["allowed"], None if said["allowed"]
                            else said["code"]), want,
                           f"{op} {str(args)[:80]} {token[:5]}: {r}")
        self.refused(svc.rpc("core.check", {"args": {}}), 400,
                     "args.missing")
        self.refused(svc.rpc("core.check", {"op": 1}), 400, "args.type")
        # it comes back in the answer, which has to fit
        self.ok(svc.rpc("core.check", {"op": "x" * 128}))
        self.refused(svc.rpc("core.check", {"op": "x" * 200000}), 400,
                     "args.invalid")

    def test_only_admins_see_rules(self):
        r = self.svc.stat("/etc/passwd", token=ALICE)
        self.eq(("server.json" in r.body.decode(), "homes" in
                 r.body.decode()), (False, False), r)
        r = self.svc.rpc("core.check", {"op": "files.stat", "args": {
            "path": "/etc/x"}}, token=ALICE)
        self.eq("rule" in r.json, False)

    def test_capabilities(self):
        ids = {t: {o["id"] for o in self.ok(self.svc.get(
            "/capabilities", token=t)).json["ops"]}
            for t in (ALICE, GUEST, ADMIN)}
        base = {"core.health", "core.check", "core.capabilities"}
        self.eq(ids[ALICE], base | set(READ + WRITE))
        self.eq(ids[GUEST], base | set(READ))
        self.eq({"commands.run", "core.reload"} & ids[ADMIN], set())
        c = self.svc.get("/capabilities", token=ALICE).json
        self.eq(c["principal"]["id"], "alice")
        self.eq(c["principal"]["roles"], ["staff"])
        self.eq(bool(re.fullmatch(r"[0-9a-f]{64}", c["revision"])), True)
        for o in c["ops"]:
            self.eq({"id", "effects", "args"} <= set(o), True, o)

    def test_audit(self):
        svc = self.svc
        for r, want in (
                (svc.download("own.txt", token=ALICE),
                 ("files.download", "alice", True, 200)),
                (svc.stat("/etc/passwd", token=BOB),
                 ("files.stat", "bob", False, 403)),
                (svc.rpc("no.such.op", token=GUEST),
                 ("no.such.op", "guest", False, 404)),
                (svc.upload("up", b"12345", token=ALICE),
                 ("files.upload", "alice", True, 201))):
            a = svc.audit_of(r)
            self.eq(bool(a), True, f"a record of {want}")
            self.eq((a["op"], a["principal"], a["allowed"], a["status"]),
                    want)
            self.eq({"ts", "request_id", "op", "principal", "roles",
                     "allowed", "code", "status", "duration_ms",
                     "bytes_in", "bytes_out", "remote_addr", "outcome"}
                    - set(a), set(), want)
            if want[2]:
                self.eq({"rule", "paths"} - set(a), set(), want)
            if want[3] == 404:
                self.eq(a["mounted"], False)
            if want[0] == "files.upload":
                self.eq((a["bytes_in"], a["roles"]), (5, ["staff"]))
        with open(svc.audit) as f:
            text = f.read()
        self.eq([t for t in TOKENS.values() if t in text], [])
        self.eq("12345" in re.sub(r'"[^"]*":\s*[\d.]+|r-[\w-]+', "", text),
                False, "content in the audit")

    def test_T121_log_injection(self):
        svc = self.svc
        before = len(svc.audits())
        evil = 'a\n{"op":"core.reload","allowed":true}\r\x1b[31m\x7f\u2028'
        replies = [svc.rpc("files.stat", {"path": evil}, token=ALICE),
                   svc.rpc("files.stat", {"path": self.world.w + "/pub/"
                                          + evil}, token=ALICE),
                   svc.get("/files/stat?path=%0a%7b%22op%22%3a%22x%22%7d",
                           token=ALICE)]
        for r in replies:
            self.eq(bool(svc.audit_of(r)), True)
        with open(svc.audit, "rb") as f:
            lines = f.read().split(b"\n")
        for line in lines[before:-1]:
            self.eq(json.loads(line)["op"] != "core.reload", True)
            self.eq(any(c < 32 or c == 127 for c in line), False, line)
        self.eq("core.reload" in svc.logged(), False, "the log")

    def test_the_monitor_names_the_principal(self):
        for h in ({"X-Principal": "root"}, {"X-Forwarded-User": "root"},
                  {"X-Forwarded-For": "10.0.0.1"}, {"Forwarded": "for=x"}):
            r = self.svc.get("/capabilities", token=GUEST, headers=h)
            self.eq(self.ok(r).json["principal"]["id"], "guest")
            self.eq(self.svc.audit_of(r)["remote_addr"].startswith(
                "127.0.0.1"), True)


class Presets(Case):
    def test_download_only(self):
        svc = self.start({"preset": "download-only", "root": "ROOT"},
                         world=self.rooted())
        self.ok(svc.download("a.txt"))
        self.ok(svc.list("."))
        self.refused(svc.download(".env"), 403, "policy.path_denied")
        for r in (svc.upload("x", b"x"), svc.rpc("files.mkdir", {}),
                  svc.rpc("core.check", {"op": "x"})):
            self.refused(r, 404, "op.not_enabled")

    def rooted(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        self.w = w
        return w

    def start(self, config, world):
        config = json.loads(json.dumps(config).replace("ROOT", world.w))
        return super().start(config, world=world)

    def test_read_only(self):
        w = self.rooted()
        for name in ("k.pem", "k.key", ".ssh/id", ".git/config",
                     "sub/.env"):
            w.put("w/" + name, MARKER)
        w.own()
        svc = self.start({"preset": "read-only", "root": "ROOT"}, w)
        for name in ("k.pem", "k.key", ".ssh/id", ".ssh", ".git/config",
                     "sub/.env"):
            self.refused(svc.download(name), 403, "policy.path_denied",
                         what=name)
        self.ok(svc.rpc("core.check", {"op": "files.stat"}))
        self.refused(svc.upload("x", b"x"), 404, "op.not_enabled")

    def test_drop_box(self):
        svc = self.start({"preset": "drop-box", "root": "ROOT"},
                         self.rooted())
        self.ok(svc.upload("in/x", b"x"), 201)
        self.refused(svc.download("in/x"), 404, "op.not_enabled")
        self.refused(svc.list("."), 404, "op.not_enabled")

    def test_workspace_exec(self):
        svc = self.start({"presets": [{
            "name": "workspace-exec", "root": "ROOT",
            "commands": ["echo hi"]}]}, self.rooted())
        self.ok(svc.upload("x", b"x\n"), 201)
        self.eq(self.out(svc.run("cat", "x")), "x\n")
        self.eq(self.out(svc.run("wc", "-l", "x")), "1 x\n")
        self.eq(self.out(svc.run("echo", "hi")), "hi\n")
        self.eq(self.out(svc.run("pwd")), self.w.w + "\n")
        self.refused(svc.run("cat", "/etc/passwd"), 403,
                     "policy.command_not_allowed", "policy.path_not_allowed")
        self.refused(svc.run("rm", "x"), 403, "policy.command_not_allowed")

    def test_without(self):
        svc = self.start({"preset": "download-only", "root": "ROOT",
                          "without": ["files.list"]}, self.rooted())
        self.ok(svc.download("a.txt"))
        r = svc.list(".")
        self.eq((r.status, r.code) in ((404, "op.not_enabled"), (
            403, "policy.denied_by_rule")), True, r)


class Selectors(Case):
    known = {"core.check", "commands.run", *READ, *WRITE}

    def ids(self, *rules):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        rules = json.loads(json.dumps(rules).replace("ROOT", w.w))
        svc = self.start({"rules": [{"allow": "core.capabilities"}, *rules],
                          "allow_lint_errors": True}, world=w)
        ids = {o["id"] for o in svc.get("/capabilities").json["ops"]}
        # what a deny without a scope takes away again
        args = {"files.move": {"src": "none", "dst": "none2"},
                "commands.run": {"argv": ["true"]},
                "core.check": {"op": "core.health"}}
        return {i for i in ids & self.known if svc.rpc(i, args.get(
            i, {"path": "none"})).code != "policy.denied_by_rule"}

    def test_forms(self):
        allf = set(READ + WRITE)
        run = {"allow": ["true"], "cwd": "ROOT"}
        for rules, want in (
                ([{"allow": "files.*", "paths": "ROOT"}], allf),
                ([{"allow": "group:files-read", "paths": "ROOT"}],
                 set(READ)),
                ([{"allow": "effect:read", "paths": "ROOT"}],
                 set(READ) | {"core.check"}),
                ([{"allow": "effect:write", "paths": "ROOT"}],
                 {"files.upload", "files.mkdir"}),
                ([{"allow": "effect:read,write", "paths": "ROOT"}],
                 set(READ) | {"files.upload", "files.mkdir", "core.check"}),
                ([{"allow": "*", "paths": "ROOT", "commands": run}],
                 allf | {"core.check", "commands.run"}),
                ([{"allow": "group:commands", "commands": run}],
                 {"commands.run"}),
                ([{"allow": "files.*", "paths": "ROOT"},
                  {"deny": "effect:write"}], set(READ) | {"files.delete"}),
                ([{"allow": "files.**", "paths": "ROOT"},
                  {"deny": ["files.upload", "group:files-read"]}],
                 {"files.mkdir", "files.move", "files.delete"}),
                ([{"allow": "files.stat", "paths": "ROOT",
                   "principals": "id:bob"}], set())):
            with self.subTest(str(rules)):
                self.eq(self.ids(*rules), want)

    def test_rank(self):
        """The most exact selector supplies scope and limits."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        w.put("w/big", b"x" * 5000)
        svc = self.start({"rules": [
            {"allow": "*", "paths": {"roots": [w.w], "max_bytes": 10}},
            {"allow": "files.*", "paths": {"roots": [w.w],
                                           "max_bytes": 100}},
            {"allow": "files.download", "paths": {"roots": [w.w],
                                                  "max_bytes": 10000}}],
            "allow_lint_errors": True}, world=w)
        self.ok(svc.download("big"))
        self.refused(svc.upload("x", b"x" * 101), 413, "limit.max_bytes")
        self.ok(svc.upload("x", b"x" * 100), 201)


class Limits(Case):
    @classmethod
    def conf(cls, w):
        return {"rules": [
            {"allow": "files.stat", "paths": w.w,
             "limits": {"rate": "5/min"}},
            {"allow": "files.list", "paths": w.w,
             "limits": {"rate": "2/s", "max_entries": 2}},
            {"allow": "files.download", "paths": w.w},
            {"allow": "files.search", "paths": w.w,
             "limits": {"rate": "10000/min"}},
            {"allow": "files.search", "paths": w.r,
             "limits": {"rate": "2/h"}},
            {"allow": "core.check"},
            {"allow": "commands.run", "commands": {
                "allow": ["sleep {int}", "true"], "cwd": w.w,
                "timeout": "5s"}, "limits": {"concurrency": 2}}],
            "allow_lint_errors": True}

    def test_rate(self):
        for token in (ALICE, BOB):
            for i in range(5):
                self.ok(self.svc.stat("a.txt", token=token))
            r = self.svc.stat("a.txt", token=token)
            self.refused(r, 429, "limit.rate")
            self.among(int(r.header("retry-after")), range(1, 13))
        # refusals of the policy come before the bucket, checks spend none
        self.refused(self.svc.stat("/etc/x", token=ALICE), 403,
                     "policy.path_not_allowed")
        for i in range(20):
            self.svc.rpc("core.check", {"op": "files.stat", "args": {
                "path": "a.txt"}}, token=GUEST)
        self.ok(self.svc.stat("a.txt", token=GUEST))

    def test_rules_of_one_selector(self):
        """A lenient rate elsewhere fills no other rule's bucket."""
        got = {self.world.w: [], self.world.r: []}
        for _ in range(3):
            for root, status in got.items():
                status.append(self.svc.rpc("files.search", {
                    "root": root, "pattern": "*", "kind": "name"},
                    token=ALICE).status)
            time.sleep(0.1)
        self.eq(list(got.values()), [[200] * 3, [200, 200, 429]])

    def test_a_bucket_fills_again(self):
        got = [self.svc.list(".", token=ALICE).status for _ in range(4)]
        self.eq(got[:2], [200, 200])
        self.eq(429 in got, True, got)
        time.sleep(1.1)
        self.ok(self.svc.list(".", token=ALICE))

    def test_concurrency(self):
        got = []

        def one():
            got.append(self.svc.run("sleep", "3", token=ALICE))
        threads = [threading.Thread(target=one) for _ in range(2)]
        for t in threads:
            t.start()
        self.eq(until(10 * SLOW, lambda: [
            comm(p) for p in family(self.svc.proc.pid)].count("sleep") >= 2),
            True)
        r = self.svc.run("true", token=ALICE)
        self.refused(r, 429, "limit.concurrency")
        self.eq(int(r.header("retry-after")) >= 1, True)
        self.ok(self.svc.run("true", token=BOB))
        for t in threads:
            t.join()
        for r in got:
            self.ok(r)
        self.ok(self.svc.run("true", token=ALICE))

    def test_streams_have_a_default(self):
        with open(self.world.w + "/big", "wb") as f:
            f.truncate(64 << 20)
        held = []
        for _ in range(9):
            c = Conn(self.svc, rcvbuf=4096)
            c.send(self.svc.build(
                "GET", "/files/download-stream?path=big", token=BOB))
            held.append((c, c.head()))
        codes = [h[0] for _, h in held]
        self.eq(codes, [200] * 8 + [429])
        self.ok(self.svc.download("a.txt", token=ALICE))
        for c, _ in held:
            c.close()
        self.eq(until(10, lambda: self.svc.download(
            "a.txt", token=BOB).status == 200), True)

    def test_max_entries(self):
        time.sleep(1)
        r = self.ok(self.svc.list(".", "&max_entries=100", token=GUEST)).json
        self.eq((len(r["entries"]), r["truncated"]), (2, True),
                "clamped to the policy's")


class OwnFiles(Case):
    def test_T124_own_files(self):
        """State, configuration and log below a root are out of reach."""
        w = World()
        self.addCleanup(w.remove)
        os.mkdir(w / "w/keep", 0o755)
        os.mkdir(w / "w/prot", 0o755)
        w.put("w/prot/x", MARKER)
        for name in ("conf", "log", "state"):
            if os.path.exists(w / name):
                os.rename(w / name, w / f"w/{name}")
            os.symlink(w / f"w/{name}", w / name)
        w.own("w/keep", "w/prot", "w/sub", "w/a.txt")
        if ROOT:
            import pwd
            u = pwd.getpwnam("abx")
            os.chown(w.w, u.pw_uid, u.pw_gid)
        svc = Service(w, {
            "rules": [{"allow": READ + WRITE, "paths": w / "w"},
                      {"allow": "commands.run", "commands": {
                          "allow": ["sh -c ..."], "cwd": w / "w"}}],
            "protect_dirs": [w / "w/prot"], "allow_lint_errors": True,
            "state_dir": w / "w/state",
            "audit": {"sink": f"file:{w.dir}/w/log/audit.jsonl"}})
        svc.file = w / "w/conf/server.json"
        svc.argv[svc.argv.index("-f") + 1] = svc.file
        # the parents of a state directory may not be others' to write, so
        # as root this start is refused
        self.svc = svc
        self.addCleanup(self.end, svc)
        svc.spawn()
        until(10 * SLOW, lambda: svc.proc.poll() is not None
              or "ready on" in svc.logged())
        if svc.proc.poll() is not None:
            svc.rough = True
            self.eq("config.state_dir_unsafe" in svc.logged(), True,
                    svc.tail())
            return
        for path in ("conf/server.json", "conf", "log/audit.jsonl", "log",
                     "state", "state/new", "prot/x", "prot"):
            for r in (svc.download(path), svc.stat(path), svc.list(path),
                      svc.upload(path, b"x"),
                      svc.rpc("files.delete", {"path": path,
                                               "recursive": True}),
                      svc.rpc("files.move", {"src": path, "dst": "z"}),
                      svc.rpc("files.move", {"src": "a.txt",
                                             "dst": path + "/q"})):
                self.refused(r, 403, "policy.path_denied", what=path)
        names = {e["name"] for e in svc.list(".").json["entries"]}
        self.eq(names & {"conf", "log", "state", "prot"}, set())
        r = svc.run("sh", "-c", "cat conf/server.json log/audit.jsonl "
                    "prot/x; ls -A state conf log prot; echo x > conf/new; "
                    "echo x > prot/new; rm -rf conf log state prot")
        if r.status == 200:
            out = r.json["stdout"]
            for word in ("version", "server.json", "audit.jsonl", "\"op\""):
                self.eq(word in out, False, out)
        self.eq(os.path.exists(w / "w/prot/x"), True)
        self.eq(os.path.exists(w / "w/prot/new"), False)
        self.eq(os.path.exists(svc.file), True)


class Open(Case):
    def test_without_any_credential(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start(
            {"rules": [{"allow": READ + ["core.capabilities"],
                        "paths": w.w}]}, world=w, auth=False,
            unix=w / "door")
        self.eq(self.ok(svc.download("a.txt", token=None)).body, b"hello\n")
        p = svc.get("/capabilities", token=None).json["principal"]
        self.eq((p["id"], p["roles"]), ("anonymous", ["admin"]))
        self.refused(svc.upload("x", b"x", token=None), 404,
                     "op.not_enabled")

    def test_anonymous(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start(
            {"rules": [{"allow": READ, "paths": w.w},
                       {"allow": WRITE, "paths": w.w, "principals": "*"}],
             "auth": {**AUTH, "anonymous": True}}, world=w)
        self.ok(svc.download("a.txt", token=None))
        self.refused(svc.upload("x", b"x", token=None), 404,
                     "op.not_enabled")
        self.ok(svc.upload("x", b"x", token=GUEST), 201)
        self.refused(svc.download("a.txt", token="wrong-0123456789abcdef"),
                     401, "auth.invalid")

    def test_token_of_the_environment(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        token = "server-token-0123456789"
        svc = self.start(
            {"rules": [{"allow": READ + ["core.capabilities"],
                        "paths": w.w}]}, world=w, auth=False,
            env={"ABX_SERVER_TOKEN": token}, never=[MARKER, token])
        p = svc.get("/capabilities", token=token).json["principal"]
        self.eq((p["id"], p["roles"]), ("token", ["admin"]))
        self.refused(svc.download("a.txt", token=None), 401, "auth.required")
        self.refused(svc.download("a.txt", token=ADMIN), 401, "auth.invalid")

    def test_token_file(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        path = w.put("conf/token", "file-token-0123456789\n", 0o600)
        svc = self.start(
            {"rules": [{"allow": READ, "paths": w.w}],
             "auth": {"tokens": [{"id": "f", "roles": [],
                                  "token_file": path}]}}, world=w,
            never=[MARKER])
        self.ok(svc.download("a.txt", token="file-token-0123456789"))


class Refused(Case):
    """Configurations that must not start, by abxd -n and by abxctl."""

    def setUp(self):
        self.w = World()
        self.addCleanup(self.w.remove)
        self.rule = {"allow": READ, "paths": self.w.w}

    def check(self, raw, code, env=None, at=None):
        """Both tools name the code, at that line and column."""
        w = self.w
        if isinstance(raw, dict):
            base = {"version": 1, "state_dir": w / "state", "auth": AUTH,
                    "listen": [{"address": "127.0.0.1", "port": 12345}]}
            base.update(raw)
            raw = json.dumps({k: v for k, v in base.items()
                              if v is not None}, indent=1)
        with open(w / "conf/server.json", "w") as f:
            f.write(raw)
        full = {"PATH": os.environ["PATH"], **TOKENS,
                "HOME": os.environ.get("HOME", "/"),
                "ASAN_OPTIONS": "detect_leaks=0"}
        full.update({k: v for k, v in (env or {}).items() if v is not None})
        for k in [k for k, v in (env or {}).items() if v is None]:
            full.pop(k, None)
        file = w / "conf/server.json"
        for argv in ([f"{BUILD}/abxd", "-n", "-f", file],
                     [f"{BUILD}/abxctl", "check-config", file]):
            p = subprocess.run(argv, env=full, capture_output=True,
                               text=True, timeout=20)
            said = p.stdout + p.stderr
            name = os.path.basename(argv[0])
            if p.returncode != 2 or code not in said:
                self.fail(f"{name} on {raw[-300:]}\n  expected: exit 2, "
                          f"{code}\n  got:      exit {p.returncode}, {said}")
            place = r":\d+:\d+: error: " if at is None else \
                f":{at[0]}:{at[1]}: error: "
            if re.search(re.escape(file) + place + re.escape(code)
                         + r"\w*: ", said) is None:
                self.fail(f"{name}\n  expected: {file}{place}{code}:\n"
                          f"  got:      {said}")
            for secret in TOKENS.values():
                self.eq(secret in said, False, "a secret in a finding")

    def test_syntax_with_line_and_column(self):
        self.check('{\n "version": 1,\n "rules": [}\n}', "config.syntax",
                   at=(3, r"\d+"))
        self.check('{\n "version": 1\n "rules": []\n}', "config.syntax",
                   at=(3, r"\d+"))
        self.check('{\n "version": 1,\n\t"rulez": []\n}',
                   "config.unknown_key", at=(3, 2))
        self.check('{\n "version": 1,\n "rules": [\n  {"allow": "core.check",'
                   ' "denny": 1}]\n}', "config.unknown_key", at=(4, 27))
        self.check("", "config.syntax")
        self.check("[]", "config.")
        self.check('{"version": 1, "x": "\\ud800"}', "config.syntax")

    def test_T118_unknown_keys(self):
        self.check({"rulez": []}, "config.unknown_key")
        self.check({"rules": [{**self.rule, "denny": []}]},
                   "config.unknown_key")
        self.check({"rules": [{"allow": READ, "paths": {
            "roots": [self.w.w], "dney": []}}]}, "config.unknown_key")
        self.check({"http": {"header_timout": 1}}, "config.unknown_key")
        with open(self.w / "conf/server.json", "w") as f:
            f.write('{"version": 1, "rulez": []}')
        p = subprocess.run([f"{BUILD}/abxctl", "check-config",
                            self.w / "conf/server.json"],
                           capture_output=True, text=True)
        self.eq(bool(re.search(r"\brules\b", p.stdout)), True,
                f"did you mean: {p.stdout}")

    def test_T048_duplicate_keys(self):
        self.check('{"version": 1, "rules": [], "rules": []}',
                   "config.duplicate_key")
        self.check('{"version": 1, "rules": [{"deny": "files.*", "deny": '
                   '"core.check"}]}', "config.duplicate_key")
        self.check('{"version": 1, "version": 1}', "config.duplicate_key")
        self.check('{"version": 1, "rules": [{"allow": "files.stat", '
                   '"paths": {"roots": ["/srv"], "roots": ["/"]}}]}',
                   "config.duplicate_key")

    def test_versions_and_types(self):
        self.check({"version": None}, "config.version")
        self.check({"version": 2}, "config.version")
        self.check({"rules": {}}, "config.type")
        self.check({"rules": [{"allow": 1}]}, "config.type")
        self.check({"rules": [{**self.rule, "limits": {"rate": 5}}]},
                   "config.")
        self.check({"rules": [{}]}, "config.empty_rule")
        self.check({"rules": [{"allow": []}]}, "config.empty_rule")
        self.check({"rules": [{**self.rule, "principals": []}]},
                   "config.empty_rule")

    def test_variables_are_named(self):
        with open(self.w / "conf/server.json", "w") as f:
            f.write('{"version": 1}')
        bad = {"ABX_SERVER_MAX_BYTES": "x", "ABX_SERVER_TIMEOUT": "5d",
               "ABX_SERVER_READONLY": "2", "ABX_SERVER_POLICY_RELOAD": "on"}
        p = subprocess.run([f"{BUILD}/abxctl", "check-config",
                            self.w / "conf/server.json"],
                           env={**os.environ, **bad}, capture_output=True,
                           text=True, timeout=20)
        self.eq([n for n in bad if n not in p.stdout], [], p.stdout)

    def test_groups_and_readers(self):
        """Found by a check, and not only by the start."""
        self.check({"listen": [{"unix": self.w / "s", "group": "abx-none"}]},
                   "config.user_missing")
        self.check({"control": {"group": "abx-none"}}, "config.user_missing")
        self.check({"control": {"readers": ["root"]}}, "config.not_supported")

    def test_selectors_and_presets(self):
        self.check({"rules": [{**self.rule, "allow": "files.dowload"}]},
                   "config.unknown_selector")
        self.check({"rules": [{**self.rule, "allow": "group:file"}]},
                   "config.unknown_selector")
        self.check({"preset": "readonly", "root": self.w.w},
                   "config.unknown_preset")
        self.check({"preset": "read-only"}, "config.root_required")

    def test_T009_root_is_slash(self):
        for roots in (["/"], "/", ["/", self.w.w], ["//"], ["/."]):
            self.check({"rules": [{"allow": READ,
                                   "paths": {"roots": roots}}]},
                       "config.root_")
        self.check({"preset": "read-only", "root": "/"},
                   "config.root_is_slash")
        for root in ("srv", "../x", "/no/such/dir", "/etc/passwd", "/srv/*",
                     ""):
            self.check({"rules": [{"allow": READ, "paths": root}]},
                       "config.root_invalid")

    def test_T054_secrets(self):
        def tokens(**t):
            return {"rules": [self.rule],
                    "auth": {"tokens": [{"id": "x", "roles": [], **t}]}}
        self.check(tokens(token_env="ABX_X"), "config.auth_secret_missing")
        self.check(tokens(token_env="ABX_X"), "config.auth_secret_missing",
                   env={"ABX_X": ""})
        self.check(tokens(token_env="ABX_X"), "config.auth_secret_weak",
                   env={"ABX_X": "x" * 15})
        self.check(tokens(token_env="ABX_X"), "config.auth_secret_weak",
                   env={"ABX_X": "has a space 0123456789"})
        self.check(tokens(token="inline-0123456789ab"),
                   "config.secret_inline")
        self.check({"auth": {"tokens": [{
            "id": "anonymous", "roles": [], "token_env": "ABX_T_BOB"}]}},
            "config.reserved_id")
        self.check({"auth": {"tokens": [
            {"id": "a", "roles": [], "token_env": "ABX_T_BOB"},
            {"id": "a", "roles": [], "token_env": "ABX_T_ALICE"}]}},
            "config.duplicate_id")

    def test_T119_open(self):
        any_ = [{"address": "0.0.0.0", "port": 12345}]
        run = {"allow": "commands.run", "commands": {
            "allow": ["true"], "cwd": self.w.w}}
        self.check({"auth": None, "listen": any_, "rules": [self.rule]},
                   "config.open_non_loopback")
        self.check({"auth": None, "rules": [run]}, "config.open_exec")
        self.check({"auth": {**AUTH, "anonymous": True}, "rules": [run]},
                   "config.open_exec")
        if ROOT:
            self.check({"auth": None, "rules": [self.rule]},
                       "config.open_loopback_shared")

    def test_T119_empty_means_nothing(self):
        self.check({"rules": [{"allow": READ}]}, "config.scope_required")
        self.check({"rules": [{"allow": "commands.run"}]},
                   "config.scope_required")
        w = self.w
        w.own()
        svc = self.start({"rules": [
            {"allow": READ, "paths": {"roots": []}},
            {"allow": "commands.run", "commands": {"allow": []}}],
            "allow_lint_errors": True}, world=w) if self.starts({
                "rules": [{"allow": READ, "paths": {"roots": []}},
                          {"allow": "commands.run",
                           "commands": {"allow": []}}],
                "allow_lint_errors": True}) else None
        if svc:
            self.eq(svc.stat("a.txt").status, 403)
            self.refused(svc.run("true"), 403, "policy.command_not_allowed",
                         "policy.scope_required")

    def starts(self, config):
        """Whether abxd -n takes it."""
        full = {"version": 1, "state_dir": self.w / "state", "auth": AUTH,
                **config}
        with open(self.w / "conf/server.json", "w") as f:
            json.dump(full, f)
        return subprocess.run(
            [f"{BUILD}/abxd", "-n", "-f", self.w / "conf/server.json"],
            env={**os.environ, **TOKENS}, capture_output=True).returncode == 0

    def test_T062_escape_capable(self):
        for allow in ("find ...", "bash -c ...", "python3 ...", "env ...",
                      "tar ...", "xargs ...", "find . {word}", "git *"):
            self.check({"rules": [{"allow": "commands.run", "commands": {
                "allow": [allow], "cwd": self.w.w}}]},
                "config.escape_capable")

    def test_sizes(self):
        for v in ("10 MB", "10mb", "MB", "-1", "1e3", "10MBx"):
            self.check({"rules": [{"allow": READ, "paths": {
                "roots": [self.w.w], "max_bytes": v}}]}, "config.")
        self.check({"http": {"header_timeout": "3 s"}}, "config.size_invalid")
        self.check({"rules": [{**self.rule, "limits": {"rate": "5/day"}}]},
                   "config.size_invalid")

    def test_patterns(self):
        for glob in ("**/**/**/**/x", "[a", "a/../b", "x" * 5000):
            self.check({"rules": [{"allow": READ, "paths": {
                "roots": [self.w.w], "deny": [glob]}}]},
                "config.pattern_invalid")
        self.check({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["echo 'x"], "cwd": self.w.w}}]},
            "config.pattern_invalid")

    def test_all_findings_at_once(self):
        with open(self.w / "conf/server.json", "w") as f:
            f.write('{"version": 1,\n "a": 1,\n "b": 2,\n "rules": [{}]}')
        p = subprocess.run([f"{BUILD}/abxctl", "--json", "check-config",
                            self.w / "conf/server.json"],
                           capture_output=True, text=True)
        found = json.loads(p.stdout)["findings"]
        codes = sorted(f["code"] for f in found if f["severity"] == "error")
        self.eq([c for c in codes if "open" not in c], [
            "config.empty_rule", "config.unknown_key", "config.unknown_key"])


class Explicit(Case):
    def test_deny_of_health(self):
        w = World()
        self.addCleanup(w.remove)
        svc = Service(w, {"rules": [{"allow": READ, "paths": w.w},
                                    {"deny": "core.*"}]})
        self.svc = svc
        self.addCleanup(self.end, svc)
        w.own()
        svc.start()
        self.ok(svc.get("/health", token=None))
        svc.stop()
        svc.config["rules"][1] = {"deny": "core.health"}
        svc.write(svc.config)
        svc.start()
        self.eq(svc.get("/health", token=ADMIN).status, 404)

    def test_reasons_and_explicit_codes(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"rules": [
            {"allow": "group:files", "paths": {"roots": [w.w],
                                               "readonly": True}},
            {"deny": "files.mkdir", "reason": "not today",
             "principals": ["*"]},
            {"deny": "files.stat", "paths": ["*.key", w.w + "/sub/**",
                                             "rel/x"]}]}, world=w)
        r = svc.rpc("files.mkdir", {"path": "x"})
        self.refused(r, 403, "policy.denied_by_rule")
        self.eq("not today" in r.body.decode(), True)
        self.refused(svc.upload("x", b"x"), 403, "policy.read_only")
        self.refused(svc.rpc("files.delete", {"path": "a.txt"}), 403,
                     "policy.read_only")
        for path in ("deep/er/my.key", "sub/b.txt", "sub/c/d", "rel/x",
                     "rel/x/y", "rel/./x", w.w + "/rel/x"):
            self.refused(svc.stat(path), 403, "policy.path_denied",
                         what=path)
        for path in ("my.keys", "subx", "rel/xx"):
            self.refused(svc.stat(path), 404, "fs.not_found", what=path)
        self.ok(svc.stat("a.txt"))
        self.ok(svc.download("sub/b.txt"))
