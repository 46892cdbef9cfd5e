/*
 * SPDX-License-Identifier: ISC
 *
 * Asks the command policy, for the tests of it.
 */
#ifndef REGRESS_FILTER_ASK_H
#define REGRESS_FILTER_ASK_H

#include "policy/policy.h"

/* Words of one command, as ask_words takes them. */
#define V(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The policy as it is when nothing is said, from ask_setup to ask_teardown,
 * which are cmocka's for a group. */
extern struct filter *ask_defaults;
int ask_setup(void **state);
int ask_teardown(void **state);

/* 1 when the name is one of n. */
int ask_has(const char *const *v, size_t n, const char *name);
/* 1 when the rule matched, whatever comes of it. */
int ask_named(const struct filter_result *, const char *name);
/* A script that comes in by a shell's standard input; its argument; words
 * with standard input. */
void ask_script(
    const struct filter *, const char *s, size_t n, struct filter_result *);
void ask_line(const struct filter *, const char *s, struct filter_result *);
void ask_words(const struct filter *, const char *const *v, const char *in,
    size_t n, struct filter_result *);
void ask_print(
    const char *what, const char *text, const struct filter_result *);

#endif
