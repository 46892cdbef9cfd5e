/*
 * SPDX-License-Identifier: ISC
 *
 * A look that remembers what earlier looks read finds what one finds that
 * reads everything, whatever was done to the tree in between.  The other one
 * is written here anew, as simple as can be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/abx.h"
#include "common/recall.h"
#include "common/stamp.h"
#include "execd/look.h"
#include "regress/unit/anything.h"

static char git[] = ".git", claude[] = ".claude";
static char *names_v[] = {git, claude};
static const struct strlist names = {names_v, nitems(names_v)};
static char base[] = "/tmp/abx-look-XXXXXX";
static int root = -1;
static int remembers; /* on this file system */
static unsigned recalled;

/* ---- the simple look ---- */

struct plain {
	char *v[LOOK_MAX_DIRS];
	int git[LOOK_MAX_DIRS + 1]; /* the last is the root's */
	size_t n, first;
	uint32_t left;
	int more;
};

static void
plain_add(struct plain *p, const char *dir, const char *name)
{
	char *path;
	size_t i;

	if (p->n == LOOK_MAX_DIRS) {
		p->more = 1;
		return;
	}
	assert_true(
	    asprintf(&path, "%s%s%s", dir, *dir ? "/" : "", name) != -1);
	for (i = 0; i < p->first; i++)
		if (strcmp(p->v[i], path) == 0) {
			free(path);
			return;
		}
	p->v[p->n++] = path;
}

static int
plain_at(struct plain *p, const char *rel)
{
	struct open_how how = {
	    O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	const struct dirent *de;
	struct stat st;
	int fd, found = 0;
	DIR *d;

	fd = (int)syscall(
	    SYS_openat2, root, *rel == '\0' ? "." : rel, &how, sizeof(how));
	if (fd == -1) {
		if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			p->more = 1;
		return 0;
	}
	assert_non_null(d = fdopendir(fd));
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		if (p->left == 0) {
			p->more = 1;
			break;
		}
		p->left--;
		if (strcmp(de->d_name, ".git") == 0)
			found = 1;
		else if (strcmp(de->d_name, ".claude") != 0 &&
			 (de->d_type == DT_DIR ||
			     (de->d_type == DT_UNKNOWN &&
				 fstatat(fd, de->d_name, &st,
				     AT_SYMLINK_NOFOLLOW) == 0 &&
				 S_ISDIR(st.st_mode))))
			plain_add(p, rel, de->d_name);
	}
	closedir(d);
	return found;
}

/* ---- comparing ---- */

/* Both looks, which find the same. */
static void
same(uint32_t left, const char *first)
{
	struct plain *p = calloc(1, sizeof(*p));
	struct stat st;
	struct look *l;
	size_t i;
	int found;

	assert_non_null(p);
	assert_int_equal(fstat(root, &st), 0);
	assert_non_null(l = look_new(root, st.st_dev, st.st_ino, &names));
	l->settle = SETTLE_NS;
	l->left = p->left = left;
	if (first != NULL) {
		assert_int_equal(look_first(l, first), 0);
		plain_add(p, "", first);
		p->first = 1;
	}
	p->git[LOOK_MAX_DIRS] = plain_at(p, "");
	for (i = 0; i < p->n; i++)
		p->git[i] = plain_at(p, p->v[i]);
	assert_int_equal(look_at(l, ""), p->git[LOOK_MAX_DIRS]);
	for (i = 0; i < l->n && !look_done(l); i++) {
		found = look_at(l, l->v[i]);
		if (i >= p->n || strcmp(l->v[i], p->v[i]) != 0 ||
		    found != p->git[i])
			fail_msg("%zu of %zu: %s %d, not %s %d", i, l->n,
			    l->v[i], found, i < p->n ? p->v[i] : "", p->git[i]);
	}
	for (recalled += (unsigned)i + 1 - l->nread; i < p->n; i++)
		assert_false(p->git[i]);
	assert_int_equal(l->n, p->n);
	assert_int_equal(l->more, p->more);
	assert_false(l->failed);
	for (i = 0; i < p->n; i++)
		free(p->v[i]);
	free(p);
	look_free(l);
}

