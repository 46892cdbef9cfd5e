/*
 * SPDX-License-Identifier: ISC
 *
 * Writes down what is bound where.  Owns nothing; opens the paths of binds, to
 * look whether they are the same objects, and never binds by them.
 */
#include "execd/seen.h"

#include <sys/stat.h>

#include <errno.h>

#include "execd/protect.h"

void
seen_put(struct wbuf *w, const struct profile_binds *b)
{
	size_t i;

	for (i = 0; i < b->n; i++) {
		wput_str(w, b->v[i].inner);
		wput_u8(w, b->v[i].rw);
		wput_u8(w, b->v[i].cover);
		wput_u8(w, b->v[i].git);
		wput_u64(w, b->v[i].dev);
		wput_u64(w, b->v[i].ino);
	}
}

static int
moved(const char *path, uint64_t dev, uint64_t ino)
{
	struct stat st;

	/* what covers something never lay there */
	if (protect_is_empty(dev, ino))
		return 0;
	if (lstat(path, &st) == -1)
		return errno == ENOENT || errno == ENOTDIR;
	return st.st_dev != dev || st.st_ino != ino;
}

int
seen_changed(const struct wbuf *w)
{
	static char path[ABX_PATH_MAX + 1];
	uint64_t dev, ino;
	int changed = 0;
	struct rbuf r;

	rbuf_init(&r, w->p, w->len);
	while (!changed && r.len > 0) {
		(void)rget_strto(&r, path, sizeof(path));
		(void)rget_u8(&r);
		(void)rget_u8(&r);
		(void)rget_u8(&r);
		dev = rget_u64(&r);
		ino = rget_u64(&r);
		if (r.err)
			return 0;
		changed = moved(path, dev, ino);
	}
	return changed;
}
