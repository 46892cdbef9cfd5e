/*
 * SPDX-License-Identifier: ISC
 *
 * Very many rules and principals: what is compared grows as they do, not with
 * their square, and what is found among them is found all the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/lint.h"

#define MANY 1000
#define STEPS_EACH 40 /* comparisons for a rule, with all its operations */
#define ID_STEPS 8    /* comparisons for a principal, at most */

/* One rule of a configuration with n: a line of JSON. */
typedef void rule_fn(FILE *, size_t i, size_t n);

static void
own_roots(FILE *fp, size_t i, size_t n)
{
	fprintf(fp, "{\"allow\": \"files.*\", \"paths\": \"/srv/%zu\"}", i);
}

static void
own_callers(FILE *fp, size_t i, size_t n)
{
	fprintf(fp,
	    "{\"allow\": [\"files.list\", \"core.check\"], \"principals\": "
	    "[\"id:u%zu\", \"role:all\"], \"paths\": \"/srv/all\"}",
	    i);
}

static void
own_commands(FILE *fp, size_t i, size_t n)
{
	if (i % 2 == 0)
		fprintf(fp,
		    "{\"allow\": \"files.upload\", \"principals\": \"id:u1\", "
		    "\"paths\": \"/srv/w%zu\"}",
		    i);
	else
		fprintf(fp,
		    "{\"allow\": \"commands.run\", \"commands\": {\"allow\": "
		    "[\"/usr/bin/make t%zu\", \"sh /opt/x/y/s%zu.sh\"], "
		    "\"cwd\": \"/srv/w%zu\"}}",
		    i, i, i);
}

/* Selectors of several ranks. */
static void
own_ranks(FILE *fp, size_t i, size_t n)
{
	static const char *const sel[] = {"group:core", "core.*", "core.check"};

	fprintf(fp, "{\"allow\": \"%s\", \"principals\": \"id:u%zu\"}",
	    sel[i % nitems(sel)], i);
}

/* Tokens u0 to un, and n rules and one more. */
static char *
conf_text(rule_fn *fn, size_t n, const char *last, size_t *len)
{
	char *text = NULL;
	FILE *fp = open_memstream(&text, len);
	size_t i;

	assert_non_null(fp);
	fputs("{\"version\": 1, \"auth\": {\"tokens\": [", fp);
	for (i = 0; i <= n; i++)
		fprintf(fp,
		    "%s{\"id\": \"u%zu\", \"roles\": [\"all\"], "
		    "\"token_sha256\": \"%064zu\"}",
		    i == 0 ? "" : ", ", i, i + 1);
	fputs("]}, \"rules\": [\n", fp);
	for (i = 0; i < n; i++) {
		fn(fp, i, n);
		fputs(",\n", fp);
	}
	fprintf(fp, "%s]}\n", last);
	assert_int_equal(fclose(fp), 0);
	return text;
}

/* Steps for n rules and one more, of which something must be found. */
static size_t
lint_many(rule_fn *fn, size_t n, const char *last, const char *want)
{
	struct conf_source src = {.name = "x", .layer = LAYER_FILE};
	struct findings f = {0};
	struct lint l = {.f = &f};
	struct conf *c;
	char *text;
	size_t i;
	int found = 0;

	src.data = text = conf_text(fn, n, last, &src.len);
	c = conf_load(&src, 1, NULL, &f);
	assert_non_null(c);
	assert_int_equal(f.n, 0);
	l.c = c;
	lint_run(&l);
	for (i = 0; i < f.n; i++)
		found |= f.v[i].line == n + 2 && strcmp(f.v[i].code, want) == 0;
	if (!found || f.nomem)
		fail_msg("%zu rules: no %s of the last", n, want);
	conf_free(c);
	findings_clear(&f);
	free(text);
	return l.steps;
}

