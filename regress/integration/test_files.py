# SPDX-License-Identifier: ISC
"""Files: what a path scope lets through, what uploads leave behind, how bytes
travel.  Tests are named by the fault case that they hold down."""
import base64
import ctypes
import ctypes.util
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from abxtest import (ADMIN, ALICE, ASAN, BOB, LONG, MARKER, READ, ROOT, SLOW,
                     WRITE, Case, Conn, World, comm, family, needs_root,
                     proc_stat, quoted, rss, still_there, timeout, until)

GIB = 1 << 30
OLD = '"old"'


def scopes(w, **more):
    return [{"allow": READ + WRITE + ["core.check"],
             "paths": {"roots": [w.w], "deny": ["**/.env", w.w + "/vault"],
                       **more}}]


class Files(Case):
    @classmethod
    def conf(cls, w):
        return {"rules": scopes(w)}

    def names(self, path=".", **kw):
        return {e["name"] for e in
                self.ok(self.svc.list(path, **kw)).json["entries"]}

    def same(self, a, b, what=""):
        """Two refusals that only their ids tell apart."""
        x, y = ({k: v for k, v in r.json.items() if k != "request_id"}
                for r in (a, b))
        self.eq((a.status, x), (b.status, y), what)

    def everywhere(self, path, status, *codes, dst=True):
        """Every op on this path is refused that way."""
        svc, got = self.svc, {}
        got["stat"] = svc.stat(path)
        got["list"] = svc.list(path)
        got["download"] = svc.download(path)
        got["json download"] = svc.get("/files/download?path="
                                       + quoted(path))
        got["upload"] = svc.upload(path, b"x")
        got["json upload"] = svc.rpc("files.upload",
                                     {"path": path, "content": "x",
                                      "encoding": "utf-8"})
        got["mkdir"] = svc.rpc("files.mkdir", {"path": path})
        got["delete"] = svc.rpc("files.delete", {"path": path})
        got["rdelete"] = svc.rpc("files.delete", {"path": path,
                                                  "recursive": True})
        got["move from"] = svc.rpc("files.move", {"src": path, "dst": "z"})
        if dst:
            got["move to"] = svc.rpc("files.move", {"src": "a.txt",
                                                    "dst": path})
        for how, r in got.items():
            self.refused(r, status, *codes, what=f"{how} of {path}")


class Scope(Files):
    @classmethod
    def fill(cls, w):
        w.put("w/..test/x.html", "dots")
        w.put("w/.../y", "dots")
        w.put("w/a..b", "dots")
        w.link("w/leak", w / "outside/secret.txt")
        w.link("w/leakdir", w / "outside")
        w.link("w/dang", w / "outside/not-there")
        w.link("w/ls", w / "w/sub")
        w.link("w/rel", "sub/b.txt")
        w.link("w/up", "..")
        w.link("w/upup", "sub/../../outside/secret.txt")
        w.link("w/foo", "foo")
        w.link("w/x1", "x2")
        w.link("w/x2", "x1")
        w.link("w/to-r", w / "r/x.txt")
        w.link("w/to-vault", "vault/k.txt")
        w.link("w/to-env", w / "w/.env")
        w.link("w/proc", "/proc/self")
        for i in range(45):
            w.link(f"w/chain{i}", f"chain{i + 1}" if i < 44 else "a.txt")
        w.link("w/self", ".")

    def test_T001_sibling_prefix(self):
        w = self.world
        yes = self.svc.download(w / "w-evil/loot.txt")
        no = self.svc.download(w / "w-evil/absent.txt")
        self.refused(yes, 403, "policy.path_not_allowed")
        self.same(yes, no, "existence shows")
        self.everywhere(w / "w-evil/loot.txt", 403, "policy.path_not_allowed")
        self.everywhere(w / "w-evil", 403, "policy.path_not_allowed")
        self.everywhere(w.w + "x", 403, "policy.path_not_allowed")

    def test_outside(self):
        w = self.world
        for path in ("/etc/passwd", "/etc/no-such", "../../etc/passwd", "..",
                     "../outside/secret.txt", "/", "/..", w.dir,
                     w.w + "/../outside/secret.txt", "sub/../../outside",
                     w.outside + "/no-such/deep/x", "./../../w-evil"):
            with self.subTest(path):
                self.everywhere(path, 403, "policy.path_not_allowed")
        for a, b in ((w.outside + "/secret.txt", w.outside + "/nothing"),
                     ("leakdir/secret.txt", "leakdir/nothing"),
                     ("/etc/passwd", "/etc/nothing")):
            self.same(self.svc.stat(a), self.svc.stat(b), "existence shows")

    def test_T005_dotty_but_legal_names(self):
        for path in ("..test/x.html", ".../y", "a..b"):
            full = self.world.w + "/" + path
            self.ok(self.svc.stat(full))
            self.eq(self.ok(self.svc.download(path)).body, b"dots")
            self.ok(self.svc.rpc("files.stat", {"path": path}))
        self.eq({"..test", "...", "a..b"} <= self.names(), True)
        self.eq(self.names("..test"), {"x.html"})

    def test_T006_symlink_out(self):
        for path in ("leak", "leakdir/secret.txt", "leakdir", "up",
                     "up/outside/secret.txt", "upup", "self/leak",
                     "self/self/up/outside/secret.txt", "up/w-evil/loot.txt"):
            for r in (self.svc.stat(path), self.svc.download(path),
                      self.svc.list(path)):
                self.refused(r, 403, "policy.path_not_allowed", what=path)
        shown = self.names()
        self.eq(shown & {"leak", "leakdir", "dang", "up", "upup"}, set(),
                "links that lead out are listed")
        self.eq({"ls", "rel"} <= shown, True)

    def test_T007_dangling_symlink(self):
        for path in ("dang", "leakdir/new.txt", "up/new.txt"):
            for r in (self.svc.upload(path, b"x"),
                      self.svc.rpc("files.mkdir", {"path": path}),
                      self.svc.rpc("files.move", {"src": "a..b",
                                                  "dst": path})):
                self.refused(r, 403, "policy.path_not_allowed", what=path)
        self.eq(sorted(os.listdir(self.world.outside)), ["secret.txt"])
        self.eq(os.path.exists(self.world / "new.txt"), False)

    def test_T010_proc_and_dev(self):
        w = self.world
        for path in (f"/proc/self/root{w.w}/a.txt", "/proc/self/environ",
                     "/sys/kernel", "/dev/null", "/proc", "/dev/fd/0",
                     "/proc/1/root/etc/passwd", "/proc//self/environ",
                     "/sys", "/dev", f"/proc/self/cwd{w.w}/a.txt"):
            with self.subTest(path):
                self.everywhere(path, 403, "policy.path_denied")
        for path in ("proc", "proc/environ", f"proc/root{w.w}/a.txt"):
            self.refused(self.svc.stat(path), 403, "policy.path_denied",
                         "policy.path_not_allowed")

    def test_T011_case_and_normal_form(self):
        for path in (".ENV", ".Env", "VAULT/k.txt", ".e\u0301nv"):
            self.refused(self.svc.stat(path), 404, "fs.not_found")

    def test_T012_deny_spelling(self):
        w = self.world.w
        for path in ("/./vault//k.txt", "//vault/k.txt", "/sub/../vault/k.txt",
                     "/vault/./k.txt", "/vault/", "/vault", "/vault/none",
                     "/vault/../vault/k.txt", "/.env", "/sub/.env",
                     "/sub/../.env", "/.env/x", "/no/such/.env/deeper"):
            with self.subTest(path):
                self.everywhere(w + path, 403, "policy.path_denied")
        for path in ("vault/k.txt", "./vault/k.txt", "to-vault", "to-env",
                     "self/vault/k.txt", "self/.env", "ls/../vault/k.txt"):
            self.refused(self.svc.download(path), 403, "policy.path_denied",
                         what=path)
        self.eq(self.names() & {"vault", ".env", "to-vault", "to-env"},
                set(), "denied entries are listed")

    def test_through_denied_and_out(self):
        """A link through a denied place and out again: whether the place is
        there, or what it is, shows nowhere."""
        w = self.world
        w.put("w/thr/x", "x")
        for kind, there in (("d", True), ("f", True), ("n", False)):
            if kind == "d":
                w.put("w/thr/d/.env/deep/y", MARKER)
                w.link("w/thr/d/.env/back", "../../x")
                w.link("w/thr/d/.env/abs", w / "w/thr/x")
            elif there:
                w.put("w/thr/f/.env", MARKER)
            else:
                os.mkdir(w / "w/thr/n")
            for name, target in (
                    ("up", ".env/../../x"), ("deep", ".env/deep/../../../x"),
                    ("dir", ".env/../.."), ("back", ".env/back"),
                    ("abs", ".env/abs"), ("new", ".env/../none"),
                    ("out", ".env/../../../../outside/secret.txt"),
                    ("spelled", w.w + f"/thr/{kind}/.env/../../x"),
                    ("hop", "up")):
                w.link(f"w/thr/{kind}/{name}", target)
        w.own("w")
        for name in ("up", "deep", "dir", "dir/x", "back", "abs", "new", "out",
                     "spelled", "hop"):
            with self.subTest(name):
                for kind in "dfn":
                    self.everywhere_but_links(f"thr/{kind}/{name}")
        for kind in "dfn":
            self.eq(self.names(f"thr/{kind}"), set(), "what is listed")
        self.eq(w.get("w/thr/x"), b"x")

    def everywhere_but_links(self, path):
        """As everywhere, but what acts on the link itself."""
        svc = self.svc
        for r in (svc.stat(path), svc.list(path), svc.download(path),
                  svc.upload(path, b"y"),
                  svc.rpc("files.mkdir", {"path": path}),
                  svc.rpc("core.check", {"op": "files.stat",
                                         "args": {"path": path}})):
            if r.status == 200:
                self.eq((r.json["allowed"], r.json["code"]),
                        (False, "policy.path_denied"), path)
            else:
                self.refused(r, 403, "policy.path_denied", what=path)

    def test_T014_limits_and_nul(self):
        long = "/" + "/".join(["a" * 200] * 25)
        for path in ("x" * 4097, long, "a/" * 300 + "b", "/" * 5000 + "x"):
            for r in (self.svc.rpc("files.stat", {"path": path}),
                      self.svc.rpc("files.mkdir", {"path": path})):
                self.refused(r, 403, "policy.path_invalid",
                             what=f"{len(path)} bytes")
        r = self.svc.rpc("files.stat", {"path": "n" * 256})
        self.refused(r, 400, "fs.name_too_long")
        self.refused(self.svc.rpc("files.stat", {"path": "n" * 255}), 404,
                     "fs.not_found")
        r = self.svc.rpc("files.stat", {"path": ""})
        self.among(r.status, (200, 403), "an empty path")
        r = self.svc.get("/files/stat?path=a%00b")
        self.refused(r, 400, "request.bad_target")

    def test_T020_symlink_within_and_loops(self):
        self.eq(self.ok(self.svc.download("ls/b.txt")).body, b"below\n")
        self.eq(self.ok(self.svc.download("rel")).body, b"below\n")
        self.eq(self.ok(self.svc.download("self/self/a.txt")).body,
                b"hello\n")
        self.eq(self.ok(self.svc.stat("chain5")).json["size"], 6)
        for path in ("foo", "x1", "foo/x", "chain0"):
            r = self.svc.stat(path)
            self.refused(r, 403, "policy.path_invalid", what=path)
            self.under(r.secs, 1 * SLOW, "seconds")
        self.refused(self.svc.download("to-r"), 403,
                     "policy.path_not_allowed")

    def test_T021_directory_loops(self):
        self.eq(self.names("self/self/self") >= {"a.txt", "sub"}, True)

    def test_root_protected(self):
        w = self.world.w
        for path in (".", w, w + "/", "sub/.."):
            for reply in (
                    self.svc.rpc("files.delete", {"path": path,
                                                  "recursive": True}),
                    self.svc.rpc("files.move", {"src": path, "dst": "q"}),
                    self.svc.upload(path, b"x")):
                self.refused(reply, 403, "policy.root_protected",
                             "policy.path_denied", what=path)
        self.eq(os.path.isdir(w), True)


