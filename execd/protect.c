/*
 * SPDX-License-Identifier: ISC
 *
 * Opens what is to be bound, by descriptor and without following links, and
 * finds the names that a command must not change.  Opens no path that a
 * client named; the monitor's descriptors and their contents only.
 */
#include "execd/protect.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/log.h"
#include "execd/absent.h"
#include "execd/appeared.h"
#include "execd/mounts.h"

/* submodules and worktrees of one repository, with the directories that their
 * names go through; with more no command runs there */
#define MAX_MODULES 64
#define MODULE_DEPTH 8 /* slashes in the name of a submodule */

/* commondir leads git to another configuration; absent: what is made of it
 * when it is missing */
static const struct {
	const char *name;
	int absent;
} in_git[] = {{"hooks", ABSENT_DIR}, {"config", ABSENT_FILE},
    {"config.worktree", ABSENT_FILE}, {"commondir", ABSENT_DOT}};
#define ABSENT_NOT (-1) /* nothing */

static int
open_plain(const char *path)
{
	struct open_how how = {
	    O_PATH | O_CLOEXEC, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Give fd to the set; it is closed on failure. */
static int
add(struct profile_binds *b, const char *inner, int fd, int rw, int cover)
{
	struct stat st;
	int save;

	if (fstat(fd, &st) == 0 &&
	    profile_bind(b, inner, fd, rw, cover, st.st_dev, st.st_ino) == 0)
		return 0;
	save = errno;
	close(fd);
	errno = save;
	return -1;
}

int
protect_bind(struct profile_binds *b, const struct strlist *names,
    const char *root, const char *inner, int fd, int rw)
{
	char link[64], path[ABX_PATH_MAX + 1];
	struct stat want, got;
	ssize_t n;
	int own;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fstat(fd, &want) == -1 ||
	    (n = readlink(link, path, sizeof(path) - 1)) == -1)
		return -1;
	path[n] = '\0';
	if ((own = open_plain(path)) == -1) {
		/* of which only these say that it lies there no more */
		if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
			errno = ESTALE;
		return -1;
	}
	if (fstat(own, &got) == -1 || got.st_dev != want.st_dev ||
	    got.st_ino != want.st_ino || !S_ISDIR(got.st_mode)) {
		close(own);
		errno = ESTALE;
		return -1;
	}
	if (profile_place(names, root, inner) == PLACE_PROTECTED)
		rw = 0;
	if (add(b, inner, own, rw, 0) == -1)
		return -1;
	b->v[b->n - 1].git = profile_place(names, root, inner) == PLACE_GIT;
	return 0;
}

/* ---- parts of the way ---- */

/* Was it not looked at, so that nobody knows whether it is there? */
static int
unseen(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

/* What the following say instead of a descriptor. */
#define NOTHING (-1) /* there is none that is meant */
#define FAILED (-2)  /* with errno */
#define MISSING (-3) /* there is no such name; of cover only */

/* dir/name as O_PATH; NOTHING when it is missing (st_mode is 0 then), or a link
 * or something else that is not bound; FAILED when nobody knows. */
static int
open_name(int dir, const char *name, struct stat *st)
{
	int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;

	st->st_mode = 0;
	if (fd == -1)
		return unseen() ? FAILED : NOTHING;
	rc = fstat(fd, st) == -1 ? FAILED : NOTHING;
	if (rc == NOTHING && (S_ISDIR(st->st_mode) || S_ISREG(st->st_mode)))
		return fd;
	close(fd);
	return rc;
}

static int
is_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISLNK(st.st_mode);
}

/* As open_name, for a name that is to be there: made when it is missing. FAILED
 * when it should have been; what the run user may not make, no
 * command can. */
static int
open_or_make(int dir, const char *name, struct stat *st, int absent)
{
	int fd = open_name(dir, name, st);

	if (fd != NOTHING || st->st_mode != 0 || absent == ABSENT_NOT ||
	    !absent_on())
		return fd;
	if (absent_make(dir, name, (enum absent_kind)absent) == 0 ||
	    errno == EEXIST)
		return open_name(dir, name, st);
	return errno == EACCES || errno == EPERM || errno == EROFS ? NOTHING
								   : FAILED;
}

static int
is_empty(int dir, const char *name)
{
	struct dirent *de;
	int fd, n = 0;
	DIR *d;

	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 || (d = fdopendir(fd)) == NULL) {
		if (fd != -1)
			close(fd);
		return 0;
	}
	while (n < 3 && (de = readdir(d)) != NULL)
		n++;
	closedir(d);
	return n < 3; /* "." and ".." */
}

