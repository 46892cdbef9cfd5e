/*
 * SPDX-License-Identifier: ISC
 *
 * What the two halves of a plan share: plan.c takes a call apart, slots.c asks
 * for its paths.  Private to policy/.
 */
#ifndef ABX_POLICY_PLANNER_H
#define ABX_POLICY_PLANNER_H

#include "policy/engine.h"

/* What goes through the steps of one plan. */
struct planner {
	const struct policy *p;
	const struct call *call;
	struct plan *plan;
	struct plan_priv *priv;
	const struct op *op;
};

/* slots.c: ask for the paths of every candidate.  0, also with a denial of the
 * whole call in the plan's code; -1 out of memory. */
int slots_fill(struct planner *);

#endif
