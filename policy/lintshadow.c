/*
 * SPDX-License-Identifier: ISC
 *
 * The lint for rules that can never win: for every operation of theirs, a
 * rule that is tried before speaks to the same callers and admits whatever
 * they admit.  Only what is certain is said, so a scope covers another only
 * when that shows in the texts.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/confkey.h"
#include "policy/lint.h"

/* rank[rule * OP_COUNT + op]: best rank of the rule's selectors, 0: none. */
struct shadow {
	const struct conf_rules *rs;
	uint8_t *rank;
};

static uint8_t
rule_rank(const struct rule *r, uint16_t op)
{
	uint8_t best = 0, k;
	size_t i;

	for (i = 0; !r->deny && !r->flawed && i < r->sel.n; i++) {
		k = (uint8_t)selector_rank(r->sel.v[i]);
		if (k > best && selector_matches(r->sel.v[i], op, 0))
			best = k;
	}
	return best;
}

static int
list_has_all(const struct strlist *big, const struct strlist *small)
{
	size_t i, k;

	for (i = 0; i < small->n; i++) {
		for (k = 0; k < big->n; k++)
			if (strcmp(big->v[k], small->v[i]) == 0)
				break;
		if (k == big->n)
			return 0;
	}
	return 1;
}

/* 1 when dir is root or lies below it; only literally equal templates. */
static int
root_covers(const char *root, const char *dir)
{
	size_t n = strlen(root);

	if (strchr(root, '{') != NULL)
		return strcmp(root, dir) == 0;
	return strncmp(root, dir, n) == 0 && (dir[n] == '/' || dir[n] == '\0');
}

/* 1 when a admits every path that b admits. */
static int
path_covers(const struct path_scope *a, const struct path_scope *b)
{
	size_t i, k;

	if (a->anywhere || b->anywhere)
		return 0;
	/* A relative pattern means something else below another root. */
	if (a->deny.n > 0 && !list_has_all(&a->roots, &b->roots))
		return 0;
	if (!list_has_all(&b->deny, &a->deny) || a->readonly > b->readonly ||
	    a->symlinks_deny > b->symlinks_deny ||
	    a->allow_hardlinks < b->allow_hardlinks ||
	    a->create_dirs < b->create_dirs)
		return 0;
	for (i = 0; i < b->roots.n; i++) {
		for (k = 0; k < a->roots.n; k++)
			if (root_covers(a->roots.v[k], b->roots.v[i]))
				break;
		if (k == a->roots.n)
			return 0;
	}
	/* Relative paths start at the first root: it must be the same. */
	return b->roots.n > 0 && a->roots.n > 0 &&
	       strcmp(a->roots.v[0], b->roots.v[0]) == 0;
}

/* 1 when two structs print the same by their table. */
static int
same_text(const struct ckey *keys, const void *a, const void *b)
{
	struct out x = {0}, y = {0};
	int same;

	wbuf_init(&x.w, 1024 * 1024);
	wbuf_init(&y.w, 1024 * 1024);
	out_object(&x, keys, a);
	out_object(&y, keys, b);
	same = !x.w.err && !y.w.err && x.w.len == y.w.len &&
	       memcmp(x.w.p, y.w.p, x.w.len) == 0;
	wbuf_free(&x.w);
	wbuf_free(&y.w);
	return same;
}

static int
scopes_cover(const struct rule *a, const struct rule *b, const struct op *op)
{
	const struct op_param *p;
	const struct path_scope *x, *y;

	for (p = op->params; p->name != NULL; p++) {
		if ((p->type != T_PATH && p->type != T_PATHLIST) ||
		    (p->roles & ~(unsigned)R_CWD) == 0)
			continue;
		x = rule_path_scope(a, p->name);
		y = rule_path_scope(b, p->name);
		if (x == NULL || y == NULL || !path_covers(x, y))
			return 0;
	}
	if ((op->needs & N_AGENT) != 0 &&
	    (!a->has_agent || !b->has_agent ||
		!same_text(agent_keys, &a->agent, &b->agent)))
		return 0;
	if ((op->needs & N_COMMANDS) != 0 &&
	    (!a->has_commands || !b->has_commands ||
		!same_text(command_keys, &a->commands, &b->commands)))
		return 0;
	return (op->needs & N_URLS) == 0 ||
	       (a->has_urls && b->has_urls &&
		   same_text(url_keys, &a->urls, &b->urls));
}

/* 1 when a (at index i) is tried before b (at k) and admits whatever b
 * does, for this op. */
static int
rule_shadows(const struct shadow *s, size_t i, size_t k, uint16_t op)
{
	const struct rule *a = &s->rs->v[i], *b = &s->rs->v[k];
	uint8_t ra = s->rank[i * OP_COUNT + op],
		rb = s->rank[k * OP_COUNT + op];
	int pa = a->principals.n > 0, pb = b->principals.n > 0;

	if (i == k || ra == 0 || ra < rb)
		return 0;
	if (ra == rb && (pa < pb || (pa == pb && i > k)))
		return 0;
	if (pa && (!pb || !list_has_all(&a->principals, &b->principals)))
		return 0;
	return scopes_cover(a, b, &ops[op]);
}

/* The rule that shadows b for its first op when all its ops are shadowed, or
 * NULL. */
static const struct rule *
shadow_find(const struct shadow *s, size_t k)
{
	const struct rule *found = NULL;
	uint16_t op;
	size_t i;

	for (op = 0; op < OP_COUNT; op++) {
		if (s->rank[k * OP_COUNT + op] == 0)
			continue;
		for (i = 0; i < s->rs->n; i++)
			if (rule_shadows(s, i, k, op))
				break;
		if (i == s->rs->n)
			return NULL;
		if (found == NULL)
			found = &s->rs->v[i];
	}
	return found;
}

void
lint_shadowed(struct lint *l)
{
	struct shadow s = {.rs = l->c->rules};
	const struct rule *by;
	uint16_t op;
	size_t k;

	if (s.rs->n == 0)
		return;
	if ((s.rank = calloc(s.rs->n, OP_COUNT)) == NULL) {
		l->f->nomem = 1;
		return;
	}
	for (k = 0; k < s.rs->n; k++)
		for (op = 0; op < OP_COUNT; op++)
			s.rank[k * OP_COUNT + op] = rule_rank(&s.rs->v[k], op);
	for (k = 0; k < s.rs->n; k++) {
		/* Presets repeat what they all begin with. */
		if (s.rs->v[k].deny || s.rs->v[k].preset != NULL)
			continue;
		if ((by = shadow_find(&s, k)) != NULL)
			lint_rule(l, &s.rs->v[k], FIND_WARN, "config.shadowed",
			    "the rule in line %u is tried before and admits "
			    "all that this one does",
			    by->at.line);
	}
	free(s.rank);
}
