/*
 * SPDX-License-Identifier: ISC
 *
 * From a decision to bytes for the client.  Owns the scratch buffer in which
 * a head and a small body lie side by side, so that they leave in one write.
 */
#include "listener/send.h"

#include <sys/socket.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "listener/conn.h"
#include "listener/listener.h"
#include "listener/pool.h"
#include "listener/rejects.h"
#include "listener/request.h"

static uint8_t scratch[REPLY_HEAD_MAX + SEND_SMALL];

uint8_t *
send_scratch(void)
{
	return scratch;
}

size_t
send_head(struct conn *c, struct reply *r, uint8_t *p)
{
	int n;

	if (pool_draining() || (c->req.has_body && !c->req.body_done) ||
	    (c->eof && conn_unread(c) == 0) || c->head.close ||
	    r->framing == REPLY_UNTIL_CLOSE)
		c->close = 1;
	r->reqid = c->req.id;
	r->date = listener_date();
	r->close = c->close;
	if ((n = reply_head((char *)p, REPLY_HEAD_MAX, r)) == -1)
		fatalx("a response head is longer than can be");
	return (size_t)n;
}

void
send_body(struct conn *c, struct reply *r, const void *body, size_t len)
{
	size_t n;

	r->length = len;
	n = send_head(c, r, scratch);
	if (c->req.is_head)
		len = 0;
	if (len <= SEND_SMALL) {
		if (len > 0)
			memcpy(scratch + n, body, len);
		conn_write(c, scratch, n + len, 0);
	} else {
		conn_write(c, scratch, n, MSG_MORE);
		conn_write(c, body, len, 0);
	}
	c->req.bytes_out += len;
	conn_enter(c, CONN_SEND);
}

void
send_json(struct conn *c, unsigned status, const char *body, size_t len)
{
	struct reply r = {.status = status, .type = "application/json"};

	send_body(c, &r, body, len);
}

static void
send_code(struct conn *c, enum code code, uint32_t retry_after)
{
	struct reply r = {.status = codes[code].status,
	    .type = "application/json",
	    .retry_after = retry_after,
	    .www_auth = codes[code].status == 401};
	const char *op = NULL;
	char *body;

	/* strangers learn nothing, not even what they asked for */
	if (c->req.route.op != OP_NONE && r.status != 401 && c->req.ask_id != 0)
		op = ops[c->req.route.op].id;
	body = code_body(code, c->req.id, op, NULL, NULL, NULL);
	if (body == NULL)
		c->close = 1;
	send_body(c, &r, body, body == NULL ? 0 : strlen(body));
	free(body);
}

void
send_refusal(struct conn *c, enum code code, uint32_t retry_after)
{
	char remote[sizeof(c->remote)] = "";

	if (codes[code].status == 401)
		request_remote(c, remote, sizeof(remote));
	rejects_add(code, c->req.id, remote);
	send_code(c, code, retry_after);
}

void
send_failure(struct conn *c, enum code code)
{
	send_code(c, code, codes[code].status == 503 ? 1 : 0);
}

/* ---- streams ---- */

void
send_stream(struct conn *c, unsigned status, const char *type)
{
	struct reply r = {.status = status, .type = type};
	size_t n;

	r.framing = c->head.minor == 0 ? REPLY_UNTIL_CLOSE : REPLY_CHUNKED;
	n = send_head(c, &r, scratch);
	conn_write(c, scratch, n, 0);
}

void
send_piece(struct conn *c, const void *p, size_t n)
{
	char size[20];
	int m;

	if (n == 0)
		return;
	c->req.bytes_out += n;
	if (c->head.minor == 0) {
		if (obuf_add(&c->out, p, n) == -1)
			c->broken = 1;
		return;
	}
	m = snprintf(size, sizeof(size), "%zx\r\n", n);
	if (obuf_add(&c->out, size, (size_t)m) == -1 ||
	    obuf_add(&c->out, p, n) == -1 || obuf_add(&c->out, "\r\n", 2) == -1)
		c->broken = 1;
}

void
send_end(struct conn *c)
{
	if (c->head.minor != 0 && obuf_add(&c->out, "0\r\n\r\n", 5) == -1)
		c->broken = 1;
	conn_enter(c, CONN_SEND);
}
