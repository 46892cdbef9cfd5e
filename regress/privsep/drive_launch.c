/*
 * SPDX-License-Identifier: ISC
 *
 * An execd that went wrong, against a real launcher alone: it ends at the
 * first thing that is not right, and so does the sandbox with it.
 */
#include "regress/privsep/execd_drive.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "common/msg.h"
#include "execd/launch/xl.h"

#define ENDS_MS 15000
#define GOES_ON_MS 100

static struct {
	pid_t pid;
	struct imsgbuf *b;
} init;

/* ---- the launcher, as init of namespaces of its own ---- */

static void
put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd == -1 || write(fd, text, strlen(text)) == -1)
		_exit(98);
	close(fd);
}

static void __attribute__((noreturn)) child(int sock, uid_t uid, gid_t gid)
{
	char line[64];
	char path[4096];
	char *argv[] = {(char[]){"abx-launch"}, NULL}, *envp[] = {NULL};

	put_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "0 %u 1\n", uid);
	put_file("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "0 %u 1\n", gid);
	put_file("/proc/self/gid_map", line);
	snprintf(path, sizeof(path), "%s/abx-launch", conf.build);
	if (dup2(sock, 0) == -1)
		_exit(99);
	execve(path, argv, envp);
	_exit(99);
}

static void
init_start(void)
{
	uid_t uid = getuid();
	gid_t gid = getgid();
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		die("socketpair");
	/* its quotas and capabilities are those of a user namespace */
	init.pid = (pid_t)syscall(SYS_clone,
	    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL,
	    NULL, NULL);
	if (init.pid == -1)
		die("clone");
	if (init.pid == 0)
		child(sv[1], uid, gid);
	close(sv[1]);
	if ((init.b = imsg_new(sv[0])) == NULL)
		die("imsg_new");
}

/* Its wait status when it ends within ms, else -1. */
static int
init_ended(int ms)
{
	double end = now() + ms / 1e3;
	int status;

	do {
		if (waitpid(init.pid, &status, WNOHANG) == init.pid)
			return status;
		usleep(2000);
	} while (now() < end);
	return -1;
}

static void
init_stop(void)
{
	kill(init.pid, SIGKILL);
	(void)waitpid(init.pid, NULL, 0);
	imsg_free(init.b);
}

/* ---- what is said to it ---- */

static void
say(struct imsgbuf *b, uint16_t type, uint64_t id, int fd, const void *p,
    size_t n)
{
	if (imsg_compose(b, type, id, fd, p, n) == -1 ||
	    (imsg_flush(b) != 0 && errno != EPIPE))
		die("%s", msg_name(type));
}

static void
hear(struct imsgbuf *b, uint16_t type)
{
	struct pollfd p = {imsg_fd(b), POLLIN, 0};
	struct imsg m;

	for (;;) {
		while (imsg_get(b, &m))
			if (m.type == type)
				return;
		if (poll(&p, 1, ENDS_MS) != 1 || imsg_read(b) != 1)
			die("no %s", msg_name(type));
	}
}

/* cut: bytes less than the whole. */
static void
setup(size_t cut)
{
	struct xl_setup s = {0};
	struct wbuf w;

	s.layers = LAYER_NAMESPACES;
	wbuf_init(&w, 65536);
	xl_setup_put(&w, &s);
	say(init.b, XL_SETUP, 1, -1, w.p, w.len - cut);
	wbuf_free(&w);
}

static void
run_on(struct imsgbuf *b, size_t cut)
{
	static char prog[] = "/usr/bin/sleep", num[] = "50", root[] = "/";
	char *progs[] = {prog}, *argv[] = {prog, num};
	struct spawn s = {0};
	struct wbuf w;

	s.progs.v = progs;
	s.progs.n = 1;
	s.argv.v = argv;
	s.argv.n = 2;
	s.cwd = root;
	wbuf_init(&w, 65536);
	xl_run_put(&w, &s, 64, 0);
	say(b, XL_RUN, 1, -1, w.p, w.len - cut);
	wbuf_free(&w);
}

/* A supervisor, as far as HELLO. */
static struct imsgbuf *
fork_super(void)
{
	struct imsgbuf *b;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1 ||
	    (b = imsg_new(sv[0])) == NULL)
		die("socketpair");
	say(init.b, XL_FORK, 0, sv[1], NULL, 0);
	hear(b, XL_HELLO);
	return b;
}

