/*
 * SPDX-License-Identifier: ISC
 *
 * Watching, in a worker of its own.  Directories are watched by descriptors
 * that were opened beneath the root, and each event is judged by what the
 * name is now: what is denied and links that lead out do not show.  What was
 * missed is said, never guessed.
 */
#include <sys/inotify.h>
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/frame.h"
#include "pathd/beneath.h"
#include "pathd/journal.h"
#include "pathd/roots.h"
#include "pathd/watch.h"

#define MASK                                                               \
	(IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | \
	    IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR |       \
	    IN_EXCL_UNLINK)
#define WD_MAX (1 << 20)

/* ---- frames ---- */

/* Frames that do not fit are lost, and that is told first when there is room
 * again. */
static void
tell(struct watch *w, uint8_t what, uint8_t type, const char *rel,
    const char *to)
{
	struct list_event e = {what, type, rel, strlen(rel), to, strlen(to)};
	uint8_t head[FRAME_HDR];
	struct wbuf one;

	wbuf_init(&one, FRAME_MAX);
	list_event_put(&one, &e);
	if (one.err || w->out.len + 2 * FRAME_HDR + one.len + 64 > WATCH_QUEUE)
		w->lost = 1;
	else if (w->lost && what != WE_OVERFLOW) {
		w->lost = 0;
		tell(w, WE_OVERFLOW, FK_DIR, "", "");
		tell(w, what, type, rel, to);
	} else {
		frame_head(head, FR_EVENT, (uint32_t)one.len);
		wput_raw(&w->out, head, sizeof(head));
		wput_raw(&w->out, one.p, one.len);
		if (w->out.err)
			w->ended = 1; /* it holds half a frame: no more */
	}
	wbuf_free(&one);
}

static void
overflow(struct watch *w)
{
	w->lost = 0;
	tell(w, WE_OVERFLOW, FK_DIR, "", "");
}

void
watch_settle(struct watch *w)
{
	if (w->lost)
		overflow(w);
}

/* ---- names ---- */

/* dir and name, "" being the top: 0 or -1 when too long. */
static int
join(char out[ABX_PATH_MAX + 1], const char *dir, const char *name)
{
	int n;

	n = snprintf(out, ABX_PATH_MAX + 1, "%s%s%s", dir,
	    dir[0] != '\0' && name[0] != '\0' ? "/" : "", name);
	return n < 0 || n > ABX_PATH_MAX ? -1 : 0;
}

/* 1 with *st when the name may be seen; gone: it need not be there. */
static int
visible(const struct watch *w, const char *rel, int gone, struct stat *st)
{
	char path[ABX_PATH_MAX + 1];
	const char *name;
	int dir, rc;

	if (join(path, strcmp(w->path, "/") == 0 ? "" : w->path, "") == -1 ||
	    strlcat(path, "/", sizeof(path)) >= sizeof(path) ||
	    strlcat(path, rel, sizeof(path)) >= sizeof(path) ||
	    deny_covers(&w->sight.deny, path))
		return 0;
	if (gone)
		return 1;
	if ((dir = beneath_parent(w->dir, rel, &name)) == -1)
		return 0;
	rc = fstatat(dir, name, st, AT_SYMLINK_NOFOLLOW);
	close(dir);
	return rc == 0 && sight_entry(&w->sight, path, st);
}

/* ---- directories ---- */

static void
forget(struct watch *w, size_t wd)
{
	if (wd < w->nrel && w->rel[wd] != NULL) {
		free(w->rel[wd]);
		w->rel[wd] = NULL;
		w->ndirs--;
	}
}

/* A directory that is watched is rel or lies below it. */
static int
is_below(const struct watch *w, size_t wd, const char *rel)
{
	size_t n = strlen(rel);

	return w->rel[wd] != NULL && strncmp(w->rel[wd], rel, n) == 0 &&
	       (w->rel[wd][n] == '/' || w->rel[wd][n] == '\0');
}

static void
unwatch(struct watch *w, size_t wd)
{
	(void)inotify_rm_watch(w->ino, (int)wd);
	forget(w, wd);
}

/* Stop watching a directory and all below it. */
static void
forget_tree(struct watch *w, const char *rel)
{
	size_t i;

	for (i = 0; i < w->nrel; i++)
		if (is_below(w, i, rel))
			unwatch(w, i);
}

