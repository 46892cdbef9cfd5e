/*
 * SPDX-License-Identifier: ISC
 *
 * Lists of strings.  Pure.
 */
#include "common/strlist.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

int
strlist_copy(struct strlist *dst, const struct strlist *src)
{
	size_t i;

	for (i = 0; i < src->n; i++)
		if (strlist_add(dst, src->v[i], strlen(src->v[i])) == -1)
			return -1;
	return 0;
}

int
strlist_has(const struct strlist *l, const char *s)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		if (strcmp(l->v[i], s) == 0)
			return 1;
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
	if (!r->err)
		return 0;
	strlist_clear(l);
	return -1;
}
