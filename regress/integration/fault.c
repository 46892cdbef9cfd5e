/*
 * SPDX-License-Identifier: ISC
 *
 * Makes chosen calls of chosen processes fail.  Linked into copies of the
 * programs by a test, never into what is installed: each wrapper counts, and
 * the one whose turn it is fails with the error that the test wrote into the
 * page beside the program (fault.ctl), which all processes share.  Without
 * that page everything is as ever.
 */
#undef _FORTIFY_SOURCE /* it would define the same functions */

#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 24
#define TRACES 16384
#define ALLOC 1 /* the class of what allocates; calls are of class 2 */

/* The page; the test packs it with the same layout. */
struct ctl {
	char who[16];	/* the process, or "" for none */
	uint32_t class; /* 1 allocations, 2 calls, 4 all that was missed */
	uint32_t at;	/* that one fails, from 1; 0: none */
	uint32_t times; /* and as many as that together */
	int32_t error;	/* errno; 0: a short count */
	uint32_t seen;	/* of that class so far */
	uint32_t fired;
	uint32_t tracing;
	uint32_t traced;
	char name[16]; /* what failed first */
	int32_t pid;
	uint32_t depth;
	uint64_t pc[DEPTH];
	uint64_t hash[TRACES];
	char names[TRACES][16];
};

extern char __executable_start, _end;
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static struct ctl *ctl;
static pid_t first;
static int busy;
static char me[16];

