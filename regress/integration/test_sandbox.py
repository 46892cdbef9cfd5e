# SPDX-License-Identifier: ISC
"""The sandbox from inside: what is denied, protected, counted and limited.
Each layer and each promise of abx-sandbox(7) by a program that tries."""
import errno
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from abxtest import (MARKER, ROOT, Case, World, apt, hardened_only,
                     needs_root, timeout)


class Box(Case):
    """A service whose caller may run anything in one directory."""
    cwd = {}
    conf_more = {}

    @classmethod
    def conf(cls, w):
        return {"rules": [{"allow": "commands.run", "commands": {
            "allow": ["sh -c ...", "python3 ..."], "timeout": "20s",
            "cwd": {"roots": [w.w], **cls.cwd}}}],
            "allow_lint_errors": True, **cls.conf_more}

    def sh(self, script, **kw):
        return self.ok(self.svc.run("sh", "-c", script, **kw)).json


class Denied(Box):
    """Deny globs of the cwd scope reach programs."""
    cwd = {"deny": ["**/*.key", "vault/**", "**/[sS]ecret", ".env"]}

    @classmethod
    def fill(cls, w):
        w.put("w/a.key", MARKER)
        w.put("w/sub/deep/er/b.key", MARKER)
        w.put("w/sub/deep/Secret/x", MARKER)
        w.put("w/vault/v", MARKER)
        w.put("w/real/plain", MARKER)
        w.put("w/open/f", "fine")
        os.symlink("../real/plain", w.w + "/open/l.key")

    def test_nothing_is_read_or_changed(self):
        before = self.files()
        r = self.sh(
            "cat a.key sub/deep/er/b.key sub/deep/Secret/x vault/v "
            "open/l.key real/plain; grep -r . . --exclude-dir=.git | "
            "grep -v fine; ls -A vault sub/deep/Secret; "
            "for f in a.key sub/deep/er/b.key vault/n sub/deep/Secret/n; do "
            "echo x > $f; done; rm -rf vault a.key sub; mv sub sub2; "
            "mv sub/deep sub/d2; mv vault v2; ln a.key hard; cp a.key copy; "
            "cat copy hard; rm -f copy; cat open/f; echo y > open/f")
        self.eq(MARKER in r["stdout"], False, r)
        self.eq("fine" in r["stdout"], True, r)
        after = self.files()
        self.eq(after.pop("open/f", None), "y\n")
        for gone in ("open/f", "sub/b.txt"):  # no deny names them
            before.pop(gone, None)
        self.eq(after, before)
        self.world.put("w/open/f", "fine")

    def files(self):
        out = {}
        for top, _, names in os.walk(self.world.w):
            for n in names:
                path = os.path.join(top, n)
                if not os.path.islink(path) and n != "hard":
                    with open(path) as f:
                        out[os.path.relpath(path, self.world.w)] = f.read()
        return out

    def test_from_a_directory_below(self):
        for cwd in ("sub", "sub/deep", "sub/deep/er"):
            r = self.sh("cat $(find . -type f); :", cwd=cwd)
            self.eq(MARKER in r["stdout"], False, r)
        self.refused(self.svc.run("sh", "-c", "true", cwd="sub/deep/Secret"),
                     403, "policy.path_denied")

    def test_odd_names(self):
        w = self.world
        odd = ["sub/new\nline/x.key", "sub/ *?[a]/ y.key", "sub/é/ü.key",
               "sub/-rf/--.key", 'sub/"\\/.key']
        for n in odd:
            w.put("w/" + n, MARKER)
        w.own()
        r = self.sh("grep -ra . sub; :")
        self.eq(MARKER in r["stdout"], False, r)
        for n in odd:
            self.eq(w.get("w/" + n), MARKER.encode())

    def test_too_many(self):
        w = self.world
        for i in range(257):
            w.put(f"w/many/{i}.key", MARKER)
        w.own()
        self.refused(self.svc.run("sh", "-c", "true", cwd="many"), 403,
                     "sandbox.too_many_denied")
        os.unlink(w.w + "/many/256.key")
        begun = time.time()
        r = self.sh("cat many/*.key; :", cwd=w.w + "/many")
        self.under(time.time() - begun, 10, "seconds with 256 covers")
        self.eq(r["stdout"], "", r)
        subprocess.run(["rm", "-rf", w.w + "/many"], check=True)

    def test_a_directory_that_nobody_may_list(self):
        w = self.world
        w.put("w/shut/x.key", MARKER)
        w.own()
        os.chmod(w.w + "/shut", 0o311)
        r = self.sh("cat shut/x.key; chmod 700 shut; cat shut/x.key; :")
        self.eq(MARKER in r["stdout"], False, r)
        os.chmod(w.w + "/shut", 0o755)
        subprocess.run(["rm", "-rf", w.w + "/shut"], check=True)

    def test_who_moves_them_meanwhile(self):
        """One move while a command is set up: it is refused, or it came too
        late and the cover went along."""
        w, codes = self.world, set()
        for i in range(60):
            w.put("w/race/on/x.key", MARKER)
            w.put("w/race/off/none", "")
            w.own()
            t = threading.Timer(i / 3000, os.rename,
                                (w.w + "/race/on", w.w + "/race/moved"))
            t.start()
            a = self.svc.run("sh", "-c", "cat race/*/x.key; sleep 0.02; "
                             "cat race/*/x.key; :")
            t.join()
            codes.add((a.status, a.code))
            self.eq(a.status == 200 and MARKER in a.json["stdout"], False, a)
            subprocess.run(["rm", "-rf", w.w + "/race"], check=True)
        self.eq(codes <= {(200, None), (403, "policy.path_changed"),
                          (503, "sandbox.unavailable")}, True, codes)
        self.eq((403, "policy.path_changed") in codes, True, codes)


