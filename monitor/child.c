/*
 * SPDX-License-Identifier: ISC
 *
 * One child: its start, its configuration, its log lines, its connection to
 * the monitor.  When children are started and what their death means is
 * decided in parent.c and reload.c.
 */
#include <sys/socket.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/proc.h"
#include "monitor/parent.h"

#define LOG_BURST 200 /* lines of a child at once */
#define LOG_RATE 20   /* and in each second after */

static struct parent *self; /* for callbacks, which know only the child */

/* ---- telling ---- */

int
child_send(struct child *c, uint16_t type, int fd, uint8_t kind, uint32_t gen,
    uint32_t epoch)
{
	struct wbuf w;
	int rc = -1;

	wbuf_init(&w, 64);
	wput_u8(&w, kind);
	wput_u32(&w, gen);
	if (epoch != 0)
		wput_u32(&w, epoch);
	if (w.err || c == NULL || c->chan == NULL) {
		if (fd != -1)
			close(fd);
	} else if ((rc = chan_send(c->chan, type, 0, fd, w.p, w.len)) == -1)
		log_warn(
		    "cannot send %s to %s", msg_name(type), proc_name(c->kind));
	wbuf_free(&w);
	return rc;
}

static int
send_fd(struct child *c, uint8_t kind, uint32_t index, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 4);

	if (copy == -1) {
		log_warn("cannot copy a descriptor for %s", proc_name(c->kind));
		return -1;
	}
	return child_send(c, PC_FD, copy, kind, index, 0);
}

void
child_send_audit(struct parent *p, size_t i, int fd)
{
	struct child *m = p->kids[PROC_MONITOR];
	uint8_t index = (uint8_t)i;

	if (m == NULL || m->chan == NULL) {
		close(fd);
		return;
	}
	if (chan_send(m->chan, PC_AUDIT_FD, 0, fd, &index, 1) == -1)
		log_warn("cannot hand audit sink %zu on", i);
}

/* ---- CONF of each program ---- */

static void
put_paths(struct wbuf *w, const struct boot_path *v, size_t n)
{
	size_t i;

	wput_u32(w, (uint32_t)n);
	for (i = 0; i < n; i++)
		boot_path_put(w, &v[i]);
}

/* Is no execd there beside the one that is started? */
static int
alone(const struct parent *p)
{
	const struct child *c;

	for (c = p->drain; c != NULL; c = c->next)
		if (c->kind == PROC_EXECD)
			return 0;
	return p->kids[PROC_EXECD] == NULL && p->next_kids[PROC_EXECD] == NULL;
}

static void
put_execd(const struct parent *p, const struct boot *b, struct wbuf *w)
{
	char launch[ABX_PATH_MAX];

	snprintf(launch, sizeof(launch), "%s/abx-launch", p->libdir);
	put_paths(w, b->binds, b->nbinds);
	wput_u64(w, b->tmp_size);
	wput_u32(w, b->require);
	wput_str(w, launch);
	strlist_put(w, &b->protect);
	strlist_put(w, &b->protect_names);
	wput_u32(w, ABX_NOFILE);
	wput_u64(w, ABX_SESSION_IDLE_MS);
	wput_u32(w, b->cpu_percent);
	wput_u8(w, b->protect_absent);
	wput_u8(w, (uint8_t)alone(p));
}

static void
put_monitor(const struct parent *p, const struct boot *b, struct wbuf *w)
{
	strlist_put(w, &b->audit);
	strlist_put(w, &b->protect);
	wput_u32(w, getuid());
	wput_u32(w, p->control_gid);
}

/* The crash journal of a worker, in the state directory.  Where there cannot be
 * one it goes without; 0, or -1 when that is only now so. */
