/*
 * SPDX-License-Identifier: ISC
 *
 * The table of built-in rules.  It is part of the program: the floor depends
 * on no file.
 */
#include "policy/filter_int.h"
#include "policy/filter_match.h"

#define FLOOR 1
#define WARN 0
#define RULE(id, name, floor, progs, match, reason, yes, no) \
	[RULE_##id] = {name, floor, progs, match, reason, yes, no},
#define YES(...)                  \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}
#define NO(...)                   \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}
const struct rule_row rule_rows[RULE_COUNT] = {
#include "policy/filter_rules.def"
};
