# SPDX-License-Identifier: ISC
"""Commands: what may run, how it ends, what it sees from inside, what it
leaves behind.  Tests are named by the fault case that they hold down."""
import base64
import json
import os
import pwd
import random
import signal
import socket
import subprocess
import threading
import time
import unittest

from abxtest import (ADMIN, ALICE, ASAN, LONG, MARKER, OWN, READ, ROOT,
                     RUN_USER, SLOW, WRITE, Case, Conn, World, alive, cc, comm,
                     events, family, fds, hardened_only, kill_all, marked,
                     mounts, needs_root, timeout, told, until)


class Exec(Case):
    allow = ["sh -c ...", "python3 ...", "echo ...", "env", "cat", "true",
             "pwd", "ls ...", "/usr/bin/id ..."]
    scope = {}

    @classmethod
    def conf(cls, w):
        return {"rules": [
            {"allow": "commands.run",
             "commands": {"allow": cls.allow, "cwd": {
                 "roots": [w.w], "deny": ["**/.env", w.w + "/vault"]},
                 "timeout": "20s", "env_set": ["CI"],
                 "max_output_bytes": "2MB", **cls.scope}},
            {"allow": READ + WRITE, "paths": w.w}],
            "allow_lint_errors": True}

    def sh(self, script, **kw):
        """The result of a shell script."""
        return self.ok(self.svc.run("sh", "-c", script, **kw)).json

    def says(self, script, **kw):
        """stdout of a script that ends with 0."""
        return self.out(self.svc.run("sh", "-c", script, **kw))

    def py(self, code, **kw):
        return self.out(self.svc.run("python3", "-c", code, **kw))

    def gone(self, mark, seconds=10):
        if not until(seconds, lambda: not marked(mark)):
            left = {p: comm(p) for p in marked(mark)}
            kill_all(left)
            self.fail(f"still there after {seconds} s: {left}")


class Capabilities(Exec):
    """What a command asks for is held against its sandbox."""
    @classmethod
    def conf(cls, w):
        conf = super().conf(w)
        conf["rules"].append({"allow": "core.check"})
        return conf

    def asks(self, caps, **kw):
        return self.svc.rpc("commands.run", {
            "argv": ["sh", "-c", "/usr/bin/id -u >/dev/null && echo went"],
            "capabilities": caps, **kw})

    def test_more_is_refused(self):
        w = self.world.w
        for caps in ({"network": "all"}, {"fs_read": ["/root"]},
                     {"network": {"allow_hosts": ["example.org"]}},
                     {"fs_write": [w + "/../outside"]},
                     {"fs_read": [w, "/etc/passwd"]}):
            self.refused(self.asks(caps), 403, "capability.denied", what=caps)
            seen = self.ok(self.svc.rpc("core.check", {
                "op": "commands.run",
                "args": {"argv": ["true"], "capabilities": caps}})).json
            self.eq((seen["allowed"], seen["code"]),
                    (False, "capability.denied"), caps)
        for caps in ({"fs_read": "x"}, {"network": 1}, {"x": 1}, [], "all"):
            self.eq(self.asks(caps).status, 400, caps)

    def test_less_is_given(self):
        self.eq(self.out(self.asks({"network": "none",
                                    "fs_write": [self.world.w],
                                    "spawn_subprocess": True})), "went\n")
        r = self.ok(self.asks({"spawn_subprocess": False})).json
        self.eq((r["exit_code"] != 0, r["stdout"]), (True, ""))
        r = self.ok(self.svc.rpc("commands.run", {
            "argv": ["sh", "-c", "sleep 9"],
            "capabilities": {"timeout_secs": 1}})).json
        self.eq(r["timed_out"], True)
        r = self.ok(self.svc.rpc("commands.run", {
            "argv": ["python3", "-c", "bytearray(200 << 20); print('had it')"],
            "capabilities": {"max_memory_mb": 64}})).json
        self.eq(r["stdout"], "", "64 MiB are not 200")


