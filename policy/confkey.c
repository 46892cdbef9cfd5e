/*
 * SPDX-License-Identifier: ISC
 *
 * Reads one object of the tree by its table of keys.  It knows types and
 * ranges; what a key means is said by its row.  Pure.
 */
#include "policy/confkey.h"

#include <stdlib.h>
#include <string.h>

#include "common/size.h"

void
conf_find(struct cload *cl, const struct node *n, enum find_sev sev,
    const char *code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	findings_vadd(cl->f, sev, code, n->file, n->line, n->col, fmt, ap);
	va_end(ap);
}

void
conf_findkey(struct cload *cl, const struct node *n, enum find_sev sev,
    const char *code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (n->key != NULL)
		findings_vadd(
		    cl->f, sev, code, n->file, n->kline, n->kcol, fmt, ap);
	else
		findings_vadd(
		    cl->f, sev, code, n->file, n->line, n->col, fmt, ap);
	va_end(ap);
}

void
conf_type(struct cload *cl, const struct node *n, const char *want)
{
	if (n->key != NULL)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"%.80s\" is %s, not %s", n->key, want, node_kind(n));
	else if (n->of != NULL)
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "in \"%.80s\" %s is expected here, not %s", n->of, want,
		    node_kind(n));
	else
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "%s is expected here, not %s", want, node_kind(n));
}

size_t
conf_errors(const struct cload *cl)
{
	size_t i, n = 0;

	for (i = 0; i < cl->f->n; i++)
		n += cl->f->v[i].sev == FIND_ERROR;
	return n;
}

void *
conf_room(void *v, size_t n, size_t size)
{
	/* n itself tells when */
	if ((n & (n - 1)) != 0)
		return v;
	return recallocarray(v, n, n == 0 ? 1 : n * 2, size);
}

int
conf_nomem(struct cload *cl)
{
	cl->f->nomem = 1;
	return -1;
}

void
origin_set(struct cload *cl, struct origin *o, const struct node *n)
{
	free(o->file);
	if ((o->file = strdup(n->file)) == NULL)
		conf_nomem(cl);
	o->line = n->line;
	o->col = n->col;
}

const struct ckey *
ckey_find(const struct ckey *keys, const char *name)
{
	for (; keys->name != NULL; keys++)
		if (strcmp(keys->name, name) == 0)
			return keys;
	return NULL;
}

void
conf_unknown(struct cload *cl, const struct node *n, const struct ckey *keys,
    const char *const *more)
{
	struct suggest s;

	suggest_init(&s, n->key);
	for (; keys->name != NULL; keys++)
		if ((keys->flags & CK_CANON) == 0 && keys->type != K_LATER)
			suggest_try(&s, keys->name);
	for (; more != NULL && *more != NULL; more++)
		suggest_try(&s, *more);
	if (s.best != NULL)
		conf_findkey(cl, n, FIND_ERROR, "config.unknown_key",
		    "the key \"%.80s\" is not known; did you mean \"%s\"?",
		    n->key, s.best);
	else
		conf_findkey(cl, n, FIND_ERROR, "config.unknown_key",
		    "the key \"%.80s\" is not known", n->key);
}

int
conf_strings(struct cload *cl, const struct node *n, struct strlist *l,
    int (*check)(struct cload *, const struct node *))
{
	const struct node *c = n->type == N_LIST ? n->child : n;

	if (n->type != N_LIST && n->type != N_STR) {
		conf_type(cl, n, "a string or a list of strings");
		return 0;
	}
	for (; c != NULL; c = n->type == N_LIST ? c->next : NULL) {
		if (c->type != N_STR) {
			conf_type(cl, c, "a string");
			continue;
		}
		if (check != NULL && check(cl, c) == -1)
			continue;
		if (strlist_add(l, c->s, c->len) == -1)
			return conf_nomem(cl);
	}
	return 0;
}

int
conf_each(struct cload *cl, const struct node *n, const char *want,
    int (*fn)(struct cload *, const struct node *))
{
	const struct node *c;

	if (n->type != N_LIST) {
		conf_type(cl, n, want);
		return 0;
	}
	for (c = n->child; c != NULL; c = c->next) {
		if (c->type != N_OBJ)
			conf_type(cl, c, "an object");
		else if (fn(cl, c) == -1)
			return -1;
	}
	return 0;
}

/* Paths are kept in lexically normal form; a bad one (a finding was made)
 * stays as it is, so that the list does not look empty to the lints. */
