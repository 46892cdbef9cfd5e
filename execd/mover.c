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
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/bpf.h"
#include "common/jail.h"
#include "common/log.h"
#include "execd/cgroup.h"

struct order {
	uint64_t id;
	pid_t pid;
};
struct report {
	uint64_t id;
	int err;
};
struct move {
	struct move *next;
	uint64_t id;
	mover_cb done;
	void *arg;
};

static int sock = -1; /* to the mover */
static struct event sock_ev;
static struct move *moves; /* that it was asked for */
static uint64_t last_id;

/* ---- the mover ---- */

/* One order and its file, -1 when there is none; -1 at the end. */
static int
take_order(int from, struct order *o, int *fd)
{
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(sizeof(int))];
	} u;
	struct iovec iov = {o, sizeof(*o)};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = u.buf,
	    .msg_controllen = sizeof(u.buf)};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
	while (n == -1 && errno == EINTR);
	if (n != (ssize_t)sizeof(*o))
		return -1;
	c = CMSG_FIRSTHDR(&m);
	if (c != NULL && c->cmsg_level == SOL_SOCKET &&
	    c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(int));
	return 0;
}

static void __attribute__((noreturn)) mover_main(int s)
{
	struct report r;
	struct order o;
	char text[16];
	int fd, n;

	while (take_order(s, &o, &fd) == 0) {
		r = (struct report){o.id, 0};
		n = snprintf(text, sizeof(text), "%d", (int)o.pid);
		if (write(fd, text, (size_t)n) == -1)
			r.err = errno;
		if (fd != -1)
			close(fd);
		if (write(s, &r, sizeof(r)) != (ssize_t)sizeof(r))
			break;
	}
	_exit(0);
}

/* All signals are blocked: the handlers are execd's. */
static void __attribute__((noreturn))
mover_start(int s, const uint8_t *filter, size_t len)
{
	(void)prctl(PR_SET_NAME, "abx-mover", 0, 0, 0);
	/* nothing else, not even the log */
	if (dup3(s, 0, O_CLOEXEC) == -1 || close_range(1, ~0U, 0) == -1 ||
	    bpf_load(filter, len) == -1)
		_exit(1);
	mover_main(0);
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

/* From now on those who ask do it themselves. */
static void
mover_gone(void)
{
	log_warnx("the process that moves others is gone");
	event_del(&sock_ev);
	close(sock);
	sock = -1;
	while (moves != NULL)
		move_done(&moves, EAGAIN);
}

static void
sock_cb(evutil_socket_t fd, short what, void *arg)
{
	struct move **p;
	struct report r;
	ssize_t n;

	while (sock != -1) {
		n = recv(sock, &r, sizeof(r), MSG_DONTWAIT);
		if (n == -1 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n != (ssize_t)sizeof(r) || r.err < 0 ||
		    *(p = move_of(r.id)) == NULL) {
			mover_gone();
			return;
		}
		move_done(p, r.err);
	}
}

/* ---- asking ---- */

static int
send_order(const struct order *o, int fd)
{
	union {
		struct cmsghdr h;
		char buf[CMSG_SPACE(sizeof(int))];
	} u;
	struct iovec iov = {(void *)(uintptr_t)o, sizeof(*o)};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = u.buf,
	    .msg_controllen = sizeof(u.buf)};
	struct cmsghdr *c;

	memset(&u, 0, sizeof(u));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == -1 ? -1 : 0;
}

uint64_t
mover_ask(const struct cgroup *g, pid_t pid, mover_cb done, void *arg)
{
	struct order o = {last_id + 1, pid};
	struct move *m;
	int fd, rc;

	if (sock == -1 || (m = calloc(1, sizeof(*m))) == NULL)
		return 0;
	if ((fd = cgroup_procs(g)) == -1) {
		free(m);
		return 0;
	}
	rc = send_order(&o, fd);
	close(fd);
	if (rc == -1) {
		free(m);
		return 0;
	}
	m->id = last_id = o.id;
	m->done = done;
	m->arg = arg;
	m->next = moves;
	moves = m;
	return m->id;
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
	event_assign(
	    &sock_ev, base, sv[0], EV_READ | EV_PERSIST, sock_cb, NULL);
	if (pid == -1 || event_add(&sock_ev, NULL) == -1) {
		log_warn("process that moves others");
		close(sv[0]);
		return;
	}
	sock = sv[0];
}
