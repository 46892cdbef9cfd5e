/*
 * SPDX-License-Identifier: ISC
 *
 * Response heads.  Pure; written with a cursor since it is on the path of
 * every request.
 */
#include "listener/http_reply.h"

#include <string.h>

struct cur {
	char *p, *end;
	int full;
};

static void
put_mem(struct cur *c, const char *s, size_t n)
{
	if ((size_t)(c->end - c->p) < n) {
		c->full = 1;
		return;
	}
	memcpy(c->p, s, n);
	c->p += n;
}

static void
put(struct cur *c, const char *s)
{
	put_mem(c, s, strlen(s));
}

static void
put_uint(struct cur *c, uint64_t v)
{
	char buf[20];
	size_t i = sizeof(buf);

	do {
		buf[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	put_mem(c, buf + i, sizeof(buf) - i);
}

static void
put_field(struct cur *c, const char *name, const char *value)
{
	put(c, name);
	put(c, value);
	put(c, "\r\n");
}

const char *
reply_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} t[] = {
	    {200, "OK"},
	    {201, "Created"},
	    {206, "Partial Content"},
	    {304, "Not Modified"},
	    {400, "Bad Request"},
	    {401, "Unauthorized"},
	    {403, "Forbidden"},
	    {404, "Not Found"},
	    {409, "Conflict"},
	    {412, "Precondition Failed"},
	    {413, "Content Too Large"},
	    {415, "Unsupported Media Type"},
	    {416, "Range Not Satisfiable"},
	    {424, "Failed Dependency"},
	    {429, "Too Many Requests"},
	    {431, "Request Header Fields Too Large"},
	    {500, "Internal Server Error"},
	    {503, "Service Unavailable"},
	    {504, "Gateway Timeout"},
	    {505, "HTTP Version Not Supported"},
	    {507, "Insufficient Storage"},
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		if (t[i].status == status)
			return t[i].reason;
	return "Status";
}

static void
put_range(struct cur *c, const struct reply *r)
{
	put(c, "Content-Range: bytes ");
	if (r->status == 206) {
		put_uint(c, r->first);
		put(c, "-");
		put_uint(c, r->last);
	} else
		put(c, "*");
	put(c, "/");
	put_uint(c, r->total);
	put(c, "\r\n");
}

static void
put_framing(struct cur *c, const struct reply *r)
{
	if (r->framing == REPLY_LENGTH) {
		put(c, "Content-Length: ");
		put_uint(c, r->length);
		put(c, "\r\n");
	} else if (r->framing == REPLY_CHUNKED)
		put(c, "Transfer-Encoding: chunked\r\n");
	if (r->close || r->framing == REPLY_UNTIL_CLOSE)
		put(c, "Connection: close\r\n");
}

int
reply_head(char *out, size_t size, const struct reply *r)
{
	struct cur c = {out, out + size, 0};
	uint64_t retry;

	put(&c, "HTTP/1.1 ");
	put_uint(&c, r->status);
	put(&c, " ");
	put_field(&c, reply_reason(r->status), "");
	if (r->date != NULL)
		put_field(&c, "Date: ", r->date);
	put_field(&c, "X-Request-Id: ", r->reqid);
	put(&c, "Cache-Control: no-store\r\n");
	if (r->type != NULL) {
		put_field(&c, "Content-Type: ", r->type);
		put(&c, "X-Content-Type-Options: nosniff\r\n");
	}
	if (r->etag != NULL)
		put_field(&c, "ETag: ", r->etag);
	if (r->ranges)
		put(&c, "Accept-Ranges: bytes\r\n");
	if (r->status == 206 || r->status == 416)
		put_range(&c, r);
	retry = r->retry_after;
	if (retry == 0 && (r->status == 429 || r->status == 503))
		retry = 1; /* these two always say it */
	if (retry > 0) {
		put(&c, "Retry-After: ");
		put_uint(&c, retry);
		put(&c, "\r\n");
	}
	if (r->www_auth)
		put(&c, "WWW-Authenticate: Bearer\r\n");
	if (r->no_retry)
		put(&c, "x-should-retry: false\r\n");
	put_framing(&c, r);
	put(&c, "\r\n");
	return c.full ? -1 : (int)(c.p - out);
}
