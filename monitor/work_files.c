/*
 * SPDX-License-Identifier: ISC
 *
 * Orders to pathd for operations on whole trees, made from the decision
 * alone.
 */
#include <stdlib.h>
#include <string.h>

#include "common/codes.h"
#include "common/size.h"
#include "monitor/mon.h"
#include "monitor/work.h"

/* What the decision says of all of them. */
static void
bulk_fill(const struct req *r, struct bulk *b)
{
	b->flags = r->dec.paths[0].flags & (PF_HARDLINKS | PF_NOSYMLINKS);
	b->max_bytes = r->dec.max_bytes;
	b->max_entries = r->dec.max_entries;
	b->refs = r->dec.refs;
	b->nrefs = r->dec.nrefs;
	b->deny = r->dec.deny;
}

/* The one source of the call and what it is called, borrowed. */
static void
bulk_source(struct req *r, struct bulk *b, char **name)
{
	bulk_fill(r, b);
	*name = r->dec.paths[0].canonical;
	b->src = &r->dec.paths[0].target;
	b->nsrc = 1;
	b->names.v = name;
	b->names.n = 1;
}

/* Everything in b is borrowed. */
static void
bulk_send(struct req *r, uint16_t type, const struct bulk *b)
{
	struct wbuf w;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	bulk_put(&w, b);
	if (w.err)
		answer_error(r, C_ARGS_TOO_LARGE, NULL, NULL, 0);
	else
		work_send(r, r->snap->pathd, type, -1, &w);
	wbuf_free(&w);
}

void
work_copy(struct req *r, int *fd)
{
	struct bulk b = {0};
	char *name;

	bulk_source(r, &b, &name);
	b.dst = r->dec.paths[1].target;
	b.has_dst = 1;
	b.flags |= r->dec.paths[1].flags & PF_CREATE_DIRS;
	if (!ask_bool(r, "overwrite"))
		b.flags |= PF_NOREPLACE;
	bulk_send(r, MP_COPY, &b);
}

/* ---- edit ---- */

/* One member of a row into it: 0, or -1 when it has no place there. */
static int
edit_member(struct edit_row *row, const char *key, char *val)
{
	int text = val[0] == 's';
	uint64_t n;

	if (strcmp(key, "find") == 0 && text && val[1] != '\0')
		row->find = val + 1;
	else if (strcmp(key, "replace") == 0 && text)
		row->replace = val + 1;
	else if (strcmp(key, "count") == 0 && !text &&
		 uint_parse(val + 1, strlen(val + 1), UINT32_MAX, &n) == 0 &&
		 n > 0)
		row->count = (uint32_t)n;
	else
		return -1;
	return 0;
}

/* The rows of the argument, all borrowed from it: how many, or -1. */
static long
edit_rows(const struct arg *a, struct edit_row *rows)
{
	struct edit_row *row = rows;
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (row == rows + ABX_MAX_EDITS)
			return -1;
		if (row->count == 0)
			row->count = 1;
		if (a->list[i][0] != '\0') {
			if (edit_member(row, a->list[i], a->vals[i]) == -1)
				return -1;
			continue;
		}
		if (row->find == NULL || row->replace == NULL)
			return -1;
		row++;
	}
	return row - rows;
}

static void
edit_send(struct req *r, struct edit *e)
{
	const struct facts *f = &r->facts[r->dec.paths[0].item];
	struct wbuf w;

	e->target = r->dec.paths[0].target; /* borrowed */
	e->flags |= r->dec.paths[0].flags & PF_HARDLINKS;
	if (ask_bool(r, "dry_run"))
		e->flags |= PF_DRY;
	e->max_bytes = r->dec.max_bytes;
	e->size = f->size;
	e->mtime = f->mtime;
	e->mtime_ns = f->mtime_ns;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	edit_put(&w, e);
	if (w.err)
		answer_error(r, C_ARGS_TOO_LARGE, "edits", NULL, 0);
	else
		work_send(r, r->snap->pathd, MP_EDIT, -1, &w);
	wbuf_free(&w);
}

void
work_edit(struct req *r, int *fd)
{
	const struct arg *a = args_find(&r->ask.args, "edits");
	struct edit e = {0};
	enum code c;
	long n = -1;

	if (a == NULL ||
	    (a->type != A_ROWS && a->type != A_LIST && a->type != A_OTHER)) {
		answer_error(r, C_ARGS_TYPE, "edits", NULL, 0);
		return;
	}
	e.row = calloc(ABX_MAX_EDITS, sizeof(*e.row));
	if (e.row != NULL && a->type == A_ROWS)
		n = edit_rows(a, e.row);
	if (e.row == NULL)
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
	else if (n <= 0)
		answer_error(r, C_ARGS_INVALID, "edits", NULL, 0);
	else if ((c = work_preconditions(r, &e.flags)) != C_OK)
		answer_error(r, c, "path", NULL, 0);
	else {
		e.nrow = (size_t)n;
		edit_send(r, &e);
	}
	free(e.row);
}

/* ---- search ---- */

