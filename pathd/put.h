/*
 * SPDX-License-Identifier: ISC
 *
 * One upload, from an unnamed file to its name.  Blocking calls, no pipe, no
 * message: that is put_job.c.
 */
#ifndef ABX_PATHD_PUT_H
#define ABX_PATHD_PUT_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/journal.h"
#include "pathd/pathd.h"

struct upload {
	const struct pathd *pd; /* borrowed */
	const struct put *put;	/* borrowed */
	const struct walk_root *root;
	char full[ABX_PATH_MAX + 1]; /* of the target, below root */
	int dir;		     /* O_PATH; where the file was made, -1 */
	int fd;			     /* the file, -1 */
	char temp[JOURNAL_NAME_LEN + 1]; /* its name in dir, "" unnamed */
	mode_t mode;			 /* it will have */
	int over; /* the name is taken: replace what stands there */
	int seen; /* with PF_EXACT: size and time of what stood there first */
	off_t size;
	struct timespec mtime;
};

/* Check the target again and make the file: C_OK or why not.  upload_close in
 * either case. */
enum code upload_open(
    struct upload *, const struct pathd *, const struct put *);
/* Give the file its name: C_OK with *fin filled in (bytes excepted), else
 * the target is as it was. */
enum code upload_commit(struct upload *, struct put_fin *);
/* Close; a file that was not committed vanishes. */
void upload_close(struct upload *);
/* For tests: 1 makes named temporaries as where O_TMPFILE does not exist. */
void upload_named(int on);

#endif
