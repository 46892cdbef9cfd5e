/*
 * SPDX-License-Identifier: ISC
 *
 * JSON bodies: strictness, depth, the types that members travel as, content.
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
#include "listener/body.h"

static enum code
parse(const char *text, size_t len, struct args *as, struct body_content *c)
{
	char *copy = malloc(len + 1);
	enum code code;

	assert_non_null(copy);
	memcpy(copy, text, len);
	memset(as, 0, sizeof(*as));
	code = body_parse(copy, len, as, c);
	free(copy);
	return code;
}

static void
test_strict(void **state)
{
	static const struct {
		const char *text;
		enum code code;
	} t[] = {
	    {"{}", C_OK},
	    {" {\"a\":1}\r\n", C_OK},
	    {"{\"a\":{\"a\":1}}", C_OK},
	    {"", C_REQ_BAD_JSON},
	    {" ", C_REQ_BAD_JSON},
	    {"{", C_REQ_BAD_JSON},
	    {"[]", C_REQ_BAD_JSON},
	    {"null", C_REQ_BAD_JSON},
	    {"\"x\"", C_REQ_BAD_JSON},
	    {"1", C_REQ_BAD_JSON},
	    {"{} x", C_REQ_BAD_JSON},
	    {"{}{}", C_REQ_BAD_JSON},
	    {"{\"a\":1,}", C_REQ_BAD_JSON},
	    {"{\"a\":1,\"a\":2}", C_REQ_BAD_JSON},
	    {"{\"a\":{\"b\":1,\"b\":1}}", C_REQ_BAD_JSON},
	    {"{\"a\":1,\"\\u0061\":2}", C_REQ_BAD_JSON},
	    {"{\"a\":\"\xff\"}", C_REQ_BAD_JSON},
	    {"{\"a\":\"\xc0\x80\"}", C_REQ_BAD_JSON},
	    {"{\"a\":\"\\ud800\"}", C_REQ_BAD_JSON},
	    {"{\"a\":\"\\u0000\"}", C_REQ_BAD_JSON},
	    {"{\"\\u0000\":1}", C_REQ_BAD_JSON},
	    {"{\"a\":\"\n\"}", C_REQ_BAD_JSON},
	    {"{\"a\":\"", C_REQ_BAD_JSON},
	    {"{\"a\":\"\\", C_REQ_BAD_JSON},
	    {"{'a':1}", C_REQ_BAD_JSON},
	    {"{a:1}", C_REQ_BAD_JSON},
	    {"{\"a\":NaN}", C_REQ_BAD_JSON},
	    {"{\"a\":Infinity}", C_REQ_BAD_JSON},
	    {"{\"a\":01}", C_REQ_BAD_JSON},
	    {"{\"a\":1.}", C_REQ_BAD_JSON},
	    {"{\"a\":.5}", C_REQ_BAD_JSON},
	    {"{\"a\":+1}", C_REQ_BAD_JSON},
	    {"{\"a\":-}", C_REQ_BAD_JSON},
	    {"{\"a\":1e}", C_REQ_BAD_JSON},
	    {"{\"a\":0x10}", C_REQ_BAD_JSON},
	    {"{\"a\":1e+}", C_REQ_BAD_JSON},
	    {"{\"a\":--1}", C_REQ_BAD_JSON},
	    {"\xef\xbb\xbf{}", C_REQ_BAD_JSON},
	    {"{} /* */", C_REQ_BAD_JSON},
	};
	struct args as;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		if (parse(t[i].text, strlen(t[i].text), &as, NULL) != t[i].code)
			fail_msg("row %zu: %s", i, t[i].text);
		args_clear(&as);
	}
	assert_int_equal(parse("{\"a\":\"\0\"}", 9, &as, NULL), C_REQ_BAD_JSON);
	args_clear(&as);
	assert_int_equal(parse("{}\0", 3, &as, NULL), C_REQ_BAD_JSON);
	args_clear(&as);
}

static void
test_depth(void **state)
{
	size_t n = 400000, i;
	char *s = malloc(n * 6);
	struct args as;

	assert_non_null(s);
	memset(s, '[', n);
	assert_int_equal(parse(s, n, &as, NULL), C_REQ_BAD_JSON);
	for (i = 0; i < n; i++)
		memcpy(s + i * 5, "{\"a\":", 5);
	assert_int_equal(parse(s, n * 5, &as, NULL), C_REQ_BAD_JSON);
	for (i = 30; i < 34; i++) {
		memcpy(s, "{\"a\":", 5);
		memset(s + 5, '[', i);
		memset(s + 5 + i, ']', i);
		s[5 + i + i] = '}';
		assert_int_equal(parse(s, 6 + i + i, &as, NULL),
		    i + 1 <= BODY_DEPTH ? C_OK : C_REQ_BAD_JSON);
		args_clear(&as);
	}
	/* brackets in strings do not count */
	memcpy(s, "{\"a\":\"", 6);
	memset(s + 6, '[', 100);
	memcpy(s + 106, "\\\"[\"}", 5);
	assert_int_equal(parse(s, 111, &as, NULL), C_OK);
	args_clear(&as);
	free(s);
}

