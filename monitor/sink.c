/*
 * SPDX-License-Identifier: ISC
 *
 * Audit sinks.  Records of one turn of the loop leave in one write: at a high
 * rate of requests that is most of what a record costs.  A file takes all of
 * it at once or fails; a pipe or a terminal is never waited for: its queue is
 * bounded, and it is asked again when it can take more.
 */
#include "monitor/sink.h"

#include <sys/stat.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/log.h"

#define FILE_BATCH (64 * 1024) /* a file's queue is written before that */
#define RETRY_MS 100	       /* of a sink that takes nothing now */

struct sink {
	int fd;	     /* -1: none */
	int is_file; /* a write never waits for anybody */
	int torn;    /* the last line there has no end */
	uint8_t *q;  /* whole lines, but for the first when torn off */
	size_t len, cap;
};

static struct {
	struct sink v[SINK_MAX];
	size_t n;
	uint64_t lost;
	struct event now, later; /* end of the turn; ask again */
	int pending, waiting;
} sinks;

static void flush_cb(evutil_socket_t, short, void *);

void
sink_init(struct event_base *base, size_t n)
{
	size_t i;

	sinks.n = n > SINK_MAX ? SINK_MAX : n;
	for (i = 0; i < SINK_MAX; i++)
		sinks.v[i].fd = -1;
	if (event_assign(&sinks.now, base, -1, 0, flush_cb, NULL) == -1 ||
	    event_assign(&sinks.later, base, -1, 0, flush_cb, NULL) == -1 ||
	    atexit(sink_flush) != 0)
		fatalx("audit sinks");
}

int
sink_any(void)
{
	return sinks.n > 0;
}

uint64_t
sink_lost(void)
{
	return sinks.lost;
}

void
sink_count_lost(void)
{
	if (sinks.lost++ == 0)
		log_warnx("an audit record was lost");
}

/* ---- writing ---- */

/* Drop the first n bytes of what waits. */
static void
consume(struct sink *s, size_t n)
{
	s->torn = n > 0 && s->q[n - 1] != '\n';
	s->len -= n;
	memmove(s->q, s->q + n, s->len);
}

/* What a failed sink did not take: all that waits. */
static void
give_up(struct sink *s)
{
	size_t i;

	for (i = 0; i < s->len; i++)
		if (s->q[i] == '\n')
			sink_count_lost();
	s->len = 0;
}

/* 1 when a write of n bytes would not wait: a pipe that is writable takes
 * PIPE_BUF. */
static int
takes(const struct sink *s)
{
	struct pollfd p = {s->fd, POLLOUT, 0};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0;
}

/* 1 when something is left for later. */
static int
flush(struct sink *s)
{
	ssize_t n;
	size_t m;

	while (s->fd != -1 && s->len > 0) {
		m = s->len;
		if (!s->is_file) {
			if (!takes(s))
				return 1;
			m = m > PIPE_BUF ? PIPE_BUF : m;
		}
		n = write(s->fd, s->q, m);
		if (n > 0)
			consume(s, (size_t)n);
		else if (n == -1 && errno == EAGAIN)
			return 1;
		else if (n == 0 || errno != EINTR)
			give_up(s);
	}
	return 0;
}

void
sink_flush(void)
{
	size_t i;

	sinks.waiting = 0;
	for (i = 0; i < sinks.n; i++)
		sinks.waiting |= flush(&sinks.v[i]);
}

static void
flush_cb(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval tv = {0, RETRY_MS * 1000};

	sinks.pending = 0;
	sink_flush();
	if (sinks.waiting)
		(void)event_add(&sinks.later, &tv);
}

/* ---- queueing ---- */

void
sink_set(size_t i, int fd)
{
	struct sink *s;
	struct stat st;

	if (i >= sinks.n) {
		close(fd);
		return;
	}
	s = &sinks.v[i];
	if (s->fd != -1) {
		if (s->is_file)
			(void)flush(s);
		close(s->fd);
		s->torn = 0;
	}
	s->fd = fd;
	s->is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static int
reserve(struct sink *s, size_t more)
{
	size_t cap = s->cap == 0 ? FILE_BATCH : s->cap;
	uint8_t *p;

	if (more > SINK_QUEUE - s->len)
		return -1;
	while (cap < s->len + more)
		cap *= 2;
	if (cap == s->cap)
		return 0;
	if ((p = realloc(s->q, cap)) == NULL)
		return -1;
	s->q = p;
	s->cap = cap;
	return 0;
}

static void
append(struct sink *s, const void *p, size_t n)
{
	memcpy(s->q + s->len, p, n);
	s->len += n;
}

void
sink_put(const void *line, size_t len)
{
	struct sink *s;
	size_t i;

	for (i = 0; i < sinks.n; i++) {
		s = &sinks.v[i];
		if (s->is_file && s->len + len > FILE_BATCH)
			(void)flush(s);
		if (s->fd == -1 || reserve(s, len + 1) == -1) {
			sink_count_lost();
			continue;
		}
		/* what a full disk cut off does not swallow the next one */
		if (s->torn && s->len == 0)
			append(s, "\n", 1);
		append(s, line, len);
	}
	if (!sinks.pending) {
		sinks.pending = 1;
		event_active(&sinks.now, EV_TIMEOUT, 0);
	}
}
