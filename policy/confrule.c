/*
 * SPDX-License-Identifier: ISC
 *
 * Rules: one object of the list "rules" into struct rule.  "paths" and
 * "commands" mean scopes in an allow and patterns in a deny, so the kind of a
 * rule is known before its table is read.
 */
#include <stdlib.h>
#include <string.h>

#include "common/size.h"
#include "policy/confkey.h"

/* ---- selectors ---- */

/* One selector: 1 to keep it, 0 after a finding. */
static int
selector_ok(struct cload *cl, const struct node *n, int lenient)
{
	const char *hint, *of = n->of != NULL ? n->of : "allow";
	int bad = selector_rank(n->s) == SEL_BAD;

	/* In a canonical text it was said already. */
	if (!bad && (selector_known(n->s) || cl->canon))
		return 1;
	if (!bad && lenient) {
		conf_find(cl, n, FIND_WARN, "config.selector_matches_nothing",
		    "\"%.80s\": the selector \"%.80s\" matches no operation",
		    of, n->s);
		return 1;
	}
	hint = selector_suggest(n->s);
	conf_find(cl, n, FIND_ERROR, "config.unknown_selector",
	    hint != NULL
		? "\"%.80s\": the selector \"%.80s\" matches no operation; "
		  "did you mean \"%s\"?"
		: "\"%.80s\": the selector \"%.80s\" matches no operation",
	    of, n->s, hint);
	return 0;
}

int
conf_selectors(
    struct cload *cl, const struct node *n, struct strlist *l, int lenient)
{
	const struct node *c = n->type == N_LIST ? n->child : n;

	if (n->type != N_STR && n->type != N_LIST) {
		conf_type(cl, n, "a selector or a list of them");
		return 0;
	}
	if (c == NULL)
		conf_find(cl, n, FIND_ERROR, "config.empty_rule",
		    "the rule names no operation");
	for (; c != NULL; c = n->type == N_LIST ? c->next : NULL) {
		if (c->type != N_STR)
			conf_type(cl, c, "a selector");
		else if (selector_ok(cl, c, lenient) &&
			 strlist_add(l, c->s, c->len) == -1)
			return conf_nomem(cl);
	}
	return 0;
}

static int
get_selectors(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;

	return conf_selectors(cl, n, &r->sel, r->lenient);
}

static int
put_allow(struct out *o, const void *obj)
{
	const struct rule *r = obj;

	if (!r->deny)
		out_list(o, &r->sel);
	return !r->deny;
}

static int
put_deny(struct out *o, const void *obj)
{
	const struct rule *r = obj;

	if (r->deny)
		out_list(o, &r->sel);
	return r->deny;
}

/* ---- paths ---- */

/* 1 when some operation has a path parameter of that name for "paths". */
static int
param_known(const char *name)
{
	const struct op_param *p;
	size_t i;

	for (i = 0; i < OP_COUNT; i++)
		if ((p = op_param_find(&ops[i], name)) != NULL &&
		    (p->type == T_PATH || p->type == T_PATHLIST) &&
		    (p->roles & ~(unsigned)R_CWD) != 0)
			return 1;
	return 0;
}

/* An object is one scope, unless each key is a parameter or unknown and none
 * is a key of a scope. */
static int
is_per_param(const struct node *n)
{
	const struct node *c;

	if (n->type != N_OBJ || n->n == 0)
		return 0;
	for (c = n->child; c != NULL; c = c->next)
		if (ckey_find(path_keys, c->key) != NULL)
			return 0;
	for (c = n->child; c != NULL; c = c->next)
		if (param_known(c->key))
			return 1;
	return 0;
}

static int
param_add(struct cload *cl, const struct node *c, struct rule *r)
{
	struct param_scope *v;

	v = recallocarray(r->params, r->nparams, r->nparams + 1, sizeof(*v));
	if (v == NULL)
		return conf_nomem(cl);
	r->params = v;
	v += r->nparams;
	if ((v->param = strdup(c->key)) == NULL)
		return conf_nomem(cl);
	r->nparams++;
	path_scope_init(&v->scope);
	return conf_path_scope(cl, c, &v->scope);
}

static int
param_cmp(const void *a, const void *b)
{
	const struct param_scope *x = a, *y = b;

	return strcmp(x->param, y->param);
}

static int
get_params(struct cload *cl, const struct node *n, struct rule *r)
{
	static const char *const names[] = {
	    "path", "src", "dst", "root", "sources", "dest", NULL};
	const struct node *c;

	for (c = n->child; c != NULL; c = c->next) {
		if (c->dup)
			continue;
		if (!param_known(c->key))
			conf_unknown(cl, c, path_keys, names);
		else if (param_add(cl, c, r) == -1)
			return -1;
	}
	if (r->nparams > 1)
		qsort(r->params, r->nparams, sizeof(*r->params), param_cmp);
	return 0;
}

