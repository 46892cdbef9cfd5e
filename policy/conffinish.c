/*
 * SPDX-License-Identifier: ISC
 *
 * What is filled in when all files were read: defaults of the world, the
 * minima of the top level, the snapshot of the environment, and the checks
 * that need the whole.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"

const struct strlist *
conf_env_pass(const struct conf *c)
{
	return &c->rules->env;
}

static int
default_str(struct cload *cl, char **at, const char *value)
{
	if (*at != NULL || value == NULL)
		return 0;
	return (*at = strdup(value)) == NULL ? conf_nomem(cl) : 0;
}

/* The minima of all layers into a rule.  A statement's own concurrency replaces
 * the default of streams; one of the whole must not. */
static void
limits_apply(struct limit_set *l, const struct limit_set *m)
{
	uint32_t own = l->concurrency;

	limit_set_least(l, m);
	if (own == 0) {
		l->concurrency_ceiling = l->concurrency;
		l->concurrency = 0;
	}
}

/* Put NAME=VALUE of the start into the snapshot, once. */
static int
env_keep(struct cload *cl, const struct rule *r, const char *name)
{
	struct strlist *env = &cl->c->rules->env;
	const char *value = conf_env(cl, name), *entry;
	size_t i, n = strlen(name);

	for (i = 0; i < cl->secret_names.n; i++)
		if (strcmp(cl->secret_names.v[i], name) == 0) {
			findings_add(cl->f, FIND_ERROR, "config.secret_inline",
			    r->at.file, r->at.line, r->at.col,
			    "env_pass would hand the credential of %s to "
			    "commands",
			    name);
			return 0;
		}
	if (value == NULL)
		return 0;
	for (i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, n) == 0 && env->v[i][n] == '=')
			return 0;
	entry = value - n - 1;
	if (!utf8_valid(value, strlen(value))) {
		findings_add(cl->f, FIND_WARN, "config.type", "environment", 0,
		    0, "%s is not UTF-8 and is not passed on", name);
		return 0;
	}
	return strlist_add(env, entry, strlen(entry)) == -1 ? conf_nomem(cl)
							    : 0;
}

static int
finish_rules(struct cload *cl)
{
	struct rule *r;
	size_t i, k;

	for (i = 0; i < cl->c->rules->n; i++) {
		r = &cl->c->rules->v[i];
		if (r->deny)
			continue;
		limits_apply(&r->limits, &cl->limits);
		for (k = 0; k < r->commands.env_pass.n; k++)
			if (env_keep(cl, r, r->commands.env_pass.v[k]) == -1)
				return -1;
	}
	return 0;
}

/* The variable that stands in for "audit". */
static int
env_audit(struct cload *cl)
{
	const char *s = conf_env(cl, "ABX_SERVER_AUDIT");

	if (s == NULL || *s == '\0' || strcmp(s, "0") == 0)
		return 0;
	if (strcmp(s, "1") != 0) {
		/* who set it believes that there is a log */
		findings_add(cl->f, FIND_ERROR, "config.type", "environment", 0,
		    0, "ABX_SERVER_AUDIT is 1 or 0, not \"%.40s\"", s);
		return 0;
	}
	return strlist_add(&cl->c->audit, "stderr", 6) == -1 ? conf_nomem(cl)
							     : 0;
}

/* Where a key of the top level stands, or one of the object that it is. */
static void
note_origin(
    struct cload *cl, const char *key, const char *member, struct origin *at)
{
	const struct node *n = cl->seen[ckey_find(conf_keys, key) - conf_keys];

	if (n != NULL && member != NULL)
		n = node_get(n, member);
	if (n != NULL)
		origin_set(cl, at, n);
}

static void
note_origins(struct cload *cl)
{
	struct conf_rules *rs = cl->c->rules;

	note_origin(cl, "state_dir", NULL, &rs->state_at);
	note_origin(cl, "users", "listener", &rs->users_at[0]);
	note_origin(cl, "users", "monitor", &rs->users_at[1]);
	note_origin(cl, "users", "run", &rs->users_at[2]);
	note_origin(cl, "control", "group", &rs->control_at);
}

int
conf_finish(struct cload *cl)
{
	const struct conf_world *w = cl->w;

	if (cl->canon)
		return 0;
	note_origins(cl);
	if (w != NULL &&
	    (default_str(cl, &cl->c->state_dir, w->default_state_dir) == -1 ||
		default_str(cl, &cl->c->workspace_root,
		    w->default_workspace_root) == -1))
		return -1;
	if (!cl->has_audit && env_audit(cl) == -1)
		return -1;
	if (conf_layer_env(cl) == -1 || conf_listen_finish(cl) == -1 ||
	    conf_auth_finish(cl) == -1 || finish_rules(cl) == -1)
		return -1;
	conf_open_checks(cl);
	return 0;
}
