/*
 * SPDX-License-Identifier: ISC
 *
 * Builds the tree from reader events.  Here, once for all levels, duplicate
 * keys are found; what the keys mean is known in config.c and its tables.
 */
#include "policy/tree.h"

#include <stdlib.h>
#include <string.h>

#include "policy/json.h"

struct builder {
	const char *file;
	struct findings *f;
	struct node *root;
	struct node *open[JSON_DEPTH + 1];
	unsigned depth;
	size_t nodes;
	char *key; /* of the value to come */
	unsigned kline, kcol;
};

void
tree_free(struct node *n)
{
	struct node *c, *next;

	if (n == NULL)
		return;
	/* The depth is bounded by the reader, so this recursion is. */
	for (c = n->child; c != NULL; c = next) {
		next = c->next;
		tree_free(c);
	}
	free(n->key);
	if (n->s != NULL) {
		/* May be a secret that somebody wrote into the file. */
		explicit_bzero(n->s, n->len);
		free(n->s);
	}
	free(n);
}

const struct node *
node_get(const struct node *n, const char *key)
{
	const struct node *c;

	if (n == NULL || n->type != N_OBJ)
		return NULL;
	for (c = n->child; c != NULL; c = c->next)
		if (!c->dup && strcmp(c->key, key) == 0)
			return c;
	return NULL;
}

const char *
node_kind(const struct node *n)
{
	static const char *const words[] = {
	    "null", "a boolean", "a number", "a string", "a list", "an object"};

	return words[n->type];
}

/* Mark and report a key that its object has already. */
static void
build_duplicate(struct builder *b, const struct node *up, struct node *n)
{
	const struct node *old = node_get(up, n->key);

	if (old == NULL)
		return;
	n->dup = 1;
	findings_add(b->f, FIND_ERROR, "config.duplicate_key", b->file,
	    n->kline, n->kcol, "the key \"%.80s\" stands in line %u already",
	    n->key, old->kline);
}

/* A new node below the innermost open one; NULL after a finding. */
static struct node *
build_node(struct builder *b, const struct json_event *ev, enum node_type type)
{
	struct node *n, *up = b->depth > 0 ? b->open[b->depth - 1] : NULL;

	if (++b->nodes > TREE_NODES ||
	    (up != NULL && up->type == N_OBJ && up->n == TREE_MEMBERS)) {
		findings_add(b->f, FIND_ERROR, "config.syntax", b->file,
		    ev->line, ev->col, "too many values");
		return NULL;
	}
	if ((n = calloc(1, sizeof(*n))) == NULL) {
		b->f->nomem = 1;
		return NULL;
	}
	n->type = type;
	n->file = b->file;
	n->line = ev->line;
	n->col = ev->col;
	n->kline = b->kline;
	n->kcol = b->kcol;
	n->key = b->key;
	b->key = NULL;
	n->of = n->key != NULL ? n->key : up != NULL ? up->of : NULL;
	if (up == NULL) {
		b->root = n;
		return n;
	}
	if (up->type == N_OBJ)
		build_duplicate(b, up, n);
	if (up->last != NULL)
		up->last->next = n;
	else
		up->child = n;
	up->last = n;
	up->n++;
	return n;
}

static int
build_text(struct builder *b, const struct json_event *ev, enum node_type type)
{
	struct node *n = build_node(b, ev, type);

	if (n == NULL)
		return -1;
	if ((n->s = strndup(ev->s, ev->len)) == NULL) {
		b->f->nomem = 1;
		return -1;
	}
	n->len = ev->len;
	return 0;
}

static int
build_open(struct builder *b, const struct json_event *ev, enum node_type type)
{
	struct node *n = build_node(b, ev, type);

	if (n == NULL)
		return -1;
	b->open[b->depth++] = n;
	return 0;
}

static int
build_bool(struct builder *b, const struct json_event *ev)
{
	struct node *n = build_node(b, ev, N_BOOL);

	if (n == NULL)
		return -1;
	n->b = ev->type == JSON_TRUE;
	return 0;
}

static int
build_key(struct builder *b, const struct json_event *ev)
{
	if ((b->key = strndup(ev->s, ev->len)) == NULL) {
		b->f->nomem = 1;
		return -1;
	}
	b->kline = ev->line;
	b->kcol = ev->col;
	return 0;
}

static int
build_event(struct builder *b, const struct json_event *ev)
{
	switch (ev->type) {
	case JSON_OBJ:
		return build_open(b, ev, N_OBJ);
	case JSON_LIST:
		return build_open(b, ev, N_LIST);
	case JSON_OBJ_END:
	case JSON_LIST_END:
		b->depth--;
		return 0;
	case JSON_KEY:
		return build_key(b, ev);
	case JSON_STR:
		return build_text(b, ev, N_STR);
	case JSON_NUM:
		return build_text(b, ev, N_NUM);
	case JSON_TRUE:
	case JSON_FALSE:
		return build_bool(b, ev);
	case JSON_NULL:
		return build_node(b, ev, N_NULL) == NULL ? -1 : 0;
	case JSON_EOF:
	case JSON_ERR:
		break;
	}
	findings_add(b->f, FIND_ERROR, "config.syntax", b->file, ev->line,
	    ev->col, "%s", ev->s);
	return -1;
}

struct node *
tree_json(const char *file, const char *data, size_t len, struct findings *f)
{
	struct builder b = {.file = file, .f = f};
	struct json j;
	struct json_event ev;
	int error = 0;

	if (json_init(&j, data, len) == -1) {
		f->nomem = 1;
		json_free(&j);
		return NULL;
	}
	while (error == 0 && json_next(&j, &ev) != JSON_EOF)
		error = build_event(&b, &ev);
	json_free(&j);
	free(b.key);
	if (error == 0)
		return b.root;
	tree_free(b.root);
	return NULL;
}
