/*
 * SPDX-License-Identifier: ISC
 *
 * Builds execd's view of the file system: /usr, a prepared /etc, /proc, a
 * minimal /dev, the launcher, and the directories that exec rules name; the
 * host's tree is left behind.  Runs once, before ids are dropped.  Sources
 * are opened before anything is mounted and targets are found component by
 * component without following links, so no path is looked up twice.
 */
#include "execd/mounts.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "execd/etc.h"
#include "execd/place.h"

#ifndef MOUNT_ATTR_RDONLY
#include <linux/mount.h>
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

#define BASE "/tmp" /* where the new root grows; hidden by it afterwards */

enum shown_kind { SHOW_BIND, SHOW_COVER };

/* A directory of the configuration, found on the host. */
struct shown {
	enum shown_kind kind;
	char *path; /* canonical */
	int fd;	    /* O_PATH */
	int rw;
	int isdir;
};
static struct shown *shown;
static size_t nshown;

static int newroot = -1; /* O_PATH of the new root */
/* Devices of the file systems that we made: only there names are made. */
static dev_t *own;
static size_t nown;

static void
own_add(int fd)
{
	struct stat st;
	dev_t *p;

	p = reallocarray(own, nown + 1, sizeof(*own));
	if (p == NULL || fstat(fd, &st) == -1)
		fatal("mounts");
	own = p;
	own[nown++] = st.st_dev;
}

static int
own_has(int fd)
{
	struct stat st;
	size_t i;

	if (fstat(fd, &st) == -1)
		return 0;
	for (i = 0; i < nown; i++)
		if (own[i] == st.st_dev)
			return 1;
	return 0;
}

/* ---- finding what is to be shown ---- */

/* Places that are ours; nothing may be shown over them. */
static int
reserved(const char *path)
{
	static const char *const no[] = {
	    MOUNTS_LAUNCHER, MOUNTS_EMPTY_DIR, MOUNTS_EMPTY_FILE};
	size_t i;

	for (i = 0; i < nitems(no); i++)
		if (place_within(path, no[i]))
			return 1;
	return strcmp(path, "/") == 0 || place_reserved(path);
}

