/*
 * SPDX-License-Identifier: ISC
 *
 * Repositories that earlier runs were kept from, so that no number of
 * directories made since can hide them from the next look.
 */
#ifndef ABX_EXECD_KNOWN_H
#define ABX_EXECD_KNOWN_H

#include <stddef.h>
#include <stdint.h>

#define KNOWN_EACH 64  /* ways below one directory, */
#define KNOWN_MAX 1024 /* and below all of them */

/* The ways below the directory of that device and inode, in the order in which
 * they were kept: how many are set in v, which stays the caller's; the texts
 * are valid until the next change. */
size_t known_of(uint64_t dev, uint64_t ino, const char *v[KNOWN_EACH]);
/* Keep a way that is not kept yet.  The first ones stay: when there are too
 * many, or no memory, this one is not. */
void known_keep(uint64_t dev, uint64_t ino, const char *way);
/* There is none any more. */
void known_drop(uint64_t dev, uint64_t ino, const char *way);

#endif
