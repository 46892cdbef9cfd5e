# SPDX-License-Identifier: ISC
"""Operations on files and trees beyond the plain ones: checksums, recursive
listings, copies, edits, searches, archives, watching."""
import base64
import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time
import unittest

from abxtest import (ASAN, MARKER, ROOT, SLOW, Case, Conn, World, family, fds,
                     needs_root, proc_stat, quoted, timeout, until)


def rules(w, **more):
    return [{"allow": ["files.**", "group:files", "core.check"],
             "paths": {"roots": [w.w], "deny": ["**/.env", w.w + "/vault"],
                       **more}}]


def digest(data):
    return "sha-256=:" + base64.b64encode(
        hashlib.sha256(data).digest()).decode() + ":"


class FileOps(Case):
    @classmethod
    def conf(cls, w):
        return {"rules": rules(w)}

    def fresh(self):
        w = World()
        self.addCleanup(w.remove)
        return w

    def left(self, where="w"):
        """Names of ours that are still there."""
        return [n for _, ds, fs in os.walk(self.world / where)
                for n in ds + fs if n.startswith(".abx-")]

    def tearDown(self):
        self.eq(until(5, lambda: not self.left()), True, "left behind")


class Checksums(FileOps):
    def put(self, path, data, more="", **headers):
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        return self.svc.upload(path, data, more, headers=headers)

    def test_checksum(self):
        for data in (b"", b"abc", os.urandom(300_000)):
            a = self.put("sum", data, "&checksum=true")
            self.among(a.status, (200, 201))
            self.eq(a.json["sha256"], hashlib.sha256(data).hexdigest())
        a = self.svc.rpc("files.upload", {"path": "sum", "content": "x",
                                          "checksum": True})
        self.eq(self.ok(a).json["sha256"], hashlib.sha256(b"x").hexdigest())
        self.eq("sha256" in self.put("sum", b"x").json, False)

    def test_digest(self):
        self.ok(self.put("dig", b"one", Content_Digest=digest(b"one")), 201)
        self.refused(self.put("dig", b"two", Content_Digest=digest(b"one")),
                     400, "fs.digest_mismatch")
        self.refused(self.put("new", b"two", Content_Digest=digest(b"one")),
                     400, "fs.digest_mismatch")
        self.eq(self.world.get("w/dig"), b"one")
        self.eq(os.path.lexists(self.world / "w/new"), False)
        for bad in ("sha-256=:AAAA:", "sha-256", "sha-256=" + "A" * 44):
            self.refused(self.put("dig", b"one", Content_Digest=bad), 400,
                         "args.invalid")
        # an algorithm that we do not know is nobody's promise
        self.ok(self.put("dig", b"two", Content_Digest="unixsum=:AAAA:"))

    def test_if_match_argument(self):
        etag = self.ok(self.put("m", b"1"), 201).json["etag"]
        self.refused(self.put("m", b"2", "&if_match=%22no%22"), 412,
                     "fs.changed")
        self.ok(self.put("m", b"2", "&if_match=" + quoted(etag)))

    def test_idempotent_upload(self):
        one = {"Idempotency_Key": "k1", "Content_Digest": digest(b"one")}
        a = self.ok(self.put("idem", b"one", **one), 201)
        with open(self.world / "w/idem", "wb") as f:
            f.write(b"changed since")
        b = self.ok(self.put("idem", b"one", **one), 201)
        self.eq(b.json, a.json)
        self.eq(self.world.get("w/idem"), b"changed since", "not done twice")
        self.refused(self.put("idem", b"two", Idempotency_Key="k1",
                              Content_Digest=digest(b"two")), 409,
                     "idempotency.mismatch")
        self.refused(self.put("idem", b"x", Idempotency_Key="k2"), 400,
                     "args.invalid")
        # content that did not come as it was sent is no result
        two = {"Idempotency_Key": "k3", "Content_Digest": digest(b"right")}
        self.refused(self.put("idem", b"wrong", **two), 400,
                     "fs.digest_mismatch")
        self.ok(self.put("idem", b"right", **two))

    def test_idempotent_json_upload(self):
        def up(text, key="j1"):
            return self.svc.rpc("files.upload", {"path": "j", "content": text},
                                headers={"Idempotency-Key": key})
        a = self.ok(up("one"), 201)
        self.eq(self.ok(up("one"), 201).json, a.json)
        self.refused(up("two"), 409, "idempotency.mismatch")

    def test_broken_upload_frees_its_key(self):
        head = {"Idempotency-Key": "b1", "Content-Digest": digest(b"whole"),
                "Content-Length": "5"}
        with Conn(self.svc) as c:
            c.send(self.svc.build("PUT", "/files/upload-stream?path=broken",
                                  b"", headers=head) + b"wh")
        self.among(until(5, lambda: self.svc.upload(
            "broken", b"whole", headers=head).status == 201), (True,))


class Listings(FileOps):
    @classmethod
    def fill(cls, w):
        w.put("w/t/a", "1")
        w.put("w/t/d/b", "22")
        w.put("w/t/d/e/c", "333")
        w.put("w/t/d/.env", "SECRET")
        w.put("w/vault/k", "SECRET")
        w.link("w/t/loop", ".")
        w.link("w/t/d/up", "..")
        w.link("w/t/d/out", "/etc")

    def names(self, path, more=""):
        r = self.ok(self.svc.list(path, more)).json
        return sorted(e["path"] for e in r["entries"]), r["truncated"]

    def test_deeper_than_can_be_walked(self):
        """What is left out is not said to be all."""
        at = self.world / "w/pit"
        os.mkdir(at)
        fd = os.open(at, os.O_RDONLY | os.O_DIRECTORY)
        for _ in range(1100):
            os.mkdir("d", dir_fd=fd)
            down = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = down
        os.close(fd)
        subprocess.run(["chown", "-R", "--reference", self.world.w, at],
                       check=True)
        try:
            self.in_the_pit()
        finally:
            subprocess.run(["rm", "-rf", at], check=False)

    def in_the_pit(self):
        for more, cut in (("&depth=9", False), ("&recursive=true", True)):
            r = self.ok(self.svc.list("pit", more + "&max_entries=9999"))
            self.eq(r.json["truncated"], cut, more)
        for kind in ("name", "content"):
            r = self.ok(self.svc.rpc("files.search", {
                "root": "pit", "pattern": "x", "kind": kind}))
            self.eq(r.json, {"matches": [], "truncated": True})

    def test_T021_recursive(self):
        whole = ["t/a", "t/d", "t/d/b", "t/d/e", "t/d/e/c", "t/d/up",
                 "t/loop"]
        self.eq(self.names("t", "&recursive=true"), (whole, False))
        self.eq(self.names("t"), (["t/a", "t/d", "t/loop"], False))
        self.eq(self.names("t", "&depth=2"),
                ([p for p in whole if p.count("/") < 3], False))
        got, cut = self.names("t", "&recursive=true&max_entries=3")
        self.eq((len(got), cut), (3, True))
        r = self.ok(self.svc.list("t", "&recursive=true&sort=name")).json
        self.eq([e["path"] for e in r["entries"]], whole)
        self.eq({e["path"]: (e["name"], e["size"]) for e in r["entries"]
                 if e["type"] == "file"},
                {"t/a": ("a", 1), "t/d/b": ("b", 2), "t/d/e/c": ("c", 3)})

    def test_deny_holds_below(self):
        paths, _ = self.names(".", "&recursive=true")
        self.eq([p for p in paths if "vault" in p or ".env" in p], [])

    def test_depth_is_a_number(self):
        self.refused(self.svc.list("t", "&depth=0"), 400, "args.type")
        self.refused(self.svc.list("t", "&depth=x"), 400, "args.type")


