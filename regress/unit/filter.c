/*
 * SPDX-License-Identifier: ISC
 *
 * The command policy: the examples of its own table, the cases, ordinary
 * commands and spelled dangers of regress/filter, and what is long or deep.
 * What depends on the configuration is in filter_conf.c.  Run from the top of
 * the tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regress/unit/filter_ask.h"

#define DIR_DATA "regress/filter/"

/* ---- helpers ---- */

static int
hexval(char c)
{
	return c >= 'A' ? c - 'A' + 10 : c - '0';
}

/* Undo what stands for bytes that a line cannot hold; in place. */
static void
unescape(char *s)
{
	char *to = s;

	while (*s != '\0') {
		if (strncmp(s, "\xe2\x8f\x8e", 3) == 0) {
			*to++ = '\n';
			s += 3;
		} else if (strncmp(s, "\xe2\x87\xa5", 3) == 0) {
			*to++ = '\t';
			s += 3;
		} else if (strncmp(s, "\xe2\x80\xb9", 3) == 0) {
			for (s += 3; (unsigned char)*s < 0x80; s += 2)
				*to++ =
				    (char)(hexval(s[0]) << 4 | hexval(s[1]));
			s += 3;
		} else
			*to++ = *s++;
	}
	*to = '\0';
}

/* Each line of a data file but comments; how many there were. */
static size_t
each_line(const char *name, void (*fn)(char *, void *), void *arg)
{
	char path[128], buf[8192];
	size_t n = 0;
	FILE *fp;

	snprintf(path, sizeof(path), DIR_DATA "%s", name);
	fp = fopen(path, "r");
	assert_non_null(fp);
	while (fgets(buf, sizeof(buf), fp) != NULL) {
		buf[strcspn(buf, "\n")] = '\0';
		if (buf[0] == '\0' || strncmp(buf, "# ", 2) == 0)
			continue;
		fn(buf, arg);
		n++;
	}
	fclose(fp);
	return n;
}

/* ---- the table's own examples ---- */

static void
test_examples(void **state)
{
	struct filter_rule_info info;
	struct filter_result r;
	const char *const *e;
	size_t i, bad = 0;
	int yes;

	for (i = 0; filter_rule_info(i, &info); i++)
		for (yes = 0; yes < 2; yes++)
			for (e = yes ? info.yes : info.no; *e != NULL; e++) {
				ask_script(ask_defaults, *e, strlen(*e), &r);
				if (ask_named(&r, info.name) == yes &&
				    (!yes || info.floor == (r.nblocked > 0)))
					continue;
				ask_print(info.name, *e, &r);
				bad++;
			}
	assert_int_equal(bad, 0);
	assert_true(i >= 20);
}

/* ---- cases ---- */

static int
as_expected(const char *want, const struct filter_result *r)
{
	if (strcmp(want, "none") == 0)
		return r->nblocked + r->nwarned == 0;
	if (strncmp(want, "block:", 6) == 0)
		return ask_has(r->blocked, r->nblocked, want + 6);
	if (strncmp(want, "warn:", 5) == 0)
		return ask_has(r->warned, r->nwarned, want + 5);
	if (strncmp(want, "not:", 4) == 0)
		return !ask_named(r, want + 4);
	fail_msg("what is %s", want);
	return 0;
}

static void
one_case(char *s, void *arg)
{
	size_t *bad = arg;
	char *text = strchr(s, '\t');
	struct filter_result r;

	assert_non_null(text);
	*text++ = '\0';
	unescape(text);
	ask_script(ask_defaults, text, strlen(text), &r);
	if (!as_expected(s, &r)) {
		ask_print(s, text, &r);
		++*bad;
	}
	ask_line(ask_defaults, text, &r);
	if (!as_expected(s, &r)) {
		ask_print("sh -c", text, &r);
		++*bad;
	}
}

static void
test_cases(void **state)
{
	size_t bad = 0;

	assert_true(each_line("cases.txt", one_case, &bad) > 400);
	assert_int_equal(bad, 0);
}

/* ---- corpora ---- */

struct tally {
	size_t blocked, warned;
};

static void
one_ordinary(char *s, void *arg)
{
	struct tally *t = arg;
	struct filter_result r;

	unescape(s);
	ask_line(ask_defaults, s, &r);
	t->blocked += r.nblocked > 0;
	t->warned += r.nwarned > 0;
	if (r.nblocked > 0 || (r.nwarned > 0 && t->warned > 5))
		ask_print("ordinary", s, &r);
}

