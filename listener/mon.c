/*
 * SPDX-License-Identifier: ISC
 *
 * What the monitor says, one row a message and one a kind of answer.  A
 * message that is not expected now ends this process, except for what
 * crossed a CANCEL on its way.
 */
#include "listener/mon.h"

#include "common/log.h"
#include "common/msg.h"
#include "common/payload.h"
#include "common/proc.h"
#include "listener/ask.h"
#include "listener/conn.h"
#include "listener/get.h"
#include "listener/list.h"
#include "listener/listener.h"
#include "listener/peer.h"
#include "listener/put.h"
#include "listener/run.h"
#include "listener/send.h"
#include "listener/watch.h"

#include <errno.h>
#include <string.h>

/* Answer with what the monitor wrote. */
static int
ans_json(struct conn *c, struct ans *a, int *fd)
{
	struct reply r = {.status = a->status,
	    .type = "application/json",
	    .retry_after = a->flags & ANS_RETRY ? a->retry_after : 0,
	    .www_auth = a->status == 401,
	    .no_retry = (a->flags & ANS_NO_RETRY) != 0};

	c->req.busy = 0;
	send_body(c, &r, a->body, strlen(a->body));
	return 0;
}

/* One row a kind; the handler takes the descriptor by setting it to -1.  One
 * that is not what the kind says fails at its first use. */
static const struct {
	int (*handle)(struct conn *, struct ans *, int *fd);
	int has_fd;
} kinds[] = {
    [ANS_JSON] = {ans_json, 0},
    [ANS_FILE] = {get_begin, 1},
    [ANS_PUT] = {put_begin, 1},
    [ANS_LIST] = {list_begin, 1},
    [ANS_BYTES] = {list_begin, 1},
    [ANS_WATCH] = {watch_begin, 1},
    [ANS_RUN] = {run_begin, 1},
};

static int
on_ans(struct conn *c, struct imsg *m)
{
	struct ans a;
	struct rbuf r;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (ans_get(&r, &a) == -1)
		return -1;
	if (rget_end(&r) == 0 && c->state == CONN_WAIT &&
	    kinds[a.kind].has_fd == (m->fd != -1))
		rc = kinds[a.kind].handle(c, &a, &m->fd);
	ans_clear(&a);
	return rc;
}

static int
on_put_fin(struct conn *c, struct imsg *m)
{
	struct ans a;
	struct rbuf r;
	enum code code;
	int rc = -1;

	rbuf_init(&r, m->payload, m->len);
	if (ans_get(&r, &a) == -1)
		return -1;
	if (rget_end(&r) == 0 && a.kind == ANS_JSON &&
	    (c->state == CONN_PUT || c->state == CONN_PUT_END)) {
		code = put_finish(c);
		rc = 0;
		if (code == C_OK)
			rc = ans_json(c, &a, NULL);
		else
			send_failure(c, code);
		c->req.busy = 0;
	}
	ans_clear(&a);
	return rc;
}

static int
on_run_in(struct conn *c, struct imsg *m)
{
	return run_stdin(c, &m->fd);
}

static int
on_conf(struct imsg *m)
{
	struct lconf fresh;
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	if (lconf_get(&r, &fresh) == -1)
		return -1;
	if (rget_end(&r) == -1) {
		lconf_clear(&fresh);
		return -1;
	}
	lconf_clear(&lconf);
	lconf = fresh;
	lconf.max_connections = listener_bound(lconf.max_connections);
	lconf.max_pre_auth = listener_bound(lconf.max_pre_auth);
	explicit_bzero(&fresh, sizeof(fresh));
	listener_configured();
	return 0;
}

static const struct {
	uint16_t type;
	int (*handle)(struct conn *, struct imsg *);
} rows[] = {
    {LM_ANS, on_ans},
    {LM_RUN_IN, on_run_in},
    {LM_PUT_FIN, on_put_fin},
};

int
mon_msg(struct chan *ch, struct imsg *m, void *arg)
{
	const struct msg_row *row = msg_row(m->type);
	struct conn *c;
	size_t i;

	/* the monitor has verified what kind of descriptor it passes on; to
	 * ask the kernel again would cost as much as sending the answer */
	if (row == NULL || m->len < row->min || m->len > row->max ||
	    (row->fd == FDK_NONE && m->fd != -1)) {
		log_warnx("bad %s from the monitor", msg_name(m->type));
		return -1;
	}
	if (m->type == LM_CONF && on_conf(m) == 0)
		return 0;
	if (m->type == LM_CONF) {
		log_warn("cannot take %s", msg_name(m->type));
		return -1;
	}
	if (m->type == LM_PEER_ANS)
		return peer_answer(m);
	for (i = 0; i < nitems(rows); i++)
		if (rows[i].type == m->type)
			break;
	c = ask_find(m->id);
	if (m->type == LM_DROP) {
		/* its principal is gone; the end may have crossed this */
		if (c != NULL)
			conn_kill(c, FIN_CANCELLED);
		return 0;
	}
	if (i == nitems(rows) || (c == NULL && !ask_cancelled(m->id))) {
		log_warnx("unexpected %s from the monitor", msg_name(m->type));
		return -1;
	}
	if (c == NULL)
		return 0;
	errno = 0;
	if (rows[i].handle(c, m) == -1) {
		if (errno == ENOMEM) {
			log_warnx("out of memory for %s", msg_name(m->type));
			conn_kill(c, FIN_ERROR);
			return 0;
		}
		log_warnx("bad %s from the monitor", msg_name(m->type));
		return -1;
	}
	conn_do(c);
	return 0;
}

void
mon_gone(struct chan *ch, int error, void *arg)
{
	if (error != 0 && error != EPIPE)
		log_warnx("the monitor's channel failed");
	proc_exit(1);
}