class Copies(FileOps):
    @classmethod
    def fill(cls, w):
        w.put("w/f", "file", 0o750)
        w.put("w/d/a", "a")
        w.put("w/d/sub/b", "b", 0o600)
        w.put("w/d/sub/.env", "SECRET")
        w.put("w/d/empty/.env", "SECRET")
        w.link("w/d/in", "a")
        w.link("w/d/out", "/etc/passwd")
        w.put("w/d/two", "2")
        os.link(w / "w/d/two", w / "w/d/three")
        os.mkfifo(w / "w/d/fifo")

    def copy(self, src, dst, **more):
        return self.svc.rpc("files.copy", {"src": src, "dst": dst, **more})

    def test_file(self):
        w = self.world
        self.eq(self.ok(self.copy("f", "x/y/f2")).json,
                {"src": "f", "dst": "x/y/f2"})
        self.eq(w.get("w/x/y/f2"), b"file")
        self.eq(os.stat(w / "w/x/y/f2").st_mode & 0o777, 0o750)
        self.refused(self.copy("d/a", "x/y/f2"), 409, "fs.exists")
        self.ok(self.copy("d/a", "x/y/f2", overwrite=True))
        self.eq(w.get("w/x/y/f2"), b"a")
        self.eq(os.stat(w / "w/x/y/f2").st_mode & 0o777, 0o750)
        self.ok(self.svc.call("POST", "/files/copy",
                              {"src": "f", "dst": "rest"}))
        self.refused(self.copy("f", "d", overwrite=True), 409,
                     "fs.is_directory")
        self.refused(self.copy("gone", "n"), 404, "fs.not_found")
        self.refused(self.copy("d/fifo", "n"), 403, "policy.not_regular_file")
        self.refused(self.copy("d/two", "n"), 403, "policy.hardlink_denied")
        self.refused(self.copy("d/out", "n"), 403, "policy.path_not_allowed")
        self.refused(self.copy("d/sub/.env", "n"), 403, "policy.path_denied")
        self.refused(self.copy("f", "vault/n"), 403, "policy.path_denied")
        self.refused(self.copy("f", ".", overwrite=True), 403,
                     "policy.root_protected")

    def test_tree(self):
        w = self.world
        self.ok(self.copy("d", "p/q"))
        got = sorted(os.path.relpath(os.path.join(t, n), w / "w/p/q")
                     for t, ds, fs in os.walk(w / "w/p/q") for n in ds + fs)
        self.eq(got, ["a", "empty", "in", "sub", "sub/b"])
        self.eq(os.readlink(w / "w/p/q/in"), "a")
        self.eq(os.stat(w / "w/p/q/sub/b").st_mode & 0o777, 0o600)
        self.refused(self.copy("d", "p/q"), 409, "fs.exists")
        self.refused(self.copy("d", "p/q", overwrite=True), 409,
                     "fs.not_empty")
        os.mkdir(w / "w/hollow")
        w.own("w/hollow")
        self.ok(self.copy("d", "hollow", overwrite=True))
        self.eq(w.get("w/hollow/sub/b"), b"b")
        self.refused(self.copy("d", "d/sub/x"), 400, "args.invalid")
        self.refused(self.copy(".", "x"), 400, "args.invalid")
        self.refused(self.copy("d", "f", overwrite=True), 409,
                     "fs.not_directory")

    def test_limits(self):
        w = self.fresh()
        w.put("w/f", "file")
        w.put("w/d/a", "a")
        w.put("w/d/b", "b")
        w.own()
        svc = self.start({"rules": [
            {"allow": "files.copy", "paths": {"roots": [w.w]},
             "limits": {"max_bytes": 3, "max_entries": 1}}]}, world=w)
        self.refused(svc.rpc("files.copy", {"src": "f", "dst": "l1"}), 413,
                     "limit.max_bytes")
        self.refused(svc.rpc("files.copy", {"src": "d", "dst": "l2"}), 413,
                     "limit.max_entries")
        self.eq([n for n in os.listdir(w.w) if n[0] == "l"
                 or n.startswith(".abx")], [])

    def test_sparse(self):
        with open(self.world / "w/sparse", "wb") as f:
            f.truncate(1 << 30)
            f.seek(1 << 29)
            f.write(b"middle")
        self.world.own("w/sparse")
        self.ok(self.copy("sparse", "sparse2"))
        st = os.stat(self.world / "w/sparse2")
        self.eq(st.st_size, 1 << 30)
        self.under(st.st_blocks * 512, 1 << 24)
        with open(self.world / "w/sparse2", "rb") as f:
            f.seek(1 << 29)
            self.eq(f.read(6), b"middle")


    def test_too_deep(self):
        """What was copied of it goes again."""
        fds = [os.open(self.world.w, os.O_RDONLY)]
        for _ in range(1100):
            os.mkdir("e", dir_fd=fds[-1])
            fds.append(os.open("e", os.O_RDONLY, dir_fd=fds[-1]))
            if len(fds) > 2:
                os.close(fds.pop(0))
        for fd in fds:
            os.close(fd)
        r = self.svc.rpc("files.copy", {"src": "e", "dst": "e2"})
        names = os.listdir(self.world.w)
        subprocess.run(["rm", "-rf", self.world.w + "/e"], check=True)
        self.refused(r, 400, "fs.name_too_long")
        self.eq([n for n in names if n.startswith(".abx-")], [])


class Spellings(FileOps):
    """A path in base64 is answered as the caller spelled it, like any other:
    never as it really lies."""

    @classmethod
    def fill(cls, w):
        w.put("w/real/d/a.txt", "hello")
        w.link("w/way", w / "w/real")

    def ask(self, op, want=(200, 201), headers=None, **args):
        for name in [n for n in args if n.endswith("_base64")]:
            args[name] = base64.b64encode(args[name].encode()).decode()
        a = self.svc.rpc(op, args)
        self.among(a.status, want)
        self.eq("/real" in a.body.decode(), False, f"{op}: {a.body}")
        return a.json

    def test_all(self):
        d, f = "way/d", "way/d/a.txt"
        self.eq(self.ask("files.stat", path_base64=f)["path"], f)
        self.eq(self.ask("files.download", path_base64=f)["path"], f)
        got = self.ask("files.list", path_base64=d)
        self.eq((got["path"], got["entries"][0]["path"]), (d, f))
        for kind, pattern in ("name", "a.*"), ("content", "hello"):
            got = self.ask("files.search", root_base64=d, kind=kind,
                           pattern=pattern)
            self.eq([m["path"] for m in got["matches"]], [f], kind)
        got = self.ask("files.edit", path_base64=f, dry_run=True,
                       edits=[{"find": "hello", "replace": "bye"}])
        self.eq((got["path"], got["diff"].split("\n")[0]), (f, "--- " + f))
        self.eq(self.ask("files.upload", path_base64="way/u",
                         content="x")["path"], "way/u")
        self.eq(self.ask("files.mkdir", path_base64="way/m"),
                {"path": "way/m"})
        self.eq(self.ask("files.copy", src_base64=f, dst_base64="way/c"),
                {"src": f, "dst": "way/c"})
        self.eq(self.ask("files.move", src_base64="way/c",
                         dst_base64="way/e"), {"src": "way/c", "dst": "way/e"})
        self.eq(self.ask("files.archive", sources=[d],
                         dest_base64="way/o.tar")["path"], "way/o.tar")


