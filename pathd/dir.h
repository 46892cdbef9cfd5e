/*
 * SPDX-License-Identifier: ISC
 *
 * MKDIR, UNLINK and RENAME: acts on names, through the descriptor of the
 * directory that holds them.
 */
#ifndef ABX_PATHD_DIR_H
#define ABX_PATHD_DIR_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/pathd.h"

/* Long work asks this now and then: 1 to give up.  stop may be NULL. */
struct stopper {
	int (*stop)(void *);
	void *arg;
};

/* Each does one request and fills in *done; nothing is changed unless the
 * code is C_OK, save for a recursive deletion that fails half-way (count then
 * says how much is gone). */
void dir_mkdir(const struct pathd *, const struct mutate *, struct done *);
void dir_unlink(const struct pathd *, const struct mutate *,
    const struct stopper *, struct done *);
void dir_rename(const struct pathd *, const struct mutate *,
    const struct stopper *, struct done *);

/* 1 when the request may take long and belongs into a worker. */
int dir_unlink_long(const struct pathd *, const struct mutate *);
int dir_rename_long(const struct mutate *);

#endif
