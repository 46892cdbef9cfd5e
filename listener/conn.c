/*
 * SPDX-License-Identifier: ISC
 *
 * The life of a connection: a table of steps, one loop that runs them, one
 * place that writes the state, one that sets events.  It never judges a
 * request and never speaks to the monitor but to end a question.
 */
#include "listener/conn.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/proc.h"
#include "listener/ask.h"
#include "listener/get.h"
#include "listener/list.h"
#include "listener/listener.h"
#include "listener/peer.h"
#include "listener/pool.h"
#include "listener/put.h"
#include "listener/request.h"
#include "listener/run.h"
#include "listener/watch.h"

#define IN_MIN 4096
#define LINGER_US 2000000
#define TURN_REQUESTS 16 /* answered before others get their turn */

/* One input buffer is kept for the next request of whomever. */
static uint8_t *spare;

static int step_idle(struct conn *);
static int step_head(struct conn *);
static int step_wait(struct conn *);
static int step_send(struct conn *);
static int step_linger(struct conn *);

static int (*const steps[CONN_STATES])(struct conn *) = {
    [CONN_IDLE] = step_idle,
    [CONN_HEAD] = step_head,
    [CONN_BODY] = request_step_body,
    [CONN_WAIT] = step_wait,
    [CONN_PUT] = put_step,
    [CONN_PUT_END] = step_wait,
    [CONN_LIST] = list_step,
    [CONN_RUN] = run_step,
    [CONN_WATCH] = watch_step,
    [CONN_SEND] = step_send,
    [CONN_LINGER] = step_linger,
};

/* ---- events ---- */

static void
sock_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct conn *c = arg;

	c->readable = 1;
	conn_do(c);
}

static void
sock_write_cb(evutil_socket_t fd, short what, void *arg)
{
	conn_do(arg);
}

static void
data_cb(evutil_socket_t fd, short what, void *arg)
{
	conn_do(arg);
}

static void
arm_one(struct conn *c, struct event *ev, unsigned bit, unsigned want)
{
	if ((c->armed & bit) == (want & bit))
		return;
	if ((want & bit) == 0)
		event_del(ev);
	else if (event_add(ev, NULL) == -1) {
		c->broken = 1;
		return;
	}
	c->armed ^= bit;
}

void
conn_want_write(struct conn *c)
{
	arm_one(c, &c->wev, WANT_WRITE, WANT_WRITE);
}

/* Wait for exactly that. */
static void
arm(struct conn *c, unsigned want)
{
	unsigned data = WANT_DATA_R | WANT_DATA_W;

	arm_one(c, &c->rev, WANT_READ, want);
	arm_one(c, &c->wev, WANT_WRITE, want);
	if ((c->armed & data) == (want & data))
		return;
	if (c->armed & data)
		event_del(&c->dev);
	c->armed &= ~data;
	if ((want & data) == 0)
		return;
	event_assign(&c->dev, event_get_base(&c->rev), c->data_fd,
	    (want & WANT_DATA_R ? EV_READ : EV_WRITE) | EV_PERSIST, data_cb, c);
	if (event_add(&c->dev, NULL) == -1)
		c->broken = 1;
	else
		c->armed |= want & data;
}

void
conn_set_data(struct conn *c, int fd)
{
	const unsigned data = WANT_DATA_R | WANT_DATA_W;
	int fl;

	if (c->data_fd != -1) {
		if (c->armed & data)
			event_del(&c->dev);
		c->armed &= ~data;
		close(c->data_fd);
	}
	c->data_fd = fd;
	if (fd != -1 && (fl = fcntl(fd, F_GETFL)) != -1 &&
	    (fl & O_NONBLOCK) == 0)
		(void)fcntl(fd, F_SETFL, fl | O_NONBLOCK);
}

/* ---- life ---- */

