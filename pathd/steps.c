/*
 * SPDX-License-Identifier: ISC
 *
 * The walk itself: components are opened one by one without following, links
 * are read here, and each link is judged by the roots of the asking statement.
 * What a walk leaves again or ends at is remembered for policy to judge.  It
 * decides nothing, and has no globals.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "pathd/beneath.h"
#include "pathd/walk_int.h"

/* A walk under way: path is what is known, rest what is still to be walked. */
struct walk {
	const struct walk_roots *roots;
	const struct resolve_item *item;
	const struct walk_root *root;
	size_t base;	/* bytes of path that spell root and sub */
	int fd;		/* of path; root->fd or owned */
	struct stat st; /* of fd */
	unsigned links, missing;
	int symlink;
	struct strlist via;
	size_t len;
	char *next; /* into rest */
	char path[ABX_PATH_MAX + 1];
	char rest[2 * ABX_PATH_MAX + 2];
};

static void
walk_setfd(struct walk *w, int fd)
{
	if (w->fd != -1 && w->fd != w->root->fd)
		close(w->fd);
	w->fd = fd;
}

/* Go to the root that contains an absolute path; what lies below it is still
 * to be walked.  FS_OK or FS_OUTSIDE. */
static enum facts_status
walk_enter(struct walk *w, const char *path)
{
	struct walk_start s;
	const char *sub;

	if (walk_start(w->roots, w->item, path, &s) == -1)
		return FS_OUTSIDE;
	if (w->root != NULL)
		walk_setfd(w, -1);
	w->root = s.root;
	w->fd = s.root->fd;
	if (fstat(w->fd, &w->st) == -1)
		return FS_OUTSIDE;
	w->len = strlen(s.root->path);
	memcpy(w->path, s.root->path, w->len + 1);
	w->base = w->len;
	sub = w->item->refs[s.ref].sub;
	if (*sub != '\0')
		w->base += 1 + strlen(sub);
	memmove(w->rest, s.rest, strlen(s.rest) + 1);
	w->next = w->rest;
	return FS_OK;
}

/* Empty and "." components of an absolute target are only spelling; ".." is
 * left for the walk.  In place. */
static void
squeeze(char *path)
{
	char *in = path, *out = path;
	size_t n;

	while (*in != '\0') {
		while (*in == '/')
			in++;
		n = strcspn(in, "/");
		if (n == 0 || (n == 1 && *in == '.')) {
			in += n;
			continue;
		}
		*out++ = '/';
		memmove(out, in, n);
		out += n;
		in += n;
	}
	if (out == path)
		*out++ = '/';
	*out = '\0';
}

/* dir is path or above it. */
static int
above(const char *dir, const char *path)
{
	return walk_after(path, dir) != NULL;
}

/*
 * The walk is about to leave path: that there was something is for policy to
 * judge like a place where a walk ends.  What the caller's own words lead
 * through was judged by them, and what is above another place with it.  FS_OK,
 * or the walk ends here.
 */
static int
walk_leave(struct walk *w, struct facts *f)
{
	size_t i;

	if (above(w->path, w->item->path))
		return FS_OK;
	for (i = 0; i < w->via.n; i++)
		if (above(w->path, w->via.v[i]))
			return FS_OK;
	if (w->via.n == FACTS_VIA_MAX)
		return FS_INVALID;
	if (strlist_add(&w->via, w->path, w->len) == 0)
		return FS_OK;
	f->err = ENOMEM;
	return FS_ERRNO;
}

/* Put a link's target in front of what is still to be walked. */
static int
walk_link(struct walk *w, int link, struct facts *f)
{
	char buf[sizeof(w->rest)];
	size_t left = strlen(w->next);
	ssize_t n;

	if (w->len < w->base)
		return FS_OUTSIDE; /* a principal's own root is no link */
	if (++w->links > WALK_LINKS)
		return FS_INVALID;
	w->symlink = 1;
	n = readlinkat(link, "", buf, ABX_PATH_MAX + 1);
	if (n == -1) {
		f->err = errno;
		return FS_ERRNO;
	}
	if (n == 0 || n > ABX_PATH_MAX ||
	    (size_t)n + 1 + left >= sizeof(w->rest))
		return FS_INVALID;
	buf[n] = '\0';
	if (left > 0) {
		buf[n] = '/';
		memcpy(buf + n + 1, w->next, left + 1);
	}
	if (*buf == '/') {
		squeeze(buf);
		return walk_enter(w, buf);
	}
	memcpy(w->rest, buf, strlen(buf) + 1);
	w->next = w->rest;
	return FS_OK;
}

/* What opening something that was there a moment ago says when it is another
 * thing now. */
static int
changed(int err)
{
	return err == ELOOP || err == ENOTDIR || err == ENOENT || err == EXDEV;
}

/* ".." of a link's target: to the directory that the walk came through. */
static int
walk_up(struct walk *w, struct facts *f)
{
	size_t top = strlen(w->root->path);
	char *slash;
	int fd, rc;

	if (w->len <= w->base)
		return FS_OUTSIDE;
	if (w->missing > 0 || !S_ISDIR(w->st.st_mode)) {
		f->err = w->missing > 0 ? ENOENT : ENOTDIR;
		return FS_ERRNO;
	}
	if ((rc = walk_leave(w, f)) != FS_OK)
		return rc;
	slash = strrchr(w->path + top, '/');
	*slash = '\0';
	w->len = (size_t)(slash - w->path);
	fd = beneath_open(w->root->fd, w->len == top ? "" : w->path + top + 1,
	    O_PATH | O_DIRECTORY);
	if (fd == -1 || fstat(fd, &w->st) == -1) {
		f->err = changed(errno) ? ESTALE : errno;
		if (fd != -1)
			close(fd);
		return FS_ERRNO;
	}
	walk_setfd(w, fd);
	return FS_OK;
}

