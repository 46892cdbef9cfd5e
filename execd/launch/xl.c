/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of the XL_ payloads.  Pure; libc only, since the
 * static launcher links it.
 */
#include "execd/launch/xl.h"

#include <stdlib.h>
#include <string.h>

#include "common/codes.h"

/* An array of n zeroed elements, or NULL with the reader failed. */
static void *
get_array(struct rbuf *r, size_t n, size_t max, size_t size)
{
	void *p;

	if (n > max)
		r->err = 1;
	if (r->err || n == 0)
		return NULL;
	if ((p = calloc(n, size)) == NULL)
		r->err = 1;
	return p;
}

static void
filter_put(struct wbuf *w, const struct xl_filter *f)
{
	wput_bytes(w, f->code, f->len);
}

static void
filter_get(struct rbuf *r, struct xl_filter *f)
{
	const uint8_t *p = rget_bytes(r, &f->len, XL_FILTER_MAX);

	if (p != NULL && f->len % 8 != 0)
		r->err = 1;
	if (p == NULL || r->err || f->len == 0) {
		f->len = 0;
		return;
	}
	if ((f->code = malloc(f->len)) == NULL) {
		r->err = 1;
		f->len = 0;
		return;
	}
	memcpy(f->code, p, f->len);
}

void
xl_setup_clear(struct xl_setup *s)
{
	size_t i;

	for (i = 0; i < s->npaths; i++)
		free(s->paths[i].path);
	for (i = 0; i < s->nchecks; i++)
		free(s->checks[i].path);
	for (i = 0; i < s->nfilters; i++)
		free(s->filters[i].code);
	free(s->paths);
	free(s->checks);
	free(s->nofork.code);
	memset(s, 0, sizeof(*s));
}

void
xl_setup_put(struct wbuf *w, const struct xl_setup *s)
{
	size_t i;

	for (i = 0; i < XL_NAMESPACES; i++)
		wput_u64(w, s->outer[i]);
	wput_u32(w, s->layers);
	wput_u32(w, s->require);
	wput_u32(w, (uint32_t)s->npaths);
	for (i = 0; i < s->npaths; i++) {
		wput_str(w, s->paths[i].path);
		wput_u8(w, s->paths[i].rights);
	}
	wput_u32(w, (uint32_t)s->nchecks);
	for (i = 0; i < s->nchecks; i++) {
		wput_str(w, s->checks[i].path);
		wput_u64(w, s->checks[i].dev);
		wput_u64(w, s->checks[i].ino);
		wput_u8(w, s->checks[i].ro);
	}
	wput_u32(w, (uint32_t)s->nfilters);
	for (i = 0; i < s->nfilters; i++)
		filter_put(w, &s->filters[i]);
	filter_put(w, &s->nofork);
}

static void
paths_get(struct rbuf *r, struct xl_setup *s)
{
	size_t n = rget_u32(r);

	s->paths = get_array(r, n, XL_MAX_PATHS, sizeof(*s->paths));
	while (!r->err && s->npaths < n) {
		s->paths[s->npaths].path = rget_str(r, ABX_PATH_MAX);
		s->paths[s->npaths++].rights = rget_u8(r);
	}
}

static void
checks_get(struct rbuf *r, struct xl_setup *s)
{
	size_t n = rget_u32(r);
	struct xl_check *c;

	s->checks = get_array(r, n, XL_MAX_CHECKS, sizeof(*s->checks));
	while (!r->err && s->nchecks < n) {
		c = &s->checks[s->nchecks++];
		c->path = rget_str(r, ABX_PATH_MAX);
		c->dev = rget_u64(r);
		c->ino = rget_u64(r);
		c->ro = rget_bool(r) != 0;
		if (!r->err && c->path[0] != '/')
			r->err = 1;
	}
}

int
xl_setup_get(struct rbuf *r, struct xl_setup *s)
{
	size_t n;

	memset(s, 0, sizeof(*s));
	for (n = 0; n < XL_NAMESPACES; n++)
		s->outer[n] = rget_u64(r);
	s->layers = rget_u32(r);
	s->require = rget_u32(r);
	paths_get(r, s);
	checks_get(r, s);
	if ((n = rget_u32(r)) > XL_MAX_FILTERS)
		r->err = 1;
	while (!r->err && s->nfilters < n)
		filter_get(r, &s->filters[s->nfilters++]);
	filter_get(r, &s->nofork);
	if (rget_end(r) == -1) {
		xl_setup_clear(s);
		return -1;
	}
	return 0;
}