class Door(Box):
    """A socket of the host that lies in the working directory."""

    def test_nothing_gets_through_a_pair(self):
        w = self.world
        path = w.w + "/door"
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM,
                     socket.SOCK_SEQPACKET):
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.bind(path)
                os.chmod(path, 0o777)
                s.settimeout(0.2)
                if kind != socket.SOCK_DGRAM:
                    s.listen()
                self.sh("""exec python3 -c '
import socket
def may(f, *a):
    try: return f(*a)
    except OSError: return None
for kind in (1, 2, 3, 5, 0x80001, 0x80002, 0x80802, 0x80003):
    for end in may(socket.socketpair, socket.AF_UNIX, kind) or ():
        may(end.sendto, b"out", "door")
        may(end.sendmsg, [b"out"], [], 0, "door")
        may(end.connect, "door")
        may(end.shutdown, 2)
        may(end.connect, "door")
        may(end.send, b"out")
'""")
                with self.assertRaises(TimeoutError):
                    if kind == socket.SOCK_DGRAM:
                        s.recv(9)
                    else:
                        s.accept()
            os.unlink(path)


class DeniedReadonly(Denied):
    cwd = {**Denied.cwd, "readonly": True}

    def test_nothing_is_read_or_changed(self):
        before = self.files()
        r = self.sh("grep -r . .; rm -rf vault a.key; chmod 777 sub; "
                    "mv sub s2; echo x > open/f")
        self.eq(MARKER in r["stdout"], False, r)
        self.eq(self.files(), before)


class Protected(Box):
    """Names of sandbox.protect, as configured."""
    conf_more = {"sandbox": {"protect": [".git", "keep"]}}

    @classmethod
    def fill(cls, w):
        w.put("w/keep/f", "kept")
        w.put("w/.claude/f", "free")

    def test_configured_names(self):
        r = self.sh("echo x > keep/f; mv keep k2; rm -rf keep; "
                    "echo x > .claude/f && rm -r .claude && echo done")
        self.eq(r["stdout"], "done\n")
        self.eq(r["sandbox"]["appeared"], [])
        self.eq(self.world.get("w/keep/f"), b"kept")

    def test_it_is_audited(self):
        r = self.sh("mkdir .git")
        made = self.world.w + "/.git"
        self.eq(r["sandbox"]["appeared"], [made])
        self.eq([e["sandbox_appeared"] for e in self.svc.audits(
            lambda e: "sandbox_appeared" in e)
            if "sandbox_appeared" in e], [[made]])
        os.rmdir(made)


