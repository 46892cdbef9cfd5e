/*
 * SPDX-License-Identifier: ISC
 *
 * Who really called, when a trusted proxy says so.  Pure.
 */
#ifndef ABX_LISTENER_HOP_H
#define ABX_LISTENER_HOP_H

#include <stddef.h>

#include "common/payload.h"

#define HOP_SIZE 46 /* a numeric address and the NUL */

/* 1 when the numeric address is one of the list (ADDRESS or ADDRESS/BITS). */
int hop_trusted(const char *addr, const struct strlist *);
/*
 * The right-most address of an X-Forwarded-For value (len bytes) that is not
 * itself a trusted proxy, or the left-most when all are.  1 and *out is its
 * canonical spelling; 0 when the peer is not trusted, or the value has no
 * address where one is needed: then nobody but the peer can be named.
 */
int hop_client(const char *peer, const char *value, size_t len,
    const struct strlist *trusted, char out[HOP_SIZE]);

#endif
