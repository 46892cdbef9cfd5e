/*
 * SPDX-License-Identifier: ISC
 *
 * The repositories of earlier runs: kept by directory, and bounded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "execd/known.h"

static size_t
count(uint64_t dev, uint64_t ino)
{
	const char *v[KNOWN_EACH];

	return known_of(dev, ino, v);
}

static void
test_kept_by_directory(void **state)
{
	const char *v[KNOWN_EACH];

	known_keep(1, 1, "a");
	known_keep(1, 1, "b/c");
	known_keep(1, 1, "a");
	known_keep(2, 1, "a");
	assert_int_equal(count(1, 2), 0);
	assert_int_equal(count(2, 1), 1);
	assert_int_equal(known_of(1, 1, v), 2);
	assert_string_equal(v[0], "a");
	assert_string_equal(v[1], "b/c");
	known_drop(1, 1, "c");
	known_drop(1, 1, "a");
	assert_int_equal(known_of(1, 1, v), 1);
	assert_string_equal(v[0], "b/c");
	assert_int_equal(count(2, 1), 1);
	known_drop(1, 1, "b/c");
	known_drop(2, 1, "a");
}

/* What was there first stays, below each directory and in all. */
static void
test_bounds(void **state)
{
	const char *v[KNOWN_EACH];
	char way[32];
	uint64_t d;
	int i;

	for (d = 0; d < KNOWN_MAX / KNOWN_EACH + 2; d++)
		for (i = 0; i < KNOWN_EACH + 2; i++) {
			snprintf(way, sizeof(way), "%d", i);
			known_keep(3, d, way);
		}
	for (d = 0; d < KNOWN_MAX / KNOWN_EACH; d++)
		assert_int_equal(count(3, d), KNOWN_EACH);
	assert_int_equal(count(3, d), 0);
	assert_int_equal(known_of(3, 0, v), KNOWN_EACH);
	assert_string_equal(v[KNOWN_EACH - 1], "63");
	known_drop(3, 0, "5");
	known_keep(3, d, "x");
	assert_int_equal(count(3, d), 1);
	known_drop(3, d, "x");
	for (d = 0; d < KNOWN_MAX / KNOWN_EACH; d++)
		while (known_of(3, d, v) > 0)
			known_drop(3, d, v[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_kept_by_directory),
	    cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