static void
test_types(void **state)
{
	static const struct {
		const char *text;
		enum arg_type type;
		int64_t i;
		const char *s;
		size_t n;
	} t[] = {
	    {"\"x\"", A_STR, 0, "x", 0},
	    {"\"\\u00e9\"", A_STR, 0, "\xc3\xa9", 0},
	    {"\"\"", A_STR, 0, "", 0},
	    {"0", A_INT, 0, NULL, 0},
	    {"-0", A_INT, 0, NULL, 0},
	    {"-5", A_INT, -5, NULL, 0},
	    {"9223372036854775807", A_INT, INT64_MAX, NULL, 0},
	    {"-9223372036854775808", A_INT, INT64_MIN, NULL, 0},
	    {"9223372036854775808", A_NUM, 0, NULL, 0},
	    {"-9223372036854775809", A_NUM, 0, NULL, 0},
	    {"99999999999999999999999999999999999999", A_NUM, 0, NULL, 0},
	    {"1.0", A_NUM, 0, NULL, 0},
	    {"1e2", A_NUM, 0, NULL, 0},
	    {"1e999", A_NUM, 0, NULL, 0},
	    {"-1E-9999", A_NUM, 0, NULL, 0},
	    {"true", A_BOOL, 1, NULL, 0},
	    {"false", A_BOOL, 0, NULL, 0},
	    {"null", A_NULL, 0, NULL, 0},
	    {"[]", A_LIST, 0, NULL, 0},
	    {"[\"a\",\"b\",\"c\"]", A_LIST, 0, NULL, 3},
	    {"[\"a\",1]", A_OTHER, 0, "[\"a\",1]", 0},
	    {"[[ \"a\" ]]", A_OTHER, 0, "[[\"a\"]]", 0},
	    {"{}", A_MAP, 0, NULL, 0},
	    {"{\"k\":\"v\"}", A_MAP, 0, NULL, 1},
	    {"{\"k\":1}", A_ARGS, 0, NULL, 0},
	};
	char text[256];
	struct args as;
	struct arg *a;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		snprintf(text, sizeof(text), "{\"a\":%s}", t[i].text);
		assert_int_equal(parse(text, strlen(text), &as, NULL), C_OK);
		a = args_find(&as, "a");
		assert_non_null(a);
		if (a->type != t[i].type || a->i != t[i].i || a->n != t[i].n)
			fail_msg("%s: type %d", t[i].text, a->type);
		if (t[i].s != NULL)
			assert_string_equal(a->s, t[i].s);
		args_clear(&as);
	}
}

static void
test_nested(void **state)
{
	static const char text[] =
	    "{\"op\":\"x\",\"args\":{\"env\":{\"A\":\"b\"},\"n\":3,"
	    "\"deep\":{\"x\":1},\"argv\":[\"a\"]}}";
	struct args as;
	struct args *sub;
	struct wbuf w;
	struct rbuf r;

	assert_int_equal(parse(text, sizeof(text) - 1, &as, NULL), C_OK);
	sub = args_find(&as, "args")->sub;
	assert_non_null(sub);
	assert_int_equal(args_find(sub, "env")->type, A_MAP);
	assert_string_equal(args_find(sub, "env")->vals[0], "b");
	assert_int_equal(args_find(sub, "n")->i, 3);
	assert_int_equal(args_find(sub, "deep")->type, A_OTHER);
	assert_int_equal(args_find(sub, "argv")->type, A_LIST);
	/* what is made here can be sent */
	wbuf_init(&w, 4096);
	args_put(&w, &as);
	args_clear(&as);
	rbuf_init(&r, w.p, w.len);
	assert_int_equal(args_get(&r, &as), 0);
	args_clear(&as);
	wbuf_free(&w);
}

