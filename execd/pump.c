/*
 * SPDX-License-Identifier: ISC
 *
 * Reads the outputs of a run, keeps what is asked for, and writes frames as
 * the pipe takes them; output of a process goes to its spool.  What is beyond
 * the limit is read and counted.
 */
#include "execd/pump.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/proc.h"
#include "execd/keep.h"
#include "execd/spool.h"

#define CHUNK (64 * 1024)
#define TURN 4	    /* chunks of one stream in one turn of the loop */
#define LAST_MAX 32 /* chunks read at the end; pipes hold less */
/* A stream waits for its reader a little, so that one that is only somewhat
 * slower than the program does not cost memory: while more than HIGH bytes
 * lie here, and not longer than REST_US in all. */
#define HIGH (4 * 1024 * 1024)
#define LOW (1024 * 1024)
#define REST_US 1000000
#define AGAIN_US 50000 /* to read on, when that could not be */

struct stream {
	struct pump *pump;
	struct event ev;
	struct keep keep; /* captured */
	uint64_t missed;  /* streamed: bytes beyond the limit */
	uint64_t allow;	  /* streamed: bytes that may still be sent */
	int fd;		  /* -1 at its end */
	uint8_t kind;	  /* FR_OUT, FR_ERR */
};

struct pump {
	struct stream s[2];
	struct event wev;
	struct frames q;
	const struct pump_ops *ops;
	void *arg;
	struct spool *spool; /* of a process, else NULL; not owned */
	int fd;	   /* frame pipe, -1 when the reader is gone or there is none */
	int live;  /* SPAWN_STREAM */
	int waits; /* for the reader: nothing is read */
	uint64_t since_us, rest_us;
	struct event clock;
	int ended; /* the exit frame is queued */
};

static uint8_t chunk[CHUNK];

static void
reader_gone(struct pump *p)
{
	event_del(&p->wev);
	close(p->fd);
	p->fd = -1;
	frames_free(&p->q);
}

/* Write what the pipe takes; wait for room when something is left. */
static void
push(struct pump *p)
{
	ssize_t n;

	while (p->fd != -1 && frames_left(&p->q) > 0) {
		n = write(p->fd, p->q.p + p->q.off, frames_left(&p->q));
		if (n >= 0) {
			frames_sent(&p->q, (size_t)n);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN) {
			if (event_add(&p->wev, NULL) == 0)
				return;
			log_warnx("event_add");
		}
		reader_gone(p);
	}
}

static void
queue(struct pump *p, uint8_t kind, const uint8_t *data, size_t n)
{
	if (p->fd == -1 || n == 0)
		return;
	if (frames_put(&p->q, kind, data, n) == -1) {
		log_warnx("out of memory for output");
		reader_gone(p);
	}
}

static void
take(struct stream *s, const uint8_t *data, size_t n)
{
	struct pump *p = s->pump;

	if (p->spool != NULL) {
		spool_put(p->spool, s->kind == FR_ERR, data, n);
		return;
	}
	if (!p->live) {
		queue(p, s->kind, data, keep_take(&s->keep, data, n));
		return;
	}
	/* a slow reader misses nothing: the limit bounds what waits for it, as
	 * it bounds what is captured */
	if (n > s->allow) {
		s->missed += n - s->allow;
		n = (size_t)s->allow;
	}
	s->allow -= n;
	queue(p, s->kind, data, n);
}

static void
stream_close(struct stream *s)
{
	if (s->fd == -1)
		return;
	event_del(&s->ev);
	close(s->fd);
	s->fd = -1;
}

/* Read at most so many chunks: 1 when bytes came. */
static int
stream_read(struct stream *s, int rounds)
{
	int came = 0;
	ssize_t n;

	while (rounds-- > 0 && s->fd != -1) {
		n = read(s->fd, chunk, sizeof(chunk));
		if (n > 0) {
			came = 1;
			take(s, chunk, (size_t)n);
			push(s->pump);
		} else if (n == -1 && errno == EAGAIN)
			break;
		else if (n == 0 || errno != EINTR)
			stream_close(s);
	}
	return came;
}

/* ---- waiting for the reader of a stream ---- */

static void
resume(struct pump *p)
{
	static const struct timeval again = {0, AGAIN_US};
	uint64_t now = proc_now_us(), spent = now - p->since_us;
	int i;

	p->waits = 0;
	p->since_us = now;
	p->rest_us -= spent < p->rest_us ? spent : p->rest_us;
	event_del(&p->clock);
	for (i = 0; i < 2; i++)
		if (p->s[i].fd != -1 && event_add(&p->s[i].ev, NULL) == -1)
			p->waits = 1;
	if (p->waits && event_add(&p->clock, &again) == -1)
		log_warnx("event_add"); /* its end is seen */
}

