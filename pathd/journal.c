/*
 * SPDX-License-Identifier: ISC
 *
 * The journal of temporary names (design: paths, "Use").  One line a name:
 *
 *	v1 ROOT DIR-DEV DIR-INO INODE NAME PATH
 *
 * PATH is the hex of the path of the directory below the root, "-" when it
 * is the root itself; with it the directory is found again, with DIR-DEV and
 * DIR-INO it is known to be the same.  Nothing is ever removed because of its
 * name alone.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/hash.h"
#include "common/size.h"
#include "pathd/beneath.h"
#include "pathd/journal.h"
#include "pathd/tree.h"

#define RANDOM 16
#define LINE_MAX_LEN (2 * ABX_PATH_MAX + 256)

void
journal_name(char *out)
{
	uint8_t r[RANDOM];

	random_bytes(r, sizeof(r));
	memcpy(out, OURS_PREFIX, sizeof(OURS_PREFIX) - 1);
	hex_encode(r, sizeof(r), out + sizeof(OURS_PREFIX) - 1);
}

int
journal_is_name(const char *name)
{
	return beneath_is_ours(name, strlen(name));
}

/* Commits share the lock, a sweep has it alone.  Record locks belong to the
 * process, so workers that share the descriptor still exclude main. */
static int
journal_lock(const struct pathd *pd, short type, int wait)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET};
	int rc;

	do
		rc = fcntl(pd->journal, wait ? F_SETLKW : F_SETLK, &l);
	while (rc == -1 && errno == EINTR);
	return rc;
}

int
journal_add(const struct pathd *pd, const struct walk_root *root,
    const char *full, int dir, const char *name, ino_t ino)
{
	char line[LINE_MAX_LEN], hex[2 * ABX_PATH_MAX + 1] = "-";
	const char *slash = strrchr(full, '/');
	struct stat st;
	ssize_t n;
	int len;

	if (pd->journal == -1)
		return 0;
	if (fstat(dir, &st) == -1)
		return -1;
	if (slash != NULL)
		hex_encode(full, (size_t)(slash - full), hex);
	len = snprintf(line, sizeof(line), "v1 %" PRIu32 " %ju %ju %ju %s %s\n",
	    root->id, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
	    (uintmax_t)ino, name, hex);
	if (len < 0 || (size_t)len >= sizeof(line)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (journal_lock(pd, F_RDLCK, 1) == -1)
		return -1;
	if ((n = write(pd->journal, line, (size_t)len)) == len)
		return 0;
	if (n != -1)
		errno = ENOSPC;
	journal_done(pd);
	return -1;
}

void
journal_done(const struct pathd *pd)
{
	if (pd->journal != -1)
		(void)journal_lock(pd, F_UNLCK, 0);
}

/* Remove a name whose inode was not known yet: what has just been made is
 * empty. */
static size_t
sweep_early(int dir, const char *name, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return unlinkat(dir, name, AT_REMOVEDIR) == 0;
	return S_ISREG(st->st_mode) && st->st_size == 0 &&
	       unlinkat(dir, name, 0) == 0;
}

/* Remove one name if it is still what was written down. */
static size_t
sweep_name(const struct walk_root *r, const char *rel, dev_t dev, ino_t dino,
    const char *name, ino_t ino)
{
	struct stat st;
	size_t gone = 0;
	int dir;

	if (r->fd == -1 ||
	    (dir = beneath_open(r->fd, rel, O_PATH | O_DIRECTORY)) == -1)
		return 0;
	if (fstat(dir, &st) == 0 && st.st_dev == dev && st.st_ino == dino &&
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == dev && (ino == 0 || st.st_ino == ino)) {
		if (ino == 0)
			gone = sweep_early(dir, name, &st);
		else if (S_ISREG(st.st_mode))
			gone = unlinkat(dir, name, 0) == 0;
		else if (S_ISDIR(st.st_mode))
			gone = tree_remove(dir, name) == C_OK;
	}
	close(dir);
	return gone;
}

/* Root numbers may have changed since, so each root is tried; device and
 * inode say whether it was the one. */
static size_t
sweep_line(const struct pathd *pd, const char *line)
{
	char name[JOURNAL_NAME_LEN + 1], hex[2 * ABX_PATH_MAX + 1];
	char rel[ABX_PATH_MAX + 1] = "";
	uint64_t root, dev, dino, ino;
	size_t i, n = 0, len;

	if (strncmp(line, "v1 ", 3) != 0)
		return 0;
	line += 3;
	if (uint_word(&line, &root) == -1 || uint_word(&line, &dev) == -1 ||
	    uint_word(&line, &dino) == -1 || uint_word(&line, &ino) == -1 ||
	    sscanf(line, "%37s %8192s", name, hex) != 2 ||
	    !journal_is_name(name))
		return 0;
	len = strlen(hex) / 2;
	if (strcmp(hex, "-") != 0) {
		if (hex_decode(hex, (uint8_t *)rel, len) == -1 ||
		    strlen(hex) != 2 * len)
			return 0;
		rel[len] = '\0';
	}
	if (strlen(rel) != (strcmp(hex, "-") == 0 ? 0 : len))
		return 0;
	for (i = 0; i < pd->roots.n && n == 0; i++)
		n = sweep_name(&pd->roots.v[i], rel, (dev_t)dev, (ino_t)dino,
		    name, (ino_t)ino);
	return n;
}

/* Whole lines of the journal, bounded: what does not fit is no line of ours
 * and is passed over. */
static size_t
sweep_all(const struct pathd *pd)
{
	char buf[2 * LINE_MAX_LEN], *nl, *p;
	size_t have = 0, gone = 0;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(
		    pd->journal, buf + have, sizeof(buf) - have - 1, at)) > 0) {
		at += n;
		have += (size_t)n;
		buf[have] = '\0';
		p = buf;
		while (
		    (nl = memchr(p, '\n', have - (size_t)(p - buf))) != NULL) {
			*nl = '\0';
			gone += sweep_line(pd, p);
			p = nl + 1;
		}
		have -= (size_t)(p - buf);
		memmove(buf, p, have);
		if (have == sizeof(buf) - 1)
			have = 0;
	}
	return gone;
}

int
journal_busy(const struct pathd *pd)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return pd->journal != -1 && fcntl(pd->journal, F_GETLK, &l) == 0 &&
	       l.l_type != F_UNLCK;
}

size_t
journal_sweep(const struct pathd *pd)
{
	size_t gone;

	if (pd->journal == -1 || journal_lock(pd, F_WRLCK, 0) == -1)
		return 0;
	gone = sweep_all(pd);
	/* Lines that stay only say again what is gone. */
	while (ftruncate(pd->journal, 0) == -1 && errno == EINTR)
		continue;
	(void)journal_lock(pd, F_UNLCK, 0);
	return gone;
}

int
journal_large(const struct pathd *pd)
{
	struct stat st;

	return pd->journal != -1 && fstat(pd->journal, &st) == 0 &&
	       st.st_size > JOURNAL_LARGE;
}
