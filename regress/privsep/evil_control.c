/*
 * SPDX-License-Identifier: ISC
 *
 * The control socket, and clients of it that abxctl never is: they lose their
 * connection, and nothing else happens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "regress/privsep/evil.h"

#define NOBODY 65534

static struct imsgbuf *
dial(struct lab *l)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct imsgbuf *b;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	strlcpy(
	    sa.sun_path, stage_path(&l->st, "control"), sizeof(sa.sun_path));
	if (fd == -1 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    (b = imsg_new(fd)) == NULL)
		die("control");
	return b;
}

/* 1: an answer, 0: the end, -1: nothing. */
static int
hear(struct imsgbuf *b, int ms)
{
	struct pollfd p = {imsg_fd(b), POLLIN, 0};
	struct imsg m;

	while (!imsg_get(b, &m)) {
		if (poll(&p, 1, ms) != 1)
			return -1;
		if (imsg_read(b) != 1)
			return 0;
	}
	if (m.fd != -1)
		close(m.fd);
	return 1;
}

static void
say(struct imsgbuf *b, uint16_t type, uint64_t id, int fd, const void *p,
    size_t n)
{
	if (imsg_compose(b, type, id, fd, p, n) == -1)
		die("compose");
	(void)imsg_flush(b);
}

static void
settle(struct lab *l)
{
	double end = now() + 10;

	assert_int_equal(lab_sync(l), 0);
	while (proc_fds(l->pid) != l->fds && now() < end)
		nap_ms(5);
	assert_int_equal(proc_fds(l->pid), l->fds);
	assert_int_equal(l->lines, 0);
}

/* What is taken, and what ends the connection. */
void
control_words(void **state)
{
	static const struct {
		uint16_t type;
		uint64_t id;
		const char *text;
		int fd;
		int taken;
	} cases[] = {
	    {CT_ASK, 1, "status", 0, 1},
	    {CT_ASK, 1, "no-such-verb", 0, 1},
	    {CT_ASK, 1, "", 0, 0},
	    {CT_ASK, 0, "status", 0, 0},
	    {CT_ASK, 1, "status", 1, 0},
	    {CT_ANS, 1, "status", 0, 0},
	    {PC_BROKEN, 1, "statu", 0, 0},
	    {LM_FIN, 1, "status", 0, 0},
	    {0x5ff, 1, "status", 0, 0},
	};
	struct lab *l = *state;
	struct imsgbuf *b;
	size_t i;

	for (i = 0; i < nitems(cases); i++) {
		b = dial(l);
		say(b, cases[i].type, cases[i].id,
		    cases[i].fd ? odd_fd(l, ODD_NULL, "", 0) : -1,
		    cases[i].text, strlen(cases[i].text));
		if (hear(b, 3000) != cases[i].taken)
			fail_msg("%s \"%s\" is %staken",
			    msg_name(cases[i].type), cases[i].text,
			    cases[i].taken ? "not " : "");
		imsg_free(b);
	}
	/* a word with something behind its end is another word */
	b = dial(l);
	say(b, CT_ASK, 1, -1, "panic\0x", 7);
	assert_int_equal(hear(b, 3000), 1);
	imsg_free(b);
	b = dial(l);
	say(b, CT_ASK, 1, -1, "status", 6);
	assert_int_equal(hear(b, 3000), 1);
	imsg_free(b);
	settle(l);
	assert_int_equal(l->others, 0); /* no panic */
}

/* One that asks without end and reads nothing. */
void
control_deaf(void **state)
{
	struct lab *l = *state;
	struct imsgbuf *b = dial(l);
	struct pollfd p = {imsg_fd(b), POLLOUT, 0};
	size_t before = proc_rss(l->pid);
	int i, rc = 0;

	(void)fcntl(imsg_fd(b), F_SETFL, O_NONBLOCK);
	for (i = 0; i < 100000 && rc != -1; i++) {
		if (imsg_compose(b, CT_ASK, 1, -1, "status", 6) == -1)
			die("compose");
		while ((rc = imsg_flush(b)) == 1)
			if (poll(&p, 1, 3000) != 1)
				break;
	}
	if (rc != -1)
		fail_msg("%d unread answers are not too many", i);
	if (strstr(evil_build, "asan") == NULL)
		assert_true(proc_rss(l->pid) < before + 8192);
	imsg_free(b);
	settle(l);
}

/* Many that say nothing leave room again when they go. */
void
control_crowd(void **state)
{
	struct lab *l = *state;
	struct imsgbuf *b[40];
	size_t i;

	for (i = 0; i < nitems(b); i++)
		b[i] = dial(l);
	for (i = 0; i < nitems(b); i++)
		imsg_free(b[i]);
	settle(l);
	b[0] = dial(l);
	say(b[0], CT_ASK, 1, -1, "status", 6);
	assert_int_equal(hear(b[0], 3000), 1);
	imsg_free(b[0]);
	settle(l);
}

/* Another user is not heard, whatever the mode of the socket says. */
void
control_stranger(void **state)
{
	struct lab *l = *state;
	struct imsgbuf *b;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	if ((pid = fork()) == 0) {
		if (setresgid(NOBODY, NOBODY, NOBODY) == -1 ||
		    setresuid(NOBODY, NOBODY, NOBODY) == -1)
			_exit(2);
		b = dial(l);
		say(b, CT_ASK, 1, -1, "panic", 5);
		_exit(hear(b, 3000) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	settle(l);
}

/* Who asks for a reload hears of one that began after that, and how it ended;
 * and what is said of one that is over says nothing more. */
void
control_reload(void **state)
{
	struct lab *l = *state;
	struct imsgbuf *b = dial(l);

	say(b, CT_ASK, 1, -1, "reload", 6);
	lab_asked(l);
	/* one that had begun before ends well, and one does not */
	lab_reload(l, l->ticket - 1);
	lab_refuse(l, 0, l->ticket - 1);
	assert_int_equal(hear(b, 300), -1);
	lab_reload(l, l->ticket);
	assert_int_equal(hear(b, 3000), 1);
	assert_int_equal(lab_sync(l), 0);
	/* it is in force when its new worker dies */
	say(b, CT_ASK, 2, -1, "reload", 6);
	lab_asked(l);
	l->others = 0;
	lab_refuse(l, l->epoch, l->ticket);
	assert_int_equal(hear(b, 300), -1);
	assert_int_equal(l->others, 0);
	lab_refuse(l, 0, l->ticket);
	assert_int_equal(hear(b, 3000), 1);
	imsg_free(b);
	settle(l);
}
