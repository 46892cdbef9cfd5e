/*
 * SPDX-License-Identifier: ISC
 *
 * Loads a seccomp program.  Decides nothing of what is in it; libc only, since
 * the static launcher links it.
 */
#include "common/bpf.h"

#include <sys/syscall.h>

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

int
bpf_load(const void *code, size_t len)
{
	size_t n = len / sizeof(struct sock_filter);
	struct sock_fprog prog;

	if (n == 0 || n > BPF_MAXINSNS) {
		errno = EINVAL;
		return -1;
	}
	prog.len = (unsigned short)n;
	prog.filter = (struct sock_filter *)(uintptr_t)code;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}
