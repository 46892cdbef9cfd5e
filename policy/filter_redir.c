/*
 * SPDX-License-Identifier: ISC
 *
 * Redirections of the scanner, and here-documents: their bodies are found
 * when the operator is read, so that a command knows what it reads when it
 * ends, and are passed over at the end of the line.
 */
#include <string.h>

#include "policy/filter_int.h"

#define DELIM_MAX 256
#define OPEN_MAX (1U << 20) /* bytes of a body without an end */

struct delim {
	char s[DELIM_MAX];
	size_t n;
	int quoted, tabs;
};

static int
is_meta(char c)
{
	return memchr(" \t\r\n;&|<>()", c, 11) != NULL;
}

struct redir *
redir_add(struct lex *lx)
{
	struct redir *r;

	if (lx->nr >= LEX_REDIRS) {
		lx->x->hits |= HIT(SCRIPT_TOO_COMPLEX);
		lx->p = lx->end;
		return NULL;
	}
	if (fctx_grow(lx->x, &lx->r, &lx->capr, lx->nr + 1, sizeof(*r)) == -1)
		return NULL;
	r = &lx->r[lx->nr++];
	memset(r, 0, sizeof(*r));
	return r;
}

/* The word behind <<; p moves behind it. */
static void
read_delim(struct lex *lx, struct delim *d)
{
	const char *p = lx->p;
	char q = '\0';

	while (p < lx->end && (*p == ' ' || *p == '\t'))
		p++;
	for (; p < lx->end && (q != '\0' ? *p != '\n' : !is_meta(*p)); p++) {
		if (*p == q) {
			q = '\0';
			continue;
		}
		if (q == '\0' && (*p == '\'' || *p == '"')) {
			q = *p;
			d->quoted = 1;
			continue;
		}
		if (*p == '\\' && q != '\'' && p + 1 < lx->end) {
			p++;
			d->quoted = 1;
		}
		if (d->n < DELIM_MAX)
			d->s[d->n++] = *p;
	}
	lx->p = p;
}

static int
is_delim(const struct delim *d, const char *p, const char *nl)
{
	while (d->tabs && p < nl && *p == '\t')
		p++;
	if (nl > p && nl[-1] == '\r')
		nl--;
	return (size_t)(nl - p) == d->n && memcmp(p, d->s, d->n) == 0;
}

/* The end of the line in which the operator stands. */
static void
find_line(struct lex *lx)
{
	const char *nl;

	if (lx->here_nl != NULL && lx->p <= lx->here_nl)
		return;
	nl = memchr(lx->p, '\n', (size_t)(lx->end - lx->p));
	while (nl != NULL && nl > lx->p && nl[-1] == '\\')
		nl = memchr(nl + 1, '\n', (size_t)(lx->end - nl - 1));
	lx->here_nl = nl;
	lx->here_next = nl == NULL ? NULL : nl + 1;
}

/* The body; NULL when it never ends, so that it is read as commands. */
static const char *
find_body(struct lex *lx, const struct delim *d, size_t *n)
{
	const char *p, *nl, *body;

	find_line(lx);
	if (lx->here_nl == NULL)
		return NULL;
	body = lx->here_next;
	for (p = body; p < lx->end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(lx->end - p));
		if (nl == NULL)
			nl = lx->end;
		if (lx->herebudget < (size_t)(nl - p) + 1)
			return NULL;
		lx->herebudget -= (size_t)(nl - p) + 1;
		if (is_delim(d, p, nl)) {
			lx->here_next = nl < lx->end ? nl + 1 : nl;
			*n = (size_t)(p - body);
			return body;
		}
	}
	return NULL;
}

/* A body whose word was not quoted loses its backslashes before the command
 * reads it. */
static void
unescape(struct lex *lx, struct redir *r)
{
	const char *s = r->here, *end = s + r->herelen, *p;

	r->w.off = (uint32_t)lx->len;
	while (
	    (p = memchr(s, '\\', (size_t)(end - s))) != NULL && p + 1 < end) {
		(void)word_put(lx, s, (size_t)(p - s));
		if (memchr("$`\\\n", p[1], 4) == NULL)
			(void)word_put(lx, p, 1);
		if (p[1] != '\n')
			(void)word_put(lx, p + 1, 1);
		s = p + 2;
	}
	(void)word_put(lx, s, (size_t)(end - s));
	r->w.len = (uint32_t)(lx->len - r->w.off);
	(void)word_put(lx, "", 1);
	r->op = R_STRING;
}

