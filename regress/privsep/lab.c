/*
 * SPDX-License-Identifier: ISC
 *
 * Starts the monitor as its parent does and plays its siblings.  See lab.h.
 */
#include "regress/privsep/lab.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/ops.h"
#include "regress/privsep/well.h"

#define WAIT_MS 10000

static const enum proc_kind siblings[] = {
    PROC_EXECD, PROC_PATHD, PROC_LISTENER};

/* ---- programs ---- */

static pid_t
start(const struct lab *l, const char *const *argv, int fd, int with_env)
{
	static char vars[][64] = {"ABX_T_A=" TOKEN_A, "ABX_T_B=" TOKEN_B,
	    "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1"};
	char *env[] = {vars[2], with_env ? vars[0] : NULL, vars[1], NULL};
	pid_t self = getpid(), pid = fork();
	const char *path = stage_path(&l->st, "bin/abx-monitor");

	if (pid == -1)
		die("fork");
	if (pid > 0)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == -1 || getppid() != self ||
	    dup2(fd, ABX_FD_PARENT) == -1)
		_exit(1);
	closefrom(ABX_FD_PARENT + 1);
	execve(path, (char *const *)(uintptr_t)argv, env);
	_exit(1);
}

static void
pair(int sv[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1)
		die("socketpair");
}

static struct imsgbuf *
buffer(int fd)
{
	struct imsgbuf *b = imsg_new(fd);

	if (b == NULL)
		die("imsg_new");
	return b;
}

static void
loader_says(struct lab *l, struct imsg *m)
{
	struct rbuf r;

	rbuf_init(&r, m->payload, m->len);
	if (m->type == PC_BOOT) {
		boot_clear(&l->boot);
		if (boot_get(&r, &l->boot) == -1 || rget_end(&r) == -1)
			die("BOOT");
	} else if (m->type == PC_POLICY) {
		l->policy = m->fd;
		m->fd = -1;
	} else if (m->type == PC_FINDING && m->payload[0] == 0)
		fprintf(stderr, "%.*s\n", (int)m->len - 1,
		    (const char *)m->payload + 1);
	if (m->fd != -1)
		close(m->fd);
}

static void
load(struct lab *l)
{
	const char *argv[] = {"abx-monitor", "-L", "-f",
	    stage_path(&l->st, "conf/server.json"), NULL};
	struct imsgbuf *b;
	struct imsg m;
	int sv[2];
	pid_t pid;

	pair(sv);
	pid = start(l, argv, sv[1], 1);
	close(sv[1]);
	b = buffer(sv[0]);
	while (imsg_read(b) == 1)
		while (imsg_get(b, &m))
			loader_says(l, &m);
	imsg_free(b);
	if (waitpid(pid, NULL, 0) != pid || l->policy == -1)
		die("the loader");
}

/* ---- what the monitor says to its parent ---- */

static void
take_broken(struct lab *l, const struct imsg *m)
{
	struct rbuf r;
	uint8_t kind;
	uint32_t gen;

	rbuf_init(&r, m->payload, m->len);
	kind = rget_u8(&r);
	gen = rget_u32(&r);
	if (rget_end(&r) == -1 || kind >= PROC_COUNT)
		die("BROKEN");
	if (l->side[kind].generation == gen)
		l->side[kind].broken++;
}

static void
monitor_says(struct lab *l, struct imsg *m)
{
	const char *why;
	struct rbuf r;

	if (msg_check(m, &why) == -1)
		die("%s from the monitor: %s", msg_name(m->type), why);
	switch (m->type) {
	case PC_LOG:
		snprintf(l->line, sizeof(l->line), "%.*s", (int)m->len - 1,
		    (const char *)m->payload + 1);
		if (strstr(l->line, "breaks the protocol") != NULL)
			l->lines++;
		else
			l->others++;
		if (getenv("ABX_VERBOSE") != NULL)
			fprintf(stderr, "    | %s\n", l->line);
		break;
	case PC_BROKEN:
		take_broken(l, m);
		break;
	case PC_MON_READY:
		l->reported = 1;
		break;
	case PC_RELOAD:
		rbuf_init(&r, m->payload, m->len);
		l->ticket = rget_u32(&r);
		l->asked = 1;
		break;
	default:
		break;
	}
}

/* 1 when something came. */
static int
take_up(struct lab *l, int ms)
{
	struct pollfd p = {imsg_fd(l->up), POLLIN, 0};
	struct imsg m;

	if (poll(&p, 1, ms) != 1)
		return 0;
	if (imsg_read(l->up) != 1)
		die("the monitor is gone; its last words: %s", l->line);
	while (imsg_get(l->up, &m)) {
		monitor_says(l, &m);
		if (m.fd != -1)
			close(m.fd);
	}
	return 1;
}

