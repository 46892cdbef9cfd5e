/*
 * SPDX-License-Identifier: ISC
 *
 * A parent and a monitor for one execd.  See execd_peer.h.
 */
#include "regress/privsep/execd_peer.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>

#include "common/frame.h"
#include "common/log.h"
#include "common/msg.h"

#define CAPS_V3 0x20080522
#define WAIT_MS 30000

void
die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, " (%s)\n", strerror(errno));
	exit(1);
}

static double
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

/* ---- the child on its way to execd ---- */

static void
put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd == -1 || write(fd, text, strlen(text)) == -1)
		die("%s", path);
	close(fd);
}

/* As the parent does for a user start: identity maps, ambient capabilities
 * that survive exec. */
static void
user_namespace(uid_t uid, gid_t gid)
{
	struct {
		uint32_t version;
		int pid;
	} head = {CAPS_V3, 0};
	uint32_t d[6];
	char line[64];
	int i;

	put_file("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
	put_file("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
	put_file("/proc/self/gid_map", line);
	/* effective, permitted, inheritable: only what execd needs */
	memset(d, 0, sizeof(d));
	d[0] = d[1] = d[2] = 1U << CAP_SETPCAP | 1U << CAP_SYS_ADMIN;
	if (syscall(SYS_capset, &head, d) == -1)
		die("capset");
	for (i = 0; i < 64; i++)
		(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0);
}

static void __attribute__((noreturn))
child(const struct peer_conf *c, int fd, int root)
{
	char path[4096];
	char *argv[] = {(char[]){"abx-execd"}, NULL};
	char *envp[] = {NULL};

	if (!root)
		user_namespace(c->uid, c->gid);
	if (dup2(fd, ABX_FD_PARENT) == -1 ||
	    syscall(SYS_close_range, ABX_FD_PARENT + 1, ~0U, 0) == -1)
		die("fd 3");
	snprintf(path, sizeof(path), "%s/abx-execd", c->build);
	execve(path, argv, envp);
	die("%s", path);
}

/* ---- messages ---- */

static void
flush(struct imsgbuf *b)
{
	if (imsg_flush(b) != 0)
		die("flush");
}

static void
send_buf(struct imsgbuf *b, uint16_t type, uint64_t id, int fd, struct wbuf *w)
{
	if (w->err || imsg_compose(b, type, id, fd, w->p, w->len) == -1)
		die("compose %s", msg_name(type));
	wbuf_free(w);
}

void
peer_send(
    struct peer *p, uint16_t type, uint64_t id, int fd, const void *b, size_t n)
{
	if (imsg_compose(p->mon, type, id, fd, b, n) == -1)
		die("compose %s", msg_name(type));
	flush(p->mon);
}

static int
next(struct imsgbuf *b, struct imsg *m, int ms)
{
	struct pollfd pfd = {imsg_fd(b), POLLIN, 0};

	while (!imsg_get(b, m)) {
		if (poll(&pfd, 1, ms) != 1)
			return 0;
		if (imsg_read(b) != 1)
			die("execd is gone");
	}
	return 1;
}

int
peer_next(struct peer *p, struct imsg *m, int ms)
{
	return next(p->mon, m, ms);
}

/* Print what execd logs; returns at READY. */
static void
wait_ready(struct peer *p)
{
	struct imsg m;

	for (;;) {
		if (!next(p->parent, &m, WAIT_MS))
			die("no READY");
		if (m.type == PC_READY) {
			snprintf(p->ready, sizeof(p->ready), "%.*s", (int)m.len,
			    (const char *)m.payload);
			return;
		}
		if (m.type == PC_LOG)
			fprintf(stderr, "execd: %.*s\n", (int)m.len - 1,
			    (const char *)m.payload + 1);
		else if (m.type == PC_FATAL)
			die("execd: %.*s", (int)m.len, (const char *)m.payload);
	}
}

static void
put_conf(struct wbuf *w, const struct peer_conf *c, int root)
{
	struct proc_conf pc = {0};
	static const char *const names[] = {".git", ".claude", ".codex"};
	struct strlist none = {NULL, 0};
	char path[4096];
	size_t i;

	pc.root = (uint8_t)root;
	pc.uid = c->uid;
	pc.gid = c->gid;
	pc.generation = 1;
	proc_conf_put(w, &pc);
	wput_u32(w, (uint32_t)c->nbinds);
	for (i = 0; i < c->nbinds; i++)
		boot_path_put(w, &c->binds[i]);
	wput_u64(w, c->tmp_size);
	wput_u32(w, c->require);
	snprintf(path, sizeof(path), "%s/abx-launch", c->build);
	wput_str(w, c->launcher != NULL ? c->launcher : path);
	for (i = 0; c->protect != NULL && c->protect[i] != NULL; i++)
		if (strlist_add(&none, c->protect[i], strlen(c->protect[i])) ==
		    -1)
			die("strlist_add");
	strlist_put(w, &none);
	strlist_clear(&none);
	for (i = 0; i < nitems(names); i++)
		if (strlist_add(&none, names[i], strlen(names[i])) == -1)
			die("strlist_add");
	strlist_put(w, &none);
	strlist_clear(&none);
	wput_u32(w, 4096);
	wput_u64(w, c->idle_ms != 0 ? c->idle_ms : ABX_SESSION_IDLE_MS);
	wput_u32(w, 0);
	wput_u8(w, 0);
	wput_u8(w, 1);
}

static void
send_group(struct peer *p, const char *dir)
{
	char path[4096], pid[16];
	struct wbuf w;
	int fd;

	snprintf(path, sizeof(path), "%s/self/cgroup.procs", dir);
	snprintf(pid, sizeof(pid), "%d", p->pid);
	put_file(path, pid);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		die("%s", dir);
	wbuf_init(&w, 16);
	wput_u8(&w, PFD_CGROUP);
	wput_u32(&w, 0);
	send_buf(p->parent, PC_FD, 0, fd, &w);
}

static void
wait_hello(struct peer *p)
{
	struct imsg m;
	struct rbuf r;

	if (!next(p->mon, &m, WAIT_MS) || m.type != ME_HELLO)
		die("no HELLO");
	rbuf_init(&r, m.payload, m.len);
	if (exec_hello_get(&r, &p->hello) == -1 || rget_end(&r) == -1)
		die("bad HELLO");
}

void
peer_start(struct peer *p, const struct peer_conf *c)
{
	int flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | SIGCHLD;
	int up[2], mon[2], root = getuid() == 0;
	struct wbuf w;

	memset(p, 0, sizeof(*p));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, up) == -1 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, mon) == -1)
		die("socketpair");
	if (!root)
		flags |= CLONE_NEWUSER;
	p->pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	if (p->pid == -1)
		die("clone");
	if (p->pid == 0)
		child(c, up[1], root);
	close(up[1]);
	if ((p->parent = imsg_new(up[0])) == NULL ||
	    (p->mon = imsg_new(mon[0])) == NULL)
		die("imsg_new");
	if (c->group != NULL)
		send_group(p, c->group);
	wbuf_init(&w, 65536);
	put_conf(&w, c, root);
	send_buf(p->parent, PC_CONF, 0, -1, &w);
	flush(p->parent);
	wait_ready(p);
	wbuf_init(&w, 16);
	send_buf(p->parent, PC_START, 0, mon[1], &w);
	flush(p->parent);
	wait_hello(p);
	p->next_id = 1;
}

