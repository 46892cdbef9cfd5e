/*
 * SPDX-License-Identifier: ISC
 *
 * A bounded table of fingerprints of wrong tokens, so that one of them cannot
 * be tried at will and a right one is never locked out.  Keeps 64 bits of a
 * digest, never a token.
 */
#include "listener/failures.h"

#include <string.h>

#include "common/hash.h"

#define WINDOW_US 60000000
#define ALLOWED 10
#define SETS 256
#define WAYS 4 /* the one whose window began first makes room */

struct failure {
	uint64_t mark;	/* first 8 bytes of the SHA-256 */
	uint64_t since; /* us; 0: free */
	uint32_t count;
};

static struct failure table[SETS][WAYS];

static struct failure *
find(uint64_t mark)
{
	struct failure *set = table[mark % SETS], *old = set;
	int i;

	for (i = 0; i < WAYS; i++) {
		if (set[i].since != 0 && set[i].mark == mark)
			return &set[i];
		if (set[i].since < old->since)
			old = &set[i];
	}
	memset(old, 0, sizeof(*old));
	old->mark = mark;
	return old;
}

uint32_t
failures_add(const char *token, uint64_t now)
{
	uint8_t digest[SHA256_LEN];
	struct failure *f;
	uint64_t mark;

	sha256(token, strlen(token), digest);
	memcpy(&mark, digest, sizeof(mark));
	explicit_bzero(digest, sizeof(digest));
	f = find(mark);
	if (f->since == 0 || now - f->since >= WINDOW_US) {
		f->since = now;
		f->count = 0;
	}
	if (f->count < ALLOWED) {
		f->count++;
		return 0;
	}
	return (uint32_t)((f->since + WINDOW_US - now) / 1000000) + 1;
}
