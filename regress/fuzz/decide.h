/*
 * SPDX-License-Identifier: ISC
 *
 * One call through plan, facts and decision, with what must hold of every
 * decision whatever the policy is: what is allowed lies where its target says,
 * below a root that was asked for and outside what the system protects; and
 * all of it passes the wires to pathd and execd.
 */
#ifndef ABX_FUZZ_DECIDE_H
#define ABX_FUZZ_DECIDE_H

#include "policy/policy.h"

struct feed;
/* Perhaps an argument for that parameter, from a byte (form) and a line. */
void feed_arg(struct args *, const struct op_param *, struct feed *);

/* Fill in zeroed facts of one item (path owned by the facts). */
typedef void (*facts_cb)(
    const struct policy *, const struct plan_item *, struct facts *, void *arg);
/* Facts of a file system in which the item itself is there, as kind. */
void facts_plain(const struct policy *, const struct plan_item *,
    struct facts *, uint8_t kind);
/* A further look at a decision. */
typedef void (*look_cb)(const struct call *, const struct plan *,
    const struct facts *, const struct decision *, void *arg);

/* Decide; CHECKs inside.  look may be NULL. */
void decide_call(
    const struct policy *, const struct call *, facts_cb, look_cb, void *arg);
/* 1 when b is a or lies below it, by whole components. */
int lies_below(const char *a, const char *b);

#endif
