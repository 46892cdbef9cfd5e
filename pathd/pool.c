/*
 * SPDX-License-Identifier: ISC
 *
 * Which job gets which worker, and how long it may take.  Main never blocks on
 * a slow file system: a worker that makes no progress is killed and counted
 * until the kernel lets go of it, and its job is answered here.
 */
#include "pathd/pool.h"

#include <sys/mman.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/proc.h"
#include "pathd/journal.h"
#include "pathd/pool_int.h"

#define WATCH_S 5
#define IDLE_US (10ULL * 1000 * 1000)  /* before a worker too many goes */
#define HANG_US (60ULL * 1000 * 1000)  /* without progress */
#define QUEUE_US (60ULL * 1000 * 1000) /* without a worker */
/* Uploads are as slow as their clients; some workers are for other things. */
#define POOL_WORK (POOL_MAX - POOL_WATCH)
#define POOL_PUTS (POOL_WORK - 4)

struct pool pool;

/* ---- who is next ---- */

/* Is there one more, also for others when the caller has some already? */
static int
leaves(size_t used, size_t max, size_t own)
{
	return used + (own > 0 ? POOL_SHARE : 0) < max;
}

/* Uploads leave some workers to others, where there are several roots a single
 * one leaves half of them, and a caller some of any kind: his clients may be
 * as slow as they like. */
static int
task_may_run(const struct task *t)
{
	size_t i, puts = 0, same = 0, watches = 0, all = 0, own = 0;
	int watch = t->type == MP_WATCH;
	const struct task *u;

	for (i = 0; i < POOL_MAX; i++) {
		all += pool.w[i].state == W_DEAD;
		if ((u = pool.w[i].task) == NULL)
			continue;
		own += (u->type == MP_WATCH) == watch &&
		       ID_OWNER(u->id) == ID_OWNER(t->id);
		if (u->type == MP_WATCH) {
			watches++;
			continue;
		}
		all++;
		puts += task_begins(u) == MP_PUT_ANS;
		same += u->root == t->root;
	}
	if (watch)
		return leaves(watches, POOL_WATCH, own);
	if (!leaves(all, POOL_WORK, own) ||
	    (task_begins(t) == MP_PUT_ANS && !leaves(puts, POOL_PUTS, own)))
		return 0;
	return pool.pd->roots.n < 2 || leaves(same, POOL_WORK / 2, own);
}

static struct task *
task_next(void)
{
	struct task *t;

	TAILQ_FOREACH(t, &pool.queue, entry)
		if (task_may_run(t))
			return t;
	return NULL;
}

void
pool_watch_soon(void)
{
	static const struct timeval tv = {WATCH_S, 0};

	if (!evtimer_pending(pool.watch, NULL) &&
	    evtimer_add(pool.watch, &tv) == -1)
		fatalx("timer");
}

void
pool_dispatch(void)
{
	struct worker *w;
	struct task *t;

	while ((t = task_next()) != NULL && (w = worker_get(t)) != NULL)
		worker_assign(w, t);
	if (pool.queued > 0)
		pool_watch_soon();
	if (pool.drained != NULL && pool.queued == 0 &&
	    worker_count(W_BUSY) == 0)
		pool.drained();
}

/* ---- the watch ---- */

static void
watch_worker(struct worker *w, uint64_t now)
{
	uint64_t beat = pool.beats[w - pool.w];

	if (w->state == W_DEAD)
		worker_reap(w);
	if (w->state == W_IDLE && worker_count(W_IDLE) > POOL_KEEP &&
	    now - w->since > IDLE_US)
		worker_drop(w, C_OK);
	if (w->state != W_BUSY)
		return;
	if (beat != w->beat) {
		w->beat = beat;
		w->since = now;
		return;
	}
	if (now - w->since < HANG_US)
		return;
	log_warnx("worker %d hangs and is given up", (int)w->pid);
	(void)kill(w->pid, SIGKILL);
	worker_drop(w, C_FS_TIMEOUT);
}

static void
watch_queue(uint64_t now)
{
	struct task *t, *next;

	for (t = TAILQ_FIRST(&pool.queue); t != NULL; t = next) {
		next = TAILQ_NEXT(t, entry);
		if (now - t->since < QUEUE_US)
			continue;
		task_unqueue(t);
		task_fail(t, C_FS_TIMEOUT);
		task_free(t);
	}
}

