/*
 * SPDX-License-Identifier: ISC
 *
 * The work of admitted file operations: orders to pathd, made from the
 * decision alone.
 */
#include "monitor/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/frame.h"
#include "common/log.h"
#include "monitor/mon.h"
#include "monitor/proc.h"
#include "monitor/workspace.h"

static const struct facts *
facts_of(const struct req *r, size_t path)
{
	return &r->facts[r->dec.paths[path].item];
}

void
work_send(
    struct req *r, struct peer *p, uint16_t type, int fd, const struct wbuf *w)
{
	req_owed(r, p);
	req_enter(r, RS_WORK);
	if (!peer_can_take(p)) {
		if (fd != -1)
			close(fd);
	} else if (peer_send(p, type, r->rid, fd, w) == 0)
		return;
	req_owed(r, NULL);
	answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
}

/* ---- one thing again, opened ---- */

enum fd_kind
work_wanted(uint8_t flags)
{
	if ((flags & RESOLVE_OPEN) != 0)
		return FDK_FILE_R;
	return (flags & RESOLVE_OPENDIR) != 0 ? FDK_DIR : FDK_NONE;
}

/* The item that is opened in a second step. */
static size_t
reopened_item(const struct req *r)
{
	return r->dec.cwd_item >= 0 ? (size_t)r->dec.cwd_item
				    : r->dec.paths[0].item;
}

const struct plan_item *
work_reopening(const struct req *r)
{
	return &r->plan.items[reopened_item(r)];
}

void
work_reopen(struct req *r, size_t item, uint8_t flags)
{
	const struct plan_item *pi = &r->plan.items[item];
	struct resolve_item it = {0};
	struct resolve v = {0};
	struct wbuf w;

	it.path = r->facts[item].path; /* canonical: no link on it */
	it.nofollow = 1;
	it.refs = pi->refs;
	it.nrefs = pi->nrefs;
	v.flags = flags;
	v.v = &it;
	v.n = 1;
	r->wanted = work_wanted(flags);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	resolve_put(&w, &v);
	work_send(r, r->snap->pathd, MP_RESOLVE, -1, &w);
	if (r->state == RS_WORK)
		req_enter(r, RS_REOPEN);
	wbuf_free(&w);
}

/* ---- download ---- */

static void
answer_file(struct req *r, const struct facts *f, int *fd)
{
	struct ans a = {0};

	if (f->size > r->dec.max_bytes) {
		answer_error(r, C_LIM_MAX_BYTES, "path", NULL, 0);
		return;
	}
	a.kind = ANS_FILE;
	a.status = 200;
	a.size = f->size;
	a.mtime = f->mtime;
	a.mtime_ns = f->mtime_ns;
	a.dev = f->dev;
	a.ino = f->ino;
	if ((a.body = strdup(plan_spelling(&r->plan, "path"))) == NULL) {
		answer_error(r, C_SRV_UNAVAILABLE, NULL, NULL, 1);
		return;
	}
	answer_send(r, &a, *fd);
	*fd = -1;
	ans_clear(&a);
}

/* Why pathd could not open what the policy admits. */
static enum code
open_error(int err)
{
	switch (err) {
	case EACCES:
	case EPERM:
		return C_FS_PERMISSION;
	case EMFILE:
	case ENFILE:
		return C_FS_TOO_MANY_OPEN;
	case ELOOP:
	case ENOTDIR:
	case ENOENT:
	case EXDEV:
	case ESTALE:
		/* it never held still */
		return C_POL_PATH_CHANGED;
	default:
		return C_FS_IO;
	}
}

static void
work_download(struct req *r, int *fd)
{
	const struct facts *f = facts_of(r, 0);

	if (r->plan.nitems > 1)
		work_reopen(r, r->dec.paths[0].item, RESOLVE_OPEN);
	else if (*fd != -1)
		answer_file(r, f, fd);
	else
		answer_error(r, open_error(f->err), "path", NULL, 0);
}

void
work_reopened(struct req *r, const struct facts *f, int *fd)
{
	int run = r->dec.cwd_item >= 0, made = r->making;
	const struct facts *was = &r->facts[reopened_item(r)];
	const char *param = run ? "cwd" : r->dec.paths[0].param;

	req_owed(r, NULL);
	r->making = 0;
	if (f->status != FS_OK || f->missing != 0 ||
	    f->kind != (made ? FK_DIR : was->kind) ||
	    (!made && (f->dev != was->dev || f->ino != was->ino)))
		answer_error(r, C_POL_PATH_CHANGED, param, NULL, 0);
	else if (*fd == -1)
		answer_error(r, open_error(f->err), param, NULL, 0);
	else if (run) {
		r->dec.cwd.kind = f->kind;
		r->dec.cwd.dev = f->dev;
		r->dec.cwd.ino = f->ino;
		work_run_reopened(r, fd);
	} else
		answer_file(r, f, fd);
}

