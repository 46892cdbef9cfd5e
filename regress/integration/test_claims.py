# SPDX-License-Identifier: ISC
"""What the manuals promise, held against the programs: every key of
server.json(5) with its type, range and default; every code; every option.
The manuals are read as they lie in the tree."""
import grp
import hashlib
import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from abxtest import (ADMIN, ALICE, AUTH, BASE, BOB, BUILD, LONG, ROOT, SLOW,
                     Case, Conn, Service, World, comm, events, family,
                     free_port, needs_root, proc_stat, still_there, until)

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
SIZES = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
         "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
         "PiB": 2**50}
TIMES = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "": 1000,
         " days": 24 * 3600000}


def manual(name):
    with open(f"{TOP}/man/{name}") as f:
        return f.read()


def amount(text, units):
    n, unit = re.fullmatch(r"([0-9]+)([A-Za-z ]*)", text).groups()
    return int(n) * units[unit]


class Key:
    """One key of the manual: where it stands, its type, range, default."""

    def __init__(self, path, spec):
        self.path = path
        spec = spec.replace("\\(dq", '"').replace("\\&", "")
        kind, _, default = spec.partition("; ")
        self.default = default.removeprefix("default ") or None
        kind = kind.replace("at most", "0 to")
        m = re.fullmatch(r"(?:(size|duration), )?([0-9]+[A-Za-z]*) "
                         r"(?:to ([0-9]+[A-Za-z]*(?: days)?)|or more)", kind)
        self.lo = self.hi = None
        if m:
            self.kind = m[1] or "integer"
            units = {"size": SIZES, "duration": TIMES}.get(
                self.kind, {"": 1})
            if m[3]:
                self.hi = amount(m[3], units)
            lo = m[2]
            # "0 to 366 days"
            if self.kind == "duration" and lo.isdigit() and m[3]:
                lo += re.sub("[0-9]", "", m[3])
            self.lo = amount(lo, units)
        else:
            self.kind = kind
        if self.kind == "size" and self.lo is None:
            self.lo = 1
        if self.kind == "size" and self.hi is None:
            self.hi = SIZES["PiB"]
        if self.kind == "duration" and self.lo is None:
            self.lo, self.hi = 1, 365 * TIMES[" days"]

    def __repr__(self):
        return f"{'.'.join(self.path)} ({self.kind}, {self.lo} to {self.hi};" \
               f" {self.default})"


def keys():
    """Every key of the manual that says its type."""
    found, section, depth, above = [], None, 0, {}
    for line in manual("server.json.5").split("\n"):
        if line.startswith((".Sh ", ".Ss ")):
            section, depth = line[4:], 0
        elif line.startswith(".Bl "):
            depth += 1
        elif line.startswith(".El"):
            depth -= 1
        elif line.startswith(".It Ic "):
            text = line[7:]
            names = re.split(r" No ", text)[0]
            for part in re.split(r"\) , Ic ", text):
                names, _, spec = part.partition(" No (")
                for name in names.split(" , "):
                    name = name.removeprefix("Ic ")
                    path = [above[d] for d in range(1, depth)] + [name]
                    if spec:
                        found.append((section, Key(path, spec.rstrip(")"))))
                    above[depth] = name
    return found


def listed(section):
    return [k for s, k in keys() if s == section]


WRONG = {"integer": '"1"', "size": '"1 MB"', "duration": '"1 s"',
         "true or false": '"true"', "mode": "27", "object": "1",
         "rate": '"1/day"', "directory": '"relative"'}


