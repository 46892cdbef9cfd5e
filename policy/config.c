/*
 * SPDX-License-Identifier: ISC
 *
 * From the texts of all layers to one struct conf: the outermost table of
 * keys, the order of the layers, and what is filled in at the end.  Rules,
 * credentials, listeners and presets have files of their own.  Reads no file
 * and asks no clock; what it must know of the world is in struct conf_world.
 */
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/confkey.h"

/* ---- small keys with a shape of their own ---- */

static int
get_version(struct cload *cl, const struct node *n, void *obj)
{
	/* conf_version looked at it before anything else was read. */
	return 0;
}

static int
put_version(struct out *o, const void *obj)
{
	out_u64(o, 1);
	return 1;
}

static int
get_auth(struct cload *cl, const struct node *n, void *obj)
{
	cl->auth = n;
	origin_set(cl, &cl->c->rules->auth_at, n);
	return conf_object(cl, n, auth_keys, obj);
}

static int
put_auth(struct out *o, const void *obj)
{
	out_object(o, auth_keys, obj);
	return 1;
}

static int
get_rules(struct cload *cl, const struct node *n, void *obj)
{
	return conf_rules_add(cl, n);
}

static int
put_rules(struct out *o, const void *obj)
{
	const struct conf *c = obj;
	size_t i;

	out_lit(o, "[");
	for (i = 0; i < c->rules->n; i++) {
		if (i > 0)
			out_lit(o, ",");
		out_object(o, rule_keys, &c->rules->v[i]);
	}
	out_lit(o, "]");
	return 1;
}

/* The minima of the top level are worked into every rule at the end. */
static int
get_limits(struct cload *cl, const struct node *n, void *obj)
{
	return conf_object(cl, n, limit_keys, &cl->limits);
}

static int
get_env(struct cload *cl, const struct node *n, void *obj)
{
	struct conf *c = obj;

	return conf_strings(cl, n, &c->rules->env, NULL);
}

static int
put_env(struct out *o, const void *obj)
{
	const struct conf *c = obj;

	out_list(o, &c->rules->env);
	return 1;
}

/* ---- audit ---- */

/* What is wrong with the path of an audit file, or NULL.  Its directory is
 * kept from every caller. */
static const char *
audit_why(const char *path)
{
	const char *name = strrchr(path, '/') + 1, *why = NULL;
	enum code code;
	char *dir, *norm;

	if (text_has_control(path))
		return "control characters are not accepted";
	if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return "a file is expected, with its name";
	if ((dir = strndup(path, (size_t)(name - path))) == NULL)
		return NULL; /* nor will what follows get any */
	norm = path_normal(dir, &code);
	if (norm == NULL && code != C_OK)
		why = "the path is too long";
	else if (norm != NULL && strcmp(norm, "/") == 0)
		why = "not in /, since no caller can reach the directory of "
		      "an audit file";
	free(norm);
	free(dir);
	return why;
}

static int
check_sink(struct cload *cl, const struct node *n)
{
	const char *why;

	if (strcmp(n->s, "stderr") == 0)
		return 0;
	if (strncmp(n->s, "file:/", 6) == 0) {
		if ((why = audit_why(n->s + 5)) == NULL)
			return 0;
		conf_find(cl, n, FIND_ERROR, "config.root_invalid",
		    "the audit sink \"%.200s\": %s", n->s, why);
		return -1;
	}
	if (strcmp(n->s, "syslog") == 0 || strncmp(n->s, "unix:", 5) == 0)
		conf_find(cl, n, FIND_ERROR, "config.not_supported",
		    "the audit sink \"%.80s\" is not supported by this "
		    "version",
		    n->s);
	else
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "an audit sink is \"stderr\" or \"file:/PATH\", not "
		    "\"%.80s\"",
		    n->s);
	return -1;
}

