/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of the payloads between monitor, listener, pathd and
 * parent (those of execd are in payload_exec.c).  Pure.  Decoders take
 * hostile bytes: every count is bounded before memory is taken for it.
 */
#include "common/payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/codes.h"

/* Finish a decoder: clear on error. */
#define GET_END(r, x, clear)       \
	do {                       \
		if ((r)->err) {    \
			clear(x);  \
			return -1; \
		}                  \
		return 0;          \
	} while (0)
/* The same for a struct that owns nothing. */
#define GET_PLAIN(r, x)                             \
	do {                                        \
		if ((r)->err) {                     \
			memset(x, 0, sizeof(*(x))); \
			return -1;                  \
		}                                   \
		return 0;                           \
	} while (0)

/* ---- small pieces ---- */

void
strlist_clear(struct strlist *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	memset(l, 0, sizeof(*l));
}

int
strlist_add(struct strlist *l, const char *s, size_t len)
{
	char **v, *copy;

	/* grow in powers of two; n itself tells when */
	if (l->n == 0 || (l->n & (l->n - 1)) == 0) {
		v = reallocarray(l->v, l->n == 0 ? 1 : l->n * 2, sizeof(*v));
		if (v == NULL)
			return -1;
		l->v = v;
	}
	if (len == SIZE_MAX || (copy = malloc(len + 1)) == NULL)
		return -1;
	memcpy(copy, s, len);
	copy[len] = '\0';
	l->v[l->n++] = copy;
	return 0;
}

void
strlist_put(struct wbuf *w, const struct strlist *l)
{
	size_t i;

	wput_u32(w, (uint32_t)l->n);
	for (i = 0; i < l->n; i++)
		wput_str(w, l->v[i]);
}

int
strlist_get(struct rbuf *r, struct strlist *l, size_t maxn, size_t maxlen)
{
	uint32_t n = rget_u32(r);
	const uint8_t *p;
	size_t len;

	memset(l, 0, sizeof(*l));
	if (n > maxn)
		r->err = 1;
	while (!r->err && n-- > 0) {
		if ((p = rget_bytes(r, &len, maxlen)) == NULL)
			break;
		if (memchr(p, '\0', len) != NULL ||
		    strlist_add(l, (const char *)p, len) == -1)
			r->err = 1;
	}
	GET_END(r, l, strlist_clear);
}

static void
ref_put(struct wbuf *w, const struct rootref *f)
{
	wput_u32(w, f->root);
	wput_str(w, f->sub);
}

/* A sub is empty or one component that is not "." or "..". */
static void
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

static uint16_t
code_get(struct rbuf *r)
{
	uint16_t c = rget_u16(r);

	if (c >= C_COUNT)
		r->err = 1;
	return c;
}

/* Normal components: none empty, "." or "..", and none longer than longest. */
static int
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

/* ---- listener and monitor ---- */

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
ask_clear(struct ask *a)
{
	args_clear(&a->args);
	explicit_bzero(a, sizeof(*a));
}

void
ask_put(struct wbuf *w, const struct ask *a)
{
	wput_str(w, a->reqid);
	wput_u16(w, a->op);
	wput_str(w, a->opname);
	wput_u8(w, a->has_cred);
	if (a->has_cred)
		wput_str(w, a->token);
	wput_u8(w, a->has_peer);
	if (a->has_peer)
		wput_raw(w, a->peer, sizeof(a->peer));
	wput_str(w, a->remote);
	wput_u16(w, a->flags);
	wput_u8(w, a->body);
	wput_u64(w, a->length);
	wput_str(w, a->if_match);
	wput_str(w, a->if_none_match);
	wput_str(w, a->last_event);
	wput_str(w, a->idem);
	wput_u8(w, a->bad_idem);
	digest_put(w, a->has_digest, a->digest);
	wput_u8(w, a->bad_digest);
	wput_u8(w, a->args_in_fd);
	if (!a->args_in_fd)
		args_put(w, &a->args);
}

