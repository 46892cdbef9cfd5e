/*
 * SPDX-License-Identifier: ISC
 *
 * Layers 4 and 5, the environment and operator.json: what no rule can go
 * beyond.  Everything here ends as a deny, a minimum or a ceiling, so neither
 * layer can grant anything (server.json(5), "THE OPERATOR").
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/confkey.h"

#define CHANGES "effect:write,delete,exec,admin"

int
layer_restricts(enum conf_layer layer)
{
	return layer == LAYER_ENV || layer == LAYER_OPERATOR;
}

/* ---- rules that take operations away ---- */

static int
removal_init(
    struct cload *cl, struct rule *r, const char *name, const struct node *at)
{
	rule_init(r);
	r->deny = r->unmount = 1;
	r->layer = cl->layer;
	origin_set(cl, &r->at, at);
	if ((r->name = strdup(name)) == NULL)
		return conf_nomem(cl);
	return 0;
}

/* Push a removal that has selectors; frees it in any case. */
static int
removal_push(struct cload *cl, struct rule *r, int error)
{
	if (error == 0 && r->sel.n > 0)
		error = conf_rule_push(cl, r);
	rule_clear(r);
	return error;
}

/* ---- operator.json ---- */

static int
get_later(struct cload *cl, const struct node *n, void *obj)
{
	return 0; /* read when all rules before it are there */
}

static int
get_minima(struct cload *cl, const struct node *n, void *obj)
{
	struct limit_set l;
	int error;

	limit_set_init(&l);
	error = conf_object(cl, n, limit_keys, &l);
	limit_set_least(&cl->limits, &l);
	return error;
}

/* One root, in the spelling that facts have. */
static int
root_add(struct cload *cl, struct strlist *l, const char *path)
{
	char *canon = NULL;
	int error;

	if (cl->w != NULL && cl->w->canonical != NULL)
		canon = cl->w->canonical(path, cl->w->arg);
	if (canon != NULL)
		path = canon;
	error = strlist_add(l, path, strlen(path));
	free(canon);
	return error == -1 ? conf_nomem(cl) : 0;
}

/* An empty list admits no path at all. */
static int
get_roots(struct cload *cl, const struct node *n, void *obj)
{
	static const struct ckey row = {
	    "roots", K_LIST, CK_PATHS, 0, .check = check_dir};
	struct ceiling *ceil = &cl->c->rules->ceiling;
	struct strlist l = {0};
	size_t i;
	int error;

	ceil->has_roots = 1;
	error = conf_value(cl, &row, n, &l);
	for (i = 0; error == 0 && i < l.n; i++)
		error = root_add(cl, &ceil->roots, l.v[i]);
	strlist_clear(&l);
	return error;
}

/* Numbers that only become smaller; 0 is no bound. */
static void
tighten(struct conf *c, const struct conf *was)
{
	uint32_t *now[] = {&c->max_pids, &c->max_memory_mb, &c->cpu_percent,
	    &c->total_pids, &c->total_cpu};
	const uint32_t old[] = {was->max_pids, was->max_memory_mb,
	    was->cpu_percent, was->total_pids, was->total_cpu};
	size_t i;

	for (i = 0; i < nitems(now); i++)
		if (old[i] != 0 && (*now[i] == 0 || *now[i] > old[i]))
			*now[i] = old[i];
	if (was->total_memory != 0 &&
	    (c->total_memory == 0 || c->total_memory > was->total_memory))
		c->total_memory = was->total_memory;
	if (c->tmp_size > was->tmp_size)
		c->tmp_size = was->tmp_size;
	c->sandbox_enabled &= was->sandbox_enabled;
	c->require |= was->require;
	c->protect_absent |= was->protect_absent;
}

