/*
 * SPDX-License-Identifier: ISC
 *
 * The job table.  Owns every sandbox of this process: its builder's pid, the
 * launcher's pidfd and channel, the clocks, the output pump.  It says that a
 * run ended only when its tree was seen to be empty, and never invents a
 * status.  state is written in job_enter only.
 */
#include "execd/job_int.h"

#include <sys/pidfd.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/proc.h"
#include "execd/clock.h"
#include "execd/seen.h"
#include "execd/session.h"

#define START_MS 20000 /* from bubblewrap's start to the program's */
#define HELD_MS 90000  /* for the monitor, and pathd behind it */
#define DRAIN_MS 200   /* for output after the program's end */
#define KILL_MS 2000   /* for the launcher to empty the sandbox */
#define STUCK_MS 5000  /* for the kernel to end a killed sandbox */
#define SWEEP_MS 100   /* for groups whose processes are dying */
#define GRACE_MAX_MS 60000
#define CLOCKS (4 * JOBS_MAX) /* three of a run, and those of sessions */

struct job_table jobs;
static struct event sigchld, sweeper;

static void job_settle(struct job *);

/* ---- clocks ---- */

/* A clock of the run; 0 is none.  Without one that it should have, the run
 * would have no bounds: then it is lost, and no other. */
static void
arm(struct job *j, struct event *ev, uint64_t ms)
{
	if (ms == 0 || clock_set(ev, ms) == 0)
		return;
	log_warnx("run %llu: no clock", (unsigned long long)j->id);
	job_kill_sandbox(j);
}

/* Kill the sandbox from outside, in every way there is. */
void
job_kill_sandbox(struct job *j)
{
	cgroup_kill(j->group);
	if (j->pidfd != -1)
		(void)pidfd_send_signal(j->pidfd, SIGKILL, NULL, 0);
	if (j->bwrap != 0)
		(void)kill(j->bwrap, SIGKILL); /* not reaped, so it is ours */
	if (j->box != NULL)
		box_kill(j->box);
}

/* The only place that changes the state; each state sets its own clock. */
void
job_enter(struct job *j, enum job_state state)
{
	static const uint64_t clock_ms[] = {[JOB_START] = START_MS,
	    [JOB_HELD] = HELD_MS,
	    [JOB_DRAIN] = DRAIN_MS,
	    [JOB_KILL] = KILL_MS,
	    [JOB_STUCK] = STUCK_MS,
	    [JOB_OVER] = KILL_MS};

	j->state = state;
	event_del(&j->phase);
	arm(j, &j->phase, state == JOB_TERM ? j->grace_ms : clock_ms[state]);
	if (state == JOB_RUN) {
		arm(j, &j->timeout, j->timeout_ms);
		arm(j, &j->idle, j->idle_ms);
	} else if (state > JOB_HELD) {
		event_del(&j->timeout);
		event_del(&j->idle);
	}
	if (state == JOB_KILL)
		(void)job_order(j, XL_KILL, -1, NULL, 0);
	if (state == JOB_STUCK)
		job_kill_sandbox(j);
	if (state == JOB_OVER) {
		/* the launcher ends when its socket does */
		session_leave(j);
		chan_free(j->chan);
		j->chan = NULL;
	}
}

/* ---- ends ---- */

/* Descriptors that an ended run needs no more. */
static void
job_close(struct job *j)
{
	if (j->pidfd != -1) {
		event_del(&j->init_ev);
		close(j->pidfd);
		j->pidfd = -1;
	}
	if (j->err != -1)
		close(j->err);
	j->err = -1;
	cgroup_free(j->group, 1);
	j->group = NULL;
	job_sweep();
	absent_drop(j->absent);
	j->absent = NULL;
}

