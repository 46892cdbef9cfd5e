/*
 * SPDX-License-Identifier: ISC
 *
 * Starting a run: the checks that need no sandbox, the sandbox, the pipes,
 * and everything that the launcher needs, said at once.
 */
#include "execd/job_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/codes.h"
#include "common/log.h"
#include "common/msg.h"
#include "execd/seen.h"
#include "execd/session.h"

#define START_MAX_MS 20000 /* of the probe */
#define PROBE_MEMORY (256ULL * 1024 * 1024)
#define OWN_PROCS 2 /* of a sandbox: bubblewrap outside, the launcher */
#define COMMAND_NOFILE 1024
#define STREAM_PIPE (256 * 1024)    /* bytes of the pipes of a streamed run */
#define BOX_PROCS 16		    /* times the limit of one command, and */
#define BOX_OTHERS 256		    /* processes more, in a session's sandbox */
#define WORDS_MAX (8 * 1024 * 1024) /* argv and env of one run */
#define WORD_MAX (128 * 1024 - 1)   /* the kernel's MAX_ARG_STRLEN */

/* The pipes of a run: what is read of the program, what is written to it, and
 * the frames.  -1 where there is none. */
struct pipes {
	int out[2], err[2], in[2], frames[2];
};

static void
pipes_close(struct pipes *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (p->out[i] != -1)
			close(p->out[i]);
		if (p->err[i] != -1)
			close(p->err[i]);
		if (p->in[i] != -1)
			close(p->in[i]);
		if (p->frames[i] != -1)
			close(p->frames[i]);
	}
}

/* A pipe whose end 0 or 1 does not block.  0, or -1 with errno. */
static int
pipe_open(int p[2], int end)
{
	if (pipe2(p, O_CLOEXEC) == -1)
		return -1;
	return end == -1 ? 0 : fcntl(p[end], F_SETFL, O_NONBLOCK);
}

/* Fewer turns for a stream that may be long.  The kernel has a sum for all
 * pipes of a user, and may refuse. */
static void
pipe_widen(int fd)
{
	(void)fcntl(fd, F_SETPIPE_SZ, STREAM_PIPE);
}

static int
pipes_open(struct pipes *p, uint16_t flags)
{
	int keep = (flags & SPAWN_KEEP) != 0;

	*p = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
	if (pipe_open(p->out, 0) == -1 || pipe_open(p->err, 0) == -1)
		return -1;
	if ((flags & SPAWN_STREAM) != 0)
		pipe_widen(p->out[1]);
	/* what the listener writes to, it makes non-blocking itself */
	if ((flags & SPAWN_STDIN) != 0 && pipe_open(p->in, keep ? 1 : -1) == -1)
		return -1;
	if (keep)
		return 0;
	if (pipe_open(p->frames, 1) == -1)
		return -1;
	if ((flags & SPAWN_STREAM) != 0)
		pipe_widen(p->frames[1]);
	return 0;
}

/* What reads and writes our ends: 0, or -1 with errno and everything is still
 * the caller's. */
static int
job_attach(struct job *j, const struct spawn *s, const struct pipes *p)
{
	struct event_base *base = jobs.conf.base;
	struct pump_io io = {p->out[0], p->err[0], p->frames[1], NULL};

	if ((s->flags & SPAWN_KEEP) != 0 &&
	    (j->spool = spool_new(base, (size_t)s->max_output)) == NULL)
		return -1;
	io.spool = j->spool;
	if (j->spool != NULL && p->in[1] != -1 &&
	    (j->feed = feed_new(base, p->in[1], job_fed)) == NULL)
		return -1;
	j->pump =
	    pump_new(base, &io, s->flags, s->max_output, &job_pump_ops, j);
	if (j->pump != NULL)
		return 0;
	feed_drop(j->feed);
	j->feed = NULL;
	return -1;
}

/* Pipes for the program's output, its input and the frames; the program's
 * ends go to the launcher.  0, or -1 with errno. */
