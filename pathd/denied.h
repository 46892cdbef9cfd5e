/*
 * SPDX-License-Identifier: ISC
 *
 * The entries below a directory that a command must not see.
 */
#ifndef ABX_PATHD_DENIED_H
#define ABX_PATHD_DENIED_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/dir.h"
#include "pathd/pathd.h"

#define DENIED_SEEN_MAX 200000	     /* entries looked at for one answer */
#define DENIED_BYTES_MAX (64 * 1024) /* of all paths of one answer */

/*
 * The topmost denied entries below the directory (design: sandbox, "Deny
 * globs reach programs too"): a denied directory stands for all that is in
 * it, for a denied link stands what it leads to, if that lies below too, and
 * a directory that cannot be read counts as denied whole, since nobody knows
 * what it holds.  File systems mounted below are looked into.  C_OK;
 * C_SBX_TOO_MANY_DENIED; else what was in the way.  covers_clear in any case.
 */
enum code denied_find(const struct pathd *, const struct denied *,
    const struct stopper *, struct covers *);

#endif
