/*
 * SPDX-License-Identifier: ISC
 *
 * Connections over a unix socket: the monitor is handed the socket once, asks
 * the kernel who is at the other end, and answers with a handle that goes
 * with every question of that connection.
 */
#ifndef ABX_LISTENER_PEER_H
#define ABX_LISTENER_PEER_H

struct conn;
struct imsg;

/* 1: the connection waits for its handle and must not be run yet; 0: it needs
 * none. */
int peer_ask(struct conn *);
/* PEER_ANS arrived.  0, or -1 when it is not one of ours. */
int peer_answer(const struct imsg *);
/* The connection ends. */
void peer_forget(struct conn *);

#endif