/* A directory has another name: what is said of it and of all below it from
 * now on is said of that.  The watches stay, or what came meanwhile would be
 * missed. */
static void
rename_tree(struct watch *w, const char *from, const char *to)
{
	char rel[ABX_PATH_MAX + 1];
	const char *rest;
	size_t i;
	char *copy;

	for (i = 0; i < w->nrel; i++) {
		if (!is_below(w, i, from))
			continue;
		rest = w->rel[i] + strlen(from);
		rest += *rest == '/';
		copy = join(rel, to, rest) == 0 ? strdup(rel) : NULL;
		if (copy == NULL) {
			unwatch(w, i);
			w->lost = 1;
			continue;
		}
		free(w->rel[i]);
		w->rel[i] = copy;
	}
}

static enum code
remember(struct watch *w, int wd, const char *rel)
{
	size_t n = (size_t)wd + 1, cap;
	char **v, *copy;

	if (wd < 0 || wd >= WD_MAX)
		return C_FS_TOO_MANY_OPEN;
	if (n > w->nrel) {
		cap = n < 64 ? 64 : n * 2;
		v = recallocarray(w->rel, w->nrel, cap, sizeof(*v));
		if (v == NULL)
			return C_SRV_UNAVAILABLE;
		w->rel = v;
		w->nrel = cap;
	}
	if ((copy = strdup(rel)) == NULL)
		return C_SRV_UNAVAILABLE;
	if (w->rel[wd] == NULL)
		w->ndirs++;
	free(w->rel[wd]);
	w->rel[wd] = copy;
	return C_OK;
}

/* Watch one directory; its descriptor for reading in *fd, -1 when it is gone
 * or cannot be read. */
static enum code
watch_dir(struct watch *w, const char *rel, int *fd)
{
	char proc[64];
	enum code code;
	int wd;

	*fd = beneath_open(w->dir, rel, O_RDONLY | O_DIRECTORY);
	if (*fd == -1) {
		code = beneath_walk_code(errno);
		return beneath_short(code) ? code : C_OK;
	}
	code = C_FS_TOO_MANY_OPEN;
	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", *fd);
	if (w->ndirs < WATCH_DIRS) {
		wd = inotify_add_watch(w->ino, proc, MASK);
		if (wd != -1)
			code = remember(w, wd, rel);
		else if (errno != ENOSPC)
			code = beneath_act_code(errno);
	}
	if (code != C_OK) {
		close(*fd);
		*fd = -1;
	}
	return code;
}

/* Names that wait to be looked at, each owned. */
struct todo {
	char **v;
	size_t n, cap;
};

static int
todo_push(struct todo *t, const char *rel)
{
	size_t cap = t->cap == 0 ? 64 : t->cap * 2;
	char **v;

	if (t->n == t->cap) {
		if ((v = reallocarray(t->v, cap, sizeof(*v))) == NULL)
			return -1;
		t->v = v;
		t->cap = cap;
	}
	if ((t->v[t->n] = strdup(rel)) == NULL)
		return -1;
	t->n++;
	return 0;
}

/* The entries of one directory: its directories are to be watched, and with
 * news all of them are told, for they came before the watch did. */
static enum code
scan(struct watch *w, const char *rel, int fd, int news, struct todo *t)
{
	char sub[ABX_PATH_MAX + 1];
	const struct dirent *e;
	enum code code = C_OK;
	struct stat st;
	DIR *d;

	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return C_SRV_UNAVAILABLE;
	}
	while (code == C_OK && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0 ||
		    journal_is_name(e->d_name) ||
		    join(sub, rel, e->d_name) == -1 || !visible(w, sub, 0, &st))
			continue;
		if (news)
			tell(w, WE_CREATE, beneath_kind(st.st_mode), sub, "");
		if (S_ISDIR(st.st_mode) && todo_push(t, sub) == -1)
			code = C_SRV_UNAVAILABLE;
	}
	closedir(d);
	return code;
}