/* ---- stat ---- */

static void
work_stat(struct req *r, int *fd)
{
	const struct facts *f = facts_of(r, 0);
	struct list_entry e = {0};
	const char *name = strrchr(f->path, '/') + 1;
	struct wbuf w;

	e.type = f->kind;
	e.mode = f->mode;
	e.size = f->size;
	e.mtime = f->mtime;
	e.mtime_ns = f->mtime_ns;
	e.dev = f->dev;
	e.ino = f->ino;
	e.name = *name == '\0' ? "/" : name;
	e.namelen = strlen(e.name);
	wbuf_init(&w, 64 * 1024);
	entry_put(&w, plan_spelling(&r->plan, "path"), 0, &e);
	answer_json(r, 200, wbuf_text(&w));
}

/* ---- list ---- */

static void
work_list(struct req *r, int *fd)
{
	const struct dpath *p = &r->dec.paths[0];
	struct list l = {0};
	struct wbuf w;
	int64_t depth;

	if (ask_has(r, "sort") && strcmp(ask_text(r, "sort"), "name") != 0) {
		answer_error(r, C_ARGS_INVALID, "sort", NULL, 0);
		return;
	}
	l.target = p->target;
	l.flags = p->flags;
	l.depth = 1;
	if (policy_arg_int(&r->ask.args, "depth", &depth))
		l.depth = depth > UINT16_MAX ? UINT16_MAX : (uint16_t)depth;
	else if (ask_bool(r, "recursive"))
		l.depth = UINT16_MAX;
	l.max_entries = r->dec.max_entries > UINT32_MAX
			    ? UINT32_MAX
			    : (uint32_t)r->dec.max_entries;
	l.refs = r->dec.refs;
	l.nrefs = r->dec.nrefs;
	l.deny = r->dec.deny;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	list_put(&w, &l);
	work_send(r, r->snap->pathd, MP_LIST, -1, &w);
	wbuf_free(&w);
}

/* ---- upload ---- */

/* "0644" or "644" into permission bits: 0 or -1. */
static int
parse_mode(const char *s, uint32_t *mode)
{
	uint32_t v = 0;
	size_t i, n = strlen(s);

	if (n < 3 || n > 4)
		return -1;
	for (i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '7')
			return -1;
		v = v << 3 | (uint32_t)(s[i] - '0');
	}
	*mode = v;
	return v > 0777 ? -1 : 0;
}

enum code
work_preconditions(const struct req *r, uint16_t *flags)
{
	const struct facts *f = facts_of(r, 0);
	const char *match = r->ask.if_match, *none = r->ask.if_none_match;
	int here = f->kind != FK_MISSING;
	char etag[ETAG_SIZE];

	if (match[0] == '\0')
		match = ask_text(r, "if_match");
	etag_make(etag, f->dev, f->ino, f->size, f->mtime, f->mtime_ns);
	if (strcmp(none, "*") == 0) {
		if (here)
			return C_FS_CHANGED;
		*flags |= PF_NOREPLACE;
	} else if (none[0] != '\0') {
		/* what is no list of tags is not taken for none */
		if (etag_listed(none, strlen(none), here ? etag : "", 1) != 0)
			return C_FS_CHANGED;
		if (here)
			*flags |= PF_EXACT;
	}
	if (match[0] == '\0')
		return C_OK;
	*flags |= PF_EXACT;
	return here && etag_listed(match, strlen(match), etag, 0) == 1
		   ? C_OK
		   : C_FS_CHANGED;
}

