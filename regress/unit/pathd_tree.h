/*
 * SPDX-License-Identifier: ISC
 *
 * Temporary trees for the tests of pathd: a directory "w" that is a root and
 * a directory "out" beside it that nothing may touch.
 */
#ifndef PATHD_TREE_H
#define PATHD_TREE_H

#include <sys/stat.h>

#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pathd/pathd.h"
#include "pathd/roots.h"

struct tmp {
	char base[512]; /* canonical */
	char root[520], out[520];
	struct pathd pd;
};

static inline char *
at(const struct tmp *t, const char *rel)
{
	static char buf[8][8192];
	static unsigned i;
	char *p = buf[i++ % 8];

	snprintf(p, sizeof(buf[0]), "%s/%s", t->base, rel);
	return p;
}

static inline void
make_dir(const struct tmp *t, const char *rel)
{
	assert_int_equal(mkdir(at(t, rel), 0755), 0);
}

static inline void
make_file(const struct tmp *t, const char *rel, const char *text)
{
	int fd =
	    open(at(t, rel), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_int_not_equal(fd, -1);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static inline void
make_link(const struct tmp *t, const char *rel, const char *target)
{
	assert_int_equal(symlink(target, at(t, rel)), 0);
}

static inline int
there(const struct tmp *t, const char *rel)
{
	struct stat st;

	return lstat(at(t, rel), &st) == 0;
}

/* The text of a file; NULL when there is none. */
static inline const char *
text_of(const struct tmp *t, const char *rel)
{
	static char buf[256];
	int fd = open(at(t, rel), O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd == -1)
		return NULL;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	assert_true(n >= 0);
	buf[n] = '\0';
	return buf;
}

static inline void
tmp_new(struct tmp *t)
{
	char name[] = "/tmp/abx-unit-XXXXXX", *real;

	memset(t, 0, sizeof(*t));
	assert_non_null(mkdtemp(name));
	assert_int_equal(chmod(name, 0755), 0);
	real = realpath(name, NULL);
	assert_non_null(real);
	assert_true(strlcpy(t->base, real, sizeof(t->base)) < sizeof(t->base));
	free(real);
	snprintf(t->root, sizeof(t->root), "%s/w", t->base);
	snprintf(t->out, sizeof(t->out), "%s/out", t->base);
	make_dir(t, "w");
	make_dir(t, "out");
	make_file(t, "out/secret", "OUTSIDE");
	t->pd.journal = -1;
	t->pd.umask = 027;
	umask(027);
	assert_int_equal(roots_add(&t->pd.roots, 0, t->root), 0);
}

static inline int
tmp_remove_cb(const char *p, const struct stat *st, int what, struct FTW *f)
{
	return remove(p);
}

static inline void
tmp_free(struct tmp *t)
{
	roots_clear(&t->pd.roots);
	umask(022);
	nftw(t->base, tmp_remove_cb, 16, FTW_DEPTH | FTW_PHYS);
}

/* The target that a decision on that path below w would name. */
static inline struct target
target_of(const struct tmp *t, const char *rel)
{
	struct target tg = {0};
	struct stat st;
	char path[4096];

	snprintf(path, sizeof(path), "w/%s", rel);
	tg.rel = strdup(rel);
	assert_non_null(tg.rel);
	if (lstat(at(t, path), &st) == 0) {
		tg.kind = S_ISREG(st.st_mode)	? FK_FILE
			  : S_ISDIR(st.st_mode) ? FK_DIR
			  : S_ISLNK(st.st_mode) ? FK_LINK
						: FK_OTHER;
		tg.dev = st.st_dev;
		tg.ino = st.st_ino;
	}
	return tg;
}

#endif
