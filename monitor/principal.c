/*
 * SPDX-License-Identifier: ISC
 *
 * Who is asking: the presented credential verified against the digests of the
 * configuration, in time that does not depend on which one it is.
 */
#include <string.h>

#include "common/hash.h"
#include "monitor/mon.h"

static const char *const admin_roles[] = {"admin"};

static void
set_anonymous(struct req *r, int admin)
{
	r->who.id = "anonymous";
	r->who.authenticated = 0;
	r->who.roles = admin ? admin_roles : NULL;
	r->who.nroles = admin ? 1 : 0;
}

static void
set_who(struct req *r, const char *id, const struct strlist *roles)
{
	size_t i;

	r->who.id = id;
	r->who.authenticated = 1;
	for (i = 0; i < roles->n && i < ABX_MAX_ROLES; i++)
		r->roles[i] = roles->v[i];
	r->who.roles = r->roles;
	r->who.nroles = i;
}

static enum code
by_token(struct req *r)
{
	const struct conf_token *t = NULL;
	uint8_t d[SHA256_LEN];
	size_t i;

	sha256(r->ask.token, strlen(r->ask.token), d);
	explicit_bzero(r->ask.token, sizeof(r->ask.token));
	for (i = 0; i < r->snap->conf->ntokens; i++)
		if (ct_equal(d, r->snap->conf->tokens[i].digest, sizeof(d)))
			t = &r->snap->conf->tokens[i];
	explicit_bzero(d, sizeof(d));
	if (t == NULL)
		return C_AUTH_INVALID;
	set_who(r, t->id, &t->roles);
	return C_OK;
}

/* 1 when the kernel's word on the peer of a unix socket names a principal. */
static int
by_peer(struct req *r)
{
	const struct conf *c = r->snap->conf;
	uid_t uid;
	size_t i;

	if (!r->ask.has_peer || peerid_uid(r->ask.peer, &uid) == -1)
		return 0;
	for (i = 0; i < c->npeers; i++)
		if (c->peers[i].uid == uid) {
			set_who(r, c->peers[i].id, &c->peers[i].roles);
			return 1;
		}
	return 0;
}

enum code
principal_of(struct req *r)
{
	if (r->snap->conf->open_mode) {
		set_anonymous(r, 1);
		return C_OK;
	}
	set_anonymous(r, 0);
	if (r->ask.has_cred)
		return by_token(r);
	if (by_peer(r))
		return C_OK;
	if (r->snap->conf->anonymous ||
	    (r->ask.op == OP_core_health && r->snap->conf->anonymous_health))
		return C_OK;
	return C_AUTH_REQUIRED;
}