class TwoStatements(Files):
    @classmethod
    def fill(cls, w):
        w.link("w/to-r", w / "r/x.txt")

    @classmethod
    def conf(cls, w):
        return {"rules": scopes(w) + [
            {"allow": READ + WRITE,
             "paths": {"roots": [w.r], "readonly": True}}]}

    def test_the_second_root(self):
        r = self.world.r
        self.eq(self.ok(self.svc.download(r + "/x.txt")).body, b"fixed\n")
        for reply in (self.svc.upload(r + "/new", b"x"),
                      self.svc.upload(r + "/x.txt", b"x"),
                      self.svc.rpc("files.mkdir", {"path": r + "/d"}),
                      self.svc.rpc("files.delete", {"path": r + "/x.txt"})):
            self.refused(reply, 403, "policy.read_only",
                         "policy.path_not_allowed")
        self.eq(os.listdir(r), ["x.txt"])
        self.eq(self.world.get("r/x.txt"), b"fixed\n")
        # a statement judges its own roots: a link from w into r is outside
        self.refused(self.svc.download(self.world.w + "/to-r"), 403,
                     "policy.path_not_allowed")
        self.refused(self.svc.stat(self.world.w + "/.env"), 403,
                     "policy.path_denied")


class TwoRoots(Files):
    """One statement with two roots: links between them are within."""

    @classmethod
    def fill(cls, w):
        w.link("w/to-r", w / "r/x.txt")
        w.link("w/to-out", w / "outside/secret.txt")

    @classmethod
    def conf(cls, w):
        return {"rules": [{"allow": READ + WRITE,
                           "paths": {"roots": [w.w, w.r]}}]}

    def test_links_between_roots(self):
        self.eq(self.ok(self.svc.download("to-r")).body, b"fixed\n")
        self.eq(self.ok(self.svc.download(self.world.r + "/x.txt")).body,
                b"fixed\n")
        self.refused(self.svc.download("to-out"), 403,
                     "policy.path_not_allowed")
        self.ok(self.svc.rpc("files.move", {
            "src": "a.txt", "dst": self.world.r + "/moved"}))
        self.eq(self.world.get("r/moved"), b"hello\n")


class Anchors(Files):
    @classmethod
    def fill(cls, w):
        w.link("srvlink", w.w)

    @classmethod
    def conf(cls, w):
        return {"rules": [{"allow": READ + WRITE, "paths": w / "srvlink"}]}

    def test_T008_root_anchoring(self):
        w = self.world
        for path in ("sub/b.txt", w / "srvlink/sub/b.txt",
                     w / "w/sub/b.txt", "./sub/b.txt"):
            self.eq(self.ok(self.svc.download(path)).body, b"below\n", path)
        self.ok(self.svc.upload(w / "srvlink/new", b"1"), 201)
        self.ok(self.svc.rpc("files.move", {"src": "new",
                                            "dst": w / "srvlink/newer"}))
        self.ok(self.svc.rpc("files.delete", {"path": w / "w/newer"}))


