/*
 * SPDX-License-Identifier: ISC
 *
 * Starting the sibling programs: fork and exec, for execd clone into new
 * namespaces.  The only place outside execd that starts programs.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/caps.h"
#include "common/jail.h"
#include "common/log.h"
#include "monitor/parent.h"

#define CAPBIT_SETPCAP 8
#define CAPBIT_SYS_ADMIN 21

/* In a fresh user namespace: keep over execve what execd needs to mount. */
static int
keep_mount_caps(void)
{
	static const int keep[] = {CAPBIT_SETPCAP, CAPBIT_SYS_ADMIN};
	struct cap_hdr h = {CAP_VERSION_3, 0};
	struct cap_data d[2];
	size_t i;

	memset(d, 0, sizeof(d));
	for (i = 0; i < nitems(keep); i++) {
		d[0].effective |= 1U << keep[i];
		d[0].permitted |= 1U << keep[i];
		d[0].inheritable |= 1U << keep[i];
	}
	if (syscall(SYS_capset, &h, d) == -1)
		return -1;
	for (i = 0; i < nitems(keep); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, keep[i], 0,
			0) == -1)
			return -1;
	return 0;
}

/* In the child: become the program.  Never returns. */
static void
become(const char *path, int fd, int own_user_ns, const struct ids *self,
    char *const argv[], char *const envp[])
{
	sigset_t none;
	int sig;

	if (own_user_ns) {
		jail_idmap(self->uid, self->gid);
		if (keep_mount_caps() == -1)
			_exit(126);
	}
	for (sig = 1; sig < 32; sig++)
		(void)signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (fd != ABX_FD_PARENT) {
		if (dup2(fd, ABX_FD_PARENT) == -1)
			_exit(126);
	} else if (fcntl(fd, F_SETFD, 0) == -1)
		_exit(126);
	if (syscall(SYS_close_range, ABX_FD_PARENT + 1, ~0U, 0) == -1 ||
	    chdir("/") == -1)
		_exit(126);
	execve(path, argv, envp);
	_exit(127);
}

pid_t
spawn_child(const struct parent *p, enum proc_kind kind, int fd,
    char *const argv[], char *const envp[])
{
	struct ids self = {getuid(), getgid()};
	unsigned long flags = SIGCHLD;
	char path[ABX_PATH_MAX];
	pid_t pid;
	int n, user_ns = 0;

	n = snprintf(path, sizeof(path), "%s/%s", p->libdir, argv[0]);
	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (kind == PROC_EXECD) {
		flags |= CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
		if (!p->root) {
			flags |= CLONE_NEWUSER;
			user_ns = 1;
		}
		pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, 0);
	} else
		pid = fork();
	if (pid == 0)
		become(path, fd, user_ns, &self, argv, envp);
	return pid;
}
