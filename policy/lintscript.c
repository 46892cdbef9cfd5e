/*
 * SPDX-License-Identifier: ISC
 *
 * The lint of scripts that a command pattern names and that callers may change
 * by file operations, by whichever rule.
 */
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"
#include "policy/lint.h"

/* The part of a root that is not a placeholder. */
static size_t
fixed_len(const char *root)
{
	const char *brace = strchr(root, '{');

	return brace == NULL ? strlen(root) : (size_t)(brace - root - 1);
}

static int
scope_writes_below(const struct path_scope *s, const char *path)
{
	size_t i, n;

	for (i = 0; !s->readonly && i < s->roots.n; i++) {
		n = fixed_len(s->roots.v[i]);
		if (strncmp(path, s->roots.v[i], n) == 0 && path[n] == '/')
			return 1;
	}
	return 0;
}

/* 1 when a file operation of the rule may change that path. */
static int
rule_writes(const struct rule *r, const char *path)
{
	const struct op_param *p;
	const struct path_scope *s;
	uint16_t op;

	if (r->deny || !r->has_paths)
		return 0;
	for (op = 0; op < OP_COUNT; op++) {
		if (!rule_selects(r, op))
			continue;
		for (p = ops[op].params; p->name != NULL; p++)
			if ((p->roles & (R_WRITE | R_DELETE)) != 0 &&
			    (s = rule_path_scope(r, p->name)) != NULL &&
			    scope_writes_below(s, path))
				return 1;
	}
	return 0;
}

/* ---- rules by the roots that they write to ---- */

/* 1 when some operation of the rule writes through this scope of it. */
static int
scope_written(const struct rule *r, const struct path_scope *s)
{
	const struct op_param *p;
	uint16_t op;

	for (op = 0; !s->readonly && op < OP_COUNT; op++) {
		if (!rule_selects(r, op))
			continue;
		for (p = ops[op].params; p->name != NULL; p++)
			if ((p->roles & (R_WRITE | R_DELETE)) != 0 &&
			    rule_path_scope(r, p->name) == s)
				return 1;
	}
	return 0;
}

static int
scope_note(struct keymap *m, const struct path_scope *s, size_t rule)
{
	size_t i;

	for (i = 0; i < s->roots.n; i++)
		if (keymap_add(m,
			fnv32(s->roots.v[i], fixed_len(s->roots.v[i])),
			(uint32_t)rule) == -1)
			return -1;
	return 0;
}

int
lint_script_init(struct lint *l)
{
	const struct conf_rules *rs = l->c->rules;
	const struct rule *r;
	size_t i, k;

	for (i = 0; i < rs->n; i++) {
		r = &rs->v[i];
		if (r->deny || !r->has_paths)
			continue;
		if (r->nparams == 0 && scope_written(r, &r->paths) &&
		    scope_note(&l->writable, &r->paths, i) == -1)
			return -1;
		for (k = 0; k < r->nparams; k++)
			if (scope_written(r, &r->params[k].scope) &&
			    scope_note(&l->writable, &r->params[k].scope, i) ==
				-1)
				return -1;
	}
	return 0;
}

/* The first rule by which callers may change the file, or NULL. */
static const struct rule *
writer_of(struct lint *l, const char *path)
{
	const struct conf_rules *rs = l->c->rules;
	size_t n, best = rs->n;
	uint32_t at;

	for (n = 0; path[n] != '\0'; n++) {
		if (path[n] != '/')
			continue;
		for (at = keymap_first(&l->writable, fnv32(path, n), &l->steps);
		     at != KEYMAP_END && l->writable.v[at].value < best;
		     at = keymap_next(&l->writable, at, &l->steps))
			if (rule_writes(&rs->v[l->writable.v[at].value], path))
				best = l->writable.v[at].value;
	}
	return best == rs->n ? NULL : &rs->v[best];
}

/* ---- the lint ---- */

static void
lint_script_word(struct lint *l, const struct rule *r, const char *word)
{
	const struct rule *by = writer_of(l, word);

	if (by != NULL)
		lint_rule(l, r, FIND_WARN, "config.writable_script",
		    "callers may change %.200s by the rule in line %u", word,
		    by->at.line);
}

void
lint_script(struct lint *l, const struct rule *r)
{
	const struct strlist *allow = &r->commands.allow;
	struct strlist words = {0};
	size_t i, k;

	for (i = 0; i < allow->n; i++) {
		if (shlex_split(allow->v[i], &words) == 0)
			for (k = 0; k < words.n; k++)
				if (*words.v[k] == '/')
					lint_script_word(l, r, words.v[k]);
		strlist_clear(&words);
	}
}
