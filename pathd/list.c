/*
 * SPDX-License-Identifier: ISC
 *
 * Listings in directory order (design: paths, "Use").  Each entry is judged
 * again: what is denied, and links that lead out of the asking roots or to
 * something denied, are left out.  Sorting is the reader's business.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "pathd/beneath.h"
#include "pathd/framer.h"
#include "pathd/list.h"
#include "pathd/roots.h"
#include "pathd/tree.h"

enum code
listing_open(struct listing *li, const struct pathd *pd, const struct list *l)
{
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	struct stat st;
	enum code code;

	memset(li, 0, sizeof(*li));
	li->pd = pd;
	li->l = l;
	li->dir = -1;
	if ((code = roots_locate(&pd->roots, &l->target, &root, full)) != C_OK)
		return code;
	li->dir = beneath_open(root->fd, full, O_RDONLY | O_DIRECTORY);
	if (li->dir == -1)
		return beneath_walk_code(errno);
	if (fstat(li->dir, &st) == -1 || st.st_dev != l->target.dev ||
	    st.st_ino != l->target.ino)
		return C_POL_PATH_CHANGED;
	if ((li->path = roots_path(root, full)) == NULL ||
	    sight_new(&li->sight, pd, l->refs, l->nrefs, l->flags, &l->deny) ==
		-1)
		return C_SRV_UNAVAILABLE;
	return C_OK;
}

void
listing_close(struct listing *li)
{
	if (li->dir != -1)
		close(li->dir);
	li->dir = -1;
	free(li->path);
	sight_clear(&li->sight);
	memset(li, 0, sizeof(*li));
	li->dir = -1;
}

/* ---- the walk ---- */

/* What goes along with it. */
struct sending {
	struct listing *li;
	struct framer f;
	size_t below; /* bytes of a path up to the names that are sent */
	uint32_t count;
	int truncated;
};

static unsigned
depth_of(const char *name)
{
	unsigned n = 1;

	while ((name = strchr(name, '/')) != NULL) {
		name++;
		n++;
	}
	return n;
}

static enum code
send_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	struct sending *s = arg;
	const struct list *l = s->li->l;

	if (!sight_entry(&s->li->sight, path, st))
		return TREE_SKIP;
	if (s->count == l->max_entries) {
		s->truncated = 1;
		return TREE_DONE;
	}
	s->count++;
	if (framer_entry(&s->f, path + s->below, st) == -1)
		return TREE_DONE;
	return depth_of(path + s->below) < l->depth ? C_OK : TREE_SKIP;
}

/* Listed it is; what it holds cannot be seen, or lies too deep. */
static enum code
send_barred(void *arg, const char *path, enum code code)
{
	struct sending *s = arg;

	s->truncated |= code == C_FS_NAME_TOO_LONG;
	return code == C_SRV_UNAVAILABLE ? code : C_OK;
}

static int
send_stop(void *arg)
{
	struct sending *s = arg;

	return framer_stopped(&s->f);
}

static const struct tree_ops send_ops = {
    .entry = send_entry, .barred = send_barred, .stop = send_stop};

int
listing_send(struct listing *li, framer_cb cb, void *arg)
{
	struct sending s = {.li = li};
	enum code code;
	int rc;

	framer_init(&s.f, cb, arg);
	s.below = strcmp(li->path, "/") == 0 ? 1 : strlen(li->path) + 1;
	code = tree_walk(li->dir, li->path, &send_ops, &s);
	rc = framer_end(&s.f, code, s.truncated);
	framer_free(&s.f);
	return rc;
}
