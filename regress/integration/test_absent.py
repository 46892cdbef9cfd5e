# SPDX-License-Identifier: ISC
"""sandbox.protect_absent: protected names that are not there cannot be made
by a command, and nothing of what keeps them from it is left behind."""
import glob
import os
import shutil
import signal
import subprocess
import threading

from abxtest import Case, World, until

NAMES = [".git", ".claude", ".codex", ".agents", ".aleph", ".vscode"]
GIT = ["hooks", "config.worktree", "commondir"]


class Absent(Case):
    sandbox = {"protect_absent": True}

    @classmethod
    def conf(cls, w):
        return {"rules": [{"allow": "commands.run", "commands": {
            "allow": ["sh -c ...", "git ..."], "timeout": "30s",
            "cwd": {"roots": [w.w]}}}],
            "sandbox": cls.sandbox, "allow_lint_errors": True}

    def setUp(self):
        super().setUp()
        self.clear()

    def clear(self):
        """Empty; placeholders of the test before may be going just now."""
        for name in os.listdir(self.world.w):
            path = f"{self.world.w}/{name}"
            shutil.rmtree(path, ignore_errors=True)
            try:
                os.unlink(path)
            except FileNotFoundError:
                pass

    def sh(self, script, **kw):
        return self.ok(self.svc.run("sh", "-c", script, **kw)).json

    def beside(self, script):
        """The same beside the test; a function that waits for its result."""
        got = []
        t = threading.Thread(
            target=lambda: got.append(self.svc.run("sh", "-c", script)))
        t.start()

        def wait():
            t.join()
            return got[0]
        return wait

    def here(self):
        return sorted(os.listdir(self.world.w))

    def gone(self, *but):
        """All placeholders are: only these are left."""
        until(10, lambda: self.here() == sorted(but))
        self.eq(self.here(), sorted(but))
        self.eq(glob.glob(f"{self.world.w}/.abx-*"), [])

    def held(self, script="touch up; sleep 60"):
        """A command that runs until it is not wanted any more."""
        wait = self.beside(f"{script} & while [ ! -e down ]; do sleep 0.05; "
                           "done; kill %1")
        self.eq(until(20, lambda: os.path.exists(self.world / "w/up")), True)
        return wait

    def let_go(self, wait):
        self.world.put("w/down")
        r = self.ok(wait())
        for name in ("up", "down"):
            os.unlink(self.world / f"w/{name}")
        return r.json

    def test_none_can_be_made(self):
        names = " ".join(NAMES)
        r = self.sh(
            f"for n in {names}; do mkdir -p $n/a && echo made $n; "
            "echo x 2>/dev/null >$n && echo wrote $n; rmdir $n 2>/dev/null "
            "&& echo removed $n; mv $n other 2>/dev/null && echo moved $n; "
            "ln -s /tmp $n/l 2>/dev/null && echo linked $n; done; ls -A; "
            "echo fine >fine")
        self.eq(sorted(r["stdout"].split()), sorted(NAMES), r)
        self.eq(r["sandbox"]["appeared"], [])
        self.gone("fine")

    def test_of_a_repository(self):
        """What is missing of a .git that is there, commondir above all."""
        w = self.world
        w.put("w/.git/HEAD", "ref: refs/heads/master\n")
        w.put("w/.git/config", "[core]\n\tbare = false\n")
        for name in ("objects", "refs/heads"):
            os.makedirs(w / f"w/.git/{name}")
        w.own()
        r = self.sh(
            "mkdir evil; printf '../evil\\n' >.git/commondir && echo wrote; "
            "rm -f .git/commondir && echo removed; "
            "mv evil .git/commondir && echo moved; "
            "echo x >.git/config.worktree && echo wrote; "
            "echo x >.git/hooks/post-commit && echo wrote; "
            "rm -r .git/hooks && echo removed; "
            "rm -r .git 2>/dev/null; mv .git g2 && echo moved; "
            "ls .git | tr '\\n' ' '; echo x >.git/index.lock && echo lock")
        self.eq(r["stdout"].endswith("lock\n"), True, r)
        for word in ("wrote", "removed", "moved"):
            self.eq(word in r["stdout"], False, r)
        self.eq(r["sandbox"]["appeared"], [])
        left = lambda: [n for n in GIT if os.path.lexists(w / f"w/.git/{n}")]
        until(10, lambda: not left())
        self.eq(left(), [])

    def test_git_works(self):
        if not shutil.which("git"):
            self.skipTest("needs git")
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null"}
        subprocess.run(["git", "init", "-q", self.world.w], check=True,
                       env=env)
        shutil.rmtree(self.world / "w/.git/hooks")
        self.world.own()
        r = self.sh("git -c user.name=a -c user.email=a@b commit -q "
                    "--allow-empty -m one && git log --format=%s && "
                    "git status -s && git branch b && git gc -q && "
                    "git rev-parse --show-toplevel")
        self.eq((r["exit_code"], r["stdout"]),
                (0, f"one\n{self.world.w}\n"), r)
        r = self.sh("git init -q sub; cd sub && git commit --allow-empty")
        self.eq("sub/.git" in str(r["sandbox"]["appeared"]), False, r)
        left = [n for n in GIT
                if os.path.lexists(self.world / f"w/.git/{n}")]
        until(10, lambda: not [n for n in GIT if os.path.lexists(
            self.world / f"w/.git/{n}")])
        self.eq([n for n in GIT if os.path.lexists(
            self.world / f"w/.git/{n}")], [], left)

    def test_the_last_one_removes_it(self):
        wait = self.held("touch up; while [ ! -e down ]; do sleep 0.05; "
                         "done; mkdir .git/x; mkdir .git; echo end >out")
        for _ in range(3):
            r = self.sh("mkdir .git && echo made; ls -A .git")
            self.eq(r["stdout"], "", r)
            self.eq(os.path.isdir(self.world / "w/.git"), True)
        r = self.let_go(wait)
        self.eq("File exists" in r["stderr"], True, r)
        self.eq(r["sandbox"]["appeared"], [])
        until(10, lambda: not os.path.exists(self.world / "w/.git"))
        self.eq(os.path.exists(self.world / "w/.git"), False)

    def test_what_is_another_s_stays(self):
        w = self.world
        wait = self.held()
        w.put("w/.claude/settings", "somebody's")   # it is filled
        os.rmdir(w / "w/.vscode")                   # it is another
        os.mkdir(w / "w/keep")
        os.mkdir(w / "w/.vscode")
        os.rmdir(w / "w/.codex")                    # it is a file
        w.put("w/.codex", "")
        self.let_go(wait)
        until(10, lambda: not os.path.exists(w / "w/.git"))
        self.eq(set(self.here()) & set(NAMES),
                {".claude", ".vscode", ".codex"})
        self.eq(w.get("w/.claude/settings"), b"somebody's")

    def test_a_number_that_is_used_again(self):
        """A new one may have the number of one that somebody removed while
        it was held: the end of that one's sandbox leaves it alone."""
        wait = self.held()
        for name in NAMES:
            os.rmdir(self.world / f"w/{name}")
        again = self.beside("touch up2; while [ ! -e down2 ]; do sleep 0.05; "
                            "done; mkdir .git && echo made")
        self.eq(until(20, lambda: os.path.exists(self.world / "w/up2")), True)
        self.let_go(wait)
        # its bubblewrap is reaped behind the answer
        self.eq(until(1, lambda: not os.path.exists(self.world / "w/.git")),
                False)
        self.world.put("w/down2")
        self.eq(self.ok(again()).json["stdout"], "")
        self.gone("up2", "down2")

    def left_behind(self, kill):
        self.svc.rough = True
        wait = self.held()
        self.eq(set(NAMES) <= set(self.here()), True, self.here())
        kill()
        try:
            wait()
        except (OSError, EOFError, IndexError, AssertionError):
            pass
        os.unlink(self.world / "w/up")

    def kill_all(self):
        # or execd might see the end of abxd before it gets its own signal
        os.kill(self.svc.kid("abx-execd"), signal.SIGSTOP)
        self.svc.kill()

    def test_a_killed_service(self):
        """What it left goes at the next start."""
        self.left_behind(self.kill_all)
        self.eq(set(NAMES) <= set(self.here()), True, self.here())
        self.svc.start()
        self.gone()
        self.eq(self.sh("mkdir .git && echo made")["stdout"], "")
        self.gone()

    def test_a_killed_execd(self):
        self.left_behind(
            lambda: os.kill(self.svc.kid("abx-execd"), signal.SIGKILL))
        self.gone()
        self.eq(until(10, lambda: self.svc.run(
            "sh", "-c", "true").status == 200), True)

    def test_a_journal_that_lies(self):
        """Nothing is removed because of its name, whatever is written."""
        w = self.world
        journal = w / "state/execd.journal"
        w.put("w/d/keep", "")
        w.put("w/full", "text")
        os.mkdir(w / "w/empty")
        w.put("w/none", "")
        st = {n: os.stat(w / f"w/{n}") for n in ("d", "full", "empty",
                                                 "none")}
        self.svc.stop()

        def line(name, kind, ino=0):
            s = st[name]
            return (f"+ {s.st_dev} {s.st_ino + ino} {kind} "
                    + (w / f"w/{name}").encode().hex() + "\n")
        with open(journal, "a") as f:
            f.write(line("d", 0) + line("full", 1) + line("full", 2)
                    + line("empty", 0, 1) + line("none", 1, 7)
                    + line("none", 2) + "garbage\n+ 1 2\n? zz\n"
                    + "? " + (w / "w/empty").encode().hex() + "\n"
                    + "+ 1 1 9 2f\n- x\n+ ")
        self.svc.start()
        self.gone("d", "full", "empty", "none")
        self.eq(os.path.getsize(journal), 0)


class Off(Absent):
    """Without it nothing is made, and what an earlier life left goes."""
    sandbox = {}

    def test_none_can_be_made(self):
        r = self.sh("ls -A; mkdir .git && echo made")
        self.eq(r["stdout"], "made\n")
        self.eq(r["sandbox"]["appeared"], [f"{self.world.w}/.git"])
        self.gone(".git")

    def test_what_is_left_of_before(self):
        """The setting was on, the service was killed, now it is off."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        conf = self.conf(w)
        shared = self.svc
        self.addCleanup(setattr, self, "world", self.world)
        self.world = w
        self.clear()
        conf["sandbox"] = {"protect_absent": True}
        self.start(conf, w)
        self.addCleanup(setattr, self, "svc", shared)
        self.left_behind(self.kill_all)
        self.eq(set(NAMES) <= set(self.here()), True, self.here())
        conf["sandbox"] = {}
        self.start(conf, w)
        self.gone()


for name in [n for n in dir(Absent) if n.startswith("test_")]:
    if name not in vars(Off):
        setattr(Off, name, None)
