/*
 * SPDX-License-Identifier: ISC
 *
 * A strict JSON reader (RFC 8259) that hands out one event at a time with its
 * place in the text.  It keeps a bounded stack and one scratch buffer, never
 * recurses, and knows nothing of what the text means; duplicate keys are the
 * tree's business (policy/tree.h).
 */
#ifndef ABX_POLICY_JSON_H
#define ABX_POLICY_JSON_H

#include <stddef.h>

#define JSON_DEPTH 32		      /* open objects and lists */
#define JSON_NUM_MAX 64		      /* characters of a number */
#define JSON_MAX (16UL * 1024 * 1024) /* bytes of a text */

enum json_type {
	JSON_EOF, /* the text held exactly one value */
	JSON_ERR,
	JSON_OBJ,
	JSON_OBJ_END,
	JSON_LIST,
	JSON_LIST_END,
	JSON_KEY,
	JSON_STR,
	JSON_NUM,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL
};

struct json_event {
	enum json_type type;
	unsigned line, col; /* from 1; a column is a character */
	/* KEY and STR: unescaped UTF-8 without NUL; NUM: its spelling; valid
	 * until the next event, NUL-terminated.  ERR: a constant sentence. */
	const char *s;
	size_t len;
};

enum json_state {
	JS_VALUE,
	JS_FIRST_VALUE, /* or the end of the list */
	JS_FIRST_KEY,	/* or the end of the object */
	JS_SEP,		/* comma or end */
	JS_DONE
};

struct json {
	const char *p, *end; /* borrowed */
	unsigned line, col;
	enum json_state state;
	unsigned depth;
	char open[JSON_DEPTH]; /* '{' or '[' */
	char *buf;	       /* owned; wiped, a secret may have passed */
	size_t cap;
	const char *why; /* sticky error */
	unsigned eline, ecol;
};

/* Read len bytes at data, which must outlive the reader.  0, or -1 when out
 * of memory. */
int json_init(struct json *, const char *data, size_t len);
void json_free(struct json *);
/* The next event.  After JSON_ERR and JSON_EOF it is the same again. */
enum json_type json_next(struct json *, struct json_event *);

#endif
