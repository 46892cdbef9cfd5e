/*
 * SPDX-License-Identifier: ISC
 *
 * One statement against what pathd found: first everything that policy says,
 * then, apart from it, what the file system itself would answer.  Facts are
 * never taken on trust: where they disagree with what was asked, nothing is
 * allowed.  Pure.
 */
#include <errno.h>
#include <string.h>

#include "policy/engine.h"

/* ---- policy ---- */

int
facts_sound(
    const struct policy *p, const struct plan_item *item, const struct facts *f)
{
	const struct rootref *ref;
	const char *tail;
	size_t n;

	if (f->path == NULL || f->ref >= item->nrefs ||
	    !path_is_normal(f->path))
		return 0;
	ref = &item->refs[f->ref];
	if (ref->root >= p->nroots)
		return 0;
	tail = path_below(p->roots[ref->root].canon, f->path);
	if (tail != NULL && ref->sub[0] != '\0') {
		n = strlen(ref->sub);
		if (strncmp(tail, ref->sub, n) != 0 ||
		    (tail[n] != '\0' && tail[n] != '/'))
			return 0;
		tail += tail[n] == '/' ? n + 1 : n;
	}
	if (tail == NULL)
		return 0;
	/* rel spells the root, with or without the slash behind it */
	n = (size_t)(tail - f->path);
	if (f->rel != n && (f->rel + 1U != n || f->path[f->rel] != '/'))
		return 0;
	return (f->kind == FK_MISSING) == (f->missing > 0);
}

const char *
facts_tail(const struct facts *f)
{
	const char *tail = f->path + f->rel;

	return *tail == '/' ? tail + 1 : tail;
}

static int
is_a_root(const struct policy *p, const struct facts *f)
{
	size_t i;

	if (*facts_tail(f) == '\0')
		return 1;
	if (f->kind != FK_DIR)
		return 0;
	for (i = 0; i < p->nroots; i++)
		if (strcmp(p->roots[i].canon, f->path) == 0)
			return 1;
	return 0;
}

/* A root may be asked to be made (and exists) or to be filled; anything else
 * that changes it is refused. */
static int
root_guarded(
    const struct policy *p, const struct facts *f, uint16_t op, unsigned roles)
{
	if ((roles & R_DELETE) == 0 &&
	    ((roles & R_WRITE) == 0 || op == OP_files_mkdir ||
		op == OP_files_import))
		return 0;
	return is_a_root(p, f);
}

int
ceiling_admits(const struct policy *p, const char *path)
{
	size_t i;

	for (i = 0; i < p->ceiling.roots.n; i++)
		if (path_below(p->ceiling.roots.v[i], path) != NULL)
			return 1;
	return !p->ceiling.has_roots;
}

/* The directory that a placeholder stands for is not there. */
static int
root_missing(const struct plan_item *item, const struct facts *f)
{
	const char *tail = facts_tail(f);
	size_t n = *tail != '\0';

	if (item->refs[f->ref].sub[0] == '\0')
		return 0;
	for (; *tail != '\0'; tail++)
		n += *tail == '/';
	return f->missing > n;
}

/* Places that a walk came to by links and left again must be as good as those
 * where walks end, or it would tell that they are there. */
static enum code
via_admit(const struct policy *p, const struct pscope *s, const struct facts *f)
{
	const char *path;
	size_t i;

	for (i = 0; i < f->via.n; i++) {
		path = f->via.v[i];
		if (!ceiling_admits(p, path))
			return C_POL_PATH_NOT_ALLOWED;
		if (s->nosymlinks)
			return C_POL_SYMLINK_DENIED;
		if (pglobs_cover(p, &s->deny, s->roots, s->nroots, path))
			return C_POL_PATH_DENIED;
	}
	return C_OK;
}

/* A walk that did not come to its end: where it ended must be as good as any
 * other place, or the reason would tell what is there. */
static enum code
ended_admit(
    const struct policy *p, const struct pscope *s, const struct facts *f)
{
	if (f->path == NULL || f->path[0] == '\0')
		return C_OK;
	if (!ceiling_admits(p, f->path))
		return C_POL_PATH_NOT_ALLOWED;
	if (s->nosymlinks && f->symlink)
		return C_POL_SYMLINK_DENIED;
	return pglobs_cover(p, &s->deny, s->roots, s->nroots, f->path)
		   ? C_POL_PATH_DENIED
		   : C_OK;
}

