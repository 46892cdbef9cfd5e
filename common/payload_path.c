/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of the payloads between monitor and pathd about single
 * files and directories (trees and edits: payload_files.c).  Pure; as
 * payload.c.
 */
#include <stdlib.h>
#include <string.h>

#include "common/payload.h"
#include "common/payload_int.h"

void
root_ok_clear(struct root_ok *o)
{
	free(o->path);
	memset(o, 0, sizeof(*o));
}

void
root_ok_put(struct wbuf *w, const struct root_ok *o)
{
	wput_u32(w, o->id);
	wput_u32(w, (uint32_t)o->err);
	wput_str(w, o->path);
	wput_u64(w, o->dev);
	wput_u64(w, o->ino);
}

int
root_ok_get(struct rbuf *r, struct root_ok *o)
{
	memset(o, 0, sizeof(*o));
	o->id = rget_u32(r);
	o->err = (int32_t)rget_u32(r);
	o->path = rget_str(r, ABX_PATH_MAX);
	o->dev = rget_u64(r);
	o->ino = rget_u64(r);
	if (o->id >= ABX_MAX_ROOTS ||
	    (!r->err && o->err == 0 && o->path[0] != '/'))
		r->err = 1;
	GET_END(r, o, root_ok_clear);
}

void
resolve_clear(struct resolve *v)
{
	size_t i;

	for (i = 0; i < v->n; i++) {
		free(v->v[i].path);
		free(v->v[i].refs);
	}
	free(v->v);
	memset(v, 0, sizeof(*v));
}

void
resolve_put(struct wbuf *w, const struct resolve *v)
{
	size_t i;

	wput_u8(w, v->flags);
	wput_u32(w, (uint32_t)v->n);
	for (i = 0; i < v->n; i++) {
		wput_str(w, v->v[i].path);
		wput_u8(w, v->v[i].nofollow);
		refs_put(w, v->v[i].refs, v->v[i].nrefs);
	}
}

int
resolve_get(struct rbuf *r, struct resolve *v)
{
	struct resolve_item *it;
	uint32_t n;

	memset(v, 0, sizeof(*v));
	v->flags = rget_u8(r);
	n = rget_u32(r);
	if (n == 0 || n > ABX_MAX_RESOLVE ||
	    (v->flags & ~(RESOLVE_OPEN | RESOLVE_OPENDIR)) != 0)
		r->err = 1;
	if (!r->err && (v->v = calloc(n, sizeof(*v->v))) == NULL)
		r->err = 1;
	while (!r->err && v->n < n) {
		it = &v->v[v->n++];
		it->path = rget_str(r, ABX_PATH_MAX);
		it->nofollow = (uint8_t)rget_bool(r);
		refs_get(r, &it->refs, &it->nrefs);
		/* as a client gave it: too long a name is for pathd to find */
		if (!r->err && (it->path[0] != '/' || it->nrefs == 0 ||
				   !rel_ok(it->path + 1, ABX_PATH_MAX)))
			r->err = 1;
	}
	GET_END(r, v, resolve_clear);
}

void
put_clear(struct put *p)
{
	target_clear(&p->target);
	memset(p, 0, sizeof(*p));
}

void
put_put(struct wbuf *w, const struct put *p)
{
	target_put(w, &p->target);
	wput_u16(w, p->flags);
	wput_u64(w, p->max_bytes);
	wput_u32(w, p->mode);
	digest_put(w, (p->flags & PF_DIGEST) != 0, p->digest);
}

int
put_get(struct rbuf *r, struct put *p)
{
	uint8_t has;

	memset(p, 0, sizeof(*p));
	target_get(r, &p->target);
	p->flags = rget_u16(r);
	p->max_bytes = rget_u64(r);
	p->mode = rget_u32(r);
	digest_get(r, &has, p->digest);
	if (has != ((p->flags & PF_DIGEST) != 0))
		r->err = 1;
	GET_END(r, p, put_clear);
}

void
put_fin_put(struct wbuf *w, const struct put_fin *f)
{
	wput_u16(w, f->code);
	wput_u8(w, f->created);
	wput_u64(w, f->bytes);
	wput_i64(w, f->mtime);
	wput_u32(w, f->mtime_ns);
	wput_u64(w, f->dev);
	wput_u64(w, f->ino);
	wput_u64(w, f->entries);
	digest_put(w, f->has_digest, f->digest);
}

int
put_fin_get(struct rbuf *r, struct put_fin *f)
{
	f->code = code_get(r);
	f->created = (uint8_t)rget_bool(r);
	f->bytes = rget_u64(r);
	mtime_get(r, &f->mtime, &f->mtime_ns);
	f->dev = rget_u64(r);
	f->ino = rget_u64(r);
	f->entries = rget_u64(r);
	digest_get(r, &f->has_digest, f->digest);
	GET_PLAIN(r, f);
}

void
list_clear(struct list *l)
{
	target_clear(&l->target);
	free(l->refs);
	strlist_clear(&l->deny);
	memset(l, 0, sizeof(*l));
}

void
list_put(struct wbuf *w, const struct list *l)
{
	target_put(w, &l->target);
	wput_u16(w, l->flags);
	wput_u32(w, l->max_entries);
	wput_u16(w, l->depth);
	refs_put(w, l->refs, l->nrefs);
	strlist_put(w, &l->deny);
}

int
list_get(struct rbuf *r, struct list *l)
{
	memset(l, 0, sizeof(*l));
	target_get(r, &l->target);
	l->flags = rget_u16(r);
	l->max_entries = rget_u32(r);
	if ((l->depth = rget_u16(r)) == 0)
		r->err = 1;
	refs_get(r, &l->refs, &l->nrefs);
	strlist_get(r, &l->deny, ABX_MAX_DENY, ABX_PATH_MAX * 2);
	GET_END(r, l, list_clear);
}

void
mutate_clear(struct mutate *m)
{
	target_clear(&m->src);
	target_clear(&m->dst);
	strlist_clear(&m->deny);
	memset(m, 0, sizeof(*m));
}

void
mutate_put(struct wbuf *w, const struct mutate *m)
{
	target_put(w, &m->src);
	target_put(w, &m->dst);
	wput_u16(w, m->flags);
	wput_u32(w, m->mode);
	strlist_put(w, &m->deny);
}

int
mutate_get(struct rbuf *r, struct mutate *m)
{
	memset(m, 0, sizeof(*m));
	target_get(r, &m->src);
	target_get(r, &m->dst);
	m->flags = rget_u16(r);
	m->mode = rget_u32(r);
	strlist_get(r, &m->deny, ABX_MAX_DENY, ABX_PATH_MAX * 2);
	GET_END(r, m, mutate_clear);
}

void
done_put(struct wbuf *w, const struct done *d)
{
	wput_u16(w, d->code);
	wput_u64(w, d->count);
}

int
done_get(struct rbuf *r, struct done *d)
{
	d->code = code_get(r);
	d->count = rget_u64(r);
	GET_PLAIN(r, d);
}
