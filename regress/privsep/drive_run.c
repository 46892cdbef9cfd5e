/*
 * SPDX-License-Identifier: ISC
 *
 * Tests of execd: how programs end, and what is said about it; output, input,
 * environment, limits.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/msg.h"

void
test_ends(void)
{
	struct run *r;

	r = sh("exit 0");
	CHECK(r->end.status == 0, "status %x", r->end.status);
	CHECK((r->end.flags & END_EMPTY) != 0, "flags %x", r->end.flags);
	CHECK(memcmp(&r->end, &r->told, sizeof(r->end)) == 0,
	    "frame and END differ");
	r = sh("exit 137");
	CHECK(WIFEXITED(r->end.status) && WEXITSTATUS(r->end.status) == 137,
	    "status %x", r->end.status);
	r = sh("kill -9 $$");
	CHECK(WIFSIGNALED(r->end.status) && WTERMSIG(r->end.status) == 9,
	    "status %x", r->end.status);
	r = sh("kill -SEGV $$");
	CHECK(WIFSIGNALED(r->end.status) && WTERMSIG(r->end.status) == 11,
	    "status %x", r->end.status);
	r = sh("echo out; echo err >&2; exit 3");
	CHECK(strcmp(r->out, "out\n") == 0 && strcmp(r->err, "err\n") == 0 &&
		  WEXITSTATUS(r->end.status) == 3,
	    "%s %s", r->out, r->err);
	/* the program cannot end or stop its init */
	r = sh("kill -9 1; kill -STOP 1; kill -TERM 1; echo on");
	CHECK(strcmp(r->out, "on\n") == 0, "%s", r->out);
	r = sh("kill -9 -1; echo no");
	CHECK(WIFSIGNALED(r->end.status) || r->end.status == 0, "%x",
	    r->end.status);
}

void
test_failures(void)
{
	static const char *const none[] = {"x", NULL};
	struct run r = {0};
	char path[256];
	FILE *f;

	r.argv = none;
	r.dir = work;
	r.s.timeout_ms = 5000;
	r.prog = "/usr/bin/no-such-program";
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND &&
		  r.fail.err == ENOENT,
	    "code %u errno %d", r.fail.code, r.fail.err);
	snprintf(path, sizeof(path), "%s/plain", work);
	if ((f = fopen(path, "w")) == NULL)
		die("%s", path);
	fputs("echo no\n", f);
	fclose(f);
	r.prog = path;
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND &&
		  r.fail.err == EACCES,
	    "code %u errno %d", r.fail.code, r.fail.err);
	chmod(path, 0755);
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND &&
		  r.fail.err == ENOEXEC,
	    "code %u errno %d", r.fail.code, r.fail.err);
	if ((f = fopen(path, "w")) == NULL)
		die("%s", path);
	fputs("#!/no/such/interpreter\n", f);
	fclose(f);
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_POL_EXEC_NOT_FOUND,
	    "code %u errno %d", r.fail.code, r.fail.err);
	unlink(path);
}

void
test_timeout(void)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	struct run r = {0};
	double t = now();

	r.argv = argv;
	r.dir = work;
	r.s.timeout_ms = 300;
	r.s.grace_ms = 1000;
	r.s.max_output = 1000;
	argv[2] = "trap 'echo handled; exit 5' TERM; echo first; "
		  "while :; do sleep 0.05; done";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "first\nhandled\n") == 0, "%s", r.out);
	CHECK(WEXITSTATUS(r.end.status) == 5, "%x", r.end.status);
	CHECK((r.end.flags & END_TIMED_OUT) != 0, "%x", r.end.flags);
	argv[2] = "trap '' TERM; sh -c 'trap \"\" TERM; sleep 77 & sleep 77; "
		  ": drivemark1' & sleep 77; sleep 77";
	t = now();
	peer_run(&peer, &r);
	CHECK(now() - t < 3, "%.1f s", now() - t);
	CHECK((r.end.flags & (END_TIMED_OUT | END_EMPTY)) ==
		  (END_TIMED_OUT | END_EMPTY),
	    "%x", r.end.flags);
	CHECK(WIFSIGNALED(r.end.status), "%x", r.end.status);
	CHECK(marked("drivemark1") == 0, "processes are left");
	r.s.timeout_ms = 0;
	r.s.idle_ms = 300;
	argv[2] = "echo a; sleep 20";
	t = now();
	peer_run(&peer, &r);
	CHECK(
	    now() - t < 2 && (r.end.flags & END_IDLE) != 0, "%x", r.end.flags);
	argv[2] = "for i in 1 2 3 4 5 6; do echo $i; sleep 0.1; done";
	peer_run(&peer, &r);
	CHECK(r.end.status == 0 && (r.end.flags & END_IDLE) == 0, "%x",
	    r.end.flags);
	run_clear(&r);
}

