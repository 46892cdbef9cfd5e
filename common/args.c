/*
 * SPDX-License-Identifier: ISC
 *
 * Argument lists and their encoding.  Pure; judges form, never meaning.
 */
#include "common/args.h"

#include <stdlib.h>
#include <string.h>

#define FIRST 4 /* arguments that most calls do with */

static void
free_wiped(char *s, size_t len)
{
	if (s != NULL)
		explicit_bzero(s, len);
	free(s);
}

static void
arg_clear(struct arg *a)
{
	size_t i;

	free(a->name);
	free_wiped(a->s, a->len);
	for (i = 0; i < a->n; i++) {
		free_wiped(a->list[i], strlen(a->list[i]));
		if (a->vals != NULL)
			free_wiped(a->vals[i], strlen(a->vals[i]));
	}
	free(a->list);
	free(a->vals);
	if (a->sub != NULL) {
		args_clear(a->sub);
		free(a->sub);
	}
	memset(a, 0, sizeof(*a));
}

void
args_clear(struct args *as)
{
	size_t i;

	for (i = 0; i < as->n; i++)
		arg_clear(&as->v[i]);
	free(as->v);
	memset(as, 0, sizeof(*as));
}

struct arg *
args_add(struct args *as, const char *name, enum arg_type type)
{
	struct arg *a;

	if (as->n >= ABX_MAX_ARGS)
		return NULL;
	/* grow in powers of two from FIRST; n itself tells when */
	if (as->n == 0 || (as->n >= FIRST && (as->n & (as->n - 1)) == 0)) {
		a = reallocarray(
		    as->v, as->n == 0 ? FIRST : as->n * 2, sizeof(*a));
		if (a == NULL)
			return NULL;
		as->v = a;
	}
	a = &as->v[as->n];
	memset(a, 0, sizeof(*a));
	if ((a->name = strdup(name)) == NULL)
		return NULL;
	a->type = type;
	as->n++;
	return a;
}

struct arg *
args_find(const struct args *as, const char *name)
{
	size_t i;

	for (i = 0; i < as->n; i++)
		if (strcmp(as->v[i].name, name) == 0)
			return &as->v[i];
	return NULL;
}

int
arg_set_str(struct arg *a, const char *s, size_t len)
{
	char *copy;

	if (len == SIZE_MAX || (copy = malloc(len + 1)) == NULL)
		return -1;
	memcpy(copy, s, len);
	copy[len] = '\0';
	free_wiped(a->s, a->len);
	a->s = copy;
	a->len = len;
	return 0;
}

int
arg_push(struct arg *a, const char *key, const char *val)
{
	char **l, *k, *v = NULL;
	size_t cap;

	/* grow in powers of two; n itself tells when */
	if (a->n == 0 || (a->n & (a->n - 1)) == 0) {
		cap = a->n == 0 ? 1 : a->n * 2;
		if ((l = reallocarray(a->list, cap, sizeof(*l))) == NULL)
			return -1;
		a->list = l;
		if (val != NULL) {
			l = reallocarray(a->vals, cap, sizeof(*l));
			if (l == NULL)
				return -1;
			a->vals = l;
		}
	}
	if ((k = strdup(key)) == NULL)
		return -1;
	if (val != NULL && (v = strdup(val)) == NULL) {
		free(k);
		return -1;
	}
	a->list[a->n] = k;
	if (v != NULL)
		a->vals[a->n] = v;
	a->n++;
	return 0;
}

static void
arg_put(struct wbuf *w, const struct arg *a)
{
	size_t i;

	wput_str(w, a->name);
	wput_u8(w, a->type);
	switch (a->type) {
	case A_STR:
	case A_QUERY:
	case A_OTHER:
		wput_bytes(w, a->s, a->len);
		break;
	case A_INT:
	case A_BOOL:
		wput_i64(w, a->i);
		break;
	case A_LIST:
	case A_MAP:
	case A_ROWS:
		wput_u32(w, (uint32_t)a->n);
		for (i = 0; i < a->n; i++) {
			wput_str(w, a->list[i]);
			if (a->type != A_LIST)
				wput_str(w, a->vals[i]);
		}
		break;
	case A_ARGS:
		args_put(w, a->sub);
		break;
	case A_NUM:
	case A_NULL:
		break;
	}
}

void
args_put(struct wbuf *w, const struct args *as)
{
	size_t i;

	wput_u16(w, (uint16_t)as->n);
	for (i = 0; i < as->n; i++)
		arg_put(w, &as->v[i]);
}

static int args_get_depth(struct rbuf *, struct args *, int);

static int
arg_get_str(struct rbuf *r, struct arg *a)
{
	const uint8_t *p;
	size_t n;

	if ((p = rget_bytes(r, &n, ABX_BODY_MAX)) == NULL ||
	    memchr(p, '\0', n) != NULL)
		return -1;
	return arg_set_str(a, (const char *)p, n);
}

static int
arg_get_list(struct rbuf *r, struct arg *a)
{
	uint32_t n = rget_u32(r);
	int pairs = a->type != A_LIST;
	char *k, *v = NULL;
	int rc = 0;

	if (n > ABX_MAX_ARGV)
		return -1;
	while (n-- > 0 && rc == 0 && !r->err) {
		k = rget_str(r, ABX_BODY_MAX);
		if (k != NULL && pairs)
			v = rget_str(r, ABX_BODY_MAX);
		if (k == NULL || (pairs && v == NULL))
			rc = -1;
		else
			rc = arg_push(a, k, v);
		if (k != NULL)
			free_wiped(k, strlen(k));
		if (v != NULL)
			free_wiped(v, strlen(v));
		v = NULL;
	}
	return r->err ? -1 : rc;
}

static int
arg_get(struct rbuf *r, struct arg *a, int depth)
{
	switch (a->type) {
	case A_STR:
	case A_QUERY:
	case A_OTHER:
		return arg_get_str(r, a);
	case A_BOOL:
	case A_INT:
		a->i = rget_i64(r);
		return r->err || (a->type == A_BOOL && (a->i & ~1) != 0) ? -1
									 : 0;
	case A_LIST:
	case A_MAP:
	case A_ROWS:
		return arg_get_list(r, a);
	case A_ARGS:
		if (depth > 0 || (a->sub = calloc(1, sizeof(*a->sub))) == NULL)
			return -1;
		return args_get_depth(r, a->sub, depth + 1);
	case A_NUM:
	case A_NULL:
		return 0;
	}
	return -1;
}

static int
args_get_depth(struct rbuf *r, struct args *as, int depth)
{
	uint16_t n = rget_u16(r);
	struct arg *a;
	char name[129];
	uint8_t type;

	memset(as, 0, sizeof(*as));
	if (n > ABX_MAX_ARGS)
		r->err = 1;
	if (r->err)
		return -1;
	while (n-- > 0) {
		if (rget_strto(r, name, sizeof(name)) == -1)
			goto fail;
		type = rget_u8(r);
		if (r->err || type < A_STR || type > A_ROWS ||
		    args_find(as, name) != NULL ||
		    (a = args_add(as, name, type)) == NULL ||
		    arg_get(r, a, depth) == -1)
			goto fail;
	}
	return 0;
fail:
	r->err = 1;
	args_clear(as);
	return -1;
}

int
args_get(struct rbuf *r, struct args *as)
{
	return args_get_depth(r, as, 0);
}