static void
clock_cb(evutil_socket_t fd, short what, void *arg)
{
	resume(arg);
}

static void
hold(struct pump *p)
{
	struct timeval tv = {0, 0};

	if (p->waits || p->rest_us == 0 || frames_left(&p->q) < HIGH)
		return;
	tv.tv_sec = (time_t)(p->rest_us / 1000000);
	tv.tv_usec = (suseconds_t)(p->rest_us % 1000000);
	if (event_add(&p->clock, &tv) == -1)
		return;
	p->waits = 1;
	p->since_us = proc_now_us();
	event_del(&p->s[0].ev);
	event_del(&p->s[1].ev);
}

static void
stream_cb(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;
	struct pump *p = s->pump;

	if (stream_read(s, TURN))
		p->ops->data(p->arg);
	if (p->s[0].fd == -1 && p->s[1].fd == -1)
		p->ops->eof(p->arg);
	else if (p->live)
		hold(p);
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct pump *p = arg;

	push(p);
	if (p->waits && frames_left(&p->q) < LOW)
		resume(p);
	if (p->ended && (p->fd == -1 || frames_left(&p->q) == 0))
		p->ops->done(p->arg);
}

struct pump *
pump_new(struct event_base *base, const struct pump_io *io, uint16_t flags,
    uint64_t max, const struct pump_ops *ops, void *arg)
{
	struct pump *p;
	int i;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		return NULL;
	p->ops = ops;
	p->arg = arg;
	p->fd = io->frames;
	p->spool = io->spool;
	p->live = (flags & SPAWN_STREAM) != 0;
	p->rest_us = REST_US;
	evtimer_assign(&p->clock, base, clock_cb, p);
	p->s[0].kind = FR_OUT;
	p->s[0].fd = io->out;
	p->s[1].kind = FR_ERR;
	p->s[1].fd = io->err;
	event_assign(&p->wev, base, io->frames, EV_WRITE, write_cb, p);
	for (i = 0; i < 2; i++) {
		p->s[i].pump = p;
		p->s[i].allow = max;
		keep_init(&p->s[i].keep, max, (flags & SPAWN_HEAD_TAIL) != 0);
		event_assign(&p->s[i].ev, base, p->s[i].fd,
		    EV_READ | EV_PERSIST, stream_cb, &p->s[i]);
	}
	if (event_add(&p->s[0].ev, NULL) == -1 ||
	    event_add(&p->s[1].ev, NULL) == -1) {
		event_del(&p->s[0].ev);
		event_del(&p->s[1].ev);
		free(p);
		errno = ENOMEM;
		return NULL;
	}
	return p;
}

void
pump_free(struct pump *p)
{
	int i;

	if (p == NULL)
		return;
	for (i = 0; i < 2; i++) {
		stream_close(&p->s[i]);
		keep_free(&p->s[i].keep);
	}
	event_del(&p->clock);
	event_del(&p->wev); /* it may be active without a descriptor */
	if (p->fd != -1)
		reader_gone(p);
	frames_free(&p->q);
	free(p);
}

int
pump_waits(const struct pump *p)
{
	return p != NULL && p->waits;
}

static void
finish_stream(struct stream *s)
{
	const uint8_t *tail[KEEP_PIECES];
	size_t n[KEEP_PIECES], i;

	(void)stream_read(s, LAST_MAX);
	stream_close(s);
	keep_tail(&s->keep, tail, n);
	for (i = 0; i < KEEP_PIECES; i++)
		queue(s->pump, s->kind, tail[i], n[i]);
}

static void
queue_end(struct pump *p, const struct run_end *e)
{
	struct wbuf w;

	wbuf_init(&w, 2048);
	run_end_put(&w, e);
	if (w.err)
		log_warnx("out of memory for the end of a run");
	else
		queue(p, FR_EXIT, w.p, w.len);
	wbuf_free(&w);
}

void
pump_end(struct pump *p, struct run_end *e)
{
	event_del(&p->clock);
	p->waits = 0;
	finish_stream(&p->s[0]);
	finish_stream(&p->s[1]);
	e->dropped_out = p->s[0].keep.dropped + p->s[0].missed;
	e->dropped_err = p->s[1].keep.dropped + p->s[1].missed;
	if (e->dropped_out > 0)
		e->flags |= END_TRUNC_OUT;
	if (e->dropped_err > 0)
		e->flags |= END_TRUNC_ERR;
	if (p->spool != NULL)
		spool_end(p->spool, e);
	else
		queue_end(p, e);
	p->ended = 1;
	push(p);
	/* what the pipe did not take brings write_cb back; else it is over,
	 * and the owner hears it from the loop, not from within this call */
	if (p->fd == -1 || frames_left(&p->q) == 0)
		event_active(&p->wev, EV_WRITE, 0);
}
