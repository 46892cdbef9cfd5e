/*
 * SPDX-License-Identifier: ISC
 *
 * Looks at a bounded number of directories, follows no links, changes nothing,
 * and says when it did not see them all.
 *
 * What an earlier look read is not read again while the directory cannot have
 * changed (common/stamp.h).  Each directory is found and asked by itself at
 * every look, so what was moved, hidden or mounted over is seen, and one that
 * is brought from elsewhere is not known.  Every error means that it is read.
 */
#include "execd/look.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/abx.h"
#include "common/recall.h"
#include "common/stamp.h"

#define REMEMBERED ((size_t)128 * 1024) /* bytes of one tree */

_Static_assert(LOOK_MAX_ENTRIES <= UINT16_MAX, "a place is an u16");

/* ---- what is to be looked at ---- */

struct look *
look_new(int root, uint64_t dev, uint64_t ino, const struct strlist *names)
{
	const uint64_t key[] = {dev, ino};
	struct look *l;

	if ((l = calloc(1, sizeof(*l))) == NULL)
		return NULL;
	l->left = LOOK_MAX_ENTRIES;
	l->settle = STAMP_SETTLE_NS;
	l->root = root;
	l->names = names;
	l->stamps = -1;
	l->up = -1;
	/* in this order: it may be set now */
	if (stamp_steady() && clock_gettime(CLOCK_REALTIME, &l->now) == 0)
		l->tree = recall_begin(key, sizeof(key), REMEMBERED);
	return l;
}

int
look_first(struct look *l, const char *rel)
{
	if (l->n == LOOK_MAX_DIRS || (l->v[l->n] = strdup(rel)) == NULL)
		return -1;
	l->first = ++l->n;
	return 0;
}

int
look_done(const struct look *l)
{
	return l->left == 0 && l->more;
}

void
look_free(struct look *l)
{
	int save = errno;

	if (l == NULL)
		return;
	if (l->tree != NULL)
		recall_end(l->tree);
	if (l->up != -1)
		close(l->up);
	while (l->n > 0)
		free(l->v[--l->n]);
	free(l->text);
	free(l);
	errno = save;
}

static void
add(struct look *l, const char *dir, const char *name)
{
	size_t n = strlen(dir) + 1 + strlen(name) + 1, i;
	char *p;

	if (l->n == LOOK_MAX_DIRS || n > ABX_PATH_MAX) {
		l->more = 1;
		return;
	}
	if ((p = malloc(n)) == NULL) {
		l->failed = 1;
		return;
	}
	strlcpy(p, dir, n);
	if (*dir != '\0')
		strlcat(p, "/", n);
	strlcat(p, name, n);
	for (i = 0; i < l->first; i++)
		if (strcmp(l->v[i], p) == 0) {
			free(p);
			return;
		}
	l->v[l->n++] = p;
}

/* ---- what is remembered ---- */