static void
job_free(struct job *j)
{
	struct job **p;

	for (p = &jobs.jobs; *p != NULL && *p != j; p = &(*p)->next)
		;
	if (*p == j) {
		*p = j->next;
		jobs.n--;
	}
	event_del(&j->phase);
	event_del(&j->timeout);
	event_del(&j->idle);
	chan_free(j->chan);
	pump_free(j->pump);
	wbuf_free(&j->held);
	wbuf_free(&j->seen);
	appeared_free(j->watch);
	feed_free(j->feed);
	spool_free(j->spool);
	job_close(j);
	if (j->frames_r != -1)
		close(j->frames_r);
	if (j->stdin_w != -1)
		close(j->stdin_w);
	free(j);
	if (jobs.stopping && jobs.n == 0)
		jobs.conf.empty();
}

/* What bubblewrap or the kernel said before the sandbox was lost; at most one
 * line.  Empty when nothing. */
static void
complaint(struct job *j, char *text, size_t size)
{
	int err = j->box != NULL ? box_err(j->box) : j->err;
	ssize_t n = err == -1 ? -1 : read(err, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

void
job_fail(struct job *j, uint16_t code, int err, const char *layer)
{
	char text[200], line[256];

	complaint(j, text, sizeof(text));
	snprintf(line, sizeof(line), "%s: %s%s%s", layer,
	    err != 0 ? strerror(err) : "", err != 0 && *text ? ": " : "", text);
	/* a missing program or too many words are the caller's affair */
	if (j->probe || (code != C_POL_EXEC_NOT_FOUND &&
			    code != C_ARGS_TOO_LARGE && err != ECANCELED))
		log_warnx("run %llu: %s", (unsigned long long)j->id, line);
	if (j->probe) {
		strlcpy(jobs.broken, layer, sizeof(jobs.broken));
		job_hello(0, 0, line);
	} else
		job_refuse(j->id, code, err, layer);
	pump_free(j->pump);
	j->pump = NULL;
	spool_free(j->spool);
	j->spool = NULL;
	job_enter(j, JOB_OVER);
	job_settle(j);
}

/* What the group knows of the run. */
static void
job_count(struct job *j)
{
	uint64_t peak = cgroup_peak(j->group) / 1024;

	if (cgroup_layer(j->group))
		j->end.layers |= LAYER_CGROUP;
	if ((cgroup_holds(j->group) & CGROUP_MEMORY) != 0)
		j->end.flags |= END_MEM_CGROUP;
	if (peak > j->end.maxrss_kb)
		j->end.maxrss_kb = peak;
	if (cgroup_oom(j->group) == 0)
		return;
	j->end.flags |= END_OOM;
	/* the kernel kills a sandbox of its own whole, the launcher too,
	 * which then cannot say it */
	if (!j->ended) {
		j->ended = 1;
		j->end.status = SIGKILL;
	}
}

/* Say the end: END to the monitor, the exit frame to the listener. */
void
job_finish(struct job *j)
{
	struct wbuf *w;

	j->end.us = proc_now_us() - j->start_us;
	j->end.layers = j->ready.layers;
	job_count(j);
	if (j->empty)
		j->end.flags |= END_EMPTY;
	else
		log_warnx("run %llu: processes are left that cannot be killed",
		    (unsigned long long)j->id);
	if (!j->ended)
		j->end.flags |= END_LOST;
	appeared_report(j->watch, &j->end);
	appeared_free(j->watch);
	j->watch = NULL;
	pump_end(j->pump, &j->end);
	feed_free(j->feed);
	j->feed = NULL;
	if (j->probe)
		job_probe_over(j);
	else {
		w = job_words();
		run_end_put(w, &j->end);
		job_tell(ME_END, j->id, -1, w);
	}
	job_enter(j, JOB_OVER);
	job_settle(j);
}

/* Free a job of which nothing is left; the output of a process stays until it
 * is forgotten. */
static void
job_settle(struct job *j)
{
	if (j->state != JOB_OVER || j->bwrap != 0)
		return;
	/* nothing is in it any more, whoever still reads the output */
	cgroup_free(j->group, 1);
	j->group = NULL;
	absent_drop(j->absent);
	j->absent = NULL;
	session_left(j);
	if (j->pump != NULL)
		return;
	if (j->spool == NULL || jobs.stopping)
		job_free(j);
	else {
		event_del(&j->phase);
		job_close(j);
	}
}

/* Why it could not be built: names that go elsewhere or nowhere since they were
 * opened are somebody's doing, and not the sandbox's. */
static void
job_unbuilt(struct job *j)
{
	if (cgroup_oom(j->group) > 0)
		job_fail(j, C_SBX_UNAVAILABLE, ENOMEM, "cgroup");
	else if (j->ready.layers == 0 &&
		 seen_changed(j->box != NULL ? box_seen(j->box) : &j->seen))
		job_fail(j, C_POL_PATH_CHANGED, ESTALE, "bind");
	else
		job_fail(j, C_SBX_UNAVAILABLE, 0, "namespaces");
}

/* Is the sandbox gone?  Bubblewrap was reaped, the launcher's socket is at its
 * end, and so is the launcher: with PID 1 the kernel has ended all in it. */
void
job_sandbox_gone(struct job *j)
{
	if (j->state == JOB_OVER || j->bwrap != 0 || j->chan != NULL)
		return;
	/* its processes are still dying; without its supervisor nobody knows
	 * which of a session's they are */
	if (j->box != NULL ? !box_gone(j->box)
			   : j->pidfd != -1 && !j->init_gone)
		return;
	if (j->state <= JOB_HELD) {
		/* the program may have run, and ended its own sandbox before
		 * we heard of it: then it is lost, and not to be tried again */
		if (j->probe || !j->sent || j->ready.layers == 0) {
			job_unbuilt(j);
			return;
		}
		job_started(j, 0);
	}
	j->empty = 1;
	job_finish(j);
}

/* ---- events of a job ---- */

static void
phase_cb(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;

	switch (j->state) {
	case JOB_START:
		job_kill_sandbox(j);
		/* FALLTHROUGH */
	case JOB_HELD:
		job_fail(j, C_SBX_UNAVAILABLE, ETIMEDOUT, "namespaces");
		break;
	case JOB_TERM:
	case JOB_DRAIN:
		job_enter(j, JOB_KILL);
		break;
	case JOB_KILL:
		job_enter(j, JOB_STUCK);
		break;
	case JOB_STUCK:
		job_finish(j);
		break;
	case JOB_OVER:
		job_kill_sandbox(j);
		break;
	case JOB_RUN:
		break;
	}
}

/* Ask the program to end, once. */
static void
job_term(struct job *j, uint32_t flag)
{
	if (j->state != JOB_RUN)
		return;
	j->end.flags |= flag;
	job_order_signal(j, SIGTERM);
	job_enter(j, j->grace_ms == 0 ? JOB_KILL : JOB_TERM);
}

static void
timeout_cb(evutil_socket_t fd, short what, void *arg)
{
	job_term(arg, END_TIMED_OUT);
}

static void
idle_cb(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;

	/* it is not silent while nobody listens to it */
	if (pump_waits(j->pump))
		arm(j, &j->idle, j->idle_ms);
	else
		job_term(j, END_IDLE);
}

static void
pump_data_cb(void *arg)
{
	struct job *j = arg;

	if (j->state == JOB_RUN)
		arm(j, &j->idle, j->idle_ms);
}

/* Nobody holds the outputs any more. */
static void
pump_eof_cb(void *arg)
{
	struct job *j = arg;

	if (j->state != JOB_DRAIN)
		return; /* a program may close them and go on */
	if (j->empty)
		job_finish(j);
	else
		job_enter(j, JOB_KILL);
}

static void
pump_done_cb(void *arg)
{
	struct job *j = arg;

	pump_free(j->pump);
	j->pump = NULL;
	job_settle(j);
}

const struct pump_ops job_pump_ops = {pump_data_cb, pump_eof_cb, pump_done_cb};

void
job_sweep(void)
{
	static const struct timeval tv = {0, SWEEP_MS * 1000};

	if (cgroup_sweep() > 0)
		(void)event_add(&sweeper, &tv);
}

static void
sweep_cb(evutil_socket_t fd, short what, void *arg)
{
	job_sweep();
}

static void
sigchld_cb(evutil_socket_t fd, short what, void *arg)
{
	struct job *j;
	int status;
	pid_t pid;

	/* as init of the namespace we also reap what lost its parent */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (j = jobs.jobs; j != NULL && j->bwrap != pid; j = j->next)
			;
		if (j == NULL) {
			(void)box_reaped(pid);
			continue;
		}
		j->bwrap = 0;
		if (j->state == JOB_OVER)
			job_settle(j);
		else
			job_sandbox_gone(j);
	}
	job_sweep();
}

/* ---- the table ---- */

struct job *
job_new(uint64_t id, const struct spawn *s)
{
	struct job *j;

	if ((j = calloc(1, sizeof(*j))) == NULL)
		return NULL;
	j->id = id;
	j->pidfd = j->err = j->frames_r = j->stdin_w = -1;
	j->start_us = proc_now_us();
	j->timeout_ms = s->timeout_ms;
	j->idle_ms = s->idle_ms;
	j->hold = (s->flags & SPAWN_HOLD) != 0;
	strlcpy(j->session, s->session, sizeof(j->session));
	j->grace_ms = s->grace_ms > GRACE_MAX_MS ? GRACE_MAX_MS : s->grace_ms;
	evtimer_assign(&j->phase, jobs.conf.base, phase_cb, j);
	evtimer_assign(&j->timeout, jobs.conf.base, timeout_cb, j);
	evtimer_assign(&j->idle, jobs.conf.base, idle_cb, j);
	j->next = jobs.jobs;
	jobs.jobs = j;
	jobs.n++;
	return j;
}

struct job *
job_find(uint64_t id)
{
	struct job *j;

	for (j = jobs.jobs; j != NULL; j = j->next)
		if (j->id == id && !j->probe)
			return j;
	return NULL;
}

void
job_go(uint64_t id)
{
	struct job *j = job_find(id);

	if (j != NULL && j->state == JOB_HELD)
		job_release(j);
}

void
job_signal(uint64_t id, int sig)
{
	struct job *j = job_find(id);

	if (j != NULL && (j->state == JOB_RUN || j->state == JOB_TERM))
		job_order_signal(j, sig);
}

void
job_cancel(uint64_t id)
{
	struct job *j = job_find(id);

	if (j == NULL)
		return;
	switch (j->state) {
	case JOB_START:
	case JOB_HELD:
		if (j->box != NULL && j->sent) {
			j->cancel = 1; /* the program may run already */
			break;
		}
		/* nothing runs yet; closing the socket ends it */
		job_fail(j, C_SRV_UNAVAILABLE, ECANCELED, "cancelled");
		break;
	case JOB_RUN:
	case JOB_TERM:
	case JOB_DRAIN:
		j->end.flags |= END_CANCELLED;
		job_enter(j, JOB_KILL);
		break;
	case JOB_OVER:
		/* nobody wants the rest of its output */
		pump_free(j->pump);
		j->pump = NULL;
		job_settle(j);
		break;
	case JOB_KILL:
	case JOB_STUCK:
		break;
	}
}

void
job_forget(uint64_t id)
{
	struct job *j = job_find(id);

	if (j == NULL || j->state != JOB_OVER)
		return;
	spool_free(j->spool);
	j->spool = NULL;
	job_settle(j);
}

void
job_shutdown(void)
{
	struct job *j, *next;

	jobs.stopping = 1;
	for (j = jobs.jobs; j != NULL; j = next) {
		next = j->next;
		if (j->state <= JOB_HELD)
			job_fail(j, C_SRV_UNAVAILABLE, ECANCELED, "shutdown");
		else if (j->state == JOB_OVER)
			job_settle(j);
		else
			job_term(j, END_CANCELLED);
	}
	if (jobs.n == 0)
		jobs.conf.empty();
}

void
job_init(const struct job_conf *c)
{
	jobs.conf = *c;
	if (clock_reserve(c->base, CLOCKS) == -1)
		fatalx("out of memory for clocks");
	evtimer_assign(&sweeper, jobs.conf.base, sweep_cb, NULL);
	evsignal_assign(&sigchld, jobs.conf.base, SIGCHLD, sigchld_cb, NULL);
	if (event_add(&sigchld, NULL) == -1)
		fatalx("event_add");
}
