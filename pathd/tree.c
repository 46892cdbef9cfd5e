/*
 * SPDX-License-Identifier: ISC
 *
 * The one walk over a tree that scans and recursive deletions use (design:
 * paths, "Use").  Links are entries like files and are never entered; a
 * directory is entered only when it is still the one that was looked at.
 * Changes nothing itself.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "pathd/beneath.h"
#include "pathd/pathd.h"
#include "pathd/tree.h"

struct level {
	int fd;
	off_t next; /* where to go on reading after a directory below */
	size_t len; /* bytes of path that spell this directory */
};

struct tree {
	const struct tree_ops *ops;
	void *arg;
	struct level *lv; /* owned; the first is the caller's directory */
	size_t depth, cap;
	dev_t dev;
	size_t pos, have; /* of buf, entries of the deepest level */
	char path[ABX_PATH_MAX + 1];
	union {
		struct dirent64 align;
		char buf[32 * 1024];
	} u;
};

static enum code
tree_push(struct tree *t, int fd, size_t len)
{
	struct level *lv;
	size_t cap;

	if (t->depth >= TREE_DEPTH)
		return C_FS_NAME_TOO_LONG;
	if (t->depth == t->cap) {
		cap = t->cap == 0 ? 16 : t->cap * 2;
		lv = recallocarray(t->lv, t->cap, cap, sizeof(*lv));
		if (lv == NULL)
			return C_SRV_UNAVAILABLE;
		t->lv = lv;
		t->cap = cap;
	}
	t->lv[t->depth].fd = fd;
	t->lv[t->depth].next = 0;
	t->lv[t->depth].len = len;
	t->depth++;
	t->pos = t->have = 0;
	return C_OK;
}

/* Back to the directory above. */
static enum code
tree_pop(struct tree *t)
{
	struct level *up;
	const char *name;

	close(t->lv[--t->depth].fd);
	t->path[t->lv[t->depth].len] = '\0';
	t->pos = t->have = 0;
	up = &t->lv[t->depth - 1];
	name = t->path + up->len + 1;
	if (t->ops->leave != NULL)
		return t->ops->leave(t->arg, up->fd, name);
	return C_OK;
}

/* Continue in the deepest level after one below it was left. */
static enum code
tree_resume(struct tree *t)
{
	struct level *lv = &t->lv[t->depth - 1];

	t->path[lv->len] = '\0';
	if (lseek(lv->fd, lv->next, SEEK_SET) == -1)
		/* so ext4 says of a directory that was removed meanwhile */
		return errno == EINVAL ? C_POL_PATH_CHANGED
				       : beneath_act_code(errno);
	return C_OK;
}