#define OFF(f) offsetof(struct conf, f)
static const struct ckey audit_keys[] = {
    {"chain", K_LATER},
    {"keep", K_LATER},
    {"redact", K_LATER},
    {"rotate", K_LATER},
    {"sink", K_LIST, CK_ALIAS | CK_JOIN, OFF(audit), .check = check_sink},
    {"sinks", K_LIST, CK_JOIN, OFF(audit), .check = check_sink},
    {NULL},
};

static int
get_audit(struct cload *cl, const struct node *n, void *obj)
{
	cl->has_audit = 1;
	return conf_object(cl, n, audit_keys, obj);
}

static int
put_audit(struct out *o, const void *obj)
{
	out_object(o, audit_keys, obj);
	return 1;
}

/* ---- sandbox ---- */

static const struct {
	const char *name;
	uint32_t bit;
} require_words[] = {
    {"namespaces", LAYER_NAMESPACES},
    {"seccomp", LAYER_SECCOMP},
    {"landlock", LAYER_LANDLOCK},
    {"cgroup", LAYER_CGROUP},
};

static int
get_require(struct cload *cl, const struct node *n, void *obj)
{
	struct conf *c = obj;
	struct strlist l = {0};
	size_t i, k;
	int error;

	error = conf_strings(cl, n, &l, NULL);
	c->require = 0;
	for (i = 0; i < l.n; i++) {
		for (k = 0; k < nitems(require_words); k++)
			if (strcmp(l.v[i], require_words[k].name) == 0)
				break;
		if (k < nitems(require_words))
			c->require |= require_words[k].bit;
		else
			conf_find(cl, n, FIND_ERROR, "config.type",
			    "\"require\": \"%.80s\": a layer is namespaces, "
			    "seccomp, landlock or cgroup",
			    l.v[i]);
	}
	strlist_clear(&l);
	return error;
}

static int
put_require(struct out *o, const void *obj)
{
	const struct conf *c = obj;
	const char *sep = "[";
	size_t k;

	for (k = 0; k < nitems(require_words); k++)
		if ((c->require & require_words[k].bit) != 0) {
			out_lit(o, sep);
			out_str(o, require_words[k].name);
			sep = ",";
		}
	out_lit(o, c->require == 0 ? "[]" : "]");
	return 1;
}

#define DAY_MS (24ULL * 3600 * 1000)
#define SPOOL_HI (4ULL * 1024 * 1024) /* 128 processes keep two each */

/* Of sessions. */
static const struct ckey workspace_keys[] = {
    {"max", K_U32, 0, OFF(ws_max), 1, ABX_MAX_WORKSPACES_EACH},
    {"max_bytes", K_SIZE, CK_OPT0, OFF(ws_max_bytes), 1, 1ULL << 50},
    {"ttl", K_MSEC, 0, OFF(ws_ttl_ms), 0, 366 * DAY_MS},
    {NULL},
};

const struct ckey sandbox_keys[] = {
    {"capabilities", K_LATER},
    {"cpu_quota_percent", K_U32, CK_OPT0, OFF(cpu_percent), 1, 100000},
    {"enabled", K_BOOL, 0, OFF(sandbox_enabled)},
    {"fs_read", K_LATER},
    {"fs_write", K_LATER},
    {"kill_grace", K_LATER},
    {"max_memory_mb", K_U32, CK_OPT0, OFF(max_memory_mb), 1, 1U << 30},
    {"max_pids", K_U32, 0, OFF(max_pids), 1, 1000000},
    {"network", K_LATER},
    {"output_scrub", K_LATER},
    {"output_spool", K_SIZE, 0, OFF(output_spool), 4096, SPOOL_HI},
    {"process_ttl", K_MSEC, 0, OFF(process_ttl_ms), 1000, DAY_MS},
    {"profiles", K_LATER},
    {"protect", K_LIST, 0, OFF(protect_names), .check = check_protect},
    {"protect_absent", K_BOOL, 0, OFF(protect_absent)},
    {"require", K_FUNC, .get = get_require, .put = put_require},
    {"tmp_size", K_SIZE, 0, OFF(tmp_size), 4096, 1ULL << 40},
    {"total_cpu_percent", K_U32, CK_OPT0, OFF(total_cpu), 1, 100000},
    {"total_memory", K_SIZE, CK_OPT0, OFF(total_memory), 16 << 20, 1ULL << 50},
    {"total_pids", K_U32, CK_OPT0, OFF(total_pids), 16, 1000000},
    {"ttl", K_LATER},
    {"unix_sockets", K_LATER},
    {"workspace", K_OBJ, .sub = workspace_keys},
    {"workspace_root", K_DIR, 0, OFF(workspace_root)},
    {NULL},
};

