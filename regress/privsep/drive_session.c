/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd: commands of one session, and the end of a session.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/wait.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/msg.h"

#define ONE "0123456789abcdef0123456789abcdef"
#define TWO "fedcba9876543210fedcba9876543210"

/* A script in a session, in work. */
static void
script(struct run *r, const char *const argv[], const char *session)
{
	memset(r, 0, sizeof(*r));
	r->argv = argv;
	r->dir = work;
	r->s.timeout_ms = 20000;
	r->s.grace_ms = 1000;
	r->s.max_output = 100000;
	strlcpy(r->s.session, session, sizeof(r->s.session));
}

/* End a session; the code of the answer.  Ends of runs are kept. */
static int
end_session(const char *name)
{
	uint64_t id = peer.next_id++;
	struct imsg m;
	struct rbuf r;

	peer_send(&peer, ME_SESSION_END, id, -1, name, ABX_WORKSPACE_LEN);
	for (;;) {
		if (!peer_next(&peer, &m, 20000))
			die("no answer to SESSION_END");
		if (m.type == ME_END)
			peer_keep_end(&peer, &m);
		else if (m.type == ME_DONE && m.id == id)
			break;
		else
			die("unexpected %s", msg_name(m.type));
	}
	rbuf_init(&r, m.payload, m.len);
	return rget_u16(&r);
}

void
test_session_end(void)
{
	static const char *const first[] = {"sh", "-c",
	    "trap '' TERM; (setsid sh -c 'sleep 99; : drivemark8' &);"
	    "sleep 99; : drivemark8",
	    NULL};
	static const char *const second[] = {
	    "sh", "-c", "sleep 99; : drivemark9", NULL};
	struct run_end e;
	struct run r[3];
	int i;

	CHECK(end_session(ONE) == C_OK, "there is none");
	script(&r[0], first, ONE);
	script(&r[1], first, ONE);
	script(&r[2], second, TWO);
	for (i = 0; i < 3; i++)
		if (peer_spawn(&peer, &r[i]) != 0)
			die("spawn");
	usleep(200000);
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	CHECK(marked("drivemark8") == 0, "%d are left", marked("drivemark8"));
	CHECK(marked("drivemark9") > 0, "the other session ended");
	for (i = 0; i < 2; i++) {
		(void)peer_end(&peer, &e);
		run_frames(&r[i]);
		CHECK((e.flags & (END_CANCELLED | END_EMPTY)) ==
			  (END_CANCELLED | END_EMPTY),
		    "%x", e.flags);
		run_clear(&r[i]);
	}
	CHECK(end_session(TWO) == C_OK, "something cannot be killed");
	CHECK(marked("drivemark9") == 0, "%d are left", marked("drivemark9"));
	(void)peer_end(&peer, &e);
	run_frames(&r[2]);
	run_clear(&r[2]);
}
