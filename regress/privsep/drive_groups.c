/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd in a delegated control group (-g): commands of a session have
 * groups of their own below the session's, and one that wants too much does
 * not end the others.  test_uml.py starts it where there are controllers.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/wait.h>

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/msg.h"

#define MEMORY (48ULL * 1024 * 1024)
#define PROCS 8

static void
eat(struct run *r, const char *const argv[], const char *session)
{
	session_script(r, argv, session);
	r->s.timeout_ms = 120000;
	r->s.max_output = 10000;
	r->s.memory = MEMORY;
	r->s.procs = PROCS;
}

/* A file of the group whose path below the top ends so; "" when there is
 * none. */
static const char *
group_file(const char *group, const char *name)
{
	static char text[256];
	char path[600];
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/%s", conf.group, group, name);
	if ((f = fopen(path, "r")) != NULL) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text;
}

/* How many groups are directly in one; the name of the last with that
 * prefix. */
static int
groups_in(const char *group, const char *prefix, char last[256])
{
	char path[600];
	struct dirent *de;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", conf.group, group);
	if ((d = opendir(path)) == NULL)
		return 0;
	while ((de = readdir(d)) != NULL)
		if (de->d_type == DT_DIR && de->d_name[0] != '.' &&
		    strncmp(de->d_name, prefix, strlen(prefix)) == 0) {
			strlcpy(last, de->d_name, 256);
			n++;
		}
	closedir(d);
	return n;
}

static void
check_layer(const struct run *r)
{
	CHECK((r->end.layers & LAYER_CGROUP) != 0, "layers %x", r->end.layers);
	CHECK((r->end.flags & END_MEM_CGROUP) != 0, "flags %x", r->end.flags);
}

/* One command at its end, with others of the session beside it. */
static void
one(const char *const argv[], int oom)
{
	struct run r;

	eat(&r, argv, ONE);
	peer_run(&peer, &r);
	CHECK(!r.failed, "code %u errno %d layer %s", r.fail.code, r.fail.err,
	    r.fail.layer);
	check_layer(&r);
	CHECK(((r.end.flags & END_OOM) != 0) == oom, "flags %x", r.end.flags);
	CHECK((r.end.flags & END_LOST) == 0, "flags %x", r.end.flags);
	if (oom)
		CHECK(WIFSIGNALED(r.end.status) &&
			  WTERMSIG(r.end.status) == SIGKILL,
		    "status %x", r.end.status);
	else
		CHECK(r.end.status == 0, "status %x %s%s", r.end.status, r.out,
		    r.err);
	run_clear(&r);
}

/* The group in which a supervisor waits for the next command: another than
 * that of the last. */
static void
placed(const char *session, const char *last, char name[256])
{
	const struct timespec ts = {0, 10000000};
	char path[600];
	int i;

	for (i = 0; i < 500; i++) {
		name[0] = '\0';
		(void)groups_in(session, "r", name);
		snprintf(path, sizeof(path), "%s/%s", session, name);
		if (name[0] != '\0' && strcmp(name, last) != 0 &&
		    group_file(path, "cgroup.procs")[0] != '\0')
			return;
		(void)nanosleep(&ts, NULL);
	}
	CHECK(0, "no group for the next command of %s", session);
}

/* No command waits until its supervisor was moved: that one is in the
 * command's group before there is a command. */
static void
ahead(const char *session)
{
	static const char *const argv[] = {
	    "sh", "-c", "sed 's,.*/,,' /proc/self/cgroup", NULL};
	char name[256], last[256] = "", path[600];
	struct run r;
	int i;

	for (i = 0; i < 3; i++) {
		placed(session, last, name);
		snprintf(path, sizeof(path), "%s/%s", session, name);
		/* none of the last command's */
		CHECK(strcmp(group_file(path, "memory.max"), "max") == 0, "%s",
		    group_file(path, "memory.max"));
		session_script(&r, argv, ONE);
		r.s.memory = MEMORY;
		r.s.procs = PROCS;
		peer_run(&peer, &r);
		CHECK(r.out != NULL &&
			  strncmp(r.out, name, strlen(name)) == 0 &&
			  r.out[strlen(name)] == '\n',
		    "in %s, not %s", r.out, name);
		check_layer(&r);
		run_clear(&r);
		strlcpy(last, name, sizeof(last));
	}
}

