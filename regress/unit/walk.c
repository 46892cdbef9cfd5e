/*
 * SPDX-License-Identifier: ISC
 *
 * Facts about paths in a tree with links of every kind, with openat2 and
 * component by component.
 */
#include <errno.h>

#include "pathd_tree.h"

#include "common/abx.h"
#include "pathd/beneath.h"
#include "pathd/walk.h"

struct row {
	const char *path; /* below the base, or absolute with a leading '=' */
	int nofollow;
	enum facts_status status;
	int err;
	const char *canon; /* below the base; where the walk ended */
	enum facts_kind kind;
	unsigned missing;
	int symlink;
};

#define NAME_64 \
	"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
#define NAME_LONG NAME_64 NAME_64 NAME_64 NAME_64

#define OURS ".abx-0123456789abcdef0123456789abcdef"

static const struct row rows[] = {
    {"w", 0, FS_OK, 0, "w", FK_DIR, 0, 0},
    {"w/a", 0, FS_OK, 0, "w/a", FK_FILE, 0, 0},
    {"w/d/b", 0, FS_OK, 0, "w/d/b", FK_FILE, 0, 0},
    {"w/fifo", 0, FS_OK, 0, "w/fifo", FK_OTHER, 0, 0},
    {"w/no", 0, FS_OK, 0, "w/no", FK_MISSING, 1, 0},
    {"w/no/x/y", 0, FS_OK, 0, "w/no/x/y", FK_MISSING, 3, 0},
    {"w/d/no", 0, FS_OK, 0, "w/d/no", FK_MISSING, 1, 0},
    {"w/..x/...", 0, FS_OK, 0, "w/..x/...", FK_FILE, 0, 0},
    {"w/a/x", 0, FS_ERRNO, ENOTDIR, "w/a/x", 0, 0, 0},
    /* outside, whether it exists or not */
    {"out/secret", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"out/absent", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"wx", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"=/", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"w/out-abs", 0, FS_OUTSIDE, 0, "w/out-abs", 0, 0, 0},
    {"w/out-rel", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"w/out-dir/secret", 0, FS_OUTSIDE, 0, "w/out-dir", 0, 0, 0},
    {"w/out-dir/absent", 0, FS_OUTSIDE, 0, "w/out-dir", 0, 0, 0},
    {"w/dangling", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"w/hop", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"w/up", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"w/up/w/a", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"w/etc", 0, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    /* links within */
    {"w/in", 0, FS_OK, 0, "w/d/b", FK_FILE, 0, 1},
    {"w/in-abs", 0, FS_OK, 0, "w/d/b", FK_FILE, 0, 1},
    {"w/in-dots", 0, FS_OK, 0, "w/d/b", FK_FILE, 0, 1},
    {"w/ld/b", 0, FS_OK, 0, "w/d/b", FK_FILE, 0, 1},
    {"w/ld/back", 0, FS_OK, 0, "w/a", FK_FILE, 0, 1},
    {"w/ld/new", 0, FS_OK, 0, "w/d/new", FK_MISSING, 1, 1},
    {"w/self/self/a", 0, FS_OK, 0, "w/a", FK_FILE, 0, 1},
    {"w/dangling-in", 0, FS_OK, 0, "w/d/nothing", FK_MISSING, 1, 1},
    {"w/gone-up", 0, FS_ERRNO, ENOENT, "w/nothing", 0, 0, 1},
    {"w/file-dot", 0, FS_ERRNO, ENOTDIR, "w/a", 0, 0, 1},
    {"w/loop", 0, FS_INVALID, 0, "w/loop", 0, 0, 0},
    {"w/loop2", 0, FS_INVALID, 0, NULL, 0, 0, 0},
    {"w/chain40", 0, FS_OK, 0, "w/a", FK_FILE, 0, 1},
    {"w/chain41", 0, FS_INVALID, 0, NULL, 0, 0, 0},
    /* what is not whole yet, by whatever name */
    {"w/" OURS, 0, FS_INVALID, 0, NULL, 0, 0, 0},
    {"w/" OURS "/x", 0, FS_INVALID, 0, NULL, 0, 0, 0},
    {"w/to-ours", 0, FS_INVALID, 0, NULL, 0, 0, 0},
    {"w/" OURS "0", 0, FS_OK, 0, "w/" OURS "0", FK_MISSING, 1, 0},
    /* the last component itself */
    {"w/in", 1, FS_OK, 0, "w/in", FK_LINK, 0, 0},
    {"w/out-abs", 1, FS_OK, 0, "w/out-abs", FK_LINK, 0, 0},
    {"w/ld/back", 1, FS_OK, 0, "w/d/back", FK_LINK, 0, 1},
    {"w/out-dir/secret", 1, FS_OUTSIDE, 0, NULL, 0, 0, 0},
    {"w/loop", 1, FS_OK, 0, "w/loop", FK_LINK, 0, 0},
    /* names that no file system takes, of what is there and what is not */
    {"w/" NAME_LONG, 0, FS_ERRNO, ENAMETOOLONG, NULL, 0, 0, 0},
    {"w/" NAME_LONG "/x", 0, FS_ERRNO, ENAMETOOLONG, NULL, 0, 0, 0},
    {"w/none/" NAME_LONG, 0, FS_ERRNO, ENAMETOOLONG, "w/none", 0, 0, 0},
    /* the other spelling of the root */
    {"alias/a", 0, FS_OK, 0, "w/a", FK_FILE, 0, 0},
    {"w/by-alias", 0, FS_OK, 0, "w/a", FK_FILE, 0, 1},
};

static void
chain(const struct tmp *t, int n)
{
	char from[64], to[64];
	int i;

	for (i = 1; i <= n; i++) {
		snprintf(from, sizeof(from), "w/chain%d", i);
		snprintf(to, sizeof(to), i == 1 ? "a" : "chain%d", i - 1);
		make_link(t, from, to);
	}
}

static void
fill(struct tmp *t)
{
	make_file(t, "w/a", "AAA");
	make_dir(t, "w/d");
	make_file(t, "w/d/b", "BBB");
	make_dir(t, "w/..x");
	make_file(t, "w/..x/...", "dots");
	make_dir(t, "wx");
	assert_int_equal(mkfifo(at(t, "w/fifo"), 0600), 0);
	make_link(t, "w/out-abs", at(t, "out/secret"));
	make_link(t, "w/out-rel", "../out/secret");
	make_link(t, "w/out-dir", at(t, "out"));
	make_link(t, "w/dangling", at(t, "out/not-there"));
	make_link(t, "w/hop", "out-abs");
	make_link(t, "w/up", "..");
	make_link(t, "w/etc", "/etc/hostname");
	make_link(t, "w/in", "d/b");
	make_link(t, "w/in-abs", at(t, "w/d/b"));
	make_link(t, "w/in-dots", at(t, "w//./d/../d/b"));
	make_link(t, "w/ld", "d");
	make_link(t, "w/d/back", "../a");
	make_link(t, "w/self", ".");
	make_link(t, "w/dangling-in", "d/nothing");
	make_link(t, "w/gone-up", "nothing/../a");
	make_link(t, "w/file-dot", "a/.");
	make_link(t, "w/loop", "loop");
	make_link(t, "w/loop2", "d/../loop2/x");
	make_dir(t, "w/" OURS);
	make_file(t, "w/" OURS "/x", "not whole");
	make_link(t, "w/to-ours", OURS "/x");
	make_link(t, "w/by-alias", at(t, "alias/a"));
	make_link(t, "alias", at(t, "w"));
	chain(t, 41);
	/* the operator names the root by the link */
	roots_clear(&t->pd.roots);
	assert_int_equal(roots_add(&t->pd.roots, 0, at(t, "alias")), 0);
	roots_open(&t->pd.roots);
	assert_int_equal(t->pd.roots.v[0].err, 0);
	assert_string_equal(t->pd.roots.v[0].path, t->root);
}

static void
check_row(const struct tmp *t, const struct row *r)
{
	struct rootref ref = {0, ""};
	struct resolve_item it = {
	    .nofollow = (uint8_t)r->nofollow, .refs = &ref, .nrefs = 1};
	struct facts f;

	it.path =
	    r->path[0] == '=' ? strdup(r->path + 1) : strdup(at(t, r->path));
	assert_int_equal(
	    walk_resolve(&t->pd.roots, &it, WALK_FACTS, &f, NULL), 0);
	if (f.status != r->status || f.kind != r->kind ||
	    f.missing != r->missing || f.symlink != r->symlink ||
	    f.err != r->err)
		fail_msg("%s: status %d err %d kind %d missing %d link %d",
		    r->path, f.status, f.err, f.kind, f.missing, f.symlink);
	if (r->canon != NULL)
		assert_string_equal(f.path, at(t, r->canon));
	if (r->status == FS_OK)
		assert_int_equal(f.rel, strlen(t->root));
	facts_clear(&f);
	free(it.path);
}

static void
check_rows(int components)
{
	struct tmp t;
	size_t i;

	tmp_new(&t);
	fill(&t);
	beneath_components(components);
	for (i = 0; i < nitems(rows); i++)
		check_row(&t, &rows[i]);
	beneath_components(0);
	tmp_free(&t);
}

static void
test_openat2(void **state)
{
	check_rows(0);
}

static void
test_components(void **state)
{
	check_rows(1);
}

/* What a walk went through by links and left again, lowest places only. */
static void
test_via(void **state)
{
	static const struct {
		const char *path, *via; /* below w; "" for none */
		enum facts_status status;
	} t[] = {
	    {"a", "", FS_OK},
	    {"in", "", FS_OK},
	    {"ld/back", "w/d/back", FS_OK}, /* d/back is not what was asked */
	    {"d/back", "", FS_OK},
	    {"hop2", "w/in", FS_OK},
	    {"out-in", "w/d/deep/deeper", FS_OK},
	    {"out-in/x", "w/d/deep/deeper", FS_ERRNO},
	    {"out-in-abs", "w/d/deep", FS_OK},
	    {"by-link", "w/d/deep/abs", FS_OK},
	    {"twice", "w/d/deep w/e", FS_OK},
	    {"left", "w/d", FS_OUTSIDE},
	    {"no-dir", "", FS_ERRNO},
	    {"loop", "", FS_INVALID},
	};
	struct rootref ref = {0, ""};
	struct resolve_item it = {.refs = &ref, .nrefs = 1};
	char got[4096], one[64];
	struct facts f;
	struct tmp tmp;
	size_t i, k;

	tmp_new(&tmp);
	fill(&tmp);
	make_dir(&tmp, "w/d/deep");
	make_dir(&tmp, "w/d/deep/deeper");
	make_dir(&tmp, "w/e");
	make_link(&tmp, "w/hop2", "in");
	make_link(&tmp, "w/out-in", "d/deep/deeper/../../../a");
	make_link(&tmp, "w/out-in-abs", at(&tmp, "w/d/deep/../../a"));
	make_link(&tmp, "w/d/deep/abs", at(&tmp, "w/a"));
	make_link(&tmp, "w/by-link", "d/deep/abs");
	make_link(&tmp, "w/twice", "d/deep/../../e/../a");
	make_link(&tmp, "w/left", "d/../../out/secret");
	make_link(&tmp, "w/no-dir", "none/../a");
	for (i = 0; i < nitems(t); i++) {
		snprintf(one, sizeof(one), "w/%s", t[i].path);
		it.path = strdup(at(&tmp, one));
		assert_int_equal(
		    walk_resolve(&tmp.pd.roots, &it, WALK_FACTS, &f, NULL), 0);
		assert_int_equal(f.status, t[i].status);
		for (k = 0, got[0] = '\0'; k < f.via.n; k++) {
			strlcat(got, k > 0 ? " w" : "w", sizeof(got));
			strlcat(
			    got, f.via.v[k] + strlen(tmp.root), sizeof(got));
		}
		assert_string_equal(got, t[i].via);
		facts_clear(&f);
		free(it.path);
	}
	tmp_free(&tmp);
}

/* A walk ends where it would leave more places than can be told. */
static void
test_via_bound(void **state)
{
	struct rootref ref = {0, ""};
	struct resolve_item it = {.refs = &ref, .nrefs = 1};
	char name[32], text[4096] = "";
	struct facts f;
	struct tmp t;
	int i;

	tmp_new(&t);
	for (i = 0; i < FACTS_VIA_MAX + 1; i++) {
		snprintf(name, sizeof(name), "w/d%d", i);
		make_dir(&t, name);
		snprintf(name, sizeof(name), "d%d/../", i);
		strlcat(text, name, sizeof(text));
	}
	make_link(&t, "w/many", text);
	make_link(&t, "w/most", strchr(text, '/') + 4);
	roots_open(&t.pd.roots);
	it.path = strdup(at(&t, "w/most"));
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_OK);
	assert_int_equal(f.via.n, FACTS_VIA_MAX);
	facts_clear(&f);
	free(it.path);
	it.path = strdup(at(&t, "w/many"));
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_INVALID);
	assert_int_equal(f.via.n, FACTS_VIA_MAX);
	snprintf(name, sizeof(name), "w/d%d", FACTS_VIA_MAX);
	assert_string_equal(f.path, at(&t, name));
	facts_clear(&f);
	free(it.path);
	tmp_free(&t);
}

