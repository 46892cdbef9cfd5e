/*
 * SPDX-License-Identifier: ISC
 *
 * Sessions: which runs are of one, and their common end.  Owns the questions
 * that wait for an end; a run is the job table's.
 */
#include "execd/session.h"

#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/msg.h"
#include "execd/job_int.h"

#define END_S 15 /* more than all clocks of a run that is to die */

/* A question that waits until a session is empty. */
struct waiter {
	struct waiter *next;
	uint64_t id;
	char name[ABX_WORKSPACE_LEN + 1];
	uint16_t code;
	struct event clock;
};
static struct waiter *waiters;

/* Answer, and let go. */
static void
waiter_done(struct waiter *w)
{
	struct waiter **p;
	struct wbuf b;

	for (p = &waiters; *p != w; p = &(*p)->next)
		;
	*p = w->next;
	event_del(&w->clock);
	wbuf_init(&b, 2);
	wput_u16(&b, w->code);
	job_tell(ME_DONE, w->id, -1, &b);
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

	for (j = jobs.jobs; j != NULL; j = j->next)
		if (j->ending && strcmp(j->session, name) == 0)
			return 1;
	return 0;
}

/* Answer those who wait for nothing any more. */
static void
settle(void)
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
	settle();
}

static void
cancel_all(const char *name)
{
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
}

void
session_end(uint64_t id, const char *name)
{
	struct timeval tv = {END_S, 0};
	struct waiter *w;

	if ((w = calloc(1, sizeof(*w))) == NULL)
		fatal("session_end");
	w->id = id;
	w->code = C_OK;
	strlcpy(w->name, name, sizeof(w->name));
	w->next = waiters;
	waiters = w;
	evtimer_assign(&w->clock, jobs.conf.base, clock_cb, w);
	if (event_add(&w->clock, &tv) == -1)
		fatalx("event_add");
	cancel_all(name);
	settle();
}