class NoLinks(Files):
    @classmethod
    def fill(cls, w):
        w.link("w/ls", w / "w/sub")
        w.link("w/rel", "a.txt")

    @classmethod
    def conf(cls, w):
        return {"rules": scopes(w, symlinks="deny", create_dirs=False)}

    def test_T020_symlinks_deny(self):
        for path in ("ls/b.txt", "rel", "ls"):
            self.refused(self.svc.download(path), 403,
                         "policy.symlink_denied", what=path)
        self.refused(self.svc.upload("ls/new", b"x"), 403,
                     "policy.symlink_denied")
        self.ok(self.svc.download("sub/b.txt"))

    def test_create_dirs_false(self):
        self.refused(self.svc.upload("no/such/dir/x", b"x"), 404,
                     "fs.not_found")
        self.eq(os.path.exists(self.world.w + "/no"), False)
        self.ok(self.svc.upload("sub/new", b"x"), 201)


class Deny(Files):
    @classmethod
    def fill(cls, w):
        w.put("w/d/ok.txt", "x")
        w.put("w/d/deep/.env", MARKER)
        w.put("w/x", "x")

    def test_T031_deny_and_move_out(self):
        self.everywhere("vault/k.txt", 403, "policy.path_denied")
        self.everywhere("vault", 403, "policy.path_denied")
        self.eq(self.world.get("w/vault/k.txt"), MARKER.encode())

    def test_T032_rename_into_denied(self):
        for dst in (".env", "sub/.env", "vault/new", "vault", "new/.env/x"):
            self.refused(self.svc.rpc("files.move", {"src": "x",
                                                     "dst": dst}), 403,
                         "policy.path_denied", what=dst)
        self.eq(os.path.exists(self.world.w + "/x"), True)
        self.eq(os.path.exists(self.world.w + "/new"), False)

    def test_a_directory_with_a_denied_entry(self):
        for r in (self.svc.rpc("files.delete", {"path": "d",
                                                "recursive": True}),
                  self.svc.rpc("files.move", {"src": "d", "dst": "e"})):
            self.refused(r, 403, "policy.path_denied")
        self.eq(sorted(os.listdir(self.world.w + "/d")), ["deep", "ok.txt"])
        self.eq(self.names("d/deep"), set())

    def test_denied_before_anything_is_said(self):
        a = self.svc.stat("vault/k.txt")
        b = self.svc.stat("vault/none")
        self.same(a, b, "existence behind a deny shows")
        self.same(self.svc.stat(".env"), self.svc.stat("nowhere/.env"))

    def test_links_tell_nothing_of_what_is_denied(self):
        """However a walk behind a link to a denied directory ends."""
        w = self.world
        w.link("w/l/v", "../vault")
        w.link("w/l/e", "../.env")
        w.link("w/l/up", "../vault/none/../../x")
        w.link("w/l/file", "../vault/k.txt/../../x")
        w.link("w/vault/out", "/etc/passwd")
        w.link("w/vault/loop", "loop")
        want = self.refused(self.svc.stat("l/v/none"), 403,
                            "policy.path_denied")
        for path in ("l/v/none/x", "l/v/k.txt", "l/v/k.txt/x", "l/e", "l/e/x",
                     "l/v/out", "l/v/out/x", "l/v/loop", "l/up", "l/file",
                     "l/v/" + "n" * 300):
            self.same(self.svc.stat(path), want, path)
            self.eq(self.svc.rpc("core.check", {
                "op": "files.stat", "args": {"path": path}}).json["code"],
                    "policy.path_denied", path)
        self.refused(self.svc.stat("x/y"), 409, "fs.not_directory")

    def test_T013_glob_blow_up(self):
        w = self.world
        svc = self.start({"rules": [{"allow": "files.stat", "paths": {
            "roots": [w.w], "deny": ["**/***************X***",
                                     "**/*a*a*a*a*a*a*a*a*a*a*b",
                                     "**/[a-z]*[a-z]*[a-z]*/**/*z*z"]}}]})
        for path in ("a" * 4000, "/".join(["a" * 15] * 250),
                     "a/" * 200 + "a"):
            r = svc.rpc("files.stat", {"path": path})
            self.among(r.status, (400, 403, 404))
            self.under(r.secs, 0.1 * SLOW, "seconds")


class Kinds(Files):
    @classmethod
    def fill(cls, w):
        os.link(w / "outside/secret.txt", w / "w/h.txt")
        os.mkfifo(w / "w/p")
        s = socket.socket(socket.AF_UNIX)
        old = os.getcwd()
        os.chdir(w.w)
        s.bind("sock")
        os.chdir(old)
        s.close()

    def test_T017_hard_links(self):
        for r in (self.svc.download("h.txt"), self.svc.upload("h.txt", b"x"),
                  self.svc.get("/files/download?path=h.txt")):
            self.refused(r, 403, "policy.hardlink_denied")
        self.eq(self.world.get("outside/secret.txt"), MARKER.encode())
        self.eq(os.stat(self.world.w + "/h.txt").st_nlink, 2)

    def test_T018_special_files(self):
        shown = self.svc.list(".")
        self.ok(shown)
        self.under(shown.secs, 1 * SLOW, "seconds")
        kinds = {e["name"]: e["type"] for e in shown.json["entries"]}
        self.eq((kinds["p"], kinds["sock"]), ("other", "other"))
        for name in ("p", "sock"):
            for r in (self.svc.download(name), self.svc.upload(name, b"x"),
                      self.svc.get("/files/download?path=" + name)):
                self.refused(r, 403, "policy.not_regular_file", what=name)
                self.under(r.secs, 1 * SLOW, "seconds")
            self.eq(self.ok(self.svc.stat(name)).json["type"], "other")

    def test_directories_and_files(self):
        self.refused(self.svc.download("sub"), 409, "fs.is_directory",
                     "policy.not_regular_file")
        self.refused(self.svc.upload("sub", b"x"), 409, "fs.is_directory",
                     "policy.not_regular_file")
        self.refused(self.svc.list("a.txt"), 409, "fs.not_directory")
        self.refused(self.svc.stat("a.txt/x"), 409, "fs.not_directory")
        self.refused(self.svc.upload("a.txt/x", b"x"), 409,
                     "fs.not_directory")
        for r in (self.svc.stat("none"), self.svc.download("none"),
                  self.svc.list("none"),
                  self.svc.rpc("files.delete", {"path": "none"}),
                  self.svc.rpc("files.move", {"src": "none", "dst": "z"})):
            self.refused(r, 404, "fs.not_found")

    def test_permission(self):
        self.world.put("w/locked", "x", 0o000)
        os.mkdir(self.world.w + "/lockdir", 0o700)
        os.chmod(self.world.w + "/lockdir", 0o000)
        if not ROOT:
            self.refused(self.svc.download("locked"), 403, "fs.permission")
        else:  # it belongs to root, and is not read by root's hand
            self.refused(self.svc.download("locked"), 403, "fs.permission")
            self.refused(self.svc.list("lockdir"), 403, "fs.permission")
        os.rmdir(self.world.w + "/lockdir")