static int
get_paths(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;

	if (r->deny)
		return conf_strings(cl, n, &r->deny_paths, check_glob);
	r->has_paths = 1;
	if (is_per_param(n))
		return get_params(cl, n, r);
	return conf_path_scope(cl, n, &r->paths);
}

static int
put_paths(struct out *o, const void *obj)
{
	const struct rule *r = obj;
	size_t i;

	if (r->deny) {
		out_list(o, &r->deny_paths);
		return r->deny_paths.n > 0;
	}
	if (!r->has_paths)
		return 0;
	if (r->nparams == 0)
		return put_path_scope(o, &r->paths);
	for (i = 0; i < r->nparams; i++) {
		out_lit(o, i == 0 ? "{" : ",");
		out_str(o, r->params[i].param);
		out_lit(o, ":");
		put_path_scope(o, &r->params[i].scope);
	}
	out_lit(o, "}");
	return 1;
}

/* ---- commands, urls, limits ---- */

static int
get_commands(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;

	if (r->deny)
		return conf_strings(cl, n, &r->deny_commands, check_argv_deny);
	r->has_commands = 1;
	return conf_command_scope(cl, n, &r->commands);
}

static int
put_commands(struct out *o, const void *obj)
{
	const struct rule *r = obj;

	if (r->deny)
		out_list(o, &r->deny_commands);
	else if (r->has_commands)
		out_object(o, command_keys, &r->commands);
	return r->deny ? r->deny_commands.n > 0 : r->has_commands;
}

static int
get_urls(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;

	if (r->deny)
		return conf_strings(cl, n, &r->deny_urls, check_url_pattern);
	r->has_urls = 1;
	return conf_url_scope(cl, n, &r->urls);
}

static int
put_urls(struct out *o, const void *obj)
{
	const struct rule *r = obj;

	if (r->deny)
		out_list(o, &r->deny_urls);
	else if (r->has_urls)
		out_object(o, url_keys, &r->urls);
	return r->deny ? r->deny_urls.n > 0 : r->has_urls;
}

static int
get_agent(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;

	if (r->deny) {
		conf_findkey(cl, n, FIND_ERROR, "config.type",
		    "a deny has no agent scope");
		return 0;
	}
	r->has_agent = 1;
	return conf_agent_scope(cl, n, &r->agent);
}

static int
put_agent(struct out *o, const void *obj)
{
	const struct rule *r = obj;

	if (r->has_agent)
		out_object(o, agent_keys, &r->agent);
	return r->has_agent;
}

static int
get_limits(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;

	if (r->deny) {
		conf_findkey(
		    cl, n, FIND_ERROR, "config.type", "a deny has no limits");
		return 0;
	}
	return conf_object(cl, n, limit_keys, &r->limits);
}

static int
put_limits(struct out *o, const void *obj)
{
	const struct rule *r = obj;

	if (r->deny)
		return 0;
	out_object(o, limit_keys, &r->limits);
	return 1;
}

/* ---- where it came from ---- */

/* "FILE:LINE:COLUMN" of a canonical text. */
static int
get_at(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;
	const char *col, *line;
	uint64_t c, l;

	if (n->type == N_STR && (col = strrchr(n->s, ':')) != NULL &&
	    (line = memrchr(n->s, ':', (size_t)(col - n->s))) != NULL &&
	    uint_parse(line + 1, (size_t)(col - line - 1), UINT32_MAX, &l) ==
		0 &&
	    uint_parse(col + 1, strlen(col + 1), UINT32_MAX, &c) == 0) {
		free(r->at.file);
		r->at.file = strndup(n->s, (size_t)(line - n->s));
		r->at.line = (unsigned)l;
		r->at.col = (unsigned)c;
		return r->at.file == NULL ? conf_nomem(cl) : 0;
	}
	conf_type(cl, n, "FILE:LINE:COLUMN");
	return 0;
}

static int
put_at(struct out *o, const void *obj)
{
	const struct rule *r = obj;
	char *s;

	if (r->at.file == NULL)
		return 0;
	if (asprintf(&s, "%s:%u:%u", r->at.file, r->at.line, r->at.col) == -1) {
		o->w.err = 1;
		return 0;
	}
	out_str(o, s);
	free(s);
	return 1;
}

static int
get_unmount(struct cload *cl, const struct node *n, void *obj)
{
	struct rule *r = obj;

	r->unmount = n->type == N_BOOL && n->b;
	return 0;
}