int
peer_stop(struct peer *p, int sig)
{
	struct pollfd pfd;
	struct imsg m;
	int status;

	if (sig != 0)
		kill(p->pid, sig);
	if (waitpid(p->pid, &status, 0) == -1)
		die("waitpid");
	pfd.fd = imsg_fd(p->parent);
	pfd.events = POLLIN;
	while (poll(&pfd, 1, 0) == 1 && imsg_read(p->parent) == 1)
		while (imsg_get(p->parent, &m))
			if (m.type == PC_LOG)
				fprintf(stderr, "execd: %.*s\n", (int)m.len - 1,
				    (const char *)m.payload + 1);
	imsg_free(p->parent);
	imsg_free(p->mon);
	return status;
}

/* ---- runs ---- */

static void
words(struct strlist *l, const char *const *v)
{
	for (; *v != NULL; v++)
		if (strlist_add(l, *v, strlen(*v)) == -1)
			die("strlist_add");
}

static void
put_bind(struct peer *p, const struct run *r)
{
	struct spawn_bind sb = {0};
	char real[4096];
	struct wbuf w;
	int fd;

	if (realpath(r->dir, real) == NULL ||
	    (fd = open(r->dir, O_PATH | O_DIRECTORY | O_CLOEXEC)) == -1)
		die("%s", r->dir);
	sb.rw = !r->ro;
	sb.inner = strdup(r->inner != NULL ? r->inner : real);
	wbuf_init(&w, 8192);
	spawn_bind_put(&w, &sb);
	send_buf(p->mon, ME_SPAWN_BIND, r->id, fd, &w);
	spawn_bind_clear(&sb);
}

