/*
 * SPDX-License-Identifier: ISC
 *
 * What every part of pathd shares: the roots, and how new files are made.
 */
#ifndef ABX_PATHD_PATHD_H
#define ABX_PATHD_PATHD_H

#include <sys/types.h>

#include "pathd/walk.h"

struct pathd {
	struct walk_roots roots;
	mode_t umask; /* of new files and directories; the process has it too */
	int journal;  /* append-only file, -1 when none was given */
	volatile uint64_t *beat; /* of a worker, NULL in main: see pool.c */
};

/* Say that work goes on, where nobody can stop it any more. */
static inline void
pathd_beat(const struct pathd *pd)
{
	if (pd != NULL && pd->beat != NULL)
		++*pd->beat;
}

#endif
