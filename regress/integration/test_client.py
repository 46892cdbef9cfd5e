# SPDX-License-Identifier: ISC
"""abxctl as a client: files there and back, commands, and a service that
lies."""
import hashlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from abxtest import (ADMIN, BUILD, GUEST, OWN, READ, SLOW, WRITE, Case, World,
                     marked, until)

EVERY = bytes(b for b in range(1, 256) if b != ord("/"))
ODD = [b"\xff\x01-x", b"new\nline", b" ", b"-rf", b"%41?&#", b"\xc3\xa9",
       EVERY[:200], EVERY[200:], "name \u202e.txt".encode()]
PROC = ["process.start", "process.output", "process.stdin", "process.wait",
        "process.list", "process.get"]


def abxctl(svc, *argv, token=ADMIN, stdin=b"", cwd=None, env=None, **kw):
    full = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    if token:
        full["ABX_SERVER_TOKEN"] = token
    full.update(env or {})
    at = ["--socket", svc.unix] if svc.unix else [
        "--url", f"http://127.0.0.1:{svc.port}"]
    return subprocess.run([f"{BUILD}/abxctl", argv[0], *at, *argv[1:]],
                          env=full, input=stdin, capture_output=True,
                          cwd=cwd, timeout=60 * SLOW, **kw)


def start(svc, *argv, **kw):
    return subprocess.Popen(
        [f"{BUILD}/abxctl", argv[0], "--url", f"http://127.0.0.1:{svc.port}",
         *argv[1:]], env={"PATH": os.environ["PATH"],
                          "ABX_SERVER_TOKEN": ADMIN},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def rules(w):
    return {"allow_lint_errors": True, "rules": [
        {"allow": READ + WRITE, "principals": ["id:root"], "paths": {
            "roots": w.w, "deny": ["**/.env"]}},
        {"allow": ["commands.run"] + PROC, "limits": {"concurrency": 16},
         "commands": {"allow": ["sh -c ...", "cat", "true", "sleep {int}",
                                "sha256sum"],
                      "cwd": w.w, "timeout": "60s", "env_set": ["X"],
                      "max_output_bytes": 40_000_000}},
        {"allow": "process.signal", "principals": ["id:root"]}]}


class Client(Case):
    @classmethod
    def conf(cls, w):
        return rules(w)

    def setUp(self):
        super().setUp()
        self.here = tempfile.mkdtemp(prefix="abx-test-client-")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.here])

    def ctl(self, *argv, want=0, **kw):
        out = abxctl(self.svc, *argv, **kw)
        if out.returncode != want:
            self.fail(f"abxctl {argv}\n  expected: exit {want}\n"
                      f"  got:      {out}")
        return out

    def file(self, name, data):
        path = os.path.join(self.here, name)
        with open(path, "wb") as f:
            f.write(data)
        return path


