/*
 * SPDX-License-Identifier: ISC
 *
 * The scanner: a script becomes simple commands as a POSIX shell reads it,
 * with what bash and dash add, and where they differ in the way that hides
 * less.  One pass, an explicit stack of open brackets, no recursion; it runs
 * nothing and judges nothing: each command goes to filter_cmd.c as it ends.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

#define OUT 1 /* not an ordinary byte outside of quotes */
#define DQ 2  /* inside of "..." */
static const unsigned char special[256] = {
    [0 ... 8] = OUT | DQ,
    ['\t'] = OUT,
    ['\n'] = OUT,
    ['\r'] = OUT,
    [' '] = OUT,
    ['"'] = OUT | DQ,
    ['#'] = OUT,
    ['$'] = OUT | DQ,
    ['&'] = OUT,
    ['\''] = OUT,
    ['('] = OUT,
    [')'] = OUT,
    [','] = OUT,
    [';'] = OUT,
    ['<'] = OUT,
    ['>'] = OUT,
    ['['] = OUT,
    ['\\'] = OUT | DQ,
    ['`'] = OUT | DQ,
    ['{'] = OUT,
    ['|'] = OUT,
    ['}'] = OUT,
    /* leading bytes of invisible characters */
    [0xe1] = OUT | DQ,
    [0xe2] = OUT | DQ,
    [0xe3] = OUT | DQ,
    [0xef] = OUT | DQ,
    [0xf3] = OUT | DQ,
};

/* ---- brackets ---- */

static const char *
skip_blank(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	return p;
}

/* NAME () */
static int
is_function(struct lex *lx, const char *after)
{
	struct frame *f = lex_top(lx);
	size_t n = lx->nw - f->word0;
	const struct word *w;

	if (after == lx->end || *after != ')' || lx->nr != f->redir0)
		return 0;
	if (n == 0)
		return f->pending != 0;
	w = &lx->w[lx->nw - 1];
	if (n != 1 || w->len == 0 || lx->text[w->off + w->len - 1] == '=')
		return 0;
	f->pending = name_hash(lx->text + w->off, w->len);
	lex_drop_words(lx);
	return 1;
}

/* The word is the beginning of !(...) and the like. */
static int
is_extglob(const struct lex *lx, const struct frame *f)
{
	size_t n = lx->len - f->wstart;

	if (!f->inword || n == 0 ||
	    memchr("?*+@!", lx->text[lx->len - 1], 5) == NULL)
		return 0;
	return n > 1 || lx->text[lx->len - 1] != '!' || lx->nw > f->word0;
}

static void
paren_open(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	const char *after = skip_blank(lx->p + 1, lx->end);
	char arith;

	if (f->cstate == CASE_PATTERN && !f->inword) {
		lx->p++;
		return;
	}
	if (is_extglob(lx, f)) {
		lx->len--;
		lex_within(lx, ')', '*');
		lx->p++;
		return;
	}
	word_close(lx);
	if (is_function(lx, after)) {
		lx->p = after + 1;
		return;
	}
	arith = lex_top(lx)->arith && lex_top(lx)->kind == FR_PAREN;
	if ((f = lex_push(lx, FR_PAREN)) == NULL)
		return;
	f->arith = arith;
	lx->p++;
	if (lx->p < lx->end && *lx->p == '(')
		f->arith = 1;
}

/* Close the innermost frame; its last word may itself be a bracket. */
static enum frame_kind
close_frame(struct lex *lx)
{
	enum frame_kind kind;

	(void)word_close(lx);
	kind = lex_top(lx)->kind;
	if (lx->nfr > 1)
		lex_pop(lx);
	return kind;
}

static void
paren_close(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	enum frame_kind kind;

	lx->p++;
	if (f->cstate == CASE_PATTERN) {
		word_close(lx);
		lex_top(lx)->cstate = CASE_NONE;
		lex_drop_words(lx);
		return;
	}
	if (lx->parens == 0) {
		lex_end(lx, SEP_END);
		return;
	}
	do
		kind = close_frame(lx);
	while (kind != FR_PAREN && kind != FR_SUBST && kind != FR_PROC &&
	       lx->nfr > 1);
}

void
lex_tick(struct lex *lx)
{
	enum frame_kind kind;

	lx->p++;
	if (lx->ticks == 0) {
		word_open(lx);
		(void)lex_push(lx, FR_TICK);
		return;
	}
	do
		kind = close_frame(lx);
	while (kind != FR_TICK && lx->nfr > 1);
}

/* ---- quotes ---- */

