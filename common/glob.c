/*
 * SPDX-License-Identifier: ISC
 *
 * Compiled path patterns: a list of segments, matched as a small automaton
 * over the segments of a path, and inside one segment with two pointers, so
 * that no pattern can make a match explode.  Pure.
 */
#include "common/glob.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"

enum seg_kind { SEG_LITERAL, SEG_WILD, SEG_ANY };

struct seg {
	const char *s; /* into glob.text */
	size_t len;
	enum seg_kind kind;
};

#define GLOB_SEGS (ABX_PATH_SEGS + 1) /* one more for a name that floats */

struct glob {
	char *text; /* anchor and pattern, owned */
	size_t n;
	struct seg seg[]; /* n of them */
};

/* ---- one segment ---- */

/* Past the ']' of the class that starts at p, or NULL when it has no end or
 * a range runs backwards. */
static const char *
class_end(const char *p, const char *end)
{
	const char *first;

	p++;
	if (p < end && *p == '!')
		p++;
	for (first = p; p < end && (*p != ']' || p == first); p++)
		if (end - p > 2 && p[1] == '-' && p[2] != ']') {
			if ((unsigned char)p[0] > (unsigned char)p[2])
				return NULL;
			p += 2;
		}
	return p < end ? p + 1 : NULL;
}

/* 1 when the class that starts at p holds the byte. */
static int
class_has(const char *p, const char *end, unsigned char c)
{
	const char *first;
	int not = 0, hit = 0;

	p++;
	if (p < end && *p == '!') {
		not = 1;
		p++;
	}
	for (first = p; p < end && (*p != ']' || p == first); p++) {
		unsigned char lo = (unsigned char)*p, hi = lo;

		if (end - p > 2 && p[1] == '-' && p[2] != ']') {
			hi = (unsigned char)p[2];
			p += 2;
		}
		if (c >= lo && c <= hi)
			hit = 1;
	}
	return hit != not ;
}

/* Match one pattern element that is not a star against one byte; the end of
 * the element, or NULL. */
static const char *
one_match(const char *p, const char *end, char c)
{
	const char *q;

	switch (*p) {
	case '?':
		return c != '/' ? p + 1 : NULL;
	case '[':
		q = class_end(p, end);
		if (q == NULL || c == '/')
			return NULL;
		return class_has(p, q, (unsigned char)c) ? q : NULL;
	default:
		return *p == c ? p + 1 : NULL;
	}
}

/* Two pointers: only the last star is ever tried again, which is enough
 * because an earlier star could not do better. */
static int
wild_match(const char *p, const char *pend, const char *s, const char *send)
{
	const char *star = NULL, *mark = NULL, *next;

	while (s < send) {
		if (p < pend && *p == '*') {
			star = ++p;
			mark = s;
			continue;
		}
		next = p < pend ? one_match(p, pend, *s) : NULL;
		if (next != NULL) {
			p = next;
			s++;
			continue;
		}
		if (star == NULL || *mark == '/')
			return 0;
		p = star;
		s = ++mark;
	}
	while (p < pend && *p == '*')
		p++;
	return p == pend;
}

static int
has_wildcard(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (s[i] == '*' || s[i] == '?' || s[i] == '[')
			return 1;
	return 0;
}

int
glob_segment_ok(const char *s, size_t len)
{
	const char *end = s + len;

	while (s < end) {
		if (*s != '[') {
			s++;
			continue;
		}
		s = class_end(s, end);
		if (s == NULL)
			return 0;
	}
	return 1;
}

int
glob_segment(const char *pattern, const char *s, size_t len)
{
	return wild_match(pattern, pattern + strlen(pattern), s, s + len);
}

int
glob_words(const char *pattern, const char *s)
{
	size_t p, n;

	for (;;) {
		p = strcspn(pattern, "/");
		n = strcspn(s, "/");
		if (!wild_match(pattern, pattern + p, s, s + n))
			return 0;
		if (pattern[p] != s[n])
			return 0;
		if (pattern[p] == '\0')
			return 1;
		pattern += p + 1;
		s += n + 1;
	}
}

/* ---- compiling ---- */

/* Length without trailing slashes; a lone "/" keeps its slash. */
static size_t
trimmed(const char *s)
{
	size_t n = strlen(s);

	while (n > 1 && s[n - 1] == '/')
		n--;
	return n;
}

static int
starts_any(const char *s, size_t n)
{
	return n >= 2 && s[0] == '*' && s[1] == '*' && (n == 2 || s[2] == '/');
}

int
glob_needs_anchor(const char *pattern)
{
	size_t n = trimmed(pattern);

	return n > 0 && pattern[0] != '/' && !starts_any(pattern, n) &&
	       memchr(pattern, '/', n) != NULL;
}

