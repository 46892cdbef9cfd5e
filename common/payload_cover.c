/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of what a command must not see: pathd's list of the
 * denied entries below a directory, and the question for it.  Pure; as
 * payload.c.
 */
#include <stdlib.h>
#include <string.h>

#include "common/payload.h"

void
covers_clear(struct covers *c)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		target_clear(&c->v[i]);
	free(c->v);
	memset(c, 0, sizeof(*c));
}

int
covers_add(
    struct covers *c, const char *rel, uint8_t kind, uint64_t dev, uint64_t ino)
{
	struct target *t;

	if (c->v == NULL)
		c->v = calloc(ABX_MAX_COVERS, sizeof(*c->v));
	if (c->v == NULL || c->n == ABX_MAX_COVERS)
		return -1;
	t = &c->v[c->n];
	if ((t->rel = strdup(rel)) == NULL)
		return -1;
	t->kind = kind;
	t->dev = dev;
	t->ino = ino;
	c->n++;
	return 0;
}

void
covers_put(struct wbuf *w, const struct covers *c)
{
	size_t i;

	wput_u32(w, (uint32_t)c->n);
	for (i = 0; i < c->n; i++)
		target_put(w, &c->v[i]);
}

int
covers_get(struct rbuf *r, struct covers *c)
{
	uint32_t n = rget_u32(r);

	memset(c, 0, sizeof(*c));
	if (n > ABX_MAX_COVERS)
		r->err = 1;
	if (!r->err && n > 0 &&
	    (c->v = calloc(ABX_MAX_COVERS, sizeof(*c->v))) == NULL)
		r->err = 1;
	while (!r->err && c->n < n) {
		if (target_get(r, &c->v[c->n]) == -1)
			break;
		/* never the directory itself */
		if (c->v[c->n++].rel[0] == '\0')
			r->err = 1;
	}
	if (r->err) {
		covers_clear(c);
		return -1;
	}
	return 0;
}

static int
has(const struct covers *c, const struct target *t)
{
	size_t i;

	for (i = 0; i < c->n; i++)
		if (c->v[i].ino == t->ino && c->v[i].dev == t->dev &&
		    c->v[i].kind == t->kind && strcmp(c->v[i].rel, t->rel) == 0)
			return 1;
	return 0;
}

int
covers_equal(const struct covers *a, const struct covers *b)
{
	size_t i;

	if (a->n != b->n)
		return 0;
	/* directories are listed in any order */
	for (i = 0; i < a->n; i++)
		if (!has(b, &a->v[i]))
			return 0;
	return 1;
}

void
denied_clear(struct denied *d)
{
	target_clear(&d->target);
	strlist_clear(&d->deny);
	strlist_clear(&d->skip);
}

void
denied_put(struct wbuf *w, const struct denied *d)
{
	target_put(w, &d->target);
	strlist_put(w, &d->deny);
	strlist_put(w, &d->skip);
}

int
denied_get(struct rbuf *r, struct denied *d)
{
	memset(d, 0, sizeof(*d));
	if (target_get(r, &d->target) == -1 ||
	    strlist_get(r, &d->deny, ABX_MAX_DENY, ABX_PATH_MAX) == -1 ||
	    strlist_get(r, &d->skip, 256, ABX_PATH_MAX) == -1) {
		denied_clear(d);
		return -1;
	}
	return 0;
}
