/*
 * SPDX-License-Identifier: ISC
 *
 * Word splitting like shlex.split of the Python library in POSIX mode: white
 * space, quotes and backslash.  No variables, no globbing, no operators, no
 * comments: what comes out is an argument vector, never something to be read
 * by a shell again.  Pure.
 */
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

/* Characters inside "..." that a backslash takes literally. */
#define DQ_ESCAPES "\"\\"

struct splitter {
	const char *p; /* next byte */
	char *word;    /* as long as the whole input */
	size_t len;
	int open; /* a word has begun, maybe empty */
};

static int
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void
take(struct splitter *s, char c)
{
	s->word[s->len++] = c;
	s->open = 1;
}

/* p is past the opening quote.  0, or -1 when it is never closed. */
static int
take_quoted(struct splitter *s, char quote)
{
	s->open = 1;
	for (; *s->p != '\0'; s->p++) {
		if (*s->p == quote) {
			s->p++;
			return 0;
		}
		if (quote == '"' && *s->p == '\\') {
			if (s->p[1] == '\0')
				return -1;
			if (strchr(DQ_ESCAPES, s->p[1]) != NULL)
				s->p++;
		}
		take(s, *s->p);
	}
	return -1;
}

static int
end_word(struct splitter *s, struct strlist *out)
{
	if (!s->open)
		return 0;
	if (out->n >= ABX_MAX_ARGV)
		return -1;
	if (strlist_add(out, s->word, s->len) == -1)
		return -2;
	s->len = 0;
	s->open = 0;
	return 0;
}

/* One step from p: 0, or the code that ends it all. */
static int
step(struct splitter *s, struct strlist *out)
{
	char c = *s->p++;

	if (is_space(c))
		return end_word(s, out);
	if (c == '\'' || c == '"')
		return take_quoted(s, c);
	if (c == '\\') {
		if (*s->p == '\0')
			return -1;
		c = *s->p++;
	}
	take(s, c);
	return 0;
}

int
shlex_split(const char *line, struct strlist *out)
{
	struct splitter s = {.p = line};
	int r = 0;

	memset(out, 0, sizeof(*out));
	s.word = malloc(strlen(line) + 1);
	if (s.word == NULL)
		return -2;
	while (r == 0 && *s.p != '\0')
		r = step(&s, out);
	if (r == 0)
		r = end_word(&s, out);
	free(s.word);
	if (r != 0)
		strlist_clear(out);
	return r;
}
