/*
 * SPDX-License-Identifier: ISC
 *
 * abxctl explain: what the service would answer to a call, and why, by the
 * same plan, walk and decision that it uses.  It spends no limit, asks no
 * hook and does nothing of what was asked.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "monitor/ctl/ctl.h"
#include "monitor/ctl/explain.h"
#include "monitor/ctl/facts.h"

static const struct option longopts[] = {
    {"op", required_argument, NULL, 'o'},
    {"arg", required_argument, NULL, 'a'},
    {"principal", required_argument, NULL, 'P'},
    {"role", required_argument, NULL, 'R'},
    {"session", required_argument, NULL, 's'},
    CTL_LONGOPTS,
    {NULL, 0, NULL, 0},
};

static int
parse_one(struct ctl *ctl, struct explain *e, int ch)
{
	switch (ch) {
	case 'o':
		e->opname = optarg;
		return 0;
	case 'P':
		e->id = optarg;
		return 0;
	case 's':
		e->session = optarg;
		return 0;
	case 'a':
		return strlist_add(&e->words, optarg, strlen(optarg));
	case 'R':
		e->roles_given = 1;
		if (optarg[0] == '\0') /* no role at all */
			return 0;
		return strlist_add(&e->roles, optarg, strlen(optarg));
	default:
		return ctl_option(ctl, ch);
	}
}

static int
parse(struct ctl *ctl, struct explain *e, int argc, char **argv)
{
	int ch;

	optind = 1;
	while ((ch = getopt_long(argc, argv, CTL_OPTS, longopts, NULL)) != -1)
		if (parse_one(ctl, e, ch) == -1)
			return -1;
	if (optind != argc || e->opname == NULL || e->id == NULL)
		return -1;
	return 0;
}

/* Without --role, the roles of the token or peer with that id. */
static int
default_roles(struct explain *e, const struct conf *c)
{
	const struct strlist *roles = NULL;
	size_t i;

	if (e->roles_given)
		return 0;
	for (i = 0; roles == NULL && i < c->ntokens; i++)
		if (strcmp(c->tokens[i].id, e->id) == 0)
			roles = &c->tokens[i].roles;
	for (i = 0; roles == NULL && i < c->npeers; i++)
		if (strcmp(c->peers[i].id, e->id) == 0)
			roles = &c->peers[i].roles;
	if (roles == NULL && c->open_mode && strcmp(e->id, "anonymous") == 0)
		return strlist_add(&e->roles, "admin", 5);
	if (roles == NULL && strcmp(e->id, "anonymous") != 0)
		log_warnx("no credential has the id %s", e->id);
	for (i = 0; roles != NULL && i < roles->n; i++)
		if (strlist_add(&e->roles, roles->v[i], strlen(roles->v[i])) ==
		    -1)
			return -1;
	return 0;
}

/* The decision names the places where a program may lie; the launcher finds
 * out which one is there.  Here too, so that a missing one is said. */
static void
find_program(struct explain *e)
{
	struct decision *d = &e->d;
	size_t i;

	if (!d->allowed || d->code != C_OK || d->spawn.progs.n == 0)
		return;
	for (i = 0; i < d->spawn.progs.n; i++)
		if (access(d->spawn.progs.v[i], X_OK) == 0) {
			e->program = d->spawn.progs.v[i];
			return;
		}
	d->allowed = 0;
	d->code = C_POL_EXEC_NOT_FOUND;
}

static int
decide(struct explain *e, const struct policy *policy,
    const struct walk_roots *roots)
{
	if (policy_plan(policy, &e->call, &e->plan) == -1 ||
	    facts_walk(roots, &e->plan, &e->facts) == -1 ||
	    policy_decide(policy, &e->call, &e->plan, e->facts, &e->d) == -1)
		return -1;
	find_program(e);
	return 0;
}

/* 0, or -1 out of memory, or 1 after a usage error was said. */
static int
ask(struct explain *e, struct confset *cs)
{
	struct walk_roots roots;
	const char *bad = NULL;
	int r;

	e->call.op = op_find(e->opname);
	if (e->call.op == OP_NONE)
		log_warnx("there is no operation %s", e->opname);
	e->call.args = &e->args;
	e->call.who = &e->who;
	e->call.session = e->session;
	e->call.explain = 1;
	r = policy_args_words(
	    &e->args, e->call.op, e->words.v, e->words.n, &bad);
	if (r == 1)
		log_warnx("--arg %s: want name=value, each name once", bad);
	if (r != 0 || default_roles(e, cs->conf) == -1)
		return r == 1 ? 1 : -1;
	e->who.id = e->id;
	e->who.roles = (const char *const *)e->roles.v;
	e->who.nroles = e->roles.n;
	e->who.authenticated = strcmp(e->id, "anonymous") != 0;
	r = facts_open(&roots, cs->policy);
	if (r == 0)
		r = decide(e, cs->policy, &roots);
	facts_close(&roots);
	return r;
}

/* What borrows of the policy, before that goes. */
static void
answer_clear(struct explain *e)
{
	decision_clear(&e->d);
	facts_free(e->facts, e->plan.nitems);
	plan_clear(&e->plan);
}

static void
explain_clear(struct explain *e)
{
	args_clear(&e->args);
	strlist_clear(&e->roles);
	strlist_clear(&e->words);
}

static int
explain_run(struct ctl *ctl, struct explain *e)
{
	struct confset cs;
	int r, status = CTL_USAGE;

	if (ctl_load(ctl, &cs) == 0) {
		if ((r = ask(e, &cs)) == -1)
			log_warnx("out of memory");
		else if (r == 0)
			r = ctl->json ? explain_json(e, cs.policy)
				      : explain_text(e, cs.policy);
		if (r == 0)
			status = e->d.allowed ? CTL_YES : CTL_NO;
	}
	answer_clear(e);
	confset_clear(&cs);
	return status;
}

int
explain_main(struct ctl *ctl, int argc, char **argv)
{
	struct explain e = {0};
	int status;

	if (parse(ctl, &e, argc, argv) == -1)
		status = ctl_usage(argv[0]);
	else
		status = explain_run(ctl, &e);
	explain_clear(&e);
	return status;
}