static int
null_fd(void)
{
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

/* Led so far: h HELLO, s set up, r running, f with a supervisor, fr with one
 * that runs.  The supervisor, or NULL. */
static struct imsgbuf *
lead(const char *to)
{
	struct imsgbuf *super = NULL;

	init_start();
	for (; *to != '\0'; to++)
		switch (*to) {
		case 'h':
			hear(init.b, XL_HELLO);
			break;
		case 's':
			setup(0);
			hear(init.b, XL_READY);
			break;
		case 'f':
			super = fork_super();
			break;
		default:
			run_on(super != NULL ? super : init.b, 0);
			hear(super != NULL ? super : init.b, XL_STARTED);
		}
	return super;
}

/* Every type, on the launcher's socket or the supervisor's, with a payload of
 * zeros and the descriptor that it wants. */
static int
harmless(uint16_t type, int super)
{
	return type == XL_SIGNAL || type == XL_KILL || type == XL_STDIO ||
	       (type == XL_FORK && !super);
}

static void
every_type(const char *to)
{
	static const uint8_t zeros[256];
	static const uint16_t types[] = {
#define MSG(sym, num, min, max, fdk) sym,
#include "common/msg.def"
#undef MSG
	};
	const struct msg_row *row;
	struct imsgbuf *super;
	int fd, sv[2], status, ends;
	size_t i;

	for (i = 0; i < nitems(types); i++) {
		row = msg_row(types[i]);
		/* all of another wire is one and the same to it */
		if (row->min > sizeof(zeros) ||
		    (types[i] >> 8 != 6 && types[i] != ME_GO))
			continue;
		super = lead(to);
		fd = -1;
		if (row->fd == FDK_ANY)
			fd = null_fd();
		else if (row->fd == FDK_SOCKET &&
			 socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv) == 0) {
			fd = sv[0];
			close(sv[1]);
		}
		ends = !harmless(types[i], super != NULL);
		say(super != NULL ? super : init.b, types[i], 1, fd, zeros,
		    row->min);
		status = init_ended(ends ? ENDS_MS : GOES_ON_MS);
		CHECK(ends ? WIFEXITED(status) && WEXITSTATUS(status) >= 2
			   : status == -1,
		    "%s in state %s: %x", row->name, to, status);
		imsg_free(super);
		init_stop();
	}
}

/* What is wrong whatever it says. */
static void
odd(const char *to, const char *what, void (*strike)(struct imsgbuf *),
    int want)
{
	struct imsgbuf *super = lead(to);
	int status;

	strike(super != NULL ? super : init.b);
	status = init_ended(want == -1 ? GOES_ON_MS : ENDS_MS);
	CHECK(want == -1 ? status == -1
			 : WIFEXITED(status) && WEXITSTATUS(status) == want,
	    "%s in state %s: %x", what, to, status);
	imsg_free(super);
	init_stop();
}

static void
short_setup(struct imsgbuf *b)
{
	setup(1);
}

static void
again_setup(struct imsgbuf *b)
{
	setup(0);
}

static void
short_run(struct imsgbuf *b)
{
	run_on(b, 1);
}

static void
again_run(struct imsgbuf *b)
{
	run_on(b, 0);
}

static void
run_on_launcher(struct imsgbuf *b)
{
	run_on(init.b, 0);
}

static void
fourth_stdio(struct imsgbuf *b)
{
	say(b, XL_STDIO, 1, null_fd(), "\3", 1);
}

static void
twice_stdio(struct imsgbuf *b)
{
	say(b, XL_STDIO, 1, null_fd(), "\1", 1);
	say(b, XL_STDIO, 1, null_fd(), "\1", 1);
}

static void
no_stdio(struct imsgbuf *b)
{
	say(b, XL_STDIO, 1, -1, "\1", 1);
}

static void
file_for_socket(struct imsgbuf *b)
{
	say(b, XL_FORK, 0, null_fd(), NULL, 0);
}

static void
garbage(struct imsgbuf *b)
{
	if (write(imsg_fd(b), "garbage", 7) != 7)
		die("write");
}

static void
odd_signals(struct imsgbuf *b)
{
	say(b, XL_SIGNAL, 2, -1, "\11", 1); /* of another run */
	say(b, XL_SIGNAL, 1, -1, "\310", 1);
	say(b, XL_SIGNAL, 1, -1, "\0", 1);
}

