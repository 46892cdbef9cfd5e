#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Measure abx against its peers, in one run, and print ratios.

Only ratios mean anything: the machine is noisy.  Every row alternates between
abx and its peer and takes the medians.  Peers: nginx (static files and dav
PUT), sandbox-agent (an npm package, installed into a cache outside the tree),
bubblewrap, posix_spawn.  A peer that cannot be had leaves its column empty.

usage: bench.py [--json] [--rounds N] [row ...]
"""
import argparse
import http.client
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("ABX_BUILD", os.path.join(TOP, "build"))
CACHE = os.environ.get(
    "ABX_CACHE", "/var/cache/abx-regress" if os.geteuid() == 0
    else os.path.expanduser("~/.cache/abx-regress"))
TOKEN = "bench-token-0123456789abcdef"
BEARER = "Authorization: Bearer " + TOKEN
GIB = 1 << 30


def free_port():
    for port in range(21000, 31000):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise SystemExit("no free port")


def wait_port(port, seconds=10):
    end = time.time() + seconds
    while time.time() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"nothing listens on port {port}")


class Bench:
    def __init__(self):
        base = "/var/lib" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_dir
        self.dir = tempfile.mkdtemp(prefix="abx-bench-", dir=base)
        os.chmod(self.dir, 0o755)
        self.root = os.path.join(self.dir, "root")
        os.mkdir(self.root)
        self.procs = []
        self.port = free_port()
        with open(os.path.join(self.root, "k1"), "wb") as f:
            f.write(os.urandom(1024))
        with open(os.path.join(self.root, "big"), "wb") as f:
            for _ in range(64):
                f.write(os.urandom(GIB // 64))
        if os.geteuid() == 0:
            user = pwd.getpwnam("abx")
            for path in (self.root, *(os.path.join(self.root, n) for n in ("k1", "big"))):
                os.chown(path, user.pw_uid, user.pw_gid)

    def start(self, argv, port, env=None):
        log = open(os.path.join(self.dir, os.path.basename(argv[0]) + ".log"), "wb")
        begin = time.monotonic()
        proc = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.procs.append(proc)
        wait_port(port)
        return proc, time.monotonic() - begin

    def abx(self):
        conf = {"version": 1, "listen": [{"address": "127.0.0.1", "port": self.port}],
                "state_dir": os.path.join(self.dir, "state"),
                "sandbox": {"workspace_root": os.path.join(self.dir, "work")},
                "http": {"max_connections": 128, "max_pre_auth": 128},
                "rules": [
                    {"allow": ["files.download", "files.upload", "files.list",
                               "files.search"], "paths": self.root,
                     "limits": {"concurrency": 128}},
                    {"allow": "commands.run", "commands": {
                        "allow": ["true", "cat text"], "cwd": self.root, "timeout": "600s",
                        "max_output_bytes": 2 * GIB},
                     "limits": {"concurrency": 128}},
                    {"allow": "commands.run", "commands": {
                        "allow": "echo", "cwd": {"roots": self.root,
                                                 "deny": ["**/.env"]}}}],
                "auth": {"tokens": [{"id": "bench", "roles": [], "token_env": "ABX_BENCH"}]},
                "audit": {"sink": "file:" + os.path.join(self.dir, "log", "audit.jsonl")}}
        os.mkdir(os.path.join(self.dir, "log"))
        os.mkdir(os.path.join(self.dir, "conf"))
        if os.geteuid() == 0:
            user = pwd.getpwnam("_abxm")
            os.chown(os.path.join(self.dir, "log"), user.pw_uid, user.pw_gid)
        path = os.path.join(self.dir, "conf", "server.json")
        with open(path, "w") as f:
            json.dump(conf, f)
        proc, _ = self.start([os.path.join(BUILD, "abxd"), "-d", "-f", path], self.port,
                             {"ABX_BENCH": TOKEN, "PATH": os.environ["PATH"]})
        self.conf = path
        end = time.time() + 10
        while time.time() < end:
            try:
                if self.get("/health")[0] == 200:
                    return proc
            except OSError:
                pass
            time.sleep(0.02)
        raise SystemExit("abxd does not answer")

    def post(self, target, body):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        conn.request("POST", target, json.dumps(body), {
            "Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
        res = conn.getresponse()
        text = res.read()
        conn.close()
        return res.status, text

    def get(self, target):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        conn.request("GET", target, headers={"Authorization": "Bearer " + TOKEN})
        res = conn.getresponse()
        body = res.read()
        conn.close()
        return res.status, body

    def many(self):
        """100 000 files, in directories of as many as one listing answers."""
        tops = [os.path.join(self.root, f"many{d}") for d in range(10)]
        for top in tops:
            if not os.path.isdir(top):
                os.mkdir(top)
                for i in range(10_000):
                    os.close(os.open(f"{top}/file-{i:06}",
                                     os.O_CREAT | os.O_WRONLY, 0o644))
                self.give(os.path.basename(top))
        return tops

    def source(self):
        """A tree of text: 3000 files in 100 directories, 60 MB, as programs
        are made of; one line in a thousand is looked for."""
        top = os.path.join(self.root, "source")
        if not os.path.isdir(top):
            rnd = random.Random(1)
            words = ["".join(rnd.choices("abcdefghijklmnop_", k=rnd.randint(2, 12)))
                     for _ in range(2000)]
            for i in range(3000):
                at = f"{top}/d{i % 100}/e"
                os.makedirs(at, exist_ok=True)
                with open(f"{at}/{i}.c", "w") as f:
                    for n in range(500):
                        f.write(" ".join(rnd.choices(words, k=5)))
                        f.write(" needle\n" if rnd.random() < 0.001 else "\n")
            self.give("source")
        return top

    def give(self, name):
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", "abx:", os.path.join(self.root, name)],
                           check=True)

    def nginx(self):
        exe = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if not exe:
            return None
        port = free_port()
        put = os.path.join(self.dir, "dav")
        os.mkdir(put)
        os.chmod(put, 0o777)
        conf = os.path.join(self.dir, "nginx.conf")
        with open(conf, "w") as f:
            f.write(f"""worker_processes 2; daemon off;
