/*
 * SPDX-License-Identifier: ISC
 *
 * Makes the /etc of the sandboxes at start-up, while execd still sees the
 * host's.  Copies only what is readable by everybody, so that it cannot hand
 * on what root alone may see.
 */
#include "execd/etc.h"

#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/log.h"

#ifndef OPEN_TREE_CLONE
#include <linux/mount.h>
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif

#define COPY_MAX (16 * 1024 * 1024) /* bytes of one file */
#define COPY_DEPTH 4
#define COPY_ENTRIES 8192

static const char *const copied[] = {"services", "protocols", "ld.so.cache",
    "ld.so.conf", "ld.so.conf.d", "ssl", "alternatives", "localtime",
    "timezone"};

/* What programs of /usr keep here and do not start without: of every version
 * ("java-17-openjdk"). */
static const char *const copied_like[] = {"java"};

static const char nsswitch[] = "passwd: files\ngroup: files\n"
			       "hosts: files\nservices: files\n"
			       "protocols: files\n";
static const char hosts[] = "127.0.0.1 localhost abx\n::1 localhost\n";

static void
stub(int dir, const char *name, const char *text)
{
	int fd =
	    openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	size_t n = strlen(text);

	if (fd == -1 || write(fd, text, n) != (ssize_t)n)
		fatal("cannot make etc/%s", name);
	close(fd);
}

static void
copy_file(int src, const char *name, int dst)
{
	int in, out = -1;
	struct stat st;
	off_t left;
	ssize_t n;

	in = openat(src, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (in == -1)
		return;
	if (fstat(in, &st) == -1 || !S_ISREG(st.st_mode) ||
	    (st.st_mode & S_IROTH) == 0 || st.st_size > COPY_MAX)
		goto done;
	out = openat(dst, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (out == -1) {
		log_warn("etc/%s", name);
		goto done;
	}
	for (left = st.st_size; left > 0; left -= n)
		if ((n = sendfile(out, in, NULL, (size_t)left)) <= 0)
			break;
	if (left != 0)
		log_warn("etc/%s was not copied whole", name);
done:
	if (out != -1)
		close(out);
	close(in);
}

static void
copy_link(int src, const char *name, int dst)
{
	char to[ABX_PATH_MAX];
	ssize_t n = readlinkat(src, name, to, sizeof(to) - 1);

	if (n <= 0)
		return;
	to[n] = '\0';
	if (symlinkat(to, dst, name) == -1)
		log_warn("etc/%s", name);
}

/* One entry of the directory src into dst; *left bounds their number.  type:
 * as of readdir(3), since most are links, and many. */
static void
copy_entry(int src, const char *name, unsigned char type, int dst, int depth,
    int *left)
{
	struct dirent *de;
	struct stat st;
	int from, to;
	DIR *d;

	if (--*left < 0)
		return;
	if (type == DT_LNK) {
		copy_link(src, name, dst);
		return;
	}
	if (fstatat(src, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return;
	if (S_ISLNK(st.st_mode))
		copy_link(src, name, dst);
	else if (S_ISREG(st.st_mode))
		copy_file(src, name, dst);
	if (!S_ISDIR(st.st_mode) || depth == 0 || (st.st_mode & S_IROTH) == 0 ||
	    mkdirat(dst, name, 0755) == -1)
		return;
	from =
	    openat(src, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	to = openat(dst, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from == -1 || to == -1 || (d = fdopendir(from)) == NULL)
		fatal("cannot copy etc/%s", name);
	while ((de = readdir(d)) != NULL)
		if (strcmp(de->d_name, ".") != 0 &&
		    strcmp(de->d_name, "..") != 0)
			copy_entry(
			    from, de->d_name, de->d_type, to, depth - 1, left);
	closedir(d);
	close(to);
}

static void
copy_like(int etc, int fd, int *left)
{
	struct dirent *de;
	int dup = openat(etc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t i;
	DIR *d;

	if (dup == -1 || (d = fdopendir(dup)) == NULL)
		fatal("/etc");
	while ((de = readdir(d)) != NULL)
		for (i = 0; i < nitems(copied_like); i++)
			if (strncmp(de->d_name, copied_like[i],
				strlen(copied_like[i])) == 0)
				copy_entry(etc, de->d_name, de->d_type, fd,
				    COPY_DEPTH, left);
	closedir(d);
}

/* etc is the host's. */
static void
fill(int etc, int fd, uid_t uid, gid_t gid)
{
	int left = COPY_ENTRIES;
	char text[256];
	size_t i;

	snprintf(text, sizeof(text),
	    "root:x:0:0:root:/:/usr/sbin/nologin\n"
	    "abx:x:%u:%u:abx:/:/bin/sh\n"
	    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	    uid, gid);
	stub(fd, "passwd", text);
	snprintf(text, sizeof(text), "root:x:0:\nabx:x:%u:\nnogroup:x:65534:\n",
	    gid);
	stub(fd, "group", text);
	stub(fd, "hosts", hosts);
	stub(fd, "nsswitch.conf", nsswitch);
	for (i = 0; i < nitems(copied); i++)
		copy_entry(etc, copied[i], DT_UNKNOWN, fd, COPY_DEPTH, &left);
	copy_like(etc, fd, &left);
	if (left < 0)
		log_warnx("/etc/ssl or /etc/alternatives is too large to be "
			  "copied whole");
}

/* ---- beside the rest of a start ---- */

static int pending = -1; /* tells when it is done */

/* A mount of its own of what is there, in no namespace: a descriptor. */
static int
mount_of(int dir, const char *path, unsigned flags)
{
	int fd = (int)syscall(SYS_open_tree, dir, path,
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | flags);

	if (fd == -1)
		fatal("cannot clone the mount of %s",
		    *path == '\0' ? "the new /etc" : path);
	return fd;
}

void
etc_begin(int dir, uid_t uid, gid_t gid)
{
	int from = mount_of(AT_FDCWD, "/etc", AT_RECURSIVE);
	int to = mount_of(dir, "", 0), done[2];
	pid_t pid;

	if (pipe2(done, O_CLOEXEC) == -1 || (pid = fork()) == -1)
		fatal("cannot begin to fill etc");
	if (pid == 0) {
		fill(from, to, uid, gid);
		_exit(write(done[1], "", 1) == 1 ? 0 : 1);
	}
	close(from);
	close(to);
	close(done[1]);
	pending = done[0];
}

void
etc_wait(void)
{
	ssize_t n;
	char c;

	if (pending == -1)
		return;
	do
		n = read(pending, &c, 1);
	while (n == -1 && errno == EINTR);
	if (n != 1)
		fatalx("the /etc of the sandboxes could not be made");
	close(pending);
	pending = -1;
}
