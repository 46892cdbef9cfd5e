/*
 * SPDX-License-Identifier: ISC
 *
 * The directories of session workspaces, which lie side by side below one
 * root: which there are, how large they are, and removing one.  A name that is
 * no workspace's is left alone.
 */
#ifndef ABX_PATHD_SPACE_H
#define ABX_PATHD_SPACE_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/dir.h"
#include "pathd/pathd.h"

/* Do what is asked and fill in *ans, which the caller clears; stop may be
 * NULL.  SPACE_LIST: a row each that is there, without its size, and more when
 * there are too many.  SPACE_SIZE: a row each that was named and is there;
 * bytes are those that its files take on disk, and more says that not all of
 * it could be looked through.  SPACE_DROP: no row; one that is not there is
 * fine. */
void space_run(const struct pathd *, const struct space *,
    const struct stopper *, struct space_ans *ans);

#endif
