/*
 * SPDX-License-Identifier: ISC
 *
 * Puts the steps of a load in their order.  What is checked here, and not in
 * policy/, needs the file system or the user data base.
 */
#include "monitor/confset.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/confdirs.h"
#include "monitor/confwire.h"
#include "policy/model.h"

const char *
confset_severity(enum find_sev sev)
{
	return sev == FIND_WARN ? "warning" : "error";
}

/* Errors that nothing but another configuration can mend. */
static int
has_errors(const struct findings *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		if (f->v[i].sev == FIND_ERROR)
			return 1;
	return 0;
}

void
confset_say_why(struct confset *cs)
{
	if (confset_blocked(cs) && cs->found.n > 0 && !has_errors(&cs->found))
		findings_add(&cs->found, FIND_LINT, "config.lint_errors",
		    cs->files.file, 1, 1,
		    "not started for the lints above; "
		    "allow_lint_errors would start it all the same");
}

int
confset_blocked(const struct confset *cs)
{
	return cs->conf == NULL || cs->found.nomem ||
	       findings_block(&cs->found, cs->conf->allow_lint_errors);
}

static int
world_fill(struct confset *cs, const struct confset_opts *o)
{
	struct conf_world *w = &cs->world;
	int r;

	w->root_start = geteuid() == 0;
	r = confdirs_default(
	    w->root_start, o->env, &cs->state_dir, &cs->workspace_root);
	if (r == -1)
		return -1;
	w->preset = o->preset;
	w->root = o->root;
	w->listen = o->listen;
	w->require_auth = o->require_auth;
	w->default_state_dir = cs->state_dir;
	w->default_workspace_root = cs->workspace_root;
	w->env = o->env;
	w->token_file = conffile_token;
	w->arg = &cs->files;
	w->dir_check = conffile_dir;
	w->canonical = confdirs_canonical_cb;
	w->digests = o->digests;
	return 0;
}

/* Where a key stands, or the start of FILE when it stands nowhere. */
static struct origin
place(const struct confset *cs, const struct origin *at)
{
	if (at->file != NULL)
		return *at;
	return (struct origin){cs->files.file, 1, 1};
}

/* The system users are wanted only by a start as root. */
static void
check_users(struct confset *cs)
{
	static const char *const what[] = {"listener", "monitor", "run"};
	const struct passwd *pw;
	struct origin at;
	const char *name;
	size_t i;

	for (i = 0; i < nitems(what); i++) {
		if ((name = cs->conf->users[i]) == NULL)
			continue;
		at = place(cs, &cs->conf->rules->users_at[i]);
		if ((pw = getpwnam(name)) == NULL)
			findings_add(&cs->found, FIND_ERROR,
			    "config.user_missing", at.file, at.line, at.col,
			    "users.%s: there is no user %s (make users adds "
			    "the default ones)",
			    what[i], name);
		else if (pw->pw_uid == 0 || pw->pw_gid == 0)
			findings_add(&cs->found, FIND_ERROR,
			    "config.user_missing", at.file, at.line, at.col,
			    "users.%s: %s is root; name a user of its own "
			    "(make users adds the default ones)",
			    what[i], name);
	}
}

static void
check_group(struct confset *cs, const char *key, const char *name,
    const struct origin *o)
{
	struct origin at = place(cs, o);

	if (name != NULL && getgrnam(name) == NULL)
		findings_add(&cs->found, FIND_ERROR, "config.user_missing",
		    at.file, at.line, at.col,
		    "%s: there is no group %.80s; make it, or name another",
		    key, name);
}

/* Those that sockets are given to. */
static void
check_groups(struct confset *cs)
{
	size_t i;

	for (i = 0; i < cs->conf->nlisten; i++)
		check_group(cs, "listen", cs->conf->listen[i].group,
		    &cs->conf->rules->listen_at);
	check_group(cs, "control.group", cs->conf->control_group,
	    &cs->conf->rules->control_at);
}

