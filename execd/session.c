/*
 * SPDX-License-Identifier: ISC
 *
 * Sessions: which run has its place in which sandbox, and the common end of
 * all.  Owns the questions that wait for an end; a run is the job table's, a
 * sandbox box.c's.  A run never gets into a sandbox with other binds than its
 * own: they are compared whole, object by object.
 */
#include "execd/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/msg.h"
#include "execd/box.h"
#include "execd/clock.h"
#include "execd/mover.h"
#include "execd/seen.h"

#define END_MS 20000 /* more than all clocks of what is to die */

/* A question that waits until a session is empty. */
struct waiter {
	struct waiter *next;
	uint64_t id;
	char name[ABX_WORKSPACE_LEN + 1];
	uint16_t code;
	struct event clock;
};
static struct waiter *waiters;

/* ---- places ---- */

static struct box *
find(const char *session, const struct wbuf *key)
{
	struct box *b;

	for (b = boxes; b != NULL; b = b->next)
		if (b->state != BOX_END && strcmp(b->session, session) == 0 &&
		    b->key.len == key->len &&
		    (key->len == 0 || memcmp(b->key.p, key->p, key->len) == 0))
			return b;
	return NULL;
}

int
session_join(struct job *j, const struct profile_binds *binds)
{
	struct wbuf key;
	struct box *b;
	int save;

	wbuf_init(&key, SEEN_MAX);
	seen_put(&key, binds);
	if (key.err) {
		wbuf_free(&key);
		errno = ENOMEM;
		return -1;
	}
	if ((b = find(j->session, &key)) == NULL)
		b = box_new(j->session, &key, binds);
	wbuf_free(&key);
	if (b == NULL)
		return -1;
	box_enter(b);
	j->box = b;
	if (box_super(b, j) == 0)
		return 0;
	save = errno;
	session_leave(j);
	errno = save;
	return -1;
}

/* Does it wait for its sandbox, its supervisor or the place of that? */
static int
waits(const struct job *j)
{
	return j->state == JOB_START && !j->sent && j->init != 0 &&
	       j->moving == 0 && j->box->state == BOX_READY;
}

/* Get the supervisor into the run's group: 1 when it is there, 0 when it will
 * be, -1 with errno. */
static int
move(struct job *j)
{
	if (j->placed || j->group == NULL)
		return 1;
	return mover_put(j->group, j->init, &j->moving, session_moved_cb, j);
}

/* The run's supervisor and its sandbox are there, and it waits for nothing
 * else: before it is placed its supervisor, j->init outside, is alone. */
static void
place(struct job *j)
{
	int there;

	j->ready = j->box->ready;
	if (job_group(j, j->box->group) == -1 || (there = move(j)) == -1)
		job_fail(j, C_SBX_UNAVAILABLE, errno, "cgroup");
	else if (there)
		job_placed(j);
}

void
session_moved_cb(int err, void *arg)
{
	struct job *j = arg;

	j->moving = 0;
	j->placed = err == 0;
	job_sweep(); /* the group that it left */
	if (err != 0 && j->state == JOB_START)
		job_fail(j, C_SBX_UNAVAILABLE, err, "cgroup");
	else if (waits(j))
		place(j);
}

void
session_hello(struct job *j)
{
	if (waits(j))
		place(j);
}

void
session_ready(struct box *b)
{
	struct job *j, *next;

	for (j = jobs.jobs; j != NULL; j = next) {
		next = j->next;
		if (j->box == b && waits(j))
			place(j);
	}
}

void
session_failed(struct box *b, const struct spawn_failed *f)
{
	struct job *j, *next;

	for (j = jobs.jobs; j != NULL; j = next) {
		next = j->next; /* this one may be freed, and no other */
		if (j->box == b && j->state <= JOB_HELD)
			job_fail(j, f->code, f->err, f->layer);
	}
}

void
session_gone(struct box *b)
{
	struct job *j, *next;

	for (j = jobs.jobs; j != NULL; j = next) {
		next = j->next;
		if (j->box == b)
			job_sandbox_gone(j);
	}
}

