# SPDX-License-Identifier: ISC
"""The unit files under a real systemd: a small Debian tree is booted by
systemd-nspawn with what "make install" installs, and a script inside starts,
uses, restarts, kills and stops the service.

Needs root.  Installs mmdebstrap and systemd-container when they are missing,
and keeps the tree as a tarball in $ABX_CACHE (default /var/cache/abx-regress).
"""
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from abxtest import BUILD, Case, apt, needs_root, timeout

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
CACHE = os.environ.get("ABX_CACHE") or "/var/cache/abx-regress"
PACKAGES = ["systemd", "systemd-sysv", "dbus", "bubblewrap", "curl",
            "procps"]
TOKEN = "unit-token-0123456789abcdef"

CONFIG = {
    "version": 1,
    "listen": [{"unix": "/run/agent-sandbox.sock", "mode": "0660",
                "group": "agent-sandbox"}],
    "auth": {"tokens": [{"id": "unit", "roles": ["admin"],
                         "token_env": "UNIT_TOKEN"}]},
    "presets": [{"name": "workspace-exec", "root": "/srv/work",
                 "commands": ["sh -c ...", "sleep 60"]}],
    "allow_lint_errors": True,
    "audit": {"sink": "file:/var/log/agent-sandbox/audit.jsonl"}}

# Runs inside.  One line "NAME VALUE" a fact in /result/facts, answers of the
# service in files beside it.
SCRIPT = r"""#!/bin/sh
cd /result
exec >log 2>&1
set -x
fact() { echo "$@" >>facts; }
ask() { # NAME CURL-ARGUMENTS
	out=$1; shift
	curl -s -m 20 --unix-socket /run/agent-sandbox.sock \
	    -H "Authorization: Bearer %(token)s" "$@" >"$out"
}
run() { # NAME ARGV-AS-JSON
	ask "$1" -H 'Content-Type: application/json' \
	    -d "{\"argv\": $2}" http://localhost/commands/run
}
U=agent-sandbox.service
systemctl start agent-sandbox.socket; fact socket $?
systemctl start $U; fact start $?
fact active "$(systemctl is-active $U)"
ask health http://localhost/health
run run '["sh", "-c", "id -un; cat /proc/self/cgroup; echo kept >made"]'
ask put -X PUT --data-binary @/etc/os-release \
    -H 'Content-Type: application/octet-stream' \
    'http://localhost/files/upload-stream?path=up'
ask get 'http://localhost/files/download-stream?path=up'
cmp get /etc/os-release; fact same $?
ask refused 'http://localhost/files/download-stream?path=/etc/passwd'
main=$(systemctl show -P MainPID $U)
for p in $(pgrep -P $main); do
	fact child "$(cat /proc/$p/comm)" $(awk '/^(Uid|NoNewPrivs|Seccomp):/ \
	    { print $2 }' /proc/$p/status)
done
systemctl restart $U; fact restart $?
run again '["true"]'
kill -9 "$(systemctl show -P MainPID $U)"
sleep 3
fact after_kill "$(systemctl is-active $U)"
run afterkill '["true"]'
fact restarts "$(systemctl show -P NRestarts $U)"
run held '["sleep", "60"]' &
i=0
until pgrep -x sleep -u abx || [ $i -gt 50 ]; do sleep 0.1; i=$((i+1)); done
before=$(date +%%s)
systemctl stop agent-sandbox.socket $U; fact stop $?
fact stop_seconds $(($(date +%%s) - before))
fact stopped "$(systemctl is-active $U)"
fact result "$(systemctl show -P Result $U)"
fact left "$(pgrep -c 'abx|bwrap' || true)"
fact left_sleep "$(pgrep -x -c sleep -u abx || true)"
ls -ld /var/lib/agent-sandbox /var/log/agent-sandbox >dirs
cp /var/log/agent-sandbox/audit.jsonl audit
journalctl -q --no-pager -u $U >journal
fact done 1
systemctl poweroff
"""

