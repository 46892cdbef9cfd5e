# SPDX-License-Identifier: ISC
"""A program that tries every call, path, socket and quota from inside, and
what comes of it with each combination of layers: regress/inside/expected.txt
has every line that it may say."""
import errno
import os
import shutil
import unittest

import test_sandbox
from abxtest import ASAN, BUILD, ROOT, Case, World, needs_root

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                     "inside", "expected.txt")
DEATHS = ("minus-one", "x32-getpid", "x32-mount", "x32-ptrace", "x32-execve",
          "x32-io_uring", "int80-getpid", "int80-mount", "int80-ptrace")
X86 = os.uname().machine == "x86_64"


def table(combination):
    """{(group, name): results that may be} of one combination."""
    want = {}
    with open(TABLE) as f:
        for text in f:
            words = text.split()
            if not words or words[0] == "#":
                continue
            group, name, usual, *others = words
            found = dict(o.split("=", 1) for o in others)
            if not X86 and found.pop("only", None) == "x86_64":
                continue
            found.pop("only", None)
            got = next((found[c] for c in combination if c in found), usual)
            if got != "-":
                want[group, name] = got.split("|")
    return want


@unittest.skipIf(ASAN, "the calls of the hardened build")
class Inside(Case):
    """Combinations are looked up in the table from the first name on."""
    names = ()
    scope = {}
    cwd = {}
    more = {}
    layers = ["namespaces", "seccomp", "landlock"]

    @classmethod
    def setUpClass(cls):
        cls.program = f"{BUILD}/regress/inside"
        if not os.path.exists(cls.program):
            raise unittest.SkipTest("make build/regress/inside")
        cls.own_setup()

    @classmethod
    def own_setup(cls):
        super().setUpClass()

    @classmethod
    def fill(cls, w):
        os.mkdir(w / "bin", 0o755)
        shutil.copy(cls.program, w / "bin/inside")
        w.put("w/.git/config", "x")
        w.put("w/.git/hooks/sample", "x")
        w.link("w/leak", w / "outside/secret.txt")

    @classmethod
    def conf(cls, w):
        scope = {"allow": ["inside ..."], "timeout": "60s",
                 "exec_dirs": ["/usr/bin", w / "bin"], **cls.scope}
        if cls.cwd is not None:
            scope["cwd"] = {"roots": [w.w], **cls.cwd}
        return {"rules": [{"allow": "commands.run", "commands": scope}],
                "allow_lint_errors": True, **cls.more}

    def inside(self, *argv):
        return self.ok(self.svc.run("inside", *argv)).json

    def own(self):
        """What the service has, by name."""
        s = self.svc
        return {"config": s.file, "conf": self.world / "conf",
                "state": self.world / "state", "log": self.world / "log",
                "outside": self.world.outside, "evil": self.world / "w-evil",
                "secret": self.world.outside + "/secret.txt",
                "build": BUILD, "program": self.world / "bin/inside"}

    def said(self, *groups):
        own = [f"{k}={v}" for k, v in self.own().items()]
        r = self.inside(*groups, "--", *own)
        self.eq((r["exit_code"], r["stderr"], r["sandbox"]["layers"]),
                (0, "", self.layers), r)
        got = {}
        for text in r["stdout"].splitlines():
            group, name, result = text.split(" ", 2)
            self.eq((group, name) in got, False, "said twice: " + text)
            got[group, name] = result.replace(" ", ":")
        return got

    def test_everything(self):
        want = table(self.names + ("root" if ROOT else "user",))
        got = self.said("calls", "sockets", "places", "limits")
        wrong = [f"{' '.join(k)} {got.get(k, '(nothing)')}, expected "
                 f"{'|'.join(want.get(k, ['(nothing)']))}"
                 for k in sorted(set(got) | set(want))
                 if got.get(k) not in want.get(k, ())]
        self.eq("\n".join(wrong[:40]), "", f"{len(wrong)} of {len(got)}")
        self.eq(len(got) > 400, True, f"{len(got)} lines")
        # the files are as they were
        self.eq((self.world.get("w/a.txt"), self.world.get("w/sub/b.txt"),
                 self.world.get("w/.git/config")),
                (b"hello\n", b"below\n", b"x"))

    @unittest.skipUnless(X86, "calls of x86_64")
    def test_deaths(self):
        for name in DEATHS:
            r = self.inside("die", name)
            ends = ["SYS"]
            if name.startswith("int80"):
                ends.append("SEGV")  # a kernel without 32-bit calls
            with self.subTest(name):
                self.among(r["signal"], ends, r)
                self.eq(r["stdout"], "")


class Default(Inside):
    pass


class Strict(Inside):
    names = ("strict",)
    scope = {"sandbox": "strict"}


class Readonly(Inside):
    names = ("readonly",)
    cwd = {"readonly": True}


class NoCwd(Inside):
    names = ("nocwd",)
    cwd = None


class Session(Inside):
    """All commands of a session are in one sandbox."""
    names = ("session",)

    def inside(self, *argv):
        return self.ok(self.svc.run("inside", *argv, session="one")).json

    def test_twice(self):
        """The second command finds what the first one left, and no more."""
        self.test_everything()
        self.test_everything()


class StrictReadonly(Inside):
    names = ("readonly", "strict")  # it cannot be made, still less run
    scope = {"sandbox": "strict"}
    cwd = {"readonly": True}


@needs_root
class NoLandlock(Inside):
    """Mounts and modes alone hold what they can."""
    names = ("nolandlock",)
    layers = ["namespaces", "seccomp"]
    more = {"sandbox": {"require": ["namespaces", "seccomp"]}}

    @classmethod
    def own_setup(cls):
        pass

    def setUp(self):
        self.world = World()
        self.addCleanup(self.world.remove)
        self.fill(self.world)
        self.world.own()
        before = test_sandbox.FailClosed.filter(self, "landlock_create_ruleset", 0,
                                   errno.ENOSYS)
        self.start(self.conf(self.world), world=self.world, before=before)


class NoLandlockReadonly(NoLandlock):
    names = ("nolandlock", "readonly")
    cwd = {"readonly": True}


del Inside  # it is no combination


if __name__ == "__main__":
    unittest.main()
