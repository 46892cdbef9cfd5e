# SPDX-License-Identifier: ISC
"""The command policy in the live service and in abxctl.  What it says of which
command is the unit test's to hold down (regress/unit/filter.c)."""
import json
import resource
import subprocess
import unittest

from abxtest import ALICE, ASAN, BUILD, TOKENS, Case, timeout

MIB = 1 << 20


def abxctl(svc, *argv, **kw):
    return subprocess.run([f"{BUILD}/abxctl", "-f", svc.file, *argv],
                          env={**svc.env, **TOKENS}, capture_output=True,
                          timeout=120, **kw)


class Filter(Case):
    policy = {}

    @classmethod
    def conf(cls, w):
        conf = {"rules": [
            {"allow": ["commands.run", "process.start"],
             "commands": {"allow": ["sh ...", "bash ...", "echo ...", "cat",
                                    "printf ...", "rm ...", "python3 ..."],
                          "cwd": w.w, "shell": True}},
            {"allow": ["core.check", "core.capabilities"]}],
            "allow_lint_errors": True}
        if cls.policy:
            conf["command_policy"] = cls.policy
        return conf

    def sh(self, script, **kw):
        return self.svc.run("sh", "-c", script, **kw)

    def blocked(self, reply, *rules):
        self.refused(reply, 403, "policy.command_blocked")
        for rule in rules:
            self.assertIn(rule, reply.json["details"]["rules"])
        r = self.svc.audit_of(reply)
        self.eq(r["rules"], reply.json["details"]["rules"], "audit")
        self.eq((r["allowed"], r["code"]), (False, "policy.command_blocked"))
        return reply


class Defaults(Filter):
    @classmethod
    def fill(cls, w):
        w.put("w/keep.txt", "keep")
        w.put("w/notes.txt", "never rm -rf / here\n")

    def test_T104_quote_tricks(self):
        for script in ("r''m -rf /", "r\\m -rf /", "r\u200bm -rf /"):
            self.blocked(self.sh(script), "rm_rf_root")

    def test_T105_ifs(self):
        for script in ("rm${IFS}-rf${IFS}/", "rm$IFS-rf$IFS/",
                       "rm\t-rf\t/", "rm \\\n-rf /"):
            self.blocked(self.sh(script), "rm_rf_root")

    def test_T106_rm_shapes(self):
        for script in ("/bin/rm -fr /", "rm -r -f /",
                       "rm --recursive --force /"):
            self.blocked(self.sh(script), "rm_rf_root")
        self.blocked(self.sh("rm --no-preserve-root -rf /"),
                     "rm_no_preserve_root")
        self.blocked(self.svc.run("rm", "-rf", "/"), "rm_rf_root")

    def test_T107_false_positives(self):
        for script in ("rm -rf build/", 'grep -n "rm -rf" notes.txt',
                       "WORKSPACE=/tmp/; cd ${WORKSPACE}"):
            self.ok(self.sh(script))
        self.ok(self.svc.run("printf", "%s", "rm -rf /"))

    def test_T108_stdin_and_pipes(self):
        self.blocked(self.sh("true && rm -rf / | cat"), "rm_rf_root")
        self.blocked(self.svc.run("bash", "-s", stdin="rm -rf /"),
                     "rm_rf_root")
        self.blocked(self.sh("echo cm0gLXJmIC8= | base64 -d | sh"),
                     "rm_rf_root")
        self.blocked(self.svc.run("python3", "-",
                                  stdin="import os; os.system('rm -rf /')"),
                     "rm_rf_root")
        self.ok(self.svc.run("cat", stdin="rm -rf /"))

    def test_shell_line(self):
        line = self.svc.rpc("commands.run", {
            "command": "echo a; rm -rf /", "shell": True})
        self.blocked(line, "rm_rf_root")
        self.ok(self.svc.rpc("commands.run", {
            "command": "echo 'rm -rf /'", "shell": True}))

    def test_processes(self):
        self.blocked(self.svc.rpc("process.start", {
            "argv": ["sh", "-c", "rm -rf /"]}), "rm_rf_root")
        self.blocked(self.svc.rpc("process.start", {
            "argv": ["bash"], "stdin": "rm -rf /"}), "rm_rf_root")

    def test_nothing_runs(self):
        for reply in (self.sh("rm -rf keep.txt; rm -rf /"),
                      self.sh("rm -rf keep.txt; dd if=/dev/zero of=/dev/sda"),
                      self.svc.run("sh", stdin="rm -rf keep.txt; rm -rf /")):
            self.refused(reply, 403, "policy.command_blocked")
        self.eq(self.world.get("w/keep.txt"), b"keep")

    def test_warning_is_audited(self):
        """B40"""
        for script, rule in (("echo c | sudo -S true", "sudo_privilege_stdin"),
                             ("rm -rf ~/x /tmp/y", "rm_rf_system_path")):
            reply = self.ok(self.sh(script))
            self.assertNotIn("rules", reply.json)
            r = self.svc.audit_of(reply)
            self.eq((r["allowed"], r["rules"]), (True, [rule]))
        self.assertNotIn("rules", self.svc.audit_of(self.ok(self.sh("true"))))

    def test_no_text_in_audit_or_log(self):
        # the words could be secrets
        self.sh("dd if=secret-word of=/dev/sda")
        self.blocked(self.sh("tool --token=secret-word; rm -rf /"))
        text = json.dumps(self.svc.audits()) + self.svc.logged()
        for word in ("secret-word", "of=/dev/sda"):
            self.assertNotIn(word, text)

    def test_everybody_learns_the_names(self):
        r = self.sh("rm -rf /", token=ALICE)
        self.blocked(r, "rm_rf_root")
        self.eq(sorted(r.json["details"]), ["rules"])

    def test_check_says_the_same(self):
        args = {"argv": ["sh", "-c", "rm -rf /"]}
        r = self.ok(self.svc.rpc("core.check", {
            "op": "commands.run", "args": args})).json
        self.eq((r["allowed"], r["code"]), (False, "policy.command_blocked"))
        self.assertIn("rm_rf_root", r["rules"])
        r = self.ok(self.svc.rpc("core.check", {
            "op": "commands.run", "args": {"argv": ["sh", "-c", "true"]}}))
        self.eq(r.json["allowed"], True)

    def test_explain(self):
        out = abxctl(self.svc, "explain", "--op", "commands.run",
                     "--principal", "root", "--arg", "argv=rm",
                     "--arg", "argv=-rf", "--arg", "argv=/", text=True)
        self.eq(out.returncode, 1, out.stdout + out.stderr)
        self.assertIn("policy.command_blocked", out.stdout)
        self.assertIn("rm_rf_root", out.stdout)

    def test_long_standard_input(self):
        """B35"""
        script = "echo padding\n" * 60000
        self.blocked(self.svc.run("bash", stdin=script + "rm -rf /\n"),
                     "rm_rf_root")
        self.blocked(self.svc.run("bash", stdin="rm -rf /\n" + script),
                     "rm_rf_root")
        half = len(script) // 2
        self.blocked(self.svc.run("bash", stdin=script[:half] + "\nrm -rf /\n"
                                  + script[half:]), "rm_rf_root")

    def test_long_arguments(self):
        """H7"""
        words = ["x" * 1000] * 600
        self.blocked(self.svc.run("sh", "-c", "rm -rf /", *words),
                     "rm_rf_root")
        self.blocked(self.svc.run("rm", "-rf", *words, "/"), "rm_rf_root")

    def test_floor_bombs_and_devices(self):
        for script, rule in ((":(){ :|:& };:", "fork_bomb"),
                             ("echo x > /dev/sda", "redirect_to_block_device"),
                             ("mkfs.ext4 /dev/sda1", "mkfs_device"),
                             ("wipefs -a /dev/sda", "device_wipe_tools")):
            self.blocked(self.sh(script), rule)


