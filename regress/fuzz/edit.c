/*
 * SPDX-License-Identifier: ISC
 *
 * Edits of a text against a naive way to make them, and the diff of two texts:
 * applied to the one it gives the other, and it is no longer than it must be.
 * Input: 1 byte (bit 0: edits, else a diff), then texts with 0xff between.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pathd/replace.h"
#include "pathd/udiff.h"
#include "regress/fuzz/fuzz.h"

/* Up to the next 0xff, as a text that may hold NULs. */
static struct text
feed_text(struct feed *f)
{
	const uint8_t *end = f->n == 0 ? NULL : memchr(f->p, 0xff, f->n);
	size_t n = end == NULL ? f->n : (size_t)(end - f->p);
	struct text t = {fuzz_copy(f->p, n), n};

	f->p += n;
	f->n -= n;
	if (f->n > 0)
		(void)feed_u8(f);
	return t;
}

/* ---- edits ---- */

/* Matches from the left; the text that replacing them makes, when asked. */
static size_t
naive(const struct text *t, const struct edit_row *r, struct text *out)
{
	size_t n = strlen(r->find), m = strlen(r->replace), i = 0, count = 0;

	if (out != NULL)
		*out = (struct text){fuzz_alloc(t->len * (m + 1) + 1), 0};
	while (i < t->len)
		if (t->len - i >= n && memcmp(t->p + i, r->find, n) == 0) {
			if (out != NULL)
				memcpy(out->p + out->len, r->replace, m);
			if (out != NULL)
				out->len += m;
			i += n;
			count++;
		} else {
			if (out != NULL)
				out->p[out->len++] = t->p[i];
			i++;
		}
	return count;
}

static enum code
model(struct text *t, const struct edit_row *r, size_t n, uint64_t max)
{
	struct text out;
	size_t count;

	for (; n > 0; n--, r++) {
		count = naive(t, r, NULL);
		if (count != r->count)
			return count < r->count ? C_EDIT_NO_MATCH
						: C_EDIT_AMBIGUOUS;
		(void)naive(t, r, &out);
		free(t->p);
		*t = out;
		if (t->len > max)
			return C_LIM_MAX_BYTES;
	}
	return C_OK;
}

static void
check_edits(struct feed *f)
{
	struct edit_row rows[4];
	uint64_t count, want = 0, max = feed_u8(f);
	struct text t, u;
	enum code code;
	size_t n = 0, i;
	uint8_t how;

	if (max >= 0xc0)
		max = UINT64_MAX;
	t = feed_text(f);
	u = (struct text){fuzz_copy(t.p, t.len), t.len};
	while (f->n > 0 && n < 4) {
		how = feed_u8(f);
		rows[n].find = feed_str(f, '\n', 64);
		rows[n].replace = feed_str(f, '\n', 64);
		/* most find themselves as often as they are there */
		rows[n].count =
		    how < 0x40 ? how : (uint32_t)(how < 0x80 ? 1 : 0);
		if (rows[n].find[0] == '\0') {
			free(rows[n].find); /* refused before */
			free(rows[n].replace);
			break;
		}
		if (how >= 0x80)
			rows[n].count = (uint32_t)naive(&t, &rows[n], NULL);
		want += rows[n++].count;
	}
	code = model(&u, rows, n, max);
	CHECK(replace_all(&t, rows, n, max, &count) == code);
	if (code == C_OK) {
		CHECK(count == want);
		CHECK(t.len == u.len && memcmp(t.p, u.p, t.len) == 0);
	}
	for (i = 0; i < n; i++) {
		free(rows[i].find);
		free(rows[i].replace);
	}
	free(t.p);
	free(u.p);
}

/* ---- diffs ---- */

/* The line at *at of n bytes, with its newline: its length, 0 at the end. */
static size_t
line_at(const uint8_t *p, size_t n)
{
	const uint8_t *nl = n == 0 ? NULL : memchr(p, '\n', n);

	return nl == NULL ? n : (size_t)(nl + 1 - p);
}

/* A number and what follows it. */
static size_t
number(const char **s)
{
	char *end;
	size_t n = strtoul(*s, &end, 10);

	CHECK(end != *s);
	*s = end;
	return n;
}

/* "-12,3" or "+1": how many lines there are before it and in it. */
static void
range(const char **s, char sign, size_t *before, size_t *n)
{
	CHECK(*(*s)++ == sign);
	*before = number(s);
	*n = 1;
	if (**s == ',') {
		++*s;
		*n = number(s);
		CHECK(*n != 1);
	}
	if (*n > 0)
		CHECK((*before)-- > 0);
}

struct patch {
	const uint8_t *d; /* what is left of the diff */
	size_t n;
	struct text from; /* the place in it */
	size_t line;	  /* lines passed */
	struct text out;
	size_t outline;
	size_t edits;
};

static void
pass(struct patch *p)
{
	size_t n = line_at(p->from.p, p->from.len);

	CHECK(n > 0);
	memcpy(p->out.p + p->out.len, p->from.p, n);
	p->out.len += n;
	p->from.p += n;
	p->from.len -= n;
	p->line++;
	p->outline++;
}

