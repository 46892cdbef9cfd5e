/*
 * SPDX-License-Identifier: ISC
 *
 * The lints for roots that lie where no call may go, whatever a rule says (in a
 * protected directory or in one of the system's), and for token files that lie
 * in a root, where calls do go.  A root that merely contains a protected
 * directory is as good as any.  Pure; where something really lies is what the
 * world says.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"
#include "policy/lint.h"

struct rootlint {
	const struct conf_world *w;
	const struct strlist *protect;
	struct findings *f;
	/* what is looked at now */
	const struct origin *at;
	const char *rule; /* its name, or NULL */
};

/* The directory that keeps every call away from the path, or NULL. */
static const char *
dir_over(const struct rootlint *rl, const char *path)
{
	const char *dir = system_dir_over(path);
	size_t i;

	for (i = 0; dir == NULL && i < rl->protect->n; i++)
		if (path_below(rl->protect->v[i], path) != NULL)
			dir = rl->protect->v[i];
	return dir;
}

/* As the engine compares it: with its links resolved.  A new string, NULL
 * when it is no path; a placeholder stays one component. */
static char *
real_root(const struct rootlint *rl, const char *root)
{
	char *norm, *real = NULL;
	enum code code;

	if ((norm = path_normal(root, &code)) == NULL) {
		if (code == C_OK)
			rl->f->nomem = 1;
		return NULL;
	}
	if (rl->w == NULL || rl->w->canonical == NULL)
		return norm;
	real = rl->w->canonical(norm, rl->w->arg);
	free(norm);
	return real;
}

static void
lint_root(const struct rootlint *rl, const char *key, const char *root)
{
	char *real = real_root(rl, root);
	const char *dir, *name = rl->rule, *file = rl->at->file;

	if (real != NULL && (dir = dir_over(rl, real)) != NULL)
		findings_add(rl->f, FIND_WARN, "config.root_protected",
		    file == NULL ? "configuration" : file, rl->at->line,
		    rl->at->col,
		    "\"%s\"%s%.140s%s: %.400s %s the protected directory "
		    "%.400s, so nothing below it can be reached; name another "
		    "directory",
		    key, name != NULL ? " of \"" : "", name != NULL ? name : "",
		    name != NULL ? "\"" : "", root,
		    strcmp(real, dir) == 0 ? "is" : "lies in", dir);
	free(real);
}

static void
lint_scope_roots(
    const struct rootlint *rl, const char *key, const struct path_scope *s)
{
	size_t i;

	for (i = 0; !s->anywhere && i < s->roots.n; i++)
		lint_root(rl, key, s->roots.v[i]);
}

static void
lint_rule_roots(struct rootlint *rl, const struct rule *r)
{
	size_t i;

	rl->at = &r->at;
	rl->rule = r->name;
	if (r->has_paths && r->nparams == 0)
		lint_scope_roots(rl, "paths", &r->paths);
	for (i = 0; r->has_paths && i < r->nparams; i++)
		lint_scope_roots(rl, r->params[i].param, &r->params[i].scope);
	if (r->has_commands && r->commands.has_cwd)
		lint_scope_roots(rl, "cwd", &r->commands.cwd);
	if (r->has_agent)
		lint_scope_roots(rl, "workdir", &r->agent.workdir);
}

/* ---- token files ---- */

/* 1 when a deny of the scope covers what lies at tail below one of its roots
 * ("/tail"), at real. */
static int
scope_denies(const struct path_scope *s, const char *tail, const char *real)
{
	const char *why;
	struct glob *g;
	size_t i;
	int hit = 0;

	for (i = 0; !hit && i < s->deny.n; i++) {
		if ((g = glob_new(s->deny.v[i], "", &why)) == NULL)
			continue;
		hit = glob_covers(
		    g, glob_needs_anchor(s->deny.v[i]) ? tail : real);
		glob_free(g);
	}
	return hit;
}

/* The root of the scope that opens the file to callers, or NULL. */
static const char *
scope_opens(
    const struct rootlint *rl, const struct path_scope *s, const char *real)
{
	const char *tail;
	char *root;
	size_t i;
	int opens;

	for (i = 0; !s->anywhere && i < s->roots.n; i++) {
		/* nobody puts one into the directory of a caller */
		if (strchr(s->roots.v[i], '{') != NULL)
			continue;
		if ((root = real_root(rl, s->roots.v[i])) == NULL)
			continue;
		tail = path_below(root, real);
		opens = tail != NULL && *tail != '\0' &&
			!scope_denies(s, tail - 1, real);
		free(root);
		if (opens)
			return s->roots.v[i];
	}
	return NULL;
}

static const char *
rule_opens(const struct rootlint *rl, const struct rule *r, const char *real)
{
	const char *root = NULL;
	size_t i;

	if (r->has_paths && r->nparams == 0)
		root = scope_opens(rl, &r->paths, real);
	for (i = 0; root == NULL && r->has_paths && i < r->nparams; i++)
		root = scope_opens(rl, &r->params[i].scope, real);
	if (root == NULL && r->has_commands && r->commands.has_cwd)
		root = scope_opens(rl, &r->commands.cwd, real);
	return root;
}

/* Started by root, a service reads token files that its workers cannot. */
static void
lint_secret(const struct rootlint *rl, const struct conf_rules *rs,
    const struct secret_file *f)
{
	char *real = real_root(rl, f->path);
	const char *root = NULL;
	size_t i;

	for (i = 0; real != NULL && dir_over(rl, real) == NULL &&
		    root == NULL && i < rs->n;
	     i++)
		if (!rs->v[i].deny)
			root = rule_opens(rl, &rs->v[i], real);
	if (root != NULL)
		findings_add(rl->f, FIND_WARN, "config.token_file_reachable",
		    f->at.file, f->at.line, f->at.col,
		    "\"token_file\": %.400s lies in %.400s, which the rule at "
		    "%.200s:%u opens to callers; move it, or deny it there",
		    f->path, root, rs->v[i - 1].at.file, rs->v[i - 1].at.line);
	free(real);
}

void
conf_lint_roots(const struct conf *c, const struct conf_world *w,
    const struct strlist *protect, struct findings *f)
{
	struct rootlint rl = {.w = w, .protect = protect, .f = f};
	const struct conf_rules *rs = c->rules;
	int commands = 0;
	size_t i;

	for (i = 0; i < rs->n; i++) {
		if (rs->v[i].deny)
			continue;
		lint_rule_roots(&rl, &rs->v[i]);
		commands |= rs->v[i].has_commands;
	}
	for (i = 0; i < rs->nsecrets && (w == NULL || !w->root_start); i++)
		lint_secret(&rl, rs, &rs->secrets[i]);
	/* where the commands of a session work */
	rl.at = &rs->sandbox_at;
	rl.rule = NULL;
	if (commands && c->sandbox_enabled && c->workspace_root != NULL)
		lint_root(&rl, "workspace_root", c->workspace_root);
}
