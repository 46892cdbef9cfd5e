/*
 * SPDX-License-Identifier: ISC
 *
 * Who may call: "auth" and the single token of ABX_SERVER_TOKEN
 * (server.json(5), "Authentication").  Secrets are hashed as soon as they are
 * seen and never kept.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"

#define SECRET_MIN 16

/* One token as it is read; the secret's source is kept as a node. */
struct token_in {
	char *id;
	struct strlist roles;
	char *env, *file, *digest;
};

const char *
conf_env(const struct cload *cl, const char *name)
{
	const char *const *p;
	size_t n = strlen(name);

	if (cl->w == NULL || cl->w->env == NULL)
		return NULL;
	for (p = cl->w->env; *p != NULL; p++)
		if (strncmp(*p, name, n) == 0 && (*p)[n] == '=')
			return *p + n + 1;
	return NULL;
}

/* The digest that the start made of a variable's secret; 0, or -1 when there
 * is none. */
static int
start_digest(const struct cload *cl, const char *name, uint8_t digest[32])
{
	const char *s = cl->w != NULL ? cl->w->digests : NULL;
	size_t n = strlen(name), len;
	char hex[65];

	for (; s != NULL && *s != '\0'; s += len + strspn(s + len, " ")) {
		len = strcspn(s, " ");
		if (len != n + 65 || strncmp(s, name, n) != 0 || s[n] != '=')
			continue;
		memcpy(hex, s + n + 1, 64);
		hex[64] = '\0';
		return hex_decode(hex, digest, 32);
	}
	return -1;
}

/* Keep a digest for the loads after this one. */
static int
keep_digest(struct cload *cl, const char *name, const uint8_t digest[32])
{
	char hex[65], *s;
	int error;

	hex_encode(digest, 32, hex);
	if (asprintf(&s, "%s=%s", name, hex) == -1)
		return conf_nomem(cl);
	error = strlist_add(&cl->c->env_digests, s, strlen(s));
	free(s);
	return error == -1 ? conf_nomem(cl) : 0;
}

/* ---- secrets ---- */

/* What makes a secret unusable, or NULL. */
static const char *
secret_why(const char *s, size_t len)
{
	size_t i;

	if (len < SECRET_MIN)
		return "the secret has fewer than 16 characters";
	if (len > ABX_TOKEN_MAX)
		return "the secret has more than 512 characters";
	for (i = 0; i < len; i++)
		if ((unsigned char)s[i] <= 0x20 || (unsigned char)s[i] >= 0x7f)
			return "the secret holds white space, control "
			       "characters or non-ASCII";
	return NULL;
}

/* Hash a secret; 0, or -1 after a finding. */
static int
secret_hash(struct cload *cl, const struct node *n, const char *s,
    const char *what, uint8_t digest[32])
{
	const char *why;

	if (s == NULL || *s == '\0') {
		conf_find(cl, n, FIND_ERROR, "config.auth_secret_missing",
		    "%s %.200s %s", what, n->s,
		    s == NULL ? "is not in the environment (a reload "
				"has that of the start)"
			      : "is empty");
		return -1;
	}
	if ((why = secret_why(s, strlen(s))) != NULL) {
		conf_find(cl, n, FIND_ERROR, "config.auth_secret_weak",
		    "%s %.200s: %s", what, n->s, why);
		return -1;
	}
	sha256(s, strlen(s), digest);
	return 0;
}

/* The environment's, or what the start knew of it. */
static int
secret_of_variable(struct cload *cl, const struct node *n, uint8_t digest[32])
{
	const char *s = conf_env(cl, n->s);

	if (s == NULL && start_digest(cl, n->s, digest) == 0)
		return keep_digest(cl, n->s, digest);
	if (s == NULL && cl->w != NULL && cl->w->digests != NULL) {
		conf_find(cl, n, FIND_ERROR, "config.auth_secret_missing",
		    "the variable %.200s was not read at the start; a "
		    "token_env that is new at a reload needs a restart",
		    n->s);
		return -1;
	}
	if (secret_hash(cl, n, s, "the variable", digest) == -1)
		return -1;
	return keep_digest(cl, n->s, digest);
}

static int
secret_from_env(struct cload *cl, const struct node *n, uint8_t digest[32])
{
	if (strlist_add(&cl->secret_names, n->s, n->len) == -1)
		return conf_nomem(cl);
	return secret_of_variable(cl, n, digest);
}