static void
test_bounds(void **state)
{
	char *s = malloc(1 << 20);
	struct args as;
	size_t n, i;

	assert_non_null(s);
	for (n = ABX_MAX_ARGS; n <= ABX_MAX_ARGS + 1; n++) {
		strcpy(s, "{");
		for (i = 0; i < n; i++)
			sprintf(
			    s + strlen(s), "%s\"a%zu\":1", i > 0 ? "," : "", i);
		strcat(s, "}");
		assert_int_equal(parse(s, strlen(s), &as, NULL),
		    n == ABX_MAX_ARGS ? C_OK : C_ARGS_TOO_LARGE);
		args_clear(&as);
	}
	for (n = ABX_MAX_ARGV; n <= ABX_MAX_ARGV + 1; n++) {
		strcpy(s, "{\"a\":[");
		for (i = 0; i < n; i++)
			memcpy(s + 6 + i * 4, "\"x\",", 5);
		memcpy(s + 6 + n * 4 - 1, "]}", 3);
		assert_int_equal(parse(s, strlen(s), &as, NULL),
		    n == ABX_MAX_ARGV ? C_OK : C_ARGS_TOO_LARGE);
		args_clear(&as);
	}
	for (n = ABX_ID_MAX; n <= ABX_ID_MAX + 1; n++) {
		sprintf(s, "{\"%0*d\":1}", (int)n, 0);
		assert_int_equal(parse(s, strlen(s), &as, NULL),
		    n == ABX_ID_MAX ? C_OK : C_ARGS_UNKNOWN);
		args_clear(&as);
	}
	free(s);
}

static void
test_content(void **state)
{
	static const struct {
		const char *text;
		int kind;
		const char *data;
		size_t len, left; /* left: arguments that stay */
	} t[] = {
	    {"{\"path\":\"x\"}", ASK_BODY_NONE, "", 0, 1},
	    {"{\"content\":\"\"}", ASK_BODY_CONTENT, "", 0, 0},
	    {"{\"content\":\"\\u00e9\",\"path\":\"x\"}", ASK_BODY_CONTENT,
		"\xc3\xa9", 2, 1},
	    {"{\"encoding\":\"utf-8\",\"content\":\"a\"}", ASK_BODY_CONTENT,
		"a", 1, 0},
	    {"{\"content\":\"/wA=\",\"encoding\":\"base64\"}", ASK_BODY_CONTENT,
		"\xff\0", 2, 0},
	    {"{\"content\":\"\",\"encoding\":\"base64\"}", ASK_BODY_CONTENT, "",
		0, 0},
	    {"{\"content\":\"/wA\",\"encoding\":\"base64\"}", ASK_BODY_BAD, "",
		0, 0},
	    {"{\"content\":\"a\",\"encoding\":\"latin1\"}", ASK_BODY_BAD, "", 0,
		0},
	    {"{\"encoding\":\"latin1\"}", ASK_BODY_NONE, "", 0, 0},
	    {"{\"content\":5}", ASK_BODY_NONE, "", 0, 1},
	    {"{\"content\":\"a\",\"encoding\":1}", ASK_BODY_CONTENT, "a", 1, 1},
	};
	struct body_content c;
	struct args as;
	size_t i;

	for (i = 0; i < nitems(t); i++) {
		assert_int_equal(
		    parse(t[i].text, strlen(t[i].text), &as, &c), C_OK);
		if (c.kind != t[i].kind || as.n != t[i].left ||
		    c.len != t[i].len)
			fail_msg("row %zu: kind %d", i, c.kind);
		if (c.kind == ASK_BODY_CONTENT)
			assert_memory_equal(c.data, t[i].data, c.len);
		args_clear(&as);
		body_content_clear(&c);
	}
	/* nested content is an argument like any other */
	assert_int_equal(
	    parse("{\"a\":{\"content\":\"x\",\"n\":1}}", 27, &as, &c), C_OK);
	assert_int_equal(c.kind, ASK_BODY_NONE);
	assert_non_null(args_find(args_find(&as, "a")->sub, "content"));
	args_clear(&as);
}

/* However large a number is, it is one argument of the wrong type and not a
 * body that is no JSON. */
static void
test_long_numbers(void **state)
{
	static const char *const tails[] = {
	    "", "e99", "E-99", ".5e+99", "e308"};
	char text[600];
	struct args as;
	size_t n, k, len;

	for (n = 20; n < 400; n++)
		for (k = 0; k < nitems(tails); k++) {
			len = (size_t)snprintf(text, sizeof(text), "{\"a\":");
			memset(text + len, '9', n);
			snprintf(text + len + n, sizeof(text) - len - n, "%s}",
			    tails[k]);
			assert_int_equal(
			    parse(text, strlen(text), &as, NULL), C_OK);
			assert_int_equal(as.v[0].type, A_NUM);
			args_clear(&as);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_strict),
	    cmocka_unit_test(test_depth),
	    cmocka_unit_test(test_types),
	    cmocka_unit_test(test_long_numbers),
	    cmocka_unit_test(test_nested),
	    cmocka_unit_test(test_bounds),
	    cmocka_unit_test(test_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
