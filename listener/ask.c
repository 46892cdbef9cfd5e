/*
 * SPDX-License-Identifier: ISC
 *
 * One function a question.  Owns the numbers of questions and the bounds on
 * what is live, which are those of the monitor's gate; over them the monitor
 * would take this process for broken.
 */
#include "listener/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/late.h"
#include "common/log.h"
#include "common/memfd.h"
#include "common/msg.h"
#include "common/proc.h"
#include "listener/auth.h"
#include "listener/conn.h"
#include "listener/digest.h"
#include "listener/listener.h"
#include "listener/pool.h"
#include "listener/request.h"
#include "listener/send.h"
#include "listener/target.h"

#define FIXED_MAX 2048 /* encoded ask without its arguments */

static uint64_t seq; /* of questions; an id is seq and slot */
static uint32_t live;
static size_t fd_bytes; /* of all live memfds */
static struct late cancelled;

/* ---- numbers and bounds ---- */

struct conn *
ask_find(uint64_t id)
{
	struct conn *c = pool_find((uint32_t)(id & 0xffff));

	return c != NULL && id != 0 && c->req.ask_id == id ? c : NULL;
}

int
ask_cancelled(uint64_t id)
{
	return late_take(&cancelled, id, 0);
}

uint32_t
ask_max(const struct conn *c)
{
	uint16_t op = c->req.route.op;
	uint32_t max = lconf.max_connections;

	if (op == OP_core_health || op == OP_core_capabilities || max < 2)
		return max;
	return max - 1;
}

int
ask_room(const struct conn *c)
{
	return live < ask_max(c) && chan_queued(listener_mon()) < CHAN_HIGH;
}

/* ---- filling the question ---- */

/* A field's value into size bytes.  What does not fit, or stands there twice,
 * becomes what is no list of tags, for which nothing is done. */
static void
copy_tag(const struct conn *c, enum http_field id, char *out, size_t size)
{
	const struct http_slice *s = &c->head.field[id];

	if (c->head.seen[id] == 0)
		return;
	if (c->head.seen[id] > 1 || s->len == 0 || s->len >= size) {
		strlcpy(out, "?", size);
		return;
	}
	memcpy(out, c->in + s->off, s->len);
	out[s->len] = '\0';
}

static void
copy_idem(const struct conn *c, struct ask *a)
{
	const struct http_slice *s = &c->head.field[HF_IDEMPOTENCY_KEY];
	uint32_t i;

	if (c->head.seen[HF_IDEMPOTENCY_KEY] == 0)
		return;
	a->bad_idem = c->head.seen[HF_IDEMPOTENCY_KEY] > 1 || s->len == 0 ||
		      s->len > ABX_ID_MAX;
	for (i = 0; i < s->len && !a->bad_idem; i++)
		a->bad_idem =
		    c->in[s->off + i] < 0x20 || c->in[s->off + i] > 0x7e;
	if (!a->bad_idem)
		memcpy(a->idem, c->in + s->off, s->len);
}

static void
copy_digest(const struct conn *c, struct ask *a)
{
	const struct http_slice *s = &c->head.field[HF_CONTENT_DIGEST];
	int r;

	if (c->head.seen[HF_CONTENT_DIGEST] == 0)
		return;
	r = digest_parse((const char *)c->in + s->off, s->len, a->digest);
	a->has_digest = r == 1;
	a->bad_digest = r == -1 || c->head.seen[HF_CONTENT_DIGEST] > 1;
}

static int
is_put(const struct conn *c)
{
	const struct route *r = &c->req.route;

	return r->op != OP_NONE && ops[r->op].stream == S_PUT;
}

