/*
 * SPDX-License-Identifier: ISC
 *
 * Making, removing and renaming names beneath a root (design: paths, "Use").
 * A tree that goes is scanned first; what the monitor decided on is compared
 * with what is there just before the act.  Decides nothing but what protects
 * the roots themselves.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/glob.h"
#include "common/log.h"
#include "pathd/beneath.h"
#include "pathd/deny.h"
#include "pathd/dir.h"
#include "pathd/parents.h"
#include "pathd/roots.h"
#include "pathd/tree.h"

#define OPEN_LIST (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

#define LARGE (64 * 1024 * 1024) /* bytes that take a while to free */

/* One end of a request: where it lies. */
struct place {
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
};

static enum code
place_find(const struct pathd *pd, const struct target *t, struct place *p)
{
	enum code code;

	code = roots_locate(&pd->roots, t, &p->root, p->full);
	if (code == C_OK && t->rel[0] == '\0')
		code = C_POL_ROOT_PROTECTED;
	return code;
}

/* ---- MKDIR ---- */

static int
make_dir(const struct pathd *pd, int dir, const char *name, uint32_t mode)
{
	int rc, save;

	if (mode == UINT32_MAX)
		return mkdirat(dir, name, 0777);
	/* A mode that was asked for is meant as it is. */
	umask(0);
	rc = mkdirat(dir, name, mode & 0777);
	save = errno;
	umask(pd->umask);
	errno = save;
	return rc;
}

void
dir_mkdir(const struct pathd *pd, const struct mutate *m, struct done *done)
{
	struct parents up;
	struct place at;

	done->count = 0;
	if ((done->code = place_find(pd, &m->src, &at)) != C_OK)
		return;
	if (m->src.kind != FK_MISSING) {
		done->code = C_FS_EXISTS;
		return;
	}
	if (parents_open(&up, at.root->fd, at.full,
		(m->flags & PF_CREATE_DIRS) != 0) == -1) {
		done->code = beneath_walk_code(errno);
		return;
	}
	if (make_dir(pd, up.fd, up.name, m->mode) == -1) {
		done->code = beneath_act_code(errno);
		parents_undo(&up);
	} else if (!parents_in_place(&up)) {
		done->code = C_POL_PATH_CHANGED;
		(void)unlinkat(up.fd, up.name, AT_REMOVEDIR);
		parents_undo(&up);
	}
	parents_close(&up);
}

/* ---- scans ---- */

struct scan {
	const struct pathd *pd;
	const struct mutate *m;
	const struct stopper *stop;
	struct deny deny;
	const char *from; /* canonical path of the tree */
	const char *to;	  /* where it is going, NULL when it is removed */
	uint64_t count;	  /* entries removed */
};

static int
scan_stop(void *arg)
{
	const struct scan *s = arg;

	return s->stop != NULL && s->stop->stop(s->stop->arg);
}

/* The same entry after the move must not be denied either. */
static enum code
scan_moved(const struct scan *s, const char *path)
{
	char to[ABX_PATH_MAX + 1];
	int n;

	n = snprintf(to, sizeof(to), "%s%s", s->to, path + strlen(s->from));
	if (n < 0 || (size_t)n >= sizeof(to))
		return C_FS_NAME_TOO_LONG;
	return deny_covers(&s->deny, to) ? C_POL_PATH_DENIED : C_OK;
}

static enum code
scan_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	const struct scan *s = arg;

	if (deny_covers(&s->deny, path))
		return C_POL_PATH_DENIED;
	if (S_ISDIR(st->st_mode) &&
	    roots_is(&s->pd->roots, st->st_dev, st->st_ino))
		return C_POL_ROOT_PROTECTED;
	if (S_ISREG(st->st_mode) && st->st_nlink > 1 &&
	    (s->m->flags & PF_HARDLINKS) == 0)
		return C_POL_HARDLINK_DENIED;
	if (s->to == NULL)
		return C_OK;
	/* somebody is at work there, on what was decided for this place */
	if (S_ISDIR(st->st_mode) && beneath_is_ours(name, strlen(name)))
		return C_POL_PATH_CHANGED;
	return scan_moved(s, path);
}