static void
put_covers(struct peer *p, const struct run *r)
{
	struct wbuf w;

	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	covers_put(&w, r->covers);
	send_buf(p->mon, ME_SPAWN_COVER, r->id, -1, &w);
}

static int
sealed(const struct wbuf *w)
{
	int fd = memfd_create("spawn", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd == -1 || write(fd, w->p, w->len) != (ssize_t)w->len ||
	    fcntl(fd, F_ADD_SEALS,
		F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == -1)
		die("memfd");
	return fd;
}

static void
put_spawn(struct peer *p, struct run *r)
{
	static const char *const path[] = {"PATH=/usr/bin:/bin", NULL};
	char prog[4096], real[4096];
	struct spawn s = r->s;
	struct wbuf w;
	int fd = -1;

	memset(&s.progs, 0, sizeof(s.progs));
	memset(&s.argv, 0, sizeof(s.argv));
	memset(&s.env, 0, sizeof(s.env));
	snprintf(prog, sizeof(prog), "/usr/bin/%s", r->argv[0]);
	if (r->prog != NULL)
		snprintf(prog, sizeof(prog), "%s", r->prog);
	if (strlist_add(&s.progs, prog, strlen(prog)) == -1)
		die("strlist_add");
	words(&s.argv, r->argv);
	words(&s.env, r->env != NULL ? r->env : path);
	if (r->dir != NULL && realpath(r->dir, real) == NULL)
		die("%s", r->dir);
	if (r->dir != NULL && r->below != NULL) {
		strlcat(real, "/", sizeof(real));
		strlcat(real, r->below, sizeof(real));
	}
	s.cwd = strdup(r->dir == NULL ? "/" : r->inner ? r->inner : real);
	if (r->input != NULL)
		s.flags |= SPAWN_STDIN;
	wbuf_init(&w, 16 * 1024 * 1024);
	spawn_put(&w, &s);
	spawn_clear(&s);
	if (w.len > 16 * 1024) {
		fd = sealed(&w);
		wbuf_reset(&w);
		wput_raw(&w, (const uint8_t[16]){0}, 16);
	}
	send_buf(p->mon, ME_SPAWN, r->id, fd, &w);
}

static void
give_input(int fd, const char *text)
{
	size_t n = strlen(text);

	/* a test's input fits the pipe */
	if (write(fd, text, n) != (ssize_t)n)
		die("stdin");
	close(fd);
}

void
peer_keep_end(struct peer *p, const struct imsg *m)
{
	struct rbuf b;

	if (p->nends == nitems(p->ends))
		die("too many ends");
	rbuf_init(&b, m->payload, m->len);
	if (run_end_get(&b, &p->ends[p->nends].end) == -1 || rget_end(&b) == -1)
		die("bad END");
	p->ends[p->nends++].id = m->id;
}

int
peer_spawn(struct peer *p, struct run *r)
{
	int want = r->input != NULL ? 3 : 2;
	struct imsg m;
	struct rbuf b;

	r->id = p->next_id++;
	r->frames_fd = -1;
	r->us = now_us();
	if (r->dir != NULL)
		put_bind(p, r);
	if (r->covers != NULL)
		put_covers(p, r);
	put_spawn(p, r);
	flush(p->mon);
	while (want > 0) {
		if (!peer_next(p, &m, WAIT_MS))
			die("no answer to SPAWN");
		if (m.type == ME_END && m.id != r->id) {
			peer_keep_end(p, &m);
			continue;
		}
		if (m.id != r->id)
			die("answer for %llu", (unsigned long long)m.id);
		rbuf_init(&b, m.payload, m.len);
		if (m.type == ME_FAILED) {
			r->failed = 1;
			if (spawn_failed_get(&b, &r->fail) == -1)
				die("bad FAILED");
			return -1;
		}
		if (m.type == ME_HELD) {
			peer_send(p, r->held(r->id) ? ME_GO : ME_CANCEL, r->id,
			    -1, NULL, 0);
			continue;
		}
		if (m.type == ME_RUN)
			r->frames_fd = m.fd;
		else if (m.type == ME_IN)
			give_input(m.fd, r->input);
		else if (m.type != ME_STARTED)
			die("unexpected %s", msg_name(m.type));
		want--;
	}
	return 0;
}

static void
append(char **buf, size_t *len, const uint8_t *p, size_t n)
{
	if ((*buf = realloc(*buf, *len + n + 1)) == NULL)
		die("realloc");
	if (n > 0)
		memcpy(*buf + *len, p, n);
	*len += n;
	(*buf)[*len] = '\0';
}

static void
on_frame(struct run *r, uint8_t kind, const uint8_t *p, size_t n, int *last)
{
	struct rbuf b;
	int i;

	if (*last)
		die("a frame after the exit frame");
	rbuf_init(&b, p, n);
	switch (kind) {
	case FR_OUT:
		append(&r->out, &r->nout, p, n);
		break;
	case FR_ERR:
		append(&r->err, &r->nerr, p, n);
		break;
	case FR_GAP:
		for (i = 8; i > 0; i--)
			r->gap += (uint64_t)p[i] << (8 * (i - 1));
		break;
	case FR_EXIT:
		if (run_end_get(&b, &r->end) == -1 || rget_end(&b) == -1)
			die("bad exit frame");
		*last = 1;
		break;
	default:
		die("frame kind %u", kind);
	}
}

void
run_frames(struct run *r)
{
	static struct frame_dec dec;
	static uint8_t buf[65536];
	const uint8_t *at, *payload;
	size_t left, len;
	int last = 0, rc;
	uint8_t kind;
	ssize_t n;

	memset(&dec, 0, sizeof(dec));
	append(&r->out, &r->nout, NULL, 0);
	append(&r->err, &r->nerr, NULL, 0);
	while ((n = read(r->frames_fd, buf, sizeof(buf))) > 0) {
		at = buf;
		left = (size_t)n;
		while ((rc = frame_feed(
			    &dec, &at, &left, &kind, &payload, &len)) == 1)
			on_frame(r, kind, payload, len, &last);
		if (rc == -1)
			die("bad frame");
		if (last)
			r->us = now_us() - r->us;
	}
	close(r->frames_fd);
	if (!last)
		die("no exit frame");
}

uint64_t
peer_end(struct peer *p, struct run_end *e)
{
	struct imsg m;

	if (p->nends == 0) {
		if (!peer_next(p, &m, WAIT_MS) || m.type != ME_END)
			die("no END");
		peer_keep_end(p, &m);
	}
	*e = p->ends[0].end;
	m.id = p->ends[0].id;
	p->nends--;
	memmove(p->ends, p->ends + 1, p->nends * sizeof(p->ends[0]));
	return m.id;
}

void
peer_finish(struct peer *p, struct run *r)
{
	run_frames(r);
	if (peer_end(p, &r->told) != r->id)
		die("END of another");
}

void
run_clear(struct run *r)
{
	free(r->out);
	free(r->err);
	r->out = r->err = NULL;
	r->nout = r->nerr = 0;
	r->failed = 0;
	r->gap = 0;
	memset(&r->end, 0, sizeof(r->end));
	memset(&r->fail, 0, sizeof(r->fail));
}

void
peer_run(struct peer *p, struct run *r)
{
	run_clear(r);
	if (peer_spawn(p, r) == 0)
		peer_finish(p, r);
}
