/*
 * SPDX-License-Identifier: ISC
 *
 * Uploads from the unnamed (or temporary) file to the name: old contents stay
 * until the commit, nothing is left after a failure, and the journal removes
 * only what it wrote down.
 */
#include <errno.h>

#include "pathd_tree.h"

#include "pathd/parents.h"
#include "pathd/put.h"

static mode_t
mode_of(const struct tmp *t, const char *rel)
{
	struct stat st;

	assert_int_equal(lstat(at(t, rel), &st), 0);
	return st.st_mode & 07777;
}

static struct put
put_of(const struct tmp *t, const char *rel, uint16_t flags)
{
	struct put p = {
	    .flags = flags, .max_bytes = UINT64_MAX, .mode = UINT32_MAX};

	p.target = target_of(t, rel);
	return p;
}

/* One upload of that text; between is called before the commit. */
static enum code
upload(const struct tmp *t, struct put *p, const char *text,
    void (*between)(const struct tmp *))
{
	struct put_fin fin = {0};
	struct upload u;
	enum code code;

	if ((code = upload_open(&u, &t->pd, p)) == C_OK) {
		assert_int_equal(
		    write(u.fd, text, strlen(text)), (ssize_t)strlen(text));
		if (between != NULL)
			between(t);
		code = upload_commit(&u, &fin);
		if (code == C_OK)
			assert_int_equal(
			    fin.created, p->target.kind == FK_MISSING);
	}
	upload_close(&u);
	put_clear(p);
	return code;
}

static size_t
entries(const struct tmp *t, const char *rel)
{
	char cmd[8300];
	FILE *f;
	size_t n = 0;

	snprintf(cmd, sizeof(cmd), "ls -A '%s'", at(t, rel));
	assert_non_null(f = popen(cmd, "r"));
	while (fgets(cmd, sizeof(cmd), f) != NULL)
		n++;
	pclose(f);
	return n;
}

static void
check_put(int named)
{
	struct tmp t;
	struct put p;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	upload_named(named);
	p = put_of(&t, "new", 0);
	assert_int_equal(upload(&t, &p, "one", NULL), C_OK);
	assert_string_equal(text_of(&t, "w/new"), "one");
	assert_int_equal(mode_of(&t, "w/new"), 0640);
	assert_int_equal(chmod(at(&t, "w/new"), 06751), 0);
	p = put_of(&t, "new", PF_DURABLE);
	assert_int_equal(upload(&t, &p, "two", NULL), C_OK);
	assert_string_equal(text_of(&t, "w/new"), "two");
	assert_int_equal(mode_of(&t, "w/new"), 0751);
	p = put_of(&t, "new", 0);
	p.mode = 06600;
	assert_int_equal(upload(&t, &p, "three", NULL), C_OK);
	assert_int_equal(mode_of(&t, "w/new"), 0600);
	p = put_of(&t, "new", PF_NOREPLACE);
	assert_int_equal(upload(&t, &p, "four", NULL), C_FS_EXISTS);
	/* missing parents */
	p = put_of(&t, "a/b/c", 0);
	assert_int_equal(upload(&t, &p, "x", NULL), C_FS_NOT_FOUND);
	assert_false(there(&t, "w/a"));
	p = put_of(&t, "a/b/c", PF_CREATE_DIRS);
	assert_int_equal(upload(&t, &p, "x", NULL), C_OK);
	assert_string_equal(text_of(&t, "w/a/b/c"), "x");
	assert_int_equal(mode_of(&t, "w/a"), 0750);
	assert_int_equal(entries(&t, "w"), 2);
	assert_int_equal(entries(&t, "w/a/b"), 1);
	upload_named(0);
	tmp_free(&t);
}

static void
test_unnamed(void **state)
{
	check_put(0);
}

static void
test_named(void **state)
{
	check_put(1);
}

