/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd: what a command of a session finds where earlier commands, or
 * somebody outside, have been at work.
 */
#include "regress/privsep/execd_drive.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"

/* The name of work was removed and came back, in one way or the other, while a
 * sandbox had something mounted on it. */
static void
remade(const char *rel)
{
	char a[160], b[160];

	snprintf(a, sizeof(a), "%s/%s", work, rel);
	snprintf(b, sizeof(b), "%s/aside", work);
	if (link(a, b) == -1 || unlink(a) == -1 || link(b, a) == -1 ||
	    unlink(b) == -1)
		die("%s", a);
}

/* Denied entries are covered for every command, whatever ran before. */
void
test_session_covers(void)
{
	struct covers c = {0}, more = {0};
	struct run *r;

	sh("mkdir d; echo SECRET > d/key; echo SECRET > d/other");
	cover_add(&c, "d/key", 0);
	CHECK(strcmp(in_out("cat d/key"), "SECRET\n") == 0, "no cover yet");
	r = covered(&c, ONE, "cat d/key; echo on > /tmp/a", covered_yes);
	CHECK(
	    !r->failed && strcmp(r->out, "") == 0, "%d %s", r->failed, r->out);
	r = covered(&c, ONE, "cat d/key d/other /tmp/a", covered_yes);
	CHECK(!r->failed && strcmp(r->out, "SECRET\non\n") == 0,
	    "not the same sandbox: %d %s", r->failed, r->out);
	cover_add(&more, "d/key", 0);
	cover_add(&more, "d/other", 0);
	r = covered(
	    &more, ONE, "cat d/key d/other /tmp/a; echo end", covered_yes);
	CHECK(!r->failed && strcmp(r->out, "end\n") == 0, "%d %s", r->failed,
	    r->out);
	CHECK(strcmp(in_out("cat d/key; cat /tmp/a; echo end"),
		  "SECRET\nend\n") == 0,
	    "the first sandbox");
	/* an entry that lost its cover: the name was removed and came back */
	remade("d/key");
	r = covered(&c, ONE, "cat d/key", covered_yes);
	CHECK(r->failed ? r->fail.code == C_POL_PATH_CHANGED
			: strcmp(r->out, "") == 0,
	    "%s", r->out);
	r = covered(&c, ONE, "cat d/key; cat /tmp/a; echo end", covered_yes);
	CHECK(!r->failed && (strcmp(r->out, "end\n") == 0 ||
				strcmp(r->out, "on\nend\n") == 0),
	    "%d %s", r->failed, r->out);
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	sh("rm -rf d");
	covers_clear(&c);
	covers_clear(&more);
}

/* A name that lost its mount, as each change of a configuration by git makes
 * it, is protected from the next command all the same, and what it was is the
 * same object. */
void
test_session_remade(void)
{
	const struct covers none = {0};
	struct run *r;

	sh("mkdir -p .git/hooks; echo old > .git/config");
	in("echo evil > .git/config; echo on > /tmp/a");
	r = in("cat .git/config /tmp/a");
	CHECK(strcmp(r->out, "old\non\n") == 0, "%s", r->out);
	remade(".git/config");
	r = covered(&none, ONE, "echo evil > .git/config; cat .git/config",
	    covered_yes);
	CHECK(r->failed ? r->fail.code == C_POL_PATH_CHANGED
			: strcmp(r->out, "old\n") == 0,
	    "%s", r->out);
	r = in("echo evil > .git/config; cat .git/config /tmp/a");
	CHECK(strcmp(r->out, "old\n") == 0, "%s", r->out);
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	remove_git();
}

/* The directory that a command begins in may be swapped by others of its
 * session until it does. */
void
test_session_cwd(void)
{
	static const char *const argv[] = {
	    "sh", "-c", "pwd -P; rm -rf *", NULL};
	static const char *const swapped[] = {"link", "link/sub", "gone"};
	struct run r;
	size_t i;

	sh("mkdir -p real/sub; ln -s real link");
	session_script(&r, argv, ONE);
	for (i = 0; i < nitems(swapped); i++) {
		r.below = swapped[i];
		peer_run(&peer, &r);
		CHECK(r.failed && r.fail.code == C_POL_PATH_CHANGED, "%s: %s",
		    swapped[i], r.out);
		run_clear(&r);
	}
	r.below = "real/sub";
	peer_run(&peer, &r);
	CHECK(!r.failed && strstr(r.out, "/real/sub\n") != NULL, "%s", r.out);
	run_clear(&r);
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
	sh("rm -rf real link");
}
