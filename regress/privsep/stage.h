/*
 * SPDX-License-Identifier: ISC
 *
 * A stage for tests that need a whole service: directories, a configuration,
 * the real abxd with any program replaced by a stand-in, a small HTTP client,
 * and eyes for what a process holds.  Blocking; dies with a message when the
 * stage itself is at fault, so that a test only speaks of what it tests.
 */
#ifndef ABX_STAGE_H
#define ABX_STAGE_H

#include <sys/types.h>

#include <stddef.h>
#include <stdint.h>

/* Stands in every file that nobody may read. */
#define MARKER "abx-marker-5e1f9c"
#define TOKEN_A "alice-token-0f1e2d3c4b5a6978"
#define TOKEN_B "bob-token-8796a5b4c3d2e1f00"

struct stage {
	const char *build; /* directory of the real programs */
	char dir[64];	   /* of this test; removed by stage_free */
	uid_t uid;	   /* who serves files */
	gid_t gid;
	int root;	/* abxd is started as root */
	pid_t abxd;	/* -1: not running */
	unsigned port;	/* that it listens on */
	size_t log_pos; /* bytes of the log that stage_mark passed over */
};

/* Make the directories: bin (copies and links of the programs), conf, log,
 * w (served), r (served to another principal).  user: who starts abxd when
 * we are root, NULL for root itself; without root it is always us. */
void stage_new(struct stage *, const char *build, const char *user);
void stage_free(struct stage *);
/* dir/rel in one of eight buffers that take turns. */
const char *stage_path(const struct stage *, const char *rel);
/* Make a directory or a file of the run user; parents must exist. */
void stage_mkdir(const struct stage *, const char *rel);
void stage_put(const struct stage *, const char *rel, const char *text);
/* Put another program in the place of one of ours, which stays available as
 * bin/real/NAME. */
void stage_replace(const struct stage *, const char *name, const char *by);
/* Write conf/server.json: the usual members and these; '@' stands for dir. */
void stage_conf(struct stage *, const char *members);
/* Start abxd and return once it says that it is ready (or at once). */
void stage_start(struct stage *, int wait);
/* End it by that signal: the wait status. */
int stage_stop(struct stage *, int sig);
/* 1 when abxd has ended by itself; *status is its wait status. */
int stage_ended(struct stage *, int ms, int *status);

/* The child of abxd with that name, waited for; -1 when there is none. */
pid_t stage_kid(const struct stage *, const char *name);
/* The same when its pid is another one than old. */
pid_t stage_new_kid(const struct stage *, const char *name, pid_t old);
/* Lines of the log behind the mark that hold this text. */
size_t stage_logged(const struct stage *, const char *text);
/* The same, waiting until there are so many (or ms are over). */
size_t stage_wait_log(const struct stage *, const char *text, size_t n, int ms);
void stage_mark(struct stage *);
/* Copy the log behind the mark to stderr. */
void stage_show_log(const struct stage *);

/* How many descriptors a process has; 0 when it is gone. */
size_t proc_fds(pid_t);
/* A field of /proc/PID/status, in one of eight buffers; "" when missing. */
const char *proc_field(pid_t, const char *name);
/* Resident KiB. */
size_t proc_rss(pid_t);
double now(void);
void nap_ms(int);

/* ---- HTTP ---- */

struct reply {
	int status; /* 0: no answer */
	char *body; /* what came behind the head, NUL-terminated, owned */
	size_t len;
};
void reply_clear(struct reply *);
/* A connection, or -1. */
int http_connect(const struct stage *);
/* Send a request head (and body, unless it is NULL; length is announced
 * anyway).  0, or -1 when the connection broke. */
int http_send(int fd, const char *token, const char *method, const char *target,
    const char *body, size_t length);
/* Read one whole answer up to the end of the connection. */
int http_read(int fd, struct reply *, int ms);
/* All of that: the status, 0 when there was no answer. */
int http_call(const struct stage *, const char *token, const char *method,
    const char *target, const char *body, struct reply *);

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *, ...);

#endif