UNIT = """[Unit]
After=dbus.service multi-user.target
[Service]
Type=oneshot
ExecStart=/result/script
StandardOutput=null
TimeoutStartSec=80
[Install]
WantedBy=multi-user.target
"""

# Runs outside, in a mount namespace of its own: a cgroup to boot in.
BOOT = r"""
umount -R /sys/fs/cgroup 2>/dev/null
mount -t cgroup2 none /sys/fs/cgroup || exit 90
group=/sys/fs/cgroup/abx-regress-$$
mkdir "$group" && echo $$ >"$group/cgroup.procs" || exit 91
mkdir -p /run/systemd && mount -t tmpfs none /run/systemd
SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 timeout -k 5 100 systemd-nspawn -q \
    -D "$1" --register=no --keep-unit --boot --private-network \
    --console=pipe --system-call-filter="@sandbox landlock_create_ruleset \
    landlock_add_rule landlock_restrict_self"
rc=$?
echo $$ >/sys/fs/cgroup/cgroup.procs
find "$group" -depth -type d -exec rmdir {} +
exit $rc
"""


def libraries():
    """The packages of the shared libraries that the programs need."""
    found = set()
    for prog in glob.glob(f"{BUILD}/abx*"):
        p = subprocess.run(["ldd", prog], capture_output=True, text=True)
        for path in re.findall(r"=> (/\S+)", p.stdout):
            for name in (path, os.path.realpath(path),
                         path.removeprefix("/usr")):
                q = subprocess.run(["dpkg-query", "-S", name],
                                   capture_output=True, text=True)
                if q.returncode == 0:
                    found.add(q.stdout.split(":")[0])
                    break
    return sorted(found - {"libc6"})


def suite():
    with open("/etc/os-release") as f:
        m = re.search(r"^VERSION_CODENAME=(\w+)", f.read(), re.M)
    return m[1] if m else None


