/*
 * SPDX-License-Identifier: ISC
 *
 * The ways into the command policy, and what came of it.
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

struct filter *ask_defaults;

int
ask_setup(void **state)
{
	char why[100];

	ask_defaults = filter_new(NULL, why, sizeof(why));
	return ask_defaults == NULL ? -1 : 0;
}

int
ask_teardown(void **state)
{
	filter_free(ask_defaults);
	return 0;
}

int
ask_has(const char *const *v, size_t n, const char *name)
{
	while (n > 0)
		if (strcmp(v[--n], name) == 0)
			return 1;
	return 0;
}

int
ask_named(const struct filter_result *r, const char *name)
{
	return ask_has(r->blocked, r->nblocked, name) ||
	       ask_has(r->warned, r->nwarned, name);
}

void
ask_script(
    const struct filter *f, const char *s, size_t n, struct filter_result *r)
{
	assert_int_equal(filter_check_script(f, s, n, r), 0);
}

/* The same script as an argument of a shell. */
void
ask_line(const struct filter *f, const char *s, struct filter_result *r)
{
	struct strlist argv = {0};

	assert_int_equal(strlist_add(&argv, "/bin/sh", 7), 0);
	assert_int_equal(strlist_add(&argv, "-c", 2), 0);
	assert_int_equal(strlist_add(&argv, s, strlen(s)), 0);
	assert_int_equal(filter_check(f, &argv, NULL, 0, r), 0);
	strlist_clear(&argv);
}

void
ask_words(const struct filter *f, const char *const *v, const char *in,
    size_t n, struct filter_result *r)
{
	struct strlist argv = {0};

	for (; *v != NULL; v++)
		assert_int_equal(strlist_add(&argv, *v, strlen(*v)), 0);
	assert_int_equal(filter_check(f, &argv, in, n, r), 0);
	strlist_clear(&argv);
}

void
ask_print(const char *what, const char *text, const struct filter_result *r)
{
	size_t i;

	print_message("%s: %s:", what, text);
	for (i = 0; i < r->nblocked; i++)
		print_message(" block:%s", r->blocked[i]);
	for (i = 0; i < r->nwarned; i++)
		print_message(" warn:%s", r->warned[i]);
	print_message("\n");
}
