/*
 * SPDX-License-Identifier: ISC
 *
 * The engine beyond the tables: facts that lie, what the helpers are told,
 * rules of the environment, deny sets that are too large, and time with many
 * rules.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "policy/model.h"

/* ---- rules by hand ---- */

struct bench {
	struct conf conf;
	struct conf_rules rules;
	struct policy *policy;
	struct findings fs;
};

static struct rule *
rule_add(struct bench *b, int deny, const char *sel)
{
	struct rule *r;

	b->rules.v =
	    reallocarray(b->rules.v, b->rules.n + 1, sizeof(*b->rules.v));
	assert_non_null(b->rules.v);
	r = &b->rules.v[b->rules.n++];
	rule_init(r);
	r->deny = deny;
	r->layer = LAYER_FILE;
	assert_int_equal(strlist_add(&r->sel, sel, strlen(sel)), 0);
	return r;
}

static void
add(struct strlist *l, const char *s)
{
	assert_int_equal(strlist_add(l, s, strlen(s)), 0);
}

static struct rule *
allow_path(struct bench *b, const char *sel, const char *root)
{
	struct rule *r = rule_add(b, 0, sel);

	r->has_paths = 1;
	path_scope_init(&r->paths);
	add(&r->paths.roots, root);
	return r;
}

static struct rule *
allow_command(struct bench *b, const char *pattern, const char *cwd)
{
	struct rule *r = rule_add(b, 0, "commands.run");

	r->has_commands = 1;
	assert_int_equal(command_scope_init(&r->commands), 0);
	add(&r->commands.allow, pattern);
	r->commands.has_cwd = 1;
	add(&r->commands.cwd.roots, cwd);
	return r;
}

static void
compile(struct bench *b)
{
	b->conf.rules = &b->rules;
	b->policy = policy_new(&b->conf, &b->fs);
}

static void
finish(struct bench *b)
{
	size_t i;

	policy_free(b->policy);
	for (i = 0; i < b->rules.n; i++)
		rule_clear(&b->rules.v[i]);
	free(b->rules.v);
	findings_clear(&b->fs);
}

static const char *const admin_roles[] = {"admin"};
static const struct principal admin = {"root", admin_roles, 1, 1};

static void
one_path(struct args *args, const char *name, const char *path)
{
	struct arg *a = args_add(args, name, A_STR);

	assert_non_null(a);
	assert_int_equal(arg_set_str(a, path, strlen(path)), 0);
}

/* ---- facts that lie ---- */

static enum code
with_facts(struct bench *b, struct facts f)
{
	struct args args = {0};
	struct call call = {OP_files_stat, &args, &admin, NULL};
	struct decision d;
	struct plan plan;
	enum code code;

	one_path(&args, "path", "/w/a");
	assert_int_equal(policy_plan(b->policy, &call, &plan), 0);
	assert_int_equal(plan.nitems, 1);
	assert_int_equal(policy_decide(b->policy, &call, &plan, &f, &d), 0);
	code = d.code;
	assert_true(
	    code == C_OK || !d.allowed || d.npaths == 0 || f.status == FS_OK);
	decision_clear(&d);
	plan_clear(&plan);
	args_clear(&args);
	return code;
}

