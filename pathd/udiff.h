/*
 * SPDX-License-Identifier: ISC
 *
 * Unified diffs of two texts in memory.  Pure.
 */
#ifndef ABX_PATHD_UDIFF_H
#define ABX_PATHD_UDIFF_H

#include "common/wire.h"
#include "pathd/replace.h"

/* Hunks with three lines around them, without file names in front.  Texts
 * that differ in too many lines are shown as one replacement of all that
 * differs.  0, or -1 when out of memory (an error of w stays in w: more than
 * its bound, or out of memory). */
int udiff(struct wbuf *w, const struct text *from, const struct text *to);

#endif
