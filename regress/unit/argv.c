/*
 * SPDX-License-Identifier: ISC
 *
 * Command patterns against argument vectors: every token kind, bundled
 * flags on both sides, the first word, and time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "policy/engine.h"

static char usr_bin[] = "/usr/bin", bin[] = "/bin";
static char *dir_words[] = {usr_bin, bin};
static const struct strlist dirs = {dir_words, 2};

static int
matches(const char *pattern, int deny, const char *line)
{
	struct argv_norm norm = {0};
	struct argv_pat *pat;
	struct strlist words;
	const char *why;
	int r;

	pat = argv_pat_new(pattern, deny, &why);
	if (pat == NULL)
		fail_msg("%s: %s", pattern, why);
	assert_int_equal(shlex_split(line, &words), 0);
	assert_int_equal(argv_norm_init(&norm, words.v, words.n), 0);
	r = argv_pat_match(pat, &norm, &dirs, NULL, NULL);
	argv_norm_clear(&norm);
	strlist_clear(&words);
	argv_pat_free(pat);
	return r;
}

struct row {
	const char *pattern, *line;
	int allow, deny; /* matched on that side; -1: not asked */
};

static const struct row rows[] = {
    /* literals */
    {"true", "true", 1, 1},
    {"true", "true ''", 0, 0},
    {"echo a", "echo a", 1, 1},
    {"echo a", "echo A", 0, 0},
    {"echo a", "echo", 0, 0},
    {"echo 'a b'", "echo 'a b'", 1, 1},
    {"echo a b", "echo 'a b'", 0, 0},
    /* ... */
    {"echo a ...", "echo a", 1, 1},
    {"echo a ...", "echo a b c -d", 1, 1},
    {"echo a ...", "echo b", 0, 0},
    {"...", "anything at all", 1, 1},
    {"echo ... ... x ...", "echo 1 2 x 3", 1, 1},
    {"echo ... ... x ...", "echo 1 2 y 3", 0, 0},
    {"echo ... forbidden ...", "echo a forbidden", 1, 1},
    {"find . -name *", "find . -name x -exec id \\;", 0, 0},
    {"find . -name *", "find . -name x", 1, -1},
    /* globs */
    {"cat *.py", "cat a.py", 1, 1},
    {"cat *.py", "cat -n.py", 0, 0},
    {"cat *.py", "cat sub/b.py", 0, 0},
    {"cat *.py", "cat a.py a.py", 0, 0},
    {"cat sub/*.py", "cat sub/b.py", 1, 1},
    {"cat t[ab]?t", "cat taxt", 1, 1},
    {"cat -*", "cat -n", 1, 1},
    {"gcc -W*", "gcc -Wall", 1, 1},
    {"gcc --opt=*", "gcc --opt=1", 1, 1},
    /* {int} {word} {path} */
    {"seq {int}", "seq 3", 1, 1},
    {"seq {int}", "seq -3", 1, 1},
    {"seq {int}", "seq 3 4", 0, 0},
    {"seq {int}", "seq x", 0, 0},
    {"seq {int}", "seq '1;id'", 0, 0},
    {"seq {int}", "seq -", 0, 0},
    {"seq {int}", "seq ''", 0, 0},
    {"seq {int}", "seq 123456789012345678", 1, 1},
    {"seq {int}", "seq 1234567890123456789", 0, 0},
    {"printf {word}", "printf x-1", 1, 1},
    {"printf {word}", "printf -v", 0, 0},
    {"printf {word}", "printf 'a b'", 0, 0},
    {"printf {word}", "printf ''", 0, 0},
    {"printf {word}", "printf a/b", 0, 0},
    {"printf {word}", "printf a@b=c,d:e+f", 1, 1},
    {"cat {path}", "cat a/b", 1, 1},
    {"cat {path}", "cat -n", 0, 0},
    /* bundles: an allow pattern means the same single argument */
    {"ls -la", "ls -la", 1, 1},
    {"ls -la", "ls -al", 0, 0},
    {"ls -la", "ls -l -a", 0, 1},
    {"ls -l -a", "ls -la", 1, 1},
    {"ls -l ...", "ls -lR", 1, 1},
    {"ls ... -R ...", "ls -laR", 1, 1},
    {"ls ... -R ...", "ls -R sub", 1, 1},
    {"ls ... -R ...", "ls sub -laR", 1, 1},
    {"ls ... -R ...", "ls -- -laR", 0, 0},
    {"ls ... -R ...", "ls --laR", 0, 0},
    {"ls ... -lR ...", "ls -alRx", 0, 1},
    {"head -10", "head -10", 1, 1},
    {"head -1 -0", "head -10", 0, 0},
    {"gcc -std=c99 x.c", "gcc -std=c99 x.c", 1, 1},
    {"x -- -ab", "x -- -ab", 1, 1},
    {"x -- -ab", "x -- -a -b", 0, 0},
    {"x -ab y", "x -ab y", 1, 1},
    {"x -ab", "x -abc", 0, 0},
    /* the first word */
    {"true", "/usr/bin/true", 1, 1},
    {"/usr/bin/id", "id", 1, 1},
    {"/usr/bin/id", "/usr/bin/id", 1, 1},
    {"/opt/id", "id", 0, 0},
    {"true", "./true", 0, 1},
    {"true", "/tmp/true", 0, 1},
    {"true", "/usr/bin/../bin/true", 0, 1},
    {"true", "sub/../true", 0, 1},
    {"true", "TRUE", 0, 0},
    {"/tmp/true", "/tmp/true", 1, 1},
    {"/usr/bin/ls ...", "/bin/ls", 0, 1},
    {"py*", "python3", 1, 1},
    {"py*", "/usr/bin/python3", 1, 1},
    {"py*", "/opt/python3", 0, 1},
    {"echo x", "bash -c 'echo x'", 0, 0},
};

