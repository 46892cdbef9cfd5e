/*
 * SPDX-License-Identifier: ISC
 *
 * The scanner's memory: open brackets as an explicit stack, the command that
 * is being read in each, how commands and pipelines end, and the words that
 * the shell reserves.  It judges nothing: each command goes to filter_cmd.c
 * as it ends.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

int
lex_init(struct lex *lx, struct fctx *x)
{
	memset(lx, 0, sizeof(*lx));
	lx->x = x;
	if (fctx_grow(x, &lx->fr, &lx->capfr, 4, sizeof(*lx->fr)) == -1)
		return -1;
	memset(lx->fr, 0, sizeof(*lx->fr));
	lx->nfr = 1;
	return 0;
}

void
frame_clear(struct frame *f)
{
	/* what it reads is another frame's */
	lit_clear(&f->pipe);
	lit_clear(&f->out);
	lit_clear(&f->proc);
	lit_clear(&f->whole);
}

void
lex_free(struct lex *lx)
{
	while (lx->nfr > 0)
		frame_clear(&lx->fr[--lx->nfr]);
	params_unref(lx->params);
	free(lx->fr);
	free(lx->w);
	free(lx->r);
	free(lx->text);
}

void
lex_start(struct lex *lx, const struct job *j)
{
	while (lx->nfr > 0)
		frame_clear(&lx->fr[--lx->nfr]);
	memset(lx->fr, 0, sizeof(*lx->fr));
	lx->nfr = 1;
	lx->fr[0].in = j->in;
	lx->job = *j;
	params_unref(lx->params);
	lx->params = params_ref(j->params);
	lx->doubtful = 0;
	lx->base = lx->p = j->p;
	lx->end = j->p + j->len;
	lx->nested = j->nested;
	lx->heredoc = j->heredoc;
	lx->fr[0].dq = (char)j->heredoc;
	lx->herebudget = 4 * j->len + 4096;
	lx->retries = lx->parens = lx->ticks = lx->openhere = 0;
	lx->here_nl = lx->here_next = NULL;
	lx->nw = lx->nr = lx->len = 0;
}

/* ---- frames ---- */

static struct lit
frame_input(const struct frame *f)
{
	struct lit in = f->piped ? f->pipe : f->in;

	in.own = NULL;
	return in;
}

struct frame *
lex_push(struct lex *lx, enum frame_kind kind)
{
	struct frame *up, *f;

	if (lx->nfr == LEX_FRAMES) {
		lx->x->hits |= HIT(SCRIPT_TOO_COMPLEX);
		lx->p = lx->end;
		return NULL;
	}
	if (fctx_grow(
		lx->x, &lx->fr, &lx->capfr, lx->nfr + 1, sizeof(*lx->fr)) == -1)
		return NULL;
	f = &lx->fr[lx->nfr++];
	up = f - 1;
	memset(f, 0, sizeof(*f));
	f->kind = kind;
	f->word0 = (uint32_t)lx->nw;
	f->redir0 = (uint32_t)lx->nr;
	f->text0 = f->wstart = (uint32_t)lx->len;
	f->opened = (size_t)(lx->p - lx->base);
	f->func = up->func;
	f->at_root = up->at_root;
	f->in = frame_input(up);
	f->in_dl = f->piped_dl = up->piped_dl;
	if (kind == FR_PAREN || kind == FR_BRACE) {
		f->body = up->pending != 0;
		if (f->body)
			f->func = up->pending;
		up->pending = 0;
	}
	lx->parens += kind == FR_PAREN || kind == FR_SUBST || kind == FR_PROC;
	lx->ticks += kind == FR_TICK;
	return f;
}

/* Forget the innermost frame with all that was read in it. */
static void
frame_drop(struct lex *lx, struct frame *was)
{
	struct frame *f = lex_top(lx);

	lx->parens -=
	    f->kind == FR_PAREN || f->kind == FR_SUBST || f->kind == FR_PROC;
	lx->ticks -= f->kind == FR_TICK;
	lx->nw = f->word0;
	lx->nr = f->redir0;
	lx->len = f->text0;
	*was = *f;
	lx->nfr--;
}

/* What ( ) and { } wrote and did is what the command around them did. */
static void
pop_group(struct lex *lx, struct frame *was)
{
	struct frame *f = lex_top(lx);

	f->compound = 1;
	f->stage_dl |= was->loaded;
	f->loaded |= was->loaded;
	if (!was->body)
		f->background += was->background;
	if (!was->body && was->kind == FR_BRACE)
		f->at_root = was->at_root;
	lit_clear(&f->whole);
	f->whole = was->out;
	memset(&was->out, 0, sizeof(was->out));
}

/* The output of $( ) takes its place in the word, when it is known. */
static void
pop_subst(struct lex *lx, struct frame *was)
{
	struct frame *f = lex_top(lx);
	const struct lit *o = &was->out;
	size_t n = o->len;

	word_open(lx);
	if (was->loaded)
		f->wflags |= W_LOADED;
	while (n > 0 && o->p[n - 1] == '\n')
		n--;
	if (o->kind == LIT_TEXT && n <= SUBST_MAX && n <= lx->x->budget) {
		lx->x->budget -= n;
		word_expand(lx, o->p, n);
	} else
		word_dyn(lx);
}

static void
pop_proc(struct lex *lx, struct frame *was)
{
	struct frame *f = lex_top(lx);

	word_open(lx);
	f->wflags |= W_PROC | (was->loaded ? W_LOADED : 0);
	word_dyn(lx);
	lit_clear(&f->proc);
	f->proc = was->out;
	memset(&was->out, 0, sizeof(was->out));
}

