/*
 * SPDX-License-Identifier: ISC
 *
 * Reads configuration files whole and refuses those that somebody else could
 * have written.  The check is made on the open descriptor, so FILE may be a
 * symbolic link.  Nothing here looks into the bytes.
 */
#include "monitor/conffile.h"

#include <sys/stat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNREADABLE "config.file_unreadable"
#define UNSAFE "config.file_unsafe"

static void
unreadable(struct findings *found, const char *path, int err)
{
	findings_add(found, FIND_ERROR, UNREADABLE, path, 1, 1,
	    "cannot be read: %s", strerror(err));
}

static void
unsafe(struct findings *found, const char *path, const char *why)
{
	findings_add(found, FIND_ERROR, UNSAFE, path, 1, 1, "%s", why);
}

/* Who may own what the service believes: root, and whoever starts it. */
static int
trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

/* FILE_SECRET: nobody else may read it either.  FILE_OPERATOR: it binds the
 * starter too, so only root may have written it. */
enum file_kind { FILE_PLAIN, FILE_SECRET, FILE_OPERATOR };

/* Why an open file may not be believed, or NULL. */
static const char *
file_fault(const struct stat *st, enum file_kind kind)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (kind == FILE_OPERATOR && st->st_uid != 0)
		return "does not belong to root: chown root";
	if (!trusted(st->st_uid))
		return "belongs neither to root nor to the user who starts "
		       "the service: chown";
	if ((st->st_mode & S_IWOTH) != 0)
		return "can be written by everybody: chmod o-w";
	if ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0)
		return "can be written by its group: chmod g-w";
	if (kind == FILE_SECRET && (st->st_mode & S_IROTH) != 0)
		return "holds a secret and can be read by everybody: "
		       "chmod o-r";
	return NULL;
}

/* Everything up to end of file as a new NUL-terminated buffer, NULL with
 * errno (EFBIG over max). */
static char *
read_all(int fd, size_t max, size_t *len)
{
	char *buf, *p;
	size_t cap = 4096, n = 0;
	ssize_t r;

	if ((buf = malloc(cap + 1)) == NULL)
		return NULL;
	while ((r = read(fd, buf + n, cap - n)) != 0) {
		if (r == -1 && errno == EINTR)
			continue;
		if (r == -1)
			goto fail;
		if ((n += (size_t)r) > max) {
			errno = EFBIG;
			goto fail;
		}
		if (n < cap)
			continue;
		if ((p = recallocarray(buf, cap + 1, cap * 2 + 1, 1)) == NULL)
			goto fail;
		buf = p;
		cap *= 2;
	}
	buf[n] = '\0';
	*len = n;
	return buf;
fail:
	freezero(buf, cap + 1);
	return NULL;
}

/* One file whole and checked; NULL with errno, or with errno 0 when the fault
 * was said already. */
static char *
read_file(const char *path, size_t max, enum file_kind kind,
    struct findings *found, size_t *len)
{
	struct stat st;
	const char *why;
	char *buf;
	int fd, saved;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1)
		return NULL;
	if (fstat(fd, &st) == -1) {
		buf = NULL;
	} else if ((why = file_fault(&st, kind)) != NULL) {
		unsafe(found, path, why);
		errno = 0;
		buf = NULL;
	} else {
		buf = read_all(fd, max, len);
	}
	saved = errno;
	close(fd);
	errno = saved;
	return buf;
}

/* Takes data; 0 or -1 out of memory. */
static int
add_source(struct conffile *cf, const char *name, enum conf_layer layer,
    char *data, size_t len)
{
	struct conf_source *v;
	char *copy;

	v = recallocarray(cf->v, cf->n, cf->n + 1, sizeof(*v));
	if (v != NULL)
		cf->v = v;
	if (v == NULL || (copy = strdup(name)) == NULL) {
		freezero(data, len);
		return -1;
	}
	v += cf->n++;
	v->name = copy;
	v->layer = layer;
	v->data = data;
	v->len = len;
	return 0;
}

/* Read one file as a layer.  0, or -1 out of memory. */
static int
read_layer(
    struct conffile *cf, const char *path, enum conf_layer layer, int optional)
{
	char *data;
	size_t len = 0;

	data = read_file(path, CONFFILE_MAX,
	    layer == LAYER_OPERATOR ? FILE_OPERATOR : FILE_PLAIN, cf->found,
	    &len);
	if (data != NULL)
		return add_source(cf, path, layer, data, len);
	if (errno == ENOMEM)
		return -1;
	if (errno == EFBIG)
		findings_add(cf->found, FIND_ERROR, UNREADABLE, path, 1, 1,
		    "is longer than the %u MiB that a file may have",
		    CONFFILE_MAX >> 20);
	else if (errno != 0 && !(optional && errno == ENOENT))
		unreadable(cf->found, path, errno);
	return 0;
}

/* A directory above FILE that everybody may write lets anybody put another
 * one in its place; a sticky one does not. */
