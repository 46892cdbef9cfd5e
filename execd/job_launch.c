/*
 * SPDX-License-Identifier: ISC
 *
 * What launchers say, and what it does to a job.  A launcher that says what
 * it may not say now is broken, and its sandbox is killed.
 */
#include "execd/job_int.h"

#include <sys/pidfd.h>

#include <errno.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/msg.h"
#include "execd/session.h"

static void
init_cb(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;

	j->init_gone = 1;
	job_sandbox_gone(j);
}

int
job_launch_init(struct job *j, pid_t pid, int pidfd)
{
	j->init = pid;
	j->pidfd = pidfd;
	event_assign(
	    &j->init_ev, jobs.conf.base, j->pidfd, EV_READ, init_cb, j);
	if (event_add(&j->init_ev, NULL) == 0)
		return 0;
	log_warnx("event_add");
	close(j->pidfd);
	j->pidfd = -1;
	return -1;
}

static int
on_hello(struct job *j, const struct imsg *m)
{
	int pidfd, err;

	if (j->init != 0 || m->pid <= 1)
		return -1;
	j->init = m->pid;
	if ((pidfd = pidfd_open(m->pid, 0)) == -1) {
		err = errno;
		log_warn("pidfd of a launcher");
		/* it, and not all that are in the sandbox with it */
		if (j->box != NULL)
			job_fail(j, C_SRV_UNAVAILABLE, err, "start");
	} else if (job_launch_init(j, m->pid, pidfd) == -1)
		job_fail(j, C_SRV_UNAVAILABLE, ENOMEM, "start");
	else if (j->box != NULL)
		session_hello(j);
	return 0;
}

static int
on_ready(struct job *j, struct rbuf *r)
{
	if (j->state != JOB_START || j->box != NULL ||
	    xl_ready_get(r, &j->ready) == -1)
		return -1;
	if (j->hold) {
		j->hold = 0;
		job_enter(j, JOB_HELD);
		job_tell(ME_HELD, j->id, -1, NULL);
	}
	return 0;
}

void
job_started(struct job *j, uint32_t pid)
{
	struct wbuf *w;

	job_enter(j, JOB_RUN);
	if (j->probe) {
		close(j->frames_r);
		j->frames_r = -1;
		return;
	}
	w = job_words();
	wput_u32(w, pid);
	job_tell(ME_STARTED, j->id, -1, w);
	if (j->spool != NULL)
		return;
	job_tell(ME_RUN, j->id, j->frames_r, NULL);
	j->frames_r = -1;
	if (j->stdin_w != -1)
		job_tell(ME_IN, j->id, j->stdin_w, NULL);
	j->stdin_w = -1;
}

static int
on_started(struct job *j, struct rbuf *r)
{
	uint32_t pid = rget_u32(r);

	if (rget_end(r) == -1 || j->state != JOB_START || !j->sent)
		return -1;
	job_started(j, pid);
	if (j->cancel)
		job_cancel(j->id);
	return 0;
}

static int
on_failed(struct job *j, struct rbuf *r)
{
	struct spawn_failed f;

	if (xl_failed_get(r, &f) == -1 || j->state != JOB_START)
		return -1;
	if (f.code == C_POL_PATH_CHANGED)
		session_stale(j);
	job_fail(j, f.code, f.err, f.layer);
	return 0;
}

static int
on_ended(struct job *j, struct rbuf *r)
{
	struct xl_ended e;

	if (xl_ended_get(r, &e) == -1 || j->ended || j->state <= JOB_HELD)
		return -1;
	j->ended = 1;
	j->end.status = e.status;
	j->end.utime_us = e.utime_us;
	j->end.stime_us = e.stime_us;
	j->end.maxrss_kb = e.maxrss_kb;
	if (j->state == JOB_RUN || j->state == JOB_TERM)
		job_enter(j, JOB_DRAIN);
	return 0;
}

/* Nothing of the run is left, so its outputs end with what is in the pipes;
 * pump_end reads that. */
static int
on_empty(struct job *j)
{
	if (!j->ended)
		return -1;
	j->empty = 1;
	job_finish(j);
	return 0;
}

int
job_launch_msg_cb(struct chan *c, struct imsg *m, void *arg)
{
	struct job *j = arg;
	const char *why;
	struct rbuf r;

	if (msg_check(m, &why) == -1)
		return -1;
	rbuf_init(&r, m->payload, m->len);
	switch (m->type) {
	case XL_HELLO:
		return on_hello(j, m);
	case XL_READY:
		return on_ready(j, &r);
	case XL_STARTED:
		return on_started(j, &r);
	case XL_FAILED:
		return on_failed(j, &r);
	case XL_ENDED:
		return on_ended(j, &r);
	case XL_EMPTY:
		return on_empty(j);
	default:
		return -1;
	}
}

void
job_launch_gone_cb(struct chan *c, int error, void *arg)
{
	struct job *j = arg;

	if (error == EBADMSG) {
		log_warnx("run %llu: the launcher broke the protocol",
		    (unsigned long long)j->id);
		job_kill_sandbox(j);
	}
	chan_free(j->chan);
	j->chan = NULL;
	if (j->box != NULL && j->init == 0 && j->state <= JOB_HELD) {
		/* the launcher could not fork, or is gone itself */
		job_fail(j, C_SBX_UNAVAILABLE, EAGAIN, "fork");
		return;
	}
	/* a clock for what is left of the sandbox */
	if (j->state > JOB_HELD && j->state < JOB_KILL)
		job_enter(j, JOB_KILL);
	job_sandbox_gone(j);
}
