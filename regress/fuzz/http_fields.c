/*
 * SPDX-License-Identifier: ISC
 *
 * Values of request fields: ranges, entity tags, hosts, origins, lists,
 * forwarded addresses, credentials.  Input: 1 byte (which), then the value,
 * with what it is compared to in a line of its own.
 */
#include <arpa/inet.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/entry.h"
#include "common/hash.h"
#include "listener/auth.h"
#include "listener/digest.h"
#include "listener/hop.h"
#include "listener/host.h"
#include "listener/range.h"
#include "common/abx.h"
#include "regress/fuzz/fuzz.h"

static void
check_range(const char *s, size_t n, uint64_t size)
{
	uint64_t first = 1, last = 0;
	int rc = range_parse(s, n, size, &first, &last);

	CHECK(rc >= -1 && rc <= 1);
	if (rc == 1)
		CHECK(first <= last && last < size);
	if (rc != 0)
		CHECK(n > 6 && strncasecmp(s, "bytes=", 6) == 0 &&
		      memchr(s, '-', n) != NULL && memchr(s, ',', n) == NULL);
	if (size == 0)
		CHECK(rc != 1);
}

static void
check_tags(const char *s, size_t n)
{
	char etag[] = "\"AAAAAAAAAAAAAAAAAAAAAA\"";
	int listed = etag_listed(s, n, etag, 1) == 1;

	if (listed && !(n == 1 && s[0] == '*'))
		CHECK(memmem(s, n, etag, strlen(etag)) != NULL);
	if (n == strlen(etag) && memcmp(s, etag, n) == 0)
		CHECK(listed);
	/* a strong match is a weak one too */
	CHECK(etag_listed(s, n, etag, 0) <= etag_listed(s, n, etag, 1));
}

static void
check_host(const char *s, size_t n, char *allowed)
{
	char *one[] = {allowed};
	struct strlist none = {0}, some = {one, 1};
	int plain = host_ok(s, n, &none), with = host_ok(s, n, &some);
	const char *name = n > 0 && s[0] == '[' ? "[::1]" : "127.";

	CHECK(!plain || with);
	if (plain)
		CHECK(
		    (n >= 9 && strncasecmp(s, "localhost", 9) == 0 &&
			(n == 9 || s[9] == ':')) ||
		    (n >= strlen(name) && memcmp(s, name, strlen(name)) == 0));
	if (with && !plain)
		CHECK(n >= strlen(allowed) &&
		      strncasecmp(s, allowed, strlen(allowed)) == 0);
	CHECK(origin_ok(s, n, &none) == 0);
	CHECK(origin_ok(s, n, &some) ==
	      (n == strlen(allowed) && strncasecmp(s, allowed, n) == 0));
}

static void
check_list(const char *s, size_t n, const char *token)
{
	int has = http_list_has(s, n, token);
	char *hay = strndup(s, n);

	CHECK(hay != NULL);
	if (has && *token != '\0')
		CHECK(strcasestr(hay, token) != NULL);
	if (*token != '\0' && strpbrk(token, ",; \t") == NULL &&
	    n == strlen(token) && strncasecmp(s, token, n) == 0)
		CHECK(has);
	free(hay);
}

