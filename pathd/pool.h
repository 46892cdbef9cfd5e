/*
 * SPDX-License-Identifier: ISC
 *
 * The pool of worker processes, on main's side: long jobs go in, answers come
 * out on the monitor's channel.
 */
#ifndef ABX_PATHD_POOL_H
#define ABX_PATHD_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "pathd/pathd.h"

struct chan;
struct event_base;

#define POOL_MAX 40    /* workers, those that hang included */
#define POOL_WATCH 16  /* that only wait for something to happen */
#define POOL_SHARE 4   /* that one caller leaves to the others */
#define POOL_KEEP 2    /* idle ones that stay */
#define POOL_QUEUE 128 /* jobs that wait */

/* Start the first workers.  fatal on failure. */
void pool_start(const struct pathd *, struct event_base *, struct chan *mon);
/* Take a checked job (PUT, LIST, MKDIR, UNLINK, RENAME, DENIED).  From here on
 * the pool answers for it, whatever happens.  0, or -1 when the id is in use.
 */
int pool_add(
    uint16_t type, uint64_t id, uint32_t root, const void *payload, size_t len);
/* Take a checked RESOLVE of so many items likewise. */
int pool_resolve(
    uint64_t id, uint32_t root, size_t items, const void *payload, size_t len);
/* Answer a job that there is no memory to take; items of a RESOLVE, else 0. */
void pool_refuse(uint16_t type, uint64_t id, size_t items);
/* PUT_END of an upload; of one that ended meanwhile it means nothing.  0, or
 * -1 when it comes before PUT_ANS. */
int pool_put_end(uint64_t id, const void *payload, size_t len);
/* Give the job up without an answer. */
void pool_cancel(uint64_t id);
/* Call done when no job is left, perhaps at once. */
void pool_drain(void (*done)(void));

#endif
