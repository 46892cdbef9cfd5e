/*
 * SPDX-License-Identifier: ISC
 *
 * Every system call through every filter.  What a program may do is written
 * here by hand; a call that is not, with any arguments, must end the process
 * (execd: say EPERM).  Every call is made in a process of its own, with
 * arguments that cannot mean anything, so that a hole does no harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <seccomp.h>

#include "common/abx.h"
#include "common/jail.h"
#include "execd/filter.h"
#include "listener/listener.h"
#include "monitor/mon.h"
#include "pathd/filter.h"
#include "regress/privsep/trip.h"

#define LAST_CALL 470 /* a little beyond what kernels have */
#define NOBODY 65534
#define BAD (-1L)
#define SELF (-2L) /* the process that makes the call */

/* How a process that made one call ended. */
enum fate { LIVED, TRIPPED, OTHER };

struct attempt {
	long nr;
	long arg[6];
};

static const struct jail_call *calls; /* the filter under test */
static int deny_list;

/* In the child. */
static void
attempt_run(const struct attempt *a)
{
	long rc, arg[6];
	size_t i;

	for (i = 0; i < nitems(arg); i++)
		arg[i] = a->arg[i] == SELF ? getpid() : a->arg[i];
	/* by number: this is about the kernel, not about a library */
	rc = syscall(a->nr, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	syscall(SYS_exit_group, rc == -1 && errno == EPERM ? 1 : 0);
}

static enum fate
fate_of(pid_t pid, int *eperm)
{
	int status;

	if (pid == -1 || waitpid(pid, &status, 0) != pid)
		fail_msg("fork: %s", strerror(errno));
	*eperm = WIFEXITED(status) && WEXITSTATUS(status) == 1;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return TRIPPED;
	/* rt_sigreturn without a frame, and exit(-1) */
	if (WIFEXITED(status) || WTERMSIG(status) == SIGSEGV)
		return LIVED;
	return OTHER;
}

static void
under_filter(const struct attempt *a, int as_root)
{
	static const int caught[] = {
	    SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS, SIGABRT};
	struct rlimit none = {0, 0};
	size_t i;

	/* a child that crashes shall not go on as the test */
	for (i = 0; i < nitems(caught); i++)
		(void)signal(caught[i], SIG_DFL);
	(void)close(STDIN_FILENO);
	(void)alarm(10);
	(void)setrlimit(RLIMIT_CORE, &none);
	if (!as_root && geteuid() == 0 &&
	    (setresgid(NOBODY, NOBODY, NOBODY) == -1 ||
		setresuid(NOBODY, NOBODY, NOBODY) == -1))
		_exit(99);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		_exit(99);
	if (calls != NULL)
		jail_seccomp(calls, deny_list);
	attempt_run(a);
}

static enum fate
attempt(const struct attempt *a, int *eperm)
{
	pid_t pid = fork();

	if (pid == 0)
		under_filter(a, deny_list);
	return fate_of(pid, eperm);
}

static const char *
call_name(long nr)
{
	static char buf[64];
	char *s = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)nr);

	snprintf(buf, sizeof(buf), "%s (%ld)", s == NULL ? "unnamed" : s, nr);
	free(s);
	return buf;
}

/* The kernel's own: not shown to filters, of no use to anybody (they end in
 * SIGILL unless a probe called them), or waiting for ever. */
static int
pointless(long nr)
{
#ifdef __x86_64__
	if (nr == 335 || nr == 336) /* uretprobe, uprobe */
		return 1;
#endif
#ifdef SYS_pause
	if (nr == SYS_pause && deny_list)
		return 1;
#endif
	return 0;
}

static int
listed(const char *list, long nr)
{
	char *s = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)nr);
	size_t n = s == NULL ? 0 : strlen(s);
	const char *p = list;
	int found = 0;

	while (s != NULL && !found && (p = strstr(p, s)) != NULL) {
		found = (p == list || p[-1] == ' ') &&
			(p[n] == ' ' || p[n] == '\0');
		p += n;
	}
	free(s);
	return found;
}

/* What every process has besides its own list, whatever the arguments. */
#define EVERYBODY                                                           \
	"read write close readv writev pread64 lseek fstat sendmsg "        \
	"recvmsg poll ppoll epoll_wait epoll_pwait epoll_pwait2 epoll_ctl " \
	"timerfd_settime brk munmap mremap madvise futex rt_sigreturn "     \
	"rt_sigaction rt_sigprocmask clock_gettime gettimeofday time "      \
	"clock_nanosleep nanosleep restart_syscall getpid gettid "          \
	"getrandom exit exit_group "

/* Calls whose arguments decide. */
struct row {
	const char *what;
	int lives;
	struct attempt a;
};

