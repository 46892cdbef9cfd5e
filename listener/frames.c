/*
 * SPDX-License-Identifier: ISC
 *
 * Answers that come as frames in the data pipe: the reading that listings,
 * runs and watches have in common.  Knows no kind of frame.
 */
#include "listener/frames.h"

#include <errno.h>

#include "common/frame.h"
#include "listener/conn.h"
#include "listener/pipe.h"
#include "listener/send.h"

#define PENDING_MAX (256 * 1024) /* unsent bytes before reading stops */
#define ROUNDS 8 /* reads before other connections have a turn */

static int
feed(struct conn *c, struct frame_dec *dec, const struct frames_ops *how,
    const uint8_t *p, size_t n)
{
	const uint8_t *payload;
	uint8_t kind;
	size_t len;
	int r;

	while ((r = frame_feed(dec, &p, &n, &kind, &payload, &len)) == 1)
		if ((r = how->frame(c, kind, payload, len)) != FRAMES_MORE)
			return r;
	return r == 0 ? FRAMES_MORE : how->over(c, 1);
}

int
frames_step(struct conn *c, struct frame_dec *dec, const struct frames_ops *how)
{
	static uint8_t buf[64 * 1024];
	ssize_t n;
	int r, i;

	if (obuf_left(&c->out) > PENDING_MAX)
		return WANT_WRITE;
	for (i = 0; i < ROUNDS; i++) {
		n = pipe_read(c->data_fd, buf, sizeof(buf));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 && errno == EAGAIN)
			break;
		if (n <= 0)
			return how->over(c, 0);
		r = feed(c, dec, how, buf, (size_t)n);
		if (r != FRAMES_MORE)
			return r;
		if (obuf_left(&c->out) > PENDING_MAX)
			break;
	}
	if ((r = conn_flush(c)) == -1 || (i = conn_watch(c)) == STEP_GONE)
		return STEP_GONE;
	return (r == 0 ? WANT_WRITE : WANT_NONE) | WANT_DATA_R | i;
}

void
frames_tick(struct conn *c, uint64_t *quiet_until, uint64_t now)
{
	if (now < *quiet_until)
		return;
	*quiet_until = now + FRAMES_QUIET;
	send_piece(c, ":\n\n", 3);
	(void)conn_flush(c);
}
