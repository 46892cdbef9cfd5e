/*
 * SPDX-License-Identifier: ISC
 *
 * The table of root directories, and where a target lies in it.
 */
#ifndef ABX_PATHD_ROOTS_H
#define ABX_PATHD_ROOTS_H

#include <sys/types.h>

#include "common/codes.h"
#include "pathd/walk.h"

/* Add a root by its configured, absolute spelling: 0, or -1 when out of
 * memory, not absolute, or the id is taken. */
int roots_add(struct walk_roots *, uint32_t id, const char *path);
/* Open them all as whoever we are now.  One that fails keeps its errno. */
void roots_open(struct walk_roots *);
void roots_clear(struct walk_roots *);
/* Payload of ROOTS_OK. */
void roots_put(struct wbuf *, const struct walk_roots *);
/* 1 when this is the directory of a root. */
int roots_is(const struct walk_roots *, dev_t, ino_t);

/* A target's root and its path below that root's own directory (sub
 * included).  C_OK; C_SRV_UNAVAILABLE when the root could not be opened or is
 * unknown, C_FS_NAME_TOO_LONG. */
enum code roots_locate(const struct walk_roots *, const struct target *,
    const struct walk_root **, char full[ABX_PATH_MAX + 1]);
/* The canonical path of that: new string, NULL when out of memory. */
char *roots_path(const struct walk_root *, const char *full);

#endif
