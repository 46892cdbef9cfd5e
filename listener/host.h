/*
 * SPDX-License-Identifier: ISC
 *
 * Which Host and Origin are served.  Pure.
 */
#ifndef LISTENER_HOST_H
#define LISTENER_HOST_H

#include <stddef.h>

struct strlist;

/* 1 for a loopback name or address with or without a port, or one of the
 * allowed (design: rule 2 of the listener). */
int host_ok(const char *, size_t, const struct strlist *allowed);
/* 1 for one of the allowed origins, ASCII case aside. */
int origin_ok(const char *, size_t, const struct strlist *allowed);

#endif
