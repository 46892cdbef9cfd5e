/*
 * SPDX-License-Identifier: ISC
 *
 * The job table.  Owns every sandbox of this process: its builder's pid, the
 * launcher's pidfd and channel, the clocks, the output pump.  It says that a
 * run ended only when its tree was seen to be empty, and never invents a
 * status.  state is written in job_enter only.
 */
#include "execd/job.h"

#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/msg.h"
#include "common/proc.h"
#include "execd/driver.h"
#include "execd/pump.h"

#define START_MS 20000 /* from bubblewrap's start to the program's */
#define DRAIN_MS 200   /* for output after the program's end */
#define KILL_MS 2000   /* for the launcher to empty the sandbox */
#define STUCK_MS 5000  /* for the kernel to end a killed sandbox */
#define GRACE_MAX_MS 60000
#define JOBS_MAX 1024
#define COMMAND_NOFILE 1024
#define INLINE_MAX (40 * 1024)	    /* larger payloads go by memfd */
#define WORDS_MAX (8 * 1024 * 1024) /* argv and env of one run */
#define WORD_MAX (128 * 1024 - 1)   /* the kernel's MAX_ARG_STRLEN */

enum job_state {
	JOB_START, /* the sandbox is built, the program has not started */
	JOB_RUN,   /* it runs */
	JOB_TERM,  /* it was asked to end, the grace runs */
	JOB_DRAIN, /* it ended; what it started may still write */
	JOB_KILL,  /* the launcher was told to kill all that is left */
	JOB_STUCK, /* the whole sandbox was told to die */
	JOB_OVER   /* the end is said; output or bubblewrap may be left */
};

struct job {
	struct job *next;
	uint64_t id;
	enum job_state state;
	int probe;
	pid_t bwrap;	   /* 0 when reaped */
	pid_t init;	   /* the launcher outside, 0 when not known */
	int pidfd;	   /* of it */
	int err;	   /* bubblewrap's complaints */
	struct chan *chan; /* to the launcher; NULL when it is gone */
	struct pump *pump;
	int frames_r, stdin_w; /* for the monitor, until STARTED */
	uint64_t start_us, grace_ms, idle_ms, timeout_ms;
	struct event phase, timeout, idle;
	struct event init_ev; /* the launcher's end */
	int init_gone;
	struct xl_ready ready;
	struct run_end end;
	int ended; /* end.status is real */
	int empty; /* the tree was seen to be empty */
};

static struct job_conf conf;
static struct exec_hello hello;
static struct job *jobs;
static size_t njobs;
static int stopping;
static struct event sigchld;

static void job_enter(struct job *, enum job_state);
static void job_settle(struct job *);

/* ---- the monitor ---- */

static void
tell(uint16_t type, uint64_t id, int fd, struct wbuf *w)
{
	if (w != NULL && w->err)
		fatalx("out of memory");
	if (chan_send(conf.mon, type, id, fd, w == NULL ? NULL : w->p,
		w == NULL ? 0 : w->len) == -1 &&
	    errno != EPIPE)
		fatal("cannot tell the monitor %s", msg_name(type));
	if (w != NULL)
		wbuf_free(w);
}

void
job_refuse(uint64_t id, uint16_t code, int err, const char *layer)
{
	struct spawn_failed f = {code, err, ""};
	struct wbuf w;

	strlcpy(f.layer, layer, sizeof(f.layer));
	wbuf_init(&w, 256);
	spawn_failed_put(&w, &f);
	tell(ME_FAILED, id, -1, &w);
}

static void
say_hello(uint32_t layers, uint32_t abi, const char *text)
{
	struct wbuf w;

	hello.layers = layers;
	hello.landlock_abi = abi;
	strlcpy(hello.text, text, sizeof(hello.text));
	wbuf_init(&w, 512);
	exec_hello_put(&w, &hello);
	tell(ME_HELLO, 0, -1, &w);
	conf.probed(&hello);
}

static void
probe_over(struct job *j)
{
	uint32_t layers = j->ready.layers;
	const char *text = "";

	if (!j->ended || !WIFEXITED(j->end.status) ||
	    WEXITSTATUS(j->end.status) != 0) {
		text = "namespaces: the probe did not end well";
		layers = 0;
	} else if ((layers & LAYER_LANDLOCK) == 0)
		text = "landlock: this kernel has none";
	say_hello(layers, j->ready.abi, text);
}

/* ---- the launcher ---- */

