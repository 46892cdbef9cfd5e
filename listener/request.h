/*
 * SPDX-License-Identifier: ISC
 *
 * From a whole head to a question for the monitor: the listener's rules in
 * their order, and JSON bodies.
 */
#ifndef LISTENER_REQUEST_H
#define LISTENER_REQUEST_H

#include "common/codes.h"

#include "listener/hop.h"

struct conn;

/* The head is whole: check it, then read the body, ask or refuse. */
void request_begin(struct conn *);
/* The head is not HTTP: refuse and close. */
void request_malformed(struct conn *, enum code);
/* Step of CONN_BODY. */
int request_step_body(struct conn *);
/* Free and zero what belongs to the request. */
void request_clear(struct conn *);

/* The address that a trusted proxy names as the caller's: 1, else 0. */
int request_client(const struct conn *, char out[HOP_SIZE]);

#endif
