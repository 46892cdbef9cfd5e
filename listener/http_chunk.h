/*
 * SPDX-License-Identifier: ISC
 *
 * Decoder of the chunked transfer coding (RFC 9112, 7.1), strict and
 * incremental.  Pure; data is returned as slices of the caller's bytes.
 */
#ifndef LISTENER_HTTP_CHUNK_H
#define LISTENER_HTTP_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#define CHUNK_EXT_MAX 256      /* bytes of extensions of one chunk */
#define CHUNK_TRAILER_MAX 8192 /* bytes of all trailer lines */

struct chunk_dec {
	uint64_t left;	/* data bytes of this chunk to come */
	uint32_t count; /* bytes of this extension, or of the trailers */
	uint8_t state;
	uint8_t digits;
};

void chunk_init(struct chunk_dec *);
/* Take from *p; both *p and *n advance.  1: *len data bytes at *data; 0: all
 * taken, more is needed; 2: the body has ended; -1: malformed. */
int chunk_feed(struct chunk_dec *, const uint8_t **p, size_t *n,
    const uint8_t **data, size_t *len);

#endif
