/*
 * SPDX-License-Identifier: ISC
 *
 * Which message is permitted from whom in which state of a request: one const
 * table, pure.  What is not permitted now is a broken peer, not an error to
 * answer.
 */
#ifndef ABX_GATE_H
#define ABX_GATE_H

#include "common/msg.h"

enum gate_state {
	RS_FREE,      /* there is no such request */
	RS_RESOLVE,   /* pathd owes FACTS */
	RS_REOPEN,    /* pathd owes FACTS of the one thing to open */
	RS_WORK,      /* a worker owes its first answer */
	RS_COVER,     /* pathd owes the denied entries below a run's directory;
		       * the second time execd holds that run */
	RS_BODY,      /* the listener has the pipe of an upload */
	RS_COMMIT,    /* PUT_END was passed on, pathd owes PUT_FIN */
	RS_ANSWERED,  /* the listener owes FIN */
	RS_ENDING,    /* FIN was seen, execd owes END */
	RS_CANCELLED, /* withdrawn; the listener owes FIN */
	RS_PROCESS,   /* no request any more: a process that runs on */
	RS_JOB,	      /* no request: a worker looks after a workspace */
	RS_COUNT
};

/* Who handles it. */
enum gate_handler {
	GH_NONE, /* not permitted */
	GH_ASK,
	GH_CANCEL,
	GH_FIN,
	GH_PUT_END,
	GH_REJECTS,
	GH_PEER,
	GH_PEER_GONE,
	GH_RESULT,
	GH_ROOTS_OK,
	GH_FACTS,
	GH_PUT_ANS,
	GH_PUT_FIN,
	GH_LIST_ANS,
	GH_DONE,
	GH_EDIT_ANS,
	GH_ARCHIVE_ANS,
	GH_DENIED,
	GH_HELLO,
	GH_HELD,
	GH_STARTED,
	GH_RUN,
	GH_IN,
	GH_FAILED,
	GH_END,
	GH_EXEC_DONE,
	GH_PROCESS_END,
	GH_SPACE_ANS,
	GH_JOB,
	GH_DROP /* late answer to a withdrawn request: close and forget */
};

/* The handler for a message of this type from this peer while its request is
 * in this state.  Pure. */
enum gate_handler gate_check(
    enum proc_kind from, uint16_t type, enum gate_state);
/* 1 when the type belongs to no request (REJECTS, ROOTS_OK, HELLO). */
int gate_unbound(uint16_t type);

#endif
