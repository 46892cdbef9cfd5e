/*
 * SPDX-License-Identifier: ISC
 *
 * What abxctl takes for an answer and for events: whole, and cut at every
 * byte, since a network cuts anywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "monitor/ctl/resp.h"
#include "monitor/ctl/sse.h"

#define OK "HTTP/1.1 200 OK\r\n"

static const struct head_row {
	const char *text;
	unsigned status; /* 0: no head */
	int chunked, has_length;
	uint64_t length;
	const char *etag;
} heads[] = {
    {OK "\r\n", 200, 0, 0, 0, ""},
    {"HTTP/1.1 404 \r\n\r\n", 404, 0, 0, 0, ""},
    {OK "Content-Length: 12\r\n\r\n", 200, 0, 1, 12, ""},
    {OK "CONTENT-LENGTH:12  \r\n\r\n", 200, 0, 1, 12, ""},
    {OK "Content-Length: 9223372036854775807\r\n\r\n", 200, 0, 1, INT64_MAX,
	""},
    {OK "Transfer-Encoding: Chunked\r\n\r\n", 200, 1, 0, 0, ""},
    {OK "ETag: \"a-b\"\r\nX-Y: z\r\n\r\n", 200, 0, 0, 0, "\"a-b\""},
    {"HTTP/1.1 200\r\n\r\n", 0, 0, 0, 0, NULL},
    {"HTTP/1.1 099 x\r\n\r\n", 0, 0, 0, 0, NULL},
    {"HTTP/1.1 600 x\r\n\r\n", 0, 0, 0, 0, NULL},
    {"HTTP/1.1 20x x\r\n\r\n", 0, 0, 0, 0, NULL},
    {"HTTP/1.0 200 OK\r\n\r\n", 0, 0, 0, 0, NULL},
    {"http/1.1 200 OK\r\n\r\n", 0, 0, 0, 0, NULL},
    {"HTTP/1.1 200 OK\n\n", 0, 0, 0, 0, NULL},
    {"HTTP/1.1 200 \x1b\r\n\r\n", 0, 0, 0, 0, NULL},
    {"\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK " X: y\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "X : y\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "X\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "X: \x80\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "X: a\rb\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Length: 9223372036854775808\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Length: \r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Length: +1\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, 0, 0,
	NULL},
    {OK "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 0, 0, 0, 0,
	NULL},
    {OK "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "ETag: a\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "ETag: W/\"a\"\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "ETag: \"\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "ETag: \"a\"\r\nETag: \"a\"\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Range: bytes 1-5\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Range: bytes 5-1/9\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Range: bytes 1-9/9\r\n\r\n", 0, 0, 0, 0, NULL},
    {OK "Content-Range: lines 1-2/9\r\n\r\n", 0, 0, 0, 0, NULL},
};

static void
test_heads(void **state)
{
	const struct head_row *t;
	struct resp r;
	size_t i, n, cut;

	for (i = 0; i < nitems(heads); i++) {
		t = &heads[i];
		n = strlen(t->text);
		if (t->status == 0) {
			assert_int_equal(resp_parse(t->text, n, &r), -1);
			continue;
		}
		for (cut = 0; cut < n; cut++)
			assert_int_equal(resp_parse(t->text, cut, &r), 0);
		assert_int_equal(resp_parse(t->text, n, &r), n);
		assert_int_equal(r.status, t->status);
		assert_int_equal(r.chunked, t->chunked);
		assert_int_equal(r.has_length, t->has_length);
		assert_int_equal(r.length, t->length);
		assert_string_equal(r.etag, t->etag);
	}
}

static void
test_head_range(void **state)
{
	static const char text[] =
	    "HTTP/1.1 206 x\r\nContent-Range: bytes 3-5/6\r\n\r\n";
	static const char none[] =
	    "HTTP/1.1 416 x\r\nContent-Range: bytes */6\r\n\r\n";
	struct resp r;

	assert_int_equal(
	    resp_parse(text, sizeof(text) - 1, &r), sizeof(text) - 1);
	assert_int_equal(r.has_range, 1);
	assert_int_equal(r.first, 3);
	assert_int_equal(r.last, 5);
	assert_int_equal(r.total, 6);
	assert_int_equal(
	    resp_parse(none, sizeof(none) - 1, &r), sizeof(none) - 1);
	assert_int_equal(r.has_range, 0);
}

static void
test_head_bound(void **state)
{
	char *p = malloc(3 * RESP_HEAD_MAX);
	struct resp r;
	size_t n = strlen(OK);

	assert_non_null(p);
	memcpy(p, OK, n);
	memset(p + n, 'x', 3 * RESP_HEAD_MAX - n);
	assert_int_equal(resp_parse(p, RESP_HEAD_MAX, &r), 0);
	assert_int_equal(resp_parse(p, RESP_HEAD_MAX + 1, &r), -1);
	for (; n + 4 < 3 * RESP_HEAD_MAX; n += 4)
		memcpy(p + n, "X:\r\n", 4);
	assert_int_equal(resp_parse(p, n, &r), -1);
	free(p);
}