static void __attribute__((constructor)) fault_init(void)
{
	char path[4096], *slash;
	void *pcs[4], *p;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	int fd;

	first = getpid();
	if (n <= 0)
		return;
	path[n] = '\0';
	if ((slash = strrchr(path, '/')) == NULL)
		return;
	snprintf(me, sizeof(me), "%.15s", slash + 1);
	snprintf(slash, 32, "/fault.ctl");
	(void)backtrace(pcs, 4); /* it loads a library at first */
	if ((fd = open(path, O_RDWR | O_CLOEXEC)) == -1)
		return;
	p = mmap(NULL, sizeof(*ctl), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		ctl = p;
}

/* The frames of the program itself. */
static unsigned
frames(uint64_t *out)
{
	void *pcs[DEPTH + 3];
	int i, n = backtrace(pcs, DEPTH + 3);
	uintptr_t at;
	unsigned k = 0;

	for (i = 2; i < n && k < DEPTH; i++) {
		at = (uintptr_t)pcs[i];
		if (at < (uintptr_t)&__executable_start ||
		    at >= (uintptr_t)&_end)
			continue;
		out[k++] = at - (uintptr_t)&__executable_start;
	}
	return k;
}

static void
note(const char *name)
{
	uint64_t pc[DEPTH], h = 1469598103934665603ULL;
	unsigned k, i;
	const char *c;

	if (ctl->traced >= TRACES)
		return;
	k = frames(pc);
	for (i = 0; i < k; i++)
		h = (h ^ pc[i]) * 1099511628211ULL;
	for (c = name; *c != '\0'; c++)
		h = (h ^ (unsigned char)*c) * 1099511628211ULL;
	snprintf(ctl->names[ctl->traced], 16, "%s", name);
	ctl->hash[ctl->traced++] = h;
}

/* Whether this call is to fail. */
static int
turn(unsigned class, const char *name)
{
	const char *who = me;
	int yes = 0, save = errno;

	if (ctl == NULL || busy || (ctl->class & class) == 0)
		return 0;
	busy = 1;
	if (strcmp(me, "abx-pathd") == 0 && getpid() != first)
		who = "worker";
	if (strcmp(ctl->who, who) == 0) {
		ctl->seen++;
		if (ctl->tracing)
			note(name);
		if (ctl->at != 0 && ctl->seen >= ctl->at &&
		    ctl->seen - ctl->at < ctl->times) {
			yes = 1;
			if (ctl->fired++ == 0) {
				snprintf(ctl->name, 16, "%s", name);
				ctl->pid = getpid();
				ctl->depth = frames(ctl->pc);
			}
		}
	}
	busy = 0;
	errno = save;
	if (yes)
		errno = class == ALLOC ? ENOMEM : ctl->error;
	return yes;
}

void *
malloc(size_t n)
{
	return turn(ALLOC, "malloc") ? NULL : __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
	return turn(ALLOC, "calloc") ? NULL : __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
	return n != 0 && turn(ALLOC, "realloc") ? NULL : __libc_realloc(p, n);
}

#define NEXT(f)                                         \
	static __typeof__(&f) next;                     \
	if (next == NULL) {                             \
		int was = busy;                         \
		busy = 1;                               \
		*(void **)&next = dlsym(RTLD_NEXT, #f); \
		busy = was;                             \
	}

#define WRAP(type, f, params, args)                        \
	type f params                                      \
	{                                                  \
		NEXT(f)                                    \
		return turn(2, #f) ? (type)-1 : next args; \
	}

/* Those that may do less than they were asked for. */
#define COUNT(f, params, args, less, n)               \
	ssize_t f params                              \
	{                                             \
		NEXT(f)                               \
		if (!turn(2, #f))                     \
			return next args;             \
		if (ctl->error != 0)                  \
			return -1;                    \
		return n > 1 ? next less : next args; \
	}

COUNT(read, (int fd, void *b, size_t n), (fd, b, n), (fd, b, n / 2), n)
COUNT(write, (int fd, const void *b, size_t n), (fd, b, n), (fd, b, n / 2), n)
COUNT(pread, (int fd, void *b, size_t n, off_t o), (fd, b, n, o),
    (fd, b, n / 2, o), n)
COUNT(pwrite, (int fd, const void *b, size_t n, off_t o), (fd, b, n, o),
    (fd, b, n / 2, o), n)
COUNT(splice, (int a, off64_t *ao, int b, off64_t *bo, size_t n, unsigned f),
    (a, ao, b, bo, n, f), (a, ao, b, bo, n / 2, f), n)
COUNT(sendfile, (int a, int b, off_t *o, size_t n), (a, b, o, n),
    (a, b, o, n / 2), n)
COUNT(copy_file_range,
    (int a, off64_t *ao, int b, off64_t *bo, size_t n, unsigned f),
    (a, ao, b, bo, n, f), (a, ao, b, bo, n / 2, f), n)
COUNT(send, (int s, const void *b, size_t n, int f), (s, b, n, f),
    (s, b, n / 2, f), n)
COUNT(
    recv, (int s, void *b, size_t n, int f), (s, b, n, f), (s, b, n / 2, f), n)
WRAP(ssize_t, sendmsg, (int s, const struct msghdr *m, int f), (s, m, f))
WRAP(ssize_t, recvmsg, (int s, struct msghdr *m, int f), (s, m, f))
WRAP(int, accept4, (int s, struct sockaddr *a, socklen_t *l, int f),
    (s, a, l, f))
WRAP(int, socketpair, (int d, int t, int p, int sv[2]), (d, t, p, sv))
WRAP(int, setsockopt, (int s, int l, int o, const void *v, socklen_t n),
    (s, l, o, v, n))
WRAP(int, getsockopt, (int s, int l, int o, void *v, socklen_t *n),
    (s, l, o, v, n))
WRAP(int, pipe2, (int p[2], int f), (p, f))
WRAP(int, dup2, (int a, int b), (a, b))
WRAP(int, epoll_ctl, (int e, int op, int fd, struct epoll_event *ev),
    (e, op, fd, ev))
WRAP(int, poll, (struct pollfd * p, nfds_t n, int ms), (p, n, ms))
WRAP(pid_t, fork, (void), ())
WRAP(int, memfd_create, (const char *n, unsigned f), (n, f))
WRAP(void *, mmap, (void *a, size_t n, int p, int f, int fd, off_t o),
    (a, n, p, f, fd, o))
WRAP(int, fstat, (int fd, struct stat *st), (fd, st))
WRAP(
    int, fstatat, (int d, const char *p, struct stat *st, int f), (d, p, st, f))
WRAP(int, stat, (const char *p, struct stat *st), (p, st))
WRAP(int, lstat, (const char *p, struct stat *st), (p, st))
WRAP(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, rename, (const char *a, const char *b), (a, b))
WRAP(int, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b))
WRAP(int, renameat2, (int d, const char *a, int e, const char *b, unsigned f),
    (d, a, e, b, f))
WRAP(int, linkat, (int d, const char *a, int e, const char *b, int f),
    (d, a, e, b, f))
WRAP(int, symlinkat, (const char *a, int d, const char *b), (a, d, b))
WRAP(int, unlinkat, (int d, const char *p, int f), (d, p, f))
WRAP(int, mkdirat, (int d, const char *p, mode_t m), (d, p, m))
WRAP(int, fchmod, (int fd, mode_t m), (fd, m))
WRAP(int, fchmodat, (int d, const char *p, mode_t m, int f), (d, p, m, f))
WRAP(ssize_t, readlinkat, (int d, const char *p, char *b, size_t n),
    (d, p, b, n))
WRAP(off_t, lseek, (int fd, off_t o, int w), (fd, o, w))
WRAP(int, flock, (int fd, int op), (fd, op))
WRAP(int, inotify_add_watch, (int fd, const char *p, uint32_t m), (fd, p, m))
WRAP(int, inotify_init1, (int f), (f))

/* With three or more arguments of which the last may be missing. */
int
open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t m;
	NEXT(open)

	va_start(ap, flags);
	m = va_arg(ap, mode_t);
	va_end(ap);
	return turn(2, "open") ? -1 : next(path, flags, m);
}

int
openat(int d, const char *path, int flags, ...)
{
	va_list ap;
	mode_t m;
	NEXT(openat)

	va_start(ap, flags);
	m = va_arg(ap, mode_t);
	va_end(ap);
	return turn(2, "openat") ? -1 : next(d, path, flags, m);
}

int __openat_2(int, const char *, int);
WRAP(int, __openat_2, (int d, const char *p, int f), (d, p, f))

int
fcntl(int fd, int cmd, ...)
{
	va_list ap;
	long arg;
	NEXT(fcntl)

	va_start(ap, cmd);
	arg = va_arg(ap, long);
	va_end(ap);
	return turn(2, "fcntl") ? -1 : next(fd, cmd, arg);
}

/* openat2, pidfd_open and others that have no wrapper in the libc. */
long
syscall(long nr, ...)
{
	va_list ap;
	long a[6];
	int i;
	NEXT(syscall)

	va_start(ap, nr);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return turn(2, "syscall")
		   ? -1
		   : next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int posix_spawn(pid_t *, const char *, const void *, const void *,
    char *const *, char *const *);
int
posix_spawn(pid_t *pid, const char *path, const void *fa, const void *at,
    char *const *argv, char *const *envp)
{
	NEXT(posix_spawn)

	return turn(2, "posix_spawn") ? errno
				      : next(pid, path, fa, at, argv, envp);
}
