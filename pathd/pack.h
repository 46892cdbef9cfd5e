/*
 * SPDX-License-Identifier: ISC
 *
 * Directories and files as a tar stream, entry by entry as the caller may see
 * them.
 */
#ifndef ABX_PATHD_PACK_H
#define ABX_PATHD_PACK_H

#include "common/codes.h"
#include "common/payload.h"
#include "pathd/dir.h"
#include "pathd/pathd.h"

/* Of files in an archive that is written here, without a limit of the policy:
 * a file of holes costs nothing and may be of any size. */
#define PACK_BYTES (1ULL << 36)

/* Bytes of the stream: 0, or -1 to stop. */
typedef int (*pack_cb)(void *arg, const void *, size_t);

/* What goes into it: names in front of every entry are those of the sources,
 * "" for none.  Sources are checked to be what was decided on; nothing is
 * written before they are. */
struct pack {
	const struct pathd *pd;	    /* borrowed */
	const struct bulk *b;	    /* borrowed */
	const struct stopper *stop; /* borrowed, or NULL */
	dev_t not_dev;		    /* a file that is never packed: the */
	ino_t not_ino;		    /* archive itself; 0 for none */
	pack_cb out;
	void *arg;
	struct pack_fin fin; /* filled in; pack_fin_clear by the caller */
};

/* See whether the limits hold: C_OK, C_LIM_MAX_BYTES, C_LIM_MAX_ENTRIES, or
 * why a source cannot be read. */
enum code pack_measure(struct pack *);
/* Write the stream: C_OK, or why it is not whole. */
enum code pack_run(struct pack *);

#endif
