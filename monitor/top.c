/*
 * SPDX-License-Identifier: ISC
 *
 * What is going on right now, for abxctl top: commands, processes and other
 * requests, whose they are and since when.  Ids only as their first characters,
 * and of a command only its first word.  And for abxctl sessions the
 * workspaces that are kept.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/entry.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/proctab.h"
#include "monitor/workspace.h"

#define TEXT_MAX (80 * 1024)
#define SESSIONS_MAX 60
#define ROWS_MAX 80 /* so that the answer fits into its message */
#define NAME_MAX_SHOWN 64
#define MARK_LEN 6 /* of an id */

struct top {
	struct wbuf *w;
	size_t rows, more;
	int runs; /* commands now; else all that is no command */
};

static void
put_text(struct wbuf *w, const char *name, const char *text, size_t max)
{
	json_raw_put(w, name);
	json_str_put(w, text, strnlen(text, max));
}

/* One row; 0 when there is no room for it. */
static int
row(struct top *t, const char *kind, const char *id, const char *who,
    const char *op, const char *argv0, uint64_t age_us)
{
	struct wbuf *w = t->w;

	if (t->rows == ROWS_MAX) {
		t->more++;
		return 0;
	}
	json_raw_put(w, t->rows++ == 0 ? "{" : ",{");
	put_text(w, "\"kind\":", kind, NAME_MAX_SHOWN);
	put_text(w, ",\"id\":", id, MARK_LEN);
	put_text(w, ",\"principal\":", who, NAME_MAX_SHOWN);
	put_text(w, ",\"op\":", op, NAME_MAX_SHOWN);
	if (argv0 != NULL)
		put_text(w, ",\"argv0\":", argv0, NAME_MAX_SHOWN);
	json_raw_put(w, ",\"age_ms\":");
	json_uint_put(w, age_us / 1000);
	json_raw_put(w, "}");
	return 1;
}

static void
request(struct req *r, void *arg)
{
	struct top *t = arg;
	const struct strlist *argv = &r->dec.spawn.argv;
	int command = r->call.op == OP_commands_run && argv->n > 0;

	/* its id stands behind "r-" */
	if (command != t->runs || r->call.op == OP_NONE || r->who.id == NULL)
		return;
	(void)row(t, command ? "run" : "request", r->ask.reqid + 2, r->who.id,
	    ops[r->call.op].id, command ? argv->v[0] : NULL,
	    proc_now_us() - r->start_us);
}

static void
processes(struct top *t)
{
	const struct proc *p;
	int64_t now = (int64_t)time(NULL);

	for (p = proc_first(); p != NULL; p = p->next)
		if (p->state == PROC_RUNNING)
			(void)row(t, "process", p->id, p->owner,
			    "process.start", p->argv0,
			    now > p->started
				? (uint64_t)(now - p->started) * 1000000
				: 0);
}

/* The text as a new string, NULL out of memory; frees the writer. */
static char *
text_end(struct wbuf *w, size_t more)
{
	json_raw_put(w, "],\"more\":");
	json_uint_put(w, more);
	json_raw_put(w, "}");
	return wbuf_text(w);
}

char *
top_text(void)
{
	struct wbuf w;
	struct top t = {.w = &w, .runs = 1};

	wbuf_init(&w, TEXT_MAX);
	json_raw_put(&w, "{\"rows\":[");
	req_each(request, &t);
	processes(&t);
	t.runs = 0;
	req_each(request, &t);
	return text_end(&w, t.more);
}

/* ---- sessions ---- */

static void
session_put(struct wbuf *w, const struct ws *ws)
{
	static const char *const words[] = {
	    [WS_KEPT] = "kept", [WS_ENDING] = "ending", [WS_GOING] = "going"};
	char t[RFC3339_SIZE];

	time_rfc3339(t, ws->used, 0);
	put_text(w, "{\"principal\":", ws->owner, NAME_MAX_SHOWN);
	put_text(w, ",\"session\":", ws->session, ABX_ID_MAX);
	put_text(w, ",\"state\":", words[ws->state], NAME_MAX_SHOWN);
	put_text(w, ",\"last_used\":", t, sizeof(t));
	json_raw_put(w, ",\"running\":");
	json_uint_put(w, ws->users);
	json_raw_put(w, "}");
}

char *
sessions_text(void)
{
	const struct ws *ws;
	struct wbuf w;
	size_t rows = 0, more = 0;

	wbuf_init(&w, TEXT_MAX);
	json_raw_put(&w, "{\"sessions\":[");
	for (ws = workspaces.all; ws != NULL; ws = ws->next) {
		if (ws->owner == NULL)
			continue; /* nobody's, about to go */
		if (rows == SESSIONS_MAX) {
			more++;
			continue;
		}
		if (rows++ > 0)
			json_raw_put(&w, ",");
		session_put(&w, ws);
	}
	return text_end(&w, more);
}