class Nested(Box):
    """H14: repositories below the directory are protected like it."""

    @classmethod
    def fill(cls, w):
        for at in ("w", "w/one", "w/deep/er/two", "w/.hidden/three"):
            w.put(at + "/.git/hooks/sample", "kept")
            w.put(at + "/.git/config", "kept")
            w.put(at + "/.git/HEAD", "x")
            w.put(at + "/src/f", "x")
        w.put("w/one/.claude/settings", "kept")
        w.put("w/tree/.git", "gitdir: elsewhere")
        w.put("w/plain/.claude/settings", "free")
        w.link("w/to", "outside")

    def test_hooks_and_configuration(self):
        w = self.world
        r = self.sh(
            "for d in one deep/er/two .hidden/three; do cd $d; "
            "echo evil > .git/hooks/post-checkout; echo evil >> .git/config; "
            "echo evil > .git/hooks/sample; mv .git .x; rm -rf .git/hooks; "
            "echo f > src/f; echo n > .git/new || echo $d; cd -; "
            "done >/dev/null; mv one uno; mv deep/er deep/re; mv deep d; "
            "echo evil > tree/.git; rm -f tree/.git; "
            "echo evil > one/.claude/settings; "
            "echo fine > plain/.claude/settings; ls -d one deep/er plain")
        self.eq(r["stdout"], "deep/er\none\nplain\n", r)
        for at in ("w/one", "w/deep/er/two", "w/.hidden/three"):
            self.eq((w.get(at + "/.git/hooks/sample"),
                     w.get(at + "/.git/config"), w.get(at + "/src/f"),
                     os.listdir(w / at + "/.git/hooks"), w.get(
                         at + "/.git/new")),
                    (b"kept", b"kept", b"f\n", ["sample"], b"n\n"), at)
        self.eq((w.get("w/tree/.git"), w.get("w/one/.claude/settings"),
                 w.get("w/plain/.claude/settings")),
                (b"gitdir: elsewhere", b"kept", b"fine\n"))
        self.eq("protect_partial" in r["sandbox"], False, r)

    def test_a_name_appears_in_one(self):
        r = self.sh("echo x > one/.git/config.worktree; mkdir one/.vscode; "
                    "mkdir plain/.git")
        self.eq(sorted(r["sandbox"]["appeared"]),
                [self.world.w + "/one/.git/config.worktree",
                 self.world.w + "/one/.vscode"])
        subprocess.run(["rm", "-r", *r["sandbox"]["appeared"],
                        self.world.w + "/plain/.git"], check=True)

    def test_what_is_made_in_a_run_is_free_in_it(self):
        r = self.sh("mkdir -p new/.git/hooks && echo x > new/.git/hooks/h && "
                    "rm -r new && echo gone")
        self.eq(r["stdout"], "gone\n", r)

    def test_more_than_are_looked_at(self):
        """A thousand directories, those above first; and it is said."""
        w = self.world
        for i in range(40):
            os.makedirs(f"{w.w}/many/{i}")
            for k in range(30):
                os.makedirs(f"{w.w}/many/{i}/{k}/x")
        w.put("w/many/near/.git/config", "kept")
        w.put("w/many/39/29/x/far/.git/config", "old")
        w.own()
        begun = time.time()
        r = self.sh("echo evil > many/near/.git/config; "
                    "echo evil > one/.git/config; echo ran")
        self.under(time.time() - begun, 5, "seconds")
        self.eq((r["stdout"], r["sandbox"].get("protect_partial")),
                ("ran\n", True), r)
        self.eq((w.get("w/many/near/.git/config"), w.get("w/one/.git/config")),
                (b"kept", b"kept"))
        subprocess.run(["rm", "-rf", w.w + "/many"], check=True)

    def test_decoys(self):
        """What a command makes does not push out what was protected."""
        w = self.world
        w.put("w/far/a/b/c/repo/.git/config", "kept")
        w.own()
        self.eq(self.sh("echo ran")["stdout"], "ran\n")
        self.sh("mkdir decoys one/more; cd decoys; "
                "for i in $(seq 1100); do mkdir $i; done; cd ../one/more; "
                "for i in $(seq 21000); do echo $i; done | xargs touch")
        r = self.sh("echo evil > far/a/b/c/repo/.git/config; "
                    "echo evil > deep/er/two/.git/config; "
                    "mv far/a/b far/a/x; echo ran")
        self.eq((r["stdout"], r["sandbox"].get("protect_partial")),
                ("ran\n", True), r)
        self.eq([w.get(at + "/.git/config") for at in (
            "w/far/a/b/c/repo", "w/deep/er/two")], [b"kept", b"kept"])
        # who is outside may take one away, and bring it back
        os.rename(w.w + "/far/a/b/c/repo", w.w + "/far/repo")
        self.eq(self.sh("ls far")["stdout"], "a\nrepo\n")
        os.rename(w.w + "/far/repo", w.w + "/far/a/b/c/repo")
        subprocess.run(["rm", "-rf", w.w + "/far", w.w + "/decoys",
                        w.w + "/one/more"], check=True)
        self.eq(self.sh("ls -d decoys far || echo none")["stdout"], "none\n")

    def test_a_huge_directory(self):
        """It keeps nobody waiting."""
        w = self.world
        os.makedirs(w.w + "/huge")
        for i in range(21000):
            os.symlink("x", f"{w.w}/huge/{i}")
        w.put("w/huge/z/.git/config", "old")
        r = self.sh("echo ran")
        took = []
        for _ in range(5):
            begun = time.time()
            self.sh("true")
            took.append(time.time() - begun)
        self.under(min(took), 0.5, "seconds")
        self.eq((r["stdout"], r["sandbox"].get("protect_partial")),
                ("ran\n", True), r)
        subprocess.run(["rm", "-rf", w.w + "/huge"], check=True)

    def test_many_repositories(self):
        """As many as can be mounted in time; the command runs."""
        w = self.world
        for i in range(200):
            w.put(f"w/all/{i}/.git/config", "kept")
            w.put(f"w/all/{i}/.git/hooks/sample", "kept")
        w.own()
        begun = time.time()
        r = self.sh("for i in all/*; do echo evil > $i/.git/config; done; "
                    "echo ran")
        self.under(time.time() - begun, 10, "seconds")
        left = sum(w.get(f"w/all/{i}/.git/config") == b"kept"
                   for i in range(200))
        self.eq((r["stdout"], r["sandbox"].get("protect_partial")),
                ("ran\n", True), r)
        self.eq(left >= 40, True, f"{left} of 200 are protected")
        subprocess.run(["rm", "-rf", w.w + "/all"], check=True)


