# SPDX-License-Identifier: ISC
"""Control groups for real: User-Mode Linux, whose kernel has all controllers
of version 2, boots a small Debian tree with the unit, and a script inside
runs commands that take more than they may (eat.c).

Needs root and a C compiler.  Installs mmdebstrap, user-mode-linux and
e2fsprogs when they are missing; the image is kept in $ABX_CACHE.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

import debtree
from abxtest import BUILD, Case, needs_root, timeout
from debtree import put

TOKEN = "uml-token-0123456789abcdef"
MIB = 1 << 20
MEMORY, PROCESSES, PERCENT = 64, 10, 25

CONFIG = {
    "version": 1,
    "listen": [{"unix": "/run/agent-sandbox.sock", "mode": "0660",
                "group": "agent-sandbox"}],
    "auth": {"tokens": [{"id": "unit", "roles": ["admin"],
                         "token_env": "UNIT_TOKEN"}]},
    "rules": [{"allow": ["commands.run", "core.posture"],
               "principals": "role:admin",
               "commands": {"allow": ["abx-eat ..."],
                            "cwd": {"roots": ["/srv/work"]},
                            "memory": f"{MEMORY}MiB", "timeout": "20s",
                            "processes": PROCESSES}}],
    # User-Mode Linux has no Landlock
    "sandbox": {"require": ["namespaces", "seccomp", "cgroup"]},
    "allow_lint_errors": True}


def conf(**sandbox):
    """CONFIG with other members of "sandbox"."""
    return json.dumps({**CONFIG, "sandbox": {**CONFIG["sandbox"], **sandbox}})


CONFIGS = {
    "first": conf(),
    "quota": conf(cpu_quota_percent=PERCENT, max_memory_mb=32, max_pids=6),
    "sums": conf(total_memory="88MiB", total_pids=18, total_cpu_percent=50),
    # without a group: as it was
    "rlimit": conf(require=["namespaces", "seccomp"])}

# Runs inside.  /mnt is the directory outside.
SCRIPT = "#!/bin/sh\ncd /mnt\n" + debtree.SHELL + r"""
eat() { # NAME WORDS...: a command, its answer in NAME
	name=$1; shift
	list='"abx-eat"'
	for w; do list="$list, \"$w\""; done
	ask "$name" -H 'Content-Type: application/json' -d "{\"argv\": [$list]
	    ${more-}}" http://localhost/commands/run
}
eat_again() { # the same, asked until what was killed is there again
	i=0
	while eat "$@"; grep -q '"server.unavailable"' "$1" && [ $i -lt 100 ]; do
		sleep 0.1; i=$((i+1))
	done
}
use() { # a configuration
	cp "config.$1" /etc/agent-sandbox/server.json
	systemctl restart agent-sandbox.service
	rc=$?
	fact "start_$1" $rc
	[ $rc = 0 ] && return
	# nothing behind this can be right
	journalctl -q --no-pager -u agent-sandbox.service | tail -n 100 >journal
	systemctl poweroff
	exit 1
}
wait_for() { # a command line of somebody
	i=0
	until pgrep -f "$1" >/dev/null || [ $i -gt 100 ]; do
		sleep 0.1; i=$((i+1))
	done
}
show() { # NAME GROUP FILES: what they hold
	name=$1 group=$2; shift 2
	for f; do
		fact "$name.$f" "$(tr '\n' ' ' <"$group/$f")"
	done
}
cp -a inst/. /
systemd-sysusers
cp eat /usr/bin/abx-eat
mkdir -p /srv/work && chown abx:abx /srv/work
printf 'UNIT_TOKEN=%(token)s\n' >/etc/agent-sandbox/environment
systemctl daemon-reload
U=agent-sandbox.service
systemctl stop agent-sandbox.socket
use first
cg=/sys/fs/cgroup/$(systemctl show -P ControlGroup $U)

# --- the layout, and a run in it
for p in $(pgrep -f abx); do
	fact "where_$(cat /proc/$p/comm)" "$(sed 's,.*/,,' /proc/$p/cgroup)"
done
for f in . cgroup.procs cgroup.subtree_control cgroup.threads memory.max \
    pids.max cpu.max self self/cgroup.procs; do
	fact "owner_$f" "$(stat -c %%U $cg/exec/$f)"
