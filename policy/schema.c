/*
 * SPDX-License-Identifier: ISC
 *
 * The arguments of a call against the schema of its operation: known names,
 * required ones, types.  Values are not judged beyond their type.  Pure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/engine.h"

#define BASE64_SUFFIX "_base64"

/* The parameter that NAME_base64 stands for, or NULL. */
static const struct op_param *
base64_param(const struct op *op, const char *name)
{
	size_t n = strlen(name), m = strlen(BASE64_SUFFIX);
	const struct op_param *param;

	if (n <= m || strcmp(name + n - m, BASE64_SUFFIX) != 0)
		return NULL;
	for (param = op->params; param->name != NULL; param++)
		if (param->type == T_PATH && strlen(param->name) == n - m &&
		    memcmp(param->name, name, n - m) == 0)
			return param;
	return NULL;
}

const struct arg *
schema_path_arg(const struct args *args, const char *name, int *base64)
{
	char other[ABX_ID_MAX + sizeof(BASE64_SUFFIX)];
	const struct arg *a = args_find(args, name);

	*base64 = 0;
	if (a != NULL)
		return a;
	snprintf(other, sizeof(other), "%s" BASE64_SUFFIX, name);
	*base64 = 1;
	return args_find(args, other);
}

static int
query_int(const struct arg *a, int64_t *out)
{
	uint64_t v;

	if (uint_parse(a->s, a->len, INT64_MAX, &v) == -1)
		return -1;
	*out = (int64_t)v;
	return 0;
}

static int
query_bool(const struct arg *a, int *out)
{
	if (strcmp(a->s, "true") == 0)
		*out = 1;
	else if (strcmp(a->s, "false") == 0)
		*out = 0;
	else
		return -1;
	return 0;
}

int
policy_arg_int(const struct args *args, const char *name, int64_t *out)
{
	const struct arg *a = args_find(args, name);

	if (a == NULL)
		return 0;
	if (a->type == A_INT) {
		*out = a->i;
		return 1;
	}
	return a->type == A_QUERY && query_int(a, out) == 0;
}

int
policy_arg_bool(const struct args *args, const char *name)
{
	const struct arg *a = args_find(args, name);
	int on = 0;

	if (a == NULL)
		return 0;
	if (a->type == A_BOOL)
		return a->i != 0;
	return a->type == A_QUERY && query_bool(a, &on) == 0 && on;
}

const char *
policy_arg_str(const struct args *args, const char *name)
{
	const struct arg *a = args_find(args, name);

	return a != NULL && (a->type == A_STR || a->type == A_QUERY) ? a->s
								     : NULL;
}

static int
is_text(const struct arg *a)
{
	return a->type == A_STR || a->type == A_QUERY;
}

static int
int_ok(const struct arg *a, int64_t least)
{
	int64_t v = a->i;

	if (a->type == A_QUERY) {
		if (query_int(a, &v) == -1)
			return 0;
	} else if (a->type != A_INT)
		return 0;
	return v >= least;
}

static int
type_ok(const struct arg *a, enum op_ptype type)
{
	int on;

	switch (type) {
	case T_STR:
	case T_PATH:
		return is_text(a);
	case T_INT:
		return int_ok(a, 0);
	case T_LIMIT:
		return int_ok(a, 1);
	case T_BOOL:
		return a->type == A_BOOL ||
		       (a->type == A_QUERY && query_bool(a, &on) == 0);
	case T_PATHLIST:
	case T_STRLIST:
		return a->type == A_LIST;
	case T_STRMAP:
		return a->type == A_MAP;
	case T_OBJ:
		return a->type == A_ARGS || a->type == A_MAP;
	case T_JSON:
		return a->type != A_NULL;
	}
	return 0;
}

static enum code
check_given(const struct op *op, const struct arg *a)
{
	const struct op_param *param = op_param_find(op, a->name);

	if (param == NULL)
		param = base64_param(op, a->name);
	return param == NULL		  ? C_ARGS_UNKNOWN
	       : !type_ok(a, param->type) ? C_ARGS_TYPE
					  : C_OK;
}

static enum code
check_params(const struct op *op, const struct args *args, const char **param)
{
	const struct op_param *q;
	const struct arg *a;
	int base64;

	for (q = op->params; q->name != NULL; q++) {
		*param = q->name;
		a = q->type == T_PATH ? schema_path_arg(args, q->name, &base64)
				      : args_find(args, q->name);
		if (a == NULL && (q->flags & PF_REQ) != 0)
			return C_ARGS_MISSING;
	}
	return C_OK;
}

/* A path given in both spellings. */
static enum code
check_twice(const struct op *op, const struct args *args, const char **param)
{
	const struct op_param *q;
	size_t i;

	for (i = 0; i < args->n; i++) {
		q = base64_param(op, args->v[i].name);
		if (q == NULL || op_param_find(op, args->v[i].name) != NULL)
			continue;
		*param = q->name;
		if (args_find(args, q->name) != NULL)
			return C_ARGS_INVALID;
	}
	return C_OK;
}

enum code
schema_check(uint16_t opn, const struct args *args, const char **param)
{
	const struct op *op = &ops[opn];
	enum code code, type = C_OK;
	const char *at = NULL;
	size_t i;

	for (i = 0; i < args->n; i++) {
		code = check_given(op, &args->v[i]);
		*param = args->v[i].name;
		if (code == C_ARGS_UNKNOWN)
			return code;
		if (code != C_OK && type == C_OK) {
			type = code;
			at = args->v[i].name;
		}
	}
	code = check_params(op, args, param);
	if (code != C_OK)
		return code;
	*param = at;
	if (type != C_OK)
		return type;
	code = check_twice(op, args, param);
	if (code == C_OK)
		*param = NULL;
	return code;
}
