/*
 * SPDX-License-Identifier: ISC
 *
 * What only a supervisor does, the process between the launcher and the
 * program of one run of a session: its start, and the end of all that hangs
 * below it.  It kills its own children only, which nobody else can reap, so
 * that no number means another process.
 */
#include "execd/launch/launch.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define CHILDREN "/proc/thread-self/children"
#define LOST 4 /* exit status: nothing can be said of the tree any more */

pid_t
super_fork(int sock)
{
	pid_t pid;

	if ((pid = fork()) != 0)
		return pid;
	/* an end with anything but 0 ends the sandbox */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 ||
	    prctl(PR_SET_NAME, "abx-super", 0, 0, 0) == -1 ||
	    dup3(sock, LAUNCH_FD, O_CLOEXEC) == -1 ||
	    syscall(SYS_close_range, LAUNCH_FD + 1, ~0U, 0) == -1)
		_exit(LOST);
	return 0;
}

/* KILL those of a piece of the list; a number that the piece cuts is kept in
 * *pid for the next. */
static void
kill_listed(const char *text, ssize_t n, pid_t *pid)
{
	ssize_t i;

	for (i = 0; i < n; i++)
		if (text[i] >= '0' && text[i] <= '9')
			*pid = *pid * 10 + (text[i] - '0');
		else {
			if (*pid > 1)
				(void)kill(*pid, SIGKILL);
			*pid = 0;
		}
}

void
super_kill(void)
{
	char text[4096];
	pid_t pid = 0;
	ssize_t n;
	int fd;

	if ((fd = open(CHILDREN, O_RDONLY | O_CLOEXEC)) == -1)
		_exit(LOST);
	while ((n = read(fd, text, sizeof(text))) > 0)
		kill_listed(text, n, &pid);
	close(fd);
	if (n == -1)
		_exit(LOST);
}
