/*
 * SPDX-License-Identifier: ISC
 *
 * One process of a running service taken over: it is killed and started again,
 * one line is logged, the others live on as they were, and what they are doing
 * for clients goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "common/ops.h"
#include "regress/privsep/evil.h"
#include "regress/privsep/puppet.h"

#define UPLOAD "abcdefghij"

static struct stage st;
static struct puppet puppet;

static const enum proc_kind kinds[] = {
    PROC_LISTENER, PROC_MONITOR, PROC_PATHD, PROC_EXECD};

/* ---- what goes on meanwhile ---- */

/* A client's call that began before and ends after: a run when pathd is the
 * evil one, an upload when execd is. */
static int
call_begin(void)
{
	int fd;

	if (puppet.kind == PROC_LISTENER)
		return -1;
	if ((fd = http_connect(&st)) == -1)
		fail_msg("connect: %s", strerror(errno));
	if (puppet.kind == PROC_PATHD) {
		static const char body[] = "{\"argv\":[\"sleep\",\"1\"]}";

		(void)http_send(
		    fd, TOKEN_A, "POST", "/commands/run", body, strlen(body));
	} else {
		(void)http_send(fd, TOKEN_A, "PUT",
		    "/files/upload-stream?path=up", NULL, strlen(UPLOAD));
		if (write(fd, UPLOAD, 3) != 3)
			fail_msg("write");
	}
	nap_ms(100);
	return fd;
}

static void
call_end(int fd)
{
	struct reply r;
	int want = 200;

	if (fd == -1)
		return;
	if (puppet.kind == PROC_EXECD) {
		if (write(fd, UPLOAD + 3, strlen(UPLOAD) - 3) == -1)
			fail_msg("the upload is gone");
		want = 201;
	}
	(void)http_read(fd, &r, 10000);
	if (r.status != want && r.status != 200)
		fail_msg("the call of a client ends with %d: %.300s", r.status,
		    r.body == NULL ? "" : r.body);
	if (puppet.kind == PROC_PATHD)
		assert_non_null(strstr(r.body, "\"exit_code\":0"));
	reply_clear(&r);
	close(fd);
}

/* ---- cases ---- */

static void
say(int up, uint16_t type, uint64_t id, int fd, size_t n)
{
	static const uint8_t zeros[256];

	puppet_say(&puppet, up, type, id, fd, zeros, n);
}

static void
do_unknown(void)
{
	say(0, 0x1ff, 1, -1, 8);
}

static void
do_wrong_state(void)
{
	static const uint16_t type[] = {[PROC_LISTENER] = LM_FIN,
	    [PROC_PATHD] = MP_DONE,
	    [PROC_EXECD] = ME_END};
	const struct msg_row *row = msg_row(type[puppet.kind]);

	say(0, row->type, 77, -1, row->min);
}

/* What the monitor would say to it. */
static void
do_echo(void)
{
	static const uint16_t type[] = {[PROC_LISTENER] = LM_CONF,
	    [PROC_PATHD] = MP_CANCEL,
	    [PROC_EXECD] = ME_CANCEL};

	say(0, type[puppet.kind], 1, -1, msg_row(type[puppet.kind])->min);
}

static void
do_malformed(void)
{
	static const uint16_t type[] = {[PROC_LISTENER] = LM_ASK,
	    [PROC_PATHD] = MP_ROOTS_OK,
	    [PROC_EXECD] = ME_HELLO};

	say(0, type[puppet.kind], puppet.kind == PROC_LISTENER, -1, 40);
}

static void
do_descriptor(void)
{
	static const uint16_t type[] = {[PROC_LISTENER] = LM_CANCEL,
	    [PROC_PATHD] = MP_DONE,
	    [PROC_EXECD] = ME_END};

	say(0, type[puppet.kind], 1, open("/dev/null", O_RDONLY | O_CLOEXEC),
	    msg_row(type[puppet.kind])->min);
}

