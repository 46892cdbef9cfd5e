/*
 * SPDX-License-Identifier: ISC
 *
 * Lints: what a configuration says that its author cannot have meant, or
 * should know (server.json(5), "Lints").  Errors of the text itself are found
 * by the readers.  Pure.
 */
#include "policy/lint.h"

#include <stdarg.h>
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"

#define REQUIRE_DEFAULT (LAYER_NAMESPACES | LAYER_SECCOMP | LAYER_LANDLOCK)

void
lint_rule(struct lint *l, const struct rule *r, enum find_sev sev,
    const char *code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	findings_vadd(
	    l->f, sev, code, r->at.file, r->at.line, r->at.col, fmt, ap);
	va_end(ap);
}

int
rule_selects(const struct rule *r, uint16_t op)
{
	size_t i;

	for (i = 0; i < r->sel.n; i++)
		if (selector_matches(r->sel.v[i], op, r->deny))
			return 1;
	return 0;
}

int
conf_rule_selects(const struct conf *c, size_t i, uint16_t op)
{
	return i < c->rules->n && rule_selects(&c->rules->v[i], op);
}

int
rule_is_full_access(const struct rule *r)
{
	return r->preset != NULL && strcmp(r->preset, "full-access") == 0;
}

int
scope_empty(const struct path_scope *s)
{
	return s->roots.n == 0 && !s->anywhere;
}

const struct path_scope *
rule_path_scope(const struct rule *r, const char *param)
{
	size_t i;

	if (!r->has_paths)
		return NULL;
	if (r->nparams == 0)
		return &r->paths;
	for (i = 0; i < r->nparams; i++)
		if (strcmp(r->params[i].param, param) == 0)
			return &r->params[i].scope;
	return NULL;
}

/* ---- scopes ---- */

static int
commands_empty(const struct rule *r)
{
	const struct command_scope *s = &r->commands;

	return !r->has_commands || (s->has_cwd && scope_empty(&s->cwd)) ||
	       (s->allow.n == 0 && !s->shell && !s->unrestricted);
}

/* The key whose scope the op does not get from the rule, or NULL. */
static const char *
scope_missing(const struct rule *r, const struct op *op)
{
	const struct op_param *p;
	const struct path_scope *s;

	for (p = op->params; p->name != NULL; p++) {
		if ((p->type != T_PATH && p->type != T_PATHLIST) ||
		    (p->roles & ~(unsigned)R_CWD) == 0)
			continue;
		s = rule_path_scope(r, p->name);
		if (s == NULL || scope_empty(s))
			return "paths";
	}
	if ((op->needs & N_COMMANDS) != 0 && commands_empty(r))
		return "commands";
	if ((op->needs & N_URLS) != 0 && (!r->has_urls || r->urls.hosts.n == 0))
		return "urls";
	if ((op->needs & N_AGENT) != 0 &&
	    (!r->has_agent || scope_empty(&r->agent.workdir)))
		return "agent";
	return NULL;
}

static void
lint_scope_required(struct lint *l, const struct rule *r)
{
	const char *key = NULL, *first = NULL, *k;
	size_t more = 0;
	uint16_t op;

	if (r->deny || r->flawed)
		return;
	for (op = 0; op < OP_COUNT; op++) {
		if (!rule_selects(r, op) ||
		    (k = scope_missing(r, &ops[op])) == NULL)
			continue;
		if (first == NULL) {
			first = ops[op].id;
			key = k;
		} else
			more++;
	}
	if (first != NULL && more == 0)
		lint_rule(l, r, FIND_LINT, "config.scope_required",
		    "%s needs \"%s\", and it is missing or empty", first, key);
	else if (first != NULL)
		lint_rule(l, r, FIND_LINT, "config.scope_required",
		    "%s needs \"%s\", and it is missing or empty; %zu more "
		    "operations lack a scope",
		    first, key, more);
}

