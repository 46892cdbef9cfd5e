/*
 * SPDX-License-Identifier: ISC
 *
 * What may be open to callers without a credential (server.json(5),
 * "Authentication"): neither a program nor administration, and not to the
 * network.
 */
#include <string.h>

#include "policy/confkey.h"
#include "policy/lint.h"

/* 1 when the rule speaks to a caller without a credential. */
static int
rule_open(const struct conf *c, const struct rule *r)
{
	size_t i;

	if (r->principals.n == 0)
		return 1;
	for (i = 0; i < r->principals.n; i++)
		if (strcmp(r->principals.v[i], "id:anonymous") == 0 ||
		    (c->open_mode &&
			strcmp(r->principals.v[i], "role:admin") == 0))
			return 1;
	return 0;
}

/* 1 when a deny without a scope takes the op from everybody. */
static int
op_denied(const struct conf *c, uint16_t op)
{
	const struct rule *r;
	size_t i;

	for (i = 0; i < c->rules->n; i++) {
		r = &c->rules->v[i];
		if (r->deny && r->principals.n == 0 && r->deny_paths.n == 0 &&
		    r->deny_commands.n == 0 && r->deny_urls.n == 0 &&
		    rule_selects(r, op))
			return 1;
	}
	return 0;
}

/* The first op with exec or admin that a rule opens, or NULL. */
static const char *
rule_open_op(const struct conf *c, const struct rule *r)
{
	uint16_t op;

	if (r->deny || !rule_open(c, r))
		return NULL;
	for (op = 0; op < OP_COUNT; op++)
		if ((ops[op].effects & (E_EXEC | E_ADMIN)) != 0 &&
		    rule_selects(r, op) && !op_denied(c, op))
			return ops[op].id;
	return NULL;
}

static void
open_exec(struct cload *cl, enum find_sev sev)
{
	const struct rule *r;
	const char *id;
	size_t i;

	for (i = 0; i < cl->c->rules->n; i++) {
		r = &cl->c->rules->v[i];
		if ((id = rule_open_op(cl->c, r)) != NULL)
			findings_add(cl->f, sev, "config.open_exec", r->at.file,
			    r->at.line, r->at.col,
			    "%s is open to callers without a credential", id);
	}
}

/* An origin, or the first file when the key stands nowhere. */
static const struct origin *
conf_at(struct cload *cl, const struct origin *at)
{
	return at->file != NULL ? at : &cl->top;
}

static void
open_listen(struct cload *cl, enum find_sev sev)
{
	const struct origin *at = conf_at(cl, &cl->c->rules->listen_at);
	const struct conf_listen *l;
	int shared = 0, far = cl->unix_open;
	size_t i;

	for (i = 0; i < cl->c->nlisten; i++) {
		l = &cl->c->listen[i];
		if (l->is_unix)
			shared |= (l->mode & 07) != 0;
		else if (!listen_loopback(l))
			far = 1;
		else
			shared |= cl->w != NULL && cl->w->root_start;
	}
	if (far)
		findings_add(cl->f, sev, "config.open_non_loopback", at->file,
		    at->line, at->col,
		    "without a credential the service listens on loopback, or "
		    "on a unix socket with a stated mode and group");
	if (shared)
		findings_add(cl->f, FIND_LINT, "config.open_loopback_shared",
		    at->file, at->line, at->col,
		    "without a credential every account of this host could "
		    "call; configure \"auth\" or " TOKEN_VAR);
}

/* What may be open: neither a program nor administration, and not to the
 * network.  allow_open makes these lints of the errors that they are. */
void
conf_open_checks(struct cload *cl)
{
	int require = cl->w != NULL && cl->w->require_auth;
	enum find_sev sev =
	    cl->c->allow_open && !require ? FIND_LINT : FIND_ERROR;

	if (cl->canon)
		return;
	if (cl->c->open_mode || cl->c->anonymous)
		open_exec(cl, sev);
	if (!cl->c->open_mode)
		return;
	open_listen(cl, sev);
	if (require)
		findings_add(cl->f, FIND_ERROR, "config.auth_secret_missing",
		    cl->top.file, cl->top.line, cl->top.col,
		    "no credential is configured and --require-auth is given");
}
