/*
 * SPDX-License-Identifier: ISC
 *
 * Attackers change what paths name while clients of a running service read,
 * write, list, make, move, delete and run there.  What lies outside must never
 * show in an answer nor change in any way, and a plain open(2) beside it must
 * have been fooled, else nothing was proved.
 *
 *	race [-b directory of the programs] [-c stand-in without openat2]
 *	    [-u who starts abxd]
 *
 * ABX_LONG=1: a minute for each attack instead of a few seconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "regress/race/race.h"

#define CLIENTS 2
#define SHORT_S 5
#define LONG_S 60

static const char *build = "build", *components, *user;
static struct stage st;
static struct tally *tally, *before; /* this race; all that ended */

/* ---- what lies outside ---- */

static uint64_t sum;

static void
mix(const void *p, size_t n)
{
	const uint8_t *q = p;

	while (n-- > 0)
		sum = (sum ^ *q++) * 1099511628211ULL;
}

static int
sum_cb(const char *path, const struct stat *s, int flag, struct FTW *ftw)
{
	char buf[4096];
	ssize_t n;
	int fd;

	mix(path, strlen(path));
	mix(&s->st_mode, sizeof(s->st_mode));
	mix(&s->st_ino, sizeof(s->st_ino));
	mix(&s->st_nlink, sizeof(s->st_nlink));
	mix(&s->st_size, sizeof(s->st_size));
	/* a name that came and went shows in its directory's times */
	mix(&s->st_mtim, sizeof(s->st_mtim));
	mix(&s->st_ctim, sizeof(s->st_ctim));
	if (flag != FTW_F)
		return 0;
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) == -1)
		die("%s", path);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		mix(buf, (size_t)n);
	close(fd);
	return 0;
}

static uint64_t
sum_of(const char *rel)
{
	sum = 14695981039346656037ULL;
	if (nftw(stage_path(&st, rel), sum_cb, 32, FTW_PHYS) == -1)
		die("%s", rel);
	return sum;
}

/* The same names as the attackers use, each with the marker. */
static void
fill_outside(const char *top)
{
	static const char *const dirs[] = {"p", "m", "m/x", "m/x/y", "m/x/y/z",
	    "e", "t", "t/a", "t/b", "t/b/c", "t/d", "n"};
	static const char *const files[] = {"p/f", "m/x/y/z/f", "e/f", "t/a/f",
	    "t/b/f", "t/b/c/f", "t/d/f", "t/f", "n/f", "f"};
	char rel[256];
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(rel, sizeof(rel), "%s/%s", top, dirs[i]);
		stage_mkdir(&st, rel);
		/* a name that no listing may show */
		snprintf(rel, sizeof(rel), "%s/%s/" MARKER, top, dirs[i]);
		stage_put(&st, rel, MARKER);
	}
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(rel, sizeof(rel), "%s/%s", top, files[i]);
		stage_put(&st, rel, MARKER "\n");
	}
}

/* Nothing of it may lie in the files of w, whoever put it there: 1 when it
 * does.  Links are not followed, and w/v is not served. */
static int
held_cb(const char *path, const struct stat *s, int flag, struct FTW *ftw)
{
	static char buf[1 << 20];
	const char *v = stage_path(&st, "w/v");
	ssize_t n;
	int fd, found;

	if (strncmp(path, v, strlen(v)) == 0 || flag != FTW_F ||
	    !S_ISREG(s->st_mode))
		return 0;
	if ((fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) == -1)
		return 0;
	n = read(fd, buf, sizeof(buf));
	close(fd);
	found = n > 0 && memmem(buf, (size_t)n, MARKER, strlen(MARKER)) != NULL;
	if (found)
		fprintf(stderr, "leak: %s\n", path);
	return found;
}

static int
held_inside(void)
{
	return nftw(stage_path(&st, "w"), held_cb, 32, FTW_PHYS) == 1;
}

/* ---- processes of a race ---- */

static int
running(void)
{
	return !__atomic_load_n(&tally->stop, __ATOMIC_RELAXED);
}

