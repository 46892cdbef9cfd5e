/*
 * SPDX-License-Identifier: ISC
 *
 * X-Forwarded-For, believed only from the right and only as far as trusted
 * proxies wrote it.  Pure.
 */
#include "listener/hop.h"

#include <arpa/inet.h>
#include <string.h>

#include "common/size.h"

struct addr {
	int family; /* AF_INET or AF_INET6 */
	unsigned char b[16];
};

static int
addr_parse(const char *s, struct addr *a)
{
	memset(a, 0, sizeof(*a));
	a->family = AF_INET;
	if (inet_pton(AF_INET, s, a->b) == 1)
		return 0;
	a->family = AF_INET6;
	return inet_pton(AF_INET6, s, a->b) == 1 ? 0 : -1;
}

static int
same_prefix(const struct addr *a, const struct addr *b, uint64_t bits)
{
	size_t whole = bits / 8, rest = bits % 8;

	if (a->family != b->family || memcmp(a->b, b->b, whole) != 0)
		return 0;
	return rest == 0 ||
	       ((a->b[whole] ^ b->b[whole]) & (0xff << (8 - rest) & 0xff)) == 0;
}

static int
entry_matches(const struct addr *a, const char *entry)
{
	char text[HOP_SIZE];
	const char *slash = strchr(entry, '/');
	size_t n = slash == NULL ? strlen(entry) : (size_t)(slash - entry);
	struct addr e;
	uint64_t bits, most;

	if (n >= sizeof(text))
		return 0;
	memcpy(text, entry, n);
	text[n] = '\0';
	if (addr_parse(text, &e) == -1)
		return 0;
	most = e.family == AF_INET ? 32 : 128;
	bits = most;
	if (slash != NULL &&
	    uint_parse(slash + 1, strlen(slash + 1), most, &bits) == -1)
		return 0;
	return same_prefix(a, &e, bits);
}

int
hop_trusted(const char *addr, const struct strlist *trusted)
{
	struct addr a;
	size_t i;

	if (addr_parse(addr, &a) == -1)
		return 0;
	for (i = 0; i < trusted->n; i++)
		if (entry_matches(&a, trusted->v[i]))
			return 1;
	return 0;
}

/* The address in one element, in canonical spelling: "1.2.3.4", "1.2.3.4:80",
 * "2001:db8::1", "[2001:db8::1]:80".  0 or -1. */
static int
element(const char *p, size_t n, char out[HOP_SIZE])
{
	const char *end;
	struct addr a;

	while (n > 0 && (*p == ' ' || *p == '\t'))
		p++, n--;
	while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	if (n > 0 && *p == '[') {
		if ((end = memchr(p, ']', n)) == NULL)
			return -1;
		n = (size_t)(end - ++p);
	} else if ((end = memchr(p, ':', n)) != NULL &&
		   memchr(end + 1, ':', n - (size_t)(end + 1 - p)) == NULL)
		n = (size_t)(end - p);
	if (n == 0 || n >= HOP_SIZE || memchr(p, '\0', n) != NULL)
		return -1;
	memcpy(out, p, n);
	out[n] = '\0';
	if (addr_parse(out, &a) == -1)
		return -1;
	return inet_ntop(a.family, a.b, out, HOP_SIZE) == NULL ? -1 : 0;
}

int
hop_client(const char *peer, const char *value, size_t len,
    const struct strlist *trusted, char out[HOP_SIZE])
{
	size_t start;

	if (!hop_trusted(peer, trusted))
		return 0;
	for (;;) {
		for (start = len; start > 0 && value[start - 1] != ',';)
			start--;
		if (element(value + start, len - start, out) == -1)
			return 0;
		if (start == 0 || !hop_trusted(out, trusted))
			return 1;
		len = start - 1;
	}
}
