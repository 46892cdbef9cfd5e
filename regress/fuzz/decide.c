/*
 * SPDX-License-Identifier: ISC
 *
 * Calls out of bytes, and what holds of every decision.
 */
#include "regress/fuzz/decide.h"

#include <stdio.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "pathd/deny.h"
#include "policy/engine.h"
#include "regress/fuzz/fuzz.h"

int
lies_below(const char *a, const char *b)
{
	size_t n = strcmp(a, "/") == 0 ? 0 : strlen(a);

	return strncmp(a, b, n) == 0 && (b[n] == '/' || b[n] == '\0');
}

void
facts_plain(const struct policy *p, const struct plan_item *it, struct facts *f,
    uint8_t kind)
{
	char dir[2 * ABX_PATH_MAX];
	size_t i, best = 0;

	f->status = FS_OUTSIDE;
	for (i = 0; i < it->nrefs; i++) {
		const struct rootref *r = &it->refs[i];

		snprintf(dir, sizeof(dir), "%s%s%s", p->roots[r->root].canon,
		    r->sub[0] != '\0' ? "/" : "", r->sub);
		if (!lies_below(dir, it->path) || strlen(dir) <= best)
			continue;
		best = strlen(dir);
		f->status = FS_OK;
		f->ref = (uint8_t)i;
		f->rel = (uint16_t)best;
	}
	f->path = strdup(it->path);
	CHECK(f->path != NULL);
	f->kind = kind;
	f->missing = kind == FK_MISSING;
	f->nlink = 1;
	f->dev = kind == FK_MISSING ? 0 : 7;
	f->ino = kind == FK_MISSING ? 0 : strlen(it->path);
}

/* ---- arguments ---- */

static void
add_list(struct arg *a, char *line, int map)
{
	char *one, *eq;

	while ((one = strsep(&line, "\t")) != NULL) {
		eq = map ? strchr(one, '=') : NULL;
		if (eq != NULL)
			*eq++ = '\0';
		CHECK(arg_push(a, one,
			  !map	       ? NULL
			  : eq == NULL ? ""
				       : eq) == 0);
	}
}

static void
add_base64(struct args *as, const char *name, const char *line)
{
	char buf[64], *b = fuzz_alloc(2 * strlen(line) + 8);
	struct arg *a;

	snprintf(buf, sizeof(buf), "%s_base64", name);
	CHECK((a = args_add(as, buf, A_STR)) != NULL);
	base64_encode(line, strlen(line), b, 2 * strlen(line) + 8);
	CHECK(arg_set_str(a, b, strlen(b)) == 0);
	free(b);
}

void
feed_arg(struct args *as, const struct op_param *q, struct feed *f)
{
	uint8_t form = feed_u8(f);
	char *line = feed_str(f, '\n', 8192);
	enum arg_type type = A_STR;
	struct arg *a;

	/* mostly what the schema wants */
	if (q->type == T_BOOL)
		type = A_BOOL;
	else if (q->type == T_LIMIT || q->type == T_INT)
		type = A_INT;
	else if (q->type == T_STRLIST || q->type == T_PATHLIST)
		type = A_LIST;
	else if (q->type == T_STRMAP || q->type == T_OBJ)
		type = A_MAP;
	if (form >= 0xf0)
		type = (enum arg_type)(A_STR + form % A_NULL);
	else if (form >= 0xc0)
		type = A_QUERY;
	if ((form & 3) == 0 && (q->flags & PF_REQ) == 0)
		goto out;
	if (q->type == T_PATH && form % 16 == 5) {
		add_base64(as, q->name, line);
		goto out;
	}
	CHECK((a = args_add(as, q->name, type)) != NULL);
	if (type == A_STR || type == A_QUERY)
		CHECK(arg_set_str(a, line, strlen(line)) == 0);
	else if (type == A_LIST || type == A_MAP)
		add_list(a, line, type == A_MAP);
	else
		a->i = type == A_BOOL ? form >> 2 & 1 : strtoll(line, NULL, 10);
out:
	free(line);
}

/* ---- wires ---- */

