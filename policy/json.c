/*
 * SPDX-License-Identifier: ISC
 *
 * The JSON reader.  Stricter than RFC 8259 in what it leaves open: no byte
 * order mark, no lone surrogate, no NUL in a string, no deep nesting.  Pure.
 */
#include "policy/json.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

int
json_init(struct json *j, const char *data, size_t len)
{
	memset(j, 0, sizeof(*j));
	j->p = data;
	j->end = data + len;
	j->line = j->col = 1;
	j->state = JS_VALUE;
	if (len > JSON_MAX) {
		j->why = "the text is too large";
		j->eline = j->ecol = 1;
		len = 0;
	}
	/* An unescaped string is never longer than its spelling. */
	j->cap = len + 1;
	j->buf = malloc(j->cap);
	return j->buf == NULL ? -1 : 0;
}

void
json_free(struct json *j)
{
	freezero(j->buf, j->cap);
	j->buf = NULL;
}

/* Take one byte and keep count of lines and characters. */
static void
json_step(struct json *j)
{
	unsigned char c = (unsigned char)*j->p++;

	if (c == '\n') {
		j->line++;
		j->col = 1;
	} else if ((c & 0xc0) != 0x80)
		j->col++;
}

/* The byte at hand, -1 at the end. */
static int
json_peek(const struct json *j)
{
	return j->p < j->end ? (unsigned char)*j->p : -1;
}

static int
json_fail(struct json *j, const char *why)
{
	if (j->why == NULL) {
		j->why = why;
		j->eline = j->line;
		j->ecol = j->col;
	}
	return -1;
}

static void
json_space(struct json *j)
{
	int c;

	while ((c = json_peek(j)) == ' ' || c == '\t' || c == '\n' || c == '\r')
		json_step(j);
}

/* Four hex digits after "\u": 0, or -1. */
static int
json_hex4(struct json *j, unsigned *out)
{
	unsigned i, v = 0;
	int c;

	for (i = 0; i < 4; i++) {
		c = json_peek(j);
		if (c >= '0' && c <= '9')
			v = v * 16 + (unsigned)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v * 16 + (unsigned)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'F')
			v = v * 16 + (unsigned)(c - 'A') + 10;
		else
			return json_fail(j, "\\u needs four hex digits");
		json_step(j);
	}
	*out = v;
	return 0;
}

/* A code point as UTF-8 at out; its length. */
static size_t
json_utf8(unsigned v, char *out)
{
	size_t n = 0;

	if (v < 0x80)
		out[n++] = (char)v;
	else if (v < 0x800)
		out[n++] = (char)(0xc0 | v >> 6);
	else if (v < 0x10000) {
		out[n++] = (char)(0xe0 | v >> 12);
		out[n++] = (char)(0x80 | (v >> 6 & 0x3f));
	} else {
		out[n++] = (char)(0xf0 | v >> 18);
		out[n++] = (char)(0x80 | (v >> 12 & 0x3f));
		out[n++] = (char)(0x80 | (v >> 6 & 0x3f));
	}
	if (v >= 0x80)
		out[n++] = (char)(0x80 | (v & 0x3f));
	return n;
}

/* What stands behind "\u": bytes put at out, or 0 after an error. */
static size_t
json_unicode(struct json *j, char *out)
{
	unsigned hi, lo;

	if (json_hex4(j, &hi) == -1)
		return 0;
	if (hi == 0) {
		json_fail(j, "a string holds no NUL");
		return 0;
	}
	if (hi >= 0xdc00 && hi <= 0xdfff) {
		json_fail(j, "a low surrogate stands alone");
		return 0;
	}
	if (hi < 0xd800 || hi > 0xdbff)
		return json_utf8(hi, out);
	if (json_peek(j) == '\\') {
		json_step(j);
		if (json_peek(j) == 'u') {
			json_step(j);
			if (json_hex4(j, &lo) == -1)
				return 0;
			if (lo >= 0xdc00 && lo <= 0xdfff)
				return json_utf8(0x10000 +
						     ((hi - 0xd800) << 10) +
						     (lo - 0xdc00),
				    out);
		}
	}
	json_fail(j, "a high surrogate stands alone");
	return 0;
}

