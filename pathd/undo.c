/*
 * SPDX-License-Identifier: ISC
 *
 * Takes moves back.  A move is written down before it is made, with the inode
 * and time of what moves, so that taking back touches nothing that somebody
 * else has put there meanwhile.
 */
#include "pathd/undo.h"

#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/size.h"
#include "pathd/beneath.h"
#include "pathd/stage.h"

#define DIR_NAME "old"
#define KEPT_NAME "done" /* is what DIR_NAME is called then */
#define LOG_NAME "log"
#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* One move as it is written down; the path follows. */
struct note {
	uint64_t number, dev, ino;
	int64_t mtime; /* numbers of inodes are used again */
	uint32_t mtime_ns, len;
	uint64_t old; /* inode of what it replaced, 0 for none */
};

/* A file that has no name, or only for a moment where the file system knows no
 * other way: commands of the same user may lie in wait for it. */
static int
open_log(int stage)
{
	int fd = openat(stage, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd != -1 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	fd = openat(stage, LOG_NAME,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd != -1 && unlinkat(stage, LOG_NAME, 0) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

enum code
undo_open(struct undo *u, int dir, const struct stage *stage)
{
	memset(u, 0, sizeof(*u));
	u->stage = stage;
	u->dir = u->from = u->log = -1;
	if (mkdirat(dir, DIR_NAME, 0700) == -1 ||
	    (u->dir = openat(dir, DIR_NAME, OPEN_DIR)) == -1 ||
	    (u->from = openat(dir, UNDO_FROM, OPEN_DIR)) == -1 ||
	    (u->log = open_log(dir)) == -1)
		return beneath_act_code(errno);
	return C_OK;
}

enum code
undo_keep(const struct undo *u, int dir)
{
	return renameat(dir, DIR_NAME, dir, KEPT_NAME) == 0
		   ? C_OK
		   : beneath_act_code(errno);
}

void
undo_close(struct undo *u)
{
	if (u->dir != -1)
		close(u->dir);
	if (u->from != -1)
		close(u->from);
	if (u->log != -1)
		close(u->log);
	u->dir = u->from = u->log = -1;
}

/* ---- forward ---- */

static int
flush(struct undo *u)
{
	size_t done = 0;
	ssize_t k;

	while (done < u->n) {
		k = pwrite(u->log, u->buf + done, u->n - done,
		    (off_t)(u->logged + done));
		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1)
			return -1;
		done += (size_t)k;
	}
	u->logged += u->n;
	u->n = 0;
	return 0;
}

/* In the journal: NUMBER INODE MTIME NANOSECONDS OLD-INODE PATH, PATH in hex;
 * the device is that of the directory. */
static int
note_tell(const struct undo *u, const struct note *n, const char *path)
{
	char text[2 * ABX_PATH_MAX + 256], hex[2 * ABX_PATH_MAX + 1];
	const struct stage *s = u->stage;

	if (s == NULL)
		return 0;
	hex_encode(path, n->len, hex);
	(void)snprintf(text, sizeof(text),
	    "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %s",
	    n->number, n->ino, (uint64_t)n->mtime, n->mtime_ns, n->old, hex);
	return journal_more(
	    s->pd, s->root, s->full, s->up.fd, s->name, s->ino, text);
}

static int
note_add(struct undo *u, const char *path, const struct stat *st,
    const struct stat *old)
{
	struct note note = {.number = u->next,
	    .dev = st->st_dev,
	    .ino = st->st_ino,
	    .mtime = st->st_mtim.tv_sec,
	    .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
	    .len = (uint32_t)strlen(path),
	    .old = old != NULL ? old->st_ino : 0};

	if (u->n + sizeof(note) + note.len > sizeof(u->buf) && flush(u) == -1)
		return -1;
	if (note_tell(u, &note, path) == -1)
		return -1;
	memcpy(u->buf + u->n, &note, sizeof(note));
	memcpy(u->buf + u->n + sizeof(note), path, note.len);
	u->n += sizeof(note) + note.len;
	u->next++;
	return 0;
}

/* Exchange, so that the name is never missing, and put the old one away.  What
 * came there since it was looked at goes back to its place. */
static enum code
replace_name(struct undo *u, int from, const char *name, int to,
    const struct stat *old, const char *number)
{
	struct stat now;

	if (renameat2(from, name, to, name, RENAME_EXCHANGE) == -1) {
		if (errno != EINVAL)
			return beneath_act_code(errno);
		/* a file system without it: keep the old one by another name */
		if (linkat(to, name, u->dir, number, 0) == -1 &&
		    errno != EPERM && errno != EOPNOTSUPP)
			return beneath_act_code(errno);
		return renameat(from, name, to, name) == 0
			   ? C_OK
			   : beneath_act_code(errno);
	}
	if (fstatat(from, name, &now, AT_SYMLINK_NOFOLLOW) == -1 ||
	    now.st_dev != old->st_dev || now.st_ino != old->st_ino) {
		(void)renameat2(from, name, to, name, RENAME_EXCHANGE);
		return C_POL_PATH_CHANGED;
	}
	return renameat(from, name, u->dir, number) == 0
		   ? C_OK
		   : beneath_act_code(errno);
}

enum code
undo_move(struct undo *u, int from, const char *name, int to, const char *path,
    const struct stat *st, const struct stat *old)
{
	char number[32];

	snprintf(number, sizeof(number), "%" PRIu64, u->next);
	if (strlen(path) > ABX_PATH_MAX)
		return C_FS_NAME_TOO_LONG;
	if (note_add(u, path, st, old) == -1)
		return beneath_act_code(errno);
	if (old != NULL)
		return replace_name(u, from, name, to, old, number);
	if (renameat2(from, name, to, name, RENAME_NOREPLACE) == 0)
		return C_OK;
	return errno == EEXIST ? C_POL_PATH_CHANGED : beneath_act_code(errno);
}

/* ---- back ---- */

static int
same_inode(int dir, const char *name, const struct note *n)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == n->dev && st.st_ino == n->ino;
}

static int
is(int dir, const char *name, const struct note *n)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_dev == n->dev && st.st_ino == n->ino &&
	       st.st_mtim.tv_sec == n->mtime &&
	       st.st_mtim.tv_nsec == (long)n->mtime_ns;
}