/* A body that the end of the script ends, as shells have it: the command gets
 * it, and it is read as commands all the same.  The first of a script only,
 * and a short one. */
static const char *
open_body(struct lex *lx, size_t *n)
{
	if (lx->here_nl == NULL || lx->openhere)
		return NULL;
	*n = (size_t)(lx->end - lx->here_next);
	if (*n > OPEN_MAX || *n > lx->x->again)
		return NULL;
	lx->x->again -= *n;
	lx->openhere = 1;
	return lx->here_next;
}

static void
here_document(struct lex *lx, int fd)
{
	struct delim d = {.n = 0};
	struct redir *r;
	const char *body;
	size_t n;

	if (lx->p < lx->end && *lx->p == '-') {
		d.tabs = 1;
		lx->p++;
	}
	read_delim(lx, &d);
	if ((body = find_body(lx, &d, &n)) == NULL &&
	    (body = open_body(lx, &n)) == NULL)
		return;
	if ((r = redir_add(lx)) == NULL)
		return;
	r->op = R_HERE;
	r->fd = fd;
	r->here = body;
	r->herelen = n;
	if (d.quoted)
		return;
	r->expand = body + n < lx->end && (memchr(body, '$', n) != NULL ||
					      memchr(body, '`', n) != NULL);
	if (memchr(body, '\\', n) != NULL)
		unescape(lx, r);
}

/* 1 when a body could be found for the << at hand; nothing moves. */
static int
may_begin(struct lex *lx)
{
	const char *p = lx->p, *nl = lx->here_nl, *next = lx->here_next;
	struct delim d = {.n = 0};
	size_t n;
	int found;

	lx->p += 2;
	read_delim(lx, &d);
	found = find_body(lx, &d, &n) != NULL;
	lx->p = p;
	lx->here_nl = nl;
	lx->here_next = next;
	return found;
}

/* Digits right before the operator are a descriptor, not a word: which, or
 * -1. */
static int
end_before(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	size_t i = f->wstart;
	int fd = -1;

	while (f->inword && i < lx->len && lx->text[i] >= '0' &&
	       lx->text[i] <= '9')
		i++;
	if (f->inword && i == lx->len && (f->wflags & W_QUOTED) == 0) {
		fd = lx->len - f->wstart == 1 ? lx->text[f->wstart] - '0' : 9;
		lx->len = f->wstart;
		f->inword = 0;
		f->wflags = 0;
	} else
		word_close(lx);
	return fd;
}

static int
take(struct lex *lx, const char *op)
{
	size_t n = strlen(op);

	if ((size_t)(lx->end - lx->p) < n || memcmp(lx->p, op, n) != 0)
		return 0;
	lx->p += n;
	return 1;
}

static void
process_subst(struct lex *lx)
{
	word_open(lx);
	(void)lex_push(lx, FR_PROC);
}

void
lex_redir(struct lex *lx)
{
	static const struct {
		const char *text;
		enum redir_op op;
	} ops[] = {{"<<<", R_STRING}, {"<>", R_RDWR}, {"<&", R_IN}, {"<", R_IN},
	    {"&>>", R_OUT}, {"&>", R_OUT}, {">>", R_OUT}, {">|", R_OUT},
	    {">&", R_OUT}, {">", R_OUT}};
	int fd = end_before(lx), out = *lx->p != '<';
	struct frame *f = lex_top(lx);
	size_t i;

	if (fd == -1)
		fd = out;
	if (take(lx, "<(") || take(lx, ">(")) {
		process_subst(lx);
		return;
	}
	if (f->arith && lx->doubtful == 0 && lx->end - lx->p >= 2 &&
	    lx->p[1] == '<')
		lx->doubtful = may_begin(lx);
	if ((!f->arith || lx->doubtful > 1) &&
	    !(lx->end - lx->p >= 3 && lx->p[2] == '<') && take(lx, "<<")) {
		here_document(lx, fd);
		return;
	}
	for (i = 0; i < nitems(ops); i++)
		if (take(lx, ops[i].text)) {
			f->redir = ops[i].op;
			f->redirfd = fd;
			return;
		}
}
