/*
 * SPDX-License-Identifier: ISC
 *
 * Listing, measuring and removing session workspaces.  What lies in one was
 * made by a command and means no good: modes that keep its owner out, and
 * trees that are deeper than any path is long.  Never leaves the directory of
 * the root, and removes nothing but a workspace.
 */
#include "pathd/space.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "pathd/beneath.h"
#include "pathd/roots.h"
#include "pathd/tree.h"

#define OPEN_LIST (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
#define DROP_DEPTH 48 /* below that a directory is moved up first */
#define DROP_BUF 8192

static int
stopped(const struct stopper *stop)
{
	return stop != NULL && stop->stop(stop->arg);
}

/* ---- entries of one directory ---- */

struct reader {
	size_t pos, have;
	union {
		struct dirent64 align;
		char buf[DROP_BUF];
	} u;
};

/* The next entry but "." and "..": 1, 0 at the end, -1 with errno. */
static int
reader_next(struct reader *r, int fd, const char **name)
{
	const struct dirent64 *d;
	long n;

	for (;;) {
		if (r->pos >= r->have) {
			n = syscall(
			    SYS_getdents64, fd, r->u.buf, sizeof(r->u.buf));
			if (n <= 0)
				return (int)n;
			r->pos = 0;
			r->have = (size_t)n;
		}
		d = (const void *)(r->u.buf + r->pos);
		r->pos += d->d_reclen;
		*name = d->d_name;
		if (strcmp(*name, ".") != 0 && strcmp(*name, "..") != 0)
			return 1;
	}
}

/* ---- list ---- */

static enum code
list(int root, const struct stopper *stop, struct space_ans *ans)
{
	struct reader r = {0};
	const char *name;
	struct stat st;
	int fd, rc;

	if ((fd = beneath_open(root, "", O_RDONLY | O_DIRECTORY)) == -1)
		return beneath_walk_code(errno);
	while ((rc = reader_next(&r, fd, &name)) == 1 && !stopped(stop)) {
		if (!workspace_name_ok(name) ||
		    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (ans->n == ABX_MAX_WORKSPACES) {
			ans->more = 1;
			rc = 0;
			break;
		}
		if (space_ans_add(ans, name, 0, 0) == -1) {
			close(fd);
			return C_SRV_UNAVAILABLE;
		}
	}
	close(fd);
	if (rc == 1)
		return C_SRV_UNAVAILABLE;
	return rc == 0 ? C_OK : beneath_act_code(errno);
}

/* ---- size ---- */

struct size {
	const struct stopper *stop;
	uint64_t left; /* entries that may still be looked at */
	uint64_t bytes;
	int more;
};

static int
size_stop(void *arg)
{
	const struct size *s = arg;

	return stopped(s->stop);
}

static enum code
size_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	struct size *s = arg;
	uint64_t n = (uint64_t)st->st_blocks * 512;

	if (s->left == 0) {
		s->more = 1;
		return TREE_DONE;
	}
	s->left--;
	/* its other names are counted on their own */
	if (!S_ISDIR(st->st_mode) && st->st_nlink > 1)
		n /= st->st_nlink;
	if (__builtin_add_overflow(s->bytes, n, &s->bytes))
		s->bytes = UINT64_MAX;
	return C_OK;
}

/* What went away meanwhile takes no room; what cannot be entered may hide
 * any amount. */
static enum code
size_barred(void *arg, const char *path, enum code code)
{
	struct size *s = arg;

	if (code != C_FS_NOT_FOUND && code != C_POL_PATH_CHANGED)
		s->more = 1;
	return C_OK;
}

static const struct tree_ops size_ops = {
    .entry = size_entry, .barred = size_barred, .stop = size_stop, .cross = 1};

static enum code
size_one(int root, const char *name, struct size *s)
{
	enum code code;
	int fd;

	s->bytes = 0;
	s->more = 0;
	if ((fd = beneath_open(root, name, OPEN_LIST)) == -1)
		return errno == ENOENT ? C_FS_NOT_FOUND
				       : beneath_walk_code(errno);
	/* a short spelling leaves the most room for what lies below */
	code = tree_walk(fd, "/", &size_ops, s);
	close(fd);
	return code;
}

static enum code
sizes(int root, const struct space *q, const struct stopper *stop,
    struct space_ans *ans)
{
	struct size s = {.stop = stop, .left = q->max_entries};
	enum code code = C_OK;
	size_t i;

	for (i = 0; i < q->names.n && !stopped(stop); i++) {
		code = size_one(root, q->names.v[i], &s);
		if (code == C_FS_NOT_FOUND)
			continue;
		if (code == C_SRV_UNAVAILABLE)
			return code;
		if (code != C_OK)
			s.more = 1;
		if (space_ans_add(
			ans, q->names.v[i], s.bytes, (uint8_t)s.more) == -1)
			return C_SRV_UNAVAILABLE;
	}
	return i == q->names.n ? C_OK : C_SRV_UNAVAILABLE;
}

/* ---- drop ---- */

struct drop {
	const struct stopper *stop;
	int top; /* the workspace */
	dev_t dev;
	unsigned moved;		/* directories that were moved up */
	enum code first;	/* what went wrong first in this round */
	uint64_t gone;		/* entries removed or moved in this round */
	struct reader *readers; /* one a level */
};

