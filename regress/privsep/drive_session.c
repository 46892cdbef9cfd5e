/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd: commands of one session, and the end of a session.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/msg.h"

void
session_script(struct run *r, const char *const argv[], const char *session)
{
	memset(r, 0, sizeof(*r));
	r->argv = argv;
	r->dir = work;
	r->s.timeout_ms = 20000;
	r->s.grace_ms = 1000;
	r->s.max_output = 100000;
	strlcpy(r->s.session, session, sizeof(r->s.session));
}

int
end_session(const char *name)
{
	uint64_t id = peer.next_id++;
	struct imsg m;
	struct rbuf r;

	peer_send(&peer, ME_SESSION_END, id, -1, name, ABX_WORKSPACE_LEN);
	for (;;) {
		if (!peer_next(&peer, &m, 20000))
			die("no answer to SESSION_END");
		if (m.type == ME_END)
			peer_keep_end(&peer, &m);
		else if (m.type == ME_DONE && m.id == id)
			break;
		else
			die("unexpected %s", msg_name(m.type));
	}
	rbuf_init(&r, m.payload, m.len);
	return rget_u16(&r);
}

struct run *
in(const char *text)
{
	static const char *argv[4] = {"sh", "-c", NULL, NULL};
	static struct run r;

	run_clear(&r);
	argv[2] = text;
	session_script(&r, argv, ONE);
	peer_run(&peer, &r);
	CHECK(!r.failed, "%s: code %u errno %d layer %s", text, r.fail.code,
	    r.fail.err, r.fail.layer);
	return &r;
}

const char *
in_out(const char *text)
{
	struct run *r = in(text);

	return r->out == NULL ? "" : r->out;
}

/* Start a script in a session. */
static void
begin(struct run *r, const char *text, const char *session)
{
	static const char *argv[4] = {"sh", "-c", NULL, NULL};

	argv[2] = text;
	session_script(r, argv, session);
	if (peer_spawn(&peer, r) != 0)
		die("%s: code %u errno %d layer %s", text, r->fail.code,
		    r->fail.err, r->fail.layer);
}

/* Its end. */
static void
finish(struct run *r)
{
	struct run_end e;

	run_frames(r);
	CHECK(peer_end(&peer, &e) == r->id, "the end of another");
	CHECK(memcmp(&e, &r->end, sizeof(e)) == 0, "frame and END differ");
}

/* Commands of a session share their sandbox, and it is a real one. */
void
test_session(void)
{
	static char mine[64];
	struct run bg;
	const char *s;

	CHECK(strcmp(in_out("echo kept > /tmp/a; echo on"), "on\n") == 0,
	    "unexpected");
	CHECK(strcmp(in_out("cat /tmp/a"), "kept\n") == 0, "not shared");
	CHECK(strcmp(out("cat /tmp/a; echo end"), "end\n") == 0,
	    "a plain command sees it");
	s = in_out("readlink /proc/self/ns/pid");
	strlcpy(mine, s, sizeof(mine));
	CHECK(strcmp(in_out("readlink /proc/self/ns/pid"), mine) == 0, "%s", s);
	begin(&bg, "readlink /proc/self/ns/pid", TWO);
	finish(&bg);
	CHECK(strncmp(bg.out, "pid:", 4) == 0 && strcmp(bg.out, mine) != 0,
	    "two sessions share %s", bg.out);
	run_clear(&bg);
	s = in_out("cat /proc/self/status");
	CHECK(strstr(s, "NoNewPrivs:\t1") != NULL, "%s", s);
	CHECK(strstr(s, "Seccomp:\t2") != NULL, "%s", s);
	CHECK(strstr(s, "CapPrm:\t0000000000000000") != NULL, "%s", s);
	CHECK(strstr(s, "CapBnd:\t0000000000000000") != NULL, "%s", s);
	s = in_out("ls /proc/self/fd | tr '\\n' ' '; ulimit -n");
	CHECK(strcmp(s, "0 1 2 3 1024\n") == 0, "descriptors %s", s);
	s = in_out("cut -d' ' -f6 /proc/self/stat; echo $$");
	CHECK(atoi(s) > 1 && strchr(s, '\n') != NULL &&
		  atoi(s) == atoi(strchr(s, '\n') + 1),
	    "no session of its own: %s", s);
	/* nothing of the launcher and the supervisors is to be seen */
	s = in_out("cat /proc/[0-9]*/comm | sort -u | tr '\\n' ' '; "
		   "for p in 1 $(grep -l abx-super /proc/[0-9]*/comm | "
		   "cut -d/ -f3); do cat /proc/$p/environ; ls /proc/$p/fd; "
		   "readlink /proc/$p/exe; cat /proc/$p/maps; "
		   "done 2>/dev/null; echo end");
	CHECK(strcmp(s, "abx-launch abx-super cat sh sort tr end\n") == 0 ||
		  strcmp(s, "abx-launch abx-super cat sh sort end\n") == 0 ||
		  strcmp(s, "abx-launch abx-super cat sh tr end\n") == 0 ||
		  strcmp(s, "abx-launch abx-super cat sh end\n") == 0,
	    "%s", s);
	CHECK(
	    end_session(ONE) == C_OK && end_session(TWO) == C_OK, "unexpected");
	CHECK(strcmp(in_out("cat /tmp/a; echo end"), "end\n") == 0,
	    "the old sandbox is there");
	CHECK(end_session(ONE) == C_OK, "unexpected");
}

