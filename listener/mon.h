/*
 * SPDX-License-Identifier: ISC
 *
 * Messages of the monitor.
 */
#ifndef LISTENER_MON_H
#define LISTENER_MON_H

#include "common/chan.h"

/* Both as chan.h wants them. */
int mon_msg(struct chan *, struct imsg *, void *);
void mon_gone(struct chan *, int error, void *);

#endif
