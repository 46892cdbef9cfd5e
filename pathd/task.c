/*
 * SPDX-License-Identifier: ISC
 *
 * The jobs of the pool: their queue, and what the monitor is owed for one that
 * nobody can work on.  Knows of a job only what it must to answer for it; who
 * works on it is pool.c's and pool_worker.c's.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/log.h"
#include "common/proc.h"
#include "pathd/pool_int.h"

#define SWEEP_TRIES 3

void
task_free(struct task *t)
{
	free(t->payload);
	free(t);
}

void
task_tell(uint16_t type, uint64_t id, int fd, const void *p, size_t len)
{
	if (chan_send(pool.mon, type, id, fd, p, len) == -1 && errno != EPIPE)
		fatal("cannot answer the monitor");
}

uint16_t
task_begins(const struct task *t)
{
	switch (t->type) {
	case MP_PUT:
	case MP_IMPORT:
		return MP_PUT_ANS;
	case MP_LIST:
	case MP_SEARCH:
	case MP_EXPORT:
	case MP_WATCH:
		return MP_LIST_ANS;
	case MP_EDIT:
		return MP_EDIT_ANS;
	case MP_ARCHIVE:
		return MP_ARCHIVE_ANS;
	case MP_DENIED:
		return MP_DENIED_ANS;
	case MP_SPACE:
		return MP_SPACE_ANS;
	case MP_RESOLVE:
		return MP_FACTS;
	default:
		return MP_DONE;
	}
}

/* Nothing is known of the paths; the facts say why. */
static void
facts_fail(const struct task *t, enum code code)
{
	struct facts f = {.status = FS_ERRNO,
	    .err = code == C_FS_TIMEOUT ? ETIMEDOUT : ENOMEM};
	struct wbuf w;
	size_t i;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	wput_u32(&w, (uint32_t)t->items);
	for (i = 0; i < t->items; i++)
		facts_put(&w, &f);
	if (w.err)
		fatalx("out of memory");
	task_tell(MP_FACTS, t->id, -1, w.p, w.len);
	wbuf_free(&w);
}

void
task_fail(struct task *t, enum code code)
{
	struct put_fin fin = {.code = (uint16_t)code};
	struct done done = {.code = (uint16_t)code};
	struct wbuf w;

	if (t->closed)
		return;
	t->closed = 1;
	if (t->begun && task_begins(t) == MP_LIST_ANS)
		return; /* its pipe ends without an end frame */
	if (t->type == MP_RESOLVE) {
		facts_fail(t, code);
		return;
	}
	wbuf_init(&w, 256);
	if (t->begun)
		put_fin_put(&w, &fin);
	else
		done_put(&w, &done);
	if (w.err)
		fatalx("out of memory");
	task_tell(t->begun ? MP_PUT_FIN : MP_DONE, t->id, -1, w.p, w.len);
	wbuf_free(&w);
}

struct task *
task_queued(uint64_t id)
{
	struct task *t;

	TAILQ_FOREACH(t, &pool.queue, entry)
		if (t->id == id)
			return t;
	return NULL;
}

void
task_enqueue(struct task *t)
{
	t->since = proc_now_us();
	TAILQ_INSERT_TAIL(&pool.queue, t, entry);
	pool.queued++;
}

void
task_unqueue(struct task *t)
{
	TAILQ_REMOVE(&pool.queue, t, entry);
	pool.queued--;
}

void
task_sweep(int tries)
{
	struct task *t = task_queued(0);

	if (t != NULL || pool.pd->journal == -1 || tries > SWEEP_TRIES)
		return;
	if ((t = calloc(1, sizeof(*t))) == NULL) {
		log_warn("sweep"); /* the next loss or start does it */
		return;
	}
	t->type = PW_SWEEP;
	t->closed = 1;
	t->tries = tries;
	task_enqueue(t);
	pool_watch_soon();
}
