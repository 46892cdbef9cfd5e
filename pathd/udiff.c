/*
 * SPDX-License-Identifier: ISC
 *
 * The shortest edit script of lines (Myers 1986), behind and before what both
 * texts have in common, bounded in time and memory.  Pure.
 */
#include "pathd/udiff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AROUND 3
#define MAX_D 400	      /* lines that differ before it gives up */
#define NOWHERE (-(1L << 40)) /* outside the texts */

struct line {
	const uint8_t *p;
	size_t len; /* with its newline */
};
struct lines {
	struct line *v; /* owned */
	size_t n;
};
/* Lines from[a..a+na) became to[b..b+nb). */
struct change {
	size_t a, na, b, nb;
};
struct script {
	struct lines x, y;
	struct change *v; /* owned, in order */
	size_t n;
};

static int
lines_split(struct lines *l, const struct text *t)
{
	const uint8_t *p = t->p, *end = t->p + t->len, *nl;
	size_t n = 1;

	for (nl = p; nl < end && (nl = memchr(nl, '\n', (size_t)(end - nl)));
	     nl++)
		n++;
	l->n = 0;
	if ((l->v = calloc(n, sizeof(*l->v))) == NULL)
		return -1;
	while (p < end) {
		nl = memchr(p, '\n', (size_t)(end - p));
		nl = nl == NULL ? end : nl + 1;
		l->v[l->n].p = p;
		l->v[l->n++].len = (size_t)(nl - p);
		p = nl;
	}
	return 0;
}

static int
same(const struct script *s, size_t a, size_t b)
{
	const struct line *x = &s->x.v[a], *y = &s->y.v[b];

	return x->len == y->len && memcmp(x->p, y->p, x->len) == 0;
}

/* ---- the script ---- */

/* What lies between the common ends. */
struct middle {
	size_t a, b; /* first line of either */
	long n, m;   /* how many */
	long *trace; /* owned; for each d the furthest x of each diagonal */
};

/* The row of d begins behind those of all smaller ones: sum of 2i + 1. */
static long *
row(const struct middle *m, long d)
{
	return m->trace + d * d + d; /* middle of the row: diagonal 0 */
}

/* Furthest x on diagonal k with d differences. */
static long
furthest(const struct script *s, const struct middle *m, long d, long k)
{
	const long *up = row(m, d - 1);
	long x, y;

	if (d == 0)
		x = 0;
	else if (k == -d || (k != d && up[k - 1] < up[k + 1]))
		x = up[k + 1];
	else
		x = up[k - 1] + 1;
	y = x - k;
	if (x < 0 || y < 0 || x > m->n || y > m->m)
		return NOWHERE;
	while (x < m->n && y < m->m &&
	       same(s, m->a + (size_t)x, m->b + (size_t)y)) {
		x++;
		y++;
	}
	return x;
}

/* The number of differences, -1 when there are too many. */
static long
search(const struct script *s, struct middle *m)
{
	long d, k;

	for (d = 0; d <= MAX_D; d++)
		for (k = -d; k <= d; k += 2) {
			row(m, d)[k] = furthest(s, m, d, k);
			if (row(m, d)[k] == m->n && k == m->n - m->m)
				return d;
		}
	return -1;
}

/* One line in or out, found from the end; joined with the change behind it. */
static void
script_push(struct script *s, size_t a, size_t na, size_t b, size_t nb)
{
	struct change *c = s->n > 0 ? &s->v[s->n - 1] : NULL;

	if (c != NULL && a + na == c->a && b + nb == c->b) {
		c->a = a;
		c->b = b;
		c->na += na;
		c->nb += nb;
	} else
		s->v[s->n++] = (struct change){a, na, b, nb};
}

static void
backtrack(struct script *s, const struct middle *m, long d)
{
	long x = m->n, y = m->m, k, px, py;
	const long *up;

	for (; d > 0; d--) {
		k = x - y;
		up = row(m, d - 1);
		if (k == -d || (k != d && up[k - 1] < up[k + 1]))
			k++;
		else
			k--;
		px = up[k];
		py = px - k;
		if (k > x - y)
			script_push(
			    s, m->a + (size_t)px, 0, m->b + (size_t)py, 1);
		else
			script_push(
			    s, m->a + (size_t)px, 1, m->b + (size_t)py, 0);
		x = px;
		y = py;
	}
}

