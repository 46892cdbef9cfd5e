/*
 * SPDX-License-Identifier: ISC
 *
 * The sandbox profile (design: sandbox) as data: which mounts, which rights.
 * Pure but for closing descriptors; spawn.c runs it.
 */
#include "execd/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "execd/appeared.h"
#include "execd/place.h"

#define RUN_SIZE "1048576"
#define SHM_SIZE "67108864"
#define READ_EXEC (XLR_READ | XLR_EXEC)
#define ALL_RIGHTS (XLR_READ | XLR_EXEC | XLR_WRITE | XLR_MAKE)

/* Absolute, and no empty, "." or ".." component, no slash at the end. */
static int
normal(const char *p)
{
	size_t n;

	if (*p != '/' || strlen(p) > ABX_PATH_MAX)
		return 0;
	while (*p == '/') {
		n = strcspn(++p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') ||
		    (n == 2 && p[0] == '.' && p[1] == '.'))
			return 0;
		p += n;
	}
	return 1;
}

static int
is_protected(const struct strlist *names, const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		if (strlen(names->v[i]) == n &&
		    memcmp(names->v[i], name, n) == 0)
			return 1;
	return 0;
}

enum profile_place
profile_place(const struct strlist *names, const char *root, const char *inner)
{
	const char *p;
	size_t n;

	if (root == NULL || !place_within(inner, root))
		return PLACE_FREE;
	for (p = inner + strlen(root); *p == '/'; p += n) {
		n = strcspn(++p, "/");
		if (!is_protected(names, p, n))
			continue;
		return n == 4 && memcmp(p, ".git", 4) == 0 && p[n] == '\0'
			   ? PLACE_GIT
			   : PLACE_PROTECTED;
	}
	return PLACE_FREE;
}

int
profile_bind(struct profile_binds *b, const char *inner, int fd, int rw,
    int cover, uint64_t dev, uint64_t ino)
{
	struct profile_bind *p;
	size_t i;

	if (!normal(inner) || place_reserved(inner)) {
		errno = EINVAL;
		return -1;
	}
	for (i = 0; i < b->n; i++)
		if (strcmp(b->v[i].inner, inner) == 0) {
			errno = EEXIST;
			return -1;
		}
	if (b->n == PROFILE_MAX_BINDS) {
		errno = ENFILE;
		return -1;
	}
	p = &b->v[b->n];
	if ((p->inner = strdup(inner)) == NULL)
		return -1;
	p->fd = fd;
	p->rw = rw != 0;
	p->cover = cover != 0;
	p->dev = dev;
	p->ino = ino;
	b->n++;
	return 0;
}

const struct profile_bind *
profile_find(const struct profile_binds *b, const char *inner)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		if (strcmp(b->v[i].inner, inner) == 0)
			return &b->v[i];
	return NULL;
}

static void
bind_clear(struct profile_bind *p)
{
	free(p->inner);
	if (p->fd != -1)
		close(p->fd);
}

int
profile_hide(struct profile_binds *b, const char *inner, int fd, uint64_t dev,
    uint64_t ino)
{
	size_t i, k;

	for (i = k = 0; i < b->n; i++)
		if (place_within(b->v[i].inner, inner))
			bind_clear(&b->v[i]);
		else
			b->v[k++] = b->v[i];
	memset(&b->v[k], 0, (b->n - k) * sizeof(b->v[0]));
	b->n = k;
	return profile_bind(b, inner, fd, 0, 1, dev, ino);
}

void
profile_clear(struct profile_binds *b)
{
	size_t i;

	for (i = 0; i < b->n; i++)
		bind_clear(&b->v[i]);
	appeared_free(b->watch);
	memset(b, 0, sizeof(*b));
}

static int
bind_cmp(const void *a, const void *b)
{
	const struct profile_bind *x = a, *y = b;

	/* a path is longer than every path above it */
	return strcmp(x->inner, y->inner);
}

void
profile_sort(struct profile_binds *b)
{
	if (b->n > 1)
		qsort(b->v, b->n, sizeof(b->v[0]), bind_cmp);
}

int
profile_shows(const struct profile_binds *b, const char *path)
{
	static const char *const sys[] = {"/usr", "/bin", "/sbin", "/lib",
	    "/lib32", "/lib64", "/libx32", "/etc"};
	size_t i;

	for (i = 0; i < nitems(sys); i++)
		if (place_within(path, sys[i]))
			return 1;
	for (i = 0; i < b->n; i++)
		if (place_within(path, b->v[i].inner))
			return 1;
	return 0;
}

/* ---- bubblewrap ---- */

static void
arg(struct wbuf *w, const char *s)
{
	wput_raw(w, s, strlen(s) + 1);
}

static void
args3(struct wbuf *w, const char *a, const char *b, const char *c)
{
	arg(w, a);
	arg(w, b);
	if (c != NULL)
		arg(w, c);
}

