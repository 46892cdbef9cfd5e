/*
 * SPDX-License-Identifier: ISC
 *
 * What a process does to itself before it is confined, and the start of a
 * program: between fork and execve only system calls are made.
 */
#include "execd/launch/launch.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/codes.h"
#include "execd/launch/ns.h"

#define QUOTA_INSTANCES "/proc/sys/user/max_inotify_instances"
#define QUOTA_WATCHES "/proc/sys/user/max_inotify_watches"
#define OOM_ADJUST "/proc/self/oom_score_adj"
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

int
init_check(const struct xl_setup *s, const char **bad)
{
	const struct xl_check *c;
	struct stat st;
	size_t i;
	int fd, rc;

	for (i = 0; i < s->nchecks; i++) {
		c = &s->checks[i];
		*bad = c->path;
		if ((fd = open_plain(c->path)) == -1)
			return -1;
		rc = fstat(fd, &st);
		close(fd);
		if (rc == -1)
			return -1;
		if (st.st_dev != c->dev || st.st_ino != c->ino) {
			errno = ESTALE;
			return -1;
		}
	}
	return 0;
}

/* ---- the child, between fork and execve ---- */

/* What the child tells through the close-on-exec pipe when it fails. */
struct child_fail {
	uint16_t code;
	int err;
	char layer[16];
};

static void __attribute__((noreturn))
child_die(int pipe, enum code code, const char *layer)
{
	struct child_fail f = {(uint16_t)code, errno, ""};

	strncpy(f.layer, layer, sizeof(f.layer) - 1);
	if (write(pipe, &f, sizeof(f)) == -1)
		_exit(126);
	_exit(127);
}

static void
default_signals(void)
{
	struct sigaction sa = {0};
	sigset_t none;
	int i;

	sa.sa_handler = SIG_DFL;
	for (i = 1; i < NSIG; i++)
		(void)sigaction(i, &sa, NULL); /* KILL and STOP refuse */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int
limit(int which, uint64_t soft, uint64_t hard)
{
	struct rlimit old, rl = {soft, hard};

	if (getrlimit(which, &old) == -1)
		return -1;
	if (rl.rlim_max > old.rlim_max)
		rl.rlim_max = old.rlim_max;
	if (rl.rlim_cur > rl.rlim_max)
		rl.rlim_cur = rl.rlim_max;
	return setrlimit(which, &rl);
}

static int
limits(const struct xl_run *x)
{
	if (limit(RLIMIT_CORE, 0, 0) == -1 ||
	    limit(RLIMIT_NOFILE, x->nofile, x->nofile) == -1)
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

/* Standard descriptors in place, the failure pipe at 3, nothing else. */
static int
descriptors(const int stdio[3], int *pipe)
{
	int i;

	for (i = 0; i < 3; i++)
		if (stdio[i] != -1 && dup2(stdio[i], i) == -1)
			return -1;
	if (*pipe != LAUNCH_FD) {
		if (dup3(*pipe, LAUNCH_FD, O_CLOEXEC) == -1)
			return -1;
		*pipe = LAUNCH_FD;
	}
	return (int)syscall(SYS_close_range, LAUNCH_FD + 1, ~0U, 0);
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

static void __attribute__((noreturn)) child(const struct xl_run *x,
    const int stdio[3], const struct xl_filter *nofork, int pipe)
{
	size_t i;

	default_signals();
	if (setsid() == -1 || descriptors(stdio, &pipe) == -1)
		child_die(pipe, C_SBX_UNAVAILABLE, "descriptors");
	if (chdir(x->cwd) == -1)
		child_die(pipe, C_SBX_UNAVAILABLE, "cwd");
	umask(022);
	if (limits(x) == -1)
		child_die(pipe, C_SBX_UNAVAILABLE, "rlimits");
	if ((x->flags & XL_NO_FORK) != 0 && seccomp_enter(nofork) == -1)
		child_die(pipe, C_SBX_UNAVAILABLE, "seccomp");
	/* The first that exists is the one that was meant: one that may not
	 * be run does not lead to the next. */
	errno = ENOENT;
	for (i = 0; i < x->progs.n; i++) {
		if (faccessat(AT_FDCWD, x->progs.v[i], F_OK, 0) == -1)
			continue;
		execve(x->progs.v[i], x->argv.v, x->env.v);
		break;
	}
	child_die(pipe, exec_code(errno), "execve");
}

/* Read what the child says: 0 when the program runs, else -1. */
static int
child_wait(pid_t pid, int pipe, struct spawn_failed *fail)
{
	struct child_fail f;
	ssize_t n;

	do
		n = read(pipe, &f, sizeof(f));
	while (n == -1 && errno == EINTR);
	if (n == 0)
		return 0;
	memset(fail, 0, sizeof(*fail));
	if (n == (ssize_t)sizeof(f)) {
		fail->code = f.code;
		fail->err = f.err;
		f.layer[sizeof(f.layer) - 1] = '\0';
		memcpy(fail->layer, f.layer, sizeof(f.layer));
	} else {
		fail->code = C_SRV_INTERNAL;
		fail->err = n == -1 ? errno : EIO;
	}
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
	return -1;
}

pid_t
init_start(const struct xl_run *x, const int stdio[3],
    const struct xl_filter *nofork, struct spawn_failed *fail)
{
	int p[2], rc;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) == -1 || (pid = fork()) == -1) {
		memset(fail, 0, sizeof(*fail));
		fail->code = C_SBX_UNAVAILABLE;
		fail->err = errno;
		memcpy(fail->layer, "fork", 5);
		return -1; /* the process ends then, and its pipe with it */
	}
	if (pid == 0)
		child(x, stdio, nofork, p[1]);
	close(p[1]);
	rc = child_wait(pid, p[0], fail);
	close(p[0]);
	return rc == 0 ? pid : -1;
}