struct conn *
conn_new(struct event_base *base, int fd, const char *remote)
{
	struct conn *c;

	if ((c = calloc(1, sizeof(*c))) == NULL) {
		close(fd);
		return NULL;
	}
	c->fd = fd;
	c->data_fd = -1;
	strlcpy(c->remote, remote, sizeof(c->remote));
	event_assign(&c->rev, base, fd, EV_READ | EV_PERSIST, sock_read_cb, c);
	event_assign(
	    &c->wev, base, fd, EV_WRITE | EV_PERSIST, sock_write_cb, c);
	http_head_init(&c->head);
	if (pool_add(c) == -1) {
		close(fd);
		free(c);
		return NULL;
	}
	c->head_since = proc_now_us();
	conn_enter(c, CONN_IDLE);
	return c;
}

static void
free_input(struct conn *c)
{
	if (c->in != NULL)
		explicit_bzero(c->in, c->in_len);
	if (spare == NULL && c->in_cap == IN_MIN)
		spare = c->in;
	else
		free(c->in);
	c->in = NULL;
	c->in_len = c->in_cap = c->in_used = 0;
}

/* Free what belongs to the request. */
static void
release(struct conn *c)
{
	conn_set_data(c, -1);
	put_free(c);
	list_free(c);
	run_free(c);
	watch_free(c);
	request_clear(c);
	c->file_left = 0;
	c->full = 0;
	c->wait_from = c->waited = 0;
	c->behind = 0;
}

static void
conn_free(struct conn *c)
{
	arm(c, WANT_NONE);
	release(c);
	obuf_free(&c->out);
	free_input(c);
	close(c->fd);
	peer_forget(c);
	pool_remove(c);
	free(c);
}

void
conn_enter(struct conn *c, enum conn_state state)
{
	c->state = state;
	switch (state) {
	case CONN_IDLE:
		c->deadline = c->head_since +
			      1000 * (c->served ? lconf.idle_timeout_ms
						: lconf.header_timeout_ms);
		break;
	case CONN_LINGER:
		c->deadline = proc_now_us() + LINGER_US;
		break;
	default:
		/* while sending, conn_stalled sets one */
		c->deadline = 0;
	}
}

/* The client went away, or is sent away without a word. */
static void
gone(struct conn *c, uint8_t outcome)
{
	size_t left = obuf_left(&c->out);

	if (c->req.ask_id != 0) {
		c->req.bytes_out -=
		    left < c->req.bytes_out ? left : c->req.bytes_out;
		if (c->req.busy)
			ask_cancel(c);
		ask_fin(c, outcome);
	}
	conn_enter(c, CONN_DEAD);
}

void
conn_kill(struct conn *c, uint8_t outcome)
{
	gone(c, outcome);
	conn_free(c);
}

void
conn_do(struct conn *c)
{
	int r, answered = 0;

	do {
		if (c->state == CONN_DEAD) {
			conn_free(c);
			return;
		}
		if ((r = steps[c->state](c)) == STEP_GONE)
			gone(c, FIN_CLIENT_GONE);
		/* the next may be here already, so it is no read that is
		 * waited for */
		if (r == STEP_AGAIN && c->state == CONN_IDLE &&
		    ++answered == TURN_REQUESTS)
			r = WANT_WRITE;
	} while (r == STEP_AGAIN || r == STEP_GONE);
	arm(c, (unsigned)r);
	/* nothing would wake it */
	if (c->broken)
		conn_kill(c, FIN_CLIENT_GONE);
}

/* To the next request on this connection. */
static void
next_request(struct conn *c)
{
	size_t rest = conn_unread(c);

	explicit_bzero(c->in, c->in_used);
	memmove(c->in, c->in + c->in_used, rest);
	c->in_len = rest;
	c->in_used = 0;
	if (rest == 0)
		free_input(c);
	http_head_init(&c->head);
	c->served = 1;
	c->head_since = proc_now_us();
	pool_move(c, c->pool);
	conn_enter(c, CONN_IDLE);
}