class Admission(Case):
    @classmethod
    def fill(cls, w):
        w.put("w/a.py", "")
        w.put("w/bin/true", "#!/bin/sh\necho fake\n", 0o755)

    @classmethod
    def conf(cls, w):
        return {"rules": [
            {"allow": "commands.run", "commands": {
                "allow": ["echo {word}", "echo a ...", "ls {path}",
                          "ls -l {path}", "find . -name *", "seq {int}",
                          "cat *.py", "true", "no-such-program", "pwd",
                          "printf {word} ..."],
                "deny": ["echo a ... forbidden ..."],
                "cwd": {"roots": [w.w], "deny": ["**/.env", "vault"]}}},
            {"deny": "commands.run", "commands": ["ls ... -R ...",
                                                  "echo denied"]}],
            "allow_lint_errors": True}

    def run_(self, what, **kw):
        if isinstance(what, str):
            return self.svc.rpc("commands.run", {"command": what, **kw})
        return self.svc.rpc("commands.run", {"argv": what, **kw})

    def test_T060_cwd(self):
        w = self.world
        for cwd in (w.outside, w.w + "/../outside", "..", "/", "/etc",
                    w / "w-evil", "/no/such"):
            self.refused(self.run_("pwd", cwd=cwd), 403,
                         "policy.path_not_allowed", what=cwd)
        self.refused(self.run_("pwd", cwd="vault"), 403,
                     "policy.path_denied")
        self.eq(self.out(self.run_("pwd")), w.w + "\n")
        for cwd in ("sub", w.w + "/sub", "./sub/."):
            self.eq(self.out(self.run_("pwd", cwd=cwd)), w.w + "/sub\n")
        self.eq(self.run_("pwd", cwd="none").status in (403, 404), True)
        self.eq(self.run_("pwd", cwd="a.py").status in (403, 409), True)

    def test_B1_cwd_is_a_link(self):
        w = self.world
        os.symlink(w.outside, w.w + "/escape")
        os.symlink("sub", w.w + "/inside")
        self.refused(self.run_("pwd", cwd="escape"), 403,
                     "policy.path_not_allowed")
        self.eq(self.out(self.run_("pwd", cwd="inside")), w.w + "/sub\n")

    def test_T061_chaining(self):
        for line, out in (("echo a && id", "a && id\n"),
                          ("echo a $(id)", "a $(id)\n"),
                          ("echo a `id`", "a `id`\n"),
                          ("echo a ; id", "a ; id\n"),
                          ("echo a | id", "a | id\n"),
                          ("echo a > f", "a > f\n"),
                          ("echo a $HOME *", "a $HOME *\n"),
                          ("echo a 'b  c' \"d e\" f\\ g",
                           "a b  c d e f g\n")):
            self.eq(self.out(self.run_(line)), out, line)
        self.eq(os.path.exists(self.world.w + "/f"), False)
        for line in ("echo x && id", "id", "true; id", "true && id",
                     "echo $(id)", "true\nid"):
            self.refused(self.run_(line), 403, "policy.command_not_allowed",
                         what=line)

    def test_T062_arguments(self):
        for argv in (["find", ".", "-exec", "id", ";"],
                     ["find", ".", "-name", "x", "-delete"],
                     ["find", ".", "-name", "-exec"], ["ls"], ["ls", "/etc"],
                     ["ls", "../.."], ["ls", "-la"], ["ls", "-l", "-a"],
                     ["seq", "x"], ["seq", "3", "4"], ["seq", "-f"],
                     ["cat", "-n.py"], ["cat", "sub/b.py"],
                     ["cat", "a.py", "a.py"], ["true", ""], ["echo", "-x"],
                     ["echo", "a b"], ["printf", "-v"]):
            self.refused(self.run_(argv), 403, "policy.command_not_allowed",
                         what=argv)
        for argv in (["find", ".", "-name", "x"], ["ls", "sub"],
                     ["ls", "-l", "."], ["seq", "3"], ["cat", "a.py"],
                     ["ls", self.world.w + "/sub"], ["/usr/bin/true"]):
            self.ok(self.run_(argv))

    def test_path_arguments_meet_the_scope(self):
        self.refused(self.run_(["ls", ".env"]), 403, "policy.path_denied",
                     "policy.command_not_allowed")
        self.refused(self.run_(["ls", "vault"]), 403, "policy.path_denied",
                     "policy.command_not_allowed")
        self.eq(self.out(self.run_(["ls", "b.txt"], cwd="sub")), "b.txt\n",
                "relative to the cwd")

    def test_T063_argv0_and_deny(self):
        for argv in (["/usr/bin/ls", "-R"], ["ls", "-lR"], ["ls", "-laR"],
                     ["ls", "-R", "sub"], ["ls", "sub", "-R"],
                     ["/bin/ls", "-lR"], ["echo", "denied"],
                     ["/usr/bin/echo", "denied"],
                     ["echo", "a", "forbidden"],
                     ["echo", "a", "x", "forbidden", "y"]):
            self.refused(self.run_(argv), 403, "policy.command_denied",
                         what=argv)
        self.refused(self.run_("ls -lR"), 403, "policy.command_denied")

    def test_T064_splitting_errors(self):
        for line in ("ls 'abc", 'echo "a', "echo a\\", "'", "echo 'a\\'b'"):
            self.refused(self.run_(line), 400, "args.invalid", what=line)
        for line in ("", "  "):
            self.eq(self.run_(line).status in (400, 403), True, line)

    def test_T065_argument_keys(self):
        for args, codes in (
                ({"command": "true", "argv": ["true"]}, ("args.invalid",)),
                ({}, ("args.invalid", "args.missing")),
                ({"cmd": "true"}, ("args.unknown",)),
                ({"argv": []}, ("args.invalid",)),
                ({"argv": ["true", 1]}, ("args.type",)),
                ({"argv": "true"}, ("args.type",)),
                ({"argv": ["true", None]}, ("args.type",)),
                ({"argv": [["true"]]}, ("args.type",)),
                ({"command": ["true"]}, ("args.type",)),
                ({"command": 1}, ("args.type",)),
                ({"argv": ["true"], "x": 1}, ("args.unknown",)),
                ({"argv": ["true"], "timeout": 0}, ("args.type",)),
                ({"argv": ["true"], "timeout": "5"}, ("args.type",)),
                ({"argv": ["true"], "timeout": -1}, ("args.type",)),
                ({"argv": ["true"], "env": []}, ("args.type",)),
                ({"argv": ["true"], "env": {"CI": 1}}, ("args.type",)),
                ({"argv": ["true"], "stdin": 1}, ("args.type",)),
                ({"argv": ["true"], "stream": "yes"}, ("args.type",)),
                ({"argv": ["true"], "cwd": 1}, ("args.type",)),
                ({"argv": ["true"], "shell": True}, (
                    "args.invalid", "policy.shell_not_allowed"))):
            with self.subTest(args):
                r = self.svc.rpc("commands.run", args)
                self.eq((r.status in (400, 403), r.code in codes),
                        (True, True), f"{codes}, got {r}")
        self.refused(self.svc.rpc("commands.run", {"command": "true",
                                                   "shell": True}), 403,
                     "policy.shell_not_allowed")

    def test_T066_wrappers(self):
        for argv in (["bash", "-c", "echo x"], ["sh", "-c", "true"],
                     ["env", "true"], ["xargs", "true"],
                     ["nice", "true"], ["/usr/bin/env", "true"]):
            self.refused(self.run_(argv), 403, "policy.command_not_allowed",
                         what=argv)

    def test_only_exec_dirs(self):
        for argv in (["./true"], ["bin/true"], [self.world.w + "/bin/true"],
                     ["/usr/bin/../bin/true"], ["sub/../bin/true"],
                     ["TRUE"], ["/sbin/true"], ["//usr/bin/true"]):
            self.refused(self.run_(argv), 403, "policy.command_not_allowed",
                         "policy.exec_not_found", what=argv)
        r = self.run_(["true"], env={})
        self.eq(self.ok(r).json["stdout"], "", "not the one in bin/")

    def test_T074_spawn_failure(self):
        r = self.run_(["no-such-program"])
        self.refused(r, 403, "policy.exec_not_found")
        self.under(r.secs, 1 * SLOW, "seconds")

    def test_no_shell_in_between(self):
        odd = ["$(id)", "`id`", "; id", "a  b", "*", "\\n", "é", "", "'",
               "$HOME", "\t", "~", "-n", "--", "a\nb"]
        r = self.run_(["printf", "x"] + odd)
        self.eq(self.out(r), "x")

    def test_huge_argv(self):
        r = self.run_(["printf", "x"] + ["y" * 1000] * 900)
        self.ok(r)
        r = self.run_(["printf", "x", "y" * 200_000])
        self.refused(r, 400, "args.too_large")
        r = self.run_(["printf", "x"] + ["y"] * 5000)
        self.eq(r.status in (200, 400), True, r.status)
        self.health()


