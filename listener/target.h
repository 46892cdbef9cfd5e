/*
 * SPDX-License-Identifier: ISC
 *
 * The raw request target: what is refused, its path, its query arguments.
 * Pure.
 */
#ifndef LISTENER_TARGET_H
#define LISTENER_TARGET_H

#include <stddef.h>

#include "common/args.h"
#include "common/codes.h"

#define TARGET_PATH_MAX 256 /* no route is longer */

struct uri {
	char path[TARGET_PATH_MAX]; /* decoded once; "" when over-long */
	const char *query;	    /* raw, borrowed; NULL when there is none */
	size_t query_len;
};

/* Check the raw target and split it: C_OK or C_REQ_BAD_TARGET (design: rule 1
 * of the listener).  Query values may encode anything but NUL. */
enum code target_split(const char *raw, size_t len, struct uri *);
/* Decode the query of a target that target_split took into arguments of type
 * A_QUERY: C_OK, C_ARGS_INVALID (a name twice), C_ARGS_UNKNOWN (a name that
 * no operation can have), C_ARGS_TOO_LARGE, C_SRV_INTERNAL (no memory).  On
 * failure what was added so far stays. */
enum code target_args(const struct uri *, struct args *);

#endif
