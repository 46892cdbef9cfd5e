/*
 * SPDX-License-Identifier: ISC
 *
 * Listings and searches in a worker: frames into a pipe whose reader may be
 * slow.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "common/msg.h"
#include "pathd/beneath.h"
#include "pathd/list.h"
#include "pathd/search.h"
#include "pathd/worker.h"

struct drain {
	struct job *job;
	int pipe;
};

static int
drain_cb(void *arg, const uint8_t *p, size_t n)
{
	struct drain *d = arg;
	ssize_t k;

	while (n > 0) {
		k = write(d->pipe, p, n);
		if (k == -1 && errno == EAGAIN) {
			if (job_wait(d->job, d->pipe, POLLOUT) == -1 ||
			    d->job->silent_ms >= JOB_SILENCE_MS)
				return -1;
			continue;
		}
		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1)
			return -1; /* the reader is gone */
		p += k;
		n -= (size_t)k;
	}
	return job_stop(d->job) ? -1 : 0;
}

/* Make the pipe and hand its read end out: 0, or -1 and the job is answered. */
static int
drain_open(struct drain *d, struct job *j)
{
	struct wbuf w;
	int p[2];

	d->job = j;
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1) {
		job_done(j, (uint16_t)beneath_act_code(errno), 0);
		return -1;
	}
	wbuf_init(&w, 64);
	wput_u32(&w, 0);
	job_send(j, MP_LIST_ANS, p[0], &w);
	wbuf_free(&w);
	d->pipe = p[1];
	return 0;
}

void
do_list(struct job *j, struct rbuf *r)
{
	struct drain d;
	struct listing li;
	struct list l;
	enum code code;

	if (list_get(r, &l) == -1 || rget_end(r) == -1)
		_exit(1);
	if ((code = listing_open(&li, j->pd, &l)) != C_OK)
		job_done(j, (uint16_t)code, 0);
	else if (drain_open(&d, j) == 0) {
		/* what breaks off has no end frame: its reader sees */
		(void)listing_send(&li, drain_cb, &d);
		close(d.pipe);
	}
	listing_close(&li);
	list_clear(&l);
}

void
do_search(struct job *j, struct rbuf *r)
{
	struct drain d;
	struct search s;
	struct bulk b;
	enum code code;

	if (bulk_get(r, &b) == -1 || rget_end(r) == -1)
		_exit(1);
	if ((code = search_open(&s, j->pd, &b)) != C_OK)
		job_done(j, (uint16_t)code, 0);
	else if (drain_open(&d, j) == 0) {
		(void)search_send(&s, drain_cb, &d);
		close(d.pipe);
	}
	search_close(&s);
	bulk_clear(&b);
}
