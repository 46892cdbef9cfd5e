/*
 * SPDX-License-Identifier: ISC
 *
 * NAME=VALUE words, of abxctl explain and of examples in rules, as the typed
 * arguments of a call.  Pure.
 */
#include <string.h>

#include "policy/policy.h"

static enum arg_type
type_of(const struct op_param *p)
{
	if (p == NULL)
		return A_QUERY;
	switch (p->type) {
	case T_STRLIST:
	case T_PATHLIST:
		return A_LIST;
	case T_STRMAP:
		return A_MAP;
	default:
		return A_QUERY;
	}
}

/* One pair of a map: "NAME=VALUE" again, in the value. */
static int
push_pair(struct arg *a, const char *pair)
{
	char key[ABX_ID_MAX + 1];
	const char *eq = strchr(pair, '=');
	size_t n;

	if (eq == NULL || (n = (size_t)(eq - pair)) >= sizeof(key))
		return 1;
	memcpy(key, pair, n);
	key[n] = '\0';
	return arg_push(a, key, eq + 1);
}

static int
one_word(struct args *args, uint16_t op, const char *word)
{
	char name[ABX_ID_MAX + 1];
	const char *value = strchr(word, '=');
	const struct op_param *p;
	enum arg_type type;
	struct arg *a;
	size_t n;

	if (value == NULL || value == word ||
	    (n = (size_t)(value - word)) >= sizeof(name))
		return 1;
	memcpy(name, word, n);
	name[n] = '\0';
	value++;
	p = op == OP_NONE ? NULL : op_param_find(&ops[op], name);
	type = type_of(p);
	a = args_find(args, name);
	if (a != NULL && type == A_QUERY)
		return 1; /* given twice */
	if (a == NULL && (a = args_add(args, name, type)) == NULL)
		return -1;
	if (type == A_LIST)
		return arg_push(a, value, NULL);
	if (type == A_MAP)
		return push_pair(a, value);
	return arg_set_str(a, value, strlen(value));
}

int
policy_args_words(struct args *args, uint16_t op, char *const *words, size_t n,
    const char **bad)
{
	size_t i;
	int r;

	for (i = 0; i < n; i++) {
		*bad = words[i];
		if ((r = one_word(args, op, words[i])) != 0)
			return r;
	}
	return 0;
}