/* Judge one segment of a pattern: 0, or -1 with *why. */
static int
seg_classify(struct seg *seg, unsigned *any, const char **why)
{
	if ((seg->len == 1 && seg->s[0] == '.') ||
	    (seg->len == 2 && memcmp(seg->s, "..", 2) == 0)) {
		*why = "a segment is . or ..";
		return -1;
	}
	if (seg->len == 2 && memcmp(seg->s, "**", 2) == 0) {
		seg->kind = SEG_ANY;
		if (++*any > ABX_GLOB_STARSTARS) {
			*why = "more than three ** segments";
			return -1;
		}
		return 0;
	}
	seg->kind = has_wildcard(seg->s, seg->len) ? SEG_WILD : SEG_LITERAL;
	if (seg->kind == SEG_WILD && !glob_segment_ok(seg->s, seg->len)) {
		*why = "a [ without its ], or a range that runs backwards";
		return -1;
	}
	return 0;
}

/* Append the segments of n bytes; literal ones are not looked into. */
static int
segs_push(
    struct glob *g, const char *s, size_t n, int literal, const char **why)
{
	const char *end = s + n;
	unsigned any = 0;

	while (s < end) {
		struct seg seg = {.s = s, .kind = SEG_LITERAL};

		while (s < end && *s != '/')
			s++;
		seg.len = (size_t)(s - seg.s);
		if (s < end)
			s++;
		if (seg.len == 0)
			continue;
		if (!literal && seg_classify(&seg, &any, why) == -1)
			return -1;
		if (seg.kind == SEG_ANY && g->n > 0 &&
		    g->seg[g->n - 1].kind == SEG_ANY)
			continue;
		if (g->n >= ABX_PATH_SEGS) {
			*why = "too many segments";
			return -1;
		}
		g->seg[g->n++] = seg;
	}
	return 0;
}

static struct glob *
glob_alloc(const char *anchor, size_t alen, const char *pattern, size_t plen)
{
	struct glob *g;
	size_t i, slots = 3;

	for (i = 0; i < alen; i++)
		slots += anchor[i] == '/';
	for (i = 0; i < plen; i++)
		slots += pattern[i] == '/';
	if (slots > GLOB_SEGS)
		slots = GLOB_SEGS;
	g = calloc(1, sizeof(*g) + slots * sizeof(g->seg[0]));
	if (g == NULL)
		return NULL;
	g->text = malloc(alen + plen + 1);
	if (g->text == NULL) {
		free(g);
		return NULL;
	}
	memcpy(g->text, anchor, alen);
	memcpy(g->text + alen, pattern, plen);
	g->text[alen + plen] = '\0';
	return g;
}

/* 0, or -1 with *why when the pattern and anchor cannot go together. */
static int
glob_precheck(const char *pattern, const char *anchor, const char **why)
{
	if (*pattern == '\0')
		*why = "it is empty";
	else if (strlen(pattern) > ABX_PATH_MAX)
		*why = "it is too long";
	else if (glob_needs_anchor(pattern) && anchor == NULL)
		*why = "it is relative and has nothing to start at";
	else
		return 0;
	return -1;
}

struct glob *
glob_new(const char *pattern, const char *anchor, const char **why)
{
	static const struct seg any = {"**", 2, SEG_ANY};
	size_t plen, alen = 0;
	struct glob *g;

	*why = NULL;
	if (glob_precheck(pattern, anchor, why) == -1)
		return NULL;
	plen = trimmed(pattern);
	if (glob_needs_anchor(pattern))
		alen = strlen(anchor);
	else
		anchor = "";
	if (alen > ABX_PATH_MAX) {
		*why = "it is too long";
		return NULL;
	}
	g = glob_alloc(anchor, alen, pattern, plen);
	if (g == NULL)
		return NULL;
	if (pattern[0] != '/' && alen == 0 && !glob_needs_anchor(pattern) &&
	    !starts_any(pattern, plen))
		g->seg[g->n++] = any;
	if (segs_push(g, g->text, alen, 1, why) == -1 ||
	    segs_push(g, g->text + alen, plen, 0, why) == -1) {
		glob_free(g);
		return NULL;
	}
	return g;
}

void
glob_free(struct glob *g)
{
	if (g == NULL)
		return;
	free(g->text);
	free(g);
}

/* ---- matching ---- */

static int
seg_match(const struct seg *seg, const char *s, size_t len)
{
	if (seg->kind == SEG_LITERAL)
		return seg->len == len && memcmp(seg->s, s, len) == 0;
	return wild_match(seg->s, seg->s + seg->len, s, s + len);
}

/* "**" also stands for no segment at all. */
static void
states_close(const struct glob *g, uint8_t *on)
{
	size_t i;

	for (i = 0; i < g->n; i++)
		if (on[i] && g->seg[i].kind == SEG_ANY)
			on[i + 1] = 1;
}

/* One path segment: the states that are on afterwards; 0 when none is. */
static int
states_step(const struct glob *g, uint8_t *on, const char *s, size_t len)
{
	uint8_t next[GLOB_SEGS + 1];
	int live = 0;
	size_t i;

	memset(next, 0, g->n + 1);
	for (i = 0; i < g->n; i++) {
		if (!on[i])
			continue;
		if (g->seg[i].kind == SEG_ANY)
			next[i] = live = 1;
		else if (seg_match(&g->seg[i], s, len))
			next[i + 1] = live = 1;
	}
	memcpy(on, next, g->n + 1);
	return live;
}