/* What the entry had replaced, to its place again: it was put away, or a crash
 * came between the exchange and that, or the one that put it away failed. */
static int
old_back(int put, int from, const struct note *n, const char *path, int dir,
    const char *name)
{
	struct note old = *n;
	char number[32];
	const char *was;
	int up, rc;

	old.ino = n->old;
	snprintf(number, sizeof(number), "%" PRIu64, n->number);
	if (same_inode(put, number, &old))
		return renameat(put, number, dir, name);
	if ((up = beneath_parent(from, path, &was)) == -1)
		return -1;
	errno = ENOENT;
	rc = same_inode(up, was, &old) ? renameat(up, was, dir, name) : -1;
	close(up);
	return rc;
}

/* put: what was replaced; from: what was not moved yet. */
static void
take_back(int put, int from, int top, const struct note *n, const char *path)
{
	const char *name;
	char away[32];
	int dir, rc = 0;

	if ((dir = beneath_parent(top, path, &name)) == -1)
		return; /* gone, or not ours any more */
	snprintf(away, sizeof(away), "new%" PRIu64, n->number);
	if (!is(dir, name, n))
		; /* it was not moved, or somebody has changed it since */
	else if (n->old != 0)
		rc = old_back(put, from, n, path, dir, name);
	else {
		rc = renameat2(dir, name, put, away, RENAME_NOREPLACE);
		/* another one, that came just now, goes back */
		if (rc == 0 && !is(put, away, n))
			rc = renameat2(put, away, dir, name, RENAME_NOREPLACE);
	}
	if (rc == -1)
		log_warn("an import could not be taken back as a whole");
	close(dir);
}

/* What was written down, from offset at on: 0, or -1 at the end. */
static int
note_read(const struct undo *u, uint64_t at, void *out, size_t len)
{
	ssize_t k;

	if (at >= u->logged) {
		at -= u->logged;
		if (at > u->n || u->n - at < len)
			return -1;
		memcpy(out, u->buf + at, len);
		return 0;
	}
	do
		k = pread(u->log, out, len, (off_t)at);
	while (k == -1 && errno == EINTR);
	return k == (ssize_t)len ? 0 : -1;
}

void
undo_back(struct undo *u, int top)
{
	char path[ABX_PATH_MAX + 1];
	struct note n;
	uint64_t at = 0;

	if (u->log == -1)
		return;
	while (note_read(u, at, &n, sizeof(n)) == 0 && n.len <= ABX_PATH_MAX &&
	       note_read(u, at + sizeof(n), path, n.len) == 0) {
		path[n.len] = '\0';
		if (u->stage != NULL)
			pathd_beat(u->stage->pd);
		take_back(u->dir, u->from, top, &n, path);
		at += sizeof(n) + n.len;
	}
}

static int
text_parse(const char *p, struct note *n, char path[ABX_PATH_MAX + 1])
{
	uint64_t mtime, ns;
	size_t len;

	p += strspn(p, " ");
	if (uint_word(&p, &n->number) == -1 || uint_word(&p, &n->ino) == -1 ||
	    uint_word(&p, &mtime) == -1 || uint_word(&p, &ns) == -1 ||
	    uint_word(&p, &n->old) == -1)
		return -1;
	len = strlen(p) / 2;
	if (len == 0 || len > ABX_PATH_MAX || strlen(p) != 2 * len ||
	    hex_decode(p, (uint8_t *)path, len) == -1)
		return -1;
	path[len] = '\0';
	n->mtime = (int64_t)mtime;
	n->mtime_ns = (uint32_t)ns;
	return strlen(path) == len ? 0 : -1;
}

void
undo_again(int top, int stage, const char *text)
{
	char path[ABX_PATH_MAX + 1];
	struct note n = {0};
	struct stat st;
	int put, from;

	if (text_parse(text, &n, path) == -1 || fstat(top, &st) == -1)
		return;
	n.dev = st.st_dev;
	/* without it there is nothing to take back, or all is to be kept */
	if ((put = openat(stage, DIR_NAME, OPEN_DIR)) == -1)
		return;
	if ((from = openat(stage, UNDO_FROM, OPEN_DIR)) != -1) {
		take_back(put, from, top, &n, path);
		close(from);
	}
	close(put);
}
