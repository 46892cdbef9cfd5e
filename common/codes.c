/*
 * SPDX-License-Identifier: ISC
 *
 * The error codes as a table, and the JSON body that carries one.  Pure.
 */
#include "common/codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct code_row codes[C_COUNT] = {
#define CODE(sym, str, status, type, text) {str, status, type, text},
#include "common/codes.def"
#undef CODE
};

enum code
code_find(const char *s)
{
	int i;

	for (i = 0; i < C_COUNT; i++)
		if (strcmp(codes[i].code, s) == 0)
			return (enum code)i;
	return C_COUNT;
}

/* A member name and string value with JSON escapes; bytes that are not
 * printable ASCII must already be UTF-8. */
static void
put_member(FILE *f, const char *name, const char *value)
{
	const unsigned char *p;

	fprintf(f, "\"%s\":\"", name);
	for (p = (const unsigned char *)value; *p != '\0'; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(f, "\\%c", *p);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(f, "\\u%04x", *p);
		else
			fputc(*p, f);
	}
	fputc('"', f);
}

char *
code_body(enum code c, const char *reqid, const char *op, const char *reason,
    const char *param, const char *details)
{
	const struct code_row *r = &codes[c];
	int bare = c == C_OP_NOT_ENABLED;
	char *out = NULL;
	size_t len;
	FILE *f;

	if ((f = open_memstream(&out, &len)) == NULL)
		return NULL;
	fputc('{', f);
	put_member(f, "error", r->text);
	fputc(',', f);
	put_member(f, "type", r->type);
	fputc(',', f);
	put_member(f, "code", r->code);
	if (!bare && op != NULL && op[0] != '\0') {
		fputc(',', f);
		put_member(f, "op", op);
	}
	fputc(',', f);
	put_member(f, "request_id", reqid);
	if (!bare && details != NULL)
		fprintf(f, ",\"details\":%s", details);
	else if (!bare && (param != NULL || reason != NULL)) {
		fputs(",\"details\":{", f);
		if (param != NULL)
			put_member(f, "param", param);
		if (param != NULL && reason != NULL)
			fputc(',', f);
		if (reason != NULL)
			put_member(f, "reason", reason);
		fputc('}', f);
	}
	fputc('}', f);
	if (ferror(f) | fclose(f)) {
		free(out);
		return NULL;
	}
	return out;
}