done
show top $cg cgroup.procs cgroup.subtree_control
show exec $cg/exec cgroup.procs cgroup.subtree_control memory.max
ask posture http://localhost/posture
eat hold hold 8 8 &
wait_for 'abx-eat hold'
sleep 1
g=$(ls -d $cg/exec/[0-9]*-*)
show run $g memory.max memory.swap.max memory.oom.group pids.max cpu.max
fact run.owner "$(stat -c %%U $g)"
for p in $(cat $g/cgroup.procs); do
	fact "in_run_$(cat /proc/$p/comm)" 1
done
wait $!
sleep 0.5
fact groups_after_run $(settled)

# --- memory
eat fits memory $((%(memory)d - 24))
eat oom memory $((%(memory)d + 32))
eat oom_shared shared $((%(memory)d + 32))
eat oom_many many 4 $((%(memory)d / 2))
eat after_oom memory 8

# --- processes, and a tree that runs away
eat forks processes 40 1
more=', "timeout": 2'
eat runaway runaway
more=
sleep 1
fact runaway_left $(pgrep -c -f abx-eat)
fact groups_after_runaway $(settled)

# --- a program of the host for cores
cat >/usr/bin/core-taker <<'END'
#!/bin/sh
cat >/srv/core."$1"
END
chmod 755 /usr/bin/core-taker
was=$(cat /proc/sys/kernel/core_pattern)
echo '|/usr/bin/core-taker %%e.%%p' >/proc/sys/kernel/core_pattern
eat crash crash 0
eat crash_none crash 1
sleep 1
fact cores_of_commands $(ls /srv | grep -c '^core')
(ulimit -c 0; abx-eat crash 1)
sleep 1
fact cores_of_others $(ls /srv | grep -c '^core')
echo "$was" >/proc/sys/kernel/core_pattern

# --- execd is killed: what it left is removed, and the next one works
eat lost hold 8 15 &
wait_for 'abx-eat hold'
fact groups_before_kill $(groups)
kill -9 $(pgrep -x abx-execd)
fact groups_after_kill $(settled)
fact left_after_kill $(pgrep -c -f 'abx-eat hold')
eat_again after_kill memory 8
fact first_group "$(ls $cg/exec | tr '\n' ' ')"

# --- the whole service is killed
eat lost2 hold 8 15 &
wait_for 'abx-eat hold'
kill_main $U
fact active_after_kill "$(systemctl is-active $U)"
fact groups_after_main_kill $(settled)
eat_again after_main_kill memory 8

# --- commands of a session, by a stand-in for the service
drive=/sys/fs/cgroup/drive
mkdir $drive $drive/self
for c in memory pids cpu; do
	echo +$c >/sys/fs/cgroup/cgroup.subtree_control
	echo +$c >$drive/cgroup.subtree_control
done
chown abx $drive $drive/cgroup.procs $drive/cgroup.subtree_control
/mnt/execd_drive -b /usr/libexec/agent-sandbox -u abx -g $drive >drive 2>&1
fact drive $?

# --- bounds of each command, and of all
use quota
eat time time 4
eat time_wide memory 48
eat time_forks processes 40 1
use sums
show sums $cg/exec memory.max pids.max cpu.max
eat sum1 hold 50 12 &
wait_for 'abx-eat hold'
sleep 2
eat sum2 hold 50 1
wait
eat sum_fork1 processes 9 9 &
wait_for 'abx-eat processes'
sleep 1
eat sum_fork2 processes 9 1
wait
eat sum_time time 3

# --- a group that nobody gave away, then none is asked for
mkdir -p /etc/systemd/system/$U.d
printf '[Service]\nDelegate=no\n' >/etc/systemd/system/$U.d/no.conf
systemctl daemon-reload
use first
eat undelegated memory 8
ask undelegated_posture http://localhost/posture
use rlimit
eat rlimit memory 8
eat rlimit_refused memory $((%(memory)d + 32))
systemctl stop $U; fact stop $?
rm /etc/systemd/system/$U.d/no.conf

