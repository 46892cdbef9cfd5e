/*
 * SPDX-License-Identifier: ISC
 *
 * Loads seccomp programs that execd compiled; knows nothing of what they
 * refuse.  The kernel checks each program (seccomp(2)).
 */
#include "execd/launch/launch.h"

#include <sys/syscall.h>

#include <errno.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

int
seccomp_enter(const struct xl_filter *f)
{
	struct sock_fprog prog;
	size_t n = f->len / sizeof(struct sock_filter);
	void *code = f->code; /* of its own allocation, so it is aligned */

	if (n == 0 || n > BPF_MAXINSNS) {
		errno = EINVAL;
		return -1;
	}
	prog.len = (unsigned short)n;
	prog.filter = code;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}
