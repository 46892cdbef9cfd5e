/*
 * SPDX-License-Identifier: ISC
 *
 * Workspaces as pathd lists, measures and removes them, with what a command
 * that means no good may leave in one.
 */
#include "pathd_tree.h"

#include <errno.h>

#include "pathd/space.h"

#define A "0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210"

static enum code
ask(const struct tmp *t, enum space_verb verb, uint64_t max, const char *name,
    struct space_ans *ans)
{
	struct space q = {.verb = verb, .max_entries = max};

	if (name != NULL)
		assert_int_equal(strlist_add(&q.names, name, strlen(name)), 0);
	if (name != NULL && verb == SPACE_SIZE)
		assert_int_equal(strlist_add(&q.names, B, strlen(B)), 0);
	space_run(&t->pd, &q, NULL, ans);
	space_clear(&q);
	return (enum code)ans->code;
}

static enum code
drop(const struct tmp *t, const char *name)
{
	struct space_ans ans;
	enum code code = ask(t, SPACE_DROP, 0, name, &ans);

	assert_int_equal(ans.n, 0);
	space_ans_clear(&ans);
	return code;
}

static void
test_list(void **state)
{
	struct space_ans ans;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/" A);
	make_dir(&t, "w/other");
	make_dir(&t, "w/0123456789ABCDEF0123456789ABCDEF");
	make_file(&t, "w/ffffffffffffffffffffffffffffffff", "no directory");
	make_link(&t, "w/" B, "../out");
	assert_int_equal(ask(&t, SPACE_LIST, 0, NULL, &ans), C_OK);
	assert_int_equal(ans.n, 1);
	assert_string_equal(ans.v[0].name, A);
	assert_int_equal(ans.more, 0);
	space_ans_clear(&ans);
	tmp_free(&t);
}

static void
test_size(void **state)
{
	struct space_ans ans;
	struct tmp t;
	char *big = malloc(100000);
	int fd;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	/* one that is not there has no row */
	assert_int_equal(ask(&t, SPACE_SIZE, 100, A, &ans), C_OK);
	assert_int_equal(ans.n, 0);
	space_ans_clear(&ans);
	make_dir(&t, "w/" A);
	make_dir(&t, "w/" A "/d");
	assert_non_null(big);
	memset(big, 'x', 100000);
	fd = open(at(&t, "w/" A "/d/f"), O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, big, 100000), 100000);
	close(fd);
	/* a second name is not a second file, and a hole takes no room */
	assert_int_equal(link(at(&t, "w/" A "/d/f"), at(&t, "w/" A "/g")), 0);
	make_file(&t, "w/" A "/hole", "");
	assert_int_equal(truncate(at(&t, "w/" A "/hole"), 1 << 30), 0);
	make_link(&t, "w/" A "/out", t.out);
	assert_int_equal(ask(&t, SPACE_SIZE, 100, A, &ans), C_OK);
	assert_int_equal(ans.n, 1);
	assert_string_equal(ans.v[0].name, A);
	assert_in_range(ans.v[0].bytes, 100000, 200000);
	assert_int_equal(ans.v[0].more, 0);
	space_ans_clear(&ans);
	/* it stops counting, and says so */
	assert_int_equal(ask(&t, SPACE_SIZE, 3, A, &ans), C_OK);
	assert_int_equal(ans.v[0].more, 1);
	space_ans_clear(&ans);
	free(big);
	tmp_free(&t);
}

/* What nobody can look into may hold anything. */
static void
test_size_hidden(void **state)
{
	struct space_ans ans;
	struct tmp t;

	if (geteuid() == 0)
		skip();
	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/" A);
	make_dir(&t, "w/" A "/d");
	assert_int_equal(chmod(at(&t, "w/" A "/d"), 0), 0);
	assert_int_equal(ask(&t, SPACE_SIZE, 100, A, &ans), C_OK);
	assert_int_equal(ans.v[0].more, 1);
	space_ans_clear(&ans);
	assert_int_equal(drop(&t, A), C_OK);
	tmp_free(&t);
}

static void
test_drop(void **state)
{
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	assert_int_equal(drop(&t, A), C_OK); /* there is none */
	make_dir(&t, "w/" A);
	make_dir(&t, "w/" A "/d");
	make_dir(&t, "w/" A "/d/e");
	make_file(&t, "w/" A "/d/e/f", "x");
	make_file(&t, "w/" A "/.hidden", "x");
	make_link(&t, "w/" A "/d/out", t.out);
	make_dir(&t, "w/" B);
	make_file(&t, "w/" B "/f", "x");
	assert_int_equal(mkfifo(at(&t, "w/" A "/fifo"), 0600), 0);
	/* directories that keep their owner out */
	make_dir(&t, "w/" A "/d/shut");
	make_file(&t, "w/" A "/d/shut/f", "x");
	assert_int_equal(chmod(at(&t, "w/" A "/d/shut"), 0), 0);
	assert_int_equal(chmod(at(&t, "w/" A "/d"), 0500), 0);
	assert_int_equal(chmod(at(&t, "w/" A), 0), 0);
	assert_int_equal(drop(&t, A), C_OK);
	assert_false(there(&t, "w/" A));
	assert_true(there(&t, "w/" B "/f"));
	assert_string_equal(text_of(&t, "out/secret"), "OUTSIDE");
	/* and a link in the place of one is none */
	make_link(&t, "w/" A, "../out");
	assert_int_not_equal(drop(&t, A), C_OK);
	assert_true(there(&t, "out/secret"));
	tmp_free(&t);
}

/* Deeper than a path can be spelled, and with the names that it is moved
 * to. */
static void
test_drop_deep(void **state)
{
	static const char name[] = "a-directory-with-quite-a-long-name";
	struct tmp t;
	int fd, next, i;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/" A);
	make_dir(&t, "w/" A "/abx-deep-0");
	make_file(&t, "w/" A "/abx-deep-0/x", "x");
	make_file(&t, "w/" A "/abx-deep-1", "x");
	fd = open(at(&t, "w/" A), O_RDONLY | O_DIRECTORY);
	for (i = 0; i < 1500; i++) {
		assert_int_equal(mkdirat(fd, name, 0700), 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		assert_int_not_equal(next, -1);
		close(fd);
		fd = next;
	}
	close(fd);
	assert_int_equal(drop(&t, A), C_OK);
	assert_false(there(&t, "w/" A));
	tmp_free(&t);
}

static int
give_up(void *arg)
{
	int *n = arg;

	return (*n)++ > 2;
}

static void
test_stopped(void **state)
{
	struct space q = {.verb = SPACE_DROP};
	struct space_ans ans;
	int n = 0, i;
	struct stopper stop = {give_up, &n};
	struct tmp t;
	char rel[128];

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/" A);
	for (i = 0; i < 10; i++) {
		snprintf(rel, sizeof(rel), "w/" A "/f%d", i);
		make_file(&t, rel, "x");
	}
	assert_int_equal(strlist_add(&q.names, A, strlen(A)), 0);
	space_run(&t.pd, &q, &stop, &ans);
	assert_int_equal(ans.code, C_SRV_UNAVAILABLE);
	assert_true(there(&t, "w/" A));
	space_clear(&q);
	assert_int_equal(drop(&t, A), C_OK);
	tmp_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_list),
	    cmocka_unit_test(test_size),
	    cmocka_unit_test(test_size_hidden),
	    cmocka_unit_test(test_drop),
	    cmocka_unit_test(test_drop_deep),
	    cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
