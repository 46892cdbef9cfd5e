/*
 * SPDX-License-Identifier: ISC
 *
 * Word splitting against the states of Python's shlex, and back: words in
 * quotes of any style are the same words again.  Input: 1 byte (style of the
 * quotes), then the line.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/policy.h"
#include "regress/fuzz/fuzz.h"

/* shlex.shlex(posix=True, punctuation_chars=False, whitespace_split=True)
 * without comments: 0, or -1 where it raises ValueError. */
static int
model(const char *s, struct strlist *out)
{
	char state = ' ', before = ' ', *word = fuzz_alloc(strlen(s) + 1);
	size_t n = 0;
	int have = 0, rc = 0;

	for (; rc == 0; s++) {
		char c = *s;

		if (c == '\0' &&
		    (state == '\'' || state == '"' || state == '\\'))
			rc = -1;
		else if (state == '\\') {
			if (before == '"' && c != '"' && c != '\\')
				word[n++] = '\\';
			word[n++] = c;
			state = before;
		} else if (state == '\'' || state == '"') {
			if (c == state)
				state = 'a';
			else if (c == '\\' && state == '"') {
				before = state;
				state = '\\';
			} else
				word[n++] = c;
		} else if (c == '\0' || strchr(" \t\r\n", c) != NULL) {
			if (have && out->n == ABX_MAX_ARGV)
				rc = -1;
			else if (have)
				CHECK(strlist_add(out, word, n) == 0);
			n = 0;
			have = 0;
			state = ' ';
			if (c == '\0')
				break;
			continue;
		} else if (c == '\\') {
			before = 'a';
			state = '\\';
		} else if (c == '\'' || c == '"')
			state = c;
		else {
			word[n++] = c;
			state = 'a';
		}
		have = 1;
	}
	free(word);
	return rc;
}

/* One byte in quotes of the given style. */
static char *
quoted(char *o, char c, unsigned style)
{
	switch (style % 3) {
	case 0:
		if (c == '\'')
			return stpcpy(o, "\"'\"");
		*o++ = '\'';
		*o++ = c;
		*o++ = '\'';
		return o;
	case 1:
		*o++ = '"';
		if (c == '"' || c == '\\')
			*o++ = '\\';
		*o++ = c;
		*o++ = '"';
		return o;
	default:
		*o++ = '\\';
		*o++ = c;
		return o;
	}
}

/* The words as a line that must be split into them again. */
static char *
join(const struct strlist *l, uint32_t style)
{
	size_t i, k, n = 1;
	char *line, *o;

	for (i = 0; i < l->n; i++)
		n += 5 * strlen(l->v[i]) + 4;
	line = o = fuzz_alloc(n);
	for (i = 0; i < l->n; i++) {
		*o++ = " \t\n\r"[fuzz_rand(&style) % 4];
		if (l->v[i][0] == '\0')
			o = stpcpy(o, "''");
		for (k = 0; l->v[i][k] != '\0'; k++)
			o = quoted(o, l->v[i][k], fuzz_rand(&style));
	}
	CHECK((size_t)(o - line) < n);
	return line;
}

static void
same(const struct strlist *a, const struct strlist *b)
{
	size_t i;

	CHECK(a->n == b->n);
	for (i = 0; i < a->n; i++)
		CHECK(strcmp(a->v[i], b->v[i]) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint32_t style = feed_u8(&f);
	char *line = feed_str(&f, '\0', size), *again;
	struct strlist got, want = {0}, back;
	int rc = shlex_split(line, &got);

	CHECK(rc == model(line, &want));
	if (rc == 0) {
		same(&got, &want);
		again = join(&got, style);
		CHECK(shlex_split(again, &back) == 0);
		same(&got, &back);
		strlist_clear(&back);
		free(again);
	} else
		CHECK(got.n == 0 && got.v == NULL);
	strlist_clear(&got);
	strlist_clear(&want);
	free(line);
	return 0;
}
