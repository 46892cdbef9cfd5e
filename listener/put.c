/*
 * SPDX-License-Identifier: ISC
 *
 * Uploads.  A body of known length is spliced from the socket into the pipe
 * of pathd; a chunked one is read, decoded and written; JSON content is
 * written.  The answer is always what pathd says of the whole.
 */
#include "listener/put.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/payload.h"
#include "listener/ask.h"
#include "listener/conn.h"
#include "listener/listener.h"
#include "listener/pipe.h"
#include "listener/send.h"

#define PIPE_SIZE (256 * 1024)
#define CHUNK_IN (64 * 1024) /* input buffer of a chunked body */
#define TURNS 16	     /* moves before others get their turn */

struct upload {
	uint64_t left;	   /* of Content-Length, or of content in memory */
	uint64_t sent;	   /* bytes in the pipe */
	uint8_t malformed; /* the chunks are, which is the answer then */
	struct chunk_dec chunk;
	const uint8_t *data; /* decoded bytes that wait, in the input buffer */
	size_t len;
};

/* A move's answer, besides WANT_ and STEP_ values. */
#define MOVED 64
#define MOVE_EPIPE 128
#define MOVE_BAD 256

void
put_free(struct conn *c)
{
	free(c->upload);
	c->upload = NULL;
}

int
put_begin(struct conn *c, struct ans *a, int *fd)
{
	struct upload *p;

	if (c->req.route.op == OP_NONE || ops[c->req.route.op].stream != S_PUT)
		return -1;
	if ((p = calloc(1, sizeof(*p))) == NULL)
		return -1;
	p->left = c->req.route.binding == B_BYTES ? c->head.length
						  : c->req.content.len;
	chunk_init(&p->chunk);
	c->upload = p;
	conn_set_data(c, *fd);
	*fd = -1;
	/* larger where the limits allow; either size works */
	(void)fcntl(c->data_fd, F_SETPIPE_SZ, PIPE_SIZE);
	if (c->head.chunked && c->req.route.binding == B_BYTES)
		conn_reserve(c, c->head.end + CHUNK_IN);
	if (!c->req.continued && !c->req.body_done && conn_unread(c) == 0)
		conn_write(c, "HTTP/1.1 100 Continue\r\n\r\n", 25, 0);
	c->req.continued = 1;
	conn_enter(c, CONN_PUT);
	return 0;
}

/* Write to the pipe; MOVED and the bytes in *n, or what to wait for. */
static int
to_pipe(struct conn *c, const uint8_t *p, size_t len, size_t *n)
{
	ssize_t m;

	do
		m = pipe_write(c->data_fd, p, len);
	while (m == -1 && errno == EINTR);
	if (m == -1)
		return errno == EAGAIN ? WANT_DATA_W : MOVE_EPIPE;
	c->upload->sent += (uint64_t)m;
	*n = (size_t)m;
	return MOVED;
}

static int
move_content(struct conn *c)
{
	struct upload *p = c->upload;
	size_t off = c->req.content.len - (size_t)p->left, n = 0;
	int r;

	r = to_pipe(c, c->req.content.data + off, (size_t)p->left, &n);
	p->left -= n;
	return r;
}

/* Body bytes that came along with the head. */
static int
move_buffered(struct conn *c)
{
	struct upload *p = c->upload;
	size_t n = conn_unread(c), done = 0;
	int r;

	if (n > p->left)
		n = (size_t)p->left;
	r = to_pipe(c, c->in + c->in_used, n, &done);
	conn_use(c, done);
	p->left -= done;
	c->req.bytes_in += done;
	return r;
}

static int
move_spliced(struct conn *c)
{
	struct upload *p = c->upload;
	size_t want = 1 << 20;
	ssize_t n;

	if (want > p->left)
		want = (size_t)p->left;
	n = splice(c->fd, NULL, c->data_fd, NULL, want,
	    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n == 0)
		return STEP_GONE;
	if (n == -1 && errno == EINTR)
		return MOVED;
	if (n == -1 && errno == EAGAIN) {
		/* either side may be meant; when the socket has just said
		 * that it has something, it is the pipe that is full */
		if (!c->readable)
			return WANT_READ;
		c->readable = 0;
		return WANT_DATA_W;
	}
	if (n == -1)
		return errno == EPIPE ? MOVE_EPIPE : STEP_GONE;
	p->left -= (uint64_t)n;
	p->sent += (uint64_t)n;
	c->req.bytes_in += (uint64_t)n;
	return MOVED;
}

/* Decode what lies in the input buffer, or read more. */
static int
chunk_next(struct conn *c)
{
	struct upload *p = c->upload;
	const uint8_t *in = c->in + c->in_used;
	size_t n = conn_unread(c);
	int r;

	if (n > 0) {
		r = chunk_feed(&p->chunk, &in, &n, &p->data, &p->len);
		conn_use(c, conn_unread(c) - n);
		if (r == -1)
			return MOVE_BAD;
		if (r == 2)
			c->req.body_done = 1;
		return MOVED;
	}
	/* the part behind the head is used over and over */
	c->in_used = c->head.end;
	c->in_len = c->in_used;
	r = conn_fill(c, c->head.end + CHUNK_IN);
	return r > 0 ? MOVED : r == -1 ? WANT_READ : STEP_GONE;
}

static int
move_chunked(struct conn *c)
{
	struct upload *p = c->upload;
	size_t n = 0;
	int r;

	if (p->len == 0)
		return chunk_next(c);
	r = to_pipe(c, p->data, p->len, &n);
	p->data += n;
	p->len -= n;
	c->req.bytes_in += n;
	return r;
}

static int
is_whole(const struct conn *c)
{
	if (c->req.route.binding == B_BYTES && c->head.chunked)
		return c->req.body_done && c->upload->len == 0;
	return c->upload->left == 0;
}

static int
move(struct conn *c)
{
	if (c->req.route.binding != B_BYTES)
		return move_content(c);
	if (c->head.chunked)
		return move_chunked(c);
	return conn_unread(c) > 0 ? move_buffered(c) : move_spliced(c);
}

/* The pipe is closed and its count told; the answer will come. */
static int
end(struct conn *c, int whole)
{
	if (whole)
		c->req.body_done = 1;
	conn_set_data(c, -1);
	ask_put_end(c, c->upload->sent, whole);
	conn_enter(c, CONN_PUT_END);
	return STEP_AGAIN;
}

int
put_step(struct conn *c)
{
	int r = MOVED, i;

	conn_body_wait(c, 0);
	if (conn_flush(c) == -1)
		return STEP_GONE;
	/* looked at after the last move too: nothing may come to wake us */
	for (i = 0; r == MOVED; i++) {
		if (is_whole(c))
			return end(c, 1);
		if (i == TURNS)
			break;
		r = move(c);
	}
	switch (r) {
	case MOVED:
		if (conn_unread(c) > 0 || c->upload->len > 0 ||
		    c->req.route.binding != B_BYTES)
			return WANT_DATA_W;
		/* FALLTHROUGH */
	case WANT_READ:
		conn_body_wait(c, 1);
		return WANT_READ;
	case MOVE_BAD:
		c->upload->malformed = 1;
		c->close = 1;
		c->linger = 1;
		conn_use(c, conn_unread(c));
		return end(c, 0);
	case MOVE_EPIPE:
		return end(c, 0);
	default:
		return r;
	}
}

enum code
put_finish(struct conn *c)
{
	conn_body_wait(c, 0);
	conn_set_data(c, -1);
	return c->upload->malformed ? C_REQ_BAD_FRAMING : C_OK;
}
