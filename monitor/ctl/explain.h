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

/* Print the answer: 0, or -1 when it could not be written. */
int explain_text(const struct explain *, const struct policy *);
int explain_json(const struct explain *, const struct policy *);

#endif
