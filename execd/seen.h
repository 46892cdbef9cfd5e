/*
 * SPDX-License-Identifier: ISC
 *
 * What a sandbox is to show, as bytes: two that would show the same have the
 * same, and it can be seen whether all of it still lies where it did.
 */
#ifndef ABX_EXECD_SEEN_H
#define ABX_EXECD_SEEN_H

#include "common/wire.h"
#include "execd/profile.h"

#define SEEN_MAX (8 * 1024 * 1024)

void seen_put(struct wbuf *, const struct profile_binds *);
/* Is something else there now, or nothing?  0 also when that cannot be told. */
int seen_changed(const struct wbuf *);

#endif
