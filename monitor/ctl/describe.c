/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl describe: the whole effective policy, or what a preset expands to.
 * It shows the canonical text that the monitor gets, rule by rule, with the
 * operations that each selects; digests of tokens are left out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/show.h"

#define NO_ROOT "/ROOT" /* stands for the root of a preset */

/* ---- the canonical text as JSON ---- */

static json_t *
policy_json(const struct conf *c)
{
	char *text = conf_print(c);
	json_t *j = NULL, *token;
	size_t i;

	if (text != NULL)
		j = json_loads(text, 0, NULL);
	if (text != NULL)
		freezero(text, strlen(text));
	json_array_foreach(
	    json_object_get(json_object_get(j, "auth"), "tokens"), i, token)
		json_object_del(token, "token_sha256");
	return j;
}

/* The ids that a rule selects, those of later versions or the others; -1:
 * all. */
static json_t *
rule_ops(const struct conf *c, size_t rule, int later)
{
	json_t *list = json_array();
	uint16_t op;
	int is_later;

	for (op = 0; list != NULL && op < OP_COUNT; op++) {
		is_later = (ops[op].flags & OF_LATER) != 0;
		if ((later != -1 && later != is_later) ||
		    !conf_rule_selects(c, rule, op))
			continue;
		if (json_array_append_new(list, json_string(ops[op].id)) ==
		    -1) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

static int
describe_json(const struct conf *c, int preset)
{
	json_t *j = policy_json(c), *rule, *rules = json_object_get(j, "rules");
	char revision[65];
	size_t i;

	json_array_foreach(rules, i, rule) {
		if (json_object_set_new(
			rule, "operations", rule_ops(c, i, -1)) == -1) {
			json_decref(j);
			return -1;
		}
	}
	if (preset) {
		rules = json_pack("{s:O}", "rules", rules);
		json_decref(j);
		return show_json(rules);
	}
	if (j == NULL || conf_revision(c, revision) == -1) {
		json_decref(j);
		return show_json(NULL);
	}
	return show_json(
	    json_pack("{s:s,s:o}", "revision", revision, "policy", j));
}

/* ---- for people ---- */

static void
text_words(const char *key, const json_t *list)
{
	char *line = NULL;
	size_t i, len = 0;
	json_t *one;
	FILE *f;

	if (json_array_size(list) == 0 ||
	    (f = open_memstream(&line, &len)) == NULL)
		return;
	json_array_foreach(list, i, one)
		fprintf(f, " %s", json_string_value(one));
	fclose(f);
	show_line("  %-11s%s", key, line);
	free(line);
}

/* Nothing that a reader would miss: empty, or false where that is usual. */
static int
is_nothing(const char *key, const json_t *v)
{
	static const char *const usual[] = {
	    "anonymous_health", "block_private", "create_dirs", "enabled"};
	size_t i;

	for (i = 0; i < nitems(usual); i++)
		if (strcmp(key, usual[i]) == 0)
			return 0;
	return json_is_false(v) ||
	       (json_is_array(v) && json_array_size(v) == 0) ||
	       (json_is_object(v) && json_object_size(v) == 0);
}

static void
text_value(const char *key, json_t *v)
{
	char *text;

	if (is_nothing(key, v))
		return;
	if ((text = json_dumps(v, JSON_ENCODE_ANY)) != NULL)
		show_line("  %-11s %s", key, text);
	free(text);
}

/* The keys of a scope that say something. */
static void
text_scope(const char *key, json_t *v)
{
	const char *name;
	void *next;
	json_t *one;

	if (json_is_object(v))
		json_object_foreach_safe(v, next, name, one) {
			if (is_nothing(name, one))
				json_object_del(v, name);
		}
	text_value(key, v);
}

/* Shown otherwise, or of no interest. */
static int
is_shown(const char *key)
{
	static const char *const keys[] = {"allow", "at", "deny", "layer",
	    "name", "preset", "principals", "strict", "unmount"};
	size_t i;

	for (i = 0; i < nitems(keys); i++)
		if (strcmp(keys[i], key) == 0)
			return 1;
	return 0;
}

static void
text_rule(const struct conf *c, size_t i, json_t *rule)
{
	const char *at = json_string_value(json_object_get(rule, "at")),
		   *name = json_string_value(json_object_get(rule, "name")),
		   *key;
	json_t *who = json_object_get(rule, "principals"),
	       *deny = json_object_get(rule, "deny"), *now, *later, *v;

	show_line("rule %zu, %s%s%s%s", i, at != NULL ? at : "",
	    name != NULL ? " (" : "", name != NULL ? name : "",
	    name != NULL ? ")" : "");
	text_words(json_is_true(json_object_get(rule, "unmount")) ? "remove"
		   : deny != NULL				  ? "deny"
								  : "allow",
	    deny != NULL ? deny : json_object_get(rule, "allow"));
	if (json_array_size(who) > 0)
		text_words("to", who);
	else
		show_line("  %-11s everybody", "to");
	now = rule_ops(c, i, 0);
	later = rule_ops(c, i, 1);
	text_words("operations", now);
	text_words("later", later);
	json_decref(now);
	json_decref(later);
	json_object_foreach(rule, key, v) {
		if (!is_shown(key))
			text_scope(key, v);
	}
}

static int
describe_text(const struct conf *c, int preset)
{
	json_t *j = policy_json(c), *v;
	char revision[65];
	const char *key;
	size_t i;

	if (j == NULL || conf_revision(c, revision) == -1) {
		json_decref(j);
		return -1;
	}
	if (!preset) {
		show_line("revision %s", revision);
		json_object_foreach(j, key, v) {
			if (strcmp(key, "rules") != 0)
				text_scope(key, v);
		}
	}
	json_array_foreach(json_object_get(j, "rules"), i, v)
		text_rule(c, i, v);
	json_decref(j);
	return ferror(stdout) ? -1 : 0;
}

static int
describe(const struct ctl *ctl, const struct conf *c, int preset)
{
	return (ctl->json ? describe_json(c, preset)
			  : describe_text(c, preset)) == -1
		   ? CTL_USAGE
		   : CTL_YES;
}

/* ---- the verb ---- */

/* A preset needs no files, and no credential to be looked at. */
static int
describe_preset(const struct ctl *ctl)
{
	static const char *const env[] = {
	    "ABX_SERVER_TOKEN=only-to-describe-it", NULL};
	struct conf_world w = {.preset = ctl->opts.preset,
	    .root = ctl->opts.root != NULL ? ctl->opts.root : NO_ROOT,
	    .env = env};
	struct findings f = {0};
	struct conf *c = conf_load(NULL, 0, &w, &f);
	int status = CTL_USAGE;

	if (f.nomem)
		log_warnx("out of memory");
	else if (c == NULL || findings_block(&f, 1))
		show_findings(&f, 1);
	else
		status = describe(ctl, c, 1);
	conf_free(c);
	findings_clear(&f);
	return status;
}

int
describe_main(struct ctl *ctl, int argc, char **argv)
{
	struct confset cs;
	int status = CTL_USAGE;

	if (ctl_options(ctl, argc, argv) == -1)
		return CTL_USAGE;
	if (optind < argc)
		return ctl_usage(argv[0]);
	if (ctl->opts.preset != NULL && ctl->opts.file == NULL)
		return describe_preset(ctl);
	if (ctl_load(ctl, &cs) == 0)
		status = describe(ctl, cs.conf, 0);
	confset_clear(&cs);
	return status;
}
