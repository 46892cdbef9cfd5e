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
/* Of a line that does not fit: the first begins before the bytes at hand, the
 * last goes on behind them. */
enum needle_part { NEEDLE_NOT_BEGIN = 1, NEEDLE_NOT_END = 2 };
/* The first line with a match in len bytes of whole lines, but for part: 1
 * with where the line begins, its length without the newline and the offset of
 * the match in it; 0 when there is none; -1 when a limit of the expression was
 * met. */
int needle_find(struct needle *, const uint8_t *, size_t len, unsigned part,
    size_t *line, size_t *linelen, size_t *at);

#endif
