/*
 * SPDX-License-Identifier: ISC
 *
 * Names in archives, members one by one on both walks, and what goes into
 * places that changed meanwhile.
 */
#include <dirent.h>

#include "pathd_tree.h"

#include "pathd/beneath.h"
#include "pathd/import.h"

static void
test_names(void **state)
{
	static const struct {
		const char *raw;
		enum code code;
		const char *want;
	} t[] = {
	    {"a", C_OK, "a"},
	    {"a/b/", C_OK, "a/b"},
	    {"./a//./b", C_OK, "a/b"},
	    {"", C_OK, ""},
	    {".", C_OK, ""},
	    {"./", C_OK, ""},
	    {"..a/b..", C_OK, "..a/b.."},
	    {"...", C_OK, "..."},
	    {"/a", C_POL_PATH_NOT_ALLOWED, NULL},
	    {"/", C_POL_PATH_NOT_ALLOWED, NULL},
	    {"..", C_POL_PATH_NOT_ALLOWED, NULL},
	    {"a/..", C_POL_PATH_NOT_ALLOWED, NULL},
	    {"a/../b", C_POL_PATH_NOT_ALLOWED, NULL},
	    {"./../b", C_POL_PATH_NOT_ALLOWED, NULL},
	    /* what we make for a while has such names, and nobody sees it */
	    {"a/.abx-0123456789abcdef0123456789abcdef", C_POL_PATH_INVALID,
		NULL},
	    {".abx-0123456789abcdef0123456789abcdef/a", C_POL_PATH_INVALID,
		NULL},
	    {".abx-0123456789abcdef0123456789abcde", C_OK,
		".abx-0123456789abcdef0123456789abcde"},
	};
	char out[ABX_PATH_MAX + 1], raw[2 * ABX_PATH_MAX];
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		assert_int_equal(import_name(t[i].raw, out), t[i].code);
		if (t[i].want != NULL)
			assert_string_equal(out, t[i].want);
	}
	memset(raw, 'x', sizeof(raw));
	raw[256] = '\0';
	assert_int_equal(import_name(raw, out), C_FS_NAME_TOO_LONG);
	raw[255] = '\0';
	assert_int_equal(import_name(raw, out), C_OK);
	for (i = 0; i + 1 < sizeof(raw); i += 2)
		memcpy(raw + i, "a/", 2);
	raw[2 * ABX_PATH_SEGS + 1] = '\0';
	assert_int_equal(import_name(raw, out), C_FS_NAME_TOO_LONG);
	raw[2 * ABX_PATH_SEGS] = '\0';
	assert_int_equal(import_name(raw, out), C_OK);
}

static void
test_links(void **state)
{
	static const struct {
		const char *member, *text;
		int inside;
	} t[] = {
	    {"l", "a", 1},
	    {"l", "./a/b", 1},
	    {"l", "a/..", 0}, /* a may be a link */
	    {"a/b/l", ".././../x", 1},
	    {"a/b/l", "../x/..", 0},
	    {"l", "..", 0},
	    {"l", "a/../..", 0},
	    {"a/l", "..", 1},
	    {"a/l", "../..", 0},
	    {"a/b/l", "../../x", 1},
	    {"a/b/l", "../../x/../..", 0},
	    {"l", "/a", 0},
	    {"l", "", 0},
	    {"l", "...", 1},
	};
	size_t i;

	for (i = 0; i < nitems(t); i++)
		assert_int_equal(
		    import_link_inside(t[i].member, t[i].text), t[i].inside);
}

/* ---- members ---- */

struct order {
	struct bulk b;
	struct rootref ref;
	struct import im;
};

static void
order_new(struct order *o, const struct tmp *t, uint16_t flags)
{
	memset(o, 0, sizeof(*o));
	o->b.dst = target_of(t, "d");
	o->b.has_dst = 1;
	o->b.flags = flags;
	o->b.max_bytes = o->b.max_entries = UINT64_MAX;
	o->b.refs = &o->ref;
	o->b.nrefs = 1;
	assert_int_equal(strlist_add(&o->b.deny, "**/.env", 7), 0);
	assert_int_equal(import_open(&o->im, &t->pd, &o->b), C_OK);
}

static void
order_free(struct order *o)
{
	import_close(&o->im);
	target_clear(&o->b.dst);
	strlist_clear(&o->b.deny);
}

