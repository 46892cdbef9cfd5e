/*
 * SPDX-License-Identifier: ISC
 *
 * Generated configurations for the tests of the policy engine's properties.
 */
#ifndef ABX_REGRESS_POLICY_GEN_H
#define ABX_REGRESS_POLICY_GEN_H

#include <stddef.h>
#include <stdint.h>

#include "policy/engine.h"

#define GEN_TEXT_MAX 65536

/* ---- chance ---- */

/* What repeats a run: ABX_SEED, else the time.  Set by gen_begin. */
extern uint64_t gen_seed;
void gen_begin(void);
/* One of the numbers below n, which is not 0. */
uint32_t gen_rnd(uint32_t n);
#define GEN_PICK(a) ((a)[gen_rnd(nitems(a))])
/* How many policies to try (ABX_POLICIES, ABX_LONG). */
unsigned gen_rounds(void);

/* ---- texts ---- */

struct gen_text {
	char s[GEN_TEXT_MAX];
	size_t len;
};
void gen_put(struct gen_text *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Selectors of more than one operation. */
#define GEN_WIDE 20
extern const char *const gen_wide[GEN_WIDE];
/* An operation that this version has, mostly. */
uint16_t gen_op(void);
/* A rule that denies. */
void gen_deny(struct gen_text *);
/* A configuration in two halves, so that a rule can be put between: up to the
 * list of rules, which knows the tokens of b and, if wanted, of a; and rules.
 * Its end, "]}", is the caller's. */
#define GEN_A_DIGEST \
	"00000000000000000000000000000000000000000000000000000000000000aa"
#define GEN_B_DIGEST \
	"00000000000000000000000000000000000000000000000000000000000000bb"
void gen_head(struct gen_text *, int with_a);
void gen_rules(struct gen_text *);
/* An operator's file. */
void gen_operator(struct gen_text *);

/* ---- a policy ---- */

struct gen_made {
	struct conf *conf;
	struct policy *policy;
};
void gen_clear(struct gen_made *);
/* Load and compile, which must do; env: NULL for a configuration that needs
 * no world. */
void gen_make(struct gen_made *, const struct conf_source *, size_t n,
    const char *const *env);
void gen_make_text(struct gen_made *, const char *text);
/* An environment in which nothing is set. */
extern const char *const gen_no_env[];

#endif