static void
attack(const struct attack *a)
{
	int fd = open(stage_path(&st, "w"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	while (running()) {
		a->move(fd);
		__atomic_add_fetch(&tally->moves, 1, __ATOMIC_RELAXED);
	}
	tally->planted = attack_planted;
}

static void
client(const struct attack *a, int which)
{
	unsigned n;

	for (n = 0; running(); n++)
		client_round(&st, tally, a, which, n);
}

/* What a service that trusts names would have sent. */
static void
naive(const struct attack *a)
{
	char rel[256], buf[64];
	ssize_t n;
	int fd;

	snprintf(rel, sizeof(rel), "w/%s", a->file);
	while (running()) {
		nap_ms(1);
		if ((fd = open(stage_path(&st, rel), O_RDONLY | O_CLOEXEC)) ==
		    -1)
			continue;
		n = read(fd, buf, sizeof(buf));
		close(fd);
		if (n > 0 && memmem(buf, (size_t)n, MARKER, strlen(MARKER)))
			tally->naive++;
		else
			tally->naive_ok++;
	}
}

/* Who takes part: 0 attacks, 1 is naive, the others are clients. */
static pid_t
take_part(const struct attack *a, int who)
{
	pid_t self = getpid(), pid = fork();

	if (pid == -1)
		die("fork");
	if (pid > 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != self)
		_exit(1);
	if (who == 0)
		attack(a);
	else if (who == 1)
		naive(a);
	else
		client(a, who);
	_exit(0);
}

/* What was called at all, and what of it came through once. */
static void
note_ops(void)
{
	size_t i;

	for (i = 0; i < client_nops; i++) {
		if (tally->op_done[i] + tally->op_refused[i] == 0) {
			fprintf(stderr, "never called: %s\n", client_ops[i]);
			tally->wrong++;
		}
		before->op_done[i] += tally->op_done[i];
	}
}

static void
race(const struct attack *a)
{
	pid_t pids[2 + CLIENTS];
	size_t i, n = sizeof(pids) / sizeof(pids[0]);
	int status, seconds = SHORT_S;

	if (getenv("ABX_LONG") != NULL)
		seconds = LONG_S;
	memset(tally, 0, sizeof(*tally));
	for (i = 0; i < n; i++)
		pids[i] = take_part(a, (int)i);
	nap_ms(seconds * 1000);
	__atomic_store_n(&tally->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < n; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	print_message("%s: %llu moves, %llu calls done, %llu refused, %llu "
		      "unavailable; open(2) fooled %llu of %llu times\n",
	    a->name, (unsigned long long)tally->moves,
	    (unsigned long long)tally->done, (unsigned long long)tally->refused,
	    (unsigned long long)tally->faults, (unsigned long long)tally->naive,
	    (unsigned long long)(tally->naive + tally->naive_ok));
}

static void
test_attack(void **state)
{
	static const char *const kids[] = {
	    "abx-listener", "abx-monitor", "abx-pathd", "abx-execd"};
	const struct attack *a = *state;
	uint64_t r = sum_of("r"), v = sum_of("w/v");
	pid_t pid[4];
	size_t i;

	for (i = 0; i < 4; i++)
		pid[i] = stage_kid(&st, kids[i]);
	race(a);
	assert_int_equal(tally->leaks, 0);
	assert_int_equal(tally->internal, 0);
	note_ops();
	assert_int_equal(tally->wrong, 0);
	assert_false(held_inside());
	assert_true(sum_of("r") == r);
	assert_true(sum_of("w/v") == v);
	assert_true(tally->done > 0 && tally->moves > 100);
	if (strcmp(a->name, "names") == 0)
		assert_true(tally->planted > 0);
	else
		assert_true(tally->naive > 0 && tally->refused > 0);
	/* nobody died of it */
	for (i = 0; i < 4; i++)
		assert_int_equal(stage_kid(&st, kids[i]), pid[i]);
	assert_int_equal(
	    http_call(&st, TOKEN_A, "GET", "/health", NULL, NULL), 200);
}

/* ---- the stage ---- */

static int
begin(void **state)
{
	size_t i;

	tally = mmap(NULL, 2 * sizeof(*tally), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tally == MAP_FAILED)
		die("mmap");
	before = tally + 1;
	stage_new(&st, build, user);
	if (components != NULL)
		stage_replace(&st, "abx-pathd", components);
	fill_outside("r");
	stage_mkdir(&st, "w/v");
	fill_outside("w/v");
	for (i = 0; i < nattacks; i++)
		attacks[i].prepare(&st);
	stage_conf(&st,
	    "\"rules\":[{\"allow\":[\"core.health\"]},"
	    "{\"allow\":[\"files.list\",\"files.stat\",\"files.download\","
	    "\"files.upload\",\"files.mkdir\",\"files.move\","
	    "\"files.delete\",\"files.copy\",\"files.edit\","
	    "\"files.search\",\"files.export\",\"files.archive\","
	    "\"files.import\",\"files.watch\"],"
	    "\"principals\":\"id:alice\","
	    "\"paths\":{\"roots\":[\"@/w\"],\"deny\":[\"@/w/v\"]}},"
	    "{\"allow\":[\"commands.run\"],\"principals\":\"id:alice\","
	    "\"commands\":{\"allow\":[\"cat f\",\"ls\"],"
	    "\"cwd\":{\"roots\":[\"@/w\"],\"deny\":[\"@/w/v\"]}}},"
	    "{\"allow\":[\"files.download\",\"files.upload\"],"
	    "\"principals\":\"id:bob\",\"paths\":{\"roots\":[\"@/r\"]}},"
	    "{\"allow\":[\"commands.run\"],\"principals\":\"id:bob\","
	    "\"commands\":{\"allow\":[\"ls\"],"
	    "\"cwd\":{\"roots\":[\"@/r\"]}}}]");
	stage_start(&st, 1);
	assert_int_equal(
	    stage_logged(&st, components != NULL ? "walking with components"
						 : "walking with openat2"),
	    1);
	return 0;
}

/* An operation that never once came through was not attacked either. */
static int
finish(void **state)
{
	int r = 0;
	size_t i;

	for (i = 0; i < client_nops; i++)
		if (before->op_done[i] == 0) {
			fprintf(stderr, "never done: %s\n", client_ops[i]);
			r = -1;
		}
	stage_free(&st);
	return r;
}

int
main(int argc, char **argv)
{
	struct CMUnitTest tests[8] = {{0}};
	const char *name = "race";
	size_t i;
	int c;

	while ((c = getopt(argc, argv, "b:c:u:")) != -1)
		switch (c) {
		case 'b':
			build = optarg;
			break;
		case 'u':
			user = optarg;
			break;
		case 'c':
			components = optarg;
			name = "race_components";
			break;
		default:
			fprintf(stderr,
			    "usage: race [-b dir] [-c program] [-u user]\n");
			return 2;
		}
	for (i = 0; i < nattacks; i++) {
		tests[i].name = attacks[i].name;
		tests[i].test_func = test_attack;
		tests[i].initial_state = (void *)(uintptr_t)&attacks[i];
	}
	return _cmocka_run_group_tests(name, tests, nattacks, begin, finish);
}