void
lex_single(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	const char *q = NULL;

	if (lx->p + 1 < lx->end)
		q = memchr(lx->p + 1, '\'', (size_t)(lx->end - lx->p - 1));
	word_open(lx);
	if (q == NULL) {
		/* never closed: it hides nothing */
		lx->p++;
		return;
	}
	word_text(lx, lx->p + 1, (size_t)(q - lx->p - 1));
	f->wflags |= W_QUOTED;
	lx->p = q + 1;
}

void
lex_backslash(struct lex *lx)
{
	const char *p = lx->p + 1;

	if (p == lx->end) {
		lx->p = p;
		return;
	}
	if (*p == '\r' && p + 1 < lx->end && p[1] == '\n')
		p++;
	lx->p = p + 1;
	if (*p == '\n')
		return;
	if (*p == '`' && lx->ticks > 0) {
		/* a substitution within a substitution */
		lex_end(lx, SEP_END);
		return;
	}
	word_open(lx);
	lex_top(lx)->wflags |= W_QUOTED;
	word_text(lx, p, 1);
}

/* A byte that is none of the shell's: of a character that cannot be seen, or
 * one of those that we use ourselves. */
static void
odd(struct lex *lx)
{
	size_t n = invisible(lx->p, lx->end);

	if (n > 0)
		lx->p += n;
	else if (*lx->p == CH_DYN && lx->nested) {
		word_open(lx);
		word_dyn(lx);
		lx->p++;
	} else {
		word_open(lx);
		word_text(lx, lx->p, 1);
		lx->p++;
	}
}

static void
inside_double(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	const char *q = lx->p;

	while (q < lx->end && (special[(unsigned char)*q] & DQ) == 0)
		q++;
	if (q > lx->p) {
		/* the text of a here-document is nobody's word */
		if (!lx->heredoc || lx->nfr > 1)
			(void)word_put(lx, lx->p, (size_t)(q - lx->p));
		lx->p = q;
		return;
	}
	switch (*q) {
	case '"':
		if (!lx->heredoc || lx->nfr > 1)
			f->dq = 0;
		lx->p++;
		break;
	case '$':
		lex_dollar(lx);
		break;
	case '`':
		lex_tick(lx);
		break;
	case '\\':
		if (q + 1 < lx->end && strchr("$`\"\\\n\r", q[1]) != NULL &&
		    q[1] != '\0')
			lex_backslash(lx);
		else {
			word_text(lx, q, 1);
			lx->p++;
		}
		break;
	default:
		odd(lx);
	}
}

/* ---- one step ---- */

static void
newline(struct lex *lx)
{
	lex_end(lx, SEP_END);
	if (lx->p == lx->here_nl) {
		lx->p = lx->here_next;
		lx->here_nl = NULL;
	} else
		lx->p++;
}

static void
comment(struct lex *lx)
{
	const char *p = lx->p;

	for (; p < lx->end && *p != '\n'; p++)
		if (*p == '`' && lx->ticks > 0)
			break;
	lx->p = p;
}

static int
next_is(const struct lex *lx, char c)
{
	return lx->p + 1 < lx->end && lx->p[1] == c;
}

static void
semicolon(struct lex *lx)
{
	struct frame *f;

	lex_end(lx, SEP_END);
	f = lex_top(lx);
	if ((next_is(lx, ';') || next_is(lx, '&')) && f->cases > 0)
		f->cstate = CASE_PATTERN;
	lx->p++;
	while (lx->p < lx->end && (*lx->p == ';' || *lx->p == '&'))
		lx->p++;
}

static void
operator(struct lex *lx)
{
	char c = *lx->p;

	if (c == ';')
		semicolon(lx);
	else if (c == '|' && lex_top(lx)->cstate == CASE_PATTERN)
		lx->p++;
	else if (c == '&' && next_is(lx, '>'))
		lex_redir(lx);
	else if (next_is(lx, c)) {
		lex_end(lx, SEP_END);
		lx->p += 2;
	} else if (c == '|') {
		lex_end(lx, SEP_PIPE);
		lx->p += 1 + next_is(lx, '&');
	} else {
		lex_end(lx, SEP_AMP);
		lx->p++;
	}
}

/* a[1<<2]=x: what is in the brackets is arithmetic. */
static int
subscript(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	const char *p = lx->p, *end = lx->end;
	size_t i;

	for (i = f->wstart; i < lx->len; i++)
		if (!name_char(lx->text[i]))
			return 0;
	if (end - p > 256)
		end = p + 256;
	while (p < end && memchr("]$`'\"\\\n;", *p, 8) == NULL)
		p++;
	if (p + 1 >= end || *p != ']' || (p[1] != '=' && p[1] != '+'))
		return 0;
	(void)word_put(lx, lx->p, (size_t)(p + 1 - lx->p));
	lx->p = p + 1;
	return 1;
}

