/*
 * SPDX-License-Identifier: ISC
 *
 * Members of an archive into a directory: all of them or none.
 */
#ifndef ABX_PATHD_IMPORT_H
#define ABX_PATHD_IMPORT_H

#include "pathd/sight.h"
#include "pathd/stage.h"
#include "pathd/undo.h"
#include "pathd/unpack.h"

struct import {
	const struct pathd *pd; /* borrowed */
	const struct bulk *b;	/* borrowed */
	struct sight sight;
	struct stage stage;
	struct undo undo;
	int top;    /* of the members, in the stage, -1 */
	char *path; /* canonical, of the directory */
	int file;   /* the member that is being written, -1 */
	uint32_t mode;
	uint64_t size, left; /* left: of its content, holes included */
	uint64_t bytes, entries;
	uint64_t parents; /* made for a name, and not yet named */
	uint64_t itself;  /* members that are the directory */
};

/* Make room in the target directory: C_OK or why not.  import_close in either
 * case. */
enum code import_open(
    struct import *, const struct pathd *, const struct bulk *);
/* Check a member and begin it; more of its content, all in all no more than its
 * size; each C_OK or why the archive is refused. */
enum code import_member(struct import *, const struct member *);
enum code import_data(struct import *, uint64_t off, const uint8_t *, size_t n);
/* Everything was there: put it in its place. */
enum code import_commit(struct import *);
void import_close(struct import *);

/* Pure: the normal form of a member's name below the directory ("" for the
 * directory itself): C_OK, or the code that refuses the archive. */
enum code import_name(const char *raw, char out[ABX_PATH_MAX + 1]);
/* Pure: 1 when a link of that text in the member stays in the directory,
 * whatever the others are: it goes up only at its beginning, where real
 * directories are, and what it then passes through stays by itself. */
int import_link_inside(const char *member, const char *text);

#endif
