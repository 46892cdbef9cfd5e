/*
 * SPDX-License-Identifier: ISC
 *
 * Whether a message of the monitor is one that its receiver takes: the checks
 * of listener, pathd and execd, made with their own decoders.
 */
#ifndef ABX_WELL_H
#define ABX_WELL_H

#include "common/msg.h"

/* NULL, or what the receiver would find wrong. */
/* A new execd holds no binds. */
void well_reset(void);
const char *well_formed(enum proc_kind to, struct imsg *);

#endif
