/*
 * SPDX-License-Identifier: ISC
 *
 * Which statements a call is tried against, in the order of the allow pass.
 * A decision must not cost more for rules that cannot match, so statements
 * are passed over by two words of bits each: one for the principals they
 * speak to, one for the roots they have.  Both may let one through that does
 * not match, and neither passes over one that does.  Pure.
 */
#include <stdlib.h>

#include "policy/engine.h"

/* ---- roots as bits ---- */

/* FNV-1a, so that a directory's is a state on the way to what lies in it. */
#define HASH_START 14695981039346656037ULL

static uint64_t
hash_byte(uint64_t h, char c)
{
	return (h ^ (unsigned char)c) * 1099511628211ULL;
}

static uint64_t
hash_bit(uint64_t h)
{
	return 1ULL << ((h ^ (h >> 32)) % 64);
}

/* The bit of a directory; "/" has all of them. */
static uint64_t
dir_bit(const char *dir)
{
	uint64_t h = HASH_START;

	if (dir[1] == '\0')
		return UINT64_MAX;

	for (; *dir != '\0'; dir++)
		h = hash_byte(h, *dir);
	return hash_bit(h);
}

/* The bits of a path and of every directory above it but "/". */
static uint64_t
path_bits(const char *path)
{
	uint64_t h = hash_byte(HASH_START, '/'), bits = 0;

	for (path++; *path != '\0'; path++) {
		if (*path == '/')
			bits |= hash_bit(h);
		h = hash_byte(h, *path);
	}
	return bits | hash_bit(h);
}

/* The one path parameter of an op for which its path says enough, or NULL. */
static const struct op_param *
lone_path(const struct op *op)
{
	const struct op_param *q, *found = NULL;

	for (q = op->params; q->name != NULL; q++) {
		if (q->type != T_PATH && q->type != T_PATHLIST)
			continue;
		if (found != NULL || q->type == T_PATHLIST ||
		    (q->roles & R_CWD) != 0)
			return NULL;
		found = q;
	}
	return op->needs == 0 ? found : NULL;
}

static uint64_t
scope_bits(const struct policy *p, const struct pscope *s)
{
	uint64_t bits = 0;
	size_t i;

	/* What lacks a scope is refused for that, whatever the path. */
	if (s == NULL || s->nroots == 0)
		return UINT64_MAX;
	for (i = 0; i < s->nroots; i++)
		bits |= dir_bit(p->roots[s->roots[i].root].path) |
			dir_bit(p->roots[s->roots[i].root].canon);
	return bits;
}

int
cands_index(const struct policy *p, uint16_t op, struct opidx *x)
{
	const struct op_param *q = lone_path(&ops[op]);
	size_t i;

	if (q == NULL || x->nallow == 0)
		return 0;
	if (x->allow_roots == NULL)
		x->allow_roots = calloc(x->nallow, sizeof(*x->allow_roots));
	if (x->allow_roots == NULL)
		return -1;
	for (i = 0; i < x->nallow; i++)
		x->allow_roots[i] =
		    scope_bits(p, rule_scope(x->allow[i].rule, q));
	return 0;
}

/* ---- the statements of one call ---- */

/* The first statement from i on that may match; nallow when there is none. */
static size_t
next(const struct opidx *x, size_t i, uint64_t who, const uint64_t *roots,
    uint64_t path)
{
	if (roots == NULL)
		return stmt_next(x->allow_bits, i, x->nallow, who);
	for (; i < x->nallow; i++)
		if ((roots[i] & path) != 0 && (x->allow_bits[i] & who) != 0)
			break;
	return i;
}

/* 1 when some root of the scope contains the path by its name.  Without a
 * scope that is not the question. */
static int
contains(const struct policy *p, const struct pscope *s, const char *path)
{
	size_t i;

	if (s == NULL || s->nroots == 0)
		return 1;
	for (i = 0; i < s->nroots; i++)
		if (root_tail(p, &s->roots[i], NULL, path) != NULL)
			return 1;
	return 0;
}

/* The first statement that speaks to the caller, nallow when none does. */
static size_t
first(const struct opidx *x, const struct principal *who, uint64_t bits)
{
	size_t i = stmt_next(x->allow_bits, 0, x->nallow, bits);

	while (i < x->nallow && !stmt_matches(&x->allow[i], who, bits))
		i = stmt_next(x->allow_bits, i + 1, x->nallow, bits);
	return i;
}

int
cands_any(const struct policy *p, uint16_t op, const struct principal *who,
    uint64_t bits)
{
	const struct opidx *x = &p->ops[op];

	return first(x, who, bits) < x->nallow;
}

int
cands_collect(
    const struct policy *p, const struct call *call, struct plan_priv *priv)
{
	const struct opidx *x = &p->ops[call->op];
	const uint64_t *roots = NULL;
	uint64_t path = 0;
	const struct pvalue *v = priv->values;
	const struct stmt *st;
	struct pcand *cand;
	size_t from = first(x, call->who, priv->who_bits), i;

	if (!call->explain && priv->nvalues == 1 && v->norm != NULL &&
	    x->allow_roots != NULL) {
		roots = x->allow_roots;
		path = path_bits(v->norm);
	}
	for (i = next(x, from, priv->who_bits, roots, path); i < x->nallow;
	     i = next(x, i + 1, priv->who_bits, roots, path)) {
		st = &x->allow[i];
		if (!stmt_matches(st, call->who, priv->who_bits) ||
		    (roots != NULL &&
			!contains(p, rule_scope(st->rule, v->param), v->norm)))
			continue;
		cand =
		    grow((void **)&priv->cands, &priv->ncands, sizeof(*cand));
		if (cand == NULL)
			return -1;
		cand->st = st;
		cand->cwd = (struct pslot){-1, C_OK};
	}
	/* The first one's refusal is the answer, also when it was not tried. */
	priv->passed_first =
	    from < x->nallow &&
	    (priv->ncands == 0 || priv->cands[0].st != &x->allow[from]);
	return 0;
}
