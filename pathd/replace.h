/*
 * SPDX-License-Identifier: ISC
 *
 * Replacing text in memory.  Pure.
 */
#ifndef ABX_PATHD_REPLACE_H
#define ABX_PATHD_REPLACE_H

#include "common/codes.h"
#include "common/payload.h"

/* A text that grows and shrinks. */
struct text {
	uint8_t *p; /* owned */
	size_t len;
};

/*
 * Apply the rows one behind the other, each to what the one before made.
 * C_OK with the number of replacements in *count; C_EDIT_NO_MATCH when a text
 * is found less often than it should be, C_EDIT_AMBIGUOUS when more often,
 * C_LIM_MAX_BYTES when the text would grow over max; C_SRV_UNAVAILABLE without
 * memory.  What t holds after a failure means nothing, but is freed as usual.
 */
enum code replace_all(struct text *, const struct edit_row *, size_t n,
    uint64_t max, uint64_t *count);

#endif
