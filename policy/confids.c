/*
 * SPDX-License-Identifier: ISC
 *
 * Tables from hashes of ids, uids and digests to the principals that have
 * them.  A hash only says where to look: what is equal is what compares equal,
 * and secrets are compared as digests, whole.  What is compared is counted in
 * the configuration, for tests.
 */
#include "policy/confids.h"

#include <string.h>

#include "common/hash.h"

static uint32_t
id_key(const char *id)
{
	return fnv32(id, strlen(id));
}

int
confids_token(struct confids *ids, const struct conf *c)
{
	uint32_t at = (uint32_t)c->ntokens - 1;
	const struct conf_token *t = &c->tokens[at];

	if (keymap_add(&ids->token_ids, id_key(t->id), at) == -1)
		return -1;
	return keymap_add(
	    &ids->secrets, fnv32(t->digest, sizeof(t->digest)), at);
}

int
confids_peer(struct confids *ids, const struct conf *c)
{
	uint32_t at = (uint32_t)c->npeers - 1;
	const struct conf_peer *p = &c->peers[at];

	if (keymap_add(&ids->peer_ids, id_key(p->id), at) == -1)
		return -1;
	return keymap_add(&ids->uids, fnv32(&p->uid, sizeof(p->uid)), at);
}

int
confids_has(const struct confids *ids, struct conf *c, const char *id)
{
	const struct keymap *m = &ids->token_ids;
	uint32_t key = id_key(id), at;

	for (at = keymap_first(m, key, &c->id_steps); at != KEYMAP_END;
	     at = keymap_next(m, at, &c->id_steps))
		if (strcmp(c->tokens[m->v[at].value].id, id) == 0)
			return 1;
	m = &ids->peer_ids;
	for (at = keymap_first(m, key, &c->id_steps); at != KEYMAP_END;
	     at = keymap_next(m, at, &c->id_steps))
		if (strcmp(c->peers[m->v[at].value].id, id) == 0)
			return 1;
	return 0;
}

const struct conf_token *
confids_secret(
    const struct confids *ids, struct conf *c, const uint8_t digest[32])
{
	const struct keymap *m = &ids->secrets;
	const struct conf_token *t;
	uint32_t key = fnv32(digest, sizeof(t->digest)), at;

	for (at = keymap_first(m, key, &c->id_steps); at != KEYMAP_END;
	     at = keymap_next(m, at, &c->id_steps)) {
		t = &c->tokens[m->v[at].value];
		if (ct_equal(t->digest, digest, sizeof(t->digest)))
			return t;
	}
	return NULL;
}

const struct conf_peer *
confids_uid(const struct confids *ids, struct conf *c, uint32_t uid)
{
	const struct keymap *m = &ids->uids;
	uint32_t at;

	for (at = keymap_first(m, fnv32(&uid, sizeof(uid)), &c->id_steps);
	     at != KEYMAP_END; at = keymap_next(m, at, &c->id_steps))
		if (c->peers[m->v[at].value].uid == uid)
			return &c->peers[m->v[at].value];
	return NULL;
}

void
confids_clear(struct confids *ids)
{
	keymap_clear(&ids->token_ids);
	keymap_clear(&ids->secrets);
	keymap_clear(&ids->peer_ids);
	keymap_clear(&ids->uids);
}
