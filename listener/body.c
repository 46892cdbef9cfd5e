/*
 * SPDX-License-Identifier: ISC
 *
 * JSON bodies by jansson, behind a scan that bounds the depth before anything
 * recurses and defuses numbers that jansson would refuse as a whole.  Pure.
 */
#include "listener/body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "common/hash.h"
#include "common/payload.h"

/* End of the string that starts behind i; len when it has none. */
static size_t
skip_string(const char *s, size_t len, size_t i)
{
	for (; i < len; i++) {
		if (s[i] == '\\')
			i++;
		else if (s[i] == '"')
			return i;
	}
	return len;
}

static int
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* One number token of n bytes: 0 when it is JSON's grammar.  *real: it has a
 * fraction or an exponent; *exp: digits of the exponent. */
static int
number_grammar(const char *s, size_t n, int *real, size_t *exp)
{
	size_t i = s[0] == '-', from;

	*real = 0;
	*exp = 0;
	if (i == n || !is_digit(s[i]))
		return -1;
	if (s[i++] != '0')
		while (i < n && is_digit(s[i]))
			i++;
	if (i < n && s[i] == '.') {
		*real = 1;
		for (from = ++i; i < n && is_digit(s[i]); i++)
			;
		if (i == from)
			return -1;
	}
	if (i < n && (s[i] | 0x20) == 'e') {
		*real = 1;
		if (++i < n && (s[i] == '+' || s[i] == '-'))
			i++;
		for (from = i; i < n && is_digit(s[i]); i++)
			;
		if (i == from)
			return -1;
		*exp = i - from;
	}
	return i == n ? 0 : -1;
}

static int
fits_int64(const char *s, size_t n)
{
	int neg = s[0] == '-';
	int64_t v = 0;
	size_t i;

	for (i = (size_t)neg; i < n; i++)
		if (__builtin_mul_overflow(v, (int64_t)10, &v) ||
		    __builtin_add_overflow(
			v, (int64_t)(neg ? '0' - s[i] : s[i] - '0'), &v))
			return 0;
	return 1;
}

/* A number at i; returns where it ends.  What would not fit becomes a small
 * real of the same length, so that the object as a whole still parses and
 * the one argument is of the wrong type. */
static int
scan_number(char *s, size_t len, size_t *ip)
{
	size_t i = *ip, n, exp;
	int real;

	for (n = i; n < len && (is_digit(s[n]) || strchr("+-.eE", s[n]));)
		n++;
	*ip = n - 1;
	n -= i;
	if (number_grammar(s + i, n, &real, &exp) == -1)
		return -1;
	/* below 10^308: at most 10^198 times 10^99 */
	if (real ? exp >= 3 || n > 200 : n >= 19 && !fits_int64(s + i, n)) {
		memset(s + i, '0', n);
		s[i + 1] = '.';
	}
	return 0;
}

/* 0 when the nesting is bounded and every number is one. */
static int
scan(char *s, size_t len)
{
	size_t i;
	int depth = 0;

	for (i = 0; i < len; i++) {
		switch (s[i]) {
		case '"':
			i = skip_string(s, len, i + 1);
			break;
		case '[':
		case '{':
			if (++depth > BODY_DEPTH)
				return -1;
			break;
		case ']':
		case '}':
			depth--;
			break;
		case '\0':
			return -1;
		default:
			if ((s[i] == '-' || is_digit(s[i])) &&
			    scan_number(s, len, &i) == -1)
				return -1;
		}
	}
	return 0;
}

/* 1 when it is a list of objects that hold strings and integers only. */
static int
is_rows(json_t *v)
{
	size_t i, n = 0;
	const char *key;
	json_t *o, *x;

	json_array_foreach(v, i, o) {
		if (!json_is_object(o))
			return 0;
		n += json_object_size(o) + 1;
		json_object_foreach(o, key, x)
			if (*key == '\0' ||
			    (!json_is_string(x) && !json_is_integer(x)))
				return 0;
	}
	return n > 0 && n <= ABX_MAX_ARGV;
}

/* The type that a list or object travels as. */
static enum arg_type
shape(json_t *v, int nested)
{
	const char *key;
	json_t *x;
	size_t i;

	if (json_is_array(v)) {
		json_array_foreach(v, i, x)
			if (!json_is_string(x))
				return is_rows(v) ? A_ROWS : A_OTHER;
		return A_LIST;
	}
	if (json_object_size(v) > ABX_MAX_ARGV)
		return A_MAP; /* refused as too large there */
	json_object_foreach(v, key, x)
		if (!json_is_string(x))
			return nested ? A_OTHER : A_ARGS;
	return A_MAP;
}

static enum code add_members(
    json_t *, struct args *, int nested, struct body_content *, const char **);

static enum code
fill_list(struct arg *a, const json_t *v)
{
	json_t *x;
	size_t i;

	if (json_array_size(v) > ABX_MAX_ARGV)
		return C_ARGS_TOO_LARGE;
	json_array_foreach(v, i, x)
		if (arg_push(a, json_string_value(x), NULL) == -1)
			return C_SRV_INTERNAL;
	return C_OK;
}

static enum code
fill_map(struct arg *a, json_t *v)
{
	const char *key;
	json_t *x;

	if (json_object_size(v) > ABX_MAX_ARGV)
		return C_ARGS_TOO_LARGE;
	json_object_foreach(v, key, x)
		if (arg_push(a, key, json_string_value(x)) == -1)
			return C_SRV_INTERNAL;
	return C_OK;
}