static void
drop_wrong(struct drop *d, int err)
{
	if (d->first == C_OK)
		d->first = beneath_act_code(err);
}

/* Give its owner the use of a directory that was made without. */
static void
make_usable(int dir, const char *name)
{
	char proc[64];
	int fd;

	fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	/* what could not be done shows when it is entered */
	if (fchmodat(AT_FDCWD, proc, 0700, 0) == -1)
		log_debug("mode of a directory: %s", strerror(errno));
	close(fd);
}

/* Move a directory that lies too deep to the top, for the next round. */
static void
move_up(struct drop *d, int dir, const char *name)
{
	char as[32];
	int i;

	for (i = 0; i < 100; i++) {
		snprintf(as, sizeof(as), "abx-deep-%u", d->moved++);
		if (renameat2(dir, name, d->top, as, RENAME_NOREPLACE) == 0) {
			d->gone++;
			return;
		}
		if (errno != EEXIST)
			break;
	}
	drop_wrong(d, errno);
}

static int drop_dir(struct drop *, int fd, unsigned depth);

static int
drop_below(struct drop *d, int dir, const char *name, const struct stat *st,
    unsigned depth)
{
	struct stat now;
	int fd, rc = 0;

	if ((st->st_mode & 0700) != 0700)
		make_usable(dir, name);
	if (depth == DROP_DEPTH) {
		move_up(d, dir, name);
		return 0;
	}
	if ((fd = openat(dir, name, OPEN_LIST)) == -1) {
		if (errno != ENOENT)
			drop_wrong(d, errno);
		return 0;
	}
	if (fstat(fd, &now) == -1 || now.st_dev != d->dev)
		drop_wrong(d, EBUSY);
	else
		rc = drop_dir(d, fd, depth + 1);
	close(fd);
	if (rc == 0 && unlinkat(dir, name, AT_REMOVEDIR) == 0)
		d->gone++;
	else if (rc == 0 && errno != ENOENT)
		drop_wrong(d, errno);
	return rc;
}

/* All entries of an open directory, as far as they go: 0, or -1 to stop. */
static int
drop_dir(struct drop *d, int fd, unsigned depth)
{
	struct reader *r = &d->readers[depth];
	const char *name;
	struct stat st;
	int rc;

	r->pos = r->have = 0;
	while ((rc = reader_next(r, fd, &name)) == 1) {
		if (stopped(d->stop))
			return -1;
		if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1) {
			if (errno != ENOENT)
				drop_wrong(d, errno);
		} else if (S_ISDIR(st.st_mode)) {
			if (drop_below(d, fd, name, &st, depth) == -1)
				return -1;
		} else if (unlinkat(fd, name, 0) == 0)
			d->gone++;
		else if (errno != ENOENT)
			drop_wrong(d, errno);
	}
	if (rc == -1)
		drop_wrong(d, errno);
	return 0;
}

/* Rounds until it is empty, since directories move up and some file systems
 * skip entries while others go. */
static enum code
drop_rounds(struct drop *d, int root, const char *name)
{
	for (;;) {
		d->first = C_OK;
		d->gone = 0;
		if (lseek(d->top, 0, SEEK_SET) == -1)
			return beneath_act_code(errno);
		if (drop_dir(d, d->top, 0) == -1)
			return C_SRV_UNAVAILABLE;
		if (unlinkat(root, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return C_OK;
		if (d->gone == 0)
			return d->first != C_OK ? d->first
						: beneath_act_code(errno);
	}
}

static enum code
drop(int root, const char *name, const struct stopper *stop)
{
	struct drop d = {.stop = stop};
	struct stat st;
	enum code code;
	int dir;

	if ((dir = beneath_open(root, "", O_PATH | O_DIRECTORY)) == -1)
		return beneath_walk_code(errno);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    (st.st_mode & 0700) != 0700)
		make_usable(dir, name);
	if ((d.top = openat(dir, name, OPEN_LIST)) == -1) {
		code = errno == ENOENT ? C_OK : beneath_walk_code(errno);
		close(dir);
		return code;
	}
	d.readers = calloc(DROP_DEPTH + 2, sizeof(*d.readers));
	if (d.readers == NULL || fstat(d.top, &st) == -1)
		code = C_SRV_UNAVAILABLE;
	else {
		d.dev = st.st_dev;
		code = drop_rounds(&d, dir, name);
	}
	free(d.readers);
	close(d.top);
	close(dir);
	return code;
}

void
space_run(const struct pathd *pd, const struct space *q,
    const struct stopper *stop, struct space_ans *ans)
{
	const struct walk_root *root = walk_root(&pd->roots, q->root);
	enum code code = C_SRV_UNAVAILABLE;

	memset(ans, 0, sizeof(*ans));
	if (root == NULL || root->fd == -1)
		;
	else if (q->verb == SPACE_LIST)
		code = list(root->fd, stop, ans);
	else if (q->verb == SPACE_SIZE)
		code = sizes(root->fd, q, stop, ans);
	else
		code = drop(root->fd, q->names.v[0], stop);
	ans->code = (uint16_t)code;
}
