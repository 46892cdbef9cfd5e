/*
 * SPDX-License-Identifier: ISC
 *
 * Uploads: an O_TMPFILE (or an O_EXCL temporary) that gets its name only when
 * it is whole (design: paths, "Use").  A name is never opened for writing and
 * never truncated; whoever fails or dies leaves the old file as it was.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "pathd/beneath.h"
#include "pathd/parents.h"
#include "pathd/put.h"
#include "pathd/roots.h"

static int named; /* test switch */

void
upload_named(int on)
{
	named = on;
}

/* Somebody has written to the very file that was asked for while the bytes
 * came. */
static int
written_to(struct upload *u, const struct stat *st)
{
	if (!u->seen) {
		u->seen = 1;
		u->size = st->st_size;
		u->mtime = st->st_mtim;
	}
	return u->size != st->st_size ||
	       u->mtime.tv_sec != st->st_mtim.tv_sec ||
	       u->mtime.tv_nsec != st->st_mtim.tv_nsec;
}

/*
 * What stands at the name now: C_OK, the mode to keep, and whether it is to
 * be replaced.  Another regular file than the one decided on is another
 * writer's, and the last one wins, unless this very file was asked for; what
 * became a link or a directory is a changed path.
 */
static enum code
target_check(struct upload *u, int dir, const char *name)
{
	const struct put *p = u->put;
	const struct target *t = &p->target;
	struct stat st;
	int same;

	u->over = 0;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1) {
		if (errno != ENOENT)
			return beneath_walk_code(errno);
		return (p->flags & PF_EXACT) != 0 ? C_FS_CHANGED : C_OK;
	}
	if ((p->flags & PF_NOREPLACE) != 0)
		return C_FS_EXISTS;
	same = t->kind == FK_FILE && st.st_dev == t->dev && st.st_ino == t->ino;
	if ((p->flags & PF_EXACT) != 0 && (!same || written_to(u, &st)))
		return C_FS_CHANGED;
	if (!S_ISREG(st.st_mode))
		return C_POL_PATH_CHANGED;
	if (st.st_nlink > 1 && (p->flags & PF_HARDLINKS) == 0)
		return C_POL_HARDLINK_DENIED;
	if (p->mode == UINT32_MAX)
		u->mode = st.st_mode & 0777;
	u->over = 1;
	return C_OK;
}

static enum code
kind_check(const struct put *p)
{
	if (p->target.rel[0] == '\0')
		return C_POL_ROOT_PROTECTED;
	if (p->target.kind == FK_DIR)
		return C_FS_IS_DIRECTORY;
	if (p->target.kind != FK_FILE && p->target.kind != FK_MISSING)
		return C_POL_NOT_REGULAR;
	if (p->target.kind == FK_FILE && (p->flags & PF_NOREPLACE) != 0)
		return C_FS_EXISTS;
	return C_OK;
}

/* A named temporary is written down before it is made, and again when its inode
 * is known; sweeps are held off as long as it lives.  It may lie in a directory
 * above that of the target, up to name. */
static int
file_journal(struct upload *u, const char *name, ino_t ino)
{
	char path[ABX_PATH_MAX + 1];

	/* journal_add takes the directory of the path it is given. */
	(void)snprintf(
	    path, sizeof(path), "%.*sx", (int)(name - u->full), u->full);
	return journal_add(u->pd, u->root, path, u->dir, u->temp, ino);
}

