/*
 * SPDX-License-Identifier: ISC
 *
 * The life of a session's sandbox: built, ready, idle, ended.  Owns its
 * builder's pid, the launcher's pidfd and channel, spare supervisors.  A
 * sandbox is freed when the kernel has ended all in it and no run points to
 * it.  Which run goes where is session.c's affair.
 */
#include "execd/box.h"

#include <sys/pidfd.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/proc.h"
#include "execd/clock.h"

#define START_MS 20000
#define DYING_MS 2000 /* from the end of its socket to KILL */
#define IDLE_MAX 32   /* sandboxes in which nothing runs, */
#define IDLE_KEPT (160ULL * 1024 * 1024) /* bytes in the tmpfs of all those */
#define LOOK_MS 1000 /* without a run, until it is seen how much it keeps */

struct box *boxes;

static void
box_clock(struct box *b, uint64_t ms)
{
	if (clock_set(&b->clock, ms) == 0)
		return;
	log_warnx("no clock for a session's sandbox");
	b->state = BOX_END; /* its end is seen later */
	box_kill(b);
}

int
box_gone(const struct box *b)
{
	return b->bwrap == 0 && b->chan == NULL &&
	       (b->pidfd == -1 || b->init_gone);
}

void
box_kill(struct box *b)
{
	cgroup_kill(b->group);
	if (b->pidfd != -1)
		(void)pidfd_send_signal(b->pidfd, SIGKILL, NULL, 0);
	if (b->bwrap != 0)
		(void)kill(b->bwrap, SIGKILL); /* not reaped, so it is ours */
}

const struct wbuf *
box_seen(const struct box *b)
{
	return &b->key;
}

int
box_err(const struct box *b)
{
	return b->err;
}

/* ---- ends ---- */

static void
box_free(struct box *b)
{
	struct box **p;

	for (p = &boxes; *p != NULL && *p != b; p = &(*p)->next)
		;
	if (*p == b)
		*p = b->next;
	event_del(&b->clock);
	if (b->pidfd != -1) {
		event_del(&b->init_ev);
		close(b->pidfd);
	}
	if (b->err != -1)
		close(b->err);
	spares_drop(b);
	chan_free(b->chan);
	absent_drop(b->absent);
	cgroup_free(b->own, 1);
	cgroup_free(b->group, 1);
	job_sweep();
	wbuf_free(&b->key);
	free(b);
}

/* Something of it went: is that all?  May free it. */
static void
box_check(struct box *b)
{
	if (!box_gone(b))
		return;
	event_del(&b->clock);
	b->njobs++; /* not to be freed in between */
	session_gone(b);
	if (--b->njobs > 0)
		return;
	box_free(b);
	session_settle();
}

/* Nothing more is said to it; the launcher ends when its socket does. */
static void
box_close(struct box *b)
{
	b->state = BOX_END;
	chan_free(b->chan);
	b->chan = NULL;
	spares_drop(b);
	box_clock(b, DYING_MS);
	box_check(b);
}

void
box_end(struct box *b)
{
	if (b->state == BOX_READY)
		event_del(&b->clock); /* of its idleness; others go on */
	b->state = BOX_END;
	if (b->njobs > 0)
		return;
	if (b->chan != NULL)
		box_close(b);
	else
		box_check(b);
}

static int
is_idle(const struct box *b)
{
	return b->state == BOX_READY && b->njobs == 0;
}

/* What commands left in /tmp is charged to no run any more.  The one that
 * keeps most goes, until all together keep no more than one of them could. */
static void
end_largest(void)
{
	struct box *b, *most;
	uint64_t sum;

	do {
		most = NULL;
		sum = 0;
		for (b = boxes; b != NULL; b = b->next)
			if (is_idle(b) && b->looked) {
				sum += b->kept;
				if (most == NULL || b->kept > most->kept)
					most = b;
			}
		if (sum > IDLE_KEPT)
			box_end(most);
	} while (sum > IDLE_KEPT);
}

/* It has been without a run for a moment: not in the way of the next one. */
static void
idle_look(struct box *b)
{
	b->looked = 1;
	b->kept = cgroup_shmem(b->group);
	box_clock(b, jobs.conf.idle_ms - LOOK_MS);
	end_largest();
}

static void
clock_cb(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;

	if (b->state == BOX_READY && !b->looked && jobs.conf.idle_ms > LOOK_MS)
		idle_look(b);
	else if (b->state == BOX_READY)
		box_end(b);
	else {
		/* it does not come, or it does not go; its end is seen later */
		b->state = BOX_END;
		box_kill(b);
	}
}

int
box_reaped(pid_t pid)
{
	struct box *b;

	for (b = boxes; b != NULL && b->bwrap != pid; b = b->next)
		;
	if (b == NULL)
		return 0;
	b->bwrap = 0;
	box_check(b);
	return 1;
}

/* ---- runs ---- */

