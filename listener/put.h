/*
 * SPDX-License-Identifier: ISC
 *
 * Uploads: a request body into a pipe.
 */
#ifndef LISTENER_PUT_H
#define LISTENER_PUT_H

#include "common/codes.h"

struct ans;
struct conn;

/* The monitor's ANS_PUT: the upload is admitted.  Takes the descriptor. */
int put_begin(struct conn *, struct ans *, int *fd);
/* Step of CONN_PUT. */
int put_step(struct conn *);
/* LM_PUT_FIN came, early or not: whatever is left of the body is not read.
 * C_OK to answer with it, else the listener's own reason. */
enum code put_finish(struct conn *);
void put_free(struct conn *);

#endif
