/*
 * SPDX-License-Identifier: ISC
 *
 * A JSON body to arguments whose types are those of the text.  Pure.
 */
#ifndef LISTENER_BODY_H
#define LISTENER_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "common/args.h"
#include "common/codes.h"

#define BODY_DEPTH 32

/* The content of an upload by JSON, taken out of the arguments. */
struct body_content {
	uint8_t kind;  /* enum ask_body: NONE, CONTENT or BAD */
	uint8_t *data; /* owned; the decoded bytes of CONTENT */
	size_t len;
};

/*
 * Parse one strict JSON object (RFC 8259: no duplicate names, no NUL, depth
 * BODY_DEPTH) and add its members to args.  text is changed in place where a
 * number has no place in 64 bits; it becomes some other number, which the
 * schema refuses as well.  With content not NULL the string members "content"
 * and "encoding" go there instead ("utf-8" or "base64").
 *
 * C_OK, C_REQ_BAD_JSON, C_ARGS_UNKNOWN (a name no operation can have),
 * C_ARGS_INVALID (already in args), C_ARGS_TOO_LARGE, C_SRV_INTERNAL.  On
 * failure args and content may be half filled.
 */
enum code body_parse(
    char *text, size_t len, struct args *, struct body_content *content);
void body_content_clear(struct body_content *);

#endif
