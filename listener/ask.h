/*
 * SPDX-License-Identifier: ISC
 *
 * Questions to the monitor, and how they end.
 */
#ifndef LISTENER_ASK_H
#define LISTENER_ASK_H

#include <stddef.h>
#include <stdint.h>

struct conn;

/* Ask (LM_ASK) and wait in CONN_WAIT, or refuse what cannot be asked.  text:
 * the JSON body, changed in place; NULL when there is none to parse. */
void ask_send(struct conn *, char *text, size_t len);
/* The one end of a live question; outcome is of enum fin_outcome. */
void ask_fin(struct conn *, uint8_t outcome);
/* The client is gone while the monitor works; ask_fin comes next. */
void ask_cancel(struct conn *);
/* The body is through (whole) or broken off after that many bytes. */
void ask_put_end(struct conn *, uint64_t bytes, int whole);

/* What a run with an idempotency key was answered, for its repeats; one over
 * 64 KiB is not kept. */
void ask_result(struct conn *, const void *json, size_t len);

/* The connection of a live question, or NULL. */
struct conn *ask_find(uint64_t id);
/* 1 when that question was cancelled, so late answers are to be dropped. */
int ask_cancelled(uint64_t id);
/* Most live questions that a call of this connection may be one of: one less
 * than max_connections but for health and capabilities. */
uint32_t ask_max(const struct conn *);
/* 1 when one more may be asked. */
int ask_room(const struct conn *);

#endif
