/*
 * SPDX-License-Identifier: ISC
 *
 * The word that a scanner is in: its bytes, what an expansion makes of it,
 * and its end.  Quoted and unquoted spellings of a word end up as the same
 * bytes; what only the shell can know is one byte CH_DYN.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

/* Bytes that word_text does not copy blindly: our own, and the first ones of
 * invisible characters. */
static const unsigned char odd[256] = {
    [0 ... 8] = 1,
    [0xe1] = 1,
    [0xe2] = 1,
    [0xe3] = 1,
    [0xef] = 1,
    [0xf3] = 1,
};

/* FNV-1a; never 0. */
uint64_t
name_hash(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325ULL;

	while (n-- > 0)
		h = (h ^ (unsigned char)*s++) * 0x100000001b3ULL;
	return h == 0 ? 1 : h;
}

/* U+115F, U+1160, U+200B to 200F, 202A to 202E, 2060 to 2064, 2066 to 2069,
 * U+3164, U+FE00 to FE0F, U+FEFF, and the tags U+E0001 to E007F. */
size_t
invisible(const char *s, const char *end)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t left = (size_t)(end - s);
	unsigned c;

	if (left < 3 || (p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
		return 0;
	c = (unsigned)(p[0] & 15) << 12 | (unsigned)(p[1] & 63) << 6 |
	    (p[2] & 63);
	if ((p[0] & 0xf0) == 0xe0)
		return c == 0x115f || c == 0x1160 || c == 0x3164 ||
			       c == 0xfeff || (c >= 0x200b && c <= 0x200f) ||
			       (c >= 0x202a && c <= 0x202e) ||
			       (c >= 0x2060 && c <= 0x2069 && c != 0x2065) ||
			       (c >= 0xfe00 && c <= 0xfe0f)
			   ? 3
			   : 0;
	if (left >= 4 && p[0] == 0xf3 && p[1] == 0xa0 &&
	    (p[2] == 0x80 || p[2] == 0x81) && (p[3] & 0xc0) == 0x80)
		return 4;
	return 0;
}

int
word_put(struct lex *lx, const char *s, size_t n)
{
	/* one more, so that a word can always be ended */
	if (fctx_grow(lx->x, &lx->text, &lx->cap, lx->len + n + 1, 1) == -1)
		return -1;
	memcpy(lx->text + lx->len, s, n);
	lx->len += n;
	return 0;
}

/* One odd byte at s; how many were used. */
static size_t
put_odd(struct lex *lx, const char *s, const char *end)
{
	size_t n = invisible(s, end);
	char c = *s;

	if (n > 0)
		return n;
	if (c == CH_DYN && lx->nested)
		word_dyn(lx);
	else if (c != '\0') {
		if (c > 0 && c <= 8)
			c = 0x7f;
		(void)word_put(lx, &c, 1);
	}
	return 1;
}

void
word_text(struct lex *lx, const char *s, size_t n)
{
	const char *end = s + n, *p;

	while (s < end) {
		for (p = s; p < end && !odd[(unsigned char)*p]; p++)
			continue;
		if (p > s)
			(void)word_put(lx, s, (size_t)(p - s));
		s = p < end ? p + put_odd(lx, p, end) : p;
	}
}

void
word_open(struct lex *lx)
{
	struct frame *f = lex_top(lx);

	if (f->inword)
		return;
	f->inword = 1;
	f->wflags = 0;
	f->wstart = (uint32_t)lx->len;
}

void
word_dyn(struct lex *lx)
{
	static const char dyn = CH_DYN;

	lex_top(lx)->wflags |= W_DYN;
	/* one is as good as many */
	if (lx->len == lex_top(lx)->wstart || lx->text[lx->len - 1] != dyn)
		(void)word_put(lx, &dyn, 1);
}

static int
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

void
word_expand(struct lex *lx, const char *s, size_t n)
{
	const char *end = s + n, *p;
	int split = !lex_top(lx)->dq && lex_top(lx)->kind != FR_PARAM;

	while (s < end) {
		for (p = s; p < end && !(split && is_space(*p)); p++)
			continue;
		if (p > s) {
			word_open(lx);
			/* no reserved word comes out of an expansion */
			lex_top(lx)->wflags |= W_QUOTED;
			if (memchr(s, CH_DYN, (size_t)(p - s)) != NULL)
				lex_top(lx)->wflags |= W_DYN;
			(void)word_put(lx, s, (size_t)(p - s));
		}
		if (p < end) {
			(void)word_close(lx);
			p++;
		}
		s = p;
	}
}

/* Braces that make nothing are ordinary characters. */
static void
unmark(struct lex *lx, const struct word *w)
{
	char *p = lx->text + w->off, *end = p + w->len;

	for (; p < end; p++)
		if (*p >= CH_OPEN && *p <= CH_CLOSE)
			*p = "{,}"[*p - CH_OPEN];
}

static int
add_word(struct lex *lx, const struct word *w)
{
	if (lx->nw >= LEX_WORDS) {
		lx->x->hits |= HIT(SCRIPT_TOO_COMPLEX);
		lx->p = lx->end;
		return -1;
	}
	if (fctx_grow(lx->x, &lx->w, &lx->capw, lx->nw + 1, sizeof(*w)) == -1)
		return -1;
	lx->w[lx->nw++] = *w;
	return 0;
}

static void
close_redir(struct lex *lx, struct frame *f, struct word *w)
{
	struct redir *r;

	unmark(lx, w);
	if ((r = redir_add(lx)) == NULL)
		return;
	r->op = f->redir;
	r->fd = f->redirfd;
	r->w = *w;
	f->redir = R_NONE;
}

int
word_close(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	struct word w = {f->wstart, 0, f->wflags};

	if (!f->inword || f->kind == FR_PARAM)
		return 0;
	if ((w.flags & W_PARAMS) != 0 && lx->len == f->wstart)
		word_dyn(lx);
	w.len = (uint32_t)(lx->len - w.off);
	f->inword = 0;
	f->wflags = 0;
	if (w.len == 0 && (w.flags & (W_QUOTED | W_LOADED)) == 0)
		return 0;
	if (word_put(lx, "", 1) == -1)
		return 0;
	if (f->redir != R_NONE) {
		close_redir(lx, f, &w);
		return 1;
	}
	if ((w.flags & W_BRACE) != 0 && brace_expand(lx, &w)) {
		f->pending = 0;
		return 1;
	}
	if (add_word(lx, &w) == -1 || lex_reserved(lx))
		return 0;
	if ((w.flags & W_BRACE) != 0)
		unmark(lx, &w);
	return 1;
}

int
word_add(struct lex *lx, const char *s, size_t n, uint32_t flags)
{
	struct word w = {(uint32_t)lx->len, 0, flags};

	word_text(lx, s, n);
	w.len = (uint32_t)(lx->len - w.off);
	if (w.len > 0 && memchr(lx->text + w.off, CH_DYN, w.len) != NULL)
		w.flags |= W_DYN;
	if (word_put(lx, "", 1) == -1)
		return -1;
	return add_word(lx, &w);
}

/* ---- $'...' ---- */

static int
hexval(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static size_t
utf8(unsigned v, char out[4])
{
	if (v < 0x80) {
		out[0] = (char)v;
		return 1;
	}
	if (v < 0x800) {
		out[0] = (char)(0xc0 | v >> 6);
		out[1] = (char)(0x80 | (v & 63));
		return 2;
	}
	if (v < 0x10000) {
		out[0] = (char)(0xe0 | v >> 12);
		out[1] = (char)(0x80 | (v >> 6 & 63));
		out[2] = (char)(0x80 | (v & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | (v >> 18 & 7));
	out[1] = (char)(0x80 | (v >> 12 & 63));
	out[2] = (char)(0x80 | (v >> 6 & 63));
	out[3] = (char)(0x80 | (v & 63));
	return 4;
}

/* Digits of a base at p, at most max: how many; the value into *v. */
static size_t
digits(const char *p, const char *end, int base, size_t max, unsigned *v)
{
	size_t n;
	int d;

	*v = 0;
	for (n = 0; n < max && p + n < end; n++) {
		d = hexval(p[n]);
		if (d < 0 || d >= base)
			break;
		*v = *v * (unsigned)base + (unsigned)d;
	}
	return n;
}

size_t
ansi_escape(const char *p, const char *end, char out[4], size_t *n)
{
	static const char from[] = "abeEfnrtv", to[] = "\a\b\033\033\f\n\r\t\v";
	const char *at;
	unsigned v;
	size_t k;

	*n = 1;
	if (*p == 'x' || *p == 'u' || *p == 'U') {
		k = digits(p + 1, end, 16,
		    *p == 'x'	? 2
		    : *p == 'u' ? 4
				: 8,
		    &v);
		*n += k;
		if (k > 0 && *p != 'x')
			return utf8(v, out);
	} else if (*p >= '0' && *p <= '7') {
		k = digits(p, end, 8, *p == '0' ? 4 : 3, &v);
		*n = k;
	} else if (*p == 'c' && p + 1 < end) {
		*n = 2;
		v = (unsigned char)p[1] & 31;
		k = 1;
	} else {
		at = memchr(from, *p, sizeof(from) - 1);
		out[0] = at != NULL ? to[at - from] : *p;
		return 1;
	}
	out[0] = k > 0 ? (char)v : *p;
	return 1;
}

const char *
word_ansi(struct lex *lx, const char *p, const char *end)
{
	char out[4];
	size_t n, len;

	for (; p < end && *p != '\''; p += n) {
		n = 1;
		if (*p == '\\' && p + 1 < end) {
			len = ansi_escape(p + 1, end, out, &n);
			/* what is spelled out is none of our own bytes */
			if (out[0] > 0 && out[0] <= CH_LAST)
				out[0] = 0x7f;
			word_text(lx, out, len);
			n++;
		} else
			word_text(lx, p, 1);
	}
	return p < end ? p + 1 : NULL;
}