class Download(Files):
    @classmethod
    def fill(cls, w):
        w.put("w/twelve", "0123456789ab")
        w.put("w/big", os.urandom(3_000_000))
        w.put("w/empty", "")
        w.put("w/a b.txt", "spaces")
        w.put("w/日.txt", "kanji")
        w.put('w/a"; filename=evil.html', "quotes")
        w.put("w/new\nline", "line")
        w.put("w/per%41cent", "percent")
        w.put("w/plus+", "plus")
        w.put("w/q?u&a=b#c;d", "query")
        w.put("w/bin", bytes(range(256)))
        with open(os.fsencode(w.w) + b"/\xff\x01-x", "wb") as f:
            f.write(b"odd")

    def range_(self, value, **kw):
        return self.svc.download("twelve", headers={"Range": value, **kw})

    def test_T023_suffix_range(self):
        for value, body, where in (
                ("bytes=-5", b"789ab", "7-11"), ("bytes=0-0", b"0", "0-0"),
                ("bytes=5-", b"56789ab", "5-11"),
                ("bytes=3-5", b"345", "3-5"),
                ("bytes=3-500", b"3456789ab", "3-11"),
                ("bytes=-500", b"0123456789ab", "0-11"),
                ("bytes=11-11", b"b", "11-11")):
            r = self.ok(self.range_(value), 206)
            self.eq((r.body, r.header("content-range")),
                    (body, f"bytes {where}/12"), value)

    def test_T024_unsatisfiable_range(self):
        for value in ("bytes=5000-", "bytes=12-", "bytes=-0",
                      "bytes=12-20"):
            r = self.refused(self.range_(value), 416,
                             "fs.range_not_satisfiable", what=value)
            self.eq(r.header("content-range"), "bytes */12")
        for value in ("bytes=0-1,3-4", "bytes=5-3", "bytes=a-b", "lines=1-2",
                      "bytes=", "bytes=-", "bytes 1-2", "bytes=1-2-3",
                      "bytes=99999999999999999999-", "bytes=1-2, -1",
                      "bytes=-1x"):
            r = self.range_(value)
            self.among(r.status, (200, 416), value)
            if r.status == 200:
                self.eq(r.body, b"0123456789ab", value)

    def test_conditions(self):
        r = self.ok(self.svc.download("twelve"))
        tag = r.header("etag")
        self.eq(bool(tag) and re.fullmatch(r'"[!-~]+"', tag) is not None,
                True, tag)
        self.eq(r.header("accept-ranges"), "bytes")
        self.eq(self.ok(self.svc.stat("twelve")).json["etag"],
                tag.strip('"') if '"' not in
                self.svc.stat("twelve").json["etag"] else tag)
        for value in (tag, "*", f'"x", {tag}', "W/" + tag):
            r = self.svc.download("twelve", headers={"If-None-Match": value})
            self.eq((r.status, r.body), (304, b""), value)
            self.eq(r.header("etag"), tag)
        self.ok(self.svc.download("twelve",
                                  headers={"If-None-Match": '"x"'}))
        r = self.range_("bytes=1-2", **{"If-Range": tag})
        self.eq((r.status, r.body), (206, b"12"))
        r = self.range_("bytes=1-2", **{"If-Range": '"other"'})
        self.eq((r.status, r.body), (200, b"0123456789ab"))
        for head in ({"If-Match": '"x"'}, {"If-Match": '"x", W/' + tag},
                     {"If-Match": '"x"', "If-None-Match": tag}):
            self.refused(self.svc.download("twelve", headers=head), 412,
                         "fs.changed")
        self.ok(self.svc.download("twelve", headers={
            "If-Match": '"x", ' + tag}))
        self.world.put("w/twelve2", "0123456789ab")
        self.eq(self.svc.download("twelve2").header("etag") != tag, True,
                "two files, two tags")

    def test_head(self):
        for name, n in (("big", 3_000_000), ("empty", 0), ("twelve", 12)):
            with Conn(self.svc) as c:
                c.send(self.svc.build("HEAD", "/files/download-stream?path="
                                      + name))
                r = self.ok(c.reply("HEAD"))
                self.eq(r.header("content-length"), str(n))
                c.send(self.svc.build("GET", "/health"))
                self.ok(c.reply())
        r = self.svc.call("HEAD", "/files/download-stream?path=none")
        self.eq(r.status, 404)

    def test_bytes(self):
        self.eq(self.ok(self.svc.download("big")).body
                == self.world.get("w/big"), True)
        self.eq(self.ok(self.svc.download("empty")).body, b"")
        self.eq(self.ok(self.svc.download("bin")).body, bytes(range(256)))
        for n in (65535, 65536, 65537, 131072):
            self.world.put(f"w/s{n}", b"s" * n)
            self.eq(len(self.ok(self.svc.download(f"s{n}")).body), n)

    def test_json_download(self):
        def get(path):
            return self.ok(self.svc.get("/files/download?path="
                                        + quoted(path))).json
        got = get("a.txt")
        self.eq((got["content"], got["encoding"], got["size"]),
                ("hello\n", "utf-8", 6))
        self.eq(set(got), {"path", "content", "encoding", "size", "etag"})
        got = get("bin")
        self.eq((got["encoding"], base64.b64decode(got["content"])),
                ("base64", bytes(range(256))))
        self.eq(get("empty")["content"], "")
        self.eq(self.ok(self.svc.rpc("files.download", {"path": "a.txt"})
                        ).json["content"], "hello\n")

    @timeout(90)
    def test_T025_2_gib(self):
        size = (1 << 31) + 10
        with open(self.world.w + "/huge", "wb") as f:
            f.truncate(size - 10)
            f.seek(size - 10)
            f.write(b"0123456789")
        self.eq(self.ok(self.svc.stat("huge")).json["size"], size)
        r = self.svc.call("HEAD", "/files/download-stream?path=huge")
        self.eq(r.header("content-length"), str(size))
        for value in ("bytes=-10", f"bytes={size - 10}-"):
            r = self.ok(self.svc.download("huge", headers={"Range": value}),
                        206)
            self.eq((r.body, r.header("content-range")),
                    (b"0123456789", f"bytes {size - 10}-{size - 1}/{size}"))

    def test_T045_names_in_query(self):
        w = self.world.w
        for path, body in ((f"{w}/a%20b.txt", b"spaces"),
                           ("a+b.txt", b"spaces"),
                           (quoted(w + "/日.txt").replace("/", "%2F"),
                            b"kanji"),
                           ("new%0Aline", b"line"), ("plus%2B", b"plus"),
                           ("per%2541cent", b"percent"),
                           ("q%3Fu%26a%3Db%23c%3Bd", b"query"),
                           ("%ff%01-x", b"odd"), ("%FF%01%2dx", b"odd"),
                           ("%73ub%2F%2e%2e%2Fa.txt", b"hello\n")):
            r = self.svc.get("/files/download-stream?path=" + path)
            self.eq(self.ok(r).body, body, path)

    def test_T022_odd_bytes_in_names(self):
        r = self.ok(self.svc.list("."))
        r.body.decode("utf-8")
        odd = [e for e in r.json["entries"] if "name_base64" in e]
        self.eq(len(odd), 1, "the entry that is not UTF-8")
        self.eq(base64.b64decode(odd[0]["name_base64"]), b"\xff\x01-x")
        self.eq(odd[0]["name"], "\ufffd\x01-x")
        self.eq(self.names() >= {"a.txt", "日.txt", "new\nline",
                                 'a"; filename=evil.html'}, True)
        self.eq(self.ok(self.svc.stat(b"\xff\x01-x")).json["size"], 3)

    def test_path_base64(self):
        r = self.svc.rpc("files.stat", {"path_base64": base64.b64encode(
            b"\xff\x01-x").decode()})
        self.eq(self.ok(r).json["size"], 3)
        self.eq(r.json["path"], "\ufffd\x01-x", "as the caller spelled it")

    def test_T030_download_header(self):
        for name in ('a"; filename=evil.html', "new\nline"):
            r = self.ok(self.svc.download(name))
            got = r.all("content-disposition")
            self.eq(len(got) < 2, True)
            if got:
                self.eq(re.fullmatch(
                    r'attachment; filename="[^"\\]*"'
                    r"(; filename\*=UTF-8''[A-Za-z0-9%._~-]*)?",
                    got[0]) is not None, True, got)
            self.eq("evil.html" in str(r.headers), False, r.headers)
        self.eq(r.header("x-content-type-options"), "nosniff")
        self.eq(r.header("content-type"), "application/octet-stream")