static void
tmpfs(struct wbuf *w, const char *perms, const char *size, const char *path)
{
	args3(w, "--perms", perms, "--size");
	args3(w, size, "--tmpfs", path);
}

static void
args_fixed(struct wbuf *w)
{
	static const char *const fixed[] = {"--unshare-user", "--unshare-ipc",
	    "--unshare-pid", "--unshare-net", "--unshare-uts",
	    "--unshare-cgroup", "--disable-userns", "--die-with-parent",
	    "--as-pid-1", "--new-session", "--cap-drop", "ALL",
	    /* both are for the launcher, which gives them up before it
	     * starts anything: quotas, and to empty the bounding set */
	    "--cap-add", "CAP_SYS_RESOURCE", "--cap-add", "CAP_SETPCAP",
	    "--clearenv", "--hostname", "abx",
	    /* first what makes bubblewrap read its mount table most often,
	     * while that is short */
	    "--dev", "/dev", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc",
	    "/etc", "--proc", "/proc"};
	size_t i;

	for (i = 0; i < nitems(fixed); i++)
		arg(w, fixed[i]);
}

void
profile_args(struct wbuf *w, const struct profile_base *base,
    const struct profile_binds *b)
{
	const struct profile_link *l;
	char num[24];
	size_t i;

	args_fixed(w);
	for (i = 0; i < base->nlinks; i++) {
		l = &base->links[i];
		if (l->target[0] != '\0')
			args3(w, "--symlink", l->target, l->name);
		else
			args3(w, "--ro-bind", l->name, l->name);
	}
	snprintf(num, sizeof(num), "%" PRIu64, base->tmp_size);
	tmpfs(w, "1777", num, "/tmp");
	tmpfs(w, "0755", RUN_SIZE, "/run");
	tmpfs(w, "1777", SHM_SIZE, "/dev/shm");
	for (i = 0; i < b->n; i++) {
		snprintf(num, sizeof(num), "%d", b->v[i].fd);
		args3(w, b->v[i].rw ? "--bind-fd" : "--ro-bind-fd", num,
		    b->v[i].inner);
	}
	if (base->landlock)
		return;
	/* What bubblewrap made itself has no size limit; Landlock lets
	 * nobody write there, and without it this does. */
	args3(w, "--remount-ro", "/dev", NULL);
	args3(w, "--remount-ro", "/", NULL);
}

/* ---- the launcher's set-up ---- */

static int
add_path(struct xl_setup *s, const char *path, uint8_t rights)
{
	struct xl_path *p;

	if (s->npaths == XL_MAX_PATHS) {
		errno = ENFILE;
		return -1;
	}
	p = reallocarray(s->paths, s->npaths + 1, sizeof(*p));
	if (p == NULL)
		return -1;
	s->paths = p;
	p += s->npaths;
	if ((p->path = strdup(path)) == NULL)
		return -1;
	p->rights = rights;
	s->npaths++;
	return 0;
}

static int
add_check(struct xl_setup *s, const struct profile_bind *b)
{
	struct xl_check *c;

	c = reallocarray(s->checks, s->nchecks + 1, sizeof(*c));
	if (c == NULL)
		return -1;
	s->checks = c;
	c += s->nchecks;
	if ((c->path = strdup(b->inner)) == NULL)
		return -1;
	c->dev = b->dev;
	c->ino = b->ino;
	c->ro = !b->rw;
	s->nchecks++;
	return 0;
}

static int
add_system_paths(struct xl_setup *s, const struct profile_base *base)
{
	static const struct {
		const char *path;
		uint8_t rights;
	} fixed[] = {
	    {"/usr", READ_EXEC},
	    {"/etc", READ_EXEC},
	    {"/proc", XLR_READ},
	    /* nothing lies there but the devices and what follows */
	    {"/dev", XLR_READ | XLR_WRITE},
	    {"/dev/tty", XLR_IOCTL},
	    {"/dev/pts", ALL_RIGHTS | XLR_IOCTL}, /* ptmx lies in it */
	    {"/dev/shm", ALL_RIGHTS},
	    {"/tmp", ALL_RIGHTS},
	    {"/run", ALL_RIGHTS},
	};
	size_t i;

	for (i = 0; i < nitems(fixed); i++)
		if (add_path(s, fixed[i].path, fixed[i].rights) == -1)
			return -1;
	for (i = 0; i < base->nlinks; i++)
		if (base->links[i].target[0] == '\0' &&
		    add_path(s, base->links[i].name, READ_EXEC) == -1)
			return -1;
	return 0;
}

int
profile_setup(struct xl_setup *s, const struct profile_base *base,
    const struct profile_binds *b)
{
	size_t i;

	if (add_system_paths(s, base) == -1)
		return -1;
	for (i = 0; i < b->n; i++) {
		if (!b->v[i].cover &&
		    add_path(s, b->v[i].inner,
			b->v[i].rw ? ALL_RIGHTS : READ_EXEC) == -1)
			return -1;
		if (add_check(s, &b->v[i]) == -1)
			return -1;
	}
	return 0;
}
