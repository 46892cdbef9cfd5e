/*
 * SPDX-License-Identifier: ISC
 *
 * The JSON reader: what is a text and what is not, where an error stands, and
 * what the tree makes of duplicate keys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/json.h"
#include "policy/tree.h"

/* Read a whole text: the last event's type, its place in *ev. */
static enum json_type
read_all(const char *text, size_t len, struct json_event *ev)
{
	struct json j;
	enum json_type type;
	/* A copy of exact size lets the sanitizer see one byte too many. */
	char *copy = malloc(len == 0 ? 1 : len);

	assert_non_null(copy);
	memcpy(copy, text, len);
	assert_int_equal(json_init(&j, copy, len), 0);
	do
		type = json_next(&j, ev);
	while (type != JSON_EOF && type != JSON_ERR);
	assert_int_equal(json_next(&j, ev), type);
	json_free(&j);
	free(copy);
	return type;
}

static void
test_good(void **state)
{
	static const char *const texts[] = {"{}", "[]", " [ ] ", "null",
	    "\t\r\n{\"a\":1}\n", "-0", "0.5e+10", "-12.25E-3",
	    "[1,2,[3,[4,{}]]]", "\"\\u00e9\\ud83d\\ude00\"",
	    "\"\xc3\xa9\xf0\x9f\x98\x80\"", "{\"a\":{\"b\":[true,false]}}",
	    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\x7f\"",
	    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"};
	struct json_event ev;
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (read_all(texts[i], strlen(texts[i]), &ev) != JSON_EOF)
			fail_msg(
			    "%s: %u:%u: %s", texts[i], ev.line, ev.col, ev.s);
}

static void
test_bad(void **state)
{
	static const struct {
		const char *text;
		unsigned line, col;
	} t[] = {
	    {"", 1, 1},
	    {"  ", 1, 3},
	    {"\n\n ", 3, 2},
	    {"{", 1, 2},
	    {"{\"a\"", 1, 5},
	    {"{\"a\":", 1, 6},
	    {"{\"a\":1", 1, 7},
	    {"{\"a\":1,}", 1, 8},
	    {"{\"a\":1,\n}", 2, 1},
	    {"{,}", 1, 2},
	    {"{a:1}", 1, 2},
	    {"{'a':1}", 1, 2},
	    {"{\"a\" 1}", 1, 6},
	    {"{\"a\":1 \"b\":2}", 1, 8},
	    {"{1:2}", 1, 2},
	    {"[1,]", 1, 4},
	    {"[1 2]", 1, 4},
	    {"[1}", 1, 3},
	    {"{\"a\":1]", 1, 7},
	    {"]", 1, 1},
	    {"[1]]", 1, 4},
	    {"{} x", 1, 4},
	    {"{}{}", 1, 3},
	    {"{} // no comment", 1, 4},
	    {"/* no */ {}", 1, 1},
	    {"tru", 1, 1},
	    {"trueish", 1, 5},
	    {"True", 1, 1},
	    {"NaN", 1, 1},
	    {"Infinity", 1, 1},
	    {"-", 1, 2},
	    {"-a", 1, 2},
	    {"+1", 1, 1},
	    {".5", 1, 1},
	    {"01", 1, 2},
	    {"1.", 1, 3},
	    {"1.e1", 1, 3},
	    {"1e", 1, 3},
	    {"0x10", 1, 2},
	    {"\"a", 1, 3},
	    {"\"a\nb\"", 1, 3},
	    {"\"\x01\"", 1, 2},
	    {"\"\t\"", 1, 2},
	    {"\"\\", 1, 3},
	    {"\"\\x41\"", 1, 3},
	    {"\"\\a\"", 1, 3},
	    {"\"\\u12\"", 1, 6},
	    {"\"\\u12g4\"", 1, 6},
	    {"\"\\u0000\"", 1, 8},
	    {"\"\\ud800\"", 1, 8},
	    {"\"\\ud800\\n\"", 1, 9},
	    {"\"\\ud800\\u0041\"", 1, 14},
	    {"\"\\udc00\"", 1, 8},
	    {"\"\\ud800\\ud800\"", 1, 14},
	    {"\xef\xbb\xbf{}", 1, 1}, /* byte order mark */
	    {"\"\x80\"", 1, 2},
	    {"\"\xc3\"", 1, 2},
	    {"\"\xc0\x80\"", 1, 2}, /* overlong */
	    {"\"\xe0\x80\x80\"", 1, 2},
	    {"\"\xed\xa0\x80\"", 1, 2},	    /* surrogate */
	    {"\"\xf4\x90\x80\x80\"", 1, 2}, /* over U+10FFFF */
	    {"\"\xff\"", 1, 2},
	    {"\"\xc3\xa9\xff\"", 1, 3}, /* columns are characters */
	    {"\xc3\xa9", 1, 1},
	    {"[\xc2\xa0]", 1, 2}, /* white space is four bytes only */
	    {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]", 1, 33},
	    {"11111111111111111111111111111111"
	     "111111111111111111111111111111111",
		1, 66},
	};
	struct json_event ev;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(
		    read_all(t[i].text, strlen(t[i].text), &ev), JSON_ERR);
		assert_non_null(ev.s);
		if (ev.line != t[i].line || ev.col != t[i].col)
			fail_msg("%s: %u:%u, not %u:%u: %s", t[i].text, ev.line,
			    ev.col, t[i].line, t[i].col, ev.s);
	}
	assert_int_equal(read_all("{}\0", 3, &ev), JSON_ERR);
	assert_int_equal(read_all("\"a\0b\"", 5, &ev), JSON_ERR);
}

