/*
 * SPDX-License-Identifier: ISC
 *
 * Byte ranges.  Pure.
 */
#ifndef LISTENER_RANGE_H
#define LISTENER_RANGE_H

#include <stddef.h>
#include <stdint.h>

/* A Range value for size bytes (RFC 9110, 14.1.2): 1 with first and last, 0
 * to answer the whole (malformed, another unit, several ranges), -1 when it
 * cannot be satisfied. */
int range_parse(
    const char *, size_t, uint64_t size, uint64_t *first, uint64_t *last);

#endif
