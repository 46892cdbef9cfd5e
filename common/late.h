/*
 * SPDX-License-Identifier: ISC
 *
 * Numbers of questions that were withdrawn while their answers were on the
 * way, so that a late answer can be told from a lie.  Pure.
 */
#ifndef ABX_LATE_H
#define ABX_LATE_H

#include <stdint.h>

/* That many are remembered, a power of two.  A channel takes no question when
 * more than CHAN_HIGH bytes wait in it, and no question has less than 40 bytes,
 * so that whoever withdraws them all while the peer is busy fills the channel
 * before the first is forgotten. */
#define LATE_MAX 32768

struct late_one {
	uint64_t id;   /* 0: it was answered */
	uint64_t prev; /* the one before it in its bucket */
};
/* All zero: none.  The n-th lies at n modulo LATE_MAX; n counts from 1. */
struct late {
	struct late_one v[LATE_MAX];
	uint64_t buckets[LATE_MAX]; /* the last one of each */
	uint64_t n;
};

/* Remember a number that is not 0; the oldest is forgotten for it. */
void late_add(struct late *, uint64_t id);
/* 1 when it is remembered; it no longer is then when this is the last answer
 * to it. */
int late_take(struct late *, uint64_t id, int last);

#endif