/* "r-" and 22 base64url characters, since it goes into logs and headers. */
static int
reqid_ok(const char *s)
{
	return strlen(s) == ABX_REQID_LEN && s[0] == 'r' && s[1] == '-' &&
	       strspn(s + 2,
		   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		   "0123456789-_") == ABX_REQID_LEN - 2;
}

int
ask_get(struct rbuf *r, struct ask *a)
{
	const uint8_t *p;

	memset(a, 0, sizeof(*a));
	rget_strto(r, a->reqid, sizeof(a->reqid));
	a->op = rget_u16(r);
	rget_strto(r, a->opname, sizeof(a->opname));
	if ((a->has_cred = (uint8_t)rget_bool(r)))
		rget_strto(r, a->token, sizeof(a->token));
	if ((a->has_peer = (uint8_t)rget_bool(r)) &&
	    (p = rget_raw(r, sizeof(a->peer))) != NULL)
		memcpy(a->peer, p, sizeof(a->peer));
	rget_strto(r, a->remote, sizeof(a->remote));
	a->flags = rget_u16(r);
	a->body = rget_u8(r);
	a->length = rget_u64(r);
	rget_strto(r, a->if_match, sizeof(a->if_match));
	rget_strto(r, a->if_none_match, sizeof(a->if_none_match));
	rget_strto(r, a->last_event, sizeof(a->last_event));
	rget_strto(r, a->idem, sizeof(a->idem));
	a->bad_idem = (uint8_t)rget_bool(r);
	digest_get(r, &a->has_digest, a->digest);
	a->bad_digest = (uint8_t)rget_bool(r);
	a->args_in_fd = (uint8_t)rget_bool(r);
	if (a->flags > 31 || a->body > ASK_BODY_BAD || !reqid_ok(a->reqid))
		r->err = 1;
	errno = 0;
	if (!r->err && !a->args_in_fd && args_get(r, &a->args) == -1 &&
	    errno == ENOMEM) {
		a->unread = 1;
		rbuf_init(r, NULL, 0);
	}
	GET_END(r, a, ask_clear);
}

void
ans_clear(struct ans *a)
{
	free(a->body);
	memset(a, 0, sizeof(*a));
}

void
ans_put(struct wbuf *w, const struct ans *a)
{
	wput_u8(w, a->kind);
	wput_u16(w, a->status);
	wput_u16(w, a->code);
	wput_u16(w, a->flags);
	wput_u32(w, a->retry_after);
	wput_u64(w, a->size);
	wput_i64(w, a->mtime);
	wput_u32(w, a->mtime_ns);
	wput_u64(w, a->dev);
	wput_u64(w, a->ino);
	wput_str(w, a->body);
	if (a->kind == ANS_JSON && a->body == NULL)
		w->err = 1; /* out of memory */
}

int
ans_get(struct rbuf *r, struct ans *a)
{
	memset(a, 0, sizeof(*a));
	a->kind = rget_u8(r);
	a->status = rget_u16(r);
	a->code = code_get(r);
	a->flags = rget_u16(r);
	a->retry_after = rget_u32(r);
	a->size = rget_u64(r);
	mtime_get(r, &a->mtime, &a->mtime_ns);
	a->dev = rget_u64(r);
	a->ino = rget_u64(r);
	a->body = rget_str(r, ABX_BODY_MAX);
	if (a->kind > ANS_RUN || a->status < 200 || a->status > 599)
		r->err = 1;
	GET_END(r, a, ans_clear);
}

void
fin_put(struct wbuf *w, const struct fin *f)
{
	wput_u64(w, f->bytes_in);
	wput_u64(w, f->bytes_out);
	wput_u8(w, f->outcome);
	wput_u64(w, f->us);
}

int
fin_get(struct rbuf *r, struct fin *f)
{
	f->bytes_in = rget_u64(r);
	f->bytes_out = rget_u64(r);
	f->outcome = rget_u8(r);
	f->us = rget_u64(r);
	if (f->outcome > FIN_CANCELLED)
		r->err = 1;
	GET_PLAIN(r, f);
}

