/*
 * SPDX-License-Identifier: ISC
 *
 * Paths in commands: folded lexically, then told apart by classes.  Nothing
 * here looks at a file system; links are not the filter's business.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/filter_int.h"

/* One more segment behind the n bytes of out. */
static size_t
fold_segment(char *out, size_t n, int abs, const char *seg, size_t len)
{
	size_t at = n;

	if (len == 0 || (len == 1 && seg[0] == '.'))
		return n;
	if (len == 2 && memcmp(seg, "..", 2) == 0) {
		while (at > 0 && out[at - 1] != '/')
			at--;
		if (n > 0 && !(n - at == 2 && memcmp(out + at, "..", 2) == 0))
			return at > 0 ? at - 1 : 0;
		if (abs)
			return 0;
	}
	if (n > 0 || abs)
		out[n++] = '/';
	memcpy(out + n, seg, len);
	return n + len;
}

/* /proc/self/root is the root. */
static const char *
skip_alias(const char *s)
{
	static const char *const alias[] = {"/proc/self/root", "/proc/1/root"};
	size_t i, n;

	for (i = 0; i < nitems(alias); i++) {
		n = strlen(alias[i]);
		if (strncmp(s, alias[i], n) != 0)
			continue;
		if (s[n] == '/')
			return s + n;
		if (s[n] == '\0')
			return "/";
	}
	return s;
}

static const char *
fold(struct fctx *x, const char *s, int abs)
{
	size_t len = strlen(s), n = 0, seg;

	if (fctx_grow(x, &x->path, &x->pathcap, len + 2, 1) == -1)
		return "";
	while (*s != '\0') {
		seg = strcspn(s, "/");
		n = fold_segment(x->path, n, abs, s, seg);
		s += seg + (s[seg] == '/');
	}
	if (n == 0)
		x->path[n++] = abs ? '/' : '.';
	x->path[n] = '\0';
	return skip_alias(x->path);
}

const char *
path_fold(struct fctx *x, const char *s)
{
	return fold(x, s, s[0] == '/');
}

const char *
path_fold_at(const struct cmd *c, const char *s)
{
	int known = s[0] != CH_DYN && s[0] != '~' && s[0] != '$';

	return fold(c->x, s, s[0] == '/' || (c->fr->at_root && known));
}

/* Wildcards that match whatever is there. */
static int
any_name(const char *s, size_t n)
{
	size_t i, stars = 0;
	const char *q;

	for (i = 0; i < n; i++) {
		if (s[i] == '*' || s[i] == '?')
			stars++;
		else if (s[i] == '[') {
			q = memchr(s + i + 1, ']', n - i - 1);
			if (q == NULL)
				return 0;
			i = (size_t)(q - s);
		} else if (s[i] != '.')
			return 0;
	}
	return stars > 0;
}

static int
in_list(const char *s, size_t n, const char *list)
{
	const char *p;

	if (n == 0)
		return 0;
	for (p = list; (p = memmem(p, strlen(p), s, n)) != NULL; p++)
		if (p > list && p[-1] == ' ' && p[n] == ' ')
			return 1;
	return 0;
}

#define SYSTEM                                                                \
	" etc usr var bin boot lib lib32 lib64 libx32 sys root sbin opt srv " \
	"home proc dev System Library Applications Volumes private "

int
path_root(const char *s, uint32_t flags)
{
	size_t n;

	if (s[0] != '/')
		return 0;
	if (s[1] == '\0')
		return 1;
	if ((flags & W_BRROOT) != 0 && in_list(s + 1, strlen(s + 1), SYSTEM))
		return 1;
	for (s++; *s != '\0'; s += n + (s[n] == '/')) {
		n = strcspn(s, "/");
		if (!any_name(s, n))
			return 0;
	}
	return 1;
}

int
path_system(const char *s)
{
	size_t n;

	if (s[0] == '~')
		return s[1] == '\0' || s[1] == '/' || s[1] == '*';
	if (strncmp(s, "$HOME", 5) == 0)
		return s[5] == '\0' || s[5] == '/' || s[5] == '*';
	if (s[0] != '/')
		return 0;
	if (path_root(s, 0))
		return 1;
	if (strncmp(s, "/dev/shm/", 9) == 0)
		return 0;
	n = strcspn(s + 1, "/*");
	if (in_list(s + 1, n, SYSTEM))
		return 1;
	/* what is mounted, but not what lies in it */
	s += 1 + n;
	return in_list(s - n, n, " mnt media ") &&
	       (*s == '\0' || path_root(s, 0));
}