void
test_grandchildren(void)
{
	double t = now();
	struct run *r;

	r = sh("sh -c 'sleep 30; : drivemark2' & echo hi");
	CHECK(now() - t < 2, "%.1f s", now() - t);
	CHECK(strcmp(r->out, "hi\n") == 0 && r->end.status == 0, "%s", r->out);
	CHECK(marked("drivemark2") == 0, "the grandchild lives");
	t = now();
	r = sh("(setsid sh -c 'sleep 30; : drivemark3' >/dev/null 2>&1 "
	       "</dev/null &); echo hi");
	CHECK(now() - t < 1.5, "%.1f s", now() - t);
	CHECK(marked("drivemark3") == 0, "the daemon lives");
}

void
test_cancel(void)
{
	const char *argv[] = {"sh", "-c", "sleep 60; : drivemark4", NULL};
	struct run r = {0};
	uint8_t sig = SIGUSR1;
	double t = now();

	r.argv = argv;
	r.dir = work;
	if (peer_spawn(&peer, &r) == 0) {
		peer_send(&peer, ME_CANCEL, r.id, -1, NULL, 0);
		peer_finish(&peer, &r);
	}
	CHECK((r.end.flags & END_CANCELLED) != 0 && now() - t < 2, "%x",
	    r.end.flags);
	CHECK(marked("drivemark4") == 0, "it lives");
	argv[2] = "trap 'echo usr1; exit 0' USR1; echo > upc; "
		  "while :; do sleep 0.05; done";
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		CHECK(appears("upc"), "it does not run");
		peer_send(&peer, ME_SIGNAL, r.id, -1, &sig, 1);
		r.s.max_output = 0;
		peer_finish(&peer, &r);
	}
	CHECK(r.end.status == 0, "%x", r.end.status);
	/* unknown ids are crossed messages */
	peer_send(&peer, ME_SIGNAL, 999999, -1, &sig, 1);
	peer_send(&peer, ME_CANCEL, 999999, -1, NULL, 0);
	CHECK(strcmp(out("echo on"), "on\n") == 0, "execd lives");
	run_clear(&r);
}

