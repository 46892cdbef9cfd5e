/*
 * SPDX-License-Identifier: ISC
 *
 * Confinement primitives.  Every step that the kernel supports and that fails
 * ends the process; what the kernel lacks is visible in the line of text that
 * jail_confine reads back.  Knows no process in particular.
 */
#include "common/jail.h"

#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/filter.h>

#include <seccomp.h>

#include "common/abx.h"
#include "common/caps.h"
#include "common/landlock.h"
#include "common/log.h"

#define CAP_COUNT 64

static void
drop_caps(void)
{
	struct cap_hdr h = {CAP_VERSION_3, 0};
	struct cap_data d[2];
	int i;

	/* without CAP_SETPCAP the bounding set cannot shrink; no_new_privs
	 * makes it moot then */
	for (i = 0; i < CAP_COUNT; i++)
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == -1 &&
		    errno != EINVAL && errno != EPERM)
			fatal("cannot drop capability %d", i);
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1)
		fatal("cannot clear ambient capabilities");
	memset(d, 0, sizeof(d));
	if (syscall(SYS_capset, &h, d) == -1)
		fatal("capset");
}

void
jail_ids(int root, uid_t uid, gid_t gid)
{
	uid_t r, e, s;
	gid_t rg, eg, sg;
	int i;

	if (root) {
		for (i = 0; i < CAP_COUNT; i++)
			if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == -1 &&
			    errno != EINVAL)
				fatal("cannot drop capability %d", i);
		if (setgroups(0, NULL) == -1)
			fatal("setgroups");
		if (setresgid(gid, gid, gid) == -1)
			fatal("setresgid %u", gid);
		if (setresuid(uid, uid, uid) == -1)
			fatal("setresuid %u", uid);
	}
	drop_caps();
	if (getresuid(&r, &e, &s) == -1 || getresgid(&rg, &eg, &sg) == -1 ||
	    r != uid || e != uid || s != uid || rg != gid || eg != gid ||
	    sg != gid)
		fatalx("the kernel does not report the ids that were set");
	if (root && (setuid(0) != -1 || setgid(0) != -1))
		fatalx("root could be taken back");
}

static void
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd == -1 || write(fd, text, strlen(text)) == -1)
		fatal("cannot write %s", path);
	close(fd);
}

void
jail_idmap(uid_t uid, gid_t gid)
{
	char line[64];

	write_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
	write_file("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
	write_file("/proc/self/gid_map", line);
}

void
jail_empty_root(int root)
{
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) == -1)
		fatal("cannot make a mount namespace");
	if (!root)
		jail_idmap(uid, gid);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1)
		fatal("cannot make mounts private");
	if (mount("tmpfs", "/proc", "tmpfs",
		MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		"size=4k,mode=0555") == -1)
		fatal("cannot mount an empty root");
	if (chdir("/proc") == -1 || syscall(SYS_pivot_root, ".", ".") == -1 ||
	    umount2(".", MNT_DETACH) == -1 || chdir("/") == -1)
		fatal("cannot enter the empty root");
}

/* ---- Landlock ---- */

int
jail_landlock_abi(void)
{
	long v =
	    syscall(SYS_landlock_create_ruleset, NULL, 0, LL_CREATE_VERSION);

	return v < 0 ? 0 : (int)v;
}

static uint64_t
ll_handled(int abi)
{
	uint64_t fs = LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_READ_DIR |
		      LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_ALL;

	if (abi >= 2)
		fs |= LL_REFER;
	if (abi >= 3)
		fs |= LL_TRUNCATE;
	if (abi >= 5)
		fs |= LL_IOCTL_DEV;
	return fs;
}

static uint64_t
ll_rights(unsigned rights)
{
	uint64_t fs = 0;

	if (rights & JR_READ)
		fs |= LL_READ_FILE | LL_READ_DIR;
	if (rights & JR_EXEC)
		fs |= LL_EXECUTE;
	if (rights & JR_WRITE)
		fs |= LL_WRITE_FILE | LL_REMOVE_DIR | LL_REMOVE_FILE |
		      LL_MAKE_ALL | LL_REFER | LL_TRUNCATE;
	return fs;
}