static void
hang_up(struct imsgbuf *b)
{
	shutdown(imsg_fd(b), SHUT_RDWR);
}

static void
stop_all(struct imsgbuf *b)
{
	say(init.b, XL_KILL, 0, -1, NULL, 0);
}

void
test_launcher(void)
{
	/* before SETUP nothing starts: there are no layers yet */
	odd("h", "RUN", again_run, 2);
	odd("h", "a short SETUP", short_setup, 2);
	odd("hs", "SETUP again", again_setup, 2);
	odd("hsr", "SETUP again", again_setup, 2);
	odd("hs", "a short RUN", short_run, 2);
	odd("hsr", "RUN again", again_run, 2);
	odd("hsf", "RUN of its own", run_on_launcher, 2);
	odd("hsfr", "RUN of its own", run_on_launcher, 2);
	odd("hs", "a fourth descriptor", fourth_stdio, 2);
	odd("hs", "a descriptor twice", twice_stdio, 2);
	odd("hs", "no descriptor", no_stdio, 2);
	odd("hs", "a file for a socket", file_for_socket, 2);
	odd("h", "garbage", garbage, 2);
	odd("hsr", "garbage", garbage, 2);
	odd("hsr", "odd signals", odd_signals, -1);
	odd("hsr", "the end", hang_up, 0);
	/* a supervisor that is told nonsense takes the sandbox with it */
	odd("hsf", "a short RUN", short_run, 3);
	odd("hsfr", "RUN again", again_run, 3);
	odd("hsf", "a fourth descriptor", fourth_stdio, 3);
	odd("hsf", "garbage", garbage, 3);
	odd("hsfr", "odd signals", odd_signals, -1);
	odd("hsf", "its end", hang_up, -1);
	odd("hsf", "KILL for all", stop_all, 3);
	every_type("hs");
	every_type("hsf");
}

/* ---- a launcher that went wrong ---- */

#define LIES 17 /* of rogue.c: 0 is none, 16 its own end */

/* Its answer, whatever the launcher says: an end, and nothing made up. */
static void
lied(int how, const char *session)
{
	const char *argv[] = {"true", NULL, NULL};
	struct run r = {0};
	double t = now();
	char num[8];

	snprintf(num, sizeof(num), "%d", how);
	argv[1] = num;
	r.argv = argv;
	r.dir = work;
	r.s.max_output = 100;
	r.s.timeout_ms = 500;
	r.s.grace_ms = 100;
	strlcpy(r.s.session, session, sizeof(r.s.session));
	peer_run(&peer, &r);
	if (how == 0)
		CHECK(!r.failed && r.end.status == 0 &&
			  (r.end.flags & END_LOST) == 0,
		    "%d %x", r.failed, r.end.flags);
	else
		CHECK(r.failed || (r.end.flags & END_LOST) != 0 ||
			  how == 4 /* it had an end */,
		    "lie %d%s: status %x flags %x", how, session, r.end.status,
		    r.end.flags);
	/* TERM, KILL to the launcher, KILL to the sandbox */
	CHECK(now() - t < 6, "lie %d%s: %.1f s", how, session, now() - t);
	run_clear(&r);
}

void
test_rogue(void)
{
	struct peer_conf c = conf;
	char path[4096];
	ssize_t n;
	double t;
	int i;

	/* it lies beside us */
	if ((n = readlink("/proc/self/exe", path, sizeof(path) - 16)) == -1)
		die("/proc/self/exe");
	path[n] = '\0';
	memcpy(strrchr(path, '/') + 1, "rogue", 6);
	c.launcher = path;
	c.require = LAYER_NAMESPACES;
	peer_stop(&peer, SIGKILL);
	peer_start(&peer, &c);
	for (i = 0; i <= LIES; i++) {
		lied(i, "");
		lied(i, "0123456789abcdef0123456789abcdef");
	}
	t = now() + COMES_S;
	while (below(peer.pid, "rogue") != 0 && sandboxes() > 1 && now() < t)
		usleep(20000);
	CHECK(below(peer.pid, "rogue") == 0 || sandboxes() <= 1,
	    "%d sandboxes are left", sandboxes());
	peer_stop(&peer, SIGKILL);
	peer_start(&peer, &conf);
}