void
lab_listen(struct lab *l)
{
	while (take_up(l, 0))
		continue;
}

void
lab_asked(struct lab *l)
{
	while (!l->asked)
		if (!take_up(l, WAIT_MS))
			die("it asks for no reload");
	l->asked = 0;
}

int
lab_broken(struct lab *l, enum proc_kind k, int ms)
{
	double end = now() + ms / 1e3;

	lab_listen(l);
	while (l->side[k].broken == 0 && now() < end)
		(void)take_up(l, 10);
	return l->side[k].broken > 0;
}

static void
up_send(struct lab *l, uint16_t type, int fd, struct wbuf *w)
{
	if (w->err || imsg_compose(l->up, type, 0, fd, w->p, w->len) == -1 ||
	    imsg_flush(l->up) != 0)
		die("%s", msg_name(type));
	wbuf_free(w);
}

/* ---- start ---- */

/* The lines about workspaces: one of the last run, and a file to write. */
static void
send_sessions(struct lab *l)
{
	char text[256];
	struct wbuf w;
	uint32_t i;
	int fd, n;

	n = snprintf(text, sizeof(text),
	    "{\"name\":\"" LAB_WORKSPACE "\",\"principal\":\"alice\","
	    "\"session\":\"" LAB_SESSION "\",\"used\":%lld}\n",
	    (long long)time(NULL));
	for (i = 0; i < 2; i++) {
		fd = memfd_create("sessions", MFD_CLOEXEC);
		if (fd == -1 || (i == 0 && (write(fd, text, (size_t)n) != n ||
					       lseek(fd, 0, SEEK_SET) == -1)))
			die("sessions");
		wbuf_init(&w, 16);
		wput_u8(&w, PFD_SESSIONS);
		wput_u32(&w, i);
		up_send(l, PC_FD, fd, &w);
	}
}

static void
send_conf(struct lab *l)
{
	struct proc_conf pc = {.generation = 1, .ppid = getpid()};
	const struct passwd *pw;
	struct wbuf w;

	pc.root = geteuid() == 0;
	pc.uid = getuid();
	pc.gid = getgid();
	if (pc.root) {
		if ((pw = getpwnam("_abxm")) == NULL)
			die("there is no user _abxm (make users)");
		pc.uid = pw->pw_uid;
		pc.gid = pw->pw_gid;
	}
	send_sessions(l);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	proc_conf_put(&w, &pc);
	strlist_put(&w, &l->boot.audit);
	strlist_put(&w, &l->boot.protect);
	wput_u32(&w, getuid());
	wput_u32(&w, (uint32_t)-1);
	up_send(l, PC_CONF, -1, &w);
}

static void
wait_ready(struct lab *l)
{
	struct imsg m;
	int ready = 0;

	while (!ready) {
		if (imsg_read(l->up) != 1)
			die("the monitor does not start: %s", l->line);
		while (imsg_get(l->up, &m)) {
			ready |= m.type == PC_READY;
			monitor_says(l, &m);
		}
	}
}

static void
send_policy(struct lab *l, uint32_t ticket, uint8_t need)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u32(&w, ++l->epoch);
	wput_u32(&w, ticket);
	wput_u8(&w, need);
	up_send(l, PC_SNAPSHOT, dup(l->policy), &w);
}

void
lab_reload(struct lab *l, uint32_t ticket)
{
	send_policy(l, ticket, 0);
}

void
lab_refuse(struct lab *l, uint32_t epoch, uint32_t ticket)
{
	struct wbuf w;

	wbuf_init(&w, 64);
	wput_u32(&w, epoch);
	wput_u32(&w, ticket);
	wput_raw(&w, "no", 2);
	up_send(l, PC_RELOAD_FAIL, -1, &w);
}

static void
send_start(struct lab *l)
{
	struct wbuf w;
	int fd;

	l->epoch = 0;
	send_policy(l, 0, 3);
	fd = open(stage_path(&l->st, "log/audit"),
	    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd == -1)
		die("audit");
	wbuf_init(&w, 16);
	wput_u8(&w, 0);
	up_send(l, PC_AUDIT_FD, fd, &w);
}

/* abxctl's door. */
static void
send_control(struct lab *l)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct wbuf w;

	strlcpy(
	    sa.sun_path, stage_path(&l->st, "control"), sizeof(sa.sun_path));
	if (fd == -1 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    chmod(sa.sun_path, 0777) == -1 || listen(fd, 64) == -1)
		die("%s", sa.sun_path);
	wbuf_init(&w, 16);
	up_send(l, PC_CONTROL, fd, &w);
}

