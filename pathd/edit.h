/*
 * SPDX-License-Identifier: ISC
 *
 * EDIT: replacing text in a file, all of it or nothing.
 */
#ifndef ABX_PATHD_EDIT_H
#define ABX_PATHD_EDIT_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/pathd.h"

#define EDIT_MAX (64 * 1024 * 1024) /* bytes of a file that is edited */

/* C_OK with *fin filled in (edit_fin_clear by the caller), else the file is
 * as it was. */
enum code edit_run(
    const struct pathd *, const struct edit *, struct edit_fin *);

#endif