/* What the monitor would ask of pathd is what pathd takes. */
static void
resolve_passes(const struct plan *plan)
{
	struct resolve_item items[ABX_MAX_RESOLVE];
	struct resolve v = {0, items, plan->nitems}, back;
	struct wbuf w;
	struct rbuf r;
	size_t i;

	CHECK(plan->nitems <= ABX_MAX_RESOLVE);
	for (i = 0; i < plan->nitems; i++) {
		items[i].path = plan->items[i].path;
		items[i].nofollow = (uint8_t)plan->items[i].nofollow;
		items[i].refs = plan->items[i].refs;
		items[i].nrefs = plan->items[i].nrefs;
	}
	wbuf_init(&w, SIZE_MAX);
	resolve_put(&w, &v);
	CHECK(!w.err);
	rbuf_init(&r, w.p, w.len);
	CHECK(resolve_get(&r, &back) == 0 && rget_end(&r) == 0);
	resolve_clear(&back);
	wbuf_free(&w);
}

static void
target_passes(const struct target *t)
{
	struct target back;
	struct wbuf w;
	struct rbuf r;

	wbuf_init(&w, SIZE_MAX);
	target_put(&w, t);
	rbuf_init(&r, w.p, w.len);
	CHECK(target_get(&r, &back) == 0 && rget_end(&r) == 0);
	CHECK(strcmp(back.rel, t->rel) == 0);
	target_clear(&back);
	wbuf_free(&w);
}

static void
spawn_passes(const struct spawn *s)
{
	struct spawn back;
	struct wbuf w;
	struct rbuf r;

	wbuf_init(&w, SIZE_MAX);
	spawn_put(&w, s);
	rbuf_init(&r, w.p, w.len);
	CHECK(spawn_get(&r, &back) == 0 && rget_end(&r) == 0);
	spawn_clear(&back);
	wbuf_free(&w);
}

/* pathd can read the deny set, and it does not cover what was allowed. */
static void
deny_passes(const struct decision *d)
{
	struct strlist back;
	struct deny deny;
	struct wbuf w;
	struct rbuf r;
	size_t i;

	wbuf_init(&w, SIZE_MAX);
	strlist_put(&w, &d->deny);
	rbuf_init(&r, w.p, w.len);
	CHECK(strlist_get(&r, &back, ABX_MAX_DENY, ABX_PATH_MAX * 2) == 0);
	CHECK(deny_new(&deny, &back) == 0);
	for (i = 0; i < d->npaths; i++)
		CHECK(!deny_covers(&deny, d->paths[i].canonical));
	deny_clear(&deny);
	strlist_clear(&back);
	wbuf_free(&w);
}

/* ---- places ---- */

/* The target spells the canonical path, below a root that was asked for. */
static void
target_spells(const struct policy *p, const struct plan *plan, size_t item,
    const struct target *t, const char *canonical)
{
	const struct plan_item *it = &plan->items[item];
	char dir[3 * ABX_PATH_MAX];
	size_t i, n;

	for (i = 0; i < it->nrefs; i++)
		if (it->refs[i].root == t->ref.root &&
		    strcmp(it->refs[i].sub, t->ref.sub) == 0)
			break;
	CHECK(i < it->nrefs && t->ref.root < p->nroots);
	n = (size_t)snprintf(dir, sizeof(dir), "%s%s%s",
	    p->roots[t->ref.root].canon, t->ref.sub[0] != '\0' ? "/" : "",
	    t->ref.sub);
	CHECK(lies_below(dir, canonical));
	CHECK(path_is_normal(canonical));
	if (strcmp(dir, "/") != 0 && t->rel[0] != '\0')
		snprintf(dir + n, sizeof(dir) - n, "/");
	strlcat(dir, t->rel, sizeof(dir));
	CHECK(strcmp(dir, canonical) == 0);
	target_passes(t);
}

static void
path_holds(const struct policy *p, const struct call *call,
    const struct plan *plan, const struct facts *facts, const struct dpath *dp)
{
	const struct op_param *q = op_param_find(&ops[call->op], dp->param);
	const struct facts *f;

	CHECK(q != NULL && dp->item < plan->nitems);
	f = &facts[dp->item];
	CHECK(f->status == FS_OK && strcmp(f->path, dp->canonical) == 0);
	CHECK(!system_denies(p, dp->canonical));
	CHECK(!dp->readonly || (q->roles & (R_WRITE | R_DELETE)) == 0);
	target_spells(p, plan, dp->item, &dp->target, dp->canonical);
	if ((dp->flags & PF_NOSYMLINKS) != 0)
		CHECK(!f->symlink);
}