enum code
path_admit(const struct policy *p, const struct pscope *s,
    const struct plan_item *item, const struct facts *f, uint16_t op,
    unsigned roles)
{
	int changes = (roles & (R_WRITE | R_DELETE)) != 0;
	enum code code;

	/* Without facts the path's own spelling has to do. */
	if (f->status != FS_OK && !ceiling_admits(p, item->path))
		return C_POL_PATH_NOT_ALLOWED;
	if ((code = via_admit(p, s, f)) != C_OK ||
	    (f->status != FS_OK && (code = ended_admit(p, s, f)) != C_OK))
		return code;
	switch (f->status) {
	case FS_OK:
		break;
	case FS_INVALID:
		return C_POL_PATH_INVALID;
	case FS_ERRNO:
		return changes && s->readonly ? C_POL_READ_ONLY : C_OK;
	default:
		return C_POL_PATH_NOT_ALLOWED;
	}
	if (!facts_sound(p, item, f) || !ceiling_admits(p, f->path) ||
	    (!s->makes && root_missing(item, f)))
		return C_POL_PATH_NOT_ALLOWED;
	if (s->nosymlinks && f->symlink)
		return C_POL_SYMLINK_DENIED;
	if (pglobs_cover(p, &s->deny, s->roots, s->nroots, f->path))
		return C_POL_PATH_DENIED;
	if (changes && s->readonly)
		return C_POL_READ_ONLY;
	if (root_guarded(p, f, op, roles))
		return C_POL_ROOT_PROTECTED;
	if (f->kind == FK_FILE && f->nlink > 1 && !s->hardlinks &&
	    (roles & (R_READ | R_WRITE)) != 0)
		return C_POL_HARDLINK_DENIED;
	return C_OK;
}

/* ---- the file system ---- */

static enum code
errno_code(int32_t err)
{
	switch (err) {
	case ENOENT:
		return C_FS_NOT_FOUND;
	case ENOTDIR:
		return C_FS_NOT_DIRECTORY;
	case EACCES:
	case EPERM:
		return C_FS_PERMISSION;
	case ENAMETOOLONG:
		return C_FS_NAME_TOO_LONG;
	case EMFILE:
	case ENFILE:
		return C_FS_TOO_MANY_OPEN;
	case ETIMEDOUT:
		return C_FS_TIMEOUT;
	default:
		return C_FS_IO;
	}
}

/* The paths of a call with their facts and scopes. */
struct given {
	const struct call *call;
	const struct pscope *scope[2];
	const struct facts *f[2];
	const char *name[2];
};

static enum code
parents_outcome(const struct facts *f, int make)
{
	return f->missing > 1 && !make ? C_FS_NOT_FOUND : C_OK;
}

static enum code
file_kind(const struct facts *f)
{
	if (f->kind == FK_DIR)
		return C_FS_IS_DIRECTORY;
	return f->kind == FK_FILE ? C_OK : C_POL_NOT_REGULAR;
}

static enum code
out_list(const struct given *g)
{
	if (g->f[0]->missing > 0)
		return C_FS_NOT_FOUND;
	return g->f[0]->kind == FK_DIR ? C_OK : C_FS_NOT_DIRECTORY;
}

static enum code
out_exists(const struct given *g)
{
	return g->f[0]->missing > 0 ? C_FS_NOT_FOUND : C_OK;
}

static enum code
out_download(const struct given *g)
{
	return g->f[0]->missing > 0 ? C_FS_NOT_FOUND : file_kind(g->f[0]);
}

static enum code
out_upload(const struct given *g)
{
	if (g->f[0]->missing == 0)
		return file_kind(g->f[0]);
	return parents_outcome(g->f[0], g->scope[0]->create_dirs);
}

static enum code
out_mkdir(const struct given *g)
{
	if (g->f[0]->missing == 0)
		return C_FS_EXISTS;
	return parents_outcome(
	    g->f[0], g->scope[0]->create_dirs &&
			 policy_arg_bool(g->call->args, "parents"));
}

