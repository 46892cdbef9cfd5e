/*
 * SPDX-License-Identifier: ISC
 *
 * What all files of the listener may know: its configuration, its loop, the
 * clock.  Owned by main.c.
 */
#ifndef LISTENER_LISTENER_H
#define LISTENER_LISTENER_H

#include <stdint.h>

#include "common/chan.h"
#include "common/jail.h"
#include "common/payload.h"

extern struct lconf lconf; /* zeroed until LM_CONF came */

/* The monitor's channel. */
struct chan *listener_mon(void);
/* LM_CONF was taken: start to accept. */
void listener_configured(void);
/* As many connections as were wanted, or as there are descriptors for. */
uint32_t listener_bound(uint32_t connections);
/* The Date of answers, renewed once a second. */
const char *listener_date(void);

extern const struct jail_call filter_calls[];

#endif
