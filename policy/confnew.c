/*
 * SPDX-License-Identifier: ISC
 *
 * The life of a struct conf: the defaults of every key of the outermost table
 * (server.json(5), "KEYS") are written here and nowhere else.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/confkey.h"

#define REQUIRE_DEFAULT (LAYER_NAMESPACES | LAYER_SECCOMP | LAYER_LANDLOCK)

static const char *const user_names[] = {"_abxl", "_abxm", "abx"};

struct conf *
conf_new(void)
{
	static const char *const names[] = {
	    ".git", ".claude", ".codex", ".agents", ".aleph", ".vscode"};
	struct conf *c = calloc(1, sizeof(*c));
	size_t i;

	if (c == NULL || (c->rules = calloc(1, sizeof(*c->rules))) == NULL) {
		free(c);
		return NULL;
	}
	c->header_timeout_ms = 3 * 1000;
	c->head_deadline_ms = 10 * 1000;
	c->idle_timeout_ms = 30 * 1000;
	c->max_pre_auth = c->max_connections = 64;
	c->max_header_bytes = 16 * 1024;
	c->max_request_bytes = 1024 * 1024;
	c->min_rate = 1024;
	c->anonymous_health = 1;
	c->umask = 0027;
	c->shutdown_grace_ms = 3 * 1000;
	c->restart_limit = 5;
	c->sandbox_enabled = 1;
	c->tmp_size = 64 * 1024 * 1024;
	c->require = REQUIRE_DEFAULT;
	c->max_pids = 200;
	c->output_spool = 1024 * 1024;
	c->process_ttl_ms = 10 * 60 * 1000;
	c->ws_max = 64;
	c->ws_ttl_ms = 24 * 3600 * 1000;
	for (i = 0; i < nitems(user_names); i++)
		if ((c->users[i] = strdup(user_names[i])) == NULL)
			break;
	if (i == nitems(user_names))
		for (i = 0; i < nitems(names); i++)
			if (strlist_add(&c->protect_names, names[i],
				strlen(names[i])) == -1)
				break;
	if (i == nitems(names) && filter_conf_init(&c->filter) == 0)
		return c;
	conf_free(c);
	return NULL;
}

static void
conf_rules_free(struct conf_rules *rs)
{
	size_t i;

	for (i = 0; i < rs->n; i++)
		rule_clear(&rs->v[i]);
	free(rs->v);
	strlist_clear(&rs->env);
	strlist_clear(&rs->ceiling.roots);
	free(rs->sandbox_at.file);
	free(rs->listen_at.file);
	free(rs->auth_at.file);
	free(rs->state_at.file);
	for (i = 0; i < nitems(rs->users_at); i++)
		free(rs->users_at[i].file);
	free(rs->control_at.file);
	for (i = 0; i < rs->nsecrets; i++) {
		free(rs->secrets[i].path);
		free(rs->secrets[i].at.file);
	}
	free(rs->secrets);
	free(rs);
}

void
conf_free(struct conf *c)
{
	size_t i;

	if (c == NULL)
		return;
	conf_listen_clear(c);
	strlist_clear(&c->allowed_hosts);
	strlist_clear(&c->allowed_origins);
	strlist_clear(&c->trusted_proxies);
	strlist_clear(&c->protect_dirs);
	for (i = 0; i < c->ntokens; i++) {
		free(c->tokens[i].id);
		strlist_clear(&c->tokens[i].roles);
	}
	freezero(c->tokens, c->ntokens * sizeof(*c->tokens));
	for (i = 0; i < c->npeers; i++) {
		free(c->peers[i].id);
		strlist_clear(&c->peers[i].roles);
	}
	free(c->peers);
	strlist_clear(&c->env_digests);
	free(c->control_path);
	free(c->control_group);
	strlist_clear(&c->audit);
	free(c->state_dir);
	free(c->workspace_root);
	for (i = 0; i < nitems(c->users); i++)
		free(c->users[i]);
	strlist_clear(&c->protect_names);
	filter_conf_clear(&c->filter);
	conf_rules_free(c->rules);
	free(c);
}
