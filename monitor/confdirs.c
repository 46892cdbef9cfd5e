/*
 * SPDX-License-Identifier: ISC
 *
 * Looks at directories and never makes or changes one; the parent does that.
 * Page "state" of server.json(5) is what this implements.
 */
#include "monitor/confdirs.h"

#include <sys/stat.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/glob.h"
#include "policy/model.h"

#define STATE_ROOT "/var/lib/agent-sandbox"

const char *
confdirs_env(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env != NULL && *env != NULL; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* An absolute directory named by the environment, or NULL. */
static const char *
env_dir(const char *const *env, const char *name)
{
	const char *s = confdirs_env(env, name);

	return s != NULL && s[0] == '/' ? s : NULL;
}

/* Two texts joined, NULL when out of memory. */
static char *
joined(const char *a, const char *b)
{
	char *s;

	return asprintf(&s, "%s%s", a, b) == -1 ? NULL : s;
}

static char *
user_state_dir(const char *const *env)
{
	const char *dir;
	struct passwd *pw;

	if ((dir = env_dir(env, "XDG_STATE_HOME")) != NULL)
		return joined(dir, "/agent-sandbox");
	if ((dir = env_dir(env, "HOME")) == NULL) {
		errno = 0;
		if ((pw = getpwuid(geteuid())) == NULL)
			return NULL;
		dir = pw->pw_dir;
	}
	if (dir[0] != '/') {
		errno = 0;
		return NULL;
	}
	return joined(dir, "/.local/state/agent-sandbox");
}

int
confdirs_default(
    int root, const char *const *env, char **state, char **workspaces)
{
	*workspaces = NULL;
	errno = ENOMEM;
	*state = root ? strdup(STATE_ROOT) : user_state_dir(env);
	if (*state == NULL)
		return errno == ENOMEM ? -1 : 1;
	if ((*workspaces = joined(*state, "-workspaces")) != NULL)
		return 0;
	free(*state);
	*state = NULL;
	return -1;
}

char *
confdirs_run(
    int root, const char *const *env, const char *file, const char *state_dir)
{
	const char *dir;
	size_t n;

	if ((dir = env_dir(env, "RUNTIME_DIRECTORY")) != NULL) {
		/* systemd separates several by colons; the first is ours */
		n = strcspn(dir, ":");
		return strndup(dir, n);
	}
	if (file == NULL || strcmp(file, CONFFILE_DEFAULT) == 0) {
		if (root)
			return strdup("/run/agent-sandbox");
		if ((dir = env_dir(env, "XDG_RUNTIME_DIR")) != NULL)
			return joined(dir, "/agent-sandbox");
	}
	return joined(state_dir, "-run");
}

char *
confdirs_canonical(const char *path)
{
	char head[PATH_MAX], out[PATH_MAX], *real, *slash;
	size_t n = strlen(path);
	int r;

	if (path[0] != '/' || n >= sizeof(head)) {
		errno = path[0] != '/' ? EINVAL : ENAMETOOLONG;
		return NULL;
	}
	memcpy(head, path, n + 1);
	for (;;) {
		if ((real = realpath(head[0] == '\0' ? "/" : head, NULL)) !=
		    NULL)
			break;
		if (errno != ENOENT || (slash = strrchr(head, '/')) == NULL)
			return NULL;
		*slash = '\0';
	}
	/* what follows the part that exists, with its slash */
	path += strlen(head);
	r = snprintf(out, sizeof(out), "%s%s",
	    strcmp(real, "/") == 0 && path[0] == '/' ? "" : real, path);
	free(real);
	if (r < 0 || (size_t)r >= sizeof(out)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return strdup(out);
}

static int
add_new(struct strlist *l, const char *s)
{
	return strlist_has(l, s) ? 0 : strlist_add(l, s, strlen(s));
}

/* What the glob says with the part before its first wildcard as that really
 * lies: a new string, or NULL when that is the same, or errno is ENOMEM. */
static char *
respelled(const char *glob)
{
	size_t n = strcspn(glob, "*?[");
	char *head, *real, *text = NULL;

	/* whole components only */
	if (glob[n] != '\0')
		while (n > 0 && glob[n] != '/')
			n--;
	while (n > 1 && glob[n] == '\0' && glob[n - 1] == '/')
		n--;
	errno = ENOMEM;
	if (n == 0 || (head = strndup(glob, n)) == NULL)
		return n == 0 ? (errno = 0, NULL) : NULL;
	if ((real = confdirs_canonical(head)) == NULL)
		errno = errno == ENOMEM ? ENOMEM : 0;
	else if (strcmp(real, head) == 0)
		errno = 0;
	else {
		n += strspn(glob + n, "/");
		errno = ENOMEM;
		text = glob_quote(real, glob + n);
	}
	free(real);
	free(head);
	return text;
}

int
confdirs_respell(struct strlist *globs)
{
	size_t i, n = globs->n;
	char *text;
	int r = 0;

	for (i = 0; i < n && r == 0; i++) {
		if (globs->v[i][0] != '/')
			continue;
		if ((text = respelled(globs->v[i])) != NULL)
			r = add_new(globs, text);
		else if (errno == ENOMEM)
			r = -1;
		free(text);
	}
	return r;
}

char *
confdirs_canonical_cb(const char *path, void *arg)
{
	return confdirs_canonical(path);
}

int
confdirs_within(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/');
}

/* Add a directory, as spelled and as it really is. */
static int
protect(struct strlist *l, const char *dir)
{
	char *real;
	enum code code;
	int r = 0;

	if ((real = path_normal(dir, &code)) != NULL)
		r = add_new(l, real);
	else if (code == C_OK)
		return -1;
	free(real);
	if (r == 0 && (real = confdirs_canonical(dir)) != NULL) {
		r = add_new(l, real);
		free(real);
	}
	return r;
}

static int
protect_logs(struct strlist *l, const struct conf *conf)
{
	const char *path, *slash;
	char *dir;
	size_t i;
	int r = 0;

	for (i = 0; r == 0 && i < conf->audit.n; i++) {
		if (strncmp(conf->audit.v[i], "file:/", 6) != 0)
			continue;
		path = conf->audit.v[i] + 5;
		slash = strrchr(path, '/');
		dir = slash == path ? strdup("/")
				    : strndup(path, (size_t)(slash - path));
		r = dir == NULL ? -1 : protect(l, dir);
		free(dir);
	}
	return r;
}

/* The directory of what FILE leads to, when FILE is a symbolic link. */
static int
protect_target(struct strlist *l, const char *file)
{
	char *real, *slash;
	struct stat st;
	int r;

	if (lstat(file, &st) == -1 || !S_ISLNK(st.st_mode) ||
	    (real = realpath(file, NULL)) == NULL)
		return 0;
	if ((slash = strrchr(real, '/')) != NULL && slash != real)
		*slash = '\0';
	r = protect(l, real);
	free(real);
	return r;
}

int
confdirs_protect(struct strlist *l, const struct conf *conf,
    const struct conffile *cf, int root, const char *const *env)
{
	char *run;
	size_t i;
	int r;

	if (protect(l, conf->state_dir) == -1 ||
	    (cf->dir != NULL && protect(l, cf->dir) == -1) ||
	    protect_target(l, cf->file) == -1 || protect_logs(l, conf) == -1)
		return -1;
	run = confdirs_run(root, env, cf->file, conf->state_dir);
	r = run == NULL ? -1 : protect(l, run);
	free(run);
	for (i = 0; r == 0 && i < conf->protect_dirs.n; i++)
		r = protect(l, conf->protect_dirs.v[i]);
	return r;
}

/* The first parent of a directory that somebody besides root and the starter
 * can write, cut into path; NULL when there is none. */
static const char *
open_parent(char *path)
{
	struct stat st;
	char *slash;

	while ((slash = strrchr(path, '/')) != NULL && path[1] != '\0') {
		slash[slash == path] = '\0';
		if (stat(path, &st) == -1)
			continue;
		if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 ||
		    (st.st_uid != 0 && st.st_uid != geteuid()))
			return path;
	}
	return NULL;
}

void
confdirs_check_state(const char *state_dir, uid_t uid, const struct origin *at,
    struct findings *found)
{
	static const char code[] = "config.state_dir_unsafe";
	char *real;
	const char *open;
	struct stat st;

	if (lstat(state_dir, &st) == 0) {
		if (!S_ISDIR(st.st_mode))
			findings_add(found, FIND_ERROR, code, at->file,
			    at->line, at->col,
			    "state_dir %s is not a directory", state_dir);
		else if (st.st_uid != uid && (st.st_uid != 0 || geteuid() != 0))
			findings_add(found, FIND_ERROR, code, at->file,
			    at->line, at->col,
			    "state_dir %s belongs to uid %u and not to uid %u",
			    state_dir, st.st_uid, uid);
		else if ((st.st_mode & 07777) != 0700)
			findings_add(found, FIND_ERROR, code, at->file,
			    at->line, at->col,
			    "state_dir %s has mode %04o and not 0700",
			    state_dir, st.st_mode & 07777);
	} else if (errno != ENOENT) {
		findings_add(found, FIND_ERROR, code, at->file, at->line,
		    at->col, "state_dir %s: %s", state_dir, strerror(errno));
		return;
	}
	if ((real = confdirs_canonical(state_dir)) == NULL)
		return;
	if ((open = open_parent(real)) != NULL)
		findings_add(found, FIND_ERROR, code, at->file, at->line,
		    at->col,
		    "state_dir %s lies below %s, which others can write",
		    state_dir, open);
	free(real);
}
