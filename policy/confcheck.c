/*
 * SPDX-License-Identifier: ISC
 *
 * Checks of single strings of the configuration.  Each makes its own finding
 * with the code that the manual names.  Pure, but for the caller's dir_check.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/glob.h"
#include "common/size.h"
#include "policy/confkey.h"
#include "policy/url.h"

#define ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static int
check_fail(
    struct cload *cl, const struct node *n, const char *code, const char *why)
{
	if (n->of != NULL)
		conf_find(cl, n, FIND_ERROR, code, "\"%.80s\": \"%.200s\": %s",
		    n->of, n->s, why);
	else
		conf_find(cl, n, FIND_ERROR, code, "\"%.200s\": %s", n->s, why);
	return -1;
}

/* An id or role: 1 to ABX_ID_MAX bytes without control characters. */
static int
name_ok(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= ABX_ID_MAX && !text_has_control(s);
}

int
check_nonempty(struct cload *cl, const struct node *n)
{
	if (n->len == 0 || text_has_control(n->s))
		return check_fail(cl, n, "config.type",
		    "an empty string or control characters are not accepted");
	return 0;
}

int
check_name(struct cload *cl, const struct node *n)
{
	if (!name_ok(n->s))
		return check_fail(cl, n, "config.type",
		    "a name has 1 to 128 bytes and no control character");
	return 0;
}

int
check_group(struct cload *cl, const struct node *n)
{
	if (n->len == 0 || n->len > 64 || *n->s == '-' ||
	    n->s[strspn(n->s, ALNUM "_.-")] != '\0')
		return check_fail(cl, n, "config.type",
		    "the name of a group has letters, digits and _ . -");
	return 0;
}

int
check_principal(struct cload *cl, const struct node *n)
{
	const char *s = n->s;

	if (strcmp(s, "*") == 0 ||
	    (strncmp(s, "id:", 3) == 0 && name_ok(s + 3)) ||
	    (strncmp(s, "role:", 5) == 0 && name_ok(s + 5)))
		return 0;
	return check_fail(cl, n, "config.type",
	    "a principal is \"id:NAME\", \"role:NAME\" or \"*\"");
}

/* What is wrong with one component of a directory, or NULL.  last: nothing
 * follows it; *tmpl is set for a placeholder. */
static const char *
component_why(const char *s, size_t len, int template, int last, int *tmpl)
{
	static const char pid[] = "{principal.id}", ses[] = "{session}";

	if (len == 2 && memcmp(s, "..", 2) == 0)
		return "\"..\" is not accepted";
	if (memchr(s, '*', len) != NULL || memchr(s, '?', len) != NULL ||
	    memchr(s, '[', len) != NULL)
		return "a root is a directory, not a pattern";
	if (memchr(s, '{', len) == NULL && memchr(s, '}', len) == NULL)
		return NULL;
	if (!template)
		return "a placeholder is not accepted here";
	if (!(len == sizeof(pid) - 1 && memcmp(s, pid, len) == 0) &&
	    !(len == sizeof(ses) - 1 && memcmp(s, ses, len) == 0))
		return "{principal.id} or {session} must be a whole component";
	if (!last)
		return "a placeholder must be the last component";
	*tmpl = 1;
	return NULL;
}

/* What is wrong with an absolute directory, or NULL; *fixed is the length
 * of the part without a placeholder. */
static const char *
place_why(const char *path, int template, size_t *fixed)
{
	const char *s = path, *why, *rest;
	size_t len;
	int tmpl = 0;

	if (*s != '/')
		return "an absolute directory is expected";
	if (text_has_control(s))
		return "control characters are not accepted";
	*fixed = strlen(path);
	while (*s != '\0') {
		s += strspn(s, "/");
		len = strcspn(s, "/");
		rest = s + len + strspn(s + len, "/");
		why = component_why(s, len, template, *rest == '\0', &tmpl);
		if (why != NULL)
			return why;
		if (tmpl) {
			*fixed = (size_t)(s - path);
			break;
		}
		s += len;
	}
	return NULL;
}

