/*
 * SPDX-License-Identifier: ISC
 *
 * What is looked for in lines of bytes: plain text or a bounded regular
 * expression.  Pure.
 */
#ifndef ABX_PATHD_NEEDLE_H
#define ABX_PATHD_NEEDLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"

struct needle;

/* Compile (PCRE2 for a regex or to ignore case).  NULL with *code
 * C_ARGS_INVALID for a bad or too costly pattern, C_SRV_UNAVAILABLE out of
 * memory. */
struct needle *needle_new(
    const char *pattern, int regex, int nocase, enum code *code);
void needle_free(struct needle *);
/* The first line with a match in len bytes of whole lines: 1 with where the
 * line begins, its length without the newline and the offset of the match in
 * it; 0 when there is none; -1 when a limit of the expression was met. */
int needle_find(struct needle *, const uint8_t *, size_t len, size_t *line,
    size_t *linelen, size_t *at);

#endif
