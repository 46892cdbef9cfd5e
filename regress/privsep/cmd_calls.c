/*
 * SPDX-License-Identifier: ISC
 *
 * Runs inside a sandbox: tries what must be refused there, one by one, and
 * what must work.  Exit status 0 when all is as it should be.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef F_SETPIPE_SZ
#define F_SETPIPE_SZ 1031
#endif
#define X32 0x40000000L

static int bad;

static void
expect(const char *name, long rc, int want)
{
	int got = rc == -1 ? errno : 0;

	if (got == want)
		return;
	bad = 1;
	printf("%s: %s, expected %s\n", name, strerror(got), strerror(want));
}

#define DENIED(name, nr, ...) expect(name, syscall(nr, ##__VA_ARGS__), EPERM)

static void
mounts(void)
{
	DENIED("mount", SYS_mount, "none", "/tmp", "tmpfs", 0, 0);
	DENIED("umount2", SYS_umount2, "/tmp", 0);
	DENIED("pivot_root", SYS_pivot_root, ".", ".");
	DENIED("chroot", SYS_chroot, "/tmp");
	DENIED("open_tree", 428, AT_FDCWD, "/", 1);
	DENIED("move_mount", 429, -1, "", -1, "", 0);
	DENIED("fsopen", 430, "tmpfs", 0);
	DENIED("fsconfig", 431, -1, 0, 0, 0, 0);
	DENIED("fsmount", 432, -1, 0, 0);
	DENIED("fspick", 433, AT_FDCWD, "/", 0);
	DENIED("mount_setattr", 442, -1, "", 0, 0, 0);
	DENIED("open_tree_attr", 467, -1, "", 0, 0, 0);
	DENIED("setns", SYS_setns, -1, 0);
	DENIED("unshare", SYS_unshare, CLONE_NEWUSER);
	DENIED("clone", SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
}

static void
kernel(void)
{
	DENIED("kexec_load", SYS_kexec_load, 0, 0, 0, 0);
	DENIED("init_module", SYS_init_module, 0, 0, "");
	DENIED("finit_module", SYS_finit_module, -1, "", 0);
	DENIED("delete_module", SYS_delete_module, "x", 0);
	DENIED("bpf", SYS_bpf, 0, 0, 0);
	DENIED("perf_event_open", SYS_perf_event_open, 0, 0, 0, 0, 0);
	DENIED("syslog", SYS_syslog, 3, 0, 0);
	DENIED("reboot", SYS_reboot, 0, 0, 0, 0);
	DENIED("acct", SYS_acct, 0);
	DENIED("quotactl", SYS_quotactl, 0, 0, 0, 0);
	DENIED("swapon", SYS_swapon, "x", 0);
	DENIED("settimeofday", SYS_settimeofday, 0, 0);
	DENIED("clock_settime", SYS_clock_settime, 0, 0);
#ifdef SYS_iopl
	DENIED("iopl", SYS_iopl, 0);
	DENIED("ioperm", SYS_ioperm, 0, 0, 0);
#endif
	DENIED("personality", SYS_personality, 0x0040000);
	expect("personality query", syscall(SYS_personality, 0xffffffffUL), 0);
}

static void
others(void)
{
	DENIED("ptrace", SYS_ptrace, 0, 0, 0, 0);
	DENIED("process_vm_readv", SYS_process_vm_readv, 1, 0, 0, 0, 0, 0);
	DENIED("process_vm_writev", SYS_process_vm_writev, 1, 0, 0, 0, 0, 0);
	DENIED("process_madvise", 440, -1, 0, 0, 0, 0);
	DENIED("kcmp", SYS_kcmp, 1, 1, 0, 0, 0);
	DENIED("pidfd_getfd", 438, -1, 0, 0);
	DENIED("add_key", SYS_add_key, 0, 0, 0, 0, 0);
	DENIED("request_key", SYS_request_key, 0, 0, 0, 0);
	DENIED("keyctl", SYS_keyctl, 0, 0, 0, 0, 0);
	DENIED("userfaultfd", SYS_userfaultfd, 0);
	DENIED("io_uring_setup", 425, 1, 0);
	DENIED("io_uring_enter", 426, -1, 0, 0, 0, 0);
	DENIED("io_uring_register", 427, -1, 0, 0, 0);
	DENIED("memfd_secret", 447, 0);
	DENIED("fanotify_init", SYS_fanotify_init, 0, 0);
	DENIED("open_by_handle_at", SYS_open_by_handle_at, -1, 0, 0);
	DENIED("name_to_handle_at", SYS_name_to_handle_at, -1, "", 0, 0, 0);
	DENIED("mknodat", SYS_mknodat, AT_FDCWD, "n", S_IFCHR | 0600, 0);
	expect("clone3", syscall(435, 0, 0), ENOSYS);
	expect("openat2", syscall(437, AT_FDCWD, ".", 0, 0), ENOSYS);
	expect("a call of the future", syscall(600), ENOSYS);
}

/* What is left of the list; some machines lack some of it. */
static void
old(void)
{
	DENIED("swapoff", SYS_swapoff, "x");
	DENIED("clock_adjtime", SYS_clock_adjtime, 0, 0);
	DENIED("adjtimex", SYS_adjtimex, 0);
	DENIED("fanotify_mark", SYS_fanotify_mark, -1, 0, 0L, -1, 0);
	DENIED("quotactl_fd", 443, -1, 0, 0, 0);
#ifdef SYS_kexec_file_load
	DENIED("kexec_file_load", SYS_kexec_file_load, -1, -1, 0L, 0, 0L);
#endif
#ifdef SYS_lookup_dcookie
	DENIED("lookup_dcookie", SYS_lookup_dcookie, 0L, 0, 0);
#endif
#ifdef SYS_create_module
	DENIED("create_module", SYS_create_module, 0, 0);
	DENIED("query_module", SYS_query_module, 0, 0, 0, 0, 0);
	DENIED("get_kernel_syms", SYS_get_kernel_syms, 0);
#endif
#ifdef SYS_nfsservctl
	DENIED("nfsservctl", SYS_nfsservctl, 0, 0, 0);
#endif
#ifdef SYS_uselib
	DENIED("uselib", SYS_uselib, "x");
#endif
#ifdef SYS_mknod
	DENIED("mknod", SYS_mknod, "n", S_IFCHR | 0600, 0);
#endif
}

