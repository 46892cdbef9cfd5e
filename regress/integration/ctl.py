#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""abxctl from outside: exit statuses, findings, decisions.

ABX_BUILD names the directory with the programs (default: build).
"""
import ctypes
import errno
import hashlib
import json
import os
import pwd
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

BUILD = os.path.abspath(os.environ.get("ABX_BUILD", "build"))
ROOT = os.geteuid() == 0
# the state directory may not lie below /tmp
BASE = "/var/lib" if ROOT else pwd.getpwuid(os.geteuid()).pw_dir
TOKEN = "viewer-token-0123456789abcdef"


LANDLOCK_CREATE_RULESET = 444


def refuse(call, err):
    """Have a system call answered with this error, from now on."""
    def insn(code, jt, jf, k):
        return struct.pack("HBBI", code, jt, jf, k)
    prog = (insn(0x20, 0, 0, 0)             # the number of the call
            + insn(0x15, 0, 1, call)
            + insn(0x06, 0, 0, 0x50000 | err)
            + insn(0x06, 0, 0, 0x7fff0000))
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(prog)
    fprog = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(prog) // 8, ctypes.addressof(code)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, fprog):
        raise OSError(ctypes.get_errno(), "prctl")


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="abx-ctl-", dir=BASE)
        self.addCleanup(shutil.rmtree, self.dir)
        os.chmod(self.dir, 0o755)
        for name in ("conf", "root", "root/sub", "log"):
            os.mkdir(f"{self.dir}/{name}", 0o755)
        self.root = f"{self.dir}/root"
        self.file = f"{self.dir}/conf/server.json"
        for name in ("a", "sub/.env"):
            with open(f"{self.root}/{name}", "w") as f:
                f.write("x")

    def write(self, mode=0o644, name=None, **config):
        base = {
            "version": 1,
            "state_dir": f"{self.dir}/state",
            "auth": {"tokens": [{"id": "viewer", "roles": ["reader"],
                                 "token_env": "ABX_T_VIEWER"}]},
            "audit": {"sink": f"file:{self.dir}/log/audit.jsonl"},
        }
        if ROOT:  # whether make users has run is not the question here
            base["users"] = dict.fromkeys(("listener", "monitor", "run"),
                                          "nobody")
        if name is not None:
            base = {}
        base.update(config)
        path = name or self.file
        with open(path, "w") as f:
            json.dump(base, f, indent=1)
        os.chmod(path, mode)

    def run_ctl(self, *argv, env=None, stdin=""):
        full = {k: v for k, v in os.environ.items()
                if not k.startswith("ABX_")}
        full["ABX_T_VIEWER"] = TOKEN
        full.update(env or {})
        return subprocess.run([f"{BUILD}/abxctl", *argv], env=full,
                              input=stdin, text=True, capture_output=True,
                              timeout=60)

    def check(self, *argv, **kw):
        return self.run_ctl("check-config", *argv, self.file, **kw)

    def explain(self, op, *args, who="viewer", more=()):
        argv = [w for a in args for w in ("--arg", a)]
        return self.run_ctl("-f", self.file, "explain", "--op", op, *argv,
                            "--principal", who, *more)


class Usage(Case):
    def test_verbs(self):
        for argv in ((), ("no-such-verb",), ("--no-such-option",),
                     ("check-config", "a", "b"), ("ops", "x"),
                     ("explain", "--op", "files.stat"),
                     ("doctor", "x"), ("hash-token", "a", "b")):
            out = self.run_ctl(*argv)
            self.assertEqual(out.returncode, 2, (argv, out))
            self.assertEqual(out.stdout, "")
            self.assertIn("usage", out.stderr)
        for verb in ("check-config", "doctor", "explain", "hash-token", "ops"):
            self.assertIn(verb, self.run_ctl().stderr)
        self.assertEqual(self.run_ctl("--version").returncode, 0)


class CheckConfig(Case):
    def test_clean(self):
        self.write(preset="download-only", root=self.root)
        out = self.check()
        self.assertEqual(out.returncode, 0, out)
        self.assertRegex(out.stdout, r"(?m)^files\.download +\+")
        self.assertRegex(out.stdout, r"(?m)^files\.delete +-")
        out = self.check("--json", "--strict")
        self.assertEqual(out.returncode, 0, out)
        got = json.loads(out.stdout)
        self.assertTrue(got["ok"])
        self.assertIn({"op": "files.download", "principals": ["viewer"]},
                      got["ops"])

    def test_errors(self):
        self.write(preset="download-only", root=self.root, rulez=[],
                   lisen=[])
        out = self.check()
        self.assertEqual(out.returncode, 2, out)
        at = re.escape(self.file) + r":\d+:\d+: error: config\.unknown_key: "
        self.assertEqual(len(re.findall(at, out.stdout)), 2, out.stdout)
        self.assertNotIn("files.download", out.stdout)
        got = json.loads(self.check("--json").stdout)
        self.assertFalse(got["ok"])
        self.assertEqual({f["code"] for f in got["findings"]},
                         {"config.unknown_key"})
        self.assertEqual({f["severity"] for f in got["findings"]}, {"error"})

    def test_warnings(self):
        rule = {"allow": "files.list", "paths": self.root}
        self.write(rules=[rule, rule])
        self.assertEqual(self.check().returncode, 0)
        out = self.check("--strict")
        self.assertEqual(out.returncode, 1, out)
        self.assertIn(": warning: config.shadowed: ", out.stdout)

    def test_files(self):
        out = self.run_ctl("check-config", f"{self.dir}/none.json")
        self.assertEqual(out.returncode, 2)
        self.assertIn("config.file_unreadable", out.stdout)
        self.write(mode=0o666, preset="download-only", root=self.root)
        out = self.check()
        self.assertEqual(out.returncode, 2)
        self.assertIn("config.file_unsafe", out.stdout)
        os.chmod(self.file, 0o644)
        os.chmod(f"{self.dir}/conf", 0o777)
        self.assertIn("config.file_unsafe", self.check().stdout)

    def test_dropins(self):
        self.write(preset="download-only", root=self.root)
        os.mkdir(f"{self.dir}/conf/server.d", 0o755)
        drop = f"{self.dir}/conf/server.d/10.json"
        self.write(name=drop, version=1,
                   rules=[{"allow": "files.mkdir", "paths": self.root}])
        out = self.check()
        self.assertEqual(out.returncode, 0, out)
        self.assertRegex(out.stdout, r"(?m)^files\.mkdir +\+")
        self.write(name=drop, version=1, rules=[{}])
        out = self.check()
        self.assertEqual(out.returncode, 2, out)
        self.assertIn(drop + ":", out.stdout)

    def test_secrets(self):
        self.write(preset="download-only", root=self.root)
        out = self.check(env={"ABX_T_VIEWER": "short"})
        self.assertEqual(out.returncode, 2)
        self.assertIn("config.auth_secret_weak", out.stdout)
        self.write(preset="download-only", root=self.root,
                   auth={"tokens": [{"id": "a", "token_env": "ABX_T_NONE"}]})
        self.assertIn("config.auth_secret_missing: the variable ABX_T_NONE is "
                      "not in the environment", self.check().stdout)
        path = f"{self.dir}/conf/token"
        for text, mode, want in ((TOKEN + "\n", 0o600, None),
                                 (TOKEN, 0o644, "config.file_unsafe"),
                                 ("x\n", 0o600, "config.auth_secret_weak")):
            with open(path, "w") as f:
                f.write(text)
            os.chmod(path, mode)
            self.write(preset="download-only", root=self.root,
                       auth={"tokens": [{"id": "viewer",
                                         "token_file": path}]})
            out = self.check()
            self.assertEqual(out.returncode, 2 if want else 0, out)
            self.assertIn(want or "", out.stdout)
            self.assertNotIn(TOKEN, out.stdout + out.stderr)

    def test_state_dir(self):
        self.write(preset="download-only", root=self.root)
        state = f"{self.dir}/state"
        os.mkdir(state, 0o770)
        os.chmod(state, 0o770)
        self.assertIn("config.state_dir_unsafe", self.check().stdout)
        os.chmod(state, 0o700)
        self.assertEqual(self.check().returncode, 0)
        os.rmdir(state)
        os.symlink(self.root, state)
        self.assertIn("config.state_dir_unsafe", self.check().stdout)

    def protected(self, **config):
        """Where, which root and which directory, of each warning."""
        self.write(**config)
        out = self.check("--json")
        self.assertEqual(out.returncode, 0, out)
        found = [f for f in json.loads(out.stdout)["findings"]
                 if f["code"] == "config.root_protected"]
        for f in found:
            self.assertEqual((f["file"], f["severity"]),
                             (self.file, "warning"))
            self.assertGreater(f["line"], 1)
        return [re.match(r'"(\w+)"(?: of "[^"]+")?: (\S+) (?:is|lies in) the '
                         r'protected directory (\S+), so', f["message"])
                .groups() for f in found]

    def test_protected_root(self):
        """Each directory that nobody can reach, and what only looks so."""
        d = self.dir
        for name in ("conf/sub", "keep/in", "near", "near-run", "logs"):
            os.makedirs(f"{d}/{name}")
        for name in ("state", "state/ws", "state-run"):
            os.mkdir(f"{d}/{name}", 0o700)
        os.symlink(f"{d}/conf/sub", f"{d}/link")
        for root, over in ((f"{d}/conf", "conf"), (f"{d}/conf/sub", "conf"),
                           (f"{d}/link", "conf"), (f"{d}/log", "log"),
                           (f"{d}/state", "state"),
                           (f"{d}/state/ws/{{session}}", "state"),
                           (f"{d}/state-run", "state-run"),
                           (f"{d}/keep/in/{{principal.id}}", "keep"),
                           ("/proc/self", "/proc"), ("/dev", "/dev"),
                           (d, None), (self.root, None),
                           (f"{d}/near", None), (f"{d}/near-run", None),
                           (f"{d}/logs/{{session}}", None)):
            want = [] if over is None else [
                ("paths", root, os.path.join(d, over))]
            with self.subTest(root):
                self.assertEqual(self.protected(
                    protect_dirs=[f"{d}/keep"], rules=[
                        {"allow": "files.list", "paths": self.root},
                        {"allow": "files.stat", "paths": root}]), want)

    def test_protected_place_of_work(self):
        """Of commands, and of those of a session."""
        run = {"allow": "commands.run", "name": "all of it",
               "commands": {"allow": ["true"], "cwd": [self.root]}}
        state = f"{self.dir}/state"
        os.mkdir(state, 0o700)
        self.assertEqual(self.protected(rules=[run]), [])
        run["commands"]["cwd"].append(f"{self.dir}/log")
        self.assertEqual(self.protected(rules=[run]), [
            ("cwd", f"{self.dir}/log", f"{self.dir}/log")])
        self.assertIn(f'"cwd" of "all of it": {self.dir}/log is the',
                      self.check().stdout)
        run["commands"]["cwd"].pop()
        self.assertEqual(
            self.protected(rules=[run],
                           sandbox={"workspace_root": f"{state}/ws"}),
            [("workspace_root", f"{state}/ws", state)])
        self.assertEqual(self.protected(
            preset="workspace-exec", root=f"{state}"), [
            ("paths", state, state), ("cwd", state, state)])

    def test_protected_root_beside_an_error(self):
        self.write(rules=[{"allow": "files.stat", "paths": self.dir + "/log"},
                          {"allow": "files.none"}])
        out = self.check()
        self.assertEqual(out.returncode, 2, out)
        self.assertIn("warning: config.root_protected", out.stdout)

    def test_token_file_in_a_root(self):
        """Said where the workers can read it: without root."""
        path = f"{self.root}/sub/token"
        with open(path, "w") as f:
            f.write(TOKEN + "\n")
        os.chmod(path, 0o600)
        for deny, there in ([], True), (["**/token"], False), (["a"], True):
            self.write(auth={"tokens": [{"id": "viewer", "token_file": path}]},
                       rules=[{"allow": "files.stat", "paths": {
                           "roots": self.root, "deny": deny}}])
            out = self.check()
            self.assertEqual(out.returncode, 0, out)
            self.assertEqual("warning: config.token_file_reachable: "
                             f'"token_file": {path} lies in {self.root}, '
                             in out.stdout, there and not ROOT, out.stdout)

    def place_of(self, code):
        """FILE:LINE:COLUMN of the one finding with that code."""
        found = [f for f in json.loads(self.check("--json").stdout)["findings"]
                 if f["code"] == code]
        self.assertEqual(len(found), 1, found)
        return found[0]["file"], found[0]["line"], found[0]["column"]

    def test_found_where_it_stands(self):
        """What only the system can tell, at the key that it is about."""
        state = f"{self.dir}/loose"
        os.mkdir(state, 0o755)
        for code, config in (
                ("config.state_dir_unsafe", {"state_dir": state}),
                ("config.user_missing", {"control": {"group": "abx-none"}}),
                ("config.user_missing", {"listen": [
                    {"unix": f"{self.dir}/s", "mode": "0660",
                     "group": "abx-none"}]})):
            self.write(rules=[], **config)
            file, line, col = self.place_of(code)
            with open(self.file) as f:
                text = f.read().splitlines()
            self.assertEqual(file, self.file)
            if "listen" in config:  # where the list begins
                self.assertIn('"listen"', text[line - 1])
            else:
                self.assertRegex(text[line - 1][col - 1:],
                                 f'"({state}|abx-none)"')

    @unittest.skipUnless(ROOT, "only root names users")
    def test_users_are_not_root(self):
        self.write(rules=[], users={"listener": "nobody", "monitor": "root",
                                    "run": "nobody"})
        self.place_of("config.user_missing")
        out = self.check()
        self.assertEqual(out.returncode, 2, out)
        self.assertIn("users.monitor: root is root", out.stdout)

    def test_everything_protected(self):
        """A directory of the service that is / is said, not run into."""
        self.write(preset="download-only", root=self.root)
        out = self.check(env={"RUNTIME_DIRECTORY": "/"})
        self.assertEqual((out.returncode, out.stderr), (2, ""), out)
        self.assertIn("error: config.root_is_slash", out.stdout)

    def test_preset_alone(self):
        if os.path.exists("/etc/agent-sandbox/server.json"):
            self.skipTest("there is a configuration")
        out = self.run_ctl("-p", "read-only", "-r", self.root, "check-config",
                           env={"ABX_SERVER_TOKEN": TOKEN})
        self.assertNotIn("config.file_unreadable", out.stdout)


class Explain(Case):
    def test_paths(self):
        self.write(preset="download-only", root=self.root)
        os.symlink("a", f"{self.root}/link")
        os.symlink("/etc/passwd", f"{self.root}/out")
        for path, want in (("a", None), (f"{self.root}/a", None),
                           ("link", None), ("none", None),
                           ("/etc/passwd", "policy.path_not_allowed"),
                           ("out", "policy.path_not_allowed"),
                           ("sub/.env", "policy.path_denied"),
                           ("/proc/self/environ", "policy.path_denied"),
                           (self.file, "policy.path_denied"),
                           (f"{self.dir}/log/x", "policy.path_denied")):
            out = self.explain("files.download", "path=" + path)
            self.assertEqual(out.returncode, 1 if want else 0, (path, out))
            self.assertIn(want or "allowed: files.download", out.stdout)
        # what the policy admits is no denial when the file is missing
        out = self.explain("files.download", "path=none")
        self.assertIn("fs.not_found", out.stdout)
        out = self.explain("files.download", "path=link", more=("--json",))
        got = json.loads(out.stdout)
        self.assertTrue(got["allowed"] and got["mounted"])
        self.assertEqual(got["paths"][0]["canonical"], f"{self.root}/a")
        self.assertEqual(got["principal"],
                         {"id": "viewer", "roles": ["reader"]})
        self.assertTrue(got["rule"]["origin"])

    def test_mounts(self):
        self.write(rules=[{"allow": "files.stat", "paths": self.root,
                           "principals": ["role:reader"]}])
        ok = lambda *a, **k: self.explain("files.stat", "path=a", *a, **k)
        self.assertEqual(ok().returncode, 0)
        self.assertEqual(ok(more=("--role", "other")).returncode, 1)
        self.assertEqual(ok(who="anonymous").returncode, 1)
        self.assertEqual(
            ok(who="x", more=("--role", "reader")).returncode, 0)
        for op in ("files.delete", "no.such", "files.search"):
            out = self.explain(op, "path=a")
            self.assertEqual(out.returncode, 1, out)
            self.assertIn("op.not_enabled", out.stdout)

    def test_arguments(self):
        self.write(preset="download-only", root=self.root)
        for args, want in (((), "args.missing"),
                           (("path=a", "x=1"), "args.unknown")):
            out = self.explain("files.download", *args)
            self.assertEqual(out.returncode, 1, out)
            self.assertIn(want, out.stdout)
        out = self.explain("files.download", "path")
        self.assertEqual(out.returncode, 2, out)

    def test_commands(self):
        self.write(rules=[{"allow": "commands.run", "commands": {
            "allow": ["true", "no-such-program", "ls {path}"],
            "cwd": self.root}}])
        for args, want in ((("command=true",), None),
                           (("argv=ls", "argv=a"), None),
                           (("command=ls /etc",),
                            "policy.command_not_allowed"),
                           (("command=id",), "policy.command_not_allowed"),
                           (("command=no-such-program",),
                            "policy.exec_not_found"),
                           (("command=true", "argv=true"), "args.invalid"),
                           (("command=true", "env=LD_PRELOAD=x"),
                            "policy.env_var_denied")):
            out = self.explain("commands.run", *args)
            self.assertEqual(out.returncode, 1 if want else 0, (args, out))
            self.assertIn(want or "allowed", out.stdout)

    def test_bad_config(self):
        self.write(rulez=[])
        out = self.explain("files.stat", "path=a")
        self.assertEqual(out.returncode, 2, out)
        self.assertIn("config.unknown_key", out.stdout)


class Others(Case):
    def test_ops(self):
        self.write(rules=[{"allow": "files.stat", "paths": self.root}])
        out = self.run_ctl("-f", self.file, "ops", "--json")
        self.assertEqual(out.returncode, 0, out)
        table = {r["op"]: r["principals"]
                 for r in json.loads(out.stdout)["ops"]}
        self.assertEqual(table["files.stat"], ["viewer"])
        self.assertEqual(table["files.list"], [])
        self.assertNotIn("net.fetch", table, "what is not there yet")

    def test_hash_token(self):
        digest = hashlib.sha256(TOKEN.encode()).hexdigest()
        for out in (self.run_ctl("hash-token", "-", stdin=TOKEN + "\n"),
                    self.run_ctl("hash-token", TOKEN)):
            self.assertEqual(out.returncode, 0, out)
            self.assertIn(digest, out.stdout)
            self.assertNotIn(TOKEN, out.stdout)
        got = json.loads(self.run_ctl("--json", "hash-token").stdout)
        self.assertEqual(
            hashlib.sha256(got["token"].encode()).hexdigest(), got["sha256"])
        self.assertEqual(len(got["token"]), 43)
        for bad in ("short", "with blank 0123456789", "x" * 513):
            out = self.run_ctl("hash-token", "-", stdin=bad)
            self.assertEqual(out.returncode, 2, out)

    def test_doctor(self):
        self.write(preset="download-only", root=self.root)
        out = self.run_ctl("-f", self.file, "--json", "doctor")
        self.assertIn(out.returncode, (0, 1), out)
        got = json.loads(out.stdout)
        self.assertEqual(got["ok"], out.returncode == 0)
        rows = {r["check"]: r["result"] for r in got["checks"]}
        self.assertLessEqual({"landlock", "seccomp", "openat2", "bubblewrap",
                              "users", "config", "open mode", "root"},
                             set(rows))
        self.assertEqual(rows["open mode"], "ok")
        self.assertEqual(rows["audit"], "ok")
        out = self.run_ctl("-f", f"{self.dir}/none", "doctor")
        self.assertEqual(out.returncode, 1, out)
        self.assertRegex(out.stdout, r"(?m)^failed +config ")

    def test_explain_of_what_is_not_there(self):
        self.write(preset="download-only", root=self.root)
        out = self.run_ctl("-f", self.file, "explain", "--op", "files.nope",
                           "--principal", "vewer")
        self.assertEqual(out.returncode, 1, out)
        self.assertIn("there is no operation files.nope", out.stderr)
        self.assertIn("no credential has the id vewer", out.stderr)

    def test_doctor_audit(self):
        for file, result, text in (
                (f"{self.dir}/audit", "ok", f"{self.dir}/audit"),
                (f"{self.dir}/none/audit", "warning", f"{self.dir}/none: No ")):
            self.write(preset="download-only", root=self.root,
                       audit={"sink": "file:" + file})
            out = self.run_ctl("-f", self.file, "--json", "doctor")
            row, = [r for r in json.loads(out.stdout)["checks"]
                    if r["check"] == "audit"]
            self.assertEqual(row["result"], result, row)
            self.assertTrue(row["text"].startswith(text), row)

    def doctor(self, what, pattern, *before, **kw):
        """One row where something is off."""
        self.write(preset="download-only", root=self.root)
        out = subprocess.run(
            [*before, f"{BUILD}/abxctl", "-f", self.file, "--json",
             "doctor"], env={"ABX_T_VIEWER": TOKEN}, text=True,
            capture_output=True, timeout=60, **kw)
        self.assertEqual(out.returncode, 1, out)
        row, = [r for r in json.loads(out.stdout)["checks"]
                if r["check"] == what]
        self.assertEqual(row["result"], "failed", row)
        self.assertRegex(row["text"], pattern)

    def test_doctor_namespaces(self):
        self.doctor(
            "namespaces", r"; sysctl user\.max_user_namespaces=\d+$",
            "unshare", "-U", "-r", "sh", "-c",
            'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', "sh")

    @unittest.skipUnless(ROOT, "needs root")
    def test_doctor_proc(self):
        # where an ordinary user finds the program
        prog = f"{self.dir}/abxctl"
        shutil.copy(f"{BUILD}/abxctl", prog)
        self.write(preset="download-only", root=self.root)
        out = subprocess.run(
            ["unshare", "-m", "sh", "-c",
             "mount --bind /dev/null /proc/version && exec setpriv "
             f"--reuid 65534 --regid 65534 --clear-groups {prog} -f "
             f"{self.file} doctor"], env={"ABX_T_VIEWER": TOKEN,
                                          "PATH": "/usr/bin:/bin"},
            text=True, capture_output=True, timeout=60)
        self.assertRegex(out.stdout + out.stderr,
                         r"(?m)^failed +proc +/proc/version is "
                         r"covered.*; .*systempaths=unconfined")

    def test_doctor_landlock(self):
        for err, text in ((errno.EOPNOTSUPP, "; boot with lsm=landlock,"),
                          (errno.ENOSYS, "; use Linux 5.13 or newer")):
            with self.subTest(err=err):
                self.doctor("landlock", text, preexec_fn=lambda: refuse(
                    LANDLOCK_CREATE_RULESET, err))

    def test_doctor_cgroup(self):
        """What is required and not there is no mere warning."""
        self.doctor("cgroup", "; ", "unshare", "-U", "-r", "-m", "sh", "-c",
                    'mount -t tmpfs none /sys/fs/cgroup; '
                    'sed -i \'s/"version"/"sandbox": {"require": '
                    '["namespaces", "seccomp", "landlock", "cgroup"]}, '
                    '"version"/\' ' + f'{self.file}; exec "$@"', "sh")


if __name__ == "__main__":
    unittest.main()
