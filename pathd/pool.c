/*
 * SPDX-License-Identifier: ISC
 *
 * Workers and the jobs that wait for them.  Main never blocks on a slow file
 * system: a worker that makes no progress is killed and counted until the
 * kernel lets go of it, and its job is answered here.  Knows of a job only
 * what it must to answer for it.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/proc.h"
#include "pathd/journal.h"
#include "pathd/pool.h"
#include "pathd/worker.h"

#define WATCH_S 5
#define SWEEP_TRIES 3
#define IDLE_US (10ULL * 1000 * 1000)  /* before a worker too many goes */
#define HANG_US (60ULL * 1000 * 1000)  /* without progress */
#define QUEUE_US (60ULL * 1000 * 1000) /* without a worker */
/* Uploads are as slow as their clients; some workers are for other things. */
#define POOL_WORK (POOL_MAX - POOL_WATCH)
#define POOL_PUTS (POOL_WORK - 4)

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
	enum worker_state state;
	pid_t pid;
	struct chan *chan;
	struct task *task;
	uint64_t beat, since; /* last seen, and when */
};

static struct {
	const struct pathd *pd;
	struct event_base *base;
	struct chan *mon;
	struct event *watch;
	volatile uint64_t *beats; /* shared with the workers */
	struct worker w[POOL_MAX];
	struct taskq queue;
	size_t queued;
	void (*drained)(void);
} pool;

static void pool_dispatch(void);
static void watch_soon(void);

static void
worker_enter(struct worker *w, enum worker_state state)
{
	w->state = state;
}

static size_t
count_state(enum worker_state state)
{
	size_t i, n = 0;

	for (i = 0; i < POOL_MAX; i++)
		n += pool.w[i].state == state;
	return n;
}

/* ---- tasks ---- */

static void
task_free(struct task *t)
{
	free(t->payload);
	free(t);
}

/* The monitor must get what it is owed. */
static void
tell(uint16_t type, uint64_t id, int fd, const void *p, size_t len)
{
	if (chan_send(pool.mon, type, id, fd, p, len) == -1 && errno != EPIPE)
		fatal("cannot answer the monitor");
}

/* What a task is answered with when it begins, MP_DONE for none. */
static uint16_t
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
	tell(MP_FACTS, t->id, -1, w.p, w.len);
	wbuf_free(&w);
}

/* Answer for a task that nobody works on any more. */
static void
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
	tell(t->begun ? MP_PUT_FIN : MP_DONE, t->id, -1, w.p, w.len);
	wbuf_free(&w);
}

static struct task *
task_queued(uint64_t id)
{
	struct task *t;

	TAILQ_FOREACH(t, &pool.queue, entry)
		if (t->id == id)
			return t;
	return NULL;
}

/* Who works on it.  One that was answered for good is over, even if its worker
 * did not say yet that it is free: the number may come again. */
static struct worker *
worker_of(uint64_t id)
{
	size_t i;

	for (i = 0; i < POOL_MAX; i++)
		if (pool.w[i].task != NULL && pool.w[i].task->id == id &&
		    !pool.w[i].task->closed)
			return &pool.w[i];
	return NULL;
}

static void
task_unqueue(struct task *t)
{
	TAILQ_REMOVE(&pool.queue, t, entry);
	pool.queued--;
}

/* A task of our own, that nobody waits for: a tree may take long to go.  tries:
 * how many workers were lost over it. */
static void
pool_sweep(int tries)
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
	t->since = proc_now_us();
	TAILQ_INSERT_TAIL(&pool.queue, t, entry);
	pool.queued++;
	watch_soon();
}

/* ---- workers ---- */

/* Forget a worker that ended; kill one that does not. */
static void
worker_reap(struct worker *w)
{
	pid_t rc;

	do
		rc = waitpid(w->pid, NULL, WNOHANG);
	while (rc == -1 && errno == EINTR);
	if (rc != 0)
		worker_enter(w, W_NONE);
}

/* Let go of a worker: it ends when its channel does. */
static void
worker_drop(struct worker *w, enum code code)
{
	struct task *t = w->task;

	chan_free(w->chan);
	w->chan = NULL;
	w->task = NULL;
	worker_enter(w, W_DEAD);
	watch_soon();
	if (t == NULL)
		return;
	task_fail(t, code);
	pool_sweep(t->type == PW_SWEEP ? t->tries + 1 : 0);
	task_free(t);
}

static void
worker_free(struct worker *w)
{
	struct task *t = w->task;

	w->task = NULL;
	worker_enter(w, W_IDLE);
	if (t->type != PW_SWEEP && journal_large(pool.pd))
		pool_sweep(0);
	task_free(t);
	w->since = proc_now_us();
	pool_dispatch();
}

static void
worker_line(const struct imsg *m)
{
	int len = (int)m->len - 1;

	switch (m->payload[0]) {
	case LOGL_ERR:
	case LOGL_WARN:
		log_warnx("worker: %.*s", len, (const char *)m->payload + 1);
		break;
	default:
		log_info("worker: %.*s", len, (const char *)m->payload + 1);
		break;
	}
}

