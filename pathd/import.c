/*
 * SPDX-License-Identifier: ISC
 *
 * Imports, in a worker.  Members are unpacked into a staging directory inside
 * the target; when the whole archive was read and every member admitted, what
 * they would replace is looked at, and only then they are moved to their
 * places; when one cannot be, those that were are moved back.  Links are never
 * followed on the way.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/beneath.h"
#include "pathd/import.h"
#include "pathd/roots.h"
#include "pathd/tree.h"

#define ENTRIES 1000000	   /* without a limit of the policy */
#define ITSELF 10000	   /* names of the directory, which are no entries */
#define BYTES (1ULL << 36) /* likewise: 64 GiB */
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* ---- names, pure ---- */

enum code
import_name(const char *raw, char out[ABX_PATH_MAX + 1])
{
	size_t n, len = 0, segs = 0;

	out[0] = '\0';
	if (raw[0] == '/')
		return C_POL_PATH_NOT_ALLOWED;
	for (; *raw != '\0'; raw += n) {
		while (*raw == '/')
			raw++;
		n = strcspn(raw, "/");
		if (n == 0 || (n == 1 && raw[0] == '.'))
			continue;
		if (n == 2 && raw[0] == '.' && raw[1] == '.')
			return C_POL_PATH_NOT_ALLOWED;
		if (n > 255 || len + 1 + n > ABX_PATH_MAX ||
		    ++segs > ABX_PATH_SEGS)
			return C_FS_NAME_TOO_LONG;
		/* nobody could see or ask for what has such a name */
		if (beneath_is_ours(raw, n))
			return C_POL_PATH_INVALID;
		if (len > 0)
			out[len++] = '/';
		memcpy(out + len, raw, n);
		out[len += n] = '\0';
	}
	return C_OK;
}

int
import_link_inside(const char *member, const char *text)
{
	long depth = 0;
	int down = 0;
	size_t n;

	if (text[0] == '/' || text[0] == '\0')
		return 0;
	for (; (member = strchr(member, '/')) != NULL; member++)
		depth++;
	for (; *text != '\0'; text += n) {
		while (*text == '/')
			text++;
		n = strcspn(text, "/");
		if (n == 2 && text[0] == '.' && text[1] == '.') {
			if (down || --depth < 0)
				return 0;
		} else if (n > 0 && !(n == 1 && text[0] == '.'))
			down = 1;
	}
	return 1;
}

/* ---- the life of one ---- */

enum code
import_open(struct import *im, const struct pathd *pd, const struct bulk *b)
{
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	enum code code;

	memset(im, 0, sizeof(*im));
	im->pd = pd;
	im->b = b;
	im->file = im->stage.fd = im->stage.up.fd = im->top = -1;
	im->undo.dir = im->undo.from = im->undo.log = -1;
	if (!b->has_dst || b->nsrc != 0)
		return C_SRV_INTERNAL;
	if ((code = roots_locate(&pd->roots, &b->dst, &root, full)) != C_OK)
		return code;
	if ((im->path = roots_path(root, full)) == NULL ||
	    sight_new(&im->sight, pd, b->refs, b->nrefs, b->flags, &b->deny) ==
		-1)
		return C_SRV_UNAVAILABLE;
	if ((code = stage_open(&im->stage, pd, &b->dst, b->flags, 1)) != C_OK)
		return code;
	if (mkdirat(im->stage.fd, UNDO_FROM, 0700) == -1 ||
	    (im->top = openat(im->stage.fd, UNDO_FROM, OPEN_DIR)) == -1)
		return beneath_act_code(errno);
	return C_OK;
}

static enum code
file_end(struct import *im)
{
	int rc;

	if (im->file == -1)
		return C_OK;
	rc = ftruncate(im->file, (off_t)im->size);
	if (rc == 0)
		rc = fchmod(im->file, im->mode & 0777 & ~im->pd->umask);
	rc = close(im->file) == -1 || rc == -1;
	im->file = -1;
	return rc ? beneath_act_code(errno) : C_OK;
}

void
import_close(struct import *im)
{
	if (im->file != -1)
		close(im->file);
	im->file = -1;
	if (im->top != -1)
		close(im->top);
	im->top = -1;
	undo_close(&im->undo);
	stage_close(&im->stage);
	sight_clear(&im->sight);
	free(im->path);
	im->path = NULL;
}

/* ---- members ---- */

/* A name below something that the archive itself made a link or a file. */
static enum code
parent_code(int err)
{
	return err == ELOOP || err == ENOTDIR ? C_POL_SYMLINK_DENIED
					      : beneath_act_code(err);
}

