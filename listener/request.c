/*
 * SPDX-License-Identifier: ISC
 *
 * The rules of the listener, in order: target, host and origin, credential,
 * pool, size, content type, body (design: listener rules).  The first that
 * fails answers; what passes is asked of the monitor, known route or not.
 */
#include "listener/request.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/proc.h"
#include "listener/ask.h"
#include "listener/auth.h"
#include "listener/conn.h"
#include "listener/failures.h"
#include "listener/hop.h"
#include "listener/host.h"
#include "listener/listener.h"
#include "listener/pool.h"
#include "listener/send.h"
#include "listener/target.h"

#define BODIES_MAX (64U * 1024 * 1024) /* bytes of all bodies in memory */
#define RETRY_S 1
#define TURNS 64 /* reads before others get their turn */

static size_t bodies; /* bytes allocated for bodies */

static const char *
field(const struct conn *c, enum http_field id, size_t *len)
{
	*len = c->head.field[id].len;
	return (const char *)c->in + c->head.field[id].off;
}

void
request_malformed(struct conn *c, enum code code)
{
	request_id(c->req.id);
	c->close = 1;
	c->linger = 1;
	conn_use(c, conn_unread(c));
	send_refusal(c, code, 0);
}

/* ---- the rules ---- */

static enum code
check_target(struct conn *c)
{
	const struct http_head *h = &c->head;
	const char *raw = (const char *)c->in + h->target.off;
	enum code code;
	struct uri u;

	/* of a refusal too: bytes behind its head would be the next answer's */
	c->req.is_head =
	    (uint8_t)(h->method.len == 4 &&
		      memcmp(c->in + h->method.off, "HEAD", 4) == 0);
	if ((code = target_split(raw, h->target.len, &u)) != C_OK)
		return code;
	if (u.query != NULL) {
		c->req.query.off = (uint32_t)(u.query - (const char *)c->in);
		c->req.query.len = (uint32_t)u.query_len;
	}
	route_find((const char *)c->in + h->method.off, h->method.len, u.path,
	    &c->req.route);
	return C_OK;
}

static enum code
check_host(struct conn *c)
{
	const char *s;
	size_t n;

	s = field(c, HF_HOST, &n);
	if (!host_ok(s, n, &lconf.allowed_hosts))
		return C_REQ_HOST_DENIED;
	if (c->head.seen[HF_ORIGIN] == 0)
		return C_OK;
	s = field(c, HF_ORIGIN, &n);
	return c->head.seen[HF_ORIGIN] == 1 &&
		       origin_ok(s, n, &lconf.allowed_origins)
		   ? C_OK
		   : C_REQ_ORIGIN_DENIED;
}

/* The address that a trusted proxy names as the caller's: 1, else 0. */
static int
named_client(const struct conn *c, char out[HOP_SIZE])
{
	const struct http_slice *s = &c->head.field[HF_FORWARDED_FOR];

	return c->head.seen[HF_FORWARDED_FOR] != 0 &&
	       lconf.trusted_proxies.n > 0 &&
	       hop_client(c->remote, (const char *)c->in + s->off, s->len,
		   &lconf.trusted_proxies, out);
}

void
request_remote(const struct conn *c, char *out, size_t size)
{
	char client[HOP_SIZE];

	strlcpy(out, named_client(c, client) ? client : c->remote, size);
}

/* By the token, and by the address when a trusted proxy names one: seconds
 * to wait, or 0. */
static uint32_t
count_failure(const struct conn *c, const char *token)
{
	uint64_t now = proc_now_us();
	uint32_t a = failures_add(token, now), b = 0;
	char key[5 + HOP_SIZE] = "addr:"; /* no token has a colon */

	if (named_client(c, key + 5))
		b = failures_add(key, now);
	return a > b ? a : b;
}

static enum code
check_auth(struct conn *c, uint32_t *retry)
{
	char token[ABX_TOKEN_MAX + 1] = "";
	enum code code = C_OK;
	int health;

	if (!lconf.open)
		code = auth_extract(&c->head, c->in, token);
	health = c->req.route.op == OP_core_health && !c->req.route.rpc;
	if (code == C_OK) {
		code = auth_admit(&lconf, token, c->has_peer, health);
		if (code == C_AUTH_INVALID &&
		    (*retry = count_failure(c, token)) > 0)
			code = C_AUTH_RATE;
	}
	explicit_bzero(token, sizeof(token));
	return code;
}

