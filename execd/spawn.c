/*
 * SPDX-License-Identifier: ISC
 *
 * Starts bubblewrap: the only place in execd that starts a program.  Owns
 * what all sandboxes share (filters, base profile, the launcher's
 * descriptor).  Bubblewrap gets its arguments by descriptor, the launcher's
 * socket as standard input, and executes the launcher by descriptor too, so
 * that it need not be mounted inside.
 */
#include "execd/driver.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/sched.h>

#include "common/cg.h"
#include "common/log.h"
#include "execd/filter.h"
#include "execd/launch/ns.h"
#include "execd/mounts.h"

#define BWRAP "/usr/bin/bwrap"
#define HELP_MAX 32768
#define HELP_MS 5000

static struct profile_base base;
static struct xl_setup shared; /* filters and layers; no paths */
static int launcher = -1;      /* O_PATH */
static int null = -1;
static posix_spawnattr_t attr;

static void
find_links(void)
{
	static const char *const names[] = {
	    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
	struct profile_link *l;
	struct stat st;
	ssize_t n;
	size_t i;

	for (i = 0; i < nitems(names); i++) {
		if (lstat(names[i], &st) == -1)
			continue;
		l = &base.links[base.nlinks++];
		strlcpy(l->name, names[i], sizeof(l->name));
		if (!S_ISLNK(st.st_mode))
			continue;
		n = readlink(names[i], l->target, sizeof(l->target) - 1);
		if (n <= 0)
			fatal("%s", names[i]);
		l->target[n] = '\0';
	}
}

void
spawn_init(uint64_t tmp_size, uint32_t require)
{
	sigset_t all, none;

	base.tmp_size = tmp_size;
	base.landlock = jail_landlock_abi() > 0;
	find_links();
	shared.layers = LAYER_SECCOMP | LAYER_LANDLOCK;
	shared.require = require;
	if (ns_inodes(shared.outer) == -1)
		fatal("/proc/self/ns");
	if (filter_build(&shared) == -1)
		fatal("cannot compile the seccomp programs");
	launcher = open(MOUNTS_LAUNCHER, O_PATH | O_CLOEXEC);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (launcher == -1 || null == -1)
		fatal("cannot open the launcher or /dev/null");
	sigfillset(&all);
	sigemptyset(&none);
	if (posix_spawnattr_init(&attr) != 0 ||
	    posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK) != 0 ||
	    posix_spawnattr_setsigdefault(&attr, &all) != 0 ||
	    posix_spawnattr_setsigmask(&attr, &none) != 0)
		fatalx("posix_spawnattr");
}

/* ---- check ---- */

/* Everything that the help text says, into buf; -1 with errno. */
static ssize_t
read_all(int fd, char *buf, size_t size)
{
	struct pollfd p = {fd, POLLIN, 0};
	size_t have = 0;
	ssize_t n;
	int rc;

	while (have < size - 1) {
		/* the probe's children end meanwhile, with a signal */
		if ((rc = poll(&p, 1, HELP_MS)) == -1 && errno == EINTR)
			continue;
		if (rc != 1) {
			errno = ETIMEDOUT;
			return -1;
		}
		if ((n = read(fd, buf + have, size - 1 - have)) == -1)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	buf[have] = '\0';
	return (ssize_t)have;
}

/* The help text on its way: read end of a pipe, -1 with the errno of why. */
static struct {
	int begun, fd, err;
	pid_t pid;
} help = {0, -1, 0, -1};

static void
check_begin(void)
{
	char *argv[] = {(char[]){BWRAP}, (char[]){"--help"}, NULL};
	char *envp[] = {NULL};
	posix_spawn_file_actions_t fa;
	int p[2];

	help.begun = 1;
	if (pipe2(p, O_CLOEXEC) == -1) {
		help.err = errno;
		return;
	}
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, null, 0);
	posix_spawn_file_actions_adddup2(&fa, p[1], 1);
	posix_spawn_file_actions_adddup2(&fa, null, 2);
	help.err = posix_spawn(&help.pid, BWRAP, &fa, &attr, argv, envp);
	posix_spawn_file_actions_destroy(&fa);
	close(p[1]);
	if (help.err == 0)
		help.fd = p[0];
	else
		close(p[0]);
}