static int
file_named(struct upload *u, const char *name)
{
	struct stat st;

	journal_name(u->temp);
	if (file_journal(u, name, 0) == -1) {
		u->temp[0] = '\0';
		return -1;
	}
	u->fd = openat(u->dir, u->temp,
	    O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
	if (u->fd == -1) {
		u->temp[0] = '\0';
		journal_done(u->pd);
		return -1;
	}
	return fstat(u->fd, &st) == -1 ? -1 : file_journal(u, name, st.st_ino);
}

/* Not readable to others before it is whole, whatever mode it will have. */
static int
file_new(struct upload *u, const char *name)
{
	if (!named) {
		u->fd =
		    openat(u->dir, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
		if (u->fd != -1)
			return 0;
		if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
			return -1;
	}
	return file_named(u, name);
}

enum code
upload_open(struct upload *u, const struct pathd *pd, const struct put *put)
{
	const char *name;
	enum code code;

	memset(u, 0, sizeof(*u));
	u->pd = pd;
	u->put = put;
	u->dir = u->fd = -1;
	u->mode =
	    put->mode == UINT32_MAX ? 0666 & ~pd->umask : put->mode & 0777;
	if ((code = kind_check(put)) != C_OK ||
	    (code = roots_locate(
		 &pd->roots, &put->target, &u->root, u->full)) != C_OK)
		return code;
	u->dir = parents_nearest(u->root->fd, u->full, &name);
	if (u->dir == -1)
		return beneath_walk_code(errno);
	if (strchr(name, '/') == NULL)
		code = target_check(u, u->dir, name);
	else if (put->target.kind != FK_MISSING)
		code = C_POL_PATH_CHANGED;
	else if ((put->flags & PF_CREATE_DIRS) == 0)
		code = C_FS_NOT_FOUND;
	if (code != C_OK)
		return code;
	if (file_new(u, name) == -1)
		return beneath_act_code(errno);
	return C_OK;
}

/* ---- commit ---- */

/* The file under another name: by its descriptor, or from its temporary. */
static int
file_link(const struct upload *u, int dir, const char *name)
{
	char proc[64];

	if (u->temp[0] != '\0')
		return linkat(u->dir, u->temp, dir, name, 0);
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", u->fd);
	return linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW);
}

/* A temporary is no longer needed once the file has another name. */
static void
temp_drop(struct upload *u)
{
	if (u->temp[0] != '\0' && unlinkat(u->dir, u->temp, 0) == 0)
		u->temp[0] = '\0';
}

/* It has its name; may it be there? */
static enum code
new_settled(const struct upload *u, const struct parents *p)
{
	struct stat st, ours;

	if (parents_in_place(p))
		return C_OK;
	if (fstat(u->fd, &ours) == 0 &&
	    fstatat(p->fd, p->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == ours.st_dev && st.st_ino == ours.st_ino)
		(void)unlinkat(p->fd, p->name, 0);
	return C_POL_PATH_CHANGED;
}

static enum code
commit_new(struct upload *u, const struct parents *p)
{
	if (file_link(u, p->fd, p->name) == 0) {
		temp_drop(u);
		return new_settled(u, p);
	}
	/* File systems without links; RENAME_NOREPLACE replaces nothing
	 * either. */
	if (u->temp[0] != '\0' && (errno == EPERM || errno == EOPNOTSUPP) &&
	    renameat2(u->dir, u->temp, p->fd, p->name, RENAME_NOREPLACE) == 0) {
		u->temp[0] = '\0';
		return new_settled(u, p);
	}
	return errno == EXDEV ? C_POL_PATH_CHANGED : beneath_act_code(errno);
}

/* Rename over the target, from a name in its own directory. */
static enum code
commit_over(struct upload *u, const struct parents *p)
{
	char name[JOURNAL_NAME_LEN + 1];
	struct stat st;
	int rc, save;

	if (u->temp[0] != '\0') {
		if (renameat2(u->dir, u->temp, p->fd, p->name, 0) == -1)
			return beneath_act_code(errno);
		u->temp[0] = '\0';
		return C_OK;
	}
	if (fstat(u->fd, &st) == -1)
		return beneath_act_code(errno);
	journal_name(name);
	if (journal_add(u->pd, u->root, u->full, p->fd, name, st.st_ino) == -1)
		return beneath_act_code(errno);
	rc = file_link(u, p->fd, name);
	if (rc == 0 && (rc = renameat2(p->fd, name, p->fd, p->name, 0)) == -1) {
		save = errno;
		(void)unlinkat(p->fd, name, 0);
		errno = save;
	}
	save = errno;
	journal_done(u->pd);
	return rc == 0 ? C_OK : beneath_act_code(save);
}

static enum code
commit_name(struct upload *u)
{
	struct parents p;
	enum code code;

	if (parents_open(&p, u->root->fd, u->full,
		(u->put->flags & PF_CREATE_DIRS) != 0) == -1)
		return beneath_walk_code(errno);
	code = target_check(u, p.fd, p.name);
	/* Kept or asked for, never set-id. */
	if (code == C_OK && fchmod(u->fd, u->mode & 0777) == -1)
		code = beneath_act_code(errno);
	if (code == C_OK && (u->put->flags & PF_DURABLE) != 0 &&
	    fsync(u->fd) == -1)
		code = beneath_act_code(errno);
	if (code == C_OK && !u->over)
		code = commit_new(u, &p);
	/* another writer was faster with the same new name */
	if (code == C_FS_EXISTS && !u->over &&
	    (u->put->flags & PF_NOREPLACE) == 0)
		code = target_check(u, p.fd, p.name);
	if (code == C_OK && u->over)
		code = commit_over(u, &p);
	if (code != C_OK)
		parents_undo(&p);
	parents_close(&p);
	return code;
}

/* The new name itself must survive too. */
static void
sync_dir(const struct upload *u)
{
	const char *name;
	int dir, fd;

	if ((dir = beneath_parent(u->root->fd, u->full, &name)) == -1)
		return;
	if ((fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) != -1) {
		(void)fsync(fd);
		close(fd);
	}
	close(dir);
}

enum code
upload_commit(struct upload *u, struct put_fin *fin)
{
	struct stat st;
	enum code code;

	if ((code = commit_name(u)) != C_OK)
		return code;
	if ((u->put->flags & PF_DURABLE) != 0)
		sync_dir(u);
	if (fstat(u->fd, &st) == -1)
		return C_FS_IO;
	fin->created = (uint8_t)!u->over;
	fin->mtime = st.st_mtim.tv_sec;
	fin->mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
	fin->dev = st.st_dev;
	fin->ino = st.st_ino;
	return C_OK;
}

void
upload_close(struct upload *u)
{
	if (u->temp[0] != '\0')
		temp_drop(u);
	if (u->fd != -1) {
		journal_done(u->pd);
		close(u->fd);
	}
	if (u->dir != -1)
		close(u->dir);
	u->fd = u->dir = -1;
}
