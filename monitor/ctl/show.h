/*
 * SPDX-License-Identifier: ISC
 *
 * Output of abxctl: JSON values, lines, a table.  Bytes that came from a
 * file or an argument never reach a terminal unescaped.
 */
#ifndef ABX_CTL_SHOW_H
#define ABX_CTL_SHOW_H

#include <stdio.h>

#include <jansson.h>

#include "monitor/confset.h"

/* Print a line made as by printf, control bytes as \xNN. */
void show_line(const char *, ...) __attribute__((format(printf, 1, 2)));
/* The same to stderr, behind the name of the program. */
void show_complaint(const char *, ...) __attribute__((format(printf, 1, 2)));
/* Print a name of n bytes: as it is, or on a terminal with its control bytes
 * and what is no UTF-8 as \xNN. */
void show_name(FILE *, const char *, size_t n);
/* A word in colour on a terminal: green, yellow or red. */
enum show_colour { SHOW_GREEN, SHOW_YELLOW, SHOW_RED };
const char *show_colour(enum show_colour);
const char *show_plain(void);

/* A JSON string; bytes that are not UTF-8 become \xNN text.  NULL: null. */
json_t *show_str(const char *);
/* Print a JSON value as one line and drop it; 0, or -1 when it is NULL (out of
 * memory) or cannot be written. */
int show_json(json_t *);

/* The findings as lines, errors_only or all of them. */
void show_findings(const struct findings *, int errors_only);
json_t *show_findings_json(const struct findings *);
/* Which principals may use which operation: the effective table. */
void show_ops(const struct confset *);
json_t *show_ops_json(const struct confset *);

#endif
