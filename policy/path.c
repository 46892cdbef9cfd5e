/*
 * SPDX-License-Identifier: ISC
 *
 * Paths as text: lexical normalisation and tests by whole components.  Never
 * asks the file system and knows nothing of links.  Pure.
 */
#include "policy/engine.h"

#include <stdlib.h>
#include <string.h>

const char *
path_below(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (n == 1 && dir[0] == '/')
		return path[0] == '/' ? path + 1 : NULL;
	if (strncmp(dir, path, n) != 0)
		return NULL;
	if (path[n] == '\0')
		return path + n;
	return path[n] == '/' ? path + n + 1 : NULL;
}

/* Drop the last segment of out[0..n). */
static size_t
segment_up(const char *out, size_t n)
{
	while (n > 0 && out[--n] != '/')
		;
	return n;
}

int
path_normal_into(const char *path, char out[ABX_PATH_MAX + 1])
{
	size_t n = 0, len;

	if (path[0] != '/')
		return -1;
	for (;;) {
		while (*path == '/')
			path++;
		len = strcspn(path, "/");
		if (len == 0)
			break;
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			n = segment_up(out, n);
		} else if (len != 1 || path[0] != '.') {
			if (n + 1 + len > ABX_PATH_MAX)
				return -1;
			out[n++] = '/';
			memcpy(out + n, path, len);
			n += len;
		}
		path += len;
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = '\0';
	return path_segments(out) <= ABX_PATH_SEGS ? 0 : -1;
}

size_t
path_segments(const char *path)
{
	size_t n = 0, len;

	for (;;) {
		while (*path == '/')
			path++;
		len = strcspn(path, "/");
		if (len == 0)
			return n;
		n++;
		path += len;
	}
}

int
path_acceptable(const char *path)
{
	return path[0] != '\0' &&
	       strnlen(path, ABX_PATH_MAX + 1) <= ABX_PATH_MAX &&
	       path_segments(path) <= ABX_PATH_SEGS;
}

int
path_is_normal(const char *path)
{
	char out[ABX_PATH_MAX + 1];

	return path_normal_into(path, out) == 0 && strcmp(out, path) == 0;
}

int
path_join_into(const char *dir, const char *rel, char out[ABX_PATH_MAX + 1])
{
	char joined[2 * ABX_PATH_MAX + 2];
	size_t d = strlen(dir), r = strlen(rel);

	if (d > ABX_PATH_MAX || r > ABX_PATH_MAX)
		return -1;
	memcpy(joined, dir, d);
	joined[d] = '/';
	memcpy(joined + d + 1, rel, r + 1);
	return path_normal_into(joined, out);
}

char *
path_normal(const char *path, enum code *code)
{
	char out[ABX_PATH_MAX + 1];
	char *copy;

	*code = C_POL_PATH_INVALID;
	if (!path_acceptable(path) || path_normal_into(path, out) == -1)
		return NULL;
	*code = C_OK;
	copy = strdup(out);
	return copy;
}

int
safe_component(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= ABX_ID_MAX && s[0] != '.' &&
	       strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			 "0123456789._-") == n;
}
