/*
 * SPDX-License-Identifier: ISC
 *
 * Host and Origin, the two fields that keep web pages and rebound names away
 * from a service on loopback.  Pure.
 */
#include "listener/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "common/payload.h"
#include "common/size.h"

static int
equal(const char *s, size_t n, const char *want)
{
	return strlen(want) == n && strncasecmp(s, want, n) == 0;
}

/* Bytes of the name before an optional port, or 0 when it is neither. */
static size_t
name_len(const char *s, size_t n)
{
	const char *p;
	uint64_t port;
	size_t len;

	if (n > 0 && s[0] == '[') {
		if ((p = memchr(s, ']', n)) == NULL)
			return 0;
		len = (size_t)(p + 1 - s);
	} else {
		p = memchr(s, ':', n);
		len = p == NULL ? n : (size_t)(p - s);
	}
	if (len < n && (s[len] != ':' || uint_parse(s + len + 1, n - len - 1,
					     65535, &port) == -1))
		return 0;
	return len;
}

static int
is_loopback(const char *s, size_t n)
{
	char buf[INET_ADDRSTRLEN];
	struct in_addr a;

	if (equal(s, n, "localhost") || equal(s, n, "[::1]"))
		return 1;
	if (n >= sizeof(buf))
		return 0;
	memcpy(buf, s, n);
	buf[n] = '\0';
	return inet_pton(AF_INET, buf, &a) == 1 &&
	       (ntohl(a.s_addr) >> 24) == 127;
}

int
host_ok(const char *s, size_t n, const struct strlist *allowed)
{
	size_t len = name_len(s, n), i;

	if (len == 0)
		return 0;
	if (is_loopback(s, len))
		return 1;
	for (i = 0; i < allowed->n; i++)
		if (equal(s, n, allowed->v[i]) || equal(s, len, allowed->v[i]))
			return 1;
	return 0;
}

int
origin_ok(const char *s, size_t n, const struct strlist *allowed)
{
	size_t i;

	for (i = 0; i < allowed->n; i++)
		if (equal(s, n, allowed->v[i]))
			return 1;
	return 0;
}