/* Watch a directory and, when asked to, all below it. */
static enum code
watch_tree(struct watch *w, const char *rel, int news)
{
	int deep = (w->b->flags & PF_RECURSIVE) != 0, fd;
	struct todo t = {0};
	enum code code = C_OK;
	char *at;

	if (todo_push(&t, rel) == -1)
		code = C_SRV_UNAVAILABLE;
	while (code == C_OK && t.n > 0) {
		at = t.v[--t.n];
		code = watch_dir(w, at, &fd);
		if (code == C_OK && fd != -1 && deep)
			code = scan(w, at, fd, news, &t);
		else if (fd != -1)
			close(fd);
		free(at);
	}
	while (t.n > 0)
		free(t.v[--t.n]);
	free(t.v);
	return code;
}

/* ---- the life of one ---- */

enum code
watch_open(struct watch *w, const struct pathd *pd, const struct bulk *b)
{
	enum code code;
	struct stat st;

	memset(w, 0, sizeof(*w));
	w->pd = pd;
	w->b = b;
	w->dir = w->ino = -1;
	wbuf_init(&w->out, WATCH_QUEUE);
	if (b->nsrc != 1 || b->has_dst)
		return C_SRV_INTERNAL;
	code = roots_locate(&pd->roots, &b->src[0], &w->root, w->full);
	if (code != C_OK)
		return code;
	w->dir = beneath_open(w->root->fd, w->full, O_PATH | O_DIRECTORY);
	if (w->dir == -1)
		return beneath_walk_code(errno);
	if (fstat(w->dir, &st) == -1 || st.st_dev != b->src[0].dev ||
	    st.st_ino != b->src[0].ino)
		return C_POL_PATH_CHANGED;
	if ((w->path = roots_path(w->root, w->full)) == NULL ||
	    sight_new(&w->sight, pd, b->refs, b->nrefs, b->flags, &b->deny) ==
		-1)
		return C_SRV_UNAVAILABLE;
	if ((w->ino = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) == -1)
		return beneath_act_code(errno);
	code = watch_tree(w, "", 0);
	return code == C_OK && w->ndirs == 0 ? C_FS_PERMISSION : code;
}

void
watch_close(struct watch *w)
{
	size_t i;

	for (i = 0; i < w->nrel; i++)
		free(w->rel[i]);
	free(w->rel);
	free(w->path);
	sight_clear(&w->sight);
	wbuf_free(&w->out);
	if (w->dir != -1)
		close(w->dir);
	if (w->ino != -1)
		close(w->ino);
	memset(w, 0, sizeof(*w));
	w->dir = w->ino = -1;
}

/* ---- events ---- */

/* A move whose other half may come next. */
struct half {
	uint32_t cookie; /* 0: none */
	int ours;	 /* a temporary of ours is about to get its name */
	uint8_t type;
	char rel[ABX_PATH_MAX + 1];
};

static uint8_t
event_type(const struct inotify_event *e)
{
	return (e->mask & IN_ISDIR) != 0 ? FK_DIR : FK_FILE;
}

/* It went out of what is watched. */
static void
half_end(struct watch *w, struct half *h)
{
	if (h->cookie == 0)
		return;
	h->cookie = 0;
	if (h->type == FK_DIR)
		forget_tree(w, h->rel);
	if (!h->ours)
		tell(w, WE_DELETE, h->type, h->rel, "");
}

/* What is new at a name, however it came there. */
static void
arrived(struct watch *w, const char *rel, const struct stat *st, int news)
{
	if (S_ISDIR(st->st_mode) && (w->b->flags & PF_RECURSIVE) != 0 &&
	    watch_tree(w, rel, news) != C_OK)
		w->lost = 1;
}

static void
on_moved_to(struct watch *w, struct half *h, const char *rel,
    const struct inotify_event *e)
{
	int seen, known = h->cookie != 0 && h->cookie == e->cookie;
	struct stat st;

	seen = visible(w, rel, 0, &st);
	if (!known || !seen) {
		half_end(w, h);
		if (seen) {
			tell(w, WE_CREATE, beneath_kind(st.st_mode), rel, "");
			arrived(w, rel, &st, 1);
		}
		return;
	}
	h->cookie = 0;
	if (h->type == FK_DIR)
		rename_tree(w, h->rel, rel);
	if (!h->ours)
		tell(w, WE_MOVE, beneath_kind(st.st_mode), h->rel, rel);
	else
		/* a directory is new, a file has most often replaced one */
		tell(w, S_ISDIR(st.st_mode) ? WE_CREATE : WE_MODIFY,
		    beneath_kind(st.st_mode), rel, "");
	arrived(w, rel, &st, h->ours);
}