static void
lint_unsafe(struct lint *l, const struct rule *r)
{
	int anywhere = r->paths.anywhere || r->commands.cwd.anywhere;
	size_t i;

	for (i = 0; i < r->nparams; i++)
		anywhere |= r->params[i].scope.anywhere;
	if (anywhere)
		lint_rule(l, r, FIND_LINT, "config.unsafe_anywhere",
		    "the rule opens the whole file system");
	if (r->commands.unrestricted)
		lint_rule(l, r, FIND_LINT, "config.unsafe_unrestricted",
		    "the rule runs any program");
}

static int
hardlinks_pass(const struct path_scope *s)
{
	return s->readonly && s->deny.n == 0 && !s->allow_hardlinks &&
	       s->roots.n > 0;
}

static void
lint_hardlinks(struct lint *l, const struct rule *r)
{
	int pass = r->has_paths && r->nparams == 0 && hardlinks_pass(&r->paths);
	size_t i;

	for (i = 0; i < r->nparams; i++)
		pass |= hardlinks_pass(&r->params[i].scope);
	if (pass)
		lint_rule(l, r, FIND_WARN, "config.hardlinks_readonly",
		    "in a read-only scope without \"deny\" hard links are not "
		    "refused, whatever file they name; a \"deny\" refuses "
		    "them, \"allow_hardlinks\" says that they are meant");
}

static void
lint_wildcard(struct lint *l, const struct rule *r)
{
	size_t i;

	for (i = 0; !r->deny && i < r->sel.n; i++)
		if (strcmp(r->sel.v[i], "*") == 0)
			lint_rule(l, r, FIND_WARN, "config.wildcard_allow",
			    "\"*\" allows every operation that is not "
			    "explicit-only, later ones included");
}

/* ---- agents ---- */

static int
mounts_agent(const struct rule *r)
{
	uint16_t op;

	for (op = 0; op < OP_COUNT; op++)
		if ((ops[op].needs & N_AGENT) != 0 && rule_selects(r, op))
			return 1;
	return 0;
}

static void
lint_agents(struct lint *l, const struct rule *r)
{
	if (r->deny || !r->has_agent)
		return;
	if (r->agent.permissions == AGENT_FULL && !r->agent.unconfined_ok)
		lint_rule(l, r, FIND_LINT, "config.agent_full_unconfined",
		    "the agent may do everything; \"unconfined_ok\" says that "
		    "this is meant");
	if ((r->has_paths || r->has_commands) && mounts_agent(r))
		lint_rule(l, r, FIND_WARN, "config.agent_scopes_do_not_apply",
		    "\"paths\" and \"commands\" do not bind what an agent "
		    "does within its \"workdir\"");
}

/* ---- principals ---- */

/* Id and roles of the principal of that number: tokens, then peers. */
static const char *
principal_at(const struct conf *c, size_t i, const struct strlist **roles)
{
	const struct conf_peer *p;

	if (i < c->ntokens) {
		*roles = &c->tokens[i].roles;
		return c->tokens[i].id;
	}
	p = &c->peers[i - c->ntokens];
	*roles = &p->roles;
	return p->id;
}

static int
id_exists(struct lint *l, const char *id)
{
	const struct strlist *roles;
	uint32_t at = keymap_first(&l->ids, fnv32(id, strlen(id)), &l->steps);

	for (; at != KEYMAP_END; at = keymap_next(&l->ids, at, &l->steps))
		if (strcmp(principal_at(l->c, l->ids.v[at].value, &roles),
			id) == 0)
			return 1;
	return 0;
}

static int
role_exists(struct lint *l, const char *role)
{
	const struct strlist *roles;
	uint32_t at =
	    keymap_first(&l->roles, fnv32(role, strlen(role)), &l->steps);

	for (; at != KEYMAP_END; at = keymap_next(&l->roles, at, &l->steps)) {
		principal_at(l->c, l->roles.v[at].value, &roles);
		if (strlist_has(roles, role))
			return 1;
	}
	return 0;
}

