/*
 * SPDX-License-Identifier: ISC
 *
 * The attackers: they swap what a path names while it is used.  Each move is
 * one system call or a few, and leaves a state in which the next one works,
 * whatever the service did to the names in between.
 */
#include "regress/race/race.h"

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

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PREFIX ".abx-" /* of pathd's temporary names */

uint64_t attack_planted;

static uid_t uid;
static gid_t gid;

/* ---- names, never through a link: the attackers must not do themselves what
 * the service must not do ---- */

static int
parent_of(int fd, const char *path, const char **name)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
	const char *slash = strrchr(path, '/');
	char dir[256] = ".";

	*name = slash == NULL ? path : slash + 1;
	if (slash != NULL)
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	return (int)syscall(SYS_openat2, fd, dir, &how, sizeof(how));
}

static void
swap(int fd, const char *a, const char *b)
{
	const char *na, *nb;
	int da = parent_of(fd, a, &na), db = parent_of(fd, b, &nb);

	if (da != -1 && db != -1)
		(void)renameat2(da, na, db, nb, RENAME_EXCHANGE);
	if (da != -1)
		close(da);
	if (db != -1)
		close(db);
}

static void
away(int fd, const char *path)
{
	const char *name;
	int d = parent_of(fd, path, &name);

	if (d == -1)
		return;
	if (unlinkat(d, name, 0) == -1 && errno == EISDIR)
		(void)unlinkat(d, name, AT_REMOVEDIR);
	close(d);
}

/* ---- making again what the clients took away ---- */

static void
dir_again(int fd, const char *path)
{
	const char *name;
	int d = parent_of(fd, path, &name);

	if (d == -1)
		return;
	if (mkdirat(d, name, 0755) == 0 &&
	    fchownat(d, name, uid, gid, AT_SYMLINK_NOFOLLOW) == -1)
		(void)unlinkat(d, name, AT_REMOVEDIR);
	close(d);
}

