/*
 * SPDX-License-Identifier: ISC
 *
 * The codes of codes.def and the error body that carries them.
 */
#ifndef ABX_CODES_H
#define ABX_CODES_H

#include <stddef.h>
#include <stdint.h>

enum code {
#define CODE(sym, str, status, type, text) C_##sym,
#include "common/codes.def"
#undef CODE
	C_COUNT
};

struct code_row {
	const char *code;
	uint16_t status;
	const char *type;
	const char *text;
};
extern const struct code_row codes[C_COUNT];

/* The code of that spelling, or C_COUNT. */
enum code code_find(const char *);

/*
 * The error body of page "errors" of abx-http(7) as a new JSON string (free),
 * NULL when out of memory.  op, reason and param may be NULL; details_json is
 * a JSON object's text or NULL and replaces the one made of param.  404
 * op.not_enabled never shows op or details, whatever is passed.
 */
char *code_body(enum code, const char *request_id, const char *op,
    const char *reason, const char *param, const char *details_json);

#endif
