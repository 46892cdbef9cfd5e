/*
 * SPDX-License-Identifier: ISC
 *
 * Frames for a pipe, gathered into portions.
 */
#ifndef ABX_PATHD_FRAMER_H
#define ABX_PATHD_FRAMER_H

#include "common/codes.h"
#include "common/wire.h"

/* Frames in any portions (none: work goes on): 0, or -1 to stop. */
typedef int (*framer_cb)(void *arg, const uint8_t *, size_t);

struct stat;
struct framer {
	struct wbuf out; /* frames that were not handed on yet */
	struct wbuf w;	 /* payload of the next one */
	framer_cb cb;
	void *arg;
	int stopped; /* cb said so, or memory ran out */
};

void framer_init(struct framer *, framer_cb, void *arg);
void framer_free(struct framer *);
/* Add a frame of that kind with the payload in w, which is empty again then.
 * Each returns 0, or -1 when it is stopped. */
int framer_put(struct framer *, uint8_t kind);
/* The same with a payload from elsewhere, at most FRAME_MAX bytes. */
int framer_raw(struct framer *, uint8_t kind, const void *, size_t n);
/* FR_ENTRY; name is below the directory that is listed. */
int framer_entry(struct framer *, const char *name, const struct stat *);
/* FR_END, and hand everything on. */
int framer_end(struct framer *, enum code, int truncated);
/* Say that work goes on; 1 when it should not. */
int framer_stopped(struct framer *);

#endif
