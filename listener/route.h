/*
 * SPDX-License-Identifier: ISC
 *
 * From method and path to an operation, by the rows of ops.def.  Pure.
 */
#ifndef LISTENER_ROUTE_H
#define LISTENER_ROUTE_H

#include <stddef.h>
#include <stdint.h>

#include "common/abx.h"
#include "common/ops.h"

struct route {
	uint16_t op;	 /* index, or OP_NONE */
	uint8_t binding; /* enum op_binding */
	uint8_t rpc;	 /* POST /rpc/<id>, whether that exists or not */
	uint8_t known;	 /* a row of ops.def or an rpc call */
	char name[ABX_ID_MAX + 1]; /* the op's id as asked, may be "" */
	/* what stands for {id} or {session} in the path, "" when nothing does,
	 * and that name; one that is too long is cut, and still too long for
	 * anybody's */
	char id[ABX_ID_MAX + 2];
	char param[16];
};

/* Always fills *r; what does not exist has op OP_NONE and is still asked of
 * the monitor, so that every 404 is the same. */
void route_find(
    const char *method, size_t len, const char *path, struct route *r);

/* Largest body in bytes that such a call may have: max_json, or more where
 * the arguments carry content.  UINT64_MAX for byte streams. */
uint64_t route_body_max(const struct route *, uint64_t max_json);

/* 1 when a content type of n bytes is the wanted one, whatever its parameters.
 */
int media_is(const char *type, size_t n, const char *want);
/* 1 when a call whose body is a byte stream may give it that content type. */
int route_takes(const struct route *, const char *type, size_t n);

#endif
