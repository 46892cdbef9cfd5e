/*
 * SPDX-License-Identifier: ISC
 *
 * Tables of the scopes and limits of a rule: "paths", "commands", "urls",
 * "limits" (server.json(5), "Scopes").  What a scope admits is the engine's
 * business.
 */
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/confkey.h"

#define SIZE_HI (1ULL << 50)
#define MSEC_HI (365ULL * 24 * 3600 * 1000)
#define SEC_HI (365ULL * 24 * 3600)

/* "unsafe" only says that the author means it; the key that needs it asks. */
static int
get_unsafe(struct cload *cl, const struct node *n, void *obj)
{
	if (n->type != N_BOOL)
		conf_type(cl, n, "true or false");
	return 0;
}

static int
need_unsafe(struct cload *cl, const struct node *n, const char *key, int *on)
{
	const struct node *u = node_get(n, "unsafe");

	if (!*on || (u != NULL && u->type == N_BOOL && u->b))
		return 0;
	conf_find(cl, node_get(n, key), FIND_ERROR, "config.type",
	    "\"%s\": true needs \"unsafe\": true beside it", key);
	*on = 0;
	return 0;
}

/* ---- paths ---- */

static int
put_path_unsafe(struct out *o, const void *obj)
{
	const struct path_scope *s = obj;

	if (s->anywhere)
		out_lit(o, "true");
	return s->anywhere;
}

static const char *const symlink_words[] = {"within", "deny", NULL};

#define OFF(f) offsetof(struct path_scope, f)
const struct ckey path_keys[] = {
    {"allow_hardlinks", K_BOOL, 0, OFF(allow_hardlinks)},
    {"anywhere", K_BOOL, 0, OFF(anywhere)},
    {"create_dirs", K_BOOL, 0, OFF(create_dirs)},
    {"deny", K_LIST, 0, OFF(deny), .check = check_glob},
    {"max_bytes", K_SIZE, 0, OFF(max_bytes), 1, SIZE_HI},
    {"readonly", K_BOOL, 0, OFF(readonly)},
    {"roots", K_LIST, CK_PATHS, OFF(roots), .check = check_root},
    {"symlinks", K_ENUM, 0, OFF(symlinks_deny), .words = symlink_words,
	.check = check_symlinks},
    {"unsafe", K_FUNC, .get = get_unsafe, .put = put_path_unsafe},
    {NULL},
};
#undef OFF

int
conf_path_scope(struct cload *cl, const struct node *n, struct path_scope *s)
{
	if (n->type == N_STR || n->type == N_LIST)
		return conf_value(cl, ckey_find(path_keys, "roots"), n, s);
	if (n->type != N_OBJ) {
		conf_type(cl, n, "a directory, a list of them or an object");
		return 0;
	}
	if (conf_object(cl, n, path_keys, s) == -1)
		return -1;
	return need_unsafe(cl, n, "anywhere", &s->anywhere);
}

int
put_path_scope(struct out *o, const struct path_scope *s)
{
	out_object(o, path_keys, s);
	return 1;
}

/* ---- commands ---- */

static int
get_cwd(struct cload *cl, const struct node *n, void *obj)
{
	struct command_scope *s = obj;

	s->has_cwd = 1;
	return conf_path_scope(cl, n, &s->cwd);
}

static int
put_cwd(struct out *o, const void *obj)
{
	const struct command_scope *s = obj;

	return s->has_cwd ? put_path_scope(o, &s->cwd) : 0;
}

static int
env_cmp(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	size_t nx = strcspn(x, "="), ny = strcspn(y, "=");
	int c = memcmp(x, y, nx < ny ? nx : ny);

	return c != 0 ? c : nx < ny ? -1 : nx > ny;
}

/* One NAME: value of "env_fixed". */
static int
env_fixed_add(struct cload *cl, const struct node *c, struct strlist *l)
{
	struct node name = {.type = N_STR,
	    .of = "env_fixed",
	    .file = c->file,
	    .line = c->kline,
	    .col = c->kcol,
	    .s = c->key,
	    .len = strlen(c->key)};
	char *s;
	size_t len;
	int error;

	if (c->type != N_STR) {
		conf_type(cl, c, "a string");
		return 0;
	}
	if (check_env_name(cl, &name) == -1)
		return 0;
	len = name.len + 1 + c->len;
	if ((s = malloc(len + 1)) == NULL)
		return conf_nomem(cl);
	memcpy(s, name.s, name.len);
	s[name.len] = '=';
	memcpy(s + name.len + 1, c->s, c->len + 1);
	error = strlist_add(l, s, len);
	freezero(s, len);
	return error == -1 ? conf_nomem(cl) : 0;
}

static int
get_env_fixed(struct cload *cl, const struct node *n, void *obj)
{
	struct command_scope *s = obj;
	const struct node *c;

	if (n->type != N_OBJ) {
		conf_type(cl, n, "an object of strings");
		return 0;
	}
	for (c = n->child; c != NULL; c = c->next)
		if (!c->dup && env_fixed_add(cl, c, &s->env_fixed) == -1)
			return -1;
	if (s->env_fixed.n > 1)
		qsort(s->env_fixed.v, s->env_fixed.n, sizeof(char *), env_cmp);
	return 0;
}

