/*
 * SPDX-License-Identifier: ISC
 *
 * COPY on both walks: what is left out, what changed meanwhile, what stops
 * half-way, and what a crash leaves.
 */
#include <dirent.h>

#include "pathd_tree.h"

#include "pathd/beneath.h"
#include "pathd/copy.h"
#include "pathd/stage.h"

static void
deny(struct strlist *l, const char *pattern)
{
	assert_int_equal(strlist_add(l, pattern, strlen(pattern)), 0);
}

struct order {
	struct bulk b;
	struct rootref ref;
	struct target src;
	char *name;
};

static void
order_new(struct order *o, const struct tmp *t, const char *src,
    const char *dst, uint16_t flags)
{
	static char name[] = "x";

	memset(o, 0, sizeof(*o));
	o->src = target_of(t, src);
	o->b.src = &o->src;
	o->b.nsrc = 1;
	o->name = name;
	o->b.names.v = &o->name;
	o->b.names.n = 1;
	o->b.dst = target_of(t, dst);
	o->b.has_dst = 1;
	o->b.flags = flags;
	o->b.max_bytes = o->b.max_entries = UINT64_MAX;
	o->b.refs = &o->ref;
	o->b.nrefs = 1;
	deny(&o->b.deny, "**/.env");
}

static void
order_free(struct order *o)
{
	target_clear(&o->src);
	target_clear(&o->b.dst);
	strlist_clear(&o->b.deny);
}

/* Names below w that are ours. */
static unsigned
left(const struct tmp *t)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	assert_non_null(d = opendir(at(t, "w")));
	while ((e = readdir(d)) != NULL)
		n += strncmp(e->d_name, ".abx-", 5) == 0;
	closedir(d);
	return n;
}

static int
copy(const struct tmp *t, struct order *o, const struct stopper *stop)
{
	struct done d;

	copy_run(&t->pd, &o->b, stop, &d);
	assert_int_equal(left(t), 0);
	return d.code;
}

static int
copy_of(const struct tmp *t, const char *src, const char *dst, uint16_t flags)
{
	struct order o;
	int code;

	order_new(&o, t, src, dst, flags);
	code = copy(t, &o, NULL);
	order_free(&o);
	return code;
}

static void
tree(struct tmp *t)
{
	tmp_new(t);
	roots_open(&t->pd.roots);
	make_file(t, "w/f", "file");
	make_dir(t, "w/d");
	make_dir(t, "w/d/s");
	make_file(t, "w/d/a", "a");
	make_file(t, "w/d/s/b", "b");
	make_file(t, "w/d/s/.env", "SECRET");
	make_link(t, "w/d/in", "a");
	make_link(t, "w/d/out", at(t, "out"));
}

static void
check(int components)
{
	struct tmp t;

	beneath_components(components);
	tree(&t);
	assert_int_equal(copy_of(&t, "f", "g", PF_NOREPLACE), C_OK);
	assert_string_equal(text_of(&t, "w/g"), "file");
	assert_int_equal(copy_of(&t, "f", "g", PF_NOREPLACE), C_FS_EXISTS);
	assert_int_equal(copy_of(&t, "d/a", "g", 0), C_OK);
	assert_string_equal(text_of(&t, "w/g"), "a");
	assert_int_equal(copy_of(&t, "f", "n/m", 0), C_FS_NOT_FOUND);
	assert_int_equal(
	    copy_of(&t, "d", "n/m", PF_NOREPLACE | PF_CREATE_DIRS), C_OK);
	assert_string_equal(text_of(&t, "w/n/m/a"), "a");
	assert_string_equal(text_of(&t, "w/n/m/s/b"), "b");
	assert_true(there(&t, "w/n/m/in"));
	assert_false(there(&t, "w/n/m/out"));
	assert_false(there(&t, "w/n/m/s/.env"));
	assert_int_equal(copy_of(&t, "d", "n/m", 0), C_FS_NOT_EMPTY);
	assert_int_equal(copy_of(&t, "d", "n/m", PF_NOREPLACE), C_FS_EXISTS);
	assert_int_equal(copy_of(&t, "d", "", 0), C_POL_ROOT_PROTECTED);
	tmp_free(&t);
	beneath_components(0);
}

