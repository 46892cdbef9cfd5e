/*
 * SPDX-License-Identifier: ISC
 *
 * Edits, in a worker: the file is read, changed in memory and uploaded from
 * there, so that whoever reads sees one version or the other.  Another
 * writer's work is never lost: what was read must still be there.
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pathd/beneath.h"
#include "pathd/edit.h"
#include "pathd/put.h"
#include "pathd/replace.h"
#include "pathd/roots.h"
#include "pathd/udiff.h"

/* The file, if it is still what was decided on: fd, or -1 with *code. */
static int
edit_open(const struct pathd *pd, const struct edit *e, struct stat *st,
    enum code *code)
{
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];
	int fd;

	*code = roots_locate(&pd->roots, &e->target, &root, full);
	if (*code != C_OK)
		return -1;
	fd = beneath_open(root->fd, full, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	if (fd == -1) {
		*code = beneath_walk_code(errno);
		return -1;
	}
	if (fstat(fd, st) == -1)
		*code = beneath_act_code(errno);
	else if (st->st_dev != e->target.dev || st->st_ino != e->target.ino)
		*code = C_POL_PATH_CHANGED;
	else if (!S_ISREG(st->st_mode))
		*code = C_POL_NOT_REGULAR;
	else if (st->st_nlink > 1 && (e->flags & PF_HARDLINKS) == 0)
		*code = C_POL_HARDLINK_DENIED;
	else if ((uint64_t)st->st_size > e->max_bytes || st->st_size > EDIT_MAX)
		*code = C_LIM_MAX_BYTES;
	else if ((e->flags & PF_EXACT) != 0 &&
		 ((uint64_t)st->st_size != e->size ||
		     st->st_mtim.tv_sec != e->mtime ||
		     (uint32_t)st->st_mtim.tv_nsec != e->mtime_ns))
		*code = C_FS_CHANGED;
	else
		return fd;
	close(fd);
	return -1;
}

static enum code
edit_read(int fd, size_t len, struct text *t)
{
	ssize_t n;

	if ((t->p = malloc(len + 1)) == NULL)
		return C_SRV_UNAVAILABLE;
	while (t->len < len) {
		n = read(fd, t->p + t->len, len - t->len);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return beneath_act_code(errno);
		if (n == 0)
			return C_FS_CHANGED;
		t->len += (size_t)n;
	}
	return C_OK;
}

static enum code
text_write(int fd, const struct text *t)
{
	size_t done = 0;
	ssize_t n;

	while (done < t->len) {
		n = write(fd, t->p + done, t->len - done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return beneath_act_code(errno);
		done += (size_t)n;
	}
	return C_OK;
}

/* 1 when nobody has written to the file since. */
static int
untouched(int fd, const struct stat *was)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size == was->st_size &&
	       st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == was->st_mtim.tv_nsec;
}

static enum code
edit_commit(const struct pathd *pd, const struct edit *e, int fd,
    const struct stat *was, const struct text *t, struct edit_fin *fin)
{
	struct put p = {.max_bytes = UINT64_MAX, .mode = UINT32_MAX};
	struct put_fin pf = {0};
	struct upload u;
	enum code code;

	p.target = e->target; /* borrowed */
	p.flags = (e->flags & PF_HARDLINKS) | PF_EXACT;
	if ((code = upload_open(&u, pd, &p)) == C_OK &&
	    (code = text_write(u.fd, t)) == C_OK)
		code =
		    untouched(fd, was) ? upload_commit(&u, &pf) : C_FS_CHANGED;
	upload_close(&u);
	fin->size = t->len;
	fin->mtime = pf.mtime;
	fin->mtime_ns = pf.mtime_ns;
	fin->dev = pf.dev;
	fin->ino = pf.ino;
	return code;
}

/* What would change; the file is described as it is. */
static enum code
edit_show(const struct text *from, const struct text *to, const struct stat *st,
    struct edit_fin *fin)
{
	struct wbuf w;

	fin->size = (uint64_t)st->st_size;
	fin->mtime = st->st_mtim.tv_sec;
	fin->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	fin->dev = st->st_dev;
	fin->ino = st->st_ino;
	wbuf_init(&w, ABX_DIFF_MAX);
	if (udiff(&w, from, to) == -1) {
		wbuf_free(&w);
		return C_SRV_UNAVAILABLE;
	}
	fin->truncated = (uint8_t)w.err;
	fin->diff = w.p;
	fin->difflen = w.len;
	return C_OK;
}

enum code
edit_run(const struct pathd *pd, const struct edit *e, struct edit_fin *fin)
{
	uint64_t max = e->max_bytes < EDIT_MAX ? e->max_bytes : EDIT_MAX;
	struct text from = {0}, to = {0};
	struct stat st;
	enum code code;
	int fd;

	memset(fin, 0, sizeof(*fin));
	if ((fd = edit_open(pd, e, &st, &code)) == -1)
		return code;
	code = edit_read(fd, (size_t)st.st_size, &from);
	if (code == C_OK) {
		if ((to.p = malloc(from.len + 1)) == NULL)
			code = C_SRV_UNAVAILABLE;
		else
			memcpy(to.p, from.p, to.len = from.len);
	}
	if (code == C_OK)
		code = replace_all(&to, e->row, e->nrow, max, &fin->count);
	if (code == C_OK)
		code = (e->flags & PF_DRY) != 0
			   ? edit_show(&from, &to, &st, fin)
			   : edit_commit(pd, e, fd, &st, &to, fin);
	free(from.p);
	free(to.p);
	close(fd);
	return code;
}
