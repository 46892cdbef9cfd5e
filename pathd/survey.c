/*
 * SPDX-License-Identifier: ISC
 *
 * A walk over a tree that remembers (common/recall.h) which directories held
 * nothing but plain entries, and which directories lay in them.  Such a one is
 * found and asked for its times by itself each time, and read only when they
 * are others (common/stamp.h).  It is known under its path alone: a directory
 * above may have been moved, which no time of its own tells.  Changes nothing.
 *
 * A directory is read to its end before those in it are entered, each from the
 * descriptor of the one above; it is entered only when it is still the one that
 * was looked at.
 */
#include "pathd/survey.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/stamp.h"
#include "pathd/beneath.h"

uint64_t survey_settle = STAMP_SETTLE_NS;
unsigned survey_nread;

struct level {
	int fd;	     /* of the directory; the first is the caller's */
	size_t plen; /* bytes of path that spell it */
	/* The directories in it that are to be entered, NUL-terminated; owned.
	 * In front of them stands the path, as it is remembered. */
	char *text;
	size_t len, cap, at;
};

struct survey {
	const struct survey_ops *ops;
	void *arg;
	struct level *lv; /* owned */
	size_t depth, cap;
	struct recall_tree *tree; /* NULL: nothing is remembered */
	struct timespec now;	  /* before anything was read */
	uint64_t dev;		  /* the last device that was asked for, */
	int tells;		  /* and whether its times tell; -1: none */
	char path[ABX_PATH_MAX + 1];
	union {
		struct dirent64 align;
		char buf[32 * 1024];
	} u;
};

/* ---- levels ---- */

static int
level_add(struct level *lv, const char *s, size_t n)
{
	size_t cap = lv->cap == 0 ? 256 : lv->cap;
	char *p;

	while (cap - lv->len < n)
		if (__builtin_mul_overflow(cap, 2, &cap))
			return -1;
	if (cap != lv->cap) {
		if ((p = realloc(lv->text, cap)) == NULL)
			return -1;
		lv->text = p;
		lv->cap = cap;
	}
	memcpy(lv->text + lv->len, s, n);
	lv->len += n;
	return 0;
}

/* Room for one more level, if there may be one. */
static enum code
level_room(struct survey *v)
{
	struct level *lv;
	size_t cap;

	if (v->depth >= SURVEY_DEPTH)
		return C_FS_NAME_TOO_LONG;
	if (v->depth < v->cap)
		return C_OK;
	cap = v->cap == 0 ? 16 : v->cap * 2;
	lv = recallocarray(v->lv, v->cap, cap, sizeof(*lv));
	if (lv == NULL)
		return C_SRV_UNAVAILABLE;
	v->lv = lv;
	v->cap = cap;
	return C_OK;
}

/* A level for the directory that path spells, behind level_room.  fd is
 * taken. */
static enum code
level_push(struct survey *v, int fd)
{
	struct level *lv = &v->lv[v->depth++];

	memset(lv, 0, sizeof(*lv));
	lv->fd = fd;
	lv->plen = strlen(v->path);
	if (level_add(lv, v->path, lv->plen + 1) == -1)
		return C_SRV_UNAVAILABLE;
	lv->at = lv->len;
	return C_OK;
}

static void
level_pop(struct survey *v)
{
	struct level *lv = &v->lv[--v->depth];

	if (v->depth > 0)
		close(lv->fd);
	free(lv->text);
}

/* ---- reading ---- */

/* Spell an entry of the deepest level. */
static enum code
spell(struct survey *v, const char *name)
{
	size_t plen = v->lv[v->depth - 1].plen, n = strlen(name);

	/* it could not be asked for, and nothing below it either */
	if (plen + 1 + n > ABX_PATH_MAX)
		return C_FS_NAME_TOO_LONG;
	v->path[plen] = '/';
	memcpy(v->path + plen + 1, name, n + 1);
	return C_OK;
}