static enum code
tree_enter(struct tree *t, const char *name, const struct stat *st, off_t next)
{
	struct level *lv = &t->lv[t->depth - 1];
	struct stat now;
	enum code code;
	int fd;

	lv->next = next;
	fd = openat(lv->fd, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return beneath_walk_code(errno);
	if (fstat(fd, &now) == -1)
		code = beneath_act_code(errno);
	else if (now.st_dev != st->st_dev || now.st_ino != st->st_ino)
		code = C_POL_PATH_CHANGED;
	else if (!t->ops->cross && now.st_dev != t->dev)
		code = C_FS_PERMISSION; /* another file system ends here */
	else
		code = tree_push(t, fd, strlen(t->path));
	if (code != C_OK)
		close(fd);
	return code;
}

static enum code
tree_entry(struct tree *t, const char *name, off_t next)
{
	struct level *lv = &t->lv[t->depth - 1];
	size_t n = strlen(name);
	struct stat st;
	enum code code;

	/* it could not be asked for, and nothing below it either */
	if (lv->len + 1 + n > ABX_PATH_MAX)
		return t->ops->barred == NULL ? C_FS_NAME_TOO_LONG
					      : t->ops->barred(t->arg, t->path,
						    C_FS_NAME_TOO_LONG);
	t->path[lv->len] = '/';
	memcpy(t->path + lv->len + 1, name, n + 1);
	if (fstatat(lv->fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return errno == ENOENT ? C_OK : beneath_act_code(errno);
	code = t->ops->entry(t->arg, lv->fd, name, t->path, &st);
	if (code == TREE_SKIP)
		return C_OK;
	if (code != C_OK || !S_ISDIR(st.st_mode))
		return code;
	/* name lies in the buffer that the next level will use */
	code = tree_enter(t, t->path + lv->len + 1, &st, next);
	if (code != C_OK && !beneath_short(code) && t->ops->barred != NULL)
		code = t->ops->barred(t->arg, t->path, code);
	return code;
}

/* Read more of the deepest level: C_OK with have 0 at its end. */
static enum code
tree_fill(struct tree *t)
{
	long n;

	n = syscall(
	    SYS_getdents64, t->lv[t->depth - 1].fd, t->u.buf, sizeof(t->u.buf));
	if (n == -1)
		return beneath_act_code(errno);
	t->pos = 0;
	t->have = (size_t)n;
	return C_OK;
}

static enum code
tree_next(struct tree *t)
{
	const struct dirent64 *d;

	d = (const void *)(t->u.buf + t->pos);
	t->pos += d->d_reclen;
	if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
		return C_OK;
	return tree_entry(t, d->d_name, (off_t)d->d_off);
}

static enum code
tree_run(struct tree *t)
{
	enum code code = C_OK;

	while (code == C_OK) {
		if (t->ops->stop != NULL && t->ops->stop(t->arg))
			return C_SRV_UNAVAILABLE;
		if (t->pos < t->have) {
			code = tree_next(t);
			continue;
		}
		if ((code = tree_fill(t)) != C_OK || t->have > 0)
			continue;
		if (t->depth == 1)
			return C_OK;
		if ((code = tree_pop(t)) == C_OK)
			code = tree_resume(t);
	}
	return code;
}

enum code
tree_walk(int dir, const char *path, const struct tree_ops *ops, void *arg)
{
	struct tree *t;
	struct stat st;
	enum code code;

	if (strcmp(path, "/") == 0)
		path = ""; /* names follow behind a slash */
	if ((t = calloc(1, sizeof(*t))) == NULL)
		return C_SRV_UNAVAILABLE;
	t->ops = ops;
	t->arg = arg;
	if (strlcpy(t->path, path, sizeof(t->path)) >= sizeof(t->path))
		code = C_FS_NAME_TOO_LONG;
	else if (fstat(dir, &st) == -1 || lseek(dir, 0, SEEK_SET) == -1)
		code = beneath_act_code(errno);
	else {
		t->dev = st.st_dev;
		if ((code = tree_push(t, dir, strlen(path))) == C_OK)
			code = tree_run(t);
	}
	while (t->depth > 1)
		close(t->lv[--t->depth].fd);
	free(t->lv);
	free(t);
	return code == TREE_DONE ? C_OK : code;
}

/* ---- removing one ---- */

struct gone {
	const struct pathd *pd; /* or NULL */
};

static enum code
gone_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	const struct gone *g = arg;

	pathd_beat(g->pd);
	if (S_ISDIR(st->st_mode) || unlinkat(dir, name, 0) == 0 ||
	    errno == ENOENT)
		return C_OK;
	return beneath_act_code(errno);
}

static enum code
gone_leave(void *arg, int dir, const char *name)
{
	return unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT ||
		       errno == ENOTEMPTY
		   ? C_OK
		   : beneath_act_code(errno);
}

static const struct tree_ops gone_ops = {
    .entry = gone_entry, .leave = gone_leave};

enum code
tree_remove(const struct pathd *pd, int dir, const char *name)
{
	struct gone g = {pd};

	enum code code = C_OK;
	int fd, i;

	fd = openat(dir, name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1)
		return errno == ENOENT ? C_OK : beneath_walk_code(errno);
	/* some file systems skip entries while others go */
	for (i = 0; i < 8 && code == C_OK; i++) {
		code = tree_walk(fd, "", &gone_ops, &g);
		if (code != C_OK || unlinkat(dir, name, AT_REMOVEDIR) == 0 ||
		    errno == ENOENT)
			break;
		if (errno != ENOTEMPTY)
			code = beneath_act_code(errno);
	}
	close(fd);
	return code;
}
