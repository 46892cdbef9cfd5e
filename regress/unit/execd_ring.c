/*
 * SPDX-License-Identifier: ISC
 *
 * Rings of output: against a model that keeps everything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "execd/ring.h"

static uint8_t
byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 31 + offset / 251);
}

/* Everything from an offset on is there, in order, and is what was put. */
static void
check_from(const struct ring *r, uint64_t offset)
{
	const uint8_t *p;
	size_t n, i;

	while ((n = ring_at(r, offset, &p)) > 0) {
		for (i = 0; i < n; i++)
			assert_int_equal(p[i], byte_at(offset + i));
		offset += n;
	}
	assert_int_equal(offset, r->end);
}

static void
put(struct ring *r, size_t n)
{
	uint8_t *p = malloc(n + 1);
	size_t i;

	assert_non_null(p);
	for (i = 0; i < n; i++)
		p[i] = byte_at(r->end + i);
	assert_int_equal(ring_put(r, p, n), 0);
	free(p);
}

static void
test_sizes(void **state)
{
	static const size_t maxes[] = {1, 7, 4096, 5000, 65536};
	static const size_t pieces[] = {0, 1, 3, 4095, 4097, 70000, 0, 1, 9999};
	struct ring r;
	uint64_t total, want;
	size_t i, k;

	for (i = 0; i < nitems(maxes); i++) {
		ring_init(&r, maxes[i]);
		total = 0;
		for (k = 0; k < 4 * nitems(pieces); k++) {
			put(&r, pieces[k % nitems(pieces)]);
			total += pieces[k % nitems(pieces)];
			want = total > maxes[i] ? total - maxes[i] : 0;
			assert_int_equal(r.end, total);
			assert_int_equal(r.start, want);
			assert_true(r.cap <= maxes[i]);
			check_from(&r, r.start);
			check_from(&r, r.start + (r.end - r.start) / 2);
		}
		ring_free(&r);
	}
}

static void
test_outside(void **state)
{
	const uint8_t *p;
	struct ring r;

	ring_init(&r, 10);
	assert_int_equal(ring_at(&r, 0, &p), 0);
	put(&r, 25);
	assert_int_equal(r.start, 15);
	assert_int_equal(ring_at(&r, 14, &p), 0);
	assert_int_equal(ring_at(&r, 25, &p), 0);
	assert_int_equal(ring_at(&r, UINT64_MAX, &p), 0);
	assert_true(ring_at(&r, 24, &p) == 1 && *p == byte_at(24));
	ring_free(&r);
	assert_int_equal(r.end, 0);
}

/* What is short takes little memory. */
static void
test_grows(void **state)
{
	struct ring r;

	ring_init(&r, 1024 * 1024);
	assert_null(r.p);
	put(&r, 10);
	assert_true(r.cap <= 4096);
	put(&r, 10000);
	assert_true(r.cap <= 16384);
	check_from(&r, 0);
	ring_free(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_outside),
	    cmocka_unit_test(test_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
