/*
 * SPDX-License-Identifier: ISC
 *
 * Tries the examples that rules carry with the engine that decides real calls.
 * Since this is done where no file system may be asked, every path is taken
 * for a file that exists and lies where its name says.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/confkey.h"
#include "policy/engine.h"

/* ---- who ---- */

/* The credential with that id, or with that role, or the first: its roles
 * with *id, or NULL. */
static const struct strlist *
credential(
    const struct conf *c, const char *want, const char *role, const char **id)
{
	const struct strlist *roles;
	size_t i;

	for (i = 0; i < c->ntokens + c->npeers; i++) {
		if (i < c->ntokens) {
			*id = c->tokens[i].id;
			roles = &c->tokens[i].roles;
		} else {
			*id = c->peers[i - c->ntokens].id;
			roles = &c->peers[i - c->ntokens].roles;
		}
		if ((want == NULL || strcmp(want, *id) == 0) &&
		    (role == NULL || strlist_has(roles, role)))
			return roles;
	}
	return NULL;
}

static void
who_roles(struct principal *who, const struct strlist *roles)
{
	who->roles = (const char *const *)roles->v;
	who->nroles = roles->n;
}

static void
who_anonymous(const struct conf *c, struct principal *who)
{
	static const char *const admin[] = {"admin"};

	who->id = "anonymous";
	who->authenticated = 0;
	who->roles = admin;
	who->nroles = c->open_mode ? 1 : 0;
}

static void
who_named(const struct conf *c, const char *id, struct principal *who)
{
	const struct strlist *roles;
	const char *found;

	if (strcmp(id, "anonymous") == 0) {
		who_anonymous(c, who);
		return;
	}
	who->id = id;
	if ((roles = credential(c, id, NULL, &found)) != NULL)
		who_roles(who, roles);
}

/* Somebody whom the rule speaks to.  role is room for one pointer. */
static void
who_default(const struct conf *c, const struct rule *r, struct principal *who,
    const char **role)
{
	const char *p = r->principals.n > 0 ? r->principals.v[0] : "*";
	const struct strlist *roles;

	if (strncmp(p, "id:", 3) == 0) {
		who_named(c, p + 3, who);
		return;
	}
	*role = strncmp(p, "role:", 5) == 0 ? p + 5 : NULL;
	if ((roles = credential(c, NULL, *role, &who->id)) != NULL) {
		who_roles(who, roles);
	} else if (r->principals.n == 0 || c->open_mode) {
		who_anonymous(c, who);
	} else {
		who->id = "example";
		who->roles = role;
		who->nroles = *role != NULL;
	}
}

/* ---- facts ---- */

/* The asking root that contains the path, by its length, as dir; -1 when none
 * does. */
static int
longest_root(const struct policy *p, const struct plan_item *it,
    struct facts *f, size_t *len)
{
	char dir[ABX_PATH_MAX + 1];
	const struct rootref *ref;
	int found = -1;
	size_t i, n;

	for (i = 0; i < it->nrefs; i++) {
		ref = &it->refs[i];
		if (path_join_into(p->roots[ref->root].canon, ref->sub, dir) ==
			-1 ||
		    path_below(dir, it->path) == NULL)
			continue;
		n = strlen(dir);
		if (found == 0 && n <= *len)
			continue;
		found = 0;
		*len = n;
		f->ref = (uint8_t)i;
	}
	return found;
}

static int
is_root(const struct policy *p, const char *path)
{
	size_t i;

	for (i = 0; i < p->nroots; i++)
		if (strcmp(p->roots[i].canon, path) == 0)
			return 1;
	return 0;
}

/* 0, or -1 out of memory. */
static int
spelled_facts(
    const struct policy *p, const struct plan_item *it, struct facts *f)
{
	size_t len;

	memset(f, 0, sizeof(*f));
	if (longest_root(p, it, f, &len) == -1) {
		f->status = FS_OUTSIDE;
		return 0;
	}
	f->rel = (uint16_t)len;
	f->kind =
	    it->path[len] == '\0' || is_root(p, it->path) ? FK_DIR : FK_FILE;
	f->nlink = 1;
	f->dev = f->ino = 1;
	return (f->path = strdup(it->path)) == NULL ? -1 : 0;
}

/* ---- one call ---- */

struct trial {
	const struct conf *c;
	const struct policy *p;
	const struct rule *rule;
	const struct example *ex;
	struct findings *f;
};

