/*
 * SPDX-License-Identifier: ISC
 *
 * The programs that the command policy knows, as data: those that run another
 * command, those that run code they are given, and by which rules each is
 * judged.
 */
#include <string.h>

#include "policy/filter_int.h"

/* ---- wrappers: a command follows ---- */

/* clang-format off */
static const struct wrap wraps[] = {
    /* name, letters with arguments, long ones, operands to skip,
     * assignments, script letter, shell letters, letters that run nothing */
    {"sudo", "A:B:C:D:R:T:U:a:c:g:h:p:r:t:u:",
	" user= group= host= prompt= close-from= command-timeout= role= "
	"type= other-user= chdir= chroot= shell:s login:i list:l edit:e "
	"validate:v", 0, 1, 0, "si", "lev"},
    {"doas", "C:u:", " ", 0, 0, 0, "s", "L"},
    {"pkexec", "", " user=", 0, 0, 0, "", ""},
    {"su", "g:G:s:w:", " command=:c shell= group= ", NO_COMMAND, 0, 'c', "",
	""},
    {"runuser", "g:G:s:u:w:", " command=:c user= shell= group= ", 0, 0, 'c',
	"", ""},
    {"env", "C:u:", " unset= chdir= split-string=:S argv0=", 0, 1, 'S', "",
	""},
    {"nohup", "", " ", 0, 0, 0, "", ""},
    {"setsid", "", " ", 0, 0, 0, "", ""},
    {"nice", "n:", " adjustment=", 0, 0, 0, "", ""},
    {"ionice", "c:n:p:P:u:", " class= classdata=", 0, 0, 0, "", "pPu"},
    {"chrt", "T:P:D:", " sched-runtime=", 1, 0, 0, "", ""},
    {"taskset", "", " ", 1, 0, 0, "", ""},
    {"timeout", "k:s:", " kill-after= signal=", 1, 0, 0, "", ""},
    {"stdbuf", "i:o:e:", " input= output= error=", 0, 0, 0, "", ""},
    {"time", "f:o:", " format= output=", 0, 0, 0, "", ""},
    {"xargs", "E:I:L:P:a:d:n:s:",
	" arg-file= delimiter= max-args= max-chars= max-procs= max-lines= "
	"replace=", 0, 0, 0, "", ""},
    {"parallel", "j:S:a:N:n:L:", " jobs= sshlogin= arg-file=", 0, 0, 0, "",
	""},
    {"busybox", "", " ", 0, 0, 0, "", ""},
    {"toybox", "", " ", 0, 0, 0, "", ""},
    {"exec", "a:", " ", 0, 0, 0, "", ""},
    {"command", "", " ", 0, 0, 0, "", "vV"},
    {"builtin", "", " ", 0, 0, 0, "", ""},
    {"noglob", "", " ", 0, 0, 0, "", ""},
    {"nocorrect", "", " ", 0, 0, 0, "", ""},
    {"chroot", "", " userspec= groups=", 1, 0, 0, "", ""},
    {"unshare", "S:G:R:w:", " setuid= setgid= root= wd=", 0, 0, 0, "", ""},
    {"nsenter", "t:S:G:", " target= setuid= setgid=", 0, 0, 0, "", ""},
    {"systemd-run", "p:u:E:H:M:",
	" property= unit= setenv= slice= uid= gid= description=", 0, 0, 0, "",
	""},
    {"setarch", "", " ", 1, 0, 0, "", ""},
    {"linux32", "", " ", 0, 0, 0, "", ""},
    {"linux64", "", " ", 0, 0, 0, "", ""},
    {"prlimit", "p:o:", " pid=", 0, 0, 0, "", "p"},
    {"flock", "w:E:", " timeout= conflict-exit-code= command=:c", 1, 0, 'c',
	"", ""},
    {"watch", "n:", " interval=", 0, 0, '*', "", ""},
    {"script", "I:O:B:T:m:o:E:", " command=:c", NO_COMMAND, 0, 'c', "", ""},
    {"strace", "E:I:O:P:S:X:a:b:e:o:p:s:u:", " ", 0, 0, 0, "", ""},
    {"ltrace", "a:e:l:n:o:p:s:u:x:", " ", 0, 0, 0, "", ""},
    {"unbuffer", "", " ", 0, 0, 0, "", ""},
    {"fakeroot", "l:s:i:", " ", 0, 0, 0, "", ""},
    {"eatmydata", "", " ", 0, 0, 0, "", ""},
    {"setpriv", "", " reuid= regid= ruid= euid= rgid= egid= groups= caps= "
	"ambient-caps= inh-caps= bounding-set= securebits= pdeathsig= ",
	0, 0, 0, "", "d"},
    {"chronic", "", " ", 0, 0, 0, "", ""},
    {"catchsegv", "", " ", 0, 0, 0, "", ""},
    {"gosu", "", " ", 1, 0, 0, "", ""},
    {"su-exec", "", " ", 1, 0, 0, "", ""},
    {"proxychains4", "f:", " ", 0, 0, 0, "", ""},
    {"torsocks", "", " ", 0, 0, 0, "", ""},
    {"dbus-run-session", "", " ", 0, 0, 0, "", ""},
    {"ld-linux", "", " library-path= preload= argv0=", 0, 0, 0, "", ""},
};

/* ---- other interpreters: code as an argument ---- */

