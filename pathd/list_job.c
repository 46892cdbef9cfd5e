/*
 * SPDX-License-Identifier: ISC
 *
 * A listing in a worker: frames into a pipe whose reader may be slow.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "common/msg.h"
#include "pathd/beneath.h"
#include "pathd/list.h"
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

static void
list_run(struct job *j, struct listing *li)
{
	struct drain d = {.job = j};
	struct wbuf w;
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1) {
		job_done(j, (uint16_t)beneath_act_code(errno), 0);
		return;
	}
	wbuf_init(&w, 64);
	wput_u32(&w, 0);
	job_send(j, MP_LIST_ANS, p[0], &w);
	wbuf_free(&w);
	d.pipe = p[1];
	/* A listing that breaks off has no end frame: its reader sees. */
	(void)listing_send(li, drain_cb, &d);
	close(d.pipe);
}

void
do_list(struct job *j, struct rbuf *r)
{
	struct listing li;
	struct list l;
	enum code code;

	if (list_get(r, &l) == -1 || rget_end(r) == -1)
		_exit(1);
	if ((code = listing_open(&li, j->pd, &l)) == C_OK)
		list_run(j, &li);
	else
		job_done(j, (uint16_t)code, 0);
	listing_close(&li);
	list_clear(&l);
}
