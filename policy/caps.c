/*
 * SPDX-License-Identifier: ISC
 *
 * The capabilities that a command asks for (design: commands, capabilities),
 * held against what its statement's sandbox gives: the working directory, no
 * network, and other programs unless the profile is "strict".  Nobody can be
 * asked for more here, so more is refused.  What is asked for can narrow the
 * sandbox: no other programs, less memory, less time.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"
#include "policy/tree.h"

#define MIB (1024 * 1024ULL)

/* What was asked for; strings borrowed. */
struct caps {
	const char *dir;   /* what paths are held against, NULL: form only */
	int writable;	   /* it may be written */
	int outside;	   /* a path lies elsewhere, or a host is named */
	int spawn;	   /* -1: not said */
	uint64_t mem, sec; /* 0: not said */
};

/* ---- one capability ---- */

static int
is_paths(const char *name)
{
	return strcmp(name, "fs_read") == 0 || strcmp(name, "fs_write") == 0;
}

/* What is wrong with one that its type does not fit. */
static enum code
misfit(const char *name)
{
	static const char *const known[] = {"fs_read", "fs_write", "network",
	    "spawn_subprocess", "max_memory_mb", "timeout_secs"};
	size_t i;

	for (i = 0; i < nitems(known); i++)
		if (strcmp(name, known[i]) == 0)
			return C_ARGS_TYPE;
	return C_ARGS_UNKNOWN;
}

static enum code
take_path(struct caps *c, const char *name, const char *s)
{
	int write = strcmp(name, "fs_write") == 0;

	if (text_has_control(s) || s[0] != '/')
		return C_ARGS_INVALID;
	/* lexical is enough: nothing is mounted that was not before */
	if (c->dir == NULL || !path_acceptable(s) || !path_is_normal(s) ||
	    path_below(c->dir, s) == NULL || (write && !c->writable))
		c->outside = 1;
	return C_OK;
}

static enum code
take_int(struct caps *c, const char *name, int64_t v)
{
	uint64_t *to = strcmp(name, "max_memory_mb") == 0  ? &c->mem
		       : strcmp(name, "timeout_secs") == 0 ? &c->sec
							   : NULL;

	if (to == NULL)
		return misfit(name);
	if (v < 1)
		return C_ARGS_TYPE;
	*to = (uint64_t)v;
	return C_OK;
}

static enum code
take_bool(struct caps *c, const char *name, int on)
{
	if (strcmp(name, "spawn_subprocess") != 0)
		return misfit(name);
	c->spawn = on != 0;
	return C_OK;
}

static enum code
take_word(struct caps *c, const char *name, const char *s)
{
	if (strcmp(name, "network") != 0)
		return misfit(name);
	if (strcmp(s, "all") == 0)
		c->outside = 1;
	else if (strcmp(s, "none") != 0)
		return C_ARGS_INVALID;
	return C_OK;
}

/* ---- a JSON text, for what arguments cannot hold ---- */

/* The network as an object. */
static enum code
take_hosts(struct caps *c, const struct node *n)
{
	const struct node *hosts = n->child, *h;

	if (n->type != N_OBJ || n->n != 1 || hosts->type != N_LIST)
		return C_ARGS_TYPE;
	if (strcmp(hosts->key, "allow_hosts") != 0)
		return C_ARGS_UNKNOWN;
	for (h = hosts->child; h != NULL; h = h->next) {
		if (h->type != N_STR)
			return C_ARGS_TYPE;
		if (h->len == 0 || text_has_control(h->s))
			return C_ARGS_INVALID;
		c->outside = 1; /* a list without hosts is no network */
	}
	return C_OK;
}

static enum code
take_node(struct caps *c, const struct node *n)
{
	enum code code = is_paths(n->key) ? C_OK : misfit(n->key);
	const struct node *e;
	char *end;
	long long v;

	switch (n->type) {
	case N_STR:
		return take_word(c, n->key, n->s);
	case N_BOOL:
		return take_bool(c, n->key, n->b);
	case N_NUM:
		v = strtoll(n->s, &end, 10);
		return take_int(c, n->key, *end == '\0' && n->len < 16 ? v : 0);
	case N_LIST:
		for (e = n->child; e != NULL && code == C_OK; e = e->next)
			code = e->type != N_STR ? C_ARGS_TYPE
						: take_path(c, n->key, e->s);
		return code;
	case N_OBJ:
		return strcmp(n->key, "network") == 0 ? take_hosts(c, n)
						      : misfit(n->key);
	default:
		return misfit(n->key);
	}
}