/* The descriptors of a process: rules of Landlock, and others. */
static void
count_descriptors(pid_t pid, size_t *n, size_t *rules)
{
	char path[64], to[64];
	struct dirent *de;
	ssize_t k;
	DIR *d;

	*n = *rules = 0;
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	if ((d = opendir(path)) == NULL)
		die("no %s", path);
	while ((de = readdir(d)) != NULL) {
		if (de->d_name[0] == '.')
			continue;
		k = readlinkat(dirfd(d), de->d_name, to, sizeof(to) - 1);
		to[k < 0 ? 0 : k] = '\0';
		if (strcmp(to, "anon_inode:[landlock-ruleset]") == 0)
			++*rules;
		else
			++*n;
	}
	closedir(d);
}

/* What stays in a session's sandbox is confined as its programs are, and holds
 * nothing but its socket, its signals and the rules of its runs' domains. */
static void
confined(const char *name)
{
	static const struct {
		const char *word;
		long want;
	} rows[] = {{"NoNewPrivs:\t", 1}, {"Seccomp:\t", 2}, {"CapPrm:\t", 0},
	    {"CapEff:\t", 0}, {"CapBnd:\t", 0}, {"CapAmb:\t", 0},
	    {"Threads:\t", 1}};
	pid_t pid = below(peer.pid, name);
	size_t i, n, rules;
	char text[4096];

	if (pid == 0)
		die("no %s", name);
	for (i = 0; i < nitems(rows); i++)
		CHECK(field(pid, "status", rows[i].word, text, sizeof(text)) ==
			  rows[i].want,
		    "%s: %s%ld", name, rows[i].word,
		    field(pid, "status", rows[i].word, text, sizeof(text)));
	CHECK(field(pid, "oom_score_adj", "", text, sizeof(text)) == 1000,
	    "%s: %s", name, text);
	if (getuid() != 0)
		return;
	count_descriptors(pid, &n, &rules);
	/* three times /dev/null, its socket, its signals */
	CHECK(n == 5, "%s has %zu descriptors", name, n);
	CHECK(rules <= (strcmp(name, "abx-super") == 0), "%s has %zu rules",
	    name, rules);
}

void
test_session_confined(void)
{
	struct run bg;

	begin(&bg, "sleep 30", ONE);
	confined("abx-launch");
	confined("abx-super");
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	finish(&bg);
	run_clear(&bg);
}

