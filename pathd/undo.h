/*
 * SPDX-License-Identifier: ISC
 *
 * Moves that can be taken back: of the entries of an import to their places.
 * What they replaced is kept, and what was moved is written down, in the
 * staging directory, which takes both along when it goes; in the journal too,
 * for whoever comes after a crash.
 */
#ifndef ABX_PATHD_UNDO_H
#define ABX_PATHD_UNDO_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"

#define UNDO_FROM "new" /* in the staging directory: what is to be moved */

struct stage;
struct stat;
struct undo {
	const struct stage *stage; /* borrowed; NULL: not in the journal */
	int dir;		   /* what was replaced, by number; -1 */
	int from;		   /* UNDO_FROM, -1 */
	int log;		   /* a file without a name, -1 */
	uint64_t next;		   /* number of the next move */
	uint64_t logged;	   /* bytes in the file */
	size_t n; /* bytes in buf, that are not in the file yet */
	uint8_t buf[32 * 1024];
};

/* Begin, in that directory, which is of the stage when there is one.  C_OK or
 * why not; undo_close in either case. */
enum code undo_open(struct undo *, int dir, const struct stage *);
/* Move the entry name of from, which is st, to the directory to under the same
 * name; path is that place below the top.  It takes the place of old, if that
 * is still there, or with NULL of nothing. */
enum code undo_move(struct undo *, int from, const char *name, int to,
    const char *path, const struct stat *st, const struct stat *old);
/* Take all of them back, below top, as far as they are still there. */
void undo_back(struct undo *, int top);
/* Nothing is to be taken back any more: C_OK, else all still is. */
enum code undo_keep(const struct undo *, int dir);
/* After a crash: take one move back, below top, of which the journal has that
 * text, unless they were to be kept. */
void undo_again(int top, int stage, const char *text);
void undo_close(struct undo *);

#endif
