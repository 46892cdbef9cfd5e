/*
 * SPDX-License-Identifier: ISC
 *
 * Staging directories.  The name is in the journal as long as it exists, so
 * that a crash leaves nothing behind (design: paths, "Use").
 */
#include <sys/stat.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "pathd/beneath.h"
#include "pathd/roots.h"
#include "pathd/stage.h"
#include "pathd/tree.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* Write the name down: before the directory is made, and again when its inode
 * is known.  journal_add takes the directory of the path that it is given. */
static int
stage_journal(struct stage *s)
{
	return journal_add(s->pd, s->root, s->full, s->up.fd, s->name, s->ino);
}

static enum code
stage_make(struct stage *s)
{
	struct stat st;
	enum code code;

	journal_name(s->name);
	s->ino = 0;
	if (stage_journal(s) == -1 || mkdirat(s->up.fd, s->name, 0700) == -1) {
		code = beneath_act_code(errno);
		s->name[0] = '\0';
		journal_done(s->pd);
		return code;
	}
	s->fd = openat(s->up.fd, s->name, OPEN_DIR);
	if (s->fd == -1 || fstat(s->fd, &st) == -1)
		code = beneath_walk_code(errno);
	else {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		if (stage_journal(s) == 0)
			return C_OK;
		code = beneath_act_code(errno);
	}
	/* not ours to empty when it was swapped: it can only go when empty */
	(void)unlinkat(s->up.fd, s->name, AT_REMOVEDIR);
	s->name[0] = '\0';
	journal_done(s->pd);
	return code;
}

enum code
stage_open(struct stage *s, const struct pathd *pd, const struct target *t,
    uint16_t flags, int inside)
{
	struct stat st;
	enum code code;

	memset(s, 0, sizeof(*s));
	s->fd = s->up.fd = -1;
	s->pd = pd;
	if ((code = roots_locate(&pd->roots, t, &s->root, s->full)) != C_OK)
		return code;
	if (!inside && t->rel[0] == '\0')
		return C_POL_ROOT_PROTECTED;
	if (inside) {
		/* the last component stands for the staging directory */
		if (strlcat(s->full, s->full[0] == '\0' ? "x" : "/x",
			sizeof(s->full)) >= sizeof(s->full))
			return C_FS_NAME_TOO_LONG;
		flags &= (uint16_t)~PF_CREATE_DIRS;
	}
	if (parents_open(&s->up, s->root->fd, s->full,
		(flags & PF_CREATE_DIRS) != 0) == -1)
		return beneath_walk_code(errno);
	if (inside && (fstat(s->up.fd, &st) == -1 || st.st_dev != t->dev ||
			  st.st_ino != t->ino))
		return C_POL_PATH_CHANGED;
	if ((code = stage_make(s)) != C_OK)
		parents_undo(&s->up);
	return code;
}

enum code
stage_in_place(const struct stage *s)
{
	return parents_in_place(&s->up) ? C_OK : beneath_walk_code(errno);
}

enum code
stage_commit(
    struct stage *s, const struct target *t, uint16_t flags, mode_t mode)
{
	struct stat st;
	enum code code;
	int rc;

	if (fstatat(s->up.fd, s->name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    st.st_dev != s->dev || st.st_ino != s->ino)
		return C_POL_PATH_CHANGED;
	if ((code = stage_in_place(s)) != C_OK)
		return code;
	if (fchmod(s->fd, mode & 0777) == -1)
		return beneath_act_code(errno);
	if (t->kind == FK_MISSING || (flags & PF_NOREPLACE) != 0) {
		rc = renameat2(
		    s->up.fd, s->name, s->up.fd, s->up.name, RENAME_NOREPLACE);
		if (rc == -1 && errno == EINVAL &&
		    (rc = mkdirat(s->up.fd, s->up.name, 0700)) == 0)
			rc = renameat(s->up.fd, s->name, s->up.fd, s->up.name);
	} else {
		code = beneath_same(s->up.fd, s->up.name, t, &st);
		if (code == C_OK &&
		    roots_is(&s->pd->roots, st.st_dev, st.st_ino))
			code = C_POL_ROOT_PROTECTED;
		if (code != C_OK)
			return code;
		rc = renameat(s->up.fd, s->name, s->up.fd, s->up.name);
	}
	if (rc == -1)
		return beneath_act_code(errno);
	if (stage_in_place(s) != C_OK &&
	    renameat2(
		s->up.fd, s->up.name, s->up.fd, s->name, RENAME_NOREPLACE) == 0)
		return C_POL_PATH_CHANGED;
	s->name[0] = '\0';
	journal_done(s->pd);
	return C_OK;
}

void
stage_close(struct stage *s)
{
	if (s->name[0] != '\0') {
		if (tree_remove(s->pd, s->up.fd, s->name) != C_OK)
			log_warnx("a temporary directory could not be removed");
		journal_done(s->pd);
		parents_undo(&s->up);
	}
	if (s->fd != -1)
		close(s->fd);
	s->fd = -1;
	if (s->up.fd != -1)
		parents_close(&s->up);
}
