/*
 * SPDX-License-Identifier: ISC
 *
 * The end of the service: first nobody new is let in, then the listener, the
 * workers and the monitor go in this order, and in the end nothing is left,
 * asked or killed.  Who died, and why it all ends, is for parent.c to know.
 */
#include "monitor/parent.h"

#include <signal.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/log.h"

#define STOP_DEADLINE_S 7 /* all gone within eight seconds */

enum stop_stage { STOP_NO, STOP_LISTENER, STOP_WORKERS, STOP_MONITOR };

void
stop_kill(const struct child *c)
{
	if (c != NULL && c->pid > 0)
		(void)kill(c->pid, SIGKILL);
}

void
stop_all(struct parent *p)
{
	struct child *c;
	int k;

	for (k = 0; k < PROC_COUNT; k++) {
		stop_kill(p->kids[k]);
		stop_kill(p->next_kids[k]);
	}
	for (c = p->drain; c != NULL; c = c->next)
		stop_kill(c);
}

void
stop_now(struct parent *p, int status)
{
	p->status = status;
	stop_all(p);
	event_base_loopbreak(p->base);
}

void
stop_next(struct parent *p)
{
	struct child *c;

	if (p->stopping == STOP_LISTENER && p->kids[PROC_LISTENER] == NULL) {
		p->stopping = STOP_WORKERS;
		child_shut(p->kids[PROC_PATHD]);
		child_shut(p->kids[PROC_EXECD]);
		for (c = p->drain; c != NULL; c = c->next)
			child_shut(c);
	}
	if (p->stopping == STOP_WORKERS && p->kids[PROC_PATHD] == NULL &&
	    p->kids[PROC_EXECD] == NULL && p->drain == NULL) {
		p->stopping = STOP_MONITOR;
		child_shut(p->kids[PROC_MONITOR]);
	}
	if (p->stopping == STOP_MONITOR && p->kids[PROC_MONITOR] == NULL)
		event_base_loopbreak(p->base);
}

static void
grace_cb(evutil_socket_t fd, short what, void *arg)
{
	struct parent *p = arg;

	if (p->stopping == STOP_LISTENER)
		stop_kill(p->kids[PROC_LISTENER]);
}

static void
deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct parent *p = arg;

	log_warnx("not everything stopped in time: killing");
	stop_now(p, p->status);
}

static void
after_ms(struct parent *p, uint64_t ms, event_callback_fn cb)
{
	struct timeval tv = {
	    (time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};

	if (event_base_once(p->base, -1, EV_TIMEOUT, cb, p, &tv) == -1)
		fatalx("timer");
}

void
stop_begin(struct parent *p)
{
	uint64_t grace = p->boot.shutdown_grace_ms;
	size_t i;
	int k;

	sock_notify("STOPPING=1\n");
	sock_remove(p);
	for (i = 0; i < p->nsocks; i++)
		close(p->socks[i]);
	p->nsocks = 0;
	p->stopping = STOP_LISTENER;
	for (k = 0; k < PROC_COUNT; k++)
		stop_kill(p->next_kids[k]);
	if (grace > 5000)
		grace = 5000;
	after_ms(p, grace + 200, grace_cb);
	after_ms(p, STOP_DEADLINE_S * 1000, deadline_cb);
	child_shut(p->kids[PROC_LISTENER]);
	stop_next(p);
}
