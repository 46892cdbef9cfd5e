/*
 * SPDX-License-Identifier: ISC
 *
 * Everything of a decision that needs no file system: the arguments of a call,
 * and who may answer it at all.  Which paths must be looked at for the rest is
 * in slots.c.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "policy/planner.h"

#define VALUES_MAX 64 /* paths in the arguments of one call, a bit each */

/* ---- path arguments ---- */

/* Take one path over as bytes.  C_OK, or the code that refuses it. */
static enum code
value_text(struct pvalue *v, const char *s, size_t len, int base64, int *nomem)
{
	int n = (int)len;

	if (len > 2 * ABX_PATH_MAX)
		return C_POL_PATH_INVALID;
	v->text = malloc(len + 1);
	if (v->text == NULL) {
		*nomem = 1;
		return C_ARGS_INVALID;
	}
	if (base64) {
		n = base64_decode(s, len, (uint8_t *)v->text, len + 1);
		if (n < 0)
			return C_ARGS_INVALID;
	} else
		memcpy(v->text, s, len);
	v->text[n] = '\0';
	if (strlen(v->text) != (size_t)n || !path_acceptable(v->text))
		return C_POL_PATH_INVALID;
	return C_OK;
}

static enum code
value_add(struct planner *pl, const struct op_param *param, const char *s,
    size_t len, int base64, int *nomem)
{
	struct pvalue *v;
	enum code code;

	if (pl->priv->nvalues >= VALUES_MAX)
		return C_ARGS_TOO_LARGE;
	v = grow((void **)&pl->priv->values, &pl->priv->nvalues, sizeof(*v));
	if (v == NULL) {
		*nomem = 1;
		return C_ARGS_TOO_LARGE;
	}
	v->param = param;
	code = value_text(v, s, len, base64, nomem);
	if (code == C_OK && v->text[0] == '/') {
		v->norm = path_normal(v->text, &code);
		*nomem |= v->norm == NULL && code == C_OK;
	}
	return code;
}

/* The first code that refuses a path goes into *code; 0, or -1 out of
 * memory. */
static int
values_collect(struct planner *pl, enum code *code, const char **param)
{
	const struct op_param *q;
	const struct arg *a;
	enum code one;
	int base64, nomem = 0;
	size_t i;

	*code = C_OK;
	for (q = pl->op->params; q->name != NULL; q++) {
		if (q->type != T_PATH && q->type != T_PATHLIST)
			continue;
		a = schema_path_arg(pl->call->args, q->name, &base64);
		if (a == NULL)
			continue;
		for (i = 0; i < (q->type == T_PATHLIST ? a->n : 1); i++) {
			one = q->type == T_PATHLIST
				  ? value_add(pl, q, a->list[i],
					strlen(a->list[i]), 0, &nomem)
				  : value_add(
					pl, q, a->s, a->len, base64, &nomem);
			if (nomem)
				return -1;
			/* too many is the answer, whatever else is wrong */
			if (one == C_ARGS_TOO_LARGE ||
			    (one != C_OK && *code == C_OK)) {
				*code = one;
				*param = q->name;
			}
			if (one == C_ARGS_TOO_LARGE)
				return 0;
		}
	}
	return 0;
}

/* ---- the steps ---- */

/* 1 when a statement speaks to the caller, or health needs none. */
static int
mount(const struct planner *pl)
{
	const struct principal *who = pl->call->who;
	uint16_t op = pl->call->op;

	if (op == OP_core_health)
		return op_mounted(pl->p, op, who, pl->priv->who_bits);
	return op < OP_COUNT && pl->p->ops[op].removed == NULL &&
	       cands_any(pl->p, op, who, pl->priv->who_bits);
}

/* The URL of a call, C_OK also when there is none.  0 or -1. */
static int
url_take(struct planner *pl, enum code *late, const char **late_param)
{
	const char *text = policy_arg_str(pl->call->args, "url");

	if ((pl->op->needs & N_URLS) == 0 || text == NULL)
		return 0;
	if ((pl->priv->url = malloc(sizeof(*pl->priv->url))) == NULL)
		return -1;
	if (url_parse(text, pl->priv->url) == 0)
		return 0;
	free(pl->priv->url);
	pl->priv->url = NULL;
	*late = C_POL_URL_INVALID;
	*late_param = "url";
	return 0;
}

/* Arguments: 0 or -1; the plan's code when they are refused.  A path that is
 * over the caps, or a URL that is none, waits in *late until the rules without
 * a scope have spoken. */
