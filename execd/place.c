/*
 * SPDX-License-Identifier: ISC
 *
 * Which places of a sandbox's file system are its own.  Pure: names only,
 * which are absolute and normal.
 */
#include "execd/place.h"

#include <string.h>

#include "common/abx.h"

int
place_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 &&
	       (path[n] == '/' || path[n] == '\0');
}

int
place_reserved(const char *path)
{
	static const char *const below[] = {"/proc", "/dev", "/sys"};
	static const char *const exact[] = {"/usr", "/etc", "/run", "/bin",
	    "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
	size_t i;

	for (i = 0; i < nitems(below); i++)
		if (place_within(path, below[i]))
			return 1;
	for (i = 0; i < nitems(exact); i++)
		if (strcmp(path, exact[i]) == 0)
			return 1;
	return 0;
}
