/*
 * SPDX-License-Identifier: ISC
 *
 * From hashed keys to indices, in the order in which they were added.  Keys are
 * hashes already, so what is found is to be compared by the caller.  Pure.
 */
#include "policy/keymap.h"

#include <stdlib.h>
#include <string.h>

#include "common/abx.h"

#define BUCKETS 64 /* at first; a power of two */

/* Put an entry at the end of its bucket. */
static void
hang(struct keymap *m, uint32_t at)
{
	size_t b = m->v[at].key & (m->nbuckets - 1);

	m->v[at].next = KEYMAP_END;
	if (m->first[b] == KEYMAP_END)
		m->first[b] = at;
	else
		m->v[m->last[b]].next = at;
	m->last[b] = at;
}

static int
rehang(struct keymap *m, size_t nbuckets)
{
	uint32_t *first = reallocarray(NULL, nbuckets, sizeof(*first)),
		 *last = reallocarray(NULL, nbuckets, sizeof(*last));
	size_t i;

	if (first == NULL || last == NULL) {
		free(first);
		free(last);
		return -1;
	}
	free(m->first);
	free(m->last);
	m->first = first;
	m->last = last;
	m->nbuckets = nbuckets;
	for (i = 0; i < nbuckets; i++)
		first[i] = KEYMAP_END;
	for (i = 0; i < m->n; i++)
		hang(m, (uint32_t)i);
	return 0;
}

int
keymap_add(struct keymap *m, uint32_t key, uint32_t value)
{
	struct keymap_entry *v;

	if (m->n == KEYMAP_END)
		return -1;
	if (m->n == m->nbuckets) {
		size_t cap = m->nbuckets == 0 ? BUCKETS : m->nbuckets * 2;

		/* as many buckets as there is room for entries */
		v = reallocarray(m->v, cap, sizeof(*v));
		if (v == NULL)
			return -1;
		m->v = v;
		if (rehang(m, cap) == -1)
			return -1;
	}
	m->v[m->n] = (struct keymap_entry){key, value, KEYMAP_END};
	hang(m, (uint32_t)m->n++);
	return 0;
}

/* From this entry on, the first with the key. */
static uint32_t
seek(const struct keymap *m, uint32_t at, uint32_t key, size_t *steps)
{
	for (; at != KEYMAP_END; at = m->v[at].next) {
		++*steps;
		if (m->v[at].key == key)
			break;
	}
	return at;
}

uint32_t
keymap_first(const struct keymap *m, uint32_t key, size_t *steps)
{
	if (m->n == 0)
		return KEYMAP_END;
	return seek(m, m->first[key & (m->nbuckets - 1)], key, steps);
}

uint32_t
keymap_next(const struct keymap *m, uint32_t at, size_t *steps)
{
	return seek(m, m->v[at].next, m->v[at].key, steps);
}

void
keymap_clear(struct keymap *m)
{
	free(m->v);
	free(m->first);
	free(m->last);
	memset(m, 0, sizeof(*m));
}
