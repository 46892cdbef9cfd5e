/*
 * SPDX-License-Identifier: ISC
 *
 * Prints a decision for people and for programs.
 */
#include <stdio.h>
#include <string.h>

#include "monitor/ctl/explain.h"
#include "monitor/ctl/show.h"

static int
allowed(const struct explain *e)
{
	return e->d.allowed;
}

/* ---- text ---- */

static void
text_rule(const char *what, const struct policy *p, size_t rule)
{
	const char *name = policy_rule_name(p, rule);

	show_line("  %-9s %s%s%s%s", what, policy_rule_origin(p, rule),
	    name != NULL ? " (" : "", name != NULL ? name : "",
	    name != NULL ? ")" : "");
}

static void
text_trace(const struct explain *e, const struct policy *p)
{
	const struct dtrace *t;
	const char *on;
	size_t i;

	for (i = 0; i < e->d.ntrace; i++) {
		t = &e->d.trace[i];
		on = t->code == C_OK ? NULL : t->param;
		show_line("  tried     %s: %s%s%s",
		    policy_rule_origin(p, t->rule),
		    t->code == C_OK ? "admits" : codes[t->code].code,
		    on != NULL ? " for " : "", on != NULL ? on : "");
	}
}

static void
text_paths(const struct explain *e)
{
	const struct dpath *d;
	size_t i;

	for (i = 0; i < e->d.npaths; i++) {
		d = &e->d.paths[i];
		show_line("  %-9s %s%s%s", d->param, d->canonical,
		    d->readonly ? " (read-only)" : "",
		    d->target.kind == FK_MISSING ? " (does not exist)" : "");
	}
}

static void
text_command(const struct explain *e)
{
	const struct spawn *s = &e->d.spawn;
	size_t i;

	if (s->argv.n == 0)
		return;
	if (e->program != NULL)
		show_line("  program   %s", e->program);
	show_line("  cwd       %s%s", s->cwd != NULL ? s->cwd : "/",
	    e->d.cwd_readonly ? " (read-only)" : "");
	if (s->session[0] != '\0')
		show_line("  workspace %s%s", s->session,
		    e->d.cwd.kind == FK_MISSING ? " (made for it)" : "");
	for (i = 0; i < s->argv.n; i++)
		show_line("  argv[%zu]   %s", i, s->argv.v[i]);
}

static void
text_filter(const struct decision *d)
{
	size_t i;

	for (i = 0; i < d->rules.n; i++)
		show_line(
		    "  matches   %s of the command policy", d->rules.v[i]);
}

static void
text_principal(const struct explain *e)
{
	char roles[256] = "";
	size_t i;

	for (i = 0; i < e->roles.n; i++) {
		strlcat(roles, i == 0 ? ", roles " : " ", sizeof(roles));
		strlcat(roles, e->roles.v[i], sizeof(roles));
	}
	show_line("  principal %s%s", e->id, roles);
}

/* What environment and operator took from everybody, in this policy. */
static void
text_removed(const struct policy *p)
{
	uint16_t op;
	long rule;

	for (op = 0; op < OP_COUNT; op++)
		if ((ops[op].flags & OF_LATER) == 0 &&
		    (rule = policy_removed_by(p, op)) >= 0)
			show_line("  removed   %s by %s (%s)", ops[op].id,
			    policy_rule_origin(p, (size_t)rule),
			    policy_rule_name(p, (size_t)rule));
}

/* No rule is to blame for a path outside of these. */
static void
text_ceiling(const struct policy *p)
{
	const struct strlist *roots = policy_ceiling_roots(p);
	size_t i;

	for (i = 0; roots != NULL && i < roots->n; i++)
		show_line(
		    "  below     %s (roots of the operator)", roots->v[i]);
	if (roots != NULL && roots->n == 0)
		show_line("  below     nothing (roots of the operator)");
}