static void
test_lies(void **state)
{
	char good[] = "/w/a", out[] = "/etc/passwd", near[] = "/wx/a",
	     dots[] = "/w/../etc", rel[] = "w/a", twice[] = "/w//a",
	     root[] = "/w", denied[] = "/proc/1";
	struct facts f = {.path = good, .rel = 2, .kind = FK_FILE, .nlink = 1};
	struct bench b = {0};

	allow_path(&b, "files.stat", "/w");
	compile(&b);
	assert_non_null(b.policy);
	assert_int_equal(with_facts(&b, f), C_OK);
	f.rel = 3; /* with its slash */
	assert_int_equal(with_facts(&b, f), C_OK);
	f.rel = 1;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.rel = 400;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.rel = 2;
	f.ref = 1;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.ref = 0;
	f.missing = 1;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.missing = 0;
	f.path = NULL;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.path = out;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.path = near;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.path = dots;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.path = rel;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.path = twice;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	/* no part of the root's own name is below it */
	f.path = root;
	assert_int_equal(with_facts(&b, f), C_OK);
	f.rel = 1;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.rel = 2;
	f.path = good;
	f.status = 77;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_NOT_ALLOWED);
	f.status = FS_ERRNO;
	f.err = EIO;
	assert_int_equal(with_facts(&b, f), C_FS_IO);
	/* where a walk ended may be no place to speak of */
	f.path = denied;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_DENIED);
	f.status = FS_OUTSIDE;
	assert_int_equal(with_facts(&b, f), C_POL_PATH_DENIED);
	f.status = FS_ERRNO;
	f.err = EACCES;
	f.path = NULL;
	assert_int_equal(with_facts(&b, f), C_FS_PERMISSION);
	finish(&b);
}

/* Nothing was resolved though something should have been. */
static void
test_no_facts(void **state)
{
	struct args args = {0};
	struct call call = {OP_files_stat, &args, &admin, NULL};
	struct bench b = {0};
	struct decision d;
	struct plan plan;

	allow_path(&b, "files.stat", "/w");
	compile(&b);
	one_path(&args, "path", "a");
	assert_int_equal(policy_plan(b.policy, &call, &plan), 0);
	assert_int_equal(policy_decide(b.policy, &call, &plan, NULL, &d), 0);
	assert_false(d.allowed);
	decision_clear(&d);
	plan_clear(&plan);
	args_clear(&args);
	finish(&b);
}

/* ---- what the helpers are told ---- */

static void
test_places(void **state)
{
	struct policy_root r;
	struct bench b = {0};
	struct rule *rule;
	size_t i;

	allow_path(&b, "files.list", "/read");
	allow_path(&b, "files.upload", "/write/");
	allow_path(&b, "files.*", "/locked")->paths.readonly = 1;
	allow_path(&b, "files.archive", "/archive");
	allow_path(&b, "files.list", "/home/{principal.id}");
	rule = allow_command(&b, "true", "/run");
	add(&rule->commands.exec_dirs, "/opt/tools/bin/");
	allow_command(&b, "true", "/ro")->commands.cwd.readonly = 1;
	compile(&b);
	assert_non_null(b.policy);
	assert_int_equal(policy_nroots(b.policy), 7);
	for (i = 0; i < policy_nroots(b.policy); i++) {
		policy_root(b.policy, i, &r);
		assert_int_equal(
		    r.writable, strcmp(r.path, "/write") == 0 ||
				    strcmp(r.path, "/archive") == 0);
		assert_int_equal(r.exec,
		    strcmp(r.path, "/run") == 0 || strcmp(r.path, "/ro") == 0);
		assert_int_equal(r.exec_rw, strcmp(r.path, "/run") == 0);
	}
	policy_root(b.policy, 4, &r);
	assert_string_equal(r.path, "/home");
	assert_int_equal(policy_exec_dirs(b.policy)->n, 1);
	assert_string_equal(policy_exec_dirs(b.policy)->v[0], "/opt/tools/bin");
	assert_int_equal(policy_set_root(b.policy, 99, "/x"), -1);
	assert_int_equal(policy_set_root(b.policy, 0, "x/../y"), -1);
	assert_int_equal(policy_set_root(b.policy, 0, "/r/../y"), -1);
	assert_int_equal(policy_set_root(b.policy, 0, "/elsewhere"), 0);
	assert_int_equal(policy_set_root(b.policy, 0, "/read"), 0);
	assert_true(policy_has_effect(b.policy, E_EXEC));
	assert_false(policy_has_effect(b.policy, E_ADMIN | E_NET));
	assert_int_equal(policy_protect(b.policy, "relative"), -1);
	assert_int_equal(policy_protect(b.policy, "/p/"), 0);
	assert_int_equal(policy_protect(b.policy, "/p"), 0);
	assert_int_equal(policy_protected(b.policy)->n, 1);
	assert_string_equal(policy_rule_name(b.policy, 0), "allow files.list");
	assert_int_equal(policy_nrules(b.policy), 7);
	finish(&b);
}

