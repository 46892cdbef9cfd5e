/*
 * SPDX-License-Identifier: ISC
 *
 * Finds repositories below a writable bind, whose protected names are
 * protected as those of the bind itself (design: protected names).  Looks at
 * a bounded number of directories, follows no links, changes nothing, and
 * says when it did not see them all.
 */
#include "execd/nested.h"

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

#include "execd/appeared.h"
#include "execd/known.h"
#include "execd/protect.h"

/* No repository is begun with more binds than this: one can need half of what
 * there may be, and bubblewrap's time grows with their square. */
#define BINDS_FULL (PROFILE_MAX_BINDS / 4)

/* Directories to look at, as paths below the bind: repositories of earlier
 * runs, then those nearest to it. */
struct todo {
	char *v[NESTED_MAX_DIRS];
	size_t n, known; /* so many of the first are of earlier runs */
	unsigned left;	 /* entries that may still be read */
	int more;	 /* there were others */
	int failed;	 /* no memory or descriptor to look with */
};

static void
todo_add(struct todo *t, const char *dir, const char *name)
{
	size_t n = strlen(dir) + 1 + strlen(name) + 1, i;
	char *p;

	if (t->n == NESTED_MAX_DIRS || n > ABX_PATH_MAX) {
		t->more = 1;
		return;
	}
	if ((p = malloc(n)) == NULL) {
		t->failed = 1;
		return;
	}
	strlcpy(p, dir, n);
	if (*dir != '\0')
		strlcat(p, "/", n);
	strlcat(p, name, n);
	for (i = 0; i < t->known; i++)
		if (strcmp(t->v[i], p) == 0) {
			free(p);
			return;
		}
	t->v[t->n++] = p;
}

/* Those of earlier runs come first: 0, or -1 out of memory. */
static int
todo_known(struct todo *t, const struct profile_bind *b)
{
	const char *v[KNOWN_EACH];
	size_t i, n = known_of(b->dev, b->ino, v);

	for (i = 0; i < n; i++) {
		if ((t->v[t->n] = strdup(v[i])) == NULL)
			return -1;
		t->n++;
	}
	t->known = n;
	return 0;
}

static void
todo_clear(struct todo *t)
{
	while (t->n > 0)
		free(t->v[--t->n]);
}

static DIR *
open_below(int root, const char *rel)
{
	struct open_how how = {O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0,
	    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	DIR *d;
	int fd;

	fd = (int)syscall(
	    SYS_openat2, root, *rel == '\0' ? "." : rel, &how, sizeof(how));
	if (fd == -1)
		return NULL;
	if ((d = fdopendir(fd)) == NULL)
		close(fd);
	return d;
}

static int
is_dir(DIR *d, const struct dirent *de)
{
	struct stat st;

	if (de->d_type != DT_UNKNOWN)
		return de->d_type == DT_DIR;
	return fstatat(dirfd(d), de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

static int
named(const struct strlist *names, const char *name)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		if (strcmp(names->v[i], name) == 0)
			return 1;
	return 0;
}

/* Queue what lies in one directory; 1 when it is a repository. */
static int
look(struct todo *t, const struct strlist *names, int root, const char *rel)
{
	const struct dirent *de;
	int found = 0;
	DIR *d;

	if ((d = open_below(root, rel)) == NULL) {
		/* the command may be able to open it all the same */
		if (errno == ENOMEM || errno == EMFILE || errno == ENFILE)
			t->failed = 1;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			t->more = 1;
		return 0;
	}
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		/* the others must not wait for a huge directory */
		if (t->left == 0) {
			t->more = 1;
			break;
		}
		t->left--;
		if (named(names, de->d_name))
			found |= strcmp(de->d_name, ".git") == 0;
		else if (is_dir(d, de))
			todo_add(t, rel, de->d_name);
	}
	closedir(d);
	return found;
}

/* Protect the repository at rel: 0, or -1 with errno.  One that is gone needs
 * nothing. */
static int
protect(struct profile_binds *b, const struct strlist *names, size_t i,
    const char *rel)
{
	char way[ABX_PATH_MAX + 1];
	ssize_t at;

	strlcpy(way, rel, sizeof(way));
	if ((at = protect_way(b, i, way)) == -1)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP
			   ? 0
			   : -1;
	/* below a protected name, or a repository that is a bind itself */
	if (!b->v[at].rw)
		return 0;
	return protect_names(b, names, (size_t)at);
}

/* Is there still a repository? */
static int
is_there(int root, const char *rel)
{
	struct open_how how = {O_PATH | O_CLOEXEC, 0,
	    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	char git[ABX_PATH_MAX + 8];
	int fd;

	snprintf(git, sizeof(git), "%s/.git", rel);
	fd = (int)syscall(SYS_openat2, root, git, &how, sizeof(how));
	if (fd == -1)
		return errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
	close(fd);
	return 1;
}

/* Protect one more, if there is room: 0, or -1 with errno. */
static int
protect_next(struct todo *t, struct profile_binds *b,
    const struct strlist *names, size_t i, const char *rel)
{
	if (b->n <= BINDS_FULL)
		return protect(b, names, i, rel);
	t->more = 1;
	return 0;
}

/* Before anything is looked at: whatever was made since, these stay. */
static int
earlier(struct todo *t, struct profile_binds *b, const struct strlist *names,
    size_t i)
{
	const uint64_t dev = b->v[i].dev, ino = b->v[i].ino;
	size_t k;
	int rc = 0;

	for (k = 0; rc == 0 && k < t->known; k++)
		if (is_there(b->v[i].fd, t->v[k]))
			rc = protect_next(t, b, names, i, t->v[k]);
		else
			known_drop(dev, ino, t->v[k]);
	return rc;
}

int
nested_names(struct profile_binds *b, const struct strlist *names, size_t i)
{
	const uint64_t dev = b->v[i].dev, ino = b->v[i].ino;
	int root = b->v[i].fd, rc;
	struct todo *t;
	size_t k;

	if (b->v[i].git || !named(names, ".git"))
		return 0;
	if ((t = calloc(1, sizeof(*t))) == NULL)
		return -1;
	t->left = NESTED_MAX_ENTRIES;
	if ((rc = todo_known(t, &b->v[i])) == 0)
		rc = earlier(t, b, names, i);
	if (rc == 0)
		(void)look(t, names, root, "");
	for (k = 0; rc == 0 && k < t->n; k++)
		if (look(t, names, root, t->v[k]) && k >= t->known) {
			rc = protect_next(t, b, names, i, t->v[k]);
			known_keep(dev, ino, t->v[k]);
		}
	if (rc == 0 && t->failed) {
		errno = ENOMEM;
		rc = -1;
	} else if (rc == 0 && t->more)
		rc = appeared_partial(&b->watch);
	todo_clear(t); /* free(3) keeps errno */
	free(t);
	return rc;
}
