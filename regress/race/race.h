/*
 * SPDX-License-Identifier: ISC
 *
 * What the parts of race share.  The attackers may do whatever they like in
 * the served directory w; what lies beside it (r, served to somebody else, so
 * that neither Landlock nor a mount stands before it) and in the denied w/v
 * must stay unread and unchanged.
 */
#ifndef ABX_RACE_H
#define ABX_RACE_H

#include <stdint.h>

#include "regress/privsep/stage.h"

/* One way to attack, and what the clients aim at meanwhile. */
struct attack {
	const char *name;
	/* Make what it needs below w; r has the same names already. */
	void (*prepare)(const struct stage *);
	/* One move; fd is of w.  Called as fast as it goes. */
	void (*move)(int fd);
	const char *dir;  /* listed, made into, run in */
	const char *file; /* read, written, moved, deleted */
};
extern const struct attack attacks[];
extern const size_t nattacks;
/* Temporary names that were replaced by links, in this process. */
extern uint64_t attack_planted;

#define CLIENT_OPS_MAX 32

/* Counts that all processes of a race share. */
struct tally {
	uint64_t moves;	   /* of the attacker */
	uint64_t planted;  /* links in the place of temporaries */
	uint64_t done;	   /* calls that were admitted */
	uint64_t refused;  /* and that were not */
	uint64_t faults;   /* 5xx */
	uint64_t internal; /* 500, or no answer at all */
	uint64_t leaks;	   /* answers that hold what they must not */
	uint64_t naive;	   /* times that a plain open(2) was fooled */
	uint64_t naive_ok;
	uint64_t wrong; /* 400: the client made no sense */
	uint64_t op_done[CLIENT_OPS_MAX], op_refused[CLIENT_OPS_MAX];
	int stop;
};

/* client.c: every operation that touches a path once, on what is under
 * attack; which: the number of the client, n: of the round. */
void client_round(const struct stage *, struct tally *, const struct attack *,
    int which, unsigned n);
extern const char *const client_ops[];
extern const size_t client_nops;

#endif
