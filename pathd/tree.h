/*
 * SPDX-License-Identifier: ISC
 *
 * Walking everything below a directory, through directory descriptors that
 * are opened again without following at each level.  Iterative and bounded.
 */
#ifndef ABX_PATHD_TREE_H
#define ABX_PATHD_TREE_H

#include "common/codes.h"

#define TREE_DEPTH 1024 /* levels, one descriptor each */

/* What an entry callback may answer besides the codes. */
#define TREE_SKIP ((enum code)(C_COUNT))     /* do not enter it */
#define TREE_DONE ((enum code)(C_COUNT + 1)) /* end the walk with C_OK */

struct pathd;
struct stat;
struct tree_ops {
	/* An entry, before it is entered when it is a directory; name is in
	 * dir, path is canonical.  Anything but C_OK ends the walk. */
	enum code (*entry)(void *arg, int dir, const char *name,
	    const char *path, const struct stat *);
	/* A directory that cannot be entered, after its entry, and why; C_OK
	 * passes over it.  NULL: ends the walk, as want of descriptors or
	 * memory does in any case. */
	enum code (*barred)(void *arg, const char *path, enum code);
	/* A directory whose entries were all seen.  NULL: not asked. */
	enum code (*leave)(void *arg, int dir, const char *name);
	/* 1 ends the walk with C_SRV_UNAVAILABLE.  NULL: never. */
	int (*stop)(void *arg);
	int cross; /* go into other file systems too */
};

/* Walk below dir, a readable directory (borrowed) that is spelled path.  C_OK
 * or what ended it: a code of ops, of the file system, C_FS_NAME_TOO_LONG for
 * a tree that is too deep, C_FS_PERMISSION at another file system (cross: 0).
 * When the callbacks remove entries, some file systems let others be missed. */
enum code tree_walk(
    int dir, const char *path, const struct tree_ops *, void *arg);
/* Remove the directory name of dir, which is one of our own making, and all
 * in it, with a beat each: C_OK or what was in the way. */
enum code tree_remove(const struct pathd *, int dir, const char *name);

#endif
