/*
 * SPDX-License-Identifier: ISC
 *
 * The list of paths that pathd must look at before a call can be decided, and
 * the slots that say where each path of each candidate went.  Relative paths
 * are anchored before they are normalised; a path that lies outside a
 * statement's roots by its name is never looked at, so its existence cannot
 * show.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/planner.h"

/* ---- items ---- */

static int
refs_equal(const struct plan_item *it, const struct rootref *refs, size_t n)
{
	size_t i;

	if (it->nrefs != n)
		return 0;
	for (i = 0; i < n; i++)
		if (it->refs[i].root != refs[i].root ||
		    strcmp(it->refs[i].sub, refs[i].sub) != 0)
			return 0;
	return 1;
}

static int
item_find(const struct plan *plan, const char *path, int nofollow,
    const struct rootref *refs, size_t n)
{
	size_t i;

	for (i = 0; i < plan->nitems; i++)
		if (plan->items[i].nofollow == nofollow &&
		    strcmp(plan->items[i].path, path) == 0 &&
		    refs_equal(&plan->items[i], refs, n))
			return (int)i;
	return -1;
}

/* Ask for a path: its index, -1 out of memory, -2 when the plan is full. */
static int
item_add(
    struct planner *pl, const struct pscope *s, const char *path, int nofollow)
{
	struct plan *plan = pl->plan;
	struct plan_item *it;
	struct rootref *refs;
	size_t n;
	int i;

	if (pscope_refs(s, &pl->priv->subs, &refs, &n) == -1)
		return -1;
	i = item_find(plan, path, nofollow, refs, n);
	if (i >= 0 || plan->nitems >= ABX_MAX_RESOLVE) {
		free(refs);
		return i >= 0 ? i : -2;
	}
	if (plan->items == NULL) {
		plan->items = calloc(ABX_MAX_RESOLVE, sizeof(*plan->items));
		pl->priv->uses =
		    calloc(ABX_MAX_RESOLVE, sizeof(*pl->priv->uses));
	}
	it = plan->items != NULL ? &plan->items[plan->nitems] : NULL;
	if (it == NULL || pl->priv->uses == NULL ||
	    (it->path = strdup(path)) == NULL) {
		free(refs);
		return -1;
	}
	it->nofollow = nofollow;
	it->refs = refs;
	it->nrefs = n;
	return (int)plan->nitems++;
}

static void
plan_deny(struct planner *pl, long rule, const char *param)
{
	pl->plan->code = C_POL_PATH_DENIED;
	pl->priv->rule = rule;
	pl->priv->param = param;
	if (rule >= 0)
		pl->priv->reason = pl->p->rules[rule].reason;
}

/* Ask for the canonical form of a lexical path of one scope.  The slot says
 * where it went; with a whole-call denial the plan has its code.  0 or -1. */
static int
slot_fill(struct planner *pl, const struct pscope *s, const char *lexical,
    int nofollow, const char *param, struct pslot *slot)
{
	char path[ABX_PATH_MAX + 1];
	long rule;

	*slot = (struct pslot){-1, C_POL_PATH_NOT_ALLOWED};
	if (param != NULL &&
	    deny_path(pl->p, pl->call->op, pl->priv, lexical, &rule)) {
		plan_deny(pl, rule, param);
		return 0;
	}
	if (pscope_spell(pl->p, s, &pl->priv->subs, lexical, path) == -1)
		return 0;
	if (param != NULL &&
	    deny_path(pl->p, pl->call->op, pl->priv, path, &rule)) {
		plan_deny(pl, rule, param);
		return 0;
	}
	slot->code = C_POL_PATH_DENIED;
	if (pglobs_cover(pl->p, &s->deny, s->roots, s->nroots, path))
		return 0;
	slot->item = item_add(pl, s, path, nofollow);
	slot->code = slot->item >= 0 ? C_OK : C_ARGS_TOO_LARGE;
	if (slot->item == -1)
		return -1;
	if (slot->item < 0)
		slot->item = -1;
	return 0;
}

/* A relative argument is also looked at from the other anchors, for the deny
 * rules alone; one that cannot be looked at is denied. */
static int
anchors_fill(struct planner *pl, const struct pscope *s, size_t value)
{
	const struct pvalue *v = &pl->priv->values[value];
	char path[ABX_PATH_MAX + 1];
	struct pslot slot;
	size_t i;

	if (pl->priv->path_denies == 0)
		return 0;
	for (i = 1; i < s->nroots && pl->plan->code == C_OK; i++) {
		if (pscope_anchor(
			pl->p, s, &pl->priv->subs, i, v->text, path) != C_OK)
			continue;
		if (slot_fill(pl, s, path, (v->param->roles & R_DELETE) != 0,
			v->param->name, &slot) == -1)
			return -1;
		if (slot.item >= 0)
			pl->priv->uses[slot.item] |= 1ULL << value;
		else if (slot.code == C_ARGS_TOO_LARGE)
			plan_deny(pl, -1, v->param->name);
	}
	return 0;
}

