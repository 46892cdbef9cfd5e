/*
 * SPDX-License-Identifier: ISC
 *
 * Naive second ways to match: recursion and backtracking, exponential and
 * obvious.  Only for short inputs.
 */
#ifndef ABX_FUZZ_MODEL_H
#define ABX_FUZZ_MODEL_H

#include <stddef.h>

/* 1 when every class of one segment ends and no range runs backwards. */
int model_segment_ok(const char *, size_t n);
/* 1 when the pattern of one segment matches the bytes of one segment. */
int model_segment(const char *p, size_t np, const char *s, size_t ns);
/* 1 when jansson takes the text (any value) and it is at most that deep. */
int model_json(const char *, size_t n, unsigned depth);

#endif