pid {self.dir}/nginx.pid; error_log /dev/null;
events {{ worker_connections 512; }}
http {{ access_log {self.dir}/access.log; sendfile on;
keepalive_requests 100000000; client_max_body_size 0;
client_body_temp_path {self.dir}/body; proxy_temp_path {self.dir}/p; fastcgi_temp_path {self.dir}/f;
uwsgi_temp_path {self.dir}/u; scgi_temp_path {self.dir}/s;
server {{ listen 127.0.0.1:{port}; root {self.root};
location /dav/ {{ alias {put}/; dav_methods PUT; }} }} }}""")
        self.start([exe, "-c", conf], port)
        return port

    def agent(self):
        """sandbox-agent from npm, in the cache."""
        exe = os.path.join(CACHE, "node_modules/@sandbox-agent/cli-linux-x64/bin/sandbox-agent")
        if not os.path.exists(exe) and shutil.which("npm"):
            os.makedirs(CACHE, exist_ok=True)
            subprocess.run(
                ["npm", "install", "--ignore-scripts", "--no-audit",
                 "--no-fund", "--prefix", CACHE,
                 "@sandbox-agent/cli-linux-x64@0.4.2"], timeout=300,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not os.path.exists(exe):
            return None
        os.chmod(exe, 0o755)
        port = free_port()
        self.start([exe, "server", "--no-token", "--no-telemetry", "--host",
                    "127.0.0.1", "--port", str(port)], port)
        return port

    def stop(self):
        for proc in reversed(self.procs):
            proc.send_signal(signal.SIGTERM)
        for proc in self.procs:
            try:
                proc.wait(10)
            except subprocess.TimeoutExpired:
                proc.kill()
                proc.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def wrk(url, connections, seconds=3, header=None):
    """(requests a second, median latency in us)"""
    argv = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--latency"]
    if header:
        argv += ["-H", header]
    out = subprocess.run(argv + [url], capture_output=True, text=True, timeout=60).stdout
    if "Non-2xx" in out:
        raise SystemExit(f"{url} does not answer well:\n{out}")
    p50 = re.search(r"50%\s+([\d.]+)(us|ms|s)", out)
    scale = {"us": 1, "ms": 1000, "s": 1000000}[p50[2]]
    return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), float(p50[1]) * scale


def alternate(rounds, mine, theirs):
    """Medians of both, taken turn and turn about."""
    a, b = [], []
    for _ in range(rounds):
        a.append(mine())
        b.append(theirs())
    return statistics.median(a), statistics.median(b)


def timed(argv, **kw):
    begin = time.monotonic()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, **kw)
    return time.monotonic() - begin


def curl_get(url, header=()):
    urls = [url] if isinstance(url, str) else url
    out = ["-o", "/dev/null"] * len(urls)
    return timed(["curl", "-sS", "--fail", *header, *out, *urls])


def curl_put(url, path, header=()):
    return timed(["curl", "-sS", "--fail", *header, "-T", path, url])


def private(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            total += sum(int(line.split()[1]) for line in f if line.startswith("Private_"))
    return total


def family(pid):
    found, todo = [pid], [pid]
    while todo:
        top = todo.pop()
        for p in os.listdir("/proc"):
            if p.isdigit():
                try:
                    with open(f"/proc/{p}/stat") as f:
                        if int(f.read().rpartition(")")[2].split()[1]) == top:
                            found.append(int(p))
                            todo.append(int(p))
                except OSError:
                    pass
    return found


def run_true(bench, argv=("true",), **more):
    """One commands.run, of /bin/true, over a kept connection, seconds.  By hand:
    a library's client would take longer than some of what is measured."""
    conn = getattr(bench, "conn", None)
    if conn is None:
        conn = bench.conn = socket.create_connection(("127.0.0.1", bench.port))
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = json.dumps({"argv": argv, **more})
    ask = (f"POST /commands/run HTTP/1.1\r\nHost: 127.0.0.1\r\n{BEARER}\r\n"
           "Content-Type: application/json\r\n"
           f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
    begin = time.monotonic()
    conn.sendall(ask)
    got = conn.recv(65536)
    spent = time.monotonic() - begin
    head, _, data = got.partition(b"\r\n\r\n")
    # a short answer is sent as one piece
    if not head.startswith(b"HTTP/1.1 200 ") or json.loads(data)["exit_code"] != 0:
        raise SystemExit(f"commands.run: {got[:300]}")
    return spent


def stream_text(bench):
    """1 GiB of stdout as events, read as it comes, seconds."""
    return timed(["curl", "-sSfN", "-o", os.devnull, "-H", BEARER, "-H",
                  "Accept: text/event-stream", "-H", "Content-Type: application/json", "-d",
                  json.dumps({"argv": ["cat", "text"]}),
                  f"http://127.0.0.1:{bench.port}/commands/run"])


def bare_cat(bench):
    path = os.path.join(bench.root, "text")
    return timed(["sh", "-c", f"cat {path} | cat > /dev/null"])


def spawned(argv):
    """Seconds of a program that is started with posix_spawn and waited for."""
    begin = time.monotonic()
    pid = os.posix_spawn(argv[0], argv, {})
    if os.waitpid(pid, 0)[1] != 0:
        raise SystemExit(f"{argv[0]} failed")
    return time.monotonic() - begin


def bare_bwrap():
    return spawned(["/usr/bin/bwrap", "--ro-bind", "/", "/", "--unshare-all",
                    "/bin/true"])


def bare_spawn():
    return spawned(["/bin/true"])


def start_ready(bench):
    """From exec of abxd to its ready line, with sd_notify; seconds."""
    path = os.path.join(bench.dir, "notify")
    conf = json.load(open(bench.conf))
    conf["listen"][0]["port"] = free_port()
    conf["state_dir"] += "2"
    conf["audit"]["sink"] += "2"
    file = bench.conf + "2.json"
    with open(file, "w") as f:
        json.dump(conf, f)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        if os.path.exists(path):
            os.unlink(path)
        s.bind(path)
        s.settimeout(10)
        begin = time.monotonic()
        proc = subprocess.Popen(
            [os.path.join(BUILD, "abxd"), "-d", "-f", file],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"ABX_BENCH": TOKEN, "NOTIFY_SOCKET": path})
        while b"READY=1" not in s.recv(4096):
            pass
        spent = time.monotonic() - begin
        proc.terminate()
        proc.wait(10)
        return spent


