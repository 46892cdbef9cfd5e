/*
 * SPDX-License-Identifier: ISC
 *
 * The table of built-in rules.  It is part of the program: the floor depends
 * on no file.
 */
#include "policy/filter_int.h"
#include "policy/filter_match.h"

/* Disks and memory, as they stand in the code of other languages. */
#define DEV                                                                  \
	"/{1,4}dev/{1,4}(?:[hsv]d[a-z*?]|xvd[a-z]|dasd[a-z]|nvme\\d|nvd\\d|" \
	"r?disk[\\d/]|mmcblk\\d|loop\\d|sr\\d|pmem\\d|dm-\\d|md\\d|nbd\\d|"  \
	"z?ram\\d|ada\\d|mapper/\\w|k?mem\\b|port\\b|root\\b)"
/* Between words of a command, in a string or as a list of strings. */
#define SEP "[ \\t\"',\\[\\]()]{1,8}"
#define WORD "[^\\s\"',;|&<>()\\[\\]-][^\\s\"',;|&<>()\\[\\]]{0,200}"
#define FLAG "-[\\w=-]{1,40}"

#define FLOOR 1
#define WARN 0
#define RULE(id, name, floor, progs, match, hint, flat, reason, yes, no) \
	[RULE_##id] = {name, floor, progs, match, hint, flat, reason, yes, no},
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
