/*
 * SPDX-License-Identifier: ISC
 *
 * What the two files that read tar streams share: tar_get.c and tar_ext.c.
 */
#ifndef ABX_PATHD_TAR_INT_H
#define ABX_PATHD_TAR_INT_H

#include "pathd/tar.h"

/* ---- tar_get.c ---- */

/* -1, for the reason that was given first. */
int tar_broken(struct tar_in *);
int tar_no_memory(struct tar_in *);
/* The next n bytes, into buf or (NULL) nowhere: 0, or -1 when they are not
 * there. */
int tar_need(struct tar_in *, void *buf, uint64_t n);
/* Octal digits among blanks, or base 256: 0, or -1 for what is neither, is
 * negative or is larger than any file. */
int tar_number(const char *, size_t n, uint64_t *);

/* ---- tar_ext.c ---- */

void tar_ext_clear(struct tar_ext *);
/* Does it precede members, and is none? */
int tar_ext_type(char type);
/* Read one of these, of which that is the head: 0 or -1. */
int tar_ext_read(struct tar_in *, const struct tar_block *);
/* The holes of the file with that head, if it has any: 0 or -1. */
int tar_holes_read(struct tar_in *, const struct tar_block *);

#endif
