/*
 * SPDX-License-Identifier: ISC
 *
 * Presets: names for short lists of rules (server.json(5), "Presets").  The
 * expansions are data; adding an operation to a group is the only way in which
 * a preset may grow, and the golden files of the tests show it.
 */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "policy/confkey.h"

/* Scopes of a rule; SC_URLS and SC_AGENT: left out without that parameter. */
enum preset_scope { SC_NONE, SC_PATHS, SC_COMMANDS, SC_URLS, SC_AGENT };
struct preset_rule {
	const char *const *sel; /* NULL ends the list of rules */
	enum preset_scope scope;
	const char *const *deny;
	int readonly;
	uint64_t max_bytes;	 /* 0: none */
	const char *const *argv; /* SC_COMMANDS */
	int shell;
};
/* Parameters besides "root". */
enum preset_param { PP_COMMANDS = 1, PP_URLS = 2, PP_AGENT = 4 };
struct preset {
	const char *name;
	const struct preset_rule *rules; /* NULL: not in this version */
	unsigned params;
};

static const char *const sel_core[] = {
    "core.health", "core.capabilities", NULL};
static const char *const sel_workspace[] = {"group:files", "core.check", NULL};
static const char *const deny_workspace[] = {
    "**/.env", "**/.git/hooks/**", "**/.ssh", NULL};

static const char *const sel_download[] = {
    "files.download", "files.stat", "files.list", NULL};
static const char *const deny_download[] = {"**/.env", NULL};
static const struct preset_rule download_only[] = {
    {sel_core},
    {sel_download, SC_PATHS, deny_download, 1, 10 * 1000 * 1000},
    {NULL},
};

static const char *const sel_read[] = {"group:files-read", "core.check", NULL};
static const char *const deny_read[] = {
    "**/.env", "**/*.pem", "**/*.key", "**/.ssh", "**/.git/config", NULL};
static const struct preset_rule read_only[] = {
    {sel_core},
    {sel_read, SC_PATHS, deny_read, 1},
    {NULL},
};

static const char *const sel_drop[] = {"files.upload", "files.mkdir", NULL};
static const struct preset_rule drop_box[] = {
    {sel_core},
    {sel_drop, SC_PATHS},
    {NULL},
};

static const struct preset_rule workspace_jail[] = {
    {sel_core},
    {sel_workspace, SC_PATHS, deny_workspace},
    {NULL},
};

static const char *const sel_exec[] = {"commands.run", "process.start",
    "process.signal", "process.list", "process.get", "process.output",
    "process.stdin", "process.wait", NULL};
static const char *const argv_exec[] = {"ls {path}", "cat {path}",
    "head -n {int} {path}", "wc -l {path}", "pwd", "true", NULL};
static const struct preset_rule workspace_exec[] = {
    {sel_core},
    {sel_workspace, SC_PATHS, deny_workspace},
    {sel_exec, SC_COMMANDS, deny_workspace, 0, 0, argv_exec},
    {NULL},
};

static const char *const sel_files_read[] = {"group:files-read", NULL};
static const char *const sel_run[] = {"commands.run", NULL};
static const char *const argv_ci[] = {
    "pytest -q", "make test", "git status", "git diff", NULL};
static const struct preset_rule ci_runner[] = {
    {sel_core},
    {sel_files_read, SC_PATHS, deny_read, 1},
    {sel_run, SC_COMMANDS, NULL, 1, 0, argv_ci},
    {NULL},
};

static const char *const sel_agents[] = {"agents.claude.run",
    "agents.codex.run", "agents.opencode.run", "agents.gemini.run",
    "agents.generic.run", NULL};
static const struct preset_rule agent_host[] = {
    {sel_core},
    {sel_agents, SC_AGENT},
    {NULL},
};

/* Never system.env.set, core.reload, an install or an agent's session. */
static const char *const sel_plain[] = {"group:core", "core.posture",
    "core.metrics", "group:system", "process.list", "process.get",
    "process.output", "process.stdin", "process.wait", "terminal.ticket",
    "terminal.attach", "terminal.resize", "terminal.close", "terminal.list",
    "workspace.list", "workspace.delete", "approvals.list", "approvals.decide",
    NULL};
static const char *const sel_files[] = {"group:files", NULL};
static const char *const sel_start[] = {
    "commands.run", "process.start", "process.signal", "terminal.create", NULL};
static const char *const argv_any[] = {"...", NULL};
static const char *const sel_net[] = {"group:net", NULL};
static const char *const sel_all_agents[] = {"group:agents", NULL};
static const struct preset_rule full_access[] = {
    {sel_core},
    {sel_plain},
    {sel_files, SC_PATHS},
    {sel_start, SC_COMMANDS, NULL, 0, 0, argv_any, 1},
    {sel_net, SC_URLS},
    {sel_all_agents, SC_AGENT},
    {NULL},
};

