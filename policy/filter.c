/*
 * SPDX-License-Identifier: ISC
 *
 * The command policy's front: what is compiled, and how one check runs
 * through the levels of scripts inside of scripts.
 */
#include "policy/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

/* ---- configuration ---- */

int
filter_conf_init(struct filter_conf *fc)
{
	memset(fc, 0, sizeof(*fc));
	fc->enabled = fc->use_default_rules = 1;
	fc->stdin_max = FILTER_STDIN_MAX;
	return strlist_add(&fc->families, "posix", 5);
}

void
filter_custom_clear(struct filter_custom *fr)
{
	free(fr->name);
	free(fr->regex);
	free(fr->description);
	free(fr->file);
	strlist_clear(&fr->match);
	strlist_clear(&fr->pass);
	memset(fr, 0, sizeof(*fr));
}

void
filter_conf_clear(struct filter_conf *fc)
{
	size_t i;

	for (i = 0; i < fc->ncustom; i++)
		filter_custom_clear(&fc->custom[i]);
	free(fc->custom);
	strlist_clear(&fc->families);
	memset(fc, 0, sizeof(*fc));
}

/* ---- the filter ---- */

void
filter_free(struct filter *f)
{
	size_t i;

	if (f == NULL)
		return;
	for (i = 0; i < f->ncustom; i++) {
		rx_free(f->custom[i]);
		free(f->custom_name[i]);
		free(f->custom_reason[i]);
	}
	free(f);
}

static struct filter *
builtin_new(void)
{
	struct filter *f = calloc(1, sizeof(*f));
	size_t i;

	if (f == NULL)
		return NULL;
	progs_init(&f->progs);
	f->stdin_max = FILTER_STDIN_MAX;
	for (i = 0; i < RULE_COUNT; i++)
		if (rule_rows[i].floor)
			f->floor |= 1ULL << i;
	return f;
}

static char *
custom_reason(const struct filter_custom *fr)
{
	char *s;

	if (fr->description != NULL && *fr->description != '\0')
		return strdup(fr->description);
	if (asprintf(&s, "The rule %s of this service matches.", fr->name) ==
	    -1)
		return NULL;
	return s;
}

/* 0; 1 when the rule is bad; -1 out of memory. */
static int
custom_add(
    struct filter *f, const struct filter_custom *fr, char *why, size_t size)
{
	size_t i = f->ncustom;
	char rxwhy[128];

	if (i == FILTER_CUSTOM_MAX || strlen(fr->regex) > FILTER_REGEX_MAX) {
		snprintf(
		    why, size, "%s: too many rules, or too long", fr->name);
		return 1;
	}
	f->custom[i] = rx_new(fr->regex, rxwhy, sizeof(rxwhy));
	if (f->custom[i] == NULL) {
		snprintf(why, size, "%s: %s", fr->name, rxwhy);
		return 1;
	}
	f->ncustom++;
	f->custom_warn[i] = fr->warn;
	f->custom_name[i] = strdup(fr->name);
	f->custom_reason[i] = custom_reason(fr);
	return f->custom_name[i] == NULL || f->custom_reason[i] == NULL ? -1
									: 0;
}

struct filter *
filter_new(const struct filter_conf *fc, char *why, size_t size)
{
	struct filter *f = builtin_new();
	size_t i;
	int r = 0;

	if (size > 0)
		*why = '\0';
	if (f == NULL)
		return NULL;
	f->rules_on = 1;
	if (fc == NULL)
		return f;
	f->stdin_max = fc->stdin_max;
	f->warn_only = fc->mode == FILTER_WARN;
	f->rules_on =
	    fc->enabled && fc->mode != FILTER_OFF && fc->use_default_rules;
	f->custom_on = fc->enabled && fc->mode != FILTER_OFF;
	for (i = 0; i < fc->ncustom && r == 0; i++)
		r = custom_add(f, &fc->custom[i], why, size);
	if (r == -1) {
		filter_free(f);
		return NULL;
	}
	if (r == 1) {
		f->custom_on = 0;
		if (fc->enabled && fc->mode != FILTER_OFF)
			f->rules_on = 1;
	}
	f->custom_on = f->custom_on && f->ncustom > 0;
	return f;
}

void
filter_clock(struct filter *f, uint64_t (*us)(void))
{
	f->us = us;
}

/* ---- one check ---- */

