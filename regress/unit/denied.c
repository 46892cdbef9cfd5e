/*
 * SPDX-License-Identifier: ISC
 *
 * What pathd lists as denied below a working directory, and the lists
 * themselves.
 */
#include "pathd_tree.h"

#include <sys/resource.h>

#include "common/glob.h"
#include "pathd/denied.h"

static void
word(struct strlist *l, const char *s)
{
	assert_int_equal(strlist_add(l, s, strlen(s)), 0);
}

/* The list for that directory, sorted, each "path:kind ". */
static const char *
found(const struct tmp *t, const char *rel, const char *const *deny,
    const char *skip, enum code want)
{
	static char text[4096];
	struct denied q = {0};
	struct covers c;
	char *p;
	size_t i, k;

	q.target = target_of(t, rel);
	for (; *deny != NULL; deny++) {
		p = glob_text(*deny, t->root);
		assert_non_null(p);
		word(&q.deny, p);
		free(p);
	}
	if (skip != NULL)
		word(&q.skip, at(t, skip));
	assert_int_equal(denied_find(&t->pd, &q, NULL, &c), want);
	text[0] = '\0';
	while (c.n > 0 && want == C_OK) {
		for (i = k = 0; i < c.n; i++)
			if (strcmp(c.v[i].rel, c.v[k].rel) < 0)
				k = i;
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%s:%d ", c.v[k].rel, c.v[k].kind);
		assert_int_not_equal(c.v[k].ino, 0);
		target_clear(&c.v[k]);
		c.v[k] = c.v[--c.n];
		memset(&c.v[c.n], 0, sizeof(c.v[0]));
	}
	covers_clear(&c);
	denied_clear(&q);
	return text;
}

static void
test_find(void **state)
{
	static const char *const env[] = {"**/.env", NULL};
	static const char *const two[] = {"vault/**", "**/*.key", NULL};
	static const char *const none[] = {"other/x", NULL};
	static const char *const link[] = {"l", "out", "round", "up", NULL};
	static const char *const all[] = {"**", NULL};
	struct tmp t;

	tmp_new(&t);
	make_dir(&t, "w/a");
	make_dir(&t, "w/a/b");
	make_dir(&t, "w/vault");
	make_file(&t, "w/.env", "x");
	make_file(&t, "w/a/b/.env", "x");
	make_file(&t, "w/vault/k.key", "x");
	make_file(&t, "w/a/k.key", "x");
	make_file(&t, "w/a/plain", "x");
	assert_int_equal(mkfifo(at(&t, "w/a/p.key"), 0600), 0);
	make_link(&t, "w/l", "a/plain");
	make_link(&t, "w/out", at(&t, "out/secret"));
	make_link(&t, "w/round", "round");
	make_link(&t, "w/up", ".");
	roots_open(&t.pd.roots);
	assert_string_equal(
	    found(&t, "", env, NULL, C_OK), ".env:1 a/b/.env:1 ");
	assert_string_equal(found(&t, "a", env, NULL, C_OK), "b/.env:1 ");
	assert_string_equal(
	    found(&t, "", two, NULL, C_OK), "a/k.key:1 a/p.key:4 vault:2 ");
	assert_string_equal(found(&t, "", none, NULL, C_OK), "");
	/* for a link stands what it leads to */
	assert_string_equal(found(&t, "", link, NULL, C_OK), "a/plain:1 ");
	/* the links of all lead to what is covered itself */
	assert_string_equal(
	    found(&t, "", all, NULL, C_OK), ".env:1 a:2 vault:2 ");
	/* what is hidden already is not looked into */
	assert_string_equal(
	    found(&t, "", two, "w/vault", C_OK), "a/k.key:1 a/p.key:4 ");
	assert_string_equal(found(&t, "", env, "w/a", C_OK), ".env:1 ");
	tmp_free(&t);
}

static void
test_bounds(void **state)
{
	static const char *const keys[] = {"**/*.key", NULL};
	char name[64];
	struct tmp t;
	int i;

	tmp_new(&t);
	make_dir(&t, "w/d");
	for (i = 0; i < ABX_MAX_COVERS; i++) {
		snprintf(name, sizeof(name), "w/d/%d.key", i);
		make_file(&t, name, "");
	}
	roots_open(&t.pd.roots);
	(void)found(&t, "", keys, NULL, C_OK);
	make_file(&t, "w/d/x.key", "");
	(void)found(&t, "", keys, NULL, C_SBX_TOO_MANY_DENIED);
	tmp_free(&t);
}

/* Nobody knows what lies in a directory that cannot be read. */
static void
test_unreadable(void **state)
{
	static const char *const env[] = {"**/.env", NULL};
	struct tmp t;

	tmp_new(&t);
	make_dir(&t, "w/a");
	make_file(&t, "w/a/.env", "x");
	roots_open(&t.pd.roots);
	assert_int_equal(chmod(at(&t, "w/a"), 0), 0);
	assert_string_equal(found(&t, "", env, NULL, C_OK),
	    geteuid() == 0 ? "a/.env:1 " : "a:2 ");
	assert_int_equal(chmod(at(&t, "w/a"), 0700), 0);
	tmp_free(&t);
}

static void
test_lists(void **state)
{
	struct covers a = {0}, b = {0};
	struct wbuf w;
	struct rbuf r;
	size_t i;

	assert_int_equal(covers_add(&a, "x", FK_FILE, 1, 2), 0);
	assert_int_equal(covers_add(&a, "y/z", FK_DIR, 1, 3), 0);
	assert_int_equal(covers_add(&b, "y/z", FK_DIR, 1, 3), 0);
	assert_false(covers_equal(&a, &b));
	assert_int_equal(covers_add(&b, "x", FK_FILE, 1, 2), 0);
	assert_true(covers_equal(&a, &b));
	b.v[0].ino++;
	assert_false(covers_equal(&a, &b));
	covers_clear(&b);
	wbuf_init(&w, 65536);
	covers_put(&w, &a);
	for (i = 0; i <= w.len; i++) {
		rbuf_init(&r, w.p, i);
		assert_int_equal(covers_get(&r, &b), i == w.len ? 0 : -1);
		if (i == w.len)
			assert_true(covers_equal(&a, &b));
		covers_clear(&b);
	}
	/* the directory itself is no entry */
	wbuf_reset(&w);
	a.v[0].rel[0] = '\0';
	covers_put(&w, &a);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(covers_get(&r, &b), -1);
	covers_clear(&a);
	wbuf_free(&w);
}

/* May a pattern match something below a directory? */
static void
test_below(void **state)
{
	static const struct {
		const char *pattern, *dir;
		int want;
	} t[] = {
	    {"**/.env", "/w/a", 1},
	    {".env", "/w/a", 1},
	    {"/w/a/x", "/w/a", 1},
	    {"/w/a/x/y", "/w/a", 1},
	    {"/w/a", "/w/a", 1},
	    {"/w", "/w/a", 1},
	    {"/w/b", "/w/a", 0},
	    {"/w/a*/x", "/w/ab", 1},
	    {"/etc", "/w", 0},
	    {"/w/**/k", "/w/a/b", 1},
	    {"/v/**", "/w", 0},
	    {"/proc", "/w", 0},
	    {"/x", "/", 1},
	};
	const char *why;
	struct glob *g;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		g = glob_new(t[i].pattern, NULL, &why);
		assert_non_null(g);
		if (glob_below(g, t[i].dir) != t[i].want)
			fail_msg("%s below %s", t[i].pattern, t[i].dir);
		glob_free(g);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_find),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_unreadable),
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_below),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