class Files(Client):
    def test_there_and_back(self):
        data = os.urandom(300_000)
        path = self.file("x", data)
        self.ctl("put", path, "up/x.bin")
        self.eq(self.world.get("w/up/x.bin"), data)
        self.eq(self.ctl("cat", "up/x.bin").stdout, data)
        self.ctl("get", "up/x.bin", cwd=self.here)
        with open(self.here + "/x.bin", "rb") as f:
            self.eq(f.read(), data)
        self.eq(sorted(os.listdir(self.here)), ["x", "x.bin"])
        self.ctl("mv", "up/x.bin", "up/y.bin")
        self.eq(self.ctl("ls", "up").stdout, b"y.bin\n")
        self.eq(json.loads(self.ctl("mv", "--json", "up/y.bin", "up/z")
                           .stdout), {"src": "up/y.bin", "dst": "up/z"})
        self.ctl("mv", "up/z", "up/y.bin")
        out = self.ctl("ls", "-l", "up").stdout
        self.assertRegex(out, rb"^-rw-r-----       300000 "
                              rb"\d{4}-\d\d-\d\d \d\d:\d\d y.bin\n$")
        self.ctl("rm", "up", want=1)
        self.eq(json.loads(self.ctl("rm", "-r", "--json", "up").stdout),
                {"deleted": 2})
        self.eq(os.path.exists(self.world / "w/up"), False)

    def test_names_of_any_bytes(self):
        """They survive put, ls, get, mv and rm."""
        path = self.file("x", b"odd")
        for name in ODD:
            there = b"odd/" + name
            self.ctl("put", path, there)
            self.eq(os.listdir(os.fsencode(self.world / "w/odd")), [name])
            self.eq(self.ctl("ls", "-0", "odd").stdout, name + b"\0")
            self.eq(self.ctl("ls", "-0R", "odd").stdout, name + b"\0")
            self.eq(self.ctl("cat", there).stdout, b"odd")
            got = os.path.join(os.fsencode(self.here), b"got")
            self.ctl("get", there, got)
            self.ctl("mv", there, there[:-1] + b"~")
            self.ctl("rm", there[:-1] + b"~")
            self.eq(os.listdir(self.world / "w/odd"), [])
        self.ctl("rm", "-r", "odd")

    def test_put(self):
        path = self.file("x", b"one")
        self.ctl("put", "--new", "--mode", "0600", path, "p/a")
        self.eq(os.stat(self.world / "w/p/a").st_mode & 0o777, 0o600)
        self.assertIn(b"fs.changed", self.ctl("put", "--new", path, "p/a",
                                              want=1).stderr)
        etag = self.svc.stat("p/a").json["etag"]
        self.ctl("put", "--if-match", etag, "-", "p/a", stdin=b"two")
        self.eq(self.world.get("w/p/a"), b"two")
        self.assertIn(b"fs.changed", self.ctl(
            "put", "--if-match", etag, path, "p/a", want=1).stderr)
        self.eq(self.world.get("w/p/a"), b"two")
        self.ctl("put", path, "p/")
        self.eq(self.world.get("w/p/x"), b"one")
        for n in (0, 1, 65536, 200_001):
            data = os.urandom(n)
            self.ctl("put", "-", "p/s", stdin=data)
            self.eq(self.world.get("w/p/s"), data)
        out = json.loads(self.ctl("put", "--json", path, "p/j").stdout)
        self.eq(out["sha256"], hashlib.sha256(b"one").hexdigest())
        self.ctl("put", self.here + "/none", "p/a", want=2)
        self.ctl("put", "--if-match", 'bad"\r\nX: y', path, "p/a", want=2)
        self.eq(self.world.get("w/p/a"), b"two")

    def test_get_resumes(self):
        data = os.urandom(1_000_000)
        self.world.put("w/big", data)
        self.world.own("w")
        dest = self.here + "/big"
        with Broken(self.svc.port, 400_000) as mid:
            out = abxctl(mid, "get", "big", dest)
        self.eq(out.returncode, 3, out.stderr)
        part = [n for n in os.listdir(self.here) if n.endswith(".part")]
        self.eq(len(part), 1, os.listdir(self.here))
        have = os.stat(f"{self.here}/{part[0]}").st_size
        self.among(have, range(100_000, 400_001))
        self.ctl("get", "--sha256", hashlib.sha256(data).hexdigest(), "big",
                 dest)
        with open(dest, "rb") as f:
            self.assertEqual(f.read(), data)
        self.eq(os.listdir(self.here), ["big"])
        def went_on(r):
            return r.get("bytes_out") == 1_000_000 - have
        self.eq(len([r for r in self.svc.audits(went_on) if went_on(r)]), 1,
                "only what was missing came")

    def test_get_of_another_version(self):
        """A partial file of an old version is never gone on from."""
        self.world.put("w/big", b"1" * 900_000)
        self.world.own("w")
        with Broken(self.svc.port, 400_000) as mid:
            self.eq(abxctl(mid, "get", "big", self.here + "/b").returncode, 3)
        self.world.put("w/big", b"2" * 900_000)
        self.world.own("w")
        self.ctl("get", "big", self.here + "/b")
        with open(self.here + "/b", "rb") as f:
            self.assertEqual(f.read(), b"2" * 900_000)

    def test_get_compares(self):
        out = self.ctl("get", "--sha256", "0" * 64, "a.txt", cwd=self.here,
                       want=1)
        self.assertIn(hashlib.sha256(b"hello\n").hexdigest().encode(),
                      out.stderr)
        self.eq(os.listdir(self.here), [])

    def test_get_replaces_no_device(self):
        os.mkfifo(self.here + "/pipe")
        os.symlink(self.here + "/pipe", self.here + "/way")
        for name in "pipe", "way":
            out = self.ctl("get", "a.txt", f"{self.here}/{name}", want=2)
            self.assertIn(b"not a regular file", out.stderr)
        self.eq(sorted(os.listdir(self.here)), ["pipe", "way"])

    def test_get_minds_what_is_in_the_way(self):
        """Nothing is written through a link that has the partial's name."""
        self.world.put("w/big", b"1" * 900_000)
        self.world.own("w")
        with Broken(self.svc.port, 400_000) as mid:
            abxctl(mid, "get", "big", self.here + "/b")
        part = f"{self.here}/{os.listdir(self.here)[0]}"
        os.unlink(part)
        victim = self.file("victim", b"mine")
        os.symlink(victim, part)
        self.ctl("get", "big", self.here + "/b", want=2)
        with open(victim, "rb") as f:
            self.eq(f.read(), b"mine")

    def test_refusals(self):
        for argv, code in (
                (("cat", "/etc/passwd"), b"policy.path_not_allowed"),
                (("get", ".env"), b"policy.path_denied"),
                (("ls", "none"), b"fs.not_found"),
                (("rm", "none"), b"fs.not_found"),
                (("mv", "none", "x"), b"fs.not_found"),
                (("put", "/dev/null", ".env"), b"policy.path_denied"),
                (("run", "id"), b"policy.command_not_allowed")):
            out = self.ctl(*argv, want=1, cwd=self.here)
            self.assertRegex(out.stderr, rb"^abxctl: " + code + rb": .*\n$")
            self.eq(out.stdout, b"")
        self.assertIn(b"op.not_enabled",
                      self.ctl("ls", token=GUEST, want=1).stderr)
        self.assertIn(b"auth.invalid",
                      self.ctl("ls", token="x" * 20, want=1).stderr)
        out = self.ctl("ls", token=None, want=1).stderr
        self.assertIn(b"auth.required", out)
        self.assertIn(b"--token-file", out)

    def test_usage(self):
        for argv in (("ls", "--nope"), ("get",), ("put", "x"), ("mv", "x"),
                     ("rm",), ("cat",), ("run",), ("run", "--env", "x", "id"),
                     ("run", "--timeout", "1h", "id"),
                     ("get", "--sha256", "12", "a.txt")):
            self.ctl(*argv, want=2)
        env = {"PATH": os.environ["PATH"]}
        for at in (["--url", "http://192.0.2.1:80"],
                   ["--url", "https://127.0.0.1:80"],
                   ["--url", "http://127.0.0.1:0"],
                   ["--url", "http://example.org"],
                   ["--socket", "/x" * 100],
                   ["--url", "http://127.0.0.1:1", "--socket", "/x"]):
            out = subprocess.run([f"{BUILD}/abxctl", "ls", *at], env=env,
                                 capture_output=True)
            self.eq(out.returncode, 2, out)

    def test_token_file(self):
        path = self.file("token", ADMIN.encode() + b"\n")
        os.chmod(path, 0o644)
        self.ctl("ls", "--token-file", path, token=None, want=2)
        os.chmod(path, 0o600)
        self.ctl("ls", "--token-file", path, token=None)

    def test_from_the_configuration(self):
        env = {"PATH": os.environ["PATH"], "ABX_SERVER_TOKEN": ADMIN}
        out = subprocess.run([f"{BUILD}/abxctl", "-f", self.svc.file, "cat",
                              "a.txt"], env=env, capture_output=True)
        self.eq((out.returncode, out.stdout), (0, b"hello\n"), out)

    def test_nobody_there(self):
        out = subprocess.run([f"{BUILD}/abxctl", "ls", "--url",
                              "http://127.0.0.1:1"], capture_output=True)
        self.eq(out.returncode, 3, out)

    def test_terminal(self):
        """No control character of a name or a message reaches it."""
        self.world.put("w/tty/a\033[2Jb\x9b\u009b", b"")
        self.world.own("w")
        for argv in (("ls", "tty"), ("ls", "-lR", "tty"),
                     ("ls", "--json", "tty"), ("cat", "tty/\033[31mno")):
            said = on_terminal(self.svc, argv)
            self.assertNotIn(b"\033", said, argv)
            self.assertNotIn(b"\xc2\x9b", said, argv)
            self.assertNotIn(b"\x9b", said, argv)


