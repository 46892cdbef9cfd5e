/*
 * SPDX-License-Identifier: ISC
 *
 * How entries look to clients: JSON strings of any bytes, times, tags.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/entry.h"
#include "common/frame.h"
#include "common/payload.h"

static void
check_text(struct wbuf *w, const char *want)
{
	wput_u8(w, 0);
	assert_false(w->err);
	assert_string_equal((const char *)w->p, want);
	wbuf_free(w);
}

static void
test_str(void **state)
{
	static const struct {
		const char *in, *want;
	} t[] = {
	    {"", "\"\""},
	    {"plain", "\"plain\""},
	    {"q\"b\\", "\"q\\\"b\\\\\""},
	    {"a\n\r\t\x01\x7f", "\"a\\n\\r\\t\\u0001\\u007f\""},
	    {"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
	    {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
	    {"bad\xff", "\"bad\xef\xbf\xbd\""},
	    {"\xc3", "\"\xef\xbf\xbd\""},
	    {"\xe2\x82x", "\"\xef\xbf\xbd\xef\xbf\xbdx\""},
	    {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	    {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
	};
	struct wbuf w;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		wbuf_init(&w, 1024);
		json_str_put(&w, t[i].in, strlen(t[i].in));
		check_text(&w, t[i].want);
	}
}

static void
test_times(void **state)
{
	static const struct {
		int64_t sec;
		uint32_t ns;
		const char *rfc, *http;
	} t[] = {
	    {0, 0, "1970-01-01T00:00:00.000Z", "Thu, 01 Jan 1970 00:00:00 GMT"},
	    {1700000000, 250000000, "2023-11-14T22:13:20.250Z",
		"Tue, 14 Nov 2023 22:13:20 GMT"},
	    {951782400, 999999999, "2000-02-29T00:00:00.999Z",
		"Tue, 29 Feb 2000 00:00:00 GMT"},
	    {-1, 0, "1969-12-31T23:59:59.000Z",
		"Wed, 31 Dec 1969 23:59:59 GMT"},
	    {INT64_MAX, 0, "9999-12-31T23:59:59.000Z",
		"Fri, 31 Dec 9999 23:59:59 GMT"},
	    {INT64_MIN, 0, "0000-01-01T00:00:00.000Z",
		"Sat, 01 Jan 0000 00:00:00 GMT"},
	};
	char rfc[RFC3339_SIZE], http[HTTPDATE_SIZE];
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		time_rfc3339(rfc, t[i].sec, t[i].ns);
		assert_string_equal(rfc, t[i].rfc);
		time_http(http, t[i].sec);
		assert_string_equal(http, t[i].http);
	}
}

static void
test_etag(void **state)
{
	char a[ETAG_SIZE], b[ETAG_SIZE];
	int i;

	etag_make(a, 1, 2, 3, 4, 5);
	assert_int_equal(strlen(a), ETAG_SIZE - 1);
	assert_true(a[0] == '"' && a[ETAG_SIZE - 2] == '"');
	etag_make(b, 1, 2, 3, 4, 5);
	assert_string_equal(a, b);
	for (i = 0; i < 5; i++) {
		etag_make(b, 1 + (i == 0), 2 + (i == 1), 3 + (i == 2),
		    4 + (i == 3), 5 + (i == 4));
		assert_string_not_equal(a, b);
	}
}

static void
test_lists(void **state)
{
	static const struct {
		const char *list;
		int weak, strong;
	} t[] = {
	    {"\"e\"", 1, 1},
	    {"*", 1, 1},
	    {"W/\"e\"", 1, 0},
	    {"\"a\", \"e\"", 1, 1},
	    {"\"a\",\t W/\"e\",\"b\"", 1, 0},
	    {", \"e\" ,,", 1, 1},
	    {"\"a\"", 0, 0},
	    {"\"ee\"", 0, 0},
	    {"\"\"", 0, 0},
	    {"\"a, \"", 0, 0},
	    {"", -1, -1},
	    {" ,", -1, -1},
	    {"e", -1, -1},
	    {"\"e", -1, -1},
	    {"\"", -1, -1},
	    {"w/\"e\"", -1, -1},
	    {"W/", -1, -1},
	    {"W/e", -1, -1},
	    {"\"e\", *", -1, -1},
	    {"\"a\"\"e\"", -1, -1},
	    {"\"a\" e \"e\"", -1, -1},
	    {"**", -1, -1},
	    {"* ", -1, -1},
	};
	size_t i, n;

	for (i = 0; i < nitems(t); i++) {
		n = strlen(t[i].list);
		if (etag_listed(t[i].list, n, "\"e\"", 1) != t[i].weak ||
		    etag_listed(t[i].list, n, "\"e\"", 0) != t[i].strong)
			fail_msg("%s", t[i].list);
	}
}

static void
test_entry(void **state)
{
	struct list_entry e = {
	    FK_FILE, 0100640, 5, 1700000000, 250000000, 1, 2, "f", 1};
	struct wbuf w;
	char etag[ETAG_SIZE], want[512];

	etag_make(etag, 1, 2, 5, 1700000000, 250000000);
	etag[ETAG_SIZE - 2] = '\0';
	snprintf(want, sizeof(want),
	    "{\"name\":\"f\",\"path\":\"d/f\",\"type\":\"file\",\"size\":5,"
	    "\"mode\":\"0640\",\"mtime\":\"2023-11-14T22:13:20.250Z\","
	    "\"etag\":\"\\\"%s\\\"\"}",
	    etag + 1);
	wbuf_init(&w, 1024);
	entry_put(&w, "d", 1, &e);
	check_text(&w, want);
	wbuf_init(&w, 1024);
	entry_put(&w, "d/", 1, &e);
	check_text(&w, want);
	wbuf_init(&w, 1024);
	entry_put(&w, "d/f", 0, &e);
	check_text(&w, want);

	e.name = "b\xff";
	e.namelen = 2;
	wbuf_init(&w, 1024);
	entry_put(&w, "", 1, &e);
	wput_u8(&w, 0);
	assert_non_null(strstr((char *)w.p,
	    "{\"name\":\"b\xef\xbf\xbd\",\"name_base64\":\"Yv8=\","
	    "\"path\":\"b\xef\xbf\xbd\",\"path_base64\":\"Yv8=\","));
	wbuf_free(&w);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_str),
	    cmocka_unit_test(test_times),
	    cmocka_unit_test(test_etag),
	    cmocka_unit_test(test_lists),
	    cmocka_unit_test(test_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
