/*
 * SPDX-License-Identifier: ISC
 *
 * Constructors and destructors of the model.  The defaults of scopes are
 * written here and nowhere else (server.json(5), "Scopes").
 */
#include "policy/model.h"

#include <stdlib.h>
#include <string.h>

/* Append constant words; 0 or -1. */
static int
words_add(struct strlist *l, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strlist_add(l, *words, strlen(*words)) == -1)
			return -1;
	return 0;
}

static int
str_copy(char **dst, const char *src)
{
	if (src == NULL)
		return 0;
	return (*dst = strdup(src)) == NULL ? -1 : 0;
}

void
path_scope_init(struct path_scope *s)
{
	memset(s, 0, sizeof(*s));
	s->create_dirs = 1;
	s->max_bytes = LIMIT_NONE;
}

void
path_scope_clear(struct path_scope *s)
{
	strlist_clear(&s->roots);
	strlist_clear(&s->deny);
	memset(s, 0, sizeof(*s));
}

int
path_scope_copy(struct path_scope *dst, const struct path_scope *src)
{
	*dst = *src;
	memset(&dst->roots, 0, sizeof(dst->roots));
	memset(&dst->deny, 0, sizeof(dst->deny));
	if (strlist_copy(&dst->roots, &src->roots) == -1 ||
	    strlist_copy(&dst->deny, &src->deny) == -1) {
		path_scope_clear(dst);
		return -1;
	}
	return 0;
}

int
command_scope_init(struct command_scope *s)
{
	static const char *const dirs[] = {
	    "/usr/bin", "/bin", "/usr/local/bin", NULL};
	static const char *const pass[] = {"PATH", "LANG", "HOME", NULL};
	static const char *const sigs[] = {"TERM", "INT", "KILL", "HUP", NULL};

	memset(s, 0, sizeof(*s));
	path_scope_init(&s->cwd);
	s->timeout_ms = 60 * 1000;
	s->max_output = 1000 * 1000;
	s->cpu_s = 30;
	s->memory = 512ULL * 1000 * 1000;
	s->processes = 64;
	if (words_add(&s->exec_dirs, dirs) == -1 ||
	    words_add(&s->env_pass, pass) == -1 ||
	    words_add(&s->signals, sigs) == -1) {
		command_scope_clear(s);
		return -1;
	}
	return 0;
}

void
command_scope_clear(struct command_scope *s)
{
	strlist_clear(&s->allow);
	strlist_clear(&s->deny);
	strlist_clear(&s->exec_dirs);
	path_scope_clear(&s->cwd);
	strlist_clear(&s->env_pass);
	strlist_clear(&s->env_set);
	strlist_clear(&s->env_deny);
	strlist_clear(&s->env_fixed);
	strlist_clear(&s->signals);
	free(s->sandbox);
	memset(s, 0, sizeof(*s));
}

/* The lists of a command scope, for copying. */
static const size_t command_lists[] = {
    offsetof(struct command_scope, allow),
    offsetof(struct command_scope, deny),
    offsetof(struct command_scope, exec_dirs),
    offsetof(struct command_scope, env_pass),
    offsetof(struct command_scope, env_set),
    offsetof(struct command_scope, env_deny),
    offsetof(struct command_scope, env_fixed),
    offsetof(struct command_scope, signals),
};

static int
command_scope_copy(struct command_scope *dst, const struct command_scope *src)
{
	size_t i;
	int error = 0;

	*dst = *src;
	dst->sandbox = NULL;
	for (i = 0; i < nitems(command_lists); i++)
		memset(
		    (char *)dst + command_lists[i], 0, sizeof(struct strlist));
	error |= path_scope_copy(&dst->cwd, &src->cwd);
	error |= str_copy(&dst->sandbox, src->sandbox);
	for (i = 0; i < nitems(command_lists); i++)
		error |= strlist_copy(
		    (struct strlist *)(void *)((char *)dst + command_lists[i]),
		    (const struct strlist *)(const void *)((const char *)src +
							   command_lists[i]));
	if (error != 0) {
		command_scope_clear(dst);
		return -1;
	}
	return 0;
}

