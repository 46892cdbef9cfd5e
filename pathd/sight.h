/*
 * SPDX-License-Identifier: ISC
 *
 * Which entries of a tree the caller of a request may know of, judged again
 * at each one.
 */
#ifndef ABX_PATHD_SIGHT_H
#define ABX_PATHD_SIGHT_H

#include "common/payload.h"
#include "pathd/deny.h"
#include "pathd/pathd.h"

struct stat;
struct sight {
	const struct pathd *pd;	    /* borrowed */
	const struct rootref *refs; /* borrowed; where a link may lead */
	size_t nrefs;
	uint16_t flags; /* enum path_flag */
	struct deny deny;
};

/* 0, or -1 when out of memory or a pattern is bad; then refuse everything. */
int sight_new(struct sight *, const struct pathd *, const struct rootref *,
    size_t nrefs, uint16_t flags, const struct strlist *deny);
void sight_clear(struct sight *);
/* 1 when the entry of that canonical path may be seen: it is not denied, and
 * no link that leads out of the roots or to something denied. */
int sight_entry(const struct sight *, const char *path, const struct stat *);
/* 1 when a link that may be seen leads to something that exists. */
int sight_leads(const struct sight *, const char *path);
/* 1 when its content may be read too: a regular file without other names. */
int sight_content(const struct sight *, const struct stat *);

#endif
