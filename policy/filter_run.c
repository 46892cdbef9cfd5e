/*
 * SPDX-License-Identifier: ISC
 *
 * Programs that run what they are given: wrappers give way to the command
 * behind them, shells have their script read as words, other interpreters
 * have their code read as flat text; downloads are followed to the shell that
 * runs them.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

#define XARGS_MAX 4096 /* bytes of input that become words */

/* ---- scripts from words ---- */

void
run_words(struct cmd *c, size_t from, size_t to, const struct job *job)
{
	struct fctx *x = c->x;
	struct job j = *job;
	size_t i, n = 0;
	char *text;

	for (i = from; i < to; i++) {
		n += cmd_w(c, i)->len + 1;
		if ((cmd_w(c, i)->flags & W_LOADED) != 0)
			x->hits |= HIT(SHELL_EVAL_DOWNLOAD);
	}
	if (n == 0)
		return;
	if ((text = malloc(n)) == NULL) {
		x->nomem = 1;
		return;
	}
	j.nested = 1;
	j.in = cmd_input(c);
	for (i = from, n = 0; i < to; i++) {
		memcpy(text + n, cmd_s(c, i), cmd_w(c, i)->len);
		n += cmd_w(c, i)->len;
		text[n++] = ' ';
	}
	j.p = text;
	j.len = n - 1;
	job_add(x, &j, 1);
	free(text);
}

void
run_eval(struct cmd *c, size_t from, size_t to)
{
	const struct job j = {
	    .inner = 1, .params = c->fr->func == 0 ? c->lx->params : NULL};

	run_words(c, from, to, &j);
}

/* A script that comes in as text; params are borrowed. */
static void
script_lit(struct fctx *x, const struct lit *in, struct params *params)
{
	struct job j = {
	    .p = in->p, .len = in->len, .nested = 1, .params = params};

	if (in->kind == LIT_TEXT)
		job_add(x, &j, 1);
	if (in->kind != LIT_STDIN || (x->in_read & 1) != 0)
		return;
	x->in_read |= 1;
	if (x->in.len > x->f->stdin_max) {
		x->too_large = 1;
		return;
	}
	j.p = x->in.p;
	j.len = x->in.len;
	j.nested = 0;
	job_add(x, &j, 0);
}

static void
code_lit(struct fctx *x, const struct lit *in)
{
	if (in->kind == LIT_TEXT)
		flat_scan(x, in->p, in->len);
	if (in->kind != LIT_STDIN || (x->in_read & 2) != 0)
		return;
	x->in_read |= 2;
	if (x->in.len > x->f->stdin_max)
		x->too_large = 1;
	else
		flat_scan(x, x->in.p, x->in.len);
}

static void
script_text(struct cmd *c, const char *s)
{
	struct job j = {.p = s, .len = strlen(s), .nested = 1};

	j.in = cmd_input(c);
	job_add(c->x, &j, 1);
}

/* ---- downloads ---- */

static uint64_t
path_hash(const char *s, size_t n)
{
	while (n > 2 && s[0] == '.' && s[1] == '/') {
		s += 2;
		n -= 2;
	}
	return name_hash(s, n);
}

int
loaded_has(const struct fctx *x, const char *s)
{
	uint64_t h;
	size_t i;

	if (x->nloaded == 0)
		return 0;
	h = path_hash(s, strlen(s));
	for (i = 0; i < x->nloaded; i++)
		if (x->loaded[i] == h)
			return 1;
	return 0;
}

static void
loaded_add(struct fctx *x, const char *s)
{
	size_t n = strlen(s);

	if (n > 0 && strcmp(s, "-") != 0 && strncmp(s, "/dev/", 5) != 0 &&
	    x->nloaded < NLOADED)
		x->loaded[x->nloaded++] = path_hash(s, n);
}

/* The last part of a URL is the name of the file. */
static void
loaded_url(struct fctx *x, const char *s)
{
	const char *slash = strrchr(s, '/');
	char name[128];
	size_t n;

	s = slash != NULL ? slash + 1 : s;
	n = strcspn(s, "?#");
	if (n == 0 || n >= sizeof(name))
		return;
	memcpy(name, s, n);
	name[n] = '\0';
	loaded_add(x, name);
}