/* Whoever is here holds a credential that may be right, or needs none. */
static enum code
check_pool(struct conn *c, uint32_t *retry)
{
	*retry = RETRY_S;
	if (pool_draining() || !ask_room(c))
		return C_SRV_UNAVAILABLE;
	if (c->req.route.op == OP_core_health && !c->req.route.rpc)
		return C_OK; /* may be anybody, so it stays where it is */
	if (pool_promote(c, ask_max(c)) == -1)
		return C_SRV_UNAVAILABLE;
	*retry = 0;
	return C_OK;
}

/* 1 when the body is (or would be) the arguments. */
static int
wants_json(const struct conn *c)
{
	const struct route *r = &c->req.route;

	return r->binding == B_JSON || (!r->known && c->req.has_body);
}

static int
wants_stream(const struct conn *c)
{
	const struct route *r = &c->req.route;

	return r->binding == B_BYTES && ops[r->op].stream == S_PUT;
}

static enum code
check_body(struct conn *c)
{
	const char *type;
	size_t n;
	int ok;

	c->req.body_max =
	    route_body_max(&c->req.route, lconf.max_request_bytes);
	if (c->head.has_length && c->head.length > c->req.body_max)
		return C_REQ_TOO_LARGE;
	type = field(c, HF_CONTENT_TYPE, &n);
	if (wants_json(c))
		ok = media_is(type, n, "application/json");
	else if (wants_stream(c))
		ok = route_takes(&c->req.route, type, n);
	else
		return C_OK;
	return ok && c->head.seen[HF_CONTENT_TYPE] == 1
		   ? C_OK
		   : C_REQ_BAD_CONTENT_TYPE;
}

void
request_begin(struct conn *c)
{
	struct req *r = &c->req;
	uint32_t retry = 0;
	enum code code;

	request_id(r->id);
	r->began = proc_now_us();
	r->has_body = c->head.chunked || c->head.length > 0;
	r->body_done = !r->has_body;
	r->continued = !c->head.expect || c->head.minor == 0;
	if ((code = check_target(c)) != C_OK ||
	    (code = check_host(c)) != C_OK ||
	    (code = check_auth(c, &retry)) != C_OK ||
	    (code = check_pool(c, &retry)) != C_OK ||
	    (code = check_body(c)) != C_OK) {
		send_refusal(c, code, retry);
		return;
	}
	if (wants_json(c)) {
		r->body_left = c->head.length;
		chunk_init(&r->chunk);
		conn_enter(c, CONN_BODY);
	} else
		ask_send(c, NULL, 0);
}

/* ---- JSON bodies ---- */

/* Room for one more read: bytes, 0 when the body may not be longer or there
 * is no memory for it (*code says which). */
static size_t
body_room(struct conn *c, enum code *code)
{
	struct req *r = &c->req;
	size_t cap = r->body_cap == 0 ? 4096 : r->body_cap * 2;
	uint8_t *p;

	if (r->body_len < r->body_cap)
		return r->body_cap - r->body_len;
	/* one byte more than may be, so that too much shows */
	if (cap > r->body_max + 1)
		cap = (size_t)r->body_max + 1;
	if (c->head.has_length && cap > c->head.length)
		cap = (size_t)c->head.length;
	*code = C_REQ_TOO_LARGE;
	if (cap <= r->body_len)
		return 0;
	*code = C_REQ_BUSY;
	if (bodies + (cap - r->body_cap) > BODIES_MAX)
		return 0;
	*code = C_SRV_UNAVAILABLE;
	if ((p = recallocarray(r->body, r->body_cap, cap, 1)) == NULL)
		return 0;
	bodies += cap - r->body_cap;
	r->body = p;
	r->body_cap = cap;
	return cap - r->body_len;
}

