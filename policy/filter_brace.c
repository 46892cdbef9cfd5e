/*
 * SPDX-License-Identifier: ISC
 *
 * Brace expansion of one word, as bash does it: a{b,c}d is abd acd.  Bounded:
 * what would become more than a few words or bytes stays as it is.
 */
#include <string.h>

#include "policy/filter_int.h"

#define ITEMS 64
#define BYTES 4096
#define DEPTH 32

struct braces {
	struct {
		uint16_t off, len;
	} v[ITEMS + 1];
	size_t n, used;
	char buf[BYTES];
};

struct group {
	size_t open, close;
};

/* The first { } with a comma of its own in s.  One pass; what is nested
 * beyond DEPTH is left alone. */
static int
find_group(const char *s, size_t n, struct group *g)
{
	uint16_t open[DEPTH], commas[DEPTH];
	size_t i, depth = 0;
	int found = 0;

	for (i = 0; i < n; i++) {
		if (s[i] == CH_OPEN) {
			if (depth == DEPTH)
				return 0;
			open[depth] = (uint16_t)i;
			commas[depth++] = 0;
		} else if (depth == 0)
			continue;
		else if (s[i] == CH_COMMA)
			commas[depth - 1]++;
		else if (s[i] == CH_CLOSE && commas[--depth] > 0 &&
			 (!found || open[depth] < g->open)) {
			found = 1;
			g->open = open[depth];
			g->close = i;
		}
	}
	return found;
}

static int
append(struct braces *b, const char *s, size_t n)
{
	if (b->used + n > BYTES)
		return -1;
	memcpy(b->buf + b->used, s, n);
	b->used += n;
	return 0;
}

/* Put before + alternative + after as item i; those behind move up. */
static int
insert(struct braces *b, size_t i, const char *s, size_t n,
    const struct group *g, const char *alt, size_t altlen)
{
	size_t at = b->used;

	if (b->n == ITEMS || append(b, s, g->open) == -1 ||
	    append(b, alt, altlen) == -1 ||
	    append(b, s + g->close + 1, n - g->close - 1) == -1)
		return -1;
	memmove(&b->v[i + 1], &b->v[i], (b->n - i) * sizeof(b->v[0]));
	b->v[i].off = (uint16_t)at;
	b->v[i].len = (uint16_t)(b->used - at);
	b->n++;
	return 0;
}

/* Item i by its alternatives, in order. */
static int
replace(struct braces *b, size_t i, const struct group *g)
{
	const char *s = b->buf + b->v[i].off, *alt, *p;
	size_t n = b->v[i].len, depth = 0, at = i;

	memmove(&b->v[i], &b->v[i + 1], (b->n - i - 1) * sizeof(b->v[0]));
	b->n--;
	alt = s + g->open + 1;
	for (p = alt; p <= s + g->close; p++) {
		if (*p == CH_OPEN)
			depth++;
		else if (*p == CH_CLOSE && p < s + g->close)
			depth--;
		else if (p == s + g->close || (*p == CH_COMMA && depth == 0)) {
			if (insert(b, at++, s, n, g, alt, (size_t)(p - alt)) ==
			    -1)
				return -1;
			alt = p + 1;
		}
	}
	return 0;
}

/* What stands before the first brace is the root directory. */
static int
at_root(const char *s, size_t n)
{
	size_t i;

	for (i = 0; i < n && s[i] != CH_OPEN; i++)
		if (s[i] != '/' && s[i] != '.')
			return 0;
	return i > 0 && s[0] == '/' && s[i - 1] == '/';
}

static void
put_item(struct lex *lx, const char *s, size_t n, uint32_t flags)
{
	size_t i;
	char c;

	word_open(lx);
	lex_top(lx)->wflags |= flags & ~(uint32_t)W_BRACE;
	for (i = 0; i < n; i++) {
		c = s[i] >= CH_OPEN && s[i] <= CH_CLOSE ? "{,}"[s[i] - CH_OPEN]
							: s[i];
		(void)word_put(lx, &c, 1);
	}
	(void)word_close(lx);
}

int
brace_expand(struct lex *lx, const struct word *w)
{
	struct braces b;
	struct group g;
	size_t i = 0;
	uint32_t flags = w->flags | W_QUOTED;

	if (w->len > BYTES / 4 || lx->x->budget < BYTES ||
	    !find_group(lx->text + w->off, w->len, &g))
		return 0;
	b.used = b.n = 0;
	if (at_root(lx->text + w->off, w->len))
		flags |= W_BRROOT;
	append(&b, lx->text + w->off, w->len);
	b.v[0].off = 0;
	b.v[0].len = (uint16_t)w->len;
	b.n = 1;
	while (i < b.n) {
		if (!find_group(b.buf + b.v[i].off, b.v[i].len, &g))
			i++;
		else if (replace(&b, i, &g) == -1)
			return 0;
	}
	lx->x->budget -= b.used;
	for (i = 0; i < b.n; i++)
		put_item(lx, b.buf + b.v[i].off, b.v[i].len, flags);
	return 1;
}