class Keys(unittest.TestCase):
    """server.json(5), KEYS and the scopes, key by key."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="abx-claims-", dir=BASE)
        self.addCleanup(shutil.rmtree, self.dir)
        os.mkdir(f"{self.dir}/root")
        os.mkdir(f"{self.dir}/conf")
        self.file = f"{self.dir}/conf/server.json"

    def config(self, place, path, raw):
        """The text of a configuration with one value, and where that is."""
        c = {"version": 1, "state_dir": f"{self.dir}/state",
             "auth": {"tokens": [{"id": "a", "token_sha256": "a" * 64}]},
             "rules": [
                 {"allow": "files.stat", "paths": {
                     "roots": f"{self.dir}/root"}},
                 {"allow": "commands.run", "commands": {
                     "allow": "ls", "cwd": {"roots": f"{self.dir}/root"}}}]}
        at = {"KEYS": c, "PATH SCOPES": c["rules"][0]["paths"],
              "cwd": c["rules"][1]["commands"]["cwd"],
              "RULES": c["rules"][0],
              "COMMAND SCOPES": c["rules"][1]["commands"],
              "LIMITS": c["rules"][1].setdefault("limits", {}),
              "top limits": c.setdefault("limits", {})}[place]
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = "@@"
        if path[-1] in ("anywhere", "unrestricted"):
            at["unsafe"] = True
            c["allow_lint_errors"] = True
        text = json.dumps(c, indent=1)
        head = text[:text.index('"@@"')]
        where = head.count("\n") + 1, len(head) - head.rfind("\n")
        return text.replace('"@@"', raw), where

    def ctl(self, *argv, env=None):
        full = {k: v for k, v in os.environ.items()
                if not k.startswith("ABX_")}
        full.update(env or {})
        return subprocess.run([f"{BUILD}/abxctl", "-f", self.file, *argv],
                              env=full, text=True, capture_output=True)

    def check(self, place, path, raw, env=None):
        text, where = self.config(place, path, raw)
        with open(self.file, "w") as f:
            f.write(text)
        return self.ctl("check-config", env=env), where

    def accepted(self, place, key, raw):
        p, _ = self.check(place, key.path, raw)
        if p.returncode != 0:
            self.fail(f"{place}: {key}: {raw}\n  expected: accepted\n"
                      f"  got:      {p.stdout}{p.stderr}")

    def refused(self, place, key, raw):
        p, (line, col) = self.check(place, key.path, raw)
        at = rf"(?m)^{re.escape(self.file)}:{line}:{col}: error: config\."
        if p.returncode != 2 or not re.search(at, p.stdout):
            self.fail(f"{place}: {key}: {raw}\n  expected: refused at "
                      f"{line}:{col}\n  got:      {p.stdout}{p.stderr}")

    def places(self):
        for section in ("KEYS", "PATH SCOPES", "COMMAND SCOPES", "LIMITS"):
            for k in listed(section):
                yield section, k
                if section == "PATH SCOPES":
                    yield "cwd", k
                if section == "LIMITS":
                    yield "top limits", k

    def spell(self, k, v):
        return f'"{v}ms"' if k.kind == "duration" else str(v)

    def test_ranges(self):
        tried = 0
        for place, k in self.places():
            if k.lo is None or k.path[-1] == "version":
                continue
            step = 1000 if k.path[-1] == "cpu_seconds" else 1
            lo, hi = max(k.lo, step), k.hi
            with self.subTest(place, key=k):
                self.accepted(place, k, self.spell(k, k.lo and lo))
                self.accepted(place, k, self.spell(k, hi))
                self.refused(place, k, self.spell(k, hi + step))
                if k.lo > 0:
                    self.refused(place, k, self.spell(k, lo - step))
                self.refused(place, k, "-1")
                tried += 1
        self.assertGreater(tried, 40)

    def test_types(self):
        tried = 0
        for place, k in self.places():
            wrong = WRONG.get(k.kind)
            if wrong is None and k.kind.startswith("list"):
                wrong = "1"
            elif wrong is None and k.kind.startswith('"'):
                wrong = '"other"'
            if wrong is None or k.path[-1] == "version":
                continue
            with self.subTest(place, key=k):
                self.refused(place, k, wrong)
                tried += 1
        self.assertGreater(tried, 80)

    def test_defaults(self):
        text, _ = self.config("KEYS", ["allow_open"], "false")
        with open(self.file, "w") as f:
            f.write(text)
        p = self.ctl("--json", "describe")
        self.assertEqual(p.returncode, 0, p)
        policy = json.loads(p.stdout)["policy"]
        tried = 0
        for place, k in self.places():
            if place in ("LIMITS", "top limits") or k.default is None or \
                    k.path[-1] in ("cwd", "rules",
                                   "unsafe", "version"):
                continue
            at = {"KEYS": policy, "PATH SCOPES": policy["rules"][0]["paths"],
                  "cwd": policy["rules"][1]["commands"]["cwd"],
                  "COMMAND SCOPES": policy["rules"][1]["commands"]}[place]
            for name in k.path[:-1]:
                at = at.get(name, {})
            got = at.get(k.path[-1])
            want = k.default
            if want in ("none", "no limit"):
                want = got if got in (None, [], {}) else "nothing"
            elif k.kind == "true or false":
                want = want == "true"
            elif k.kind == "size":
                want = amount(want, SIZES)
            elif k.kind == "integer":
                want = int(want)
            elif k.kind == "duration":
                want = amount(want, TIMES)
                if isinstance(got, str):
                    got = amount(got, TIMES)
                else:
                    got = got and got * 1000
            elif k.kind.startswith('"'):
                want = want.strip('"')
            elif k.kind.startswith("list") and isinstance(got, list) \
                    and all(isinstance(x, str) for x in got):
                want = want.split(", ")
            elif k.kind != "mode":
                continue
            if got is None and want in (False, "default"):
                continue
            with self.subTest(place, key=k):
                self.assertEqual(got, want)
                tried += 1
        self.assertGreater(tried, 50)


def rows():
    """{table: [(key, type, flags)]} of the parser."""
    found = {}
    for name in os.listdir(f"{TOP}/policy"):
        if not name.endswith(".c"):
            continue
        with open(f"{TOP}/policy/{name}") as f:
            for table, body in re.findall(
                    r"struct ckey ([a-z_]+)\[\] = \{\n(.*?)\n\};",
                    f.read(), re.S):
                found[table] = re.findall(
                    r'\{"([a-z_0-9]+)", (K_[A-Z0-9]+)([^}]*)\}', body)
    return found


@unittest.skipUnless(os.path.isdir(f"{TOP}/policy"), "needs the sources")
class Catalogue(unittest.TestCase):
    """Nothing is there that no manual names, and nothing named is not."""

    def test_keys(self):
        text = manual("server.json.5")
        words = set()
        for line in re.findall(r"(?m)^\.(?:It )?Ic (.*)$|, Ic (.*)$", text):
            words.update(re.findall(r"[a-z_0-9]+", " ".join(line)))
        reserved = text[text.index("These keys are reserved"):
                        text.index(".Sh RULES")]
        tables = rows()
        self.assertLess({"conf_keys", "sandbox_keys", "limit_keys",
                         "command_keys"}, set(tables))
        for table, keys_ in tables.items():
            if table == "ceiling_keys":  # of the canonical text only
                continue
            for key, kind, more in keys_:
                if "CK_CANON" in more or key == "token":
                    continue
                with self.subTest(table, key=key):
                    self.assertIn(key, words)
                    if kind == "K_LATER":
                        self.assertRegex(reserved, rf"\b{key}\b")

    def test_findings(self):
        """Codes of findings, in the sources and in the manual."""
        made = set()
        for d in ("policy", "monitor", "monitor/ctl"):
            for name in os.listdir(f"{TOP}/{d}"):
                if name.endswith(".c"):
                    with open(f"{TOP}/{d}/{name}") as f:
                        made.update(re.findall(r'"(config\.[a-z_]+)',
                                               f.read()))
        named = set(re.findall(r"\b(config\.[a-z_]+)",
                               manual("server.json.5")))
        self.assertEqual(named - {"config.worktree"}, made)

    def test_codes(self):
        """Every code of abx-http(7) is made somewhere, and no other."""
        with open(f"{TOP}/common/codes.def") as f:
            codes = dict(re.findall(r'CODE\(([A-Z_]+), "([a-z_.]+)"',
                                    f.read()))
        used = set()
        for d in ("policy", "monitor", "listener", "pathd", "execd"):
            for name in os.listdir(f"{TOP}/{d}"):
                if name.endswith(".c"):
                    with open(f"{TOP}/{d}/{name}") as f:
                        used.update(re.findall(r"\bC_([A-Z_]+)\b", f.read()))
        text = manual("abx-http.7")
        for symbol, code in codes.items():
            if symbol in ("OK", "POL_URL_INVALID"):
                continue
            with self.subTest(code):
                self.assertIn(symbol, used)
                self.assertTrue(f".It Li {code} Ta " in text)

    def test_classes_of_codes(self):
        with open(f"{TOP}/common/codes.def") as f:
            made = set(re.findall(r'CODE\([A-Z_]+, "[a-z_.]+", [0-9]+,\s*'
                                  r'"([A-Za-z]+)"', f.read()))
        self.assertGreater(len(made), 8)
        text = manual("abx-http.7").split("is a class of them: ")[1]
        named = text[:text.index(".\n")].replace(" or ", ", ")
        self.assertEqual(set(re.split(r",\s+", named)), made)

    def test_members_of_audit_records(self):
        with open(f"{TOP}/monitor/audit.c") as f:
            text = f.read()
        made = set(re.findall(r'put_(?:str|uint|bool|list)\(\s*"(\w+)"', text))
        made |= set(re.findall(r'\\"(\w+)\\":', text))
        self.assertLess({"ts", "paths", "signal", "sandbox_appeared"}, made)
        part = manual("server.json.5").split(".Sh THE AUDIT LOG\n")[1]
        part = part.split("\n.Sh ")[0]
        named = set(re.findall(r"\w+", " ".join(re.findall(
            r"(?m)^\.(?:It )?Ic (.*)$", part))))
        self.assertEqual(made - named, set())

    def test_rules_of_the_command_policy(self):
        with open(f"{TOP}/policy/filter_rules.def") as f:
            rules = re.findall(r'RULE\([A-Z_0-9]+, "([a-z_0-9]+)",\s*(\w+)',
                               f.read())
        self.assertGreater(len(rules), 15)
        text = manual("abx-command-policy.7")
        for section, tier in (("FLOOR", "FLOOR"), ("WARNINGS", "WARN")):
            part = text.split(f".Sh {section}\n")[1].split("\n.Sh ")[0]
            self.assertEqual(set(re.findall(r"(?m)^\.It Li ([a-z_0-9]+)$",
                                            part)),
                             {name for name, t in rules if t == tier})

    def test_variables(self):
        with open(f"{TOP}/policy/confceil.c") as f:
            names = set(re.findall(r"ABX_SERVER_[A-Z_]+", f.read()))
        self.assertGreater(len(names), 4)
        text = manual("server.json.5")
        for name in names | {"ABX_SERVER_TOKEN", "ABX_SERVER_AUDIT"}:
            self.assertTrue(f".It Ev {name}\n" in text, name)

    def test_options(self):
        """Long options and verbs of abxctl and abxd."""
        for page, src in (("abxctl.8", "monitor/ctl"), ("abxd.8", "monitor")):
            text = manual(page)
            for name in sorted(os.listdir(f"{TOP}/{src}")):
                if not name.endswith((".c", ".h")):
                    continue
                with open(f"{TOP}/{src}/{name}") as f:
                    found = re.findall(
                        r'\{"([a-z0-9-]+)", (?:no|required)_arg', f.read())
                for opt in found:
                    with self.subTest(name, option=opt):
                        self.assertTrue(f"Fl Fl {opt}" in text)
        with open(f"{TOP}/monitor/ctl/main.c") as f:
            verbs = re.findall(r'(?m)^    \{"([a-z-]+)",', f.read())
        self.assertGreater(len(verbs), 15)
        for verb in verbs:
            self.assertTrue(re.search(rf"(?m)^\.It Cm {verb}\b",
                                      manual("abxctl.8")), verb)


class Effects(Case):
    """Keys that no other test turns: each does what the manual says, at a
    start and after a reload."""

    @classmethod
    def rules(cls, w, **more):
        return [
            {"allow": ["group:files"], "paths": {"roots": [w.w], **more}},
            {"allow": ["commands.run", "group:process", "process.signal",
                       "workspace.list"],
             "commands": {"allow": ["sh -c ..."], "cwd": w.w,
                          "processes": 1000}}]

    @classmethod
    def conf(cls, w):
        return {"reload": "sighup", "rules": cls.rules(w),
                "allow_lint_errors": True}

    def turn(self, **keys):
        """The configuration with other values, and a reload."""
        config = dict(self.svc.config)
        for name, value in keys.items():
            if isinstance(value, dict):
                value = {**config.get(name, {}), **value}
            config[name] = value
        self.svc.write(config)
        p = subprocess.run([f"{BUILD}/abxctl", "-f", self.svc.file, "reload"],
                           env=self.svc.env, text=True, capture_output=True)
        self.eq(p.returncode, 0, p.stdout + p.stderr)

    def test_umask(self):
        def made(name):
            self.ok(self.svc.upload(name, b"x"), 201)
            self.ok(self.svc.rpc("files.mkdir", {"path": name + "-d"}), 201)
            return [oct(os.stat(f"{self.world.w}/{n}").st_mode & 0o777)
                    for n in (name, name + "-d")]
        self.eq(made("u1"), ["0o640", "0o750"])
        self.turn(umask="0077")
        self.eq(made("u2"), ["0o600", "0o700"])
        self.turn(umask="0002")
        self.eq(made("u3"), ["0o664", "0o775"])

    def test_five_variables(self):
        """Those of env_pass in server.json(5), with the default of it."""
        def five(**args):
            out = self.out(self.svc.run("env | sort", **args))
            got = dict(line.split("=", 1) for line in out.splitlines())
            self.eq([got.pop(n) for n in ("USER", "LOGNAME", "LANG", "PATH")],
                    ["abx", "abx", "C.UTF-8", "/usr/bin:/bin:/usr/local/bin"])
            home = got.pop("HOME")
            self.eq(set(got) - {"PWD", "OLDPWD", "SHLVL", "_"}, set())
            return home
        os.makedirs(self.world / "w/home/sub")
        self.world.own()
        self.eq(five(), self.world.w)
        self.eq(five(cwd="home/sub"), self.world.w + "/home/sub")
        self.assertRegex(five(session="five"), r"/[0-9a-f]{32}$")

    def test_tmp_size(self):
        script = "df -k --output=size /tmp | tail -1"
        self.eq(self.out(self.svc.run(script)).strip(), "65536")
        self.turn(sandbox={"tmp_size": "1MiB"})
        self.eq(self.out(self.svc.run(script)).strip(), "1024")

    def test_max_pids(self):
        self.turn(sandbox={"max_pids": 5})
        r = self.svc.run("for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & done; wait")
        self.assertIn("fork", self.ok(r).json["stderr"])

    def test_output_spool(self):
        def kept():
            script = "head -c 300000 /dev/zero | tr '\\0' x"
            r = self.ok(self.svc.rpc("process.start", {
                "argv": ["sh", "-c", script]}))
            pid = r.json["id"]
            self.ok(self.svc.rpc("process.wait", {"id": pid}))
            o = self.svc.get(f"/process/{pid}/output")
            return sum(e[1]["data"].count("x") for e in events(o.body)
                       if e[0] == "stdout")
        self.eq(kept(), 300000)
        self.turn(sandbox={"output_spool": 4096})
        self.eq(kept(), 4096)

    def test_process_ttl(self):
        self.turn(sandbox={"process_ttl": "1s"})
        r = self.ok(self.svc.rpc("process.start", {"argv": ["sh", "-c", ":"]}))
        pid = r.json["id"]
        self.ok(self.svc.rpc("process.wait", {"id": pid}))
        self.ok(self.svc.get(f"/process/{pid}"))
        gone = until(6, lambda: self.svc.get(f"/process/{pid}").status == 404)
        self.eq(gone, True)

    def test_enabled(self):
        self.turn(sandbox={"enabled": False})
        self.refused(self.svc.run("true; true"), 503, "sandbox.unavailable")
        self.turn(sandbox={"enabled": True})
        self.eq(self.out(self.svc.run("echo yes")), "yes\n")

    def test_protect(self):
        os.makedirs(f"{self.world.w}/keep", exist_ok=True)
        self.world.own()
        self.eq(self.out(self.svc.run("echo x >keep/a; cat keep/a")), "x\n")
        self.turn(sandbox={"protect": ["keep"]})
        r = self.ok(self.svc.run("echo y >keep/a; cat keep/a"))
        self.eq(r.json["stdout"], "x\n")
        self.assertIn("Read-only", r.json["stderr"])

    def test_protect_dirs(self):
        self.ok(self.svc.list("sub"))
        self.turn(protect_dirs=[f"{self.world.w}/sub"])
        self.refused(self.svc.list("sub"), 403, "policy.path_denied")
        r = self.ok(self.svc.run("cat sub/b.txt; true"))
        self.eq(r.json["stdout"], "")

    def test_command_policy(self):
        self.out(self.svc.run("echo marked"))
        self.turn(command_policy={"custom_rules": [
            {"name": "no-mark", "regex": "marked"}]})
        self.refused(self.svc.run("echo marked"), 403,
                     "policy.command_blocked")

    def test_workspaces(self):
        # those of other tests count as well
        there = self.ok(self.svc.rpc("workspace.list")).json["workspaces"]
        self.turn(sandbox={"workspace": {"max": len(there) + 1}})
        for name, status in (("a", 200), ("a", 200), ("b", 429)):
            self.ok(self.svc.rpc("commands.run", {
                "argv": ["sh", "-c", "echo x"], "session": name}), status)

    def test_output_that_is_kept(self):
        """max_output_bytes goes up to 64 MiB."""
        rules = self.rules(self.world)
        rules[1]["commands"]["max_output_bytes"] = "1GiB"
        rules[1]["commands"]["cpu_seconds"] = 60
        self.turn(rules=rules)
        r = self.ok(self.svc.run("head -c 70000000 /dev/zero | tr '\\0' x"))
        self.eq(len(r.json["stdout"]), 64 << 20)
        self.eq(r.json["truncated"]["stdout"], True)

    def test_allow_hardlinks(self):
        os.link(f"{self.world.w}/a.txt", f"{self.world.w}/a2.txt")
        self.addCleanup(os.unlink, f"{self.world.w}/a2.txt")
        self.refused(self.svc.download("a2.txt"), 403,
                     "policy.hardlink_denied")
        self.turn(rules=self.rules(self.world, allow_hardlinks=True))
        self.ok(self.svc.download("a2.txt"))

    def test_http(self):
        big = {"path": "x" * 3000}
        self.turn(http={"max_request_bytes": 1024})
        self.refused(self.svc.rpc("files.stat", big), 413,
                     "limit.request_too_large")
        self.turn(http={"max_header_bytes": 1024})
        self.refused(self.svc.get("/health", headers={"X": "y" * 2000}), 431,
                     "request.headers_too_large")
        self.turn(allowed_hosts=["abx.example"])
        self.ok(self.svc.get("/health", headers={"Host": "abx.example"}))
        self.turn(http={"header_timeout": "200ms", "head_deadline": "400ms",
                        "idle_timeout": "300ms"})
        with Conn(self.svc) as c:
            began = time.monotonic()
            self.assertTrue(c.ended(3))
            self.under(time.monotonic() - began, 1, "header_timeout")
        with Conn(self.svc) as c:
            c.send(self.svc.build("GET", "/health"))
            c.reply()
            began = time.monotonic()
            self.assertTrue(c.ended(3))
            self.under(time.monotonic() - began, 1, "idle_timeout")

    def test_pools(self):
        self.turn(http={"max_connections": 2, "max_pre_auth": 2})
        conns = [Conn(self.svc) for _ in range(6)]
        try:
            got = until(3, lambda: sum(c.ended(0.05) for c in conns) >= 3)
            self.assertTrue(got)
        finally:
            for c in conns:
                c.close()


class Starts(Case):
    """abxd(8): its options and its end."""

    def prepare(self, **more):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        return Service(w, {"rules": [{"allow": "files.stat",
                                      "paths": w.w}], **more})

    def abxd(self, svc, *argv, **kw):
        return subprocess.run([f"{BUILD}/abxd", *argv], env=svc.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=30 * SLOW, **kw)

    def test_a_file_from_here(self):
        svc = self.prepare()
        p = self.abxd(svc, "-n", "-f", "conf/server.json", cwd=svc.world.dir)
        self.eq((p.returncode, p.stderr), (0, ""))
        p = self.abxd(svc, "-n", "-f", "conf/none.json", cwd=svc.world.dir)
        self.eq(p.returncode, 2)
        self.assertIn("config.file_unreadable", p.stderr)

    def test_background(self):
        """The command ends when the service is ready, whoever reads its
        output; what is bad ends it with 2 and is said before."""
        svc = self.prepare()
        began = time.monotonic()
        p = self.abxd(svc, "-f", svc.file)
        self.eq((p.returncode, p.stdout), (0, ""), p.stderr)
        self.under(time.monotonic() - began, 15 * SLOW)
        self.ok(svc.get("/health"))
        p = subprocess.run([f"{BUILD}/abxctl", "-f", svc.file, "status",
                            "--json"], env=svc.env, text=True,
                           capture_output=True)
        found = []
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as f:
                    if svc.file.encode() in f.read() and \
                            comm(int(name)) == "abxd":
                        found.append(int(name))
            except (OSError, ValueError):
                pass
        self.eq(len(found), 1, p.stdout)
        procs = family(found[0])
        os.kill(found[0], signal.SIGTERM)
        self.eq(still_there({found[0]: proc_stat(found[0])[1], **procs}, 9),
                {})
        svc.write(None, "{")
        p = self.abxd(svc, "-f", svc.file)
        self.eq(p.returncode, 2)
        self.assertIn("config.syntax", p.stderr)

    def test_the_environment_is_forgotten(self):
        svc = self.prepare()
        self.addCleanup(self.end, svc)
        svc.start()
        for pid in {svc.proc.pid: 0, **svc.family()}:
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    text = f.read()
            except PermissionError:
                self.assertFalse(ROOT)
                continue
            except (FileNotFoundError, ProcessLookupError):
                continue  # a helper of the start
            self.assertFalse(ADMIN.encode() in text, comm(pid))

    def test_what_the_log_says_of_a_start_and_a_stop(self):
        svc = self.start({"rules": []})
        svc.stop()
        text = svc.logged()
        version = subprocess.run([f"{BUILD}/abxd", "--version"], text=True,
                                 capture_output=True).stdout.split()[1]
        self.assertRegex(text, rf"(?m)^abxd: info: version {version}, "
                         rf"configuration {svc.file}, 1 audit sink$")
        self.assertIn("abxd: info: stopping, asked by SIGTERM\n", text)

    def test_listen_of_the_command_line(self):
        svc = self.prepare()
        svc.port = free_port()
        svc.argv += ["--listen", f"127.0.0.1:{svc.port}"]
        self.addCleanup(self.end, svc)
        self.health(svc.start())

    def test_require_auth(self):
        svc = self.prepare()
        config = {k: v for k, v in svc.config.items() if k != "auth"}
        svc.write(config)
        p = self.abxd(svc, "-n", "-f", svc.file, "--require-auth")
        self.eq(p.returncode, 2)
        self.assertIn("config.auth_secret_missing", p.stderr)
        svc.write({**config, "auth": AUTH})
        p = self.abxd(svc, "-n", "-f", svc.file, "--require-auth")
        self.eq(p.returncode, 0, p.stderr)

    def test_a_port_that_is_taken(self):
        svc = self.prepare()
        with socket.socket() as s:
            s.bind(("127.0.0.1", svc.port))
            s.listen()
            p = self.abxd(svc, "-d", "-f", svc.file)
            self.eq(p.returncode, 1, p.stderr)
            self.assertIn("cannot listen", p.stderr)
            # in the background the command ends with it too
            p = self.abxd(svc, "-f", svc.file)
            self.eq(p.returncode, 1, p.stderr)

    def test_sinks(self):
        """Each gets every line; the variable is for when there is none."""
        svc = self.prepare()
        two = [f"file:{svc.world.dir}/log/{n}.jsonl" for n in "ab"]
        svc.config["audit"] = {"sink": two[0], "sinks": [two[1], "stderr"]}
        svc.write(svc.config)
        svc.start()
        self.ok(svc.get("/files/stat?path=a.txt"))
        svc.stop()
        lines = [svc.world.get(f"log/{n}.jsonl").decode() for n in "ab"]
        self.eq(lines[0], lines[1])
        want = [x for x in lines[0].split("\n") if "files.stat" in x]
        self.eq(len(want), 1)
        self.assertIn(want[0], svc.logged())
        self.eq(oct(os.stat(two[0][5:]).st_mode & 0o777), "0o640")
        if ROOT:
            self.eq(os.stat(two[0][5:]).st_uid, pwd.getpwnam("_abxm").pw_uid)

    def test_audit_by_the_environment(self):
        for value, there in (("1", True), ("0", False)):
            svc = self.prepare()
            del svc.config["audit"]
            svc.write(svc.config)
            svc.env["ABX_SERVER_AUDIT"] = value
            svc.start()
            self.ok(svc.get("/files/stat?path=a.txt"))
            svc.stop()
            self.eq('"op":"files.stat"' in svc.logged(), there, value)

    def test_allow_open(self):
        """Two errors become lint errors, and those can be allowed."""
        svc = self.prepare()
        config = {k: v for k, v in svc.config.items() if k != "auth"}
        config["rules"] = [{"allow": "commands.run", "commands": {
            "allow": "true"}}]
        for keys, status, code in (
                ({}, 2, "config.open_exec"),
                ({"allow_lint_errors": True}, 2, "config.open_exec"),
                ({"allow_open": True}, 2, "config.lint_errors"),
                ({"allow_open": True, "allow_lint_errors": True}, 0, "")):
            svc.write({**config, **keys})
            p = self.abxd(svc, "-n", "-f", svc.file)
            self.eq(p.returncode, status, f"{keys} {p.stderr}")
            self.assertIn(code, p.stderr)
        p = self.abxd(svc, "-n", "-f", svc.file, "--require-auth")
        self.eq(p.returncode, 2)

    def test_socket_file(self):
        """One that nobody listens on goes, ours has the mode and the group
        that "listen" says and goes at the end."""
        svc = self.prepare()
        os.mkdir(svc.world / "run")
        path = svc.world / "run/s"
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)
        group = "daemon" if ROOT else grp.getgrgid(os.getegid()).gr_name
        svc.unix = path
        svc.write({**svc.config, "listen": [
            {"unix": path, "mode": "0660", "group": group}]})
        self.addCleanup(self.end, svc)
        self.health(svc.start())
        st = os.stat(path)
        self.eq((oct(st.st_mode), st.st_gid),
                ("0o140660", grp.getgrnam(group).gr_gid))
        svc.stop()
        self.eq(os.listdir(svc.world / "run"), [])

    def test_usage(self):
        svc = self.prepare()
        for argv in (["-x"], ["-p", "read-only"], ["-r", "/"], ["more"],
                     ["--listen"]):
            p = self.abxd(svc, *argv)
            self.eq((p.returncode, p.stdout), (2, ""), argv)
            self.assertIn("usage: abxd", p.stderr)
            self.eq("need each other" in p.stderr, argv[0] in ("-p", "-r"))
        p = self.abxd(svc, "--version")
        self.eq(p.returncode, 0)
        self.assertRegex(p.stdout, r"^abxd [0-9.]+\n$")


def plain(text):
    """What a reader sees of literal text."""
    return re.sub(r"\\f.", "", text).replace("\\(dq", '"') \
        .replace("\\e", "\\").replace("\\&", "").replace("\\(aq", "'")


def literals(page):
    """The displays of a manual: [(its section, text)]."""
    found, section, text = [], "", None
    for line in manual(page).split("\n"):
        if line.startswith(".Sh ") or line.startswith(".Ss "):
            section = line[4:]
        elif line.startswith(".Bd -literal"):
            text = []
        elif line.startswith(".Ed"):
            found.append((section, plain("\n".join(text))))
            text = None
        elif text is not None:
            text.append(line)
        elif line.startswith(".Dl "):
            found.append((section, plain(line[4:])))
    return found


class Examples(Keys):
    """The examples of the manuals are what the service takes."""

    test_ranges = test_types = test_defaults = None

    def whole(self, section, text):
        """A configuration from a fragment, or None when it is none."""
        c = {"version": 1, "state_dir": f"{self.dir}/state"}
        if text.startswith("{"):
            c2 = json.loads(text)
        elif text.startswith('"'):
            c2 = json.loads("{" + text + "}")
        else:
            return None
        rule = {"allow": "files.*", "paths": "/srv/data"}
        if section == "THE OPERATOR":
            if not ROOT:  # the file belongs to root
                return None
            with open(f"{self.dir}/conf/operator.json", "w") as f:
                json.dump(self.moved(c2), f)
            c["rules"] = [rule]
        elif "allow" in c2 or "deny" in c2:
            c["rules"] = [c2, rule] if "deny" in c2 else [c2]
        elif "paths" in c2:
            c["rules"] = [{"allow": "files.copy", **c2}]
        elif section == "LIMITS":
            c["rules"] = [{**rule, **c2}]
        else:
            c.update(c2)
        c.setdefault("auth", {"tokens": [
            {"id": "a", "roles": ["tenant", "builder"],
             "token_sha256": "a" * 64}]})
        return c

    def moved(self, c):
        """Directories of this test in the place of those of the manual, all
        of which exist."""
        text = json.dumps(c).replace('"/srv/', f'"{self.dir}/srv/') \
            .replace("path=/srv/", f"path={self.dir}/srv/") \
            .replace('"group": "abx"', '"group": "root"') \
            .replace("file:/var/log/agent-sandbox", f"file:{self.dir}/log")
        for path in re.findall(rf'"({self.dir}/srv/[^"{{]*)', text):
            os.makedirs(path, exist_ok=True)
        return json.loads(text)

    def test_configurations(self):
        tried = 0
        env = {f"{n}_TOKEN": f"a-token-of-{n}-0123456789"
               for n in ("CI", "BOT", "READER")}
        for page in ("server.json.5", "abx-policy.7",
                     "abx-command-policy.7"):
            for section, text in literals(page):
                c = self.whole(section, text)
                if c is None:
                    continue
                with open(self.file, "w") as f:
                    json.dump(self.moved(c), f, indent=1)
                p = self.ctl("check-config", env=env)
                with self.subTest(page, text=text):
                    self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
                tried += 1
                if os.path.exists(f"{self.dir}/conf/operator.json"):
                    os.unlink(f"{self.dir}/conf/operator.json")
        self.assertGreater(tried, 15)


class Shell(Case):
    """The commands of the manuals, as a shell runs them."""

    @classmethod
    def conf(cls, w):
        os.makedirs(w / "w/in")
        os.makedirs(w / "w/out")
        w.put("w/out/result.tar.gz", "result")
        w.own()
        return {"rules": [
            {"allow": ["core.*", "group:files"], "principals": "*",
             "paths": w.w},
            {"allow": ["commands.run"], "principals": "*", "commands": {
                "allow": ["wc -l {path}", "wc -c {path}"], "cwd": w.w}}]}

    def sh(self, script, token=ADMIN, **env):
        at = self.world / "here"
        os.makedirs(at, exist_ok=True)
        for name in ("a.txt", "report.pdf"):
            with open(f"{at}/{name}", "w") as f:
                f.write("one\n")
        script = script.replace("127.0.0.1:8765",
                                f"127.0.0.1:{self.svc.port}")
        return subprocess.run(
            ["sh", "-c", script], cwd=at, text=True, capture_output=True,
            env={**self.svc.env, "PATH": f"{BUILD}:{os.environ['PATH']}",
                 "no_proxy": "*", **env}, timeout=60 * SLOW)

    def test_curl(self):
        text = next(t for s, t in literals("abx-http.7") if s == "EXAMPLES")
        calls = re.split(r"\n(?=curl)", text)
        self.eq(len(calls), 3, text)
        self.eq(self.sh(calls[0], T=ADMIN).stdout, "hello\n")
        self.assertIn('"bytes":4', self.sh(calls[1], T=ADMIN).stdout)
        self.assertIn('"stdout":"1 a.txt\\n"',
                      self.sh(calls[2], T=ADMIN).stdout)

    def test_abxctl(self):
        text = [t for s, t in literals("abxctl.8") if s == "EXAMPLES"]
        ask, use, token = text[1:4]
        said = re.sub(r"(?m)^\$ ", "", ask).split("denied:")
        use = re.sub(r"(?m)^\$ (abxctl)", rf"$ \1 -f {self.svc.file}", use)
        sum_ = hashlib.sha256(b"result").hexdigest()
        p = self.sh("set -e\n" + re.sub(r"(?m)^\$ ", "", use),
                    ABX_SERVER_TOKEN=BOB, sum=sum_)
        self.eq((p.returncode, p.stdout), (0, "4 report.pdf\n"), p.stderr)
        p = self.sh(said[0].replace("abxctl", f"abxctl -f {self.svc.file}")
                    .replace("viewer", "bob"))
        self.eq(p.returncode, 1, p.stderr)
        want = " ".join(("denied:" + said[1]).split("\n  ")[0].split())
        self.eq(p.stdout.split("\n")[0], want)
        p = self.sh(token.split("\n")[0].removeprefix("$ "))
        self.assertRegex(p.stdout, r"^token +[A-Za-z0-9_-]{43}\n"
                         r"sha256 +[0-9a-f]{64}\n$")

    def test_describe(self):
        for text in (t for _, t in literals("server.json.5")
                     if t.startswith("$ ")):
            p = self.sh(text[2:].replace("/srv/work", self.world.w), T=ADMIN)
            self.eq(p.returncode, 0, text + p.stdout + p.stderr)

    def test_abxd(self):
        """A preset of the command line and the token of the environment, with
        no file at all."""
        text = [t for s, t in literals("abxd.8") if s == "EXAMPLES"]
        serve, ask = (re.sub(r"(?m)^\$ ", "", t) for t in text)
        port = free_port()
        script = serve.replace("build/abxd", f"exec {BUILD}/abxd --listen "
                               f"127.0.0.1:{port}") \
            .replace("/srv/data", self.world.r)
        if os.path.exists("/etc/agent-sandbox/server.json"):
            self.skipTest("there is a configuration")
        env = {**self.svc.env, "XDG_STATE_HOME": self.world / "xdg",
               "XDG_RUNTIME_DIR": self.world / "xdg",
               "ABX_SERVER_TOKEN": ALICE}
        os.makedirs(self.world / "xdg", mode=0o700)
        script = script.replace("$(openssl rand -hex 32)", ALICE)
        if ROOT:
            # the default state directory is not for tests
            self.skipTest("as an ordinary user")
        with open(self.world / "log/other", "w") as log:
            p = subprocess.Popen(["sh", "-c", script], env=env, stderr=log,
                                 stdin=subprocess.DEVNULL, cwd=self.world.dir)
        try:
            def up():
                with open(self.world / "log/other") as f:
                    return "ready on" in f.read()
            self.eq(until(20 * SLOW, up), True)
            r = self.sh(ask.replace("8765", str(port)), ABX_SERVER_TOKEN=ALICE)
            self.assertIn('"x.txt"', r.stdout)
        finally:
            p.terminate()
            p.wait(10)


@needs_root
@unittest.skipUnless(os.path.isfile(f"{TOP}/README"), "needs the sources")
class Tour(Case):
    """The tour of README, in a shell, with directories of its own."""

    def script(self, w, port):
        with open(f"{TOP}/README") as f:
            text = f.read().split("\nA tour\n")[1]
        text = text[:text.index("Every operation can also")]
        lines = [line[4:] for line in text.split("\n")
                 if line.startswith("    ")]
        self.assertEqual([line.split("#")[0].strip() for line in lines[:2]],
                         ["make deps", "make"])
        tour = "\n".join(lines[2:]).replace("build/", f"{BUILD}/") \
            .replace("8765", str(port))
        tour = tour.replace(
            "echo hello > $T/files/a.txt", "echo hello > $T/files/a.txt\n"
            "chown -R abx: $T/files")
        self.assertIn("server.json &\n", tour)
        tour = tour.replace(
            "server.json &\n", "server.json 2>$HOME/log &\nn=0\n"
            "until grep -qs 'ready on' $HOME/log; do n=$((n + 1))\n"
            "[ $n -lt 200 ] || exit 9; sleep 0.1; done\n")
        return (f"shopt -s expand_aliases\nmkdir {w}/lib\n"
                f"mount --bind {w}/lib /var/lib || exit 8\ncd {TOP}\n"
                + tour + "\nkill %1; wait %1; echo ended $?\n")

    def test_as_written(self):
        w = World()
        self.addCleanup(w.remove)
        p = subprocess.run(
            ["unshare", "-m", "--propagation", "private", "bash", "-c",
             self.script(w.dir, free_port())], text=True, capture_output=True,
            timeout=120 * SLOW, env={"HOME": w.dir, "no_proxy": "*",
                                     "PATH": os.environ["PATH"]})
        with open(f"{TOP}/README") as f:
            lines = len(f.readlines())
        at = -1
        for want in ("files.upload          +",
                     "denied: files.download: policy.path_not_allowed",
                     '{"version":"', "hello\n",
                     '"code":"policy.path_not_allowed"',
                     '{"path":"new/readme.txt","bytes":',
                     '"entries":[{"name":"readme.txt"',
                     f'"stdout":"{lines} new/readme.txt\\n"',
                     '"code":"policy.command_not_allowed"',
                     '"data":"a.txt\\nnew\\n"', "event: exit",
                     "-rw-r-----", f"{lines} new/readme.txt\n", "ended 0"):
            found = p.stdout.find(want, at + 1)
            self.assertGreater(found, at, f"{want}\n{p.stdout}{p.stderr}")
            at = found
        self.assertEqual(p.stderr, "")


class Codes(Case):
    """Codes, and what else of abx-http(7), that no other test asks for."""

    @classmethod
    def conf(cls, w):
        return {"allow_lint_errors": True, "rules": [
            {"allow": ["core.*", "group:files"], "paths": w.w},
            {"allow": "commands.run", "commands": {
                "allow": ["sh -c ..."], "cwd": [w.w, w.r]}},
            {"allow": "net.fetch", "urls": {"hosts": ["a.example"]}},
            {"deny": "net.fetch", "urls": ["*.evil.example"]}]}

    def test_a_result_too_large_to_keep(self):
        args = {"argv": ["sh", "-c", "echo x >>ran; head -c 100000 /dev/zero"
                         " | tr '\\0' x"]}
        key = {"Idempotency-Key": "large"}
        r = self.ok(self.svc.rpc("commands.run", args, headers=key))
        self.eq(len(r.json["stdout"]), 100000)
        self.refused(self.svc.rpc("commands.run", args, headers=key), 409,
                     "idempotency.result_gone")
        self.eq(self.world.get("w/ran"), b"x\n")

    def test_a_link_above_a_protected_name(self):
        os.makedirs(self.world / "r/elsewhere")
        os.makedirs(self.world / "r/repo/.git/hooks")
        os.symlink("../../elsewhere", self.world / "r/repo/.git/modules")
        self.world.own()
        r = self.svc.rpc("commands.run", {"argv": ["sh", "-c", ":"],
                                          "cwd": self.world.r})
        self.refused(r, 403, "sandbox.protect_symlink")

    @unittest.skipUnless(LONG, "takes half a minute")
    def test_a_comment_every_15_seconds(self):
        r = self.ok(self.svc.rpc("commands.run", {
            "argv": ["sh", "-c", "sleep 33; echo x"], "stream": True},
            timeout=60))
        self.eq(len(re.findall(rb"(?m)^:", r.body)), 2, r.body)
        self.eq(events(r.body)[-1][1]["exit_code"], 0)

    def test_health_needs_no_credential_by_its_route(self):
        self.ok(self.svc.get("/health", token=None))
        self.refused(self.svc.rpc("core.health", token=None), 401,
                     "auth.required")

    def test_urls(self):
        """No operation takes one yet; what a deny says holds already."""
        for url, code in (("https://x.evil.example/", "policy.url_denied"),
                          ("https://a.example/", "op.not_enabled")):
            r = self.ok(self.svc.rpc("core.check", {
                "op": "net.fetch", "args": {"url": url}}))
            self.eq((r.json["allowed"], r.json["code"]), (False, code))
        self.refused(self.svc.rpc("net.fetch", {"url": "https://a.example/"}),
                     404, "op.not_enabled")


class TooMuch(Case):
    """What does not fit between the processes is found before anything is
    started with it, and a reload keeps the old."""

    CASES = {
        "hosts": {"allowed_hosts": [f"h{i}.example" for i in range(1100)]},
        "bytes": {"allowed_hosts": ["h" * 200 + str(i) for i in range(1000)]},
        "proxies": {"trusted_proxies": [f"10.0.{i // 256}.{i % 256}"
                                        for i in range(1100)]},
        "dirs": {"protect_dirs": [f"/srv/p{i}" for i in range(300)]},
        "names": {"sandbox": {"protect": [f"p{i}" for i in range(300)]}},
        "sinks": {"audit": {"sinks": ["stderr"] * 20}},
    }

    @classmethod
    def conf(cls, w):
        return {"reload": "sighup",
                "rules": [{"allow": "files.stat", "paths": w.w}]}

    def test_found(self):
        svc = self.svc
        self.addCleanup(svc.write, svc.config)
        for name, more in self.CASES.items():
            config = {**svc.config, **more}
            if "sandbox" in more:
                config["sandbox"] = {**svc.config["sandbox"],
                                     **more["sandbox"]}
            svc.write(config)
            for verb in ("check-config", "reload"):
                p = subprocess.run(
                    [f"{BUILD}/abxctl", "-f", svc.file, verb], env=svc.env,
                    text=True, capture_output=True)
                with self.subTest(name, verb=verb):
                    self.eq(p.returncode, 2, p.stdout + p.stderr)
                    self.assertIn(": error: config.too_large: ",
                                  p.stdout + p.stderr)
            self.ok(svc.get("/files/stat?path=a.txt"))
        self.assertFalse("died" in svc.logged())


class Mounted(Case):
    """A service that says nowhere where its directories are: a world of its
    own, mounted at /mnt, in which SCRIPT runs."""

    SCRIPT = ""

    def mounted(self, config, **names):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = Service(w, {"rules": [{"allow": "files.stat",
                                     "paths": "/mnt/w"}], **config})
        for key in ("state_dir", "audit", "sandbox"):
            del svc.config[key]
        svc.write(svc.config)
        for name in os.listdir(BUILD):
            if name.startswith("abx") and os.path.isfile(f"{BUILD}/{name}"):
                shutil.copy2(f"{BUILD}/{name}", w.dir)
        return subprocess.run(
            ["unshare", "-m", "--propagation", "private", "sh", "-c",
             self.SCRIPT.format(w=w.dir, **names)],
            env=svc.env, text=True, capture_output=True, timeout=60 * SLOW)


@needs_root
class Group(Mounted):
    """control.group lets an ordinary user in, also where the configuration
    does not say where the socket is."""

    SCRIPT = """
