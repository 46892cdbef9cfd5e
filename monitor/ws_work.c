/*
 * SPDX-License-Identifier: ISC
 *
 * What workers are asked about workspaces on nobody's behalf, and what comes
 * of the answers: pathd lists, measures and removes them, execd ends what runs
 * in one.  One question about a workspace at a time, and not many in all.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/workspace.h"

#define SIZE_ENTRIES 1000000 /* a workspace with more is too large */
#define OWED_MAX 8	     /* questions to pathd at once */
#define TRIES 3		     /* to end what runs in one */

/* The list of what there is, asked for once. */
static struct {
	uint64_t id; /* of the question, 0: none is under way */
	int done;
} listing;
/* Who answers the questions that are under way, and how many there are. */
static const struct peer *asked;
static size_t owed;

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

/* ---- the end of what runs in one ---- */

/* An execd that was asked for it. */
struct ending {
	struct ending *next;
	uint64_t id;
	const struct peer *peer;
	struct ws *ws;
};
static struct ending *endings;

static void
end_in(struct peer *p, void *arg)
{
	struct ending *e;
	struct ws *w = arg;
	struct wbuf b;

	if ((e = calloc(1, sizeof(*e))) == NULL) {
		w->stuck = 1;
		return;
	}
	e->id = req_number();
	e->peer = p;
	e->ws = w;
	wbuf_init(&b, ABX_WORKSPACE_LEN);
	wput_raw(&b, w->name, ABX_WORKSPACE_LEN);
	if (peer_send(p, ME_SESSION_END, e->id, -1, &b) == 0) {
		e->next = endings;
		endings = e;
		w->ends++;
	} else {
		w->stuck |= p->chan != NULL; /* commands may go on in it */
		free(e);
	}
	wbuf_free(&b);
}

/* Kill it all, and its sandboxes. */
void
ws_kill(struct ws *w)
{
	w->stuck = 0;
	peer_each(PROC_EXECD, end_in, w);
}

static struct ending **
ending_of(const struct peer *p, uint64_t id)
{
	struct ending **e;

	for (e = &endings; *e != NULL; e = &(*e)->next)
		if ((*e)->peer == p && (*e)->id == id)
			return e;
	return NULL;
}

int
workspace_owes(const struct peer *p, uint64_t id)
{
	if (p->kind == PROC_EXECD)
		return ending_of(p, id) != NULL;
	return p == asked && id != 0 &&
	       (id == listing.id || of_job(id) != NULL);
}

/* ---- removal ---- */

/* Go on with a removal. */
void
ws_advance(struct ws *w)
{
	if (w->state != WS_ENDING || w->users > 0 || w->job != 0 || w->ends > 0)
		return;
	if ((w->job = ask(SPACE_DROP, w)) != 0)
		w->state = WS_GOING;
	else if (!can_ask())
		workspace_wake(w, C_SRV_UNAVAILABLE); /* the next tick */
}

/* It stays, for now. */
static void
stays(struct ws *w, enum code code)
{
	log_warnx(
	    "workspace %s cannot be removed: %s", w->name, codes[code].code);
	w->state = WS_KEPT;
	w->idle_us = proc_now_us(); /* not at once again */
	workspace_wake(w, code);
}

/* Kill what runs there; when nobody can be asked to, it stays. */
static void
kill_or_keep(struct ws *w)
{
	ws_kill(w);
	if (w->stuck && w->ends == 0)
		stays(w, C_SRV_UNAVAILABLE);
}

void
workspace_end(struct ws *w)
{
	if (w->state == WS_KEPT) {
		w->state = WS_ENDING;
		w->tries = 0;
		kill_or_keep(w);
	}
	ws_advance(w);
}

/* That execd has nothing of it any more, or cannot help it. */
static void
ended(struct ending **at, enum code code)
{
	struct ending *e = *at;
	struct ws *w = e->ws;

	*at = e->next;
	free(e);
	w->stuck |= code != C_OK;
	if (--w->ends > 0)
		return;
	if (w->stuck && w->state == WS_ENDING && ++w->tries < TRIES)
		kill_or_keep(w);
	else if (w->stuck && w->state == WS_ENDING)
		stays(w, C_SRV_UNAVAILABLE);
	else
		ws_advance(w);
}

static void
dropped(struct ws *w, enum code code)
{
	/* a reload had what runs there killed meanwhile: once more behind that,
	 * since the answers still have its address */
	if (code == C_OK && w->ends > 0) {
		w->state = WS_ENDING;
		return;
	}
	if (code == C_OK) {
		if (w->owner != NULL)
			(void)wsfile_gone(w);
		workspace_wake(w, C_OK);
		wstab_remove(&workspaces, w);
		return;
	}
	stays(w, code);
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
		ws_kill(w);
	}
	ws_advance(w);
}

int
ws_ask_sizes(void)
{
	struct ws *w;
	int left = 0;

	for (w = workspaces.all; w != NULL; w = w->next) {
		if (w->due && w->state == WS_KEPT && w->job == 0)
			w->due = (w->job = ask(SPACE_SIZE, w)) == 0;
		left |= w->due && w->state == WS_KEPT;
	}
	return left;
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

/* Somebody has its address: what runs there, who waits for its end, a question
 * that is under way. */
static int
is_needed(const struct ws *w)
{
	return w->users > 0 || w->state != WS_KEPT || w->job != 0 ||
	       w->ends > 0;
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
		if (is_listed(a, w->name) || is_needed(w))
			continue;
		(void)wsfile_gone(w);
		wstab_remove(&workspaces, w);
	}
	for (i = 0; i < a->n; i++)
		add_unknown(&a->v[i]);
}

void
ws_list_once(void)
{
	if (listing.done || listing.id != 0 ||
	    policy_workspaces(mon.cur->policy) < 0 || !wsfile_there())
		return;
	listing.id = ask(SPACE_LIST, NULL);
}

int
ws_listed(void)
{
	return listing.done;
}

int
workspace_ready(void)
{
	ws_list_once();
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

/* DONE of an execd. */
static int
job_ended(struct peer *p, const struct imsg *m)
{
	struct rbuf b;
	uint16_t code;

	rbuf_init(&b, m->payload, m->len);
	code = rget_u16(&b);
	if (rget_end(&b) == -1 || code >= C_COUNT)
		return -1;
	ended(ending_of(p, m->id), (enum code)code);
	return 0;
}

int
workspace_job(struct peer *p, const struct imsg *m)
{
	struct ws *w = of_job(m->id);
	struct space_ans a;

	if (p->kind == PROC_EXECD)
		return job_ended(p, m);
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
		ws_advance(w); /* those that waited for their turn */
	(void)ws_ask_sizes();
	return 0;
}

void
workspace_peer_lost(const struct peer *p)
{
	struct ending **e;
	struct ws *w;

	for (e = &endings; *e != NULL;)
		if ((*e)->peer == p)
			ended(e, C_OK);
		else
			e = &(*e)->next;
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