static int
get_sandbox(struct cload *cl, const struct node *n, void *obj)
{
	origin_set(cl, &cl->c->rules->sandbox_at, n);
	return conf_object(cl, n, sandbox_keys, obj);
}

static int
put_sandbox(struct out *o, const void *obj)
{
	out_object(o, sandbox_keys, obj);
	return 1;
}

/* ---- users ---- */

static const struct ckey user_keys[] = {
    {"helper", K_LATER},
    {"key", K_LATER},
    {"listener", K_STR, 0, OFF(users[0]), .check = check_name},
    {"monitor", K_STR, 0, OFF(users[1]), .check = check_name},
    {"proxy", K_LATER},
    {"run", K_STR, 0, OFF(users[2]), .check = check_name},
    {NULL},
};

/* ---- control and reload ---- */

static const struct ckey control_keys[] = {
    {"group", K_STR, 0, OFF(control_group), .check = check_group},
    {"path", K_STR, 0, OFF(control_path), .check = check_socket},
    {"readers", K_LATER},
    {NULL},
};
static const char *const reload_words[] = {"off", "sighup", NULL};

/* ---- the outermost table ---- */

#define KEEP(f) offsetof(struct cload, f)
const struct ckey conf_keys[] = {
    {"agents", K_LATER},
    {"allow_lint_errors", K_BOOL, 0, OFF(allow_lint_errors)},
    {"allow_open", K_BOOL, 0, OFF(allow_open)},
    {"allowed_hosts", K_LIST, 0, OFF(allowed_hosts), .check = check_host},
    {"allowed_origins", K_LIST, 0, OFF(allowed_origins), .check = check_origin},
    {"approvals", K_LATER},
    {"audit", K_FUNC, CK_JOIN, .get = get_audit, .put = put_audit},
    {"auth", K_FUNC, .get = get_auth, .put = put_auth},
    {"ceiling", K_FUNC, CK_CANON, .get = get_ceiling, .put = put_ceiling},
    {"command_policy", K_OBJ, 0, OFF(filter), .sub = filter_keys},
    {"control", K_OBJ, .sub = control_keys},
    {"env", K_FUNC, CK_CANON, .get = get_env, .put = put_env},
    {"hooks", K_LATER},
    {"http", K_OBJ, .sub = http_keys},
    {"install", K_LATER},
    {"limits", K_FUNC, .get = get_limits},
    {"listen", K_FUNC, .get = get_listen, .put = put_listen},
    {"network", K_LATER},
    {"ops", K_LATER},
    {"paths", K_KEEP, CK_ALIAS, KEEP(root)},
    {"preset", K_KEEP, 0, KEEP(preset)},
    {"presets", K_KEEP, 0, KEEP(presets)},
    {"protect_dirs", K_LIST, CK_JOIN | CK_PATHS, OFF(protect_dirs),
	.check = check_dir},
    {"reload", K_ENUM, 0, OFF(reload), .words = reload_words},
    {"restart_limit", K_U32, 0, OFF(restart_limit), 1, 1000},
    {"root", K_KEEP, 0, KEEP(root)},
    {"rules", K_FUNC, CK_JOIN, .get = get_rules, .put = put_rules},
    {"sandbox", K_FUNC, .get = get_sandbox, .put = put_sandbox},
    {"shutdown_grace", K_MSEC, 0, OFF(shutdown_grace_ms), 0, 5000},
    {"state_dir", K_DIR, 0, OFF(state_dir)},
    {"tls", K_LATER},
    {"trusted_proxies", K_LIST, 0, OFF(trusted_proxies), .check = check_proxy},
    {"umask", K_OCTAL, 0, OFF(umask), 0027, 0777},
    {"users", K_OBJ, .sub = user_keys},
    {"version", K_FUNC, CK_JOIN, .get = get_version, .put = put_version},
    {"without", K_KEEP, 0, KEEP(without)},
    {"workspace", K_KEEP, CK_ALIAS, KEEP(root)},
    {NULL},
};
#undef KEEP
#undef OFF
_Static_assert(nitems(conf_keys) <= CONF_TOPKEYS, "seen[] is too small");

