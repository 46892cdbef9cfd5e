/*
 * SPDX-License-Identifier: ISC
 *
 * The gate: one const table.  A row says who may send a message and in which
 * states of its request; everything else is refused.  Pure.
 */
#include "monitor/gate.h"

#define S(x) (1U << RS_##x)

static const struct gate_row {
	enum proc_kind from;
	uint16_t type;
	unsigned states;
	enum gate_handler handler;
} rows[] = {
    /* listener */
    {PROC_LISTENER, LM_ASK, S(FREE), GH_ASK},
    {PROC_LISTENER, LM_CANCEL,
	S(RESOLVE) | S(REOPEN) | S(WORK) | S(COVER) | S(BODY) | S(COMMIT) |
	    S(ANSWERED),
	GH_CANCEL},
    /* in ANSWERED only behind an early PUT_FIN, which the handler checks */
    {PROC_LISTENER, LM_PUT_END, S(BODY) | S(ANSWERED), GH_PUT_END},
    {PROC_LISTENER, LM_FIN, S(ANSWERED) | S(CANCELLED), GH_FIN},
    {PROC_LISTENER, LM_RESULT, S(ANSWERED), GH_RESULT},
    {PROC_LISTENER, LM_REJECTS, S(FREE), GH_REJECTS},
    {PROC_LISTENER, LM_PEER, S(FREE), GH_PEER},
    {PROC_LISTENER, LM_PEER_GONE, S(FREE), GH_PEER_GONE},
    /* pathd */
    {PROC_PATHD, MP_ROOTS_OK, S(FREE), GH_ROOTS_OK},
    {PROC_PATHD, MP_FACTS, S(RESOLVE) | S(REOPEN), GH_FACTS},
    {PROC_PATHD, MP_PUT_ANS, S(WORK), GH_PUT_ANS},
    {PROC_PATHD, MP_PUT_FIN, S(BODY) | S(COMMIT), GH_PUT_FIN},
    {PROC_PATHD, MP_LIST_ANS, S(WORK), GH_LIST_ANS},
    {PROC_PATHD, MP_DONE, S(WORK), GH_DONE},
    {PROC_PATHD, MP_EDIT_ANS, S(WORK), GH_EDIT_ANS},
    {PROC_PATHD, MP_ARCHIVE_ANS, S(WORK), GH_ARCHIVE_ANS},
    {PROC_PATHD, MP_DENIED_ANS, S(COVER), GH_DENIED},
    {PROC_PATHD, MP_DONE, S(COVER), GH_DENIED},
    {PROC_PATHD, MP_SPACE_ANS, S(WORK), GH_SPACE_ANS},
    {PROC_PATHD, MP_SPACE_ANS, S(JOB), GH_JOB},
    {PROC_PATHD, MP_DONE, S(JOB), GH_JOB},
    {PROC_PATHD, MP_DENIED_ANS, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_SPACE_ANS, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_FACTS, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_PUT_ANS, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_PUT_FIN, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_LIST_ANS, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_DONE, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_EDIT_ANS, S(CANCELLED), GH_DROP},
    {PROC_PATHD, MP_ARCHIVE_ANS, S(CANCELLED), GH_DROP},
    /* execd: STARTED, RUN and IN come one behind the other */
    {PROC_EXECD, ME_HELLO, S(FREE), GH_HELLO},
    {PROC_EXECD, ME_HELD, S(WORK), GH_HELD},
    {PROC_EXECD, ME_STARTED, S(WORK), GH_STARTED},
    {PROC_EXECD, ME_RUN, S(WORK), GH_RUN},
    {PROC_EXECD, ME_IN, S(WORK), GH_IN},
    {PROC_EXECD, ME_FAILED, S(WORK) | S(COVER), GH_FAILED},
    {PROC_EXECD, ME_END, S(WORK) | S(ANSWERED) | S(ENDING), GH_END},
    {PROC_EXECD, ME_HELD, S(CANCELLED) | S(ENDING), GH_DROP},
    {PROC_EXECD, ME_STARTED, S(CANCELLED) | S(ENDING), GH_DROP},
    {PROC_EXECD, ME_RUN, S(CANCELLED) | S(ENDING), GH_DROP},
    {PROC_EXECD, ME_IN, S(CANCELLED) | S(ENDING), GH_DROP},
    /* in ANSWERED of a held run that was given up */
    {PROC_EXECD, ME_FAILED, S(CANCELLED) | S(ENDING) | S(ANSWERED), GH_END},
    {PROC_EXECD, ME_END, S(CANCELLED), GH_END},
    /* processes */
    {PROC_EXECD, ME_DONE, S(WORK), GH_EXEC_DONE},
    {PROC_EXECD, ME_DONE, S(JOB), GH_JOB},
    {PROC_EXECD, ME_DONE, S(CANCELLED), GH_DROP},
    {PROC_EXECD, ME_END, S(PROCESS), GH_PROCESS_END},
};

enum gate_handler
gate_check(enum proc_kind from, uint16_t type, enum gate_state state)
{
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].type == type && rows[i].from == from &&
		    (rows[i].states & 1U << state) != 0)
			return rows[i].handler;
	return GH_NONE;
}

int
gate_unbound(uint16_t type)
{
	return type == LM_REJECTS || type == LM_PEER || type == LM_PEER_GONE ||
	       type == MP_ROOTS_OK || type == ME_HELLO;
}