# --- without a service manager: what an earlier life left goes at the start
hand=/sys/fs/cgroup/hand
mkdir $hand; abx-eat mark $hand; fact mark $?
cat /mnt/config.first >/etc/agent-sandbox/server.json
by_hand() { # GROUP
	UNIT_TOKEN=%(token)s sh -c "echo \$\$ >$hand/$1/cgroup.procs
	    exec /usr/sbin/abxd -d -f /etc/agent-sandbox/server.json" &
	abxd=$!
	i=0
	until [ -S /run/agent-sandbox.sock ] || [ $i -gt 100 ]; do
		sleep 0.1; i=$((i+1))
	done
	sleep 1
}
cg=$hand
by_hand .
eat lost3 hold 8 15 &
wait_for 'abx-eat hold'
fact hand_groups $(groups)
kill -9 $abxd; wait $abxd
i=0 # execd may have had time to remove the group, or not
while pgrep -x abx-execd >/dev/null && [ $i -lt 100 ]; do
	sleep 0.1; i=$((i+1))
done
mkdir -p $hand/exec/1-99/deep
sleep 300 & echo $! >$hand/exec/1-99/deep/cgroup.procs
sleeper=$!
rm -f /run/agent-sandbox.sock
by_hand service # as DelegateSubgroup= does, and where there are controllers
fact hand_groups_again $(settled)
kill -0 $sleeper; fact hand_sleeper $?
eat by_hand memory 8
kill $abxd; wait $abxd
fact hand_stop $?
journalctl -q --no-pager -u $U | tail -n 300 >journal
fact done 1
systemctl poweroff
"""

UNIT = """[Unit]
After=dbus.service multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mount -t hostfs none /mnt -o "$(sed \
"s/.*abxshare=//;s/ .*//" /proc/cmdline)" && exec sh /mnt/script'
StandardOutput=null
TimeoutStartSec=240
[Install]
WantedBy=multi-user.target
"""


def image():
    """The cached image of a disk: the tree and nothing of ours."""
    debtree.need({"linux.uml": "user-mode-linux", "mke2fs": "e2fsprogs"})
    tar = debtree.tarball()
    path = f"{debtree.CACHE}/uml2-{debtree.key()[1]}.img"
    if os.path.exists(path):
        return path
    root = tempfile.mkdtemp(prefix="abx-uml-", dir="/var/tmp")
    new = f"{path}.{os.getpid()}"
    try:
        debtree.unpack(root)
        debtree.wanted(root, UNIT)
        # they only make the boot longer
        for name in ("usr/share/doc", "usr/share/man", "usr/share/locale",
                     "var/cache/apt", "var/lib/apt/lists"):
            shutil.rmtree(f"{root}/{name}", ignore_errors=True)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal",
                        "-d", root, new, "600M"], check=True,
                       capture_output=True)
        os.rename(new, path)
    finally:
        subprocess.run(["rm", "-rf", "--one-file-system", root])
        if os.path.exists(new):
            os.unlink(new)
    assert tar
    return path


class Uml(Case):
    @classmethod
    def setUpClass(cls):
        pass

    def share(self):
        """The directory that the machine inside sees as /mnt."""
        cc = shutil.which("cc") or shutil.which("gcc")
        if not cc:
            self.skipTest("needs a C compiler")
        share = tempfile.mkdtemp(prefix="abx-uml-", dir="/var/tmp")
        self.addCleanup(subprocess.run, ["rm", "-rf", "--one-file-system",
                                         share])
        eat = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                           "eat.c")
        p = subprocess.run([cc, "-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE",
                            "-static", "-o", f"{share}/eat", eat],
                           capture_output=True, text=True)
        self.eq((p.returncode, p.stderr), (0, ""), "cc eat.c")
        self.eq(debtree.install(f"{share}/inst"), None, "make install")
        for name, text in CONFIGS.items():
            put(share, f"config.{name}", text)
        shutil.copy2(f"{BUILD}/regress/execd_drive", share)
        put(share, "script", SCRIPT % {
            "token": TOKEN, "memory": MEMORY, "patience": 40}, 0o755)
        return share

    def boot(self, share, end):
        """Boot, and wait for the end; what the console said."""
        env = {**os.environ, "TMPDIR": "/dev/shm"
               if os.access("/dev/shm", os.W_OK) else "/var/tmp"}
        p = subprocess.Popen(
            ["linux.uml", f"ubd0={share}/cow,{image()}", "root=/dev/ubda",
             "rw", "mem=640M", "con=null", "con0=null,fd:1", "ssl=null",
             "quiet", "init=/sbin/init", f"abxshare={share}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace", env=env,
            cwd=share, start_new_session=True)
        try:
            return p.communicate(timeout=end - time.monotonic())[0]
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            return p.communicate()[0] + "\n(killed: it took too long)"

    @needs_root
    @timeout(410)
    def test_the_groups(self):
        share = self.share()
        end = time.monotonic() + 295
        console = self.boot(share, end)
        if "Attempted to kill init" in console:
            # its processes are some of ours too, and signals of other
            # tests that reach one end the kernel inside
            for name in ("facts", "cow"):
                if os.path.exists(f"{share}/{name}"):
                    os.unlink(f"{share}/{name}")
            console = self.boot(share, end)
        self.read_facts(share, console)
        self.layout()
        self.one_run()
        self.memory()
        self.processes()
        self.cores()
        self.killed()
        self.bounds()
        self.sums()
        self.undelegated()
        self.by_hand()
        self.eq(self.facts.get("stop"), "0", self.context)

    def read_facts(self, share, console):
        def read(name):
            try:
                with open(f"{share}/{name}", errors="replace") as f:
                    return f.read()
            except OSError:
                return ""
        self.facts = {}
        for line in read("facts").splitlines():
            name, _, value = line.partition(" ")
            self.facts[name] = value.strip()
        self.context = ("\n" + read("journal")[-3000:] + read("log")[-1500:]
                        + ("" if self.facts else console[-1500:]))
        self.eq(self.facts.get("done"), "1", f"the script ran{self.context}")
        self.drive = read("drive")
        self.answers = {}
        for path in glob.glob(f"{share}/*"):
            text = read(os.path.basename(path))
            if os.path.isfile(path) and text.startswith("{"):
                self.answers[os.path.basename(path)] = json.loads(text)

    def fact(self, name, want):
        self.eq(self.facts.get(name), want, f"{name}{self.context}")

    def ran(self, name, want=0, oom=False, how="cgroup"):
        """The answer of a command that ended so; its result."""
        r = self.answers.get(name)
        if r is None:
            self.fail(f"no answer of {name}{self.context}")
        said = f"{name}: {r}{self.context}"
        self.eq(r.get("exit_code"), want, said)
        self.eq(r.get("oom_killed"), oom, said)
        self.eq(r["usage"]["memory_enforced"], how, said)
        self.eq("cgroup" in r["sandbox"]["layers"], how == "cgroup", said)
        return r

    def oom(self, name):
        r = self.ran(name, None, True)
        self.eq((r["signal"], r["lost"], r["timed_out"]),
                ("KILL", False, False), r)
        self.eq(r["stdout"], "", "it went on")
        return r

    def layout(self):
        for name in CONFIGS:
            self.fact(f"start_{name}", "0")
        for name in ("abxd", "abx-listener", "abx-monitor", "abx-pathd"):
            self.fact(f"where_{name}", "service")
        self.fact("where_abx-execd", "self")
        for name in (".", "cgroup.procs", "cgroup.subtree_control",
                     "cgroup.threads"):
            self.fact(f"owner_{name}", "abx")
        for name in ("memory.max", "pids.max", "cpu.max", "self",
                     "self/cgroup.procs"):
            self.fact(f"owner_{name}", "root")
        self.fact("top.cgroup.procs", "")
        self.fact("exec.cgroup.procs", "")
        for name in ("top", "exec"):
            self.eq({"memory", "pids", "cpu"} <= set(
                self.facts[f"{name}.cgroup.subtree_control"].split()), True,
                name)
        self.fact("exec.memory.max", "max")
        self.eq("cgroup" in self.answers["posture"]["sandbox"]["layers"],
                True)

    def one_run(self):
        self.ran("hold")
        self.fact("run.memory.max", str(MEMORY * MIB))
        self.fact("run.memory.oom.group", "1")
        self.fact("run.cpu.max", "max 100000")
        # bubblewrap and the launcher are there too
        self.fact("run.pids.max", str(PROCESSES + 2))
        self.eq(self.facts.get("run.memory.swap.max", "") in ("", "0"), True)
        self.fact("run.owner", "abx")
        for name in ("bwrap", "abx-launch", "abx-eat"):
            self.fact(f"in_run_{name}", "1")
        self.fact("groups_after_run", "0")

    def memory(self):
        """T092: over the limit is out of memory, shared memory included."""
        r = self.ran("fits")
        self.eq(r["usage"]["max_rss_kb"] > (MEMORY - 24) * 1024, True, r)
        for name in ("oom", "oom_shared", "oom_many"):
            self.oom(name)
        self.ran("after_oom")

    @staticmethod
    def forked(r):
        return int(re.match(r"forked (\d+) errno 11", r["stdout"])[1])

    def processes(self):
        # the program itself is one of them
        self.eq(self.forked(self.ran("forks")), PROCESSES - 1)
        r = self.ran("runaway", None)
        self.eq((r["timed_out"], r["signal"]), (True, "KILL"), r)
        self.fact("runaway_left", "0")
        self.fact("groups_after_runaway", "0")

    def cores(self):
        """No command makes the host run something for its core."""
        for name in ("crash", "crash_none"):
            r = self.ran(name, None)
            self.eq((r["signal"], r["exit_code"]), ("SEGV", None), r)
        self.fact("cores_of_others", "1")
        self.fact("cores_of_commands", "0")

    def killed(self):
        self.fact("groups_before_kill", "1")
        self.fact("groups_after_kill", "0")
        self.fact("left_after_kill", "0")
        self.ran("after_kill")
        self.eq(self.facts.get("drive"), "0",
                f"sessions\n{self.drive}{self.context}")
        self.fact("active_after_kill", "active")
        self.fact("groups_after_main_kill", "0")
        self.ran("after_main_kill")

    def bounds(self):
        r = self.ran("time")
        ms = int(re.search(r"cpu_ms (\d+)", r["stdout"])[1])
        # of four seconds, with a period more at either end
        self.under(ms, 4000 * PERCENT // 100 + 400, r["stdout"])
        self.eq(ms > 4000 * PERCENT // 100 // 3, True, r["stdout"])
        self.oom("time_wide")
        self.eq(self.forked(self.ran("time_forks")), 5)

    def sums(self):
        self.fact("sums.memory.max", str(88 * MIB))
        self.fact("sums.pids.max", "18")
        self.fact("sums.cpu.max", "50000 100000")
        got = [self.answers[n] for n in ("sum1", "sum2")]
        # either may be the victim; alone each has room
        self.eq(sorted(r["oom_killed"] for r in got), [False, True], got)
        for r in got:
            if not r["oom_killed"]:
                self.eq(r["exit_code"], 0, r)
        first = self.ran("sum_fork1")
        self.eq(first["stdout"].split("\n")[0], "forked 9 errno 0", first)
        # 18 less execd and its mover, two sandboxes of two, ten, one
        self.eq(self.forked(self.ran("sum_fork2")), 18 - 2 - 4 - 10 - 1)
        r = self.ran("sum_time")
        ms = int(re.search(r"cpu_ms (\d+)", r["stdout"])[1])
        self.under(ms, 1500 + 400, r["stdout"])

    def undelegated(self):
        r = self.answers["undelegated"]
        self.eq((r["code"], r["details"]["layer"]),
                ("sandbox.unavailable", "cgroup"), r)
        layers = self.answers["undelegated_posture"]["sandbox"]["layers"]
        self.eq("cgroup" in layers, False, layers)
        self.ran("rlimit", how="rlimit")
        r = self.ran("rlimit_refused", 3, how="rlimit")
        self.eq(r["stdout"], "refused 12\n", r)

    def by_hand(self):
        self.fact("mark", "0")
        self.fact("hand_groups", "1")
        self.fact("hand_groups_again", "0")
        self.eq(self.facts.get("hand_sleeper") != "0", True,
                "a process of an old group lives")
        self.ran("by_hand")
        self.fact("hand_stop", "0")
