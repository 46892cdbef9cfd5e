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

#define RATE_GRACE_US 10000000 /* then 1 KiB/s of body at least */

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

/* Less than 1 KiB/s over the time that was spent waiting for the client. */
static int
too_slow(const struct conn *c, uint64_t now)
{
	uint64_t w = conn_body_waited(c, now);

	if (c->wait_from == 0)
		return 0;
	return w > RATE_GRACE_US &&
	       c->req.bytes_in / 1024 < (w - RATE_GRACE_US) / 1000000;
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
	    too_slow(c, now) || left(c) || c->broken) {
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
