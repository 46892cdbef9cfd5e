/*
 * SPDX-License-Identifier: ISC
 *
 * Sizes, durations, rates: what parses, and that nothing else does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "common/size.h"

struct row {
	const char *text;
	int64_t value; /* -1: refused */
};

static const struct row sizes[] = {
    {"0", 0},
    {"4096", 4096},
    {"1B", 1},
    {"1kB", 1000},
    {"10MB", 10000000},
    {"1GB", 1000000000},
    {"2TB", 2000000000000},
    {"1KiB", 1024},
    {"10MiB", 10485760},
    {"1GiB", 1073741824},
    {"1TiB", 1099511627776},
    {"1.5GB", 1500000000},
    {"0.5KiB", 512},
    {"1.25kB", 1250},
    {"1.50000000000000000000000000GB", 1500000000},
    {"0.0009765625KiB", 1},
    {"9223372036854775807", INT64_MAX},
    {"9223372036854775807B", INT64_MAX},
    {"1.0B", 1},
    {"", -1},
    {"MB", -1},
    {"10 MB", -1},
    {"10MBs", -1},
    {"10mb", -1},
    {"10KB", -1},
    {"10k", -1},
    {"-1", -1},
    {"+1", -1},
    {" 1", -1},
    {"1 ", -1},
    {"1.5", -1},
    {"1.", -1},
    {".5MB", -1},
    {"1.MB", -1},
    {"1.5B", -1},
    {"0.0001kB", -1},
    {"1e3", -1},
    {"0x10", -1},
    {"9223372036854775808", -1},
    {"10000000TB", -1},
    {"18446744073709551616", -1},
    {"9007199254740993TiB", -1},
    {"0.1KiB", -1},
    {"1.5.5MB", -1},
};
static const struct row durations[] = {
    {"90s", 90000},
    {"5m", 300000},
    {"1h", 3600000},
    {"500ms", 500},
    {"0s", 0},
    {"", -1},
    {"90", -1},
    {"s", -1},
    {"1.5s", -1},
    {"5 m", -1},
    {"5min", -1},
    {"5M", -1},
    {"-5s", -1},
    {"1d", -1},
    {"99999999999999999999s", -1},
    {"9223372036854775807h", -1},
};

static void
test_sizes(void **state)
{
	uint64_t v;
	size_t i;
	int r;

	for (i = 0; i < nitems(sizes); i++) {
		r = size_parse(sizes[i].text, &v);
		if (r != (sizes[i].value < 0 ? -1 : 0) ||
		    (r == 0 && v != (uint64_t)sizes[i].value))
			fail_msg("%s", sizes[i].text);
	}
}

static void
test_durations(void **state)
{
	uint64_t v;
	size_t i;
	int r;

	for (i = 0; i < nitems(durations); i++) {
		r = duration_parse(durations[i].text, &v);
		if (r != (durations[i].value < 0 ? -1 : 0) ||
		    (r == 0 && v != (uint64_t)durations[i].value))
			fail_msg("%s", durations[i].text);
	}
}

static void
test_rates(void **state)
{
	static const char *const bad[] = {"", "10", "10/", "/min", "0/s",
	    "10/m", "10/sec", "10 /s", "-1/s", "4294967296/s", "1.5/s",
	    "10/min "};
	uint64_t ms;
	uint32_t n;
	size_t i;

	assert_int_equal(rate_parse("10/min", &n, &ms), 0);
	assert_int_equal(n, 10);
	assert_int_equal(ms, 60000);
	assert_int_equal(rate_parse("5/s", &n, &ms), 0);
	assert_int_equal(ms, 1000);
	assert_int_equal(rate_parse("4294967295/h", &n, &ms), 0);
	assert_int_equal(n, UINT32_MAX);
	assert_int_equal(ms, 3600000);
	for (i = 0; i < nitems(bad); i++)
		if (rate_parse(bad[i], &n, &ms) != -1)
			fail_msg("%s", bad[i]);
}

static void
test_uint(void **state)
{
	uint64_t v;

	assert_int_equal(uint_parse("42x", 2, 100, &v), 0);
	assert_int_equal(v, 42);
	assert_int_equal(
	    uint_parse("18446744073709551615", 20, UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(
	    uint_parse("18446744073709551616", 20, UINT64_MAX, &v), -1);
	assert_int_equal(uint_parse("101", 3, 100, &v), -1);
	assert_int_equal(uint_parse("", 0, 100, &v), -1);
	assert_int_equal(uint_parse("+1", 2, 100, &v), -1);
	assert_int_equal(uint_parse("1 ", 2, 100, &v), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sizes),
	    cmocka_unit_test(test_durations),
	    cmocka_unit_test(test_rates),
	    cmocka_unit_test(test_uint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