class NestedDenied(Box):
    """A repository in what is not to be seen, and one around it."""
    cwd = {"deny": ["**/vault/**"]}

    @classmethod
    def fill(cls, w):
        for at in ("w/one", "w/one/vault/two", "w/vault/three", "w/one/four"):
            w.put(at + "/.git/config", MARKER if "vault" in at else "kept")

    def test_both_hold(self):
        w = self.world
        r = self.sh("cat */.git/config */vault/two/.git/config; for d in one "
                    "one/vault/two vault/three one/four; do "
                    "echo evil > $d/.git/config; done; ls -A vault one/vault; "
                    "cat one/four/.git/config")
        self.eq((r["stdout"].count("kept"), MARKER in r["stdout"]),
                (2, False), r)
        for at in ("w/one", "w/one/vault/two", "w/vault/three", "w/one/four"):
            self.eq(w.get(at + "/.git/config"),
                    MARKER.encode() if "vault" in at else b"kept", at)


class Links(Box):
    """Protected names that are links, and a directory above them."""

    @classmethod
    def fill(cls, w):
        w.put("w/dir/skill", "old")
        w.put("w/real.git/config", "old")
        w.put("outside/elsewhere/config", MARKER)
        w.link("w/.claude", "dir")
        w.link("w/.git", "real.git")
        w.link("w/.codex", "../outside/elsewhere")
        w.put("w/.agents/x", "old")
        w.link("w/.agents/skills", "../dir")
        w.link("w/.vscode", "nowhere")

    def test_T090_B42_it_runs_and_is_protected(self):
        w = self.world
        r = self.sh("echo evil > .claude/skill; echo evil > dir/skill; "
                    "echo evil > .git/config; echo evil > real.git/config; "
                    "cat .codex/config; echo evil > .codex/config; "
                    "echo evil > .agents/skills/skill; mv dir d2; "
                    "mv real.git rg; rm -rf .agents/skills; echo ran")
        self.eq((r["stdout"], r["sandbox"]["appeared"]), ("ran\n", []), r)
        self.eq((w.get("w/dir/skill"), w.get("w/real.git/config"),
                 w.get("outside/elsewhere/config"),
                 os.readlink(w.w + "/.agents/skills")),
                (b"old", b"old", MARKER.encode(), "../dir"))

    def test_B42_a_link_is_replaced(self):
        w = self.world
        r = self.sh("rm .git && ln -s dir .git; rm .vscode; ls -d dir")
        self.eq(sorted(r["sandbox"]["appeared"]),
                [w.w + "/.git", w.w + "/.vscode"], r)
        for name, to in ((".git", "real.git"), (".vscode", "nowhere")):
            if os.path.lexists(f"{w.w}/{name}"):
                os.unlink(f"{w.w}/{name}")
            w.link("w/" + name, to)


