/*
 * SPDX-License-Identifier: ISC
 *
 * The strict JSON reader: it takes what jansson takes (and less where it says
 * so), its events written down again are the same events, and an error lies
 * within the text.  Input: the text.
 */
#include <stdlib.h>
#include <string.h>

#include "common/entry.h"
#include "common/hash.h"
#include "common/wire.h"
#include "policy/json.h"
#include "regress/fuzz/fuzz.h"
#include "regress/fuzz/model.h"

#define NUMBER_MAX 18 /* characters of one that jansson can hold, too */

/* All events into *ev, their values into *text (JSON again). */
static enum json_type
events(const char *p, size_t n, struct wbuf *ev, struct wbuf *text)
{
	const char *sep = "";
	struct json_event e;
	enum json_type t;
	struct json j;
	size_t steps = 0;

	CHECK(json_init(&j, p, n) == 0);
	while ((t = json_next(&j, &e)) != JSON_EOF && t != JSON_ERR) {
		CHECK(++steps <= 2 * n);
		CHECK(e.line >= 1 && e.col >= 1 && e.type == t);
		wput_u8(ev, (uint8_t)t);
		if (t != JSON_OBJ_END && t != JSON_LIST_END)
			json_raw_put(text, sep);
		sep = ",";
		switch (t) {
		case JSON_OBJ:
		case JSON_LIST:
			json_raw_put(text, t == JSON_OBJ ? "{" : "[");
			sep = "";
			break;
		case JSON_OBJ_END:
		case JSON_LIST_END:
			json_raw_put(text, t == JSON_OBJ_END ? "}" : "]");
			break;
		case JSON_KEY:
		case JSON_STR:
			CHECK(strlen(e.s) == e.len && utf8_valid(e.s, e.len));
			wput_bytes(ev, e.s, e.len);
			json_str_put(text, e.s, e.len);
			if (t == JSON_KEY)
				sep = ":";
			break;
		case JSON_NUM:
			CHECK(e.len <= JSON_NUM_MAX && strlen(e.s) == e.len);
			wput_bytes(ev, e.s, e.len);
			wput_raw(text, e.s, e.len);
			break;
		default:
			json_raw_put(text, t == JSON_NULL   ? "null"
					   : t == JSON_TRUE ? "true"
							    : "false");
		}
	}
	CHECK(t != JSON_ERR || (e.s != NULL && e.len == strlen(e.s)));
	CHECK(json_next(&j, &e) == t); /* and again */
	json_free(&j);
	return t;
}

/* A number that only its size rules out, for one of the two. */
static int
long_number(const char *s, size_t n)
{
	size_t i, run = 0, exp = 0;

	for (i = 0; i < n; i++) {
		if (s[i] == 0 || strchr("+-.eE0123456789", s[i]) == NULL)
			run = exp = 0;
		else if (++run > NUMBER_MAX || exp > 2)
			return 1;
		else if ((s[i] | 0x20) == 'e' || exp > 0)
			exp++;
	}
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *p = (char *)fuzz_copy(data, size);
	struct wbuf ev, ev2, text, text2;
	enum json_type t;

	wbuf_init(&ev, SIZE_MAX);
	wbuf_init(&ev2, SIZE_MAX);
	wbuf_init(&text, SIZE_MAX);
	wbuf_init(&text2, SIZE_MAX);
	t = events(p, size, &ev, &text);
	if (t == JSON_EOF) {
		CHECK(events((char *)text.p, text.len, &ev2, &text2) == t);
		CHECK(ev.len == ev2.len && memcmp(ev.p, ev2.p, ev.len) == 0);
		CHECK(text.len == text2.len &&
		      memcmp(text.p, text2.p, text.len) == 0);
	}
	/* numbers aside: jansson has bounds of its own for them */
	if (!long_number(p, size))
		CHECK(model_json(p, size, JSON_DEPTH) == (t == JSON_EOF));
	wbuf_free(&ev);
	wbuf_free(&ev2);
	wbuf_free(&text);
	wbuf_free(&text2);
	free(p);
	return 0;
}
