/*
 * SPDX-License-Identifier: ISC
 *
 * One question of abxctl explain and its answer, between the file that asks
 * (explain.c) and the one that prints (explain_out.c).
 */
#ifndef ABX_CTL_EXPLAIN_H
#define ABX_CTL_EXPLAIN_H

#include "monitor/ctl/ctl.h"

struct explain {
	const char *opname; /* as asked */
	const char *id;	    /* principal */
	const char *session;
	struct strlist roles; /* given, or those of the token with that id */
	int roles_given;
	struct strlist words; /* --arg, as given */
	struct args args;
	struct principal who;
	struct call call;    /* borrows of the above */
	const char *program; /* the file that a command would run, or NULL */
	/* plan and facts live as long as the decision, which borrows of them */
	struct plan plan;
	struct facts *facts; /* plan.nitems */
	struct decision d;
};

/* Parse NAME=VALUE words into the arguments of an operation, as a query would
 * carry them; lists and maps by repeating the name.  0, -1 out of memory, 1
 * with *bad the word that is none. */
int explain_args(
    struct args *, uint16_t op, const struct strlist *words, const char **bad);
/* Print the answer: 0, or -1 when it could not be written. */
int explain_text(const struct explain *, const struct policy *);
int explain_json(const struct explain *, const struct policy *);

#endif
