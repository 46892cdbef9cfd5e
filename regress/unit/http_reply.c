/*
 * SPDX-License-Identifier: ISC
 *
 * Response heads, byte for byte.
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
#include "listener/http_reply.h"

#define ID "X-Request-Id: r-1\r\nCache-Control: no-store\r\n"
#define TYPE "X-Content-Type-Options: nosniff\r\n"

static void
test_heads(void **state)
{
	static const struct {
		struct reply r;
		const char *want;
	} t[] = {
	    {{.status = 200, .reqid = "r-1"},
		"HTTP/1.1 200 OK\r\n" ID "Content-Length: 0\r\n\r\n"},
	    {{.status = 201,
		 .reqid = "r-1",
		 .date = "Tue, 14 Nov 2023 22:13:20 GMT",
		 .type = "application/json",
		 .length = 18446744073709551615U,
		 .close = 1},
		"HTTP/1.1 201 Created\r\n"
		"Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n" ID
		"Content-Type: application/json\r\n" TYPE
		"Content-Length: 18446744073709551615\r\n"
		"Connection: close\r\n\r\n"},
	    {{.status = 206,
		 .reqid = "r-1",
		 .type = "application/octet-stream",
		 .length = 5,
		 .etag = "\"e\"",
		 .ranges = 1,
		 .first = 7,
		 .last = 11,
		 .total = 12},
		"HTTP/1.1 206 Partial Content\r\n" ID
		"Content-Type: application/octet-stream\r\n" TYPE
		"ETag: \"e\"\r\nAccept-Ranges: bytes\r\n"
		"Content-Range: bytes 7-11/12\r\nContent-Length: 5\r\n\r\n"},
	    {{.status = 416, .reqid = "r-1", .total = 12},
		"HTTP/1.1 416 Range Not Satisfiable\r\n" ID
		"Content-Range: bytes */12\r\nContent-Length: 0\r\n\r\n"},
	    {{.status = 304,
		 .reqid = "r-1",
		 .framing = REPLY_NO_BODY,
		 .etag = "\"e\""},
		"HTTP/1.1 304 Not Modified\r\n" ID "ETag: \"e\"\r\n\r\n"},
	    {{.status = 200, .reqid = "r-1", .framing = REPLY_CHUNKED},
		"HTTP/1.1 200 OK\r\n" ID "Transfer-Encoding: chunked\r\n\r\n"},
	    {{.status = 200, .reqid = "r-1", .framing = REPLY_UNTIL_CLOSE},
		"HTTP/1.1 200 OK\r\n" ID "Connection: close\r\n\r\n"},
	    {{.status = 429, .reqid = "r-1", .retry_after = 60},
		"HTTP/1.1 429 Too Many Requests\r\n" ID
		"Retry-After: 60\r\nContent-Length: 0\r\n\r\n"},
	    {{.status = 503, .reqid = "r-1"},
		"HTTP/1.1 503 Service Unavailable\r\n" ID
		"Retry-After: 1\r\nContent-Length: 0\r\n\r\n"},
	    {{.status = 401, .reqid = "r-1", .www_auth = 1},
		"HTTP/1.1 401 Unauthorized\r\n" ID
		"WWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n"},
	    {{.status = 299, .reqid = "r-1"},
		"HTTP/1.1 299 Status\r\n" ID "Content-Length: 0\r\n\r\n"},
	};
	char out[REPLY_HEAD_MAX + 1];
	size_t i, len;
	int n;

	for (i = 0; i < nitems(t); i++) {
		n = reply_head(out, REPLY_HEAD_MAX, &t[i].r);
		assert_true(n > 0);
		out[n] = '\0';
		assert_string_equal(out, t[i].want);
		/* too small a buffer is never overrun */
		for (len = 0; len < (size_t)n; len++) {
			char *tight = malloc(len + 1);

			assert_non_null(tight);
			assert_int_equal(reply_head(tight, len, &t[i].r), -1);
			free(tight);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