/* A head of these fields, and what they present. */
static void
check_auth(const uint8_t *p, size_t n)
{
	static const char line[] = "GET / HTTP/1.1\r\nHost: x\r\n";
	size_t len = sizeof(line) - 1 + n + 4, i;
	uint8_t *buf = fuzz_alloc(len);
	char token[ABX_TOKEN_MAX + 1];
	struct lconf conf = {0};
	struct http_head h;
	enum code code;

	memcpy(buf, line, sizeof(line) - 1);
	memcpy(buf + sizeof(line) - 1, p, n);
	memcpy(buf + len - 4, "\r\n\r\n", 4);
	http_head_init(&h);
	if (http_head_feed(&h, buf, len, 8192) == 1) {
		memset(token, 'x', sizeof(token));
		code = auth_extract(&h, buf, token);
		CHECK(code == C_OK || code == C_AUTH_CONFLICT ||
		      code == C_AUTH_INVALID);
		CHECK(memchr(token, '\0', sizeof(token)) != NULL);
		for (i = 0; token[i] != '\0'; i++)
			CHECK(token[i] > ' ' && token[i] < 0x7f &&
			      token[i] != ',');
		if (code == C_OK && token[0] != '\0') {
			CHECK(memmem(buf, len, token, i) != NULL);
			CHECK(auth_admit(&conf, token, 1, 1) == C_AUTH_INVALID);
			auth_wipe(&h, buf);
			for (i = 0; i < h.field[HF_AUTHORIZATION].len; i++)
				CHECK(buf[h.field[HF_AUTHORIZATION].off + i] ==
				      0);
		} else if (code == C_OK)
			CHECK(
			    auth_admit(&conf, token, 0, 1) == C_AUTH_REQUIRED);
	}
	free(buf);
}

/* What is taken stands there, as the one base64 of its bytes. */
static void
check_digest(const char *s, size_t n)
{
	uint8_t out[SHA256_LEN];
	char want[16 + 4 * SHA256_LEN] = "sha-256=:";
	size_t len = strlen(want);
	int rc = digest_parse(s, n, out);

	CHECK(rc >= -1 && rc <= 1);
	if (rc != 1)
		return;
	CHECK(base64_encode(out, sizeof(out), want + len, 100) > 0);
	strlcat(want, ":", sizeof(want));
	CHECK(memmem(s, n, want + len - 1, strlen(want + len - 1)) != NULL);
}

/* Who called is an address that stands there; all behind it are trusted. */
static void
check_hops(const char *s, size_t n, char *proxy)
{
	char *some[] = {(char[]){"10.0.0.0/8"}, (char[]){"::1"}, proxy};
	struct strlist none = {0}, trusted = {some, nitems(some)};
	char out[HOP_SIZE], again[HOP_SIZE], *all, *one, *end;
	unsigned char addr[16];
	int known = hop_trusted(proxy, &trusted);
	int rc;

	CHECK(hop_client(proxy, s, n, &none, out) == 0);
	rc = hop_client(proxy, s, n, &trusted, out);
	CHECK(rc == 0 || (rc == 1 && known));
	if (rc == 0)
		return;
	CHECK(inet_pton(AF_INET, out, addr) == 1 ||
	      inet_pton(AF_INET6, out, addr) == 1);
	/* what a client writes in front changes nothing, unless all of it
	 * came from trusted ones */
	all = strndup(s, n);
	CHECK(all != NULL);
	for (end = all + strlen(all);; end = one) {
		for (one = end; one > all && one[-1] != ',';)
			one--;
		CHECK(hop_client(proxy, one, (size_t)(end - one), &trusted,
			  again) == 1);
		if (strcmp(again, out) == 0 && !hop_trusted(out, &trusted))
			break;
		CHECK(hop_trusted(again, &trusted));
		if (one == all) {
			CHECK(strcmp(again, out) == 0);
			break;
		}
		one--;
	}
	free(all);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	uint8_t which = feed_u8(&f);
	char *other, *s;
	size_t n;

	if (which % 4 == 0) {
		check_auth(f.p, f.n);
		return 0;
	}
	other = feed_str(&f, '\n', 256);
	/* no value that came through the parser holds a NUL */
	n = f.n == 0 ? 0 : strnlen((const char *)f.p, f.n);
	s = (char *)fuzz_copy(f.p, n);
	check_range(s, n, strtoull(other, NULL, 0));
	check_tags(s, n);
	check_digest(s, n);
	check_hops(s, n, other);
	if (other[0] != '\0')
		check_host(s, n, other);
	check_list(s, n, other);
	free(other);
	free(s);
	return 0;
}