/* Bind dir/name onto itself; what cannot be bound is made (absent) or watched.
 * The descriptor of the entry (borrowed from the set) when it is a directory
 * that stays writable, else one of the above. */
static int
cover(struct profile_binds *b, const char *inner, int dir, const char *name,
    int rw, int absent)
{
	char path[ABX_PATH_MAX + 1];
	struct stat st;
	int fd;

	if ((fd = open_or_make(dir, name, &st, absent)) == FAILED)
		return FAILED;
	if (fd == NOTHING) {
		if (st.st_mode != 0 && !S_ISLNK(st.st_mode))
			return NOTHING;
		if (appeared_watch(&b->watch, inner, dir, name,
			st.st_mode == 0 ? NULL : &st) == -1)
			return FAILED;
		return st.st_mode == 0 ? MISSING : NOTHING;
	}
	/* only a directory is worth a writable mount point */
	if (!S_ISDIR(st.st_mode) || absent_is(st.st_dev, st.st_ino))
		rw = 0;
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", inner, name) >=
	    sizeof(path)) {
		close(fd);
		errno = ENAMETOOLONG;
		return FAILED;
	}
	if (add(b, path, fd, rw, 1) == -1)
		return errno == EEXIST ? NOTHING : FAILED;
	return S_ISDIR(st.st_mode) && rw ? fd : NOTHING;
}

/* The directory inner, which is name in dir, as a mount point of its own that
 * can be written as what is above it.  Its descriptor, borrowed from the set,
 * or -1 with errno. */
static int
ancestor(struct profile_binds *b, const char *inner, int dir, const char *name,
    int *rw)
{
	const struct profile_bind *p;
	int fd;

	if ((p = profile_find(b, inner)) != NULL) {
		*rw = p->rw;
		return p->fd;
	}
	fd = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	return add(b, inner, fd, *rw, 1) == -1 ? -1 : fd;
}

