/*
 * SPDX-License-Identifier: ISC
 *
 * Listings in directory order (design: paths, "Use").  Each entry is judged
 * again: what is denied, and links that lead out of the asking roots or to
 * something denied, are left out.  Sorting is the reader's business.
 */
#include <sys/stat.h>

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
#include "pathd/tree.h"

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
	    sight_new(&li->sight, pd, l->refs, l->nrefs, l->flags, &l->deny) ==
		-1)
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
	sight_clear(&li->sight);
	memset(li, 0, sizeof(*li));
	li->dir = -1;
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

/* ---- the walk ---- */

/* What goes along with it. */
struct sending {
	struct listing *li;
	struct wbuf out, w;
	list_out_cb cb;
	void *arg;
	size_t below; /* bytes of a path up to the names that are sent */
	uint32_t count;
	int truncated, stopped;
};

static unsigned
depth_of(const char *name)
{
	unsigned n = 1;

	while ((name = strchr(name, '/')) != NULL) {
		name++;
		n++;
	}
	return n;
}

static enum code
send_entry(void *arg, int dir, const char *name, const char *path,
    const struct stat *st)
{
	struct sending *s = arg;
	const struct list *l = s->li->l;

	if (!sight_entry(&s->li->sight, path, st))
		return TREE_SKIP;
	if (s->count == l->max_entries) {
		s->truncated = 1;
		return TREE_DONE;
	}
	s->count++;
	put_entry(&s->out, &s->w, path + s->below, st);
	if (s->out.err)
		return C_SRV_UNAVAILABLE;
	if (s->out.len >= BATCH) {
		if (s->cb(s->arg, s->out.p, s->out.len) == -1) {
			s->stopped = 1;
			return TREE_DONE;
		}
		wbuf_reset(&s->out);
	}
	return depth_of(path + s->below) < l->depth ? C_OK : TREE_SKIP;
}

/* Listed it is; what it holds cannot be seen. */
static enum code
send_barred(void *arg, const char *path, enum code code)
{
	return code == C_SRV_UNAVAILABLE ? code : C_OK;
}

static int
send_stop(void *arg)
{
	static const uint8_t none[1];
	struct sending *s = arg;

	if (s->cb(s->arg, none, 0) == -1)
		s->stopped = 1;
	return s->stopped;
}

static const struct tree_ops send_ops = {
    .entry = send_entry, .barred = send_barred, .stop = send_stop};

int
listing_send(struct listing *li, list_out_cb cb, void *arg)
{
	struct sending s = {.li = li, .cb = cb, .arg = arg};
	enum code code;
	int rc = -1;

	wbuf_init(&s.out, 2 * BATCH);
	wbuf_init(&s.w, FRAME_MAX);
	s.below = strcmp(li->path, "/") == 0 ? 1 : strlen(li->path) + 1;
	code = tree_walk(li->dir, li->path, &send_ops, &s);
	if (!s.stopped) {
		put_end(&s.out, &s.w, code, s.truncated);
		rc = s.out.err ? -1 : cb(arg, s.out.p, s.out.len);
	}
	wbuf_free(&s.out);
	wbuf_free(&s.w);
	return rc;
}