int
fctx_realloc(struct fctx *x, void *arrayp, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap;
	void *old, *new;

	while (want < n)
		want = want < 64 ? 64 : want * 2;
	/* a pointer to a pointer of any kind */
	memcpy(&old, arrayp, sizeof(old));
	new = reallocarray(old, want, size);
	if (new == NULL) {
		x->nomem = 1;
		return -1;
	}
	memcpy(arrayp, &new, sizeof(new));
	*cap = want;
	return 0;
}

static int
fctx_init(struct fctx *x, const struct filter *f)
{
	memset(x, 0, offsetof(struct fctx, vars));
	x->nvars = x->nextvar = x->nloaded = 0;
	x->path = x->view = NULL;
	x->pathcap = x->viewlen = x->viewcap = 0;
	x->f = f;
	x->budget = EXPAND_BUDGET;
	x->again = FILTER_STDIN_MAX;
	return lex_init(&x->lv[0].lex, x);
}

static void
jobs_clear(struct level *l)
{
	while (l->njobs > 0) {
		l->njobs--;
		free(l->jobs[l->njobs].own);
		lit_clear(&l->jobs[l->njobs].in);
		params_unref(l->jobs[l->njobs].params);
	}
}

static void
fctx_clear(struct fctx *x)
{
	struct level *l;
	size_t i;

	for (i = 0; i < FILTER_LEVELS; i++) {
		l = &x->lv[i];
		jobs_clear(l);
		free(l->jobs);
		lex_free(&l->lex);
	}
	lex_free(&x->flat);
	free(x->path);
	free(x->view);
}

/* Start the next job of the level at hand: 1, or 0 when there is none. */
static int
next_job(struct fctx *x)
{
	struct level *l = &x->lv[x->depth];

	if (l->next == l->njobs) {
		jobs_clear(l);
		l->next = 0;
		return 0;
	}
	if (l->lex.nfr == 0 && lex_init(&l->lex, x) == -1)
		return 0;
	lex_start(&l->lex, &l->jobs[l->next++]);
	l->active = 1;
	return 1;
}

/* Depth first: what a command leaves for the next level is read before the
 * command behind it. */
static void
run_levels(struct fctx *x)
{
	struct level *l;

	while (!x->nomem) {
		l = &x->lv[x->depth];
		if (x->depth + 1 < FILTER_LEVELS && l[1].njobs > 0)
			x->depth++;
		else if (l->active)
			l->active = lex_run(&l->lex);
		else if (!next_job(x)) {
			if (x->depth == 0)
				break;
			x->depth--;
		}
	}
}

static void
name_add(const char **v, size_t *n, const char *name, const char *why,
    struct filter_result *r)
{
	if (*n < FILTER_NAMES)
		v[(*n)++] = name;
	if (r->reason == NULL)
		r->reason = why;
}

static void
result(const struct fctx *x, struct filter_result *r)
{
	const struct filter *f = x->f;
	uint64_t hits = x->hits;
	size_t i;
	int pass, block;

	for (i = 0; i < RULE_COUNT; i++)
		if ((hits >> i & 1) != 0 && rule_rows[i].floor)
			name_add(r->blocked, &r->nblocked, rule_rows[i].name,
			    rule_rows[i].reason, r);
	/* custom blocks before any warning: the reason is the first's */
	for (pass = 1; pass >= 0; pass--) {
		for (i = 0; pass == 0 && i < RULE_COUNT; i++)
			if ((hits >> i & 1) != 0 && !rule_rows[i].floor &&
			    f->rules_on)
				name_add(r->warned, &r->nwarned,
				    rule_rows[i].name, rule_rows[i].reason, r);
		for (i = 0; i < f->ncustom; i++) {
			block = !f->custom_warn[i] && !f->warn_only;
			if ((x->custom >> i & 1) == 0 || block != pass)
				continue;
			if (block)
				name_add(r->blocked, &r->nblocked,
				    f->custom_name[i], f->custom_reason[i], r);
			else
				name_add(r->warned, &r->nwarned,
				    f->custom_name[i], f->custom_reason[i], r);
		}
	}
	r->too_large = x->too_large;
}

