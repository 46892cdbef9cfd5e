/*
 * SPDX-License-Identifier: ISC
 *
 * The command policy as it is configured: its modes, custom rules, and the
 * families that are names only.  Run from the top of the tree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <jansson.h>

#include "regress/unit/filter_ask.h"

/* ---- configuration ---- */

static void
custom(struct filter_conf *fc, const char *name, const char *regex, int warn)
{
	struct filter_custom *fr;

	fc->custom =
	    reallocarray(fc->custom, fc->ncustom + 1, sizeof(*fc->custom));
	assert_non_null(fc->custom);
	fr = &fc->custom[fc->ncustom++];
	memset(fr, 0, sizeof(*fr));
	fr->name = strdup(name);
	fr->regex = strdup(regex);
	fr->warn = warn;
}

static struct filter *
compile(const struct filter_conf *fc, int bad)
{
	char why[200];
	struct filter *f = filter_new(fc, why, sizeof(why));

	assert_non_null(f);
	assert_int_equal(*why != '\0', bad);
	return f;
}

static void
test_modes(void **state)
{
	static const struct {
		int enabled, mode, use_default;
		int blocks, custom_blocks, custom_warns, warns;
	} t[] = {
	    {1, FILTER_BLOCK, 1, 1, 1, 0, 1},
	    {1, FILTER_BLOCK, 0, 1, 1, 0, 0},
	    {1, FILTER_WARN, 1, 1, 0, 1, 1},
	    {1, FILTER_OFF, 1, 1, 0, 0, 0},
	    {0, FILTER_BLOCK, 1, 1, 0, 0, 0},
	};
	struct filter_conf fc;
	struct filter_result r;
	struct filter *f;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		assert_int_equal(filter_conf_init(&fc), 0);
		fc.enabled = t[i].enabled;
		fc.mode = t[i].mode;
		fc.use_default_rules = t[i].use_default;
		custom(&fc, "mine", "secret_tool", 0);
		f = compile(&fc, 0);
		ask_line(f, "rm -rf /", &r);
		assert_int_equal(r.nblocked > 0, t[i].blocks);
		ask_line(f, "secret_tool", &r);
		assert_int_equal(
		    ask_has(r.blocked, r.nblocked, "mine"), t[i].custom_blocks);
		assert_int_equal(
		    ask_has(r.warned, r.nwarned, "mine"), t[i].custom_warns);
		ask_line(f, "sudo -s", &r);
		assert_int_equal(r.nwarned > 0, t[i].warns);
		filter_free(f);
		filter_conf_clear(&fc);
	}
}

static void
test_custom(void **state)
{
	static const char *const yes[] = {"secret_tool", "x; SECRET_TOOL --now",
	    "secret_to\\ol", "secret_to'o'l", "/opt/secret_tool x",
	    "sh -c \"sh -c 'secret\\_tool'\"", "echo \"secret_tool\"",
	    "echo secret_tool | cat", "true > /var/secret_tool",
	    "$'secret\\x5ftool'", "bash <<E\nsecret_to''ol\nE\n"};
	static const char *const no[] = {
	    "secret tool", "secret", "tool_secret"};
	struct filter_conf fc;
	struct filter_result r;
	struct filter *f;
	size_t i;

	assert_int_equal(filter_conf_init(&fc), 0);
	custom(&fc, "mine", "secret_tool", 0);
	custom(&fc, "pipes", "^cat x \\| sort > out$", 1);
	f = compile(&fc, 0);
	for (i = 0; i < nitems(yes); i++) {
		ask_line(f, yes[i], &r);
		if (!ask_has(r.blocked, r.nblocked, "mine"))
			fail_msg("%s", yes[i]);
		assert_non_null(strstr(r.reason, "mine"));
		ask_script(f, yes[i], strlen(yes[i]), &r);
		assert_true(ask_has(r.blocked, r.nblocked, "mine"));
	}
	for (i = 0; i < nitems(no); i++) {
		ask_line(f, no[i], &r);
		assert_int_equal(r.nblocked, 0);
	}
	/* data is not a program */
	ask_words(f, V("cat"), "secret_tool", 11, &r);
	assert_int_equal(r.nblocked, 0);
	ask_words(f, V("ls", "secret_tool"), NULL, 0, &r);
	assert_int_equal(r.nblocked, 1);
	ask_line(f, "true; c'a't \"x\" |\n sort >out; true", &r);
	assert_true(ask_has(r.warned, r.nwarned, "pipes"));
	filter_free(f);
	filter_conf_clear(&fc);
}