static enum code
make_file(struct import *im, int dir, const char *name, const struct member *m)
{
	uint64_t max = im->b->max_bytes < BYTES ? im->b->max_bytes : BYTES;

	if (__builtin_add_overflow(im->bytes, m->size, &im->bytes) ||
	    im->bytes > max)
		return C_LIM_MAX_BYTES;
	im->file = openat(dir, name,
	    O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
	if (im->file == -1)
		return beneath_act_code(errno);
	im->size = im->left = m->size;
	im->mode = m->mode;
	return C_OK;
}

/* A second name that is the first one: there is nothing to do. */
static int
links_itself(int dir, const char *name, const char *rel, const struct member *m)
{
	char to[ABX_PATH_MAX + 1];
	struct stat st;

	return import_name(m->link, to) == C_OK && strcmp(to, rel) == 0 &&
	       fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISREG(st.st_mode);
}

/* Another name for a member before it. */
static enum code
make_hard(struct import *im, int dir, const char *name, const struct member *m)
{
	char to[ABX_PATH_MAX + 1];
	enum code code;
	const char *old;
	struct stat st;
	int from, rc;

	if ((im->b->flags & PF_HARDLINKS) == 0)
		return C_POL_HARDLINK_DENIED;
	if ((code = import_name(m->link, to)) != C_OK)
		return code;
	if (to[0] == '\0' || (from = beneath_parent(im->top, to, &old)) == -1)
		return C_POL_HARDLINK_DENIED;
	/* a link would lead elsewhere from here */
	rc = fstatat(from, old, &st, AT_SYMLINK_NOFOLLOW);
	if (rc == 0)
		rc = S_ISREG(st.st_mode) ? linkat(from, old, dir, name, 0) : -1;
	close(from);
	return rc == 0 ? C_OK : C_POL_HARDLINK_DENIED;
}

static enum code
make_link(struct import *im, int dir, const char *name, const char *rel,
    const struct member *m)
{
	if ((im->b->flags & PF_NOSYMLINKS) != 0)
		return C_POL_SYMLINK_DENIED;
	if (!import_link_inside(rel, m->link))
		return C_POL_PATH_NOT_ALLOWED;
	return symlinkat(m->link, dir, name) == 0 ? C_OK
						  : beneath_act_code(errno);
}

static enum code
make_dir(struct import *im, int dir, const char *name, const struct member *m)
{
	struct stat st;

	if (mkdirat(dir, name, m->mode | 0700) == 0)
		return C_OK;
	if (errno != EEXIST ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISDIR(st.st_mode))
		return parent_code(errno == EEXIST ? ENOTDIR : errno);
	/* it was counted when a member below it came first */
	im->parents -= im->parents > 0;
	return C_OK;
}

static enum code
make_member(struct import *im, int dir, const char *name, const char *rel,
    const struct member *m)
{
	if (m->type == ME_DIR)
		return make_dir(im, dir, name, m);
	/* tar(1) is told of a file twice */
	if (m->type == ME_HARD && links_itself(dir, name, rel, m))
		return C_OK;
	/* the last of that name is the one that counts */
	if (unlinkat(dir, name, 0) == -1 && errno != ENOENT)
		return errno == EISDIR ? C_FS_IS_DIRECTORY
				       : beneath_act_code(errno);
	switch (m->type) {
	case ME_FILE:
		return make_file(im, dir, name, m);
	case ME_HARD:
		return make_hard(im, dir, name, m);
	case ME_LINK:
		return make_link(im, dir, name, rel, m);
	default:
		return C_POL_NOT_REGULAR;
	}
}

enum code
import_member(struct import *im, const struct member *m)
{
	char rel[ABX_PATH_MAX + 1], path[ABX_PATH_MAX + 1];
	struct parents up;
	enum code code;
	int n;

	if ((code = file_end(im)) != C_OK ||
	    (code = import_name(m->path, rel)) != C_OK)
		return code;
	if (rel[0] == '\0') {
		if (m->type != ME_DIR)
			return C_POL_PATH_NOT_ALLOWED;
		return ++im->itself > ITSELF ? C_LIM_MAX_ENTRIES : C_OK;
	}
	n = snprintf(path, sizeof(path), "%s/%s",
	    strcmp(im->path, "/") == 0 ? "" : im->path, rel);
	if (n < 0 || (size_t)n >= sizeof(path))
		return C_FS_NAME_TOO_LONG;
	if (deny_covers(&im->sight.deny, path))
		return C_POL_PATH_DENIED;
	im->entries++;
	if (parents_open(&up, im->top, rel, 1) == -1)
		return parent_code(errno);
	im->parents += parents_made(&up);
	code = C_LIM_MAX_ENTRIES;
	if (im->entries + im->parents <= im->b->max_entries &&
	    im->entries + im->parents <= ENTRIES)
		code = make_member(im, up.fd, up.name, rel, m);
	parents_close(&up);
	return code;
}

enum code
import_data(struct import *im, uint64_t off, const uint8_t *p, size_t n)
{
	uint64_t end;
	ssize_t k;

	if (im->file == -1 || n == 0 || n > im->left)
		return C_ARGS_INVALID;
	if (__builtin_add_overflow(off, (uint64_t)n, &end) || end > im->size)
		return C_ARGS_INVALID;
	im->left -= n;
	while (n > 0) {
		k = pwrite(im->file, p, n, (off_t)off);
		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1)
			return beneath_act_code(errno);
		p += k;
		off += (uint64_t)k;
		n -= (size_t)k;
	}
	return C_OK;
}