class Lists(Files):
    @classmethod
    def fill(cls, w):
        cls.many = 100_000 if LONG else 20_000
        os.mkdir(w / "w/huge")
        for i in range(cls.many):
            os.close(os.open(w / f"w/huge/{i:06}", os.O_CREAT | os.O_WRONLY))
        w.put("w/kinds/f", "12345", 0o640)
        os.mkdir(w / "w/kinds/d", 0o750)
        w.link("w/kinds/l", "f")
        os.mkdir(w / "w/none")

    @timeout(120)
    def test_T033_huge_directory(self):
        kids = self.svc.kids()
        before = {n: rss(p) for n, p in kids.items()}
        r = self.ok(self.svc.list("huge", "&max_entries=100"))
        self.eq((len(r.json["entries"]), r.json["truncated"]), (100, True))
        self.under(r.secs, 2 * SLOW, "seconds")
        r = self.ok(self.svc.list("huge"))
        self.eq((len(r.json["entries"]), r.json["truncated"]),
                (10_000, True), "the default limit")
        r = self.ok(self.svc.list("huge", f"&max_entries={self.many * 2}"))
        self.eq(len({e["name"] for e in r.json["entries"]}) in
                (10_000, self.many), True, len(r.json["entries"]))
        if not ASAN:
            for n, p in kids.items():
                self.under(rss(p) - before[n], 64 << 10,
                           f"KiB that {n} grew by")

    def test_entries(self):
        r = self.ok(self.svc.list("kinds")).json
        self.eq((r["path"], r["truncated"]), ("kinds", False))
        e = {x["name"]: x for x in r["entries"]}
        self.eq(set(e), {"f", "d", "l"})
        self.eq({n: x["type"] for n, x in e.items()},
                {"f": "file", "d": "directory", "l": "symlink"})
        self.eq((e["f"]["size"], e["f"]["path"]), (5, "kinds/f"))
        self.eq(e["f"]["mode"].lstrip("0"), "640")
        self.eq(e["d"]["mode"].lstrip("0"), "750")
        self.eq(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z",
                             e["f"]["mtime"]) is not None, True)
        self.eq(set(e["f"]) >= {"name", "path", "type", "size", "mode",
                                "mtime", "etag"}, True, e["f"])
        full = self.world.w + "/kinds"
        e = self.ok(self.svc.list(full)).json["entries"]
        self.eq({x["path"] for x in e}, {full + "/" + n for n in "fdl"})
        s = self.ok(self.svc.stat("kinds/f")).json
        self.eq((s["name"], s["path"], s["type"], s["size"]),
                ("f", "kinds/f", "file", 5))

    def test_sorted(self):
        """Few and many; the order of a directory is another one."""
        for n in (1, 2, 30, 50, 1000, 10_000):
            r = self.ok(self.svc.list("huge", f"&max_entries={n}&sort=name"))
            names = [e["name"] for e in r.json["entries"]]
            self.eq((names == sorted(names), len(set(names))), (True, n))

    def test_empty_and_exact(self):
        self.eq(self.ok(self.svc.list("none")).json["entries"], [])
        r = self.ok(self.svc.list("kinds", "&max_entries=3")).json
        self.eq((len(r["entries"]), r["truncated"]), (3, False))
        r = self.ok(self.svc.list("kinds", "&max_entries=2")).json
        self.eq((len(r["entries"]), r["truncated"]), (2, True))
        self.refused(self.svc.list("kinds", "&sort=size"), 400,
                     "args.invalid")
        r = self.ok(self.svc.list("kinds", "&sort=name")).json
        self.eq([e["name"] for e in r["entries"]], ["d", "f", "l"])


