/*
 * SPDX-License-Identifier: ISC
 *
 * The life of a stand-in, led by hand.  See puppet.h.
 */
#include "regress/privsep/puppet.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS 20000

void
puppet_new(struct puppet *p, struct stage *st, enum proc_kind kind,
    const char *standin)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	memset(p, 0, sizeof(*p));
	p->st = st;
	p->kind = kind;
	p->ctl = -1;
	stage_replace(st, proc_name(kind), standin);
	strlcpy(sa.sun_path, stage_path(st, "door"), sizeof(sa.sun_path));
	if ((p->door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) ==
		-1 ||
	    bind(p->door, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    chmod(sa.sun_path, 0777) == -1 || listen(p->door, 8) == -1)
		die("%s", sa.sun_path);
}

static void
drop(struct puppet *p)
{
	uint32_t i;

	imsg_free(p->up);
	imsg_free(p->mon);
	p->up = p->mon = NULL;
	if (p->ctl != -1)
		close(p->ctl);
	p->ctl = -1;
	for (i = 0; i < p->nroots; i++)
		free(p->roots[i].path);
	p->nroots = 0;
}

void
puppet_free(struct puppet *p)
{
	drop(p);
	if (p->door > 0)
		close(p->door);
	p->door = -1;
}

/* ---- its birth ---- */

static void
wait_for(int fd, const char *what)
{
	struct pollfd p = {fd, POLLIN, 0};

	if (poll(&p, 1, WAIT_MS) != 1)
		die("no %s", what);
}

static int
take_fd(int ctl)
{
	union {
		struct cmsghdr hdr;
		char buf[CMSG_SPACE(sizeof(int))];
	} cm = {0};
	char name[64];
	struct iovec iov = {name, sizeof(name)};
	struct msghdr h = {.msg_iov = &iov, .msg_iovlen = 1};
	const struct cmsghdr *c;
	int fd;

	h.msg_control = cm.buf;
	h.msg_controllen = sizeof(cm.buf);
	wait_for(ctl, "channel");
	if (recvmsg(ctl, &h, MSG_CMSG_CLOEXEC) <= 0 ||
	    (c = CMSG_FIRSTHDR(&h)) == NULL || c->cmsg_type != SCM_RIGHTS)
		die("the stand-in has no channel");
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* The next message on a wire, waited for. */
static void
next(struct imsgbuf *b, struct imsg *m, const char *what)
{
	while (!imsg_get(b, m)) {
		wait_for(imsg_fd(b), what);
		if (imsg_read(b) != 1)
			die("the end instead of %s", what);
	}
}

static void
take_conf(struct puppet *p, const struct imsg *m)
{
	struct proc_conf pc;
	struct rbuf r;
	uint32_t n;

	rbuf_init(&r, m->payload, m->len);
	if (proc_conf_get(&r, &pc) == -1)
		die("CONF");
	if (p->kind != PROC_PATHD)
		return;
	for (n = rget_u32(&r); n > 0 && p->nroots < nitems(p->roots); n--)
		if (boot_path_get(&r, &p->roots[p->nroots++]) == -1)
			die("CONF");
}

static void
be_ready(struct puppet *p)
{
	static const char text[] = "a puppet";
	struct imsg m;

	do {
		next(p->up, &m, "CONF");
		if (m.fd != -1)
			close(m.fd);
		if (m.type == PC_CONF)
			take_conf(p, &m);
	} while (m.type != PC_CONF);
	puppet_say(p, 1, PC_READY, 0, -1, text, strlen(text));
	do
		next(p->up, &m, "START");
	while (m.type != PC_START);
	if ((p->mon = imsg_new(m.fd)) == NULL)
		die("imsg_new");
}

/* ---- its work ---- */

static void
say_roots(struct puppet *p)
{
	struct root_ok ok = {0};
	struct wbuf w;
	uint32_t i;

	(void)puppet_hear(p, MP_ROOTS);
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	wput_u32(&w, p->nroots);
	for (i = 0; i < p->nroots; i++) {
		ok.id = p->roots[i].id;
		ok.path = p->roots[i].path;
		ok.dev = 1;
		ok.ino = 100 + i;
		root_ok_put(&w, &ok);
	}
	puppet_say(p, 0, MP_ROOTS_OK, 0, -1, w.p, w.len);
	wbuf_free(&w);
}

/* The monitor asks once which workspaces there are, before it is ready. */
static void
say_spaces(struct puppet *p)
{
	struct space_ans none = {0};
	const char *work = stage_path(p->st, "work");
	struct wbuf w;
	uint64_t id;
	uint32_t i;

	for (i = 0; i < p->nroots; i++)
		if (strcmp(p->roots[i].path, work) == 0)
			break;
	if (p->listed || i == p->nroots)
		return;
	p->listed = 1;
	id = puppet_hear(p, MP_SPACE)->id;
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	space_ans_put(&w, &none);
	puppet_say(p, 0, MP_SPACE_ANS, id, -1, w.p, w.len);
	wbuf_free(&w);
}

static void
say_hello(struct puppet *p)
{
	struct exec_hello h = {
	    LAYER_NAMESPACES | LAYER_SECCOMP | LAYER_LANDLOCK, 7, ""};
	struct wbuf w;

	wbuf_init(&w, 512);
	exec_hello_put(&w, &h);
	puppet_say(p, 0, ME_HELLO, 0, -1, w.p, w.len);
	wbuf_free(&w);
}

void
puppet_take(struct puppet *p)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	drop(p);
	wait_for(p->door, "stand-in");
	if ((p->ctl = accept4(p->door, NULL, NULL, SOCK_CLOEXEC)) == -1 ||
	    getsockopt(p->ctl, SOL_SOCKET, SO_PEERCRED, &cred, &len) == -1)
		die("stand-in");
	p->pid = cred.pid;
	if ((p->up = imsg_new(take_fd(p->ctl))) == NULL)
		die("imsg_new");
	be_ready(p);
	switch (p->kind) {
	case PROC_PATHD:
		say_roots(p);
		say_spaces(p);
		break;
	case PROC_EXECD:
		say_hello(p);
		break;
	default:
		(void)puppet_hear(p, LM_CONF);
		break;
	}
}

int
puppet_dead(struct puppet *p, int ms)
{
	struct pollfd pf = {p->ctl, POLLIN, 0};
	char byte;

	return poll(&pf, 1, ms) == 1 && read(p->ctl, &byte, 1) <= 0;
}

void
puppet_say(struct puppet *p, int up, uint16_t type, uint64_t id, int fd,
    const void *bytes, size_t n)
{
	struct imsgbuf *b = up ? p->up : p->mon;

	if (imsg_compose(b, type, id, fd, bytes, n) == -1)
		die("%s", msg_name(type));
	if (imsg_flush(b) != 0 && errno != EPIPE && errno != ECONNRESET)
		die("%s", msg_name(type));
}

struct imsg *
puppet_hear(struct puppet *p, uint16_t type)
{
	static struct imsg m;

	do {
		next(p->mon, &m, msg_name(type));
		if (m.fd != -1)
			close(m.fd);
		m.fd = -1;
	} while (m.type != type);
	return &m;
}
