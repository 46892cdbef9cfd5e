/*
 * SPDX-License-Identifier: ISC
 *
 * Moves that can be taken back: of the entries of an import to their places.
 * What they replaced is kept, and what was moved is written down, in the
 * staging directory, which takes both along when it goes.
 */
#ifndef ABX_PATHD_UNDO_H
#define ABX_PATHD_UNDO_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"

struct stat;
struct undo {
	int dir;	 /* what was replaced, by number; -1 */
	int log;	 /* a file without a name, -1 */
	uint64_t next;	 /* number of the next move */
	uint64_t logged; /* bytes in the file */
	size_t n;	 /* bytes in buf, that are not in the file yet */
	uint8_t buf[32 * 1024];
};

/* Begin, in that directory.  C_OK or why not; undo_close in either case. */
enum code undo_open(struct undo *, int stage);
/* Move the entry name of from, which is st, to the directory to under the same
 * name; path is that place below the top.  It takes the place of old, if that
 * is still there, or with NULL of nothing. */
enum code undo_move(struct undo *, int from, const char *name, int to,
    const char *path, const struct stat *st, const struct stat *old);
/* Take all of them back, below top, as far as they are still there. */
void undo_back(struct undo *, int top);
void undo_close(struct undo *);

#endif
