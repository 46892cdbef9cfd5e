/*
 * SPDX-License-Identifier: ISC
 *
 * What the compiled rules mean for each operation, worked out once: the
 * statements in the order of the allow pass, the denies, the anchors; and the
 * questions about a policy as a whole.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"

/* Places that no call may touch, whatever a rule says. */
static const char *const system_dirs[] = {"/proc", "/sys", "/dev"};

/* What every sandbox shows anyway. */
static const char *const shown_dirs[] = {
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

/* ---- statements ---- */

/* The selector of highest rank by which the rule means the op, or NULL. */
static const char *
best_selector(const struct prule *r, uint16_t op, enum sel_rank *rank)
{
	const char *best = NULL;
	enum sel_rank this;
	size_t i;

	*rank = SEL_BAD;
	for (i = 0; i < r->sel.n; i++) {
		if (!selector_matches(r->sel.v[i], op, r->deny))
			continue;
		this = selector_rank(r->sel.v[i]);
		if (best == NULL || this > *rank) {
			best = r->sel.v[i];
			*rank = this;
		}
	}
	return best;
}

/* (rank desc, has principals desc, declaration order) */
static int
stmt_cmp(const void *va, const void *vb)
{
	const struct stmt *a = va, *b = vb;
	int ap = a->rule->principals.n > 0, bp = b->rule->principals.n > 0;

	if (a->rank != b->rank)
		return a->rank > b->rank ? -1 : 1;
	if (ap != bp)
		return ap ? -1 : 1;
	return a->rule->index < b->rule->index ? -1 : 1;
}

/* Environment and operator remove what they disable; health only when it is
 * named. */
static int
unmounts(const struct prule *r, uint16_t op, enum sel_rank rank)
{
	return r->unmount && (op != OP_core_health || rank == SEL_EXACT);
}

static int
index_rule(struct opidx *x, uint16_t op, const struct prule *r)
{
	enum sel_rank rank;
	const char *sel = best_selector(r, op, &rank);
	struct stmt *st;

	if (sel == NULL)
		return 0;
	if (r->unmount) {
		if (x->removed == NULL && unmounts(r, op, rank))
			x->removed = r;
		return 0;
	}
	st = r->deny ? grow((void **)&x->deny, &x->ndeny, sizeof(*st))
		     : grow((void **)&x->allow, &x->nallow, sizeof(*st));
	if (st == NULL)
		return -1;
	st->rule = r;
	st->sel = sel;
	st->bits = r->bits;
	st->all = r->principals.n == 0;
	st->rank = rank;
	return 0;
}

int
stmt_matches(
    const struct stmt *st, const struct principal *who, uint64_t who_bits)
{
	if (st->all)
		return 1;
	return (st->bits & who_bits) != 0 &&
	       principals_match(&st->rule->principals, st->bits, who, who_bits);
}

size_t
stmt_next(const uint64_t *b, size_t i, size_t n, uint64_t who_bits)
{
	for (; n - i >= 8; i += 8)
		if (((b[i] | b[i + 1] | b[i + 2] | b[i + 3] | b[i + 4] |
			 b[i + 5] | b[i + 6] | b[i + 7]) &
			who_bits) != 0)
			break;
	while (i < n && (b[i] & who_bits) == 0)
		i++;
	return i;
}

static int
bits_of(const struct stmt *st, size_t n, uint64_t **out)
{
	size_t i;

	if (n == 0)
		return 0;
	if ((*out = calloc(n, sizeof(**out))) == NULL)
		return -1;
	for (i = 0; i < n; i++)
		(*out)[i] = st[i].all ? UINT64_MAX : st[i].bits;
	return 0;
}

/* ---- anchors and programs ---- */

static int
add_root(struct opidx *x, const struct scope_root *root)
{
	struct scope_root *sr;
	size_t j;

	for (j = 0; j < x->nroots; j++)
		if (x->roots[j].root == root->root &&
		    x->roots[j].tmpl == root->tmpl)
			return 0;
	sr = grow((void **)&x->roots, &x->nroots, sizeof(*sr));
	if (sr == NULL)
		return -1;
	*sr = *root;
	return 0;
}

static int
add_roots(struct opidx *x, const struct pscope *s)
{
	size_t i;

	for (i = 0; i < s->nroots; i++)
		if (add_root(x, &s->roots[i]) == -1)
			return -1;
	return 0;
}

static int
strlist_join(struct strlist *dst, const struct strlist *src)
{
	size_t i;

	for (i = 0; i < src->n; i++)
		if (!strlist_has(dst, src->v[i]) &&
		    strlist_add(dst, src->v[i], strlen(src->v[i])) == -1)
			return -1;
	return 0;
}

static int
index_anchors(const struct policy *p, struct opidx *x, const struct op *op)
{
	const struct scope_root ws = {(uint32_t)p->ws_root, TMPL_WORKSPACE};
	const struct op_param *param;
	const struct pscope *s;
	size_t i;

	for (i = 0; i < x->nallow; i++) {
		const struct prule *r = x->allow[i].rule;

		for (param = op->params; param->name != NULL; param++) {
			s = rule_scope(r, param);
			if (s != NULL && add_roots(x, s) == -1)
				return -1;
		}
		if ((op->needs & N_COMMANDS) == 0 || !r->has_commands)
			continue;
		if (strlist_join(&x->exec_dirs, &r->commands.exec_dirs) == -1 ||
		    (p->ws_root >= 0 && add_root(x, &ws) == -1))
			return -1;
	}
	return 0;
}

const struct pscope *
rule_scope(const struct prule *r, const struct op_param *param)
{
	size_t i;

	if (param->type != T_PATH && param->type != T_PATHLIST)
		return NULL;
	if ((param->roles & R_CWD) != 0)
		return r->has_commands && r->commands.has_cwd ? &r->commands.cwd
							      : NULL;
	for (i = 0; i < r->nparams; i++)
		if (strcmp(r->params[i].param, param->name) == 0)
			return &r->params[i].scope;
	return r->nparams == 0 && r->has_paths ? &r->paths : NULL;
}

/* ---- what the helpers must hold ---- */

static void
mark_roots(struct policy *p, const struct pscope *s, unsigned roles)
{
	size_t i;

	for (i = 0; i < s->nroots; i++) {
		struct proot *r = &p->roots[s->roots[i].root];

		if ((roles & R_CWD) != 0) {
			r->exec = 1;
			r->exec_rw |= !s->readonly;
		}
		if ((roles & (R_WRITE | R_DELETE)) != 0 && !s->readonly)
			r->writable = 1;
	}
}

static int
mark_op(struct policy *p, uint16_t op)
{
	const struct opidx *x = &p->ops[op];
	const struct op_param *param;
	const struct pscope *s;
	size_t i, j;

	if ((ops[op].flags & OF_LATER) != 0 || x->removed != NULL)
		return 0;
	if ((ops[op].needs & N_COMMANDS) != 0 && x->nallow > 0 &&
	    p->ws_root >= 0)
		p->roots[p->ws_root].writable = p->roots[p->ws_root].exec =
		    p->roots[p->ws_root].exec_rw = 1;
	for (i = 0; i < x->nallow; i++)
		for (param = ops[op].params; param->name != NULL; param++) {
			s = rule_scope(x->allow[i].rule, param);
			if (s != NULL)
				mark_roots(p, s, param->roles);
		}
	for (i = 0; i < x->exec_dirs.n; i++) {
		const char *dir = x->exec_dirs.v[i];

		for (j = 0; j < nitems(shown_dirs); j++)
			if (path_below(shown_dirs[j], dir) != NULL)
				break;
		if (j == nitems(shown_dirs) &&
		    !strlist_has(&p->exec_dirs, dir) &&
		    strlist_add(&p->exec_dirs, dir, strlen(dir)) == -1)
			return -1;
	}
	return 0;
}

int
policy_index(struct policy *p)
{
	uint16_t op;
	size_t i;

	for (op = 0; op < OP_COUNT; op++) {
		struct opidx *x = &p->ops[op];

		for (i = 0; i < p->nrules; i++)
			if (index_rule(x, op, &p->rules[i]) == -1)
				return -1;
		if (x->nallow > 1)
			qsort(x->allow, x->nallow, sizeof(*x->allow), stmt_cmp);
		if (bits_of(x->allow, x->nallow, &x->allow_bits) == -1 ||
		    bits_of(x->deny, x->ndeny, &x->deny_bits) == -1)
			return -1;
		if (cands_index(p, op, x) == -1)
			return -1;
		if (index_anchors(p, x, &ops[op]) == -1 || mark_op(p, op) == -1)
			return -1;
	}
	return 0;
}

/* ---- the system deny list ---- */

const char *
system_dir_over(const char *path)
{
	size_t i;

	for (i = 0; i < nitems(system_dirs); i++)
		if (path_below(system_dirs[i], path) != NULL)
			return system_dirs[i];
	return NULL;
}

int
system_denies(const struct policy *p, const char *path)
{
	size_t i;

	if (system_dir_over(path) != NULL)
		return 1;
	for (i = 0; i < p->protect.n; i++)
		if (path_below(p->protect.v[i], path) != NULL)
			return 1;
	return 0;
}

int
system_texts(const struct policy *p, struct strlist *out)
{
	char *text;
	size_t i;
	int r;

	for (i = 0; i < nitems(system_dirs); i++)
		if (strlist_add(out, system_dirs[i], strlen(system_dirs[i])) ==
		    -1)
			return -1;
	for (i = 0; i < p->protect.n; i++) {
		text = glob_quote(p->protect.v[i], "");
		if (text == NULL)
			return 1;
		r = strlist_add(out, text, strlen(text));
		free(text);
		if (r == -1)
			return -1;
	}
	return 0;
}

int
policy_protect(struct policy *p, const char *dir)
{
	char path[ABX_PATH_MAX + 1];

	if (path_normal_into(dir, path) == -1 || strcmp(path, "/") == 0)
		return -1;
	if (strlist_has(&p->protect, path))
		return 0;
	return strlist_add(&p->protect, path, strlen(path));
}

const struct strlist *
policy_protected(const struct policy *p)
{
	return &p->protect;
}

/* ---- roots ---- */

size_t
policy_nroots(const struct policy *p)
{
	return p->nroots;
}

void
policy_root(const struct policy *p, size_t i, struct policy_root *out)
{
	const struct proot *r = &p->roots[i];

	out->path = r->path;
	out->writable = r->writable;
	out->exec = r->exec;
	out->exec_rw = r->exec_rw;
}

static int
respell_rule(struct prule *r, const char *from, const char *to)
{
	size_t i;

	if (pglobs_respell(&r->paths.deny, from, to) == -1 ||
	    pglobs_respell(&r->commands.cwd.deny, from, to) == -1 ||
	    pglobs_respell(&r->deny_paths, from, to) == -1)
		return -1;
	for (i = 0; i < r->nparams; i++)
		if (pglobs_respell(&r->params[i].scope.deny, from, to) == -1)
			return -1;
	return 0;
}

int
policy_set_root(struct policy *p, size_t i, const char *canonical)
{
	struct proot *r;
	char *copy;
	uint16_t op;
	size_t k;

	if (i >= p->nroots || !path_is_normal(canonical))
		return -1;
	r = &p->roots[i];
	if (strcmp(r->canon, canonical) == 0)
		return 0;
	copy = strdup(canonical);
	if (copy == NULL)
		return -1;
	for (k = 0; k < p->nrules; k++)
		if (respell_rule(&p->rules[k], r->path, canonical) == -1) {
			free(copy);
			return -1;
		}
	if (r->canon != r->path)
		free(r->canon);
	r->canon = copy;
	for (op = 0; op < OP_COUNT; op++)
		if (cands_index(p, op, &p->ops[op]) == -1)
			return -1;
	return 0;
}

const struct strlist *
policy_exec_dirs(const struct policy *p)
{
	return &p->exec_dirs;
}

/* ---- rules and mounts ---- */

const char *
policy_rule_origin(const struct policy *p, size_t i)
{
	return i < p->nrules ? p->rules[i].origin : "";
}

const char *
policy_rule_name(const struct policy *p, size_t i)
{
	return i < p->nrules ? p->rules[i].name : "";
}

size_t
policy_nrules(const struct policy *p)
{
	return p->nrules;
}

long
policy_removed_by(const struct policy *p, uint16_t op)
{
	if (op >= OP_COUNT || p->ops[op].removed == NULL ||
	    (p->ops[op].nallow == 0 && op != OP_core_health))
		return -1;
	return (long)p->ops[op].removed->index;
}

const struct strlist *
policy_ceiling_roots(const struct policy *p)
{
	return p->ceiling.has_roots ? &p->ceiling.roots : NULL;
}

int
policy_has_effect(const struct policy *p, unsigned effects)
{
	uint16_t op;

	for (op = 0; op < OP_COUNT; op++)
		if ((ops[op].effects & effects) != 0 &&
		    (ops[op].flags & OF_LATER) == 0 &&
		    p->ops[op].removed == NULL &&
		    (p->ops[op].nallow > 0 || op == OP_core_health))
			return 1;
	return 0;
}

/* Health is there for everybody; only its own name takes it away. */
static int
health_mounted(
    const struct opidx *x, const struct principal *who, uint64_t who_bits)
{
	size_t i;

	for (i = 0; i < x->ndeny; i++)
		if (x->deny[i].rank == SEL_EXACT && !x->deny[i].rule->scoped &&
		    stmt_matches(&x->deny[i], who, who_bits))
			return 0;
	return 1;
}

int
op_mounted(const struct policy *p, uint16_t op, const struct principal *who,
    uint64_t who_bits)
{
	const struct opidx *x;
	size_t i;

	if (op >= OP_COUNT || (ops[op].flags & OF_LATER) != 0)
		return 0;
	x = &p->ops[op];
	if (x->removed != NULL)
		return 0;
	if (op == OP_core_health)
		return health_mounted(x, who, who_bits);
	for (i = stmt_next(x->allow_bits, 0, x->nallow, who_bits);
	     i < x->nallow;
	     i = stmt_next(x->allow_bits, i + 1, x->nallow, who_bits))
		if (stmt_matches(&x->allow[i], who, who_bits))
			return 1;
	return 0;
}

int
policy_mounted(const struct policy *p, uint16_t op, const struct principal *who)
{
	return op_mounted(p, op, who, principal_bits(who));
}
