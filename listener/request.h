/*
 * SPDX-License-Identifier: ISC
 *
 * From a whole head to a question for the monitor: the listener's rules in
 * their order, and JSON bodies.
 */
#ifndef LISTENER_REQUEST_H
#define LISTENER_REQUEST_H

#include <stddef.h>

#include "common/codes.h"

struct conn;

/* The head is whole: check it, then read the body, ask or refuse. */
void request_begin(struct conn *);
/* The head is not HTTP: refuse and close. */
void request_malformed(struct conn *, enum code);
/* Step of CONN_BODY. */
int request_step_body(struct conn *);
/* Free and zero what belongs to the request. */
void request_clear(struct conn *);

/* Whose request it is, once the head is whole: the address that a trusted
 * proxy names, else that of the peer, or "unix". */
void request_remote(const struct conn *, char *out, size_t size);

#endif
