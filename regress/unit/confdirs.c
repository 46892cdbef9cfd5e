/*
 * SPDX-License-Identifier: ISC
 *
 * Where the service's own directories are, and what makes a state directory
 * unfit.
 */
#include <sys/stat.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor/confdirs.h"
#include "policy/model.h"

static void
test_default(void **state)
{
	static const struct {
		int root;
		const char *env[3];
		const char *dir;
	} rows[] = {
	    {1, {"HOME=/root", NULL}, "/var/lib/agent-sandbox"},
	    {0, {"HOME=/home/u", NULL}, "/home/u/.local/state/agent-sandbox"},
	    {0, {"HOME=/home/u", "XDG_STATE_HOME=/s", NULL},
		"/s/agent-sandbox"},
	    {0, {"HOME=/home/u", "XDG_STATE_HOME=rel", NULL},
		"/home/u/.local/state/agent-sandbox"},
	};
	char *dir, *work, want[128];
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		assert_int_equal(
		    confdirs_default(rows[i].root, rows[i].env, &dir, &work),
		    0);
		assert_string_equal(dir, rows[i].dir);
		snprintf(want, sizeof(want), "%s-workspaces", rows[i].dir);
		assert_string_equal(work, want);
		free(dir);
		free(work);
	}
}

static void
test_run(void **state)
{
	static const struct {
		int root;
		const char *env[2];
		const char *file, *want;
	} rows[] = {
	    {1, {NULL}, CONFFILE_DEFAULT, "/run/agent-sandbox"},
	    {1, {"RUNTIME_DIRECTORY=/run/x:/run/y", NULL}, "/a/b.json",
		"/run/x"},
	    {0, {"XDG_RUNTIME_DIR=/run/user/7", NULL}, CONFFILE_DEFAULT,
		"/run/user/7/agent-sandbox"},
	    {0, {"XDG_RUNTIME_DIR=/run/user/7", NULL}, "/a/b.json", "/s-run"},
	    {0, {NULL}, CONFFILE_DEFAULT, "/s-run"},
	};
	char *got;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		got =
		    confdirs_run(rows[i].root, rows[i].env, rows[i].file, "/s");
		assert_string_equal(got, rows[i].want);
		free(got);
	}
}

static void
test_within(void **state)
{
	static const struct {
		const char *path, *dir;
		int want;
	} rows[] = {
	    {"/a", "/a", 1},
	    {"/a/b", "/a", 1},
	    {"/ab", "/a", 0},
	    {"/a", "/a/b", 0},
	    {"/a", "/", 1},
	};
	size_t i;

	for (i = 0; i < nitems(rows); i++)
		assert_int_equal(
		    confdirs_within(rows[i].path, rows[i].dir), rows[i].want);
}

static void
test_canonical(void **state)
{
	char dir[] = "/tmp/abx-unit-XXXXXX", link[64], path[96], want[96];
	char *got;

	assert_non_null(mkdtemp(dir));
	snprintf(link, sizeof(link), "%s/l", dir);
	assert_int_equal(symlink("/usr", link), 0);
	snprintf(path, sizeof(path), "%s/no/such", link);
	got = confdirs_canonical(path);
	assert_string_equal(got, "/usr/no/such");
	free(got);
	snprintf(path, sizeof(path), "%s/x", dir);
	snprintf(want, sizeof(want), "%s/x", dir);
	got = confdirs_canonical(path);
	assert_string_equal(got, want);
	free(got);
	got = confdirs_canonical("/no-such-thing/x");
	assert_string_equal(got, "/no-such-thing/x");
	free(got);
	got = confdirs_canonical("/");
	assert_string_equal(got, "/");
	free(got);
	assert_null(confdirs_canonical("x"));
	unlink(link);
	rmdir(dir);
}

/* A deny says the same of the place where its directory really lies. */
static void
test_respell(void **state)
{
	static const struct {
		const char *glob, *more; /* below the base; "" for none */
	} t[] = {{"/link", "/real"}, {"/link/a", "/real/a"},
	    {"/link/", "/real"}, {"/link/**", "/real/**"},
	    {"/link/a*/b", "/real/a*/b"}, {"/link/no/such", "/real/no/such"},
	    {"/real/a", ""}, {"/lin*/a", ""}, {"/odd/a*", "/r[[]1]/a*"}};
	char base[] = "/tmp/abx-unit-XXXXXX", path[128], want[128];
	struct strlist l = {NULL, 0};
	size_t i;

	assert_non_null(mkdtemp(base));
	snprintf(path, sizeof(path), "%s/real", base);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/r[1]", base);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/link", base);
	assert_int_equal(symlink("real", path), 0);
	snprintf(path, sizeof(path), "%s/odd", base);
	assert_int_equal(symlink("r[1]", path), 0);
	for (i = 0; i < nitems(t); i++) {
		snprintf(path, sizeof(path), "%s%s", base, t[i].glob);
		snprintf(want, sizeof(want), "%s%s", base, t[i].more);
		assert_int_equal(strlist_add(&l, path, strlen(path)), 0);
		assert_int_equal(strlist_add(&l, "link/a", 6), 0);
		assert_int_equal(confdirs_respell(&l), 0);
		assert_int_equal(l.n, t[i].more[0] == '\0' ? 2 : 3);
		assert_string_equal(l.v[0], path);
		if (l.n == 3)
			assert_string_equal(l.v[2], want);
		strlist_clear(&l);
	}
	snprintf(path, sizeof(path), "%s/link", base);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/odd", base);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/real", base);
	assert_int_equal(rmdir(path), 0);
	snprintf(path, sizeof(path), "%s/r[1]", base);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(base), 0);
}

static size_t
state_faults(const char *path, uid_t uid)
{
	static char file[] = "f";
	const struct origin at = {file, 3, 14};
	struct findings f = {0};
	size_t n;

	confdirs_check_state(path, uid, &at, &f);
	n = f.n;
	assert_true(n == 0 || (strcmp(f.v[0].file, "f") == 0 &&
				  f.v[0].line == 3 && f.v[0].col == 14));
	assert_true(
	    n == 0 || strcmp(f.v[0].code, "config.state_dir_unsafe") == 0);
	findings_clear(&f);
	return n;
}

static void
test_state(void **state)
{
	char base[] = "/tmp/abx-unit-XXXXXX", path[64], link[64];
	uid_t uid = geteuid() == 0 ? 1 : geteuid();
	size_t above;

	/* what lies above the test's own directory is not in question */
	assert_non_null(mkdtemp(base));
	snprintf(path, sizeof(path), "%s/state", base);
	snprintf(link, sizeof(link), "%s/link", base);
	above = state_faults(path, uid);
	assert_int_equal(mkdir(path, 0700), 0);
	/* root's own is handed over by the parent */
	assert_int_equal(state_faults(path, uid), above);
	assert_int_equal(chown(path, uid, (gid_t)-1), 0);
	assert_int_equal(state_faults(path, uid), above);
	assert_int_equal(state_faults(path, uid + 1), above + 1);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(state_faults(path, uid), above + 1);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(symlink("state", link), 0);
	assert_int_equal(state_faults(link, uid), above + 1);
	assert_int_equal(chmod(base, 0777), 0);
	assert_int_equal(state_faults(path, uid), 1);
	assert_int_equal(state_faults("/proc/self/status", geteuid()), 1);
	unlink(link);
	rmdir(path);
	rmdir(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_default),
	    cmocka_unit_test(test_run),
	    cmocka_unit_test(test_within),
	    cmocka_unit_test(test_canonical),
	    cmocka_unit_test(test_respell),
	    cmocka_unit_test(test_state),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
