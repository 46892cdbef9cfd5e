/*
 * SPDX-License-Identifier: ISC
 *
 * What of a configuration other processes are told, and whether it fits into
 * the one message that each of them gets: BOOT for the parent and LM_CONF for
 * the listener.  Sends nothing.
 */
#include "monitor/confwire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/imsg.h"
#include "monitor/confdirs.h"
#include "monitor/confset.h"

#define CONTROL_MAX 107 /* bytes of a socket's path */

/* ---- BOOT ---- */

static int
add_path(struct boot_path **v, size_t *n, uint32_t id, const char *path, int rw)
{
	struct boot_path *p;
	char *copy;

	if ((copy = strdup(path)) == NULL)
		return -1;
	if ((p = recallocarray(*v, *n, *n + 1, sizeof(*p))) == NULL) {
		free(copy);
		return -1;
	}
	*v = p;
	p += (*n)++;
	p->id = id;
	p->path = copy;
	p->rw = (uint8_t)(rw != 0);
	return 0;
}

/* Add what execd must see, once, by its canonical name.  What lies in /usr is
 * there anyway; what does not exist was said by a finding. */
static int
add_bind(struct boot *b, const char *path, int rw)
{
	char *real;
	size_t i;
	int r = 0;

	if ((real = confdirs_canonical(path)) == NULL)
		return errno == ENOMEM ? -1 : 0;
	for (i = 0; i < b->nbinds; i++)
		if (strcmp(b->binds[i].path, real) == 0)
			break;
	if (i < b->nbinds)
		b->binds[i].rw |= (uint8_t)(rw != 0);
	else if (!confdirs_within(real, "/usr"))
		r = add_path(&b->binds, &b->nbinds, 0, real, rw);
	free(real);
	return r;
}

static int
by_path(const void *va, const void *vb)
{
	const struct boot_path *a = va, *b = vb;

	return strcmp(a->path, b->path);
}

static int
boot_paths(struct boot *b, const struct confset *cs)
{
	const struct strlist *dirs = policy_exec_dirs(cs->policy);
	struct policy_root root;
	size_t i;

	for (i = 0; i < policy_nroots(cs->policy); i++) {
		policy_root(cs->policy, i, &root);
		if (add_path(&b->roots, &b->nroots, (uint32_t)i, root.path,
			root.writable) == -1)
			return -1;
		if (b->exec_used && root.exec &&
		    add_bind(b, root.path, root.exec_rw) == -1)
			return -1;
	}
	if (!b->exec_used)
		return 0;
	for (i = 0; i < dirs->n; i++)
		if (add_bind(b, dirs->v[i], 0) == -1)
			return -1;
	if (b->workspace_root[0] != '\0' &&
	    add_bind(b, b->workspace_root, 1) == -1)
		return -1;
	/* a directory before what lies in it */
	if (b->nbinds > 1)
		qsort(b->binds, b->nbinds, sizeof(*b->binds), by_path);
	return 0;
}

static int
boot_listen(struct boot *b, const struct conf *c)
{
	struct boot_listen *l;
	size_t i;

	if ((b->listen = calloc(c->nlisten + 1, sizeof(*b->listen))) == NULL)
		return -1;
	for (i = 0; i < c->nlisten; i++) {
		l = &b->listen[b->nlisten++];
		l->is_unix = (uint8_t)c->listen[i].is_unix;
		l->port = c->listen[i].port;
		l->mode = c->listen[i].mode;
		l->addr = strdup(c->listen[i].addr);
		l->group = strdup(
		    c->listen[i].group != NULL ? c->listen[i].group : "");
		if (l->addr == NULL || l->group == NULL)
			return -1;
	}
	return 0;
}

static int
boot_users(struct boot *b, const struct conf *c)
{
	size_t i;

	for (i = 0; i < nitems(b->users); i++)
		if ((b->users[i] = strdup(
			 c->users[i] != NULL ? c->users[i] : "")) == NULL)
			return -1;
	return 0;
}