static const struct tree_ops scan_ops = {
    .entry = scan_entry, .stop = scan_stop};

/* Open the directory name of dir if it is still the target: fd or -1. */
static int
open_tree(int dir, const char *name, const struct target *t, enum code *code)
{
	struct stat st;
	int fd;

	if ((fd = openat(dir, name, OPEN_LIST)) == -1) {
		*code = beneath_walk_code(errno);
		return -1;
	}
	if (fstat(fd, &st) == -1 || st.st_dev != t->dev ||
	    st.st_ino != t->ino) {
		*code = C_POL_PATH_CHANGED;
		close(fd);
		return -1;
	}
	return fd;
}

/* ---- UNLINK ---- */

static enum code
remove_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	struct scan *s = arg;
	enum code code;

	/* What appeared since the scan is judged like the rest. */
	if ((code = scan_entry(arg, dir, name, path, st)) != C_OK)
		return code;
	if (S_ISDIR(st->st_mode))
		return C_OK;
	if (unlinkat(dir, name, 0) == 0)
		s->count++;
	else if (errno != ENOENT)
		return beneath_act_code(errno);
	return C_OK;
}

static enum code
remove_leave(void *arg, int dir, const char *name)
{
	struct scan *s = arg;

	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		s->count++;
	/* Not empty: some file systems skip entries while others go; the
	 * next round finds them. */
	else if (errno != ENOENT && errno != ENOTEMPTY)
		return beneath_act_code(errno);
	return C_OK;
}

static const struct tree_ops remove_ops = {
    .entry = remove_entry, .leave = remove_leave, .stop = scan_stop};

static enum code
remove_tree(struct scan *s, int dir, const char *name)
{
	enum code code;
	uint64_t before;
	int fd;

	if ((fd = open_tree(dir, name, &s->m->src, &code)) == -1)
		return code;
	code = tree_walk(fd, s->from, &scan_ops, s);
	while (code == C_OK) {
		before = s->count;
		code = tree_walk(fd, s->from, &remove_ops, s);
		if (code != C_OK)
			break;
		if (unlinkat(dir, name, AT_REMOVEDIR) == 0) {
			s->count++;
			break;
		}
		if (errno != ENOTEMPTY || s->count == before)
			code = beneath_act_code(errno);
	}
	close(fd);
	return code;
}

static enum code
unlink_tree(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, const struct place *at, int dir,
    const char *name, uint64_t *count)
{
	struct scan s = {.pd = pd, .m = m, .stop = stop};
	char *path;
	enum code code;

	if (deny_new(&s.deny, &m->deny) == -1)
		return C_SRV_UNAVAILABLE;
	if ((path = roots_path(at->root, at->full)) == NULL)
		code = C_SRV_UNAVAILABLE;
	else {
		s.from = path;
		code = remove_tree(&s, dir, name);
	}
	*count = s.count;
	free(path);
	deny_clear(&s.deny);
	return code;
}

static int
is_tree(const struct mutate *m)
{
	return m->src.kind == FK_DIR && (m->flags & PF_RECURSIVE) != 0;
}

int
dir_unlink_long(const struct pathd *pd, const struct mutate *m)
{
	struct place at;
	struct stat st;
	int fd, rc;

	if (m->src.kind != FK_FILE || place_find(pd, &m->src, &at) != C_OK)
		return is_tree(m);
	if ((fd = beneath_open(at.root->fd, at.full, O_PATH)) == -1)
		return 0;
	rc = fstat(fd, &st) == 0 && st.st_size > LARGE;
	close(fd);
	return rc;
}