static void
trial_failed(const struct trial *t, const struct principal *who,
    const struct decision *d)
{
	const struct example *e = t->ex;
	const char *by = d->rule >= 0 ? t->p->rules[d->rule].origin : NULL;

	if (d->allowed)
		findings_add(t->f, FIND_ERROR, "config.example_failed",
		    e->at.file, e->at.line, e->at.col,
		    "%s is allowed to %s%s%s", ops[e->op].id, who->id,
		    by != NULL ? " by " : "", by != NULL ? by : "");
	else
		findings_add(t->f, FIND_ERROR, "config.example_failed",
		    e->at.file, e->at.line, e->at.col,
		    "%s is refused to %s with %s%s%s%s%s", ops[e->op].id,
		    who->id, codes[d->code].code,
		    d->param != NULL ? " for " : "",
		    d->param != NULL ? d->param : "", by != NULL ? " by " : "",
		    by != NULL ? by : "");
}

static int
trial_holds(const struct example *e, const struct decision *d)
{
	if (e->allow)
		return d->allowed;
	return !d->allowed &&
	       (e->code == NULL || strcmp(e->code, codes[d->code].code) == 0);
}

static int
trial_decide(const struct trial *t, const struct call *call,
    const struct plan *plan, const struct principal *who)
{
	struct facts *facts = calloc(plan->nitems + 1, sizeof(*facts));
	struct decision d;
	size_t i;
	int r = facts == NULL ? -1 : 0;

	for (i = 0; i < plan->nitems && r == 0; i++)
		r = spelled_facts(t->p, &plan->items[i], &facts[i]);
	if (r == 0 && (r = policy_decide(t->p, call, plan, facts, &d)) == 0) {
		if (!trial_holds(t->ex, &d))
			trial_failed(t, who, &d);
		decision_clear(&d);
	}
	for (i = 0; facts != NULL && i < plan->nitems; i++)
		facts_clear(&facts[i]);
	free(facts);
	return r;
}

static int
trial_run(const struct trial *t)
{
	const struct example *e = t->ex;
	struct principal who = {.authenticated = 1};
	const char *role;
	struct call call = {e->op, &e->args, &who, e->session};
	struct plan plan;
	int r;

	if (e->id != NULL)
		who_named(t->c, e->id, &who);
	else
		who_default(t->c, t->rule, &who, &role);
	if (e->roles_given)
		who_roles(&who, &e->roles);
	if (policy_plan(t->p, &call, &plan) == -1)
		return -1;
	r = trial_decide(t, &call, &plan, &who);
	plan_clear(&plan);
	return r;
}

/* ---- all of them ---- */

static int
restricted(const struct conf_rules *rs)
{
	size_t i;

	for (i = 0; i < rs->n; i++)
		if (layer_restricts(rs->v[i].layer))
			return 1;
	return rs->ceiling.readonly || rs->ceiling.has_roots;
}

/* The policy less what layers 4 and 5 say, or NULL.  The rules are only lent
 * to the compiler, which makes its own copies. */
static struct policy *
authors_policy(
    const struct conf *c, const struct policy *full, struct findings *f)
{
	struct conf conf = *c;
	struct conf_rules rs = *c->rules;
	struct policy *p = NULL;
	size_t i;

	memset(&rs.ceiling, 0, sizeof(rs.ceiling));
	rs.n = 0;
	rs.v = calloc(c->rules->n + 1, sizeof(*rs.v));
	if (rs.v == NULL) {
		f->nomem = 1;
		return NULL;
	}
	for (i = 0; i < c->rules->n; i++)
		if (!layer_restricts(c->rules->v[i].layer))
			rs.v[rs.n++] = c->rules->v[i];
	conf.rules = &rs;
	p = policy_new(&conf, f);
	free(rs.v);
	for (i = 0; p != NULL && i < full->protect.n; i++)
		if (policy_protect(p, full->protect.v[i]) == -1) {
			f->nomem = 1;
			policy_free(p);
			return NULL;
		}
	return p;
}

static void
rule_examples(const struct conf *c, const struct policy *p,
    const struct rule *r, struct findings *f)
{
	struct trial t = {c, p, r, NULL, f};
	size_t i;

	for (i = 0; i < r->nexamples; i++) {
		t.ex = &r->examples[i];
		if (trial_run(&t) == -1) {
			f->nomem = 1;
			return;
		}
	}
}

void
policy_examples(
    const struct conf *c, const struct policy *full, struct findings *f)
{
	struct policy *authors = NULL;
	const struct conf_rules *rs = c->rules;
	size_t i;

	for (i = 0; i < rs->n; i++)
		if (rs->v[i].nexamples > 0)
			break;
	if (i == rs->n)
		return;
	if (restricted(rs) && (authors = authors_policy(c, full, f)) == NULL)
		return;
	for (i = 0; i < rs->n; i++)
		rule_examples(c,
		    authors != NULL && !layer_restricts(rs->v[i].layer)
			? authors
			: full,
		    &rs->v[i], f);
	policy_free(authors);
}