/* 1 for the directory of the workspaces, which a start makes; rest is what
 * follows it. */
static int
is_made(const struct cload *cl, const char *norm, const char *rest)
{
	const char *dir = cl->c->workspace_root;
	enum code code;
	char *own;
	int same;

	if (dir == NULL && cl->w != NULL)
		dir = cl->w->default_workspace_root;
	if (dir == NULL || strncmp(rest, "{session}", 9) != 0 ||
	    (own = path_normal(dir, &code)) == NULL)
		return 0;
	same = strcmp(own, norm) == 0;
	free(own);
	return same;
}

/* The one check of directories; exists: it must be there now. */
static int
check_place(struct cload *cl, const struct node *n, int template, int exists)
{
	const char *why;
	char *fixed, *norm = NULL, *whole;
	size_t len = 0;
	enum code code;
	int error, r = -1;

	if ((why = place_why(n->s, template, &len)) != NULL)
		return check_fail(cl, n, "config.root_invalid", why);
	if ((fixed = strndup(n->s, len)) == NULL)
		return conf_nomem(cl);
	/* with its placeholder it must be a path too */
	whole = path_normal(n->s, &code);
	if (whole == NULL || (norm = path_normal(fixed, &code)) == NULL) {
		if (code == C_OK)
			conf_nomem(cl);
		else
			check_fail(cl, n, "config.root_invalid",
			    "the path is too long");
	} else if (strcmp(norm, "/") == 0)
		check_fail(cl, n, "config.root_is_slash",
		    "the whole file system is never a root");
	else if (exists && !cl->canon && cl->w != NULL &&
		 cl->w->dir_check != NULL && !is_made(cl, norm, n->s + len) &&
		 (error = cl->w->dir_check(norm, cl->w->arg)) != 0)
		check_fail(cl, n, "config.root_invalid", strerror(error));
	else
		r = 0;
	free(whole);
	free(norm);
	free(fixed);
	return r;
}

int
check_root(struct cload *cl, const struct node *n)
{
	return check_place(cl, n, 1, 1);
}

int
check_dir(struct cload *cl, const struct node *n)
{
	return check_place(cl, n, 0, 0);
}

int
check_exec_dir(struct cload *cl, const struct node *n)
{
	return check_place(cl, n, 0, 1);
}

int
check_glob(struct cload *cl, const struct node *n)
{
	const char *why = "an empty pattern";
	struct glob *g = NULL;

	if (n->len > 0)
		g = glob_new(n->s, glob_needs_anchor(n->s) ? "" : NULL, &why);
	if (g == NULL && why == NULL)
		return conf_nomem(cl);
	if (g == NULL)
		return check_fail(cl, n, "config.pattern_invalid", why);
	glob_free(g);
	return 0;
}

static int
check_pattern(struct cload *cl, const struct node *n, int deny_side)
{
	const char *why = NULL;
	struct argv_pat *p = argv_pat_new(n->s, deny_side, &why);

	if (p == NULL && why == NULL)
		return conf_nomem(cl);
	if (p == NULL)
		return check_fail(cl, n, "config.pattern_invalid", why);
	argv_pat_free(p);
	return 0;
}

int
check_argv(struct cload *cl, const struct node *n)
{
	return check_pattern(cl, n, 0);
}

int
check_argv_deny(struct cload *cl, const struct node *n)
{
	return check_pattern(cl, n, 1);
}

int
check_env_name(struct cload *cl, const struct node *n)
{
	if (n->len == 0 || (*n->s >= '0' && *n->s <= '9') ||
	    n->s[strspn(n->s, ALNUM "_")] != '\0')
		return check_fail(cl, n, "config.pattern_invalid",
		    "not the name of an environment variable");
	return 0;
}

int
check_env_glob(struct cload *cl, const struct node *n)
{
	if (n->len == 0 || n->s[strspn(n->s, ALNUM "_*?")] != '\0')
		return check_fail(cl, n, "config.pattern_invalid",
		    "not a pattern for names of environment variables");
	return 0;
}