int
explain_text(const struct explain *e, const struct policy *p)
{
	const struct decision *d = &e->d;

	if (allowed(e)) {
		show_line("allowed: %s", e->opname);
		/* the policy admits it, the file system or a limit will not */
		if (d->code != C_OK)
			show_line("  but       %s: %s", codes[d->code].code,
			    codes[d->code].text);
	} else {
		show_line("denied: %s: %s: %s", e->opname, codes[d->code].code,
		    codes[d->code].text);
		if (d->reason != NULL)
			show_line("  reason    %s", d->reason);
		if (d->param != NULL)
			show_line("  argument  %s", d->param);
	}
	text_principal(e);
	if (d->rule >= 0)
		text_rule(allowed(e) || d->rules.n > 0 ? "by" : "denied by", p,
		    (size_t)d->rule);
	text_filter(d);
	text_paths(e);
	text_command(e);
	text_trace(e, p);
	text_removed(p);
	text_ceiling(p);
	return ferror(stdout) ? -1 : 0;
}

/* ---- JSON ---- */

static json_t *
json_strings(const struct strlist *l)
{
	json_t *list;
	size_t i;

	if ((list = json_array()) == NULL)
		return NULL;
	for (i = 0; i < l->n; i++)
		if (json_array_append_new(list, show_str(l->v[i])) == -1) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *
json_rule(const struct policy *p, long rule)
{
	if (rule < 0)
		return json_null();
	return json_pack("{s:o,s:o}", "origin",
	    show_str(policy_rule_origin(p, (size_t)rule)), "name",
	    show_str(policy_rule_name(p, (size_t)rule)));
}

static json_t *
json_paths(const struct explain *e)
{
	const struct dpath *d;
	json_t *list;
	size_t i;

	if ((list = json_array()) == NULL)
		return NULL;
	for (i = 0; i < e->d.npaths; i++) {
		d = &e->d.paths[i];
		if (json_array_append_new(
			list, json_pack("{s:s,s:o,s:b,s:b}", "param", d->param,
				  "canonical", show_str(d->canonical),
				  "readonly", d->readonly != 0, "exists",
				  d->target.kind != FK_MISSING)) == -1) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *
json_trace(const struct explain *e, const struct policy *p)
{
	const struct dtrace *t;
	json_t *list;
	size_t i;

	if ((list = json_array()) == NULL)
		return NULL;
	for (i = 0; i < e->d.ntrace; i++) {
		t = &e->d.trace[i];
		if (json_array_append_new(
			list, json_pack("{s:o,s:s,s:o}", "rule",
				  json_rule(p, (long)t->rule), "code",
				  codes[t->code].code, "param",
				  show_str(t->param))) == -1) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *
json_removed(const struct policy *p)
{
	json_t *list;
	uint16_t op;
	long rule;

	if ((list = json_array()) == NULL)
		return NULL;
	for (op = 0; op < OP_COUNT; op++) {
		if ((ops[op].flags & OF_LATER) != 0 ||
		    (rule = policy_removed_by(p, op)) < 0)
			continue;
		if (json_array_append_new(
			list, json_pack("{s:s,s:o}", "op", ops[op].id, "rule",
				  json_rule(p, rule))) == -1) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static json_t *
json_command(const struct explain *e)
{
	const struct spawn *s = &e->d.spawn;

	if (s->argv.n == 0)
		return json_null();
	return json_pack("{s:o,s:o,s:o,s:b,s:o}", "program",
	    show_str(e->program), "argv", json_strings(&s->argv), "cwd",
	    show_str(s->cwd != NULL ? s->cwd : "/"), "cwd_readonly",
	    e->d.cwd_readonly != 0, "workspace",
	    show_str(s->session[0] != '\0' ? s->session : NULL));
}

int
explain_json(const struct explain *e, const struct policy *p)
{
	const struct decision *d = &e->d;
	const struct strlist *roots = policy_ceiling_roots(p);

	return show_json(json_pack("{s:o,s:{s:o,s:o},s:b,s:b,s:s,s:o,s:o,s:o,"
				   "s:o,s:o,s:o,s:o,s:o,s:o}",
	    "op", show_str(e->opname), "principal", "id", show_str(e->id),
	    "roles", json_strings(&e->roles), "allowed", allowed(e), "mounted",
	    d->mounted != 0, "code", codes[d->code].code, "reason",
	    show_str(d->reason), "param", show_str(d->param), "rule",
	    json_rule(p, d->rule), "paths", json_paths(e), "command",
	    json_command(e), "rules", json_strings(&d->rules), "tried",
	    json_trace(e, p), "removed", json_removed(p), "operator_roots",
	    roots == NULL ? json_null() : json_strings(roots)));
}