class Edits(FileOps):
    def edit(self, path, *edits, **more):
        return self.svc.rpc("files.edit", {"path": path, "edits": [
            dict(zip(("find", "replace", "count"), e)) for e in edits],
            **more})

    def setUp(self):
        super().setUp()
        self.among(self.svc.upload("e", b"one two two\nthree\n",
                                   "&mode=600").status, (200, 201))

    def text(self):
        return self.world.get("w/e").decode()

    def test_edit(self):
        r = self.ok(self.edit("e", ("one", "1"), ("two", "2", 2))).json
        self.eq((r["path"], r["replacements"]), ("e", 3))
        self.eq(r["etag"], self.svc.stat("e").json["etag"])
        self.eq(self.text(), "1 2 2\nthree\n")
        self.eq(os.stat(self.world / "w/e").st_mode & 0o777, 0o600)
        # each edit sees what the one before made
        self.ok(self.edit("e", ("three", "four"), ("four", "five")))
        self.eq(self.text(), "1 2 2\nfive\n")
        self.ok(self.svc.call("POST", "/files/edit", {
            "path": "e", "edits": [{"find": "five", "replace": "é\u0001"}]}))
        self.eq(self.text(), "1 2 2\né\x01\n")

    def test_all_or_none(self):
        self.refused(self.edit("e", ("one", "1"), ("zzz", "")), 409,
                     "edit.no_match")
        self.refused(self.edit("e", ("one", "1"), ("two", "2")), 409,
                     "edit.ambiguous")
        self.refused(self.edit("e", ("two", "2", 3)), 409, "edit.no_match")
        self.eq(self.text(), "one two two\nthree\n")

    def test_arguments(self):
        for edits in ([], [{}], [{"find": "a"}], [{"find": "", "replace": ""}],
                      [{"find": "a", "replace": "b", "count": 0}],
                      [{"find": "a", "replace": "b", "count": "1"}],
                      [{"find": "a", "replace": "b", "x": "1"}],
                      [{"find": 1, "replace": "b"}], ["a", "b"],
                      [{"find": "a", "replace": ["b"]}],
                      [{"find": "a", "replace": "b"}] * 2000):
            r = self.svc.rpc("files.edit", {"path": "e", "edits": edits})
            self.refused(r, 400, "args.invalid", what=str(edits)[:50])
        for edits in ("a", 1, {"find": "a", "replace": "b"}, None):
            r = self.svc.rpc("files.edit", {"path": "e", "edits": edits})
            self.refused(r, 400, "args.type", what=str(edits))
        self.refused(self.edit("e", ("one", "x" * 100_000)), 400,
                     "args.too_large")

    def test_dry_run(self):
        r = self.ok(self.edit("e", ("one", "1"), dry_run=True)).json
        self.eq(r["diff"], "--- e\n+++ e\n@@ -1,2 +1,2 @@\n-one two two\n"
                "+1 two two\n three\n")
        self.eq((r["dry_run"], r["diff_truncated"]), (True, False))
        self.eq(r["etag"], self.svc.stat("e").json["etag"])
        self.eq(self.text(), "one two two\nthree\n")
        self.ok(self.svc.upload("big", b"\x01\n" * 40_000 + b"x"), 201)
        r = self.ok(self.edit("big", ("\x01", "", 40_000), dry_run=True)).json
        self.eq(r["diff_truncated"], True)

    def test_if_match(self):
        etag = self.svc.stat("e").json["etag"]
        self.refused(self.edit("e", ("one", "1"), if_match='"no"'), 412,
                     "fs.changed")
        self.ok(self.edit("e", ("one", "1"), if_match=etag))
        self.refused(self.edit("e", ("1", "2"), if_match=etag), 412,
                     "fs.changed")

    def test_paths(self):
        w = self.world
        self.refused(self.edit("gone", ("a", "b")), 404, "fs.not_found")
        self.refused(self.edit(".", ("a", "b")), 403, "policy.root_protected")
        self.refused(self.edit("vault/k.txt", ("a", "b")), 403,
                     "policy.path_denied")
        self.refused(self.edit("/etc/passwd", ("root", "b")), 403,
                     "policy.path_not_allowed")
        os.makedirs(w / "w/dir", exist_ok=True)
        self.refused(self.edit("dir", ("a", "b")), 409, "fs.is_directory")


class Searches(FileOps):
    @classmethod
    def fill(cls, w):
        w.put("w/src/a.c", "int main;\n  int other;\n")
        w.put("w/src/.env", "int secret;\n")
        w.put("w/src/bin", b"int\0bin")
        w.put("w/src/latin", b"caf\xe9 int\n")
        w.put("w/src/many", "hit\n" * 5000)
        w.put("w/vault/k.c", "int secret;\n")
        w.link("w/src/loop", "..")
        w.link("w/src/out", w / "outside")
        with open(os.path.join(w.w.encode(), b"src/n\xff.c"), "wb") as f:
            f.write(b"int odd;\n")

    def search(self, pattern, root="src", **more):
        return self.svc.rpc("files.search", {"root": root, "pattern": pattern,
                                             **more})

    def test_content(self):
        r = self.ok(self.search("int ")).json
        self.eq(r["truncated"], False)
        got = sorted((m["path"], m["line"], m["column"], m["text"])
                     for m in r["matches"])
        self.eq(got, [("src/a.c", 1, 1, "int main;"),
                      ("src/a.c", 2, 3, "  int other;"),
                      ("src/n\ufffd.c", 1, 1, "int odd;")])
        odd = [m for m in r["matches"] if "path_base64" in m]
        self.eq([base64.b64decode(m["path_base64"]) for m in odd],
                [b"src/n\xff.c"])
        m = self.ok(self.search("caf")).json["matches"]
        self.eq([x["text"] for x in m], ["caf\ufffd int"])
        self.eq(self.ok(self.search("i.t")).json["matches"], [])
        self.eq(self.ok(self.search("SECRET", ".", kind="content",
                                    ignore_case=True)).json["matches"], [])

    def test_regex(self):
        m = self.ok(self.search("^ +int", regex=True)).json["matches"]
        self.eq([(x["line"], x["column"]) for x in m], [(2, 1)])
        m = self.ok(self.search("MAIN", ignore_case=True)).json["matches"]
        self.eq([x["path"] for x in m], ["src/a.c"])
        for bad in ("(", "[a", "a**", "\\C"):
            r = self.refused(self.search(bad, regex=True), 400,
                             "args.invalid", what=bad)
            self.eq(r.json["details"]["param"], "pattern")
        self.ok(self.svc.upload("src/evil", b"a" * 60 + b"!"), 201)
        self.refused(self.search("(a+)+$", regex=True), 400, "args.invalid")
        os.unlink(self.world / "w/src/evil")

    def test_names(self):
        m = self.ok(self.search("*.c", ".", kind="name")).json["matches"]
        self.eq(sorted(x["path"] for x in m), ["./src/a.c", "./src/n\ufffd.c"])
        self.eq({x["type"] for x in m}, {"file"})
        m = self.ok(self.search("A.?", kind="name",
                                ignore_case=True)).json["matches"]
        self.eq([x["path"] for x in m], ["src/a.c"])

    def test_limits(self):
        r = self.ok(self.search("hit", max_entries=10)).json
        self.eq((len(r["matches"]), r["truncated"]), (10, True))
        r = self.ok(self.search("hit")).json
        self.eq((len(r["matches"]), r["truncated"]), (5000, False))

    def test_arguments(self):
        self.refused(self.search(""), 400, "args.invalid")
        self.refused(self.search("a", kind="x"), 400, "args.invalid")
        self.refused(self.search("a/b", kind="name"), 400, "args.invalid")
        self.refused(self.search("a", kind="name", regex=True), 400,
                     "args.invalid")
        self.refused(self.search("a" * 5000), 400, "args.invalid")
        self.refused(self.search("a", "src/a.c"), 409, "fs.not_directory")
        self.refused(self.search("a", "gone"), 404, "fs.not_found")
        self.refused(self.search("a", "vault"), 403, "policy.path_denied")
        self.refused(self.search("a", "/etc"), 403, "policy.path_not_allowed")
        self.ok(self.svc.call("POST", "/files/search",
                              {"root": ".", "pattern": "x"}))


