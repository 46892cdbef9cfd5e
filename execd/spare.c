/*
 * SPDX-License-Identifier: ISC
 *
 * Supervisors of a session's sandbox, and those of them that wait for a run.
 * Such a one is in the control group of that run already: a move takes long
 * (mover.c), and so it is made while nobody waits for it, when the end of the
 * last run is said.
 */
#include "execd/spare.h"

#include <sys/pidfd.h>
#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/abx.h"
#include "common/log.h"
#include "common/msg.h"
#include "execd/box.h"
#include "execd/mover.h"

/* ---- groups ---- */

/* Without what it held. */
static void
spare_clear(struct spare *s)
{
	s->chan = NULL;
	s->pid = 0;
	s->pidfd = -1;
	s->group = NULL;
	s->placed = 0;
	s->moving = 0;
}

static void
spare_drop(struct spare *s)
{
	mover_hand(s->moving, NULL, NULL);
	chan_free(s->chan);
	if (s->pidfd != -1)
		close(s->pidfd);
	cgroup_free(s->group, 0);
	spare_clear(s);
}

/* The next run gets another. */
static void
spare_unplaced(struct spare *s, int err)
{
	log_warnx("control group of a spare supervisor: %s", strerror(err));
	spare_drop(s);
}

static void
moved_cb(int err, void *arg)
{
	struct spare *s = arg;

	s->moving = 0;
	if (err != 0)
		spare_unplaced(s, err);
	else
		s->placed = 1;
	job_sweep(); /* the group that it left */
}

static void
spare_place(struct spare *s)
{
	struct box *b = s->box;
	struct cgroup *g;
	char name[16];
	int rc;

	if (s->pid == 0 || s->placed || s->moving != 0 || b->group == NULL)
		return;
	snprintf(name, sizeof(name), "r%u", b->spares.ngroups++);
	if (cgroup_new(&g, b->group, name) == -1) {
		spare_unplaced(s, errno);
		return;
	}
	cgroup_free(s->group, 0); /* it is still in there */
	s->group = g;
	rc = mover_put(g, s->pid, &s->moving, moved_cb, s);
	if (rc != 0)
		moved_cb(rc == -1 ? errno : 0, s);
}

static void
place_cb(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;
	size_t i;

	for (i = 0; i < nitems(b->spares.v); i++)
		spare_place(&b->spares.v[i]);
}

/* ---- the set ---- */

void
spares_init(struct box *b)
{
	size_t i;

	evtimer_assign(&b->spares.place, jobs.conf.base, place_cb, b);
	for (i = 0; i < nitems(b->spares.v); i++) {
		b->spares.v[i].box = b;
		b->spares.v[i].pidfd = -1;
	}
}

void
spares_drop(struct box *b)
{
	size_t i;

	event_del(&b->spares.place);
	for (i = 0; i < nitems(b->spares.v); i++)
		spare_drop(&b->spares.v[i]);
}

size_t
spares_count(const struct box *b)
{
	size_t i, n = 0;

	for (i = 0; i < nitems(b->spares.v); i++)
		n += b->spares.v[i].chan != NULL;
	return n;
}

static struct spare *
spare_free(struct box *b)
{
	size_t i;

	for (i = 0; i < nitems(b->spares.v); i++)
		if (b->spares.v[i].chan == NULL)
			return &b->spares.v[i];
	return NULL;
}

/* The one that needs least: placed, there, or coming; NULL when none is. */
static struct spare *
spare_best(struct box *b)
{
	struct spare *s, *best = NULL;
	size_t i;

	for (i = 0; i < nitems(b->spares.v); i++) {
		s = &b->spares.v[i];
		if (s->chan != NULL &&
		    (best == NULL || s->placed > best->placed ||
			(s->placed == best->placed && best->pid == 0)))
			best = s;
	}
	return best;
}

/* ---- one ---- */

/* A socket pair whose other end goes to the launcher. */
static int
fork_super(struct box *b)
{
	int sv[2], on = 1, save;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	/* before the supervisor can say a word: it tells its outer pid */
	if (setsockopt(sv[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == -1) {
		save = errno;
		close(sv[0]);
		close(sv[1]);
		errno = save;
		return -1;
	}
	if (chan_send(b->chan, XL_FORK, 0, sv[1], NULL, 0) == 0)
		return sv[0];
	save = errno;
	close(sv[0]);
	errno = save;
	return -1;
}

/* A spare says HELLO and nothing else, until it has a run. */
static int
msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	struct spare *s = arg;
	const char *why;

	if (msg_check(m, &why) == -1 || m->type != XL_HELLO || s->pid != 0 ||
	    m->pid <= 1 || (s->pidfd = pidfd_open(m->pid, 0)) == -1)
		return -1;
	s->pid = m->pid;
	event_active(&s->box->spares.place, EV_TIMEOUT, 0);
	return 0;
}

/* Its sandbox ends too; the launcher's socket will tell. */
static void
gone_cb(struct chan *c, int error, void *arg)
{
	spare_drop(arg);
}

void
spares_want(struct box *b)
{
	struct spare *s = &b->spares.v[0];
	int fd;

	if (spares_count(b) > 0 || (fd = fork_super(b)) == -1)
		return;
	s->chan = chan_new(jobs.conf.base, fd, msg_cb, gone_cb, s);
	if (s->chan == NULL)
		close(fd);
}

static int
spare_give(struct spare *s, struct job *j)
{
	int rc = 0;

	j->chan = s->chan;
	chan_hand(j->chan, job_launch_msg_cb, job_launch_gone_cb, j);
	if (s->pid != 0)
		rc = job_launch_init(j, s->pid, s->pidfd);
	j->group = s->group;
	j->placed = s->placed;
	j->moving = s->moving;
	mover_hand(j->moving, session_moved_cb, j);
	spare_clear(s);
	return rc;
}

int
box_super(struct box *b, struct job *j)
{
	struct spare *s;
	int fd;

	/* one that cannot be is no more */
	while ((s = spare_best(b)) != NULL) {
		spare_place(s);
		if (s->chan != NULL)
			return spare_give(s, j);
	}
	if ((fd = fork_super(b)) == -1)
		return -1;
	j->chan = chan_new(
	    jobs.conf.base, fd, job_launch_msg_cb, job_launch_gone_cb, j);
	if (j->chan != NULL)
		return 0;
	close(fd);
	return -1;
}

void
box_keep(struct box *b, struct job *j)
{
	struct spare *s = spare_free(b);

	if (b->state != BOX_READY || s == NULL || !j->ended || !j->empty ||
	    j->chan == NULL || j->pidfd == -1 || j->init_gone)
		return;
	event_del(&j->init_ev);
	s->chan = j->chan;
	s->pid = j->init;
	s->pidfd = j->pidfd;
	s->group = j->group;
	chan_hand(s->chan, msg_cb, gone_cb, s);
	event_active(&b->spares.place, EV_TIMEOUT, 0);
	j->chan = NULL;
	j->pidfd = -1;
	j->group = NULL;
}
