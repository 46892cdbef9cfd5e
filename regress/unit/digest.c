/*
 * SPDX-License-Identifier: ISC
 *
 * Content-Digest values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/abx.h"
#include "listener/digest.h"

/* SHA-256 of nothing. */
#define NONE "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="

static void
test_values(void **state)
{
	static const struct {
		const char *text;
		int want;
	} t[] = {
	    {"sha-256=:" NONE ":", 1},
	    {" sha-256=:" NONE ":\t", 1},
	    {"sha-512=:AAAA:, sha-256=:" NONE ":", 1},
	    {"sha-256=:" NONE ":;q=1,sha-512=:AAAA:", 1},
	    {"sha-512=:AAAA:", 0},
	    {"unixsum=::", 0},
	    {"", -1},
	    {",", -1},
	    {"sha-256", -1},
	    {"sha-256=", -1},
	    {"sha-256=:", -1},
	    {"sha-256=" NONE, -1},
	    {"sha-256=:" NONE, -1},
	    {"sha-256=:AAAA:", -1},
	    {"sha-256=:" NONE "AAAA:", -1},
	    {"sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=:", -1},
	    {"SHA-256=:" NONE ":", -1},
	    {"sha-256=:" NONE ":,", -1},
	    {"sha-256=:" NONE ":x", -1},
	};
	uint8_t want[SHA256_LEN], got[SHA256_LEN];
	size_t i;
	int rc;

	sha256("", 0, want);
	for (i = 0; i < nitems(t); i++) {
		memset(got, 0, sizeof(got));
		rc = digest_parse(t[i].text, strlen(t[i].text), got);
		if (rc != t[i].want)
			fail_msg("%s: %d", t[i].text, rc);
		if (rc == 1)
			assert_memory_equal(got, want, sizeof(want));
	}
}

static void
test_pieces(void **state)
{
	uint8_t whole[SHA256_LEN], parts[SHA256_LEN];
	struct sha256_ctx *c;

	sha256("abcdef", 6, whole);
	assert_non_null(c = sha256_new());
	sha256_add(c, "abc", 3);
	sha256_add(c, "", 0);
	sha256_add(c, "def", 3);
	sha256_end(c, parts);
	assert_memory_equal(whole, parts, sizeof(whole));
	sha256_end(NULL, NULL);
	sha256_end(sha256_new(), NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_values),
	    cmocka_unit_test(test_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
