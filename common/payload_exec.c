/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of the payloads of execd and of the parent.  Pure;
 * as payload.c.
 */
#include <stdlib.h>
#include <string.h>

#include "common/codes.h"
#include "common/payload.h"
#include "common/payload_int.h"

void
exec_hello_put(struct wbuf *w, const struct exec_hello *h)
{
	wput_u32(w, h->layers);
	wput_u32(w, h->landlock_abi);
	wput_str(w, h->text);
}

int
exec_hello_get(struct rbuf *r, struct exec_hello *h)
{
	h->layers = rget_u32(r);
	h->landlock_abi = rget_u32(r);
	rget_strto(r, h->text, sizeof(h->text));
	GET_PLAIN(r, h);
}

void
spawn_bind_clear(struct spawn_bind *b)
{
	free(b->inner);
	memset(b, 0, sizeof(*b));
}

void
spawn_bind_put(struct wbuf *w, const struct spawn_bind *b)
{
	wput_u8(w, b->rw);
	wput_str(w, b->inner);
}

int
spawn_bind_get(struct rbuf *r, struct spawn_bind *b)
{
	memset(b, 0, sizeof(*b));
	b->rw = (uint8_t)rget_bool(r);
	b->inner = rget_str(r, ABX_PATH_MAX);
	if (!r->err && (b->inner[0] != '/' || b->inner[1] == '\0'))
		r->err = 1;
	GET_END(r, b, spawn_bind_clear);
}

void
spawn_clear(struct spawn *s)
{
	strlist_clear(&s->progs);
	strlist_clear(&s->argv);
	strlist_clear(&s->env);
	free(s->cwd);
	memset(s, 0, sizeof(*s));
}

void
spawn_put(struct wbuf *w, const struct spawn *s)
{
	wput_u16(w, s->flags);
	strlist_put(w, &s->progs);
	strlist_put(w, &s->argv);
	strlist_put(w, &s->env);
	wput_str(w, s->cwd);
	wput_u64(w, s->timeout_ms);
	wput_u64(w, s->idle_ms);
	wput_u64(w, s->grace_ms);
	wput_u64(w, s->max_output);
	wput_u64(w, s->cpu_s);
	wput_u64(w, s->memory);
	wput_u64(w, s->procs);
	wput_str(w, s->session);
}

int
workspace_name_ok(const char *s)
{
	return strlen(s) == ABX_WORKSPACE_LEN &&
	       strspn(s, "0123456789abcdef") == ABX_WORKSPACE_LEN;
}

int
spawn_get(struct rbuf *r, struct spawn *s)
{
	memset(s, 0, sizeof(*s));
	s->flags = rget_u16(r);
	strlist_get(r, &s->progs, 64, ABX_PATH_MAX);
	strlist_get(r, &s->argv, ABX_MAX_ARGV, 1024 * 1024);
	strlist_get(r, &s->env, ABX_MAX_ENV, 1024 * 1024);
	s->cwd = rget_str(r, ABX_PATH_MAX);
	s->timeout_ms = rget_u64(r);
	s->idle_ms = rget_u64(r);
	s->grace_ms = rget_u64(r);
	s->max_output = rget_u64(r);
	s->cpu_s = rget_u64(r);
	s->memory = rget_u64(r);
	s->procs = rget_u64(r);
	rget_strto(r, s->session, sizeof(s->session));
	if (s->session[0] != '\0' && !workspace_name_ok(s->session))
		r->err = 1;
	if (s->progs.n == 0 || s->argv.n == 0 ||
	    (s->cwd != NULL && s->cwd[0] != '/'))
		r->err = 1;
	GET_END(r, s, spawn_clear);
}

void
spawn_failed_put(struct wbuf *w, const struct spawn_failed *f)
{
	wput_u16(w, f->code);
	wput_u32(w, (uint32_t)f->err);
	wput_str(w, f->layer);
}

int
spawn_failed_get(struct rbuf *r, struct spawn_failed *f)
{
	f->code = rget_u16(r);
	f->err = (int32_t)rget_u32(r);
	rget_strto(r, f->layer, sizeof(f->layer));
	if (f->code >= C_COUNT || f->code == C_OK)
		r->err = 1;
	GET_PLAIN(r, f);
}

