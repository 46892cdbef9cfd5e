/*
 * SPDX-License-Identifier: ISC
 *
 * From the rules of a configuration to the compiled rules of a policy: own
 * copies, compiled globs and patterns, numbered roots.  What a rule means for
 * one op is made in index.c.  Pure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"

void *
grow(void **v, size_t *n, size_t size)
{
	void *nv;

	if ((*n & (*n - 1)) == 0) {
		nv = reallocarray(*v, *n == 0 ? 1 : *n * 2, size);
		if (nv == NULL)
			return NULL;
		*v = nv;
	}
	nv = (char *)*v + *n * size;
	memset(nv, 0, size);
	++*n;
	return nv;
}

long
policy_root_add(struct policy *p, const char *path)
{
	struct proot *r;
	size_t i;

	for (i = 0; i < p->nroots; i++)
		if (strcmp(p->roots[i].path, path) == 0)
			return (long)i;
	if (p->nroots >= ABX_MAX_ROOTS)
		return -2;
	r = grow((void **)&p->roots, &p->nroots, sizeof(*r));
	if (r == NULL)
		return -1;
	r->path = strdup(path);
	r->canon = r->path;
	if (r->path == NULL) {
		p->nroots--;
		return -1;
	}
	return (long)(p->nroots - 1);
}

/* ---- command scopes ---- */

static int
patterns_compile(struct argv_pat ***pats, size_t *n,
    const struct strlist *texts, int deny, const struct origin *at,
    struct findings *fs)
{
	const char *why;
	int bad = 0;
	size_t i;

	*pats = calloc(texts->n + 1, sizeof(**pats));
	if (*pats == NULL) {
		fs->nomem = 1;
		return -1;
	}
	for (i = 0; i < texts->n; i++) {
		(*pats)[*n] = argv_pat_new(texts->v[i], deny, &why);
		if ((*pats)[*n] != NULL) {
			++*n;
			continue;
		}
		bad = -1;
		if (why == NULL)
			fs->nomem = 1;
		else
			findings_add(fs, FIND_ERROR, "config.pattern_invalid",
			    at->file, at->line, at->col, "command \"%s\": %s",
			    texts->v[i], why);
	}
	return bad;
}

static void
patterns_clear(struct argv_pat **pats, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		argv_pat_free(pats[i]);
	free(pats);
}

/* exec_dirs as absolute normal paths; others can hold no program. */
static int
exec_dirs_copy(struct cscope *c, const struct strlist *dirs)
{
	char path[ABX_PATH_MAX + 1];
	size_t i, len = 1;

	for (i = 0; i < dirs->n; i++) {
		if (path_normal_into(dirs->v[i], path) == -1)
			continue;
		if (strlist_add(&c->exec_dirs, path, strlen(path)) == -1)
			return -1;
		len += strlen(path) + 1;
	}
	c->path_env = calloc(1, len);
	if (c->path_env == NULL)
		return -1;
	for (i = 0; i < c->exec_dirs.n; i++) {
		if (i > 0)
			strlcat(c->path_env, ":", len);
		strlcat(c->path_env, c->exec_dirs.v[i], len);
	}
	return 0;
}

static int
cscope_copy(struct cscope *c, const struct command_scope *from,
    const struct strlist *snapshot)
{
	c->shell = from->shell;
	c->unrestricted = from->unrestricted;
	c->has_cwd = from->has_cwd;
	c->head_tail = from->head_tail;
	c->no_fork =
	    from->sandbox != NULL && strcmp(from->sandbox, "strict") == 0;
	c->timeout_ms = from->timeout_ms;
	c->idle_ms = from->idle_ms;
	c->max_output = from->max_output;
	c->cpu_s = from->cpu_s;
	c->memory = from->memory;
	c->procs = from->processes;
	if (exec_dirs_copy(c, &from->exec_dirs) == -1 ||
	    env_snapshot(&c->env_pass, &from->env_pass, snapshot) == -1 ||
	    strlist_copy(&c->env_set, &from->env_set) == -1 ||
	    strlist_copy(&c->env_deny, &from->env_deny) == -1 ||
	    strlist_copy(&c->env_fixed, &from->env_fixed) == -1 ||
	    strlist_copy(&c->signals, &from->signals) == -1)
		return -1;
	return 0;
}

