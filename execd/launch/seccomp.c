/*
 * SPDX-License-Identifier: ISC
 *
 * Loads seccomp programs that execd compiled; knows nothing of what they
 * refuse.  The kernel checks each program (seccomp(2)).
 */
#include "execd/launch/launch.h"

#include <sys/syscall.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

int
seccomp_enter(const struct xl_filter *f)
{
	struct sock_fprog prog;
	struct sock_filter *insns;
	size_t n = f->len / sizeof(*insns);
	int rc, save;

	if (n == 0 || n > BPF_MAXINSNS) {
		errno = EINVAL;
		return -1;
	}
	/* the bytes of a message need not be aligned */
	if ((insns = malloc(f->len)) == NULL)
		return -1;
	memcpy(insns, f->code, f->len);
	prog.len = (unsigned short)n;
	prog.filter = insns;
	rc = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
	save = errno;
	free(insns);
	errno = save;
	return rc;
}