/* How many directories of the tree a look reads now. */
static uint32_t
reads(void)
{
	struct stat st;
	struct look *l;
	uint32_t n;
	size_t i;

	assert_int_equal(fstat(root, &st), 0);
	assert_non_null(l = look_new(root, st.st_dev, st.st_ino, &names));
	l->settle = SETTLE_NS;
	look_at(l, "");
	for (i = 0; i < l->n && !look_done(l); i++)
		look_at(l, l->v[i]);
	n = l->nread;
	look_free(l);
	return n;
}

static void
empty(void)
{
	run("chmod -R u+rwx . ; rm -rf in out; mkdir in out");
	if (root != -1)
		close(root);
	assert_true(
	    (root = open("in", O_PATH | O_DIRECTORY | O_CLOEXEC)) != -1);
}

/* A tree for a test: valgrind does not know the call that opens it. */
static void
fresh(void)
{
	struct open_how how = {O_PATH, 0, 0};

	if (syscall(SYS_openat2, -1, ".", &how, 0) == -1 && errno == ENOSYS)
		skip();
	empty();
}

/* ---- chosen cases ---- */

/* After each step, both at once and when everything is old. */
static const char *const steps[] = {
    "mkdir -p in/a/b/c in/d/e in/f; touch in/x in/a/y",
    "mkdir in/a/b/c/.git",
    /* times can be set, all but the one that counts */
    "mkdir in/d/e/.git; touch -d 2001-01-01 in/d/e in/d in",
    "mv in/d/e in/d/x; ln -s x in/d/e",
    "rm in/d/e; mv in/d/x in/d/e",
    "rmdir in/a/b/c/.git; touch -d 2001-01-01 in/a/b/c",
    /* old ones come in from elsewhere, and with the times of what was there */
    "mkdir -p out/n/m/.git; touch -d 2001-01-01 out/n/m out/n",
    "mv out/n in/f/n",
    "mv in/a out/a; mkdir -p out/a/b/.git out/a/new/.git",
    "cp -a in/d out/d; rm -r out/d/e/.git; mkdir out/d/.git; "
    "touch -r in/d out/d; mv in/d out/was; mv out/d in/d",
    "mv out/a in/a; touch -d 2001-01-01 in/a/b in/a in",
    /* links and what is no directory in their place */
    "mv in/f in/g; ln -s g in/f",
    "rm in/f; mv in/g in/f; mv in/f/n in/n; ln -s ../n in/f/n",
    "rm in/f/n; touch in/f/n; mv in/n/m/.git in/n/m/.claude",
    "rm in/f/n; mkdir in/f/n; echo gitdir: x >in/f/n/.git",
    /* rights */
    "chmod 0 in/a; chmod 0300 in/d; chmod 0500 in/f",
    "chmod 0400 in/a; chmod 0 in/d; chmod 0755 in/f",
    "chmod 0755 in/a in/d; mkdir in/a/b/z; chmod 0 in/a/b",
    "chmod 0755 in/a/b; chmod 0 in",
    "chmod 0755 in; mkdir -p in/.claude/x in/.claude/y/.git in/k/.claude/z",
    "rm -r in/.claude; mkdir -p in/claude/.git",
};

static void
test_steps(void **state)
{
	size_t i, k;

	fresh();
	same(LOOK_MAX_ENTRIES, NULL);
	for (i = 0; i < nitems(steps); i++) {
		run(steps[i]);
		same(LOOK_MAX_ENTRIES, NULL);
		settle();
		for (k = 0; k < 2; k++)
			same(LOOK_MAX_ENTRIES, "d/e");
		same(7, "a/b/c");
	}
}

/* What is old is not read again, and what is new is until it is old. */
static void
test_what_is_read(void **state)
{
	uint32_t left;

	fresh();
	run("mkdir -p in/a/b in/c");
	if (!remembers)
		skip();
	settle();
	assert_int_equal(reads(), 4);
	assert_int_equal(reads(), 0);
	run("touch in/a/b");
	assert_int_equal(reads(), 1);
	assert_int_equal(reads(), 1);
	settle();
	assert_int_equal(reads(), 1);
	assert_int_equal(reads(), 0);
	/* as when the clock is set */
	recall_clear();
	assert_int_equal(reads(), 4);
	assert_int_equal(reads(), 0);
	/* what was read in part once is read in whole once */
	run("for d in $(seq 20); do mkdir in/c/$d; (cd in/c/$d; "
	    "seq 3 | xargs touch); done");
	settle();
	for (left = 0; left < 100; left++)
		same(left, NULL);
	(void)reads();
	assert_int_equal(reads(), 0);
}

