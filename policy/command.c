/*
 * SPDX-License-Identifier: ISC
 *
 * Commands: from arguments to one argument vector, what a command scope says
 * of it, and what execd is to run.  The vector that deny, allow and execd see
 * is the same one.  Pure; whether a program exists only execd can tell.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/engine.h"

#define KILL_GRACE_MS 2000 /* between TERM and KILL */
#define SHELL "/bin/sh"

/* ---- one argument vector ---- */

static enum code
words_from_line(struct cmdline *cmd, const char *line, int *nomem)
{
	int r = shlex_split(line, &cmd->words);

	*nomem = r == -2;
	return r == 0 && cmd->words.n > 0 ? C_OK : C_ARGS_INVALID;
}

static enum code
words_from_list(struct cmdline *cmd, const struct arg *argv, int *nomem)
{
	size_t i;

	if (argv->n == 0)
		return C_ARGS_INVALID;
	if (argv->n > ABX_MAX_ARGV)
		return C_ARGS_TOO_LARGE;
	for (i = 0; i < argv->n; i++)
		if (strlist_add(&cmd->words, argv->list[i],
			strlen(argv->list[i])) == -1) {
			*nomem = 1;
			return C_ARGS_INVALID;
		}
	return C_OK;
}

/* The forms that patterns are held against. */
static enum code
normalise(struct cmdline *cmd, int *nomem)
{
	static char sh[] = SHELL, flag[] = "-c";
	int r = argv_norm_init(&cmd->norm, cmd->words.v, cmd->words.n);

	if (r == 0 && cmd->shell) {
		cmd->sh[0] = sh;
		cmd->sh[1] = flag;
		cmd->sh[2] = cmd->line;
		r = argv_norm_init(&cmd->sh_norm, cmd->sh, nitems(cmd->sh));
	}
	*nomem = r == -1;
	return r == 0 ? C_OK : C_ARGS_TOO_LARGE;
}

int
cmdline_build(struct cmdline *cmd, const struct args *args, enum code *code,
    const char **param)
{
	struct arg *line = args_find(args, "command"),
		   *argv = args_find(args, "argv");
	int nomem = 0;

	cmd->given = 1;
	cmd->shell = policy_arg_bool(args, "shell");
	*code = C_ARGS_INVALID;
	*param = line != NULL ? "command" : "argv";
	if ((line == NULL) == (argv == NULL) || (cmd->shell && line == NULL))
		return 0;
	if (line != NULL) {
		cmd->line = line->s;
		*code = words_from_line(cmd, line->s, &nomem);
	} else
		*code = words_from_list(cmd, argv, &nomem);
	if (*code == C_OK)
		*code = normalise(cmd, &nomem);
	if (*code == C_OK)
		*param = NULL;
	return nomem ? -1 : 0;
}

void
cmdline_clear(struct cmdline *cmd)
{
	argv_norm_clear(&cmd->norm);
	argv_norm_clear(&cmd->sh_norm);
	strlist_clear(&cmd->words);
	memset(cmd, 0, sizeof(*cmd));
}

int
cmdline_denied(const struct cmdline *cmd, struct argv_pat *const *pats,
    size_t n, const struct strlist *dirs)
{
	size_t i;

	if (!cmd->given)
		return 0;
	for (i = 0; i < n; i++)
		if (argv_pat_match(pats[i], &cmd->norm, dirs, NULL, NULL) ||
		    (cmd->shell && argv_pat_match(pats[i], &cmd->sh_norm, dirs,
				       NULL, NULL)))
			return 1;
	return 0;
}

/* ---- what a command scope says ---- */

struct word_check {
	const struct policy *p;
	const struct call *call;
	const struct plan *plan;
	const struct pcand *cand;
	const struct facts *facts;
};

/* The slot of the working directory, given or implied. */
static const struct pslot *
cwd_slot(const struct plan_priv *priv, const struct pcand *cand)
{
	size_t i;

	for (i = 0; i < priv->nvalues; i++)
		if ((priv->values[i].param->roles & R_CWD) != 0)
			return &cand->slots[i];
	return &cand->cwd;
}