static int
put_unmount(struct out *o, const void *obj)
{
	const struct rule *r = obj;

	if (r->unmount)
		out_lit(o, "true");
	return r->unmount;
}

/* ---- the table ---- */

#define OFF(f) offsetof(struct rule, f)
const struct ckey rule_keys[] = {
    {"agent", K_FUNC, .get = get_agent, .put = put_agent},
    {"allow", K_FUNC, .get = get_selectors, .put = put_allow},
    {"at", K_FUNC, CK_CANON | CK_ORIGIN, .get = get_at, .put = put_at},
    {"authorize", K_LATER},
    {"commands", K_FUNC, .get = get_commands, .put = put_commands},
    {"deny", K_FUNC, .get = get_selectors, .put = put_deny},
    {"examples", K_FUNC, .get = get_examples},
    {"layer", K_U32, CK_CANON, OFF(layer), LAYER_CLI, LAYER_OPERATOR},
    {"limits", K_FUNC, .get = get_limits, .put = put_limits},
    {"name", K_STR, 0, OFF(name), .check = check_nonempty},
    {"paths", K_FUNC, .get = get_paths, .put = put_paths},
    {"preset", K_STR, CK_CANON, OFF(preset), .check = check_name},
    {"principals", K_LIST, 0, OFF(principals), .check = check_principal},
    {"reason", K_STR, 0, OFF(reason), .check = check_nonempty},
    {"sandbox", K_LATER},
    {"strict", K_NBOOL, 0, OFF(lenient)},
    {"unmount", K_FUNC, CK_CANON, .get = get_unmount, .put = put_unmount},
    {"urls", K_FUNC, .get = get_urls, .put = put_urls},
    {NULL},
};
#undef OFF
_Static_assert(sizeof(enum conf_layer) == sizeof(uint32_t), "layer as K_U32");

int
conf_rule_push(struct cload *cl, struct rule *r)
{
	struct conf_rules *rs = cl->c->rules;
	struct rule *v;

	if ((v = conf_room(rs->v, rs->n, sizeof(*v))) == NULL)
		return conf_nomem(cl);
	rs->v = v;
	rs->v[rs->n++] = *r;
	memset(r, 0, sizeof(*r));
	return 0;
}

/* Decide what kind of rule it is; 0, or -1 after a finding. */
static int
rule_kind(struct cload *cl, const struct node *n, struct rule *r)
{
	const struct node *allow = node_get(n, "allow"),
			  *deny = node_get(n, "deny"),
			  *strict = node_get(n, "strict");

	r->deny = deny != NULL;
	cl->rule_sel = deny != NULL ? deny : allow;
	r->lenient = strict != NULL && strict->type == N_BOOL && !strict->b;
	if (allow != NULL && deny != NULL)
		conf_findkey(cl, allow->kline > deny->kline ? allow : deny,
		    FIND_ERROR, "config.type",
		    "a rule has either \"allow\" or \"deny\"");
	else if (allow == NULL && deny == NULL)
		conf_find(cl, n, FIND_ERROR, "config.empty_rule",
		    "a rule has \"allow\" or \"deny\" with a selector");
	else if (allow != NULL && layer_restricts(cl->layer))
		conf_findkey(cl, allow, FIND_ERROR, "config.layer_cannot_allow",
		    "a rule of this layer can only deny");
	else
		return 0;
	return -1;
}

static int
rule_read(struct cload *cl, const struct node *n)
{
	const struct node *who = node_get(n, "principals");
	size_t before = conf_errors(cl);
	struct rule r;
	int usable, error;

	rule_init(&r);
	r.layer = cl->layer;
	origin_set(cl, &r.at, n);
	/* Even a rule that is dropped is read, for all its findings. */
	usable = rule_kind(cl, n, &r) == 0;
	error = conf_object(cl, n, rule_keys, &r);
	/* No principals, or all wrong, must not come to mean everyone. */
	if (!cl->canon && who != NULL && who->type == N_LIST && who->n == 0)
		conf_findkey(cl, who, FIND_ERROR, "config.empty_rule",
		    "the rule is for nobody; without \"principals\" it is for "
		    "everybody");
	r.flawed = conf_errors(cl) > before;
	if (r.flawed && who != NULL && r.principals.n == 0)
		usable = 0;
	if (error == 0 && usable && r.sel.n > 0)
		error = conf_rule_push(cl, &r);
	rule_clear(&r);
	return error;
}

int
conf_rules_add(struct cload *cl, const struct node *list)
{
	return conf_each(cl, list, "a list of rules", rule_read);
}
