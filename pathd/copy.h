/*
 * SPDX-License-Identifier: ISC
 *
 * COPY: a file or a directory under another name, all of it or nothing.
 */
#ifndef ABX_PATHD_COPY_H
#define ABX_PATHD_COPY_H

#include "pathd/dir.h"

void copy_run(const struct pathd *, const struct bulk *, const struct stopper *,
    struct done *);
/* All bytes of a regular file into an empty one: C_OK or why not.  Holes stay
 * holes. */
enum code copy_bytes(int from, int to, const struct stopper *);

#endif
