/*
 * SPDX-License-Identifier: ISC
 *
 * Code for other interpreters, which nobody here can read: it is cut into
 * words at blanks, quotes, commas and brackets, and what stands behind the
 * name of a program up to the end of the statement is held against the rules
 * of the floor for that program, as if it were a command.  One pass.
 */
#include <string.h>

#include "policy/filter_int.h"

#define MAX_WORDS (1U << 18) /* of one command; no system runs more */

enum { ORDINARY, GAP, END, REDIRECT };
static const unsigned char kinds[256] = {
    [0] = GAP,
    ['\t'] = GAP,
    [' '] = GAP,
    ['"'] = GAP,
    ['\''] = GAP,
    ['`'] = GAP,
    [','] = GAP,
    ['('] = GAP,
    ['['] = GAP,
    ['\\'] = GAP,
    ['<'] = GAP,
    ['\n'] = END,
    ['\r'] = END,
    [';'] = END,
    ['|'] = END,
    ['&'] = END,
    [')'] = END,
    [']'] = END,
    ['>'] = REDIRECT,
};

/* What was collected is one command, or none when its program is unknown. */
static void
end_command(struct fctx *x, const struct prog *p)
{
	struct lex *lx = &x->flat;
	struct cmd c = {.x = x, .lx = lx, .fr = lx->fr, .n = lx->nw};
	uint64_t todo = p != NULL ? p->rules & x->f->floor & ~x->hits : 0;
	int i;

	for (; todo != 0; todo &= todo - 1) {
		i = __builtin_ctzll(todo);
		if (rule_rows[i].match(&c))
			x->hits |= 1ULL << i;
	}
	lx->nw = lx->len = 0;
}

static int
writes(const char *s)
{
	if (strstr(s, "O_WRONLY") != NULL || strstr(s, "O_RDWR") != NULL)
		return 1;
	return strlen(s) <= 4 && s[strspn(s, "rbtwax+")] == '\0' &&
	       strpbrk(s, "wax+") != NULL;
}

/* open("/dev/sda", "wb") */
static void
end_open(struct fctx *x)
{
	const struct lex *lx = &x->flat;
	struct cmd c = {.x = x, .lx = &x->flat, .n = lx->nw};
	size_t i;

	for (i = 2; i < c.n && i < 5; i++)
		if (writes(cmd_s(&c, i)))
			x->hits |=
			    rules_write(x, cmd_s(&c, 1)) & HIT(REDIRECT_DEVICE);
}

static int
is_open(const char *s)
{
	const char *dot = strrchr(s, '.');

	return strncmp(dot != NULL ? dot + 1 : s, "open", 4) == 0;
}

struct flat {
	const struct prog *prog; /* of the command being collected */
	int open;		 /* it is a call that opens a file */
	int redirect;		 /* the next word is written to */
};

static void
end_statement(struct fctx *x, struct flat *fl)
{
	if (fl->open)
		end_open(x);
	end_command(x, fl->prog);
	memset(fl, 0, sizeof(*fl));
}

static void
one_word(struct fctx *x, struct flat *fl, const char *s, size_t n)
{
	struct lex *lx = &x->flat;
	struct cmd c = {.x = x, .lx = lx};
	const struct prog *p;
	char buf[64];
	size_t at = lx->nw;

	if (at == MAX_WORDS)
		end_statement(x, fl);
	if (word_add(lx, s, n, W_QUOTED) == -1)
		return;
	at = lx->nw - 1;
	if (fl->redirect)
		x->hits |= rules_write(x, cmd_s(&c, at)) & x->f->floor;
	fl->redirect = 0;
	p = prog_find(&x->f->progs, cmd_name(cmd_s(&c, at), buf, sizeof(buf)));
	if (p != NULL && (p->rules & x->f->floor) != 0) {
		/* a new command; the word is its first */
		lx->nw = at;
		end_statement(x, fl);
		(void)word_add(lx, s, n, W_QUOTED);
		fl->prog = p;
	} else if (fl->prog == NULL && is_open(cmd_s(&c, at))) {
		lx->nw = at;
		end_statement(x, fl);
		(void)word_add(lx, s, n, W_QUOTED);
		fl->open = 1;
	} else if (fl->prog == NULL && !fl->open)
		lx->nw = lx->len = 0;
}

/* NAME(){ NAME | NAME: p is at the parenthesis. */
static int
is_bomb(const char *s, const char *p, const char *end)
{
	const char *name = p, *q = p + 1;
	size_t n;
	int i;

	while (name > s && p - name < 32 &&
	       (name_char(name[-1]) || name[-1] == ':'))
		name--;
	n = (size_t)(p - name);
	if (n == 0 || q == end || *q++ != ')')
		return 0;
	for (i = 0; i < 3; i++) {
		while (q < end && q - p < 128 && (*q == ' ' || *q == '\n'))
			q++;
		if (i > 0) {
			if ((size_t)(end - q) < n || memcmp(q, name, n) != 0)
				return 0;
			q += n;
		}
		while (q < end && q - p < 128 && *q == ' ')
			q++;
		if (i < 2 && (q == end || *q++ != "{|"[i]))
			return 0;
	}
	return 1;
}

void
flat_scan(struct fctx *x, const char *s, size_t n)
{
	const char *p = s, *end = s + n, *word;
	struct flat fl = {0};

	if (x->flat.nfr == 0 && lex_init(&x->flat, x) == -1)
		return;
	for (; p < end && !x->nomem; p++) {
		word = p;
		while (p < end && kinds[(unsigned char)*p] == ORDINARY)
			p++;
		if (p > word)
			one_word(x, &fl, word, (size_t)(p - word));
		if (p == end)
			break;
		if (kinds[(unsigned char)*p] == END && (p == s || p[-1] != '>'))
			end_statement(x, &fl);
		else if (*p == '>')
			fl.redirect = 1;
		else if (*p == '(' && is_bomb(s, p, end))
			x->hits |= HIT(FORK_BOMB);
	}
	end_statement(x, &fl);
}