/* What a lost worker left is not left for long. */
static void
watch_sweep(void)
{
	if (!pool.sweep || journal_busy(pool.pd))
		return;
	pool.sweep = 0;
	task_sweep(0);
}

static void
watch_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t now = proc_now_us();
	size_t i;

	for (i = 0; i < POOL_MAX; i++)
		watch_worker(&pool.w[i], now);
	watch_queue(now);
	watch_sweep();
	pool_dispatch();
	if (pool.sweep || worker_count(W_BUSY) + worker_count(W_DEAD) > 0 ||
	    worker_count(W_IDLE) > POOL_KEEP)
		pool_watch_soon();
}

/* ---- for main ---- */

void
pool_start(const struct pathd *pd, struct event_base *base, struct chan *mon)
{
	void *p;
	size_t i;

	pool.pd = pd;
	pool.base = base;
	pool.mon = mon;
	TAILQ_INIT(&pool.queue);
	if ((pool.watch = evtimer_new(base, watch_cb, NULL)) == NULL)
		fatalx("timer");
	p = mmap(NULL, POOL_MAX * sizeof(*pool.beats), PROT_READ | PROT_WRITE,
	    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		fatal("mmap");
	pool.beats = p;
	for (i = 0; i < POOL_KEEP; i++)
		if (worker_start(&pool.w[i]) == -1)
			fatalx("no worker can be started");
	/* one that still ends may have held off the sweep of the start */
	if ((pool.sweep = journal_size(pd) > 0))
		pool_watch_soon();
}

void
pool_refuse(uint16_t type, uint64_t id, size_t items)
{
	struct task t = {.type = type, .id = id, .items = items};

	task_fail(&t, C_SRV_UNAVAILABLE);
}

static int
task_add(uint16_t type, uint64_t id, uint32_t root, size_t items,
    const void *payload, size_t len)
{
	struct task *t;

	if (task_queued(id) != NULL || worker_of(id) != NULL)
		return -1;
	if ((t = calloc(1, sizeof(*t))) == NULL) {
		pool_refuse(type, id, items);
		return 0;
	}
	t->id = id;
	t->type = type;
	t->root = root;
	t->items = items;
	if (pool.queued >= POOL_QUEUE || (t->payload = malloc(len)) == NULL) {
		task_fail(t, C_SRV_UNAVAILABLE);
		task_free(t);
		return 0;
	}
	/* those before it end when their clients like */
	if (type == MP_WATCH && !task_may_run(t)) {
		task_fail(t, C_LIM_CONCURRENCY);
		task_free(t);
		return 0;
	}
	memcpy(t->payload, payload, len);
	t->len = len;
	task_enqueue(t);
	pool_dispatch();
	return 0;
}

int
pool_add(
    uint16_t type, uint64_t id, uint32_t root, const void *payload, size_t len)
{
	return task_add(type, id, root, 0, payload, len);
}

int
pool_resolve(
    uint64_t id, uint32_t root, size_t items, const void *payload, size_t len)
{
	return task_add(MP_RESOLVE, id, root, items, payload, len);
}

int
pool_put_end(uint64_t id, const void *payload, size_t len)
{
	struct worker *w;

	if (task_queued(id) != NULL)
		return -1;
	if ((w = worker_of(id)) == NULL)
		return 0;
	if (task_begins(w->task) != MP_PUT_ANS || !w->task->begun)
		return -1;
	if (chan_send(w->chan, MP_PUT_END, id, -1, payload, len) == -1) {
		(void)kill(w->pid, SIGKILL);
		worker_drop(w, C_SRV_UNAVAILABLE);
		pool_dispatch();
	}
	return 0;
}

void
pool_cancel(uint64_t id)
{
	struct worker *w;
	struct task *t;

	if ((t = task_queued(id)) != NULL) {
		task_unqueue(t);
		task_free(t);
		return;
	}
	if ((w = worker_of(id)) == NULL)
		return;
	w->task->closed = 1;
	if (chan_send(w->chan, MP_CANCEL, id, -1, NULL, 0) == -1) {
		(void)kill(w->pid, SIGKILL);
		worker_drop(w, C_OK);
		pool_dispatch();
	}
}

void
pool_drain(void (*done)(void))
{
	pool.drained = done;
	pool_dispatch();
}
