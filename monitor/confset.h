/*
 * SPDX-License-Identifier: ISC
 *
 * One configuration, from files to a compiled policy, with everything that
 * was found wrong with it: what the loader does at start and abxctl does for
 * check-config, explain, ops and doctor.  The same steps, so that both say
 * the same.
 */
#ifndef ABX_CONFSET_H
#define ABX_CONFSET_H

#include "common/payload.h"
#include "monitor/conffile.h"
#include "policy/policy.h"

/* What the command line says; all borrowed, NULL when not given. */
struct confset_opts {
	const char *file, *preset, *root, *listen;
	int require_auth;
	const char *const *env; /* NULL-terminated NAME=VALUE */
	const char *digests;	/* at a reload, see struct conf_world */
};

struct confset {
	struct conffile files;
	struct conf_world world; /* strings borrowed from opts and below */
	char *state_dir, *workspace_root; /* defaults, owned */
	struct findings found;
	struct conf *conf;	/* NULL when nothing usable came out */
	struct policy *policy;	/* NULL unless it could be started */
	struct strlist protect; /* directories that nobody may reach */
	struct boot boot;	/* filled when there is a policy */
};

/* Read, parse, lint, check directories and users, compile.  0, also when the
 * findings block; -1 out of memory. */
int confset_load(struct confset *, const struct confset_opts *);
void confset_clear(struct confset *);
/* 1 when the service must not be started with it. */
int confset_blocked(const struct confset *);
/* Add config.lint_errors when nothing but lints is in the way. */
void confset_say_why(struct confset *);
/* Text that names a severity: "error" or "warning". */
const char *confset_severity(enum find_sev);

#endif
