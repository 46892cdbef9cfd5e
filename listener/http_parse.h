/*
 * SPDX-License-Identifier: ISC
 *
 * Incremental parser of a request head (RFC 9112) under the strict framing
 * rules of the design.  Pure: it looks at bytes, keeps offsets into them and
 * copies nothing, so the caller may move its buffer between calls.
 */
#ifndef LISTENER_HTTP_PARSE_H
#define LISTENER_HTTP_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "common/codes.h"

#define HTTP_TARGET_MAX 8192 /* bytes of a request target */
#define HTTP_METHOD_MAX 32
/* bytes of a request line that is not looked at any further */
#define HTTP_LINE_MAX (HTTP_METHOD_MAX + 1 + HTTP_TARGET_MAX + 16)
#define HTTP_FIELDS_MAX 64

/* The fields that anybody asks for; others are checked and forgotten. */
enum http_field {
	HF_HOST,
	HF_ORIGIN,
	HF_AUTHORIZATION,
	HF_ACCESS_TOKEN,
	HF_CONTENT_LENGTH,
	HF_TRANSFER_ENCODING,
	HF_CONNECTION,
	HF_EXPECT,
	HF_CONTENT_TYPE,
	HF_ACCEPT,
	HF_RANGE,
	HF_IF_RANGE,
	HF_IF_MATCH,
	HF_IF_NONE_MATCH,
	HF_IDEMPOTENCY_KEY,
	HF_CONTENT_DIGEST,
	HF_FORWARDED_FOR,
	HF_LAST_EVENT_ID,
	HF_COUNT
};

struct http_slice {
	uint32_t off, len; /* into the buffer of the head */
};

struct http_head {
	struct http_slice method, target;
	struct http_slice field[HF_COUNT]; /* value of the last of its name */
	uint8_t seen[HF_COUNT];		   /* how many there were */
	uint8_t minor;			   /* HTTP/1.minor */
	uint8_t chunked;
	uint8_t has_length;
	uint8_t close;	 /* HTTP/1.0 or Connection: close */
	uint8_t expect;	 /* 100-continue */
	uint8_t sse;	 /* Accept names text/event-stream */
	uint64_t length; /* Content-Length, when has_length */
	uint32_t end;	 /* bytes of the whole head */
	enum code code;	 /* what is wrong after -1 */
	/* progress */
	uint32_t pos, scan, fields_at, nfields;
};

void http_head_init(struct http_head *);
/* Go on with the len bytes that there are by now, of which the first ones are
 * those of the calls before.  1: the head is whole; 0: more is needed; -1:
 * refused with code.  max_fields is the bytes of all header lines together. */
int http_head_feed(
    struct http_head *, const uint8_t *buf, size_t len, size_t max_fields);
/* 1 when the slice is that text, ASCII case aside. */
int http_slice_is(
    const uint8_t *buf, const struct http_slice *, const char *text);
/* 1 when a comma-separated list holds that token, ASCII case aside;
 * parameters of an element are ignored. */
int http_list_has(const char *list, size_t len, const char *token);
/* 1 for the tchar of RFC 9110, 5.6.2. */
int http_is_token(uint8_t c);
/* 1 for a byte that may stand in a field value. */
int http_is_value(uint8_t c);

#endif
