/*
 * SPDX-License-Identifier: ISC
 *
 * The worker processes of the pool: started, given a job, heard, and let go
 * of.  A worker's answer is passed on when it fits its job; one that breaks its
 * word is killed.
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/log.h"
#include "common/proc.h"
#include "pathd/journal.h"
#include "pathd/pool_int.h"
#include "pathd/worker.h"

void
worker_enter(struct worker *w, enum worker_state state)
{
	w->state = state;
}

size_t
worker_count(enum worker_state state)
{
	size_t i, n = 0;

	for (i = 0; i < POOL_MAX; i++)
		n += pool.w[i].state == state;
	return n;
}

struct worker *
worker_of(uint64_t id)
{
	size_t i;

	for (i = 0; i < POOL_MAX; i++)
		if (pool.w[i].task != NULL && pool.w[i].task->id == id &&
		    !pool.w[i].task->closed)
			return &pool.w[i];
	return NULL;
}

void
worker_reap(struct worker *w)
{
	pid_t rc;

	do
		rc = waitpid(w->pid, NULL, WNOHANG);
	while (rc == -1 && errno == EINTR);
	if (rc != 0)
		worker_enter(w, W_NONE);
}

void
worker_drop(struct worker *w, enum code code)
{
	struct task *t = w->task;

	chan_free(w->chan);
	w->chan = NULL;
	w->task = NULL;
	worker_enter(w, W_DEAD);
	pool_watch_soon();
	if (t == NULL)
		return;
	task_fail(t, code);
	task_sweep(t->type == PW_SWEEP ? t->tries + 1 : 0);
	task_free(t);
}

static void
worker_free(struct worker *w)
{
	struct task *t = w->task;

	w->task = NULL;
	worker_enter(w, W_IDLE);
	if (t->type != PW_SWEEP) {
		if (journal_size(pool.pd) > JOURNAL_LARGE)
			task_sweep(0);
	} else if (journal_size(pool.pd) > 0) {
		/* somebody held it off, or is at work again */
		pool.sweep = 1;
		pool_watch_soon();
	}
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
	task_tell(m->type, m->id, fd, m->payload, m->len);
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

int
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
	w->used = 0;
	worker_enter(w, W_IDLE);
	return 0;
}

/* End one that is idle, now. */
static void
worker_end(struct worker *w)
{
	chan_free(w->chan);
	w->chan = NULL;
	(void)kill(w->pid, SIGKILL);
	while (waitpid(w->pid, NULL, 0) == -1 && errno == EINTR)
		continue;
	worker_enter(w, W_NONE);
}

/* An archive is read in a process that has the memory of its worker, and may
 * be taken over by what it reads: it must not find what others read or wrote.
 */
static int
worker_suits(const struct worker *w, const struct task *t)
{
	return w->state == W_IDLE && (t->type != MP_IMPORT || !w->used);
}

struct worker *
worker_get(const struct task *t)
{
	struct worker *none = NULL, *idle = NULL, *w;

	for (w = pool.w; w < pool.w + POOL_MAX; w++) {
		if (worker_suits(w, t))
			return w;
		if (w->state == W_DEAD)
			worker_reap(w);
		if (w->state == W_NONE && none == NULL)
			none = w;
		else if (w->state == W_IDLE)
			idle = w;
	}
	if (idle != NULL) {
		worker_end(idle);
		none = idle;
	}
	return none != NULL && worker_start(none) == 0 ? none : NULL;
}

void
worker_assign(struct worker *w, struct task *t)
{
	task_unqueue(t);
	w->task = t;
	w->used = 1;
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
	pool_watch_soon();
}
