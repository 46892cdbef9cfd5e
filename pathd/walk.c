/*
 * SPDX-License-Identifier: ISC
 *
 * Where a path really lies (design: paths, "Canonicalisation"): at once when no
 * link is on the way, else by a walk (steps.c), again while the path changes,
 * and the descriptor that the facts are of.  Only facts: nothing is decided,
 * changed or remembered.  Linked by abxctl too, so it has no globals.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "pathd/beneath.h"
#include "pathd/walk_int.h"

#define OPEN_READ (O_RDONLY | O_NONBLOCK | O_NOCTTY)
#define OPEN_TRIES 16 /* walks of a path that changes under our feet */

const struct walk_root *
walk_root(const struct walk_roots *roots, uint32_t id)
{
	size_t i;

	if (id < roots->n && roots->v[id].id == id)
		return &roots->v[id];
	for (i = 0; i < roots->n; i++)
		if (roots->v[i].id == id)
			return &roots->v[i];
	return NULL;
}

const char *
walk_after(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strncmp(path, dir, n) != 0)
		return NULL;
	if (path[n] == '\0')
		return path + n;
	return path[n] == '/' ? path + n + 1 : NULL;
}

int
walk_start(const struct walk_roots *roots, const struct resolve_item *it,
    const char *path, struct walk_start *s)
{
	const struct walk_root *r;
	const char *spell[2], *rest;
	size_t i, k, n, best = 0;
	int found = 0;

	for (i = 0; i < it->nrefs; i++) {
		r = walk_root(roots, it->refs[i].root);
		if (r == NULL || r->fd == -1)
			continue;
		spell[0] = r->path;
		spell[1] = r->conf;
		for (k = 0; k < nitems(spell); k++) {
			if ((rest = walk_after(path, spell[k])) == NULL)
				continue;
			n = strlen(spell[k]);
			if (it->refs[i].sub[0] != '\0') {
				if (walk_after(rest, it->refs[i].sub) == NULL)
					continue;
				n += 1 + strlen(it->refs[i].sub);
			}
			if (found && n <= best)
				continue;
			found = 1;
			best = n;
			s->ref = i;
			s->root = r;
			s->rest = rest;
			s->spelled = strlen(spell[k]);
		}
	}
	return found ? 0 : -1;
}

void
walk_owner(const struct walk_roots *roots, const struct resolve_item *it,
    struct facts *f)
{
	const struct walk_root *r;
	const char *rest;
	size_t i, n;

	f->rel = 0;
	for (i = 0; i < it->nrefs; i++) {
		r = walk_root(roots, it->refs[i].root);
		if (r == NULL || r->fd == -1 ||
		    (rest = walk_after(f->path, r->path)) == NULL)
			continue;
		n = strlen(r->path);
		if (it->refs[i].sub[0] != '\0') {
			if (walk_after(rest, it->refs[i].sub) == NULL)
				continue;
			n += 1 + strlen(it->refs[i].sub);
		}
		if (n > f->rel) {
			f->ref = (uint8_t)i;
			f->rel = (uint16_t)n;
		}
	}
}

void
walk_stat(struct facts *f, const struct stat *st)
{
	f->kind = beneath_kind(st->st_mode);
	f->mode = st->st_mode & 07777;
	f->nlink = (uint32_t)st->st_nlink;
	f->size = (uint64_t)st->st_size;
	f->mtime = st->st_mtim.tv_sec;
	f->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
}

size_t
walk_segments(const char *path)
{
	size_t n = 0;

	for (; *path != '\0'; path++)
		n += *path == '/';
	return n;
}

/* ---- the common case: no link on the way ---- */

static int
has_ours(const char *path)
{
	size_t n;

	for (;; path += n) {
		path += strspn(path, "/");
		if ((n = strcspn(path, "/")) == 0)
			return 0;
		if (beneath_is_ours(path, n))
			return 1;
	}
}

/* 1 when the facts are there, 0 when the walk must be made, -1 out of
 * memory. */
