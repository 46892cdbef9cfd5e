/*
 * SPDX-License-Identifier: ISC
 *
 * Path patterns: meaning, caps, texts that can be read back, and time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/abx.h"
#include "common/glob.h"

struct row {
	const char *pattern, *anchor, *path;
	int covers, match;
};

static const struct row rows[] = {
    /* absolute */
    {"/w/a", NULL, "/w/a", 1, 1},
    {"/w/a", NULL, "/w/a/b/c", 1, 0},
    {"/w/a", NULL, "/w/ab", 0, 0},
    {"/w/a", NULL, "/w", 0, 0},
    {"/w//a/", NULL, "/w/a", 1, 1},
    {"/", NULL, "/x", 1, 0},
    {"/", NULL, "/", 1, 1},
    /* a bare name floats */
    {".env", NULL, "/w/.env", 1, 1},
    {".env", NULL, "/.env", 1, 1},
    {".env", NULL, "/w/.env/x", 1, 0},
    {".env", NULL, "/w/x.env", 0, 0},
    {"build/", NULL, "/w/build/o", 1, 0},
    {"*.pem", NULL, "/a/b/k.pem", 1, 1},
    {"*.PEM", NULL, "/a/b/k.pem", 0, 0},
    {"*", NULL, "/a", 1, 1},
    {"*", NULL, "/", 0, 0},
    /* ** */
    {"**", NULL, "/", 1, 1},
    {"**", NULL, "/a/b", 1, 1},
    {"**/.ssh", NULL, "/home/u/.ssh/id", 1, 0},
    {"**/.git/hooks/**", NULL, "/w/.git/hooks", 1, 1},
    {"**/.git/hooks/**", NULL, "/w/.git/hooks/pre-commit", 1, 1},
    {"**/.git/hooks/**", NULL, "/w/.git/config", 0, 0},
    {"/w/**/o", NULL, "/w/o", 1, 1},
    {"/w/**/o", NULL, "/w/a/b/o", 1, 1},
    {"/w/**/o", NULL, "/w/a/b/oo", 0, 0},
    {"**/a/**/b/**", NULL, "/x/a/y/z/b", 1, 1},
    {"**/a/**/b/**", NULL, "/x/b/y/z/a", 0, 0},
    /* anchored */
    {"d/top", "/w", "/w/d/top", 1, 1},
    {"d/top", "/w", "/w/x/d/top", 0, 0},
    {"d/*", "/w", "/w/d/e/build/o", 1, 0},
    {"d/**/o", "/w", "/w/d/e/build/o", 1, 1},
    {"d/**/o", "/w", "/w/build/o", 0, 0},
    {"a/b", "", "/a/b", 1, 1},
    {"a/b", "/", "/a/b", 1, 1},
    {"a/b", "/w[1]*", "/w[1]*/a/b", 1, 1},
    {"a/b", "/w[1]*", "/w1x/a/b", 0, 0},
    /* wildcards stay in their segment */
    {"/w/*", NULL, "/w/.hidden", 1, 1},
    {"/w/*/x", NULL, "/w/a/b/x", 0, 0},
    {"/w/a*b*c", NULL, "/w/axxbyyc", 1, 1},
    {"/w/a*b*c", NULL, "/w/axxbyy", 0, 0},
    {"/w/?", NULL, "/w/\xc3\xa9", 0, 0},
    {"/w/??", NULL, "/w/\xc3\xa9", 1, 1},
    {"x[0-9]", NULL, "/x1", 1, 1},
    {"x[0-9]", NULL, "/xa", 0, 0},
    {"x[!0-9]", NULL, "/xa", 1, 1},
    {"x[!0-9]", NULL, "/x1", 0, 0},
    {"x[]a]", NULL, "/x]", 1, 1},
    {"x[a-]", NULL, "/x-", 1, 1},
    {"x[[]y", NULL, "/x[y", 1, 1},
    {"x[*]", NULL, "/xa", 0, 0},
    {"a**b", NULL, "/axyb", 1, 1},
    {"***", NULL, "/abc", 1, 1},
    {"a\\b", NULL, "/a\\b", 1, 1},
};

static void
test_rows(void **state)
{
	const char *why;
	struct glob *g;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		g = glob_new(rows[i].pattern, rows[i].anchor, &why);
		if (g == NULL)
			fail_msg("%s: %s", rows[i].pattern, why);
		if (glob_covers(g, rows[i].path) != rows[i].covers ||
		    glob_match(g, rows[i].path) != rows[i].match)
			fail_msg("%s at %s", rows[i].pattern, rows[i].path);
		glob_free(g);
	}
}

static void
test_refused(void **state)
{
	static const char *const bad[] = {"", "**/a/**/b/**/c/**", "a[b",
	    "a[z-a]", "a[]", "a[!]", "/w/../x", "./a/b", "a/./b"};
	char *big = malloc(ABX_PATH_MAX + 2);
	const char *why;
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		if (glob_new(bad[i], "/w", &why) != NULL)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(why);
	}
	assert_null(glob_new("a/b", NULL, &why));
	assert_non_null(why);
	assert_non_null(big);
	memset(big, 'a', ABX_PATH_MAX + 1);
	big[ABX_PATH_MAX + 1] = '\0';
	assert_null(glob_new(big, NULL, &why));
	for (i = 0; i < 2 * 257; i += 2)
		memcpy(big + i, "/a", 2);
	big[i] = '\0';
	assert_null(glob_new(big, NULL, &why));
	assert_non_null(why);
	free(big);
}