static int
cscope_compile(struct policy *p, struct cscope *c,
    const struct command_scope *from, const struct strlist *snapshot,
    const struct origin *at, struct findings *fs)
{
	int bad = 0;

	if (cscope_copy(c, from, snapshot) == -1) {
		fs->nomem = 1;
		return -1;
	}
	if (patterns_compile(&c->allow, &c->nallow, &from->allow, 0, at, fs) ==
	    -1)
		bad = -1;
	if (patterns_compile(&c->deny, &c->ndeny, &from->deny, 1, at, fs) == -1)
		bad = -1;
	if (from->has_cwd &&
	    pscope_compile(p, &c->cwd, &from->cwd, at, fs) == -1)
		bad = -1;
	return bad;
}

static void
cscope_clear(struct cscope *c)
{
	patterns_clear(c->allow, c->nallow);
	patterns_clear(c->deny, c->ndeny);
	strlist_clear(&c->exec_dirs);
	strlist_clear(&c->env_pass);
	strlist_clear(&c->env_set);
	strlist_clear(&c->env_deny);
	strlist_clear(&c->env_fixed);
	strlist_clear(&c->signals);
	free(c->path_env);
	pscope_clear(&c->cwd);
}

/* ---- rules ---- */

/* "allow files.list files.stat", for rules without a name. */
static char *
rule_text(const struct rule *from)
{
	size_t i, len = strlen("allow") + 1;
	char *text;

	for (i = 0; i < from->sel.n; i++)
		len += strlen(from->sel.v[i]) + 1;
	text = calloc(1, len);
	if (text == NULL)
		return NULL;
	strlcat(text, from->deny ? "deny" : "allow", len);
	for (i = 0; i < from->sel.n; i++) {
		strlcat(text, " ", len);
		strlcat(text, from->sel.v[i], len);
	}
	return text;
}

static int
prule_copy(struct prule *r, const struct rule *from)
{
	r->deny = from->deny;
	r->unmount = from->deny && from->unmount;
	r->has_paths = from->has_paths;
	r->has_commands = from->has_commands;
	r->limits = from->limits;
	r->scoped =
	    from->deny_paths.n + from->deny_commands.n + from->deny_urls.n > 0;
	r->name = from->name != NULL ? strdup(from->name) : rule_text(from);
	if (r->name == NULL || asprintf(&r->origin, "%s:%u",
				   from->at.file != NULL ? from->at.file : "",
				   from->at.line) == -1)
		return -1;
	if (from->reason != NULL && (r->reason = strdup(from->reason)) == NULL)
		return -1;
	if (strlist_copy(&r->sel, &from->sel) == -1 ||
	    strlist_copy(&r->principals, &from->principals) == -1)
		return -1;
	r->bits = principals_bits(&r->principals);
	r->has_urls = from->has_urls;
	if (from->has_urls && url_scope_copy(&r->urls, &from->urls) == -1)
		return -1;
	return strlist_copy(&r->deny_urls, &from->deny_urls);
}

static int
prule_params(struct policy *p, struct prule *r, const struct rule *from,
    struct findings *fs)
{
	int bad = 0;
	size_t i;

	r->params = calloc(from->nparams + 1, sizeof(*r->params));
	if (r->params == NULL) {
		fs->nomem = 1;
		return -1;
	}
	for (i = 0; i < from->nparams; i++) {
		r->nparams++;
		r->params[i].param = strdup(from->params[i].param);
		if (r->params[i].param == NULL) {
			fs->nomem = 1;
			return -1;
		}
		if (pscope_compile(p, &r->params[i].scope,
			&from->params[i].scope, &from->at, fs) == -1)
			bad = -1;
	}
	return bad;
}

static int
prule_compile(struct policy *p, struct prule *r, const struct rule *from,
    const struct strlist *snapshot, struct findings *fs)
{
	int bad = 0;

	if (prule_copy(r, from) == -1) {
		fs->nomem = 1;
		return -1;
	}
	if (r->deny) {
		if (pglobs_compile(
			&r->deny_paths, &from->deny_paths, &from->at, fs) == -1)
			bad = -1;
		return patterns_compile(&r->deny_commands, &r->ndeny_commands,
			   &from->deny_commands, 1, &from->at, fs) == -1
			   ? -1
			   : bad;
	}
	if (from->has_paths &&
	    pscope_compile(p, &r->paths, &from->paths, &from->at, fs) == -1)
		bad = -1;
	if (prule_params(p, r, from, fs) == -1)
		bad = -1;
	if (from->has_commands &&
	    cscope_compile(p, &r->commands, &from->commands, snapshot,
		&from->at, fs) == -1)
		bad = -1;
	return bad;
}

