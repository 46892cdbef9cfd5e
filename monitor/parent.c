/*
 * SPDX-License-Identifier: ISC
 *
 * The service as a whole: children are started, made known to the monitor and
 * restarted with back-off, signals are heard.  The monitor's death ends
 * everything; how it ends is in stop.c.
 */
#include "monitor/parent.h"

#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/log.h"

#define RESTART_WINDOW_US 60000000ULL

static struct parent *self; /* for callbacks without room for it */

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* ---- coming up ---- */

static void
announce(struct parent *p)
{
	char names[1024];

	if (p->announced || p->stopping)
		return;
	p->announced = 1;
	sock_names(p, names, sizeof(names));
	log_info("ready on %s, revision %s", names, p->boot.revision);
	sock_notify("READY=1\n");
	if (p->daemon_pipe != -1) {
		if (write(p->daemon_pipe, "0", 1) != 1)
			log_warn("cannot tell the starter");
		close(p->daemon_pipe);
		p->daemon_pipe = -1;
	}
	if (p->again)
		reload_begin(p);
}

/* Let clients in: the listener is connected last, when the monitor has its
 * roots and its sandbox. */
static void
open_door(struct parent *p)
{
	struct child *c = p->kids[PROC_LISTENER];

	if (!p->workers_up || c == NULL || !c->ready)
		return;
	child_connect(p, c);
	announce(p);
}

/* The monitor answers for what everybody's confinement really is. */
static void
tell_posture(struct parent *p, const struct child *c)
{
	struct child *m = p->kids[PROC_MONITOR];
	struct wbuf w;

	if (m == NULL || !m->ready || c == NULL || !c->ready)
		return;
	wbuf_init(&w, 512);
	wput_u8(&w, (uint8_t)c->kind);
	wput_u32(&w, c->generation);
	wput_raw(&w, c->posture, strlen(c->posture));
	if (w.err || chan_send(m->chan, PC_POSTURE, 0, -1, w.p, w.len) == -1)
		log_warnx(
		    "cannot tell the monitor about %s", proc_name(c->kind));
	wbuf_free(&w);
}

/* The monitor took the lines about workspaces over into the new file, which is
 * empty when it could not. */
static void
name_sessions(const struct parent *p)
{
	char from[ABX_PATH_MAX + 32], to[ABX_PATH_MAX + 32];
	struct stat st;

	snprintf(from, sizeof(from), "%s/sessions.new", p->boot.state_dir);
	snprintf(to, sizeof(to), "%s/sessions", p->boot.state_dir);
	if (lstat(from, &st) == 0 && st.st_size == 0)
		return;
	if (rename(from, to) == -1)
		fatal("%s", to);
}

static void
monitor_ready(struct parent *p)
{
	struct child *m = p->kids[PROC_MONITOR], *c;
	struct wbuf w;
	size_t i;
	int k;

	name_sessions(p);
	wbuf_init(&w, 16);
	wput_u32(&w, p->epoch);
	wput_u32(&w, 0);
	wput_u8(&w, 0);
	if (w.err ||
	    chan_send(m->chan, PC_SNAPSHOT, 0, p->policy, w.p, w.len) == -1)
		fatal("cannot hand the policy on");
	wbuf_free(&w);
	p->policy = -1;
	for (i = 0; i < p->boot.audit.n; i++) {
		child_send_audit(p, i, p->audit[i]);
		p->audit[i] = -1;
	}
	if (p->control != -1 &&
	    chan_send(m->chan, PC_CONTROL, 0, p->control, NULL, 0) == -1)
		log_warn("cannot hand the control socket on");
	p->control = -1;
	for (k = 0; k < PROC_COUNT; k++) {
		c = p->kids[k];
		tell_posture(p, c);
		if (c != NULL && c->ready &&
		    (k == PROC_PATHD || k == PROC_EXECD))
			child_connect(p, c);
	}
}

static int
child_ready(struct parent *p, struct child *c, const struct imsg *m)
{
	struct child *mon = p->kids[PROC_MONITOR];

	if (c->ready)
		return -1;
	c->ready = 1;
	log_info("%s[%d]: %.*s", proc_name(c->kind), c->pid, (int)m->len,
	    (const char *)m->payload);
	snprintf(c->posture, sizeof(c->posture), "%.*s", (int)m->len,
	    (const char *)m->payload);
	if (c->kind != PROC_MONITOR)
		tell_posture(p, c);
	if (c->kind == PROC_MONITOR)
		monitor_ready(p);
	else if (c->kind == PROC_LISTENER)
		open_door(p);
	else if (mon != NULL && mon->ready)
		child_connect(p, c);
	return 0;
}

/* ---- messages of the monitor ---- */

