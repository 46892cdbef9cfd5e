/*
 * SPDX-License-Identifier: ISC
 *
 * The job table from inside: what job.c (states and ends), job_start.c,
 * job_launch.c (the launcher's words) and job_say.c (what is sent) share.
 */
#ifndef ABX_EXECD_JOB_INT_H
#define ABX_EXECD_JOB_INT_H

#include <sys/types.h>

#include <event2/event_struct.h>

#include "execd/absent.h"
#include "execd/appeared.h"
#include "execd/cgroup.h"
#include "execd/driver.h"
#include "execd/feed.h"
#include "execd/job.h"
#include "execd/pump.h"
#include "execd/spool.h"

#define JOBS_MAX 1024

enum job_state {
	JOB_START, /* the sandbox is built, the program has not started */
	JOB_HELD,  /* it is built, and the monitor looks once more */
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
	int hold; /* HELD must be said first */
	/* "" or the name of the session that it is of, and whether that is
	 * being ended */
	char session[ABX_WORKSPACE_LEN + 1];
	int ending;
	struct box *box; /* the session's sandbox, while it has a place there */
	int sent;	 /* the order to start the program */
	int cancel;	 /* as soon as it is known to have started */
	struct wbuf seen;	/* what it is to see, without a session */
	struct appeared *watch; /* protected names that were not there */
	struct wbuf held;	/* XL_RUN until GO */
	struct cgroup *group;	/* NULL: none */
	int placed;		/* its supervisor is in that */
	uint64_t moving;	/* or on the way there, 0: not yet */
	struct cgroup_limits bounds;
	struct absent_refs *absent; /* placeholders among the binds */
	pid_t bwrap;		    /* 0 when reaped */
	pid_t init;		    /* the launcher outside, 0 when not known */
	int pidfd;		    /* of it */
	int err;		    /* bubblewrap's complaints */
	struct chan *chan;	    /* to the launcher; NULL when it is gone */
	struct pump *pump;
	struct spool *spool;   /* of a process, until it is forgotten */
	struct feed *feed;     /* of a process that takes input */
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

extern struct job_table {
	struct job_conf conf;
	struct exec_hello hello;
	char broken[64]; /* the layer with which the probe failed, or "" */
	struct job *jobs;
	size_t n;
	int stopping;
} jobs;

extern const struct pump_ops job_pump_ops;

/* ---- job.c ---- */

/* A job in no state yet, in the table; NULL when out of memory. */
struct job *job_new(uint64_t id, const struct spawn *);
struct job *job_find(uint64_t id);
/* The only place that changes the state; each state sets its own clock. */
void job_enter(struct job *, enum job_state);
/* Remove the groups whose last processes are gone, and come back for those
 * whose are not. */
void job_sweep(void);
/* Answer FAILED, or for the probe HELLO, and let go.  May free the job. */
void job_fail(struct job *, uint16_t code, int err, const char *layer);
/* Start the program of a held run. */
void job_release(struct job *);
/* Make the run's group in up (NULL: at the top) unless it has one, and set its
 * limits.  0, or -1 with errno. */
int job_group(struct job *, struct cgroup *up);
/* The run's place in a session's sandbox is ready: start it, or hold it. */
void job_placed(struct job *);
/* Say the end.  The job is JOB_OVER then, or freed. */
void job_finish(struct job *);
/* Kill the sandbox from outside, in every way there is. */
void job_kill_sandbox(struct job *);
/* A piece of input is written, or never will be. */
void job_fed(uint64_t id, uint16_t code);
/* End the job if bubblewrap, the launcher and its socket are all gone. */
void job_sandbox_gone(struct job *);

/* ---- job_keep.c ---- */

/* Are there so many descriptors, or those for one more run? */
int job_room(size_t more);
int job_room_to_start(void);

/* ---- job_launch.c ---- */

/* The program runs; pid inside, 0 when that was never heard. */
void job_started(struct job *, uint32_t pid);
/* The launcher of the run, or its supervisor; pidfd is taken.  0, or -1 when
 * its end could not be waited for. */
int job_launch_init(struct job *, pid_t pid, int pidfd);
int job_launch_msg_cb(struct chan *, struct imsg *, void *);
void job_launch_gone_cb(struct chan *, int error, void *);

/* ---- job_say.c ---- */

/* The writer for what is said to the monitor, empty.  It has its memory from
 * the start: what is owed can be said when there is no other. */
struct wbuf *job_words(void);
/* To the monitor; NULL for no payload.  fd is taken. */
void job_tell(uint16_t type, uint64_t id, int fd, const struct wbuf *);
/* HELLO; text is "" or what is missing. */
void job_hello(uint32_t layers, uint32_t abi, const char *text);
/* HELLO from what the probe found. */
void job_probe_over(const struct job *);
/* XL_SETUP for these binds; lax: nothing is required.  0, or -1 with errno. */
int job_setup(
    struct chan *, uint64_t id, const struct profile_binds *, int lax);
/* Send a payload of any size; the writer is freed.  0, or -1 with errno, E2BIG
 * when it is larger than its bound. */
int job_say_large(struct chan *, uint16_t type, uint64_t id, struct wbuf *);
/* To the launcher, when it is there; fd is taken.  0, or -1 with errno. */
int job_order(
    struct job *, uint16_t type, int fd, const void *payload, size_t n);
void job_order_signal(struct job *, int sig);

#endif
