/*
 * SPDX-License-Identifier: ISC
 *
 * Request targets, judged as they came before anything is decoded, so that no
 * second spelling of a path exists (design: rule 1 of the listener).  Pure.
 */
#include "listener/target.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "listener/http_parse.h"

/* The byte that an escape at s means, -1 when it is broken or NUL. */
static int
escape(const char *s, size_t left)
{
	int hi, lo;

	if (left < 3 || (hi = hex_digit(s[1])) == -1 ||
	    (lo = hex_digit(s[2])) == -1)
		return -1;
	return hi << 4 | lo ? hi << 4 | lo : -1;
}

/* Dot segments and empty ones. */
static int
segments_ok(const char *s, size_t len)
{
	size_t i, from = 1, n;

	for (i = 1; i <= len; i++) {
		if (i < len && s[i] != '/')
			continue;
		n = i - from;
		if ((n == 0 && i < len) || (n == 1 && s[from] == '.') ||
		    (n == 2 && s[from] == '.' && s[from + 1] == '.'))
			return 0;
		from = i + 1;
	}
	return 1;
}

/* Check and decode the path part. */
static int
split_path(const char *s, size_t len, char *out)
{
	size_t i, n = 0;
	int c;

	if (len == 0 || s[0] != '/' || !segments_ok(s, len))
		return -1;
	for (i = 0; i < len; i++) {
		c = (unsigned char)s[i];
		if (c == '%') {
			c = escape(s + i, len - i);
			if (c == -1 || c == '/' || c == '.' || c == '\\')
				return -1;
			i += 2;
		} else if (c <= ' ' || c >= 0x7f || c == '\\' || c == '#')
			return -1;
		if (n < TARGET_PATH_MAX)
			out[n++] = (char)c;
	}
	out[n < TARGET_PATH_MAX ? n : 0] = '\0';
	return 0;
}

static int
query_ok(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (s[i] <= ' ' || s[i] >= 0x7f || s[i] == '#')
			return 0;
		if (s[i] == '%' && escape(s + i, len - i) == -1)
			return 0;
	}
	return 1;
}

enum code
target_split(const char *raw, size_t len, struct uri *u)
{
	const char *q;

	u->query = NULL;
	u->query_len = 0;
	u->path[0] = '\0';
	if (len > HTTP_TARGET_MAX)
		return C_REQ_BAD_TARGET;
	if (len > 0 && (q = memchr(raw, '?', len)) != NULL) {
		u->query = q + 1;
		u->query_len = len - (size_t)(q + 1 - raw);
		len = (size_t)(q - raw);
		if (!query_ok(u->query, u->query_len))
			return C_REQ_BAD_TARGET;
	}
	return split_path(raw, len, u->path) == -1 ? C_REQ_BAD_TARGET : C_OK;
}

/* Decode len bytes; the result is never longer and gets a NUL. */
static size_t
decode(const char *s, size_t len, char *out)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++) {
		if (s[i] == '%') {
			out[n++] = (char)escape(s + i, len - i);
			i += 2;
		} else
			out[n++] = s[i] == '+' ? ' ' : s[i];
	}
	out[n] = '\0';
	return n;
}

static enum code
one_arg(const char *s, size_t len, struct args *as)
{
	const char *eq = memchr(s, '=', len);
	size_t n = eq == NULL ? len : (size_t)(eq - s);
	char name[3 * ABX_ID_MAX + 1];
	struct arg *a;

	if (n >= sizeof(name) || (n = decode(s, n, name)) > ABX_ID_MAX ||
	    !utf8_valid(name, n))
		return C_ARGS_UNKNOWN;
	if (args_find(as, name) != NULL)
		return C_ARGS_INVALID;
	if (as->n >= ABX_MAX_ARGS)
		return C_ARGS_TOO_LARGE;
	len = eq == NULL ? 0 : (size_t)(s + len - (eq + 1));
	s = eq == NULL ? s : eq + 1;
	if ((a = args_add(as, name, A_QUERY)) == NULL ||
	    (a->s = malloc(len + 1)) == NULL)
		return C_SRV_INTERNAL;
	a->len = decode(s, len, a->s);
	return C_OK;
}

enum code
target_args(const struct uri *u, struct args *as)
{
	const char *s = u->query, *amp;
	size_t left = u->query_len, n;
	enum code code;

	while (left > 0) {
		amp = memchr(s, '&', left);
		n = amp == NULL ? left : (size_t)(amp - s);
		if (n > 0 && (code = one_arg(s, n, as)) != C_OK)
			return code;
		if (amp == NULL)
			break;
		s = amp + 1;
		left -= n + 1;
	}
	return C_OK;
}