static void
test_ordinary(void **state)
{
	struct tally t = {0, 0};
	size_t n = each_line("ordinary.txt", one_ordinary, &t);

	print_message("%zu ordinary commands: %zu blocked, %zu warned of\n", n,
	    t.blocked, t.warned);
	assert_true(n >= 2000);
	assert_int_equal(t.blocked, 0);
	assert_true(t.warned <= 5);
	memset(&t, 0, sizeof(t));
	n = each_line("everyday.txt", one_ordinary, &t);
	print_message("%zu of every day: %zu blocked, %zu warned of\n", n,
	    t.blocked, t.warned);
	assert_true(n >= 2000);
	assert_int_equal(t.blocked, 0);
	assert_true(t.warned <= 5);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
keep(char *s, void *arg)
{
	struct strlist *l = arg;

	assert_int_equal(strlist_add(l, s, strlen(s)), 0);
}

/* They count once each. */
static void
test_distinct(void **state)
{
	static const char *const files[] = {
	    "ordinary.txt", "everyday.txt", "dangers.txt"};
	struct strlist l;
	size_t i, k;

	for (i = 0; i < nitems(files); i++) {
		memset(&l, 0, sizeof(l));
		each_line(files[i], keep, &l);
		qsort(l.v, l.n, sizeof(*l.v), by_text);
		for (k = 1; k < l.n; k++)
			if (strcmp(l.v[k - 1], l.v[k]) == 0)
				fail_msg("%s: twice: %s", files[i], l.v[k]);
		strlist_clear(&l);
	}
}

static void
one_danger(char *s, void *arg)
{
	struct tally *t = arg;
	struct filter_result r;

	unescape(s);
	ask_line(ask_defaults, s, &r);
	if (r.nblocked == 0) {
		ask_print("not blocked", s, &r);
		t->warned++;
	}
}

static void
test_dangers(void **state)
{
	struct tally t = {0, 0};
	size_t n = each_line("dangers.txt", one_danger, &t);

	print_message("%zu spellings: %zu not blocked\n", n, t.warned);
	assert_true(n >= 1000);
	assert_int_equal(t.warned, 0);
}

/* ---- argument vectors and standard input ---- */

static void
test_argv(void **state)
{
	const struct {
		const char *const *argv;
		const char *in;
		const char *want;
	} t[] = {
	    {V("rm", "-rf", "/"), NULL, "block:rm_rf_root"},
	    {V("/bin/rm", "/", "-rf"), NULL, "block:rm_rf_root"},
	    {V("sudo", "rm", "-rf", "/"), NULL, "block:rm_rf_root"},
	    {V("rm", "-rf", "build"), NULL, "none"},
	    {V("git", "commit", "-m", "never rm -rf / again"), NULL, "none"},
	    {V("printf", "%s", "rm -rf /"), NULL, "none"},
	    {V("echo", ";", "rm", "-rf", "/"), NULL, "none"},
	    {V("rm -rf /"), NULL, "none"},
	    {V("grep", "-e", "rm -rf /", "f"), NULL, "none"},
	    {V("bash", "-s"), "rm -rf /", "block:rm_rf_root"},
	    {V("bash"), "echo\nrm -rf /\n", "block:rm_rf_root"},
	    {V("sh", "-"), "rm -rf /", "block:rm_rf_root"},
	    {V("sh", "/dev/stdin"), "rm -rf /", "block:rm_rf_root"},
	    {V("sudo", "-n", "sh"), "rm -rf /", "block:rm_rf_root"},
	    {V("sh", "-c", "sh"), "rm -rf /", "block:rm_rf_root"},
	    {V("sh", "-c", "cat | sh"), "rm -rf /", "block:rm_rf_root"},
	    {V("sh", "-c", "base64 -d | sh"),
		"cm0gLXJmIC8=", "block:rm_rf_root"},
	    {V("bash"), "\xff\xfe\nrm -rf /\n", "block:rm_rf_root"},
	    {V("bash"), "echo \xe2\x82; rm -rf /", "block:rm_rf_root"},
	    {V("cat"), "rm -rf /", "none"},
	    {V("tee", "f"), "rm -rf /", "none"},
	    {V("sh", "x.sh"), "rm -rf /", "none"},
	    {V("sh", "-c", "cat"), "rm -rf /", "none"},
	    {V("grep", "x"), "rm -rf /", "none"},
	    {V("python3"), "import os\nos.system('rm -rf /')",
		"block:rm_rf_root"},
	    {V("python3", "-"), "os.system('rm -rf /')", "block:rm_rf_root"},
	    {V("python3", "x.py"), "os.system('rm -rf /')", "none"},
	    {V("node"), "x('dd if=/dev/zero of=/dev/sda')",
		"block:dd_to_block_device"},
	    {V("xargs", "rm", "-rf"), "/", "block:rm_rf_root"},
	    {V("xargs", "rm", "-rf"), "build\n", "none"},
	    {V("find", "/", "-delete"), NULL, "warn:find_root_delete"},
	    {V("sh", "-c"), NULL, "none"},
	    {V("sh", "-c", ""), "", "none"},
	};
	struct filter_result r;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		ask_words(ask_defaults, t[i].argv, t[i].in,
		    t[i].in != NULL ? strlen(t[i].in) : 0, &r);
		if (!as_expected(t[i].want, &r)) {
			ask_print(t[i].want, t[i].argv[0], &r);
			fail_msg("row %zu", i);
		}
		assert_false(r.too_large);
	}
}

