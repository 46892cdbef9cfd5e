/*
 * SPDX-License-Identifier: ISC
 *
 * The connections there are: table of slots, pools, the clock that makes the
 * slow ones go (design: rule 8 of the listener).
 */
#ifndef LISTENER_POOL_H
#define LISTENER_POOL_H

#include <stddef.h>
#include <stdint.h>

struct conn;
enum conn_pool;
struct event_base;

void pool_init(struct event_base *);
/* Put a new connection into a slot and the pre-auth pool: 0 or -1. */
int pool_add(struct conn *);
void pool_remove(struct conn *);
/* To another pool, or with the same to the end of its own, where the one
 * lies that went idle last. */
void pool_move(struct conn *, enum conn_pool);
/* The connection of that slot, or NULL. */
struct conn *pool_find(uint32_t slot);
/* Make room for one more: close the one whose head has been incomplete
 * longest, else the one that has not read its answers for longest.  0, or -1
 * when the pool is full of those that wait for an answer. */
int pool_make_room(void);
/* To the authenticated pool, closing one that is between requests when it is
 * full, else the one whose JSON body was waited for longest, over a second.  0,
 * or -1 when all of the max are at work. */
int pool_promote(struct conn *, size_t max);
/* Close what is between requests; from now on nothing is kept alive and
 * done is called when the last connection is gone. */
void pool_drain(void (*done)(void));
int pool_draining(void);
void pool_kill_all(void);

#endif