/* Note every id, and each role once.  0, or -1 out of memory. */
static int
principals_init(struct lint *l)
{
	const struct strlist *roles;
	const char *id, *role;
	size_t i, k;

	for (i = 0; i < l->c->ntokens + l->c->npeers; i++) {
		id = principal_at(l->c, i, &roles);
		if (keymap_add(&l->ids, fnv32(id, strlen(id)), (uint32_t)i) ==
		    -1)
			return -1;
		for (k = 0; k < roles->n; k++) {
			role = roles->v[k];
			if (!role_exists(l, role) &&
			    keymap_add(&l->roles, fnv32(role, strlen(role)),
				(uint32_t)i) == -1)
				return -1;
		}
	}
	return 0;
}

static int
principal_exists(struct lint *l, const char *s)
{
	const struct conf *c = l->c;

	if (strcmp(s, "*") == 0)
		return c->ntokens + c->npeers > 0;
	if (strcmp(s, "role:admin") == 0 && c->open_mode)
		return 1;
	if (strncmp(s, "role:", 5) == 0)
		return role_exists(l, s + 5);
	if (strcmp(s, "id:anonymous") == 0)
		return c->open_mode || c->anonymous;
	return id_exists(l, s + 3);
}

static void
lint_principals(struct lint *l, const struct rule *r)
{
	size_t i;

	for (i = 0; i < r->principals.n; i++)
		if (!principal_exists(l, r->principals.v[i]))
			lint_rule(l, r, FIND_WARN,
			    "config.principal_unreachable",
			    "no credential gives \"%.140s\"",
			    r->principals.v[i]);
}

/* ---- all of them ---- */

static void
lint_sandbox(struct lint *l)
{
	const struct origin *at = &l->c->rules->sandbox_at;

	if ((l->c->require & REQUIRE_DEFAULT) != REQUIRE_DEFAULT)
		findings_add(l->f, FIND_WARN, "config.sandbox_weakened",
		    at->file == NULL ? "configuration" : at->file, at->line,
		    at->col,
		    "sandbox.require lacks a layer of namespaces, seccomp and "
		    "landlock");
}

/* The preset that may do everything is one because a sandbox is around it. */
static void
lint_full_access(struct lint *l, const struct rule *r)
{
	if (rule_is_full_access(r) && r->has_commands &&
	    (l->c->require & REQUIRE_DEFAULT) == 0)
		lint_rule(l, r, FIND_ERROR, "config.sandbox_weakened",
		    "the preset full-access needs sandbox.require");
}

static void
lint_reload(struct lint *l)
{
	const struct origin *at = &l->c->rules->auth_at;

	if (at->file == NULL)
		at = &l->c->rules->listen_at;
	if (l->c->reload != RELOAD_OFF && l->c->open_mode)
		findings_add(l->f, FIND_WARN, "config.reload_enabled_open",
		    at->file == NULL ? "configuration" : at->file, at->line,
		    at->col, "\"reload\" is on, and nobody needs a credential");
}

void
lint_run(struct lint *l)
{
	static void (*const lints[])(struct lint *, const struct rule *) = {
	    lint_scope_required,
	    lint_unsafe,
	    lint_hardlinks,
	    lint_wildcard,
	    lint_agents,
	    lint_principals,
	    lint_commands,
	    lint_full_access,
	};
	const struct conf_rules *rs = l->c->rules;
	size_t i, k;

	if (principals_init(l) == -1 || lint_script_init(l) == -1)
		l->f->nomem = 1;
	for (i = 0; i < rs->n; i++)
		for (k = 0; k < nitems(lints); k++)
			lints[k](l, &rs->v[i]);
	keymap_clear(&l->writable);
	keymap_clear(&l->ids);
	keymap_clear(&l->roles);
	lint_shadowed(l);
	lint_filter(l);
	lint_sandbox(l);
	lint_reload(l);
}

void
conf_lint(const struct conf *c, const struct conf_world *w, struct findings *f)
{
	struct lint l = {.c = c, .f = f};

	lint_run(&l);
}
