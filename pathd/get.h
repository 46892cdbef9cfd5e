/*
 * SPDX-License-Identifier: ISC
 *
 * RESOLVE: facts about paths, and the first one opened.
 */
#ifndef ABX_PATHD_GET_H
#define ABX_PATHD_GET_H

#include "common/payload.h"
#include "pathd/pathd.h"

/* Fill in the payload of FACTS; *fd is the descriptor to go with it or -1.
 * 0, or -1 when out of memory. */
int get_facts(
    const struct pathd *, const struct resolve *, struct wbuf *, int *fd);

#endif