static int
read_help(char *buf, size_t size)
{
	ssize_t n;
	int save;

	if (help.fd == -1) {
		errno = help.err;
		return -1;
	}
	n = read_all(help.fd, buf, size);
	save = errno;
	close(help.fd);
	help.fd = -1;
	if (n == -1)
		kill(help.pid, SIGKILL);
	while (waitpid(help.pid, NULL, 0) == -1 && errno == EINTR)
		;
	errno = save;
	return n == -1 ? -1 : 0;
}

static int
check(char *text, size_t size)
{
	static const char *const want[] = {"--args ", "--as-pid-1",
	    "--disable-userns", "--bind-fd ", "--ro-bind-fd ", "--clearenv",
	    "--size ", "--perms ", "--die-with-parent", "--new-session"};
	static char said[HELP_MAX];
	size_t i;

	if (!help.begun)
		check_begin();
	if (read_help(said, sizeof(said)) == -1) {
		snprintf(
		    text, size, "namespaces: " BWRAP ": %s", strerror(errno));
		return -1;
	}
	for (i = 0; i < nitems(want); i++)
		if (strstr(said, want[i]) == NULL) {
			snprintf(text, size,
			    "namespaces: " BWRAP " does not know %s", want[i]);
			return -1;
		}
	return 0;
}

/* ---- run ---- */

static int
profile_for(const struct profile_binds *b, struct xl_setup *s)
{
	*s = shared; /* the filters are borrowed: see job.c */
	if (profile_setup(s, &base, b) == 0)
		return 0;
	s->nfilters = 0;
	memset(&s->nofork, 0, sizeof(s->nofork));
	xl_setup_clear(s);
	return -1;
}

/* A memfd with the arguments, at its start; -1 with errno. */
static int
args_fd(const struct profile_binds *b)
{
	struct wbuf w;
	int fd = -1;

	wbuf_init(&w, 8 * 1024 * 1024);
	profile_args(&w, &base, b);
	if (w.err)
		errno = ENOMEM;
	else if ((fd = memfd_create("args", MFD_CLOEXEC)) != -1 &&
		 (write(fd, w.p, w.len) != (ssize_t)w.len ||
		     lseek(fd, 0, SEEK_SET) == -1)) {
		close(fd);
		fd = -1;
	}
	wbuf_free(&w);
	return fd;
}

/* The descriptors of the child: standard ones, and those that keep their
 * number (a dup onto itself clears close-on-exec).  0 or an errno. */
static int
file_actions(posix_spawn_file_actions_t *fa, int sock, int err, int args,
    const struct profile_binds *b)
{
	size_t i;
	int rc;

	if ((rc = posix_spawn_file_actions_adddup2(fa, sock, 0)) != 0 ||
	    (rc = posix_spawn_file_actions_adddup2(fa, null, 1)) != 0 ||
	    (rc = posix_spawn_file_actions_adddup2(fa, err, 2)) != 0 ||
	    (rc = posix_spawn_file_actions_adddup2(fa, args, args)) != 0 ||
	    (rc = posix_spawn_file_actions_adddup2(fa, launcher, launcher)) !=
		0)
		return rc;
	for (i = 0; i < b->n; i++)
		if ((rc = posix_spawn_file_actions_adddup2(
			 fa, b->v[i].fd, b->v[i].fd)) != 0)
			return rc;
	return 0;
}

/* ---- into a control group, which posix_spawn cannot do everywhere ---- */

/* A child in the group, as fork: -1 with errno.  *late: it must go there by
 * itself. */
