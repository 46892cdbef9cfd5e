/*
 * SPDX-License-Identifier: ISC
 *
 * Raw targets, query arguments, routes, and credentials in a head.
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
#include "common/hash.h"
#include "listener/auth.h"
#include "listener/route.h"
#include "listener/target.h"

static void
test_targets(void **state)
{
	static const struct {
		const char *raw, *path; /* path NULL: refused */
	} t[] = {
	    {"/", "/"},
	    {"/health", "/health"},
	    {"/%68ealth", "/health"},
	    {"/a/", "/a/"},
	    {"/..a/b..", "/..a/b.."},
	    {"/...", "/..."},
	    {"/a?x=//../%2f%2e%5c\\", "/a"},
	    {"/a?", "/a"},
	    {"/a?a?b", "/a"},
	    {"/a%25", "/a%"},
	    {"", NULL},
	    {"*", NULL},
	    {"health", NULL},
	    {"http://127.0.0.1/health", NULL},
	    {"127.0.0.1:80", NULL},
	    {"?a=b", NULL},
	    {"//", NULL},
	    {"//health", NULL},
	    {"/a//b", NULL},
	    {"/a//", NULL},
	    {"/./health", NULL},
	    {"/a/.", NULL},
	    {"/..", NULL},
	    {"/x/../health", NULL},
	    {"/%2e/health", NULL},
	    {"/%2E%2e/health", NULL},
	    {"/a%2eb", NULL},
	    {"/files%2flist", NULL},
	    {"/files%2Flist", NULL},
	    {"/a%5cb", NULL},
	    {"/a%5Cb", NULL},
	    {"/a\\b", NULL},
	    {"/a b", NULL},
	    {"/a\x01", NULL},
	    {"/a\x7f", NULL},
	    {"/\xc3\xa9", NULL},
	    {"/a#b", NULL},
	    {"/a%", NULL},
	    {"/a%4", NULL},
	    {"/a%zz", NULL},
	    {"/a%00", NULL},
	    {"/a?x=%", NULL},
	    {"/a?x=a%4", NULL},
	    {"/a?x=%g0", NULL},
	    {"/a?x=%00", NULL},
	    {"/a?x=a b", NULL},
	    {"/a?x=\xff", NULL},
	    {"/a?x#y", NULL},
	};
	struct uri u;
	size_t i;
	char *raw;

	for (i = 0; i < nitems(t); i++) {
		/* exactly as long as it is, so that a reader over it shows */
		raw = malloc(strlen(t[i].raw) + 1);
		assert_non_null(raw);
		memcpy(raw, t[i].raw, strlen(t[i].raw));
		if (target_split(raw, strlen(t[i].raw), &u) !=
		    (t[i].path == NULL ? C_REQ_BAD_TARGET : C_OK))
			fail_msg("target %s", t[i].raw);
		if (t[i].path != NULL)
			assert_string_equal(u.path, t[i].path);
		free(raw);
	}
}

static void
test_long(void **state)
{
	char *raw = malloc(HTTP_TARGET_MAX + 1);
	struct uri u;

	assert_non_null(raw);
	memset(raw, 'a', HTTP_TARGET_MAX + 1);
	raw[0] = '/';
	assert_int_equal(target_split(raw, HTTP_TARGET_MAX, &u), C_OK);
	assert_string_equal(u.path, "");
	assert_int_equal(target_split(raw, TARGET_PATH_MAX, &u), C_OK);
	assert_string_equal(u.path, "");
	assert_int_equal(target_split(raw, TARGET_PATH_MAX - 1, &u), C_OK);
	assert_int_equal(strlen(u.path), TARGET_PATH_MAX - 1);
	assert_int_equal(
	    target_split(raw, HTTP_TARGET_MAX + 1, &u), C_REQ_BAD_TARGET);
	free(raw);
}

static void
test_query(void **state)
{
	static const struct {
		const char *raw;
		enum code code;
		size_t n;
		const char *name, *value;
	} t[] = {
	    {"/a", C_OK, 0, NULL, NULL},
	    {"/a?", C_OK, 0, NULL, NULL},
	    {"/a?&&", C_OK, 0, NULL, NULL},
	    {"/a?path=x", C_OK, 1, "path", "x"},
	    {"/a?path", C_OK, 1, "path", ""},
	    {"/a?path=", C_OK, 1, "path", ""},
	    {"/a?path=a=b", C_OK, 1, "path", "a=b"},
	    {"/a?path=a+b%20c%2Bd", C_OK, 1, "path", "a b c+d"},
	    {"/a?path=%2e%2F%252e", C_OK, 1, "path", "./%2e"},
	    {"/a?path=bad%FF", C_OK, 1, "path", "bad\xff"},
	    {"/a?p%61th=1&x=2", C_OK, 2, "x", "2"},
	    {"/a?path=1&path=1", C_ARGS_INVALID, 1, NULL, NULL},
	    {"/a?path=1&p%61th=2", C_ARGS_INVALID, 1, NULL, NULL},
	    {"/a?x%FF=1", C_ARGS_UNKNOWN, 0, NULL, NULL},
	};
	struct args as;
	struct arg *a;
	struct uri u;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		memset(&as, 0, sizeof(as));
		assert_int_equal(
		    target_split(t[i].raw, strlen(t[i].raw), &u), C_OK);
		assert_int_equal(target_args(&u, &as), t[i].code);
		assert_int_equal(as.n, t[i].n);
		if (t[i].name != NULL) {
			a = args_find(&as, t[i].name);
			assert_non_null(a);
			assert_int_equal(a->type, A_QUERY);
			assert_string_equal(a->s, t[i].value);
			assert_int_equal(a->len, strlen(t[i].value));
		}
		args_clear(&as);
	}
}