static int
value_paths(struct cload *cl, const struct node *n, struct strlist *l,
    int (*check)(struct cload *, const struct node *))
{
	const struct node *c = n->type == N_LIST ? n->child : n;
	enum code code;
	char *norm;
	int error;

	if (n->type != N_LIST && n->type != N_STR) {
		conf_type(cl, n, "a string or a list of strings");
		return 0;
	}
	for (; c != NULL; c = n->type == N_LIST ? c->next : NULL) {
		if (c->type != N_STR) {
			conf_type(cl, c, "a string");
			continue;
		}
		norm = NULL;
		if (check(cl, c) == 0 &&
		    (norm = path_normal(c->s, &code)) == NULL)
			return conf_nomem(cl);
		error = norm == NULL ? strlist_add(l, c->s, c->len)
				     : strlist_add(l, norm, strlen(norm));
		free(norm);
		if (error == -1)
			return conf_nomem(cl);
	}
	return 0;
}

static int
value_list(
    struct cload *cl, const struct ckey *k, const struct node *n, void *at)
{
	if ((k->flags & CK_JOIN) == 0)
		strlist_clear(at);
	if ((k->flags & CK_PATHS) != 0)
		return value_paths(cl, n, at, k->check);
	return conf_strings(cl, n, at, k->check);
}

/* A whole number; 0, or -1 after a finding. */
static int
value_number(
    struct cload *cl, const struct ckey *k, const struct node *n, uint64_t *v)
{
	if (n->type != N_NUM) {
		conf_type(cl, n, "a whole number");
		return -1;
	}
	if (uint_parse(n->s, n->len, UINT64_MAX, v) == -1 || *v < k->lo ||
	    *v > k->hi) {
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"%s\" is a whole number from %llu to %llu", k->name,
		    (unsigned long long)k->lo, (unsigned long long)k->hi);
		return -1;
	}
	return 0;
}

/* A size or a duration; 0, or -1 after a finding. */
static int
value_quantity(
    struct cload *cl, const struct ckey *k, const struct node *n, uint64_t *v)
{
	const char *what =
	    k->type == K_SIZE
		? "a size such as 4096, \"10MB\" or \"64MiB\""
		: "a duration such as 90, \"90s\", \"5m\" or \"1h\"";
	/* the name of a variable, where it is that of the environment */
	const char *name = n->key != NULL ? n->key : k->name;
	uint64_t unit = k->type == K_MSEC ? 1000 : 1;
	int error;

	if (n->type != N_NUM && n->type != N_STR) {
		conf_type(cl, n, what);
		return -1;
	}
	if (n->type == N_NUM)
		error = uint_parse(n->s, n->len, UINT64_MAX / 1000, v);
	else if (k->type == K_SIZE)
		error = size_parse(n->s, v);
	else
		error = duration_parse(n->s, v);
	if (error == 0 && n->type == N_NUM)
		*v *= unit;
	if (error == 0 && n->type == N_STR && k->type == K_SEC) {
		error = *v % 1000 == 0 ? 0 : -1;
		*v /= 1000;
	}
	if (error == 0 && *v >= k->lo && *v <= k->hi)
		return 0;
	if (error == 0)
		conf_find(cl, n, FIND_ERROR, "config.size_invalid",
		    "\"%.80s\" must be from %llu%s to %llu%s", name,
		    (unsigned long long)k->lo, k->type == K_MSEC ? " ms" : "",
		    (unsigned long long)k->hi, k->type == K_MSEC ? " ms" : "");
	else
		conf_find(cl, n, FIND_ERROR, "config.size_invalid",
		    "\"%.80s\" is \"%.80s\", not %s", name, n->s, what);
	return -1;
}

/* Permission bits, written as octal digits in a string, since a bare number
 * would be read as decimal. */
static int
value_octal(
    struct cload *cl, const struct ckey *k, const struct node *n, uint64_t *v)
{
	const char *s = n->type == N_STR ? n->s : "";
	uint64_t x = 0;

	while (x <= k->hi && *s >= '0' && *s <= '7')
		x = x * 8 + (uint64_t)(*s++ - '0');
	if (n->type != N_STR || n->len == 0 || *s != '\0' || x > k->hi) {
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"%s\" is a string of octal digits such as \"%04o\"",
		    k->name, (unsigned)k->lo);
		return -1;
	}
	*v = x;
	return 0;
}

static int
value_enum(
    struct cload *cl, const struct ckey *k, const struct node *n, int *at)
{
	char words[120];
	int i;