class Off(Filter):
    policy = {"enforcement": "off",
              "custom_rules": [{"name": "mine", "regex": "forbidden"}]}

    def test_floor_stays(self):
        """B38"""
        self.blocked(self.sh("rm -rf /"), "rm_rf_root")
        r = self.svc.audit_of(self.ok(self.sh("echo forbidden; rm -rf ~/x")))
        self.assertNotIn("rules", r)


class Disabled(Off):
    policy = {"enabled": False,
              "custom_rules": [{"name": "mine", "regex": "forbidden"}]}


class Warn(Filter):
    policy = {"enforcement": "warn",
              "custom_rules": [{"name": "mine", "regex": "forbidden"}]}

    def test_blocks_are_warnings(self):
        self.blocked(self.sh("rm -rf /"), "rm_rf_root")
        reply = self.ok(self.sh("echo forbidden"))
        self.eq(self.svc.audit_of(reply)["rules"], ["mine"])


class Custom(Filter):
    policy = {"stdin_max": "1KiB", "custom_rules": [
        {"name": "mine", "regex": "secret_tool", "description": "Not here."},
        {"name": "slow", "regex": "z(a+)+$", "action": "warn"}]}

    def test_T109_operator_pattern(self):
        """B39"""
        for script in ("secret_tool", "secret_to\\ol", "secret_to'o'l",
                       "echo; SECRET_TOOL"):
            self.blocked(self.sh(script), "mine")
        self.blocked(self.svc.run("bash", stdin="secret_to''ol"), "mine")
        self.ok(self.svc.run("cat", stdin="secret_tool"))
        r = self.sh("secret_tool")
        self.assertIn("Not here.", json.dumps(r.json))

    def test_T109_slow_pattern(self):
        word = "z" + "a" * 100000
        r = self.ok(self.svc.run("echo", word + "!"))
        self.eq(self.svc.audit_of(r)["rules"], ["slow"], "a limit is a match")
        self.under(r.json["duration_ms"] if "duration_ms" in r.json else 0,
                   5000)
        self.ok(self.svc.rpc("core.capabilities"))

    def test_stdin_max(self):
        self.ok(self.svc.run("bash", stdin="#" * 1024))
        self.refused(self.svc.run("bash", stdin="#" * 1025), 400,
                     "args.too_large")
        self.ok(self.svc.run("cat", stdin="#" * 1025))


