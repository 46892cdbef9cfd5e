/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd: what a command of a session finds where earlier commands, or
 * somebody outside, have been at work.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/wait.h>

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

/* What one command was given, its environment and its memory, is not for the
 * next; signals and renames are as before. */
void
test_session_apart(void)
{
	static const char *const argv[] = {"sh", "-c",
	    "trap 'exit 3' USR1; echo $$ > /tmp/bg; while :; do sleep 0.05; "
	    "done",
	    NULL};
	static const char *const env[] = {
	    "PATH=/usr/bin:/bin", "SECRET=hunter2", NULL};
	struct run_end e;
	struct run bg;
	const char *s;

	if (peer.hello.landlock_abi == 0)
		return; /* then nothing keeps them apart */
	session_script(&bg, argv, ONE);
	bg.env = env;
	if (peer_spawn(&peer, &bg) != 0)
		die("spawn");
	(void)in("while ! [ -s /tmp/bg ]; do sleep 0.02; done");
	s = in_out("SECRET=mine sh -c 'cat /proc/$$/environ | tr \"\\0\" "
		   "\"\\n\" | grep SECRET; echo'");
	CHECK(strcmp(s, "SECRET=mine\n\n") == 0, "its own: %s", s);
	s = in_out("p=/proc/$(cat /tmp/bg); cat $p/environ $p/maps $p/mem; "
		   "readlink $p/fd/1; echo x > $p/fd/1; ls $p/cwd/; readlink "
		   "$p/exe; cat $p/comm");
	CHECK(strcmp(s, "sh\n") == 0, "%s", s);
	s = in_out("mkdir -p d1 d2; echo f > d1/f; mv d1/f d2/f && ln d2/f "
		   "d1/g && cat d1/g; rm -r d1 d2");
	CHECK(strcmp(s, "f\n") == 0, "%s", s);
	(void)in("kill -USR1 $(cat /tmp/bg)");
	CHECK(peer_end(&peer, &e) == bg.id, "the end of another");
	run_frames(&bg);
	CHECK(
	    WIFEXITED(e.status) && WEXITSTATUS(e.status) == 3, "%x", e.status);
	run_clear(&bg);
	CHECK(end_session(ONE) == C_OK, "something cannot be killed");
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