/* Walk with WALK_READ or WALK_DIR: the descriptor or -1. */
static int
want(const struct tmp *t, const char *path, enum walk_want w, struct facts *f)
{
	struct rootref ref = {0, ""};
	struct resolve_item it = {.refs = &ref, .nrefs = 1};
	int fd;

	it.path = at(t, path);
	assert_int_equal(walk_resolve(&t->pd.roots, &it, w, f, &fd), 0);
	return fd;
}

static void
check_read(struct tmp *t, const char *path, const char *text)
{
	struct facts f;
	struct stat st;
	char buf[16];
	int fd = want(t, path, WALK_READ, &f);

	assert_int_not_equal(fd, -1);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, f.ino);
	assert_int_equal(f.size, strlen(text));
	assert_int_equal(read(fd, buf, sizeof(buf)), (ssize_t)strlen(text));
	assert_memory_equal(buf, text, strlen(text));
	close(fd);
	facts_clear(&f);
}

static void
test_open(void **state)
{
	struct facts f;
	struct tmp t;
	int i, fd;

	tmp_new(&t);
	fill(&t);
	for (i = 0; i < 2; i++) {
		beneath_components(i);
		check_read(&t, "w/a", "AAA");
		check_read(&t, "w/ld/b", "BBB");
		check_read(&t, "w/in-abs", "BBB");
		assert_int_equal(want(&t, "w/d", WALK_READ, &f), -1);
		assert_int_equal(f.kind, FK_DIR);
		facts_clear(&f);
		assert_int_equal(want(&t, "w/fifo", WALK_READ, &f), -1);
		assert_int_equal(f.kind, FK_OTHER);
		facts_clear(&f);
		assert_int_equal(want(&t, "w/out-abs", WALK_READ, &f), -1);
		facts_clear(&f);
		assert_int_equal(want(&t, "w/a", WALK_DIR, &f), -1);
		facts_clear(&f);
		fd = want(&t, "w/ld", WALK_DIR, &f);
		assert_int_not_equal(fd, -1);
		assert_string_equal(f.path, at(&t, "w/d"));
		assert_true((fcntl(fd, F_GETFL) & O_PATH) != 0);
		close(fd);
		facts_clear(&f);
		fd = want(&t, "w", WALK_DIR, &f);
		assert_int_not_equal(fd, -1);
		close(fd);
		facts_clear(&f);
	}
	beneath_components(0);
	tmp_free(&t);
}

