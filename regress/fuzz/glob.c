/*
 * SPDX-License-Identifier: ISC
 *
 * Path patterns: what is a pattern, and on short inputs what it matches,
 * against naive backtracking; the texts made of a pattern mean the same; time
 * grows no faster than pattern times path.  Input: lines; pattern, anchor,
 * path.
 */
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"
#include "common/glob.h"
#include "regress/fuzz/fuzz.h"
#include "regress/fuzz/model.h"

#define SHORT 40    /* bytes that the naive way can cope with */
#define STEP_NS 400 /* a step of the sanitized matcher, and much more */

/* Segments of a text, less the empty ones. */
struct segs {
	char *copy, **v;
	size_t n;
};

static void
segs_init(struct segs *g, const char *s, size_t n)
{
	char *rest, *one;

	g->copy = rest = strndup(s, n);
	g->v = fuzz_alloc((n + 2) * sizeof(*g->v));
	g->n = 0;
	CHECK(g->copy != NULL);
	while ((one = strsep(&rest, "/")) != NULL)
		if (*one != '\0')
			g->v[g->n++] = one;
}

static void
segs_free(struct segs *g)
{
	free(g->copy);
	free(g->v);
}

struct pattern {
	struct segs anchor, text;
	int floats; /* a bare name */
	size_t len;
};

/* 1 when it starts with a whole "**". */
static int
starts_any(const struct segs *g, const char *text)
{
	return g->n > 0 && text[0] != '/' && strcmp(g->v[0], "**") == 0;
}

static void
pattern_init(struct pattern *p, const char *text, const char *anchor)
{
	size_t n = strlen(text);

	while (n > 1 && text[n - 1] == '/')
		n--;
	p->len = n;
	segs_init(&p->text, text, n);
	p->floats = memchr(text, '/', n) == NULL && !starts_any(&p->text, text);
	if (!glob_needs_anchor(text))
		anchor = "";
	segs_init(&p->anchor, anchor, strlen(anchor));
}

static void
pattern_free(struct pattern *p)
{
	segs_free(&p->anchor);
	segs_free(&p->text);
}

/* 1 when the manual calls it a pattern. */
static int
pattern_good(const struct pattern *p, const char *text, const char *anchor)
{
	size_t i, any = 0, merged = 0;

	for (i = 0; i < p->text.n; i++) {
		const char *s = p->text.v[i];

		if (strcmp(s, ".") == 0 || strcmp(s, "..") == 0 ||
		    !model_segment_ok(s, strlen(s)))
			return 0;
		if (strcmp(s, "**") == 0) {
			any++;
			merged += i > 0 && strcmp(p->text.v[i - 1], s) == 0;
		}
	}
	return *text != '\0' && strlen(text) <= ABX_PATH_MAX &&
	       strlen(anchor) <= ABX_PATH_MAX && any <= ABX_GLOB_STARSTARS &&
	       p->anchor.n + p->text.n + (size_t)p->floats - merged <=
		   ABX_PATH_SEGS;
}

/* Segments of a pattern from i on against those of a path from k to n. */
static int
rest_matches(const struct pattern *p, size_t i, char **path, size_t k, size_t n)
{
	const char *s;
	size_t j;

	if (i < p->anchor.n)
		return k < n && strcmp(p->anchor.v[i], path[k]) == 0 &&
		       rest_matches(p, i + 1, path, k + 1, n);
	i -= p->anchor.n;
	if (i == p->text.n)
		return k == n;
	s = p->text.v[i];
	i += p->anchor.n;
	if (strcmp(s, "**") == 0) {
		for (j = k; j <= n; j++)
			if (rest_matches(p, i + 1, path, j, n))
				return 1;
		return 0;
	}
	return k < n && model_segment(s, strlen(s), path[k], strlen(path[k])) &&
	       rest_matches(p, i + 1, path, k + 1, n);
}

static int
matches(const struct pattern *p, char **path, size_t n)
{
	size_t k;

	for (k = 0; k <= (p->floats ? n : 0); k++)
		if (rest_matches(p, 0, path, k, n))
			return 1;
	return 0;
}

static int
covers(const struct pattern *p, char **path, size_t n)
{
	size_t k;

	for (k = 0; k <= n; k++)
		if (matches(p, path, k))
			return 1;
	return 0;
}

/* Only when a text is over the cap may it be missing. */
static void
check_texts(const char *text, const char *anchor, const char *path, int want)
{
	char *one = glob_text(text, anchor), *two;
	const char *why;
	struct glob *g;

	if (one == NULL) {
		CHECK(3 * strlen(anchor) + strlen(text) + 2 > ABX_PATH_MAX);
		return;
	}
	if (strstr(anchor, "/.") != NULL) {
		free(one); /* not normal, perhaps */
		return;
	}
	CHECK(!glob_needs_anchor(one));
	g = glob_new(one, NULL, &why);
	CHECK(g != NULL || strlen(one) > 100);
	if (g != NULL)
		CHECK(glob_covers(g, path) == want);
	glob_free(g);
	two = glob_text(one, NULL);
	CHECK(two != NULL && strcmp(one, two) == 0);
	free(one);
	free(two);
}

