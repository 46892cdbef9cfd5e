#!/bin/sh
# SPDX-License-Identifier: ISC
#
# "make lint": the rules that keep the processes apart, checked on what was
# written and on what was built, and the form of the sources.  Every violation
# is one line; the exit status says whether there was any.
set -u
cd "$(dirname "$0")/.." || exit 2
export LC_ALL=C

found=$(mktemp) || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$found" "$tmp"' EXIT
trap 'exit 2' HUP INT TERM

bad() {
	printf 'lint: %s\n' "$*"
	echo x >>"$found"
}

# --- who includes whom -------------------------------------------------------

# includes FILE-PATTERN-OF-FIND ALLOWED-EXTENDED-REGEX: every #include "..." of
# these files must match.
includes() {
	where=$1 allowed=$2
	shift 2
	find $where "$@" -name '*.[ch]' -exec grep -Hno '#include "[^"]*"' {} + |
	    sed 's/#include "\(.*\)"/\1/' |
	    while IFS=: read -r file line inc; do
		printf '%s\n' "$inc" | grep -qE "^($allowed)" ||
		    bad "$file:$line: must not include $inc"
	done
}

includes common 'common/'
includes policy 'policy/|common/'
includes listener 'listener/|common/'
includes pathd 'pathd/|common/'
includes execd 'execd/|common/'
# The launcher runs inside the sandbox and is static: the wire and itself.
includes execd/launch 'execd/launch/|common/'
# Others see the engine through its front only.
includes monitor 'monitor/|common/|policy/policy\.h|policy/model\.h' \
    -not -path 'monitor/ctl/*'
# abxctl explains paths with the very walk of pathd.
includes monitor/ctl \
    'monitor/|common/|policy/policy\.h|policy/model\.h|pathd/walk\.h|pathd/beneath\.h'
# The parent knows no policy.
for f in abxd parent boot spawn sock groups; do
	grep -Hn '#include "policy/' monitor/$f.c | while IFS=: read -r file line _; do
		bad "$file:$line: the parent must not know the policy"
	done
done

# --- who calls what: undefined symbols of the objects ------------------------

find common policy listener monitor pathd execd -name '*.o' | while read -r o; do
	[ -e "${o%.o}.c" ] || continue
	nm -u "$o" | awk -v f="${o%.o}.c" '{ sub(/@.*/, "", $2); print f, $2 }'
done >"$tmp/calls"

# only CALLS-REGEX FILES-REGEX WHY
only() {
	awk -v c="^($1)\$" -v f="^($2)\$" \
	    '$2 ~ c && $1 !~ f { print $1, $2 }' "$tmp/calls" |
	    while read -r file call; do
		bad "$file: calls $call: $3"
	done
}

exec='execl[pe]?|execv[pe]?|execvpe|fexecve|execveat|posix_spawnp?|system|popen'
only 'sendmsg|recvmsg|sendmmsg|recvmmsg' 'common/imsg\.c' \
    'only common/imsg.c passes descriptors'
only "$exec" 'monitor/spawn\.c|monitor/ctl/probe\.c|execd/.*' \
    'only monitor/spawn.c, execd/ and abxctl doctor execute programs'
# abxd goes into the background, pathd has workers and a parser of archives.
only 'fork|vfork|_Fork|clone' \
    'monitor/(spawn|abxd|ctl/probe)\.c|pathd/(pool_worker|unpack)\.c|execd/.*' \
    'only what starts programs makes processes'
only 'socket|bind|listen|connect' \
    'monitor/sock\.c|monitor/ctl/(control|client)\.c|execd/.*' \
    'only the parent and abxctl make sockets'
only 'accept|accept4' 'listener/.*|monitor/control\.c' \
    'only the listener accepts clients, and the monitor abxctl'
files='open(64)?|openat(64)?|f?re?open(64)?|fopen(64)?|opendir|scandir|creat(64)?'
startup='abxd|boot|child|groups|conffile|confset|confdirs|parent'
only "$files|mkstemp|mkostemp|dlopen" \
    "common/(jail|proc|cg)\.c|monitor/($startup)\.c|monitor/ctl/.*|pathd/.*|execd/.*" \
    'only pathd, execd, start-up code and the loader open files'
only 'strcpy|strcat|v?sprintf|gets|ato[il]|atoll|strtok|alloca|tmpnam|mktemp' \
    'none' 'not used in this tree'
only 'qsort|qsort_r' '(monitor|policy|execd)/.*' \
    'it may call sysinfo(2), which the filters of others do not know'
