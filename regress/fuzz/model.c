/*
 * SPDX-License-Identifier: ISC
 *
 * Naive matching of one segment (server.json(5), "Globs", read literally), and
 * another's opinion on JSON.
 */
#include "regress/fuzz/model.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "regress/fuzz/fuzz.h"

/* The members of a class from its '[' on as a set of bytes; the pattern bytes
 * that it takes, 0 when it is none. */
static size_t
class_set(const char *p, size_t n, unsigned char set[256])
{
	size_t i = 1, c, first;
	int not = 0;

	for (c = 0; c < 256; c++)
		set[c] = 0;
	if (i < n && p[i] == '!') {
		not = 1;
		i++;
	}
	for (first = i;; i++) {
		if (i >= n)
			return 0;
		if (p[i] == ']' && i > first)
			break;
		set[(unsigned char)p[i]] = 1;
		/* "a-z", but "a-]" is an a, a - and the end */
		if (i + 2 < n && p[i + 1] == '-' && p[i + 2] != ']') {
			if ((unsigned char)p[i] > (unsigned char)p[i + 2])
				return 0;
			for (c = (unsigned char)p[i];
			     c <= (unsigned char)p[i + 2]; c++)
				set[c] = 1;
			i += 2;
		}
	}
	for (c = 0; c < 256; c++)
		set[c] ^= (unsigned char)not ;
	return i + 1;
}

int
model_segment_ok(const char *p, size_t n)
{
	unsigned char set[256];
	size_t len;

	while (n > 0) {
		len = *p == '[' ? class_set(p, n, set) : 1;
		if (len == 0)
			return 0;
		p += len;
		n -= len;
	}
	return 1;
}

/* The bytes that one element of a pattern takes, and its length; 0 for a
 * class that is none. */
static size_t
element(const char *p, size_t np, unsigned char set[256])
{
	size_t len = 1;

	memset(set, 0, 256);
	if (*p == '[')
		len = class_set(p, np, set);
	else if (*p == '?' || *p == '*')
		memset(set, 1, 256);
	else
		set[(unsigned char)*p] = 1;
	if (*p == '[' || *p == '?' || *p == '*')
		set['/'] = 0;
	return len;
}

/* From the pattern's end to its start a row says from which bytes on the rest
 * of the text matches the rest of the pattern. */
int
model_segment(const char *p, size_t np, const char *s, size_t ns)
{
	unsigned char set[256], *row = fuzz_alloc(ns + 2);
	size_t *at = fuzz_alloc((np + 1) * sizeof(*at)), n = 0, i, j, len;
	int ok = 0;

	for (i = 0; i < np; i += len, n++) {
		at[n] = i;
		if ((len = element(p + i, np - i, set)) == 0)
			goto out;
	}
	memset(row, 0, ns + 2);
	row[ns] = 1;
	while (n-- > 0) {
		i = at[n];
		(void)element(p + i, np - i, set);
		if (p[i] == '*')
			for (j = ns; j-- > 0;)
				row[j] |= set[(unsigned char)s[j]] & row[j + 1];
		else
			for (j = 0; j <= ns; j++)
				row[j] = j < ns && set[(unsigned char)s[j]] &&
					 row[j + 1];
	}
	ok = row[0];
out:
	free(at);
	free(row);
	return ok;
}

static int
deeper(json_t *v, unsigned depth)
{
	const char *key;
	json_t *x;
	size_t i;

	if (!json_is_array(v) && !json_is_object(v))
		return 0;
	if (depth == 0)
		return 1;
	json_array_foreach(v, i, x) {
		if (deeper(x, depth - 1))
			return 1;
	}
	json_object_foreach(v, key, x) {
		if (deeper(x, depth - 1))
			return 1;
	}
	return 0;
}

int
model_json(const char *p, size_t n, unsigned depth)
{
	json_t *v;
	int ok;

	/* it overlooks a NUL behind a number */
	if (n == 0 || memchr(p, '\0', n) != NULL)
		return 0;
	v = json_loadb(p, n, JSON_DECODE_ANY, NULL);
	ok = v != NULL && !deeper(v, depth);
	json_decref(v);
	return ok;
}
