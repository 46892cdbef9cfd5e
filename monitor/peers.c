/*
 * SPDX-License-Identifier: ISC
 *
 * Messages of siblings that belong to no request, and what becomes of the
 * requests when a sibling is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/proc.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/work.h"
#include "monitor/workspace.h"

#define DEAF_BYTES (16U * 1024 * 1024)

static struct peer *all;

struct peer *
peer_ref(struct peer *p)
{
	p->refs++;
	return p;
}

void
peer_unref(struct peer *p)
{
	struct peer **q;

	if (--p->refs > 0)
		return;
	for (q = &all; *q != p; q = &(*q)->next)
		continue;
	*q = p->next;
	chan_free(p->chan);
	free(p);
}

struct peer *
peer_new(enum proc_kind kind, uint32_t generation, uint32_t epoch)
{
	struct peer *p;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->kind = kind;
	p->generation = generation;
	p->epoch = epoch;
	p->refs = 1; /* held while its channel lives */
	p->next = all;
	all = p;
	return p;
}

struct peer *
peer_find(enum proc_kind kind, uint32_t generation)
{
	struct peer *p;

	for (p = all; p != NULL; p = p->next)
		if (p->kind == kind && p->generation == generation &&
		    p->chan != NULL)
			return p;
	return NULL;
}

void
peer_each(enum proc_kind kind, void (*f)(struct peer *, void *), void *arg)
{
	struct peer *p;

	for (p = all; p != NULL; p = p->next)
		if (p->kind == kind && p->chan != NULL)
			f(p, arg);
}

int
peer_send(
    struct peer *p, uint16_t type, uint64_t id, int fd, const struct wbuf *w)
{
	if (p == NULL || p->chan == NULL || (w != NULL && w->err)) {
		if (fd != -1)
			close(fd);
		return -1;
	}
	return chan_send(p->chan, type, id, fd, w == NULL ? NULL : w->p,
	    w == NULL ? 0 : w->len);
}

int
listener_send(uint16_t type, uint64_t id, int fd, const struct wbuf *w)
{
	return peer_send(mon.listener, type, id, fd, w);
}

void
peer_must(
    struct peer *p, uint16_t type, uint64_t id, int fd, const struct wbuf *w)
{
	if (peer_send(p, type, id, fd, w) == -1 && p != NULL && p->chan != NULL)
		mon_anew(p, msg_name(type));
}

void
listener_answer(
    const struct req *r, uint16_t type, int fd, const struct wbuf *w)
{
	if (listener_send(type, r->lid, fd, w) == 0 || mon.listener == NULL)
		return;
	log_warnx("%s of a request is lost", msg_name(type));
	peer_must(mon.listener, LM_DROP, r->lid, -1, NULL);
}

int
peer_can_take(const struct peer *p)
{
	return p != NULL && p->ready && p->chan != NULL &&
	       chan_queued(p->chan) < CHAN_HIGH;
}

/* One answer a live request is the most that can wait. */
int
listener_is_deaf(void)
{
	size_t max = (size_t)mon.cur->conf->max_connections + 64;

	return chan_queued(mon.listener->chan) > DEAF_BYTES + max * 8192;
}

/* ---- messages that belong to no request ---- */

/* The snapshot whose roots this pathd holds: the one that waits for it. */
static struct snap *
snap_of(const struct peer *p)
{
	if (mon.next != NULL && mon.next->pathd == p &&
	    mon.next->pathd_epoch == mon.next->epoch)
		return mon.next;
	return mon.cur != NULL && mon.cur->pathd == p ? mon.cur : NULL;
}

static int
root_ok(struct snap *s, const struct root_ok *o)
{
	struct policy_root pr;

	if (o->id >= policy_nroots(s->policy))
		return -1;
	policy_root(s->policy, o->id, &pr);
	if (o->err != 0) {
		log_warnx("config.root_invalid: root %s cannot be opened by "
			  "the run user: %s",
		    pr.path, strerror(o->err));
		/* a service that starts has all its roots; one that came
		 * back without one answers for the others */
		if (!mon.announced)
			proc_exit(1);
		return s == mon.next ? 1 : 0;
	}
	return policy_set_root(s->policy, o->id, o->path);
}