/* What stands behind a backslash: bytes put at out, or 0 after an error. */
static size_t
json_escape(struct json *j, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at;
	int c = json_peek(j);

	if (c == 'u') {
		json_step(j);
		return json_unicode(j, out);
	}
	if (c <= 0 || (at = strchr(from, c)) == NULL) {
		json_fail(j, "unknown escape in a string");
		return 0;
	}
	*out = to[at - from];
	json_step(j);
	return 1;
}

/* One character of several bytes: its length, or 0 after an error. */
static size_t
json_multi(struct json *j, char *out)
{
	unsigned char c = (unsigned char)*j->p;
	size_t i, n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

	if ((size_t)(j->end - j->p) < n || !utf8_valid(j->p, n)) {
		json_fail(j, "the text is not valid UTF-8");
		return 0;
	}
	for (i = 0; i < n; i++) {
		out[i] = *j->p;
		json_step(j);
	}
	return n;
}

/* A string from its opening quote on, into buf: 0 or -1. */
static int
json_string(struct json *j, struct json_event *ev)
{
	size_t n = 0, k;
	int c;

	json_step(j);
	for (;;) {
		c = json_peek(j);
		if (c == -1)
			return json_fail(j, "the string does not end");
		if (c == '"')
			break;
		if (c < 0x20)
			return json_fail(j,
			    "a control character in a string must be escaped");
		if (c == '\\') {
			json_step(j);
			k = json_escape(j, j->buf + n);
		} else if (c >= 0x80)
			k = json_multi(j, j->buf + n);
		else {
			j->buf[n] = (char)c;
			json_step(j);
			k = 1;
		}
		if (k == 0)
			return -1;
		n += k;
	}
	json_step(j);
	j->buf[n] = '\0';
	ev->s = j->buf;
	ev->len = n;
	return 0;
}

/* Digits at hand, at least one: 0 or -1. */
static int
json_digits(struct json *j)
{
	int c = json_peek(j);

	if (c < '0' || c > '9')
		return json_fail(j, "a digit is missing in a number");
	while ((c = json_peek(j)) >= '0' && c <= '9')
		json_step(j);
	return 0;
}

static int
json_number(struct json *j, struct json_event *ev)
{
	const char *start = j->p;
	int c;

	if (json_peek(j) == '-')
		json_step(j);
	if (json_peek(j) == '0') {
		json_step(j);
		if ((c = json_peek(j)) >= '0' && c <= '9')
			return json_fail(j, "a number starts with no 0");
	} else if (json_digits(j) == -1)
		return -1;
	if (json_peek(j) == '.') {
		json_step(j);
		if (json_digits(j) == -1)
			return -1;
	}
	if ((c = json_peek(j)) == 'e' || c == 'E') {
		json_step(j);
		if ((c = json_peek(j)) == '+' || c == '-')
			json_step(j);
		if (json_digits(j) == -1)
			return -1;
	}
	ev->len = (size_t)(j->p - start);
	if (ev->len > JSON_NUM_MAX)
		return json_fail(j, "the number is too long");
	memcpy(j->buf, start, ev->len);
	j->buf[ev->len] = '\0';
	ev->s = j->buf;
	return 0;
}

/* What to say in place of the plain expectation, for what people write that
 * is no JSON. */
static const char *
json_why(const struct json *j, const char *why)
{
	int c = json_peek(j);

	if (c == '#' || c == '/')
		return "JSON has no comments";
	if (c == '\'')
		return "JSON has strings in double quotes only";
	if (j->line == 1 && j->col == 1 && c == 0xef)
		return "a byte order mark is no JSON: save as UTF-8 without it";
	if (j->line == 1 && j->col == 1 && (c == 0xff || c == 0xfe))
		return "this is no UTF-8: save as UTF-8";
	if (c == -1)
		return j->depth == 0 ? "the text is empty"
				     : "the text ends too early";
	return why;
}

/* A word in full: 0 or -1. */
static int
json_word(struct json *j, const char *word)
{
	size_t i, n = strlen(word);

	if ((size_t)(j->end - j->p) < n || memcmp(j->p, word, n) != 0)
		return json_fail(j, "a value is expected");
	for (i = 0; i < n; i++)
		json_step(j);
	return 0;
}

