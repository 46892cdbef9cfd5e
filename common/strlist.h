/*
 * SPDX-License-Identifier: ISC
 *
 * A list of strings, on the wire and in configurations.
 */
#ifndef ABX_STRLIST_H
#define ABX_STRLIST_H

#include <stddef.h>

#include "common/wire.h"

struct strlist {
	char **v; /* owned, NULL when n is 0 */
	size_t n;
};
/* Free all strings and make it empty. */
void strlist_clear(struct strlist *);
/* Append a copy of len bytes (no NUL among them): 0, or -1 out of memory. */
int strlist_add(struct strlist *, const char *, size_t len);
/* Append copies of all of another: 0, or -1 out of memory, with some of them
 * appended then. */
int strlist_copy(struct strlist *, const struct strlist *from);
/* 1 when that string is in it. */
int strlist_has(const struct strlist *, const char *);
/* u32 count and that many strings; _get as in common/payload.h, and -1 for
 * more than maxn or one of more than maxlen bytes. */
void strlist_put(struct wbuf *, const struct strlist *);
int strlist_get(struct rbuf *, struct strlist *, size_t maxn, size_t maxlen);

#endif