static void
find_root(struct lab *l)
{
	const char *w = stage_path(&l->st, "w");
	size_t i;

	for (i = 0; i < l->boot.nroots; i++)
		if (strcmp(l->boot.roots[i].path, w) == 0) {
			l->root_w = l->boot.roots[i].id;
			return;
		}
	die("w is no root");
}

void
lab_new(struct lab *l, const char *build, const char *members)
{
	const char *argv[] = {"abx-monitor", NULL};
	int sv[2];

	memset(l, 0, sizeof(*l));
	l->policy = -1;
	stage_new(&l->st, build, NULL);
	stage_put(&l->st, "w/f", "hello");
	stage_conf(&l->st, members);
	load(l);
	find_root(l);
	pair(sv);
	l->pid = start(l, argv, sv[1], 0);
	close(sv[1]);
	l->up = buffer(sv[0]);
	send_conf(l);
	wait_ready(l);
	send_start(l);
	send_control(l);
	lab_fresh(l);
	if (!l->reported)
		die("the monitor does not say that it is ready");
	lab_fresh(l);
	l->fds = proc_fds(l->pid);
}

void
lab_free(struct lab *l)
{
	size_t i;

	for (i = 0; i < nitems(siblings); i++)
		imsg_free(l->side[siblings[i]].im);
	imsg_free(l->up);
	if (l->pid > 0) {
		(void)kill(l->pid, SIGKILL);
		(void)waitpid(l->pid, NULL, 0);
	}
	boot_clear(&l->boot);
	if (l->policy != -1)
		close(l->policy);
	stage_free(&l->st);
}

/* ---- siblings ---- */

static void
child_event(
    struct lab *l, uint16_t type, enum proc_kind k, uint32_t gen, int fd)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u8(&w, (uint8_t)k);
	wput_u32(&w, gen);
	if (type == PC_CHILD_UP)
		wput_u32(&w, 1);
	up_send(l, type, fd, &w);
}

static void
say_roots(struct lab *l)
{
	struct root_ok ok = {0};
	struct wbuf w;
	size_t i;

	(void)lab_next(l, PROC_PATHD, MP_ROOTS);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	wput_u32(&w, (uint32_t)l->boot.nroots);
	for (i = 0; i < l->boot.nroots; i++) {
		ok.id = l->boot.roots[i].id;
		ok.path = l->boot.roots[i].path;
		ok.dev = 1;
		ok.ino = 100 + i;
		root_ok_put(&w, &ok);
	}
	lab_send(l, PROC_PATHD, MP_ROOTS_OK, 0, -1, &w);
}

static void
say_hello(struct lab *l)
{
	struct exec_hello h = {
	    LAYER_NAMESPACES | LAYER_SECCOMP | LAYER_LANDLOCK, 7, ""};
	struct wbuf w;

	wbuf_init(&w, 512);
	exec_hello_put(&w, &h);
	lab_send(l, PROC_EXECD, ME_HELLO, 0, -1, &w);
}

/* Once, when the roots and the sandbox are known. */
static void
say_spaces(struct lab *l)
{
	struct space_ans a = {0};
	struct wbuf w;
	uint64_t id;

	if (l->listed || l->boot.workspace_root[0] == '\0')
		return;
	l->listed = 1;
	id = lab_next(l, PROC_PATHD, MP_SPACE)->id;
	if (space_ans_add(&a, LAB_WORKSPACE, 0, 0) == -1)
		die("space_ans");
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	space_ans_put(&w, &a);
	space_ans_clear(&a);
	lab_send(l, PROC_PATHD, MP_SPACE_ANS, id, -1, &w);
}

void
lab_renew(struct lab *l, enum proc_kind k)
{
	struct side *s = &l->side[k];
	int sv[2];

	if (s->im != NULL) {
		imsg_free(s->im);
		child_event(l, PC_CHILD_GONE, k, s->generation, -1);
	}
	pair(sv);
	s->im = buffer(sv[0]);
	s->broken = 0;
	child_event(l, PC_CHILD_UP, k, ++s->generation, sv[1]);
	switch (k) {
	case PROC_PATHD:
		say_roots(l);
		break;
	case PROC_EXECD:
		well_reset();
		say_hello(l);
		break;
	default:
		(void)lab_next(l, PROC_LISTENER, LM_CONF);
		l->lid = 0;
		break;
	}
}