static int
watched(const struct watch *w, const char *rel)
{
	size_t i;

	for (i = 0; i < w->nrel; i++)
		if (w->rel[i] != NULL && strcmp(w->rel[i], rel) == 0)
			return 1;
	return 0;
}

/* A directory that could not be read before may be readable now. */
static void
on_attrib(struct watch *w, const char *rel, const struct inotify_event *e)
{
	struct stat st;

	if ((e->mask & IN_ISDIR) != 0 && !watched(w, rel) &&
	    visible(w, rel, 0, &st))
		arrived(w, rel, &st, 1);
}

static void
on_name(struct watch *w, struct half *h, const char *rel,
    const struct inotify_event *e)
{
	int ours = journal_is_name(e->name);
	struct stat st;

	if ((e->mask & IN_MOVED_TO) != 0) {
		on_moved_to(w, h, rel, e);
		return;
	}
	half_end(w, h);
	if ((e->mask & IN_ATTRIB) != 0) {
		if (!ours)
			on_attrib(w, rel, e);
		return;
	}
	if ((e->mask & (IN_DELETE | IN_MOVED_FROM)) != 0) {
		if (!visible(w, rel, 1, NULL))
			return;
		if ((e->mask & IN_DELETE) != 0) {
			if (!ours)
				tell(w, WE_DELETE, event_type(e), rel, "");
			return;
		}
		h->cookie = e->cookie;
		h->ours = ours;
		h->type = event_type(e);
		(void)strlcpy(h->rel, rel, sizeof(h->rel));
	} else if (!ours && visible(w, rel, 0, &st)) {
		tell(w, (e->mask & IN_CREATE) != 0 ? WE_CREATE : WE_MODIFY,
		    beneath_kind(st.st_mode), rel, "");
		if ((e->mask & IN_CREATE) != 0)
			arrived(w, rel, &st, 1);
	}
}

static void
on_event(struct watch *w, struct half *h, const struct inotify_event *e)
{
	char rel[ABX_PATH_MAX + 1];
	const char *dir;

	if ((e->mask & IN_Q_OVERFLOW) != 0) {
		h->cookie = 0;
		overflow(w);
		if (watch_tree(w, "", 0) != C_OK)
			w->lost = 1;
		return;
	}
	if (e->wd < 0 || (size_t)e->wd >= w->nrel ||
	    (dir = w->rel[e->wd]) == NULL)
		return; /* of one that is not watched any more */
	if ((e->mask & IN_IGNORED) != 0) {
		if (dir[0] == '\0')
			w->ended = 1;
		forget(w, (size_t)e->wd);
	} else if ((e->mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
		/* of others their parent tells */
		if (dir[0] == '\0')
			w->ended = 1;
	} else if (e->len > 0 && join(rel, dir, e->name) == 0)
		on_name(w, h, rel, e);
}

/* The directory is still where it was decided on. */
static int
in_place(const struct watch *w)
{
	struct stat st;
	int fd, ok;

	fd = beneath_open(w->root->fd, w->full, O_PATH | O_DIRECTORY);
	if (fd == -1)
		return 0;
	ok = fstat(fd, &st) == 0 && st.st_dev == w->b->src[0].dev &&
	     st.st_ino == w->b->src[0].ino;
	close(fd);
	return ok;
}

void
watch_read(struct watch *w)
{
	static union {
		struct inotify_event align;
		char buf[64 * 1024];
	} u;
	static struct half h;
	const struct inotify_event *e;
	size_t at;
	ssize_t n;

	h.cookie = 0;
	n = read(w->ino, u.buf, sizeof(u.buf));
	if (n <= 0)
		return;
	if (!in_place(w)) {
		w->ended = 1;
		return;
	}
	for (at = 0; at < (size_t)n && !w->ended; at += sizeof(*e) + e->len) {
		e = (const void *)(u.buf + at);
		on_event(w, &h, e);
	}
	/* both halves are put into the queue at once */
	half_end(w, &h);
}
