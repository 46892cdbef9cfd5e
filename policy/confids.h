/*
 * SPDX-License-Identifier: ISC
 *
 * Which ids, uids and secrets of principals are taken already, however many
 * there are.  Private to the configuration side of policy/.
 */
#ifndef ABX_POLICY_CONFIDS_H
#define ABX_POLICY_CONFIDS_H

#include "policy/keymap.h"
#include "policy/policy.h"

/* All zero at first. */
struct confids {
	struct keymap token_ids, secrets, peer_ids, uids;
};

/* The last token or peer of c takes its names.  0, or -1 out of memory. */
int confids_token(struct confids *, const struct conf *c);
int confids_peer(struct confids *, const struct conf *c);
/* 1 when a principal of c has that id. */
int confids_has(const struct confids *, struct conf *c, const char *id);
/* The token of c with that secret, the peer with that uid, or NULL. */
const struct conf_token *confids_secret(
    const struct confids *, struct conf *c, const uint8_t digest[32]);
const struct conf_peer *confids_uid(
    const struct confids *, struct conf *c, uint32_t uid);
void confids_clear(struct confids *);

#endif