/* ---- what a reload will know of this environment ---- */

static int
keep(struct strlist *l, char kind, const char *text)
{
	char *s;
	size_t i;
	int r;

	if (asprintf(&s, "%c:%s", kind, text) == -1)
		return -1;
	for (i = 0; i < l->n && strcmp(l->v[i], s) != 0; i++)
		;
	r = i < l->n ? 0 : strlist_add(l, s, strlen(s));
	free(s);
	return r;
}

/* 1 when the text starts with "NAME=" of one of the digests. */
static int
is_secret(const struct strlist *digests, const char *text)
{
	size_t i, n = strcspn(text, "=");

	if (strncmp(text, "ABX_SERVER_TOKEN=", 17) == 0)
		return 1;
	for (i = 0; i < digests->n; i++)
		if (strncmp(digests->v[i], text, n + 1) == 0)
			return 1;
	return 0;
}

/* A variable that a load reads by its own name. */
static int
is_read(const char *text)
{
	static const char *const names[] = {"HOME=", "XDG_STATE_HOME=",
	    "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY=", "ABX_SERVER_"};
	size_t i;

	for (i = 0; i < nitems(names); i++)
		if (strncmp(text, names[i], strlen(names[i])) == 0)
			return 1;
	return 0;
}

static int
boot_start_env(struct boot *b, const struct confset *cs)
{
	const struct strlist *pass = conf_env_pass(cs->conf),
			     *digests = &cs->conf->env_digests;
	const char *const *p;
	size_t i;

	for (i = 0; i < pass->n; i++)
		if (keep(&b->start_env, 'E', pass->v[i]) == -1)
			return -1;
	for (p = cs->world.env; p != NULL && *p != NULL; p++)
		if (is_read(*p) && !is_secret(digests, *p) &&
		    keep(&b->start_env, 'E', *p) == -1)
			return -1;
	for (i = 0; i < digests->n; i++)
		if (keep(&b->start_env, 'D', digests->v[i]) == -1)
			return -1;
	return 0;
}

/* Where abxctl finds the service. */
static int
boot_control(struct boot *b, const struct confset *cs)
{
	const struct conf *c = cs->conf;
	char *run;
	int r;

	b->reload = c->reload != RELOAD_OFF;
	b->control_group =
	    strdup(c->control_group != NULL ? c->control_group : "");
	if (c->control_path != NULL) {
		b->control_path = strdup(c->control_path);
	} else {
		run = confdirs_run(cs->world.root_start, cs->world.env,
		    cs->files.file, c->state_dir);
		if (run == NULL)
			return -1;
		r = asprintf(&b->control_path, "%s/control", run);
		free(run);
		if (r == -1) {
			b->control_path = NULL;
			return -1;
		}
	}
	if (b->control_path == NULL || b->control_group == NULL)
		return -1;
	if (strlen(b->control_path) > CONTROL_MAX)
		b->control_path[0] = '\0';
	return 0;
}

int
confwire_boot(struct boot *b, const struct confset *cs)
{
	const struct conf *c = cs->conf;

	memset(b, 0, sizeof(*b));
	b->umask = c->umask;
	b->tmp_size = c->tmp_size;
	b->require = c->require;
	b->cpu_percent = c->cpu_percent;
	b->total_memory = c->total_memory;
	b->total_pids = c->total_pids;
	b->total_cpu = c->total_cpu;
	b->protect_absent = (uint8_t)c->protect_absent;
	b->exec_used =
	    c->sandbox_enabled && policy_has_effect(cs->policy, E_EXEC);
	b->shutdown_grace_ms = c->shutdown_grace_ms;
	b->restart_limit = c->restart_limit;
	b->state_dir = strdup(c->state_dir);
	b->workspace_root =
	    strdup(policy_workspaces(cs->policy) >= 0 ? c->workspace_root : "");
	if (b->state_dir == NULL || b->workspace_root == NULL ||
	    conf_revision(c, b->revision) == -1)
		return -1;
	if (boot_users(b, c) == -1 || boot_listen(b, c) == -1 ||
	    strlist_copy(&b->audit, &c->audit) == -1 ||
	    strlist_copy(&b->protect, &cs->protect) == -1 ||
	    strlist_copy(&b->protect_names, &c->protect_names) == -1 ||
	    boot_control(b, cs) == -1 || boot_start_env(b, cs) == -1)
		return -1;
	return boot_paths(b, cs);
}

