/*
 * SPDX-License-Identifier: ISC
 *
 * The deny pass: rules that override every grant, and the system's own list.
 * A deny must be at least as strong as the allow it beats, so paths are
 * checked lexically before anything is resolved and again as they really lie.
 * Pure.
 */
#include <stdlib.h>

#include "policy/engine.h"

int
deny_collect(
    const struct policy *p, const struct call *c, struct plan_priv *priv)
{
	const struct opidx *x = &p->ops[c->op];
	const struct stmt **d;
	size_t i;

	/* Health can only be removed by name; it was asked at the mount. */
	if (x->ndeny == 0 || c->op == OP_core_health)
		return 0;
	for (i = stmt_next(x->deny_bits, 0, x->ndeny, priv->who_bits);
	     i < x->ndeny;
	     i = stmt_next(x->deny_bits, i + 1, x->ndeny, priv->who_bits)) {
		if (!stmt_matches(&x->deny[i], c->who, priv->who_bits))
			continue;
		d = grow((void **)&priv->denies, &priv->ndenies, sizeof(*d));
		if (d == NULL)
			return -1;
		*d = &x->deny[i];
		priv->path_denies += x->deny[i].rule->deny_paths.n;
	}
	return 0;
}

static int
rule_denies_path(const struct policy *p, uint16_t op, const struct prule *r,
    const char *path)
{
	const struct opidx *x = &p->ops[op];

	return pglobs_cover(p, &r->deny_paths, x->roots, x->nroots, path);
}

int
deny_path(const struct policy *p, uint16_t op, const struct plan_priv *priv,
    const char *path, long *rule)
{
	size_t i;

	*rule = -1;
	if (system_denies(p, path))
		return 1;
	if (priv->path_denies == 0)
		return 0;
	for (i = 0; i < priv->ndenies; i++)
		if (rule_denies_path(p, op, priv->denies[i]->rule, path)) {
			*rule = (long)priv->denies[i]->rule->index;
			return 1;
		}
	return 0;
}

/* What one rule says before any path is resolved. */
static enum code
deny_rule(const struct policy *p, const struct call *c, struct plan_priv *priv,
    const struct prule *r)
{
	size_t i;

	if (!r->scoped)
		return C_POL_DENIED_BY_RULE;
	for (i = 0; i < priv->nvalues && r->deny_paths.n > 0; i++) {
		priv->param = priv->values[i].param->name;
		if (priv->values[i].norm != NULL &&
		    rule_denies_path(p, c->op, r, priv->values[i].norm))
			return C_POL_PATH_DENIED;
	}
	priv->param = NULL;
	if (cmdline_denied(&priv->cmd, r->deny_commands, r->ndeny_commands,
		&p->ops[c->op].exec_dirs))
		return C_POL_COMMAND_DENIED;
	for (i = 0; priv->url != NULL && i < r->deny_urls.n; i++)
		if (url_denied(r->deny_urls.v[i], priv->url))
			return C_POL_URL_DENIED;
	return C_OK;
}

enum code
deny_static(
    const struct policy *p, const struct call *c, struct plan_priv *priv)
{
	enum code code;
	size_t i;

	for (i = 0; i < priv->ndenies; i++) {
		code = deny_rule(p, c, priv, priv->denies[i]->rule);
		if (code == C_OK)
			continue;
		priv->rule = (long)priv->denies[i]->rule->index;
		priv->reason = priv->denies[i]->rule->reason;
		return code;
	}
	for (i = 0; i < priv->nvalues; i++)
		if (priv->values[i].norm != NULL &&
		    system_denies(p, priv->values[i].norm)) {
			priv->param = priv->values[i].param->name;
			return C_POL_PATH_DENIED;
		}
	return C_OK;
}

enum code
deny_facts(const struct policy *p, const struct call *c,
    const struct plan *plan, const struct facts *facts, long *rule,
    const char **param)
{
	const struct plan_priv *priv = plan->priv;
	size_t i;

	for (i = 0; i < plan->nitems; i++) {
		if (priv->uses[i] == 0 ||
		    !deny_found(p, c->op, priv, &facts[i], rule))
			continue;
		*param =
		    priv->values[__builtin_ctzll(priv->uses[i])].param->name;
		return C_POL_PATH_DENIED;
	}
	return C_OK;
}

int
deny_found(const struct policy *p, uint16_t op, const struct plan_priv *priv,
    const struct facts *f, long *rule)
{
	size_t i;

	/* also where a walk ended, or what it left again, or the answer would
	 * tell what is there */
	for (i = 0; i < f->via.n; i++)
		if (deny_path(p, op, priv, f->via.v[i], rule))
			return 1;
	return f->path != NULL && f->path[0] != '\0' &&
	       deny_path(p, op, priv, f->path, rule);
}

int
deny_texts(const struct policy *p, uint16_t op, const struct plan_priv *priv,
    struct strlist *out)
{
	const struct opidx *x = &p->ops[op];
	size_t i;
	int r;

	for (i = 0; i < priv->ndenies; i++) {
		r = pglobs_texts(p, &priv->denies[i]->rule->deny_paths,
		    x->roots, x->nroots, &priv->subs, out);
		if (r != 0)
			return r;
	}
	return system_texts(p, out);
}
