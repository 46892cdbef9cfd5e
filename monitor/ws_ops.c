/*
 * SPDX-License-Identifier: ISC
 *
 * The operations on session workspaces.  What is refused for a session that
 * the caller does not have is the same whether somebody else has one of that
 * name or nobody: it is only looked for among his own.
 */
#include <stdlib.h>
#include <string.h>

#include "common/entry.h"
#include "common/log.h"
#include "monitor/mon.h"
#include "monitor/work.h"
#include "monitor/workspace.h"

#define LIST_ENTRIES 1000000 /* looked at for all sizes of one answer */
#define JSON_MAX (88 * 1024)

static int
is_mine(const struct req *r, const struct ws *w)
{
	return w->owner != NULL && w->state == WS_KEPT &&
	       strcmp(w->owner, r->who.id) == 0;
}

/* ---- list ---- */

static void
put_ws(struct wbuf *b, const struct ws *w, const struct space_row *row)
{
	char t[RFC3339_SIZE];

	json_raw_put(b, "{\"session\":");
	json_str_put(b, w->session, strlen(w->session));
	json_raw_put(b, ",\"bytes\":");
	json_uint_put(b, row->bytes);
	if (row->more)
		json_raw_put(b, ",\"at_least\":true");
	time_rfc3339(t, w->used, 0);
	json_raw_put(b, ",\"last_used\":\"");
	json_raw_put(b, t);
	json_raw_put(b, "\"}");
}

static char *
list_json(const struct req *r, const struct space_ans *a)
{
	const char *sep = "";
	const struct ws *w;
	char *body = NULL;
	struct wbuf b;
	size_t i;

	wbuf_init(&b, JSON_MAX);
	json_raw_put(&b, "{\"workspaces\":[");
	for (i = 0; i < a->n; i++) {
		w = wstab_find(&workspaces, a->v[i].name);
		if (w == NULL || !is_mine(r, w))
			continue;
		json_raw_put(&b, sep);
		put_ws(&b, w, &a->v[i]);
		sep = ",";
	}
	json_raw_put(&b, "]}");
	wput_u8(&b, 0);
	if (!b.err)
		body = strdup((const char *)b.p);
	wbuf_free(&b);
	return body;
}

static void
ask_sizes(struct req *r, const struct strlist *names)
{
	struct space q = {.verb = SPACE_SIZE, .max_entries = LIST_ENTRIES};
	struct wbuf b;

	q.root = (uint32_t)policy_workspaces(r->snap->policy);
	q.names = *names; /* borrowed */
	wbuf_init(&b, IMSG_MAX_PAYLOAD);
	space_put(&b, &q);
	work_send(r, r->snap->pathd, MP_SPACE, -1, &b);
	wbuf_free(&b);
}

void
workspace_list(struct req *r, int *fd)
{
	const struct space_ans none = {0};
	struct strlist names = {0};
	const struct ws *w;
	int bad = 0;

	if (policy_workspaces(r->snap->policy) >= 0)
		for (w = workspaces.all; w != NULL && bad == 0; w = w->next)
			if (is_mine(r, w))
				bad = strlist_add(
				    &names, w->name, strlen(w->name));
	if (bad == -1)
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
	else if (names.n == 0)
		answer_json(r, 200, list_json(r, &none));
	else
		ask_sizes(r, &names);
	strlist_clear(&names);
}

int
workspace_list_ans(struct req *r, struct imsg *m)
{
	struct space_ans a;
	struct rbuf b;

	rbuf_init(&b, m->payload, m->len);
	if (space_ans_get(&b, &a) == -1)
		return -1;
	if (r->call.op != OP_workspace_list || rget_end(&b) == -1) {
		space_ans_clear(&a);
		return -1;
	}
	req_owed(r, NULL);
	if (a.code == C_OK)
		answer_json(r, 200, list_json(r, &a));
	else
		answer_error(r, (enum code)a.code, NULL, NULL, 0);
	space_ans_clear(&a);
	return 0;
}

/* ---- delete ---- */

void
workspace_unwait(struct req *r)
{
	struct req **q;

	if (r->ws_wait == NULL)
		return;
	for (q = &r->ws_wait->waiters; *q != r; q = &(*q)->wait_next)
		continue;
	*q = r->wait_next;
	r->ws_wait = NULL;
}

void
workspace_wake(struct ws *w, uint16_t code)
{
	struct req *r;

	while ((r = w->waiters) != NULL) {
		workspace_unwait(r);
		if (r->state != RS_WORK)
			continue;
		if (code == C_OK)
			answer_json(r, 200, strdup("{}"));
		else
			answer_error(r, (enum code)code, "session", NULL,
			    codes[code].status == 503);
	}
}

void
workspace_delete(struct req *r, int *fd)
{
	struct ws *w = wstab_of(&workspaces, r->who.id, ask_text(r, "session"));

	if (w == NULL) {
		answer_error(r, C_ID_NOT_FOUND, "session", NULL, 0);
		return;
	}
	r->ws_wait = w;
	r->wait_next = w->waiters;
	w->waiters = r;
	req_enter(r, RS_WORK);
	workspace_end(w);
}
