/*
 * SPDX-License-Identifier: ISC
 *
 * Which environment variables a caller may set for a command, and the
 * environment that a command gets.  The lists can only grow.  Pure.
 */
#include "policy/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/glob.h"

/* Never from a caller, whatever a rule says (design: command scopes). */
static const char *const env_never[] = {"PATH", "HOME", "USER", "SHELL",
    "LOGNAME", "IFS", "ENV", "BASH_ENV", "LD_*", "DYLD_*", "PYTHON*", "NODE_*",
    "PERL5*", "RUBY*", "GIT_*", "*_PROXY", "*_proxy", "ABX_*", "*_API_KEY",
    "*_BASE_URL", "*_TOKEN", "*_SECRET", "*_PASSWORD", "AWS_*", "GOOGLE_*",
    "AZURE_*", "SSH_*", "GPG_*", "GLIBC_TUNABLES", "MALLOC_*", "TMPDIR"};

/* Set by abx itself; env_pass does not replace them. */
static const char *const env_base[] = {
    "HOME", "USER", "LOGNAME", "LANG", "PATH"};

/* A name that a shell could assign to. */
static int
name_ok(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz_0123456789";
	size_t n = strlen(name);

	return n > 0 && n <= ABX_ID_MAX && (name[0] < '0' || name[0] > '9') &&
	       strspn(name, letters) == n;
}

static int
listed(const struct strlist *patterns, const char *name)
{
	size_t i;

	for (i = 0; i < patterns->n; i++)
		if (glob_segment(patterns->v[i], name, strlen(name)))
			return 1;
	return 0;
}

int
env_is_never(const char *name)
{
	size_t i;

	for (i = 0; i < nitems(env_never); i++)
		if (glob_segment(env_never[i], name, strlen(name)))
			return 1;
	return 0;
}

int
env_is_base(const char *name)
{
	size_t i;

	for (i = 0; i < nitems(env_base); i++)
		if (strcmp(env_base[i], name) == 0)
			return 1;
	return 0;
}

int
env_may_set(
    const struct strlist *set, const struct strlist *deny, const char *name)
{
	return name_ok(name) && listed(set, name) && !listed(deny, name) &&
	       !env_is_never(name);
}

/* Bytes of the name in NAME=VALUE. */
static size_t
name_len(const char *pair)
{
	return strcspn(pair, "=");
}

int
env_put(struct strlist *env, const char *name, const char *value)
{
	size_t n = strlen(name), i;
	char *pair;

	if (asprintf(&pair, "%s=%s", name, value) == -1)
		return -1;
	for (i = 0; i < env->n; i++)
		if (name_len(env->v[i]) == n &&
		    memcmp(env->v[i], name, n) == 0) {
			free(env->v[i]);
			env->v[i] = pair;
			return 0;
		}
	i = strlist_add(env, pair, strlen(pair)) == 0;
	free(pair);
	return i ? 0 : -1;
}

int
env_put_pair(struct strlist *env, const char *pair)
{
	size_t n = name_len(pair), i;
	char *copy;

	if (pair[n] != '=')
		return 0;
	for (i = 0; i < env->n; i++)
		if (name_len(env->v[i]) == n &&
		    memcmp(env->v[i], pair, n) == 0) {
			copy = strdup(pair);
			if (copy == NULL)
				return -1;
			free(env->v[i]);
			env->v[i] = copy;
			return 0;
		}
	return strlist_add(env, pair, strlen(pair));
}

int
env_snapshot(struct strlist *out, const struct strlist *names,
    const struct strlist *snapshot)
{
	size_t i, j, n;

	for (i = 0; i < names->n; i++) {
		if (env_is_base(names->v[i]))
			continue;
		n = strlen(names->v[i]);
		for (j = 0; j < snapshot->n; j++)
			if (name_len(snapshot->v[j]) == n &&
			    memcmp(snapshot->v[j], names->v[i], n) == 0 &&
			    env_put_pair(out, snapshot->v[j]) == -1)
				return -1;
	}
	return 0;
}
