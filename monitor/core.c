/*
 * SPDX-License-Identifier: ISC
 *
 * The core.* operations, which need no worker but for the facts of an inner
 * call that is only asked about.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/log.h"
#include "monitor/mon.h"

/* A value that could not be allocated is left out of what was to hold it, and
 * nobody says so there: it is seen here. */
static int json_short;

static void *
json_alloc(size_t n)
{
	void *p = malloc(n);

	if (p == NULL)
		json_short = 1;
	return p;
}

void
core_init(void)
{
	json_object_seed(0);
	json_set_alloc_funcs(json_alloc, free);
}

char *
core_json_text(json_t *j)
{
	char *s = j == NULL ? NULL : json_dumps(j, JSON_COMPACT);

	json_decref(j);
	if (json_short) {
		free(s);
		s = NULL;
	}
	json_short = 0;
	return s;
}

void
core_health(struct req *r)
{
	answer_json(r, 200,
	    core_json_text(json_pack(
		"{s:s, s:s}", "status", "ok", "version", ABX_VERSION)));
}

/* ---- capabilities ---- */

static json_t *
effects_json(unsigned effects)
{
	json_t *a = json_array();
	unsigned bit;

	for (bit = 1; op_effect_name(bit) != NULL; bit <<= 1)
		if ((effects & bit) != 0)
			json_array_append_new(
			    a, json_string(op_effect_name(bit)));
	return a;
}

static const char *
schema_type(enum op_ptype t)
{
	switch (t) {
	case T_INT:
	case T_LIMIT:
		return "integer";
	case T_BOOL:
		return "boolean";
	case T_PATHLIST:
	case T_STRLIST:
		return "array";
	case T_STRMAP:
	case T_OBJ:
		return "object";
	case T_JSON:
		return "any";
	default:
		return "string";
	}
}

static json_t *
params_json(const struct op *op)
{
	const struct op_param *p;
	json_t *o = json_object();

	for (p = op->params; p->name != NULL; p++)
		json_object_set_new(o, p->name,
		    json_pack("{s:s, s:b}", "type", schema_type(p->type),
			"required", (p->flags & PF_REQ) != 0));
	return o;
}

static void
set_limit(json_t *o, const char *name, uint64_t v)
{
	if (v != UINT64_MAX && v <= INT64_MAX)
		json_object_set_new(o, name, json_integer((json_int_t)v));
}

static json_t *
limits_json(const struct req *r, uint16_t op)
{
	json_t *o = json_object();
	struct op_limits l;

	if (policy_op_limits(r->snap->policy, op, &r->who, &l) == -1)
		return o;
	if ((ops[op].limits & L_BYTES) != 0)
		set_limit(o, "max_bytes", l.max_bytes);
	if ((ops[op].limits & L_ENTRIES) != 0)
		set_limit(o, "max_entries", l.max_entries);
	if ((ops[op].limits & L_TIMEOUT) != 0)
		set_limit(o, "timeout_ms", l.timeout_ms);
	if ((ops[op].limits & L_OUTPUT) != 0)
		set_limit(o, "max_output_bytes", l.max_output);
	if ((ops[op].limits & L_MEMORY) != 0)
		set_limit(o, "memory", l.memory);
	return o;
}

static json_t *
bindings_json(uint16_t op)
{
	json_t *a = json_array();
	char text[128];
	size_t i;

	snprintf(text, sizeof(text), "POST /rpc/%s", ops[op].id);
	json_array_append_new(a, json_string(text));
	for (i = 0; i < op_nroutes; i++)
		if (op_routes[i].op == op) {
			snprintf(text, sizeof(text), "%s %s",
			    op_routes[i].method, op_routes[i].path);
			json_array_append_new(a, json_string(text));
		}
	return a;
}

void
core_capabilities(struct req *r)
{
	json_t *list = json_array(), *roles = json_array();
	uint16_t op;
	size_t i;

	for (i = 0; i < r->who.nroles; i++)
		json_array_append_new(roles, json_string(r->who.roles[i]));
	for (op = 0; op < OP_COUNT; op++)
		if (policy_mounted(r->snap->policy, op, &r->who))
			json_array_append_new(
			    list, json_pack("{s:s, s:o, s:o, s:o, s:o}", "id",
				      ops[op].id, "effects",
				      effects_json(ops[op].effects), "args",
				      params_json(&ops[op]), "limits",
				      limits_json(r, op), "bindings",
				      bindings_json(op)));
	answer_json(r, 200,
	    core_json_text(json_pack("{s:s, s:s, s:{s:s, s:o}, s:o}", "version",
		ABX_VERSION, "revision", r->snap->revision, "principal", "id",
		r->who.id, "roles", roles, "ops", list)));
}

/* ---- check ---- */

/* An object of strings as arguments, NULL when out of memory or too many. */
static struct args *
args_of_map(const struct arg *a)
{
	struct args *as = calloc(1, sizeof(*as));
	struct arg *b;
	size_t i;

	for (i = 0; as != NULL && i < a->n; i++)
		if ((b = args_add(as, a->list[i], A_STR)) == NULL ||
		    arg_set_str(b, a->vals[i], strlen(a->vals[i])) == -1) {
			args_clear(as);
			free(as);
			return NULL;
		}
	return as;
}

void
core_check(struct req *r)
{
	static const struct args none;
	const struct arg *a = args_find(&r->ask.args, "args");
	const char *op = ask_text(r, "op");

	/* it comes back in the answer */
	if (strlen(op) > ABX_ID_MAX) {
		answer_error(r, C_ARGS_INVALID, "op", NULL, 0);
		return;
	}
	/* the outer call was admitted; the inner one takes its place */
	decision_clear(&r->dec);
	plan_clear(&r->plan);
	memset(&r->dec, 0, sizeof(r->dec));
	memset(&r->plan, 0, sizeof(r->plan));
	r->dec.rule = r->dec.cwd_item = -1;
	r->decided = r->planned = 0;
	r->checking = 1;
	r->call.op = op_find(op);
	r->call.args = &none;
	if (a != NULL && a->type == A_ARGS)
		r->call.args = a->sub;
	else if (a != NULL && a->type == A_MAP) {
		/* all its values are strings */
		if ((r->check_args = args_of_map(a)) == NULL) {
			answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
			return;
		}
		r->call.args = r->check_args;
	}
	step_plan(r);
}

/* Of the command policy, by name. */
static json_t *
rules_json(const struct strlist *l)
{
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < l->n; i++)
		json_array_append_new(a, json_string(l->v[i]));
	return a;
}

void
core_check_answer(struct req *r)
{
	const struct decision *d = &r->dec;
	const char *id = ask_text(r, "op");
	json_t *o;

	o = json_pack("{s:b, s:s, s:s}", "allowed", d->code == C_OK, "code",
	    codes[d->code].code, "op", id);
	if (o != NULL && d->reason != NULL)
		json_object_set_new(o, "reason", json_string(d->reason));
	if (o != NULL && d->rules.n > 0)
		json_object_set_new(o, "rules", rules_json(&d->rules));
	if (o != NULL && d->rule >= 0 && d->mounted &&
	    principal_has_role(&r->who, "admin"))
		json_object_set_new(o, "rule",
		    json_string(
			policy_rule_origin(r->snap->policy, (size_t)d->rule)));
	answer_json(r, 200, core_json_text(o));
}
