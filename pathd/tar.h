/*
 * SPDX-License-Identifier: ISC
 *
 * Tar streams, both ways: heads as they are written here, and members as they
 * are read from whatever somebody sent.  Pure; what a name may be and where it
 * may lead is for others to say.
 */
#ifndef ABX_PATHD_TAR_H
#define ABX_PATHD_TAR_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"
#include "common/wire.h"

#define TAR_BLOCK 512
/* Of zeros, behind the last member. */
#define TAR_TAIL (2 * TAR_BLOCK)

/* One block at the head of a member, as it lies in the stream (tar(5)). */
struct tar_block {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8];
	char type;
	char link[100], magic[8], uname[32], gname[32], major[8], minor[8];
	union {
		struct {
			char prefix[155], unused[12];
		} ustar;
		struct {
			char unused[41], map[4][24], more, real[12], rest[17];
		} gnu;
	} u;
};
_Static_assert(sizeof(struct tar_block) == TAR_BLOCK, "a block of tar");
/* The sum that belongs into a block: of its bytes, read as unsigned ones or,
 * as some have done, as signed ones. */
unsigned long tar_sum(const struct tar_block *, int is_signed);

/* ---- writing, tar_put.c ---- */

struct tar_head {
	char type; /* '0' file, '2' symbolic link, '5' directory */
	uint32_t mode;
	int64_t mtime;
	uint64_t size; /* of what follows, up to INT64_MAX */
	const char *path, *link;
};
/* All blocks in front of a member's content, in GNU's form: names are bytes
 * and of any length.  The same head gives the same bytes. */
void tar_put(struct wbuf *, const struct tar_head *);
/* Zeros that follow that much content. */
size_t tar_pad(uint64_t size);

/* ---- reading, tar_get.c ---- */

enum member_type { ME_FILE = 1, ME_DIR, ME_LINK, ME_HARD, ME_OTHER };
struct member {
	uint8_t type;  /* enum member_type */
	uint32_t mode; /* 0777 */
	uint64_t size;
	char *path; /* as the archive has it; owned */
	char *link; /* LINK: its text; HARD: another member; owned */
};
void member_clear(struct member *);

/* More bytes of the stream, borrowed until the next call: 1, 0 at its end, -1
 * when it cannot be read. */
typedef int (*tar_more_cb)(void *arg, const uint8_t **, size_t *);

/* What heads before a member say of it; texts are owned. */
struct tar_ext {
	char *path, *link; /* GNU's long names */
	char *pax_path, *pax_link, *hole_path;
	uint64_t size, real, off;
	int pax, has_size, has_real;
	uint64_t major; /* of the form of holes */
};
struct tar_piece {
	uint64_t off, len;
};
struct tar_in {
	tar_more_cb more;
	void *arg;
	const uint8_t *p; /* bytes at hand */
	size_t n;
	int begun;	    /* a block was read */
	uint64_t left;	    /* of the member's content in the stream */
	size_t pad;	    /* what follows that */
	struct tar_ext ext; /* of the next member */
	int holes;	    /* the pieces are those of map */
	struct tar_piece *map;
	size_t nmap, at;
	uint64_t pos;	/* of the content without holes */
	enum code code; /* why -1 */
};
void tar_in_init(struct tar_in *, tar_more_cb, void *arg);
void tar_in_clear(struct tar_in *);
/* The next member (member_clear): 1, 0 behind the last, or -1 with code set:
 * C_ARGS_INVALID for what is no archive or is not whole, C_FS_NAME_TOO_LONG,
 * C_SRV_UNAVAILABLE without memory.  Content that was not read is skipped. */
int tar_next(struct tar_in *, struct member *);
/* Some of its content, and where in the file: likewise. */
int tar_data(struct tar_in *, uint64_t *off, const uint8_t **, size_t *);

#endif
