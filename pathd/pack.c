/*
 * SPDX-License-Identifier: ISC
 *
 * The writing side of archives, in a worker.  Each entry is judged again: what
 * is denied and what leads out of the scope does not show; what is shown and
 * cannot be packed is reported.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/beneath.h"
#include "pathd/gz.h"
#include "pathd/pack.h"
#include "pathd/roots.h"
#include "pathd/sight.h"
#include "pathd/tar.h"
#include "pathd/tree.h"

#define BLOCK GZ_BLOCK
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct packer {
	struct pack *p;
	struct sight sight;
	int write; /* 0: only measure */
	struct gz_out *gz;
	struct wbuf head;
	size_t have;	  /* bytes of block that were not written yet */
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

	if (!k->write || f->nskip == ABX_MAX_SKIPPED ||
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

/* ---- the stream ---- */

/* What goes into it is put here, so that it leaves in large pieces. */
static uint8_t block[BLOCK];

static enum code
stream_flush(struct packer *k, int end)
{
	size_t n = k->have;
	int rc = 0;

	k->have = 0;
	if (k->gz != NULL)
		rc = gz_out_put(k->gz, block, n, end);
	else if (n > 0)
		rc = k->p->out(k->p->arg, block, n);
	return rc == 0 ? C_OK : C_SRV_UNAVAILABLE;
}

static enum code
stream_put(struct packer *k, const uint8_t *p, size_t n)
{
	size_t part;

	for (; n > 0; n -= part, p += part) {
		if (k->have == BLOCK && stream_flush(k, 0) != C_OK)
			return C_SRV_UNAVAILABLE;
		part = n < BLOCK - k->have ? n : BLOCK - k->have;
		memcpy(block + k->have, p, part);
		k->have += part;
	}
	return C_OK;
}

static enum code
stream_zeros(struct packer *k, uint64_t n)
{
	static const uint8_t zeros[8 * TAR_BLOCK];
	enum code code = C_OK;
	size_t part;

	for (; n > 0 && code == C_OK; n -= part) {
		if (pack_stop(k))
			return C_SRV_UNAVAILABLE;
		part = n < sizeof(zeros) ? (size_t)n : sizeof(zeros);
		code = stream_put(k, zeros, part);
	}
	return code;
}

/* ---- one entry ---- */

static enum code
pack_head(
    struct packer *k, const char *path, const struct stat *st, const char *link)
{
	char name[2 * ABX_PATH_MAX];
	struct tar_head h = {.mode = st->st_mode & 0777,
	    .mtime = st->st_mtim.tv_sec,
	    .path = name,
	    .link = link};

	if (pack_name(k, path, name, sizeof(name) - 1) == -1)
		return C_FS_NAME_TOO_LONG;
	if (S_ISDIR(st->st_mode))
		strlcat(name, "/", sizeof(name));
	h.type = S_ISDIR(st->st_mode) ? '5' : link != NULL ? '2' : '0';
	if (S_ISREG(st->st_mode))
		h.size = (uint64_t)st->st_size;
	wbuf_reset(&k->head);
	tar_put(&k->head, &h);
	return k->head.err ? C_SRV_UNAVAILABLE
			   : stream_put(k, k->head.p, k->head.len);
}

/* The promised number of bytes, whatever becomes of the file: what it lacks
 * is zeros. */
static enum code
pack_bytes(struct packer *k, int fd, uint64_t size)
{
	uint64_t left = size;
	size_t room;
	ssize_t n;

	while (left > 0) {
		if (pack_stop(k))
			return C_SRV_UNAVAILABLE;
		if (k->have == BLOCK && stream_flush(k, 0) != C_OK)
			return C_SRV_UNAVAILABLE;
		room = BLOCK - k->have;
		n = read(
		    fd, block + k->have, left < room ? (size_t)left : room);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return beneath_act_code(errno);
		if (n == 0)
			break;
		k->have += (size_t)n;
		left -= (uint64_t)n;
	}
	return stream_zeros(k, left + tar_pad(size));
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
		 k->write && (code = pack_head(k, path, &st, NULL)) == C_OK)
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
	if ((code = pack_count(k, 0)) != C_OK || !k->write)
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
	return code != C_OK || !k->write ? code : pack_head(k, path, st, NULL);
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
		if (code == C_OK && k->write)
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

/* ---- all of it ---- */

static enum code
pack_open(struct packer *k)
{
	struct pack *p = k->p;

	k->write = 1;
	/* two long names and their heads */
	wbuf_init(&k->head, 8 * ABX_PATH_MAX);
	if ((p->b->flags & PF_GZIP) == 0)
		return C_OK;
	k->gz = gz_out_new(p->out, p->arg);
	return k->gz == NULL ? C_SRV_UNAVAILABLE : C_OK;
}

/* No time of day in it: the same tree gives the same bytes. */
enum code
pack_run(struct pack *p)
{
	struct packer k = {.p = p};
	enum code code;

	if ((code = pack_open(&k)) == C_OK)
		code = pack_sources(&k);
	if (code == C_OK)
		code = stream_zeros(&k, TAR_TAIL);
	if (code == C_OK)
		code = stream_flush(&k, 1);
	gz_out_free(k.gz);
	wbuf_free(&k.head);
	p->fin.entries = k.entries;
	return code;
}
