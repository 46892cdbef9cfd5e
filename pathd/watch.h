/*
 * SPDX-License-Identifier: ISC
 *
 * Changes below a directory, as they come (inotify(7)).
 */
#ifndef ABX_PATHD_WATCH_H
#define ABX_PATHD_WATCH_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/sight.h"

#define WATCH_DIRS 8192		/* directories of one watch */
#define WATCH_QUEUE (64 * 1024) /* bytes of frames that wait for a reader */

struct watch {
	const struct pathd *pd; /* borrowed */
	const struct bulk *b;	/* borrowed */
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1]; /* of the directory, below root */
	char *path;		     /* canonical, of the same */
	int dir;		     /* O_PATH, -1 */
	int ino;		     /* inotify, -1 */
	struct sight sight;
	char *
	    *rel; /* owned; by watch descriptor: the directory below, or NULL */
	size_t nrel, ndirs;
	struct wbuf out; /* frames that were not written yet */
	int lost;	 /* some did not fit: an overflow is to be told */
	int ended;	 /* the directory is gone or another one */
};

/* Begin to watch: C_OK or why not.  watch_close in either case. */
enum code watch_open(struct watch *, const struct pathd *, const struct bulk *);
/* All that was queued is with the reader: tell whether something was lost. */
void watch_settle(struct watch *);
/* Take what inotify has: frames go to out. */
void watch_read(struct watch *);
void watch_close(struct watch *);

#endif
