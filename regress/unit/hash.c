/*
 * SPDX-License-Identifier: ISC
 *
 * Hashes, hex and the comparison of secrets, by known answers.  (What goes
 * there and back: regress/fuzz/codec.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "common/hash.h"

/* Vectors of the page that fnv32 names; the last, for the sign of char, was
 * calculated. */
static void
test_fnv(void **state)
{
	static const struct {
		const char *text;
		uint32_t want;
	} t[] = {
	    {"", 0x811c9dc5},
	    {"a", 0xe40c292c},
	    {"b", 0xe70c2de5},
	    {"foobar", 0xbf9cf968},
	    {"\377", 0x7a0b824e},
	};
	size_t i;

	for (i = 0; i < nitems(t); i++)
		assert_int_equal(
		    fnv32(t[i].text, strlen(t[i].text)), t[i].want);
}

static void
test_hex(void **state)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	uint8_t out[2] = {0xa5, 0xa5};
	int c, n = 0;

	for (c = 0; c < 256; c++)
		if (hex_digit((char)c) != -1) {
			assert_true(c != 0 && strchr(digits, c) != NULL);
			n++;
		}
	assert_int_equal(n, 22);
	assert_int_equal(hex_digit('0'), 0);
	assert_int_equal(hex_digit('9'), 9);
	assert_int_equal(hex_digit('a'), 10);
	assert_int_equal(hex_digit('F'), 15);
	assert_int_equal(hex_decode("00fF", out, 2), 0);
	assert_int_equal(out[0], 0);
	assert_int_equal(out[1], 255);
	assert_int_equal(hex_decode("00f", out, 2), -1);
	assert_int_equal(hex_decode("00fff", out, 2), -1);
	assert_int_equal(hex_decode("00fg", out, 2), -1);
}

static void
test_equal(void **state)
{
	assert_true(ct_equal("", "", 0));
	assert_true(ct_equal("abc", "abd", 2));
	assert_false(ct_equal("abc", "abd", 3));
	assert_false(ct_equal("xbc", "abc", 3));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fnv),
	    cmocka_unit_test(test_hex),
	    cmocka_unit_test(test_equal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
