/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd: many commands in a row and at once, each with exactly its
 * output, and what execd holds afterwards.  ABX_LONG asks for the long form.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/wait.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"

#define AT_ONCE 64
#define GROWTH_KB 512 /* of execd's memory, that is no leak */
#define TRIES 4

/* What execd holds. */
struct held {
	int descriptors; /* only root sees them, else 0 */
	int processes;	 /* below it, zombies too */
	int mounts;
	long kb; /* of its own memory */
};

static int
lines(const char *path)
{
	char text[4096];
	int fd, n = 0;
	ssize_t i, len;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		return 0;
	while ((len = read(fd, text, sizeof(text))) > 0)
		for (i = 0; i < len; i++)
			n += text[i] == '\n';
	close(fd);
	return n;
}

static int
descriptors(void)
{
	char path[64];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", peer.pid);
	if ((d = opendir(path)) == NULL)
		return 0;
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static int
processes(void)
{
	char text[4096];
	struct dirent *de;
	pid_t up;
	int n = 0;
	DIR *d;

	if ((d = opendir("/proc")) == NULL)
		die("/proc");
	while ((de = readdir(d)) != NULL) {
		up = atoi(de->d_name);
		if (up <= 0 || up == peer.pid)
			continue;
		do
			up = (pid_t)field(
			    up, "status", "PPid:\t", text, sizeof(text));
		while (up > 1 && up != peer.pid);
		n += up == peer.pid;
	}
	closedir(d);
	return n;
}

static void
look(struct held *h)
{
	double end = now() + COMES_S;
	char path[64], text[4096];

	/* the teardown of the last one: until nothing changes any more */
	do {
		h->processes = processes();
		h->descriptors = descriptors();
		usleep(300000);
	} while (
	    (h->processes != processes() || h->descriptors != descriptors()) &&
	    now() < end);
	snprintf(path, sizeof(path), "/proc/%d/mounts", peer.pid);
	h->mounts = lines(path);
	h->kb = field(peer.pid, "status", "RssAnon:\t", text, sizeof(text));
}

static void
compare(const struct held *a, const struct held *b)
{
	CHECK(a->descriptors == b->descriptors, "descriptors: %d, then %d",
	    a->descriptors, b->descriptors);
	CHECK(a->processes == b->processes, "processes: %d, then %d",
	    a->processes, b->processes);
	CHECK(a->mounts == b->mounts, "mounts: %d, then %d", a->mounts,
	    b->mounts);
}

static void
prepare(struct run *r, const char *const argv[], const char *session)
{
	session_script(r, argv, session);
	r->s.max_output = 1000;
	r->s.timeout_ms = 60000;
}

static void
in_a_row(int n, const char *session)
{
	const char *argv[] = {"sh", "-c",
	    "echo out $1; echo err $1 >&2; exit 7", "sh", NULL, NULL};
	char num[16], o[32], e[32];
	struct run r;
	int i;

	argv[4] = num;
	prepare(&r, argv, session);
	for (i = 0; i < n; i++) {
		snprintf(num, sizeof(num), "%d", i);
		snprintf(o, sizeof(o), "out %d\n", i);
		snprintf(e, sizeof(e), "err %d\n", i);
		peer_run(&peer, &r);
		CHECK(!r.failed && strcmp(r.out, o) == 0 &&
			  strcmp(r.err, e) == 0 && WIFEXITED(r.end.status) &&
			  WEXITSTATUS(r.end.status) == 7,
		    "%d: failed %d %x %s%s", i, r.failed, r.end.status, r.out,
		    r.err);
		if (failures > 5)
			break;
	}
	run_clear(&r);
}

static void
at_once(const char *session)
{
	static struct run r[AT_ONCE];
	static char num[AT_ONCE][16];
	static const char *argv[AT_ONCE][6];
	struct run_end e;
	char want[32];
	int i;

	for (i = 0; i < AT_ONCE; i++) {
		snprintf(num[i], sizeof(num[i]), "%d", i);
		argv[i][0] = argv[i][3] = "sh";
		argv[i][1] = "-c";
		argv[i][2] = "sleep 0.5; echo $1";
		argv[i][4] = num[i];
		prepare(&r[i], argv[i], session);
		if (peer_spawn(&peer, &r[i]) != 0)
			die("spawn %d: code %u errno %d layer %s", i,
			    r[i].fail.code, r[i].fail.err, r[i].fail.layer);
	}
	for (i = 0; i < AT_ONCE; i++)
		run_frames(&r[i]);
	for (i = 0; i < AT_ONCE; i++) {
		(void)peer_end(&peer, &e);
		snprintf(want, sizeof(want), "%d\n", i);
		CHECK(e.status == 0 && r[i].end.status == 0 &&
			  strcmp(r[i].out, want) == 0,
		    "%x %s", e.status, r[i].out);
		run_clear(&r[i]);
	}
}

/* So many in a row, or for 0 many at once, and nothing is kept.  On a busy
 * machine more may wait at the same time than ever before, so memory may grow
 * once or twice; what leaks grows each time. */
static void
grows(struct held *a, int n, const char *session)
{
	struct held b;
	int i;

	for (i = 0; i < TRIES; i++) {
		if (n > 0)
			in_a_row(n, session);
		else
			at_once(session);
		look(&b);
		compare(a, &b);
		/* with sanitizers what is freed is kept for a while */
		if (b.kb <= a->kb + GROWTH_KB ||
		    strstr(conf.build, "asan") != NULL)
			return;
		printf("memory: %ld KiB, then %ld\n", a->kb, b.kb);
		a->kb = b.kb;
	}
	CHECK(0, "memory grows each time, to %ld KiB", a->kb);
}

static void
many(const char *session)
{
	int n = getenv("ABX_LONG") != NULL ? 1000 : 60;
	struct held before;
	int i;

	/* the allocator and the session's sandbox find their size first */
	in_a_row(20, session);
	for (i = 0; i < 4; i++)
		at_once(session);
	look(&before);
	grows(&before, n, session);
	grows(&before, 0, session);
}

void
test_many(void)
{
	many("");
	CHECK(processes() == 0, "%d processes are left", processes());
}

void
test_many_session(void)
{
	many("00112233445566778899aabbccddeeff");
	/* bubblewrap, the launcher, supervisors that wait */
	CHECK(processes() == 2 + 4 && sandboxes() == 1, "%d processes in %d",
	    processes(), sandboxes());
}
