/*
 * SPDX-License-Identifier: ISC
 *
 * Encoders and decoders of what is asked about the workspaces of sessions.
 * Pure; as payload.c.
 */
#include <stdlib.h>
#include <string.h>

#include "common/codes.h"
#include "common/payload.h"

void
space_clear(struct space *s)
{
	strlist_clear(&s->names);
	memset(s, 0, sizeof(*s));
}

void
space_put(struct wbuf *w, const struct space *s)
{
	wput_u8(w, s->verb);
	wput_u32(w, s->root);
	wput_u64(w, s->max_entries);
	strlist_put(w, &s->names);
}

int
space_get(struct rbuf *r, struct space *s)
{
	size_t i;

	memset(s, 0, sizeof(*s));
	s->verb = rget_u8(r);
	s->root = rget_u32(r);
	s->max_entries = rget_u64(r);
	strlist_get(r, &s->names, ABX_MAX_WORKSPACES_EACH, ABX_WORKSPACE_LEN);
	for (i = 0; i < s->names.n; i++)
		if (!workspace_name_ok(s->names.v[i]))
			r->err = 1;
	if (s->verb > SPACE_DROP || (s->verb == SPACE_LIST) != (i == 0) ||
	    (s->verb == SPACE_DROP && i != 1))
		r->err = 1;
	if (!r->err)
		return 0;
	space_clear(s);
	return -1;
}

void
space_ans_clear(struct space_ans *a)
{
	free(a->v);
	memset(a, 0, sizeof(*a));
}

int
space_ans_add(
    struct space_ans *a, const char *name, uint64_t bytes, uint8_t more)
{
	struct space_row *v;

	if (a->n >= ABX_MAX_WORKSPACES)
		return -1;
	v = recallocarray(a->v, a->n, a->n + 1, sizeof(*v));
	if (v == NULL)
		return -1;
	a->v = v;
	strlcpy(v[a->n].name, name, sizeof(v[a->n].name));
	v[a->n].bytes = bytes;
	v[a->n].more = more;
	a->n++;
	return 0;
}

void
space_ans_put(struct wbuf *w, const struct space_ans *a)
{
	size_t i;

	wput_u16(w, a->code);
	wput_u8(w, a->more);
	wput_u16(w, (uint16_t)a->n);
	for (i = 0; i < a->n; i++) {
		wput_str(w, a->v[i].name);
		wput_u64(w, a->v[i].bytes);
		wput_u8(w, a->v[i].more);
	}
}

int
space_ans_get(struct rbuf *r, struct space_ans *a)
{
	size_t i, n;

	memset(a, 0, sizeof(*a));
	a->code = rget_u16(r);
	a->more = rget_bool(r);
	n = rget_u16(r);
	if (a->code >= C_COUNT || n > ABX_MAX_WORKSPACES)
		r->err = 1;
	if (!r->err && n > 0 && (a->v = calloc(n, sizeof(*a->v))) == NULL)
		r->err = 1;
	for (i = 0; i < n && !r->err; i++) {
		rget_strto(r, a->v[i].name, sizeof(a->v[i].name));
		a->v[i].bytes = rget_u64(r);
		a->v[i].more = rget_bool(r);
		if (!r->err && !workspace_name_ok(a->v[i].name))
			r->err = 1;
	}
	a->n = i;
	if (!r->err)
		return 0;
	space_ans_clear(a);
	return -1;
}