static void
test_kinds(void **state)
{
	struct tmp t;
	struct put p;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	make_file(&t, "w/one", "1");
	assert_int_equal(link(at(&t, "w/one"), at(&t, "w/two")), 0);
	assert_int_equal(mkfifo(at(&t, "w/p"), 0600), 0);
	p = put_of(&t, "d", 0);
	assert_int_equal(upload(&t, &p, "x", NULL), C_FS_IS_DIRECTORY);
	p = put_of(&t, "p", 0);
	assert_int_equal(upload(&t, &p, "x", NULL), C_POL_NOT_REGULAR);
	p = put_of(&t, "", 0);
	assert_int_equal(upload(&t, &p, "x", NULL), C_POL_ROOT_PROTECTED);
	p = put_of(&t, "one", 0);
	assert_int_equal(upload(&t, &p, "x", NULL), C_POL_HARDLINK_DENIED);
	p = put_of(&t, "one", PF_HARDLINKS);
	assert_int_equal(upload(&t, &p, "x", NULL), C_OK);
	assert_string_equal(text_of(&t, "w/two"), "1");
	tmp_free(&t);
}

/* ---- what happens between the decision and the commit ---- */

static void
swap_file(const struct tmp *t)
{
	make_file(t, "w/other", "other");
	assert_int_equal(rename(at(t, "w/other"), at(t, "w/f")), 0);
}

static void
swap_link(const struct tmp *t)
{
	assert_int_equal(unlink(at(t, "w/f")), 0);
	make_link(t, "w/f", at(t, "out/secret"));
}

static void
take_name(const struct tmp *t)
{
	make_link(t, "w/n", at(t, "out/new"));
}

static void
swap_dir(const struct tmp *t)
{
	assert_int_equal(rename(at(t, "w/d"), at(t, "w/moved")), 0);
	make_link(t, "w/d", at(t, "out"));
}

static void
block_parent(const struct tmp *t)
{
	make_dir(t, "w/x");
	make_link(t, "w/x/y", at(t, "out"));
}

static void
check_changes(int named)
{
	struct tmp t;
	struct put p;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	upload_named(named);
	make_file(&t, "w/f", "old");
	make_dir(&t, "w/d");
	make_file(&t, "w/d/f", "old");
	/* another writer's file: only who asked for that very one loses */
	p = put_of(&t, "f", PF_EXACT);
	assert_int_equal(upload(&t, &p, "new", swap_file), C_FS_CHANGED);
	assert_string_equal(text_of(&t, "w/f"), "other");
	p = put_of(&t, "f", 0);
	assert_int_equal(upload(&t, &p, "new", swap_file), C_OK);
	assert_string_equal(text_of(&t, "w/f"), "new");
	p = put_of(&t, "f", 0);
	assert_int_equal(upload(&t, &p, "new", swap_link), C_POL_PATH_CHANGED);
	p = put_of(&t, "n", PF_NOREPLACE);
	assert_int_equal(upload(&t, &p, "new", take_name), C_FS_EXISTS);
	p = put_of(&t, "n", 0);
	p.target.kind = FK_MISSING;
	assert_int_equal(upload(&t, &p, "new", NULL), C_POL_PATH_CHANGED);
	p = put_of(&t, "d/f", 0);
	assert_int_equal(upload(&t, &p, "new", swap_dir), C_POL_PATH_CHANGED);
	assert_string_equal(text_of(&t, "w/moved/f"), "old");
	p = put_of(&t, "d/f", 0);
	p.target.kind = FK_MISSING;
	assert_int_equal(upload(&t, &p, "new", NULL), C_POL_PATH_CHANGED);
	p = put_of(&t, "x/y/z/f", PF_CREATE_DIRS);
	assert_int_equal(
	    upload(&t, &p, "new", block_parent), C_POL_PATH_CHANGED);
	assert_string_equal(text_of(&t, "out/secret"), "OUTSIDE");
	assert_int_equal(entries(&t, "out"), 1);
	/* f, n, d, moved, x and nothing of ours */
	assert_int_equal(entries(&t, "w"), 5);
	upload_named(0);
	tmp_free(&t);
}