/* A file that may be seen and not read still has facts. */
static void
test_unreadable(void **state)
{
	struct facts f;
	struct tmp t;

	if (geteuid() == 0)
		skip();
	tmp_new(&t);
	fill(&t);
	assert_int_equal(chmod(at(&t, "w/a"), 0), 0);
	assert_int_equal(want(&t, "w/a", WALK_READ, &f), -1);
	assert_int_equal(f.status, FS_OK);
	assert_int_equal(f.kind, FK_FILE);
	assert_int_equal(f.err, EACCES);
	facts_clear(&f);
	tmp_free(&t);
}

/* Roots below roots, and roots of principals. */
static void
test_refs(void **state)
{
	struct rootref refs[3] = {{0, ""}, {1, ""}, {2, "bob"}};
	struct resolve_item it = {.refs = refs, .nrefs = 3};
	struct facts f;
	struct tmp t;

	tmp_new(&t);
	make_dir(&t, "w/n");
	make_file(&t, "w/n/x", "x");
	make_dir(&t, "p");
	make_dir(&t, "p/bob");
	make_file(&t, "p/bob/f", "f");
	make_dir(&t, "p/eve");
	make_link(&t, "p/bob/eve", "../eve");
	make_link(&t, "p/bob/n", at(&t, "w/n/x"));
	make_link(&t, "p/sly", "bob");
	assert_int_equal(roots_add(&t.pd.roots, 1, at(&t, "w/n")), 0);
	assert_int_equal(roots_add(&t.pd.roots, 2, at(&t, "p/")), 0);
	assert_int_equal(roots_add(&t.pd.roots, 2, at(&t, "out")), -1);
	roots_open(&t.pd.roots);

	it.path = at(&t, "w/n/x");
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.ref, 1);
	assert_int_equal(f.rel, strlen(at(&t, "w/n")));
	facts_clear(&f);
	it.path = at(&t, "p/bob/f");
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.ref, 2);
	assert_int_equal(f.rel, strlen(at(&t, "p/bob")));
	facts_clear(&f);
	it.path = at(&t, "p/bob/n");
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.ref, 1);
	facts_clear(&f);
	it.path = at(&t, "p/bob/eve");
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_OUTSIDE);
	facts_clear(&f);
	it.path = at(&t, "p/eve");
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_OUTSIDE);
	facts_clear(&f);
	/* a principal's directory that is a link, or not there yet */
	strlcpy(refs[2].sub, "sly", sizeof(refs[2].sub));
	it.path = at(&t, "p/sly/f");
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_OUTSIDE);
	facts_clear(&f);
	strlcpy(refs[2].sub, "new", sizeof(refs[2].sub));
	it.path = at(&t, "p/new/f");
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_OK);
	assert_int_equal(f.missing, 2);
	assert_int_equal(f.rel, strlen(at(&t, "p/new")));
	facts_clear(&f);
	tmp_free(&t);
}