static pid_t
fork_into(int group, int *late)
{
	struct clone_args a = {.flags = CLONE_INTO_CGROUP,
	    .exit_signal = SIGCHLD,
	    .cgroup = (uint64_t)group};
	pid_t pid;

	*late = 0;
	pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));
	if (pid != -1 || (errno != ENOSYS && errno != E2BIG &&
			     errno != EINVAL && errno != EPERM))
		return pid;
	*late = 1; /* older than Linux 5.7, or a filter */
	return fork();
}

static void __attribute__((noreturn)) child_die(int err, const char *text)
{
	if (write(err, text, strlen(text)) == -1)
		_exit(126);
	_exit(127);
}

/* A dup onto itself clears close-on-exec, as in file_actions. */
static int
keep_fd(int fd)
{
	return fcntl(fd, F_SETFD, 0);
}

/* The same as the attributes and file_actions below say: only system calls
 * are made. */
static void __attribute__((noreturn)) child(int sock, int err, int args,
    const struct profile_binds *b, char *const argv[], int group)
{
	struct sigaction sa = {0};
	char *envp[] = {NULL};
	sigset_t none;
	size_t i;
	int n;

	if (group != -1 && cg_write(group, "cgroup.procs", "0") == -1)
		child_die(err, "cannot enter the control group\n");
	sa.sa_handler = SIG_DFL;
	for (n = 1; n < NSIG; n++)
		(void)sigaction(n, &sa, NULL); /* KILL and STOP refuse */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (i = 0; i < b->n; i++)
		if (keep_fd(b->v[i].fd) == -1)
			_exit(126);
	if (keep_fd(args) == -1 || keep_fd(launcher) == -1 ||
	    dup2(sock, 0) == -1 || dup2(null, 1) == -1 || dup2(err, 2) == -1)
		_exit(126);
	execve(BWRAP, argv, envp);
	child_die(2, BWRAP " cannot be executed\n");
}

/* 0 or an errno; *pid is bubblewrap. */
static int
start(int sock, int err, int group, const struct profile_binds *b, pid_t *pid)
{
	char num[16], self[32];
	char *argv[] = {(char[]){"bwrap"}, (char[]){"--args"}, num,
	    (char[]){"--"}, self, NULL};
	char *envp[] = {NULL};
	posix_spawn_file_actions_t fa;
	int args, late, rc = 0;

	if ((args = args_fd(b)) == -1)
		return errno;
	snprintf(num, sizeof(num), "%d", args);
	snprintf(self, sizeof(self), "/proc/self/fd/%d", launcher);
	if (group != -1) {
		*pid = fork_into(group, &late);
		if (*pid == 0)
			child(sock, err, args, b, argv, late ? group : -1);
		rc = *pid == -1 ? errno : 0;
	} else if ((rc = posix_spawn_file_actions_init(&fa)) == 0) {
		if ((rc = file_actions(&fa, sock, err, args, b)) == 0)
			rc = posix_spawn(pid, BWRAP, &fa, &attr, argv, envp);
		posix_spawn_file_actions_destroy(&fa);
	}
	close(args);
	return rc;
}

static int
run(const struct profile_binds *b, int group, struct sandbox *out)
{
	int sv[2], p[2], on = 1, rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		return -1;
	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) == -1) {
		rc = errno;
		close(sv[0]);
		close(sv[1]);
		errno = rc;
		return -1;
	}
	/* before the launcher can say a word: it tells its outer pid */
	if (setsockopt(sv[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == -1)
		rc = errno;
	else
		rc = start(sv[1], p[1], group, b, &out->pid);
	close(sv[1]);
	close(p[1]);
	if (rc != 0) {
		close(sv[0]);
		close(p[0]);
		errno = rc;
		return -1;
	}
	out->sock = sv[0];
	out->err = p[0];
	return 0;
}

const struct driver driver_bubblewrap = {
    "bubblewrap", check_begin, check, profile_for, run};