void
reject_put(struct wbuf *w, const struct reject *j)
{
	wput_u16(w, j->code);
	wput_u32(w, j->count);
	wput_str(w, j->reqid);
	wput_str(w, j->remote);
}

int
reject_get(struct rbuf *r, struct reject *j)
{
	int named;

	j->code = code_get(r);
	j->count = rget_u32(r);
	rget_strto(r, j->reqid, sizeof(j->reqid));
	rget_strto(r, j->remote, sizeof(j->remote));
	named = j->reqid[0] != '\0';
	if (j->code == C_OK || j->count == 0 ||
	    named != (j->remote[0] != '\0') ||
	    (named && (j->count != 1 || !reqid_ok(j->reqid))))
		r->err = 1;
	GET_PLAIN(r, j);
}

void
lconf_clear(struct lconf *c)
{
	free(c->tokens);
	strlist_clear(&c->allowed_hosts);
	strlist_clear(&c->allowed_origins);
	strlist_clear(&c->trusted_proxies);
	explicit_bzero(c, sizeof(*c));
}

void
lconf_put(struct wbuf *w, const struct lconf *c)
{
	size_t i;

	wput_raw(w, c->hmac_key, sizeof(c->hmac_key));
	wput_u32(w, (uint32_t)c->ntokens);
	for (i = 0; i < c->ntokens; i++)
		wput_u32(w, c->tokens[i]);
	wput_u8(w, c->open);
	wput_u8(w, c->anonymous);
	wput_u8(w, c->anonymous_health);
	wput_u8(w, c->has_auth_exec);
	wput_u8(w, c->has_peers);
	wput_u64(w, c->header_timeout_ms);
	wput_u64(w, c->head_deadline_ms);
	wput_u64(w, c->idle_timeout_ms);
	wput_u64(w, c->shutdown_grace_ms);
	wput_u32(w, c->max_pre_auth);
	wput_u32(w, c->max_connections);
	wput_u64(w, c->max_header_bytes);
	wput_u64(w, c->max_request_bytes);
	strlist_put(w, &c->allowed_hosts);
	strlist_put(w, &c->allowed_origins);
	strlist_put(w, &c->trusted_proxies);
}

int
lconf_get(struct rbuf *r, struct lconf *c)
{
	const uint8_t *p;
	uint32_t n, i;

	memset(c, 0, sizeof(*c));
	if ((p = rget_raw(r, sizeof(c->hmac_key))) != NULL)
		memcpy(c->hmac_key, p, sizeof(c->hmac_key));
	n = rget_u32(r);
	if (n > 16384)
		r->err = 1;
	if (!r->err && n > 0 &&
	    (c->tokens = calloc(n, sizeof(*c->tokens))) == NULL)
		r->err = 1;
	for (i = 0; !r->err && i < n; i++)
		c->tokens[c->ntokens++] = rget_u32(r);
	c->open = (uint8_t)rget_bool(r);
	c->anonymous = (uint8_t)rget_bool(r);
	c->anonymous_health = (uint8_t)rget_bool(r);
	c->has_auth_exec = (uint8_t)rget_bool(r);
	c->has_peers = (uint8_t)rget_bool(r);
	c->header_timeout_ms = rget_u64(r);
	c->head_deadline_ms = rget_u64(r);
	c->idle_timeout_ms = rget_u64(r);
	c->shutdown_grace_ms = rget_u64(r);
	c->max_pre_auth = rget_u32(r);
	c->max_connections = rget_u32(r);
	c->max_header_bytes = rget_u64(r);
	c->max_request_bytes = rget_u64(r);
	strlist_get(r, &c->allowed_hosts, 1024, 255);
	strlist_get(r, &c->allowed_origins, 1024, 512);
	strlist_get(r, &c->trusted_proxies, 1024, 64);
	GET_END(r, c, lconf_clear);
}

/* ---- monitor and pathd ---- */

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
