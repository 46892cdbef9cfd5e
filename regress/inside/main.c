/*
 * SPDX-License-Identifier: ISC
 *
 * inside GROUP ... [-- NAME=PATH ...] | inside die NAME
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "regress/inside/inside.h"

const char *
errno_name(int err)
{
	static const struct {
		int err;
		const char *name;
	} t[] = {{EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {ESRCH, "ESRCH"},
	    {EINTR, "EINTR"}, {EIO, "EIO"}, {ENXIO, "ENXIO"}, {EBADF, "EBADF"},
	    {ECHILD, "ECHILD"}, {EAGAIN, "EAGAIN"}, {ENOMEM, "ENOMEM"},
	    {EACCES, "EACCES"}, {EFAULT, "EFAULT"}, {EBUSY, "EBUSY"},
	    {EEXIST, "EEXIST"}, {EXDEV, "EXDEV"}, {ENODEV, "ENODEV"},
	    {ENOTDIR, "ENOTDIR"}, {EISDIR, "EISDIR"}, {EINVAL, "EINVAL"},
	    {EMFILE, "EMFILE"}, {ENOTTY, "ENOTTY"}, {ENOSPC, "ENOSPC"},
	    {EROFS, "EROFS"}, {ENOSYS, "ENOSYS"}, {ELOOP, "ELOOP"},
	    {EOPNOTSUPP, "EOPNOTSUPP"}, {ENODATA, "ENODATA"}, {EFBIG, "EFBIG"},
	    {ENOTEMPTY, "ENOTEMPTY"}, {EMLINK, "EMLINK"}, {ENOEXEC, "ENOEXEC"},
	    {E2BIG, "E2BIG"}, {EAFNOSUPPORT, "EAFNOSUPPORT"},
	    {EPROTONOSUPPORT, "EPROTONOSUPPORT"},
	    {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"}};
	static char other[24];
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (t[i].err == err)
			return t[i].name;
	snprintf(other, sizeof(other), "errno%d", err);
	return other;
}

void
say(const char *group, const char *name, long rc)
{
	printf("%s %s %s\n", group, name, rc == -1 ? errno_name(errno) : "ok");
	fflush(stdout);
}

void
say_number(const char *group, const char *name, long long n)
{
	printf("%s %s %lld\n", group, name, n);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} t[] = {{"calls", try_calls}, {"sockets", try_sockets},
	    {"places", try_places}, {"limits", try_limits}};
	size_t k;
	int i;

	if (argc == 3 && strcmp(argv[1], "die") == 0) {
		try_death(argv[2]);
		return 0;
	}
	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			try_named(argv + i + 1);
			break;
		}
		for (k = 0; k < sizeof(t) / sizeof(t[0]); k++)
			if (strcmp(argv[i], t[k].name) == 0)
				break;
		if (k == sizeof(t) / sizeof(t[0]))
			return 2;
		t[k].fn();
	}
	return 0;
}
