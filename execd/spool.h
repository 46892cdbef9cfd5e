/*
 * SPDX-License-Identifier: ISC
 *
 * The output of one process, kept for those who follow it: now, later, or
 * from an offset on.  Each follower reads the rings at its own pace; one that
 * is slower than the program misses bytes, which it is told.
 */
#ifndef ABX_EXECD_SPOOL_H
#define ABX_EXECD_SPOOL_H

#include "common/payload.h"

#define SPOOL_FOLLOWERS 32 /* of one process */

struct event_base;
struct spool;

/* max: bytes kept of each stream.  NULL with errno. */
struct spool *spool_new(struct event_base *, size_t max);
/* Ends every follower; one that is not at the end sees its pipe break off. */
void spool_free(struct spool *);
/* Bytes of stdout (0) or stderr (1) came. */
void spool_put(struct spool *, int which, const uint8_t *, size_t n);
/* Nothing more comes.  Sets the counts of dropped bytes of *e and the flags
 * END_TRUNC_*, and keeps it for the followers. */
void spool_end(struct spool *, struct run_end *e);
/*
 * A new follower from these offsets on; past the end is at the end.  follow:
 * until the process ends, else until it has what is there.  The read end of
 * its frame pipe, or -1 with errno (EAGAIN: too many).
 */
int spool_follow(struct spool *, const uint64_t at[2], int follow);
/* How many follow.  NULL is fine. */
size_t spool_followers(const struct spool *);

#endif
