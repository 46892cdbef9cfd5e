/*
 * SPDX-License-Identifier: ISC
 *
 * Did you mean: the closest of several words by edit distance, where swapping
 * two neighbours is one edit.  Bounded; pure.
 */
#include <string.h>

#include "policy/confkey.h"

#define SUGGEST_LEN 64 /* longer words are not compared */
#define SUGGEST_DIST 2

static size_t
min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance of two words of at most SUGGEST_LEN. */
static size_t
edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t row[3][SUGGEST_LEN + 1], *two = row[0], *one = row[1],
					*now = row[2], *tmp, i, j;

	for (j = 0; j <= nb; j++)
		one[j] = j;
	for (i = 1; i <= na; i++) {
		now[0] = i;
		for (j = 1; j <= nb; j++) {
			now[j] = min2(one[j], now[j - 1]) + 1;
			now[j] =
			    min2(now[j], one[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				now[j] = min2(now[j], two[j - 2] + 1);
		}
		tmp = two;
		two = one;
		one = now;
		now = tmp;
	}
	return one[nb];
}

void
suggest_init(struct suggest *s, const char *word)
{
	s->word = word;
	s->best = NULL;
	s->dist = SUGGEST_DIST + 1;
}

void
suggest_try(struct suggest *s, const char *candidate)
{
	size_t na = strlen(s->word), nb = strlen(candidate), d;

	if (na > SUGGEST_LEN || nb > SUGGEST_LEN ||
	    (na > nb ? na - nb : nb - na) > SUGGEST_DIST)
		return;
	d = edit_distance(s->word, na, candidate, nb);
	/* A short word is not two edits away from everything. */
	if (d < s->dist && d < nb && d < na) {
		s->best = candidate;
		s->dist = d;
	}
}