class Uploads(Files):
    def stray(self):
        """Names that only an unfinished upload could have made."""
        return [f for _, dirs, files in os.walk(self.world.w)
                for f in dirs + files if f.startswith(".abx")]

    def test_sizes(self):
        for n in (0, 1, 4095, 65536, 65537, 262144, 1_000_003):
            data = os.urandom(n)
            r = self.svc.upload(f"s{n}", data)
            self.eq(self.ok(r, 201).json["bytes"], n)
            self.eq(self.world.get(f"w/s{n}") == data, True, n)
            self.eq(self.svc.download(f"s{n}").header("etag").strip('"'),
                    r.json["etag"].strip('"'))
        self.eq(self.stray(), [])

    def test_replace_keeps_the_mode(self):
        self.ok(self.svc.upload("m", b"1"), 201)
        self.eq(os.stat(self.world.w + "/m").st_mode & 0o7777, 0o640)
        os.chmod(self.world.w + "/m", 0o4755)
        self.ok(self.svc.upload("m", b"2"), 200)
        self.eq(os.stat(self.world.w + "/m").st_mode & 0o7777, 0o755,
                "kept, but never set-id")
        self.ok(self.svc.upload("m2", b"1", "&mode=0600"), 201)
        self.eq(os.stat(self.world.w + "/m2").st_mode & 0o7777, 0o600)
        r = self.svc.upload("m3", b"1", "&mode=4755")
        if r.status == 201:
            self.eq(os.stat(self.world.w + "/m3").st_mode & 0o7000, 0)
        for mode in ("9", "x", "-1", "0o644", "777777777777777777777"):
            self.eq(self.svc.upload("m4", b"1", "&mode=" + mode).status, 400,
                    mode)

    def test_parents_are_made(self):
        self.ok(self.svc.upload("new/deep/er/f", b"1"), 201)
        self.eq(self.world.get("w/new/deep/er/f"), b"1")
        big = self.svc.build("PUT", "/files/upload-stream?path=gone/deep/f",
                             b"x" * 1000, headers={"Content-Length": "9999"})
        with Conn(self.svc) as c:
            c.send(big)
            time.sleep(0.2)
        until(10, lambda: not os.path.exists(self.world.w + "/gone"))
        self.eq(os.path.exists(self.world.w + "/gone"), False,
                "parents of an upload that broke")

    def test_conditions(self):
        none = {"If-None-Match": "*"}
        r = self.ok(self.svc.upload("cond", b"1", headers=none), 201)
        self.refused(self.svc.upload("cond", b"2", headers=none), 412,
                     "fs.changed", "fs.exists")
        tag = r.json["etag"]
        tag = tag if tag.startswith('"') else f'"{tag}"'
        self.ok(self.svc.upload("cond", b"3", headers={"If-Match": tag}))
        self.refused(self.svc.upload("cond", b"4",
                                     headers={"If-Match": tag}), 412,
                     "fs.changed")
        self.refused(self.svc.upload("cond2", b"4",
                                     headers={"If-Match": tag}), 412,
                     "fs.changed")
        self.eq(self.world.get("w/cond"), b"3")

    def test_lists_of_tags(self):
        """RFC 9110, 13.1: what is no list is not taken for no condition."""
        def tag():
            return self.svc.stat("lists").json["etag"]

        self.ok(self.svc.upload("lists", b"0"), 201)
        old = tag()
        for name, value, good in (
                ("If-Match", '"x", TAG', True), ("If-Match", "*", True),
                ("If-Match", "W/TAG", False), ("If-Match", "", False),
                ("If-Match", "nonsense", False), ("If-Match", OLD, False),
                ("If-Match", "TAG" + " " * 9 + ', "' + "x" * 90 + '"', False),
                ("If-None-Match", "TAG", False), ("If-None-Match", '"x"', True),
                ("If-None-Match", 'W/TAG, "x"', False),
                ("If-None-Match", "*, *", False), ("If-None-Match", "", False),
                ("If-None-Match", "nonsense", False)):
            value = value.replace("TAG", tag()).replace(OLD, old)
            with self.subTest(f"{name}: {value}"):
                r = self.svc.upload("lists", value.encode(),
                                    headers={name: value})
                self.eq(r.status, 200 if good else 412)
                old = old if old != tag() else '"z"'
        twice = self.svc.build("PUT", "/files/upload-stream?path=lists", b"t",
                               headers={"If-None-Match": "*"})
        twice = twice.replace(b"If-None", b"If-None-Match: *\r\nIf-None")
        with Conn(self.svc) as c:
            c.send(twice)
            self.refused(c.reply("PUT"), 412, "fs.changed")
        self.ok(self.svc.upload("lists-new", b"0",
                                headers={"If-None-Match": '"x"'}), 201)

    def test_conditional_delete(self):
        r = self.ok(self.svc.upload("cdel", b"1"), 201)
        for head in ({"If-Match": '"x"'}, {"If-None-Match": "*"}):
            self.refused(self.svc.call("DELETE", "/files?path=cdel",
                                       headers=head), 412, "fs.changed")
        self.ok(self.svc.call("DELETE", "/files?path=cdel",
                              headers={"If-Match": r.json["etag"]}))

    def test_written_to_while_it_comes(self):
        """If-Match holds to the end, for a file that keeps its inode too."""
        r = self.ok(self.svc.upload("held", b"1" * 9), 201)
        whole = self.svc.build("PUT", "/files/upload-stream?path=held",
                               b"2" * 9, headers={"If-Match": r.json["etag"],
                                                  "Expect": "100-continue"})
        with Conn(self.svc) as c:
            c.send(whole[:-9])
            self.eq(c.head()[0], 100)
            with open(self.world / "w/held", "ab") as f:
                f.write(b"theirs")
            c.send(whole[-9:])
            self.refused(c.reply("PUT"), 412, "fs.changed")
        self.eq(self.world.get("w/held"), b"1" * 9 + b"theirs")

    def test_json_upload(self):
        data = bytes(range(256)) * 10
        r = self.svc.rpc("files.upload", {
            "path": "j", "content": base64.b64encode(data).decode(),
            "encoding": "base64"})
        self.eq(self.ok(r, 201).json["bytes"], len(data))
        self.eq(self.world.get("w/j"), data)
        r = self.svc.call("POST", "/files/upload", {
            "path": "j", "content": "ünï", "encoding": "utf-8"})
        self.ok(r, 200)
        self.eq(self.world.get("w/j").decode(), "ünï")
        self.ok(self.svc.rpc("files.upload", {"path": "j", "content": ""}))
        self.eq(self.world.get("w/j"), b"")
        for target in ("/files/upload?content=abc", "/rpc/files.upload"
                       "?encoding=base64"):
            self.refused(self.svc.call("POST", target, {
                "path": "j", "content": "eA=="}), 400, "args.invalid")
        for more in ("&content=x", "&encoding=base64"):
            self.refused(self.svc.upload("j", b"x", more), 400,
                         "args.invalid")
        self.eq(self.world.get("w/j"), b"")
        for more in ({"content": "???", "encoding": "base64"},
                     {"content": "x", "encoding": "latin-1"},
                     {"content": 1}, {"content": "x", "encoding": 1}, {}):
            r = self.svc.rpc("files.upload", {"path": "j2", **more})
            self.eq(r.status, 400, more)
        big = "x" * (5 << 20)
        self.ok(self.svc.rpc("files.upload", {"path": "j3", "content": big}),
                201)
        self.eq(os.stat(self.world.w + "/j3").st_size, 5 << 20)

    def test_many_at_once(self):
        wrong = []

        def one(i):
            data = bytes([i]) * (200_000 + i)
            for _ in range(5):
                r = self.svc.upload("shared", data)
                if r.status not in (200, 201, 403):
                    wrong.append(r)
        threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        got = self.world.get("w/shared")
        self.eq(wrong, [])
        self.eq(len(set(got)), 1, "bytes of one upload only")
        self.eq(len(got), 200_000 + got[0], "all bytes of one upload")
        self.eq(self.stray(), [])

    def test_slow_upload_does_not_hold_others(self):
        held = []
        for i in range(6):
            c = Conn(self.svc)
            c.send(self.svc.build("PUT", f"/files/upload-stream?path=h{i}",
                                  b"x", headers={"Content-Length": "2"}))
            held.append(c)
        time.sleep(0.2)
        r = self.ok(self.svc.stat("a.txt"))
        self.under(r.secs, 1 * SLOW, "seconds")
        self.ok(self.svc.upload("quick", b"1"), 201)
        for c in held:
            c.send(b"y")
            self.ok(c.reply(), 201)
            c.close()


class MaxBytes(Files):
    @classmethod
    def fill(cls, w):
        w.put("w/over", b"x" * 10_001)
        w.put("w/exact", b"x" * 10_000)

    @classmethod
    def conf(cls, w):
        return {"rules": scopes(w, max_bytes="10kB")}

    def test_upload(self):
        for n, ok in ((9_999, True), (10_000, True), (10_001, False),
                      (5_000_000, False)):
            for chunked in (False, True):
                body = b"y" * n
                with self.subTest(n=n, chunked=chunked), \
                        Conn(self.svc) as c:
                    name = f"u{n}{chunked}"
                    self.world.put("w/" + name, "old")
                    self.world.own("w/" + name)
                    if ROOT:
                        os.chmod(self.world.w + "/" + name, 0o666)
                    if chunked:
                        c.send(self.svc.build(
                            "PUT", "/files/upload-stream?path=" + name, b"",
                            headers={"Content-Length": None,
                                     "Transfer-Encoding": "chunked"})
                            + b"%x\r\n" % n + body + b"\r\n0\r\n\r\n")
                    else:
                        c.send(self.svc.build(
                            "PUT", "/files/upload-stream?path=" + name,
                            body))
                    r = c.reply()
                    if ok:
                        self.ok(r)
                        self.eq(self.world.get("w/" + name), body)
                    else:
                        self.refused(r, 413, "limit.max_bytes")
                        self.eq(self.world.get("w/" + name), b"old",
                                "the old file")
        r = self.svc.rpc("files.upload", {"path": "j",
                                          "content": "x" * 10_001})
        self.refused(r, 413, "limit.max_bytes")
        self.eq(os.path.exists(self.world.w + "/j"), False)
        self.eq([f for f in os.listdir(self.world.w)
                 if f.startswith(".abx")], [])

    def test_download(self):
        self.ok(self.svc.download("exact"))
        for headers in ({}, {"Range": "bytes=0-1"}):
            self.refused(self.svc.download("over", headers=headers), 413,
                         "limit.max_bytes")
        self.refused(self.svc.get("/files/download?path=over"), 413,
                     "limit.max_bytes")


