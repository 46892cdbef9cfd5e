/*
 * SPDX-License-Identifier: ISC
 *
 * SEARCH: names or contents below a directory, as frames.
 */
#ifndef ABX_PATHD_SEARCH_H
#define ABX_PATHD_SEARCH_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/framer.h"
#include "pathd/pathd.h"
#include "pathd/sight.h"

struct search {
	const struct pathd *pd; /* borrowed */
	const struct bulk *b;	/* borrowed */
	char *path;		/* canonical, of the directory */
	int dir;		/* readable, -1 */
	struct sight sight;
	struct needle *needle;
};

/* Open the directory if it is still what was decided on, and compile the
 * pattern: C_OK or why not (C_ARGS_INVALID: the pattern).  search_close in
 * either case. */
enum code search_open(
    struct search *, const struct pathd *, const struct bulk *);
/* Send what is found and the end frame.  0, or -1 when out said so. */
int search_send(struct search *, framer_cb, void *arg);
void search_close(struct search *);

#endif