/* More than are looked at, of either kind. */
static void
test_limits(void **state)
{
	static const char *const more[] = {
	    /* 2700 entries, the last directories in vain */
	    "mkdir in/1 in/2 in/3 in/z; mkdir in/z/.git; for d in 1 2 3; do "
	    "(cd in/$d; mkdir aa zz zz/.git; seq 900 | xargs touch); done",
	    "rm in/1/5*", "rm in/3/*1", "rm -r in/1 in/2", "rm -r in/3",
	    /* 1500 directories, in one and in many */
	    "mkdir in/w; cd in/w; seq 1200 | xargs mkdir; mkdir 1100/.git",
	    "cd in/w; rmdir 5* ; mkdir 7/.git",
	    "for i in 1 2 3; do mkdir -p in/v/$i; (cd in/v/$i; "
	    "seq 500 | xargs mkdir); done; mkdir in/v/3/77/.git",
	    "rmdir in/v/1/*"};
	size_t i, k;

	fresh();
	for (i = 0; i < nitems(more); i++) {
		run(more[i]);
		settle();
		for (k = 0; k < 3; k++)
			same(i < 4 ? 2000 : LOOK_MAX_ENTRIES,
			    k == 1 ? "v/3/77" : NULL);
	}
	if (remembers)
		assert_int_equal(reads(), 0);
	same(0, NULL);
}

/* What memory there is suffices for some of it only. */
static void
test_long_names(void **state)
{
	size_t k;

	fresh();
	run("n=$(printf '%0200d' 0); cd in; for a in 1 2 3 4 5 6 7 8 9; do "
	    "mkdir $a$n; (cd $a$n; for i in $(seq 100); do echo $i$n; done | "
	    "xargs mkdir); mkdir $a$n/7$n/.git; done");
	settle();
	for (k = 0; k < 3; k++)
		same(LOOK_MAX_ENTRIES, NULL);
	if (remembers)
		assert_in_range(reads(), 1, 900);
}

/* More trees than are remembered: those of long ago are read anew. */
static void
test_many_trees(void **state)
{
	char path[32];
	int i, k;

	fresh();
	run("for i in $(seq 20); do mkdir -p in/$i/a/.git; done");
	settle();
	for (k = 0; k < 2; k++)
		for (i = 1; i <= RECALL_TREES + 4; i++) {
			close(root);
			snprintf(path, sizeof(path), "in/%d", i);
			root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
			assert_true(root != -1);
			same(LOOK_MAX_ENTRIES, NULL);
		}
	if (remembers)
		assert_int_equal(reads(), 0);
}

static void
same_all(void)
{
	same(1000, NULL);
}

static void
test_mounts(void **state)
{
	any_mounts(fresh, same_all);
}

/* ---- anything ---- */

static void
any_step(void)
{
	static const char *const part[] = {"a", "b", "c", "d", "e", ".claude"};

	anything(part, nitems(part), ".git");
}

static void
same_somehow(void)
{
	same(rnd(3) == 0 ? rnd(40) : 1000, rnd(3) == 0 ? "a/b" : NULL);
}

static void
test_anything(void **state)
{
	fresh();
	recalled = 0;
	any_steps(2000, any_step, same_somehow);
	if (remembers)
		assert_in_range(recalled, 1000, UINT32_MAX);
}

static void
look_once(void)
{
	(void)reads();
}

static void
test_race(void **state)
{
	any_race(fresh, any_step, look_once, same_all);
}

/* ---- times ---- */

