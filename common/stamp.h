/*
 * SPDX-License-Identifier: ISC
 *
 * Whether the times of a directory tell of every change to it.
 */
#ifndef ABX_STAMP_H
#define ABX_STAMP_H

#include "common/recall.h"

/* A directory that was changed so shortly before is read again each time:
 * more than any clock of a file system here takes for a tick (a second). */
#define STAMP_SETTLE_NS 2000000000

/* Has nobody set the clock since the last call?  If somebody has, or it is the
 * first call, everything is forgotten (recall_clear).  0 when it cannot be
 * told at all, and then nothing may be remembered.  To be asked before the
 * time is. */
int stamp_steady(void);
/* The directory name of dir ("": dir itself) as it is now: 0; 1 when its times
 * do not tell all of it, and id has its device and inode only; -1 with errno,
 * ENOTDIR when it is none (statx(2)). */
int stamp_of(int dir, const char *name, struct recall_id *id);
/* 1 when the file system of fd is one of this machine that is known to change
 * a directory's change time with each entry that comes, goes or is renamed. */
int stamp_tells(int fd);

#endif
