/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl as a client of the service: where it listens, the caller's token,
 * one call and its answer.  Loopback and unix sockets only, since the token
 * and the content go in the clear.
 */
#ifndef ABX_CTL_CLIENT_H
#define ABX_CTL_CLIENT_H

#include <sys/types.h>

#include <jansson.h>

#include "monitor/ctl/ctl.h"

/* The options of every verb that calls the service. */
enum { CLIENT_URL = 1000, CLIENT_SOCKET, CLIENT_TOKEN, CLIENT_OWN = 1100 };
#define CLIENT_LONGOPTS                                             \
	{"url", required_argument, NULL, CLIENT_URL},               \
	    {"socket", required_argument, NULL, CLIENT_SOCKET},     \
	{                                                           \
		"token-file", required_argument, NULL, CLIENT_TOKEN \
	}
struct client_opts {
	const char *url, *socket, *token_file; /* borrowed */
};
/* Take one of these or of ctl_option: 0, or -1 when it is none. */
int client_option(struct ctl *, struct client_opts *, int ch);

/* Where to, and as whom. */
struct client;
/* NULL after the reason was printed; *status is the exit status then. */
struct client *client_new(
    const struct ctl *, const struct client_opts *, int *status);
void client_free(struct client *);

/* One call. */
struct talk;
enum { TALK_NO_BODY = -1, TALK_CHUNKED = -2 };
struct talk_ask {
	const char *method, *target;
	const char *type;   /* of the body, NULL: none */
	const char *fields; /* more header lines with their ends, or NULL */
	int64_t length;	    /* of the body that follows, or one of the above */
	int expect;	    /* wait for leave to send it */
};
/* Connect and send the head.  With expect, leave to send the body has come or
 * the answer has.  NULL after the reason was printed. */
struct talk *talk_new(struct client *, const struct talk_ask *);
void talk_free(struct talk *);
/* Whether the answer came before the body was sent. */
int talk_refused(const struct talk *);
/* Send a piece of the body; n 0 ends a chunked one.  0, or -1 when the
 * service reads no more: what it answered is to be looked at. */
int talk_send(struct talk *, const void *, size_t n);
/* Wait for the head of the answer: its status, or -1 after the reason was
 * printed. */
int talk_answer(struct talk *);
const struct resp *talk_head(const struct talk *);
/* Content of the answer: bytes, 0 at its end, -1 after the reason was
 * printed; TALK_WAIT when there is none now and talk_nowait was said. */
enum { TALK_WAIT = -2 };
void talk_nowait(struct talk *);
ssize_t talk_read(struct talk *, void *, size_t n);
/* For poll(2), and whether a read would not wait. */
int talk_fd(const struct talk *);
int talk_ready(const struct talk *);
/* The whole answer as JSON, NULL after the reason was printed. */
json_t *talk_json(struct talk *);
/* Print the error that the service answered; returns the exit status. */
int talk_error(struct talk *);

/* A call with a JSON body (dropped; NULL: none) that answers JSON.  *answer is
 * the caller's.  The exit status; the reason was printed unless CTL_YES. */
int client_json(struct client *, const char *method, const char *target,
    json_t *body, json_t **answer);

/* PREFIX and the bytes, percent-encoded, as a new string, or NULL. */
char *client_target(const char *prefix, const void *, size_t n);
/* {NAME: text}, or {NAME_base64: ...} when it is not UTF-8: 0 or -1. */
int client_put_path(json_t *, const char *name, const char *path);
/* The bytes of a member that has a _base64 twin when it is not UTF-8, as a
 * new string with its length; NULL when it is missing or holds a NUL. */
char *client_bytes(const json_t *, const char *name, size_t *len);

#endif