static void
test_many(void **state)
{
	char raw[1024] = "/a?";
	struct args as;
	struct uri u;
	int i;

	for (i = 0; i <= ABX_MAX_ARGS; i++)
		sprintf(raw + strlen(raw), "a%d&", i);
	memset(&as, 0, sizeof(as));
	assert_int_equal(target_split(raw, strlen(raw), &u), C_OK);
	assert_int_equal(target_args(&u, &as), C_ARGS_TOO_LARGE);
	args_clear(&as);
}

static void
test_routes(void **state)
{
	static const struct {
		const char *method, *path;
		uint16_t op;
		int binding, known;
		const char *name;
	} t[] = {
	    {"GET", "/health", OP_core_health, B_QUERY, 1, "core.health"},
	    {"HEAD", "/health", OP_NONE, B_QUERY, 0, ""},
	    {"DELETE", "/health", OP_NONE, B_QUERY, 0, ""},
	    {"get", "/health", OP_NONE, B_QUERY, 0, ""},
	    {"GET", "/health/", OP_NONE, B_QUERY, 0, ""},
	    {"GET", "/files/download-stream", OP_files_download, B_BYTES, 1,
		"files.download"},
	    {"HEAD", "/files/download-stream", OP_files_download, B_BYTES, 1,
		"files.download"},
	    {"GET", "/files/download", OP_files_download, B_QUERY, 1,
		"files.download"},
	    {"PUT", "/files/upload-stream", OP_files_upload, B_BYTES, 1,
		"files.upload"},
	    {"DELETE", "/files", OP_files_delete, B_QUERY, 1, "files.delete"},
	    {"POST", "/rpc/files.list", OP_files_list, B_JSON, 1, "files.list"},
	    {"POST", "/rpc/files.search", OP_files_search, B_JSON, 1,
		"files.search"},
	    {"POST", "/rpc/no.such.op", OP_NONE, B_JSON, 1, "no.such.op"},
	    {"POST", "/rpc/", OP_NONE, B_JSON, 1, ""},
	    {"GET", "/rpc/files.list", OP_NONE, B_QUERY, 0, ""},
	    {"POST", "/files/none", OP_NONE, B_QUERY, 0, ""},
	    {"POST", "", OP_NONE, B_QUERY, 0, ""},
	};
	struct route r;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		route_find(t[i].method, strlen(t[i].method), t[i].path, &r);
		if (r.op != t[i].op || r.binding != t[i].binding ||
		    r.known != t[i].known || strcmp(r.name, t[i].name) != 0)
			fail_msg("%s %s", t[i].method, t[i].path);
	}
	route_find("PUT", 3, "/files/upload-stream", &r);
	assert_true(route_body_max(&r, 100) == UINT64_MAX);
	route_find("POST", 4, "/rpc/files.upload", &r);
	assert_true(route_body_max(&r, 100) == 16 << 20);
	route_find("POST", 4, "/rpc/files.list", &r);
	assert_true(route_body_max(&r, 100) == 100);
	route_find("POST", 4, "/rpc/nothing", &r);
	assert_true(route_body_max(&r, 100) == 100);
}

/* Content types of a stream: that of any, and those of an archive for one. */
static void
test_types(void **state)
{
	static const struct {
		const char *type;
		int upload, import;
	} t[] = {
	    {"application/octet-stream", 1, 1},
	    {"Application/Octet-Stream ; x=y", 1, 1},
	    {"application/x-tar", 0, 1},
	    {"APPLICATION/X-TAR", 0, 1},
	    {"application/x-tar;q=1", 0, 1},
	    {"application/gzip", 0, 1},
	    {"application/gzip\t", 0, 1},
	    {"application/x-tarball", 0, 0},
	    {"application/x-ta", 0, 0},
	    {"application/x-tar, text/plain", 0, 0},
	    {" application/x-tar", 0, 0},
	    {"application/x-gtar", 0, 0},
	    {"application/x-gzip", 0, 0},
	    {"application/zip", 0, 0},
	    {"application/json", 0, 0},
	    {"text/plain", 0, 0},
	    {"*/*", 0, 0},
	    {"", 0, 0},
	};
	struct route upload, import;
	size_t i, n;
	char *type;

	route_find("PUT", 3, "/files/upload-stream", &upload);
	route_find("PUT", 3, "/files/import", &import);
	for (i = 0; i < nitems(t); i++) {
		/* nothing is read beyond it */
		n = strlen(t[i].type);
		assert_non_null(type = malloc(n + 1));
		memcpy(type + 1, t[i].type, n);
		if (route_takes(&upload, type + 1, n) != t[i].upload ||
		    route_takes(&import, type + 1, n) != t[i].import)
			fail_msg("%s", t[i].type);
		free(type);
	}
}