def on_terminal(svc, argv):
    """What abxctl writes when stdout and stderr are a terminal."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["ABX_SERVER_TOKEN"] = ADMIN
        os.environ["TERM"] = "dumb"
        os.execv(f"{BUILD}/abxctl", [
            "abxctl", argv[0], "--url", f"http://127.0.0.1:{svc.port}",
            *argv[1:]])
    got = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        got += part
    os.waitpid(pid, 0)
    os.close(fd)
    return got


class Progress(Client):
    def test_bar(self):
        self.world.put("w/big", b"x" * 3_000_000)
        self.world.own("w")
        said = on_terminal(self.svc, ("get", "big", self.here + "/b"))
        self.assertRegex(said, rb"big? *|/b 100%  2.9 MiB  .*/s")
        self.eq(on_terminal(self.svc, ("get", "-q", "big",
                                       self.here + "/c")), b"")


class Runs(Client):
    def test_streams(self):
        out = self.ctl("run", "sh", "-c", "echo out; echo err >&2; exit 7",
                       want=7)
        self.eq((out.stdout, out.stderr), (b"out\n", b"err\n"))
        out = self.ctl("run", "--", "sh", "-c", r"printf '\377\000x'")
        self.eq(out.stdout, b"\xff\0x")
        out = self.ctl("run", "sh", "-c", "head -c 3000000 /dev/zero")
        self.eq(len(out.stdout), 3_000_000)

    def test_options(self):
        out = self.ctl("run", "--cwd", "sub", "--env", "X=y z", "sh", "-c",
                       "pwd; echo $X")
        self.eq(out.stdout, (self.world / "w/sub\ny z\n").encode())
        out = self.ctl("run", "--timeout", "1", "sleep", "30",
                       want=128 + signal.SIGTERM)
        self.assertIn(b"time-out", out.stderr)

    def test_session(self):
        """What one command leaves in the session, the next one finds."""
        self.ctl("run", "--session", "s1", "sh", "-c", "echo kept >f")
        out = self.ctl("run", "--session", "s1", "sh", "-c", "cat f")
        self.eq(out.stdout, b"kept\n")
        out = self.ctl("run", "--session", "s1", "--stdin", "sh", "-c",
                       "cat >>f; cat f", stdin=b"more\n")
        self.eq(out.stdout, b"kept\nmore\n")
        self.ctl("run", "--session", "s2", "sh", "-c", "cat f", want=1)
        out = self.ctl("run", "--session", "../s", "true", want=1)
        self.assertIn(b"args.invalid", out.stderr)

    def test_signal_of_the_command(self):
        self.ctl("run", "sh", "-c", "kill -9 $$", want=128 + 9)

    def test_json(self):
        out = self.ctl("run", "--json", "sh", "-c", "echo x; exit 3", want=3)
        self.eq(json.loads(out.stdout)["stdout"], "x\n")

    def test_hanging_up_ends_it(self):
        for sig in (signal.SIGINT, signal.SIGTERM):
            p = start(self.svc, "run", "sh", "-c", f"echo on; sleep 61.5{OWN}")
            self.eq(p.stdout.readline(), b"on\n")
            self.assertTrue(until(10, lambda: marked(f"sleep\x0061.5{OWN}")))
            p.send_signal(sig)
            self.eq(p.wait(10), 128 + sig)
            p.communicate()
            self.eq(until(10 * SLOW, lambda: not marked(
                f"sleep\x0061.5{OWN}")),
                    True)

    def test_stdin(self):
        data = os.urandom(1_500_000)
        out = self.ctl("run", "--stdin", "cat", stdin=data)
        self.assertEqual(out.stdout, data)
        out = self.ctl("run", "--stdin", "true", stdin=data)
        self.eq(out.stdout, b"")
        out = self.ctl("run", "--stdin", "sha256sum", stdin=b"")
        self.assertIn(hashlib.sha256(b"").hexdigest().encode(), out.stdout)

    def test_output_beyond_the_limit(self):
        """What is not there is said."""
        w = World()
        self.addCleanup(w.remove)
        w.put("w/long", b"x" * 5000)
        w.own()
        svc = self.start({"rules": [{"allow": "commands.run", "commands": {
            "allow": ["cat long"], "cwd": w.w, "max_output_bytes": 1000}}]},
            world=w)
        for more in (), ("--json",):
            out = abxctl(svc, "run", *more, "cat", "long")
            self.eq((out.returncode, out.stderr), (0, b"abxctl: 4000 bytes "
                    b"of the output are beyond its limit\n"))

    def test_input_that_is_refused(self):
        """The process would wait for it for ever: it is ended."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"allow_lint_errors": True, "rules": [
            {"allow": "group:process", "limits": {"concurrency": 2},
             "commands": {"allow": ["sh -c ..."], "cwd": w.w}},
            {"allow": "process.signal"}]}, world=w)
        began = time.monotonic()
        out = abxctl(svc, "run", "--stdin", "sh", "-c",
                     f"cat; sleep 61.7{OWN}",
                     stdin=b"x")
        self.eq((out.returncode, out.stderr), (
            1, b"abxctl: limit.concurrency: Too many calls at once.\n"))
        self.under(time.monotonic() - began, 10 * SLOW, "seconds")
        self.eq(until(10 * SLOW, lambda: not marked(
            f"sleep\x0061.7{OWN}")), True)

    def test_refusals_say_why(self):
        """The author's reason, the layer, the argument."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"sandbox": {"enabled": False}, "rules": [
            {"allow": READ + WRITE, "paths": w.w},
            {"allow": "commands.run", "commands": {"allow": ["true"]}},
            {"deny": "files.delete", "reason": "kept for us"}]},
            world=w)
        for argv, text in (
                (("rm", "a.txt"), b"policy.denied_by_rule: A rule denies "
                 b"this operation. (kept for us)\n"),
                (("run", "true"), b"sandbox.unavailable: A required sandbox "
                 b"layer is not available. (disabled)\n"),
                (("run", "--session", "..", "true"),
                 b"args.invalid: An argument is not valid. (session)\n"),
                (("cat", "/etc/passwd"), b"policy.path_not_allowed: The path "
                 b"is outside what this caller may use.\n")):
            out = abxctl(svc, *argv)
            self.eq((out.returncode, out.stderr), (1, b"abxctl: " + text),
                    argv)
        for t in "0", "1.5", "-1", "x":
            self.eq(abxctl(svc, "run", "--timeout", t, "true").returncode, 2)

    def test_stdin_as_it_comes(self):
        p = start(self.svc, "run", "--stdin", "cat", stdin=subprocess.PIPE)
        for line in (b"one\n", b"two\n"):
            p.stdin.write(line)
            p.stdin.flush()
            self.eq(p.stdout.readline(), line)
        p.stdin.close()
        self.eq(p.wait(10), 0)
        p.stdout.close()
        p.stderr.close()

    def test_signals_are_passed_on(self):
        p = start(self.svc, "run", "--signals", "sh", "-c",
                  "trap 'echo got int' INT; trap 'echo got term; exit 9' TERM;"
                  " echo on; while :; do sleep 0.1; done")
        self.eq(p.stdout.readline(), b"on\n")
        p.send_signal(signal.SIGINT)
        self.eq(p.stdout.readline(), b"got int\n")
        p.send_signal(signal.SIGTERM)
        self.eq(p.stdout.readline(), b"got term\n")
        self.eq(p.wait(10), 9)
        p.communicate()

    def test_output_that_may_not_be_followed(self):
        """The process is ended, since nobody would hear of it."""
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start({"allow_lint_errors": True, "rules": [
            {"allow": "process.start", "commands": {
                "allow": ["sleep {int}"], "cwd": w.w}},
            {"allow": "process.signal"}]}, world=w)
        out = abxctl(svc, "run", "--signals", "sleep", f"6161{OWN}")
        self.eq(out.returncode, 1)
        self.assertIn(b"op.not_enabled", out.stderr)
        self.eq(until(10 * SLOW, lambda: not marked(
            f"sleep\x006161{OWN}")), True)

    def test_reader_goes_away(self):
        """What writes to a closed pipe is ended, with or without input."""
        for more in ((), ("--signals",)):
            p = start(self.svc, "run", *more, "sh", "-c",
                      f"while echo y; do sleep 0.0117{OWN}; done")
            p.stdout.read(10)
            p.stdout.close()
            self.eq(p.wait(10), 141)
            p.stderr.close()
            self.eq(until(10 * SLOW, lambda: not marked(f"sleep 0.0117{OWN}")),
                    True)


class Unix(Case):
    def test_socket_with_a_token(self):
        w = World()
        self.addCleanup(w.remove)
        w.own()
        svc = self.start(rules(w), world=w, unix=w / "sock")
        out = abxctl(svc, "cat", "a.txt")
        self.eq((out.returncode, out.stdout), (0, b"hello\n"), out)


# ---- services that lie ----

class Liar:
    """Answers every connection with the same bytes."""

    unix = None

    def __init__(self, *answers, hold=False):
        self.answers, self.hold = list(answers), hold
        self.s = socket.socket()
        self.s.bind(("127.0.0.1", 0))
        self.s.listen(8)
        self.port = self.s.getsockname()[1]
        self.t = threading.Thread(target=self.serve, daemon=True)
        self.t.start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.s.close()

    def serve(self):
        n = 0
        while True:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            with c:
                got = b""
                while b"\r\n\r\n" not in got:
                    part = c.recv(65536)
                    if not part:
                        break
                    got += part
                try:
                    c.sendall(self.answers[min(n, len(self.answers) - 1)])
                    if self.hold:
                        c.settimeout(30)
                        while c.recv(65536):
                            pass
                except OSError:
                    pass
            n += 1


class Broken:
    """Between abxctl and a service; cuts answers off after some bytes."""

    unix = None

    def __init__(self, port, after):
        self.to, self.after = port, after
        self.s = socket.socket()
        self.s.bind(("127.0.0.1", 0))
        self.s.listen(8)
        self.port = self.s.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.s.close()

    def serve(self):
        while True:
            try:
                c, _ = self.s.accept()
            except OSError:
                return
            with c, socket.create_connection(("127.0.0.1", self.to)) as up:
                left = self.after
                while left > 0:
                    ready, _, _ = select.select([c, up], [], [])
                    if c in ready:
                        part = c.recv(65536)
                        if not part:
                            break
                        up.sendall(part)
                    if up in ready:
                        part = up.recv(min(65536, left))
                        if not part:
                            break
                        c.sendall(part)
                        left -= len(part)


def answer(body, status=b"200 OK", more=b""):
    return (b"HTTP/1.1 " + status + b"\r\nContent-Length: " +
            str(len(body)).encode() + b"\r\n" + more + b"\r\n" + body)


class Lies(Case):
    def say(self, raw, *argv, **kw):
        with Liar(*(raw if isinstance(raw, tuple) else (raw,))) as liar:
            return abxctl(liar, *(argv or ("cat", "x")), **kw)

    def test_not_an_answer(self):
        for raw in (b"", b"\r\n\r\n", b"HTTP/1.1 200 OK\n\n",
                    b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
                    b"HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n",
                    b"HTTP/1.1 200 \033[2J\r\nContent-Length: 0\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
                    b"Content-Length: 1\r\n\r\nx",
                    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
                    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"fffffffffffffffff\r\nx",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"1;x\r\nx\r\n0\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"1\r\nxy\r\n0\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"1\r\nx\r\n",
                    b"HTTP/1.1 200 OK\r\n X: y\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nX\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nX: " + b"y" * 20000 + b"\r\n\r\n"):
            out = self.say(raw)
            self.eq(out.returncode, 3, (raw[:100], out))

    def test_messages_are_escaped(self):
        body = json.dumps({"code": "fs.\033[2J", "error": "\u009bx\x07"})
        out = self.say(answer(body.encode(), b"403 No"))
        self.eq(out.returncode, 1)
        self.assertNotIn(b"\033", out.stderr)
        self.assertNotIn(b"\x07", out.stderr)
        for body in (b"", b"[]", b"{", b'"x"', b"[" * 100000):
            out = self.say(answer(body, b"403 No"))
            self.eq(out.returncode, 3, out)

    def test_listings(self):
        for body in (b'{"entries":[{}]}', b'{"entries":[{"name":7}]}',
                     b'{"entries":[{"name_base64":"//"}]}',
                     b'{"entries":[{"name_base64":"AA=="}]}',
                     b'{"entries":[{"name_base64":7}]}'):
            out = self.say(answer(body), "ls")
            self.eq(out.returncode, 3, (body, out))
        for body in (b"{}", b'{"entries":7}', b'{"entries":{}}'):
            self.eq(self.say(answer(body), "ls").stdout, b"")

    def test_get(self):
        """No file appears of an answer that does not fit."""
        here = tempfile.mkdtemp(prefix="abx-test-client-")
        self.addCleanup(subprocess.run, ["rm", "-rf", here])
        head = (b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 5\r\n\r\n')
        for second in (answer(b"hello"), answer(b"hello", more=b'ETag: a\r\n'),
                       answer(b"hellohello", more=b'ETag: "a"\r\n'),
                       answer(b"hell", more=b'ETag: "a"\r\n'),
                       answer(b"hello", b"206 Part", b'ETag: "a"\r\n'),
                       answer(b"hello", b"206 Part", b'ETag: "a"\r\n'
                              b"Content-Range: bytes 1-5/6\r\n"),
                       head + b"hel"):
            out = self.say((head, second, head, second, head, second),
                           "get", "x", here + "/x")
            self.among(out.returncode, (1, 3), (second, out))
            self.eq(os.path.exists(here + "/x"), False, second)
        out = self.say((head, head + b"hello"), "get", "x", here + "/x")
        self.eq(out.returncode, 0, out)

    def test_run(self):
        sse = b"Content-Type: text/event-stream\r\n"
        for body in (b"", b"event: exit\n\n", b"event: exit\ndata: 7\n\n",
                     b"event: exit\ndata: {}\n\n", b"data: {}\n\n",
                     b'event: exit\ndata: {"exit_code":1234}\n\n',
                     b'event: exit\ndata: {"signal":"NONE"}\n\n',
                     b"event: stdout\ndata: {}\n\n",
                     b'event: stdout\ndata: {"data":"/","encoding":'
                     b'"base64"}\n\n',
                     b"event: " + b"x" * 100 + b"\n\n",
                     b"data: " + b"x" * 5_000_000 + b"\n\n",
                     b"data: \0\n\n"):
            out = self.say(answer(body, more=sse), "run", "x")
            self.eq(out.returncode, 3, (body[:100], out))
        self.eq(self.say(answer(b"{}"), "run", "x").returncode, 3)
        out = self.say(answer(b'event: exit\r\ndata: {"exit_code":\r\n'
                              b'data:5}\r\n\r\n', more=sse), "run", "x")
        self.eq(out.returncode, 5, out)

    def test_a_stall_keeps_no_signal(self):
        """Half a chunk, and nothing more: we can still be stopped."""
        raw = (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n5")
        with Liar(raw, hold=True) as liar:
            p = start(liar, "run", "x")
            time.sleep(0.5)
            p.send_signal(signal.SIGINT)
            self.eq(p.wait(5), 130)
            p.communicate()


if __name__ == "__main__":
    unittest.main()
