/*
 * SPDX-License-Identifier: ISC
 *
 * Control groups: what is read of their files, and what execd writes and
 * reads back, on plain directories that stand in for them.  The kernel's own
 * are in integration/test_uml.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/cg.h"
#include "execd/cgroup.h"

static void
test_own(void **state)
{
	static const struct {
		const char *text, *path;
	} t[] = {
	    {"0::/\n", "/"},
	    {"0::/system.slice/x.service\n", "/system.slice/x.service"},
	    {"4:memory:/a\n1:name=systemd:/b\n0::/c\n", "/c"},
	    {"10::/a\n0::/b\n", "/b"},
	    {"0::/a..b/..c\n", "/a..b/..c"},
	    {"4:memory:/a\n", NULL},
	    {"", NULL},
	    {"0::", NULL},
	    {"0::\n", NULL},
	    {"0::a\n", NULL},
	    {"0::/a", NULL},
	    {"0::/../a\n", NULL},
	    {"0::/a/../b\n", NULL},
	    {"0::/..\n", NULL},
	    {"0::/a/..\n", NULL},
	    {"0::/a (deleted)\n", NULL},
	    {"0::/longer/than/there/is/room/for\n", NULL},
	};
	char path[26];
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		if (t[i].path == NULL) {
			assert_int_equal(
			    cg_own(t[i].text, path, sizeof(path)), -1);
			continue;
		}
		assert_int_equal(cg_own(t[i].text, path, sizeof(path)), 0);
		assert_string_equal(path, t[i].path);
	}
}

static void
test_number(void **state)
{
	static const char events[] = "low 0\noom 3\noom_kill 12\n"
				     "oom_group_kill 1\nbad x\nlast 7";
	static const struct {
		const char *key;
		int rc;
		uint64_t n;
	} t[] = {{"low", 0, 0}, {"oom", 0, 3}, {"oom_kill", 0, 12},
	    {"last", 0, 7}, {"bad", -1, 0}, {"kill", -1, 0}, {"oom_", -1, 0},
	    {"", -1, 0}};
	uint64_t n;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		assert_int_equal(cg_number(events, t[i].key, &n), t[i].rc);
		if (t[i].rc == 0)
			assert_int_equal(n, t[i].n);
	}
	assert_int_equal(cg_number("a 99999999999999999999999\n", "a", &n), -1);
	assert_true(cg_has("cpu io memory\n", "memory"));
	assert_true(cg_has("cpu", "cpu"));
	assert_false(cg_has("cpuset io memory", "cpu"));
	assert_false(cg_has("", "cpu"));
}

/* ---- a directory that stands in for "exec" ---- */

static char top[64];