static enum code
out_move(const struct given *g)
{
	const struct facts *src = g->f[0], *dst = g->f[1];

	if (src->missing > 0)
		return C_FS_NOT_FOUND;
	if (src->kind == FK_DIR && path_below(src->path, dst->path) != NULL)
		return C_ARGS_INVALID;
	if (dst->missing > 0)
		return parents_outcome(dst, g->scope[1]->create_dirs);
	if (!policy_arg_bool(g->call->args, "overwrite"))
		return C_FS_EXISTS;
	if (dst->kind == FK_DIR && src->kind != FK_DIR)
		return C_FS_IS_DIRECTORY;
	return dst->kind != FK_DIR && src->kind == FK_DIR ? C_FS_NOT_DIRECTORY
							  : C_OK;
}

static enum code
out_copy(const struct given *g)
{
	enum code code = out_move(g);

	if (code != C_OK || g->f[0]->kind == FK_DIR)
		return code;
	return g->f[0]->kind == FK_FILE ? C_OK : C_POL_NOT_REGULAR;
}

static const struct {
	uint16_t op;
	const char *params[2];
	enum code (*out)(const struct given *);
} outcomes[] = {
    {OP_files_list, {"path"}, out_list},
    {OP_files_search, {"root"}, out_list},
    {OP_files_watch, {"path"}, out_list},
    {OP_files_export, {"path"}, out_list},
    {OP_files_import, {"path"}, out_list},
    {OP_files_archive, {"dest"}, out_upload},
    {OP_files_stat, {"path"}, out_exists},
    {OP_files_download, {"path"}, out_download},
    {OP_files_upload, {"path"}, out_upload},
    {OP_files_mkdir, {"path"}, out_mkdir},
    {OP_files_edit, {"path"}, out_download},
    {OP_files_copy, {"src", "dst"}, out_copy},
    {OP_files_move, {"src", "dst"}, out_move},
    {OP_files_delete, {"path"}, out_exists},
};

/* The value of that parameter, or -1. */
static long
value_find(const struct plan_priv *priv, const char *name)
{
	size_t i;

	for (i = 0; i < priv->nvalues; i++)
		if (strcmp(priv->values[i].param->name, name) == 0)
			return (long)i;
	return -1;
}

static enum code
op_outcome(const struct call *call, const struct plan_priv *priv,
    const struct pcand *cand, const struct facts *facts, size_t row,
    const char **param)
{
	struct given g = {.call = call};
	enum code code;
	size_t i;
	long v;

	for (i = 0; i < 2 && outcomes[row].params[i] != NULL; i++) {
		v = value_find(priv, outcomes[row].params[i]);
		if (v < 0)
			return C_ARGS_MISSING;
		g.f[i] = &facts[cand->slots[v].item];
		g.scope[i] = rule_scope(cand->st->rule, priv->values[v].param);
	}
	code = outcomes[row].out(&g);
	if (code != C_OK && code != C_ARGS_INVALID)
		*param = outcomes[row].params[i == 2 && g.f[0]->missing == 0];
	return code;
}

/* A working directory must be one; a workspace will be. */
static enum code
cwd_outcome(const struct pscope *s, const struct facts *f)
{
	if (f->status == FS_ERRNO)
		return errno_code(f->err);
	if (s != NULL && s->makes && f->missing == 1 && *facts_tail(f) == '\0')
		return C_OK;
	if (f->missing > 0)
		return C_FS_NOT_FOUND;
	return f->kind == FK_DIR ? C_OK : C_FS_NOT_DIRECTORY;
}

enum code
fs_outcome(const struct policy *p, const struct call *call,
    const struct plan *plan, const struct pcand *cand,
    const struct facts *facts, const char **param)
{
	const struct plan_priv *priv = plan->priv;
	enum code code;
	size_t i;

	if (cand->cwd.item >= 0) {
		code = cwd_outcome(cand_cwd(cand), &facts[cand->cwd.item]);
		*param = "cwd";
		if (code != C_OK)
			return code;
	}
	for (i = 0; i < priv->nvalues; i++) {
		const struct facts *f = &facts[cand->slots[i].item];

		*param = priv->values[i].param->name;
		if (f->status == FS_ERRNO)
			return errno_code(f->err);
		if ((priv->values[i].param->roles & R_CWD) != 0 &&
		    (code = cwd_outcome(cand_cwd(cand), f)) != C_OK)
			return code;
	}
	*param = NULL;
	for (i = 0; i < nitems(outcomes); i++)
		if (outcomes[i].op == call->op)
			return op_outcome(call, priv, cand, facts, i, param);
	return C_OK;
}
