/*
 * SPDX-License-Identifier: ISC
 *
 * The listener's side of the monitor: twins of listener/ask.c.  Takes
 * questions in, sends the one answer out, sees requests end.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/work.h"
#include "monitor/workspace.h"

/* The arguments of a large ask, from its sealed memfd: 0, -1 when they are
 * none, 1 when there is no memory for them, which is not the listener's fault.
 */
static int
args_from_fd(struct req *q, int fd)
{
	struct ask *a = &q->ask;
	struct rbuf r;
	struct stat st;
	void *p;
	int rc;

	if (fstat(fd, &st) == -1 || st.st_size <= 0 ||
	    st.st_size > (off_t)ABX_BODY_MAX ||
	    req_take_body(q, (uint64_t)st.st_size) == -1)
		return -1;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return errno == ENOMEM ? 1 : -1;
	rbuf_init(&r, p, (size_t)st.st_size);
	errno = 0;
	if ((rc = args_get(&r, &a->args)) == -1 && errno == ENOMEM)
		rc = 1;
	if (rc == 0 && rget_end(&r) == -1) {
		args_clear(&a->args);
		rc = -1;
	}
	munmap(p, (size_t)st.st_size);
	return rc;
}

/* As args_from_fd; at 1 the rest of the ask is there. */
static int
ask_decode(struct req *r, struct imsg *m)
{
	struct rbuf b;

	rbuf_init(&b, m->payload, m->len);
	if (ask_get(&b, &r->ask) == -1 || rget_end(&b) == -1)
		return -1;
	if ((r->ask.args_in_fd != 0) != (m->fd != -1))
		return -1;
	if (r->ask.op != OP_NONE && r->ask.op >= OP_COUNT)
		return -1;
	return m->fd == -1 ? r->ask.unread : args_from_fd(r, m->fd);
}

int
answer_ask(struct req *none, struct imsg *m)
{
	struct peer *p = mon.listener;
	struct req *r;
	enum code c;
	int rc;

	if (m->id <= p->last_id || listener_is_deaf() ||
	    req_count() - req_ending() >=
		(size_t)mon.cur->conf->max_connections + 64)
		return -1;
	p->last_id = m->id;
	if ((r = req_new(m->id)) == NULL)
		return -1;
	if ((rc = ask_decode(r, m)) == -1) {
		req_finish(r, NULL);
		return -1;
	}
	if ((c = principal_of(r)) == C_OK && rc == 1)
		c = C_SRV_UNAVAILABLE;
	if (c != C_OK)
		answer_error(r, c, NULL, NULL, 0);
	else {
		req_own(r);
		step_plan(r);
	}
	return 0;
}

/* ---- the answer ---- */

void
answer_send(struct req *r, struct ans *a, int fd)
{
	struct wbuf w;

	r->status = a->status;
	r->code = (enum code)a->code;
	req_enter(r, a->kind == ANS_PUT ? RS_BODY : RS_ANSWERED);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	ans_put(&w, a);
	if (w.err && fd == -1 && a->code == C_OK) {
		/* whoever asked must not wait for ever */
		wbuf_free(&w);
		log_warnx("an answer to %s does not fit, or there is no memory",
		    ops[r->ask.op].id);
		answer_error(r, C_SRV_INTERNAL, NULL, NULL, 0);
		return;
	}
	listener_answer(r, LM_ANS, fd, &w);
	wbuf_free(&w);
	if (a->kind == ANS_JSON)
		idem_done(r, a->status, a->code, a->body);
}

void
answer_json(struct req *r, uint16_t status, char *body)
{
	struct ans a = {0};

	if (body == NULL) {
		answer_error(r, C_SRV_INTERNAL, NULL, NULL, 0);
		return;
	}
	a.kind = ANS_JSON;
	a.status = status;
	a.body = body;
	answer_send(r, &a, -1);
	ans_clear(&a);
}

/* ,"name":"value", or with the brace that opens the object. */
static void
put_member(struct wbuf *w, const char *name, const char *value)
{
	json_raw_put(w, w->len == 0 ? "{\"" : ",\"");
	json_raw_put(w, name);
	json_raw_put(w, "\":");
	if (value != NULL)
		json_str_put(w, value, strlen(value));
}

/* Names of the command policy, which everybody may know. */
static void
put_rules(struct wbuf *w, const struct strlist *rules)
{
	size_t i;

	put_member(w, "rules", NULL);
	json_raw_put(w, "[");
	for (i = 0; i < rules->n; i++) {
		if (i > 0)
			json_raw_put(w, ",");
		json_str_put(w, rules->v[i], strlen(rules->v[i]));
	}
	json_raw_put(w, "]");
}

/* For an administrator: parameter, reason, and the rule's place. */
static void
put_admin(
    struct wbuf *w, const struct req *r, const char *param, const char *reason)
{
	if (param != NULL)
		put_member(w, "param", param);
	if (reason != NULL)
		put_member(w, "reason", reason);
	put_member(w, "rule",
	    policy_rule_origin(r->snap->policy, (size_t)r->dec.rule));
}