static const struct preset presets[] = {
    {"agent-host", agent_host},
    {"ci-runner", ci_runner},
    {"download-only", download_only},
    {"drop-box", drop_box},
    {"full-access", full_access, PP_URLS | PP_AGENT},
    {"legacy-compat", NULL},
    {"read-only", read_only},
    {"workspace-exec", workspace_exec, PP_COMMANDS},
    {"workspace-jail", workspace_jail},
};

/* One preset as a configuration names it. */
struct preset_in {
	const struct node *name, *root, *commands, *urls, *agent, *without;
};
/* The same, understood. */
struct preset_args {
	const struct preset *preset;
	const struct node *at; /* its name */
	struct path_scope root;
	struct strlist commands;
	int has_urls, has_agent;
	struct url_scope urls;
	struct agent_scope agent;
};

/* ---- names ---- */

/* Hyphen and underscore are the same in the name of a preset. */
static int
preset_same(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++)
		if (*a != *b && !(*a == '_' && *b == '-') &&
		    !(*a == '-' && *b == '_'))
			return 0;
	return *a == *b;
}

/* The preset of that name that can be expanded, NULL after a finding. */
static const struct preset *
preset_find(struct cload *cl, const struct node *n)
{
	struct suggest s;
	size_t i;

	suggest_init(&s, n->s);
	for (i = 0; i < nitems(presets); i++) {
		suggest_try(&s, presets[i].name);
		if (!preset_same(n->s, presets[i].name))
			continue;
		if (presets[i].rules != NULL)
			return &presets[i];
		conf_find(cl, n, FIND_ERROR, "config.not_supported",
		    "the preset \"%s\" is not supported by this version",
		    presets[i].name);
		return NULL;
	}
	if (s.best != NULL)
		conf_find(cl, n, FIND_ERROR, "config.unknown_preset",
		    "there is no preset \"%.80s\"; did you mean \"%s\"?", n->s,
		    s.best);
	else
		conf_find(cl, n, FIND_ERROR, "config.unknown_preset",
		    "there is no preset \"%.80s\"", n->s);
	return NULL;
}

/* ---- expansion ---- */

static int
add_words(struct strlist *l, const char *const *words)
{
	for (; words != NULL && *words != NULL; words++)
		if (strlist_add(l, *words, strlen(*words)) == -1)
			return -1;
	return 0;
}

static int
preset_scope(const struct preset_rule *pr, const struct path_scope *root,
    struct path_scope *s)
{
	if (path_scope_copy(s, root) == -1)
		return -1;
	s->readonly = pr->readonly;
	if (pr->max_bytes != 0)
		s->max_bytes = pr->max_bytes;
	return add_words(&s->deny, pr->deny);
}

static int
preset_commands(
    const struct preset_rule *pr, const struct preset_args *pa, struct rule *r)
{
	struct command_scope *s = &r->commands;
	size_t i;

	r->has_commands = 1;
	if (command_scope_init(s) == -1)
		return -1;
	s->has_cwd = 1;
	s->shell = pr->shell;
	if (preset_scope(pr, &pa->root, &s->cwd) == -1 ||
	    add_words(&s->allow, pr->argv) == -1)
		return -1;
	for (i = 0; i < pa->commands.n; i++)
		if (strlist_add(&s->allow, pa->commands.v[i],
			strlen(pa->commands.v[i])) == -1)
			return -1;
	return 0;
}

/* Without an own workdir an agent works in the root. */
static int
preset_agent(const struct preset_args *pa, struct rule *r)
{
	r->has_agent = 1;
	if (agent_scope_copy(&r->agent, &pa->agent) == -1)
		return -1;
	if (r->agent.workdir.roots.n > 0 || r->agent.workdir.anywhere)
		return 0;
	path_scope_clear(&r->agent.workdir);
	return path_scope_copy(&r->agent.workdir, &pa->root);
}

/* Fill one rule; 0, or -1 out of memory. */
static int
preset_rule(
    const struct preset_rule *pr, const struct preset_args *pa, struct rule *r)
{
	if (add_words(&r->sel, pr->sel) == -1)
		return -1;
	switch (pr->scope) {
	case SC_NONE:
		break;
	case SC_PATHS:
		r->has_paths = 1;
		return preset_scope(pr, &pa->root, &r->paths);
	case SC_COMMANDS:
		return preset_commands(pr, pa, r);
	case SC_URLS:
		r->has_urls = 1;
		return url_scope_copy(&r->urls, &pa->urls);
	case SC_AGENT:
		return preset_agent(pa, r);
	}
	return 0;
}

