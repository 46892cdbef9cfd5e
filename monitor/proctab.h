/*
 * SPDX-License-Identifier: ISC
 *
 * The table of processes, each its owner's alone: one is only ever looked up
 * among those of who asks, so that foreign and wrong ids are the same.  Pure.
 */
#ifndef ABX_PROCTAB_H
#define ABX_PROCTAB_H

#include <stddef.h>
#include <stdint.h>

#include "common/abx.h"
#include "common/payload.h"

#define PROC_ID_LEN 22 /* 128 bits, base64url */
#define PROC_ARGV0_MAX 100

enum proc_state { PROC_STARTING, PROC_RUNNING, PROC_OVER };

struct limit_slot;
struct peer;
struct req;
struct snap;
struct ws;

struct proc {
	struct proc *next; /* newest first */
	char id[PROC_ID_LEN + 1];
	char *owner; /* principal */
	int known;   /* it had a credential, or the peer of a socket named it */
	enum proc_state state; /* written by proctab only */
	uint64_t run;	       /* its number in execd */
	uint32_t pid;	       /* inside the sandbox */
	char argv0[PROC_ARGV0_MAX + 1];
	char program[ABX_PATH_MAX + 1];		   /* for the audit */
	char session[ABX_ID_MAX + 1];		   /* "": none */
	char reqid[ABX_REQID_LEN + 1], remote[64]; /* of its start */
	int64_t started;			   /* seconds, UTC */
	uint32_t started_ns;
	int stdin_open;
	uint64_t ended_us; /* monotonic */
	struct run_end end;
	/* the monitor's, not looked at here */
	struct peer *peer;	 /* a reference; NULL: its execd is gone */
	struct snap *snap;	 /* a reference */
	struct limit_slot *slot; /* concurrency that it takes, or NULL */
	struct ws *ws;		 /* workspace that it runs in, or NULL */
	struct req *waiters;
};

struct proctab {
	struct proc *all;
	size_t n;
	size_t max, max_each; /* in all, and of one owner */
};

/* A process of that owner in state PROC_STARTING, with an id of 16 random
 * bytes.  NULL when out of memory. */
struct proc *proctab_add(struct proctab *, const char *owner, int known,
    uint64_t run, const uint8_t random[16]);
/* Unlink and free; what it refers to must have been let go. */
void proctab_remove(struct proctab *, struct proc *);
/* 0: there is room for one more of that owner; 1: when *victim, which has
 * ended, is removed first; -1: too many run, max_each of his or as many as are
 * left for others. */
int proctab_room(
    const struct proctab *, const char *owner, int known, struct proc **victim);
/* That of the owner with this id which has started, or NULL. */
struct proc *proctab_find(
    const struct proctab *, const char *owner, int known, const char *id);
/* That which has started with this number and still runs, or NULL. */
struct proc *proctab_by_run(const struct proctab *, uint64_t run);
/* One that ended ttl microseconds before now, or earlier; NULL. */
struct proc *proctab_expired(
    const struct proctab *, uint64_t now, uint64_t ttl);
void proctab_started(struct proc *, uint32_t pid, int64_t sec, uint32_t ns);
void proctab_ended(struct proc *, const struct run_end *, uint64_t now);

#endif