void
work_search(struct req *r, int *fd)
{
	const struct arg *a = args_find(&r->ask.args, "pattern");
	const char *kind = ask_text(r, "kind");
	struct bulk b = {0};
	char *name;

	if (kind[0] != '\0' && strcmp(kind, "name") != 0 &&
	    strcmp(kind, "content") != 0) {
		answer_error(r, C_ARGS_INVALID, "kind", NULL, 0);
		return;
	}
	if (a == NULL || a->s == NULL || a->len > ABX_PATTERN_MAX) {
		answer_error(r, C_ARGS_INVALID, "pattern", NULL, 0);
		return;
	}
	bulk_source(r, &b, &name);
	b.pattern = a->s; /* borrowed */
	if (strcmp(kind, "name") == 0)
		b.flags |= PF_NAMES;
	if (ask_bool(r, "regex"))
		b.flags |= PF_REGEX;
	if (ask_bool(r, "ignore_case"))
		b.flags |= PF_NOCASE;
	if ((b.flags & PF_NAMES) != 0 && (b.flags & PF_REGEX) != 0)
		answer_error(r, C_ARGS_INVALID, "regex", NULL, 0);
	else
		bulk_send(r, MP_SEARCH, &b);
}

/* ---- watch ---- */

void
work_watch(struct req *r, int *fd)
{
	struct bulk b = {0};
	char *name;

	bulk_source(r, &b, &name);
	if (ask_bool(r, "recursive"))
		b.flags |= PF_RECURSIVE;
	bulk_send(r, MP_WATCH, &b);
}

/* ---- archives ---- */

int
work_gzip(const struct req *r, const char *param)
{
	const char *s = ask_text(r, param);

	if (s[0] == '\0' || strcmp(s, "tar") == 0)
		return 0;
	return strcmp(s, "tar.gz") == 0 ? 1 : -1;
}

void
work_export(struct req *r, int *fd)
{
	int gzip = work_gzip(r, "format");
	struct bulk b = {0};
	char *name, none[] = "";

	if (gzip == -1) {
		answer_error(r, C_ARGS_INVALID, "format", NULL, 0);
		return;
	}
	bulk_source(r, &b, &name);
	name = none; /* names begin below the directory */
	if (gzip)
		b.flags |= PF_GZIP;
	bulk_send(r, MP_EXPORT, &b);
}

void
work_import(struct req *r, int *fd)
{
	int gzip = work_gzip(r, "format");
	struct bulk b = {0};

	if (gzip == -1) {
		answer_error(r, C_ARGS_INVALID, "format", NULL, 0);
		return;
	}
	if (r->ask.length != UINT64_MAX && r->ask.length > r->dec.max_bytes) {
		answer_error(r, C_LIM_MAX_BYTES, "path", NULL, 0);
		return;
	}
	bulk_fill(r, &b);
	b.dst = r->dec.paths[0].target;
	b.has_dst = 1;
	if (gzip)
		b.flags |= PF_GZIP;
	b.has_digest = r->ask.has_digest;
	memcpy(b.digest, r->ask.digest, sizeof(b.digest));
	bulk_send(r, MP_IMPORT, &b);
}

/* The format from the name of the archive: 1 gzip, 0 not, -1 neither. */
static int
suffix_gzip(const char *path)
{
	static const struct {
		const char *text;
		int gzip;
	} t[] = {{".tar", 0}, {".tar.gz", 1}, {".tgz", 1}};
	size_t i, n = strlen(path), k;

	for (i = 0; i < nitems(t); i++) {
		k = strlen(t[i].text);
		if (n > k && strcmp(path + n - k, t[i].text) == 0)
			return t[i].gzip;
	}
	return -1;
}

/* The sources and what they are called in the archive, all borrowed: C_OK, or
 * what is wrong with them. */
static enum code
archive_sources(const struct req *r, struct target *src, char **names, size_t n)
{
	const struct dpath *p = r->dec.paths;
	size_t i, k;

	for (i = 0; i < n; i++) {
		if (p[i].target.kind == FK_MISSING)
			return C_FS_NOT_FOUND;
		src[i] = p[i].target;
		names[i] = strrchr(p[i].canonical, '/') + 1;
		for (k = 0; k < i; k++)
			if (strcmp(names[i], names[k]) == 0)
				return C_ARGS_INVALID;
	}
	return n == 0 ? C_ARGS_INVALID : C_OK;
}

void
work_archive(struct req *r, int *fd)
{
	struct target src[ABX_MAX_RESOLVE];
	char *names[ABX_MAX_RESOLVE];
	size_t n = r->dec.npaths - 1;
	struct bulk b = {0};
	enum code c;
	int gzip;

	if (r->dec.npaths == 0 || n > ABX_MAX_RESOLVE ||
	    strcmp(r->dec.paths[n].param, "dest") != 0) {
		answer_error(r, C_FS_NOT_FOUND, "sources", NULL, 0);
		return;
	}
	if ((gzip = suffix_gzip(r->dec.paths[n].canonical)) == -1) {
		answer_error(r, C_ARGS_INVALID, "dest", NULL, 0);
		return;
	}
	if ((c = archive_sources(r, src, names, n)) != C_OK) {
		answer_error(r, c, "sources", NULL, 0);
		return;
	}
	bulk_fill(r, &b);
	b.src = src;
	b.nsrc = b.names.n = n;
	b.names.v = names;
	b.dst = r->dec.paths[n].target;
	b.has_dst = 1;
	b.flags |= r->dec.paths[n].flags & PF_CREATE_DIRS;
	if (gzip)
		b.flags |= PF_GZIP;
	bulk_send(r, MP_ARCHIVE, &b);
}
