/*
 * SPDX-License-Identifier: ISC
 *
 * A process of its own that parses an archive and may do nothing else: no
 * file can be opened there.  What it says is hostile until it is checked.
 */
#ifndef ABX_PATHD_UNPACK_H
#define ABX_PATHD_UNPACK_H

#include <sys/types.h>

#include "common/codes.h"
#include "common/hash.h"
#include "common/wire.h"
#include "pathd/tar.h"

/* What its frames are: */
#define UNPACK_MEMBER 5 /* struct member (FR_ENTRY) */
#define UNPACK_DATA 1	/* u64 offset, bytes of the last member (FR_OUT) */
#define UNPACK_END 6	/* struct unpack_end (FR_END); always the last */

void member_put(struct wbuf *, const struct member *);
int member_get(struct rbuf *, struct member *);

struct unpack_end {
	uint16_t code;	/* enum code: C_OK, or what is wrong with it */
	uint64_t bytes; /* of the stream */
	uint8_t digest[SHA256_LEN];
};
void unpack_end_put(struct wbuf *, const struct unpack_end *);
int unpack_end_get(struct rbuf *, struct unpack_end *);

/* Start-up, before pathd is confined: make its filter. */
void unpack_init(void);
/* Start it on a pipe (borrowed) that holds a tar stream, with gzip around it
 * or not: its pid and the pipe of its frames, non-blocking, or -1 with
 * errno. */
pid_t unpack_start(int pipe, int gzip, uint64_t max, int *frames);
/* Wait for its end: C_OK, also when it was killed from here, or what its own
 * death is answered with, which is logged and says nothing of the archive. */
enum code unpack_reap(pid_t);

#endif