static int
put_env_fixed(struct out *o, const void *obj)
{
	const struct command_scope *s = obj;
	size_t i, len;
	char *name;

	out_lit(o, "{");
	for (i = 0; i < s->env_fixed.n; i++) {
		len = strcspn(s->env_fixed.v[i], "=");
		if ((name = strndup(s->env_fixed.v[i], len)) == NULL) {
			o->w.err = 1;
			break;
		}
		if (i > 0)
			out_lit(o, ",");
		out_str(o, name);
		out_lit(o, ":");
		out_str(o, s->env_fixed.v[i] + len + 1);
		free(name);
	}
	out_lit(o, "}");
	return 1;
}

static int
check_profile(struct cload *cl, const struct node *n)
{
	if (strcmp(n->s, "default") == 0 || strcmp(n->s, "strict") == 0)
		return 0;
	conf_find(cl, n, FIND_ERROR, "config.type",
	    "\"sandbox\": \"%.80s\": a sandbox profile is \"default\" or "
	    "\"strict\"",
	    n->s);
	return -1;
}

static int
put_command_unsafe(struct out *o, const void *obj)
{
	const struct command_scope *s = obj;

	if (s->unrestricted)
		out_lit(o, "true");
	return s->unrestricted;
}

static const char *const keep_words[] = {"head", "head_tail", NULL};

#define OFF(f) offsetof(struct command_scope, f)
const struct ckey command_keys[] = {
    {"allow", K_LIST, 0, OFF(allow), .check = check_argv},
    {"cpu_seconds", K_SEC, 0, OFF(cpu_s), 1, SEC_HI},
    {"cwd", K_FUNC, .get = get_cwd, .put = put_cwd},
    {"deny", K_LIST, 0, OFF(deny), .check = check_argv_deny},
    {"env_deny", K_LIST, 0, OFF(env_deny), .check = check_env_glob},
    {"env_fixed", K_FUNC, .get = get_env_fixed, .put = put_env_fixed},
    {"env_pass", K_LIST, 0, OFF(env_pass), .check = check_env_name},
    {"env_set", K_LIST, 0, OFF(env_set), .check = check_env_glob},
    {"exec_dirs", K_LIST, CK_PATHS, OFF(exec_dirs), .check = check_exec_dir},
    {"idle_timeout", K_MSEC, CK_OPT0, OFF(idle_ms), 1, MSEC_HI},
    {"max_output_bytes", K_SIZE, 0, OFF(max_output), 1, SIZE_HI},
    {"memory", K_SIZE, 0, OFF(memory), 1, SIZE_HI},
    {"output_keep", K_ENUM, 0, OFF(head_tail), .words = keep_words},
    {"processes", K_U64, 0, OFF(processes), 1, 1000000},
    {"sandbox", K_STR, 0, OFF(sandbox), .check = check_profile},
    {"shell", K_BOOL, 0, OFF(shell)},
    {"signals", K_LIST, 0, OFF(signals), .check = check_signal},
    {"timeout", K_MSEC, 0, OFF(timeout_ms), 1, MSEC_HI},
    {"unrestricted", K_BOOL, 0, OFF(unrestricted)},
    {"unsafe", K_FUNC, .get = get_unsafe, .put = put_command_unsafe},
    {NULL},
};
#undef OFF

int
conf_command_scope(
    struct cload *cl, const struct node *n, struct command_scope *s)
{
	command_scope_clear(s);
	if (command_scope_init(s) == -1)
		return conf_nomem(cl);
	if (conf_object(cl, n, command_keys, s) == -1)
		return -1;
	return need_unsafe(cl, n, "unrestricted", &s->unrestricted);
}

/* ---- urls ---- */

static int
get_ports(struct cload *cl, const struct node *n, void *obj)
{
	struct url_scope *s = obj;
	const struct node *c = n->type == N_LIST ? n->child : n;
	uint64_t v;

	for (s->nports = 0; c != NULL; c = n->type == N_LIST ? c->next : NULL) {
		if (c->type != N_NUM ||
		    uint_parse(c->s, c->len, 65535, &v) == -1 || v == 0)
			conf_find(cl, c, FIND_ERROR, "config.type",
			    "a port is a whole number from 1 to 65535");
		else if (s->nports == nitems(s->ports))
			conf_find(cl, c, FIND_ERROR, "config.type",
			    "more than %zu ports", nitems(s->ports));
		else
			s->ports[s->nports++] = (uint32_t)v;
	}
	return 0;
}

static int
put_ports(struct out *o, const void *obj)
{
	const struct url_scope *s = obj;
	size_t i;

	out_lit(o, "[");
	for (i = 0; i < s->nports; i++) {
		if (i > 0)
			out_lit(o, ",");
		out_u64(o, s->ports[i]);
	}
	out_lit(o, "]");
	return 1;
}