set -e
mount --bind {w} /mnt
mkdir /mnt/lib
mount --bind /mnt/lib /var/lib
/mnt/abxd -d -f /mnt/conf/server.json 2>/mnt/log/log &
abxd=$!
n=0
until grep -q 'ready on' /mnt/log/log; do
	n=$((n + 1)); [ $n -lt 200 ]; sleep 0.1
done
for group in {gid} {other}; do
	rc=0
	HOME=/nonexistent setpriv --reuid=nobody --regid=$group --clear-groups \\
	    /mnt/abxctl -f /mnt/conf/server.json status || rc=$?
	echo "exit $rc"
done
kill $abxd
wait $abxd
"""

    def test_default_socket(self):
        other = grp.getgrnam("daemon").gr_gid
        p = self.mounted({"control": {"group": "nogroup"}},
                         gid=grp.getgrnam("nogroup").gr_gid, other=other)
        self.assertIn("listener  ready", p.stdout, p.stderr)
        self.eq(re.findall("exit ([0-9]+)", p.stdout), ["0", "3"], p.stderr)


@needs_root
class Broken(Mounted):
    """What stops a service reaches it also when somebody broke its file."""

    SCRIPT = """
set -e
mount --bind {w} /mnt
mkdir /mnt/lib /mnt/run /mnt/etc
cp -a /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache /mnt/etc/
mv /mnt/conf /mnt/etc/agent-sandbox
mount --bind /mnt/lib /var/lib
mount --bind /mnt/run /run
mount --bind /mnt/etc /etc
file=/etc/agent-sandbox/server.json
/mnt/abxd -d 2>/mnt/log/log &
abxd=$!
n=0
until grep -q 'ready on' /mnt/log/log; do
	n=$((n + 1)); [ $n -lt 200 ]; sleep 0.1
done
cp $file /mnt/copy.json
echo '{{' >$file
cp $file /mnt/broken.json
for args in panic status reload '-f /mnt/broken.json status' \
    '-f /nonexistent resume' resume; do
	rc=0
	/mnt/abxctl $args || rc=$?
	echo "exit $rc"
done
rm $file
/mnt/abxctl status 2>&1 | head -1
kill $abxd
wait $abxd
cat /mnt/log/log
"""

    def test_reached(self):
        p = self.mounted({"reload": "sighup"})
        self.eq(re.findall("exit ([0-9]+)", p.stdout),
                ["0", "0", "2", "2", "2", "0"], p.stdout + p.stderr)
        self.assertIn("no command may start until", p.stdout)
        self.assertIn("listener  ready", p.stdout)
        # and when it is gone
        self.assertRegex(p.stdout, r"exit 0\nversion   [0-9.]+\n")
        self.assertIn("reload refused, the old policy stays: "
                      "/etc/agent-sandbox/server.json:2:1: error: "
                      "config.syntax", p.stdout)
        self.assertIn("/mnt/broken.json does not say where", p.stderr)
