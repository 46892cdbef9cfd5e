/*
 * SPDX-License-Identifier: ISC
 *
 * Feeding a process.  Owns the write end of its stdin and the files that wait.
 * Never blocks; a process that does not read holds up nobody but those who
 * write to it.
 */
#include "execd/feed.h"

#include <sys/queue.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/codes.h"
#include "common/log.h"

#define CHUNK (64 * 1024)

struct piece {
	TAILQ_ENTRY(piece) entry;
	uint64_t id;
	off_t off; /* of the next byte to write */
	int fd;
	int eof;
};

struct feed {
	TAILQ_HEAD(, piece) q;
	size_t n;
	struct event ev;
	feed_done_cb done;
	int fd;	 /* -1: closed */
	int eof; /* nothing more may be put */
};

static void
tell(struct feed *f, uint64_t id, uint16_t code)
{
	if (id != 0)
		f->done(id, code);
}

static void
piece_end(struct feed *f, struct piece *p, uint16_t code)
{
	TAILQ_REMOVE(&f->q, p, entry);
	f->n--;
	close(p->fd);
	tell(f, p->id, code);
	free(p);
}

/* No byte goes in any more; what waits is told why. */
static void
feed_close(struct feed *f, uint16_t code)
{
	f->eof = 1;
	if (f->fd != -1) {
		event_del(&f->ev);
		close(f->fd);
		f->fd = -1;
	}
	while (!TAILQ_EMPTY(&f->q))
		piece_end(f, TAILQ_FIRST(&f->q), code);
}

/* 1: all of it is written; 0: the pipe is full; -1: nobody reads it. */
static int
piece_write(struct feed *f, struct piece *p)
{
	static uint8_t chunk[CHUNK];
	ssize_t n, m;

	for (;;) {
		n = pread(p->fd, chunk, sizeof(chunk), p->off);
		if (n == 0)
			return 1;
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		m = write(f->fd, chunk, (size_t)n);
		if (m > 0)
			p->off += m;
		else if (m == -1 && errno == EAGAIN)
			return 0;
		else if (m == -1 && errno != EINTR)
			return -1;
	}
}

static void
feed_step(struct feed *f)
{
	struct piece *p;
	int r, eof;

	while ((p = TAILQ_FIRST(&f->q)) != NULL) {
		if ((r = piece_write(f, p)) == 0) {
			if (event_add(&f->ev, NULL) == 0)
				return;
			log_warnx("event_add");
			r = -1;
		}
		if (r == -1) {
			feed_close(f, C_PROC_STDIN_CLOSED);
			return;
		}
		eof = p->eof;
		piece_end(f, p, C_OK);
		if (eof)
			feed_close(f, C_PROC_STDIN_CLOSED);
	}
}

static void
write_cb(evutil_socket_t fd, short what, void *arg)
{
	feed_step(arg);
}

struct feed *
feed_new(struct event_base *base, int fd, feed_done_cb done)
{
	struct feed *f;

	if ((f = calloc(1, sizeof(*f))) == NULL)
		return NULL;
	TAILQ_INIT(&f->q);
	f->fd = fd;
	f->done = done;
	event_assign(&f->ev, base, fd, EV_WRITE, write_cb, f);
	return f;
}

void
feed_free(struct feed *f)
{
	if (f == NULL)
		return;
	feed_close(f, C_PROC_ENDED);
	free(f);
}

void
feed_drop(struct feed *f)
{
	if (f != NULL)
		f->fd = -1;
	feed_free(f);
}

size_t
feed_waiting(const struct feed *f)
{
	return f == NULL ? 0 : f->n;
}

int
feed_put(struct feed *f, uint64_t id, int fd, int eof)
{
	struct piece *p = NULL;
	uint16_t code = C_OK;

	if (f->eof)
		code = C_PROC_STDIN_CLOSED;
	else if (f->n >= FEED_PIECES)
		code = C_LIM_CONCURRENCY;
	else if ((p = calloc(1, sizeof(*p))) == NULL)
		code = C_SRV_UNAVAILABLE;
	if (p == NULL) {
		close(fd);
		tell(f, id, code);
		return code == C_SRV_UNAVAILABLE ? -1 : 0;
	}
	p->id = id;
	p->fd = fd;
	p->eof = f->eof = eof;
	f->n++;
	TAILQ_INSERT_TAIL(&f->q, p, entry);
	if (TAILQ_NEXT(p, entry) == NULL && TAILQ_FIRST(&f->q) == p)
		feed_step(f);
	return 0;
}