static void
words_clear(struct xl_words *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	l->v = NULL;
	l->n = 0;
}

static void
words_put(struct wbuf *w, const struct strlist *l)
{
	size_t i;

	wput_u32(w, (uint32_t)l->n);
	for (i = 0; i < l->n; i++)
		wput_str(w, l->v[i]);
}

static void
words_get(struct rbuf *r, struct xl_words *l, size_t max)
{
	size_t n = rget_u32(r);

	if (n > max)
		r->err = 1;
	l->v = get_array(r, n + 1, max + 1, sizeof(*l->v));
	while (!r->err && l->n < n)
		l->v[l->n++] = rget_str(r, XL_STR_MAX);
}

void
xl_run_clear(struct xl_run *x)
{
	words_clear(&x->progs);
	words_clear(&x->argv);
	words_clear(&x->env);
	free(x->cwd);
	memset(x, 0, sizeof(*x));
}

void
xl_run_put(
    struct wbuf *w, const struct spawn *s, uint64_t nofile, uint64_t others)
{
	int check = (s->flags & SPAWN_HOLD) != 0 || s->session[0] != '\0';
	uint64_t procs = s->procs;

	if (procs != 0 && __builtin_add_overflow(procs, others, &procs))
		procs = UINT64_MAX;
	wput_u8(w, ((s->flags & SPAWN_NO_FORK) != 0 ? XL_NO_FORK : 0) |
		       (check ? XL_CHECK : 0) |
		       (s->session[0] != '\0' ? XL_APART : 0));
	words_put(w, &s->progs);
	words_put(w, &s->argv);
	words_put(w, &s->env);
	wput_str(w, s->cwd);
	wput_u64(w, s->cpu_s);
	wput_u64(w, s->memory);
	wput_u64(w, procs);
	wput_u64(w, nofile);
}

int
xl_run_get(struct rbuf *r, struct xl_run *x)
{
	memset(x, 0, sizeof(*x));
	x->flags = rget_u8(r);
	words_get(r, &x->progs, 64);
	words_get(r, &x->argv, ABX_MAX_ARGV);
	words_get(r, &x->env, ABX_MAX_ENV);
	x->cwd = rget_str(r, ABX_PATH_MAX);
	x->cpu_s = rget_u64(r);
	x->memory = rget_u64(r);
	x->procs = rget_u64(r);
	x->nofile = rget_u64(r);
	if (rget_end(r) == -1 || x->flags > 7 ||
	    (x->flags & (XL_APART | XL_CHECK)) == XL_APART || x->progs.n == 0 ||
	    x->argv.n == 0 || x->cwd[0] != '/') {
		xl_run_clear(x);
		return -1;
	}
	return 0;
}

void
xl_ready_put(struct wbuf *w, const struct xl_ready *y)
{
	wput_u32(w, y->layers);
	wput_u32(w, y->abi);
}

int
xl_ready_get(struct rbuf *r, struct xl_ready *y)
{
	y->layers = rget_u32(r);
	y->abi = rget_u32(r);
	if (rget_end(r) == 0)
		return 0;
	memset(y, 0, sizeof(*y));
	return -1;
}

void
xl_failed_put(struct wbuf *w, const struct spawn_failed *f)
{
	wput_u16(w, f->code);
	wput_u32(w, (uint32_t)f->err);
	wput_str(w, f->layer);
}

int
xl_failed_get(struct rbuf *r, struct spawn_failed *f)
{
	f->code = rget_u16(r);
	f->err = (int32_t)rget_u32(r);
	rget_strto(r, f->layer, sizeof(f->layer));
	if (f->code == C_OK || f->code >= C_COUNT)
		r->err = 1;
	if (rget_end(r) == 0)
		return 0;
	memset(f, 0, sizeof(*f));
	return -1;
}

void
xl_ended_put(struct wbuf *w, const struct xl_ended *e)
{
	wput_u32(w, (uint32_t)e->status);
	wput_u64(w, e->utime_us);
	wput_u64(w, e->stime_us);
	wput_u64(w, e->maxrss_kb);
}

int
xl_ended_get(struct rbuf *r, struct xl_ended *e)
{
	e->status = (int32_t)rget_u32(r);
	e->utime_us = rget_u64(r);
	e->stime_us = rget_u64(r);
	e->maxrss_kb = rget_u64(r);
	if (rget_end(r) == 0)
		return 0;
	memset(e, 0, sizeof(*e));
	return -1;
}