static const struct code_prog codes[] = {
    /* name, letters with arguments, those that take code, long ones, modes
     * without a program of ours, the first operand is code */
    {"python", "c:m:W:X:Q:", "c", " ", "m", 0},
    {"pypy", "c:m:W:X:", "c", " ", "m", 0},
    {"perl", "e:E:I:M:m:", "eE", " ", "", 0},
    {"ruby", "e:I:r:C:E:", "e", " ", "", 0},
    {"node", "e:p:r:C:", "ep", " eval=:e print=:p ", "", 0},
    {"nodejs", "e:p:r:", "ep", " eval=:e print=:p ", "", 0},
    {"bun", "e:p:r:", "ep", " eval=:e print=:p ", "", 0},
    {"php", "r:B:E:R:c:d:f:", "rBER", " ", "f", 0},
    {"lua", "e:l:", "e", " ", "", 0},
    {"rscript", "e:", "e", " ", "", 0},
    {"osascript", "e:l:", "e", " ", "", 0},
    {"tclsh", "", "", " ", "", 0},
    {"awk", "F:v:f:", "", " ", "f", 1},
    {"gawk", "F:v:f:e:i:", "e", " source=:e ", "f", 1},
    {"mawk", "F:v:f:", "", " ", "f", 1},
};
/* clang-format on */

/* ---- the rest, by kind ---- */

static const struct {
	enum prog_kind kind;
	const char *names;
} kinds[] = {
    {PROG_SHELL, "sh bash dash ash zsh ksh mksh rbash fish"},
    {PROG_EVAL, "eval"},
    {PROG_TRAP, "trap"},
    {PROG_SOURCE, "source ."},
    {PROG_FIND, "find gfind"},
    {PROG_CD, "cd pushd popd"},
    {PROG_SET, "export declare typeset local readonly"},
    {PROG_PARAMS, "set"},
    {PROG_SHIFT, "shift"},
    {PROG_FOR, "for select"},
    {PROG_LOAD, "curl wget wget2 fetch"},
    {PROG_LIT, "echo printf cat tee base64 openssl xxd"},
};

/* Where the name is, or would be. */
static size_t
slot(const struct progs *ps, const char *name, size_t n)
{
	size_t i = name_hash(name, n) % PROG_SLOTS;

	while (ps->slot[i].name != NULL &&
	       (ps->slot[i].len != n || memcmp(ps->slot[i].name, name, n) != 0))
		i = (i + 1) % PROG_SLOTS;
	return i;
}

static struct prog *
intern(struct progs *ps, const char *name, size_t n)
{
	struct prog *p = &ps->slot[slot(ps, name, n)];

	p->name = name;
	p->len = n;
	return p;
}

/* Each of some names separated by spaces. */
static void
each_name(
    struct progs *ps, const char *names, enum prog_kind kind, uint64_t rule)
{
	struct prog *p;
	size_t n;

	for (; *names != '\0'; names += n + (names[n] == ' ')) {
		n = strcspn(names, " ");
		p = intern(ps, names, n);
		p->rules |= rule;
		if (kind != PROG_PLAIN)
			p->kind = kind;
	}
}

void
progs_init(struct progs *ps)
{
	struct prog *p;
	size_t i;

	memset(ps, 0, sizeof(*ps));
	for (i = 0; i < nitems(wraps); i++) {
		p = intern(ps, wraps[i].name, strlen(wraps[i].name));
		p->kind = PROG_WRAP;
		p->wrap = &wraps[i];
	}
	for (i = 0; i < nitems(codes); i++) {
		p = intern(ps, codes[i].name, strlen(codes[i].name));
		p->kind = PROG_CODE;
		p->code = &codes[i];
	}
	for (i = 0; i < nitems(kinds); i++)
		each_name(ps, kinds[i].names, kinds[i].kind, 0);
	for (i = 0; i < RULE_COUNT; i++)
		if (rule_rows[i].progs != NULL)
			each_name(
			    ps, rule_rows[i].progs, PROG_PLAIN, 1ULL << i);
}

/* mkfs.ext4, newfs_msdos, ld-linux-x86-64.so.2: the length of what stays the
 * same, or 0. */
static size_t
stem(const char *s, size_t n)
{
	static const struct {
		const char *head;
		size_t len;
	} stems[] = {{"mkfs.", 4}, {"newfs_", 5}, {"ld-linux", 8}};
	size_t i;

	for (i = 0; i < nitems(stems); i++)
		if (strncmp(s, stems[i].head, strlen(stems[i].head)) == 0)
			return stems[i].len;
	return 0;
}

/* python3.11 without its version. */
static size_t
unversioned(const char *s, size_t n)
{
	while (n > 0 && ((s[n - 1] >= '0' && s[n - 1] <= '9') ||
			    s[n - 1] == '.' || s[n - 1] == '-'))
		n--;
	return n;
}

const struct prog *
prog_find(const struct progs *ps, const char *name)
{
	size_t n = strlen(name), k;
	const struct prog *p;

	if (n == 0)
		return NULL;
	if ((p = &ps->slot[slot(ps, name, n)])->name != NULL)
		return p;
	if ((k = stem(name, n)) > 0) {
		p = &ps->slot[slot(ps, name, k)];
		return p->name != NULL ? p : NULL;
	}
	k = unversioned(name, n);
	if (k == n || k == 0)
		return NULL;
	p = &ps->slot[slot(ps, name, k)];
	return p->name != NULL && p->kind == PROG_CODE ? p : NULL;
}
