/*
 * SPDX-License-Identifier: ISC
 *
 * The matrix of evil: a request brought to every point of its life, and every
 * message there is from every sibling at that point.  What is permitted is
 * written by hand, finer than the monitor's own table.
 */
#ifndef ABX_CELLS_H
#define ABX_CELLS_H

#include "regress/privsep/lab.h"

/* Points of a request's life.  The order is that of the letters below. */
enum point {
	P_FREE,	      /* a number that was never used */
	P_OLD,	      /* of a request that is over */
	P_RESOLVE,    /* a download, pathd owes FACTS */
	P_REOPEN,     /* the same, of the one thing to open */
	P_PUT,	      /* pathd owes PUT_ANS */
	P_LIST,	      /* pathd owes LIST_ANS */
	P_CHANGE,     /* pathd owes DONE */
	P_BODY,	      /* the listener has the pipe of an upload */
	P_COMMIT,     /* pathd owes PUT_FIN */
	P_ANSWERED,   /* the listener owes FIN */
	P_SPAWN,      /* execd owes STARTED or FAILED */
	P_STARTED,    /* execd owes RUN */
	P_SPAWN_IN,   /* a run with stdin: as P_SPAWN */
	P_STARTED_IN, /* as P_STARTED */
	P_RUN_IN,     /* execd owes IN */
	P_RUNNING,    /* the listener reads the frames, execd owes END */
	P_ENDING,     /* FIN came, execd owes END */
	P_CANCELLED,  /* a download, withdrawn; the listener owes FIN */
	P_CANCEL_RUN, /* a run, withdrawn; FIN and END are owed */
	P_LATE,	      /* a download, withdrawn and over; FACTS may come */
	P_COVER,      /* a run, pathd owes what is denied in its directory */
	P_HOLD,	      /* execd owes HELD or FAILED */
	P_HELD,	      /* pathd owes the same list again, execd holds */
	P_PROCESS,    /* no request any more: a process that runs */
	P_OVER,	      /* one that has ended and is still known */
	P_FOLLOW,     /* its output is asked for, execd owes RUN or DONE */
	P_SIZE,	      /* workspaces are listed, pathd owes SPACE_ANS */
	P_COUNT
};

/* The numbers of that request: towards the listener, and towards workers. */
struct at {
	uint64_t lid, rid;
};
/* Take a fresh laboratory there. */
struct at point_go(struct lab *, enum point);

/* One message, well-formed for its type: the payload, and a descriptor of the
 * right kind or -1.  alone: its number is 0. */
void sample_put(struct lab *, struct wbuf *, uint16_t type, enum point);
int sample_fd(struct lab *, uint16_t type);
int sample_alone(uint16_t type);

/* Every type there is. */
extern const uint16_t all_types[];
extern const size_t n_types;

/* One letter a point: '.' breaks the sender, 'y' is taken. */
const char *cell_row(enum proc_kind from, uint16_t type);

/* The configuration that the points need. */
extern const char cells_conf[];

#endif