static void
prule_clear(struct prule *r)
{
	size_t i;

	strlist_clear(&r->sel);
	strlist_clear(&r->principals);
	pscope_clear(&r->paths);
	for (i = 0; i < r->nparams; i++) {
		free(r->params[i].param);
		pscope_clear(&r->params[i].scope);
	}
	free(r->params);
	cscope_clear(&r->commands);
	url_scope_clear(&r->urls);
	strlist_clear(&r->deny_urls);
	pglobs_clear(&r->deny_paths);
	patterns_clear(r->deny_commands, r->ndeny_commands);
	free(r->reason);
	free(r->name);
	free(r->origin);
}

/* ---- the policy ---- */

static int
policy_rules(
    struct policy *p, const struct conf_rules *from, struct findings *fs)
{
	int bad = 0;
	size_t i;

	p->rules = calloc(from->n + 1, sizeof(*p->rules));
	if (p->rules == NULL) {
		fs->nomem = 1;
		return -1;
	}
	for (i = 0; i < from->n; i++) {
		p->nrules++;
		p->rules[i].index = i;
		if (prule_compile(
			p, &p->rules[i], &from->v[i], &from->env, fs) == -1)
			bad = -1;
	}
	return bad;
}

static int
ceiling_copy(struct ceiling *dst, const struct ceiling *src)
{
	dst->readonly = src->readonly;
	dst->has_roots = src->has_roots;
	return strlist_copy(&dst->roots, &src->roots);
}

static int
workspace_dir(struct policy *p, const char *dir)
{
	char path[ABX_PATH_MAX + 1];

	if (dir == NULL || path_normal_into(dir, path) == -1)
		return 0;
	return (p->ws_dir = strdup(path)) == NULL ? -1 : 0;
}

struct policy *
policy_new(const struct conf *conf, struct findings *fs)
{
	struct policy *p = calloc(1, sizeof(*p));
	size_t i;

	if (p == NULL) {
		fs->nomem = 1;
		return NULL;
	}
	p->ws_root = -1;
	if (ceiling_copy(&p->ceiling, &conf->rules->ceiling) == -1 ||
	    workspace_dir(p, conf->workspace_root) == -1)
		goto nomem;
	p->filter =
	    filter_new(&conf->filter, p->filter_fault, sizeof(p->filter_fault));
	if (p->filter == NULL)
		goto nomem;
	if (policy_rules(p, conf->rules, fs) == -1)
		goto fail;
	switch (session_root(p, conf->sandbox_enabled)) {
	case -1:
		goto nomem;
	case 1:
		findings_add(fs, FIND_ERROR, "config.root_invalid",
		    conf->rules->sandbox_at.file, conf->rules->sandbox_at.line,
		    conf->rules->sandbox_at.col,
		    "there are too many roots to have one for workspaces");
		goto fail;
	}
	if (policy_index(p) == -1)
		goto nomem;
	for (i = 0; i < conf->protect_dirs.n; i++)
		if (policy_protect(p, conf->protect_dirs.v[i]) == -1)
			goto nomem;
	if (conf->state_dir != NULL && policy_protect(p, conf->state_dir) == -1)
		goto nomem;
	return p;
nomem:
	fs->nomem = 1;
fail:
	policy_free(p);
	return NULL;
}

void
policy_free(struct policy *p)
{
	size_t i;

	if (p == NULL)
		return;
	for (i = 0; i < p->nroots; i++) {
		if (p->roots[i].canon != p->roots[i].path)
			free(p->roots[i].canon);
		free(p->roots[i].path);
	}
	free(p->roots);
	for (i = 0; i < p->nrules; i++)
		prule_clear(&p->rules[i]);
	free(p->rules);
	for (i = 0; i < OP_COUNT; i++) {
		free(p->ops[i].allow);
		free(p->ops[i].deny);
		free(p->ops[i].allow_bits);
		free(p->ops[i].deny_bits);
		free(p->ops[i].allow_roots);
		free(p->ops[i].roots);
		strlist_clear(&p->ops[i].exec_dirs);
	}
	strlist_clear(&p->protect);
	strlist_clear(&p->exec_dirs);
	strlist_clear(&p->ceiling.roots);
	free(p->ws_dir);
	filter_free(p->filter);
	free(p);
}