ssize_t
protect_way(struct profile_binds *b, size_t i, char *rel)
{
	char inner[ABX_PATH_MAX + 1];
	size_t at = strlen(b->v[i].inner), n;
	int dir = b->v[i].fd, rw = b->v[i].rw;
	char *name, *next;

	memcpy(inner, b->v[i].inner, at);
	for (name = rel; name != NULL; name = next) {
		if ((next = strchr(name, '/')) != NULL)
			*next++ = '\0';
		n = strlen(name);
		if (at + 1 + n >= sizeof(inner)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		inner[at] = '/';
		memcpy(inner + at + 1, name, n + 1);
		at += 1 + n;
		if ((dir = ancestor(b, inner, dir, name, &rw)) == -1)
			return -1;
	}
	return profile_find(b, inner) - b->v;
}

/* ---- protected names ---- */

static int git_names(struct profile_binds *b, const char *inner, int git);

/* inner/name, or -1 with errno. */
static int
join(char out[ABX_PATH_MAX + 1], const char *inner, const char *name)
{
	if ((size_t)snprintf(out, ABX_PATH_MAX + 1, "%s/%s", inner, name) <=
	    ABX_PATH_MAX)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}

/* Where fd lies below the bind's own directory: a path relative to it, or
 * NULL when it does not. */
static const char *
below(const struct profile_bind *p, int fd, char path[ABX_PATH_MAX + 1])
{
	char link[64], root[ABX_PATH_MAX + 1];
	ssize_t n, k;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", p->fd);
	n = readlink(link, root, ABX_PATH_MAX);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	k = readlink(link, path, ABX_PATH_MAX);
	if (n <= 0 || k <= n + 1 || memcmp(root, path, (size_t)n) != 0 ||
	    path[n] != '/')
		return NULL;
	path[k] = '\0';
	return path + n + 1;
}

/* Bind what lies at rel below the bind b->v[i] read-only onto itself, if it is
 * still what fd names; git: its parts instead. */
static int
protect_place(struct profile_binds *b, size_t i, char *rel, int fd, int git)
{
	char inner[ABX_PATH_MAX + 1], next[ABX_PATH_MAX + 1], *slash;
	struct stat want, got;
	int dir = b->v[i].fd, rw = b->v[i].rw;

	strlcpy(inner, b->v[i].inner, sizeof(inner));
	while ((slash = strchr(rel, '/')) != NULL) {
		*slash = '\0';
		if (join(next, inner, rel) == -1 ||
		    (dir = ancestor(b, next, dir, rel, &rw)) == -1)
			return -1;
		memcpy(inner, next, sizeof(inner));
		rel = slash + 1;
	}
	if (fstat(fd, &want) == -1 ||
	    fstatat(dir, rel, &got, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	if (want.st_ino != got.st_ino || want.st_dev != got.st_dev) {
		errno = ESTALE;
		return -1;
	}
	if (join(next, inner, rel) == -1)
		return -1;
	if (!git || !S_ISDIR(got.st_mode))
		return cover(b, inner, dir, rel, 0, ABSENT_NOT) == FAILED ? -1
									  : 0;
	dir = ancestor(b, next, dir, rel, &rw);
	return dir == -1 ? -1 : git_names(b, next, dir);
}

/* A protected name that is a link in the bind's own directory: what it leads
 * to is protected under its own path, when that lies inside too. */
static int
protect_link(struct profile_binds *b, size_t i, const char *name, int git)
{
	struct open_how how = {
	    O_PATH | O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
	char to[ABX_PATH_MAX + 1], path[ABX_PATH_MAX + 1], *at = to;
	size_t at_root = strlen(b->v[i].inner);
	const char *rel;
	ssize_t n;
	int fd, rc = 0;

	n = readlinkat(b->v[i].fd, name, to, ABX_PATH_MAX);
	if (n <= 0)
		return 0;
	to[n] = '\0';
	if (strncmp(to, b->v[i].inner, at_root) == 0 && to[at_root] == '/')
		at += at_root + 1;
	fd = (int)syscall(SYS_openat2, b->v[i].fd, at, &how, sizeof(how));
	if (fd == -1)
		return unseen() ? -1 : 0;
	if ((rel = below(&b->v[i], fd, path)) != NULL)
		rc = protect_place(b, i, path + (rel - path), fd, git);
	close(fd);
	return rc;
}

/* What makes git run programs, of one of its directories. */
static int
cover_git_files(struct profile_binds *b, const char *inner, int git)
{
	size_t i;

	for (i = 0; i < nitems(in_git); i++)
		if (cover(b, inner, git, in_git[i].name, 0, in_git[i].absent) ==
		    FAILED)
			return -1;
	return 0;
}

static int
has_head(int dir)
{
	struct stat st;

	return fstatat(dir, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The repositories in a directory of them: modules, whose names may have
 * slashes, or worktrees.  left counts those of the whole ".git". */
static int
cover_inner(
    struct profile_binds *b, const char *inner, int fd, int depth, int *left)
{
	char path[ABX_PATH_MAX + 1];
	struct dirent *de;
	int one, rc = 0, dup;
	DIR *d;

	dup = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dup == -1) /* not readable for the command either */
		return unseen() ? -1 : 0;
	if ((d = fdopendir(dup)) == NULL) {
		close(dup);
		return -1;
	}
	while (rc == 0 && (de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		/* a link above what is protected */
		if (is_link(fd, de->d_name)) {
			errno = ELOOP;
			rc = -1;
			break;
		}
		one = cover(b, inner, fd, de->d_name, 1, ABSENT_NOT);
		if (one == NOTHING || one == MISSING)
			continue;
		if (one == FAILED || join(path, inner, de->d_name) == -1 ||
		    cover_git_files(b, path, one) == -1)
			rc = -1;
		else if (--*left < 0 || (depth == 0 && !has_head(one))) {
			errno = ENFILE;
			rc = -1;
		} else if (!has_head(one))
			rc = cover_inner(b, path, one, depth - 1, left);
	}
	closedir(d);
	return rc;
}

/* What git obeys in a repository that lies at inner. */
static int
git_names(struct profile_binds *b, const char *inner, int git)
{
	static const char *const many[] = {"modules", "worktrees"};
	char path[ABX_PATH_MAX + 1];
	int fd, left = MAX_MODULES;
	size_t i;

	if (cover_git_files(b, inner, git) == -1)
		return -1;
	for (i = 0; i < nitems(many); i++) {
		/* a link above what is protected */
		if (is_link(git, many[i])) {
			errno = ELOOP;
			return -1;
		}
		fd = cover(b, inner, git, many[i], 1, ABSENT_NOT);
		if (fd == FAILED)
			return -1;
		if (fd >= 0 &&
		    (join(path, inner, many[i]) == -1 ||
			cover_inner(b, path, fd, MODULE_DEPTH, &left) == -1))
			return -1;
	}
	return 0;
}

static int
protect_name(struct profile_binds *b, size_t i, const char *name)
{
	char inner[ABX_PATH_MAX + 1];
	int git = strcmp(name, ".git") == 0, fd;

	/* an empty one is no repository, and is not to become one */
	if (git && absent_on() && is_empty(b->v[i].fd, name))
		git = 0;
	/* a ".git" file, as of a worktree, is read-only whole */
	fd = cover(b, b->v[i].inner, b->v[i].fd, name, git, ABSENT_DIR);
	if (fd == FAILED)
		return -1;
	if (fd == MISSING)
		return 0;
	if (fd == NOTHING)
		return is_link(b->v[i].fd, name) ? protect_link(b, i, name, git)
						 : 0;
	return join(inner, b->v[i].inner, name) == -1 ? -1
						      : git_names(b, inner, fd);
}

int
protect_names(struct profile_binds *b, const struct strlist *names, size_t i)
{
	size_t k;

	if (b->v[i].git)
		return git_names(b, b->v[i].inner, b->v[i].fd);
	for (k = 0; k < names->n; k++)
		if (protect_name(b, i, names->v[k]) == -1)
			return -1;
	return 0;
}

/* ---- covers ---- */

static struct empty {
	int fd; /* O_PATH */
	struct stat st;
} empty_dir = {-1, {0}}, empty_file = {-1, {0}};

static void
empty_open(struct empty *e, const char *path)
{
	e->fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (e->fd == -1 || fstat(e->fd, &e->st) == -1)
		fatal("%s", path);
}

void
protect_init(void)
{
	empty_open(&empty_dir, MOUNTS_EMPTY_DIR);
	empty_open(&empty_file, MOUNTS_EMPTY_FILE);
}

int
protect_is_empty(uint64_t dev, uint64_t ino)
{
	return (empty_dir.st.st_dev == dev && empty_dir.st.st_ino == ino) ||
	       (empty_file.st.st_dev == dev && empty_file.st.st_ino == ino);
}

/* name in dir is what pathd found: cover it. */
static int
hide(struct profile_binds *b, const char *inner, int dir, const char *name,
    const struct target *t)
{
	const struct empty *e = t->kind == FK_DIR ? &empty_dir : &empty_file;
	struct stat st;
	int fd, save;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return -1;
	if (st.st_dev != t->dev || st.st_ino != t->ino || S_ISLNK(st.st_mode) ||
	    (S_ISDIR(st.st_mode) != 0) != (t->kind == FK_DIR)) {
		errno = ESTALE;
		return -1;
	}
	if ((fd = fcntl(e->fd, F_DUPFD_CLOEXEC, 3)) == -1)
		return -1;
	if (profile_hide(b, inner, fd, e->st.st_dev, e->st.st_ino) == 0)
		return 0;
	save = errno;
	close(fd);
	errno = save;
	return -1;
}

/* One entry, component by component from the bind's own descriptor. */
static int
cover_entry(struct profile_binds *b, size_t i, const struct target *t)
{
	char inner[ABX_PATH_MAX + 1], rel[ABX_PATH_MAX + 1], *name, *slash;
	size_t at = strlen(b->v[i].inner);
	int dir = b->v[i].fd, rw = b->v[i].rw;

	if (strlcpy(rel, t->rel, sizeof(rel)) >= sizeof(rel) ||
	    at + 1 + strlen(rel) >= sizeof(inner)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(inner, b->v[i].inner, at);
	for (name = rel;; name = slash + 1) {
		if ((slash = strchr(name, '/')) != NULL)
			*slash = '\0';
		inner[at] = '/';
		strlcpy(inner + at + 1, name, sizeof(inner) - at - 1);
		at += 1 + strlen(name);
		if (slash == NULL)
			return hide(b, inner, dir, name, t);
		if ((dir = ancestor(b, inner, dir, name, &rw)) == -1)
			return -1;
	}
}

int
protect_covers(struct profile_binds *b, size_t i, const struct covers *c)
{
	size_t k;

	for (k = 0; k < c->n; k++)
		if (cover_entry(b, i, &c->v[k]) == -1) {
			if (errno == ENOENT || errno == ENOTDIR ||
			    errno == ELOOP)
				errno = ESTALE;
			return -1;
		}
	return 0;
}

int
protect_program(struct profile_binds *b, const char *prog)
{
	char dir[ABX_PATH_MAX + 1];
	const char *slash = strrchr(prog, '/');
	int fd;

	if (slash == NULL || slash == prog ||
	    (size_t)(slash - prog) >= sizeof(dir))
		return 0;
	memcpy(dir, prog, (size_t)(slash - prog));
	dir[slash - prog] = '\0';
	if (profile_shows(b, dir))
		return 0;
	if ((fd = open_plain(dir)) == -1)
		return 0;
	if (add(b, dir, fd, 0, 0) == -1)
		return errno == EINVAL || errno == EEXIST ? 0 : -1;
	return 0;
}