/* A rule whose parameter was not given is not there; an agent of a preset
 * that has no such parameter always is. */
static int
preset_rule_wanted(const struct preset_rule *pr, const struct preset_args *pa)
{
	if (pr->scope == SC_URLS)
		return pa->has_urls;
	return pr->scope != SC_AGENT || pa->has_agent ||
	       (pa->preset->params & PP_AGENT) == 0;
}

/* A rule that came from a preset, with where the preset was named. */
static int
preset_rule_init(
    struct cload *cl, struct rule *r, const char *preset, const struct node *at)
{
	rule_init(r);
	r->layer = cl->layer;
	origin_set(cl, &r->at, at);
	if ((r->preset = strdup(preset)) == NULL ||
	    asprintf(&r->name, "preset %s", preset) == -1) {
		r->name = NULL;
		return conf_nomem(cl);
	}
	return 0;
}

static int
preset_rules(struct cload *cl, const struct preset_args *pa)
{
	const struct preset_rule *pr;
	struct rule r;
	int error = 0;

	for (pr = pa->preset->rules; error == 0 && pr->sel != NULL; pr++) {
		if (!preset_rule_wanted(pr, pa))
			continue;
		error = preset_rule_init(cl, &r, pa->preset->name, pa->at);
		if (error == 0 && preset_rule(pr, pa, &r) == -1)
			error = conf_nomem(cl);
		if (error == 0)
			error = conf_rule_push(cl, &r);
		rule_clear(&r);
	}
	return error;
}

/* "without" beside a preset is a deny with a reason. */
static int
preset_without(struct cload *cl, const struct node *n, const char *name)
{
	struct rule r;
	int error;

	error = preset_rule_init(cl, &r, name, n);
	r.deny = 1;
	if (error == 0)
		error = conf_selectors(cl, n, &r.sel, 0);
	if (error == 0 &&
	    asprintf(&r.reason, "removed from preset %s", name) == -1) {
		r.reason = NULL;
		error = conf_nomem(cl);
	}
	if (error == 0 && r.sel.n > 0)
		error = conf_rule_push(cl, &r);
	rule_clear(&r);
	return error;
}

/* 1 when a parameter was given that the preset has. */
static int
param_given(struct cload *cl, const struct preset *p, enum preset_param which,
    const struct node *n)
{
	if (n == NULL)
		return 0;
	if ((p->params & which) != 0)
		return 1;
	conf_findkey(cl, n, FIND_ERROR, "config.type",
	    "the preset \"%s\" has no \"%s\"", p->name, n->key);
	return 0;
}

/* The parameters; findings tell what is wrong with them. */
static int
preset_args_read(
    struct cload *cl, const struct preset_in *in, struct preset_args *pa)
{
	const struct node *dir = in->root != NULL ? in->root : cl->root;
	const struct preset *p = pa->preset;

	if (param_given(cl, p, PP_COMMANDS, in->commands) &&
	    conf_strings(cl, in->commands, &pa->commands, check_argv) == -1)
		return -1;
	pa->has_urls = param_given(cl, p, PP_URLS, in->urls);
	if (pa->has_urls && conf_url_scope(cl, in->urls, &pa->urls) == -1)
		return -1;
	pa->has_agent = param_given(cl, p, PP_AGENT, in->agent);
	if (pa->has_agent && conf_agent_scope(cl, in->agent, &pa->agent) == -1)
		return -1;
	if (dir == NULL)
		return 0;
	return conf_value(cl, ckey_find(path_keys, "roots"), dir, &pa->root);
}

static void
preset_args_clear(struct preset_args *pa)
{
	path_scope_clear(&pa->root);
	strlist_clear(&pa->commands);
	url_scope_clear(&pa->urls);
	agent_scope_clear(&pa->agent);
}

static int
preset_expand(struct cload *cl, const struct preset_in *in)
{
	struct preset_args pa = {
	    .preset = preset_find(cl, in->name), .at = in->name};
	size_t before = conf_errors(cl);
	int error;

	if (pa.preset == NULL)
		return 0;
	path_scope_init(&pa.root);
	agent_scope_init(&pa.agent);
	error = preset_args_read(cl, in, &pa);
	if (error == 0 && pa.root.roots.n == 0 && conf_errors(cl) == before)
		conf_find(cl, in->name, FIND_ERROR, "config.root_required",
		    "the preset \"%s\" needs \"root\"", pa.preset->name);
	/* With a bad parameter the rules would only cause more findings. */
	if (error == 0 && conf_errors(cl) == before)
		error = preset_rules(cl, &pa);
	if (error == 0 && in->without != NULL)
		error = preset_without(cl, in->without, pa.preset->name);
	preset_args_clear(&pa);
	return error;
}

/* ---- what the configuration says ---- */