/* "..", first thing in a word, means what it says only when the directory
 * is where its name says. */
static int
climbs_from_link(const struct word_check *w, const char *word)
{
	const struct pslot *cwd = cwd_slot(w->plan->priv, w->cand);

	while (strncmp(word, "./", 2) == 0)
		for (word += 2; *word == '/'; word++)
			;
	if (strncmp(word, "..", 2) != 0 || (word[2] != '/' && word[2] != '\0'))
		return 0;
	return cwd->item < 0 || strcmp(w->facts[cwd->item].path,
				    w->plan->items[cwd->item].path) != 0;
}

/* {path}: inside the cwd scope as it really lies, and not denied. */
static int
word_ok_cb(void *arg, size_t word)
{
	const struct word_check *w = arg;
	const struct plan_priv *priv = w->plan->priv;
	const struct facts *f;
	long item, rule;

	if (w->cand->words == NULL || (item = w->cand->words[word].item) < 0)
		return 0;
	f = &w->facts[item];
	if (f->status != FS_OK ||
	    path_admit(w->p, cand_cwd(w->cand), &w->plan->items[item], f,
		w->call->op, 0) != C_OK)
		return 0;
	return !deny_found(w->p, w->call->op, priv, f, &rule) &&
	       !climbs_from_link(w, priv->cmd.words.v[word]);
}

static const struct argv_pat *
pattern_find(const struct word_check *w)
{
	const struct cscope *c = &w->cand->st->rule->commands;
	size_t i;

	for (i = 0; i < c->nallow; i++)
		if (argv_pat_match(c->allow[i], &w->plan->priv->cmd.norm,
			&c->exec_dirs, word_ok_cb, (void *)(uintptr_t)w))
			return c->allow[i];
	return NULL;
}

static int
env_ok(const struct cscope *c, const struct args *args)
{
	const struct arg *env = args_find(args, "env");
	size_t i;

	for (i = 0; env != NULL && i < env->n; i++)
		if (!env_may_set(&c->env_set, &c->env_deny, env->list[i]))
			return 0;
	return 1;
}

/* The pattern that lets the words through; C_OK with NULL: any would do. */
static enum code
words_admit(const struct word_check *w, const struct argv_pat **win)
{
	const struct cscope *c = &w->cand->st->rule->commands;

	*win = pattern_find(w);
	if (*win == NULL && !c->unrestricted)
		return w->cand->words_full ? C_ARGS_TOO_LARGE
					   : C_POL_COMMAND_NOT_ALLOWED;
	if (!argv_prog_inside(w->plan->priv->cmd.words.v[0], &c->exec_dirs))
		return C_POL_EXEC_NOT_FOUND;
	return C_OK;
}

enum code
command_admit(const struct policy *p, const struct call *call,
    const struct plan *plan, const struct pcand *cand,
    const struct facts *facts, const struct argv_pat **win, const char **param)
{
	const struct cscope *c = &cand->st->rule->commands;
	const struct cmdline *cmd = &plan->priv->cmd;
	struct word_check w = {p, call, plan, cand, facts};
	enum code code;

	*win = NULL;
	*param = cmd->shell ? "shell" : cmd->line != NULL ? "command" : "argv";
	if (cmd->shell && !c->shell)
		return C_POL_SHELL_NOT_ALLOWED;
	if (cmdline_denied(cmd, c->deny, c->ndeny, &c->exec_dirs))
		return C_POL_COMMAND_DENIED;
	if (!cmd->shell && (code = words_admit(&w, win)) != C_OK)
		return code;
	*param = "env";
	if (!env_ok(c, call->args))
		return C_POL_ENV_VAR_DENIED;
	*param = NULL;
	return C_OK;
}

/* ---- what execd is to run ---- */