static void
do_two_descriptors(void)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(2 * sizeof(int))];
	} cm = {0};
	uint8_t frame[IMSG_HDR] = {0, 0, 0, 0, 6, 1, 1, 0, 1};
	struct iovec iov = {frame, sizeof(frame)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	int fds[2] = {STDIN_FILENO, STDOUT_FILENO};

	h.msg_control = cm.buf;
	h.msg_controllen = sizeof(cm.buf);
	c = CMSG_FIRSTHDR(&h);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	if (sendmsg(imsg_fd(puppet.mon), &h, MSG_NOSIGNAL) == -1)
		fail_msg("sendmsg: %s", strerror(errno));
}

/* To the parent: what only the monitor may say, and nonsense. */
static void
do_up_broken(void)
{
	say(1, PC_BROKEN, 0, -1, 5);
}

static void
do_up_unknown(void)
{
	say(1, 0x0ff, 0, -1, 5);
}

static void
do_up_ready(void)
{
	say(1, PC_READY, 0, -1, 5);
}

static void
do_up_descriptor(void)
{
	say(1, PC_LOG, 0, open("/dev/null", O_RDONLY | O_CLOEXEC), 5);
}

/* Ends of channels, by one that lives on. */
static void
do_leave_monitor(void)
{
	(void)shutdown(imsg_fd(puppet.mon), SHUT_RDWR);
}

static void
do_leave_parent(void)
{
	(void)shutdown(imsg_fd(puppet.up), SHUT_RDWR);
}

static const struct {
	const char *name;
	void (*run)(void);
	int quiet; /* nothing about the protocol is logged */
} cases[] = {
    {"an unknown type", do_unknown, 0},
    {"a message in the wrong state", do_wrong_state, 0},
    {"a message of the other side", do_echo, 0},
    {"a malformed message", do_malformed, 0},
    {"a descriptor where none belongs", do_descriptor, 0},
    {"two descriptors in one message", do_two_descriptors, 0},
    {"BROKEN to the parent", do_up_broken, 0},
    {"an unknown type to the parent", do_up_unknown, 0},
    {"READY twice", do_up_ready, 0},
    {"a descriptor to the parent", do_up_descriptor, 0},
    {"the end of the monitor's channel", do_leave_monitor, 1},
    {"the end of the parent's channel", do_leave_parent, 1},
};

/* ---- one case ---- */

struct others {
	pid_t pid[4];
	size_t fds[4];
};

static void
look(struct others *o)
{
	size_t i;

	memset(o, 0, sizeof(*o));
	for (i = 0; i < nitems(kinds); i++) {
		o->pid[i] = kinds[i] == puppet.kind
				? 0
				: stage_kid(&st, proc_name(kinds[i]));
		o->fds[i] = o->pid[i] == 0 ? 0 : proc_fds(o->pid[i]);
	}
}

/* Once nothing has moved for a while: what the last call left goes a moment
 * after its answer. */
static void
look_still(struct others *o)
{
	struct others again;
	int i, still = 0;

	look(o);
	for (i = 0; i < 100 && still < 4; i++) {
		nap_ms(50);
		look(&again);
		still = memcmp(o, &again, sizeof(again)) == 0 ? still + 1 : 0;
		*o = again;
	}
}

static int
same(const struct others *a, int ms)
{
	double end = now() + ms / 1e3;
	struct others b;

	do {
		look(&b);
		if (memcmp(a, &b, sizeof(b)) == 0)
			return 1;
		nap_ms(20);
	} while (now() < end);
	return 0;
}

static void
wrong(size_t i, const char *what)
{
	print_error(
	    "%s, %s: %s\n", proc_name(puppet.kind), cases[i].name, what);
	stage_show_log(&st);
	fail();
}

static void
one_case(size_t i)
{
	struct others before;
	pid_t old = puppet.pid;
	size_t lines;
	int call;

	look_still(&before);
	call = call_begin();
	stage_mark(&st);
	cases[i].run();
	if (!puppet_dead(&puppet, 20000))
		wrong(i, "it is not killed");
	puppet_take(&puppet);
	if (puppet.pid == old || stage_kid(&st, proc_name(puppet.kind)) == -1)
		wrong(i, "it is not started again");
	call_end(call);
	lines = stage_logged(&st, "breaks the protocol");
	if (puppet.kind != PROC_LISTENER && cases[i].quiet == 0 && lines == 0)
		lines = stage_wait_log(&st, "breaks the protocol", 1, 10000);
	if (lines != (cases[i].quiet ? 0 : 1))
		wrong(i, "one line was to say so");
	if (!same(&before, 20000))
		wrong(i, "the others are not what they were");
}