void
run_end_put(struct wbuf *w, const struct run_end *e)
{
	wput_u32(w, (uint32_t)e->status);
	wput_u32(w, e->flags);
	wput_u64(w, e->us);
	wput_u64(w, e->utime_us);
	wput_u64(w, e->stime_us);
	wput_u64(w, e->maxrss_kb);
	wput_u64(w, e->dropped_out);
	wput_u64(w, e->dropped_err);
	wput_u32(w, e->layers);
	wput_bytes(w, e->appeared, e->nappeared);
}

int
run_end_get(struct rbuf *r, struct run_end *e)
{
	const uint8_t *p;

	e->status = (int32_t)rget_u32(r);
	e->flags = rget_u32(r);
	e->us = rget_u64(r);
	e->utime_us = rget_u64(r);
	e->stime_us = rget_u64(r);
	e->maxrss_kb = rget_u64(r);
	e->dropped_out = rget_u64(r);
	e->dropped_err = rget_u64(r);
	e->layers = rget_u32(r);
	memset(e->appeared, 0, sizeof(e->appeared));
	p = rget_bytes(r, &e->nappeared, sizeof(e->appeared));
	if (p != NULL && e->nappeared > 0) {
		memcpy(e->appeared, p, e->nappeared);
		if (e->appeared[e->nappeared - 1] != '\0')
			r->err = 1;
	}
	GET_PLAIN(r, e);
}

/* ---- parent and children ---- */

void
proc_conf_put(struct wbuf *w, const struct proc_conf *c)
{
	wput_u8(w, c->root);
	wput_u8(w, c->debug);
	wput_u32(w, c->uid);
	wput_u32(w, c->gid);
	wput_u32(w, c->generation);
	wput_u32(w, (uint32_t)c->ppid);
}

int
proc_conf_get(struct rbuf *r, struct proc_conf *c)
{
	c->root = (uint8_t)rget_bool(r);
	c->debug = (uint8_t)rget_bool(r);
	c->uid = rget_u32(r);
	c->gid = rget_u32(r);
	c->generation = rget_u32(r);
	c->ppid = (int32_t)rget_u32(r);
	GET_PLAIN(r, c);
}

void
boot_path_put(struct wbuf *w, const struct boot_path *p)
{
	wput_u32(w, p->id);
	wput_str(w, p->path);
	wput_u8(w, p->rw);
}

/* The path is a new string (free). */
int
boot_path_get(struct rbuf *r, struct boot_path *p)
{
	memset(p, 0, sizeof(*p));
	p->id = rget_u32(r);
	p->path = rget_str(r, ABX_PATH_MAX);
	p->rw = (uint8_t)rget_bool(r);
	if (r->err || p->id >= ABX_MAX_ROOTS || p->path[0] != '/') {
		r->err = 1;
		free(p->path);
		memset(p, 0, sizeof(*p));
		return -1;
	}
	return 0;
}

static void
paths_clear(struct boot_path *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free(v[i].path);
	free(v);
}

void
boot_clear(struct boot *b)
{
	size_t i;

	for (i = 0; i < nitems(b->users); i++)
		free(b->users[i]);
	for (i = 0; i < b->nlisten; i++) {
		free(b->listen[i].addr);
		free(b->listen[i].group);
	}
	free(b->listen);
	free(b->state_dir);
	free(b->workspace_root);
	free(b->control_path);
	free(b->control_group);
	strlist_clear(&b->start_env);
	strlist_clear(&b->audit);
	strlist_clear(&b->protect);
	strlist_clear(&b->protect_names);
	paths_clear(b->roots, b->nroots);
	paths_clear(b->binds, b->nbinds);
	memset(b, 0, sizeof(*b));
}

static void
paths_put(struct wbuf *w, const struct boot_path *v, size_t n)
{
	size_t i;

	wput_u32(w, (uint32_t)n);
	for (i = 0; i < n; i++)
		boot_path_put(w, &v[i]);
}

