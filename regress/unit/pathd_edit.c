/*
 * SPDX-License-Identifier: ISC
 *
 * Edits: replacing in memory, diffs, and the file on both walks.
 */
#include <dirent.h>

#include "pathd_tree.h"

#include "pathd/beneath.h"
#include "pathd/edit.h"
#include "pathd/replace.h"
#include "pathd/udiff.h"

static void
text_set(struct text *t, const char *s)
{
	t->len = strlen(s);
	assert_non_null(t->p = (uint8_t *)strdup(s));
}

static char *
str(const char *s)
{
	char *p = strdup(s);

	assert_non_null(p);
	return p;
}

static void
test_replace(void **state)
{
	static const struct {
		const char *text;
		struct {
			const char *find, *replace;
			uint32_t count;
		} row[3];
		enum code code;
		const char *want;
	} t[] = {
	    {"one two", {{"one", "1", 1}}, C_OK, "1 two"},
	    {"aaaa", {{"aa", "b", 2}}, C_OK, "bb"},
	    {"aaaaa", {{"aa", "", 2}}, C_OK, "a"},
	    {"ab", {{"a", "b", 1}, {"bb", "c", 1}}, C_OK, "c"},
	    {"ab", {{"a", "aa", 1}, {"a", "x", 2}}, C_OK, "xxb"},
	    {"", {{"a", "b", 1}}, C_EDIT_NO_MATCH, NULL},
	    {"a", {{"a", "b", 2}}, C_EDIT_NO_MATCH, NULL},
	    {"aa", {{"a", "b", 1}}, C_EDIT_AMBIGUOUS, NULL},
	    {"aaa", {{"a", "b", 2}}, C_EDIT_AMBIGUOUS, NULL},
	    {"a b", {{"a", "x", 1}, {"z", "", 1}}, C_EDIT_NO_MATCH, NULL},
	    {"a", {{"a", "12345678901", 1}}, C_LIM_MAX_BYTES, NULL},
	    {"a", {{"a", "1234567890", 1}}, C_OK, "1234567890"},
	};
	struct edit_row rows[3];
	struct text x;
	uint64_t count;
	size_t i, n;

	for (i = 0; i < nitems(t); i++) {
		text_set(&x, t[i].text);
		for (n = 0; n < 3 && t[i].row[n].find != NULL; n++) {
			rows[n].find = str(t[i].row[n].find);
			rows[n].replace = str(t[i].row[n].replace);
			rows[n].count = t[i].row[n].count;
		}
		assert_int_equal(
		    replace_all(&x, rows, n, 10, &count), t[i].code);
		if (t[i].want != NULL) {
			assert_int_equal(x.len, strlen(t[i].want));
			assert_memory_equal(x.p, t[i].want, x.len);
		}
		while (n-- > 0) {
			free(rows[n].find);
			free(rows[n].replace);
		}
		free(x.p);
	}
}

static void
test_diff(void **state)
{
	static const struct {
		const char *from, *to, *want;
	} t[] = {
	    {"a\n", "a\n", ""},
	    {"", "a\n", "@@ -0,0 +1 @@\n+a\n"},
	    {"a\n", "", "@@ -1 +0,0 @@\n-a\n"},
	    {"a", "b",
		"@@ -1 +1 @@\n-a\n\\ No newline at end of file\n"
		"+b\n\\ No newline at end of file\n"},
	    {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
		"@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
	    {"a\nb\nc\n", "a\nc\nd\n", "@@ -1,3 +1,3 @@\n a\n-b\n c\n+d\n"},
	    {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n",
		"@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n"
		"@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n"},
	};
	struct text x, y;
	struct wbuf w;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		text_set(&x, t[i].from);
		text_set(&y, t[i].to);
		wbuf_init(&w, 4096);
		assert_int_equal(udiff(&w, &x, &y), 0);
		if (w.len != strlen(t[i].want) ||
		    memcmp(w.p != NULL ? (char *)w.p : "", t[i].want, w.len) !=
			0)
			fail_msg("%zu: %.*s", i, (int)w.len, (char *)w.p);
		wbuf_free(&w);
		free(x.p);
		free(y.p);
	}
}

/* Texts of few different lines, so that scripts get long; applying a diff
 * must give the other text. */
