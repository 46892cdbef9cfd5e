/*
 * SPDX-License-Identifier: ISC
 *
 * Paths: what can be read (r), listed (l), written (w), made (c), removed (u),
 * renamed (m), run (x) where.  Nothing is changed when it is refused, and what
 * is made is taken away again.
 */
#include <sys/stat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regress/inside/inside.h"

static void
line(char op, const char *path, long rc)
{
	char name[512];

	snprintf(name, sizeof(name), "%c:%s", op, path);
	say("path", name, rc);
}

static long
readable(const char *path)
{
	char b[16];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n;
	int save;

	if (fd == -1)
		return -1;
	n = read(fd, b, sizeof(b));
	save = errno;
	close(fd);
	errno = save;
	return n == -1 ? -1 : 0;
}

static long
listable(const char *path)
{
	DIR *d = opendir(path);
	long rc;

	if (d == NULL)
		return -1;
	errno = 0;
	rc = readdir(d) == NULL && errno != 0 ? -1 : 0;
	closedir(d);
	return rc;
}

/* Open for writing; and write one byte, when that may be done. */
static long
writable(const char *path, const char *byte)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t n = 0;
	int save;

	if (fd == -1)
		return -1;
	if (byte != NULL)
		n = write(fd, byte, strlen(byte));
	save = errno;
	close(fd);
	errno = save;
	return n == -1 ? -1 : 0;
}

static long
makeable(const char *dir)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/inside-new", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd == -1)
		return -1;
	close(fd);
	return unlink(path);
}

static void
reads(void)
{
	static const char *const files[] = {"/etc/passwd", "/etc/group",
	    "/etc/hosts", "/etc/nsswitch.conf", "/etc/shadow", "/etc/gshadow",
	    "/etc/sudoers", "/etc/hostname", "/etc/machine-id", "/etc/fstab",
	    "/etc/resolv.conf", "/etc/ssh/sshd_config", "/root/.bashrc",
	    "/proc/self/status", "/proc/self/environ", "/proc/self/maps",
	    "/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/stack",
	    "/proc/1/root/etc/passwd", "/proc/1/cwd/etc/passwd",
	    "/proc/self/root/etc/shadow", "/proc/self/cwd/../../etc/shadow",
	    "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger", "/proc/version",
	    "/proc/meminfo", "/dev/null", "/dev/zero", "/dev/full",
	    "/dev/random", "/dev/urandom", "/dev/tty", "/dev/kmsg", "/dev/mem",
	    "/dev/port", "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/loop0",
	    "/dev/loop-control", "/dev/fuse", "/dev/kvm", "/dev/net/tun",
	    "/dev/console", "/dev/tty0", "/dev/ttyS0", "/dev/input/event0",
	    "/dev/fd/0", "/dev/core", "/sys/kernel/notes", "/var/log/syslog",
	    "/usr/bin/env", "/run/abx-launch", "/run/docker.sock",
	    "/run/systemd/notify"};
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		line('r', files[i], readable(files[i]));
}

static void
lists(void)
{
	static const char *const dirs[] = {"/", "/etc", "/usr", "/usr/bin",
	    "/proc", "/proc/1/fd", "/proc/1/task/1/fd", "/proc/self/fd", "/sys",
	    "/dev", "/dev/pts", "/dev/shm", "/dev/mqueue", "/dev/disk", "/tmp",
	    "/run", "/root", "/boot", "/opt", "/srv", "/mnt", "/media",
	    "/var/log", "/var/lib/dpkg", "/var/tmp", "/lost+found", "/run/user",
	    "/run/systemd"};
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		line('l', dirs[i], listable(dirs[i]));
}

static void
writes(void)
{
	static const struct {
		const char *path, *byte;
	} t[] = {{"/etc/passwd", NULL}, {"/etc/hosts", NULL},
	    {"/usr/bin/env", NULL}, {"/proc/self/mem", NULL},
	    {"/proc/self/oom_score_adj", "0"}, {"/proc/self/oom_adj", "0"},
	    {"/proc/self/setgroups", "allow"}, {"/proc/self/uid_map", "0 0 1"},
	    {"/proc/self/gid_map", "0 0 1"}, {"/proc/self/attr/current", "x"},
	    {"/proc/self/clear_refs", "1"}, {"/proc/self/comm", "x"},
	    {"/proc/self/timerslack_ns", "1"}, {"/proc/1/mem", NULL},
	    {"/proc/1/oom_score_adj", "0"}, {"/proc/sys/kernel/hostname", "x"},
	    {"/proc/sys/kernel/core_pattern", "x"},
	    {"/proc/sys/kernel/shmmax", "1"}, {"/proc/sys/vm/drop_caches", "1"},
	    {"/proc/sys/user/max_inotify_instances", "99999"},
	    {"/proc/sys/user/max_user_namespaces", "99999"},
	    {"/proc/sys/net/ipv4/ip_forward", "1"},
	    {"/proc/sys/fs/mqueue/msg_max", "99"}, {"/proc/sysrq-trigger", "h"},
	    {"/proc/mtrr", "x"}, {"/dev/null", "x"}, {"/dev/zero", "x"},
	    {"/dev/full", "x"}, {"/dev/random", "x"}, {"/dev/urandom", "x"},
	    {"/dev/tty", "x"}, {"/dev/kmsg", "x"}, {"/dev/mem", NULL},
	    {"/dev/sda", NULL}};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		line('w', t[i].path, writable(t[i].path, t[i].byte));
}

