/*
 * SPDX-License-Identifier: ISC
 *
 * Generated calls, a file system for them, and what a policy answers.
 */
#ifndef ABX_REGRESS_POLICY_ASK_H
#define ABX_REGRESS_POLICY_ASK_H

#include "policy/engine.h"

struct asked {
	struct call call;
	struct args args;
	struct principal who;
	const char *roles[1];
};
/* Mostly a call of something that the policy mounts; args are the caller's
 * (args_clear). */
void ask_new(struct asked *, const struct policy *);

/* What a policy answers: everything that tests compare. */
struct answer {
	int allowed, mounted;
	enum code code;
	long rule;
	uint64_t max_bytes, max_entries, timeout_ms;
	uint32_t concurrency, rate_count;
	uint64_t rate_period_ms;
	char canonical[3][256];
	uint8_t spawn[32]; /* digest of what would run */
};
void ask_policy(const struct policy *, const struct call *, struct answer *);
/* So many calls were asked, so many of them allowed. */
extern unsigned long ask_count, ask_allowed;
/* A property does not hold for that call under those texts (two may be NULL):
 * print all and fail. */
void ask_broken(const char *what, const struct asked *, const char *one,
    const char *two, const struct answer *x, const struct answer *y);

#endif
