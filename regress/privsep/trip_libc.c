/*
 * SPDX-License-Identifier: ISC
 *
 * What libc calls on its own under each filter: when memory is short, when it
 * ends a process that has gone wrong, and when a wait was suspended.  Such a
 * process may abort; that its filter kills it would hide why.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/abx.h"
#include "common/jail.h"
#include "listener/listener.h"
#include "monitor/mon.h"
#include "pathd/filter.h"
#include "regress/privsep/trip.h"

#define NAP_MS 300
#define SPACE (256UL << 20)

void __stack_chk_fail(void) __attribute__((noreturn)); /* gcc's own */
void __chk_fail(void) __attribute__((noreturn));       /* _FORTIFY_SOURCE */

static int epfd; /* made before the filter, as libevent's is */

/* ---- what goes well ---- */

static void
heap(void)
{
	void *volatile p[2000];
	size_t i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < nitems(p); i++)
			p[i] = malloc(100 + i * 37);
		for (i = 0; i < nitems(p); i++)
			p[i] = realloc(p[i], 1 + i * 211);
		for (i = 0; i < nitems(p); i++)
			free(p[i]);
		(void)malloc_trim(0);
	}
}

/* The program break cannot grow, nor can anything else in the end. */
static void
heap_short(void)
{
	void *volatile p;
	size_t n, got = 0;

	for (n = SPACE; n >= 16; n /= 2)
		while ((p = malloc(n)) != NULL)
			got++;
	if (got == 0 || errno != ENOMEM)
		_exit(1);
	abort();
}

static void
texts(void)
{
	const int volatile wide = 300000;
	char buf[2000], *text = NULL;
	struct tm tm;
	time_t t = -77777777777;
	size_t n;
	FILE *f;

	if (gmtime_r(&t, &tm) == NULL || strerror(ENOENT) == NULL ||
	    strerror(98765) == NULL ||
	    snprintf(buf, sizeof(buf), "%.400f %*d", 1e300, wide, 1) < 300000 ||
	    (f = open_memstream(&text, &n)) == NULL ||
	    fprintf(f, "%*s", 1000000, "x") != 1000000 || fclose(f) != 0)
		_exit(1);
	free(text);
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, 64);
}

static void
sorting(void)
{
	char *v = calloc(1000, 64);

	if (v == NULL || getrandom(v, 250, 0) != 250 ||
	    heapsort(v, 1000, 64, compare) == -1)
		_exit(1);
}

static void
leaving(void)
{
	exit(0);
}

/* ---- waits that are suspended ---- */

static void
wait_poll(void)
{
	if (poll(NULL, 0, NAP_MS) == -1 && errno != EINTR)
		_exit(1);
}

static void
wait_epoll(void)
{
	struct epoll_event ev;

	if (epoll_wait(epfd, &ev, 1, NAP_MS) == -1 && errno != EINTR)
		_exit(1);
}

static void
wait_sleep(void)
{
	const struct timespec ts = {0, NAP_MS * 1000000L};

	if (nanosleep(&ts, NULL) == -1 && errno != EINTR)
		_exit(1);
}

/* ---- what ends badly ---- */

static void
freed_twice(void)
{
	void *volatile p = malloc(3000), *volatile q = malloc(3000);

	free(p);
	free(p);
	free(q);
}

static const struct libc_case {
	const char *name;
	void (*run)(void);
	int aborts, stopped;
	rlim_t space; /* limit of the address space, 0: none */
} cases[] = {
    {"heap", heap, 0, 0, 0},
    {"no memory", heap_short, 1, 0, SPACE},
    {"texts", texts, 0, 0, 0},
    {"sorting", sorting, 0, 0, 0},
    {"exit", leaving, 0, 0, 0},
    {"suspended poll", wait_poll, 0, 1, 0},
    {"suspended epoll_wait", wait_epoll, 0, 1, 0},
    {"suspended sleep", wait_sleep, 0, 1, 0},
    {"abort", abort, 1, 0, 0},
    {"smashed stack", __stack_chk_fail, 1, 0, 0},
    {"buffer overflow", __chk_fail, 1, 0, 0},
    {"freed twice", freed_twice, 1, 0, 0},
};

/* Who is to run it: as the process itself, or as one forked from it. */
static const struct jail_call none[] = {{NULL, 0, 0, 0, 0}};
static const struct libc_who {
	const char *name;
	const struct jail_call *calls, *then;
	int forks;
} whos[] = {
    {"listener", filter_calls, NULL, 0},
    {"monitor", monitor_calls, NULL, 0},
    {"pathd", pathd_calls, NULL, 0},
    {"worker", pathd_calls, NULL, 1},
    {"reader of archives", pathd_calls, none, 1},
};

static void
end_as(int status)
{
	if (WIFSIGNALED(status))
		_exit(100 + WTERMSIG(status));
	_exit(WEXITSTATUS(status));
}

static void __attribute__((noreturn))
libc_child(const struct libc_who *w, const struct libc_case *c)
{
	struct rlimit space = {c->space, c->space}, core = {0, 0};
	int status, fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	pid_t pid;

	(void)signal(SIGABRT, SIG_DFL); /* cmocka's */
	(void)signal(SIGSEGV, SIG_DFL);
	if (fd == -1 || dup2(fd, STDERR_FILENO) == -1 ||
	    setrlimit(RLIMIT_CORE, &core) == -1 ||
	    (c->space != 0 && setrlimit(RLIMIT_AS, &space) == -1) ||
	    (epfd = epoll_create1(EPOLL_CLOEXEC)) == -1 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
		_exit(99);
	tzset();
	jail_seccomp(w->calls, 0);
	if (w->forks && (pid = fork()) != 0) {
		if (pid == -1 || waitpid(pid, &status, 0) != pid)
			_exit(99);
		end_as(status);
	}
	if (w->then != NULL)
		jail_seccomp(w->then, 0);
	c->run();
	_exit(0);
}

/* 0, or 100 and the signal, or what it said itself. */
static int
libc_run(const struct libc_who *w, const struct libc_case *c)
{
	const struct timespec ts = {0, NAP_MS * 1000000L / 3};
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)setpgid(0, 0);
		libc_child(w, c);
	}
	assert_int_not_equal(pid, -1);
	(void)setpgid(pid, pid);
	if (c->stopped) {
		(void)nanosleep(&ts, NULL);
		(void)kill(-pid, SIGSTOP);
		(void)nanosleep(&ts, NULL);
		(void)kill(-pid, SIGCONT);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 100 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

void
trip_libc(void **state)
{
	int got, want, bad = 0;
	size_t i, j;

	for (i = 0; i < nitems(whos); i++)
		for (j = 0; j < nitems(cases); j++) {
			want = cases[j].aborts ? 100 + SIGABRT : 0;
			if ((got = libc_run(&whos[i], &cases[j])) == want)
				continue;
			bad++;
			print_error("%s, %s: %d, expected %d\n", whos[i].name,
			    cases[j].name, got, want);
		}
	assert_int_equal(bad, 0);
}