class Results(Exec):
    def test_shape(self):
        r = self.ok(self.svc.run("sh", "-c", "echo out; echo err >&2; exit 3"
                                 )).json
        want = {"exit_code", "signal", "stdout", "stderr", "stdout_encoding",
                "stderr_encoding", "truncated", "timed_out", "oom_killed",
                "duration_ms", "usage", "sandbox"}
        self.eq(want - set(r), set(), "members that are missing")
        self.eq((r["exit_code"], r["signal"], r["stdout"], r["stderr"]),
                (3, None, "out\n", "err\n"))
        self.eq((r["stdout_encoding"], r["stderr_encoding"]),
                ("utf-8", "utf-8"))
        self.eq(r["truncated"], {"stdout": False, "stderr": False})
        self.eq((r["timed_out"], r["oom_killed"]), (False, False))
        self.eq(0 <= r["duration_ms"] < 10_000, True, r["duration_ms"])

    def test_T069_exit_status(self):
        for script, code, sig in (
                ("exit 0", 0, None), ("exit 1", 1, None),
                ("exit 137", 137, None), ("exit 143", 143, None),
                ("exit 255", 255, None), ("kill -9 $$", None, "KILL"),
                ("kill -TERM $$", None, "TERM"), ("kill -HUP $$", None,
                                                  "HUP"),
                ("kill -SEGV $$", None, "SEGV"),
                ("kill -USR1 $$", None, "USR1"),
                ("exec python3 -c 'import os; os.abort()'", None, "ABRT")):
            r = self.sh(script)
            self.eq((r["exit_code"], r["signal"], r["timed_out"]),
                    (code, sig, False), script)

    def test_H19_launcher_codes_are_not_special(self):
        for code in (64, 65, 66, 67, 68, 125, 126, 127):
            r = self.sh(f"exit {code}")
            self.eq((r["exit_code"], r["signal"]), (code, None))

    def test_T067_grandchildren_hold_pipes(self):
        nap = f"sleep 31.{OWN}"
        for script in (f"{nap} & echo hi", f"({nap}; echo late) & echo hi",
                       f"setsid {nap} & echo hi",
                       f"nohup {nap} >&2 & echo hi"):
            began = time.monotonic()
            r = self.sh(f"{script}; : t067")
            self.eq((r["stdout"], r["exit_code"]), ("hi\n", 0), script)
            self.under(time.monotonic() - began, 1.5 * SLOW, "seconds")
        until(10, lambda: not marked(f"sleep\x0031.{OWN}"))
        self.eq(marked(f"sleep\x0031.{OWN}"), [], "the sleeper is still there")

    def test_T068_timeout_kill(self):
        for n, script in enumerate((
                f"echo part; sleep 47.{OWN}; echo x",
                f"echo part; (sleep 47.{OWN} & sleep 47.{OWN}) ; echo x",
                f"echo part; setsid sleep 47.{OWN}; echo x",
                f"echo part; exec sleep 47.{OWN}")):
            began = time.monotonic()
            r = self.sh(script, timeout=1)
            self.eq((r["timed_out"], r["stdout"]), (True, "part\n"), script)
            self.under(time.monotonic() - began, 2.5 * SLOW, script)
            self.eq((r["exit_code"] is None) != (r["signal"] is None), True,
                    r)
        self.gone(f"sleep\x0047.{OWN}")

    def test_timeout_lets_a_handler_run(self):
        r = self.sh("trap 'echo bye; exit 3' TERM; echo hi; while :; do "
                    "sleep 0.05; done", timeout=1)
        self.eq((r["stdout"], r["exit_code"], r["signal"], r["timed_out"]),
                ("hi\nbye\n", 3, None, True))

    def test_timeout_kills_who_ignores_it(self):
        began = time.monotonic()
        r = self.sh("trap '' TERM; while :; do sleep 0.05; done; : "
                    f"stubborn-{OWN}",
                    timeout=1)
        took = time.monotonic() - began
        self.eq((r["signal"], r["exit_code"], r["timed_out"]),
                ("KILL", None, True))
        self.eq(2.5 < took < 4.5 * SLOW, True,
                f"1 s and 2 s of grace, it took {took:.1f}")
        self.gone(f"stubborn-{OWN}")

    def test_timeout_is_clamped(self):
        self.under(self.sh("sleep 0.1; echo x", timeout=100000)[
            "duration_ms"], 10_000)

    def test_idle_timeout(self):
        began = time.monotonic()
        r = self.sh(f"echo a; sleep 0.7; echo b; sleep 53.{OWN}",
                    idle_timeout=1)
        self.eq(r["stdout"], "a\nb\n")
        self.eq(r.get("idle_timed_out"), True, r)
        self.under(time.monotonic() - began, 5 * SLOW, "seconds")
        self.gone(f"sleep\x0053.{OWN}")

    def test_T070_stdin(self):
        r = self.svc.run("cat")
        self.eq(self.out(r), "")
        self.under(r.secs, 2 * SLOW, "seconds")
        self.eq(self.out(self.svc.run("cat", stdin="")), "")
        self.eq(self.out(self.svc.run("cat", stdin="in\nput")), "in\nput")
        self.eq(self.says("read x || echo none"), "none\n")

    def test_T071_stdin_deadlock(self):
        big = "0123456789abcdef" * 65536 * 4  # 4 MiB
        r = self.ok(self.svc.run("cat", stdin=big)).json
        self.eq(r["exit_code"], 0)
        self.eq(r["stdout"] == big[:2_000_000], True,
                f"{len(r['stdout'])} bytes")
        self.eq(r["truncated"], {"stdout": True, "stderr": False})
        self.eq(self.says("wc -c", stdin=big).strip(), str(4 << 20))
        # nobody reads it
        self.eq(self.sh("exit 5", stdin=big)["exit_code"], 5)
        self.eq(self.sh("head -c 10", stdin=big)["stdout"], "0123456789")

    def test_T072_stderr_fills(self):
        r = self.sh("head -c 200000 /dev/zero | tr '\\0' e >&2; echo ok")
        self.eq((r["stdout"], len(r["stderr"]), r["exit_code"]),
                ("ok\n", 200_000, 0))
        r = self.sh("head -c 10000000 /dev/zero | tr '\\0' o & head -c "
                    "10000000 /dev/zero | tr '\\0' e >&2; wait; exit 7")
        self.eq((r["exit_code"], len(r["stdout"]), len(r["stderr"])),
                (7, 2_000_000, 2_000_000))
        self.eq(r["truncated"], {"stdout": True, "stderr": True})

    def test_output_encodings(self):
        r = self.sh("printf '\\377\\376'; printf 'é' >&2")
        self.eq((r["stdout_encoding"], base64.b64decode(r["stdout"])),
                ("base64", b"\xff\xfe"))
        self.eq((r["stderr_encoding"], r["stderr"]), ("utf-8", "é"))
        r = self.py("import sys; sys.stdout.buffer.write(bytes(range(1,128)))"
                    )
        self.eq(r, bytes(range(1, 128)).decode())
        r = self.py("print('\\x00\\x1b\\u2028\\U0001f600\"\\\\')")
        self.eq(r, "\x00\x1b\u2028\U0001f600\"\\\n")

    def test_H5_a_lone_byte(self):
        r = self.sh("printf 'a\\377b'")
        self.eq(base64.b64decode(r["stdout"]), b"a\xffb")

    def test_usage(self):
        r = self.sh("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
        u = r["usage"]
        self.eq(isinstance(u, dict) and bool(u), True, u)
        self.eq(any(v > 10 for k, v in u.items() if isinstance(v, int) and
                    ("user" in k or "cpu" in k)), True, u)
        self.eq(u.get("memory_enforced"), "rlimit", u)

    def test_audit(self):
        r = self.svc.run("sh", "-c", "echo not-in-the-audit; exit 4")
        a = self.svc.audit_of(r)
        self.eq((a["op"], a["allowed"], a["principal"], a["exit_code"]),
                ("commands.run", True, "root", 4))
        self.eq(bool(a["argv_hash"]), True)
        self.eq("not-in-the-audit" in open(self.svc.audit).read(), False,
                "argv in the audit")
        again = self.svc.audit_of(self.svc.run(
            "sh", "-c", "echo not-in-the-audit; exit 4"))
        self.eq(again["argv_hash"], a["argv_hash"])
        r = self.svc.run("sh", "-c", "kill -9 $$")
        self.eq(self.svc.audit_of(r)["signal"], "KILL")


class HeadTail(Exec):
    scope = {"max_output_bytes": 20, "output_keep": "head_tail"}

    def test_text_stays_text(self):
        for n in range(3):
            words = "x" * n + "日本語テスト" * 4
            r = self.ok(self.svc.run("echo", words)).json
            got = r["stdout"].encode()
            self.eq((r["stdout_encoding"], r["truncated"]["stdout"],
                     len(got) <= 20, len(got) + r["dropped"]["stdout"]),
                    ("utf-8", True, True, len(words.encode()) + 1), r)
            self.eq(words.startswith(r["stdout"][:2]) and
                    r["stdout"].endswith("テスト\n"), True, r)


class Bounds(Exec):
    scope = {"max_output_bytes": 10, "timeout": "3s", "cpu_seconds": 1,
             "memory": "128MB", "processes": 20}

    def test_T073_utf8_cut(self):
        r = self.sh("printf '日本語テスト'")
        self.eq((r["stdout"], r["stdout_encoding"]), ("日本語", "utf-8"))
        self.eq(r["truncated"]["stdout"], True)
        r = self.sh("printf 'aé日x😀😀'")
        self.eq((r["stdout"], r["truncated"]["stdout"]), ("aé日x", True))
        r = self.sh("printf 0123456789")
        self.eq((r["stdout"], r["truncated"]["stdout"]),
                ("0123456789", False), "exactly as much")
        r = self.sh("printf 0123456789a")
        self.eq((r["stdout"], r["truncated"]["stdout"]),
                ("0123456789", True))

    def test_B56_B57_overflow_is_counted(self):
        r = self.sh("head -c 100000 /dev/zero | tr '\\0' x; exit 6")
        self.eq((r["exit_code"], r["stdout"]), (6, "x" * 10),
                "not killed")
        self.eq(r["dropped"], {"stdout": 99_990, "stderr": 0})

    def test_clamped_by_the_request(self):
        r = self.ok(self.svc.run("sh", "-c", "printf 0123456789",
                                 max_output_bytes=4)).json
        self.eq((r["stdout"], r["truncated"]["stdout"]), ("0123", True))
        r = self.ok(self.svc.run("sh", "-c", "printf 0123456789a",
                                 max_output_bytes=400)).json
        self.eq(r["stdout"], "0123456789", "never more than the policy")
        began = time.monotonic()
        r = self.sh("sleep 59", timeout=50)
        self.eq(r["timed_out"], True)
        self.under(time.monotonic() - began, 6 * SLOW, "seconds")

    def test_cpu(self):
        began = time.monotonic()
        r = self.sh("while :; do :; done")
        self.eq(r["exit_code"], None, r)
        self.among(r["signal"], ("XCPU", "KILL", "TERM"))
        self.under(time.monotonic() - began, 6 * SLOW, "seconds")

    def test_memory(self):
        r = self.sh("exec python3 -c 'x = bytearray(1 << 30)'")
        self.eq(r["exit_code"] != 0, True, r)
        r = self.sh("exec python3 -c 'x = bytearray(32 << 20); print(1)'")
        self.eq(r["stdout"], "1\n", "less than the limit is fine")

    def test_processes(self):
        r = self.sh("exec python3 -c '\n"
                    "import os, time\n"
                    "n = 0\n"
                    "try:\n"
                    "    while n < 200:\n"
                    "        if os.fork() == 0: time.sleep(9); os._exit(0)\n"
                    "        n += 1\n"
                    "except OSError: pass\n"
                    "print(n)'")
        self.eq(r["exit_code"], 0, r)
        self.among(int(r["stdout"]), range(10, 21), "forks of 20 processes")

    def test_a_fork_bomb_ends(self):
        mark = f"bombed-{OWN}"
        r = self.sh("f() { f & f & }; f; sleep 1; : " + mark, timeout=2)
        self.gone(mark)
        self.eq(self.says("echo ok"), "ok\n")


class Stream(Exec):
    def open(self, script, **args):
        """A connection on which a streamed run was asked for."""
        c = Conn(self.svc, timeout=20)
        c.send(self.svc.build("POST", "/commands/run", {
            "argv": ["sh", "-c", script], **args},
            headers={"Accept": "text/event-stream"}))
        status, headers, _ = c.head()
        self.eq(status, 200)
        self.eq(dict(headers)["content-type"].split(";")[0],
                "text/event-stream")
        return c

    def all(self, c):
        body = b""
        while part := c.chunk():
            body += part
        c.close()
        return events(body)

    def test_events(self):
        got = self.all(self.open("echo one; echo two >&2; sleep 0.1; "
                                 "printf '\\377'; exit 5"))
        self.eq(got[-1][0], "exit", "the last event")
        self.eq([e for e, _ in got].count("exit"), 1)
        out = b"".join(told(d) for e, d in got if e == "stdout")
        err = b"".join(told(d) for e, d in got if e == "stderr")
        self.eq((out, err), (b"one\n\xff", b"two\n"))
        for name in ("stdout", "stderr"):
            at = 0
            for e, d in got:
                if e == name:
                    self.eq(d["offset"], at)
                    at += len(told(d))
        end = got[-1][1]
        self.eq((end["exit_code"], end["signal"], end["timed_out"]),
                (5, None, False))
        self.eq({"stdout", "stderr"} & set(end), set(),
                "the result less the output")
        self.eq({"truncated", "duration_ms", "usage", "sandbox"} - set(end),
                set())

    def test_it_is_live(self):
        c = self.open("echo early; sleep 2; echo late")
        began = time.monotonic()
        first = c.chunk()
        while b"early" not in first:
            first += c.chunk()
        self.under(time.monotonic() - began, 1 * SLOW, "seconds")
        self.eq(b"late" in first, False)
        self.eq(self.all(c)[-1][1]["exit_code"], 0)

    def test_stream_argument(self):
        r = self.ok(self.svc.run("sh", "-c", "echo x", stream=True))
        self.eq([e for e, _ in events(r.body)], ["stdout", "exit"])
        r = self.svc.run("sh", "-c", "echo x", headers={
            "Accept": "text/event-stream"})
        self.eq([e for e, _ in events(self.ok(r).body)], ["stdout", "exit"])

    def test_refusals_are_plain(self):
        r = self.svc.rpc("commands.run", {"argv": ["uname"],
                                          "stream": True})
        self.refused(r, 403, "policy.command_not_allowed")
        r = self.svc.run("sh", "-c", "exit 0", stream=True, token=None)
        self.refused(r, 401, "auth.required")

    def test_T074_every_stream_has_an_end(self):
        for script, want in (("kill -9 $$", "KILL"), ("exit 9", 9),
                             ("./a.txt", 126), ("./no-such", 127)):
            end = self.all(self.open(script))[-1]
            self.eq((end[0], end[1]["exit_code"] or end[1]["signal"]),
                    ("exit", want))

    def test_timeout(self):
        got = self.all(self.open(f"echo a; sleep 61.{OWN}", timeout=1))
        self.eq((got[-1][0], got[-1][1]["timed_out"]), ("exit", True))
        self.gone(f"sleep\x0061.{OWN}")

    def test_big_output_keeps_order(self):
        got = self.all(self.open(
            "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"))
        out = b"".join(told(d) for e, d in got if e == "stdout")
        self.eq(out == b"".join(b"%d\n" % i for i in range(20000)), True)
        self.eq(got[-1][0], "exit")

    def test_output_is_bounded(self):
        got = self.all(self.open("head -c 5000000 /dev/zero | tr '\\0' x"))
        n = sum(len(told(d)) for e, d in got if e == "stdout")
        end = got[-1][1]
        self.eq((n, end["truncated"]["stdout"]), (2_000_000, True))
        self.eq(end["exit_code"], 0)

    def test_multi_byte_characters_are_whole(self):
        got = self.all(self.open("i=0; while [ $i -lt 30000 ]; do printf "
                                 "'日本😀'; i=$((i+1)); done"))
        self.eq({d["encoding"] for e, d in got if e == "stdout"},
                {"utf-8"})
        out = b"".join(told(d) for e, d in got if e == "stdout")
        self.eq(out == "日本😀".encode() * 30000, True)

    def test_client_disconnect_kills(self):
        for how in ("stream", "captured"):
            mark = f"left-{how}-{OWN}"
            script = (f"sleep 67.{OWN} & setsid sleep 67.{OWN} & echo go; "
                      f"while :; do sleep 0.1; done; : {mark}")
            if how == "stream":
                c = self.open(script)
                c.chunk()
            else:
                c = Conn(self.svc)
                c.send(self.svc.build("POST", "/commands/run", {
                    "argv": ["sh", "-c", script]}))
            self.eq(bool(until(10, lambda: marked(mark))), True, "it runs")
            c.close()
            self.gone(mark)
            self.gone(f"sleep\x0067.{OWN}")

    def test_a_slow_reader_blocks_nobody(self):
        c = self.open("head -c 1500000 /dev/zero | tr '\\0' x; echo done >&2")
        time.sleep(0.5)
        self.eq(self.says("echo other"), "other\n")
        got = self.all(c)
        self.eq(sum(len(told(d)) for e, d in got if e == "stdout"),
                1_500_000)
        self.eq(got[-1][1]["exit_code"], 0)


class Flood(Exec):
    scope = {"max_output_bytes": 30_000_000}

    def test_who_waits_for_a_reader_is_not_idle(self):
        with Conn(self.svc, timeout=20 * SLOW, rcvbuf=4096) as c:
            c.send(self.svc.build("POST", "/commands/run", {
                "argv": ["sh", "-c", "yes | head -c 25000000; echo end >&2"],
                "stream": True, "idle_timeout": 1}))
            time.sleep(3)
            self.eq(c.head()[0], 200)
            raw = b""
            while part := c.chunk():
                raw = raw[-4096:] + part
        end = events(raw[raw.rindex(b"event: exit"):])[-1][1]
        self.eq((end["idle_timed_out"], end["exit_code"]), (False, 0))


class Environment(Exec):
    scope = {"env_pass": ["PATH", "LANG", "HOME", "PASSED"],
             "env_set": ["CI", "MY_*", "OTHER"], "env_deny": ["MY_BAD*"],
             "env_fixed": {"FIXED": "f"}}

    @classmethod
    def setUpClass(cls):
        os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin")
        super().setUpClass()

    def env(self, **kw):
        return dict(line.split("=", 1) for line in
                    self.out(self.svc.run("env", **kw)).splitlines())

    def test_T079_inheritance(self):
        for _ in range(3):
            e = self.env()
            self.eq(set(e) - {"PATH", "LANG", "HOME", "USER", "LOGNAME",
                              "FIXED", "PASSED", "PWD"}, set(),
                    "variables that nobody asked for")
            self.eq((e["HOME"], e["USER"], e["LOGNAME"], e["FIXED"]),
                    (self.world.w, "abx", "abx", "f"))
            self.eq(e["LANG"], "C.UTF-8")
            self.eq(e["PATH"], "/usr/bin:/bin:/usr/local/bin")
        out = self.says("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
        self.eq(MARKER in out or "ABX_" in out, False, "the service's own")

    def test_T080_caller_env(self):
        for name in ("LD_PRELOAD", "LD_X", "NODE_OPTIONS", "PYTHONPATH",
                     "PATH", "HOME", "IFS", "BASH_ENV", "ENV", "GIT_DIR",
                     "ABX_X", "X_TOKEN", "X_SECRET", "AWS_X", "HTTP_PROXY",
                     "https_proxy", "GLIBC_TUNABLES", "TMPDIR", "PERL5LIB",
                     "SHELL", "UNLISTED", "MY_BAD", "MY_BAD_X", "ci", "CIX",
                     "MY_API_KEY", "MY_TOKEN", "DYLD_X", "MALLOC_CHECK_",
                     "SSH_AUTH_SOCK"):
            self.refused(self.svc.run("env", env={name: "x"}), 403,
                         "policy.env_var_denied", what=name)
        for name in ("", "A=B", "CI=", "C I", "1X"):
            self.eq(self.svc.run("env", env={name: "x"}).status in
                    (400, 403), True, name)
        e = self.env(env={"CI": "1", "MY_X": "a=b\nc"[:3], "OTHER": ""})
        self.eq((e["CI"], e["MY_X"], e["OTHER"]), ("1", "a=b", ""))
        self.eq(self.out(self.svc.run("sh", "-c", "printf %s \"$MY_X\"",
                                      env={"MY_X": "é\n\"'$(id)"})),
                "é\n\"'$(id)")
        self.refused(self.svc.run("env", env={"FIXED": "mine"}), 403,
                     "policy.env_var_denied")

    def test_identity(self):
        uid = pwd.getpwnam(RUN_USER).pw_uid if ROOT else os.geteuid()
        self.eq(self.says("id -u").strip(), str(uid))
        self.eq(self.says("id -G").strip().count(" "), 0, "one group")
        self.eq(self.says("cat /proc/sys/kernel/hostname").strip(), "abx")


class Inside(Exec):
    """What a command sees."""

    @classmethod
    def fill(cls, w):
        os.symlink(w.outside + "/secret.txt", w.w + "/leak")
        w.put("w/.git/hooks/sample", "x")
        w.put("w/.git/config", "x")

    def test_no_other_process(self):
        out = self.says("for p in /proc/[0-9]*; do cat $p/comm; done "
                        "2>/dev/null")
        self.eq({c for c in out.split() if "abx" in c} - {"abx-launch"},
                set())
        pids = self.says("ls /proc").split()
        self.under(len([p for p in pids if p.isdigit()]), 6, "processes")
        for name in ("abx-monitor", "abx-listener", "abx-pathd"):
            pid = self.svc.kid(name)
            self.eq(self.sh(f"kill -0 {pid}")["exit_code"] != 0, True)

    def test_first_to_go_when_memory_is_short(self):
        self.eq(self.says("echo 0 > /proc/self/oom_score_adj; "
                          "cat /proc/self/oom_score_adj"), "1000\n")

    def test_T081_reading_the_server(self):
        pid = self.svc.proc.pid
        for p in (pid, self.svc.kid("abx-execd"), 1):
            r = self.sh(f"cat /proc/{p}/environ; head -c 1 /proc/{p}/mem; "
                        f"ls /proc/{p}/fd /proc/{p}/root; "
                        f"readlink /proc/{p}/exe")
            self.eq(r["stdout"], "", f"pid {p}")

    def test_no_configuration(self):
        w = self.world
        for path in (self.svc.file, w / "conf", w / "log", w / "state",
                     w.outside, w / "w-evil/loot.txt", w.r,
                     "/etc/shadow", "/root", "/etc/agent-sandbox",
                     "/var/log", "/home", w.w + "/leak", "/boot",
                     "/var/lib/dpkg"):
            r = self.sh(f"cat '{path}' 2>/dev/null; ls '{path}' 2>/dev/null")
            self.eq(r["stdout"].replace(path + "\n", ""), "", path)
        self.eq(self.sh("ls -A " + w.dir)["stdout"].split() in ([], ["w"]),
                True)

    def test_denied_entries_are_covered(self):
        r = self.sh("cat .env vault/k.txt; ls -A vault; echo $?; "
                    "echo x > .env; echo x > vault/new; rm -rf vault")
        self.eq(r["stdout"], "0\n", r)
        self.eq(self.world.get("w/.env"), MARKER.encode())
        self.eq(os.listdir(self.world.w + "/vault"), ["k.txt"])

    def test_no_network(self):
        w = self.world
        os.chdir(w.w)
        with socket.socket(socket.AF_UNIX) as s, \
                socket.socket(socket.AF_UNIX) as a:
            s.bind("door.sock")
            os.chmod("door.sock", 0o777)
            s.listen()
            a.bind("\0abx-door-%d" % os.getpid())
            a.listen()
            os.chdir("/")
            out = self.py(f"""
import socket
for f, to in ((socket.AF_INET, ('127.0.0.1', {self.svc.port})),
        (socket.AF_INET, ('8.8.8.8', 53)), (socket.AF_INET6, ('::1', 1)),
        (socket.AF_UNIX, 'door.sock'), (socket.AF_UNIX,
        {a.getsockname()!r}), (socket.AF_NETLINK, (0, 0)),
        (socket.AF_PACKET, ('lo', 0)), (socket.AF_VSOCK, (2, 1))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            s = socket.socket(f, kind)
            print('socket', f)
            s.connect(to)
            print('connected', f, to)
        except OSError as e:
            if e.errno != 1: print(f, kind, e)
""")
            self.eq(out, "", "what is not EPERM")
        self.eq(self.says("ls /sys/class/net 2>/dev/null || true"), "")
        devs = self.says("cat /proc/net/dev")
        self.eq([line for line in devs.splitlines()[2:]
                 if not line.strip().startswith("lo:")], [])

    def test_B50_descriptors(self):
        self.eq(self.py("""
import fcntl
for fd in range(4096):
    try: fcntl.fcntl(fd, fcntl.F_GETFD); print(fd)
    except OSError: pass
"""), "0\n1\n2\n")
        r = self.ok(self.svc.run("python3", "-c", "import os; print([os."
                                 "readlink(f'/proc/self/fd/{i}') for i in "
                                 "(0, 1, 2)])", stdin="x")).json
        self.eq(r["stdout"].count("pipe:"), 3, r["stdout"])
        self.eq(self.says("readlink /proc/self/fd/0"), "/dev/null\n")

    def test_B50_socketpair(self):
        self.eq(self.py("""
import socket
a, b = socket.socketpair()
a.send(b'x'); print(b.recv(9))
"""), "b'x'\n")

    def test_B43_capabilities(self):
        st = dict(line.split(":\t", 1) for line in
                  self.says("cat /proc/self/status").splitlines()
                  if ":\t" in line)
        for cap in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.eq(int(st[cap], 16), 0, cap)
        self.eq((st["NoNewPrivs"], st["Seccomp"]), ("1", "2"))
        self.eq(st["Groups"].split() in ([], st["Gid"].split()[:1]), True)

    def test_namespaces(self):
        for ns in ("net", "pid", "mnt", "ipc", "uts", "user", "cgroup"):
            self.eq(self.says(f"readlink /proc/self/ns/{ns}").strip()
                    != os.readlink(f"/proc/self/ns/{ns}"), True, ns)
        r = self.sh("unshare -U true; unshare -m true; unshare -r true")
        self.eq(r["exit_code"] != 0, True)

    def test_B47_devices(self):
        self.eq(self.says("echo x >/dev/null; head -c 8 /dev/urandom | wc -c;"
                          " head -c 4 /dev/zero | wc -c; "
                          "head -c 3 /dev/random | wc -c"), "8\n4\n3\n")
        r = self.sh("echo x > /dev/full")
        self.eq(r["exit_code"] != 0, True)
        self.eq(self.sh("ls /dev/sda /dev/vda /dev/kmsg /dev/mem /dev/fuse")[
            "stdout"], "")

    def test_H16_tmp_and_proc(self):
        self.eq(self.says("echo t > /tmp/f && cat /tmp/f; echo s > "
                          "/dev/shm/g && cat /dev/shm/g; cat "
                          "/proc/self/comm"), "t\ns\ncat\n")
        self.eq(self.says("ls -A /tmp"), "", "a fresh /tmp for each")

    def test_read_only_system(self):
        for path in ("/usr/x", "/etc/x", "/bin/x", "/x", "/proc/sys/x",
                     "/var/x", "/lib/x"):
            r = self.sh(f"echo x > {path}")
            self.eq(r["exit_code"] != 0, True, path)
        r = self.sh("echo x > /proc/sys/kernel/hostname; echo 1 > "
                    "/proc/self/oom_score_adj; echo c > /proc/sysrq-trigger")
        self.eq(r["exit_code"] != 0, True)
        self.says("test -r /etc/passwd && getent passwd $(id -u)")

    def test_writing_in_the_cwd(self):
        self.eq(self.says("echo kept > made && cat made && mkdir -p n/m && "
                          "mv made n/m/ && rm -r n && echo k > stays"),
                "kept\n")
        self.eq(self.world.get("w/stays"), b"k\n")

    def test_T087_rename_across_directories(self):
        self.says("mkdir d1 d2 && echo f > d1/f && mv d1/f d2/f && "
                  "python3 -c 'import os; os.rename(\"d2/f\", \"d1/g\")' && "
                  "ln d1/g d2/h && truncate -s 1 d2/h")
        self.eq(self.world.get("w/d1/g"), b"f")

    def test_T086_outside_is_untouchable(self):
        w = self.world
        secret = w.outside + "/secret.txt"
        self.sh(f"python3 -c 'import os\n"
                f"for f in (lambda: os.truncate(\"{secret}\", 0), lambda: "
                f"os.chmod(\"{secret}\", 0o777), lambda: os.utime("
                f"\"{secret}\", (1, 1)), lambda: os.truncate(\"leak\", 0), "
                f"lambda: os.chmod(\"leak\", 0o777)):\n"
                f" try: f()\n except OSError: pass'")
        self.eq(w.get("outside/secret.txt"), MARKER.encode())
        self.eq(os.stat(secret).st_mtime > 1, True)
        self.eq(os.stat(secret).st_mode & 0o777, 0o644)

    def test_T088_unix_sockets(self):
        w = self.world
        path = ("/run" if ROOT else w.dir) + f"/abx-t088-{os.getpid()}.sock"
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
            self.addCleanup(os.unlink, path)
            os.chmod(path, 0o777)
            s.listen()
            r = self.sh(f"python3 -c 'import socket; socket.socket("
                        f"socket.AF_UNIX).connect(\"{path}\")'; ls {path}")
            self.eq(r["exit_code"] != 0 and not r["stdout"], True, r)

    def test_T084_threads_and_names(self):
        self.eq(self.py("""
import threading, socket, subprocess
t = [threading.Thread(target=print, args=(i,)) for i in range(4)]
[x.start() for x in t]; [x.join() for x in t]
print(socket.getaddrinfo('127.0.0.1', 80)[0][4])
print(socket.getaddrinfo('localhost', 80)[0][4][1])
print(subprocess.run(['true']).returncode)
""").split("\n")[4:], ["('127.0.0.1', 80)", "80", "0", ""])

    def test_protected_names(self):
        w = self.world
        r = self.sh("mv .git .git.x && mkdir .git && mkdir .git/hooks && "
                    "echo evil > .git/hooks/pre-commit; "
                    "echo evil > .git/hooks/new; echo evil >> .git/config; "
                    "rm -rf .git; ln -sf x .git/hooks/l")
        evil = subprocess.run(["grep", "-rl", "evil", w.w + "/.git/hooks",
                               w.w + "/.git/config"],
                              capture_output=True, text=True).stdout
        self.eq((evil, os.listdir(w.w + "/.git/hooks")), ("", ["sample"]), r)
        self.eq(w.get("w/.git/hooks/sample"), b"x")

    def test_protected_below_git(self):
        """What git would obey and is not there yet: refused or reported."""
        r = self.sh("echo evil > .git/config.worktree")
        if os.path.exists(self.world.w + "/.git/config.worktree"):
            self.eq("config.worktree" in json.dumps(
                r["sandbox"].get("appeared")), True,
                f"reported, got {r['sandbox']}")

    def test_B41_a_protected_name_appears(self):
        r = self.sh("mkdir sub/.keep .claude && echo x > .claude/settings")
        if r["exit_code"] == 0:
            self.eq(".claude" in json.dumps(r["sandbox"].get("appeared")),
                    True, f"reported, got {r['sandbox']}")
        a = self.sh("true")
        self.eq(a["exit_code"], 0)

    def test_sandbox_is_described(self):
        s = self.sh("true")["sandbox"]
        self.eq(isinstance(s, dict), True, s)
        for layer in ("namespaces", "seccomp", "landlock"):
            self.eq(layer in json.dumps(s), True, s)


PROBE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void
one(const char *name, long nr, long a, long b, long c, long d, long e)
{
	int st;
	pid_t pid;

	fflush(stdout);
	if ((pid = fork()) == 0) {
		errno = 0;
		long r = syscall(nr, a, b, c, d, e);
		int err = errno;
		printf("%s %s\n", name, r != -1 ? "done" :
		    err == EPERM ? "EPERM" : err == ENOSYS ? "ENOSYS" :
		    strerror(err));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &st, 0);
	if (WIFSIGNALED(st))
		printf("%s killed %d\n", name, WTERMSIG(st));
}
#define S(n, ...) one(#n, SYS_##n, __VA_ARGS__)
#define N(n, nr, ...) one(#n, nr, __VA_ARGS__)
#define X(n, ...) one("x32:" #n, SYS_##n | 0x40000000, __VA_ARGS__)

int
main(void)
{
	static char buf[4096];
	long p = (long)buf;
	long f = (long)"f-probe", dir = (long)"d-probe", cwd = AT_FDCWD;
	int sv[2], fd;

	S(mount, p, p, p, 0, 0); S(umount2, p, 0, 0, 0, 0);
	S(pivot_root, p, p, 0, 0, 0); S(chroot, (long)".", 0, 0, 0, 0);
	S(kexec_load, 0, 0, 0, 0, 0); S(init_module, p, 0, p, 0, 0);
	S(finit_module, -1, p, 0, 0, 0); S(delete_module, p, 0, 0, 0, 0);
	S(bpf, 0, p, 64, 0, 0); S(perf_event_open, p, 0, -1, -1, 0);
	S(ptrace, 0, 0, 0, 0, 0); S(ptrace, 16, getppid(), 0, 0, 0);
	S(process_vm_readv, getpid(), p, 1, p, 1);
	S(process_vm_writev, getpid(), p, 1, p, 1);
	S(keyctl, 0, -3, 0, 0, 0); S(add_key, p, p, p, 1, -3);
	S(request_key, p, p, p, -3, 0); S(userfaultfd, 0, 0, 0, 0, 0);
	S(mknod, f, S_IFREG | 0644, 0, 0, 0); S(mknod, f, S_IFIFO, 0, 0, 0);
	S(mknodat, cwd, f, S_IFCHR, 0x103, 0); S(swapon, p, 0, 0, 0, 0);
	S(swapoff, p, 0, 0, 0, 0); S(syslog, 3, p, 4096, 0, 0);
	S(reboot, 0, 0, 0, 0, 0); S(acct, 0, 0, 0, 0, 0);
	S(quotactl, 0, p, 0, p, 0); S(settimeofday, p, 0, 0, 0, 0);
	S(clock_settime, 0, p, 0, 0, 0); S(adjtimex, p, 0, 0, 0, 0);
	S(clock_adjtime, 0, p, 0, 0, 0); S(iopl, 3, 0, 0, 0, 0);
	S(ioperm, 0, 1, 1, 0, 0); S(setns, 0, 0, 0, 0, 0);
	S(open_by_handle_at, 0, p, 0, 0, 0);
	S(name_to_handle_at, cwd, (long)".", p, p, 0);
	S(kcmp, getpid(), getpid(), 0, 0, 0); S(fanotify_init, 0, 0, 0, 0, 0);
	N(open_tree, 428, cwd, (long)".", 1, 0, 0);
	N(move_mount, 429, cwd, p, cwd, p, 0);
	N(fsopen, 430, (long)"tmpfs", 0, 0, 0, 0);
	N(fsconfig, 431, -1, 0, p, p, 0); N(fsmount, 432, -1, 0, 0, 0, 0);
	N(fspick, 433, cwd, p, 0, 0, 0);
	N(pidfd_getfd, 438, -1, 0, 0, 0, 0);
	N(process_madvise, 440, -1, p, 0, 0, 0);
	N(mount_setattr, 442, cwd, p, 0, p, 32);
	N(quotactl_fd, 443, -1, 0, 0, 0, 0);
	N(memfd_secret, 447, 0, 0, 0, 0, 0);
	N(io_uring_setup, 425, 8, p, 0, 0, 0);
	N(io_uring_enter, 426, -1, 0, 0, 0, 0);
	N(io_uring_register, 427, -1, 0, p, 0, 0);
	S(unshare, CLONE_NEWUSER, 0, 0, 0, 0);
	S(unshare, CLONE_NEWUSER | CLONE_NEWNS, 0, 0, 0, 0);
	S(clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	S(clone, CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD, 0, 0, 0, 0);
	S(personality, 0x0040000, 0, 0, 0, 0);
	S(personality, 8, 0, 0, 0, 0);
	S(ioctl, 0, TIOCSTI, p, 0, 0);
	S(ioctl, 0, 0x1234567800000000 | TIOCSTI, p, 0, 0);
	S(ioctl, 0, 0x541C, p, 0, 0);
	S(socket, AF_UNIX, SOCK_STREAM, 0, 0, 0);
	S(socket, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0);
	S(socket, AF_INET, SOCK_STREAM, 0, 0, 0);
	S(socket, AF_INET6, SOCK_STREAM, 0, 0, 0);
	S(socket, AF_NETLINK, SOCK_RAW, 0, 0, 0);
	S(socket, AF_PACKET, SOCK_RAW, 0, 0, 0);
	S(socket, 38, SOCK_SEQPACKET, 0, 0, 0);
	S(socket, 44, SOCK_RAW, 0, 0, 0);
	S(socket, 0x100000001, SOCK_STREAM, 0, 0, 0);
	S(socketpair, AF_INET, SOCK_STREAM, 0, (long)sv, 0);
	close(open("f-probe", O_CREAT | O_RDWR, 0600));
	S(chmod, f, 04755, 0, 0, 0); S(chmod, f, 02755, 0, 0, 0);
	fd = open("f-probe", O_RDWR);
	S(fchmod, fd, 04755, 0, 0, 0); S(fchmod, fd, 06755, 0, 0, 0);
	S(fchmodat, cwd, f, 04755, 0, 0);
	N(fchmodat2, 452, cwd, f, 04755, 0, 0);
	S(mkdir, dir, 02755, 0, 0, 0); S(mkdirat, cwd, dir, 04755, 0, 0);
	S(creat, (long)"c-probe", 04755, 0, 0, 0);
	S(open, (long)"c-probe", O_CREAT | O_RDWR, 04755, 0, 0);
	S(openat, cwd, (long)"c-probe", O_CREAT | O_RDWR, 04755, 0);
	S(openat, cwd, (long)".", O_TMPFILE | O_RDWR, 04755, 0);
	N(clone3, 435, p, 88, 0, 0, 0);
	N(openat2, 437, cwd, (long)".", p, 24, 0);
	N(newer, 600, 0, 0, 0, 0, 0); N(much_newer, 100000, 0, 0, 0, 0, 0);
	printf("-\n");
	S(personality, 0xffffffff, 0, 0, 0, 0);
	S(personality, 0, 0, 0, 0, 0);
	S(chmod, f, 0755, 0, 0, 0); S(fchmod, fd, 0700, 0, 0, 0);
	S(openat, cwd, (long)".", O_TMPFILE | O_RDWR, 0600, 0);
	S(openat, cwd, (long)"c-probe", O_CREAT | O_RDWR, 0644, 0);
	S(mkdir, dir, 0755, 0, 0, 0);
	S(socketpair, AF_UNIX, SOCK_STREAM, 0, (long)sv, 0);
	S(unshare, CLONE_FILES, 0, 0, 0, 0);
	printf("-\n");
	X(mount, p, p, p, 0, 0); X(getpid, 0, 0, 0, 0, 0);
	X(write, 1, p, 0, 0, 0);
	N(x32:io_uring_setup, 425 | 0x40000000, 8, p, 0, 0, 0);
	N(x32:ptrace, 521 | 0x40000000, 0, 0, 0, 0, 0);
	return 0;
}
"""


class Syscalls(Exec):
    @unittest.skipUnless(cc(), "needs a C compiler")
    def test_T093_syscall_list(self):
        """T084, T085, B44, B45 as well."""
        if os.uname().machine != "x86_64":
            self.skipTest("the numbers are those of x86_64")
        src = self.world.put("outside/probe.c", PROBE)
        exe = self.world.w + "/probe"
        p = subprocess.run([cc(), "-w", "-o", exe, src],
                           capture_output=True, text=True)
        self.eq(p.returncode, 0, p.stderr)
        r = self.sh("./probe", timeout=15)
        self.eq(r["exit_code"], 0, r)
        refused, fine, x32 = r["stdout"].split("-\n")
        odd = ("clone3", "openat2", "newer", "much_newer")
        for line in refused.splitlines():
            name, _, got = line.partition(" ")
            want = ("ENOSYS",) if name in odd else ("EPERM",)
            if name == "fchmodat2":  # the kernel may not know it
                want = ("EPERM", "ENOSYS")
            if name == "umount2":
                want = ("EPERM",)
            with self.subTest(name):
                self.among(got, want, name)
        self.eq(len(refused.splitlines()) > 80, True, refused)
        for line in fine.splitlines():
            self.eq(line.split(" ", 1)[1], "done", line)
        for line in x32.splitlines():
            self.eq(line.split(" ", 1)[1] in ("killed 31", "EPERM",
                                              "ENOSYS"), True, line)
        self.eq(os.stat(self.world.w + "/f-probe").st_mode & 0o6000, 0)
        self.eq(any(os.stat(os.path.join(self.world.w, n)).st_mode & 0o6000
                    for n in os.listdir(self.world.w)
                    if not os.path.islink(self.world.w + "/" + n)), False)

    def test_T083_io_uring(self):
        r = self.sh("exec python3 -c 'import ctypes as c, errno\n"
                    "libc = c.CDLL(None, use_errno=True)\n"
                    "for n in 425, 426, 427:\n"
                    "    print(libc.syscall(n, 8, c.create_string_buffer(120),"
                    " 0, 0, 0, 0), errno.errorcode.get(c.get_errno()))'")
        self.eq(r["stdout"], "-1 EPERM\n" * 3, r)

    @unittest.skipUnless(cc(), "needs a C compiler")
    def test_T082_compat(self):
        """32-bit calls by int 0x80 end the program."""
        if os.uname().machine != "x86_64":
            self.skipTest("needs x86_64")
        src = self.world.put("outside/i80.c", """
#include <stdio.h>
int main(void) {
	long r = 20; /* getpid */
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory");
	printf("%ld\\n", r > 0 ? 1L : r);
	return 0;
}""")
        p = subprocess.run([cc(), "-w", "-o", self.world.w + "/i80", src],
                           capture_output=True, text=True)
        self.eq(p.returncode, 0, p.stderr)
        r = self.sh("exec ./i80")
        self.eq((r["signal"], r["stdout"]) in (("SYS", ""), ("SEGV", "")),
                True, r)


def comms(pid):
    return [comm(p) for p in family(pid)]


class NoTraces(Exec):
    def state(self):
        kids = self.svc.kids()
        # pathd keeps the workers of a busy time for a while
        until(20, lambda: comms(self.svc.proc.pid).count("abx-pathd") <= 3)
        s = {"processes": len(family(self.svc.proc.pid)),
             "mounts of the host": mounts(os.getpid()),
             "mounts of execd": mounts(kids["abx-execd"])}
        if ROOT:
            s.update({f"descriptors of {n}": len(fds(p))
                      for n, p in kids.items()})
            s["descriptors of abxd"] = len(fds(self.svc.proc.pid))
        return s

    @timeout(180)
    def test_T078_nothing_is_left(self):
        """A hundred runs, eight at once, of all kinds."""
        def some(n):
            wrong = []

            def one(i):
                for j in range(n // 8 + 1):
                    k = (i + j) % 5
                    if k == 0:
                        ok = self.sh("exit 3")["exit_code"] == 3
                    elif k == 1:
                        ok = self.sh("kill -9 $$")["signal"] == "KILL"
                    elif k == 2:
                        ok = self.sh(f"(sleep 71.{OWN} &) ; echo x")[
                            "stdout"] == "x\n"
                    elif k == 3:
                        ok = self.svc.run("cat", stdin="y").json[
                            "stdout"] == "y"
                    else:
                        ok = self.svc.run("uname", "-a").status == 403
                    if not ok:
                        wrong.append((i, j, k))
            threads = [threading.Thread(target=one, args=(i,))
                       for i in range(8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            self.eq(wrong, [], "runs that went wrong")
        some(8)
        time.sleep(0.5)
        before = self.state()
        some(500 if LONG else 100)
        until(10, lambda: self.state() == before)
        self.eq(self.state(), before, "what was left behind")
        zombies = [p for p in family(self.svc.proc.pid)
                   if open(f"/proc/{p}/stat").read().rpartition(")")[2]
                   .split()[0] == "Z"]
        self.eq(zombies, [])
        self.eq(marked(f"sleep\x0071.{OWN}"), [])

    def test_many_at_once(self):
        done = []

        def one():
            r = self.svc.run("sh", "-c", "sleep 0.3; echo x")
            done.append((r.status, r.code))
        threads = [threading.Thread(target=one) for _ in range(30)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.eq(set(done) <= {(200, None), (429, "limit.concurrency")},
                True, set(done))
        self.eq(done.count((200, None)) >= 8, True, done)


class Scopes(Case):
    def test_readonly_cwd(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["sh -c ..."],
            "cwd": {"roots": [w.w], "readonly": True}}}],
            "allow_lint_errors": True}, world=w)
        r = self.ok(svc.run("sh", "-c", "cat a.txt; echo x > new; echo x > "
                            "a.txt; rm -f a.txt; chmod 777 a.txt; "
                            "touch sub/x")).json
        self.eq(r["stdout"], "hello\n")
        self.eq((w.get("w/a.txt"), os.path.exists(w.w + "/new"),
                 os.listdir(w.w + "/sub")), (b"hello\n", False, ["b.txt"]))

    @timeout(90)
    def test_a_cwd_that_goes_while_the_sandbox_is_built(self):
        """Somebody's doing, and said so: nothing is wrong with sandboxes."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["pwd"], "cwd": w.w}}]}, world=w)
        done, seen = threading.Event(), set()

        def swap(i=0):
            while not done.is_set():
                w.put("w/d/x")
                os.chmod(w / "w/d", 0o777)
                time.sleep(random.uniform(0, 0.03))
                os.unlink(w / "w/d/x")
                (os.rename, os.rmdir)[i % 2](*(w / f"w/{n}" for n in (
                    "d", f"gone{i}")[:2 - i % 2]))
                i += 1
        t = threading.Thread(target=swap)
        t.start()
        try:
            end = time.monotonic() + 20 * SLOW
            while ("policy.path_changed" not in seen or len(seen) < 40) and \
                    time.monotonic() < end:
                r = svc.run("pwd", cwd="d")
                self.among((r.status, r.code), (
                    (200, None), (404, "fs.not_found"),
                    (403, "policy.path_changed")))
                seen |= {r.code, len(seen)}
        finally:
            done.set()
            t.join()
        self.eq("policy.path_changed" in seen, True)
        self.ok(svc.run("pwd"))

    def test_no_cwd(self):
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["sh -c ...", "pwd"]}}], "allow_lint_errors": True})
        self.eq(self.out(svc.run("pwd")), "/\n")
        self.refused(svc.run("pwd", cwd="/tmp"), 403,
                     "policy.scope_required")
        r = self.ok(svc.run("sh", "-c", "echo x > /f; echo y > /tmp/f; "
                            "cat /tmp/f")).json
        self.eq(r["stdout"], "y\n")

    def test_strict_may_not_start_others(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["python3 ..."], "cwd": w.w, "sandbox": "strict"}}],
            "allow_lint_errors": True}, world=w)
        self.eq(self.out(svc.run("python3", "-c", """
import os, threading
for f in (os.fork,):
    try: f(); print('forked')
    except OSError as e: print(e.errno)
t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()
""")), "1\nthread\n")

    def test_shell(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["true"], "deny": ["rm ..."], "shell": True,
            "cwd": w.w}}], "allow_lint_errors": True}, world=w)
        r = svc.rpc("commands.run", {"command": "echo a && echo $((1+1))",
                                     "shell": True})
        self.eq(self.out(r), "a\n2\n")
        self.refused(svc.rpc("commands.run", {"command": "echo a"}), 403,
                     "policy.command_not_allowed")
        self.refused(svc.rpc("commands.run", {
            "argv": ["echo"], "shell": True}), 400, "args.invalid")
        self.refused(svc.rpc("commands.run", {
            "command": "rm -f x", "shell": True}), 403,
            "policy.command_denied")

    def test_disabled(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["true"], "cwd": w.w}}], "sandbox": {
                "workspace_root": w / "work", "enabled": False}}, world=w)
        self.refused(svc.run("true"), 503, "sandbox.unavailable")

    def test_protected_names_are_those_configured(self):
        """sandbox.protect is in force, from the first file to a reload."""
        w = World()
        self.addCleanup(w.remove)
        w.put("w/.own/x", "old\n")
        w.put("w/.claude/x", "old\n")
        w.own()
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["sh -c ..."], "cwd": w.w}}], "sandbox": {
                "workspace_root": w / "work", "protect": [".own"]},
            "allow_lint_errors": True}, world=w)
        self.ok(svc.run("sh", "-c", "echo new > .own/x; mv .own .gone; "
                        "echo new > .claude/x"))
        self.eq((w.get("w/.own/x"), w.get("w/.claude/x")),
                (b"old\n", b"new\n"))

    @needs_root
    def test_T089_no_sandbox_available(self):
        """Without bubblewrap nothing runs unconfined."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start(
            {"rules": [{"allow": "commands.run", "commands": {
                "allow": ["touch ran"], "cwd": w.w}},
                {"allow": "files.stat", "paths": w.w}],
             "allow_lint_errors": True}, world=w,
            before=("unshare", "-m", "--propagation", "private", "sh", "-c",
                    'mount --bind /dev/null "$(command -v bwrap)" && '
                    'exec "$@"', "sh"))
        self.refused(svc.run("touch", "ran"), 503, "sandbox.unavailable")
        self.eq(os.path.exists(w.w + "/ran"), False)
        self.ok(svc.stat("a.txt"))
        self.eq("bwrap" in svc.logged() or "sandbox" in svc.logged(), True,
                "the log names it")