# Pure: no I/O, no clock, no log, no environment.
pure='policy/.*|common/(wire|glob|size|args|payload|codes|ops|msg|frame)\.c'
pure="$pure|pathd/(tar_[a-z]*|gz)\.c|monitor/gate\.c|listener/(http_.*|target|route|body|range)\.c"
io='open|openat|p?read|p?write|send|recv|f?printf|puts|log_.*|fatalx?|_?exit'
world='time|clock_gettime|gettimeofday|(secure_)?getenv|getrandom|arc4random.*'
awk -v p="^($pure)\$" -v c="^($io|$world|abort)\$" \
    '$1 ~ p && $2 ~ c { print $1, $2 }' "$tmp/calls" |
    while read -r file call; do
	bad "$file: calls $call: this part is pure"
done
# The same by number.
grep -rnE 'SYS_(sendm?msg|recvm?msg|execve(at)?|clone3?|v?fork|open(at)?|socket)\b' \
    common policy listener monitor pathd execd --include='*.[ch]' |
    grep -vE '^(monitor/spawn\.c|execd/)' |
    while IFS=: read -r file line _; do
	bad "$file:$line: a system call by number that its file may not make"
done

# --- who links what: the table in README -------------------------------------

for p in abxd abx-listener abx-monitor abx-pathd abx-execd abx-launch abxctl; do
	if [ ! -e "build/$p" ]; then
		bad "build/$p is not built"
		continue
	fi
	said=$(sed -n "s/^  $p  *|\(.*\)|.*/\1/p" README | sed 's/(static)//; s/[ -]/\n/g' |
	    sed '/^$/d' | sort | xargs)
	is=$(readelf -d "build/$p" | sed -n 's/.*(NEEDED).*\[lib\(.*\)\.so.*/\1/p' |
	    sed 's/-2\.1$//' | grep -vE '^(c|dl|pthread)$' | tr '-' '\n' |
	    sort | xargs)
	[ "$said" = "$is" ] || bad "build/$p links \"$is\", README says \"$said\""
	case $p in
	abx-monitor | abxctl) ;;
	*)
		nm "build/$p" | grep -q ' [Tt] policy_' &&
		    bad "build/$p holds policy code"
		;;
	esac
done
nm build/abx-launch 2>/dev/null | grep -q ' [Tt] json_' &&
    bad "build/abx-launch holds a JSON parser"

# --- the operations that README says are there ------------------------------

tr '\n' ' ' <common/ops.def | grep -oE 'OP\([a-z_]+, *"[a-z.]+"[^)]*\)' |
    grep -v OF_LATER | sed 's/[^"]*"\([^"]*\)".*/\1/' | sort >"$tmp/ops"
sed -n '/^Operations:/,/^$/p' README | grep -oE '[a-z]+\.[a-z.]+[a-z]' |
    sort >"$tmp/said"
comm -3 "$tmp/ops" "$tmp/said" | tr -d '\t' | while read -r op; do
	bad "README and common/ops.def disagree on whether $op is there"
done

# --- form --------------------------------------------------------------------

find common policy listener monitor pathd execd regress -name '*.[ch]' |
    sort >"$tmp/c"
if command -v clang-format >/dev/null; then
	xargs clang-format --dry-run -Werror <"$tmp/c" 2>&1 |
	    sed -n 's/: error: code should be clang-formatted.*//p' |
	    cut -d: -f1 | uniq -c | while read -r n file; do
		bad "$file: $n places are not as clang-format has them (make format)"
	done
else
	echo "lint: no clang-format here: form not checked"
fi

while read -r f; do
	head -n 3 "$f" | grep -q 'SPDX-License-Identifier: ISC' ||
	    bad "$f: does not begin with its licence"
	n=$(wc -l <"$f")
	case $f in
	regress/*) continue ;;
	*) [ "$n" -le 600 ] || echo "lint: note: $f has $n lines" >&2 ;;
	esac
	awk -v f="$f" '
	    /^[a-z_].*\(/ { name = $0; sub(/\(.*/, "", name) }
	    /^\{/ { start = NR }
	    /^\}/ {
		if (start && NR - start > 81)
			printf "%s:%d: %s has %d lines; functions have at most 80\n",
			    f, start, name, NR - start - 1
		start = 0
	    }' "$f"
done <"$tmp/c" >"$tmp/long"
while read -r line; do
	bad "${line#lint: }"
done <"$tmp/long"

# Without git, what was not built: objects, programs of the tests, build/.
git -c safe.directory='*' ls-files >"$tmp/tracked" 2>/dev/null ||
    find . \( -path ./build -o -path ./.git -o -name __pycache__ \) -prune -o \
	-type f ! -name '*.[auf]o' ! -name '*.o' ! -name '*.d' ! -name '*.t' \
	! -name '*.fz' -print | sed 's,^\./,,' >"$tmp/tracked"
