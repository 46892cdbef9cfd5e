/*
 * SPDX-License-Identifier: ISC
 *
 * The lint for rules that can never win: for every operation of theirs, a
 * rule that is tried before speaks to the same callers and admits whatever
 * they admit.  Only what is certain is said, so a scope covers another only
 * when that shows in the texts.  Rules that can do so have what they must
 * share as a key, so that not each is compared with each.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"
#include "policy/keymap.h"
#include "policy/lint.h"

/* Hashes of what two scopes must have in common, as they print. */
struct texts {
	uint32_t commands, urls, agent;
	unsigned failed; /* N_COMMANDS and the like: those that do not print */
};

/* rank[rule * OP_COUNT + op]: best rank of the rule's selectors, 0: none. */
struct shadow {
	const struct conf_rules *rs;
	uint8_t *rank;
	struct texts *texts; /* of each rule */
	struct keymap map;   /* op, rank, scope and caller to rules */
	size_t *steps;
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

/* ---- keys ---- */

static uint32_t
text_key(
    struct texts *t, unsigned need, const struct ckey *keys, const void *obj)
{
	struct out o = {0};
	uint32_t key = 0;

	wbuf_init(&o.w, 1024 * 1024);
	out_object(&o, keys, obj);
	if (o.w.err)
		t->failed |= need;
	else
		key = fnv32(o.w.p, o.w.len);
	wbuf_free(&o.w);
	return key;
}

static void
rule_texts(struct texts *t, const struct rule *r)
{
	if (r->has_commands)
		t->commands =
		    text_key(t, N_COMMANDS, command_keys, &r->commands);
	if (r->has_urls)
		t->urls = text_key(t, N_URLS, url_keys, &r->urls);
	if (r->has_agent)
		t->agent = text_key(t, N_AGENT, agent_keys, &r->agent);
}

static uint32_t
key_join(uint32_t a, uint32_t b)
{
	const uint32_t both[] = {a, b};

	return fnv32(both, sizeof(both));
}

static uint32_t
key_str(const char *s)
{
	return fnv32(s, strlen(s));
}

/* What rules must share, one of which is to cover the other for the op: 0, or
 * -1 when this one neither covers nor is covered. */
static int
scope_key(const struct shadow *s, size_t k, const struct op *op, uint32_t *key)
{
	const struct rule *r = &s->rs->v[k];
	const struct path_scope *x;
	const struct op_param *p;

	*key = key_str(op->id);
	for (p = op->params; p->name != NULL; p++) {
		if ((p->type != T_PATH && p->type != T_PATHLIST) ||
		    (p->roles & ~(unsigned)R_CWD) == 0)
			continue;
		x = rule_path_scope(r, p->name);
		if (x == NULL || x->roots.n == 0)
			return -1;
		*key = key_join(*key, key_str(x->roots.v[0]));
	}
	if ((op->needs & N_COMMANDS) != 0)
		*key = key_join(*key, s->texts[k].commands);
	if ((op->needs & N_URLS) != 0)
		*key = key_join(*key, s->texts[k].urls);
	if ((op->needs & N_AGENT) != 0)
		*key = key_join(*key, s->texts[k].agent);
	return (s->texts[k].failed & op->needs) != 0 ? -1 : 0;
}

/* who: one of the principals, NULL for a rule that names none. */
static uint32_t
full_key(uint32_t scope, unsigned rank, const char *who)
{
	return key_join(key_join(scope, rank), who == NULL ? 0 : key_str(who));
}

static int
shadow_add(struct shadow *s, size_t k)
{
	const struct strlist *who = &s->rs->v[k].principals;
	uint32_t key;
	uint16_t op;
	uint8_t rank;
	size_t i;

	for (op = 0; op < OP_COUNT; op++) {
		rank = s->rank[k * OP_COUNT + op];
		if (rank == 0 || scope_key(s, k, &ops[op], &key) == -1)
			continue;
		if (who->n == 0 &&
		    keymap_add(
			&s->map, full_key(key, rank, NULL), (uint32_t)k) == -1)
			return -1;
		for (i = 0; i < who->n; i++)
			if (keymap_add(&s->map, full_key(key, rank, who->v[i]),
				(uint32_t)k) == -1)
				return -1;
	}
	return 0;
}

/* ---- who shadows whom ---- */

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

/* The first rule with the key that shadows k, if it stands before best. */
static size_t
shadow_try(
    const struct shadow *s, uint32_t key, size_t k, uint16_t op, size_t best)
{
	uint32_t at;

	for (at = keymap_first(&s->map, key, s->steps); at != KEYMAP_END;
	     at = keymap_next(&s->map, at, s->steps)) {
		if (s->map.v[at].value >= best)
			break;
		if (rule_shadows(s, s->map.v[at].value, k, op))
			return s->map.v[at].value;
	}
	return best;
}

/* The first rule that shadows k for one op; their number when none does. */
static size_t
shadow_op(const struct shadow *s, size_t k, uint16_t op)
{
	const struct strlist *who = &s->rs->v[k].principals;
	unsigned own = s->rank[k * OP_COUNT + op], rank;
	size_t best = s->rs->n;
	uint32_t key;

	if (scope_key(s, k, &ops[op], &key) == -1)
		return best;
	for (rank = own; rank <= SEL_EXACT; rank++) {
		if (who->n > 0)
			best = shadow_try(
			    s, full_key(key, rank, who->v[0]), k, op, best);
		/* of equal rank, those with principals are tried before */
		if (who->n == 0 || rank > own)
			best = shadow_try(
			    s, full_key(key, rank, NULL), k, op, best);
	}
	return best;
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
		if ((i = shadow_op(s, k, op)) == s->rs->n)
			return NULL;
		if (found == NULL)
			found = &s->rs->v[i];
	}
	return found;
}

static int
shadow_init(struct shadow *s)
{
	uint16_t op;
	size_t k;

	s->rank = calloc(s->rs->n, OP_COUNT);
	s->texts = calloc(s->rs->n, sizeof(*s->texts));
	if (s->rank == NULL || s->texts == NULL)
		return -1;
	for (k = 0; k < s->rs->n; k++) {
		for (op = 0; op < OP_COUNT; op++)
			s->rank[k * OP_COUNT + op] =
			    rule_rank(&s->rs->v[k], op);
		rule_texts(&s->texts[k], &s->rs->v[k]);
		if (shadow_add(s, k) == -1)
			return -1;
	}
	return 0;
}

void
lint_shadowed(struct lint *l)
{
	struct shadow s = {.rs = l->c->rules, .steps = &l->steps};
	const struct rule *by;
	size_t k;
	int error;

	if (s.rs->n == 0)
		return;
	if ((error = shadow_init(&s)) == -1)
		l->f->nomem = 1;
	for (k = 0; error == 0 && k < s.rs->n; k++) {
		/* Presets repeat what they all begin with. */
		if (s.rs->v[k].deny || s.rs->v[k].preset != NULL)
			continue;
		if ((by = shadow_find(&s, k)) != NULL)
			lint_rule(l, &s.rs->v[k], FIND_WARN, "config.shadowed",
			    "the rule in line %u is tried before and admits "
			    "all that this one does",
			    by->at.line);
	}
	keymap_clear(&s.map);
	free(s.texts);
	free(s.rank);
}