class Growth(threading.Thread):
    """Looks at the memory of all processes of a service all the time."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.first, self.most = pid, {}, 0
        self.ended = threading.Event()
        self.look()
        self.start()

    def look(self):
        for pid in family(self.pid):
            try:
                with open(f"/proc/{pid}/statm") as f:
                    size, shared = map(int, f.read().split()[1:3])
            except OSError:
                continue
            kib = (size - shared) * 4
            # one that comes later is measured against what its kind begins with
            self.most = max(self.most, kib - self.first.setdefault(pid, kib))

    def run(self):
        while not self.ended.wait(0.02):
            self.look()

    def stop(self):
        self.ended.set()
        self.join()
        return self.most


def ratio(name, target, better, pair):
    """How many times as good as the peer: more is better in every row."""
    mine, theirs = pair
    value = mine / theirs if better == "more" else theirs / mine
    return {"row": name, "target": target, "better": better, "abx": mine,
            "peer": theirs, "ratio": round(value, 2)}


def single(name, target, value):
    return {"row": name, "target": target, "better": "less", "abx": value,
            "peer": None, "ratio": None}


class Rows:
    """One method a row; which exist depends on the peers that do."""

    def __init__(self, bench, abxd, nginx, agent, rounds):
        self.bench, self.abxd, self.rounds = bench, abxd, rounds
        self.base = f"http://127.0.0.1:{bench.port}/files/"
        self.mine = self.base + "download-stream?path="
        self.nginx = f"http://127.0.0.1:{nginx}/" if nginx else None
        self.agent = (f"http://127.0.0.1:{agent}/v1/fs/file?path="
                      f"{bench.root}/" if agent else None)

    def names(self):
        names = ["memory", "steady"]  # before anything grew
        if self.nginx:
            names += ["small32", "small1", "download", "upload"]
        if self.agent:
            names += ["agent32", "agent1"]
        # the listing makes a hundred thousand files, which commands are slowed by
        return names + ["true", "session", "spawn", "list", "crowd", "denied",
                        "search", "stream", "start"]

    def pair(self, mine, theirs, times=1):
        return alternate(self.rounds * times, mine, theirs)

    def wrk_pair(self, peer, connections, what):
        return self.pair(
            lambda: wrk(self.mine + "k1", connections, header=BEARER)[what],
            lambda: wrk(peer + "k1", connections)[what])

    def small32(self):
        return ratio("1 KiB, 32 connections, req/s / nginx", 0.9, "more",
                     self.wrk_pair(self.nginx, 32, 0))

    def small1(self):
        return ratio("1 KiB, one connection, p50 us / nginx", 0.62, "less",
                     self.wrk_pair(self.nginx, 1, 1))

    def agent32(self):
        return ratio("1 KiB, 32 connections, req/s / sandbox-agent", 2.0,
                     "more", self.wrk_pair(self.agent, 32, 0))

    def agent1(self):
        return ratio("1 KiB, one connection, p50 us / sandbox-agent", 1.0,
                     "less", self.wrk_pair(self.agent, 1, 1))

    def download(self):
        return ratio("1 GiB download, s / nginx sendfile", 0.95, "less",
                     self.pair(lambda: curl_get(self.mine + "big",
                                                ("-H", BEARER)),
                               lambda: curl_get(self.nginx + "big")))

    def upload(self):
        big = os.path.join(self.bench.root, "big")
        head = ("-H", BEARER, "-H", "Expect:",
                "-H", "Content-Type: application/octet-stream")
        return ratio("1 GiB upload, s / nginx dav PUT", 1.2, "less",
                     self.pair(lambda: curl_put(
                         self.base + "upload-stream?path=up", big, head),
                         lambda: curl_put(self.nginx + "dav/up", big,
                                          ("-H", "Expect:"))))

    def list(self):
        tops = self.bench.many()
        urls = [self.base + "list?path=" + os.path.basename(t) for t in tops]
        for url in urls:
            body = self.bench.get(url[url.index("/files"):])[1]
            if body.count(b'"name":') != 10_000:
                raise SystemExit(f"the listing is not whole: {body[-200:]}")
        return ratio("list 100 000 entries, s / ls -U -l", 0.33, "less",
                     self.pair(lambda: curl_get(urls, ("-H", BEARER)),
                               lambda: timed(["ls", "-U", "-l", *tops])))

    def search(self):
        top = self.bench.source()
        ask = {"root": "source", "pattern": "needle", "kind": "content",
               "max_entries": 100_000}
        there = int(subprocess.run(f"grep -rn needle {top} | wc -l", shell=True,
                                   capture_output=True, check=True).stdout)
        found = len(json.loads(self.bench.post("/files/search", ask)[1])["matches"])
        if found != there:
            raise SystemExit(f"the search finds {found} of {there}")
        argv = ("-H", BEARER, "-H", "Content-Type: application/json",
                "-d", json.dumps(ask))
        return ratio("content search, 60 MB, s / grep -rn", 0.5, "less",
                     self.pair(lambda: curl_get(self.base + "search", argv),
                               lambda: timed(["grep", "-rn", "needle", top])))

    def steady(self):
        """How much more memory any process takes than when it was idle."""
        big = os.path.join(self.bench.root, "big")
        self.bench.many()
        self.bench.source()
        head = ("-H", BEARER, "-H", "Expect:",
                "-H", "Content-Type: application/octet-stream")
        grown = Growth(self.abxd.pid)
        try:
            curl_get(self.mine + "big", ("-H", BEARER))
            curl_put(self.base + "upload-stream?path=up", big, head)
            for d in range(10):
                self.bench.get(f"/files/list?path=many{d}")
            self.bench.post("/files/search", {
                "root": "source", "pattern": "needle", "kind": "content"})
        finally:
            most = grown.stop()
        return single("memory of a process beyond idle, most, KiB", 8192, most)

    def true(self):
        return ratio("commands.run /bin/true, s / bare bwrap", 0.67, "less",
                     self.pair(lambda: run_true(self.bench), bare_bwrap, 30))

    def crowd(self):
        self.bench.many()
        self.bench.conn = None  # it was idle for long
        return ratio("the same among 100 000 files, s / bare bwrap", None, "less",
                     self.pair(lambda: run_true(self.bench), bare_bwrap, 10))

    def denied(self):
        self.bench.many()
        with open(os.path.join(self.bench.root, ".env"), "w"):
            pass
        self.bench.conn = None
        return ratio("the same with **/.env denied, s / find -name .env", None,
                     "less",
                     self.pair(lambda: run_true(self.bench, ("echo",)),
                               lambda: timed(["find", self.bench.root,
                                              "-name", ".env"]), 10))

    def spawn(self):
        return ratio("commands.run /bin/true, s / posix_spawn", None, "less",
                     self.pair(lambda: run_true(self.bench), bare_spawn, 10))

    def session(self):
        run_true(self.bench, session="bench")
        return ratio("the same in a session, s / posix_spawn", 0.77, "less",
                     self.pair(lambda: run_true(self.bench, session="bench"),
                               bare_spawn, 30))

    def stream(self):
        path = os.path.join(self.bench.root, "text")
        line = b"The quick brown fox jumps over the lazy dog, and does it 1024 times." + b"\n"
        with open(path, "wb") as f:
            for _ in range(64):
                f.write((line * (GIB // 64 // len(line) + 1))[:GIB // 64])
        os.chmod(path, 0o644)
        row = ratio("1 GiB of stdout as events, s / pipe to cat", 0.5, "less",
                    self.pair(lambda: stream_text(self.bench), lambda: bare_cat(self.bench)))
        for pid in family(self.abxd.pid):
            with open(f"/proc/{pid}/status") as f:
                text = f.read()
            most = int(re.search(r"VmHWM:\s+(\d+)", text).group(1))
            if most > 32 * 1024:
                raise SystemExit(f"streaming: {text.split()[1]} had {most} KiB")
        return row

    def start(self):
        times = [start_ready(self.bench) for _ in range(self.rounds)]
        return single("start to ready, ms", 20,
                      round(1000 * statistics.median(times), 1))

    def memory(self):
        return single("idle memory, all processes, private KiB", 4096,
                      private(family(self.abxd.pid)))


def show(row):
    def number(v):
        return "-" if v is None else f"{v:.6g}"
    target, met = row["target"], ""
    if target is not None:
        held = (row["ratio"] >= target if row["ratio"] is not None
                else row["abx"] <= target)
        met = "met" if held else "MISSED"
    print(f"{row['row']:<52}{number(row['abx']):>12}{number(row['peer']):>12}"
          f"{number(row['ratio']):>8}{number(target):>8} {met}", flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("rows", nargs="*")
    opt = ap.parse_args()
    bench = Bench()
    results = []
    try:
        abxd = bench.abx()
        nginx, agent = bench.nginx(), bench.agent()
        rows = Rows(bench, abxd, nginx, agent, opt.rounds)
        if not opt.json:
            print(f"{'row (ratio: times as good as the peer)':<52}"
                  f"{'abx':>12}{'peer':>12}{'ratio':>8}{'target':>8}")
        for name in rows.names():
            if not opt.rows or name in opt.rows:
                results.append(getattr(rows, name)())
                if not opt.json:
                    show(results[-1])
    finally:
        bench.stop()
    if opt.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    sys.exit(main())