class Systemd(Case):
    @classmethod
    def setUpClass(cls):
        pass

    def tarball(self):
        """The cached tree; made when there is none for these packages."""
        if not shutil.which("apt-get") or not suite():
            self.skipTest("needs Debian or its kin")
        missing = [p for t, p in (("mmdebstrap", "mmdebstrap"),
                                  ("systemd-nspawn", "systemd-container"))
                   if not shutil.which(t)]
        if missing and (why := apt(*missing)):
            self.skipTest(f"cannot install {' '.join(missing)}: {why}")
        include = ",".join(PACKAGES + libraries())
        key = hashlib.sha256(f"{suite()} {include}".encode()).hexdigest()
        path = f"{CACHE}/root-{key[:16]}.tar"
        if not os.path.exists(path):
            os.makedirs(CACHE, exist_ok=True)
            new = f"{path}.{os.getpid()}.tar"
            p = subprocess.run(
                ["mmdebstrap", "-q", "--variant=minbase",
                 f"--include={include}", suite(), new],
                stdin=subprocess.DEVNULL, capture_output=True, text=True)
            if p.returncode != 0:
                if os.path.exists(new):
                    os.unlink(new)
                self.skipTest("mmdebstrap cannot make a tree: "
                              + p.stderr.strip()[-300:])
            os.rename(new, path)
        return path

    def tree(self):
        """A fresh tree with the service installed."""
        tar = self.tarball()
        root = tempfile.mkdtemp(prefix="abx-nspawn-", dir="/var/tmp")
        self.addCleanup(subprocess.run, ["rm", "-rf", "--one-file-system",
                                         root])
        os.chmod(root, 0o755)
        subprocess.run(["tar", "-C", root, "-xf", tar, "--exclude=./dev/*"],
                       check=True)
        tool = (os.environ.get("MAKE") or "make").split()
        p = subprocess.run([*tool, "install", f"DESTDIR={root}",
                            "PREFIX=/usr"], cwd=TOP, capture_output=True,
                           text=True)
        self.eq(p.returncode, 0, "make install: " + p.stderr[-500:])
        subprocess.run(["chroot", root, "systemd-sysusers"], check=True,
                       capture_output=True)
        self.put(root, "etc/machine-id", os.urandom(16).hex() + "\n")
        self.put(root, "etc/fstab", "")
        self.put(root, "etc/hostname", "abx-regress\n")
        self.put(root, "etc/agent-sandbox/server.json",
                 json.dumps(CONFIG, indent=1))
        self.put(root, "etc/agent-sandbox/environment",
                 f"UNIT_TOKEN={TOKEN}\n", 0o600)
        self.put(root, "result/script", SCRIPT % {"token": TOKEN}, 0o755)
        self.put(root, "etc/systemd/system/abx-regress.service", UNIT)
        os.makedirs(f"{root}/srv/work")
        subprocess.run(["chroot", root, "chown", "abx:abx", "/srv/work"],
                       check=True)
        wants = f"{root}/etc/systemd/system/multi-user.target.wants"
        os.makedirs(wants, exist_ok=True)
        os.symlink("/etc/systemd/system/abx-regress.service",
                   f"{wants}/abx-regress.service")
        for unit in ("serial-getty@ttyS0.service", "getty.target",
                     "console-getty.service", "systemd-resolved.service",
                     "apt-daily.timer", "apt-daily-upgrade.timer",
                     "e2scrub_all.timer", "fstrim.timer"):
            link = f"{root}/etc/systemd/system/{unit}"
            if not os.path.lexists(link):
                os.symlink("/dev/null", link)
        return root

    @staticmethod
    def put(root, name, text, mode=0o644):
        path = f"{root}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)

    @needs_root
    @timeout(400)
    def test_the_unit(self):
        root = self.tree()
        p = subprocess.run(
            ["unshare", "-m", "--propagation", "private", "sh", "-c", BOOT,
             "sh", root], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace")
        if p.returncode in (90, 91):
            self.skipTest("no cgroup v2 hierarchy can be had: "
                          + p.stderr.strip()[-200:])

        def read(name):
            try:
                with open(f"{root}/result/{name}", errors="replace") as f:
                    return f.read()
            except OSError:
                return ""
        facts = dict(line.split(" ", 1) for line in
                     read("facts").splitlines()
                     if " " in line and not line.startswith("child "))
        kids = [line.split()[1:] for line in read("facts").splitlines()
                if line.startswith("child ")]
        context = "\n" + read("journal")[-2000:] + read("log")[-600:]
        if not facts:
            context += p.stdout[-2000:] + p.stderr[-1000:]
        self.eq(facts.get("done"), "1", f"the script ran{context}")
        for name, want in (("socket", "0"), ("start", "0"),
                           ("active", "active"), ("same", "0"),
                           ("restart", "0"), ("after_kill", "active"),
                           ("restarts", "1"), ("stop", "0"),
                           ("stopped", "inactive"), ("result", "success"),
                           ("left", "0"), ("left_sleep", "0")):
            self.eq(facts.get(name), want, f"{name}{context}")
        self.under(int(facts["stop_seconds"]), 10, "seconds to stop")
        self.eq(set(json.loads(read("health"))), {"status", "version"})
        r = json.loads(read("run"))
        self.eq((r.get("exit_code"), r.get("stdout", "").split("\n")[0]),
                (0, "abx"), f"{r}{context}")
        with open(f"{root}/srv/work/made") as f:
            self.eq(f.read(), "kept\n")
        for name in ("again", "afterkill"):
            self.eq(json.loads(read(name)).get("exit_code"), 0,
                    f"{name}: {read(name)}{context}")
        self.eq(json.loads(read("refused"))["code"],
                "policy.path_not_allowed")
        self.eq({k[0] for k in kids} >= {
            "abx-listener", "abx-monitor", "abx-pathd", "abx-execd"}, True,
            kids)
        for k in kids:
            self.eq((k[1] != "0", k[2:]), (True, ["1", "2"]), k)
        audit = [json.loads(line) for line in read("audit").splitlines()]
        self.eq({"commands.run", "files.upload", "files.download"}
                <= {a["op"] for a in audit}, True)
        self.eq(TOKEN in read("journal") + read("audit"), False,
                "the token in a log")
        self.eq(read("dirs").split()[0], "drwx------", read("dirs"))
