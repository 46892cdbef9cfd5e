/*
 * SPDX-License-Identifier: ISC
 *
 * The key "command_policy": read, printed, and its custom rules tried on
 * their own examples.  What the rules do is policy/filter.h's to say.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/confkey.h"
#include "policy/lint.h"

#define CODE_BAD "config.command_rule_invalid"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_-"

/* ---- custom rules ---- */

static int
check_rule_name(struct cload *cl, const struct node *n)
{
	struct filter_rule_info info;
	size_t i;

	if (n->len == 0 || n->len > 64 || n->s[strspn(n->s, NAME_CHARS)]) {
		conf_find(cl, n, FIND_ERROR, CODE_BAD,
		    "\"name\": \"%.80s\": a rule's name has 1 to 64 of a-z, "
		    "0-9, _ "
		    "and -",
		    n->s);
		return -1;
	}
	if (strncmp(n->s, "win_", 4) == 0 || strncmp(n->s, "macos_", 6) == 0) {
		conf_find(cl, n, FIND_ERROR, CODE_BAD,
		    "\"%s\": such names are reserved for families", n->s);
		return -1;
	}
	for (i = 0; filter_rule_info(i, &info); i++)
		if (strcmp(info.name, n->s) == 0) {
			conf_find(cl, n, FIND_ERROR, CODE_BAD,
			    "\"%s\" is the name of a built-in rule", n->s);
			return -1;
		}
	return 0;
}

#define OFF(f) offsetof(struct filter_custom, f)
static const char *const actions[] = {"block", "warn", NULL};
static const struct ckey example_keys[] = {
    {"match", K_LIST, 0, OFF(match)},
    {"pass", K_LIST, 0, OFF(pass)},
    {NULL},
};

static int
get_rule_examples(struct cload *cl, const struct node *n, void *obj)
{
	return conf_object(cl, n, example_keys, obj);
}

static int
put_rule_examples(struct out *o, const void *obj)
{
	const struct filter_custom *fr = obj;

	if (fr->match.n == 0 && fr->pass.n == 0)
		return 0;
	out_object(o, example_keys, obj);
	return 1;
}

static const struct ckey custom_keys[] = {
    {"action", K_ENUM, 0, OFF(warn), .words = actions},
    {"description", K_STR, 0, OFF(description)},
    {"examples", K_FUNC, .get = get_rule_examples, .put = put_rule_examples},
    {"name", K_STR, CK_NEED, OFF(name), .check = check_rule_name},
    {"regex", K_STR, CK_NEED, OFF(regex)},
    {NULL},
};
#undef OFF

static int
name_taken(struct cload *cl, const struct node *n, const char *name)
{
	const struct filter_conf *fc = &cl->c->filter;
	size_t i;

	for (i = 0; i < fc->ncustom; i++)
		if (strcmp(fc->custom[i].name, name) == 0) {
			conf_find(cl, n, FIND_ERROR, CODE_BAD,
			    "there are two rules with the name \"%s\"", name);
			return 1;
		}
	return 0;
}

static int
custom_add(struct cload *cl, const struct node *n)
{
	struct filter_conf *fc = &cl->c->filter;
	struct filter_custom fr = {.line = n->line, .col = n->col}, *v;

	if (conf_object(cl, n, custom_keys, &fr) == -1 ||
	    (fr.file = strdup(n->file)) == NULL) {
		filter_custom_clear(&fr);
		return conf_nomem(cl);
	}
	if (fr.name == NULL || fr.regex == NULL || name_taken(cl, n, fr.name)) {
		/* said */
		filter_custom_clear(&fr);
		return 0;
	}
	v = reallocarray(fc->custom, fc->ncustom + 1, sizeof(*v));
	if (v == NULL) {
		filter_custom_clear(&fr);
		return conf_nomem(cl);
	}
	fc->custom = v;
	fc->custom[fc->ncustom++] = fr;
	return 0;
}

static int
get_custom(struct cload *cl, const struct node *n, void *obj)
{
	if (n->type == N_LIST && n->n > FILTER_CUSTOM_MAX) {
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "there are at most %u custom rules", FILTER_CUSTOM_MAX);
		return 0;
	}
	return conf_each(cl, n, "a list of rules", custom_add);
}

static int
put_custom(struct out *o, const void *obj)
{
	const struct filter_conf *fc = obj;
	size_t i;

	out_lit(o, "[");
	for (i = 0; i < fc->ncustom; i++) {
		if (i > 0)
			out_lit(o, ",");
		out_object(o, custom_keys, &fc->custom[i]);
	}
	out_lit(o, "]");
	return 1;
}

/* ---- the rest ---- */

static int
check_family(struct cload *cl, const struct node *n)
{
	if (strcmp(n->s, "posix") == 0)
		return 0;
	if (strcmp(n->s, "windows") == 0 || strcmp(n->s, "macos") == 0)
		conf_find(cl, n, FIND_ERROR, "config.not_supported",
		    "the family \"%s\" is not supported by this version", n->s);
	else
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"families\": \"%.80s\": a family is posix, windows or "
		    "macos",
		    n->s);
	return -1;
}

static int
get_families(struct cload *cl, const struct node *n, void *obj)
{
	struct filter_conf *fc = obj;
	size_t i, errors = conf_errors(cl);

	strlist_clear(&fc->families);
	if (conf_strings(cl, n, &fc->families, check_family) == -1)
		return -1;
	for (i = 0; i < fc->families.n; i++)
		if (strcmp(fc->families.v[i], "posix") == 0)
			return 0;
	if (conf_errors(cl) == errors)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"families\" always has \"posix\" among them");
	return 0;
}

static int
put_families(struct out *o, const void *obj)
{
	const struct filter_conf *fc = obj;

	out_list(o, &fc->families);
	return 1;
}

static const char *const modes[] = {"block", "warn", "off", NULL};

static int
check_mode(struct cload *cl, const struct node *n)
{
	size_t i;

	for (i = 0; modes[i] != NULL; i++)
		if (strcmp(modes[i], n->s) == 0)
			return 0;
	conf_find(cl, n, FIND_ERROR, "config.type",
	    "\"enforcement\" is \"block\", \"warn\" or \"off\", not "
	    "\"%.80s\"",
	    n->s);
	return -1;
}

#define OFF(f) offsetof(struct filter_conf, f)
const struct ckey filter_keys[] = {
    {"custom_rules", K_FUNC, .get = get_custom, .put = put_custom},
    {"enabled", K_BOOL, 0, OFF(enabled)},
    {"enforcement", K_ENUM, 0, OFF(mode), .words = modes, .check = check_mode},
    {"families", K_FUNC, .get = get_families, .put = put_families},
    {"stdin_max", K_SIZE, 0, OFF(stdin_max), 0, FILTER_STDIN_MAX},
    {"use_default_rules", K_BOOL, 0, OFF(use_default_rules)},
    {NULL},
};
#undef OFF

/* ---- lint ---- */

void
lint_filter(struct lint *l)
{
	const struct filter_conf *fc = &l->c->filter;
	const struct filter_custom *fr;
	char why[400];
	size_t i;
	int r;

	for (i = 0; i < fc->ncustom; i++) {
		fr = &fc->custom[i];
		if ((r = filter_custom_check(fr, why, sizeof(why))) == 1)
			l->f->nomem = 1;
		else if (r == -1)
			findings_add(l->f, FIND_LINT, CODE_BAD, fr->file,
			    fr->line, fr->col,
			    "%s; the service would run without any custom "
			    "rule",
			    why);
	}
}
