/*
 * SPDX-License-Identifier: ISC
 *
 * The rules on words: each looks at one simple command of a program that the
 * table names, wrappers already off.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"
#include "policy/filter_match.h"

/* ---- rm ---- */

#define RM_LONGS                                                           \
	" recursive:r no-preserve-root:N preserve-root force interactive " \
	"one-file-system verbose dir "

static int
has_option(
    const struct cmd *c, const char *opts, const char *longs, const char *any)
{
	struct optw o;

	optw_init(&o, c, opts, longs);
	while (optw_next(&o))
		if (o.ch != 0 && o.ch != '?' && strchr(any, o.ch) != NULL)
			return 1;
	return 0;
}

/* An operand of a recursive rm that the class takes. */
static int
rm_operand(const struct cmd *c, int (*class)(const char *, uint32_t))
{
	struct optw o;

	if (!has_option(c, "", RM_LONGS, "rR"))
		return 0;
	optw_init(&o, c, "", RM_LONGS);
	while (optw_next(&o))
		if (o.ch == 0 &&
		    class(path_fold_at(c, o.arg), cmd_w(c, o.at)->flags))
			return 1;
	return 0;
}

static int
is_system(const char *s, uint32_t flags)
{
	return path_system(s);
}

int
m_rm_no_preserve(const struct cmd *c)
{
	return has_option(c, "", RM_LONGS, "N");
}

int
m_rm_root(const struct cmd *c)
{
	return rm_operand(c, path_root);
}

int
m_rm_system(const struct cmd *c)
{
	return rm_operand(c, is_system);
}

/* ---- devices ---- */

/* of=PATH, also as "of = PATH". */
static const char *
dd_target(const struct cmd *c, size_t i)
{
	const char *s = cmd_s(c, i);

	if (strncmp(s, "of", 2) != 0)
		return NULL;
	s += 2;
	if (*s == '\0' && i + 1 < c->n && cmd_s(c, i + 1)[0] == '=')
		s = cmd_s(c, ++i);
	if (*s != '=')
		return NULL;
	s++;
	return *s == '\0' && i + 1 < c->n ? cmd_s(c, i + 1) : s;
}

int
m_dd_device(const struct cmd *c)
{
	const char *s;
	size_t i;

	for (i = 1; i < c->n; i++)
		if ((s = dd_target(c, i)) != NULL &&
		    path_device(path_fold(c->x, s)))
			return 1;
	return 0;
}

int
m_mkfs(const struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++)
		if (path_dev(path_fold(c->x, cmd_s(c, i))))
			return 1;
	return 0;
}

int
m_wipe(const struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++)
		if (path_device(path_fold(c->x, cmd_s(c, i))))
			return 1;
	return 0;
}

/* ---- what is written ---- */

uint64_t
rules_write(struct fctx *x, const char *s)
{
	uint64_t hits = 0;

	s = path_fold(x, s);
	if (path_device(s))
		hits |= HIT(REDIRECT_DEVICE);
	if (path_accounts(s))
		hits |= HIT(WRITE_ETC);
	if (path_sshkeys(s))
		hits |= HIT(WRITE_KEYS);
	if (strcmp(s, "/proc/sysrq-trigger") == 0)
		hits |= HIT(SYSRQ);
	return hits;
}

uint64_t
rules_word(const char *s)
{
	if ((strncmp(s, "/dev/tcp/", 9) == 0 ||
		strncmp(s, "/dev/udp/", 9) == 0) &&
	    s[9] != '\0' && s[9] != '/' && strchr(s + 9, '/') != NULL &&
	    strpbrk(s, " \t\n;|&") == NULL)
		return HIT(REVERSE_SHELL);
	return 0;
}

/* Which operands of a program are written to. */
static const struct {
	const char *name;
	const char *opts;
	enum { W_ALL, W_LAST, W_INPLACE, W_OF } how;
} writers[] = {
    {"tee", "", W_ALL},
    {"sponge", "", W_ALL},
    {"truncate", "s:r:", W_ALL},
    {"cp", "S:t:", W_LAST},
    {"mv", "S:t:", W_LAST},
    {"ln", "S:t:", W_LAST},
    {"install", "S:t:g:m:o:", W_LAST},
    {"rsync", "e:f:T:", W_LAST},
    {"sed", "e:f:l:", W_INPLACE},
    {"dd", "", W_OF},
};

static uint64_t
written_operands(const struct cmd *c, const char *opts, int last_only)
{
	struct optw o;
	uint64_t all = 0, last = 0;
	size_t n = 0;

	optw_init(&o, c, opts, " suffix= mode= owner= group= size= ");
	while (optw_next(&o))
		if (o.ch == 0) {
			last = rules_write(c->x, o.arg);
			all |= last;
			n++;
		}
	if (!last_only)
		return all;
	return n > 1 ? last : 0;
}

static uint64_t
written_of(const struct cmd *c)
{
	uint64_t hits = 0;
	const char *s;
	size_t i;

	for (i = 1; i < c->n; i++)
		if ((s = dd_target(c, i)) != NULL)
			hits |= rules_write(c->x, s);
	return hits;
}

static uint64_t
written(const struct cmd *c)
{
	char buf[64];
	const char *name = cmd_name(cmd_s(c, 0), buf, sizeof(buf));
	size_t i;

	for (i = 0; i < nitems(writers); i++)
		if (strcmp(writers[i].name, name) == 0)
			break;
	if (i == nitems(writers))
		return 0;
	if (writers[i].how == W_OF)
		return written_of(c);
	if (writers[i].how == W_INPLACE &&
	    !has_option(c, writers[i].opts, " in-place:i ", "i"))
		return 0;
	return written_operands(c, writers[i].opts, writers[i].how == W_LAST);
}