static struct child *
find_child(struct parent *p, enum proc_kind kind, uint32_t gen)
{
	struct child *c;

	if (p->kids[kind] != NULL && p->kids[kind]->generation == gen)
		return p->kids[kind];
	if (p->next_kids[kind] != NULL && p->next_kids[kind]->generation == gen)
		return p->next_kids[kind];
	for (c = p->drain; c != NULL; c = c->next)
		if (c->kind == kind && c->generation == gen)
			return c;
	return NULL;
}

static int
about_child(struct parent *p, const struct imsg *m)
{
	struct rbuf r;
	uint8_t kind;
	uint32_t gen;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	gen = rget_u32(&r);
	if (rget_end(&r) == -1 || kind >= PROC_COUNT)
		return -1;
	if (m->type == PC_DRAINED)
		reload_drained(p, (enum proc_kind)kind, gen);
	else
		stop_kill(find_child(p, (enum proc_kind)kind, gen));
	return 0;
}

static int
reloaded(struct parent *p, const struct imsg *m)
{
	struct rbuf r;
	uint32_t epoch;
	int ok;

	rbuf_init(&r, m->payload, m->len);
	epoch = rget_u32(&r);
	ok = rget_bool(&r);
	if (r.err)
		return -1;
	reload_done(p, epoch, ok);
	return 0;
}

static int
asked(struct parent *p, const struct imsg *m)
{
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	p->asked = rget_u32(&r);
	if (rget_end(&r) == -1)
		return -1;
	reload_begin(p);
	return 0;
}

static int
monitor_says(struct parent *p, const struct imsg *m)
{
	switch (m->type) {
	case PC_MON_READY:
		if (!p->workers_up) {
			p->workers_up = 1;
			open_door(p);
		}
		return 0;
	case PC_BROKEN:
	case PC_DRAINED:
		return about_child(p, m);
	case PC_RELOAD:
		return asked(p, m);
	case PC_RELOADED:
		return reloaded(p, m);
	case PC_PROBE_FAIL:
		log_warnx("the probe sandbox failed: %.*s", (int)m->len,
		    (const char *)m->payload);
		return 0;
	default:
		return -1;
	}
}

int
parent_says(struct child *c, struct imsg *m)
{
	if (m->type == PC_READY)
		return child_ready(self, c, m);
	if (c->kind == PROC_MONITOR && c->ready)
		return monitor_says(self, m);
	return -1;
}

/* ---- death and restart ---- */

static void
restart_cb(evutil_socket_t fd, short what, void *arg)
{
	struct restarts *rs = arg;
	enum proc_kind kind = (enum proc_kind)(rs - self->restarts);

	event_free(rs->timer);
	rs->timer = NULL;
	/* a reload may have brought another meanwhile */
	if (self->stopping || self->kids[kind] != NULL)
		return;
	self->kids[kind] =
	    child_start(self, kind, &self->boot, self->kid_epoch[kind]);
	if (self->kids[kind] == NULL)
		parent_restart(self, kind);
}

/* Restarts of the last minute, this one included. */
static uint32_t
count_restart(struct restarts *rs)
{
	uint64_t now = now_us();
	size_t i, n = 0;

	for (i = 0; i < rs->n; i++)
		if (now - rs->at[i] < RESTART_WINDOW_US)
			rs->at[n++] = rs->at[i];
	if (n == nitems(rs->at))
		memmove(rs->at, rs->at + 1, --n * sizeof(rs->at[0]));
	rs->at[n++] = now;
	rs->n = n;
	return (uint32_t)n;
}

void
parent_restart(struct parent *p, enum proc_kind kind)
{
	struct restarts *rs = &p->restarts[kind];
	uint32_t n = count_restart(rs), ms;
	struct timeval tv;

	if (n > p->boot.restart_limit) {
		log_warnx("%s died %u times in a minute: giving up",
		    proc_name(kind), n);
		stop_now(p, 1);
		return;
	}
	/* one is due already: this one came by a reload meanwhile */
	if (rs->timer != NULL)
		return;
	ms = n == 1 ? 10 : n > 5 ? 1000 : 50U << n;
	if (ms > 1000)
		ms = 1000;
	tv.tv_sec = ms / 1000;
	tv.tv_usec = (suseconds_t)(ms % 1000) * 1000;
	rs->timer = evtimer_new(p->base, restart_cb, rs);
	if (rs->timer == NULL || evtimer_add(rs->timer, &tv) == -1)
		fatalx("timer");
}

static void
log_death(const struct child *c, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		log_warnx("%s[%d] was killed by its system call filter",
		    proc_name(c->kind), c->pid);
	else if (WIFSIGNALED(status))
		log_warnx("%s[%d] died of signal %d", proc_name(c->kind),
		    c->pid, WTERMSIG(status));
	else
		log_warnx("%s[%d] exited with %d", proc_name(c->kind), c->pid,
		    WEXITSTATUS(status));
}

