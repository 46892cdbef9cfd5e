/*
 * SPDX-License-Identifier: ISC
 *
 * Request targets and queries against a second decoder, and the route that a
 * path leads to.  Input: the raw target.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/ops.h"
#include "listener/http_parse.h"
#include "listener/route.h"
#include "listener/target.h"
#include "regress/fuzz/fuzz.h"

/* Decode once into out; the number of bytes, -1 for a broken escape or an
 * encoded NUL. */
static long
decode(const char *s, size_t n, int plus, char *out)
{
	char two[3] = "";
	size_t i, o = 0;

	for (i = 0; i < n; i++) {
		out[o] = plus && s[i] == '+' ? ' ' : s[i];
		if (s[i] == '%') {
			if (n - i < 3 || !isxdigit((unsigned char)s[i + 1]) ||
			    !isxdigit((unsigned char)s[i + 2]))
				return -1;
			memcpy(two, s + i + 1, 2);
			out[o] = (char)strtoul(two, NULL, 16);
			if (out[o] == '\0')
				return -1;
			i += 2;
		}
		o++;
	}
	out[o] = '\0';
	return (long)o;
}

/* 1 when all bytes may stand in a target at all. */
static int
clean(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (s[i] <= ' ' || s[i] >= 0x7f || s[i] == '#')
			return 0;
	return 1;
}

/* An encoded byte that would have meant something. */
static int
hides(const char *s, size_t n)
{
	size_t i;
	char out[4];

	for (i = 0; i + 3 <= n; i++)
		if (s[i] == '%' && decode(s + i, 3, 0, out) == 1 &&
		    strchr("/.\\", out[0]) != NULL)
			return 1;
	return 0;
}

static int
path_good(const char *raw, size_t n, char *out)
{
	char *copy, *s, *seg;
	int good = 1;

	if (n == 0 || raw[0] != '/' || !clean(raw, n) ||
	    memchr(raw, '\\', n) != NULL || hides(raw, n) ||
	    decode(raw, n, 0, out) == -1)
		return 0;
	copy = s = strndup(raw + 1, n - 1);
	while ((seg = strsep(&s, "/")) != NULL)
		if ((*seg == '\0' && s != NULL) || strcmp(seg, ".") == 0 ||
		    strcmp(seg, "..") == 0)
			good = 0;
	free(copy);
	return good;
}

/* One name=value of the query; the code that refuses it, or C_OK. */
static enum code
pair(char *text, struct args *seen, const struct args *got)
{
	char *eq = strchr(text, '='), *name, *value;
	const struct arg *a;
	enum code code = C_OK;
	long n, m = 0;

	if (eq != NULL)
		*eq++ = '\0';
	name = fuzz_alloc(strlen(text) + 1);
	value = fuzz_alloc(eq == NULL ? 1 : strlen(eq) + 1);
	n = decode(text, strlen(text), 1, name);
	if (eq != NULL)
		m = decode(eq, strlen(eq), 1, value);
	CHECK(n >= 0 && m >= 0);
	if (n > ABX_ID_MAX || !utf8_valid(name, (size_t)n))
		code = C_ARGS_UNKNOWN;
	else if (args_find(seen, name) != NULL)
		code = C_ARGS_INVALID;
	else if (seen->n == ABX_MAX_ARGS)
		code = C_ARGS_TOO_LARGE;
	else {
		CHECK(args_add(seen, name, A_QUERY) != NULL);
		a = args_find(got, name);
		CHECK(a != NULL && a == &got->v[seen->n - 1]);
		CHECK(a->type == A_QUERY && a->len == (size_t)m);
		CHECK(memcmp(a->s, value, (size_t)m + 1) == 0);
	}
	free(name);
	free(value);
	return code;
}

static void
query(const struct uri *u)
{
	struct args got = {0}, seen = {0};
	enum code code = target_args(u, &got), want = C_OK;
	char *copy = u->query == NULL ? NULL : strndup(u->query, u->query_len);
	char *s = copy, *one;

	while (want == C_OK && (one = strsep(&s, "&")) != NULL)
		if (*one != '\0')
			want = pair(one, &seen, &got);
	CHECK(code == want);
	CHECK(got.n == seen.n);
	args_clear(&got);
	args_clear(&seen);
	free(copy);
}

static void
route(const char *path)
{
	static const char *const methods[] = {
	    "GET", "HEAD", "POST", "PUT", "DELETE"};
	struct route r;
	size_t i;

	for (i = 0; i < nitems(methods); i++) {
		route_find(methods[i], strlen(methods[i]), path, &r);
		CHECK(r.op == OP_NONE || (r.op < OP_COUNT && r.known));
		CHECK(r.op == OP_NONE || (ops[r.op].flags & OF_LATER) == 0);
		CHECK(r.op == OP_NONE || strcmp(r.name, ops[r.op].id) == 0);
		route_body_max(&r, 1024);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *raw = (char *)fuzz_copy(data, size), *out = fuzz_alloc(size + 1);
	const char *q = size == 0 ? NULL : memchr(raw, '?', size);
	size_t n = q == NULL ? size : (size_t)(q - raw), left;
	char *scratch = fuzz_alloc(size + 1);
	struct uri u;
	int good;

	left = q == NULL ? 0 : size - n - 1;
	good = size <= HTTP_TARGET_MAX && path_good(raw, n, out) &&
	       (q == NULL || (clean(q + 1, left) &&
				 decode(q + 1, left, 0, scratch) >= 0));
	CHECK((target_split(raw, size, &u) == C_OK) == good);
	if (good) {
		CHECK(strcmp(u.path,
			  strlen(out) < TARGET_PATH_MAX ? out : "") == 0);
		CHECK((u.query != NULL) == (q != NULL));
		CHECK(q == NULL || (u.query == q + 1 && u.query_len == left));
		query(&u);
		route(u.path);
	}
	free(raw);
	free(out);
	free(scratch);
	return 0;
}