void
jail_landlock(const struct jail_path *paths, size_t n)
{
	struct ll_attr a = {0};
	struct ll_path p;
	struct stat st;
	int abi = jail_landlock_abi(), fd;
	size_t i, size;

	if (abi == 0)
		return;
	a.fs = ll_handled(abi);
	a.net = abi >= 4 ? LL_NET_ALL : 0;
	a.scoped = abi >= 6 ? LL_SCOPE_ALL : 0;
	size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
	fd = (int)syscall(SYS_landlock_create_ruleset, &a, size, 0);
	if (fd == -1)
		fatal("landlock ruleset");
	for (i = 0; i < n; i++) {
		if (fstat(paths[i].fd, &st) == -1)
			fatal("landlock path");
		p.access = ll_rights(paths[i].rights) & a.fs;
		if (!S_ISDIR(st.st_mode))
			p.access &= LL_FILE_RIGHTS;
		p.fd = paths[i].fd;
		if (p.access != 0 && syscall(SYS_landlock_add_rule, fd,
					 LL_RULE_PATH_BENEATH, &p, 0) == -1)
			fatal("landlock rule");
	}
	if (syscall(SYS_landlock_restrict_self, fd, 0) == -1)
		fatal("landlock restrict");
	close(fd);
}

/* ---- seccomp ---- */

/* What every process of ours needs once it runs.  fstat(3) is newfstatat
 * with an empty path; memory is never made executable; nobody is
 * sent a signal, be it by F_SETOWN. */
static const struct jail_call base_calls[] = {{"read", 0, 0, 0, 0},
    {"write", 0, 0, 0, 0}, {"close", 0, 0, 0, 0}, {"readv", 0, 0, 0, 0},
    {"writev", 0, 0, 0, 0}, {"pread64", 0, 0, 0, 0}, {"lseek", 0, 0, 0, 0},
    {"fstat", 0, 0, 0, 0}, {"newfstatat", 1, 3, 0xffffffff, 0x1000},
    {"fcntl", 1, 1, 0xfffffff8, F_DUPFD},	  /* to F_SETLKW */
    {"fcntl", 1, 1, 0xfffffffe, F_DUPFD_CLOEXEC}, /* F_SETPIPE_SZ */
    {"fcntl", 1, 1, 0xfffffffe, F_GETPIPE_SZ},	  /* F_ADD_SEALS */
    {"fcntl", 1, 1, 0xffffffff, F_GET_SEALS}, {"sendmsg", 0, 0, 0, 0},
    {"recvmsg", 0, 0, 0, 0}, {"poll", 0, 0, 0, 0}, {"ppoll", 0, 0, 0, 0},
    {"epoll_wait", 0, 0, 0, 0}, {"epoll_pwait", 0, 0, 0, 0},
    {"epoll_pwait2", 0, 0, 0, 0}, {"epoll_ctl", 0, 0, 0, 0},
    {"timerfd_settime", 0, 0, 0, 0}, {"brk", 0, 0, 0, 0}, {"mmap", 1, 2, 4, 0},
    {"munmap", 0, 0, 0, 0}, {"mremap", 0, 0, 0, 0}, {"mprotect", 1, 2, 4, 0},
    {"madvise", 0, 0, 0, 0}, {"futex", 0, 0, 0, 0},
    {"rt_sigreturn", 0, 0, 0, 0}, {"rt_sigaction", 0, 0, 0, 0},
    {"rt_sigprocmask", 0, 0, 0, 0}, {"clock_gettime", 0, 0, 0, 0},
    {"gettimeofday", 0, 0, 0, 0},
    /* where the kernel offers no vDSO */
    {"time", 0, 0, 0, 0}, {"clock_nanosleep", 0, 0, 0, 0},
    {"nanosleep", 0, 0, 0, 0}, {"restart_syscall", 0, 0, 0, 0},
    {"getpid", 0, 0, 0, 0}, {"gettid", 0, 0, 0, 0}, {"getrandom", 0, 0, 0, 0},
    {"exit", 0, 0, 0, 0}, {"exit_group", 0, 0, 0, 0}, {NULL, 0, 0, 0, 0}};

#ifdef ABX_SANITIZE
/* The sanitizers' runtime calls what no filter of ours allows, so in that
 * flavour only what matters most is refused. */
