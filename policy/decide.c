/*
 * SPDX-License-Identifier: ISC
 *
 * The decision: the deny pass over the paths as they really lie, then the
 * statements in order until one admits.  The first that admits supplies
 * everything; when none does, the first one's refusal is the answer.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"

struct decider {
	const struct policy *p;
	const struct call *call;
	const struct plan *plan;
	const struct plan_priv *priv;
	const struct facts *facts;
	struct decision *d;
	const struct argv_pat *win; /* pattern of the winning statement */
};

/* ---- one statement ---- */

static int
is_path(const struct op_param *q)
{
	return (q->type == T_PATH || q->type == T_PATHLIST) &&
	       (q->roles & R_CWD) == 0;
}

/* 1 when some path of the op has a scope with a root, or it has no path. */
static int
paths_present(const struct prule *r, const struct op *op)
{
	const struct op_param *q;
	const struct pscope *s;
	int paths = 0;

	for (q = op->params; q->name != NULL; q++) {
		if (!is_path(q))
			continue;
		paths = 1;
		if ((s = rule_scope(r, q)) != NULL && s->nroots > 0)
			return 1;
	}
	return !paths;
}

static int
commands_present(const struct prule *r)
{
	const struct cscope *c = &r->commands;

	return r->has_commands &&
	       (c->nallow > 0 || c->shell || c->unrestricted);
}

/* Every kind of scope that the op declares must be there; an empty one is
 * none. */
static enum code
scopes_present(const struct prule *r, const struct op *op)
{
	if ((op->needs & N_COMMANDS) != 0 && !commands_present(r))
		return C_POL_SCOPE_REQUIRED;
	if ((op->needs & N_URLS) != 0 && (!r->has_urls || r->urls.hosts.n == 0))
		return C_POL_SCOPE_REQUIRED;
	if ((op->needs & N_AGENT) != 0)
		return C_POL_SCOPE_REQUIRED;
	return paths_present(r, op) ? C_OK : C_POL_SCOPE_REQUIRED;
}

static enum code
slot_admit(const struct decider *de, const struct pscope *s,
    const struct pslot *slot, unsigned roles)
{
	if (slot->item < 0)
		return slot->code;
	return path_admit(de->p, s, &de->plan->items[slot->item],
	    &de->facts[slot->item], de->call->op, roles);
}

/* The directory that a run starts in when none is asked for. */
static enum code
cwd_admit(const struct decider *de, const struct pcand *cand)
{
	const struct facts *f;
	enum code code;
	long rule;

	code = slot_admit(de, cand_cwd(cand), &cand->cwd, R_CWD);
	if (code != C_OK || cand->cwd.item < 0)
		return code;
	f = &de->facts[cand->cwd.item];
	if (deny_found(de->p, de->call->op, de->priv, f, &rule))
		return C_POL_PATH_DENIED;
	return C_OK;
}

/* C_OK when policy admits the call; *fs is then what the file system would
 * answer. */
static enum code
stmt_admit(struct decider *de, const struct pcand *cand, enum code *fs,
    const char **param)
{
	const struct prule *r = cand->st->rule;
	enum code code;
	size_t i;

	*fs = C_OK;
	*param = NULL;
	code = scopes_present(r, &ops[de->call->op]);
	if (code != C_OK)
		return code;
	for (i = 0; i < de->priv->nvalues; i++) {
		const struct op_param *q = de->priv->values[i].param;

		*param = q->name;
		code = slot_admit(
		    de, cand_scope(cand, q), &cand->slots[i], q->roles);
		if (code != C_OK)
			return code;
	}
	*param = "url";
	if (de->priv->url != NULL && !url_admitted(&r->urls, de->priv->url))
		return C_POL_URL_DENIED;
	*param = NULL;
	if (de->priv->cmd.given) {
		code = cwd_admit(de, cand);
		if (code == C_OK)
			code = command_admit(de->p, de->call, de->plan, cand,
			    de->facts, &de->win, param);
		if (code != C_OK)
			return code;
	}
	*fs = fs_outcome(de->p, de->call, de->plan, cand, de->facts, param);
	/* The kind of a file is for policy to judge, too. */
	return *fs == C_POL_NOT_REGULAR ? *fs : C_OK;
}

/* ---- what the winner supplies ---- */

static int
target_fill(
    struct target *t, const struct plan_item *item, const struct facts *f)
{
	t->ref = item->refs[f->ref];
	t->kind = f->kind;
	t->dev = f->kind == FK_MISSING ? 0 : f->dev;
	t->ino = f->kind == FK_MISSING ? 0 : f->ino;
	t->rel = strdup(facts_tail(f));
	return t->rel != NULL ? 0 : -1;
}

static uint16_t
path_flags(const struct call *call, const struct pscope *s)
{
	uint16_t flags = 0;

	if (s->create_dirs && (call->op != OP_files_mkdir ||
				  policy_arg_bool(call->args, "parents")))
		flags |= PF_CREATE_DIRS;
	if (s->hardlinks)
		flags |= PF_HARDLINKS;
	if (s->nosymlinks)
		flags |= PF_NOSYMLINKS;
	return flags;
}

