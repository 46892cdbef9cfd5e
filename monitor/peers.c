/*
 * SPDX-License-Identifier: ISC
 *
 * Messages of siblings that belong to no request, and what becomes of the
 * requests when a sibling is lost.
 */
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"

static int
root_ok(const struct root_ok *o)
{
	struct policy_root pr;

	if (o->id >= policy_nroots(mon.policy))
		return -1;
	policy_root(mon.policy, o->id, &pr);
	if (o->err != 0) {
		log_warnx("config.root_invalid: root %s cannot be opened by "
			  "the run user: %s",
		    pr.path, strerror(o->err));
		/* a service that starts has all its roots; one that came
		 * back without one answers for the others */
		if (!mon.announced)
			proc_exit(1);
		return 0;
	}
	return policy_set_root(mon.policy, o->id, o->path);
}

int
peer_roots_ok(struct peer *p, const struct imsg *m)
{
	struct root_ok o;
	struct rbuf r;
	uint32_t n;
	int rc = 0;

	if (p->ready)
		return -1;
	rbuf_init(&r, m->payload, m->len);
	n = rget_u32(&r);
	if (n != policy_nroots(mon.policy))
		return -1;
	while (rc == 0 && n-- > 0) {
		if (root_ok_get(&r, &o) == -1)
			return -1;
		rc = root_ok(&o);
		root_ok_clear(&o);
	}
	if (rc == -1 || rget_end(&r) == -1)
		return -1;
	p->ready = 1;
	mon_maybe_ready();
	return 0;
}

int
peer_hello(struct peer *p, const struct imsg *m)
{
	struct exec_hello h;
	struct rbuf r;

	if (p->ready)
		return -1;
	rbuf_init(&r, m->payload, m->len);
	if (exec_hello_get(&r, &h) == -1 || rget_end(&r) == -1)
		return -1;
	mon.layers = h.layers;
	if (h.text[0] != '\0' &&
	    proc_tell(PC_PROBE_FAIL, -1, h.text, strlen(h.text)) == -1)
		log_warnx("cannot tell the parent");
	log_info("sandbox: namespaces %s, seccomp %s, landlock %s (abi %u)",
	    h.layers & LAYER_NAMESPACES ? "yes" : "no",
	    h.layers & LAYER_SECCOMP ? "yes" : "no",
	    h.layers & LAYER_LANDLOCK ? "yes" : "no", h.landlock_abi);
	p->ready = 1;
	mon_maybe_ready();
	return 0;
}

/* Refusals that the listener made without asking. */
int
peer_rejects(struct peer *p, const struct imsg *m)
{
	struct rbuf r;
	uint16_t n, code;
	uint32_t count;

	rbuf_init(&r, m->payload, m->len);
	n = rget_u16(&r);
	while (!r.err && n-- > 0) {
		code = rget_u16(&r);
		count = rget_u32(&r);
		if (r.err || code >= C_COUNT || code == C_OK)
			return -1;
		if (codes[code].status == 401)
			audit_rejects((enum code)code, count);
		else
			log_debug("%u requests refused with %s", count,
			    codes[code].code);
	}
	return rget_end(&r);
}

/* ---- loss ---- */

static void
fail_upload(struct req *r)
{
	struct ans a = {0};
	struct wbuf w;

	a.kind = ANS_JSON;
	a.code = C_SRV_UNAVAILABLE;
	a.status = codes[a.code].status;
	a.body =
	    code_body(a.code, r->ask.reqid, r->ask.opname, NULL, NULL, NULL);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	ans_put(&w, &a);
	if (mon_send(PROC_LISTENER, LM_PUT_FIN, r->lid, -1, &w) == -1)
		log_warnx("cannot answer an upload");
	wbuf_free(&w);
	ans_clear(&a);
	r->status = codes[C_SRV_UNAVAILABLE].status;
	r->code = C_SRV_UNAVAILABLE;
	r->early_fin = r->state == RS_BODY;
	req_enter(r, RS_ANSWERED);
}

/* The worker of this request is gone. */
static void
worker_lost(struct req *r, void *arg)
{
	const struct peer *p = arg;

	if (r->worker != p->kind)
		return;
	r->worker = PROC_PARENT;
	if (r->is_run && !r->end_seen) {
		r->end_seen = 1;
		r->end.flags = END_LOST;
	}
	switch (r->state) {
	case RS_RESOLVE:
	case RS_REOPEN:
	case RS_WORK:
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		break;
	case RS_BODY:
	case RS_COMMIT:
		fail_upload(r);
		break;
	case RS_ENDING:
		req_finish(r, "lost");
		break;
	default:
		break; /* FIN will end it */
	}
}

static void
withdraw(struct req *r, void *arg)
{
	if (r->worker == PROC_PATHD) {
		(void)mon_send(PROC_PATHD, MP_CANCEL, r->rid, -1, NULL);
		req_remember_cancelled(r->rid);
	} else if (r->worker == PROC_EXECD) {
		(void)mon_send(PROC_EXECD, ME_CANCEL, r->rid, -1, NULL);
		if (!r->fin_seen) {
			/* its END still comes and is still audited */
			r->fin_seen = 1;
			req_enter(r, RS_ENDING);
		}
		req_orphan(r);
		return;
	}
	req_finish(r, "lost");
}

void
peer_gone(struct peer *p)
{
	chan_free(p->chan);
	p->chan = NULL;
	p->ready = 0;
	if (p->kind == PROC_LISTENER)
		req_each(withdraw, p);
	else
		req_each(worker_lost, p);
}
