/*
 * SPDX-License-Identifier: ISC
 *
 * A URL in the parts that scopes compare.  Private to policy/ and whoever
 * connects.
 */
#ifndef ABX_POLICY_URL_H
#define ABX_POLICY_URL_H

#include "policy/model.h"

struct url {
	char scheme[8]; /* "https" or "http" */
	char host[256]; /* lower case, without a trailing dot */
	int literal;	/* host is an IPv4 address, this one */
	uint32_t addr;
	uint16_t port, default_port;
	char path[2049]; /* as written, "/" at least, without the query */
};

/* 0, or -1 for what is policy.url_invalid. */
int url_parse(const char *, struct url *);
/* 1 when the scope lets the URL through. */
int url_admitted(const struct url_scope *, const struct url *);
/* What is wrong with a pattern of a deny, or NULL. */
const char *url_pattern_why(const char *);
/* 1 when such a pattern means the URL. */
int url_denied(const char *pattern, const struct url *);

#endif