/* Only what makes a sandbox tighter. */
static int
get_tighter(struct cload *cl, const struct node *n, void *obj)
{
	static const char *const names[] = {"enabled", "protect", "require",
	    "tmp_size", "cpu_quota_percent", "max_memory_mb", "max_pids",
	    "protect_absent", "total_cpu_percent", "total_memory",
	    "total_pids"};
	struct conf *c = cl->c;
	const struct conf was = *c; /* for its numbers */
	const struct ckey *k;
	const struct node *m;
	int error = 0;
	size_t i;

	if (n->type != N_OBJ) {
		conf_type(cl, n, "an object");
		return 0;
	}
	for (m = n->child; m != NULL && error == 0; m = m->next) {
		for (i = 0; i < nitems(names); i++)
			if (strcmp(names[i], m->key) == 0)
				break;
		if (m->dup)
			continue;
		if ((k = ckey_find(sandbox_keys, m->key)) == NULL)
			conf_unknown(cl, m, sandbox_keys, NULL);
		else if (i == 1)
			error = conf_strings(
			    cl, m, &c->protect_names, check_protect);
		else if (i < nitems(names) || k->type == K_LATER)
			error = conf_value(cl, k, m, c);
		else
			conf_findkey(cl, m, FIND_ERROR,
			    "config.layer_cannot_allow",
			    "\"%s\" is not for the operator's file to set",
			    m->key);
	}
	tighten(c, &was);
	return error;
}

static int
get_protect(struct cload *cl, const struct node *n, void *obj)
{
	return conf_value(cl, ckey_find(conf_keys, "protect_dirs"), n, cl->c);
}

static const struct ckey operator_keys[] = {
    {"disable", K_FUNC, .get = get_later},
    {"limits", K_FUNC, .get = get_minima},
    {"protect_dirs", K_FUNC, .get = get_protect},
    {"roots", K_FUNC, .get = get_roots},
    {"rules", K_FUNC, .get = get_later},
    {"sandbox", K_FUNC, .get = get_tighter},
    {"version", K_FUNC, .get = get_later},
    {NULL},
};

int
conf_operator_top(struct cload *cl, const struct node *top)
{
	const struct ckey *k;
	const struct node *n;

	for (n = top->child; n != NULL; n = n->next) {
		if (n->dup)
			continue;
		if ((k = ckey_find(operator_keys, n->key)) != NULL) {
			if (k->get(cl, n, NULL) == -1)
				return -1;
			continue;
		}
		k = ckey_find(conf_keys, n->key);
		if (k == NULL || (k->flags & CK_CANON) != 0)
			conf_unknown(cl, n, operator_keys, NULL);
		else
			conf_findkey(cl, n, FIND_ERROR,
			    "config.layer_cannot_allow",
			    "\"%s\" cannot be set here: this layer only "
			    "restricts",
			    n->key);
	}
	return 0;
}

int
conf_operator_disable(struct cload *cl, const struct node *top)
{
	const struct node *n = node_get(top, "disable");
	struct rule r;
	int error;

	if (n == NULL)
		return 0;
	error = removal_init(cl, &r, "disabled by the operator", n);
	if (error == 0)
		error = conf_selectors(cl, n, &r.sel, 0);
	return removal_push(cl, &r, error);
}

/* ---- the environment ---- */

/* A variable as a node, for findings; NULL when it is not set or empty. */
static const struct node *
env_node(struct cload *cl, struct node *n, char *name, char **text)
{
	const char *s = conf_env(cl, name);

	*text = NULL;
	if (s == NULL || *s == '\0')
		return NULL;
	if ((*text = strdup(s)) == NULL) {
		conf_nomem(cl);
		return NULL;
	}
	*n = (struct node){.type = N_STR,
	    .file = "environment",
	    .key = name,
	    .of = name,
	    .s = *text,
	    .len = strlen(s)};
	return n;
}

static int
env_readonly(struct cload *cl, const struct node *n)
{
	struct rule r;
	int error;

	if (strcmp(n->s, "0") == 0)
		return 0;
	if (strcmp(n->s, "1") != 0)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "%s is 1 or 0, not \"%.40s\"", n->key, n->s);
	/* Whatever it says, it was meant to restrict. */
	cl->c->rules->ceiling.readonly = 1;
	error = removal_init(cl, &r, n->key, n);
	if (error == 0 && strlist_add(&r.sel, CHANGES, strlen(CHANGES)) == -1)
		error = conf_nomem(cl);
	return removal_push(cl, &r, error);
}

/* The end of the selector at s.  The commas within "effect:a,b" belong to
 * it. */
