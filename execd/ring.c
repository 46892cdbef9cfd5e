/*
 * SPDX-License-Identifier: ISC
 *
 * Rings of output.  Pure.
 */
#include "execd/ring.h"

#include <stdlib.h>
#include <string.h>

#define RING_MIN 4096

void
ring_init(struct ring *r, size_t max)
{
	memset(r, 0, sizeof(*r));
	r->max = max < 1 ? 1 : max;
}

void
ring_free(struct ring *r)
{
	free(r->p);
	ring_init(r, r->max);
}

/* Copy bytes of the stream that begin at an offset into a ring of cap. */
static void
lay(uint8_t *ring, size_t cap, uint64_t offset, const uint8_t *p, size_t n)
{
	size_t at = (size_t)(offset % cap), m = cap - at < n ? cap - at : n;

	memcpy(ring + at, p, m);
	memcpy(ring, p + m, n - m);
}

/* Room for n more bytes if the bound allows: 0 or -1. */
static int
grow(struct ring *r, size_t n)
{
	size_t have = (size_t)(r->end - r->start), m, cap = r->cap;
	uint64_t at = r->start;
	const uint8_t *q;
	uint8_t *p;

	if (have + n <= cap || cap == r->max)
		return 0;
	if (cap == 0)
		cap = RING_MIN;
	while (cap < have + n && cap < r->max)
		cap *= 2;
	if (cap > r->max)
		cap = r->max;
	if ((p = malloc(cap)) == NULL)
		return -1;
	for (; (m = ring_at(r, at, &q)) > 0; at += m)
		lay(p, cap, at, q, m);
	free(r->p);
	r->p = p;
	r->cap = cap;
	return 0;
}

int
ring_put(struct ring *r, const uint8_t *p, size_t n)
{
	if (n == 0)
		return 0; /* of which there may be no ring yet */
	if (n > r->max) {
		/* only its end can stay */
		r->end += n - r->max;
		r->start = r->end;
		p += n - r->max;
		n = r->max;
	}
	if (grow(r, n) == -1 && r->cap == 0) {
		r->end += n;
		r->start = r->end;
		return -1;
	}
	if (n > r->cap) {
		r->end += n - r->cap;
		r->start = r->end;
		p += n - r->cap;
		n = r->cap;
	}
	lay(r->p, r->cap, r->end, p, n);
	r->end += n;
	if (r->end - r->start > r->cap)
		r->start = r->end - r->cap;
	return 0;
}

size_t
ring_at(const struct ring *r, uint64_t offset, const uint8_t **p)
{
	size_t at, n;

	*p = NULL;
	if (r->cap == 0 || offset < r->start || offset >= r->end)
		return 0;
	at = (size_t)(offset % r->cap);
	n = (size_t)(r->end - offset);
	*p = r->p + at;
	return n < r->cap - at ? n : r->cap - at;
}
