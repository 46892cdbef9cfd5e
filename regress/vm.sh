#!/bin/sh
# SPDX-License-Identifier: ISC
#
# Runs tests on Debian's own kernel, booted by QEMU, for this machine's
# processors or for others:
#
#	vm.sh amd64|arm64 [ARGUMENT ...]
#
# The arguments are those of regress/run, which cannot build there; without
# any it is the demonstration and the tables of the filters (trip).  Not part
# of "make check": processors are emulated, and everything takes ten times as
# long.  Needs mmdebstrap, cpio, qemu-system-x86 or qemu-system-arm and, for
# the other kind, its cross compiler; the Debian tree with headers, libraries
# and kernel is kept in $ABX_CACHE.  The status is that of what ran inside.
set -eu
cd "$(dirname "$0")/.."

usage() {
	echo "usage: regress/vm.sh amd64|arm64 [arguments of regress/run]" >&2
	exit 2
}
arch=${1-}
case $arch in
amd64)
	triple=x86_64-linux-gnu console=ttyS0
	qemu="qemu-system-x86_64 -cpu Nehalem" package=qemu-system-x86
	;;
arm64)
	triple=aarch64-linux-gnu console=ttyAMA0
	qemu="qemu-system-aarch64 -M virt -cpu cortex-a72"
	package="qemu-system-arm"
	;;
*) usage ;;
esac
shift

need() { # PROGRAM PACKAGE
	command -v "$1" >/dev/null && return
	echo "vm.sh: needs $1 (Debian: $2)" >&2
	exit 2
}
need mmdebstrap mmdebstrap
need cpio cpio
need "${qemu%% *}" "$package"
need $triple-gcc gcc-$triple

packages="base-passwd,bash,bubblewrap,busybox-static,coreutils,curl,dash,diffutils,\
findutils,gawk,git,grep,hostname,iproute2,zlib1g-dev,libbearssl-dev,\
libbsd-dev,libc-bin,libc6-dev,libcap-ng-dev,libcmocka-dev,libevent-dev,\
libjansson-dev,libpcre2-dev,libseccomp-dev,linux-image-$arch,login,mount,\
passwd,perl-base,procps,python3,sed,util-linux"
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
cache=${ABX_CACHE:-/var/cache/abx-regress}
key=$(echo "$suite $packages" | sha256sum | cut -c1-16)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM

# ---- a Debian tree, whose packages are unpacked only
root=$cache/vm-$key
if [ ! -d "$root" ]; then
	mkdir -p "$cache"
	mmdebstrap -q --variant=extract --architectures="$arch" \
	    --include="$packages" "$suite" "$root.$$"
	mv "$root.$$" "$root"
fi
kernel=$(ls "$root"/boot/vmlinuz-*)

# ---- the tree and its programs
tree=$work/root/opt/abx
mkdir -p "$tree"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$tree"
(cd "$tree" && make -s -j"$(nproc)" CC="$triple-gcc --sysroot=$root" all \
    build/regress/trip build/regress/evil build/regress/race \
    build/regress/standin build/regress/execd_drive build/regress/inside \
    build/regress/no_openat2 >/dev/null)
find "$tree" -type f \( -name '*.o' -o -name '*.o.d' -o -name '*.a' \) -delete
$triple-strip -g "$tree"/build/abx* "$tree"/build/regress/*

# ---- what boots: all in memory
cp -a "$root/." "$work/root/"
cd "$work/root"
rm -rf boot lib/modules usr/lib/modules usr/include usr/share/doc \
    usr/share/man usr/share/locale var/cache var/lib/apt
for d in bin sbin lib lib64; do
	if [ ! -d $d ] || [ -L $d ]; then
		continue
	fi
	mkdir -p usr/$d
	cp -a $d/. usr/$d/
	rm -rf $d
	ln -s usr/$d $d
done
[ -e bin/sh ] || ln -s dash bin/sh
[ -e bin/awk ] || ln -s gawk bin/awk
for f in passwd group; do
	cp usr/share/base-passwd/$f.master etc/$f
done
echo "127.0.0.1 localhost" >etc/hosts
mkdir -p proc sys dev run tmp root home var/lib
if [ $# -gt 0 ]; then
	printf 'set --'
	printf " '%s'" "$@"
	printf '\npython3 regress/run --no-build "$@"\n'
else
	cat <<'EOF'
sh regress/demo.sh | tail -n 1 && build/regress/trip build
EOF
fi >opt/run.sh

# bubblewrap cannot leave the first file system of a kernel
cat >init <<'EOF'
#!/bin/busybox sh
b=/bin/busybox
$b mkdir /new
$b mount -t tmpfs -o size=75%,mode=755 tmpfs /new
for d in /*; do
	[ $d = /new ] || $b cp -a $d /new/
done
exec $b switch_root /new /init2
EOF
cat >init2 <<'EOF'
#!/bin/bash
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 ABX_SLOW=8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t cgroup2 cgroup /sys/fs/cgroup
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
chmod 1777 /tmp
ip link set lo up
ldconfig
cd /opt/abx
sh common/users.sh
uname -srvm
sh /opt/run.sh
echo "vm.sh: status $?"
echo o >/proc/sysrq-trigger
sleep 60
EOF
chmod 755 init init2
find . | cpio -o -H newc --quiet -R 0:0 | gzip -1 >"$work/initrd"

# ---- and runs
$qemu -smp 2 -m 4096 -accel tcg -nographic -no-reboot -nic none \
    -kernel "$kernel" -initrd "$work/initrd" \
    -append "console=$console quiet panic=-1" </dev/null | tee "$work/log"
rc=$(sed -n 's/^vm.sh: status \([0-9]*\).*/\1/p' "$work/log" | tail -n 1)
exit "${rc:-2}"
