/*
 * SPDX-License-Identifier: ISC
 *
 * Copies, in a worker.  A file is an upload from here; a directory is filled
 * in a staging directory.  What the caller may not know of is left out, at
 * either end (design: paths, "Use").
 */
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <linux/fs.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/beneath.h"
#include "pathd/copy.h"
#include "pathd/put.h"
#include "pathd/roots.h"
#include "pathd/sight.h"
#include "pathd/stage.h"
#include "pathd/tree.h"

#define CHUNK (8 * 1024 * 1024)
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* ---- bytes ---- */

static int
stopped(const struct stopper *stop)
{
	return stop != NULL && stop->stop(stop->arg);
}

/* At most n bytes from where both stand: how many, or -1 with errno. */
static ssize_t
move_some(int from, int to, size_t n)
{
	static char buf[256 * 1024];
	ssize_t got, put, done;

	got = copy_file_range(from, NULL, to, NULL, n, 0);
	if (got != -1 || (errno != EXDEV && errno != EINVAL &&
			     errno != EOPNOTSUPP && errno != ENOSYS))
		return got;
	got = read(from, buf, n < sizeof(buf) ? n : sizeof(buf));
	for (done = 0; done < got; done += put)
		if ((put = write(to, buf + done, (size_t)(got - done))) == -1)
			return -1;
	return got;
}

/* One stretch of data, from off to end. */
static enum code
copy_data(int from, int to, off_t off, off_t end, const struct stopper *stop)
{
	ssize_t n;

	if (lseek(from, off, SEEK_SET) == -1 || lseek(to, off, SEEK_SET) == -1)
		return beneath_act_code(errno);
	while (off < end) {
		if (stopped(stop))
			return C_SRV_UNAVAILABLE;
		n = move_some(
		    from, to, end - off < CHUNK ? (size_t)(end - off) : CHUNK);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return beneath_act_code(errno);
		if (n == 0)
			break; /* it has shrunk */
		off += n;
	}
	return C_OK;
}

enum code
copy_bytes(int from, int to, const struct stopper *stop)
{
	enum code code = C_OK;
	off_t off = 0, end;
	struct stat st;

	if (ioctl(to, FICLONE, from) == 0)
		return C_OK;
	if (fstat(from, &st) == -1)
		return beneath_act_code(errno);
	while (code == C_OK && off < st.st_size) {
		if ((off = lseek(from, off, SEEK_DATA)) == -1) {
			if (errno == ENXIO)
				break; /* a hole up to the end */
			off = 0;       /* no holes here */
			end = st.st_size;
		} else if ((end = lseek(from, off, SEEK_HOLE)) == -1)
			end = st.st_size;
		code = copy_data(from, to, off, end, stop);
		off = end;
	}
	if (code == C_OK && ftruncate(to, st.st_size) == -1)
		code = beneath_act_code(errno);
	return code;
}

/* ---- a file ---- */

/* The source, opened and still what was decided on: fd, or -1 with *code. */
static int
source_open(const struct pathd *pd, const struct bulk *b, int flags,
    struct stat *st, enum code *code)
{
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	int fd;

	*code = roots_locate(&pd->roots, &b->src[0], &root, full);
	if (*code != C_OK)
		return -1;
	if ((fd = beneath_open(root->fd, full, flags)) == -1) {
		*code = beneath_walk_code(errno);
		return -1;
	}
	if (fstat(fd, st) == 0 && st->st_dev == b->src[0].dev &&
	    st->st_ino == b->src[0].ino)
		return fd;
	*code = C_POL_PATH_CHANGED;
	close(fd);
	return -1;
}

