# SPDX-License-Identifier: ISC
"""Operations on files and trees beyond the plain ones: checksums, recursive
listings, copies, edits, searches, archives, watching."""
import base64
import hashlib
import os
import unittest

from abxtest import ADMIN, Case, Conn, quoted, until


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


if __name__ == "__main__":
    unittest.main()