static int
spawn_words(const struct plan_priv *priv, const struct cscope *c,
    const struct argv_pat *win, struct spawn *s)
{
	const struct cmdline *cmd = &priv->cmd;
	size_t i;

	if (cmd->shell) {
		for (i = 0; i < nitems(cmd->sh); i++)
			if (strlist_add(
				&s->argv, cmd->sh[i], strlen(cmd->sh[i])) == -1)
				return -1;
		return strlist_add(&s->progs, SHELL, strlen(SHELL));
	}
	for (i = 0; i < cmd->words.n; i++)
		if (strlist_add(&s->argv, cmd->words.v[i],
			strlen(cmd->words.v[i])) == -1)
			return -1;
	return argv_pat_progs(win, cmd->words.v[0], &c->exec_dirs, &s->progs);
}

static int
spawn_env(const struct cscope *c, const struct args *args, const char *home,
    struct strlist *env)
{
	const struct arg *given = args_find(args, "env");
	size_t i;

	if (env_put(env, "HOME", home) == -1 ||
	    env_put(env, "USER", "abx") == -1 ||
	    env_put(env, "LOGNAME", "abx") == -1 ||
	    env_put(env, "LANG", "C.UTF-8") == -1 ||
	    env_put(env, "PATH", c->path_env) == -1)
		return -1;
	for (i = 0; i < c->env_pass.n; i++)
		if (env_put_pair(env, c->env_pass.v[i]) == -1)
			return -1;
	for (i = 0; given != NULL && i < given->n; i++)
		if (env_put(env, given->list[i], given->vals[i]) == -1)
			return -1;
	for (i = 0; i < c->env_fixed.n; i++)
		if (env_put_pair(env, c->env_fixed.v[i]) == -1)
			return -1;
	return 0;
}

int
command_spawn(const struct call *call, const struct plan_priv *priv,
    const struct pcand *cand, const struct argv_pat *win, const char *cwd,
    const char *home, struct decision *d)
{
	const struct cscope *c = &cand->st->rule->commands;
	struct spawn *s = &d->spawn;

	if (args_find(call->args, "stdin") != NULL)
		s->flags |= SPAWN_STDIN;
	if (c->no_fork)
		s->flags |= SPAWN_NO_FORK;
	if (c->head_tail)
		s->flags |= SPAWN_HEAD_TAIL;
	if (policy_arg_bool(call->args, "stream"))
		s->flags |= SPAWN_STREAM;
	s->grace_ms = KILL_GRACE_MS;
	bound_spawn(call->args, cand->st->rule, s);
	s->cwd = strdup(cwd != NULL ? cwd : "/");
	if (s->cwd == NULL || spawn_words(priv, c, win, s) == -1)
		return -1;
	return spawn_env(c, call->args, home != NULL ? home : "/tmp", &s->env);
}

/* ---- the command policy ---- */

static int
add_names(struct strlist *l, const char *const *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strlist_add(l, v[i], strlen(v[i])) == -1)
			return -1;
	return 0;
}

int
command_filter(
    const struct policy *p, const struct call *call, struct decision *d)
{
	const struct arg *in = args_find(call->args, "stdin");
	struct filter_result r;

	if (d->code != C_OK)
		return 0;
	if (filter_check(p->filter, &d->spawn.argv, in != NULL ? in->s : NULL,
		in != NULL ? in->len : 0, &r) == -1 ||
	    add_names(&d->rules, r.blocked, r.nblocked) == -1 ||
	    add_names(&d->rules, r.warned, r.nwarned) == -1)
		return -1;
	if (r.nblocked > 0) {
		d->allowed = 0;
		d->code = C_POL_COMMAND_BLOCKED;
		d->reason = r.reason;
	} else if (r.too_large) {
		d->allowed = 0;
		d->code = C_ARGS_TOO_LARGE;
		d->param = "stdin";
	}
	return 0;
}

void
policy_clock(struct policy *p, uint64_t (*us)(void))
{
	filter_clock(p->filter, us);
}

const char *
policy_filter_fault(const struct policy *p)
{
	return p->filter_fault[0] != '\0' ? p->filter_fault : NULL;
}

const struct filter *
policy_filter(const struct policy *p)
{
	return p->filter;
}