static enum code
body_add(struct conn *c, const uint8_t *p, size_t n)
{
	struct req *r = &c->req;
	enum code code;
	size_t m;

	while (n > 0) {
		if ((m = body_room(c, &code)) == 0)
			return code;
		if (m > n)
			m = n;
		memcpy(r->body + r->body_len, p, m);
		r->body_len += m;
		r->bytes_in += m;
		p += m;
		n -= m;
	}
	return r->body_len > r->body_max ? C_REQ_TOO_LARGE : C_OK;
}

static void
drop_body(struct conn *c)
{
	bodies -= c->req.body_cap;
	if (c->req.body != NULL)
		freezero(c->req.body, c->req.body_cap);
	c->req.body = NULL;
	c->req.body_len = c->req.body_cap = 0;
}

/* Move what lies in the input buffer into the body. */
static enum code
body_take(struct conn *c)
{
	struct req *r = &c->req;
	const uint8_t *p = c->in + c->in_used, *data;
	size_t n = conn_unread(c), len;
	enum code code;
	int rc;

	if (!c->head.chunked) {
		if (n > r->body_left)
			n = (size_t)r->body_left;
		r->body_left -= n;
		r->body_done = r->body_left == 0;
		conn_use(c, n);
		return body_add(c, p, n);
	}
	while ((rc = chunk_feed(&r->chunk, &p, &n, &data, &len)) == 1)
		if ((code = body_add(c, data, len)) != C_OK)
			return code;
	conn_use(c, conn_unread(c) - n);
	r->body_done = rc == 2;
	if (rc != -1)
		return C_OK;
	c->close = 1;
	return C_REQ_BAD_FRAMING;
}

/* Read straight into the body when its length is known, else through the
 * input buffer, of which the part behind the head is used over and over. */
static int
body_read(struct conn *c, enum code *code)
{
	struct req *r = &c->req;
	size_t room;
	ssize_t n;

	*code = C_OK;
	if (c->head.chunked) {
		c->in_used = c->in_len = c->head.end;
		conn_reserve(c, c->head.end + 16384);
		return conn_fill(c, c->in_cap);
	}
	if (!c->readable)
		return -1;
	if ((room = body_room(c, code)) == 0)
		return 1;
	*code = C_OK;
	if (room > r->body_left)
		room = (size_t)r->body_left;
	n = recv(c->fd, r->body + r->body_len, room, 0);
	if (n == -1) {
		c->readable = errno == EINTR;
		return errno == EAGAIN || errno == EINTR ? -1 : -2;
	}
	r->body_len += (size_t)n;
	r->bytes_in += (size_t)n;
	r->body_left -= (uint64_t)n;
	r->body_done = r->body_left == 0;
	return (int)n;
}

static void
body_whole(struct conn *c)
{
	static char none[1];

	ask_send(c, c->req.body == NULL ? none : (char *)c->req.body,
	    c->req.body_len);
	drop_body(c);
}

int
request_step_body(struct conn *c)
{
	struct req *r = &c->req;
	enum code code = C_OK;
	int n, i = 0;

	conn_body_wait(c, 0);
	if (!r->continued && conn_unread(c) == 0 && !r->body_done)
		conn_write(c, "HTTP/1.1 100 Continue\r\n\r\n", 25, 0);
	r->continued = 1;
	while (!r->body_done) {
		if (conn_unread(c) > 0 && (code = body_take(c)) != C_OK)
			break;
		if (r->body_done)
			break;
		/* nothing is left here, so the kernel will say what there is */
		n = i++ < TURNS ? body_read(c, &code) : -1;
		if (n == -1) {
			conn_body_wait(c, 1);
			return conn_flush(c) == 0 ? WANT_READ | WANT_WRITE
						  : WANT_READ;
		}
		if (n <= 0)
			return STEP_GONE;
		if (code != C_OK)
			break;
	}
	if (code != C_OK)
		send_refusal(c, code, code == C_REQ_BUSY ? RETRY_S : 0);
	else
		body_whole(c);
	return STEP_AGAIN;
}

void
request_clear(struct conn *c)
{
	struct req *r = &c->req;

	drop_body(c);
	body_content_clear(&r->content);
	if (r->in != NULL)
		freezero(r->in, r->in_len);
	free(r->path);
	memset(r, 0, sizeof(*r));
}
