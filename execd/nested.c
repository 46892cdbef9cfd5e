/*
 * SPDX-License-Identifier: ISC
 *
 * Protects the names in repositories below a writable bind as those of the
 * bind itself (design: protected names).  Finds none itself: look.c does, at a
 * bounded number of directories, and the run says when there were more.
 */
#include "execd/nested.h"

#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "execd/appeared.h"
#include "execd/known.h"
#include "execd/look.h"
#include "execd/protect.h"

/* No repository is begun with more binds than this: one can need half of what
 * there may be, and bubblewrap's time grows with their square. */
#define BINDS_FULL (PROFILE_MAX_BINDS / 4)

/* Those of earlier runs come first: 0, or -1 out of memory. */
static int
add_known(struct look *l, const struct profile_bind *b)
{
	const char *v[KNOWN_EACH];
	size_t i, n = known_of(b->dev, b->ino, v);

	for (i = 0; i < n; i++)
		if (look_first(l, v[i]) == -1)
			return -1;
	return 0;
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
protect_next(struct look *l, struct profile_binds *b,
    const struct strlist *names, size_t i, const char *rel)
{
	if (b->n <= BINDS_FULL)
		return protect(b, names, i, rel);
	l->more = 1;
	return 0;
}

/* Before anything is looked at: whatever was made since, these stay. */
static int
earlier(struct look *l, struct profile_binds *b, const struct strlist *names,
    size_t i)
{
	const uint64_t dev = b->v[i].dev, ino = b->v[i].ino;
	size_t k;
	int rc = 0;

	for (k = 0; rc == 0 && k < l->first; k++)
		if (is_there(b->v[i].fd, l->v[k]))
			rc = protect_next(l, b, names, i, l->v[k]);
		else
			known_drop(dev, ino, l->v[k]);
	return rc;
}

int
nested_names(struct profile_binds *b, const struct strlist *names, size_t i)
{
	const uint64_t dev = b->v[i].dev, ino = b->v[i].ino;
	struct look *l;
	size_t k;
	int rc;

	if (b->v[i].git || !strlist_has(names, ".git"))
		return 0;
	if ((l = look_new(b->v[i].fd, dev, ino, names)) == NULL)
		return -1;
	if ((rc = add_known(l, &b->v[i])) == 0)
		rc = earlier(l, b, names, i);
	if (rc == 0)
		(void)look_at(l, "");
	for (k = 0; rc == 0 && k < l->n && !look_done(l); k++)
		if (look_at(l, l->v[k]) && k >= l->first) {
			rc = protect_next(l, b, names, i, l->v[k]);
			known_keep(dev, ino, l->v[k]);
		}
	if (rc == 0 && l->failed) {
		errno = ENOMEM;
		rc = -1;
	} else if (rc == 0 && l->more)
		rc = appeared_partial(&b->watch);
	look_free(l);
	return rc;
}
