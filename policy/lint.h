/*
 * SPDX-License-Identifier: ISC
 *
 * What the files of lints share: one run over a whole configuration.
 * Private to policy/.
 */
#ifndef ABX_POLICY_LINT_H
#define ABX_POLICY_LINT_H

#include "policy/keymap.h"
#include "policy/model.h"

struct lint {
	const struct conf *c;
	struct findings *f;
	struct keymap writable; /* roots that file operations write to rules */
	struct keymap ids, roles; /* those that exist to principals */
	size_t steps; /* comparisons of what grows with the rules, for tests */
};
/* lint.c: all lints of c into f; the rest is zero before and after, but for
 * steps. */
void lint_run(struct lint *);
/* A finding at a rule. */
void lint_rule(struct lint *, const struct rule *, enum find_sev,
    const char *code, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* 1 when a selector of the rule matches the op on the rule's side. */
int rule_selects(const struct rule *, uint16_t op);
/* 1 for a rule of the preset full-access. */
int rule_is_full_access(const struct rule *);
/* 1 when the scope names nothing at all, so that it admits nothing. */
int scope_empty(const struct path_scope *);
/* The scope that a path parameter goes through, or NULL. */
const struct path_scope *rule_path_scope(
    const struct rule *, const char *param);

/* lintcmd.c: the lints of one rule's commands. */
void lint_commands(struct lint *, const struct rule *);
/* lintscript.c: the scripts of them that callers may change.  Note first which
 * rules write where: 0, or -1 out of memory. */
int lint_script_init(struct lint *);
void lint_script(struct lint *, const struct rule *);
/* conffilter.c: custom rules of the command policy on their examples. */
void lint_filter(struct lint *);
/* lintshadow.c: rules that can never win. */
void lint_shadowed(struct lint *);

#endif
