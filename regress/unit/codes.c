/*
 * SPDX-License-Identifier: ISC
 *
 * Every code of a finding, by regress/conf/codes.json: for each, inputs that
 * must have it ("yes") and inputs close to them that must not ("no").  An
 * input is an object of keys, a whole text as a string, or an object with
 * "conf" and what goes with it: "drop" and "operator" (other layers), "env",
 * "digests", "noauth", "root_start".  "version" and a credential are put in
 * where nothing is said.  No code is needed for a new case.
 */
#include <errno.h>
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

#define TABLE "regress/conf/codes.json"
#define MAX_ENV 24

/* The same small world as that of the other cases. */
static const char *const base_env[] = {"PATH=/usr/bin:/bin", "EDITOR=ed",
    "T_ADMIN=admin-token-0123456789abcdef",
    "T_VIEWER=viewer-token-0123456789abcdef", "T_SHORT=fifteen-letters",
    "T_SPACE=white space-0123456789", "T_EMPTY="};

static int
dir_check(const char *path, void *arg)
{
	return strncmp(path, "/absent", 7) == 0 ? ENOENT : 0;
}

static char *
token_file(const char *path, void *arg)
{
	if (strcmp(path, "/run/good") == 0)
		return strdup("a-secret-from-a-file-0123\n");
	if (strcmp(path, "/run/short") == 0)
		return strdup("short\n");
	return NULL;
}

/* What one input consists of. */
struct input {
	struct conf_source src[3];
	size_t n;
	char *text[3];
	const char *env[MAX_ENV + 1];
	struct conf_world world;
};

static void
input_text(
    struct input *in, const char *name, enum conf_layer layer, char *text)
{
	assert_non_null(text);
	in->text[in->n] = text;
	in->src[in->n++] =
	    (struct conf_source){name, layer, text, strlen(text)};
}

/* Keys as a text, with what every file needs. */
static void
input_keys(struct input *in, const char *name, enum conf_layer layer,
    const json_t *keys, int auth)
{
	json_t *j = json_deep_copy(keys);

	if (json_object_get(j, "version") == NULL)
		json_object_set_new(j, "version", json_integer(1));
	if (auth && json_object_get(j, "auth") == NULL)
		json_object_set_new(j, "auth",
		    json_pack("{s:[{s:s,s:[s],s:s}]}", "tokens", "id", "root",
			"roles", "admin", "token_env", "T_ADMIN"));
	input_text(in, name, layer, json_dumps(j, 0));
	json_decref(j);
}

static void
input_env(struct input *in, json_t *more)
{
	size_t i, n = 0;
	json_t *one;

	for (i = 0; i < nitems(base_env); i++)
		in->env[n++] = base_env[i];
	json_array_foreach(more, i, one) {
		assert_true(n < MAX_ENV);
		in->env[n++] = json_string_value(one);
	}
}

static void
input_open(struct input *in, json_t *j)
{
	json_t *conf = json_object_get(j, "conf");
	int noauth = json_is_true(json_object_get(j, "noauth"));

	memset(in, 0, sizeof(*in));
	input_env(in, json_object_get(j, "env"));
	in->world = (struct conf_world){.env = in->env,
	    .dir_check = dir_check,
	    .token_file = token_file,
	    .default_state_dir = "/var/lib/agent-sandbox",
	    .default_workspace_root = "/var/lib/agent-sandbox-workspaces",
	    .root_start = json_is_true(json_object_get(j, "root_start")),
	    .digests = json_string_value(json_object_get(j, "digests"))};
	if (json_is_string(j))
		input_text(
		    in, "conf", LAYER_FILE, strdup(json_string_value(j)));
	else if (conf == NULL)
		input_keys(in, "conf", LAYER_FILE, j, 1);
	else
		input_keys(in, "conf", LAYER_FILE, conf, !noauth);
	if (json_object_get(j, "drop") != NULL)
		input_keys(
		    in, "drop", LAYER_DROPIN, json_object_get(j, "drop"), 0);
	if (json_object_get(j, "operator") != NULL)
		input_keys(in, "operator", LAYER_OPERATOR,
		    json_object_get(j, "operator"), 0);
}

static void
input_find(const struct input *in, struct findings *f)
{
	struct conf *c = conf_load(in->src, in->n, &in->world, f);
	struct policy *p;

	if (c != NULL)
		conf_lint(c, &in->world, f);
	if (c != NULL && !findings_block(f, 1)) {
		p = policy_new(c, f);
		assert_non_null(p);
		policy_examples(c, p, f);
		policy_free(p);
	}
	assert_false(f->nomem);
	conf_free(c);
}

/* 1 when the input is judged as it should be. */
static int
judge(const char *code, json_t *j, int want)
{
	struct findings f = {0};
	struct input in;
	char *text;
	size_t i;
	int has = 0, errors = 0, good;

	input_open(&in, j);
	input_find(&in, &f);
	for (i = 0; i < f.n; i++) {
		has |= strcmp(f.v[i].code, code) == 0;
		errors |= f.v[i].sev == FIND_ERROR;
	}
	/* What must not have it must have nothing else that hides it. */
	good = has == want && (want || !errors);
	if (!good) {
		text = json_dumps(j, 0);
		print_message("%s: wrong for %s\n", code, text);
		free(text);
		for (i = 0; i < f.n; i++) {
			text = finding_text(&f.v[i]);
			print_message("    %s\n", text);
			free(text);
		}
	}
	findings_clear(&f);
	for (i = 0; i < in.n; i++)
		free(in.text[i]);
	return good;
}

static int
judge_all(const char *code, json_t *list, int want)
{
	size_t i;
	json_t *one;
	int bad = 0;

	if (json_array_size(list) < 2) {
		print_message("%s: fewer than two inputs\n", code);
		bad = 1;
	}
	json_array_foreach(list, i, one)
		bad += !judge(code, one, want);
	return bad;
}

static void
test_codes(void **state)
{
	json_error_t err;
	json_t *table = json_load_file(TABLE, 0, &err), *row;
	const char *code;
	size_t i;
	int bad = 0;

	if (table == NULL)
		fail_msg("%s:%d: %s", TABLE, err.line, err.text);
	json_array_foreach(table, i, row) {
		code = json_string_value(json_object_get(row, "code"));
		bad += judge_all(code, json_object_get(row, "yes"), 1);
		bad += judge_all(code, json_object_get(row, "no"), 0);
	}
	json_decref(table);
	assert_int_equal(bad, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
