/*
 * SPDX-License-Identifier: ISC
 *
 * open_beneath: every use of a path walks again from the root's descriptor,
 * and the kernel is told never to follow anything (design: paths, "Use").
 * Holds the one table of errno to code.  Decides nothing and keeps no
 * descriptor.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/openat2.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "pathd/beneath.h"

#define EAGAIN_TRIES 64

/* A fact about the kernel, found once; some service units make openat2
 * ENOSYS. */
static int no_openat2;

void
beneath_components(int on)
{
	no_openat2 = on;
}

static int
open2(int root, const char *rel, int flags)
{
	struct open_how how = {
	    .flags = (uint64_t)flags,
	    .resolve =
		RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(
	    SYS_openat2, root, *rel == '\0' ? "." : rel, &how, sizeof(how));
}

/* One openat a component; the directory before is closed as it goes. */
static int
open_components(int root, const char *rel, int flags)
{
	char name[NAME_MAX + 1];
	const char *end;
	int dir = root, fd, save;

	while ((end = strchr(rel, '/')) != NULL) {
		if ((size_t)(end - rel) >= sizeof(name)) {
			errno = ENAMETOOLONG;
			fd = -1;
		} else {
			memcpy(name, rel, (size_t)(end - rel));
			name[end - rel] = '\0';
			fd = openat(dir, name,
			    O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		}
		save = errno;
		if (dir != root)
			close(dir);
		if (fd == -1) {
			errno = save;
			return -1;
		}
		dir = fd;
		rel = end + 1;
	}
	fd = openat(dir, *rel == '\0' ? "." : rel, flags);
	save = errno;
	if (dir != root)
		close(dir);
	errno = save;
	return fd;
}

int
beneath_valid(const char *rel)
{
	size_t n;

	if (*rel == '\0')
		return 1;
	if (strlen(rel) > ABX_PATH_MAX)
		return 0;
	for (;;) {
		n = strcspn(rel, "/");
		if (n == 0 || (n == 1 && rel[0] == '.') ||
		    (n == 2 && rel[0] == '.' && rel[1] == '.'))
			return 0;
		if (rel[n] == '\0')
			return 1;
		rel += n + 1;
	}
}

int
beneath_open(int root, const char *rel, int flags)
{
	int fd, i;

	if (!beneath_valid(rel)) {
		errno = EINVAL;
		return -1;
	}
	flags |= O_CLOEXEC | O_NOFOLLOW;
	for (i = 0; !no_openat2 && i < EAGAIN_TRIES; i++) {
		if ((fd = open2(root, rel, flags)) != -1)
			return fd;
		if (errno == ENOSYS)
			no_openat2 = 1;
		else if (errno != EAGAIN && errno != EINTR)
			return -1;
	}
	return open_components(root, rel, flags);
}

int
beneath_parent(int root, const char *rel, const char **name)
{
	char buf[ABX_PATH_MAX + 1];
	const char *slash;

	if ((slash = strrchr(rel, '/')) == NULL) {
		*name = rel;
		return beneath_open(root, "", O_PATH | O_DIRECTORY);
	}
	*name = slash + 1;
	if ((size_t)(slash - rel) >= sizeof(buf)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(buf, rel, (size_t)(slash - rel));
	buf[slash - rel] = '\0';
	return beneath_open(root, buf, O_PATH | O_DIRECTORY);
}

const char *
beneath_probe(int root)
{
	int fd;

	if ((fd = beneath_open(root, "", O_PATH)) != -1)
		close(fd);
	return no_openat2 ? "components" : "openat2";
}

/* design: paths, "Errors from the file system". */
static const struct {
	int err;
	enum code walk, act;
} errors[] = {
    {ENOENT, C_FS_NOT_FOUND, C_FS_NOT_FOUND},
    {ELOOP, C_POL_PATH_CHANGED, C_POL_PATH_CHANGED},
    {ENOTDIR, C_POL_PATH_CHANGED, C_FS_NOT_DIRECTORY},
    /* Renaming between file systems; copying is another operation. */
    {EXDEV, C_POL_PATH_CHANGED, C_ARGS_INVALID},
    {EAGAIN, C_POL_PATH_CHANGED, C_FS_IO},
    {ESTALE, C_POL_PATH_CHANGED, C_POL_PATH_CHANGED},
    {EEXIST, C_FS_EXISTS, C_FS_EXISTS},
    {EISDIR, C_FS_IS_DIRECTORY, C_FS_IS_DIRECTORY},
    {ENOTEMPTY, C_FS_NOT_EMPTY, C_FS_NOT_EMPTY},
    {EACCES, C_FS_PERMISSION, C_FS_PERMISSION},
    {EPERM, C_FS_PERMISSION, C_FS_PERMISSION},
    {EROFS, C_FS_PERMISSION, C_FS_PERMISSION},
    {EBUSY, C_FS_PERMISSION, C_FS_PERMISSION},
    {ETXTBSY, C_FS_PERMISSION, C_FS_PERMISSION},
    {EMLINK, C_FS_PERMISSION, C_FS_PERMISSION},
    {ENOSPC, C_FS_NO_SPACE, C_FS_NO_SPACE},
    {EDQUOT, C_FS_NO_SPACE, C_FS_NO_SPACE},
    {EFBIG, C_LIM_MAX_BYTES, C_LIM_MAX_BYTES},
    {ENAMETOOLONG, C_FS_NAME_TOO_LONG, C_FS_NAME_TOO_LONG},
    {EMFILE, C_FS_TOO_MANY_OPEN, C_FS_TOO_MANY_OPEN},
    {ENFILE, C_FS_TOO_MANY_OPEN, C_FS_TOO_MANY_OPEN},
    {ENOMEM, C_SRV_UNAVAILABLE, C_SRV_UNAVAILABLE},
    {ETIMEDOUT, C_FS_TIMEOUT, C_FS_TIMEOUT},
    {ENXIO, C_POL_NOT_REGULAR, C_POL_NOT_REGULAR},
    /* A directory into itself, or a name the file system cannot hold. */
    {EINVAL, C_ARGS_INVALID, C_ARGS_INVALID},
};

int
beneath_is_ours(const char *name, size_t n)
{
	size_t i = sizeof(OURS_PREFIX) - 1;

	if (n != OURS_LEN || memcmp(name, OURS_PREFIX, i) != 0)
		return 0;
	while (i < n && memchr("0123456789abcdef", name[i], 16) != NULL)
		i++;
	return i == n;
}

enum code
beneath_walk_code(int err)
{
	size_t i;

	for (i = 0; i < nitems(errors); i++)
		if (errors[i].err == err)
			return errors[i].walk;
	return C_FS_IO;
}

enum code
beneath_act_code(int err)
{
	size_t i;

	for (i = 0; i < nitems(errors); i++)
		if (errors[i].err == err)
			return errors[i].act;
	return C_FS_IO;
}

int
beneath_short(enum code code)
{
	return code == C_FS_TOO_MANY_OPEN || code == C_SRV_UNAVAILABLE;
}

uint8_t
beneath_kind(mode_t mode)
{
	if (S_ISREG(mode))
		return FK_FILE;
	if (S_ISDIR(mode))
		return FK_DIR;
	if (S_ISLNK(mode))
		return FK_LINK;
	return FK_OTHER;
}

enum code
beneath_same(int dir, const char *name, const struct target *t, struct stat *st)
{
	if (fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW) == -1)
		return errno == ENOENT ? C_POL_PATH_CHANGED
				       : beneath_walk_code(errno);
	if (st->st_dev != t->dev || st->st_ino != t->ino ||
	    beneath_kind(st->st_mode) != t->kind)
		return C_POL_PATH_CHANGED;
	return C_OK;
}
