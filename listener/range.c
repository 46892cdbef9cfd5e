/*
 * SPDX-License-Identifier: ISC
 *
 * Ranges.  Pure.
 */
#include "listener/range.h"

#include <string.h>
#include <strings.h>

/* Digits at s into *v, as much as there are; over 64 bits saturates.  Their
 * number. */
static size_t
digits(const char *s, size_t n, uint64_t *v)
{
	size_t i;

	*v = 0;
	for (i = 0; i < n && s[i] >= '0' && s[i] <= '9'; i++)
		if (__builtin_mul_overflow(*v, (uint64_t)10, v) ||
		    __builtin_add_overflow(*v, (uint64_t)(s[i] - '0'), v))
			*v = UINT64_MAX;
	return i;
}

int
range_parse(
    const char *s, size_t n, uint64_t size, uint64_t *first, uint64_t *last)
{
	uint64_t a, b;
	size_t na, nb;

	if (n < 6 || strncasecmp(s, "bytes=", 6) != 0)
		return 0;
	s += 6;
	n -= 6;
	na = digits(s, n, &a);
	if (na == n || s[na] != '-')
		return 0;
	nb = digits(s + na + 1, n - na - 1, &b);
	if (na + 1 + nb != n || (na == 0 && nb == 0) ||
	    (na > 0 && nb > 0 && b < a))
		return 0;
	if (na == 0) {
		/* the last b bytes */
		if (b == 0 || size == 0)
			return -1;
		*first = b < size ? size - b : 0;
		*last = size - 1;
		return 1;
	}
	if (a >= size)
		return -1;
	*first = a;
	*last = nb == 0 || b >= size ? size - 1 : b;
	return 1;
}
