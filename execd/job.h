/*
 * SPDX-License-Identifier: ISC
 *
 * The runs of this execd, by the monitor's request number: one sandbox each,
 * with its deadlines, its output and its end.
 */
#ifndef ABX_EXECD_JOB_H
#define ABX_EXECD_JOB_H

#include "common/chan.h"
#include "common/payload.h"
#include "execd/profile.h"

struct event_base;
struct driver;

struct job_conf {
	struct event_base *base;
	const struct driver *driver;
	struct chan *mon; /* answers go there */
	uint32_t require; /* enum exec_layer */
	uint64_t nofile;  /* descriptors that there can be */
	uint64_t idle_ms; /* an unused session's sandbox is kept that long */
	/* The probe is over; HELLO was queued. */
	void (*probed)(const struct exec_hello *);
	/* job_shutdown was asked for, and no run is left. */
	void (*empty)(void);
};

/* Start-up; the struct is copied.  fatal on failure. */
void job_init(const struct job_conf *);

/*
 * Run a program through the whole pipeline and tell the monitor with HELLO
 * which layers it had.  missing: what a check before has found ("" when
 * nothing); it is reported then, and nothing is run.
 */
void job_probe(const char *missing);

/*
 * Start a run.  spawn is borrowed; the binds are taken over in any case.
 * Whatever fails is answered with ME_FAILED.  0, or -1 when the id is in use
 * (the monitor is broken).
 */
int job_spawn(uint64_t id, const struct spawn *, struct profile_binds *);
/* Answer ME_FAILED for a run that never became a job. */
void job_refuse(uint64_t id, uint16_t code, int err, const char *layer);

/* The program of a run that is held may start; unknown ids are ignored. */
void job_go(uint64_t id);
/* A signal for the program's process group; unknown ids are ignored, since
 * the end may have crossed it. */
void job_signal(uint64_t id, int sig);
/* Kill the run, or forget its unsent output; that of a process stays. */
void job_cancel(uint64_t id);

/* ---- processes: runs with SPAWN_KEEP ---- */

/* Follow the output of run from these offsets on; answered with ME_RUN or
 * ME_DONE of id. */
void job_follow(uint64_t id, uint64_t run, const uint64_t at[2], int follow);
/* Bytes for its stdin, in a file (taken), and maybe the end of it; answered
 * with ME_DONE of id unless id is the run's own. */
void job_feed(uint64_t id, uint64_t run, int fd, int eof);
/* Drop what is kept of an ended process. */
void job_forget(uint64_t id);

/* TERM to all, KILL after each one's grace; conf.empty when all are gone. */
void job_shutdown(void);

#endif
