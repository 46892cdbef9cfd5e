/*
 * SPDX-License-Identifier: ISC
 *
 * NAME=VALUE words of abxctl explain and of examples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policy.h"

static int
parse(struct args *args, const char *op, const char *const *words)
{
	struct strlist list = {0};
	const char *bad;
	int r;

	memset(args, 0, sizeof(*args));
	for (; *words != NULL; words++)
		assert_int_equal(strlist_add(&list, *words, strlen(*words)), 0);
	r = policy_args_words(args, op_find(op), list.v, list.n, &bad);
	strlist_clear(&list);
	return r;
}

static void
test_types(void **state)
{
	static const char *const words[] = {
	    "argv=ls", "cwd=/a=b", "argv=-l", "env=A=1", "env=B=", NULL};
	struct args args;
	const struct arg *a;

	assert_int_equal(parse(&args, "commands.run", words), 0);
	assert_int_equal(args.n, 3);
	a = args_find(&args, "argv");
	assert_int_equal(a->type, A_LIST);
	assert_int_equal(a->n, 2);
	assert_string_equal(a->list[1], "-l");
	a = args_find(&args, "cwd");
	assert_int_equal(a->type, A_QUERY);
	assert_string_equal(a->s, "/a=b");
	a = args_find(&args, "env");
	assert_int_equal(a->type, A_MAP);
	assert_string_equal(a->list[1], "B");
	assert_string_equal(a->vals[1], "");
	args_clear(&args);
}

static void
test_bad(void **state)
{
	static const char *const rows[][3] = {
	    {"novalue", NULL},
	    {"=x", NULL},
	    {"path=a", "path=b", NULL},
	};
	struct args args;
	size_t i;

	for (i = 0; i < nitems(rows); i++) {
		assert_int_equal(parse(&args, "files.stat", rows[i]), 1);
		args_clear(&args);
	}
	assert_int_equal(
	    parse(&args, "commands.run", (const char *const[]){"env=A", NULL}),
	    1);
	args_clear(&args);
}

static void
test_unknown(void **state)
{
	static const char *const words[] = {"x=1", NULL};
	struct args args;

	assert_int_equal(parse(&args, "no.such", words), 0);
	assert_string_equal(args_find(&args, "x")->s, "1");
	args_clear(&args);
	assert_int_equal(parse(&args, "files.stat", words), 0);
	assert_int_equal(args_find(&args, "x")->type, A_QUERY);
	args_clear(&args);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_types),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