	if (n->type != N_STR) {
		conf_type(cl, n, "a string");
		return 0;
	}
	if (k->check != NULL && k->check(cl, n) == -1)
		return 0;
	for (i = 0; k->words[i] != NULL; i++)
		if (strcmp(k->words[i], n->s) == 0) {
			*at = i;
			return 0;
		}
	strlcpy(words, k->words[0], sizeof(words));
	for (i = 1; k->words[i] != NULL; i++) {
		strlcat(words, k->words[i + 1] != NULL ? "\", \"" : "\" or \"",
		    sizeof(words));
		strlcat(words, k->words[i], sizeof(words));
	}
	conf_find(cl, n, FIND_ERROR, "config.type",
	    "\"%s\" is \"%s\", not \"%.80s\"", k->name, words, n->s);
	return 0;
}

static int
value_str(
    struct cload *cl, const struct ckey *k, const struct node *n, char **at)
{
	enum code code;
	char *s;

	if (n->type != N_STR) {
		conf_type(cl, n, "a string");
		return 0;
	}
	if (k->type == K_DIR ? check_dir(cl, n) == -1
			     : k->check != NULL && k->check(cl, n) == -1)
		return 0;
	s = k->type == K_DIR ? path_normal(n->s, &code) : strdup(n->s);
	if (s == NULL)
		return conf_nomem(cl);
	free(*at);
	*at = s;
	return 0;
}

static int
value_keep(struct cload *cl, const struct ckey *k, const struct node *n,
    const struct node **slot)
{
	if (*slot != NULL && (k->flags & CK_JOIN) == 0)
		conf_findkey(cl, n, FIND_ERROR, "config.duplicate_key",
		    "\"%s\" says the same as \"%s\" in %s line %u", n->key,
		    (*slot)->key, (*slot)->file, (*slot)->kline);
	else
		*slot = n;
	return 0;
}

static void
value_flag(
    struct cload *cl, const struct ckey *k, const struct node *n, int *at)
{
	if (n->type != N_BOOL)
		conf_type(cl, n, "true or false");
	else
		*at = k->type == K_NBOOL ? !n->b : n->b;
}

/* The number of a row's type; 1 when it was read, 0 after a finding. */
static int
value_any_number(
    struct cload *cl, const struct ckey *k, const struct node *n, uint64_t *v)
{
	switch (k->type) {
	case K_SIZE:
	case K_MSEC:
	case K_SEC:
		return value_quantity(cl, k, n, v) == 0;
	case K_OCTAL:
		return value_octal(cl, k, n, v) == 0;
	default:
		return value_number(cl, k, n, v) == 0;
	}
}

int
conf_value(
    struct cload *cl, const struct ckey *k, const struct node *n, void *obj)
{
	void *at = (char *)obj + k->off;
	uint64_t v;

	switch (k->type) {
	case K_BOOL:
	case K_NBOOL:
		value_flag(cl, k, n, at);
		return 0;
	case K_U32:
	case K_OCTAL:
		if (value_any_number(cl, k, n, &v))
			*(uint32_t *)at = (uint32_t)v;
		return 0;
	case K_PORT:
		if (value_any_number(cl, k, n, &v))
			*(uint16_t *)at = (uint16_t)v;
		return 0;
	case K_U64:
	case K_SIZE:
	case K_MSEC:
	case K_SEC:
		if (value_any_number(cl, k, n, &v))
			*(uint64_t *)at = v;
		return 0;
	case K_STR:
	case K_DIR:
		return value_str(cl, k, n, at);
	case K_ENUM:
		return value_enum(cl, k, n, at);
	case K_LIST:
		return value_list(cl, k, n, at);
	case K_OBJ:
		return conf_object(cl, n, k->sub, at);
	case K_KEEP:
		return value_keep(cl, k, n, at);
	case K_FUNC:
		return k->get(cl, n, obj);
	case K_LATER:
		break;
	}
	conf_findkey(cl, n, FIND_ERROR, "config.not_supported",
	    "\"%s\" is not supported by this version", k->name);
	return 0;
}

int
conf_object(
    struct cload *cl, const struct node *n, const struct ckey *keys, void *obj)
{
	const struct ckey *k;
	const struct node *c;

	if (n->type != N_OBJ) {
		conf_type(cl, n, "an object");
		return 0;
	}
	for (c = n->child; c != NULL; c = c->next) {
		if (c->dup)
			continue;
		k = ckey_find(keys, c->key);
		if (k == NULL || ((k->flags & CK_CANON) != 0 && !cl->canon))
			conf_unknown(cl, c, keys, NULL);
		else if (conf_value(cl, k, c, obj) == -1)
			return -1;
	}
	for (k = keys; k->name != NULL; k++)
		if ((k->flags & CK_NEED) != 0 && node_get(n, k->name) == NULL)
			conf_find(cl, n, FIND_ERROR, "config.type",
			    "the key \"%s\" is missing", k->name);
	return 0;
}
