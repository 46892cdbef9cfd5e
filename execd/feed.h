/*
 * SPDX-License-Identifier: ISC
 *
 * The input of one process: pieces in the order in which they came, written
 * as its pipe takes them.
 */
#ifndef ABX_EXECD_FEED_H
#define ABX_EXECD_FEED_H

#include <stddef.h>
#include <stdint.h>

#define FEED_PIECES 16 /* that may wait for one process */

struct event_base;
struct feed;

/* A piece is written, or never will be: id of feed_put and an enum code.  Id
 * 0 is not told. */
typedef void (*feed_done_cb)(uint64_t id, uint16_t code);

/* Take the write end of the pipe, non-blocking.  NULL with errno, and the
 * descriptor stays the caller's. */
struct feed *feed_new(struct event_base *, int fd, feed_done_cb);
/* The process is over: what waits is told so. */
void feed_free(struct feed *);
/* Give the descriptor back: one that was made and never used. */
void feed_drop(struct feed *);
/* Take the descriptor of a file whose bytes are to be written; eof: nothing
 * comes behind it.  Tells its end in any case, maybe at once.  0, or -1 when
 * there was no memory for it. */
int feed_put(struct feed *, uint64_t id, int fd, int eof);
/* Files that wait.  NULL is fine. */
size_t feed_waiting(const struct feed *);

#endif