class Numbered(Box):
    """Cases that other sandboxes had, by their numbers."""
    cwd = {}

    def test_T085_typing_into_a_terminal(self):
        """In a run; and on a terminal of its own."""
        r = self.sh("""exec python3 -c '
import errno, fcntl, os, pty
a, b = pty.openpty()
for fd in (0, 1, 2, a, b):
    for cmd in (0x5412, 0x541C):
        try: fcntl.ioctl(fd, cmd, b"x"); print("typed", fd)
        except OSError as e: print(errno.errorcode[e.errno])
'""")
        self.eq(set(r["stdout"].split()), {"EPERM"}, r)

    def test_B48_rename_truncate_ioctl(self):
        r = self.sh("""exec python3 -c '
import errno, fcntl, os
def may(f, *a):
    try: f(*a); print("ok")
    except OSError as e: print(errno.errorcode[e.errno])
os.makedirs("d1"); os.makedirs("d2"); open("d1/f", "w").close()
may(os.rename, "d1/f", "d2/f")
may(os.link, "d2/f", "d1/f")
may(os.truncate, "d2/f", 3)
may(os.truncate, "/etc/passwd", 0)
fd = os.open("/dev/urandom", os.O_RDONLY)
may(fcntl.ioctl, fd, 0x80045200, b"1234")
'; rm -r d1 d2""")
        got = r["stdout"].split()
        self.eq(got[:3], ["ok"] * 3, r)
        self.among(got[3], ("EACCES", "EROFS"), r)
        if "landlock abi" in (log := self.svc.logged()) and int(
                log.split("landlock abi ")[1].split()[0]) >= 5:
            self.eq(got[4], "EACCES", r)

    def test_B55_B58_end_of_input_and_signals(self):
        begun = time.time()
        self.eq(self.sh("cat; kill -SEGV $$")["signal"], "SEGV")
        self.under(time.time() - begun, 5, "seconds")

    def test_H10_nothing_preloads_the_launcher(self):
        """Whatever variables the program gets, the launcher has none."""
        for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "GLIBC_TUNABLES"):
            self.refused(self.svc.run("sh", "-c", "true", env={name: "x"}),
                         403, "policy.env_var_denied")
        if ROOT:
            t = threading.Thread(target=self.sh, args=("sleep 1",))
            t.start()
            found = None
            end = time.time() + 5
            while found is None and time.time() < end:
                for pid in self.svc.family():
                    try:
                        with open(f"/proc/{pid}/comm") as f:
                            if f.read().strip() != "abx-launch":
                                continue
                        with open(f"/proc/{pid}/environ", "rb") as f:
                            found = f.read()
                    except OSError:
                        pass
            t.join()
            self.among(found, (b"", b"PWD=/\0"), "bubblewrap sets that one")

    def test_H30_nothing_is_left_behind(self):
        before = sorted(os.listdir(self.world.w))
        self.sh("true")
        self.eq(sorted(os.listdir(self.world.w)), before)


class Etc(Box):
    """The /etc of the sandboxes, which is made while a service starts."""

    def test_the_first_command_finds_all_of_it(self):
        """Whatever runs as soon as there is an answer."""
        tree = ("cd /etc && find alternatives ssl ld.so.conf.d -type l "
                "-exec sh -c 'for l; do echo \"$l $(readlink $l)\"; done' x "
                "{} + | sort | cksum; cat services protocols ld.so.cache "
                "| cksum; ls")
        host = subprocess.run(["sh", "-c", tree], capture_output=True,
                              text=True).stdout.splitlines()
        for _ in range(3):
            w = World()
            self.addCleanup(w.remove)
            w.own()
            svc = self.start(self.conf(w), w)
            got = self.ok(svc.run("sh", "-c", tree)).json
            lines = got["stdout"].splitlines()
            self.eq(lines[:2], host[:2], got["stderr"])
            self.eq({"passwd", "group", "hosts", "nsswitch.conf"}
                    - set(lines[2:]), set())
            self.eq("shadow" in lines, False)
            self.refuse_writes(svc)
            svc.stop()

    def refuse_writes(self, svc):
        r = self.ok(svc.run("sh", "-c", "echo x >> /etc/hosts || echo > "
                            "/etc/new || rm /etc/hosts; echo $?")).json
        self.eq(r["stdout"].strip() != "0", True, r)


class NotNested(Box):
    conf_more = {"sandbox": {"protect": ["keep"]}}

    def test_without_git_among_the_names(self):
        self.world.put("w/one/.git/config", "old")
        self.world.own()
        self.sh("echo new > one/.git/config")
        self.eq(self.world.get("w/one/.git/config"), b"new\n")


class Jobs(Box):
    """Real small jobs, offline, in the default profile; memory and processes
    are what they are when nothing is said."""
    scope = {}

    @classmethod
    def conf(cls, w):
        return {"rules": [{"allow": "commands.run", "commands": {
            "allow": ["sh -c ..."], "timeout": "120s", "cwd": w.w,
            **cls.scope}}], "allow_lint_errors": True}

    def job(self, program, script, out, package=None):
        def there():
            return any(os.access(f"{d}/{program}", os.X_OK)
                       for d in ("/usr/bin", "/usr/local/bin"))

        if not there():
            if not ROOT or not shutil.which("apt-get"):
                self.skipTest(f"{program} is not installed")
            if why := apt(package or program):
                self.skipTest(f"cannot install {program}: {why}")
        r = self.sh(script, timeout=110)
        self.eq((r["exit_code"], r["stdout"]), (0, out), r)