/* Through all segments of the path; on: the states behind it.  With ancestors
 * 1 as soon as one of them matches. */
static int
glob_walk(const struct glob *g, const char *path, int ancestors, uint8_t *on)
{
	size_t len;

	memset(on, 0, g->n + 1);
	on[0] = 1;
	for (;;) {
		states_close(g, on);
		if (ancestors && on[g->n])
			return 1;
		while (*path == '/')
			path++;
		if (*path == '\0')
			return on[g->n];
		len = strcspn(path, "/");
		if (!states_step(g, on, path, len))
			return 0;
		path += len;
	}
}

int
glob_covers(const struct glob *g, const char *path)
{
	uint8_t on[GLOB_SEGS + 1];

	return glob_walk(g, path, 1, on);
}

int
glob_match(const struct glob *g, const char *path)
{
	uint8_t on[GLOB_SEGS + 1];

	return glob_walk(g, path, 0, on);
}

int
glob_below(const struct glob *g, const char *path)
{
	uint8_t on[GLOB_SEGS + 1];
	size_t i;

	if (glob_walk(g, path, 1, on))
		return 1;
	for (i = 0; i < g->n; i++)
		if (on[i])
			return 1;
	return 0;
}

/* ---- texts ---- */

/* Copy n bytes with wildcards quoted as classes; bytes written.  dst may be
 * NULL to count. */
static size_t
quote_into(char *dst, const char *s, size_t n)
{
	size_t i, o = 0;

	for (i = 0; i < n; i++) {
		int wild = s[i] == '*' || s[i] == '?' || s[i] == '[';

		if (dst != NULL && wild)
			dst[o] = '[';
		o += wild != 0;
		if (dst != NULL)
			dst[o] = s[i];
		o++;
		if (dst != NULL && wild)
			dst[o] = ']';
		o += wild != 0;
	}
	return o;
}

/* Quoted literal, a slash when both parts are there, and text as it is. */
static char *
text_join(const char *literal, size_t llen, const char *text, size_t tlen)
{
	size_t n = quote_into(NULL, literal, llen);
	char *out;

	if (n + tlen + 1 > ABX_PATH_MAX)
		return NULL;
	out = malloc(n + tlen + 2);
	if (out == NULL)
		return NULL;
	quote_into(out, literal, llen);
	if (n > 0 && out[n - 1] != '/' && tlen > 0 && text[0] != '/')
		out[n++] = '/';
	memcpy(out + n, text, tlen);
	out[n + tlen] = '\0';
	return out;
}

/* Segments from i on as a text; NULL when out of memory. */
static char *
rest_text(const struct glob *g, size_t i)
{
	const struct seg *seg;
	size_t n = 1, k;
	char *out, *o;

	for (k = i; k < g->n; k++)
		n += 3 * g->seg[k].len + 1;
	if ((out = o = malloc(n)) == NULL)
		return NULL;
	for (k = i; k < g->n; k++) {
		seg = &g->seg[k];
		if (k > i)
			*o++ = '/';
		if (seg->kind == SEG_LITERAL)
			o += quote_into(o, seg->s, seg->len);
		else {
			memcpy(o, seg->s, seg->len);
			o += seg->len;
		}
	}
	*o = '\0';
	return out;
}

int
glob_rests(const struct glob *g, const char *dir,
    int (*fn)(const char *rest, void *arg), void *arg)
{
	uint8_t on[GLOB_SEGS + 1];
	size_t i;
	char *rest;
	int r;

	if (glob_walk(g, dir, 1, on))
		return fn("", arg);
	for (i = 0; i < g->n; i++) {
		/* what floats at the start, or is what "**" before it says */
		if (!on[i] || (i == 0 && g->seg[0].kind == SEG_ANY) ||
		    (i > 0 && on[i - 1] && g->seg[i - 1].kind == SEG_ANY))
			continue;
		if ((rest = rest_text(g, i)) == NULL)
			return -1;
		r = fn(rest, arg);
		free(rest);
		if (r != 0)
			return r;
	}
	return 0;
}

char *
glob_text(const char *pattern, const char *anchor)
{
	size_t alen, plen = trimmed(pattern);

	if (!glob_needs_anchor(pattern))
		return text_join("", 0, pattern, plen);
	if (anchor == NULL)
		return NULL;
	alen = strlen(anchor);
	while (alen > 0 && anchor[alen - 1] == '/')
		alen--;
	if (alen == 0)
		return text_join("/", 1, pattern, plen);
	return text_join(anchor, alen, pattern, plen);
}

char *
glob_quote(const char *path, const char *rest)
{
	size_t n = strlen(path);

	while (n > 0 && path[n - 1] == '/')
		n--;
	if (n == 0)
		return text_join("/", 1, rest, strlen(rest));
	return text_join(path, n, rest, strlen(rest));
}