void
lab_fresh(struct lab *l)
{
	size_t i;

	for (i = nitems(siblings); i-- > 0;)
		if (l->side[siblings[i]].im != NULL) {
			imsg_free(l->side[siblings[i]].im);
			l->side[siblings[i]].im = NULL;
			child_event(l, PC_CHILD_GONE, siblings[i],
			    l->side[siblings[i]].generation, -1);
		}
	for (i = 0; i < nitems(siblings); i++)
		lab_renew(l, siblings[i]);
	say_spaces(l);
	if (lab_sync(l) == -1)
		die("a fresh listener is not heard: %s", l->line);
	l->lines = l->others = 0;
	l->line[0] = '\0';
}

/* ---- messages ---- */

void
lab_bytes(struct lab *l, enum proc_kind k, uint16_t type, uint64_t id, int fd,
    const void *bytes, size_t n)
{
	struct imsgbuf *im = l->side[k].im;
	struct pollfd p = {imsg_fd(im), POLLOUT, 0};
	int rc;

	if (imsg_compose(im, type, id, fd, bytes, n) == -1)
		die("%s", msg_name(type));
	while ((rc = imsg_flush(im)) == 1)
		if (poll(&p, 1, WAIT_MS) != 1)
			die("the monitor reads nothing from %s", proc_name(k));
	/* one that is broken may not be heard any more */
	if (rc == -1 && errno != EPIPE && errno != ECONNRESET)
		die("%s", msg_name(type));
}

void
lab_send(struct lab *l, enum proc_kind k, uint16_t type, uint64_t id, int fd,
    struct wbuf *w)
{
	if (w != NULL && w->err)
		die("%s does not fit", msg_name(type));
	lab_bytes(l, k, type, id, fd, w == NULL ? NULL : w->p,
	    w == NULL ? 0 : w->len);
	if (w != NULL)
		wbuf_free(w);
}

int
lab_raw(struct lab *l, enum proc_kind k, const void *p, size_t n,
    const int *fds, size_t nfds)
{
	char control[CMSG_SPACE(sizeof(int) * 253)] = {0};
	struct iovec iov = {(void *)(uintptr_t)p, n};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (nfds > 0) {
		h.msg_control = control;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	return sendmsg(imsg_fd(l->side[k].im), &h, MSG_NOSIGNAL) == -1 ? -1 : 0;
}

/* The next message to a sibling, waited for so long; NULL when none came. */
static struct imsg *
take(struct lab *l, enum proc_kind k, int ms)
{
	struct side *s = &l->side[k];
	struct pollfd p = {imsg_fd(s->im), POLLIN, 0};
	struct imsg m;
	const char *why;

	while (!imsg_get(s->im, &m)) {
		if (poll(&p, 1, ms) != 1 || imsg_read(s->im) != 1)
			return NULL;
	}
	if ((why = well_formed(k, &m)) != NULL)
		die("the monitor says to %s what would break it: %s: %s",
		    proc_name(k), msg_name(m.type), why);
	memcpy(s->buf, m.payload, m.len);
	s->held = m;
	s->held.payload = s->buf;
	return &s->held;
}

struct imsg *
lab_next(struct lab *l, enum proc_kind k, uint16_t type)
{
	struct imsg *m = take(l, k, WAIT_MS);

	lab_listen(l);
	if (m == NULL)
		die("%s does not get %s; the monitor said: %s", proc_name(k),
		    msg_name(type), l->line);
	if (type != 0 && m->type != type)
		die("%s gets %s instead of %s; %.200s", proc_name(k),
		    msg_name(m->type), msg_name(type),
		    m->len > 50 ? (const char *)m->payload + 50 : "");
	return m;
}

void
lab_drain(struct lab *l, enum proc_kind k)
{
	struct imsg *m;

	if (l->side[k].im == NULL)
		return;
	while ((m = take(l, k, 0)) != NULL)
		if (m->fd != -1)
			close(m->fd);
}

/* 0, or -1 when the monitor does not talk to our listener any more. */
static int
health(struct lab *l)
{
	uint64_t id = lab_ask(l, OP_core_health, NULL);
	struct fin fin = {0};
	struct imsg *m;
	struct wbuf w;

	/* answers to others may come first */
	do {
		if ((m = take(l, PROC_LISTENER, WAIT_MS)) == NULL)
			return -1;
		if (m->fd != -1)
			close(m->fd);
	} while (m->type != LM_ANS || m->id != id);
	wbuf_init(&w, 64);
	fin_put(&w, &fin);
	lab_send(l, PROC_LISTENER, LM_FIN, id, -1, &w);
	return 0;
}

/* The answer to the second was made in a later turn of the monitor's loop than
 * the first, and in that one it saw whatever had been sent before. */
int
lab_sync(struct lab *l)
{
	int rc = health(l) == 0 ? health(l) : -1;

	lab_listen(l);
	return rc;
}
