/*
 * SPDX-License-Identifier: ISC
 *
 * abx-monitor: start-up, the parent's messages, and the way of every message
 * through the gate to its handler.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/jail.h"
#include "common/log.h"
#include "common/proc.h"
#include "monitor/load.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/sink.h"
#include "monitor/work.h"
#include "monitor/workspace.h"

struct mon mon;

/* ---- peers ---- */

typedef int (*req_handler)(struct req *, struct imsg *);

/* Handlers of messages that belong to a request. */
static const req_handler handlers[] = {
    [GH_CANCEL] = answer_cancel,
    [GH_FIN] = answer_fin,
    [GH_PUT_END] = answer_put_end,
    [GH_RESULT] = answer_result,
    [GH_FACTS] = worker_facts,
    [GH_PUT_ANS] = worker_put_ans,
    [GH_PUT_FIN] = worker_put_fin,
    [GH_LIST_ANS] = worker_list_ans,
    [GH_DONE] = worker_done,
    [GH_EDIT_ANS] = worker_edit_ans,
    [GH_ARCHIVE_ANS] = worker_archive_ans,
    [GH_DENIED] = work_run_denied,
    [GH_HELD] = work_run_held,
    [GH_STARTED] = worker_started,
    [GH_RUN] = worker_run,
    [GH_IN] = worker_in,
    [GH_FAILED] = worker_failed,
    [GH_END] = worker_end,
    [GH_EXEC_DONE] = proc_done,
    [GH_SPACE_ANS] = workspace_list_ans,
};

void
mon_tell_child(uint16_t type, const struct peer *p)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u8(&w, (uint8_t)p->kind);
	wput_u32(&w, p->generation);
	if (w.err || proc_tell(type, -1, w.p, w.len) == -1)
		fatalx("cannot tell the parent");
	wbuf_free(&w);
}

void
mon_broken(struct peer *p, const char *what)
{
	if (p->broken)
		return;
	p->broken = 1;
	log_warnx("%s breaks the protocol: %s", proc_name(p->kind), what);
	mon_tell_child(PC_BROKEN, p);
}

void
mon_anew(struct peer *p, const char *what)
{
	if (p->broken)
		return;
	p->broken = 1;
	log_warnx(
	    "out of memory for %s: %s begins anew", what, proc_name(p->kind));
	mon_tell_child(PC_BROKEN, p);
}

/* What execd says once to a request that is no run. */
static int
answers_once(uint16_t type)
{
	return type == ME_RUN || type == ME_DONE;
}

/* A late answer is one that is still owed to a request that was withdrawn: by
 * pathd for a number that is remembered, by execd until END. */
static int
late(const struct peer *p, const struct req *r, const struct imsg *m)
{
	if (p->kind == PROC_PATHD)
		return req_was_cancelled(
		    m->id, PROC_PATHD, m->type != MP_PUT_ANS);
	if (r != NULL && r->peer == p)
		return m->type != ME_DONE || !r->is_run;
	return answers_once(m->type) && req_was_cancelled(m->id, PROC_EXECD, 1);
}

