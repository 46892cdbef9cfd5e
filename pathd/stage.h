/*
 * SPDX-License-Identifier: ISC
 *
 * A directory that is filled under a temporary name beside its place, and
 * gets its own name, or whose entries get theirs, only when it is whole.
 */
#ifndef ABX_PATHD_STAGE_H
#define ABX_PATHD_STAGE_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/journal.h"
#include "pathd/parents.h"
#include "pathd/pathd.h"

struct stage {
	const struct pathd *pd; /* borrowed */
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1];	 /* of the target, below root */
	struct parents up;		 /* the directory that holds both */
	char name[JOURNAL_NAME_LEN + 1]; /* temporary, "" when there is none */
	int fd;				 /* readable, -1 */
	dev_t dev;
	ino_t ino;
};

/* Make it beside the target (or, with inside, in that existing directory):
 * C_OK or why not.  stage_close in either case. */
enum code stage_open(struct stage *, const struct pathd *,
    const struct target *, uint16_t flags, int inside);
/* C_OK when the directory that holds it is still where it was decided on. */
enum code stage_in_place(const struct stage *);
/* Give it the target's name, with that mode: C_OK, else nothing is changed.
 * Only an empty directory is ever replaced. */
enum code stage_commit(
    struct stage *, const struct target *, uint16_t flags, mode_t mode);
/* Close; what was not committed is removed. */
void stage_close(struct stage *);

#endif