/* What people write that is no JSON is called by its name. */
static void
test_why(void **state)
{
	static const struct {
		const char *text, *why;
	} t[] = {
	    {"", "the text is empty"},
	    {" \n", "the text is empty"},
	    {"{", "the text ends too early"},
	    {"{\"a\": 1", "the text ends too early"},
	    {"{\"a\": [1,", "the text ends too early"},
	    {"// x\n{}", "JSON has no comments"},
	    {"{# x\n}", "JSON has no comments"},
	    {"{\"a\": /* x */ 1}", "JSON has no comments"},
	    {"{\"a\": 1 // x\n}", "JSON has no comments"},
	    {"{} # x", "JSON has no comments"},
	    {"{'a': 1}", "JSON has strings in double quotes only"},
	    {"['a']", "JSON has strings in double quotes only"},
	    {"{\"a\": 1,}", "no comma stands behind the last one"},
	    {"[1, ]", "no comma stands behind the last one"},
	    {"[1}", "',' or ']' is expected"},
	    {"[}", "a value is expected"},
	    {"{a: 1}", "a key in quotes is expected"},
	    {"\xef\xbb\xbf{}",
		"a byte order mark is no JSON: save as UTF-8 without it"},
	    {"\xff\xfe{", "this is no UTF-8: save as UTF-8"},
	    {"{} {}", "something follows the value"},
	};
	struct json_event ev;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_int_equal(
		    read_all(t[i].text, strlen(t[i].text), &ev), JSON_ERR);
		assert_string_equal(ev.s, t[i].why);
	}
}

static void
test_events(void **state)
{
	static const char text[] =
	    "{\n  \"k\": [ \"\\u00e9\\ud83d\\ude00\", -1.5 ],\n  \"e\": {} }";
	static const struct {
		enum json_type type;
		unsigned line, col;
		const char *s;
	} want[] = {
	    {JSON_OBJ, 1, 1, NULL},
	    {JSON_KEY, 2, 3, "k"},
	    {JSON_LIST, 2, 8, NULL},
	    {JSON_STR, 2, 10, "\xc3\xa9\xf0\x9f\x98\x80"},
	    {JSON_NUM, 2, 32, "-1.5"},
	    {JSON_LIST_END, 2, 37, NULL},
	    {JSON_KEY, 3, 3, "e"},
	    {JSON_OBJ, 3, 8, NULL},
	    {JSON_OBJ_END, 3, 9, NULL},
	    {JSON_OBJ_END, 3, 11, NULL},
	    {JSON_EOF, 3, 12, NULL},
	};
	struct json j;
	struct json_event ev;
	size_t i;

	assert_int_equal(json_init(&j, text, sizeof(text) - 1), 0);
	for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		assert_int_equal(json_next(&j, &ev), want[i].type);
		assert_int_equal(ev.line, want[i].line);
		assert_int_equal(ev.col, want[i].col);
		if (want[i].s != NULL)
			assert_string_equal(ev.s, want[i].s);
	}
	json_free(&j);
}

static void
test_tree(void **state)
{
	static const char text[] =
	    "{\"a\":1,\"b\":{\"c\":2,\n\"c\":3},\"a\":4}";
	struct findings f = {0};
	struct node *n = tree_json("f", text, sizeof(text) - 1, &f);

	assert_non_null(n);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.v[0].code, "config.duplicate_key");
	assert_int_equal(f.v[0].line, 2);
	assert_int_equal(f.v[0].col, 1);
	assert_int_equal(f.v[1].line, 2);
	assert_int_equal(f.v[1].col, 8);
	/* The first one counts, the node of the second is marked. */
	assert_string_equal(node_get(n, "a")->s, "1");
	assert_null(node_get(n, "c"));
	assert_string_equal(node_get(node_get(n, "b"), "c")->s, "2");
	tree_free(n);
	findings_clear(&f);
	assert_null(tree_json("f", "{\"a\":[1,{\"b\":", 13, &f));
	assert_int_equal(f.n, 1);
	assert_string_equal(f.v[0].code, "config.syntax");
	findings_clear(&f);
}

/* Too many members of one object are refused before they cost time. */
static void
test_many(void **state)
{
	struct findings f = {0};
	size_t i, len = 1, cap = (TREE_MEMBERS + 2) * 16;
	char *text = malloc(cap);

	assert_non_null(text);
	text[0] = '{';
	for (i = 0; i <= TREE_MEMBERS; i++)
		len += (size_t)snprintf(
		    text + len, cap - len, "%s\"k%zu\":1", i > 0 ? "," : "", i);
	text[len++] = '}';
	assert_null(tree_json("f", text, len, &f));
	assert_string_equal(f.v[0].code, "config.syntax");
	findings_clear(&f);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_why),
	    cmocka_unit_test(test_events),
	    cmocka_unit_test(test_tree),
	    cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
