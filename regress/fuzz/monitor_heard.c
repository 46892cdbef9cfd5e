/*
 * SPDX-License-Identifier: ISC
 *
 * The channels of the monitor under test: what it sends is what the other end
 * can decode, at a time when it may be sent, with the descriptor that is
 * expected; what is to be answered is noted.
 */
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "regress/fuzz/monitor.h"

struct chan *fm_chans;
int fm_file, fm_pipe[2], fm_dir, fm_sock[2], fm_audit;
uint64_t fm_now_us = 1;
struct asked fm_asks[64];
struct order fm_orders[160];
size_t fm_nasks, fm_norders;
char fm_known[8][PROC_ID_LEN + 1];
size_t fm_nknown;

static struct asked *
asked_find(uint64_t lid)
{
	size_t i;

	for (i = 0; i < fm_nasks; i++)
		if (fm_asks[i].lid == lid)
			return &fm_asks[i];
	return NULL;
}

#define PROC_ID "{\"id\":\""

static void
learn(const char *body)
{
	if (strncmp(body, PROC_ID, sizeof(PROC_ID) - 1) == 0)
		strlcpy(fm_known[fm_nknown++ % nitems(fm_known)],
		    body + sizeof(PROC_ID) - 1, sizeof(fm_known[0]));
}

void
fm_is_json(const char *s)
{
	json_t *o = json_loads(s, JSON_REJECT_DUPLICATES, NULL);

	CHECK(json_is_object(o));
	json_decref(o);
}

static void
got_ans(struct asked *a, struct rbuf *r, int fd)
{
	static const enum fd_kind want[] = {[ANS_JSON] = FDK_NONE,
	    [ANS_FILE] = FDK_FILE_R,
	    [ANS_PUT] = FDK_PIPE_W,
	    [ANS_LIST] = FDK_PIPE_R,
	    [ANS_BYTES] = FDK_PIPE_R,
	    [ANS_RUN] = FDK_PIPE_R};
	struct ans ans;

	CHECK(ans_get(r, &ans) == 0 && rget_end(r) == 0);
	CHECK(!a->answered && !a->fin && !a->cancelled);
	CHECK(ans.kind < nitems(want));
	CHECK((fd != -1) == (want[ans.kind] != FDK_NONE));
	CHECK(fd == -1 || msg_fd_kind(fd) == want[ans.kind]);
	CHECK((ans.code == C_OK) == (ans.status < 300));
	CHECK(ans.code == C_OK || ans.kind == ANS_JSON);
	if (ans.kind == ANS_JSON) {
		fm_is_json(ans.body);
		learn(ans.body);
	}
	a->answered = 1;
	a->kind = ans.kind;
	a->flags = ans.flags;
	ans_clear(&ans);
}

static void
to_listener(const struct imsg *m)
{
	struct asked *a = asked_find(m->id);
	struct lconf conf;
	struct ans ans;
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case LM_CONF:
		CHECK(lconf_get(&r, &conf) == 0 && rget_end(&r) == 0);
		lconf_clear(&conf);
		break;
	case LM_ANS:
		CHECK(a != NULL);
		got_ans(a, &r, m->fd);
		break;
	case LM_PUT_FIN:
		CHECK(a != NULL && a->answered && a->kind == ANS_PUT);
		CHECK(!a->put_fin && !a->fin && !a->cancelled);
		CHECK(ans_get(&r, &ans) == 0 && rget_end(&r) == 0);
		CHECK(ans.kind == ANS_JSON);
		fm_is_json(ans.body);
		ans_clear(&ans);
		a->put_fin = 1;
		break;
	case LM_RUN_IN:
		CHECK(a != NULL && a->answered && a->kind == ANS_RUN);
		CHECK((a->flags & ANS_STDIN) != 0 && !a->run_in);
		a->run_in = 1;
		break;
	case LM_DROP:
		CHECK(a != NULL && !a->fin);
		break;
	default:
		CHECK(m->type == LM_PEER_ANS);
	}
}

