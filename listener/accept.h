/*
 * SPDX-License-Identifier: ISC
 *
 * Listening sockets.
 */
#ifndef LISTENER_ACCEPT_H
#define LISTENER_ACCEPT_H

#include <stdint.h>

struct event_base;

/* A listening socket of the parent, before the loop.  Taken on 0. */
int accept_add(uint32_t index, int fd);
/* Begin to accept; again does nothing. */
void accept_start(struct event_base *);
/* Close them all. */
void accept_stop(void);

#endif