static int
job_pipes(struct job *j, const struct spawn *s)
{
	static const uint8_t which[] = {0, 1, 2};
	struct pipes p;
	int save, bad = 0;

	if (pipes_open(&p, s->flags) == -1 || job_attach(j, s, &p) == -1) {
		save = errno;
		pipes_close(&p);
		errno = save;
		return -1;
	}
	j->frames_r = p.frames[0];
	if (j->feed == NULL)
		j->stdin_w = p.in[1];
	/* without one of them its words would be lost, and nobody would know */
	bad |= job_order(j, XL_STDIO, p.out[1], &which[1], 1);
	bad |= job_order(j, XL_STDIO, p.err[1], &which[2], 1);
	if (p.in[0] != -1)
		bad |= job_order(j, XL_STDIO, p.in[0], &which[0], 1);
	if (bad != 0)
		errno = ENOMEM;
	return bad;
}

int
job_setup(struct chan *c, uint64_t id, const struct profile_binds *b, int lax)
{
	struct xl_setup x;
	struct wbuf w;

	if (jobs.conf.driver->profile_for(b, &x) == -1)
		return -1;
	if (lax)
		x.require = 0;
	wbuf_init(&w, WORDS_MAX);
	xl_setup_put(&w, &x);
	/* the filters are the driver's own */
	x.nfilters = 0;
	memset(&x.nofork, 0, sizeof(x.nofork));
	xl_setup_clear(&x);
	return job_say_large(c, XL_SETUP, id, &w);
}

static int
job_command(struct job *j, const struct spawn *s)
{
	struct spawn own = *s; /* borrows */
	size_t others = 1;     /* the launcher */
	struct wbuf w;

	/* The kernel counts by user namespace, so in a session's sandbox all
	 * commands and supervisors together: what one of them may have is the
	 * affair of its group. */
	if (j->box != NULL) {
		if (__builtin_mul_overflow(own.procs, BOX_PROCS, &own.procs))
			own.procs = UINT64_MAX;
		others = BOX_OTHERS;
	}
	/* the group counts it all; the other would stop a program first */
	if ((cgroup_can() & CGROUP_MEMORY) != 0)
		own.memory = 0;
	wbuf_init(&w, WORDS_MAX);
	xl_run_put(&w, &own, COMMAND_NOFILE, others);
	if (!j->hold && j->box == NULL) {
		j->sent = 1;
		return job_say_large(j->chan, XL_RUN, j->id, &w);
	}
	if (w.err) {
		wbuf_free(&w);
		errno = E2BIG;
		return -1;
	}
	j->held = w;
	if (j->box != NULL)
		session_hello(j); /* a spare one has said it */
	return 0;
}

void
job_release(struct job *j)
{
	struct wbuf w = j->held;

	memset(&j->held, 0, sizeof(j->held));
	job_enter(j, JOB_START);
	j->sent = 1;
	if (job_say_large(j->chan, XL_RUN, j->id, &w) == -1)
		job_fail(j, C_SRV_UNAVAILABLE, errno, "start");
}

void
job_placed(struct job *j)
{
	if (j->hold) {
		j->hold = 0;
		job_enter(j, JOB_HELD);
		job_tell(ME_HELD, j->id, -1, NULL);
	} else
		job_release(j);
}

int
job_group(struct job *j, struct cgroup *up)
{
	char name[32];

	snprintf(name, sizeof(name), "%llu", (unsigned long long)j->id);
	if ((j->group != NULL || cgroup_new(&j->group, up, name) == 0) &&
	    cgroup_limits(j->group, &j->bounds) == 0)
		return 0;
	if (!j->probe)
		return -1;
	/* it is to say what there is */
	log_warn("control groups cannot be used");
	cgroup_free(j->group, 1);
	j->group = NULL;
	cgroup_off();
	return 0;
}