static void
file_again(int fd, const char *path)
{
	const char *name;
	int d = parent_of(fd, path, &name), f;

	if (d == -1)
		return;
	f = openat(d, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (f != -1) {
		if (fchown(f, uid, gid) == -1 || write(f, "inside\n", 7) != 7)
			(void)unlinkat(d, name, 0);
		close(f);
	}
	close(d);
}

/* A link out of w: by its name, by way of .., and into the denied part. */
static void
link_again(int fd, const char *path, const char *what)
{
	static unsigned turn;
	char to[512], w[256], self[64];
	const char *name;
	ssize_t n;
	int d;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if ((n = readlink(self, w, sizeof(w) - 1)) == -1 ||
	    (d = parent_of(fd, path, &name)) == -1)
		return;
	w[n] = '\0';
	switch (turn++ % 3) {
	case 0:
		*strrchr(w, '/') = '\0';
		snprintf(to, sizeof(to), "%s/r/%s", w, what);
		break;
	case 1: /* as deep as the link lies */
		snprintf(to, sizeof(to), "%s../r/%s",
		    strchr(path, '/') == NULL ? "" : "../", what);
		break;
	default:
		snprintf(to, sizeof(to), "%s/v/%s", w, what);
		break;
	}
	if (symlinkat(to, d, name) == -1 && errno != EEXIST)
		errno = 0; /* somebody was faster */
	close(d);
}

/* Two names, of which one is a directory and one is not: the directory goes
 * back to the first, and the other is free. */
static void
pair_again(int fd, const char *name, const char *other)
{
	const char *na, *nb;
	int da = parent_of(fd, name, &na), db = parent_of(fd, other, &nb);
	struct stat a = {0}, b = {0};

	if (da != -1 && db != -1) {
		(void)fstatat(da, na, &a, AT_SYMLINK_NOFOLLOW);
		(void)fstatat(db, nb, &b, AT_SYMLINK_NOFOLLOW);
		if (S_ISDIR(b.st_mode) && !S_ISDIR(a.st_mode))
			(void)renameat2(db, nb, da, na,
			    a.st_mode == 0 ? RENAME_NOREPLACE
					   : RENAME_EXCHANGE);
	}
	if (da != -1)
		close(da);
	if (db != -1)
		close(db);
	away(fd, other);
}

static unsigned
tick(void)
{
	static unsigned n;

	return n++;
}

/* ---- the attacks ---- */

static void
prepare(const struct stage *s)
{
	uid = s->uid;
	gid = s->gid;
}

/* The parent of the file is now a directory, now a link. */
static void
parent_prepare(const struct stage *s)
{
	prepare(s);
	stage_mkdir(s, "w/p");
	stage_put(s, "w/p/f", "inside\n");
}

static void
parent_move(int fd)
{
	if (tick() % 64 == 0) {
		pair_again(fd, "p", "p.l");
		dir_again(fd, "p");
		file_again(fd, "p/f");
		link_again(fd, "p.l", "p"); /* another one than before */
	}
	swap(fd, "p", "p.l");
}

/* A directory in the middle of the path. */
static void
middle_prepare(const struct stage *s)
{
	prepare(s);
	stage_mkdir(s, "w/m");
	stage_mkdir(s, "w/m/x");
	stage_mkdir(s, "w/m/x/y");
	stage_mkdir(s, "w/m/x/y/z");
	stage_put(s, "w/m/x/y/z/f", "inside\n");
}

static void
middle_move(int fd)
{
	if (tick() % 64 == 0) {
		pair_again(fd, "m/x", "m/l");
		dir_again(fd, "m/x");
		dir_again(fd, "m/x/y");
		dir_again(fd, "m/x/y/z");
		file_again(fd, "m/x/y/z/f");
		link_again(fd, "m/l", "m/x");
	}
	swap(fd, "m/x", "m/l");
}

/* The file itself. */
static void
leaf_prepare(const struct stage *s)
{
	prepare(s);
	stage_mkdir(s, "w/e");
	stage_put(s, "w/e/f", "inside\n");
}

static void
leaf_move(int fd)
{
	if (tick() % 64 == 0) {
		dir_again(fd, "e");
		away(fd, "e/f");
		away(fd, "e/l");
		file_again(fd, "e/f");
		link_again(fd, "e/l", "e/f");
	}
	swap(fd, "e/f", "e/l");
}

/* Directories of a tree that is listed and deleted meanwhile. */
static void
tree_fill(int fd)
{
	static const char *const dirs[] = {"t", "t/a", "t/b", "t/b/c", "t/d"};
	static const char *const files[] = {
	    "t/a/f", "t/b/f", "t/b/c/f", "t/d/f", "t/f"};
	size_t i;

	for (i = 0; i < COUNT(dirs); i++)
		dir_again(fd, dirs[i]);
	for (i = 0; i < COUNT(files); i++)
		file_again(fd, files[i]);
}

static void
tree_prepare(const struct stage *s)
{
	int fd = open(stage_path(s, "w"), O_PATH | O_DIRECTORY | O_CLOEXEC);

	prepare(s);
	tree_fill(fd);
	close(fd);
}

static void
tree_move(int fd)
{
	if (tick() % 32 == 0) {
		pair_again(fd, "t", "t.l");
		away(fd, "t/b");
		tree_fill(fd);
		link_again(fd, "t.l", tick() % 2 ? "t" : "t/b");
	}
	swap(fd, "t/b", "t.l");
	swap(fd, "t", "t.l");
}

/* Names that pathd gives to what is not whole yet: replaced by links. */
static void
names_prepare(const struct stage *s)
{
	prepare(s);
	stage_mkdir(s, "w/n");
	stage_put(s, "w/n/f", "inside\n");
}

static void
plant(int dir, const char *name)
{
	static unsigned n;
	char link[64];

	snprintf(link, sizeof(link), "l%u", n++ % 8);
	if (symlinkat("../../r/n/f", dir, link) == -1 && errno != EEXIST)
		return;
	if (renameat2(dir, link, dir, name, RENAME_EXCHANGE) == 0)
		attack_planted++;
	if (n % 3 == 0)
		(void)unlinkat(dir, link, 0); /* the real one */
}

static void
names_move(int fd)
{
	const struct dirent *e;
	int dir =
	    openat(fd, "n", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d;

	if (tick() % 64 == 0)
		file_again(fd, "n/f");
	if (dir == -1 || (d = fdopendir(dir)) == NULL) {
		if (dir != -1)
			close(dir);
		dir_again(fd, "n");
		return;
	}
	while ((e = readdir(d)) != NULL)
		if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0)
			plant(dir, e->d_name);
	closedir(d);
}

const struct attack attacks[] = {
    {"parent", parent_prepare, parent_move, "p", "p/f"},
    {"middle", middle_prepare, middle_move, "m/x/y/z", "m/x/y/z/f"},
    {"leaf", leaf_prepare, leaf_move, "e", "e/f"},
    {"tree", tree_prepare, tree_move, "t", "t/b/f"},
    {"names", names_prepare, names_move, "n", "n/f"},
};
const size_t nattacks = COUNT(attacks);