static void
run_holds(const struct policy *p, const struct call *call,
    const struct plan *plan, const struct facts *facts,
    const struct decision *d)
{
	const struct arg *line = args_find(call->args, "command"),
			 *argv = args_find(call->args, "argv");
	size_t i;

	CHECK((line != NULL) != (argv != NULL));
	if (argv != NULL) {
		CHECK(d->spawn.argv.n == argv->n);
		for (i = 0; i < argv->n; i++)
			CHECK(strcmp(d->spawn.argv.v[i], argv->list[i]) == 0);
	}
	CHECK(d->spawn.argv.n > 0 && d->spawn.cwd != NULL);
	for (i = 0; i < d->spawn.progs.n; i++)
		CHECK(d->spawn.progs.v[i][0] == '/');
	for (i = 0; i < d->spawn.env.n; i++)
		CHECK(strchr(d->spawn.env.v[i], '=') > d->spawn.env.v[i]);
	if (d->cwd_item >= 0) {
		const char *path = facts[d->cwd_item].path;

		CHECK(strcmp(d->spawn.cwd, path) == 0);
		CHECK(!system_denies(p, path));
		target_spells(p, plan, (size_t)d->cwd_item, &d->cwd, path);
	} else
		CHECK(strcmp(d->spawn.cwd, "/") == 0);
	if (d->spawn.progs.n > 0)
		spawn_passes(&d->spawn);
}

static void
decision_holds(const struct policy *p, const struct call *call,
    const struct plan *plan, const struct facts *facts,
    const struct decision *d)
{
	size_t i;

	CHECK((unsigned)d->code < C_COUNT);
	if (call->op < OP_COUNT && (ops[call->op].flags & OF_LATER) != 0)
		CHECK(!d->allowed); /* but a deny may speak */
	else
		CHECK(d->mounted == policy_mounted(p, call->op, call->who));
	CHECK(d->mounted || d->code == C_OP_NOT_ENABLED);
	CHECK(d->allowed || d->code != C_OK);
	CHECK(d->rule >= -1 && d->rule < (long)policy_nrules(p));
	if (!d->allowed)
		return;
	CHECK(d->mounted && plan->code == C_OK);
	CHECK(d->limit_key != NULL);
	for (i = 0; i < d->npaths; i++)
		path_holds(p, call, plan, facts, &d->paths[i]);
	if (d->code != C_OK)
		return;
	if ((ops[call->op].needs & N_COMMANDS) != 0)
		run_holds(p, call, plan, facts, d);
	deny_passes(d);
}

/* No file system makes the facts of a name over 255 bytes, and no message
 * brings them. */
static void
find_facts(const struct policy *p, const struct plan_item *it, struct facts *f,
    facts_cb find, void *arg)
{
	struct facts back;
	struct wbuf w;
	struct rbuf r;

	find(p, it, f, arg);
	wbuf_init(&w, SIZE_MAX);
	facts_put(&w, f);
	CHECK(!w.err);
	rbuf_init(&r, w.p, w.len);
	if (facts_get(&r, &back) == 0)
		facts_clear(&back);
	else {
		f->status = FS_ERRNO;
		f->err = ENAMETOOLONG;
	}
	wbuf_free(&w);
}

void
decide_call(const struct policy *p, const struct call *call, facts_cb find,
    look_cb look, void *arg)
{
	struct facts *facts = NULL;
	struct decision d;
	struct plan plan;
	size_t i;

	CHECK(policy_plan(p, call, &plan) == 0);
	CHECK((unsigned)plan.code < C_COUNT);
	if (plan.code == C_OK && plan.nitems > 0) {
		resolve_passes(&plan);
		facts = fuzz_alloc(plan.nitems * sizeof(*facts));
		for (i = 0; i < plan.nitems; i++)
			find_facts(p, &plan.items[i], &facts[i], find, arg);
	}
	CHECK(policy_decide(p, call, &plan, facts, &d) == 0);
	decision_holds(p, call, &plan, facts, &d);
	if (look != NULL)
		look(call, &plan, facts, &d, arg);
	decision_clear(&d);
	for (i = 0; facts != NULL && i < plan.nitems; i++)
		facts_clear(&facts[i]);
	free(facts);
	plan_clear(&plan);
}
