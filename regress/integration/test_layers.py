# SPDX-License-Identifier: ISC
"""What environment and operator take away, examples in rules, presets, and
that explain, core.check and the call itself say the same."""
import json
import os
import random
import signal
import subprocess
import unittest

from abxtest import (ADMIN, ALICE, BOB, BUILD, GUEST, READ, ROOT, TOKENS,
                     WRITE, Case, World, until)

PRESETS = ("agent-host", "ci-runner", "download-only", "drop-box",
           "full-access", "read-only", "workspace-exec", "workspace-jail")


def abxctl(*argv, env=None):
    full = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"),
            "ASAN_OPTIONS": "detect_leaks=0", **TOKENS, **(env or {})}
    return subprocess.run([f"{BUILD}/abxctl", *argv], env=full, text=True,
                          capture_output=True, timeout=60, check=False)


class Environment(Case):
    def everything(self, w):
        return {"rules": [
            {"allow": READ + WRITE + ["commands.run", "core.check"],
             "paths": w.w, "commands": {"allow": ["true"], "cwd": w.w}}]}

    def test_readonly(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        s = self.start(self.everything(w), w,
                       env={"ABX_SERVER_READONLY": "1"})
        self.ok(s.download("a.txt"))
        for op in WRITE + ["commands.run", "no.such.op"]:
            self.refused(s.rpc(op, {"path": "a.txt"}), 404, "op.not_enabled")
        self.eq(w.get("w/a.txt"), b"hello\n")
        p = abxctl("-f", s.file, "--json", "explain", "--op", "files.upload",
                   "--arg", "path=x", "--principal", "root",
                   env={"ABX_SERVER_READONLY": "1"})
        self.eq(p.returncode, 1, p.stdout + p.stderr)
        gone = {r["op"]: r["rule"]["name"]
                for r in json.loads(p.stdout)["removed"]}
        self.eq(set(gone.values()), {"ABX_SERVER_READONLY"})
        self.eq(set(WRITE) | {"commands.run"} <= set(gone), True, gone)

    def test_disable_and_minima(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        s = self.start(self.everything(w), w, env={
            "ABX_SERVER_DISABLE": "files.list, effect:exec,delete",
            "ABX_SERVER_MAX_BYTES": "5"})
        for op in ("files.list", "commands.run", "files.delete",
                   "files.move"):
            self.refused(s.rpc(op, {"path": "a.txt"}), 404, "op.not_enabled")
        self.ok(s.stat("a.txt"))
        self.refused(s.download("a.txt"), 413, "limit.max_bytes")
        self.ok(s.upload("n", b"12345"), 201)
        self.refused(s.upload("m", b"123456"), 413, "limit.max_bytes")

    def test_nonsense_does_not_start(self):
        w = World()
        self.addCleanup(w.remove)
        with open(w / "conf/server.json", "w") as f:
            json.dump({"version": 1, "state_dir": w / "state"}, f)
        for name, value in (("READONLY", "yes"), ("DISABLE", "files.lst"),
                            ("MAX_BYTES", "5 MB"), ("TIMEOUT", "0"),
                            ("POLICY_RELOAD", "hup")):
            p = abxctl("check-config", w / "conf/server.json", env={
                "ABX_SERVER_TOKEN": ADMIN, "ABX_SERVER_" + name: value})
            self.eq(p.returncode, 2, name + p.stdout)


@unittest.skipUnless(ROOT, "operator.json belongs to root")
class Operator(Case):
    def operator(self, w, **keys):
        with open(w / "conf/operator.json", "w") as f:
            json.dump({"version": 1, **keys}, f)
        os.chmod(w / "conf/operator.json", 0o644)

    def test_takes_away(self):
        w = World()
        self.addCleanup(w.remove)
        w.put("w/sub/deep/c.txt", "c")
        w.link("w/sub/out", w / "w/a.txt")
        w.own()
        self.operator(w, roots=[w / "w/sub"], disable=["files.delete"],
                      limits={"max_bytes": 6},
                      rules=[{"deny": "files.*", "paths": ["deep"],
                              "reason": "not so deep"}])
        s = self.start({"reload": "sighup", "rules": [
            {"allow": READ + WRITE, "paths": w.w}]}, w)
        self.ok(s.download("sub/b.txt"))
        self.refused(s.download("a.txt"), 403, "policy.path_not_allowed")
        p = abxctl("-f", s.file, "explain", "--op", "files.download",
                   "--arg", "path=a.txt", "--principal", "root")
        self.assertIn(f"below     {w.w}/sub (roots of the operator)", p.stdout)
        self.refused(s.download("absent"), 403, "policy.path_not_allowed")
        self.refused(s.list("."), 403, "policy.path_not_allowed")
        self.refused(s.download("sub/out"), 403, "policy.path_not_allowed")
        r = self.refused(s.download("sub/deep/c.txt"), 403,
                         "policy.path_denied")
        self.eq("not so deep" in r.body.decode(), True, repr(r))
        self.refused(s.rpc("files.delete", {"path": "sub/b.txt"}), 404,
                     "op.not_enabled")
        self.refused(s.upload("sub/n", b"1234567"), 413, "limit.max_bytes")
        self.ok(s.upload("sub/n", b"123456"), 201)
        # read again, and nothing of the other files loosens it
        self.operator(w, disable=["files.*"])
        s.proc.send_signal(signal.SIGHUP)
        self.eq(bool(until(10, lambda: s.download("sub/b.txt").status == 404)),
                True, "the operator's file was not read again")

    def test_cannot_grant(self):
        w = World()
        self.addCleanup(w.remove)
        with open(w / "conf/server.json", "w") as f:
            json.dump({"version": 1, "state_dir": w / "state"}, f)
        for keys, code in (
                ({"rules": [{"allow": "files.list", "paths": w.w}]},
                 "config.layer_cannot_allow"),
                ({"preset": "read-only", "root": w.w},
                 "config.layer_cannot_allow"),
                ({"ruels": []}, "config.unknown_key")):
            self.operator(w, **keys)
            p = abxctl("check-config", w / "conf/server.json",
                       env={"ABX_SERVER_TOKEN": ADMIN})
            self.eq(p.returncode, 2, p.stdout)
            self.eq(code in p.stdout, True, p.stdout)
        self.operator(w)
        os.chown(w / "conf/operator.json", 1, 0)
        p = abxctl("check-config", w / "conf/server.json",
                   env={"ABX_SERVER_TOKEN": ADMIN})
        self.eq("config.file_unsafe" in p.stdout, True, p.stdout)


class Examples(Case):
    def test_reload_refuses_what_does_not_hold(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        rule = {"allow": READ, "paths": {"roots": w.w, "deny": ["**/.env"]},
                "examples": {"allow": "files.download path=a.txt",
                             "deny": ["files.download path=.env",
                                      "files.upload path=a.txt"]}}
        s = self.start({"reload": "sighup", "rules": [rule]}, w)
        self.refused(s.download(".env"), 403, "policy.path_denied")
        bad = {**rule, "paths": w.w}
        s.write({**s.config, "rules": [bad]})
        s.proc.send_signal(signal.SIGHUP)
        self.eq(bool(until(10, lambda: "config.example_failed"
                           in s.logged())), True, s.tail())
        self.refused(s.download(".env"), 403, "policy.path_denied")
        self.ok(s.download("a.txt"))


class Presets(Case):
    def test_each_starts_and_is_described(self):
        w = World()
        self.addCleanup(w.remove)
        for name in PRESETS:
            with open(w / "conf/server.json", "w") as f:
                json.dump({"version": 1, "state_dir": w / "state",
                           "preset": name, "root": w.w}, f)
            p = abxctl("check-config", w / "conf/server.json",
                       env={"ABX_SERVER_TOKEN": ADMIN})
            self.eq(p.returncode, 0, name + p.stdout)
            p = abxctl("--json", "describe", "--preset", name)
            self.eq(p.returncode, 0, name + p.stdout)
            ops = {op for r in json.loads(p.stdout)["rules"]
                   for op in r["operations"]}
            self.eq({"core.health", "core.capabilities"} <= ops, True, name)
            never = {op for op in ops if op in ("core.reload",
                     "system.env.set") or op.endswith(".install")}
            self.eq(never, set(), name)


class Agree(Case):
    """explain, core.check and the real call."""

    @classmethod
    def fill(cls, w):
        w.link("w/to-sub", "sub")
        w.link("w/to-out", w / "outside/secret.txt")
        w.put("w/alice/own.txt", "mine")

    @classmethod
    def conf(cls, w):
        return {"rules": [
            {"allow": ["core.check"]},
            {"allow": READ, "principals": "role:staff",
             "paths": {"roots": [w.w, w.r], "deny": [".env", "vault"]}},
            {"allow": "files.*", "principals": "id:alice",
             "paths": w.w + "/{principal.id}"},
            {"allow": ["files.stat"], "principals": "*",
             "paths": {"roots": w.r, "symlinks": "deny"}},
            {"deny": "files.download", "paths": ["**/k.txt"]},
            {"deny": "files.list", "principals": "id:bob"}]}

    def test_three_answers_to_one_call(self):
        w, rnd = self.world, random.Random(4)
        people = {"root": ADMIN, "alice": ALICE, "bob": BOB, "guest": GUEST}
        paths = ["a.txt", ".", "sub", "sub/b.txt", "to-sub/b.txt", "to-out",
                 ".env", "vault/k.txt", "vault", "none", "../w/a.txt",
                 "own.txt", w.w + "/alice/own.txt", w.r + "/x.txt",
                 w.r, w / "outside/secret.txt", "/etc/passwd", w.w + "//a.txt"]
        calls = [(op, path, who) for op in READ for path in paths
                 for who in people]
        for op, path, who in rnd.sample(calls, 60):
            what = f"{op} {path} {who}"
            check = self.ok(self.svc.rpc(
                "core.check", {"op": op, "args": {"path": path}},
                token=people[who])).json
            p = abxctl("-f", self.svc.file, "--json", "explain", "--op", op,
                       "--arg", "path=" + path, "--principal", who)
            told = json.loads(p.stdout)
            self.eq(told["code"], check["code"], what)
            # what policy admits may still be missing
            self.eq(told["allowed"],
                    check["allowed"] or check["code"].startswith("fs."), what)
            real = self.svc.rpc(op, {"path": path}, token=people[who])
            if check["code"] == "ok":
                self.ok(real)
            else:
                self.eq(real.code, check["code"], what)