static void
test_changes(void **state)
{
	check_changes(0);
	check_changes(1);
}

static void
make_exists(const struct tmp *t)
{
	/* the parents are not made yet, so the name can only be blocked by
	 * a directory where one of them would go */
	assert_int_equal(chmod(at(t, "w"), 0555), 0);
}

/* A directory that was moved while it was open is not where it was decided
 * on, and so is one whose place another took. */
static void
test_parents_in_place(void **state)
{
	struct parents p;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	assert_int_equal(parents_open(&p, t.pd.roots.v[0].fd, "d/x", 0), 0);
	assert_true(parents_in_place(&p));
	make_dir(&t, "w/d/x");
	assert_true(parents_in_place(&p));
	assert_int_equal(rename(at(&t, "w/d"), at(&t, "w/e")), 0);
	assert_false(parents_in_place(&p));
	make_dir(&t, "w/d");
	assert_false(parents_in_place(&p));
	assert_int_equal(rmdir(at(&t, "w/d")), 0);
	make_link(&t, "w/d", "e");
	assert_false(parents_in_place(&p));
	assert_int_equal(unlink(at(&t, "w/d")), 0);
	assert_int_equal(rename(at(&t, "w/e"), at(&t, "w/d")), 0);
	assert_true(parents_in_place(&p));
	parents_close(&p);
	tmp_free(&t);
}

static void
test_parents_undone(void **state)
{
	struct tmp t;
	struct put p;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	p = put_of(&t, "a/b/0", PF_CREATE_DIRS);
	/* 256 bytes are too long for a name, its parents are not */
	free(p.target.rel);
	assert_int_not_equal(asprintf(&p.target.rel, "a/b/%0256d", 0), -1);
	assert_int_equal(upload(&t, &p, "x", NULL), C_FS_NAME_TOO_LONG);
	assert_false(there(&t, "w/a"));
	if (geteuid() != 0) {
		p = put_of(&t, "c/d/f", PF_CREATE_DIRS);
		assert_int_equal(
		    upload(&t, &p, "x", make_exists), C_FS_PERMISSION);
		assert_int_equal(chmod(at(&t, "w"), 0755), 0);
	}
	assert_int_equal(entries(&t, "w"), 0);
	tmp_free(&t);
}

/* ---- the journal ---- */