static int
dispatch(struct peer *p, struct imsg *m, const char **why)
{
	enum gate_state state = RS_FREE;
	enum gate_handler h;
	struct proc *q = NULL;
	struct req *r = NULL;

	if (msg_check(m, why) == -1)
		return -1;
	if (!gate_unbound(m->type))
		r = p->kind == PROC_LISTENER ? req_by_lid(m->id)
					     : req_by_rid(m->id);
	else if (m->id != 0)
		return -1;
	/* a process took over the number of the request that started it */
	if (p->kind == PROC_EXECD && m->type == ME_END)
		q = proc_by_run(p, m->id);
	if (q != NULL)
		state = RS_PROCESS;
	else if (r != NULL)
		state = r->state;
	/* if anything: withdrawn, or gone on without the answer of pathd */
	if (p->kind == PROC_PATHD && !gate_unbound(m->type) &&
	    (r == NULL || r->peer != p))
		state = RS_CANCELLED;
	else if (r == NULL && p->kind == PROC_EXECD && answers_once(m->type))
		state = RS_CANCELLED;
	if (workspace_owes(p, m->id))
		state = RS_JOB;
	h = gate_check(p->kind, m->type, state);
	*why = "not permitted now";
	if (h == GH_JOB) {
		*why = "malformed";
		return workspace_job(p, m);
	}
	if (h == GH_PROCESS_END) {
		*why = "malformed";
		return proc_end(q, m);
	}
	if (h == GH_NONE || (h == GH_DROP && !late(p, r, m)) ||
	    (r != NULL && p->kind != PROC_LISTENER && h != GH_DROP &&
		r->peer != p && r->holder != p))
		return -1;
	*why = "malformed";
	switch (h) {
	case GH_DROP:
		return 0;
	case GH_REJECTS:
		return peer_rejects(p, m);
	case GH_PEER:
		return peerid_new(m);
	case GH_PEER_GONE:
		return peerid_gone(m);
	case GH_ROOTS_OK:
		return peer_roots_ok(p, m);
	case GH_HELLO:
		return peer_hello(p, m);
	case GH_ASK:
		*why = "ASK refused";
		return answer_ask(NULL, m);
	default:
		return handlers[h](r, m);
	}
}

/* There was no memory to read it.  An answer of pathd is the last that it says
 * to that request, which is answered without it; what the others say is needed
 * to know what they do. */
static int
unread(struct peer *p, const struct imsg *m)
{
	struct req *r = p->kind == PROC_PATHD ? req_by_rid(m->id) : NULL;

	if (r == NULL || r->peer != p) {
		mon_anew(p, msg_name(m->type));
		return -1;
	}
	log_warnx("out of memory for %s", msg_name(m->type));
	peer_owes_nothing(r, p);
	return 0;
}

static int
peer_msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	struct peer *p = arg;
	const char *why = "malformed";
	char what[128];

	errno = 0;
	if (dispatch(p, m, &why) == 0)
		return 0;
	if (errno == ENOMEM)
		return unread(p, m);
	snprintf(what, sizeof(what), "%s: %s", msg_name(m->type),
	    why == NULL ? "malformed" : why);
	mon_broken(p, what);
	return -1;
}

static void
peer_gone_cb(struct chan *c, int error, void *arg)
{
	struct peer *p = arg;

	if (error == EBADMSG)
		mon_broken(p, "malformed packet");
	else if (!p->broken) {
		/* without its channel it is of no use, dead or not */
		p->broken = 1;
		mon_tell_child(PC_BROKEN, p);
	}
	peer_gone(p);
}

/* ---- the parent ---- */

static int
child_up(struct imsg *m)
{
	struct rbuf r;
	struct peer *p;
	uint8_t kind;
	uint32_t gen, epoch;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	gen = rget_u32(&r);
	epoch = rget_u32(&r);
	if (rget_end(&r) == -1 || mon.cur == NULL ||
	    (kind != PROC_LISTENER && kind != PROC_PATHD && kind != PROC_EXECD))
		return -1;
	/* without one it sees its end, and comes back */
	if ((p = peer_new((enum proc_kind)kind, gen, epoch)) == NULL) {
		log_warn("channel to %s", proc_name((enum proc_kind)kind));
		return 0;
	}
	p->chan = chan_new(mon.base, m->fd, peer_msg_cb, peer_gone_cb, p);
	if (p->chan != NULL)
		m->fd = -1;
	/* a CANCEL that is lost would let a command run on */
	if (p->chan == NULL || chan_set_aside(p->chan, CHAN_OWED) == -1) {
		log_warn("channel to %s", proc_name(p->kind));
		peer_unref(p);
		return 0;
	}
	if (kind == PROC_LISTENER) {
		if (mon.listener != NULL)
			peer_gone(mon.listener);
		mon.listener = p;
		p->ready = 1;
		snap_configure_listener();
		return 0;
	}
	snap_connect(p);
	if (kind == PROC_PATHD)
		peer_must(p, MP_ROOTS, 0, -1, NULL);
	return 0;
}

