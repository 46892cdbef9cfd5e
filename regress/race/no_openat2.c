/*
 * SPDX-License-Identifier: ISC
 *
 * Starts the real pathd on a kernel that seems to have no openat2(2), as some
 * service units make it, so that it walks component by component.
 */
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

int
main(int argc, char **argv)
{
	struct sock_filter code[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(code) / sizeof(code[0]), code};
	const char *self = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	const char *slash = self == NULL ? NULL : strrchr(self, '/');
	char path[4096];
	char *envp[] = {NULL};

	if (slash == NULL)
		return 1;
	snprintf(path, sizeof(path), "%.*s/real%s", (int)(slash - self), self,
	    slash);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == -1)
		return 1;
	execve(path, argv, envp);
	return 1;
}
