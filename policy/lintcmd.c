/*
 * SPDX-License-Identifier: ISC
 *
 * Lints of command scopes: patterns that let the caller choose what runs,
 * programs that undo a claim of the scope.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/confkey.h"
#include "policy/lint.h"

/* What can be said of one pattern's program. */
struct prog_facts {
	char name[256]; /* without directories */
	int any;	/* the pattern leaves the program open */
	int changes;	/* it can change files, by itself or by what it runs */
	int risky;	/* some class for which arguments must be pinned */
	int open;	/* arguments are not pinned */
};

/* 0, or -1 when the pattern does not compile (a finding elsewhere). */
static int
prog_facts(const char *pattern, struct prog_facts *p)
{
	const char *why, *prog, *base;
	struct argv_pat *pat = argv_pat_new(pattern, 0, &why);

	memset(p, 0, sizeof(*p));
	if (pat == NULL)
		return -1;
	prog = argv_pat_prog(pat);
	p->any = strcmp(prog, "...") == 0 || strpbrk(prog, "*?[{") != NULL;
	base = strrchr(prog, '/');
	strlcpy(p->name, base != NULL ? base + 1 : prog, sizeof(p->name));
	p->changes = p->any || prog_escape_capable(p->name) ||
		     prog_project_file(p->name) || prog_writer(p->name);
	p->risky = p->changes || prog_network(p->name);
	p->open = argv_pat_open(pat);
	argv_pat_free(pat);
	return 0;
}

static void
lint_escape(struct lint *l, const struct rule *r)
{
	const struct strlist *allow = &r->commands.allow;
	struct prog_facts p;
	size_t i;

	for (i = 0; i < allow->n; i++) {
		if (prog_facts(allow->v[i], &p) == -1)
			continue;
		if (p.any)
			lint_rule(l, r, FIND_LINT, "config.escape_capable",
			    "the pattern \"%.200s\" leaves the program open",
			    allow->v[i]);
		else if (p.risky && p.open)
			lint_rule(l, r, FIND_LINT, "config.escape_capable",
			    "\"%.200s\": %.100s does what its arguments say; "
			    "write each of them out, or as {path} or {int}",
			    allow->v[i], p.name);
	}
}

/* The sandbox binds a read-only cwd read-only; only without that layer is
 * the claim empty. */
static void
lint_readonly(struct lint *l, const struct rule *r)
{
	const struct command_scope *s = &r->commands;
	enum find_sev sev =
	    (l->c->require & LAYER_NAMESPACES) != 0 || !l->c->sandbox_enabled
		? FIND_WARN
		: FIND_LINT;
	struct prog_facts p;
	size_t i;

	if (!s->has_cwd || !s->cwd.readonly)
		return;
	if (s->shell || s->unrestricted)
		lint_rule(l, r, sev, "config.readonly_writer",
		    "\"cwd\" is read-only, and any program may run in it");
	for (i = 0; i < s->allow.n; i++)
		if (prog_facts(s->allow.v[i], &p) == 0 && p.changes)
			lint_rule(l, r, sev, "config.readonly_writer",
			    "\"cwd\" is read-only, and %.100s can write",
			    p.name);
}

/* What a command makes after its start is not covered for it, unless the
 * pattern names one place. */
static void
lint_deny(struct lint *l, const struct rule *r)
{
	const struct path_scope *s = &r->commands.cwd;
	size_t i;

	for (i = 0; !s->readonly && i < s->deny.n; i++)
		if (*s->deny.v[i] != '/' ||
		    strpbrk(s->deny.v[i], "*?[") != NULL) {
			lint_rule(l, r, FIND_WARN,
			    "config.deny_not_absolute_in_exec",
			    "\"%.100s\" of \"cwd\" does not bind what a "
			    "running command makes",
			    s->deny.v[i]);
			return;
		}
}

void
lint_commands(struct lint *l, const struct rule *r)
{
	if (!r->has_commands)
		return;
	if (r->commands.shell)
		lint_rule(l, r, FIND_WARN, "config.shell_enabled",
		    "with \"shell\" the patterns do not limit what runs");
	if (!rule_is_full_access(r))
		lint_escape(l, r);
	lint_readonly(l, r);
	lint_script(l, r);
	lint_deny(l, r);
}
