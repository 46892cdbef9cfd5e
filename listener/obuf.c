/*
 * SPDX-License-Identifier: ISC
 *
 * A growing buffer that gives its memory back when it is empty.  Pure.
 */
#include "listener/obuf.h"

#include <stdlib.h>
#include <string.h>

#define OBUF_MIN 4096

void
obuf_free(struct obuf *b)
{
	free(b->p);
	memset(b, 0, sizeof(*b));
}

size_t
obuf_left(const struct obuf *b)
{
	return b->len - b->off;
}

int
obuf_add(struct obuf *b, const void *p, size_t n)
{
	size_t need, cap;
	uint8_t *q;

	if (n == 0)
		return 0;
	if (b->off > 0 && b->off >= b->len / 2) {
		memmove(b->p, b->p + b->off, b->len - b->off);
		b->len -= b->off;
		b->off = 0;
	}
	if (__builtin_add_overflow(b->len, n, &need) || need > SIZE_MAX / 2)
		return -1;
	if (need > b->cap) {
		for (cap = b->cap < OBUF_MIN ? OBUF_MIN : b->cap; cap < need;)
			cap *= 2;
		if ((q = realloc(b->p, cap)) == NULL)
			return -1;
		b->p = q;
		b->cap = cap;
	}
	memcpy(b->p + b->len, p, n);
	b->len = need;
	return 0;
}

void
obuf_took(struct obuf *b, size_t n)
{
	b->off += n;
	if (b->off >= b->len)
		obuf_free(b);
}