void
conn_finish(struct conn *c, uint8_t outcome)
{
	int body_left = c->req.has_body && !c->req.body_done;
	int more = body_left || c->linger || conn_unread(c) > 0;

	/* an answer that was begun before has not said so */
	if (pool_draining())
		c->close = 1;
	if (c->req.ask_id != 0)
		ask_fin(c, outcome);
	release(c);
	if (!c->close && !body_left && (!c->eof || conn_unread(c) > 0)) {
		next_request(c);
		return;
	}
	/* closing with bytes unread would reset the connection and the
	 * client might lose the answer (RFC 9112, 9.6) */
	if (!more || c->eof || shutdown(c->fd, SHUT_WR) == -1) {
		conn_enter(c, CONN_DEAD);
		return;
	}
	free_input(c);
	conn_enter(c, CONN_LINGER);
	pool_move(c, POOL_LINGER);
}

/* ---- input and output ---- */

size_t
conn_unread(const struct conn *c)
{
	return c->in_len - c->in_used;
}

void
conn_use(struct conn *c, size_t n)
{
	c->in_used += n;
}

void
conn_reserve(struct conn *c, size_t size)
{
	uint8_t *p;

	if (c->in == NULL && size == IN_MIN && spare != NULL) {
		c->in = spare;
		c->in_cap = size;
		spare = NULL;
		return;
	}
	/* the old copy may hold a credential, so it is wiped */
	if (size > c->in_cap &&
	    (p = recallocarray(c->in, c->in_cap, size, 1)) != NULL) {
		c->in = p;
		c->in_cap = size;
	}
}

/* A larger input buffer, or why not, as conn_fill says it. */
static int
grow(struct conn *c, size_t max)
{
	size_t cap = c->in_cap == 0 ? IN_MIN : c->in_cap * 2;

	if (cap > max)
		cap = max;
	if (cap <= c->in_len)
		return -3;
	conn_reserve(c, cap);
	return c->in_cap < cap ? -2 : 0;
}

int
conn_fill(struct conn *c, size_t max)
{
	size_t room;
	ssize_t n;
	int rc;

	if (!c->readable)
		return -1;
	if (c->in_len == c->in_cap && (rc = grow(c, max)) != 0)
		return rc;
	room = c->in_cap - c->in_len;
	do
		n = recv(c->fd, c->in + c->in_len, room, 0);
	while (n == -1 && errno == EINTR);
	if (n == -1) {
		if (errno != EAGAIN)
			return -2;
		c->readable = 0;
		return -1;
	}
	/* a short read has emptied the socket; the loop says when to go on */
	if ((size_t)n < room)
		c->readable = 0;
	c->in_len += (size_t)n;
	return (int)n;
}

void
conn_write(struct conn *c, const void *p, size_t n, int flags)
{
	ssize_t m = 0;

	if (obuf_left(&c->out) == 0 && !c->broken) {
		m = send(c->fd, p, n, flags | MSG_NOSIGNAL | MSG_DONTWAIT);
		if (m == -1 && errno != EAGAIN && errno != EINTR)
			c->broken = 1;
		if (m == -1)
			m = 0;
		c->sent += (uint64_t)m;
	}
	if (!c->broken &&
	    obuf_add(&c->out, (const uint8_t *)p + m, n - (size_t)m) == -1)
		c->broken = 1;
}