static char *
selector_end(char *s)
{
	char *end = s + strcspn(s, ","), *next;

	while (strncmp(s, "effect:", 7) == 0 && *end == ',') {
		next = end + 1;
		next += strcspn(next, ",.:*");
		if (*next != ',' && *next != '\0')
			break;
		end = next;
	}
	return end;
}

static int
env_disable(struct cload *cl, const struct node *n)
{
	struct node one = *n;
	struct rule r;
	char *s = n->s, *end, last;
	int error = removal_init(cl, &r, n->key, n);

	while (error == 0 && *s != '\0') {
		s += strspn(s, " \t");
		end = selector_end(s);
		last = *end;
		*end = '\0';
		one.s = s;
		one.len = strcspn(s, " \t");
		s[one.len] = '\0';
		if (one.len > 0)
			error = conf_selectors(cl, &one, &r.sel, 0);
		s = last == '\0' ? end : end + 1;
	}
	return removal_push(cl, &r, error);
}

/* A number alone is what it is in a file: bytes, or seconds. */
static int
env_limit(struct cload *cl, const struct node *n, const char *key)
{
	struct node num = *n;
	struct limit_set l;

	limit_set_init(&l);
	if (n->s[strspn(n->s, "0123456789")] == '\0')
		num.type = N_NUM;
	if (conf_value(cl, ckey_find(limit_keys, key), &num, &l) == -1)
		return -1;
	limit_set_least(&cl->limits, &l);
	return 0;
}

static int
env_max_bytes(struct cload *cl, const struct node *n)
{
	return env_limit(cl, n, "max_bytes");
}

static int
env_timeout(struct cload *cl, const struct node *n)
{
	return env_limit(cl, n, "timeout");
}

static int
env_reload(struct cload *cl, const struct node *n)
{
	if (strcmp(n->s, "sighup") == 0)
		cl->c->reload = RELOAD_SIGHUP;
	else if (strcmp(n->s, "off") != 0)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "%s is \"off\" or \"sighup\", not \"%.40s\"", n->key, n->s);
	return 0;
}

int
conf_layer_env(struct cload *cl)
{
	static char readonly[] = "ABX_SERVER_READONLY",
		    disable[] = "ABX_SERVER_DISABLE",
		    bytes[] = "ABX_SERVER_MAX_BYTES",
		    timeout[] = "ABX_SERVER_TIMEOUT",
		    reload[] = "ABX_SERVER_POLICY_RELOAD";
	static const struct {
		char *name;
		int (*read)(struct cload *, const struct node *);
	} vars[] = {
	    {readonly, env_readonly},
	    {disable, env_disable},
	    {bytes, env_max_bytes},
	    {timeout, env_timeout},
	    {reload, env_reload},
	};
	const struct node *n;
	struct node node;
	char *text;
	size_t i;
	int error = 0;

	cl->layer = LAYER_ENV;
	for (i = 0; i < nitems(vars) && error == 0; i++) {
		n = env_node(cl, &node, vars[i].name, &text);
		if (n != NULL)
			error = vars[i].read(cl, n);
		free(text);
	}
	return cl->f->nomem ? -1 : error;
}

/* ---- in a canonical text ---- */

static int
get_has_roots(struct cload *cl, const struct node *n, void *obj)
{
	struct ceiling *ceil = obj;

	ceil->has_roots = 1;
	return conf_strings(cl, n, &ceil->roots, NULL);
}

static int
put_has_roots(struct out *o, const void *obj)
{
	const struct ceiling *ceil = obj;

	if (ceil->has_roots)
		out_list(o, &ceil->roots);
	return ceil->has_roots;
}

static const struct ckey ceiling_keys[] = {
    {"readonly", K_BOOL, 0, offsetof(struct ceiling, readonly)},
    {"roots", K_FUNC, .get = get_has_roots, .put = put_has_roots},
    {NULL},
};

int
get_ceiling(struct cload *cl, const struct node *n, void *obj)
{
	return conf_object(cl, n, ceiling_keys, &cl->c->rules->ceiling);
}

int
put_ceiling(struct out *o, const void *obj)
{
	const struct conf *c = obj;

	out_object(o, ceiling_keys, &c->rules->ceiling);
	return 1;
}
