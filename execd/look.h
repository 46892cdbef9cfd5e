/*
 * SPDX-License-Identifier: ISC
 *
 * A look through the directories below one, for those that hold ".git".
 */
#ifndef ABX_EXECD_LOOK_H
#define ABX_EXECD_LOOK_H

#include <stdint.h>
#include <time.h>

#include "common/payload.h"

#define LOOK_MAX_DIRS 1000     /* that are looked at */
#define LOOK_MAX_ENTRIES 20000 /* of all of them */

/* One look.  v are the directories to look at, as paths below the root: those
 * that the caller adds, then those nearest to it. */
struct look {
	char *v[LOOK_MAX_DIRS];
	size_t n;
	size_t first;	 /* so many were added by the caller */
	uint32_t left;	 /* entries that may still be read */
	int more;	 /* there were others */
	int failed;	 /* no memory or descriptor to look with */
	uint64_t settle; /* ns, STAMP_SETTLE_NS */
	uint32_t nread;	 /* directories that were read, not remembered */

	/* its own */
	int root;
	const struct strlist *names;
	struct recall_tree *tree; /* NULL: nothing is remembered */
	struct timespec now;	  /* before anything was read */
	uint64_t dev;		  /* the last device that was asked for: */
	int stamps;	    /* its changes can be told by times, -1 none */
	int up;		    /* O_PATH of a directory above, or -1 */
	const char *up_rel; /* its path, the first up_len of it */
	size_t up_len;
	char *text; /* that is collected for recall_keep */
	size_t room;
	char buf[32768] __attribute__((aligned(8)));
};

/* Begin to look below root (borrowed), the directory of that device and inode.
 * Directories of these names (borrowed) are not looked at; ".git" is among
 * them, and they are the same at every look.  NULL with errno.  One look at a
 * time. */
struct look *look_new(
    int root, uint64_t dev, uint64_t ino, const struct strlist *names);
/* Before the first look_at: a path that is to come before the others.  0, or
 * -1 when out of memory. */
int look_first(struct look *, const char *rel);
/* Add the directories that lie in this one, one of v or "", to v, and count:
 * 1 when ".git" lies in it too. */
int look_at(struct look *, const char *rel);
/* Can no other look_at change anything? */
int look_done(const struct look *);
/* NULL is allowed; keeps errno. */
void look_free(struct look *);

#endif
