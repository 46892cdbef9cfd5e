/*
 * SPDX-License-Identifier: ISC
 *
 * The service's own directories: where they are by default, which of them no
 * caller may reach, and whether the state directory is fit for use.
 */
#ifndef ABX_CONFDIRS_H
#define ABX_CONFDIRS_H

#include "monitor/conffile.h"
#include "policy/policy.h"

struct origin;

/* Value of NAME in a NULL-terminated NAME=VALUE list, or NULL. */
const char *confdirs_env(const char *const *env, const char *name);
/*
 * Default state directory and workspace root as new strings.  root: started
 * as root.  0, -1 out of memory, 1 when an ordinary user has no home
 * directory to put them into (both are then NULL).
 */
int confdirs_default(
    int root, const char *const *env, char **state, char **workspaces);
/* The run directory of a service with that FILE, as a new string or NULL. */
char *confdirs_run(
    int root, const char *const *env, const char *file, const char *state_dir);
/* The canonical spelling of an absolute path whose tail need not exist, as a
 * new string; NULL with errno. */
char *confdirs_canonical(const char *path);
/* 1 when path is dir or lies below it; both absolute and normal. */
int confdirs_within(const char *path, const char *dir);
/* Add to deny globs what they say of the places where their directories really
 * lie, since links on the way are resolved before a path is compared.  0, or
 * -1 out of memory. */
int confdirs_respell(struct strlist *globs);
/* confdirs_canonical as conf_world wants it; arg is not used. */
char *confdirs_canonical_cb(const char *path, void *arg);
/*
 * Append every directory that no caller and no command may reach, as spelled
 * and canonical: state, configuration, log and run directory and those of
 * protect_dirs.  0, or -1 out of memory.
 */
int confdirs_protect(struct strlist *, const struct conf *,
    const struct conffile *, int root, const char *const *env);
/* config.state_dir_unsafe unless the state directory is missing or belongs to
 * uid with mode 0700 (started as root: or to root, the parent hands it over
 * then), below directories that only root and the starter can write. */
void confdirs_check_state(const char *state_dir, uid_t uid,
    const struct origin *at, struct findings *);

#endif
