/*
 * SPDX-License-Identifier: ISC
 *
 * Protected names that were not there, or were links, when a sandbox was
 * built, and what became of them.
 */
#ifndef ABX_EXECD_APPEARED_H
#define ABX_EXECD_APPEARED_H

#include "common/payload.h"

struct stat;
struct appeared;

/* Watch name in dir (borrowed), which lies at inner and is missing (st is
 * NULL) or is that link.  *a is made when it is NULL.  0, or -1 with errno. */
int appeared_watch(struct appeared **a, const char *inner, int dir,
    const char *name, const struct stat *st);
/* Not everything that should be protected was looked for: said with the rest.
 * 0, or -1 with errno. */
int appeared_partial(struct appeared **a);
/* Put the paths of those that are there now, or are another thing than that
 * link, into *e.  a may be NULL. */
void appeared_report(const struct appeared *a, struct run_end *e);
/* Descriptors that it holds.  NULL is fine. */
size_t appeared_fds(const struct appeared *);
void appeared_free(struct appeared *);

#endif
