/*
 * SPDX-License-Identifier: ISC
 *
 * WATCH in a worker: until the reader goes.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/frame.h"
#include "pathd/drain.h"
#include "pathd/watch.h"
#include "pathd/worker.h"

#define SLICE_MS 5000

/* Write what waits: 0, or -1 when the reader is gone. */
static int
watch_flush(struct watch *w, int pipe)
{
	ssize_t n;

	while (w->out.len > 0) {
		n = write(pipe, w->out.p, w->out.len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return errno == EAGAIN ? 0 : -1;
		memmove(w->out.p, w->out.p + n, w->out.len - (size_t)n);
		w->out.len -= (size_t)n;
	}
	return 0;
}

static void
watch_end(struct watch *w)
{
	uint8_t head[FRAME_HDR];

	frame_head(head, FR_END, 3);
	wput_raw(&w->out, head, sizeof(head));
	wput_u16(&w->out, C_OK);
	wput_u8(&w->out, 0);
}

static void
watch_run(struct job *j, struct watch *w, int pipe)
{
	struct pollfd p[3] = {
	    {imsg_fd(j->im), POLLIN, 0}, {w->ino, POLLIN, 0}, {pipe, 0, 0}};

	while (!j->over && !w->ended) {
		if (watch_flush(w, pipe) == -1)
			return;
		if (w->out.len == 0) {
			/* what was lost is told even when nothing follows */
			watch_settle(w);
			if (watch_flush(w, pipe) == -1)
				return;
		}
		p[2].events = w->out.len > 0 ? POLLOUT : 0;
		if (poll(p, 3, SLICE_MS) == -1 && errno != EINTR)
			return;
		/* takes what came from main and says that work goes on */
		if (p[0].revents != 0 ? job_wait(j, -1, 0) == -1 : job_stop(j))
			return;
		if ((p[2].revents & (POLLERR | POLLHUP)) != 0)
			return;
		if (p[1].revents != 0)
			watch_read(w);
	}
	watch_end(w);
	(void)watch_flush(w, pipe);
}

void
do_watch(struct job *j, struct rbuf *r)
{
	struct drain d;
	struct watch w;
	struct bulk b;
	enum code code;

	if (bulk_get(r, &b) == -1 || rget_end(r) == -1)
		job_quit();
	if ((code = watch_open(&w, j->pd, &b)) != C_OK)
		job_done(j, (uint16_t)code, 0);
	else if (drain_open(&d, j) == 0) {
		watch_run(j, &w, d.pipe);
		close(d.pipe);
	}
	watch_close(&w);
	bulk_clear(&b);
}
