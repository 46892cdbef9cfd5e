/*
 * SPDX-License-Identifier: ISC
 *
 * gzip around a stream (RFC 1952), by zlib.  No I/O of its own.
 */
#ifndef ABX_PATHD_GZ_H
#define ABX_PATHD_GZ_H

#include <stddef.h>
#include <stdint.h>

#define GZ_BLOCK (64 * 1024)

/* Bytes of the compressed stream: 0, or -1 to stop. */
typedef int (*gz_out_cb)(void *arg, const void *, size_t);
struct gz_out;

/* Nothing of the time or the host is in it: the same bytes give the same.
 * NULL without memory. */
struct gz_out *gz_out_new(gz_out_cb, void *arg);
void gz_out_free(struct gz_out *);
/* Compress that, and with end all that is left: 0, or -1 when the callback
 * said so or there is no memory. */
int gz_out_put(struct gz_out *, const void *, size_t, int end);

/* More of the compressed stream, borrowed until the next call: 1, 0 at its
 * end, -1. */
typedef int (*gz_more_cb)(void *arg, const uint8_t **, size_t *);
struct gz_in;

/* NULL without memory. */
struct gz_in *gz_in_new(gz_more_cb, void *arg);
void gz_in_free(struct gz_in *);
/* Some of what was compressed, borrowed until the next call: 1, 0 at the end,
 * -1 when it is broken, not whole, cannot be read, or (errno ENOMEM) without
 * memory.  Members in a row are one; what is no gzip at all comes as it is, and
 * what follows the last member is passed over. */
int gz_in_get(struct gz_in *, const uint8_t **, size_t *);

#endif
