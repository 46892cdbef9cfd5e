/*
 * SPDX-License-Identifier: ISC
 *
 * Facts about a path: where it really lies and what is there (design: paths,
 * "Canonicalisation").  Without globals, so that abxctl can walk with roots
 * that it opened itself.
 */
#ifndef ABX_PATHD_WALK_H
#define ABX_PATHD_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "common/payload.h"

#define WALK_LINKS 40 /* links that one path may go through */

/* A root directory that is held open. */
struct walk_root {
	uint32_t id;
	int fd;	    /* O_PATH directory, -1 with err set */
	int err;    /* why it could not be opened */
	char *conf; /* as configured, absolute */
	char *path; /* canonical spelling, NULL with err set */
	uint64_t dev, ino;
	int slow; /* its file system may not answer: main must not touch it */
	int slow_below; /* or one that is mounted below it */
};
struct walk_roots {
	struct walk_root *v; /* owned */
	size_t n;
};

/* What to hand out besides the facts. */
enum walk_want {
	WALK_FACTS, /* nothing */
	WALK_READ,  /* a regular file, opened for reading */
	WALK_DIR    /* a directory, as O_PATH */
};

/* The root of that id, NULL when there is none. */
const struct walk_root *walk_root(const struct walk_roots *, uint32_t id);

/*
 * Walk the item's path component by component without ever asking the kernel
 * to follow a link, and fill in *facts (facts_clear by the caller).  With
 * WALK_READ and WALK_DIR *fd becomes the descriptor that the facts were taken
 * from, or -1 when there is none of that kind; a regular file that cannot be
 * opened has status FS_OK, *fd -1 and its errno in facts->err.  0, or -1 when
 * out of memory.
 */
int walk_resolve(const struct walk_roots *, const struct resolve_item *,
    enum walk_want, struct facts *facts, int *fd);

#endif