static void
apply(const struct text *from, const struct wbuf *w, struct text *out)
{
	const char *d = (const char *)w->p, *end = d + w->len, *s, *e;
	size_t at = 0, line = 1;
	char head[80];
	unsigned a, n;

	out->p = calloc(1, from->len + w->len + 1);
	assert_non_null(out->p);
	out->len = 0;
	s = (const char *)from->p;
	while (d < end) {
		e = memchr(d, '\n', (size_t)(end - d));
		assert_non_null(e);
		if (*d == '@') {
			n = 1;
			snprintf(head, sizeof(head), "%.*s", (int)(e - d), d);
			assert_true(sscanf(head, "@@ -%u,%u", &a, &n) >= 1);
			if (n == 0)
				a++;
			for (; line < a; line++)
				do
					out->p[out->len++] = (uint8_t)s[at];
				while (s[at++] != '\n');
		} else {
			if (*d != '+') {
				assert_memory_equal(
				    s + at, d + 1, (size_t)(e - d));
				at += (size_t)(e - d);
				line++;
			}
			if (*d != '-') {
				memcpy(
				    out->p + out->len, d + 1, (size_t)(e - d));
				out->len += (size_t)(e - d);
			}
		}
		d = e + 1;
	}
	memcpy(out->p + out->len, s + at, from->len - at);
	out->len += from->len - at;
}

static void
test_diff_random(void **state)
{
	struct text t[2], got;
	unsigned seed = 1, i, k, n;
	struct wbuf w;

	for (i = 0; i < 2000; i++) {
		for (k = 0; k < 2; k++) {
			seed = seed * 1103515245 + 12345;
			n = i < 1900 ? seed >> 16 & 31 : seed >> 16 & 1023;
			assert_non_null(t[k].p = malloc(2 * n + 1));
			t[k].len = 0;
			while (n-- > 0) {
				seed = seed * 1103515245 + 12345;
				t[k].p[t[k].len++] =
				    (uint8_t)('a' + (seed >> 16 & 3));
				t[k].p[t[k].len++] = '\n';
			}
			t[k].p[t[k].len] = '\0';
		}
		wbuf_init(&w, 1 << 20);
		assert_int_equal(udiff(&w, &t[0], &t[1]), 0);
		assert_int_equal(w.err, 0);
		apply(&t[0], &w, &got);
		assert_int_equal(got.len, t[1].len);
		assert_memory_equal(got.p, t[1].p, got.len);
		free(got.p);
		free(t[0].p);
		free(t[1].p);
		wbuf_free(&w);
	}
}

/* ---- files ---- */

static enum code
edit(const struct tmp *t, struct edit *e)
{
	struct edit_fin fin;
	enum code code;

	code = edit_run(&t->pd, e, &fin);
	edit_fin_clear(&fin);
	return code;
}

static void
order(const struct tmp *t, struct edit *e, const char *rel, uint16_t flags,
    const char *find, const char *by)
{
	memset(e, 0, sizeof(*e));
	e->target = target_of(t, rel);
	e->flags = flags;
	e->max_bytes = UINT64_MAX;
	assert_non_null(e->row = calloc(1, sizeof(*e->row)));
	e->nrow = 1;
	e->row[0].find = str(find);
	e->row[0].replace = str(by);
	e->row[0].count = 1;
}

static void
check(int components)
{
	struct edit e;
	struct tmp t;

	beneath_components(components);
	tmp_new(&t);
	roots_open(&t.pd.roots);
	make_file(&t, "w/f", "one two two");
	order(&t, &e, "f", 0, "one", "1");
	assert_int_equal(edit(&t, &e), C_OK);
	assert_string_equal(text_of(&t, "w/f"), "1 two two");
	/* it is another file by now */
	assert_int_equal(edit(&t, &e), C_POL_PATH_CHANGED);
	edit_clear(&e);
	order(&t, &e, "f", PF_DRY, "1", "one");
	assert_int_equal(edit(&t, &e), C_OK);
	assert_string_equal(text_of(&t, "w/f"), "1 two two");
	edit_clear(&e);
	order(&t, &e, "f", 0, "two", "2");
	assert_int_equal(edit(&t, &e), C_EDIT_AMBIGUOUS);
	e.max_bytes = 3;
	assert_int_equal(edit(&t, &e), C_LIM_MAX_BYTES);
	e.max_bytes = UINT64_MAX;
	e.flags = PF_EXACT; /* as it was at the beginning of time */
	assert_int_equal(edit(&t, &e), C_FS_CHANGED);
	e.flags = 0;
	assert_int_equal(link(at(&t, "w/f"), at(&t, "w/g")), 0);
	assert_int_equal(edit(&t, &e), C_POL_HARDLINK_DENIED);
	assert_int_equal(unlink(at(&t, "w/f")), 0);
	make_link(&t, "w/f", at(&t, "out/secret"));
	assert_int_equal(edit(&t, &e), C_POL_PATH_CHANGED);
	edit_clear(&e);
	assert_string_equal(text_of(&t, "out/secret"), "OUTSIDE");
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_replace),
	    cmocka_unit_test(test_diff),
	    cmocka_unit_test(test_diff_random),
	    cmocka_unit_test(test_openat2),
	    cmocka_unit_test(test_components),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
