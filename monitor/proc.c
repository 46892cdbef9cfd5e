/*
 * SPDX-License-Identifier: ISC
 *
 * Processes: from their start, which is a request's, to their end and until
 * they are forgotten.  Owns the table.  A client or a listener that is gone
 * ends none of them; execd's death, panic, and the loss of their principal do.
 */
#include "monitor/proc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "common/hash.h"
#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proctab.h"
#include "monitor/workspace.h"

#define PROC_MAX 128	 /* in all: each keeps up to two spools */
#define PROC_MAX_EACH 64 /* of one principal */
#define SWEEP_S 10

static struct proctab tab = {NULL, 0, PROC_MAX, PROC_MAX_EACH};
static struct event *sweeper;

/* Let go of what it refers to, and of it. */
static void
forget(struct proc *p)
{
	if (p->state == PROC_OVER && p->peer != NULL)
		(void)peer_send(p->peer, ME_FORGET, p->run, -1, NULL);
	limit_release(p->slot);
	workspace_leave(&p->ws);
	if (p->peer != NULL)
		peer_unref(p->peer);
	if (p->snap != NULL)
		snap_unref(p->snap);
	proctab_remove(&tab, p);
}

static void
expire(void)
{
	struct proc *p;
	uint64_t ttl;

	if (mon.cur == NULL)
		return;
	ttl = mon.cur->conf->process_ttl_ms * 1000;
	while ((p = proctab_expired(&tab, proc_now_us(), ttl)) != NULL)
		forget(p);
}

static void
sweep_cb(evutil_socket_t fd, short what, void *arg)
{
	expire();
}

void
proc_init(void)
{
	struct timeval tv = {SWEEP_S, 0};

	sweeper = event_new(mon.base, -1, EV_PERSIST, sweep_cb, NULL);
	if (sweeper == NULL || event_add(sweeper, &tv) == -1)
		fatalx("event_new");
}

struct proc *
proc_first(void)
{
	expire();
	return tab.all;
}

int
proc_is_mine(const struct req *r, const struct proc *p)
{
	return p->state != PROC_STARTING && p->known == r->who.authenticated &&
	       strcmp(p->owner, r->who.id) == 0;
}

struct proc *
proc_of(struct req *r)
{
	struct proc *p;

	expire();
	p = proctab_find(
	    &tab, r->who.id, r->who.authenticated, ask_text(r, "id"));
	if (p == NULL) {
		answer_error(r, C_ID_NOT_FOUND, "id", NULL, 0);
		return NULL;
	}
	memcpy(r->proc_mark, p->id, sizeof(r->proc_mark) - 1);
	return p;
}

/* ---- start ---- */

int
proc_reserve(struct req *r)
{
	const struct spawn *s = &r->dec.spawn;
	uint8_t id[16];
	struct proc *p;
	int room;

	expire();
	room = proctab_room(&tab, r->who.id, r->who.authenticated, &p);
	if (room == -1) {
		answer_error(r, C_LIM_CONCURRENCY, NULL, NULL, 1);
		return -1;
	}
	if (room == 1)
		forget(p);
	random_bytes(id, sizeof(id));
	p = proctab_add(&tab, r->who.id, r->who.authenticated, r->rid, id);
	if (p == NULL) {
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return -1;
	}
	strlcpy(p->argv0, s->argv.n > 0 ? s->argv.v[0] : "", sizeof(p->argv0));
	strlcpy(p->program, s->progs.n > 0 ? s->progs.v[0] : "",
	    sizeof(p->program));
	strlcpy(p->reqid, r->ask.reqid, sizeof(p->reqid));
	strlcpy(p->remote, r->ask.remote, sizeof(p->remote));
	strlcpy(p->session, ask_text(r, "session"), sizeof(p->session));
	p->stdin_open = ask_bool(r, "stdin_open");
	r->proc = p;
	return 0;
}

void
proc_release(struct req *r)
{
	if (r->proc != NULL && r->proc->state == PROC_STARTING)
		forget(r->proc);
	r->proc = NULL;
}

void
proc_started(struct req *r, uint32_t pid)
{
	struct proc *p = r->proc;
	struct timespec ts = {0};

	r->proc = NULL;
	(void)clock_gettime(CLOCK_REALTIME, &ts);
	proctab_started(p, pid, ts.tv_sec, (uint32_t)ts.tv_nsec);
	memcpy(r->proc_mark, p->id, sizeof(r->proc_mark) - 1);
	p->peer = peer_ref(r->peer);
	p->snap = snap_ref(r->snap);
	/* it counts as long as it runs */
	p->slot = r->slot;
	r->slot = NULL;
	p->ws = r->ws;
	r->ws = NULL;
	r->is_run = 0;
	req_owed(r, NULL);
	answer_json(r, 200, proc_json(p));
}

/* ---- end ---- */

struct proc *
proc_by_run(const struct peer *peer, uint64_t run)
{
	struct proc *p = proctab_by_run(&tab, run);

	return p != NULL && p->peer == peer ? p : NULL;
}

static void
over(struct proc *p, const struct run_end *e)
{
	proctab_ended(p, e, proc_now_us());
	limit_release(p->slot);
	p->slot = NULL;
	workspace_leave(&p->ws);
	audit_process(p);
	proc_wake(p);
}

int
proc_end(struct proc *p, const struct imsg *m)
{
	struct run_end e;
	struct rbuf b;

	rbuf_init(&b, m->payload, m->len);
	if (run_end_get(&b, &e) == -1 || rget_end(&b) == -1)
		return -1;
	over(p, &e);
	return 0;
}

void
proc_peer_lost(struct peer *peer)
{
	struct run_end lost = {.flags = END_LOST};
	struct proc *p;

	for (p = tab.all; p != NULL; p = p->next) {
		if (p->peer != peer)
			continue;
		if (p->state == PROC_RUNNING)
			over(p, &lost);
		peer_unref(p->peer);
		p->peer = NULL;
	}
}

static void
kill_proc(struct proc *p)
{
	if (p->state == PROC_RUNNING)
		(void)peer_send(p->peer, ME_CANCEL, p->run, -1, NULL);
}

void
proc_kill_all(void)
{
	struct proc *p;

	for (p = tab.all; p != NULL; p = p->next)
		kill_proc(p);
}

void
proc_revoke(void)
{
	struct principal who = {0};
	struct proc *p;

	for (p = tab.all; p != NULL; p = p->next) {
		who.id = p->owner;
		who.authenticated = p->known;
		if (snap_vanished(mon.cur, &who))
			kill_proc(p);
	}
}
