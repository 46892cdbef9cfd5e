/*
 * SPDX-License-Identifier: ISC
 *
 * Makes a process of the service do a system call, as a bug in it would:
 * stopped in the call that it waits in, sent into another one, and let go as
 * if it had been interrupted.  Needs root, and a machine that it knows.
 */
#include "regress/privsep/trip.h"

#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#ifdef __x86_64__

/* Go on to the next stop: 0, or -2 or -3 for a death. */
static int
go(pid_t pid, int how)
{
	int status;

	if (ptrace((enum __ptrace_request)how, pid, NULL, NULL) == -1 ||
	    waitpid(pid, &status, __WALL) != pid)
		return -3;
	/* the filter's signal is shown to us before it kills */
	if (WIFSTOPPED(status) && WSTOPSIG(status) == SIGSYS &&
	    (ptrace(PTRACE_CONT, pid, NULL, (void *)(uintptr_t)SIGSYS) == -1 ||
		waitpid(pid, &status, __WALL) != pid))
		return -3;
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? -2 : -3;
	return WIFSTOPPED(status) ? 0 : -3;
}

/* Bytes into its memory, below what its stack uses. */
static int
put_text(pid_t pid, uint64_t at, const char *text)
{
	char copy[4096] = "";
	struct iovec mine = {copy, strlen(text) + 1};
	struct iovec its = {NULL, mine.iov_len};

	if (mine.iov_len > sizeof(copy))
		return -1;
	memcpy(copy, text, mine.iov_len);
	its.iov_base = (char *)(uintptr_t)at;
	return process_vm_writev(pid, &mine, 1, &its, 1, 0) ==
		       (ssize_t)mine.iov_len
		   ? 0
		   : -1;
}

static int
run_call(pid_t pid, long nr, struct user_regs_struct *r, long *rc)
{
	int n;

	if (ptrace(PTRACE_SETREGS, pid, NULL, r) == -1)
		return -1;
	/* to its entry, and to its end */
	if ((n = go(pid, PTRACE_SYSCALL)) != 0 ||
	    (n = go(pid, PTRACE_SYSCALL)) != 0)
		return n;
	if (ptrace(PTRACE_GETREGS, pid, NULL, r) == -1)
		return -1;
	*rc = (long)r->rax;
	/* a refused call is rolled back, its signal comes at the next step */
	return *rc == nr ? go(pid, PTRACE_SYSCALL) : 0;
}

int
force_call(pid_t pid, long nr, const long args[6], const char *path, int where,
    long *rc)
{
	struct user_regs_struct old, r;
	uint64_t arg[6];
	int status, n = -1, i;

	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == -1)
		return -1;
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == -1 ||
	    waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_GETREGS, pid, NULL, &old) == -1)
		goto out;
	/* it must stand behind a system call */
	errno = 0;
	if ((ptrace(PTRACE_PEEKTEXT, pid, old.rip - 2, NULL) & 0xffff) !=
		0x050f ||
	    errno != 0)
		goto out;
	r = old;
	for (i = 0; i < 6; i++)
		arg[i] = (uint64_t)args[i];
	if (path != NULL) {
		arg[where] = (old.rsp - 8192) & ~63ULL;
		if (put_text(pid, arg[where], path) == -1)
			goto out;
	}
	r.rip -= 2;
	r.orig_rax = (uint64_t)-1;
	r.rax = (uint64_t)nr;
	r.rdi = arg[0];
	r.rsi = arg[1];
	r.rdx = arg[2];
	r.r10 = arg[3];
	r.r8 = arg[4];
	r.r9 = arg[5];
	n = run_call(pid, nr, &r, rc);
	old.orig_rax = (uint64_t)-1;
	old.rax = (uint64_t)-EINTR;
	if (n == 0 && ptrace(PTRACE_SETREGS, pid, NULL, &old) == -1)
		n = -1;
out:
	if (n >= -1)
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return n;
}

#else

int
force_call(pid_t pid, long nr, const long args[6], const char *path, int where,
    long *rc)
{
	return -1;
}

#endif