static void
check_above(const struct conffile *cf)
{
	char path[PATH_MAX];
	struct stat st;
	char *slash;

	if (strlcpy(path, cf->dir, sizeof(path)) >= sizeof(path))
		return;
	for (;;) {
		if (stat(path[0] == '\0' ? "/" : path, &st) == 0 &&
		    (st.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH) {
			findings_add(cf->found, FIND_ERROR, UNSAFE, cf->file, 1,
			    1, "everybody can write the directory %s", path);
			return;
		}
		if ((slash = strrchr(path, '/')) == NULL)
			return;
		*slash = '\0';
	}
}

static int
dropin_name(const struct dirent *d)
{
	size_t n = strlen(d->d_name);

	return d->d_name[0] != '.' && n > 5 &&
	       strcmp(d->d_name + n - 5, ".json") == 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
read_named(struct conffile *cf, const char *dir, struct dirent **v, int n)
{
	char path[PATH_MAX];
	int i, r;

	if (n > CONFFILE_DROPINS) {
		findings_add(cf->found, FIND_ERROR, UNREADABLE, dir, 1, 1,
		    "more than %d files", CONFFILE_DROPINS);
		return 0;
	}
	for (i = 0; i < n; i++) {
		r = snprintf(path, sizeof(path), "%s/%s", dir, v[i]->d_name);
		if (r < 0 || (size_t)r >= sizeof(path))
			unreadable(cf->found, dir, ENAMETOOLONG);
		else if (read_layer(cf, path, LAYER_DROPIN, 0) == -1)
			return -1;
	}
	return 0;
}

static int
read_dropins(struct conffile *cf, const char *dir)
{
	struct dirent **v = NULL;
	struct stat st;
	int i, n, r;

	n = scandir(dir, &v, dropin_name, by_name);
	if (n == -1) {
		if (errno == ENOMEM)
			return -1;
		if (errno != ENOENT)
			unreadable(cf->found, dir, errno);
		return 0;
	}
	/* a new drop-in grants, so the directory is as precious as a file */
	if (stat(dir, &st) == -1)
		unreadable(cf->found, dir, errno);
	else if (!trusted(st.st_uid) || (st.st_mode & S_IWOTH) != 0 ||
		 ((st.st_mode & S_IWGRP) != 0 && st.st_gid != 0))
		unsafe(cf->found, dir,
		    "the directory can be written by "
		    "somebody other than root and the starter");
	r = read_named(cf, dir, v, n);
	for (i = 0; i < n; i++)
		free(v[i]);
	free(v);
	return r;
}

/* dirname(3) without its traps, as a new string. */
static char *
dir_of(const char *file)
{
	const char *slash = strrchr(file, '/');

	if (slash == NULL)
		return strdup(".");
	if (slash == file)
		return strdup("/");
	return strndup(file, (size_t)(slash - file));
}

/* "dir/name" when FILE is "dir/x", "name" when FILE is "x": the names in the
 * findings are then spelled as FILE is. */
static int
beside(char *out, size_t size, const char *file, const char *name)
{
	const char *slash = strrchr(file, '/');
	int head = slash == NULL ? 0 : (int)(slash + 1 - file);
	int r = snprintf(out, size, "%.*s%s", head, file, name);

	return r < 0 || (size_t)r >= size ? -1 : 0;
}

static int
read_beside(struct conffile *cf)
{
	char path[PATH_MAX];

	if (beside(path, sizeof(path), cf->file, "server.d") == -1) {
		unreadable(cf->found, cf->file, ENAMETOOLONG);
		return 0;
	}
	if (read_dropins(cf, path) == -1)
		return -1;
	if (beside(path, sizeof(path), cf->file, "operator.json") == -1) {
		unreadable(cf->found, cf->file, ENAMETOOLONG);
		return 0;
	}
	return read_layer(cf, path, LAYER_OPERATOR, 1);
}

int
conffile_read(
    struct conffile *cf, const char *file, int optional, struct findings *found)
{
	char *dir;
	int saved;

	memset(cf, 0, sizeof(*cf));
	cf->found = found;
	cf->file = strdup(file != NULL ? file : CONFFILE_DEFAULT);
	if (cf->file == NULL || (dir = dir_of(cf->file)) == NULL)
		return -1;
	cf->dir = realpath(dir, NULL);
	saved = errno;
	free(dir);
	if (cf->dir == NULL) {
		if (saved == ENOMEM)
			return -1;
		if (!(optional && saved == ENOENT))
			unreadable(found, cf->file, saved);
		return 0;
	}
	check_above(cf);
	if (read_layer(cf, cf->file, LAYER_FILE, optional) == -1)
		return -1;
	return read_beside(cf);
}

void
conffile_clear(struct conffile *cf)
{
	size_t i;

	for (i = 0; i < cf->n; i++) {
		/* both are ours; the struct only lends them to policy/ */
		free((void *)(uintptr_t)cf->v[i].name);
		freezero((void *)(uintptr_t)cf->v[i].data, cf->v[i].len);
	}
	free(cf->v);
	free(cf->file);
	free(cf->dir);
	memset(cf, 0, sizeof(*cf));
}

char *
conffile_token(const char *path, void *arg)
{
	struct conffile *cf = arg;
	char *data;
	size_t len = 0;

	if (path[0] != '/') {
		unsafe(cf->found, path,
		    "a token file is named by an absolute "
		    "path");
		return NULL;
	}
	data =
	    read_file(path, CONFFILE_TOKEN_MAX, FILE_SECRET, cf->found, &len);
	if (data == NULL) {
		if (errno == EFBIG)
			findings_add(cf->found, FIND_ERROR, UNREADABLE, path, 1,
			    1, "is longer than a token: %d bytes at most",
			    CONFFILE_TOKEN_MAX);
		else if (errno != 0)
			unreadable(cf->found, path, errno);
		return NULL;
	}
	if (memchr(data, '\0', len) != NULL) {
		findings_add(cf->found, FIND_ERROR, "config.auth_secret_weak",
		    path, 1, 1, "the token holds a NUL byte");
		freezero(data, len);
		return NULL;
	}
	return data;
}

int
conffile_dir(const char *path, void *arg)
{
	struct stat st;

	if (stat(path, &st) == -1)
		return errno;
	return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}