static void
test_bad_roots(void **state)
{
	static const char *const bad[] = {"/", "relative", "",
	    "/{principal.id}", "/a/{principal.id}/b", "/a/{session",
	    "/a/{principal.id}/{session}", "/a/x{session}"};
	size_t i;

	for (i = 0; i < nitems(bad); i++) {
		struct bench b = {0};

		allow_path(&b, "files.list", bad[i]);
		compile(&b);
		if (b.policy != NULL)
			fail_msg("taken: %s", bad[i]);
		assert_int_equal(b.fs.n, 1);
		assert_string_equal(b.fs.v[0].code, "config.root_invalid");
		finish(&b);
	}
}

static void
test_bad_patterns(void **state)
{
	struct bench b = {0};
	struct rule *r;

	add(&allow_path(&b, "files.list", "/w")->paths.deny, "a[b");
	add(&allow_command(&b, "ls 'x", "/w")->commands.deny, "ls {paht}");
	r = rule_add(&b, 1, "*");
	add(&r->deny_paths, "**/a/**/b/**/c/**");
	add(&r->deny_commands, "");
	compile(&b);
	assert_null(b.policy);
	assert_int_equal(b.fs.n, 5);
	finish(&b);
}

/* ---- the environment removes ---- */

static void
test_env_layer(void **state)
{
	struct bench b = {0};
	struct op_limits l;

	allow_path(&b, "files.*", "/w")->limits.max_bytes = 7;
	rule_add(&b, 1, "files.list")->unmount = 1;
	/* health goes only by its name */
	rule_add(&b, 1, "effect:admin,net")->unmount = 1;
	rule_add(&b, 1, "core.*")->unmount = 1;
	rule_add(&b, 1, "effect:read,write")->layer = LAYER_OPERATOR;
	compile(&b);
	assert_non_null(b.policy);
	assert_false(policy_mounted(b.policy, OP_files_list, &admin));
	assert_true(policy_mounted(b.policy, OP_files_stat, &admin));
	assert_true(policy_mounted(b.policy, OP_core_health, &admin));
	assert_false(policy_mounted(b.policy, OP_core_check, &admin));
	assert_true(policy_mounted(b.policy, OP_files_copy, &admin));
	assert_false(policy_mounted(b.policy, OP_NONE, &admin));
	assert_int_equal(
	    policy_op_limits(b.policy, OP_files_download, &admin, &l), 0);
	assert_int_equal(l.max_bytes, 7);
	assert_int_equal(
	    policy_op_limits(b.policy, OP_files_list, &admin, &l), -1);
	assert_int_equal(policy_removed_by(b.policy, OP_files_list), 1);
	assert_int_equal(policy_removed_by(b.policy, OP_files_stat), -1);
	assert_int_equal(policy_removed_by(b.policy, OP_core_health), -1);
	assert_int_equal(policy_removed_by(b.policy, OP_NONE), -1);
	finish(&b);
}

/* ---- deny sets ---- */

static void
test_deny_set_too_large(void **state)
{
	char path[] = "/w", pattern[32];
	struct facts f = {.path = path, .rel = 2, .kind = FK_DIR, .nlink = 2};
	struct args args = {0};
	struct call call = {OP_files_list, &args, &admin, NULL};
	struct bench b = {0};
	struct decision d;
	struct plan plan;
	struct rule *r;
	int i;

	r = allow_path(&b, "files.*", "/w");
	for (i = 0; i < ABX_MAX_DENY; i++) {
		snprintf(pattern, sizeof(pattern), "name%d", i);
		add(&r->paths.deny, pattern);
	}
	compile(&b);
	one_path(&args, "path", ".");
	assert_int_equal(policy_plan(b.policy, &call, &plan), 0);
	assert_int_equal(policy_decide(b.policy, &call, &plan, &f, &d), 0);
	assert_false(d.allowed);
	assert_int_equal(d.code, C_POL_PATH_DENIED);
	decision_clear(&d);
	plan_clear(&plan);
	/* An op that looks at nothing else needs no set. */
	call.op = OP_files_stat;
	assert_int_equal(policy_plan(b.policy, &call, &plan), 0);
	assert_int_equal(policy_decide(b.policy, &call, &plan, &f, &d), 0);
	assert_true(d.allowed);
	decision_clear(&d);
	plan_clear(&plan);
	args_clear(&args);
	finish(&b);
}