static enum code
copy_file(
    const struct pathd *pd, const struct bulk *b, const struct stopper *stop)
{
	struct put p = {.flags = b->flags, .max_bytes = b->max_bytes};
	struct put_fin fin = {0};
	struct upload u;
	struct stat st;
	enum code code;
	int fd;

	fd = source_open(pd, b, OPEN_FILE, &st, &code);
	if (fd == -1)
		return code;
	p.target = b->dst; /* borrowed */
	p.mode = b->dst.kind == FK_MISSING ? st.st_mode & 0777 & ~pd->umask
					   : UINT32_MAX;
	if (!S_ISREG(st.st_mode))
		code = C_POL_NOT_REGULAR;
	else if (st.st_nlink > 1 && (b->flags & PF_HARDLINKS) == 0)
		code = C_POL_HARDLINK_DENIED;
	else if ((uint64_t)st.st_size > b->max_bytes)
		code = C_LIM_MAX_BYTES;
	else {
		if ((code = upload_open(&u, pd, &p)) == C_OK &&
		    (code = copy_bytes(fd, u.fd, stop)) == C_OK)
			code = upload_commit(&u, &fin);
		upload_close(&u);
	}
	close(fd);
	return code;
}

/* ---- a directory ---- */

struct copy {
	const struct pathd *pd;
	const struct bulk *b;
	const struct stopper *stop;
	struct sight sight;
	struct stage stage;
	char *from, *to; /* canonical paths of both */
	int *dirs;	 /* owned; the copy of each level, the first the stage's
			  */
	mode_t *modes;
	size_t depth, cap;
	uint64_t bytes, entries;
};

static int
copy_stop(void *arg)
{
	const struct copy *c = arg;

	return stopped(c->stop);
}

static enum code
copy_push(struct copy *c, int fd, mode_t mode)
{
	size_t cap = c->cap == 0 ? 32 : c->cap * 2;
	mode_t *modes;
	int *dirs;

	if (c->depth == c->cap) {
		dirs = reallocarray(c->dirs, cap, sizeof(*dirs));
		if (dirs != NULL)
			c->dirs = dirs;
		modes = reallocarray(c->modes, cap, sizeof(*modes));
		if (modes != NULL)
			c->modes = modes;
		if (dirs == NULL || modes == NULL)
			return C_SRV_UNAVAILABLE;
		c->cap = cap;
	}
	c->dirs[c->depth] = fd;
	c->modes[c->depth++] = mode;
	return C_OK;
}

static enum code
copy_dir(struct copy *c, const char *name, const struct stat *st)
{
	int up = c->dirs[c->depth - 1], fd;
	enum code code;

	if (st->st_dev == c->stage.dev && st->st_ino == c->stage.ino)
		return TREE_SKIP; /* into itself */
	/* deeper than what can be taken away again */
	if (c->depth >= TREE_DEPTH)
		return C_FS_NAME_TOO_LONG;
	if (mkdirat(up, name, 0700) == -1)
		return beneath_act_code(errno);
	if ((fd = openat(up, name, OPEN_DIR)) == -1)
		return beneath_walk_code(errno);
	code = copy_push(c, fd, st->st_mode & 0777 & ~c->pd->umask);
	if (code != C_OK)
		close(fd);
	return code;
}

