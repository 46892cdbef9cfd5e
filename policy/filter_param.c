/*
 * SPDX-License-Identifier: ISC
 *
 * Positional parameters that are known: the words behind the script of a
 * shell, and those of set.  What a script was given from elsewhere, and the
 * parameters of functions, stay unknown; the commands of a loop are read once,
 * with the parameters of its first turn.
 */
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/filter_int.h"

/* Words of one shell, $0 first, which may be NULL; shared by all that it
 * runs, never changed. */
struct params {
	unsigned refs;
	size_t n;
	const char *w[];
};

struct params *
params_ref(struct params *p)
{
	if (p != NULL)
		p->refs++;
	return p;
}

void
params_unref(struct params *p)
{
	if (p != NULL && --p->refs == 0)
		free(p);
}

/* zero: $0, or NULL; words: the others. */
static struct params *
params_make(
    struct fctx *x, const char *zero, const char *const *words, size_t n)
{
	size_t i, len, need = zero != NULL ? strlen(zero) + 1 : 0;
	struct params *p;
	char *text;

	for (i = 0; i < n; i++)
		need += strlen(words[i]) + 1;
	/* more is not known any more */
	if (n >= LEX_WORDS || need + n > x->budget)
		return NULL;
	x->budget -= need + n;
	p = malloc(sizeof(*p) + (n + 1) * sizeof(p->w[0]) + need);
	if (p == NULL) {
		x->nomem = 1;
		return NULL;
	}
	p->refs = 1;
	p->n = n + 1;
	text = (char *)&p->w[n + 1];
	for (i = 0; i <= n; i++) {
		const char *s = i == 0 ? zero : words[i - 1];

		p->w[i] = NULL;
		if (s == NULL)
			continue;
		len = strlen(s) + 1;
		p->w[i] = memcpy(text, s, len);
		text += len;
	}
	return p;
}

/* Words from to the last of a command. */
static struct params *
params_words(struct cmd *c, const char *zero, size_t from)
{
	size_t i, n = from < c->n ? c->n - from : 0;
	struct params *p;
	const char **words = reallocarray(NULL, n + 1, sizeof(*words));

	if (words == NULL) {
		c->x->nomem = 1;
		return NULL;
	}
	for (i = 0; i < n; i++)
		words[i] = cmd_s(c, from + i);
	p = params_make(c->x, zero, words, n);
	free(words);
	return p;
}

struct params *
params_new(struct cmd *c, size_t zero, size_t from)
{
	return params_words(c, zero < c->n ? cmd_s(c, zero) : NULL, from);
}

/* ---- what they stand for ---- */

/* Those of the shell at hand; of a function they are not known. */
static const struct params *
known(const struct lex *lx)
{
	return lx->fr[lx->nfr - 1].func == 0 ? lx->params : NULL;
}

const char *
params_get(const struct lex *lx, const char *name, size_t n)
{
	const struct params *p = known(lx);
	uint64_t i;

	if (p == NULL || uint_parse(name, n, LEX_WORDS, &i) == -1 || i >= p->n)
		return NULL;
	return p->w[i];
}

int
params_all(struct lex *lx, int star)
{
	const struct params *p = known(lx);
	struct frame *f;
	size_t i, n;

	if (p == NULL || p->n < 2)
		return 0;
	for (i = 1; i < p->n && !lx->x->nomem; i++) {
		n = strlen(p->w[i]);
		/* empty ones take their time too */
		if (n >= lx->x->budget) {
			word_open(lx);
			word_dyn(lx);
			break;
		}
		lx->x->budget -= n + 1;
		f = lex_top(lx);
		if (i > 1 && (f->kind == FR_PARAM || (star && f->dq)))
			(void)word_put(lx, " ", 1);
		else if (i > 1)
			(void)word_close(lx);
		word_open(lx);
		/* a word of its own, also when it is empty */
		if (lex_top(lx)->dq)
			lex_top(lx)->wflags |= W_QUOTED;
		word_expand(lx, p->w[i], n);
	}
	return 1;
}

void
params_each(struct cmd *c, int (*fn)(struct cmd *, const char *))
{
	const struct params *p = known(c->lx);
	size_t i;

	for (i = 1; p != NULL && i < p->n; i++) {
		size_t n = strlen(p->w[i]);

		if (n >= c->x->budget)
			return;
		c->x->budget -= n + 1;
		if (fn(c, p->w[i]))
			return;
	}
}

/* ---- set and shift ---- */

/* Of this shell, and of those whose eval this is. */
static void
params_replace(struct fctx *x, struct params *p)
{
	size_t d = x->depth;
	struct lex *lx;

	for (;; d--) {
		lx = &x->lv[d].lex;
		params_unref(lx->params);
		lx->params = params_ref(p);
		if (!lx->job.inner || d == 0)
			break;
	}
	params_unref(p);
}

/* The first operand of set; *given: there is a list, if an empty one. */
static size_t
set_operands(const struct cmd *c, int *given)
{
	const char *s;
	size_t i;

	for (i = 1; i < c->n; i++) {
		s = cmd_s(c, i);
		if (strcmp(s, "--") == 0 || strcmp(s, "-") == 0) {
			*given = s[1] == '-';
			return i + 1;
		}
		if ((s[0] != '-' && s[0] != '+') || s[1] == '\0')
			break;
		/* -o NAME, also as the last of several letters */
		i += s[strlen(s) - 1] == 'o';
	}
	return i;
}

void
run_set_params(struct cmd *c)
{
	const struct params *was = known(c->lx);
	int given = 0;
	size_t i = set_operands(c, &given);

	if (c->fr->func != 0 || (i >= c->n && !given))
		return;
	params_replace(
	    c->x, params_words(c, was != NULL ? was->w[0] : NULL, i));
}

void
run_shift(struct cmd *c)
{
	const struct params *was = known(c->lx);
	uint64_t n = 1;

	if (was == NULL)
		return;
	if (c->n > 1 &&
	    uint_parse(cmd_s(c, 1), cmd_w(c, 1)->len, LEX_WORDS, &n) == -1) {
		params_replace(c->x, NULL);
		return;
	}
	/* more than there are: an error, and all stay */
	if (n == 0 || n >= was->n)
		return;
	params_replace(
	    c->x, params_make(c->x, was->w[0], &was->w[1 + n], was->n - 1 - n));
}