int
path_chmod(const char *s)
{
	if (s[0] != '/')
		return 0;
	return path_root(s, 0) ||
	       in_list(s + 1, strcspn(s + 1, "/*"), " etc usr bin var ");
}

/* ---- devices ---- */

enum tail {
	T_NONE,	   /* nothing may follow */
	T_LETTERS, /* sda, sda1: at most three letters */
	T_NUMBER,  /* nvme0n1p2: digits, then letters and digits */
	T_ANY	   /* a path of its own */
};
static const struct {
	const char *name;
	enum tail tail;
} devices[] = {
    {"sd", T_LETTERS},
    {"hd", T_LETTERS},
    {"vd", T_LETTERS},
    {"xvd", T_LETTERS},
    {"dasd", T_LETTERS},
    {"nvme", T_NUMBER},
    {"nvd", T_NUMBER},
    {"disk", T_NUMBER},
    {"disk/", T_ANY},
    {"rdisk", T_NUMBER},
    {"mmcblk", T_NUMBER},
    {"loop", T_NUMBER},
    {"sr", T_NUMBER},
    {"pmem", T_NUMBER},
    {"dm-", T_NUMBER},
    {"md", T_NUMBER},
    {"md_d", T_NUMBER},
    {"md/", T_ANY},
    {"nbd", T_NUMBER},
    {"zram", T_NUMBER},
    {"ram", T_NUMBER},
    {"ada", T_NUMBER},
    {"mapper/", T_ANY},
    {"block/", T_ANY},
    {"mem", T_NONE},
    {"kmem", T_NONE},
    {"port", T_NONE},
    {"root", T_NONE},
};

/* A wildcard or an unknown part may be what is looked for. */
static int
open_char(char c)
{
	return c == '*' || c == '?' || c == '[' || c == ']' || c == CH_DYN;
}

static int
tail_ok(const char *s, enum tail tail)
{
	size_t letters = 0;
	int set = 0; /* in a [...] of a pattern */

	if (tail == T_NONE)
		return *s == '\0';
	if (tail == T_ANY)
		return *s != '\0' && strcmp(s, "control") != 0;
	if (tail == T_NUMBER && !open_char(*s) && !(*s >= '0' && *s <= '9'))
		return 0;
	for (; *s != '\0'; s++) {
		set = *s == '[' || (set && *s != ']');
		if (set)
			continue;
		if (*s >= 'a' && *s <= 'z')
			letters++;
		else if (!open_char(*s) && !(*s >= '0' && *s <= '9'))
			return 0;
		if (tail == T_LETTERS && letters > 3)
			return 0;
	}
	return 1;
}

int
path_device(const char *s)
{
	size_t i, n;

	if (strncmp(s, "/dev/", 5) != 0)
		return 0;
	s += 5;
	for (i = 0; i < nitems(devices); i++) {
		n = strlen(devices[i].name);
		if (strncmp(s, devices[i].name, n) == 0 &&
		    (s[n] != '\0' || devices[i].tail == T_NONE) &&
		    tail_ok(s + n, devices[i].tail))
			return 1;
	}
	return 0;
}

int
path_dev(const char *s)
{
	if (strncmp(s, "/dev/", 5) != 0)
		return 0;
	s += 5;
	return !in_list(s, strcspn(s, "/"),
	    " null zero full random urandom stdout stderr stdin tty pts shm "
	    "fd ");
}

/* ---- files that open doors ---- */

int
path_accounts(const char *s)
{
	if (strncmp(s, "/etc/", 5) != 0)
		return 0;
	s += 5;
	return in_list(s, strlen(s),
		   " passwd shadow sudoers gshadow passwd- shadow- "
		   "gshadow- ") ||
	       strncmp(s, "sudoers.d/", 10) == 0;
}

int
path_sshkeys(const char *s)
{
	static const char keys[] = ".ssh/authorized_keys";
	size_t n = strlen(s), k = sizeof(keys) - 1;

	return n >= k && strcmp(s + n - k, keys) == 0 &&
	       (n == k || s[n - k - 1] == '/');
}
