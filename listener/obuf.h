/*
 * SPDX-License-Identifier: ISC
 *
 * Bytes that wait for a socket to take them.  Pure.
 */
#ifndef LISTENER_OBUF_H
#define LISTENER_OBUF_H

#include <stddef.h>
#include <stdint.h>

struct obuf {
	uint8_t *p;	      /* owned */
	size_t off, len, cap; /* bytes off to len wait */
};

void obuf_free(struct obuf *);
/* Append n bytes: 0, or -1 when out of memory. */
int obuf_add(struct obuf *, const void *, size_t n);
/* n of the waiting bytes are gone. */
void obuf_took(struct obuf *, size_t n);
/* Bytes that wait. */
size_t obuf_left(const struct obuf *);

#endif
