/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of the payloads of pathd's operations on trees and of
 * edits.  Pure; as payload.c.
 */
#include <stdlib.h>
#include <string.h>

#include "common/codes.h"
#include "common/payload.h"
#include "common/payload_int.h"

void
bulk_clear(struct bulk *b)
{
	size_t i;

	target_clear(&b->dst);
	for (i = 0; i < b->nsrc; i++)
		target_clear(&b->src[i]);
	free(b->src);
	strlist_clear(&b->names);
	free(b->pattern);
	free(b->refs);
	strlist_clear(&b->deny);
	memset(b, 0, sizeof(*b));
}

void
bulk_put(struct wbuf *w, const struct bulk *b)
{
	size_t i;

	wput_u8(w, b->has_dst);
	if (b->has_dst)
		target_put(w, &b->dst);
	wput_u16(w, (uint16_t)b->nsrc);
	for (i = 0; i < b->nsrc; i++)
		target_put(w, &b->src[i]);
	strlist_put(w, &b->names);
	wput_str(w, b->pattern);
	wput_u16(w, b->flags);
	wput_u64(w, b->max_bytes);
	wput_u64(w, b->max_entries);
	refs_put(w, b->refs, b->nrefs);
	strlist_put(w, &b->deny);
	digest_put(w, b->has_digest, b->digest);
}

static void
sources_get(struct rbuf *r, struct bulk *b)
{
	uint16_t n = rget_u16(r);

	if (n > ABX_MAX_RESOLVE ||
	    (n > 0 && (b->src = calloc(n, sizeof(*b->src))) == NULL))
		r->err = 1;
	while (!r->err && b->nsrc < n)
		if (target_get(r, &b->src[b->nsrc]) == 0)
			b->nsrc++;
}

int
bulk_get(struct rbuf *r, struct bulk *b)
{
	memset(b, 0, sizeof(*b));
	if ((b->has_dst = (uint8_t)rget_bool(r)))
		target_get(r, &b->dst);
	sources_get(r, b);
	strlist_get(r, &b->names, ABX_MAX_RESOLVE, ABX_PATH_MAX);
	b->pattern = rget_str(r, ABX_PATTERN_MAX);
	b->flags = rget_u16(r);
	b->max_bytes = rget_u64(r);
	b->max_entries = rget_u64(r);
	refs_get(r, &b->refs, &b->nrefs);
	strlist_get(r, &b->deny, ABX_MAX_DENY, ABX_PATH_MAX * 2);
	digest_get(r, &b->has_digest, b->digest);
	if (b->names.n != b->nsrc || (b->nsrc == 0 && !b->has_dst))
		r->err = 1;
	GET_END(r, b, bulk_clear);
}

void
edit_clear(struct edit *e)
{
	size_t i;

	target_clear(&e->target);
	for (i = 0; i < e->nrow; i++) {
		free(e->row[i].find);
		free(e->row[i].replace);
	}
	free(e->row);
	memset(e, 0, sizeof(*e));
}

void
edit_put(struct wbuf *w, const struct edit *e)
{
	size_t i;

	target_put(w, &e->target);
	wput_u16(w, e->flags);
	wput_u64(w, e->max_bytes);
	wput_u64(w, e->size);
	wput_i64(w, e->mtime);
	wput_u32(w, e->mtime_ns);
	wput_u16(w, (uint16_t)e->nrow);
	for (i = 0; i < e->nrow; i++) {
		wput_str(w, e->row[i].find);
		wput_str(w, e->row[i].replace);
		wput_u32(w, e->row[i].count);
	}
}

/* Nothing is found everywhere, so what is looked for is something. */
static void
row_get(struct rbuf *r, struct edit_row *row)
{
	row->find = rget_str(r, SIZE_MAX);
	row->replace = rget_str(r, SIZE_MAX);
	row->count = rget_u32(r);
	if (row->count == 0 || row->find == NULL || row->find[0] == '\0')
		r->err = 1;
}

int
edit_get(struct rbuf *r, struct edit *e)
{
	uint16_t n;

	memset(e, 0, sizeof(*e));
	target_get(r, &e->target);
	e->flags = rget_u16(r);
	e->max_bytes = rget_u64(r);
	e->size = rget_u64(r);
	mtime_get(r, &e->mtime, &e->mtime_ns);
	n = rget_u16(r);
	if (n == 0 || n > ABX_MAX_EDITS ||
	    (!r->err && (e->row = calloc(n, sizeof(*e->row))) == NULL))
		r->err = 1;
	while (!r->err && e->nrow < n)
		row_get(r, &e->row[e->nrow++]);
	GET_END(r, e, edit_clear);
}

void
edit_fin_clear(struct edit_fin *f)
{
	free(f->diff);
	memset(f, 0, sizeof(*f));
}

void
edit_fin_put(struct wbuf *w, const struct edit_fin *f)
{
	wput_u64(w, f->count);
	wput_u64(w, f->size);
	wput_i64(w, f->mtime);
	wput_u32(w, f->mtime_ns);
	wput_u64(w, f->dev);
	wput_u64(w, f->ino);
	wput_u8(w, f->truncated);
	wput_bytes(w, f->diff, f->difflen);
}

int
edit_fin_get(struct rbuf *r, struct edit_fin *f)
{
	const uint8_t *p;

	memset(f, 0, sizeof(*f));
	f->count = rget_u64(r);
	f->size = rget_u64(r);
	mtime_get(r, &f->mtime, &f->mtime_ns);
	f->dev = rget_u64(r);
	f->ino = rget_u64(r);
	f->truncated = (uint8_t)rget_bool(r);
	p = rget_bytes(r, &f->difflen, ABX_DIFF_MAX);
	if (p == NULL || (f->diff = malloc(f->difflen + 1)) == NULL)
		r->err = 1;
	else
		memcpy(f->diff, p, f->difflen);
	GET_END(r, f, edit_fin_clear);
}

void
pack_fin_clear(struct pack_fin *f)
{
	size_t i;

	for (i = 0; i < f->nskip; i++)
		free(f->skip[i].path);
	free(f->skip);
	memset(f, 0, sizeof(*f));
}

void
pack_fin_put(struct wbuf *w, const struct pack_fin *f)
{
	size_t i;

	wput_u64(w, f->entries);
	wput_u16(w, (uint16_t)f->nskip);
	for (i = 0; i < f->nskip; i++) {
		wput_str(w, f->skip[i].path);
		wput_u16(w, f->skip[i].code);
	}
}

int
pack_fin_get(struct rbuf *r, struct pack_fin *f)
{
	struct pack_skip *s;
	uint16_t n;

	memset(f, 0, sizeof(*f));
	f->entries = rget_u64(r);
	n = rget_u16(r);
	if (n > ABX_MAX_SKIPPED ||
	    (n > 0 && (f->skip = calloc(n, sizeof(*f->skip))) == NULL))
		r->err = 1;
	while (!r->err && f->nskip < n) {
		s = &f->skip[f->nskip++];
		s->path = rget_str(r, ABX_PATH_MAX);
		s->code = rget_u16(r);
		if (s->path == NULL || s->code >= C_COUNT)
			r->err = 1;
	}
	GET_END(r, f, pack_fin_clear);
}
