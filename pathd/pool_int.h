/*
 * SPDX-License-Identifier: ISC
 *
 * What the files of the pool share: pool.c, pool_worker.c and task.c.
 */
#ifndef ABX_PATHD_POOL_INT_H
#define ABX_PATHD_POOL_INT_H

#include <sys/queue.h>
#include <sys/types.h>

#include "common/chan.h"
#include "common/codes.h"
#include "common/msg.h"
#include "pathd/pool.h"

struct task {
	TAILQ_ENTRY(task) entry; /* of the queue while it waits */
	uint64_t id;
	uint16_t type;
	uint32_t root;
	uint8_t *payload; /* owned, NULL once it was handed over */
	size_t len;
	int begun;	/* PUT_ANS or LIST_ANS went out */
	int closed;	/* answered for good, or cancelled */
	int tries;	/* of a sweep */
	size_t items;	/* of a RESOLVE */
	uint64_t since; /* queued */
};
TAILQ_HEAD(taskq, task);

enum worker_state {
	W_NONE,
	W_IDLE,
	W_BUSY,
	W_DEAD /* let go, not reaped yet */
};
struct worker {
	enum worker_state state; /* written only by worker_enter */
	pid_t pid;
	int used; /* it had a job, and may remember what was in it */
	struct chan *chan;
	struct task *task;
	uint64_t beat, since; /* last seen, and when */
};

struct pool {
	const struct pathd *pd;
	struct event_base *base;
	struct chan *mon;
	struct event *watch;
	volatile uint64_t *beats; /* shared with the workers */
	struct worker w[POOL_MAX];
	struct taskq queue;
	size_t queued;
	int sweep; /* once nobody holds it off */
	void (*drained)(void);
};
extern struct pool pool;

/* ---- pool.c ---- */

/* Give jobs that wait to workers that can be had; after anything that may have
 * made that possible. */
void pool_dispatch(void);
/* Look after workers and queue within some seconds. */
void pool_watch_soon(void);

/* ---- task.c ---- */

void task_free(struct task *);
/* Say that to the monitor, which must get what it is owed: fatal when it
 * cannot be queued.  fd is taken. */
void task_tell(uint16_t type, uint64_t id, int fd, const void *p, size_t len);
/* What a task is answered with when it begins, MP_DONE for none. */
uint16_t task_begins(const struct task *);
/* Answer for a task that nobody works on any more, unless it was answered. */
void task_fail(struct task *, enum code);
/* The one with that number that waits, or NULL. */
struct task *task_queued(uint64_t id);
/* Into the queue, as of now, and out of it. */
void task_enqueue(struct task *);
void task_unqueue(struct task *);
/* Queue a task of our own, that nobody waits for: a tree may take long to go.
 * tries: how many workers were lost over it. */
void task_sweep(int tries);

/* ---- pool_worker.c ---- */

void worker_enter(struct worker *, enum worker_state);
size_t worker_count(enum worker_state);
/* Who works on it, or NULL.  One that was answered for good is over, even if
 * its worker did not say yet that it is free: the number may come again. */
struct worker *worker_of(uint64_t id);
/* Start one in that place: 0, or -1 when there is none to be had now. */
int worker_start(struct worker *);
/* One for that task, which is idle, or a new one; NULL when there is none to be
 * had. */
struct worker *worker_get(const struct task *);
/* Give it a task of the queue. */
void worker_assign(struct worker *, struct task *);
/* Let go of a worker: it ends when its channel does.  Its task is answered
 * with that code. */
void worker_drop(struct worker *, enum code);
/* Forget one that was let go, if it ended. */
void worker_reap(struct worker *);

#endif
