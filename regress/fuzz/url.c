/*
 * SPDX-License-Identifier: ISC
 *
 * URLs and what scopes say of them: what is taken has one spelling, a scope
 * admits by its hosts alone, no spelling of a path escapes a deny.  Input:
 * lines; the URL, a pattern of a deny.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/url.h"
#include "regress/fuzz/fuzz.h"

/* The parts written down again are the same parts. */
static void
check_parts(const struct url *u)
{
	char text[4096];
	struct url again;
	const char *s;

	CHECK(
	    strcmp(u->scheme, "https") == 0 || strcmp(u->scheme, "http") == 0);
	CHECK(u->host[0] != '\0' && u->port > 0);
	for (s = u->host; *s != '\0'; s++)
		CHECK(islower((unsigned char)*s) ||
		      isdigit((unsigned char)*s) || *s == '.' || *s == '-');
	CHECK(u->path[0] == '/' && strpbrk(u->path, "?#\\ ") == NULL);
	CHECK(
	    strstr(u->path, "/../") == NULL && strstr(u->path, "/./") == NULL);
	snprintf(text, sizeof(text), "%s://%s:%u%s", u->scheme, u->host,
	    u->port, u->path);
	if (strlen(text) > 2048)
		return;
	CHECK(url_parse(text, &again) == 0);
	CHECK(strcmp(again.scheme, u->scheme) == 0 &&
	      strcmp(again.host, u->host) == 0 &&
	      strcmp(again.path, u->path) == 0);
	CHECK(again.port == u->port && again.literal == u->literal &&
	      again.addr == u->addr);
}

static void
check_scope(const struct url *u)
{
	static char https[] = "https", a[] = "example.org", b[] = "*.x.org",
		    all[] = "/**", any4[] = "127.0.0.1", open4[] = "9.9.9.9";
	static char *schemes[] = {https}, *hosts[] = {a, b, any4, open4},
		    *paths[] = {all};
	struct url_scope s = {.hosts = {hosts, 4},
	    .schemes = {schemes, 1},
	    .paths = {paths, 1},
	    .block_private = 1};
	size_t n = strlen(u->host);

	if (url_admitted(&s, u)) {
		CHECK(strcmp(u->scheme, "https") == 0 && u->port == 443);
		CHECK(strcmp(u->host, a) == 0 || strcmp(u->host, open4) == 0 ||
		      (n > 6 && strcmp(u->host + n - 6, ".x.org") == 0));
	}
	s.hosts.n = 0;
	CHECK(!url_admitted(&s, u));
}

/* The path as a server reads it that decodes before it looks. */
static void
decode(const char *s, char *out)
{
	char hex[3] = "";

	for (; *s != '\0'; s++) {
		if (*s == '%') {
			memcpy(hex, s + 1, 2);
			*out++ = (char)strtoul(hex, NULL, 16);
			s += 2;
		} else
			*out++ = *s;
	}
	*out = '\0';
}

static void
check_deny(const struct url *u, const char *pattern)
{
	char path[2049], text[4096];
	struct url plain = *u;

	CHECK(url_denied("*", u));
	snprintf(text, sizeof(text), "%s://%s:%u", u->scheme, u->host, u->port);
	CHECK(url_denied(text, u) && url_denied(u->host, u));
	if (url_pattern_why(pattern) != NULL) {
		/* a configuration with it does not start */
		CHECK(*url_pattern_why(pattern) != '\0');
		return;
	}
	decode(u->path, path);
	strlcpy(plain.path, path, sizeof(plain.path));
	/* what only the decoded bytes hold may differ, letters may not */
	if (strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789-._~/") == strlen(path))
		CHECK(url_denied(pattern, u) == url_denied(pattern, &plain));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	char *text = feed_str(&f, '\n', size);
	char *pattern = feed_str(&f, '\n', size);
	struct url u;

	memset(&u, 0xa5, sizeof(u));
	if (url_parse(text, &u) == 0) {
		CHECK(strchr(text, '#') == NULL && strlen(text) <= 2048);
		check_parts(&u);
		check_scope(&u);
		check_deny(&u, pattern);
	} else
		url_pattern_why(pattern);
	free(text);
	free(pattern);
	return 0;
}