/* ---- one source ---- */

/* A file that was written for another version is not half read. */
static int
conf_version(struct cload *cl, const struct node *top)
{
	const struct node *n = node_get(top, "version");
	uint64_t v;

	if (n == NULL)
		conf_find(cl, top, FIND_ERROR, "config.version",
		    "\"version\": 1 is missing");
	else if (n->type != N_NUM ||
		 uint_parse(n->s, n->len, UINT64_MAX, &v) == -1)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"version\" is the whole number 1");
	else if (v != 1)
		conf_find(cl, n, FIND_ERROR, "config.version",
		    "version %.20s is not known; this program reads version 1",
		    n->s);
	else
		return 0;
	/* Without a version the rest is still read, for its findings. */
	return n == NULL || n->type != N_NUM ? 0 : -1;
}

/* The object of keys: the text itself, or what "server" wraps. */
static const struct node *
conf_unwrap(struct cload *cl, const struct node *tree)
{
	const struct node *server = node_get(tree, "server");

	if (server != NULL && tree->n == 1)
		tree = server;
	else if (server != NULL) {
		conf_findkey(cl, server, FIND_ERROR, "config.unknown_key",
		    "\"server\" is around the whole configuration or not at "
		    "all: move the other keys into it");
		return NULL;
	}
	if (tree->type != N_OBJ) {
		conf_type(cl, tree, "an object");
		return NULL;
	}
	return tree;
}

/* A key that another file has set; 1 after the finding. */
static int
top_seen(struct cload *cl, const struct ckey *k, const struct node *n)
{
	const struct node **seen = &cl->seen[k - conf_keys];

	if (*seen == NULL || (k->flags & CK_JOIN) != 0) {
		*seen = n;
		return 0;
	}
	conf_findkey(cl, n, FIND_ERROR, "config.duplicate_key",
	    "the key \"%s\" is set in %s line %u already", n->key,
	    (*seen)->file, (*seen)->kline);
	return 1;
}

/* Every key of one file but the rules, which wait for the presets. */
static int
conf_top(struct cload *cl, const struct node *top)
{
	const struct ckey *k;
	const struct node *n;

	for (n = top->child; n != NULL; n = n->next) {
		if (n->dup)
			continue;
		k = ckey_find(conf_keys, n->key);
		if (k == NULL || ((k->flags & CK_CANON) != 0 && !cl->canon))
			conf_unknown(cl, n, conf_keys, NULL);
		else if (!top_seen(cl, k, n) && strcmp(n->key, "rules") != 0 &&
			 conf_value(cl, k, n,
			     k->type == K_KEEP ? (void *)cl : cl->c) == -1)
			return -1;
	}
	return 0;
}

/* ---- all sources ---- */

struct sources {
	const struct node *top[CONF_SOURCES];
	struct node *tree[CONF_SOURCES];
	enum conf_layer layer[CONF_SOURCES];
	size_t n;
};