void
lex_pop(struct lex *lx)
{
	struct frame was;

	if (lex_top(lx)->kind == FR_PARAM) {
		lex_param_pop(lx);
		return;
	}
	lex_end(lx, SEP_END);
	frame_drop(lx, &was);
	if (was.kind == FR_SUBST || was.kind == FR_TICK)
		pop_subst(lx, &was);
	else if (was.kind == FR_PROC)
		pop_proc(lx, &was);
	else
		pop_group(lx, &was);
	frame_clear(&was);
}

void
lex_drop(struct lex *lx)
{
	struct frame was;

	frame_drop(lx, &was);
	frame_clear(&was);
}

/* ---- the end of a command ---- */

/* A pipeline has ended. */
static void
end_pipeline(struct lex *lx, struct frame *f, enum sep sep, struct lit *out)
{
	if (f->func != 0 && f->piped && f->selfcalls + (sep == SEP_AMP) >= 2 &&
	    f->selfcalls > 0)
		lx->x->hits |= HIT(FORK_BOMB);
	if (sep == SEP_AMP)
		f->background++;
	if (f->func != 0 && f->background >= 2)
		lx->x->hits |= HIT(FORK_BACKGROUND);
	lit_clear(&f->out);
	if (f->ncmds++ == 0)
		f->out = *out;
	else
		lit_clear(out);
	memset(out, 0, sizeof(*out));
	lit_clear(&f->pipe);
	f->piped = 0;
	f->piped_dl = f->in_dl;
	f->selfcalls = 0;
}

static void
end_stage(struct frame *f, struct lit *out)
{
	lit_clear(&f->pipe);
	f->pipe = *out;
	memset(out, 0, sizeof(*out));
	f->piped = 1;
	f->piped_dl |= f->stage_dl;
}

void
lex_end(struct lex *lx, enum sep sep)
{
	struct frame *f = lex_top(lx);
	struct cmd c = {.x = lx->x, .lx = lx, .sep = sep};

	if (f->kind == FR_PARAM)
		return;
	word_close(lx);
	f = lex_top(lx);
	f->redir = R_NONE;
	c.fr = f;
	c.first = f->word0;
	c.n = lx->nw - f->word0;
	c.redir = f->redir0;
	c.nredir = lx->nr - f->redir0;
	c.in = frame_input(f);
	c.out = f->whole;
	memset(&f->whole, 0, sizeof(f->whole));
	if (c.n > 0 || c.nredir > 0)
		cmd_check(&c);
	if (sep == SEP_PIPE)
		end_stage(f, &c.out);
	else if (c.n > 0 || c.nredir > 0 || f->compound)
		end_pipeline(lx, f, sep, &c.out);
	lit_clear(&c.out);
	lit_clear(&f->proc);
	f->compound = f->stage_dl = 0;
	lx->nw = f->word0;
	lx->nr = f->redir0;
	lx->len = f->wstart = f->text0;
}

/* ---- reserved words ---- */

void
lex_drop_words(struct lex *lx)
{
	struct frame *f = lex_top(lx);

	lx->nw = f->word0;
	/* targets of redirections stand among the words */
	if (lx->nr == f->redir0)
		lx->len = f->text0;
}

static inline int
is_word(const struct lex *lx, const struct word *w, const char *s)
{
	return lx->text[w->off] == *s && w->len == strlen(s) &&
	       memcmp(lx->text + w->off, s, w->len) == 0;
}

static int
in_case(struct lex *lx, struct frame *f, const struct word *w)
{
	if (f->cstate == CASE_WORD) {
		if (!is_word(lx, w, "in"))
			return 0;
		f->cstate = CASE_PATTERN;
	} else if (is_word(lx, w, "esac")) {
		f->cstate = CASE_NONE;
		f->cases--;
	}
	lex_drop_words(lx);
	return 1;
}

static int
is_prefix(const struct lex *lx, const struct word *w)
{
	static const char *const words[] = {"if", "then", "elif", "else",
	    "while", "until", "do", "!", "time", "coproc", "fi", "done"};
	size_t i;

	for (i = 0; i < nitems(words); i++)
		if (is_word(lx, w, words[i]))
			return 1;
	return 0;
}

/* The first word of a command, unquoted.  1 when it was a reserved one and
 * is gone. */
static int
first_word(struct lex *lx, struct frame *f, const struct word *w)
{
	static const char open[] = {CH_OPEN, '\0'};

	if (is_word(lx, w, open)) {
		lex_drop_words(lx);
		(void)lex_push(lx, FR_BRACE);
	} else if (is_word(lx, w, "}")) {
		lex_drop_words(lx);
		if (f->kind == FR_BRACE)
			lex_pop(lx);
	} else if (is_word(lx, w, "case")) {
		f->cstate = CASE_WORD;
		if (f->cases < 255)
			f->cases++;
		return 0;
	} else if (is_word(lx, w, "esac") && f->cases > 0) {
		f->cases--;
		lex_drop_words(lx);
	} else if (is_word(lx, w, "function")) {
		f->naming = 1;
		lex_drop_words(lx);
	} else if (is_prefix(lx, w))
		lex_drop_words(lx);
	else
		return 0;
	return 1;
}

int
lex_reserved(struct lex *lx)
{
	struct frame *f = lex_top(lx);
	const struct word *w = &lx->w[lx->nw - 1];

	if (f->naming) {
		f->naming = 0;
		f->pending = name_hash(lx->text + w->off, w->len);
		lex_drop_words(lx);
		return 1;
	}
	if (f->cstate != CASE_NONE && in_case(lx, f, w))
		return 1;
	if ((w->flags & (W_QUOTED | W_DYN)) == 0 && lx->nw == f->word0 + 1 &&
	    w->len <= 8 && first_word(lx, f, w))
		return 1;
	f->pending = 0;
	return 0;
}