class Broken(Filter):
    policy = {"use_default_rules": False, "custom_rules": [
        {"name": "good", "regex": "forbidden"},
        {"name": "bad", "regex": "(["}]}

    def test_T109_bad_pattern(self):
        """B38"""
        self.blocked(self.sh("rm -rf /"), "rm_rf_root")
        self.ok(self.sh("echo forbidden"))
        r = self.svc.audit_of(self.ok(self.sh("rm -rf ~/x")))
        self.eq(r["rules"], ["rm_rf_system_path"], "the built-in rules stay")
        log = self.svc.logged()
        self.assertIn("config.command_rule_invalid", log)
        self.assertIn("bad", log)

    def test_check_config(self):
        out = abxctl(self.svc, "check-config", text=True)
        self.assertIn("config.command_rule_invalid: bad", out.stdout)


class Ctl(Filter):
    policy = {"custom_rules": [{"name": "mine", "regex": "forbidden",
                                "description": "Not here."}]}

    def test_verb(self):
        for argv, stdin, status, want in (
                (["--", "rm", "-rf", "/"], "", 1, "blocked: rm_rf_root: "),
                (["echo; rm -rf /"], "", 1, "blocked: rm_rf_root: "),
                ([], "echo\nrm -rf /\n", 1, "blocked: rm_rf_root: "),
                (["echo", "forbidden"], "", 1, "blocked: mine: Not here."),
                (["rm", "-rf", "/etc"], "", 0, "warned: rm_rf_system_path"),
                (["echo", "rm -rf /"], "", 0, "nothing matches")):
            out = abxctl(self.svc, "filter", *argv, input=stdin, text=True)
            self.eq(out.returncode, status, f"{argv} {out}")
            self.assertIn(want, out.stdout)
        out = abxctl(self.svc, "--json", "filter", "rm -rf /", text=True)
        got = json.loads(out.stdout)
        self.eq((got["allowed"], got["blocked"][0]["name"]),
                (False, "rm_rf_root"))

    @timeout(180)
    @unittest.skipIf(ASAN, "a figure of the hardened build")
    def test_16_MiB_within_a_second(self):
        """Of processor time; of what a script can look like."""
        shapes = {
            "lines": "cp -r src/main.c build/obj-$i.o && echo \"b $i\" # d\n",
            "short": "a;", "words": "a b c d e f g\n", "brackets": "()",
            "quotes": "\"a\" 'b' $'c' \\d $e ${f:-g} $(h) `i`;\n",
            "open": "$(", "eval": "eval \"eval 'a b'\";", "nl": "\n",
            "here": "cat <<E\n$(a) `b`\nE\n", "pipes": "echo a|base64 -d|",
            "vars": "a1=b;$a1;$b2;", "braces": "{a,b}{c,d};",
            "paths": "rm -r /a/../b/./c;", "python": "python3 -c 'rm -r x';",
            "one word": "a", "one quoted word": "'", "one command": "a ",
            "escapes": "\\a", "one line of code": "python3 -c '",
            "nested quotes": "sh -c \"sh -c 'a \\\"b\\\"'\";",
            "many pipes": "a|", "and-ors": "a&&b||", "ticks": "`a \\`b\\``;",
            "open quote": "\"$(a '", "open here": "cat <<E\n$(",
            "never ends": "sh <<E\n", "feeds": "sh <<E\na;\nE",
            "heres": "a <<A <<B\nx\nA\ny\nB\n", "functions": "f(){ f|g& };",
            "cases": "case a in a) b;; esac;", "substs": "a $(b $(c $(d)));",
            "echoes": "echo 'a\\b' '\\n'|sh;", "zeros": "\0",
            "bytes": "\udcff\udcfe", "invisible": "\u200b", "redirs": ">a <b ",
        }
        for name, unit in shapes.items():
            unit = unit.encode(errors="surrogateescape")
            script = (unit * (16 * MIB // len(unit) + 1))[:16 * MIB]
            took = self.seconds(script)
            if took >= 1.0:  # the machine is not ours alone
                took = min(self.seconds(script) for _ in range(3))
            self.under(took, 1.0, name)
        # B36: nor does memory grow with what a script makes
        self.under(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
                   128 << 10, "KiB of memory")

    def seconds(self, script):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out = abxctl(self.svc, "filter", input=script)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.among(out.returncode, (0, 1), out.stderr)
        return after.ru_utime - before.ru_utime


if __name__ == "__main__":
    unittest.main()
