/*
 * SPDX-License-Identifier: ISC
 *
 * Repositories below a writable directory.
 */
#ifndef ABX_EXECD_NESTED_H
#define ABX_EXECD_NESTED_H

#include "execd/profile.h"

/*
 * Protect the names in each directory below the writable bind b->v[i] that
 * holds ".git", when that is among them.  When there are more directories or
 * entries than are looked at, or more to protect, the run says so (b->watch).
 * 0, or -1 with errno as protect_names.
 */
int nested_names(struct profile_binds *, const struct strlist *names, size_t i);

#endif