static void
test_journal(void **state)
{
	char name[JOURNAL_NAME_LEN + 1], other[JOURNAL_NAME_LEN + 1];
	char path[128];
	const struct walk_root *r;
	struct stat st, dst;
	struct tmp t;
	int dir;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	r = &t.pd.roots.v[0];
	t.pd.journal = open(
	    at(&t, "journal"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	assert_int_not_equal(t.pd.journal, -1);
	journal_name(name);
	journal_name(other);
	assert_true(journal_is_name(name));
	assert_string_not_equal(name, other);
	assert_false(journal_is_name(".abx-0"));
	make_dir(&t, "w/d");
	snprintf(path, sizeof(path), "w/d/%s", name);
	make_file(&t, path, "mine");
	assert_int_equal(stat(at(&t, path), &st), 0);
	snprintf(path, sizeof(path), "w/d/%s", other);
	make_file(&t, path, "another's");
	dir = open(at(&t, "w/d"), O_PATH | O_CLOEXEC);
	assert_int_equal(fstat(dir, &dst), 0);
	assert_int_equal(
	    journal_add(&t.pd, r, "d/target", dir, name, st.st_ino), 0);
	/* looks like ours but is another inode */
	assert_int_equal(
	    journal_add(&t.pd, r, "d/target", dir, other, st.st_ino), 0);
	journal_done(&t.pd);
	/* hostile lines */
	dprintf(t.pd.journal, "v1 0 %ju %ju %ju ../../out/secret 64\n",
	    (uintmax_t)dst.st_dev, (uintmax_t)dst.st_ino, (uintmax_t)st.st_ino);
	dprintf(t.pd.journal, "v1 0 1 2 3 %s 2e2e\nrubbish\n", other);
	assert_int_equal(journal_sweep(&t.pd), 1);
	assert_true(there(&t, path));
	snprintf(path, sizeof(path), "w/d/%s", name);
	assert_false(there(&t, path));
	assert_int_equal(fstat(t.pd.journal, &st), 0);
	assert_int_equal(st.st_size, 0);
	close(dir);
	close(t.pd.journal);
	tmp_free(&t);
}

/* Names whose inode was not written down: only what is empty can be what was
 * being made. */
static void
test_journal_early(void **state)
{
	static const struct {
		const char *text; /* NULL: a directory */
		int inner, gone;
	} rows[] = {{"", 0, 1}, {"x", 0, 0}, {NULL, 0, 1}, {NULL, 1, 0}};
	char name[JOURNAL_NAME_LEN + 1], path[256], inner[300];
	struct tmp t;
	size_t i;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	t.pd.journal = open(
	    at(&t, "journal"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	for (i = 0; i < nitems(rows); i++) {
		journal_name(name);
		snprintf(path, sizeof(path), "w/%s", name);
		snprintf(inner, sizeof(inner), "%s/x", path);
		if (rows[i].text == NULL)
			make_dir(&t, path);
		else
			make_file(&t, path, rows[i].text);
		if (rows[i].inner)
			make_file(&t, inner, "mine");
		assert_int_equal(journal_add(&t.pd, &t.pd.roots.v[0], "target",
				     t.pd.roots.v[0].fd, name, 0),
		    0);
		journal_done(&t.pd);
		assert_int_equal(journal_sweep(&t.pd), rows[i].gone);
		assert_int_equal(there(&t, path), !rows[i].gone);
	}
	close(t.pd.journal);
	tmp_free(&t);
}

/* Uploads with a journal, and a crash before the commit. */
static void
test_journal_crash(void **state)
{
	struct upload u;
	struct put p;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	t.pd.journal = open(
	    at(&t, "journal"), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	make_file(&t, "w/f", "old");
	p = put_of(&t, "f", 0);
	assert_int_equal(upload(&t, &p, "new", NULL), C_OK);
	assert_string_equal(text_of(&t, "w/f"), "new");
	assert_int_equal(journal_sweep(&t.pd), 0);
	/* too much that nobody could sweep */
	assert_int_equal(
	    ftruncate(t.pd.journal, 2 * (off_t)JOURNAL_MAX + 1), 0);
	p = put_of(&t, "f", 0);
	assert_int_equal(upload(&t, &p, "newer", NULL), C_FS_NO_SPACE);
	assert_string_equal(text_of(&t, "w/f"), "new");
	assert_int_equal(entries(&t, "w"), 1);
	assert_int_equal(ftruncate(t.pd.journal, 0), 0);
	upload_named(1);
	p = put_of(&t, "a/b", PF_CREATE_DIRS);
	assert_int_equal(upload_open(&u, &t.pd, &p), C_OK);
	assert_int_equal(entries(&t, "w"), 2);
	close(u.fd);
	close(u.dir);
	journal_done(&t.pd);
	assert_int_equal(journal_sweep(&t.pd), 1);
	assert_int_equal(entries(&t, "w"), 1);
	put_clear(&p);
	upload_named(0);
	close(t.pd.journal);
	tmp_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_unnamed),
	    cmocka_unit_test(test_named),
	    cmocka_unit_test(test_kinds),
	    cmocka_unit_test(test_changes),
	    cmocka_unit_test(test_parents_undone),
	    cmocka_unit_test(test_parents_in_place),
	    cmocka_unit_test(test_journal),
	    cmocka_unit_test(test_journal_early),
	    cmocka_unit_test(test_journal_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
