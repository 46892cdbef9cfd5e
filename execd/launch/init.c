/*
 * SPDX-License-Identifier: ISC
 *
 * What a process does to itself before it is confined, and the start of a
 * program: between its process's start and execve only system calls are made.
 */
#include "execd/launch/launch.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/bpf.h"
#include "common/codes.h"
#include "execd/launch/ns.h"

#define QUOTA_INSTANCES "/proc/sys/user/max_inotify_instances"
#define QUOTA_WATCHES "/proc/sys/user/max_inotify_watches"
#define OOM_ADJUST "/proc/self/oom_score_adj"
#define ATTR_MOUNT_ROOT 0x2000U /* STATX_ATTR_MOUNT_ROOT, Linux 5.8 */
#define CAP_COUNT 64
#define CAP_VERSION_3 0x20080522

static int
quota(const char *path, const char *value)
{
	int fd, rc = 0, save;

	if ((fd = open(path, O_WRONLY | O_CLOEXEC)) == -1)
		return errno == ENOENT ? 0 : -1;
	if (write(fd, value, strlen(value)) == -1)
		rc = -1;
	save = errno;
	close(fd);
	errno = save;
	return rc;
}

int
init_quotas(void)
{
	if (quota(QUOTA_INSTANCES, "16") == -1)
		return -1;
	return quota(QUOTA_WATCHES, "8192");
}

int
init_victim(void)
{
	return quota(OOM_ADJUST, "1000");
}

int
init_namespaces(const struct xl_setup *s, const char **bad)
{
	uint64_t own[XL_NAMESPACES];
	size_t i;

	*bad = "";
	if (ns_inodes(own) == -1)
		return -1;
	for (i = 0; i < XL_NAMESPACES; i++)
		if (own[i] == s->outer[i]) {
			*bad = ns_paths[i];
			errno = ENOTUNIQ;
			return -1;
		}
	return 0;
}

int
init_caps(void)
{
	struct {
		uint32_t version;
		int pid;
	} head = {CAP_VERSION_3, 0};
	uint32_t sets[6] = {0}; /* effective, permitted, inheritable; twice */
	int i;

	for (i = 0; i < CAP_COUNT; i++)
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == -1 && errno != EINVAL)
			return -1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1)
		return -1;
	if (syscall(SYS_capset, &head, sets) == -1)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

/* An absolute, normal path, component by component and through no link:
 * O_PATH, or -1 with errno.  Not openat2(2), which the filter refuses. */
static int
open_plain(const char *path)
{
	char name[256];
	int dir, fd;
	size_t n;

	fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (fd != -1 && *path == '/') {
		n = strcspn(++path, "/");
		if (n >= sizeof(name)) {
			close(fd);
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, path, n);
		name[n] = '\0';
		path += n;
		dir = fd;
		fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(dir);
	}
	return fd;
}

/* Is what the descriptor names the root of a mount, with these rights?  A name
 * that was removed by somebody else has no mount any more (mount_namespaces(7),
 * rename(2)), and can be the same object again.  0, or -1 with errno. */
static int
check_mount(int fd, int ro)
{
	struct statfs fs;
	struct statx sx;

	if (ro && fstatfs(fd, &fs) == -1)
		return -1;
	if (ro && (fs.f_flags & ST_RDONLY) == 0) {
		errno = ESTALE;
		return -1;
	}
	/* before Linux 5.8 nothing says it */
	if (statx(fd, "", AT_EMPTY_PATH, 0, &sx) == -1)
		return errno == ENOSYS ? 0 : -1;
	if ((sx.stx_attributes_mask & ~sx.stx_attributes & ATTR_MOUNT_ROOT) ==
	    0)
		return 0;
	errno = ESTALE;
	return -1;
}

static int
check_object(int fd, const struct xl_check *c)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return -1;
	if (st.st_dev == c->dev && st.st_ino == c->ino)
		return check_mount(fd, c->ro);
	errno = ESTALE;
	return -1;
}

int
init_check(
    const struct xl_setup *s, const char *keep, int *kept, const char **bad)
{
	int fd, rc = 0, save, own = -1;
	size_t i;

	for (i = 0; rc == 0 && i < s->nchecks; i++) {
		*bad = s->checks[i].path;
		if ((fd = open_plain(s->checks[i].path)) == -1)
			rc = -1;
		else
			rc = check_object(fd, &s->checks[i]);
		save = errno;
		if (rc == 0 && own == -1 && kept != NULL &&
		    strcmp(s->checks[i].path, keep) == 0)
			own = fd;
		else if (fd != -1)
			close(fd);
		errno = save;
	}
	if (rc == -1 && own != -1) {
		save = errno;
		close(own);
		own = -1;
		errno = save;
	}
	if (kept != NULL)
		*kept = own;
	return rc;
}

int
init_signals(void)
{
	struct sigaction sa = {0};
	sigset_t all;
	int i;

	sa.sa_handler = SIG_DFL;
	for (i = 1; i < NSIG; i++)
		(void)sigaction(i, &sa, NULL); /* KILL and STOP refuse */
	sigfillset(&all);
	return sigprocmask(SIG_SETMASK, &all, NULL);
}

