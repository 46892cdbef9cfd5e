/*
 * SPDX-License-Identifier: ISC
 *
 * Paths as text against a list of their components.  Input: lines; the first
 * is a path, the second a directory or a path relative to the first.
 */
#include <stdlib.h>
#include <string.h>

#include "pathd/beneath.h"
#include "policy/engine.h"
#include "regress/fuzz/fuzz.h"

#define SEGS 8192

/* Components of a path, "" and "." and ".." worked off; -1 for a relative
 * one.  raw: how many there were before that. */
static long
components(char *copy, char **v, size_t *raw)
{
	char *s = copy + 1, *seg;
	long n = 0;

	*raw = 0;
	if (copy[0] != '/')
		return -1;
	while ((seg = strsep(&s, "/")) != NULL) {
		if (*seg == '\0')
			continue;
		++*raw;
		if (strcmp(seg, ".") == 0)
			continue;
		if (strcmp(seg, "..") != 0)
			v[n++] = seg;
		else if (n > 0)
			n--;
	}
	return n;
}

/* The normal form into out, or NULL when there is none within the caps. */
static char *
model(const char *path, char *out, size_t *raw)
{
	char *copy = strdup(path), **v = fuzz_alloc(SEGS * sizeof(*v));
	size_t len = 0;
	long n, i;

	CHECK(copy != NULL && strlen(path) < SEGS);
	n = components(copy, v, raw);
	if (n > ABX_PATH_SEGS)
		n = -1;
	out[0] = '\0';
	for (i = 0; i < n; i++)
		len += strlen(v[i]) + 1;
	if (len > ABX_PATH_MAX)
		n = -1;
	for (i = 0; i < n; i++) {
		strcat(out, "/");
		strcat(out, v[i]);
	}
	if (n == 0)
		strcpy(out, "/");
	free(copy);
	free(v);
	return n < 0 ? NULL : out;
}

/* 1 when each is what a cap does not forbid on the way: "a/../" that is too
 * long is refused although its normal form would fit. */
static int
over_on_the_way(const char *path)
{
	return strlen(path) > ABX_PATH_MAX;
}

static void
check_one(const char *path, const char *norm, size_t raw)
{
	char out[ABX_PATH_MAX + 1], *got;
	enum code code = C_SRV_INTERNAL;
	int fits = strlen(path) <= ABX_PATH_MAX && raw <= ABX_PATH_SEGS;

	got = path_normal(path, &code);
	CHECK(code == (norm != NULL && fits ? C_OK : C_POL_PATH_INVALID));
	CHECK((got != NULL) == (code == C_OK));
	if (got != NULL)
		CHECK(strcmp(got, norm) == 0);
	free(got);
	if (!over_on_the_way(path))
		CHECK((path_normal_into(path, out) == 0) == (norm != NULL));
	CHECK(
	    path_is_normal(path) == (norm != NULL && strcmp(norm, path) == 0));
	if (norm == NULL)
		return;
	CHECK(path_normal_into(norm, out) == 0 && strcmp(norm, out) == 0);
	CHECK(path_is_normal(norm));
	CHECK(path_segments(norm) <= ABX_PATH_SEGS);
	CHECK(beneath_valid(norm + 1));
}

/* b lies below a when it is a and whole components. */
static void
check_below(const char *a, const char *b)
{
	const char *rest = path_below(a, b);
	size_t n = strlen(a);
	int want = strcmp(a, "/") == 0 ||
		   (strncmp(a, b, n) == 0 && (b[n] == '/' || b[n] == '\0'));
	char out[ABX_PATH_MAX + 1];

	CHECK((rest != NULL) == want);
	if (rest != NULL) {
		CHECK(rest >= b && rest <= b + strlen(b) && *rest != '/');
		CHECK(path_join_into(a, rest, out) == 0);
		CHECK(strcmp(out, b) == 0);
	}
}

static void
check_join(const char *dir, const char *rel)
{
	char *joined, *out = fuzz_alloc(2 * SEGS), *norm;
	char got[ABX_PATH_MAX + 1];
	size_t raw, n = strlen(dir) + strlen(rel) + 2;

	if (strlen(dir) > ABX_PATH_MAX || strlen(rel) > ABX_PATH_MAX) {
		CHECK(path_join_into(dir, rel, got) == -1);
		free(out);
		return;
	}
	joined = fuzz_alloc(n);
	snprintf(joined, n, "%s/%s", dir, rel);
	norm = model(joined, out, &raw);
	if (!over_on_the_way(joined))
		CHECK((path_join_into(dir, rel, got) == 0) == (norm != NULL));
	if (path_join_into(dir, rel, got) == 0)
		CHECK(norm != NULL && strcmp(got, norm) == 0);
	free(joined);
	free(out);
}

static void
check_component(const char *s)
{
	size_t i, n = strlen(s);
	int want = n >= 1 && n <= ABX_ID_MAX && s[0] != '.';

	for (i = 0; i < n; i++)
		want &= (s[i] >= '0' && s[i] <= '9') ||
			((s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z') ||
			s[i] == '.' || s[i] == '_' || s[i] == '-';
	CHECK(safe_component(s) == want);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	char *a = feed_str(&f, '\n', SEGS / 2 - 1), *na;
	char *b = feed_str(&f, '\n', SEGS / 2 - 1), *nb;
	char *outa = fuzz_alloc(2 * SEGS), *outb = fuzz_alloc(2 * SEGS);
	size_t raw;

	na = model(a, outa, &raw);
	check_one(a, na, raw);
	nb = model(b, outb, &raw);
	check_one(b, nb, raw);
	check_join(a, b);
	if (na != NULL && nb != NULL) {
		check_below(na, nb);
		check_below(nb, na);
	}
	check_component(a);
	check_component(b);
	free(a);
	free(b);
	free(outa);
	free(outb);
	return 0;
}
