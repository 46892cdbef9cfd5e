/*
 * SPDX-License-Identifier: ISC
 *
 * Opening names beneath a directory that is held, without ever following a
 * link or leaving it, and what an errno of the file system means to a client.
 */
#ifndef ABX_PATHD_BENEATH_H
#define ABX_PATHD_BENEATH_H

#include <sys/types.h>

#include "common/codes.h"
#include "common/payload.h"

/*
 * Open rel ("" for the directory itself, else "a/b" without empty, "." or ".."
 * components) beneath root; O_CLOEXEC and O_NOFOLLOW are added to flags.  A
 * link anywhere is ELOOP or ENOTDIR, but O_PATH opens a link that is the last
 * component itself.  fd or -1 with errno.  openat2(2) where the kernel has
 * it, else one openat(2) a component.
 */
int beneath_open(int root, const char *rel, int flags);
/* Open the directory that holds rel (not "") as O_PATH; *name points at the
 * last component within rel.  fd or -1 with errno. */
int beneath_parent(int root, const char *rel, const char **name);
/* 1 when rel is a path as beneath_open wants it, "" included. */
int beneath_valid(const char *rel);

/* For tests: 1 never uses openat2, 0 tries it again. */
void beneath_components(int on);
/* Try once; the name of the walk that is used, for the log. */
const char *beneath_probe(int root);

/* What an errno means: of a walk to something that was decided on already
 * (links and wrong kinds are changes), and of the act itself. */
enum code beneath_walk_code(int err);
enum code beneath_act_code(int err);

#define OURS_PREFIX ".abx-"
#define OURS_LEN 37 /* with 128 bits in hex behind it */
/* 1 when n bytes are a name such as we give to what is not whole yet.  No
 * caller may name or see it: what lies there has not its place yet, and is not
 * judged by it. */
int beneath_is_ours(const char *name, size_t n);

/* It is we who had no descriptor or memory left; that says nothing about the
 * file, which may not be passed over for it. */
int beneath_short(enum code);

/* enum facts_kind of a mode. */
uint8_t beneath_kind(mode_t);
struct stat;
/* C_OK when the name in dir is what was decided on, C_POL_PATH_CHANGED when it
 * is something else or gone; *st is set with C_OK. */
enum code beneath_same(
    int dir, const char *name, const struct target *, struct stat *st);

#endif
