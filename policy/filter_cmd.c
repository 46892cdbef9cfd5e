/*
 * SPDX-License-Identifier: ISC
 *
 * A simple command: what is true of any command, then wrappers off one by
 * one, each layer held against the rules of its program, and at last what
 * that program does with scripts and code it is given.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

const char *
cmd_name(const char *s, char *buf, size_t size)
{
	const char *slash = strrchr(s, '/');
	size_t n = 0;

	for (s = slash != NULL ? slash + 1 : s; *s != '\0'; s++) {
		if (*s == CH_DYN)
			continue;
		if (n + 1 == size)
			return "";
		buf[n++] = *s >= 'A' && *s <= 'Z' ? (char)(*s | 0x20) : *s;
	}
	buf[n] = '\0';
	return buf;
}

struct lit
cmd_input(const struct cmd *c)
{
	struct lit in = c->in;
	const struct redir *r;
	size_t i;

	in.own = NULL;
	for (i = 0; i < c->nredir; i++) {
		r = &c->lx->r[c->redir + i];
		if (r->fd != 0)
			continue;
		if (r->op == R_IN) {
			in.kind = LIT_NONE;
		} else if (r->op == R_HERE) {
			in.kind = LIT_TEXT;
			in.p = r->here;
			in.len = r->herelen;
		} else if (r->op == R_STRING) {
			in.kind = LIT_TEXT;
			in.p = redir_s(c, i);
			in.len = r->w.len;
		}
	}
	return in;
}

/* ---- scripts inside of commands ---- */

/* What a job reads outlives the command that it came from. */
static void
job_input(struct fctx *x, struct lit *in)
{
	char *own = NULL;

	in->own = NULL;
	if (in->kind != LIT_TEXT)
		return;
	if (in->len > 0 && in->len <= x->budget) {
		x->budget -= in->len;
		if ((own = malloc(in->len)) == NULL)
			x->nomem = 1;
		else
			memcpy(own, in->p, in->len);
	}
	in->kind = own != NULL ? LIT_TEXT : LIT_NONE;
	in->p = in->own = own;
}

void
job_add(struct fctx *x, const struct job *j, int copy)
{
	struct level *l;
	struct job *at;
	char *own = NULL;

	if (j->len == 0)
		return;
	if (x->depth + 1 == FILTER_LEVELS) {
		/* too deep to be read as words */
		flat_scan(x, j->p, j->len);
		return;
	}
	l = &x->lv[x->depth + 1];
	if (fctx_grow(x, &l->jobs, &l->cap, l->njobs + 1, sizeof(*at)) == -1)
		return;
	if (copy && (own = malloc(j->len)) == NULL) {
		x->nomem = 1;
		return;
	}
	at = &l->jobs[l->njobs++];
	*at = *j;
	job_input(x, &at->in);
	at->own = own;
	params_ref(at->params);
	if (own != NULL)
		at->p = memcpy(own, j->p, j->len);
}

/* -enc PAYLOAD, in whatever spelling: base64 of UTF-16 or UTF-8 text. */
static int
is_encode_switch(const char *s)
{
	if ((s[0] != '-' && s[0] != '/') || (s[1] | 0x20) != 'e')
		return 0;
	for (s++; *s != '\0'; s++)
		if (((*s | 0x20) < 'a' || (*s | 0x20) > 'z') && *s != '^' &&
		    *s != '`')
			return 0;
	return 1;
}

static void
payload(struct fctx *x, const char *s, size_t n)
{
	struct job j = {.nested = 1};
	char *text;

	if (n < 16 || n > 2 * SUBST_MAX || n > x->budget)
		return;
	x->budget -= n;
	if ((text = base64_text(s, n, &j.len)) == NULL)
		return;
	if (payload_text(text, &j.len)) {
		j.p = text;
		job_add(x, &j, 1);
	}
	free(text);
}

/* ---- what is true of any command ---- */

static void
any_word(struct cmd *c, size_t i)
{
	const struct word *w = cmd_w(c, i);
	const char *s = cmd_s(c, i);

	if ((w->flags & W_LOADED) != 0)
		c->fr->loaded = 1;
	if (s[0] == '/')
		c->x->hits |= rules_word(s);
	if ((s[0] == '-' || s[0] == '/') && i + 1 < c->n && is_encode_switch(s))
		payload(c->x, cmd_s(c, i + 1), cmd_w(c, i + 1)->len);
}

static void
any_redir(struct cmd *c, size_t i)
{
	const struct redir *r = &c->lx->r[c->redir + i];
	const char *s;

	if (r->op == R_HERE || r->op == R_STRING)
		return;
	s = redir_s(c, i);
	c->x->hits |= rules_word(s);
	if (r->op == R_OUT || r->op == R_RDWR)
		c->x->hits |= rules_write(c->x, s);
}

/* A file that a download wrote is run. */
static void
any_program(struct cmd *c, const char *name)
{
	const char *s = cmd_s(c, 0);

	if (c->fr->func != 0 && name_hash(name, strlen(name)) == c->fr->func)
		c->fr->selfcalls++;
	if (c->x->nloaded > 0 && strchr(s, '/') != NULL && loaded_has(c->x, s))
		c->x->hits |= HIT(PIPE_TO_SHELL);
}

/* NAME=VALUE words, and words of which nothing is known, such as $SUDO. */
static void
skip_prefix(struct cmd *c)
{
	const char *s;

	while (c->n > 0) {
		s = cmd_s(c, 0);
		if (assign_len(s) > 0)
			var_assign(c->x, s, cmd_w(c, 0));
		else if ((s[0] != CH_DYN || s[1] != '\0') &&
			 strcmp(s, "-p") != 0) /* of the reserved word time */
			break;
		c->first++;
		c->n--;
	}
}

