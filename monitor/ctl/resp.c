/*
 * SPDX-License-Identifier: ISC
 *
 * Reads heads and bodies of answers.  Pure: no I/O, no clock, nothing global.
 */
#include "monitor/ctl/resp.h"

#include <string.h>
#include <strings.h>

#include "common/size.h"

/* tchar of RFC 9110, 5.6.2. */
static int
is_token(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static int
named(const char *p, size_t n, const char *name)
{
	return strlen(name) == n && strncasecmp(p, name, n) == 0;
}

/* "bytes first-last/total" or, of a 416, "bytes " and a star before the
 * slash, which says nothing of use. */
static int
take_range(const char *p, size_t n, struct resp *r)
{
	const char *dash, *slash;

	if (n < 6 || memcmp(p, "bytes ", 6) != 0 || r->has_range)
		return -1;
	p += 6;
	n -= 6;
	if ((slash = memchr(p, '/', n)) == NULL)
		return -1;
	if (slash == p + 1 && *p == '*')
		return 0;
	if ((dash = memchr(p, '-', (size_t)(slash - p))) == NULL ||
	    uint_parse(p, (size_t)(dash - p), INT64_MAX, &r->first) == -1 ||
	    uint_parse(dash + 1, (size_t)(slash - dash - 1), INT64_MAX,
		&r->last) == -1 ||
	    uint_parse(slash + 1, n - (size_t)(slash + 1 - p), INT64_MAX,
		&r->total) == -1 ||
	    r->first > r->last || r->last >= r->total)
		return -1;
	r->has_range = 1;
	return 0;
}

static int
take_field(
    const char *name, size_t nlen, const char *p, size_t n, struct resp *r)
{
	static const char sse[] = "text/event-stream";

	if (named(name, nlen, "content-length")) {
		if (r->has_length || r->chunked ||
		    uint_parse(p, n, INT64_MAX, &r->length) == -1)
			return -1;
		r->has_length = 1;
	} else if (named(name, nlen, "transfer-encoding")) {
		if (r->has_length || r->chunked || !named(p, n, "chunked"))
			return -1;
		r->chunked = 1;
	} else if (named(name, nlen, "etag")) {
		if (r->etag[0] != '\0' || n < 2 || n > RESP_ETAG_MAX ||
		    p[0] != '"' || p[n - 1] != '"')
			return -1;
		memcpy(r->etag, p, n);
	} else if (named(name, nlen, "content-range"))
		return take_range(p, n, r);
	else if (named(name, nlen, "content-type"))
		r->events = n >= sizeof(sse) - 1 &&
			    strncasecmp(p, sse, sizeof(sse) - 1) == 0;
	return 0;
}

/* One line without its end. */
static int
take_line(const char *p, size_t n, struct resp *r)
{
	size_t i, colon = 0;

	while (colon < n && is_token((unsigned char)p[colon]))
		colon++;
	if (colon == 0 || colon == n || p[colon] != ':')
		return -1;
	for (i = colon + 1; i < n; i++)
		if ((unsigned char)p[i] < 0x20 || (unsigned char)p[i] >= 0x7f)
			return -1;
	for (i = colon + 1; i < n && p[i] == ' ';)
		i++;
	while (n > i && p[n - 1] == ' ')
		n--;
	return take_field(p, colon, p + i, n - i, r);
}

static int
take_status(const char *p, size_t n, struct resp *r)
{
	static const char version[] = "HTTP/1.1 ";
	uint64_t v;
	size_t i;

	if (n < sizeof(version) - 1 + 4 ||
	    memcmp(p, version, sizeof(version) - 1) != 0 || p[12] != ' ' ||
	    uint_parse(p + 9, 3, 599, &v) == -1 || v < 100)
		return -1;
	for (i = 13; i < n; i++)
		if ((unsigned char)p[i] < 0x20 || (unsigned char)p[i] >= 0x7f)
			return -1;
	r->status = (unsigned)v;
	return 0;
}

ssize_t
resp_parse(const char *p, size_t len, struct resp *r)
{
	size_t at = 0, n, lines = 0;
	const char *end;

	memset(r, 0, sizeof(*r));
	for (;; lines++) {
		end = memchr(p + at, '\n', len - at);
		if (end == NULL)
			return len > RESP_HEAD_MAX ? -1 : 0;
		n = (size_t)(end - (p + at));
		if (n == 0 || end[-1] != '\r' || at + n > RESP_HEAD_MAX)
			return -1;
		n--;
		if (n == 0)
			break;
		if (lines == 0 ? take_status(p + at, n, r) == -1
			       : take_line(p + at, n, r) == -1)
			return -1;
		at += n + 2;
	}
	return lines == 0 ? -1 : (ssize_t)(at + 2);
}

void
resp_body_init(struct resp_body *b, const struct resp *r, int nobody)
{
	memset(b, 0, sizeof(*b));
	b->chunked = r->chunked;
	b->left = r->length;
	if (nobody || r->status == 204 || r->status == 304 ||
	    (!r->chunked && r->length == 0))
		b->state = RESP_DONE;
	else
		b->state = r->chunked ? RESP_SIZE : RESP_DATA;
}

/* A digit of a chunk's size, or what ends it. */
static int
take_digit(struct resp_body *b, uint8_t c)
{
	unsigned v;

	if (c >= '0' && c <= '9')
		v = c - '0';
	else if (c >= 'a' && c <= 'f')
		v = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		v = c - 'A' + 10;
	else if (c == '\r' && b->digits > 0) {
		b->state = RESP_SIZE_LF;
		return 0;
	} else
		return -1;
	if (++b->digits > 15)
		return -1;
	b->left = b->left << 4 | v;
	return 0;
}

/* The bytes between the chunks. */
static int
take_frame(struct resp_body *b, uint8_t c)
{
	switch (b->state) {
	case RESP_SIZE:
		return take_digit(b, c);
	case RESP_SIZE_LF:
		b->state = b->left == 0 ? RESP_LAST_CR : RESP_DATA;
		return c == '\n' ? 0 : -1;
	case RESP_DATA_CR:
		b->state = RESP_DATA_LF;
		return c == '\r' ? 0 : -1;
	case RESP_DATA_LF:
		b->state = RESP_SIZE;
		b->digits = 0;
		b->left = 0;
		return c == '\n' ? 0 : -1;
	case RESP_LAST_CR:
		b->state = RESP_LAST_LF;
		return c == '\r' ? 0 : -1;
	case RESP_LAST_LF:
		b->state = RESP_DONE;
		return c == '\n' ? 0 : -1;
	default:
		return -1;
	}
}

ssize_t
resp_body_take(struct resp_body *b, const uint8_t *p, size_t n,
    const uint8_t **data, size_t *len)
{
	size_t i;

	*data = NULL;
	*len = 0;
	for (i = 0; i < n && b->state != RESP_DONE && b->state != RESP_DATA;)
		if (take_frame(b, p[i++]) == -1)
			return -1;
	if (i == n || b->state != RESP_DATA)
		return (ssize_t)i;
	*data = p + i;
	*len = n - i < b->left ? n - i : (size_t)b->left;
	b->left -= *len;
	if (b->left == 0)
		b->state = b->chunked ? RESP_DATA_CR : RESP_DONE;
	return (ssize_t)(i + *len);
}
