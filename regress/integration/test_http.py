# SPDX-License-Identifier: ISC
"""HTTP as strangers speak it: framing, targets, order of the checks, bodies,
time-outs, pools.  Tests are named by the fault case that they hold down."""
import contextlib
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from abxtest import (ADMIN, ALICE, AUTH, LONG, READ, ROOT, SLOW, WRITE, Case,
                     Conn, fds, hardened_only, needs_root, proc_stat, quoted,
                     timeout, until)

HOST = b"Host: localhost\r\n"
AUTHZ = b"Authorization: Bearer " + ADMIN.encode() + b"\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
JSON = b"Content-Type: application/json\r\n"


def rules(w):
    return [{"allow": READ + WRITE + ["core.check", "core.capabilities"],
             "paths": {"roots": [w.w], "deny": ["**/.env", w.w + "/vault"]}}]


class Http(Case):
    @classmethod
    def conf(cls, w):
        return {"rules": rules(w)}

    def raw(self, data, method="GET"):
        """The first answer to these bytes."""
        with Conn(self.svc, timeout=10) as c:
            c.send(data)
            return c.reply(method)

    def bad(self, data, status=400, code="request.bad_framing", what=None):
        """Refused, closed, answered once."""
        with Conn(self.svc, timeout=10) as c:
            c.send(data)
            self.refused(c.reply(), status, *(
                [code] if isinstance(code, str) else code),
                what=what or repr(data[:120]))
            if not c.ended():
                self.fail(f"{data[:120]!r}\n  expected: closed after the "
                          "refusal\n  got:      open, or more bytes")

    def post(self, body, extra=b"", target=b"/rpc/files.stat", length=True):
        head = b"POST " + target + b" HTTP/1.1\r\n" + HOST + AUTHZ + JSON
        if length:
            head += b"Content-Length: %d\r\n" % len(body)
        return head + extra + b"\r\n" + body


class Targets(Http):
    def get_raw(self, target, auth=False):
        return (b"GET " + target + b" HTTP/1.1\r\n" + HOST
                + (AUTHZ if auth else b"") + b"\r\n")

    def test_T002_encoded_target(self):
        for t in (b"/files/%2e%2e/%2e%2e/etc/passwd", b"/files/..%2fx",
                  b"/files/..%5cx", b"/files/a%00b", b"/%2E/x", b"/a%2Fb",
                  b"/a%5Cb", b"/x/%2e", b"/.%2e/x", b"/rpc/files%2elist",
                  b"/health%2f", b"/%2e%2e"):
            with self.subTest(t):
                r = self.raw(self.get_raw(t))
                self.refused(r, 400, "request.bad_target")

    def test_T003_broken_escape(self):
        w = self.world.w.encode()
        for t in (b"?path=" + w + b"/abc%", b"?path=" + w + b"/abc%4",
                  b"?path=%", b"?path=%zz", b"?path=%4g", b"?%", b"?a=b&%4",
                  b"?path=a%00b", b"?pa%00th=x"):
            for auth in (False, True):
                with self.subTest(t, auth=auth):
                    r = self.raw(self.get_raw(b"/files/stat" + t, auth))
                    self.refused(r, 400, "request.bad_target")
        for t in (b"/x%", b"/x%4", b"/%zz"):
            r = self.raw(self.get_raw(t))
            self.refused(r, 400, "request.bad_target")

    def test_T004_raw_target_shape(self):
        for t in (b"//files/list", b"/files/./list", b"/x/../files/list",
                  b"/files//list", b"/..", b"/.", b"/../", b"/files/..",
                  b"/files/.", b"//", b"/a\\b", b"\\", b"/a\x7fb", b"/a\x01b",
                  b"/a\x80b", b"/\xc3\xa9", b"http://localhost/health",
                  b"localhost:80", b"*", b"health", b"?x", b"/a\x00b",
                  b"https://evil.example/health"):
            with self.subTest(t):
                r = self.raw(self.get_raw(t, auth=True))
                self.refused(r, 400, "request.bad_target",
                             "request.bad_framing")

    def test_spaces_in_the_request_line(self):
        for line in (b"GET /health  HTTP/1.1", b"GET  /health HTTP/1.1",
                     b" GET /health HTTP/1.1", b"GET /health HTTP/1.1 ",
                     b"GET /hea lth HTTP/1.1", b"GET\t/health\tHTTP/1.1",
                     b"GET /health", b"GET", b"/health HTTP/1.1",
                     b"G(T /health HTTP/1.1", b"GET /health HTTP/1.",
                     b"GET /health HTTP/11", b"GET /health http/1.1",
                     b"GET /health HTTP/1.1x", b"GET /health XTTP/1.1",
                     b"GET /health HTTP/ 1.1"):
            with self.subTest(line):
                r = self.raw(line + b"\r\n" + HOST + b"\r\n")
                self.eq(r.status, 400, line)

    def test_a_dot_may_be_part_of_a_name(self):
        for t in (b"/a..b", b"/...", b"/..a", b"/a.", b"/a/b../c"):
            r = self.raw(self.get_raw(t, auth=True) + b"")
            self.refused(r, 404, "op.not_enabled", what=t)

    def test_T014_long_target(self):
        for n in (8190, 8191, 8192):
            t = b"/x?" + b"a" * (n - 3)
            with Conn(self.svc) as c:
                c.send(self.get_raw(t, auth=True))
                self.among(c.reply().status, (400, 404), n)
        for n in (8193, 8194, 9000, 16384, 70000):
            with self.subTest(n):
                r = self.raw(self.get_raw(b"/" + b"a" * (n - 1)))
                self.refused(r, 400, "request.bad_target",
                             "request.bad_framing")

    def test_T044_targets_one_by_one(self):
        for n in list(range(8180, 8205)) + list(range(15330, 15341)):
            with Conn(self.svc) as c:
                c.send(self.get_raw(b"/" + b"b" * (n - 1)))
                self.among(c.reply().status, (400, 401, 431), n)
        self.health()

    def test_T055_token_in_url(self):
        for t in ("token", "access_token", "Authorization"):
            r = self.svc.get(f"/capabilities?{t}={ADMIN}", token=None)
            self.refused(r, 401, "auth.required")
        # the end of the test looks through logs and audit for the token

    def test_query_grammar(self):
        a = self.world.w + "/a.txt"
        self.ok(self.svc.get(f"/files/stat?path={a}&"))
        self.ok(self.svc.get(f"/files/stat?&path={a}"))
        self.refused(self.svc.get(f"/files/stat?path={a}&path={a}"), 400,
                     "args.invalid")
        self.refused(self.svc.get(f"/files/stat?path={a}&x=1"), 400,
                     "args.unknown")
        self.refused(self.svc.get("/files/stat"), 400, "args.missing")
        self.refused(self.svc.get(f"/files/list?path={a}&max_entries=1x"),
                     400, "args.type")
        self.refused(self.svc.get(f"/files/list?path={a}&max_entries=0"),
                     400, "args.type")


