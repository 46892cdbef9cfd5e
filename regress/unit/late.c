/*
 * SPDX-License-Identifier: ISC
 *
 * Withdrawn questions: which are remembered, and for how long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/chan.h"
#include "common/late.h"

#define QUESTION 40 /* bytes of the smallest one on a channel */

static struct late l;

static void
test_few(void **state)
{
	memset(&l, 0, sizeof(l));
	assert_int_equal(late_take(&l, 0, 0), 0);
	assert_int_equal(late_take(&l, 7, 0), 0);
	late_add(&l, 7);
	late_add(&l, 7ULL << 16 | 3);
	assert_int_equal(late_take(&l, 7, 0), 1);
	assert_int_equal(late_take(&l, 8, 0), 0);
	assert_int_equal(late_take(&l, 7, 1), 1);
	assert_int_equal(late_take(&l, 7, 1), 0);
	assert_int_equal(late_take(&l, 0, 1), 0);
	assert_int_equal(late_take(&l, 7ULL << 16 | 3, 0), 1);
	/* withdrawn once more, owed by somebody else */
	late_add(&l, 7);
	late_add(&l, 7);
	assert_int_equal(late_take(&l, 7, 1), 1);
	assert_int_equal(late_take(&l, 7, 1), 1);
	assert_int_equal(late_take(&l, 7, 1), 0);
}

/* Numbers as the listener and the monitor make them, many times round. */
static void
many(uint64_t (*id)(uint64_t))
{
	uint64_t i, k, n = 5 * LATE_MAX + 77;

	memset(&l, 0, sizeof(l));
	for (i = 1; i <= n; i++) {
		late_add(&l, id(i));
		assert_int_equal(late_take(&l, id(i), 0), 1);
		assert_int_equal(late_take(&l, id(i + 1), 0), 0);
		if (i > LATE_MAX) {
			k = i - LATE_MAX;
			assert_int_equal(late_take(&l, id(k), 0), 0);
			assert_int_equal(late_take(&l, id(k + 1), 0), 1);
		}
	}
	for (i = n - LATE_MAX + 1; i <= n; i++) {
		assert_int_equal(late_take(&l, id(i), i % 2 == 0), 1);
		assert_int_equal(late_take(&l, id(i), 0), i % 2);
	}
}

static uint64_t
plain(uint64_t i)
{
	return i;
}

static uint64_t
slotted(uint64_t i)
{
	return i << 16 | i % 64;
}

static uint64_t
tagged(uint64_t i)
{
	return i * 8 + 3;
}

static void
test_many(void **state)
{
	many(plain);
	many(slotted);
	many(tagged);
}

/* No more questions fit into a channel than are remembered. */
static void
test_room(void **state)
{
	assert_true(LATE_MAX >= CHAN_HIGH / QUESTION * 5 / 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_few),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
