/*
 * SPDX-License-Identifier: ISC
 *
 * JSON bodies to arguments, against the reader that the configuration has:
 * both take the same texts, and each argument is what the tree says.  What
 * came out survives the wire.  Input: 1 byte (bit 0: look for content), then
 * the body.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/payload.h"
#include "listener/body.h"
#include "policy/json.h"
#include "policy/tree.h"
#include "regress/fuzz/fuzz.h"

/* 1 when the text holds a number longer than one of the two readers takes. */
static int
long_number(const char *s, size_t n)
{
	size_t i, run = 0;

	for (i = 0; i < n; i++) {
		run = s[i] != 0 && strchr("+-.eE0123456789", s[i]) != NULL
			  ? run + 1
			  : 0;
		if (run > JSON_NUM_MAX)
			return 1;
	}
	return 0;
}

/* Values other than strings in a list or object. */
static int
mixed(const struct node *n)
{
	const struct node *c;

	for (c = n->child; c != NULL; c = c->next)
		if (c->type != N_STR)
			return 1;
	return 0;
}

static int
is_integer(const struct node *n)
{
	errno = 0;
	(void)strtoll(n->s, NULL, 10);
	return strpbrk(n->s, ".eE") == NULL && errno != ERANGE;
}

/* Objects of named strings and integers, and as many as may be. */
static int
rows(const struct node *n)
{
	const struct node *o, *c;
	size_t all = 0;

	for (o = n->child; o != NULL; o = o->next) {
		if (o->type != N_OBJ)
			return 0;
		all += o->n + 1;
		for (c = o->child; c != NULL; c = c->next)
			if (c->key[0] == '\0' ||
			    (c->type != N_STR &&
				(c->type != N_NUM || !is_integer(c))))
				return 0;
	}
	return all > 0 && all <= ABX_MAX_ARGV;
}

/* The members of each, an 's' or 'i' in front, and an empty one behind. */
static void
check_rows(const struct arg *a, const struct node *n)
{
	const struct node *o, *c;
	size_t i = 0;

	for (o = n->child; o != NULL; o = o->next) {
		for (c = o->child; c != NULL; c = c->next, i++) {
			CHECK(i < a->n && strcmp(a->list[i], c->key) == 0);
			CHECK(a->vals[i][0] == (c->type == N_STR ? 's' : 'i'));
			if (c->type == N_STR)
				CHECK(strcmp(a->vals[i] + 1, c->s) == 0);
			else
				CHECK(strtoll(a->vals[i] + 1, NULL, 10) ==
				      strtoll(c->s, NULL, 10));
		}
		CHECK(i < a->n && a->list[i][0] == '\0');
		i++;
	}
	CHECK(i == a->n);
}

static void check_args(const struct args *, const struct node *, int nested,
    struct body_content *);

static void
check_number(const struct arg *a, const struct node *n)
{
	if (!is_integer(n))
		CHECK(a->type == A_NUM);
	else
		CHECK(a->type == A_INT && a->i == strtoll(n->s, NULL, 10));
}

static void
check_strings(const struct arg *a, const struct node *n)
{
	const struct node *c;
	size_t i = 0;

	CHECK(a->n == n->n);
	for (c = n->child; c != NULL; c = c->next, i++) {
		CHECK(strcmp(c->s,
			  a->type == A_MAP ? a->vals[i] : a->list[i]) == 0);
		CHECK(a->type == A_LIST || strcmp(c->key, a->list[i]) == 0);
	}
}