/* A danger behind a lot of other text, wherever a reader might cut: cases
 * B35, H7, and B37 with a character cut in two. */
static void
test_padding(void **state)
{
	static const char evil[] = "\nrm -rf /\n", pad[] = "echo padding\n";
	size_t n = 5U << 18, i,
	       at[] = {0, 1U << 18, 1U << 19, (1U << 20) + 1, n / 2,
		   n - sizeof(evil)};
	char *s = malloc(n);
	struct filter_result r;
	size_t k;

	assert_non_null(s);
	for (i = 0; i < nitems(at); i++) {
		for (k = 0; k < n; k++)
			s[k] = pad[k % (sizeof(pad) - 1)];
		if (at[i] > 0)
			s[at[i] - 1] = '\xe2';
		memcpy(s + at[i], evil, sizeof(evil) - 1);
		ask_script(ask_defaults, s, n, &r);
		assert_true(ask_has(r.blocked, r.nblocked, "rm_rf_root"));
		/* of another interpreter, and in a long argument */
		ask_words(ask_defaults, V("python3"), s, n, &r);
		assert_true(ask_has(r.blocked, r.nblocked, "rm_rf_root"));
		s[n - 1] = '\0';
		ask_line(ask_defaults, s, &r);
		assert_true(ask_has(r.blocked, r.nblocked, "rm_rf_root"));
	}
	free(s);
}

static void
test_stdin_max(void **state)
{
	struct filter_conf fc;
	struct filter_result r;
	struct filter *f;
	char why[100];

	assert_int_equal(filter_conf_init(&fc), 0);
	fc.stdin_max = 10;
	f = filter_new(&fc, why, sizeof(why));
	assert_non_null(f);
	ask_script(f, "echo 12345", 10, &r);
	assert_false(r.too_large);
	ask_script(f, "echo 123456", 11, &r);
	assert_true(r.too_large);
	ask_words(f, V("python3", "-"), "print(12345)", 12, &r);
	assert_true(r.too_large);
	ask_words(f, V("cat"), "echo 123456", 11, &r);
	assert_false(r.too_large);
	filter_free(f);
	filter_conf_clear(&fc);
}

/* ---- bounds ---- */

static void
repeat(const char *unit, size_t times, struct filter_result *r)
{
	size_t n = strlen(unit), i;
	char *s = malloc(n * times + 1);

	assert_non_null(s);
	for (i = 0; i < times; i++)
		memcpy(s + n * i, unit, n);
	ask_script(ask_defaults, s, n * times, r);
	free(s);
}

static void
test_depth(void **state)
{
	static const char *const deep[] = {"(", "$(", "{ ", "${a:-", "`echo $(",
	    "f(){ ", "a!(", "\"$(", "<(", "echo $((", "case a in a) ("};
	static const char *const flat[] = {"\"", "'", "()", "`", "}", ")", "{,",
	    "<<a\n", "'\n", "$", "\\", "[[ ", "case ", "esac ", "function ",
	    "$'", "$'\\''", "\n", ";;", "eval ", "\xe2\x80\x8b", "\x01"};
	struct filter_result r;
	size_t i;

	for (i = 0; i < nitems(deep); i++) {
		repeat(deep[i], 100000, &r);
		if (!ask_has(r.blocked, r.nblocked, "script_too_complex"))
			fail_msg("%s", deep[i]);
		repeat(deep[i], 20, &r);
		assert_int_equal(r.nblocked, 0);
	}
	for (i = 0; i < nitems(flat); i++)
		repeat(flat[i], 100000, &r);
	repeat("a ", 2000000, &r);
	assert_true(ask_has(r.blocked, r.nblocked, "script_too_complex"));
	repeat(">a ", 100000, &r);
	assert_true(ask_has(r.blocked, r.nblocked, "script_too_complex"));
	repeat(">a <b;", 100000, &r);
	assert_int_equal(r.nblocked, 0);
	repeat("a b c d;", 500000, &r);
	assert_int_equal(r.nblocked, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_examples),
	    cmocka_unit_test(test_cases),
	    cmocka_unit_test(test_ordinary),
	    cmocka_unit_test(test_distinct),
	    cmocka_unit_test(test_dangers),
	    cmocka_unit_test(test_argv),
	    cmocka_unit_test(test_padding),
	    cmocka_unit_test(test_stdin_max),
	    cmocka_unit_test(test_depth),
	};

	return cmocka_run_group_tests(tests, ask_setup, ask_teardown);
}
