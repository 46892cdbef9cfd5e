/*
 * SPDX-License-Identifier: ISC
 *
 * The bounded put/get cursors through which every payload between processes
 * goes.  A writer or reader that fails once stays failed, so a caller may
 * chain calls and check once at the end.  Integers are little-endian and
 * fixed; a string is a u32 length and that many bytes.  No struct is ever
 * cast onto a payload.
 */
#ifndef ABX_WIRE_H
#define ABX_WIRE_H

#include <stddef.h>
#include <stdint.h>

struct wbuf {
	uint8_t *p; /* heap, owned */
	size_t len; /* bytes put */
	size_t cap; /* bytes allocated */
	size_t max; /* len never exceeds this */
	int err;    /* sticky: out of memory or over max */
};

struct rbuf {
	const uint8_t *p; /* borrowed from the message */
	size_t len;	  /* bytes left */
	int err;	  /* sticky: short or malformed */
};

/* Start an empty writer of at most max bytes.  Cannot fail. */
void wbuf_init(struct wbuf *, size_t max);
/* Free the writer's memory (contents are wiped) and make it empty. */
void wbuf_free(struct wbuf *);
/* What was put as a string of its own (free); NULL when the writer failed.  The
 * writer is empty then, as after wbuf_free. */
char *wbuf_text(struct wbuf *);
/* Forget what was put, keep the memory and the bound, clear the error. */
void wbuf_reset(struct wbuf *);

void wput_u8(struct wbuf *, uint8_t);
void wput_u16(struct wbuf *, uint16_t);
void wput_u32(struct wbuf *, uint32_t);
void wput_u64(struct wbuf *, uint64_t);
void wput_i64(struct wbuf *, int64_t);
/* n raw bytes, no length in front. */
void wput_raw(struct wbuf *, const void *, size_t n);
/* u32 length and n bytes. */
void wput_bytes(struct wbuf *, const void *, size_t n);
/* A C string as bytes; NULL is put as the empty string. */
void wput_str(struct wbuf *, const char *);

/* Read from n bytes at p, which must outlive the reader. */
void rbuf_init(struct rbuf *, const void *p, size_t n);

uint8_t rget_u8(struct rbuf *);
/* A u8 that must be 0 or 1. */
int rget_bool(struct rbuf *);
uint16_t rget_u16(struct rbuf *);
uint32_t rget_u32(struct rbuf *);
uint64_t rget_u64(struct rbuf *);
int64_t rget_i64(struct rbuf *);
/* Exactly n raw bytes, borrowed; NULL on failure. */
const uint8_t *rget_raw(struct rbuf *, size_t n);
/* u32 length and bytes, borrowed; fails over max.  NULL on failure, never
 * NULL for an empty one. */
const uint8_t *rget_bytes(struct rbuf *, size_t *n, size_t max);
/* A string without NUL of at most max bytes, as a new NUL-terminated copy
 * owned by the caller (free).  NULL on failure or when out of memory. */
char *rget_str(struct rbuf *, size_t max);
/* The same into a caller's buffer of size bytes, NUL included.  Returns 0,
 * or -1 on failure (buffer is then the empty string). */
int rget_strto(struct rbuf *, char *, size_t size);
/* Nothing left and no error: 0, else -1.  Every decoder ends with it. */
int rget_end(const struct rbuf *);

#endif