class KillDuringUpload(Files):
    @timeout(120)
    def test_atomic(self):
        """Whoever dies in the middle: the old file stays, nothing else."""
        w = self.world
        for victim in ("abx-listener", "abx-pathd", "abx-monitor", "abxd"):
            with self.subTest(victim):
                self.svc.revive()
                self.svc.rough = True
                w.put("w/keep/old", "the old content")
                w.own("w/keep")
                with Conn(self.svc) as c, Conn(self.svc) as d:
                    for conn, name in ((c, "old"), (d, "new")):
                        conn.send(self.svc.build(
                            "PUT", "/files/upload-stream?path=keep/" + name,
                            b"n" * 500_000,
                            headers={"Content-Length": "1000000"}))
                    time.sleep(0.3)
                    procs = dict(self.svc.family())
                    pid = self.svc.proc.pid if victim == "abxd" \
                        else self.svc.kid(victim)
                    os.kill(pid, signal.SIGKILL)
                    if victim in ("abx-monitor", "abxd"):
                        self.svc.proc.wait(20 * SLOW)
                        self.eq(still_there(procs, 2), {}, "left over")
                    else:
                        self.eq(until(10, lambda: pid not in family(
                            self.svc.proc.pid)), True)
                    if victim == "abx-pathd":
                        # answered, not dropped
                        self.refused(c.reply(), 503, "server.unavailable")
                self.svc.revive()
                self.eq(until(10, lambda: self.svc.stat("a.txt").status
                              == 200), True, "serves again")
                self.eq(sorted(os.listdir(w.w + "/keep")), ["old"])
                self.eq(w.get("w/keep/old"), b"the old content")

    def test_cut_connections(self):
        """At many points of an upload."""
        w = self.world
        w.put("w/cut", "before")
        w.own("w/cut")
        full = self.svc.build("PUT", "/files/upload-stream?path=cut",
                              b"n" * 300_000)
        for at in list(range(1, len(full), 9973)) + [len(full) - 1]:
            with Conn(self.svc) as c:
                c.send(full[:at])
        time.sleep(0.3)
        self.eq(w.get("w/cut"), b"before")
        self.ok(self.svc.upload("cut", b"after"))
        self.eq(w.get("w/cut"), b"after")
        self.eq([f for f in os.listdir(w.w) if f.startswith(".abx")], [])


class NoSpace(Case):
    @needs_root
    def test_T019_half_written_upload(self):
        w = World()
        self.addCleanup(w.remove)
        os.mkdir(w / "small")
        w.own()
        # in a mount namespace of its own, so that nothing stays mounted
        script = (f"mount -t tmpfs -o size=1m,mode=0777 none {w.dir}/small "
                  '&& exec "$@"')
        svc = self.start(
            {"rules": [{"allow": READ + WRITE, "paths": w / "small"}]},
            world=w, before=("unshare", "-m", "--propagation", "private",
                             "sh", "-c", script, "sh"))
        old = os.urandom(100 << 10)
        self.ok(svc.upload("f", old), 201)
        for more in ({}, {"Content-Length": None}):
            if more:
                data = b"%x\r\n" % (5 << 20) + b"x" * (5 << 20) \
                    + b"\r\n0\r\n\r\n"
                r = svc.call("PUT", "/files/upload-stream?path=f", data,
                             headers={"Content-Length": None,
                                      "Transfer-Encoding": "chunked"})
            else:
                r = svc.upload("f", b"x" * (5 << 20))
            self.refused(r, 507, "fs.no_space")
            self.eq(self.ok(svc.download("f")).body == old, True,
                    "the old content")
            names = {e["name"] for e in svc.list(".").json["entries"]}
            self.eq(names, {"f"}, "no stray file")
        self.refused(svc.upload("g", b"x" * (5 << 20)), 507, "fs.no_space")
        self.ok(svc.upload("g", b"x" * 1000), 201)


class Changes(Files):
    @classmethod
    def fill(cls, w):
        for i in range(20):
            w.put(f"w/m{i}", f"{i}")
        w.put("w/dir/sub/f", "x")
        w.put("w/full/f", "x")

    def test_T029_move_semantics(self):
        def move(src, dst, **more):
            return self.svc.rpc("files.move", {"src": src, "dst": dst,
                                               **more})
        self.refused(move("m0", "m1"), 409, "fs.exists")
        self.eq(self.world.get("w/m1"), b"1")
        self.refused(move("m0", "m1", overwrite=False), 409, "fs.exists")
        r = self.ok(move("m0", "m1", overwrite=True))
        self.eq(r.json, {"src": "m0", "dst": "m1"})
        self.eq(self.world.get("w/m1"), b"0")
        self.refused(move("dir", "dir/inside"), 400, "args.invalid")
        self.refused(move("dir", "dir/sub/x"), 400, "args.invalid")
        self.refused(move("m2", "none/such/../../m3"), 409, "fs.exists")
        self.ok(move("m2", "brand/new/place"))
        self.eq(self.world.get("w/brand/new/place"), b"2")
        self.refused(move("dir", "full"), 409, "fs.exists")
        self.refused(move("dir", "full", overwrite=True), 409,
                     "fs.not_empty", "fs.exists", "fs.is_directory")
        self.refused(move("m3", "full", overwrite=True), 409,
                     "fs.is_directory", "fs.exists")
        self.refused(move("dir", "m3", overwrite=True), 409,
                     "fs.not_directory", "fs.exists")
        self.among(move("m3", "m3", overwrite=True).status, (200, 400, 409))
        self.eq(self.world.get("w/m3"), b"3")
        self.ok(move("dir", "elsewhere"))
        self.eq(self.world.get("w/elsewhere/sub/f"), b"x")

    def test_T015_recursive_delete(self):
        w = self.world
        w.put("outside/dir/precious", MARKER)
        w.put("w/d/f", "x")
        w.put("w/d/e/g", "x")
        w.link("w/d/ln", w / "outside/dir")
        w.link("w/d/e/ln", w / "outside/dir/precious")
        w.link("w/d/up", "..")
        w.own("w/d", "outside")
        self.refused(self.svc.rpc("files.delete", {"path": "d"}), 409,
                     "fs.not_empty", "fs.is_directory")
        r = self.ok(self.svc.rpc("files.delete", {"path": "d",
                                                  "recursive": True}))
        self.eq(r.json, {"deleted": 7})
        self.eq(os.path.lexists(w.w + "/d"), False)
        self.eq(w.get("outside/dir/precious"), MARKER.encode())
        self.eq(os.path.exists(w.w + "/a.txt"), True)

    def test_delete(self):
        w = self.world
        self.eq(self.ok(self.svc.rpc("files.delete", {"path": "m5"})).json,
                {"deleted": 1})
        r = self.svc.call("DELETE", "/files?path=m6")
        self.eq(self.ok(r).json, {"deleted": 1})
        os.mkdir(w.w + "/void")
        self.ok(self.svc.rpc("files.delete", {"path": "void"}))
        w.link("w/ln", "m7")
        self.ok(self.svc.rpc("files.delete", {"path": "ln"}))
        self.eq((os.path.lexists(w.w + "/ln"), w.get("w/m7")),
                (False, b"7"), "the link goes, not what it leads to")

    def test_mkdir(self):
        r = self.ok(self.svc.rpc("files.mkdir", {"path": "nd"}), 201)
        self.eq(r.json, {"path": "nd"})
        self.refused(self.svc.rpc("files.mkdir", {"path": "nd"}), 409,
                     "fs.exists")
        self.refused(self.svc.rpc("files.mkdir", {"path": "a.txt"}), 409,
                     "fs.exists")
        self.ok(self.svc.rpc("files.mkdir", {"path": "p/q/r",
                                             "parents": True}), 201)
        self.eq(os.path.isdir(self.world.w + "/p/q/r"), True)
        self.eq(os.stat(self.world.w + "/nd").st_mode & 0o7777, 0o750)

    def test_T016_parent_swap_on_write(self):
        """A parent flips between a directory and a link to outside."""
        w = self.world
        os.makedirs(w.w + "/up/real")
        w.link("w/up/link", w.outside)
        w.own("w/up")
        libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
        a, b = (os.fsencode(w.w + "/up/" + n) for n in ("real", "link"))
        stop = threading.Event()

        def flip():
            while not stop.is_set():
                libc.renameat2(-100, a, -100, b, 2)  # RENAME_EXCHANGE
        t = threading.Thread(target=flip)
        t.start()
        try:
            end = time.monotonic() + (30 if LONG else 3)
            n = 0
            while time.monotonic() < end:
                for r in (self.svc.upload("up/real/x", b"escaped"),
                          self.svc.rpc("files.mkdir",
                                       {"path": "up/real/dir"}),
                          self.svc.download("up/real/secret.txt"),
                          self.svc.rpc("files.delete",
                                       {"path": "up/real/secret.txt"})):
                    n += 1
                    if r.status >= 400:
                        self.among(r.code, (
                            "policy.path_changed", "policy.path_not_allowed",
                            "fs.not_found", "fs.exists"), r)
        finally:
            stop.set()
            t.join()
        self.eq(sorted(os.listdir(w.outside)) in (
            ["secret.txt"], ["dir", "secret.txt"]), True,
            f"something was written outside after {n} calls: "
            f"{os.listdir(w.outside)}")
        self.eq(w.get("outside/secret.txt"), MARKER.encode())
        self.eq([f for f in os.listdir(w.outside) if f.startswith("x")], [])