static int
add(struct order *o, uint8_t type, const char *path, const char *text)
{
	struct member m = {.type = type, .mode = 0644};
	char name[128], link[128];
	enum code code;

	snprintf(name, sizeof(name), "%s", path);
	snprintf(link, sizeof(link), "%s", text);
	m.path = name;
	m.link = link;
	if (type == ME_FILE)
		m.size = strlen(text);
	code = import_member(&o->im, &m);
	if (code == C_OK && m.size > 0)
		code =
		    import_data(&o->im, 0, (const uint8_t *)text, strlen(text));
	return code;
}

static unsigned
count(const struct tmp *t, const char *rel)
{
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	assert_non_null(d = opendir(at(t, rel)));
	while ((e = readdir(d)) != NULL)
		n +=
		    strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

static void
check(int components)
{
	struct order o;
	struct tmp t;

	beneath_components(components);
	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	make_file(&t, "w/d/f", "old");
	make_dir(&t, "w/d/s");
	make_file(&t, "w/d/s/mine", "mine");
	make_link(&t, "w/d/away", at(&t, "out"));
	order_new(&o, &t, 0);
	assert_int_equal(add(&o, ME_FILE, "f", "new"), C_OK);
	assert_int_equal(add(&o, ME_FILE, "s/x", "x"), C_OK);
	assert_int_equal(add(&o, ME_FILE, "n/x/y", "y"), C_OK);
	assert_int_equal(add(&o, ME_LINK, "n/l", "x/y"), C_OK);
	assert_int_equal(add(&o, ME_DIR, "e", ""), C_OK);
	assert_string_equal(text_of(&t, "w/d/f"), "old");
	assert_int_equal(import_commit(&o.im), C_OK);
	order_free(&o);
	assert_string_equal(text_of(&t, "w/d/f"), "new");
	assert_string_equal(text_of(&t, "w/d/s/x"), "x");
	assert_string_equal(text_of(&t, "w/d/s/mine"), "mine");
	assert_string_equal(text_of(&t, "w/d/n/l"), "y");
	assert_int_equal(count(&t, "w/d"), 5);

	order_new(&o, &t, 0);
	assert_int_equal(add(&o, ME_FILE, "f", "newer"), C_OK);
	assert_int_equal(add(&o, ME_FILE, "away/secret", "evil"), C_OK);
	assert_int_equal(import_commit(&o.im), C_POL_SYMLINK_DENIED);
	assert_int_equal(add(&o, ME_LINK, "q", "s"), C_OK);
	assert_int_equal(add(&o, ME_FILE, "q/x", "evil"), C_POL_SYMLINK_DENIED);
	assert_int_equal(add(&o, ME_HARD, "h", "f"), C_POL_HARDLINK_DENIED);
	assert_int_equal(add(&o, ME_OTHER, "o", ""), C_POL_NOT_REGULAR);
	assert_int_equal(add(&o, ME_FILE, "s/.env", ""), C_POL_PATH_DENIED);
	assert_int_equal(
	    import_data(&o.im, 0, (const uint8_t *)"x", 1), C_ARGS_INVALID);
	order_free(&o);
	assert_string_equal(text_of(&t, "w/d/f"), "new");
	assert_string_equal(text_of(&t, "out/secret"), "OUTSIDE");
	assert_int_equal(count(&t, "w/d"), 5);

	/* another name of a file, never of a link: it would lead elsewhere */
	order_new(&o, &t, PF_HARDLINKS);
	assert_int_equal(add(&o, ME_FILE, "deep/f", "x"), C_OK);
	assert_int_equal(add(&o, ME_HARD, "deep/h", "deep/f"), C_OK);
	assert_int_equal(add(&o, ME_LINK, "deep/up", ".."), C_OK);
	assert_int_equal(
	    add(&o, ME_HARD, "up", "deep/up"), C_POL_HARDLINK_DENIED);
	assert_int_equal(add(&o, ME_HARD, "e2", "deep"), C_POL_HARDLINK_DENIED);
	order_free(&o);
	assert_int_equal(count(&t, "w/d"), 5);

	/* the target is another directory by now */
	order_new(&o, &t, 0);
	import_close(&o.im);
	assert_int_equal(rename(at(&t, "w/d"), at(&t, "w/was")), 0);
	make_link(&t, "w/d", at(&t, "out"));
	assert_int_equal(import_open(&o.im, &t.pd, &o.b), C_POL_PATH_CHANGED);
	order_free(&o);
	assert_int_equal(count(&t, "out"), 1);
	tmp_free(&t);
	beneath_components(0);
}

/* Directories that no member names are entries too. */
static void
test_entries(void **state)
{
	struct order o;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_dir(&t, "w/d");
	order_new(&o, &t, PF_HARDLINKS);
	o.b.max_entries = 5;
	assert_int_equal(add(&o, ME_DIR, "./", ""), C_OK);
	assert_int_equal(add(&o, ME_FILE, "a/b/f", "1"), C_OK);
	/* once, in whatever order */
	assert_int_equal(add(&o, ME_DIR, "a/b", ""), C_OK);
	assert_int_equal(add(&o, ME_DIR, "a", ""), C_OK);
	/* nothing new, and it stays what it was */
	assert_int_equal(add(&o, ME_HARD, "a/b/f", "./a/b/f"), C_OK);
	assert_int_equal(
	    add(&o, ME_HARD, "a/b/no", "a/b/no"), C_POL_HARDLINK_DENIED);
	assert_int_equal(add(&o, ME_FILE, "f", ""), C_LIM_MAX_ENTRIES);
	order_free(&o);
	order_new(&o, &t, 0);
	o.b.max_entries = 5;
	assert_int_equal(add(&o, ME_FILE, "a/b/c/d/e", ""), C_OK);
	assert_int_equal(o.im.entries, 1);
	order_free(&o);
	order_new(&o, &t, 0);
	o.b.max_entries = 5;
	assert_int_equal(
	    add(&o, ME_FILE, "a/b/c/d/e/f", ""), C_LIM_MAX_ENTRIES);
	order_free(&o);
	assert_int_equal(count(&t, "w/d"), 0);
	tmp_free(&t);
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

/* ---- taken back ---- */

struct moves {
	struct tmp t;
	int stage, from, to;
	struct undo u;
};

static void
moves_new(struct moves *m)
{
	tmp_new(&m->t);
	make_dir(&m->t, "w/stage");
	make_dir(&m->t, "w/stage/new");
	make_dir(&m->t, "w/to");
	m->stage = open(at(&m->t, "w/stage"), O_RDONLY | O_CLOEXEC);
	m->from = open(at(&m->t, "w/stage/new"), O_RDONLY | O_CLOEXEC);
	m->to = open(at(&m->t, "w/to"), O_RDONLY | O_CLOEXEC);
	assert_true(m->stage != -1 && m->from != -1 && m->to != -1);
	assert_int_equal(undo_open(&m->u, m->stage, NULL), C_OK);
}

static void
moves_free(struct moves *m)
{
	undo_close(&m->u);
	close(m->stage);
	close(m->from);
	close(m->to);
	tmp_free(&m->t);
}

/* Move name, over what is there when something is. */
static int
move(struct moves *m, const char *name)
{
	struct stat st, old;
	int has;

	assert_int_equal(fstatat(m->from, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	has = fstatat(m->to, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	return (int)undo_move(
	    &m->u, m->from, name, m->to, name, &st, has ? &old : NULL);
}

static void
test_undo(void **state)
{
	struct moves m;

	moves_new(&m);
	make_file(&m.t, "w/to/f", "old");
	make_link(&m.t, "w/to/l", "nowhere");
	make_file(&m.t, "w/stage/new/f", "new");
	make_file(&m.t, "w/stage/new/l", "new");
	make_file(&m.t, "w/stage/new/n", "new");
	make_dir(&m.t, "w/stage/new/d");
	make_file(&m.t, "w/stage/new/d/x", "new");
	assert_int_equal(move(&m, "f"), C_OK);
	assert_int_equal(move(&m, "l"), C_OK);
	assert_int_equal(move(&m, "n"), C_OK);
	assert_int_equal(move(&m, "d"), C_OK);
	assert_string_equal(text_of(&m.t, "w/to/f"), "new");
	assert_string_equal(text_of(&m.t, "w/to/l"), "new");
	assert_string_equal(text_of(&m.t, "w/to/d/x"), "new");
	assert_false(there(&m.t, "w/stage/new/f"));
	undo_back(&m.u, m.to);
	assert_string_equal(text_of(&m.t, "w/to/f"), "old");
	assert_false(there(&m.t, "w/to/n"));
	assert_false(there(&m.t, "w/to/d"));
	assert_int_equal(count(&m.t, "w/to"), 2);
	moves_free(&m);
}

/* ---- after a crash ---- */

enum crash {
	MOVED,	   /* before all were moved */
	EXCHANGED, /* before what was replaced was put away */
	BACK,	   /* when some had been taken back */
	KEPT,	   /* when they were to be kept */
	CRASHES
};

/* The process ends there, and the next one sweeps. */
static void
crash(enum crash when)
{
	static const char *const names[] = {"f", "l", "n", "d"};
	struct order o;
	struct moves m;
	size_t i;

	tmp_new(&m.t);
	roots_open(&m.t.pd.roots);
	m.t.pd.journal =
	    open(at(&m.t, "journal"), O_RDWR | O_CREAT | O_APPEND, 0600);
	assert_int_not_equal(m.t.pd.journal, -1);
	make_dir(&m.t, "w/d");
	make_file(&m.t, "w/d/f", "old");
	make_link(&m.t, "w/d/l", "nowhere");
	order_new(&o, &m.t, 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(add(&o, ME_FILE, names[i], "new"), C_OK);
	assert_int_equal(add(&o, ME_FILE, "d/x", "new"), C_OK);
	assert_int_equal(add(&o, ME_FILE, "last", "new"), C_OK);
	assert_int_equal(
	    undo_open(&o.im.undo, o.im.stage.fd, &o.im.stage), C_OK);
	m.u = o.im.undo;
	m.from = o.im.top;
	m.to = o.im.stage.up.fd;
	for (i = 0; i < nitems(names); i++)
		assert_int_equal(move(&m, names[i]), C_OK);
	assert_string_equal(text_of(&m.t, "w/d/f"), "new");
	assert_string_equal(text_of(&m.t, "w/d/d/x"), "new");
	if (when == EXCHANGED) {
		assert_int_equal(renameat(m.u.dir, "0", m.from, "f"), 0);
		assert_int_equal(renameat(m.u.dir, "1", m.from, "l"), 0);
	} else if (when == BACK) {
		assert_int_equal(renameat(m.u.dir, "0", m.to, "f"), 0);
		assert_int_equal(renameat(m.to, "n", m.u.dir, "new2"), 0);
	} else if (when == KEPT)
		assert_int_equal(undo_keep(&m.u, o.im.stage.fd), C_OK);
	assert_int_equal(journal_sweep(&m.t.pd), 1);
	if (when == KEPT) {
		assert_string_equal(text_of(&m.t, "w/d/l"), "new");
		assert_string_equal(text_of(&m.t, "w/d/n"), "new");
		assert_int_equal(count(&m.t, "w/d"), 4);
	} else {
		assert_string_equal(text_of(&m.t, "w/d/f"), "old");
		assert_int_equal(count(&m.t, "w/d"), 2);
	}
	order_free(&o);
	close(m.t.pd.journal);
	m.t.pd.journal = -1;
	tmp_free(&m.t);
}

static void
test_crash(void **state)
{
	int i;

	for (i = 0; i < CRASHES; i++)
		crash((enum crash)i);
}

/* What somebody else put there meanwhile is neither replaced nor taken. */
static void
test_undo_others(void **state)
{
	struct stat st, old;
	struct moves m;

	moves_new(&m);
	make_file(&m.t, "w/to/f", "looked at");
	make_file(&m.t, "w/stage/new/f", "new");
	make_file(&m.t, "w/stage/new/n", "new");
	make_file(&m.t, "w/stage/new/k", "new");
	assert_int_equal(fstatat(m.from, "f", &st, 0), 0);
	assert_int_equal(fstatat(m.to, "f", &old, 0), 0);
	/* another file, then a directory, in its place */
	assert_int_equal(rename(at(&m.t, "w/to/f"), at(&m.t, "w/kept")), 0);
	make_file(&m.t, "w/to/f", "another");
	assert_int_equal(undo_move(&m.u, m.from, "f", m.to, "f", &st, &old),
	    C_POL_PATH_CHANGED);
	assert_string_equal(text_of(&m.t, "w/to/f"), "another");
	assert_int_equal(unlink(at(&m.t, "w/to/f")), 0);
	make_dir(&m.t, "w/to/f");
	make_file(&m.t, "w/to/f/x", "another's");
	assert_int_equal(undo_move(&m.u, m.from, "f", m.to, "f", &st, &old),
	    C_POL_PATH_CHANGED);
	assert_string_equal(text_of(&m.t, "w/to/f/x"), "another's");
	/* a name that was free */
	assert_int_equal(fstatat(m.from, "k", &st, 0), 0);
	make_file(&m.t, "w/to/k", "another");
	assert_int_equal(undo_move(&m.u, m.from, "k", m.to, "k", &st, NULL),
	    C_POL_PATH_CHANGED);
	assert_int_equal(move(&m, "n"), C_OK);
	assert_int_equal(unlink(at(&m.t, "w/to/n")), 0);
	make_file(&m.t, "w/to/n", "another");
	undo_back(&m.u, m.to);
	assert_string_equal(text_of(&m.t, "w/to/f/x"), "another's");
	assert_string_equal(text_of(&m.t, "w/to/k"), "another");
	assert_string_equal(text_of(&m.t, "w/to/n"), "another");
	moves_free(&m);
}

/* More than is kept in memory. */
static void
test_undo_many(void **state)
{
	char rel[300], name[256];
	struct moves m;
	size_t i;

	moves_new(&m);
	for (i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "%0200zu", i);
		snprintf(rel, sizeof(rel), "w/stage/new/%s", name);
		make_file(&m.t, rel, "new");
		if (i % 2 == 0) {
			snprintf(rel, sizeof(rel), "w/to/%s", name);
			make_file(&m.t, rel, "old");
		}
		assert_int_equal(move(&m, name), C_OK);
	}
	assert_int_equal(count(&m.t, "w/to"), 400);
	assert_true(m.u.logged > 0 && m.u.n > 0);
	undo_back(&m.u, m.to);
	assert_int_equal(count(&m.t, "w/to"), 200);
	for (i = 0; i < 400; i += 2) {
		snprintf(rel, sizeof(rel), "w/to/%0200zu", i);
		assert_string_equal(text_of(&m.t, rel), "old");
	}
	moves_free(&m);
}

/* ---- large ones ---- */

static void
add_many(struct order *o, const struct tmp *t)
{
	char rel[32];
	int i;

	order_new(o, t, 0);
	for (i = 0; i < 300; i++) {
		snprintf(rel, sizeof(rel), "s/%d", i);
		assert_int_equal(add(o, ME_FILE, rel, "new"), C_OK);
	}
}

/* Whoever watches sees that work goes on, whatever is done; and what is said
 * of it has an end. */
static void
test_large(void **state)
{
	volatile uint64_t beat = 0;
	struct order o;
	struct tmp t;

	tmp_new(&t);
	roots_open(&t.pd.roots);
	t.pd.journal =
	    open(at(&t, "journal"), O_RDWR | O_CREAT | O_APPEND, 0600);
	assert_int_not_equal(t.pd.journal, -1);
	t.pd.beat = &beat;
	make_dir(&t, "w/d");
	make_dir(&t, "w/d/s");
	make_file(&t, "w/d/s/7", "old");
	add_many(&o, &t);
	beat = 0;
	order_free(&o); /* removed */
	assert_in_range(beat, 300, 400);
	assert_int_equal(count(&t, "w/d/s"), 1);

	/* there is no room for what is said of all moves */
	assert_int_equal(ftruncate(t.pd.journal, JOURNAL_MAX - 20000), 0);
	add_many(&o, &t);
	beat = 0;
	assert_int_equal(import_commit(&o.im), C_FS_NO_SPACE);
	assert_in_range(o.im.undo.next, 50, 250);
	assert_in_range(
	    beat, 300 + 2 * o.im.undo.next, 310 + 3 * o.im.undo.next);
	assert_int_equal(count(&t, "w/d/s"), 1);
	assert_string_equal(text_of(&t, "w/d/s/7"), "old");
	order_free(&o);

	assert_int_equal(ftruncate(t.pd.journal, 0), 0);
	add_many(&o, &t);
	beat = 0;
	assert_int_equal(import_commit(&o.im), C_OK);
	assert_in_range(beat, 600, 700);
	assert_int_equal(count(&t, "w/d/s"), 300);
	assert_string_equal(text_of(&t, "w/d/s/7"), "new");
	order_free(&o);
	beat = 0;
	assert_int_equal(journal_sweep(&t.pd), 0);
	assert_in_range(beat, 600, 700);
	close(t.pd.journal);
	t.pd.journal = -1;
	tmp_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_links),
	    cmocka_unit_test(test_entries),
	    cmocka_unit_test(test_openat2),
	    cmocka_unit_test(test_components),
	    cmocka_unit_test(test_undo),
	    cmocka_unit_test(test_crash),
	    cmocka_unit_test(test_undo_others),
	    cmocka_unit_test(test_undo_many),
	    cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
