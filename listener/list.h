/*
 * SPDX-License-Identifier: ISC
 *
 * Listings: entry frames to JSON.
 */
#ifndef LISTENER_LIST_H
#define LISTENER_LIST_H

struct ans;
struct conn;

/* The monitor's ANS_LIST.  Takes the descriptor. */
int list_begin(struct conn *, struct ans *, int *fd);
/* Step of CONN_LIST. */
int list_step(struct conn *);
void list_free(struct conn *);

#endif