/* Pass an answer on.  0, or -1 when it does not fit the task. */
static int
worker_answer(struct task *t, struct imsg *m)
{
	int last = m->type == MP_PUT_FIN || m->type == MP_DONE ||
		   m->type == MP_EDIT_ANS || m->type == MP_ARCHIVE_ANS ||
		   m->type == MP_DENIED_ANS || m->type == MP_SPACE_ANS ||
		   m->type == MP_FACTS;
	int fd = m->fd;

	if (t->begun ? m->type != MP_PUT_FIN || task_begins(t) != MP_PUT_ANS
		     : m->type != MP_DONE && m->type != task_begins(t))
		return -1;
	if (t->closed)
		return 0; /* cancelled meanwhile */
	m->fd = -1;
	tell(m->type, m->id, fd, m->payload, m->len);
	t->begun = 1;
	t->closed = last;
	return 0;
}

static int
worker_msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	struct worker *w = arg;
	const char *why;

	if (msg_check(m, &why) == -1)
		return -1;
	if (m->type == PC_LOG) {
		worker_line(m);
		return 0;
	}
	if (w->task == NULL || m->id != w->task->id)
		return -1;
	if (m->type != PW_FREE)
		return worker_answer(w->task, m);
	task_fail(w->task, C_SRV_INTERNAL); /* unless it was answered */
	worker_free(w);
	return 0;
}

static void
worker_gone_cb(struct chan *c, int error, void *arg)
{
	struct worker *w = arg;

	if (error == EBADMSG)
		(void)kill(w->pid, SIGKILL);
	log_warnx("worker %d is gone", (int)w->pid);
	worker_drop(w, C_SRV_UNAVAILABLE);
	pool_dispatch();
}

static void
worker_child(int sock, volatile uint64_t *beat, pid_t main_pid)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    getppid() != main_pid)
		_exit(1);
	worker_main(pool.pd, sock, beat);
}

/* 0, or -1 when there is none to be had now. */
static int
worker_start(struct worker *w)
{
	pid_t self = getpid();
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, sv) == -1) {
		log_warn("socketpair");
		return -1;
	}
	if ((w->pid = fork()) == 0)
		worker_child(sv[1], &pool.beats[w - pool.w], self);
	close(sv[1]);
	if (w->pid == -1) {
		log_warn("fork");
		close(sv[0]);
		return -1;
	}
	w->chan = chan_new(pool.base, sv[0], worker_msg_cb, worker_gone_cb, w);
	if (w->chan == NULL) {
		close(sv[0]);
		worker_enter(w, W_DEAD);
		return -1;
	}
	worker_enter(w, W_IDLE);
	return 0;
}

/* One that is idle, or a new one; NULL when there is none to be had. */
static struct worker *
worker_get(void)
{
	struct worker *none = NULL;
	size_t i;

	for (i = 0; i < POOL_MAX; i++) {
		if (pool.w[i].state == W_IDLE)
			return &pool.w[i];
		if (pool.w[i].state == W_DEAD)
			worker_reap(&pool.w[i]);
		if (pool.w[i].state == W_NONE && none == NULL)
			none = &pool.w[i];
	}
	return none != NULL && worker_start(none) == 0 ? none : NULL;
}

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

static void
watch_soon(void)
{
	static const struct timeval tv = {WATCH_S, 0};

	if (!evtimer_pending(pool.watch, NULL) &&
	    evtimer_add(pool.watch, &tv) == -1)
		fatalx("timer");
}

static void
worker_assign(struct worker *w, struct task *t)
{
	task_unqueue(t);
	w->task = t;
	w->beat = pool.beats[w - pool.w];
	w->since = proc_now_us();
	worker_enter(w, W_BUSY);
	if (chan_send(w->chan, t->type, t->id, -1, t->payload, t->len) == -1) {
		(void)kill(w->pid, SIGKILL);
		worker_drop(w, C_SRV_UNAVAILABLE);
		return;
	}
	free(t->payload);
	t->payload = NULL;
	watch_soon();
}

static void
pool_dispatch(void)
{
	struct worker *w;
	struct task *t;

	while ((t = task_next()) != NULL && (w = worker_get()) != NULL)
		worker_assign(w, t);
	if (pool.queued > 0)
		watch_soon();
	if (pool.drained != NULL && pool.queued == 0 &&
	    count_state(W_BUSY) == 0)
		pool.drained();
}

/* ---- the watch ---- */

static void
watch_worker(struct worker *w, uint64_t now)
{
	uint64_t beat = pool.beats[w - pool.w];

	if (w->state == W_DEAD)
		worker_reap(w);
	if (w->state == W_IDLE && count_state(W_IDLE) > POOL_KEEP &&
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

static void
watch_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t now = proc_now_us();
	size_t i;

	for (i = 0; i < POOL_MAX; i++)
		watch_worker(&pool.w[i], now);
	watch_queue(now);
	pool_dispatch();
	if (count_state(W_BUSY) + count_state(W_DEAD) > 0 ||
	    count_state(W_IDLE) > POOL_KEEP)
		watch_soon();
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
	t->since = proc_now_us();
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
	TAILQ_INSERT_TAIL(&pool.queue, t, entry);
	pool.queued++;
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
