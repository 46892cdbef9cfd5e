/*
 * SPDX-License-Identifier: ISC
 *
 * Answers: heads with bodies, errors, streams.  All of them leave the
 * connection in CONN_SEND, or in the state of the stream.
 */
#ifndef LISTENER_SEND_H
#define LISTENER_SEND_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"
#include "listener/http_reply.h"

struct conn;

#define SEND_SMALL (64 * 1024) /* bodies that leave with their head */

/* Room for a head and a small body behind it; one for all, valid until the
 * next answer. */
uint8_t *send_scratch(void);
/* Fill in what every answer has (request id, date, connection) and write the
 * head at p (REPLY_HEAD_MAX bytes).  Its length. */
size_t send_head(struct conn *, struct reply *, uint8_t *p);
/* A whole answer with a body of len bytes in memory, and then CONN_SEND. */
void send_body(struct conn *, struct reply *, const void *body, size_t len);
/* JSON with that status. */
void send_json(struct conn *, unsigned status, const char *body, size_t len);
/* The listener's own refusal of an admitted or a strange call, counted and
 * answered with the body of codes.def.  retry_after in seconds or 0. */
void send_refusal(struct conn *, enum code, uint32_t retry_after);
/* A failure behind the monitor's yes: answered the same, not counted. */
void send_failure(struct conn *, enum code);
/* Begin, go on with and end an answer whose length is not known. */
void send_stream(struct conn *, unsigned status, const char *type);
void send_piece(struct conn *, const void *, size_t n);
void send_end(struct conn *);

#endif
