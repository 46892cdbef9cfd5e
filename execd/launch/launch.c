/*
 * SPDX-License-Identifier: ISC
 *
 * abx-launch: PID 1 of a sandbox.  Owns the status socket: says hello, sets
 * the layers up once, starts a program when told, forwards signals, reaps
 * everything and says how it ended and when nothing is left.  It ends when
 * execd closes the socket, and the kernel then ends the sandbox.  It decides
 * nothing and reads nothing that a client wrote but the words of execve.
 *
 * For a session it starts no program itself but a supervisor for each
 * (super.c), which goes on here with a socket of its own and does the same
 * for what hangs below it.
 */
#include "execd/launch/launch.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bpf.h"
#include "common/codes.h"
#include "common/imsg.h"
#include "common/msg.h"

#define MEMFD_MAX (32U * 1024 * 1024)

static struct imsgbuf *status; /* the socket to execd */
static int sigfd;
static struct xl_setup setup;
static int stdio[3] = {-1, -1, -1}; /* of the next program */
static int apart = -1; /* rules of a run's own domain, once one was needed */

/* The one run: its id, its program (0 when reaped), whether a process of it
 * may be left. */
static uint64_t run_id;
static pid_t run_pid;
static int run_busy;

static int is_set_up;
static int supervisor; /* we are one */
static int nsupers;    /* we have had one: no run of our own any more */
static int killing;    /* the tree of the run is to end */
static int hung_up;    /* execd is done with us */

static void begin_super(void);

static void __attribute__((noreturn)) leave(int rc)
{
	_exit(rc);
}

/* The end of the socket.  A supervisor that ended with anything but 0 would
 * end the whole sandbox, so it empties its tree first. */
static void
hang_up(void)
{
	if (!supervisor)
		leave(0);
	hung_up = killing = 1;
	super_kill();
}

/* Send what is queued, waiting for room. */
static void
flush(void)
{
	struct pollfd p = {LAUNCH_FD, POLLOUT, 0};
	int n;

	while ((n = imsg_flush(status)) == 1)
		if (poll(&p, 1, -1) == -1 && errno != EINTR)
			leave(1);
	if (n == -1) {
		if (!supervisor)
			leave(1); /* execd is gone */
		hang_up();
	}
}

static void
say(uint16_t type, uint64_t id, const struct wbuf *w)
{
	if (hung_up)
		return;
	if ((w != NULL && w->err) ||
	    imsg_compose(status, type, id, -1, w == NULL ? NULL : w->p,
		w == NULL ? 0 : w->len) == -1)
		leave(1);
}

static void
say_failed(uint64_t id, const struct spawn_failed *f)
{
	struct wbuf w;

	wbuf_init(&w, 256);
	xl_failed_put(&w, f);
	say(XL_FAILED, id, &w);
	wbuf_free(&w);
}

static void
failed(uint64_t id, enum code code, const char *layer)
{
	struct spawn_failed f = {(uint16_t)code, errno, ""};

	strncpy(f.layer, layer, sizeof(f.layer) - 1);
	say_failed(id, &f);
}

/* Setting up failed: say which layer, and end. */
static void __attribute__((noreturn))
setup_failed(uint64_t id, enum code code, const char *layer)
{
	failed(id, code, layer);
	flush();
	leave(1);
}

/* ---- layers, in the order of design: sandbox ---- */

static void
apply(uint64_t id)
{
	struct xl_ready y = {LAYER_NAMESPACES, (uint32_t)landlock_abi()};
	const char *bad = "";
	struct wbuf w;
	size_t i;

	/* whatever bubblewrap was asked for: this is what it did */
	if (init_namespaces(&setup, &bad) == -1)
		setup_failed(id, C_SBX_UNAVAILABLE, "namespaces");
	if (init_quotas() == -1)
		setup_failed(id, C_SBX_UNAVAILABLE, "inotify quota");
	if (init_caps() == -1)
		setup_failed(id, C_SBX_UNAVAILABLE, "capabilities");
	if (init_check(&setup, "", NULL, &bad) == -1)
		setup_failed(id, C_POL_PATH_CHANGED, "bind");
	if ((setup.layers & LAYER_LANDLOCK) != 0 && y.abi > 0) {
		if (landlock_enter(&setup, (int)y.abi) == -1)
			setup_failed(id, C_SBX_UNAVAILABLE, "landlock");
		y.layers |= LAYER_LANDLOCK;
	}
	if ((setup.layers & LAYER_SECCOMP) != 0) {
		for (i = 0; i < setup.nfilters; i++)
			if (bpf_load(setup.filters[i].code,
				setup.filters[i].len) == -1)
				setup_failed(id, C_SBX_UNAVAILABLE, "seccomp");
		if (setup.nfilters > 0)
			y.layers |= LAYER_SECCOMP;
	}
	errno = ENOSYS;
	if ((setup.require & LAYER_LANDLOCK & ~y.layers) != 0)
		setup_failed(id, C_SBX_UNAVAILABLE, "landlock");
	if ((setup.require & LAYER_SECCOMP & ~y.layers) != 0)
		setup_failed(id, C_SBX_UNAVAILABLE, "seccomp");
	wbuf_init(&w, 64);
	xl_ready_put(&w, &y);
	say(XL_READY, id, &w);
	wbuf_free(&w);
}

