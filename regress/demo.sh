#!/bin/sh
# SPDX-License-Identifier: ISC
#
# "make demo": starts the service of this tree on an example policy, lets two
# callers use it by curl, shows the audit log and stops it.  Ends with status 0
# only when everything was as the policy says.  Works as root (then each
# process has its own user) and as an ordinary user; leaves nothing behind.
set -u
cd "$(dirname "$0")/.." || exit 1

# The state directory may not lie below one that others can write.
if [ "$(id -u)" = 0 ]; then
	base=/var/lib
else
	base=${HOME:-$PWD}
fi
umask 022
dir=$(mktemp -d "$base/abx-demo.XXXXXX") || exit 1
chmod 755 "$dir"
pid=
failed=0

clean_up() {
	if [ -n "$pid" ]; then
		kill "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	fi
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

say() {
	printf '\n\033[1m%s\033[0m\n' "$*"
}
[ -t 1 ] || say() {
	printf '\n%s\n' "$*"
}

wrong() {
	printf '  NOT AS EXPECTED: %s\n' "$*"
	failed=$((failed + 1))
}

secret() {
	od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# --- a workspace and a policy ------------------------------------------------

mkdir "$dir/etc" "$dir/log" "$dir/workspace" "$dir/workspace/jobs"
printf 'alpha\nbeta\ngamma\n' >"$dir/workspace/notes.txt"
printf 'PASSWORD=hunter2\n' >"$dir/workspace/.env"
ln -s /etc/passwd "$dir/workspace/way-out"
printf '1\n2\n3\n' >"$dir/workspace/jobs/data.csv"
cat >"$dir/workspace/jobs/look.sh" <<'LOOK'
echo "processes: $(ls -d /proc/[0-9]* | wc -l) (the launcher, this script and what it runs)"
echo "networks:  $(sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' \n')"
echo "homes:     $(ls /home 2>/dev/null | wc -l)"
echo "tokens:    $(env | grep -c TOKEN)"
cat ../.env 2>/dev/null || echo ".env:      not to be seen"
LOOK
if [ "$(id -u)" = 0 ]; then
	chown _abxm "$dir/log" && chown -R -h abx:abx "$dir/workspace" || exit 1
fi

policy() {
	cat <<POLICY
{
  "version": 1,
  "listen": [{"address": "127.0.0.1", "port": $1}],
  "auth": {"tokens": [
    {"id": "agent", "roles": ["builder"], "token_env": "AGENT_TOKEN"},
    {"id": "viewer", "token_env": "VIEWER_TOKEN"}]},
  "rules": [
    {"allow": ["group:files-read"],
     "paths": {"roots": "$dir/workspace", "deny": ["**/.env"]}},
    {"allow": ["files.upload"], "principals": "role:builder",
     "paths": {"roots": "$dir/workspace", "deny": ["**/.env"],
               "max_bytes": "1MiB"}},
    {"allow": ["commands.run"], "principals": "role:builder",
     "commands": {"allow": ["wc -l {path}", "sh look.sh", "sleep {int}"],
                  "cwd": "$dir/workspace/jobs", "timeout": "10s"}}],
  "state_dir": "$dir/state",
  "sandbox": {"workspace_root": "$dir/sessions"},
  "audit": {"sink": "file:$dir/log/audit.jsonl"}
}
POLICY
}

AGENT_TOKEN=$(secret)
VIEWER_TOKEN=$(secret)
export AGENT_TOKEN VIEWER_TOKEN

say "The policy"
policy PORT | sed "s,$dir,DIR,g"

# --- start: the first port that is free --------------------------------------

start() {
	policy "$port" >"$dir/etc/server.json"
	build/abxd -d -f "$dir/etc/server.json" 2>"$dir/abxd.log" </dev/null &
	pid=$!
	tries=0
	while ! grep -qs 'ready on' "$dir/abxd.log"; do
		kill -0 "$pid" 2>/dev/null && [ $tries -lt 200 ] || return 1
		tries=$((tries + 1))
		sleep 0.1
	done
}

port=$((15000 + $$ % 15000))
n=0
while ! start; do
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	pid=
	n=$((n + 1))
	if [ $n -gt 5 ] || ! grep -q 'cannot listen' "$dir/abxd.log"; then
		cat "$dir/abxd.log"
		echo "demo: the service did not start"
		exit 1
	fi
	port=$((port + 1))
done

say "The service is up; each process says what confines it"
grep -v 'warning: config\.' "$dir/abxd.log" | sed "s,$dir,DIR,g"

# --- calls -------------------------------------------------------------------

# call WHO STATUS PATTERN CURL-ARGUMENT...: the last argument is the target.
call() {
	who=$1 status=$2 pattern=$3
	shift 3
	case $who in
	agent) token=$AGENT_TOKEN ;;
	viewer) token=$VIEWER_TOKEN ;;
	*) token='a-guess-of-a-token' ;;
	esac
	shown=
	for a; do
		case $a in
		/*) shown="$shown '$a'" ;;
		*[!A-Za-z0-9/.:_-]*) shown="$shown '$a'" ;;
		*) shown="$shown $a" ;;
		esac
		target=$a
	done
	printf '%s$ curl%s\n' "$who" "$shown"
	set -- "$@" --
	while [ "$1" != -- ]; do
		if [ "$1" = "$target" ]; then
			set -- "$@" "http://127.0.0.1:$port$1"
		else
			set -- "$@" "$1"
		fi
		shift
	done
	shift
	got=$(curl -sS --noproxy '*' -m 30 -o "$dir/answer" \
	    -w '%{http_code}' -H "Authorization: Bearer $token" "$@" 2>&1)
	sed 's/^/  /' "$dir/answer" | head -n 30
	[ -z "$(tail -c1 "$dir/answer")" ] || echo
	[ "$got" = "$status" ] || wrong "status $got instead of $status"
	grep -q -e "$pattern" "$dir/answer" || wrong "no \"$pattern\""
}

json='Content-Type: application/json'
bytes='Content-Type: application/octet-stream'

say "A download, and what may not be downloaded (each caller sends its token)"
call viewer 200 beta '/files/download-stream?path=notes.txt'
call viewer 403 policy.path_not_allowed '/files/download-stream?path=/etc/passwd'
call viewer 403 policy.path_not_allowed '/files/download-stream?path=way-out'
call viewer 403 policy.path_denied '/files/download-stream?path=.env'

say "A listing has only what could be read"
call viewer 200 notes.txt '/files/list?path=.'
grep -q -e '"\.env"' -e way-out "$dir/answer" && wrong "a denied name is listed"

say "An upload: an operation that the viewer does not have does not exist"
call viewer 404 op.not_enabled -X PUT -H "$bytes" --data-binary delta \
    '/files/upload-stream?path=new.txt'
call agent 201 bytes -X PUT -H "$bytes" --data-binary delta \
    '/files/upload-stream?path=new.txt'
call viewer 200 delta '/files/download-stream?path=new.txt'

say "Commands: those of the policy, in a sandbox"
call agent 200 '3 data.csv' -H "$json" -d '{"command":"wc -l data.csv"}' \
    /commands/run
call agent 403 policy.command_not_allowed -H "$json" \
    -d '{"command":"wc -l /etc/passwd"}' /commands/run
call agent 403 policy.command_not_allowed -H "$json" \
    -d '{"command":"sh -c id"}' /commands/run

say "What a command sees of this machine, line by line as it comes"
call agent 200 '"exit_code": *0' -N -H "$json" \
    -d '{"argv":["sh","look.sh"],"stream":true}' /commands/run
grep -q 'networks:  lo' "$dir/answer" || wrong "there is a network"
grep -q 'not to be seen' "$dir/answer" || wrong "it sees the .env"

say "A command that takes too long"
call agent 200 '"timed_out": *true' -H "$json" \
    -d '{"command":"sleep 60","timeout":1}' /commands/run

say "Who is this?"
call stranger 401 auth.invalid /capabilities

# --- what remains ------------------------------------------------------------

say "The audit log"
sleep 0.3
sed -e "s,$dir,DIR,g" -e 's/^/  /' "$dir/log/audit.jsonl"
lines=$(wc -l <"$dir/log/audit.jsonl")
[ "$lines" -ge 10 ] || wrong "only $lines lines"
grep -q -e "$AGENT_TOKEN" -e "$VIEWER_TOKEN" -e hunter2 "$dir/log/audit.jsonl" &&
    wrong "a secret was logged"

kids=$(cat "/proc/$pid/task/$pid/children" 2>/dev/null)
kill "$pid"
wait "$pid" || wrong "abxd ended with status $?"
pid=
for k in $kids; do
	[ ! -d "/proc/$k" ] || wrong "process $k is left"
done

if [ $failed -gt 0 ]; then
	say "demo: $failed things were not as expected; the log was:"
	cat "$dir/abxd.log"
	exit 1
fi
say "demo: everything was as the policy says"
