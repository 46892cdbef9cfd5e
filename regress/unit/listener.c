/*
 * SPDX-License-Identifier: ISC
 *
 * Small pure parts of the listener: ranges, hosts and origins,
 * counts of wrong tokens, the output buffer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/payload.h"
#include "listener/failures.h"
#include "listener/host.h"
#include "listener/obuf.h"
#include "listener/range.h"

static void
test_ranges(void **state)
{
	static const struct {
		const char *text;
		uint64_t size;
		int rc;
		uint64_t first, last;
	} t[] = {
	    {"bytes=0-0", 12, 1, 0, 0},
	    {"bytes=10-19", 100000, 1, 10, 19},
	    {"BYTES=1-", 12, 1, 1, 11},
	    {"bytes=5-200", 12, 1, 5, 11},
	    {"bytes=11-11", 12, 1, 11, 11},
	    {"bytes=-5", 12, 1, 7, 11},
	    {"bytes=-12", 12, 1, 0, 11},
	    {"bytes=-500", 12, 1, 0, 11},
	    {"bytes=0-18446744073709551615", 12, 1, 0, 11},
	    {"bytes=0-99999999999999999999999", 12, 1, 0, 11},
	    {"bytes=-99999999999999999999999", 12, 1, 0, 11},
	    {"bytes=12-", 12, -1, 0, 0},
	    {"bytes=5000-", 12, -1, 0, 0},
	    {"bytes=99999999999999999999999-", 12, -1, 0, 0},
	    {"bytes=-0", 12, -1, 0, 0},
	    {"bytes=0-", 0, -1, 0, 0},
	    {"bytes=-5", 0, -1, 0, 0},
	    {"bytes=junk", 12, 0, 0, 0},
	    {"bytes=", 12, 0, 0, 0},
	    {"bytes=-", 12, 0, 0, 0},
	    {"bytes=5-2", 12, 0, 0, 0},
	    {"bytes=0-1,3-4", 12, 0, 0, 0},
	    {"bytes=0-1 ", 12, 0, 0, 0},
	    {"bytes= 0-1", 12, 0, 0, 0},
	    {"lines=0-1", 12, 0, 0, 0},
	    {"", 12, 0, 0, 0},
	};
	uint64_t first, last;
	size_t i;
	int rc;

	for (i = 0; i < nitems(t); i++) {
		first = last = 0;
		rc = range_parse(
		    t[i].text, strlen(t[i].text), t[i].size, &first, &last);
		if (rc != t[i].rc ||
		    (rc == 1 && (first != t[i].first || last != t[i].last)))
			fail_msg("%s: %d %llu-%llu", t[i].text, rc,
			    (unsigned long long)first,
			    (unsigned long long)last);
	}
}

static void
test_hosts(void **state)
{
	static const struct {
		const char *host;
		int want;
	} t[] = {
	    {"localhost", 1},
	    {"LocalHost:1234", 1},
	    {"127.0.0.1", 1},
	    {"127.0.0.1:80", 1},
	    {"127.255.0.9", 1},
	    {"[::1]", 1},
	    {"[::1]:80", 1},
	    {"abx.example", 1},
	    {"ABX.example:99", 1},
	    {"other.example:8080", 1},
	    {"other.example", 0},
	    {"other.example:8081", 0},
	    {"", 0},
	    {":80", 0},
	    {"evil.example", 0},
	    {"127.0.0.1.evil.example", 0},
	    {"localhost.evil.example", 0},
	    {"localhost.", 0},
	    {"evil.example:127.0.0.1", 0},
	    {"127.0.0.1@evil.example", 0},
	    {"127.0.0.1:", 0},
	    {"127.0.0.1:x", 0},
	    {"127.0.0.1:99999", 0},
	    {"127.0.0.1:80:80", 0},
	    {"127.1", 0},
	    {"0177.0.0.1", 0},
	    {"2130706433", 0},
	    {"0.0.0.0", 0},
	    {"10.0.0.1", 0},
	    {"::1", 0},
	    {"[::1", 0},
	    {"[::2]", 0},
	    {"[::1]x", 0},
	};
	char a[] = "abx.example", b[] = "other.example:8080";
	char *v[] = {a, b};
	struct strlist allowed = {v, 2};
	size_t i;

	for (i = 0; i < nitems(t); i++)
		if (host_ok(t[i].host, strlen(t[i].host), &allowed) !=
		    t[i].want)
			fail_msg("%s", t[i].host);
}

static void
test_origins(void **state)
{
	char a[] = "https://abx.example";
	char *v[] = {a};
	struct strlist allowed = {v, 1}, none = {NULL, 0};

	assert_true(origin_ok("https://abx.example", 19, &allowed));
	assert_true(origin_ok("HTTPS://abx.example", 19, &allowed));
	assert_false(origin_ok("https://abx.example", 19, &none));
	assert_false(origin_ok("https://abx.example:1", 21, &allowed));
	assert_false(origin_ok("http://abx.example", 18, &allowed));
	assert_false(origin_ok("null", 4, &allowed));
	assert_false(origin_ok("", 0, &allowed));
}

static void
test_failures(void **state)
{
	const uint64_t now = 5000000, minute = 60000000;
	char token[32];
	int i;

	for (i = 0; i < 10; i++)
		assert_int_equal(failures_add("wrong", now), 0);
	assert_int_equal(failures_add("wrong", now), 61);
	assert_int_equal(failures_add("wrong", now + minute - 1), 1);
	assert_int_equal(failures_add("other", now), 0);
	/* a window later it may be tried again */
	assert_int_equal(failures_add("wrong", now + minute), 0);
	/* a flood of others leaves the table bounded and working */
	for (i = 0; i < 100000; i++) {
		snprintf(token, sizeof(token), "t%d", i);
		assert_int_equal(failures_add(token, now + minute), 0);
	}
}

static void
test_obuf(void **state)
{
	struct obuf b;
	char in[1000], out[20000];
	size_t i, got = 0, want = 0, n;

	memset(&b, 0, sizeof(b));
	for (i = 0; i < 60; i++) {
		memset(in, (int)('a' + i % 26), sizeof(in));
		assert_int_equal(obuf_add(&b, in, i * 7), 0);
		want += i * 7;
		n = obuf_left(&b) / 3;
		if (n > 0)
			memcpy(out + got, b.p + b.off, n);
		got += n;
		obuf_took(&b, n);
	}
	n = obuf_left(&b);
	memcpy(out + got, b.p + b.off, n);
	got += n;
	obuf_took(&b, n);
	assert_null(b.p);
	assert_int_equal(got, want);
	for (i = 0, n = 0; i < 60; i++) {
		size_t j;

		for (j = 0; j < i * 7; j++, n++)
			assert_int_equal(out[n], 'a' + i % 26);
	}
	obuf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_ranges),
	    cmocka_unit_test(test_hosts),
	    cmocka_unit_test(test_origins),
	    cmocka_unit_test(test_failures),
	    cmocka_unit_test(test_obuf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