/* One line of a hunk. */
static void
apply(struct patch *p, size_t *gone, size_t *come)
{
	static const char none[] = "\\ No newline at end of file\n";
	uint8_t sign = p->d[0];
	size_t n = line_at(p->d, p->n), have;

	CHECK(n >= 2 && p->d[n - 1] == '\n');
	p->d++;
	p->n--;
	n--;
	have = n;
	p->d += n;
	p->n -= n;
	if (p->n >= sizeof(none) - 1 &&
	    memcmp(p->d, none, sizeof(none) - 1) == 0) {
		have--;
		p->d += sizeof(none) - 1;
		p->n -= sizeof(none) - 1;
	}
	if (sign == ' ' || sign == '-') {
		CHECK(line_at(p->from.p, p->from.len) == have);
		CHECK(memcmp(p->from.p,
			  p->d - n - (have < n ? sizeof(none) - 1 : 0),
			  have) == 0);
		CHECK((*gone)-- > 0);
	}
	if (sign == ' ')
		pass(p);
	else if (sign == '-') {
		p->from.p += have;
		p->from.len -= have;
		p->line++;
		p->edits++;
	} else {
		CHECK(sign == '+');
		memcpy(p->out.p + p->out.len,
		    p->d - n - (have < n ? sizeof(none) - 1 : 0), have);
		p->out.len += have;
		p->outline++;
		p->edits++;
	}
	if (sign != '-')
		CHECK((*come)-- > 0);
}

/* Apply it: how many lines go or come. */
static size_t
patch(const struct wbuf *w, const struct text *from, struct text *out)
{
	struct patch p = {w->p, w->len, *from, 0, *out, 0, 0};
	size_t n, before[2], len[2];
	const char *s;
	char *head;

	while (p.n > 0) {
		n = line_at(p.d, p.n);
		head = strndup((const char *)p.d, n);
		CHECK(head != NULL && strncmp(head, "@@ ", 3) == 0);
		s = head + 3;
		range(&s, '-', &before[0], &len[0]);
		CHECK(*s++ == ' ');
		range(&s, '+', &before[1], &len[1]);
		CHECK(strcmp(s, " @@\n") == 0);
		free(head);
		p.d += n;
		p.n -= n;
		CHECK(before[0] >= p.line);
		while (p.line < before[0])
			pass(&p);
		CHECK(p.outline == before[1]);
		while (len[0] > 0 || len[1] > 0)
			apply(&p, &len[0], &len[1]);
	}
	while (p.from.len > 0)
		pass(&p);
	*out = p.out;
	return p.edits;
}

static size_t
split(const struct text *t, const uint8_t **at, size_t *len, size_t max)
{
	size_t off = 0, n = 0;

	while (off < t->len && n < max) {
		at[n] = t->p + off;
		len[n] = line_at(at[n], t->len - off);
		off += len[n++];
	}
	return off < t->len ? max + 1 : n;
}

#define SMALL 40

/* The least that must go and come, or SIZE_MAX for texts too long to tell. */
static size_t
least(const struct text *a, const struct text *b)
{
	const uint8_t *p[2][SMALL];
	size_t len[2][SMALL], best[SMALL + 1][SMALL + 1] = {{0}}, n, m, i, j;

	n = split(a, p[0], len[0], SMALL);
	m = split(b, p[1], len[1], SMALL);
	if (n > SMALL || m > SMALL)
		return SIZE_MAX;
	for (i = 1; i <= n; i++)
		for (j = 1; j <= m; j++)
			if (len[0][i - 1] == len[1][j - 1] &&
			    memcmp(p[0][i - 1], p[1][j - 1], len[0][i - 1]) ==
				0)
				best[i][j] = best[i - 1][j - 1] + 1;
			else
				best[i][j] = best[i - 1][j] > best[i][j - 1]
						 ? best[i - 1][j]
						 : best[i][j - 1];
	return n + m - 2 * best[n][m];
}

static void
check_diff(struct feed *f)
{
	struct text a = feed_text(f), b = feed_text(f), out;
	size_t edits, want;
	struct wbuf w, cut;

	wbuf_init(&w, 16 + 64 * (a.len + b.len + 1));
	CHECK(udiff(&w, &a, &b) == 0 && !w.err);
	out = (struct text){fuzz_alloc(a.len + b.len + 1), 0};
	edits = patch(&w, &a, &out);
	CHECK(out.len == b.len && memcmp(out.p, b.p, b.len) == 0);
	CHECK((w.len == 0) == (edits == 0));
	want = least(&a, &b);
	CHECK(want == SIZE_MAX || edits == want);
	if (w.len > 0) {
		wbuf_init(&cut, w.len - 1);
		CHECK(udiff(&cut, &a, &b) == 0 && cut.err);
		wbuf_free(&cut);
	}
	wbuf_free(&w);
	free(out.p);
	free(a.p);
	free(b.p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};

	if ((feed_u8(&f) & 1) != 0)
		check_edits(&f);
	else
		check_diff(&f);
	return 0;
}