/* The child of our execd with that name; 0 when there is none. */
static pid_t
named(const char *comm)
{
	char path[64], text[256];
	struct dirent *de;
	pid_t found = 0;
	const char *p;
	int up;
	size_t n;
	FILE *f;
	DIR *d;

	if ((d = opendir("/proc")) == NULL)
		return 0;
	while (found == 0 && (de = readdir(d)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%.20s/stat", de->d_name);
		if ((f = fopen(path, "r")) == NULL)
			continue;
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[n] = '\0';
		p = strstr(text, comm);
		if (p != NULL &&
		    sscanf(p + strlen(comm), " %*c %d", &up) == 1 &&
		    up == peer.pid)
			found = (pid_t)strtol(de->d_name, NULL, 10);
	}
	closedir(d);
	return found;
}

/* Commands at the same time, each in a group of its own. */
static void
together(int moved)
{
	static const char *const argv[] = {"sh", "-c",
	    "sed 's,.*/,,' /proc/self/cgroup; sleep 1; "
	    "sed 's,.*/,,' /proc/self/cgroup",
	    NULL};
	struct run_end end;
	struct run r[4];
	size_t i, k, n;

	for (i = 0; i < nitems(r); i++) {
		session_script(&r[i], argv, ONE);
		r[i].s.memory = MEMORY;
		r[i].s.procs = PROCS;
		CHECK(peer_spawn(&peer, &r[i]) == 0, "layer %s, moved %d",
		    r[i].fail.layer, moved);
	}
	for (i = 0; i < nitems(r); i++)
		run_frames(&r[i]);
	/* in any order */
	for (i = 0; i < nitems(r); i++)
		(void)peer_end(&peer, &end);
	for (i = 0; i < nitems(r); i++) {
		CHECK(r[i].out != NULL && r[i].end.status == 0, "status %x %s",
		    r[i].end.status, r[i].err);
		check_layer(&r[i]);
	}
	for (i = 0; i < nitems(r); i++) {
		n = r[i].out == NULL ? 0 : strcspn(r[i].out, "\n");
		CHECK(n > 0 && strncmp(r[i].out, r[i].out + n + 1, n) == 0,
		    "%s", r[i].out);
		for (k = 0; k < i; k++)
			CHECK(strcmp(r[i].out, r[k].out) != 0, "twice in %s",
			    r[i].out);
	}
	for (i = 0; i < nitems(r); i++)
		run_clear(&r[i]);
}

/* Without the process that moves others the same is done, by execd itself. */
static void
unmoved(void)
{
	pid_t pid = named("(abx-mover)");
	int i;

	CHECK(pid != 0 && kill(pid, SIGKILL) == 0, "there is no mover");
	for (i = 0; i < 2; i++)
		together(0);
	CHECK(named("(abx-mover)") == 0, "another mover");
}

/* A script in one of the sessions of kept(). */
static void
keeper(struct run *r, int which, const char *text)
{
	static const char *argv[4] = {"sh", "-c", NULL, NULL};
	char name[sizeof(ONE)] = ONE;

	name[0] = (char)('a' + which);
	argv[2] = text;
	session_script(r, argv, name);
	peer_run(&peer, r);
	CHECK(!r->failed && r->end.status == 0, "code %u status %x %s",
	    r->fail.code, r->end.status, r->err == NULL ? "" : r->err);
}

/* What sandboxes without a run keep in their /tmp is bounded in all. */
static void
kept(void)
{
	char name[sizeof(ONE)] = ONE;
	struct run r;
	int i, n = 0;

	for (i = 0; i < 4; i++) {
		keeper(&r, i, "head -c 60000000 /dev/zero >/tmp/kept");
		run_clear(&r);
	}
	sleep(4); /* until each was looked at */
	for (i = 0; i < 4; i++) {
		keeper(&r, i, "test ! -e /tmp/kept || echo kept");
		n += r.out != NULL && strcmp(r.out, "kept\n") == 0;
		run_clear(&r);
		name[0] = (char)('a' + i);
		CHECK(end_session(name) == C_OK, "unexpected");
	}
	CHECK(n == 2, "%d kept what they had", n);
}

void
test_groups(void)
{
	static const char *const hold[] = {"abx-eat", "hold", "8", "60", NULL};
	static const char *const fits[] = {"abx-eat", "memory", "24", NULL};
	static const char *const large[] = {"abx-eat", "memory", "80", NULL};
	static const char *const forks[] = {
	    "abx-eat", "processes", "40", "1", NULL};
	char session[256] = "", name[256] = "", path[600];
	const uint8_t term = SIGTERM;
	struct run bg, r;
	int i;

	CHECK((peer.hello.layers & LAYER_CGROUP) != 0, "layers %x",
	    peer.hello.layers);
	eat(&bg, hold, ONE);
	CHECK(peer_spawn(&peer, &bg) == 0, "layer %s", bg.fail.layer);
	CHECK(groups_in(".", "1-s", session) == 1, "%s", session);
	CHECK(groups_in(session, "own", name) == 1, "no group of the launcher");
	CHECK(groups_in(session, "", name) == 2, "last %s", name);
	snprintf(
	    path, sizeof(path), "%s/%llu", session, (unsigned long long)bg.id);
	CHECK(strcmp(group_file(path, "memory.max"), "50331648") == 0, "%s",
	    group_file(path, "memory.max"));
	/* its supervisor is in it, and must outlive it */
	CHECK(strcmp(group_file(path, "pids.max"), "9") == 0, "%s",
	    group_file(path, "pids.max"));
	CHECK(strcmp(group_file(path, "memory.oom.group"), "0") == 0, "%s",
	    group_file(path, "memory.oom.group"));
	CHECK(strcmp(group_file(session, "cgroup.procs"), "") == 0,
	    "a process between the groups");
	one(fits, 0);
	ahead(session);
	for (i = 0; i < 2; i++)
		together(1);
	one(large, 1);
	one(fits, 0);
	/* all in the same sandbox, whose first command still runs */
	CHECK(groups_in(".", "1-s", name) == 1 && strcmp(name, session) == 0,
	    "another sandbox: %s", name);
	eat(&r, forks, ONE);
	peer_run(&peer, &r);
	CHECK(r.out != NULL && strncmp(r.out, "forked 7 errno 11\n", 18) == 0,
	    "%s", r.out);
	run_clear(&r);
	peer_send(&peer, ME_SIGNAL, bg.id, -1, &term, 1);
	peer_finish(&peer, &bg);
	CHECK(WIFSIGNALED(bg.end.status) &&
		  WTERMSIG(bg.end.status) == SIGTERM &&
		  !(bg.end.flags & END_OOM),
	    "status %x flags %x", bg.end.status, bg.end.flags);
	check_layer(&bg);
	run_clear(&bg);
	/* and one that has a sandbox of its own */
	eat(&r, large, "");
	peer_run(&peer, &r);
	CHECK((r.end.flags & END_OOM) != 0 && (r.end.flags & END_LOST) == 0,
	    "flags %x", r.end.flags);
	run_clear(&r);
	kept();
	unmoved();
}