class DebianJobs(Jobs):
    def test_python(self):
        self.job("python3", """
cat >m.py <<E
import concurrent.futures, json, sqlite3, subprocess, tempfile, threading
def f(n): return n * n
if __name__ == '__main__':
    with concurrent.futures.ThreadPoolExecutor(4) as e:
        print(sum(e.map(f, range(100))))
    d = sqlite3.connect('db'); d.execute('create table t (x)')
    d.execute('insert into t values (7)'); d.commit()
    print(d.execute('select x from t').fetchone()[0])
    print(subprocess.run(['sh', '-c', 'echo sub'], capture_output=True,
                         text=True).stdout, end='')
    with tempfile.TemporaryDirectory() as t: open(t + '/f', 'w').write('x')
E
python3 -m py_compile m.py && python3 m.py && rm -r m.py db __pycache__
""", "328350\n7\nsub\n")

    def test_git(self):
        self.job("git", """
mkdir repo && cd repo && git init -q -b main . 2>&1 &&
git config user.email a@example.org && git config user.name A &&
echo 1 >f && git add f && git commit -qm one && git branch b &&
echo 2 >>f && git commit -qam two && git checkout -q b && echo 3 >g &&
git add g && git commit -qm three && git merge -q main 2>&1 &&
git log --oneline | wc -l && git fsck --strict 2>/dev/null; git gc -q &&
cd .. && git clone -q repo copy && ls copy && rm -rf repo copy
""", "4\nf\ng\n")

    def test_make_and_cc(self):
        self.job("gcc", r"""
printf 'int puts(const char *);\nint main(void) { puts("built"); }\n' >a.c
printf 'a: a.o\n\tgcc -o a a.o\na.o: a.c\n\tgcc -O2 -c a.c\n' >Makefile
make -s -j4 && ./a && rm a a.o a.c Makefile
""", "built\n")

    def test_node(self):
        self.job("node", """
cat >s.js <<E
const fs = require('fs'), cp = require('child_process');
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) parentPort.postMessage(6 * 7);
else {
  fs.writeFileSync('out', 'x');
  console.log(cp.execSync('echo sub').toString().trim());
  new Worker(__filename).on('message', m => console.log(m));
}
E
node s.js && rm s.js out
""", "sub\n42\n")

    @timeout(300)
    def test_npm(self):
        self.job("npm", """
mkdir app dep && cd dep && cat >package.json <<E
{"name": "dep", "version": "1.0.0", "main": "i.js"}
E
echo 'module.exports = () => "from dep";' >i.js && npm pack -s && cd ../app &&
cat >package.json <<E
{"name": "app", "version": "1.0.0", "scripts": {
 "build": "mkdir -p dist && cp m.js dist/", "test": "node dist/m.js"}}
E
echo 'console.log(require("dep")());' >m.js &&
npm install --offline --no-audit --no-fund -s ../dep/dep-1.0.0.tgz &&
npm run -s build && npm test -s && cd .. && rm -rf app dep .npm
""", "dep-1.0.0.tgz\nfrom dep\n")

    @timeout(300)
    def test_cargo(self):
        self.job("cargo", r"""
PATH=/usr/bin:/bin; cargo init -q --vcs none --name a a && cd a &&
cat >>src/main.rs <<E
#[test] fn adds() { assert_eq!(1 + 1, 2); }
E
cargo build -q --offline && cargo run -q --offline &&
cargo test -q --offline 2>&1 | grep -o '1 passed' && cd .. && rm -rf a .cargo
""", "Hello, world!\n1 passed\n")

    def test_perl(self):
        self.job("perl", "perl -MPOSIX -e 'print floor(3.7), qq{\\n}; "
                 "print `echo sub`'", "3\nsub\n")


JAVA = """
mkdir -p p && cat >p/A.java <<E
package p;
import java.util.stream.*;
public class A {
  record P(int x, String s) {}
  public static void main(String[] a) throws Exception {
    System.out.println(IntStream.range(0, 1000).parallel().sum());
    Thread t = new Thread(() -> System.out.println(new P(1, "q")));
    t.start(); t.join();
    var b = new ProcessBuilder("echo", "sub").start();
    System.out.print(new String(b.getInputStream().readAllBytes()));
    byte[][] m = new byte[a.length * 32][];
    for (int i = 0; i < m.length; i++) m[i] = new byte[1 << 20];
    java.nio.file.Files.writeString(java.nio.file.Path.of("/tmp/f"), "x");
  }
}
E
javac -d out p/A.java && jar -cfe a.jar p.A -C out . &&
java -jar a.jar %s && rm -r p out a.jar
"""
JAVA_SAYS = "499500\nP[x=1, s=q]\nsub\n"


