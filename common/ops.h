/*
 * SPDX-License-Identifier: ISC
 *
 * The catalogue of operations as tables, made from ops.def.  Constant data
 * only; who may call an operation is not known here.
 */
#ifndef ABX_OPS_H
#define ABX_OPS_H

#include <stddef.h>
#include <stdint.h>

enum op_effect {
	E_READ = 1,
	E_WRITE = 2,
	E_DELETE = 4,
	E_EXEC = 8,
	E_NET = 16,
	E_ADMIN = 32
};
/* Archives: what files.export answers with, and files.import takes. */
#define TYPE_TAR "application/x-tar"
#define TYPE_TAR_GZ "application/gzip"

/* What flows besides one JSON answer. */
enum op_stream {
	S_NONE,	 /* nothing */
	S_LIST,	 /* entry frames from pathd, rendered as JSON */
	S_FILE,	 /* a regular file's descriptor */
	S_PUT,	 /* request body into a pipe */
	S_RUN,	 /* run frames from execd */
	S_BYTES, /* bytes from a pipe */
	S_SSE	 /* events */
};
/* Scope kinds besides "paths", which follows from path parameters. */
enum op_needs { N_COMMANDS = 1, N_URLS = 2, N_AGENT = 4 };
/* OF_TREE: looks at more than the paths it names. */
enum op_flag { OF_LATER = 1, OF_EXPLICIT = 2, OF_TREE = 4 };
enum op_limit {
	L_BYTES = 1,
	L_ENTRIES = 2,
	L_TIMEOUT = 4,
	L_OUTPUT = 8,
	L_CPU = 16,
	L_MEMORY = 32,
	L_PROCS = 64
};
enum op_ptype {
	T_STR,	 /* string */
	T_INT,	 /* integer >= 0 */
	T_LIMIT, /* integer >= 1, clamped to the effective limit */
	T_BOOL,
	T_PATH, /* bytes without NUL; NAME_base64 gives the same in JSON */
	T_PATHLIST,
	T_STRLIST,
	T_STRMAP, /* object of strings */
	T_OBJ,	  /* object of arguments (core.check) */
	T_JSON	  /* any value, checked by its operation */
};
/* R_CWD: resolved through the command scope's cwd, not through "paths". */
enum op_role { R_READ = 1, R_WRITE = 2, R_DELETE = 4, R_CWD = 8 };
enum op_pflag { PF_REQ = 1 };
enum op_binding {
	B_QUERY, /* arguments in the query */
	B_JSON,	 /* arguments in a JSON body */
	B_BYTES	 /* arguments in the query, the body or the answer is bytes */
};

struct op_param {
	const char *name; /* NULL ends the list */
	enum op_ptype type;
	unsigned roles;
	unsigned flags;
};

struct op {
	const char *id;
	unsigned effects;
	enum op_stream stream;
	unsigned needs;
	unsigned flags;
	unsigned limits;
	const char *help;
	const struct op_param *params;
};

struct op_route {
	uint16_t op;
	const char *method;
	const char *path;
	enum op_binding binding;
};

/* Indices of the rows, OP_files_list and so on. */
enum op_index {
#define OP(sym, id, e, s, n, f, l, h) OP_##sym,
#define P(n, t, r, f)
#define END
#define ROUTE(sym, m, p, b)
#include "common/ops.def"
#undef OP
#undef P
#undef END
#undef ROUTE
	OP_COUNT
};
#define OP_NONE 0xffff /* no such operation */

extern const struct op ops[OP_COUNT];
extern const struct op_route op_routes[];
extern const size_t op_nroutes;

/* Index of an id, OP_NONE when unknown. */
uint16_t op_find(const char *id);
/* Whether a GET may ask for it: what does can be repeated as it is. */
int op_has_get(uint16_t op);
/* The parameter of that name, or NULL. */
const struct op_param *op_param_find(const struct op *, const char *name);
/* 1 when only a rule that names the exact id mounts it. */
int op_explicit_only(const struct op *);
/* Names of the bits for printing: one effect's name, NULL past the end. */
const char *op_effect_name(unsigned bit);

#endif
