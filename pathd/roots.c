/*
 * SPDX-License-Identifier: ISC
 *
 * The root directories: opened once, before confinement, as the run user, and
 * from then on known by descriptor (design: architecture, "Trust between
 * processes").  The only place of pathd where the kernel follows links: the
 * operator named these paths.
 */
#include <sys/stat.h>
#include <sys/vfs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/roots.h"

int
roots_add(struct walk_roots *roots, uint32_t id, const char *path)
{
	struct walk_root *v, *r;
	size_t n = strlen(path);

	if (*path != '/' || roots->n >= ABX_MAX_ROOTS ||
	    walk_root(roots, id) != NULL)
		return -1;
	while (n > 1 && path[n - 1] == '/')
		n--;
	v = recallocarray(roots->v, roots->n, roots->n + 1, sizeof(*v));
	if (v == NULL)
		return -1;
	roots->v = v;
	r = &v[roots->n];
	r->id = id;
	r->fd = -1;
	r->err = EBADF;
	if ((r->conf = strndup(path, n)) == NULL)
		return -1;
	roots->n++;
	return 0;
}

/* The kernel's spelling of an open directory: 0 or -1 with errno. */
static int
root_spell(struct walk_root *r, const struct stat *st)
{
	char proc[64], path[ABX_PATH_MAX + 2];
	struct stat again;
	ssize_t n;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", r->fd);
	if ((n = readlink(proc, path, sizeof(path))) == -1)
		return -1;
	if (n > ABX_PATH_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	path[n] = '\0';
	/* A removed or unreachable directory is spelled as no path at all. */
	if (path[0] != '/' || stat(path, &again) == -1 ||
	    again.st_dev != st->st_dev || again.st_ino != st->st_ino) {
		errno = ENOENT;
		return -1;
	}
	if (path[1] == '\0') {
		errno = EINVAL; /* the whole file system is no root */
		return -1;
	}
	return (r->path = strdup(path)) == NULL ? -1 : 0;
}

/* Whether a file system answers without a network or another process.  What is
 * not known to is taken not to. */
static int
is_local(int fd)
{
	static const uint32_t local[] = {0xef53 /* ext2, 3, 4 */,
	    0x58465342 /* xfs */, 0x9123683e /* btrfs */,
	    0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */,
	    0xf2f52010 /* f2fs */, 0x794c7630 /* overlay */,
	    0x2fc12fc1 /* zfs */, 0xca451a4e /* bcachefs */, 0x4d44 /* vfat */,
	    0x2011bab0 /* exfat */, 0x9660 /* iso9660 */,
	    0x73717368 /* squashfs */, 0xe0f5e1e2 /* erofs */};
	struct statfs fs;
	size_t i;

	if (fstatfs(fd, &fs) == -1)
		return 0;
	for (i = 0; i < nitems(local); i++)
		if ((uint32_t)fs.f_type == local[i])
			return 1;
	return 0;
}

static void
root_open(struct walk_root *r)
{
	struct stat st;

	r->err = 0;
	r->fd = open(r->conf, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->fd == -1) {
		r->err = errno;
		return;
	}
	if (fstat(r->fd, &st) == -1 || root_spell(r, &st) == -1) {
		r->err = errno;
		close(r->fd);
		r->fd = -1;
		return;
	}
	r->dev = st.st_dev;
	r->ino = st.st_ino;
	r->slow = !is_local(r->fd);
}

void
roots_open(struct walk_roots *roots)
{
	size_t i;

	for (i = 0; i < roots->n; i++)
		root_open(&roots->v[i]);
}

void
roots_clear(struct walk_roots *roots)
{
	size_t i;

	for (i = 0; i < roots->n; i++) {
		if (roots->v[i].fd != -1)
			close(roots->v[i].fd);
		free(roots->v[i].conf);
		free(roots->v[i].path);
	}
	free(roots->v);
	memset(roots, 0, sizeof(*roots));
}

void
roots_put(struct wbuf *w, const struct walk_roots *roots)
{
	struct root_ok ok;
	size_t i;

	wput_u32(w, (uint32_t)roots->n);
	for (i = 0; i < roots->n; i++) {
		ok.id = roots->v[i].id;
		ok.err = roots->v[i].err;
		ok.path = roots->v[i].path;
		ok.dev = roots->v[i].dev;
		ok.ino = roots->v[i].ino;
		root_ok_put(w, &ok);
	}
}

int
roots_is(const struct walk_roots *roots, dev_t dev, ino_t ino)
{
	size_t i;

	for (i = 0; i < roots->n; i++)
		if (roots->v[i].fd != -1 && roots->v[i].dev == dev &&
		    roots->v[i].ino == ino)
			return 1;
	return 0;
}

enum code
roots_locate(const struct walk_roots *roots, const struct target *t,
    const struct walk_root **root, char full[ABX_PATH_MAX + 1])
{
	const char *slash;
	int n;

	*root = walk_root(roots, t->ref.root);
	if (*root == NULL || (*root)->fd == -1)
		return C_SRV_UNAVAILABLE;
	slash = t->ref.sub[0] != '\0' && t->rel[0] != '\0' ? "/" : "";
	n = snprintf(
	    full, ABX_PATH_MAX + 1, "%s%s%s", t->ref.sub, slash, t->rel);
	if (n < 0 || n > ABX_PATH_MAX)
		return C_FS_NAME_TOO_LONG;
	return C_OK;
}

char *
roots_path(const struct walk_root *r, const char *full)
{
	char *path;

	if (*full == '\0')
		return strdup(r->path);
	if (asprintf(&path, "%s/%s", strcmp(r->path, "/") == 0 ? "" : r->path,
		full) == -1)
		return NULL;
	return path;
}
