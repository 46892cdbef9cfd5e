/*
 * SPDX-License-Identifier: ISC
 *
 * Arguments of a call as they travel from listener to monitor: a list of
 * named values whose types are those of the text they came from, not those of
 * the operation.  The listener does not judge them; policy/ checks them
 * against ops.def.
 */
#ifndef ABX_ARGS_H
#define ABX_ARGS_H

#include "common/abx.h"
#include "common/wire.h"

enum arg_type {
	A_STR = 1, /* JSON string: UTF-8 without NUL */
	A_QUERY,   /* query value: bytes without NUL, typed by the schema */
	A_INT,	   /* JSON integer that fits int64 */
	A_NUM,	   /* any other JSON number; no value kept */
	A_BOOL,
	A_NULL,
	A_LIST,	 /* list of strings, nothing else in it (may be empty) */
	A_MAP,	 /* object of strings; an empty object is A_MAP */
	A_ARGS,	 /* object with other values: nested arguments */
	A_OTHER, /* a list with other values; its JSON text is kept as string */
	A_ROWS /* list of objects of strings and integers: n keys, and n values
		* with 's' or 'i' in front; an empty key ends a row */
};

struct arg {
	char *name; /* owned, UTF-8, at most 128 bytes */
	enum arg_type type;
	int64_t i;   /* A_INT, A_BOOL */
	char *s;     /* A_STR, A_QUERY, A_OTHER: owned, NUL-terminated */
	size_t len;  /* bytes of s */
	char **list; /* A_LIST: n strings; A_MAP, A_ROWS: n keys */
	char **vals; /* A_MAP, A_ROWS: n values */
	size_t n;
	struct args *sub; /* A_ARGS */
};

struct args {
	struct arg *v;
	size_t n;
};

/* Free the contents (wiped) and make it empty. */
void args_clear(struct args *);
/* Add an empty argument of that name (copied); NULL when out of memory or
 * when there are ABX_MAX_ARGS already.  Pointers to earlier ones are no longer
 * good then. */
struct arg *args_add(struct args *, const char *name, enum arg_type);
/* The argument of that name, or NULL. */
struct arg *args_find(const struct args *, const char *name);
/* Encode.  Errors stick in the writer. */
void args_put(struct wbuf *, const struct args *);
/* Decode, bounded (names unique, counts within abx.h, nesting at most 1);
 * 0 or -1.  On failure *args is empty. */
int args_get(struct rbuf *, struct args *);
/* One wiped-on-clear string into an argument: 0 or -1. */
int arg_set_str(struct arg *, const char *, size_t len);
/* Append to A_LIST (val NULL) or A_MAP: 0 or -1. */
int arg_push(struct arg *, const char *key, const char *val);

#endif