void
dir_unlink(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, struct done *done)
{
	struct place at;
	struct stat st;
	const char *name;
	int dir;

	done->count = 0;
	if ((done->code = place_find(pd, &m->src, &at)) != C_OK)
		return;
	if ((dir = beneath_parent(at.root->fd, at.full, &name)) == -1) {
		done->code = beneath_walk_code(errno);
		return;
	}
	done->code = beneath_same(dir, name, &m->src, &st);
	if (done->code == C_OK && m->src.kind == FK_DIR &&
	    roots_is(&pd->roots, st.st_dev, st.st_ino))
		done->code = C_POL_ROOT_PROTECTED;
	if (done->code == C_OK && is_tree(m))
		done->code =
		    unlink_tree(pd, m, stop, &at, dir, name, &done->count);
	else if (done->code == C_OK) {
		if (unlinkat(dir, name,
			m->src.kind == FK_DIR ? AT_REMOVEDIR : 0) == -1)
			done->code = beneath_act_code(errno);
		else
			done->count = 1;
	}
	close(dir);
}

/* ---- RENAME ---- */

/* Without RENAME_NOREPLACE (some network file systems): for anything but a
 * directory a link is just as good, and a directory never replaces more than
 * an empty one. */
static int
rename_new_slow(int from, const char *name, int to, const char *as, int isdir)
{
	int save;

	if (!isdir) {
		if (linkat(from, name, to, as, 0) == -1)
			return -1;
		return unlinkat(from, name, 0);
	}
	if (mkdirat(to, as, 0700) == -1)
		return -1;
	if (renameat(from, name, to, as) == 0)
		return 0;
	save = errno;
	(void)unlinkat(to, as, AT_REMOVEDIR);
	errno = save;
	return -1;
}

static enum code
rename_name(const struct mutate *m, int from, const char *name,
    const struct parents *to)
{
	int rc;

	if (m->dst.kind != FK_MISSING) {
		rc = renameat2(from, name, to->fd, to->name, 0);
		return rc == 0 ? C_OK : beneath_act_code(errno);
	}
	rc = renameat2(from, name, to->fd, to->name, RENAME_NOREPLACE);
	if (rc == -1 && errno == EINVAL)
		rc = rename_new_slow(
		    from, name, to->fd, to->name, m->src.kind == FK_DIR);
	return rc == 0 ? C_OK : beneath_act_code(errno);
}

static enum code
rename_scan(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, const struct place *src,
    const struct place *dst, int dir, const char *name)
{
	struct scan s = {.pd = pd, .m = m, .stop = stop};
	char *from = roots_path(src->root, src->full);
	char *to = roots_path(dst->root, dst->full);
	enum code code = C_SRV_UNAVAILABLE;
	int fd;

	if (from != NULL && to != NULL && deny_new(&s.deny, &m->deny) == 0) {
		s.from = from;
		s.to = to;
		if ((fd = open_tree(dir, name, &m->src, &code)) != -1) {
			code = tree_walk(fd, from, &scan_ops, &s);
			close(fd);
		}
		deny_clear(&s.deny);
	}
	free(from);
	free(to);
	return code;
}

/* What floats is denied in the old place as well. */
static int
denies_there(const struct mutate *m, const struct deny *d, const char *to)
{
	size_t i;

	for (i = 0; i < d->n; i++)
		if (m->deny.v[i][0] == '/' && glob_below(d->v[i], to))
			return 1;
	return 0;
}

/* A directory has moved: what came into it behind the scan was judged by its
 * old place.  Nothing comes by that any more, so one look more is enough. */
static enum code
rename_look(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, const struct place *dst,
    const struct parents *to)
{
	struct scan s = {.pd = pd, .m = m, .stop = stop};
	char *path = roots_path(dst->root, dst->full);
	enum code code = C_SRV_UNAVAILABLE;
	int fd;

	if (path != NULL && deny_new(&s.deny, &m->deny) == 0) {
		s.from = s.to = path;
		code = C_OK;
		if (denies_there(m, &s.deny, path) &&
		    (fd = open_tree(to->fd, to->name, &m->src, &code)) != -1) {
			code = tree_walk(fd, path, &scan_ops, &s);
			close(fd);
		}
		deny_clear(&s.deny);
	}
	free(path);
	return code;
}