static const struct row everybody[] = {
    {"mmap of memory", 1,
	{SYS_mmap, {0, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, BAD, 0}}},
    {"mmap of code", 0,
	{SYS_mmap, {0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       BAD, 0}}},
    {"mprotect to read", 1, {SYS_mprotect, {0, 4096, PROT_READ, 0, 0, 0}}},
    {"mprotect to code", 0,
	{SYS_mprotect, {0, 4096, PROT_READ | PROT_EXEC, 0, 0, 0}}},
    {"F_SETLKW", 1, {SYS_fcntl, {BAD, F_SETLKW, 0, 0, 0, 0}}},
    {"F_SETOWN", 0, {SYS_fcntl, {BAD, F_SETOWN, 1, 0, 0, 0}}},
    {"F_SETOWN_EX", 0, {SYS_fcntl, {BAD, F_SETOWN_EX, BAD, 0, 0, 0}}},
    {"F_SETSIG", 0, {SYS_fcntl, {BAD, F_SETSIG, SIGKILL, 0, 0, 0}}},
    {"F_SETLEASE", 0, {SYS_fcntl, {BAD, F_SETLEASE, 0, 0, 0, 0}}},
    {"F_NOTIFY", 0, {SYS_fcntl, {BAD, F_NOTIFY, 0, 0, 0, 0}}},
    {"F_DUPFD_CLOEXEC", 1, {SYS_fcntl, {BAD, F_DUPFD_CLOEXEC, 0, 0, 0, 0}}},
    {"F_SETPIPE_SZ", 1, {SYS_fcntl, {BAD, F_SETPIPE_SZ, 0, 0, 0, 0}}},
    {"F_ADD_SEALS", 1, {SYS_fcntl, {BAD, F_ADD_SEALS, 0, 0, 0, 0}}},
    {"F_GET_SEALS", 1, {SYS_fcntl, {BAD, F_GET_SEALS, 0, 0, 0, 0}}},
    {"execve", 0, {SYS_execve, {BAD, 0, 0, 0, 0, 0}}},
    {"socket", 0, {SYS_socket, {AF_UNIX, SOCK_STREAM, 0, 0, 0, 0}}},
    {"thread", 0,
	{SYS_clone,
	    {CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES,
		0, 0, 0, 0, 0}}},
    {"user namespace", 0,
	{SYS_clone, {CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0, 0}}},
    {"prctl(PR_SET_DUMPABLE)", 0,
	{SYS_prctl, {PR_SET_DUMPABLE, 1, 0, 0, 0, 0}}},
};

static const struct row no_files[] = {
    {"fstat by newfstatat", 1,
	{SYS_newfstatat, {BAD, BAD, BAD, AT_EMPTY_PATH, 0, 0}}},
    {"newfstatat of a path", 0,
	{SYS_newfstatat, {AT_FDCWD, BAD, BAD, AT_SYMLINK_NOFOLLOW, 0, 0}}},
    {"newfstatat with one flag more", 0,
	{SYS_newfstatat,
	    {AT_FDCWD, BAD, BAD, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, 0, 0}}},
    {"openat", 0, {SYS_openat, {AT_FDCWD, BAD, O_RDONLY, 0, 0, 0}}},
    {"fork", 0, {SYS_clone, {SIGCHLD, 0, 0, 0, 0, 0}}},
    {"kill", 0, {SYS_kill, {1, SIGKILL, 0, 0, 0, 0}}},
    {"signal to itself", 1, {SYS_tgkill, {SELF, SELF, 0, 0, 0, 0}}},
    {"signal to another", 0, {SYS_tgkill, {1, 1, 0, 0, 0, 0}}},
};

static void
check_row(const struct row *r)
{
	int eperm;
	enum fate f = attempt(&r->a, &eperm);

	if (f != (r->lives ? LIVED : TRIPPED))
		print_error("%s: %s\n", r->what,
		    f == LIVED	 ? "lives, and must not"
		    : f == OTHER ? "dies of something else"
				 : "is refused, and must live");
	assert_int_equal(f, r->lives ? LIVED : TRIPPED);
}

static void
check_rows(const struct row *r, size_t n)
{
	while (n-- > 0)
		check_row(r++);
}

/* Every number there is, with arguments that are nonsense. */
static void
check_all(const char *allowed)
{
	struct attempt a = {0, {BAD, BAD, BAD, BAD, BAD, BAD}};
	int bad = 0, eperm;
	enum fate want, f;

	for (a.nr = 0; a.nr <= LAST_CALL; a.nr++) {
		if (pointless(a.nr))
			continue;
		want = listed(allowed, a.nr) ? LIVED : TRIPPED;
		f = attempt(&a, &eperm);
		if (f == want)
			continue;
		bad++;
		print_error("%s: %s\n", call_name(a.nr),
		    f == LIVED	 ? "lives, and must not"
		    : f == OTHER ? "dies of something else"
				 : "is refused, and must live");
	}
	assert_int_equal(bad, 0);
}