static const struct body_row {
	int chunked;
	uint64_t length;
	const char *text, *want; /* NULL: refused */
	const char *rest;	 /* behind the body */
} bodies[] = {
    {0, 5, "hello", "hello", ""},
    {0, 5, "helloHTTP", "hello", "HTTP"},
    {0, 0, "x", "", "x"},
    {1, 0, "5\r\nhello\r\n0\r\n\r\n", "hello", ""},
    {1, 0, "5\r\nhello\r\n00\r\n\r\nx", "hello", "x"},
    {1, 0, "1\r\na\r\nB\r\nbcdefghijkl\r\n0\r\n\r\n", "abcdefghijkl", ""},
    {1, 0, "\r\n", NULL, NULL},
    {1, 0, "g\r\n", NULL, NULL},
    {1, 0, "1 \r\na\r\n", NULL, NULL},
    {1, 0, "1;x=y\r\na\r\n", NULL, NULL},
    {1, 0, "1\na\r\n", NULL, NULL},
    {1, 0, "1\r\nab\r\n", NULL, NULL},
    {1, 0, "1\r\na\n", NULL, NULL},
    {1, 0, "0\r\nX: y\r\n\r\n", NULL, NULL},
    {1, 0, "1000000000000000\r\n", NULL, NULL},
};

/* The body in steps of so many bytes: where it ended, or -1. */
static ssize_t
take_body(const struct body_row *t, size_t step, char *out)
{
	struct resp r = {
	    .status = 200, .chunked = t->chunked, .length = t->length};
	const uint8_t *p = (const uint8_t *)t->text, *data;
	size_t at = 0, n = strlen(t->text), len, some;
	struct resp_body b;
	ssize_t used;

	resp_body_init(&b, &r, 0);
	while (b.state != RESP_DONE && at < n) {
		some = n - at < step ? n - at : step;
		used = resp_body_take(&b, p + at, some, &data, &len);
		if (used == -1)
			return -1;
		assert_true(used > 0 && (size_t)used <= some);
		assert_true(len <= (size_t)used);
		memcpy(out, data == NULL ? p : data, len);
		out += len;
		at += (size_t)used;
	}
	*out = '\0';
	assert_int_equal(b.state, RESP_DONE);
	return (ssize_t)at;
}

static void
test_bodies(void **state)
{
	char out[64];
	size_t i, step;
	ssize_t at;

	for (i = 0; i < nitems(bodies); i++)
		for (step = 1; step < 20; step++) {
			at = take_body(&bodies[i], step, out);
			if (bodies[i].want == NULL) {
				assert_int_equal(at, -1);
				continue;
			}
			assert_string_equal(out, bodies[i].want);
			assert_string_equal(
			    bodies[i].text + at, bodies[i].rest);
		}
}

static void
test_no_body(void **state)
{
	struct resp r = {.status = 200, .has_length = 1, .length = 5};
	struct resp_body b;

	resp_body_init(&b, &r, 1);
	assert_int_equal(b.state, RESP_DONE);
	r.status = 304;
	resp_body_init(&b, &r, 0);
	assert_int_equal(b.state, RESP_DONE);
}

/* ---- events ---- */

static int
note_cb(const char *event, const char *data, void *arg)
{
	strlcat(arg, event, 256);
	strlcat(arg, "=", 256);
	strlcat(arg, data, 256);
	strlcat(arg, ";", 256);
	return strcmp(event, "stop") == 0 ? -1 : 0;
}

static const struct {
	const char *text, *want;
	int end;
} streams[] = {
    {"", "", 0},
    {"event: a\ndata: b\n\n", "a=b;", 0},
    {"event:a\r\nid: 7\r\ndata:b\r\n\r\n", "a=b;", 0},
    {"data: x\n\n: comment\n\ndata: y\ndata: z\n\n", "message=x;message=y\nz;",
	0},
    {"event: a\n\ndata: b\n\n", "message=b;", 0},
    {"event: a\ndata: b\n", "", 0},
    {"event: a\ndata: b", "", 0},
    {"data\n\neventual: x\ndatum: y\n\n", "", 0},
    {"event: stop\ndata: b\n\ndata: c\n\n", "stop=b;", -1},
    {"event: 0123456789012345678901234567890123456789\n\n", "", -2},
};

static void
test_events(void **state)
{
	struct sse s = {0};
	char got[256];
	size_t i, at, step, n;
	int r;

	for (i = 0; i < nitems(streams); i++)
		for (step = 1; step < 40; step += 3) {
			got[0] = '\0';
			n = strlen(streams[i].text);
			for (at = r = 0; at < n && r == 0; at += step)
				r = sse_take(&s, streams[i].text + at,
				    n - at < step ? n - at : step, note_cb,
				    got);
			assert_string_equal(got, streams[i].want);
			assert_int_equal(r, streams[i].end);
			sse_clear(&s);
		}
}

/* Neither a line nor the lines of an event grow for ever. */
static void
test_event_bound(void **state)
{
	static char line[64 * 1024];
	struct sse s = {0};
	char got[256] = "";
	size_t i;
	int r = 0;

	memset(line, 'x', sizeof(line));
	for (i = 0; i < 2 * SSE_MAX / sizeof(line) && r == 0; i++)
		r = sse_take(&s, line, sizeof(line), note_cb, got);
	assert_int_equal(r, -2);
	sse_clear(&s);
	memcpy(line, "data: ", 6);
	line[sizeof(line) - 1] = '\n';
	for (i = r = 0; i < 2 * SSE_MAX / sizeof(line) && r == 0; i++)
		r = sse_take(&s, line, sizeof(line), note_cb, got);
	assert_int_equal(r, -2);
	sse_clear(&s);
	assert_int_equal(sse_take(&s, "data: \0x\n", 9, note_cb, got), -2);
	sse_clear(&s);
	assert_string_equal(got, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_heads),
	    cmocka_unit_test(test_head_range),
	    cmocka_unit_test(test_head_bound),
	    cmocka_unit_test(test_bodies),
	    cmocka_unit_test(test_no_body),
	    cmocka_unit_test(test_events),
	    cmocka_unit_test(test_event_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