/* ---- LM_CONF ---- */

int
confwire_listener(
    struct lconf *l, const struct conf *c, const uint8_t key[SHA256_LEN])
{
	uint8_t mac[SHA256_LEN];
	size_t i;

	memset(l, 0, sizeof(*l));
	if (c->ntokens > 0 &&
	    (l->tokens = calloc(c->ntokens, sizeof(*l->tokens))) == NULL)
		return -1;
	memcpy(l->hmac_key, key, sizeof(l->hmac_key));
	for (i = 0; i < c->ntokens; i++) {
		hmac_sha256(key, sizeof(l->hmac_key), c->tokens[i].digest,
		    SHA256_LEN, mac);
		l->tokens[l->ntokens++] =
		    (uint32_t)mac[0] | (uint32_t)mac[1] << 8 |
		    (uint32_t)mac[2] << 16 | (uint32_t)mac[3] << 24;
	}
	l->open = (uint8_t)(c->open_mode != 0);
	l->anonymous = (uint8_t)(c->anonymous != 0);
	l->anonymous_health = (uint8_t)(c->anonymous_health != 0);
	l->has_peers = (uint8_t)(c->npeers > 0);
	l->header_timeout_ms = c->header_timeout_ms;
	l->head_deadline_ms = c->head_deadline_ms;
	l->idle_timeout_ms = c->idle_timeout_ms;
	l->shutdown_grace_ms = c->shutdown_grace_ms;
	l->max_pre_auth = c->max_pre_auth;
	l->max_connections = c->max_connections;
	l->max_header_bytes = c->max_header_bytes;
	l->max_request_bytes = c->max_request_bytes;
	l->min_rate = c->min_rate;
	l->allowed_hosts = c->allowed_hosts;
	l->allowed_origins = c->allowed_origins;
	l->trusted_proxies = c->trusted_proxies;
	return 0;
}

/* ---- do they fit ---- */

static int
boot_reads(struct rbuf *r)
{
	struct boot b;

	if (boot_get(r, &b) == -1)
		return -1;
	boot_clear(&b);
	return 0;
}

static int
lconf_reads(struct rbuf *r)
{
	struct lconf l;

	if (lconf_get(r, &l) == -1)
		return -1;
	lconf_clear(&l);
	return 0;
}

/* 1 when the message could not be made, or cannot be read again. */
static int
unfit(struct wbuf *w, int (*reads)(struct rbuf *))
{
	struct rbuf r;
	int bad = 1;

	if (!w->err) {
		rbuf_init(&r, w->p, w->len);
		bad = reads(&r) == -1;
	}
	wbuf_free(w);
	return bad;
}

int
confwire_check(struct confset *cs)
{
	static const uint8_t key[SHA256_LEN];
	struct lconf l;
	struct wbuf w;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	boot_put(&w, &cs->boot);
	if (unfit(&w, boot_reads))
		findings_add(&cs->found, FIND_ERROR, "config.too_large",
		    cs->files.file, 1, 1,
		    "the roots, directories, audit sinks, protected names and "
		    "variables to pass are too many or too long together");
	if (confwire_listener(&l, cs->conf, key) == -1)
		return -1;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	lconf_put(&w, &l);
	if (unfit(&w, lconf_reads))
		findings_add(&cs->found, FIND_ERROR, "config.too_large",
		    cs->files.file, 1, 1,
		    "the tokens, allowed_hosts, allowed_origins and "
		    "trusted_proxies are too many or too long together");
	free(l.tokens);
	return 0;
}