#define OFF(f) offsetof(struct url_scope, f)
const struct ckey url_keys[] = {
    {"block_private", K_BOOL, 0, OFF(block_private)},
    {"hosts", K_LIST, 0, OFF(hosts), .check = check_url_host},
    {"paths", K_LIST, 0, OFF(paths), .check = check_url_path},
    {"ports", K_FUNC, .get = get_ports, .put = put_ports},
    {"schemes", K_LIST, 0, OFF(schemes), .check = check_scheme},
    {NULL},
};
#undef OFF

int
conf_url_scope(struct cload *cl, const struct node *n, struct url_scope *s)
{
	url_scope_clear(s);
	if (url_scope_init(s) == -1)
		return conf_nomem(cl);
	return conf_object(cl, n, url_keys, s);
}

/* ---- agent ---- */

static int
get_workdir(struct cload *cl, const struct node *n, void *obj)
{
	struct agent_scope *s = obj;

	return conf_path_scope(cl, n, &s->workdir);
}

static int
put_workdir(struct out *o, const void *obj)
{
	const struct agent_scope *s = obj;

	return put_path_scope(o, &s->workdir);
}

static const char *const permission_words[] = {
    "read-only", "workspace-write", "full", NULL};

#define OFF(f) offsetof(struct agent_scope, f)
const struct ckey agent_keys[] = {
    {"commands", K_LIST, 0, OFF(commands), .check = check_nonempty},
    {"max_turns", K_U32, CK_OPT0, OFF(max_turns), 1, 1000000},
    {"models", K_LIST, 0, OFF(models), .check = check_nonempty},
    {"permissions", K_ENUM, 0, OFF(permissions), .words = permission_words},
    {"unconfined_ok", K_BOOL, 0, OFF(unconfined_ok)},
    {"workdir", K_FUNC, .get = get_workdir, .put = put_workdir},
    {NULL},
};
#undef OFF

int
conf_agent_scope(struct cload *cl, const struct node *n, struct agent_scope *s)
{
	return conf_object(cl, n, agent_keys, s);
}

/* ---- limits ---- */

/* "N/Mms": what two rates have in common, in a canonical text. */
static int
rate_parse_ms(const char *s, uint32_t *count, uint64_t *period)
{
	size_t n = strcspn(s, "/"), m;
	uint64_t v;

	if (s[n] != '/' || (m = strlen(s + n + 1)) < 3 ||
	    strcmp(s + n + m - 1, "ms") != 0 ||
	    uint_parse(s, n, UINT32_MAX, &v) == -1 || v == 0 ||
	    uint_parse(s + n + 1, m - 2, UINT64_MAX, period) == -1 ||
	    *period == 0)
		return -1;
	*count = (uint32_t)v;
	return 0;
}

static int
get_rate(struct cload *cl, const struct node *n, void *obj)
{
	struct limit_set *l = obj;
	uint32_t count;
	uint64_t period;

	if (n->type != N_STR)
		conf_type(cl, n, "a rate such as \"10/min\"");
	else if ((rate_parse(n->s, &count, &period) == -1 || count == 0) &&
		 (!cl->canon || rate_parse_ms(n->s, &count, &period) == -1))
		conf_find(cl, n, FIND_ERROR, "config.size_invalid",
		    "\"rate\" is \"%.80s\", not a rate such as \"10/min\", "
		    "\"5/s\" or \"100/h\"",
		    n->s);
	else {
		l->rate_count = count;
		l->rate_period_ms = period;
	}
	return 0;
}

static int
put_rate(struct out *o, const void *obj)
{
	const struct limit_set *l = obj;
	const char *unit = NULL;
	char buf[48];

	if (l->rate_count == 0)
		return 0;
	if (l->rate_period_ms == 1000)
		unit = "s";
	else if (l->rate_period_ms == 60 * 1000)
		unit = "min";
	else if (l->rate_period_ms == 3600 * 1000)
		unit = "h";
	if (unit != NULL)
		snprintf(buf, sizeof(buf), "%u/%s", l->rate_count, unit);
	else
		snprintf(buf, sizeof(buf), "%u/%llums", l->rate_count,
		    (unsigned long long)l->rate_period_ms);
	out_str(o, buf);
	return 1;
}

#define OFF(f) offsetof(struct limit_set, f)
const struct ckey limit_keys[] = {
    {"concurrency", K_U32, CK_OPT0, OFF(concurrency), 1, 1000000},
    {"concurrency_ceiling", K_U32, CK_OPT0 | CK_CANON, OFF(concurrency_ceiling),
	1, 1000000},
    {"cpu_seconds", K_SEC, 0, OFF(cpu_s), 1, SEC_HI},
    {"max_bytes", K_SIZE, 0, OFF(max_bytes), 1, SIZE_HI},
    {"max_entries", K_U64, 0, OFF(max_entries), 1, 1000000000},
    {"max_output_bytes", K_SIZE, 0, OFF(max_output), 1, SIZE_HI},
    {"memory", K_SIZE, 0, OFF(memory), 1, SIZE_HI},
    {"processes", K_U64, 0, OFF(processes), 1, 1000000},
    {"rate", K_FUNC, .get = get_rate, .put = put_rate},
    {"timeout", K_MSEC, 0, OFF(timeout_ms), 1, MSEC_HI},
    {NULL},
};
#undef OFF
