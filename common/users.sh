#!/bin/sh
# SPDX-License-Identifier: ISC
#
# Creates the system users that abxd needs when root starts it, and the group
# that may talk to the packaged socket.  What exists is left as it is.  A
# package does the same by etc/sysusers.d/agent-sandbox.conf.
set -eu

need() {
	if [ "$(id -u)" != 0 ]; then
		echo "users: $1 does not exist and only root can create it;" >&2
		echo "users: a service that you start yourself needs none" >&2
		exit 1
	fi
}

for u in _abxl _abxm abx _abxn _abxh; do
	getent passwd "$u" >/dev/null && continue
	need "$u"
	# a group of that name may be left over from an earlier user
	if getent group "$u" >/dev/null; then
		own="--gid $u"
	else
		own=--user-group
	fi
	# shellcheck disable=SC2086
	useradd --system $own --no-create-home --home-dir /nonexistent \
	    --shell /usr/sbin/nologin --comment "agent-sandbox" "$u"
	echo "users: created $u"
done

if ! getent group agent-sandbox >/dev/null; then
	need "group agent-sandbox"
	groupadd --system agent-sandbox
	echo "users: created group agent-sandbox"
fi