int
conn_flush(struct conn *c)
{
	ssize_t n;

	while (obuf_left(&c->out) > 0 && !c->broken) {
		n = send(c->fd, c->out.p + c->out.off, obuf_left(&c->out),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			break;
		if (n == -1)
			c->broken = 1;
		else {
			obuf_took(&c->out, (size_t)n);
			c->sent += (uint64_t)n;
			c->deadline = 0;
		}
	}
	if (c->broken)
		return -1;
	if (obuf_left(&c->out) > 0) {
		conn_stalled(c);
		return 0;
	}
	if (c->file_left == 0)
		c->behind = 0;
	return 1;
}

void
conn_stalled(struct conn *c)
{
	uint64_t now = proc_now_us();

	/* a client that takes nothing is waited for no longer than one that
	 * asks nothing */
	if (c->deadline == 0)
		c->deadline = now + 1000 * lconf.idle_timeout_ms;
	if (c->behind == 0) {
		c->behind = now;
		c->behind_sent = c->sent;
	}
}

int
conn_ends_with_client(const struct conn *c)
{
	return c->req.route.op != OP_NONE &&
	       (ops[c->req.route.op].stream == S_RUN ||
		   ops[c->req.route.op].stream == S_SSE);
}

/* Make room behind the head: what was used of the body is needed no more. */
static void
drop_used(struct conn *c)
{
	size_t rest = conn_unread(c), at = c->head.end;

	if (c->in_used <= at)
		return;
	memmove(c->in + at, c->in + c->in_used, rest);
	explicit_bzero(c->in + at + rest, c->in_used - at);
	c->in_used = at;
	c->in_len = at + rest;
}

int
conn_watch(struct conn *c)
{
	int n = 0;

	if (!c->eof) {
		/* what comes now is the next request; a little of it may wait
		 * here, and before there is any, its end must show */
		drop_used(c);
		n = conn_fill(
		    c, conn_unread(c) == 0 ? c->in_len + IN_MIN : c->in_cap);
		c->full = n == -3;
	}
	if (n != 0)
		return n == -2 ? STEP_GONE : n == -3 ? WANT_NONE : WANT_READ;
	c->eof = 1; /* perhaps only half closed */
	return conn_ends_with_client(c) ? STEP_GONE : WANT_NONE;
}

/* ---- steps ---- */

static int
step_idle(struct conn *c)
{
	int n;

	if (conn_unread(c) == 0) {
		if ((n = conn_fill(c, IN_MIN)) == -1)
			return WANT_READ;
		if (n <= 0)
			return STEP_GONE;
	}
	c->head_since = proc_now_us();
	conn_enter(c, CONN_HEAD);
	return STEP_AGAIN;
}

static int
step_head(struct conn *c)
{
	size_t max = HTTP_LINE_MAX + (size_t)lconf.max_header_bytes + 8;
	uint64_t end, now;
	int n;

	for (;;) {
		n = http_head_feed(
		    &c->head, c->in, c->in_len, (size_t)lconf.max_header_bytes);
		if (n == 1) {
			conn_use(c, c->head.end);
			request_begin(c);
			return STEP_AGAIN;
		}
		if (n == -1) {
			request_malformed(c, c->head.code);
			return STEP_AGAIN;
		}
		if ((n = conn_fill(c, max)) <= 0)
			break;
	}
	if (n == -3) {
		request_malformed(c, C_REQ_HEADERS_TOO_LARGE);
		return STEP_AGAIN;
	}
	if (n != -1)
		return STEP_GONE;
	now = proc_now_us();
	end = c->head_since + 1000 * lconf.head_deadline_ms;
	c->deadline = now + 1000 * lconf.header_timeout_ms;
	if (c->deadline > end)
		c->deadline = end;
	return WANT_READ;
}

/* For the monitor. */
static int
step_wait(struct conn *c)
{
	/* a body that will be streamed is left to the kernel */
	if (c->req.has_body && !c->req.body_done)
		return c->state == CONN_PUT_END ? conn_watch(c) : WANT_NONE;
	return conn_watch(c);
}

static int
step_send(struct conn *c)
{
	int r;

	if ((r = conn_flush(c)) == -1)
		return STEP_GONE;
	if (r == 0)
		return WANT_WRITE;
	if (c->file_left > 0 && (r = get_more(c)) != 0)
		return r;
	conn_finish(c, FIN_OK);
	return STEP_AGAIN;
}

static int
step_linger(struct conn *c)
{
	static uint8_t sink[16 * 1024];
	ssize_t n;
	int i;

	for (i = 0; i < 16; i++) {
		n = recv(c->fd, sink, sizeof(sink), MSG_DONTWAIT);
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			return WANT_READ;
		if (n <= 0)
			return STEP_GONE;
	}
	return WANT_READ;
}
