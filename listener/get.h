/*
 * SPDX-License-Identifier: ISC
 *
 * Downloads: a regular file's descriptor to bytes or JSON.
 */
#ifndef LISTENER_GET_H
#define LISTENER_GET_H

struct ans;
struct conn;

/* The monitor's ANS_FILE: answer it.  Takes the descriptor.  0, or -1 for a
 * message that makes no sense. */
int get_begin(struct conn *, struct ans *, int *fd);
/* Send more of the file: 0 when all is out, WANT_WRITE or STEP_GONE. */
int get_more(struct conn *);

#endif