static void
fill(struct conn *c, struct ask *a)
{
	struct req *r = &c->req;

	memcpy(a->reqid, r->id, sizeof(a->reqid));
	a->op = r->route.op;
	strlcpy(a->opname, r->route.name, sizeof(a->opname));
	if (!lconf.open && auth_extract(&c->head, c->in, a->token) == C_OK)
		a->has_cred = a->token[0] != '\0';
	a->has_peer = c->has_peer;
	memcpy(a->peer, c->peer, sizeof(a->peer));
	request_remote(c, a->remote, sizeof(a->remote));
	a->flags = (uint16_t)((r->is_head ? ASK_HEAD : 0) |
			      (c->head.sse ? ASK_SSE : 0) |
			      (c->head.expect ? ASK_EXPECT : 0) |
			      (r->route.rpc ? ASK_RPC : 0) |
			      (c->head.seen[HF_RANGE] ? ASK_RANGE : 0));
	if (is_put(c) && r->route.binding == B_BYTES) {
		a->body = ASK_BODY_STREAM;
		a->length = c->head.chunked ? UINT64_MAX : c->head.length;
		copy_digest(c, a);
	} else if (is_put(c)) {
		a->body = r->content.kind;
		a->length = r->content.len;
	}
	copy_tag(c, HF_IF_MATCH, a->if_match, sizeof(a->if_match));
	copy_tag(
	    c, HF_IF_NONE_MATCH, a->if_none_match, sizeof(a->if_none_match));
	copy_tag(c, HF_LAST_EVENT_ID, a->last_event, sizeof(a->last_event));
	copy_idem(c, a);
	/* so that the key covers the content */
	if (a->idem[0] != '\0' && a->body == ASK_BODY_CONTENT) {
		sha256(r->content.data, r->content.len, a->digest);
		a->has_digest = 1;
	}
}

/* The caller's spelling of the path; malformed base64 is the monitor's to
 * refuse. */
static enum code
keep_path(struct req *r, const struct args *as)
{
	const struct arg *p = args_find(as, "path");
	const struct arg *b = args_find(as, "path_base64");
	int n = 0;

	if (p != NULL && p->s != NULL)
		r->path = strdup(p->s);
	else if (b != NULL && b->type == A_STR) {
		if ((r->path = malloc(b->len + 1)) != NULL)
			n = base64_decode(
			    b->s, b->len, (uint8_t *)r->path, b->len);
		if (r->path != NULL)
			r->path[n > 0 ? n : 0] = '\0';
	} else
		return C_OK;
	return r->path == NULL ? C_SRV_INTERNAL : C_OK;
}

/* What stands in the path is an argument like the others. */
static enum code
add_path_id(const struct route *r, struct args *as)
{
	struct arg *a;

	if (r->id[0] == '\0')
		return C_OK;
	if (args_find(as, r->param) != NULL)
		return C_ARGS_INVALID;
	if ((a = args_add(as, r->param, A_QUERY)) == NULL ||
	    arg_set_str(a, r->id, strlen(r->id)) == -1)
		return C_ARGS_TOO_LARGE;
	return C_OK;
}

/* What the rendering will need of the arguments. */
static enum code
keep(struct conn *c, const struct args *as)
{
	const struct arg *a;
	struct req *r = &c->req;

	if (r->route.op == OP_NONE)
		return C_OK;
	if (ops[r->route.op].stream == S_FILE && r->route.binding != B_BYTES)
		return keep_path(r, as);
	if (r->route.op == OP_files_list) {
		a = args_find(as, "sort");
		r->sort =
		    a != NULL && a->s != NULL && strcmp(a->s, "name") == 0;
	}
	if (ops[r->route.op].stream == S_RUN &&
	    (a = args_find(as, "stdin")) != NULL && a->type == A_STR) {
		if ((r->in = malloc(a->len + 1)) == NULL)
			return C_SRV_INTERNAL;
		memcpy(r->in, a->s, a->len + 1);
		r->in_len = a->len;
	}
	return C_OK;
}

static enum code
collect(struct conn *c, struct args *as, char *text, size_t len)
{
	struct uri u;
	enum code code;

	u.query = (const char *)c->in + c->req.query.off;
	u.query_len = c->req.query.len;
	if ((code = target_args(&u, as)) != C_OK)
		return code;
	if (text != NULL && (code = body_parse(text, len, as,
				 is_put(c) ? &c->req.content : NULL)) != C_OK)
		return code;
	if ((code = add_path_id(&c->req.route, as)) != C_OK)
		return code;
	return keep(c, as);
}

/* ---- sending it ---- */

