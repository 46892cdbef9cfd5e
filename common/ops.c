/*
 * SPDX-License-Identifier: ISC
 *
 * Tables made from ops.def and look-ups in them.  Pure.
 */
#include "common/ops.h"

#include <string.h>

#define OP(sym, id, e, s, n, f, l, h) \
	static const struct op_param params_##sym[] = {
#define P(n, t, r, f) {n, t, r, f},
#define END                       \
	{                         \
		NULL, T_STR, 0, 0 \
	}                         \
	}                         \
	;
#define ROUTE(sym, m, p, b)
#include "common/ops.def"
#undef OP
#undef P
#undef END
#undef ROUTE

const struct op ops[OP_COUNT] = {
#define OP(sym, id, e, s, n, f, l, h) {id, e, s, n, f, l, h, params_##sym},
#define P(n, t, r, f)
#define END
#define ROUTE(sym, m, p, b)
#include "common/ops.def"
#undef OP
#undef P
#undef END
#undef ROUTE
};

const struct op_route op_routes[] = {
#define OP(sym, id, e, s, n, f, l, h)
#define P(n, t, r, f)
#define END
#define ROUTE(sym, m, p, b) {OP_##sym, m, p, b},
#include "common/ops.def"
#undef OP
#undef P
#undef END
#undef ROUTE
};
const size_t op_nroutes = sizeof(op_routes) / sizeof(op_routes[0]);

uint16_t
op_find(const char *id)
{
	uint16_t i;

	for (i = 0; i < OP_COUNT; i++)
		if (strcmp(ops[i].id, id) == 0)
			return i;
	return OP_NONE;
}

int
op_has_get(uint16_t op)
{
	size_t i;

	for (i = 0; i < op_nroutes; i++)
		if (op_routes[i].op == op &&
		    strcmp(op_routes[i].method, "GET") == 0)
			return 1;
	return 0;
}

const struct op_param *
op_param_find(const struct op *op, const char *name)
{
	const struct op_param *p;

	for (p = op->params; p->name != NULL; p++)
		if (strcmp(p->name, name) == 0)
			return p;
	return NULL;
}

int
op_explicit_only(const struct op *op)
{
	return (op->flags & OF_EXPLICIT) != 0 || (op->effects & E_ADMIN) != 0;
}

const char *
op_effect_name(unsigned bit)
{
	switch (bit) {
	case E_READ:
		return "read";
	case E_WRITE:
		return "write";
	case E_DELETE:
		return "delete";
	case E_EXEC:
		return "exec";
	case E_NET:
		return "net";
	case E_ADMIN:
		return "admin";
	default:
		return NULL;
	}
}
