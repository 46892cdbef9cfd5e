/*
 * SPDX-License-Identifier: ISC
 *
 * Credentials in a request head, and the door for strangers: 32 bits of an
 * HMAC a token tell whether asking the monitor is worth it.  Who somebody is
 * is never known here.
 */
#ifndef LISTENER_AUTH_H
#define LISTENER_AUTH_H

#include "common/abx.h"
#include "common/codes.h"
#include "common/payload.h"
#include "listener/http_parse.h"

/* Take the credential out of the head into token (ABX_TOKEN_MAX + 1 bytes,
 * "" when none was presented; the caller wipes it).  C_OK, C_AUTH_CONFLICT or
 * C_AUTH_INVALID (design: authentication). */
enum code auth_extract(
    const struct http_head *, const uint8_t *buf, char *token);
/* Whether a call may be asked of the monitor: C_OK, C_AUTH_REQUIRED or
 * C_AUTH_INVALID.  known_peer: the monitor knows who is at the other end of
 * the socket.  health: it is GET /health. */
enum code auth_admit(
    const struct lconf *, const char *token, int known_peer, int health);
/* Wipe the credential fields in the buffer. */
void auth_wipe(const struct http_head *, uint8_t *buf);

#endif
