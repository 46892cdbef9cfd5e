/*
 * SPDX-License-Identifier: ISC
 *
 * The table of session workspaces and its lines in the state directory: one a
 * change, as JSON.  Each belongs to one principal and one session, whose names
 * give its own.  Pure.
 */
#ifndef ABX_WSTAB_H
#define ABX_WSTAB_H

#include <stddef.h>
#include <stdint.h>

#include "common/abx.h"
#include "common/wire.h"

#define WS_LINE_MAX 1024 /* bytes of a line, with its newline */

enum ws_state {
	WS_KEPT,   /* may be used */
	WS_ENDING, /* to be removed when nothing runs in it any more */
	WS_GOING   /* pathd removes it */
};

struct req;

struct ws {
	struct ws *next;
	char name[ABX_WORKSPACE_LEN + 1];
	/* NULL: a directory that no line names */
	char *owner, *session;
	int64_t used;	  /* last use, seconds UTC */
	int64_t saved;	  /* as the file has it */
	uint64_t idle_us; /* last use, monotonic */
	/* the monitor's, not looked at here */
	enum ws_state state;
	unsigned users;	     /* what runs in it, or is about to */
	int over;	     /* it was found too large */
	int due;	     /* it is to be measured in this round */
	uint64_t job;	     /* the question about it that is under way, or 0 */
	unsigned ends;	     /* execds that still end what runs in it */
	int stuck;	     /* and one of them cannot */
	unsigned tries;	     /* to end it for this removal */
	struct req *waiters; /* for its removal */
};

struct wstab {
	struct ws *all;
	size_t n;
};

struct ws *wstab_find(const struct wstab *, const char *name);
/* The workspace of that owner and session, or NULL. */
struct ws *wstab_of(
    const struct wstab *, const char *owner, const char *session);
/* A new one; owner and session NULL for a directory without a line.  NULL when
 * out of memory, or when there are ABX_MAX_WORKSPACES. */
struct ws *wstab_add(
    struct wstab *, const char *name, const char *owner, const char *session);
/* Unlink and free. */
void wstab_remove(struct wstab *, struct ws *);
/* How many that owner has. */
size_t wstab_count(const struct wstab *, const char *owner);

/* The line that says how it is, or that it is gone, with its newline. */
void wstab_line(struct wbuf *, const struct ws *, int gone);
/* Take one line over, without its newline: 0, or -1 when it is none (torn,
 * written by somebody else, or there is no room) and nothing was changed. */
int wstab_take(struct wstab *, const char *line, size_t len);

#endif
