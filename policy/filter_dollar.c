/*
 * SPDX-License-Identifier: ISC
 *
 * What follows a dollar sign: variables with a literal value that the script
 * itself gave them, ${...}, substitutions.  A variable that is not known is
 * one unknown byte; $IFS separates words.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

/* ---- variables ---- */

static const struct var *
var_find(const struct fctx *x, uint64_t name)
{
	size_t i;

	for (i = 0; i < x->nvars; i++)
		if (x->vars[i].name == name)
			return &x->vars[i];
	return NULL;
}

static void
var_unset(struct fctx *x, uint64_t name)
{
	size_t i;

	for (i = 0; i < x->nvars; i++)
		if (x->vars[i].name == name)
			x->vars[i].name = 0;
}

void
var_set(struct fctx *x, uint64_t name, const char *value, size_t n)
{
	struct var *v;
	size_t i;

	var_unset(x, name);
	if (n > VALUE_MAX || memchr(value, CH_DYN, n) != NULL)
		return;
	for (i = 0; i < x->nvars; i++)
		if (x->vars[i].name == 0)
			break;
	if (i == x->nvars && i < NVARS)
		x->nvars++;
	else if (i == x->nvars)
		i = x->nextvar++ % NVARS;
	v = &x->vars[i];
	v->name = name;
	memcpy(v->value, value, n);
	v->len = n;
}

size_t
assign_len(const char *s)
{
	size_t i = 0;

	if (s[0] >= '0' && s[0] <= '9')
		return 0;
	while (name_char(s[i]))
		i++;
	if (i == 0)
		return 0;
	if (s[i] == '[' && strchr(s + i, ']') != NULL)
		i = (size_t)(strchr(s + i, ']') - s) + 1;
	if (s[i] == '+')
		i++;
	return s[i] == '=' ? i + 1 : 0;
}

void
var_assign(struct fctx *x, const char *s, const struct word *w)
{
	size_t n = assign_len(s), name;

	if (n == 0)
		return;
	for (name = 0; name_char(s[name]);)
		name++;
	if (s[name] != '=')
		var_unset(x, name_hash(s, name));
	else
		var_set(x, name_hash(s, name), s + n, w->len - n);
}

/* What a name stands for, or NULL when that is not known. */
static const char *
name_value(const struct lex *lx, const char *name, size_t n, size_t *len)
{
	const struct var *v;
	const char *s;

	if (n > 0 && name[0] >= '0' && name[0] <= '9') {
		s = params_get(lx, name, n);
		*len = s != NULL ? strlen(s) : 0;
		return s;
	}
	v = var_find(lx->x, name_hash(name, n));
	*len = v != NULL ? v->len : 0;
	return v != NULL ? v->value : NULL;
}

/* $NAME or ${NAME} */
static void
expand_name(struct lex *lx, const char *name, size_t n)
{
	size_t len;
	const char *v = name_value(lx, name, n, &len);

	if (n == 3 && memcmp(name, "IFS", 3) == 0) {
		word_expand(lx, " ", 1);
		return;
	}
	word_open(lx);
	if (v != NULL && len <= lx->x->budget) {
		lx->x->budget -= len;
		word_expand(lx, v, len);
	} else if (v == NULL && n == 4 && memcmp(name, "HOME", 4) == 0)
		(void)word_put(lx, "~", 1);
	else
		word_dyn(lx);
}

/* ---- ${...} ---- */

void
lex_within(struct lex *lx, char close, char keep)
{
	struct frame *f;
	uint32_t wstart;

	word_open(lx);
	wstart = lex_top(lx)->wstart;
	if ((f = lex_push(lx, FR_PARAM)) == NULL)
		return;
	f->close = close;
	f->keep = keep;
	f->inword = 1;
	f->wstart = wstart;
}

/* The text that stands for the variable becomes words of its own. */
static void
keep_text(struct lex *lx, const struct frame *was)
{
	struct frame *f = lex_top(lx);
	size_t n = lx->len - was->text0;
	char *copy;

	if (f->kind == FR_PARAM || f->dq || n == 0 || n > lx->x->budget)
		return;
	if ((copy = malloc(n)) == NULL) {
		lx->x->nomem = 1;
		return;
	}
	memcpy(copy, lx->text + was->text0, n);
	lx->len = was->text0;
	lx->x->budget -= n;
	word_expand(lx, copy, n);
	free(copy);
}

void
lex_param_pop(struct lex *lx)
{
	struct frame was = *lex_top(lx);

	lx->nfr--;
	frame_clear(&was); /* what brackets in it wrote is nobody's input */
	lex_top(lx)->wflags |= was.wflags;
	if (was.keep == 'k') {
		keep_text(lx, &was);
		return;
	}
	lx->len = was.text0;
	if (was.keep == 'd')
		word_dyn(lx);
	else if (was.keep == 's')
		word_expand(lx, " ", 1);
	else if (was.keep == '*')
		(void)word_put(lx, "*", 1);
}

/* What an operator makes of a variable. */
static char
operator_keeps(
    struct lex *lx, const char *op, const char *name, size_t n, int plain)
{
	size_t len;
	const char *v = name_value(lx, name, n, &len);

