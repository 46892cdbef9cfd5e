/*
 * SPDX-License-Identifier: ISC
 *
 * What is counted: used up until it is refused.  A number is how much there
 * was; descriptors count those that were open before.
 */
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "regress/inside/inside.h"

#define MIB (1L << 20)

static void
raise_limit(const char *name, int which)
{
	struct rlimit r;
	char text[40];

	if (getrlimit(which, &r) == -1)
		abort();
	say_number("limit", name,
	    r.rlim_max == RLIM_INFINITY ? -1 : (long long)r.rlim_max);
	if (r.rlim_max == RLIM_INFINITY)
		return;
	r.rlim_cur = ++r.rlim_max;
	snprintf(text, sizeof(text), "%s:more", name);
	say("limit", text, setrlimit(which, &r));
}

static void
descriptors(void)
{
	int fd, last = 2;

	while ((fd = open("/dev/null", O_RDONLY)) != -1)
		last = fd;
	printf("limit open %d %s\n", last + 1, errno_name(errno));
	closefrom(3);
}

/* Bytes that a file there can have, in MiB; -1 when there can be none. */
static void
fill(const char *name, const char *dir)
{
	static char block[1 << 16];
	char path[64];
	long long have = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/inside-fill", dir);
	memset(block, 'x', sizeof(block));
	if ((fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600)) == -1) {
		say("size", name, -1);
		return;
	}
	while (have < 1024 * MIB && (n = write(fd, block, sizeof(block))) > 0)
		have += n;
	printf("size %s %lldK %s\n", name, have >> 10, errno_name(errno));
	close(fd);
	unlink(path);
}

static void
watches(void)
{
	int fd, n = 0, f;
	char path[64];

	while ((fd = inotify_init1(IN_CLOEXEC)) != -1)
		n++;
	printf("limit inotify %d %s\n", n, errno_name(errno));
	closefrom(3);
	if ((fd = inotify_init1(IN_CLOEXEC)) == -1 ||
	    mkdir("/tmp/inside-w", 0700) == -1)
		abort();
	for (n = 0; n < 20000; n++) {
		snprintf(path, sizeof(path), "/tmp/inside-w/%d", n);
		if ((f = open(path, O_WRONLY | O_CREAT, 0600)) == -1)
			break;
		close(f);
		if (inotify_add_watch(fd, path, IN_MODIFY) == -1)
			break;
	}
	printf("limit watches %d %s\n", n, errno_name(errno));
	for (; n >= 0; n--) {
		snprintf(path, sizeof(path), "/tmp/inside-w/%d", n);
		unlink(path);
	}
	rmdir("/tmp/inside-w");
	close(fd);
}

/* Processes besides this one. */
static void
processes(void)
{
	static pid_t pids[4096];
	int n = 0, err = 0;

	while (n < 4096) {
		if ((pids[n] = fork()) == 0) {
			pause();
			_exit(0);
		}
		if (pids[n] == -1) {
			err = errno;
			break;
		}
		n++;
	}
	printf("limit forks %d %s\n", n, errno_name(err));
	while (n-- > 0) {
		kill(pids[n], SIGKILL);
		waitpid(pids[n], NULL, 0);
	}
}

/* Memory of its own, in steps of 4 MiB, as MiB. */
static void
memory(void)
{
	long n = 0;

	while (n < 8192 && mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0) != MAP_FAILED)
		n += 4;
	printf("limit memory %ldM %s\n", n, errno_name(errno));
}

void
try_limits(void)
{
	raise_limit("nofile", RLIMIT_NOFILE);
	raise_limit("core", RLIMIT_CORE);
	raise_limit("core:then", RLIMIT_CORE);
	raise_limit("nproc", RLIMIT_NPROC);
	raise_limit("data", RLIMIT_DATA);
	raise_limit("cpu", RLIMIT_CPU);
	raise_limit("fsize", RLIMIT_FSIZE);
	descriptors();
	watches();
	fill("tmp", "/tmp");
	fill("run", "/run");
	fill("shm", "/dev/shm");
	fill("dev", "/dev");
	fill("root", "");
	processes();
	memory();
}
