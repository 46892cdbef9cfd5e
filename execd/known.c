/*
 * SPDX-License-Identifier: ISC
 *
 * A small table of ways below directories.  Owns its texts; touches no file,
 * and is forgotten with this process.
 */
#include "execd/known.h"

#include <stdlib.h>
#include <string.h>

static struct {
	uint64_t dev, ino;
	char *way;
} known[KNOWN_MAX];
static size_t nknown;

size_t
known_of(uint64_t dev, uint64_t ino, const char *v[KNOWN_EACH])
{
	size_t i, n = 0;

	for (i = 0; i < nknown && n < KNOWN_EACH; i++)
		if (known[i].dev == dev && known[i].ino == ino)
			v[n++] = known[i].way;
	return n;
}

void
known_keep(uint64_t dev, uint64_t ino, const char *way)
{
	const char *v[KNOWN_EACH];
	size_t i, n = known_of(dev, ino, v);

	for (i = 0; i < n; i++)
		if (strcmp(v[i], way) == 0)
			return;
	if (n == KNOWN_EACH || nknown == KNOWN_MAX ||
	    (known[nknown].way = strdup(way)) == NULL)
		return;
	known[nknown].dev = dev;
	known[nknown++].ino = ino;
}

void
known_drop(uint64_t dev, uint64_t ino, const char *way)
{
	size_t i;

	for (i = 0; i < nknown; i++)
		if (known[i].dev == dev && known[i].ino == ino &&
		    strcmp(known[i].way, way) == 0)
			break;
	if (i == nknown)
		return;
	free(known[i].way);
	nknown--;
	memmove(&known[i], &known[i + 1], (nknown - i) * sizeof(known[0]));
}
