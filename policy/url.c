/*
 * SPDX-License-Identifier: ISC
 *
 * URLs: parsed once and strictly, then scheme, host, port and path are
 * compared, never the text (server.json(5), "URL SCOPES").  What two parsers
 * could read in two ways is refused.  Pure; the address that a name leads to
 * is checked by whoever connects.
 */
#include "policy/url.h"

#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/engine.h"

#define URL_MAX 2048
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* ---- hosts ---- */

/* Four numbers from 0 to 255 as inet_ntop writes them: 1 with the address. */
static int
is_ipv4(const char *s, uint32_t *addr)
{
	uint64_t v;
	size_t n;
	int i;

	*addr = 0;
	for (i = 0; i < 4; i++) {
		n = strspn(s, DIGITS);
		if (n == 0 || n > 3 || (n > 1 && *s == '0') ||
		    uint_parse(s, n, 255, &v) == -1)
			return 0;
		*addr = *addr << 8 | (uint32_t)v;
		s += n;
		if (i < 3 && *s++ != '.')
			return 0;
	}
	return *s == '\0';
}

/* 1 for an address that is routed globally (IANA special-purpose registry). */
static int
is_global(uint32_t a)
{
	static const struct {
		uint32_t net;
		int bits;
	} special[] = {{0x00000000, 8}, {0x0a000000, 8}, {0x64400000, 10},
	    {0x7f000000, 8}, {0xa9fe0000, 16}, {0xac100000, 12},
	    {0xc0000000, 24}, {0xc0000200, 24}, {0xc0586300, 24},
	    {0xc0a80000, 16}, {0xc6120000, 15}, {0xc6336400, 24},
	    {0xcb007100, 24}, {0xe0000000, 4}, {0xf0000000, 4}};
	size_t i;

	for (i = 0; i < nitems(special); i++)
		if ((a ^ special[i].net) >> (32 - special[i].bits) == 0)
			return 0;
	return 1;
}

/* Names of labels; a last label that is a number in any spelling makes an
 * address of it, and only the plain spelling is taken. */
static int
host_ok(struct url *u)
{
	const char *s = u->host, *last = s;
	size_t n;

	if (is_ipv4(s, &u->addr))
		return u->literal = 1;
	for (;;) {
		n = strcspn(s, ".");
		if (n == 0 || n > 63 || s[0] == '-' || s[n - 1] == '-')
			return 0;
		last = s;
		if (s[n] == '\0')
			break;
		s += n + 1;
	}
	if (strspn(last, DIGITS) == strlen(last))
		return 0;
	return strncmp(last, "0x", 2) != 0;
}

/* ---- the parts ---- */

/* Length of the scheme with "://", or 0. */
static size_t
parse_scheme(const char *s, struct url *u)
{
	size_t i, n = strcspn(s, ":");

	if (n == 0 || n >= sizeof(u->scheme) || strncmp(s + n, "://", 3) != 0)
		return 0;
	for (i = 0; i < n; i++) {
		u->scheme[i] = lower(s[i]);
		if (strchr(LOWER, u->scheme[i]) == NULL)
			return 0;
	}
	u->scheme[n] = '\0';
	if (strcmp(u->scheme, "https") == 0)
		u->port = u->default_port = 443;
	else if (strcmp(u->scheme, "http") == 0)
		u->port = u->default_port = 80;
	else
		return 0;
	return n + 3;
}

/* Length of host and port, or 0. */
static size_t
parse_authority(const char *s, struct url *u)
{
	size_t n = strcspn(s, "/?"), host = strcspn(s, ":/?"), i, len = host;
	uint64_t port;

	if (host == 0 || host > sizeof(u->host) - 1)
		return 0;
	for (i = 0; i < host; i++) {
		u->host[i] = lower(s[i]);
		if (strchr(LOWER DIGITS ".-", u->host[i]) == NULL)
			return 0;
	}
	if (u->host[len - 1] == '.')
		len--;
	u->host[len] = '\0';
	if (!host_ok(u))
		return 0;
	if (host == n)
		return n;
	if (uint_parse(s + host + 1, n - host - 1, 65535, &port) == -1 ||
	    port == 0)
		return 0;
	u->port = (uint16_t)port;
	return n;
}

/* 1 when the n bytes are "." or ".." in any spelling. */
static int
is_dots(const char *s, size_t n)
{
	size_t dots = 0, i = 0;

	while (i < n) {
		if (s[i] == '.')
			i++;
		else if (n - i >= 3 && s[i] == '%' && s[i + 1] == '2' &&
			 lower(s[i + 2]) == 'e')
			i += 3;
		else
			return 0;
		dots++;
	}
	return dots == 1 || dots == 2;
}

/* A path that a server would not walk as it is written is not taken. */
static int
path_ok(const char *s)
{
	size_t n;

	for (; *s == '/'; s += n) {
		n = strcspn(++s, "/");
		if (is_dots(s, n))
			return 0;
	}
	return 1;
}

/* An encoded slash, backslash, percent sign or NUL divides servers; a letter
 * or digit that is encoded is the same to all of them (RFC 3986, 2.3) and
 * another one to a pattern. */
static int
escapes_ok(const char *s)
{
	static const char *const bad[] = {"2f", "5c", "25", "00"};
	char hex[3] = "";
	size_t i;
	int c;

	while ((s = strchr(s, '%')) != NULL) {
		hex[0] = lower(s[1]);
		hex[1] = s[1] != '\0' ? lower(s[2]) : '\0';
		if (strspn(hex, "0123456789abcdef") != 2)
			return 0;
		for (i = 0; i < nitems(bad); i++)
			if (strcmp(hex, bad[i]) == 0)
				return 0;
		c = (unsigned char)lower((char)strtoul(hex, NULL, 16));
		if (c != '\0' && strchr(LOWER DIGITS "-._~", c) != NULL)
			return 0;
		s += 3;
	}
	return 1;
}