static void
ask_rules(const struct cmd *c, const struct prog *p)
{
	uint64_t todo = p->rules & ~c->x->hits;
	int i;

	while (todo != 0) {
		i = __builtin_ctzll(todo);
		todo &= todo - 1;
		if (rule_rows[i].match(c))
			c->x->hits |= 1ULL << i;
	}
}

/* A value of a loop's variable: 1 when it is a telling one. */
static int
for_value(struct cmd *c, const char *value)
{
	const char *s = path_fold(c->x, value), *name = cmd_s(c, 1);

	var_set(c->x, name_hash(name, strlen(name)), value, strlen(value));
	return path_root(s, 0) || path_device(s);
}

/* Variables of a loop stand for what they run over; one value is kept, a
 * telling one if there is any. */
static void
run_for(struct cmd *c)
{
	size_t i, best = 3;
	const char *s;

	if (c->n == 2)
		params_each(c, for_value);
	if (c->n < 4 || strcmp(cmd_s(c, 2), "in") != 0)
		return;
	for (i = 3; i < c->n; i++) {
		s = path_fold(c->x, cmd_s(c, i));
		if (path_root(s, cmd_w(c, i)->flags) || path_device(s)) {
			best = i;
			break;
		}
	}
	s = cmd_s(c, 1);
	var_set(
	    c->x, name_hash(s, strlen(s)), cmd_s(c, best), cmd_w(c, best)->len);
}

/* rm -rf * means something else behind cd /. */
static void
run_cd(struct cmd *c)
{
	c->fr->at_root =
	    c->n > 1 && strcmp(path_fold_at(c, cmd_s(c, c->n - 1)), "/") == 0;
}

static void
run_set(struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++)
		var_assign(c->x, cmd_s(c, i), cmd_w(c, i));
}

static void
run_plain(struct cmd *c, const struct prog *p, const char *name)
{
	switch (p->kind) {
	case PROG_SHELL:
		run_shell(c);
		break;
	case PROG_CODE:
		run_code(c, p->code);
		break;
	case PROG_EVAL:
		run_eval(c, 1, c->n);
		break;
	case PROG_TRAP:
		if (c->n > 2)
			run_eval(c, 1, 2);
		break;
	case PROG_SOURCE:
		run_source(c);
		break;
	case PROG_CD:
		run_cd(c);
		break;
	case PROG_SET:
		run_set(c);
		break;
	case PROG_PARAMS:
		run_set_params(c);
		break;
	case PROG_SHIFT:
		run_shift(c);
		break;
	case PROG_FOR:
		run_for(c);
		break;
	case PROG_LOAD:
		run_load(c);
		break;
	case PROG_LIT:
		if (c->out.kind == LIT_NONE &&
		    (c->sep == SEP_PIPE || c->lx->nfr > 1))
			lit_output(c, name, &c->out);
		break;
	default:
		break;
	}
}

/* The layers of a command; the kind of the innermost. */
static enum prog_kind
cmd_run(struct cmd *c)
{
	const struct prog *p;
	char buf[64];
	const char *name;

	for (;;) {
		skip_prefix(c);
		if (c->n == 0)
			return PROG_PLAIN;
		name = cmd_name(cmd_s(c, 0), buf, sizeof(buf));
		any_program(c, name);
		if ((p = prog_find(&c->x->f->progs, name)) == NULL)
			return PROG_PLAIN;
		ask_rules(c, p);
		if (p->kind != PROG_WRAP) {
			run_plain(c, p, name);
			return p->kind;
		}
		if (!wrap_peel(c, p->wrap))
			return PROG_WRAP;
	}
}

/* find ... -exec COMMAND ; */
static void
run_exec(const struct cmd *find)
{
	struct cmd c;
	size_t i, k;
	const char *s;

	for (i = 1; i < find->n; i++) {
		s = cmd_s(find, i);
		if (strcmp(s, "-exec") != 0 && strcmp(s, "-execdir") != 0 &&
		    strcmp(s, "-ok") != 0 && strcmp(s, "-okdir") != 0)
			continue;
		for (k = i + 1; k < find->n; k++) {
			s = cmd_s(find, k);
			if (strcmp(s, ";") == 0 || strcmp(s, "+") == 0)
				break;
		}
		c = *find;
		c.first = find->first + i + 1;
		c.n = k - i - 1;
		c.nredir = 0;
		memset(&c.in, 0, sizeof(c.in));
		memset(&c.out, 0, sizeof(c.out));
		(void)cmd_run(&c);
		lit_clear(&c.out);
		i = k;
	}
}

/* Substitutions in here-documents, but for one that was read as a script. */
static void
here_documents(const struct cmd *c, int fed)
{
	struct job j = {.heredoc = 1,
	    .nested = c->lx->nested,
	    .params = c->fr->func == 0 ? c->lx->params : NULL};
	const struct redir *r;
	size_t i;

	for (i = 0; i < c->nredir; i++) {
		r = &c->lx->r[c->redir + i];
		if (!r->expand || (fed && r->fd == 0))
			continue;
		j.p = r->here;
		j.len = r->herelen;
		job_add(c->x, &j, 0);
	}
}

void
cmd_check(struct cmd *c)
{
	struct cmd run = *c;
	size_t i;

	for (i = 0; i < c->n; i++)
		any_word(c, i);
	for (i = 0; i < c->nredir; i++)
		any_redir(c, i);
	if (c->x->f->custom_on)
		view_cmd(c);
	if (cmd_run(&run) == PROG_FIND)
		run_exec(&run);
	here_documents(c, run.fed);
	c->out = run.out;
}