static void
test_settled(void **state)
{
	static const struct {
		struct timespec ctime, now;
		uint64_t ns;
		int is;
	} rows[] = {
	    {{10, 0}, {12, 0}, STAMP_SETTLE_NS, 0},
	    {{10, 0}, {12, 1}, STAMP_SETTLE_NS, 1},
	    {{10, 999999999}, {12, 999999999}, STAMP_SETTLE_NS, 0},
	    {{10, 999999999}, {13, 0}, STAMP_SETTLE_NS, 1},
	    {{10, 999999999}, {11, 0}, 2, 0},
	    {{10, 999999999}, {11, 0}, 1, 0},
	    {{10, 999999999}, {11, 1}, 1, 1},
	    {{13, 0}, {12, 0}, STAMP_SETTLE_NS, 0}, /* of the future */
	    {{0, 0}, {12, 0}, STAMP_SETTLE_NS, 1},
	    /* the last that ext4's small inodes and an old xfs can have */
	    {{INT32_MAX, 0}, {INT32_MAX + 9L, 0}, STAMP_SETTLE_NS, 0},
	    {{INT32_MAX - 1L, 0}, {INT32_MAX + 9L, 0}, STAMP_SETTLE_NS, 1},
	    {{INT32_MAX + 1L, 0}, {INT32_MAX + 9L, 0}, STAMP_SETTLE_NS, 1},
	};
	struct recall_id id = {0};
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		id.ctime = rows[i].ctime;
		if (recall_settled(&id, &rows[i].now, rows[i].ns) != rows[i].is)
			fail_msg("row %zu", i);
	}
}

/* Another device, inode or time is another directory. */
static void
test_another(void **state)
{
	const struct recall_id id = {1, 2, 9, {3, 4}, {5, 6}};
	const struct recall_id others[] = {{0, 2, 9, {3, 4}, {5, 6}},
	    {1, 3, 9, {3, 4}, {5, 6}}, {1, 2, 9, {2, 4}, {5, 6}},
	    {1, 2, 9, {3, 5}, {5, 6}}, {1, 2, 9, {3, 4}, {6, 6}},
	    {1, 2, 9, {3, 4}, {5, 5}}, {2, 1, 9, {3, 4}, {5, 6}},
	    {1, 2, 8, {3, 4}, {5, 6}}};
	const struct recall_dir *found;
	struct recall_dir d = {.id = id, .count = 7, .hit = RECALL_NONE};
	struct recall_tree *t;
	size_t i;

	recall_clear();
	t = recall_begin("x", 1, 1000);
	assert_true(recall_empty(t));
	recall_keep(t, &d);
	recall_end(t);
	t = recall_begin("x", 1, 1000);
	assert_false(recall_empty(t));
	for (i = 0; i < nitems(others); i++)
		assert_null(recall_find(t, &others[i], NULL, NULL));
	assert_non_null(found = recall_find(t, &id, NULL, NULL));
	assert_int_equal(found->count, 7);
	recall_end(t);
	t = recall_begin("x", 1, 1000);
	recall_end(t); /* it was not used */
	t = recall_begin("x", 1, 1000);
	assert_true(recall_empty(t));
	recall_end(t);
	recall_clear();
}

/* What new and old ones take together is bounded, walk after walk. */
static void
test_bounded(void **state)
{
	static char text[900] = "";
	struct recall_dir d = {.hit = RECALL_NONE, .len = sizeof(text)};
	unsigned found, k;
	struct recall_tree *t;
	uint64_t i, n = 0;

	recall_clear();
	d.text = text;
	for (k = 0; k < 4; k++) {
		t = recall_begin("x", 1, 100 * 1000);
		for (i = n; i < n + 50; i++) {
			d.id.ino = i;
			recall_keep(t, &d);
		}
		for (found = 0, i = 0; i < n; i++) {
			d.id.ino = i;
			found += recall_find(t, &d.id, NULL, NULL) != NULL;
		}
		assert_in_range(found, k == 0 ? 0 : 40, 110);
		n += 50;
		recall_end(t);
	}
	recall_clear();
}

static int
set_up(void **state)
{
	if (any_begin(base) == -1)
		return -1;
	empty();
	run("mkdir in/a");
	settle();
	(void)reads();
	remembers = reads() == 0;
	return 0;
}

static int
tear_down(void **state)
{
	return close(root) == -1 ? -1 : any_end(base);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_settled),
	    cmocka_unit_test(test_another),
	    cmocka_unit_test(test_bounded),
	    cmocka_unit_test(test_steps),
	    cmocka_unit_test(test_what_is_read),
	    cmocka_unit_test(test_limits),
	    cmocka_unit_test(test_long_names),
	    cmocka_unit_test(test_many_trees),
	    cmocka_unit_test(test_mounts),
	    cmocka_unit_test(test_anything),
	    cmocka_unit_test(test_race),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