/* ---- messages ---- */

/* The payload itself, or what the memfd holds (*heap is to be freed). */
static const uint8_t *
payload(const struct imsg *m, size_t *len, uint8_t **heap)
{
	struct stat st;
	size_t have = 0;
	ssize_t n;

	*heap = NULL;
	*len = m->len;
	if (m->fd == -1)
		return m->payload;
	if (fstat(m->fd, &st) == -1 || st.st_size <= 0 ||
	    st.st_size > (off_t)MEMFD_MAX ||
	    (*heap = malloc((size_t)st.st_size)) == NULL)
		return NULL;
	*len = (size_t)st.st_size;
	while (have < *len) {
		n = pread(m->fd, *heap + have, *len - have, (off_t)have);
		if (n <= 0)
			return NULL;
		have += (size_t)n;
	}
	return *heap;
}

static void
on_setup(const struct imsg *m)
{
	const uint8_t *p;
	struct rbuf r;
	uint8_t *heap;
	size_t len;

	if (is_set_up || (p = payload(m, &len, &heap)) == NULL)
		leave(2);
	rbuf_init(&r, p, len);
	if (xl_setup_get(&r, &setup) == -1)
		leave(2);
	free(heap);
	apply(m->id);
	is_set_up = 1;
}

static void
close_stdio(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		if (stdio[i] != -1)
			close(stdio[i]);
		stdio[i] = -1;
	}
}

static void
say_started(void)
{
	struct wbuf w;

	wbuf_init(&w, 4);
	wput_u32(&w, (uint32_t)run_pid);
	say(XL_STARTED, run_id, &w);
	wbuf_free(&w);
}

/* What the run asks for beside itself: C_OK, or with errno why it cannot have
 * it, and of which layer. */
static enum code
run_needs(const struct xl_run *x, struct start *s, const char **layer)
{
	const char *bad;

	*layer = "bind";
	/* time has passed, in which others may have moved what is covered */
	if ((x->flags & XL_CHECK) != 0 &&
	    init_check(&setup, x->cwd, &s->cwd, &bad) == -1)
		return C_POL_PATH_CHANGED;
	*layer = "landlock";
	if ((x->flags & XL_APART) == 0)
		return C_OK;
	if (apart == -1)
		apart = landlock_apart_set();
	s->apart = apart;
	return apart == -1 && errno != ENOSYS ? C_SBX_UNAVAILABLE : C_OK;
}

static void
start_run(uint64_t id, const struct xl_run *x)
{
	struct start s = {
	    x, {stdio[0], stdio[1], stdio[2]}, -1, -1, &setup.nofork};
	struct spawn_failed f;
	const char *layer;
	enum code code;

	if ((code = run_needs(x, &s, &layer)) != C_OK)
		failed(id, code, layer);
	else if ((run_pid = init_start(&s, &f)) == -1) {
		run_pid = 0;
		say_failed(id, &f);
	} else {
		run_id = id;
		run_busy = 1;
		say_started();
	}
	if (s.cwd != -1)
		close(s.cwd);
}

static void
on_run(const struct imsg *m)
{
	const uint8_t *p;
	struct xl_run x;
	struct rbuf r;
	uint8_t *heap;
	size_t len;

	if (!is_set_up || run_busy || nsupers > 0 ||
	    (p = payload(m, &len, &heap)) == NULL)
		leave(2);
	rbuf_init(&r, p, len);
	if (xl_run_get(&r, &x) == -1)
		leave(2);
	free(heap);
	start_run(m->id, &x);
	xl_run_clear(&x);
	close_stdio();
}

static void
on_stdio(struct imsg *m)
{
	uint8_t n = m->payload[0];

	if (n > 2 || stdio[n] != -1)
		leave(2);
	stdio[n] = m->fd;
	m->fd = -1;
}

static void
on_kill(void)
{
	if (!supervisor)
		(void)kill(-1, SIGKILL); /* all but ourselves */
	else if (run_busy) {
		killing = 1;
		super_kill();
	}
}

/* Another process of ours, which goes on with this socket. */
static void
on_fork(struct imsg *m)
{
	if (!is_set_up || supervisor || run_busy)
		leave(2);
	nsupers = 1;
	if (super_fork(m->fd) == 0) {
		/* what the launcher has to say is not ours */
		(void)imsg_detach(status);
		m->fd = -1;
		begin_super();
	}
}

