/*
 * SPDX-License-Identifier: ISC
 *
 * System calls: those that the filter refuses, each in the ways that there are
 * to make it, and those that must work.  Numbers stand where headers may be
 * older than the call.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "regress/inside/inside.h"

#ifndef F_SETPIPE_SZ
#define F_SETPIPE_SZ 1031
#endif
#define X32 0x40000000L
#define HIGH 0x100000000L

#define C(name, ...) say("call", name, syscall(__VA_ARGS__))
#define S(name, ...) say("call", #name, syscall(SYS_##name, __VA_ARGS__))
#define N(name, nr, ...) say("call", #name, syscall(nr, __VA_ARGS__))

static char buf[4096];

static void
mounts(void)
{
	S(mount, "none", "/tmp", "tmpfs", 0L, 0L);
	C("mount:bind", SYS_mount, "/usr", "/tmp", 0L, MS_ASYNC | 4096L, 0L);
	C("mount:remount", SYS_mount, "", "/usr", 0L, 32L, 0L);
	S(umount2, "/tmp", 0);
	C("umount2:detach", SYS_umount2, "/", 2);
	S(pivot_root, ".", ".");
	S(chroot, "/tmp");
	C("chroot:fault", SYS_chroot, 0L);
	N(open_tree, 428, AT_FDCWD, "/", 1);
	N(move_mount, 429, -1, "", -1, "", 0);
	N(fsopen, 430, "tmpfs", 0);
	N(fsconfig, 431, -1, 0, 0L, 0L, 0);
	N(fsmount, 432, -1, 0, 0);
	N(fspick, 433, AT_FDCWD, "/", 0);
	N(mount_setattr, 442, -1, "", 0, 0L, 0L);
	N(open_tree_attr, 467, -1, "", 0, 0L, 0L);
	S(setns, -1, 0);
	C("setns:own", SYS_setns, open("/proc/self/ns/user", O_RDONLY), 0);
}

static void
namespaces(void)
{
	static const struct {
		const char *name;
		unsigned long flag;
	} t[] = {{"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS},
	    {"net", CLONE_NEWNET}, {"pid", CLONE_NEWPID}, {"ipc", CLONE_NEWIPC},
	    {"uts", CLONE_NEWUTS}, {"cgroup", 0x02000000}, {"time", 0x80},
	    {"user+mnt", CLONE_NEWUSER | CLONE_NEWNS},
	    {"user+high", CLONE_NEWUSER | (unsigned long)HIGH}};
	char name[32];
	size_t i;
	long rc;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		snprintf(name, sizeof(name), "unshare:%s", t[i].name);
		say("call", name, syscall(SYS_unshare, t[i].flag));
		/* to clone(2) this one is a signal */
		if (t[i].flag == 0x80)
			continue;
		snprintf(name, sizeof(name), "clone:%s", t[i].name);
		rc = syscall(SYS_clone, t[i].flag | SIGCHLD, 0L, 0L, 0L, 0L);
		if (rc == 0)
			_exit(0);
		say("call", name, rc);
	}
	N(clone3, 435, buf, 88L);
	N(openat2, 437, AT_FDCWD, ".", buf, 24L);
}

static void
kernel(void)
{
	S(kexec_load, 0L, 0L, 0L, 0L);
	S(init_module, 0L, 0L, "");
	S(finit_module, -1, "", 0);
	S(delete_module, "x", 0);
	S(bpf, 0, buf, 64);
	S(perf_event_open, buf, 0, -1, -1, 0L);
	S(syslog, 3, buf, 100);
	S(reboot, 0, 0, 0, 0L);
	S(acct, 0L);
	S(quotactl, 0, 0L, 0, 0L);
	N(quotactl_fd, 443, -1, 0, 0, 0L);
	S(swapon, "x", 0);
	S(swapoff, "x");
	S(settimeofday, buf, 0L);
	S(clock_settime, 0, buf);
	S(clock_adjtime, 0, buf);
	S(adjtimex, buf);
	C("personality:no-random", SYS_personality, 0x0040000L);
	C("personality:linux32", SYS_personality, 8L);
	C("personality:high", SYS_personality, HIGH | 0x0040000L);
	C("personality:query", SYS_personality, 0xffffffffUL);
	C("personality:0", SYS_personality, 0L);
#ifdef SYS_kexec_file_load
	S(kexec_file_load, -1, -1, 0L, 0L, 0L);
#endif
#ifdef SYS_lookup_dcookie
	S(lookup_dcookie, 0L, 0L, 0L);
#endif
#ifdef __x86_64__
	S(iopl, 3);
	S(ioperm, 0L, 1L, 1);
	S(create_module, 0L, 0L);
	S(query_module, 0L, 0, 0L, 0L, 0L);
	S(get_kernel_syms, 0L);
	S(nfsservctl, 0, 0L, 0L);
	S(uselib, "x");
#endif
}

