/*
 * SPDX-License-Identifier: ISC
 *
 * Looking at the names of everything below a directory, and at those only that
 * may have changed since an earlier look.
 */
#ifndef ABX_PATHD_SURVEY_H
#define ABX_PATHD_SURVEY_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"

#define SURVEY_DEPTH 1024	    /* levels, one descriptor each */
#define SURVEY_KEPT (1024UL * 1024) /* bytes remembered of one tree */

/* What an entry callback may answer besides the codes. */
#define SURVEY_SKIP ((enum code)(C_COUNT)) /* do not enter it */

struct survey_ops {
	/* An entry of a directory that is read; name is in dir, path is
	 * canonical, type as of readdir(3) and never DT_UNKNOWN.  A directory
	 * is entered behind all entries of the one that it lies in.  Anything
	 * but C_OK ends the survey.  *plain is 1; 0 lets the directory be read
	 * again the next time, since this entry has to be seen again. */
	enum code (*entry)(void *arg, int dir, const char *name,
	    const char *path, unsigned char type, int *plain);
	/* A directory that is not read, since its n entries were plain. */
	enum code (*known)(void *arg, uint32_t n);
	/* A directory that cannot be entered, and why; C_OK passes over it. */
	enum code (*barred)(
	    void *arg, const char *path, uint64_t dev, uint64_t ino, enum code);
	/* 1 ends the survey with C_SRV_UNAVAILABLE.  NULL: never. */
	int (*stop)(void *arg);
};

/*
 * All below dir, a readable directory (borrowed) that is spelled path; links
 * are entries like files, other file systems are entered.  key: everything
 * beside a path on which the callbacks' answers rest.  C_OK or what ended it:
 * a code of ops, of the file system, C_FS_NAME_TOO_LONG for a tree that is too
 * deep, C_POL_PATH_CHANGED for a directory that became another.
 */
enum code survey(int dir, const char *path, const void *key, size_t klen,
    const struct survey_ops *, void *arg);

/* For tests: nanoseconds instead of STAMP_SETTLE_NS, and how many directories
 * were read and not remembered, counted on. */
extern uint64_t survey_settle;
extern unsigned survey_nread;

#endif