int
url_scope_init(struct url_scope *s)
{
	memset(s, 0, sizeof(*s));
	s->block_private = 1;
	if (strlist_add(&s->schemes, "https", 5) == -1 ||
	    strlist_add(&s->paths, "/**", 3) == -1) {
		url_scope_clear(s);
		return -1;
	}
	return 0;
}

void
url_scope_clear(struct url_scope *s)
{
	strlist_clear(&s->hosts);
	strlist_clear(&s->schemes);
	strlist_clear(&s->paths);
	memset(s, 0, sizeof(*s));
}

int
url_scope_copy(struct url_scope *dst, const struct url_scope *src)
{
	*dst = *src;
	memset(&dst->hosts, 0, sizeof(dst->hosts));
	memset(&dst->schemes, 0, sizeof(dst->schemes));
	memset(&dst->paths, 0, sizeof(dst->paths));
	if (strlist_copy(&dst->hosts, &src->hosts) == -1 ||
	    strlist_copy(&dst->schemes, &src->schemes) == -1 ||
	    strlist_copy(&dst->paths, &src->paths) == -1) {
		url_scope_clear(dst);
		return -1;
	}
	return 0;
}

void
agent_scope_init(struct agent_scope *s)
{
	memset(s, 0, sizeof(*s));
	path_scope_init(&s->workdir);
}

void
agent_scope_clear(struct agent_scope *s)
{
	path_scope_clear(&s->workdir);
	strlist_clear(&s->commands);
	strlist_clear(&s->models);
	memset(s, 0, sizeof(*s));
}

int
agent_scope_copy(struct agent_scope *dst, const struct agent_scope *src)
{
	*dst = *src;
	memset(&dst->commands, 0, sizeof(dst->commands));
	memset(&dst->models, 0, sizeof(dst->models));
	if (path_scope_copy(&dst->workdir, &src->workdir) == -1 ||
	    strlist_copy(&dst->commands, &src->commands) == -1 ||
	    strlist_copy(&dst->models, &src->models) == -1) {
		agent_scope_clear(dst);
		return -1;
	}
	return 0;
}