static void
others(void)
{
	C("ptrace:traceme", SYS_ptrace, 0L, 0L, 0L, 0L);
	C("ptrace:attach", SYS_ptrace, 16L, (long)getppid(), 0L, 0L);
	C("ptrace:seize", SYS_ptrace, 0x4206L, (long)getppid(), 0L, 0L);
	S(process_vm_readv, getpid(), 0L, 0L, 0L, 0L, 0L);
	S(process_vm_writev, getpid(), 0L, 0L, 0L, 0L, 0L);
	N(process_madvise, 440, -1, 0L, 0L, 0, 0);
	S(kcmp, getpid(), getpid(), 0, 0L, 0L);
	N(pidfd_getfd, 438, -1, 0, 0);
	S(add_key, "user", "x", "y", 1L, -3);
	S(request_key, "user", "x", 0L, -3);
	S(keyctl, 0, -3, 1);
	S(userfaultfd, 0);
	C("userfaultfd:user", SYS_userfaultfd, 1);
	N(io_uring_setup, 425, 1, buf);
	N(io_uring_enter, 426, -1, 0, 0, 0, 0L, 0L);
	N(io_uring_register, 427, -1, 0, 0L, 0);
	N(memfd_secret, 447, 0);
	S(fanotify_init, 0, 0);
	C("fanotify_init:fid", SYS_fanotify_init, 0x200, 0);
	S(fanotify_mark, -1, 0, 0L, -1, 0L);
	S(open_by_handle_at, -1, buf, 0);
	S(name_to_handle_at, AT_FDCWD, ".", buf, buf + 64, 0);
	C("kill:1", SYS_kill, 1, SIGKILL);
	C("kill:stop", SYS_kill, 1, SIGSTOP);
	say("call", "prlimit:1", prlimit(1, RLIMIT_NOFILE, NULL, NULL));
}

static void
numbers(void)
{
	static const long nrs[] = {
	    468, 469, 480, 511, 600, 1000, 100000, 0x3fffffff};
	char name[24];
	size_t i;

	for (i = 0; i < sizeof(nrs) / sizeof(nrs[0]); i++) {
		snprintf(name, sizeof(name), "nr:%ld", nrs[i]);
		say("call", name, syscall(nrs[i], 0L, 0L, 0L, 0L, 0L, 0L));
	}
}

/* ---- set-id modes ---- */

static void
set_id_mode(const char *how, long mode)
{
	static const char *file = "/tmp/inside-f", *new = "/tmp/inside-n";
	char name[48];
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

#define T(call, ...)                                           \
	do {                                                   \
		snprintf(name, sizeof(name), call ":%s", how); \
		say("setid", name, syscall(__VA_ARGS__));      \
		(void)unlink(new);                             \
		(void)rmdir(new);                              \
	} while (0)
	T("fchmod", SYS_fchmod, fd, mode);
	T("fchmodat", SYS_fchmodat, AT_FDCWD, file, mode);
	T("fchmodat2", 452, AT_FDCWD, file, mode, 0);
	T("mkdirat", SYS_mkdirat, AT_FDCWD, new, mode);
	T("mknodat", SYS_mknodat, AT_FDCWD, new, S_IFREG | mode, 0);
	T("openat", SYS_openat, AT_FDCWD, new, O_CREAT | O_WRONLY, mode);
	T("openat-tmpfile", SYS_openat, AT_FDCWD, "/tmp", O_TMPFILE | O_WRONLY,
	    mode);
#ifdef SYS_chmod
	T("chmod", SYS_chmod, file, mode);
	T("mkdir", SYS_mkdir, new, mode);
	T("mknod", SYS_mknod, new, S_IFREG | mode, 0);
	T("creat", SYS_creat, new, mode);
	T("open", SYS_open, new, O_CREAT | O_WRONLY, mode);
	T("open-tmpfile", SYS_open, "/tmp", O_TMPFILE | O_WRONLY, mode);
#endif
#undef T
	close(fd);
	(void)unlink(file);
}

static void
set_id(void)
{
	set_id_mode("user", 04755);
	set_id_mode("group", 02755);
	set_id_mode("both", 06755);
	set_id_mode("bare", 04000);
	set_id_mode("high", (long)0xffffffff00000000UL | 04755);
	set_id_mode("wide", 0xffff0000L | 02755);
	set_id_mode("plain", 0755);
	set_id_mode("sticky", 01777);
	say("setid", "capability",
	    setxattr("/tmp", "security.capability", buf, 20, 0));
}

/* ---- descriptors and terminals ---- */