static void
makes(void)
{
	static const char *const dirs[] = {"", "/etc", "/usr", "/usr/bin",
	    "/usr/local", "/bin", "/lib", "/proc", "/proc/self", "/sys", "/dev",
	    "/dev/pts", "/dev/shm", "/tmp", "/run", "/var", "/var/tmp", "/home",
	    "/root", "/opt", "/srv", "/mnt", "."};
	static const char *const away[] = {"/dev/null", "/etc/passwd",
	    "/usr/bin/env", "/bin", "/tmp", "/run", "/dev/shm", "/dev/ptmx"};
	size_t i;

	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		line('c', *dirs[i] == '\0' ? "/" : dirs[i], makeable(dirs[i]));
	for (i = 0; i < sizeof(away) / sizeof(away[0]); i++) {
		line('u', away[i], unlink(away[i]));
		line('m', away[i], rename(away[i], "/tmp/inside-moved"));
	}
}

/* A program that was made in that directory is run. */
static void
runs(const char *dir)
{
	static const char text[] = "#!/usr/bin/true\n";
	char path[512], *argv[] = {path, NULL};
	int fd, status;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/inside-run", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	if (fd == -1 || write(fd, text, sizeof(text) - 1) == -1) {
		line('x', dir, -1);
		return;
	}
	close(fd);
	if ((pid = fork()) == 0) {
		execve(path, argv, NULL);
		_exit(errno);
	}
	if (pid == -1) {
		line('x', dir, -1);
	} else {
		(void)waitpid(pid, &status, 0);
		errno = WEXITSTATUS(status);
		line('x', dir, status == 0 ? 0 : -1);
	}
	unlink(path);
}

/* The working directory. */
static void
cwd(void)
{
	struct stat st;

	line('r', "a.txt", readable("a.txt"));
	line('w', "a.txt", writable("a.txt", NULL));
	line('t', "a.txt", truncate("a.txt", 6));
	line('p', "a.txt", chmod("a.txt", 0644));
	line('s', "a.txt", utimensat(AT_FDCWD, "a.txt", NULL, 0));
	line('k', "a.txt", link("a.txt", "inside-hard"));
	(void)unlink("inside-hard");
	line('y', "a.txt", symlink("a.txt", "inside-soft"));
	(void)unlink("inside-soft");
	line('d', ".", mkdir("inside-dir", 0700));
	line('m', "sub/b.txt", rename("sub/b.txt", "sub/inside-b"));
	if (stat("sub/inside-b", &st) == 0)
		(void)rename("sub/inside-b", "sub/b.txt");
	line('m', "across", rename("sub/b.txt", "inside-b"));
	if (stat("inside-b", &st) == 0)
		(void)rename("inside-b", "sub/b.txt");
	(void)rmdir("inside-dir");
	line('w', ".git/config", writable(".git/config", NULL));
	line('c', ".git/hooks", makeable(".git/hooks"));
	line('m', ".git", rename(".git", "inside-git"));
	line('l', "..", listable(".."));
	line('c', "..", makeable(".."));
	line('r', "leak", readable("leak"));
	runs(".");
}

void
try_places(void)
{
	reads();
	lists();
	writes();
	makes();
	runs("/tmp");
	runs("/run");
	runs("/dev/shm");
	cwd();
}

void
try_named(char **words)
{
	char *eq, name[64];
	struct stat st;

	for (; *words != NULL; words++) {
		if ((eq = strchr(*words, '=')) == NULL)
			continue;
		*eq++ = '\0';
		snprintf(name, sizeof(name), "%s:see", *words);
		say("own", name, lstat(eq, &st));
		snprintf(name, sizeof(name), "%s:read", *words);
		say("own", name, readable(eq));
		snprintf(name, sizeof(name), "%s:list", *words);
		say("own", name, listable(eq));
		snprintf(name, sizeof(name), "%s:make", *words);
		say("own", name, makeable(eq));
	}
}
