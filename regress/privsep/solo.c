/*
 * SPDX-License-Identifier: ISC
 *
 * Starts one program as abxd does and plays abxd and the monitor for it.  See
 * solo.h.
 */
#include "regress/privsep/solo.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "monitor/parent.h"

#define WAIT_MS 20000

static void
up_send(struct solo *s, uint16_t type, int fd, struct wbuf *w)
{
	if (w->err || imsg_compose(s->up, type, 0, fd, w->p, w->len) == -1 ||
	    imsg_flush(s->up) != 0)
		die("%s", msg_name(type));
	wbuf_free(w);
}

static void
send_fd(struct solo *s, uint8_t kind, int fd)
{
	struct wbuf w;

	wbuf_init(&w, 16);
	wput_u8(&w, kind);
	wput_u32(&w, 0);
	up_send(s, PC_FD, fd, &w);
}

/* ---- what each is told at its start ---- */

static void
head(const struct solo *s, struct wbuf *w)
{
	struct proc_conf pc = {.generation = 1};
	const struct passwd *pw;

	pc.root = geteuid() == 0;
	pc.uid = s->st->uid;
	pc.gid = s->st->gid;
	pc.ppid = s->kind == PROC_EXECD ? 0 : getpid();
	if (pc.root && s->kind == PROC_LISTENER) {
		if ((pw = getpwnam("_abxl")) == NULL)
			die("there is no user _abxl (make users)");
		pc.uid = pw->pw_uid;
		pc.gid = pw->pw_gid;
	}
	wbuf_init(w, IMSG_MAX_PAYLOAD);
	proc_conf_put(w, &pc);
}

static void
put_path(struct wbuf *w, uint32_t id, const char *path)
{
	char copy[512];
	struct boot_path bp = {.id = id, .path = copy, .rw = 1};

	strlcpy(copy, path, sizeof(copy));
	boot_path_put(w, &bp);
}

static void
conf_listener(struct solo *s)
{
	struct sockaddr_in sa = {.sin_family = AF_INET};
	socklen_t len = sizeof(sa);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if ((s->door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) == -1 ||
	    bind(s->door, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    listen(s->door, 16) == -1 ||
	    getsockname(s->door, (struct sockaddr *)&sa, &len) == -1)
		die("listen");
	s->st->port = ntohs(sa.sin_port);
	send_fd(s, PFD_LISTEN, dup(s->door));
}

static void
conf_pathd(struct solo *s, struct wbuf *w)
{
	int fd = open(stage_path(s->st, "log/journal"),
	    O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	if (fd == -1)
		die("journal");
	send_fd(s, PFD_JOURNAL, fd);
	wput_u32(w, 1);
	put_path(w, 0, stage_path(s->st, "w"));
	wput_u32(w, 027);
}

static void
conf_execd(struct solo *s, struct wbuf *w)
{
	struct strlist none = {NULL, 0};

	wput_u32(w, 1);
	put_path(w, 0, stage_path(s->st, "w"));
	wput_u64(w, 1024 * 1024);
	wput_u32(w, 0);
	wput_str(w, stage_path(s->st, "bin/abx-launch"));
	strlist_put(w, &none);
	strlist_put(w, &none);
	wput_u32(w, 4096);
	wput_u64(w, ABX_SESSION_IDLE_MS);
	wput_u32(w, 0);
	wput_u8(w, 0);
	wput_u8(w, 1);
}

static void
configure(struct solo *s)
{
	struct wbuf w;

	head(s, &w);
	if (s->kind == PROC_LISTENER)
		conf_listener(s);
	else if (s->kind == PROC_PATHD)
		conf_pathd(s, &w);
	else
		conf_execd(s, &w);
	up_send(s, PC_CONF, -1, &w);
}

static void
tell_listener(struct solo *s)
{
	static char host[] = "localhost";
	char *hosts[] = {host};
	struct lconf c = {.open = 1};
	struct wbuf w;

	c.header_timeout_ms = c.head_deadline_ms = c.idle_timeout_ms = 10000;
	c.max_pre_auth = c.max_connections = 16;
	c.max_header_bytes = 16384;
	c.max_request_bytes = 65536;
	c.min_rate = 1024;
	c.allowed_hosts.v = hosts;
	c.allowed_hosts.n = 1;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	lconf_put(&w, &c);
	solo_say(s, LM_CONF, 0, -1, &w);
}

/* ---- life ---- */

/* Takes what it says to its parent: 1 when it is ready, -1 at the end. */
static int
take_up(struct solo *s, int ms)
{
	struct pollfd p = {imsg_fd(s->up), POLLIN, 0};
	struct imsg m;
	int ready = 0;

	if (poll(&p, 1, ms) != 1)
		return 0;
	if (imsg_read(s->up) != 1)
		return -1;
	while (imsg_get(s->up, &m)) {
		ready |= m.type == PC_READY;
		if (m.fd != -1)
			close(m.fd);
		if (m.type != PC_LOG || m.payload[0] > 1)
			continue;
		s->logged++;
		snprintf(s->line, sizeof(s->line), "%.*s", (int)m.len - 1,
		    (const char *)m.payload + 1);
	}
	return ready;
}

static void
spawn(struct solo *s, int fd)
{
	static char libdir[128],
	    vars[64] = "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1";
	struct parent p = {.root = geteuid() == 0, .libdir = libdir};
	char name[32];
	char *argv[] = {name, NULL}, *envp[] = {vars, NULL};

	strlcpy(libdir, stage_path(s->st, "bin"), sizeof(libdir));
	strlcpy(name, proc_name(s->kind), sizeof(name));
	if ((s->pid = spawn_child(&p, s->kind, fd, argv, envp)) == -1)
		die("%s", name);
}

void
solo_start(struct solo *s, struct stage *st, enum proc_kind kind)
{
	int up[2], mon[2], n;
	struct wbuf w;

	solo_stop(s);
	memset(s, 0, sizeof(*s));
	s->st = st;
	s->kind = kind;
	s->door = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, up) == -1 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, mon) == -1)
		die("socketpair");
	spawn(s, up[1]);
	close(up[1]);
	if ((s->up = imsg_new(up[0])) == NULL ||
	    (s->mon = imsg_new(mon[0])) == NULL)
		die("imsg_new");
	configure(s);
	while ((n = take_up(s, WAIT_MS)) != 1)
		if (n == -1)
			die("%s does not start: %s", proc_name(kind), s->line);
	wbuf_init(&w, 16);
	up_send(s, PC_START, mon[1], &w);
	if (kind == PROC_LISTENER)
		tell_listener(s);
	else if (kind == PROC_EXECD && solo_hear(s, ME_HELLO) == NULL)
		die("no HELLO: %s", s->line);
}

