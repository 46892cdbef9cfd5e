/*
 * SPDX-License-Identifier: ISC
 *
 * Watches: event frames to server-sent events.
 */
#ifndef LISTENER_WATCH_H
#define LISTENER_WATCH_H

#include <stdint.h>

struct ans;
struct conn;

/* The monitor's ANS_WATCH.  Takes the descriptor. */
int watch_begin(struct conn *, struct ans *, int *fd);
/* Step of CONN_WATCH. */
int watch_step(struct conn *);
/* Keep a silent stream alive. */
void watch_tick(struct conn *, uint64_t now);
void watch_free(struct conn *);

#endif
