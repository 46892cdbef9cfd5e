/*
 * SPDX-License-Identifier: ISC
 *
 * Facts about paths for a decision that abxctl makes itself, with the walk
 * that pathd uses.
 */
#ifndef ABX_CTL_FACTS_H
#define ABX_CTL_FACTS_H

#include "pathd/walk.h"
#include "policy/policy.h"

/* Open every root of the policy and tell it their canonical spellings.  0, or
 * -1 out of memory; a root that cannot be opened has its errno. */
int facts_open(struct walk_roots *, struct policy *);
void facts_close(struct walk_roots *);
/* One facts for each item of the plan, as a new array (NULL with -1; also
 * NULL when there are no items).  0, or -1 out of memory. */
int facts_walk(const struct walk_roots *, const struct plan *, struct facts **);
void facts_free(struct facts *, size_t n);

#endif