static void
show(enum shown_kind kind, const char *path, int rw)
{
	char link[64], real[ABX_PATH_MAX + 1];
	struct shown *s;
	struct stat st;
	ssize_t n;
	int fd;

	if ((fd = open(path, O_PATH | O_CLOEXEC)) == -1) {
		/* what is not there need not be hidden */
		if (kind == SHOW_BIND)
			log_warn("commands cannot see %s", path);
		return;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if ((n = readlink(link, real, sizeof(real) - 1)) == -1 ||
	    fstat(fd, &st) == -1)
		fatal("%s", path);
	real[n] = '\0';
	if (kind == SHOW_BIND && (!S_ISDIR(st.st_mode) || reserved(real))) {
		log_warnx("commands cannot see %s: it cannot be bound", real);
		close(fd);
		return;
	}
	s = reallocarray(shown, nshown + 1, sizeof(*shown));
	if (s == NULL)
		fatal("mounts");
	shown = s;
	s = &shown[nshown++];
	s->kind = kind;
	s->fd = fd;
	s->rw = rw;
	s->isdir = S_ISDIR(st.st_mode);
	if ((s->path = strdup(real)) == NULL)
		fatal("mounts");
}

/* Above before below; a cover of the same path hides the bind. */
static int
shown_cmp(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;
	int c = strcmp(x->path, y->path);

	return c != 0 ? c : (int)x->kind - (int)y->kind;
}

static void
find_shown(const struct mounts_conf *c)
{
	size_t i;

	for (i = 0; i < c->nbinds; i++)
		show(SHOW_BIND, c->binds[i].path, c->binds[i].rw);
	for (i = 0; i < c->protect->n; i++)
		show(SHOW_COVER, c->protect->v[i], 0);
	if (nshown > 1)
		qsort(shown, nshown, sizeof(*shown), shown_cmp);
}

/* ---- mounting ---- */

/* One component below dir, made when it is missing on a file system of ours.
 * dir is closed. */
static int
step(int dir, const char *name, int isdir)
{
	int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, fd, f;

	if (isdir)
		flags |= O_DIRECTORY;
	fd = openat(dir, name, flags);
	if (fd == -1 && errno == ENOENT && own_has(dir)) {
		if (isdir) {
			if (mkdirat(dir, name, 0755) == -1)
				fatal("cannot make %s", name);
		} else {
			f = openat(dir, name,
			    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
			if (f == -1)
				fatal("cannot make %s", name);
			close(f);
		}
		fd = openat(dir, name, flags);
	}
	close(dir);
	return fd;
}

/* The place of an absolute path in the new root: O_PATH, or -1 and errno. */
static int
place(const char *path, int isdir)
{
	char name[256];
	size_t n;
	int fd;

	if ((fd = fcntl(newroot, F_DUPFD_CLOEXEC, 3)) == -1)
		return -1;
	while (*path == '/' && fd != -1) {
		path++;
		n = strcspn(path, "/");
		if (n == 0 || n >= sizeof(name)) {
			close(fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		path += n;
		fd = step(fd, name, *path == '/' || isdir);
	}
	return fd;
}

static void
attributes(const char *path, int isdir, uint64_t attr, unsigned flags)
{
	struct mount_attr a = {0};
	int fd = place(path, isdir);

	a.attr_set = attr;
	if (fd == -1 || syscall(SYS_mount_setattr, fd, "",
			    AT_EMPTY_PATH | flags, &a, sizeof(a)) == -1)
		fatal("cannot set mount flags of %s", path);
	close(fd);
}

/* Bind what src is onto path; recursive, with these attributes everywhere. */
static int
bind_at(int src, const char *path, int isdir, uint64_t attr)
{
	char from[64], to[64];
	int dst;

	if ((dst = place(path, isdir)) == -1)
		return -1;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", src);
	snprintf(to, sizeof(to), "/proc/self/fd/%d", dst);
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) == -1) {
		close(dst);
		return -1;
	}
	close(dst);
	attributes(path, isdir, attr, AT_RECURSIVE);
	return 0;
}

/* 0, or -1 with errno when the kernel refuses to mount it. */
static int
mount_try(
    const char *type, const char *path, unsigned long flags, const char *data)
{
	char to[64];
	int dst, rc, save;

	if ((dst = place(path, 1)) == -1)
		fatal("cannot make %s", path);
	snprintf(to, sizeof(to), "/proc/self/fd/%d", dst);
	rc = mount(type, to, type, flags, data);
	save = errno;
	close(dst);
	errno = save;
	return rc;
}

static void
mount_at(
    const char *type, const char *path, unsigned long flags, const char *data)
{
	if (mount_try(type, path, flags, data) == -1)
		fatal("cannot mount %s on %s", type, path);
}

static int
host_open(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd == -1)
		fatal("%s", path);
	return fd;
}

/* /usr and the links or directories beside it. */
static void
show_system(int usr)
{
	static const char *const names[] = {
	    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
	const uint64_t ro =
	    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	char to[256];
	ssize_t n;
	size_t i;
	int fd;

	if (bind_at(usr, "/usr", 1, ro) == -1)
		fatal("cannot show /usr");
	for (i = 0; i < nitems(names); i++) {
		if ((n = readlink(names[i], to, sizeof(to) - 1)) > 0) {
			to[n] = '\0';
			if (symlinkat(to, newroot, names[i] + 1) == -1)
				fatal("%s", names[i]);
			continue;
		}
		fd = open(names[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd == -1)
			continue;
		if (bind_at(fd, names[i], 1, ro) == -1)
			fatal("cannot show %s", names[i]);
		close(fd);
	}
}

/* A device: made where that is allowed (bubblewrap reads the mount table for
 * each of its own mounts, so a short one is worth something), else bound. */
static void
show_device(int dev, const char *path, unsigned major, unsigned minor)
{
	mode_t old = umask(0);
	int fd, rc;

	rc = mknodat(
	    dev, strrchr(path, '/') + 1, S_IFCHR | 0666, makedev(major, minor));
	umask(old);
	/* in a user namespace a node can be made on no file system that
	 * would let it be opened */
	if (rc == 0)
		return;
	fd = host_open(path);
	if (bind_at(fd, path, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC) == -1)
		fatal("cannot show %s", path);
	close(fd);
}

static void
show_devices(void)
{
	static const struct {
		const char *path;
		unsigned major, minor;
	} devices[] = {{"/dev/null", 1, 3}, {"/dev/zero", 1, 5},
	    {"/dev/full", 1, 7}, {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9},
	    {"/dev/tty", 5, 0}};
	size_t i;
	int fd;

	if ((fd = place("/dev", 1)) == -1)
		fatal("/dev");
	for (i = 0; i < nitems(devices); i++)
		show_device(
		    fd, devices[i].path, devices[i].major, devices[i].minor);
	close(fd);
	mount_at("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC,
	    "newinstance,ptmxmode=0666,mode=620");
	if ((fd = place("/dev/shm", 1)) == -1 ||
	    symlinkat("pts/ptmx", newroot, "dev/ptmx") == -1)
		fatal("cannot make /dev");
	close(fd);
}

/* Hide what lies at the path, if anything is shown there. */
static void
cover(const struct shown *s)
{
	int fd;

	if (!s->isdir) {
		/* /dev/null as a file reads as empty */
		fd = host_open("/dev/null");
		if (bind_at(fd, s->path, 0, MOUNT_ATTR_RDONLY) == -1)
			fatal("cannot hide %s", s->path);
		close(fd);
		return;
	}
	mount_at("tmpfs", s->path, MS_NOSUID | MS_NODEV | MS_NOEXEC,
	    "size=64k,mode=0755");
	if ((fd = place(s->path, 1)) == -1)
		fatal("%s", s->path);
	own_add(fd);
	close(fd);
}

/* Does a bind above the path show it? */
static int
exposed(size_t i)
{
	size_t k;

	for (k = 0; k < nshown; k++)
		if (shown[k].kind == SHOW_BIND && k != i &&
		    place_within(shown[i].path, shown[k].path))
			return 1;
	return place_within(shown[i].path, "/usr");
}

static void
show_configured(void)
{
	struct shown *s;
	size_t i;

	for (i = 0; i < nshown; i++) {
		s = &shown[i];
		if (s->kind == SHOW_COVER) {
			if (exposed(i))
				cover(s);
			continue;
		}
		if (i + 1 < nshown && strcmp(s[1].path, s->path) == 0 &&
		    s[1].kind == SHOW_BIND) {
			s[1].rw |= s->rw; /* named twice: once is enough */
			continue;
		}
		if (bind_at(s->fd, s->path, 1,
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			    (s->rw ? 0 : MOUNT_ATTR_RDONLY)) == -1)
			log_warn("commands cannot see %s", s->path);
	}
}

/* What we made is complete: nobody writes there any more. */
static void
seal(void)
{
	size_t i;

	for (i = 0; i < nshown; i++)
		if (shown[i].kind == SHOW_COVER && shown[i].isdir && exposed(i))
			attributes(shown[i].path, 1, MOUNT_ATTR_RDONLY, 0);
	for (i = 0; i < nshown; i++) {
		close(shown[i].fd);
		free(shown[i].path);
	}
	free(shown);
	free(own);
	shown = NULL;
	own = NULL;
	nshown = nown = 0;
	attributes("", 1, MOUNT_ATTR_RDONLY, 0);
}

/* 0, or an errno when there is no /proc: in a container that covers parts of
 * its own the kernel lets nobody have another, nor would bubblewrap. */
static int
build(const struct mounts_conf *c, int usr, int launcher)
{
	int fd, err = 0;

	show_system(usr);
	if ((fd = place("/etc", 1)) == -1)
		fatal("/etc");
	etc_begin(fd, c->uid, c->gid);
	close(fd);
	if (mount_try(
		"proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == -1)
		err = errno;
	show_devices();
	if (bind_at(launcher, MOUNTS_LAUNCHER, 0,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID) == -1)
		fatal("cannot show %s", c->launcher);
	if ((fd = place("/tmp", 1)) == -1)
		fatal("/tmp");
	close(fd);
	if ((fd = place(MOUNTS_EMPTY_DIR, 1)) == -1)
		fatal(MOUNTS_EMPTY_DIR);
	close(fd);
	if ((fd = place(MOUNTS_EMPTY_FILE, 0)) == -1)
		fatal(MOUNTS_EMPTY_FILE);
	close(fd);
	show_configured();
	seal();
	return err;
}

int
mounts_enter(const struct mounts_conf *c)
{
	int usr, launcher, err;

	if (getpid() != 1)
		fatalx("not in a pid namespace of its own");
	if (mount("none", "/", NULL, MS_REC | MS_SLAVE, NULL) == -1)
		fatal("cannot detach from the host's mounts");
	umask(022);
	usr = host_open("/usr");
	launcher = host_open(c->launcher);
	find_shown(c);
	if (mount("tmpfs", BASE, "tmpfs", MS_NOSUID, "size=32m,mode=0755") ==
		-1 ||
	    (newroot = open(BASE, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		fatal("cannot mount a new root");
	own_add(newroot);
	err = build(c, usr, launcher);
	close(usr);
	close(launcher);
	if (fchdir(newroot) == -1 || syscall(SYS_pivot_root, ".", ".") == -1 ||
	    umount2(".", MNT_DETACH) == -1 || chdir("/") == -1)
		fatal("cannot enter the new root");
	close(newroot);
	newroot = -1;
	return err;
}