static int
walk_append(struct walk *w, const char *name, size_t n)
{
	if (w->len + 1 + n > ABX_PATH_MAX)
		return FS_INVALID;
	w->path[w->len++] = '/';
	memcpy(w->path + w->len, name, n);
	w->len += n;
	w->path[w->len] = '\0';
	return FS_OK;
}

/* Through the link of that name; when it leads nowhere, the walk ended at it.
 * The name lies in rest, which a link replaces. */
static int
walk_through(
    struct walk *w, int link, const char *name, size_t n, struct facts *f)
{
	char at[NAME_MAX + 1];
	size_t len = w->len;
	int rc;

	memcpy(at, name, n);
	at[n] = '\0';
	if ((rc = walk_append(w, at, n)) != FS_OK ||
	    (rc = walk_leave(w, f)) != FS_OK)
		return rc;
	w->path[w->len = len] = '\0';
	rc = walk_link(w, link, f);
	if (rc != FS_OK)
		(void)walk_append(w, at, n);
	return rc;
}

/* One named component of n bytes at name (inside rest). */
static int
walk_name(struct walk *w, char *name, size_t n, struct facts *f)
{
	struct stat st;
	int fd, rc;

	if (beneath_is_ours(name, n))
		return FS_INVALID;
	if (n > NAME_MAX) {
		f->err = ENAMETOOLONG;
		return FS_ERRNO;
	}
	if (w->missing > 0) {
		w->missing++;
		return walk_append(w, name, n);
	}
	name[n] = '\0'; /* its slash was passed already */
	fd = openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1 && errno == ENOENT) {
		w->missing = 1;
		return walk_append(w, name, n);
	}
	if (fd == -1 || fstat(fd, &st) == -1) {
		f->err = errno;
		if (fd != -1)
			close(fd);
		(void)walk_append(w, name, n);
		return FS_ERRNO;
	}
	if (S_ISLNK(st.st_mode) && (*w->next != '\0' || !w->item->nofollow)) {
		rc = walk_through(w, fd, name, n, f);
		close(fd);
		return rc;
	}
	walk_setfd(w, fd);
	w->st = st;
	return walk_append(w, name, n);
}

/* Take one component off rest. */
static int
walk_step(struct walk *w, struct facts *f)
{
	char *name = w->next;
	size_t n = strcspn(name, "/");

	w->next += n;
	if (*w->next == '/')
		w->next++;
	if (n == 0)
		return FS_OK;
	if (n == 1 && *name == '.') {
		if (w->missing > 0 || S_ISDIR(w->st.st_mode))
			return FS_OK;
		f->err = ENOTDIR;
		return FS_ERRNO;
	}
	if (n == 2 && name[0] == '.' && name[1] == '.')
		return walk_up(w, f);
	return walk_name(w, name, n, f);
}

/* The facts of a walk that came to its end: 0, -1 out of memory. */
static int
walk_facts(struct walk *w, struct facts *f)
{
	if (walk_segments(w->path) > ABX_PATH_SEGS) {
		f->status = FS_INVALID;
		return 0;
	}
	if ((f->path = strdup(w->path)) == NULL)
		return -1;
	f->symlink = w->symlink != 0;
	f->missing = (uint16_t)w->missing;
	if (w->missing == 0)
		walk_stat(f, &w->st);
	walk_owner(w->roots, w->item, f);
	return 0;
}

/* Where a walk ended that did not come to its end: whether that may be told
 * is for policy, too.  0, -1 out of memory. */
static int
walk_ended(const struct walk *w, struct facts *f)
{
	if (w->root == NULL || walk_segments(w->path) > ABX_PATH_SEGS)
		return 0;
	f->symlink = f->status == FS_ERRNO && w->symlink != 0;
	return (f->path = strdup(w->path)) != NULL ? 0 : -1;
}

int
walk_slow(const struct walk_roots *roots, const struct resolve_item *it,
    struct facts *f, int *fd)
{
	struct walk w;
	int rc;

	w.roots = roots;
	w.item = it;
	w.root = NULL;
	w.fd = -1;
	w.links = w.missing = 0;
	w.symlink = 0;
	memset(&w.via, 0, sizeof(w.via));
	f->status = (uint8_t)walk_enter(&w, it->path);
	while (f->status == FS_OK && *w.next != '\0')
		f->status = (uint8_t)walk_step(&w, f);
	rc = f->status == FS_OK ? walk_facts(&w, f) : walk_ended(&w, f);
	f->via = w.via;
	if (rc == 0 && f->status == FS_OK && w.missing == 0 && fd != NULL) {
		*fd =
		    w.fd == w.root->fd ? fcntl(w.fd, F_DUPFD_CLOEXEC, 3) : w.fd;
		w.fd = -1;
	}
	if (w.root != NULL)
		walk_setfd(&w, -1);
	return rc;
}