int
check_signal(struct cload *cl, const struct node *n)
{
	static const char *const names[] = {"TERM", "INT", "KILL", "HUP",
	    "QUIT", "USR1", "USR2", "STOP", "CONT", "TSTP", "ALRM", "WINCH"};
	size_t i;

	for (i = 0; i < nitems(names); i++)
		if (strcmp(n->s, names[i]) == 0)
			return 0;
	return check_fail(cl, n, "config.type",
	    "a signal is a name such as \"TERM\", \"INT\" or \"USR1\"");
}

int
check_host(struct cload *cl, const struct node *n)
{
	if (n->len == 0 || n->len > 255 ||
	    n->s[strspn(n->s, ALNUM ".-_:[]")] != '\0')
		return check_fail(
		    cl, n, "config.type", "a host name or address is expected");
	return 0;
}

int
check_origin(struct cload *cl, const struct node *n)
{
	const char *rest = strstr(n->s, "://");

	if (rest == NULL || n->len > 512 ||
	    (strncmp(n->s, "http://", 7) != 0 &&
		strncmp(n->s, "https://", 8) != 0) ||
	    rest[3] == '\0' || rest[3 + strspn(rest + 3, ALNUM ".-_:[]")])
		return check_fail(cl, n, "config.type",
		    "an origin is \"https://HOST\" or with a port");
	return 0;
}

int
check_proxy(struct cload *cl, const struct node *n)
{
	char addr[64], buf[16];
	const char *slash = strchr(n->s, '/');
	size_t len = slash != NULL ? (size_t)(slash - n->s) : n->len;
	uint64_t bits;
	int max = 0;

	if (len < sizeof(addr)) {
		memcpy(addr, n->s, len);
		addr[len] = '\0';
		if (inet_pton(AF_INET, addr, buf) == 1)
			max = 32;
		else if (inet_pton(AF_INET6, addr, buf) == 1)
			max = 128;
	}
	if (max == 0 ||
	    (slash != NULL && uint_parse(slash + 1, strlen(slash + 1),
				  (uint64_t)max, &bits) == -1))
		return check_fail(cl, n, "config.type",
		    "an address or ADDRESS/BITS is expected");
	return 0;
}

int
check_protect(struct cload *cl, const struct node *n)
{
	if (n->len == 0 || n->len > 255 || strchr(n->s, '/') != NULL ||
	    strcmp(n->s, ".") == 0 || strcmp(n->s, "..") == 0 ||
	    strpbrk(n->s, "*?[") != NULL || text_has_control(n->s))
		return check_fail(cl, n, "config.type",
		    "a name of one component is expected");
	return 0;
}

int
check_url_host(struct cload *cl, const struct node *n)
{
	const char *s = strncmp(n->s, "*.", 2) == 0 ? n->s + 2 : n->s;

	if (*s == '\0' || n->len > 255 || *s == '.' ||
	    s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-")] != '\0')
		return check_fail(cl, n, "config.pattern_invalid",
		    "a host is a lower-case name or \"*.SUFFIX\"");
	return 0;
}

int
check_scheme(struct cload *cl, const struct node *n)
{
	if (strcmp(n->s, "https") != 0 && strcmp(n->s, "http") != 0)
		return check_fail(
		    cl, n, "config.type", "a scheme is \"https\" or \"http\"");
	return 0;
}

int
check_url_pattern(struct cload *cl, const struct node *n)
{
	const char *why = url_pattern_why(n->s);

	return why == NULL ? 0
			   : check_fail(cl, n, "config.pattern_invalid", why);
}

int
check_url_path(struct cload *cl, const struct node *n)
{
	if (*n->s != '/')
		return check_fail(cl, n, "config.pattern_invalid",
		    "a path pattern of a URL starts with \"/\"");
	return check_glob(cl, n);
}

int
check_symlinks(struct cload *cl, const struct node *n)
{
	if (strcmp(n->s, "follow") == 0)
		return check_fail(cl, n, "config.type",
		    "links out of a root are never followed; "
		    "add what they lead to as a root");
	return 0;
}