/* One member of a row, its type in front of the value. */
static int
push_member(struct arg *a, const char *key, const json_t *x)
{
	char num[24], *text;
	size_t len;
	int rc;

	if (json_is_integer(x)) {
		snprintf(num, sizeof(num), "i%lld",
		    (long long)json_integer_value(x));
		return arg_push(a, key, num);
	}
	len = json_string_length(x);
	if ((text = malloc(len + 2)) == NULL)
		return -1;
	text[0] = 's';
	memcpy(text + 1, json_string_value(x), len + 1);
	rc = arg_push(a, key, text);
	freezero(text, len + 2);
	return rc;
}

static enum code
fill_rows(struct arg *a, json_t *v)
{
	const char *key;
	json_t *o, *x;
	size_t i;

	json_array_foreach(v, i, o) {
		json_object_foreach(o, key, x)
			if (push_member(a, key, x) == -1)
				return C_SRV_INTERNAL;
		if (arg_push(a, "", "") == -1)
			return C_SRV_INTERNAL;
	}
	return C_OK;
}

static enum code
fill_other(struct arg *a, const json_t *v)
{
	char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
	int rc = -1;

	if (text != NULL)
		rc = arg_set_str(a, text, strlen(text));
	free(text);
	return rc == -1 ? C_SRV_INTERNAL : C_OK;
}

static enum arg_type
type_of(json_t *v, int nested)
{
	switch (json_typeof(v)) {
	case JSON_STRING:
		return A_STR;
	case JSON_INTEGER:
		return A_INT;
	case JSON_REAL:
		return A_NUM;
	case JSON_TRUE:
	case JSON_FALSE:
		return A_BOOL;
	case JSON_NULL:
		return A_NULL;
	default:
		return shape(v, nested);
	}
}

static enum code
fill(struct arg *a, json_t *v)
{
	switch (a->type) {
	case A_STR:
		return arg_set_str(
			   a, json_string_value(v), json_string_length(v)) == -1
			   ? C_SRV_INTERNAL
			   : C_OK;
	case A_INT:
		a->i = json_integer_value(v);
		return C_OK;
	case A_BOOL:
		a->i = json_is_true(v);
		return C_OK;
	case A_LIST:
		return fill_list(a, v);
	case A_MAP:
		return fill_map(a, v);
	case A_ARGS:
		if ((a->sub = calloc(1, sizeof(*a->sub))) == NULL)
			return C_SRV_INTERNAL;
		return add_members(v, a->sub, 1, NULL, NULL);
	case A_ROWS:
		return fill_rows(a, v);
	case A_OTHER:
		return fill_other(a, v);
	default:
		return C_OK;
	}
}

/* Members "content" and "encoding" of an upload.  1: taken. */
static int
take_content(const char *key, const json_t *v, struct body_content *c,
    const json_t **content, const char **encoding)
{
	if (c == NULL || !json_is_string(v))
		return 0;
	if (strcmp(key, "content") == 0) {
		*content = v;
		return 1;
	}
	if (strcmp(key, "encoding") == 0) {
		*encoding = json_string_value(v);
		return 1;
	}
	return 0;
}

static void
decode_content(const json_t *v, const char *encoding, struct body_content *c)
{
	const char *s = json_string_value(v);
	size_t n = json_string_length(v);
	int len;

	c->kind = ASK_BODY_BAD;
	if ((c->data = malloc(n + 1)) == NULL)
		return;
	if (encoding == NULL || strcmp(encoding, "utf-8") == 0) {
		memcpy(c->data, s, n);
		c->len = n;
	} else if (strcmp(encoding, "base64") == 0) {
		if ((len = base64_decode(s, n, c->data, n + 1)) == -1)
			return;
		c->len = (size_t)len;
	} else
		return;
	c->kind = ASK_BODY_CONTENT;
}

/* Add every member of an object; content is looked for at the top only. */
static enum code
add_members(json_t *obj, struct args *as, int nested, struct body_content *c,
    const char **encoding)
{
	const json_t *content = NULL;
	enum code code;
	const char *key;
	struct arg *a;
	json_t *v;

	json_object_foreach(obj, key, v) {
		if (take_content(key, v, c, &content, encoding))
			continue;
		if (strlen(key) > ABX_ID_MAX)
			return C_ARGS_UNKNOWN;
		if (args_find(as, key) != NULL)
			return C_ARGS_INVALID;
		if (as->n >= ABX_MAX_ARGS)
			return C_ARGS_TOO_LARGE;
		if ((a = args_add(as, key, type_of(v, nested))) == NULL)
			return C_SRV_INTERNAL;
		if ((code = fill(a, v)) != C_OK)
			return code;
	}
	if (content != NULL)
		decode_content(content, *encoding, c);
	return C_OK;
}

enum code
body_parse(char *text, size_t len, struct args *as, struct body_content *c)
{
	const char *encoding = NULL;
	json_error_t err;
	enum code code;
	json_t *obj;

	if (c != NULL)
		memset(c, 0, sizeof(*c));
	if (scan(text, len) == -1)
		return C_REQ_BAD_JSON;
	obj = json_loadb(text, len, JSON_REJECT_DUPLICATES, &err);
	if (obj == NULL)
		return json_error_code(&err) == json_error_out_of_memory
			   ? C_SRV_INTERNAL
			   : C_REQ_BAD_JSON;
	code = C_REQ_BAD_JSON;
	if (json_is_object(obj))
		code = add_members(obj, as, 0, c, &encoding);
	json_decref(obj);
	return code;
}

void
body_content_clear(struct body_content *c)
{
	if (c->data != NULL)
		freezero(c->data, c->len);
	memset(c, 0, sizeof(*c));
}
