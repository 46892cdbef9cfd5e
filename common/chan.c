/*
 * SPDX-License-Identifier: ISC
 *
 * imsg on libevent.  Queued messages leave at the end of the turn (an event
 * activated behind those that are already active), so that one turn makes few
 * packets; a long turn sends some on its way, so that the next process can
 * begin while this one goes on.
 */
#include "common/chan.h"

#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#define PACKET 8     /* messages that wait for no others: see make bench */
#define BUSY 4	     /* messages of a packet that hint at more */
#define LATE_US 1000 /* that long a late message may wait for company */

struct chan {
	struct imsgbuf *buf;
	struct event rev, wev, fev; /* read, write, flush at end of turn */
	chan_msg_cb msg;
	chan_gone_cb gone;
	void *arg;
	int flushing; /* fev or wev is pending */
	int packed;   /* messages queued since the last packet */
	int dead;     /* gone was called or is about to be */
	int busy;     /* inside a callback */
	int freed;    /* free once not busy */
};

static void chan_read_cb(evutil_socket_t, short, void *);
static void chan_write_cb(evutil_socket_t, short, void *);
static void chan_flush_cb(evutil_socket_t, short, void *);

struct chan *
chan_new(struct event_base *base, int fd, chan_msg_cb msg, chan_gone_cb gone,
    void *arg)
{
	struct chan *c;
	int fl;

	if ((fl = fcntl(fd, F_GETFL)) == -1 ||
	    fcntl(fd, F_SETFL, fl | O_NONBLOCK) == -1)
		return NULL;
	if ((c = calloc(1, sizeof(*c))) == NULL)
		return NULL;
	if ((c->buf = imsg_new(fd)) == NULL) {
		free(c);
		return NULL;
	}
	c->msg = msg;
	c->gone = gone;
	c->arg = arg;
	event_assign(&c->rev, base, fd, EV_READ | EV_PERSIST, chan_read_cb, c);
	event_assign(&c->wev, base, fd, EV_WRITE, chan_write_cb, c);
	event_assign(&c->fev, base, -1, 0, chan_flush_cb, c);
	if (event_add(&c->rev, NULL) == -1) {
		(void)imsg_detach(c->buf); /* still the caller's */
		free(c);
		errno = ENOMEM;
		return NULL;
	}
	return c;
}

void
chan_hand(struct chan *c, chan_msg_cb msg, chan_gone_cb gone, void *arg)
{
	c->msg = msg;
	c->gone = gone;
	c->arg = arg;
}

static void
chan_destroy(struct chan *c)
{
	imsg_free(c->buf);
	free(c);
}

void
chan_free(struct chan *c)
{
	if (c == NULL || c->freed)
		return;
	event_del(&c->rev);
	event_del(&c->wev);
	event_del(&c->fev);
	c->dead = 1;
	c->freed = 1;
	if (!c->busy)
		chan_destroy(c);
}

static void
chan_die(struct chan *c, int error)
{
	if (c->dead)
		return;
	c->dead = 1;
	event_del(&c->rev);
	event_del(&c->wev);
	event_del(&c->fev);
	c->busy++;
	c->gone(c, error, c->arg);
	if (--c->busy == 0 && c->freed)
		chan_destroy(c);
}

/* Hand every frame of the packet on.  Their number, or -1 when the peer is
 * broken. */
static int
chan_deliver(struct chan *c)
{
	struct imsg m;
	int rc, n;

	for (n = 0; !c->dead && imsg_get(c->buf, &m); n++) {
		rc = c->msg(c, &m, c->arg);
		if (m.fd != -1)
			close(m.fd);
		if (rc != 0)
			return -1;
	}
	return n;
}

static void
chan_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;
	int n, rounds, error = -1;

	c->busy++;
	/* Drain, but let other events in after a while.  A packet of few
	 * messages is of a quiet time, when the next is not there yet: asking
	 * for it would be a system call in the way of the answer. */
	for (rounds = 0; rounds < 64 && !c->dead; rounds++) {
		if ((n = imsg_read(c->buf)) == 0)
			break;
		if (n == -1) {
			error = errno;
			break;
		}
		if ((n = chan_deliver(c)) == -1) {
			error = EBADMSG;
			break;
		}
		if (n < BUSY)
			break;
	}
	if (error != -1)
		chan_die(c, error);
	if (--c->busy == 0 && c->freed)
		chan_destroy(c);
}

static void
chan_try_flush(struct chan *c)
{
	int n = imsg_flush(c->buf);

	c->flushing = 0;
	c->packed = 0;
	if (n == 1) {
		c->flushing = 1;
		if (event_add(&c->wev, NULL) == -1)
			chan_die(c, ENOMEM);
	} else if (n == -1)
		/* the reading side may still hold the reason */
		if (errno != EPIPE && errno != ECONNRESET)
			chan_die(c, errno);
}

static void
chan_write_cb(evutil_socket_t fd, short what, void *arg)
{
	chan_try_flush(arg);
}

static void
chan_flush_cb(evutil_socket_t fd, short what, void *arg)
{
	chan_try_flush(arg);
}

static int
queue(struct chan *c, uint16_t type, uint64_t id, int fd, const void *payload,
    size_t len)
{
	if (c->dead) {
		if (fd != -1)
			close(fd);
		errno = EPIPE;
		return -1;
	}
	return imsg_compose(c->buf, type, id, fd, payload, len);
}

int
chan_send(struct chan *c, uint16_t type, uint64_t id, int fd,
    const void *payload, size_t len)
{
	if (queue(c, type, id, fd, payload, len) == -1)
		return -1;
	if (!c->flushing) {
		c->flushing = 1;
		event_active(&c->fev, EV_TIMEOUT, 0);
	}
	/* how it went is seen, and said, at the end of the turn */
	if (++c->packed >= PACKET) {
		c->packed = 0;
		(void)imsg_flush(c->buf);
	}
	return 0;
}

int
chan_send_late(
    struct chan *c, uint16_t type, uint64_t id, const void *payload, size_t len)
{
	static const struct timeval tv = {0, LATE_US};

	if (queue(c, type, id, -1, payload, len) == -1)
		return -1;
	if (!c->flushing && !event_pending(&c->fev, EV_TIMEOUT, NULL) &&
	    event_add(&c->fev, &tv) == -1)
		return -1;
	return 0;
}

void
chan_flush(struct chan *c, int ms)
{
	struct pollfd p = {imsg_fd(c->buf), POLLOUT, 0};

	while (!c->dead && imsg_flush(c->buf) == 1)
		if (poll(&p, 1, ms) <= 0)
			break;
}

size_t
chan_queued(const struct chan *c)
{
	return imsg_queued(c->buf);
}

int
chan_set_aside(struct chan *c, size_t packets)
{
	return imsg_set_aside(c->buf, packets);
}

int
chan_passcred(struct chan *c)
{
	return imsg_passcred(c->buf);
}

void
chan_pause(struct chan *c, int on)
{
	if (c->dead)
		return;
	if (on)
		event_del(&c->rev);
	else if (event_add(&c->rev, NULL) == -1)
		chan_die(c, ENOMEM); /* it would be deaf for ever */
}