static void
test_long(void **state)
{
	struct rootref ref = {0, ""};
	struct resolve_item it = {.refs = &ref, .nrefs = 1};
	char path[ABX_PATH_MAX + 1];
	struct facts f;
	struct tmp t;
	size_t n;

	tmp_new(&t);
	make_link(&t, "w/x", "a/b/c/d/e/f/g/h/i/j");
	roots_open(&t.pd.roots);
	n = (size_t)snprintf(path, sizeof(path), "%s/x", t.root);
	while (n + 2 < sizeof(path)) {
		path[n++] = '/';
		path[n++] = 'y';
	}
	path[n] = '\0';
	it.path = path;
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_INVALID);
	facts_clear(&f);
	snprintf(path, sizeof(path), "%s/%0300d", t.root, 1);
	assert_int_equal(walk_resolve(&t.pd.roots, &it, 0, &f, NULL), 0);
	assert_int_equal(f.status, FS_ERRNO);
	assert_int_equal(f.err, ENAMETOOLONG);
	facts_clear(&f);
	tmp_free(&t);
}

static void
test_roots(void **state)
{
	struct tmp t;

	tmp_new(&t);
	make_file(&t, "file", "x");
	assert_int_equal(roots_add(&t.pd.roots, 1, at(&t, "no")), 0);
	assert_int_equal(roots_add(&t.pd.roots, 2, at(&t, "file")), 0);
	assert_int_equal(roots_add(&t.pd.roots, 3, "/"), 0);
	assert_int_equal(roots_add(&t.pd.roots, 4, "relative"), -1);
	roots_open(&t.pd.roots);
	assert_int_equal(t.pd.roots.v[0].err, 0);
	assert_int_equal(t.pd.roots.v[1].err, ENOENT);
	assert_int_equal(t.pd.roots.v[2].err, ENOTDIR);
	assert_int_equal(t.pd.roots.v[3].err, EINVAL);
	assert_int_equal(t.pd.roots.v[3].fd, -1);
	tmp_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_openat2),
	    cmocka_unit_test(test_components),
	    cmocka_unit_test(test_via),
	    cmocka_unit_test(test_via_bound),
	    cmocka_unit_test(test_open),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_refs),
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_roots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