static int
child_gone(const struct imsg *m)
{
	struct rbuf r;
	struct peer *p;
	uint8_t kind;
	uint32_t gen;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	gen = rget_u32(&r);
	if (rget_end(&r) == -1 || kind >= PROC_COUNT)
		return -1;
	if ((p = peer_find((enum proc_kind)kind, gen)) != NULL)
		peer_gone(p);
	return 0;
}

/* A policy to go over to; at start, the first one. */
static int
snapshot(const struct imsg *m)
{
	struct rbuf r;
	uint32_t epoch, ticket;
	uint8_t need;
	const char *why;
	int first = mon.cur == NULL;

	rbuf_init(&r, m->payload, m->len);
	epoch = rget_u32(&r);
	ticket = rget_u32(&r);
	need = rget_u8(&r);
	if (rget_end(&r) == -1)
		return -1;
	if (snap_load(m->fd, epoch, ticket, need, &why) == 0) {
		if (!first)
			snap_worker_ready();
		return 0;
	}
	if (first)
		fatalx("%s", why);
	snap_fail(epoch, ticket, why);
	return 0;
}

static int
reload_fail(const struct imsg *m)
{
	uint32_t epoch, ticket;
	char why[1024];
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	epoch = rget_u32(&r);
	ticket = rget_u32(&r);
	if (r.err)
		return -1;
	snprintf(why, sizeof(why), "%.*s", (int)r.len, (const char *)r.p);
	/* that of a snapshot may have crossed what became of it */
	if (epoch == 0 || (mon.next != NULL && mon.next->epoch == epoch))
		snap_fail(epoch, ticket, why);
	return 0;
}

static int
mon_parent_msg(struct imsg *m)
{
	switch (m->type) {
	case PC_SNAPSHOT:
		return snapshot(m);
	case PC_RELOAD_FAIL:
		return mon.cur == NULL ? -1 : reload_fail(m);
	case PC_POSTURE:
		return host_note(m);
	case PC_CHILD_UP:
		return child_up(m);
	case PC_CHILD_GONE:
		return child_gone(m);
	case PC_AUDIT_FD:
		sink_set(m->payload[0], m->fd);
		m->fd = -1;
		return 0;
	case PC_CONTROL:
		control_init(m->fd);
		m->fd = -1;
		return 0;
	default:
		return -1;
	}
}

/* ---- start ---- */

static int
mon_conf(const struct proc_conf *pc, struct rbuf *r)
{
	if (strlist_get(r, &mon.sinks, 16, ABX_PATH_MAX + 16) == -1 ||
	    strlist_get(r, &mon.protect, 256, ABX_PATH_MAX) == -1)
		return -1;
	mon.starter = rget_u32(r);
	mon.control_gid = rget_u32(r);
	return r->err ? -1 : 0;
}

/* jansson seeds its hash tables from a file on first use. */
static void
mon_open(const struct proc_conf *pc)
{
	core_init();
	wsfile_open();
}

static int
mon_fd(enum proc_fd kind, uint32_t index, int fd)
{
	if (kind != PFD_SESSIONS || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1)
		return -1;
	return wsfile_fd(index, fd);
}

static void
mon_jail(const struct proc_conf *pc, struct jail *j)
{
	j->landlock = 1;
	j->calls = monitor_calls;
	j->nofile = ABX_NOFILE;
}

static void
mon_start(struct event_base *base, int sock)
{
	mon.base = base;
	mon.start_us = proc_now_us();
	random_bytes(mon.hmac_key, sizeof(mon.hmac_key));
	random_bytes(mon.argv_key, sizeof(mon.argv_key));
	audit_init();
	sink_init(mon.base, mon.sinks.n);
	proc_init();
	workspace_init();
}

static void
mon_shutdown(void)
{
	workspace_close();
	proc_exit(0);
}

int
main(int argc, char **argv)
{
	static const struct proc_ops ops_table = {
	    .name = "abx-monitor",
	    .conf = mon_conf,
	    .fd = mon_fd,
	    .open = mon_open,
	    .jail = mon_jail,
	    .start = mon_start,
	    .parent_msg = mon_parent_msg,
	    .shutdown = mon_shutdown,
	};

	if (argc > 1 && strcmp(argv[1], "-L") == 0)
		return load_main(argc, argv);
	return proc_main(&ops_table, argc, argv);
}