/* Remember where a secret lies: 0 or -1. */
static int
keep_secret_file(struct cload *cl, const struct node *n)
{
	struct conf_rules *rs = cl->c->rules;
	struct secret_file *v;

	if ((v = conf_room(rs->secrets, rs->nsecrets, sizeof(*v))) == NULL)
		return conf_nomem(cl);
	rs->secrets = v;
	v += rs->nsecrets++;
	origin_set(cl, &v->at, n);
	return (v->path = strdup(n->s)) == NULL ? conf_nomem(cl) : 0;
}

static int
secret_from_file(struct cload *cl, const struct node *n, uint8_t digest[32])
{
	char *s = NULL;
	size_t len = 0;
	int r;

	if (cl->w != NULL && cl->w->token_file != NULL)
		s = cl->w->token_file(n->s, cl->w->arg);
	if (s == NULL) {
		/* why was said of the file itself */
		conf_find(cl, n, FIND_ERROR, "config.auth_secret_missing",
		    "the file %.200s cannot be used", n->s);
		return -1;
	}
	len = strlen(s);
	if (len > 0 && s[len - 1] == '\n')
		s[len - 1] = '\0';
	r = secret_hash(cl, n, s, "the file", digest);
	freezero(s, len);
	return r == -1 ? -1 : keep_secret_file(cl, n);
}

static int
secret_from_digest(struct cload *cl, const struct node *n, uint8_t digest[32])
{
	uint8_t empty[32];

	if (n->len != 64 || hex_decode(n->s, digest, 32) == -1) {
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "\"token_sha256\" is 64 hex digits");
		return -1;
	}
	sha256("", 0, empty);
	if (ct_equal(empty, digest, 32)) {
		conf_find(cl, n, FIND_ERROR, "config.auth_secret_missing",
		    "\"token_sha256\" is the digest of nothing");
		return -1;
	}
	return 0;
}

/* ---- tokens ---- */

static int
get_inline(struct cload *cl, const struct node *n, void *obj)
{
	conf_findkey(cl, n, FIND_ERROR, "config.secret_inline",
	    "a secret does not stand in a file; use token_env, token_file or "
	    "token_sha256");
	return 0;
}

static int
check_file(struct cload *cl, const struct node *n)
{
	if (*n->s == '/')
		return 0;
	conf_find(cl, n, FIND_ERROR, "config.type",
	    "\"token_file\" is an absolute path");
	return -1;
}

#define OFF(f) offsetof(struct token_in, f)
static const struct ckey token_keys[] = {
    {"id", K_STR, CK_NEED, OFF(id), .check = check_name},
    {"roles", K_LIST, 0, OFF(roles), .check = check_name},
    {"token", K_FUNC, CK_ALIAS, .get = get_inline},
    {"token_env", K_STR, 0, OFF(env), .check = check_env_name},
    {"token_file", K_STR, 0, OFF(file), .check = check_file},
    {"token_sha256", K_STR, 0, OFF(digest)},
    {NULL},
};
#undef OFF

static void
token_in_clear(struct token_in *t)
{
	free(t->id);
	strlist_clear(&t->roles);
	free(t->env);
	free(t->file);
	free(t->digest);
}

/* The digest from the one source that was named; 0, or -1 after a finding. */
static int
token_secret(struct cload *cl, const struct node *n, const struct token_in *t,
    uint8_t digest[32])
{
	int n_sources =
	    (t->env != NULL) + (t->file != NULL) + (t->digest != NULL);

	if (node_get(n, "token") != NULL)
		return -1;
	if (n_sources > 1) {
		conf_find(cl, n, FIND_ERROR, "config.type",
		    "a token has one of token_env, token_file and "
		    "token_sha256");
		return -1;
	}
	if (t->env != NULL)
		return secret_from_env(cl, node_get(n, "token_env"), digest);
	if (t->file != NULL)
		return secret_from_file(cl, node_get(n, "token_file"), digest);
	if (t->digest != NULL)
		return secret_from_digest(
		    cl, node_get(n, "token_sha256"), digest);
	/* A source of the wrong type is a finding already. */
	if (node_get(n, "token_env") == NULL &&
	    node_get(n, "token_file") == NULL &&
	    node_get(n, "token_sha256") == NULL)
		conf_find(cl, n, FIND_ERROR, "config.auth_secret_missing",
		    "a token needs token_env, token_file or token_sha256");
	return -1;
}