void
run_load(struct cmd *c)
{
	struct optw o;
	char buf[16];
	const char *name = cmd_name(cmd_s(c, 0), buf, sizeof(buf)), *url = NULL;
	int wget = strncmp(name, "wget", 4) == 0, named = 0, remote = wget;
	size_t i;

	c->fr->loaded = c->fr->stage_dl = 1;
	optw_init(&o, c,
	    wget ? "O:P:o:U:e:t:T:i:" : "o:H:d:X:A:e:u:F:b:c:m:x:w:T:r:K:E:",
	    " output=:o output-document=:O remote-name:R header= data= "
	    "request= user-agent= ");
	while (optw_next(&o)) {
		if (o.ch == 0)
			url = o.arg;
		else if (o.ch == 'R' || (!wget && o.ch == 'O'))
			remote = 1;
		else if ((o.ch == 'o' && !wget) || (o.ch == 'O' && wget)) {
			named = 1;
			if (o.arg != NULL)
				loaded_add(c->x, o.arg);
		}
	}
	if (remote && !named && url != NULL)
		loaded_url(c->x, url);
	for (i = 0; i < c->nredir; i++)
		if (c->lx->r[c->redir + i].op == R_OUT)
			loaded_add(c->x, redir_s(c, i));
}

/* ---- shells ---- */

static int
is_stdin(const char *s)
{
	return strcmp(s, "-") == 0 || strcmp(s, "/dev/stdin") == 0 ||
	       strcmp(s, "/dev/fd/0") == 0 || strcmp(s, "/proc/self/fd/0") == 0;
}

/* A script out of a file, which is not looked at unless it is known. */
static int
script_file(struct cmd *c, size_t i)
{
	const struct word *w = cmd_w(c, i);
	const char *s = cmd_s(c, i);

	if ((w->flags & W_PROC) != 0) {
		if ((w->flags & W_LOADED) != 0)
			c->x->hits |= HIT(SHELL_EVAL_DOWNLOAD);
		script_lit(c->x, &c->fr->proc, NULL);
		return 1;
	}
	if (is_stdin(s))
		return 0;
	if (loaded_has(c->x, s))
		c->x->hits |= HIT(PIPE_TO_SHELL);
	return 1;
}

/* Its standard input is the program. */
static struct lit
program_input(struct cmd *c)
{
	const struct redir *r;
	size_t i;

	if (c->fr->piped_dl)
		c->x->hits |= HIT(PIPE_TO_SHELL);
	for (i = 0; i < c->nredir; i++) {
		r = &c->lx->r[c->redir + i];
		if ((r->w.flags & W_LOADED) != 0)
			c->x->hits |= HIT(SHELL_EVAL_DOWNLOAD);
		if (r->op == R_IN && (r->w.flags & W_PROC) != 0) {
			struct lit in = c->fr->proc;

			in.own = NULL;
			return in;
		}
	}
	return cmd_input(c);
}

/* Options of a shell: the index of what follows them. */
static size_t
shell_options(const struct cmd *c, int *command, int *from_stdin)
{
	const char *s;
	size_t i, more;

	for (i = 1; i < c->n; i++) {
		s = cmd_s(c, i);
		if (strcmp(s, "--") == 0 || strcmp(s, "-") == 0)
			return i + 1;
		if ((s[0] != '-' && s[0] != '+') || s[1] == '\0')
			break;
		if (s[1] == '-') {
			i += strcmp(s, "--rcfile") == 0 ||
			     strcmp(s, "--init-file") == 0;
			continue;
		}
		for (more = 0; *++s != '\0';) {
			*command |= *s == 'c';
			*from_stdin |= *s == 's';
			more += *s == 'o' || *s == 'O';
		}
		i += more;
	}
	return i < c->n ? i : c->n;
}

void
run_shell(struct cmd *c)
{
	int command = 0, from_stdin = 0;
	size_t i = shell_options(c, &command, &from_stdin);
	struct job j = {0};
	struct lit in;

	if (command) {
		if (i + 1 < c->n)
			j.params = params_new(c, i + 1, i + 2);
		if (i < c->n)
			run_words(c, i, i + 1, &j);
		params_unref(j.params);
		return;
	}
	if (i < c->n && !from_stdin && script_file(c, i))
		return;
	in = program_input(c);
	c->fed = in.kind == LIT_TEXT;
	if (from_stdin && i < c->n)
		j.params = params_new(c, c->n, i);
	script_lit(c->x, &in, j.params);
	params_unref(j.params);
}

void
run_source(struct cmd *c)
{
	struct lit in;

	if (c->n < 2 || script_file(c, 1))
		return;
	in = program_input(c);
	script_lit(c->x, &in, NULL);
}

/* ---- other interpreters ---- */