static enum code
extract(const char *fields, char *token)
{
	char buf[2048];
	struct http_head h;
	int n;

	n = snprintf(
	    buf, sizeof(buf), "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
	http_head_init(&h);
	assert_int_equal(
	    http_head_feed(&h, (uint8_t *)buf, (size_t)n, 8192), 1);
	return auth_extract(&h, (uint8_t *)buf, token);
}

static void
test_credentials(void **state)
{
	static const struct {
		const char *fields;
		enum code code;
		const char *token;
	} t[] = {
	    {"", C_OK, ""},
	    {"Authorization: Bearer abc\r\n", C_OK, "abc"},
	    {"Authorization: bEARER   a.b-c_~+/9==\r\n", C_OK, "a.b-c_~+/9=="},
	    {"X-Access-Token: abc\r\n", C_OK, "abc"},
	    {"X-Access-Token: abc\r\nAuthorization: Bearer abc\r\n", C_OK,
		"abc"},
	    {"X-Access-Token: abc\r\nAuthorization: Bearer abd\r\n",
		C_AUTH_CONFLICT, ""},
	    {"X-Access-Token: abc\r\nX-Access-Token: abc\r\n", C_AUTH_CONFLICT,
		""},
	    {"Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
		C_AUTH_CONFLICT, ""},
	    {"Authorization: Basic abc\r\n", C_AUTH_INVALID, ""},
	    {"Authorization: Basic abc\r\nX-Access-Token: abc\r\n",
		C_AUTH_INVALID, ""},
	    {"Authorization: Bearer\r\n", C_AUTH_INVALID, ""},
	    {"Authorization: \r\n", C_AUTH_INVALID, ""},
	    {"Authorization: Bearer a b\r\n", C_AUTH_INVALID, ""},
	    {"Authorization: Bearer a=b\r\n", C_AUTH_INVALID, ""},
	    {"Authorization: Bearer =\r\n", C_AUTH_INVALID, ""},
	    {"Authorization: Bearer \xc3\xa9\r\n", C_AUTH_INVALID, ""},
	    {"X-Access-Token:\r\n", C_AUTH_INVALID, ""},
	};
	char token[ABX_TOKEN_MAX + 1], big[600];
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		if (extract(t[i].fields, token) != t[i].code)
			fail_msg("%s", t[i].fields);
		assert_string_equal(token, t[i].token);
	}
	for (i = ABX_TOKEN_MAX; i <= ABX_TOKEN_MAX + 1; i++) {
		snprintf(
		    big, sizeof(big), "X-Access-Token: %0*d\r\n", (int)i, 0);
		assert_int_equal(extract(big, token),
		    i == ABX_TOKEN_MAX ? C_OK : C_AUTH_INVALID);
	}
}

static void
test_admit(void **state)
{
	struct lconf c;
	uint8_t digest[SHA256_LEN], mac[SHA256_LEN];
	uint32_t known;

	memset(&c, 0, sizeof(c));
	memset(c.hmac_key, 7, sizeof(c.hmac_key));
	sha256("good", 4, digest);
	hmac_sha256(
	    c.hmac_key, sizeof(c.hmac_key), digest, sizeof(digest), mac);
	known = (uint32_t)mac[0] | (uint32_t)mac[1] << 8 |
		(uint32_t)mac[2] << 16 | (uint32_t)mac[3] << 24;
	c.tokens = &known;
	c.ntokens = 1;
	assert_int_equal(auth_admit(&c, "good", 0, 0), C_OK);
	assert_int_equal(auth_admit(&c, "bad", 0, 0), C_AUTH_INVALID);
	assert_int_equal(auth_admit(&c, "bad", 0, 1), C_AUTH_INVALID);
	assert_int_equal(auth_admit(&c, "", 0, 0), C_AUTH_REQUIRED);
	assert_int_equal(auth_admit(&c, "", 1, 0), C_OK);
	assert_int_equal(auth_admit(&c, "bad", 1, 0), C_AUTH_INVALID);
	assert_int_equal(auth_admit(&c, "", 0, 1), C_AUTH_REQUIRED);
	c.anonymous_health = 1;
	assert_int_equal(auth_admit(&c, "", 0, 0), C_AUTH_REQUIRED);
	assert_int_equal(auth_admit(&c, "", 0, 1), C_OK);
	c.anonymous = 1;
	assert_int_equal(auth_admit(&c, "", 0, 0), C_OK);
	assert_int_equal(auth_admit(&c, "bad", 0, 0), C_AUTH_INVALID);
	c.has_auth_exec = 1;
	assert_int_equal(auth_admit(&c, "bad", 0, 0), C_OK);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_targets),
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_query),
	    cmocka_unit_test(test_many),
	    cmocka_unit_test(test_routes),
	    cmocka_unit_test(test_types),
	    cmocka_unit_test(test_credentials),
	    cmocka_unit_test(test_admit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
