# SPDX-License-Identifier: ISC
"""Small Debian trees with systemd, to boot in: made by mmdebstrap once and
kept in $ABX_CACHE (default /var/cache/abx-regress)."""
import glob
import hashlib
import os
import re
import shutil
import subprocess
import unittest

from abxtest import BUILD, apt

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
CACHE = os.environ.get("ABX_CACHE") or "/var/cache/abx-regress"
PACKAGES = ["systemd", "systemd-sysv", "dbus", "bubblewrap", "curl",
            "procps"]
# units that would wait for what is not there
MASKED = ("serial-getty@ttyS0.service", "getty.target",
          "console-getty.service", "systemd-resolved.service",
          "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer",
          "fstrim.timer")

# The beginning of a script that runs inside, in its own directory: "NAME
# VALUE" lines go into facts, answers of the service into files beside it.
# To be formatted with the seconds to wait for an answer and the token.
SHELL = r"""exec >log 2>&1
set -x
fact() { echo "$@" >>facts; }
ask() { # NAME CURL-ARGUMENTS
	out=$1; shift
	curl -s -m %(patience)d --unix-socket /run/agent-sandbox.sock \
	    -H "Authorization: Bearer %(token)s" "$@" >"$out"
}
groups() { # how many there are for runs, below $cg
	ls -d $cg/exec/[0-9]*-* 2>/dev/null | wc -l
}
settled() { # the same, when what is going is gone; a probe comes and goes
	i=0
	while n=$(groups); [ $n != 0 ] && [ $i -lt 100 ]; do
		sleep 0.1; i=$((i+1))
	done
	echo $n
}
kill_main() { # UNIT: its first process, until it is another one, and ready
	main=$(systemctl show -P MainPID $1)
	kill -9 $main
	i=0
	until new=$(systemctl show -P MainPID $1)
	    [ "$new" != 0 -a "$new" != "$main" -a \
	    "$(systemctl is-active $1)" = active ] || [ $i -gt 100 ]; do
		sleep 0.2; i=$((i+1))
	done
}
"""


def need(tools):
    """Have programs, {program: package}, or skip the test."""
    if not shutil.which("apt-get") or not suite():
        raise unittest.SkipTest("needs Debian or its kin")
    missing = [p for t, p in tools.items() if not shutil.which(t)]
    if missing and (why := apt(*missing)):
        raise unittest.SkipTest(
            f"cannot install {' '.join(missing)}: {why}")


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


def key():
    include = ",".join(PACKAGES + libraries())
    digest = hashlib.sha256(f"{suite()} {include}".encode()).hexdigest()
    return include, digest[:16]


def tarball():
    """The cached tree; made when there is none for these packages."""
    need({"mmdebstrap": "mmdebstrap"})
    include, digest = key()
    path = f"{CACHE}/root-{digest}.tar"
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
            raise unittest.SkipTest("mmdebstrap cannot make a tree: "
                                    + p.stderr.strip()[-300:])
        os.rename(new, path)
    return path


def put(root, name, text, mode=0o644):
    path = f"{root}/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        os.unlink(path)
    with open(path, "w") as f:
        f.write(text)
    os.chmod(path, mode)


def unpack(root):
    """The tree at root, with nothing that waits at boot."""
    os.chmod(root, 0o755)
    subprocess.run(["tar", "-C", root, "-xf", tarball(), "--exclude=./dev/*"],
                   check=True)
    put(root, "etc/machine-id", os.urandom(16).hex() + "\n")
    put(root, "etc/fstab", "")
    put(root, "etc/hostname", "abx-regress\n")
    for unit in MASKED:
        link = f"{root}/etc/systemd/system/{unit}"
        if not os.path.lexists(link):
            os.symlink("/dev/null", link)


def wanted(root, text):
    """A unit abx-regress.service that is started at boot."""
    put(root, "etc/systemd/system/abx-regress.service", text)
    wants = f"{root}/etc/systemd/system/multi-user.target.wants"
    os.makedirs(wants, exist_ok=True)
    os.symlink("/etc/systemd/system/abx-regress.service",
               f"{wants}/abx-regress.service")


def install(root):
    """What "make install" installs; what went wrong, or None."""
    tool = (os.environ.get("MAKE") or "make").split()
    p = subprocess.run([*tool, "install", f"DESTDIR={root}", "PREFIX=/usr"],
                       cwd=TOP, capture_output=True, text=True)
    return None if p.returncode == 0 else p.stderr[-500:]