static void
on_message(struct imsg *m)
{
	const char *why;

	if (msg_check(m, &why) == -1)
		leave(2);
	switch (m->type) {
	case XL_SETUP:
		on_setup(m);
		break;
	case XL_FORK:
		on_fork(m);
		break;
	case XL_STDIO:
		on_stdio(m);
		break;
	case XL_RUN:
		on_run(m);
		break;
	case XL_SIGNAL:
		/* only a program that was not reaped owns its number */
		if (run_pid != 0 && m->id == run_id)
			(void)kill(-run_pid, m->payload[0]);
		break;
	case XL_KILL:
		on_kill();
		break;
	default:
		leave(2);
	}
	if (m->fd != -1)
		close(m->fd);
}

static void
on_socket(void)
{
	struct imsg m;
	int n;

	if ((n = imsg_read(status)) == -1) {
		if (errno != EPIPE)
			leave(2);
		hang_up();
	}
	if (n == 1)
		while (imsg_get(status, &m))
			on_message(&m);
}

/* ---- children ---- */

static uint64_t
micros(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

static void
say_ended(int wstatus, const struct rusage *ru)
{
	struct xl_ended e;
	struct wbuf w;

	e.status = wstatus;
	e.utime_us = micros(&ru->ru_utime);
	e.stime_us = micros(&ru->ru_stime);
	e.maxrss_kb = (uint64_t)ru->ru_maxrss;
	wbuf_init(&w, 64);
	xl_ended_put(&w, &e);
	say(XL_ENDED, run_id, &w);
	wbuf_free(&w);
}

/* A supervisor ends by itself, with 0, when its run is over.  If one is killed
 * or stopped from inside, nobody knows what belongs to which run. */
static void
reap_super(int wstatus)
{
	if (!WIFEXITED(wstatus) || WEXITSTATUS(wstatus) != 0)
		leave(3);
}

static void
reap(void)
{
	struct rusage ru;
	int wstatus;
	pid_t pid;

	while ((pid = wait4(-1, &wstatus,
		    WNOHANG | (nsupers > 0 ? WUNTRACED : 0), &ru)) > 0)
		if (pid == run_pid) {
			run_pid = 0;
			say_ended(wstatus, &ru);
		} else if (nsupers > 0)
			reap_super(wstatus);
	if (pid == -1 && errno == ECHILD) {
		if (run_busy)
			say(XL_EMPTY, run_id, NULL);
		run_busy = killing = 0;
		if (hung_up)
			leave(0);
	} else if (killing)
		super_kill();
}

static void
on_signal(void)
{
	struct signalfd_siginfo si;

	/* whatever it says, only SIGCHLD matters: nobody inside commands */
	while (read(sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		;
	reap();
}

/* ---- the loop ---- */

static void __attribute__((noreturn)) serve(void)
{
	struct pollfd p[2];

	if ((status = imsg_new(LAUNCH_FD)) == NULL)
		leave(1);
	say(XL_HELLO, 0, NULL);
	flush();
	p[1].fd = sigfd;
	p[0].events = p[1].events = POLLIN;
	for (;;) {
		p[0].fd = hung_up ? -1 : LAUNCH_FD;
		if (poll(p, 2, killing ? SUPER_KILL_MS : -1) == -1 &&
		    errno != EINTR)
			leave(1);
		if (p[1].revents != 0)
			on_signal();
		else if (killing)
			reap();
		if (!hung_up && p[0].revents != 0)
			on_socket();
		if (!hung_up)
			flush();
		if (hung_up)
			reap();
	}
}

static int
signals(void)
{
	sigset_t all;

	sigfillset(&all);
	sigfd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	return sigfd == -1 ? -1 : 0;
}

static void
begin_super(void)
{
	supervisor = 1;
	nsupers = 0;
	if (signals() == -1)
		leave(1);
	serve();
}

/* ---- start ---- */

/* The socket comes as standard input, so that bubblewrap passes it on.  What
 * else was inherited is bubblewrap's own and is closed. */
static void
take_descriptors(void)
{
	int null;

	if (dup3(0, LAUNCH_FD, O_CLOEXEC) == -1 ||
	    syscall(SYS_close_range, LAUNCH_FD + 1, ~0U, 0) == -1)
		leave(1);
	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) == -1 ||
	    dup2(null, 0) == -1 || dup2(null, 1) == -1 || dup2(null, 2) == -1)
		leave(1);
	close(null);
}

int
main(int argc, char **argv)
{
	static const char usage[] = "abx-launch is started by abx-execd\n";

	if (getpid() != 1 || msg_fd_kind(0) != FDK_SOCKET) {
		if (write(STDERR_FILENO, usage, sizeof(usage) - 1) == -1)
			return 1;
		return 2;
	}
	take_descriptors();
	/* while our own files in /proc are still ours */
	if (init_victim() == -1 || init_no_core() == -1 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1 ||
	    prctl(PR_SET_NAME, "abx-launch", 0, 0, 0) == -1 ||
	    init_signals() == -1 || signals() == -1)
		leave(1);
	serve();
}
