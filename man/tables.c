/*
 * SPDX-License-Identifier: ISC
 *
 * Prints the tables of abx-http(7) from the catalogues: "tables ops" the
 * operations that are there, "tables codes" the error codes.  Run by
 * man/http.sh; part of no program.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "common/abx.h"
#include "common/codes.h"
#include "common/ops.h"

static const char *const types[] = {
    [T_STR] = "string",
    [T_INT] = "integer",
    [T_LIMIT] = "integer",
    [T_BOOL] = "boolean",
    [T_PATH] = "path",
    [T_PATHLIST] = "list of paths",
    [T_STRLIST] = "list of strings",
    [T_STRMAP] = "object of strings",
    [T_OBJ] = "object",
    [T_JSON] = "list",
};

static const char *const bindings[] = {
    [B_QUERY] = "query", [B_JSON] = "JSON", [B_BYTES] = "query, bytes"};

static void
print_param(const struct op_param *p)
{
	printf(".It Ic %s No (%s%s%s%s%s%s)\n", p->name, types[p->type],
	    (p->roles & R_READ) != 0 ? ", read" : "",
	    (p->roles & R_WRITE) != 0 ? ", written" : "",
	    (p->roles & R_DELETE) != 0 ? ", removed" : "",
	    (p->roles & R_CWD) != 0 ? ", in the command scope" : "",
	    (p->flags & PF_REQ) != 0 ? "; required" : "");
}

static void
print_op(uint16_t i)
{
	const struct op *o = &ops[i];
	const struct op_param *p;
	unsigned bit;
	size_t k;

	printf(".It Li %s\n%s.\nEffects:", o->id, o->help);
	for (bit = 1; bit <= E_ADMIN; bit <<= 1)
		if ((o->effects & bit) != 0)
			printf("\n%s", op_effect_name(bit));
	printf(".\n");
	if (op_explicit_only(o))
		printf("Mounted only by a rule that names it.\n");
	for (k = 0; k < op_nroutes; k++)
		if (op_routes[k].op == i)
			printf(".Dl %s %s No (%s)\n", op_routes[k].method,
			    op_routes[k].path, bindings[op_routes[k].binding]);
	if (o->params == NULL || o->params[0].name == NULL)
		return;
	printf(".Bl -tag -width Ds -compact\n");
	for (p = o->params; p->name != NULL; p++)
		print_param(p);
	printf(".El\n");
}

static void
print_ops(void)
{
	uint16_t i;

	printf(".Bl -tag -width Ds\n");
	for (i = 0; i < OP_COUNT; i++)
		if ((ops[i].flags & OF_LATER) == 0)
			print_op(i);
	printf(".El\n");
}

/* Short words may be names of macros. */
static void
print_text(const char *s)
{
	size_t n;

	for (; *s != '\0'; s += n) {
		n = strcspn(s, " ");
		printf("%s%.*s", n <= 3 ? "\\&" : "", (int)n, s);
		for (s += n, n = 0; s[n] == ' '; n++)
			putchar(' ');
	}
	putchar('\n');
}

static void
print_codes(void)
{
	size_t i;

	printf(".Bl -column \"policy.command_not_allowed\" \"000\" -compact\n");
	/* no operation that is there takes a URL */
	for (i = 0; i < C_COUNT; i++)
		if (i != C_OK && i != C_POL_URL_INVALID) {
			printf(".It Li %s Ta %u Ta ", codes[i].code,
			    codes[i].status);
			print_text(codes[i].text);
		}
	printf(".El\n");
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "ops") == 0)
		print_ops();
	else if (argc == 2 && strcmp(argv[1], "codes") == 0)
		print_codes();
	else
		errx(2, "usage: tables ops|codes");
	return fflush(stdout) == 0 ? 0 : 1;
}