static int
args_take(struct planner *pl, enum code *late, const char **late_param)
{
	const char **param = &pl->priv->param;
	enum code *code = &pl->plan->code;

	*code = schema_check(pl->call->op, pl->call->args, param);
	if (*code != C_OK)
		return 0;
	if ((*code = session_take(pl->p, pl->call, pl->priv)) != C_OK) {
		*param = "session";
		return 0;
	}
	if (values_collect(pl, late, late_param) == -1)
		return -1;
	if (*late != C_OK && *late != C_POL_PATH_INVALID) {
		*code = *late;
		*param = *late_param;
		return 0;
	}
	if (url_take(pl, late, late_param) == -1)
		return -1;
	if ((pl->op->needs & N_COMMANDS) == 0)
		return 0;
	if (caps_check(pl->call->args, code) == -1)
		return -1;
	if (*code != C_OK) {
		*param = "capabilities";
		return 0;
	}
	return cmdline_build(&pl->priv->cmd, pl->call->args, code, param);
}

static int
plan_steps(struct planner *pl)
{
	struct plan_priv *priv = pl->priv;
	enum code *code = &pl->plan->code, late = C_OK;
	const char *late_param = NULL;

	priv->mounted = mount(pl);
	if (!priv->mounted) {
		*code = C_OP_NOT_ENABLED;
		return 0;
	}
	pl->op = &ops[pl->call->op];
	if (args_take(pl, &late, &late_param) == -1)
		return -1;
	if (*code != C_OK)
		return 0;
	if (deny_collect(pl->p, pl->call, priv) == -1)
		return -1;
	*code = deny_static(pl->p, pl->call, priv);
	if (*code == C_OK && late != C_OK) {
		*code = late;
		priv->param = late_param;
	}
	if (*code != C_OK)
		return 0;
	return cands_collect(pl->p, pl->call, priv) == -1 ? -1 : slots_fill(pl);
}

/* An operation that this version does not have is one that is not enabled, but
 * for the rules that deny it: those hold for what comes. */
static void
plan_later(struct planner *pl)
{
	struct plan_priv *priv = pl->priv;

	switch (pl->plan->code) {
	case C_POL_DENIED_BY_RULE:
	case C_POL_PATH_DENIED:
	case C_POL_COMMAND_DENIED:
	case C_POL_URL_DENIED:
		return;
	default:
		break;
	}
	pl->plan->code = C_OP_NOT_ENABLED;
	priv->mounted = 0;
	priv->rule = -1;
	priv->reason = priv->param = NULL;
}

int
policy_plan(const struct policy *p, const struct call *call, struct plan *plan)
{
	struct planner pl = {.p = p, .call = call, .plan = plan};
	struct plan_priv *priv;

	memset(plan, 0, sizeof(*plan));
	priv = plan->priv = pl.priv = calloc(1, sizeof(*priv));
	if (priv == NULL)
		return -1;
	priv->rule = -1;
	priv->who_bits = principal_bits(call->who);
	if (safe_component(call->who->id))
		priv->subs.id = call->who->id;
	if (plan_steps(&pl) == -1) {
		plan_clear(plan);
		return -1;
	}
	if (call->op < OP_COUNT && (ops[call->op].flags & OF_LATER) != 0)
		plan_later(&pl);
	return 0;
}

static void
priv_free(struct plan_priv *priv)
{
	size_t i;

	for (i = 0; i < priv->nvalues; i++) {
		free(priv->values[i].text);
		free(priv->values[i].norm);
	}
	free(priv->values);
	for (i = 0; i < priv->ncands; i++)
		free(priv->cands[i].words);
	free(priv->cands);
	free(priv->slots);
	free(priv->uses);
	free(priv->denies);
	cmdline_clear(&priv->cmd);
	free(priv->url);
	free(priv);
}

const char *
plan_spelling(const struct plan *plan, const char *param)
{
	const struct plan_priv *priv = plan->priv;
	size_t i;

	for (i = 0; priv != NULL && i < priv->nvalues; i++)
		if (priv->values[i].text != NULL &&
		    strcmp(priv->values[i].param->name, param) == 0)
			return priv->values[i].text;
	return "";
}

void
plan_clear(struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->nitems; i++) {
		free(plan->items[i].path);
		free(plan->items[i].refs);
	}
	free(plan->items);
	if (plan->priv != NULL)
		priv_free(plan->priv);
	memset(plan, 0, sizeof(*plan));
}
