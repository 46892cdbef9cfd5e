/*
 * SPDX-License-Identifier: ISC
 *
 * Placeholders for protected names that are not there (design: protected
 * names, protect_absent): something is made, so that it can be mounted over,
 * and removed with the last sandbox that has it.  The journal, a file of the
 * parent's, knows those that are there, for the next start.
 */
#ifndef ABX_EXECD_ABSENT_H
#define ABX_EXECD_ABSENT_H

#include <sys/types.h>

#include "execd/profile.h"

enum absent_kind {
	ABSENT_DIR,  /* an empty directory */
	ABSENT_FILE, /* an empty file */
	ABSENT_DOT   /* a file that says ".": of git's commondir, where it
		      * means what no file means, and an empty one does not */
};

/* What a sandbox has of them. */
struct absent_refs;

/* Start-up.  journal is taken, -1 when there is none; on: make some. */
void absent_init(int journal, int on);
/* Remove what an earlier life left, as the user who made it.  Only when no
 * other execd lives. */
void absent_recover(void);
/* 1 when missing names are to be made. */
int absent_on(void);

/* Make name in dir.  0, or -1 with errno: EEXIST when it is there now. */
int absent_make(int dir, const char *name, enum absent_kind);
/* Is this object one of them? */
int absent_is(dev_t, ino_t);
/* Keep those among the binds: 0 with *out (NULL when there are none), or -1
 * with errno. */
int absent_hold(const struct profile_binds *, struct absent_refs **out);
/* Let go; what nobody holds is removed if it is as it was made.  NULL is
 * fine. */
void absent_drop(struct absent_refs *);
/* Remove what was made and is held by nobody: after a spawn that failed. */
void absent_tidy(void);

#endif
