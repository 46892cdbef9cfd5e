/*
 * SPDX-License-Identifier: ISC
 *
 * Kept output and its followers.  Owns two rings and the write ends of frame
 * pipes.  Frames: FR_AT first, then FR_OUT, FR_ERR and FR_GAP, and last
 * FR_EXIT, or FR_END when the process still runs.  Never waits.
 */
#include "execd/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/frame.h"
#include "common/log.h"
#include "execd/keep.h"
#include "execd/ring.h"

#define PIECE (16 * 1024)   /* bytes of one stream before the other's turn */
#define WAITING (64 * 1024) /* framed bytes of one follower */

struct follower {
	struct follower *next;
	struct spool *spool;
	struct event wev; /* room in the pipe */
	struct event rev; /* its reader is gone */
	struct frames q;
	uint64_t at[2]; /* offset of the next byte of each stream */
	int fd;
	int follow;
	int last; /* the last frame is queued */
};

struct spool {
	struct event_base *base;
	struct ring ring[2];
	struct follower *followers;
	size_t n;
	int ended;
	struct run_end end;
};

static const uint8_t kinds[] = {FR_OUT, FR_ERR};

static void
follower_free(struct follower *f)
{
	struct follower **p;

	for (p = &f->spool->followers; *p != NULL && *p != f; p = &(*p)->next)
		continue;
	if (*p == f) {
		*p = f->next;
		f->spool->n--;
	}
	event_del(&f->wev);
	event_del(&f->rev);
	close(f->fd);
	frames_free(&f->q);
	free(f);
}

/* ---- frames of one follower ---- */

static int
put_payload(struct follower *f, uint8_t kind, struct wbuf *w)
{
	int rc = w->err ? -1 : frames_put(&f->q, kind, w->p, w->len);

	wbuf_free(w);
	return rc;
}

static int
put_gap(struct follower *f, int which, uint64_t missed)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u8(&w, kinds[which]);
	wput_u64(&w, missed);
	return put_payload(f, FR_GAP, &w);
}

/* At most one piece of a stream: 1 when something was queued, 0, or -1. */
static int
put_stream(struct follower *f, int which)
{
	const struct ring *r = &f->spool->ring[which];
	const uint8_t *p;
	size_t n;

	if (f->at[which] < r->start) {
		if (put_gap(f, which, r->start - f->at[which]) == -1)
			return -1;
		f->at[which] = r->start;
	}
	if ((n = ring_at(r, f->at[which], &p)) == 0)
		return 0;
	if (n > PIECE)
		n = PIECE;
	if (frames_put(&f->q, kinds[which], p, n) == -1)
		return -1;
	f->at[which] += n;
	return 1;
}

/* It has everything that is there: say why nothing more comes, if so. */
static int
put_last(struct follower *f)
{
	struct wbuf w;

	if (!f->spool->ended && f->follow)
		return 0;
	f->last = 1;
	wbuf_init(&w, 2048);
	if (f->spool->ended) {
		run_end_put(&w, &f->spool->end);
		return put_payload(f, FR_EXIT, &w);
	}
	wput_u16(&w, 0);
	wput_u8(&w, 0);
	return put_payload(f, FR_END, &w);
}

/* Queue what there is to say, as far as the bound allows.  0 or -1. */
static int
fill(struct follower *f)
{
	int out = 1, err = 1;

	while (!f->last && frames_left(&f->q) < WAITING) {
		if ((out = put_stream(f, 0)) == -1 ||
		    (err = put_stream(f, 1)) == -1)
			return -1;
		if (out == 0 && err == 0)
			return put_last(f);
	}
	return 0;
}

/* Write what the pipe takes.  May free the follower. */
static void
follower_push(struct follower *f)
{
	ssize_t n;

	for (;;) {
		if (fill(f) == -1) {
			log_warnx("out of memory for a follower");
			break;
		}
		if (frames_left(&f->q) == 0) {
			if (f->last)
				break;
			return; /* until more comes */
		}
		n = write(f->fd, f->q.p + f->q.off, frames_left(&f->q));
		if (n >= 0) {
			frames_sent(&f->q, (size_t)n);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN && event_add(&f->wev, NULL) == 0)
			return;
		break; /* nobody reads it */
	}
	follower_free(f);
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	follower_push(arg);
}

/* The write end of a pipe is never readable but in error. */
static void
gone_cb(evutil_socket_t fd, short what, void *arg)
{
	follower_free(arg);
}

/* ---- the spool ---- */

struct spool *
spool_new(struct event_base *base, size_t max)
{
	struct spool *s;

	if ((s = calloc(1, sizeof(*s))) == NULL)
		return NULL;
	s->base = base;
	ring_init(&s->ring[0], max);
	ring_init(&s->ring[1], max);
	return s;
}

void
spool_free(struct spool *s)
{
	if (s == NULL)
		return;
	while (s->followers != NULL)
		follower_free(s->followers);
	ring_free(&s->ring[0]);
	ring_free(&s->ring[1]);
	free(s);
}

size_t
spool_followers(const struct spool *s)
{
	return s == NULL ? 0 : s->n;
}

static void
push_all(struct spool *s)
{
	struct follower *f, *next;

	for (f = s->followers; f != NULL; f = next) {
		next = f->next;
		/* one whose pipe is full has its event */
		if (!event_pending(&f->wev, EV_WRITE, NULL))
			follower_push(f);
	}
}

void
spool_put(struct spool *s, int which, const uint8_t *p, size_t n)
{
	if (ring_put(&s->ring[which], p, n) == -1)
		log_warnx("out of memory for output");
	push_all(s);
}

void
spool_end(struct spool *s, struct run_end *e)
{
	e->dropped_out = s->ring[0].start;
	e->dropped_err = s->ring[1].start;
	if (e->dropped_out > 0)
		e->flags |= END_TRUNC_OUT;
	if (e->dropped_err > 0)
		e->flags |= END_TRUNC_ERR;
	s->end = *e;
	s->ended = 1;
	push_all(s);
}

static int
follower_start(struct follower *f, const uint64_t at[2])
{
	struct spool *s = f->spool;
	struct wbuf w;
	int i;

	wbuf_init(&w, 16);
	for (i = 0; i < 2; i++) {
		f->at[i] = at[i] > s->ring[i].end ? s->ring[i].end : at[i];
		wput_u64(&w, f->at[i]);
	}
	if (put_payload(f, FR_AT, &w) == -1 || event_add(&f->rev, NULL) == -1) {
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

int
spool_follow(struct spool *s, const uint64_t at[2], int follow)
{
	struct follower *f;
	int p[2];

	if (s->n >= SPOOL_FOLLOWERS) {
		errno = EAGAIN;
		return -1;
	}
	if ((f = calloc(1, sizeof(*f))) == NULL)
		return -1;
	if (pipe2(p, O_CLOEXEC) == -1) {
		free(f);
		return -1;
	}
	f->spool = s;
	f->fd = p[1];
	f->follow = follow;
	event_assign(&f->wev, s->base, f->fd, EV_WRITE, write_cb, f);
	event_assign(&f->rev, s->base, f->fd, EV_READ, gone_cb, f);
	if (fcntl(p[1], F_SETFL, O_NONBLOCK) == -1 ||
	    follower_start(f, at) == -1) {
		follower_free(f);
		close(p[0]);
		return -1;
	}
	f->next = s->followers;
	s->followers = f;
	s->n++;
	follower_push(f);
	return p[0];
}