static void
ioctls(void)
{
	int p[2], pty, i;

	S(mknodat, AT_FDCWD, "/tmp/inside-n", S_IFCHR | 0600, 0x103L);
	C("mknodat:fifo", SYS_mknodat, AT_FDCWD, "/tmp/inside-n", S_IFIFO, 0L);
	C("TIOCSTI", SYS_ioctl, 0, 0x5412L, "x");
	C("TIOCSTI:high", SYS_ioctl, 0, HIGH | 0x5412L, "x");
	C("TIOCLINUX", SYS_ioctl, 0, 0x541cL, "\2");
	C("TIOCLINUX:high", SYS_ioctl, 0, HIGH | 0x541cL, "\2");
	say("call", "ptmx", pty = open("/dev/ptmx", O_RDWR | O_NOCTTY));
	C("ptmx:TIOCSTI", SYS_ioctl, pty, 0x5412L, "x");
	i = 0;
	C("ptmx:unlock", SYS_ioctl, pty, 0x40045431L, &i);
	C("ptmx:peer", SYS_ioctl, pty, 0x5441L, (long)(O_RDWR | O_NOCTTY));
	if (pipe(p) == -1)
		abort();
	C("pipe:4K", SYS_fcntl, p[0], F_SETPIPE_SZ, 4096L);
	C("pipe:64K", SYS_fcntl, p[0], F_SETPIPE_SZ, 65536L);
	C("pipe:64K+1", SYS_fcntl, p[0], F_SETPIPE_SZ, 65537L);
	C("pipe:1M", SYS_fcntl, p[0], F_SETPIPE_SZ, 1L << 20);
	C("pipe:1M:high", SYS_fcntl, p[0], HIGH | F_SETPIPE_SZ, 1L << 20);
	C("pipe:high-1M", SYS_fcntl, p[0], F_SETPIPE_SZ, HIGH | 1L << 20);
}

/* ---- what must work ---- */

static void *
thread(void *arg)
{
	return arg;
}

static void
started(const char *name, pid_t pid)
{
	int status;

	if (pid == 0)
		_exit(0);
	say("works", name, pid);
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
}

static void
works(void)
{
	char *argv[] = {(char[]){"true"}, NULL};
	pthread_t t;
	pid_t pid;
	int rc;

	rc = errno = pthread_create(&t, NULL, thread, NULL);
	say("works", "thread", rc == 0 ? 0 : -1);
	if (rc == 0)
		pthread_join(t, NULL);
	started("fork", fork());
	started("clone", (pid_t)syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L));
	rc = errno = posix_spawn(&pid, "/usr/bin/true", NULL, NULL, argv, NULL);
	say("works", "spawn", rc == 0 ? 0 : -1);
	if (rc == 0)
		(void)waitpid(pid, &rc, 0);
	say("works", "unshare:files", unshare(CLONE_FILES));
	say("works", "memfd", memfd_create("x", 0));
	say("works", "mmap:exec",
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0) == MAP_FAILED
		? -1
		: 0);
	say("works", "pidfd", syscall(434, getpid(), 0));
	say("works", "kill:self", kill(getpid(), 0));
	say("works", "no_new_privs",
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -1);
}

void
try_calls(void)
{
	mounts();
	namespaces();
	kernel();
	others();
	numbers();
	set_id();
	ioctls();
	works();
}

void
try_death(const char *name)
{
	struct rlimit none = {0, 0};
	long rc = 0;

	setrlimit(RLIMIT_CORE, &none);
	if (strcmp(name, "minus-one") == 0)
		rc = syscall(-1L);
#ifdef __x86_64__
	else if (strcmp(name, "x32-getpid") == 0)
		rc = syscall(X32 | SYS_getpid);
	else if (strcmp(name, "x32-mount") == 0)
		rc = syscall(X32 | SYS_mount, 0L, 0L, 0L, 0L, 0L);
	else if (strcmp(name, "x32-ptrace") == 0)
		rc = syscall(X32 | 521, 0L, 0L, 0L, 0L);
	else if (strcmp(name, "x32-execve") == 0)
		rc = syscall(X32 | 520, "/usr/bin/true", 0L, 0L);
	else if (strcmp(name, "x32-io_uring") == 0)
		rc = syscall(X32 | 425, 1, buf);
	else if (strncmp(name, "int80-", 6) == 0) {
		rc = strcmp(name, "int80-getpid") == 0	? 20
		     : strcmp(name, "int80-mount") == 0 ? 21
							: 26 /* ptrace */;
		__asm__ volatile("int $0x80"
				 : "+a"(rc)
				 : "b"(0), "c"(0), "d"(0), "S"(0), "D"(0)
				 : "memory");
	}
#endif
	printf("alive %ld\n", rc);
}