static int
json_open(struct json *j, char c)
{
	if (j->depth == JSON_DEPTH)
		return json_fail(j, "nested too deep");
	j->open[j->depth++] = c;
	j->state = c == '{' ? JS_FIRST_KEY : JS_FIRST_VALUE;
	json_step(j);
	return 0;
}

static enum json_type
json_close(struct json *j)
{
	char c = j->open[--j->depth];

	json_step(j);
	j->state = j->depth > 0 ? JS_SEP : JS_DONE;
	return c == '{' ? JSON_OBJ_END : JSON_LIST_END;
}

static enum json_type
json_value(struct json *j, struct json_event *ev)
{
	enum json_type type;
	int c = json_peek(j), error = 0;

	switch (c) {
	case '{':
		return json_open(j, '{') == -1 ? JSON_ERR : JSON_OBJ;
	case '[':
		return json_open(j, '[') == -1 ? JSON_ERR : JSON_LIST;
	case '"':
		type = JSON_STR;
		error = json_string(j, ev);
		break;
	case 't':
		type = JSON_TRUE;
		error = json_word(j, "true");
		break;
	case 'f':
		type = JSON_FALSE;
		error = json_word(j, "false");
		break;
	case 'n':
		type = JSON_NULL;
		error = json_word(j, "null");
		break;
	default:
		type = JSON_NUM;
		if (c != '-' && (c < '0' || c > '9'))
			error =
			    json_fail(j, json_why(j, "a value is expected"));
		else
			error = json_number(j, ev);
	}
	j->state = j->depth > 0 ? JS_SEP : JS_DONE;
	return error == -1 ? JSON_ERR : type;
}

static enum json_type
json_key(struct json *j, struct json_event *ev)
{
	if (json_peek(j) != '"') {
		json_fail(j, json_why(j, "a key in quotes is expected"));
		return JSON_ERR;
	}
	if (json_string(j, ev) == -1)
		return JSON_ERR;
	json_space(j);
	if (json_peek(j) != ':') {
		json_fail(j, "':' is expected after a key");
		return JSON_ERR;
	}
	json_step(j);
	j->state = JS_VALUE;
	return JSON_KEY;
}

/* After a value inside something: its end, or a comma and what follows. */
static enum json_type
json_sep(struct json *j, struct json_event *ev)
{
	int c = json_peek(j), obj = j->open[j->depth - 1] == '{';

	if (c == (obj ? '}' : ']'))
		return json_close(j);
	if (c != ',') {
		json_fail(j, json_why(j, obj ? "',' or '}' is expected"
					     : "',' or ']' is expected"));
		return JSON_ERR;
	}
	json_step(j);
	json_space(j);
	c = json_peek(j);
	if (c == '}' || c == ']') {
		json_fail(j, "no comma stands behind the last one");
		return JSON_ERR;
	}
	ev->line = j->line;
	ev->col = j->col;
	return obj ? json_key(j, ev) : json_value(j, ev);
}

static enum json_type
json_dispatch(struct json *j, struct json_event *ev)
{
	int c = json_peek(j);

	switch (j->state) {
	case JS_DONE:
		if (c == -1)
			return JSON_EOF;
		json_fail(j, json_why(j, "something follows the value"));
		return JSON_ERR;
	case JS_SEP:
		return json_sep(j, ev);
	case JS_FIRST_KEY:
		return c == '}' ? json_close(j) : json_key(j, ev);
	case JS_FIRST_VALUE:
		return c == ']' ? json_close(j) : json_value(j, ev);
	case JS_VALUE:
		break;
	}
	return json_value(j, ev);
}

enum json_type
json_next(struct json *j, struct json_event *ev)
{
	if (j->why == NULL) {
		json_space(j);
		ev->line = j->line;
		ev->col = j->col;
		ev->s = NULL;
		ev->len = 0;
		ev->type = json_dispatch(j, ev);
	}
	if (j->why != NULL) {
		ev->type = JSON_ERR;
		ev->line = j->eline;
		ev->col = j->ecol;
		ev->s = j->why;
		ev->len = strlen(j->why);
	}
	return ev->type;
}
