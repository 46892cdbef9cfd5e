/*
 * SPDX-License-Identifier: ISC
 *
 * What lay in the directories that an earlier walk over a tree read.
 */
#ifndef ABX_RECALL_H
#define ABX_RECALL_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define RECALL_TREES 16			 /* whose directories are remembered, */
#define RECALL_TOTAL (2UL * 1024 * 1024) /* bytes of all between walks */

/* A directory as it was at some moment. */
struct recall_id {
	uint64_t dev, ino;
	uint64_t mount; /* that it was seen in, 0: not known */
	struct timespec ctime, mtime;
};
/* The first count entries of it ("." and ".." are none), and of those what the
 * walk wants to know again. */
struct recall_dir {
	struct recall_id id;
	uint32_t count;
	uint32_t hit; /* the place of what is looked for, or RECALL_NONE */
	uint32_t len;
	uint8_t whole; /* there are no others */
	uint8_t used;  /* by this walk */
	char *text;    /* the walk's, len bytes; owned, NULL when len is 0 */
};
#define RECALL_NONE UINT32_MAX
struct recall_tree;

/* Has it kept its times for so long (ns) before now that whatever changes it
 * from now on gives it others? */
int recall_settled(
    const struct recall_id *, const struct timespec *now, uint64_t ns);

/*
 * A walk begins, and no other until recall_end: the tree of that key, which
 * says all on which beside a directory the walk's answers rest.  It may replace
 * the one that was not used for longest, and holds max bytes at most, of which
 * the key is none.  NULL when out of memory.
 */
struct recall_tree *recall_begin(const void *key, size_t len, size_t max);
/* Is nothing at all remembered? */
int recall_empty(const struct recall_tree *);
/* The directory, if it is as it was then and one that fits (NULL: any), else
 * NULL; borrowed until the next call.  It stays when there is room. */
const struct recall_dir *recall_find(struct recall_tree *,
    const struct recall_id *,
    int (*fits_cb)(const struct recall_dir *, const void *arg),
    const void *arg);
/* Remember it: id to whole are copied, and len bytes of text.  When there are
 * too many, or no memory, it is not. */
void recall_keep(struct recall_tree *, const struct recall_dir *);
/* The walk is over: what it did not use is forgotten, and so are whole other
 * trees, the oldest first, when all are too much. */
void recall_end(struct recall_tree *);
/* Forget everything; not between recall_begin and recall_end. */
void recall_clear(void);

#endif