/* ---- arguments ---- */

static void
add_arg(struct args *args, const char *name, enum arg_type type,
    const char *text, int64_t i)
{
	struct arg *a = args_add(args, name, type);

	assert_non_null(a);
	a->i = i;
	if (text != NULL)
		assert_int_equal(arg_set_str(a, text, strlen(text)), 0);
}

static void
test_typed_args(void **state)
{
	struct args args = {0};
	int64_t v = 7;

	add_arg(&args, "s", A_STR, "text", 0);
	add_arg(&args, "q", A_QUERY, "12", 0);
	add_arg(&args, "t", A_QUERY, "true", 0);
	add_arg(&args, "i", A_INT, NULL, 5);
	add_arg(&args, "b", A_BOOL, NULL, 1);
	assert_string_equal(policy_arg_str(&args, "s"), "text");
	assert_null(policy_arg_str(&args, "i"));
	assert_null(policy_arg_str(&args, "none"));
	assert_int_equal(policy_arg_int(&args, "s", &v), 0);
	assert_int_equal(policy_arg_int(&args, "none", &v), 0);
	assert_int_equal(v, 7);
	assert_int_equal(policy_arg_int(&args, "q", &v), 1);
	assert_int_equal(v, 12);
	assert_int_equal(policy_arg_int(&args, "i", &v), 1);
	assert_int_equal(v, 5);
	assert_true(policy_arg_bool(&args, "t"));
	assert_true(policy_arg_bool(&args, "b"));
	assert_false(policy_arg_bool(&args, "s"));
	assert_false(policy_arg_bool(&args, "none"));
	args_clear(&args);
}

/* ---- time ---- */

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* A thousand rules that cannot match cost next to nothing.  The bound is far
 * above what the program needs, for the sanitizers' sake. */
static void
test_many_rules(void **state)
{
	char path[] = "/w/a", name[64];
	struct facts f = {.path = path, .rel = 2, .kind = FK_FILE, .nlink = 1};
	struct args args = {0};
	struct call call = {OP_files_download, &args, &admin, NULL};
	struct bench b = {0};
	struct decision d;
	struct plan plan;
	struct rule *r;
	uint64_t start;
	int i, rounds = 2000;

	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "/w/%d", i);
		r = allow_path(
		    &b, i % 2 ? "files.stat" : "files.download", name);
		snprintf(name, sizeof(name), "id:user%d", i);
		add(&r->principals, name);
	}
	allow_path(&b, "files.download", "/w");
	compile(&b);
	assert_non_null(b.policy);
	one_path(&args, "path", "/w/a");
	start = now_ns();
	for (i = 0; i < rounds; i++) {
		assert_int_equal(policy_plan(b.policy, &call, &plan), 0);
		assert_int_equal(
		    policy_decide(b.policy, &call, &plan, &f, &d), 0);
		assert_int_equal(d.code, C_OK);
		decision_clear(&d);
		plan_clear(&plan);
	}
	start = (now_ns() - start) / (uint64_t)rounds;
	if (getenv("ABX_TIMES") != NULL)
		fprintf(
		    stderr, "%llu ns a decision\n", (unsigned long long)start);
	assert_true(start < 200000);
	args_clear(&args);
	finish(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_lies),
	    cmocka_unit_test(test_no_facts),
	    cmocka_unit_test(test_places),
	    cmocka_unit_test(test_bad_roots),
	    cmocka_unit_test(test_bad_patterns),
	    cmocka_unit_test(test_env_layer),
	    cmocka_unit_test(test_deny_set_too_large),
	    cmocka_unit_test(test_typed_args),
	    cmocka_unit_test(test_many_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
