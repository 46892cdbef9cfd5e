/*
 * SPDX-License-Identifier: ISC
 *
 * Rings of output against the whole stream: what is kept is its end, at the
 * offsets it had.  Input: 2 bytes (how much is kept), then 2 bytes a portion.
 */
#include <stdlib.h>
#include <string.h>

#include "execd/ring.h"
#include "regress/fuzz/fuzz.h"

#define STREAM (512 * 1024)

static void
check(const struct ring *r, const uint8_t *all, uint64_t offset)
{
	const uint8_t *p;
	size_t n = ring_at(r, offset, &p);

	CHECK((n > 0) == (offset >= r->start && offset < r->end));
	CHECK(offset + n <= r->end || n == 0);
	CHECK(n == 0 || memcmp(p, all + offset, n) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t all[STREAM];
	struct feed f = {data, size};
	const uint8_t *p;
	struct ring r;
	uint32_t seed = 1;
	uint64_t at, end = 0;
	size_t max = feed_uint(&f, 2) * 3, n, i;

	for (i = 0; all[0] == 0 && i < STREAM; i++)
		all[i] = (uint8_t)(1 + fuzz_rand(&seed) % 255);
	ring_init(&r, max);
	while (f.n > 0) {
		n = feed_uint(&f, 2) * 2;
		if (n > STREAM - end)
			break;
		CHECK(ring_put(&r, all + end, n) == 0);
		end += n;
		CHECK(r.end == end && r.start <= end);
		CHECK(end - r.start == (end < r.max ? end : r.max));
		CHECK(r.cap <= r.max);
		/* all of it, piece by piece */
		for (at = r.start; (n = ring_at(&r, at, &p)) > 0; at += n)
			CHECK(memcmp(p, all + at, n) == 0);
		CHECK(at == end);
		check(&r, all, feed_u8(&f) * end / 255);
		check(&r, all, r.start - 1);
		check(&r, all, end);
	}
	ring_free(&r);
	return 0;
}