static void
setid(void)
{
	int fd;

	expect("creat plain", fd = creat("plain", 0755), 0);
	DENIED("fchmod", SYS_fchmod, fd, 04755);
	DENIED("fchmod", SYS_fchmod, fd, 02755);
	close(fd);
	DENIED("fchmodat", SYS_fchmodat, AT_FDCWD, "plain", 04755);
	DENIED("fchmodat2", 452, AT_FDCWD, "plain", 04755, 0);
	DENIED("openat", SYS_openat, AT_FDCWD, "s1", O_CREAT | O_WRONLY, 04755);
	DENIED("openat", SYS_openat, AT_FDCWD, "s1", O_CREAT | O_WRONLY, 02755);
	DENIED(
	    "openat", SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, 04755);
	DENIED("mkdirat", SYS_mkdirat, AT_FDCWD, "s2", 02755);
#ifdef SYS_chmod
	DENIED("chmod", SYS_chmod, "plain", 04755);
	DENIED("open", SYS_open, "s3", O_CREAT | O_WRONLY, 06755);
	DENIED("creat", SYS_creat, "s4", 04755);
	DENIED("mkdir", SYS_mkdir, "s5", 02755);
#endif
	expect("chmod plain", chmod("plain", 0600), 0);
	expect("unlink", unlink("plain"), 0);
}

static void
sockets(void)
{
	int sv[2], p[2], i, set;

	for (i = 0; i < 46; i++)
		DENIED("socket", SYS_socket, i, SOCK_STREAM, 0);
	DENIED("socket", SYS_socket, AF_UNIX | 0x100000000L, SOCK_STREAM, 0);
	expect("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	DENIED("pair of datagrams", SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, sv);
	DENIED("pair of datagrams", SYS_socketpair, AF_UNIX,
	    SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv);
	DENIED("raw pair", SYS_socketpair, AF_UNIX, SOCK_RAW, 0, sv);
	DENIED("socketpair tipc", SYS_socketpair, 30, SOCK_STREAM, 0, sv);
	if (pipe(p) == -1)
		bad = 1;
	/* the kernel may round what is asked for; a quota may refuse */
	set = fcntl(p[0], F_SETPIPE_SZ, 4096);
	if (set == -1 && errno != EPERM && errno != EBUSY)
		bad = 1;
	expect("F_SETPIPE_SZ", fcntl(p[0], F_SETPIPE_SZ, 1 << 20), EPERM);
	DENIED("TIOCSTI", SYS_ioctl, 0, 0x5412, "x");
	DENIED("TIOCSTI, high bits", SYS_ioctl, 0, 0x100005412L, "x");
	DENIED("TIOCLINUX", SYS_ioctl, 0, 0x541c, "x");
}

/* A foreign number space kills. */
static void
kills(const char *name, long nr)
{
	int status;
	pid_t pid;

	if ((pid = fork()) == 0) {
		struct {
			unsigned long cur, max;
		} none = {0, 0};

		syscall(SYS_setrlimit, 4 /* core */, &none);
		syscall(nr, 0, 0, 0, 0, 0);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) == -1 || !WIFSIGNALED(status) ||
	    WTERMSIG(status) != SIGSYS) {
		bad = 1;
		printf("%s: status %x, expected SIGSYS\n", name, status);
	}
}

static void *
thread(void *arg)
{
	return arg;
}

static void
works(void)
{
	struct addrinfo *ai = NULL;
	void *ret = NULL;
	pthread_t t;

	expect("pthread_create",
	    pthread_create(&t, NULL, thread, &bad) != 0 ? -1 : 0, 0);
	pthread_join(t, &ret);
	if (ret != &bad)
		bad = 1;
	/* needs no socket for a name of /etc/hosts */
	if (getaddrinfo("127.0.0.1", "80", NULL, &ai) != 0)
		printf("getaddrinfo fails\n");
	else
		freeaddrinfo(ai);
	expect("mmap exec",
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0) == MAP_FAILED
		? -1
		: 0,
	    0);
}

int
main(void)
{
	mounts();
	kernel();
	others();
	old();
	setid();
	sockets();
	works();
#ifdef __x86_64__
	kills("x32 mount", X32 | SYS_mount);
	kills("x32 io_uring_setup", X32 | 425);
	kills("x32 getpid", X32 | SYS_getpid);
#endif
	fflush(stdout);
	return bad;
}