static void
paths_get(struct rbuf *r, struct boot_path **v, size_t *n)
{
	uint32_t count = rget_u32(r);

	*v = NULL;
	*n = 0;
	if (count > ABX_MAX_ROOTS)
		r->err = 1;
	if (r->err || count == 0)
		return;
	if ((*v = calloc(count, sizeof(**v))) == NULL) {
		r->err = 1;
		return;
	}
	while (*n < count && boot_path_get(r, &(*v)[*n]) == 0)
		(*n)++;
}

void
boot_put(struct wbuf *w, const struct boot *b)
{
	size_t i;

	for (i = 0; i < nitems(b->users); i++)
		wput_str(w, b->users[i]);
	wput_u32(w, (uint32_t)b->nlisten);
	for (i = 0; i < b->nlisten; i++) {
		wput_u8(w, b->listen[i].is_unix);
		wput_str(w, b->listen[i].addr);
		wput_u16(w, b->listen[i].port);
		wput_u32(w, b->listen[i].mode);
		wput_str(w, b->listen[i].group);
	}
	wput_str(w, b->state_dir);
	wput_str(w, b->workspace_root);
	strlist_put(w, &b->audit);
	paths_put(w, b->roots, b->nroots);
	paths_put(w, b->binds, b->nbinds);
	strlist_put(w, &b->protect);
	strlist_put(w, &b->protect_names);
	wput_u32(w, b->umask);
	wput_u64(w, b->tmp_size);
	wput_u32(w, b->require);
	wput_u32(w, b->cpu_percent);
	wput_u64(w, b->total_memory);
	wput_u32(w, b->total_pids);
	wput_u32(w, b->total_cpu);
	wput_u8(w, b->protect_absent);
	wput_u8(w, b->exec_used);
	wput_u64(w, b->shutdown_grace_ms);
	wput_u32(w, b->restart_limit);
	wput_u8(w, b->reload);
	wput_str(w, b->control_path);
	wput_str(w, b->control_group);
	strlist_put(w, &b->start_env);
	wput_str(w, b->revision);
}

static void
listens_get(struct rbuf *r, struct boot *b)
{
	struct boot_listen *l;
	uint32_t n = rget_u32(r);

	if (n > 64)
		r->err = 1;
	if (r->err || n == 0)
		return;
	if ((b->listen = calloc(n, sizeof(*b->listen))) == NULL) {
		r->err = 1;
		return;
	}
	while (!r->err && b->nlisten < n) {
		l = &b->listen[b->nlisten++];
		l->is_unix = (uint8_t)rget_bool(r);
		l->addr = rget_str(r, 255);
		l->port = rget_u16(r);
		l->mode = rget_u32(r);
		l->group = rget_str(r, 64);
	}
}

int
boot_get(struct rbuf *r, struct boot *b)
{
	size_t i;

	memset(b, 0, sizeof(*b));
	for (i = 0; i < nitems(b->users); i++)
		b->users[i] = rget_str(r, 64);
	listens_get(r, b);
	b->state_dir = rget_str(r, ABX_PATH_MAX);
	b->workspace_root = rget_str(r, ABX_PATH_MAX);
	strlist_get(r, &b->audit, 16, ABX_PATH_MAX + 16);
	paths_get(r, &b->roots, &b->nroots);
	paths_get(r, &b->binds, &b->nbinds);
	strlist_get(r, &b->protect, 256, ABX_PATH_MAX);
	strlist_get(r, &b->protect_names, BOOT_NAMES_MAX, 255);
	b->umask = rget_u32(r);
	b->tmp_size = rget_u64(r);
	b->require = rget_u32(r);
	b->cpu_percent = rget_u32(r);
	b->total_memory = rget_u64(r);
	b->total_pids = rget_u32(r);
	b->total_cpu = rget_u32(r);
	b->protect_absent = (uint8_t)rget_bool(r);
	b->exec_used = (uint8_t)rget_bool(r);
	b->shutdown_grace_ms = rget_u64(r);
	b->restart_limit = rget_u32(r);
	b->reload = (uint8_t)rget_bool(r);
	b->control_path = rget_str(r, 107);
	b->control_group = rget_str(r, 64);
	strlist_get(r, &b->start_env, ABX_MAX_ENV, 64 * 1024);
	rget_strto(r, b->revision, sizeof(b->revision));
	GET_END(r, b, boot_clear);
}
