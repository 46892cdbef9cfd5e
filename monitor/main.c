/*
 * SPDX-License-Identifier: ISC
 *
 * abx-monitor: start-up, the parent's messages, and the way of every message
 * through the gate to its handler.
 */
#include <sys/stat.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "common/hash.h"
#include "common/jail.h"
#include "common/log.h"
#include "common/proc.h"
#include "monitor/load.h"
#include "monitor/mon.h"

#define POLICY_MAX (32U * 1024 * 1024)

struct mon mon;

/* ---- peers ---- */

typedef int (*req_handler)(struct req *, struct imsg *);

/* Handlers of messages that belong to a request. */
static const req_handler handlers[] = {
    [GH_CANCEL] = answer_cancel,
    [GH_FIN] = answer_fin,
    [GH_PUT_END] = answer_put_end,
    [GH_FACTS] = worker_facts,
    [GH_PUT_ANS] = worker_put_ans,
    [GH_PUT_FIN] = worker_put_fin,
    [GH_LIST_ANS] = worker_list_ans,
    [GH_DONE] = worker_done,
    [GH_STARTED] = worker_started,
    [GH_RUN] = worker_run,
    [GH_IN] = worker_in,
    [GH_FAILED] = worker_failed,
    [GH_END] = worker_end,
};

void
mon_broken(struct peer *p, const char *what)
{
	struct wbuf w;

	if (p->broken)
		return;
	p->broken = 1;
	log_warnx("%s breaks the protocol: %s", proc_name(p->kind), what);
	wbuf_init(&w, 16);
	wput_u8(&w, (uint8_t)p->kind);
	wput_u32(&w, p->generation);
	if (w.err || proc_tell(PC_BROKEN, -1, w.p, w.len) == -1)
		fatalx("cannot tell the parent");
	wbuf_free(&w);
}

int
mon_send(enum proc_kind kind, uint16_t type, uint64_t id, int fd,
    const struct wbuf *w)
{
	struct chan *c = mon.peers[kind].chan;

	if (c == NULL || (w != NULL && w->err)) {
		if (fd != -1)
			close(fd);
		return -1;
	}
	return chan_send(
	    c, type, id, fd, w == NULL ? NULL : w->p, w == NULL ? 0 : w->len);
}