/* A command sees what runs beside it, and ends alone. */
void
test_session_trees(void)
{
	struct run bg, one;
	uint8_t sig = SIGTERM;
	struct run *r;

	begin(&bg,
	    "trap 'exit 3' TERM; : drivemarka; while :; do sleep 0.05; "
	    "done",
	    ONE);
	CHECK(atoi(in_out(
		  "grep -l drivemark[a] /proc/[0-9]*/cmdline | wc -l")) > 0,
	    "not seen");
	/* what a command leaves behind dies with it, in whatever session */
	r = in("(setsid sh -c 'trap \"\" TERM; sleep 50; : drivemarkb' "
	       ">/dev/null 2>&1 </dev/null &); sh -c 'setsid sleep 50; : "
	       "drivemarkb' & echo hi");
	CHECK(strcmp(r->out, "hi\n") == 0 && r->end.status == 0 &&
		  (r->end.flags & END_EMPTY) != 0,
	    "%s %x", r->out, r->end.flags);
	CHECK(marked("drivemarkb") == 0, "%d live", marked("drivemarkb"));
	CHECK(marked("drivemarka") > 0, "the other command died");
	/* a time-out and a cancellation too */
	session_script(&one,
	    (const char *const[]){"sh", "-c",
		"trap '' TERM; (setsid sh -c 'sleep 51; : drivemarkc') & "
		"while :; do sleep 0.1; done",
		NULL},
	    ONE);
	one.s.timeout_ms = 200;
	one.s.grace_ms = 200;
	peer_run(&peer, &one);
	CHECK((one.end.flags & (END_TIMED_OUT | END_EMPTY | END_LOST)) ==
		  (END_TIMED_OUT | END_EMPTY),
	    "%x", one.end.flags);
	CHECK(marked("drivemarkc") == 0, "it lives");
	run_clear(&one);
	begin(&one, "trap '' TERM; while :; do sleep 0.1; done; : drivemarkc",
	    ONE);
	peer_send(&peer, ME_CANCEL, one.id, -1, NULL, 0);
	finish(&one);
	CHECK((one.end.flags & (END_CANCELLED | END_EMPTY | END_LOST)) ==
		  (END_CANCELLED | END_EMPTY),
	    "%x", one.end.flags);
	CHECK(marked("drivemarkc") == 0, "it lives");
	run_clear(&one);
	CHECK(marked("drivemarka") > 0, "the other command died");
	/* a signal reaches its command only */
	peer_send(&peer, ME_SIGNAL, bg.id, -1, &sig, 1);
	finish(&bg);
	CHECK(WIFEXITED(bg.end.status) && WEXITSTATUS(bg.end.status) == 3 &&
		  (bg.end.flags & END_LOST) == 0,
	    "%x", bg.end.status);
	run_clear(&bg);
	/* one that forks as fast as it can */
	session_script(&one,
	    (const char *const[]){
		"sh", "-c", "f() { sleep 0.01 & f & }; f; sleep 30", NULL},
	    ONE);
	one.s.timeout_ms = 400;
	one.s.procs = 100;
	peer_run(&peer, &one);
	CHECK((one.end.flags & (END_TIMED_OUT | END_EMPTY)) ==
		  (END_TIMED_OUT | END_EMPTY),
	    "%x", one.end.flags);
	run_clear(&one);
	CHECK(strcmp(in_out("echo on"), "on\n") == 0, "unexpected");
	CHECK(end_session(ONE) == C_OK, "unexpected");
}

/* The ways in which programs end. */
void
test_session_ends(void)
{
	static const int sigs[] = {1, 2, 3, 6, 9, 11, 13, 14, 15};
	struct run_end e;
	struct run r;
	char text[64];
	size_t i;

	for (i = 0; i < nitems(sigs); i++) {
		snprintf(text, sizeof(text), "kill -%d $$; sleep 1", sigs[i]);
		e = in(text)->end;
		CHECK(WIFSIGNALED(e.status) && WTERMSIG(e.status) == sigs[i],
		    "%d: %x", sigs[i], e.status);
	}
	e = in("exit 137")->end;
	CHECK(WIFEXITED(e.status) && WEXITSTATUS(e.status) == 137, "%x",
	    e.status);
	session_script(&r,
	    (const char *const[]){"sh", "-c", "echo a; sleep 20", NULL}, ONE);
	r.s.idle_ms = 200;
	peer_run(&peer, &r);
	CHECK((r.end.flags & END_IDLE) != 0 && strcmp(r.out, "a\n") == 0, "%x",
	    r.end.flags);
	run_clear(&r);
	r.prog = "/usr/bin/no-such-program";
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND &&
		  r.fail.err == ENOENT,
	    "code %u", r.fail.code);
	r.prog = NULL;
	r.s.flags = SPAWN_NO_FORK;
	r.argv = (const char *const[]){"sh", "-c", "sleep 1; echo no", NULL};
	peer_run(&peer, &r);
	CHECK(!r.failed && strstr(r.out, "no\n") == NULL, "it forked");
	CHECK(
	    strcmp(in_out("sh -c 'echo forks'"), "forks\n") == 0, "unexpected");
	run_clear(&r);
	/* its init cannot be ended from inside; nothing else is */
	r = *in("kill -9 1; kill -STOP 1; kill -TERM 1; kill 1; echo on");
	CHECK(strcmp(r.out, "on\n") == 0, "%s", r.out);
	CHECK(end_session(ONE) == C_OK, "unexpected");
}

/* A sandbox that is ended under its commands: they are lost, and the next one
 * gets a new sandbox. */
