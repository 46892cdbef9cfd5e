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
#define SIZE_ENTRIES 1000000 /* a workspace with more is too large */
#define SAVE_MAX_S 3600
#define OWED_MAX 8 /* questions at once */

static struct event *ticker;
/* The list of what there is, asked for once. */
static struct {
	uint64_t id; /* of the question, 0: none is under way */
	int done;
} listing;
/* Who answers the questions that are under way, and how many there are. */
static const struct peer *asked;
static size_t owed;

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
	int64_t every = (int64_t)(mon.cur->conf->ws_ttl_ms / 8000);

	if (every == 0 || every > SAVE_MAX_S)
		every = SAVE_MAX_S;
	if (w->used - w->saved >= every || w->used < w->saved)
		(void)wsfile_save(w);
}

/* ---- questions ---- */

static int
can_ask(void)
{
	return policy_workspaces(mon.cur->policy) >= 0 &&
	       peer_can_take(mon.cur->pathd);
}

/* Ask pathd, on nobody's behalf: the number of the question, or 0. */
static uint64_t
ask(enum space_verb verb, const struct ws *w)
{
	struct space q = {.verb = (uint8_t)verb, .max_entries = SIZE_ENTRIES};
	uint64_t id = 0;
	struct wbuf b;

	/* those of a pathd that goes are waited for first */
	if (!can_ask() || owed >= OWED_MAX ||
	    (owed > 0 && asked != mon.cur->pathd))
		return 0;
	q.root = (uint32_t)policy_workspaces(mon.cur->policy);
	if (w != NULL && strlist_add(&q.names, w->name, strlen(w->name)) == -1)
		return 0;
	wbuf_init(&b, IMSG_MAX_PAYLOAD);
	space_put(&b, &q);
	if (!b.err)
		id = req_number();
	if (id != 0 && peer_send(mon.cur->pathd, MP_SPACE, id, -1, &b) == -1)
		id = 0;
	if (id != 0) {
		asked = mon.cur->pathd;
		owed++;
	}
	wbuf_free(&b);
	space_clear(&q);
	return id;
}

static struct ws *
of_job(uint64_t id)
{
	struct ws *w;

	for (w = workspaces.all; w != NULL && w->job != id; w = w->next)
		continue;
	return id == 0 ? NULL : w;
}

int
workspace_owes(const struct peer *p, uint64_t id)
{
	return p == asked && id != 0 &&
	       (id == listing.id || of_job(id) != NULL);
}

/* ---- removal ---- */

static void
kill_req(struct req *r, void *arg)
{
	if (r->ws == arg && r->is_run && req_owed_by(r, PROC_EXECD))
		(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
}

static void
kill_all(struct ws *w)
{
	req_each(kill_req, w);
	proc_kill_in(w);
}

/* Go on with a removal. */
static void
advance(struct ws *w)
{
	if (w->state != WS_ENDING || w->users > 0 || w->job != 0)
		return;
	if ((w->job = ask(SPACE_DROP, w)) != 0)
		w->state = WS_GOING;
	else if (!can_ask())
		workspace_wake(w, C_SRV_UNAVAILABLE); /* the next tick */
}

void
workspace_end(struct ws *w)
{
	if (w->state == WS_KEPT) {
		w->state = WS_ENDING;
		kill_all(w);
	}
	advance(w);
}

static void
dropped(struct ws *w, enum code code)
{
	if (code == C_OK) {
		if (w->owner != NULL)
			(void)wsfile_gone(w);
		workspace_wake(w, C_OK);
		wstab_remove(&workspaces, w);
		return;
	}
	log_warnx(
	    "workspace %s cannot be removed: %s", w->name, codes[code].code);
	w->state = WS_KEPT;
	w->idle_us = proc_now_us(); /* not at once again */
	workspace_wake(w, code);
}

/* ---- size ---- */

static void
sized(struct ws *w, const struct space_ans *a)
{
	uint64_t max = mon.cur->conf->ws_max_bytes;

	w->over =
	    max != 0 && a->n == 1 && (a->v[0].more || a->v[0].bytes > max);
	if (w->over && w->users > 0) {
		log_info("workspace %s is too large", w->name);
		kill_all(w);
	}
	advance(w);
}

/* ---- what there is ---- */

static void
add_unknown(const struct space_row *row)
{
	struct ws *w = wstab_find(&workspaces, row->name);

	if (w == NULL &&
	    (w = wstab_add(&workspaces, row->name, NULL, NULL)) != NULL)
		workspace_end(w);
}

static int
is_listed(const struct space_ans *a, const char *name)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (strcmp(a->v[i].name, name) == 0)
			return 1;
	return 0;
}