class Framing(Http):
    def test_T034_cl_and_te(self):
        for te in (b"chunked", b"Chunked"):
            self.bad(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ
                     + JSON + b"Content-Length: 6\r\nTransfer-Encoding: "
                     + te + b"\r\n\r\n0\r\n\r\nG")
            self.bad(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ
                     + JSON + b"Transfer-Encoding: " + te
                     + b"\r\nContent-Length: 6\r\n\r\n0\r\n\r\nG")

    def test_transfer_codings(self):
        for te in (b"gzip", b"chunked, gzip", b"gzip, chunked", b"identity",
                   b"chunked, chunked", b"xchunked", b"chunked;x=1", b"",
                   b"chunke\x0bd", b"chunked,", b",chunked", b"\"chunked\"",
                   b"chunked\r\nTransfer-Encoding: chunked",
                   b"chunked\r\nTransfer-Encoding: identity"):
            with self.subTest(te):
                self.bad(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ
                         + JSON + b"Transfer-Encoding: " + te
                         + b"\r\n\r\n0\r\n\r\n")

    def test_T035_chunk_grammar(self):
        up = (b"PUT /files/upload-stream?path=chunky HTTP/1.1\r\n" + HOST
              + AUTHZ + b"Content-Type: application/octet-stream\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n")
        js = (b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ + JSON
              + b"Transfer-Encoding: chunked\r\n\r\n")
        bodies = (b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello\n0\r\n\r\n",
                  b"5\r\nhelloX\r\n0\r\n\r\n", b"5\rhello\r\n0\r\n\r\n",
                  b"\r\n5\r\nhello\r\n0\r\n\r\n", b"g\r\nx\r\n0\r\n\r\n",
                  b"-1\r\nx\r\n0\r\n\r\n", b"+5\r\nhello\r\n0\r\n\r\n",
                  b"0x5\r\nhello\r\n0\r\n\r\n", b" 5\r\nhello\r\n0\r\n\r\n",
                  b"5 \r\nhello\r\n0\r\n\r\n", b"5_0\r\nhello\r\n0\r\n\r\n",
                  b"5\r\nhello\r\n0\n\n", b"5\r\nhello\r\n0\r\nX Y: z\r\n\r\n",
                  b"5\r\nhello\r\n0\r\nA: b\n\r\n",
                  b"5;a=\x00\r\nhello\r\n0\r\n\r\n",
                  b"5;" + b"a" * 257 + b"\r\nhello\r\n0\r\n\r\n")
        for head in (up, js):
            for body in bodies:
                with self.subTest(body[:40], up=head is up):
                    self.bad(head + body)
        self.eq(os.path.exists(self.world.w + "/chunky"), False,
                "a broken upload leaves a file")

    def test_T036_line_ends(self):
        for data in (b"GET /x\nHost: localhost\r\n\r\n",
                     b"GET /health HTTP/1.1\nHost: localhost\n\n",
                     b"GET /health HTTP/1.1\nHost: localhost\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: localhost\nA: b\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: localhost\r\n\n",
                     b"GET /health HTTP/1.1\r\nHost: localhost\rA: b\r\n\r\n",
                     b"GET /health HTTP/1.1\rHost: localhost\r\r"
                     b"\r\n\r\n",
                     b"GET /health HTTP/1.1\r\r\nHost: localhost\r\n\r\n",
                     b"GET /x HTTP/0.9\r\nHost: localhost\r\n\r\n",
                     b"GET /x\r\nHost: localhost\r\n\r\n"):
            with self.subTest(data):
                self.bad(data, 505 if b"0.9" in data else 400,
                         ("request.bad_framing", "request.bad_version"))

    def test_T037_header_grammar(self):
        for h in (b"Content-Length : 5", b"Content-Length\t: 5", b": x",
                  b"A B: c", b" A: b", b"A: b\r\n c", b"A: b\r\n\tc",
                  b"A", b"A: b\x00c", b"A\x00: b", b"A: \x01", b"A: \x7f",
                  b"A(: b", b"\xc3\xa9: b", b"A: b\rc"):
            with self.subTest(h):
                self.bad(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ
                         + h + b"\r\n\r\nhello" + HEALTH)

    def test_T038_content_length_grammar(self):
        for n in (b"1 2", b"", b" ", b"+5", b"-5", b"0x5", b"5,5", b"5, 5",
                  b"5;", b"5.0", b"1e1", b"five", b"\xb2", b"5 5",
                  b"18446744073709551616", b"18446744073709551621",
                  b"99999999999999999999999999", b"9223372036854775808",
                  b"5\r\nContent-Length: 5", b"5\r\nContent-Length: 6"):
            with self.subTest(n):
                self.bad(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ
                         + JSON + b"Content-Length: " + n + b"\r\n\r\nhello"
                         + HEALTH, 400, ("request.bad_framing",))

    def test_T039_chunk_size_overflow(self):
        for size in (b"ffffffffffffffff", b"fffffffffffffffff",
                     b"10000000000000000", b"8000000000000000",
                     b"7fffffffffffffff", b"00000000000000000000005",
                     b"FFFFFFFFFFFFFFF0"):
            for target in (b"/rpc/files.stat",
                           b"/files/upload-stream?path=over"):
                kind = JSON if b"rpc" in target else \
                    b"Content-Type: application/octet-stream\r\n"
                with self.subTest(size, target=target), \
                        Conn(self.svc, timeout=8) as c:
                    c.send(b"POST " + target + b" HTTP/1.1\r\n" + HOST
                           + AUTHZ + kind + b"Transfer-Encoding: chunked"
                           b"\r\n\r\n" + size + b"\r\nhello\r\n0\r\n\r\n")
                    c.s.shutdown(socket.SHUT_WR)
                    try:
                        self.among(c.reply().status, (200, 400, 413), size)
                    except EOFError:
                        pass  # 7fff... is a length; the body never came
        self.health()
        self.eq(os.path.exists(self.world.w + "/over"), False)

    def test_T040_unread_body(self):
        body = b'{"path": "GET /nonsense HTTP/1.1"}'
        for token in (b"", b"Authorization: Bearer wrong-token-0123456789\r\n"
                      ):
            with Conn(self.svc) as c:
                c.send(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + token
                       + JSON + b"Content-Length: %d\r\n\r\n" % len(body)
                       + body + HEALTH)
                self.eq(c.reply().status, 401)
                try:
                    self.ok(c.reply())
                except EOFError:
                    pass
        # a body that came late
        with Conn(self.svc) as c:
            c.send(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + JSON
                   + b"Content-Length: 100\r\n\r\n")
            self.eq(c.reply().status, 401)
            c.send(HEALTH + b"x" * 100)
            rest = c.rest(3)
            self.eq(rest, b"", "a body read as a request")

    def test_an_error_reaches_a_client_that_is_still_sending(self):
        """A refusal must not be lost to a reset of the connection."""
        for _ in range(5):
            with Conn(self.svc) as c:
                c.send(b"PUT /files/upload-stream?path=/etc/x HTTP/1.1\r\n"
                       + HOST + AUTHZ + b"Content-Type: application/"
                       b"octet-stream\r\nContent-Length: 8000000\r\n\r\n")
                sent = 0
                while sent < 8000000 and c.send(b"x" * 100000):
                    sent += 100000
                self.refused(c.reply(), 403, "policy.path_not_allowed")

    def test_T041_pipelining(self):
        """Three requests in one segment, and cut at every byte."""
        a = self.world.w + "/a.txt"
        three = (HEALTH + b"GET /files/download-stream?path="
                 + quoted(a).encode() + b" HTTP/1.1\r\n" + HOST + AUTHZ
                 + b"\r\n" + self.post(json.dumps({"path": a}).encode()))

        def read(c, where):
            self.eq(set(self.ok(c.reply()).json), {"status", "version"},
                    where)
            self.eq(self.ok(c.reply()).body, b"hello\n", where)
            self.eq(self.ok(c.reply()).json["size"], 6, where)

        with Conn(self.svc) as c:
            c.send(three)
            read(c, "one segment")
            c.send(three + three)
            read(c, "again")
            read(c, "again")
            for cut in range(1, len(three)):
                c.send(three[:cut])
                if cut % 16 == 0 or LONG:
                    time.sleep(0.002)
                c.send(three[cut:])
                read(c, f"cut at {cut}")

    def test_T041_byte_by_byte(self):
        with Conn(self.svc) as c:
            for i in range(len(HEALTH)):
                c.send(HEALTH[i:i + 1])
            self.ok(c.reply())

    def test_many_pipelined(self):
        with Conn(self.svc) as c:
            threading.Thread(target=c.send, args=(HEALTH * 2000,)).start()
            for _ in range(2000):
                self.ok(c.reply())

    def test_T042_expect_continue(self):
        head = ("PUT /files/upload-stream?path=%s HTTP/1.1\r\nHost: localhost"
                "\r\nAuthorization: Bearer %s\r\nContent-Type: application/"
                "octet-stream\r\nExpect: 100-continue\r\n%s\r\n\r\n")
        data = os.urandom(2 << 20)
        for how in (f"Content-Length: {len(data)}",
                    "Transfer-Encoding: chunked"):
            with self.subTest(how), Conn(self.svc) as c:
                began = time.monotonic()
                c.send((head % ("expected", ADMIN, how)).encode())
                self.eq(c.head()[0], 100)
                self.under(time.monotonic() - began, 0.2 * SLOW, "seconds")
                if "chunked" in how:
                    c.send(b"%x\r\n" % len(data) + data + b"\r\n0\r\n\r\n")
                else:
                    c.send(data)
                self.among(c.reply().status, (200, 201))
                self.under(time.monotonic() - began, 1 * SLOW, "seconds")
                self.eq(self.world.get("w/expected") == data, True)
                c.send(HEALTH)
                self.ok(c.reply())
        for path, token, status in (("/etc/x", ADMIN, 403),
                                    ("x", "wrong-token-0123456789", 401),
                                    (".env", ADMIN, 403)):
            with self.subTest(path), Conn(self.svc) as c:
                began = time.monotonic()
                c.send((head % (path, token, "Content-Length: 99")).encode())
                r = c.reply()
                self.eq((r.status, r.continued), (status, False))
                self.under(time.monotonic() - began, 0.2 * SLOW, "seconds")
        body = json.dumps({"path": "a.txt"}).encode()
        with Conn(self.svc) as c:
            c.send(self.post(body, b"Expect: 100-continue\r\n")[:-len(body)])
            self.eq(c.head()[0], 100, "a JSON body is expected too")
            c.send(body)
            self.ok(c.reply())

    def test_T043_host(self):
        for host in (b"attacker.com", b"localhost.attacker.com",
                     b"127.0.0.1.attacker.com", b"attacker.com:80",
                     b"localhost@attacker.com", b"10.0.0.1", b"0.0.0.0",
                     b"[::2]", b"localhostx", b"xlocalhost", b""):
            with self.subTest(host):
                r = self.raw(b"GET /health HTTP/1.1\r\nHost: " + host
                                + b"\r\n" + AUTHZ + b"\r\n")
                self.refused(r, 403, "request.host_denied", what=host)
        for host in (b"localhost", b"LocalHost", b"127.0.0.1", b"[::1]",
                     b"localhost:1", b"127.0.0.1:65535", b"[::1]:80",
                     b"127.0.0.2"):
            with Conn(self.svc) as c:
                c.send(b"GET /health HTTP/1.1\r\nHost: " + host
                       + b"\r\n\r\n")
                self.ok(c.reply())
        self.bad(b"GET /health HTTP/1.1\r\n" + HOST + HOST + b"\r\n")
        self.bad(b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
                 b"host: attacker.com\r\n\r\n")
        self.bad(b"GET /health HTTP/1.1\r\n\r\n")
        # the framing is wrong before the host is looked at
        self.bad(b"GET /health HTTP/1.1\r\nHost: attacker.com\r\n"
                 b"Content-Length: x\r\n\r\n")

    def test_T044_header_flood(self):
        def with_fields(n):
            return (b"GET /health HTTP/1.1\r\n" + HOST
                    + b"".join(b"X-%d: y\r\n" % i for i in range(n - 1))
                    + b"\r\n")
        for n in (63, 64):
            r = self.raw(with_fields(n) + b"")
            self.ok(r)
        for n in (65, 66, 1000):
            self.bad(with_fields(n), 431, "request.headers_too_large")
        for size in (1 << 15, 1 << 20):
            self.bad(b"GET /health HTTP/1.1\r\n" + HOST + b"X: "
                     + b"y" * size + b"\r\n\r\n", 431,
                     "request.headers_too_large")
        for size in range(16300, 16400, 1 if LONG else 3):
            with Conn(self.svc) as c:
                c.send(b"GET /health HTTP/1.1\r\n" + HOST + b"X: "
                       + b"y" * size + b"\r\n\r\n")
                self.among(c.reply().status, (200, 431), size)
        self.health()

    def test_versions(self):
        with Conn(self.svc) as c:
            c.send(b"GET /health HTTP/1.0\r\n" + HOST + b"\r\n" + HEALTH)
            self.ok(c.reply())
            self.eq(c.ended(), True, "HTTP/1.0 is answered and closed")
        with Conn(self.svc) as c:
            c.send(b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n"
                   + HOST + b"\r\n")
            self.ok(c.reply())
            self.eq(c.ended(), True)
        self.bad(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505,
                 "request.bad_version")
        self.bad(b"GET /health HTTP/2.0\r\n" + HOST + b"\r\n", 505,
                 "request.bad_version")
        self.bad(b"GET /health HTTP/3.7\r\n" + HOST + b"\r\n", 505,
                 "request.bad_version")
        for junk in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                     b"\x05\x01\x00" * 20, b"SSH-2.0-x\r\n\r\n",
                     b"\r\n\r\n\r\n", b"\x00" * 100, b"\xff" * 20000):
            with Conn(self.svc) as c:
                c.send(junk)
                c.s.shutdown(socket.SHUT_WR)
                got = c.rest(8)
                self.eq(got[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 431",
                                     b"HTTP/1.1 505"), True, got[:100])

    def test_connection_close(self):
        for v in (b"close", b"Close", b"x, close", b"close, x"):
            with Conn(self.svc) as c:
                c.send(b"GET /health HTTP/1.1\r\nConnection: " + v + b"\r\n"
                       + HOST + b"\r\n" + HEALTH)
                r = self.ok(c.reply())
                self.eq((r.header("connection") or "").lower(), "close")
                self.eq(c.ended(), True, "closed")

    def test_keep_alive_through_everything(self):
        """Refusals, downloads, uploads, lists on one connection."""
        w = self.world.w
        with Conn(self.svc) as c:
            for i in range(20):
                c.send(self.svc.build("PUT", "/files/upload-stream?path=ka",
                                      b"x" * i))
                self.among(c.reply().status, (200, 201))
                c.send(self.svc.build(
                    "GET", "/files/download-stream?path=ka"))
                self.eq(self.ok(c.reply()).body, b"x" * i)
                c.send(self.svc.build("GET", "/files/list?path=" + w))
                self.ok(c.reply())
                c.send(self.svc.build(
                    "HEAD", "/files/download-stream?path=ka"))
                r = self.ok(c.reply("HEAD"))
                self.eq(r.header("content-length"), str(i))
                c.send(self.svc.build("GET", "/files/stat?path=/etc/x"))
                self.refused(c.reply(), 403, "policy.path_not_allowed")
                c.send(self.svc.build("GET", "/no/such/thing"))
                self.refused(c.reply(), 404, "op.not_enabled")
                c.send(self.svc.build("POST", "/rpc/files.stat",
                                      {"path": w + "/a.txt"}))
                self.ok(c.reply())

    def test_refused_head_has_no_body(self):
        """Whatever refuses it: what came behind would be the next answer."""
        for target, headers in (("//x", {}), ("/files/../x", {}),
                                ("/a%2fb", {}), ("*", {}), ("/?a=%zz", {}),
                                ("http://localhost/health", {}),
                                ("localhost:80", {}),
                                ("/health", {"Host": "evil.example"}),
                                ("/health", {"Origin": "null"}),
                                ("/none", {})):
            with self.subTest(target), Conn(self.svc) as c:
                c.send(self.svc.build("HEAD", target, headers=headers)
                       + self.svc.build("GET", "/health"))
                self.among(c.reply("HEAD").status, (400, 403, 404))
                self.ok(c.reply())

    def test_chunked_bodies(self):
        data = os.urandom(300_000)

        def chunks(sizes, ext=b"", trailer=b""):
            out, at = b"", 0
            for n in sizes:
                part = data[at:at + n]
                if part:
                    out += b"%x%s\r\n" % (len(part), ext) + part + b"\r\n"
                at += n
            return out + b"0" + ext + b"\r\n" + trailer + b"\r\n"
        head = (b"PUT /files/upload-stream?path=chunked HTTP/1.1\r\n" + HOST
                + AUTHZ + b"Content-Type: application/octet-stream\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n")
        for body, want in (
                (chunks([300_000]), data),
                (chunks([1] * 3000), data[:3000]),
                (chunks([7, 65536, 1, 100000, 200000]), data),
                (chunks([1000], b";a=b;c=\"d\""), data[:1000]),
                (chunks([1000], b";" + b"e" * 254), data[:1000]),
                (chunks([1000], b"", b"X-Trailer: 1\r\nB: c\r\n"),
                 data[:1000]),
                (chunks([]), b""),
                (b"3E8\r\n" + data[:1000] + b"\r\n0\r\n\r\n", data[:1000]),
                (b"0003e8\r\n" + data[:1000] + b"\r\n000\r\n\r\n",
                 data[:1000])):
            with self.subTest(body[:20]), Conn(self.svc) as c:
                c.send(head + body + HEALTH)
                r = c.reply()
                self.among(r.status, (200, 201), r)
                self.eq(r.json["bytes"], len(want))
                self.eq(self.world.get("w/chunked") == want, True, "content")
                self.ok(c.reply())

    def test_a_body_that_ends_with_a_turn(self):
        """However many moves a body takes, its end is seen at once."""
        head = (b"PUT /files/upload-stream?path=turns HTTP/1.1\r\n" + HOST
                + AUTHZ + b"Content-Type: application/octet-stream\r\n"
                b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
        for n in range(48):
            for pieces in (1, 2):
                with self.subTest(n, pieces=pieces), Conn(self.svc) as c:
                    c.send(head)
                    self.eq(c.head()[0], 100)
                    body = b"1\r\nx\r\n" * n + b"0\r\n\r\n"
                    cut = len(body) // pieces
                    c.send(body[:cut])
                    c.send(body[cut:])
                    r = c.reply()
                    self.among(r.status, (200, 201), r)
                    self.eq(r.json["bytes"], n)

    def test_chunked_json_at_every_cut(self):
        body = json.dumps({"path": "a.txt"}).encode()
        msg = (b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ + JSON
               + b"Transfer-Encoding: chunked\r\n\r\n"
               + b"%x\r\n" % 3 + body[:3] + b"\r\n%x;e=1\r\n"
               % (len(body) - 3) + body[3:] + b"\r\n0\r\nT: x\r\n\r\n")
        with Conn(self.svc) as c:
            for cut in range(1, len(msg)):
                c.send(msg[:cut])
                if cut % 8 == 0:
                    time.sleep(0.001)
                c.send(msg[cut:])
                self.eq(self.ok(c.reply()).json["size"], 6, f"cut at {cut}")

    def test_a_body_where_none_is_read(self):
        with Conn(self.svc) as c:
            c.send(b"GET /health HTTP/1.1\r\n" + HOST
                   + b"Content-Length: 30\r\n\r\n" + b"GET /x HTTP/1.1\r\n"
                   + b"x" * 13 + HEALTH)
            c.reply()
            rest = c.rest(2)
            self.among(rest.count(b"HTTP/1.1 "), (0, 1), rest[:200])
            if rest:
                self.eq(rest.startswith(b"HTTP/1.1 200 "), True, rest[:200])


class Checks(Http):
    def test_T046_deep_json(self):
        for body in (b"[" * 100_000, b'{"a":' * 200_000,
                     b'{"args":' + b"[" * 50_000,
                     b'{"a":' + b"[" * 32 + b"]" * 32 + b"}",
                     b"{" + b'"a":{' * 32 + b"}" * 33):
            with self.subTest(body[:10], n=len(body)):
                r = self.raw(self.post(body))
                self.refused(r, 400, "request.bad_json")
        # 32 deep is not too deep
        r = self.raw(self.post(b'{"a":' + b"[" * 31 + b"]" * 31 + b"}"))
        self.refused(r, 400, "args.unknown", "args.missing", "args.type")

    def test_strict_json(self):
        bad = (b"", b" ", b"null", b"[]", b'"x"', b"1", b"{", b"}", b"{}}",
               b"{} x", b"{}{}", b'{"path":"a","path":"b"}',
               b'{"path":"a","pa\\u0074h":"b"}', b'{"args":{"a":1,"a":2}}',
               b'{"path":"a\\u0000b"}', b'{"pa\\u0000th":"b"}',
               b'{"path":"a\x00b"}', b'{"path":"\xff"}',
               b'{"path":"\xc0\xaf"}', b'{"path":"\xed\xa0\x80"}',
               b'{"path":"\\ud800"}', b"{'path':'a'}", b"{path:1}",
               b'{"path":"a",}', b'{"path":01}', b'{"path":NaN}',
               b'{"path":Infinity}', b'{"path":+1}', b'{"path":.5}',
               b'{"path":"a\nb"}', b'{"path":"\\x41"}', b'\xef\xbb\xbf{}',
               b'{"path":"a"}\x00', b'{"path":tru}', b'/**/{"path":"a"}')
        for body in bad:
            with self.subTest(body):
                r = self.raw(self.post(body))
                self.refused(r, 400, "request.bad_json", what=body)
        for body in (b'{"path":"a.txt"}', b' {\n"path" : "a.txt"\t}\r\n ',
                     b'{"p\\u0061th":"a\\u002etxt"}'):
            r = self.raw(self.post(body))
            self.ok(r)

    def test_T047_integers(self):
        for v in (0, -1, 1.5, "10", True, None, [1], {}, 1e3, -0.0):
            with self.subTest(v):
                r = self.svc.rpc("files.list", {"path": ".",
                                                "max_entries": v})
                self.refused(r, 400, "args.type")
        for v in ("18446744073709551616", "99999999999999999999999",
                  "-9223372036854775809", "1e400"):
            with self.subTest(v):
                r = self.raw(self.post(
                    b'{"path":".","max_entries":%s}' % v.encode(),
                    target=b"/rpc/files.list"))
                self.refused(r, 400, "args.type", "request.bad_json")

    def test_argument_errors(self):
        for args, code in (({"path": 1}, "args.type"),
                           ({"path": None}, "args.type"),
                           ({"path": ["a"]}, "args.type"),
                           ({}, "args.missing"),
                           ({"path": "a.txt", "x": 1}, "args.unknown"),
                           ({"PATH": "a.txt"}, "args.unknown"),
                           ({"path": "a.txt", "": 1}, "args.unknown")):
            with self.subTest(args):
                self.refused(self.svc.rpc("files.stat", args), 400, code,
                             "args.unknown" if code == "args.missing"
                             else code)

    def test_T057_origin(self):
        for o in ("https://evil.example", "null", "http://localhost",
                  f"http://localhost:{self.svc.port}", "file://", "",
                  "http://127.0.0.1"):
            with self.subTest(o):
                r = self.svc.get("/capabilities", headers={"Origin": o})
                self.refused(r, 403, "request.origin_denied")
        r = self.svc.get("/health", token=None, headers={"Origin": "null"})
        self.refused(r, 403, "request.origin_denied")

    def test_T058_content_type(self):
        a = {"path": "a.txt"}
        for kind in ("text/plain", "application/x-www-form-urlencoded",
                     "multipart/form-data; boundary=x", "application/jsonx",
                     "text/plain; application/json", "application/",
                     "application/octet-stream", "text/json",
                     "application/json, text/plain", "*/*", "json"):
            with self.subTest(kind):
                r = self.svc.rpc("files.stat", a, kind=kind)
                self.refused(r, 415, "request.bad_content_type")
        r = self.svc.rpc("files.stat", a, headers={"Content-Type": None})
        self.refused(r, 415, "request.bad_content_type")
        for kind in ("application/json; charset=utf-8", "Application/JSON",
                     "application/json;charset=\"utf-8\"",
                     "application/json"):
            self.ok(self.svc.rpc("files.stat", a, kind=kind))
        for kind in ("application/json", "text/plain",
                     "multipart/form-data; boundary=x",
                     "application/x-www-form-urlencoded"):
            r = self.svc.upload("kind", b"x", kind=kind)
            self.refused(r, 415, "request.bad_content_type")

    def test_T059_check_order(self):
        """framing, target, host and origin, auth, size, type, body, op"""
        big, text = {"Content-Length": "200000000"}, "text/plain"
        order = (
            (dict(), dict(token=None, kind=text, headers=big), 401),
            (dict(), dict(token=None, kind=text,
                          headers={**big, "Host": "evil.example"}), 403),
            (dict(target="/a/../b"), dict(token=None, headers={
                "Host": "evil.example"}), 400),
            (dict(), dict(kind=text, headers=big), 413),
            (dict(), dict(kind=text), 415),
            (dict(target="/rpc/no.such.op"), dict(kind=text), 415),
            (dict(target="/rpc/no.such.op"), dict(token=None), 401),
            (dict(target="/rpc/no.such.op"), dict(), 404))
        for where, how, status in order:
            with self.subTest(status, **where), Conn(self.svc) as c:
                c.send(self.svc.build("POST", where.get(
                    "target", "/rpc/files.stat"), {"path": "a.txt"}, **how))
                self.eq(c.reply().status, status)
        r = self.raw(self.post(b"{", target=b"/rpc/no.such.op"))
        self.refused(r, 400, "request.bad_json", what="a body before the op")

    def test_size_of_json(self):
        pad = "x" * (1 << 20)
        r = self.svc.rpc("files.stat", {"path": pad})
        self.refused(r, 413, "limit.request_too_large")
        body = json.dumps({"path": pad}).encode()
        with Conn(self.svc) as c:
            c.send(self.post(b"", b"Transfer-Encoding: chunked\r\n",
                             length=False)
                   + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
            self.refused(c.reply(), 413, "limit.request_too_large")
        r = self.svc.rpc("files.stat", {"path": "x" * 1_000_000})
        self.refused(r, 403, "policy.path_invalid")

    def test_request_ids(self):
        seen = set()
        for i in range(50):
            for r in (self.svc.get("/health"), self.svc.get("/x"),
                      self.svc.stat("/etc/x"),
                      self.svc.get("/x", token=None)):
                seen.add(r.header("x-request-id"))
        self.eq(len(seen), 200, "different ids")
        r = self.svc.get("/health", headers={"X-Request-Id": "r-mine"})
        self.eq("mine" in r.raw.decode(), False, "an id from outside")
        r = self.svc.stat("a.txt")
        self.eq(self.svc.audit_of(r)["op"], "files.stat")

    def test_credentials(self):
        def get(**h):
            return self.svc.get("/capabilities", token=None, headers={
                k.replace("_", "-"): v for k, v in h.items()})
        self.ok(get(Authorization="Bearer " + ADMIN))
        self.ok(get(Authorization="bEaReR " + ADMIN))
        self.ok(get(X_Access_Token=ADMIN))
        self.ok(get(Authorization="Bearer " + ADMIN, X_Access_Token=ADMIN))
        self.refused(get(Authorization="Bearer " + ADMIN,
                         X_Access_Token=ALICE), 401,
                     "auth.conflicting_credentials")
        for v in ("Basic " + ADMIN, "Bearer", "Bearer ", ADMIN,
                  "Bearer " + ADMIN + " x", f"Bearer {ADMIN},{ADMIN}",
                  "Bearer " + ADMIN[:-1], "Bearer " + ADMIN + "x",
                  "Bearer " + "x" * 513, "Bearer " + "x" * 5000,
                  "Token " + ADMIN, "Bearer " + ADMIN.upper(),
                  "Bearer \"" + ADMIN + "\"", ""):
            with self.subTest(v[:40]):
                self.refused(get(Authorization=v), 401, "auth.invalid",
                             "auth.required", "auth.rate_limited")
        with Conn(self.svc) as c:
            c.send(b"GET /capabilities HTTP/1.1\r\n" + HOST + AUTHZ + AUTHZ
                   + b"\r\n")
            self.eq(c.reply().status >= 400, True, "two Authorization lines")
        self.refused(get(), 401, "auth.required")
        self.refused(get(Cookie="token=" + ADMIN), 401, "auth.required")
        self.refused(get(Proxy_Authorization="Bearer " + ADMIN), 401,
                     "auth.required")

    def test_T056_failed_auth_limit(self):
        wrong = "wrong-token-of-T056-0123456789"
        for i in range(10):
            self.refused(self.svc.get("/capabilities", token=wrong), 401,
                         "auth.invalid", what=f"try {i + 1}")
        r = self.svc.get("/capabilities", token=wrong)
        self.refused(r, 429, "auth.rate_limited")
        self.among(int(r.header("retry-after")), range(1, 61))
        self.ok(self.svc.get("/capabilities"))
        self.refused(self.svc.get("/capabilities",
                                  token="another-wrong-0123456789"), 401,
                     "auth.invalid")

    def test_identical_401(self):
        bodies = {self.svc.call(m, t, token=None).body[-80:].split(
            b'"request_id"')[0] for m, t in (
                ("GET", "/files/list"), ("GET", "/no/such"),
                ("DELETE", "/x"), ("GET", "/capabilities"))}
        self.eq(len(bodies), 1, "401 tells which routes exist")

    def test_health(self):
        for kw in ({}, {"token": None}):
            self.eq(set(self.ok(self.svc.get("/health", **kw)).json),
                    {"status", "version"})
        self.eq(self.svc.call("HEAD", "/health", token=None).status in
                (401, 404), True, "HEAD /health is no route")
        self.refused(self.svc.call("POST", "/health", {}), 404,
                     "op.not_enabled")
        self.ok(self.svc.rpc("core.health"))


class SlowClients(Http):
    @classmethod
    def conf(cls, w):
        return {"rules": rules(w), "http": {
            "header_timeout": "1s", "head_deadline": "3s",
            "idle_timeout": "4s"}}

    def closed_after(self, c, seconds=9):
        """Seconds until the service closes without a word."""
        began = time.monotonic()
        self.eq(c.ended(seconds), True,
                f"closed quietly within {seconds} s, got {c.buf[:100]!r}")
        return time.monotonic() - began

    def test_T049_slow_headers(self):
        time.sleep(0.3)  # what the start logs
        logged = len(self.svc.logged())
        with Conn(self.svc) as silent, Conn(self.svc) as half, \
                Conn(self.svc) as drip:
            half.send(b"GET / HT")
            drip.send(b"GET /health HTTP/1.1\r\n")
            took = []

            def close_of(c):
                took.append(self.closed_after(c))
            threads = [threading.Thread(target=close_of, args=(c,))
                       for c in (silent, half)]
            for t in threads:
                t.start()
            began = time.monotonic()
            while time.monotonic() - began < 8 and drip.send(b"X: y\r\n"):
                time.sleep(0.3)
                drip.s.settimeout(0.01)
                try:
                    if not drip.more():
                        break
                except TimeoutError:
                    pass
            dripped = time.monotonic() - began
            for t in threads:
                t.join()
            self.eq(len(took), 2, "both were closed")
            for t in took:
                self.eq(0.7 < t < 3, True, f"closed after {t:.2f} s of 1")
            self.eq(2 < dripped < 5, True,
                    f"a dripping head ended after {dripped:.2f} s of 3")
        self.eq(self.svc.logged()[logged:], "", "nothing is logged")

    def test_idle_keep_alive(self):
        with Conn(self.svc) as c:
            c.send(HEALTH)
            self.ok(c.reply())
            time.sleep(1.5)
            c.send(HEALTH)
            self.ok(c.reply())
            took = self.closed_after(c)
            self.eq(3 < took < 7, True, f"idle ended after {took:.2f} s of 4")

    def test_slow_body(self):
        for extra in (b"Content-Length: 1000\r\n",
                      b"Transfer-Encoding: chunked\r\n"):
            with Conn(self.svc, timeout=12) as c:
                c.send(b"PUT /files/upload-stream?path=slow HTTP/1.1\r\n"
                       + HOST + AUTHZ + b"Content-Type: application/"
                       b"octet-stream\r\n" + extra + b"\r\n")
                began = time.monotonic()
                c.rest(10)
                self.under(time.monotonic() - began, 9, "seconds")
        self.eq(os.path.exists(self.world.w + "/slow"), False)

    def test_health_under_slow_loris(self):
        """Strangers who never finish a head do not keep others out."""
        with_head = []
        stop = threading.Event()

        def loris():
            while not stop.is_set():
                try:
                    with Conn(self.svc, timeout=5) as c:
                        while not stop.is_set() and c.send(b"G"):
                            time.sleep(0.2)
                except OSError:
                    pass
        threads = [threading.Thread(target=loris, daemon=True)
                   for _ in range(64)]
        for t in threads:
            t.start()
        try:
            time.sleep(0.5)
            for _ in range(100):
                with_head.append(self.ok(
                    self.svc.get("/health", token=None, timeout=5)).secs)
                self.ok(self.svc.stat("a.txt"))
        finally:
            stop.set()
        for t in threads:
            t.join(3)
        self.under(sorted(with_head)[95], 0.3 * SLOW, "seconds, 95th of 100")


class SlowReaders(Http):
    @classmethod
    def conf(cls, w):
        return {"rules": rules(w), "http": {"idle_timeout": "2s"}}

    @staticmethod
    def all_of(c, got):
        try:
            while part := c.s.recv(1 << 20):
                got += len(part)
        except ConnectionResetError:
            pass
        return got

    def test_a_download_that_nobody_reads(self):
        """What the client takes in restarts the clock, nothing else does."""
        size = 64 << 20
        with open(self.world.w + "/big", "wb") as f:
            f.truncate(size)
        with Conn(self.svc, rcvbuf=4096) as deaf, \
                Conn(self.svc, rcvbuf=65536) as slow:
            for c in (deaf, slow):
                c.send(self.svc.build(
                    "GET", "/files/download-stream?path=big"))
                self.eq(c.head()[0], 200)
            began, got = time.monotonic(), len(slow.buf)
            while time.monotonic() - began < 7:
                got += len(slow.s.recv(1 << 16))
                time.sleep(0.1)
            self.under(self.all_of(deaf, 0), size // 2, "bytes, too late")
            self.eq(self.all_of(slow, got), size, "bytes, slowly")


class MinRate(Http):
    RATE = "512KiB"

    @classmethod
    def conf(cls, w):
        return {"rules": rules(w) + [{"allow": "files.watch", "paths": {
            "roots": [w.w]}}], "http": {"idle_timeout": "2s",
                                        "min_rate": cls.RATE}}

    def test_a_reader_that_drips(self):
        """It is not kept by a few bytes within each idle_timeout; one who
        takes enough is, and one who takes all that there is."""
        with open(self.world.w + "/big", "wb") as f:
            f.truncate(64 << 20)
        with Conn(self.svc, rcvbuf=4096) as drip, \
                Conn(self.svc, rcvbuf=65536) as slow, \
                Conn(self.svc) as follower:
            follower.send(self.svc.build("GET", "/files/watch?path=."))
            self.eq(follower.head()[0], 200)
            for c in drip, slow:
                c.send(self.svc.build(
                    "GET", "/files/download-stream?path=big"))
                self.eq(c.head()[0], 200)
            began = time.monotonic()
            while time.monotonic() - began < 9:
                slow.take(1 << 17)
                drip.s.recv(1 << 13)
                self.world.put("w/seen", b"x")
                time.sleep(0.1)
            # what the kernel had goes on to come
            self.under(SlowReaders.all_of(drip, 0), 32 << 20, "bytes")
            slow.take(1 << 17)
            follower.buf = b""
            self.world.put("w/late", b"x")
            self.assertTrue(until(5, lambda: follower.more() and
                                  b"late" in follower.buf), "the follower")


class Pools(Http):
    @classmethod
    def conf(cls, w):
        return {"rules": rules(w), "http": {"max_pre_auth": 4,
                                            "max_connections": 6}}

    def test_the_longest_incomplete_head_goes(self):
        held = []
        for i in range(12):
            c = Conn(self.svc)
            c.send(b"GET /hea")
            held.append(c)
            time.sleep(0.02)
        self.health()
        self.eq(held[0].ended(2), True, "the oldest was closed")
        self.eq(held[0].buf, b"", "without a word")
        held[-1].send(b"lth HTTP/1.1\r\n" + HOST + b"\r\n")
        self.ok(held[-1].reply())
        for c in held:
            c.close()

    def test_slow_bodies_keep_nobody_out(self):
        """Bodies that drip in give way to others after a second."""
        held = []
        for _ in range(8):
            c = Conn(self.svc)
            c.send(b"POST /rpc/files.stat HTTP/1.1\r\n" + HOST + AUTHZ +
                   b"Content-Type: application/json\r\n"
                   b"Content-Length: 500\r\n\r\n{")
            held.append(c)
            time.sleep(0.02)
        began = time.monotonic()
        while self.svc.stat("a.txt").status != 200:
            self.under(time.monotonic() - began, 3 * SLOW, "seconds")
            for c in held:
                try:
                    c.send(b" ")
                except OSError:
                    pass
            time.sleep(0.2)
        for c in held:
            c.close()

    def test_who_does_not_listen_keeps_nobody_out(self):
        """Strangers who ask on and on and read no answer give way."""
        ask = (b"GET /capabilities HTTP/1.1\r\n" + HOST + b"\r\n") * 1000
        held = [Conn(self.svc, rcvbuf=2048) for _ in range(4)]
        for c in held:
            c.s.setblocking(False)
        last = time.monotonic()
        while time.monotonic() - last < 0.5 * SLOW:
            for c in held:
                try:
                    c.s.send(ask)
                    last = time.monotonic()
                except BlockingIOError:
                    pass
            time.sleep(0.01)
        for _ in range(8):
            self.ok(self.svc.get("/health", token=None))
            self.ok(self.svc.stat("a.txt"))
        for c in held:
            c.close()

    def test_busy(self):
        """All connections at work: 503 with Retry-After, health answers."""
        with open(self.world.w + "/big", "wb") as f:
            f.truncate(200 << 20)
        held = []
        for _ in range(8):
            c = Conn(self.svc, rcvbuf=4096)
            c.send(self.svc.build("GET", "/files/download-stream?path=big"))
            held.append((c, c.head()[0]))
        codes = [s for _, s in held]
        self.eq(set(codes) <= {200, 503}, True, codes)
        self.eq(codes.count(200) <= 6 and codes[0] == 200, True, codes)
        r = self.svc.stat("a.txt")
        self.refused(r, 503, "request.busy", "server.unavailable")
        self.among(int(r.header("retry-after") or -1), range(1, 61))
        self.ok(self.svc.get("/health", token=None))
        self.ok(self.svc.get("/capabilities"))
        for c, _ in held:
            c.close()
        self.eq(until(5, lambda: self.svc.stat("a.txt").status == 200), True,
                "room again")


# sends the same request over and over, and counts the bytes that come back
FLOOD = """
import mmap, socket, struct, sys, threading
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
count, n, buf = mmap.mmap(0, 8), 0, bytearray(1 << 20)
def ask():
    try:
        while True:
            s.sendall(sys.argv[2].encode() * 4000)
    except OSError:
        pass
threading.Thread(target=ask, daemon=True).start()
while k := s.recv_into(buf):
    n += k
    count[:8] = struct.pack("q", n)
"""


@contextlib.contextmanager
def stopped(svc, name):
    """A process that finds later all that comes meanwhile."""
    pid = svc.kid(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        until(5, lambda: proc_stat(pid)[2] == "T", 0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Turns(Http):
    """However much one client asks, another has its turn."""

    def test_many_refusals(self):
        """A client that is refused as fast as it asks, and asks at once."""
        ask, between = b"GET /capabilities HTTP/1.1\r\n" + HOST + b"\r\n", []
        with tempfile.TemporaryFile() as f, Conn(self.svc) as c:
            f.truncate(8)
            count = mmap.mmap(f.fileno(), 8)
            flood = subprocess.Popen(
                [sys.executable, "-c", FLOOD, str(self.svc.port), ask],
                stdin=f)
            try:
                self.eq(until(20, lambda: any(count[:8])), True, "it floods")
                for _ in range(100):
                    began = struct.unpack("q", count[:8])[0]
                    c.send(ask)
                    size = len(c.reply().raw)
                    between.append(
                        (struct.unpack("q", count[:8])[0] - began) // size)
                    time.sleep(0.005)
            finally:
                flood.kill()
                flood.wait()
        self.under(sorted(between)[50], 1000, "answers to the other client "
                   f"while this one waits for one: {sorted(between)}")

    def test_many_connects(self):
        """Of many who connect at once, the first are dropped for the last;
        who was there before is served meanwhile."""
        early = 0
        for _ in range(10):
            with Conn(self.svc) as one, contextlib.ExitStack() as held:
                one.send(self.svc.build("GET", "/capabilities"))
                self.ok(one.reply())
                with stopped(self.svc, "abx-listener"):
                    many = [held.enter_context(Conn(self.svc))
                            for _ in range(200)]
                    one.send(self.svc.build("GET", "/files/stat?path="))
                one.more()
                many[100].s.setblocking(False)
                try:
                    many[100].s.recv(1)
                except BlockingIOError:
                    early += 1
        self.eq(early > 0, True, "answered before all were accepted")


class ClientGone(Http):
    @classmethod
    def fill(cls, w):
        with open(w.w + "/big", "wb") as f:
            f.truncate(100 << 20)

    def test_before_the_decision(self):
        """The record does not say that the call was allowed, or refused."""
        with stopped(self.svc, "abx-pathd"):
            c = Conn(self.svc)
            c.send(self.svc.build("GET", "/files/stat?path=big"))
            # it is on its way to pathd before the client goes
            time.sleep(0.3)
            c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                           struct.pack("ii", 1, 0))
            c.close()
            mine = [r for r in self.svc.audits(
                lambda r: r["op"] == "files.stat") if r["op"] == "files.stat"]
        self.eq([(r["allowed"], r.get("code"), r["status"], r["outcome"])
                 for r in mine], [(False, None, 0, "client_gone")])

    @timeout(120)
    def test_T052_client_gone(self):
        def counts():
            return {n: len(fds(p)) for n, p in self.svc.kids().items()} \
                if ROOT else None
        big = self.svc.build("GET", "/files/download-stream?path=big")

        def leave(times):
            for i in range(2 * times):
                c = Conn(self.svc)
                c.send(big)
                c.s.recv(1000 * i % 70000 + 1)
                c.close()
            for i in range(times):
                c = Conn(self.svc)
                c.send(self.svc.build(
                    "PUT", "/files/upload-stream?path=gone", b"x" * 5000,
                    headers={"Content-Length": "1000000"})[:100 * i + 1])
                c.close()
                c = Conn(self.svc)
                c.send(self.svc.build("GET", "/files/list?path=."))
                c.close()
            self.health()
        leave(20)  # pools of workers may grow once
        time.sleep(0.5)
        before, kids = counts(), self.svc.kids()
        leave(50)
        self.eq(self.svc.kids(), kids, "nobody died")
        if ROOT:
            # workers that are too many go after ten seconds
            def more():
                return {n: (k, before[n]) for n, k in counts().items()
                        if k > before[n]}
            until(15, lambda: not more())
            self.eq(more(), {}, "descriptors")
        self.eq(os.path.exists(self.world.w + "/gone"), False,
                "a broken upload")

    def test_half_close(self):
        """A client that shuts its side down after asking is answered."""
        with Conn(self.svc) as c:
            c.send(self.svc.build("GET", "/files/download-stream?path=big"))
            c.s.shutdown(socket.SHUT_WR)
            self.eq(len(self.ok(c.reply()).body), 100 << 20)


class OtherSettings(Http):
    @classmethod
    def conf(cls, w):
        return {"rules": rules(w), "allowed_hosts": ["abx.example"],
                "allowed_origins": ["https://tools.example"],
                "auth": {**AUTH, "anonymous_health": False},
                "http": {"max_request_bytes": "2KiB",
                         "max_header_bytes": "2KiB"}}

    def test_allowed_hosts_and_origins(self):
        for host in ("abx.example", "ABX.example", "abx.example:99",
                     "localhost"):
            self.ok(self.svc.get("/capabilities", headers={"Host": host}))
        self.refused(self.svc.get("/capabilities",
                                  headers={"Host": "x.abx.example"}), 403,
                     "request.host_denied")
        self.ok(self.svc.get("/capabilities",
                             headers={"Origin": "https://tools.example"}))
        for o in ("http://tools.example", "https://tools.example:444",
                  "https://tools.example.evil", "https://x.tools.example"):
            self.refused(self.svc.get("/capabilities",
                                      headers={"Origin": o}), 403,
                         "request.origin_denied")

    def test_anonymous_health(self):
        self.refused(self.svc.get("/health", token=None), 401,
                     "auth.required")
        self.ok(self.svc.get("/health"))

    def test_sizes(self):
        self.refused(self.svc.rpc("files.stat", {"path": "x" * 3000}), 413,
                     "limit.request_too_large")
        r = self.svc.get("/capabilities", headers={"X": "y" * 2500})
        self.refused(r, 431, "request.headers_too_large")


class SmallStack(Http):
    @classmethod
    def conf(cls, w):
        return None

    def test_T046_deep_json_on_a_small_stack(self):
        svc = self.start({"rules": rules(self.world)}, world=self.world,
                         before=("sh", "-c", 'ulimit -s 256; exec "$@"',
                                 "sh"))
        for body in (b"[" * 100_000, b'{"a":' * 100_000,
                     b'{"a":' * 31 + b"1" + b"}" * 31):
            r = self.raw(self.post(body))
            self.among(r.code, ("request.bad_json", "args.unknown",
                                "args.missing"))
        self.health(svc)


class UnixSocket(Http):
    @classmethod
    def conf(cls, w):
        return None

    def test_unix_socket(self):
        w = self.world
        os.mkdir(w / "run")
        if ROOT:
            os.chmod(w / "run", 0o755)
        svc = self.start({"rules": rules(w)}, world=w, unix=w / "run/s")
        self.eq(os.stat(w / "run/s").st_mode & 0o777, 0o600)
        self.eq(self.ok(svc.download("a.txt")).body, b"hello\n")
        self.refused(svc.get("/capabilities", token=None), 401,
                     "auth.required")


class Latency(Http):
    @hardened_only
    def test_no_delayed_answers(self):
        """Heads and bodies leave in one segment or without Nagle: 44 ms a
        request otherwise."""
        with open(self.world.w + "/mid", "wb") as f:
            f.write(b"m" * 200_000)
        with Conn(self.svc) as c:
            for target, n in (("a.txt", 6), ("mid", 200_000)):
                ask = self.svc.build(
                    "GET", f"/files/download-stream?path={target}")
                began = time.monotonic()
                for _ in range(50):
                    c.send(ask)
                    self.eq(len(self.ok(c.reply()).body), n)
                self.under((time.monotonic() - began) / 50, 0.02,
                           f"seconds a download of {n} bytes")
