/*
 * SPDX-License-Identifier: ISC
 *
 * What walk.c and steps.c share.  Private to these two.
 */
#ifndef ABX_PATHD_WALK_INT_H
#define ABX_PATHD_WALK_INT_H

#include "pathd/walk.h"

struct stat;

/* Where a spelled path starts: a reference and what follows it. */
struct walk_start {
	size_t ref;
	const struct walk_root *root;
	const char *rest; /* below the root's own directory, sub included */
	size_t spelled;	  /* bytes of the path before rest and its slash */
};

/* walk.c: what follows dir in path: "" or text behind the slash; NULL when
 * path does not lie in dir. */
const char *walk_after(const char *path, const char *dir);
/* The longest spelling of an asking root that path starts with: 0 or -1. */
int walk_start(const struct walk_roots *, const struct resolve_item *,
    const char *path, struct walk_start *);
/* The asking root that is nearest to a canonical path, into the facts. */
void walk_owner(
    const struct walk_roots *, const struct resolve_item *, struct facts *);
void walk_stat(struct facts *, const struct stat *);
size_t walk_segments(const char *path);

/* steps.c: walk component by component, through links.  fd: NULL, or where a
 * new descriptor of what was found goes.  0, -1 out of memory. */
int walk_slow(const struct walk_roots *, const struct resolve_item *,
    struct facts *, int *fd);

#endif
