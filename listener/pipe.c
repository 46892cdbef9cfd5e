/*
 * SPDX-License-Identifier: ISC
 *
 * Reading and writing pipes that others made.  O_NONBLOCK belongs to the pipe
 * and not to the descriptor, so a pathd or execd that was taken over could
 * clear it behind our back and hold up every client; the flag of a single call
 * (preadv2(2), for pipes since Linux 6.4) is ours alone.
 */
#include "listener/pipe.h"

#include <sys/uio.h>

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

static int plain; /* this kernel has no such flag for pipes */

static int
unknown(ssize_t n)
{
	if (n == -1 && (errno == EOPNOTSUPP || errno == ENOSYS))
		plain = 1;
	return plain;
}

ssize_t
pipe_read(int fd, void *p, size_t len)
{
	struct iovec v = {p, len};
	ssize_t n;

	if (!plain && !unknown(n = preadv2(fd, &v, 1, -1, RWF_NOWAIT)))
		return n;
	return read(fd, p, len);
}

ssize_t
pipe_write(int fd, const void *p, size_t len)
{
	struct iovec v = {(void *)(uintptr_t)p, len};
	ssize_t n;

	if (!plain && !unknown(n = pwritev2(fd, &v, 1, -1, RWF_NOWAIT)))
		return n;
	return write(fd, p, len);
}