static void
check_state(struct confset *cs)
{
	const struct origin *o = &cs->conf->rules->state_at;
	struct origin at = place(cs, o);
	uid_t uid = geteuid();
	struct passwd *pw;

	/* the one that was named is perhaps refused already */
	if (o->file != NULL && has_errors(&cs->found) &&
	    strcmp(cs->conf->state_dir, cs->state_dir) == 0)
		return;
	if (cs->world.root_start) {
		if ((pw = getpwnam(cs->conf->users[1])) == NULL)
			return; /* said by check_users */
		uid = pw->pw_uid;
	}
	confdirs_check_state(cs->conf->state_dir, uid, &at, &cs->found);
}

/* Nothing could be reached then.  1 after the finding. */
static int
protects_all(struct confset *cs)
{
	if (!strlist_has(&cs->protect, "/"))
		return 0;
	/* with errors it may be what one of them refused */
	if (!has_errors(&cs->found))
		findings_add(&cs->found, FIND_ERROR, "config.root_is_slash",
		    cs->files.file, 1, 1,
		    "the directory of this file, of an audit file or of the "
		    "run directory is /, and no caller could reach anything "
		    "in it: put them into directories of their own");
	return 1;
}

/* A deny holds however the way to the place is spelled. */
static int
respell_denies(struct conf_rules *rs)
{
	struct rule *r;
	size_t i, k;

	for (i = 0; i < rs->n; i++) {
		r = &rs->v[i];
		if (confdirs_respell(&r->deny_paths) == -1 ||
		    confdirs_respell(&r->paths.deny) == -1 ||
		    confdirs_respell(&r->commands.cwd.deny) == -1 ||
		    confdirs_respell(&r->agent.workdir.deny) == -1)
			return -1;
		for (k = 0; k < r->nparams; k++)
			if (confdirs_respell(&r->params[k].scope.deny) == -1)
				return -1;
	}
	return 0;
}

static int
compile(struct confset *cs)
{
	size_t i;

	if (has_errors(&cs->found))
		return 0;
	if ((cs->policy = policy_new(cs->conf, &cs->found)) == NULL)
		return has_errors(&cs->found) ? 0 : -1;
	for (i = 0; i < cs->protect.n; i++)
		if (policy_protect(cs->policy, cs->protect.v[i]) == -1)
			return -1;
	policy_examples(cs->conf, cs->policy, &cs->found);
	if (confwire_boot(&cs->boot, cs) == -1 || confwire_check(cs) == -1)
		return -1;
	return cs->found.nomem ? -1 : 0;
}

int
confset_load(struct confset *cs, const struct confset_opts *o)
{
	memset(cs, 0, sizeof(*cs));
	if (conffile_read(&cs->files, o->file,
		o->file == NULL && o->preset != NULL, &cs->found) == -1 ||
	    world_fill(cs, o) == -1)
		return -1;
	if (cs->found.n > 0 && cs->files.n == 0)
		return 0; /* FILE itself is unusable: more would mislead */
	cs->conf = conf_load(cs->files.v, cs->files.n, &cs->world, &cs->found);
	if (cs->conf == NULL)
		return has_errors(&cs->found) ? 0 : -1;
	if (respell_denies(cs->conf->rules) == -1)
		return -1;
	conf_lint(cs->conf, &cs->world, &cs->found);
	if (cs->conf->state_dir == NULL) {
		if (!has_errors(&cs->found))
			findings_add(&cs->found, FIND_ERROR,
			    "config.state_dir_unsafe", cs->files.file, 1, 1,
			    "there is no home directory: set state_dir");
		return 0;
	}
	if (cs->world.root_start)
		check_users(cs);
	check_groups(cs);
	check_state(cs);
	if (confdirs_protect(&cs->protect, cs->conf, &cs->files,
		cs->world.root_start, o->env) == -1)
		return -1;
	if (protects_all(cs))
		return 0;
	conf_lint_roots(cs->conf, &cs->world, &cs->protect, &cs->found);
	return compile(cs);
}

void
confset_clear(struct confset *cs)
{
	policy_free(cs->policy);
	conf_free(cs->conf);
	boot_clear(&cs->boot);
	strlist_clear(&cs->protect);
	findings_clear(&cs->found);
	conffile_clear(&cs->files);
	free(cs->state_dir);
	free(cs->workspace_root);
	memset(cs, 0, sizeof(*cs));
}