static int
path_fill(struct decider *de, const struct pcand *cand, size_t value)
{
	const struct op_param *q = de->priv->values[value].param;
	const struct pscope *s = cand_scope(cand, q);
	int item = cand->slots[value].item;
	struct dpath *dp = &de->d->paths[de->d->npaths];

	if (de->facts[item].status != FS_OK)
		return 0;
	de->d->npaths++;
	dp->param = q->name;
	dp->item = (size_t)item;
	dp->flags = path_flags(de->call, s);
	dp->readonly = s->readonly;
	dp->canonical = strdup(de->facts[item].path);
	if (dp->canonical == NULL)
		return -1;
	return target_fill(
	    &dp->target, &de->plan->items[item], &de->facts[item]);
}

static int
paths_fill(struct decider *de, const struct pcand *cand)
{
	const struct plan_item *item;
	size_t i;

	if (de->priv->nvalues == 0)
		return 0;
	de->d->paths = calloc(de->priv->nvalues, sizeof(*de->d->paths));
	if (de->d->paths == NULL)
		return -1;
	for (i = 0; i < de->priv->nvalues; i++)
		if (path_fill(de, cand, i) == -1)
			return -1;
	item = &de->plan->items[cand->slots[0].item];
	de->d->refs = calloc(item->nrefs + 1, sizeof(*de->d->refs));
	if (de->d->refs == NULL)
		return -1;
	memcpy(de->d->refs, item->refs, item->nrefs * sizeof(*item->refs));
	de->d->nrefs = item->nrefs;
	return 0;
}

static int
known(const struct decider *de, const struct pslot *slot)
{
	return slot->item >= 0 && de->facts[slot->item].status == FS_OK;
}

/* Where the run begins, and its home: with a session the workspace, which is
 * then what is bound. */
static int
cwd_fill(struct decider *de, const struct pcand *cand, const char **cwd,
    const char **home)
{
	const struct pslot *slot = &cand->cwd, *bind;
	const struct pscope *s = cand_cwd(cand);
	size_t i;

	*cwd = *home = NULL;
	for (i = 0; i < de->priv->nvalues; i++)
		if ((de->priv->values[i].param->roles & R_CWD) != 0)
			slot = &cand->slots[i];
	bind = s == &cand->ws ? &cand->cwd : slot;
	if (s == NULL || !known(de, slot) || !known(de, bind))
		return 0;
	*cwd = de->facts[slot->item].path;
	*home = de->facts[bind->item].path;
	de->d->cwd_item = bind->item;
	de->d->cwd_readonly = s->readonly;
	if (s == &cand->ws)
		strlcpy(de->d->spawn.session, de->priv->workspace,
		    sizeof(de->d->spawn.session));
	return target_fill(
	    &de->d->cwd, &de->plan->items[bind->item], &de->facts[bind->item]);
}

/* Ops that look at more than the paths they name. */
static int
needs_denies(const struct op *op)
{
	return op->stream == S_LIST || op->stream == S_BYTES ||
	       op->stream == S_SSE || (op->flags & OF_TREE) != 0 ||
	       (op->needs & N_COMMANDS) != 0 || (op->effects & E_DELETE) != 0;
}

static int
scope_texts(const struct decider *de, const struct pcand *cand)
{
	const struct op_param *q;
	const struct pscope *s;
	int bad = 0;

	for (q = ops[de->call->op].params; q->name != NULL && bad == 0; q++) {
		s = cand_scope(cand, q);
		if (s != NULL)
			bad = pglobs_texts(de->p, &s->deny, s->roots, s->nroots,
			    &de->priv->subs, &de->d->deny);
	}
	return bad;
}

/* 0, -1 out of memory, 1 when the set is too large to be handed on. */
static int
denies_fill(struct decider *de, const struct pcand *cand)
{
	size_t i, bytes = 0;
	int bad;

	if (!needs_denies(&ops[de->call->op]))
		return 0;
	bad = scope_texts(de, cand);
	if (bad == 0)
		bad = deny_texts(de->p, de->call->op, de->priv, &de->d->deny);
	if (bad != 0)
		return bad;
	for (i = 0; i < de->d->deny.n; i++)
		bytes += strlen(de->d->deny.v[i]) + 5;
	return de->d->deny.n > ABX_MAX_DENY || bytes > ABX_DENY_MAX;
}

/* The statement's list; without a command scope the usual four. */
static int
signal_admitted(const struct prule *r, const struct args *args)
{
	static const char *const usual[] = {"TERM", "INT", "KILL", "HUP"};
	const char *name = policy_arg_str(args, "signal");
	size_t i;

	if (name == NULL)
		return 0;
	for (i = 0; r->has_commands && i < r->commands.signals.n; i++)
		if (strcmp(r->commands.signals.v[i], name) == 0)
			return 1;
	for (i = 0; !r->has_commands && i < nitems(usual); i++)
		if (strcmp(usual[i], name) == 0)
			return 1;
	return 0;
}