grep -E '^(README|SECURITY|LICENSE|\.ci/.*|etc/[^/]*|.*\.(sh|mk|py))$' \
    "$tmp/tracked" | while read -r f; do
	[ -f "$f" ] || continue
	awk -v f="$f" '
	    { gsub(/\t/, "        ") }
	    length($0) > 100 && !/https?:/ {
		printf "%s:%d: %d columns\n", f, NR, length($0)
	    }' "$f"
done >"$tmp/wide"
while read -r line; do
	bad "$line"
done <"$tmp/wide"

# A path of somebody's machine has no place in the tree; tests and data name
# made-up homes.
while read -r f; do
	case $f in
	regress/* | *.def | etc/*) pattern='/[w]ork/main|/[U]sers/' ;;
	*) pattern='/[w]ork/|/home/[a-z]+/|/[r]oot/|/[U]sers/' ;;
	esac
	[ -f "$f" ] && grep -HnE "$pattern" "$f"
done <"$tmp/tracked" | grep -aoE '^[^:]*:[0-9]+' | while read -r at; do
	bad "$at: names a place of one machine"
done

# --- what the analyzers say ----------------------------------------------------

grep -v '^regress/' "$tmp/c" | grep '\.c$' >"$tmp/src"
if command -v cppcheck >/dev/null; then
	cppcheck -q -j2 --std=c11 --enable=warning,portability,performance \
	    --inline-suppr -I. -D_GNU_SOURCE --include=regress/cppcheck.h \
	    --suppress=missingInclude --template='{file}:{line}: {message} ({id})' \
	    --file-list="$tmp/src" 2>&1 | grep '^[a-z].*: .*)$' |
	    while read -r line; do
		bad "$line"
	done
else
	echo "lint: no cppcheck here"
fi
if command -v clang-tidy >/dev/null; then
	# shellcheck disable=SC2016
	xargs -P2 -n 8 sh -c 'clang-tidy --quiet "$@" -- -std=gnu11 -I. \
	    -D_GNU_SOURCE -isystem /usr/include/bsd -DLIBBSD_OVERLAY' tidy \
	    <"$tmp/src" 2>/dev/null | grep -E ': (error|warning): ' | sort -u |
	    while read -r line; do
		bad "${line#"$PWD"/}"
	done
else
	echo "lint: no clang-tidy here"
fi

# abx-http(7) lists what the catalogues have.
if [ -x build/mantables ]; then
	sh man/http.sh >"$tmp/http" && cmp -s "$tmp/http" man/abx-http.7 ||
	    bad "man/abx-http.7 is not what the catalogues say (make manuals)"
fi

if command -v mandoc >/dev/null; then
	mandoc -Tlint -W warning man/*.[1-9] 2>&1 |
	    grep -v 'outdated mandoc.db' | while read -r line; do
		bad "${line#mandoc: }"
	done
else
	echo "lint: no mandoc here: manuals not checked"
fi
if command -v bmake >/dev/null; then
	env -u MAKE -u MAKEFLAGS -u MFLAGS -u MAKELEVEL bmake -n clean \
	    >"$tmp/bmake" 2>&1 || bad "bmake does not read the build file"
fi

# --- the examples are what they say ------------------------------------------

mkdir -p "$tmp/etc"
for f in etc/server.json etc/examples/*.json; do
	sed "s,/srv/,$tmp/srv/,g" "$f" >"$tmp/etc/server.json"
	# the roots, without a placeholder
	grep -o "\"$tmp/srv/[^\"{]*" "$tmp/etc/server.json" | tr -d '"' |
	    xargs -r mkdir -p
	# tokens of the examples are named *_TOKEN; any value will do here
	env $(grep -o '[A-Z]*_TOKEN' "$f" | sort -u |
	    awk '{ print $1 "=not-a-secret-" NR "-0123456789" }') \
	    build/abxctl check-config "$tmp/etc/server.json" >"$tmp/out" 2>&1 ||
	    bad "$f: $(grep -m1 error: "$tmp/out" | sed 's/^[^:]*://')"
	# The packaged policy needs no credential on purpose, and that the
	# sandbox must keep a build from writing is what ci-runner says.
	grep warning: "$tmp/out" | grep -v config.reload_enabled_open |
	    grep -v config.readonly_writer |
	    while read -r line; do
		bad "$f: ${line#*:}"
	done
done

[ ! -s "$found" ] || exit 1
echo "lint: clean"
