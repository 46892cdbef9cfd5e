/*
 * SPDX-License-Identifier: ISC
 *
 * Reads the examples of a rule: calls with what must come of them
 * (server.json(5), "EXAMPLES IN RULES").  example.c tries them.
 */
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/confkey.h"

/* ---- arguments ---- */

static enum arg_type
type_of_members(const struct node *n)
{
	const struct node *c;

	for (c = n->child; c != NULL; c = c->next)
		if (c->type != N_STR)
			return n->type == N_LIST ? A_OTHER : A_ARGS;
	return n->type == N_LIST ? A_LIST : A_MAP;
}

/* A number as the listener would take it. */
static enum arg_type
type_of_number(const struct node *n, int64_t *v)
{
	int neg = n->len > 0 && *n->s == '-';
	uint64_t u;

	if (uint_parse(n->s + neg, n->len - (size_t)neg, INT64_MAX, &u) == -1)
		return A_NUM;
	*v = neg ? -(int64_t)u : (int64_t)u;
	return A_INT;
}

static enum arg_type
type_of_node(const struct node *n, int64_t *v)
{
	*v = n->b;
	switch (n->type) {
	case N_NULL:
		return A_NULL;
	case N_BOOL:
		return A_BOOL;
	case N_NUM:
		return type_of_number(n, v);
	case N_STR:
		return A_STR;
	case N_LIST:
	case N_OBJ:
		break;
	}
	return type_of_members(n);
}

static int
members_add(struct arg *a, const struct node *n)
{
	const struct node *c;

	for (c = n->child; c != NULL; c = c->next)
		if ((a->type == A_LIST ? arg_push(a, c->s, NULL)
				       : arg_push(a, c->key, c->s)) == -1)
			return -1;
	return 0;
}

/* One argument; depth bounds nesting as the wire does. */
static int
arg_add(struct args *args, const struct node *n, int depth)
{
	const struct node *c;
	struct arg *a;
	int64_t v;
	enum arg_type type = type_of_node(n, &v);

	if ((a = args_add(args, n->key, type)) == NULL)
		return -1;
	a->i = v;
	switch (type) {
	case A_STR:
		return arg_set_str(a, n->s, n->len);
	case A_OTHER:
		return arg_set_str(a, "[]", 2);
	case A_LIST:
	case A_MAP:
		return members_add(a, n);
	case A_ARGS:
		if (depth > 0 || (a->sub = calloc(1, sizeof(*a->sub))) == NULL)
			return -1;
		for (c = n->child; c != NULL; c = c->next)
			if (!c->dup && arg_add(a->sub, c, depth + 1) == -1)
				return -1;
		return 0;
	default:
		return 0;
	}
}

static int
get_args(struct cload *cl, const struct node *n, void *obj)
{
	struct example *e = obj;
	const struct node *c;

	if (n->type != N_OBJ) {
		conf_type(cl, n, "an object of arguments");
		return 0;
	}
	for (c = n->child; c != NULL; c = c->next)
		if (!c->dup && arg_add(&e->args, c, 0) == -1) {
			conf_findkey(cl, c, FIND_ERROR, "config.type",
			    "\"%.80s\": too many, too large or too deep for a "
			    "call",
			    c->key);
			return 0;
		}
	return 0;
}

/* ---- operations ---- */

static int
op_of(struct cload *cl, const struct node *n, const char *id, uint16_t *op)
{
	const char *hint;

	if ((*op = op_find(id)) != OP_NONE)
		return 0;
	hint = selector_suggest(id);
	conf_find(cl, n, FIND_ERROR, "config.unknown_selector",
	    hint != NULL ? "there is no operation \"%.80s\"; did you mean "
			   "\"%s\"?"
			 : "there is no operation \"%.80s\"",
	    id, hint);
	return -1;
}

static int
get_op(struct cload *cl, const struct node *n, void *obj)
{
	struct example *e = obj;

	if (n->type != N_STR)
		conf_type(cl, n, "the id of an operation");
	else
		op_of(cl, n, n->s, &e->op);
	return 0;
}

static int
get_roles(struct cload *cl, const struct node *n, void *obj)
{
	struct example *e = obj;

	e->roles_given = 1;
	return conf_strings(cl, n, &e->roles, check_name);
}