#define OFF(f) offsetof(struct preset_in, f)
static const struct ckey preset_keys[] = {
    {"agent", K_KEEP, 0, OFF(agent)},
    {"commands", K_KEEP, 0, OFF(commands)},
    {"name", K_KEEP, CK_NEED, OFF(name)},
    {"paths", K_KEEP, CK_ALIAS, OFF(root)},
    {"root", K_KEEP, 0, OFF(root)},
    {"urls", K_KEEP, 0, OFF(urls)},
    {"without", K_KEEP, 0, OFF(without)},
    {"workspace", K_KEEP, CK_ALIAS, OFF(root)},
    {NULL},
};
#undef OFF

static int
preset_read(struct cload *cl, const struct node *n)
{
	struct preset_in in = {0};

	if (conf_object(cl, n, preset_keys, &in) == -1)
		return -1;
	if (in.name == NULL)
		return 0;
	if (in.name->type != N_STR) {
		conf_type(cl, in.name, "a string");
		return 0;
	}
	return preset_expand(cl, &in);
}

/* The value of "preset": a name or a list of names. */
static int
preset_names(struct cload *cl, const struct node *n)
{
	const struct node *c = n->type == N_LIST ? n->child : n;
	struct preset_in in = {0};

	if (n->type != N_LIST && n->type != N_STR) {
		conf_type(cl, n, "the name of a preset or a list of them");
		return 0;
	}
	for (; c != NULL; c = n->type == N_LIST ? c->next : NULL) {
		in.name = c;
		if (c->type != N_STR)
			conf_type(cl, c, "a string");
		else if (preset_expand(cl, &in) == -1)
			return -1;
	}
	return 0;
}

/* Append the names that a list of presets holds, ", " between them. */
static void
names_join(const struct node *n, char *out, size_t size)
{
	const struct node *c = n == NULL || n->type != N_LIST ? n : n->child;
	const struct node *name;

	for (; c != NULL; c = n->type == N_LIST ? c->next : NULL) {
		name = c->type == N_OBJ ? node_get(c, "name") : c;
		if (name == NULL || name->type != N_STR)
			continue;
		if (*out != '\0')
			strlcat(out, ", ", size);
		strlcat(out, name->s, size);
	}
}

/* The top-level "without" speaks of all presets of the file. */
static int
top_without(struct cload *cl)
{
	char names[ABX_ID_MAX + 1] = "";

	if (cl->preset == NULL && cl->presets == NULL) {
		conf_findkey(cl, cl->without, FIND_ERROR, "config.empty_rule",
		    "\"without\" has no preset beside it");
		return 0;
	}
	names_join(cl->preset, names, sizeof(names));
	names_join(cl->presets, names, sizeof(names));
	/* The names may be wrong or cut; then they are a finding, or enough. */
	if (!utf8_valid(names, strlen(names)))
		names[0] = '\0';
	return preset_without(cl, cl->without, names);
}

int
conf_presets(struct cload *cl)
{
	const struct node *p = cl->preset, *ps = cl->presets;

	if (p != NULL && p->file == cl->file && preset_names(cl, p) == -1)
		return -1;
	if (ps != NULL && ps->file == cl->file &&
	    conf_each(cl, ps, "a list of presets", preset_read) == -1)
		return -1;
	if (cl->without != NULL && cl->without->file == cl->file &&
	    top_without(cl) == -1)
		return -1;
	if (cl->root != NULL && cl->root->file == cl->file && p == NULL &&
	    ps == NULL && (cl->w == NULL || cl->w->preset == NULL))
		conf_findkey(cl, cl->root, FIND_ERROR, "config.root_invalid",
		    "\"%s\" belongs to a preset, and none is named",
		    cl->root->key);
	return 0;
}

int
conf_preset_cli(struct cload *cl)
{
	struct node name = {.type = N_STR, .file = "command line"};
	struct node root = name;
	struct preset_in in = {.name = &name};
	int error = 0;

	if (cl->canon || cl->w == NULL)
		return 0;
	if (cl->w->preset == NULL) {
		if (cl->w->root != NULL)
			conf_find(cl, &root, FIND_ERROR, "config.root_invalid",
			    "-r belongs to -p, and none is given");
		return 0;
	}
	cl->layer = LAYER_CLI;
	if ((name.s = strdup(cl->w->preset)) == NULL)
		return conf_nomem(cl);
	name.len = strlen(name.s);
	if (cl->w->root != NULL) {
		if ((root.s = strdup(cl->w->root)) == NULL)
			error = conf_nomem(cl);
		else
			root.len = strlen(root.s);
		in.root = &root;
	}
	if (error == 0)
		error = preset_expand(cl, &in);
	free(name.s);
	free(root.s);
	return error;
}
