/*
 * SPDX-License-Identifier: ISC
 *
 * A worker process: takes one long job after the other from main over its
 * socket, in the messages of the monitor as they are.  Blocking calls are
 * fine here.
 */
#ifndef ABX_PATHD_WORKER_H
#define ABX_PATHD_WORKER_H

#include <stdint.h>

#include "common/imsg.h"
#include "common/wire.h"
#include "pathd/pathd.h"

#define JOB_SILENCE_MS 60000 /* a peer of a pipe that does nothing */

struct job {
	const struct pathd *pd;
	struct imsgbuf *im;
	uint64_t id;
	volatile uint64_t *beat; /* shared with main, which watches it */
	unsigned ticks;
	int silent_ms;	  /* since the descriptor waited for did anything */
	int over;	  /* cancelled: no answer is wanted any more */
	int ended, whole; /* PUT_END came, and what it said */
	uint64_t total;
};

/* The life of a worker, in the child of a fork; fds other than those of pd
 * and sock are closed. */
void worker_main(const struct pathd *, int sock, volatile uint64_t *beat)
    __attribute__((noreturn));

/* Say that work goes on; 1 when it should stop.  Cheap enough for loops. */
int job_stop(void *job);
/* Wait for events on fd (-1: only for messages), but not long: 1 when there
 * are some, 0 when not yet, -1 when the job is over. */
int job_wait(struct job *, int fd, short events);
/* Answer; fd is taken. */
void job_send(struct job *, uint16_t type, int fd, const struct wbuf *);
/* The empty answer to what changes something, which has room for all answers
 * of a fixed size; for others job_reserve makes it, 0 or -1, and must succeed
 * before anything is changed. */
struct wbuf *job_answer(void);
int job_reserve(const struct job *);
void job_said(struct job *, uint16_t type); /* send it */
/* DONE with a code and a count. */
void job_done(struct job *, uint16_t code, uint64_t count);
/* End the worker, which cannot go on without what it was sent or has to say;
 * main answers for it. */
void job_quit(void) __attribute__((noreturn));

/* put_job.c: make the pipe of an upload and hand its write end out (PUT_ANS):
 * the read end, or -1 with errno; the end of it (PUT_FIN). */
int put_answer(struct job *);
struct put_fin;
void put_finish(struct job *, const struct put_fin *);

/* put_job.c, list_job.c, pack_job.c and watch_job.c: a whole PUT, a whole LIST
 * and so on. */
void do_put(struct job *, struct rbuf *);
void do_list(struct job *, struct rbuf *);
void do_search(struct job *, struct rbuf *);
void do_export(struct job *, struct rbuf *);
void do_watch(struct job *, struct rbuf *);
void do_archive(struct job *, struct rbuf *);
void do_import(struct job *, struct rbuf *);

#endif