/* A child of the configuration in force died. */
static void
kid_died(struct parent *p, struct child *c)
{
	enum proc_kind kind = c->kind;
	int was_ready = c->ready;

	p->kids[kind] = NULL;
	child_free(c);
	if (p->stopping) {
		stop_next(p);
		return;
	}
	if (kind == PROC_MONITOR) {
		log_warnx("without the monitor nothing can be decided: "
			  "stopping");
		stop_now(p, 1);
	} else if (!was_ready && !p->announced) {
		log_warnx("%s did not come up", proc_name(kind));
		stop_now(p, 1);
	} else
		parent_restart(p, kind);
}

static void
drain_remove(struct parent *p, struct child *c)
{
	struct child **q;

	for (q = &p->drain; *q != c; q = &(*q)->next)
		continue;
	*q = c->next;
	child_free(c);
	if (p->stopping)
		stop_next(p);
}

/* What ran below an execd died with it, at the latest now. */
static void
bury(const struct child *c)
{
	if (c->kind == PROC_EXECD)
		groups_bury(c->generation);
}

static void
child_died(struct parent *p, pid_t pid, int status)
{
	struct child *c, *next;
	int k;

	for (k = 0; k < PROC_COUNT; k++) {
		if ((c = p->kids[k]) != NULL && c->pid == pid) {
			if (!p->stopping)
				log_death(c, status);
			if (k != PROC_MONITOR)
				child_send(p->kids[PROC_MONITOR], PC_CHILD_GONE,
				    -1, (uint8_t)k, c->generation, 0);
			bury(c);
			kid_died(p, c);
			return;
		}
		if ((c = p->next_kids[k]) != NULL && c->pid == pid) {
			log_death(c, status);
			p->next_kids[k] = NULL;
			bury(c);
			child_free(c);
			reload_child_died(p, (enum proc_kind)k);
			return;
		}
	}
	for (c = p->drain; c != NULL; c = next) {
		next = c->next;
		if (c->pid == pid) {
			child_send(p->kids[PROC_MONITOR], PC_CHILD_GONE, -1,
			    (uint8_t)c->kind, c->generation, 0);
			bury(c);
			drain_remove(p, c);
			return;
		}
	}
}

/* ---- signals ---- */

static void
sigterm_cb(evutil_socket_t sig, short what, void *arg)
{
	struct parent *p = arg;

	if (p->stopping)
		stop_now(p, 0);
	else {
		log_info("stopping, asked by SIG%s", sigabbrev_np((int)sig));
		stop_begin(p);
	}
}

static void
sigchld_cb(evutil_socket_t sig, short what, void *arg)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		child_died(arg, pid, status);
}

/* Open the audit files anew, for whoever renamed them. */
static void
sigusr1_cb(evutil_socket_t sig, short what, void *arg)
{
	struct parent *p = arg;
	size_t i;
	int fd;

	for (i = 0; i < p->boot.audit.n; i++) {
		if (strncmp(p->boot.audit.v[i], "file:", 5) != 0)
			continue;
		if ((fd = boot_open_audit(p, i)) == -1)
			log_warn("audit sink %s: the file that was open "
				 "stays",
			    p->boot.audit.v[i]);
		else {
			log_info(
			    "audit sink %s: opened anew", p->boot.audit.v[i]);
			child_send_audit(p, i, fd);
		}
	}
}

static void
sighup_cb(evutil_socket_t sig, short what, void *arg)
{
	reload_begin(arg);
}

static void
watch(struct parent *p, int sig, event_callback_fn cb)
{
	struct event *ev = evsignal_new(p->base, sig, cb, p);

	if (ev == NULL || evsignal_add(ev, NULL) == -1)
		fatalx("signal %d", sig);
}

int
parent_run(struct parent *p)
{
	/* the one that has most to do first */
	static const enum proc_kind order[] = {
	    PROC_EXECD, PROC_MONITOR, PROC_PATHD, PROC_LISTENER};
	size_t i;

	self = p;
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		fatal("signal");
	if ((p->base = event_base_new()) == NULL)
		fatalx("event_base_new");
	watch(p, SIGTERM, sigterm_cb);
	watch(p, SIGINT, sigterm_cb);
	watch(p, SIGCHLD, sigchld_cb);
	watch(p, SIGUSR1, sigusr1_cb);
	watch(p, SIGHUP, sighup_cb);
	groups_open(p);
	groups_bound(&p->boot);
	p->epoch = 1;
	for (i = 0; i < nitems(order); i++) {
		p->kid_epoch[order[i]] = p->epoch;
		p->kids[order[i]] =
		    child_start(p, order[i], &p->boot, p->epoch);
		if (p->kids[order[i]] == NULL)
			fatalx("cannot start %s", proc_name(order[i]));
	}
	if (event_base_dispatch(p->base) == -1)
		log_warnx("event loop");
	stop_all(p);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		continue;
	sock_remove(p);
	sock_remove_control(p);
	log_info("stopped");
	return p->status;
}