static enum code
take(struct survey *v, const struct dirent64 *de, int *plain)
{
	struct level *lv = &v->lv[v->depth - 1];
	unsigned char type = de->d_type;
	struct stat st;
	enum code code;

	if ((code = spell(v, de->d_name)) != C_OK)
		return code;
	if (type == DT_UNKNOWN) {
		*plain = 0;
		if (fstatat(lv->fd, de->d_name, &st, AT_SYMLINK_NOFOLLOW) == -1)
			return errno == ENOENT ? C_OK : beneath_act_code(errno);
		type = (unsigned char)IFTODT(st.st_mode);
	}
	code = v->ops->entry(v->arg, lv->fd, de->d_name, v->path, type, plain);
	if (code == SURVEY_SKIP)
		return C_OK;
	if (code != C_OK || type != DT_DIR)
		return code;
	return level_add(lv, de->d_name, strlen(de->d_name) + 1) == -1
		   ? C_SRV_UNAVAILABLE
		   : C_OK;
}

static int
tells(struct survey *v, int fd, uint64_t dev)
{
	if (v->tells == -1 || v->dev != dev) {
		v->dev = dev;
		v->tells = stamp_tells(fd);
	}
	return v->tells;
}

/* All entries of the deepest level, which is as id says or newer. */
static enum code
read_all(struct survey *v, const struct recall_id *id, int stamped)
{
	struct level *lv = &v->lv[v->depth - 1];
	struct recall_dir d = {.id = *id, .hit = RECALL_NONE, .whole = 1};
	int plain = v->tree != NULL && stamped &&
		    recall_settled(id, &v->now, survey_settle) &&
		    tells(v, lv->fd, id->dev);
	const struct dirent64 *de;
	enum code code = C_OK;
	long n;
	char *p;

	survey_nread++;
	while (code == C_OK && (n = syscall(SYS_getdents64, lv->fd, v->u.buf,
				    sizeof(v->u.buf))) != 0) {
		if (n == -1)
			return beneath_act_code(errno);
		for (p = v->u.buf; code == C_OK && p < v->u.buf + n;
		     p += de->d_reclen) {
			de = (const void *)p;
			if (strcmp(de->d_name, ".") == 0 ||
			    strcmp(de->d_name, "..") == 0)
				continue;
			d.count++;
			code = take(v, de, &plain);
		}
		if (v->ops->stop != NULL && v->ops->stop(v->arg))
			return C_SRV_UNAVAILABLE;
	}
	if (code != C_OK || !plain || lv->len > UINT32_MAX)
		return code;
	d.text = lv->text;
	d.len = (uint32_t)lv->len;
	recall_keep(v->tree, &d);
	return C_OK;
}

/* ---- one directory ---- */

static int
is_at_cb(const struct recall_dir *d, const void *path)
{
	return strcmp(d->text, path) == 0;
}

/* The directory as it was, if it is remembered under this path. */
static const struct recall_dir *
remembered(struct survey *v, const struct recall_id *id)
{
	return v->tree == NULL || recall_empty(v->tree)
		   ? NULL
		   : recall_find(v->tree, id, is_at_cb, v->path);
}

/* A level for what lies in a remembered one.  fd is taken. */
static enum code
push_known(struct survey *v, int fd, const struct recall_dir *d)
{
	size_t head = strlen(v->path) + 1;
	enum code code;

	if ((code = level_push(v, fd)) != C_OK)
		return code;
	return level_add(&v->lv[v->depth - 1], d->text + head, d->len - head) ==
		       -1
		   ? C_SRV_UNAVAILABLE
		   : C_OK;
}

