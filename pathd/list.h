/*
 * SPDX-License-Identifier: ISC
 *
 * One listing: the entries of a directory that the caller may know of, as
 * frames.
 */
#ifndef ABX_PATHD_LIST_H
#define ABX_PATHD_LIST_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/framer.h"
#include "pathd/sight.h"

struct listing {
	const struct pathd *pd; /* borrowed */
	const struct list *l;	/* borrowed */
	char *path;		/* canonical, of the directory */
	int dir;		/* readable, -1 */
	struct sight sight;
};

/* Open the directory if it is still what was decided on: C_OK or why not.
 * listing_close in either case. */
enum code listing_open(
    struct listing *, const struct pathd *, const struct list *);
/* Send all entries that may be seen and the end frame.  0, or -1 when out
 * said so. */
int listing_send(struct listing *, framer_cb, void *arg);
void listing_close(struct listing *);

#endif
