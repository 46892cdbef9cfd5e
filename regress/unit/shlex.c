/*
 * SPDX-License-Identifier: ISC
 *
 * Word splitting, held against what the Python library does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"

struct row {
	const char *line;
	int n; /* -1: refused */
	const char *words[8];
};

static const struct row rows[] = {
    {"", 0, {NULL}},
    {" \t\r\n ", 0, {NULL}},
    {"ls -la /w", 3, {"ls", "-la", "/w"}},
    {"  ls   x  ", 2, {"ls", "x"}},
    {"echo a 'b  c' \"d e\" f\\ g $HOME *", 7,
	{"echo", "a", "b  c", "d e", "f g", "$HOME", "*"}},
    {"a''b", 1, {"ab"}},
    {"'' \"\"", 2, {"", ""}},
    {"a\"b c\"d", 1, {"ab cd"}},
    {"'a\\b'", 1, {"a\\b"}},
    {"\"a\\\"b\\\\c\\$d\\n\"", 1, {"a\"b\\c\\$d\\n"}},
    {"a\\\nb", 1, {"a\nb"}},
    {"'a\nb'", 1, {"a\nb"}},
    {"a\nb", 2, {"a", "b"}},
    {"a # b", 3, {"a", "#", "b"}},
    {"a;b && c|d", 3, {"a;b", "&&", "c|d"}},
    {"echo $(id) `id`", 3, {"echo", "$(id)", "`id`"}},
    {"\\'", 1, {"'"}},
    {"\xc3\xa9 '\xff'", 2, {"\xc3\xa9", "\xff"}},
    {"ls 'abc", -1, {NULL}},
    {"ls \"abc", -1, {NULL}},
    {"ls \"abc\\", -1, {NULL}},
    {"ls abc\\", -1, {NULL}},
    {"'", -1, {NULL}},
};

static void
test_rows(void **state)
{
	struct strlist words;
	size_t i;
	int k, r;

	for (i = 0; i < nitems(rows); i++) {
		r = shlex_split(rows[i].line, &words);
		if (r != (rows[i].n < 0 ? -1 : 0) ||
		    words.n != (size_t)(rows[i].n < 0 ? 0 : rows[i].n))
			fail_msg("%s: %d, %zu words", rows[i].line, r, words.n);
		for (k = 0; k < rows[i].n; k++)
			assert_string_equal(words.v[k], rows[i].words[k]);
		strlist_clear(&words);
	}
}

static void
test_caps(void **state)
{
	char *line = malloc(2 * ABX_MAX_ARGV + 3);
	struct strlist words;
	size_t i;

	assert_non_null(line);
	for (i = 0; i < ABX_MAX_ARGV; i++)
		memcpy(line + 2 * i, "a ", 2);
	line[2 * ABX_MAX_ARGV] = '\0';
	assert_int_equal(shlex_split(line, &words), 0);
	assert_int_equal(words.n, ABX_MAX_ARGV);
	strlist_clear(&words);
	memcpy(line + 2 * ABX_MAX_ARGV, "a", 2);
	assert_int_equal(shlex_split(line, &words), -1);
	assert_int_equal(words.n, 0);
	free(line);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_caps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
