/*
 * SPDX-License-Identifier: ISC
 *
 * A launcher that lies to execd, started by it in place of the real one: the
 * first argument of the command says how.  It is init of its sandbox and, for
 * a session, its own supervisor.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/imsg.h"
#include "common/msg.h"
#include "execd/launch/xl.h"

#define UP 3 /* as the real one has it */

static struct imsgbuf *up, *super;

static void
say(struct imsgbuf *b, uint16_t type, uint64_t id, struct wbuf *w)
{
	if (imsg_compose(b, type, id, -1, w == NULL ? NULL : w->p,
		w == NULL ? 0 : w->len) == -1)
		_exit(1);
	if (w != NULL)
		wbuf_free(w);
	(void)imsg_flush(b);
}

static void
say_ready(struct imsgbuf *b)
{
	struct xl_ready y = {
	    LAYER_NAMESPACES | LAYER_SECCOMP | LAYER_LANDLOCK, 7};
	struct wbuf w;

	wbuf_init(&w, 64);
	xl_ready_put(&w, &y);
	say(b, XL_READY, 0, &w);
}

static void
say_started(struct imsgbuf *b)
{
	struct wbuf w;

	wbuf_init(&w, 4);
	wput_u32(&w, 2);
	say(b, XL_STARTED, 0, &w);
}

static void
say_ended(struct imsgbuf *b)
{
	struct xl_ended e = {0};
	struct wbuf w;

	wbuf_init(&w, 64);
	xl_ended_put(&w, &e);
	say(b, XL_ENDED, 0, &w);
}

static void
say_failed(struct imsgbuf *b, uint16_t code)
{
	struct wbuf w;

	wbuf_init(&w, 64);
	wput_u16(&w, code);
	wput_u32(&w, 0);
	wput_str(&w, "a layer that nobody has");
	say(b, XL_FAILED, 0, &w);
}

/* Every other message, in a state where it may not come. */
static void
lie(struct imsgbuf *b, int how)
{
	static const uint8_t zeros[128];
	int fd;

	switch (how) {
	case 0: /* the truth: it started and ended well */
		say_started(b);
		say_ended(b);
		say(b, XL_EMPTY, 0, NULL);
		break;
	case 1:
		say(b, XL_EMPTY, 0, NULL);
		break;
	case 2:
		say_ended(b);
		break;
	case 3:
		say_started(b);
		say_started(b);
		break;
	case 4:
		say_started(b);
		say_ended(b);
		say_ended(b);
		break;
	case 5:
		say_started(b);
		say(b, XL_EMPTY, 0, NULL);
		break;
	case 6:
		say_started(b);
		say_failed(b, C_SBX_UNAVAILABLE);
		break;
	case 7:
		say_failed(b, C_OK);
		break;
	case 8:
		say_failed(b, 0xffff);
		break;
	case 9:
		say_started(b);
		say_ready(b);
		break;
	case 10:
		say(b, XL_HELLO, 0, NULL);
		break;
	case 11:
		if (send(imsg_fd(b), "garbage", 7, MSG_NOSIGNAL) != 7)
			_exit(1);
		break;
	case 12: /* what only execd says, and what nobody does */
		if (imsg_compose(b, XL_RUN, 0, -1, zeros, 100) == -1)
			_exit(1);
		(void)imsg_flush(b);
		break;
	case 13:
		if (imsg_compose(b, ME_END, 0, -1, zeros, 100) == -1)
			_exit(1);
		(void)imsg_flush(b);
		break;
	case 14: /* a descriptor where none belongs */
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		say_started(b);
		if (imsg_compose(b, XL_EMPTY, 0, fd, NULL, 0) == -1)
			_exit(1);
		(void)imsg_flush(b);
		break;
	case 15: /* a payload that ends early */
		if (imsg_compose(b, XL_STARTED, 0, -1, zeros, 3) == -1)
			_exit(1);
		(void)imsg_flush(b);
		break;
	case 16: /* its end */
		_exit(0);
	default:
		say_started(b); /* and then nothing */
		break;
	}
}

static int
how(const struct imsg *m)
{
	struct xl_run x;
	struct rbuf r;
	int n;

	rbuf_init(&r, m->payload, m->len);
	if (xl_run_get(&r, &x) == -1)
		_exit(1);
	/* the probe has no second word */
	n = x.argv.n < 2 ? 0 : (int)strtol(x.argv.v[1], NULL, 10);
	xl_run_clear(&x);
	return n;
}

static void
on_message(struct imsgbuf *b, struct imsg *m)
{
	if (m->type == XL_SETUP)
		say_ready(b);
	else if (m->type == XL_RUN)
		lie(b, how(m));
	else if (m->type == XL_FORK && super == NULL) {
		if ((super = imsg_new(m->fd)) == NULL)
			_exit(1);
		m->fd = -1;
		say(super, XL_HELLO, 0, NULL);
	}
	if (m->fd != -1)
		close(m->fd);
}

static void
serve(struct imsgbuf *b)
{
	struct imsg m;
	int n = imsg_read(b);

	if (n == -1)
		_exit(0);
	while (n == 1 && imsg_get(b, &m))
		on_message(b, &m);
}

int
main(int argc, char **argv)
{
	struct pollfd p[2];

	if (getpid() != 1 || dup3(0, UP, O_CLOEXEC) == -1 ||
	    syscall(SYS_close_range, UP + 1, ~0U, 0) == -1 ||
	    (up = imsg_new(UP)) == NULL)
		return 2;
	say(up, XL_HELLO, 0, NULL);
	for (;;) {
		p[0].fd = UP;
		p[1].fd = super == NULL ? -1 : imsg_fd(super);
		p[0].events = p[1].events = POLLIN;
		if (poll(p, 2, -1) == -1)
			return 1;
		if (p[0].revents != 0)
			serve(up);
		if (super != NULL && p[1].revents != 0)
			serve(super);
	}
}
