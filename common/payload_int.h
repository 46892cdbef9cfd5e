/*
 * SPDX-License-Identifier: ISC
 *
 * What the files of payload*.c share and nobody else needs.
 */
#ifndef ABX_PAYLOAD_INT_H
#define ABX_PAYLOAD_INT_H

#include "common/payload.h"

/* Finish a decoder: clear on error. */
#define GET_END(r, x, clear)       \
	do {                       \
		if ((r)->err) {    \
			clear(x);  \
			return -1; \
		}                  \
		return 0;          \
	} while (0)
/* The same for a struct that owns nothing. */
#define GET_PLAIN(r, x)                             \
	do {                                        \
		if ((r)->err) {                     \
			memset(x, 0, sizeof(*(x))); \
			return -1;                  \
		}                                   \
		return 0;                           \
	} while (0)

/* Parts of more than one payload.  A getter that meets what cannot be marks
 * the reader, and its caller ends with one of the macros. */
/* An enum code. */
uint16_t code_get(struct rbuf *);
/* "r-" and 22 base64url characters, since it goes into logs and headers. */
int reqid_ok(const char *);
/* A path below a root: normal components, none empty, "." or "..", and none
 * longer than longest. */
int rel_ok(const char *, size_t longest);
/* Root references; those got are owned by the caller. */
void ref_put(struct wbuf *, const struct rootref *);
void ref_get(struct rbuf *, struct rootref *);
void refs_put(struct wbuf *, const struct rootref *, size_t n);
void refs_get(struct rbuf *, struct rootref **, size_t *n);
/* A SHA-256 that may be absent. */
void digest_put(struct wbuf *, int has, const uint8_t digest[32]);
void digest_get(struct rbuf *, uint8_t *has, uint8_t digest[32]);
/* A time: seconds, and nanoseconds below one. */
void mtime_get(struct rbuf *, int64_t *, uint32_t *);

#endif