static void
code_word(struct cmd *c, size_t at, const char *s)
{
	if ((cmd_w(c, at)->flags & W_LOADED) != 0)
		c->x->hits |= HIT(SHELL_EVAL_DOWNLOAD);
	flat_scan(c->x, s, strlen(s));
}

void
run_code(struct cmd *c, const struct code_prog *cp)
{
	struct optw o;
	struct lit in;
	int given = 0;

	optw_init(&o, c, cp->opts, cp->longs);
	o.stop = 1;
	while (optw_next(&o)) {
		if (o.ch == '?' || o.ch == 0)
			continue;
		if (strchr(cp->files, o.ch) != NULL)
			return;
		if (strchr(cp->codes, o.ch) == NULL)
			continue;
		if (o.arg != NULL) {
			given = 1;
			code_word(c, o.at, o.arg);
		}
	}
	if (given)
		return;
	if (o.i < c->n && cp->first) {
		code_word(c, o.i, cmd_s(c, o.i));
		return;
	}
	if (o.i < c->n && script_file(c, o.i))
		return;
	in = program_input(c);
	code_lit(c->x, &in);
}

/* ---- wrappers ---- */

/* The words that xargs reads, when they are known. */
static void
append_input(struct cmd *c)
{
	struct lit in = cmd_input(c);
	struct fctx *x = c->x;
	char text[XARGS_MAX];
	const char *p, *end;
	size_t n;

	if (in.kind == LIT_STDIN)
		in = x->in;
	/* they must come right behind the others */
	if (in.kind == LIT_NONE || in.len > sizeof(text) ||
	    in.len > x->budget || c->first + c->n != c->lx->nw)
		return;
	x->budget -= in.len;
	/* it may stand where the words go */
	memcpy(text, in.p, in.len);
	for (p = text, end = text + in.len; p < end; p += n) {
		while (p < end && memchr(" \t\n", *p, 4) != NULL)
			p++;
		for (n = 0; p + n < end && memchr(" \t\n", p[n], 4) == NULL;)
			n++;
		if (n > 0 && word_add(c->lx, p, n, W_QUOTED) == -1)
			return;
		c->n += n > 0;
	}
}

static void
advance(struct cmd *c, size_t n)
{
	if (n > c->n)
		n = c->n;
	c->first += n;
	c->n -= n;
}

/* Behind the operands that come before the command. */
static void
skip_operands(struct cmd *c, const struct wrap *w, size_t i)
{
	advance(c, i);
	while (w->assigns && c->n > 0 && assign_len(cmd_s(c, 0)) > 0) {
		var_assign(c->x, cmd_s(c, 0), cmd_w(c, 0));
		advance(c, 1);
	}
	advance(c, w->skip);
}

/* The script of an option: its argument, the rest of the word, or the next
 * word. */
static void
script_arg(struct cmd *c, struct optw *o)
{
	const char *s = o->arg != NULL ? o->arg : o->rest;

	if (s == NULL && o->i < c->n) {
		o->at = o->i++;
		s = cmd_s(c, o->at);
	}
	o->rest = NULL;
	if (s == NULL)
		return;
	if ((cmd_w(c, o->at)->flags & W_LOADED) != 0)
		c->x->hits |= HIT(SHELL_EVAL_DOWNLOAD);
	script_text(c, s);
}

int
wrap_peel(struct cmd *c, const struct wrap *w)
{
	struct optw o;
	const struct job j = {0};
	int shell = 0;
	char buf[16];
	const char *name = cmd_name(cmd_s(c, 0), buf, sizeof(buf));

	optw_init(&o, c, w->opts, w->longs);
	o.stop = w->skip != NO_COMMAND;
	while (optw_next(&o)) {
		if (o.ch == 0 || o.ch == '?')
			continue;
		if (strchr(w->none, o.ch) != NULL)
			return 0;
		shell |= strchr(w->shell, o.ch) != NULL;
		if (o.ch == w->script)
			script_arg(c, &o);
	}
	if (strcmp(name, "xargs") == 0)
		append_input(c);
	skip_operands(c, w, o.i);
	/* what is left stands in that script, further shells included */
	if ((shell || w->script == '*') && !c->shelled) {
		c->shelled = 1;
		run_words(c, 0, c->n, &j);
	}
	/* flock FILE -c SCRIPT */
	if (w->script == 'c' && c->n > 1 && strcmp(cmd_s(c, 0), "-c") == 0)
		run_words(c, 1, 2, &j);
	return c->n > 0;
}