/* What the group of the run has to hold, its own processes included. */
static void
job_bounds(struct job *j, const struct spawn *s)
{
	int alone = j->session[0] == '\0';

	j->bounds.memory = s->memory;
	if (s->procs != 0)
		j->bounds.procs = s->procs + (alone ? OWN_PROCS : 1);
	/* a session goes on when one of its runs wants too much, so its
	 * supervisor must not die with it */
	j->bounds.whole = alone;
}

/* A sandbox for this run alone: 0, or -1 with errno. */
static int
job_sandbox(struct job *j, const struct profile_binds *b)
{
	struct sandbox sb = {0, -1, -1};

	wbuf_init(&j->seen, SEEN_MAX);
	seen_put(&j->seen, b);
	if (jobs.conf.driver->run(b, cgroup_fd(j->group), &sb) == -1)
		return -1;
	j->bwrap = sb.pid;
	j->err = sb.err;
	j->chan = chan_new(
	    jobs.conf.base, sb.sock, job_launch_msg_cb, job_launch_gone_cb, j);
	if (j->chan != NULL)
		/* the probe is to say what there is; what is missing is
		 * refused later */
		return job_setup(j->chan, j->id, b, j->probe);
	close(sb.sock);
	return -1;
}

/* Start the sandbox, or find the session's, and say everything that the run
 * needs; the launcher reads it when it is there.  On failure the job was
 * answered and freed. */
static void
job_run(struct job *j, const struct spawn *s, const struct profile_binds *b)
{
	int rc;

	job_enter(j, JOB_START);
	job_bounds(j, s);
	if (absent_hold(b, &j->absent) == -1) {
		job_fail(j, C_SRV_UNAVAILABLE, errno, "start");
		return;
	}
	if (j->session[0] == '\0' && job_group(j, NULL) == -1) {
		job_fail(j, C_SBX_UNAVAILABLE, errno, "cgroup");
		return;
	}
	rc = j->session[0] != '\0' ? session_join(j, b) : job_sandbox(j, b);
	if (rc == -1 && j->chan == NULL) {
		job_fail(j, C_SBX_UNAVAILABLE, errno, "namespaces");
		return;
	}
	if (rc == 0 && job_pipes(j, s) == 0 && job_command(j, s) == 0)
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
	uint32_t no = (jobs.conf.require | LAYER_NAMESPACES) & ~layers;

	/* without a sandbox at all it is what kept it from being built */
	if ((no & LAYER_NAMESPACES) != 0)
		return jobs.broken[0] != '\0' ? jobs.broken : "namespaces";
	if ((no & LAYER_SECCOMP) != 0)
		return "seccomp";
	if ((no & LAYER_LANDLOCK) != 0)
		return "landlock";
	return (no & LAYER_CGROUP) != 0 ? "cgroup" : NULL;
}

static void
job_start(uint64_t id, const struct spawn *s, struct profile_binds *b)
{
	const char *layer = missing_layer(jobs.hello.layers);
	struct job *j;

	if (layer != NULL)
		job_refuse(id, C_SBX_UNAVAILABLE, 0, layer);
	else if (too_large(&s->argv) || too_large(&s->env))
		job_refuse(id, C_ARGS_TOO_LARGE, E2BIG, "argv");
	else if (!job_room_to_start())
		job_refuse(id, C_SRV_UNAVAILABLE, EMFILE, "start");
	else if (jobs.stopping || jobs.n >= JOBS_MAX ||
		 (j = job_new(id, s)) == NULL)
		job_refuse(id, C_SRV_UNAVAILABLE, EAGAIN, "start");
	else {
		j->watch = b->watch;
		b->watch = NULL;
		job_run(j, s, b);
	}
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
		job_hello(0, 0, missing);
		return;
	}
	s.progs.v = progs;
	s.argv.v = argv;
	s.progs.n = s.argv.n = 1;
	s.cwd = root;
	s.timeout_ms = START_MAX_MS;
	s.memory = PROBE_MEMORY; /* so that limits are tried */
	s.procs = 16;
	if ((j = job_new(0, &s)) == NULL)
		fatal("probe");
	j->probe = 1;
	job_run(j, &s, &none);
}