int
m_write_device(const struct cmd *c)
{
	return (written(c) & HIT(REDIRECT_DEVICE)) != 0;
}

int
m_write_etc(const struct cmd *c)
{
	return (written(c) & HIT(WRITE_ETC)) != 0;
}

int
m_write_keys(const struct cmd *c)
{
	return (written(c) & HIT(WRITE_KEYS)) != 0;
}

int
m_write_sysrq(const struct cmd *c)
{
	return (written(c) & HIT(SYSRQ)) != 0;
}

/* ---- the rest ---- */

static int
is_rm(const struct cmd *c, size_t i)
{
	char buf[64];

	if (i < c->n &&
	    strcmp(cmd_name(cmd_s(c, i), buf, sizeof(buf)), "sudo") == 0)
		i++;
	return i < c->n &&
	       strcmp(cmd_name(cmd_s(c, i), buf, sizeof(buf)), "rm") == 0;
}

/* find with the root among what it starts from, and a deletion. */
int
m_find_root(const struct cmd *c)
{
	size_t i;
	const char *s;
	int root = 0;

	for (i = 1; i < c->n; i++) {
		s = cmd_s(c, i);
		if (strcmp(s, "-H") == 0 || strcmp(s, "-L") == 0 ||
		    strcmp(s, "-P") == 0)
			continue;
		if (s[0] == '-' || s[0] == '(' || s[0] == '!')
			break;
		root |= path_root(path_fold(c->x, s), cmd_w(c, i)->flags);
	}
	for (; root && i < c->n; i++) {
		s = cmd_s(c, i);
		if (strcmp(s, "-delete") == 0)
			return 1;
		if ((strncmp(s, "-exec", 5) == 0 ||
			strncmp(s, "-ok", 3) == 0) &&
		    is_rm(c, i + 1))
			return 1;
	}
	return 0;
}

static int
mode_777(const char *s)
{
	size_t n = strlen(s);

	return n >= 3 && n <= 5 && s[strspn(s, "01234567")] == '\0' &&
	       strcmp(s + n - 3, "777") == 0;
}

int
m_chmod(const struct cmd *c)
{
	struct optw o;
	int open = 0;

	optw_init(&o, c, "", " reference= recursive ");
	while (optw_next(&o)) {
		if (o.ch != 0)
			continue;
		if (mode_777(o.arg))
			open = 1;
		else if (open && path_chmod(path_fold(c->x, o.arg)))
			return 1;
	}
	return 0;
}

static int
is_help(const struct cmd *c)
{
	size_t i;

	for (i = 1; i < c->n; i++)
		if (strcmp(cmd_s(c, i), "--help") == 0 ||
		    strcmp(cmd_s(c, i), "--version") == 0)
			return 1;
	return 0;
}

/* now, +5, 23:00 */
static int
is_time(const char *s)
{
	return strcmp(s, "now") == 0 || (s[0] == '+' && s[1] != '\0') ||
	       (s[0] >= '0' && s[0] <= '9' && strchr(s, ':') != NULL);
}

static int
shutdown_now(const struct cmd *c)
{
	struct optw o;
	int yes = 0;

	optw_init(&o, c, "t:", " halt:H poweroff:P reboot:r ");
	while (optw_next(&o)) {
		if (o.ch == 'c' || o.ch == 'k')
			return 0;
		if (o.ch == 0)
			yes |= is_time(o.arg) || strcmp(o.arg, "/s") == 0 ||
			       strcmp(o.arg, "/r") == 0;
		else
			yes |= o.ch != '?' && strchr("HPhr", o.ch) != NULL;
	}
	return yes;
}

/* The first operand is one of some words. */
static int
first_operand(const struct cmd *c, const char *opts, const char *const *words)
{
	struct optw o;

	optw_init(&o, c, opts, " host= machine= type= ");
	while (optw_next(&o)) {
		if (o.ch != 0)
			continue;
		for (; *words != NULL; words++)
			if (strcmp(o.arg, *words) == 0)
				return 1;
		return 0;
	}
	return 0;
}

int
m_shutdown(const struct cmd *c)
{
	static const char *const verbs[] = {
	    "poweroff", "reboot", "halt", "kexec", NULL};
	static const char *const levels[] = {"0", "6", NULL};
	char buf[64];
	const char *name = cmd_name(cmd_s(c, 0), buf, sizeof(buf));

	if (is_help(c))
		return 0;
	if (strcmp(name, "shutdown") == 0)
		return shutdown_now(c);
	if (strcmp(name, "systemctl") == 0)
		return first_operand(c, "H:M:t:p:n:o:", verbs);
	if (strcmp(name, "init") == 0 || strcmp(name, "telinit") == 0)
		return first_operand(c, "", levels);
	return 1;
}

/* sudo itself is to read a password or to start a shell. */
int
m_sudo(const struct cmd *c)
{
	struct optw o;

	optw_init(&o, c, "B:C:D:R:T:U:a:c:g:h:p:r:t:u:",
	    " stdin:S shell:s login:i askpass:A user= group= host= prompt= "
	    "chdir= chroot= role= type= close-from= other-user= ");
	o.stop = 1;
	while (optw_next(&o))
		if (o.ch != '?' && o.ch != 0 && strchr("SsiA", o.ch) != NULL)
			return 1;
	return 0;
}