static void
lost(const char *how, void (*strike)(void))
{
	struct run r[2];
	double t;
	int i;

	begin(&r[0], "trap '' TERM; sleep 60; : drivemarkd", ONE);
	begin(&r[1], "sh -c 'sleep 60; : drivemarkd'", ONE);
	CHECK(run_marked("drivemarkd", 2), "%s: they do not run", how);
	t = now();
	strike();
	for (i = 0; i < 2; i++) {
		struct run_end e;

		(void)peer_end(&peer, &e);
		run_frames(&r[i]);
		CHECK((e.flags & (END_LOST | END_EMPTY)) ==
			  (END_LOST | END_EMPTY),
		    "%s: %x", how, e.flags);
		run_clear(&r[i]);
	}
	CHECK(now() - t < 2, "%s: %.1f s", how, now() - t);
	CHECK(marked("drivemarkd") == 0, "%s: they live", how);
	CHECK(strcmp(in_out("echo new"), "new\n") == 0, "%s", how);
	CHECK(end_session(ONE) == C_OK, "%s", how);
}

static void
kill_comm(const char *name, int sig)
{
	pid_t pid = below(peer.pid, name);

	if (pid == 0 || kill(pid, sig) == -1)
		die("no %s", name);
}

static void
kill_launcher(void)
{
	kill_comm("abx-launch", SIGKILL);
}

static void
kill_bwrap(void)
{
	kill_comm("bwrap", SIGKILL);
}

static void
kill_super(void)
{
	kill_comm("abx-super", SIGKILL);
}

static void
from_inside(const char *text)
{
	struct run_end e;
	struct run r;

	begin(&r, text, ONE);
	(void)peer_end(&peer, &e);
	run_frames(&r);
	CHECK((e.flags & (END_LOST | END_EMPTY)) == (END_LOST | END_EMPTY) ||
		  WIFSIGNALED(e.status),
	    "%s: %x %x", text, e.status, e.flags);
	run_clear(&r);
}

static void
kill_all_inside(void)
{
	from_inside("kill -9 -1; sleep 5");
}

static void
stop_super_inside(void)
{
	from_inside("kill -STOP $(grep -l abx-super /proc/[0-9]*/comm | "
		    "cut -d/ -f3 | head -1); sleep 5");
}

static void
plain_lost(const char *name)
{
	const char *argv[] = {"sh", "-c", "sleep 60; : drivemarke", NULL};
	struct run r = {0};

	r.argv = argv;
	r.dir = work;
	if (peer_spawn(&peer, &r) != 0)
		die("spawn");
	kill_comm(name, SIGKILL);
	peer_finish(&peer, &r);
	CHECK((r.end.flags & (END_LOST | END_EMPTY)) == (END_LOST | END_EMPTY),
	    "%s: %x", name, r.end.flags);
	CHECK(marked("drivemarke") == 0, "%s: it lives", name);
	run_clear(&r);
}

void
test_session_lost(void)
{
	lost("launcher", kill_launcher);
	lost("bubblewrap", kill_bwrap);
	lost("supervisor", kill_super);
	lost("kill -1 inside", kill_all_inside);
	lost("stopped inside", stop_super_inside);
	plain_lost("abx-launch");
	plain_lost("bwrap");
}

static int
sandboxes_within(int want, double seconds)
{
	double end = now() + seconds;

	while (sandboxes() != want && now() < end)
		usleep(20000);
	return sandboxes() == want;
}

void
remove_git(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s/.git", work);
	if (system(cmd) != 0)
		die("%s", cmd);
}

/* A command whose mounts are others gets a sandbox of its own, beside. */
void
test_session_profiles(void)
{
	struct run r;
	const char *s;

	remove_git(); /* of other tests */
	CHECK(
	    strcmp(in_out("echo rw > /tmp/a; echo on"), "on\n") == 0, "first");
	session_script(&r,
	    (const char *const[]){
		"sh", "-c", "cat /tmp/a; touch no; echo end", NULL},
	    ONE);
	r.ro = 1;
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "end\n") == 0, "%s", r.out);
	run_clear(&r);
	r.ro = 0;
	r.dir = NULL;
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "end\n") == 0, "%s", r.out);
	run_clear(&r);
	CHECK(sandboxes() == 3, "%d sandboxes", sandboxes());
	CHECK(strcmp(in_out("ls no; cat /tmp/a"), "rw\n") == 0, "other mounts");
	CHECK(sandboxes() == 3, "%d sandboxes", sandboxes());
	/* a protected name that a command makes is protected from the next */
	r = *in("mkdir -p .git/hooks; echo evil > .git/hooks/h; echo kept > "
		"/tmp/b");
	CHECK(r.end.nappeared > 5 &&
		  strcmp(r.end.appeared + strlen(r.end.appeared) - 5,
		      "/.git") == 0,
	    "%zu", r.end.nappeared);
	r = *in("echo evil > .git/hooks/i; echo evil > .git/config; "
		"mv .git .h; ls .git/hooks; cat /tmp/b; echo end");
	CHECK(strcmp(r.out, "h\nend\n") == 0, "%s", r.out);
	CHECK(strstr(r.end.appeared, "/.git/config") != NULL &&
		  strlen(r.end.appeared) + 1 == r.end.nappeared,
	    "%zu", r.end.nappeared);
	remove_git();
	CHECK(strcmp(in_out("cat /tmp/a"), "rw\n") == 0, "the first one");
	s = in_out("pwd");
	CHECK(strncmp(s, work, strlen(work)) == 0, "%s", s);
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	CHECK(sandboxes() == 0, "%d sandboxes", sandboxes());
}