static void
check_filter(const struct jail_call *list, const char *allowed,
    const struct row *own, size_t nown)
{
	calls = list;
	deny_list = 0;
	check_rows(everybody, nitems(everybody));
	check_rows(own, nown);
	check_all(allowed);
}

/* ---- one table a filter ---- */

void
trip_listener(void **state)
{
	static const struct row own[] = {
	    {"send", 1, {SYS_sendto, {BAD, BAD, 0, 0, 0, 0}}},
	    {"sendto an address", 0, {SYS_sendto, {BAD, BAD, 0, 0, BAD, 16}}},
	    {"setsockopt of TCP", 0, {SYS_setsockopt, {BAD, 6, 1, BAD, 4, 0}}},
	    {"setsockopt of the socket", 0,
		{SYS_setsockopt, {BAD, SOL_SOCKET, 1, BAD, 4, 0}}},
	};

	check_filter(filter_calls,
	    EVERYBODY "accept4 recvfrom shutdown sendfile splice memfd_create "
		      "preadv2 pwritev2",
	    own, nitems(own));
	check_rows(no_files, nitems(no_files));
}

void
trip_monitor(void **state)
{
	check_filter(monitor_calls,
	    EVERYBODY "memfd_create ftruncate pwrite64 fdatasync uname sysinfo "
		      "sched_getaffinity accept4 getsockopt getsockname",
	    no_files, 0);
	check_rows(no_files, nitems(no_files));
}

/* The process of pathd that reads archives has nothing but that. */
void
trip_unpack(void **state)
{
	static const struct jail_call none[] = {{NULL, 0, 0, 0, 0}};

	check_filter(none, EVERYBODY, no_files, nitems(no_files));
}

void
trip_pathd(void **state)
{
	static const struct row own[] = {
	    {"fchmod", 1, {SYS_fchmod, {BAD, 0777, 0, 0, 0, 0}}},
	    {"fchmod set-uid", 0, {SYS_fchmod, {BAD, 04755, 0, 0, 0, 0}}},
	    {"fchmod set-gid", 0, {SYS_fchmod, {BAD, 02755, 0, 0, 0, 0}}},
	    {"fchmod sticky", 0, {SYS_fchmod, {BAD, 01777, 0, 0, 0, 0}}},
	    {"fchmodat", 1, {SYS_fchmodat, {BAD, 0, 0700, 0, 0, 0}}},
	    {"fchmodat for others", 0, {SYS_fchmodat, {BAD, 0, 0777, 0, 0, 0}}},
	    {"fchmodat set-uid", 0, {SYS_fchmodat, {BAD, 0, 04700, 0, 0, 0}}},
	    {"fchmodat sticky", 0, {SYS_fchmodat, {BAD, 0, 01700, 0, 0, 0}}},
	    {"socketpair", 1,
		{SYS_socketpair, {AF_UNIX, SOCK_SEQPACKET, 0, BAD, 0, 0}}},
	    {"socketpair of another family", 0,
		{SYS_socketpair, {AF_INET, SOCK_STREAM, 0, BAD, 0, 0}}},
	    {"fork", 1, {SYS_clone, {SIGCHLD, 0, 0, 0, 0, 0}}},
	    {"fork as libc does", 1,
		{SYS_clone,
		    {SIGCHLD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, 0, 0,
			0, 0, 0}}},
	    {"clone with shared memory", 0,
		{SYS_clone, {SIGCHLD | CLONE_VM, 0, 0, 0, 0, 0}}},
	    {"clone of a mount namespace", 0,
		{SYS_clone, {SIGCHLD | CLONE_NEWNS, 0, 0, 0, 0, 0}}},
	    {"prctl(PR_SET_PDEATHSIG)", 1,
		{SYS_prctl, {PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0}}},
	    {"prctl(PR_SET_NO_NEW_PRIVS)", 1,
		{SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0}}},
	    {"prctl(PR_SET_SECCOMP)", 0,
		{SYS_prctl, {PR_SET_SECCOMP, 2, 0, 0, 0, 0}}},
	    {"prlimit of itself", 1,
		{SYS_prlimit64, {0, RLIMIT_CORE, 0, 0, 0, 0}}},
	    {"prlimit of another", 0,
		{SYS_prlimit64, {1, RLIMIT_CORE, 0, 0, 0, 0}}},
	    {"kill by SIGKILL", 1,
		{SYS_kill, {0x7fffffff, SIGKILL, 0, 0, 0, 0}}},
	    {"kill by SIGTERM", 0,
		{SYS_kill, {0x7fffffff, SIGTERM, 0, 0, 0, 0}}},
	    {"abort", 1, {SYS_tgkill, {BAD, BAD, SIGABRT, 0, 0, 0}}},
	    {"signal to another", 0, {SYS_tgkill, {BAD, BAD, 0, 0, 0, 0}}},
	    {"timer of the clock", 1,
		{SYS_timerfd_create, {CLOCK_REALTIME, BAD, 0, 0, 0, 0}}},
	    {"timer that wakes", 0,
		{SYS_timerfd_create, {CLOCK_BOOTTIME_ALARM, BAD, 0, 0, 0, 0}}},
	};

	check_filter(pathd_calls,
	    EVERYBODY "openat openat2 newfstatat statx readlinkat getdents64 "
		      "mkdirat unlinkat linkat renameat renameat2 umask "
		      "ftruncate fsync splice pipe2 set_robust_list getppid "
		      "symlinkat copy_file_range seccomp dup3 pwrite64 "
		      "inotify_init1 inotify_add_watch inotify_rm_watch "
		      "close_range wait4 fstatfs",
	    own, nitems(own));
}

