/*
 * SPDX-License-Identifier: ISC
 *
 * Stands in for a program of ours that was taken over: abxd starts it, and it
 * gives its channel to the test and waits to be killed.  Whatever the test says
 * there is said by the child that abxd knows.  As the loader it is the real
 * one.
 */
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PARENT 3

static int
give(int ctl, int fd, const char *name)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int))];
	} cm = {0};
	struct iovec iov = {(void *)(uintptr_t)name, strlen(name)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	h.msg_control = cm.buf;
	h.msg_controllen = sizeof(cm.buf);
	c = CMSG_FIRSTHDR(&h);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(ctl, &h, MSG_NOSIGNAL) == -1 ? -1 : 0;
}

int
main(int argc, char **argv)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	const char *self = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	const char *slash = self == NULL ? NULL : strrchr(self, '/');
	char path[4096], byte;
	int ctl;

	if (slash == NULL)
		return 1;
	if (argc > 1) {
		snprintf(path, sizeof(path), "%.*s/real%s", (int)(slash - self),
		    self, slash);
		execv(path, argv);
		return 1;
	}
	/* bin/NAME, and the door beside bin */
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%.*s/../door",
	    (int)(slash - self), self);
	if ((ctl = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) == -1 ||
	    connect(ctl, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    give(ctl, PARENT, slash + 1) == -1)
		return 1;
	close(PARENT);
	/* until the test or abxd has had enough */
	while (read(ctl, &byte, 1) > 0)
		continue;
	return 0;
}