void
test_output(void)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	struct run r = {0};

	r.argv = argv;
	r.s.timeout_ms = 10000;
	r.s.max_output = 1000;
	argv[2] = "head -c 1000000 /dev/zero | tr '\\0' x; echo done >&2";
	peer_run(&peer, &r);
	CHECK(r.nout == 1000 && r.end.dropped_out == 999000 &&
		  (r.end.flags & END_TRUNC_OUT) != 0 && r.end.status == 0,
	    "%zu %llu %x", r.nout, (unsigned long long)r.end.dropped_out,
	    r.end.flags);
	CHECK(strcmp(r.err, "done\n") == 0, "%s", r.err);
	r.s.flags = SPAWN_HEAD_TAIL;
	r.s.max_output = 10;
	argv[2] = "seq -s '' 1 100000";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "123400000\n") == 0 || r.nout == 10, "%s", r.out);
	CHECK(
	    memcmp(r.out, "1234", 4) == 0 && strcmp(r.out + 4, "00000\n") == 0,
	    "%s", r.out);
	r.s.flags = SPAWN_STREAM;
	argv[2] = "echo one; sleep 0.2; echo two";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "one\ntwo\n") == 0, "%s", r.out);
	/* if a reader that is slow loses bytes, it hears how many */
	r.s.max_output = 64 * 1024 * 1024;
	argv[2] = "head -c 30000000 /dev/zero";
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		usleep(1000000);
		peer_finish(&peer, &r);
	}
	CHECK(r.nout + r.gap == 30000000 && r.end.dropped_out == r.gap,
	    "%zu %llu", r.nout, (unsigned long long)r.gap);
	r.s.flags = 0;
	r.s.max_output = 4 * 1024 * 1024;
	argv[2] = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2";
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		usleep(300000);
		peer_finish(&peer, &r);
	}
	CHECK(r.nout == 3000000 && r.nerr == 3000000 && r.end.dropped_out == 0,
	    "%zu %zu", r.nout, r.nerr);
	argv[2] = "cat";
	peer_run(&peer, &r);
	CHECK(r.nout == 0 && r.end.status == 0, "stdin is not empty");
	r.input = "given\n";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "given\n") == 0, "%s", r.out);
	/* a listener that is gone does not stop the program */
	r.input = NULL;
	argv[2] = "head -c 3000000 /dev/zero; echo done > ended";
	r.dir = work;
	run_clear(&r);
	if (peer_spawn(&peer, &r) == 0) {
		struct imsg m;

		close(r.frames_fd);
		if (!peer_next(&peer, &m, 10000) || m.type != ME_END)
			die("no END");
	}
	CHECK(strcmp(out("cat ended; rm ended"), "done\n") == 0, "stopped");
	run_clear(&r);
}

void
test_environment(void)
{
	static const char *const env[] = {"A=b c", "EMPTY=", NULL};
	static const char *const argv[] = {"env", NULL};
	struct run r = {0};
	char *big;
	const char *bigargv[50] = {"sh", "-c", "echo ${#1}", "sh"};
	int i;

	r.argv = argv;
	r.env = env;
	r.s.max_output = 4096;
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "A=b c\nEMPTY=\n") == 0, "%s", r.out);
	/* large words go by memfd, up to what the kernel takes */
	if ((big = malloc(200001)) == NULL)
		die("malloc");
	memset(big, 'a', 200000);
	big[200000] = '\0';
	bigargv[4] = big;
	r.argv = bigargv;
	r.env = NULL;
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_ARGS_TOO_LARGE, "code %u",
	    r.fail.code);
	big[120000] = '\0';
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "120000\n") == 0, "%s", r.out);
	for (i = 4; i < 44; i++)
		bigargv[i] = big;
	peer_run(&peer, &r);
	CHECK(r.failed && r.fail.code == C_ARGS_TOO_LARGE, "code %u",
	    r.fail.code);
	free(big);
	run_clear(&r);
}

void
test_limits(void)
{
	const char *argv[] = {"sh", "-c", NULL, NULL};
	struct run r = {0};

	r.argv = argv;
	r.s.max_output = 4096;
	r.s.timeout_ms = 10000;
	r.s.procs = 20;
	argv[2] = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; "
		  "ls -d /proc/[0-9]* | wc -l";
	peer_run(&peer, &r);
	CHECK(!r.failed && r.end.us < 9e6, "%s", r.out);
	r.s.procs = 0;
	r.s.cpu_s = 1;
	argv[2] = "while :; do :; done";
	peer_run(&peer, &r);
	CHECK(WIFSIGNALED(r.end.status) && r.end.us < 5e6 &&
		  (r.end.flags & END_TIMED_OUT) == 0,
	    "%x", r.end.status);
	r.s.cpu_s = 0;
	r.s.memory = 64 * 1024 * 1024;
	argv[2] = "head -c 200000000 /dev/zero | tail -c 150000000 | wc -c";
	peer_run(&peer, &r);
	CHECK(strcmp(r.out, "150000000\n") != 0, "%s", r.out);
	run_clear(&r);
}
