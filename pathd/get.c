/*
 * SPDX-License-Identifier: ISC
 *
 * Facts for the monitor's decision, and the descriptor of a download, opened
 * in the same walk so that facts and content are of one file.  What is passed
 * for reading was fstat'ed itself and is a regular file.
 */
#include <unistd.h>

#include "pathd/get.h"

static enum walk_want
item_want(const struct resolve *rs, size_t i)
{
	if (i != 0)
		return WALK_FACTS;
	if ((rs->flags & RESOLVE_OPEN) != 0)
		return WALK_READ;
	return (rs->flags & RESOLVE_OPENDIR) != 0 ? WALK_DIR : WALK_FACTS;
}

/* Links can make short paths long; what does not fit is as good as no path.
 * 0 or -1. */
static int
too_long(const struct resolve *rs, struct wbuf *w)
{
	const struct facts f = {.status = FS_INVALID};
	size_t i;

	wbuf_reset(w);
	wput_u32(w, (uint32_t)rs->n);
	for (i = 0; i < rs->n; i++)
		facts_put(w, &f);
	return w->err ? -1 : 0;
}

static void
close_fd(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

int
get_facts(
    const struct pathd *pd, const struct resolve *rs, struct wbuf *w, int *fd)
{
	struct facts f;
	size_t i;
	int rc;

	*fd = -1;
	wput_u32(w, (uint32_t)rs->n);
	for (i = 0; i < rs->n; i++) {
		rc = walk_resolve(&pd->roots, &rs->v[i], item_want(rs, i), &f,
		    i == 0 ? fd : NULL);
		if (rc == 0)
			facts_put(w, &f);
		facts_clear(&f);
		if (rc == -1 || w->err) {
			close_fd(fd);
			return rc == -1 ? -1 : too_long(rs, w);
		}
	}
	return 0;
}