static void
test_anchor_needed(void **state)
{
	assert_true(glob_needs_anchor("a/b"));
	assert_true(glob_needs_anchor("*/x"));
	assert_true(glob_needs_anchor("a/**"));
	assert_false(glob_needs_anchor("a"));
	assert_false(glob_needs_anchor("a/"));
	assert_false(glob_needs_anchor("/a/b"));
	assert_false(glob_needs_anchor("**/a"));
	assert_false(glob_needs_anchor("**"));
}

/* What glob_text writes means what pattern and anchor meant. */
static void
test_texts(void **state)
{
	const char *why;
	struct glob *g;
	char *text;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		text = glob_text(rows[i].pattern, rows[i].anchor);
		assert_non_null(text);
		g = glob_new(text, NULL, &why);
		if (g == NULL)
			fail_msg("%s: %s", text, why);
		if (glob_covers(g, rows[i].path) != rows[i].covers)
			fail_msg("%s at %s", text, rows[i].path);
		glob_free(g);
		free(text);
	}
	text = glob_text("a/b", "/x[1]");
	assert_string_equal(text, "/x[[]1]/a/b");
	free(text);
	text = glob_quote("/a*b", "c/*");
	assert_string_equal(text, "/a[*]b/c/*");
	free(text);
	text = glob_quote("/", "");
	assert_string_equal(text, "/");
	free(text);
	text = glob_quote("/", "a/b");
	assert_string_equal(text, "/a/b");
	free(text);
}

struct rests {
	char text[256];
	int left; /* how many may come */
};

static int
rest_cb(const char *rest, void *arg)
{
	struct rests *r = arg;

	strlcat(r->text, rest[0] == '\0' ? "." : rest, sizeof(r->text));
	strlcat(r->text, " ", sizeof(r->text));
	return --r->left == 0 ? 7 : 0;
}

/* What is left of a pattern below a directory; "." is all of it. */
static void
test_rests(void **state)
{
	static const struct {
		const char *pattern, *dir, *want;
	} t[] = {
	    {"/a/b/c", "/a", "b/c "},
	    {"/a/b/c", "/a/b", "c "},
	    {"/a/b/c", "/a/b/c", ". "},
	    {"/a/b/c", "/a/b/c/d", ". "},
	    {"/a/b/c", "/b", ""},
	    {"/a/b/c", "/", "a/b/c "},
	    {"/", "/a", ". "},
	    {"//a//b/", "/a", "b "},
	    {"/*/b", "/a", "b "},
	    {"/*/*/c", "/a", "*/c "},
	    {"/[a-c]?/x[!y]", "/bz", "x[!y] "},
	    {"/a/**/c", "/a", "**/c "},
	    {"/a/**/b/c", "/a/b", "**/b/c c "},
	    {"/**/b/c", "/b", "c "},
	    {"**/c", "/a", ""},
	    {"**/a/c", "/x/a", "c "},
	    {"c", "/a", ""},
	    {"c", "/a/c", ". "},
	    {"**", "/a", ". "},
	    {"/a/**", "/a", ". "},
	};
	struct rests r;
	const char *why;
	struct glob *g;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		g = glob_new(t[i].pattern, NULL, &why);
		assert_non_null(g);
		r = (struct rests){"", 9};
		assert_int_equal(glob_rests(g, t[i].dir, rest_cb, &r), 0);
		assert_string_equal(r.text, t[i].want);
		glob_free(g);
	}
	g = glob_new("/a/**/b/c", NULL, &why);
	assert_non_null(g);
	r = (struct rests){"", 1};
	assert_int_equal(glob_rests(g, "/a/b", rest_cb, &r), 7);
	assert_string_equal(r.text, "**/b/c ");
	glob_free(g);
	/* an anchor was taken literally and stays so */
	g = glob_new("x/y", "/a/w[1]*", &why);
	assert_non_null(g);
	r = (struct rests){"", 9};
	assert_int_equal(glob_rests(g, "/a", rest_cb, &r), 0);
	assert_string_equal(r.text, "w[[]1][*]/x/y ");
	glob_free(g);
}

static void
test_segment(void **state)
{
	assert_true(glob_segment("LD_*", "LD_PRELOAD", 10));
	assert_true(glob_segment("*", "", 0));
	assert_false(glob_segment("a*", "a/b", 3));
	assert_false(glob_segment("a?b", "a/b", 3));
	assert_false(glob_segment("a[!x]b", "a/b", 3));
	assert_true(glob_words("sub/*.py", "sub/a.py"));
	assert_false(glob_words("*.py", "sub/a.py"));
	assert_false(glob_words("sub/*", "sub/a/b"));
	assert_false(glob_words("sub", "sub/"));
	assert_true(glob_words("", ""));
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Hostile patterns on hostile paths are answered at once. */
static void
test_time(void **state)
{
	static const char *const pats[] = {"**/***************X***",
	    "**/*a*a*a*a*a*a*a*a*a*a*a*a*b", "**/a*/**/a*/**/a*b",
	    "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"};
	char flat[4002], deep[513];
	const char *why;
	struct glob *g;
	uint64_t start;
	size_t i;

	memset(flat, 'a', sizeof(flat));
	flat[0] = '/';
	flat[4001] = '\0';
	for (i = 0; i < 512; i += 2)
		memcpy(deep + i, "/a", 2);
	deep[512] = '\0';
	for (i = 0; i < nitems(pats); i++) {
		g = glob_new(pats[i], NULL, &why);
		assert_non_null(g);
		start = now_us();
		assert_false(glob_covers(g, flat));
		assert_false(glob_covers(g, deep));
		assert_true(now_us() - start < 100000);
		glob_free(g);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_anchor_needed),
	    cmocka_unit_test(test_texts),
	    cmocka_unit_test(test_rests),
	    cmocka_unit_test(test_segment),
	    cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
