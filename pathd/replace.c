/*
 * SPDX-License-Identifier: ISC
 *
 * The edits of files.edit.  Matches do not overlap and are found from the
 * left; bytes are bytes.  Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "pathd/replace.h"

/* How often the text is there, counted no further than one more than max. */
static uint64_t
occurrences(const struct text *t, const char *find, size_t n, uint64_t max)
{
	const uint8_t *p = t->p, *end = t->p + t->len;
	uint64_t count = 0;

	while (count <= max &&
	       (p = memmem(p, (size_t)(end - p), find, n)) != NULL) {
		count++;
		p += n;
	}
	return count;
}

/* Build the text anew with every match replaced. */
static int
rebuild(struct text *t, const char *find, size_t n, const char *by, size_t m,
    size_t newlen)
{
	const uint8_t *p = t->p, *end = t->p + t->len, *q;
	uint8_t *out, *o;

	if ((out = o = malloc(newlen + 1)) == NULL)
		return -1;
	while ((q = memmem(p, (size_t)(end - p), find, n)) != NULL) {
		memcpy(o, p, (size_t)(q - p));
		o += q - p;
		memcpy(o, by, m);
		o += m;
		p = q + n;
	}
	memcpy(o, p, (size_t)(end - p));
	free(t->p);
	t->p = out;
	t->len = newlen;
	return 0;
}

static enum code
replace_one(struct text *t, const struct edit_row *r, uint64_t max)
{
	size_t n = strlen(r->find), m = strlen(r->replace);
	uint64_t found = occurrences(t, r->find, n, r->count);
	uint64_t grown;

	if (found < r->count)
		return C_EDIT_NO_MATCH;
	if (found > r->count)
		return C_EDIT_AMBIGUOUS;
	if (__builtin_mul_overflow((uint64_t)m, found, &grown) ||
	    __builtin_add_overflow(grown, t->len - n * found, &grown) ||
	    grown > max || grown >= SIZE_MAX)
		return C_LIM_MAX_BYTES;
	return rebuild(t, r->find, n, r->replace, m, (size_t)grown) == 0
		   ? C_OK
		   : C_SRV_UNAVAILABLE;
}

enum code
replace_all(struct text *t, const struct edit_row *rows, size_t n, uint64_t max,
    uint64_t *count)
{
	enum code code;
	size_t i;

	*count = 0;
	for (i = 0; i < n; i++) {
		if ((code = replace_one(t, &rows[i], max)) != C_OK)
			return code;
		*count += rows[i].count;
	}
	return C_OK;
}
