/*
 * SPDX-License-Identifier: ISC
 *
 * The seccomp list of design "seccomp" as programs: most of it by libseccomp,
 * and one small program by hand for what it cannot say (numbers that are
 * newer than the list, and "all values but these").  Applies nothing itself.
 */
#include "execd/filter.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <seccomp.h>

#include "common/jail.h"

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define NATIVE_ARCH AUDIT_ARCH_RISCV64
#else
#define NATIVE_ARCH 0
#endif
_Static_assert(NATIVE_ARCH != 0, "name the AUDIT_ARCH of this machine");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
    "the low half of an argument lies elsewhere");

/* The newest number that the list names (open_tree_attr); what is newer
 * answers ENOSYS until somebody has read what it does. */
#define NEWEST_CALL 467
#define X32_BIT 0x40000000U
#define PER_QUERY 0xffffffffU

#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif
#ifndef F_SETPIPE_SZ
#define F_SETPIPE_SZ 1031
#endif
#define PIPE_MAX 65536
#define TMPFILE_BIT 020000000ULL /* O_TMPFILE less O_DIRECTORY */
#define LOW32 0xffffffffULL

enum deny_who { CMD, ALL };

const struct jail_call filter_execd[] = {
#define DENY_CMD(name)
#define DENY_ALL(name) {#name, 0, 0, 0, 0},
#define DENY(name, who, nr, err) DENY_##who(name)
#include "execd/deny.def"
#undef DENY
    {"ioctl", 1, 1, LOW32, TIOCSTI}, {"ioctl", 1, 1, LOW32, TIOCLINUX},
    {NULL, 0, 0, 0, 0}};

/* An answer without the call, on conditions: all of them must hold. */
struct cond {
	unsigned arg;
	enum scmp_compare op;
	uint64_t a, b; /* MASKED_EQ: mask, value; else value */
};
struct rule {
	const char *name;
	int nr; /* when libseccomp may not know the name */
	unsigned n;
	struct cond c[2];
};

#define BITS(arg, bits)                             \
	{                                           \
		arg, SCMP_CMP_MASKED_EQ, bits, bits \
	}
#define INT_IS(arg, v)                            \
	{                                         \
		arg, SCMP_CMP_MASKED_EQ, LOW32, v \
	}
/* no set-id files: either bit refuses */
#define NO_SETID(name, nr, arg)              \
	{name, nr, 1, {BITS(arg, S_ISUID)}}, \
	{                                    \
		name, nr, 1,                 \
		{                            \
			BITS(arg, S_ISGID)   \
		}                            \
	}
#define NO_SETID_OPEN(name, flags, mode, bit)                   \
	{name, -1, 2, {BITS(flags, bit), BITS(mode, S_ISUID)}}, \
	{                                                       \
		name, -1, 2,                                    \
		{                                               \
			BITS(flags, bit), BITS(mode, S_ISGID)   \
		}                                               \
	}

static const struct rule rules[] = {
    {"unshare", -1, 1, {BITS(0, CLONE_NEWUSER)}},
    {"clone", -1, 1, {BITS(0, CLONE_NEWUSER)}},
    {"ioctl", -1, 1, {INT_IS(1, TIOCSTI)}},
    {"ioctl", -1, 1, {INT_IS(1, TIOCLINUX)}},
    {"fcntl", -1, 2, {INT_IS(1, F_SETPIPE_SZ), {2, SCMP_CMP_GT, PIPE_MAX, 0}}},
    NO_SETID("chmod", -1, 1),
    NO_SETID("fchmod", -1, 1),
    NO_SETID("fchmodat", -1, 2),
    NO_SETID("fchmodat2", 452, 2),
    NO_SETID("mkdir", -1, 1),
    NO_SETID("mkdirat", -1, 2),
    NO_SETID("creat", -1, 1),
    NO_SETID_OPEN("open", 1, 2, O_CREAT),
    NO_SETID_OPEN("open", 1, 2, TMPFILE_BIT),
    NO_SETID_OPEN("openat", 2, 3, O_CREAT),
    NO_SETID_OPEN("openat", 2, 3, TMPFILE_BIT),
};

/* No network: no socket of any family, so that none that lies in a bound
 * directory can be reached; pairs are what runtimes need.  Not of datagrams:
 * one end could be pointed at such a socket.  (A raw one is of datagrams.) */
#define TYPE_IS(arg, type)                         \
	{                                          \
		arg, SCMP_CMP_MASKED_EQ, 0xf, type \
	}
static const struct rule rules_none[] = {
    {"socket", -1, 0, {{0, 0, 0, 0}}},
    {"socketpair", -1, 1, {{0, SCMP_CMP_NE, AF_UNIX, 0}}},
    {"socketpair", -1, 1, {TYPE_IS(1, SOCK_DGRAM)}},
    {"socketpair", -1, 1, {TYPE_IS(1, SOCK_RAW)}},
};

/* The profile "strict": threads, and nothing else that is new. */
static const struct rule rules_nofork[] = {
    {"fork", -1, 0, {{0, 0, 0, 0}}},
    {"vfork", -1, 0, {{0, 0, 0, 0}}},
    {"clone", -1, 1, {{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0}}},
};