/* A directory without a line goes, and so does a line without directory. */
static void
listed(const struct space_ans *a)
{
	struct ws *w, *next;
	size_t i;

	listing.id = 0;
	listing.done = 1;
	if (a->code != C_OK) {
		log_warnx(
		    "the workspaces cannot be listed: %s", codes[a->code].code);
		return;
	}
	for (w = workspaces.all; w != NULL && !a->more; w = next) {
		next = w->next;
		if (is_listed(a, w->name) || w->users > 0)
			continue;
		(void)wsfile_gone(w);
		wstab_remove(&workspaces, w);
	}
	for (i = 0; i < a->n; i++)
		add_unknown(&a->v[i]);
}

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

static void
list_once(void)
{
	if (listing.done || listing.id != 0 ||
	    policy_workspaces(mon.cur->policy) < 0 || !wsfile_there())
		return;
	listing.id = ask(SPACE_LIST, NULL);
}

int
workspace_ready(void)
{
	list_once();
	return listing.done || policy_workspaces(mon.cur->policy) < 0 ||
	       !wsfile_there();
}

/* ---- answers ---- */

/* What pathd's main says for a worker that was lost. */
static int
failed(const struct imsg *m, struct space_ans *a)
{
	struct done d;
	struct rbuf b;

	memset(a, 0, sizeof(*a));
	rbuf_init(&b, m->payload, m->len);
	if (done_get(&b, &d) == -1 || rget_end(&b) == -1 || d.code == C_OK)
		return -1;
	a->code = d.code;
	return 0;
}

static int
decode(const struct imsg *m, struct space_ans *a)
{
	struct rbuf b;

	if (m->type == MP_DONE)
		return failed(m, a);
	rbuf_init(&b, m->payload, m->len);
	if (space_ans_get(&b, a) == -1)
		return -1;
	if (rget_end(&b) == 0)
		return 0;
	space_ans_clear(a);
	return -1;
}

int
workspace_job(struct peer *p, const struct imsg *m)
{
	struct ws *w = of_job(m->id);
	struct space_ans a;

	if (decode(m, &a) == -1)
		return -1;
	owed--;
	if (w == NULL) {
		listed(&a);
		snap_worker_ready();
	} else {
		w->job = 0;
		if (w->state == WS_GOING)
			dropped(w, (enum code)a.code);
		else
			sized(w, &a);
	}
	space_ans_clear(&a);
	for (w = workspaces.all; w != NULL; w = w->next)
		advance(w); /* those that waited for their turn */
	return 0;
}

void
workspace_peer_lost(const struct peer *p)
{
	struct ws *w;

	if (p != asked)
		return;
	asked = NULL;
	owed = 0;
	listing.id = 0;
	for (w = workspaces.all; w != NULL; w = w->next) {
		w->job = 0;
		if (w->state == WS_GOING) {
			w->state = WS_ENDING; /* the next tick asks again */
			workspace_wake(w, C_SRV_UNAVAILABLE);
		}
	}
}

/* ---- use ---- */

/* The workspace of a session that has none yet: NULL, and r was answered. */
static struct ws *
create(struct req *r, const char *name, const char *session)
{
	struct ws *w;

	if (wstab_count(&workspaces, r->who.id) >= r->snap->conf->ws_max) {
		answer_error(r, C_LIM_WORKSPACES, "session", NULL, 0);
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

	if (!listing.done || !wsfile_there() ||
	    (w != NULL && (w->state != WS_KEPT || w->owner == NULL))) {
		answer_error(r, C_SRV_UNAVAILABLE, "session", NULL, 1);
		return -1;
	}
	if (w == NULL && (w = create(r, name, session)) == NULL)
		return -1;
	if (w->over) {
		answer_error(r, C_WS_FULL, "session", NULL, 0);
		return -1;
	}
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
	advance(w);
}

void
workspace_unmade(struct ws **p)
{
	struct ws *w = *p;

	*p = NULL;
	if (--w->users > 0)
		return;
	if (w->state == WS_KEPT && w->job == 0) {
		(void)wsfile_gone(w);
		wstab_remove(&workspaces, w);
	} else
		advance(w);
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

static void
look_at(struct ws *w, uint64_t now, const struct conf *c)
{
	uint64_t idle = now - w->idle_us;

	if (w->state != WS_KEPT) {
		advance(w);
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
		w->over = 0;
	else if ((w->users > 0 || w->over) && w->job == 0)
		w->job = ask(SPACE_SIZE, w);
}

static void
tick_cb(evutil_socket_t fd, short what, void *arg)
{
	uint64_t now = proc_now_us();
	struct ws *w, *next;

	if (mon.cur == NULL)
		return;
	list_once();
	for (w = workspaces.all; w != NULL; w = next) {
		next = w->next;
		look_at(w, now, mon.cur->conf);
	}
}

static void
revoke(struct ws *w)
{
	struct principal who = {.id = w->owner, .authenticated = 1};

	if (w->owner == NULL)
		return;
	who.authenticated = strcmp(w->owner, "anonymous") != 0;
	if (snap_vanished(mon.cur, &who))
		kill_all(w);
}

void
workspace_reloaded(void)
{
	struct ws *w;

	for (w = workspaces.all; w != NULL; w = w->next)
		revoke(w);
	list_once();
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
