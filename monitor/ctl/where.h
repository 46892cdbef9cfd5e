/*
 * SPDX-License-Identifier: ISC
 *
 * Where a client of the service finds it, and the token it shows.
 */
#ifndef ABX_CTL_WHERE_H
#define ABX_CTL_WHERE_H

#include <sys/socket.h>

#include "monitor/ctl/client.h"

struct where {
	struct sockaddr_storage addr;
	socklen_t len;
	char host[64]; /* for the Host field */
	char *name;    /* for messages, owned */
	char *token;   /* owned, NULL: none */
};
/* From the options, else from the first of FILE's listen; the exit status,
 * the reason was printed unless CTL_YES. */
int where_find(struct where *, const struct ctl *, const struct client_opts *);
void where_clear(struct where *);

#endif