void
session_stale(struct job *j)
{
	if (j->box != NULL)
		box_end(j->box);
}

void
session_leave(struct job *j)
{
	struct box *b = j->box;

	mover_hand(j->moving, NULL, NULL);
	j->moving = 0;
	j->box = NULL;
	if (b == NULL)
		return;
	box_keep(b, j);
	/* else its supervisor ends by itself, and with another end of it than
	 * that the whole sandbox would */
	cgroup_free(j->group, 0);
	j->group = NULL;
	box_left(b);
}

size_t
session_fds(void)
{
	const struct box *b;
	size_t n = 0;

	for (b = boxes; b != NULL; b = b->next)
		n += BOX_FDS + SPARE_FDS * spares_count(b);
	return n;
}

/* ---- the end of a session ---- */

/* Answer, and let go. */
static void
waiter_done(struct waiter *w)
{
	struct wbuf *b = job_words();
	struct waiter **p;

	for (p = &waiters; *p != w; p = &(*p)->next)
		;
	*p = w->next;
	event_del(&w->clock);
	wput_u16(b, w->code);
	job_tell(ME_DONE, w->id, -1, b);
	free(w);
}

static void
clock_cb(evutil_socket_t fd, short what, void *arg)
{
	struct waiter *w = arg;

	w->code = C_SRV_UNAVAILABLE;
	waiter_done(w);
}

/* Is anything left that was there when the end was asked for? */
static int
left(const char *name)
{
	const struct job *j;
	const struct box *b;

	for (j = jobs.jobs; j != NULL; j = j->next)
		if (j->ending && strcmp(j->session, name) == 0)
			return 1;
	for (b = boxes; b != NULL; b = b->next)
		if (b->state == BOX_END && strcmp(b->session, name) == 0)
			return 1;
	return 0;
}

void
session_settle(void)
{
	struct waiter *w, *next;

	for (w = waiters; w != NULL; w = next) {
		next = w->next;
		if (!left(w->name))
			waiter_done(w);
	}
}

void
session_left(struct job *j)
{
	struct waiter *w;

	if (!j->ending)
		return;
	j->ending = 0;
	/* its output may be unsent, but is there a process? */
	for (w = waiters; w != NULL; w = w->next)
		if (strcmp(w->name, j->session) == 0 && j->pidfd != -1 &&
		    !j->init_gone && !j->empty)
			w->code = C_SRV_UNAVAILABLE;
	session_settle();
}

static void
end_all(const char *name)
{
	struct box *b, *after;
	struct job *j, *next;

	/* all of them first: what ends at once must not look like the last */
	for (j = jobs.jobs; j != NULL; j = j->next)
		if (strcmp(j->session, name) == 0 &&
		    (j->state != JOB_OVER || j->bwrap != 0))
			j->ending = 1;
	for (j = jobs.jobs; j != NULL; j = next) {
		next = j->next; /* a cancelled run may be freed, and no other */
		if (j->ending && j->state != JOB_OVER)
			job_cancel(j->id);
	}
	for (b = boxes; b != NULL; b = after) {
		after = b->next;
		if (strcmp(b->session, name) == 0 && b->state != BOX_END)
			box_end(b);
	}
}

void
session_end(uint64_t id, const char *name)
{
	struct waiter *w;
	struct wbuf *b;

	if ((w = calloc(1, sizeof(*w))) != NULL) {
		evtimer_assign(&w->clock, jobs.conf.base, clock_cb, w);
		if (clock_set(&w->clock, END_MS) == -1) {
			free(w);
			w = NULL;
		}
	}
	if (w == NULL) {
		b = job_words();
		wput_u16(b, C_SRV_UNAVAILABLE);
		job_tell(ME_DONE, id, -1, b);
		return;
	}
	w->id = id;
	w->code = C_OK;
	strlcpy(w->name, name, sizeof(w->name));
	w->next = waiters;
	waiters = w;
	end_all(name);
	session_settle();
}
