/*
 * SPDX-License-Identifier: ISC
 *
 * The writing side of archives, in a worker, by libarchive (GNU tar, so that
 * names are bytes).  Each entry is judged again: what is denied and what leads
 * out of the scope does not show; what is shown and cannot be packed is
 * reported.
 */
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/beneath.h"
#include "pathd/pack.h"
#include "pathd/roots.h"
#include "pathd/sight.h"
#include "pathd/tree.h"

#define BLOCK (64 * 1024)
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct packer {
	struct pack *p;
	struct sight sight;
	struct archive *a; /* NULL: only measure */
	struct archive_entry *e;
	const char *name; /* of the source at hand */
	size_t below;	  /* bytes of a path up to what follows the name */
	uint64_t bytes, entries;
};

static int
pack_stop(void *arg)
{
	const struct packer *k = arg;
	const struct stopper *s = k->p->stop;

	return s != NULL && s->stop(s->arg);
}

/* The name in the archive: 0, or -1 when it is too long. */
static int
pack_name(const struct packer *k, const char *path, char *out, size_t size)
{
	const char *rel = strlen(path) > k->below ? path + k->below : "";
	int n;

	n = snprintf(out, size, "%s%s%s", k->name,
	    k->name[0] != '\0' && rel[0] != '\0' ? "/" : "", rel);
	return n < 0 || (size_t)n >= size ? -1 : 0;
}

static enum code
pack_skip(struct packer *k, const char *path, enum code code)
{
	struct pack_fin *f = &k->p->fin;
	char name[ABX_PATH_MAX + 1];
	struct pack_skip *s;

	if (k->a == NULL || f->nskip == ABX_MAX_SKIPPED ||
	    pack_name(k, path, name, sizeof(name)) == -1)
		return C_OK;
	s = reallocarray(f->skip, f->nskip + 1, sizeof(*s));
	if (s == NULL)
		return C_SRV_UNAVAILABLE;
	f->skip = s;
	if ((s[f->nskip].path = strdup(name)) == NULL)
		return C_SRV_UNAVAILABLE;
	s[f->nskip++].code = (uint16_t)code;
	return C_OK;
}

/* ---- one entry ---- */

static enum code
pack_head(
    struct packer *k, const char *path, const struct stat *st, const char *link)
{
	char name[2 * ABX_PATH_MAX];

	if (pack_name(k, path, name, sizeof(name) - 1) == -1)
		return C_FS_NAME_TOO_LONG;
	archive_entry_clear(k->e);
	if (S_ISDIR(st->st_mode))
		strlcat(name, "/", sizeof(name));
	archive_entry_set_pathname(k->e, name);
	archive_entry_set_filetype(k->e, st->st_mode & S_IFMT);
	archive_entry_set_perm(k->e, st->st_mode & 0777);
	archive_entry_set_mtime(k->e, st->st_mtim.tv_sec, 0);
	archive_entry_set_size(k->e, S_ISREG(st->st_mode) ? st->st_size : 0);
	if (link != NULL)
		archive_entry_set_symlink(k->e, link);
	return archive_write_header(k->a, k->e) >= ARCHIVE_WARN
		   ? C_OK
		   : C_SRV_UNAVAILABLE;
}

/* The promised number of bytes, whatever becomes of the file: what it lacks
 * is zeros (archive_write_finish_entry). */
static enum code
pack_bytes(struct packer *k, int fd, uint64_t left)
{
	static char buf[BLOCK];
	ssize_t n;

	while (left > 0) {
		if (pack_stop(k))
			return C_SRV_UNAVAILABLE;
		n = read(fd, buf, left < sizeof(buf) ? left : sizeof(buf));
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return beneath_act_code(errno);
		if (n == 0)
			break;
		if (archive_write_data(k->a, buf, (size_t)n) < 0)
			return C_SRV_UNAVAILABLE;
		left -= (uint64_t)n;
	}
	return C_OK;
}

/* Limits count what is packed. */
static enum code
pack_count(struct packer *k, uint64_t bytes)
{
	if (__builtin_add_overflow(k->bytes, bytes, &k->bytes) ||
	    k->bytes > k->p->b->max_bytes)
		return C_LIM_MAX_BYTES;
	return ++k->entries > k->p->b->max_entries ? C_LIM_MAX_ENTRIES : C_OK;
}

static enum code
pack_file(struct packer *k, int dir, const char *name, const char *path)
{
	enum code code;
	struct stat st;
	int fd;

	if ((fd = openat(dir, name, OPEN_FILE)) == -1) {
		code = beneath_act_code(errno);
		if (code == C_FS_NOT_FOUND)
			return C_OK;
		return beneath_short(code) ? code : pack_skip(k, path, code);
	}
	if (fstat(fd, &st) == -1)
		code = beneath_act_code(errno);
	else if (!S_ISREG(st.st_mode))
		code = pack_skip(k, path, C_POL_NOT_REGULAR);
	else if (!sight_content(&k->sight, &st))
		code = pack_skip(k, path, C_POL_HARDLINK_DENIED);
	else if (st.st_dev == k->p->not_dev && st.st_ino == k->p->not_ino)
		code = C_OK;
	else if ((code = pack_count(k, (uint64_t)st.st_size)) == C_OK &&
		 k->a != NULL && (code = pack_head(k, path, &st, NULL)) == C_OK)
		code = pack_bytes(k, fd, (uint64_t)st.st_size);
	close(fd);
	return code;
}