/* The whole of it, or its network alone, as text.  0 or -1. */
static int
take_text(struct caps *c, int network, const char *text, enum code *code)
{
	struct findings f = {0};
	struct node *top = tree_json("", text, strlen(text), &f);
	const struct node *n;
	int nomem = f.nomem;

	*code = C_ARGS_TYPE;
	if (top != NULL && network)
		*code = take_hosts(c, top);
	else if (top != NULL && top->type == N_OBJ) {
		*code = C_OK;
		for (n = top->child; n != NULL && *code == C_OK; n = n->next)
			*code = take_node(c, n);
	}
	tree_free(top);
	findings_clear(&f);
	return nomem ? -1 : 0;
}

/* ---- the argument ---- */

static enum code
take_member(struct caps *c, const struct arg *a, int *nomem)
{
	enum code code = is_paths(a->name) ? C_OK : misfit(a->name);
	size_t i;

	switch (a->type) {
	case A_STR:
		return take_word(c, a->name, a->s);
	case A_INT:
		return take_int(c, a->name, a->i);
	case A_BOOL:
		return take_bool(c, a->name, a->i != 0);
	case A_LIST:
		for (i = 0; i < a->n && code == C_OK; i++)
			code = take_path(c, a->name, a->list[i]);
		return code;
	case A_OTHER:
		if (strcmp(a->name, "network") == 0)
			*nomem = take_text(c, 1, a->s, &code) == -1;
		else if (code == C_OK)
			code = C_ARGS_TYPE;
		return code;
	default:
		return misfit(a->name);
	}
}

/* 0 with *code, or -1 out of memory. */
static int
take(struct caps *c, const struct arg *a, enum code *code)
{
	size_t i;
	int nomem = 0;

	c->spawn = -1;
	*code = C_OK;
	if (a->type == A_OTHER)
		return take_text(c, 0, a->s, code);
	if (a->type == A_MAP)
		for (i = 0; i < a->n && *code == C_OK; i++)
			*code = take_word(c, a->list[i], a->vals[i]);
	else if (a->type == A_ARGS)
		for (i = 0; i < a->sub->n && *code == C_OK; i++)
			*code = take_member(c, &a->sub->v[i], &nomem);
	else
		*code = C_ARGS_TYPE;
	return nomem ? -1 : 0;
}

int
caps_check(const struct args *args, enum code *code)
{
	const struct arg *a = args_find(args, "capabilities");
	struct caps c = {0};

	*code = C_OK;
	return a == NULL ? 0 : take(&c, a, code);
}

int
caps_admit(const struct args *args, const char *dir, int readonly,
    struct spawn *s, enum code *code)
{
	const struct arg *a = args_find(args, "capabilities");
	struct caps c = {.dir = dir, .writable = !readonly};

	*code = C_OK;
	if (a == NULL)
		return 0;
	if (take(&c, a, code) == -1)
		return -1;
	if (*code != C_OK)
		return 0;
	if (c.outside || (c.spawn == 1 && (s->flags & SPAWN_NO_FORK) != 0)) {
		*code = C_CAP_DENIED;
		return 0;
	}
	if (c.spawn == 0)
		s->flags |= SPAWN_NO_FORK;
	if (c.mem != 0 && c.mem < UINT64_MAX / MIB &&
	    (s->memory == 0 || c.mem * MIB < s->memory))
		s->memory = c.mem * MIB;
	if (c.sec != 0 && c.sec < UINT64_MAX / 1000 &&
	    args_find(args, "timeout") == NULL &&
	    (s->timeout_ms == 0 || c.sec * 1000 < s->timeout_ms))
		s->timeout_ms = c.sec * 1000;
	return 0;
}