/* A sandbox in which nothing runs ends after a while, or makes room. */
void
test_session_idle(void)
{
	struct peer_conf c = conf;
	char name[ABX_WORKSPACE_LEN + 1];
	struct run bg;
	double t;
	int i;

	peer_stop(&peer, SIGKILL);
	c.idle_ms = 300;
	peer_start(&peer, &c);
	begin(&bg, "sleep 6", TWO);
	CHECK(strcmp(in_out("echo a > /tmp/a; echo on"), "on\n") == 0, "first");
	t = now();
	usleep(150000);
	/* unless this process had to wait itself */
	CHECK(strcmp(in_out("cat /tmp/a"), "a\n") == 0 || now() - t > 0.3,
	    "too early");
	CHECK(sandboxes_within(1, 5), "%d sandboxes", sandboxes());
	finish(&bg);
	CHECK(bg.end.status == 0, "the busy one ended: %x", bg.end.status);
	run_clear(&bg);
	CHECK(sandboxes_within(0, 10), "%d sandboxes", sandboxes());
	CHECK(strcmp(in_out("cat /tmp/a; echo new"), "new\n") == 0, "kept");
	peer_stop(&peer, SIGKILL);
	peer_start(&peer, &conf);
	begin(&bg, "sleep 30", ONE);
	for (i = 0; i < 40; i++) {
		struct run r;

		snprintf(name, sizeof(name), "%032x", i);
		begin(&r, "exit 0", name);
		finish(&r);
		run_clear(&r);
	}
	CHECK(sandboxes_within(33, 10), "%d sandboxes", sandboxes());
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	finish(&bg);
	run_clear(&bg);
	CHECK(sandboxes_within(32, 10), "%d sandboxes", sandboxes());
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "%032x", i);
		CHECK(end_session(name) == C_OK, "%s", name);
	}
	CHECK(sandboxes() == 0, "%d sandboxes", sandboxes());
}

void
test_session_end(void)
{
	static const char *const first[] = {"sh", "-c",
	    "trap '' TERM; (setsid sh -c 'sleep 99; : drivemark8' &);"
	    "sleep 99; : drivemark8",
	    NULL};
	static const char *const second[] = {
	    "sh", "-c", "sleep 99; : drivemark9", NULL};
	struct run_end e;
	struct run r[3];
	int i;

	CHECK(end_session(ONE) == C_OK, "there is none");
	session_script(&r[0], first, ONE);
	session_script(&r[1], first, ONE);
	session_script(&r[2], second, TWO);
	for (i = 0; i < 3; i++)
		if (peer_spawn(&peer, &r[i]) != 0)
			die("spawn");
	CHECK(run_marked("drivemark8", 4) && run_marked("drivemark9", 1),
	    "they do not run");
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	CHECK(marked("drivemark8") == 0, "%d are left", marked("drivemark8"));
	CHECK(marked("drivemark9") > 0, "the other session ended");
	for (i = 0; i < 2; i++) {
		(void)peer_end(&peer, &e);
		run_frames(&r[i]);
		CHECK((e.flags & (END_CANCELLED | END_EMPTY)) ==
			  (END_CANCELLED | END_EMPTY),
		    "%x", e.flags);
		run_clear(&r[i]);
	}
	CHECK(end_session(TWO) == C_OK, "something cannot be killed");
	CHECK(marked("drivemark9") == 0, "%d are left", marked("drivemark9"));
	(void)peer_end(&peer, &e);
	run_frames(&r[2]);
	run_clear(&r[2]);
}
