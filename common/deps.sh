#!/bin/sh
# SPDX-License-Identifier: ISC
#
# Installs what is missing for "make demo" (deps.sh demo) or for everything
# (deps.sh): as root on Debian and its kin by apt-get, without questions;
# otherwise it says what is missing.  Does nothing when nothing is missing.
set -u

# What the programs are built with and need when they run.
demo="gcc libc6-dev binutils make libevent-dev libjansson-dev libbsd-dev
libcap-ng-dev libseccomp-dev libbearssl-dev libpcre2-dev zlib1g-dev
bubblewrap curl"
# What the tests and the checks of the source need besides.
check="libcmocka-dev bmake mandoc python3 clang-format clang-tidy cppcheck
clang libclang-rt-dev valgrind"
# What boots machines of its own, which only root does; tests that lack it say
# so and are left out.
boot="mmdebstrap systemd-container user-mode-linux e2fsprogs"

case ${1-} in
demo) want=$demo ;;
'') want="$demo $check" ;;
*)
	echo "usage: deps.sh [demo]" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null; then
	# shellcheck disable=SC2086
	echo "deps: not a Debian system; needed, by their names there:" $want
	exit 0
fi

# Set missing to those of the packages that are not installed.
look() {
	missing=
	for p; do
		case $(dpkg-query -W -f '${db:Status-Status} ' "$p" 2>/dev/null) in
		*installed*) ;;
		*) missing="$missing $p" ;;
		esac
	done
	[ -n "$missing" ]
}

get() {
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
	    -qq -y --no-install-recommends install $missing </dev/null
}

# The lists of a fresh image are empty or old: try once with new ones.
get_all() {
	echo "deps: installing$missing"
	get >/dev/null 2>&1 && return 0
	apt-get -o DPkg::Lock::Timeout=300 -qq update && get && return 0
	echo "deps: apt-get could not install:$missing" >&2
	return 1
}

# shellcheck disable=SC2086
if look $want; then
	if [ "$(id -u)" != 0 ]; then
		echo "deps: these packages are missing; install them with" >&2
		echo "  sudo apt-get install$missing" >&2
		exit 1
	fi
	get_all || exit 1
fi
# shellcheck disable=SC2086
if [ "${1-}" != demo ] && [ "$(id -u)" = 0 ] && look $boot; then
	get_all || echo "deps: tests that boot a machine will be left out"
fi
exit 0