static enum code
pack_link(struct packer *k, int dir, const char *name, const char *path,
    const struct stat *st)
{
	char text[ABX_PATH_MAX + 1];
	enum code code;
	ssize_t n;

	if (!sight_leads(&k->sight, path))
		return pack_skip(k, path, C_FS_NOT_FOUND);
	n = readlinkat(dir, name, text, sizeof(text));
	if (n == -1 || (size_t)n == sizeof(text))
		return C_OK; /* it went meanwhile */
	text[n] = '\0';
	if ((code = pack_count(k, 0)) != C_OK || k->a == NULL)
		return code;
	return pack_head(k, path, st, text);
}

static enum code
pack_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	struct packer *k = arg;
	enum code code;

	if (!sight_entry(&k->sight, path, st))
		return TREE_SKIP;
	if (S_ISREG(st->st_mode))
		return pack_file(k, dir, name, path);
	if (S_ISLNK(st->st_mode))
		return pack_link(k, dir, name, path, st);
	if (!S_ISDIR(st->st_mode))
		return pack_skip(k, path, C_POL_NOT_REGULAR);
	code = pack_count(k, 0);
	return code != C_OK || k->a == NULL ? code
					    : pack_head(k, path, st, NULL);
}

static enum code
pack_barred(void *arg, const char *path, enum code code)
{
	return code == C_SRV_UNAVAILABLE ? code : pack_skip(arg, path, code);
}

static const struct tree_ops pack_ops = {
    .entry = pack_entry, .barred = pack_barred, .stop = pack_stop};

/* ---- sources ---- */

static enum code
pack_tree(struct packer *k, const struct target *t, int root, const char *full,
    const char *path)
{
	enum code code = C_OK;
	struct stat st;
	int fd;

	if ((fd = beneath_open(root, full, O_RDONLY | O_DIRECTORY)) == -1)
		return beneath_walk_code(errno);
	k->below = strcmp(path, "/") == 0 ? 1 : strlen(path) + 1;
	if (fstat(fd, &st) == -1 || st.st_dev != t->dev || st.st_ino != t->ino)
		code = C_POL_PATH_CHANGED;
	else if (k->name[0] != '\0') {
		code = pack_count(k, 0);
		if (code == C_OK && k->a != NULL)
			code = pack_head(k, path, &st, NULL);
	}
	if (code == C_OK)
		code = tree_walk(fd, path, &pack_ops, k);
	close(fd);
	return code;
}

static enum code
pack_single(struct packer *k, const struct target *t, int root,
    const char *full, const char *path)
{
	const char *name;
	enum code code;
	struct stat st;
	int dir;

	if ((dir = beneath_parent(root, full, &name)) == -1)
		return beneath_walk_code(errno);
	k->below = strlen(path);
	if ((code = beneath_same(dir, name, t, &st)) == C_OK)
		code = pack_entry(k, dir, name, path, &st);
	close(dir);
	return code == TREE_SKIP ? C_OK : code;
}

static enum code
pack_source(struct packer *k, size_t i)
{
	const struct target *t = &k->p->b->src[i];
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	enum code code;
	char *path;

	code = roots_locate(&k->p->pd->roots, t, &root, full);
	if (code != C_OK)
		return code;
	if ((path = roots_path(root, full)) == NULL)
		return C_SRV_UNAVAILABLE;
	k->name = k->p->b->names.v[i];
	code = t->kind == FK_DIR ? pack_tree(k, t, root->fd, full, path)
				 : pack_single(k, t, root->fd, full, path);
	free(path);
	return code;
}

static enum code
pack_sources(struct packer *k)
{
	const struct bulk *b = k->p->b;
	enum code code = C_OK;
	size_t i;

	if (sight_new(&k->sight, k->p->pd, b->refs, b->nrefs, b->flags,
		&b->deny) == -1)
		return C_SRV_UNAVAILABLE;
	for (i = 0; i < b->nsrc && code == C_OK; i++)
		code = pack_source(k, i);
	sight_clear(&k->sight);
	return code;
}

enum code
pack_measure(struct pack *p)
{
	struct packer k = {.p = p};

	return pack_sources(&k);
}

/* ---- libarchive ---- */

static la_ssize_t
write_cb(struct archive *a, void *arg, const void *buf, size_t n)
{
	struct pack *p = arg;

	if (p->out(p->arg, buf, n) == 0)
		return (la_ssize_t)n;
	archive_set_error(a, EPIPE, "stopped");
	return -1;
}

/* No time of day in it: the same tree gives the same bytes. */
static int
pack_open(struct packer *k)
{
	int gzip = (k->p->b->flags & PF_GZIP) != 0;

	if ((k->a = archive_write_new()) == NULL ||
	    (k->e = archive_entry_new()) == NULL)
		return -1;
	if (archive_write_set_format_gnutar(k->a) != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(k->a, BLOCK) != ARCHIVE_OK ||
	    archive_write_set_bytes_in_last_block(k->a, 1) != ARCHIVE_OK)
		return -1;
	if (gzip &&
	    (archive_write_add_filter_gzip(k->a) != ARCHIVE_OK ||
		archive_write_set_options(k->a,
		    "gzip:!timestamp,gzip:compression-level=5") != ARCHIVE_OK))
		return -1;
	return archive_write_open(k->a, k->p, NULL, write_cb, NULL);
}

enum code
pack_run(struct pack *p)
{
	struct packer k = {.p = p};
	enum code code = C_SRV_UNAVAILABLE;

	if (pack_open(&k) == ARCHIVE_OK)
		code = pack_sources(&k);
	if (code == C_OK && archive_write_close(k.a) != ARCHIVE_OK)
		code = C_SRV_UNAVAILABLE;
	if (code != C_OK && k.a != NULL)
		(void)archive_write_fail(k.a);
	archive_write_free(k.a);
	archive_entry_free(k.e);
	p->fin.entries = k.entries;
	return code;
}
