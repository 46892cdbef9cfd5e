/*
 * SPDX-License-Identifier: ISC
 *
 * The directory that a new name goes into, made when it is missing and
 * removed again when the name does not come to be.
 */
#ifndef ABX_PATHD_PARENTS_H
#define ABX_PATHD_PARENTS_H

#include <stddef.h>

struct parents {
	int root;	  /* borrowed */
	const char *full; /* borrowed; path below root, not "" */
	const char *name; /* last component, within full */
	int fd;		  /* O_PATH of the directory that holds name, -1 */
	size_t made; /* bytes of full up to the first directory made, or 0 */
};

/* Open the parent of full, with create make what is missing.  0, or -1 with
 * errno; nothing made is left then. */
int parents_open(struct parents *, int root, const char *full, int create);
/* How many directories were made for it. */
size_t parents_made(const struct parents *);
/* 1 when the directory is still where it was opened, else 0 with errno, ESTALE
 * when another is there.  Asked behind the making of a name: what moved it
 * before that was not judged with the name in it, and what moves it afterwards
 * is. */
int parents_in_place(const struct parents *);
/* Remove the directories that were made, as far as they are empty. */
void parents_undo(struct parents *);
void parents_close(struct parents *);
/* The nearest directory above full that exists, as O_PATH: fd, or -1 with
 * errno.  *below is what follows it within full; without a slash in it the
 * directory is the parent itself. */
int parents_nearest(int root, const char *full, const char **below);

#endif