static const char *const sanitize_kill[] = {"socket", "connect", "execve",
    "execveat", "ptrace", "mount", "setuid", "bpf", NULL};
#endif

static void
add_call(scmp_filter_ctx ctx, uint32_t action, const struct jail_call *c)
{
	int nr = seccomp_syscall_resolve_name(c->name), rc;
	struct scmp_arg_cmp cmp;

	if (nr == __NR_SCMP_ERROR)
		return;
	cmp = SCMP_CMP64(c->arg, SCMP_CMP_MASKED_EQ, c->mask, c->value);
	rc =
	    seccomp_rule_add_array(ctx, action, nr, c->narg == 1 ? 1 : 0, &cmp);
	/* a rule that the default already implies is fine */
	if (rc != 0 && rc != -EACCES && rc != -EEXIST)
		fatalx("seccomp rule for %s: %s", c->name, strerror(-rc));
}

static int
listed(const struct jail_call *calls, const char *name)
{
	for (; calls != NULL && calls->name != NULL; calls++)
		if (strcmp(calls->name, name) == 0)
			return 1;
	return 0;
}

#ifndef ABX_SANITIZE
/* A call that the program lists itself is not widened by the base. */
static void
add_base(scmp_filter_ctx ctx, const struct jail_call *calls)
{
	const struct jail_call *c,
	    self = {/* abort(3) */
		"tgkill", 1, 0, 0xffffffff, (uint64_t)getpid()};

	for (c = base_calls; c->name != NULL; c++)
		if (!listed(calls, c->name))
			add_call(ctx, SCMP_ACT_ALLOW, c);
	if (!listed(calls, self.name))
		add_call(ctx, SCMP_ACT_ALLOW, &self);
}
#endif

static scmp_filter_ctx
filter_new(int deny_list)
{
	uint32_t def = SCMP_ACT_KILL_PROCESS;
	scmp_filter_ctx ctx;

	if (deny_list)
		def = SCMP_ACT_ALLOW;
#ifdef ABX_SANITIZE
	def = SCMP_ACT_ALLOW;
#endif
	if ((ctx = seccomp_init(def)) == NULL)
		fatalx("seccomp_init");
	if (seccomp_attr_set(
		ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0 ||
	    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2) != 0)
		fatalx("seccomp attributes");
	return ctx;
}

static scmp_filter_ctx
filter_build(const struct jail_call *calls, int deny_list)
{
	scmp_filter_ctx ctx = filter_new(deny_list);
	const struct jail_call *c;

#ifdef ABX_SANITIZE
	struct jail_call k = {NULL, 0, 0, 0, 0};
	size_t i;

	(void)base_calls;
	for (i = 0; !deny_list && sanitize_kill[i] != NULL; i++)
		if (!listed(calls, sanitize_kill[i])) {
			k.name = sanitize_kill[i];
			add_call(ctx, SCMP_ACT_KILL_PROCESS, &k);
		}
	if (deny_list)
		for (c = calls; c->name != NULL; c++)
			add_call(ctx, SCMP_ACT_ERRNO(EPERM), c);
#else
	for (c = calls; c != NULL && c->name != NULL; c++)
		add_call(
		    ctx, deny_list ? SCMP_ACT_ERRNO(EPERM) : SCMP_ACT_ALLOW, c);
	if (!deny_list)
		add_base(ctx, calls);
#endif
	return ctx;
}

void
jail_seccomp(const struct jail_call *calls, int deny_list)
{
	scmp_filter_ctx ctx = filter_build(calls, deny_list);
	int rc;

	if ((rc = seccomp_load(ctx)) != 0)
		fatalx("seccomp_load: %s", strerror(-rc));
	seccomp_release(ctx);
}

int
jail_export(void *ctx, uint8_t **code, size_t *len)
{
	const off_t max = BPF_MAXINSNS * sizeof(struct sock_filter);
	uint8_t *p = NULL;
	struct stat st;
	int fd, rc;

	if ((fd = memfd_create("filter", MFD_CLOEXEC)) == -1)
		return -1;
	if ((rc = seccomp_export_bpf(ctx, fd)) != 0) {
		close(fd);
		errno = -rc;
		return -1;
	}
	if (fstat(fd, &st) == -1 || st.st_size <= 0 || st.st_size > max ||
	    (p = malloc((size_t)st.st_size)) == NULL ||
	    pread(fd, p, (size_t)st.st_size, 0) != st.st_size) {
		free(p);
		close(fd);
		errno = EIO;
		return -1;
	}
	close(fd);
	*code = p;
	*len = (size_t)st.st_size;
	return 0;
}

