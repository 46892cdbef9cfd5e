/*
 * SPDX-License-Identifier: ISC
 *
 * The deny set that comes with a request, compiled.
 */
#ifndef ABX_PATHD_DENY_H
#define ABX_PATHD_DENY_H

#include <stddef.h>

#include "common/payload.h"

struct glob;
struct deny {
	struct glob **v; /* owned */
	size_t n;
};
/* 0, or -1 when out of memory or a pattern is bad; then refuse everything. */
int deny_new(struct deny *, const struct strlist *);
void deny_clear(struct deny *);
/* 1 when a pattern covers the canonical path or a directory above it. */
int deny_covers(const struct deny *, const char *path);

#endif
