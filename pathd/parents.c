/*
 * SPDX-License-Identifier: ISC
 *
 * Parents of new names: opened beneath the root, made one by one, removed
 * again after a failure.  Never follows a link, never removes a directory
 * that it did not make.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "pathd/beneath.h"
#include "pathd/parents.h"

#define OPEN_DIR (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Open name in dir, making it when it is missing.  *made is set to 1 when it
 * was made here.  fd or -1 with errno. */
static int
step(int dir, const char *name, int *made)
{
	int fd;

	*made = 0;
	fd = openat(dir, name, OPEN_DIR);
	if (fd != -1 || errno != ENOENT)
		return fd;
	if (mkdirat(dir, name, 0777) == 0)
		*made = 1;
	else if (errno != EEXIST)
		return -1;
	return openat(dir, name, OPEN_DIR);
}

static int
make_all(struct parents *p)
{
	char buf[ABX_PATH_MAX + 1];
	char *comp = buf, *slash;
	int fd, next, made, save;

	if (strlcpy(buf, p->full, sizeof(buf)) >= sizeof(buf)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if ((fd = beneath_open(p->root, "", O_PATH | O_DIRECTORY)) == -1)
		return -1;
	while ((slash = strchr(comp, '/')) != NULL) {
		*slash = '\0';
		next = step(fd, comp, &made);
		save = errno;
		if (made && p->made == 0)
			p->made = (size_t)(slash - buf);
		close(fd);
		if (next == -1) {
			errno = save;
			return -1;
		}
		fd = next;
		comp = slash + 1;
	}
	p->fd = fd;
	return 0;
}

int
parents_open(struct parents *p, int root, const char *full, int create)
{
	int save;

	p->root = root;
	p->full = full;
	p->made = 0;
	p->fd = beneath_parent(root, full, &p->name);
	if (p->fd != -1)
		return 0;
	if (!create || errno != ENOENT)
		return -1;
	if (make_all(p) == -1) {
		save = errno;
		parents_undo(p);
		errno = save;
		return -1;
	}
	return 0;
}

size_t
parents_made(const struct parents *p)
{
	const char *at = p->made == 0 ? NULL : p->full + p->made;
	size_t n = 0;

	for (; at != NULL; at = strchr(at + 1, '/'))
		n++;
	return n;
}

int
parents_in_place(const struct parents *p)
{
	struct stat now, was;
	const char *name;
	int dir, same;

	if ((dir = beneath_parent(p->root, p->full, &name)) == -1)
		return 0;
	same = fstat(dir, &now) == 0 && fstat(p->fd, &was) == 0 &&
	       now.st_dev == was.st_dev && now.st_ino == was.st_ino;
	close(dir);
	errno = ESTALE; /* when it is another */
	return same;
}

void
parents_undo(struct parents *p)
{
	char buf[ABX_PATH_MAX + 1];
	const char *name;
	char *slash;
	int dir, rc;

	if (p->made == 0 || strlcpy(buf, p->full, sizeof(buf)) >= sizeof(buf))
		return;
	while ((slash = strrchr(buf, '/')) != NULL &&
	       (size_t)(slash - buf) >= p->made) {
		*slash = '\0';
		if ((dir = beneath_parent(p->root, buf, &name)) == -1) {
			if (errno == ENOENT)
				continue; /* it was not reached */
			break;
		}
		rc = unlinkat(dir, name, AT_REMOVEDIR);
		if (rc == -1 && errno == ENOENT)
			rc = 0;
		close(dir);
		if (rc == -1)
			break;
	}
	p->made = 0;
}

void
parents_close(struct parents *p)
{
	if (p->fd != -1)
		close(p->fd);
	p->fd = -1;
}

int
parents_nearest(int root, const char *full, const char **below)
{
	char buf[ABX_PATH_MAX + 1];
	char *slash;
	int fd;

	*below = full;
	if (strlcpy(buf, full, sizeof(buf)) >= sizeof(buf)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (;;) {
		if ((slash = strrchr(buf, '/')) == NULL) {
			*below = full;
			return beneath_open(root, "", O_PATH | O_DIRECTORY);
		}
		*slash = '\0';
		*below = full + (slash - buf) + 1;
		fd = beneath_open(root, buf, O_PATH | O_DIRECTORY);
		if (fd != -1 || errno != ENOENT)
			return fd;
	}
}