int
peer_roots_ok(struct peer *p, const struct imsg *m)
{
	struct snap *s = snap_of(p);
	struct root_ok o;
	struct rbuf r;
	uint32_t n;
	int rc = 0;

	if (p->ready)
		return -1;
	if (s == NULL)
		return 0; /* its reload was given up */
	rbuf_init(&r, m->payload, m->len);
	n = rget_u32(&r);
	if (n != policy_nroots(s->policy))
		return -1;
	while (rc == 0 && n-- > 0) {
		if (root_ok_get(&r, &o) == -1)
			return -1;
		rc = root_ok(s, &o);
		root_ok_clear(&o);
	}
	if (rc == 1) {
		snap_fail(s->epoch, s->ticket,
		    "config.root_invalid: a root cannot be opened by the run "
		    "user");
		return 0;
	}
	if (rc == -1 || rget_end(&r) == -1)
		return -1;
	p->ready = 1;
	snap_worker_ready();
	return 0;
}

/* The layer that the text begins with, when there are none. */
static void
note_lacks(struct peer *p, const struct exec_hello *h)
{
	size_t n = strspn(h->text, "abcdefghijklmnopqrstuvwxyz ");

	if (h->layers == 0 && h->text[n] == ':' && n < sizeof(p->lacks))
		memcpy(p->lacks, h->text, n); /* zeroed by peer_new */
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
	p->layers = h.layers;
	note_lacks(p, &h);
	if (h.text[0] != '\0' &&
	    proc_tell(PC_PROBE_FAIL, -1, h.text, strlen(h.text)) == -1)
		log_warnx("cannot tell the parent");
	log_info("sandbox: namespaces %s, seccomp %s, landlock %s (abi %u), "
		 "cgroup %s",
	    h.layers & LAYER_NAMESPACES ? "yes" : "no",
	    h.layers & LAYER_SECCOMP ? "yes" : "no",
	    h.layers & LAYER_LANDLOCK ? "yes" : "no", h.landlock_abi,
	    h.layers & LAYER_CGROUP ? "yes" : "no");
	p->ready = 1;
	snap_worker_ready();
	return 0;
}

/* Refusals that the listener made without asking. */
int
peer_rejects(struct peer *p, const struct imsg *m)
{
	struct reject j;
	struct rbuf r;
	uint16_t n;

	rbuf_init(&r, m->payload, m->len);
	n = rget_u16(&r);
	while (!r.err && n-- > 0) {
		if (reject_get(&r, &j) == -1)
			return -1;
		if (codes[j.code].status == 401)
			audit_reject(&j);
		else
			log_debug("%u requests refused with %s", j.count,
			    codes[j.code].code);
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
	listener_answer(r, LM_PUT_FIN, -1, &w);
	wbuf_free(&w);
	ans_clear(&a);
	r->status = codes[C_SRV_UNAVAILABLE].status;
	r->code = C_SRV_UNAVAILABLE;
	r->early_fin = r->state == RS_BODY;
	req_enter(r, RS_ANSWERED);
}

void
peer_owes_nothing(struct req *r, struct peer *p)
{
	if (work_run_lost(r, p) || r->peer != p)
		return;
	req_owed(r, NULL);
	workspace_leave(&r->ws);
	if (r->is_run && !r->end_seen) {
		r->end_seen = 1;
		r->end.flags = END_LOST;
	}
	switch (r->state) {
	case RS_RESOLVE:
	case RS_REOPEN:
	case RS_WORK:
	case RS_COVER:
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

/* The worker of this request is gone. */
static void
worker_lost(struct req *r, void *arg)
{
	peer_owes_nothing(r, arg);
}

static void
withdraw(struct req *r, void *arg)
{
	if (r->holder != NULL)
		work_run_release(r);
	if (req_owed_by(r, PROC_PATHD)) {
		(void)peer_send(r->peer, MP_CANCEL, r->rid, -1, NULL);
		req_remember_cancelled(r->rid, PROC_PATHD);
	} else if (req_owed_by(r, PROC_EXECD) && !r->is_run)
		req_remember_cancelled(r->rid, PROC_EXECD);
	else if (req_owed_by(r, PROC_EXECD)) {
		(void)peer_send(r->peer, ME_CANCEL, r->rid, -1, NULL);
		/* its END still comes and is still audited */
		req_enter(r, RS_ENDING);
		req_orphan(r);
		return;
	}
	req_finish(r, "lost");
}

void
peer_gone(struct peer *p)
{
	if (p->chan == NULL)
		return;
	chan_free(p->chan);
	p->chan = NULL;
	p->ready = 0;
	if (p == mon.listener) {
		mon.listener = NULL;
		peerid_clear();
		req_each(withdraw, p);
	} else {
		proc_peer_lost(p);
		req_each(worker_lost, p);
		workspace_peer_lost(p);
	}
	peer_unref(p);
}
