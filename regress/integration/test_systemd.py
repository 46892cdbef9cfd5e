# SPDX-License-Identifier: ISC
"""The unit files under a real systemd: a small Debian tree is booted by
systemd-nspawn with what "make install" installs, and a script inside starts,
uses, restarts, kills and stops the service.

Needs root.  Installs mmdebstrap and systemd-container when they are missing.
"""
import json
import os
import subprocess
import tempfile

import debtree
from abxtest import Case, needs_root, timeout
from debtree import put

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

# Runs inside.
SCRIPT = "#!/bin/sh\ncd /result\n" + debtree.SHELL + r"""
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
# the layout of the delegated group; nspawn's has no controllers
cg=/sys/fs/cgroup/$(systemctl show -P ControlGroup $U)
fact top "$(cat $cg/cgroup.procs | wc -l) $(stat -c %%U $cg)"
fact service "$(cat $(sed 's,$,/comm,;s,^,/proc/,' $cg/service/cgroup.procs) |
    sort -u | tr '\n' ' ')"
fact self "$(cat $(sed 's,$,/comm,;s,^,/proc/,' $cg/exec/self/cgroup.procs) |
    tr '\n' ' ')"
fact exec "$(stat -c %%U $cg/exec $cg/exec/cgroup.procs $cg/exec/self |
    tr '\n' ' ')"
run grouped '["sh", "-c", "exec sleep 4"]' &
i=0
until pgrep -x sleep -u abx || [ $i -gt 50 ]; do sleep 0.1; i=$((i+1)); done
fact run_procs "$(cat $(sed 's,$,/comm,;s,^,/proc/,' \
    $cg/exec/[0-9]*-*/cgroup.procs) | sort | tr '\n' ' ')"
fact run_limits "$(ls $cg/exec/[0-9]*-*/ | grep -cE '^(memory|pids).max')"
wait
fact groups $(settled)
systemctl restart $U; fact restart $?
run again '["true"]'
kill_main $U
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


class Systemd(Case):
    @classmethod
    def setUpClass(cls):
        pass

    def tree(self):
        """A fresh tree with the service installed."""
        debtree.need({"systemd-nspawn": "systemd-container"})
        debtree.tarball()
        root = tempfile.mkdtemp(prefix="abx-nspawn-", dir="/var/tmp")
        self.addCleanup(subprocess.run, ["rm", "-rf", "--one-file-system",
                                         root])
        debtree.unpack(root)
        self.eq(debtree.install(root), None, "make install")
        subprocess.run(["chroot", root, "systemd-sysusers"], check=True,
                       capture_output=True)
        put(root, "etc/agent-sandbox/server.json",
            json.dumps(CONFIG, indent=1))
        put(root, "etc/agent-sandbox/environment", f"UNIT_TOKEN={TOKEN}\n",
            0o600)
        put(root, "result/script", SCRIPT % {"token": TOKEN, "patience": 20}, 0o755)
        os.makedirs(f"{root}/srv/work")
        subprocess.run(["chroot", root, "chown", "abx:abx", "/srv/work"],
                       check=True)
        debtree.wanted(root, UNIT)
        return root

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
        for name, want in (
                ("top", "0 root"),
                ("service", "abx-listener abx-monitor abx-pathd abxd"),
                ("self", "abx-execd abx-mover"), ("exec", "abx abx root"),
                ("run_procs", "abx-launch bwrap sleep"),
                ("run_limits", "0"), ("groups", "0")):
            self.eq(facts.get(name, "").strip(), want, f"{name}{context}")
        grouped = json.loads(read("grouped"))
        self.eq((grouped["exit_code"], grouped["usage"]["memory_enforced"],
                 "cgroup" in grouped["sandbox"]["layers"]),
                (0, "rlimit", False), grouped)
        self.eq(set(json.loads(read("health"))), {"status", "version"})
        r = json.loads(read("run"))
        self.eq((r.get("exit_code"), r.get("stdout", "").split("\n")[0]),
                (0, "abx"), f"{r}{context}")
        with open(os.path.join(root, "srv", "work", "made")) as f:
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