static void
service(enum proc_kind kind)
{
	size_t i;

	stage_new(&st, evil_build, evil_user);
	stage_conf(&st,
	    "\"restart_limit\":1000,"
	    "\"rules\":[{\"allow\":[\"core.health\",\"files.upload\","
	    "\"files.download\"],\"paths\":{\"roots\":[\"@/w\"]}},"
	    "{\"allow\":[\"commands.run\"],\"commands\":"
	    "{\"allow\":[\"sleep {int}\"]}}]");
	puppet_new(&puppet, &st, kind, evil_standin);
	stage_start(&st, 0);
	puppet_take(&puppet);
	if (stage_wait_log(&st, "ready on", 1, 20000) == 0) {
		stage_show_log(&st);
		fail_msg("the service does not start");
	}
	/* once, so that everybody has what he will have */
	call_end(call_begin());
	for (i = 0; i < nitems(cases); i++)
		one_case(i);
	puppet_free(&puppet);
	assert_int_equal(stage_stop(&st, SIGTERM), 0);
	stage_free(&st);
}

void
service_listener(void **state)
{
	service(PROC_LISTENER);
}

void
service_pathd(void **state)
{
	service(PROC_PATHD);
}

void
service_execd(void **state)
{
	service(PROC_EXECD);
}

/* The limit ends the service, and everything with it. */
void
service_limit(void **state)
{
	struct others o;
	int status = 0;
	size_t i;

	stage_new(&st, evil_build, evil_user);
	stage_conf(&st,
	    "\"restart_limit\":2,\"rules\":[{\"allow\":[\"core.health\"]}]");
	puppet_new(&puppet, &st, PROC_PATHD, evil_standin);
	stage_start(&st, 0);
	puppet_take(&puppet);
	assert_int_equal(stage_wait_log(&st, "ready on", 1, 20000), 1);
	look(&o);
	for (i = 0; i < 3; i++) {
		if (i > 0)
			puppet_take(&puppet);
		do_unknown();
		assert_true(puppet_dead(&puppet, 20000));
	}
	assert_true(stage_ended(&st, 5000, &status));
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	assert_int_equal(stage_logged(&st, "giving up"), 1);
	for (i = 0; i < nitems(kinds); i++)
		if (o.pid[i] != 0)
			assert_int_equal(kill(o.pid[i], 0), -1);
	puppet_free(&puppet);
	stage_free(&st);
}

/* A child that does nothing but log fills no disk, and lives. */
void
service_log_flood(void **state)
{
	static const char line[] = "\002flood";
	size_t i, n;

	stage_new(&st, evil_build, evil_user);
	stage_conf(&st, "\"rules\":[{\"allow\":[\"core.health\"]}]");
	puppet_new(&puppet, &st, PROC_PATHD, evil_standin);
	stage_start(&st, 0);
	puppet_take(&puppet);
	assert_int_equal(stage_wait_log(&st, "ready on", 1, 20000), 1);
	for (i = 0; i < 5000; i++)
		puppet_say(&puppet, 1, PC_LOG, 0, -1, line, sizeof(line) - 1);
	nap_ms(1100);
	puppet_say(&puppet, 1, PC_LOG, 0, -1, line, sizeof(line) - 1);
	assert_true(stage_wait_log(&st, "were dropped", 1, 20000) >= 1);
	n = stage_logged(&st, "flood");
	if (n < 100 || n > 500)
		fail_msg("%zu lines of 5001 were taken", n);
	assert_int_equal(kill(puppet.pid, 0), 0);
	puppet_free(&puppet);
	assert_int_equal(stage_stop(&st, SIGTERM), 0);
	stage_free(&st);
}

int
service_end(void **state)
{
	puppet_free(&puppet);
	stage_free(&st);
	return 0;
}
