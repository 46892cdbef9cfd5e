/*
 * SPDX-License-Identifier: ISC
 *
 * What the verbs of abxctl share: the options that all of them take, the
 * loaded configuration, the verb table.  One file a verb.
 */
#ifndef ABX_CTL_H
#define ABX_CTL_H

#include <getopt.h>

#include <jansson.h>

#include "monitor/confset.h"

/* Exit statuses; abxctl(8). */
enum ctl_exit { CTL_YES = 0, CTL_NO = 1, CTL_USAGE = 2, CTL_UNREACHED = 3 };

struct ctl {
	struct confset_opts opts;
	int json;   /* --json */
	int strict; /* --strict */
};

struct ctl_verb {
	const char *name;
	const char *args; /* for the usage line */
	const char *help;
	/* argv[0] is the verb; the exit status. */
	int (*run)(struct ctl *, int argc, char **argv);
};
extern const struct ctl_verb ctl_verbs[]; /* ends with name NULL */

/* The options of every verb; a verb adds its own letters and rows. */
#define CTL_OPTS "f:p:r:"
#define CTL_LONGOPTS                                  \
	{"file", required_argument, NULL, 'f'},       \
	    {"preset", required_argument, NULL, 'p'}, \
	    {"root", required_argument, NULL, 'r'},   \
	    {"json", no_argument, NULL, 'J'},         \
	{                                             \
		"strict", no_argument, NULL, 'S'      \
	}
/* Take one of the options above: 0, or -1 when it is none of them. */
int ctl_option(struct ctl *, int ch);
/* Parse the options of a verb that has none of its own; operands start at
 * optind then.  0, or -1 after the usage was printed. */
int ctl_options(struct ctl *, int argc, char **argv);
/* Print how a verb is used to stderr; returns CTL_USAGE. */
int ctl_usage(const char *verb);
/* Load the configuration for a verb that needs a sound one.  0, or -1 after
 * the errors were printed; the set must be cleared in both cases. */
int ctl_load(struct ctl *, struct confset *);

/* control.c: ask the running service one word over its control socket.
 * *answer is the caller's, *ok what the service said; the exit status, and the
 * reason was printed unless CTL_YES. */
int control_ask(const struct ctl *, const char *verb, json_t **answer, int *ok);
/* What the running service says of itself; NULL, without a word, when none
 * can be asked.  The caller's. */
json_t *control_status(const struct ctl *);

int cat_main(struct ctl *, int, char **);
int check_main(struct ctl *, int, char **);
int describe_main(struct ctl *, int, char **);
int doctor_main(struct ctl *, int, char **);
int explain_main(struct ctl *, int, char **);
int filter_main(struct ctl *, int, char **);
int get_main(struct ctl *, int, char **);
int hash_token_main(struct ctl *, int, char **);
int ls_main(struct ctl *, int, char **);
int mv_main(struct ctl *, int, char **);
int ops_main(struct ctl *, int, char **);
int panic_main(struct ctl *, int, char **); /* resume too */
int put_main(struct ctl *, int, char **);
int reload_main(struct ctl *, int, char **);
int rm_main(struct ctl *, int, char **);
int run_main(struct ctl *, int, char **);
int sessions_main(struct ctl *, int, char **);
int status_main(struct ctl *, int, char **);
int top_main(struct ctl *, int, char **);

#endif