static void
test_steps(void **state)
{
	static const struct {
		const char *name;
		rule_fn *fn;
		const char *last, *want;
	} rows[] = {
	    {"roots", own_roots,
		"{\"allow\": \"files.*\", \"paths\": \"/srv/7\"}",
		"config.shadowed"},
	    {"callers", own_callers,
		"{\"allow\": \"core.check\", \"principals\": \"id:u7\"}",
		"config.shadowed"},
	    {"commands", own_commands,
		"{\"allow\": \"commands.run\", \"commands\": {\"allow\": "
		"\"sh /srv/w500/s\", \"cwd\": \"/srv/w1\"}}",
		"config.writable_script"},
	    {"ranks", own_ranks,
		"{\"allow\": \"group:core\", \"principals\": \"id:u3\"}",
		"config.shadowed"},
	};
	size_t i, n, steps;

	for (i = 0; i < nitems(rows); i++)
		for (n = MANY; n <= 4 * MANY; n *= 4) {
			steps = lint_many(
			    rows[i].fn, n, rows[i].last, rows[i].want);
			if (steps == 0 || steps > n * STEPS_EACH)
				fail_msg("%s: %zu steps for %zu rules",
				    rows[i].name, steps, n);
		}
}

/* ---- principals ---- */

/* n tokens and n peers, and one more of each. */
static char *
who_text(size_t n, const char *token, const char *peer, size_t *len)
{
	char *text = NULL;
	FILE *fp = open_memstream(&text, len);
	size_t i;

	assert_non_null(fp);
	fputs("{\"version\": 1, \"auth\": {\"tokens\": [\n", fp);
	for (i = 0; i < n; i++)
		fprintf(fp,
		    "{\"id\": \"u%zu\", \"token_sha256\": \"%064zx\"},\n", i,
		    i + 1);
	fprintf(fp, "%s],\n\"peers\": [\n", token);
	for (i = 0; i < n; i++)
		fprintf(fp, "{\"id\": \"p%zu\", \"uid\": %zu},\n", i, i + 1);
	fprintf(fp, "%s]}}\n", peer);
	assert_int_equal(fclose(fp), 0);
	return text;
}

static void
test_principals(void **state)
{
	static const char fresh[] =
	    "{\"id\": \"t\", \"token_sha256\": \"00ff00ff00ff00ff00ff00ff00ff"
	    "00ff00ff00ff00ff00ff00ff00ff00ff00ff\"}";
	static const struct {
		const char *token, *peer, *want; /* NULL: nothing */
	} rows[] = {
	    {fresh, "{\"id\": \"p\", \"uid\": 0}", NULL},
	    {"{\"id\": \"t\", \"token_sha256\": \"00000000000000000000000000"
	     "000000000000000000000000000000000001f4\"}",
		"{\"id\": \"p\", \"uid\": 0}",
		"\"u499\" and \"t\" have the same secret"},
	    {"{\"id\": \"u7\", \"token_sha256\": \"00ff00ff00ff00ff00ff00ff00"
	     "ff00ff00ff00ff00ff00ff00ff00ff00ff00ff\"}",
		"{\"id\": \"p\", \"uid\": 0}", "the id \"u7\" is used already"},
	    {fresh, "{\"id\": \"u3\", \"uid\": 0}",
		"the id \"u3\" is used already"},
	    {fresh, "{\"id\": \"p8\", \"uid\": 0}",
		"the id \"p8\" is used already"},
	    {fresh, "{\"id\": \"p\", \"uid\": 500}",
		"the uid 500 is the peer \"p499\" already"},
	};
	struct conf_source src = {.name = "x", .layer = LAYER_FILE};
	struct findings f = {0};
	struct conf *c;
	char *text;
	size_t i, n;

	for (i = 0; i < nitems(rows); i++)
		for (n = MANY; n <= 4 * MANY; n *= 4) {
			src.data = text =
			    who_text(n, rows[i].token, rows[i].peer, &src.len);
			c = conf_load(&src, 1, NULL, &f);
			assert_non_null(c);
			assert_int_equal(f.n, rows[i].want != NULL);
			if (f.n > 0)
				assert_string_equal(f.v[0].msg, rows[i].want);
			assert_int_equal(
			    c->ntokens + c->npeers, 2 * n + 2 - f.n);
			/* each is looked for three times, or four */
			if (c->id_steps > 2 * n * ID_STEPS)
				fail_msg("%zu steps for %zu principals",
				    c->id_steps, 2 * n);
			conf_free(c);
			findings_clear(&f);
			free(text);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_steps),
	    cmocka_unit_test(test_principals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