static int
open_below(int root, const char *rel, uint64_t flags)
{
	struct open_how how = {flags | O_DIRECTORY | O_CLOEXEC, 0,
	    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(
	    SYS_openat2, root, *rel == '\0' ? "." : rel, &how, sizeof(how));
}

/* The directory that rel lies in, and its name there; -1 when it cannot be
 * opened.  Those that lie in one come one after the other. */
static int
open_up(struct look *l, const char *rel, const char **name)
{
	const char *slash = strrchr(rel, '/');
	char path[ABX_PATH_MAX + 1];
	size_t n;

	*name = rel;
	if (slash == NULL)
		return l->root;
	*name = slash + 1;
	n = (size_t)(slash - rel);
	if (l->up != -1) {
		if (l->up_len == n && memcmp(l->up_rel, rel, n) == 0)
			return l->up;
		close(l->up);
		l->up = -1;
	}
	if (n >= sizeof(path))
		return -1;
	memcpy(path, rel, n);
	path[n] = '\0';
	l->up = open_below(l->root, path, O_PATH);
	l->up_rel = rel;
	l->up_len = n;
	return l->up;
}

/* Was it read as far as it would be now? */
static int
suffices_cb(const struct recall_dir *d, const void *left)
{
	return d->whole || *(const uint32_t *)left <= d->count;
}

/* As reading it would: 1, or 0 when it must be. */
static int
remembered(struct look *l, const char *rel, int *found)
{
	const struct recall_dir *d;
	const char *p, *name = "";
	struct recall_id id;
	uint16_t place;
	int at = *rel == '\0' ? l->root : open_up(l, rel, &name);

	if (at == -1 || stamp_of(at, name, &id) != 0 ||
	    (d = recall_find(l->tree, &id, suffices_cb, &l->left)) == NULL)
		return 0;
	for (p = d->text; p != NULL && p < d->text + d->len;
	     p += sizeof(place) + strlen(p + sizeof(place)) + 1) {
		memcpy(&place, p, sizeof(place));
		if (place >= l->left)
			break;
		add(l, rel, p + sizeof(place));
	}
	*found = d->hit < l->left;
	if (!d->whole || d->count > l->left)
		l->more = 1;
	l->left -= d->count < l->left ? d->count : l->left;
	return 1;
}

/* Do the times of what lies there tell of every change? */
static int
has_stamps(struct look *l, int fd, uint64_t dev)
{
	if (l->stamps == -1 || l->dev != dev) {
		l->dev = dev;
		l->stamps = stamp_tells(fd);
	}
	return l->stamps;
}

/* ---- reading ---- */

/* One directory that is read. */
struct reading {
	const char *rel;
	int fd;
	int keep; /* it can be remembered */
	uint32_t dirs;
	struct recall_dir dir;
};

/* Put a directory's name and place into the text.  More of them than there
 * are places to look at will be asked for by no look. */
static void
collect(struct look *l, struct reading *r, const char *name, uint32_t place)
{
	size_t n = strlen(name) + 1, room = 2 * l->room + 1024;
	uint16_t at = (uint16_t)place;
	char *p;

	if (!r->keep || r->dirs > LOOK_MAX_DIRS)
		return;
	if (l->room - r->dir.len < sizeof(at) + n) {
		if (r->dir.len > REMEMBERED ||
		    (p = realloc(l->text, room)) == NULL) {
			r->keep = 0;
			return;
		}
		l->text = p;
		l->room = room;
	}
	memcpy(l->text + r->dir.len, &at, sizeof(at));
	memcpy(l->text + r->dir.len + sizeof(at), name, n);
	r->dir.len += (uint32_t)(sizeof(at) + n);
	r->dirs++;
}

static int
is_dir(struct reading *r, const struct dirent64 *de)
{
	struct stat st;

	if (de->d_type != DT_UNKNOWN)
		return de->d_type == DT_DIR;
	r->keep = 0;
	return fstatat(r->fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       S_ISDIR(st.st_mode);
}

static void
take(struct look *l, struct reading *r, const struct dirent64 *de)
{
	uint32_t place = r->dir.count++;

	l->left--;
	if (strcmp(de->d_name, ".git") == 0)
		r->dir.hit = place;
	else if (is_dir(r, de) && !strlist_has(l->names, de->d_name)) {
		collect(l, r, de->d_name, place);
		add(l, r->rel, de->d_name);
	}
}

/* All entries, as long as any may be read. */
static void
read_all(struct look *l, struct reading *r)
{
	const struct dirent64 *de;
	ssize_t n;
	char *p;

	while ((n = getdents64(r->fd, l->buf, sizeof(l->buf))) > 0)
		for (p = l->buf; p < l->buf + n; p += de->d_reclen) {
			de = (const void *)p;
			if (strcmp(de->d_name, ".") == 0 ||
			    strcmp(de->d_name, "..") == 0)
				continue;
			/* the others must not wait for a huge directory */
			if (l->left == 0) {
				l->more = 1;
				return;
			}
			take(l, r, de);
		}
	if (n == 0)
		r->dir.whole = 1;
	else {
		r->keep = 0;
		if (errno != ENOENT) /* it is removed */
			l->more = 1;
	}
}

int
look_at(struct look *l, const char *rel)
{
	struct reading r = {.rel = rel, .dir = {.hit = RECALL_NONE}};
	int found;

	if (l->tree != NULL && !recall_empty(l->tree) &&
	    remembered(l, rel, &found))
		return found;
	if ((r.fd = open_below(l->root, rel, O_RDONLY)) == -1) {
		/* the command may be able to open it all the same */
		if (errno == ENOMEM || errno == EMFILE || errno == ENFILE)
			l->failed = 1;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
			l->more = 1;
		return 0;
	}
	l->nread++;
	r.keep = l->tree != NULL && stamp_of(r.fd, "", &r.dir.id) == 0 &&
		 recall_settled(&r.dir.id, &l->now, l->settle) &&
		 has_stamps(l, r.fd, r.dir.id.dev);
	read_all(l, &r);
	close(r.fd);
	r.dir.text = l->text;
	if (r.keep)
		recall_keep(l->tree, &r.dir);
	return r.dir.hit != RECALL_NONE;
}
