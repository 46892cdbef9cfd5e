#!/bin/sh
# SPDX-License-Identifier: ISC
#
# Builds the programs again, with bmake, in a copy of the tree that lies
# elsewhere, and compares them with those of build/: the same bytes.
set -u
cd "$(dirname "$0")/.." || exit 2

programs="abxd abx-listener abx-monitor abx-pathd abx-execd abx-launch abxctl"
copy=$(mktemp -d) || exit 2
trap 'rm -rf "$copy"' EXIT
trap 'exit 2' HUP INT TERM

mkdir "$copy/elsewhere" || exit 2
tar -cf - --exclude='*.o' --exclude='*.?o' --exclude='*.d' --exclude='*.t' \
    --exclude='*.vt' --exclude='*.fz' --exclude=./build --exclude=./.git \
    --exclude=./regress/fuzz/corpus . | tar -xf - -C "$copy/elsewhere" || exit 2
cd "$copy/elsewhere" || exit 2
unset MAKE MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
if ! bmake -j2 all >"$copy/log" 2>&1; then
	echo "FAIL bmake: $(tail -n 5 "$copy/log")"
	exit 1
fi
rc=0
for p in $programs; do
	cmp "build/$p" "$OLDPWD/build/$p" || rc=1
done
exit $rc
