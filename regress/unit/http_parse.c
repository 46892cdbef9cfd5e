/*
 * SPDX-License-Identifier: ISC
 *
 * Heads and chunks: what is refused and how, and that the place where the
 * bytes are cut never changes the result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "listener/http_chunk.h"
#include "listener/http_parse.h"

#define MAXF 16384
#define LINE "GET /health HTTP/1.1\r\n"
#define HOST "Host: localhost\r\n"

/* Feed in two parts, the second from a buffer that moved. */
static int
feed(struct http_head *h, const char *s, size_t len, size_t cut)
{
	uint8_t *copy;
	int rc;

	http_head_init(h);
	if (cut > 0) {
		copy = malloc(cut);
		assert_non_null(copy);
		memcpy(copy, s, cut);
		rc = http_head_feed(h, copy, cut, MAXF);
		free(copy);
		if (rc != 0)
			return rc;
	}
	copy = malloc(len);
	assert_non_null(copy);
	memcpy(copy, s, len);
	rc = http_head_feed(h, copy, len, MAXF);
	free(copy);
	return rc;
}

struct row {
	const char *text;
	int rc;
	enum code code;
};

static const struct row rows[] = {
    {LINE HOST "\r\n", 1, C_OK},
    {"\r\n" LINE HOST "\r\n", 1, C_OK},
    {"\r\n\r\n" LINE HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST, 0, C_OK},
    {LINE HOST "\r", 0, C_OK},
    {LINE "HOST:localhost\r\nX: \t y \t\r\n\r\n", 1, C_OK},
    {LINE HOST "X:\r\n\r\n", 1, C_OK},
    {LINE HOST "X: caf\xc3\xa9\r\n\r\n", 1, C_OK},
    {LINE "\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {"GET /x HTTP/1.0\r\n" HOST "\r\n", 1, C_OK},
    {"GET /x HTTP/1.0\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {"GET /x HTTP/1.2\r\n" HOST "\r\n", -1, C_REQ_VERSION},
    {"GET /x HTTP/2.0\r\n" HOST "\r\n", -1, C_REQ_VERSION},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", -1, C_REQ_VERSION},
    {"GET /x HTTP/1.1 \r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {"GET /x http/1.1\r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {"GET /x HTTP/11\r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {"GET /x\r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {"GET\r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {" GET / HTTP/1.1\r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {"G(T / HTTP/1.1\r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {"GETGETGETGETGETGETGETGETGETGETGET / HTTP/1.1\r\n" HOST "\r\n", -1,
	C_REQ_BAD_FRAMING},
    /* the target is judged elsewhere, whatever is in it */
    {"GET /a b HTTP/1.1\r\n" HOST "\r\n", 1, C_OK},
    {"GET  HTTP/1.1\r\n" HOST "\r\n", 1, C_OK},
    {"GET /\x01 HTTP/1.1\r\n" HOST "\r\n", 1, C_OK},
    /* line ends */
    {"GET /health HTTP/1.1\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE "Host: localhost\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X: a\nY: b\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X: a\rb\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X: a\r\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "\n", -1, C_REQ_BAD_FRAMING},
    {"GET /x\rHost: a\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    /* fields */
    {LINE HOST "X : y\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X: a\r\n b\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X: a\r\n\tb\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE " X: a\r\n" HOST "\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST ": y\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X: a\x01\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X: a\x7f\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "X\xc3\xa9: a\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    /* lengths and codings */
    {LINE HOST "Content-Length: 0\r\n\r\n", 1, C_OK},
    {LINE HOST "Content-Length: 9223372036854775807\r\n\r\n", 1, C_OK},
    {LINE HOST "Content-Length: 9223372036854775808\r\n\r\n", -1,
	C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: 99999999999999999999\r\n\r\n", -1,
	C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: 18446744073709551617\r\n\r\n", -1,
	C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length:\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: 1 2\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length : 2\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: +2\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: -2\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: 0x2\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: 2, 2\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n", -1,
	C_REQ_BAD_FRAMING},
    {LINE HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", -1,
	C_REQ_BAD_FRAMING},
    {LINE HOST "Transfer-Encoding: CHUNKED\r\n\r\n", 1, C_OK},
    {LINE HOST "Transfer-Encoding: xchunked\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Transfer-Encoding: chunked;q=1\r\n\r\n", -1, C_REQ_BAD_FRAMING},
    {LINE HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", -1,
	C_REQ_BAD_FRAMING},
    {LINE HOST "Transfer-Encoding: chunked\r\n"
	       "Transfer-Encoding: chunked\r\n\r\n",
	-1, C_REQ_BAD_FRAMING},
    {"GET /x HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", -1,
	C_REQ_BAD_FRAMING},
    {"\x16\x03\x01", -1, C_REQ_BAD_FRAMING},
};

static void
test_rows(void **state)
{
	struct http_head h;
	size_t i, cut, len;
	int rc;

	for (i = 0; i < nitems(rows); i++) {
		len = strlen(rows[i].text);
		for (cut = 0; cut < len; cut++) {
			rc = feed(&h, rows[i].text, len, cut);
			if (rc != rows[i].rc || h.code != rows[i].code)
				fail_msg("row %zu cut %zu: %d %s", i, cut, rc,
				    codes[h.code].code);
			if (rc == 1)
				assert_int_equal(h.end, len);
		}
	}
	/* a NUL in a field */
	assert_int_equal(feed(&h, LINE HOST "X: a\0b\r\n\r\n",
			     sizeof(LINE HOST "X: a\0b\r\n\r\n") - 1, 0),
	    -1);
	assert_int_equal(h.code, C_REQ_BAD_FRAMING);
}

static void
test_values(void **state)
{
	static const char s[] = "PUT /a?b=%20 HTTP/1.1\r\n"
				"hOsT: \tlocalhost:80 \r\n"
				"Content-Length: 12\r\n"
				"Connection: keep-alive , CLOSE\r\n"
				"Expect: 100-Continue\r\n"
				"Accept: text/html, text/event-stream;q=1\r\n"
				"Range: bytes=0-1\r\n\r\nrest";
	const uint8_t *b = (const uint8_t *)s;
	struct http_head h;

	assert_int_equal(feed(&h, s, sizeof(s) - 1, 40), 1);
	assert_int_equal(h.end, sizeof(s) - 1 - 4);
	assert_true(http_slice_is(b, &h.method, "PUT"));
	assert_true(http_slice_is(b, &h.target, "/a?b=%20"));
	assert_true(http_slice_is(b, &h.field[HF_HOST], "localhost:80"));
	assert_true(http_slice_is(b, &h.field[HF_RANGE], "bytes=0-1"));
	assert_true(h.has_length && h.length == 12);
	assert_true(h.close && h.expect && h.sse && h.minor == 1);
	assert_int_equal(h.seen[HF_ORIGIN], 0);
}

/* A head with a target of n bytes, one field of m, k further fields. */
static int
sized(size_t n, size_t m, unsigned k, enum code *code, size_t cut)
{
	char *s = malloc(n + m + 40 * k + 200);
	struct http_head h;
	size_t len;
	unsigned i;
	int rc;

	assert_non_null(s);
	len = (size_t)sprintf(s, "GET /");
	memset(s + len, 'a', n - 1);
	len += n - 1;
	len += (size_t)sprintf(s + len, " HTTP/1.1\r\n" HOST "X: ");
	memset(s + len, 'y', m);
	len += m;
	len += (size_t)sprintf(s + len, "\r\n");
	for (i = 0; i < k; i++)
		len += (size_t)sprintf(s + len, "X-%u: y\r\n", i);
	len += (size_t)sprintf(s + len, "\r\n");
	rc = feed(&h, s, len, cut < len ? cut : 0);
	*code = h.code;
	free(s);
	return rc;
}

static void
test_sizes(void **state)
{
	enum code code;
	size_t n;

	assert_int_equal(sized(HTTP_TARGET_MAX, 1, 0, &code, 0), 1);
	assert_int_equal(sized(2, 8000, 62, &code, 0), 1);
	assert_int_equal(sized(2, 1, 63, &code, 0), -1);
	assert_int_equal(code, C_REQ_HEADERS_TOO_LARGE);
	for (n = 16320; n < 16400; n++) {
		/* Host line, "X: ", CR LF */
		int want = n + 17 + 5 <= MAXF ? 1 : -1;

		assert_int_equal(sized(2, n, 0, &code, 0), want);
		assert_int_equal(sized(2, n, 0, &code, 9000), want);
		if (want == -1)
			assert_int_equal(code, C_REQ_HEADERS_TOO_LARGE);
	}
	for (n = 15330; n <= 15340; n++) {
		assert_int_equal(sized(n, 1, 0, &code, 0), -1);
		assert_int_equal(code, C_REQ_BAD_TARGET);
		assert_int_equal(sized(n, 1, 0, &code, 8300), -1);
		assert_int_equal(code, C_REQ_BAD_TARGET);
	}
}

/* What is wrong in two ways is wrong in the same way however it comes: too
 * much of a line counts before what is in it. */
static void
test_order(void **state)
{
	static const struct {
		const char *head; /* then that many bytes, then tail */
		size_t n;
		const char *tail;
		int rc;
		enum code code;
	} t[] = {
	    {LINE HOST "X: \r", MAXF, "\r\n\r\n", -1, C_REQ_HEADERS_TOO_LARGE},
	    {LINE HOST "X: ", MAXF, "\n\n", -1, C_REQ_HEADERS_TOO_LARGE},
	    {LINE HOST "X: ", MAXF - 17 - 3 - 2, "\r\n\r\n", 1, C_OK},
	    {LINE HOST "X: ", MAXF - 17 - 3 - 1, "\r\n\r\n", -1,
		C_REQ_HEADERS_TOO_LARGE},
	    {"GET /\r", HTTP_LINE_MAX, " HTTP/1.1\r\n", -1, C_REQ_BAD_TARGET},
	    {"G(T /", HTTP_LINE_MAX, " HTTP/1.1\r\n", -1, C_REQ_BAD_FRAMING},
	    {"", HTTP_LINE_MAX, " HTTP/1.1\r\n", -1, C_REQ_BAD_FRAMING},
	};
	struct http_head h;
	size_t i, at, len, have;
	char *s;
	int rc;

	for (i = 0; i < nitems(t); i++) {
		at = strlen(t[i].head);
		len = at + t[i].n + strlen(t[i].tail);
		s = malloc(len + 1);
		assert_non_null(s);
		memset(s, 'a', len);
		memcpy(s, t[i].head, at);
		strlcpy(s + at + t[i].n, t[i].tail, strlen(t[i].tail) + 1);
		assert_int_equal(feed(&h, s, len, 0), t[i].rc);
		assert_int_equal(h.code, t[i].code);
		http_head_init(&h);
		for (have = 0, rc = 0; rc == 0 && have <= len; have++)
			rc = http_head_feed(&h, (uint8_t *)s, have, MAXF);
		assert_int_equal(rc, t[i].rc);
		assert_int_equal(h.code, t[i].code);
		free(s);
	}
}

/* Three pipelined requests cut at every offset. */
static void
test_pipelined(void **state)
{
	static const char three[] =
	    LINE HOST "\r\n" LINE HOST "X: y\r\n\r\n" LINE HOST "\r\n";
	const size_t len = sizeof(three) - 1;
	struct http_head h;
	size_t cut, off, have;
	int n, rc;

	for (cut = 1; cut < len; cut++) {
		off = 0;
		n = 0;
		http_head_init(&h);
		for (have = cut; have <= len; have += len - cut) {
			while ((rc = http_head_feed(&h,
				    (const uint8_t *)three + off, have - off,
				    MAXF)) == 1) {
				n++;
				off += h.end;
				http_head_init(&h);
			}
			assert_int_equal(rc, 0);
		}
		assert_int_equal(n, 3);
		assert_int_equal(off, len);
	}
}

static void
test_lists(void **state)
{
	static const struct {
		const char *list, *token;
		int want;
	} t[] = {
	    {"close", "close", 1},
	    {"Close", "close", 1},
	    {"closed", "close", 0},
	    {"", "close", 0},
	    {",", "close", 0},
	    {"a,close", "close", 1},
	    {"a ,\t close ,b", "close", 1},
	    {"close;q=1", "close", 1},
	    {"a;close", "close", 0},
	};
	size_t i;

	for (i = 0; i < nitems(t); i++)
		assert_int_equal(
		    http_list_has(t[i].list, strlen(t[i].list), t[i].token),
		    t[i].want);
}

/* ---- chunks ---- */

static const struct {
	const char *text;
	int rc; /* the last answer that is not data */
	const char *data;
	size_t left; /* bytes that are not of the body */
} chunks[] = {
    {"0\r\n\r\n", 2, "", 0},
    {"000\r\n\r\n", 2, "", 0},
    {"4\r\n{\"pa\r\n8;x=y\r\nth\":\".\"}\r\n000\r\n\r\n", 2, "{\"path\":\".\"}",
	0},
    {"1\r\na\r\n0\r\n\r\nGET /", 2, "a", 5},
    {"A\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n", 2, "0123456789", 0},
    {"0000000000000001\r\na\r\n0\r\n\r\n", 2, "a", 0},
    {"1\r\na\r\n0\r\n", 0, "a", 0},
    {"1\r\na", 0, "a", 0},
    {"", 0, "", 0},
    {"00000000000000001\r\na\r\n0\r\n\r\n", -1, "", 0},
    {"ffffffffffffffff\r\n", -1, "", 0},
    {"8000000000000000\r\n", -1, "", 0},
    {"10000000000000000\r\n", -1, "", 0},
    {"7fffffffffffffff\r\nx", 0, "x", 0},
    {"c\n", -1, "", 0},
    {"-c\r\n", -1, "", 0},
    {"0xc\r\n", -1, "", 0},
    {" c\r\n", -1, "", 0},
    {"c \r\n", -1, "", 0},
    {"\r\n", -1, "", 0},
    {";x\r\n", -1, "", 0},
    {"g\r\n", -1, "", 0},
    {"1\r\nab\r\n0\r\n\r\n", -1, "a", 0},
    {"2\r\na\r\n0\r\n\r\n", -1, "a\r", 0},
    {"1\r\na\n0\r\n\r\n", -1, "a", 0},
    {"1\r\na\rx", -1, "a", 0},
    {"1\rxa", -1, "", 0},
    {"1;a\nb\r\n", -1, "", 0},
    {"0\r\n\n", -1, "", 0},
    {"0\r\n X: y\r\n\r\n", -1, "", 0},
    {"0\r\nX : y\r\n\r\n", -1, "", 0},
    {"0\r\nX\r\n\r\n", -1, "", 0},
    {"0\r\nX: a\x01\r\n\r\n", -1, "", 0},
    {"0\r\n\rx", -1, "", 0},
};

/* Decode with a cut; returns the last answer, data in out. */
static int
decode(struct chunk_dec *d, const char *s, size_t len, char *out, size_t *left)
{
	const uint8_t *p = (const uint8_t *)s, *data;
	size_t n = len, m;
	int rc;

	while ((rc = chunk_feed(d, &p, &n, &data, &m)) == 1) {
		memcpy(out + strlen(out), data, m);
		assert_true(m > 0);
	}
	*left = n;
	return rc;
}

static void
test_chunks(void **state)
{
	struct chunk_dec d;
	size_t i, cut, len, left;
	char out[64];
	int rc;

	for (i = 0; i < nitems(chunks); i++) {
		len = strlen(chunks[i].text);
		for (cut = 0; cut <= len; cut++) {
			memset(out, 0, sizeof(out));
			chunk_init(&d);
			rc = decode(&d, chunks[i].text, cut, out, &left);
			if (rc == 0)
				rc = decode(&d, chunks[i].text + cut, len - cut,
				    out, &left);
			else if (rc == 2)
				left += len - cut;
			if (rc != chunks[i].rc ||
			    strcmp(out, chunks[i].data) != 0)
				fail_msg(
				    "row %zu cut %zu: %d %s", i, cut, rc, out);
			if (rc == 2)
				assert_int_equal(left, chunks[i].left);
		}
	}
}

static void
test_chunk_bounds(void **state)
{
	struct chunk_dec d;
	char ext[400], *big, out[8] = "";
	size_t n, left;

	for (n = 250; n < 260; n++) {
		memset(ext, 'x', sizeof(ext));
		memcpy(ext, "c;", 2);
		memcpy(ext + 2 + n, "\r\n", 2);
		chunk_init(&d);
		assert_int_equal(decode(&d, ext, n + 4, out, &left),
		    n < CHUNK_EXT_MAX ? 0 : -1);
	}
	big = malloc(10000);
	assert_non_null(big);
	memset(big, 'x', 10000);
	memcpy(big, "0\r\nX:", 5);
	chunk_init(&d);
	assert_int_equal(decode(&d, big, 10000, out, &left), -1);
	free(big);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_order),
	    cmocka_unit_test(test_pipelined),
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_chunks),
	    cmocka_unit_test(test_chunk_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