static void
check_arg(const struct arg *a, const struct node *n, int nested)
{
	switch (n->type) {
	case N_NULL:
		CHECK(a->type == A_NULL);
		break;
	case N_BOOL:
		CHECK(a->type == A_BOOL && a->i == n->b);
		break;
	case N_NUM:
		check_number(a, n);
		break;
	case N_STR:
		CHECK(a->type == A_STR && a->len == n->len &&
		      memcmp(a->s, n->s, n->len + 1) == 0);
		break;
	case N_LIST:
		CHECK(a->type == (!mixed(n)    ? A_LIST
				     : rows(n) ? A_ROWS
					       : A_OTHER));
		if (a->type == A_LIST)
			check_strings(a, n);
		else if (a->type == A_ROWS)
			check_rows(a, n);
		break;
	case N_OBJ:
		if (!mixed(n)) {
			CHECK(a->type == A_MAP);
			check_strings(a, n);
		} else if (nested)
			CHECK(a->type == A_OTHER);
		else {
			CHECK(a->type == A_ARGS);
			check_args(a->sub, n, 1, NULL);
		}
		break;
	}
}

static void
check_content(const struct body_content *c, const struct node *n,
    const struct node *encoding)
{
	uint8_t *out = fuzz_alloc(n->len + 1);
	int len = (int)n->len;

	memcpy(out, n->s, n->len);
	if (encoding != NULL && strcmp(encoding->s, "base64") == 0)
		len = base64_decode(n->s, n->len, out, n->len + 1);
	else if (encoding != NULL && strcmp(encoding->s, "utf-8") != 0)
		len = -1;
	CHECK(c->kind == (len < 0 ? ASK_BODY_BAD : ASK_BODY_CONTENT));
	if (len >= 0)
		CHECK(
		    c->len == (size_t)len && memcmp(c->data, out, c->len) == 0);
	free(out);
}

static void
check_args(const struct args *as, const struct node *top, int nested,
    struct body_content *bc)
{
	const struct node *c, *content = NULL, *encoding = NULL;
	const struct arg *a;
	size_t n = 0;

	for (c = top->child; c != NULL; c = c->next) {
		if (bc != NULL && c->type == N_STR &&
		    strcmp(c->key, "content") == 0) {
			content = c;
			continue;
		}
		if (bc != NULL && c->type == N_STR &&
		    strcmp(c->key, "encoding") == 0) {
			encoding = c;
			continue;
		}
		a = args_find(as, c->key);
		CHECK(a != NULL);
		check_arg(a, c, nested);
		n++;
	}
	CHECK(as->n == n);
	if (content != NULL)
		check_content(bc, content, encoding);
	else if (bc != NULL)
		CHECK(bc->kind == ASK_BODY_NONE && bc->data == NULL);
}

static void
over_the_wire(const struct args *as)
{
	struct args back;
	struct wbuf w, v;
	struct rbuf r;

	wbuf_init(&w, ABX_BODY_MAX);
	wbuf_init(&v, ABX_BODY_MAX);
	args_put(&w, as);
	CHECK(!w.err);
	rbuf_init(&r, w.p, w.len);
	CHECK(args_get(&r, &back) == 0 && rget_end(&r) == 0);
	args_put(&v, &back);
	CHECK(v.len == w.len && memcmp(v.p, w.p, w.len) == 0);
	args_clear(&back);
	wbuf_free(&w);
	wbuf_free(&v);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = {data, size};
	struct body_content content;
	struct body_content *bc = feed_u8(&f) & 1 ? &content : NULL;
	char *text = (char *)fuzz_copy(f.p, f.n);
	struct findings found = {0};
	struct args as = {0};
	struct node *tree;
	enum code code;
	int good;

	tree = tree_json("body", (const char *)f.p, f.n, &found);
	good = tree != NULL && found.n == 0 && tree->type == N_OBJ;
	code = body_parse(text, f.n, &as, bc);
	if (!long_number((const char *)f.p, f.n))
		CHECK((code != C_REQ_BAD_JSON) == good);
	CHECK(code == C_OK || code == C_REQ_BAD_JSON ||
	      code == C_ARGS_UNKNOWN || code == C_ARGS_TOO_LARGE);
	if (code == C_OK && good)
		check_args(&as, tree, 0, bc);
	if (code == C_OK)
		over_the_wire(&as);
	tree_free(tree);
	findings_clear(&found);
	args_clear(&as);
	if (bc != NULL)
		body_content_clear(bc);
	free(text);
	return 0;
}
