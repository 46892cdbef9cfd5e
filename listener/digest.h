/*
 * SPDX-License-Identifier: ISC
 *
 * The Content-Digest field (RFC 9530).  Pure.
 */
#ifndef LISTENER_DIGEST_H
#define LISTENER_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

/* The sha-256 among the digests of a field value: 1 with it in out, 0 when
 * there is none (others are not for us), -1 when the value is malformed. */
int digest_parse(const char *, size_t len, uint8_t out[SHA256_LEN]);

#endif
