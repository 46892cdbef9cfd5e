/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of what many payloads are made of: root references,
 * times, digests, facts and targets (the others: payload_*.c).  Pure.
 * Decoders take hostile bytes: every count is bounded before memory is taken
 * for it.
 */
#include "common/payload.h"

#include <stdlib.h>
#include <string.h>

#include "common/codes.h"
#include "common/payload_int.h"

void
ref_put(struct wbuf *w, const struct rootref *f)
{
	wput_u32(w, f->root);
	wput_str(w, f->sub);
}

/* A sub is empty or one component that is not "." or "..". */
void
ref_get(struct rbuf *r, struct rootref *f)
{
	f->root = rget_u32(r);
	rget_strto(r, f->sub, sizeof(f->sub));
	if (f->root >= ABX_MAX_ROOTS || strchr(f->sub, '/') != NULL ||
	    strcmp(f->sub, ".") == 0 || strcmp(f->sub, "..") == 0)
		r->err = 1;
}

void
refs_put(struct wbuf *w, const struct rootref *f, size_t n)
{
	size_t i;

	wput_u16(w, (uint16_t)n);
	for (i = 0; i < n; i++)
		ref_put(w, &f[i]);
}

void
refs_get(struct rbuf *r, struct rootref **f, size_t *n)
{
	uint16_t count = rget_u16(r);
	size_t i;

	*f = NULL;
	*n = 0;
	if (count > ABX_MAX_ROOTREFS)
		r->err = 1;
	if (r->err || count == 0)
		return;
	if ((*f = calloc(count, sizeof(**f))) == NULL) {
		r->err = 1;
		return;
	}
	*n = count;
	for (i = 0; i < count; i++)
		ref_get(r, &(*f)[i]);
}

void
mtime_get(struct rbuf *r, int64_t *s, uint32_t *ns)
{
	*s = rget_i64(r);
	*ns = rget_u32(r);
	if (*ns > 999999999)
		r->err = 1;
}

uint16_t
code_get(struct rbuf *r)
{
	uint16_t c = rget_u16(r);

	if (c >= C_COUNT)
		r->err = 1;
	return c;
}

int
reqid_ok(const char *s)
{
	return strlen(s) == ABX_REQID_LEN && s[0] == 'r' && s[1] == '-' &&
	       strspn(s + 2,
		   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		   "0123456789-_") == ABX_REQID_LEN - 2;
}

int
rel_ok(const char *s, size_t longest)
{
	size_t n;

	if (*s == '\0')
		return 1;
	for (;;) {
		n = strcspn(s, "/");
		if (n == 0 || n > longest || (n == 1 && s[0] == '.') ||
		    (n == 2 && s[0] == '.' && s[1] == '.'))
			return 0;
		if (s[n] == '\0')
			return 1;
		s += n + 1;
	}
}

void
digest_put(struct wbuf *w, int has, const uint8_t digest[32])
{
	wput_u8(w, has != 0);
	if (has)
		wput_raw(w, digest, 32);
}

void
digest_get(struct rbuf *r, uint8_t *has, uint8_t digest[32])
{
	const uint8_t *p;

	if ((*has = (uint8_t)rget_bool(r)) && (p = rget_raw(r, 32)) != NULL)
		memcpy(digest, p, 32);
}

void
facts_clear(struct facts *f)
{
	free(f->path);
	strlist_clear(&f->via);
	memset(f, 0, sizeof(*f));
}

void
facts_put(struct wbuf *w, const struct facts *f)
{
	wput_u8(w, f->status);
	wput_u32(w, (uint32_t)f->err);
	wput_str(w, f->path);
	wput_u8(w, f->ref);
	wput_u16(w, f->rel);
	wput_u8(w, f->kind);
	wput_u16(w, f->missing);
	wput_u8(w, f->symlink);
	strlist_put(w, &f->via);
	wput_u32(w, f->mode);
	wput_u32(w, f->nlink);
	wput_u64(w, f->size);
	wput_i64(w, f->mtime);
	wput_u32(w, f->mtime_ns);
	wput_u64(w, f->dev);
	wput_u64(w, f->ino);
}

static int
place_ok(const char *path)
{
	return path[0] == '/' && rel_ok(path + 1, 255);
}

/* Where a walk ended, if that is known. */
static int
ended_ok(const struct facts *f)
{
	return f->path[0] == '\0' || place_ok(f->path);
}

/* What can be known of facts without the file system: the path is canonical,
 * the root ends where a name does, and what is missing is part of it. */
static int
facts_ok(const struct facts *f)
{
	size_t len = strlen(f->path), names = 0, i;

	if (f->path[0] != '/' || !rel_ok(f->path + 1, 255) || f->rel > len ||
	    (f->rel > 0 && f->path[f->rel] != '\0' && f->path[f->rel] != '/'))
		return 0;
	for (i = 0; i < len; i++)
		names += f->path[i] == '/';
	return f->missing <= names &&
	       (f->missing > 0) == (f->kind == FK_MISSING);
}

int
facts_get(struct rbuf *r, struct facts *f)
{
	size_t i;

	memset(f, 0, sizeof(*f));
	f->status = rget_u8(r);
	f->err = (int32_t)rget_u32(r);
	f->path = rget_str(r, ABX_PATH_MAX);
	f->ref = rget_u8(r);
	f->rel = rget_u16(r);
	f->kind = rget_u8(r);
	f->missing = rget_u16(r);
	f->symlink = (uint8_t)rget_bool(r);
	strlist_get(r, &f->via, FACTS_VIA_MAX, ABX_PATH_MAX);
	f->mode = rget_u32(r);
	f->nlink = rget_u32(r);
	f->size = rget_u64(r);
	mtime_get(r, &f->mtime, &f->mtime_ns);
	f->dev = rget_u64(r);
	f->ino = rget_u64(r);
	if (f->status > FS_ERRNO || f->kind > FK_OTHER || f->size > INT64_MAX)
		r->err = 1;
	if (!r->err && !(f->status == FS_OK ? facts_ok(f) : ended_ok(f)))
		r->err = 1;
	for (i = 0; !r->err && i < f->via.n; i++)
		if (!place_ok(f->via.v[i]))
			r->err = 1;
	GET_END(r, f, facts_clear);
}

void
target_clear(struct target *t)
{
	free(t->rel);
	memset(t, 0, sizeof(*t));
}

void
target_put(struct wbuf *w, const struct target *t)
{
	ref_put(w, &t->ref);
	wput_str(w, t->rel);
	wput_u8(w, t->kind);
	wput_u64(w, t->dev);
	wput_u64(w, t->ino);
}

int
target_get(struct rbuf *r, struct target *t)
{
	memset(t, 0, sizeof(*t));
	ref_get(r, &t->ref);
	t->rel = rget_str(r, ABX_PATH_MAX);
	t->kind = rget_u8(r);
	t->dev = rget_u64(r);
	t->ino = rget_u64(r);
	if (t->kind > FK_OTHER || (t->rel != NULL && !rel_ok(t->rel, 255)))
		r->err = 1;
	GET_END(r, t, target_clear);
}