class Shares(Case):
    """One caller may have all that its limits let it have, and not be in
    everybody's way."""

    @classmethod
    def fill(cls, w):
        w.put("w/big", b"\0" * (8 << 20))

    @classmethod
    def conf(cls, w):
        return {"rules": [{"allow": ["files.*"],
                           "paths": {"roots": [w.w, w.r]}}]}

    def slow(self, token, method, target, body=None, **headers):
        """As many at once as a caller gets, of clients that do nothing."""
        for _ in range(8):
            c = Conn(self.svc, rcvbuf=2048)
            self.addCleanup(c.close)
            c.send(self.svc.build(method, target, body, token=token,
                                  headers=headers))

    def test_slow_clients_of_one_caller(self):
        w = self.world.w
        for method, target, body in (
                ("GET", "/files/export?path=" + quoted(w), None),
                ("PUT", "/files/upload-stream?path=" + quoted(w + "/slow"),
                 b"")):
            for token in ALICE, ADMIN:
                more = {} if body is None else {"Content-Length": "100000"}
                self.slow(token, method, target, body, **more)
            time.sleep(0.3)
            for r in (self.svc.list(w + "/sub", token=BOB),
                      self.svc.upload(w + "/new", b"x", token=BOB)):
                self.under(r.status, 300, r)
                self.under(r.secs, 1.5 * SLOW, f"seconds behind {method}")

    def test_watches_of_one_caller(self):
        target = "/files/watch?path=" + quoted(self.world.w)
        self.slow(ALICE, "GET", target)
        with Conn(self.svc) as c:
            c.send(self.svc.build("GET", target, token=BOB))
            self.eq(c.head()[0], 200)


class Streams(Files):
    """The memory of every process while a lot flows."""

    size = 64 << 20 if ASAN else GIB

    def watch(self, work):
        kids = {f"{comm(p)}[{p}]": p for p in family(self.svc.proc.pid)}
        kids[f"abxd[{self.svc.proc.pid}]"] = self.svc.proc.pid
        before = {n: rss(p) for n, p in kids.items()}
        most = dict(before)
        stop = threading.Event()

        def look():
            while not stop.wait(0.02):
                for n, p in kids.items():
                    most[n] = max(most[n], rss(p))
        t = threading.Thread(target=look)
        t.start()
        try:
            work()
        finally:
            stop.set()
            t.join()
        if not ASAN:
            for n in kids:
                self.under(most[n] - before[n], 4 << 10,
                           f"KiB that {n} grew by (from {before[n]})")

    @timeout(240)
    def test_T026_streaming_memory(self):
        size = self.size
        with open(self.world.w + "/sparse", "wb") as f:
            f.truncate(size)
        self.svc.download("a.txt")
        self.svc.upload("warm", b"x" * 100_000)
        self.svc.download("warm")

        def down():
            with Conn(self.svc, timeout=60) as c:
                c.send(self.svc.build(
                    "GET", "/files/download-stream?path=sparse"))
                self.eq(c.head()[0], 200)
                got, room = len(c.buf), bytearray(1 << 20)
                while got < size:
                    n = c.s.recv_into(room)
                    self.eq(n > 0, True, f"ended after {got} bytes")
                    got += n
        self.watch(down)
        os.unlink(self.world.w + "/sparse")

        def up():
            part = os.urandom(1 << 20)
            with Conn(self.svc, timeout=60) as c:
                c.send(self.svc.build(
                    "PUT", "/files/upload-stream?path=large", b"",
                    headers={"Content-Length": str(size)}))
                for _ in range(size >> 20):
                    self.eq(c.send(part), True, "the service hung up")
                self.eq(self.ok(c.reply(), 201).json["bytes"], size)
            with open(self.world.w + "/large", "rb") as f:
                while got := f.read(1 << 20):
                    if got != part:
                        self.fail("other bytes arrived")
        self.watch(up)
        self.eq(os.stat(self.world.w + "/large").st_size, size)

    def test_a_stalled_download_holds_nobody(self):
        with open(self.world.w + "/big", "wb") as f:
            f.truncate(100 << 20)
        with Conn(self.svc, rcvbuf=4096) as c:
            c.send(self.svc.build("GET", "/files/download-stream?path=big"))
            c.head()
            r = self.ok(self.svc.download("a.txt"))
            self.under(r.secs, 1 * SLOW, "seconds")

    def test_a_file_that_shrinks(self):
        """Fewer bytes than announced end the connection, never a short
        answer that looks whole."""
        path = self.world.w + "/shrinks"
        with open(path, "wb") as f:
            f.write(b"x" * (20 << 20))
        with Conn(self.svc, rcvbuf=4096, timeout=5) as c:
            c.send(self.svc.build("GET",
                                  "/files/download-stream?path=shrinks"))
            _, headers, _ = c.head()
            os.truncate(path, 1000)
            want = int(dict(headers)["content-length"])
            try:
                while c.more():
                    pass
            except TimeoutError:
                self.fail("the connection stays open")
            self.under(len(c.buf), want, "bytes")
        self.health()