/* 1 when no principal before has that id; else 0 after the finding. */
static int
id_free(struct cload *cl, const struct node *n, const char *id)
{
	int used;

	if (strcmp(id, "anonymous") == 0) {
		conf_find(cl, n, FIND_ERROR, "config.reserved_id",
		    "the id \"anonymous\" is reserved");
		return 0;
	}
	if ((used = confids_has(&cl->ids, cl->c, id)))
		conf_find(cl, n, FIND_ERROR, "config.duplicate_id",
		    "the id \"%s\" is used already", id);
	return !used;
}

/* 1 when the token may stand beside those before it. */
static int
token_unique(struct cload *cl, const struct node *n, const struct token_in *t,
    const uint8_t *digest)
{
	const struct conf_token *same;

	if (!id_free(cl, node_get(n, "id"), t->id))
		return 0;
	if (digest == NULL ||
	    (same = confids_secret(&cl->ids, cl->c, digest)) == NULL)
		return 1;
	conf_find(cl, n, FIND_ERROR, "config.duplicate_id",
	    "\"%s\" and \"%s\" have the same secret", same->id, t->id);
	return 0;
}

/* Append and take id and roles. */
static int
token_push(struct cload *cl, struct token_in *t, const uint8_t *digest)
{
	struct conf *c = cl->c;
	struct conf_token *v;

	if ((v = conf_room(c->tokens, c->ntokens, sizeof(*v))) == NULL)
		return conf_nomem(cl);
	c->tokens = v;
	v += c->ntokens++;
	v->id = t->id;
	v->roles = t->roles;
	memcpy(v->digest, digest, 32);
	t->id = NULL;
	memset(&t->roles, 0, sizeof(t->roles));
	return confids_token(&cl->ids, c) == -1 ? conf_nomem(cl) : 0;
}

static void
check_roles(struct cload *cl, const struct node *n, const struct strlist *roles)
{
	if (roles->n > ABX_MAX_ROLES)
		conf_find(cl, node_get(n, "roles"), FIND_ERROR, "config.type",
		    "a principal has at most %d roles", ABX_MAX_ROLES);
}

static int
token_read(struct cload *cl, const struct node *n)
{
	struct token_in t = {0};
	uint8_t digest[32];
	int error, have;

	error = conf_object(cl, n, token_keys, &t);
	check_roles(cl, n, &t.roles);
	if (error == 0) {
		have = token_secret(cl, n, &t, digest) == 0;
		if (t.id != NULL &&
		    token_unique(cl, n, &t, have ? digest : NULL) && have)
			error = token_push(cl, &t, digest);
	}
	explicit_bzero(digest, sizeof(digest));
	token_in_clear(&t);
	return error;
}

static int
get_tokens(struct cload *cl, const struct node *n, void *obj)
{
	return conf_each(cl, n, "a list of tokens", token_read);
}

static int
put_tokens(struct out *o, const void *obj)
{
	const struct conf *c = obj;
	char hex[65];
	size_t i;

	out_lit(o, "[");
	for (i = 0; i < c->ntokens; i++) {
		hex_encode(c->tokens[i].digest, 32, hex);
		out_lit(o, i > 0 ? ",{\"id\":" : "{\"id\":");
		out_str(o, c->tokens[i].id);
		out_lit(o, ",\"roles\":");
		out_list(o, &c->tokens[i].roles);
		out_lit(o, ",\"token_sha256\":");
		out_str(o, hex);
		out_lit(o, "}");
	}
	out_lit(o, "]");
	return 1;
}

/* ---- peers of unix sockets ---- */

#define OFF(f) offsetof(struct conf_peer, f)
static const struct ckey peer_keys[] = {
    {"id", K_STR, CK_NEED, OFF(id), .check = check_name},
    {"roles", K_LIST, 0, OFF(roles), .check = check_name},
    {"uid", K_U32, CK_NEED, OFF(uid), 0, UINT32_MAX - 1},
    {NULL},
};
#undef OFF

static int
uid_free(struct cload *cl, const struct node *n, uint32_t uid)
{
	const struct conf_peer *same = confids_uid(&cl->ids, cl->c, uid);

	if (same == NULL)
		return 1;
	conf_find(cl, node_get(n, "uid"), FIND_ERROR, "config.duplicate_id",
	    "the uid %u is the peer \"%s\" already", uid, same->id);
	return 0;
}

