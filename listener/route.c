/*
 * SPDX-License-Identifier: ISC
 *
 * Routes.  Nothing is listed here; ops.def is the only list.  Pure.
 */
#include "listener/route.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* JSON that carries content or stdin (design: http.max_request_bytes). */
#define CONTENT_JSON_MAX (16 * 1024 * 1024)

static int
method_is(const char *method, size_t len, const char *want)
{
	return strlen(want) == len && memcmp(method, want, len) == 0;
}

static void
find_rpc(const char *id, struct route *r)
{
	r->rpc = 1;
	r->known = 1;
	r->binding = B_JSON;
	strlcpy(r->name, id, sizeof(r->name));
	/* One that a later version brings is asked about, too: a rule may deny
	 * it, and nothing can allow it. */
	r->op = op_find(id);
}

/* 1 when the path is that of the row; its {id} is kept then. */
static int
path_is(const char *want, const char *path, struct route *r)
{
	const char *brace = strchr(want, '{'), *end;
	size_t before, n;

	if (brace == NULL)
		return strcmp(want, path) == 0;
	end = brace + strcspn(brace, "}");
	before = (size_t)(brace - want);
	if (strncmp(want, path, before) != 0)
		return 0;
	path += before;
	n = strcspn(path, "/");
	if (n == 0 || strcmp(end + 1, path + n) != 0)
		return 0;
	snprintf(r->param, sizeof(r->param), "%.*s", (int)(end - brace - 1),
	    brace + 1);
	if (n >= sizeof(r->id))
		n = sizeof(r->id) - 1;
	memcpy(r->id, path, n);
	r->id[n] = '\0';
	return 1;
}

void
route_find(const char *method, size_t len, const char *path, struct route *r)
{
	const struct op_route *o;
	size_t i;

	memset(r, 0, sizeof(*r));
	r->op = OP_NONE;
	r->binding = B_QUERY;
	if (strncmp(path, "/rpc/", 5) == 0 && method_is(method, len, "POST")) {
		find_rpc(path + 5, r);
		return;
	}
	for (i = 0; i < op_nroutes; i++) {
		o = &op_routes[i];
		if (method_is(method, len, o->method) &&
		    path_is(o->path, path, r)) {
			r->op = o->op;
			r->binding = (uint8_t)o->binding;
			r->known = 1;
			strlcpy(r->name, ops[o->op].id, sizeof(r->name));
			return;
		}
	}
}

uint64_t
route_body_max(const struct route *r, uint64_t max_json)
{
	const struct op *op;

	if (r->op == OP_NONE)
		return max_json;
	op = &ops[r->op];
	if (r->binding == B_BYTES)
		return op->stream == S_PUT ? UINT64_MAX : max_json;
	if ((op_param_find(op, "content") != NULL ||
		op_param_find(op, "stdin") != NULL ||
		op_param_find(op, "data") != NULL) &&
	    max_json < CONTENT_JSON_MAX)
		return CONTENT_JSON_MAX;
	return max_json;
}

int
media_is(const char *type, size_t n, const char *want)
{
	size_t len = strlen(want);

	if (n < len || strncasecmp(type, want, len) != 0)
		return 0;
	while (len < n && (type[len] == ' ' || type[len] == '\t'))
		len++;
	return len == n || type[len] == ';';
}

int
route_takes(const struct route *r, const char *type, size_t n)
{
	if (media_is(type, n, "application/octet-stream"))
		return 1;
	/* what was exported goes back as it came; "format" says which it is */
	return r->op == OP_files_import &&
	       (media_is(type, n, TYPE_TAR) || media_is(type, n, TYPE_TAR_GZ));
}