/* Parse everything before anything is understood: -1 when a text cannot be
 * read at all, so that nothing is said about the half that could. */
static int
sources_parse(struct cload *cl, const struct conf_source *src, size_t n,
    struct sources *ss)
{
	size_t i;
	int error = 0;

	for (i = 0; i < n; i++) {
		if (ss->n == CONF_SOURCES) {
			findings_add(cl->f, FIND_ERROR, "config.syntax",
			    src[i].name, 1, 1, "too many files");
			return -1;
		}
		ss->layer[ss->n] = src[i].layer;
		ss->tree[ss->n] =
		    tree_json(src[i].name, src[i].data, src[i].len, cl->f);
		if (ss->tree[ss->n] == NULL) {
			error = -1;
			continue;
		}
		ss->top[ss->n] = conf_unwrap(cl, ss->tree[ss->n]);
		if (ss->top[ss->n] == NULL ||
		    conf_version(cl, ss->top[ss->n]) == -1)
			error = -1;
		ss->n++;
	}
	return error;
}

static void
source_at(struct cload *cl, const struct sources *ss, size_t i)
{
	cl->layer = ss->layer[i];
	cl->file = ss->top[i]->file;
}

/* The keys of every file that grants or that only restricts. */
static int
sources_top(struct cload *cl, const struct sources *ss, int restricting)
{
	size_t i;

	for (i = 0; i < ss->n; i++) {
		source_at(cl, ss, i);
		if (layer_restricts(cl->layer) != restricting)
			continue;
		if ((restricting ? conf_operator_top(cl, ss->top[i])
				 : conf_top(cl, ss->top[i])) == -1)
			return -1;
	}
	return 0;
}

static int
source_rules(struct cload *cl, const struct node *top)
{
	const struct node *rules = node_get(top, "rules");

	if (layer_restricts(cl->layer) ? conf_operator_disable(cl, top) == -1
				       : conf_presets(cl) == -1)
		return -1;
	return rules != NULL ? conf_rules_add(cl, rules) : 0;
}

/* First every file's keys, then presets and rules in the order of layers. */
static int
sources_read(struct cload *cl, const struct sources *ss)
{
	size_t i;

	if (sources_top(cl, ss, 0) == -1 || sources_top(cl, ss, 1) == -1 ||
	    conf_preset_cli(cl) == -1)
		return -1;
	for (i = 0; i < ss->n; i++) {
		source_at(cl, ss, i);
		if (source_rules(cl, ss->top[i]) == -1)
			return -1;
	}
	return 0;
}

static void
sources_free(struct sources *ss)
{
	while (ss->n > 0)
		tree_free(ss->tree[--ss->n]);
	free(ss);
}

struct conf *
conf_load(const struct conf_source *src, size_t n, const struct conf_world *w,
    struct findings *f)
{
	struct cload cl = {.w = w, .f = f};
	struct sources *ss = calloc(1, sizeof(*ss));
	int error = 0;

	cl.canon = n == 1 && src[0].layer == LAYER_CANON;
	limit_set_init(&cl.limits);
	cl.top.line = cl.top.col = 1;
	cl.top.file = strdup(n > 0 ? src[0].name : "configuration");
	cl.c = conf_new();
	if (ss == NULL || cl.top.file == NULL || cl.c == NULL)
		error = conf_nomem(&cl);
	if (error == 0)
		error = sources_parse(&cl, src, n, ss);
	if (error == 0)
		error = sources_read(&cl, ss);
	if (error == 0)
		error = conf_finish(&cl);
	if (error == -1) {
		conf_free(cl.c);
		cl.c = NULL;
	}
	if (ss != NULL)
		sources_free(ss);
	strlist_clear(&cl.secret_names);
	confids_clear(&cl.ids);
	free(cl.top.file);
	return cl.c;
}
