/*
 * SPDX-License-Identifier: ISC
 *
 * Sizes, durations and rates as the configuration spells them.  Pure.
 */
#ifndef ABX_SIZE_H
#define ABX_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* "10MB", "10MiB", "1.5GB", "4096": bytes into *out.  Number, then B kB MB GB
 * TB (powers of 1000) or KiB MiB GiB TiB (1024), nothing between.  0 or -1. */
int size_parse(const char *, uint64_t *out);
/* "90s", "5m", "1h", "500ms": milliseconds into *out.  0 or -1. */
int duration_parse(const char *, uint64_t *out);
/* "10/min", "5/s", "100/h": count and period in milliseconds.  0 or -1. */
int rate_parse(const char *, uint32_t *count, uint64_t *period_ms);
/* The decimal number at *p, up to a blank or the end; *p goes behind both.  0
 * or -1. */
int uint_word(const char **p, uint64_t *out);
/* Decimal without sign, all of the string, at most max.  0 or -1. */
int uint_parse(const char *, size_t len, uint64_t max, uint64_t *out);

#endif
