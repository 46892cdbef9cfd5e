/*
 * SPDX-License-Identifier: ISC
 *
 * Control groups as files: read, write, kill, remove.  Opens names below
 * descriptors that it is given, no path, and follows no link.  Logs nothing.
 */
#include "common/cg.h"

#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 8 /* of groups below one that is removed */

int
cg_own(const char *text, char *path, size_t size)
{
	const char *p, *end;
	size_t n;

	for (p = text; p != NULL && strncmp(p, "0::", 3) != 0;) {
		if ((p = strchr(p, '\n')) != NULL)
			p++;
	}
	if (p == NULL || p[3] != '/')
		return -1;
	p += 3;
	if ((end = strchr(p, '\n')) == NULL)
		return -1;
	n = (size_t)(end - p);
	if (n >= size)
		return -1;
	memcpy(path, p, n);
	path[n] = '\0';
	if (n > 10 && strcmp(path + n - 10, " (deleted)") == 0)
		return -1;
	if (strstr(path, "/../") != NULL ||
	    (n >= 3 && strcmp(path + n - 3, "/..") == 0))
		return -1;
	return 0;
}

int
cg_number(const char *text, const char *key, uint64_t *n)
{
	size_t len = strlen(key);
	const char *p = text;
	char *end;

	while (strncmp(p, key, len) != 0 || p[len] != ' ') {
		if ((p = strchr(p, '\n')) == NULL)
			return -1;
		p++;
	}
	p += len + 1;
	if (*p < '0' || *p > '9')
		return -1;
	errno = 0;
	*n = strtoull(p, &end, 10);
	return errno != 0 || (*end != '\0' && *end != '\n') ? -1 : 0;
}

int
cg_has(const char *list, const char *word)
{
	size_t n = strlen(word), k;

	for (; *list != '\0'; list += k) {
		list += strspn(list, " \n");
		k = strcspn(list, " \n");
		if (k == n && memcmp(list, word, n) == 0)
			return 1;
	}
	return 0;
}

int
cg_read(int dir, const char *name, char text[CG_TEXT_MAX])
{
	ssize_t n;
	int fd, save;

	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = read(fd, text, CG_TEXT_MAX - 1);
	save = errno;
	close(fd);
	errno = save;
	if (n == -1)
		return -1;
	if (n > 0 && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	return 0;
}

int
cg_write(int dir, const char *name, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;
	int fd, save;

	fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return -1;
	n = write(fd, text, len);
	save = n == -1 ? errno : EIO;
	close(fd);
	if (n == (ssize_t)len)
		return 0;
	errno = save;
	return -1;
}

int
cg_set(int dir, const char *name, const char *text)
{
	char now[CG_TEXT_MAX];

	if (cg_write(dir, name, text) == -1 || cg_read(dir, name, now) == -1)
		return -1;
	if (strcmp(now, text) == 0)
		return 0;
	errno = EIO;
	return -1;
}

int
cg_open(int dir, const char *name, int make)
{
	if (make && mkdirat(dir, name, 0755) == -1 && errno != EEXIST)
		return -1;
	return openat(
	    dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int
cg_kill(int dir)
{
	return cg_write(dir, "cgroup.kill", "1");
}

static int
push(char ***names, size_t *n, const char *name)
{
	char **v = reallocarray(*names, *n + 1, sizeof(*v));

	if (v == NULL)
		return -1;
	*names = v;
	if ((v[*n] = strdup(name)) == NULL)
		return -1;
	(*n)++;
	return 0;
}

int
cg_below(int dir, const char *prefix, char ***names, size_t *n)
{
	struct dirent *de;
	int fd, rc = 0;
	DIR *d;

	*names = NULL;
	*n = 0;
	if ((fd = cg_open(dir, ".", 0)) == -1)
		return -1;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return -1;
	}
	while (rc == 0 && (de = readdir(d)) != NULL)
		if (de->d_type == DT_DIR &&
		    strncmp(de->d_name, prefix, strlen(prefix)) == 0)
			rc = push(names, n, de->d_name);
	closedir(d);
	return rc;
}

/* All groups below; dir is taken. */
static int
remove_below(int dir, int depth)
{
	struct dirent *de;
	int fd, rc = 0;
	DIR *d;

	if ((d = fdopendir(dir)) == NULL) {
		close(dir);
		return -1;
	}
	while (rc == 0 && (de = readdir(d)) != NULL) {
		if (de->d_type != DT_DIR || strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		if (depth == 0 || (fd = cg_open(dirfd(d), de->d_name, 0)) == -1)
			rc = -1;
		else if ((rc = remove_below(fd, depth - 1)) == 0)
			rc = unlinkat(dirfd(d), de->d_name, AT_REMOVEDIR);
	}
	closedir(d);
	return rc;
}

int
cg_remove(int dir, const char *name)
{
	int fd;

	/* most often it is empty */
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0)
		return 0;
	if (errno != EBUSY && errno != ENOTEMPTY)
		return -1;
	if ((fd = cg_open(dir, name, 0)) == -1)
		return -1;
	(void)cg_kill(fd);
	if (remove_below(fd, DEPTH_MAX) == -1)
		return -1;
	return unlinkat(dir, name, AT_REMOVEDIR);
}
