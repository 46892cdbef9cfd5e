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

static int
default_str(struct cload *cl, char **at, const char *value)
{
	if (*at != NULL || value == NULL)
		return 0;
	return (*at = strdup(value)) == NULL ? conf_nomem(cl) : 0;
}

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void
limits_min(struct limit_set *l, const struct limit_set *m)
{
	l->max_bytes = min_u64(l->max_bytes, m->max_bytes);
	l->max_entries = min_u64(l->max_entries, m->max_entries);
	l->timeout_ms = min_u64(l->timeout_ms, m->timeout_ms);
	l->max_output = min_u64(l->max_output, m->max_output);
	l->cpu_s = min_u64(l->cpu_s, m->cpu_s);
	l->memory = min_u64(l->memory, m->memory);
	l->processes = min_u64(l->processes, m->processes);
	/* The slower of two rates; counts are below 2^32, periods an hour. */
	if (m->rate_count != 0 &&
	    (l->rate_count == 0 || m->rate_count * l->rate_period_ms <
				       l->rate_count * m->rate_period_ms)) {
		l->rate_count = m->rate_count;
		l->rate_period_ms = m->rate_period_ms;
	}
	if (m->concurrency != 0 &&
	    (l->concurrency == 0 || m->concurrency < l->concurrency))
		l->concurrency = m->concurrency;
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
		limits_min(&r->limits, &cl->limits);
		for (k = 0; k < r->commands.env_pass.n; k++)
			if (env_keep(cl, r, r->commands.env_pass.v[k]) == -1)
				return -1;
	}
	return 0;
}

static void
env_supported(struct cload *cl)
{
	static const char *const names[] = {"ABX_SERVER_READONLY",
	    "ABX_SERVER_DISABLE", "ABX_SERVER_MAX_BYTES", "ABX_SERVER_TIMEOUT",
	    "ABX_SERVER_POLICY_RELOAD"};
	const char *s;
	size_t i;

	for (i = 0; i < nitems(names); i++)
		if ((s = conf_env(cl, names[i])) != NULL && *s != '\0')
			findings_add(cl->f, FIND_ERROR, "config.not_supported",
			    "environment", 0, 0,
			    "%s is not supported by this version", names[i]);
}

int
conf_finish(struct cload *cl)
{
	const struct conf_world *w = cl->w;
	const char *s;

	if (cl->canon)
		return 0;
	if (w != NULL &&
	    (default_str(cl, &cl->c->state_dir, w->default_state_dir) == -1 ||
		default_str(cl, &cl->c->workspace_root,
		    w->default_workspace_root) == -1))
		return -1;
	if (!cl->has_audit && (s = conf_env(cl, "ABX_SERVER_AUDIT")) != NULL &&
	    strcmp(s, "1") == 0 &&
	    strlist_add(&cl->c->audit, "stderr", 6) == -1)
		return conf_nomem(cl);
	if (conf_listen_finish(cl) == -1 || conf_auth_finish(cl) == -1 ||
	    finish_rules(cl) == -1)
		return -1;
	env_supported(cl);
	conf_open_checks(cl);
	return 0;
}