/* Append and take id and roles. */
static int
peer_push(struct cload *cl, struct conf_peer *p)
{
	struct conf *c = cl->c;
	struct conf_peer *v;

	if ((v = conf_room(c->peers, c->npeers, sizeof(*v))) == NULL)
		return conf_nomem(cl);
	c->peers = v;
	c->peers[c->npeers++] = *p;
	memset(p, 0, sizeof(*p));
	return confids_peer(&cl->ids, c) == -1 ? conf_nomem(cl) : 0;
}

static int
peer_read(struct cload *cl, const struct node *n)
{
	struct conf_peer p = {0};
	size_t before = conf_errors(cl);
	int error;

	error = conf_object(cl, n, peer_keys, &p);
	check_roles(cl, n, &p.roles);
	if (error == 0 && conf_errors(cl) == before &&
	    id_free(cl, node_get(n, "id"), p.id) && uid_free(cl, n, p.uid))
		error = peer_push(cl, &p);
	free(p.id);
	strlist_clear(&p.roles);
	return error;
}

static int
get_peers(struct cload *cl, const struct node *n, void *obj)
{
	return conf_each(cl, n, "a list of peers", peer_read);
}

static int
put_peers(struct out *o, const void *obj)
{
	const struct conf *c = obj;
	size_t i;

	out_lit(o, "[");
	for (i = 0; i < c->npeers; i++) {
		if (i > 0)
			out_lit(o, ",");
		out_object(o, peer_keys, &c->peers[i]);
	}
	out_lit(o, "]");
	return c->npeers > 0;
}

#define OFF(f) offsetof(struct conf, f)
const struct ckey auth_keys[] = {
    {"anonymous", K_BOOL, 0, OFF(anonymous)},
    {"anonymous_health", K_BOOL, 0, OFF(anonymous_health)},
    {"exec", K_LATER},
    {"open", K_BOOL, CK_CANON, OFF(open_mode)},
    {"peers", K_FUNC, .get = get_peers, .put = put_peers},
    {"tokens", K_FUNC, .get = get_tokens, .put = put_tokens},
    {NULL},
};
#undef OFF

/* ---- what follows from all of it ---- */

static int
token_var_set(const struct cload *cl)
{
	uint8_t digest[32];
	int set = conf_env(cl, TOKEN_VAR) != NULL ||
		  start_digest(cl, TOKEN_VAR, digest) == 0;

	explicit_bzero(digest, sizeof(digest));
	return set;
}

/* ABX_SERVER_TOKEN without an "auth" block; 1 when it made a principal or a
 * finding, 0 when it is not set. */
static int
single_token(struct cload *cl)
{
	struct token_in t = {0};
	static char name[] = TOKEN_VAR;
	struct node n = {.type = N_STR,
	    .file = "environment",
	    .s = name,
	    .len = sizeof(name) - 1};
	uint8_t digest[32];

	if (!token_var_set(cl))
		return 0;
	if (secret_of_variable(cl, &n, digest) == -1)
		return 1;
	if ((t.id = strdup("token")) == NULL ||
	    strlist_add(&t.roles, "admin", 5) == -1 ||
	    token_push(cl, &t, digest) == -1)
		conf_nomem(cl);
	token_in_clear(&t);
	explicit_bzero(digest, sizeof(digest));
	return 1;
}

static int
list_empty(const struct node *n, const char *key)
{
	const struct node *l = node_get(n, key);

	return l == NULL || l->n == 0;
}

int
conf_auth_finish(struct cload *cl)
{
	const struct node *n = cl->auth;

	if (cl->canon)
		return 0;
	if (strlist_add(&cl->secret_names, TOKEN_VAR, strlen(TOKEN_VAR)) == -1)
		return conf_nomem(cl);
	if (n == NULL) {
		cl->c->open_mode = !single_token(cl);
		return 0;
	}
	if (token_var_set(cl))
		conf_findkey(cl, n, FIND_WARN, "config.token_unused",
		    TOKEN_VAR " is ignored beside \"auth\"");
	/* Tokens that are wrong are findings of their own. */
	if (n->type == N_OBJ && cl->c->ntokens + cl->c->npeers == 0 &&
	    !cl->c->anonymous && list_empty(n, "tokens") &&
	    list_empty(n, "peers"))
		conf_findkey(cl, n, FIND_ERROR, "config.auth_secret_missing",
		    "\"auth\" names no credential");
	return 0;
}
