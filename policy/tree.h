/*
 * SPDX-License-Identifier: ISC
 *
 * A configuration text as a tree of values that know where they stand.  Any
 * reader (JSON now) builds the same tree.  Private to policy/.
 */
#ifndef ABX_POLICY_TREE_H
#define ABX_POLICY_TREE_H

#include <stddef.h>

#include "policy/policy.h"

#define TREE_NODES 200000 /* values of one text */
#define TREE_MEMBERS 1024 /* keys of one object */

enum node_type { N_NULL, N_BOOL, N_NUM, N_STR, N_LIST, N_OBJ };

struct node {
	enum node_type type;
	const char *file;     /* borrowed name of the source */
	unsigned line, col;   /* of the value */
	unsigned kline, kcol; /* of the key, when it has one */
	char *key;	      /* owned; NULL in a list */
	const char *of;	      /* the key, or that of the list around; or NULL */
	int dup;	      /* the key stood there before; to be ignored */
	int b;		      /* N_BOOL */
	char *s; /* owned; N_STR: text without NUL; N_NUM: spelling */
	size_t len;
	struct node *child, *last; /* N_LIST, N_OBJ: owned, in order */
	struct node *next;
	size_t n; /* children */
};

/* Read a JSON text.  Every key that stands twice in an object is a finding;
 * NULL after a syntax error (a finding) or when out of memory (nomem set).
 * file must outlive the tree. */
struct node *tree_json(
    const char *file, const char *data, size_t len, struct findings *);
void tree_free(struct node *);
/* The member of that name, or NULL. */
const struct node *node_get(const struct node *, const char *key);
/* "a string", "a list" and so on. */
const char *node_kind(const struct node *);

#endif
