/*
 * SPDX-License-Identifier: ISC
 *
 * The payloads between execd and the launcher (XL_ of common/msg.def), each
 * with one encoder and one decoder, linked into both.  libc only.  As in
 * common/payload.h: put errors stick in the writer, get returns 0 or -1 and
 * leaves the struct cleared then, clear is fine on a zeroed struct.
 *
 * XL_SETUP and XL_RUN with a descriptor: the sealed memfd holds the payload
 * and the message's own is one byte.
 */
#ifndef ABX_XL_H
#define ABX_XL_H

#include <stddef.h>
#include <stdint.h>

#include "common/payload.h"
#include "common/wire.h"

#define XL_MAX_PATHS 512	 /* Landlock rules of one sandbox */
#define XL_MAX_CHECKS 1024	 /* paths to verify */
#define XL_MAX_FILTERS 4	 /* seccomp programs */
#define XL_FILTER_MAX (4096 * 8) /* bytes: BPF_MAXINSNS instructions */
#define XL_STR_MAX (128 * 1024)	 /* one word of argv or env: MAX_ARG_STRLEN */

/* What a program may do beneath a path. */
enum xl_right {
	XLR_READ = 1, /* read files, list directories */
	XLR_EXEC = 2,
	XLR_WRITE = 4, /* write existing files, truncate */
	XLR_MAKE = 8,  /* make, remove, rename, link across */
	XLR_IOCTL = 16 /* ioctl of devices */
};
struct xl_path {
	char *path;
	uint8_t rights;
};
/* The object that must be mounted at a path, no link on the way. */
struct xl_check {
	char *path;
	uint64_t dev, ino;
	uint8_t ro; /* and cannot be written there */
};
struct xl_filter {
	uint8_t *code; /* array of struct sock_filter, owned */
	size_t len;    /* bytes, a multiple of 8 */
};
/* Namespaces that a sandbox has of its own (execd/launch/ns.h). */
#define XL_NAMESPACES 7
struct xl_setup {
	uint64_t outer[XL_NAMESPACES]; /* execd's: none may be the same */
	uint32_t layers;	       /* enum exec_layer to apply */
	uint32_t require;	       /* of these none may be missing */
	struct xl_path *paths;
	size_t npaths;
	struct xl_check *checks;
	size_t nchecks;
	struct xl_filter filters[XL_MAX_FILTERS]; /* the sandbox's */
	size_t nfilters;
	struct xl_filter nofork; /* for XL_NO_FORK, in the program only */
};
void xl_setup_clear(struct xl_setup *);
void xl_setup_put(struct wbuf *, const struct xl_setup *);
int xl_setup_get(struct rbuf *, struct xl_setup *);

enum xl_run_flag {
	XL_NO_FORK = 1, /* put the nofork filter on the program */
	XL_CHECK = 2,	/* check the paths of the setup again first */
	XL_APART = 4	/* its memory is not for others of the sandbox */
};
/* Words for execve: NULL-terminated, owned. */
struct xl_words {
	char **v;
	size_t n;
};
struct xl_run {
	uint8_t flags;
	struct xl_words progs; /* absolute; the first that exists is run */
	struct xl_words argv;
	struct xl_words env;
	char *cwd;
	uint64_t cpu_s, memory; /* 0: no limit */
	uint64_t procs;		/* of the sandbox; 0: no limit */
	uint64_t nofile;
};
void xl_run_clear(struct xl_run *);
/* The run of a spawn, in the launcher's words; nothing is copied.  others: the
 * processes of the sandbox's user namespace that a limit counts too. */
void xl_run_put(
    struct wbuf *, const struct spawn *, uint64_t nofile, uint64_t others);
int xl_run_get(struct rbuf *, struct xl_run *);

/* XL_READY: what was applied. */
struct xl_ready {
	uint32_t layers; /* enum exec_layer */
	uint32_t abi;	 /* of Landlock, 0: none */
};
void xl_ready_put(struct wbuf *, const struct xl_ready *);
int xl_ready_get(struct rbuf *, struct xl_ready *);

/* XL_FAILED; code is an enum code. */
void xl_failed_put(struct wbuf *, const struct spawn_failed *);
int xl_failed_get(struct rbuf *, struct spawn_failed *);

/* XL_ENDED: how the program ended, as of wait4(2). */
struct xl_ended {
	int32_t status;
	uint64_t utime_us, stime_us, maxrss_kb;
};
void xl_ended_put(struct wbuf *, const struct xl_ended *);
int xl_ended_get(struct rbuf *, struct xl_ended *);

#endif
