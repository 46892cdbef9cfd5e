/*
 * SPDX-License-Identifier: ISC
 *
 * The deny set of one request: absolute patterns that the monitor's decision
 * carries (design: architecture, "Trust between processes").  Pure; which
 * patterns there are is not decided here.
 */
#include <stdlib.h>
#include <string.h>

#include "common/glob.h"
#include "pathd/deny.h"

int
deny_new(struct deny *d, const struct strlist *l)
{
	const char *why;

	memset(d, 0, sizeof(*d));
	if (l->n == 0)
		return 0;
	if ((d->v = calloc(l->n, sizeof(*d->v))) == NULL)
		return -1;
	for (; d->n < l->n; d->n++) {
		d->v[d->n] = glob_new(l->v[d->n], NULL, &why);
		if (d->v[d->n] == NULL) {
			deny_clear(d);
			return -1;
		}
	}
	return 0;
}

void
deny_clear(struct deny *d)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		glob_free(d->v[i]);
	free(d->v);
	memset(d, 0, sizeof(*d));
}

int
deny_covers(const struct deny *d, const char *path)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (glob_covers(d->v[i], path))
			return 1;
	return 0;
}