/* ---- execd: what it may not, and what bubblewrap needs ---- */

static const char execd_denied[] =
    "open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr "
    "open_tree_attr kexec_load kexec_file_load init_module finit_module "
    "delete_module create_module query_module get_kernel_syms bpf "
    "perf_event_open lookup_dcookie syslog reboot acct quotactl quotactl_fd "
    "swapon swapoff settimeofday stime clock_settime clock_adjtime adjtimex "
    "iopl ioperm nfsservctl uselib vm86 vm86old ptrace process_vm_readv "
    "process_vm_writev process_madvise kcmp pidfd_getfd add_key request_key "
    "keyctl userfaultfd io_uring_setup io_uring_enter io_uring_register "
    "memfd_secret fanotify_init fanotify_mark open_by_handle_at "
    "name_to_handle_at mknod mknodat ";

/* The kernel's own answer to nonsense is compared, so that an EPERM is known
 * to be the filter's. */
void
trip_execd(void **state)
{
	struct attempt a = {0, {BAD, BAD, BAD, BAD, BAD, BAD}};
	int bad = 0, with, without, proved = 0;
	enum fate f;

	deny_list = 1;
	for (a.nr = 0; a.nr <= LAST_CALL; a.nr++) {
		if (pointless(a.nr))
			continue;
		calls = NULL;
		(void)attempt(&a, &without);
		calls = filter_execd;
		f = attempt(&a, &with);
		if (listed(execd_denied, a.nr)) {
			proved += !without;
			if (f == LIVED && with)
				continue;
			print_error("%s is not refused\n", call_name(a.nr));
		} else {
			if (f == LIVED && with == without)
				continue;
			print_error("%s is refused\n", call_name(a.nr));
		}
		bad++;
	}
	assert_int_equal(bad, 0);
	if (geteuid() == 0)
		assert_true(proved > 30);
}

static void
check_ioctl(unsigned long cmd, int denied)
{
	struct attempt a = {SYS_ioctl, {BAD, (long)cmd, 0, 0, 0, 0}};
	int eperm;

	assert_int_equal(attempt(&a, &eperm), LIVED);
	assert_int_equal(eperm, denied);
}

/* ---- other doors into the kernel ---- */

#ifdef __x86_64__
#define X32 0x40000000L

static void
int80(void)
{
	long rc;

	/* getpid of the 32-bit table */
	__asm__ volatile("int $0x80" : "=a"(rc) : "a"(20L) : "memory");
	syscall(SYS_exit_group, 0);
}

static void
by_int80(const struct jail_call *list, int deny)
{
	pid_t pid = fork();
	int eperm;

	calls = list;
	deny_list = deny;
	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
			_exit(99);
		jail_seccomp(calls, deny_list);
		int80();
	}
	assert_int_equal(fate_of(pid, &eperm), TRIPPED);
}
#endif

void
trip_machine(void **state)
{
	check_ioctl(TCGETS, 0);
	calls = filter_execd;
	deny_list = 1;
	check_ioctl(TCGETS, 0);
	check_ioctl(TIOCSTI, 1);
	check_ioctl(0x541c, 1); /* TIOCLINUX */
	/* the kernel looks at the low half only */
	check_ioctl(TIOCSTI | 1UL << 32, 1);
#ifdef __x86_64__
	by_int80(filter_calls, 0);
	by_int80(monitor_calls, 0);
	by_int80(pathd_calls, 0);
	by_int80(filter_execd, 1);
	deny_list = 0;
	calls = pathd_calls;
	check_row(&(struct row){"getpid of x32", 0, {X32 | SYS_getpid, {0}}});
	calls = filter_calls;
	check_row(&(struct row){"getpid of x32", 0, {X32 | SYS_getpid, {0}}});
	calls = monitor_calls;
	check_row(&(struct row){"getpid of x32", 0, {X32 | SYS_getpid, {0}}});
#endif
}