void
box_enter(struct box *b)
{
	b->njobs++;
	if (b->state == BOX_READY)
		event_del(&b->clock);
}

/* The one that was not used for the longest time. */
static void
end_oldest(void)
{
	struct box *b, *old = NULL;
	size_t n = 0;

	for (b = boxes; b != NULL; b = b->next)
		if (is_idle(b)) {
			n++;
			if (old == NULL || b->used < old->used)
				old = b;
		}
	if (n > IDLE_MAX)
		box_end(old);
}

void
box_left(struct box *b)
{
	b->used = proc_now_us();
	b->njobs--;
	if (b->state == BOX_READY)
		spares_want(b);
	if (b->njobs > 0)
		return;
	if (b->state == BOX_END)
		box_end(b);
	else if (b->state == BOX_READY) {
		b->looked = 0;
		box_clock(b,
		    jobs.conf.idle_ms < LOOK_MS ? jobs.conf.idle_ms : LOOK_MS);
		end_oldest();
	}
}

/* ---- the launcher ---- */

static void
init_cb(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;

	b->init_gone = 1;
	box_check(b);
}

static int
on_hello(struct box *b, const struct imsg *m)
{
	if (b->init != 0 || m->pid <= 1)
		return -1;
	b->init = m->pid;
	if ((b->pidfd = pidfd_open(m->pid, 0)) == -1) {
		log_warn("pidfd of a launcher");
		return 0;
	}
	event_assign(
	    &b->init_ev, jobs.conf.base, b->pidfd, EV_READ, init_cb, b);
	if (event_add(&b->init_ev, NULL) == 0)
		return 0;
	log_warnx("event_add");
	close(b->pidfd);
	b->pidfd = -1;
	return -1;
}

static int
on_ready(struct box *b, struct rbuf *r)
{
	if (b->state == BOX_READY || b->ready.layers != 0 ||
	    xl_ready_get(r, &b->ready) == -1)
		return -1;
	if (b->state == BOX_END)
		return 0;
	b->state = BOX_READY;
	event_del(&b->clock);
	session_ready(b);
	return 0;
}

static int
on_failed(struct box *b, struct rbuf *r)
{
	struct spawn_failed f;

	if (b->state == BOX_READY || xl_failed_get(r, &f) == -1)
		return -1;
	b->state = BOX_END;
	b->njobs++; /* not to be freed in between */
	session_failed(b, &f);
	box_left(b);
	return 0;
}

static int
msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	struct box *b = arg;
	const char *why;
	struct rbuf r;

	if (msg_check(m, &why) == -1)
		return -1;
	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case XL_HELLO:
		return on_hello(b, m);
	case XL_READY:
		return on_ready(b, &r);
	case XL_FAILED:
		return on_failed(b, &r);
	default:
		return -1;
	}
}

static void
gone_cb(struct chan *c, int error, void *arg)
{
	struct box *b = arg;

	if (error == EBADMSG) {
		log_warnx("a session's launcher broke the protocol");
		box_kill(b);
	}
	box_close(b);
}

/* ---- birth ---- */

/* The runs' groups lie in one, and so does that of the launcher and what
 * belongs to no run. */
static int
make_groups(struct box *b)
{
	static unsigned count;
	char name[32];

	snprintf(name, sizeof(name), "s%u", count++);
	if (cgroup_new(&b->group, NULL, name) == -1)
		return -1;
	return b->group == NULL ? 0 : cgroup_new(&b->own, b->group, "own");
}

struct box *
box_new(const char *session, const struct wbuf *key,
    const struct profile_binds *binds)
{
	struct sandbox sb = {0, -1, -1};
	struct box *b;

	if ((b = calloc(1, sizeof(*b))) == NULL)
		return NULL;
	b->pidfd = b->err = -1;
	strlcpy(b->session, session, sizeof(b->session));
	wbuf_init(&b->key, key->len);
	wput_raw(&b->key, key->p, key->len);
	evtimer_assign(&b->clock, jobs.conf.base, clock_cb, b);
	spares_init(b);
	if (make_groups(b) == -1) {
		log_warn("control group of a session");
		box_free(b);
		return NULL;
	}
	if (b->key.err || absent_hold(binds, &b->absent) == -1 ||
	    jobs.conf.driver->run(binds, cgroup_fd(b->own), &sb) == -1) {
		box_free(b);
		return NULL;
	}
	b->bwrap = sb.pid;
	b->err = sb.err;
	b->next = boxes;
	boxes = b;
	box_clock(b, START_MS);
	b->chan = chan_new(jobs.conf.base, sb.sock, msg_cb, gone_cb, b);
	if (b->chan == NULL)
		close(sb.sock);
	else if (job_setup(b->chan, 0, binds, 0) == 0)
		return b;
	/* what was started is killed, and freed when it is reaped */
	b->state = BOX_END;
	box_kill(b);
	chan_free(b->chan);
	b->chan = NULL;
	return NULL;
}