static void
reverse(struct script *s)
{
	struct change c;
	size_t i;

	for (i = 0; i < s->n / 2; i++) {
		c = s->v[i];
		s->v[i] = s->v[s->n - 1 - i];
		s->v[s->n - 1 - i] = c;
	}
}

static int
script_make(struct script *s)
{
	struct middle m = {0};
	size_t head = 0, tail = 0, x = s->x.n, y = s->y.n;
	long d;

	while (head < x && head < y && same(s, head, head))
		head++;
	while (tail < x - head && tail < y - head &&
	       same(s, x - 1 - tail, y - 1 - tail))
		tail++;
	m.a = m.b = head;
	m.n = (long)(x - head - tail);
	m.m = (long)(y - head - tail);
	if (m.n == 0 && m.m == 0)
		return 0;
	s->v = calloc(MAX_D + 1, sizeof(*s->v));
	m.trace = calloc((MAX_D + 1) * (MAX_D + 1), sizeof(*m.trace));
	if (s->v == NULL || m.trace == NULL) {
		free(m.trace);
		return -1;
	}
	if ((d = search(s, &m)) == -1)
		s->v[s->n++] =
		    (struct change){head, (size_t)m.n, head, (size_t)m.m};
	else
		backtrack(s, &m, d);
	reverse(s);
	free(m.trace);
	return 0;
}

/* ---- hunks ---- */

static void
put_line(struct wbuf *w, char sign, const struct line *l)
{
	static const char none[] = "\n\\ No newline at end of file\n";

	wput_raw(w, &sign, 1);
	wput_raw(w, l->p, l->len);
	if (l->len == 0 || l->p[l->len - 1] != '\n')
		wput_raw(w, none, sizeof(none) - 1);
}

/* An empty range names the line before it. */
static void
put_range(struct wbuf *w, char sign, size_t from, size_t n)
{
	char buf[64];
	int len;

	len = snprintf(buf, sizeof(buf), n == 1 ? "%c%zu" : "%c%zu,%zu", sign,
	    n == 0 ? from : from + 1, n);
	wput_raw(w, buf, (size_t)len);
}

/* The changes i up to j, which lie close together. */
static void
put_hunk(struct wbuf *w, const struct script *s, size_t i, size_t j)
{
	const struct change *c = &s->v[i], *last = &s->v[j - 1];
	size_t a = c->a < AROUND ? 0 : c->a - AROUND;
	size_t b = c->b - (c->a - a), end = last->a + last->na + AROUND, k;

	if (end > s->x.n)
		end = s->x.n;
	wput_raw(w, "@@ ", 3);
	put_range(w, '-', a, end - a);
	wput_raw(w, " ", 1);
	put_range(
	    w, '+', b, last->b + last->nb + (end - last->a - last->na) - b);
	wput_raw(w, " @@\n", 4);
	for (; i < j; i++) {
		c = &s->v[i];
		for (; a < c->a; a++)
			put_line(w, ' ', &s->x.v[a]);
		for (k = 0; k < c->na; k++)
			put_line(w, '-', &s->x.v[c->a + k]);
		for (k = 0; k < c->nb; k++)
			put_line(w, '+', &s->y.v[c->b + k]);
		a = c->a + c->na;
	}
	for (; a < end; a++)
		put_line(w, ' ', &s->x.v[a]);
}

int
udiff(struct wbuf *w, const struct text *from, const struct text *to)
{
	struct script s = {0};
	size_t i, j;
	int rc = -1;

	if (lines_split(&s.x, from) == 0 && lines_split(&s.y, to) == 0 &&
	    script_make(&s) == 0) {
		rc = 0;
		for (i = 0; i < s.n; i = j) {
			for (j = i + 1; j < s.n && s.v[j].a - s.v[j - 1].a -
							   s.v[j - 1].na <=
						       2 * AROUND;
			     j++)
				continue;
			put_hunk(w, &s, i, j);
		}
	}
	free(s.v);
	free(s.x.v);
	free(s.y.v);
	return rc;
}
