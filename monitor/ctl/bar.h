/*
 * SPDX-License-Identifier: ISC
 *
 * One line on a terminal that says how far a transfer is.
 */
#ifndef ABX_CTL_BAR_H
#define ABX_CTL_BAR_H

#include <stdint.h>

struct bar {
	const char *name;     /* borrowed */
	uint64_t total, from; /* bytes; 0: unknown; where a resumed one began */
	uint64_t began_us, shown_us;
	int on;
};
/* Nothing is shown with quiet, or when stderr is no terminal. */
void bar_begin(
    struct bar *, const char *name, uint64_t from, uint64_t total, int quiet);
void bar_at(struct bar *, uint64_t done);
void bar_end(struct bar *, uint64_t done);
/* "12.3 MiB" into b. */
void bar_size(char b[24], uint64_t bytes);

#endif
