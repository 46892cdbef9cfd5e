/*
 * SPDX-License-Identifier: ISC
 *
 * Numbers of withdrawn questions: a ring, and chains through it by a hash.
 * Pure.
 */
#include "common/late.h"

_Static_assert((LATE_MAX & (LATE_MAX - 1)) == 0, "a power of two");

/* Numbers that are counted up, with and without something in their low bits
 * (Knuth, multiplicative hashing). */
static uint64_t *
bucket(struct late *l, uint64_t id)
{
	return &l->buckets[(id * 0x9e3779b97f4a7c15ULL) >> 32 & (LATE_MAX - 1)];
}

void
late_add(struct late *l, uint64_t id)
{
	uint64_t *b = bucket(l, id), n = ++l->n;

	l->v[n % LATE_MAX] = (struct late_one){id, *b};
	*b = n;
}

int
late_take(struct late *l, uint64_t id, int last)
{
	struct late_one *e;
	uint64_t n;

	/* what is older than the ring is another one now */
	for (n = *bucket(l, id); n > 0 && n + LATE_MAX > l->n; n = e->prev) {
		e = &l->v[n % LATE_MAX];
		if (e->id != id || id == 0)
			continue;
		if (last)
			e->id = 0;
		return 1;
	}
	return 0;
}