int
url_parse(const char *s, struct url *u)
{
	size_t n, i, len = strlen(s);

	memset(u, 0, sizeof(*u));
	if (len == 0 || len > URL_MAX)
		return -1;
	for (i = 0; i < len; i++)
		if (s[i] <= 0x20 || s[i] >= 0x7f || s[i] == '\\' || s[i] == '#')
			return -1;
	if ((n = parse_scheme(s, u)) == 0)
		return -1;
	s += n;
	if (memchr(s, '@', strcspn(s, "/?")) != NULL ||
	    (n = parse_authority(s, u)) == 0)
		return -1;
	s += n;
	n = strcspn(s, "?");
	u->path[0] = '/';
	memcpy(u->path, s, n);
	u->path[n > 0 ? n : 1] = '\0';
	return path_ok(u->path) && escapes_ok(u->path) ? 0 : -1;
}

/* ---- scopes ---- */

/* "name" or "*.suffix" (any depth, not the suffix itself). */
static int
host_matches(const char *pattern, const char *host)
{
	size_t n = strlen(host), m;

	if (strncmp(pattern, "*.", 2) != 0)
		return strcmp(pattern, host) == 0;
	m = strlen(pattern) - 1; /* the dot stays */
	return n > m && strcmp(host + n - m, pattern + 1) == 0;
}

static int
any_host(const struct url_scope *s, const char *host)
{
	size_t i;

	for (i = 0; i < s->hosts.n; i++)
		if (host_matches(s->hosts.v[i], host))
			return 1;
	return 0;
}

static int
any_port(const struct url_scope *s, const struct url *u)
{
	size_t i;

	if (s->nports == 0)
		return u->port == u->default_port;
	for (i = 0; i < s->nports; i++)
		if (s->ports[i] == u->port)
			return 1;
	return 0;
}

/* The glob is absolute, so no anchor is needed. */
static int
path_matches(const char *pattern, const char *path)
{
	const char *why;
	struct glob *g = glob_new(pattern, NULL, &why);
	int r = g != NULL && glob_covers(g, path);

	glob_free(g);
	return r;
}

static int
any_path(const struct url_scope *s, const char *path)
{
	size_t i;

	for (i = 0; i < s->paths.n; i++)
		if (path_matches(s->paths.v[i], path))
			return 1;
	return 0;
}

int
url_admitted(const struct url_scope *s, const struct url *u)
{
	size_t i;

	for (i = 0; i < s->schemes.n; i++)
		if (strcmp(s->schemes.v[i], u->scheme) == 0)
			break;
	if (i == s->schemes.n || !any_host(s, u->host) || !any_port(s, u) ||
	    !any_path(s, u->path))
		return 0;
	return !s->block_private || !u->literal || is_global(u->addr);
}

/* ---- patterns of denies ---- */

/* "[SCHEME://]HOST[:PORT][/GLOB]" in its parts: 0, or -1. */
struct url_pat {
	char scheme[8], host[256];
	uint16_t port;	  /* 0: any */
	const char *path; /* NULL: any */
};

static int
pat_port(const char *s, size_t n, uint16_t *port)
{
	uint64_t v;

	if (uint_parse(s, n, 65535, &v) == -1 || v == 0)
		return -1;
	*port = (uint16_t)v;
	return 0;
}

static int
pat_parse(const char *s, struct url_pat *p)
{
	const char *sep = strstr(s, "://"), *name;
	size_t n;

	memset(p, 0, sizeof(*p));
	if (sep != NULL && strcspn(s, "/") == (size_t)(sep - s) + 1) {
		n = (size_t)(sep - s);
		if (n >= sizeof(p->scheme))
			return -1;
		memcpy(p->scheme, s, n);
		if (strcmp(p->scheme, "http") != 0 &&
		    strcmp(p->scheme, "https") != 0)
			return -1;
		s = sep + 3;
	}
	n = strcspn(s, ":/");
	if (n == 0 || n >= sizeof(p->host))
		return -1;
	memcpy(p->host, s, n);
	name = strncmp(p->host, "*.", 2) == 0 ? p->host + 2 : p->host;
	if (strcmp(p->host, "*") != 0 &&
	    (*name == '\0' || name[strspn(name, LOWER DIGITS ".-")] != '\0'))
		return -1;
	s += n;
	if (*s == ':') {
		n = strcspn(++s, "/");
		if (pat_port(s, n, &p->port) == -1)
			return -1;
		s += n;
	}
	p->path = *s == '/' ? s : NULL;
	return 0;
}

const char *
url_pattern_why(const char *s)
{
	const char *why = NULL;
	struct url_pat p;
	struct glob *g;

	if (pat_parse(s, &p) == -1)
		return "a URL pattern is [SCHEME://]HOST[:PORT][/GLOB] in "
		       "lower "
		       "case";
	if (p.path == NULL)
		return NULL;
	if ((g = glob_new(p.path, NULL, &why)) == NULL)
		return why != NULL ? why : "out of memory";
	glob_free(g);
	return NULL;
}

int
url_denied(const char *pattern, const struct url *u)
{
	struct url_pat p;

	/* What cannot be read denies everything. */
	if (pat_parse(pattern, &p) == -1)
		return 1;
	if ((p.scheme[0] != '\0' && strcmp(p.scheme, u->scheme) != 0) ||
	    (p.port != 0 && p.port != u->port))
		return 0;
	if (strcmp(p.host, "*") != 0 && !host_matches(p.host, u->host))
		return 0;
	return p.path == NULL || path_matches(p.path, u->path);
}