/* An ordinary character that is special in some places. */
static void
maybe(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	char c = *lx->p;

	if (c == '{' && !f->inword && f->pending != 0) {
		(void)lex_push(lx, FR_BRACE);
		lx->p++;
		return;
	}
	if (c == '[' && f->inword && subscript(lx))
		return;
	word_open(lx);
	f = lex_top(lx);
	if (c == '{') {
		f->wflags |= W_BRACE;
		c = CH_OPEN;
	} else if (c == ',' && (f->wflags & W_BRACE) != 0)
		c = CH_COMMA;
	else if (c == '}' && (f->wflags & W_BRACE) != 0)
		c = CH_CLOSE;
	(void)word_put(lx, &c, 1);
	lx->p++;
}

static void
plain_step(struct lex *lx)
{
	const char *q = lx->p;

	while (q < lx->end && (special[(unsigned char)*q] & OUT) == 0)
		q++;
	word_open(lx);
	(void)word_put(lx, lx->p, (size_t)(q - lx->p));
	lx->p = q;
}

static void
special_step(struct lex *lx)
{
	struct frame *f = lex_top(lx);

	switch (*lx->p) {
	case ' ':
	case '\t':
		word_close(lx);
		lx->p++;
		break;
	case '\n':
		newline(lx);
		break;
	case '\r':
		/* of a line that ends in CR LF */
		if (next_is(lx, '\n'))
			lx->p++;
		else
			maybe(lx);
		break;
	case '\\':
		lex_backslash(lx);
		break;
	case '\'':
		lex_single(lx);
		break;
	case '"':
		word_open(lx);
		f->wflags |= W_QUOTED;
		f->opened = (size_t)(lx->p - lx->base);
		f->dq = 1;
		lx->p++;
		break;
	case '$':
		lex_dollar(lx);
		break;
	case '`':
		lex_tick(lx);
		break;
	case '#':
		if (f->inword)
			maybe(lx);
		else
			comment(lx);
		break;
	case ';':
	case '&':
	case '|':
		operator(lx);
		break;
	case '<':
	case '>':
		lex_redir(lx);
		break;
	case '(':
		paren_open(lx);
		break;
	case ')':
		paren_close(lx);
		break;
	case '{':
	case '}':
	case ',':
	case '[':
		maybe(lx);
		break;
	default:
		odd(lx);
	}
}

static void
lex_step(struct lex *lx)
{
	const struct frame *f = lex_top(lx);

	if (f->dq)
		inside_double(lx);
	else if (f->kind == FR_PARAM)
		lex_param(lx);
	else if ((special[(unsigned char)*lx->p] & OUT) == 0)
		plain_step(lx);
	else
		special_step(lx);
}

/* ---- a whole script ---- */

/* Something was opened and never closed: a shell would refuse the rest, but
 * shells differ in what opens, so it is read once more as if nothing had. */
static int
reread(struct lex *lx)
{
	size_t i = lx->heredoc ? 1 : 0;
	struct frame *f;

	while (i < lx->nfr && !lx->fr[i].dq && lx->fr[i].kind != FR_PARAM)
		i++;
	if (i >= lx->nfr || lx->retries == 3)
		return 0;
	lx->retries++;
	lx->p = lx->base + lx->fr[i].opened + 1;
	while (lx->nfr > i + 1)
		lex_drop(lx);
	f = lex_top(lx);
	if (f->kind == FR_PARAM) {
		lex_drop(lx);
		f = lex_top(lx);
	}
	f->dq = (char)(lx->heredoc && lx->nfr == 1);
	f->inword = 0;
	f->wflags = 0;
	lx->len = f->wstart;
	return 1;
}

static void
finish(struct lex *lx)
{
	while (lx->nfr > 1)
		(void)close_frame(lx);
	if (lx->heredoc)
		lex_top(lx)->inword = 0;
	else
		lex_end(lx, SEP_END);
}

/* To the end, or until a command left jobs on the next level: 1. */
static int
read_script(struct lex *lx)
{
	const struct fctx *x = lx->x;
	const struct level *next = &x->lv[x->depth + 1];

	do {
		while (lx->p < lx->end) {
			lex_step(lx);
			if (x->nomem)
				return 0;
			if (x->depth + 1 < FILTER_LEVELS && next->njobs > 0)
				return 1;
		}
	} while (reread(lx));
	finish(lx);
	return x->depth + 1 < FILTER_LEVELS && next->njobs > 0;
}

int
lex_run(struct lex *lx)
{
	struct fctx *x = lx->x;

	if (read_script(lx))
		return 1;
	/* scripts within scripts must not double the work again and again */
	if (lx->doubtful != 1 || x->again < lx->job.len || x->nomem)
		return 0;
	x->again -= lx->job.len;
	lex_start(lx, &lx->job);
	lx->doubtful = 2;
	return read_script(lx);
}