/* The source is still what was decided on, and may go. */
static enum code
rename_check(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, const struct place *src,
    const struct place *dst, int dir, const char *name)
{
	struct stat st;
	enum code code;

	if ((code = beneath_same(dir, name, &m->src, &st)) != C_OK ||
	    !S_ISDIR(st.st_mode))
		return code;
	if (roots_is(&pd->roots, st.st_dev, st.st_ino))
		return C_POL_ROOT_PROTECTED;
	return rename_scan(pd, m, stop, src, dst, dir, name);
}

/* The name that is taken is what was decided on, and may be replaced. */
static enum code
rename_over(
    const struct pathd *pd, const struct mutate *m, int dir, const char *name)
{
	struct stat st;
	enum code code;

	if (m->dst.kind == FK_MISSING)
		return C_OK;
	if ((m->flags & PF_NOREPLACE) != 0)
		return C_FS_EXISTS;
	code = beneath_same(dir, name, &m->dst, &st);
	if (code == C_OK && S_ISDIR(st.st_mode) &&
	    roots_is(&pd->roots, st.st_dev, st.st_ino))
		code = C_POL_ROOT_PROTECTED;
	return code;
}

/* What a move made is where it may be.  A file that replaced another cannot be
 * taken back; what was there was judged with its directory. */
static enum code
rename_settled(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, const struct place *dst,
    const struct parents *to)
{
	if (m->src.kind != FK_DIR && m->dst.kind != FK_MISSING)
		return C_OK;
	if (!parents_in_place(to))
		return C_POL_PATH_CHANGED;
	return m->src.kind == FK_DIR ? rename_look(pd, m, stop, dst, to) : C_OK;
}

/* The rename itself, taken back when it brought something where it may not
 * be. */
static enum code
rename_now(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, const struct place *dst, int dir,
    const char *name, const struct parents *to)
{
	enum code code;

	code = rename_over(pd, m, to->fd, to->name);
	if (code == C_OK)
		code = rename_name(m, dir, name, to);
	if (code != C_OK ||
	    (code = rename_settled(pd, m, stop, dst, to)) == C_OK)
		return code;
	if (renameat2(to->fd, to->name, dir, name, RENAME_NOREPLACE) == -1 &&
	    (errno != EINVAL || renameat(to->fd, to->name, dir, name) == -1))
		log_warn("a move could not be taken back");
	/* an empty directory was replaced */
	else if (m->dst.kind == FK_DIR)
		(void)mkdirat(to->fd, to->name, 0777);
	return code;
}

int
dir_rename_long(const struct mutate *m)
{
	/* Freeing the blocks of a large file that is replaced takes a while
	 * too. */
	return m->src.kind == FK_DIR || m->dst.kind != FK_MISSING;
}

void
dir_rename(const struct pathd *pd, const struct mutate *m,
    const struct stopper *stop, struct done *done)
{
	struct place src, dst;
	struct parents to;
	const char *name;
	int dir;

	done->count = 0;
	if ((done->code = place_find(pd, &m->src, &src)) != C_OK ||
	    (done->code = place_find(pd, &m->dst, &dst)) != C_OK)
		return;
	if ((dir = beneath_parent(src.root->fd, src.full, &name)) == -1) {
		done->code = beneath_walk_code(errno);
		return;
	}
	done->code = rename_check(pd, m, stop, &src, &dst, dir, name);
	if (done->code != C_OK) {
		close(dir);
		return;
	}
	if (parents_open(&to, dst.root->fd, dst.full,
		(m->flags & PF_CREATE_DIRS) != 0) == -1)
		done->code = beneath_walk_code(errno);
	else {
		done->code = rename_now(pd, m, stop, &dst, dir, name, &to);
		if (done->code != C_OK)
			parents_undo(&to);
		parents_close(&to);
	}
	close(dir);
}
