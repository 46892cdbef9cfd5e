/*
 * SPDX-License-Identifier: ISC
 *
 * The process that moves others between control groups.  The kernel lets who
 * writes cgroup.procs wait until all processors have been elsewhere (a grace
 * period of RCU), ten milliseconds and more, and execd has others to serve.
 * It gets the open file and a number, writes, and says how that went; it has
 * one socket, no file of its own, and a filter that opens none.
 */
#include "execd/mover.h"

#include <sys/prctl.h>
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/bpf.h"
#include "common/chan.h"
#include "common/jail.h"
#include "common/log.h"
#include "common/wire.h"
#include "execd/cgroup.h"

/* The two messages, which nobody else speaks: the group's file with the
 * process, and how it went (u32 each), under the number of the move. */
enum { MOVE = 1, MOVED };
#define ERRNO_MAX 4095

struct move {
	struct move *next;
	uint64_t id;
	struct cgroup *group; /* borrowed while somebody is told */
	pid_t pid;
	mover_cb done;
	void *arg;
};

static struct chan *mover; /* NULL: there is none */
static struct move *moves; /* that it was asked for */
static uint64_t last_id;

/* ---- the mover ---- */

static int
move(const struct imsg *m)
{
	char text[16];
	struct rbuf r;
	uint32_t pid;
	int n;

	rbuf_init(&r, m->payload, m->len);
	pid = rget_u32(&r);
	if (m->type != MOVE || rget_end(&r) == -1)
		_exit(1);
	n = snprintf(text, sizeof(text), "%" PRIu32, pid);
	return write(m->fd, text, (size_t)n) == -1 ? errno : 0;
}

static void
answer(struct imsgbuf *b, const struct imsg *m)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u32(&w, (uint32_t)move(m));
	if (w.err || imsg_compose(b, MOVED, m->id, -1, w.p, w.len) == -1)
		_exit(1);
	wbuf_free(&w);
}

static void __attribute__((noreturn)) mover_main(struct imsgbuf *b)
{
	struct pollfd p = {imsg_fd(b), POLLIN, 0};
	struct imsg m;
	int n;

	for (;;) {
		if (poll(&p, 1, -1) == -1 && errno != EINTR)
			_exit(1);
		if ((n = imsg_read(b)) == -1)
			_exit(0);
		while (n == 1 && imsg_get(b, &m)) {
			answer(b, &m);
			if (m.fd != -1)
				close(m.fd);
		}
		/* execd reads what it has asked for */
		while ((n = imsg_flush(b)) == 1) {
			p.events = POLLOUT;
			(void)poll(&p, 1, -1);
			p.events = POLLIN;
		}
		if (n == -1)
			_exit(0);
	}
}

/* All signals are blocked: the handlers are execd's. */
static void __attribute__((noreturn))
mover_start(int s, const uint8_t *filter, size_t len)
{
	struct imsgbuf *b;

	(void)prctl(PR_SET_NAME, "abx-mover", 0, 0, 0);
	/* nothing else, not even the log */
	if (dup3(s, 0, O_CLOEXEC) == -1 || close_range(1, ~0U, 0) == -1 ||
	    (b = imsg_new(0)) == NULL || bpf_load(filter, len) == -1)
		_exit(1);
	mover_main(b);
}

/* ---- its reports ---- */

static struct move **
move_of(uint64_t id)
{
	struct move **p;

	for (p = &moves; *p != NULL && (*p)->id != id; p = &(*p)->next)
		continue;
	return p;
}

static void
move_done(struct move **p, int err)
{
	struct move *m = *p;
	mover_cb done = m->done;
	void *arg = m->arg;

	*p = m->next;
	free(m);
	if (done != NULL)
		done(err, arg);
}

static int
msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	struct move **p = move_of(m->id);
	struct rbuf r;
	uint32_t err;

	rbuf_init(&r, m->payload, m->len);
	err = rget_u32(&r);
	if (m->type != MOVED || rget_end(&r) == -1 || err > ERRNO_MAX ||
	    *p == NULL)
		return -1;
	move_done(p, (int)err);
	return 0;
}

/* From now on moves are made here, and so are those that were asked for. */
static void
gone_cb(struct chan *c, int error, void *arg)
{
	struct move *m;
	int err;

	log_warnx("the process that moves others is gone");
	chan_free(mover);
	mover = NULL;
	while ((m = moves) != NULL) {
		err = 0;
		if (m->done != NULL && cgroup_put_pid(m->group, m->pid) == -1)
			err = errno;
		move_done(&moves, err);
	}
}

/* ---- asking ---- */

static int
send_move(uint64_t id, const struct cgroup *g, pid_t pid)
{
	struct wbuf w;
	int fd, rc = -1;

	if ((fd = cgroup_procs(g)) == -1)
		return -1;
	wbuf_init(&w, 16);
	wput_u32(&w, (uint32_t)pid);
	if (w.err)
		close(fd);
	else
		rc = chan_send(mover, MOVE, id, fd, w.p, w.len);
	wbuf_free(&w);
	return rc;
}

int
mover_put(struct cgroup *g, pid_t pid, uint64_t *id, mover_cb done, void *arg)
{
	struct move *m = mover == NULL ? NULL : calloc(1, sizeof(*m));

	if (m == NULL || send_move(last_id + 1, g, pid) == -1) {
		free(m);
		return cgroup_put_pid(g, pid) == -1 ? -1 : 1;
	}
	*id = m->id = ++last_id;
	m->group = g;
	m->pid = pid;
	m->done = done;
	m->arg = arg;
	m->next = moves;
	moves = m;
	return 0;
}

void
mover_hand(uint64_t id, mover_cb done, void *arg)
{
	struct move *m = *move_of(id);

	if (m == NULL)
		return;
	m->done = done;
	m->arg = arg;
}

/* ---- start ---- */

void
mover_begin(struct event_base *base)
{
	static const struct jail_call none[] = {{NULL, 0, 0, 0, 0}};
	sigset_t all, old;
	uint8_t *filter;
	size_t len;
	pid_t pid;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1) {
		log_warn("socket of the process that moves others");
		return;
	}
	jail_compile(none, 0, &filter, &len);
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	if ((pid = fork()) == 0)
		mover_start(sv[1], filter, len);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	free(filter);
	close(sv[1]);
	if (pid != -1)
		mover = chan_new(base, sv[0], msg_cb, gone_cb, NULL);
	if (mover == NULL) {
		log_warn("process that moves others");
		close(sv[0]);
	}
}