/* A custom rule that cannot be used takes no built-in rule with it. */
static void
test_custom_bad(void **state)
{
	struct filter_conf fc;
	struct filter_result r;
	struct filter *f;
	char why[200];

	assert_int_equal(filter_conf_init(&fc), 0);
	fc.use_default_rules = 0;
	custom(&fc, "good", "x", 0);
	custom(&fc, "bad", "([", 0);
	f = filter_new(&fc, why, sizeof(why));
	assert_non_null(f);
	assert_non_null(strstr(why, "bad"));
	ask_line(f, "rm -rf /", &r);
	assert_int_equal(r.nblocked, 1);
	ask_line(f, "sudo -s", &r);
	assert_int_equal(r.nwarned, 1);
	ask_line(f, "x", &r);
	assert_int_equal(r.nblocked, 0);
	filter_free(f);
	filter_conf_clear(&fc);
}

static uint64_t
cpu_us(void)
{
	struct timespec ts;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* What would take for ever counts as a match, and soon. */
static void
test_custom_slow(void **state)
{
	static const char *const slow[] = {"(a+)+$", "(a|aa)+$", "(a*)*b",
	    "a*a*a*a*b", "a+b", "(.*)*c", "([a-z]+)*\\d", "^(a?){50}a{50}$"};
	size_t n = 100000, i;
	char *s = malloc(n + 2);
	struct filter_conf fc;
	struct filter_result r;
	struct filter *f;
	uint64_t began;

	assert_non_null(s);
	memset(s, 'a', n);
	strlcpy(s + n, "!", 2);
	for (i = 0; i < nitems(slow); i++) {
		assert_int_equal(filter_conf_init(&fc), 0);
		custom(&fc, "slow", slow[i], 0);
		f = compile(&fc, 0);
		filter_clock(f, cpu_us);
		began = cpu_us();
		ask_words(f, V("echo", s), NULL, 0, &r);
		if (cpu_us() - began > 400000)
			fail_msg("%s: %llu us", slow[i],
			    (unsigned long long)(cpu_us() - began));
		filter_free(f);
		filter_conf_clear(&fc);
	}
	free(s);
}

static void
test_custom_check(void **state)
{
	struct filter_custom fr = {.name = strdup("r"), .regex = strdup("x+")};
	char why[300];

	assert_int_equal(filter_custom_check(&fr, why, sizeof(why)), 0);
	assert_int_equal(strlist_add(&fr.match, "a 'x'", 5), 0);
	assert_int_equal(strlist_add(&fr.pass, "y", 1), 0);
	assert_int_equal(filter_custom_check(&fr, why, sizeof(why)), 0);
	assert_int_equal(strlist_add(&fr.match, "y", 1), 0);
	assert_int_equal(filter_custom_check(&fr, why, sizeof(why)), -1);
	assert_non_null(strstr(why, "does not match"));
	filter_custom_clear(&fr);
}

/* ---- families that are names only ---- */

static void
family_examples(const json_t *list, const char *name)
{
	struct filter_result r;
	const json_t *e;
	size_t i;

	json_array_foreach(list, i, e) {
		ask_line(ask_defaults, json_string_value(e), &r);
		if (r.nblocked > 0) {
			ask_print(name, json_string_value(e), &r);
			fail_msg("%s is not of this family", name);
		}
	}
}

static void
one_family(const char *file, const char *prefix)
{
	json_error_t err;
	json_t *top = json_load_file(file, 0, &err), *rule;
	struct filter_rule_info info;
	const char *name;
	size_t i, k;

	if (top == NULL)
		fail_msg("%s:%d: %s", file, err.line, err.text);
	json_array_foreach(json_object_get(top, "rules"), i, rule) {
		name = json_string_value(json_object_get(rule, "name"));
		assert_non_null(name);
		assert_int_equal(strncmp(name, prefix, strlen(prefix)), 0);
		for (k = 0; filter_rule_info(k, &info); k++)
			assert_string_not_equal(info.name, name);
		family_examples(json_object_get(rule, "match"), name);
		family_examples(json_object_get(rule, "pass"), name);
	}
	assert_true(i > 1);
	json_decref(top);
}

static void
test_families(void **state)
{
	one_family("etc/command-policy.d/windows.json", "win_");
	one_family("etc/command-policy.d/macos.json", "macos_");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_modes),
	    cmocka_unit_test(test_custom),
	    cmocka_unit_test(test_custom_bad),
	    cmocka_unit_test(test_custom_slow),
	    cmocka_unit_test(test_custom_check),
	    cmocka_unit_test(test_families),
	};

	return cmocka_run_group_tests(tests, ask_setup, ask_teardown);
}