/* ---- the child, between its start and execve ---- */

/* The child shares our memory until its execve, and we wait for that: it
 * writes nothing but this. */
static const struct start *start;
static struct spawn_failed failure;

#define STACK_SIZE (64 * 1024)

static void __attribute__((noreturn))
child_die(enum code code, const char *layer)
{
	failure.err = errno;
	strncpy(failure.layer, layer, sizeof(failure.layer) - 1);
	failure.code = (uint16_t)code;
	_exit(127);
}

static int
limit(int which, uint64_t soft, uint64_t hard)
{
	struct rlimit old, rl = {soft, hard};

	if (setrlimit(which, &rl) == 0)
		return 0;
	if (errno != EPERM || getrlimit(which, &old) == -1)
		return -1;
	/* there is a lower one already */
	if (rl.rlim_max > old.rlim_max)
		rl.rlim_max = old.rlim_max;
	if (rl.rlim_cur > rl.rlim_max)
		rl.rlim_cur = rl.rlim_max;
	return setrlimit(which, &rl);
}

int
init_no_core(void)
{
	return limit(RLIMIT_CORE, ABX_NO_CORE, ABX_NO_CORE);
}

static int
limits(const struct xl_run *x)
{
	if (limit(RLIMIT_NOFILE, x->nofile, x->nofile) == -1)
		return -1;
	/* a second more until the KILL, so that XCPU can be handled */
	if (x->cpu_s != 0 && limit(RLIMIT_CPU, x->cpu_s, x->cpu_s + 1) == -1)
		return -1;
	if (x->procs != 0 && limit(RLIMIT_NPROC, x->procs, x->procs) == -1)
		return -1;
	/* not RLIMIT_AS: java and node reserve far more than they use */
	if (x->memory != 0 && limit(RLIMIT_DATA, x->memory, x->memory) == -1)
		return -1;
	return 0;
}

/* Standard descriptors in place, nothing else. */
static int
descriptors(const int stdio[3])
{
	int i;

	for (i = 0; i < 3; i++)
		if (stdio[i] != -1 && dup2(stdio[i], i) == -1)
			return -1;
	return (int)syscall(SYS_close_range, 3, ~0U, 0);
}

static enum code
exec_code(int err)
{
	switch (err) {
	case E2BIG:
		return C_ARGS_TOO_LARGE;
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case EPERM:
	case ENOEXEC:
	case ELOOP:
	case EISDIR:
	case EINVAL:
	case ELIBBAD:
	case ETXTBSY:
		return C_POL_EXEC_NOT_FOUND;
	default:
		return C_SBX_UNAVAILABLE;
	}
}

/* The directory that was admitted, through no link: what it lies in may be
 * writable for others of the session.  fd is it when it was checked. */
static void
enter(const char *path, int fd)
{
	if (fd == -1)
		fd = open_plain(strcmp(path, "/") == 0 ? "" : path);
	if (fd != -1 && fchdir(fd) == 0) {
		close(fd);
		return;
	}
	if (errno == ENOENT || errno == ENOTDIR)
		child_die(C_POL_PATH_CHANGED, "cwd");
	child_die(C_SBX_UNAVAILABLE, "cwd");
}

static int
child(void *arg)
{
	const struct xl_run *x = start->run;
	int err = ENOENT;
	sigset_t none;
	size_t i;

	/* what uses descriptors of ours first: then they are closed */
	enter(x->cwd, start->cwd);
	if (start->apart != -1 && landlock_apart(start->apart) == -1)
		child_die(C_SBX_UNAVAILABLE, "landlock");
	if (setsid() == -1 || descriptors(start->stdio) == -1)
		child_die(C_SBX_UNAVAILABLE, "descriptors");
	umask(022);
	if (limits(x) == -1)
		child_die(C_SBX_UNAVAILABLE, "rlimits");
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if ((x->flags & XL_NO_FORK) != 0 &&
	    bpf_load(start->nofork->code, start->nofork->len) == -1)
		child_die(C_SBX_UNAVAILABLE, "seccomp");
	/* The first that exists is the one that was meant: one that may not
	 * be run does not lead to the next. */
	for (i = 0; i < x->progs.n; i++) {
		execve(x->progs.v[i], x->argv.v, x->env.v);
		err = errno; /* ENOENT may be that of its interpreter */
		if (faccessat(AT_FDCWD, x->progs.v[i], F_OK, 0) == 0)
			break;
	}
	errno = err;
	child_die(exec_code(err), "execve");
}

pid_t
init_start(const struct start *s, struct spawn_failed *fail)
{
	static uint8_t stack[STACK_SIZE] __attribute__((aligned(64)));
	pid_t pid;

	start = s;
	memset(&failure, 0, sizeof(failure));
	/* as vfork: no page is copied, and no second return into this stack */
	pid = clone(child, stack + sizeof(stack),
	    CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	if (pid == -1) {
		memset(fail, 0, sizeof(*fail));
		fail->code = C_SBX_UNAVAILABLE;
		fail->err = errno;
		memcpy(fail->layer, "fork", 5);
		return -1;
	}
	if (failure.code == C_OK)
		return pid;
	*fail = failure;
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
	return -1;
}