/* What custom rules see besides the words: the texts as they are. */
static void
custom_raw(struct fctx *x, const struct strlist *argv)
{
	char *text, *p;
	size_t i, n = 0;

	if (!x->f->custom_on)
		return;
	for (i = 0; i < argv->n; i++)
		n += strlen(argv->v[i]) + 1;
	if ((text = p = malloc(n + 1)) == NULL) {
		x->nomem = 1;
		return;
	}
	for (i = 0; i < argv->n; i++) {
		n = strlen(argv->v[i]);
		memcpy(p, argv->v[i], n);
		p += n;
		*p++ = ' ';
	}
	if (p > text)
		custom_scan(x, text, (size_t)(p - text) - 1);
	if (x->in_read != 0 && !x->too_large)
		custom_scan(x, x->in.p, x->in.len);
	free(text);
}

static void
check_argv(struct fctx *x, const struct strlist *argv)
{
	struct lex *lx = &x->lv[0].lex;
	struct cmd c = {.x = x, .lx = lx, .fr = lx->fr, .sep = SEP_END};
	size_t i;

	for (i = 0; i < argv->n; i++)
		if (word_add(lx, argv->v[i], strlen(argv->v[i]), W_QUOTED) ==
		    -1)
			return;
	c.n = argv->n;
	c.in = x->in;
	cmd_check(&c);
	lit_clear(&c.out);
}

int
filter_check(const struct filter *f, const struct strlist *argv, const char *in,
    size_t len, struct filter_result *r)
{
	struct fctx *x = malloc(sizeof(*x));
	int error;

	memset(r, 0, sizeof(*r));
	if (x == NULL)
		return -1;
	if (fctx_init(x, f) == 0) {
		if (in != NULL)
			x->in = (struct lit){LIT_STDIN, in, len, NULL};
		check_argv(x, argv);
		run_levels(x);
		view_flush(x);
		custom_raw(x, argv);
	}
	error = x->nomem ? -1 : 0;
	if (error == 0)
		result(x, r);
	fctx_clear(x);
	free(x);
	return error;
}

int
filter_check_script(const struct filter *f, const char *text, size_t len,
    struct filter_result *r)
{
	char sh[] = "sh", *word = sh;
	struct strlist argv = {&word, 1};

	return filter_check(f, &argv, text, len, r);
}

const char *
filter_reason(const struct filter *f, const char *name)
{
	size_t i;

	for (i = 0; i < RULE_COUNT; i++)
		if (strcmp(rule_rows[i].name, name) == 0)
			return rule_rows[i].reason;
	for (i = 0; i < f->ncustom; i++)
		if (strcmp(f->custom_name[i], name) == 0)
			return f->custom_reason[i];
	return NULL;
}

int
filter_rule_info(size_t i, struct filter_rule_info *info)
{
	if (i >= RULE_COUNT)
		return 0;
	info->name = rule_rows[i].name;
	info->family = "posix";
	info->reason = rule_rows[i].reason;
	info->floor = rule_rows[i].floor;
	info->yes = rule_rows[i].yes;
	info->no = rule_rows[i].no;
	return 1;
}

/* ---- a custom rule alone ---- */

static int
has_name(const char *const *v, size_t n, const char *name)
{
	while (n > 0)
		if (v[--n] == name)
			return 1;
	return 0;
}

static int
try_examples(const struct filter *f, const struct strlist *l, int want,
    char *why, size_t size)
{
	const char *name = f->custom_name[0];
	struct filter_result r;
	size_t i;
	int got;

	for (i = 0; i < l->n; i++) {
		if (filter_check_script(f, l->v[i], strlen(l->v[i]), &r) == -1)
			return 1;
		got = has_name(r.blocked, r.nblocked, name) ||
		      has_name(r.warned, r.nwarned, name);
		if (got == want)
			continue;
		snprintf(why, size, "%s: the example \"%.120s\" %s", name,
		    l->v[i], want ? "does not match" : "matches all the same");
		return -1;
	}
	return 0;
}

int
filter_custom_check(const struct filter_custom *fr, char *why, size_t size)
{
	struct filter_custom one = *fr;
	struct filter_conf fc = {.enabled = 1,
	    .custom = &one,
	    .ncustom = 1,
	    .stdin_max = FILTER_STDIN_MAX};
	struct filter *f = filter_new(&fc, why, size);
	int error = 0;

	if (f == NULL)
		return 1;
	if (*why != '\0')
		error = -1;
	if (error == 0)
		error = try_examples(f, &fr->match, 1, why, size);
	if (error == 0)
		error = try_examples(f, &fr->pass, 0, why, size);
	filter_free(f);
	return error;
}
