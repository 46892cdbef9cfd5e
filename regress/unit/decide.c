/*
 * SPDX-License-Identifier: ISC
 *
 * Decision tables: every JSON file in decide/ holds a configuration (with
 * "operator" and "env" where it has such layers), a make-believe file system
 * and calls with what must come out.  The walk below stands in for pathd; the
 * rest is the real reader and the real engine.
 */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "policy/policy.h"

#define TABLES "regress/unit/decide/*.json"

struct table {
	const char *file;
	json_t *json;
	json_t *tree; /* path -> node */
	struct conf *conf;
	struct policy *policy;
	int failed;
};

static void
wrong(struct table *t, json_t *c, const char *fmt, ...)
{
	const char *name = json_string_value(json_object_get(c, "name"));
	va_list ap;

	t->failed++;
	fprintf(stderr, "%s: %s: ", t->file, name != NULL ? name : "?");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static const char *
str(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

/* ---- a file system out of a table ---- */

static json_t *
node_at(struct table *t, const char *path)
{
	return json_object_get(t->tree, path);
}

static const char *
node_kind(json_t *node)
{
	return json_is_string(node) ? json_string_value(node)
				    : str(node, "kind");
}

static const char *
below(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path + 1;
	if (strncmp(dir, path, n) != 0 || (path[n] != '\0' && path[n] != '/'))
		return NULL;
	return path[n] == '/' ? path + n + 1 : path + n;
}

/* The longest asking root that contains the path, into dir. */
static int
root_of(struct table *t, const struct plan_item *it, const char *path,
    struct facts *f, char *dir, size_t size)
{
	struct policy_root r;
	char one[ABX_PATH_MAX + 1];
	const char *canon;
	size_t i, best = 0;

	for (i = 0; i < it->nrefs; i++) {
		policy_root(t->policy, it->refs[i].root, &r);
		canon = str(json_object_get(t->json, "canonical"), r.path);
		snprintf(one, sizeof(one), "%s%s%s",
		    canon != NULL ? canon : r.path,
		    it->refs[i].sub[0] != '\0' ? "/" : "", it->refs[i].sub);
		if (below(one, path) == NULL || strlen(one) <= best)
			continue;
		/* a placeholder's directory may be missing */
		if (it->refs[i].sub[0] == '\0' && node_at(t, one) == NULL)
			continue;
		best = strlen(one);
		f->ref = (uint8_t)i;
		f->rel = (uint16_t)best;
		strlcpy(dir, one, size);
	}
	return best > 0 ? 0 : -1;
}

static void
found(struct facts *f, json_t *node, const char *path)
{
	const char *kind = node_kind(node);

	f->path = strdup(path);
	f->kind = strcmp(kind, "file") == 0   ? FK_FILE
		  : strcmp(kind, "dir") == 0  ? FK_DIR
		  : strcmp(kind, "link") == 0 ? FK_LINK
					      : FK_OTHER;
	f->nlink = 1;
	f->dev = 1;
	f->ino = strlen(path);
	if (json_is_object(node)) {
		f->size =
		    (uint64_t)json_integer_value(json_object_get(node, "size"));
		if (json_object_get(node, "nlink") != NULL)
			f->nlink = (uint32_t)json_integer_value(
			    json_object_get(node, "nlink"));
	}
}

/* Replace path by where the link at its first n bytes leads. */
static void
follow(char *path, size_t n, const char *target)
{
	char out[ABX_PATH_MAX + 1], *normal;
	enum code code;

	while (target[0] != '/' && n > 0 && path[n - 1] != '/')
		n--;
	snprintf(out, sizeof(out), "%.*s%s/%s", target[0] == '/' ? 0 : (int)n,
	    path, target,
	    strchr(path + n, '/') != NULL && target[0] == '/'
		? strchr(path + n, '/') + 1
		: "");
	normal = path_normal(out, &code);
	assert_non_null(normal);
	strlcpy(path, normal, ABX_PATH_MAX + 1);
	free(normal);
}

/* One pass from the root down: 1 when a link was taken, else 0. */
static int
walk_once(
    struct table *t, const struct plan_item *it, char *path, struct facts *f)
{
	char dir[ABX_PATH_MAX + 1], rest[ABX_PATH_MAX + 1];
	size_t n, len;
	json_t *node;

	if (root_of(t, it, path, f, dir, sizeof(dir)) == -1) {
		f->status = FS_OUTSIDE;
		return 0;
	}
	for (n = strlen(dir);; n += len) {
		len = path[n] == '\0' ? 0 : 1 + strcspn(path + n + 1, "/");
		strlcpy(dir, path, n + 1 < sizeof(dir) ? n + 1 : sizeof(dir));
		node = node_at(t, dir);
		if (node == NULL) {
			f->path = strdup(path);
			for (f->missing = 1; path[n] != '\0'; n++)
				f->missing += path[n] == '/';
			return 0;
		}
		if (strcmp(node_kind(node), "link") == 0 &&
		    (len > 0 || !it->nofollow)) {
			strlcpy(rest, path + n, sizeof(rest));
			path[n] = '\0';
			follow(path, n, str(node, "to"));
			strlcat(path, rest, ABX_PATH_MAX + 1);
			f->symlink = 1;
			return 1;
		}
		if (strcmp(node_kind(node), "errno") == 0 ||
		    (len > 0 && strcmp(node_kind(node), "dir") != 0)) {
			f->status = FS_ERRNO;
			f->err = len > 0 ? ENOTDIR : EACCES;
			return 0;
		}
		if (len == 0) {
			found(f, node, path);
			return 0;
		}
	}
}

static void
walk(struct table *t, const struct plan_item *it, struct facts *f)
{
	char path[ABX_PATH_MAX + 1];
	int links = 0;

	strlcpy(path, it->path, sizeof(path));
	while (walk_once(t, it, path, f))
		if (++links > 40) {
			f->status = FS_INVALID;
			return;
		}
}

/* ---- calls ---- */

static int
all_strings(json_t *v)
{
	const char *key;
	json_t *one;
	size_t i;

	if (json_is_array(v)) {
		json_array_foreach(v, i, one)
			if (!json_is_string(one))
				return 0;
	} else {
		json_object_foreach(v, key, one)
			if (!json_is_string(one))
				return 0;
	}
	return 1;
}

static enum arg_type
type_of(json_t *v, int query, int nested)
{
	switch (json_typeof(v)) {
	case JSON_STRING:
		return query ? A_QUERY : A_STR;
	case JSON_INTEGER:
		return A_INT;
	case JSON_REAL:
		return A_NUM;
	case JSON_TRUE:
	case JSON_FALSE:
		return A_BOOL;
	case JSON_ARRAY:
		return all_strings(v) ? A_LIST : A_OTHER;
	case JSON_OBJECT:
		return all_strings(v) ? A_MAP : nested ? A_OTHER : A_ARGS;
	default:
		return A_NULL;
	}
}

static void
fill_args(json_t *from, int query, int nested, struct args *to)
{
	const char *name, *key;
	char *text;
	struct arg *a;
	json_t *v, *one;
	size_t i;

	memset(to, 0, sizeof(*to));
	json_object_foreach(from, name, v) {
		a = args_add(to, name, type_of(v, query, nested));
		assert_non_null(a);
		if (json_is_string(v))
			arg_set_str(
			    a, json_string_value(v), json_string_length(v));
		if (json_is_integer(v))
			a->i = json_integer_value(v);
		if (json_is_boolean(v))
			a->i = json_is_true(v);
		if (a->type == A_ARGS) {
			assert_non_null(a->sub = calloc(1, sizeof(*a->sub)));
			fill_args(v, 0, 1, a->sub);
		}
		if (a->type == A_OTHER) {
			text = json_dumps(v, JSON_COMPACT);
			arg_set_str(a, text, strlen(text));
			free(text);
		}
		if (a->type == A_LIST)
			json_array_foreach(v, i, one)
				arg_push(a, json_string_value(one), NULL);
		if (a->type == A_MAP)
			json_object_foreach(v, key, one)
				arg_push(a, key, json_string_value(one));
	}
}

static void
args_of(json_t *from, int query, struct args *to)
{
	fill_args(from, query, 0, to);
}

/* "viewer", or {id, roles, anonymous}; a plain name has the role that is
 * called like it. */
static void
who_of(json_t *from, struct principal *who, const char *roles[8])
{
	json_t *one, *list = json_object_get(from, "roles");
	size_t i;

	memset(who, 0, sizeof(*who));
	who->roles = roles;
	who->id =
	    json_is_string(from) ? json_string_value(from) : str(from, "id");
	if (who->id == NULL)
		who->id = "root";
	who->authenticated = !json_is_true(json_object_get(from, "anonymous"));
	if (!json_is_object(from))
		roles[who->nroles++] =
		    strcmp(who->id, "root") == 0 ? "admin" : who->id;
	json_array_foreach(list, i, one)
		roles[who->nroles++] = json_string_value(one);
}

/* ---- what came out ---- */

static void
same_str(struct table *t, json_t *c, const char *key, const char *got)
{
	json_t *want = json_object_get(c, key);
	const char *s = json_string_value(want);

	if (want == NULL)
		return;
	if ((s == NULL) != (got == NULL) || (s != NULL && strcmp(s, got) != 0))
		wrong(t, c, "%s is %s", key, got != NULL ? got : "(none)");
}

static void
same_int(struct table *t, json_t *c, const char *key, long long got)
{
	json_t *want = json_object_get(c, key);

	if (want == NULL)
		return;
	if (json_is_boolean(want) ? json_is_true(want) != got
				  : json_integer_value(want) != got)
		wrong(t, c, "%s is %lld", key, got);
}

static void
same_list(
    struct table *t, json_t *c, const char *key, const struct strlist *got)
{
	json_t *want = json_object_get(c, key);
	size_t i, bad = 0;

	if (want == NULL)
		return;
	if (json_array_size(want) != got->n)
		bad = 1;
	for (i = 0; !bad && i < got->n; i++)
		bad = strcmp(json_string_value(json_array_get(want, i)),
			  got->v[i]) != 0;
	if (!bad)
		return;
	wrong(t, c, "%s is", key);
	for (i = 0; i < got->n; i++)
		fprintf(stderr, "\t%s\n", got->v[i]);
}

/* Every pair of the object, and with "only" nothing else. */
static void
same_env(struct table *t, json_t *c, const struct strlist *got)
{
	json_t *want = json_object_get(c, "env"), *v;
	const char *key;
	char pair[512];
	size_t i;

	json_object_foreach(want, key, v) {
		snprintf(
		    pair, sizeof(pair), "%s=%s", key, json_string_value(v));
		for (i = 0; i < got->n; i++)
			if (strcmp(got->v[i], pair) == 0)
				break;
		if (i == got->n)
			wrong(t, c, "no %s", pair);
	}
	if (want != NULL && json_object_size(want) != got->n)
		wrong(t, c, "%zu variables", got->n);
}

static void
same_paths(struct table *t, json_t *c, const struct decision *d)
{
	json_t *want = json_object_get(c, "canonical"), *v;
	const char *key;
	size_t i;

	json_object_foreach(want, key, v) {
		for (i = 0; i < d->npaths; i++)
			if (strcmp(d->paths[i].param, key) == 0)
				break;
		if (i == d->npaths)
			wrong(t, c, "no path %s", key);
		else if (strcmp(d->paths[i].canonical, json_string_value(v)) !=
			 0)
			wrong(t, c, "%s is %s", key, d->paths[i].canonical);
	}
}

static void
same_trace(struct table *t, json_t *c, const struct decision *d)
{
	json_t *want = json_object_get(c, "trace"), *one;
	size_t i;

	if (want == NULL)
		return;
	if (json_array_size(want) != d->ntrace)
		wrong(t, c, "%zu statements tried", d->ntrace);
	json_array_foreach(want, i, one)
		if (i < d->ntrace && strcmp(json_string_value(one),
					 codes[d->trace[i].code].code) != 0)
			wrong(t, c, "statement %zu: %s", i,
			    codes[d->trace[i].code].code);
}

static void
judge(struct table *t, json_t *c, const struct plan *plan,
    const struct decision *d, int explain)
{
	const char *want = str(c, "code");
	int allowed = strcmp(want, "ok") == 0;

	if (json_object_get(c, "allowed") != NULL)
		allowed = json_is_true(json_object_get(c, "allowed"));
	if (strcmp(codes[d->code].code, want) != 0)
		wrong(t, c, "code is %s", codes[d->code].code);
	if (d->allowed != allowed)
		wrong(t, c, "allowed is %d", d->allowed);
	same_int(t, c, "items", (long long)plan->nitems);
	same_int(t, c, "mounted", d->mounted);
	same_int(t, c, "rule", d->rule);
	same_str(t, c, "reason", d->reason);
	same_str(t, c, "param", d->param);
	same_str(t, c, "limit_key", d->limit_key);
	same_int(t, c, "max_bytes", (long long)d->max_bytes);
	same_int(t, c, "max_entries", (long long)d->max_entries);
	same_int(t, c, "rate_count", d->rate_count);
	same_int(t, c, "rate_period_ms", (long long)d->rate_period_ms);
	same_int(t, c, "concurrency", d->concurrency);
	same_int(t, c, "nrefs", (long long)d->nrefs);
	same_int(t, c, "pflags", d->npaths > 0 ? d->paths[0].flags : -1);
	same_str(t, c, "rel", d->npaths > 0 ? d->paths[0].target.rel : NULL);
	same_list(t, c, "deny", &d->deny);
	same_list(t, c, "progs", &d->spawn.progs);
	same_list(t, c, "argv", &d->spawn.argv);
	same_str(t, c, "cwd", d->spawn.cwd);
	same_str(t, c, "workspace", d->spawn.session);
	same_int(t, c, "cwd_item", d->cwd_item);
	same_int(t, c, "cwd_readonly", d->cwd_readonly);
	same_int(t, c, "sflags", d->spawn.flags);
	same_int(t, c, "timeout_ms", (long long)d->spawn.timeout_ms);
	same_int(t, c, "idle_ms", (long long)d->spawn.idle_ms);
	same_int(t, c, "max_output", (long long)d->spawn.max_output);
	same_int(t, c, "memory", (long long)d->spawn.memory);
	same_env(t, c, &d->spawn.env);
	same_paths(t, c, d);
	if (explain)
		same_trace(t, c, d);
}

/* As the service asks, and as explain does; only the trace may differ. */
static void
run_once(struct table *t, json_t *c, int explain)
{
	const char *roles[8];
	struct facts *facts;
	struct principal who;
	struct decision d;
	struct args args;
	struct plan plan;
	struct call call = {.args = &args, .who = &who, .explain = explain};
	size_t i;

	args_of(json_object_get(c, "args"),
	    json_is_true(json_object_get(c, "query")), &args);
	who_of(json_object_get(c, "who"), &who, roles);
	call.op = op_find(str(c, "op"));
	call.session = str(c, "session");
	assert_int_equal(policy_plan(t->policy, &call, &plan), 0);
	assert_true(plan.nitems <= ABX_MAX_RESOLVE);
	facts = calloc(plan.nitems + 1, sizeof(*facts));
	assert_non_null(facts);
	for (i = 0; i < plan.nitems; i++)
		walk(t, &plan.items[i], &facts[i]);
	assert_int_equal(policy_decide(t->policy, &call, &plan,
			     plan.nitems > 0 ? facts : NULL, &d),
	    0);
	judge(t, c, &plan, &d, explain);
	decision_clear(&d);
	for (i = 0; i < plan.nitems; i++)
		facts_clear(&facts[i]);
	free(facts);
	plan_clear(&plan);
	args_clear(&args);
}

static void
run_case(struct table *t, json_t *c)
{
	run_once(t, c, 0);
	run_once(t, c, 1);
}

/* ---- tables ---- */

/* Errors of the configuration are errors of the table. */
static void
no_errors(const char *file, const struct findings *fs)
{
	char *text;
	size_t i;
	int bad = 0;

	for (i = 0; i < fs->n; i++)
		if (fs->v[i].sev == FIND_ERROR) {
			text = finding_text(&fs->v[i]);
			fprintf(stderr, "%s\n", text);
			free(text);
			bad = 1;
		}
	if (bad || fs->nomem)
		fail_msg("%s: configuration", file);
}

/* Roots and protected directories as the parent would report them. */
static void
tell_places(struct table *t)
{
	json_t *canon = json_object_get(t->json, "canonical"), *one;
	struct policy_root r;
	size_t i;

	for (i = 0; i < policy_nroots(t->policy); i++) {
		policy_root(t->policy, i, &r);
		if (str(canon, r.path) != NULL)
			assert_int_equal(
			    policy_set_root(t->policy, i, str(canon, r.path)),
			    0);
	}
	json_array_foreach(json_object_get(t->json, "protect"), i, one)
		assert_int_equal(
		    policy_protect(t->policy, json_string_value(one)), 0);
}

/* The variables of the table after those that every table has. */
static void
table_env(json_t *list, const char *env[16])
{
	size_t i, n = 0;
	json_t *one;

	env[n++] = "PATH=/sbin";
	env[n++] = "LANG=de_DE";
	env[n++] = "EDITOR=ed";
	assert_true(json_array_size(list) < 12);
	json_array_foreach(list, i, one)
		env[n++] = json_string_value(one);
	env[n] = NULL;
}

static void
table_source(struct conf_source *src, size_t *n, const char *name,
    enum conf_layer layer, json_t *from)
{
	char *text;

	if (from == NULL)
		return;
	text = json_dumps(from, 0);
	assert_non_null(text);
	src[(*n)++] = (struct conf_source){name, layer, text, strlen(text)};
}

static void
table_open(struct table *t, const char *file)
{
	const char *env[16];
	struct conf_world world = {.env = env,
	    .default_state_dir = "/var/lib/abx-state",
	    .default_workspace_root = "/var/lib/abx-work"};
	struct conf_source src[2];
	size_t n = 0;
	struct findings fs = {0};
	json_error_t err;

	memset(t, 0, sizeof(*t));
	t->file = file;
	t->json = json_load_file(file, JSON_REJECT_DUPLICATES, &err);
	if (t->json == NULL)
		fail_msg("%s:%d: %s", file, err.line, err.text);
	t->tree = json_object_get(t->json, "tree");
	table_env(json_object_get(t->json, "env"), env);
	table_source(
	    src, &n, file, LAYER_FILE, json_object_get(t->json, "config"));
	table_source(src, &n, "operator", LAYER_OPERATOR,
	    json_object_get(t->json, "operator"));
	t->conf = conf_load(src, n, &world, &fs);
	no_errors(file, &fs);
	assert_non_null(t->conf);
	t->policy = policy_new(t->conf, &fs);
	no_errors(file, &fs);
	assert_non_null(t->policy);
	findings_clear(&fs);
	while (n > 0)
		free((void *)(uintptr_t)src[--n].data);
	tell_places(t);
}

static void
table_close(struct table *t)
{
	policy_free(t->policy);
	conf_free(t->conf);
	json_decref(t->json);
}

static void
test_tables(void **state)
{
	struct table t;
	json_t *c;
	glob_t g;
	size_t i, k;
	int failed = 0;

	assert_int_equal(glob(TABLES, 0, NULL, &g), 0);
	for (i = 0; i < g.gl_pathc; i++) {
		table_open(&t, g.gl_pathv[i]);
		json_array_foreach(json_object_get(t.json, "cases"), k, c)
			run_case(&t, c);
		failed += t.failed;
		table_close(&t);
	}
	globfree(&g);
	assert_int_equal(failed, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