static int
walk_fast(const struct walk_roots *roots, const struct resolve_item *it,
    enum walk_want want, struct facts *f, int *out)
{
	struct walk_start s;
	struct stat st;
	size_t n, len;
	int fd;

	if (walk_start(roots, it, it->path, &s) == -1) {
		f->status = FS_OUTSIDE;
		return 1;
	}
	n = strlen(s.root->path);
	len = strlen(s.rest);
	if (n + 1 + len > ABX_PATH_MAX || has_ours(s.rest))
		return 0;
	fd = beneath_open(
	    s.root->fd, s.rest, want == WALK_READ ? OPEN_READ : O_PATH);
	if (fd == -1)
		return 0;
	if (fstat(fd, &st) == -1 || S_ISLNK(st.st_mode)) {
		close(fd);
		return 0;
	}
	*out = fd;
	if ((f->path = malloc(n + len + 2)) == NULL)
		return -1;
	memcpy(f->path, s.root->path, n + 1);
	if (len > 0) {
		f->path[n] = '/';
		memcpy(f->path + n + 1, s.rest, len + 1);
	}
	if (walk_segments(f->path) > ABX_PATH_SEGS)
		f->status = FS_INVALID;
	walk_stat(f, &st);
	walk_owner(roots, it, f);
	return 1;
}

/* Open for reading what the slow walk found: 0 with the descriptor's own
 * facts, 1 to walk again because the path changed. */
static int
walk_read(const struct walk_roots *roots, const struct resolve_item *it,
    struct facts *f, int *out)
{
	const struct walk_root *r = walk_root(roots, it->refs[f->ref].root);
	const char *rel = walk_after(f->path, r->path);
	struct stat st;
	int fd;

	fd = beneath_open(r->fd, rel == NULL ? "" : rel, OPEN_READ);
	if (fd == -1 || fstat(fd, &st) == -1) {
		f->err = errno;
		if (fd != -1)
			close(fd);
		return f->err == ELOOP || f->err == ENOTDIR ||
		       f->err == ENOENT || f->err == EXDEV;
	}
	if (!S_ISREG(st.st_mode)) {
		close(fd);
		return 1;
	}
	walk_stat(f, &st);
	*out = fd;
	return 0;
}

/* One whole walk: 0, 1 when the path changed, -1 out of memory. */
static int
walk_once(const struct walk_roots *roots, const struct resolve_item *it,
    enum walk_want want, struct facts *f, int *fd)
{
	int rc;

	if ((rc = walk_fast(roots, it, want, f, fd)) == -1)
		return -1;
	if (rc == 0 &&
	    walk_slow(roots, it, f, want == WALK_DIR ? fd : NULL) == -1)
		return -1;
	if (f->status == FS_ERRNO && f->err == ESTALE)
		return 1;
	if (f->status != FS_OK || *fd != -1 || want != WALK_READ ||
	    f->kind != FK_FILE)
		return 0;
	return walk_read(roots, it, f, fd);
}

int
walk_resolve(const struct walk_roots *roots, const struct resolve_item *it,
    enum walk_want want, struct facts *f, int *fdp)
{
	int fd = -1, i, rc = 1;

	if (fdp != NULL)
		*fdp = -1;
	for (i = 0; rc == 1 && i < OPEN_TRIES; i++) {
		memset(f, 0, sizeof(*f));
		rc = walk_once(roots, it, want, f, &fd);
		if (rc == 1 && i + 1 < OPEN_TRIES)
			facts_clear(f);
	}
	/* It never held still: facts without a descriptor, or no facts. */
	if (rc == 1 && f->status != FS_OK)
		f->status = FS_OUTSIDE;
	if (rc == -1)
		facts_clear(f);
	if (fd != -1 &&
	    (rc != 0 || fdp == NULL || want == WALK_FACTS ||
		f->status != FS_OK ||
		f->kind != (want == WALK_READ ? FK_FILE : FK_DIR))) {
		close(fd);
		fd = -1;
	}
	if (fdp != NULL)
		*fdp = fd;
	return rc == -1 ? -1 : 0;
}
