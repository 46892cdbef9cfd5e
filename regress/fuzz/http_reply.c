/*
 * SPDX-License-Identifier: ISC
 *
 * Response heads: one that fits is read back as what was asked for, line by
 * line; one byte less and it does not fit.  Input: numbers and choices.
 */
#include <stdlib.h>
#include <string.h>

#include "common/abx.h"
#include "common/entry.h"
#include "common/hash.h"
#include "listener/http_reply.h"
#include "regress/fuzz/fuzz.h"

/* The value of a field in the head, or NULL; *times it is there. */
static const char *
field(char *const *lines, size_t n, const char *name, size_t *times)
{
	size_t len = strlen(name), i;
	const char *v = NULL;

	*times = 0;
	for (i = 1; i < n; i++)
		if (strncmp(lines[i], name, len) == 0 &&
		    strncmp(lines[i] + len, ": ", 2) == 0) {
			v = lines[i] + len + 2;
			++*times;
		}
	return v;
}

static void
is(char *const *lines, size_t n, const char *name, const char *want)
{
	size_t times;
	const char *v = field(lines, n, name, &times);

	CHECK(times == (want != NULL));
	CHECK(want == NULL || strcmp(v, want) == 0);
}

static void
is_uint(
    char *const *lines, size_t n, const char *name, int there, uint64_t want)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)want);
	is(lines, n, name, there ? buf : NULL);
}

/* Cut into lines in place; their number. */
static size_t
split(char *head, size_t len, char **lines, size_t max)
{
	size_t n = 0;
	char *end;

	for (;; n++) {
		CHECK(n < max);
		end = memmem(head, len, "\r\n", 2);
		CHECK(end != NULL);
		*end = '\0';
		CHECK(strlen(head) == (size_t)(end - head));
		CHECK(strpbrk(head, "\r\n") == NULL);
		len -= (size_t)(end + 2 - head);
		lines[n] = head;
		if (end == head)
			break;
		head = end + 2;
	}
	CHECK(len == 0);
	return n;
}

static void
read_back(char *head, size_t len, const struct reply *r)
{
	char *lines[32], buf[128];
	size_t n = split(head, len, lines, nitems(lines));

	snprintf(buf, sizeof(buf), "HTTP/1.1 %u %s", r->status,
	    reply_reason(r->status));
	CHECK(strcmp(lines[0], buf) == 0);
	is(lines, n, "Date", r->date);
	is(lines, n, "X-Request-Id", r->reqid);
	is(lines, n, "Content-Type", r->type);
	is(lines, n, "ETag", r->etag);
	is(lines, n, "Cache-Control", "no-store");
	is(lines, n, "Transfer-Encoding",
	    r->framing == REPLY_CHUNKED ? "chunked" : NULL);
	is_uint(
	    lines, n, "Content-Length", r->framing == REPLY_LENGTH, r->length);
	is(lines, n, "Connection",
	    r->close || r->framing == REPLY_UNTIL_CLOSE ? "close" : NULL);
	is_uint(lines, n, "Retry-After", r->retry_after > 0, r->retry_after);
	is(lines, n, "WWW-Authenticate", r->www_auth ? "Bearer" : NULL);
	snprintf(buf, sizeof(buf), "bytes %llu-%llu/%llu",
	    (unsigned long long)r->first, (unsigned long long)r->last,
	    (unsigned long long)r->total);
	if (r->status == 416)
		snprintf(buf, sizeof(buf), "bytes */%llu",
		    (unsigned long long)r->total);
	is(lines, n, "Content-Range",
	    r->status == 206 || r->status == 416 ? buf : NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const unsigned statuses[] = {
	    200, 201, 206, 304, 400, 401, 404, 416, 431, 503};
	static const char *const types[] = {"application/json",
	    "application/octet-stream", "text/event-stream", NULL};
	char reqid[ABX_REQID_LEN + 1] = "r-AAAAAAAAAAAAAAAAAAAAAA";
	char date[HTTPDATE_SIZE], etag[ETAG_SIZE];
	struct feed f = {data, size};
	struct reply r = {.reqid = reqid};
	uint8_t bits = feed_u8(&f);
	char *out;
	int len, n;

	r.status = statuses[feed_u8(&f) % nitems(statuses)];
	r.framing = (enum reply_framing)(feed_u8(&f) % 4);
	r.type = types[feed_u8(&f) % nitems(types)];
	r.length = feed_uint(&f, 8);
	r.first = feed_uint(&f, 8);
	r.last = feed_uint(&f, 8);
	r.total = feed_uint(&f, 8);
	r.retry_after = (uint32_t)feed_uint(&f, 4);
	time_http(date, (int64_t)feed_uint(&f, 8));
	etag_make(etag, r.first, r.last, r.total, 1, 2);
	r.date = bits & 1 ? date : NULL;
	r.etag = bits & 2 ? etag : NULL;
	r.close = bits & 4;
	r.ranges = bits & 8;
	r.www_auth = bits & 16;

	out = fuzz_alloc(REPLY_HEAD_MAX);
	len = reply_head(out, REPLY_HEAD_MAX, &r);
	CHECK(len > 0 && len <= REPLY_HEAD_MAX);
	read_back(out, (size_t)len, &r);
	free(out);
	n = feed_u8(&f) < 64 ? len : (int)(feed_uint(&f, 2) % (unsigned)len);
	out = fuzz_alloc((size_t)n);
	CHECK(reply_head(out, (size_t)n, &r) == (n == len ? len : -1));
	free(out);
	return 0;
}