static enum code
copy_regular(struct copy *c, int dir, const char *name)
{
	enum code code = C_OK;
	struct stat st;
	int from, to = -1;

	if ((from = openat(dir, name, OPEN_FILE)) == -1)
		return errno == ENOENT ? C_OK : beneath_act_code(errno);
	if (fstat(from, &st) == -1)
		code = beneath_act_code(errno);
	else if (!sight_content(&c->sight, &st)) {
		close(from);
		return C_OK;
	} else if (__builtin_add_overflow(
		       c->bytes, (uint64_t)st.st_size, &c->bytes) ||
		   c->bytes > c->b->max_bytes)
		code = C_LIM_MAX_BYTES;
	if (code == C_OK) {
		to = openat(c->dirs[c->depth - 1], name,
		    O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
		code = to == -1 ? beneath_act_code(errno)
				: copy_bytes(from, to, c->stop);
	}
	if (code == C_OK && fchmod(to, st.st_mode & 0777 & ~c->pd->umask) == -1)
		code = beneath_act_code(errno);
	if (to != -1)
		close(to);
	close(from);
	return code;
}

static enum code
copy_link(struct copy *c, int dir, const char *name)
{
	char text[ABX_PATH_MAX + 1];
	ssize_t n;

	n = readlinkat(dir, name, text, sizeof(text));
	if (n == -1)
		return errno == ENOENT || errno == EINVAL
			   ? C_OK
			   : beneath_act_code(errno);
	if ((size_t)n == sizeof(text))
		return C_OK;
	text[n] = '\0';
	return symlinkat(text, c->dirs[c->depth - 1], name) == 0
		   ? C_OK
		   : beneath_act_code(errno);
}

static enum code
copy_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	char to[ABX_PATH_MAX + 1];
	struct copy *c = arg;
	int n;

	n = snprintf(to, sizeof(to), "%s%s", c->to,
	    path + (strcmp(c->from, "/") == 0 ? 0 : strlen(c->from)));
	if (n < 0 || (size_t)n >= sizeof(to))
		return C_FS_NAME_TOO_LONG;
	if (!sight_entry(&c->sight, path, st) ||
	    deny_covers(&c->sight.deny, to))
		return TREE_SKIP;
	if (++c->entries > c->b->max_entries)
		return C_LIM_MAX_ENTRIES;
	if (S_ISDIR(st->st_mode))
		return copy_dir(c, name, st);
	if (S_ISLNK(st->st_mode))
		return copy_link(c, dir, name);
	return S_ISREG(st->st_mode) ? copy_regular(c, dir, name) : C_OK;
}

static enum code
copy_leave(void *arg, int dir, const char *name)
{
	struct copy *c = arg;
	int fd = c->dirs[--c->depth], rc;

	rc = fchmod(fd, c->modes[c->depth]);
	close(fd);
	return rc == 0 ? C_OK : beneath_act_code(errno);
}

static const struct tree_ops copy_ops = {
    .entry = copy_entry, .leave = copy_leave, .stop = copy_stop};

static enum code
copy_fill(struct copy *c, int from, mode_t mode)
{
	enum code code;

	code = stage_open(&c->stage, c->pd, &c->b->dst, c->b->flags, 0);
	if (code == C_OK)
		code = copy_push(c, c->stage.fd, mode);
	if (code == C_OK)
		code = tree_walk(from, c->from, &copy_ops, c);
	while (c->depth > 1)
		close(c->dirs[--c->depth]);
	if (code == C_OK)
		code = stage_commit(&c->stage, &c->b->dst, c->b->flags, mode);
	stage_close(&c->stage);
	return code;
}

static enum code
copy_tree(
    const struct pathd *pd, const struct bulk *b, const struct stopper *stop)
{
	struct copy c = {.pd = pd, .b = b, .stop = stop};
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	enum code code;
	struct stat st;
	int fd;

	fd = source_open(pd, b, O_RDONLY | O_DIRECTORY, &st, &code);
	if (fd == -1)
		return code;
	if (roots_locate(&pd->roots, &b->src[0], &root, full) == C_OK)
		c.from = roots_path(root, full);
	if (roots_locate(&pd->roots, &b->dst, &root, full) == C_OK)
		c.to = roots_path(root, full);
	code = C_SRV_UNAVAILABLE;
	if (sight_new(&c.sight, pd, b->refs, b->nrefs, b->flags, &b->deny) ==
		0 &&
	    c.from != NULL && c.to != NULL)
		code = copy_fill(&c, fd, st.st_mode & 0777 & ~pd->umask);
	sight_clear(&c.sight);
	free(c.from);
	free(c.to);
	free(c.dirs);
	free(c.modes);
	close(fd);
	return code;
}

void
copy_run(const struct pathd *pd, const struct bulk *b,
    const struct stopper *stop, struct done *done)
{
	done->count = 0;
	if (b->nsrc != 1 || !b->has_dst)
		done->code = C_SRV_INTERNAL;
	else if (b->src[0].kind == FK_DIR)
		done->code = (uint16_t)copy_tree(pd, b, stop);
	else
		done->code = (uint16_t)copy_file(pd, b, stop);
}