static void
test_openat2(void **state)
{
	check(0);
}

static void
test_components(void **state)
{
	check(1);
}

static void
test_changed(void **state)
{
	struct order o;
	struct tmp t;

	tree(&t);
	order_new(&o, &t, "d", "c", PF_NOREPLACE);
	assert_int_equal(rename(at(&t, "w/d"), at(&t, "w/e")), 0);
	make_link(&t, "w/d", at(&t, "out"));
	assert_int_equal(copy(&t, &o, NULL), C_POL_PATH_CHANGED);
	order_free(&o);
	order_new(&o, &t, "f", "c", PF_NOREPLACE);
	assert_int_equal(unlink(at(&t, "w/f")), 0);
	make_link(&t, "w/f", at(&t, "out/secret"));
	assert_int_equal(copy(&t, &o, NULL), C_POL_PATH_CHANGED);
	order_free(&o);
	assert_false(there(&t, "w/c"));
	tmp_free(&t);
}

static int
stop_after(void *arg)
{
	return --*(int *)arg < 0;
}

static void
test_stopped(void **state)
{
	struct stopper stop = {stop_after, NULL};
	struct order o;
	struct tmp t;
	int i, n, code = C_SRV_UNAVAILABLE;

	tree(&t);
	for (i = 0; i < 1000 && code != C_OK; i++) {
		order_new(&o, &t, "d", "deep/c", PF_NOREPLACE | PF_CREATE_DIRS);
		n = i;
		stop.arg = &n;
		code = copy(&t, &o, &stop);
		order_free(&o);
		if (code != C_OK) {
			assert_int_equal(code, C_SRV_UNAVAILABLE);
			assert_false(there(&t, "w/deep"));
		}
	}
	assert_int_equal(code, C_OK);
	assert_in_range(i, 3, 999);
	tmp_free(&t);
}

static void
test_limits(void **state)
{
	struct order o;
	struct tmp t;

	tree(&t);
	order_new(&o, &t, "d", "c", 0);
	o.b.max_bytes = 1;
	assert_int_equal(copy(&t, &o, NULL), C_LIM_MAX_BYTES);
	o.b.max_bytes = 2;
	o.b.max_entries = 3;
	assert_int_equal(copy(&t, &o, NULL), C_LIM_MAX_ENTRIES);
	o.b.max_entries = 4;
	assert_int_equal(copy(&t, &o, NULL), C_OK);
	order_free(&o);
	tmp_free(&t);
}

/* A worker that dies leaves a directory that the next sweep removes; one that
 * only has such a name stays. */
static void
test_crash(void **state)
{
	struct target tg;
	struct stage s;
	struct tmp t;
	char name[64];

	tree(&t);
	t.pd.journal = open(
	    at(&t, "journal"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_int_not_equal(t.pd.journal, -1);
	journal_name(name);
	assert_int_equal(mkdirat(t.pd.roots.v[0].fd, name, 0700), 0);
	tg = target_of(&t, "new");
	assert_int_equal(stage_open(&s, &t.pd, &tg, 0, 0), C_OK);
	assert_int_equal(mkdirat(s.fd, "sub", 0700), 0);
	assert_int_equal(symlinkat(at(&t, "out"), s.fd, "sub/away"), 0);
	assert_int_equal(left(&t), 2);
	/* as after a crash: nothing is undone, the lock is gone */
	close(s.fd);
	parents_close(&s.up);
	journal_done(&t.pd);
	assert_int_equal(journal_sweep(&t.pd), 1);
	assert_int_equal(left(&t), 1);
	assert_true(there(&t, "out/secret"));
	assert_int_equal(unlinkat(t.pd.roots.v[0].fd, name, AT_REMOVEDIR), 0);
	target_clear(&tg);
	close(t.pd.journal);
	tmp_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_openat2),
	    cmocka_unit_test(test_components),
	    cmocka_unit_test(test_changed),
	    cmocka_unit_test(test_stopped),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
