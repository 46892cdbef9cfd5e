/*
 * SPDX-License-Identifier: ISC
 *
 * A request's way from plan to facts to decision to work.  The decision itself
 * is policy/'s; here is only what must be asked of whom and in which order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/log.h"
#include "monitor/mon.h"
#include "monitor/work.h"
#include "monitor/workspace.h"

/* ---- arguments as the caller gave them ---- */

int
ask_has(const struct req *r, const char *name)
{
	return args_find(&r->ask.args, name) != NULL;
}

int
ask_bool(const struct req *r, const char *name)
{
	const struct arg *a = args_find(&r->ask.args, name);

	if (a == NULL)
		return 0;
	if (a->type == A_BOOL)
		return a->i != 0;
	return a->type == A_QUERY && strcmp(a->s, "true") == 0;
}

const char *
ask_text(const struct req *r, const char *name)
{
	const struct arg *a = args_find(&r->ask.args, name);

	return a != NULL && a->s != NULL ? a->s : "";
}

/* ---- plan ---- */

/* An upload's body is an argument too: judged after the mount check. */
static enum code
check_body(const struct req *r)
{
	if (r->checking || ops[r->call.op].stream != S_PUT)
		return C_OK;
	if (r->ask.body == ASK_BODY_NONE)
		return C_ARGS_MISSING;
	/* what stands in a query too would be passed over */
	if (ask_has(r, "content") || ask_has(r, "encoding"))
		return C_ARGS_INVALID;
	return r->ask.body == ASK_BODY_BAD ? C_ARGS_INVALID : C_OK;
}

static int
is_lone_open(const struct req *r)
{
	return r->plan.nitems == 1 && !r->checking;
}

static void
send_resolve(struct req *r)
{
	struct resolve_item items[ABX_MAX_RESOLVE];
	struct resolve v = {0};
	struct wbuf w;
	size_t i;

	if (r->plan.nitems > ABX_MAX_RESOLVE ||
	    !peer_can_take(r->snap->pathd)) {
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	for (i = 0; i < r->plan.nitems; i++) {
		items[i].path = r->plan.items[i].path; /* borrowed */
		items[i].nofollow = (uint8_t)r->plan.items[i].nofollow;
		items[i].refs = r->plan.items[i].refs;
		items[i].nrefs = r->plan.items[i].nrefs;
	}
	v.v = items;
	v.n = r->plan.nitems;
	if (is_lone_open(r) && ops[r->call.op].stream == S_FILE)
		v.flags = RESOLVE_OPEN;
	else if (is_lone_open(r) && (ops[r->call.op].needs & N_COMMANDS) != 0)
		v.flags = RESOLVE_OPENDIR;
	r->wanted = work_wanted(v.flags);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	resolve_put(&w, &v);
	if (w.err) {
		wbuf_free(&w);
		answer_error(r, C_ARGS_TOO_LARGE, NULL, NULL, 0);
		return;
	}
	req_owed(r, r->snap->pathd);
	req_enter(r, RS_RESOLVE);
	if (peer_send(r->peer, MP_RESOLVE, r->rid, -1, &w) == -1) {
		req_owed(r, NULL);
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
	}
	wbuf_free(&w);
}

static void
decide(struct req *r, int *fd)
{
	uint32_t retry = 0;
	enum code c;

	if (policy_decide(
		r->snap->policy, &r->call, &r->plan, r->facts, &r->dec) == -1) {
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	r->decided = 1;
	if (r->checking) {
		core_check_answer(r);
		return;
	}
	/* a repeat is answered as the first was, whatever the files say now */
	if (r->dec.allowed && r->ask.bad_idem) {
		answer_error(r, C_ARGS_INVALID, "Idempotency-Key", NULL, 0);
		return;
	}
	if (r->dec.allowed && r->ask.bad_digest) {
		answer_error(r, C_ARGS_INVALID, "Content-Digest", NULL, 0);
		return;
	}
	if (r->dec.allowed && idem_begin(r))
		return;
	c = r->dec.code;
	if (c == C_OK)
		c = check_body(r);
	if (c == C_OK)
		c = limit_take(r, &retry);
	if (c == C_OK && workspace_touch(r) == -1)
		return;
	if (c == C_OK)
		work_start(r, fd);
	else if (c == r->dec.code)
		answer_error(r, c, r->dec.param, r->dec.reason, 0);
	else
		answer_error(r, c,
		    c == C_ARGS_MISSING || c == C_ARGS_INVALID ? "content"
							       : NULL,
		    NULL, retry);
}

void
step_plan(struct req *r)
{
	int none = -1;

	if (!r->checking) {
		r->call.op = r->ask.op;
		r->call.args = &r->ask.args;
	}
	r->call.who = &r->who;
	if (policy_plan(r->snap->policy, &r->call, &r->plan) == -1) {
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	r->planned = 1;
	if (r->plan.code != C_OK || r->plan.nitems == 0)
		decide(r, &none);
	else
		send_resolve(r);
}

void
step_facts(struct req *r, int *fd)
{
	decide(r, fd);
}
