/*
 * SPDX-License-Identifier: ISC
 *
 * The command policy: a content filter in front of commands that a caller may
 * run, which knows how a shell reads words.  It catches the obvious whatever
 * its spelling; what a command really may do is the sandbox's to say.  Pure:
 * no I/O, no clock of its own, no log, no globals that change.
 */
#ifndef ABX_POLICY_FILTER_H
#define ABX_POLICY_FILTER_H

#include <stddef.h>
#include <stdint.h>

#include "common/payload.h"

#define FILTER_CUSTOM_MAX 64	     /* custom rules */
#define FILTER_REGEX_MAX 4096	     /* bytes of a regular expression */
#define FILTER_STDIN_MAX (16U << 20) /* greatest and default stdin_max */
#define FILTER_NAMES 32		     /* rule names that one result can hold */

enum filter_mode { FILTER_BLOCK, FILTER_WARN, FILTER_OFF };

/* One custom rule, as configured; all owned. */
struct filter_custom {
	char *name, *regex;
	char *description;	    /* or NULL */
	int warn;		    /* action */
	struct strlist match, pass; /* examples */
	char *file;		    /* where it stands, for findings */
	unsigned line, col;
};
/* command_policy of the configuration. */
struct filter_conf {
	int enabled; /* 0: the floor alone */
	int mode;    /* enum filter_mode */
	int use_default_rules;
	struct filter_custom *custom;
	size_t ncustom;
	struct strlist families; /* "posix" always among them */
	uint64_t stdin_max;
};
/* The documented defaults: 0, or -1 when out of memory. */
int filter_conf_init(struct filter_conf *);
void filter_conf_clear(struct filter_conf *);
void filter_custom_clear(struct filter_custom *);

struct filter;
/*
 * Compile; keeps its own copies.  A custom rule that cannot be used drops all
 * custom rules, never another one, and its name and fault are put into why
 * (which is "" otherwise).  conf NULL: the defaults.  NULL when out of memory.
 */
struct filter *filter_new(
    const struct filter_conf *, char *why, size_t whysize);
void filter_free(struct filter *);
/* Microseconds of processor time that this thread has used.  With it, a
 * custom rule that is slow beyond 50 ms and 50 ms a MiB of text counts as a
 * match; without it only the match limit bounds it. */
void filter_clock(struct filter *, uint64_t (*us)(void));
/* A custom rule alone: 0, or -1 with what is wrong with it or with one of its
 * examples, 1 when out of memory. */
int filter_custom_check(
    const struct filter_custom *, char *why, size_t whysize);

struct filter_result {
	/* Names of rules, borrowed from the filter, the floor's first. */
	const char *blocked[FILTER_NAMES], *warned[FILTER_NAMES];
	size_t nblocked, nwarned;
	const char *reason; /* of the first block, else warning; or NULL */
	int too_large; /* a program would come in by a stdin over stdin_max */
};
/*
 * Judge a command as it will be run: argv, and len bytes for its standard
 * input (in NULL: none).  Bytes need not be text.  Linear in both.  0, or -1
 * when out of memory; then nothing may be run.
 */
int filter_check(const struct filter *, const struct strlist *argv,
    const char *in, size_t len, struct filter_result *);
/* The same for a line or script of a shell. */
int filter_check_script(const struct filter *, const char *text, size_t len,
    struct filter_result *);

/* Why the rule of that name is there; NULL when there is none. */
const char *filter_reason(const struct filter *, const char *name);

/* The built-in rules, for people and tests. */
struct filter_rule_info {
	const char *name, *family, *reason;
	int floor;			    /* else a warning */
	const char *const *yes, *const *no; /* scripts; end with NULL */
};
/* The i-th, or 0 when there is none. */
int filter_rule_info(size_t, struct filter_rule_info *);

#endif