static void
test_rows(void **state)
{
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		const struct row *r = &rows[i];

		if (matches(r->pattern, 0, r->line) != r->allow)
			fail_msg("allow %s: %s", r->pattern, r->line);
		if (r->deny != -1 && matches(r->pattern, 1, r->line) != r->deny)
			fail_msg("deny %s: %s", r->pattern, r->line);
	}
}

static void
test_refused(void **state)
{
	static const char *const bad[] = {
	    "", "  ", "ls 'a", "ls {paht}", "ls a[b", "{path}"};
	char many[64 * 2 + 1];
	const char *why;
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		if (argv_pat_new(bad[i], 0, &why) != NULL)
			fail_msg("taken: %s", bad[i]);
		assert_non_null(why);
	}
	for (i = 0; i < 64; i++)
		memcpy(many + 2 * i, "a ", 2);
	many[128] = '\0';
	assert_null(argv_pat_new(many, 0, &why));
	assert_non_null(why);
}

static void
test_lint_facts(void **state)
{
	static const struct {
		const char *pattern, *prog;
		int open;
	} pats[] = {{"ls {path}", "ls", 0}, {"python3 ...", "python3", 1},
	    {"git *", "git", 1}, {"x {word}", "x", 1}, {"seq {int}", "seq", 0},
	    {"/usr/bin/py*", "/usr/bin/py*", 0}, {"...", "...", 1}};
	struct argv_pat *pat;
	const char *why;
	size_t i;

	for (i = 0; i < nitems(pats); i++) {
		pat = argv_pat_new(pats[i].pattern, 0, &why);
		assert_non_null(pat);
		assert_string_equal(argv_pat_prog(pat), pats[i].prog);
		assert_int_equal(argv_pat_open(pat), pats[i].open);
		argv_pat_free(pat);
	}
}

