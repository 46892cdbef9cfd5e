/*
 * SPDX-License-Identifier: ISC
 *
 * Tries things out in children, so that abxctl itself stays as it is.  The
 * only program that is started is bubblewrap, with an option that makes it
 * print and end.
 */
#include "monitor/ctl/probe.h"

#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_OUTPUT (64 * 1024)

static int
wait_for(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) == -1)
		if (errno != EINTR)
			return -1;
	return 0;
}

/* In the child: become that user and go. */
static void
child(uid_t uid, gid_t gid, int (*fn)(const void *), const void *arg)
{
	if (uid != 0 && geteuid() == 0 &&
	    (setgroups(0, NULL) == -1 || setresgid(gid, gid, gid) == -1 ||
		setresuid(uid, uid, uid) == -1))
		_exit(errno & 0xff);
	_exit(fn(arg) & 0xff);
}

int
probe_as(uid_t uid, gid_t gid, int (*fn)(const void *), const void *arg)
{
	pid_t pid;
	int status;

	if ((pid = fork()) == -1)
		return -1;
	if (pid == 0)
		child(uid, gid, fn, arg);
	if (wait_for(pid, &status) == -1 || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

int
probe_userns(const void *arg)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == -1 ? errno : 0;
}

int
probe_directory(const void *arg)
{
	const char *path = arg;
	DIR *d;

	if (access(path, X_OK) == -1 || (d = opendir(path)) == NULL)
		return errno;
	closedir(d);
	return 0;
}

int
probe_seccomp(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int
probe_openat2(void)
{
	struct open_how how = {
	    .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	int fd;

	fd = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof(how));
	if (fd == -1)
		return 0;
	close(fd);
	return 1;
}

int
probe_cgroup2(void)
{
	struct statfs fs;

	return statfs("/sys/fs/cgroup", &fs) == 0 &&
	       fs.f_type == CGROUP2_SUPER_MAGIC;
}

int
probe_landlock_off(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) == -1 &&
	       errno == EOPNOTSUPP;
}

int
probe_line(const char *path, char *line, size_t size)
{
	ssize_t n = -1;
	int fd;

	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) != -1) {
		n = read(fd, line, size - 1);
		close(fd);
	}
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return n > 0 ? 0 : -1;
}

long
probe_sysctl(const char *name)
{
	char path[128], line[32], *end;
	long v;

	snprintf(path, sizeof(path), "/proc/sys/%s", name);
	if (probe_line(path, line, sizeof(line)) == -1)
		return -1;
	v = strtol(line, &end, 10);
	return end == line || *end != '\0' ? -1 : v;
}

int
probe_proc_covered(char *path, size_t size)
{
	char line[1024], at[512];
	int covered = 0;
	FILE *f;

	if ((f = fopen("/proc/self/mountinfo", "re")) == NULL)
		return 0;
	while (!covered && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "%*s %*s %*s %*s %511s", at) == 1 &&
		    strncmp(at, "/proc/", 6) == 0 &&
		    strcmp(at, "/proc/sys/fs/binfmt_misc") != 0) {
			strlcpy(path, at, size);
			covered = 1;
		}
	fclose(f);
	return covered;
}

/* Everything up to end of file, at most PROBE_OUTPUT bytes. */
static char *
read_text(int fd)
{
	char *buf;
	size_t n = 0;
	ssize_t r;

	if ((buf = malloc(PROBE_OUTPUT + 1)) == NULL)
		return NULL;
	while (n < PROBE_OUTPUT &&
	       ((r = read(fd, buf + n, PROBE_OUTPUT - n)) > 0 ||
		   (r == -1 && errno == EINTR)))
		n += r > 0 ? (size_t)r : 0;
	buf[n] = '\0';
	return buf;
}

static int
start(pid_t *pid, const char *path, const char *option, int out)
{
	/* execve(2) does not change them, its prototype is older than const */
	char *const argv[] = {
	    (char *)(uintptr_t)path, (char *)(uintptr_t)option, NULL};
	char *const env[] = {NULL};
	posix_spawn_file_actions_t fa;
	int r;

	if ((r = posix_spawn_file_actions_init(&fa)) != 0)
		return r;
	if ((r = posix_spawn_file_actions_addopen(
		 &fa, 0, "/dev/null", O_RDONLY, 0)) == 0 &&
	    (r = posix_spawn_file_actions_adddup2(&fa, out, 1)) == 0 &&
	    (r = posix_spawn_file_actions_adddup2(&fa, out, 2)) == 0)
		r = posix_spawn(pid, path, &fa, NULL, argv, env);
	posix_spawn_file_actions_destroy(&fa);
	return r;
}

char *
probe_output(const char *path, const char *option)
{
	int p[2], status;
	char *text;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) == -1)
		return NULL;
	if (start(&pid, path, option, p[1]) != 0) {
		close(p[0]);
		close(p[1]);
		return NULL;
	}
	close(p[1]);
	text = read_text(p[0]);
	close(p[0]);
	if (wait_for(pid, &status) == -1 || status != 0) {
		free(text);
		return NULL;
	}
	return text;
}