static void
put(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static char *
get(const char *name)
{
	static char text[256];
	char path[256];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", top, name);
	f = fopen(path, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static void
make(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	assert_int_equal(mkdir(path, 0700), 0);
}

static int
set_up(void **state)
{
	strlcpy(top, "/tmp/abx-test-cgroup-XXXXXX", sizeof(top));
	return mkdtemp(top) == NULL;
}

static int
tear_down(void **state)
{
	char cmd[128];

	cgroup_off();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", top);
	return system(cmd) != 0;
}

/* As an execd of generation 3 finds it. */
static void
begin(const char *controllers, uint32_t cpu)
{
	int fd;

	put("cgroup.subtree_control", controllers);
	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_not_equal(fd, -1);
	cgroup_init(fd, 3, cpu);
	assert_int_not_equal(cgroup_can(), 0);
}

static void
fill(const char *dir)
{
	static const char *const names[] = {"memory.max", "memory.swap.max",
	    "memory.oom.group", "pids.max", "cpu.max", "cgroup.procs",
	    "cgroup.kill"};
	char name[128];
	size_t i;

	make(dir);
	for (i = 0; i < nitems(names); i++) {
		snprintf(name, sizeof(name), "%s/%s", dir, names[i]);
		put(name, "");
	}
}

static void
test_off(void **state)
{
	const struct cgroup_limits l = {1 << 20, 7, 1};
	struct cgroup *g;

	cgroup_init(-1, 3, 50);
	assert_int_equal(cgroup_can(), 0);
	assert_int_equal(cgroup_new(&g, NULL, "7"), 0);
	assert_null(g);
	/* and all the rest does nothing */
	assert_int_equal(cgroup_limits(g, &l), 0);
	assert_int_equal(cgroup_holds(g), 0);
	assert_int_equal(cgroup_layer(g), 0);
	assert_int_equal(cgroup_fd(g), -1);
	assert_int_equal(cgroup_put_pid(g, 1), 0);
	assert_int_equal(cgroup_oom(g) + cgroup_peak(g), 0);
	cgroup_kill(g);
	cgroup_free(g, 1);
	assert_int_equal(cgroup_sweep(), 0);
}

static void
test_limits(void **state)
{
	const struct cgroup_limits l = {64 * 1024 * 1024 + 1, 12, 1};
	struct cgroup *g;

	fill("3-7");
	begin("cpu memory pids\n", 150);
	assert_int_equal(cgroup_new(&g, NULL, "7"), 0);
	assert_non_null(g);
	assert_int_equal(cgroup_limits(g, &l), 0);
	assert_string_equal(get("3-7/memory.max"), "67108864");
	assert_string_equal(get("3-7/memory.swap.max"), "0");
	assert_string_equal(get("3-7/memory.oom.group"), "1");
	assert_string_equal(get("3-7/pids.max"), "12");
	assert_string_equal(get("3-7/cpu.max"), "150000 100000");
	assert_int_equal(
	    cgroup_holds(g), CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU);
	assert_true(cgroup_layer(g));
	assert_int_equal(cgroup_put_pid(g, 4711), 0);
	assert_string_equal(get("3-7/cgroup.procs"), "4711");
	cgroup_kill(g);
	assert_string_equal(get("3-7/cgroup.kill"), "1");
	/* without such files nothing is known */
	assert_int_equal(cgroup_oom(g), 0);
	assert_int_equal(cgroup_peak(g), 0);
	put("3-7/memory.events", "oom 9\noom_kill 2\n");
	put("3-7/memory.peak", "123456\n");
	assert_int_equal(cgroup_oom(g), 2);
	assert_int_equal(cgroup_peak(g), 123456);
	cgroup_free(g, 1);
}

/* What the kernel says afterwards is what counts. */
static void
test_read_back(void **state)
{
	static const char *const names[] = {
	    "memory.max", "memory.oom.group", "pids.max", "cpu.max"};
	const struct cgroup_limits l = {1 << 20, 5, 1};
	struct cgroup *g;
	char name[64], run[8];
	size_t i;

	begin("cpu memory pids", 20);
	for (i = 0; i < nitems(names); i++) {
		snprintf(run, sizeof(run), "%zu", i);
		snprintf(name, sizeof(name), "3-%zu", i);
		fill(name);
		snprintf(name, sizeof(name), "3-%zu/%s", i, names[i]);
		/* longer than what is written over it */
		put(name, "                    max");
		assert_int_equal(cgroup_new(&g, NULL, run), 0);
		assert_int_equal(cgroup_limits(g, &l), -1);
		assert_int_equal(errno, EIO);
		assert_false(cgroup_layer(g));
		cgroup_free(g, 1);
	}
}

/* A controller that is not there holds nothing, and says so. */
static void
test_controllers(void **state)
{
	const struct cgroup_limits l = {1 << 20, 5, 1};
	struct cgroup *g;

	fill("3-1");
	begin("pids cpuset", 20);
	assert_int_equal(cgroup_new(&g, NULL, "1"), 0);
	assert_int_equal(cgroup_limits(g, &l), 0);
	assert_int_equal(cgroup_holds(g), CGROUP_PIDS);
	assert_false(cgroup_layer(g));
	assert_string_equal(get("3-1/memory.max"), "");
	cgroup_free(g, 1);
}

/* T092: without swap there is no file, which is no failure; others are. */
static void
test_absent(void **state)
{
	const struct cgroup_limits l = {1 << 20, 5, 1};
	char path[128];
	struct cgroup *g;

	fill("3-1");
	begin("memory pids", 0);
	snprintf(path, sizeof(path), "%s/3-1/memory.swap.max", top);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(cgroup_new(&g, NULL, "1"), 0);
	assert_int_equal(cgroup_limits(g, &l), 0);
	assert_true(cgroup_layer(g));
	snprintf(path, sizeof(path), "%s/3-1/pids.max", top);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(cgroup_limits(g, &l), -1);
	assert_int_equal(errno, ENOENT);
	cgroup_free(g, 1);
}

static void
test_names(void **state)
{
	static const char *const bad[] = {
	    "", "..", ".", "a/b", "A", "a b", "cgroup.procs", "\n"};
	char *long_name;
	struct cgroup *g, *in;
	struct stat st;
	char path[256];
	size_t i;

	begin("pids", 0);
	for (i = 0; i < nitems(bad); i++) {
		assert_int_equal(cgroup_new(&g, NULL, bad[i]), -1);
		assert_int_equal(errno, EINVAL);
	}
	long_name = malloc(201);
	assert_non_null(long_name);
	memset(long_name, 'a', 200);
	long_name[200] = '\0';
	assert_int_equal(cgroup_new(&g, NULL, long_name), -1);
	assert_int_equal(errno, ENAMETOOLONG);
	free(long_name);
	/* a session, and a command in it: its controllers count below */
	assert_int_equal(cgroup_new(&g, NULL, "s-0af"), 0);
	put("3-s-0af/cgroup.subtree_control", "");
	assert_int_equal(cgroup_new(&in, g, "12"), 0);
	assert_string_equal(get("3-s-0af/cgroup.subtree_control"), "+pids");
	snprintf(path, sizeof(path), "%s/3-s-0af/12", top);
	assert_int_equal(stat(path, &st), 0);
	cgroup_free(in, 0);
	assert_int_equal(stat(path, &st), -1);
	snprintf(path, sizeof(path), "%s/3-s-0af/cgroup.subtree_control", top);
	assert_int_equal(unlink(path), 0);
	cgroup_free(g, 1);
	snprintf(path, sizeof(path), "%s/3-s-0af", top);
	assert_int_equal(stat(path, &st), -1);
}

static void
test_remove(void **state)
{
	char **names;
	size_t n, i;
	int fd;

	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_not_equal(fd, -1);
	make("3-1");
	make("3-1/a");
	make("3-1/a/b");
	make("3-2");
	make("33-3");
	assert_int_equal(cg_below(fd, "3-", &names, &n), 0);
	assert_int_equal(n, 2);
	for (i = 0; i < n; i++) {
		assert_int_equal(cg_remove(fd, names[i]), 0);
		assert_int_equal(cg_remove(fd, names[i]), -1);
		assert_int_equal(errno, ENOENT);
		free(names[i]);
	}
	free(names);
	/* a link is no group */
	assert_int_equal(symlinkat("33-3", fd, "3-4"), 0);
	assert_int_equal(cg_open(fd, "3-4", 0), -1);
	assert_int_equal(cg_remove(fd, "3-4"), -1);
	assert_int_equal(cg_below(fd, "3", &names, &n), 0);
	assert_int_equal(n, 1);
	free(names[0]);
	free(names);
	close(fd);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_own),
	    cmocka_unit_test(test_number), T(test_off), T(test_limits),
	    T(test_read_back), T(test_controllers), T(test_absent),
	    T(test_names), T(test_remove)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