static void
launch_tell(struct job *j, uint16_t type, int fd, const void *p, size_t n)
{
	if (j->chan == NULL) {
		if (fd != -1)
			close(fd);
		return;
	}
	if (chan_send(j->chan, type, j->id, fd, p, n) == -1)
		log_warn(
		    "run %llu: %s", (unsigned long long)j->id, msg_name(type));
}

static void
launch_signal(struct job *j, int sig)
{
	uint8_t b = (uint8_t)sig;

	launch_tell(j, XL_SIGNAL, -1, &b, 1);
}

/* A sealed memfd with these bytes, or -1 with errno. */
static int
sealed(const struct wbuf *w)
{
	int fd;

	fd = memfd_create("payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd == -1)
		return -1;
	if (write(fd, w->p, w->len) == (ssize_t)w->len &&
	    fcntl(fd, F_ADD_SEALS,
		F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Send a payload of any size; the writer is freed.  0, or -1 with errno. */
static int
launch_payload(struct job *j, uint16_t type, struct wbuf *w)
{
	uint8_t none = 0;
	int fd = -1, rc = 0;

	if (w->err) {
		errno = E2BIG;
		rc = -1;
	} else if (w->len <= INLINE_MAX)
		launch_tell(j, type, -1, w->p, w->len);
	else if ((fd = sealed(w)) == -1)
		rc = -1;
	else
		launch_tell(j, type, fd, &none, 1);
	wbuf_free(w);
	return rc;
}

/* ---- clocks ---- */

static void
arm(struct event *ev, uint64_t ms)
{
	struct timeval tv = {
	    (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

	if (ms > 0 && event_add(ev, &tv) == -1)
		fatalx("event_add");
}

/* Kill the sandbox from outside, in every way there is. */
static void
kill_sandbox(struct job *j)
{
	if (j->pidfd != -1)
		(void)pidfd_send_signal(j->pidfd, SIGKILL, NULL, 0);
	if (j->bwrap != 0)
		(void)kill(j->bwrap, SIGKILL); /* not reaped, so it is ours */
}

/* The only place that changes the state; each state sets its own clock. */
static void
job_enter(struct job *j, enum job_state state)
{
	static const uint64_t clock_ms[] = {[JOB_START] = START_MS,
	    [JOB_DRAIN] = DRAIN_MS,
	    [JOB_KILL] = KILL_MS,
	    [JOB_STUCK] = STUCK_MS,
	    [JOB_OVER] = KILL_MS};

	j->state = state;
	event_del(&j->phase);
	arm(&j->phase, state == JOB_TERM ? j->grace_ms : clock_ms[state]);
	if (state == JOB_RUN) {
		arm(&j->timeout, j->timeout_ms);
		arm(&j->idle, j->idle_ms);
	} else if (state != JOB_START) {
		event_del(&j->timeout);
		event_del(&j->idle);
	}
	if (state == JOB_KILL)
		launch_tell(j, XL_KILL, -1, NULL, 0);
	if (state == JOB_STUCK)
		kill_sandbox(j);
	if (state == JOB_OVER) {
		/* the launcher ends when its socket does */
		chan_free(j->chan);
		j->chan = NULL;
	}
}

/* ---- ends ---- */

static void
job_free(struct job *j)
{
	struct job **p;

	for (p = &jobs; *p != NULL && *p != j; p = &(*p)->next)
		;
	if (*p == j) {
		*p = j->next;
		njobs--;
	}
	event_del(&j->phase);
	event_del(&j->timeout);
	event_del(&j->idle);
	chan_free(j->chan);
	pump_free(j->pump);
	if (j->pidfd != -1) {
		event_del(&j->init_ev);
		close(j->pidfd);
	}
	if (j->err != -1)
		close(j->err);
	if (j->frames_r != -1)
		close(j->frames_r);
	if (j->stdin_w != -1)
		close(j->stdin_w);
	free(j);
	if (stopping && njobs == 0)
		conf.empty();
}

/* What bubblewrap or the kernel said before the sandbox was lost; at most one
 * line.  Empty when nothing. */
static void
complaint(struct job *j, char *text, size_t size)
{
	ssize_t n = j->err == -1 ? -1 : read(j->err, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

static void
job_fail(struct job *j, uint16_t code, int err, const char *layer)
{
	char text[200], line[256];

	complaint(j, text, sizeof(text));
	snprintf(line, sizeof(line), "%s: %s%s%s", layer,
	    err != 0 ? strerror(err) : "", err != 0 && *text ? ": " : "", text);
	/* a missing program or too many words are the caller's affair */
	if (j->probe ||
	    (code != C_POL_EXEC_NOT_FOUND && code != C_ARGS_TOO_LARGE))
		log_warnx("run %llu: %s", (unsigned long long)j->id, line);
	if (j->probe)
		say_hello(0, 0, line);
	else
		job_refuse(j->id, code, err, layer);
	pump_free(j->pump);
	j->pump = NULL;
	job_enter(j, JOB_OVER);
	job_settle(j);
}

/* Say the end: END to the monitor, the exit frame to the listener. */
static void
job_finish(struct job *j)
{
	struct wbuf w;

	j->end.us = proc_now_us() - j->start_us;
	j->end.layers = j->ready.layers;
	if (j->empty)
		j->end.flags |= END_EMPTY;
	else
		log_warnx("run %llu: processes are left that cannot be killed",
		    (unsigned long long)j->id);
	if (!j->ended)
		j->end.flags |= END_LOST;
	pump_end(j->pump, &j->end);
	if (j->probe)
		probe_over(j);
	else {
		wbuf_init(&w, 256);
		run_end_put(&w, &j->end);
		tell(ME_END, j->id, -1, &w);
	}
	job_enter(j, JOB_OVER);
	job_settle(j);
}

/* Free a job of which nothing is left. */
static void
job_settle(struct job *j)
{
	if (j->state == JOB_OVER && j->bwrap == 0 && j->pump == NULL)
		job_free(j);
}

/* Is the sandbox gone?  Bubblewrap was reaped, the launcher's socket is at its
 * end, and so is the launcher: with PID 1 the kernel has ended all in it. */
static void
sandbox_gone(struct job *j)
{
	if (j->state == JOB_OVER || j->bwrap != 0 || j->chan != NULL)
		return;
	if (j->pidfd != -1 && !j->init_gone)
		return; /* its processes are still dying */
	if (j->state == JOB_START) {
		job_fail(j, C_SBX_UNAVAILABLE, 0, "namespaces");
		return;
	}
	j->empty = 1;
	job_finish(j);
}

static void
init_cb(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;

	j->init_gone = 1;
	sandbox_gone(j);
}

/* ---- events of a job ---- */

static void
phase_cb(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;

	switch (j->state) {
	case JOB_START:
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
		kill_sandbox(j);
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
	launch_signal(j, SIGTERM);
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
	job_term(arg, END_IDLE);
}

static void
pump_data_cb(void *arg)
{
	struct job *j = arg;

	if (j->state == JOB_RUN)
		arm(&j->idle, j->idle_ms);
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

static const struct pump_ops pump_ops = {
    pump_data_cb, pump_eof_cb, pump_done_cb};

/* ---- what the launcher says ---- */

static int
on_hello(struct job *j, const struct imsg *m)
{
	if (j->init != 0 || m->pid <= 1)
		return -1;
	j->init = m->pid;
	if ((j->pidfd = pidfd_open(m->pid, 0)) == -1) {
		log_warn("pidfd of a launcher");
		return 0;
	}
	event_assign(&j->init_ev, conf.base, j->pidfd, EV_READ, init_cb, j);
	if (event_add(&j->init_ev, NULL) == -1)
		fatalx("event_add");
	return 0;
}

static int
on_ready(struct job *j, struct rbuf *r)
{
	return j->state == JOB_START ? xl_ready_get(r, &j->ready) : -1;
}

static int
on_started(struct job *j, struct rbuf *r)
{
	uint32_t pid = rget_u32(r);
	struct wbuf w;

	if (rget_end(r) == -1 || j->state != JOB_START)
		return -1;
	job_enter(j, JOB_RUN);
	if (j->probe) {
		close(j->frames_r);
		j->frames_r = -1;
		return 0;
	}
	wbuf_init(&w, 4);
	wput_u32(&w, pid);
	tell(ME_STARTED, j->id, -1, &w);
	tell(ME_RUN, j->id, j->frames_r, NULL);
	j->frames_r = -1;
	if (j->stdin_w != -1)
		tell(ME_IN, j->id, j->stdin_w, NULL);
	j->stdin_w = -1;
	return 0;
}

static int
on_failed(struct job *j, struct rbuf *r)
{
	struct spawn_failed f;

	if (xl_failed_get(r, &f) == -1 || j->state != JOB_START)
		return -1;
	job_fail(j, f.code, f.err, f.layer);
	return 0;
}

static int
on_ended(struct job *j, struct rbuf *r)
{
	struct xl_ended e;

	if (xl_ended_get(r, &e) == -1 || j->ended || j->state == JOB_START)
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

static int
launch_msg_cb(struct chan *c, struct imsg *m, void *arg)
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

static void
launch_gone_cb(struct chan *c, int error, void *arg)
{
	struct job *j = arg;

	if (error == EBADMSG) {
		log_warnx("run %llu: the launcher broke the protocol",
		    (unsigned long long)j->id);
		kill_sandbox(j);
	}
	chan_free(j->chan);
	j->chan = NULL;
	/* a clock for what is left of the sandbox */
	if (j->state > JOB_START && j->state < JOB_KILL)
		job_enter(j, JOB_KILL);
	sandbox_gone(j);
}

static void
sigchld_cb(evutil_socket_t fd, short what, void *arg)
{
	struct job *j;
	int status;
	pid_t pid;

	/* as init of the namespace we also reap what lost its parent */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (j = jobs; j != NULL && j->bwrap != pid; j = j->next)
			;
		if (j == NULL)
			continue;
		j->bwrap = 0;
		if (j->state == JOB_OVER)
			job_settle(j);
		else
			sandbox_gone(j);
	}
}

/* ---- starting ---- */

static struct job *
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
	j->grace_ms = s->grace_ms > GRACE_MAX_MS ? GRACE_MAX_MS : s->grace_ms;
	evtimer_assign(&j->phase, conf.base, phase_cb, j);
	evtimer_assign(&j->timeout, conf.base, timeout_cb, j);
	evtimer_assign(&j->idle, conf.base, idle_cb, j);
	j->next = jobs;
	jobs = j;
	njobs++;
	return j;
}

/* Pipes for the program's output and the frames; the program's ends go to
 * the launcher.  0, or -1 with errno. */
static int
job_pipes(struct job *j, const struct spawn *s)
{
	int p[4][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}}, i;
	int n = (s->flags & SPAWN_STDIN) != 0 ? 4 : 3, save;
	uint8_t which;

	for (i = 0; i < n; i++)
		if (pipe2(p[i], O_CLOEXEC) == -1)
			goto fail;
	if (fcntl(p[0][0], F_SETFL, O_NONBLOCK) == -1 ||
	    fcntl(p[1][0], F_SETFL, O_NONBLOCK) == -1 ||
	    fcntl(p[2][1], F_SETFL, O_NONBLOCK) == -1)
		goto fail;
	j->pump = pump_new(conf.base, p[0][0], p[1][0], p[2][1], s->flags,
	    s->max_output, &pump_ops, j);
	if (j->pump == NULL)
		goto fail;
	j->frames_r = p[2][0];
	which = 1;
	launch_tell(j, XL_STDIO, p[0][1], &which, 1);
	which = 2;
	launch_tell(j, XL_STDIO, p[1][1], &which, 1);
	if (n == 4) {
		j->stdin_w = p[3][1];
		which = 0;
		launch_tell(j, XL_STDIO, p[3][0], &which, 1);
	}
	return 0;
fail:
	save = errno;
	for (i = 0; i < n; i++) {
		if (p[i][0] != -1)
			close(p[i][0]);
		if (p[i][1] != -1)
			close(p[i][1]);
	}
	errno = save;
	return -1;
}

/* XL_SETUP for these binds.  0, or -1 with errno. */
static int
job_setup(struct job *j, const struct profile_binds *b)
{
	struct xl_setup x;
	struct wbuf w;

	if (conf.driver->profile_for(b, &x) == -1)
		return -1;
	wbuf_init(&w, WORDS_MAX);
	xl_setup_put(&w, &x);
	/* the filters are the driver's own */
	x.nfilters = 0;
	memset(&x.nofork, 0, sizeof(x.nofork));
	xl_setup_clear(&x);
	return launch_payload(j, XL_SETUP, &w);
}

static int
job_command(struct job *j, const struct spawn *s)
{
	struct wbuf w;

	wbuf_init(&w, WORDS_MAX);
	xl_run_put(&w, s, COMMAND_NOFILE);
	return launch_payload(j, XL_RUN, &w);
}

/* Start the sandbox and say everything that it needs; the launcher reads it
 * when it is there.  On failure the job was answered and freed. */
static void
job_run(struct job *j, const struct spawn *s, const struct profile_binds *b)
{
	struct sandbox sb = {0, -1, -1};

	job_enter(j, JOB_START);
	if (conf.driver->run(b, &sb) == -1) {
		job_fail(j, C_SBX_UNAVAILABLE, errno, "namespaces");
		return;
	}
	j->bwrap = sb.pid;
	j->err = sb.err;
	j->chan =
	    chan_new(conf.base, sb.sock, launch_msg_cb, launch_gone_cb, j);
	if (j->chan == NULL)
		close(sb.sock);
	else if (job_setup(j, b) == 0 && job_pipes(j, s) == 0 &&
		 job_command(j, s) == 0)
		return;
	if (errno == E2BIG)
		job_fail(j, C_ARGS_TOO_LARGE, E2BIG, "argv");
	else
		job_fail(j, C_SRV_UNAVAILABLE, errno, "start");
}

static int
too_large(const struct strlist *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strlen(l->v[i]) > WORD_MAX)
			return 1;
	return 0;
}

static const char *
missing_layer(uint32_t layers)
{
	uint32_t no = (conf.require | LAYER_NAMESPACES) & ~layers;

	if ((no & LAYER_NAMESPACES) != 0)
		return "namespaces";
	if ((no & LAYER_SECCOMP) != 0)
		return "seccomp";
	if ((no & LAYER_LANDLOCK) != 0)
		return "landlock";
	return (no & LAYER_CGROUP) != 0 ? "cgroup" : NULL;
}

static void
job_start(uint64_t id, const struct spawn *s, const struct profile_binds *b)
{
	const char *layer = missing_layer(hello.layers);
	struct job *j;

	if (layer != NULL)
		job_refuse(id, C_SBX_UNAVAILABLE, 0, layer);
	else if (too_large(&s->argv) || too_large(&s->env))
		job_refuse(id, C_ARGS_TOO_LARGE, E2BIG, "argv");
	else if (stopping || njobs >= JOBS_MAX || (j = job_new(id, s)) == NULL)
		job_refuse(id, C_SRV_UNAVAILABLE, EAGAIN, "start");
	else
		job_run(j, s, b);
}

static struct job *
job_find(uint64_t id)
{
	struct job *j;

	for (j = jobs; j != NULL; j = j->next)
		if (j->id == id && !j->probe)
			return j;
	return NULL;
}

int
job_spawn(uint64_t id, const struct spawn *s, struct profile_binds *b)
{
	int rc = 0;

	if (job_find(id) != NULL)
		rc = -1;
	else
		job_start(id, s, b);
	profile_clear(b);
	return rc;
}

void
job_probe(const char *missing)
{
	static const struct profile_binds none;
	static char path[] = "/usr/bin/true", word[] = "true", root[] = "/";
	char *progs[] = {path}, *argv[] = {word};
	struct spawn s = {0};
	struct job *j;

	if (*missing != '\0') {
		log_warnx("%s", missing);
		say_hello(0, 0, missing);
		return;
	}
	s.progs.v = progs;
	s.argv.v = argv;
	s.progs.n = s.argv.n = 1;
	s.cwd = root;
	s.timeout_ms = START_MS;
	if ((j = job_new(0, &s)) == NULL)
		fatal("probe");
	j->probe = 1;
	job_run(j, &s, &none);
}

void
job_signal(uint64_t id, int sig)
{
	struct job *j = job_find(id);

	if (j != NULL && (j->state == JOB_RUN || j->state == JOB_TERM))
		launch_signal(j, sig);
}

void
job_cancel(uint64_t id)
{
	struct job *j = job_find(id);

	if (j == NULL)
		return;
	switch (j->state) {
	case JOB_START:
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
job_shutdown(void)
{
	struct job *j, *next;

	stopping = 1;
	for (j = jobs; j != NULL; j = next) {
		next = j->next;
		if (j->state == JOB_START)
			job_fail(j, C_SRV_UNAVAILABLE, ECANCELED, "shutdown");
		else
			job_term(j, END_CANCELLED);
	}
	if (njobs == 0)
		conf.empty();
}

void
job_init(const struct job_conf *c)
{
	conf = *c;
	evsignal_assign(&sigchld, conf.base, SIGCHLD, sigchld_cb, NULL);
	if (event_add(&sigchld, NULL) == -1)
		fatalx("event_add");
}