static int
any_first(const struct pattern *p)
{
	return p->anchor.n == 0 && p->text.n > 0 &&
	       strcmp(p->text.v[0], "**") == 0;
}

struct rests {
	const char *dir, *path;
	int cover; /* one of them covers the path */
};

static int
rest_cb(const char *rest, void *arg)
{
	struct rests *r = arg;
	char *text = glob_quote(r->dir, rest);
	const char *why;
	struct glob *g;

	if (text == NULL)
		return 1; /* over the cap */
	g = glob_new(text, NULL, &why);
	CHECK(g != NULL || strlen(text) > 100);
	if (g != NULL)
		r->cover |= glob_covers(g, r->path);
	glob_free(g);
	free(text);
	return g == NULL;
}

static int
is_normal(const char *path)
{
	size_t n = strlen(path);

	return path[0] == '/' && n > 1 && path[n - 1] != '/' &&
	       strstr(path, "//") == NULL && strstr(path, "/.") == NULL;
}

/* Seen from each directory on the way, the pattern means the same. */
static void
check_dirs(const struct glob *g, int floats, const char *path, int want)
{
	char *dir = strdup(path), *slash;
	struct rests r = {dir, path, 0};

	CHECK(dir != NULL);
	while (is_normal(dir) && (slash = strrchr(dir, '/')) > dir) {
		*slash = '\0';
		r.cover = 0;
		if (glob_rests(g, dir, rest_cb, &r) == 0)
			CHECK(r.cover == want || (floats && !r.cover));
		if (want && !glob_covers(g, dir))
			CHECK(glob_below(g, dir));
	}
	free(dir);
}

/* A path taken literally matches itself. */
static void
check_quote(const char *path)
{
	char *text = path[0] == '/' ? glob_quote(path, "") : NULL;
	const char *why;
	struct glob *g;

	if (text == NULL)
		return;
	g = glob_new(text, NULL, &why);
	if (g != NULL)
		CHECK(glob_match(g, path));
	else
		CHECK(strstr(path, "/.") != NULL || strlen(path) > 100);
	glob_free(g);
	free(text);
}

static void
check_flat(const char *p, const char *s)
{
	size_t np = strlen(p), ns = strlen(s);
	int ok = model_segment_ok(p, np);

	CHECK(glob_segment_ok(p, np) == ok);
	if (!ok || np > SHORT || ns > SHORT)
		return;
	if (strchr(p, '/') == NULL) {
		CHECK(glob_segment(p, s, ns) == model_segment(p, np, s, ns));
		CHECK(glob_words(p, s) ==
		      (strchr(s, '/') == NULL && model_segment(p, np, s, ns)));
	}
}

static void
check_time(const struct glob *g, const char *path, size_t plen)
{
	uint64_t before = fuzz_cpu_ns(), took;

	glob_covers(g, path);
	glob_match(g, path);
	took = fuzz_cpu_ns() - before;
	CHECK(took < 20000000 + STEP_NS * (plen + 1) * (strlen(path) + 1));
}

/* "" or an absolute directory. */
static char *
feed_anchor(struct feed *f)
{
	char *s = feed_str(f, '\n', f->n), *abs;

	if (s[0] == '\0' || s[0] == '/')
		return s;
	abs = fuzz_alloc(strlen(s) + 2);
	abs[0] = '/';
	memcpy(abs + 1, s, strlen(s));
	free(s);
	return abs;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	char *text = feed_str(&f, '\n', size);
	char *anchor = feed_anchor(&f);
	char *path = feed_str(&f, '\n', size);
	struct pattern p;
	struct segs at;
	struct glob *g;
	const char *why = "unset";
	int want;

	check_flat(text, path);
	check_quote(path);
	pattern_init(&p, text, anchor);
	g = glob_new(text, anchor, &why);
	CHECK((g != NULL) == pattern_good(&p, text, anchor));
	CHECK(g != NULL || (why != NULL && *why != '\0'));
	if (g != NULL && strlen(path) <= ABX_PATH_MAX) {
		check_time(g, path, strlen(text) + strlen(anchor));
		want = glob_covers(g, path);
		segs_init(&at, path, strlen(path));
		if (p.len <= SHORT && strlen(path) <= SHORT) {
			CHECK(want == covers(&p, at.v, at.n));
			CHECK(glob_match(g, path) == matches(&p, at.v, at.n));
		}
		segs_free(&at);
		check_texts(text, anchor, path, want);
		if (p.anchor.n == 0 || is_normal(anchor))
			check_dirs(g, p.floats || any_first(&p), path, want);
	}
	glob_free(g);
	pattern_free(&p);
	free(text);
	free(anchor);
	free(path);
	return 0;
}