void
limit_set_init(struct limit_set *l)
{
	memset(l, 0, sizeof(*l));
	l->max_bytes = l->max_entries = l->timeout_ms = l->max_output =
	    l->cpu_s = l->memory = l->processes = LIMIT_NONE;
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Milliseconds in which a bucket of count tokens fills at that rate. */
static uint64_t
fill_time(uint64_t count, const struct limit_set *l)
{
	return (count * l->rate_period_ms + l->rate_count - 1) / l->rate_count;
}

/* Neither more at once nor more in the long run than each of the two; counts
 * are below 2^32 and periods at most an hour. */
static void
rate_least(struct limit_set *l, const struct limit_set *m)
{
	uint64_t count, a, b;

	if (m->rate_count == 0)
		return;
	if (l->rate_count == 0) {
		l->rate_count = m->rate_count;
		l->rate_period_ms = m->rate_period_ms;
		return;
	}
	count = least(l->rate_count, m->rate_count);
	a = fill_time(count, l);
	b = fill_time(count, m);
	l->rate_count = (uint32_t)count;
	l->rate_period_ms = a > b ? a : b;
}

void
limit_set_least(struct limit_set *l, const struct limit_set *m)
{
	l->max_bytes = least(l->max_bytes, m->max_bytes);
	l->max_entries = least(l->max_entries, m->max_entries);
	l->timeout_ms = least(l->timeout_ms, m->timeout_ms);
	l->max_output = least(l->max_output, m->max_output);
	l->cpu_s = least(l->cpu_s, m->cpu_s);
	l->memory = least(l->memory, m->memory);
	l->processes = least(l->processes, m->processes);
	rate_least(l, m);
	if (m->concurrency != 0 &&
	    (l->concurrency == 0 || m->concurrency < l->concurrency))
		l->concurrency = m->concurrency;
}

void
rule_init(struct rule *r)
{
	memset(r, 0, sizeof(*r));
	path_scope_init(&r->paths);
	path_scope_init(&r->commands.cwd);
	agent_scope_init(&r->agent);
	limit_set_init(&r->limits);
}

void
example_clear(struct example *e)
{
	args_clear(&e->args);
	free(e->id);
	strlist_clear(&e->roles);
	free(e->session);
	free(e->code);
	free(e->at.file);
	memset(e, 0, sizeof(*e));
}

void
rule_clear(struct rule *r)
{
	size_t i;

	for (i = 0; i < r->nexamples; i++)
		example_clear(&r->examples[i]);
	free(r->examples);

	strlist_clear(&r->sel);
	strlist_clear(&r->principals);
	path_scope_clear(&r->paths);
	for (i = 0; i < r->nparams; i++) {
		free(r->params[i].param);
		path_scope_clear(&r->params[i].scope);
	}
	free(r->params);
	command_scope_clear(&r->commands);
	url_scope_clear(&r->urls);
	agent_scope_clear(&r->agent);
	strlist_clear(&r->deny_paths);
	strlist_clear(&r->deny_commands);
	strlist_clear(&r->deny_urls);
	free(r->reason);
	free(r->name);
	free(r->preset);
	free(r->at.file);
	memset(r, 0, sizeof(*r));
}

static int
params_copy(struct rule *dst, const struct rule *src)
{
	struct param_scope *p;

	if (src->nparams == 0)
		return 0;
	if ((dst->params = calloc(src->nparams, sizeof(*p))) == NULL)
		return -1;
	for (; dst->nparams < src->nparams; dst->nparams++) {
		p = &dst->params[dst->nparams];
		if (str_copy(&p->param, src->params[dst->nparams].param) == -1)
			return -1;
		if (path_scope_copy(
			&p->scope, &src->params[dst->nparams].scope) == -1) {
			free(p->param);
			p->param = NULL;
			return -1;
		}
	}
	return 0;
}

int
rule_copy(struct rule *dst, const struct rule *src)
{
	int error = 0;

	rule_init(dst);
	dst->deny = src->deny;
	dst->layer = src->layer;
	dst->has_paths = src->has_paths;
	dst->has_commands = src->has_commands;
	dst->has_urls = src->has_urls;
	dst->has_agent = src->has_agent;
	dst->limits = src->limits;
	dst->lenient = src->lenient;
	dst->unmount = src->unmount;
	dst->flawed = src->flawed;
	dst->at.line = src->at.line;
	dst->at.col = src->at.col;
	error |= strlist_copy(&dst->sel, &src->sel);
	error |= strlist_copy(&dst->principals, &src->principals);
	error |= path_scope_copy(&dst->paths, &src->paths);
	error |= params_copy(dst, src);
	error |= command_scope_copy(&dst->commands, &src->commands);
	error |= url_scope_copy(&dst->urls, &src->urls);
	error |= agent_scope_copy(&dst->agent, &src->agent);
	error |= strlist_copy(&dst->deny_paths, &src->deny_paths);
	error |= strlist_copy(&dst->deny_commands, &src->deny_commands);
	error |= strlist_copy(&dst->deny_urls, &src->deny_urls);
	error |= str_copy(&dst->reason, src->reason);
	error |= str_copy(&dst->name, src->name);
	error |= str_copy(&dst->preset, src->preset);
	error |= str_copy(&dst->at.file, src->at.file);
	if (error != 0) {
		rule_clear(dst);
		return -1;
	}
	return 0;
}

int
text_has_control(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return 1;
	return 0;
}