/* ---- into their places ---- */

/* A walk of the stage beside the target: the directory that each level goes
 * into, -1 below one that does not exist there. */
struct merge {
	struct import *im;
	int move; /* do it; else only look */
	int dirs[TREE_DEPTH + 1];
	size_t depth;
	uint64_t moved;
};

/* May an existing name be replaced by what is in the stage? */
static enum code
merge_check(
    const struct merge *g, const struct stat *is, const struct stat *new)
{
	if (S_ISDIR(new->st_mode))
		return S_ISDIR(is->st_mode)   ? C_OK
		       : S_ISLNK(is->st_mode) ? C_POL_SYMLINK_DENIED
					      : C_FS_NOT_DIRECTORY;
	if (S_ISDIR(is->st_mode))
		return C_FS_IS_DIRECTORY;
	if (S_ISLNK(is->st_mode))
		return C_OK; /* the link itself goes */
	if (!S_ISREG(is->st_mode))
		return C_POL_NOT_REGULAR;
	return is->st_nlink > 1 && (g->im->b->flags & PF_HARDLINKS) == 0
		   ? C_POL_HARDLINK_DENIED
		   : C_OK;
}

static enum code
merge_new(struct merge *g, int dir, const char *name, int to, const char *path,
    const struct stat *st)
{
	enum code code;

	if (!g->move) {
		if (S_ISDIR(st->st_mode))
			g->dirs[g->depth++] = -1;
		return C_OK;
	}
	code = undo_move(&g->im->undo, dir, name, to, path + 1, st, NULL);
	if (code != C_OK)
		return code;
	g->moved++;
	return TREE_SKIP;
}

/* path: below the target, behind a slash. */
static enum code
merge_denied(const struct merge *g, const char *path)
{
	char full[ABX_PATH_MAX + 1];
	int n;

	n = snprintf(full, sizeof(full), "%s%s",
	    strcmp(g->im->path, "/") == 0 ? "" : g->im->path, path);
	if (n < 0 || (size_t)n >= sizeof(full))
		return C_FS_NAME_TOO_LONG;
	return deny_covers(&g->im->sight.deny, full) ? C_POL_PATH_DENIED : C_OK;
}

static enum code
merge_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	struct merge *g = arg;
	int to = g->dirs[g->depth - 1], fd;
	struct stat is;
	enum code code;

	pathd_beat(g->im->pd);
	/* others of this user may have put it there */
	if ((code = merge_denied(g, path)) != C_OK)
		return code;
	if (to == -1) {
		if (S_ISDIR(st->st_mode))
			g->dirs[g->depth++] = -1;
		return C_OK;
	}
	if (fstatat(to, name, &is, AT_SYMLINK_NOFOLLOW) == -1)
		return errno == ENOENT ? merge_new(g, dir, name, to, path, st)
				       : beneath_act_code(errno);
	if ((code = merge_check(g, &is, st)) != C_OK)
		return code;
	if (S_ISDIR(st->st_mode)) {
		if ((fd = openat(to, name, OPEN_DIR)) == -1)
			return beneath_walk_code(errno);
		g->dirs[g->depth++] = fd;
		return C_OK;
	}
	if (!g->move)
		return C_OK;
	code = undo_move(&g->im->undo, dir, name, to, path + 1, st, &is);
	if (code == C_OK)
		g->moved++;
	return code;
}

static enum code
merge_leave(void *arg, int dir, const char *name)
{
	struct merge *g = arg;
	int fd = g->dirs[--g->depth];

	if (fd != -1)
		close(fd);
	return C_OK;
}

static const struct tree_ops merge_ops = {
    .entry = merge_entry, .leave = merge_leave};

static enum code
merge(struct import *im, int move, uint64_t *moved)
{
	struct merge g = {.im = im, .move = move};
	enum code code;

	g.dirs[g.depth++] = im->stage.up.fd;
	code = tree_walk(im->top, "", &merge_ops, &g);
	while (g.depth > 1)
		(void)merge_leave(&g, -1, NULL);
	*moved = g.moved;
	return code;
}

enum code
import_commit(struct import *im)
{
	uint64_t moved;
	enum code code;

	if ((code = file_end(im)) != C_OK ||
	    (code = stage_in_place(&im->stage)) != C_OK ||
	    (code = merge(im, 0, &moved)) != C_OK ||
	    (code = undo_open(&im->undo, im->stage.fd, &im->stage)) != C_OK)
		return code;
	/* some file systems skip entries while others go */
	do
		code = merge(im, 1, &moved);
	while (code == C_OK && moved > 0);
	/* it may have been given another name meanwhile, where other things
	 * are denied */
	if (code == C_OK)
		code = stage_in_place(&im->stage);
	if (code == C_OK)
		code = undo_keep(&im->undo, im->stage.fd);
	if (code != C_OK)
		undo_back(&im->undo, im->stage.up.fd);
	return code;
}
