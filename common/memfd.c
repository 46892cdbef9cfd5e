/*
 * SPDX-License-Identifier: ISC
 *
 * Memory files that go to another process.
 */
#include "common/memfd.h"

#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static int
write_all(int fd, const char *p, size_t n)
{
	ssize_t m;

	while (n > 0) {
		if ((m = write(fd, p, n)) == -1) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		p += m;
		n -= (size_t)m;
	}
	return 0;
}

int
memfd_sealed(const char *name, const void *p, size_t n)
{
	int fd, save;

	if ((fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)) == -1)
		return -1;
	if (write_all(fd, p, n) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	save = errno;
	close(fd);
	errno = save;
	return -1;
}