static int
dispatch(struct peer *p, struct imsg *m, const char **why)
{
	enum gate_state state = RS_FREE;
	enum gate_handler h;
	struct req *r = NULL;

	if (msg_check(m, why) == -1)
		return -1;
	if (!gate_unbound(m->type))
		r = p->kind == PROC_LISTENER ? req_by_lid(m->id)
					     : req_by_rid(m->id);
	else if (m->id != 0)
		return -1;
	if (r != NULL)
		state = r->state;
	else if (p->kind != PROC_LISTENER && !gate_unbound(m->type) &&
		 req_was_cancelled(m->id))
		return 0;
	h = gate_check(p->kind, m->type, state);
	*why = "not permitted now";
	if (h == GH_NONE || (r != NULL && p->kind != PROC_LISTENER &&
				h != GH_DROP && r->worker != p->kind))
		return -1;
	*why = "malformed";
	switch (h) {
	case GH_DROP:
		return 0;
	case GH_REJECTS:
		return peer_rejects(p, m);
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

static int
peer_msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	struct peer *p = arg;
	const char *why = "malformed";
	char what[128];

	if (dispatch(p, m, &why) == 0)
		return 0;
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
	peer_gone(p);
}

void
peer_up(struct peer *p, int sock, uint32_t generation)
{
	if (p->chan != NULL)
		peer_gone(p);
	p->generation = generation;
	p->ready = 0;
	p->broken = 0;
	p->last_id = 0;
	p->chan = chan_new(mon.base, sock, peer_msg_cb, peer_gone_cb, p);
	if (p->chan == NULL)
		fatal("channel to %s", proc_name(p->kind));
}

/* ---- the parent ---- */

static void
policy_load(int fd)
{
	struct conf_source src = {"policy", LAYER_CANON, NULL, 0};
	struct findings found = {0};
	struct stat st;
	char *text;
	ssize_t n;
	size_t i;

	if (fstat(fd, &st) == -1 || st.st_size <= 0 ||
	    st.st_size > (off_t)POLICY_MAX ||
	    (text = malloc((size_t)st.st_size + 1)) == NULL)
		fatalx("policy");
	n = pread(fd, text, (size_t)st.st_size, 0);
	if (n != st.st_size)
		fatal("policy");
	text[n] = '\0';
	src.data = text;
	src.len = (size_t)n;
	mon.conf = conf_load(&src, 1, NULL, &found);
	if (mon.conf == NULL || findings_block(&found, 1))
		fatalx("the policy cannot be read: %s",
		    found.n > 0 ? found.v[0].msg : "no memory");
	freezero(text, (size_t)n + 1);
	if ((mon.policy = policy_new(mon.conf, &found)) == NULL ||
	    conf_revision(mon.conf, mon.revision) == -1)
		fatalx("the policy cannot be compiled");
	for (i = 0; i < mon.protect.n; i++)
		if (policy_protect(mon.policy, mon.protect.v[i]) == -1)
			fatalx("policy_protect");
	findings_clear(&found);
}

void
mon_maybe_ready(void)
{
	if (mon.announced || !mon.peers[PROC_PATHD].ready ||
	    !mon.peers[PROC_EXECD].ready)
		return;
	mon.announced = 1;
	if (proc_tell(PC_MON_READY, -1, mon.revision, 64) == -1)
		fatalx("cannot tell the parent");
}

static void
send_lconf(void)
{
	const struct conf *c = mon.conf;
	struct lconf l = {0};
	uint8_t mac[SHA256_LEN];
	struct wbuf w;
	size_t i;

	memcpy(l.hmac_key, mon.hmac_key, sizeof(l.hmac_key));
	if (c->ntokens > 0 &&
	    (l.tokens = calloc(c->ntokens, sizeof(*l.tokens))) == NULL)
		fatal("calloc");
	for (i = 0; i < c->ntokens; i++) {
		hmac_sha256(mon.hmac_key, sizeof(mon.hmac_key),
		    c->tokens[i].digest, SHA256_LEN, mac);
		l.tokens[l.ntokens++] =
		    (uint32_t)mac[0] | (uint32_t)mac[1] << 8 |
		    (uint32_t)mac[2] << 16 | (uint32_t)mac[3] << 24;
	}
	l.open = (uint8_t)(c->open_mode != 0);
	l.anonymous = (uint8_t)(c->anonymous != 0);
	l.anonymous_health = (uint8_t)(c->anonymous_health != 0);
	l.header_timeout_ms = c->header_timeout_ms;
	l.head_deadline_ms = c->head_deadline_ms;
	l.idle_timeout_ms = c->idle_timeout_ms;
	l.max_pre_auth = c->max_pre_auth;
	l.max_connections = c->max_connections;
	l.max_header_bytes = c->max_header_bytes;
	l.max_request_bytes = c->max_request_bytes;
	l.allowed_hosts = c->allowed_hosts; /* borrowed for the encoding */
	l.allowed_origins = c->allowed_origins;
	l.trusted_proxies = c->trusted_proxies;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	lconf_put(&w, &l);
	if (mon_send(PROC_LISTENER, LM_CONF, 0, -1, &w) == -1)
		log_warnx("cannot configure the listener");
	wbuf_free(&w);
	free(l.tokens);
	explicit_bzero(&l, sizeof(l));
}

static int
child_up(struct imsg *m)
{
	struct rbuf r;
	uint8_t kind;
	uint32_t gen;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	gen = rget_u32(&r);
	if (rget_end(&r) == -1 || mon.policy == NULL ||
	    (kind != PROC_LISTENER && kind != PROC_PATHD && kind != PROC_EXECD))
		return -1;
	peer_up(&mon.peers[kind], m->fd, gen);
	m->fd = -1;
	if (kind == PROC_LISTENER) {
		send_lconf();
		mon.peers[kind].ready = 1;
	} else if (kind == PROC_PATHD &&
		   mon_send(PROC_PATHD, MP_ROOTS, 0, -1, NULL) == -1)
		log_warnx("cannot ask for the roots");
	return 0;
}

static int
child_gone(struct imsg *m)
{
	struct rbuf r;
	uint8_t kind;
	uint32_t gen;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	gen = rget_u32(&r);
	if (rget_end(&r) == -1 || kind >= PROC_COUNT)
		return -1;
	if (mon.peers[kind].chan != NULL && mon.peers[kind].generation == gen)
		peer_gone(&mon.peers[kind]);
	return 0;
}

static int
mon_parent_msg(struct imsg *m)
{
	switch (m->type) {
	case PC_POLICY:
		if (mon.policy != NULL)
			return -1;
		policy_load(m->fd);
		return 0;
	case PC_CHILD_UP:
		return child_up(m);
	case PC_CHILD_GONE:
		return child_gone(m);
	case PC_AUDIT_FD:
		audit_set(m->payload[0], m->fd);
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
	mon.exec_used = rget_bool(r);
	return r->err ? -1 : 0;
}

/* jansson seeds its hash tables from a file on first use. */
static void
mon_open(const struct proc_conf *pc)
{
	json_object_seed(0);
}

static void
mon_jail(const struct proc_conf *pc, struct jail *j)
{
	j->landlock = 1;
	j->calls = monitor_calls;
	j->nofile = 4096;
}

static void
mon_start(struct event_base *base, int sock)
{
	static const enum proc_kind kinds[] = {
	    PROC_LISTENER, PROC_PATHD, PROC_EXECD};
	size_t i;

	mon.base = base;
	for (i = 0; i < nitems(kinds); i++)
		mon.peers[kinds[i]].kind = kinds[i];
	random_bytes(mon.hmac_key, sizeof(mon.hmac_key));
	random_bytes(mon.argv_key, sizeof(mon.argv_key));
	audit_init(mon.sinks.n);
}

static void
mon_shutdown(void)
{
	proc_exit(0);
}

int
main(int argc, char **argv)
{
	static const struct proc_ops ops_table = {
	    .name = "abx-monitor",
	    .conf = mon_conf,
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
