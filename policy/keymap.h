/*
 * SPDX-License-Identifier: ISC
 *
 * Which rules or principals have a key, for what would compare each with each.
 * Private to policy/.
 */
#ifndef ABX_POLICY_KEYMAP_H
#define ABX_POLICY_KEYMAP_H

#include <stddef.h>
#include <stdint.h>

#define KEYMAP_END UINT32_MAX

struct keymap {
	struct keymap_entry {
		uint32_t key, value, next;
	} * v;
	uint32_t *first, *last; /* of each bucket, as indices of v */
	size_t n, nbuckets;
};

/* Add a pair; 0, or -1 out of memory.  A zeroed struct is an empty map. */
int keymap_add(struct keymap *, uint32_t key, uint32_t value);
/* Entries of a key in the order in which they were added, as indices of v;
 * KEYMAP_END when there is none (any more).  *steps counts what was looked at.
 */
uint32_t keymap_first(const struct keymap *, uint32_t key, size_t *steps);
uint32_t keymap_next(const struct keymap *, uint32_t at, size_t *steps);
void keymap_clear(struct keymap *);

#endif