static void
work_upload(struct req *r, int *fd)
{
	const struct dpath *p = &r->dec.paths[0];
	struct put q = {0};
	struct wbuf w;
	enum code c;

	q.target = p->target;
	q.flags = p->flags;
	q.max_bytes = r->dec.max_bytes;
	q.mode = UINT32_MAX;
	if (ask_bool(r, "durable"))
		q.flags |= PF_DURABLE;
	if (ask_bool(r, "checksum"))
		q.flags |= PF_CHECKSUM;
	if (r->ask.has_digest) {
		q.flags |= PF_DIGEST;
		memcpy(q.digest, r->ask.digest, sizeof(q.digest));
	}
	if (ask_has(r, "mode") &&
	    parse_mode(ask_text(r, "mode"), &q.mode) == -1) {
		answer_error(r, C_ARGS_INVALID, "mode", NULL, 0);
		return;
	}
	if ((c = work_preconditions(r, &q.flags)) != C_OK) {
		answer_error(r, c, "path", NULL, 0);
		return;
	}
	if (r->ask.length != UINT64_MAX && r->ask.length > q.max_bytes) {
		answer_error(r, C_LIM_MAX_BYTES, "path", NULL, 0);
		return;
	}
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	put_put(&w, &q);
	work_send(r, r->snap->pathd, MP_PUT, -1, &w);
	wbuf_free(&w);
}

/* ---- mkdir, move, delete ---- */

static void
work_mutate(struct req *r, uint16_t type, uint16_t flags)
{
	struct mutate m = {0};
	struct wbuf w;

	m.src = r->dec.paths[0].target;
	m.flags = flags | (r->dec.paths[0].flags & PF_HARDLINKS);
	m.mode = UINT32_MAX;
	m.deny = r->dec.deny;
	if (r->dec.npaths > 1) {
		m.dst = r->dec.paths[1].target;
		m.flags |= r->dec.paths[1].flags & PF_CREATE_DIRS;
	}
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	mutate_put(&w, &m);
	work_send(r, r->snap->pathd, type, -1, &w);
	wbuf_free(&w);
}

static void
work_mkdir(struct req *r, int *fd)
{
	work_mutate(r, MP_MKDIR, ask_bool(r, "parents") ? PF_CREATE_DIRS : 0);
}

static void
work_move(struct req *r, int *fd)
{
	work_mutate(r, MP_RENAME, ask_bool(r, "overwrite") ? 0 : PF_NOREPLACE);
}

static void
work_delete(struct req *r, int *fd)
{
	uint16_t flags = 0;
	enum code c;

	if ((c = work_preconditions(r, &flags)) != C_OK) {
		answer_error(r, c, "path", NULL, 0);
		return;
	}
	work_mutate(r, MP_UNLINK, ask_bool(r, "recursive") ? PF_RECURSIVE : 0);
}

/* ---- table ---- */

static void
work_health(struct req *r, int *fd)
{
	core_health(r);
}

static void
work_capabilities(struct req *r, int *fd)
{
	core_capabilities(r);
}

static void
work_check(struct req *r, int *fd)
{
	core_check(r);
}

static void
work_info(struct req *r, int *fd)
{
	host_info(r);
}

static void
work_posture(struct req *r, int *fd)
{
	host_posture(r);
}

static const struct {
	uint16_t op;
	void (*f)(struct req *, int *);
} works[] = {
    {OP_core_health, work_health},
    {OP_core_capabilities, work_capabilities},
    {OP_core_check, work_check},
    {OP_core_posture, work_posture},
    {OP_system_info, work_info},
    {OP_files_list, work_list},
    {OP_files_stat, work_stat},
    {OP_files_download, work_download},
    {OP_files_upload, work_upload},
    {OP_files_mkdir, work_mkdir},
    {OP_files_edit, work_edit},
    {OP_files_search, work_search},
    {OP_files_watch, work_watch},
    {OP_files_export, work_export},
    {OP_files_import, work_import},
    {OP_files_archive, work_archive},
    {OP_files_copy, work_copy},
    {OP_files_move, work_move},
    {OP_files_delete, work_delete},
    {OP_commands_run, work_run_start},
    {OP_process_start, work_run_start},
    {OP_process_list, proc_list},
    {OP_process_get, proc_get},
    {OP_process_output, proc_output},
    {OP_process_stdin, proc_stdin},
    {OP_process_wait, proc_wait},
    {OP_process_signal, proc_signal},
    {OP_workspace_list, workspace_list},
    {OP_workspace_delete, workspace_delete},
};

void
work_start(struct req *r, int *fd)
{
	size_t i;

	for (i = 0; i < nitems(works); i++)
		if (works[i].op == r->call.op) {
			works[i].f(r, fd);
			return;
		}
	/* the policy mounts nothing that is not in the table */
	log_warnx("no work for %s", ops[r->call.op].id);
	answer_error(r, C_SRV_INTERNAL, NULL, NULL, 0);
}