class JavaWithHeap(Jobs):
    """With what abx-sandbox(7) says of java: its heap is part of the machine's
    memory, whatever the limit, when nothing else is said."""
    scope = {"env_fixed": {"JAVA_TOOL_OPTIONS": "-Xms16m -Xmx256m"}}

    @timeout(300)
    def test_with_a_heap_that_fits(self):
        self.job("javac", JAVA % "a b", JAVA_SAYS, "default-jdk-headless")


class JavaDefault(Jobs):
    scope = {}

    @timeout(300)
    def test_without(self):
        with open("/proc/meminfo") as f:
            if int(f.readline().split()[1]) > 28 << 20:
                self.skipTest("the first heap is more than the limit here")
        self.job("javac", JAVA % "", JAVA_SAYS, "default-jdk-headless")


# Runs a program under a filter that answers the call numbered argv[1], when
# its first argument has one of the bits argv[2] (0: always), with errno
# argv[3].
REFUSING = r"""
import ctypes, os, struct, sys
nr, bits, err = (int(a, 0) for a in sys.argv[1:4])
def op(code, jt, jf, k):
    return struct.pack("HBBI", code, jt, jf, k)
rules = [op(0x20, 0, 0, 0), op(0x15, 0, 3 if bits else 1, nr)]
if bits:
    rules += [op(0x20, 0, 0, 16), op(0x45, 0, 1, bits)]
rules += [op(0x06, 0, 0, 0x50000 | err), op(0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(rules))
prog = ctypes.create_string_buffer(
    struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code)))
if ctypes.CDLL(None, use_errno=True).prctl(22, 2, prog, 0, 0):
    sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[4], sys.argv[4:])
"""
# Runs a program in a user namespace that has all users of this one, and in a
# mount namespace that belongs to it.
CONTAIN = """
import ctypes, os, sys
ready = os.pipe()
pid = os.getpid()
if os.fork() == 0:
    os.read(ready[0], 1)
    for name in ("uid", "gid"):
        with open(f"/proc/{pid}/{name}_map", "w") as f:
            f.write("0 0 65536")
    os._exit(0)
if ctypes.CDLL(None).unshare(0x10000000 | 0x20000):
    sys.exit("unshare")
os.write(ready[1], b"x")
if os.wait()[1]:
    sys.exit("uid_map")
for fd in ready:
    os.close(fd)
os.setresgid(0, 0, 0)
os.setresuid(0, 0, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
CALLS = {"x86_64": {"clone": 56, "seccomp": 317},
         "aarch64": {"clone": 220, "seccomp": 277}}
for _calls in CALLS.values():
    _calls.update(landlock_create_ruleset=444, landlock_add_rule=445,
                  landlock_restrict_self=446)


@needs_root
class FailClosed(Case):
    """Without a layer that is required nothing runs."""

    def begin(self, before, **sandbox):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        return w, self.start({
            "rules": [{"allow": "commands.run", "commands": {
                "allow": ["sh -c ..."], "cwd": w.w}},
                {"allow": "files.stat", "paths": w.w}],
            "allow_lint_errors": True, **sandbox}, world=w, before=before)

    def refuses(self, before, layer, word):
        w, svc = self.begin(before)
        a = svc.run("sh", "-c", "echo > ran")
        self.refused(a, 503, "sandbox.unavailable")
        self.eq(a.json["details"]["layer"], layer)
        self.eq(os.path.exists(w.w + "/ran"), False)
        self.ok(svc.stat("a.txt"))
        self.eq(word in svc.logged(), True, svc.logged())

    def fake(self, script):
        """abxd with that script in the place of bubblewrap."""
        fd, path = tempfile.mkstemp(prefix="abx-fake-")
        self.addCleanup(os.unlink, path)
        with open(fd, "w") as f:
            f.write("#!/bin/sh\nif [ \"$1\" = --help ]; then echo '--args "
                    "--as-pid-1 --disable-userns --bind-fd --ro-bind-fd "
                    "--clearenv --size --perms --die-with-parent "
                    "--new-session '; exit; fi\n"
                    "while [ \"$1\" != -- ]; do shift; done; shift\n"
                    + script)
        os.chmod(path, 0o755)
        return ("unshare", "-m", "--propagation", "private", "sh", "-c",
                f'mount --bind {path} "$(command -v bwrap)" && exec "$@"',
                "sh")

    def behind(self, call, bits, err):
        """abxd with a bubblewrap that starts the true one under a filter that
        refuses one call."""
        place = next((d for d in ("/usr/local/games", "/usr/games", "/usr/src",
                                  "/usr/local/src") if os.path.isdir(d)), None)
        if place is None or not os.access("/usr/bin/python3", os.X_OK):
            self.skipTest("no place for another bubblewrap, or no python3")
        refuse = self.filter(call, bits, err)
        fd, path = tempfile.mkstemp(prefix="abx-fake-")
        self.addCleanup(os.unlink, path)
        with open(fd, "w") as f:
            f.write("#!/usr/bin/python3\nimport sys\n"
                    f"sys.argv[1:] = {list(refuse[3:])!r} + ['{place}/bwrap']"
                    " + sys.argv[1:]\n" + REFUSING)
        os.chmod(path, 0o755)
        return ("unshare", "-m", "--propagation", "private", "sh", "-c",
                f'mount -t tmpfs none {place} && '
                f'cp "$(command -v bwrap)" {place}/bwrap && '
                f'mount --bind {path} "$(command -v bwrap)" && exec "$@"',
                "sh")

    def contained(self, script, outside="true"):
        """abxd as root of a user namespace with all users in it, as in a
        container, behind a script; and one before that is made."""
        wrap = ("unshare", "-m", "--propagation", "private", "sh", "-c",
                outside + ' && exec "$@"', "sh", sys.executable, "-c", CONTAIN,
                "sh", "-c", script + ' && exec "$@"', "sh")
        p = subprocess.run([*wrap, "true"], capture_output=True, text=True)
        if p.returncode:
            self.skipTest(f"no such namespaces here: {p.stderr.strip()}")
        return wrap

    def filter(self, call, bits, err):
        calls = CALLS.get(os.uname().machine)
        if calls is None:
            self.skipTest("knows no call numbers of this machine")
        return (sys.executable, "-c", REFUSING, str(calls[call]), str(bits),
                str(err))

    @hardened_only
    def test_a_bubblewrap_that_ignores_its_options(self):
        self.refuses(self.fake('exec "$@"\n'), "namespaces", "namespaces")

    @hardened_only
    def test_a_bubblewrap_that_does_half_of_them(self):
        self.refuses(self.fake('exec unshare -Urfp --mount-proc "$@"\n'),
                     "namespaces", "namespaces")

    @hardened_only
    def test_no_user_namespaces(self):
        self.refuses(self.filter("clone", 0x10000000, errno.EPERM),
                     "namespaces", "bwrap")

    @hardened_only
    def test_no_user_namespaces_are_left(self):
        self.refuses(self.contained("echo 0 > "
                                    "/proc/sys/user/max_user_namespaces"),
                     "namespaces", "bwrap")

    @hardened_only
    def test_proc_is_covered(self):
        """As containers do it: the kernel lets nobody mount another then."""
        cover = "mount --bind /dev/null /proc/timer_list"
        self.refuses(self.contained("true", cover), "namespaces", "proc")

    @hardened_only
    def test_in_a_container_that_allows_it(self):
        _, svc = self.begin(self.contained("true"))
        r = self.ok(svc.run("sh", "-c", "echo ran")).json
        self.eq((r["stdout"], r["sandbox"]["layers"]),
                ("ran\n", ["namespaces", "seccomp", "landlock"]))

    @hardened_only
    def test_seccomp_fails(self):
        for err in (errno.EINVAL, errno.ENOSYS, errno.EPERM):
            with self.subTest(errno.errorcode[err]):
                before = self.behind("seccomp", 1, err)
                self.refuses(before, "seccomp", "seccomp")
        # it is refused too when nobody requires it
        w, svc = self.begin(before, sandbox={"require": ["namespaces"]})
        self.refused(svc.run("sh", "-c", "echo > ran"), 503,
                     "sandbox.unavailable")
        self.eq(os.path.exists(w.w + "/ran"), False)

    @hardened_only
    def test_landlock_fails_half_way(self):
        for call in ("landlock_add_rule", "landlock_restrict_self"):
            with self.subTest(call):
                self.refuses(self.behind(call, 0, errno.EPERM), "landlock",
                             "landlock")

    @hardened_only
    def test_no_landlock(self):
        off = self.filter("landlock_create_ruleset", 0, errno.ENOSYS)
        self.refuses(off, "landlock", "landlock")
        w, svc = self.begin(off, sandbox={
            "require": ["namespaces", "seccomp"]})
        r = self.ok(svc.run("sh", "-c", "echo > ran; touch /usr/x /etc/x "
                            "/dev/x /x; echo $?")).json
        self.eq((r["stdout"], r["sandbox"]["layers"]),
                ("1\n", ["namespaces", "seccomp"]))
        self.eq(os.path.exists(w.w + "/ran"), True)


if __name__ == "__main__":
    unittest.main()
