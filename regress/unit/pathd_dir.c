/*
 * SPDX-License-Identifier: ISC
 *
 * MKDIR, UNLINK, RENAME and LIST on trees with links, denied entries and hard
 * links.
 */
#include <errno.h>

#include "pathd_tree.h"

#include "common/frame.h"
#include "pathd/dir.h"
#include "pathd/list.h"

static void
deny(struct strlist *l, const char *pattern)
{
	assert_int_equal(strlist_add(l, pattern, strlen(pattern)), 0);
}

static enum code
mkdir_code(const struct tmp *t, const char *rel, uint16_t flags, uint32_t mode)
{
	struct mutate m = {.flags = flags, .mode = mode};
	struct done d;

	m.src = target_of(t, rel);
	dir_mkdir(&t->pd, &m, &d);
	mutate_clear(&m);
	return (enum code)d.code;
}

static void
test_mkdir(void **state)
{
	struct stat st;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	assert_int_equal(mkdir_code(&t, "a", 0, UINT32_MAX), C_OK);
	assert_int_equal(stat(at(&t, "w/a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(mkdir_code(&t, "b", 0, 01777), C_OK);
	assert_int_equal(stat(at(&t, "w/b"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(mkdir_code(&t, "a", 0, UINT32_MAX), C_FS_EXISTS);
	assert_int_equal(
	    mkdir_code(&t, "", 0, UINT32_MAX), C_POL_ROOT_PROTECTED);
	assert_int_equal(mkdir_code(&t, "x/y", 0, UINT32_MAX), C_FS_NOT_FOUND);
	assert_int_equal(
	    mkdir_code(&t, "x/y/z", PF_CREATE_DIRS, UINT32_MAX), C_OK);
	assert_true(there(&t, "w/x/y/z"));
	make_link(&t, "w/l", at(&t, "out"));
	assert_int_equal(mkdir_code(&t, "l/new", PF_CREATE_DIRS, UINT32_MAX),
	    C_POL_PATH_CHANGED);
	assert_false(there(&t, "out/new"));
	tmp_free(&t);
}

/* ---- UNLINK ---- */

static struct done
unlink_done(
    const struct tmp *t, const char *rel, uint16_t flags, const char *pattern)
{
	struct mutate m = {.flags = flags};
	struct done d;

	m.src = target_of(t, rel);
	if (pattern != NULL)
		deny(&m.deny, pattern);
	dir_unlink(&t->pd, &m, NULL, &d);
	mutate_clear(&m);
	return d;
}

static void
grow(const struct tmp *t)
{
	char rel[64];
	int i;

	make_dir(t, "w/d");
	make_dir(t, "w/d/e");
	make_dir(t, "w/d/e/deep");
	make_file(t, "w/d/e/deep/f", "f");
	make_file(t, "w/d/keep", "k");
	make_link(t, "w/d/ln", at(t, "out"));
	make_link(t, "w/d/e/ln", at(t, "out/secret"));
	for (i = 0; i < 300; i++) {
		snprintf(rel, sizeof(rel), "w/d/e/%03d", i);
		if (i % 3 == 0)
			make_dir(t, rel);
		else
			make_file(t, rel, "");
	}
}

static void
test_unlink(void **state)
{
	struct done d;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	grow(&t);
	make_file(&t, "w/f", "f");
	make_link(&t, "w/l", at(&t, "out/secret"));
	d = unlink_done(&t, "f", 0, NULL);
	assert_int_equal(d.code, C_OK);
	assert_int_equal(d.count, 1);
	assert_false(there(&t, "w/f"));
	assert_int_equal(unlink_done(&t, "l", 0, NULL).code, C_OK);
	assert_int_equal(
	    unlink_done(&t, "", 0, NULL).code, C_POL_ROOT_PROTECTED);
	assert_int_equal(unlink_done(&t, "d", 0, NULL).code, C_FS_NOT_EMPTY);
	d = unlink_done(&t, "d", PF_RECURSIVE, "**/.env");
	assert_int_equal(d.code, C_OK);
	/* d, e, deep, f, keep, two links, 300 */
	assert_int_equal(d.count, 307);
	assert_false(there(&t, "w/d"));
	assert_string_equal(text_of(&t, "out/secret"), "OUTSIDE");
	tmp_free(&t);
}

static void
test_unlink_refused(void **state)
{
	struct done d;
	struct tmp t;

	tmp_new(&t);
	grow(&t);
	make_file(&t, "w/d/e/deep/.env", "s");
	assert_int_equal(roots_add(&t.pd.roots, 1, at(&t, "w/d/e/deep")), 0);
	roots_open(&t.pd.roots);
	d = unlink_done(&t, "d", PF_RECURSIVE, "**/.env");
	assert_int_equal(d.count, 0);
	assert_true(
	    d.code == C_POL_PATH_DENIED || d.code == C_POL_ROOT_PROTECTED);
	d = unlink_done(&t, "d", PF_RECURSIVE, NULL);
	assert_int_equal(d.code, C_POL_ROOT_PROTECTED);
	d = unlink_done(&t, "d/e/deep", 0, NULL);
	assert_int_equal(d.code, C_POL_ROOT_PROTECTED);
	roots_clear(&t.pd.roots);
	assert_int_equal(roots_add(&t.pd.roots, 0, t.root), 0);
	roots_open(&t.pd.roots);
	d = unlink_done(&t, "d", PF_RECURSIVE, "**/.env");
	assert_int_equal(d.code, C_POL_PATH_DENIED);
	d = unlink_done(&t, "d", PF_RECURSIVE, "**/de*/**");
	assert_int_equal(d.code, C_POL_PATH_DENIED);
	assert_int_equal(link(at(&t, "w/d/keep"), at(&t, "w/hard")), 0);
	d = unlink_done(&t, "d", PF_RECURSIVE, NULL);
	assert_int_equal(d.code, C_POL_HARDLINK_DENIED);
	assert_int_equal(d.count, 0);
	assert_true(there(&t, "w/d/e/299"));
	d = unlink_done(&t, "d", PF_RECURSIVE | PF_HARDLINKS, NULL);
	assert_int_equal(d.code, C_OK);
	assert_true(there(&t, "w/hard"));
	tmp_free(&t);
}

/* Deeper than a process may have levels in a recursion. */
static void
test_deep(void **state)
{
	struct done d;
	struct tmp t;
	int fd, next, i;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	fd = open(at(&t, "w/d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (i = 0; i < 900; i++) {
		assert_int_equal(mkdirat(fd, "x", 0755), 0);
		next = openat(fd, "x", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = next;
	}
	close(fd);
	d = unlink_done(&t, "d", PF_RECURSIVE, NULL);
	assert_int_equal(d.code, C_OK);
	assert_int_equal(d.count, 901);
	tmp_free(&t);
}

/* ---- RENAME ---- */

static enum code
rename_code(const struct tmp *t, const char *src, const char *dst,
    uint16_t flags, const char *pattern)
{
	struct mutate m = {.flags = flags};
	struct done d;

	m.src = target_of(t, src);
	m.dst = target_of(t, dst);
	if (pattern != NULL)
		deny(&m.deny, pattern);
	dir_rename(&t->pd, &m, NULL, &d);
	mutate_clear(&m);
	return (enum code)d.code;
}

static void
test_rename(void **state)
{
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_file(&t, "w/a", "A");
	make_file(&t, "w/b", "B");
	make_dir(&t, "w/d");
	make_dir(&t, "w/d/e");
	make_link(&t, "w/l", at(&t, "out"));
	assert_int_equal(
	    rename_code(&t, "a", "b", PF_NOREPLACE, NULL), C_FS_EXISTS);
	assert_int_equal(rename_code(&t, "a", "c", PF_NOREPLACE, NULL), C_OK);
	assert_string_equal(text_of(&t, "w/c"), "A");
	assert_int_equal(rename_code(&t, "c", "b", 0, NULL), C_OK);
	assert_string_equal(text_of(&t, "w/b"), "A");
	assert_int_equal(
	    rename_code(&t, "b", "x/y/b", 0, NULL), C_FS_NOT_FOUND);
	assert_int_equal(
	    rename_code(&t, "b", "x/y/b", PF_CREATE_DIRS, NULL), C_OK);
	assert_true(there(&t, "w/x/y/b"));
	assert_int_equal(
	    rename_code(&t, "d", "d/e/in", PF_NOREPLACE, NULL), C_ARGS_INVALID);
	assert_int_equal(
	    rename_code(&t, "d", "d/n/in", PF_NOREPLACE | PF_CREATE_DIRS, NULL),
	    C_ARGS_INVALID);
	assert_false(there(&t, "w/d/n"));
	assert_int_equal(
	    rename_code(&t, "", "y", 0, NULL), C_POL_ROOT_PROTECTED);
	assert_int_equal(
	    rename_code(&t, "d", "", 0, NULL), C_POL_ROOT_PROTECTED);
	assert_int_equal(
	    rename_code(&t, "d", "l/d", 0, NULL), C_POL_PATH_CHANGED);
	assert_int_equal(rename_code(&t, "x", "d", 0, NULL), C_FS_NOT_EMPTY);
	assert_int_equal(
	    rename_code(&t, "x/y/b", "d", 0, NULL), C_FS_IS_DIRECTORY);
	/* the link itself moves */
	assert_int_equal(rename_code(&t, "l", "m", PF_NOREPLACE, NULL), C_OK);
	assert_true(there(&t, "w/m"));
	assert_true(there(&t, "out/secret"));
	tmp_free(&t);
}

static void
test_rename_denied(void **state)
{
	struct tmp t;
	char *to;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	make_dir(&t, "w/d/deep");
	make_file(&t, "w/d/deep/.env", "s");
	make_dir(&t, "w/v");
	assert_int_equal(
	    rename_code(&t, "d", "e", 0, "**/.env"), C_POL_PATH_DENIED);
	/* denied only where it would go */
	to = at(&t, "w/v/d/deep");
	assert_int_equal(rename_code(&t, "d", "v/d", 0, to), C_POL_PATH_DENIED);
	assert_true(there(&t, "w/d/deep/.env"));
	assert_int_equal(rename_code(&t, "d", "e", 0, NULL), C_OK);
	assert_true(there(&t, "w/e/deep/.env"));
	tmp_free(&t);
}

/* Something comes in behind the scan. */
struct late {
	const struct tmp *t;
	int asked;
};

static int
late_stop(void *arg)
{
	struct late *l = arg;

	/* the names were read between the first time and the second */
	if (++l->asked == 2)
		make_file(l->t, "w/d/late", "s");
	return 0;
}

static void
test_rename_late(void **state)
{
	struct mutate m = {0};
	struct done d;
	struct tmp t;
	struct late late = {&t, 0};
	struct stopper stop = {late_stop, &late};

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	make_file(&t, "w/d/one", "1");
	m.src = target_of(&t, "d");
	m.dst = target_of(&t, "e");
	deny(&m.deny, at(&t, "w/e/late"));
	dir_rename(&t.pd, &m, &stop, &d);
	assert_int_equal(d.code, C_POL_PATH_DENIED);
	assert_true(there(&t, "w/d/one"));
	assert_true(there(&t, "w/d/late"));
	assert_false(there(&t, "w/e"));
	mutate_clear(&m);
	tmp_free(&t);
}

/* Where somebody fills a directory that nobody may see yet. */
static void
test_rename_staged(void **state)
{
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	make_dir(&t, "w/d/.abx-0123456789abcdef0123456789abcdef");
	assert_int_equal(
	    rename_code(&t, "d", "e", 0, NULL), C_POL_PATH_CHANGED);
	assert_true(there(&t, "w/d"));
	tmp_free(&t);
}

/* ---- LIST ---- */

struct seen {
	struct frame_dec dec;
	char names[4096]; /* each with its kind, sorted by nothing */
	unsigned n;
	int code, truncated;
};

static int
seen_cb(void *arg, const uint8_t *p, size_t n)
{
	struct seen *s = arg;
	struct list_entry e;
	const uint8_t *payload;
	char one[300];
	uint8_t kind;
	size_t len;
	int rc;

	while ((rc = frame_feed(&s->dec, &p, &n, &kind, &payload, &len)) == 1) {
		if (kind == FR_END) {
			assert_int_equal(len, 3);
			s->code = payload[0] | payload[1] << 8;
			s->truncated = payload[2];
			continue;
		}
		assert_int_equal(kind, FR_ENTRY);
		assert_int_equal(list_entry_get(payload, len, &e), 0);
		snprintf(one, sizeof(one), "%d:%.*s ", e.type, (int)e.namelen,
		    e.name);
		strlcat(s->names, one, sizeof(s->names));
		s->n++;
	}
	assert_int_equal(rc, 0);
	return 0;
}

static struct seen *
list_seen(const struct tmp *t, const char *rel, uint16_t flags, uint32_t max)
{
	struct rootref ref = {0, ""};
	struct list l = {.flags = flags,
	    .max_entries = max,
	    .depth = 1,
	    .refs = &ref,
	    .nrefs = 1};
	struct seen *s = calloc(1, sizeof(*s));
	struct listing li;

	assert_non_null(s);
	s->code = -1;
	l.target = target_of(t, rel);
	deny(&l.deny, "**/.env");
	deny(&l.deny, "**/vault");
	assert_int_equal(listing_open(&li, &t->pd, &l), C_OK);
	assert_int_equal(listing_send(&li, seen_cb, s), 0);
	listing_close(&li);
	l.refs = NULL;
	list_clear(&l);
	return s;
}

static void
test_list(void **state)
{
	struct seen *s;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_file(&t, "w/f", "12345");
	make_dir(&t, "w/d");
	make_file(&t, "w/.env", "s");
	make_dir(&t, "w/vault");
	make_link(&t, "w/in", "d");
	make_link(&t, "w/gone", "d/nothing");
	make_link(&t, "w/out", at(&t, "out"));
	make_link(&t, "w/up", "..");
	make_link(&t, "w/secret", ".env");
	make_link(&t, "w/below", "vault/x");
	make_link(&t, "w/loop", "loop");
	s = list_seen(&t, "", 0, 100);
	assert_int_equal(s->code, C_OK);
	assert_int_equal(s->truncated, 0);
	assert_int_equal(s->n, 4);
	assert_non_null(strstr(s->names, "1:f "));
	assert_non_null(strstr(s->names, "2:d "));
	assert_non_null(strstr(s->names, "3:in "));
	assert_non_null(strstr(s->names, "3:gone "));
	free(s);
	s = list_seen(&t, "", PF_NOSYMLINKS, 100);
	assert_int_equal(s->n, 2);
	free(s);
	s = list_seen(&t, "", 0, 4);
	assert_int_equal(s->truncated, 0);
	free(s);
	s = list_seen(&t, "", 0, 3);
	assert_int_equal(s->n, 3);
	assert_int_equal(s->truncated, 1);
	free(s);
	s = list_seen(&t, "d", 0, 3);
	assert_int_equal(s->n, 0);
	assert_int_equal(s->code, C_OK);
	free(s);
	tmp_free(&t);
}

static void
test_list_many(void **state)
{
	char rel[64];
	struct seen *s;
	struct tmp t;
	int i;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	for (i = 0; i < 3000; i++) {
		snprintf(rel, sizeof(rel), "w/%060d", i);
		make_file(&t, rel, "");
	}
	s = list_seen(&t, "", 0, 100000);
	assert_int_equal(s->n, 3000);
	assert_int_equal(s->truncated, 0);
	free(s);
	tmp_free(&t);
}

static void
test_list_changed(void **state)
{
	struct list l = {.max_entries = 1, .depth = 1};
	struct listing li;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	l.target = target_of(&t, "d");
	assert_int_equal(rmdir(at(&t, "w/d")), 0);
	make_link(&t, "w/d", at(&t, "out"));
	assert_int_equal(listing_open(&li, &t.pd, &l), C_POL_PATH_CHANGED);
	listing_close(&li);
	list_clear(&l);
	tmp_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_mkdir),
	    cmocka_unit_test(test_unlink),
	    cmocka_unit_test(test_unlink_refused),
	    cmocka_unit_test(test_deep),
	    cmocka_unit_test(test_rename),
	    cmocka_unit_test(test_rename_denied),
	    cmocka_unit_test(test_rename_late),
	    cmocka_unit_test(test_rename_staged),
	    cmocka_unit_test(test_list),
	    cmocka_unit_test(test_list_many),
	    cmocka_unit_test(test_list_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
