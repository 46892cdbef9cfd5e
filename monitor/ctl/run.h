/*
 * SPDX-License-Identifier: ISC
 *
 * What the two files of abxctl run share: run.c asks for the command, and
 * run_follow.c is with it until it ends.
 */
#ifndef ABX_CTL_RUN_H
#define ABX_CTL_RUN_H

#include "monitor/ctl/client.h"

struct run {
	struct ctl *ctl;
	struct client *client;
	struct talk *out; /* the events */
	char *id;	  /* of the process; NULL: hanging up ends it */
	int feed;	  /* standard input goes to it */
	int status;	  /* exit status once it is known, else -1 */
};

/* Which exit status that result is: the command's own, 128 and the number of
 * the signal it died of, or CTL_UNREACHED when nobody saw its end. */
int run_exit_status(const json_t *result);
/* Write what it says, pass on what we are told, until its end: the exit
 * status.  SIGINT, SIGTERM, SIGHUP and SIGQUIT must be blocked. */
int run_follow(struct run *);
/* Nobody will hear of that process any more: end it, or say that it runs. */
void run_abandon(struct run *);

#endif