/* The details of an error as JSON, or NULL for the usual ones. */
static char *
details_text(
    const struct req *r, enum code c, const char *param, const char *reason)
{
	struct wbuf w;
	char *out = NULL;

	wbuf_init(&w, 16 * 1024);
	if (c == C_POL_COMMAND_BLOCKED)
		put_rules(&w, &r->dec.rules);
	if (r->decided && r->dec.rule >= 0 &&
	    principal_has_role(&r->who, "admin"))
		put_admin(&w, r, param, reason);
	if (w.len > 0)
		wput_raw(&w, "}", 2); /* with the NUL */
	if (!w.err) {
		out = (char *)w.p;
		w.p = NULL;
	}
	wbuf_free(&w);
	return out;
}

void
answer_error(struct req *r, enum code c, const char *param, const char *reason,
    uint32_t retry)
{
	char *details = details_text(r, c, param, reason);
	struct ans a = {0};
	const char *op;

	a.kind = ANS_JSON;
	a.code = (uint16_t)c;
	a.status = codes[c].status;
	if (c == C_IDEM_MISMATCH)
		a.flags = ANS_NO_RETRY;
	if (retry != 0) {
		a.flags = ANS_RETRY;
		a.retry_after = retry;
	}
	/* a stranger does not learn that the route is one */
	op = r->ask.op == OP_NONE || a.status == 401 ? NULL : ops[r->ask.op].id;
	a.body = code_body(c, r->ask.reqid, op, reason, param, details);
	free(details);
	answer_send(r, &a, -1);
	ans_clear(&a);
}

/* ---- the rest of a request's life ---- */

int
answer_put_end(struct req *r, struct imsg *m)
{
	struct rbuf b;
	struct wbuf w;
	int whole;

	rbuf_init(&b, m->payload, m->len);
	rget_u64(&b);
	whole = rget_bool(&b);
	if (rget_end(&b) == -1)
		return -1;
	if (r->state == RS_ANSWERED) {
		/* crossed an early PUT_FIN on the way, once */
		if (!r->early_fin)
			return -1;
		r->early_fin = 0;
		return 0;
	}
	wbuf_init(&w, 16);
	wput_raw(&w, m->payload, m->len);
	r->put_whole = whole;
	req_enter(r, RS_COMMIT);
	if (peer_send(r->peer, MP_PUT_END, r->rid, -1, &w) == -1 &&
	    r->peer->chan != NULL) {
		/* it is not committed, and will not be */
		peer_must(r->peer, MP_CANCEL, r->rid, -1, NULL);
		req_remember_cancelled(r->rid, PROC_PATHD);
		peer_owes_nothing(r, r->peer);
	}
	wbuf_free(&w);
	return 0;
}

/* What a captured run was answered; only a key asks for it, and once. */
int
answer_result(struct req *r, struct imsg *m)
{
	char *body;

	if (!r->is_run || r->idem == NULL ||
	    memchr(m->payload, '\0', m->len) != NULL)
		return -1;
	if ((body = strndup((const char *)m->payload, m->len)) == NULL)
		return 0; /* then it is not kept */
	idem_done(r, 200, C_OK, body);
	free(body);
	return 0;
}

int
answer_cancel(struct req *r, struct imsg *m)
{
	if (r->holder != NULL)
		work_run_release(r);
	else if (req_owed_by(r, PROC_PATHD)) {
		(void)peer_send(r->peer, MP_CANCEL, r->rid, -1, NULL);
		req_remember_cancelled(r->rid, PROC_PATHD);
		req_owed(r, NULL);
	} else if (req_owed_by(r, PROC_EXECD) && !r->is_run) {
		/* only an answer; it comes or it does not */
		req_remember_cancelled(r->rid, PROC_EXECD);
		req_owed(r, NULL);
	} else if (req_owed_by(r, PROC_EXECD))
		(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
	else
		idem_leave(r);
	proc_unwait(r);
	workspace_unwait(r);
	req_enter(r, RS_CANCELLED);
	return 0;
}

const char *
answer_outcome(const struct req *r)
{
	if (r->orphan || (r->is_run && (r->end.flags & END_LOST) != 0))
		return "lost";
	switch (r->fin.outcome) {
	case FIN_OK:
		/* the caller was told so, and of what */
		if (r->is_run && (r->end.flags & END_CANCELLED) != 0)
			return "cancelled";
		return "ok";
	case FIN_CANCELLED:
		return "cancelled";
	case FIN_CLIENT_GONE:
		return "client_gone";
	default:
		return "error";
	}
}

int
answer_fin(struct req *r, struct imsg *m)
{
	struct rbuf b;

	rbuf_init(&b, m->payload, m->len);
	if (fin_get(&b, &r->fin) == -1 || rget_end(&b) == -1)
		return -1;
	r->fin_seen = 1;
	if (req_owed_by(r, PROC_EXECD)) {
		/* nobody reads a captured run any more */
		if (r->state == RS_ANSWERED && r->fin.outcome != FIN_OK)
			(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
		req_enter(r, RS_ENDING);
		return 0;
	}
	req_finish(r, answer_outcome(r));
	return 0;
}