/* The core limit stays what it is, ABX_NO_CORE.  Who lowers it wants what he
 * has, and some end when they may not: it succeeds. */
static const struct rule rules_core[] = {
    {"setrlimit", -1, 1, {INT_IS(0, RLIMIT_CORE)}},
    {"prlimit64", -1, 2, {INT_IS(1, RLIMIT_CORE), {2, SCMP_CMP_NE, 0, 0}}},
};

static int
add_rule(scmp_filter_ctx ctx, int err, const struct rule *r)
{
	int nr = seccomp_syscall_resolve_name(r->name), rc;
	struct scmp_arg_cmp cmp[2];
	unsigned i;

	if (nr < 0)
		nr = r->nr; /* other machines lack some names */
	if (nr < 0)
		return 0;
	for (i = 0; i < r->n; i++) {
		cmp[i].arg = r->c[i].arg;
		cmp[i].op = r->c[i].op;
		cmp[i].datum_a = r->c[i].a;
		cmp[i].datum_b = r->c[i].b;
	}
	rc = seccomp_rule_add_array(
	    ctx, SCMP_ACT_ERRNO((uint32_t)err), nr, r->n, cmp);
	if (rc != 0 && rc != -EEXIST) {
		errno = -rc;
		return -1;
	}
	return 0;
}

static int
add_rules(scmp_filter_ctx ctx, int err, const struct rule *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (add_rule(ctx, err, &r[i]) == -1)
			return -1;
	return 0;
}

static int
add_denied(scmp_filter_ctx ctx)
{
	static const struct {
		struct rule r;
		int err;
	} denied[] = {
#define DENY(name, who, nr, err) {{#name, nr, 0, {{0, 0, 0, 0}}}, err},
#include "execd/deny.def"
#undef DENY
	};
	size_t i;

	for (i = 0; i < nitems(denied); i++)
		if (add_rule(ctx, denied[i].err, &denied[i].r) == -1)
			return -1;
	return 0;
}

static scmp_filter_ctx
context(void)
{
	scmp_filter_ctx ctx;

	if ((ctx = seccomp_init(SCMP_ACT_ALLOW)) == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	if (seccomp_attr_set(
		ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0 ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) != 0) {
		seccomp_release(ctx);
		errno = EINVAL;
		return NULL;
	}
	return ctx;
}

static int
build_list(struct xl_filter *f)
{
	scmp_filter_ctx ctx;
	int rc = -1;

	if ((ctx = context()) == NULL)
		return -1;
	if (add_denied(ctx) == 0 &&
	    add_rules(ctx, EPERM, rules, nitems(rules)) == 0 &&
	    add_rules(ctx, 0, rules_core, nitems(rules_core)) == 0 &&
	    add_rules(ctx, EPERM, rules_none, nitems(rules_none)) == 0)
		rc = jail_export(ctx, &f->code, &f->len);
	seccomp_release(ctx);
	return rc;
}

static int
build_nofork(struct xl_filter *f)
{
	scmp_filter_ctx ctx;
	int rc = -1;

	if ((ctx = context()) == NULL)
		return -1;
	if (add_rules(ctx, EPERM, rules_nofork, nitems(rules_nofork)) == 0)
		rc = jail_export(ctx, &f->code, &f->len);
	seccomp_release(ctx);
	return rc;
}

/* By hand: x32, numbers above the list, and personality other than a query
 * and the usual one (the kernel reads its low 32 bits). */
static int
build_rest(struct xl_filter *f)
{
#define RET(v) BPF_STMT(BPF_RET | BPF_K, v)
#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define JUMP(op, v, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, v, yes, no)
	static const struct sock_filter prog[] = {
	    LOAD(arch),
	    JUMP(BPF_JEQ, NATIVE_ARCH, 1, 0),
	    RET(SECCOMP_RET_KILL_PROCESS),
	    LOAD(nr),
#ifdef __x86_64__
	    JUMP(BPF_JGE, X32_BIT, 0, 1),
	    RET(SECCOMP_RET_KILL_PROCESS),
#endif
	    JUMP(BPF_JGT, NEWEST_CALL, 0, 1),
	    RET(SECCOMP_RET_ERRNO | ENOSYS),
	    JUMP(BPF_JEQ, SYS_personality, 0, 4),
	    LOAD(args[0]),
	    JUMP(BPF_JEQ, 0, 2, 0),
	    JUMP(BPF_JEQ, PER_QUERY, 1, 0),
	    RET(SECCOMP_RET_ERRNO | EPERM),
	    RET(SECCOMP_RET_ALLOW),
	};
#undef RET
#undef LOAD
#undef JUMP

	f->len = sizeof(prog);
	if ((f->code = malloc(f->len)) == NULL)
		return -1;
	memcpy(f->code, prog, f->len);
	return 0;
}

int
filter_build(struct xl_setup *s)
{
	s->nfilters = 2;
	memset(s->filters, 0, sizeof(s->filters));
	if (build_list(&s->filters[0]) == -1 ||
	    build_rest(&s->filters[1]) == -1)
		return -1;
	return build_nofork(&s->nofork);
}
