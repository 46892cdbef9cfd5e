/*
 * SPDX-License-Identifier: ISC
 *
 * The life of session workspaces: who may have one more, what runs in each,
 * how large it is, and its end.  The directories themselves are pathd's to
 * make and remove; that a line is written before its directory is made lets a
 * start tell what is nobody's.
 */
#include "monitor/workspace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proc.h"

#define TICK_S 5
#define SAVE_MAX_S 3600

static struct event *ticker;

static int64_t
now_s(void)
{
	return (int64_t)time(NULL);
}

static void
touch(struct ws *w)
{
	w->used = now_s();
	w->idle_us = proc_now_us();
}

/* A last use is written again when it is much later than the one before. */
static void
save_used(struct ws *w)
{
	uint64_t ttl = mon.cur->conf->ws_ttl_ms;
	int64_t every = SAVE_MAX_S;

	if (ttl != 0 && ttl / 8000 < SAVE_MAX_S)
		every = (int64_t)(ttl / 8000) + 1;
	if (w->used - w->saved >= every || w->used < w->saved)
		(void)wsfile_save(w);
}

/* ---- use ---- */

/* The workspace of a session that has none yet: NULL, and r was answered. */
static struct ws *
create(struct req *r, const char *name, const char *session)
{
	struct ws *w;

	if (wstab_count(&workspaces, r->who.id) >= r->snap->conf->ws_max) {
		answer_error(r, C_LIM_WORKSPACES, "session", NULL, 60);
		return NULL;
	}
	w = wstab_add(&workspaces, name, r->who.id, session);
	if (w == NULL) {
		answer_error(r, C_SRV_UNAVAILABLE, "session", NULL, 1);
		return NULL;
	}
	touch(w);
	if (wsfile_save(w) == 0)
		return w;
	wstab_remove(&workspaces, w);
	answer_error(r, C_FS_NO_SPACE, "session", NULL, 0);
	return NULL;
}

int
workspace_begin(struct req *r)
{
	const char *name = r->dec.spawn.session;
	struct ws *w = wstab_find(&workspaces, name);
	const char *session = ask_text(r, "session");

	if (w != NULL && w->state == WS_KEPT && w->over) {
		answer_error(r, C_WS_FULL, "session", NULL, 0);
		return -1;
	}
	if (!ws_listed() || !wsfile_there() ||
	    (w != NULL &&
		(w->state != WS_KEPT || w->owner == NULL || w->ends > 0))) {
		answer_error(r, C_SRV_UNAVAILABLE, "session", NULL, 1);
		return -1;
	}
	if (w == NULL && (w = create(r, name, session)) == NULL)
		return -1;
	w->users++;
	touch(w);
	save_used(w);
	r->ws = w;
	return 0;
}

void
workspace_leave(struct ws **p)
{
	struct ws *w = *p;

	*p = NULL;
	if (w == NULL)
		return;
	w->users--;
	touch(w);
	ws_advance(w);
}

void
workspace_unmade(struct ws **p)
{
	struct ws *w = *p;

	*p = NULL;
	if (--w->users > 0)
		return;
	if (w->state == WS_KEPT && w->job == 0 && w->ends == 0) {
		(void)wsfile_gone(w);
		wstab_remove(&workspaces, w);
	} else
		ws_advance(w);
}

int
workspace_touch(struct req *r)
{
	long root = policy_workspaces(r->snap->policy);
	const struct rootref *ref;
	struct ws *w;
	size_t i;

	for (i = 0; i < r->dec.npaths && root >= 0; i++) {
		ref = &r->dec.paths[i].target.ref;
		if (ref->root != (uint32_t)root ||
		    (w = wstab_find(&workspaces, ref->sub)) == NULL)
			continue;
		if (w->state != WS_KEPT) {
			answer_error(r, C_SRV_UNAVAILABLE, "session", NULL, 1);
			return -1;
		}
		touch(w);
		save_used(w);
	}
	return 0;
}

/* ---- the clock ---- */

/* A clock that was wrong before must not make all of them old. */
static void
start_clocks(void)
{
	uint64_t us = proc_now_us(), age;
	int64_t now = now_s();
	struct ws *w;

	for (w = workspaces.all; w != NULL; w = w->next) {
		age = now > w->used ? (uint64_t)(now - w->used) * 1000000 : 0;
		/* the machine may be younger; then the difference wraps, and
		 * so does that of the look */
		w->idle_us = us - age;
	}
}

/* round: all that are in use are to be measured, since those of the round
 * before were. */
static void
look_at(struct ws *w, uint64_t now, const struct conf *c, int round)
{
	uint64_t idle = now - w->idle_us;

	if (w->state != WS_KEPT) {
		ws_advance(w);
		return;
	}
	if (w->users > 0)
		touch(w);
	else if (w->owner == NULL
		     ? idle >= 60 * 1000000ULL
		     : c->ws_ttl_ms != 0 && idle / 1000 >= c->ws_ttl_ms) {
		workspace_end(w);
		return;
	}
	if (c->ws_max_bytes == 0)
		w->over = w->due = 0;
	else if (round)
		w->due = w->users > 0 || w->over;
}

static void
tick_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t now = proc_now_us();
	struct ws *w, *next;
	int round;

	if (mon.cur == NULL)
		return;
	ws_list_once();
	round = !ws_ask_sizes();
	for (w = workspaces.all; w != NULL; w = next) {
		next = w->next;
		look_at(w, now, mon.cur->conf, round);
	}
	(void)ws_ask_sizes();
}

static void
revoke(struct ws *w)
{
	struct principal who = {.id = w->owner, .authenticated = 1};

	if (w->owner == NULL)
		return;
	who.authenticated = strcmp(w->owner, "anonymous") != 0;
	if (snap_vanished(mon.cur, &who))
		ws_kill(w);
}

void
workspace_reloaded(void)
{
	struct ws *w;

	for (w = workspaces.all; w != NULL; w = w->next)
		revoke(w);
	ws_list_once();
}

void
workspace_init(void)
{
	struct timeval tv = {TICK_S, 0};

	start_clocks();
	ticker = event_new(mon.base, -1, EV_PERSIST, tick_cb, NULL);
	if (ticker == NULL || event_add(ticker, &tv) == -1)
		fatalx("event_new");
}

void
workspace_close(void)
{
	struct ws *w;

	for (w = workspaces.all; w != NULL; w = w->next)
		if (w->owner != NULL && w->used != w->saved)
			(void)wsfile_save(w);
}
