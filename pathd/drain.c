/*
 * SPDX-License-Identifier: ISC
 *
 * Frames into a pipe whose reader may be slow, in a worker.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "common/msg.h"
#include "pathd/beneath.h"
#include "pathd/drain.h"
#include "pathd/worker.h"

int
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

int
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