def tar(*members, kind="w", **kw):
    """An archive of (name, content) or (name, {attribute: value}, content)."""
    buf = io.BytesIO()
    with tarfile.open(fileobj=buf, mode=kind, **kw) as t:
        for name, *rest in members:
            info = tarfile.TarInfo(name)
            data = b"".join(r for r in rest if isinstance(r, bytes))
            for r in rest:
                for k, v in (r.items() if isinstance(r, dict) else ()):
                    setattr(info, k, v)
            info.size = len(data)
            t.addfile(info, io.BytesIO(data))
    return buf.getvalue()


DIR, LINK = {"type": tarfile.DIRTYPE, "mode": 0o755}, tarfile.SYMTYPE


class Archives(FileOps):
    @classmethod
    def fill(cls, w):
        w.put("w/p/a", "1", 0o640)
        w.put("w/p/d/b", "22" * 100_000, 0o750)
        w.put("w/p/d/" + "n" * 200, "long")
        w.put("w/p/d/grüße", "x")
        with open(os.path.join(w.w.encode(), b"p/bad\xff"), "wb") as f:
            f.write(b"y")
        w.put("w/p/.env", "SECRET")
        w.put("w/p/two", "2")
        os.link(w / "w/p/two", w / "w/p/three")
        os.mkfifo(w / "w/p/fifo")
        w.link("w/p/in", "a")
        w.link("w/p/dangling", "nowhere")
        w.link("w/p/loop", "..")
        w.link("w/p/out", "/etc/passwd")
        os.mkdir(w / "w/in")
        w.own()

    WHOLE = ["a", "bad\udcff", "d", "d/b", "d/grüße", "d/" + "n" * 200, "in",
             "loop"]

    def opened(self, data, **kw):
        return tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", **kw)

    def imp(self, data, path="in", kind="tar", **headers):
        return self.svc.call(
            "PUT", f"/files/import?path={quoted(path)}&format={kind}", data,
            headers={k.replace("_", "-"): v for k, v in headers.items()})

    def inside(self, path="in"):
        top = f"{self.world.w}/{path}"
        return sorted(os.path.relpath(os.path.join(t, n), top)
                      for t, ds, fs in os.walk(top) for n in ds + fs)

    def test_export(self):
        a = self.ok(self.svc.get("/files/export?path=p"))
        self.eq(a.header("content-type"), "application/x-tar")
        with self.opened(a.body) as t:
            self.eq(sorted(t.getnames()), self.WHOLE)
            self.eq(t.extractfile("d/b").read(), b"22" * 100_000)
            self.eq(t.getmember("d/b").mode, 0o750)
            self.eq(t.getmember("in").linkname, "a")
        b = self.ok(self.svc.get("/files/export?path=p&format=tar.gz"))
        self.eq(gzip.decompress(b.body), a.body)
        self.eq(self.ok(self.svc.get("/files/export?path=p&format=tar.gz"))
                .body, b.body, "the same tree, the same bytes")
        self.refused(self.svc.get("/files/export?path=p&format=zip"), 400,
                     "args.invalid")
        self.refused(self.svc.get("/files/export?path=p/a"), 409,
                     "fs.not_directory")
        self.refused(self.svc.get("/files/export?path=/etc"), 403,
                     "policy.path_not_allowed")

    def test_export_limits(self):
        w = self.fresh()
        w.put("w/a", "x" * 100)
        w.own()
        for limits, code in (({"max_bytes": 50}, "limit.max_bytes"),
                             ({"max_entries": 1}, "limit.max_entries")):
            svc = self.start({"rules": [
                {"allow": "files.export", "paths": {"roots": [w.w]},
                 "limits": limits}]}, world=w)
            self.refused(svc.get("/files/export?path=."), 413, code)
            svc.stop()
        del self.svc

    def test_T027_archive(self):
        reply = self.ok(self.svc.rpc("files.archive", {
            "sources": ["p/d", "p/a"],
            "dest": "ar/x.tar"}))
        w = self.world.w
        self.eq(self.svc.audit_of(reply)["paths"], {
            "sources": [w + "/p/d", w + "/p/a"], "dest": w + "/ar/x.tar"})
        r = reply.json
        self.eq((r["path"], r["entries"], r["skipped"]), ("ar/x.tar", 5, []))
        with tarfile.open(self.world / "w/ar/x.tar") as t:
            self.eq(sorted(t.getnames()),
                    ["a", "d", "d/b", "d/grüße", "d/" + "n" * 200])
        r = self.ok(self.svc.call("POST", "/files/archive", {
            "sources": ["p"], "dest": "ar/x.tgz"})).json
        self.eq({(s["path"], s["code"]) for s in r["skipped"]}, {
            ("p/dangling", "fs.not_found"),
            ("p/fifo", "policy.not_regular_file"),
            ("p/two", "policy.hardlink_denied"),
            ("p/three", "policy.hardlink_denied")})
        with tarfile.open(self.world / "w/ar/x.tgz",
                          encoding="utf-8") as t:
            self.eq(sorted(t.getnames()),
                    ["p"] + ["p/" + n for n in self.WHOLE])
        # it does not pack itself
        for _ in 1, 2:
            r = self.ok(self.svc.rpc("files.archive", {
                "sources": ["ar"], "dest": "ar/self.tar"})).json
            self.eq(r["entries"], 3)

    def test_many_long_sources(self):
        """What does not fit one message between the processes."""
        kids = self.svc.kids()
        deep = "/".join(["d" * 200] * 19)
        os.makedirs(self.world.w + "/deep/" + deep)
        for i in range(30):
            self.world.link(f"w/deep/l{i}", deep)

        def name(i, n):
            path = f"{self.world.w}/{i:02}" + ("/" + "n" * 200) * 14
            return path + "/" + "n" * (n - len(path) - 1)
        # whoever looks later sees them all, however they are spelled
        odd = [f"{i:02}" + ("/" + "\x01" * 200) * 13 for i in range(30)]
        r = self.refused(self.svc.rpc("files.archive", {
            "sources": odd, "dest": "x.tar"}), 404, "fs.not_found")
        self.eq(self.svc.audit_of(r)["paths"]["sources"],
                [f"{self.world.w}/{p}" for p in odd])
        # as they are asked for, as they are answered, and by way of links
        for args, code in (
                ([name(i, 3090) for i in range(31)], "args.too_large"),
                ([name(i, 3020) for i in range(31)], "policy.path_invalid"),
                ([f"deep/l{i}/x" for i in range(30)], "policy.path_invalid")):
            r = self.svc.rpc("files.archive", {
                "sources": args, "dest": name(99, 3020) + "/x.tar"})
            self.eq(r.code, code, r)
        self.eq(self.svc.kids(), kids)
        self.ok(self.svc.stat("p/a"))

    def test_archive_of_holes(self):
        with open(self.world.w + "/holes", "wb") as f:
            f.truncate(1 << 40)
        r = self.svc.rpc("files.archive", {"sources": ["holes"],
                                           "dest": "holes.tar"}, timeout=10)
        os.unlink(self.world.w + "/holes")
        self.refused(r, 413, "limit.max_bytes")

    def test_T028_archive_dest(self):
        w = self.world
        w.link("w/o.tar", w / "outside/x.tar")
        for dest, status, code in (
                ("o.tar", 403, "policy.path_not_allowed"),
                ("x.zip", 400, "args.invalid"), ("x", 400, "args.invalid"),
                ("vault/x.tar", 403, "policy.path_denied")):
            self.refused(self.svc.rpc("files.archive", {
                "sources": ["p"], "dest": dest}), status, code, what=dest)
        self.refused(self.svc.rpc("files.archive", {
            "sources": ["gone"], "dest": "y.tar"}), 404, "fs.not_found")
        self.refused(self.svc.rpc("files.archive", {
            "sources": [], "dest": "y.tar"}), 400, "args.invalid")
        self.refused(self.svc.rpc("files.archive", {
            "sources": ["p/d", "p/d"], "dest": "y.tar"}), 400, "args.invalid")
        self.refused(self.svc.rpc("files.archive", {
            "sources": ["p/.env"], "dest": "y.tar"}), 403,
            "policy.path_denied")
        self.eq(os.path.lexists(w / "w/y.tar"), False)
        self.eq(os.path.lexists(w / "outside/x.tar"), False)

    def test_round_trip(self):
        data = self.ok(self.svc.get("/files/export?path=p")).body
        os.mkdir(self.world / "w/rt")
        self.world.own("w/rt")
        r = self.imp(data, "rt")
        # "loop" leads out of the directory, as seen from there
        self.refused(r, 403, "policy.path_not_allowed")
        os.unlink(self.world / "w/p/loop")
        for kind in "tar", "tar.gz":
            data = self.ok(self.svc.get(
                f"/files/export?path=p&format={kind}")).body
            r = self.ok(self.imp(data, "rt", kind)).json
            self.eq((r["path"], r["entries"], r["skipped"]), ("rt", 7, []))
            self.eq(self.inside("rt"), sorted(self.WHOLE[:-1]))
        self.eq(os.stat(self.world / "w/rt/d/b").st_mode & 0o777, 0o750)
        self.world.link("w/p/loop", "..")

    def test_import(self):
        big = os.urandom(3_000_000)
        for fmt in tarfile.PAX_FORMAT, tarfile.GNU_FORMAT:
            data = tar(("./t", DIR), ("t/ü", b"umlaut"), ("t/big", big),
                       ("t/" + "l" * 150 + "/x", b"deep"),
                       ("t/l", {"type": LINK, "linkname": "../t/big"}, b""),
                       ("t/big2", {"mode": 0o4755}, b"x"), ("t/ü", b"again"),
                       format=fmt)
            r = self.ok(self.imp(data, Content_Digest=digest(data))).json
            self.eq(r["entries"], 7)
            w = self.world
            self.eq(w.get("w/in/t/ü"), b"again")
            self.eq(w.get("w/in/t/big"), big)
            self.eq(os.readlink(w / "w/in/t/l"), "../t/big")
            self.eq(os.stat(w / "w/in/t/big2").st_mode & 0o7777, 0o750)
        # into what is there
        self.world.put("w/in/t/mine", "mine")
        self.ok(self.imp(tar(("t/big", b"small"), ("t/new/x", b"1"))))
        self.eq(w.get("w/in/t/big"), b"small")
        self.eq(w.get("w/in/t/mine"), b"mine")
        self.eq(w.get("w/in/t/new/x"), b"1")
        self.ok(self.imp(tar(("r", b"root")), "."))
        self.eq(w.get("w/r"), b"root")
        r = self.svc.rpc("files.import", {
            "path": "in", "content": base64.b64encode(tar(("j", b"j")))
            .decode(), "encoding": "base64"})
        self.ok(r)
        self.eq(w.get("w/in/j"), b"j")

    def test_export_goes_back_as_it_came(self):
        """With the content type that the export had."""
        w = self.world
        for kind, path in (("tar", "back1"), ("tar.gz", "back2")):
            os.mkdir(f"{w.w}/in/{path}")
            w.own()
            a = self.ok(self.svc.get(f"/files/export?path=p/d&format={kind}"))
            r = self.ok(self.imp(a.body, f"in/{path}", kind,
                                 Content_Type=a.header("content-type")))
            self.eq(r.json["entries"], 3)
            self.eq(self.inside(f"in/{path}"), self.inside("p/d"))
        # the type is none of the format's business
        a = self.ok(self.svc.get("/files/export?path=p/d"))
        for kind in ("application/x-tar", "application/gzip",
                     "application/octet-stream", "Application/X-Tar; a=b"):
            self.ok(self.imp(a.body, "in/back1", Content_Type=kind))
        for kind in ("application/x-gtar", "application/zip", "text/plain",
                     "application/x-tar, application/gzip", "", None,
                     "application/json"):
            r = self.imp(a.body, "in/back1", Content_Type=kind)
            self.refused(r, 415, "request.bad_content_type")
        r = self.svc.upload("kind", a.body, kind="application/x-tar")
        self.refused(r, 415, "request.bad_content_type")

    def test_T_import_refused(self):
        w = self.world
        w.put("w/ref/there", "old")
        w.put("w/ref/dir/x", "old")
        w.link("w/ref/away", w / "outside")
        w.own("w/ref", "w/ref/there", "w/ref/dir", "w/ref/dir/x")
        before = self.inside("ref")
        hard = {"type": tarfile.LNKTYPE, "linkname": "ok"}
        for code, *members in (
                ("policy.path_not_allowed", ("../evil", b"x")),
                ("policy.path_not_allowed", ("/etc/evil", b"x")),
                ("policy.path_not_allowed", ("a/../../evil", b"x")),
                ("policy.path_not_allowed", ("a/..", b"x")),
                ("policy.path_not_allowed", (".", b"x")),
                ("policy.path_not_allowed",
                 ("l", {"type": LINK, "linkname": "/etc"}, b"")),
                ("policy.path_not_allowed",
                 ("l", {"type": LINK, "linkname": ".."}, b"")),
                ("policy.path_not_allowed",
                 ("a/l", {"type": LINK, "linkname": "../../x"}, b"")),
                ("policy.symlink_denied",
                 ("l", {"type": LINK, "linkname": "dir"}, b""),
                 ("l/evil", b"x")),
                ("policy.symlink_denied", ("away/evil", b"x")),
                ("policy.path_denied", (".env", b"x")),
                ("policy.path_denied", ("deep/.env/x", b"x")),
                ("policy.path_invalid", ("d/.abx-" + "0" * 32, b"x")),
                ("policy.hardlink_denied", ("h", hard, b"")),
                ("policy.not_regular_file",
                 ("f", {"type": tarfile.FIFOTYPE}, b"")),
                ("policy.not_regular_file",
                 ("c", {"type": tarfile.CHRTYPE, "devmajor": 1}, b""))):
            for kind in "tar", "tar.gz":
                data = tar(("ok", b"1"), *members,
                           kind="w:gz" if kind == "tar.gz" else "w")
                self.refused(self.imp(data, "ref", kind), 403, code,
                             what=str(members))
        for status, code, *members in (
                (409, "fs.is_directory", ("dir", b"x")),
                (409, "fs.not_directory", ("there", DIR)),
                (409, "fs.not_directory", ("there/x", b"x")),
                (400, "fs.name_too_long", ("n" * 256, b"x"))):
            self.refused(self.imp(tar(("ok", b"1"), *members), "ref"), status,
                         code, what=str(members))
        self.eq(self.inside("ref"), before)
        self.eq(w.get("w/ref/there"), b"old")
        self.eq(os.listdir(w / "outside"), ["secret.txt"])

    def test_import_malformed(self):
        good = tar(("x", b"1" * 5000), kind="w:gz")
        for data, kind in ((b"", "tar"), (b"junk" * 1000, "tar"),
                           (good, "tar"), (good[:-20], "tar.gz"),
                           (tar(("x", b"1" * 5000))[:2000], "tar")):
            self.refused(self.imp(data, kind=kind), 400, "args.invalid",
                         what=str(data[:20]))
        self.refused(self.imp(good, kind="tar.gz",
                              Content_Digest=digest(b"other")), 400,
                     "fs.digest_mismatch")
        self.eq(os.path.lexists(self.world / "w/in/x"), False)
        self.refused(self.imp(good, "p/a"), 409, "fs.not_directory")
        self.refused(self.imp(good, "gone"), 404, "fs.not_found")
        self.refused(self.imp(good, "vault"), 403, "policy.path_denied")

    def reading(self, c):
        """An import that is half there: the process that reads it."""
        data = tar(("x", b"1" * 100_000))
        c.send(c.svc.build("PUT", "/files/import?path=in", data)[:-50_000])
        pathd = c.svc.kid("abx-pathd")

        def reader():
            kids = {p: proc_stat(p) for p in family(pathd)}
            return [p for p, s in kids.items()
                    if s and s[0] != pathd and p != pathd]
        found = until(5, reader)
        self.eq(len(found), 1, "the readers")
        return found[0]

    def lone(self):
        w = self.fresh()
        self.fill(w)
        svc = self.start({"rules": rules(w)}, w)
        svc.rough = True
        return svc

    @unittest.skipIf(ASAN, "the sanitizers' runtime takes the signal")
    def test_import_that_kills_its_reader(self):
        """Somebody may have tried something: it must be in the log."""
        svc = self.lone()
        with Conn(svc) as c:
            os.kill(self.reading(c), signal.SIGSEGV)
            self.refused(c.reply(), 500, "server.internal")
        self.eq(until(5, lambda: "what reads archives died of signal 11"
                      in svc.logged()), True, "the log tells")

    def test_import_whose_reader_hangs(self):
        """Nobody else waits for it, and it goes with the import."""
        svc = self.lone()
        with Conn(svc) as c:
            reader = self.reading(c)

            def filters(pid):
                with open(f"/proc/{pid}/status") as f:
                    found = re.search(r"Seccomp_filters:\s*(\d+)", f.read())
                return int(found[1]) if found else None  # before Linux 5.9
            pathds = filters(svc.kid("abx-pathd"))
            self.eq(until(5, lambda: pathds is None or
                          filters(reader) == pathds + 1), True,
                    "one of its own")
            if ROOT:
                self.eq(sorted(fds(reader)), [0, 1, 2] if ASAN else [0, 1],
                        "two pipes and nothing else")
                with open(f"/proc/{reader}/limits") as f:
                    room = re.search(r"address space +(\w+)", f.read())[1]
                self.eq(room, "unlimited" if ASAN else str(128 << 20))
            os.kill(reader, signal.SIGSTOP)
            self.ok(svc.call("PUT", "/files/import?path=in",
                             tar(("y", b"1"))))
            self.ok(svc.stat("p/a"))
        self.eq(until(5, lambda: proc_stat(reader) is None), True)

    def test_import_whose_pathd_dies(self):
        svc = self.lone()
        with Conn(svc) as c:
            reader = self.reading(c)
            os.kill(svc.kid("abx-pathd"), signal.SIGKILL)
            self.eq(until(5, lambda: proc_stat(reader) is None), True)
            self.eq(c.reply().status in (500, 503), True)
        self.eq(until(5, lambda: svc.stat("p/a").status == 200), True)

    def test_import_of_every_form(self):
        """As tar(1) writes them, with holes; and it reads what we write."""
        w = self.world
        src = f"{w.w}/forms"
        os.makedirs(f"{src}/d/" + "n" * 90)
        for name, size, parts in (
                ("holes", 4 << 20, ((0, b"a" * 100), (1 << 20, b"b" * 5000),
                                    (3 << 20, b"c"))),
                ("many", 65 << 13, [(i << 13, b"%d" % i) for i in range(64)]),
                ("end", 1 << 20, (((1 << 20) - 1, b"e"),)),
                ("start", 1 << 20, ((0, b"s"),)), ("none", 1 << 17, ())):
            with open(f"{src}/{name}", "wb") as f:
                f.truncate(size)
                for off, data in parts:
                    f.seek(off)
                    f.write(data)
        w.put("w/forms/d/" + "n" * 90 + "/x", "1")
        w.put("w/forms/grüße", "2", 0o640)
        w.link("w/forms/link", "d/" + "n" * 90 + "/x")
        w.own("w/forms")

        def pack(*how):
            return subprocess.run(
                ["tar", "-C", src, "-cf", "-", *how, "."], check=True,
                stdout=subprocess.PIPE).stdout

        def same(path, what):
            r = subprocess.run(["diff", "-r", "--no-dereference", src, path],
                               stdout=subprocess.PIPE)
            self.eq((r.returncode, r.stdout), (0, b""), what)
            self.eq(os.stat(f"{path}/grüße").st_mode & 0o777, 0o640, what)

        forms = [("--format=" + f,) for f in
                 ("v7", "oldgnu", "gnu", "ustar", "posix")]
        forms += [("--format=gnu", "-S"), ("--format=oldgnu", "-S"),
                  ("--format=gnu", "-G"),
                  ("--format=posix", "--xattrs", "--acls", "-V", "label")]
        forms += [("--format=posix", "-S", "--sparse-version=" + v)
                  for v in ("0.0", "0.1", "1.0")]
        for n, how in enumerate(forms):
            to = f"f{n}"
            os.mkdir(f"{w.w}/{to}")
            w.own("w/" + to)
            data = pack(*how)
            if n % 2:
                data = gzip.compress(data)
            self.ok(self.imp(data, to, "tar.gz" if n % 2 else "tar"))
            same(f"{w.w}/{to}", how)
        for kind in "tar", "tar.gz":
            os.mkdir(w / kind)
            subprocess.run(
                ["tar", "-C", w / kind, "-x" + "z" * (kind != "tar")],
                input=self.ok(self.svc.get(
                    f"/files/export?path=forms&format={kind}")).body,
                check=True)
            same(w / kind, kind)
        shutil.rmtree(src)

    def test_import_bounds(self):
        bomb = gzip.compress(tar(("x", b"\0" * 300_000_000)), 9)
        self.refused(self.imp(bomb, kind="tar.gz"), 413, "limit.max_bytes")
        w = self.fresh()
        w.own()
        svc = self.start({"rules": [
            {"allow": "files.import", "paths": {"roots": [w.w]},
             "limits": {"max_bytes": 20_000, "max_entries": 2}}]}, world=w)

        def imp(data, kind="tar"):
            return svc.call("PUT", f"/files/import?path=.&format={kind}", data)
        self.refused(imp(tar(("x", b"1" * 30_000), kind="w:gz"), "tar.gz"),
                     413, "limit.max_bytes")
        self.refused(imp(tar(("x", b"1" * 30_000))), 413, "limit.max_bytes")
        self.refused(imp(tar(*((str(i), b"") for i in range(3)))), 413,
                     "limit.max_entries")
        self.refused(imp(tar(("a/b/x", b"1"))), 413, "limit.max_entries")
        self.ok(imp(tar(("./", DIR), ("a/x", b"1"))))
        self.ok(imp(tar(("x", b"1"))))

    def test_import_is_taken_back(self):
        """What goes wrong only while members get their places undoes those
        that have theirs."""
        w = self.world
        w.put("w/back/a/keep", "old")
        w.put("w/back/a/other", "mine")
        w.put("w/back/z/locked", "old")
        w.own("w/back")
        os.symlink("keep", w / "w/back/a/link")
        for top, mode in (("w/back/z", 0o555),):
            os.chmod(w / top, mode)
        before = self.inside("back")
        whole = {n: w.get("w/back/" + n) for n in ("a/keep", "a/other",
                                                   "z/locked")}
        data = tar(("a/keep", b"new"), ("a/more", b"1"), ("a/d/e/f", b"1"),
                   ("b/x", b"2"), ("a/link", b"a file now"),
                   ("z/locked", b"new"), ("z/zz", b"3"))
        self.refused(self.imp(data, "back"), 403, "fs.permission")
        self.eq(self.inside("back"), before)
        for name, old in whole.items():
            self.eq(w.get("w/back/" + name), old, name)
        self.eq(os.readlink(w / "w/back/a/link"), "keep")
        os.chmod(w / "w/back/z", 0o755)
        self.ok(self.imp(data, "back"))
        self.eq((w.get("w/back/a/keep"), w.get("w/back/z/zz"),
                 w.get("w/back/a/d/e/f"), w.get("w/back/a/link")),
                (b"new", b"3", b"1", b"a file now"))

    def test_import_broken_off(self):
        data = tar(("bo", b"1" * 1_000_000))
        with Conn(self.svc) as c:
            req = self.svc.build("PUT", "/files/import?path=in", data)
            c.send(req[:500_000])
            self.eq(until(5, lambda: bool(self.left())), True)
        self.eq(until(5, lambda: not self.left()), True)
        self.eq(os.path.lexists(self.world / "w/in/bo"), False)

    def begun(self, path, data):
        """An import that waits for its last bytes, and what gives them."""
        c = Conn(self.svc)
        self.addCleanup(c.close)
        req = self.svc.build("PUT", "/files/import?path=" + path, data)
        c.send(req[:-600])
        self.eq(until(5, lambda: bool(self.left())), True)

        def finish():
            c.send(req[-600:])
            return c.reply()
        return self.left()[0], finish

    def test_import_under_way_is_nobodys(self):
        """What will have another place is not judged by the one it has."""
        w, svc = self.world, self.svc
        name, finish = self.begun(".", tar(("i1", b"1"), ("i2", b"2" * 70000)))
        self.eq(name in [e["name"] for e in self.ok(
            svc.list(".")).json["entries"]], False)
        self.refused(svc.rpc("files.search", {
            "root": name, "pattern": "*", "kind": "name"}), 403,
            "policy.path_invalid")
        for path in (name, name + "/new/i1", name + "/new/vault/k.txt"):
            for r in (svc.stat(path), svc.upload(path, b"x"),
                      svc.rpc("files.delete", {"path": path}),
                      svc.rpc("files.move", {"src": "p/a", "dst": path})):
                self.refused(r, 403, "policy.path_invalid", what=path)
        # nor is it what others of the same user put there
        w.put(f"w/{name}/new/vault/k.txt", "from elsewhere")
        w.own(f"w/{name}")
        self.refused(finish(), 403, "policy.path_denied")
        self.eq(w.get("w/vault/k.txt"), MARKER.encode())
        self.eq(os.path.lexists(w / "w/i1"), False)

    def test_import_whose_directory_moves(self):
        w = self.world
        data = tar(("d/f", b"1"), ("e", b"2" * 70000))
        os.mkdir(w / "w/from")
        w.own("w/from")
        _, finish = self.begun("from", data)
        self.refused(self.svc.rpc("files.move", {
            "src": "from", "dst": "to"}), 403, "policy.path_changed")
        self.ok(finish())
        self.eq(self.inside("from"), ["d", "d/f", "e"])
        _, finish = self.begun("from", data)
        os.rename(w / "w/from", w / "w/to")
        self.refused(finish(), 404, "fs.not_found")
        self.eq(self.inside("to"), ["d", "d/f", "e"])