	if (n == 3 && memcmp(name, "IFS", 3) == 0)
		return 's';
	if (op < lx->end && *op == ':')
		op++;
	if (!plain || op == lx->end)
		return 'd';
	if (*op == '+')
		return 'k';
	if (*op != '-' && *op != '=')
		return 'd';
	if (v == NULL || len > lx->x->budget)
		return 'k';
	lx->x->budget -= len;
	word_open(lx);
	word_expand(lx, v, len);
	return 'n';
}

static const char *
skip_index(const char *p, const char *end)
{
	const char *q;
	size_t n = (size_t)(end - p);

	if (n == 0 || *p != '[')
		return p;
	q = memchr(p, ']', n < 64 ? n : 64);
	return q == NULL ? p : q + 1;
}

static void
dollar_brace(struct lex *lx)
{
	const char *p = lx->p + 2, *name, *op;
	int plain = 1;
	char keep;
	size_t n;

	if (p < lx->end && memchr(" \t\n|", *p, 4) != NULL) {
		/* ${ list; } */
		word_open(lx);
		word_dyn(lx);
		(void)word_close(lx);
		lx->p = p;
		(void)lex_push(lx, FR_BRACE);
		return;
	}
	if (p + 1 < lx->end && (*p == '!' || *p == '#') && name_char(p[1])) {
		plain = 0;
		p++;
	}
	for (name = p; p < lx->end && name_char(*p);)
		p++;
	n = (size_t)(p - name);
	if (n == 0 && plain && lx->end - p >= 2 && p[1] == '}' &&
	    (*p == '@' || *p == '*') && params_all(lx, *p == '*')) {
		lx->p = p + 2;
		return;
	}
	if (n == 0 && p < lx->end && memchr("@*#?-$!", *p, 7) != NULL) {
		plain = 0;
		p++;
	}
	op = skip_index(p, lx->end);
	plain = plain && op == p && n > 0;
	if (plain && op < lx->end && *op == '}') {
		lx->p = op + 1;
		expand_name(lx, name, n);
		return;
	}
	keep = operator_keeps(lx, op, name, n, plain);
	if (keep == 'k' || keep == 'n')
		op += op[0] == ':' ? 2 : 1;
	lex_within(lx, '}', keep);
	lx->p = op;
}

static int
param_special(char c)
{
	return memchr("\"'\\$`", c, 5) != NULL;
}

void
lex_param(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	const char *q = lx->p;
	char c = *q;

	if (c == f->close) {
		lx->p++;
		lex_param_pop(lx);
	} else if (c == '(' && f->close == ')') {
		lex_within(lx, ')', 'd');
		lx->p++;
	} else if (c == '"') {
		f->opened = (size_t)(lx->p - lx->base);
		f->dq = 1;
		lx->p++;
	} else if (c == '\'' && !(f - 1)->dq)
		lex_single(lx);
	else if (c == '\\')
		lex_backslash(lx);
	else if (c == '$')
		lex_dollar(lx);
	else if (c == '`')
		lex_tick(lx);
	else {
		do
			q++;
		while (q < lx->end && *q != f->close && *q != '(' &&
		       !param_special(*q));
		word_text(lx, lx->p, (size_t)(q - lx->p));
		lx->p = q;
	}
}

/* ---- $ ---- */

static void
dollar_paren(struct lex *lx)
{
	struct frame *f;

	word_open(lx);
	if (lex_push(lx, FR_SUBST) == NULL)
		return;
	lx->p += 2;
	if (lx->p < lx->end && *lx->p == '(') {
		lx->p++;
		if ((f = lex_push(lx, FR_PAREN)) != NULL)
			f->arith = 1;
	}
}

static void
dollar_name(struct lex *lx, const char *p)
{
	const char *name = p;

	while (p < lx->end && name_char(*p))
		p++;
	lx->p = p;
	expand_name(lx, name, (size_t)(p - name));
}

/* $'...'; when it is never closed, only the dollar sign is taken. */
static void
dollar_quote(struct lex *lx, const char *p)
{
	const char *q = p + 1;
	size_t len;

	word_open(lx);
	len = lx->len;
	if ((q = word_ansi(lx, q, lx->end)) == NULL) {
		lx->len = len;
		(void)word_put(lx, "$", 1);
		q = p;
	}
	lex_top(lx)->wflags |= W_QUOTED;
	lx->p = q;
}

void
lex_dollar(struct lex *lx)
{
	const char *p = lx->p + 1;
	unsigned char c = '\0';
	int dq = lex_top(lx)->dq != 0;

	if (p < lx->end)
		c = (unsigned char)*p;
	if (c == '(')
		dollar_paren(lx);
	else if (c == '{')
		dollar_brace(lx);
	else if (c == '[') {
		lex_within(lx, ']', 'd');
		lx->p += 2;
	} else if (c == '\'' && !dq)
		dollar_quote(lx, p);
	else if (c == '"' && !dq)
		lx->p = p;
	else if (name_char(c) && !(c >= '0' && c <= '9'))
		dollar_name(lx, p);
	else if (c >= '0' && c <= '9') {
		lx->p += 2;
		expand_name(lx, p, 1);
	} else if (c == '@' || c == '*') {
		if (!params_all(lx, c == '*')) {
			word_open(lx);
			lex_top(lx)->wflags |= W_PARAMS;
		}
		lx->p += 2;
	} else if (c != '\0' && strchr("#?-$!", c) != NULL) {
		word_open(lx);
		word_dyn(lx);
		lx->p += 2;
	} else {
		word_open(lx);
		(void)word_put(lx, "$", 1);
		lx->p++;
	}
}
