/*
 * SPDX-License-Identifier: ISC
 *
 * Sizes, durations and rates as the configuration spells them.  A text means
 * exactly one number or it is refused; nothing is rounded.  Pure.
 */
#include "common/size.h"

#include <limits.h>
#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
    {"B", 1},
    {"kB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40},
    {NULL, 0},
};
static const struct unit duration_units[] = {
    {"ms", 1},
    {"s", 1000},
    {"m", 60 * 1000},
    {"h", 60 * 60 * 1000},
    {NULL, 0},
};
static const struct unit rate_units[] = {
    {"s", 1000},
    {"min", 60 * 1000},
    {"h", 60 * 60 * 1000},
    {NULL, 0},
};

static const struct unit *
unit_find(const struct unit *u, const char *name)
{
	for (; u->name != NULL; u++)
		if (strcmp(u->name, name) == 0)
			return u;
	return NULL;
}

static size_t
digits(const char *s)
{
	return strspn(s, "0123456789");
}

int
uint_parse(const char *s, size_t len, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;
	size_t i;

	if (len == 0)
		return -1;
	for (i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v) ||
		    v > max)
			return -1;
	}
	*out = v;
	return 0;
}

/* whole.frac times the factor, exactly; 0 or -1. */
static int
scaled(const char *whole, size_t wlen, const char *frac, size_t flen,
    uint64_t factor, uint64_t *out)
{
	uint64_t w, f = 0, ten = 1, part;
	size_t i;

	if (uint_parse(whole, wlen, INT64_MAX, &w) == -1 ||
	    __builtin_mul_overflow(w, factor, &w))
		return -1;
	while (flen > 0 && frac[flen - 1] == '0')
		flen--;
	if (flen > 18)
		return -1;
	if (flen > 0 && uint_parse(frac, flen, INT64_MAX, &f) == -1)
		return -1;
	for (i = 0; i < flen; i++)
		ten *= 10;
	/* f < ten <= 10^18 and the factor is a small product of 2 and 5 */
	while (ten > 1 && ten % 2 == 0 && factor % 2 == 0) {
		ten /= 2;
		factor /= 2;
	}
	while (ten > 1 && ten % 5 == 0 && factor % 5 == 0) {
		ten /= 5;
		factor /= 5;
	}
	if (f % ten != 0)
		return -1;
	if (__builtin_mul_overflow(f / ten, factor, &part) ||
	    __builtin_add_overflow(w, part, out) || *out > INT64_MAX)
		return -1;
	return 0;
}

int
size_parse(const char *s, uint64_t *out)
{
	size_t wlen = digits(s), flen = 0;
	const char *frac = s + wlen;
	const struct unit *u;

	if (wlen == 0)
		return -1;
	if (s[wlen] == '\0')
		return uint_parse(s, wlen, INT64_MAX, out);
	if (*frac == '.') {
		flen = digits(++frac);
		if (flen == 0)
			return -1;
	}
	u = unit_find(size_units, frac + flen);
	if (u == NULL)
		return -1;
	return scaled(s, wlen, frac, flen, u->factor, out);
}

int
duration_parse(const char *s, uint64_t *out)
{
	size_t n = digits(s);
	const struct unit *u = unit_find(duration_units, s + n);
	uint64_t v;

	if (u == NULL || uint_parse(s, n, INT64_MAX, &v) == -1 ||
	    __builtin_mul_overflow(v, u->factor, &v) || v > INT64_MAX)
		return -1;
	*out = v;
	return 0;
}

int
rate_parse(const char *s, uint32_t *count, uint64_t *period_ms)
{
	size_t n = digits(s);
	const struct unit *u;
	uint64_t v;

	if (s[n] != '/')
		return -1;
	u = unit_find(rate_units, s + n + 1);
	if (u == NULL || uint_parse(s, n, UINT32_MAX, &v) == -1 || v == 0)
		return -1;
	*count = (uint32_t)v;
	*period_ms = u->factor;
	return 0;
}

int
uint_word(const char **p, uint64_t *out)
{
	size_t n = strcspn(*p, " ");

	if (uint_parse(*p, n, UINT64_MAX, out) == -1)
		return -1;
	*p += n + ((*p)[n] == ' ');
	return 0;
}
