/*
 * SPDX-License-Identifier: ISC
 *
 * What is kept of a stream of output, and the frames that wait to be sent.
 * Pure.
 */
#ifndef ABX_EXECD_KEEP_H
#define ABX_EXECD_KEEP_H

#include <stddef.h>
#include <stdint.h>

/*
 * One captured stream of at most max bytes.  Either its head is kept, or 40 %
 * (rounded down) of head and the rest as tail; a stream that fits is kept
 * whole either way.  What is cut between them is whole characters of UTF-8.
 */
struct keep {
	uint64_t head_max; /* bytes that are passed on at once */
	uint64_t head;	   /* bytes passed on */
	uint8_t *ring;	   /* the tail, owned */
	size_t ring_max, ring_cap, ring_len, ring_pos; /* pos: oldest byte */
	uint8_t last[3]; /* of what was passed on */
	uint8_t edge[3]; /* the rest of its last character, once it is cut */
	size_t nedge;
	int cut; /* there is more than can be kept */
	uint64_t dropped;
};
#define KEEP_PIECES 3
void keep_init(struct keep *, uint64_t max, int head_tail);
void keep_free(struct keep *);
/* n bytes came: returns how many of the first are to be passed on now, and
 * keeps or counts the rest. */
size_t keep_take(struct keep *, const uint8_t *, size_t n);
/* Nothing more comes: what was not passed on, oldest first.  Lengths may be 0.
 * Once. */
void keep_tail(
    struct keep *, const uint8_t *p[KEEP_PIECES], size_t n[KEEP_PIECES]);

/* Frames in the order in which they leave, as bytes. */
struct frames {
	uint8_t *p;	      /* owned */
	size_t off, len, cap; /* unsent bytes are p[off..len) */
};
void frames_free(struct frames *);
/* Append bytes as frames of this kind: 0, or -1 when out of memory (nothing
 * was appended then). */
int frames_put(struct frames *, uint8_t kind, const uint8_t *, size_t n);
/* Unsent bytes. */
size_t frames_left(const struct frames *);
/* n bytes were sent. */
void frames_sent(struct frames *, size_t n);

#endif
