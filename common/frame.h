/*
 * SPDX-License-Identifier: ISC
 *
 * Frames in a pipe: u8 kind, u32 little-endian payload length, payload.  Used
 * for the output of a run (execd to listener) and for listings (pathd to
 * listener).  The decoder is pure and keeps at most one frame.
 */
#ifndef ABX_FRAME_H
#define ABX_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HDR 5
#define FRAME_MAX (64 * 1024) /* payload bytes */

enum frame_kind {
	FR_OUT = 1,   /* bytes of stdout */
	FR_ERR = 2,   /* bytes of stderr */
	FR_EXIT = 3,  /* struct run_end; always the last */
	FR_GAP = 4,   /* u8 stream, u64 bytes that a slow reader missed */
	FR_ENTRY = 5, /* struct list_entry */
	FR_END = 6,   /* u16 code, u8 truncated; ends a listing, or output
		       * of a process that still runs */
	FR_MATCH = 7, /* struct list_match */
	FR_AT = 8,    /* u64 stdout, u64 stderr: offsets of what comes next */
	FR_EVENT = 9  /* struct list_event */
};

/* One entry of a listing. */
struct list_entry {
	uint8_t type; /* enum facts_kind, never FK_MISSING */
	uint32_t mode;
	uint64_t size;
	int64_t mtime;
	uint32_t mtime_ns;
	uint64_t dev, ino;
	const char *name; /* below the directory that is listed, "a/b";
			   * borrowed, not NUL-terminated */
	size_t namelen;	  /* 1 to ABX_PATH_MAX */
};
struct wbuf;
void list_entry_put(struct wbuf *, const struct list_entry *);
/* Decode a whole FR_ENTRY payload: 0 or -1. */
int list_entry_get(const uint8_t *, size_t, struct list_entry *);

/* One line of a file that matches. */
struct list_match {
	const char *path; /* below the directory that is searched; borrowed */
	size_t pathlen;	  /* 1 to ABX_PATH_MAX */
	uint64_t line;	  /* from 1 */
	uint32_t column;  /* bytes into the line, from 1 */
	const char *text; /* of the line, or a part of it; borrowed */
	size_t textlen;
};
void list_match_put(struct wbuf *, const struct list_match *);
/* Decode a whole FR_MATCH payload: 0 or -1. */
int list_match_get(const uint8_t *, size_t, struct list_match *);

/* One change below a directory that is watched. */
enum watch_what { WE_CREATE, WE_MODIFY, WE_DELETE, WE_MOVE, WE_OVERFLOW };
struct list_event {
	uint8_t what;	  /* enum watch_what */
	uint8_t type;	  /* enum facts_kind, never FK_MISSING */
	const char *path; /* below the directory, "" itself; borrowed */
	size_t pathlen;
	const char *to; /* MOVE: its new name, else ""; borrowed */
	size_t tolen;
};
void list_event_put(struct wbuf *, const struct list_event *);
/* Decode a whole FR_EVENT payload: 0 or -1. */
int list_event_get(const uint8_t *, size_t, struct list_event *);

/* Write a frame header into 5 bytes. */
void frame_head(uint8_t out[FRAME_HDR], uint8_t kind, uint32_t len);

struct frame_dec {
	uint8_t buf[FRAME_HDR + FRAME_MAX];
	size_t have;
};
/* Feed n bytes at *p; both advance.  1: a frame is ready in kind, payload and
 * len (valid until the next call), 0: more bytes are needed, -1: malformed
 * (unknown kind or too long). */
int frame_feed(struct frame_dec *, const uint8_t **p, size_t *n, uint8_t *kind,
    const uint8_t **payload, size_t *len);

#endif