/* Which words {path} looks at. */
static void
test_wanted(void **state)
{
	static const struct {
		const char *pattern, *line, *want;
	} asks[] = {
	    {"cat {path}", "cat a", ".x"},
	    {"cat {path}", "cat a b", "..."},
	    {"cat ... {path}", "cat a b c", "...x"},
	    {"cat {path} ...", "cat a b c", ".x.."},
	    {"cat ... {path} ...", "cat a -n c", ".x.x"},
	    {"cat -n {path}", "cat -n a", "..x"},
	    {"cat -n {path}", "cat -b a", "..."},
	    {"cat -nb {path}", "cat -nb a", "..x"},
	    {"cat -n -b {path}", "cat -nb a", "..x"},
	    {"cp {path} x {path}", "cp a x b", ".x.x"},
	};
	struct argv_norm norm = {0};
	struct argv_pat *pat;
	struct strlist words;
	const char *why;
	uint8_t want[8];
	size_t i, k;

	for (i = 0; i < nitems(asks); i++) {
		pat = argv_pat_new(asks[i].pattern, 0, &why);
		assert_non_null(pat);
		assert_int_equal(shlex_split(asks[i].line, &words), 0);
		assert_int_equal(argv_norm_init(&norm, words.v, words.n), 0);
		memset(want, 0, sizeof(want));
		assert_int_equal(argv_pat_paths(pat, &norm, &dirs, want),
		    strchr(asks[i].want, 'x') != NULL);
		for (k = 0; k < words.n; k++)
			if (want[k] != (asks[i].want[k] == 'x'))
				fail_msg("%s: %s word %zu", asks[i].pattern,
				    asks[i].line, k);
		argv_norm_clear(&norm);
		strlist_clear(&words);
		argv_pat_free(pat);
	}
}

static void
check_progs(const char *pattern, const char *argv0, const char *want)
{
	struct strlist progs = {0};
	struct argv_pat *pat;
	char got[256] = "";
	const char *why;
	size_t i;

	pat = argv_pat_new(pattern, 0, &why);
	assert_non_null(pat);
	assert_int_equal(argv_pat_progs(pat, argv0, &dirs, &progs), 0);
	for (i = 0; i < progs.n; i++) {
		if (i > 0)
			strlcat(got, " ", sizeof(got));
		strlcat(got, progs.v[i], sizeof(got));
	}
	assert_string_equal(got, want);
	strlist_clear(&progs);
	argv_pat_free(pat);
}

static void
test_progs(void **state)
{
	check_progs("id", "id", "/usr/bin/id /bin/id");
	check_progs("id", "/bin/id", "/bin/id");
	check_progs("/bin/id", "id", "/bin/id");
	check_progs("/bin/id", "/bin/id", "/bin/id");
	check_progs("/tmp/id", "/tmp/id", "");
	check_progs("...", "id", "/usr/bin/id /bin/id");
	check_progs("/usr/bin/i*", "id", "/usr/bin/id");
}

static void
test_too_large(void **state)
{
	char *big = calloc(1, 128 * 1024 + 1), *words[40];
	struct argv_norm norm = {0};
	size_t i;

	assert_non_null(big);
	memset(big, 'a', 128 * 1024);
	words[0] = big;
	assert_int_equal(argv_norm_init(&norm, words, 1), 1);
	argv_norm_clear(&norm);
	big[128 * 1024 - 1] = '\0';
	assert_int_equal(argv_norm_init(&norm, words, 1), 0);
	argv_norm_clear(&norm);
	big[0] = '-';
	for (i = 0; i < nitems(words); i++)
		words[i] = big;
	assert_int_equal(argv_norm_init(&norm, words, 3), 1);
	argv_norm_clear(&norm);
	free(big);
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Several "..." and a long line: linear, not explosive. */
static void
test_time(void **state)
{
	static char name[] = "ls", a[] = "a";
	struct argv_norm norm = {0};
	struct argv_pat *pat;
	const char *why;
	char *words[4096];
	uint64_t start;
	size_t i;

	words[0] = name;
	for (i = 1; i < nitems(words); i++)
		words[i] = a;
	pat = argv_pat_new("ls ... a ... a ... a ... a ... a ... a ... a ... "
			   "a ... b",
	    1, &why);
	assert_non_null(pat);
	assert_int_equal(argv_norm_init(&norm, words, nitems(words)), 0);
	start = now_us();
	assert_false(argv_pat_match(pat, &norm, &dirs, NULL, NULL));
	assert_true(now_us() - start < 100000);
	argv_norm_clear(&norm);
	argv_pat_free(pat);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_lint_facts),
	    cmocka_unit_test(test_wanted),
	    cmocka_unit_test(test_progs),
	    cmocka_unit_test(test_too_large),
	    cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
