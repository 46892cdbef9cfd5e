/*
 * SPDX-License-Identifier: ISC
 *
 * The last bytes of a stream, at the offsets they had in it.  Pure.
 */
#ifndef ABX_EXECD_RING_H
#define ABX_EXECD_RING_H

#include <stddef.h>
#include <stdint.h>

struct ring {
	uint8_t *p;	/* owned; byte o of the stream is p[o % cap] */
	size_t cap;	/* grows up to max */
	size_t max;	/* bytes kept, at least 1 */
	uint64_t end;	/* bytes that came in all */
	uint64_t start; /* offset of the oldest byte that is there */
};

void ring_init(struct ring *, size_t max);
void ring_free(struct ring *);
/* Append n bytes; the oldest make room.  Without memory to grow less is kept:
 * 0, or -1 when nothing can be. */
int ring_put(struct ring *, const uint8_t *, size_t n);
/* The bytes from an offset on, in one piece: how many there are at *p, 0 at
 * the end.  An offset before start or past the end has none. */
size_t ring_at(const struct ring *, uint64_t offset, const uint8_t **p);

#endif
