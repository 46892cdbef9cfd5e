/*
 * SPDX-License-Identifier: ISC
 *
 * The gate over its whole matrix, against an expectation written by hand and
 * not taken from the table.  A string has one letter a state, in the order of
 * enum gate_state: free, resolve, reopen, work, cover, body, commit,
 * answered, ending, cancelled, process, job; '.' is refused, 'y' is handled,
 * 'd' is dropped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "monitor/gate.h"

static const struct {
	enum proc_kind from;
	uint16_t type;
	const char *want;
} rows[] = {
    {PROC_LISTENER, LM_ASK, "y..........."},
    {PROC_LISTENER, LM_PUT_END, ".....y.y...."},
    {PROC_LISTENER, LM_CANCEL, ".yyyyyyy...."},
    {PROC_LISTENER, LM_FIN, ".......y.y.."},
    {PROC_LISTENER, LM_RESULT, ".......y...."},
    {PROC_LISTENER, LM_REJECTS, "y..........."},
    {PROC_LISTENER, LM_PEER, "y..........."},
    {PROC_LISTENER, LM_PEER_GONE, "y..........."},
    {PROC_PATHD, MP_ROOTS_OK, "y..........."},
    {PROC_PATHD, MP_FACTS, ".yy......d.."},
    {PROC_PATHD, MP_PUT_ANS, "...y.....d.."},
    {PROC_PATHD, MP_PUT_FIN, ".....yy..d.."},
    {PROC_PATHD, MP_LIST_ANS, "...y.....d.."},
    {PROC_PATHD, MP_DONE, "...yy....d.y"},
    {PROC_PATHD, MP_EDIT_ANS, "...y.....d.."},
    {PROC_PATHD, MP_ARCHIVE_ANS, "...y.....d.."},
    {PROC_PATHD, MP_DENIED_ANS, "....y....d.."},
    {PROC_PATHD, MP_SPACE_ANS, "...y.....d.y"},
    {PROC_EXECD, ME_HELD, "...y....dd.."},
    {PROC_EXECD, ME_HELLO, "y..........."},
    {PROC_EXECD, ME_STARTED, "...y....dd.."},
    {PROC_EXECD, ME_RUN, "...y....dd.."},
    {PROC_EXECD, ME_IN, "...y....dd.."},
    {PROC_EXECD, ME_FAILED, "...yy..yyy.."},
    {PROC_EXECD, ME_END, "...y...yyyy."},
    {PROC_EXECD, ME_DONE, "...y.....d.y"},
};

static const char *
expected(enum proc_kind from, uint16_t type)
{
	size_t i;

	for (i = 0; i < nitems(rows); i++)
		if (rows[i].from == from && rows[i].type == type)
			return rows[i].want;
	return "............";
}

static void
test_matrix(void **state)
{
	const char *want;
	enum gate_handler h;
	char got;
	int from, s;
	uint32_t type;

	for (from = 0; from < PROC_COUNT; from++)
		for (type = 0; type <= 0x7ff; type++) {
			want = expected((enum proc_kind)from, (uint16_t)type);
			for (s = 0; s < RS_COUNT; s++) {
				h = gate_check((enum proc_kind)from,
				    (uint16_t)type, (enum gate_state)s);
				got = h == GH_NONE   ? '.'
				      : h == GH_DROP ? 'd'
						     : 'y';
				if (got != want[s])
					fail_msg("%s from %s in state %d: "
						 "got %c, want %c",
					    msg_name((uint16_t)type),
					    proc_name((enum proc_kind)from), s,
					    got, want[s]);
			}
		}
	assert_int_equal(strlen(rows[0].want), RS_COUNT);
}

static void
test_unbound(void **state)
{
	uint32_t type;

	for (type = 0; type <= 0x7ff; type++)
		assert_int_equal(gate_unbound((uint16_t)type),
		    type == LM_REJECTS || type == LM_PEER ||
			type == LM_PEER_GONE || type == MP_ROOTS_OK ||
			type == ME_HELLO);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_matrix),
	    cmocka_unit_test(test_unbound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