void
solo_stop(struct solo *s)
{
	if (s->up == NULL)
		return;
	if (s->pid > 0) {
		(void)kill(s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	s->pid = -1;
	imsg_free(s->up);
	imsg_free(s->mon);
	s->up = s->mon = NULL;
	if (s->door != -1)
		close(s->door);
	s->door = -1;
}

int
solo_ended(struct solo *s, int ms, int *status)
{
	double end = now() + ms / 1e3;
	int i;

	do {
		if (take_up(s, 1) != -1 &&
		    waitpid(s->pid, status, WNOHANG) == 0)
			continue;
		if (waitpid(s->pid, status, 0) == s->pid || errno == ECHILD)
			s->pid = -1;
		/* its last words */
		for (i = 0; i < 20 && take_up(s, 50) != -1; i++)
			continue;
		return 1;
	} while (now() < end);
	return 0;
}

/* ---- messages ---- */

void
solo_bytes(
    struct solo *s, uint16_t type, uint64_t id, int fd, const void *p, size_t n)
{
	if (imsg_compose(s->mon, type, id, fd, p, n) == -1 ||
	    (imsg_flush(s->mon) != 0 && errno != EPIPE && errno != ECONNRESET))
		die("%s", msg_name(type));
}

void
solo_say(struct solo *s, uint16_t type, uint64_t id, int fd, struct wbuf *w)
{
	if (w->err)
		die("%s does not fit", msg_name(type));
	solo_bytes(s, type, id, fd, w->p, w->len);
	wbuf_free(w);
}

struct imsg *
solo_hear(struct solo *s, uint16_t type)
{
	static struct imsg m;
	static uint8_t copy[IMSG_MAX_PAYLOAD];
	struct pollfd p = {imsg_fd(s->mon), POLLIN, 0};

	for (;;) {
		while (!imsg_get(s->mon, &m))
			if (poll(&p, 1, WAIT_MS) != 1 || imsg_read(s->mon) != 1)
				return NULL;
		if (m.type == type)
			break;
		if (m.fd != -1)
			close(m.fd);
	}
	memcpy(copy, m.payload, m.len);
	m.payload = copy;
	return &m;
}