static int
send_journal(const struct boot *b, struct child *c, const char *name)
{
	char path[ABX_PATH_MAX + 32];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.journal", b->state_dir, name);
	fd = open(path,
	    O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY,
	    0600);
	if (fd == -1) {
		log_warn("journal %s", path);
		return errno == EMFILE || errno == ENFILE || errno == ENOMEM
			   ? -1
			   : 0;
	}
	return child_send(c, PC_FD, fd, PFD_JOURNAL, 0, 0);
}

/* The lines about workspaces: those of the last run, and a new file. */
static void
send_sessions(const struct boot *b, struct child *c)
{
	static const int flags[] = {
	    O_RDONLY | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC};
	char path[ABX_PATH_MAX + 32];
	uint32_t i;
	int fd;

	for (i = 0; i < nitems(flags); i++) {
		snprintf(path, sizeof(path), "%s/%s", b->state_dir,
		    i == 0 ? "sessions" : "sessions.new");
		fd = open(
		    path, flags[i] | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
		if (fd == -1) {
			log_warn("%s", path);
			return;
		}
		child_send(c, PC_FD, fd, PFD_SESSIONS, i, 0);
	}
}

/* 0, or -1 when it cannot have all that it needs. */
static int
child_conf(struct parent *p, struct child *c, const struct boot *b)
{
	struct proc_conf pc = {0};
	struct wbuf w;
	size_t i;
	int fd, rc = 0;

	pc.root = (uint8_t)p->root;
	pc.debug = (uint8_t)log_debugging();
	pc.uid = p->ids[c->kind].uid;
	pc.gid = p->ids[c->kind].gid;
	pc.generation = c->generation;
	pc.ppid = c->kind == PROC_EXECD ? 0 : getpid();
	wbuf_init(&w, IMSG_MAX_PAYLOAD);
	proc_conf_put(&w, &pc);
	switch (c->kind) {
	case PROC_LISTENER:
		for (i = 0; i < p->nsocks; i++)
			rc |= send_fd(c, PFD_LISTEN, (uint32_t)i, p->socks[i]);
		break;
	case PROC_MONITOR:
		send_sessions(b, c);
		put_monitor(p, b, &w);
		break;
	case PROC_PATHD:
		rc = send_journal(b, c, "pathd");
		put_paths(&w, b->roots, b->nroots);
		wput_u32(&w, b->umask);
		break;
	case PROC_EXECD:
		if ((fd = groups_enter(c->pid)) != -1)
			rc = child_send(c, PC_FD, fd, PFD_CGROUP, 0, 0);
		rc |= send_journal(b, c, "execd");
		put_execd(p, b, &w);
		break;
	default:
		break;
	}
	if (w.err || chan_send(c->chan, PC_CONF, 0, -1, w.p, w.len) == -1) {
		log_warnx("the configuration of %s does not fit its message",
		    proc_name(c->kind));
		rc = -1;
	}
	wbuf_free(&w);
	return rc;
}

/* ---- messages ---- */

/* A child that was taken over must not fill the disk of the log.  What is
 * lost is said as soon as there is room for it. */
static int
may_log(struct child *c)
{
	uint64_t now = proc_now_us(), fresh;

	if (c->lines_at == 0)
		c->lines = LOG_BURST;
	fresh = c->lines_at == 0 ? 0 : (now - c->lines_at) * LOG_RATE / 1000000;
	if (fresh > 0 || c->lines_at == 0)
		c->lines_at = now;
	c->lines = fresh > LOG_BURST - c->lines ? LOG_BURST
						: c->lines + (unsigned)fresh;
	if (c->lines == 0) {
		c->lost_lines++;
		return 0;
	}
	c->lines--;
	if (c->lost_lines > 0)
		log_warnx("%s: too many log lines, %u were dropped",
		    proc_name(c->kind), c->lost_lines);
	c->lost_lines = 0;
	return 1;
}

static void
child_log(struct child *c, const struct imsg *m)
{
	char line[2048];
	enum log_level level = m->payload[0];

	if (!may_log(c))
		return;
	snprintf(line, sizeof(line), "%.*s", (int)(m->len - 1),
	    (const char *)m->payload + 1);
	if (self->opt.foreground)
		log_write(level, proc_name(c->kind), line);
	else if (level <= LOGL_WARN)
		log_warnx("%s: %s", proc_name(c->kind), line);
	else
		log_info("%s: %s", proc_name(c->kind), line);
}

static int
child_msg_cb(struct chan *ch, struct imsg *m, void *arg)
{
	struct child *c = arg;
	const char *why;

	if (msg_check(m, &why) == -1) {
		log_warnx("%s from %s: %s", msg_name(m->type),
		    proc_name(c->kind), why);
		return -1;
	}
	if (m->type == PC_LOG) {
		child_log(c, m);
		return 0;
	}
	return parent_says(c, m);
}

/* Death itself is seen by waitpid; one that lives on without its channel can
 * be told nothing and is of no use. */
static void
child_gone_cb(struct chan *ch, int error, void *arg)
{
	struct child *c = arg;

	if (error == EBADMSG)
		log_warnx("%s breaks the protocol", proc_name(c->kind));
	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL);
}

