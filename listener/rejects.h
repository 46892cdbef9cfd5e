/*
 * SPDX-License-Identifier: ISC
 *
 * Refusals that the monitor never saw, kept for its audit.
 */
#ifndef LISTENER_REJECTS_H
#define LISTENER_REJECTS_H

#include <stdint.h>

#include "common/codes.h"

struct event_base;

void rejects_init(struct event_base *);
/* One more of that code, of the request with that id and who sent it (as in
 * struct ask); told to the monitor at most once a second. */
void rejects_add(enum code, const char *reqid, const char *remote);

#endif