/* Open what is to be entered, which must be what was seen. */
static enum code
open_seen(int up, const char *name, int flags, struct recall_id *id, int *fd,
    int *stamped)
{
	struct recall_id now;
	enum code code;
	int rc;

	*fd = openat(up, name,
	    flags | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (*fd == -1)
		return beneath_walk_code(errno);
	if ((rc = stamp_of(*fd, "", &now)) == -1)
		code = beneath_act_code(errno);
	else
		code = now.dev == id->dev && now.ino == id->ino
			   ? C_OK
			   : C_POL_PATH_CHANGED;
	if (code != C_OK)
		close(*fd);
	*id = now;
	*stamped = rc == 0;
	return code;
}

static enum code
enter_known(struct survey *v, int up, const char *name, struct recall_id *id,
    const struct recall_dir *d)
{
	enum code code;
	int fd, stamped;

	if ((code = v->ops->known(v->arg, d->count)) != C_OK ||
	    d->len == strlen(v->path) + 1) /* no directory lies in it */
		return code;
	if ((code = open_seen(up, name, O_PATH, id, &fd, &stamped)) != C_OK)
		return code;
	return push_known(v, fd, d);
}

static enum code
enter_new(struct survey *v, int up, const char *name, struct recall_id *id)
{
	uint64_t dev = id->dev, ino = id->ino;
	enum code code;
	int fd, stamped;

	code = open_seen(up, name, O_RDONLY, id, &fd, &stamped);
	if (code != C_OK)
		return beneath_short(code)
			   ? code
			   : v->ops->barred(v->arg, v->path, dev, ino, code);
	if ((code = level_push(v, fd)) != C_OK)
		return code;
	return read_all(v, id, stamped);
}

/* A directory of the deepest level. */
static enum code
enter(struct survey *v, const char *name)
{
	int up = v->lv[v->depth - 1].fd, rc;
	const struct recall_dir *d;
	struct recall_id id;
	enum code code;

	if ((code = spell(v, name)) != C_OK || (code = level_room(v)) != C_OK)
		return code;
	/* it is gone, or another entry by now, whose name was seen */
	if ((rc = stamp_of(up, name, &id)) == -1)
		return errno == ENOENT || errno == ENOTDIR
			   ? C_OK
			   : beneath_act_code(errno);
	if (rc == 0 && (d = remembered(v, &id)) != NULL)
		return enter_known(v, up, name, &id, d);
	return enter_new(v, up, name, &id);
}

static enum code
run(struct survey *v)
{
	enum code code = C_OK;
	struct level *lv;
	const char *name;

	while (code == C_OK && v->depth > 0) {
		if (v->ops->stop != NULL && v->ops->stop(v->arg))
			return C_SRV_UNAVAILABLE;
		lv = &v->lv[v->depth - 1];
		if (lv->at == lv->len) {
			level_pop(v);
			continue;
		}
		name = lv->text + lv->at;
		lv->at += strlen(name) + 1;
		code = enter(v, name);
	}
	return code;
}

/* The first level, whose directory the caller has. */
static enum code
begin(struct survey *v, int dir)
{
	const struct recall_dir *d;
	struct recall_id id;
	enum code code;
	int rc;

	if ((rc = stamp_of(dir, "", &id)) == -1)
		return beneath_act_code(errno);
	if ((code = level_room(v)) != C_OK)
		return code;
	if (rc == 0 && (d = remembered(v, &id)) != NULL) {
		code = v->ops->known(v->arg, d->count);
		return code == C_OK ? push_known(v, dir, d) : code;
	}
	if (lseek(dir, 0, SEEK_SET) == -1)
		return beneath_act_code(errno);
	if ((code = level_push(v, dir)) != C_OK)
		return code;
	return read_all(v, &id, rc == 0);
}

enum code
survey(int dir, const char *path, const void *key, size_t klen,
    const struct survey_ops *ops, void *arg)
{
	struct survey *v;
	enum code code;

	if (strcmp(path, "/") == 0)
		path = ""; /* names follow behind a slash */
	if ((v = calloc(1, sizeof(*v))) == NULL)
		return C_SRV_UNAVAILABLE;
	v->ops = ops;
	v->arg = arg;
	v->tells = -1;
	/* in this order: it may be set now */
	if (stamp_steady() && clock_gettime(CLOCK_REALTIME, &v->now) == 0)
		v->tree = recall_begin(key, klen, SURVEY_KEPT);
	if (strlcpy(v->path, path, sizeof(v->path)) >= sizeof(v->path))
		code = C_FS_NAME_TOO_LONG;
	else if ((code = begin(v, dir)) == C_OK)
		code = run(v);
	while (v->depth > 0)
		level_pop(v);
	free(v->lv);
	if (v->tree != NULL)
		recall_end(v->tree);
	free(v);
	return code;
}
