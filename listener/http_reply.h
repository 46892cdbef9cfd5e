/*
 * SPDX-License-Identifier: ISC
 *
 * Response heads as text.  Pure.
 */
#ifndef LISTENER_HTTP_REPLY_H
#define LISTENER_HTTP_REPLY_H

#include <stddef.h>
#include <stdint.h>

#define REPLY_HEAD_MAX 1024 /* no head is longer */

enum reply_framing {
	REPLY_LENGTH, /* Content-Length: length */
	REPLY_CHUNKED,
	REPLY_UNTIL_CLOSE, /* for HTTP/1.0; implies close */
	REPLY_NO_BODY	   /* 304: neither length nor body */
};

struct reply {
	unsigned status;
	const char *reqid;
	const char *date; /* IMF-fixdate, or NULL */
	const char *type; /* media type, or NULL */
	enum reply_framing framing;
	uint64_t length;
	int close;
	const char *etag;	     /* with its quotes, or NULL */
	int ranges;		     /* say that byte ranges are served */
	uint64_t first, last, total; /* 206; 416 uses total only */
	uint32_t retry_after;	     /* seconds, 0: none */
	int www_auth;		     /* name the scheme (RFC 9110, 11.6.1) */
	int no_retry;		     /* say x-should-retry: false */
};

/* Write the head, empty line included, into out of size bytes.  Its length,
 * or -1 when it does not fit. */
int reply_head(char *out, size_t size, const struct reply *);
/* The reason phrase of a status, never NULL. */
const char *reply_reason(unsigned status);

#endif
