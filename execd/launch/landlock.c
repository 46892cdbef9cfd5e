/*
 * SPDX-License-Identifier: ISC
 *
 * Landlock for the sandbox.
 */
#include "execd/launch/launch.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/landlock.h"

int
landlock_abi(void)
{
	long v =
	    syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_VERSION);

	return v < 0 ? 0 : (int)v;
}

static uint64_t
handled(int abi)
{
	uint64_t fs = LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_READ_DIR |
		      LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_ALL;

	if (abi >= 2)
		fs |= LL_REFER;
	if (abi >= 3)
		fs |= LL_TRUNCATE;
	if (abi >= 5)
		fs |= LL_IOCTL_DEV;
	return fs;
}

static uint64_t
rights(unsigned r)
{
	uint64_t fs = 0;

	if (r & XLR_READ)
		fs |= LL_READ_FILE | LL_READ_DIR;
	if (r & XLR_EXEC)
		fs |= LL_EXECUTE;
	if (r & XLR_WRITE)
		fs |= LL_WRITE_FILE | LL_TRUNCATE;
	if (r & XLR_MAKE)
		fs |= LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_ALL | LL_REFER;
	if (r & XLR_IOCTL)
		fs |= LL_IOCTL_DEV;
	return fs;
}

static int
add_path(int set, const struct xl_path *x, uint64_t mask)
{
	struct ll_path p;
	struct stat st;
	int rc = 0, save;

	p.fd = open(x->path, O_PATH | O_CLOEXEC);
	if (p.fd == -1)
		return errno == ENOENT ? 0 : -1;
	p.access = rights(x->rights) & mask;
	if (fstat(p.fd, &st) == -1)
		rc = -1;
	else if (!S_ISDIR(st.st_mode))
		p.access &= LL_FILE_RIGHTS;
	if (rc == 0 && p.access != 0)
		rc = (int)syscall(
		    SYS_landlock_add_rule, set, LL_RULE_PATH_BENEATH, &p, 0);
	save = errno;
	close(p.fd);
	errno = save;
	return rc;
}

/* Enter the domain of the set (taken) unless its rules failed: 0, or -1 with
 * errno. */
static int
restrict_self(int set, int rc)
{
	int save;

	if (rc == 0)
		rc = (int)syscall(SYS_landlock_restrict_self, set, 0);
	save = errno;
	close(set);
	errno = save;
	return rc;
}

int
landlock_enter(const struct xl_setup *s, int abi)
{
	struct ll_attr a = {0};
	size_t i, size;
	int set, rc = 0;

	a.fs = handled(abi);
	a.net = abi >= 4 ? LL_NET_ALL : 0;
	a.scoped = abi >= 6 ? LL_SCOPE_ALL : 0;
	size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
	set = (int)syscall(SYS_landlock_create_ruleset, &a, size, 0);
	if (set == -1)
		return -1;
	for (i = 0; rc == 0 && i < s->npaths; i++)
		rc = add_path(set, &s->paths[i], a.fs);
	return restrict_self(set, rc);
}

int
landlock_apart_set(void)
{
	struct ll_attr a = {0};
	struct ll_path p;
	int abi = landlock_abi(), set, rc = 0, save;

	errno = ENOSYS;
	if (abi == 0)
		return -1;
	/* It has to handle something: this is refused anyway.  What it does
	 * not say of REFER is refused too, so it is granted. */
	a.fs = LL_MAKE_BLOCK | (abi >= 2 ? LL_REFER : 0);
	set = (int)syscall(SYS_landlock_create_ruleset, &a, sizeof(a.fs), 0);
	if (set == -1)
		return -1;
	if (abi >= 2) {
		p.access = LL_REFER;
		p.fd = open("/", O_PATH | O_CLOEXEC);
		rc = p.fd == -1 ? -1
				: (int)syscall(SYS_landlock_add_rule, set,
				      LL_RULE_PATH_BENEATH, &p, 0);
		save = errno;
		if (p.fd != -1)
			close(p.fd);
		if (rc == -1) {
			close(set);
			errno = save;
			return -1;
		}
	}
	return set;
}

int
landlock_apart(int set)
{
	return (int)syscall(SYS_landlock_restrict_self, set, 0);
}
