/*
 * SPDX-License-Identifier: ISC
 *
 * Who is too slow: what time passing means for a connection, asked ten times
 * a second.  Closes it and never answers.
 */
#include <poll.h>

#include "common/proc.h"
#include "listener/conn.h"
#include "listener/get.h"
#include "listener/listener.h"
#include "listener/run.h"
#include "listener/watch.h"

#define RATE_GRACE_US 10000000 /* before the rate of a body counts */

void
conn_body_wait(struct conn *c, int on)
{
	uint64_t now = proc_now_us();

	if (on) {
		if (c->wait_from == 0)
			c->wait_from = now;
		c->deadline = now + 1000 * lconf.header_timeout_ms;
	} else {
		if (c->wait_from != 0)
			c->waited += now - c->wait_from;
		c->wait_from = 0;
		c->deadline = 0;
	}
}

uint64_t
conn_body_waited(const struct conn *c, uint64_t now)
{
	return c->waited + (c->wait_from == 0 ? 0 : now - c->wait_from);
}

/* That many bytes in so many microseconds are less than the client owes. */
static int
below_rate(uint64_t bytes, uint64_t us)
{
	return bytes / 1024 * 1000000 + bytes % 1024 * 1000000 / 1024 <
	       us / 1024 * lconf.min_rate;
}

/* Too little of a body over the time that was spent waiting for it. */
static int
too_slow(const struct conn *c, uint64_t now)
{
	uint64_t w = conn_body_waited(c, now);

	if (c->wait_from == 0)
		return 0;
	return w > RATE_GRACE_US &&
	       below_rate(c->req.bytes_in, w - RATE_GRACE_US);
}

/* 1 when the client took something of an answer after all.  The kernel says
 * that it can be written to only when much of its buffer is free, for which a
 * slow client may need longer than the time-out is. */
static int
took_some(struct conn *c)
{
	uint64_t then = c->deadline;

	switch (c->state) {
	case CONN_LIST:
	case CONN_RUN:
	case CONN_WATCH:
	case CONN_SEND:
		break;
	default:
		return 0;
	}
	if (obuf_left(&c->out) > 0)
		(void)conn_flush(c);
	else if (c->file_left > 0 && get_more(c) == STEP_GONE)
		return 0;
	conn_stalled(c);
	return c->deadline != then;
}

/* Too little of an answer was taken while there was always more of it: judged
 * over twice the time that it may take nothing at all, since the kernel's
 * buffer empties in large steps.  What is said as it happens, and taken, is
 * never behind. */
static int
lags(struct conn *c, uint64_t now)
{
	uint64_t us = now - c->behind;

	if (c->behind == 0 || now < c->behind ||
	    us < 2000 * lconf.idle_timeout_ms)
		return 0;
	(void)took_some(c);
	if (c->behind == 0)
		return 0;
	if (below_rate(c->sent - c->behind_sent, us))
		return 1;
	c->behind = now;
	c->behind_sent = c->sent;
	return 0;
}

/* The client is gone, behind requests that it sent ahead and that nothing
 * reads while this one lasts. */
static int
left(const struct conn *c)
{
	struct pollfd p = {c->fd, POLLRDHUP, 0};

	return c->full && conn_ends_with_client(c) && poll(&p, 1, 0) == 1 &&
	       (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void
conn_tick(struct conn *c, uint64_t now)
{
	if ((c->deadline != 0 && now >= c->deadline && !took_some(c)) ||
	    too_slow(c, now) || lags(c, now) || left(c) || c->broken) {
		conn_kill(c, FIN_CLIENT_GONE);
		return;
	}
	if (c->state == CONN_RUN)
		run_tick(c, now);
	else if (c->state == CONN_WATCH)
		watch_tick(c, now);
	/* a comment that did not fit */
	if (obuf_left(&c->out) > 0)
		conn_want_write(c);
}
