/*
 * SPDX-License-Identifier: ISC
 *
 * The journal of temporary names (design: paths, "Use").  One line a name:
 *
 *	v1 ROOT DIR-DEV DIR-INO INODE NAME PATH
 *
 * and of staging directories lines that begin with v2 and have a text of
 * undo.c behind PATH: moves out of them, which are taken back first of all.
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
#include "pathd/undo.h"

#define RANDOM 16
#define TEXT_MAX (2 * ABX_PATH_MAX + 256)
#define LINE_MAX_LEN (2 * ABX_PATH_MAX + 256 + TEXT_MAX)

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

/* Is there room for one more line?  Nobody sweeps while an import takes its
 * time, and names need less than its moves. */
static int
line_room(const struct pathd *pd, int moves)
{
	off_t max = moves ? JOURNAL_MAX : 2 * (off_t)JOURNAL_MAX;

	if (journal_size(pd) <= max)
		return 0;
	errno = ENOSPC;
	return -1;
}

/* 0, or -1 with errno. */
static int
line_add(const struct pathd *pd, const struct walk_root *root, const char *full,
    int dir, const char *name, ino_t ino, const char *text)
{
	char line[LINE_MAX_LEN], hex[2 * ABX_PATH_MAX + 1] = "-";
	const char *slash = strrchr(full, '/');
	struct stat st;
	ssize_t n;
	int len;

	if (fstat(dir, &st) == -1)
		return -1;
	if (slash != NULL)
		hex_encode(full, (size_t)(slash - full), hex);
	len = snprintf(line, sizeof(line),
	    "%s %" PRIu32 " %ju %ju %ju %s %s%s%s\n",
	    text == NULL ? "v1" : "v2", root->id, (uintmax_t)st.st_dev,
	    (uintmax_t)st.st_ino, (uintmax_t)ino, name, hex,
	    text == NULL ? "" : " ", text == NULL ? "" : text);
	if (len < 0 || (size_t)len >= sizeof(line)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (journal_lock(pd, F_RDLCK, 1) == -1 ||
	    line_room(pd, text != NULL) == -1)
		return -1;
	if ((n = write(pd->journal, line, (size_t)len)) == len)
		return 0;
	if (n != -1)
		errno = ENOSPC;
	return -1;
}

int
journal_add(const struct pathd *pd, const struct walk_root *root,
    const char *full, int dir, const char *name, ino_t ino)
{
	int save;

	if (pd->journal == -1 ||
	    line_add(pd, root, full, dir, name, ino, NULL) == 0)
		return 0;
	save = errno;
	journal_done(pd);
	errno = save;
	return -1;
}

int
journal_more(const struct pathd *pd, const struct walk_root *root,
    const char *full, int dir, const char *name, ino_t ino, const char *text)
{
	if (pd->journal == -1)
		return 0;
	return line_add(pd, root, full, dir, name, ino, text);
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

/* A line that was read. */
struct line {
	int moved; /* v2 */
	char name[JOURNAL_NAME_LEN + 1];
	char rel[ABX_PATH_MAX + 1]; /* of the directory, below its root */
	uint64_t dev, dino, ino;
	const char *text; /* behind it */
};

/* The directory of a line beneath that root, if it is the one: fd or -1. */
static int
line_dir(const struct line *l, const struct walk_root *r)
{
	struct stat st;
	int dir;

	if (r->fd == -1 ||
	    (dir = beneath_open(r->fd, l->rel, O_PATH | O_DIRECTORY)) == -1)
		return -1;
	if (fstat(dir, &st) == 0 && st.st_dev == (dev_t)l->dev &&
	    st.st_ino == (ino_t)l->dino)
		return dir;
	close(dir);
	return -1;
}

/* Remove the name if it is still what was written down. */
static size_t
sweep_name(const struct pathd *pd, const struct line *l, int dir)
{
	struct stat st;

	if (fstatat(dir, l->name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    st.st_dev != (dev_t)l->dev ||
	    (l->ino != 0 && st.st_ino != (ino_t)l->ino))
		return 0;
	if (l->ino == 0)
		return sweep_early(dir, l->name, &st);
	if (S_ISREG(st.st_mode))
		return unlinkat(dir, l->name, 0) == 0;
	return S_ISDIR(st.st_mode) && tree_remove(pd, dir, l->name) == C_OK;
}

/* Take a move back if the staging directory is still what was written down. */
static void
sweep_move(const struct line *l, int dir)
{
	struct stat st;
	int stage;

	stage = openat(dir, l->name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (stage == -1)
		return;
	if (fstat(stage, &st) == 0 && st.st_dev == (dev_t)l->dev &&
	    st.st_ino == (ino_t)l->ino)
		undo_again(dir, stage, l->text);
	close(stage);
}

static int
line_parse(struct line *l, const char *p)
{
	char hex[2 * ABX_PATH_MAX + 1];
	uint64_t root;
	size_t len;
	int end = 0;

	l->moved = strncmp(p, "v2 ", 3) == 0;
	if (!l->moved && strncmp(p, "v1 ", 3) != 0)
		return -1;
	p += 3;
	if (uint_word(&p, &root) == -1 || uint_word(&p, &l->dev) == -1 ||
	    uint_word(&p, &l->dino) == -1 || uint_word(&p, &l->ino) == -1 ||
	    sscanf(p, "%37s %8192s%n", l->name, hex, &end) != 2 ||
	    !journal_is_name(l->name))
		return -1;
	l->text = p + end;
	l->rel[0] = '\0';
	if (strcmp(hex, "-") == 0)
		return 0;
	len = strlen(hex) / 2;
	if (strlen(hex) != 2 * len ||
	    hex_decode(hex, (uint8_t *)l->rel, len) == -1)
		return -1;
	l->rel[len] = '\0';
	return strlen(l->rel) == len ? 0 : -1;
}

/* Root numbers may have changed since, so each root is tried; device and
 * inode say whether it was the one. */
static size_t
sweep_line(const struct pathd *pd, const char *p, int moves)
{
	struct line l;
	size_t i, n = 0;
	int dir;

	pathd_beat(pd);
	if (line_parse(&l, p) == -1 || l.moved != moves)
		return 0;
	for (i = 0; i < pd->roots.n && n == 0; i++) {
		if ((dir = line_dir(&l, &pd->roots.v[i])) == -1)
			continue;
		if (moves)
			sweep_move(&l, dir);
		else
			n = sweep_name(pd, &l, dir);
		close(dir);
	}
	return n;
}

/* Whole lines of the journal, bounded: what does not fit is no line of ours
 * and is passed over. */
static size_t
sweep_all(const struct pathd *pd, int moves)
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
			gone += sweep_line(pd, p, moves);
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
	(void)sweep_all(pd, 1);
	gone = sweep_all(pd, 0);
	/* Lines that stay only say again what is gone. */
	while (ftruncate(pd->journal, 0) == -1 && errno == EINTR)
		continue;
	(void)journal_lock(pd, F_UNLCK, 0);
	return gone;
}

off_t
journal_size(const struct pathd *pd)
{
	struct stat st;

	return pd->journal != -1 && fstat(pd->journal, &st) == 0 ? st.st_size
								 : 0;
}