/* Fill the decision from the winner: 0 or -1. */
static int
winner_fill(struct decider *de, const struct pcand *cand)
{
	struct decision *d = de->d;
	const char *cwd, *home;
	enum code code;
	int r;

	d->allowed = 1;
	d->rule = (long)cand->st->rule->index;
	bound_call(de->call, cand->st, d);
	if (paths_fill(de, cand) == -1)
		return -1;
	r = denies_fill(de, cand);
	if (r == -1)
		return -1;
	if (r == 1) {
		d->allowed = 0;
		d->code = C_POL_PATH_DENIED;
		return 0;
	}
	if (de->call->op == OP_process_signal &&
	    !signal_admitted(cand->st->rule, de->call->args)) {
		d->allowed = 0;
		d->code = C_POL_SIGNAL_NOT_ALLOWED;
		d->param = "signal";
		return 0;
	}
	if (de->priv->cmd.given) {
		if (cwd_fill(de, cand, &cwd, &home) == -1 ||
		    command_spawn(de->call, de->priv, cand, de->win, cwd, home,
			d) == -1 ||
		    command_filter(de->p, de->call, d) == -1 ||
		    caps_admit(de->call->args, home, d->cwd_readonly, &d->spawn,
			&code) == -1)
			return -1;
		if (d->code == C_OK && code != C_OK) {
			d->allowed = 0;
			d->code = code;
			d->param = "capabilities";
			return 0;
		}
	}
	if (d->code == C_OK && ops[de->call->op].stream == S_FILE &&
	    d->npaths > 0 && de->facts[d->paths[0].item].size > d->max_bytes) {
		d->code = C_LIM_MAX_BYTES;
		d->param = d->paths[0].param;
	}
	return 0;
}

/* ---- the pass ---- */

static void
trace(struct decision *d, const struct pcand *cand, enum code code,
    const char *param)
{
	d->trace[d->ntrace++] =
	    (struct dtrace){cand->st->rule->index, code, param};
}

static int
allow_pass(struct decider *de)
{
	const struct plan_priv *priv = de->priv;
	struct decision *d = de->d;
	enum code code, fs;
	const char *param;
	size_t i;

	d->trace = calloc(priv->ncands + 1, sizeof(*d->trace));
	if (d->trace == NULL)
		return -1;
	for (i = 0; i < priv->ncands; i++) {
		code = stmt_admit(de, &priv->cands[i], &fs, &param);
		trace(d, &priv->cands[i], code, param);
		if (code != C_OK)
			continue;
		d->code = fs;
		d->param = param;
		return winner_fill(de, &priv->cands[i]);
	}
	if (priv->ncands == 0 && de->call->op == OP_core_health) {
		d->allowed = 1;
		d->limit_key = ops[de->call->op].id;
		return 0;
	}
	if (priv->passed_first) {
		d->code = C_POL_PATH_NOT_ALLOWED;
		d->param = priv->values[0].param->name;
		return 0;
	}
	d->code = d->trace[0].code;
	d->param = d->trace[0].param;
	return 0;
}

static void
decision_init(struct decision *d, const struct plan *plan)
{
	memset(d, 0, sizeof(*d));
	d->code = plan->code;
	d->mounted = plan->priv->mounted;
	d->rule = plan->priv->rule;
	d->reason = plan->priv->reason;
	d->param = plan->priv->param;
	d->max_bytes = d->max_entries = LIMIT_NONE;
	d->cwd_item = -1;
}

int
policy_decide(const struct policy *p, const struct call *call,
    const struct plan *plan, const struct facts *facts, struct decision *d)
{
	struct decider de = {p, call, plan, plan->priv, facts, d, NULL};

	decision_init(d, plan);
	if (plan->code != C_OK)
		return 0;
	if (plan->nitems > 0 && facts == NULL) {
		d->code = C_POL_PATH_NOT_ALLOWED;
		return 0;
	}
	d->code = deny_facts(p, call, plan, facts, &d->rule, &d->param);
	if (d->code != C_OK) {
		if (d->rule >= 0)
			d->reason = p->rules[d->rule].reason;
		return 0;
	}
	d->rule = -1;
	d->param = NULL;
	if (allow_pass(&de) == -1) {
		decision_clear(d);
		return -1;
	}
	return 0;
}

void
decision_clear(struct decision *d)
{
	size_t i;

	for (i = 0; i < d->npaths; i++) {
		target_clear(&d->paths[i].target);
		free(d->paths[i].canonical);
	}
	free(d->paths);
	free(d->refs);
	strlist_clear(&d->deny);
	spawn_clear(&d->spawn);
	target_clear(&d->cwd);
	strlist_clear(&d->rules);
	free(d->trace);
	memset(d, 0, sizeof(*d));
}
