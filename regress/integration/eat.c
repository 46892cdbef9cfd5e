/*
 * SPDX-License-Identifier: ISC
 *
 * A program that takes what a control group counts, for test_uml.py, which
 * builds it: one word says what, the next how much.  It prints what it got.
 */
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB (1024 * 1024)

/* Write to n MiB of it. */
static void
touch(char *p, long n)
{
	long i;

	for (i = 0; i < n * MIB; i += 4096)
		p[i] = 1;
}

static void
eat_memory(long n)
{
	char *p = mmap(NULL, (size_t)n * MIB, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		printf("refused %d\n", errno);
		exit(3);
	}
	touch(p, n);
}

/* What no limit of a process counts. */
static void
eat_shared(long n)
{
	int fd = memfd_create("eat", 0);
	char *p;

	if (fd == -1 || ftruncate(fd, n * MIB) == -1 ||
	    (p = mmap(NULL, (size_t)n * MIB, PROT_READ | PROT_WRITE, MAP_SHARED,
		 fd, 0)) == MAP_FAILED) {
		printf("refused %d\n", errno);
		exit(3);
	}
	touch(p, n);
}

/* n processes that eat each MiB and wait for the last. */
static void
eat_many(long n, long each)
{
	int i, status, bad = 0;

	for (i = 0; i < n; i++)
		switch (fork()) {
		case -1:
			printf("no fork\n");
			exit(3);
		case 0:
			eat_memory(each);
			sleep(3);
			_exit(0);
		}
	while (wait(&status) > 0)
		bad += status != 0;
	printf("bad %d\n", bad);
}

/* As many children as there may be, at most n; they stay for some seconds. */
static void
eat_processes(long n, unsigned stay)
{
	long i, err = 0;

	for (i = 0; i < n; i++) {
		switch (fork()) {
		case -1:
			err = errno;
			goto out;
		case 0:
			sleep(stay);
			_exit(0);
		}
	}
out:
	printf("forked %ld errno %ld\n", i, err);
	fflush(stdout);
	while (wait(NULL) > 0)
		;
}

static void
eat_time(long seconds)
{
	struct timespec a, b;
	struct rusage ru;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do
		clock_gettime(CLOCK_MONOTONIC, &b);
	while (b.tv_sec - a.tv_sec < seconds);
	getrusage(RUSAGE_SELF, &ru);
	printf("cpu_ms %ld\n",
	    (long)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000 +
		(long)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1000);
}

/* A chain of processes in sessions of their own: each lets the next go on
 * and ends, so that a list of them is old when it is read. */
static void
run_away(void)
{
	int sig;

	for (sig = 1; sig < 32; sig++)
		signal(sig, SIG_IGN);
	if (fork() == 0) {
		setsid();
		for (;;) {
			usleep(2000);
			if (fork() > 0)
				_exit(0);
			setsid();
		}
	}
	sleep(600);
}

/* By a signal that leaves a core; with n, behind a limit of none. */
static void
crash(long n)
{
	struct rlimit none = {0, 0};

	if (n != 0 && setrlimit(RLIMIT_CORE, &none) == -1)
		exit(4);
	(void)kill(getpid(), SIGSEGV);
}

int
main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	long m = argc > 3 ? strtol(argv[3], NULL, 10) : 0;

	if (strcmp(what, "memory") == 0)
		eat_memory(n);
	else if (strcmp(what, "shared") == 0)
		eat_shared(n);
	else if (strcmp(what, "many") == 0)
		eat_many(n, m);
	else if (strcmp(what, "processes") == 0)
		eat_processes(n, (unsigned)m);
	else if (strcmp(what, "time") == 0)
		eat_time(n);
	else if (strcmp(what, "hold") == 0) {
		eat_memory(n);
		sleep((unsigned)m);
	} else if (strcmp(what, "runaway") == 0)
		run_away();
	else if (strcmp(what, "crash") == 0)
		crash(n);
	else if (strcmp(what, "mark") == 0) /* as systemd does */
		return setxattr(argv[2], "trusted.delegate", "1", 1, 0) != 0;
	else
		return 2;
	printf("ate %ld\n", n);
	return 0;
}
