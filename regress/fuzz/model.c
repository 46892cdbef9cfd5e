/*
 * SPDX-License-Identifier: ISC
 *
 * Naive matching of one segment (server.json(5), "Globs", read literally), and
 * another's opinion on JSON.
 */
#include "regress/fuzz/model.h"

#include <string.h>

#include <jansson.h>

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

int
model_segment(const char *p, size_t np, const char *s, size_t ns)
{
	unsigned char set[256];
	size_t len, i;

	if (np == 0)
		return ns == 0;
	if (*p == '*') {
		for (i = 0; i <= ns; i++) {
			if (model_segment(p + 1, np - 1, s + i, ns - i))
				return 1;
			if (i < ns && s[i] == '/')
				break;
		}
		return 0;
	}
	if (ns == 0)
		return 0;
	if (*p == '[') {
		len = class_set(p, np, set);
		return len > 0 && *s != '/' && set[(unsigned char)*s] &&
		       model_segment(p + len, np - len, s + 1, ns - 1);
	}
	return (*p == '?' ? *s != '/' : *p == *s) &&
	       model_segment(p + 1, np - 1, s + 1, ns - 1);
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
	json_array_foreach(v, i, x)
	{
		if (deeper(x, depth - 1))
			return 1;
	}
	json_object_foreach(v, key, x)
	{
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