/* Large arguments in a sealed memfd: its descriptor and size, or -1. */
static int
args_memfd(const struct args *as, size_t *size, enum code *code)
{
	struct wbuf w;
	int fd = -1;

	wbuf_init(&w, ABX_BODY_MAX);
	args_put(&w, as);
	*size = w.len;
	*code = C_ARGS_TOO_LARGE;
	if (!w.err) {
		*code = C_REQ_BUSY;
		if (fd_bytes + w.len <= ABX_BODY_MAX)
			*code = C_SRV_UNAVAILABLE;
	}
	if (*code == C_SRV_UNAVAILABLE)
		fd = memfd_sealed("abx-args", w.p, w.len);
	wbuf_free(&w);
	return fd;
}

static enum code
send_ask(struct conn *c, struct ask *a)
{
	static struct wbuf w;
	struct req *r = &c->req;
	size_t size = 0;
	enum code code;
	int fd = -1;

	if (w.max == 0)
		wbuf_init(&w, ABX_INLINE_BODY + FIXED_MAX);
	wbuf_reset(&w);
	ask_put(&w, a);
	if (w.err) {
		if ((fd = args_memfd(&a->args, &size, &code)) == -1)
			return code;
		a->args_in_fd = 1;
		wbuf_reset(&w);
		ask_put(&w, a);
	}
	r->ask_id = ++seq << 16 | c->slot;
	if (w.err || chan_send(listener_mon(), LM_ASK, r->ask_id, fd, w.p,
			 w.len) == -1) {
		r->ask_id = 0;
		return C_SRV_UNAVAILABLE;
	}
	explicit_bzero(w.p, w.len);
	r->ask_fd_bytes = size;
	fd_bytes += size;
	live++;
	return C_OK;
}

void
ask_send(struct conn *c, char *text, size_t len)
{
	static struct ask a;
	enum code code;

	code = collect(c, &a.args, text, len);
	if (code == C_OK) {
		fill(c, &a);
		code = send_ask(c, &a);
	}
	ask_clear(&a);
	auth_wipe(&c->head, c->in);
	if (code != C_OK) {
		send_refusal(c, code, codes[code].status == 503 ? 1 : 0);
		return;
	}
	c->req.busy = 1;
	conn_enter(c, CONN_WAIT);
}

/* ---- the ends ---- */

/* The monitor would wait for it for ever, so both begin anew.  When it is the
 * monitor that is gone, its end is on its way. */
static void
lost(const char *what)
{
	if (errno == EPIPE)
		return;
	fatal("%s cannot be told", what);
}

void
ask_fin(struct conn *c, uint8_t outcome)
{
	static struct wbuf w;
	struct req *r = &c->req;
	struct fin f = {
	    r->bytes_in, r->bytes_out, outcome, proc_now_us() - r->began};

	if (w.max == 0)
		wbuf_init(&w, 64);
	wbuf_reset(&w);
	fin_put(&w, &f);
	if (w.err ||
	    chan_send_late(listener_mon(), LM_FIN, r->ask_id, w.p, w.len) == -1)
		lost("the end of a request");
	fd_bytes -= r->ask_fd_bytes;
	r->ask_fd_bytes = 0;
	r->ask_id = 0;
	r->busy = 0;
	live--;
}

void
ask_cancel(struct conn *c)
{
	late_add(&cancelled, c->req.ask_id);
	if (chan_send(listener_mon(), LM_CANCEL, c->req.ask_id, -1, NULL, 0) ==
	    -1)
		lost("the cancellation of a request");
}

void
ask_result(struct conn *c, const void *json, size_t len)
{
	if (c->head.seen[HF_IDEMPOTENCY_KEY] == 0 || c->req.ask_id == 0 ||
	    len == 0 || len > 64 * 1024)
		return;
	if (chan_send(
		listener_mon(), LM_RESULT, c->req.ask_id, -1, json, len) == -1)
		log_warn("the result of a run cannot be told");
}

void
ask_put_end(struct conn *c, uint64_t bytes, int whole)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u64(&w, bytes);
	wput_u8(&w, whole ? 1 : 0);
	if (w.err || chan_send(listener_mon(), LM_PUT_END, c->req.ask_id, -1,
			 w.p, w.len) == -1)
		lost("the end of an upload");
	wbuf_free(&w);
}
