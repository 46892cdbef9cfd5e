/*
 * SPDX-License-Identifier: ISC
 *
 * What the tests of the configuration share: one small world, loading, and
 * looking at what came out.
 */
#ifndef ABX_REGRESS_CONF_H
#define ABX_REGRESS_CONF_H

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "policy/confkey.h"
#include "policy/lint.h"

/* ---- the world of the cases ---- */

static const char *const env[] = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8",
    "EDITOR=ed", "T_ADMIN=admin-token-0123456789abcdef",
    "T_VIEWER=viewer-token-0123456789abcdef", "T_SHORT=fifteen-letters",
    "T_SPACE=white space-0123456789", "T_EMPTY=", "BAD_UTF8=\xff\xfe", NULL};

static inline int
dir_check(const char *path, void *arg)
{
	return strncmp(path, "/absent", 7) == 0 ? ENOENT : 0;
}

static inline char *
token_file(const char *path, void *arg)
{
	if (strcmp(path, "/run/good") == 0)
		return strdup("a-secret-from-a-file-0123\n");
	if (strcmp(path, "/run/short") == 0)
		return strdup("short\n");
	return NULL;
}

static inline struct conf_world
world(void)
{
	return (struct conf_world){.env = env,
	    .dir_check = dir_check,
	    .token_file = token_file,
	    .default_state_dir = "/var/lib/agent-sandbox",
	    .default_workspace_root = "/var/lib/agent-sandbox-workspaces"};
}

/* ---- helpers ---- */

static inline struct conf *
load_all(const struct conf_source *src, size_t n, const struct conf_world *w,
    struct findings *f)
{
	struct conf *c = conf_load(src, n, w, f);

	if (c != NULL)
		conf_lint(c, w, f);
	assert_false(f->nomem);
	return c;
}

static inline struct conf *
load(const char *name, const char *text, size_t len, const struct conf_world *w,
    struct findings *f)
{
	struct conf_source src = {name, LAYER_FILE, text, len};

	return load_all(&src, 1, w, f);
}

static inline char *
slurp(const char *dir, const char *name, size_t *len)
{
	char path[512], *s;
	FILE *fp;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if ((fp = fopen(path, "r")) == NULL)
		return NULL;
	s = calloc(1, 65536);
	assert_non_null(s);
	*len = fread(s, 1, 65535, fp);
	fclose(fp);
	return s;
}

/* The findings as a case file spells them. */
static inline char *
summary(const struct findings *f)
{
	char *s = calloc(1, 65536);
	size_t i, len = 0;

	assert_non_null(s);
	for (i = 0; i < f->n; i++)
		len += (size_t)snprintf(s + len, 65536 - len, "%s%s%u:%u %s\n",
		    strcmp(f->v[i].file, "conf") == 0 ? "" : f->v[i].file,
		    strcmp(f->v[i].file, "conf") == 0 ? "" : ":", f->v[i].line,
		    f->v[i].col, f->v[i].code);
	return s;
}

static inline void
show(const char *name, const struct findings *f)
{
	size_t i;
	char *s;

	for (i = 0; i < f->n; i++) {
		s = finding_text(&f->v[i]);
		print_message("%s: %s\n", name, s);
		free(s);
	}
}

/* What the monitor will read must be what was printed, to the byte. */
static inline void
round_trip(const char *name, const struct conf *c)
{
	struct findings f = {0};
	char *one = conf_print(c), *two, rev[65], rev2[65];
	struct conf_source src = {name, LAYER_CANON, one, 0};
	struct conf *again;

	assert_non_null(one);
	src.len = strlen(one);
	again = conf_load(&src, 1, NULL, &f);
	if (f.n > 0)
		show(name, &f);
	assert_non_null(again);
	assert_int_equal(f.n, 0);
	two = conf_print(again);
	assert_string_equal(one, two);
	assert_int_equal(conf_revision(c, rev), 0);
	assert_int_equal(conf_revision(again, rev2), 0);
	assert_string_equal(rev, rev2);
	conf_free(again);
	free(one);
	free(two);
}

/* As the loader does once nothing else is wrong. */
static inline void
try_examples(const struct conf *c, struct findings *f)
{
	struct policy *p;

	if (c == NULL || findings_block(f, 1))
		return;
	p = policy_new(c, f);
	assert_non_null(p);
	policy_examples(c, p, f);
	assert_false(f->nomem);
	policy_free(p);
}

#endif
