/*
 * SPDX-License-Identifier: ISC
 *
 * Listings in directory order (design: paths, "Use").  Each entry is judged
 * again: what is denied, and links that lead out of the asking roots or to
 * something denied, are left out.  Sorting is the reader's business.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/frame.h"
#include "pathd/beneath.h"
#include "pathd/list.h"
#include "pathd/roots.h"

#define BATCH (32 * 1024)

enum code
listing_open(struct listing *li, const struct pathd *pd, const struct list *l)
{
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	struct stat st;
	enum code code;

	memset(li, 0, sizeof(*li));
	li->pd = pd;
	li->l = l;
	li->dir = -1;
	if ((code = roots_locate(&pd->roots, &l->target, &root, full)) != C_OK)
		return code;
	li->dir = beneath_open(root->fd, full, O_RDONLY | O_DIRECTORY);
	if (li->dir == -1)
		return beneath_walk_code(errno);
	if (fstat(li->dir, &st) == -1 || st.st_dev != l->target.dev ||
	    st.st_ino != l->target.ino)
		return C_POL_PATH_CHANGED;
	if ((li->path = roots_path(root, full)) == NULL ||
	    deny_new(&li->deny, &l->deny) == -1)
		return C_SRV_UNAVAILABLE;
	return C_OK;
}

void
listing_close(struct listing *li)
{
	if (li->dir != -1)
		close(li->dir);
	li->dir = -1;
	free(li->path);
	deny_clear(&li->deny);
	memset(li, 0, sizeof(*li));
	li->dir = -1;
}

/* 1 when a link leads to a place that the caller may use. */
static int
link_visible(const struct listing *li, char *path)
{
	struct resolve_item it = {
	    .path = path, .refs = li->l->refs, .nrefs = li->l->nrefs};
	struct facts f;
	int ok;

	if ((li->l->flags & PF_NOSYMLINKS) != 0)
		return 0;
	if (walk_resolve(&li->pd->roots, &it, WALK_FACTS, &f, NULL) == -1)
		return 0;
	ok = f.status == FS_OK && !deny_covers(&li->deny, f.path);
	facts_clear(&f);
	return ok;
}

/* 1 with *st when the entry may be seen. */
static int
entry_visible(const struct listing *li, const char *name, struct stat *st)
{
	char path[ABX_PATH_MAX + 1];
	size_t n = strlen(li->path), k = strlen(name);

	if (n + 1 + k > ABX_PATH_MAX)
		return 0; /* it could not be asked for */
	memcpy(path, li->path, n);
	path[n] = '/';
	memcpy(path + n + 1, name, k + 1);
	if (deny_covers(&li->deny, path) ||
	    fstatat(li->dir, name, st, AT_SYMLINK_NOFOLLOW) == -1)
		return 0;
	return !S_ISLNK(st->st_mode) || link_visible(li, path);
}

/* Append one frame, its payload from w. */
static void
put_frame(struct wbuf *out, uint8_t kind, const struct wbuf *w)
{
	uint8_t head[FRAME_HDR];

	frame_head(head, kind, (uint32_t)w->len);
	wput_raw(out, head, sizeof(head));
	wput_raw(out, w->p, w->len);
}

static void
put_entry(
    struct wbuf *out, struct wbuf *w, const char *name, const struct stat *st)
{
	struct list_entry e = {
	    .type = beneath_kind(st->st_mode),
	    .mode = st->st_mode & 07777,
	    .size = (uint64_t)st->st_size,
	    .mtime = st->st_mtim.tv_sec,
	    .mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
	    .dev = st->st_dev,
	    .ino = st->st_ino,
	    .name = name,
	    .namelen = strlen(name),
	};

	wbuf_reset(w);
	list_entry_put(w, &e);
	put_frame(out, FR_ENTRY, w);
}

static void
put_end(struct wbuf *out, struct wbuf *w, enum code code, int truncated)
{
	wbuf_reset(w);
	wput_u16(w, (uint16_t)code);
	wput_u8(w, truncated != 0);
	put_frame(out, FR_END, w);
}

/* Frame the entries; C_OK at the end of the directory or of the limit. */
static int
send_entries(struct listing *li, DIR *d, struct wbuf *out, struct wbuf *w,
    list_out_cb cb, void *arg)
{
	const struct dirent *e;
	enum code code = C_OK;
	uint32_t n = 0;
	struct stat st;
	int truncated = 0;

	for (;;) {
		errno = 0;
		if ((e = readdir(d)) == NULL)
			break;
		if (strcmp(e->d_name, ".") == 0 ||
		    strcmp(e->d_name, "..") == 0 ||
		    !entry_visible(li, e->d_name, &st))
			continue;
		if (n == li->l->max_entries) {
			truncated = 1;
			break;
		}
		n++;
		put_entry(out, w, e->d_name, &st);
		if (out->err)
			break;
		if (out->len < BATCH)
			continue;
		if (cb(arg, out->p, out->len) == -1)
			return -1;
		wbuf_reset(out);
	}
	if (e == NULL && errno != 0)
		code = beneath_act_code(errno);
	put_end(out, w, code, truncated);
	return out->err ? -1 : cb(arg, out->p, out->len);
}

int
listing_send(struct listing *li, list_out_cb cb, void *arg)
{
	struct wbuf out, w;
	int rc;
	DIR *d;

	if ((d = fdopendir(li->dir)) == NULL)
		return -1;
	li->dir = dirfd(d);
	wbuf_init(&out, 2 * BATCH);
	wbuf_init(&w, FRAME_MAX);
	rc = send_entries(li, d, &out, &w, cb, arg);
	wbuf_free(&out);
	wbuf_free(&w);
	closedir(d);
	li->dir = -1;
	return rc;
}
