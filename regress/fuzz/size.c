/*
 * SPDX-License-Identifier: ISC
 *
 * Sizes, durations, rates and numbers against arithmetic of 128 bits: a text
 * means exactly its number or nothing.  Input: the text.
 */
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"
#include "common/size.h"
#include "regress/fuzz/fuzz.h"

typedef unsigned __int128 wide;

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit sizes[] = {{"B", 1}, {"kB", 1000}, {"MB", 1000000},
    {"GB", 1000000000}, {"TB", 1000000000000}, {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20}, {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40}, {"", 1}};
static const struct unit durations[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
static const struct unit rates[] = {
    {"/s", 1000}, {"/min", 60000}, {"/h", 3600000}};

/* 1 with the digits at *s, which then points behind them; saturating. */
static int
number(const char **s, wide *v)
{
	const char *from = *s;

	for (*v = 0; **s >= '0' && **s <= '9'; ++*s)
		if (*v < (wide)1 << 100)
			*v = *v * 10 + (wide)(**s - '0');
	return *s > from;
}

/* The factor of that unit, 0 when there is none. */
static uint64_t
factor(const struct unit *u, size_t n, const char *s)
{
	while (n-- > 0)
		if (strcmp(u[n].name, s) == 0)
			return u[n].factor;
	return 0;
}

static void
check_size(const char *text)
{
	const char *s = text, *frac = NULL;
	uint64_t f, got = 0;
	wide whole, part = 0, ten = 1;
	int want, long_frac = 0;

	want = number(&s, &whole);
	if (want && *s == '.') {
		for (frac = ++s; *s >= '0' && *s <= '9'; s++)
			continue;
		want = s > frac && *s != '\0';
		/* what has no value is left out */
		for (size_t n = (size_t)(s - frac); n > 0; n--)
			if (frac[n - 1] != '0') {
				long_frac = n > 18;
				for (size_t i = 0; i < n && !long_frac; i++) {
					part =
					    part * 10 + (wide)(frac[i] - '0');
					ten *= 10;
				}
				break;
			}
	}
	f = factor(sizes, nitems(sizes), s);
	want = want && f != 0 && !long_frac && whole <= INT64_MAX &&
	       part * f % ten == 0 && whole * f + part * f / ten <= INT64_MAX;
	CHECK(size_parse(text, &got) == (want ? 0 : -1));
	CHECK(!want || got == (uint64_t)(whole * f + part * f / ten));
}

static void
check_duration(const char *text)
{
	const char *s = text;
	uint64_t f, got = 0;
	wide v;
	int want = number(&s, &v);

	f = factor(durations, nitems(durations), s);
	want = want && f != 0 && v * f <= INT64_MAX;
	CHECK(duration_parse(text, &got) == (want ? 0 : -1));
	CHECK(!want || got == (uint64_t)(v * f));
}

static void
check_rate(const char *text)
{
	const char *s = text;
	uint64_t f, period = 0;
	uint32_t count = 0;
	wide v;
	int want = number(&s, &v);

	f = factor(rates, nitems(rates), s);
	want = want && f != 0 && v > 0 && v <= UINT32_MAX;
	CHECK(rate_parse(text, &count, &period) == (want ? 0 : -1));
	CHECK(!want || (count == (uint32_t)v && period == f));
}

static void
check_uint(const char *text, size_t n)
{
	static const uint64_t maxes[] = {
	    0, 9, 255, 65535, INT64_MAX, UINT64_MAX};
	const char *s = text;
	uint64_t got = 0;
	wide v;
	size_t i;
	int plain = number(&s, &v) && s == text + n;

	for (i = 0; i < nitems(maxes); i++) {
		CHECK(uint_parse(text, n, maxes[i], &got) ==
		      (plain && v <= maxes[i] ? 0 : -1));
		CHECK(!plain || v > maxes[i] || got == (uint64_t)v);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	char *text = feed_str(&f, '\0', size);

	check_size(text);
	check_duration(text);
	check_rate(text);
	check_uint(text, strlen(text));
	free(text);
	return 0;
}
