/*
 * SPDX-License-Identifier: ISC
 *
 * Commands: run frames to one JSON result or a stream of events.
 */
#ifndef LISTENER_RUN_H
#define LISTENER_RUN_H

#include <stdint.h>

struct ans;
struct conn;

/* The monitor's ANS_RUN.  Takes the descriptor. */
int run_begin(struct conn *, struct ans *, int *fd);
/* LM_RUN_IN: the pipe for stdin.  Takes the descriptor.  0, or -1 when none
 * was announced. */
int run_stdin(struct conn *, int *fd);
/* Step of CONN_RUN. */
int run_step(struct conn *);
/* Keep a silent stream alive. */
void run_tick(struct conn *, uint64_t now);
void run_free(struct conn *);

#endif
