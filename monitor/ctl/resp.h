/*
 * SPDX-License-Identifier: ISC
 *
 * The answers of the service to abxctl, read strictly (RFC 9112): what the
 * service would never send is no answer.  Pure; every byte is hostile.
 */
#ifndef ABX_CTL_RESP_H
#define ABX_CTL_RESP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RESP_HEAD_MAX (16 * 1024)
#define RESP_ETAG_MAX 128

struct resp {
	unsigned status;
	int chunked, has_length; /* exactly one of them, or no body */
	uint64_t length;
	char etag[RESP_ETAG_MAX + 1]; /* "" when there is none */
	int events;		      /* the body is text/event-stream */
	int has_range;		      /* Content-Range: first-last/total */
	uint64_t first, last, total;
};

/* Parse a head: its length with the empty line, 0 when it is not whole yet,
 * -1 when it is none. */
ssize_t resp_parse(const char *, size_t, struct resp *);

/* A body as it arrives. */
enum resp_state {
	RESP_SIZE, /* digits of a chunk's size */
	RESP_SIZE_LF,
	RESP_DATA,
	RESP_DATA_CR,
	RESP_DATA_LF,
	RESP_LAST_CR,
	RESP_LAST_LF,
	RESP_DONE
};
struct resp_body {
	enum resp_state state;
	int chunked;
	int digits;
	uint64_t left; /* of the body, or of the chunk */
};

/* The body behind that head; nobody: a request (HEAD) or status without. */
void resp_body_init(struct resp_body *, const struct resp *, int nobody);
/*
 * Take bytes of the connection: how many were used up, -1 when they are no
 * body.  The content among them is *data and *len (0 when none); whoever calls
 * goes on with the rest until nothing is left or the state is RESP_DONE.
 */
ssize_t resp_body_take(struct resp_body *, const uint8_t *, size_t,
    const uint8_t **data, size_t *len);

#endif