class Watches(FileOps):
    @classmethod
    def conf(cls, w):
        return {"rules": [{**rules(w)[0], "limits": {"concurrency": 64}}]}

    @classmethod
    def fill(cls, w):
        w.put("w/t/d/e/f", "1")
        w.put("w/t/old", "1")

    def watch(self, path, more="", timeout=10, **kw):
        """A stream of events that is known to watch."""
        def begin():
            c = Conn(self.svc, timeout=timeout, **kw)
            self.addCleanup(c.close)
            c.send(self.svc.build("GET", f"/files/watch?path={path}{more}"))
            return (r := c.head()[0]) != 429 and (c, r)
        # those of the test before may be ending still
        c, r_status = until(10, begin) or (None, 429)
        self.eq(r_status, 200)
        self.eq(c.chunk(), b":\n\n")
        return c

    def events(self, c, last):
        """What comes up to an event about that path."""
        got, end = [], time.monotonic() + 10
        while all(g[1] != last for g in got):
            self.under(time.monotonic(), end, f"no {last} in {got}")
            text = c.chunk().decode()
            for block in text.strip().split("\n\n"):
                lines = dict(line.split(": ", 1) for line in
                             block.split("\n") if not line.startswith(":"))
                if "event" in lines:
                    d = json.loads(lines["data"])
                    got.append((lines["event"], d["path"], d.get("to"),
                                d["type"]))
        return got

    def test_events(self):
        w = self.world
        c = self.watch("t")
        os.mkdir(w / "w/t/new")
        self.eq(self.events(c, "t/new"),
                [("create", "t/new", None, "directory")])
        os.rename(w / "w/t/new", w / "w/t/moved")
        self.eq(self.events(c, "t/new"),
                [("move", "t/new", "t/moved", "directory")])
        os.rmdir(w / "w/t/moved")
        self.eq(self.events(c, "t/moved"),
                [("delete", "t/moved", None, "directory")])
        w.put("w/t/d/below", "1")
        w.put("w/t/old", "22")
        self.eq(self.events(c, "t/old")[0],
                ("modify", "t/old", None, "file"))
        os.rename(w / "w/t/d/below", w / "w/t/up2")
        self.eq(self.events(c, "t/up2")[-1],
                ("create", "t/up2", None, "file"))
        os.rename(w / "w/t/up2", w / "w/t/d/below")
        self.eq(self.events(c, "t/up2"), [("delete", "t/up2", None, "file")])
        c.close()
        # by other operations
        c = self.watch("t")
        self.ok(self.svc.upload("t/up", b"x"), 201)
        self.ok(self.svc.upload("t/up", b"y"))
        self.ok(self.svc.rpc("files.copy", {"src": "t/d", "dst": "t/cp"}))
        self.ok(self.svc.rpc("files.mkdir", {"path": "t/end"}), 201)
        got = self.events(c, "t/end")
        self.eq([g for g in got if g[0] != "modify"],
                [("create", "t/up", None, "file"),
                 ("create", "t/cp", None, "directory"),
                 ("create", "t/end", None, "directory")])
        self.eq(("modify", "t/up", None, "file") in got, True)
        self.eq([g for g in got if ".abx" in g[1]], [])

    def test_recursive(self):
        w = self.world
        c = self.watch("t", "&recursive=true")
        w.put("w/t/d/e/f", "22")
        w.put("w/t/x/y/z", "1")
        got = self.events(c, "t/x/y/z")
        self.eq(("modify", "t/d/e/f", None, "file") in got, True, got)
        for path in "t/x", "t/x/y":
            self.eq(("create", path, None, "directory") in got, True, got)
        os.rename(w / "w/t/x", w / "w/t/d/x")
        w.put("w/t/d/x/y/more", "1")
        got = self.events(c, "t/d/x/y/more")
        self.eq(("move", "t/x", "t/d/x", "directory") in got, True, got)

    def test_rechecked(self):
        w = self.world
        c = self.watch("t", "&recursive=true")
        w.put("w/t/.env", "SECRET")
        w.put("w/t/hid/.env/deep", "SECRET")
        w.link("w/t/outlink", w / "outside")
        w.link("w/t/inlink", "old")
        os.unlink(w / "w/t/.env")
        os.mkdir(w / "w/t/stop")
        got = self.events(c, "t/stop")
        self.eq([g for g in got if ".env" in g[1] or "outlink" in g[1]], [])
        self.eq(("create", "t/inlink", None, "symlink") in got, True, got)
        for p, status, code in (("/etc", 403, "policy.path_not_allowed"),
                                ("vault", 403, "policy.path_denied"),
                                ("gone", 404, "fs.not_found"),
                                ("t/old", 409, "fs.not_directory")):
            self.refused(self.svc.get("/files/watch?path=" + p), status, code)

    def test_ends(self):
        w = self.world
        w.put("w/tmp/x/f", "1")
        c = self.watch("tmp/x")
        os.unlink(w / "w/tmp/x/f")
        os.rename(w / "w/tmp/x", w / "outside/x")
        w.put("outside/x/secret", "SECRET")
        text = b""
        while (part := c.chunk()):
            text += part
        self.eq(b"secret" in text, False)

    def read_to(self, c, what):
        last = b""
        while what not in last:
            last = last[-100:] + c.chunk()

    @timeout(240)
    def test_slow_reader(self):
        """Who does not read is told what he missed, and delays nobody."""
        w = self.world
        os.mkdir(w / "w/slow")
        w.own("w/slow")
        slow = self.watch("slow", timeout=60, rcvbuf=65536)
        quick = self.watch("slow", timeout=60)
        seen = threading.Semaphore(0)
        dir_ = w / "w/slow"

        def read():
            for i in range(0, 30_000, 500):
                self.read_to(quick, b"slow/mark%d\"" % i)
                seen.release()
        t = threading.Thread(target=read)
        t.start()
        for i in range(30_000):
            path = f"{dir_}/{'n' * 150}{i}"
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            os.unlink(path)
            if i % 500 == 0:
                # who reads gets all; a busy machine may make him slow too
                os.mkdir(f"{dir_}/mark{i}")
                self.eq(seen.acquire(timeout=60), True, f"mark {i}")
            if i % 5000 == 0:
                a = self.ok(self.svc.stat("t/old"))
                self.under(a.secs, 5, "another request")
                # a little, since who takes nothing for long is let go of
                got = 0
                while i > 0 and got < 128 * 1024:
                    got += len(slow.chunk())
        t.join()
        os.mkdir(w / "w/slow/end")
        # he who reads late is told of the gap, and of what comes after it
        self.read_to(slow, b"event: overflow")
        os.mkdir(w / "w/slow/later")
        self.read_to(slow, b"slow/later")

    def test_more_than_can_be(self):
        """Who watches much is refused at once, not after a wait."""
        def refused():
            """After how many, the answer's head, and how soon it came."""
            with contextlib.ExitStack() as stack:
                for n in range(64):
                    c = stack.enter_context(Conn(self.svc, timeout=20))
                    c.send(self.svc.build("GET", "/files/watch?path=t"))
                    began = time.monotonic()
                    r_status, headers, _ = c.head()
                    if r_status != 200:
                        break
            return n, r_status, headers, time.monotonic() - began
        # those of the test before may be ending still
        n, r_status, headers, secs = until(
            10, lambda: (r := refused())[0] == 12 and r, 0.2) or refused()
        self.eq((n, r_status), (12, 429))
        self.under(secs, 2 * SLOW, "the refusal")
        self.eq({k.lower(): v for k, v in headers}.get("retry-after"), "1")

    def test_client_gone(self):
        def workers():
            return len(self.svc.kids())
        for _ in range(3):
            c = self.watch("t")
            c.close()
        self.ok(self.svc.stat("t"))


if __name__ == "__main__":
    unittest.main()