#define TAKES(name)                                                  \
	do {                                                         \
		struct name x;                                       \
                                                                     \
		CHECK(name##_get(&r, &x) == 0 && rget_end(&r) == 0); \
		name##_clear(&x);                                    \
	} while (0)

/* The order to run that under this number, or NULL. */
static struct order *
spawned(uint64_t rid)
{
	size_t i;

	for (i = 0; i < fm_norders; i++)
		if (fm_orders[i].type == ME_SPAWN && fm_orders[i].rid == rid)
			return &fm_orders[i];
	return NULL;
}

/* What is said of a run goes to the execd that has it, while it has it. */
static void
about(const struct peer *p, uint64_t run, int over)
{
	const struct order *o = spawned(run);

	if (fm_norders == nitems(fm_orders))
		return; /* it may be one that is not known here */
	CHECK(o != NULL && o->generation == p->generation);
	CHECK(over == -1 ? o->over < 2 : o->over == over);
}

void
fm_ended(const struct peer *p, uint64_t run, int how)
{
	struct order *o = spawned(run);

	if (o != NULL && o->generation == p->generation)
		o->over = how;
}

static void
to_worker(const struct peer *p, const struct imsg *m)
{
	struct order *o = &fm_orders[fm_norders];
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case MP_RESOLVE:
		TAKES(resolve);
		break;
	case MP_PUT:
		TAKES(put);
		break;
	case MP_LIST:
		TAKES(list);
		break;
	case MP_COPY:
	case MP_SEARCH:
	case MP_EXPORT:
	case MP_ARCHIVE:
	case MP_IMPORT:
		TAKES(bulk);
		break;
	case MP_EDIT:
		TAKES(edit);
		break;
	case MP_MKDIR:
	case MP_RENAME:
	case MP_UNLINK:
		TAKES(mutate);
		break;
	case MP_DENIED:
		TAKES(denied);
		break;
	case ME_SPAWN_BIND:
		TAKES(spawn_bind);
		return;
	case ME_SPAWN_COVER:
		TAKES(covers);
		return;
	case ME_SPAWN:
		if (m->fd == -1)
			TAKES(spawn);
		break;
	case ME_FOLLOW:
		about(p, rget_u64(&r), -1);
		(void)rget_u64(&r);
		(void)rget_u64(&r);
		CHECK(rget_u8(&r) <= 1 && rget_end(&r) == 0);
		break;
	case ME_SESSION_END:
		CHECK(m->len == ABX_WORKSPACE_LEN);
		break;
	case ME_FEED:
		about(p, rget_u64(&r), 0);
		CHECK(rget_u8(&r) <= 1 && rget_end(&r) == 0);
		break;
	case ME_SIGNAL:
	case ME_CANCEL:
	case ME_GO:
		about(p, m->id, 0);
		return;
	case ME_FORGET:
		about(p, m->id, 1);
		fm_ended(p, m->id, 2); /* no more of it */
		return;
	default:
		CHECK(m->type == MP_ROOTS || m->type == MP_PUT_END ||
		      m->type == MP_CANCEL);
		return;
	}
	if (fm_norders == nitems(fm_orders))
		return;
	*o = (struct order){
	    p->kind, m->type, m->id, NULL, m->len, p->generation, 0};
	o->p = fuzz_copy(m->payload, m->len);
	fm_norders++;
}

int
chan_send(struct chan *c, uint16_t type, uint64_t id, int fd, const void *p,
    size_t len)
{
	struct imsg m = {type, id, fd, p, len, -1};
	const char *why;

	CHECK(msg_check(&m, &why) == 0);
	if (c->peer->kind == PROC_LISTENER)
		to_listener(&m);
	else
		to_worker(c->peer, &m);
	if (fd != -1)
		close(fd);
	return 0;
}

struct chan *
chan_new(struct event_base *base, int fd, chan_msg_cb msg, chan_gone_cb gone,
    void *arg)
{
	struct chan *c = fuzz_alloc(sizeof(*c));

	*c = (struct chan){fm_chans, fd, msg, arg};
	fm_chans = c;
	return c;
}

void
chan_free(struct chan *c)
{
	struct chan **p;

	if (c == NULL)
		return;
	for (p = &fm_chans; *p != c; p = &(*p)->next)
		CHECK(*p != NULL);
	*p = c->next;
	close(c->fd);
	free(c);
}

size_t
chan_queued(const struct chan *c)
{
	return 0; /* they all read at once */
}

int
chan_set_aside(struct chan *c, size_t packets)
{
	return 0;
}

int
chan_passcred(struct chan *c)
{
	return 0;
}
