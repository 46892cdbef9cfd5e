/*
 * SPDX-License-Identifier: ISC
 *
 * What is looked for in lines: plain text against a naive search; with an
 * expression the line that is found is the first that matches by itself, and
 * whatever the expression costs is bounded.  Input: 1 byte (bit 0 expression,
 * bit 1 ignore case), the pattern, a newline, the lines.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "pathd/needle.h"
#include "regress/fuzz/fuzz.h"

static int
ascii(const void *p, size_t n)
{
	const uint8_t *b = p;

	while (n > 0 && *b < 0x80)
		b++, n--;
	return n == 0;
}

static int
same(const uint8_t *p, const char *s, size_t n, int nocase)
{
	for (; n > 0; n--, p++, s++)
		if (*p != (uint8_t)*s &&
		    !(nocase && tolower(*p) == tolower((uint8_t)*s)))
			return 0;
	return 1;
}

/* The first match that lies in one line: 1, or 0. */
static int
naive(const char *s, int nocase, const uint8_t *p, size_t n, size_t *line,
    size_t *len, size_t *at)
{
	size_t m = strlen(s), i, from = 0, end;

	for (i = 0; i + m <= n; i++) {
		if (i > 0 && p[i - 1] == '\n')
			from = i;
		if (!same(p + i, s, m, nocase))
			continue;
		for (end = i; end < n && p[end] != '\n';)
			end++;
		*line = from;
		*len = end - from;
		*at = i - from;
		return 1;
	}
	return 0;
}

/* The line that was found, and those before it, each by itself. */
static void
check_lines(
    struct needle *n, const uint8_t *p, size_t line, size_t len, size_t at)
{
	size_t l, k, a, from = 0;
	const uint8_t *nl;
	uint8_t *copy;

	for (; from < line; from = (size_t)(nl + 1 - p)) {
		nl = memchr(p + from, '\n', line - from);
		CHECK(nl != NULL);
		copy = fuzz_copy(p + from, (size_t)(nl - (p + from)));
		CHECK(needle_find(n, copy, (size_t)(nl - (p + from)), 0, &l, &k,
			  &a) == 0);
		free(copy);
	}
	copy = fuzz_copy(p + line, len);
	/* an empty line is none without its newline */
	if (len > 0)
		CHECK(needle_find(n, copy, len, 0, &l, &k, &a) == 1 && l == 0 &&
		      k == len && a == at);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint8_t how = feed_u8(&f);
	char *pattern = feed_str(&f, '\n', 256);
	size_t line = 0, len = 0, at = 0, l = 0, k = 0, a = 0;
	int regex = how & 1, nocase = how >> 1 & 1, rc;
	uint64_t began = fuzz_cpu_ns();
	uint8_t *p = fuzz_copy(f.p, f.n);
	struct needle *n;
	enum code code;

	n = needle_new(pattern, regex, nocase, &code);
	CHECK((n != NULL) == (code == C_OK));
	CHECK(code == C_OK || code == C_ARGS_INVALID);
	if (n != NULL) {
		rc = needle_find(n, p, f.n, 0, &line, &len, &at);
		CHECK(rc >= -1 && rc <= 1);
		if (rc == 1) {
			CHECK(line <= f.n && len <= f.n - line && at <= len);
			CHECK(line == 0 || p[line - 1] == '\n');
			CHECK(line + len == f.n || p[line + len] == '\n');
			CHECK(memchr(p + line, '\n', len) == NULL);
			check_lines(n, p, line, len, at);
		}
		if (!regex) {
			CHECK(rc != -1);
			if (!nocase ||
			    (ascii(pattern, strlen(pattern)) && ascii(p, f.n)))
				CHECK(naive(pattern, nocase, p, f.n, &l, &k,
					  &a) == rc &&
				      (rc == 0 ||
					  (l == line && k == len && a == at)));
		}
	} else
		CHECK(regex || pattern[0] == '\0' ||
		      strchr(pattern, '\n') != NULL);
	needle_free(n);
	/* a second for 4 KiB is far more than the limits allow */
	CHECK(fuzz_cpu_ns() - began < 10000000000ULL);
	free(pattern);
	free(p);
	return 0;
}