void
jail_compile(
    const struct jail_call *calls, int deny_list, uint8_t **code, size_t *len)
{
	scmp_filter_ctx ctx = filter_build(calls, deny_list);

	if (jail_export(ctx, code, len) == -1)
		fatal("seccomp_export_bpf");
	seccomp_release(ctx);
}

void
jail_no_core(void)
{
	struct rlimit rl = {ABX_NO_CORE, ABX_NO_CORE};

	if (setrlimit(RLIMIT_CORE, &rl) == 0)
		return;
	/* a lower hard limit there was before */
	rl.rlim_cur = rl.rlim_max = 0;
	if (errno != EPERM || setrlimit(RLIMIT_CORE, &rl) == -1)
		fatal("RLIMIT_CORE");
}

/* ---- the rest ---- */

void
jail_parent(pid_t ppid)
{
	struct pollfd p = {ABX_FD_PARENT, 0, 0};

	/* a uid change clears it, so this comes after */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		fatal("PR_SET_PDEATHSIG");
	if (ppid != 0 ? getppid() != ppid
		      : poll(&p, 1, 0) == 1 && (p.revents & POLLHUP) != 0)
		_exit(1); /* it died before that */
	jail_no_core();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		fatal("PR_SET_NO_NEW_PRIVS");
}

struct rlimit
jail_nofile_now(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("RLIMIT_NOFILE");
	return rl;
}

/* As many descriptors as are wanted, or, where the hard limit is lower and may
 * not be raised, as many as there can be. */
static void
jail_nofile(rlim_t want)
{
	struct rlimit rl = {want, want}, is = jail_nofile_now();

	if (setrlimit(RLIMIT_NOFILE, &rl) == 0)
		return;
	if (errno != EPERM)
		fatal("RLIMIT_NOFILE");
	if (is.rlim_max < ABX_NOFILE_LOW)
		log_warnx("only %llu descriptors are allowed",
		    (unsigned long long)is.rlim_max);
	rl.rlim_cur = rl.rlim_max = is.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) == -1)
		fatal("RLIMIT_NOFILE");
}

void
jail_drop(const struct jail *j, int root, uid_t uid, gid_t gid)
{
	if (j->nofile != 0)
		jail_nofile(j->nofile);
	if (j->empty_root)
		jail_empty_root(root);
	jail_ids(root, uid, gid);
}

/* One field of /proc/self/status, without leading blanks, up to the line's
 * end, into out. */
static void
status_field(const char *text, const char *name, char *out, size_t size)
{
	const char *p = strstr(text, name);
	size_t n;

	out[0] = '\0';
	if (p == NULL)
		return;
	p += strlen(name);
	p += strspn(p, " \t");
	n = strcspn(p, "\t\n");
	snprintf(out, size, "%.*s", (int)n, p);
}

void
jail_confine(
    const struct jail *j, pid_t ppid, int status, char *out, size_t outsize)
{
	char text[4096], uid[16], caps[24], nnp[8], mode[8];
	int abi = j->landlock ? jail_landlock_abi() : 0;
	ssize_t n;

	jail_parent(ppid);
	if (j->landlock)
		jail_landlock(j->paths, j->npaths);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		fatal("PR_SET_DUMPABLE");
	if (j->calls != NULL || !j->deny_list)
		jail_seccomp(j->calls, j->deny_list);
	if ((n = pread(status, text, sizeof(text) - 1, 0)) == -1)
		n = 0;
	text[n] = '\0';
	status_field(text, "\nUid:", uid, sizeof(uid));
	status_field(text, "\nCapEff:", caps, sizeof(caps));
	status_field(text, "\nNoNewPrivs:", nnp, sizeof(nnp));
	status_field(text, "\nSeccomp:", mode, sizeof(mode));
	snprintf(out, outsize,
	    "uid %s capeff %s no_new_privs %s seccomp %s landlock %d%s", uid,
	    caps, nnp, mode, abi, j->empty_root ? " empty-root" : "");
}