static int
value_fill(struct planner *pl, struct pcand *cand, size_t value)
{
	const struct pvalue *v = &pl->priv->values[value];
	const struct pscope *s = cand_scope(cand, v->param);
	struct pslot *slot = &cand->slots[value];
	const char *lexical = v->norm;
	char path[ABX_PATH_MAX + 1];

	*slot = (struct pslot){-1, C_POL_SCOPE_REQUIRED};
	if (s == NULL || s->nroots == 0)
		return 0;
	if (lexical == NULL) {
		slot->code =
		    pscope_anchor(pl->p, s, &pl->priv->subs, 0, v->text, path);
		if (slot->code != C_OK)
			return 0;
		lexical = path;
	}
	if (slot_fill(pl, s, lexical, (v->param->roles & R_DELETE) != 0,
		v->param->name, slot) == -1)
		return -1;
	if (slot->item >= 0)
		pl->priv->uses[slot->item] |= 1ULL << value;
	return v->norm == NULL ? anchors_fill(pl, s, value) : 0;
}

/* ---- commands ---- */

static int
cwd_given(const struct plan_priv *priv, const struct pcand *cand,
    const struct pslot **slot)
{
	size_t i;

	for (i = 0; i < priv->nvalues; i++)
		if ((priv->values[i].param->roles & R_CWD) != 0) {
			*slot = &cand->slots[i];
			return 1;
		}
	*slot = &cand->cwd;
	return 0;
}

/* ".." behind a name: the kernel goes up from where a link leads, a text
 * cannot. */
static int
climbs_after_name(const char *word)
{
	int named = 0;
	size_t len;

	for (;;) {
		word += strspn(word, "/");
		len = strcspn(word, "/");
		if (len == 0)
			return 0;
		if (len == 2 && word[0] == '.' && word[1] == '.') {
			if (named)
				return 1;
		} else if (len != 1 || word[0] != '.')
			named = 1;
		word += len;
	}
}

/* One word that {path} may stand for. */
static int
word_fill(struct planner *pl, struct pcand *cand, size_t i, const char *cwd)
{
	const char *word = pl->priv->cmd.words.v[i];
	char path[ABX_PATH_MAX + 1];
	int r;

	if (!path_acceptable(word) || climbs_after_name(word))
		return 0;
	r = word[0] == '/' ? path_normal_into(word, path)
			   : path_join_into(cwd, word, path);
	if (r == -1)
		return 0;
	if (slot_fill(pl, cand_cwd(cand), path, 0, NULL, &cand->words[i]) == -1)
		return -1;
	if (cand->words[i].code == C_ARGS_TOO_LARGE)
		cand->words_full = 1;
	return 0;
}

/* Which words the patterns of the scope would look at: 0 or -1. */
static int
words_wanted(const struct planner *pl, const struct cscope *c, uint8_t *want)
{
	size_t i;

	for (i = 0; i < c->nallow; i++)
		if (argv_pat_has_path(c->allow[i]) &&
		    argv_pat_paths(c->allow[i], &pl->priv->cmd.norm,
			&c->exec_dirs, want) == -1)
			return -1;
	return 0;
}

static int
words_fill(struct planner *pl, struct pcand *cand, const char *cwd)
{
	size_t i, n = pl->priv->cmd.words.n;
	uint8_t *want = calloc(n + 1, 1);
	int r = -1;

	cand->words = calloc(n + 1, sizeof(*cand->words));
	if (want == NULL || cand->words == NULL)
		goto out;
	for (i = 0; i < n; i++)
		cand->words[i] = (struct pslot){-1, C_POL_PATH_NOT_ALLOWED};
	r = words_wanted(pl, &cand->st->rule->commands, want);
	for (i = 0; i < n && r == 0; i++)
		if (want[i])
			r = word_fill(pl, cand, i, cwd);
out:
	free(want);
	return r;
}

static int
command_fill(struct planner *pl, struct pcand *cand)
{
	const struct cscope *c = &cand->st->rule->commands;
	const struct pscope *s = cand_cwd(cand);
	const struct pslot *slot;
	char path[ABX_PATH_MAX + 1];
	size_t i;

	if (s == NULL)
		return 0;
	if (!cwd_given(pl->priv, cand, &slot) || s == &cand->ws) {
		cand->cwd.code =
		    pscope_anchor(pl->p, s, &pl->priv->subs, 0, ".", path);
		if (cand->cwd.code == C_OK &&
		    slot_fill(pl, s, path, 0, NULL, &cand->cwd) == -1)
			return -1;
	}
	if (slot->item < 0 || pl->priv->cmd.shell)
		return 0;
	for (i = 0; i < c->nallow; i++)
		if (argv_pat_has_path(c->allow[i]))
			return words_fill(
			    pl, cand, pl->plan->items[slot->item].path);
	return 0;
}

/* ---- all of them ---- */

int
slots_fill(struct planner *pl)
{
	struct plan_priv *priv = pl->priv;
	size_t i, v;

	priv->slots =
	    calloc(priv->ncands * priv->nvalues + 1, sizeof(*priv->slots));
	if (priv->slots == NULL)
		return -1;
	for (i = 0; i < priv->ncands; i++) {
		struct pcand *cand = &priv->cands[i];

		cand->slots = priv->slots + i * priv->nvalues;
		if (priv->cmd.given)
			session_scope(pl->p, priv, cand);
		for (v = 0; v < priv->nvalues; v++) {
			if (value_fill(pl, cand, v) == -1)
				return -1;
			if (pl->plan->code != C_OK)
				return 0;
		}
		if (priv->cmd.given && command_fill(pl, cand) == -1)
			return -1;
	}
	return 0;
}