/* ---- life ---- */

#ifdef ABX_SANITIZE
static char asan_options[] = "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1";
#endif
/* What a child finds in its environment: nothing. */
static char *const child_env[] = {
#ifdef ABX_SANITIZE
    asan_options,
#endif
    NULL};

struct child *
child_start(
    struct parent *p, enum proc_kind kind, const struct boot *b, uint32_t epoch)
{
	struct child *c;
	char name[32];
	char *argv[] = {name, NULL};
	int sv[2];

	self = p;
	strlcpy(name, proc_name(kind), sizeof(name));
	if ((c = calloc(1, sizeof(*c))) == NULL ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) == -1) {
		log_warn("cannot start %s", name);
		free(c);
		return NULL;
	}
	c->kind = kind;
	c->epoch = epoch;
	c->generation = ++p->generations[kind];
	c->pid = spawn_child(p, kind, sv[1], argv, child_env);
	if (c->pid == -1)
		log_warn("cannot start %s%s", name,
		    kind == PROC_EXECD ? " in namespaces of its own (see "
					 "abxctl doctor)"
				       : "");
	close(sv[1]);
	if (c->pid != -1 && (c->chan = chan_new(p->base, sv[0], child_msg_cb,
				 child_gone_cb, c)) == NULL)
		log_warn("channel to %s", name);
	if (c->chan != NULL && child_conf(p, c, b) == 0)
		return c;
	if (c->chan == NULL)
		close(sv[0]);
	if (c->pid != -1)
		(void)kill(c->pid, SIGKILL); /* nobody's when it is reaped */
	child_free(c);
	return NULL;
}

void
child_connect(struct parent *p, struct child *c)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, sv) == -1) {
		log_warn("cannot connect %s", proc_name(c->kind));
		(void)kill(c->pid, SIGKILL); /* the next one may be luckier */
		return;
	}
	if (chan_send(c->chan, PC_START, 0, sv[0], NULL, 0) == -1) {
		log_warn("cannot connect %s", proc_name(c->kind));
		close(sv[1]);
		(void)kill(c->pid, SIGKILL);
		return;
	}
	/* without it the child sees the end of its channel, and comes back */
	(void)child_send(p->kids[PROC_MONITOR], PC_CHILD_UP, sv[1],
	    (uint8_t)c->kind, c->generation, c->epoch);
}

void
child_shut(struct child *c)
{
	if (c == NULL || c->pid <= 0)
		return;
	if (!c->ready || chan_send(c->chan, PC_SHUTDOWN, 0, -1, NULL, 0) == -1)
		(void)kill(c->pid, SIGKILL);
}

void
child_free(struct child *c)
{
	if (c == NULL)
		return;
	chan_free(c->chan);
	free(c);
}