static int
check_code(struct cload *cl, const struct node *n)
{
	enum code c = code_find(n->s);

	if (c != C_COUNT && c != C_OK)
		return 0;
	conf_find(cl, n, FIND_ERROR, "config.type",
	    "\"%.80s\" is not a code of a refusal", n->s);
	return -1;
}

#define OFF(f) offsetof(struct example, f)
static const struct ckey example_keys[] = {
    {"args", K_FUNC, .get = get_args},
    {"code", K_STR, 0, OFF(code), .check = check_code},
    {"op", K_FUNC, .get = get_op},
    {"principal", K_STR, 0, OFF(id), .check = check_name},
    {"roles", K_FUNC, .get = get_roles},
    {"session", K_STR, 0, OFF(session), .check = check_name},
    {NULL},
};
#undef OFF

/* The op of a rule that names exactly one, by its id. */
static uint16_t
only_op(const struct node *rule_sel)
{
	const struct node *n = rule_sel;

	if (n != NULL && n->type == N_LIST)
		n = n->n == 1 ? n->child : NULL;
	return n != NULL && n->type == N_STR ? op_find(n->s) : OP_NONE;
}

/* "OP NAME=VALUE ..." */
static int
example_words(struct cload *cl, const struct node *n, struct example *e)
{
	struct strlist words = {0};
	const char *bad = NULL;
	size_t first;
	int r = shlex_split(n->s, &words);

	if (r == -2)
		return conf_nomem(cl);
	first = words.n > 0 && strchr(words.v[0], '=') == NULL;
	if (r == -1)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "the example has an unterminated quote");
	else if (first == 0 || op_of(cl, n, words.v[0], &e->op) == 0) {
		r = policy_args_words(
		    &e->args, e->op, words.v + first, words.n - first, &bad);
		if (r == 1)
			conf_find(cl, n, FIND_ERROR, "config.type",
			    "\"%.80s\" is not NAME=VALUE, each name once", bad);
	}
	strlist_clear(&words);
	return r == -1 && bad != NULL ? conf_nomem(cl) : 0;
}

static int
example_push(struct cload *cl, struct rule *r, struct example *e)
{
	struct example *v;

	v = recallocarray(
	    r->examples, r->nexamples, r->nexamples + 1, sizeof(*v));
	if (v == NULL)
		return conf_nomem(cl);
	r->examples = v;
	r->examples[r->nexamples++] = *e;
	memset(e, 0, sizeof(*e));
	return 0;
}

static int
example_read(struct cload *cl, const struct node *n, struct rule *r, int allow,
    uint16_t op)
{
	struct example e = {.allow = allow, .op = op};
	size_t before = conf_errors(cl);
	int error = 0;

	origin_set(cl, &e.at, n);
	if (n->type == N_STR)
		error = example_words(cl, n, &e);
	else
		error = conf_object(cl, n, example_keys, &e);
	if (error == 0 && e.op == OP_NONE && conf_errors(cl) == before)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "the example names no operation, and the rule not exactly "
		    "one");
	if (error == 0 && allow && e.code != NULL)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "a call that is allowed has no code");
	if (error == 0 && conf_errors(cl) == before)
		error = example_push(cl, r, &e);
	example_clear(&e);
	return error;
}

/* What the rule at hand selects: a sibling of "examples". */
struct example_list {
	struct rule *rule;
	uint16_t op;
};

static int
examples_list(
    struct cload *cl, const struct node *n, struct example_list *el, int allow)
{
	const struct node *c = n->type == N_LIST ? n->child : n;

	for (; c != NULL; c = n->type == N_LIST ? c->next : NULL)
		if (example_read(cl, c, el->rule, allow, el->op) == -1)
			return -1;
	return 0;
}

static int
get_allow(struct cload *cl, const struct node *n, void *obj)
{
	return examples_list(cl, n, obj, 1);
}

static int
get_deny(struct cload *cl, const struct node *n, void *obj)
{
	return examples_list(cl, n, obj, 0);
}

static const struct ckey examples_keys[] = {
    {"allow", K_FUNC, .get = get_allow},
    {"deny", K_FUNC, .get = get_deny},
    {NULL},
};

int
get_examples(struct cload *cl, const struct node *n, void *rule)
{
	struct example_list el = {.rule = rule};

	el.op = only_op(cl->rule_sel);
	return conf_object(cl, n, examples_keys, &el);
}
