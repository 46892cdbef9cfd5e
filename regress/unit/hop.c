/*
 * SPDX-License-Identifier: ISC
 *
 * Who really called: tables of peers, values and what may be believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "listener/hop.h"

static const struct {
	const char *peer, *value, *want; /* NULL: nobody but the peer */
} rows[] = {
    {"127.0.0.1", "203.0.113.9", "203.0.113.9"},
    {"127.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"},
    {"127.0.0.1", "203.0.113.9, 10.1.2.3", "203.0.113.9"},
    {"127.0.0.1", "203.0.113.9,10.1.2.3 ,\t10.255.0.1", "203.0.113.9"},
    {"127.0.0.1", "10.1.2.3, 10.1.2.4", "10.1.2.3"},
    {"127.0.0.1", "203.0.113.9:4711", "203.0.113.9"},
    {"127.0.0.1", "[2001:DB8::1]:80", "2001:db8::1"},
    {"127.0.0.1", "2001:db8:0::0:1", "2001:db8::1"},
    {"fd00::1", "203.0.113.9", "203.0.113.9"},
    {"fd01::1", "203.0.113.9", NULL},
    {"11.0.0.1", "203.0.113.9", NULL},
    {"unix", "203.0.113.9", NULL},
    {"127.0.0.1", "", NULL},
    {"127.0.0.1", "203.0.113.9, ", NULL},
    {"127.0.0.1", "203.0.113.9, unknown", NULL},
    {"127.0.0.1", "203.0.113.9, unknown, 10.1.2.3", NULL},
    {"127.0.0.1", "[2001:db8::1", NULL},
    {"127.0.0.1", "203.0.113.9203.0.113.9203.0.113.9203.0.113.9203.0.113.9",
	NULL},
};

static void
test_rows(void **state)
{
	struct strlist trusted = {0};
	char out[HOP_SIZE];
	size_t i;
	int got;

	assert_int_equal(strlist_add(&trusted, "127.0.0.1", 9), 0);
	assert_int_equal(strlist_add(&trusted, "10.0.0.0/8", 10), 0);
	assert_int_equal(strlist_add(&trusted, "fd00::/16", 9), 0);
	for (i = 0; i < nitems(rows); i++) {
		got = hop_client(rows[i].peer, rows[i].value,
		    strlen(rows[i].value), &trusted, out);
		if (got != (rows[i].want != NULL))
			fail_msg("row %zu: got %d", i, got);
		if (got)
			assert_string_equal(out, rows[i].want);
	}
	strlist_clear(&trusted);
}

static void
test_prefixes(void **state)
{
	static const struct {
		const char *entry, *addr;
		int want;
	} t[] = {
	    {"192.0.2.128/25", "192.0.2.129", 1},
	    {"192.0.2.128/25", "192.0.2.127", 0},
	    {"0.0.0.0/0", "203.0.113.1", 1},
	    {"0.0.0.0/0", "::1", 0},
	    {"192.0.2.1/33", "192.0.2.1", 0},
	    {"192.0.2.1/", "192.0.2.1", 0},
	    {"nonsense", "192.0.2.1", 0},
	};
	struct strlist l = {0};
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		assert_int_equal(
		    strlist_add(&l, t[i].entry, strlen(t[i].entry)), 0);
		assert_int_equal(hop_trusted(t[i].addr, &l), t[i].want);
		strlist_clear(&l);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_rows),
	    cmocka_unit_test(test_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
